//! The process ends at every point between a call and its answer; and what seeds of that world have found.

use outlast_testkit::script::check;
use outlast_testkit::sim::crash::{Scene, at_every_point};

#[test]
fn no_ticket_is_lost_at_any_point() {
    let played: u64 = Scene::all().iter().map(at_every_point).sum();
    assert!(played > 5_000, "only {played} points");
}

/// The handles of the first task and of the first call that was handed off.
const T1: &str = "0101010101010101010101010101010101010101010101010101010101010101";
const H1: &str = "01010101010101010101010101010101";

const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}"#;
const PLAIN: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;

#[track_caller]
fn play(scenario: &str) {
    let scenario = scenario.replace("META", META).replace("PLAIN", PLAIN);
    check(&format!("set tool x=repeatable:true\n{scenario}").replace("T1", T1).replace("H1", H1));
}

/// A modern task that runs; its server may be asked again.
const TASK: &str = r#"
        set tasks
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x",META}}
        >> {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","_meta":{"progressToken":1,"io.modelcontextprotocol/protocolVersion":"2026-07-28",…
        wait 10s
        @10s
        .. store 1: create
        stored 1
        << …"taskId":"T1"…
"#;

/// It would become a task of its own once more, and the handle of that its answer.
#[test]
fn a_modern_task_that_is_made_again_keeps_its_ticket() {
    play(&format!(
        r#"
        {TASK}
        again
        begin
        .. store 1: claim, expire
        stored 1
        # Whoever speaks the modern revision needs no handshake.
        > {{"jsonrpc":"2.0","id":2,"method":"tasks/get","params":{{"taskId":"T1",META}}}}
        << …"status":"working"…
        >> …"method":"tools/call"…
        wait 1m
        < {{"jsonrpc":"2.0","id":1,"result":{{"resultType":"complete","n":1.0}}}}
        .. store 3: completed
        stored 3
        > {{"jsonrpc":"2.0","id":3,"method":"tasks/get","params":{{"taskId":"T1",META}}}}
        << …"status":"completed"…"result":{{"resultType":"complete","n":1.0}}}}}}
        "#
    ));
}

/// Its owner was taken for alive when we began.
#[test]
fn a_task_that_is_only_looked_at_is_taken_over_too() {
    play(&format!(
        r#"
        {TASK}
        again
        > {{"jsonrpc":"2.0","id":2,"method":"tasks/get","params":{{"taskId":"T1",META}}}}
        .. store 2: claim
        << …"status":"working"…
        stored 2
        >> …"method":"tools/call"…
        "#
    ));
}

#[test]
fn a_modern_call_that_was_handed_off_is_made_again_in_its_era() {
    play(
        r#"
        set client-cap 60s
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x",PLAIN}}
        >> {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","_meta":{"progressToken":1,"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}
        wait 55s
        @55s
        .. store 1: create
        stored 1
        << …"dev.outlast/ticket":"H1"…
        again
        begin
        .. store 1: claim, expire
        stored 1
        > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"outlast_wait","arguments":{"ticket":"H1"},PLAIN}}
        >> …"name":"x"…
        < {"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","n":1.0}}
        .. store 3: completed
        stored 3
        << {"jsonrpc":"2.0","id":2,"result":{"resultType":"complete","n":1.0}}
        "#,
    );
}

/// A client of 2025-11-25 whose handshake is over.
const HANDSHAKE: &str = r#"
        > {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"resumableRequests":{}}}}
        >> {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"resumableRequests":{}}}}
        < {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}}
        << {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tasks":{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}},"tools":{}}}}
        > {"jsonrpc":"2.0","method":"notifications/initialized"}
        >> {"jsonrpc":"2.0","method":"notifications/initialized"}
"#;

/// Its client may wait for it at another process, and would do so for ever.
#[test]
fn a_call_whose_client_does_not_come_back_is_not_kept_for_it_for_ever() {
    play(&format!(
        r#"
        set tasks
        {HANDSHAKE}
        > {{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{{"name":"x","task":{{}}}}}}
        .. store 1: create
        stored 1
        << {{"jsonrpc":"2.0","id":2,"result":{{"task":{{"createdAt":"1970-01-01T00:00:00.000Z","lastUpdatedAt":"1970-01-01T00:00:00.000Z","pollInterval":500,"status":"working",…
        >> {{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{{"_meta":{{"progressToken":2}},"name":"x"}}}}
        again
        begin
        .. store 1: claim, expire
        stored 1
        wait 9m
        wait 1m
        @10m
        !! warn: server-gone … did not come back in time (resume-wait)
        .. store 3: failed
        stored 3
        "#
    ));
}

#[test]
fn a_resumable_call_whose_key_was_taken_is_joined_and_answered() {
    play(&format!(
        r#"
        set tasks
        set resumable
        {HANDSHAKE}
        > {{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{{"name":"x","idempotencyKey":"j"}}}}
        .. store 2: create
        stored 2
        << …resumePolicy…
        >> {{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{{"_meta":{{"progressToken":2}},"name":"x","idempotencyKey":"j"}}}}
        again
        {HANDSHAKE}
        > {{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{{"name":"x","idempotencyKey":"k"}}}}
        .. store 2: create
        taken 2 T1
        !! warn: could not be stored: write 0 was refused: another call has the same idempotency key
        !! info: …joined…
        "#
    ));
}
