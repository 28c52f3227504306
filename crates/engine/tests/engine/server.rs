//! The table in the header of `servers/server.rs`, row by row, and how everything ends.

use outlast_testkit::script::check;

#[test]
fn a_server_starts() {
    check(
        r#"
        > {"id":1,"method":"ping"}
        >> {"id":1,"method":"ping"}
        < {"id":1,"result":{}}
        << {"id":1,"result":{}}
        "#,
    );
}

#[test]
fn a_command_that_cannot_start_answers_the_first_request() {
    outlast_testkit::script::plays();
    use outlast_engine::event::StartFailure;
    use outlast_engine::id::{ClientId, Run, ServerId};
    use outlast_engine::{Action, Engine, Event, Now, ServerConfig};
    let mut engine = Engine::new(ServerConfig { command: "nope".into(), ..ServerConfig::default() }.into());
    let mut feed = |event| {
        engine.handle(Now::default(), event);
        std::iter::from_fn(|| engine.poll()).collect::<Vec<_>>()
    };
    feed(Event::Opened(ClientId(0), ServerId(0)));
    let line = outlast_engine::wire::scan(bytes(r#"{"id":1,"method":"initialize"}"#));
    feed(Event::FromClient(ClientId(0), line));
    let actions = feed(Event::StartFailed(ServerId(0), Run(0), StartFailure::NotFound));
    let answer = actions.iter().find_map(|action| match action {
        Action::ToClient(_, message) => Some(String::from_utf8(message.to_vec()).unwrap()),
        _ => None,
    });
    let answer = answer.expect("an answer");
    assert!(
        answer.contains(r#""code":-31003"#) && answer.contains("cannot start `nope`: command not found"),
        "{answer}"
    );
    let actions = feed(Event::Tick);
    assert!(matches!(actions[..], [Action::End { status: 127, .. }]), "{actions:?}");
}

fn bytes(text: &str) -> bytes::Bytes {
    bytes::Bytes::copy_from_slice(text.as_bytes())
}

#[test]
fn a_command_that_cannot_start_waits_for_a_request_no_longer_than_it_must() {
    use outlast_engine::event::StartFailure;
    use outlast_engine::id::{ClientId, Run, ServerId};
    use outlast_engine::{Action, Config, Engine, Event, Mono, Now};
    use std::time::Duration;
    let mut engine = Engine::new(Config::default());
    let mut feed = |millis, event| {
        let mono = Mono::after_start(Duration::from_millis(millis));
        engine.handle(Now { mono, ..Now::default() }, event);
        std::iter::from_fn(|| engine.poll())
            .filter(|action| !matches!(action, Action::Note(_)))
            .collect::<Vec<_>>()
    };
    feed(0, Event::Opened(ClientId(0), ServerId(0)));
    assert!(feed(1, Event::StartFailed(ServerId(0), Run(0), StartFailure::Refused(11))).is_empty());
    assert!(feed(500, Event::Tick).is_empty());
    assert!(matches!(feed(501, Event::Tick)[..], [Action::End { status: 126, .. }]));
}

#[test]
fn a_server_that_ends_ends_us() {
    check(
        r#"
        set restart never
        > {"id":1,"method":"ping"}
        >> {"id":1,"method":"ping"}
        < {"id":1,"result":{}}
        << {"id":1,"result":{}}
        output-closed
        exited 3
        !! warn: `srv` ended: exit status 3
        wait 1ms
        @0s
        .. end 3
        "#,
    );
}

#[test]
fn a_server_that_never_answered_ends_us_after_the_first_request() {
    check(
        r#"
        stderr cannot find module
        exited 1
        output-closed
        !! warn: `srv` ended: exit status 1
        wait 100ms
        > {"id":1,"method":"initialize"}
        !! warn: server-gone …
        << {"jsonrpc":"2.0","id":1,"error":{"code":-31002,"message":"server `srv` went away (exit status 1) before it answered `initialize`; last line on stderr: cannot find module.",…}}
        wait 1ms
        @100ms
        .. end 1
        "#,
    );
}

#[test]
fn what_an_ended_server_wrote_last_still_counts() {
    check(
        r#"
        set restart never
        > {"id":1,"method":"ping"}
        >> {"id":1,"method":"ping"}
        exited 0
        < {"id":1,"result":{}}
        << {"id":1,"result":{}}
        # A grandchild holds the output open; it is not waited for for ever.
        wait 1s
        @200ms
        !! warn: `srv` ended: exit status 0
        .. end 0
        "#,
    );
}

/// The pipe of a command that could not be started closes too, and may do so after the news.
#[test]
fn the_pipe_of_what_never_ran_changes_nothing() {
    check(
        r#"
        set timeout-mcp auto-restart
        output-closed
        exited 1
        !! warn: `srv` ended: exit status 1
        !! warn: restarting `srv` in 470ms: it ended
        wait 1s
        @470ms
        .. start 1
        start-failed not-found
        !! warn: restart of `srv` failed: command not found
        !! warn: restarting `srv` in 2s: it could not be started
        output-closed
        wait 2s
        @3s
        .. start 2
        # It may also close before the news that it runs.
        output-closed
        started
        !! warn: `srv` is back after …
        wait 1s
        @4s
        !! warn: `srv` has closed its stdout; outlast stops it
        .. terminate
        "#,
    );
}

/// We do not read on while the client does not read; what an ended server wrote still counts.
#[test]
fn what_an_ended_server_wrote_waits_for_a_slow_client() {
    check(
        r#"
        set restart never
        > {"id":1,"method":"ping"}
        >> {"id":1,"method":"ping"}
        congested on
        exited 0
        wait 10s
        congested off
        < {"id":1,"result":{}}
        << {"id":1,"result":{}}
        output-closed
        !! warn: `srv` ended: exit status 0
        "#,
    );
}

#[test]
fn a_signal_after_the_end_gives_up_on_a_slow_reader() {
    check(
        r#"
        eof
        .. close-input
        output-closed
        exited 0
        .. end 0
        stop 15
        .. end 143
        "#,
    );
}

#[test]
fn a_server_that_closed_its_output_is_stopped() {
    check(
        r#"
        set restart never
        > {"id":1,"method":"ping"}
        >> {"id":1,"method":"ping"}
        output-closed
        wait 2s
        @1s
        !! warn: `srv` has closed its stdout; outlast stops it
        .. terminate
        @1s500ms
        .. kill
        exited signal 9
        !! warn: `srv` ended: signal 9
        !! warn: server-gone …
        << {"jsonrpc":"2.0","id":1,"error":…}
        "#,
    );
}

#[test]
fn a_server_that_closed_its_input_is_stopped() {
    check(
        r#"
        set restart never
        > {"id":1,"method":"ping"}
        >> {"id":1,"method":"ping"}
        > {"id":2,"method":"tools/call","params":{"name":"pay"}}
        >> {"id":2,…}
        # The second one has never left, and so it has never run.
        input-broken {"id":2,"method":"tools/call","params":{"name":"pay"}}
        !! warn: `srv` has closed its stdin; outlast stops it
        !! warn: server-failed server=srv method=tools/call tool=pay elapsed=0s state=it never reached the server detail=it has closed its stdin
        << {"jsonrpc":"2.0","id":2,"error":{"code":-31003,…"serverState":"never-reached","retry":"safe"…}}
        # What it is about to say still counts.
        < {"id":1,"result":{}}
        << {"id":1,"result":{}}
        # What comes now is not sent.
        > {"id":3,"method":"tools/call","params":{"name":"pay"}}
        wait 1s
        @1s
        .. terminate
        exited 0
        output-closed
        !! warn: `srv` ended: exit status 0
        !! warn: server-gone …
        << {"jsonrpc":"2.0","id":3,"error":{…"serverState":"never-reached","retry":"safe"…}}
        "#,
    );
}

#[test]
fn what_comes_to_a_server_that_closed_its_input_goes_to_the_next_process() {
    check(
        r#"
        > {"id":1,"method":"ping"}
        >> {"id":1,"method":"ping"}
        < {"id":1,"result":{}}
        << {"id":1,"result":{}}
        input-broken
        !! warn: `srv` has closed its stdin; outlast stops it
        > {"id":2,"method":"tools/call","params":{"name":"pay"}}
        output-closed
        exited 0
        !! warn: `srv` ended: exit status 0
        !! warn: restarting `srv` in …: it ended
        wait 500ms
        @470ms
        .. start 1
        started
        !! warn: `srv` is back after …
        >> {"id":2,…"name":"pay"…}
        "#,
    );
}

#[test]
fn a_timeout_restarts_where_asked() {
    check(
        r#"
        set timeout-mcp auto-restart
        set timeout 5s
        set signs none
        > {"id":1,"method":"tools/call","params":{"name":"slow"}}
        >> {"id":1,…}
        wait 1s
        > {"id":2,"method":"tools/call","params":{"name":"other"}}
        >> {"id":2,…}
        < {"method":"notifications/progress","params":{"progressToken":1,"progress":1}}
        wait 4s
        @5s
        !! warn: timeout server=srv method=tools/call tool=slow limit=5s elapsed=5s setting=--timeout state=the server is being restarted
        << {"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"Method 'tools/call' timed out after 5s (restarting now...)",…}}
        >> {…"notifications/cancelled"…}
        !! warn: restarting `srv`: a call timed out
        .. terminate
        !! warn: server-gone …
        << {"jsonrpc":"2.0","id":2,"error":{"code":-32603,"message":"server `srv` went away (restarted because a call timed out) before it answered `other`. The call may have run. (restarting now...)",…"serverState":"restarting",…}}
        wait 600ms
        @5s500ms
        .. kill
        output-closed
        exited signal 9
        wait 1ms
        @5s600ms
        .. start 1
        # What the replaced process still wrote concerns nobody.
        <old {"id":1,"result":{}}
        started
        !! warn: `srv` is back after 601ms
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
fn a_crash_restarts() {
    check(&format!(
        r#"{UP}
        > {{"id":1,"method":"tools/call","params":{{"name":"x"}}}}
        >> {{"id":2,…}}
        stderr panic: index out of bounds
        output-closed
        exited 101
        !! warn: `srv` ended: exit status 101
        !! warn: server-gone …
        << {{"jsonrpc":"2.0","id":1,"error":{{"code":-31002,"message":"server `srv` went away (exit status 101) before it answered `x`; last line on stderr: panic: index out of bounds. The call may have run.",…"serverState":"restarting","retry":"unsafe",…}}}}
        !! warn: restarting `srv` in 470ms: it ended
        wait 1s
        @470ms
        .. start 1
        started
        !! warn: `srv` is back after 1s
        > {{"id":2,"method":"ping"}}
        >> {{"id":3,"method":"ping"}}
        "#
    ));
}

/// Nothing is started again while outlast ends, so nothing says so.
#[test]
fn a_server_that_hangs_while_outlast_ends_is_not_restarted() {
    check(&format!(
        r#"
        set timeout 3s
        {UP}
        > {{"id":1,"method":"tools/call","params":{{"name":"x"}}}}
        >> {{"id":2,…}}
        > {{"id":2,"method":"tools/list"}}
        >> {{"id":3,"method":"tools/list"}}
        eof
        .. close-input
        wait 3s
        @3s
        !! warn: timeout …state=the server was told to cancel it
        << {{"jsonrpc":"2.0","id":1,"error":…}}
        >> {{…"notifications/cancelled"…}}
        .. sample
        wait 5s
        @8s
        .. sample
        !! warn: `srv` hangs: no sign of life for 5s since it was told to cancel
        wait 23s600ms
        @31s
        .. terminate
        @31s500ms
        .. kill
        "#
    ));
}

#[test]
fn a_hung_server_is_replaced() {
    check(&format!(
        r#"
        set timeout 3s
        {UP}
        > {{"id":1,"method":"tools/call","params":{{"name":"x"}}}}
        >> {{"id":2,…}}
        wait 3s
        @3s
        !! warn: timeout server=srv method=tools/call tool=x limit=3s elapsed=3s setting=--timeout state=the server was told to cancel it
        << {{"jsonrpc":"2.0","id":1,"error":…}}
        >> {{…"notifications/cancelled"…}}
        .. sample
        > {{"id":2,"method":"tools/list"}}
        >> {{"id":3,"method":"tools/list"}}
        wait 5s
        @8s
        .. sample
        !! warn: `srv` hangs: no sign of life for 5s since it was told to cancel
        !! warn: restarting `srv`: it hangs
        .. terminate
        !! info: `tools/list` is sent to `srv` again (attempt 2): its server went away
        wait 1s
        @9s
        .. kill
        output-closed
        exited signal 9
        # The first time without a wait.
        wait 1ms
        @9s
        .. start 1
        started
        !! warn: `srv` is back after 1s1ms
        >> {{"id":4,"method":"tools/list"}}
        "#
    ));
}

/// A busy server is slow, not hung; so is one that answers a ping, or says anything.
#[test]
fn a_server_that_shows_life_is_not_replaced() {
    check(&format!(
        r#"
        set timeout 3s
        {UP}
        looks busy
        > {{"id":1,"method":"tools/call","params":{{"name":"x"}}}}
        >> {{"id":2,…}}
        wait 9s
        @3s
        !! warn: timeout server=srv method=tools/call tool=x limit=3s elapsed=3s setting=--timeout state=the server was told to cancel it
        << {{…}}
        >> {{…}}
        .. sample
        @8s
        .. sample
        "#
    ));
    check(
        r#"
        set timeout 3s
        > {"id":"i","method":"initialize","params":{}}
        >> {"id":"1",…}
        < {"id":"1","result":{}}
        << {"id":"i","result":{}}
        > {"id":1,"method":"tools/call","params":{"name":"x"}}
        >> {"id":2,…}
        wait 3s
        @3s
        !! warn: timeout server=srv method=tools/call tool=x limit=3s elapsed=3s setting=--timeout state=the server was told to cancel it
        << {…}
        >> {…"notifications/cancelled"…}
        .. sample
        >> {"jsonrpc":"2.0","id":3,"method":"ping"}
        wait 4s
        < {"id":3,"result":{}}
        wait 1h
        "#,
    );
}

/// No limit that nobody wrote costs a server its life.
#[test]
fn a_built_in_limit_never_replaces_a_server() {
    check(&format!(
        r#"
        set retries 0
        {UP}
        > {{"id":1,"method":"resources/read","params":{{}}}}
        >> {{"id":2,…}}
        wait 1h
        @4m50s
        .. sample
        @5m
        .. sample
        !! warn: timeout server=srv method=resources/read limit=5m elapsed=5m setting=built-in state=the server was told to cancel it
        << {{…}}
        >> {{…}}
        "#
    ));
}

#[test]
fn a_stopped_server_is_started_again() {
    a_timeout_restarts_where_asked();
}

#[test]
fn a_rested_server_is_started() {
    a_crash_restarts();
}

const INITIALISED: &str = r#"
        set method initialize=timeout:10s
        > {"id":"i","method":"initialize","params":{"v":1}}
        >> {"id":"1","method":"initialize","params":{"v":1}}
        < {"id":"1","result":{"capabilities":{"logging":{}}}}
        << {"id":"i","result":{"capabilities":{"logging":{}}}}
        > {"method":"notifications/initialized"}
        >> {"method":"notifications/initialized"}
"#;

const CRASHED: &str = r#"
        output-closed
        exited 0
        !! warn: `srv` ended: exit status 0
        !! warn: restarting `srv` in 470ms: it ended
        wait 1s
        @470ms
        .. start 1
        started
"#;

#[test]
fn a_restarted_server_gets_the_handshake() {
    check(&format!(
        r#"{INITIALISED}{CRASHED}
        >> {{"id":"2","method":"initialize","params":{{"v":1}}}}
        "#
    ));
}

#[test]
fn a_revived_server_is_made_whole() {
    check(&format!(
        r#"{INITIALISED}
        > {{"id":1,"method":"logging/setLevel","params":{{"level":"info"}}}}
        >> {{"id":2,…}}
        < {{"id":2,"result":{{}}}}
        << {{"id":1,"result":{{}}}}
        > {{"id":2,"method":"resources/subscribe","params":{{"uri":"a:1"}}}}
        >> {{"id":3,…}}
        > {{"id":3,"method":"resources/subscribe","params":{{"uri":"a:2"}}}}
        >> {{"id":4,…}}
        > {{"id":4,"method":"resources/unsubscribe","params":{{"uri":"a:1"}}}}
        >> {{"id":5,…}}
        > {{"id":5,"method":"tools/list"}}
        >> {{"id":6,"method":"tools/list"}}
        > {{"id":6,"method":"prompts/list"}}
        >> {{"id":7,"method":"prompts/list"}}
        < [{{"id":3,"result":{{}}}},{{"id":4,"result":{{}}}},{{"id":5,"result":{{}}}},{{"id":6,"result":{{"tools":[1]}}}},{{"id":7,"result":{{"prompts":[]}}}}]
        << {{"id":2,…}}
        << {{"id":3,…}}
        << {{"id":4,…}}
        << {{"id":5,…}}
        << {{"id":6,…}}
        {CRASHED}
        >> {{"id":"8","method":"initialize","params":{{"v":1}}}}
        > {{"id":7,"method":"tools/call","params":{{"name":"x"}}}}
        # A notification is about what the new process has never heard of.
        > {{"method":"notifications/roots/list_changed"}}
        < {{"id":"8","result":{{}}}}
        !! warn: `srv` is back after 1s
        >> {{"method":"notifications/initialized"}}
        >> {{"id":9,"method":"logging/setLevel","params":{{"level":"info"}}}}
        >> {{"id":10,"method":"resources/subscribe","params":{{"uri":"a:2"}}}}
        >> {{"id":11,"method":"tools/list"}}
        >> {{"id":12,"method":"prompts/list"}}
        << {{"jsonrpc":"2.0","method":"notifications/message","params":{{"level":"warning","logger":"outlast","data":"server `srv` was restarted; what it remembered may be lost"}}}}
        >> {{"id":13,"method":"tools/call",…}}
        < {{"id":9,"result":{{}}}}
        < {{"id":10,"error":{{"code":1,"message":"no such resource any more"}}}}
        # Of the lists only the one that differs is told.
        < {{"id":11,"result":{{"tools":[2]}}}}
        << {{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}}
        < {{"id":12,"result":{{"prompts":[]}}}}
        < {{"id":13,"result":{{}}}}
        << {{"id":7,"result":{{}}}}
        "#
    ));
}

#[test]
fn a_restart_that_fails_is_tried_again_later() {
    check(&format!(
        r#"{INITIALISED}{CRASHED}
        >> {{"id":"2",…}}
        < {{"id":"2","error":{{"code":1,"message":"no"}}}}
        !! warn: restart of `srv` failed: it refused initialize: {{"code":1,"message":"no"}}
        .. terminate
        output-closed
        exited 0
        !! warn: restarting `srv` in 2s: it was stopped
        wait 2s
        @3s
        .. start 2
        start-failed not-found
        !! warn: restart of `srv` failed: command not found
        !! warn: restarting `srv` in 4s: it could not be started
        wait 4s
        @7s
        .. start 3
        started
        >> {{"id":"3","method":"initialize","params":{{"v":1}}}}
        # Silence is a failure too.
        wait 10s
        @17s
        !! warn: restart of `srv` failed: no answer to initialize within 10s (handshake)
        .. terminate
        output-closed
        exited signal 15
        !! warn: restarting `srv` in 8s: it was stopped
        wait 8s
        @25s
        .. start 4
        started
        >> {{"id":"4",…}}
        > {{"id":1,"method":"ping"}}
        output-closed
        exited 7
        !! warn: `srv` ended: exit status 7
        !! warn: restart of `srv` failed: it ended: exit status 7
        !! warn: `srv` has failed too often (it ended); outlast tries again every 30s
        !! warn: server-failed …
        << {{"jsonrpc":"2.0","id":1,"error":{{"code":-31003,"message":"server `srv` cannot be reached: it has failed several times in a row (exit status 7); the next try is in 30s.",…}}}}
        "#
    ));
}

const TOO_MANY: &str = r#"
        set restart-intensity 1
        > {"id":0,"method":"ping"}
        >> {"id":1,"method":"ping"}
        < {"id":1,"result":{}}
        << {"id":0,"result":{}}
        output-closed
        exited 1
        !! warn: `srv` ended: exit status 1
        !! warn: restarting `srv` in 470ms: it ended
        wait 1s
        @470ms
        .. start 1
        started
        !! warn: `srv` is back after 1s
        > {"id":1,"method":"tools/call","params":{"name":"x"}}
        >> {"id":2,…}
        output-closed
        exited 1
        !! warn: `srv` ended: exit status 1
        !! warn: server-gone …state=the server has ended…
        << {"jsonrpc":"2.0","id":1,…"serverState":"gone"…}
        !! warn: `srv` has failed too often (it ended); outlast tries again every 30s
"#;

#[test]
fn too_many_restarts_are_a_failure() {
    check(TOO_MANY);
}

#[test]
fn a_failed_server_answers_at_once() {
    check(&format!(
        r#"{TOO_MANY}
        wait 10s
        > {{"id":2,"method":"tools/call","params":{{"name":"x"}}}}
        << {{"jsonrpc":"2.0","id":2,"error":{{"code":-31003,"message":"server `srv` cannot be reached: it has failed several times in a row (exit status 1); the next try is in 20s.",…"serverState":"never-reached","retry":"pointless",…}}}}
        "#
    ));
}

#[test]
fn a_failed_server_is_tried_for_ever() {
    check(&format!(
        r#"{TOO_MANY}
        wait 30s
        @31s
        .. start 2
        start-failed not-found
        !! warn: restart of `srv` failed: command not found
        !! warn: restarting `srv` in 2s: it could not be started
        wait 2s
        @33s
        .. start 3
        started
        !! warn: `srv` is back after …
        > {{"id":2,"method":"ping"}}
        >> {{"id":3,"method":"ping"}}
        "#
    ));
}

// The end.

#[test]
fn after_the_clients_end_calls_may_finish() {
    check(
        r#"
        > {"id":1,"method":"ping"}
        >> {"id":1,"method":"ping"}
        eof
        .. close-input
        wait 10s
        < {"id":1,"result":{}}
        << {"id":1,"result":{}}
        # Then the server has a second to end by itself.
        wait 2s
        @11s
        .. terminate
        @11s500ms
        .. kill
        @11s800ms
        .. end 0
        "#,
    );
}

#[test]
fn drain_is_a_limit() {
    check(
        r#"
        set drain 3s
        > {"id":1,"method":"ping"}
        >> {"id":1,"method":"ping"}
        eof
        .. close-input
        wait 4s500ms
        @4s
        .. terminate
        @4s500ms
        .. kill
        output-closed
        exited signal 9
        !! warn: server-gone …
        .. end 137
        "#,
    );
}

/// There are clients that break on an answer which comes while they close, and without us none would come.
#[test]
fn after_the_clients_end_it_hears_only_its_server_and_limits() {
    check(
        r#"
        set keep-alive 1s
        set timeout 3s
        > {"id":1,"method":"tools/call","params":{"name":"x","_meta":{"progressToken":"t"}}}
        >> {"id":1,…}
        > {"id":2,"method":"ping"}
        >> {"id":2,"method":"ping"}
        > {"id":3,"method":"ping"}
        >> {"id":3,"method":"ping"}
        eof
        .. close-input
        < {"id":2,"result":{}}
        << {"id":2,"result":{}}
        < {"method":"notifications/progress","params":{"progressToken":1,"progress":1}}
        << {"method":"notifications/progress","params":{"progressToken":"t","progress":1}}
        # No keep-alive; but a limit is answered.
        wait 3s
        @3s
        !! warn: timeout server=srv method=tools/call tool=x limit=3s elapsed=3s setting=--timeout state=the server was told to cancel it
        << {"jsonrpc":"2.0","id":1,"error":{"code":-32001,…}}
        >> {…"notifications/cancelled"…}
        .. sample
        # What a server leaves unanswered at its end stays so.
        output-closed
        exited 0
        !! warn: server-gone …
        .. end 0
        "#,
    );
}

#[test]
fn after_the_clients_end_a_signal_ends_silently() {
    check(
        r#"
        > {"id":1,"method":"ping"}
        >> {"id":1,"method":"ping"}
        < {"id":"q","method":"elicitation/create"}
        << {"id":"1","method":"elicitation/create"}
        eof
        .. close-input
        stop 15
        .. terminate
        output-closed
        exited signal 15
        !! warn: server-gone …
        .. end 143
        "#,
    );
    check(
        r#"
        > [{"id":1,"method":"ping"},{"id":2,"method":"ping"}]
        >> {"id":1,"method":"ping"}
        >> {"id":2,"method":"ping"}
        < {"id":1,"result":{}}
        stop 15
        .. terminate
        # A host closes our input and sends a signal; whichever we see first.
        eof
        wait 1s
        @500ms
        .. kill
        @800ms
        !! warn: server-gone …
        << [{"id":1,"result":{}}]
        .. end 143
        "#,
    );
}

#[test]
fn a_server_that_ends_with_its_input_gives_its_status() {
    check(
        r#"
        eof
        .. close-input
        output-closed
        exited 4
        .. end 4
        "#,
    );
    check(
        r#"
        set timeout-mcp
        eof
        .. close-input
        output-closed
        exited 4
        .. end 0
        "#,
    );
}

#[test]
fn nobody_reads_so_nothing_is_drained() {
    check(
        r#"
        > {"id":1,"method":"ping"}
        >> {"id":1,"method":"ping"}
        eof
        .. close-input
        gone
        wait 1s
        @1s
        .. terminate
        "#,
    );
    check(
        r#"
        gone
        .. close-input
        eof
        wait 1s
        @1s
        .. terminate
        "#,
    );
}

#[test]
fn a_signal_ends_everything_within_a_second() {
    check(
        r#"
        > {"id":1,"method":"ping"}
        >> {"id":1,"method":"ping"}
        stop 15
        .. terminate
        wait 1s
        @500ms
        .. kill
        # Even then nobody is left without an answer.
        @800ms
        !! warn: server-gone server=srv method=ping elapsed=800ms state=the server has ended detail=outlast was stopped
        << {"jsonrpc":"2.0","id":1,"error":{"code":-31002,…}}
        .. end 143
        "#,
    );
    check(
        r#"
        stop 2
        .. terminate
        stop 2
        .. kill
        exited signal 9
        output-closed
        .. end 130
        "#,
    );
}

#[test]
fn a_client_that_leaves_during_a_restart_is_not_waited_for() {
    check(
        r#"
        set timeout-mcp auto-restart
        output-closed
        exited 1
        !! warn: `srv` ended: exit status 1
        !! warn: restarting `srv` in 470ms: it ended
        eof
        .. close-input
        .. end 0
        "#,
    );
    check(
        r#"
        set timeout-mcp auto-restart
        output-closed
        exited 1
        !! warn: `srv` ended: exit status 1
        !! warn: restarting `srv` in 470ms: it ended
        > {"id":1,"method":"ping"}
        eof
        .. close-input
        wait 1s
        @470ms
        .. start 1
        started
        !! warn: `srv` is back after 1s
        >> {"id":1,"method":"ping"}
        .. close-input
        < {"id":1,"result":{}}
        << {"id":1,"result":{}}
        "#,
    );
}

/// A table that nobody plays is a story.
#[test]
fn every_row_of_the_table_is_played() {
    outlast_testkit::play_table!(
        "../../src/servers/server.rs":
        a_server_starts,
        a_command_that_cannot_start_answers_the_first_request,
        a_server_that_ends_ends_us,
        a_server_that_never_answered_ends_us_after_the_first_request,
        what_an_ended_server_wrote_last_still_counts,
        a_server_that_closed_its_output_is_stopped,
        a_server_that_closed_its_input_is_stopped,
        a_timeout_restarts_where_asked,
        a_hung_server_is_replaced,
        a_crash_restarts,
        a_stopped_server_is_started_again,
        a_rested_server_is_started,
        a_restarted_server_gets_the_handshake,
        a_revived_server_is_made_whole,
        a_restart_that_fails_is_tried_again_later,
        too_many_restarts_are_a_failure,
        a_failed_server_answers_at_once,
        a_failed_server_is_tried_for_ever,
    );
}
