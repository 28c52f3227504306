//! Errors: the message alone tells a person enough, `data.outlast` tells a program the rest.

use serde_json::{Value, json};

use crate::world::{connect, data, outlast};

fn message(answer: &Value) -> &str {
    answer["error"]["message"].as_str().expect("a message")
}

/// Bounds that hold for every error of ours.
fn assert_bounded(answer: &Value) {
    assert!(message(answer).chars().count() <= 300, "{}", message(answer));
    let data = data(answer).to_string();
    assert!(data.len() <= 2048, "{data}");
}

/// `help` is a command that works wherever outlast is.
fn assert_help_exists(answer: &Value) {
    let words: Vec<&str> = data(answer)["help"].as_str().expect("a command").split(' ').collect();
    let code = answer["error"]["code"].to_string();
    assert_eq!(words, ["outlast", "help", &code]);
    let page = outlast().args(&words[1..]).output().expect("outlast runs");
    assert!(page.status.success() && page.stdout.starts_with(format!("{code}: ").as_bytes()), "{page:?}");
}

#[test]
fn a_timeout_says_what_happened_and_which_setting_governs_it() {
    let mut client = connect(&["--timeout", "300ms"], &[]);
    let answer = client.call("hang", &json!({}));
    assert_eq!(answer["error"]["code"], -32001);
    assert_bounded(&answer);
    let text = message(&answer);
    for part in ["hang", "300ms", "--timeout", "cancel", "--tool 'hang=timeout:600ms'"] {
        assert!(text.contains(part), "`{part}` is not in: {text}");
    }
    let data = data(&answer);
    assert_eq!(data["kind"], "timeout");
    assert_eq!(data["server"], "fake_server");
    assert_eq!(data["method"], "tools/call");
    assert_eq!(data["tool"], "hang");
    assert_eq!(data["limitMs"], 300);
    assert_eq!(data["setting"], "--timeout");
    assert_eq!(data["attempts"], 1);
    assert_eq!(data["serverState"], "cancelled");
    assert_eq!(data["retry"], "unsafe");
    assert!(data["signs"].is_object());
    let elapsed = data["elapsedMs"].as_u64().expect("a number");
    assert!((300..3000).contains(&elapsed), "{elapsed}");
}

#[test]
fn every_error_has_its_page() {
    let mut client = connect(&["--timeout", "300ms", "--max-message", "4KiB"], &[]);
    assert_help_exists(&client.call("hang", &json!({})));
    assert_help_exists(&client.call("answer_big", &json!({"bytes": 5000})));
    assert_help_exists(&client.call("exit", &json!({"status": 1})));
}

#[test]
fn a_timeout_tells_how_long_ago_the_last_sign_of_life_was() {
    let mut client = connect(&["--timeout", "400ms"], &[]);
    let answer = client.call("progress", &json!({"every_ms": 200, "values": [1], "hangs": true}));
    let ago = data(&answer)["signs"]["lastSignMs"].as_u64().expect("a sign");
    let elapsed = data(&answer)["elapsedMs"].as_u64().expect("a number");
    assert!(ago >= 400 && elapsed >= ago + 190, "{answer}");
    let answer = client.call("hang", &json!({}));
    assert_eq!(data(&answer)["signs"].get("lastSignMs"), None, "it never gave one");
}

#[test]
fn the_hard_cap_has_a_kind_of_its_own() {
    let mut client = connect(&["--max", "300ms"], &[]);
    let answer = client.call("hang", &json!({}));
    assert_eq!((&answer["error"]["code"], &data(&answer)["kind"]), (&json!(-32001), &json!("max")));
    assert_eq!(data(&answer)["setting"], "--max");
    assert!(message(&answer).contains("--tool 'hang=max:600ms'"), "{}", message(&answer));
}

#[test]
fn a_method_without_a_tool_is_named_by_itself() {
    let mut client = connect(&["--method", "resources/*=timeout:300ms"], &["--mute", "resources/read"]);
    let id = client.request("resources/read", &json!({"uri": "x://y"}));
    let answer = client.answer(&id);
    assert_eq!(data(&answer)["method"], "resources/read");
    assert_eq!(data(&answer).get("tool"), None);
    assert_eq!(data(&answer)["setting"], "--method 'resources/*'");
    assert_eq!(data(&answer)["retry"], "safe");
    assert!(message(&answer).contains("--method 'resources/read=timeout:600ms'"), "{}", message(&answer));
}

#[test]
fn a_modern_client_sees_the_code_of_its_own_era() {
    let mut client = connect(&["--timeout", "300ms"], &[]);
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28"});
    let id = client.request("tools/call", &json!({"_meta": meta, "name": "hang"}));
    let answer = client.answer(&id);
    assert_eq!((&answer["error"]["code"], &data(&answer)["kind"]), (&json!(-31001), &json!("timeout")));
    assert_help_exists(&answer);
}

#[test]
fn an_error_stays_small_whatever_the_names_and_stderr() {
    let mut client = connect(&["--timeout", "300ms"], &["--stderr", &"ä\u{1b}[31m last line ".repeat(500)]);
    let tool = "ü".repeat(2000);
    let rule = client.call(&tool, &json!({}));
    assert!(rule["result"].is_object(), "an unknown tool is the server's business");
    let answer = client.call("hang", &json!({}));
    assert_bounded(&answer);
    let answer = client.call("exit", &json!({"status": 1, "stderr": "\u{7}x\n".repeat(3000)}));
    assert_bounded(&answer);
    assert!(!answer.to_string().contains("\\u001b"), "{answer}");
    assert!(data(&answer)["signs"]["stderr"].as_str().expect("stderr").ends_with('x'));
}

#[test]
fn errors_of_the_server_pass_untouched() {
    let mut client = connect(&[], &[]);
    let error = r#"{"jsonrpc":"2.0","id":$ID,"error":{"code":-32602,"message":"no","data":{"why":1.0}}}"#;
    let answer = client.call("answer_with", &json!({"line": error}));
    assert_eq!(answer["error"], json!({"code": -32602, "message": "no", "data": {"why": 1.0}}));
}
