//! Arrays of messages.

use serde_json::{Value, json};

use crate::world::{connect, data, history};

fn call(id: impl Into<Value>, tool: &str, arguments: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id.into(), "method": "tools/call", "params": {"name": tool, "arguments": arguments}})
}

#[test]
fn an_array_is_split_for_the_server_and_answered_as_one() {
    let mut client = connect(&[], &[]);
    let note = json!({"jsonrpc": "2.0", "method": "notifications/x"});
    client.send(json!([call("slow", "silent", json!({"ms": 200})), note, call(7, "echo", json!({"a": 1}))]));
    let answers = client.next_line().json();
    let answers = answers.as_array().expect("an array");
    assert_eq!(answers.len(), 2);
    let find = |id: Value| answers.iter().find(|answer| answer["id"] == id).expect("an answer");
    assert_eq!(find(json!("slow"))["result"]["structuredContent"], "done");
    assert_eq!(find(json!(7))["result"]["structuredContent"], json!({"a": 1}));
    assert!(history(&mut client).iter().all(|line| line.starts_with('{')));
}

#[test]
fn a_limit_inside_an_array_is_answered_inside_it() {
    let mut client = connect(&["--timeout", "300ms"], &[]);
    client.send(json!([call(1000, "hang", json!({})), call(1001, "echo", json!({}))]));
    let answers = client.next_line().json();
    let failed =
        answers.as_array().expect("an array").iter().find(|answer| answer["id"] == 1000).expect("an answer");
    assert_eq!(data(failed)["kind"], "timeout");
}

#[test]
fn a_cancelled_member_is_left_out_of_the_array() {
    let mut client = connect(&[], &[]);
    client.send(json!([call(1000, "hang", json!({})), call(1001, "echo", json!({}))]));
    client.cancel(&json!(1000));
    let answers = client.next_line().json();
    assert_eq!(answers.as_array().map(Vec::len), Some(1));
    assert_eq!(answers[0]["id"], 1001);
}

#[test]
fn an_array_of_notifications_is_answered_with_nothing() {
    let mut client = connect(&[], &[]);
    let note = |name: &str| json!({"jsonrpc": "2.0", "method": format!("notifications/{name}")});
    client.send(json!([note("a"), note("b")]));
    client.value_of("echo", &json!({}));
    assert_eq!(client.log().len(), 2);
    let history = history(&mut client);
    assert!(history.iter().any(|line| line.contains("notifications/a")));
    assert!(history.iter().any(|line| line.contains("notifications/b")));
}

#[test]
fn an_array_of_calls_that_are_all_cancelled_is_answered_with_nothing() {
    let mut client = connect(&[], &[]);
    client.send(json!([call(1000, "hang", json!({}))]));
    client.cancel(&json!(1000));
    client.value_of("echo", &json!({}));
    assert_eq!(client.log().len(), 2);
}

#[test]
fn members_that_are_no_messages_are_answered_one_by_one() {
    let mut client = connect(&[], &[]);
    client.send(json!([1, {"foo": "bar"}, call(1001, "echo", json!({}))]));
    let answers = client.next_line().json();
    let answers = answers.as_array().expect("an array");
    let refused = answers.iter().filter(|answer| answer["error"]["code"] == -32600 && answer["id"].is_null());
    assert_eq!((answers.len(), refused.count()), (3, 2));
}

#[test]
fn initialize_inside_an_array_is_refused() {
    let mut client = crate::world::start(&[], &[]);
    client.send(json!([{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}}]));
    let answers = client.next_line().json();
    assert_eq!((&answers[0]["id"], &answers[0]["error"]["code"]), (&json!(1), &json!(-32600)));
    client.handshake();
    assert_eq!(history(&mut client).len(), 3, "it reached the server");
}

#[test]
fn an_empty_array_is_refused() {
    let mut client = connect(&[], &[]);
    client.send("[]");
    let answer = client.next_line().json();
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(null), &json!(-32600)));
}

#[test]
fn an_array_of_more_than_a_thousand_is_refused() {
    let ping = |id: u64| json!({"jsonrpc": "2.0", "id": id, "method": "ping"});
    let mut client = connect(&[], &[]);
    client.send(json!((0..1001).map(ping).collect::<Vec<_>>()));
    assert_eq!(client.next_line().json()["error"]["code"], -32600);
    client.send(json!((0..1000).map(ping).collect::<Vec<_>>()));
    assert_eq!(client.next_line().json().as_array().map(Vec::len), Some(1000));
}

#[test]
fn an_array_of_the_server_is_split() {
    let mut client = connect(&[], &[]);
    let answer = client.call("answer_as_array", &json!({}));
    assert_eq!(answer["result"], json!({"ok": true}));
    assert_eq!(client.message("notifications/message")["params"]["data"], "in an array");
}
