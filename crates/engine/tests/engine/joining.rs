//! Calls that carry an idempotency key: joined, taken over, kept, and refused.

use outlast_testkit::script::{World, check};

/// A call of `pay` under the key `k`, sent as attempt 1.
const FIRST: &str = r#"
        > {"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"pay","arguments":{"sum":1,"to":"ann"},"_meta":{"dev.outlast/idempotencyKey":"k","progressToken":"p7"}}}
        >> {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"pay","arguments":{"sum":1,"to":"ann"},"_meta":{"dev.outlast/idempotencyKey":"k","progressToken":1}}}
"#;

#[track_caller]
fn first(settings: &str, scenario: &str) {
    check(&format!("{settings}\n{FIRST}\n{scenario}"));
}

#[test]
fn without_a_key_two_equal_calls_are_two() {
    check(
        r#"
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"pay"}}
        >> {"jsonrpc":"2.0","id":1,…
        > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"pay"}}
        >> {"jsonrpc":"2.0","id":2,…
        "#,
    );
}

/// Only tools are called twice by mistake; and a key inside the arguments is the tool's own.
#[test]
fn a_key_elsewhere_is_no_key() {
    check(
        r#"
        > {"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"x","idempotencyKey":"k"}}
        >> {"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"_meta":{"progressToken":1},"name":"x","idempotencyKey":"k"}}
        > {"jsonrpc":"2.0","id":2,"method":"prompts/get","params":{"name":"x","idempotencyKey":"k"}}
        >> {"jsonrpc":"2.0","id":2,"method":"prompts/get","params":{"_meta":{"progressToken":2},"name":"x","idempotencyKey":"k"}}
        > {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"x","arguments":{"idempotencyKey":"k"}}}
        >> {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"_meta":{"progressToken":3},"name":"x","arguments":{"idempotencyKey":"k"}}}
        > {"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"x","arguments":{"idempotencyKey":"k"}}}
        >> {"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"_meta":{"progressToken":4},"name":"x","arguments":{"idempotencyKey":"k"}}}
        "#,
    );
}

#[test]
fn the_place_of_keys_is_a_setting() {
    check(
        r#"
        set idempotency-key _meta.com.example/once
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","_meta":{"com.example/once":"k"}}}
        >> {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","_meta":{"progressToken":1,"com.example/once":"k"}}}
        > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x","_meta":{"com.example/once":"k"}}}
        !! info: a call of `x` at `srv` joined…
        > {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"x","idempotencyKey":"j"}}
        >> {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"_meta":{"progressToken":2},"name":"x","idempotencyKey":"j"}}
        > {"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"x","idempotencyKey":"j"}}
        >> {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"_meta":{"progressToken":3},"name":"x","idempotencyKey":"j"}}
        "#,
    );
}

#[test]
fn the_same_key_with_other_arguments_is_refused() {
    first(
        "",
        r#"
        > {"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"pay","arguments":{"sum":2,"to":"ann"},"idempotencyKey":"k"}}
        !! warn: key-conflict…
        << {"jsonrpc":"2.0","id":8,"error":{"code":-31012,"message":"`pay` was not sent: its idempotency key belongs to another call. Give every call an idempotency key of its own.","data":{"outlast":{"kind":"key-conflict",…"attempts":0,"serverState":"never-reached","retry":"pointless",…
        > {"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"refund","arguments":{"sum":1,"to":"ann"},"idempotencyKey":"k"}}
        !! warn: key-conflict…
        << {"jsonrpc":"2.0","id":9,"error":{"code":-31012,…
        < {"jsonrpc":"2.0","id":1,"result":{}}
        << {"jsonrpc":"2.0","id":7,"result":{}}
        "#,
    );
}

/// Big integers that a float cannot tell apart are different.
#[test]
fn big_integers_are_compared_exactly() {
    check(
        r#"
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{"n":18446744073709551617},"idempotencyKey":"k"}}
        >> {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":{"progressToken":1},"name":"x","arguments":{"n":18446744073709551617},"idempotencyKey":"k"}}
        > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x","arguments":{"n":18446744073709551618},"idempotencyKey":"k"}}
        !! warn: key-conflict…
        << {"jsonrpc":"2.0","id":2,"error":{"code":-31012,…
        "#,
    );
}

#[test]
fn a_cancel_by_one_of_two_does_not_cancel_for_the_other() {
    let second = r#"
        > {"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"pay","arguments":{"sum":1,"to":"ann"},"_meta":{"dev.outlast/idempotencyKey":"k","progressToken":"p8"}}}
        !! info: …joined…
    "#;
    // The second gives up.
    first(
        "",
        &format!(
            r#"{second}
        > {{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":8}}}}
        < {{"jsonrpc":"2.0","id":1,"result":{{}}}}
        << {{"jsonrpc":"2.0","id":7,"result":{{}}}}
        "#
        ),
    );
    // The first gives up, and the second goes on with its attempt.
    first(
        "",
        &format!(
            r#"{second}
        > {{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":7}}}}
        < {{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":1,"progress":5}}}}
        << {{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":"p8","progress":5}}}}
        < {{"jsonrpc":"2.0","id":1,"result":{{}}}}
        << {{"jsonrpc":"2.0","id":8,"result":{{}}}}
        "#
        ),
    );
    // Both do.
    first(
        "",
        &format!(
            r#"{second}
        > {{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":7,"reason":"a"}}}}
        > {{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":8,"reason":"b"}}}}
        >> {{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":1,"reason":"b"}}}}
        < {{"jsonrpc":"2.0","id":1,"result":{{}}}}
        !! info: `srv` answered attempt 1, which has ended; dropped
        "#
        ),
    );
}

/// The attempt went out under an integer; the client who takes it over uses strings.
#[test]
fn an_attempt_that_was_taken_over_is_cancelled_under_its_own_id() {
    first(
        "",
        r#"
        > {"jsonrpc":"2.0","id":"b","method":"tools/call","params":{"name":"pay","arguments":{"sum":1,"to":"ann"},"idempotencyKey":"k"}}
        !! info: …joined…
        > {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}
        > {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"b"}}
        >> {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}
        "#,
    );
}

#[test]
fn an_error_goes_to_both_and_is_not_replayed() {
    first(
        "",
        r#"
        > {"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"pay","arguments":{"sum":1,"to":"ann"},"idempotencyKey":"k"}}
        !! info: …joined…
        < {"jsonrpc":"2.0","id":1,"error":{"code":-5,"message":"no"}}
        << {"jsonrpc":"2.0","id":7,"error":{"code":-5,"message":"no"}}
        << {"jsonrpc":"2.0","id":8,"error":{"code":-5,"message":"no"}}
        > {"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"pay","arguments":{"sum":1,"to":"ann"},"idempotencyKey":"k"}}
        >> {"jsonrpc":"2.0","id":2,…
        "#,
    );
}

/// The limit of the first is the limit of the call.
#[test]
fn a_limit_fails_all_that_are_joined() {
    first(
        "set timeout 10s",
        r#"
        wait 4s
        > {"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"pay","arguments":{"sum":1,"to":"ann"},"_meta":{"dev.outlast/idempotencyKey":"k","io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}
        !! info: …joined…
        wait 6s
        @10s
        << {"jsonrpc":"2.0","id":8,"error":{"code":-31001,…
        !! warn: timeout server=srv method=tools/call tool=pay limit=10s elapsed=10s setting=--timeout state=the server was told to cancel it
        << {"jsonrpc":"2.0","id":7,"error":{"code":-32001,…
        >> {"jsonrpc":"2.0","method":"notifications/cancelled",…
        .. sample
        "#,
    );
}

/// A shorter limit of one that joined ends only its own wait.
#[test]
fn a_limit_of_one_that_joined_is_its_own() {
    first(
        "set timeout 10s",
        r#"
        > {"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"pay","arguments":{"sum":1,"to":"ann"},"_meta":{"dev.outlast/idempotencyKey":"k","dev.outlast/timeoutMs":2000}}}
        !! info: …joined…
        wait 2s
        @2s
        !! warn: timeout server=srv method=tools/call tool=pay limit=2s elapsed=2s setting=_meta["dev.outlast/timeoutMs"] state=the server goes on with it
        << {"jsonrpc":"2.0","id":8,"error":{"code":-32001,…the server goes on with it…"serverState":"running","retry":"unsafe"…
        < {"jsonrpc":"2.0","id":1,"result":{}}
        << {"jsonrpc":"2.0","id":7,"result":{}}
        "#,
    );
}

#[test]
fn each_has_a_keep_alive_of_its_own() {
    first(
        "",
        r#"
        wait 4s
        > {"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"pay","arguments":{"sum":1,"to":"ann"},"_meta":{"dev.outlast/idempotencyKey":"k","progressToken":8}}}
        !! info: …joined…
        wait 10s
        @10s
        << …"progressToken":"p7","progress":0.0001…
        @14s
        << …"progressToken":8,"progress":0.0001…
        < {"jsonrpc":"2.0","id":1,"result":{}}
        << {"jsonrpc":"2.0","id":7,"result":{}}
        << {"jsonrpc":"2.0","id":8,"result":{}}
        "#,
    );
}

/// A server that crashes takes both along; one that comes back serves both.
#[test]
fn a_second_call_joins_one_that_waits_for_a_restart() {
    check(
        r#"
        set tool pay=repeatable:true
        > {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{}}}
        >> {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{}}}
        < {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{}}}
        << {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{}}}
        > {"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"pay","_meta":{"progressToken":"p7"},"idempotencyKey":"k"}}
        >> {"jsonrpc":"2.0","id":2,…
        exited 1
        wait 200ms
        @200ms
        !! warn: `srv` ended: exit status 1
        !! info: `tools/call` is sent to `srv` again (attempt 2): its server went away
        !! warn: restarting `srv` in 470ms: it ended
        > {"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"pay","_meta":{"progressToken":"p8"},"idempotencyKey":"k"}}
        !! info: …joined…
        > {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}
        wait 1s
        @…
        .. start 1
        started
        >> {"jsonrpc":"2.0","id":3,"method":"initialize",…
        < {"jsonrpc":"2.0","id":3,"result":{"protocolVersion":"2025-06-18","capabilities":{}}}
        !! warn: `srv` is back…
        >> {"jsonrpc":"2.0","id":4,"method":"tools/call",…
        < {"jsonrpc":"2.0","id":4,"result":{}}
        << {"jsonrpc":"2.0","id":8,"result":{}}
        "#,
    );
}

#[test]
fn members_of_an_array_join_too() {
    check(
        r#"
        > [{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","idempotencyKey":"k"}},{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x","idempotencyKey":"k"}},{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"y","idempotencyKey":"k"}}]
        >> {"jsonrpc":"2.0","id":1,…
        !! info: …joined…
        !! warn: key-conflict…
        < {"jsonrpc":"2.0","id":1,"result":{"n":1.0}}
        << [{"jsonrpc":"2.0","id":3,"error":{"code":-31012,…},{"jsonrpc":"2.0","id":1,"result":{"n":1.0}},{"jsonrpc":"2.0","id":2,"result":{"n":1.0}}]
        "#,
    );
}

/// An answer to what the server asked carries the same key, and is another round.
#[test]
fn what_continues_a_call_is_not_the_same_call() {
    first(
        "",
        r#"
        > {"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"pay","arguments":{"sum":1,"to":"ann"},"requestState":"s","inputResponses":{},"idempotencyKey":"k"}}
        >> {"jsonrpc":"2.0","id":2,…
        "#,
    );
}

/// The second takes the place of the first, and goes with it.
#[test]
fn a_session_that_ends_takes_both_along() {
    let call = |exchange: u32, id: u32| {
        format!(
            r#"post {exchange} session=1 {{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"x","idempotencyKey":"k"}}}}"#
        )
    };
    let (first, second) = (call(2, 2), call(3, 3));
    check(&format!(
        r#"
        set serve
        post 1 {{"jsonrpc":"2.0","id":1,"method":"initialize","params":{{"protocolVersion":"2025-11-25","capabilities":{{}}}}}}
        .. 1: start 0
        << 1: 200 with a session events
        << 1: id: 2-0|retry: 1000|data: ||
        >> 1: {{"jsonrpc":"2.0","id":1,"method":"initialize","params":{{"protocolVersion":"2025-11-25","capabilities":{{}}}}}}
        started
        < {{"jsonrpc":"2.0","id":1,"result":{{"protocolVersion":"2025-11-25","capabilities":{{}}}}}}
        << 1: id: 2-1|data: {{"jsonrpc":"2.0","id":1,"result":{{"protocolVersion":"2025-11-25","capabilities":{{}}}}}}||
        << 1: finish
        {first}
        << 2: 200 events
        << 2: id: 3-0|retry: 1000|data: ||
        >> 1: {{"jsonrpc":"2.0","id":2,…
        {second}
        << 3: 200 events
        << 3: id: 4-0|retry: 1000|data: ||
        !! info: …joined…
        delete 4 session=1
        << 2: finish
        >> 1: {{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":2,…
        << 3: finish
        .. 1: close-input
        << 4: 200
        "#
    ));
}

/// Two sessions of one principal that have a server each: that of the first stays for the second.
#[test]
fn a_server_stays_for_whoever_joined_at_it() {
    let handshake = |exchange: u32, server: u32| {
        format!(
            r#"
        post {exchange} principal=ann {{"jsonrpc":"2.0","id":1,"method":"initialize","params":{{"protocolVersion":"2025-11-25","capabilities":{{}}}}}}
        .. {server}: start 0
        << …
        << …
        >> {server}: …
        started
        < {{"jsonrpc":"2.0","id":{server},"result":{{"protocolVersion":"2025-11-25","capabilities":{{}}}}}}
        << …
        << {exchange}: finish
        "#
        )
    };
    let call = |exchange: u32, session: u32, id: u32| {
        format!(
            r#"post {exchange} session={session} principal=ann {{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"x","idempotencyKey":"k"}}}}"#
        )
    };
    let (one, two, first, second) = (handshake(1, 1), handshake(2, 2), call(3, 1, 7), call(4, 2, 8));
    check(&format!(
        r#"
        set serve
        set share session
        {one}
        {two}
        {first}
        << …
        << 3: id: 5-0|retry: 1000|data: ||
        >> 1: {{"jsonrpc":"2.0","id":3,…
        {second}
        << 4: 200 events
        << 4: id: 6-0|retry: 1000|data: ||
        !! info: …joined…
        delete 5 session=1 principal=ann
        << 3: finish
        << 5: 200
        server-1 < {{"jsonrpc":"2.0","id":3,"result":{{}}}}
        .. 1: close-input
        << 4: id: …{{"jsonrpc":"2.0","id":8,"result":{{}}}}||
        << 4: finish
        "#
    ));
}

#[test]
fn only_so_many_join() {
    let calls = |ids: std::ops::Range<usize>, then: &str| -> String {
        let call = |id| {
            format!(
                r#"> {{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"x","idempotencyKey":"k"}}}}"#
            )
        };
        ids.map(|id| format!("{}\n{then}\n", call(id))).collect()
    };
    let first = calls(0..1, ">> …");
    let joined = calls(1..1_001, "!! info: …joined…");
    let refused = calls(1_001..1_002, "!! warn: overloaded…\n<< …\"id\":1001,\"error\":{\"code\":-31004,…");
    check(&format!("{first}{joined}{refused}"));
}

// Modern clients over HTTP: the second exchange of one principal is another client.

const MODERN: &str = r#"method=tools/call name=pay version=2026-07-28"#;

fn modern_call(exchange: u32, id: u32, who: &str, more: &str) -> String {
    format!(
        r#"post {exchange} {MODERN} principal={who} {{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"pay","_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{{}}{more}}}}}}}"#
    )
}

const KEY: &str = r#","dev.outlast/idempotencyKey":"k""#;

/// A modern service with one call of Ann's that was sent.
#[track_caller]
fn modern(settings: &str, scenario: &str) {
    let begin = modern_call(1, 7, "ann", KEY);
    let scenario = scenario
        .replace("ANN-2", &modern_call(2, 8, "ann", KEY))
        .replace("ANN-3", &modern_call(3, 9, "ann", KEY))
        .replace("BOB-2", &modern_call(2, 8, "bob", KEY))
        .replace("PLAIN-2", &modern_call(2, 8, "ann", ""));
    check(&format!(
        "set serve\n{settings}\n{begin}\n.. 1: start 0\n>> 1: {{\"jsonrpc\":\"2.0\",\"id\":1,…\nstarted\n{scenario}"
    ));
}

#[test]
fn a_modern_client_that_hung_up_is_waited_for_and_gets_its_answer() {
    modern(
        "",
        r#"
        hang-up 1
        wait 9m
        ANN-2
        !! info: …joined…
        wait 1s
        @9m500ms
        << 2: 200 events
        << 2: : outlast||
        < {"jsonrpc":"2.0","id":1,"result":{"n":1.0}}
        << 2: data: {"jsonrpc":"2.0","id":8,"result":{"n":1.0}}||
        << 2: finish
        "#,
    );
}

#[test]
fn a_modern_client_that_does_not_come_back_has_cancelled() {
    modern(
        "",
        r#"
        hang-up 1
        wait 10m
        @10m
        >> 1: {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"reason":"the client gave up and did not come back"}}
        < {"jsonrpc":"2.0","id":1,"result":{}}
        !! info: `srv` answered attempt 1, which has ended; dropped
        ANN-2
        >> 1: {"jsonrpc":"2.0","id":2,…
        "#,
    );
}

#[test]
fn without_a_key_hanging_up_cancels_at_once() {
    modern(
        "",
        r#"
        PLAIN-2
        >> 1: {"jsonrpc":"2.0","id":2,…
        hang-up 2
        >> 1: {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2,…
        "#,
    );
}

#[test]
fn an_answer_that_nobody_got_is_given_once() {
    modern(
        "",
        r#"
        hang-up 1
        < {"jsonrpc":"2.0","id":1,"result":{"n":1.0}}
        wait 4m
        ANN-2
        !! info: …joined…
        << 2: 200 {"jsonrpc":"2.0","id":8,"result":{"n":1.0}}
        ANN-3
        >> 1: {"jsonrpc":"2.0","id":2,…
        "#,
    );
}

#[test]
fn an_answer_that_nobody_fetches_is_forgotten() {
    modern(
        "",
        r#"
        hang-up 1
        < {"jsonrpc":"2.0","id":1,"result":{"n":1.0}}
        wait 10m
        @…
        .. 1: close-input
        @…
        .. 1: terminate
        @…
        .. 1: kill
        ANN-2
        .. 2: start 0
        >> 2: {"jsonrpc":"2.0","id":2,…
        "#,
    );
}

/// It is the same call, and the client has not heard of its error.
#[test]
fn an_error_that_nobody_got_is_given_too() {
    modern(
        "",
        r#"
        hang-up 1
        < {"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no"}}
        ANN-2
        !! info: …joined…
        << 2: 404 {"jsonrpc":"2.0","id":8,"error":{"code":-32601,"message":"no"}}
        "#,
    );
}

#[test]
fn a_key_says_nothing_to_another_principal() {
    modern(
        "set share all",
        r#"
        BOB-2
        >> 1: {"jsonrpc":"2.0","id":2,…
        "#,
    );
}

#[test]
fn one_of_two_modern_clients_hangs_up() {
    modern(
        "",
        r#"
        ANN-2
        !! info: …joined…
        hang-up 1
        wait 20m
        @500ms
        << 2: 200 events
        << 2: : outlast||
        < {"jsonrpc":"2.0","id":1,"result":{}}
        << 2: data: {"jsonrpc":"2.0","id":8,"result":{}}||
        << 2: finish
        "#,
    );
}

/// It hangs up, asks again, and hangs up again: each time it is waited for.
#[test]
fn a_client_may_hang_up_again() {
    modern(
        "",
        r#"
        hang-up 1
        wait 6m
        ANN-2
        !! info: …joined…
        hang-up 2
        wait 6m
        ANN-3
        !! info: …joined…
        < {"jsonrpc":"2.0","id":1,"result":{}}
        << 3: 200 {"jsonrpc":"2.0","id":9,"result":{}}
        "#,
    );
}

#[test]
fn a_call_whose_client_hung_up_still_has_its_limits() {
    modern(
        "set timeout 1m",
        r#"
        hang-up 1
        wait 1m
        @1m
        !! warn: timeout server=srv method=tools/call tool=pay limit=1m elapsed=1m setting=--timeout state=the server was told to cancel it
        >> 1: …notifications/cancelled…
        .. sample
        "#,
    );
}

// Tickets.

const T1: &str = "0101010101010101010101010101010101010101010101010101010101010101";
const T8: &str = "08080808080808080808080808080808";
const T9: &str = "09090909090909090909090909090909";

/// A stdio client of 2025-11-25 whose handshake is over; the next attempt is 2.
const LEGACY: &str = r#"
        > {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        >> {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        < {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}}
        << {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tasks":{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}},"tools":{}}}}
        > {"jsonrpc":"2.0","method":"notifications/initialized"}
        >> {"jsonrpc":"2.0","method":"notifications/initialized"}
"#;

fn task_call(id: u32) -> String {
    format!(
        r#"> {{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"x","task":{{}},"idempotencyKey":"k"}}}}"#
    )
}

fn plain_call(id: u32) -> String {
    format!(
        r#"> {{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"x","idempotencyKey":"k"}}}}"#
    )
}

#[track_caller]
fn legacy(scenario: &str) {
    let mut scenario =
        scenario.replace("T1", T1).replace("T8", T8).replace("T9", T9).replace("HANDSHAKE", LEGACY);
    for id in 2..10 {
        scenario = scenario.replace(&format!("TASK-{id}"), &task_call(id));
        scenario = scenario.replace(&format!("PLAIN-{id}"), &plain_call(id));
    }
    check(&format!("set tasks\n{LEGACY}\n{scenario}"));
}

/// Submission 1 is the question for the key.
#[test]
fn a_second_task_with_the_same_key_is_the_first() {
    legacy(
        r#"
        TASK-2
        .. store 2: create
        # Not stored yet, so nothing is known of it.
        TASK-3
        stored 2
        << {"jsonrpc":"2.0","id":2,"result":{"task":{…"taskId":"T1"…
        !! info: …joined…
        << {"jsonrpc":"2.0","id":3,"result":{"task":{…"taskId":"T1"…
        >> {"jsonrpc":"2.0","id":2,"method":"tools/call",…
        TASK-4
        !! info: …joined…
        << {"jsonrpc":"2.0","id":4,"result":{"task":{…"taskId":"T1"…
        # A plain call joins it too, and gets its answer once that is stored.
        PLAIN-5
        !! info: …joined…
        < {"jsonrpc":"2.0","id":2,"result":{"n":1.0}}
        .. store 3: completed
        stored 3
        << …notifications/tasks/status…
        << {"jsonrpc":"2.0","id":5,"result":{"n":1.0}}
        # It has ended and is kept.
        PLAIN-6
        !! info: …joined…
        << {"jsonrpc":"2.0","id":6,"result":{"n":1.0}}
        TASK-7
        !! info: …joined…
        << {"jsonrpc":"2.0","id":7,"result":{"task":{…"status":"completed","taskId":"T1"…
        > {"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"y","idempotencyKey":"k"}}
        !! warn: key-conflict…
        << {"jsonrpc":"2.0","id":8,"error":{"code":-31012,…
        wait 25h
        PLAIN-9
        >> {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"_meta":{"progressToken":3},"name":"x","idempotencyKey":"k"}}
        "#,
    );
}

#[test]
fn a_kept_answer_is_joined_after_a_restart() {
    legacy(
        r#"
        TASK-2
        .. store 2: create
        stored 2
        << {"jsonrpc":"2.0","id":2,"result":{"task":{"createdAt":"1970-01-01T00:00:00.000Z","lastUpdatedAt":"1970-01-01T00:00:00.000Z","pollInterval":500,"status":"working",…
        >> {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"_meta":{"progressToken":2},"name":"x","idempotencyKey":"k"}}
        < {"jsonrpc":"2.0","id":2,"result":{"n":1.0}}
        .. store 3: completed
        stored 3
        << {"jsonrpc":"2.0","method":"notifications/tasks/status","params":{"createdAt":"1970-01-01T00:00:00.000Z","lastUpdatedAt":"1970-01-01T00:00:00.000Z","pollInterval":500,…
        again
        HANDSHAKE
        PLAIN-3
        !! info: …joined…
        << {"jsonrpc":"2.0","id":3,"result":{"n":1.0}}
        "#,
    );
}

/// The process that had it may be another one, or be gone: whoever owns the record will end it.
#[test]
fn a_task_of_another_process_is_joined() {
    legacy(
        r#"
        TASK-2
        .. store 2: create
        stored 2
        << {"jsonrpc":"2.0","id":2,"result":{"task":{"createdAt":"1970-01-01T00:00:00.000Z","lastUpdatedAt":"1970-01-01T00:00:00.000Z","pollInterval":500,"status":"working",…
        >> {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"_meta":{"progressToken":2},"name":"x","idempotencyKey":"k"}}
        again
        HANDSHAKE
        TASK-3
        !! info: …joined…
        << {"jsonrpc":"2.0","id":3,"result":{"task":{…"taskId":"T1"…
        # It waits.
        PLAIN-4
        !! info: …joined…
        > {"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"y","idempotencyKey":"k"}}
        !! warn: key-conflict…
        << …-31012…
        "#,
    );
}

/// Between our question and our record another process made its own.
#[test]
fn a_key_that_another_process_took_is_joined() {
    legacy(
        r#"
        TASK-2
        .. store 2: create
        stored 2
        << {"jsonrpc":"2.0","id":2,"result":{"task":{"createdAt":"1970-01-01T00:00:00.000Z","lastUpdatedAt":"1970-01-01T00:00:00.000Z","pollInterval":500,"status":"working",…
        >> {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"_meta":{"progressToken":2},"name":"x","idempotencyKey":"k"}}
        again
        HANDSHAKE
        > {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"x","task":{},"idempotencyKey":"j"}}
        .. store 2: create
        taken 2 T1
        !! warn: could not be stored: write 0 was refused: another call has the same idempotency key
        !! info: …joined…
        << {"jsonrpc":"2.0","id":3,"result":{"task":{…"taskId":"T1"…
        "#,
    );
}

/// Between our question and our record another process made its own, and its call has ended.
#[test]
fn a_call_that_another_process_made_and_ended_meanwhile_is_not_made_again() {
    legacy(
        r#"
        TASK-2
        .. store 2: create
        made T9 k {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"}}
        theirs T9 completed {"n":1.0}
        stored 2
        !! warn: could not be stored: …another call has the same idempotency key
        !! info: …joined…
        << {"jsonrpc":"2.0","id":2,"result":{"task":{…"status":"completed","taskId":"T9"…
        # What failed there is made here.
        > {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"x","task":{},"idempotencyKey":"j"}}
        .. store 5: create
        made T8 j {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"}}
        theirs T8 completed {"isError":true}
        stored 5
        .. store 7: create
        stored 7
        << {"jsonrpc":"2.0","id":3,"result":{"task":{…"status":"working"…
        >> {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"_meta":{"progressToken":2},"name":"x","idempotencyKey":"j"}}
        "#,
    );
}

/// Too late to join the other: but its client, who would not wait, still gets a ticket.
#[test]
fn a_call_that_runs_gets_a_ticket_although_another_process_has_its_key() {
    check(&format!(
        r#"
        set client-cap 60s
        > {{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"x","idempotencyKey":"k"}}}}
        >> {{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"_meta":{{"progressToken":1}},"name":"x","idempotencyKey":"k"}}}}
        made {T9} k {{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"x"}}}}
        wait 55s
        @55s
        .. store 2: create
        stored 2
        !! warn: could not be stored: …another call has the same idempotency key
        tick
        .. store 3: create
        stored 3
        << {{"jsonrpc":"2.0","id":1,"result":{{"_meta":{{"dev.outlast/ticket":…
        < {{"jsonrpc":"2.0","id":1,"result":{{"content":[]}}}}
        .. store 4: completed
        stored 4
        "#
    ));
}

/// The store still says that it runs.
#[test]
fn a_call_that_is_being_cancelled_is_not_joined() {
    legacy(
        r#"
        TASK-2
        .. store 2: create
        stored 2
        << {"jsonrpc":"2.0","id":2,"result":{"task":{"createdAt":"1970-01-01T00:00:00.000Z","lastUpdatedAt":"1970-01-01T00:00:00.000Z","pollInterval":500,"status":"working",…
        >> {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"_meta":{"progressToken":2},"name":"x","idempotencyKey":"k"}}
        > {"jsonrpc":"2.0","id":3,"method":"tasks/cancel","params":{"taskId":"T1"}}
        .. store 3: cancelled
        >> …notifications/cancelled…
        TASK-4
        .. store 5: create
        stored 3
        << …notifications/tasks/status…
        << {"jsonrpc":"2.0","id":3,"result":{…"status":"cancelled"…
        stored 5
        << {"jsonrpc":"2.0","id":4,"result":{"task":{…"status":"working"…
        >> {"jsonrpc":"2.0","id":3,"method":"tools/call",…
        "#,
    );
}

#[test]
fn a_failed_task_is_not_replayed() {
    legacy(
        r#"
        TASK-2
        .. store 2: create
        stored 2
        << {"jsonrpc":"2.0","id":2,"result":{"task":{"createdAt":"1970-01-01T00:00:00.000Z","lastUpdatedAt":"1970-01-01T00:00:00.000Z","pollInterval":500,"status":"working",…
        >> {"jsonrpc":"2.0","id":2,…
        < {"jsonrpc":"2.0","id":2,"result":{"content":[],"isError":true}}
        .. store 3: failed
        stored 3
        << {"jsonrpc":"2.0","method":"notifications/tasks/status","params":{"createdAt":"1970-01-01T00:00:00.000Z","lastUpdatedAt":"1970-01-01T00:00:00.000Z","pollInterval":500,…
        PLAIN-3
        >> {"jsonrpc":"2.0","id":3,…
        "#,
    );
}

/// A cancel of the task leaves the call to whoever joined it.
#[test]
fn a_task_is_cancelled_and_the_call_goes_on() {
    legacy(
        r#"
        TASK-2
        .. store 2: create
        stored 2
        << {"jsonrpc":"2.0","id":2,"result":{"task":{"createdAt":"1970-01-01T00:00:00.000Z","lastUpdatedAt":"1970-01-01T00:00:00.000Z","pollInterval":500,"status":"working",…
        >> {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"_meta":{"progressToken":2},"name":"x","idempotencyKey":"k"}}
        PLAIN-3
        !! info: …joined…
        > {"jsonrpc":"2.0","id":4,"method":"tasks/cancel","params":{"taskId":"T1"}}
        .. store 3: cancelled
        stored 3
        << …notifications/tasks/status…
        << {"jsonrpc":"2.0","id":4,"result":{…"status":"cancelled"…
        < {"jsonrpc":"2.0","id":2,"result":{"n":1}}
        << {"jsonrpc":"2.0","id":3,"result":{"n":1}}
        "#,
    );
}

/// The first gives up while the store is asked; or its task, while it is being stored.
#[test]
fn the_first_gives_up_before_anything_ran() {
    legacy(
        r#"
        TASK-2
        .. store 2: create
        PLAIN-3
        > {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}}
        PLAIN-4
        not-stored 2
        !! warn: could not be stored: disk full
        !! info: …joined…
        >> {"jsonrpc":"2.0","id":2,…
        < {"jsonrpc":"2.0","id":2,"result":{"n":1}}
        << {"jsonrpc":"2.0","id":2,"result":{"n":1}}
        << {"jsonrpc":"2.0","id":4,"result":{"n":1}}
        "#,
    );
}

/// A plain call runs; a task with its key joins it.
#[test]
fn a_task_joins_a_plain_call() {
    legacy(
        r#"
        PLAIN-2
        >> {"jsonrpc":"2.0","id":2,…
        TASK-3
        .. store 2: create
        stored 2
        << {"jsonrpc":"2.0","id":3,"result":{"task":{…"taskId":"T1"…
        !! info: …joined…
        < {"jsonrpc":"2.0","id":2,"result":{"n":1}}
        << {"jsonrpc":"2.0","id":2,"result":{"n":1}}
        .. store 3: completed
        stored 3
        << …notifications/tasks/status…
        PLAIN-4
        !! info: …joined…
        << {"jsonrpc":"2.0","id":4,"result":{"n":1}}
        "#,
    );
}

#[test]
fn a_modern_client_that_asks_again_gets_the_handle() {
    let tasks = r#","io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}"#;
    let call = |exchange: u32, id: u32| {
        modern_call(exchange, id, "ann", KEY)
            .replace(r#","io.modelcontextprotocol/clientCapabilities":{}"#, tasks)
    };
    let (first, second, third) = (call(1, 7), call(2, 8), call(3, 9));
    check(&format!(
        r#"
        set serve
        set tasks
        {first}
        .. 1: start 0
        >> 1: {{"jsonrpc":"2.0","id":1,…
        started
        wait 1s
        @500ms
        << 1: 200 events
        << 1: : outlast||
        {second}
        !! info: …joined…
        wait 10s
        @1s500ms
        << 2: 200 events
        << 2: : outlast||
        @10s
        .. store 2: create
        stored 2
        << 1: data: {{"jsonrpc":"2.0","id":7,"result":{{…"taskId":"{T1}"…
        << 1: finish
        wait 1s
        @12s
        << 2: data: {{"jsonrpc":"2.0","id":8,"result":{{…"taskId":"{T1}"…
        << 2: finish
        {third}
        !! info: …joined…
        << 3: 200 {{"jsonrpc":"2.0","id":9,"result":{{…"taskId":"{T1}"…
        < {{"jsonrpc":"2.0","id":1,"result":{{}}}}
        .. store 3: completed
        "#
    ));
}

/// Its task was being stored when it hung up.
#[test]
fn a_client_that_hangs_up_before_it_has_its_handle_gets_it_later() {
    let tasks = r#","io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}"#;
    let call = |exchange: u32, id: u32| {
        modern_call(exchange, id, "ann", KEY)
            .replace(r#","io.modelcontextprotocol/clientCapabilities":{}"#, tasks)
    };
    let (first, second) = (call(1, 7), call(2, 8));
    check(&format!(
        r#"
        set serve
        set tasks
        {first}
        .. 1: start 0
        >> 1: {{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"pay",…
        started
        wait 10s
        @500ms
        << 1: 200 events
        << 1: : outlast||
        @10s
        .. store 2: create
        hang-up 1
        stored 2
        wait 20m
        {second}
        !! info: …joined…
        << 2: 200 {{"jsonrpc":"2.0","id":8,"result":{{…"taskId":"{T1}"…
        < {{"jsonrpc":"2.0","id":1,"result":{{}}}}
        .. store 3: completed
        "#
    ));
}

// Kept answers.

#[test]
fn an_answer_is_kept_where_a_person_says_so() {
    let call = |id: u32| {
        format!(
            r#"> {{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"pay","arguments":{{"n":1}},"idempotencyKey":"k"}}}}"#
        )
    };
    let (c2, c3, c4, c5) = (call(2), call(3), call(4), call(5));
    check(&format!(
        r#"
        set tool pay=keep-answers:true
        {c2}
        >> {{"jsonrpc":"2.0","id":1,…
        < {{"jsonrpc":"2.0","id":1,"result":{{"n":1.0}}}}
        .. store 2: create, completed
        << {{"jsonrpc":"2.0","id":2,"result":{{"n":1.0}}}}
        # While it is being stored, and after.
        {c3}
        !! info: …joined…
        << {{"jsonrpc":"2.0","id":3,"result":{{"n":1.0}}}}
        stored 2
        {c4}
        !! info: …joined…
        << {{"jsonrpc":"2.0","id":4,"result":{{"n":1.0}}}}
        > {{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{{"name":"pay","arguments":{{"n":2}},"idempotencyKey":"k"}}}}
        !! warn: key-conflict…
        << …-31012…
        again
        {c5}
        !! info: …joined…
        << {{"jsonrpc":"2.0","id":5,"result":{{"n":1.0}}}}
        wait 1h
        {c5}
        >> {{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"_meta":{{"progressToken":1}},"name":"pay","arguments":{{"n":1}},"idempotencyKey":"k"}}}}
        < {{"jsonrpc":"2.0","id":1,"error":{{"code":-1,"message":"no"}}}}
        << {{"jsonrpc":"2.0","id":5,"error":{{"code":-1,"message":"no"}}}}
        # Errors are never kept.
        {c4}
        >> {{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{{"_meta":{{"progressToken":2}},"name":"pay","arguments":{{"n":1}},"idempotencyKey":"k"}}}}
        "#
    ));
}

// Servers that honour keys.

#[test]
fn a_call_without_a_key_gets_one_where_it_is_honoured() {
    check(
        r#"
        set tool pay*=idempotency:honoured
        > {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{}}}
        >> {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{}}}
        < {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{}}}
        << {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{}}}
        > {"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"pay"}}
        >> {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"_meta":{"progressToken":2},"idempotencyKey":"01010101010101010101010101010101","name":"pay"}}
        # The client's own is used, and also stays where it was.
        > {"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"pay","_meta":{"claudecode/toolUseId":"toolu_1"}}}
        >> {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"idempotencyKey":"toolu_1","name":"pay","_meta":{"progressToken":3,"claudecode/toolUseId":"toolu_1"}}}
        > {"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"read"}}
        >> {"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"_meta":{"progressToken":4},"name":"read"}}
        exited 1
        wait 200ms
        @200ms
        !! warn: `srv` ended: exit status 1
        !! info: `tools/call` is sent to `srv` again (attempt 2): its server went away
        !! info: `tools/call` is sent to `srv` again (attempt 2): its server went away
        !! warn: server-gone…
        << {"jsonrpc":"2.0","id":9,"error":…
        !! warn: restarting `srv` in 470ms: it ended
        wait 1s
        @…
        .. start 1
        started
        >> {"jsonrpc":"2.0","id":5,"method":"initialize",…
        < {"jsonrpc":"2.0","id":5,"result":{"protocolVersion":"2025-06-18","capabilities":{}}}
        !! warn: `srv` is back…
        >> {"jsonrpc":"2.0","id":6,"method":"tools/call","params":{"_meta":{"progressToken":6},"idempotencyKey":"01010101010101010101010101010101","name":"pay"}}
        >> {"jsonrpc":"2.0","id":7,…"idempotencyKey":"toolu_1"…
        "#,
    );
}

/// Who takes over a call has its own way to hear of it late: here the first has tasks, and the second has a limit.
#[test]
fn a_call_that_is_taken_over_is_handed_off_as_its_new_client_needs() {
    const FIRST: &str =
        r#""io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}"#;
    const SECOND: &str = r#""io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"hasty-agent","version":"1.2"}"#;
    let call = |id: u32, who: &str| {
        format!(
            r#"> {{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"pay","_meta":{{"dev.outlast/idempotencyKey":"k","io.modelcontextprotocol/protocolVersion":"2026-07-28",{who}}}}}}}"#
        )
    };
    check(&format!(
        r#"
        set tasks
        set profiles
        {}
        >> …
        {}
        !! info: `hasty-agent 1.2` gives up on a tool after 1m (measured of hasty* 1+ on 2026-11-18): slow calls are handed off shortly before that
        !! info: a call of `pay` at `srv` joined…
        > {{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":7}}}}
        wait 55s
        @55s
        .. store 2: create
        stored 2
        << {{"jsonrpc":"2.0","id":8,"result":{{"_meta":{{"dev.outlast/ticket":…"resultType":"complete"}}}}
        "#,
        call(7, FIRST),
        call(8, SECOND),
    ));
}

/// As many as may wait are refused one after the other, on a stack of the usual size.
#[test]
fn a_thousand_calls_that_wait_for_one_key_of_a_server_that_is_gone_are_all_refused() {
    let mut world = World::default();
    let handshake = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{}}}"#;
    world.input("set tasks");
    world.input("set restart never");
    world.input(&format!("> {handshake}"));
    world.input(r#"< {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-03-26","capabilities":{}}}"#);
    world.input("output-closed");
    world.input("exited 1");
    world.input("reads later");
    let call = |id: u32| {
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"x","idempotencyKey":"k"}}}}"#
        )
    };
    let calls: Vec<String> = (2..1002).map(call).collect();
    assert_eq!(world.input(&format!("> [{}]", calls.join(","))), [""; 0]);
    let out = world.input("read");
    let answers: Vec<&String> = out.iter().filter(|line| line.starts_with("<< ")).collect();
    assert_eq!(answers.len(), 1, "{out:?}");
    for id in 2..1002 {
        assert!(
            answers[0].contains(&format!(r#""id":{id},"error":{{"code":-31002"#)),
            "{id}: {}",
            answers[0]
        );
    }
    assert_eq!(world.engine.check_invariants(), Ok(()));
}

/// Pipes seed 2116 of the simulation: the key was forgotten with the first call, and two calls ran under it.
#[test]
fn a_call_that_is_being_stored_inherits_the_key_of_one_that_is_given_up() {
    check(
        r#"
        set tasks
        > {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        >> {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        < {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}
        << {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tasks":{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}}}}
        > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"pay","idempotencyKey":"k"}}
        >> {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"_meta":{"progressToken":2},"name":"pay","idempotencyKey":"k"}}
        > {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"pay","idempotencyKey":"k","task":{}}}
        .. store 2: create
        > {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}
        >> {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}
        # This one is not sent: the one that is being stored will be.
        > {"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"pay","idempotencyKey":"k"}}
        stored 2
        << {"jsonrpc":"2.0","id":3,"result":{"task":{"createdAt":"1970-01-01T00:00:00.000Z","lastUpdatedAt":"1970-01-01T00:00:00.000Z","pollInterval":500,"status":"working","taskId":"0101010101010101010101010101010101010101010101010101010101010101","ttl":90000000}}}
        !! info: a call of `pay` at `srv` joined an earlier call that is the same (idempotency key or join-repeats)
        >> {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"_meta":{"progressToken":3},"name":"pay","idempotencyKey":"k"}}
        < {"jsonrpc":"2.0","id":3,"result":{"paid":1.0}}
        .. store 3: completed
        stored 3
        << {"jsonrpc":"2.0","method":"notifications/tasks/status","params":{"createdAt":"1970-01-01T00:00:00.000Z","lastUpdatedAt":"1970-01-01T00:00:00.000Z","pollInterval":500,"status":"completed","taskId":"0101010101010101010101010101010101010101010101010101010101010101","ttl":90000000}}
        << {"jsonrpc":"2.0","id":4,"result":{"paid":1.0}}
        "#,
    );
}

/// Pipes seed 1224 of the simulation: the second call waited under a key whose call runs, and was forgotten with it.
#[test]
fn a_call_whose_key_another_process_took_joins_the_one_that_runs_here() {
    legacy(
        r#"
        PLAIN-2
        >> {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"_meta":{"progressToken":2},"name":"x","idempotencyKey":"k"}}
        TASK-3
        .. store 2: create
        made T9 k {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"}}
        stored 2
        !! warn: could not be stored: …another call has the same idempotency key
        .. store 3: create
        stored 3
        << {"jsonrpc":"2.0","id":3,"result":{"task":{…"status":"working"…
        !! info: …joined an earlier call…
        < {"jsonrpc":"2.0","id":2,"result":{"n":1.0}}
        << {"jsonrpc":"2.0","id":2,"result":{"n":1.0}}
        .. store 4: completed
        "#,
    );
}
