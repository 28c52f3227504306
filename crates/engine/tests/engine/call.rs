//! The table in the header of `calls/call.rs`, row by row.

use outlast_engine::reached::Bound;
use outlast_testkit::bounds::reaches;
use outlast_testkit::script::check;

#[test]
fn request_is_sent() {
    check(
        r#"
        > {"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"x","arguments":{"n":1.0}}}
        >> {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":{"progressToken":1},"name":"x","arguments":{"n":1.0}}}
        > {"id":"a","method":"tools/call","params":{"_meta":{"progressToken":"t"},"name":"x"}}
        >> {"id":"2","method":"tools/call","params":{"_meta":{"progressToken":2},"name":"x"}}
        > {"id":null,"method":"prompts/get","params":{"_meta":{},"name":"x"}}
        >> {"id":3,"method":"prompts/get","params":{"_meta":{"progressToken":3},"name":"x"}}
        > {"id":1.5,"method":"resources/read","params":{ }}
        >> {"id":4,"method":"resources/read","params":{"_meta":{"progressToken":4} }}
        > {"id":9,"method":"resources/read","params":{"_meta":{"k":1}}}
        >> {"id":5,"method":"resources/read","params":{"_meta":{"progressToken":5,"k":1}}}
        # Not an object, or not a method with progress: nothing is added.
        > {"id":9,"method":"tools/call","params":[1]}
        >> {"id":6,"method":"tools/call","params":[1]}
        > {"id":9,"method":"tools/call","params":{"_meta":null}}
        >> {"id":7,"method":"tools/call","params":{"_meta":null}}
        > {"id":9,"method":"vendor/odd","params":{"a":1}}
        >> {"id":8,"method":"vendor/odd","params":{"a":1}}
        "#,
    );
}

#[test]
fn request_waits_for_a_restart() {
    check(
        r#"
        set timeout-mcp auto-restart
        output-closed
        exited 1
        !! warn: `srv` ended: exit status 1
        !! warn: restarting `srv` in 470ms: it ended
        > {"id":1,"method":"tools/call","params":{"name":"x"}}
        wait 1s
        @470ms
        .. start 1
        started
        !! warn: `srv` is back after 1s
        >> {"id":1,"method":"tools/call","params":{"_meta":{"progressToken":1},"name":"x"}}
        "#,
    );
}

#[test]
fn request_to_a_failed_server_fails_at_once() {
    check(
        r#"
        set timeout-mcp
        output-closed
        exited 3
        !! warn: `srv` ended: exit status 3
        > {"id":1,"method":"tools/call","params":{"name":"x"}}
        !! warn: server-gone server=srv method=tools/call tool=x elapsed=0s state=it never reached the server detail=exit status 3
        << {"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"server `srv` went away (exit status 3) before it answered `x`.","data":{"outlast":{"kind":"server-gone",…"serverState":"never-reached","retry":"pointless",…}}}}
        "#,
    );
}

#[test]
fn request_beyond_the_bound_is_refused() {
    let _bounds = reaches(&[Bound::CALLS]);
    use outlast_engine::limits::CALLS;
    let mut world = outlast_testkit::script::World::default();
    for id in 0..CALLS {
        world.input(&format!(r#"> {{"id":{id},"method":"tools/call","params":{{"name":"x"}}}}"#));
    }
    let out = world.input(r#"> {"id":"one more","method":"tools/call","params":{"name":"x"}}"#);
    assert_eq!(out.len(), 2, "{out:?}");
    assert!(
        out[1].contains(r#""id":"one more","error":{"code":-31004,"message":"`x` was not sent"#),
        "{out:?}"
    );
    assert_eq!(world.engine.open_calls(), CALLS);
}

#[test]
fn waiting_call_is_sent_when_the_server_is_back() {
    check(
        r#"
        set timeout-mcp auto-restart
        > {"id":1,"method":"initialize","params":{"v":1}}
        >> {"id":1,"method":"initialize","params":{"v":1}}
        < {"id":1,"result":{}}
        << {"id":1,"result":{}}
        > {"method":"notifications/initialized"}
        >> {"method":"notifications/initialized"}
        output-closed
        exited 0
        !! warn: `srv` ended: exit status 0
        !! warn: restarting `srv` in 470ms: it ended
        > {"id":2,"method":"tools/call","params":{"name":"x"}}
        wait 1s
        @470ms
        .. start 1
        started
        >> {"id":2,"method":"initialize","params":{"v":1}}
        # The second handshake stays hidden; then what waited is sent.
        < {"id":2,"result":{}}
        !! warn: `srv` is back after 1s
        >> {"method":"notifications/initialized"}
        >> {"id":3,"method":"tools/call","params":{"_meta":{"progressToken":3},"name":"x"}}
        < {"id":3,"result":{"ok":true}}
        << {"id":2,"result":{"ok":true}}
        "#,
    );
}

#[test]
fn waiting_call_is_cancelled() {
    check(
        r#"
        set timeout-mcp auto-restart
        output-closed
        exited 1
        !! warn: `srv` ended: exit status 1
        !! warn: restarting `srv` in 470ms: it ended
        > {"id":5,"method":"tools/call","params":{"name":"x"}}
        > {"method":"notifications/cancelled","params":{"requestId":5}}
        wait 1s
        @470ms
        .. start 1
        started
        !! warn: `srv` is back after 1s
        "#,
    );
}

#[test]
fn waiting_call_reaches_its_limit() {
    check(
        r#"
        set timeout-mcp auto-restart
        set timeout 2s
        set keep-alive 1s
        output-closed
        exited 1
        !! warn: `srv` ended: exit status 1
        !! warn: restarting `srv` in 470ms: it ended
        > {"id":5,"method":"tools/call","params":{"name":"x","_meta":{"progressToken":"t"}}}
        wait 2s
        @470ms
        .. start 1
        @1s
        << {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t","progress":0.0001,"message":"`x` is waiting for its server (1 s)","_meta":{"dev.outlast/keepAlive":true}}}
        @2s
        !! warn: timeout server=srv method=tools/call tool=x limit=2s elapsed=2s setting=--timeout state=it never reached the server
        << {"jsonrpc":"2.0","id":5,"error":{"code":-32603,"message":"Method 'tools/call' timed out after 2s",…"attempts":0,"serverState":"never-reached","retry":"safe",…}}
        "#,
    );
}

#[test]
fn answer_settles() {
    check(
        r#"
        > {"id":9007199254740993123,"method":"vendor/thing"}
        >> {"id":1,"method":"vendor/thing"}
        > {"id":"\u0061","method":"ping"}
        >> {"id":"2","method":"ping"}
        < { "result" : {"x":1.0, "id":5} , "id" : 1 , "jsonrpc":"2.0"}
        << { "result" : {"x":1.0, "id":5} , "id" : 9007199254740993123 , "jsonrpc":"2.0"}
        < {"id":2,"error":{"code":-5,"message":"no"}}
        !! info: `srv` returns ids in another JSON type; accepted
        << {"id":"\u0061","error":{"code":-5,"message":"no"}}
        wait 25h
        "#,
    );
}

/// Progress proves that the call is alive, so it moves `timeout`; it must not let a server that
/// reports for ever run for ever.
#[test]
fn progress_moves_timeout_but_never_max() {
    check(
        r#"
        set timeout 30s
        set max 100s
        set restart never
        > {"id":1,"method":"tools/call","params":{"name":"x"}}
        >> {"id":1,…}
        wait 20s
        < {"method":"notifications/progress","params":{"progressToken":1,"progress":1}}
        wait 20s
        < {"method":"notifications/progress","params":{"progressToken":1,"progress":2}}
        wait 29s
        < {"method":"notifications/progress","params":{"progressToken":1,"progress":3}}
        wait 29s
        < {"method":"notifications/progress","params":{"progressToken":1,"progress":4}}
        wait 29s
        @1m40s
        !! warn: max server=srv method=tools/call tool=x limit=1m40s elapsed=1m40s setting=--max state=the server was told to cancel it
        << {"jsonrpc":"2.0","id":1,"error":{"code":-32001,"message":"`x` was ended after 1m40s, the longest time allowed (max, --max); the server was told to cancel it. Raise it with --tool 'x=max:3m20s'.",…}}
        >> {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"reason":"Timeout: no answer within 1m40s","timeout":100.0}}
        .. sample
        @1m45s
        .. sample
        !! warn: `srv` hangs: no sign of life for 5s since it was told to cancel
        "#,
    );
}

#[test]
fn silence_is_kept_alive() {
    check(
        r#"
        > {"id":1,"method":"tools/call","params":{"_meta":{"progressToken":"tok"},"name":"run_build"}}
        >> {"id":1,"method":"tools/call","params":{"_meta":{"progressToken":1},"name":"run_build"}}
        # The same call without a token hears nothing.
        > {"id":2,"method":"tools/call","params":{"name":"x"}}
        >> {"id":2,…}
        wait 12s
        @10s
        << {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"tok","progress":0.0001,"message":"`run_build` still running (10 s), no progress reported yet","_meta":{"dev.outlast/keepAlive":true}}}
        < {"method":"notifications/progress","params":{"progressToken":1,"progress":0,"total":5,"message":"compiling"}}
        << {"method":"notifications/progress","params":{"progressToken":"tok","progress":0.001076…,"total":5,"message":"compiling"}}
        wait 9s
        wait 2s
        @22s
        << {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"tok","progress":0.002…,"total":5.0,"message":"`run_build` still running (22 s), last sign of life 10 s ago","_meta":{"dev.outlast/keepAlive":true}}}
        < {"method":"notifications/progress","params":{"progressToken":1,"progress":5,"total":5}}
        << {"method":"notifications/progress","params":{"progressToken":"tok","progress":5,"total":5}}
        # Nothing of ours claims more than the server did.
        < {"method":"notifications/progress","params":{"progressToken":1,"total":5,"progress":5}}
        << {"method":"notifications/progress","params":{"progressToken":"tok","progress":5.000976…}}
        # A client that does not read gets no heap of them.
        congested on
        wait 10s
        congested off
        wait 10s
        @43s
        << {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"tok","progress":5.001…,"message":"`run_build` still running (43 s), last sign of life 20 s ago","_meta":{"dev.outlast/keepAlive":true}}}
        < {"id":1,"result":{}}
        << {"id":1,"result":{}}
        wait 1h
        "#,
    );
}

#[test]
fn cancel_reaches_the_attempt() {
    check(
        r#"
        > {"id":"a","method":"tools/call","params":{"name":"x"}}
        >> {"id":"1",…}
        > {"id":2,"method":"tools/call","params":{"name":"x"}}
        >> {"id":2,…}
        # The id may be written with escapes, the attempt's type is the request's.
        > {"method":"notifications/cancelled","params":{"requestId":"\u0061","reason":"user"}}
        >> {"method":"notifications/cancelled","params":{"requestId":"1","reason":"user"}}
        < {"id":"1","result":{}}
        !! info: `srv` answered attempt 1, which has ended; dropped
        < {"id":2,"result":{}}
        << {"id":2,"result":{}}
        "#,
    );
}

#[test]
fn initialize_is_never_cancelled() {
    check(
        r#"
        set handshake 10s
        > {"id":1,"method":"initialize","params":{}}
        >> {"id":1,"method":"initialize","params":{}}
        > {"method":"notifications/cancelled","params":{"requestId":1}}
        wait 10s
        @10s
        !! warn: timeout server=srv method=initialize limit=10s elapsed=10s setting=--handshake state=the server goes on with it
        << {"jsonrpc":"2.0","id":1,"error":{"code":-32001,"message":"`initialize` did not answer within 10s (timeout, --handshake); the server goes on with it. Raise it with --handshake 20s.",…}}
        .. sample
        "#,
    );
}

#[test]
fn timeout_fails_the_call_and_cancels_the_attempt() {
    check(
        r#"
        set tool run_*=timeout:500ms
        > {"id":"x","method":"tools/call","params":{"name":"run_it"}}
        >> {"id":"1",…}
        wait 500ms
        @500ms
        !! warn: timeout server=srv method=tools/call tool=run_it limit=500ms elapsed=500ms setting=--tool 'run_*' state=the server was told to cancel it
        << {"jsonrpc":"2.0","id":"x","error":{"code":-32001,"message":"`run_it` gave no sign of life for 500ms (timeout, --tool 'run_*'); the server was told to cancel it. Raise it with --tool 'run_it=timeout:1s'.","data":{"outlast":{"kind":"timeout","server":"srv","method":"tools/call","tool":"run_it","elapsedMs":500,"limitMs":500,"setting":"--tool 'run_*'","attempts":1,"serverState":"cancelled","retry":"unsafe","signs":{},"help":"outlast help -32001"}}}}
        >> {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"1","reason":"Timeout: no answer within 500ms","timeout":0.5}}
        .. sample
        # Whatever it says clears it of being hung.
        stderr working on it
        wait 1h
        "#,
    );
}

#[test]
fn a_modern_client_gets_the_modern_code() {
    check(
        r#"
        set timeout 1s
        > {"id":1,"method":"tools/call","params":{"name":"x","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}
        >> {"id":1,…}
        wait 1s
        @1s
        !! warn: timeout server=srv method=tools/call tool=x limit=1s elapsed=1s setting=--timeout state=the server was told to cancel it
        << {"jsonrpc":"2.0","id":1,"error":{"code":-31001,…"help":"outlast help -31001"}}}}
        >> {…}
        .. sample
        "#,
    );
}

#[test]
fn max_fails_the_call_and_cancels_the_attempt() {
    check(
        r#"
        set method vendor/*=max:1m
        > {"id":1,"method":"vendor/long"}
        >> {"id":1,"method":"vendor/long"}
        wait 1m
        @1m
        !! warn: max server=srv method=vendor/long limit=1m elapsed=1m setting=--method 'vendor/*' state=the server was told to cancel it
        << {"jsonrpc":"2.0","id":1,"error":{"code":-32001,"message":"`vendor/long` was ended after 1m, the longest time allowed (max, --method 'vendor/*'); the server was told to cancel it. Raise it with --method 'vendor/long=max:2m'.",…}}
        >> {…"requestId":1,…}
        .. sample
        < {"method":"notifications/message","params":{}}
        << {"method":"notifications/message","params":{}}
        wait 1h
        "#,
    );
}

#[test]
fn signs_of_the_server_move_timeout() {
    check(
        r#"
        # Nobody wrote this limit, so the server's work counts: 5 minutes, looked at 10 s before.
        > {"id":1,"method":"resources/read","params":{"uri":"a:b"}}
        >> {"id":1,…}
        looks busy
        wait 9m55s
        @4m50s
        .. sample
        @5m
        .. sample
        @9m50s
        .. sample
        < {"id":1,"result":{}}
        << {"id":1,"result":{}}
        "#,
    );
}

/// What a server says between the samples needs no samples.
#[test]
fn a_line_on_stderr_is_a_sign_of_the_server_whenever_it_comes() {
    check(
        r#"
        set tool x=timeout:4s,signs:call+server
        > {"id":1,"method":"tools/call","params":{"name":"x"}}
        >> {"id":1,…}
        wait 1s
        stderr step 1
        wait 6s
        @3s
        .. sample
        @4s
        .. sample
        @7s
        .. sample
        < {"id":1,"result":{}}
        << {"id":1,"result":{}}
        "#,
    );
}

/// Another outlast behind us says that a call lives; that is no sign of its server.
#[test]
fn keep_alive_of_another_outlast_moves_no_limit() {
    check(
        r#"
        set timeout 3s
        set restart never
        > {"id":1,"method":"tools/call","params":{"name":"x","_meta":{"progressToken":"t"}}}
        >> {"id":1,…}
        wait 2s
        < {"method":"notifications/progress","params":{"progressToken":1,"progress":0.1,"_meta":{"dev.outlast/keepAlive":true}}}
        << {"method":"notifications/progress","params":{"progressToken":"t","progress":0.1,"_meta":{"dev.outlast/keepAlive":true}}}
        wait 1s
        @3s
        !! warn: timeout server=srv method=tools/call tool=x limit=3s elapsed=3s setting=--timeout state=the server was told to cancel it
        << {…}
        >> {…}
        .. sample
        "#,
    );
}

#[test]
fn a_still_server_lets_timeout_fire() {
    check(
        r#"
        set tool x=timeout:4s,signs:call+server
        > {"id":1,"method":"tools/call","params":{"name":"x"}}
        >> {"id":1,…}
        > {"id":2,"method":"tools/call","params":{"name":"x"}}
        >> {"id":2,…}
        # Both calls share a sample; the watch takes one of its own.
        wait 4s
        @3s
        .. sample
        @4s
        .. sample
        !! warn: timeout server=srv method=tools/call tool=x limit=4s elapsed=4s setting=--tool 'x' state=the server was told to cancel it
        << {"jsonrpc":"2.0","id":1,"error":…}
        >> {…"requestId":1,…}
        .. sample
        !! warn: timeout server=srv method=tools/call tool=x limit=4s elapsed=4s setting=--tool 'x' state=the server was told to cancel it
        << {"jsonrpc":"2.0","id":2,"error":…}
        >> {…"requestId":2,…}
        < {"id":1,"result":{}}
        !! info: `srv` answered attempt 1, which has ended; dropped
        # Where no sample can be taken there is no sign.
        looks none
        > {"id":3,"method":"tools/call","params":{"name":"x"}}
        >> {"id":3,…}
        wait 4s
        @7s
        .. sample
        @8s
        .. sample
        !! warn: timeout server=srv method=tools/call tool=x limit=4s elapsed=4s setting=--tool 'x' state=the server was told to cancel it
        << {"jsonrpc":"2.0","id":3,"error":…}
        >> {…"requestId":3,…}
        .. sample
        < {"id":9,"result":{}}
        !! info: `srv` answered unknown id 9; dropped
        "#,
    );
}

#[test]
fn server_gone_settles() {
    check(
        r#"
        set restart never
        > {"id":1,"method":"tools/call","params":{"name":"x"}}
        >> {"id":1,…}
        > {"id":2,"method":"tools/list"}
        >> {"id":2,…}
        stderr Traceback: out of memory
        exited signal 9
        output-closed
        !! warn: `srv` ended: signal 9
        !! warn: server-gone server=srv method=tools/call tool=x elapsed=0s state=the server has ended detail=signal 9
        << {"jsonrpc":"2.0","id":1,"error":{"code":-31002,"message":"server `srv` went away (signal 9) before it answered `x`; last line on stderr: Traceback: out of memory. The call may have run.",…"retry":"unsafe","signs":{"stderr":"Traceback: out of memory"},…}}}}
        !! warn: server-gone …
        << {"jsonrpc":"2.0","id":2,"error":{"code":-31002,…"retry":"safe",…}}
        wait 1ms
        @0s
        .. end 137
        "#,
    );
}

const UP: &str = r#"
        > {"id":0,"method":"ping"}
        >> {"id":1,"method":"ping"}
        < {"id":1,"result":{}}
        << {"id":0,"result":{}}
"#;

#[test]
fn a_safe_call_is_repeated_after_a_crash() {
    check(&format!(
        r#"
        set tool search*=repeatable:true
        {UP}
        > {{"id":"r","method":"resources/read","params":{{"uri":"a:b"}}}}
        >> {{"id":"2",…}}
        > {{"id":3,"method":"tools/call","params":{{"name":"search_it","_meta":{{"progressToken":"t"}}}}}}
        >> {{"id":3,…}}
        # What a person calls repeatable may even have shown progress; it goes on rising.
        < {{"method":"notifications/progress","params":{{"progressToken":3,"progress":5}}}}
        << {{"method":"notifications/progress","params":{{"progressToken":"t","progress":5}}}}
        output-closed
        exited signal 11
        !! warn: `srv` ended: signal 11
        !! info: `resources/read` is sent to `srv` again (attempt 2): its server went away
        !! info: `tools/call` is sent to `srv` again (attempt 2): its server went away
        !! warn: restarting `srv` in 470ms: it ended
        wait 1s
        @470ms
        .. start 1
        started
        !! warn: `srv` is back after …
        >> {{"id":"4","method":"resources/read",…}}
        >> {{"id":5,"method":"tools/call",…}}
        <old {{"id":"2","result":{{}}}}
        < {{"method":"notifications/progress","params":{{"progressToken":5,"progress":1}}}}
        << {{"method":"notifications/progress","params":{{"progressToken":"t","progress":6.0}}}}
        < {{"id":"4","result":{{"contents":[]}}}}
        << {{"id":"r","result":{{"contents":[]}}}}
        < {{"id":5,"result":{{}}}}
        << {{"id":3,"result":{{}}}}
        "#
    ));
}

#[test]
fn an_unsafe_call_is_not_repeated() {
    check(&format!(
        r#"
        set method resources/*=repeatable:false
        {UP}
        > {{"id":1,"method":"tools/call","params":{{"name":"pay"}}}}
        >> {{"id":2,…}}
        > {{"id":2,"method":"resources/read","params":{{}}}}
        >> {{"id":3,…}}
        > {{"id":3,"method":"prompts/get","params":{{"requestState":"s"}}}}
        >> {{"id":4,…}}
        > {{"id":4,"method":"vendor/x"}}
        >> {{"id":5,…}}
        output-closed
        exited 1
        !! warn: `srv` ended: exit status 1
        !! warn: server-gone server=srv method=tools/call tool=pay …
        << {{"jsonrpc":"2.0","id":1,"error":{{…"serverState":"restarting","retry":"unsafe",…}}}}
        !! warn: server-gone …
        << {{"jsonrpc":"2.0","id":2,…}}
        !! warn: server-gone …
        << {{"jsonrpc":"2.0","id":3,…}}
        !! warn: server-gone …
        << {{"jsonrpc":"2.0","id":4,…}}
        !! warn: restarting `srv` in 470ms: it ended
        "#
    ));
}

#[test]
fn a_trusted_servers_hints_make_a_tool_repeatable() {
    check(&format!(
        r#"
        set trust
        {UP}
        > {{"id":1,"method":"tools/list"}}
        >> {{"id":2,"method":"tools/list"}}
        < {{"id":2,"result":{{"tools":[{{"name":"look","annotations":{{"readOnlyHint":true}}}},{{"name":"do"}}]}}}}
        << {{"id":1,"result":{{"tools":[{{"name":"look","annotations":{{"readOnlyHint":true}}}},{{"name":"do"}}]}}}}
        > {{"id":2,"method":"tools/call","params":{{"name":"look"}}}}
        >> {{"id":3,…}}
        > {{"id":3,"method":"tools/call","params":{{"name":"do"}}}}
        >> {{"id":4,…}}
        output-closed
        exited 1
        !! warn: `srv` ended: exit status 1
        !! info: `tools/call` is sent to `srv` again (attempt 2): its server went away
        !! warn: server-gone server=srv method=tools/call tool=do …
        << {{"jsonrpc":"2.0","id":3,…}}
        !! warn: restarting `srv` in 470ms: it ended
        "#
    ));
}

#[test]
fn a_safe_call_is_repeated_after_a_timeout() {
    check(
        r#"
        set method resources/*=timeout:2s
        set retries 1
        > {"id":1,"method":"resources/read","params":{}}
        >> {"id":1,…}
        wait 2s
        @2s
        !! info: `resources/read` is sent to `srv` again (attempt 2): it timed out
        >> {…"notifications/cancelled","params":{"requestId":1,…}
        .. sample
        looks busy
        # Somewhere within half a second.
        wait 500ms
        @2s…
        >> {"id":2,"method":"resources/read","params":{"_meta":{"progressToken":2}}}
        < {"id":1,"result":{"late":1}}
        !! info: `srv` answered attempt 1, which has ended; dropped
        wait 2s
        @4s…
        !! warn: timeout server=srv method=resources/read limit=2s …
        << {…"attempts":2,…"retry":"safe",…}
        >> {…"requestId":2,…}
        .. sample
        "#,
    );
}

#[test]
fn a_call_that_showed_progress_is_not_repeated() {
    check(&format!(
        r#"
        {UP}
        > {{"id":1,"method":"resources/read","params":{{}}}}
        >> {{"id":2,…}}
        < {{"method":"notifications/progress","params":{{"progressToken":2,"progress":1}}}}
        output-closed
        exited 1
        !! warn: `srv` ended: exit status 1
        !! warn: server-gone …
        << {{"jsonrpc":"2.0","id":1,…}}
        !! warn: restarting `srv` in 470ms: it ended
        "#
    ));
}

#[test]
fn oversized_answer_fails_the_call() {
    check(
        r#"
        > {"id":1,"method":"tools/call","params":{"name":"x"}}
        >> {"id":1,…}
        server-oversized 1
        !! warn: message-too-large …
        << {"jsonrpc":"2.0","id":1,"error":{"code":-31011,"message":"`x`: the answer is longer than 67108864 bytes (max-message). Raise it with --max-message, or ask for less.",…}}
        server-oversized
        !! warn: `srv` wrote a line to stdout that is not a message; dropped: (a line longer than max-message)
        client-oversized 5 request
        !! warn: a line of the client was refused: a message is longer than max-message (67108864 bytes)
        << {"jsonrpc":"2.0","id":5,"error":{"code":-31011,…}}
        client-oversized  request
        !! warn: a line of the client was refused: a message is longer than max-message (67108864 bytes)
        << {"jsonrpc":"2.0","id":null,"error":{"code":-31011,…}}
        # Neither is taken for the other: a question of the server is refused, the client's answer to
        # one becomes an error for whoever asked.
        > {"id":1,"method":"ping"}
        >> {"id":2,"method":"ping"}
        server-oversized 2 request
        >> {"jsonrpc":"2.0","id":2,"error":{"code":-31011,…}}
        < {"id":9,"method":"sampling/createMessage"}
        << {"id":1,"method":"sampling/createMessage"}
        client-oversized 1 answer
        !! warn: a line of the client was refused: a message is longer than max-message (67108864 bytes)
        >> {"jsonrpc":"2.0","id":9,"error":{"code":-31011,…}}
        < {"id":2,"result":{}}
        << {"id":1,"result":{}}
        "#,
    );
}

#[test]
fn late_answer_is_dropped() {
    check(
        r#"
        > {"id":1,"method":"ping"}
        >> {"id":1,"method":"ping"}
        < {"id":1,"result":{}}
        << {"id":1,"result":{}}
        < {"id":1,"result":{}}
        !! info: `srv` answered attempt 1, which has ended; dropped
        < {"id":77,"result":{}}
        !! info: `srv` answered unknown id 77; dropped
        < {"id":"zzz","result":{}}
        !! info: `srv` answered unknown id "zzz"; dropped
        # An error without an id is about a message that could not be read: the client's to know.
        < {"id":null,"error":{"code":-32700,"message":"?"}}
        << {"id":null,"error":{"code":-32700,"message":"?"}}
        "#,
    );
}

#[test]
fn late_progress_is_dropped() {
    check(
        r#"
        > {"id":1,"method":"tools/call","params":{"name":"x","_meta":{"progressToken":9}}}
        >> {"id":1,…}
        # No number, so nothing may be made of it.
        < {"method":"notifications/progress","params":{"progressToken":1,"progress":"half"}}
        < {"id":1,"result":{}}
        << {"id":1,"result":{}}
        < {"method":"notifications/progress","params":{"progressToken":1,"progress":1}}
        < {"method":"notifications/progress","params":{"progressToken":9,"progress":1}}
        < {"method":"notifications/progress","params":{"progressToken":"x","progress":1}}
        "#,
    );
}

#[test]
fn cancel_of_a_settled_call_is_ignored() {
    check(
        r#"
        > {"id":1,"method":"ping"}
        >> {"id":1,"method":"ping"}
        < {"id":1,"result":{}}
        << {"id":1,"result":{}}
        > {"method":"notifications/cancelled","params":{"requestId":1}}
        > {"method":"notifications/cancelled","params":{"requestId":2}}
        > {"method":"notifications/cancelled","params":{"requestId":[]}}
        # Without an id it is nothing that we understand, and passes.
        > {"method":"notifications/cancelled","params":{}}
        >> {"method":"notifications/cancelled","params":{}}
        "#,
    );
}

#[test]
fn progress_of_a_task_may_outlive_its_answer() {
    check(
        r#"
        > {"id":1,"method":"tools/call","params":{"name":"x","task":{"ttl":1},"_meta":{"progressToken":"t"}}}
        >> {"id":1,…}
        < {"id":1,"result":{"task":{"taskId":"k"}}}
        << {"id":1,"result":{"task":{"taskId":"k"}}}
        < {"method":"notifications/progress","params":{"progressToken":1,"progress":1}}
        << {"method":"notifications/progress","params":{"progressToken":"t","progress":1}}
        "#,
    );
}

/// An id that is used twice at once belongs to two calls; a cancel means the newer.
#[test]
fn an_id_in_use_twice_gets_two_answers() {
    check(
        r#"
        > {"id":1,"method":"tools/call","params":{"name":"x"}}
        >> {"id":1,…}
        > {"id":1,"method":"tools/call","params":{"name":"x"}}
        >> {"id":2,…}
        < {"id":1,"result":{"first":1}}
        << {"id":1,"result":{"first":1}}
        > {"method":"notifications/cancelled","params":{"requestId":1}}
        >> {"method":"notifications/cancelled","params":{"requestId":2}}
        "#,
    );
}

/// Some writers escape every `/`.
#[test]
fn escapes_in_methods_and_keys_are_understood() {
    check(
        r#"
        set timeout 1s
        > {"\u0069d":1,"method":"tools\/call","params":{"name":"x\u0021"}}
        >> {"\u0069d":1,"method":"tools\/call","params":{"_meta":{"progressToken":1},"name":"x\u0021"}}
        < {"method":"notifications\/progress","params":{"progressToken":1,"progress":1}}
        wait 1s
        @1s
        !! warn: timeout server=srv method=tools/call tool=x! …
        << {…}
        >> {…}
        .. sample
        < {"id":1,"result":1}
        !! info: `srv` answered attempt 1, which has ended; dropped
        "#,
    );
}

#[test]
fn a_request_may_shorten_its_limit() {
    check(
        r#"
        > {"id":1,"method":"tools/call","params":{"name":"x","_meta":{"dev.outlast/timeoutMs":1500}}}
        >> {"id":1,"method":"tools/call","params":{"name":"x","_meta":{"progressToken":1,"dev.outlast/timeoutMs":1500}}}
        wait 2s
        @1s500ms
        !! warn: timeout server=srv method=tools/call tool=x limit=1s500ms elapsed=1s500ms setting=_meta["dev.outlast/timeoutMs"] state=the server was told to cancel it
        << {…}
        >> {…}
        .. sample
        < {"id":1,"result":1}
        !! info: `srv` answered attempt 1, which has ended; dropped
        > {"id":2,"method":"tools/call","params":{"name":"x","_meta":{"dev.outlast/timeoutMs":-5}}}
        >> {"id":2,…}
        wait 23h
        "#,
    );
}

/// A wall clock that jumps, or a laptop that sleeps, costs nobody's limit: only the monotonic
/// clock counts, and it stood still.
#[test]
fn sleep_and_the_wall_clock_charge_no_limit() {
    check(
        r#"
        set timeout 30s
        > {"id":1,"method":"tools/call","params":{"name":"x"}}
        >> {"id":1,…}
        wait 29s
        slept 1h
        !! info: the machine slept for 1h; limits did not run meanwhile
        tick
        < {"id":1,"result":1}
        << {"id":1,"result":1}
        "#,
    );
}

#[test]
fn a_server_that_goes_on_after_a_cancel_is_known_for_it() {
    check(
        r#"
        set timeout 10s
        set restart on-crash
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"}}
        >> {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":{"progressToken":1},"name":"x"}}
        wait 10s
        @10s
        !! warn: timeout server=srv method=tools/call tool=x limit=10s elapsed=10s setting=--timeout state=the server was told to cancel it
        << {"jsonrpc":"2.0","id":1,…"serverState":"cancelled"…
        >> {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,…
        .. sample
        wait 2s
        < {"jsonrpc":"2.0","id":1,"result":{}}
        !! info: `srv` answered attempt 1, which has ended; dropped
        > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x"}}
        >> {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"_meta":{"progressToken":2},"name":"x"}}
        wait 10s
        @22s
        !! warn: timeout server=srv method=tools/call tool=x limit=10s elapsed=10s setting=--timeout state=the server was told to cancel it, but has ignored that before
        << {"jsonrpc":"2.0","id":2,"error":{"code":-32001,"message":"`x` gave no sign of life for 10s (timeout, --timeout); the server was told to cancel it, but has ignored that before. …"serverState":"cancel-ignored"…
        >> {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2,"reason":"Timeout: no answer within 10s","timeout":10.0}}
        .. sample
        "#,
    );
}

/// All else about keys is in `joining.rs`.
#[test]
fn a_second_call_with_the_same_key_joins() {
    check(
        r#"
        > {"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"pay","arguments":{"sum":1,"to":"ann"},"_meta":{"dev.outlast/idempotencyKey":"k","progressToken":"p7"}}}
        >> {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"pay","arguments":{"sum":1,"to":"ann"},"_meta":{"dev.outlast/idempotencyKey":"k","progressToken":1}}}
        > {"jsonrpc":"2.0","id":"b","method":"tools/call","params":{"name":"pay","arguments":{"to":"ann","sum":1.0},"_meta":{"dev.outlast/idempotencyKey":"k","progressToken":8}}}
        !! info: a call of `pay` at `srv` joined an earlier call that is the same (idempotency key or join-repeats)
        < {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":5}}
        << {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"p7","progress":5}}
        << {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":8,"progress":5}}
        < {"jsonrpc":"2.0","id":1,"result":{"content":[],"n":1.0}}
        << {"jsonrpc":"2.0","id":7,"result":{"content":[],"n":1.0}}
        << {"jsonrpc":"2.0","id":"b","result":{"content":[],"n":1.0}}
        # It has no ticket, so the same key runs again.
        > {"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"pay","arguments":{"sum":1,"to":"ann"},"idempotencyKey":"k"}}
        >> {"jsonrpc":"2.0","id":2,…"idempotencyKey":"k"}}
        "#,
    );
}

const FIRST: &str = r#"
        > {"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"pay","idempotencyKey":"k"}}
        >> {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":{"progressToken":1},"name":"pay","idempotencyKey":"k"}}
        > {"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"pay","idempotencyKey":"k"}}
        !! info: a call of `pay` at `srv` joined an earlier call that is the same (idempotency key or join-repeats)
"#;

#[test]
fn a_joined_call_is_cancelled_alone() {
    let then = r#"
        > {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":8}}
        < {"jsonrpc":"2.0","id":1,"result":{}}
        << {"jsonrpc":"2.0","id":7,"result":{}}
        "#;
    check(&format!("{FIRST}{then}"));
}

#[test]
fn a_joined_call_takes_the_place_of_the_first() {
    let then = r#"
        > {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}
        < {"jsonrpc":"2.0","id":1,"result":{}}
        << {"jsonrpc":"2.0","id":8,"result":{}}
        "#;
    check(&format!("{FIRST}{then}"));
}

/// A server that runs `slow` only as a task of its own, and has made one.
const FOLLOWED: &str = r#"
        > {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        >> {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        < {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"tasks":{"cancel":{},"requests":{"tools":{"call":{}}}}}}}
        << {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"tasks":{"cancel":{},"requests":{"tools":{"call":{}}}}}}}
        > {"jsonrpc":"2.0","id":2,"method":"tools/list"}
        >> {"jsonrpc":"2.0","id":2,"method":"tools/list"}
        < {"jsonrpc":"2.0","id":2,"result":{"tools":[{"name":"slow","execution":{"taskSupport":"required"}}]}}
        << {"jsonrpc":"2.0","id":2,"result":{"tools":[{"name":"slow","execution":{"taskSupport":"required"}}]}}
        > {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"slow"}}
        >> {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"_meta":{"progressToken":3},"task":{"ttl":86400000},"name":"slow"}}
        < {"jsonrpc":"2.0","id":3,"result":{"task":{"taskId":"t-1","status":"working","createdAt":"c","lastUpdatedAt":"1","ttl":1,"pollInterval":2000}}}
        wait 2s200ms
        @…
        >> {"jsonrpc":"2.0","id":4,"method":"tasks/get","params":{"taskId":"t-1"}}
"#;

#[test]
fn a_task_of_the_server_is_followed() {
    check(FOLLOWED);
}

#[test]
fn a_followed_task_settles_its_call() {
    let then = r#"
        < {"jsonrpc":"2.0","id":4,"result":{"taskId":"t-1","status":"completed","createdAt":"c","lastUpdatedAt":"2","ttl":1}}
        >> {"jsonrpc":"2.0","id":5,"method":"tasks/result","params":{"taskId":"t-1"}}
        < {"jsonrpc":"2.0","id":5,"result":{"content":[],"n":1.0}}
        << {"jsonrpc":"2.0","id":3,"result":{"content":[],"n":1.0}}
        "#;
    check(&format!("{FOLLOWED}{then}"));
}

/// A modern task whose server wants to know something.
const PAUSED: &str = r#"
        set tasks
        set timeout 20s
        > {"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"x",META}}
        >> {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x",SENT1}}
        wait 10s
        @10s
        .. store 1: create
        stored 1
        << {"jsonrpc":"2.0","id":5,"result":{"createdAt":"1970-01-01T00:00:00.000Z","lastUpdatedAt":"1970-01-01T00:00:10.000Z","pollIntervalMs":1000,"resultType":"task","status":"working","taskId":"T1","ttlMs":90000000}}
        < {"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","inputRequests":{"a":{"method":"roots/list"}},"requestState":"s"}}
        .. store 2: input_required
        stored 2
        # A person may take their time.
        wait 10m
"#;

#[track_caller]
fn paused(scenario: &str) {
    let revision = r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}"#;
    let sent = |number: u32| format!(r#""_meta":{{"progressToken":{number},{revision}}}"#);
    let scenario = format!("{PAUSED}{scenario}").replace("SENT1", &sent(1)).replace("SENT2", &sent(2));
    let scenario = scenario.replace("META", &format!(r#""_meta":{{{revision}}}"#));
    check(&scenario.replace("T1", "0101010101010101010101010101010101010101010101010101010101010101"));
}

#[test]
fn an_answer_that_asks_pauses_its_call() {
    paused(
        r#"
        > {"jsonrpc":"2.0","id":6,"method":"tasks/get","params":{"taskId":"T1",META}}
        << {"jsonrpc":"2.0","id":6,"result":{"createdAt":"1970-01-01T00:00:00.000Z","lastUpdatedAt":"1970-01-01T00:00:10.000Z","pollIntervalMs":10000,"resultType":"complete","status":"input_required","taskId":"T1","ttlMs":90000000,"inputRequests":{"1-1":{"method":"roots/list"}}}}
        "#,
    );
}

#[test]
fn a_paused_call_goes_on_with_the_answers() {
    paused(
        r#"
        > {"jsonrpc":"2.0","id":7,"method":"tasks/update","params":{"taskId":"T1","inputResponses":{"1-1":{"roots":[]}},META}}
        .. store 3: working
        >> {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"inputResponses":{"a":{"roots":[]}},"requestState":"s","name":"x",SENT2}}
        << {"jsonrpc":"2.0","id":7,"result":{"resultType":"complete"}}
        "#,
    );
}

/// A table that nobody plays is a story.
#[test]
fn every_row_of_the_table_is_played() {
    outlast_testkit::play_table!(
        "../../src/calls/call.rs":
        request_is_sent,
        request_waits_for_a_restart,
        request_to_a_failed_server_fails_at_once,
        request_beyond_the_bound_is_refused,
        waiting_call_is_sent_when_the_server_is_back,
        waiting_call_is_cancelled,
        waiting_call_reaches_its_limit,
        answer_settles,
        progress_moves_timeout_but_never_max,
        silence_is_kept_alive,
        cancel_reaches_the_attempt,
        initialize_is_never_cancelled,
        timeout_fails_the_call_and_cancels_the_attempt,
        max_fails_the_call_and_cancels_the_attempt,
        signs_of_the_server_move_timeout,
        a_still_server_lets_timeout_fire,
        server_gone_settles,
        oversized_answer_fails_the_call,
        a_safe_call_is_repeated_after_a_crash,
        an_unsafe_call_is_not_repeated,
        a_safe_call_is_repeated_after_a_timeout,
        a_call_that_showed_progress_is_not_repeated,
        a_second_call_with_the_same_key_joins,
        a_joined_call_is_cancelled_alone,
        a_joined_call_takes_the_place_of_the_first,
        a_task_of_the_server_is_followed,
        a_followed_task_settles_its_call,
        an_answer_that_asks_pauses_its_call,
        a_paused_call_goes_on_with_the_answers,
        late_answer_is_dropped,
        late_progress_is_dropped,
        cancel_of_a_settled_call_is_ignored,
    );
}
