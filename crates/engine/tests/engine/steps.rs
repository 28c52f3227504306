//! What is told of calls and servers to those who look on.

use outlast_engine::durations::Durations;
use outlast_engine::id::{ClientId, Run, ServerId};
use outlast_engine::reached::Bound;
use outlast_engine::step::{Outcome, Step, What};
use outlast_engine::{Action, Config, Engine, Event, Mono, Now, Observed, Wall, limits, wire};
use outlast_testkit::bounds::reaches;
use outlast_testkit::script::check;
use std::time::Duration;

/// One stdio client, whose every call is told of.
#[track_caller]
fn told(scenario: &str) {
    check(&format!("set observed\n{scenario}"));
}

#[test]
fn a_call_is_told_from_its_beginning_to_its_end() {
    told(
        r#"
        > {"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"build"}}
        %% 1 began tools/call build of `srv` for ``
        >> {"jsonrpc":"2.0","id":1,"method":"tools/call",…
        %% 1 sent: sent to the server (attempt 1, run 0)
        wait 2s
        now
        %% 1 build running, …, 1 sent
        < {"jsonrpc":"2.0","id":1,"result":{"content":[]}}
        %% 1 ended answered after 2s
        << {"jsonrpc":"2.0","id":7,"result":{"content":[]}}
        now
        "#,
    );
}

#[test]
fn what_a_server_says_of_a_failure_is_told_apart() {
    told(
        r#"
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"}}
        %% 1 began tools/call a of `srv` for ``
        >> …"method":"tools/…
        %% 1 sent…
        < {"jsonrpc":"2.0","id":1,"result":{"content":[],"isError":true}}
        %% 1 ended tool-error after 0s
        << {"jsonrpc":"2.0","id":…
        > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"a"}}
        %% 2 began tools/call a of `srv` for ``
        >> …"method":"tools/…
        %% 2 sent…
        < {"jsonrpc":"2.0","id":2,"error":{"code":-32602,"message":"no"}}
        %% 2 ended error after 0s
        << {"jsonrpc":"2.0","id":…
        "#,
    );
}

#[test]
fn a_limit_is_named() {
    told(
        r#"
        set timeout 30s
        set keep-alive 20s
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","_meta":{"progressToken":7}}}
        %% 1 began tools/call a of `srv` for ``
        >> …"method":"tools/…
        %% 1 sent…
        < {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1,"message":"linking"}}
        << …linking…
        %% 1 progress: linking
        wait 30s
        @20s
        %% 1 keep-alive: the client was told that the call lives
        << …keepAlive…
        @30s
        %% 1 cancel-asked: to be cancelled: timeout
        !! warn: timeout server=srv …
        %% 1 ended failed timeout after 30s
        << {"jsonrpc":"2.0","id":…
        >> …cancelled…
        .. sample
        "#,
    );
}

#[test]
fn a_cancel_is_told_and_ends_the_call() {
    told(
        r#"
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"}}
        %% 1 began tools/call a of `srv` for ``
        >> …"method":"tools/…
        %% 1 sent…
        > {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}
        %% 1 cancel-asked: to be cancelled: the client
        %% 1 ended cancelled after 0s
        >> …cancelled…
        "#,
    );
}

#[test]
fn a_call_that_waits_for_a_yes_is_told_when_it_is_asked_about_and_decided() {
    told(
        r#"
        set tool pay=hold:true
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"pay","_meta":{"progressToken":7}}}
        %% 1 began tools/call pay of `srv` for ``
        .. store 1: hold
        stored 1
        %% 1 held: waits for approval: outlast holds approve 1
        !! info: …approve 1
        now
        %% 1 pay held, 30m left, 0 sent
        says 1 no once
        wait 250ms
        @250ms
        .. store 2: ask after
        stored 2
        %% 1 decided: declined by ann (command line)
        !! info: …declined…
        %% 1 ended declined after 250ms
        << …isError…
        "#,
    );
}

/// With a restart in between: the server is told of too.
#[test]
fn a_repeated_call_keeps_its_number() {
    told(
        r#"
        set restart on-crash
        set tool a=repeatable:true
        > {"jsonrpc":"2.0","id":1,"method":"tools/list"}
        %% 1 began tools/list - of `srv` for ``
        >> …"method":"tools/…
        %% 1 sent…
        < {"jsonrpc":"2.0","id":1,"result":{"tools":[]}}
        %% 1 ended answered after 0s
        << {"jsonrpc":"2.0","id":…
        > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"a"}}
        %% 2 began tools/call a of `srv` for ``
        >> …"method":"tools/…
        %% 2 sent…
        exited 1
        output-closed
        %% srv Ended { exit: Code(1) }
        !! warn: …srv…
        !! info: `tools/call` is sent to `srv` again…
        %% 2 retried: will be sent once more: its server went away
        %% 2 queued: waits for its server or its turn
        %% srv Restarting { why: "it ended" }
        !! warn: …srv…
        "#,
    );
}

/// A call that is over within a second costs nobody anything; of a slow one it is told what has happened so far.
#[test]
fn only_slow_calls_are_told_of_where_that_is_enough() {
    let _bounds = reaches(&[Bound::SLOW]);
    check(
        r#"
        set observed slow
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"quick"}}
        >> …"method":"tools/…
        < {"jsonrpc":"2.0","id":1,"result":{}}
        << {"jsonrpc":"2.0","id":…
        > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"slow"}}
        >> …"method":"tools/…
        wait 3s
        @1s
        %% 1 began tools/call slow of `srv` for ``
        %% 1 sent: sent to the server (attempt 1, run 0)
        < {"jsonrpc":"2.0","id":2,"result":{}}
        %% 1 ended answered after 3s
        << {"jsonrpc":"2.0","id":…
        "#,
    );
}

/// What is refused before it is open begins and ends at once.
#[test]
fn a_refused_call_is_told_of() {
    told(
        r#"
        start-failed not-found
        %% srv Failed { why: "command not found" }
        !! error: cannot start `srv`…
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"}}
        %% 1 began tools/call a of `srv` for ``
        %% 1 ended failed server-failed after 0s
        << {"jsonrpc":"2.0","id":…
        "#,
    );
}

/// An engine with one client and one server, whose every call is told of.
fn observed() -> Engine {
    let mut engine = Engine::new(Config { observed: Observed::All, ..Config::default() });
    engine.handle(now(), Event::Opened(ClientId(0), ServerId(0)));
    engine.handle(now(), Event::Started(ServerId(0), Run(0)));
    engine
}

fn now() -> Now {
    Now { mono: Mono::after_start(Duration::ZERO), wall: Wall(1_000) }
}

/// What happened to calls when a client wrote this.
fn steps(engine: &mut Engine, line: &str) -> Vec<What> {
    engine.handle(now(), Event::FromClient(ClientId(0), wire::scan(line.to_owned().into())));
    let actions = std::iter::from_fn(|| engine.poll());
    let steps = actions.filter_map(|action| match action {
        Action::Step(Step::Call(_, what)) => Some(what),
        _ => None,
    });
    steps.collect()
}

fn call(id: usize, meta: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"a","_meta":{{{meta}}}}}}}"#
    )
}

#[test]
fn a_snapshot_has_a_bound() {
    let _bounds = reaches(&[Bound::SNAPSHOT]);
    let mut engine = observed();
    (0..limits::SNAPSHOT + 5).for_each(|id| drop(steps(&mut engine, &call(id, ""))));
    let snapshot = engine.snapshot(now());
    assert_eq!((snapshot.calls.len(), snapshot.more), (limits::SNAPSHOT, 5));
    assert_eq!(snapshot.servers[0].in_flight, limits::SNAPSHOT + 5);
    assert_eq!(snapshot.calls[0].began, Wall(1_000));
}

#[test]
fn more_tools_than_are_told_apart_are_counted_together() {
    let _bounds = reaches(&[Bound::MEASURED]);
    let mut all = Durations::default();
    for tool in 0..limits::MEASURED + 3 {
        all.add("srv", &format!("t{tool}"), Duration::from_millis(5), Outcome::Answered);
    }
    let others = outlast_engine::durations::OTHERS;
    assert_eq!(all.of(others, others).map(|tally| tally.calls), Some(3));
}

/// Its client still waits, so it hears who did it.
#[test]
fn a_call_that_a_person_cancels_fails_and_its_server_is_told() {
    told(
        r#"
        > {"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"a"}}
        %% 1 began tools/call a of `srv` for ``
        >> …tools/call…
        %% 1 sent…
        person cancels 1
        %% 1 cancel-asked: to be cancelled: ann (dashboard)
        >> {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"reason":"a person cancelled it"}}
        !! warn: cancelled server=srv method=tools/call tool=a …
        %% 1 ended failed cancelled after 0s
        << {"jsonrpc":"2.0","id":7,"error":{"code":-31015,"message":"`a` was cancelled by ann (dashboard); the server was told to cancel it. Ask that person before you call it again.",…
        # It is gone, and a second word changes nothing.
        person cancels 1
        "#,
    );
}

#[test]
fn a_person_may_have_a_server_started_again() {
    told(
        r#"
        person restarts other
        person restarts srv
        %% srv Restarting { why: "a person asked for it" }
        !! warn: restarting `srv`: a person asked for it
        .. terminate
        "#,
    );
}

/// A tool that was seen to take long gets the time it needs, within what a person allows, and the error says so.
#[test]
fn a_timeout_adapts_to_what_was_measured() {
    check(
        r#"
        set tool build=timeout:10s,adaptive:true,adaptive-min:5s,adaptive-max:45s
        measured build 30 20s
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"build"}}
        %% 1 began tools/call build of `srv` for ``
        >> {"jsonrpc":"2.0","id":1,…
        %% 1 sent…
        wait 45s
        @45s
        %% 1 cancel-asked: to be cancelled: timeout
        !! warn: timeout server=srv method=tools/call tool=build limit=45s elapsed=45s setting=adaptive …
        %% 1 ended failed timeout after 45s
        << {"jsonrpc":"2.0","id":1,"error":…
        >> …cancelled…
        .. sample
        "#,
    );
}
