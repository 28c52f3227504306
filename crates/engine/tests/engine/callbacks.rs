//! Calls with a ticket that tell an address of a person how they end.

use outlast_engine::reached::Bound;
use outlast_testkit::bounds::reaches;
use outlast_testkit::script::check;

/// The handle of the first task.
const T1: &str = "0101010101010101010101010101010101010101010101010101010101010101";

const META: &str = r#""_meta":{"dev.outlast/callback":"ops","io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}"#;

/// A stdio client; `ops` hears of what nobody hears, `all` of everything.
#[track_caller]
fn play(scenario: &str) {
    let scenario = scenario.replace("META", META).replace("T1", T1);
    check(&format!("set tasks\nset callback ops\nset callback all always\n{scenario}"));
}

/// A modern task whose client names `ops` and listens to nothing: attempt 1, ticket T1.
const TASK: &str = r#"
        > {"jsonrpc":"2.0","id":"r-1","method":"tools/call","params":{"name":"x",META}}
        >> …"method":"tools/call"…
        wait 10s
        @10s
        .. store 1: create
        stored 1
        << …"taskId":"T1"…
"#;

/// The task has ended and nobody heard of it.
const ENDED: &str = r#"
        < {"jsonrpc":"2.0","id":"1","result":{"resultType":"complete","secret":1}}
        .. store 2: completed, call back
        .. store 3: take callbacks
        stored 2
        stored 3
        .. call back ops: cb_2710_2 …
"#;

#[test]
fn a_callback_is_stored_with_the_end_and_says_nothing_that_opens_anything() {
    play(&format!(
        r#"
        {TASK}
        < {{"jsonrpc":"2.0","id":"1","result":{{"resultType":"complete","secret":1}}}}
        .. store 2: completed, call back
        .. store 3: take callbacks
        stored 2
        stored 3
        .. call back ops: cb_2710_2 {{"type":"call.completed","timestamp":"1970-01-01T00:00:10.000Z","data":{{"requestId":"r-1","server":"srv","tool":"x","status":"completed","createdAt":"1970-01-01T00:00:00.000Z","updatedAt":"1970-01-01T00:00:10.000Z"}}}}
        called-back 2 1 done
        .. store 4: callback gone
        stored 4
        wait 1h
        "#
    ));
}

#[test]
fn an_end_that_is_not_stored_calls_nobody_back() {
    play(&format!(
        r#"
        {TASK}
        < {{"jsonrpc":"2.0","id":"1","result":{{"resultType":"complete"}}}}
        .. store 2: completed, call back
        .. store 3: take callbacks
        not-stored 2
        !! warn: could not be stored: disk full
        stored 3
        wait 5s
        @…
        .. store 4: completed, call back
        .. store 5: take callbacks
        stored 4
        stored 5
        .. call back ops: cb_…_2 …
        "#
    ));
}

/// Its client waits with `tasks/get` only now and then, and would hear nothing; whoever listens does.
#[test]
fn nobody_is_called_back_about_what_a_client_hears() {
    play(&format!(
        r#"
        {TASK}
        > {{"jsonrpc":"2.0","id":2,"method":"subscriptions/listen","params":{{"notifications":{{"taskIds":["T1"]}},META}}}}
        << …acknowledged…
        < {{"jsonrpc":"2.0","id":"1","result":{{"resultType":"complete"}}}}
        .. store 2: completed
        stored 2
        << …notifications/tasks…
        "#
    ));
}

#[test]
fn somebody_who_wants_to_know_everything_hears_it_all_the_same() {
    play(
        r#"
        set client * callback=all
        > {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        >> …"method":"initialize"…
        < {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}}
        << …"jsonrpc":"2.0"…
        > {"jsonrpc":"2.0","method":"notifications/initialized"}
        >> …"method":"notifications/initialized"…
        > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x","task":{}}}
        .. store 1: create
        stored 1
        << …"jsonrpc":"2.0"…
        >> …"method":"tools/call"…
        > {"jsonrpc":"2.0","id":3,"method":"tasks/result","params":{"taskId":"T1"}}
        < {"jsonrpc":"2.0","id":2,"error":{"code":-5,"message":"no"}}
        .. store 2: failed, call back
        .. store 3: take callbacks
        stored 2
        << …"status":"failed"…
        << …"code":-5…
        stored 3
        .. call back all: cb_0_2 {"type":"call.failed",…"requestId":2,…
        "#,
    );
}

#[test]
fn a_callback_that_fails_is_sent_again_under_the_same_id() {
    let _bounds = reaches(&[Bound::CALLBACK_LOOK, Bound::CALLBACK_BACKOFF]);
    play(&format!(
        r#"
        {TASK}
        {ENDED}
        called-back 2 1 failed connection refused
        !! warn: callback `ops` was not delivered (1 attempt): connection refused; again in …
        .. store 4: callback again
        stored 4
        # What is told of an earlier sending counts no longer.
        called-back 2 1 done
        wait 5s100ms
        @…
        .. store 5: take callbacks
        stored 5
        .. call back ops: cb_2710_2 …
        called-back 2 2 failed after=2m busy
        !! warn: callback `ops` was not delivered (2 attempts): busy; again in 2m
        .. store 6: callback again
        stored 6
        wait 1m59s
        wait 7s
        @…
        .. store 7: take callbacks
        stored 7
        .. call back ops: cb_2710_2 …
        "#
    ));
}

#[test]
fn a_receiver_that_is_gone_parks_a_callback() {
    play(&format!(
        r#"
        {TASK}
        {ENDED}
        called-back 2 1 unwanted 410 Gone
        !! warn: callback `ops` was not delivered and is parked: 410 Gone; to send it again: outlast callbacks retry 2
        .. store 4: callback parked
        stored 4
        wait 2h
        "#
    ));
}

#[test]
fn a_callback_that_failed_for_a_day_is_parked() {
    let _bounds = reaches(&[Bound::CALLBACK_TRIED]);
    play(&format!(
        r#"
        {TASK}
        {ENDED}
        called-back 2 1 failed connection refused
        !! warn: callback `ops` was not delivered (1 attempt)…
        .. store 4: callback again
        stored 4
        wait 25h
        @…
        .. store 5: take callbacks
        stored 5
        .. call back ops: cb_2710_2 …
        .. store 6: take callbacks
        called-back 2 2 failed connection refused
        !! warn: callback `ops` was not delivered and is parked: connection refused; to send it again: outlast callbacks retry 2
        .. store 7: callback parked
        "#
    ));
}

#[test]
fn another_process_sends_what_was_not_sent() {
    play(&format!(
        r#"
        {TASK}
        {ENDED}
        again
        begin
        .. store 1: claim, expire
        # Only when the earlier process has had its time.
        wait 29s
        wait 5s
        @40s
        .. store 2: take callbacks
        stored 2
        .. call back ops: cb_2710_2 …
        "#
    ));
}

#[test]
fn an_unknown_callback_is_refused_with_those_that_are_known() {
    play(
        r#"
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","_meta":{"dev.outlast/callback":"opps"}}}
        << {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"Invalid params: unknown callback `opps` in _meta[\"dev.outlast/callback\"]; known are all, ops ([callbacks.NAME])"}}
        > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x","_meta":{"dev.outlast/callback":7}}}
        << …unknown callback `7`…
        "#,
    );
    // Whoever has none passes the name on: there may be another outlast behind.
    check(
        r#"
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","_meta":{"dev.outlast/callback":"opps"}}}
        >> …"dev.outlast/callback":"opps"…
        "#,
    );
}

/// A name can hold anything; it stays inside its text.
#[test]
fn hostile_names_stay_inside_their_texts() {
    play(
        r#"
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x\",\"status\":\"\u001b[2J\u202e","_meta":{"dev.outlast/callback":"ops","io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}}}
        >> …"method":"tools/call"…
        wait 10s
        @10s
        .. store 1: create
        stored 1
        << …"jsonrpc":"2.0"…
        < {"jsonrpc":"2.0","id":1,"result":{"resultType":"complete"}}
        .. store 2: completed, call back
        .. store 3: take callbacks
        stored 2
        stored 3
        .. call back ops: cb_2710_2 {"type":"call.completed",…"tool":"x\",\"status\":\"\u001b[2J…","status":"completed",…
        "#,
    );
}

#[test]
fn a_call_that_waits_for_a_person_says_so() {
    play(
        r#"
        set tool x=hold:true
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x",META}}
        .. store 1: hold
        stored 1
        !! info: …approve 1
        wait 10s
        @10s
        .. store 2: create
        stored 2
        .. store 3: call back
        .. store 4: take callbacks
        << …"taskId":"T1"…
        stored 3
        stored 4
        .. call back ops: cb_2710_3 {"type":"call.waiting_for_approval",…"status":"waiting_for_approval",…,"hold":{"number":1,"until":"1970-01-01T00:02:00.000Z"}}}
        "#,
    );
}

#[test]
fn a_call_that_waits_for_its_client_says_so_once() {
    play(&format!(
        r#"
        {TASK}
        < {{"jsonrpc":"2.0","id":1,"result":{{"resultType":"input_required","inputRequests":{{"a":{{"method":"elicitation/create","params":{{}}}},"b":{{"method":"elicitation/create","params":{{}}}}}}}}}}
        !! info: `srv` returns ids in another JSON type; accepted
        .. store 2: input_required, call back
        .. store 3: take callbacks
        stored 2
        stored 3
        .. call back ops: cb_2710_2 {{"type":"call.input_required",…
        "#
    ));
}
