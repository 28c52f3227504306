//! A store that fails for a while: nothing that was promised is lost, and nobody is told the same twice.

use outlast_testkit::script::check;

const T1: &str = "0101010101010101010101010101010101010101010101010101010101010101";

/// A stdio client of 2025-11-25 with a task that runs: attempt 2; the next submission is 2.
const RUNNING: &str = r#"
        set tasks
        > {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        >> {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        < {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}}
        << {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tasks":{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}},"tools":{}}}}
        > {"jsonrpc":"2.0","method":"notifications/initialized"}
        >> {"jsonrpc":"2.0","method":"notifications/initialized"}
        > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x","task":{}}}
        .. store 1: create
        stored 1
        << {"jsonrpc":"2.0","id":2,"result":{"task":{"createdAt":"1970-01-01T00:00:00.000Z","lastUpdatedAt":"1970-01-01T00:00:00.000Z","pollInterval":500,"status":"working",…
        >> …
"#;

#[track_caller]
fn running(scenario: &str) {
    check(&format!("{RUNNING}\n{}", scenario.replace("T1", T1)));
}

#[test]
fn an_end_that_could_not_be_stored_is_shown_and_stored_later() {
    running(
        r#"
        < {"jsonrpc":"2.0","id":2,"result":{"n":1}}
        .. store 2: completed
        not-stored 2
        !! warn: could not be stored: disk full
        << …notifications/tasks/status…"status":"completed"…
        > {"jsonrpc":"2.0","id":3,"method":"tasks/result","params":{"taskId":"T1"}}
        << {"jsonrpc":"2.0","id":3,"result":{…"n":1}}
        wait 5s
        @5s
        .. store 3: completed
        # While it is tried again, it does not look as if it ran again.
        > {"jsonrpc":"2.0","id":4,"method":"tasks/get","params":{"taskId":"T1"}}
        << {"jsonrpc":"2.0","id":4,"result":{…"status":"completed"…
        # One try at a time.
        wait 5s
        not-stored 3
        wait 5s
        @15s
        .. store 4: completed
        stored 4
        wait 1m
        > {"jsonrpc":"2.0","id":5,"method":"tasks/result","params":{"taskId":"T1"}}
        << {"jsonrpc":"2.0","id":5,"result":{…"n":1}}
        "#,
    );
}

#[test]
fn an_end_that_could_not_be_stored_gets_one_more_try_at_the_end() {
    let ends = |told: &str| {
        running(&format!(
            r#"
        < {{"jsonrpc":"2.0","id":2,"result":{{"n":1}}}}
        .. store 2: completed
        not-stored 2
        !! warn: could not be stored: disk full
        << …notifications/tasks/status…"status":"completed"…
        eof
        .. close-input
        output-closed
        exited 0
        .. store 3: completed
        .. end 0
        {told}
        "#
        ));
    };
    ends("stored 3\n!! warn: stored now, after a failure before: 1 result");
    ends("not-stored 3\n!! error: 1 result lost with this process, because the store failed: disk full");
}

#[test]
fn a_cancel_that_could_not_be_stored_is_stored_later() {
    running(
        r#"
        > {"jsonrpc":"2.0","id":3,"method":"tasks/cancel","params":{"taskId":"T1"}}
        .. store 2: cancelled
        >> …notifications/cancelled…
        not-stored 2
        !! warn: could not be stored: disk full
        << …notifications/tasks/status…"status":"cancelled"…
        << {"jsonrpc":"2.0","id":3,"result":{…"status":"cancelled"…
        wait 5s
        @5s
        .. store 3: cancelled
        stored 3
        "#,
    );
}

#[test]
fn what_is_wrong_with_the_store_is_told_once_until_it_works_again() {
    running(
        r#"
        > {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"x","task":{}}}
        .. store 2: create
        not-stored 2
        !! warn: could not be stored: disk full
        >> {"jsonrpc":"2.0","id":3,…
        > {"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"x","task":{}}}
        .. store 3: create
        not-stored 3
        >> {"jsonrpc":"2.0","id":4,…
        > {"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"x","task":{}}}
        .. store 4: create
        stored 4
        << {"jsonrpc":"2.0","id":5,"result":{"task":…
        >> {"jsonrpc":"2.0","id":5,…
        > {"jsonrpc":"2.0","id":6,"method":"tools/call","params":{"name":"x","task":{}}}
        .. store 5: create
        not-stored 5
        !! warn: could not be stored: disk full
        >> {"jsonrpc":"2.0","id":6,…
        "#,
    );
}

/// The process that runs it never hears of the cancel, so nobody waits for what comes of it.
#[test]
fn a_cancel_that_does_not_reach_the_owner_is_told() {
    running(
        r#"
        again
        > {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        >> {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        < {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}}
        << {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tasks":{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}},"tools":{}}}}
        > {"jsonrpc":"2.0","method":"notifications/initialized"}
        >> {"jsonrpc":"2.0","method":"notifications/initialized"}
        > {"jsonrpc":"2.0","id":2,"method":"tasks/cancel","params":{"taskId":"T1"}}
        .. store 2: mailbox
        not-stored 2
        !! warn: could not be stored: disk full
        << {"jsonrpc":"2.0","id":2,"error":{"code":-32603,"message":"Internal error: the cancel could not be left for the process that runs the task; the log of outlast says why"}}
        "#,
    );
}

#[test]
fn the_end_of_another_processs_task_that_could_not_be_read_is_read_again() {
    check(
        r#"
        set tasks
        > {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        >> {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        < {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}}
        << {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tasks":{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}},"tools":{}}}}
        > {"jsonrpc":"2.0","method":"notifications/initialized"}
        >> {"jsonrpc":"2.0","method":"notifications/initialized"}
        made 09090909090909090909090909090909 k {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"}}
        > {"jsonrpc":"2.0","id":2,"method":"tasks/result","params":{"taskId":"09090909090909090909090909090909"}}
        wait 1s
        theirs 09090909090909090909090909090909 completed {"content":[],"n":1.0}
        reads fail
        wait 500ms
        @1s500ms
        !! warn: could not be read from the store: disk full
        reads now
        wait 2s
        @2s
        << {"jsonrpc":"2.0","method":"notifications/tasks/status","params":{"createdAt":"1970-01-01T00:00:00.000Z","lastUpdatedAt":"1970-01-01T00:00:01.000Z","pollInterval":500,"status":"completed","taskId":"09090909090909090909090909090909","ttl":0}}
        << {"jsonrpc":"2.0","id":2,"result":{"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"09090909090909090909090909090909"}},"content":[],"n":1.0}}
        "#,
    );
}

#[test]
fn whoever_waits_for_another_processs_task_that_is_gone_is_told() {
    check(
        r#"
        set tasks
        > {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        >> {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        < {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}}
        << {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tasks":{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}},"tools":{}}}}
        > {"jsonrpc":"2.0","method":"notifications/initialized"}
        >> {"jsonrpc":"2.0","method":"notifications/initialized"}
        made 09090909090909090909090909090909 k {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"}}
        > {"jsonrpc":"2.0","id":2,"method":"tasks/result","params":{"taskId":"09090909090909090909090909090909"}}
        wait 1s
        theirs 09090909090909090909090909090909 completed {"content":[],"n":1.0}
        reads later
        wait 500ms
        lost 09090909090909090909090909090909
        read
        << {"jsonrpc":"2.0","id":2,"error":{"code":-32602,"message":"Invalid params: no such task"}}
        wait 2s
        "#,
    );
}
