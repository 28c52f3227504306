//! Sessions and streams over HTTP that outlive the process.

use outlast_testkit::script::check;

/// A session whose handshake is over and which is stored; the next attempt is 2, the next stream 3.
const SESSION: &str = r#"
        post 1 {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        .. 1: start 0
        .. store 1: session
        << 1: 200 with a session events
        << 1: id: 2-0|retry: 1000|data: ||
        >> 1: {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        stored 1
        started
        < {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}
        << 1: id: 2-1|data: {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}||
        << 1: finish
        post 2 session=1 {"jsonrpc":"2.0","method":"notifications/initialized"}
        << 2: 202
        .. store 2: session
        >> 1: {"jsonrpc":"2.0","method":"notifications/initialized"}
        stored 2
"#;

#[track_caller]
fn in_session(scenario: &str) {
    check(&format!("set serve\nset durable\n{SESSION}\n{scenario}"));
}

/// The same call, as often as it is needed.
const CALL: &str = r#"
        post 3 session=1 {"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"x","_meta":{"progressToken":"p"}}}
        << 3: 200 events
        << 3: id: 3-0|retry: 1000|data: ||
        >> 1: {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x","_meta":{"progressToken":2}}}
"#;

#[test]
fn a_session_is_known_after_a_restart() {
    in_session(
        r#"
        again
        post 3 session=1 {"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"x"}}
        .. 1: start 0
        << 3: 200 events
        << 3: id: 2-0|retry: 1000|data: ||
        started
        >> 1: {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        < {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}
        >> 1: {"jsonrpc":"2.0","method":"notifications/initialized"}
        >> 1: {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"_meta":{"progressToken":2},"name":"x"}}
        < {"jsonrpc":"2.0","id":2,"result":{}}
        << 3: id: 2-1|data: {"jsonrpc":"2.0","id":7,"result":{}}||
        << 3: finish
        "#,
    );
}

#[test]
fn a_session_has_its_log_level_and_subscriptions_after_a_restart() {
    in_session(
        r#"
        post 3 session=1 {"jsonrpc":"2.0","id":7,"method":"logging/setLevel","params":{"level":"debug"}}
        << 3: 200 events
        << 3: id: 3-0|retry: 1000|data: ||
        .. store 3: session
        >> 1: {"jsonrpc":"2.0","id":2,"method":"logging/setLevel","params":{"level":"debug"}}
        stored 3
        post 4 session=1 {"jsonrpc":"2.0","id":8,"method":"resources/subscribe","params":{"uri":"a:1"}}
        << 4: 200 events
        << 4: id: 4-0|retry: 1000|data: ||
        .. store 4: session
        >> 1: {"jsonrpc":"2.0","id":3,"method":"resources/subscribe","params":{"uri":"a:1"}}
        stored 4
        # The same once more is nothing new.
        post 5 session=1 {"jsonrpc":"2.0","id":9,"method":"resources/subscribe","params":{"uri":"a:1"}}
        << 5: 200 events
        << 5: id: 5-0|retry: 1000|data: ||
        >> 1: {"jsonrpc":"2.0","id":4,"method":"resources/subscribe","params":{"uri":"a:1"}}
        again
        post 6 session=1 {"jsonrpc":"2.0","id":7,"method":"ping"}
        .. 1: start 0
        << 6: 200 events
        << 6: id: 2-0|retry: 1000|data: ||
        started
        >> 1: {"jsonrpc":"2.0","id":1,"method":"initialize",…
        < {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}
        >> 1: {"jsonrpc":"2.0","method":"notifications/initialized"}
        >> 1: {"jsonrpc":"2.0","id":2,"method":"logging/setLevel","params":{"level":"debug"}}
        >> 1: {"jsonrpc":"2.0","id":3,"method":"resources/subscribe","params":{"uri":"a:1"}}
        >> 1: {"jsonrpc":"2.0","id":4,"method":"ping"}
        "#,
    );
}

#[test]
fn a_session_is_known_to_its_own_principal_only() {
    in_session(
        r#"
        again
        post 3 session=1 principal=mallory {"jsonrpc":"2.0","id":7,"method":"ping"}
        << 3: 404 …Session not found…
        get 4 session=1 principal=mallory
        << 4: 404 …Session not found…
        delete 5 session=1 principal=mallory
        << 5: 404 …Session not found…
        post 6 session=9 {"jsonrpc":"2.0","id":7,"method":"ping"}
        << 6: 404 …Session not found…
        get 7 session=1
        << 7: 200 events
        << 7: : outlast|retry: 1000||
        "#,
    );
}

#[test]
fn a_session_that_was_ended_stays_so() {
    in_session(
        r#"
        delete 3 session=1
        .. store 3: end session
        .. 1: close-input
        << 3: 200
        post 4 session=1 {"jsonrpc":"2.0","id":7,"method":"ping"}
        << 4: 404 …Session not found…
        stored 3
        again
        post 4 session=1 {"jsonrpc":"2.0","id":7,"method":"ping"}
        << 4: 404 …Session not found…
        "#,
    );
}

#[test]
fn an_answer_that_nobody_read_is_there_after_a_restart() {
    in_session(&format!(
        r#"
        {CALL}
        < {{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":2,"progress":1}}}}
        << 3: id: 3-1|data: …
        hang-up 3
        .. store 3: append
        < {{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":2,"progress":2}}}}
        .. store 4: append
        < {{"jsonrpc":"2.0","id":2,"result":{{"ok":1.0}}}}
        .. store 5: append
        .. store 6: append
        stored 3
        stored 4
        stored 5
        stored 6
        again
        get 4 session=1 last=3-1
        << 4: 200 events
        << 4: : outlast|retry: 1000||
        << 4: id: 3-2|data: {{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":"p","progress":2}}}}||
        << 4: id: 3-3|data: {{"jsonrpc":"2.0","id":7,"result":{{"ok":1.0}}}}||
        << 4: finish
        get 5 session=1 last=3-2
        << 5: 200 events
        << 5: : outlast|retry: 1000||
        << 5: id: 3-3|data: {{"jsonrpc":"2.0","id":7,"result":{{"ok":1.0}}}}||
        << 5: finish
        "#
    ));
}

const NEVER_SENT: &str = "400 …Last-Event-ID names an event that was never sent…";

#[test]
fn an_event_that_was_never_sent_is_refused_before_and_after_a_restart() {
    in_session(&format!(
        r#"
        {CALL}
        < {{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":2,"progress":1}}}}
        << 3: id: 3-1|data: …
        get 4 session=1 last=3-2
        << 4: {NEVER_SENT}
        hang-up 3
        .. store 3: append
        stored 3
        < {{"jsonrpc":"2.0","id":2,"result":{{}}}}
        .. store 4: append
        .. store 5: append
        stored 4
        stored 5
        get 5 session=1 last=3-3
        << 5: {NEVER_SENT}
        again
        get 6 session=1 last=3-3
        << 6: {NEVER_SENT}
        get 7 session=1 last=3-18446744073709551615
        << 7: {NEVER_SENT}
        get 8 session=1 last=3-2
        << 8: 200 events
        << 8: : outlast|retry: 1000||
        << 8: finish
        "#
    ));
}

/// Nothing was stored of what had been read, but that it was.
#[test]
fn what_is_older_than_the_stored_events_is_refused_after_a_restart() {
    let many: String = (1..=1_002)
        .map(|number| {
            format!(
                "< {{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{{\"progressToken\":2,\"progress\":{number}}}}}\n<< 3: id: 3-{number}|data: …\n"
            )
        })
        .collect();
    in_session(&format!(
        r#"
        {CALL}
        {many}
        hang-up 3
        .. store 3: append
        stored 3
        get 4 session=1 last=3-1
        << 4: 400 …Last-Event-ID is older than what is kept…
        again
        get 5 session=1 last=3-1
        << 5: 400 …Last-Event-ID is older than what is kept…
        get 6 session=1 last=3-1001
        << 6: 200 events
        << 6: : outlast|retry: 1000||
        << 6: id: 3-1002|data: …
        .. store 4: adopt
        << 6: id: 3-1003|data: …"error"…
        << 6: finish
        "#
    ));
}

/// Another process on the same store is not asked to speak for one that lives.
#[test]
fn a_call_that_runs_elsewhere_is_not_said_to_be_lost() {
    in_session(&format!(
        r#"
        {CALL}
        wait 2s
        hang-up 3
        .. store 3: append
        stored 3
        # The other says that it lives for as long as the call runs.
        wait 1m
        beside
        get 4 session=1 last=3-0
        << 4: 200 events
        << 4: : outlast|retry: 1000||
        .. store 3: forward
        get 5 session=1 last=3-0
        << 5: 200 events
        << 5: : outlast|retry: 1000||
        .. store 5: forward
        # Now that one has ended.
        again
        dead life-0
        get 6 session=1 last=3-0
        << 6: 200 events
        << 6: : outlast|retry: 1000||
        .. store 3: adopt
        << 6: id: 3-1|data: …(outlast itself was ended during the call)…
        << 6: finish
        stored 3
        "#
    ));
}

#[test]
fn a_call_that_a_restart_interrupted_is_answered_with_what_happened() {
    in_session(&format!(
        r#"
        {CALL}
        wait 2s
        hang-up 3
        .. store 3: append
        stored 3
        again
        wait 3s
        get 4 session=1 last=3-0
        << 4: 200 events
        << 4: : outlast|retry: 1000||
        .. store 3: adopt
        << 4: id: 3-1|data: {{"jsonrpc":"2.0","id":7,"error":{{"code":-31002,"message":"server `srv` went away (outlast itself was ended during the call)…"elapsedMs":5000,…"retry":"unsafe"…
        << 4: finish
        # Who has seen that has seen all.
        get 5 session=1 last=3-1
        << 5: 200 events
        << 5: : outlast|retry: 1000||
        << 5: finish
        get 6 session=1 last=3-2
        << 6: {NEVER_SENT}
        "#
    ));
}

#[test]
fn a_stream_whose_client_was_gone_once_is_stored_to_its_end() {
    in_session(&format!(
        r#"
        {CALL}
        hang-up 3
        .. store 3: append
        stored 3
        get 4 session=1 last=3-0
        << 4: 200 events
        << 4: : outlast|retry: 1000||
        < {{"jsonrpc":"2.0","id":2,"result":{{}}}}
        .. store 4: append
        << 4: id: 3-1|data: {{"jsonrpc":"2.0","id":7,"result":{{}}}}||
        << 4: finish
        .. store 5: append
        stored 4
        stored 5
        again
        get 5 session=1 last=3-0
        << 5: 200 events
        << 5: : outlast|retry: 1000||
        << 5: id: 3-1|data: {{"jsonrpc":"2.0","id":7,"result":{{}}}}||
        << 5: finish
        "#
    ));
}

#[test]
fn the_standing_stream_goes_on_after_a_restart() {
    in_session(
        r#"
        get 3 session=1
        << 3: 200 events
        << 3: : outlast|retry: 1000||
        < {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}
        << 3: id: 1-1|data: …
        hang-up 3
        .. store 3: append
        < {"jsonrpc":"2.0","method":"notifications/prompts/list_changed"}
        .. store 4: append
        stored 3
        stored 4
        again
        get 4 session=1 last=1-1
        << 4: 200 events
        << 4: : outlast|retry: 1000||
        << 4: id: 1-2|data: {"jsonrpc":"2.0","method":"notifications/prompts/list_changed"}||
        get 5 session=1
        << 5: 409 {"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Conflict: this session has its standing stream open already"}}
        "#,
    );
}

#[test]
fn an_event_is_known_in_its_own_session_only() {
    in_session(&format!(
        r#"
        {CALL}
        hang-up 3
        .. store 3: append
        stored 3
        again
        post 4 {{"jsonrpc":"2.0","id":1,"method":"initialize","params":{{"protocolVersion":"2025-11-25","capabilities":{{}}}}}}
        .. 1: start 0
        .. store 1: session
        << 4: 200 with a session events
        << 4: id: 2-0|retry: 1000|data: ||
        >> 1: {{"jsonrpc":"2.0","id":1,"method":"initialize","params":{{"protocolVersion":"2025-11-25","capabilities":{{}}}}}}
        get 5 session=3 last=1:3-0
        << 5: 400 …Last-Event-ID names no event…
        get 6 session=3 last=nonsense
        << 6: 400 …Last-Event-ID names no event…
        "#
    ));
}
