//! Which of several processes on one store serves a session, and whose clock says what is over.

use outlast_testkit::script::check;

/// A session whose handshake is over and which is stored by process 0; the next attempt is 2, the next stream 3.
const SESSION: &str = r#"
        post 1 {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"VERSION","capabilities":{}}}
        .. 1: start 0
        .. store 1: session
        << 1: 200 with a session events
        << 1: …||
        >> 1: {"jsonrpc":"2.0","id":1,"method":"initialize"…
        stored 1
        started
        < {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"VERSION","capabilities":{"logging":{}}}}
        << 1: id: 2-1|data: {"jsonrpc":"2.0","id":1,"result"…
        << 1: finish
        post 2 session=1 {"jsonrpc":"2.0","method":"notifications/initialized"}
        << 2: 202
        .. store 2: session
        >> 1: {"jsonrpc":"2.0","method":"notifications/initialized"}
        stored 2
"#;

/// Another process gets a request for the session, and has a server of its own for it.
const ELSEWHERE: &str = r#"
        beside
        post 20 session=1 {"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"y"}}
        .. 1: start 0
        << 20: 200 events
        << 20: …||
        started
        >> 1: {"jsonrpc":"2.0","id":1,"method":"initialize"…
        < {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"VERSION","capabilities":{"logging":{}}}}
        >> 1: {"jsonrpc":"2.0","method":"notifications/initialized"}
        >> 1: {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"_meta":{"progressToken":2},"name":"y"}}
"#;

#[track_caller]
fn in_session_of(version: &str, scenario: &str) {
    let scenario = format!("set serve\nset durable\n{SESSION}\n{scenario}").replace("ELSEWHERE", ELSEWHERE);
    let scenario = scenario.replace("CALL", CALL);
    check(&scenario.replace("VERSION", version));
}

#[track_caller]
fn in_session(scenario: &str) {
    in_session_of("2025-11-25", scenario);
}

/// A call at process 0, on a stream that its client reads.
const CALL: &str = r#"
        post 4 session=1 {"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"x"}}
        << 4: 200 events
        << 4: …||
        >> 1: {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"_meta":{"progressToken":2},"name":"x"}}
"#;

/// What the former owner writes is refused, and by that it knows. Its call goes on, and its answer is found from
/// everywhere.
#[test]
fn a_session_follows_its_client_to_another_process_that_lives() {
    in_session(
        r#"
        get 3 session=1
        << 3: 200 events
        << 3: : outlast|retry: 1000||
        CALL
        ELSEWHERE
        process 0
        post 5 session=1 {"jsonrpc":"2.0","id":9,"method":"logging/setLevel","params":{"level":"debug"}}
        << 5: 200 events
        << 5: id: 4-0|retry: 1000|data: ||
        .. store 3: session
        >> 1: {"jsonrpc":"2.0","id":3,"method":"logging/setLevel","params":{"level":"debug"}}
        stored 3
        !! info: session 01010101… is served by another process now; calls that it began here go on
        .. store 4: append
        << 3: finish
        .. store 5: append
        << 4: retry: 1000||
        << 4: finish
        .. store 6: append
        << 5: retry: 1000||
        << 5: finish
        stored 4
        stored 5
        stored 6
        process 1
        get 21 session=1 last=1:3-0
        << 21: 200 events
        << 21: : outlast|retry: 1000||
        << 21: finish
        process 0
        < {"jsonrpc":"2.0","id":2,"result":{"content":[]}}
        .. store 7: append
        .. store 8: append
        stored 7
        stored 8
        process 1
        get 22 session=1 last=1:3-0
        << 22: 200 events
        << 22: : outlast|retry: 1000||
        << 22: id: 3-1|data: {"jsonrpc":"2.0","id":7,"result":{"content":[]}}||
        << 22: finish
        "#,
    );
}

/// A process that is used asks now and then, and does not let a call wait for that.
#[test]
fn a_former_owner_learns_it_although_it_writes_nothing() {
    in_session(
        r#"
        CALL
        ELSEWHERE
        process 0
        post 5 session=1 {"jsonrpc":"2.0","id":9,"method":"ping"}
        << 5: 200 events
        << 5: id: 4-0|retry: 1000|data: ||
        >> 1: {"jsonrpc":"2.0","id":3,"method":"ping"}
        < {"jsonrpc":"2.0","id":3,"result":{}}
        << 5: id: 4-1|data: {"jsonrpc":"2.0","id":9,"result":{}}||
        << 5: finish
        wait 15s
        post 6 session=1 {"jsonrpc":"2.0","id":10,"method":"ping"}
        << 6: 200 events
        << 6: id: 5-0|retry: 1000|data: ||
        >> 1: {"jsonrpc":"2.0","id":4,"method":"ping"}
        !! info: session 01010101… is served by another process now; calls that it began here go on
        .. store 3: append
        << 4: retry: 1000||
        << 4: finish
        .. store 4: append
        << 6: retry: 1000||
        << 6: finish
        "#,
    );
}

/// An older client would not come back for an answer if its stream ended before it.
#[test]
fn an_older_client_keeps_its_connection_until_its_answer() {
    in_session_of(
        "2025-06-18",
        r#"
        CALL
        ELSEWHERE
        process 0
        wait 15s
        post 5 session=1 {"jsonrpc":"2.0","method":"notifications/roots/list_changed"}
        << 5: 202
        >> 1: {"jsonrpc":"2.0","method":"notifications/roots/list_changed"}
        !! info: session 01010101… is served by another process now; calls that it began here go on
        < {"jsonrpc":"2.0","id":2,"result":{"content":[]}}
        << 4: id: 3-1|data: {"jsonrpc":"2.0","id":7,"result":{"content":[]}}||
        << 4: finish
        # Nothing is left of it then.
        wait 5m
        @5m15s
        .. 1: close-input
        "#,
    );
}

/// What the former owner still runs is not told as lost by the same process when it has the session again.
#[test]
fn a_session_comes_back_to_where_its_call_runs() {
    in_session(
        r#"
        CALL
        ELSEWHERE
        process 0
        wait 15s
        post 5 session=1 {"jsonrpc":"2.0","method":"notifications/roots/list_changed"}
        << 5: 202
        >> 1: {"jsonrpc":"2.0","method":"notifications/roots/list_changed"}
        !! info: session 01010101… is served by another process now; calls that it began here go on
        .. store 3: append
        << 4: retry: 1000||
        << 4: finish
        stored 3
        get 6 session=1 last=1:3-0
        << 6: 200 events
        << 6: : outlast|retry: 1000||
        << 6: finish
        < {"jsonrpc":"2.0","id":2,"result":{"content":[]}}
        .. store 6: append
        .. store 7: append
        stored 6
        stored 7
        get 7 session=1 last=1:3-0
        << 7: 200 events
        << 7: : outlast|retry: 1000||
        << 7: id: 3-1|data: {"jsonrpc":"2.0","id":7,"result":{"content":[]}}||
        << 7: finish
        "#,
    );
}

/// Its client would answer elsewhere, where nobody knows the question.
#[test]
fn what_a_former_owner_has_asked_is_refused() {
    in_session(
        r#"
        get 3 session=1
        << 3: 200 events
        << 3: : outlast|retry: 1000||
        CALL
        < {"jsonrpc":"2.0","id":"q","method":"roots/list"}
        << 4: id: 3-1|data: {"jsonrpc":"2.0","id":"1","method":"roots/list"}||
        ELSEWHERE
        process 0
        wait 15s
        post 5 session=1 {"jsonrpc":"2.0","method":"notifications/roots/list_changed"}
        << 5: 202
        >> 1: {"jsonrpc":"2.0","method":"notifications/roots/list_changed"}
        !! info: session 01010101… is served by another process now; calls that it began here go on
        >> 1: {"jsonrpc":"2.0","id":"q","error":{"code":-32603,"message":"outlast: the client is gone"}}
        .. store 3: append
        << 3: finish
        .. store 4: append
        << 4: retry: 1000||
        << 4: finish
        "#,
    );
}

/// A client may end its session wherever it is.
#[test]
fn a_session_that_is_ended_elsewhere_is_gone_for_its_former_owner() {
    in_session(
        r#"
        ELSEWHERE
        process 0
        wait 15s
        post 5 session=1 {"jsonrpc":"2.0","method":"notifications/roots/list_changed"}
        << 5: 202
        >> 1: {"jsonrpc":"2.0","method":"notifications/roots/list_changed"}
        !! info: session 01010101… is served by another process now; calls that it began here go on
        .. 1: close-input
        process 1
        delete 21 session=1
        .. store 2: end session
        >> 1: {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2,"reason":"the client hung up"}}
        << 20: finish
        .. 1: close-input
        << 21: 200
        stored 2
        process 0
        post 6 session=1 {"jsonrpc":"2.0","id":9,"method":"ping"}
        << 6: 404 {"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found; begin with initialize"}}
        "#,
    );
}

/// A process whose clock is an hour ahead takes nothing for over that is not over in the store, and keeps nothing longer.
#[test]
fn a_session_is_forgotten_by_the_clock_of_the_store() {
    for (fast, wait, known) in [("2h", "23h59m", true), ("1s", "23h59m", true), ("2h", "24h", false)] {
        let after = if known {
            ".. 1: start 0\n<< 20: 202"
        } else {
            r#"<< 20: 404 {"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found; begin with initialize"}}"#
        };
        in_session(&format!(
            r#"
            beside
            fast {fast}
            wait {wait}
            post 20 session=1 {{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}}
            {after}
            "#,
        ));
    }
}

/// A task of a process whose clock is two hours ahead of the store's: what its client is told is the store's time, from
/// the first word on, and it is found for as long as it was told, by a process whose clock is right.
#[test]
fn a_task_is_kept_by_the_clock_of_the_store() {
    check(
        r#"
        set tasks
        fast 2h
        > {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        >> {"jsonrpc":"2.0","id":1,"method":"initialize"…
        < {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}}
        << {"jsonrpc":"2.0","id":1,"result"…
        > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x","task":{}}}
        .. store 1: create
        stored 1
        << …"createdAt":"1970-01-01T00:00:00.000Z","lastUpdatedAt":"1970-01-01T00:00:00.000Z"…
        >> {"jsonrpc":"2.0","id":2,"method":"tools/call"…
        wait 1m
        < {"jsonrpc":"2.0","id":2,"result":{"content":[]}}
        .. store 2: completed
        stored 2
        << …notifications/tasks/status…"createdAt":"1970-01-01T00:00:00.000Z","lastUpdatedAt":"1970-01-01T00:01:00.000Z"…"ttl":90000000}}
        wait 24h58m
        > {"jsonrpc":"2.0","id":3,"method":"tasks/result","params":{"taskId":"T1"}}
        << {"jsonrpc":"2.0","id":3,"result":{…"content":[]}}
        wait 1m
        > {"jsonrpc":"2.0","id":4,"method":"tasks/result","params":{"taskId":"T1"}}
        << {"jsonrpc":"2.0","id":4,"error":{"code":-32602,"message":"Invalid params: no such task"}}
        "#
        .replace("T1", &"01".repeat(32))
        .as_str(),
    );
}
