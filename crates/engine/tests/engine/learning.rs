//! What is known of a client acts by itself, and what its cancels show is learned.

use outlast_engine::limits::IDENTITIES;
use outlast_engine::reached::Bound;
use outlast_testkit::bounds::reaches;
use outlast_testkit::script::{World, check};

/// `initialize` of a client, and what comes of it: the note that is expected, or nothing.
fn handshake(name: &str, version: &str, note: &str) -> String {
    let asks = format!(
        r#"{{"jsonrpc":"2.0","id":"i","method":"initialize","params":{{"protocolVersion":"2025-11-25","capabilities":{{}},"clientInfo":{{"name":"{name}","version":"{version}"}}}}}}"#
    );
    let answers = r#"{"jsonrpc":"2.0","id":"1","result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"files"}}}"#;
    let gets = answers.replace(r#""id":"1""#, r#""id":"i""#);
    let sent = asks.replace(r#""id":"i""#, r#""id":"1""#);
    format!("> {asks}\n{note}\n>> {sent}\n< {answers}\n<< {gets}\n")
}

/// A list, asked as attempt `number`, that the server answers with nothing.
fn lists(number: u32, tools: &str) -> String {
    format!(
        r#"
        > {{"jsonrpc":"2.0","id":{number},"method":"tools/list"}}
        >> {{"jsonrpc":"2.0","id":{number},"method":"tools/list"}}
        < {{"jsonrpc":"2.0","id":{number},"result":{{"tools":[]}}}}
        << {{"jsonrpc":"2.0","id":{number},"result":{{"tools":[{tools}]}}}}
        "#
    )
}

/// A call as attempt `number`.
fn calls(number: u32) -> String {
    format!(
        r#"
        > {{"jsonrpc":"2.0","id":{number},"method":"tools/call","params":{{"name":"build"}}}}
        >> {{"jsonrpc":"2.0","id":{number},"method":"tools/call","params":{{"_meta":{{"progressToken":{number}}},"name":"build"}}}}
        "#
    )
}

/// The client gives it up after a time, with a reason.
fn cancels(number: u32, time: &str, reason: &str, then: &str) -> String {
    format!(
        r#"
        wait {time}
        > {{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{number}{reason}}}}}
        {then}
        >> {{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{number}{reason}}}}}
        "#
    )
}

#[track_caller]
fn play(parts: &[&str]) {
    check(&parts.concat());
}

const OURS: &str = r#"{…"name":"files_wait"},{…"name":"files_cancel"}"#;

const HASTY: &str = "!! info: `hasty-agent 1.4` gives up on a tool after 1m (measured of hasty* 1+ on 2026-11-18): slow calls are handed off shortly before that";

#[test]
fn a_measured_cap_acts_by_itself_and_says_where_it_came_from() {
    play(&[
        "set profiles\n",
        &handshake("hasty-agent", "1.4", HASTY),
        &lists(2, OURS),
        &calls(3),
        r#"
        wait 55s
        @55s
        .. store 1: create
        stored 1
        << {"jsonrpc":"2.0","id":3,"result":{"_meta":{"dev.outlast/ticket":"…","dev.outlast/why":"measured of hasty* 1+ on 2026-11-18"},"content":[{"text":"`build` is still running. Call the tool `files_wait` with …
        "#,
    ]);
}

#[test]
fn nothing_is_done_for_a_client_that_was_not_measured_or_for_another_version_of_it() {
    for (name, version) in [("hasty-agent", "2.0"), ("stranger", "1.4")] {
        play(&["set profiles\n", &handshake(name, version, ""), &lists(2, ""), &calls(3), "wait 1h\n"]);
    }
}

#[test]
fn a_person_switches_it_off() {
    play(&[
        "set profiles\nset client-cap off\n",
        &handshake("hasty-agent", "1.4", ""),
        &lists(2, ""),
        &calls(3),
        "wait 1h\n",
    ]);
}

#[test]
fn what_a_person_wrote_of_a_client_wins_over_what_was_measured() {
    let note = "!! info: `hasty-agent 1.4` gives up on a tool after 20s (--client-profile 'hasty-*'): slow calls are handed off shortly before that";
    play(&[
        "set profiles\nset client-profile hasty-*=cap:20s,progress:no\n",
        &handshake("hasty-agent", "1.4", note),
        &calls(2),
        "wait 18s\n@18s\n.. store 1: create\n",
    ]);
    play(&[
        "set profiles\nset client-profile hasty-*=cap:off,progress:no\n",
        &handshake("hasty-agent", "1.4", ""),
        &lists(2, ""),
        &calls(3),
        "wait 1h\n",
    ]);
}

#[test]
fn a_client_that_progress_keeps_patient_hears_from_us_at_a_third_of_its_limit_and_up_to_its_total() {
    let note = "!! info: `talkative 1` gives up on a tool after 10m (measured of talkative on 2026-11-18): slow calls are handed off shortly before that";
    play(&[
        "set profiles\n",
        &handshake("talkative", "1", note),
        r#"
        > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"build","_meta":{"progressToken":"p"}}}
        >> {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"build","_meta":{"progressToken":2}}}
        wait 11s
        @5s
        << …keepAlive…
        @10s
        << …keepAlive…
        "#,
    ]);
    // Without a token it is another client than the one that was measured.
    play(&["set profiles\n", &handshake("talkative", "1", note), &calls(2), "wait 1h\n"]);
}

#[test]
fn where_rows_cannot_be_told_apart_nothing_is_done_and_that_is_said_once() {
    let note = "!! info: several programs call themselves `twin 1` and have different limits: nothing is done for it; --client-cap or --client-profile says which limit it has";
    play(&["set profiles\n", &handshake("twin", "1", note), &lists(2, ""), &calls(3), "wait 1h\n"]);
}

#[test]
fn a_client_that_waits_longer_than_its_row_says_is_left_alone_from_then_on() {
    let note = "!! warn: `hasty-agent 1.4` waited 1m30s for a tool, longer than the 1m that are known of it: its calls are not handed off any more; --client-cap says when they are to be\n.. learn hasty-agent 1.4 1m30s: one";
    play(&[
        "set profiles\n",
        &handshake("hasty-agent", "1.4", HASTY),
        &lists(2, OURS),
        &calls(3),
        // It could not be handed off.
        "wait 55s\n@55s\n.. store 1: create\nnot-stored 1\n!! warn: could not be stored: disk full\n",
        &cancels(3, "35s", "", note),
        &calls(4),
        "wait 20m\n",
    ]);
}

/// A client says what it likes of itself, so what it does counts for its own principal.
#[test]
fn what_a_client_of_another_principal_does_changes_nothing() {
    const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"hasty"},"io.modelcontextprotocol/clientCapabilities":{}}"#;
    let known = "!! info: `hasty` gives up on a tool after 1m (measured of hasty on 2026-11-18): slow calls are handed off shortly before that";
    check(
        &r#"
        set serve
        set profiles
        post 1 principal=bob version=2026-07-28 method=tools/call name=x {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x",META}}
        .. 1: start 0
        KNOWN
        >> 1: …"id":1,"method":"tools/call",…
        started
        wait 90s
        @500ms
        << 1: 200 events
        << 1: : outlast||
        @55s
        .. store 1: create
        not-stored 1
        !! warn: could not be stored: disk full
        hang-up 1
        !! warn: `hasty` waited 1m30s for a tool, longer than the 1m that are known of it: its calls are not handed off any more; --client-cap says when they are to be
        .. learn hasty  1m30s: one
        >> 1: …notifications/cancelled…
        # With the same words another principal is handed off.
        post 2 principal=ann version=2026-07-28 method=tools/call name=x {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x",META}}
        .. 2: start 0
        KNOWN
        >> 2: …"id":2,"method":"tools/call",…
        started
        wait 55s
        @1m30s500ms
        << 2: 200 events
        << 2: : outlast||
        @2m25s
        .. store 2: create
        "#
        .replace("META", META)
        .replace("KNOWN", known),
    );
}

const LIKELY: &str =
    "!! warn: `stranger` gives up on silent calls after 1m, which looks like a limit of its own; ";

#[test]
fn two_cancels_at_the_same_age_are_a_cap_that_a_person_may_accept() {
    let ask = format!(
        "{LIKELY}to have such calls handed off before it, run: outlast clients learn 'stranger'\n.. learn stranger 3 1m50ms: 1m"
    );
    play(&[
        &handshake("stranger", "3", ""),
        &calls(2),
        &cancels(2, "60s", "", ".. learn stranger 3 1m: one"),
        &calls(3),
        &cancels(3, "60s50ms", "", &ask),
        // Enough is known; and nothing is done before somebody says so.
        &calls(4),
        &cancels(4, "60s", "", ""),
        &lists(5, ""),
    ]);
}

#[test]
fn the_first_of_them_may_have_been_seen_by_an_earlier_process() {
    let ask = format!(
        "{LIKELY}to have such calls handed off before it, run: outlast clients learn 'stranger'\n.. learn stranger 3 1m: 1m"
    );
    play(&[
        "set sighting stranger 3 60s\n",
        &handshake("stranger", "3", ""),
        &calls(2),
        &cancels(2, "60s", "", &ask),
    ]);
    // Of another version it was not.
    play(&[
        "set sighting stranger 2 60s\n",
        &handshake("stranger", "3", ""),
        &calls(2),
        &cancels(2, "60s", "", ".. learn stranger 3 1m: one"),
    ]);
}

#[test]
fn a_cancel_that_names_the_limit_is_enough() {
    let ask = "!! warn: `stranger` gives up on silent calls after 5s, which looks like a limit of its own; to have such calls handed off before it, run: outlast clients learn 'stranger'\n.. learn stranger 3 5s: 5s";
    play(&[
        &handshake("stranger", "3", ""),
        &calls(2),
        &cancels(2, "5s", r#","reason":"timed out after 5s""#, ask),
    ]);
}

#[test]
fn with_auto_the_next_call_is_handed_off_once_the_client_has_seen_our_tools() {
    let auto = format!(
        "{LIKELY}from now on such calls are handed off before it\n<< {{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}}\n.. learn stranger 3 1m: 1m"
    );
    play(&[
        "set learn auto\nset sighting stranger 3 60s\n",
        &handshake("stranger", "3", ""),
        &calls(2),
        &cancels(2, "60s", "", &auto),
        // Its model could not call a tool that it has not seen.
        &calls(3),
        "wait 61s\n",
        &cancels(3, "1s", "", ""),
        &lists(4, OURS),
        &calls(5),
        r#"
        wait 55s
        @2m57s
        .. store 1: create
        stored 1
        << {"jsonrpc":"2.0","id":5,"result":{…"dev.outlast/why":"learned on this machine of stranger 3"…
        "#,
    ]);
}

#[test]
fn with_off_nothing_is_kept() {
    let note = format!("{LIKELY}with --client-cap 1m such calls are handed off before it");
    play(&[
        "set learn off\n",
        &handshake("stranger", "3", ""),
        &calls(2),
        &cancels(2, "60s", "", ""),
        &calls(3),
        &cancels(3, "60s", "", &note),
    ]);
}

#[test]
fn a_cancel_of_a_call_that_was_answered_teaches_nothing() {
    let answered = |number: u32| {
        calls(number)
            + &format!(
                r#"
                wait 60s
                < {{"jsonrpc":"2.0","id":{number},"result":{{}}}}
                << {{"jsonrpc":"2.0","id":{number},"result":{{}}}}
                > {{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{number}}}}}
                "#
            )
    };
    play(&[&handshake("stranger", "3", ""), &answered(2), &answered(3)]);
}

/// A client that has not said who it is, whose cancels are looked at.
#[track_caller]
fn cancelled_after(times: &[&str], notes: &str) {
    let last = times.len();
    let calls = times.iter().zip(1..).map(|(time, number)| {
        calls(number) + &cancels(number, time, "", if number as usize == last { notes } else { "" })
    });
    check(&calls.collect::<String>());
}

#[test]
fn a_cap_of_whoever_is_noted_once_and_only_of_silent_calls_that_are_old_and_alike() {
    let note = "!! warn: the client gives up on silent calls after 1m, which looks like a limit of its own; with --client-cap 1m such calls are handed off before it";
    cancelled_after(&["60s", "60s50ms"], note);
    cancelled_after(&["60s", "5s"], "");
    cancelled_after(&["5s", "5s"], "");
    cancelled_after(&["60s", "80s"], "");
    let reports =
        r#"< {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}"#;
    play(&[
        &calls(1),
        reports,
        &cancels(1, "60s", "", ""),
        &calls(2),
        &cancels(2, "60s", "", ""),
        &calls(3),
        &cancels(3, "60s", "", note),
        &calls(4),
        &cancels(4, "60s", "", ""),
    ]);
}

/// What is known of the longest known client is looked up again when it comes back, and said again.
#[test]
fn so_many_clients_are_known_and_no_more() {
    let _bounds = reaches(&[Bound::IDENTITIES]);
    let mut world = World::default();
    world.input("set profiles");
    let mut says = |name: &str| {
        let info = format!(r#"{{"name":"{name}","version":"1.4"}}"#);
        let params = format!(r#"{{"protocolVersion":"2025-11-25","capabilities":{{}},"clientInfo":{info}}}"#);
        let told =
            world.input(&format!(r#"> {{"jsonrpc":"2.0","id":1,"method":"initialize","params":{params}}}"#));
        told.iter().any(|line| line.contains("gives up on a tool after 1m"))
    };
    assert!(says("hasty-agent"));
    assert!((1..IDENTITIES).all(|number| !says(&format!("other-{number}"))));
    assert!(!says("hasty-agent"), "it is known, and that was said");
    says("one-more");
    assert!(says("hasty-agent"));
}
