//! Calls of a principal that another device of it finds, resumes, or follows to their ends.

use outlast_testkit::script::check;

/// Ann's laptop: session 1, stream 1; a call runs there: id 7, attempt 2, token T2. The next submission is 2.
const LAPTOP: &str = r#"
        post 1 principal=ann {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"resumableRequests":{}}}}
        .. 1: start 0
        << 1: 200 with a session events
        << 1: …|retry: 1000|data: ||
        >> 1: …"method":"initialize"…
        started
        < {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}
        << 1: …"jsonrpc":"2.0"…
        << 1: finish
        post 2 principal=ann session=1 {"jsonrpc":"2.0","method":"notifications/initialized"}
        << 2: 202
        >> 1: …"method":"notifications/initialized"…
        post 3 principal=ann session=1 {"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"x"}}
        << 3: 200 events
        << 3: …|retry: 1000|data: ||
        .. store 1: create
        stored 1
        << 3: …resumePolicy…
        >> 1: …"method":"tools/call"…
"#;

/// Her phone: session 3, with a stream that stands.
const PHONE: &str = r#"
        post 4 principal=ann {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"resumableRequests":{}}}}
        << 4: 200 with a session events
        << 4: …|retry: 1000|data: ||
        << 4: …"jsonrpc":"2.0"…
        << 4: finish
        get 5 principal=ann session=3
        << 5: 200 events
        << 5: : outlast|retry: 1000||
"#;

#[track_caller]
fn play(scenario: &str) {
    let token = |number: u8| format!("{number:02x}").repeat(32);
    let scenario = scenario.replace("T2", &token(2));
    check(&format!("set serve\nset resumable\n{scenario}"));
}

#[test]
fn another_device_finds_a_call_and_resumes_it_under_an_id_of_its_own() {
    play(&format!(
        r#"
        {LAPTOP}
        {PHONE}
        post 6 principal=ann session=3 {{"jsonrpc":"2.0","id":7,"method":"dev.outlast/requests/getStatus/all"}}
        << 6: 200 events
        << 6: …|retry: 1000|data: ||
        << 6: …{{"jsonrpc":"2.0","id":7,"result":{{"requests":[{{"requestId":7,"resumeToken":"T2","method":"tools/call","name":"x","createdAt":"1970-01-01T00:00:00.000Z","status":"processing","hasPendingMessage":false,"hasInputRequest":false}}]}}}}||
        << 6: finish
        # Nothing was taken over by that.
        post 7 principal=ann session=3 {{"jsonrpc":"2.0","id":8,"method":"requests/resume","params":{{"requestId":7,"resumeToken":"T2"}}}}
        << 7: 200 events
        << 7: …|retry: 1000|data: ||
        << 3: finish
        # What was not confirmed comes again.
        << 7: …resumePolicy…
        < {{"jsonrpc":"2.0","id":2,"result":{{"n":1.0}}}}
        .. store 3: completed
        stored 3
        << 7: …"id":8,"result":{{"n":1.0}}}}||
        << 7: finish
        "#
    ));
}

#[test]
fn whoever_follows_all_calls_is_told_of_each_end() {
    play(&format!(
        r#"
        {LAPTOP}
        {PHONE}
        post 6 principal=ann session=3 {{"jsonrpc":"2.0","id":2,"method":"dev.outlast/requests/resume/all"}}
        << 6: 200 events
        << 6: …|retry: 1000|data: ||
        << 6: …"requests":[{{"requestId":7,"resumeToken":"T2",…
        << 6: finish
        < {{"jsonrpc":"2.0","id":2,"error":{{"code":-5,"message":"no"}}}}
        .. store 3: failed
        stored 3
        # The laptop has its answer, too.
        << 3: …"id":7,"error":{{"code":-5,"message":"no"}}}}||
        << 3: finish
        << 5: …{{"jsonrpc":"2.0","method":"dev.outlast/requests/ended","params":{{"requestId":7,"resumeToken":"T2","error":{{"code":-5,"message":"no"}}}}}}||
        "#
    ));
}

/// What has ended is read from the store, also by another process.
#[test]
fn a_call_that_has_ended_is_told_at_once_and_after_a_restart() {
    play(&format!(
        r#"
        {LAPTOP}
        < {{"jsonrpc":"2.0","id":2,"result":{{"n":1.0}}}}
        .. store 2: completed
        stored 2
        << 3: …"jsonrpc":"2.0"…
        << 3: finish
        again
        post 4 principal=ann {{"jsonrpc":"2.0","id":1,"method":"initialize","params":{{"protocolVersion":"2025-11-25","capabilities":{{"resumableRequests":{{}}}}}}}}
        .. 1: start 0
        << 4: 200 with a session events
        << 4: …|retry: 1000|data: ||
        >> 1: …"method":"initialize"…
        started
        < {{"jsonrpc":"2.0","id":1,"result":{{"protocolVersion":"2025-11-25","capabilities":{{}}}}}}
        << 4: …"jsonrpc":"2.0"…
        << 4: finish
        get 5 principal=ann session=4
        << 5: 200 events
        << 5: : outlast|retry: 1000||
        post 6 principal=ann session=4 {{"jsonrpc":"2.0","id":2,"method":"dev.outlast/requests/resume/all"}}
        << 6: 200 events
        << 6: …|retry: 1000|data: ||
        << 6: …"requestId":7,"resumeToken":"T2",…"status":"completed","hasPendingMessage":true,…
        << 6: finish
        wait 1s
        @…
        << 5: …{{"jsonrpc":"2.0","method":"dev.outlast/requests/ended","params":{{"requestId":7,"resumeToken":"T2","result":{{"n":1.0}}}}}}||
        "#
    ));
}

#[test]
fn a_ticket_of_another_principal_never_shows() {
    play(&format!(
        r#"
        {LAPTOP}
        post 4 principal=bob {{"jsonrpc":"2.0","id":1,"method":"initialize","params":{{"protocolVersion":"2025-11-25","capabilities":{{"resumableRequests":{{}}}}}}}}
        .. 2: start 0
        << 4: 200 with a session events
        << 4: …|retry: 1000|data: ||
        >> 2: …"method":"initialize"…
        post 5 principal=bob session=3 {{"jsonrpc":"2.0","id":2,"method":"dev.outlast/requests/getStatus/all"}}
        << 5: 200 events
        << 5: …|retry: 1000|data: ||
        << 5: …"id":2,"result":{{"requests":[]}}}}||
        << 5: finish
        "#
    ));
}

#[test]
fn without_a_name_nobody_sees_all_calls() {
    play(
        r#"
        post 1 {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"resumableRequests":{}}}}
        .. 1: start 0
        << 1: 200 with a session events
        << 1: …|retry: 1000|data: ||
        >> 1: …"method":"initialize"…
        post 2 session=1 {"jsonrpc":"2.0","id":2,"method":"dev.outlast/requests/getStatus/all"}
        << 2: 200 events
        << 2: …|retry: 1000|data: ||
        << 2: …"id":2,"error":{"code":-32601,"message":"Method not found: dev.outlast/requests/getStatus/all needs authentication: without a token (--token-file) nobody knows whose calls are whose"}}||
        << 2: finish
        "#,
    );
}

#[test]
fn a_call_that_is_followed_is_not_given_up() {
    play(&format!(
        r#"
        set resume-wait 1m
        {LAPTOP}
        {PHONE}
        hang-up 3
        post 6 principal=ann session=3 {{"jsonrpc":"2.0","id":2,"method":"dev.outlast/requests/resume/all"}}
        << 6: 200 events
        << 6: …|retry: 1000|data: ||
        << 6: …"jsonrpc":"2.0"…
        << 6: finish
        wait 3m
        < {{"jsonrpc":"2.0","id":2,"result":{{}}}}
        .. store 3: completed
        stored 3
        << 5: …dev.outlast/requests/ended…
        "#
    ));
}
