//! Several processes that serve the same sessions and tickets: what one heard, asked, changed or left is right for all.

use outlast_engine::reached::Bound;
use outlast_testkit::bounds::reaches;
use outlast_testkit::script::check;

/// A session that began at process 0, and nothing more.
const GREETED: &str = r#"
        set serve
        set replicated
        post 1 {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        .. 1: start 0
        .. store 1: session
        << 1: 200 with a session events
        << 1: id: 2-0|retry: 1000|data: ||
        # Its client may go on elsewhere as soon as it is answered.
        stored 1
        >> 1: {"jsonrpc":"2.0","id":1,"method":"initialize"…
        started
        < {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"logging":{}}}}
        << 1: id: 2-1|data: {"jsonrpc":"2.0","id":1,"result"…
        << 1: finish
"#;

/// Process 1 gets something for that session, and has a server of its own for it.
const ELSEWHERE: &str = r#"
        beside
        post 20 session=1 {"jsonrpc":"2.0","method":"notifications/initialized"}
        .. 1: start 0
        << 20: 202
        .. store 2: session
        started
        >> 1: {"jsonrpc":"2.0","id":1,"method":"initialize"…
        < {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"logging":{}}}}
        >> 1: {"jsonrpc":"2.0","method":"notifications/initialized"}
        stored 2
"#;

#[track_caller]
fn replicas(scenario: &str) {
    check(&format!("{GREETED}\n{scenario}").replace("ELSEWHERE", ELSEWHERE));
}

/// The client said `initialized` to another process, and this one's server takes nothing before it hears it.
#[test]
fn a_server_hears_initialized_although_another_replica_was_told() {
    replicas(
        r#"
        ELSEWHERE
        process 0
        post 2 session=1 {"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"x"}}
        << 2: 200 events
        << 2: id: 3-0|retry: 1000|data: ||
        >> 1: {"jsonrpc":"2.0","method":"notifications/initialized"}
        >> 1: {"jsonrpc":"2.0","id":2,"method":"tools/call"…
        # What comes late is not said twice.
        post 3 session=1 {"jsonrpc":"2.0","method":"notifications/initialized"}
        << 3: 202
        .. store 2: session
        "#,
    );
}

/// Both processes have asked the client something; its answer to one comes to the other.
#[test]
fn an_answer_to_one_replicas_question_is_none_to_anothers() {
    replicas(
        r#"
        post 2 session=1 {"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"x"}}
        << 2: 200 events
        << 2: id: 3-0|retry: 1000|data: ||
        >> 1: {"jsonrpc":"2.0","method":"notifications/initialized"}
        >> 1: {"jsonrpc":"2.0","id":2,"method":"tools/call"…
        < {"jsonrpc":"2.0","id":"q","method":"roots/list"}
        << 2: id: 3-1|data: {"jsonrpc":"2.0","id":"1","method":"roots/list"}||
        # Its questions are counted from another number on.
        set seed 40960
        ELSEWHERE
        post 21 session=1 {"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"y"}}
        << 21: 200 events
        << 21: id: 2-0|retry: 1000|data: ||
        >> 1: {"jsonrpc":"2.0","id":2,"method":"tools/call"…
        < {"jsonrpc":"2.0","id":"q","method":"roots/list"}
        << 21: id: 2-1|data: {"jsonrpc":"2.0","id":"11","method":"roots/list"}||
        post 22 session=1 {"jsonrpc":"2.0","id":"1","result":{"roots":[]}}
        << 22: 202
        # It goes to where the question may be from.
        .. store 3: forward
        post 23 session=1 {"jsonrpc":"2.0","id":"11","result":{"roots":[]}}
        << 23: 202
        >> 1: {"jsonrpc":"2.0","id":"q","result":{"roots":[]}}
        "#,
    );
}

/// The client subscribed at a process that did not know that the session is another one's.
#[test]
fn what_is_set_up_at_a_former_owner_is_kept() {
    replicas(
        r#"
        ELSEWHERE
        process 0
        post 5 session=1 {"jsonrpc":"2.0","id":9,"method":"logging/setLevel","params":{"level":"debug"}}
        << 5: 200 events
        << 5: id: 3-0|retry: 1000|data: ||
        >> 1: {"jsonrpc":"2.0","method":"notifications/initialized"}
        .. store 2: session
        >> 1: {"jsonrpc":"2.0","id":2,"method":"logging/setLevel"…
        stored 2
        .. store 4: session
        !! info: session 01010101… is served by another process now; calls that it began here go on
        stored 4
        < {"jsonrpc":"2.0","id":2,"result":{}}
        << 5: id: 3-1|data: {"jsonrpc":"2.0","id":9,"result":{}}||
        << 5: finish
        # The other process learns of it as any former owner does, and then its server is told as well.
        process 1
        post 21 session=1 {"jsonrpc":"2.0","method":"notifications/initialized"}
        << 21: 202
        .. store 3: session
        stored 3
        !! info: session 01010101… is served by another process now; calls that it began here go on
        .. 1: close-input
        post 22 session=1 {"jsonrpc":"2.0","method":"notifications/roots/list_changed"}
        .. 2: start 0
        << 22: 202
        started
        >> 2: {"jsonrpc":"2.0","id":2,"method":"initialize"…
        < {"jsonrpc":"2.0","id":2,"result":{"protocolVersion":"2025-11-25","capabilities":{"logging":{}}}}
        >> 2: {"jsonrpc":"2.0","method":"notifications/initialized"}
        >> 2: {"jsonrpc":"2.0","id":3,"method":"logging/setLevel","params":{"level":"debug"}}
        "#,
    );
}

/// What can go on elsewhere is left open, and taken over by the next process; what cannot fails.
#[test]
fn a_replica_that_ends_leaves_what_others_can_go_on_with() {
    check(
        r#"
        set serve
        set replicated
        set tasks
        set drain 10s
        set tool safe=repeatable:true
        post 1 principal=ann {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        .. 1: start 0
        .. store 1: session
        << 1: 200 with a session events
        << 1: …||
        stored 1
        >> 1: {"jsonrpc":"2.0","id":1,"method":"initialize"…
        started
        < {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}}
        << 1: …||
        << 1: finish
        post 2 session=1 principal=ann {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"safe","task":{}}}
        << 2: 200 events
        << 2: …||
        >> 1: {"jsonrpc":"2.0","method":"notifications/initialized"}
        .. store 2: create
        stored 2
        << 2: …"status":"working"…
        << 2: finish
        >> 1: {"jsonrpc":"2.0","id":2,"method":"tools/call"…"name":"safe"}}
        post 3 session=1 principal=ann {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"acts","task":{}}}
        << 3: 200 events
        << 3: …||
        .. store 3: create
        stored 3
        << 3: …"status":"working"…
        << 3: finish
        >> 1: {"jsonrpc":"2.0","id":3,"method":"tools/call"…"name":"acts"}}
        stop 15
        wait 2s
        @2s
        .. close-door
        door-empty
        wait 11s
        @5s
        .. store 4: renew, claim
        @10s
        .. store 5: renew, claim
        @12s
        # It can be made again, so nothing is stored of this end.
        >> 1: {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2,"reason":"outlast is being stopped"}}
        !! warn: server-gone server=srv method=tools/call tool=acts elapsed=12s state=the server has ended detail=outlast was stopped
        .. store 6: failed
        >> 1: {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3,"reason":"outlast is being stopped"}}
        .. 1: close-input
        @13s
        .. 1: terminate
        "#,
    );
}

/// New requests are served until the last connection is gone; a second signal does not wait for that.
#[test]
fn a_replica_that_leaves_serves_what_still_comes() {
    replicas(
        r#"
        get 3 session=1
        << 3: 200 events
        << 3: : outlast|retry: 1000||
        stop 15
        post 4 session=1 {"jsonrpc":"2.0","id":4,"method":"ping"}
        << 4: 200 events
        << 4: …||
        >> 1: {"jsonrpc":"2.0","id":2,"method":"ping"}
        < {"jsonrpc":"2.0","id":2,"result":{}}
        << 4: …||
        << 4: finish
        wait 2s
        @2s
        .. close-door
        .. store 2: append
        << 3: finish
        post 5 session=1 {"jsonrpc":"2.0","id":5,"method":"ping"}
        << 5: 200 events
        << 5: …||
        >> 1: {"jsonrpc":"2.0","id":3,"method":"ping"}
        < {"jsonrpc":"2.0","id":3,"result":{}}
        << 5: …||
        << 5: finish
        door-empty
        .. 1: close-input
        wait 1s
        @3s
        .. 1: terminate
        "#,
    );
}

/// A client must be found wherever it goes on; but not even a new one waits for a database that is away.
#[test]
fn a_session_begins_when_others_can_find_it_or_after_a_moment() {
    let _reached = reaches(&[Bound::OPENING]);
    check(
        r#"
        set serve
        set replicated
        post 1 {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        .. 1: start 0
        .. store 1: session
        << 1: 200 with a session events
        << 1: …||
        started
        wait 2s
        @1s
        >> 1: {"jsonrpc":"2.0","id":1,"method":"initialize"…
        not-stored 1
        !! warn: could not be stored: disk full
        "#,
    );
}

/// Nobody asks for it, and it is taken over all the same.
#[test]
fn a_replica_at_rest_looks_for_what_others_have_left() {
    check(
        r#"
        set serve
        set replicated
        begin
        .. store 1: claim, expire
        wait 12s
        @5s
        .. store 2: claim
        @10s
        .. store 3: claim
        "#,
    );
}
