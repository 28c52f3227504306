//! Calls that are resumed after a lost connection (SEP-975), row by row of the table in `calls/resume.rs`, and
//! what surrounds them.

use outlast_testkit::script::check;

/// A session that declared `resumableRequests`, on server 1; the next attempt is 2, the next stream 3.
const SESSION: &str = r#"
        post 1 HEAD {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"resumableRequests":{}}}}
        .. 1: start 0
        << 1: 200 with a session events
        << 1: id: 2-0|retry: 1000|data: ||
        >> 1: {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"resumableRequests":{}}}}
        started
        < {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}
        << 1: id: 2-1|data: {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{…
        << 1: finish
        post 2 HEAD session=1 {"jsonrpc":"2.0","method":"notifications/initialized"}
        << 2: 202
        >> 1: {"jsonrpc":"2.0","method":"notifications/initialized"}
"#;

/// A call that runs: id 7, attempt 2, stream 3, token T2; the next submission is 2.
const CALL: &str = r#"
        post 3 HEAD session=1 {"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"x","_meta":{"progressToken":"p"}}}
        << 3: 200 events
        << 3: id: 3-0|retry: 1000|data: ||
        .. store 1: create
        stored 1
        << 3: id: 3-1|data: {"jsonrpc":"2.0","method":"notifications/requests/resumePolicy","params":{"requestId":7,"resumeToken":"T2","minWait":1,"maxWait":…}}||
        >> 1: {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x","_meta":{"progressToken":2}}}
"#;

#[track_caller]
fn play(settings: &str, head: &str, scenario: &str) {
    let token = |number: u8| format!("{number:02x}").repeat(32);
    let scenario = scenario
        .replace("HEAD ", head)
        .replace("T1", &token(1))
        .replace("T2", &token(2))
        .replace("T3", &token(3))
        .replace("PROGRESS ", r#"{"jsonrpc":"2.0","method":"notifications/progress","params":"#);
    check(&format!("set serve\nset resumable\n{settings}\n{scenario}"));
}

#[track_caller]
fn in_session(settings: &str, scenario: &str) {
    play(settings, "", &format!("{SESSION}\n{scenario}"));
}

#[track_caller]
fn running(settings: &str, scenario: &str) {
    play(settings, "", &format!("{SESSION}\n{CALL}\n{scenario}"));
}

/// The same for a client with a token of its own.
#[track_caller]
fn running_as_ann(settings: &str, scenario: &str) {
    play(settings, "principal=ann ", &format!("{SESSION}\n{CALL}\n{scenario}"));
}

#[test]
fn a_policy_comes_first_and_after_it_is_stored() {
    in_session("", CALL.trim_end());
}

#[test]
fn a_call_that_cannot_be_stored_is_an_ordinary_one() {
    in_session(
        "",
        r#"
        post 3 session=1 {"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"x"}}
        << 3: 200 events
        << 3: id: 3-0|retry: 1000|data: ||
        .. store 1: create
        not-stored 1
        !! warn: could not be stored: disk full
        >> 1: {"jsonrpc":"2.0","id":2,…
        < {"jsonrpc":"2.0","id":2,"result":{}}
        << 3: id: 3-1|data: {"jsonrpc":"2.0","id":7,"result":{}}||
        << 3: finish
        "#,
    );
}

#[test]
fn an_answer_is_stored_before_it_is_given() {
    running(
        "",
        r#"
        < PROGRESS {"progressToken":2,"progress":1}}
        << 3: id: 3-2|data: PROGRESS {"progressToken":"p","progress":1}}||
        < {"jsonrpc":"2.0","id":2,"result":{"content":[],"n":1.0}}
        .. store 2: completed
        post 4 session=1 {"jsonrpc":"2.0","id":8,"method":"requests/getStatus","params":{"requestId":7,"resumeToken":"T2"}}
        << 4: 200 events
        << 4: id: 4-0|retry: 1000|data: ||
        << 4: id: 4-1|data: {"jsonrpc":"2.0","id":8,"result":{"requestId":7,"status":"processing","hasPendingMessage":false,"hasInputRequest":false}}||
        << 4: finish
        stored 2
        << 3: id: 3-3|data: {"jsonrpc":"2.0","id":7,"result":{"content":[],"n":1.0}}||
        << 3: finish
        "#,
    );
}

/// Two calls with one key, on streams 3 and 4; the second is still being stored when the first is answered.
const TWINS: &str = r#"
        post 3 session=1 {"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"x","idempotencyKey":"k"}}
        << 3: 200 events
        << 3: id: 3-0|retry: 1000|data: ||
        .. store 1: create
        stored 1
        << 3: id: 3-1|data: …"resumeToken":"T2"…
        >> 1: {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"_meta":{"progressToken":2},"name":"x","idempotencyKey":"k"}}
        post 4 session=1 {"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"x","idempotencyKey":"k"}}
        << 4: 200 events
        << 4: id: 4-0|retry: 1000|data: ||
        .. store 2: create
        < {"jsonrpc":"2.0","id":2,"result":{"content":[]}}
        .. store 3: completed
        stored 3
        << 3: id: 3-2|data: {"jsonrpc":"2.0","id":7,"result":{"content":[]}}||
        << 3: finish
"#;

#[test]
fn a_call_with_the_same_key_does_not_run_again_because_it_was_stored_late() {
    in_session(
        "",
        &format!(
            "{TWINS}{}",
            r#"
        stored 2
        .. store 4: completed
        stored 4
        << 4: id: 4-1|data: {"jsonrpc":"2.0","id":8,"result":{"content":[]}}||
        << 4: finish
        "#
        ),
    );
}

#[test]
fn a_call_with_the_same_key_does_not_run_again_because_it_could_not_be_stored() {
    in_session(
        "",
        &format!(
            "{TWINS}{}",
            r#"
        not-stored 2
        !! warn: could not be stored: disk full
        << 4: id: 4-1|data: {"jsonrpc":"2.0","id":8,"result":{"content":[]}}||
        << 4: finish
        "#
        ),
    );
}

#[test]
fn a_lost_connection_leaves_the_call_running() {
    running(
        "",
        r#"
        hang-up 3
        < PROGRESS {"progressToken":2,"progress":1}}
        post 4 session=1 {"jsonrpc":"2.0","id":8,"method":"requests/getStatus","params":{"requestId":7,"resumeToken":"T2"}}
        << 4: 200 events
        << 4: id: 4-0|retry: 1000|data: ||
        << 4: …{"requestId":7,"status":"processing","hasPendingMessage":true,"hasInputRequest":false}…
        << 4: finish
        < {"jsonrpc":"2.0","id":2,"result":{"content":[],"isError":true}}
        .. store 2: completed
        stored 2
        post 5 session=1 {"jsonrpc":"2.0","id":9,"method":"requests/getStatus","params":{"requestId":7,"resumeToken":"T2"}}
        << 5: 200 events
        << 5: id: 5-0|retry: 1000|data: ||
        << 5: …{"requestId":7,"status":"completed","hasPendingMessage":true,"hasInputRequest":false}…
        << 5: finish
        "#,
    );
}

#[test]
fn a_resume_brings_what_was_missed_then_what_comes_then_the_answer() {
    running(
        "",
        r#"
        < PROGRESS {"progressToken":2,"progress":1}}
        << 3: id: 3-2|…
        hang-up 3
        < PROGRESS {"progressToken":2,"progress":2}}
        wait 1s
        # The first progress was written, but nothing says that it arrived.
        post 4 session=1 last=3-1 {"jsonrpc":"2.0","id":7,"method":"requests/resume","params":{"resumeToken":"T2"}}
        << 4: 200 events
        << 4: id: 4-0|retry: 1000|data: ||
        << 4: id: 4-1|data: PROGRESS {"progressToken":"p","progress":1}}||
        << 4: id: 4-2|data: PROGRESS {"progressToken":"p","progress":2}}||
        < PROGRESS {"progressToken":2,"progress":3}}
        << 4: id: 4-3|data: PROGRESS {"progressToken":"p","progress":3}}||
        hang-up 4
        # What was confirmed is forgotten: a later resume that confirms nothing begins after it.
        post 5 session=1 {"jsonrpc":"2.0","id":7,"method":"requests/resume","params":{"resumeToken":"T2"}}
        << 5: 200 events
        << 5: id: 5-0|retry: 1000|data: ||
        << 5: id: 5-1|data: PROGRESS {"progressToken":"p","progress":1}}||
        << 5: id: 5-2|data: PROGRESS {"progressToken":"p","progress":2}}||
        << 5: id: 5-3|data: PROGRESS {"progressToken":"p","progress":3}}||
        < {"jsonrpc":"2.0","id":2,"result":{"content":[]}}
        .. store 2: completed
        stored 2
        << 5: id: 5-4|data: {"jsonrpc":"2.0","id":7,"result":{"content":[]}}||
        << 5: finish
        "#,
    );
}

#[test]
fn the_last_of_two_resumes_wins() {
    running(
        "",
        r#"
        post 4 session=1 last=3-1 {"jsonrpc":"2.0","id":7,"method":"requests/resume","params":{"resumeToken":"T2"}}
        << 4: 200 events
        << 4: id: 4-0|retry: 1000|data: ||
        << 3: finish
        hang-up 3
        < {"jsonrpc":"2.0","id":2,"result":{}}
        .. store 2: completed
        # Also while the answer is being stored.
        post 5 session=1 last=4-0 {"jsonrpc":"2.0","id":7,"method":"requests/resume","params":{"resumeToken":"T2"}}
        << 5: 200 events
        << 5: id: 5-0|retry: 1000|data: ||
        << 4: finish
        stored 2
        << 5: id: 5-1|data: {"jsonrpc":"2.0","id":7,"result":{}}||
        << 5: finish
        "#,
    );
}

#[test]
fn nobody_came_back_in_time() {
    running(
        "set resume-wait 60s\nset keep-alive off",
        r#"
        wait 50s
        hang-up 3
        < PROGRESS {"progressToken":2,"progress":1}}
        wait 59s
        wait 1s
        @1m50s
        .. store 2: cancelled
        >> 1: {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2,"reason":"nobody came back for it within 1m (resume-wait)"}}
        stored 2
        post 4 session=1 {"jsonrpc":"2.0","id":7,"method":"requests/resume","params":{"resumeToken":"T2"}}
        << 4: 200 events
        << 4: id: 4-0|retry: 1000|data: ||
        << 4: …"id":7,"error":{"code":-31010,…"kind":"ticket-unknown"…
        << 4: finish
        # Its stream is freed too.
        get 5 session=1 last=3-1
        << 5: 400 {"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad Request: Last-Event-ID names no event that is still kept for this session"}}
        "#,
    );
}

#[test]
fn a_call_that_somebody_reads_never_expires() {
    running(
        "set resume-wait 60s\nset keep-alive off\nset timeout 1h",
        r#"
        wait 10m
        # A GET takes a stream up as well as a resume does.
        hang-up 3
        wait 59s
        get 4 session=1 last=3-1
        << 4: 200 events
        << 4: : outlast|retry: 1000||
        wait 10m
        hang-up 4
        wait 60s
        @21m59s
        .. store 2: cancelled
        >> 1: …notifications/cancelled…
        "#,
    );
}

/// A client may have come back to another process, which says so from time to time.
#[test]
fn a_call_that_is_waited_for_elsewhere_never_expires() {
    running(
        "set resume-wait 60s\nset keep-alive off\nset timeout 1h",
        r#"
        hang-up 3
        wait 50s
        mailbox T2 wake
        wait 500ms
        @50s500ms
        .. store 2: collect
        stored 2
        wait 59s
        mailbox T2 wake
        wait 500ms
        @1m50s
        .. store 3: collect
        stored 3
        wait 60s
        @2m50s
        .. store 4: cancelled
        >> 1: …notifications/cancelled…
        "#,
    );
}

#[test]
fn both_questions_reset_the_wait() {
    running(
        "set resume-wait 60s\nset keep-alive off",
        r#"
        hang-up 3
        wait 50s
        post 4 session=1 {"jsonrpc":"2.0","id":8,"method":"requests/getStatus","params":{"requestId":7,"resumeToken":"T2"}}
        << 4: 200 events
        << 4: id: 4-0|retry: 1000|data: ||
        << 4: …"status":"processing"…
        << 4: finish
        wait 50s
        post 5 session=1 {"jsonrpc":"2.0","id":7,"method":"requests/resume","params":{"resumeToken":"T2"}}
        << 5: 200 events
        << 5: id: 5-0|retry: 1000|data: ||
        << 5: …resumePolicy…
        hang-up 5
        wait 59s
        wait 1s
        @2m40s
        .. store 2: cancelled
        >> …notifications/cancelled…
        "#,
    );
}

/// A cancel and a resume may cross: crash seed 5164 of the simulation, among others.
#[test]
fn a_cancel_ends_a_call_and_its_token() {
    running(
        "",
        r#"
        hang-up 3
        post 4 session=1 {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7,"reason":"enough"}}
        << 4: 202
        .. store 2: cancelled
        >> 1: {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2,"reason":"enough"}}
        < {"jsonrpc":"2.0","id":2,"result":{}}
        !! info: `srv` answered attempt 2, which has ended; dropped
        # An end is told once it is stored: if we ended now, another process would go on with the call.
        post 5 session=1 {"jsonrpc":"2.0","id":7,"method":"requests/resume","params":{"resumeToken":"T2"}}
        << 5: 200 events
        << 5: id: 4-0|retry: 1000|data: ||
        post 9 session=1 {"jsonrpc":"2.0","id":8,"method":"requests/getStatus","params":{"requestId":7,"resumeToken":"T2"}}
        << 9: 200 events
        << 9: id: 5-0|retry: 1000|data: ||
        << 9: id: 5-1|data: {"jsonrpc":"2.0","id":8,"result":{"requestId":7,"status":"processing","hasPendingMessage":false,"hasInputRequest":false}}||
        << 9: finish
        stored 2
        << 5: id: 4-1|data: {"jsonrpc":"2.0","id":7,"error":{"code":-32603,"message":"the call was cancelled"}}||
        << 5: finish
        post 6 session=1 {"jsonrpc":"2.0","id":7,"method":"requests/resume","params":{"resumeToken":"T2"}}
        << 6: 200 events
        << 6: id: 6-0|retry: 1000|data: ||
        << 6: …"kind":"ticket-unknown"…
        << 6: finish
        "#,
    );
}

#[test]
fn a_cancel_before_it_is_stored_reaches_no_server() {
    in_session(
        "",
        r#"
        post 3 session=1 {"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"x"}}
        << 3: 200 events
        << 3: id: 3-0|retry: 1000|data: ||
        .. store 1: create
        post 4 session=1 {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}
        << 4: 202
        << 3: finish
        stored 1
        .. store 2: cancelled
        stored 2
        "#,
    );
}

#[test]
fn a_finished_answer_waits_to_be_fetched() {
    running(
        "set task-ttl 1h\nset resume-wait 60s",
        r#"
        hang-up 3
        < PROGRESS {"progressToken":2,"progress":1}}
        < {"jsonrpc":"2.0","id":2,"result":{"content":[],"n":1.0}}
        .. store 2: completed
        stored 2
        wait 30s
        # What it said before comes first.
        post 4 session=1 last=3-1 {"jsonrpc":"2.0","id":7,"method":"requests/resume","params":{"resumeToken":"T2"}}
        << 4: 200 events
        << 4: id: 4-0|retry: 1000|data: ||
        << 4: id: 4-1|data: PROGRESS {"progressToken":"p","progress":1}}||
        << 4: id: 4-2|data: {"jsonrpc":"2.0","id":7,"result":{"content":[],"n":1.0}}||
        << 4: finish
        # The stream is forgotten, the answer is not.
        wait 59m
        @5m30s
        .. 1: close-input
        @5m31s
        .. 1: terminate
        @5m31s500ms
        .. 1: kill
        exited signal 9
        post 5 session=1 {"jsonrpc":"2.0","id":7,"method":"requests/resume","params":{"resumeToken":"T2"}}
        .. 2: start 0
        << 5: 200 events
        << 5: id: 5-0|retry: 1000|data: ||
        << 5: id: …|data: {"jsonrpc":"2.0","id":7,"result":{"content":[],"n":1.0}}||
        << 5: finish
        # And after `task-ttl` that is forgotten too.
        wait 1m
        @59m30s200ms
        .. let go of 1
        post 6 session=1 {"jsonrpc":"2.0","id":7,"method":"requests/resume","params":{"resumeToken":"T2"}}
        << 6: 200 events
        << 6: id: 6-0|retry: 1000|data: ||
        << 6: …"kind":"ticket-unknown"…
        << 6: finish
        "#,
    );
}

#[test]
fn a_finished_answer_outlives_its_session_and_our_process() {
    running_as_ann(
        "",
        r#"
        < {"jsonrpc":"2.0","id":2,"error":{"code":-5,"message":"no"}}
        .. store 2: failed
        stored 2
        << 3: …"id":7,"error":{"code":-5,"message":"no"}…
        << 3: finish
        again
        post 1 principal=ann {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"resumableRequests":{}}}}
        .. 1: start 0
        << 1: 200 with a session events
        << 1: id: 2-0|retry: 1000|data: ||
        >> 1: {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"resumableRequests":{}}}}
        post 2 principal=ann session=4 {"jsonrpc":"2.0","id":8,"method":"requests/getStatus","params":{"requestId":7,"resumeToken":"T2"}}
        << 2: 200 events
        << 2: id: 3-0|retry: 1000|data: ||
        << …{"requestId":7,"status":"failed","hasPendingMessage":true,"hasInputRequest":false}…
        << 2: finish
        post 3 principal=ann session=4 {"jsonrpc":"2.0","id":7,"method":"requests/resume","params":{"resumeToken":"T2"}}
        << 3: 200 events
        << 3: id: 4-0|retry: 1000|data: ||
        << 3: …{"jsonrpc":"2.0","id":7,"error":{"code":-5,"message":"no"}}||
        << 3: finish
        "#,
    );
}

#[test]
fn every_refusal_looks_the_same() {
    running_as_ann(
        "",
        r#"
        # A wrong token, and one that we would never have made.
        post 4 principal=ann session=1 {"jsonrpc":"2.0","id":7,"method":"requests/resume","params":{"resumeToken":"T3"}}
        << 4: 200 events
        << 4: id: 4-0|retry: 1000|data: ||
        << …"id":7,"error":{"code":-31010,"message":"this call cannot be resumed: there is none with this id and token, or it was cancelled, or nobody came back for it within resume-wait. Whether it ran is not known here.","data":{"outlast":{"kind":"ticket-unknown","server":"srv","method":"requests/resume","elapsedMs":0,"attempts":0,"serverState":"never-reached","retry":"pointless","signs":{},"help":"outlast help -31010"}}}}||
        << 4: finish
        post 5 principal=ann session=1 {"jsonrpc":"2.0","id":7,"method":"requests/resume","params":{"resumeToken":5}}
        << 5: 200 events
        << 5: id: 5-0|retry: 1000|data: ||
        << …"id":7,"error":{"code":-31010,"message":"this call cannot be resumed: there is none with this id and token, or it was cancelled, or nobody came back for it within resume-wait. Whether it ran is not known here.","data":{"outlast":{"kind":"ticket-unknown","server":"srv","method":"requests/resume","elapsedMs":0,"attempts":0,"serverState":"never-reached","retry":"pointless","signs":{},"help":"outlast help -31010"}}}}||
        << 5: finish
        # The right token under another id.
        post 6 principal=ann session=1 {"jsonrpc":"2.0","id":8,"method":"requests/resume","params":{"resumeToken":"T2"}}
        << 6: 200 events
        << 6: id: 6-0|retry: 1000|data: ||
        << …"id":8,"error":{"code":-31010,…
        << 6: finish
        post 7 principal=ann session=1 {"jsonrpc":"2.0","id":9,"method":"requests/getStatus","params":{"requestId":"7","resumeToken":"T2"}}
        << 7: 200 events
        << 7: id: 7-0|retry: 1000|data: ||
        << …"id":9,"error":{"code":-31010,…
        << 7: finish
        post 8 principal=ann session=1 {"jsonrpc":"2.0","id":9,"method":"requests/getStatus","params":{"resumeToken":"T2"}}
        << 8: 200 events
        << 8: id: 8-0|retry: 1000|data: ||
        << …"id":9,"error":{"code":-31010,…
        << 8: finish
        # The right token of somebody else.
        post 9 principal=bob {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"resumableRequests":{}}}}
        .. 2: start 0
        << 9: 200 with a session events
        << 9: id: 10-0|retry: 1000|data: ||
        >> 2: {"jsonrpc":"2.0","id":3,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"resumableRequests":{}}}}
        post 10 principal=bob session=3 {"jsonrpc":"2.0","id":7,"method":"requests/resume","params":{"resumeToken":"T2"}}
        << 10: 200 events
        << 10: id: 11-0|retry: 1000|data: ||
        << …"id":7,"error":{"code":-31010,…
        << 10: finish
        # And a call that goes on as if nothing had been.
        server-1 < {"jsonrpc":"2.0","id":2,"result":{}}
        .. store 6: completed
        stored 6
        << 3: …"id":7,"result":{}}||
        << 3: finish
        "#,
    );
}

#[test]
fn a_token_is_no_task_and_a_task_no_token() {
    running(
        "set tasks",
        r#"
        post 4 session=1 {"jsonrpc":"2.0","id":8,"method":"tasks/get","params":{"taskId":"T2"}}
        << 4: 200 events
        << 4: id: 4-0|retry: 1000|data: ||
        << …"id":8,"error":{"code":-32602,…
        << 4: finish
        post 5 session=1 {"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"x","task":{}}}
        << 5: 200 events
        << 5: id: 5-0|retry: 1000|data: ||
        .. store 3: create
        stored 3
        << …"taskId":"T3"…
        << 5: finish
        >> 1: {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"_meta":{"progressToken":3},"name":"x"}}
        post 6 session=1 {"jsonrpc":"2.0","id":9,"method":"requests/resume","params":{"resumeToken":"T3"}}
        << 6: 200 events
        << 6: id: 6-0|retry: 1000|data: ||
        << …"id":9,"error":{"code":-31010,…
        << 6: finish
        "#,
    );
}

#[test]
fn a_session_of_its_own_takes_its_calls_along_when_it_ends() {
    running(
        "",
        r#"
        delete 4 session=1
        .. store 2: cancelled
        >> 1: {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2,"reason":"the client hung up"}}
        << 3: finish
        .. 1: close-input
        << 4: 200
        stored 2
        "#,
    );
}

/// A principal with a name can come back in another session.
#[test]
fn a_call_outlives_the_session_of_a_principal() {
    running_as_ann(
        "",
        r#"
        delete 4 principal=ann session=1
        << 3: finish
        << 4: 200
        < PROGRESS {"progressToken":2,"progress":1}}
        < PROGRESS {"progressToken":2,"progress":2}}
        post 5 principal=ann {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"resumableRequests":{}}}}
        << 5: 200 with a session events
        << 5: id: 5-0|retry: 1000|data: ||
        << 5: id: 5-1|data: {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}||
        << 5: finish
        post 6 principal=ann session=3 {"jsonrpc":"2.0","id":7,"method":"requests/resume","params":{"resumeToken":"T2"}}
        << 6: 200 events
        << 6: id: 6-0|retry: 1000|data: ||
        << 6: …PROGRESS {"progressToken":"p","progress":2}}||
        < PROGRESS {"progressToken":2,"progress":3}}
        << 6: …PROGRESS {"progressToken":"p","progress":3}}||
        < {"jsonrpc":"2.0","id":2,"result":{}}
        .. store 2: completed
        stored 2
        << 6: …"id":7,"result":{}}||
        << 6: finish
        "#,
    );
}

#[test]
fn a_question_of_the_server_waits_for_whoever_comes_back() {
    running(
        "",
        r#"
        hang-up 3
        < {"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"sure?"}}
        .. store 2: input_required
        post 4 session=1 {"jsonrpc":"2.0","id":8,"method":"requests/getStatus","params":{"requestId":7,"resumeToken":"T2"}}
        << 4: 200 events
        << 4: id: 4-0|retry: 1000|data: ||
        << …{"requestId":7,"status":"processing","hasPendingMessage":true,"hasInputRequest":true}…
        << 4: finish
        post 5 session=1 last=3-1 {"jsonrpc":"2.0","id":7,"method":"requests/resume","params":{"resumeToken":"T2"}}
        << 5: 200 events
        << 5: id: 5-0|retry: 1000|data: ||
        << 5: …{"jsonrpc":"2.0","id":"1","method":"elicitation/create","params":{"message":"sure?"}}||
        post 6 session=1 {"jsonrpc":"2.0","id":"1","result":{"action":"accept"}}
        << 6: 202
        .. store 3: working
        >> 1: {"jsonrpc":"2.0","id":"q","result":{"action":"accept"}}
        "#,
    );
}

#[test]
fn what_a_server_says_during_its_only_call_is_kept_with_it() {
    running(
        "",
        r#"
        < {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}
        << 3: id: 3-2|…notifications/message…
        hang-up 3
        < {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":2}}
        post 4 session=1 last=3-2 {"jsonrpc":"2.0","id":7,"method":"requests/resume","params":{"resumeToken":"T2"}}
        << 4: 200 events
        << 4: id: 4-0|retry: 1000|data: ||
        << 4: id: 4-1|…"data":2}}||
        "#,
    );
}

#[test]
fn whoever_did_not_declare_it_gets_no_policy() {
    check(
        r#"
        set serve
        set resumable
        post 1 {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        .. 1: start 0
        << 1: 200 with a session events
        << 1: id: 2-0|retry: 1000|data: ||
        >> 1: {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        started
        < {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}
        << 1: id: 2-1|data: {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}||
        << 1: finish
        post 2 session=1 {"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"x"}}
        << 2: 200 events
        << 2: id: 3-0|retry: 1000|data: ||
        >> 1: {"jsonrpc":"2.0","id":2,…
        # What it may mean by that is for the server to say.
        post 3 session=1 {"jsonrpc":"2.0","id":7,"method":"requests/resume","params":{"resumeToken":"x"}}
        << 3: 200 events
        << 3: id: 4-0|retry: 1000|data: ||
        >> 1: {"jsonrpc":"2.0","id":3,"method":"requests/resume","params":{"resumeToken":"x"}}
        "#,
    );
}

/// A stdio client that declared `resumableRequests`; the next attempt is 2.
const LINE: &str = r#"
        > {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"resumableRequests":{}}}}
        >> {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"resumableRequests":{}}}}
        < {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}}
        << {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}}
        > {"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"x","_meta":{"progressToken":"p"}}}
"#;

#[track_caller]
fn on_a_line(settings: &str, scenario: &str) {
    let scenario = scenario.replace("T1", &"01".repeat(32));
    check(&format!(
        "{settings}
{LINE}
{scenario}"
    ));
}

#[test]
fn on_a_line_the_earlier_resume_is_superseded() {
    on_a_line(
        "set resumable",
        r#"
        .. store 1: create
        stored 1
        << {"jsonrpc":"2.0","method":"notifications/requests/resumePolicy","params":{"requestId":7,"resumeToken":"T1","minWait":1,"maxWait":600}}
        >> {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x","_meta":{"progressToken":2}}}
        < {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":2,"progress":1}}
        << …"progress":1}}
        < {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":2,"progress":2}}
        << …"progress":2}}
        > {"jsonrpc":"2.0","id":7,"method":"requests/resume","params":{"resumeToken":"T1"}}
        << {"jsonrpc":"2.0","id":7,"error":{"code":-31013,"message":"another requests/resume has taken this call over, and its answer goes there.","data":{"outlast":{"kind":"superseded",…
        << {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"p","progress":2}}
        > {"jsonrpc":"2.0","id":8,"method":"requests/getStatus","params":{"requestId":7,"resumeToken":"T1"}}
        << {"jsonrpc":"2.0","id":8,"result":{"requestId":7,"status":"processing","hasPendingMessage":false,"hasInputRequest":false}}
        < {"jsonrpc":"2.0","id":2,"result":{"content":[]}}
        .. store 2: completed
        stored 2
        << {"jsonrpc":"2.0","id":7,"result":{"content":[]}}
        > {"jsonrpc":"2.0","id":7,"method":"requests/resume","params":{"resumeToken":"T1"}}
        << {"jsonrpc":"2.0","id":7,"result":{"content":[]}}
        "#,
    );
}

#[test]
fn plain_wrap_mode_sends_no_policy() {
    on_a_line(
        "",
        r#"
        >> {"jsonrpc":"2.0","id":2,…
        < {"jsonrpc":"2.0","id":2,"result":{}}
        << {"jsonrpc":"2.0","id":7,"result":{}}
        "#,
    );
}

/// What today's SDKs take is an answer, and must end the call also where it is stored.
#[test]
fn an_answer_that_is_not_strict_json_ends_the_call() {
    on_a_line(
        "set resumable",
        r#"
        .. store 1: create
        stored 1
        << …resumePolicy…
        >> {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x","_meta":{"progressToken":2}}}
        < {"jsonrpc":"2.0","id":2,"result":{"n":NaN}}
        !! warn: `srv` sent an answer that is not strict JSON; passed on unchanged
        .. store 2: completed
        stored 2
        << {"jsonrpc":"2.0","id":7,"result":{"n":NaN}}
        "#,
    );
}

#[test]
fn a_call_to_a_server_that_is_gone_fails_once() {
    in_session(
        "set restart never",
        r#"
        post 3 session=1 {"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"x"}}
        << 3: 200 events
        << 3: id: 3-0|retry: 1000|data: ||
        .. store 1: create
        exited 1
        wait 1s
        @200ms
        !! warn: `srv` ended: exit status 1
        stored 1
        << 3: …resumePolicy…
        !! warn: server-gone server=srv method=tools/call tool=x elapsed=0s state=it never reached the server detail=exit status 1
        .. store 2: failed
        stored 2
        << 3: …{"jsonrpc":"2.0","id":7,"error":{"code":-31002,…
        << 3: finish
        "#,
    );
}

// As a client of a server that sends policies.

/// A stdio client whose call is at a remote server that sent a policy; attempt 2.
const REMOTE: &str = r#"
        > {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"roots":{}}}}
        >> post [begins session, ] {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"resumableRequests":{},"roots":{}}}}
        <~1 {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}
        << {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}
        > {"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"x","_meta":{"progressToken":"p"}}}
        >> post […] {"jsonrpc":"2.0","id":"2",…
        # The client behind us notices nothing of it.
        <~2 {"jsonrpc":"2.0","method":"notifications/requests/resumePolicy","params":{"requestId":"2","resumeToken":"s\"3cret","minWait":1,"maxWait":60}}
"#;

#[track_caller]
fn at_a_remote_server(settings: &str, scenario: &str) {
    check(&format!("set http\nset keep-alive off\n{settings}\n{REMOTE}\n{scenario}"));
}

#[test]
fn a_lost_stream_is_resumed_and_not_repeated() {
    at_a_remote_server(
        "",
        r#"
        <~2 {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":2,"progress":1}}
        << …"progress":1}}
        stream-ended 2 resumable
        wait 1s
        @1s
        >> post [mcp-protocol-version: 2025-11-25] {"jsonrpc":"2.0","id":"2","method":"requests/resume","params":{"resumeToken":"s\"3cret"}}
        <~2 {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":2,"progress":2}}
        << …"progress":2}}
        <~2 {"jsonrpc":"2.0","id":"2","result":{}}
        << {"jsonrpc":"2.0","id":"a","result":{}}
        "#,
    );
}

/// Whatever goes wrong with the resume, the call is at the server: it must not be sent a second time.
#[test]
fn a_resume_that_fails_is_tried_again() {
    at_a_remote_server(
        "",
        r#"
        stream-ended 2 resumable retry=2s
        wait 2s
        @2s
        >> …requests/resume…
        trouble 2 unreachable connection refused
        !! warn: cannot reach `srv`: connection refused
        !! warn: trying `srv` again in 2s: it cannot be reached
        wait 1s
        @3s
        >> …requests/resume…
        trouble 2 broken reset
        wait 2s
        @4s
        .. start 0
        @5s
        >> …requests/resume…
        trouble 2 status 503 after=4s
        wait 4s
        @9s
        >> …requests/resume…
        <~2 {"jsonrpc":"2.0","id":"2","result":{}}
        << {"jsonrpc":"2.0","id":"a","result":{}}
        "#,
    );
}

#[test]
fn what_the_server_does_not_know_any_more_is_gone() {
    at_a_remote_server(
        "",
        r#"
        stream-ended 2 resumable
        wait 1s
        @1s
        >> …requests/resume…
        <~2 {"jsonrpc":"2.0","id":"2","error":{"code":-31010,"message":"…"}}
        !! warn: server-gone server=srv method=tools/call tool=x elapsed=1s state=the server has ended detail=the connection broke, and it does not know the call any more
        << {"jsonrpc":"2.0","id":"a","error":{"code":-31002,"message":"server `srv` went away (the connection broke, and it does not know the call any more) before it answered `x`. The call may have run."…
        "#,
    );
}

#[test]
fn what_the_server_does_not_know_any_more_is_repeated_if_that_is_safe() {
    at_a_remote_server(
        "set tool x=repeatable:true",
        r#"
        stream-ended 2 resumable
        wait 1s
        @1s
        >> …requests/resume…
        <~2 {"jsonrpc":"2.0","id":"2","error":{"code":-31010,"message":"…"}}
        !! info: `tools/call` is sent to `srv` again (attempt 2): the connection broke
        wait 1s
        @…
        >> post […] {"jsonrpc":"2.0","id":"3","method":"tools/call",…
        # The policy was for the attempt before.
        stream-ended 3 resumable
        wait 2s
        @…
        .. reconnect 3
        "#,
    );
}

#[test]
fn nobody_is_resumed_beyond_max_wait() {
    at_a_remote_server(
        "",
        r#"
        stream-ended 2 resumable
        wait 1s
        @1s
        >> …requests/resume…
        wait 59s
        trouble 2 broken reset
        !! warn: server-gone server=srv method=tools/call tool=x elapsed=1m state=the server has ended detail=reset
        << {"jsonrpc":"2.0","id":"a","error":{"code":-31002,…
        .. abandon 2
        "#,
    );
}

#[test]
fn a_lost_session_does_not_repeat_what_was_being_resumed() {
    at_a_remote_server(
        "",
        r#"
        stream-ended 2 resumable
        wait 1s
        @1s
        >> …requests/resume…
        trouble 2 status 404 session {}
        !! warn: server-gone server=srv method=tools/call tool=x elapsed=1s state=the server has ended detail=it has forgotten our session
        << {"jsonrpc":"2.0","id":"a","error":{"code":-31002,…
        !! warn: trying `srv` again: it has forgotten our session
        .. abandon 2
        "#,
    );
}

/// A call that has a ticket of ours: the server's token is stored, and our client gets our policy.
#[test]
fn policies_of_both_sides_do_not_meet() {
    check(
        r#"
        set serve
        set http
        set resumable
        set keep-alive off
        post 1 {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"resumableRequests":{}}}}
        .. 1: start 0
        << 1: 200 with a session events
        << 1: id: 2-0|retry: 1000|data: ||
        >> 1: post …"capabilities":{"resumableRequests":{}}}}
        started
        <~1 {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}
        << 1: id: 2-1|data: {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}||
        << 1: finish
        post 2 session=1 {"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"x"}}
        << 2: 200 events
        << 2: id: 3-0|retry: 1000|data: ||
        .. store 1: create
        stored 1
        << 2: …"method":"notifications/requests/resumePolicy","params":{"requestId":7,…
        >> 1: post [mcp-protocol-version: 2025-11-25] {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"_meta":{"progressToken":2},"name":"x"}}
        <~2 {"jsonrpc":"2.0","method":"notifications/requests/resumePolicy","params":{"requestId":2,"resumeToken":"t"}}
        .. store 2: working
        stored 2
        hang-up 2
        stream-ended 2 resumable
        wait 1s
        @500ms
        >> 1: post […] {"jsonrpc":"2.0","id":2,"method":"requests/resume","params":{"resumeToken":"t"}}
        "#,
    );
}

/// Another process has the call; whoever comes back here waits for its answer.
#[test]
fn a_call_of_another_process_can_be_seen_and_waited_for() {
    running_as_ann(
        "",
        r#"
        again
        post 1 principal=ann {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"resumableRequests":{}}}}
        .. 1: start 0
        << 1: 200 with a session events
        << 1: id: 2-0|retry: 1000|data: ||
        >> 1: {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"resumableRequests":{}}}}
        post 2 principal=ann session=4 {"jsonrpc":"2.0","id":8,"method":"requests/getStatus","params":{"requestId":7,"resumeToken":"T2"}}
        << 2: 200 events
        << 2: id: 3-0|retry: 1000|data: ||
        .. store 2: mailbox
        << …{"requestId":7,"status":"processing","hasPendingMessage":false,"hasInputRequest":false}…
        << 2: finish
        post 3 principal=ann session=4 {"jsonrpc":"2.0","id":7,"method":"requests/resume","params":{"resumeToken":"T2"}}
        << 3: 200 events
        << 3: id: 4-0|retry: 1000|data: ||
        .. store 4: mailbox
        # Twice is no more than once.
        post 4 principal=ann session=4 {"jsonrpc":"2.0","id":7,"method":"requests/resume","params":{"resumeToken":"T2"}}
        << 4: 200 events
        << 4: id: 5-0|retry: 1000|data: ||
        << 3: finish
        # The other process is told as long as somebody waits.
        wait 12s
        @5s
        .. store 5: claim
        .. store 6: mailbox
        @10s
        .. store 7: claim
        .. store 8: mailbox
        "#,
    );
}

/// A table that nobody plays is a story.
#[test]
fn every_row_of_the_table_is_played() {
    outlast_testkit::play_table!(
        "../../src/calls/resume.rs":
        a_policy_comes_first_and_after_it_is_stored,
        a_call_that_cannot_be_stored_is_an_ordinary_one,
        an_answer_is_stored_before_it_is_given,
        a_lost_connection_leaves_the_call_running,
        a_resume_brings_what_was_missed_then_what_comes_then_the_answer,
        the_last_of_two_resumes_wins,
        on_a_line_the_earlier_resume_is_superseded,
        nobody_came_back_in_time,
        both_questions_reset_the_wait,
        a_cancel_ends_a_call_and_its_token,
        a_finished_answer_waits_to_be_fetched,
        every_refusal_looks_the_same,
    );
}

/// It is not a door's token, so what it means is for the service to say.
#[test]
fn a_door_does_not_resume_under_a_number_that_no_door_gave() {
    check(
        r#"
        set http
        set door
        > {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"resumableRequests":{}}}}
        >> post [begins session, ] {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"resumableRequests":{}}}}
        <~1 {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}
        << {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}
        > {"jsonrpc":"2.0","method":"notifications/initialized"}
        >> post [mcp-protocol-version: 2025-11-25] {"jsonrpc":"2.0","method":"notifications/initialized"}
        .. stand
        > {"jsonrpc":"2.0","id":7,"method":"requests/resume","params":{"resumeToken":"12..token"}}
        >> post [mcp-protocol-version: 2025-11-25] {"jsonrpc":"2.0","id":12,"method":"requests/resume","params":{"resumeToken":"token"}}
        > {"jsonrpc":"2.0","id":8,"method":"requests/resume","params":{"resumeToken":"1099511627776..token"}}
        >> post [mcp-protocol-version: 2025-11-25] {"jsonrpc":"2.0","id":2,"method":"requests/resume","params":{"resumeToken":"1099511627776..token"}}
        wait 1s
        <~2 {"jsonrpc":"2.0","id":2,"error":{"code":-32602,"message":"Invalid params: no such request"}}
        << {"jsonrpc":"2.0","id":8,"error":{"code":-32602,"message":"Invalid params: no such request"}}
        "#,
    );
}
