//! Everything on the wire that is not a call: questions of the server, subscriptions, arrays,
//! notifications, and lines that are none of these.

use outlast_testkit::script::check;

#[test]
fn questions_of_a_server_are_remapped_both_ways() {
    check(
        r#"
        < {"id":1,"method":"roots/list"}
        << {"id":1,"method":"roots/list"}
        < {"id":"s-1","method":"sampling/createMessage","params":{"x":1}}
        << {"id":"2","method":"sampling/createMessage","params":{"x":1}}
        > {"id":"2","result":{"text":"hi"}}
        >> {"id":"s-1","result":{"text":"hi"}}
        # The other JSON type is accepted here too.
        > {"id":"1","error":{"code":-1,"message":"no"}}
        >> {"id":1,"error":{"code":-1,"message":"no"}}
        > {"id":1,"result":{}}
        !! info: the client answered unknown id 1; dropped
        > {"id":null,"result":{}}
        !! info: the client answered unknown id null; dropped
        "#,
    );
}

#[test]
fn a_server_may_take_its_question_back() {
    check(
        r#"
        < {"id":"q","method":"elicitation/create"}
        << {"id":"1","method":"elicitation/create"}
        < {"method":"notifications/cancelled","params":{"requestId":"q","reason":"done"}}
        << {"method":"notifications/cancelled","params":{"requestId":"1","reason":"done"}}
        > {"id":"1","result":{}}
        !! info: the client answered unknown id "1"; dropped
        # What it means by this is unknown, and it is not passed on under a wrong name.
        < {"method":"notifications/cancelled","params":{"requestId":"q"}}
        < {"method":"notifications/cancelled","params":{}}
        << {"method":"notifications/cancelled","params":{}}
        "#,
    );
}

#[test]
fn a_question_that_nobody_answers_ends() {
    check(
        r#"
        set method elicitation/*=timeout:30s
        < {"id":7,"method":"elicitation/create"}
        << {"id":1,"method":"elicitation/create"}
        < {"id":8,"method":"ping"}
        << {"id":2,"method":"ping"}
        wait 2m
        @30s
        >> {"jsonrpc":"2.0","id":7,"error":{"code":-32001,"message":"the client did not answer elicitation/create within 30s (timeout, --method 'elicitation/*'); raise it with --method 'elicitation/create=timeout:TIME'"}}
        << {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"reason":"Timeout: no answer within 30s","timeout":30.0}}
        !! warn: the client did not answer `elicitation/create` of `srv` within 30s
        @1m
        >> {"jsonrpc":"2.0","id":8,"error":{"code":-32001,"message":"the client did not answer ping within 1m (timeout, built-in); raise it with --method 'ping=timeout:TIME'"}}
        << {…"requestId":2,…}
        !! warn: the client did not answer `ping` of `srv` within 1m
        "#,
    );
}

/// A person who needs a minute must not cost the call that asked.
#[test]
fn limits_stand_still_while_a_person_is_asked() {
    check(
        r#"
        set timeout 30s
        > {"id":1,"method":"tools/call","params":{"name":"x"}}
        >> {"id":1,…}
        wait 20s
        < {"id":"q","method":"elicitation/create"}
        << {"id":"1","method":"elicitation/create"}
        < {"id":"p","method":"sampling/createMessage"}
        << {"id":"2","method":"sampling/createMessage"}
        # This one begins while the clock stands still.
        > {"id":2,"method":"tools/call","params":{"name":"y"}}
        >> {"id":2,…}
        wait 2m
        > {"id":"1","result":{}}
        >> {"id":"q","result":{}}
        wait 1m
        > {"id":"2","result":{}}
        >> {"id":"p","result":{}}
        # 20 s before, 10 s after: now.
        wait 11s
        @3m30s
        !! warn: timeout server=srv method=tools/call tool=x limit=30s elapsed=3m30s …
        << {"jsonrpc":"2.0","id":1,"error":…}
        >> {…"requestId":1,…}
        .. sample
        looks busy
        wait 20s
        @3m35s
        .. sample
        @3m50s
        !! warn: timeout server=srv method=tools/call tool=y …
        << {"jsonrpc":"2.0","id":2,"error":…}
        >> {…"requestId":2,…}
        .. sample
        "#,
    );
}

#[test]
fn a_ping_of_the_server_stops_no_clock() {
    check(
        r#"
        set timeout 10s
        > {"id":1,"method":"tools/call","params":{"name":"x"}}
        >> {"id":1,…}
        < {"id":1,"method":"ping"}
        << {"id":1,"method":"ping"}
        wait 10s
        @10s
        !! warn: timeout server=srv method=tools/call tool=x limit=10s elapsed=10s setting=--timeout state=the server was told to cancel it
        << {…}
        >> {…}
        .. sample
        "#,
    );
}

#[test]
fn questions_of_a_dead_server_are_taken_back() {
    check(
        r#"
        set timeout-mcp auto-restart
        < {"id":"q","method":"elicitation/create"}
        << {"id":"1","method":"elicitation/create"}
        < {"id":4,"method":"roots/list"}
        << {"id":2,"method":"roots/list"}
        output-closed
        exited 1
        !! warn: `srv` ended: exit status 1
        << {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"1","reason":"the server that asked has ended"}}
        << {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2,"reason":"the server that asked has ended"}}
        !! warn: restarting `srv` in 470ms: it ended
        wait 1s
        @470ms
        .. start 1
        started
        !! warn: `srv` is back after 1s
        > {"id":"1","result":{}}
        !! info: the client answered unknown id "1"; dropped
        "#,
    );
}

#[test]
fn too_many_questions_are_refused() {
    use outlast_engine::limits::ASKS;
    let mut world = outlast_testkit::script::World::default();
    for id in 0..ASKS {
        world.input(&format!(r#"< {{"id":{id},"method":"roots/list"}}"#));
    }
    let out = world.input(r#"< {"id":"more","method":"roots/list"}"#);
    assert_eq!(out.len(), 2);
    assert!(out[0].starts_with(r#">> {"jsonrpc":"2.0","id":"more","error":{"code":-32603"#), "{out:?}");
}

#[test]
fn a_subscription_has_no_end_and_keeps_its_id() {
    check(
        r#"
        > {"id":"sub","method":"subscriptions/listen","params":{"notifications":{}}}
        >> {"id":"1","method":"subscriptions/listen","params":{"notifications":{}}}
        < {"method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"1"}}}
        << {"method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"sub"}}}
        wait 48h
        < {"method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"1"}}}
        << {"method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"sub"}}}
        < {"id":"1","result":{"resultType":"complete","_meta":{"io.modelcontextprotocol/subscriptionId":"1"}}}
        << {"id":"sub","result":{"resultType":"complete","_meta":{"io.modelcontextprotocol/subscriptionId":"sub"}}}
        # It has ended.
        < {"method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"1"}}}
        "#,
    );
}

#[test]
fn a_subscription_is_cancelled_by_either_side() {
    check(
        r#"
        > {"id":4,"method":"subscriptions/listen"}
        >> {"id":1,"method":"subscriptions/listen"}
        > {"id":5,"method":"subscriptions/listen"}
        >> {"id":2,"method":"subscriptions/listen"}
        > {"method":"notifications/cancelled","params":{"requestId":4}}
        >> {"method":"notifications/cancelled","params":{"requestId":1}}
        < {"method":"notifications/cancelled","params":{"requestId":2}}
        << {"method":"notifications/cancelled","params":{"requestId":5}}
        > {"method":"notifications/cancelled","params":{"requestId":5}}
        "#,
    );
}

#[test]
fn a_subscription_ends_with_its_server() {
    check(
        r#"
        set timeout-mcp
        > {"id":4,"method":"subscriptions/listen"}
        >> {"id":1,"method":"subscriptions/listen"}
        output-closed
        exited 1
        !! warn: `srv` ended: exit status 1
        << {"jsonrpc":"2.0","id":4,"error":{"code":-31002,"message":"server `srv` went away (exit status 1); subscribe again"}}
        > {"id":5,"method":"subscriptions/listen"}
        !! warn: server-gone …
        << {"jsonrpc":"2.0","id":5,"error":…}
        "#,
    );
}

/// A client that listens does not notice that the process was replaced.
#[test]
fn a_subscription_outlives_its_process() {
    check(
        r#"
        > {"id":"sub","method":"subscriptions/listen"}
        >> {"id":"1","method":"subscriptions/listen"}
        < {"method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"1"}}}
        << {"method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"sub"}}}
        > {"id":2,"method":"ping"}
        >> {"id":2,"method":"ping"}
        < {"id":2,"result":{}}
        << {"id":2,"result":{}}
        output-closed
        exited 1
        !! warn: `srv` ended: exit status 1
        !! warn: restarting `srv` in 470ms: it ended
        > {"id":5,"method":"subscriptions/listen"}
        << {"jsonrpc":"2.0","id":5,"error":{"code":-31003,"message":"server `srv` cannot be reached: it is being restarted.",…}}
        wait 1s
        @470ms
        .. start 1
        started
        !! warn: `srv` is back after 1s
        >> {"id":"3","method":"subscriptions/listen"}
        < {"method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"3"}}}
        < {"method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"3"}}}
        << {"method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"sub"}}}
        > {"method":"notifications/cancelled","params":{"requestId":"sub"}}
        >> {"method":"notifications/cancelled","params":{"requestId":"3"}}
        "#,
    );
}

/// A process that ended before it acknowledged a subscription has told the client nothing.
#[test]
fn a_subscription_is_acknowledged_by_the_next_process_if_not_by_the_first() {
    check(
        r#"
        > {"id":2,"method":"ping"}
        >> {"id":1,"method":"ping"}
        < {"id":1,"result":{}}
        << {"id":2,"result":{}}
        > {"id":"sub","method":"subscriptions/listen"}
        >> {"id":"2","method":"subscriptions/listen"}
        output-closed
        exited 1
        !! warn: `srv` ended: exit status 1
        !! warn: restarting `srv` in 470ms: it ended
        wait 1s
        @470ms
        .. start 1
        started
        !! warn: `srv` is back after 1s
        >> {"id":"3","method":"subscriptions/listen"}
        < {"method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"3"}}}
        << {"method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"sub"}}}
        "#,
    );
}

/// A modern client hears of a changed list only on a subscription that asked for it.
#[test]
fn a_changed_list_is_told_on_the_subscriptions_that_asked() {
    check(
        r#"
        > {"id":"sub","method":"subscriptions/listen","params":{"notifications":{"toolsListChanged": true}}}
        >> {"id":"1",…}
        > {"id":"other","method":"subscriptions/listen","params":{"notifications":{"promptsListChanged":true}}}
        >> {"id":"2",…}
        > {"id":3,"method":"tools/list","params":{}}
        >> {"id":3,…}
        < {"id":3,"result":{"tools":[]}}
        << {"id":3,"result":{"tools":[]}}
        output-closed
        exited 1
        !! warn: `srv` ended: exit status 1
        !! warn: restarting `srv` in 470ms: it ended
        wait 1s
        @470ms
        .. start 1
        started
        !! warn: `srv` is back after 1s
        >> {"id":"4","method":"subscriptions/listen",…}
        >> {"id":"5","method":"subscriptions/listen",…}
        >> {"id":6,"method":"tools/list","params":{}}
        < {"id":6,"result":{"tools":[1]}}
        << {"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"sub"}}}
        "#,
    );
}

#[test]
fn too_many_subscriptions_are_refused() {
    use outlast_engine::limits::SUBSCRIPTIONS;
    let mut world = outlast_testkit::script::World::default();
    for id in 0..SUBSCRIPTIONS {
        world.input(&format!(r#"> {{"id":{id},"method":"subscriptions/listen"}}"#));
    }
    let out = world.input(r#"> {"id":"more","method":"subscriptions/listen"}"#);
    assert!(out[1].contains(r#""id":"more","error":{"code":-31004"#), "{out:?}");
}

#[test]
fn an_array_is_split_and_answered_as_one() {
    check(
        r#"
        > [{"id":1,"method":"ping"},{"method":"notifications/x"},{"id":2,"method":"tools/list"},{"id":3,"method":"initialize"},7,{"id":4,"method":"ping"}]
        >> {"id":1,"method":"ping"}
        >> {"method":"notifications/x"}
        >> {"id":2,"method":"tools/list"}
        !! warn: a line of the client was refused: Invalid request: not a JSON-RPC message
        >> {"id":3,"method":"ping"}
        < {"id":2,"result":{"tools":[]}}
        > {"method":"notifications/cancelled","params":{"requestId":4}}
        >> {"method":"notifications/cancelled","params":{"requestId":3}}
        < {"id":1,"result":{}}
        << [{"jsonrpc":"2.0","id":3,"error":{"code":-32600,"message":"Invalid request: initialize inside an array"}},{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid request: not a JSON-RPC message"}},{"id":2,"result":{"tools":[]}},{"id":1,"result":{}}]
        "#,
    );
}

#[test]
fn an_array_without_requests_is_not_answered() {
    check(
        r#"
        > [{"method":"notifications/a"},{"method":"notifications/b"}]
        >> {"method":"notifications/a"}
        >> {"method":"notifications/b"}
        > []
        !! warn: a line of the client was refused: Invalid request: an empty array
        << {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid request: an empty array"}}
        "#,
    );
    let many = format!("> [{}]", vec![r#"{"method":"n"}"#; 1001].join(","));
    let out = outlast_testkit::script::World::default().input(&many);
    assert!(out[1].contains("more than 1000 messages"), "{out:?}");
}

#[test]
fn an_array_all_of_whose_calls_are_cancelled_is_not_answered() {
    check(
        r#"
        > [{"id":1,"method":"ping"}]
        >> {"id":1,"method":"ping"}
        > {"method":"notifications/cancelled","params":{"requestId":1}}
        >> {"method":"notifications/cancelled","params":{"requestId":1}}
        wait 25h
        "#,
    );
}

#[test]
fn an_array_of_a_server_is_split() {
    check(
        r#"
        > {"id":1,"method":"ping"}
        >> {"id":1,"method":"ping"}
        < [{"id":1,"result":{}},{"method":"notifications/message"},5]
        << {"id":1,"result":{}}
        << {"method":"notifications/message"}
        !! warn: `srv` wrote a line to stdout that is not a message; dropped: 5
        "#,
    );
}

#[test]
fn a_bad_line_of_the_client_is_answered() {
    check(
        r#"
        > {"id":5,"method":"ping",}
        !! warn: a line of the client was refused: Parse error: not JSON from byte 24 on
        << {"jsonrpc":"2.0","id":5,"error":{"code":-32700,"message":"Parse error: not JSON from byte 24 on"}}
        > hello
        !! warn: a line of the client was refused: Parse error: not JSON from byte 0 on
        << {"jsonrpc":"2.0","id":null,"error":{"code":-32700,…}}
        > {"id":5}
        !! warn: a line of the client was refused: Invalid request: not a JSON-RPC message
        << {"jsonrpc":"2.0","id":5,"error":{"code":-32600,"message":"Invalid request: not a JSON-RPC message"}}
        > {"id":5,"id":6,"method":"ping"}
        !! warn: a line of the client was refused: Invalid request: a field occurs twice
        << {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid request: a field occurs twice"}}
        > {"id":{"a":1},"method":"ping"}
        !! warn: a line of the client was refused: Invalid request: not a JSON-RPC message
        << {"jsonrpc":"2.0","id":null,"error":{"code":-32600,…}}
        > {"id":5,"method":7}
        !! warn: a line of the client was refused: Invalid request: not a JSON-RPC message
        << {"jsonrpc":"2.0","id":5,"error":{"code":-32600,…}}
        > {"id":5,"method":"ping","result":{}}
        !! warn: a line of the client was refused: Invalid request: not a JSON-RPC message
        << {"jsonrpc":"2.0","id":5,"error":{"code":-32600,…}}
        > {"id":6,"method":"ping"}
        >> {"id":1,"method":"ping"}
        "#,
    );
}

#[test]
fn bad_lines_of_a_server_are_noted_once_in_a_hundred() {
    let mut world = outlast_testkit::script::World::default();
    let notes: Vec<String> = (0..250).flat_map(|_| world.input("< Server listening on port 3000")).collect();
    let wrote = "!! warn: `srv` wrote";
    let shown = "Server listening on port 3000";
    assert_eq!(
        notes,
        [
            format!("{wrote} a line to stdout that is not a message; dropped: {shown}"),
            format!("{wrote} 100 lines to stdout that are not messages; the last: {shown}"),
            format!("{wrote} 200 lines to stdout that are not messages; the last: {shown}"),
        ]
    );
    let out = world.input(r#"< {"method":"notifications/x"}"#);
    assert_eq!(out, [r#"<< {"method":"notifications/x"}"#]);
    // The end says how many it were.
    world.input("output-closed");
    let total = format!("{wrote} 250 lines to stdout that are not messages (total)");
    assert_eq!(world.input("exited 0")[0], total);
}

#[test]
fn a_careless_answer_is_passed_on() {
    check(
        r#"
        > {"id":7,"method":"tools/call","params":{"name":"x"}}
        >> {"id":1,…}
        < {"id":1,"result":{"value":NaN}}
        !! warn: `srv` sent an answer that is not strict JSON; passed on unchanged
        << {"id":7,"result":{"value":NaN}}
        # The same for an id that nobody waits for is noise.
        < {"id":1,"result":{"value":NaN}}
        !! warn: `srv` wrote a line to stdout that is not a message; …
        # Of two results its client takes the last one, with us as without us.
        > {"id":8,"method":"tools/call","params":{"name":"x"}}
        >> {"id":2,…}
        < {"id":2,"result":{"value":1},"result":{"value":2}}
        !! warn: `srv` sent an answer that is not strict JSON; passed on unchanged
        << {"id":8,"result":{"value":1},"result":{"value":2}}
        "#,
    );
    let mut world = outlast_testkit::script::World::default();
    world.input(r#"> {"id":7,"method":"ping"}"#);
    let out = world.input("<latin1 {\"id\":1,\"result\":{\"text\":\"caf\u{e9}\"}}");
    assert_eq!(out.len(), 2, "{out:?}");
    assert!(out[1].starts_with(r#"<< {"id":7,"result":{"text":"caf"#), "{out:?}");
}

#[test]
fn what_we_do_not_understand_passes_unchanged() {
    check(
        r#"
        > {"method":"vendor/n","params":{"a":1.0,"big":123456789012345678901234567890},"x":[1,2]}
        >> {"method":"vendor/n","params":{"a":1.0,"big":123456789012345678901234567890},"x":[1,2]}
        < {"x":null,"method":"vendor/m","params":{"id":1,"result":2}}
        << {"x":null,"method":"vendor/m","params":{"id":1,"result":2}}
        "#,
    );
}

#[test]
fn declared_limits_lengthen_what_nobody_wrote() {
    check(
        r#"
        set retries 0
        > {"id":1,"method":"initialize"}
        >> {"id":1,"method":"initialize"}
        < {"id":1,"result":{"capabilities":{"resources":{"timeouts":{"read":600,"list":"soon"}}}}}
        !! warn: `srv` declares timeouts that are not valid; ignored
        << {"id":1,"result":{"capabilities":{"resources":{"timeouts":{"read":600,"list":"soon"}}}}}
        > {"id":2,"method":"resources/read","params":{}}
        >> {"id":2,…}
        wait 10m
        @9m50s
        .. sample
        @10m
        .. sample
        !! warn: timeout server=srv method=resources/read limit=10m elapsed=10m setting=declared by the server …
        << {…}
        >> {…"timeout":600.0}}
        "#,
    );
}
