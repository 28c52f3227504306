//! Instant start: answered from memory, made true by the server.

use outlast_testkit::script::check;

/// The first day: everything goes the usual way and is remembered.
const FIRST_DAY: &str = r#"
        set instant
        > {"id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c"}}}
        >> {"id":1,…}
        < {"id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}}
        .. remember initialize and 0 lists
        << {"id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}}
        > {"method":"notifications/initialized"}
        >> {"method":"notifications/initialized"}
        > {"id":2,"method":"tools/list"}
        >> {"id":2,"method":"tools/list"}
        < {"id":2,"result":{"tools":[{"name":"a"}]}}
        .. remember initialize and 1 lists
        << {"id":2,"result":{"tools":[{"name":"a"}]}}
        # A page of a list is not the list.
        > {"id":3,"method":"prompts/list"}
        >> {"id":3,"method":"prompts/list"}
        < {"id":3,"result":{"prompts":[],"nextCursor":"x"}}
        << {"id":3,"result":{"prompts":[],"nextCursor":"x"}}
"#;

/// The second day begins: the server has not said a word yet.
const SECOND_DAY: &str = r#"
        again
        > {"id":"i","method":"initialize","params":{"clientInfo":{"name":"c","version":"2"},"protocolVersion":"2025-11-25","capabilities":{}}}
        << {"jsonrpc":"2.0","id":"i","result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}}
        >> {"id":"1","method":"initialize",…}
        > {"method":"notifications/initialized"}
        > {"id":2,"method":"tools/list"}
        << {"jsonrpc":"2.0","id":2,"result":{"tools":[{"name":"a"}]}}
        # What is not remembered waits for the server.
        > {"id":3,"method":"tools/call","params":{"name":"a"}}
        > {"id":4,"method":"prompts/list"}
"#;

#[test]
fn the_second_start_answers_at_once_and_the_server_makes_it_true() {
    check(&format!(
        r#"{FIRST_DAY}{SECOND_DAY}
        wait 20s
        < {{"id":"1","result":{{"protocolVersion":"2025-11-25","capabilities":{{"tools":{{}}}}}}}}
        .. remember initialize and 1 lists
        >> {{"method":"notifications/initialized"}}
        >> {{"id":2,"method":"tools/list"}}
        >> {{"id":3,"method":"tools/call",…}}
        >> {{"id":4,"method":"prompts/list"}}
        # The same list: the client need not know.
        < {{"id":2,"result":{{"tools":[{{"name":"a"}}]}}}}
        < {{"id":3,"result":{{"ok":1}}}}
        << {{"id":3,"result":{{"ok":1}}}}
        "#
    ));
}

#[test]
fn an_instant_start_needs_no_restarts() {
    let story = format!(
        r#"set restart never
        {FIRST_DAY}{SECOND_DAY}
        < {{"id":"1","result":{{"protocolVersion":"2025-11-25","capabilities":{{"tools":{{}}}}}}}}
        .. remember initialize and 1 lists
        >> {{"method":"notifications/initialized"}}
        >> {{"id":2,"method":"tools/list"}}
        >> {{"id":3,…}}
        >> {{"id":4,…}}
        "#
    );
    check(&story);
}

#[test]
fn what_has_changed_since_is_told() {
    check(&format!(
        r#"{FIRST_DAY}{SECOND_DAY}
        < {{"id":"1","result":{{"protocolVersion":"2025-11-25","capabilities":{{"tools":{{}},"prompts":{{}}}}}}}}
        !! warn: the answer of `srv` to the handshake has changed (--instant): the client was told the old answer; reconnect the client to see the new one
        .. forget
        .. remember initialize and 1 lists
        >> {{"method":"notifications/initialized"}}
        >> {{"id":2,"method":"tools/list"}}
        >> {{"id":3,…}}
        >> {{"id":4,…}}
        < {{"id":2,"result":{{"tools":[]}}}}
        << {{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}}
        .. remember initialize and 1 lists
        "#
    ));
}

#[test]
fn another_client_is_not_answered_from_this_memory() {
    check(&format!(
        r#"{FIRST_DAY}
        again
        > {{"id":1,"method":"initialize","params":{{"protocolVersion":"2025-11-25","capabilities":{{"sampling":{{}}}},"clientInfo":{{"name":"c"}}}}}}
        >> {{"id":1,…}}
        "#
    ));
}

#[test]
fn a_server_that_does_not_come_leaves_nobody_waiting() {
    check(&format!(
        r#"{FIRST_DAY}{SECOND_DAY}
        stderr no such module
        exited 1
        output-closed
        !! warn: `srv` ended: exit status 1
        !! warn: server-gone …
        << {{"jsonrpc":"2.0","id":3,"error":{{"code":-31002,…}}}}
        !! warn: server-gone …
        << {{"jsonrpc":"2.0","id":4,"error":{{"code":-31002,…}}}}
        wait 1s
        @500ms
        .. end 1
        "#
    ));
}

#[test]
fn discover_is_remembered_too() {
    let handshake = r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}"#;
    check(&format!(
        r#"
        set instant
        > {{"id":1,"method":"server/discover","params":{handshake}}}
        >> {{"id":1,…}}
        < {{"id":1,"result":{{"supportedVersions":["2026-07-28"],"capabilities":{{}}}}}}
        .. remember server/discover and 0 lists
        << {{"id":1,…}}
        again
        > {{"id":5,"method":"server/discover","params":{handshake}}}
        << {{"jsonrpc":"2.0","id":5,"result":{{"supportedVersions":["2026-07-28"],"capabilities":{{}}}}}}
        >> {{"id":1,"method":"server/discover",…}}
        > {{"id":6,"method":"tools/call","params":{{"name":"x"}}}}
        < {{"id":1,"result":{{"supportedVersions":["2026-07-28"],"capabilities":{{}}}}}}
        .. remember server/discover and 0 lists
        >> {{"id":2,"method":"tools/call",…}}
        "#
    ));
}

#[test]
fn a_slow_start_is_mentioned_once() {
    check(
        r#"
        > {"id":1,"method":"initialize","params":{}}
        >> {"id":1,…}
        wait 4s
        < {"id":1,"result":{}}
        !! warn: `srv` took 4s to start; with --instant the client need not wait for that
        << {"id":1,"result":{}}
        "#,
    );
}

#[test]
fn what_is_answered_from_memory_offers_tasks_too() {
    check(&format!(
        "set tasks\n{}{}",
        FIRST_DAY
            .replace(
                r#"<< {"id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}}"#,
                r#"<< {"id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tasks":…,"tools":{}}}}"#
            )
            .replace(r#"<< {"id":2,"result":{"tools":[{"name":"a"}]}}"#, r#"<< {"id":2,…"taskSupport":"optional"…"#),
        r#"
        again
        > {"id":"i","method":"initialize","params":{"clientInfo":{"name":"c","version":"2"},"protocolVersion":"2025-11-25","capabilities":{}}}
        << {"jsonrpc":"2.0","id":"i","result":{"protocolVersion":"2025-11-25","capabilities":{"tasks":{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}},"tools":{}}}}
        >> {"id":"1","method":"initialize",…}
        > {"method":"notifications/initialized"}
        > {"id":2,"method":"tools/list"}
        << {"jsonrpc":"2.0","id":2,"result":{"tools":[{"execution":{"taskSupport":"optional"},"name":"a"}]}}
        "#
    ));
}
