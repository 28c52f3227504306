//! `kill -9` of `outlast serve`: its sessions and what nobody has read are still there.

use std::fs;
use std::path::Path;

use nix::sys::signal::Signal;
use outlast_testkit::http::caller::Caller;
use outlast_testkit::peer::{LIMIT, wait_until};
use rusqlite::Connection;
use serde_json::json;

use crate::http_security::new_token;
use crate::http_world::{Served, Session, serve};

fn served(state: &Path) -> Served {
    serve(&["--state", state.to_str().expect("text"), "--tool", "long=timeout:1h"], &[])
}

/// Whether the store has been given these words.
fn is_stored(state: &Path, words: &str) -> bool {
    let files = fs::read_dir(state).into_iter().flatten().flatten();
    let holds = |bytes: Vec<u8>| bytes.windows(words.len()).any(|part| part == words.as_bytes());
    files.filter_map(|file| fs::read(file.path()).ok()).any(holds)
}

/// Kills it and gives the next process.
fn killed(mut served: Served, state: &Path) -> Served {
    served.process.signal(Signal::SIGKILL);
    served.process.end();
    self::served(state)
}

/// The id of the first event, which begins the stream.
fn first_event(stream: &mut Caller) -> String {
    assert_eq!(stream.head().0, 200);
    stream.event().expect("an event").id.expect("an id")
}

#[test]
fn a_session_goes_on_at_the_next_process() {
    let state = tempfile::tempdir().expect("a folder");
    let first = served(state.path());
    let mut client = first.session();
    assert_eq!(client.value_of("echo", &json!({"x": 1})), json!({"x": 1}));
    assert!(wait_until(LIMIT, || is_stored(state.path(), &client.id)), "the session is not stored");
    let second = killed(first, state.path());
    let mut client = client.at(second.address);
    assert_eq!(client.value_of("echo", &json!({"x": 2})), json!({"x": 2}));
    assert_eq!(client.delete().status, 200);
    assert_eq!(client.post(&json!({"jsonrpc": "2.0", "id": 9, "method": "ping"})).status, 404);
}

/// Who is told 404 begins anew, and what it left is lost to it.
#[test]
fn a_session_in_a_store_that_cannot_be_read_is_not_denied() {
    let state = tempfile::tempdir().expect("a folder");
    let mut first = served(state.path());
    let mut client = first.session();
    assert!(wait_until(LIMIT, || is_stored(state.path(), &client.id)), "the session is not stored");
    first.process.signal(Signal::SIGKILL);
    first.process.end();
    let file = Connection::open(state.path().join("store.db")).expect("the store");
    let version: u32 = file.pragma_query_value(None, "user_version", |row| row.get(0)).expect("a version");
    file.pragma_update(None, "user_version", 99).expect("written");
    let second = served(state.path());
    client = client.at(second.address);
    let ping = json!({"jsonrpc": "2.0", "id": 9, "method": "ping"});
    for status in [client.post(&ping).status, client.delete().status] {
        assert_eq!(status, 503);
    }
    file.pragma_update(None, "user_version", version).expect("written");
    let third = killed(second, state.path());
    assert_eq!(client.at(third.address).post(&ping).status, 200);
}

#[test]
fn an_answer_that_nobody_read_is_there_at_the_next_process() {
    let state = tempfile::tempdir().expect("a folder");
    let first = served(state.path());
    let mut client = first.session();
    let (mut stream, id) =
        client.begin_call("silent", &json!({"ms": 300, "words": "for-whoever-comes-back"}));
    let last = first_event(&mut stream);
    drop(stream);
    let answer = format!(r#""id":{id},"result""#);
    assert!(wait_until(LIMIT, || is_stored(state.path(), &answer)), "the answer is not stored");
    let second = killed(first, state.path());
    let client = client.at(second.address);
    let mut stream = client.listen(Some(&last));
    assert_eq!(stream.head().0, 200);
    assert!(stream.answer(&id)["result"].is_object());
    assert!(stream.event().is_none(), "the stream has ended");
    // It was given away and not taken away.
    let mut stream = client.listen(Some(&last));
    assert_eq!(stream.head().0, 200);
    assert!(stream.answer(&id)["result"].is_object());
}

#[test]
fn nobody_waits_for_a_call_that_died_with_its_process() {
    let state = tempfile::tempdir().expect("a folder");
    let first = served(state.path());
    let mut client = first.session();
    let (mut stream, id) = client.begin_call("silent", &json!({"ms": 60_000}));
    let last = first_event(&mut stream);
    drop(stream);
    assert!(
        wait_until(LIMIT, || is_stored(state.path(), "outlast itself was ended during the call")),
        "no will"
    );
    let second = killed(first, state.path());
    let client = client.at(second.address);
    let mut stream = client.listen(Some(&last));
    assert_eq!(stream.head().0, 200);
    let answer = stream.answer(&id);
    let message = answer["error"]["message"].as_str().unwrap_or_default();
    assert!(message.contains("outlast itself was ended during the call"), "{answer}");
}

#[test]
fn nobody_else_gets_in_after_a_restart() {
    let state = tempfile::tempdir().expect("a folder");
    let tokens = state.path().join("tokens");
    let ((ann, first_line), (bob, second_line)) = (new_token("ann"), new_token("bob"));
    fs::write(&tokens, format!("{first_line}\n{second_line}\n")).expect("a file");
    let flags =
        ["--state", state.path().to_str().expect("text"), "--token-file", tokens.to_str().expect("text")];
    let mut first = serve(&flags, &[]);
    let (ann, bob) = (format!("Bearer {ann}"), format!("Bearer {bob}"));
    let client = Session::open(first.address, Some(&ann));
    assert!(wait_until(LIMIT, || is_stored(state.path(), &client.id)), "the session is not stored");
    first.process.signal(Signal::SIGKILL);
    first.process.end();
    let second = serve(&flags, &[]);
    let mut intruder = Session::open(second.address, Some(&bob));
    intruder.id.clone_from(&client.id);
    let ping = json!({"jsonrpc": "2.0", "id": 9, "method": "ping"});
    assert_eq!(intruder.post(&ping).status, 404);
    assert_eq!(intruder.delete().status, 404);
    assert_eq!(client.at(second.address).post(&ping).status, 200);
}
