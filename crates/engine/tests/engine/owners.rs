//! Which of several processes on one store serves a session, and whose clock says what is over.

use outlast_engine::limits::RELAYS;
use outlast_engine::reached::Bound;
use outlast_testkit::bounds::reaches;
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
        .. store 5: session
        !! info: session 01010101… is served by another process now; calls that it began here go on
        .. store 6: append
        << 3: finish
        stored 5
        stored 6
        # Who reads its calls here gets them here.
        < {"jsonrpc":"2.0","id":3,"result":{}}
        << 5: id: 4-1|data: {"jsonrpc":"2.0","id":9,"result":{}}||
        << 5: finish
        hang-up 4
        .. store 7: append
        stored 7
        < {"jsonrpc":"2.0","id":2,"result":{"content":[]}}
        .. store 8: append
        .. store 9: append
        stored 8
        stored 9
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
        < {"jsonrpc":"2.0","id":4,"result":{}}
        << 6: id: 5-1|data: {"jsonrpc":"2.0","id":10,"result":{}}||
        << 6: finish
        "#,
    );
}

/// Also an older client, which would not come back for an answer if its stream ended before it.
#[test]
fn a_client_keeps_its_connection_until_its_answer() {
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
        hang-up 4
        .. store 3: append
        stored 3
        get 6 session=1 last=1:3-0
        << 6: 200 events
        << 6: : outlast|retry: 1000||
        .. store 6: append, hint
        stored 6
        < {"jsonrpc":"2.0","id":2,"result":{"content":[]}}
        .. store 7: append, hint
        .. store 8: append, hint
        stored 7
        stored 8
        wait 100ms
        @15s100ms
        << 6: id: 3-1|data: {"jsonrpc":"2.0","id":7,"result":{"content":[]}}||
        << 6: finish
        "#,
    );
}

/// Its client answers elsewhere, where nobody knows the question; also if the former owner does not know that it is one.
#[test]
fn what_a_former_owner_has_asked_is_answered_elsewhere() {
    in_session(
        r#"
        get 3 session=1
        << 3: 200 events
        << 3: : outlast|retry: 1000||
        CALL
        < {"jsonrpc":"2.0","id":"q","method":"roots/list"}
        << 4: id: 3-1|data: {"jsonrpc":"2.0","id":"1","method":"roots/list"}||
        ELSEWHERE
        post 21 session=1 {"jsonrpc":"2.0","id":"1","result":{"roots":[]}}
        << 21: 202
        .. store 2: forward
        stored 2
        process 0
        wait 500ms
        @500ms
        .. store 3: collect
        stored 3
        >> 1: {"jsonrpc":"2.0","id":"q","result":{"roots":[]}}
        "#,
    );
}

/// A call with a progress token at process 0 whose client has lost its connection.
const LEFT: &str = r#"
        post 4 session=1 {"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"_meta":{"progressToken":"t"},"name":"x"}}
        << 4: 200 events
        << 4: …||
        >> 1: {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"_meta":{"progressToken":2},"name":"x"}}
        < {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":2,"progress":1}}
        << 4: id: 3-1|data: {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t","progress":1}}||
        hang-up 4
        .. store 3: append
        stored 3
"#;

#[test]
fn a_cancel_reaches_the_process_that_has_the_call() {
    in_session(
        r#"
        CALL
        ELSEWHERE
        post 21 session=1 {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7,"reason":"enough"}}
        << 21: 202
        .. store 2: forward
        stored 2
        process 0
        wait 500ms
        @500ms
        .. store 3: collect
        stored 3
        << 4: finish
        >> 1: {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2,"reason":"enough"}}
        "#,
    );
}

/// Whoever reads a stream elsewhere is told each progress, the answer, and nothing twice.
#[test]
fn progress_of_a_call_is_told_where_its_client_is() {
    let _reached = reaches(&[Bound::RELAY]);
    in_session(&format!(
        r#"
        {LEFT}
        ELSEWHERE
        get 21 session=1 last=1:3-1
        << 21: 200 events
        << 21: : outlast|retry: 1000||
        .. store 3: forward
        stored 3
        process 0
        # Nobody has said yet that anybody reads it: of its progress the first is stored, and the newest kept.
        < {{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":2,"progress":2}}}}
        .. store 4: append
        stored 4
        < {{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":2,"progress":3}}}}
        wait 500ms
        @500ms
        .. store 5: collect
        stored 5
        .. store 6: append, hint
        stored 6
        < {{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":2,"progress":4}}}}
        .. store 7: append, hint
        stored 7
        process 1
        wait 100ms
        @500ms
        << 21: id: 3-2|data: {{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":"t","progress":2}}}}||
        << 21: id: 3-3|data: {{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":"t","progress":4}}}}||
        process 0
        < {{"jsonrpc":"2.0","id":2,"result":{{"content":[]}}}}
        .. store 8: append, hint
        .. store 9: append, hint
        stored 8
        stored 9
        process 1
        wait 100ms
        @700ms
        << 21: id: 3-4|data: {{"jsonrpc":"2.0","id":7,"result":{{"content":[]}}}}||
        << 21: finish
        "#,
    ));
}

/// A client that lost its connection may be elsewhere before its process has noticed.
#[test]
fn a_stream_that_nobody_has_stored_yet_is_asked_for() {
    in_session(
        r#"
        CALL
        ELSEWHERE
        get 21 session=1 last=1:3-0
        .. store 3: forward
        stored 3
        process 0
        wait 500ms
        @500ms
        .. store 3: collect
        stored 3
        << 4: finish
        .. store 4: append, hint
        stored 4
        process 1
        wait 100ms
        @500ms
        << 21: 200 events
        << 21: : outlast|retry: 1000||
        .. store 5: forward
        "#,
    );
}

#[test]
fn a_stream_that_is_nowhere_is_refused_after_a_moment() {
    let _reached = reaches(&[Bound::RELAY_WAIT]);
    in_session(
        r#"
        ELSEWHERE
        get 21 session=1 last=1:3-0
        .. store 3: forward
        stored 3
        wait 2s
        @2s
        << 21: 400 {"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad Request: Last-Event-ID names no event…
        "#,
    );
}

/// Where the store says that there is something new nobody waits for the next look, and all hints together make one.
#[test]
fn a_hint_makes_the_next_look_earlier() {
    let _reached = reaches(&[Bound::RELAY_HINTED]);
    in_session(&format!(
        r#"
        {LEFT}
        ELSEWHERE
        get 21 session=1 last=1:3-1
        << 21: 200 events
        << 21: : outlast|retry: 1000||
        .. store 3: forward
        stored 3
        process 0
        wait 100ms
        hint mail
        .. store 4: collect
        stored 4
        .. store 5: append, hint
        stored 5
        process 1
        wait 1ms
        process 0
        < {{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":2,"progress":2}}}}
        .. store 6: append, hint
        stored 6
        process 1
        hint news
        hint news
        wait 10ms
        @110ms
        << 21: id: 3-2|data: {{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":"t","progress":2}}}}||
        "#,
    ));
}

/// The process that writes a stream ends, and has left word.
#[test]
fn whoever_reads_a_stream_of_a_process_that_ends_is_told_so() {
    in_session(&format!(
        r#"
        {LEFT}
        ELSEWHERE
        get 21 session=1 last=1:3-1
        << 21: 200 events
        << 21: : outlast|retry: 1000||
        .. store 3: forward
        stored 3
        dead life-0
        wait 100ms
        @100ms
        .. store 4: adopt
        << 21: id: 3-2|data: {{"jsonrpc":"2.0","id":7,"error":{{"code":-31002…
        << 21: finish
        "#,
    ));
}

/// One more than there may be is told what there is, and comes back.
#[test]
fn readers_of_other_processes_have_a_bound() {
    let _reached = reaches(&[Bound::RELAYS]);
    let reads = |number: usize| {
        format!(
            "get {} session=1 last=1:3-1\n<< {0}: 200 events\n<< {0}: : outlast|retry: 1000||\n\
             .. store {}: forward\n",
            100 + number,
            3 + 2 * number
        )
    };
    let all: String = (0..RELAYS).map(reads).collect();
    in_session(&format!(
        "{LEFT}\nELSEWHERE\n{all}
        get 21 session=1 last=1:3-1
        << 21: 200 events
        << 21: : outlast|retry: 1000||
        << 21: finish"
    ));
}

/// What is said in silence also reaches a client that is elsewhere; without a reader it is said to nobody.
#[test]
fn a_silent_call_is_kept_alive_where_its_client_is() {
    let _reached = reaches(&[Bound::RELAYED]);
    in_session(&format!(
        r#"
        {LEFT}
        ELSEWHERE
        get 21 session=1 last=1:3-1
        << 21: 200 events
        << 21: : outlast|retry: 1000||
        .. store 3: forward
        stored 3
        process 0
        wait 500ms
        @500ms
        .. store 4: collect
        stored 4
        .. store 5: append, hint
        stored 5
        wait 9500ms
        @10s
        .. store 6: append, hint
        stored 6
        # Nobody has said for 15 s that it is still read.
        wait 10s
        process 1
        wait 100ms
        @20s
        .. store 4: forward
        << 21: id: 3-2|data: {{"jsonrpc":"2.0","method":"notifications/progress"…
        "#,
    ));
}

/// A session that is ended where its client is takes its calls with it everywhere.
#[test]
fn a_session_that_is_ended_elsewhere_ends_its_calls() {
    in_session(
        r#"
        CALL
        ELSEWHERE
        delete 21 session=1
        .. store 2: forward
        .. store 3: end session
        >> 1: {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2,"reason":"the client hung up"}}
        << 20: finish
        .. 1: close-input
        << 21: 200
        stored 2
        stored 3
        process 0
        wait 500ms
        @500ms
        .. store 3: collect
        stored 3
        >> 1: {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2,"reason":"the client hung up"}}
        << 4: finish
        .. 1: close-input
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
        .. store 2: forward
        .. store 3: end session
        >> 1: {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2,"reason":"the client hung up"}}
        << 20: finish
        .. 1: close-input
        << 21: 200
        stored 2
        stored 3
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
