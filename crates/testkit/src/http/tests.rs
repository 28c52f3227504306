use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};

use serde_json::json;

use super::caller::{Caller, Event};
use super::faults::{FaultServer, closed_address};

#[test]
fn requests_are_kept_and_answered_on_one_connection() {
    let server = FaultServer::start(|request, connection| connection.json(&request.json()));
    let mut caller = Caller::connect(server.address());
    for number in 0..2 {
        let response =
            caller.ask("POST /x", &[("X-A", "b")], json!({"method": "m", "n": number}).to_string());
        assert_eq!((response.status, &response.json()["n"]), (200, &json!(number)));
    }
    caller.request("POST /x", &[("Transfer-Encoding", "chunked")], "2\r\n{}\r\n0\r\n\r\n");
    assert_eq!(caller.response().text(), "{}");
    let seen = server.requests();
    let what = |at: usize| (seen[at].connection, seen[at].path.as_str(), seen[at].header("x-a"));
    assert_eq!([what(0), what(1), what(2)], [(0, "/x", Some("b")), (0, "/x", Some("b")), (0, "/x", None)]);
    assert_eq!(server.requests_of("m").len(), 2);
}

#[test]
fn a_stream_is_cut_where_the_test_wants_and_waits_for_it() {
    let (go, wait) = channel();
    let wait = Mutex::new(wait);
    let server = FaultServer::start(move |_, connection| {
        connection.open_events(&[]);
        for byte in b"id: 1\ndata:\n\n:\n\nretry: 5\ndata: {\"a\":\ndata: 1}\n\n" {
            connection.events([*byte]);
        }
        wait.lock().unwrap().recv().unwrap();
        connection.end_events();
    });
    let mut caller = Caller::connect(server.address());
    caller.request("GET /", &[], "");
    assert_eq!(caller.head().0, 200);
    assert_eq!(caller.event(), Some(Event { id: Some("1".into()), ..Event::default() }));
    assert_eq!(caller.event().unwrap().json(), json!({"a": 1}));
    go.send(()).unwrap();
    assert_eq!(caller.event(), None);
}

#[test]
fn resets_and_closes_are_seen_on_both_sides() {
    let closed = Arc::new(Mutex::new(Vec::new()));
    let noted = closed.clone();
    let (done, ended) = channel();
    let server = FaultServer::start_raw(move |connection| {
        if connection.number == 0 {
            return connection.reset();
        }
        connection.request();
        noted.lock().unwrap().push(connection.wait_for_close());
        done.send(()).unwrap();
    });
    let mut first = Caller::connect(server.address());
    first.request("GET /", &[], "");
    assert!(first.try_head().is_none());
    let mut second = Caller::connect(server.address());
    second.request("GET /", &[], "");
    drop(second);
    ended.recv().unwrap();
    let mut third = Caller::connect(server.address());
    third.request("GET /", &[], "");
    third.reset();
    ended.recv().unwrap();
    assert_eq!(*closed.lock().unwrap(), [true, true]);
    assert_eq!(server.connections(), 3);
    let address = server.address();
    drop(server);
    assert!(std::net::TcpStream::connect(address).is_err());
    assert!(std::net::TcpStream::connect(closed_address()).is_err());
}
