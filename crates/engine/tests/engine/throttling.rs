//! Bounds of a server and of a principal: calls in flight, calls that wait for their turn, calls per second.

use outlast_testkit::script::check;

#[test]
fn a_call_beyond_the_bound_waits_for_its_turn() {
    check(
        r#"
        set max-in-flight 1
        > {"id":1,"method":"tools/call","params":{"name":"a"}}
        >> {"id":1,"method":"tools/call","params":{"_meta":{"progressToken":1},"name":"a"}}
        > {"id":2,"method":"tools/call","params":{"name":"b"}}
        > {"id":3,"method":"tools/call","params":{"name":"c"}}
        # What makes no work does not wait.
        > {"id":4,"method":"tools/list"}
        >> {"id":2,"method":"tools/list"}
        < {"id":1,"result":{}}
        << {"id":1,"result":{}}
        >> {"id":3,"method":"tools/call","params":{"_meta":{"progressToken":3},"name":"b"}}
        < {"id":3,"error":{"code":1,"message":"no"}}
        << {"id":2,"error":{"code":1,"message":"no"}}
        >> {"id":4,"method":"tools/call","params":{"_meta":{"progressToken":4},"name":"c"}}
        "#,
    );
}

#[test]
fn a_call_that_waits_can_be_cancelled_and_its_turn_goes_to_the_next() {
    check(
        r#"
        set max-in-flight 1
        > {"id":1,"method":"tools/call","params":{"name":"a"}}
        >> {"id":1,"method":"tools/call","params":{"_meta":{"progressToken":1},"name":"a"}}
        > {"id":2,"method":"tools/call","params":{"name":"b"}}
        > {"id":3,"method":"tools/call","params":{"name":"c"}}
        > {"method":"notifications/cancelled","params":{"requestId":2}}
        # A cancel frees the place of the call that runs.
        > {"method":"notifications/cancelled","params":{"requestId":1}}
        >> {"method":"notifications/cancelled","params":{"requestId":1}}
        >> {"id":2,"method":"tools/call","params":{"_meta":{"progressToken":2},"name":"c"}}
        "#,
    );
}

#[test]
fn when_the_queue_is_full_a_call_is_refused() {
    check(
        r#"
        set max-in-flight 1
        set queue 1
        > {"id":1,"method":"tools/call","params":{"name":"a"}}
        >> {"id":1,"method":"tools/call","params":{"_meta":{"progressToken":1},"name":"a"}}
        > {"id":2,"method":"tools/call","params":{"name":"b"}}
        > {"id":3,"method":"tools/call","params":{"name":"c"}}
        !! warn: queue-full server=srv method=tools/call tool=c elapsed=0s setting=--queue state=it never reached the server detail=server `srv` has 1 call in flight and 1 waiting (queue, --queue)
        << {"jsonrpc":"2.0","id":3,"error":{"code":-31022,"message":"`c` was not sent: server `srv` has 1 call in flight and 1 waiting (queue, --queue). Call again in 1s.",…"setting":"--queue","attempts":0,"serverState":"never-reached","retry":"safe","retryAfterMs":1000,…
        "#,
    );
    check(
        r#"
        set max-in-flight 1
        set queue 0
        > {"id":1,"method":"tools/call","params":{"name":"a"}}
        >> {"id":1,"method":"tools/call","params":{"_meta":{"progressToken":1},"name":"a"}}
        > {"id":2,"method":"tools/call","params":{"name":"b"}}
        !! warn: too-many-calls server=srv method=tools/call tool=b elapsed=0s setting=--max-in-flight state=it never reached the server detail=server `srv` has 1 call in flight, and none may wait (max-in-flight, --max-in-flight)
        << …"code":-31021…"kind":"too-many-calls"…
        "#,
    );
}

/// The limits of a call that waits are those of the queue: `timeout` begins when it is sent.
#[test]
fn a_call_waits_as_long_as_the_queue_lets_it() {
    check(
        r#"
        set max-in-flight 1
        set queue-wait 10s
        set timeout 15s
        set keep-alive 6s
        set restart never
        > {"id":1,"method":"tools/call","params":{"name":"a"}}
        >> {"id":1,"method":"tools/call","params":{"_meta":{"progressToken":1},"name":"a"}}
        wait 8s
        > {"id":2,"method":"tools/call","params":{"name":"b","_meta":{"progressToken":"p"}}}
        wait 4s
        > {"id":3,"method":"tools/call","params":{"name":"c"}}
        wait 11s
        @14s
        << …"progressToken":"p",…`b` is waiting for its turn (6 s)…
        @15s
        !! warn: timeout server=srv method=tools/call tool=a limit=15s elapsed=15s setting=--timeout state=the server was told to cancel it
        << …"id":1,…"code":-32001…
        >> {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"reason":"Timeout: no answer within 15s","timeout":15.0}}
        .. sample
        >> {"id":2,"method":"tools/call","params":{"name":"b","_meta":{"progressToken":2}}}
        @20s
        << …"progressToken":"p",…`b` still running…
        .. sample
        !! warn: `srv` hangs: no sign of life for 5s since it was told to cancel
        @22s
        !! warn: queue-wait server=srv method=tools/call tool=c limit=10s elapsed=10s setting=--queue-wait state=it never reached the server detail=it has waited 10s for its turn, and server `srv` is still busy (queue-wait, --queue-wait)
        << …"id":3,…"code":-31023…
        "#,
    );
}

#[test]
fn a_rate_lets_a_burst_begin_and_then_one_after_the_other() {
    check(
        r#"
        set rate 2/s
        set queue-wait 1s
        > {"id":1,"method":"tools/call","params":{"name":"a"}}
        >> {"id":1,"method":"tools/call","params":{"_meta":{"progressToken":1},"name":"a"}}
        > {"id":2,"method":"tools/call","params":{"name":"b"}}
        >> {"id":2,"method":"tools/call","params":{"_meta":{"progressToken":2},"name":"b"}}
        < {"id":1,"result":{}}
        << {"id":1,"result":{}}
        > {"id":3,"method":"tools/call","params":{"name":"c"}}
        > {"id":4,"method":"tools/call","params":{"name":"d"}}
        > {"id":5,"method":"tools/call","params":{"name":"e"}}
        !! warn: rate-limited server=srv method=tools/call tool=e elapsed=0s setting=--rate state=it never reached the server detail=server `srv` accepts calls at 2/s at most (rate, --rate)
        << …"id":5,…"code":-31024,"message":"`e` was not sent: server `srv` accepts calls at 2/s at most (rate, --rate). Call again in 1s500ms.",…"retryAfterMs":1500…
        wait 1s
        @500ms
        >> {"id":3,"method":"tools/call","params":{"_meta":{"progressToken":3},"name":"c"}}
        @1s
        >> {"id":4,"method":"tools/call","params":{"_meta":{"progressToken":4},"name":"d"}}
        "#,
    );
}

/// A modern client reads in the head of the response when to come again.
#[test]
fn a_principal_has_bounds_of_its_own_and_a_status_says_when_to_come_again() {
    let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
    check(
        &r#"
        set serve
        set rights bob rate=1/m queue-wait=2s
        post 1 principal=bob HEAD {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{META,"name":"x"}}
        .. 1: start 0
        >> 1: …"name":"x"}}
        started
        post 2 principal=bob HEAD {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{META,"name":"x"}}
        !! warn: rate-limited server=srv method=tools/call tool=x elapsed=0s setting=[tokens.bob] state=it never reached the server detail=token `bob` accepts calls at 1/m at most (rate, [tokens.bob])
        << 2: 429 retry-after=60 …"code":-31024…
        # Nobody else is held up.
        post 3 principal=ann HEAD {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{META,"name":"x"}}
        .. 2: start 0
        >> 2: …"name":"x"}}
        "#
        .replace("HEAD", "version=2026-07-28 method=tools/call name=x")
        .replace("META", meta),
    );
}

#[test]
fn a_call_that_waits_at_its_server_keeps_its_place_at_its_principal() {
    check(
        &r#"
        set serve
        set max-in-flight 1
        set share all
        set rights bob max-in-flight=1
        post 1 principal=ann HEAD {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{META,"name":"x"}}
        .. 1: start 0
        >> 1: …"id":1,…
        started
        post 2 principal=bob HEAD {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{META,"name":"x"}}
        post 3 principal=bob HEAD {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{META,"name":"x"}}
        < {"jsonrpc":"2.0","id":1,"result":{"n":1}}
        << 1: 200 …"n":1…
        >> 1: …"id":2,…
        < {"jsonrpc":"2.0","id":2,"result":{"n":2}}
        << 2: 200 …"n":2…
        >> 1: …"id":3,…
        # A client that hangs up frees its place.
        hang-up 3
        >> 1: …notifications/cancelled…
        "#
        .replace("HEAD", "version=2026-07-28 method=tools/call name=x")
        .replace(
            "META",
            r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#,
        ),
    );
}

/// The turn of a call may come while its server is away: it waits for the server then, and still has its place.
#[test]
fn a_turn_that_comes_while_the_server_is_away_is_kept() {
    check(
        r#"
        set max-in-flight 1
        set repeatable true
        > {"id":0,"method":"initialize"}
        >> {"id":1,"method":"initialize"}
        < {"id":1,"result":{}}
        << {"id":0,"result":{}}
        > {"id":1,"method":"tools/call","params":{"name":"a"}}
        >> {"id":2,"method":"tools/call","params":{"_meta":{"progressToken":2},"name":"a"}}
        > {"id":2,"method":"tools/call","params":{"name":"b"}}
        output-closed
        exited 1
        !! warn: `srv` ended: exit status 1
        !! info: `tools/call` is sent to `srv` again (attempt 2): its server went away
        !! warn: restarting `srv` in 470ms: it ended
        > {"method":"notifications/cancelled","params":{"requestId":1}}
        # The second call has its turn, and no third one begins before it.
        > {"id":3,"method":"tools/call","params":{"name":"c"}}
        wait 1s
        @470ms
        .. start 1
        started
        >> {"id":3,"method":"initialize"}
        < {"id":3,"result":{}}
        !! warn: `srv` is back after 1s
        >> …"name":"b"}}
        "#,
    );
}

#[test]
fn a_turn_that_comes_while_the_server_sleeps_wakes_it() {
    check(
        r#"
        set server-idle 10s
        set rate 1/m
        set queue-wait 2m
        started
        > {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        >> {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        < {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}
        << {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}
        > {"jsonrpc":"2.0","method":"notifications/initialized"}
        >> {"jsonrpc":"2.0","method":"notifications/initialized"}
        > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"a"}}
        >> {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"_meta":{"progressToken":2},"name":"a"}}
        < {"jsonrpc":"2.0","id":2,"result":{}}
        << {"jsonrpc":"2.0","id":2,"result":{}}
        wait 20s
        @10s
        !! info: `srv` was not used for 10s (server-idle): stopped until it is needed
        .. close-input
        @11s
        .. terminate
        @11s500ms
        .. kill
        output-closed
        exited 0
        > {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"b"}}
        wait 40s
        @1m
        .. start 1
        "#,
    );
}

#[test]
fn a_bound_that_is_raised_lets_those_pass_who_wait() {
    check(
        r#"
        set max-in-flight 1
        > {"id":1,"method":"tools/call","params":{"name":"a"}}
        >> {"id":1,"method":"tools/call","params":{"_meta":{"progressToken":1},"name":"a"}}
        > {"id":2,"method":"tools/call","params":{"name":"b"}}
        > {"id":3,"method":"tools/call","params":{"name":"c"}}
        reload srv+2
        !! info: the file was read again; changed: srv
        >> {"id":2,"method":"tools/call","params":{"_meta":{"progressToken":2},"name":"b"}}
        "#,
    );
}

#[test]
fn calls_that_wait_for_their_turn_are_sent_after_the_end_of_input() {
    check(
        r#"
        set max-in-flight 1
        > {"id":1,"method":"tools/call","params":{"name":"a"}}
        >> {"id":1,"method":"tools/call","params":{"_meta":{"progressToken":1},"name":"a"}}
        > {"id":2,"method":"tools/call","params":{"name":"b"}}
        eof
        < {"id":1,"result":{}}
        << {"id":1,"result":{}}
        >> {"id":2,"method":"tools/call","params":{"_meta":{"progressToken":2},"name":"b"}}
        # Nothing more will be sent.
        .. close-input
        < {"id":2,"result":{}}
        << {"id":2,"result":{}}
        "#,
    );
}

#[test]
fn who_waits_too_long_for_a_turn_hears_of_it_after_the_end_of_input() {
    check(
        r#"
        set max-in-flight 1
        set queue-wait 2s
        > {"id":1,"method":"tools/call","params":{"name":"a"}}
        >> {"id":1,"method":"tools/call","params":{"_meta":{"progressToken":1},"name":"a"}}
        > {"id":2,"method":"tools/call","params":{"name":"b"}}
        eof
        wait 2s
        @2s
        !! warn: queue-wait server=srv method=tools/call tool=b limit=2s elapsed=2s setting=--queue-wait state=it never reached the server detail=it has waited 2s for its turn, and server `srv` is still busy (queue-wait, --queue-wait)
        << {"jsonrpc":"2.0","id":2,"error":{"code":-31023,…
        .. close-input
        "#,
    );
}
