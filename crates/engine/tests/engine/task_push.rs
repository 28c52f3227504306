//! Modern tasks that are listened to, and what their servers ask.

use outlast_testkit::script::check;

const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}"#;
const PLAIN: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
const LISTEN: &str = "version=2026-07-28 method=subscriptions/listen";
const SUBSCRIPTION: &str = r#""_meta":{"io.modelcontextprotocol/subscriptionId":"l"}"#;
const T1: &str = "0101010101010101010101010101010101010101010101010101010101010101";
const T9: &str = "0909090909090909090909090909090909090909090909090909090909090909";

#[track_caller]
fn modern(settings: &str, scenario: &str) {
    let scenario = scenario
        .replace("T1", T1)
        .replace("T9", T9)
        .replace("META", META)
        .replace("PLAIN", PLAIN)
        .replace("LISTEN", LISTEN)
        .replace("SUBSCRIPTION", SUBSCRIPTION);
    check(&format!("set tasks\n{settings}\n{scenario}"));
}

/// A task that runs in serve mode: attempt 1, ticket T1; the next submission is 2.
const RUNNING: &str = r#"
        post 1 version=2026-07-28 method=tools/call name=x {"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"x",META}}
        .. 1: start 0
        >> 1: {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","_meta":{"progressToken":1,"io.modelcontextprotocol/protocolVersion":"2026-07-28",…
        started
        wait 10s
        @500ms
        << 1: 200 events
        << 1: : outlast||
        @10s
        .. store 1: create
        stored 1
        << 1: data: {"jsonrpc":"2.0","id":5,"result":{"createdAt":"1970-01-01T00:00:00.000Z","lastUpdatedAt":"1970-01-01T00:00:10.000Z","pollIntervalMs":1000,"resultType":"task",…
        << 1: finish
"#;

#[track_caller]
fn running(settings: &str, scenario: &str) {
    modern(&format!("set serve\n{settings}"), &format!("{RUNNING}\n{scenario}"));
}

#[test]
fn a_listen_for_tasks_alone_is_ours() {
    running(
        "",
        r#"
        post 2 LISTEN {"jsonrpc":"2.0","id":"l","method":"subscriptions/listen","params":{"notifications":{"taskIds":["T1","T9","zz","T1"]},META}}
        << 2: 200 events
        << 2: : outlast||
        << 2: data: {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{SUBSCRIPTION,"notifications":{"taskIds":["T1"]}}}||
        < {"jsonrpc":"2.0","id":1,"result":{"content":[],"n":1.0}}
        .. store 3: completed
        # An end is told when it is stored.
        stored 3
        << 2: data: {"jsonrpc":"2.0","method":"notifications/tasks","params":{SUBSCRIPTION,"createdAt":"1970-01-01T00:00:00.000Z","lastUpdatedAt":"1970-01-01T00:00:10.000Z","pollIntervalMs":1000,"status":"completed","taskId":"T1","ttlMs":90000000,"result":{"content":[],"n":1.0}}}||
        # One that listens later is told what it missed.
        post 3 LISTEN {"jsonrpc":"2.0","id":"l","method":"subscriptions/listen","params":{"notifications":{"taskIds":["T1"]},META}}
        << 3: 200 events
        << 3: : outlast||
        << 3: …acknowledged…"taskIds":["T1"]…
        << 3: data: {"jsonrpc":"2.0","method":"notifications/tasks","params":{SUBSCRIPTION,…"status":"completed"…"result":{"content":[],"n":1.0}}}||
        # The server knows of neither.
        hang-up 2
        hang-up 3
        wait 5m
        @…
        .. 1: close-input
        "#,
    );
}

#[test]
fn a_listen_for_more_goes_to_the_server_without_our_tasks() {
    running(
        "",
        r#"
        post 2 LISTEN {"jsonrpc":"2.0","id":"l","method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true,"taskIds":["T1"]},META}}
        << 2: 200 events
        << 2: : outlast||
        >> 1: {"jsonrpc":"2.0","id":"2","method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},META}}
        < {"jsonrpc":"2.0","id":1,"error":{"code":-9,"message":"no"}}
        .. store 2: failed
        # Nothing before the acknowledgement.
        stored 2
        < {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"2"},"notifications":{"toolsListChanged":true}}}
        << 2: data: {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{SUBSCRIPTION,"notifications":{"taskIds":["T1"],"toolsListChanged":true}}}||
        << 2: data: {"jsonrpc":"2.0","method":"notifications/tasks","params":{SUBSCRIPTION,…"status":"failed"…,"error":{"code":-9,"message":"no"}}}||
        < {"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"2"}}}
        << 2: data: {"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{SUBSCRIPTION}}||
        hang-up 2
        >> 1: …notifications/cancelled…
        "#,
    );
}

#[test]
fn listening_to_tasks_needs_the_extension_and_the_callers_own() {
    running(
        "",
        r#"
        post 2 LISTEN {"jsonrpc":"2.0","id":"l","method":"subscriptions/listen","params":{"notifications":{"taskIds":["T1"]},PLAIN}}
        << 2: 400 {"jsonrpc":"2.0","id":"l","error":{"code":-32021,…
        post 3 principal=bob LISTEN {"jsonrpc":"2.0","id":"l","method":"subscriptions/listen","params":{"notifications":{"taskIds":["T1"]},META}}
        .. 2: start 0
        << 3: 200 events
        << 3: : outlast||
        << 3: …acknowledged…"taskIds":[]…
        "#,
    );
}

#[test]
fn a_header_that_names_another_task_is_refused() {
    running(
        "",
        r#"
        post 2 version=2026-07-28 method=tasks/get name=T9 {"jsonrpc":"2.0","id":6,"method":"tasks/get","params":{"taskId":"T1",META}}
        << 2: 400 {"jsonrpc":"2.0","id":6,"error":{"code":-32020,…
        post 3 version=2026-07-28 method=tasks/update {"jsonrpc":"2.0","id":6,"method":"tasks/update","params":{"taskId":"T1",META}}
        << 3: 400 {"jsonrpc":"2.0","id":6,"error":{"code":-32020,…
        "#,
    );
}

#[test]
fn a_listen_on_stdio_is_taken_back() {
    modern(
        "",
        r#"
        > {"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"x",META}}
        >> {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","_meta":{"progressToken":1,"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}}}
        wait 10s
        @10s
        .. store 1: create
        stored 1
        << {"jsonrpc":"2.0","id":5,"result":{"createdAt":"1970-01-01T00:00:00.000Z","lastUpdatedAt":"1970-01-01T00:00:10.000Z","pollIntervalMs":1000,"resultType":"task","status":"working","taskId":"T1","ttlMs":90000000}}
        > {"jsonrpc":"2.0","id":"l","method":"subscriptions/listen","params":{"notifications":{"taskIds":["T1"]},META}}
        << {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{SUBSCRIPTION,"notifications":{"taskIds":["T1"]}}}
        > {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"l"}}
        < {"jsonrpc":"2.0","id":1,"result":{}}
        .. store 2: completed
        stored 2
        "#,
    );
}

#[test]
fn a_request_of_the_server_is_shown_by_its_task_until_it_is_answered() {
    running(
        "",
        r#"
        post 2 LISTEN {"jsonrpc":"2.0","id":"l","method":"subscriptions/listen","params":{"notifications":{"taskIds":["T1"]},META}}
        << 2: 200 events
        << 2: : outlast||
        << 2: data: {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"l"},…
        < {"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"sure?"}}
        .. store 2: input_required
        stored 2
        << 2: data: {…"method":"notifications/tasks"…"status":"input_required"…"inputRequests":{"1-1":{"method":"elicitation/create","params":{"message":"sure?"}}}}}||
        < {"jsonrpc":"2.0","id":"r","method":"roots/list"}
        .. store 3: input_required
        stored 3
        << 2: data: {…"inputRequests":{"1-1":{…},"1-2":{"method":"roots/list"}}}}||
        post 3 version=2026-07-28 method=tasks/get name=T1 {"jsonrpc":"2.0","id":6,"method":"tasks/get","params":{"taskId":"T1",META}}
        << 3: 200 {"jsonrpc":"2.0","id":6,"result":{…"status":"input_required"…"inputRequests":{"1-1":{…},"1-2":{"method":"roots/list"}}}}
        # One after the other; what nobody asked is ignored.
        post 4 version=2026-07-28 method=tasks/update name=T1 {"jsonrpc":"2.0","id":7,"method":"tasks/update","params":{"taskId":"T1","inputResponses":{"1-2":{"roots":[]},"9-9":{}},META}}
        .. store 4: input_required
        >> 1: {"jsonrpc":"2.0","id":"r","result":{"roots":[]}}
        .. store 5: input_required
        << 4: 200 {"jsonrpc":"2.0","id":7,"result":{"resultType":"complete"}}
        stored 4
        << 2: …"inputRequests":{"1-1":{"method":"elicitation/create","params":{"message":"sure?"}}}}}||
        stored 5
        << 2: data: {"jsonrpc":"2.0","method":"notifications/tasks","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"l"},"createdAt":"1970-01-01T00:00:00.000Z",…
        post 5 version=2026-07-28 method=tasks/update name=T1 {"jsonrpc":"2.0","id":7,"method":"tasks/update","params":{"taskId":"T1","inputResponses":{"1-1":{"action":"accept","n":1.0},"1-2":{"roots":[]}},META}}
        .. store 6: working
        >> 1: {"jsonrpc":"2.0","id":"q","result":{"action":"accept","n":1.0}}
        << 5: 200 {"jsonrpc":"2.0","id":7,"result":{"resultType":"complete"}}
        stored 6
        << 2: …"status":"working"…
        # Another question, another key; the server takes it back.
        < {"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{}}
        .. store 7: input_required
        stored 7
        << 2: …"inputRequests":{"1-3":{…
        < {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"q"}}
        .. store 8: working
        stored 8
        << 2: …"status":"working"…
        # Nobody answers any more: the server is told.
        < {"jsonrpc":"2.0","id":"s","method":"elicitation/create","params":{}}
        .. store 9: input_required
        stored 9
        << 2: …"inputRequests":{"1-4":{…
        post 6 version=2026-07-28 method=tasks/cancel name=T1 {"jsonrpc":"2.0","id":8,"method":"tasks/cancel","params":{"taskId":"T1",META}}
        .. store 10: cancelled
        >> 1: {"jsonrpc":"2.0","id":"s","error":{"code":-32603,"message":"the task that this was asked for has ended"}}
        >> 1: …notifications/cancelled…
        stored 10
        << 2: …"status":"cancelled"…
        << 6: 200 {"jsonrpc":"2.0","id":8,"result":{"resultType":"complete"}}
        "#,
    );
}

#[test]
fn a_result_that_asks_is_shown_by_its_task_and_the_call_goes_on_with_the_answers() {
    running(
        "set timeout 20s",
        r#"
        < {"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","inputRequests":{"a":{"method":"elicitation/create","params":{}},"b":{"method":"roots/list"}},"requestState":"s\u0031"}}
        .. store 2: input_required
        stored 2
        # A person may take their time.
        wait 10m
        post 3 version=2026-07-28 method=tasks/get name=T1 {"jsonrpc":"2.0","id":6,"method":"tasks/get","params":{"taskId":"T1",META}}
        << 3: 200 {…"status":"input_required"…"inputRequests":{"1-1":{"method":"elicitation/create","params":{}},"1-2":{"method":"roots/list"}}}}
        post 4 version=2026-07-28 method=tasks/update name=T1 {"jsonrpc":"2.0","id":7,"method":"tasks/update","params":{"taskId":"T1","inputResponses":{"1-1":{"action":"accept"}},META}}
        .. store 3: input_required
        << 4: 200 {"jsonrpc":"2.0","id":7,"result":{"resultType":"complete"}}
        post 5 version=2026-07-28 method=tasks/update name=T1 {"jsonrpc":"2.0","id":7,"method":"tasks/update","params":{"taskId":"T1","inputResponses":{"1-2":{"roots":[]}},META}}
        .. store 4: working
        >> 1: {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"inputResponses":{"a":{"action":"accept"},"b":{"roots":[]}},"requestState":"s\u0031","name":"x","_meta":{"progressToken":2,…
        << 5: 200 {"jsonrpc":"2.0","id":7,"result":{"resultType":"complete"}}
        # The next round has keys of its own.
        < {"jsonrpc":"2.0","id":2,"result":{"resultType":"input_required","inputRequests":{"a":{"method":"elicitation/create"}}}}
        .. store 5: input_required
        post 6 version=2026-07-28 method=tasks/get name=T1 {"jsonrpc":"2.0","id":6,"method":"tasks/get","params":{"taskId":"T1",META}}
        << 6: 200 {…"inputRequests":{"1-3":{"method":"elicitation/create"}}}}
        post 7 version=2026-07-28 method=tasks/update name=T1 {"jsonrpc":"2.0","id":7,"method":"tasks/update","params":{"taskId":"T1","inputResponses":{"1-3":{"action":"decline"}},META}}
        .. store 6: working
        >> 1: {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"inputResponses":{"a":{"action":"decline"}},"name":"x",…
        << 7: 200 {"jsonrpc":"2.0","id":7,"result":{"resultType":"complete"}}
        # It only wants to be called again, after a moment.
        < {"jsonrpc":"2.0","id":3,"result":{"resultType":"input_required","requestState":"s2"}}
        wait 1s100ms
        @…
        >> 1: {"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"requestState":"s2","name":"x",…
        < {"jsonrpc":"2.0","id":4,"result":{"resultType":"complete","content":[]}}
        .. store 7: completed
        stored 7
        "#,
    );
}

#[test]
fn what_the_servers_own_task_asks_is_shown_by_ours() {
    running(
        "",
        r#"
        < {"jsonrpc":"2.0","id":1,"result":{"resultType":"task","taskId":"s-1","status":"input_required"}}
        .. store 2: working
        stored 2
        tick
        >> 1: …"id":2,"method":"tasks/get"…
        < {"jsonrpc":"2.0","id":2,"result":{"taskId":"s-1","status":"input_required","pollIntervalMs":60000,"inputRequests":{"k":{"method":"roots/list"}}}}
        .. store 3: input_required
        post 3 version=2026-07-28 method=tasks/get name=T1 {"jsonrpc":"2.0","id":6,"method":"tasks/get","params":{"taskId":"T1",META}}
        << 3: 200 {…"status":"input_required"…"inputRequests":{"1-1":{"method":"roots/list"}}}}
        post 4 version=2026-07-28 method=tasks/update name=T1 {"jsonrpc":"2.0","id":7,"method":"tasks/update","params":{"taskId":"T1","inputResponses":{"1-1":{"roots":[]}},META}}
        >> 1: {"jsonrpc":"2.0","id":3,"method":"tasks/update","params":{"taskId":"s-1","inputResponses":{"k":{"roots":[]}},META}}
        .. store 4: working
        << 4: 200 {"jsonrpc":"2.0","id":7,"result":{"resultType":"complete"}}
        wait 67s
        @…
        >> 1: …"id":4,"method":"tasks/get"…
        # Still shown there, answered here.
        < {"jsonrpc":"2.0","id":4,"result":{"taskId":"s-1","status":"input_required","pollIntervalMs":1000,"inputRequests":{"k":{"method":"roots/list"}}}}
        post 5 version=2026-07-28 method=tasks/get name=T1 {"jsonrpc":"2.0","id":6,"method":"tasks/get","params":{"taskId":"T1",META}}
        << 5: 200 {…"status":"working"…
        wait 2s
        @…
        >> 1: …"id":5,"method":"tasks/get"…
        < {"jsonrpc":"2.0","id":5,"result":{"taskId":"s-1","status":"completed","result":{}}}
        .. store 5: completed
        stored 5
        "#,
    );
}

#[test]
fn what_a_task_asks_is_shown_by_other_processes_too() {
    running(
        "",
        r#"
        < {"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"sure?"}}
        .. store 2: input_required
        stored 2
        beside
        post 2 version=2026-07-28 method=tasks/get name=T1 {"jsonrpc":"2.0","id":6,"method":"tasks/get","params":{"taskId":"T1",META}}
        .. 1: start 0
        .. store 2: claim
        << 2: 200 {…"status":"input_required"…"inputRequests":{"1-1":{"method":"elicitation/create","params":{"message":"sure?"}}}}}
        "#,
    );
}

/// Its server is asked again, under a key that no earlier question has.
#[test]
fn what_a_dead_process_was_asked_is_not_asked_any_more() {
    running(
        "set tool x=repeatable:true",
        r#"
        < {"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"sure?"}}
        .. store 2: input_required
        stored 2
        again
        begin
        .. store 1: claim, expire
        stored 1
        .. store 3: working
        .. 1: start 0
        >> 1: …"method":"tools/call"…
        stored 3
        post 2 version=2026-07-28 method=tasks/get name=T1 {"jsonrpc":"2.0","id":6,"method":"tasks/get","params":{"taskId":"T1",META}}
        << 2: 200 {…"status":"working"…
        started
        < {"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"sure?"}}
        .. store 4: input_required
        stored 4
        beside
        post 3 version=2026-07-28 method=tasks/get name=T1 {"jsonrpc":"2.0","id":6,"method":"tasks/get","params":{"taskId":"T1",META}}
        .. 1: start 0
        .. store 2: claim
        << 3: 200 {…"inputRequests":{"2-1":{"method":"elicitation/create","params":{"message":"sure?"}}}}}
        "#,
    );
}

#[test]
fn a_task_of_another_process_is_listened_to() {
    running(
        "",
        r#"
        beside
        post 2 LISTEN {"jsonrpc":"2.0","id":"l","method":"subscriptions/listen","params":{"notifications":{"taskIds":["T1"]},META}}
        .. 1: start 0
        << 2: 200 events
        << 2: : outlast||
        .. store 2: claim
        << 2: …acknowledged…"taskIds":["T1"]…
        wait 1s
        @10s500ms
        .. store 3: claim
        theirs T1 input_required
        wait 500ms
        @11s500ms
        << 2: data: {…"method":"notifications/tasks","params":{SUBSCRIPTION,…"status":"input_required"…
        wait 1s
        theirs T1 completed {"n":1.0}
        wait 500ms
        @13s
        << 2: data: {…"method":"notifications/tasks","params":{SUBSCRIPTION,…"status":"completed"…"result":{"n":1.0}}}||
        "#,
    );
}

#[test]
fn whoever_waits_for_another_processs_task_leaves_it_to_those_who_listen() {
    modern(
        "",
        r#"
        > {"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"x",META}}
        >> {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","_meta":{"progressToken":1,"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}}}
        wait 10s
        @10s
        .. store 1: create
        stored 1
        << {"jsonrpc":"2.0","id":5,"result":{"createdAt":"1970-01-01T00:00:00.000Z","lastUpdatedAt":"1970-01-01T00:00:10.000Z","pollIntervalMs":1000,"resultType":"task","status":"working","taskId":"T1","ttlMs":90000000}}
        beside
        > {"jsonrpc":"2.0","id":"l","method":"subscriptions/listen","params":{"notifications":{"taskIds":["T1"]},META}}
        .. store 2: claim
        << …acknowledged…"taskIds":["T1"]…
        > {"jsonrpc":"2.0","id":7,"method":"tasks/cancel","params":{"taskId":"T1",META}}
        .. store 3: mailbox
        > {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}
        theirs T1 completed {"n":1.0}
        wait 500ms
        @10s500ms
        .. store 4: claim
        << …"method":"notifications/tasks"…"status":"completed"…
        # Nobody listens: nothing is watched.
        > {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"l"}}
        wait 1m
        "#,
    );
}

#[test]
fn an_answer_for_another_process_is_confirmed_when_its_message_is_stored() {
    running(
        "",
        r#"
        < {"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{}}
        .. store 2: input_required
        stored 2
        beside
        post 2 version=2026-07-28 method=tasks/update name=T1 {"jsonrpc":"2.0","id":7,"method":"tasks/update","params":{"taskId":"T1","inputResponses":{"1-1":{}},META}}
        .. 1: start 0
        .. store 2: claim
        .. store 3: mailbox
        # Another answer, whose mailbox message is lost.
        post 3 version=2026-07-28 method=tasks/update name=T1 {"jsonrpc":"2.0","id":8,"method":"tasks/update","params":{"taskId":"T1","inputResponses":{"1-1":{}},META}}
        .. store 4: mailbox
        not-stored 4
        !! warn: could not be stored: disk full
        << 3: 200 {"jsonrpc":"2.0","id":8,"error":{"code":-32603,"message":"Internal error: the answer could not be left for the process that runs the task; …
        stored 3
        << 2: 200 {"jsonrpc":"2.0","id":7,"result":{"resultType":"complete"}}
        # Too late is early enough: it has ended.
        post 4 version=2026-07-28 method=tasks/update name=T1 {"jsonrpc":"2.0","id":9,"method":"tasks/update","params":{"taskId":"T1","inputResponses":{"1-1":{}},META}}
        .. store 6: mailbox
        theirs T1 completed {}
        stored 6
        !! warn: could not be stored: …the call has ended…
        << 4: 200 {"jsonrpc":"2.0","id":9,"result":{"resultType":"complete"}}
        "#,
    );
}

#[test]
fn a_mailbox_message_answers_what_a_task_asks() {
    running(
        "",
        r#"
        < {"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{}}
        .. store 2: input_required
        stored 2
        mailbox T1 {"jsonrpc":"2.0","id":7,"method":"tasks/update","params":{"taskId":"T1","inputResponses":{"1-1":{"action":"accept"}},META}}
        wait 500ms
        @10s500ms
        .. store 3: collect
        stored 3
        .. store 4: working
        >> 1: {"jsonrpc":"2.0","id":"q","result":{"action":"accept"}}
        "#,
    );
}
