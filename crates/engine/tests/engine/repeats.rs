//! `join-repeats`: a client that makes a call again after its own timeout gets the answer of the first one.

use outlast_testkit::script::check;

#[track_caller]
fn play(scenario: &str) {
    check(&format!("set tool build*=join-repeats:2m\n{scenario}"));
}

/// A call of `build` under an id, and that it was sent as attempt 1.
const FIRST: &str = r#"
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"build","arguments":{"n":1}}}
        >> {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":{"progressToken":1},"name":"build","arguments":{"n":1}}}
"#;

const JOINED: &str = "!! info: a call of `build` at `srv` joined an earlier call that is the same (idempotency key or join-repeats)";

#[test]
fn a_call_that_is_cancelled_and_made_again_runs_once() {
    play(&format!(
        r#"
        {FIRST}
        wait 60s
        > {{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":1}}}}
        > {{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{{"name":"build","arguments":{{"n":1}}}}}}
        {JOINED}
        wait 60s
        > {{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":2}}}}
        wait 119s
        > {{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{{"name":"build","arguments":{{"n":1}}}}}}
        {JOINED}
        < {{"jsonrpc":"2.0","id":1,"result":{{"n":1.0}}}}
        << {{"jsonrpc":"2.0","id":3,"result":{{"n":1.0}}}}
        wait 1h
        "#
    ));
}

#[test]
fn one_that_is_not_made_again_is_cancelled_when_its_time_is_over() {
    play(&format!(
        r#"
        {FIRST}
        wait 5s
        > {{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":1}}}}
        wait 2m
        @2m5s
        >> {{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":1,"reason":"the client gave up and did not come back"}}}}
        "#
    ));
}

#[test]
fn an_answer_that_came_meanwhile_is_given_once() {
    play(&format!(
        r#"
        {FIRST}
        wait 5s
        > {{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":1}}}}
        < {{"jsonrpc":"2.0","id":1,"result":{{"n":1.0}}}}
        wait 1m
        > {{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{{"name":"build","arguments":{{"n":1}}}}}}
        {JOINED}
        << {{"jsonrpc":"2.0","id":2,"result":{{"n":1.0}}}}
        > {{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{{"name":"build","arguments":{{"n":1}}}}}}
        >> {{"jsonrpc":"2.0","id":2,…
        "#
    ));
    // Nobody came for it: the next one runs.
    play(&format!(
        r#"
        {FIRST}
        > {{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":1}}}}
        < {{"jsonrpc":"2.0","id":1,"result":{{"n":1.0}}}}
        wait 121s
        > {{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{{"name":"build","arguments":{{"n":1}}}}}}
        >> {{"jsonrpc":"2.0","id":2,…
        "#
    ));
}

#[test]
fn one_that_runs_is_joined_without_a_cancel_too() {
    play(&format!(
        r#"
        {FIRST}
        wait 60s
        > {{"jsonrpc":"2.0","id":"b","method":"tools/call","params":{{"name":"build","arguments":{{"n":1}}}}}}
        {JOINED}
        < {{"jsonrpc":"2.0","id":1,"result":{{}}}}
        << {{"jsonrpc":"2.0","id":1,"result":{{}}}}
        << {{"jsonrpc":"2.0","id":"b","result":{{}}}}
        "#
    ));
}

#[test]
fn other_arguments_other_tools_and_keys_are_other_calls() {
    play(&format!(
        r#"
        {FIRST}
        > {{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{{"name":"build","arguments":{{"n":2}}}}}}
        >> {{"jsonrpc":"2.0","id":2,…
        > {{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{{"name":"build2","arguments":{{"n":1}}}}}}
        >> {{"jsonrpc":"2.0","id":3,…
        > {{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{{"name":"build","arguments":{{"n":1}},"idempotencyKey":"k"}}}}
        >> {{"jsonrpc":"2.0","id":4,…
        # Where nobody wants it, two calls are two calls.
        > {{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{{"name":"pay"}}}}
        >> {{"jsonrpc":"2.0","id":5,…
        > {{"jsonrpc":"2.0","id":6,"method":"tools/call","params":{{"name":"pay"}}}}
        >> {{"jsonrpc":"2.0","id":6,…
        > {{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":6}}}}
        >> {{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":6}}}}
        "#
    ));
}

#[test]
fn a_client_that_leaves_comes_back_for_nothing() {
    play(&format!(
        r#"
        {FIRST}
        > {{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":1}}}}
        eof
        >> {{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":1,"reason":"the client gave up and did not come back"}}}}
        .. close-input
        "#
    ));
}

#[test]
fn a_repeat_of_a_call_that_was_handed_off_gets_the_same_ticket() {
    let ticket = "01".repeat(16);
    play(&format!(
        r#"
        set client-cap 60s
        {FIRST}
        wait 55s
        @55s
        .. store 1: create
        stored 1
        << {{"jsonrpc":"2.0","id":1,"result":{{"_meta":{{"dev.outlast/ticket":"{ticket}"…
        > {{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{{"name":"build","arguments":{{"n":1}}}}}}
        {JOINED}
        wait 55s
        @1m50s
        << {{"jsonrpc":"2.0","id":2,"result":{{"_meta":{{"dev.outlast/ticket":"{ticket}"…
        "#
    ));
}
