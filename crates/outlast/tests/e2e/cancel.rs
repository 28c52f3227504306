//! Cancellation: the right request, once, in the right words, and nobody waits for it.
use serde_json::{Value, json};

use crate::world::{cancels, connect, data, history, ids_at_the_server, start};

#[test]
fn a_cancel_reaches_the_one_right_attempt() {
    let mut client = connect(&[], &[]);
    let first = client.begin("hang", &json!({}));
    let second = client.begin("hang", &json!({}));
    let third = client.begin("hang", &json!({}));
    client.cancel(&second);
    let cancels = cancels(&mut client);
    assert_eq!(cancels.len(), 1, "{cancels:?}");
    let ids = ids_at_the_server(&mut client, "hang");
    assert_eq!(cancels[0]["params"]["requestId"], ids[1]);
    assert_eq!(cancels[0]["params"]["reason"], "the user changed their mind");
    let answered = |id: &Value| client.log().iter().any(|line| line.json()["id"] == *id);
    assert!(!answered(&first) && !answered(&second) && !answered(&third));
}

#[test]
fn a_cancel_passes_with_all_its_bytes_but_the_id() {
    let mut client = connect(&[], &[]);
    let id = client.begin("hang", &json!({}));
    let cancel = |id: &str| {
        format!(
            r#"{{"method":"notifications/cancelled","params":{{"x":1.0,"requestId":{id},"reason":"\u0041"}},"jsonrpc":"2.0"}}"#
        )
    };
    client.send(cancel(&id.to_string()));
    let inner = ids_at_the_server(&mut client, "hang")[0].to_string();
    let history = history(&mut client);
    assert!(history.contains(&cancel(&inner)), "{history:?}");
}

#[test]
fn a_cancel_by_a_string_id_names_a_string_at_the_server() {
    let mut client = connect(&[], &[]);
    for id in ["a", "1", ""] {
        client.send(json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "hang"}}));
        client.cancel(&json!(id));
        let cancel = cancels(&mut client).pop().expect("a cancel");
        let inner = ids_at_the_server(&mut client, "hang").pop().expect("a call");
        assert!(inner.is_string(), "{inner}");
        assert_eq!(cancel["params"]["requestId"], inner);
    }
}

#[test]
fn an_id_is_the_same_however_it_is_escaped() {
    let mut client = connect(&[], &[]);
    client.send(r#"{"jsonrpc":"2.0","id":"ab","method":"tools/call","params":{"name":"hang"}}"#);
    client.send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"\u0061b"}}"#);
    assert_eq!(cancels(&mut client).len(), 1);
}

#[test]
fn the_string_1_is_not_the_number_1() {
    let mut client = connect(&[], &[]);
    let id = client.begin("hang", &json!({}));
    client.cancel(&json!(id.to_string()));
    assert_eq!(cancels(&mut client).len(), 0);
    client.cancel(&id);
    assert_eq!(cancels(&mut client).len(), 1);
}

#[test]
fn a_limit_that_fires_cancels_at_the_server_with_its_reason_and_seconds() {
    let mut client = connect(&["--timeout", "300ms", "--tool", "echo=max:24h"], &[]);
    let ids = [json!(4711), json!("text")];
    for id in &ids {
        client.send(json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "hang"}}));
        assert_eq!(data(&client.answer(id))["serverState"], "cancelled");
    }
    let cancels = cancels(&mut client);
    assert_eq!(cancels.len(), 2, "{cancels:?}");
    let inner = ids_at_the_server(&mut client, "hang");
    for (cancel, (outer, inner)) in cancels.iter().zip(ids.iter().zip(&inner)) {
        let params = &cancel["params"];
        assert_eq!(&params["requestId"], inner);
        assert_eq!(inner.is_string(), outer.is_string());
        assert!(params["reason"].as_str().unwrap().starts_with("Timeout"), "{cancel}");
        assert_eq!(params["timeout"].as_f64(), Some(0.3), "{cancel}");
    }
}

#[test]
fn the_hard_cap_cancels_in_the_same_words() {
    let mut client = connect(&["--max", "1s"], &[]);
    let answer = client.call("progress", &json!({"every_ms": 100, "values": vec![1; 30]}));
    assert_eq!(data(&answer)["kind"], "max");
    let cancel = cancels(&mut client).pop().expect("a cancel");
    assert!(cancel["params"]["reason"].as_str().unwrap().starts_with("Timeout"), "{cancel}");
    assert_eq!(cancel["params"]["timeout"].as_f64(), Some(1.0), "{cancel}");
}

#[test]
fn initialize_is_never_cancelled_by_a_limit() {
    let mut client = start(&["--handshake", "300ms"], &["--mute", "initialize"]);
    let answer = client.handshake();
    assert_eq!(data(&answer)["kind"], "timeout");
    assert_eq!(data(&answer)["setting"], "--handshake");
    assert_eq!(cancels(&mut client).len(), 0);
}

#[test]
fn initialize_is_never_cancelled_by_the_client() {
    let mut client = start(&["--handshake", "10s"], &["--slow-start", "300"]);
    let id = client.request("initialize", &json!({"capabilities": {}}));
    client.cancel(&id);
    assert!(client.answer(&id)["result"].is_object());
    assert_eq!(cancels(&mut client).len(), 0);
}

#[test]
fn a_late_answer_after_a_limit_is_dropped_and_noted() {
    let mut client = connect(&["--timeout", "300ms", "--log", "info"], &[]);
    let id = client.begin("late", &json!({}));
    assert_eq!(data(&client.answer(&id))["kind"], "timeout");
    client.stderr_where(|text| text.contains("which has ended; dropped"));
    client.value_of("echo", &json!({}));
    let answers = client.log().iter().filter(|line| line.json()["id"] == id).count();
    assert_eq!(answers, 1);
}

#[test]
fn a_late_answer_after_a_cancel_is_dropped_and_noted() {
    let mut client = connect(&["--log", "info"], &[]);
    let id = client.begin("late", &json!({}));
    client.cancel(&id);
    client.stderr_where(|text| text.contains("which has ended; dropped"));
    client.value_of("echo", &json!({}));
    assert!(client.log().iter().all(|line| line.json()["id"] != id), "answered after its cancel");
}

#[test]
fn a_cancel_of_an_unknown_or_finished_call_goes_nowhere() {
    let mut client = connect(&[], &[]);
    let finished = client.begin("echo", &json!({}));
    client.answer(&finished);
    for id in [finished, json!(999), json!("never"), json!(null), json!({"a": 1})] {
        client.cancel(&id);
    }
    assert_eq!(cancels(&mut client).len(), 0);
}

#[test]
fn an_id_that_is_used_again_belongs_to_the_newer_call() {
    let mut client = connect(&[], &[]);
    let call = json!({"jsonrpc": "2.0", "id": "again", "method": "tools/call", "params": {"name": "hang"}});
    client.send(&call);
    client.cancel(&json!("again"));
    client.send(&call);
    client.cancel(&json!("again"));
    let inner = ids_at_the_server(&mut client, "hang");
    let cancelled: Vec<_> =
        cancels(&mut client).iter().map(|cancel| cancel["params"]["requestId"].clone()).collect();
    assert_eq!(cancelled, inner);
    assert_ne!(inner[0], inner[1]);
}

/// Its event loop answers our ping, so it is slow and not hung.
#[test]
fn a_server_that_ignores_the_cancel_keeps_nobody_waiting_and_is_not_replaced() {
    let mut client =
        connect(&["--tool", "hang=timeout:300ms", "--cancel-grace", "300ms", "--log", "info"], &[]);
    // It never answers: whoever waited for it would wait for ever.
    let answer = client.call("hang", &json!({}));
    assert_eq!(data(&answer)["kind"], "timeout");
    // Longer than the grace; the same process still answers.
    client.value_of("silent", &json!({"ms": 250}));
    client.value_of("silent", &json!({"ms": 250}));
    let stderr = client.stderr();
    assert!(!stderr.contains("hangs") && !stderr.contains("restarting"), "{stderr}");
}
