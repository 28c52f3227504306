//! What is kept of a stream for a client that comes back, and what is not.

use outlast_testkit::script::{World, check};

/// A session whose handshake is over, on server 1; the next attempt is 2, the next stream 3.
const SESSION: &str = r#"
        set serve
        post 1 {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"VERSION","capabilities":{}}}
        .. 1: start 0
        << 1: 200 with a session events
        << 1: FIRST||
        >> 1: {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"VERSION","capabilities":{}}}
        started
        < {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"VERSION","capabilities":{}}}
        << 1: id: 2-1|data: {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"VERSION","capabilities":{…}}}||
        << 1: finish
        post 2 session=1 {"jsonrpc":"2.0","method":"notifications/initialized"}
        << 2: 202
        >> 1: {"jsonrpc":"2.0","method":"notifications/initialized"}
"#;

fn session_of(version: &str) -> String {
    // Clients of this revision take an empty event for a place to come back to.
    let first = if version == "2025-11-25" { "id: 2-0|retry: 1000|data: " } else { ": outlast" };
    SESSION.replace("VERSION", version).replace("FIRST", first)
}

fn in_session_of(version: &str, scenario: &str) {
    check(&format!("{}\n{scenario}", session_of(version)));
}

fn in_session(scenario: &str) {
    in_session_of("2025-11-25", scenario);
}

/// More than is kept of one session.
fn huge() -> String {
    "x".repeat(outlast_engine::limits::SESSION_BYTES)
}

#[test]
fn who_missed_what_was_too_long_to_keep_is_not_told_that_all_is_well() {
    let scenario = r#"
        post 3 session=1 {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x","_meta":{"progressToken":1}}}
        << 3: 200 events
        << 3: id: 3-0|retry: 1000|data: ||
        >> 1: {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x","_meta":{"progressToken":2}}}
        < {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":2,"progress":1}}
        << 3: id: 3-1|data: …
        hang-up 3
        < {"jsonrpc":"2.0","id":2,"result":{"text":"HUGE"}}
        get 4 session=1 last=3-0
        << 4: 400 …Last-Event-ID is older than what is kept (at most 16 MiB of a session and 256 MiB in all); the call on its stream may have run"}}
        get 5 session=1 last=3-1
        << 5: 400 …Last-Event-ID is older than what is kept…
        # Whoever has read it knows all there is.
        get 6 session=1 last=3-2
        << 6: 200 events
        << 6: : outlast|retry: 1000||
        << 6: finish
        "#;
    in_session(&scenario.replace("HUGE", &huge()));
}

#[test]
fn a_hole_in_the_middle_of_a_stream_is_not_stepped_over() {
    let scenario = r#"
        post 3 session=1 {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x"}}
        << 3: 200 events
        << 3: id: 3-0|retry: 1000|data: ||
        >> 1: {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"_meta":{"progressToken":2},"name":"x"}}
        hang-up 3
        < {"jsonrpc":"2.0","method":"notifications/message","params":{"data":"small"}}
        < {"jsonrpc":"2.0","method":"notifications/message","params":{"data":"HUGE"}}
        < {"jsonrpc":"2.0","id":2,"result":{}}
        get 4 session=1 last=3-0
        << 4: 400 …Last-Event-ID is older than what is kept…
        get 5 session=1 last=3-2
        << 5: 200 events
        << 5: : outlast|retry: 1000||
        << 5: id: 3-3|data: {"jsonrpc":"2.0","id":2,"result":{}}||
        << 5: finish
        "#;
    in_session(&scenario.replace("HUGE", &huge()));
}

#[test]
fn a_standing_stream_goes_on_after_what_was_too_long_to_keep() {
    let scenario = r#"
        < {"jsonrpc":"2.0","method":"notifications/message","params":{"data":"HUGE"}}
        < {"jsonrpc":"2.0","method":"notifications/message","params":{"data":"small"}}
        get 3 session=1
        << 3: 200 events
        << 3: : outlast|retry: 1000||
        << 3: id: 1-2|data: {"jsonrpc":"2.0","method":"notifications/message","params":{"data":"small"}}||
        "#;
    in_session(&scenario.replace("HUGE", &huge()));
}

#[test]
fn a_keep_alive_is_for_who_reads_and_is_not_kept() {
    in_session(
        r#"
        post 3 session=1 {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x","_meta":{"progressToken":1}}}
        << 3: 200 events
        << 3: id: 3-0|retry: 1000|data: ||
        >> 1: {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x","_meta":{"progressToken":2}}}
        wait 10s
        @10s
        << 3: data: {"jsonrpc":"2.0","method":"notifications/progress",…"dev.outlast/keepAlive":true}}}||
        hang-up 3
        < {"jsonrpc":"2.0","method":"notifications/message","params":{"data":"one"}}
        wait 30s
        < {"jsonrpc":"2.0","method":"notifications/message","params":{"data":"two"}}
        get 4 session=1 last=3-0
        << 4: 200 events
        << 4: : outlast|retry: 1000||
        << 4: id: 3-1|data: …one…
        << 4: id: 3-2|data: …two…
        "#,
    );
}

/// Without the stream of its call, a task's keep-alive is said on whatever its client reads.
#[test]
fn a_keep_alive_of_a_task_is_not_kept_either() {
    check(&format!(
        "{}\n{}",
        session_of("2025-11-25").replace("set serve", "set serve\nset tasks"),
        r#"
        get 3 session=1
        << 3: 200 events
        << 3: : outlast|retry: 1000||
        post 4 session=1 {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x","task":{},"_meta":{"progressToken":1}}}
        << 4: 200 events
        << 4: id: 3-0|retry: 1000|data: ||
        .. store 1: create
        stored 1
        << 4: id: 3-1|data: …"status":"working"…
        << 4: finish
        >> 1: …"method":"tools/call"…
        wait 10s
        @10s
        << 3: data: {"jsonrpc":"2.0","method":"notifications/progress",…"dev.outlast/keepAlive":true}}}||
        hang-up 3
        wait 30s
        get 5 session=1
        << 5: 200 events
        << 5: : outlast|retry: 1000||
        "#,
    ));
}

/// A task that runs as attempt 2, where a response begins with the first thing there is to say, or after 5 ms.
const LATE_TASK: &str = r#"
        set serve
        set tasks
        set stream-head 5ms
        post 1 {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        .. 1: start 0
        >> 1: …"method":"initialize"…
        started
        < {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}
        << 1: 200 with a session events
        << 1: id: 2-0|retry: 1000|data: ||
        << 1: id: 2-1|data: …"protocolVersion"…
        << 1: finish
        post 2 session=1 {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x","task":{}}}
        .. store 1: create
"#;

#[test]
fn who_waits_for_a_task_knows_at_once_how_to_come_back() {
    let scenario = r#"
        stored 1
        << 2: 200 events
        << 2: id: 3-0|retry: 1000|data: ||
        << 2: …"taskId":"T2"…
        << 2: finish
        >> 1: …"method":"tools/call"…
        post 3 session=1 {"jsonrpc":"2.0","id":3,"method":"tasks/result","params":{"taskId":"T2"}}
        << 3: 200 events
        << 3: id: 4-0|retry: 1000|data: ||
        hang-up 3
        < {"jsonrpc":"2.0","id":2,"result":{"content":[]}}
        .. store 2: completed
        stored 2
        get 4 session=1 last=4-0
        << 4: 200 events
        << 4: : outlast|retry: 1000||
        << 4: id: 4-1|data: …"content":[]…
        << 4: finish
        "#;
    check(&format!("{LATE_TASK}{scenario}").replace("T2", &"02".repeat(32)));
}

#[test]
fn what_was_not_answered_before_the_end_is_refused() {
    check(&format!(
        "{LATE_TASK}{}",
        r#"
        stop 15
        output-closed
        exited 0
        << 2: 503 {"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"outlast is being stopped; try again"}}
        .. end 0
        "#
    ));
}

/// Clients before 2025-11-25 are not greeted with an event, and can come back only with the id of one.
#[test]
fn the_first_keep_alive_of_an_older_client_lets_it_come_back() {
    in_session_of(
        "2025-06-18",
        r#"
        post 3 session=1 {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x","_meta":{"progressToken":1}}}
        << 3: 200 events
        << 3: : outlast||
        >> 1: {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x","_meta":{"progressToken":2}}}
        wait 20s
        @10s
        << 3: id: 3-0|data: …"dev.outlast/keepAlive":true}}}||
        @20s
        << 3: data: …"dev.outlast/keepAlive":true}}}||
        hang-up 3
        < {"jsonrpc":"2.0","id":2,"result":{}}
        get 4 session=1 last=3-0
        << 4: 200 events
        << 4: : outlast|retry: 1000||
        << 4: id: 3-1|data: {"jsonrpc":"2.0","id":2,"result":{}}||
        << 4: finish
        "#,
    );
}

#[test]
fn progress_that_nobody_reads_gives_its_place_to_newer_progress() {
    in_session(
        r#"
        post 3 session=1 {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x","_meta":{"progressToken":1}}}
        << 3: 200 events
        << 3: id: 3-0|retry: 1000|data: ||
        >> 1: {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x","_meta":{"progressToken":2}}}
        hang-up 3
        < {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":2,"progress":1}}
        < {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":2,"progress":2}}
        < {"jsonrpc":"2.0","method":"notifications/message","params":{"data":"one"}}
        < {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":2,"progress":3}}
        get 4 session=1 last=3-0
        << 4: 200 events
        << 4: : outlast|retry: 1000||
        << 4: id: 3-1|data: {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":2}}||
        << 4: id: 3-2|data: …one…
        << 4: id: 3-3|data: {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":3}}||
        "#,
    );
}

/// A client that was away while its server reported a thousand times still gets its answer.
#[test]
fn progress_does_not_push_out_what_came_before_it() {
    let mut world = World::default();
    let version = SESSION.replace("VERSION", "2025-11-25");
    let outputs = ["..", "<<", ">>"];
    let inputs = version.lines().map(str::trim).filter(|line| !line.is_empty());
    for line in inputs.filter(|line| !outputs.iter().any(|mark| line.starts_with(mark))) {
        world.input(line);
    }
    world.input(
        r#"post 3 session=1 {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x","_meta":{"progressToken":1}}}"#,
    );
    world.input("hang-up 3");
    for progress in 0..2 * outlast_engine::limits::STREAM_EVENTS {
        world.input(&format!(
            r#"< {{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":2,"progress":{progress}}}}}"#
        ));
    }
    world.input(r#"< {"jsonrpc":"2.0","id":2,"result":{}}"#);
    let told = world.input("get 4 session=1 last=3-0");
    assert!(told.iter().any(|line| line.contains(r#""id":2,"result":{}"#)), "{told:?}");
}
