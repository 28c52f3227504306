//! `subscriptions/listen` at the merged door.

use outlast_testkit::script::check;

const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;

/// Two modern servers, `srv` (1) and `ci` (2), that have the same resource and list at once.
const BEGIN: &str = r#"
    set serve
    set server ci
    post 1 version=2026-07-28 method=resources/list {"jsonrpc":"2.0","id":1,"method":"resources/list","params":{META}}
    .. 1: start 0
    .. 2: start 0
    >> 1: {"jsonrpc":"2.0","id":1,"method":"resources/list","params":{META}}
    >> 2: {"jsonrpc":"2.0","id":2,"method":"resources/list","params":{META}}
    server-1 started
    server-2 started
    server-1 < {"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","resources":[{"uri":"a:1"},{"uri":"a:2"}],"ttlMs":0,"cacheScope":"private"}}
    server-2 < {"jsonrpc":"2.0","id":2,"result":{"resultType":"complete","resources":[{"uri":"a:1"}],"ttlMs":0,"cacheScope":"private"}}
    << 1: 200 {…"resources":[{"uri":"outlast+ci:a:1"},{"uri":"outlast+srv:a:1"},{"uri":"a:2"}]}}
"#;

/// And somebody listens.
const LISTENS: &str = r#"
    post 2 version=2026-07-28 method=subscriptions/listen {"jsonrpc":"2.0","id":"L","method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true,"resourceSubscriptions":["outlast+ci:a:1","a:2"]},META}}
    << 2: 200 events
    << 2: : outlast||
    << 2: data: {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"L"},"notifications":{"toolsListChanged":true,"resourceSubscriptions":["outlast+ci:a:1","a:2"]}}}||
    >> 1: {"jsonrpc":"2.0","id":"4","method":"subscriptions/listen","params":{META,"notifications":{"toolsListChanged":true,"resourceSubscriptions":["a:2"]}}}
    >> 2: {"jsonrpc":"2.0","id":"5","method":"subscriptions/listen","params":{META,"notifications":{"toolsListChanged":true,"resourceSubscriptions":["a:1"]}}}
    server-1 < {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"4"},"notifications":{"toolsListChanged":true}}}
    server-2 < {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"5"},"notifications":{"toolsListChanged":true}}}
"#;

#[track_caller]
fn listening(scenario: &str) {
    check(&format!("{BEGIN}\n{LISTENS}\n{scenario}").replace("META", META));
}

#[test]
fn each_server_is_asked_for_its_share_and_everything_comes_on_one_subscription() {
    listening(
        r#"
        # Under the name that the client has for the resource.
        server-2 < {"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"a:1","_meta":{"io.modelcontextprotocol/subscriptionId":"5"}}}
        << 2: data: {"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"outlast+ci:a:1","_meta":{"io.modelcontextprotocol/subscriptionId":"L"}}}||
        server-1 < {"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"a:2","_meta":{"io.modelcontextprotocol/subscriptionId":"4"}}}
        << 2: data: {"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"a:2","_meta":{"io.modelcontextprotocol/subscriptionId":"L"}}}||
        # Not with the number of another server's share.
        server-1 < {"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"a:1","_meta":{"io.modelcontextprotocol/subscriptionId":"5"}}}
        "#,
    );
}

#[test]
fn changes_are_told_once_until_somebody_looks_and_lists_are_fetched_anew() {
    listening(
        r#"
        post 3 version=2026-07-28 method=tools/list {"jsonrpc":"2.0","id":1,"method":"tools/list","params":{META}}
        >> 1: {"jsonrpc":"2.0","id":6,"method":"tools/list","params":{META}}
        >> 2: {"jsonrpc":"2.0","id":7,"method":"tools/list","params":{META}}
        server-1 < {"jsonrpc":"2.0","id":6,"result":{"resultType":"complete","tools":[{"name":"a"}],"ttlMs":0,"cacheScope":"private"}}
        server-2 < {"jsonrpc":"2.0","id":7,"result":{"resultType":"complete","tools":[],"ttlMs":0,"cacheScope":"private"}}
        << 3: 200 {…"tools":[{"name":"srv__a"}]}}
        # As long as somebody listens the server tells of changes, so it is not asked again.
        post 4 version=2026-07-28 method=tools/list {"jsonrpc":"2.0","id":1,"method":"tools/list","params":{META}}
        << 4: 200 {…"tools":[{"name":"srv__a"}]}}
        server-1 < {"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"4"}}}
        << 2: data: {"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"L"}}}||
        server-1 < {"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"4"}}}
        server-2 < {"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"5"}}}
        post 5 version=2026-07-28 method=tools/list {"jsonrpc":"2.0","id":1,"method":"tools/list","params":{META}}
        >> 1: {"jsonrpc":"2.0","id":8,"method":"tools/list","params":{META}}
        >> 2: {"jsonrpc":"2.0","id":9,"method":"tools/list","params":{META}}
        "#,
    );
}

#[test]
fn a_share_that_ends_ends_nothing_else() {
    listening(
        r#"
        server-1 < {"jsonrpc":"2.0","id":"4","error":{"code":-32601,"message":"Method not found"}}
        server-2 < {"jsonrpc":"2.0","id":"5","result":{"resultType":"complete","_meta":{"io.modelcontextprotocol/subscriptionId":"5"}}}
        server-2 < {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}
        << 2: data: {"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"L"}}}||
        "#,
    );
}

#[test]
fn a_server_that_comes_back_is_asked_again_and_the_client_notices_nothing() {
    listening(
        r#"
        server-2 exited 1
        server-2 output-closed
        !! warn: `ci` ended: exit status 1
        !! warn: restarting `ci` in …: it ended
        wait 3s
        @…
        .. 2: start 1
        server-2 started
        !! warn: `ci` is back after …
        >> 2: {"jsonrpc":"2.0","id":"6","method":"subscriptions/listen","params":{META,"notifications":{"toolsListChanged":true,"resourceSubscriptions":["a:1"]}}}
        >> 2: {"jsonrpc":"2.0","id":7,"method":"resources/list","params":{META}}
        server-2 < {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"6"},"notifications":{}}}
        server-2 < {"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"a:1","_meta":{"io.modelcontextprotocol/subscriptionId":"6"}}}
        << 2: data: {"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"outlast+ci:a:1","_meta":{"io.modelcontextprotocol/subscriptionId":"L"}}}||
        "#,
    );
}

#[test]
fn when_the_client_hangs_up_every_server_is_told() {
    listening(
        r#"
        hang-up 2
        >> 1: {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"4",…}}
        >> 2: {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"5",…}}
        "#,
    );
}

#[test]
fn what_is_not_there_is_left_out_of_the_acknowledgement() {
    check(
        &format!(
            "{BEGIN}\n{}",
            r#"
            post 2 version=2026-07-28 method=subscriptions/listen {"jsonrpc":"2.0","id":9,"method":"subscriptions/listen","params":{"notifications":{"resourceSubscriptions":["b:1"]},META}}
            << 2: 200 events
            << 2: : outlast||
            >> 1: {"jsonrpc":"2.0","id":3,"method":"resources/list","params":{META}}
            >> 1: {"jsonrpc":"2.0","id":4,"method":"resources/templates/list","params":{META}}
            >> 2: {"jsonrpc":"2.0","id":5,"method":"resources/list","params":{META}}
            >> 2: {"jsonrpc":"2.0","id":6,"method":"resources/templates/list","params":{META}}
            wait 4s
            @4s
            !! warn: `srv` did not list within 4s (list-wait); it is left out until it does
            !! warn: `ci` did not list within 4s (list-wait); it is left out until it does
            << 2: data: {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":9},"notifications":{}}}||
            "#
        )
        .replace("META", META),
    );
}
