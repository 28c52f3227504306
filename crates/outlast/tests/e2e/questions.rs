//! Requests of the server to the client: the way back is as good as the way there.

use serde_json::{Value, from_str, json};

use crate::world::{connect, data, history};

/// Has the server ask; the id of that call.
fn have_it_ask(client: &mut outlast_testkit::peer::Peer, id: &str, method: &str) -> Value {
    client.begin("ask", &json!({"id": id, "method": method, "params": {"n": 1}}))
}

#[test]
fn questions_of_every_kind_make_a_round_trip() {
    let mut client = connect(&[], &[]);
    for method in ["sampling/createMessage", "elicitation/create", "roots/list", "ping", "vendor/question"] {
        for id in ["1", r#""q-1""#, "0", "9007199254740993", r#""1""#] {
            let call = have_it_ask(&mut client, id, method);
            let question = client.message(method);
            assert_eq!(question["params"], json!({"n": 1}));
            assert_eq!(question["id"].is_string(), id.starts_with('"'), "{question}");
            client.send(format!(
                r#"{{"jsonrpc":"2.0","result":{{"x":1.0,"of":"{method}"}},"id":{}}}"#,
                question["id"]
            ));
            let answer = client.answer(&call);
            let got = answer["result"]["structuredContent"].as_str().expect("the client's line");
            assert_eq!(got, format!(r#"{{"jsonrpc":"2.0","result":{{"x":1.0,"of":"{method}"}},"id":{id}}}"#));
        }
    }
}

#[test]
fn the_clients_refusal_reaches_the_server() {
    let mut client = connect(&[], &[]);
    let call = have_it_ask(&mut client, "5", "elicitation/create");
    let question = client.message("elicitation/create");
    client.send(json!({"jsonrpc": "2.0", "id": question["id"], "error": {"code": -32601, "message": "never heard of it"}}));
    let answer = client.answer(&call);
    let got: Value = from_str(answer["result"]["structuredContent"].as_str().expect("a line")).unwrap();
    assert_eq!((&got["id"], &got["error"]["message"]), (&json!(5), &json!("never heard of it")));
}

#[test]
fn many_questions_at_once_are_not_mixed_up() {
    let mut client = connect(&[], &[]);
    let calls: Vec<Value> =
        (0..10).map(|number| have_it_ask(&mut client, &format!("{number}"), "roots/list")).collect();
    let mut questions: Vec<Value> = (0..10).map(|_| client.message("roots/list")).collect();
    questions.reverse();
    for question in &questions {
        client.send(json!({"jsonrpc": "2.0", "id": question["id"], "result": {"roots": []}}));
    }
    for (number, call) in calls.iter().enumerate() {
        let answer = client.answer(call);
        let got: Value = from_str(answer["result"]["structuredContent"].as_str().expect("a line")).unwrap();
        assert_eq!(got["id"], number);
    }
}

#[test]
fn an_answer_to_a_question_that_nobody_asked_goes_nowhere() {
    let mut client = connect(&["--log", "info"], &[]);
    for id in [json!(1), json!("x"), json!(null), json!(99)] {
        client.send(json!({"jsonrpc": "2.0", "id": id, "result": {}}));
    }
    assert_eq!(history(&mut client).len(), 3);
    client.stderr_where(|text| text.contains("unknown id"));
}

#[test]
fn a_question_that_the_client_does_not_answer_ends() {
    let mut client = connect(&["--method", "roots/list=timeout:300ms"], &[]);
    let call = have_it_ask(&mut client, r#""q""#, "roots/list");
    let question = client.message("roots/list");
    let answer = client.answer(&call);
    let got: Value = from_str(answer["result"]["structuredContent"].as_str().expect("a line")).unwrap();
    assert_eq!(got["id"], "q");
    assert!(got["error"]["message"].as_str().unwrap().contains("300ms"), "{got}");
    let cancel = client.message("notifications/cancelled");
    assert_eq!(cancel["params"]["requestId"], question["id"]);
    assert!(cancel["params"]["reason"].as_str().unwrap().starts_with("Timeout"), "{cancel}");
    // An answer that comes now is too late.
    client.send(json!({"jsonrpc": "2.0", "id": question["id"], "result": {}}));
    assert!(!history(&mut client).iter().any(|line| line.contains("result")));
}

#[test]
fn a_question_that_the_server_takes_back_is_taken_back() {
    let mut client = connect(&[], &[]);
    client.value_of(
        "ask",
        &json!({"id": "\"q\"", "method": "elicitation/create", "params": {}, "take_back": true}),
    );
    let question = client.message("elicitation/create");
    let cancel = client.message("notifications/cancelled");
    assert_eq!(cancel["params"]["requestId"], question["id"]);
}

#[test]
fn a_question_of_a_server_that_ended_is_taken_back() {
    let mut client = connect(&["--restart", "never"], &[]);
    have_it_ask(&mut client, "1", "sampling/createMessage");
    let question = client.message("sampling/createMessage");
    client.begin("exit", &json!({"status": 3}));
    let cancel = client.message("notifications/cancelled");
    assert_eq!(cancel["params"]["requestId"], question["id"]);
    assert_eq!(client.end().code(), Some(3));
}

#[test]
fn the_timeout_stands_still_while_a_person_is_asked() {
    let mut client = connect(&["--timeout", "500ms"], &[]);
    let asking = have_it_ask(&mut client, "1", "elicitation/create");
    let question = client.message("elicitation/create");
    // Longer than the limit, in a call of its own: it is not charged either.
    assert_eq!(client.value_of("silent", &json!({"ms": 900})), "done");
    client.send(json!({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept"}}));
    assert!(client.answer(&asking)["result"].is_object());
    assert_eq!(data(&client.call("hang", &json!({})))["kind"], "timeout", "it runs again afterwards");
}

#[test]
fn the_timeout_runs_on_while_no_person_is_asked() {
    let mut client = connect(&["--timeout", "500ms"], &[]);
    let asking = have_it_ask(&mut client, "1", "roots/list");
    client.message("roots/list");
    assert_eq!(data(&client.answer(&asking))["kind"], "timeout");
}
