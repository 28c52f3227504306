//! Calls that a process of ours left behind when it was killed, taken up by the next one.

use outlast_testkit::script::check;

/// `_meta` of a modern client with tasks.
const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}"#;

/// A modern call that is a task of ours (T1), and whose server has made a task of its own for it (`s-1`).
const MODERN: &str = r#"
        post 1 version=2026-07-28 method=tools/call name=x {"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"x",META}}
        .. 1: start 0
        >> 1: …
        started
        wait 10s
        @500ms
        << 1: 200 events
        << 1: : outlast||
        @10s
        .. store 1: create
        stored 1
        << 1: …"taskId":"T1"…
        << 1: finish
        < {"jsonrpc":"2.0","id":1,"result":{"resultType":"task","taskId":"s-1","status":"working","pollIntervalMs":1000}}
        .. store 2: working
        stored 2
        again
        begin
        .. store 1: claim, expire
"#;

fn modern(settings: &str, scenario: &str) {
    let ticket = format!("{:02x}", 1).repeat(32);
    let scenario = format!("{MODERN}{scenario}").replace("META", META).replace("T1", &ticket);
    check(&format!("set serve\nset tasks\n{settings}\n{scenario}"));
}

#[test]
fn what_is_learned_of_a_call_leaves_the_rest_of_its_record_alone() {
    modern(
        "set tool x=repeatable:true",
        r#"
        stored 1
        .. 1: start 0
        >> 1: {"jsonrpc":"2.0","id":1,"method":"tools/call",…
        "#,
    );
}
