//! Bad input and faults: what happens.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use outlast_testkit::peer::Peer;
use serde_json::{Value, json};

use crate::world::{MUCH_MEMORY, connect, data, history, memory_of, outlast, start};

fn initialize() -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}})
}

#[test]
fn a_command_that_does_not_exist_answers_the_first_request_and_ends_with_127() {
    let mut client = Peer::start(outlast().args(["--", "/no/such/server", "--flag"]));
    client.send(initialize());
    let answer = client.answer(&json!(1));
    assert_eq!(answer["error"]["code"], -31003, "{answer}");
    assert_eq!(data(&answer)["kind"], "server-failed");
    assert_eq!(data(&answer)["serverState"], "never-reached");
    assert_eq!(data(&answer)["retry"], "pointless");
    assert!(answer["error"]["message"].as_str().unwrap().contains("/no/such/server"), "{answer}");
    assert_eq!(client.end().code(), Some(127));
    let stderr = String::from_utf8(client.all_stderr()).unwrap();
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    assert!(stderr.contains("/no/such/server"), "{stderr}");
}

#[test]
fn a_command_that_does_not_exist_waits_half_a_second_for_a_request() {
    let began = Instant::now();
    let mut client = Peer::start(outlast().args(["--", "no-such-server-anywhere"]));
    assert_eq!(client.end().code(), Some(127));
    let took = began.elapsed();
    assert!(took >= Duration::from_millis(450) && took < Duration::from_secs(3), "{took:?}");
    assert!(client.rest().is_empty());
}

/// That the process could not be started and that its output is closed are told by two different
/// channels, in either order; many at once bring both.
#[test]
fn a_command_that_does_not_exist_ends_however_the_news_arrive() {
    let start = || Peer::start(outlast().args(["--", "no-such-server-anywhere"]));
    let mut clients: Vec<Peer> = (0..40).map(|_| start()).collect();
    for client in &mut clients {
        assert_eq!(client.end_within(Duration::from_secs(8)).code(), Some(127));
    }
}

#[test]
fn a_command_that_does_not_exist_ends_with_127_at_the_end_of_the_input_too() {
    let mut client = Peer::start(outlast().args(["--", "no-such-server-anywhere"]));
    assert_eq!(client.hang_up().code(), Some(127));
}

#[test]
fn a_command_that_is_not_executable_ends_with_126() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("server");
    fs::write(&path, "#!/bin/sh\n").unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
    let mut client = Peer::start(outlast().arg("--").arg(&path));
    client.send(initialize());
    let answer = client.answer(&json!(1));
    assert_eq!(data(&answer)["kind"], "server-failed");
    assert_eq!(client.end().code(), Some(126));
    let stderr = String::from_utf8(client.all_stderr()).unwrap();
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    assert!(stderr.contains(path.to_str().unwrap()), "{stderr}");
}

#[test]
fn a_directory_is_not_executable() {
    let mut client = Peer::start(outlast().args(["--", "/tmp"]));
    assert_eq!(client.hang_up().code(), Some(126));
}

#[test]
fn a_server_that_ends_before_any_request_gives_outlast_its_status() {
    let mut client = start(&[], &["--exit", "6"]);
    assert_eq!(client.end().code(), Some(6));
    assert!(client.rest().is_empty());
}

#[test]
fn a_server_that_ends_before_it_ever_answered_is_reported_with_its_stderr() {
    let mut client = start(&[], &["--stderr", "cannot open the database\n", "--exit-at", "initialize", "3"]);
    client.send(initialize());
    let answer = client.answer(&json!(1));
    assert_eq!(answer["error"]["code"], -31002, "{answer}");
    assert_eq!(data(&answer)["kind"], "server-gone");
    assert_eq!(data(&answer)["serverState"], "gone");
    assert_eq!(data(&answer)["signs"]["stderr"], "cannot open the database");
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(message.contains("exit status 3") && message.contains("cannot open the database"), "{message}");
    assert_eq!(client.end().code(), Some(3));
}

#[test]
fn a_server_that_ends_before_it_reads_anything_is_reported_too() {
    let mut client = start(&[], &["--exit", "4"]);
    client.send(initialize());
    let answer = client.answer(&json!(1));
    assert_eq!(data(&answer)["kind"], "server-gone");
    assert_eq!(client.end().code(), Some(4));
}

#[test]
fn a_server_that_ends_in_mid_call_fails_that_call_and_outlast_ends_with_its_status() {
    let mut client = connect(&["--restart", "never"], &[]);
    let answer = client.call("exit", &json!({"status": 5, "stderr": "out of luck\n"}));
    assert_eq!(answer["error"]["code"], -31002, "{answer}");
    assert_eq!(data(&answer)["kind"], "server-gone");
    assert_eq!(data(&answer)["tool"], "exit");
    assert_eq!(data(&answer)["retry"], "unsafe");
    assert_eq!(data(&answer)["signs"]["stderr"], "out of luck");
    assert_eq!(client.end().code(), Some(5));
}

#[test]
fn a_server_that_answers_and_ends_has_answered() {
    let mut client = connect(&["--restart", "never"], &[]);
    let answer = client.call("exit", &json!({"status": 0, "answers": true}));
    assert_eq!(answer["result"]["structuredContent"], "done");
    assert_eq!(client.end().code(), Some(0));
}

#[test]
fn a_server_that_dies_by_a_signal_is_reported_as_a_shell_would() {
    let mut client = connect(&["--restart", "never"], &[]);
    let answer = client.call("die", &json!({"signal": 9}));
    assert!(answer["error"]["message"].as_str().unwrap().contains("signal 9"), "{answer}");
    assert_eq!(client.end().code(), Some(137));
}

#[test]
fn every_call_in_flight_is_answered_when_the_server_ends() {
    let mut client = connect(&["--restart", "never"], &[]);
    let hanging: Vec<Value> = (0..20).map(|_| client.begin("hang", &json!({}))).collect();
    client.begin("exit", &json!({"status": 1}));
    for id in hanging {
        assert_eq!(data(&client.answer(&id))["kind"], "server-gone");
    }
    assert_eq!(client.end().code(), Some(1));
}

#[test]
fn a_server_that_closes_its_output_and_lives_on_is_ended() {
    let mut client = connect(&["--restart", "never"], &["--ignore-eof", "--ignore-term"]);
    let answer = client.call("close_stdout", &json!({}));
    assert_eq!(data(&answer)["kind"], "server-gone");
    client.end();
}

#[test]
fn a_server_that_closes_its_input_and_lives_on_does_not_keep_limits_from_firing() {
    let mut client = connect(&["--timeout", "400ms"], &[]);
    client.value_of("close_stdin", &json!({}));
    // The first finds out, and is told that it has never left; the next waits for another process.
    let answer = client.call("echo", &json!({}));
    assert_eq!(
        (&data(&answer)["serverState"], &data(&answer)["retry"]),
        (&json!("never-reached"), &json!("safe"))
    );
    assert_eq!(data(&client.call("echo", &json!({})))["kind"], "timeout");
}

#[test]
fn two_calls_under_one_id_get_two_answers() {
    let mut client = connect(&[], &[]);
    for ms in [300, 100] {
        let params = json!({"name": "silent", "arguments": {"ms": ms}});
        client.send(json!({"jsonrpc": "2.0", "id": "same", "method": "tools/call", "params": params}));
    }
    for _ in 0..2 {
        assert_eq!(client.answer(&json!("same"))["result"]["structuredContent"], "done");
    }
}

#[test]
fn lines_that_are_not_json_are_dropped_and_noted_once_in_a_hundred() {
    let mut client = connect(&[], &[]);
    let lines: Vec<String> = (0..250).map(|number| format!("{number:03} {}", "j".repeat(500))).collect();
    assert_eq!(client.value_of("write_lines", &json!({"lines": lines})), "done");
    assert_eq!(client.value_of("echo", &json!({"still": "there"})), json!({"still": "there"}));
    assert_eq!(client.log().len(), 3, "the client saw the junk");
    client.hang_up();
    let stderr = String::from_utf8(client.all_stderr()).unwrap();
    // The last line is the total.
    assert_eq!(stderr.lines().count(), 4, "{stderr}");
    assert!(stderr.contains("wrote 250 lines to stdout that are not messages (total)"), "{stderr}");
    for (line, number) in stderr.lines().zip(["000", "099", "199"]) {
        let shown = format!("{number} {}", "j".repeat(196));
        assert!(line.contains(&shown) && !line.contains(&format!("{shown}j")), "{line}");
    }
}

#[test]
fn json_that_is_no_message_is_dropped_and_noted() {
    let lines = ["42", "\"text\"", "null", "true", "{}", "[]", "[1]", r#"{"jsonrpc":"2.0"}"#, r#"{"id":1}"#];
    let mut client = connect(&[], &[]);
    assert_eq!(client.value_of("write_lines", &json!({"lines": lines})), "done");
    assert_eq!(client.value_of("echo", &json!({})), json!({}));
    assert_eq!(client.log().len(), 3, "the client saw what is no message");
    client.hang_up();
    let stderr = String::from_utf8(client.all_stderr()).unwrap();
    assert_eq!(stderr.lines().count(), 2, "{stderr}");
    assert!(
        stderr.contains("dropped: 42")
            && stderr.contains("wrote 9 lines to stdout that are not messages (total)"),
        "{stderr}"
    );
}

#[test]
fn an_answer_to_an_unknown_id_is_dropped_and_noted() {
    let mut client = connect(&["--log", "info"], &[]);
    assert_eq!(client.value_of("answer_unknown_id", &json!({})), "done");
    assert_eq!(client.log().len(), 2, "the client saw an answer that is not its own");
    client.stderr_where(|text| text.contains("987654321") && text.contains("nobody"));
}

#[test]
fn a_second_answer_is_dropped_and_noted() {
    let mut client = connect(&["--log", "info"], &[]);
    assert_eq!(client.value_of("answer_twice", &json!({})), "done");
    assert_eq!(client.value_of("echo", &json!({})), json!({}));
    assert_eq!(client.log().len(), 3, "the client got two answers");
    client.stderr_where(|text| text.contains("which has ended; dropped"));
}

#[test]
fn a_client_line_that_is_not_json_is_answered_and_not_forwarded() {
    let mut client = connect(&[], &[]);
    let broken: [(&[u8], Value); 5] = [
        (b"hello?", json!(null)),
        (b"{\"jsonrpc\":\"2.0\",\"id\":", json!(null)),
        (b"{\"jsonrpc\":\"2.0\",\"id\":77,\"method\":", json!(77)),
        (b"{\"jsonrpc\":\"2.0\",\"id\":\"78\",\"method\":\"x\",\"params\":{\"a\":NaN}}", json!("78")),
        (b"{\"id\":79,\"method\":\"x\"}}", json!(79)),
    ];
    for (line, id) in broken {
        client.send_bytes(&[line, b"\n"].concat());
        let answer = client.next_line().json();
        assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(-32700), &id), "{answer}");
    }
    client.send_bytes(b"{\"jsonrpc\":\"2.0\",\"id\":80,\"method\":\"caf\xe9\"}\n");
    assert_eq!(client.next_line().json()["error"]["code"], -32700);
    assert_eq!(history(&mut client).len(), 3, "something of it reached the server");
}

#[test]
fn a_client_line_that_is_no_message_is_answered_and_not_forwarded() {
    let mut client = connect(&[], &[]);
    let odd = [
        ("17", json!(null)),
        (r#""text""#, json!(null)),
        ("{}", json!(null)),
        (r#"{"jsonrpc":"2.0","id":81}"#, json!(81)),
        (r#"{"jsonrpc":"2.0","id":"82","method":5}"#, json!("82")),
        (r#"{"jsonrpc":"2.0","id":83,"method":"x","result":{}}"#, json!(83)),
        (r#"{"jsonrpc":"2.0","id":{"a":1},"method":"x"}"#, json!(null)),
        (r#"{"jsonrpc":"2.0","id":84,"id":85,"method":"ping"}"#, json!(null)),
    ];
    for (line, id) in odd {
        client.send(line);
        let answer = client.next_line().json();
        assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(-32600), &id), "{line}: {answer}");
    }
    assert_eq!(history(&mut client).len(), 3, "something of it reached the server");
}

#[test]
fn a_client_message_beyond_max_message_is_refused_and_the_next_one_works() {
    let mut client = connect(&["--max-message", "2KiB"], &[]);
    let long = "x".repeat(100_000);
    let answer = client.call("echo", &json!({"text": long}));
    assert_eq!(answer["error"]["code"], -31011, "{answer}");
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(message.contains("max-message") && message.len() <= 300, "{message}");
    client
        .send(format!(r#"{{"jsonrpc":"2.0","method":"ping","params":{{"x":"{long}"}},"id":"at the end"}}"#));
    assert_eq!(client.answer(&json!("at the end"))["error"]["code"], -31011);
    client.send(format!(r#"{{"jsonrpc":"2.0","method":"notifications/x","params":{{"x":"{long}"}}}}"#));
    assert_eq!(client.value_of("echo", &json!({"short": 1})), json!({"short": 1}));
    assert_eq!(history(&mut client).len(), 4, "something of it reached the server");
}

#[test]
fn a_server_message_beyond_max_message_fails_its_call_and_the_next_one_works() {
    let mut client = connect(&["--max-message", "1MiB"], &[]);
    for bytes in [(1 << 20) + 1, 30 << 20] {
        let answer = client.call("answer_big", &json!({"bytes": bytes}));
        assert_eq!(answer["error"]["code"], -31011, "{answer}");
        assert_eq!(data(&answer)["kind"], "message-too-large");
        assert_eq!(data(&answer)["retry"], "pointless");
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(message.contains("max-message") && message.len() <= 300, "{message}");
    }
    let memory = memory_of(client.pid());
    assert!(memory < MUCH_MEMORY, "{memory}");
    assert_eq!(client.value_of("echo", &json!({"short": 1})), json!({"short": 1}));
}

#[test]
fn a_half_line_and_then_silence_does_not_keep_the_limit_from_firing() {
    let mut client = connect(&["--timeout", "300ms"], &[]);
    let folder = tempfile::tempdir().unwrap();
    let gate = folder.path().join("second-half");
    let answer = client.call("answer_in_halves", &json!({"gate": gate}));
    assert_eq!(data(&answer)["kind"], "timeout");
    // The second half comes only now, and this message behind it.
    std::fs::write(&gate, "").unwrap();
    client.message("notifications/message");
    let history = history(&mut client);
    assert!(history.iter().any(|line| line.contains("notifications/cancelled")), "{history:?}");
    assert_eq!(client.log().len(), 4, "the late answer came through");
}

#[test]
fn a_half_line_that_is_completed_is_one_line() {
    let mut client = connect(&[], &[]);
    let answer = client.call("answer_in_halves", &json!({"ms": 200}));
    assert_eq!(answer["result"], json!({"half": 2}));
}

#[test]
fn a_half_line_of_the_client_is_whole_when_its_end_comes() {
    let mut client = connect(&[], &[]);
    client.send_bytes(br#"{"jsonrpc":"2.0","id":"h","method":"pi"#);
    // The server's side goes on meanwhile: nothing waits for the other half.
    let mut other = connect(&[], &[]);
    other.value_of("silent", &json!({"ms": 100}));
    client.send_bytes(b"ng\"}\n");
    assert_eq!(client.answer(&json!("h"))["result"]["method"], "ping");
}

#[test]
fn a_slow_start_loses_nothing() {
    let mut client = start(&[], &["--slow-start", "700"]);
    client.handshake();
    assert_eq!(client.value_of("echo", &json!({"a": 1})), json!({"a": 1}));
}
