//! Bounds of `limits.rs` that no world of the simulation reaches, and that nothing is left out.

use outlast_engine::Config;
use outlast_engine::calls::retry::reopen;
use outlast_engine::error::{Failure, Kind, Retry, ServerState};
use outlast_engine::limits::{
    ERROR_MESSAGE, KEEP_ALIVE_MIN, KNOWN_TOOLS, LISTENED_TASKS, MIRRORED_TOOLS, QUESTIONS, RECONNECT,
    RECONNECT_LONGEST, STORED_QUESTIONS, SUBSCRIBED, TASK_TOKENS, TASK_TOOLS, WAITERS,
};
use outlast_engine::method::Method;
use outlast_engine::policy::{CallFacts, Declared};
use outlast_engine::reached::Bound;
use outlast_testkit::bounds::reaches;
use outlast_testkit::script::World;
use outlast_testkit::sim;
use std::collections::BTreeSet;
use std::fs::{read_dir, read_to_string};
use std::path::Path;
use std::time::Duration;

const HERE: &str = env!("CARGO_MANIFEST_DIR");

/// Bounds of real stores, each with the test that all of them pass.
const OF_STORES: [(&str, &str, &str); 15] = [
    ("CALLBACKS", "callbacks.rs", "callbacks_have_a_bound_and_an_age"),
    ("CALLBACK_KEPT", "callbacks.rs", "callbacks_have_a_bound_and_an_age"),
    ("CALLBACK_CLAIM", "callbacks.rs", "a_callback_comes_back_from_a_process_that_is_silent"),
    ("RECORDS", "room.rs", "the_first_to_end_is_the_first_to_go"),
    ("STORE_BYTES", "room.rs", "bytes_are_counted_down_to_nothing"),
    ("MAILBOX", "mailbox.rs", "a_mailbox_has_a_bound"),
    ("FORMER_OWNERS", "forwarded.rs", "the_earliest_of_too_many_owners_is_told_nothing"),
    ("FORWARDED", "forwarded.rs", "messages_about_sessions_have_bounds_and_an_age"),
    ("CALL_NOTES", "keeping.rs", "notes_about_calls_are_a_ring"),
    ("PAGE", "records.rs", "a_page_has_a_bound"),
    ("AUDIT", "holds.rs", "questions_and_the_audit_log_have_bounds"),
    ("HOLDS", "holds.rs", "questions_and_the_audit_log_have_bounds"),
    ("SHOWN_BYTES", "shown.rs", "what_a_process_shows_and_is_told_has_bounds"),
    ("MEASURED_DAYS", "shown.rs", "durations_are_added_up_and_go_after_a_month"),
    ("MEASURED_ROWS", "shown.rs", "durations_have_a_bound"),
];

/// A bound that nobody ever reaches is a guess.
#[test]
fn every_bound_is_reached_by_a_world_or_a_scenario() {
    let source = read_to_string(Path::new(HERE).join("src/limits.rs")).unwrap();
    let constant = |line: &str| Some(line.strip_prefix("pub const ")?.split_once(':')?.0.to_owned());
    let all: BTreeSet<String> = source.lines().filter_map(constant).collect();
    let counted: BTreeSet<String> = Bound::ALL.iter().map(|bound| format!("{bound:?}")).collect();
    assert_eq!(all, counted, "`limits.rs` and `reached.rs` differ");
    let worlds = ["pipes", "service", "crash"].into_iter().flat_map(sim::bounds::of);
    let mut covered: BTreeSet<String> = worlds.map(|bound| format!("{bound:?}")).collect();
    covered.extend(OF_STORES.map(|(bound, _, _)| bound.to_owned()));
    covered.extend(named_in_scenarios());
    // `servers/unsent.rs`, `what_waits_has_a_bound`.
    covered.extend(["UNSENT_ANSWERS", "UNSENT_BYTES"].map(str::to_owned));
    // `callback.rs`, `waits_double_up_to_an_hour_and_are_spread`; `callbacks.rs`, `no_more_are_sent_than_may_be`.
    covered.extend(["CALLBACK_BACKOFF_MOST", "CALLBACKS_SENDING"].map(str::to_owned));
    // Of the edge: `a_silent_receiver_is_given_up`, `an_endless_answer_is_not_read_to_its_end`.
    covered.extend(["CALLBACK_TIME", "CALLBACK_ANSWER"].map(str::to_owned));
    let left: Vec<&String> = all.difference(&covered).collect();
    assert!(left.is_empty(), "reached nowhere: {left:?}");
}

/// What scenarios say that they reach; they fail if they do not.
fn named_in_scenarios() -> BTreeSet<String> {
    let files = read_dir(Path::new(HERE).join("tests/engine")).unwrap().map(|entry| entry.unwrap().path());
    let texts = files.map(|path| read_to_string(path).unwrap_or_default());
    let named = |text: String| -> Vec<String> {
        let lists = text.split("= reaches(&[").skip(1).filter_map(|rest| rest.split(']').next());
        lists.flat_map(|list| list.split(',')).map(|name| name.trim().replace("Bound::", "")).collect()
    };
    texts.flat_map(named).collect()
}

#[test]
fn the_bounds_of_stores_have_tests_that_every_store_passes() {
    let folder = Path::new(HERE).join("../outlast/src/store");
    let suite = read_to_string(folder.join("conformance.rs")).unwrap();
    for (bound, file, name) in OF_STORES {
        let text = read_to_string(folder.join("conformance").join(file)).unwrap();
        assert!(text.contains(&format!("pub fn {name}(")), "{bound}: no test `{name}` in {file}");
        assert!(suite.contains(name), "{bound}: `{name}` is not played");
    }
}

// Rules that are functions.

#[test]
fn a_broken_stream_is_opened_again_after_half_a_minute_at_most() {
    let _bounds = reaches(&[Bound::RECONNECT, Bound::RECONNECT_LONGEST]);
    assert_eq!(reopen(None, 1), RECONNECT);
    assert_eq!(reopen(None, 10), RECONNECT_LONGEST);
}

#[test]
fn a_hasty_client_is_not_flooded_with_keep_alives() {
    let _bounds = reaches(&[Bound::KEEP_ALIVE_MIN]);
    let policy = Config::default().server.rules.for_call(CallFacts {
        method: &Method::ToolsCall,
        tool: Some("x"),
        has_token: true,
        cap: Some(Duration::from_millis(60)),
        silence: None,
        wish: None,
        declared: &Declared::default(),
    });
    assert_eq!(policy.keep_alive, Some(KEEP_ALIVE_MIN));
}

#[test]
fn the_message_of_an_error_is_cut() {
    let _bounds = reaches(&[Bound::ERROR_MESSAGE]);
    let failure = Failure {
        kind: Kind::ServerGone,
        server: "srv".into(),
        method: "tools/call".into(),
        tool: Some("x".into()),
        elapsed: Duration::ZERO,
        limit: None,
        setting: None,
        retry_after: None,
        attempts: 1,
        state: ServerState::Gone,
        retry: Retry::Unsafe,
        last_sign: None,
        plain: false,
        detail: Some("é".repeat(ERROR_MESSAGE)),
        stderr: None,
    };
    let message = failure.message();
    assert!((ERROR_MESSAGE - 1..=ERROR_MESSAGE).contains(&message.len()), "{message}");
}

// Servers that list many tools.

/// `tools/list` with so many tools, each with these members.
fn list(count: usize, members: &str) -> String {
    let tools: Vec<String> =
        (0..count).map(|number| format!(r#"{{"name":"x{number}",{members}}}"#)).collect();
    format!(r#"{{"tools":[{}]}}"#, tools.join(","))
}

/// A client of 2025-11-25 behind a server with these capabilities, and its list. The next attempt is 3.
fn listed(world: &mut World, capabilities: &str, list: &str) {
    for line in [
        r#"> {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}"#.to_owned(),
        format!(r#"< {{"jsonrpc":"2.0","id":1,"result":{{"protocolVersion":"2025-11-25","capabilities":{capabilities}}}}}"#),
        r#"> {"jsonrpc":"2.0","method":"notifications/initialized"}"#.to_owned(),
        r#"> {"jsonrpc":"2.0","id":2,"method":"tools/list"}"#.to_owned(),
        format!(r#"< {{"jsonrpc":"2.0","id":2,"result":{list}}}"#),
    ] {
        world.input(&line);
    }
}

#[test]
fn a_tool_beyond_those_that_are_known_to_need_a_task_is_called_plainly() {
    let _bounds = reaches(&[Bound::TASK_TOOLS]);
    let mut world = World::default();
    let tools = list(TASK_TOOLS + 1, r#""execution":{"taskSupport":"required"}"#);
    listed(&mut world, r#"{"tools":{},"tasks":{"requests":{"tools":{"call":{}}}}}"#, &tools);
    let call = |world: &mut World, id: usize, tool: usize| {
        world.input(&format!(
            r#"> {{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"x{tool}"}}}}"#
        ))
    };
    let last = call(&mut world, 3, TASK_TOOLS);
    assert_eq!(
        last,
        [
            r#">> {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"_meta":{"progressToken":3},"name":"x10000"}}"#
        ]
    );
    let known = call(&mut world, 4, TASK_TOOLS - 1);
    assert!(known[0].contains(r#""task":{"ttl":86400000}"#), "{known:?}");
}

/// What is not known to promise a schema is handed off as a plain text.
#[test]
fn a_tool_beyond_those_whose_schemas_are_known_is_handed_off_like_others() {
    let _bounds = reaches(&[Bound::KNOWN_TOOLS]);
    let mut world = World::default();
    ["set tasks", "set client-cap 10s"].iter().for_each(|line| _ = world.input(line));
    listed(&mut world, r#"{"tools":{}}"#, &list(KNOWN_TOOLS + 1, r#""outputSchema":{"type":"object"}"#));
    let handed = |world: &mut World, id: usize, tool: usize| -> String {
        world.input(&format!(
            r#"> {{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"x{tool}"}}}}"#
        ));
        world.input("wait 10s");
        world.input(&format!("stored {}", id - 2)).join("\n")
    };
    let known = handed(&mut world, 3, KNOWN_TOOLS - 1);
    assert!(known.contains(r#""isError":true"#), "{known}");
    let unknown = handed(&mut world, 4, KNOWN_TOOLS);
    assert!(unknown.contains("still running") && !unknown.contains(r#""isError":true"#), "{unknown}");
}

const MODERN: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}"#;

#[test]
fn arguments_of_a_tool_beyond_those_that_are_mirrored_are_not() {
    let _bounds = reaches(&[Bound::MIRRORED_TOOLS]);
    let mut world = World::default();
    ["set serve", "set http"].iter().for_each(|line| _ = world.input(line));
    let schema = r#""inputSchema":{"type":"object","properties":{"q":{"type":"string","x-mcp-header":"Q"}}}"#;
    world.input(&format!(r#"post 1 version=2026-07-28 method=tools/list {{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{{{MODERN}}}}}"#));
    world.input("started");
    world.input(&format!(r#"<~1 {{"jsonrpc":"2.0","id":1,"result":{}}}"#, list(MIRRORED_TOOLS + 1, schema)));
    let call = |world: &mut World, exchange: usize, tool: usize, more: &str| {
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"x{tool}","arguments":{{"q":"a"}},{MODERN}}}}}"#
        );
        world
            .input(&format!("post {exchange} version=2026-07-28 method=tools/call name=x{tool} {more}{body}"))
            .join("\n")
    };
    // What is mirrored must be: its client did not send the header.
    let known = call(&mut world, 2, MIRRORED_TOOLS - 1, "");
    assert!(known.contains("-32020"), "{known}");
    let unknown = call(&mut world, 3, MIRRORED_TOOLS, "");
    assert!(unknown.starts_with(">> "), "{unknown}");
}

// Tasks.

/// A client of 2025-11-25 with a task that runs: attempt 2, the first ticket.
fn with_task(world: &mut World) {
    world.input("set tasks");
    for line in [
        r#"> {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}"#,
        r#"< {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}}"#,
        r#"> {"jsonrpc":"2.0","method":"notifications/initialized"}"#,
        r#"> {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x","task":{}}}"#,
        "stored 1",
    ] {
        world.input(line);
    }
}

#[test]
fn only_so_many_requests_wait_for_a_task() {
    let _bounds = reaches(&[Bound::WAITERS]);
    let (mut world, ticket) = (World::default(), "01".repeat(32));
    with_task(&mut world);
    let mut wait = |id: usize| {
        world.input(&format!(
            r#"> {{"jsonrpc":"2.0","id":{id},"method":"tasks/result","params":{{"taskId":"{ticket}"}}}}"#
        ))
    };
    (0..WAITERS).for_each(|id| assert!(wait(10 + id).is_empty()));
    let refusal = r#"<< {"jsonrpc":"2.0","id":9,"error":{"code":-32603,"message":"Internal error: 1000 requests wait for this task already"}}"#;
    assert_eq!(wait(9), [refusal]);
}

/// The oldest token is forgotten, and what is said under it is dropped.
#[test]
fn only_so_many_tokens_outlive_their_handles() {
    let _bounds = reaches(&[Bound::TASK_TOKENS]);
    let mut world = World::default();
    listed(&mut world, r#"{"tools":{},"tasks":{"requests":{"tools":{"call":{}}}}}"#, r#"{"tools":[]}"#);
    for number in 3..TASK_TOKENS + 4 {
        world.input(&format!(r#"> {{"jsonrpc":"2.0","id":{number},"method":"tools/call","params":{{"name":"x","task":{{}},"_meta":{{"progressToken":{number}}}}}}}"#));
        world.input(&format!(r#"< {{"jsonrpc":"2.0","id":{number},"result":{{"task":{{"taskId":"t-{number}","status":"working"}}}}}}"#));
    }
    let mut report = |token: usize| {
        world.input(&format!(r#"< {{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token},"progress":1}}}}"#))
    };
    assert_eq!(
        report(4),
        [
            r#"<< {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":4,"progress":1}}"#
        ]
    );
    let dropped = report(3);
    assert!(!dropped.iter().any(|line| line.starts_with("<<")), "{dropped:?}");
}

/// A modern task that runs behind `serve`: attempt 1, the first ticket.
fn with_modern_task(world: &mut World) {
    for line in [
        "set serve".to_owned(),
        "set tasks".to_owned(),
        format!(
            r#"post 1 version=2026-07-28 method=tools/call name=x {{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{{"name":"x",{MODERN}}}}}"#
        ),
        "started".to_owned(),
        "wait 10s".to_owned(),
        "stored 1".to_owned(),
    ] {
        world.input(&line);
    }
}

#[test]
fn a_subscription_hears_of_so_many_tasks_and_no_more() {
    let _bounds = reaches(&[Bound::LISTENED_TASKS]);
    let (mut world, ticket) = (World::default(), "01".repeat(32));
    with_modern_task(&mut world);
    let mut listen = |exchange: usize, others: usize| {
        let tickets: Vec<String> = (0..others).map(|number| format!("\"{number:064x}\"")).collect();
        let tickets = [tickets, vec![format!("\"{ticket}\"")]].concat().join(",");
        world.input(&format!(r#"post {exchange} version=2026-07-28 method=subscriptions/listen {{"jsonrpc":"2.0","id":"l{exchange}","method":"subscriptions/listen","params":{{"notifications":{{"taskIds":[{tickets}]}},{MODERN}}}}}"#)).join("\n")
    };
    let last = listen(2, LISTENED_TASKS - 1);
    assert!(last.contains(&format!(r#""taskIds":["{ticket}"]"#)), "{last}");
    let beyond = listen(3, LISTENED_TASKS);
    assert!(beyond.contains(r#""taskIds":[]"#), "{beyond}");
}

/// One question is too long to be stored with the task, and one is one too many.
#[test]
fn a_task_shows_so_many_questions_and_stores_so_much_of_them() {
    let _bounds = reaches(&[Bound::QUESTIONS, Bound::STORED_QUESTIONS]);
    let (mut world, ticket) = (World::default(), "01".repeat(32));
    with_modern_task(&mut world);
    let ask = |world: &mut World, id: usize, text: &str| {
        world.input(&format!(
            r#"< {{"jsonrpc":"2.0","id":{id},"method":"elicitation/create","params":{{"message":"{text}"}}}}"#
        ))
    };
    ask(&mut world, 0, &"x".repeat(STORED_QUESTIONS));
    (1..QUESTIONS).for_each(|id| _ = ask(&mut world, id, "?"));
    let refused = ask(&mut world, QUESTIONS, "?").join("\n");
    assert!(refused.contains(r#">> 1: {"jsonrpc":"2.0","id":100,"error":{"#), "{refused}");
    let shown = world.input(&format!(r#"post 2 version=2026-07-28 method=tasks/get name={ticket} {{"jsonrpc":"2.0","id":6,"method":"tasks/get","params":{{"taskId":"{ticket}",{MODERN}}}}}"#)).join("\n");
    assert_eq!(shown.matches(r#""method":"elicitation/create""#).count(), QUESTIONS);
}

// Servers that have tasks of their own.

/// When a server is asked for its task again, if it wishes so.
fn polls(wish: &str) -> Vec<String> {
    let mut world = World::default();
    let tools = r#"{"tools":[{"name":"slow","execution":{"taskSupport":"required"}}]}"#;
    listed(&mut world, r#"{"tools":{},"tasks":{"requests":{"tools":{"call":{}}}}}"#, tools);
    world.input(r#"> {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"slow"}}"#);
    world.input(&format!(
        r#"< {{"jsonrpc":"2.0","id":3,"result":{{"task":{{"taskId":"t","status":"working"{wish}}}}}}}"#
    ));
    world.input("wait 70s")
}

#[test]
fn a_server_is_asked_for_its_task_within_reason() {
    let _bounds = reaches(&[Bound::POLL, Bound::POLL_LEAST, Bound::POLL_MOST, Bound::POLL_JITTER]);
    let at = |wish: &str| polls(wish)[0].clone();
    let (soon, plain, late) = (at(r#","pollInterval":1"#), at(""), at(r#","pollInterval":1e9"#));
    assert!(soon.starts_with("@10") && soon.ends_with("ms"), "{soon}");
    assert!(plain.starts_with("@1s"), "{plain}");
    assert!(late.starts_with("@1m"), "{late}");
}

// Subscriptions of one client.

/// A server that is started again is subscribed to as many resources as are known.
#[test]
fn a_restarted_server_is_subscribed_to_what_is_remembered() {
    let _bounds = reaches(&[Bound::SUBSCRIBED]);
    let mut world = World::default();
    world.input("set restart on-crash");
    listed(&mut world, r#"{"resources":{"subscribe":true}}"#, r#"{"tools":[]}"#);
    for number in 0..=SUBSCRIBED {
        let id = 3 + number;
        world.input(&format!(r#"> {{"jsonrpc":"2.0","id":{id},"method":"resources/subscribe","params":{{"uri":"u:{number}"}}}}"#));
        world.input(&format!(r#"< {{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#));
    }
    ["output-closed", "exited 1", "wait 1s", "started"].iter().for_each(|line| _ = world.input(line));
    let handshake = 3 + SUBSCRIBED + 1;
    let told = world.input(&format!(r#"< {{"jsonrpc":"2.0","id":{handshake},"result":{{"protocolVersion":"2025-11-25","capabilities":{{"resources":{{"subscribe":true}}}}}}}}"#));
    let count = told.iter().filter(|line| line.contains("resources/subscribe")).count();
    assert_eq!(count, SUBSCRIBED, "{:?}", told.first());
}
