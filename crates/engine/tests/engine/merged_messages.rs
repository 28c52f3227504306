//! What passes the merged door: each message reaches the one party that it concerns.

use outlast_testkit::script::check;

/// A stdio client of `srv` (1) and `ci` (2), which can do everything and have the same resource.
const BEGIN: &str = r###"
    set gateway
    set server ci
    > {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"roots":{"listChanged":true}}}}
    .. 1: start 0
    .. 2: start 0
    server-1 started
    >> 1: {"jsonrpc":"2.0","id":1,"method":"initialize",…}
    server-2 started
    >> 2: {"jsonrpc":"2.0","id":2,"method":"initialize",…}
    server-1 < {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"prompts":{},"resources":{"subscribe":true},"completions":{},"experimental":{"x":{}}},"instructions":"One."}}
    >> 1: {"jsonrpc":"2.0","method":"notifications/initialized"}
    server-2 < {"jsonrpc":"2.0","id":2,"result":{"protocolVersion":"2025-11-25","capabilities":{"prompts":{},"resources":{"subscribe":true},"logging":{}},"instructions":"Two."}}
    << {"jsonrpc":"2.0","id":1,"result":{"capabilities":{"completions":{},"logging":{},"prompts":{"listChanged":true},"resources":{"listChanged":true,"subscribe":true}},"instructions":"## ci\nTwo.\n\n## srv\nOne.","protocolVersion":"2025-11-25",…}}
    >> 2: {"jsonrpc":"2.0","method":"notifications/initialized"}
    > {"jsonrpc":"2.0","method":"notifications/initialized"}
    > {"jsonrpc":"2.0","id":2,"method":"prompts/list"}
    >> 1: {"jsonrpc":"2.0","id":3,"method":"prompts/list"}
    >> 2: {"jsonrpc":"2.0","id":4,"method":"prompts/list"}
    server-1 < {"jsonrpc":"2.0","id":3,"result":{"prompts":[{"name":"ask"}]}}
    server-2 < {"jsonrpc":"2.0","id":4,"result":{"prompts":[{"name":"ask"}]}}
    << {"jsonrpc":"2.0","id":2,"result":{"prompts":[{"name":"ci__ask"},{"name":"srv__ask"}]}}
    > {"jsonrpc":"2.0","id":3,"method":"resources/read","params":{"uri":"file:///logs/7"}}
    >> 1: {"jsonrpc":"2.0","id":5,"method":"resources/list"}
    >> 1: {"jsonrpc":"2.0","id":6,"method":"resources/templates/list"}
    >> 2: {"jsonrpc":"2.0","id":7,"method":"resources/list"}
    >> 2: {"jsonrpc":"2.0","id":8,"method":"resources/templates/list"}
    server-1 < {"jsonrpc":"2.0","id":5,"result":{"resources":[{"uri":"a:1"}]}}
    server-1 < {"jsonrpc":"2.0","id":6,"result":{"resourceTemplates":[{"uriTemplate":"file:///{+path}"},{"uriTemplate":"t:{x}"}]}}
    server-2 < {"jsonrpc":"2.0","id":7,"result":{"resources":[{"uri":"a:1"}]}}
    server-2 < {"jsonrpc":"2.0","id":8,"result":{"resourceTemplates":[{"uriTemplate":"file:///logs/{n}"},{"uriTemplate":"t:{x}"}]}}
    # The template that says most of a uri has it.
    >> 2: {"jsonrpc":"2.0","id":9,"method":"resources/read","params":{"_meta":{"progressToken":9},"uri":"file:///logs/7"}}
    server-2 < {"jsonrpc":"2.0","id":9,"result":{"contents":[]}}
    << {"jsonrpc":"2.0","id":3,"result":{"contents":[]}}
"###;

#[track_caller]
fn begun(scenario: &str) {
    check(&format!("{BEGIN}\n{scenario}"));
}

#[test]
fn completions_are_asked_of_the_server_that_has_the_prompt_or_template() {
    begun(
        r#"
        > {"jsonrpc":"2.0","id":4,"method":"completion/complete","params":{"ref":{"type":"ref/prompt","name":"ci__ask"},"argument":{"name":"a","value":"b"}}}
        >> 2: {"jsonrpc":"2.0","id":10,"method":"completion/complete","params":{"ref":{"type":"ref/prompt","name":"ask"},"argument":{"name":"a","value":"b"}}}
        > {"jsonrpc":"2.0","id":5,"method":"completion/complete","params":{"argument":{},"ref":{"type":"ref/resource","uri":"file:///{+path}"}}}
        >> 1: {"jsonrpc":"2.0","id":11,"method":"completion/complete","params":{"argument":{},"ref":{"type":"ref/resource","uri":"file:///{+path}"}}}
        > {"jsonrpc":"2.0","id":6,"method":"completion/complete","params":{"argument":{},"ref":{"type":"ref/resource","uri":"outlast+ci:t:{x}"}}}
        >> 2: {"jsonrpc":"2.0","id":12,"method":"completion/complete","params":{"argument":{},"ref":{"type":"ref/resource","uri":"t:{x}"}}}
        > {"jsonrpc":"2.0","id":7,"method":"completion/complete","params":{"argument":{},"ref":{"type":"ref/prompt","name":"ask"}}}
        << {"jsonrpc":"2.0","id":7,"error":{"code":-32602,"message":"Unknown prompt: ask; no server behind this address has it now"}}
        > {"jsonrpc":"2.0","id":8,"method":"completion/complete","params":{"argument":{}}}
        << {"jsonrpc":"2.0","id":8,"error":{"code":-32602,"message":"Invalid params: what is it about?"}}
        "#,
    );
}

#[test]
fn updates_of_a_resource_come_under_the_name_that_the_client_has_for_it() {
    begun(
        r#"
        > {"jsonrpc":"2.0","id":4,"method":"resources/subscribe","params":{"uri":"outlast+ci:a:1"}}
        >> 2: {"jsonrpc":"2.0","id":10,"method":"resources/subscribe","params":{"uri":"a:1"}}
        server-2 < {"jsonrpc":"2.0","id":10,"result":{}}
        << {"jsonrpc":"2.0","id":4,"result":{}}
        server-2 < {"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"a:1","x":1.0}}
        << {"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"outlast+ci:a:1","x":1.0}}
        > {"jsonrpc":"2.0","id":5,"method":"resources/unsubscribe","params":{"uri":"outlast+ci:a:1"}}
        >> 2: {"jsonrpc":"2.0","id":11,"method":"resources/unsubscribe","params":{"uri":"a:1"}}
        # A template that two servers have says whose it is in the same way; the uri alone is nobody's.
        > {"jsonrpc":"2.0","id":6,"method":"resources/read","params":{"uri":"outlast+srv:t:9"}}
        >> 1: {"jsonrpc":"2.0","id":12,"method":"resources/read","params":{"_meta":{"progressToken":12},"uri":"t:9"}}
        > {"jsonrpc":"2.0","id":7,"method":"resources/read","params":{"uri":"a:1"}}
        << {"jsonrpc":"2.0","id":7,"error":{"code":-32002,"message":"Resource not found: a:1; no server behind this address has it now"}}
        "#,
    );
}

#[test]
fn log_levels_reach_servers_that_log_and_later_warnings_of_ours_heed_them() {
    begun(
        r#"
        > {"jsonrpc":"2.0","id":4,"method":"logging/setLevel","params":{"level":"error"}}
        >> 2: {"jsonrpc":"2.0","id":10,"method":"logging/setLevel","params":{"level":"error"}}
        << {"jsonrpc":"2.0","id":4,"result":{}}
        server-2 < {"jsonrpc":"2.0","id":10,"result":{}}
        server-2 < {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","data":1}}
        << {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","data":1}}
        server-1 exited 1
        server-1 output-closed
        !! warn: `srv` ended: exit status 1
        !! warn: restarting `srv` in …: it ended
        > {"jsonrpc":"2.0","id":5,"method":"prompts/list"}
        << {"jsonrpc":"2.0","id":5,"result":{"prompts":[{"name":"ci__ask"},{"name":"srv__ask"}]}}
        "#,
    );
}

#[test]
fn what_a_client_says_of_its_roots_is_for_all_and_a_question_for_its_server() {
    begun(
        r#"
        > {"jsonrpc":"2.0","method":"notifications/roots/list_changed"}
        >> 1: {"jsonrpc":"2.0","method":"notifications/roots/list_changed"}
        >> 2: {"jsonrpc":"2.0","method":"notifications/roots/list_changed"}
        # Two servers ask under one id and with one token.
        server-1 < {"jsonrpc":"2.0","id":9,"method":"sampling/createMessage","params":{"_meta":{"progressToken":"t"}}}
        << {"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{"_meta":{"progressToken":1}}}
        server-2 < {"jsonrpc":"2.0","id":9,"method":"sampling/createMessage","params":{"_meta":{"progressToken":"t"}}}
        << {"jsonrpc":"2.0","id":2,"method":"sampling/createMessage","params":{"_meta":{"progressToken":2}}}
        > {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":2,"progress":1}}
        >> 2: {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t","progress":1}}
        > {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t","progress":1}}
        > {"jsonrpc":"2.0","id":2,"result":{"x":1.0}}
        >> 2: {"jsonrpc":"2.0","id":9,"result":{"x":1.0}}
        # A question that is answered has no progress.
        > {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":2,"progress":2}}
        server-1 < {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":9}}
        << {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}
        "#,
    );
}

#[test]
fn what_no_server_could_be_meant_by_is_refused() {
    begun(
        r#"
        > {"jsonrpc":"2.0","id":4,"method":"vendor/thing","params":{}}
        << {"jsonrpc":"2.0","id":4,"error":{"code":-32601,"message":"Method not found: vendor/thing; at the door of one server (/mcp/NAME) it would pass"}}
        > {"jsonrpc":"2.0","id":5,"method":"prompts/list","params":{"cursor":"theirs"}}
        << {"jsonrpc":"2.0","id":5,"error":{"code":-32602,"message":"Invalid params: the cursor is not one of ours; list from the beginning"}}
        > {"jsonrpc":"2.0","id":6,"method":"prompts/list","params":{"cursor":7}}
        << {"jsonrpc":"2.0","id":6,"error":{"code":-32602,"message":"Invalid params: the cursor is not one of ours; list from the beginning"}}
        > {"jsonrpc":"2.0","id":7,"method":"prompts/get","params":{"name":"ask"}}
        << {"jsonrpc":"2.0","id":7,"error":{"code":-32602,"message":"Unknown prompt: ask; …"}}
        "#,
    );
}

#[test]
fn a_change_is_told_once_and_the_next_list_is_new() {
    begun(
        r#"
        server-1 < {"jsonrpc":"2.0","method":"notifications/prompts/list_changed"}
        << {"jsonrpc":"2.0","method":"notifications/prompts/list_changed"}
        server-1 < {"jsonrpc":"2.0","method":"notifications/prompts/list_changed"}
        server-2 < {"jsonrpc":"2.0","method":"notifications/prompts/list_changed"}
        > {"jsonrpc":"2.0","id":4,"method":"prompts/list"}
        >> 1: {"jsonrpc":"2.0","id":10,"method":"prompts/list"}
        >> 2: {"jsonrpc":"2.0","id":11,"method":"prompts/list"}
        # A change while it is asked: it is stale again when it comes, and the client knows.
        server-1 < {"jsonrpc":"2.0","method":"notifications/prompts/list_changed"}
        << {"jsonrpc":"2.0","method":"notifications/prompts/list_changed"}
        server-1 < {"jsonrpc":"2.0","id":10,"result":{"prompts":[{"name":"old"}]}}
        server-2 < {"jsonrpc":"2.0","id":11,"result":{"prompts":[]}}
        << {"jsonrpc":"2.0","id":4,"result":{"prompts":[{"name":"srv__old"}]}}
        > {"jsonrpc":"2.0","id":5,"method":"prompts/list"}
        >> 1: {"jsonrpc":"2.0","id":12,"method":"prompts/list"}
        server-1 < {"jsonrpc":"2.0","id":12,"result":{"prompts":[{"name":"new"}]}}
        << {"jsonrpc":"2.0","id":5,"result":{"prompts":[{"name":"srv__new"}]}}
        "#,
    );
}

/// What `tools/list` says of two servers with these tools, after these settings.
#[track_caller]
fn listed(settings: &str, srv: &str, ci: &str, expected: &str) {
    check(&format!(
        r#"
        set gateway
        set server ci
        {settings}
        > {{"jsonrpc":"2.0","id":1,"method":"initialize","params":{{"protocolVersion":"2025-11-25","capabilities":{{}}}}}}
        .. 1: start 0
        .. 2: start 0
        server-2 started
        >> 2: {{"jsonrpc":"2.0","id":1,"method":"initialize",…}}
        server-1 started
        >> 1: {{"jsonrpc":"2.0","id":2,"method":"initialize",…}}
        server-2 < {{"jsonrpc":"2.0","id":1,"result":{{"protocolVersion":"2025-11-25","capabilities":{{"tools":{{}}}}}}}}
        >> 2: {{"jsonrpc":"2.0","method":"notifications/initialized"}}
        server-1 < {{"jsonrpc":"2.0","id":2,"result":{{"protocolVersion":"2025-11-25","capabilities":{{"tools":{{}}}}}}}}
        << {{"jsonrpc":"2.0","id":1,"result":…}}
        >> 1: {{"jsonrpc":"2.0","method":"notifications/initialized"}}
        > {{"jsonrpc":"2.0","id":2,"method":"tools/list"}}
        >> 1: {{"jsonrpc":"2.0","id":3,"method":"tools/list"}}
        >> 2: {{"jsonrpc":"2.0","id":4,"method":"tools/list"}}
        server-2 < {{"jsonrpc":"2.0","id":4,"result":{{"tools":{ci}}}}}
        server-1 < {{"jsonrpc":"2.0","id":3,"result":{{"tools":{srv}}}}}
        << {{"jsonrpc":"2.0","id":2,"result":{{"tools":{expected}}}}}
        "#
    ));
}

#[test]
fn names_are_as_a_person_wants_them_and_the_same_every_time() {
    let (srv, ci) = (r#"[{"name":"run"},{"name":"drop"}]"#, r#"[{"name":"run"}]"#);
    listed("set separator -", srv, ci, r#"[{"name":"ci-run"},{"name":"srv-run"},{"name":"srv-drop"}]"#);
    let aliased = "set exposure srv alias run go\nset exposure srv deny drop";
    listed(aliased, srv, ci, r#"[{"name":"ci__run"},{"name":"go"}]"#);
    let plain = "set exposure srv expose plain-names\nset exposure ci expose plain-names";
    listed(plain, srv, ci, r#"[{"name":"ci__run"},{"name":"srv__run"},{"name":"drop"}]"#);
    // An alias that two tools have is nobody's: each has its full name, and a suffix made of it.
    let twice = "set exposure srv alias run go\nset exposure ci alias run go";
    listed(twice, srv, ci, r#"[{"name":"ci__run_9b1911"},{"name":"srv__run_7c9887"},{"name":"srv__drop"}]"#);
}

#[test]
fn odd_tools_have_a_stated_outcome() {
    // Without a name, with an empty one, with one that is there already: not there.
    let odd = r#"[{"title":"x"},{"name":""},{"name":"a","x":1},{"name":"a","x":2}]"#;
    listed("", odd, "[]", r#"[{"name":"srv__a","x":1}]"#);
    // Control characters, markup and what does not fit: another name, made of the whole one.
    let marked = r#"[{"name":"a\u0007b"},{"name":"<b>","description":"<i>&\u0000</i>"}]"#;
    let expected =
        r#"[{"name":"srv__a_b_80fffe"},{"name":"srv___b__05ba7c","description":"<i>&\u0000</i>"}]"#;
    listed("", marked, "[]", expected);
    // A long description passes.
    let long = format!(r#"[{{"name":"a","description":"{}"}}]"#, "d".repeat(1 << 20));
    listed("", &long, "[]", &long.replace(r#""name":"a""#, r#""name":"srv__a""#));
    // Ten thousand tools: two pages.
    let many: Vec<String> = (0..10_000).map(|n| format!(r#"{{"name":"t{n}"}}"#)).collect();
    listed(
        "",
        &format!("[{}]", many.join(",")),
        "[]",
        r#"[{"name":"srv__t0"},…{"name":"srv__t4999"}],"nextCursor":"outlast:srv:4999:…""#,
    );
}

// Extensions that outlast does not know.

const EXTENDED: &str = r#"
    set serve
    set server ci
    post 1 {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
    .. 1: start 0
    .. 2: start 0
    << 1: 200 with a session events
    << 1: id: 2-0|retry: 1000|data: ||
    server-1 started
    >> 1: {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
    server-2 started
    >> 2: {"jsonrpc":"2.0","id":2,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
    server-1 < {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}SRV}}}
    >> 1: {"jsonrpc":"2.0","method":"notifications/initialized"}
    server-2 < {"jsonrpc":"2.0","id":2,"result":{"protocolVersion":"2025-11-25","capabilities":{"resources":{},"extensions":{"a/skills":{"deep":true}}}}}
    << 1: …{"capabilities":{OFFER"logging":{},"resources":{"listChanged":true},"tools":{"listChanged":true}},…
    << 1: finish
    >> 2: {"jsonrpc":"2.0","method":"notifications/initialized"}
    post 2 session=1 {"jsonrpc":"2.0","method":"notifications/initialized"}
    << 2: 202
"#;

/// Its requests cannot mean any other server.
#[test]
fn what_we_do_not_know_is_for_the_server_that_declares_more_than_we_know() {
    let begin = EXTENDED.replace("SRV", "").replace("OFFER", r#""extensions":{"a/skills":{"deep":true}},"#);
    check(&format!(
        "{begin}\n{}",
        r#"
        post 3 session=1 {"jsonrpc":"2.0","id":2,"method":"skills/list","params":{"x":1.0}}
        << 3: 200 events
        << 3: id: 3-0|retry: 1000|data: ||
        >> 2: {"jsonrpc":"2.0","id":3,"method":"skills/list","params":{"x":1.0}}
        server-2 < {"jsonrpc":"2.0","id":3,"result":{"skills":[{"uri":"skill://a"}]}}
        << 3: id: 3-1|data: {"jsonrpc":"2.0","id":2,"result":{"skills":[{"uri":"skill://a"}]}}||
        << 3: finish
        # A uri that nobody lists may be one of its.
        post 4 session=1 {"jsonrpc":"2.0","id":3,"method":"resources/read","params":{"uri":"skill://a"}}
        << 4: 200 events
        << 4: id: 4-0|retry: 1000|data: ||
        >> 2: {"jsonrpc":"2.0","id":4,"method":"resources/list"}
        >> 2: {"jsonrpc":"2.0","id":5,"method":"resources/templates/list"}
        server-2 < {"jsonrpc":"2.0","id":4,"result":{"resources":[]}}
        server-2 < {"jsonrpc":"2.0","id":5,"result":{"resourceTemplates":[]}}
        >> 2: {"jsonrpc":"2.0","id":6,"method":"resources/read","params":{"_meta":{"progressToken":6},"uri":"skill://a"}}
        server-2 < {"jsonrpc":"2.0","id":6,"result":{"contents":[]}}
        << 4: id: 4-1|data: {"jsonrpc":"2.0","id":3,"result":{"contents":[]}}||
        << 4: finish
        "#
    ));
}

#[test]
fn what_two_servers_may_mean_is_promised_and_passed_to_neither() {
    let begin = EXTENDED.replace("SRV", r#","extensions":{"b/other":{}}"#).replace("OFFER", "");
    check(&format!(
        "{begin}\n{}",
        r#"
        post 3 session=1 {"jsonrpc":"2.0","id":2,"method":"skills/list"}
        << 3: 200 events
        << 3: id: 3-0|retry: 1000|data: ||
        << 3: id: 3-1|data: {"jsonrpc":"2.0","id":2,"error":{"code":-32601,"message":"Method not found: skills/list; at the door of one server (/mcp/NAME) it would pass"}}||
        << 3: finish
        "#
    ));
}
