//! Which limit holds for which call, and what moves it.

use outlast_testkit::peer::Peer;
use serde_json::{Value, json};

use crate::world::{connect, data, wrapping};

fn begin_with_wish(client: &mut Peer, tool: &str, millis: &Value) -> Value {
    let meta = json!({"dev.outlast/timeoutMs": millis});
    client.request("tools/call", &json!({"_meta": meta, "name": tool, "arguments": {"ms": 700}}))
}

fn call_with_wish(client: &mut Peer, tool: &str, millis: &Value) -> Value {
    let id = begin_with_wish(client, tool, millis);
    client.answer(&id)
}

#[test]
fn a_busy_server_is_told_from_a_hung_one() {
    let mut client = connect(&["--timeout", "800ms", "--signs", "call+server"], &[]);
    assert_eq!(client.value_of("spin", &json!({"ms": 2000})), "done");
    let answer = client.call("hang", &json!({}));
    assert_eq!(data(&answer)["kind"], "timeout");
}

#[test]
fn without_signs_of_the_server_a_busy_one_is_failed_too() {
    let mut client = connect(&["--timeout", "400ms"], &[]);
    assert_eq!(data(&client.call("spin", &json!({"ms": 1000})))["kind"], "timeout");
}

#[test]
fn a_request_may_shorten_its_own_limit() {
    let mut client = connect(&["--timeout", "10s"], &[]);
    let answer = call_with_wish(&mut client, "hang", &json!(300));
    assert_eq!(data(&answer)["limitMs"], 300);
    assert!(data(&answer)["setting"].as_str().unwrap().contains("dev.outlast/timeoutMs"), "{answer}");
}

#[test]
fn a_request_may_set_a_limit_where_there_is_none() {
    let mut client = connect(&[], &[]);
    assert_eq!(data(&call_with_wish(&mut client, "hang", &json!(300)))["limitMs"], 300);
}

#[test]
fn a_request_may_not_lengthen_its_limit() {
    let mut client = connect(&["--timeout", "300ms"], &[]);
    let answer = call_with_wish(&mut client, "hang", &json!(60_000));
    assert_eq!((&data(&answer)["limitMs"], &data(&answer)["setting"]), (&json!(300), &json!("--timeout")));
}

#[test]
fn a_wish_that_makes_no_sense_is_ignored() {
    let mut client = connect(&["--timeout", "10s"], &[]);
    let wishes = [json!(0), json!(-5), json!("300"), json!(null), json!({"a": 1}), json!(1e-3)];
    let ids = wishes.clone().map(|wish| begin_with_wish(&mut client, "silent", &wish));
    for (wish, id) in wishes.iter().zip(&ids) {
        assert_eq!(client.answer(id)["result"]["structuredContent"], "done", "{wish}");
    }
}

#[test]
fn a_wish_is_a_number_however_it_is_written() {
    let mut client = connect(&["--timeout", "10s"], &[]);
    for wish in ["300.0", "3e2"] {
        client.send(format!(
            r#"{{"jsonrpc":"2.0","id":"w","method":"tools/call","params":{{"_meta":{{"dev.outlast/timeoutMs":{wish}}},"name":"hang"}}}}"#
        ));
        assert_eq!(data(&client.answer(&json!("w")))["limitMs"], 300, "{wish}");
    }
}

#[test]
fn the_wish_of_a_request_still_reaches_the_server() {
    let mut client = connect(&[], &[]);
    let meta = json!({"dev.outlast/timeoutMs": 9000});
    let id = client.request("tools/call", &json!({"_meta": meta, "name": "tell_line"}));
    let answer = client.answer(&id);
    assert!(
        answer["result"]["structuredContent"].as_str().unwrap().contains("\"dev.outlast/timeoutMs\":9000")
    );
}

#[test]
fn a_variable_sets_a_limit_and_is_named_in_the_error() {
    let mut client = Peer::start(wrapping(&[], &[]).env("OUTLAST_TIMEOUT", "300ms"));
    client.handshake();
    let answer = client.call("hang", &json!({}));
    assert_eq!(
        (&data(&answer)["limitMs"], &data(&answer)["setting"]),
        (&json!(300), &json!("OUTLAST_TIMEOUT"))
    );
}

#[test]
fn a_flag_wins_over_a_variable() {
    let mut client = Peer::start(wrapping(&["--timeout", "300ms"], &[]).env("OUTLAST_TIMEOUT", "10m"));
    client.handshake();
    let answer = client.call("hang", &json!({}));
    assert_eq!((&data(&answer)["limitMs"], &data(&answer)["setting"]), (&json!(300), &json!("--timeout")));
}

#[test]
fn every_setting_is_a_variable() {
    let mut command = wrapping(&[], &[]);
    command.envs([
        ("OUTLAST_TOOL", "hang=timeout:300ms; spin=timeout:9s"),
        ("OUTLAST_METHOD", "vendor/*=timeout:300ms"),
        ("OUTLAST_KEEP_ALIVE", "50ms"),
        ("OUTLAST_LOG_FORMAT", "json"),
    ]);
    let mut client = Peer::start(&mut command);
    client.handshake();
    let id = client.begin_with_token("hang", &json!({}), &json!("t"));
    let answer = client.answer(&id);
    assert_eq!(data(&answer)["setting"], "OUTLAST_TOOL 'hang'");
    assert!(client.log().iter().any(|line| line.json()["method"] == "notifications/progress"));
    client.stderr_where(|text| text.starts_with("{\"") || text.contains("\"level\":\"warn\""));
}

#[test]
fn the_nearest_rule_wins() {
    let flags = [
        "--tool",
        "ha*=timeout:400ms",
        "--tool",
        "hang=timeout:300ms",
        "--tool",
        "*=timeout:9s",
        "--timeout",
        "8s",
    ];
    let mut client = connect(&flags, &[]);
    let answer = client.call("hang", &json!({}));
    assert_eq!(
        (&data(&answer)["limitMs"], &data(&answer)["setting"]),
        (&json!(300), &json!("--tool 'hang'"))
    );
}

#[test]
fn a_bare_timeout_is_for_tool_calls_only() {
    let mut client = connect(&["--timeout", "200ms"], &["--mute", "resources/read"]);
    client.request("resources/read", &json!({"uri": "x"}));
    client.call("hang", &json!({}));
    client.call("hang", &json!({}));
    assert_eq!(client.log().len(), 3, "the other method was answered too");
}

#[test]
fn a_server_may_not_shorten_a_limit() {
    let capabilities = r#"{"tools":{"timeouts":{"call":0.1,"list":0.1}}}"#;
    let mut client = connect(&[], &["--capabilities", capabilities]);
    let id = client.begin_with_token("silent", &json!({"ms": 500}), &json!(1));
    assert_eq!(client.answer(&id)["result"]["structuredContent"], "done");
    client.hang_up();
    assert_eq!(String::from_utf8(client.all_stderr()).unwrap(), "");
}

#[test]
fn a_server_may_not_move_a_limit_that_a_person_wrote() {
    let capabilities = r#"{"tools":{"timeouts":{"call":3600}}}"#;
    let mut client = connect(&["--timeout", "300ms"], &["--capabilities", capabilities]);
    assert_eq!(data(&client.call("hang", &json!({})))["limitMs"], 300);
}

#[test]
fn declared_limits_that_make_no_sense_are_ignored_with_one_note() {
    let capabilities =
        r#"{"tools":{"timeouts":{"call":-1,"list":"soon"}},"prompts":{"timeouts":{"get":1e99}}}"#;
    let mut client = connect(&[], &["--capabilities", capabilities]);
    assert_eq!(client.value_of("silent", &json!({"ms": 100})), "done");
    client.hang_up();
    let stderr = String::from_utf8(client.all_stderr()).unwrap();
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    assert!(stderr.contains("declares timeouts"), "{stderr}");
}

#[test]
fn a_thousand_limits_fire_at_once_and_every_call_is_cancelled() {
    let mut client = connect(&["--timeout", "500ms", "--tool", "tell*=timeout:20s", "--log", "error"], &[]);
    let ids: Vec<Value> = (0..1000).map(|_| client.begin("hang", &json!({}))).collect();
    for id in &ids {
        assert_eq!(data(&client.answer(id))["kind"], "timeout");
    }
    assert_eq!(crate::world::cancels(&mut client).len(), 1000);
}
