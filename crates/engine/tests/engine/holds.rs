//! Calls that wait for a person's yes before they are sent.

use outlast_engine::reached::Bound;
use outlast_testkit::bounds::reaches;
use outlast_testkit::script::check;

/// A stdio client; every call of `pay` needs a yes. The next attempt is 1.
#[track_caller]
fn held(scenario: &str) {
    check(&format!("set tool pay=hold:true\n{scenario}"));
}

/// The same, where a call with a token was made 25 s ago.
#[track_caller]
fn waiting(scenario: &str) {
    held(&format!("{WAITING}\n{scenario}"));
}

const WAITING: &str = r#"
    > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"pay","arguments":{"to":"ann"},"_meta":{"progressToken":7}}}
    .. store 1: hold
    stored 1
    !! info: `pay` of `srv` waits up to 2m for approval: outlast holds approve 1
    wait 25s
    @10s
    << {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":7,"progress":0.0001,"message":"waiting for approval of `pay` (10 s)","_meta":{"dev.outlast/keepAlive":true}}}
    @20s
    << {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":7,"progress":0.00107646484375,"message":"waiting for approval of `pay` (20 s)","_meta":{"dev.outlast/keepAlive":true}}}
"#;

#[test]
fn a_person_is_shown_the_beginning_of_long_arguments() {
    let _bounds = reaches(&[Bound::HELD_ARGUMENTS]);
    let long = "x".repeat(5_000);
    held(&format!(
        r#"
        > {{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"pay","arguments":{{"note":"{long}"}}}}}}
        .. store 1: hold
        "#
    ));
}

#[test]
fn a_held_call_is_sent_after_a_yes_and_once() {
    let _bounds = reaches(&[Bound::HOLD_LOOK]);
    waiting(
        r#"
        says 1 yes once
        wait 500ms
        @25s250ms
        .. store 2: ask after
        stored 2
        !! info: `pay` of `srv` was approved by ann (command line)
        >> {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"pay","arguments":{"to":"ann"},"_meta":{"progressToken":1}}}
        < {"jsonrpc":"2.0","id":1,"result":{"content":[]}}
        << {"jsonrpc":"2.0","id":1,"result":{"content":[]}}
        # The next call is asked about again.
        > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"pay","arguments":{"to":"ann"},"_meta":{"progressToken":7}}}
        .. store 3: hold
        stored 3
        !! info: `pay` of `srv` waits up to 2m for approval: outlast holds approve 2
        "#,
    );
}

#[test]
fn a_no_is_a_result_that_a_model_can_act_on() {
    waiting(
        r#"
        says 1 no once too expensive
        wait 250ms
        @25s250ms
        .. store 2: ask after
        stored 2
        !! info: `pay` of `srv` was declined by ann (command line): too expensive
        << {"jsonrpc":"2.0","id":1,"result":{"content":[{"text":"`pay` was not run: a person declined it: too expensive","type":"text"}],"isError":true}}
        wait 1h
        "#,
    );
}

#[test]
fn without_a_word_the_call_fails_and_was_never_sent() {
    waiting(
        r#"
        wait 2m
        @30s
        << …keepAlive…
        @40s
        << …keepAlive…
        @50s
        << …keepAlive…
        @1m
        << …keepAlive…
        @1m10s
        << …keepAlive…
        @1m20s
        << …keepAlive…
        @1m30s
        << …keepAlive…
        @1m40s
        << …keepAlive…
        @1m50s
        << …keepAlive…
        @2m
        .. store 2: ask after
        << …keepAlive…
        @2m2s
        !! warn: hold-timeout server=srv…
        << {"jsonrpc":"2.0","id":1,"error":{"code":-31014,"message":"Command timed out waiting for approval. Consider approving faster or configuring a longer timeout. `pay` was not sent: nobody approved it within 2m (hold-timeout, built-in); `outlast holds approve NUMBER` approves the next one.","data":{"outlast":{"kind":"hold-timeout","server":"srv","method":"tools/call","tool":"pay","elapsedMs":122000,"limitMs":120000,"setting":"built-in","attempts":0,"serverState":"never-reached","retry":"safe","signs":{},"help":"outlast help -31014"}}}}
        wait 1h
        "#,
    );
}

/// The last moment counts: what was said while the time ran out is asked for before the call fails.
#[test]
fn a_yes_in_the_last_moment_counts() {
    held(
        r#"
        set tool pay=hold-timeout:1s
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"pay","_meta":{"progressToken":7}}}
        .. store 1: hold
        stored 1
        !! info: …approve 1
        wait 1s
        @1s
        .. store 2: ask after
        says 1 yes once
        stored 2
        !! info: `pay` of `srv` was approved by ann (command line)
        >> {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"pay","_meta":{"progressToken":1}}}
        "#,
    );
}

/// A client that nothing keeps patient would be gone when the person comes.
#[test]
fn a_client_that_cannot_wait_hears_early_and_may_come_back() {
    held(
        r#"
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"pay","arguments":{"to":"ann"}}}
        .. store 1: hold
        stored 1
        !! info: `pay` of `srv` waits up to 50s for approval: outlast holds approve 1
        wait 50s
        @50s
        .. store 2: ask after
        stored 2
        !! warn: hold-timeout server=srv…
        << {"jsonrpc":"2.0","id":1,"error":{"code":-31014,"message":"Command timed out waiting for approval. Consider approving faster or configuring a longer timeout. `pay` was not sent: nobody approved it within 50s (hold-timeout, built-in); it may leave at 60s; `outlast holds approve 1` within 10m lets the same call pass.",…
        wait 9m
        says 1 yes once
        # Another call does not pass.
        > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"pay","arguments":{"to":"bob"}}}
        .. store 3: hold
        stored 3
        !! info: …approve 2
        > {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"pay","arguments":{"to":"ann"}}}
        .. store 4: hold
        stored 4
        >> {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":{"progressToken":1},"name":"pay","arguments":{"to":"ann"}}}
        "#,
    );
}

#[test]
fn a_cancel_takes_the_question_back() {
    waiting(
        r#"
        > {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}
        .. store 2: ask after
        stored 2
        says 1 yes once
        wait 1h
        "#,
    );
}

#[test]
fn a_question_that_is_stored_after_its_call_ended_is_taken_back() {
    held(
        r#"
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"pay","_meta":{"progressToken":7}}}
        .. store 1: hold
        > {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}
        stored 1
        .. store 2: ask after
        stored 2
        wait 1h
        "#,
    );
}

/// Its own clock stands still, and nobody else's.
#[test]
fn the_wait_for_a_person_does_not_count_for_the_limit_of_the_call() {
    held(
        r#"
        set timeout 30s
        set keep-alive off
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"pay","_meta":{"progressToken":7}}}
        .. store 1: hold
        stored 1
        !! info: …approve 1
        > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"look"}}
        >> …look…
        wait 30s
        @30s
        !! warn: timeout server=srv…
        << {"jsonrpc":"2.0","id":2,"error":…
        >> …cancelled…
        .. sample
        < {"jsonrpc":"2.0","id":1,"result":{}}
        !! info: `srv` answered attempt 1, which has ended; dropped
        wait 10s
        says 1 yes once
        wait 250ms
        @40s250ms
        .. store 2: ask after
        stored 2
        !! info: `pay` of `srv` was approved by ann (command line)
        >> …pay…
        wait 29s
        wait 2s
        @1m10s250ms
        !! warn: timeout server=srv…
        << {"jsonrpc":"2.0","id":1,"error":…
        >> …cancelled…
        .. sample
        "#,
    );
}

#[test]
fn a_yes_for_the_session_lets_other_calls_of_the_tool_pass() {
    waiting(
        r#"
        says 1 yes session
        wait 250ms
        @25s250ms
        .. store 2: ask after
        stored 2
        !! info: `pay` of `srv` was approved by ann (command line)
        >> …pay…
        > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"pay","arguments":{"to":"bob"}}}
        .. store 3: hold
        stored 3
        >> {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"_meta":{"progressToken":2},"name":"pay","arguments":{"to":"bob"}}}
        "#,
    );
}

#[test]
fn what_cannot_be_asked_is_not_sent() {
    held(
        r#"
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"pay"}}
        .. store 1: hold
        not-stored 1
        !! warn: could not be stored: disk full
        !! warn: overloaded server=srv…
        << {"jsonrpc":"2.0","id":1,"error":{"code":-31004,"message":"`pay` was not sent: nobody could be asked to approve it: disk full. Call again when other calls have ended.",…
        wait 1h
        "#,
    );
}

/// Its annotations deny that a tool destroys anything; of a tool that nobody has listed nothing is known.
#[test]
fn destructive_means_every_tool_that_does_not_deny_it() {
    check(
        r#"
        set hold destructive
        > {"jsonrpc":"2.0","id":1,"method":"tools/list"}
        >> {"jsonrpc":"2.0","id":1,"method":"tools/list"}
        < {"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"read","annotations":{"readOnlyHint":true}},{"name":"add","annotations":{"destructiveHint":false}},{"name":"delete"}]}}
        << {"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"read",…
        > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"read"}}
        >> …read…
        > {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"add"}}
        >> …add…
        > {"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"delete"}}
        .. store 1: hold
        > {"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"unheard-of"}}
        .. store 2: hold
        "#,
    );
}

/// A yes after the server has ended: the call waits for the next process, as any call does.
#[test]
fn a_server_that_is_restarted_meanwhile_does_not_matter() {
    held(
        r#"
        set restart-backoff 1s
        > {"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        >> …initialize…
        < {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}}
        << {"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}}
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"pay","_meta":{"progressToken":7}}}
        .. store 1: hold
        stored 1
        !! info: …approve 1
        exited 1
        output-closed
        !! warn: `srv` ended: exit status 1
        !! warn: restarting `srv` in …
        says 1 yes once
        wait 250ms
        @250ms
        .. store 2: ask after
        stored 2
        !! info: `pay` of `srv` was approved by ann (command line)
        wait 2s
        @470ms
        .. start 1
        started
        >> …initialize…
        < {"jsonrpc":"2.0","id":2,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}}
        !! warn: `srv` is back…
        >> …pay…
        "#,
    );
}

/// The question of a process that has ended is the next one's, and so is the yes.
#[test]
fn a_yes_outlives_the_process_that_asked() {
    held(
        r#"
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"pay"}}
        .. store 1: hold
        stored 1
        !! info: …approve 1
        again
        says 1 yes once
        > {"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"pay"}}
        .. store 1: hold
        stored 1
        >> …pay…
        "#,
    );
}

/// A client that has a ticket waits as long as `hold-timeout`, and sees why.
#[test]
fn a_held_task_says_what_it_waits_for() {
    let ticket = "01".repeat(32);
    check(&format!(
        r#"
        set tasks
        set tool pay=hold:true
        > {{"jsonrpc":"2.0","id":1,"method":"initialize","params":{{"protocolVersion":"2025-11-25","capabilities":{{}}}}}}
        >> {{"jsonrpc":"2.0","id":1,"method":"initialize",…
        < {{"jsonrpc":"2.0","id":1,"result":{{"protocolVersion":"2025-11-25","capabilities":{{"tools":{{}}}}}}}}
        << {{"jsonrpc":"2.0","id":1,"result":{{"protocolVersion":"2025-11-25",…
        > {{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{{"name":"pay","task":{{}}}}}}
        .. store 1: create
        stored 1
        << {{"jsonrpc":"2.0","id":2,"result":{{"task":{{…
        .. store 2: hold
        stored 2
        !! info: `pay` of `srv` waits up to 2m for approval: outlast holds approve 2
        wait 5s
        > {{"jsonrpc":"2.0","id":3,"method":"tasks/get","params":{{"taskId":"{ticket}"}}}}
        << {{"jsonrpc":"2.0","id":3,"result":{{…"status":"working","statusMessage":"waiting for approval of `pay` (5 s)","taskId":"{ticket}",…
        says 2 no once
        wait 250ms
        @5s250ms
        .. store 3: ask after
        stored 3
        !! info: `pay` of `srv` was declined by ann (command line)
        .. store 4: failed
        "#
    ));
}

/// A person's yes opens no gate that a bound of the server keeps shut: the call waits for its turn like any other.
#[test]
fn an_approved_call_waits_for_its_turn() {
    held(
        r#"
        set max-in-flight 1
        set queue 0
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"look"}}
        >> …look…
        > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"pay","_meta":{"progressToken":7}}}
        .. store 1: hold
        stored 1
        !! info: …approve 1
        says 1 yes once
        wait 250ms
        @250ms
        .. store 2: ask after
        stored 2
        !! info: `pay` of `srv` was approved by ann (command line)
        wait 5s
        < {"jsonrpc":"2.0","id":1,"result":{"content":[]}}
        << {"jsonrpc":"2.0","id":1,"result":{"content":[]}}
        >> …pay…
        < {"jsonrpc":"2.0","id":2,"result":{"content":[]}}
        << {"jsonrpc":"2.0","id":2,"result":{"content":[]}}
        "#,
    );
}

/// Shakes hands, and has a task made that waits for a yes.
const HELD_TASK: &str = r#"
        set tasks
        set tool pay=hold:true
        > {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        >> {"jsonrpc":"2.0","id":1,"method":"initialize",…
        < {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}}
        << {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25",…
        > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"pay","task":{}}}
        .. store 1: create
        stored 1
        << {"jsonrpc":"2.0","id":2,"result":{"task":{…
        .. store 2: hold
        stored 2
        !! info: `pay` of `srv` waits up to 2m for approval: outlast holds approve 2
"#;

/// What waits was never sent: the next process asks on, under the same question.
#[test]
fn a_task_that_waited_for_a_yes_waits_again_after_a_crash() {
    check(&format!(
        r#"{HELD_TASK}
        again
        begin
        .. store 1: claim, expire
        stored 1
        > {{"jsonrpc":"2.0","id":1,"method":"initialize","params":{{"protocolVersion":"2025-11-25","capabilities":{{}}}}}}
        >> {{"jsonrpc":"2.0","id":1,"method":"initialize",…
        < {{"jsonrpc":"2.0","id":1,"result":{{"protocolVersion":"2025-11-25","capabilities":{{"tools":{{}}}}}}}}
        << {{"jsonrpc":"2.0","id":1,"result":{{"protocolVersion":"2025-11-25",…
        > {{"jsonrpc":"2.0","method":"notifications/initialized"}}
        >> …initialized…
        .. store 3: hold
        stored 3
        !! info: `pay` of `srv` waits up to 2m for approval: outlast holds approve 2
        says 2 yes once
        wait 250ms
        @250ms
        .. store 4: ask after
        stored 4
        !! info: `pay` of `srv` was approved by ann (command line)
        .. store 5: working
        stored 5
        >> …pay…
        "#
    ));
}

/// What was sent is never taken for something that still waits: the record says so first.
#[test]
fn an_approved_task_is_sent_once_its_record_says_so() {
    check(&format!(
        r#"{HELD_TASK}
        says 2 yes once
        wait 250ms
        @250ms
        .. store 3: ask after
        stored 3
        !! info: `pay` of `srv` was approved by ann (command line)
        .. store 4: working
        not-stored 4
        !! warn: could not be stored: disk full
        !! warn: overloaded server=srv…
        .. store 5: failed
        stored 5
        << …"status":"failed","statusMessage":"`pay` was not sent: its start could not be stored: disk full. …
        wait 1h
        "#
    ));
}

// The client itself is asked.

/// A legacy client that can ask its user calls `pay`.
const ELICITS: &str = r#"
    set hold-ask-client true
    > {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"cursor","version":"1.2"}}}
    >> …initialize…
    < {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}}
    << {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25",…
    > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"pay","arguments":{"to":"ann","password":"1"}}}
    .. store 1: hold
    stored 1
    !! info: `pay` of `srv` waits up to 50s for approval: outlast holds approve 1
    << {"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{"message":"May `pay` of `srv` be run? {\"password\":\"***\",\"to\":\"ann\"}","requestedSchema":{"properties":{"for":{"enum":["this call","this session","10 minutes"],"title":"Good for","type":"string"},"reason":{"title":"Reason","type":"string"}},"type":"object"}}}
"#;

#[track_caller]
fn elicited(scenario: &str) {
    held(&format!("{ELICITS}\n{scenario}"));
}

#[test]
fn the_user_of_the_client_may_say_yes() {
    elicited(
        r#"
        > {"jsonrpc":"2.0","id":1,"result":{"action":"accept","content":{"for":"this session","reason":"mine"}}}
        .. store 2: decide, ask after
        stored 2
        !! info: `pay` of `srv` was approved by the user of cursor 1.2 (client): mine
        >> …pay…
        > {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"pay","arguments":{"to":"bob"}}}
        .. store 3: hold
        stored 3
        >> …pay…
        "#,
    );
}

#[test]
fn the_user_of_the_client_may_say_no() {
    elicited(
        r#"
        > {"jsonrpc":"2.0","id":1,"result":{"action":"decline"}}
        .. store 2: decide, ask after
        stored 2
        !! info: `pay` of `srv` was declined by the user of cursor 1.2 (client)
        << {"jsonrpc":"2.0","id":2,"result":{"content":[{"text":"`pay` was not run: a person declined it.","type":"text"}],"isError":true}}
        "#,
    );
}

/// Who dismisses the form, or whose client cannot show it, has said nothing.
#[test]
fn a_form_that_is_dismissed_decides_nothing() {
    for answer in [r#""result":{"action":"cancel"}"#, r#""error":{"code":-32603,"message":"no user"}"#] {
        elicited(&format!(
            r#"
            > {{"jsonrpc":"2.0","id":1,{answer}}}
            says 1 yes once
            wait 250ms
            @250ms
            .. store 2: ask after
            stored 2
            !! info: `pay` of `srv` was approved by ann (command line)
            >> …pay…
            "#
        ));
    }
}

/// The first word counts: the form goes away, and what is still said in it is too late.
#[test]
fn a_word_elsewhere_takes_the_form_back() {
    elicited(
        r#"
        says 1 yes once
        wait 250ms
        @250ms
        .. store 2: ask after
        stored 2
        !! info: `pay` of `srv` was approved by ann (command line)
        << {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"reason":"the question is settled"}}
        >> …pay…
        > {"jsonrpc":"2.0","id":1,"result":{"action":"decline"}}
        !! info: the client answered unknown id 1; dropped
        "#,
    );
}

#[test]
fn the_word_in_the_client_is_too_late_if_another_was_stored_before() {
    elicited(
        r#"
        says 1 no once too expensive
        > {"jsonrpc":"2.0","id":1,"result":{"action":"accept"}}
        .. store 2: decide, ask after
        stored 2
        !! info: `pay` of `srv` was declined by ann (command line): too expensive
        << …a person declined it: too expensive…
        "#,
    );
}

#[test]
fn a_client_that_gives_the_call_up_sees_the_form_go() {
    elicited(
        r#"
        > {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}
        << …"requestId":1,"reason":"the question is settled"…
        .. store 2: ask after
        stored 2
        wait 1h
        "#,
    );
}

#[test]
fn nobody_is_asked_in_a_client_where_that_is_not_allowed() {
    held(
        r#"
        > {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}}}}
        >> …initialize…
        < {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}}
        << {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25",…
        > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"pay"}}
        .. store 1: hold
        stored 1
        !! info: …approve 1
        "#,
    );
}

/// A call of a modern client that can ask its user, on a pipe.
fn modern_call(id: u32, more: &str) -> String {
    let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"cursor","version":"2"},"io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}"#;
    format!(
        r#"> {{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"pay","arguments":{{"to":"ann"}},{meta}{more}}}}}"#
    )
}

#[track_caller]
fn modern(scenario: &str) {
    let first = modern_call(1, "");
    held(&format!(
        r#"
        set hold-ask-client true
        {first}
        .. store 1: hold
        stored 1
        !! info: …approve 1
        .. store 2: ask after
        << {{"jsonrpc":"2.0","id":1,"result":{{"inputRequests":{{"dev.outlast/hold":{{"method":"elicitation/create","params":{{"message":"May `pay` of `srv` be run? {{\"to\":\"ann\"}}",…}},"resultType":"input_required"}}}}
        stored 2
        {scenario}
        "#
    ));
}

fn answered(action: &str) -> String {
    format!(r#","inputResponses":{{"dev.outlast/hold":{{"action":"{action}"}}}}"#)
}

#[test]
fn the_user_of_a_modern_client_may_say_yes() {
    let again = modern_call(2, &answered("accept"));
    modern(&format!(
        r#"
        wait 9m
        {again}
        .. store 3: hold
        stored 3
        .. store 4: decide, ask after
        stored 4
        !! info: `pay` of `srv` was approved by the user of cursor 2 (client)
        >> {{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"pay","arguments":{{"to":"ann"}},"_meta":{{"progressToken":1,…"elicitation":{{}}}}}}}}}}
        "#
    ));
}

#[test]
fn the_user_of_a_modern_client_may_say_no() {
    let again = modern_call(2, &answered("decline"));
    modern(&format!(
        r#"
        {again}
        .. store 3: hold
        stored 3
        .. store 4: decide, ask after
        stored 4
        !! info: `pay` of `srv` was declined by the user of cursor 2 (client)
        << {{"jsonrpc":"2.0","id":2,"result":{{…"isError":true,"resultType":"complete"}}}}
        "#
    ));
}

/// It was decided elsewhere meanwhile: the call passes when it comes again, unless its own user refuses it then.
#[test]
fn a_modern_call_that_was_approved_elsewhere_passes() {
    for (action, then) in [("cancel", ">> …pay…"), ("decline", "<< …\"isError\":true…")] {
        let again = modern_call(2, &answered(action));
        modern(&format!("says 1 yes once\n{again}\n.. store 3: hold\nstored 3\n{then}"));
    }
}

/// A question is no answer that others with the same key could be given.
#[test]
fn a_modern_call_with_a_key_waits_without_a_form() {
    let call = modern_call(1, r#","idempotencyKey":"k""#);
    held(&format!(
        r#"
        set hold-ask-client true
        {call}
        .. store 1: hold
        stored 1
        !! info: `pay` of `srv` waits up to 50s for approval: outlast holds approve 1
        wait 1s
        "#
    ));
}

/// A user who dismisses the question is not asked again and again; somebody else may still say yes.
#[test]
fn a_modern_call_whose_form_was_dismissed_waits() {
    let again = modern_call(2, &answered("cancel"));
    modern(&format!(
        r#"
        {again}
        .. store 3: hold
        stored 3
        !! info: …approve 1
        says 1 yes once
        wait 250ms
        @…
        .. store 4: ask after
        stored 4
        !! info: `pay` of `srv` was approved by ann (command line)
        >> …pay…
        "#
    ));
}

#[test]
fn a_yes_wakes_a_server_that_sleeps() {
    held(&format!(
        "{}\n{}",
        super::reload::ASLEEP,
        r#"
        > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"pay","arguments":{},"_meta":{"progressToken":7}}}
        .. store 1: hold
        stored 1
        !! info: `pay` of `srv` waits up to 2m for approval: outlast holds approve 1
        says 1 yes once
        wait 500ms
        @1m250ms
        .. store 2: ask after
        stored 2
        !! info: `pay` of `srv` was approved by ann (command line)
        .. start 1
        "#
    ));
}

#[test]
fn a_call_that_waits_for_approval_is_sent_after_the_end_of_input() {
    waiting(
        r#"
        eof
        says 1 yes once
        wait 500ms
        @25s250ms
        .. store 2: ask after
        stored 2
        !! info: `pay` of `srv` was approved by ann (command line)
        >> {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"pay","arguments":{"to":"ann"},"_meta":{"progressToken":1}}}
        .. close-input
        < {"jsonrpc":"2.0","id":1,"result":{"content":[]}}
        << {"jsonrpc":"2.0","id":1,"result":{"content":[]}}
        "#,
    );
}
