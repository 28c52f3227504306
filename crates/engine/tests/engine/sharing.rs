//! Sessions that share a server, and what they give back.

use outlast_testkit::script::check;

#[test]
fn a_session_that_was_woken_falls_asleep_again() {
    check(
        r#"
        set serve
        set session-idle 1m
        set max-sessions 1
        post 1 {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}
        .. 1: start 0
        << 1: 200 with a session events
        << 1: : outlast||
        >> 1: {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}
        started
        < {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18"}}
        << 1: id: 2-1|data: {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18"}}||
        << 1: finish
        wait 1m
        @1m
        .. 1: close-input
        output-closed
        exited 0
        .. let go of 1
        wait 9m
        post 2 session=1 {"jsonrpc":"2.0","id":2,"method":"ping"}
        .. 2: start 0
        << 2: 200 events
        << 2: : outlast||
        started
        >> 2: {"jsonrpc":"2.0","id":2,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}
        < {"jsonrpc":"2.0","id":2,"result":{"protocolVersion":"2025-06-18"}}
        >> 2: {"jsonrpc":"2.0","method":"notifications/initialized"}
        >> 2: {"jsonrpc":"2.0","id":3,"method":"ping"}
        < {"jsonrpc":"2.0","id":3,"result":{}}
        << 2: id: 3-1|data: {"jsonrpc":"2.0","id":2,"result":{}}||
        << 2: finish
        wait 1m
        @11m
        .. 2: close-input
        output-closed
        exited 0
        .. let go of 2
        # There is room for another.
        post 3 {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}
        .. 3: start 0
        << 3: 200 with a session events
        << 3: : outlast||
        >> 3: {"jsonrpc":"2.0","id":4,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}
        "#,
    );
}

/// Three sessions of one principal on server 1; the first two have subscribed to `u`, the second also to `v`. The
/// next attempt is 5.
const THREE: &str = r#"
        set serve
        post 1 principal=a {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}
        .. 1: start 0
        << 1: 200 with a session events
        << 1: : outlast||
        >> 1: {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}
        started
        < {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18"}}
        << 1: id: 2-1|data: {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18"}}||
        << 1: finish
        post 2 principal=a {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}
        << 2: 200 with a session events
        << 2: : outlast||
        << 2: id: 4-1|data: {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18"}}||
        << 2: finish
        post 3 principal=a {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}
        << 3: 200 with a session events
        << 3: : outlast||
        << 3: id: 6-1|data: {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18"}}||
        << 3: finish
        post 4 session=1 principal=a {"jsonrpc":"2.0","id":2,"method":"resources/subscribe","params":{"uri":"a:u"}}
        << 4: 200 events
        << 4: : outlast||
        >> 1: {"jsonrpc":"2.0","id":2,"method":"resources/subscribe","params":{"uri":"a:u"}}
        < {"jsonrpc":"2.0","id":2,"result":{}}
        << 4: id: 7-1|data: {"jsonrpc":"2.0","id":2,"result":{}}||
        << 4: finish
        post 5 session=2 principal=a {"jsonrpc":"2.0","id":2,"method":"resources/subscribe","params":{"uri":"a:u"}}
        << 5: 200 events
        << 5: : outlast||
        >> 1: {"jsonrpc":"2.0","id":3,"method":"resources/subscribe","params":{"uri":"a:u"}}
        < {"jsonrpc":"2.0","id":3,"result":{}}
        << 5: id: 8-1|data: {"jsonrpc":"2.0","id":2,"result":{}}||
        << 5: finish
        post 6 session=2 principal=a {"jsonrpc":"2.0","id":3,"method":"resources/subscribe","params":{"uri":"a:v"}}
        << 6: 200 events
        << 6: : outlast||
        >> 1: {"jsonrpc":"2.0","id":4,"method":"resources/subscribe","params":{"uri":"a:v"}}
        < {"jsonrpc":"2.0","id":4,"result":{}}
        << 6: id: 9-1|data: {"jsonrpc":"2.0","id":3,"result":{}}||
        << 6: finish
        get 7 session=1 principal=a
        << 7: 200 events
        << 7: : outlast|retry: 1000||
        get 8 session=2 principal=a
        << 8: 200 events
        << 8: : outlast|retry: 1000||
"#;

#[test]
fn one_of_several_sessions_unsubscribes_only_itself() {
    check(&format!(
        "{THREE}{}",
        r#"
        post 9 session=1 principal=a {"jsonrpc":"2.0","id":3,"method":"resources/unsubscribe","params":{"uri":"a:u"}}
        << 9: 200 events
        << 9: : outlast||
        << 9: id: 10-1|data: {"jsonrpc":"2.0","id":3,"result":{}}||
        << 9: finish
        # Also one that never subscribed.
        post 10 session=3 principal=a {"jsonrpc":"2.0","id":3,"method":"resources/unsubscribe","params":{"uri":"a:u"}}
        << 10: 200 events
        << 10: : outlast||
        << 10: id: 11-1|data: {"jsonrpc":"2.0","id":3,"result":{}}||
        << 10: finish
        < {"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"a:u"}}
        << 8: id: 3-1|data: …
        # The last one is the server's.
        post 11 session=2 principal=a {"jsonrpc":"2.0","id":4,"method":"resources/unsubscribe","params":{"uri":"a:u"}}
        << 11: 200 events
        << 11: : outlast||
        >> 1: {"jsonrpc":"2.0","id":5,"method":"resources/unsubscribe","params":{"uri":"a:u"}}
        < {"jsonrpc":"2.0","id":5,"result":{}}
        << 11: id: 12-1|data: {"jsonrpc":"2.0","id":4,"result":{}}||
        << 11: finish
        "#
    ));
}

#[test]
fn who_unsubscribes_before_its_server_is_there_ends_nothing_for_others() {
    check(
        r#"
        set serve
        post 1 principal=a {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}
        .. 1: start 0
        << 1: 200 with a session events
        << 1: : outlast||
        >> 1: …"method":"initialize"…
        started
        < {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18"}}
        << 1: …"protocolVersion"…
        << 1: finish
        post 2 principal=a {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}
        << 2: 200 with a session events
        << 2: : outlast||
        << 2: …"protocolVersion"…
        << 2: finish
        output-closed
        exited 1
        !! warn: `srv` ended: exit status 1
        !! warn: restarting `srv` in …ms: it ended
        post 3 session=1 principal=a {"jsonrpc":"2.0","id":2,"method":"resources/subscribe","params":{"uri":"a:u"}}
        << 3: 200 events
        << 3: : outlast||
        post 4 session=2 principal=a {"jsonrpc":"2.0","id":2,"method":"resources/unsubscribe","params":{"uri":"a:u"}}
        << 4: 200 events
        << 4: : outlast||
        wait 1s
        @…
        .. 1: start 1
        started
        >> 1: …"method":"initialize"…
        < {"jsonrpc":"2.0","id":2,"result":{"protocolVersion":"2025-06-18"}}
        !! warn: `srv` is back…
        >> 1: {"jsonrpc":"2.0","id":3,"method":"resources/subscribe","params":{"uri":"a:u"}}
        << 4: id: 6-1|data: {"jsonrpc":"2.0","id":2,"result":{}}||
        << 4: finish
        "#,
    );
}

#[test]
fn what_only_a_session_that_ended_had_subscribed_to_is_unsubscribed() {
    check(&format!(
        "{THREE}{}",
        r#"
        delete 9 session=2 principal=a
        << 8: finish
        >> 1: {"jsonrpc":"2.0","id":5,"method":"resources/unsubscribe","params":{"uri":"a:v"}}
        << 9: 200
        < {"jsonrpc":"2.0","id":5,"result":{}}
        < {"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"a:u"}}
        << 7: id: 1-1|data: …
        # The last session takes the server with it.
        delete 10 session=1 principal=a
        << 7: finish
        >> 1: {"jsonrpc":"2.0","id":6,"method":"resources/unsubscribe","params":{"uri":"a:u"}}
        << 10: 200
        delete 11 session=3 principal=a
        .. 1: close-input
        << 11: 200
        "#
    ));
}

/// Who shares a server is known also where it is never started again.
#[test]
fn sessions_hear_only_of_their_own_resources_where_nothing_is_restarted() {
    check(&format!(
        "set restart never\n{THREE}{}",
        r#"
        < {"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"a:v"}}
        << 8: id: 3-1|data: …
        "#
    ));
}
