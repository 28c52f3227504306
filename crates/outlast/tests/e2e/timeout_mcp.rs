//! `outlast timeout-mcp`: that program's command line, words and habits, without its defects.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;
use std::time::{Duration, Instant};

use outlast_testkit::peer::{LIMIT, Peer, wait_until};
use serde_json::{Value, from_str, json};

use crate::world::{OUTLAST, fake_server, history, outlast};

fn timeout_mcp(flags: &[&str], server: &[&str]) -> Command {
    let mut command = outlast();
    command.arg("timeout-mcp").args(flags).arg(fake_server()).args(server);
    command
}

fn connect(flags: &[&str], server: &[&str]) -> Peer {
    let mut client = Peer::start(&mut timeout_mcp(flags, server));
    client.handshake();
    client
}

/// Code and message of an error.
fn error(answer: &Value) -> (i64, &str) {
    let error = &answer["error"];
    (error["code"].as_i64().unwrap_or_default(), error["message"].as_str().unwrap_or_default())
}

#[test]
fn a_timeout_has_its_code_and_its_words() {
    let mut client = connect(&["1"], &[]);
    let began = Instant::now();
    assert_eq!(error(&client.call("hang", &json!({}))), (-32603, "Method 'tools/call' timed out after 1s"));
    assert!(began.elapsed() >= Duration::from_secs(1));
    assert_eq!(client.value_of("echo", &json!({"a": 1})), json!({"a": 1}), "the server goes on");
}

#[test]
fn durations_are_written_as_go_does() {
    for (written, shown) in [("300ms", "300ms"), ("1200ms", "1.2s")] {
        let mut client = connect(&["--timeout", written, "--"], &[]);
        let answer = client.call("hang", &json!({}));
        assert_eq!(error(&answer).1, format!("Method 'tools/call' timed out after {shown}"));
    }
}

#[test]
fn initialize_and_the_list_of_tools_are_timed_too() {
    let mut client = Peer::start(&mut timeout_mcp(
        &["--timeout", "300ms", "--"],
        &["--mute", "initialize", "--mute", "tools/list"],
    ));
    assert_eq!(error(&client.handshake()), (-32603, "Method 'initialize' timed out after 300ms"));
    let id = client.request("tools/list", &json!({}));
    assert_eq!(error(&client.answer(&id)), (-32603, "Method 'tools/list' timed out after 300ms"));
}

#[test]
fn other_methods_are_not_timed() {
    let mut client =
        connect(&["--timeout", "300ms", "--"], &["--mute", "resources/read", "--mute", "vendor/thing"]);
    client.request("resources/read", &json!({"uri": "x"}));
    client.request("vendor/thing", &json!({}));
    client.call("hang", &json!({}));
    client.call("hang", &json!({}));
    assert_eq!(client.log().len(), 3);
}

#[test]
fn the_form_of_its_debug_section_works() {
    let mut command = outlast();
    command.args(["timeout-mcp", "--timeout", "300ms", "--"]).arg(fake_server());
    let mut client = Peer::start(&mut command);
    client.handshake();
    assert_eq!(error(&client.call("hang", &json!({}))).1, "Method 'tools/call' timed out after 300ms");
}

#[test]
fn it_is_known_by_its_name() {
    let directory = tempfile::tempdir().unwrap();
    let link = directory.path().join("timeout-mcp");
    symlink(OUTLAST, &link).unwrap();
    let mut client = Peer::start(Command::new(&link).args(["--timeout", "300ms", "--"]).arg(fake_server()));
    client.handshake();
    assert_eq!(error(&client.call("hang", &json!({}))).1, "Method 'tools/call' timed out after 300ms");
}

#[test]
fn calls_run_side_by_side() {
    let mut client = connect(&["5"], &[]);
    let slow = client.begin("silent", &json!({"ms": 500}));
    assert_eq!(client.value_of("echo", &json!({})), json!({}), "a slow call blocks the others");
    assert_eq!(client.answer(&slow)["result"]["structuredContent"], "done");
}

#[test]
fn progress_passes_and_does_not_move_the_timer() {
    let mut client = connect(&["--timeout", "700ms", "--"], &[]);
    let id = client.begin_with_token(
        "progress",
        &json!({"every_ms": 200, "values": [1, 2, 3, 4, 5, 6, 7]}),
        &json!("t"),
    );
    assert_eq!(error(&client.answer(&id)).1, "Method 'tools/call' timed out after 700ms");
    let reports = client.log().iter().filter(|line| line.json()["params"]["progressToken"] == "t").count();
    assert!(reports >= 2, "{reports}");
}

#[test]
fn it_makes_no_progress_of_its_own() {
    let mut command = timeout_mcp(&["5"], &[]);
    let mut client = Peer::start(command.env("OUTLAST_KEEP_ALIVE", "50ms"));
    client.handshake();
    let id = client.begin_with_token("silent", &json!({"ms": 400}), &json!("t"));
    client.answer(&id);
    assert_eq!(client.log().len(), 2);
}

#[test]
fn a_server_that_ended_is_answered_for_at_once_and_not_restarted() {
    let mut client = connect(&["5"], &[]);
    let answer = client.call("exit", &json!({"status": 5}));
    assert_eq!(error(&answer).0, -32603, "{answer}");
    for _ in 0..3 {
        let answer = client.call("echo", &json!({}));
        assert_eq!(error(&answer).0, -32603, "{answer}");
        assert!(!error(&answer).1.contains("timed out"), "it was waited for: {answer}");
    }
    assert_eq!(client.exited(), None, "it must outlive its server");
    assert_eq!(client.hang_up().code(), Some(0));
}

#[test]
fn it_ends_with_0_at_the_clients_end() {
    let mut client = connect(&["5"], &[]);
    assert_eq!(client.hang_up().code(), Some(0));
    let mut client = connect(&["5"], &["--ignore-eof"]);
    assert_eq!(client.hang_up().code(), Some(0));
}

#[test]
fn a_timeout_restarts_the_server_and_makes_it_whole() {
    let mut client = connect(&["--auto-restart", "--timeout", "500ms", "--"], &[]);
    let before = client.value_of("tell_pid", &json!({}));
    let answer = client.call("hang", &json!({}));
    assert_eq!(error(&answer), (-32603, "Method 'tools/call' timed out after 500ms (restarting now...)"));
    // Sent while it is down, answered when it is up again.
    let after = client.value_of("tell_pid", &json!({}));
    assert_ne!(before, after);
    let lines: Vec<Value> = history(&mut client).iter().map(|line| from_str(line).unwrap()).collect();
    assert_eq!(lines[0]["method"], "initialize");
    assert_eq!(
        lines[0]["params"]["clientInfo"],
        json!({"name": "test", "version": "1"}),
        "not the client's own words"
    );
    assert_eq!(lines[1]["method"], "notifications/initialized");
    assert_eq!(lines[2]["params"]["name"], "tell_pid");
    let introductions =
        client.log().iter().filter(|line| line.json()["result"].get("serverInfo").is_some()).count();
    assert_eq!(introductions, 1, "the second initialize was not hidden");
}

#[test]
fn the_restart_is_logged_from_its_start_to_its_end() {
    let mut client = connect(&["--auto-restart", "--timeout", "500ms", "--"], &[]);
    client.call("hang", &json!({}));
    client.value_of("echo", &json!({}));
    client.stderr_where(|text| text.contains("restarting `fake_server`") && text.contains("is back"));
}

#[test]
fn other_calls_in_flight_are_answered_when_the_server_is_restarted() {
    let mut client = connect(&["--auto-restart", "1"], &["--mute", "vendor/x"]);
    let first = client.begin("hang", &json!({}));
    client.value_of("silent", &json!({"ms": 500}));
    let others = [client.begin("hang", &json!({})), client.request("vendor/x", &json!({}))];
    client.answer(&first);
    for id in &others {
        let answer = client.answer(id);
        assert_eq!(error(&answer).0, -32603, "{answer}");
        assert!(error(&answer).1.contains("(restarting now...)"), "{answer}");
    }
}

#[test]
fn a_server_that_ended_is_restarted() {
    let mut client = connect(&["--auto-restart", "5"], &[]);
    for _ in 0..2 {
        let answer = client.call("exit", &json!({"status": 3}));
        assert_eq!(error(&answer).0, -32603, "{answer}");
        assert_eq!(client.value_of("echo", &json!({"back": 1})), json!({"back": 1}));
    }
    assert_eq!(client.hang_up().code(), Some(0));
}

#[test]
fn a_server_that_ignores_sigterm_is_restarted_too() {
    let mut client = connect(&["--auto-restart", "2"], &["--ignore-term", "--ignore-eof"]);
    assert!(error(&client.call("hang", &json!({}))).1.ends_with("(restarting now...)"));
    assert_eq!(client.value_of("echo", &json!({"back": 1})), json!({"back": 1}));
}

#[test]
fn a_restart_that_fails_does_not_end_it_and_is_tried_again() {
    let directory = tempfile::tempdir().unwrap();
    let broken = directory.path().join("broken");
    let mut client =
        connect(&["--auto-restart", "--timeout", "500ms", "--"], &["--exit-if", broken.to_str().unwrap()]);
    fs::write(&broken, "").unwrap();
    client.call("hang", &json!({}));
    client.stderr_where(|text| text.contains("restart of `fake_server` failed"));
    let answer = client.call("echo", &json!({}));
    assert_eq!(error(&answer).0, -32603, "a call is answered while it is down: {answer}");
    assert_eq!(client.exited(), None, "a failed restart ended it");
    fs::remove_file(&broken).unwrap();
    let back = wait_until(LIMIT, || client.call("echo", &json!({})).get("result").is_some());
    assert!(back, "it was not tried again");
    assert_eq!(client.hang_up().code(), Some(0));
}

#[test]
fn a_server_that_does_not_answer_its_second_initialize_is_restarted_again() {
    let directory = tempfile::tempdir().unwrap();
    let mute = directory.path().join("mute");
    let mut client = connect(
        &["--auto-restart", "--timeout", "500ms", "--"],
        &["--mute-if", mute.to_str().unwrap(), "initialize"],
    );
    fs::write(&mute, "").unwrap();
    client.call("hang", &json!({}));
    client.stderr_where(|text| text.contains("restart of `fake_server` failed: no answer to initialize"));
    fs::remove_file(&mute).unwrap();
    let back = wait_until(LIMIT, || client.call("echo", &json!({})).get("result").is_some());
    assert!(back, "it was not tried again");
}

#[test]
fn a_server_whose_first_initialize_timed_out_gets_the_next_one_of_the_client() {
    let directory = tempfile::tempdir().unwrap();
    let mute = directory.path().join("mute");
    fs::write(&mute, "").unwrap();
    let mut client = Peer::start(&mut timeout_mcp(
        &["--auto-restart", "--timeout", "500ms", "--"],
        &["--mute-if", mute.to_str().unwrap(), "initialize"],
    ));
    let answer = client.handshake();
    assert_eq!(error(&answer), (-32603, "Method 'initialize' timed out after 500ms (restarting now...)"));
    fs::remove_file(&mute).unwrap();
    assert!(client.handshake()["result"]["serverInfo"].is_object());
    assert_eq!(client.value_of("echo", &json!({"a": 1})), json!({"a": 1}));
}

#[test]
fn a_command_that_vanished_does_not_end_it() {
    let directory = tempfile::tempdir().unwrap();
    let link = directory.path().join("server");
    symlink(fake_server(), &link).unwrap();
    let mut client =
        Peer::start(outlast().args(["timeout-mcp", "--auto-restart", "--timeout", "500ms", "--"]).arg(&link));
    client.handshake();
    fs::remove_file(&link).unwrap();
    client.call("exit", &json!({"status": 1}));
    client.stderr_where(|text| text.contains("restart of `server` failed"));
    assert_eq!(error(&client.call("echo", &json!({}))).0, -32603);
    symlink(fake_server(), &link).unwrap();
    let back = wait_until(LIMIT, || client.call("echo", &json!({})).get("result").is_some());
    assert!(back, "it was not tried again");
    assert_eq!(client.hang_up().code(), Some(0));
}

#[test]
fn a_command_that_does_not_exist_ends_it_as_everywhere() {
    for flags in [&["5"][..], &["--auto-restart", "5"]] {
        let mut client = Peer::start(outlast().arg("timeout-mcp").args(flags).arg("/no/such/server"));
        let id = client.request("initialize", &json!({}));
        assert_eq!(error(&client.answer(&id)).0, -32603);
        assert_eq!(client.end_within(Duration::from_secs(3)).code(), Some(127), "{flags:?}");
    }
}

#[test]
fn an_unknown_flag_is_refused() {
    let mut client = Peer::start(&mut timeout_mcp(&["--auto-retart", "5"], &[]));
    assert_eq!(client.end_within(Duration::from_secs(3)).code(), Some(2));
    let stderr = String::from_utf8(client.all_stderr()).unwrap();
    assert!(stderr.lines().count() == 1 && stderr.contains("--auto-retart"), "{stderr}");
}

#[test]
fn a_command_line_without_a_command_is_refused() {
    for words in [
        &["timeout-mcp"][..],
        &["timeout-mcp", "5"],
        &["timeout-mcp", "--auto-restart"],
        &["timeout-mcp", "--timeout"],
    ] {
        let mut client = Peer::start(outlast().args(words));
        assert_eq!(client.end().code(), Some(2), "{words:?}");
        assert_eq!(String::from_utf8(client.all_stderr()).unwrap().lines().count(), 1, "{words:?}");
    }
}

#[test]
fn a_number_that_makes_no_sense_is_refused() {
    for seconds in ["0", "-5", "NaN", "inf", "30.5", "1e3", "30s", "18446744073709551616"] {
        let mut client = Peer::start(&mut timeout_mcp(&[seconds], &[]));
        assert_eq!(client.end().code(), Some(2), "{seconds}");
        assert_eq!(String::from_utf8(client.all_stderr()).unwrap().lines().count(), 1, "{seconds}");
    }
}
