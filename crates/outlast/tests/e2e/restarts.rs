//! Servers that crash or hang: noticed, replaced, made whole; and nothing unsafe runs twice.

use std::fs::read_dir;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use outlast_testkit::peer::{LIMIT, Peer, wait_until};
use serde_json::{Value, json};

use crate::world::{Tree, connect, data, history, wrapping};

const QUICK: [&str; 2] = ["--restart-backoff", "1ms"];

fn pid_of_server(client: &mut Peer) -> i32 {
    client.value_of("tell_pid", &json!({})).as_i64().expect("a number") as i32
}

#[test]
fn a_killed_server_is_replaced_and_the_next_call_succeeds() {
    let mut client = connect(&QUICK, &[]);
    let id = client.begin("hang", &json!({}));
    // It answers in order, so by now it has got the other call too.
    let before = pid_of_server(&mut client);
    kill(Pid::from_raw(before), Signal::SIGKILL).expect("it lives");
    let answer = client.answer(&id);
    assert_eq!(answer["error"]["code"], -31002);
    let data = data(&answer);
    assert_eq!((&data["kind"], &data["retry"]), (&json!("server-gone"), &json!("unsafe")));
    assert_eq!(data["serverState"], "restarting");
    let after = pid_of_server(&mut client);
    assert_ne!(before, after);
    assert_eq!(client.hang_up().code(), Some(0));
}

#[test]
fn a_new_process_is_told_what_the_old_one_knew() {
    let mut client = connect(&QUICK, &["--capabilities", r#"{"tools":{},"logging":{}}"#]);
    client.request("logging/setLevel", &json!({"level": "info"}));
    client.request("resources/subscribe", &json!({"uri": "test:a"}));
    client.call("exit", &json!({"status": 1}));
    let warning = client.message("notifications/message");
    assert_eq!(warning["params"]["logger"], "outlast");
    let told = history(&mut client);
    let methods: Vec<String> = told
        .iter()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok()?["method"].as_str().map(str::to_owned))
        .collect();
    let expected =
        ["initialize", "notifications/initialized", "logging/setLevel", "resources/subscribe", "tools/call"];
    assert_eq!(methods, expected);
    // Its answers to what we asked are nobody else's.
    assert_eq!(client.value_of("echo", &json!({"x": 1})), json!({"x": 1}));
}

#[test]
fn what_is_safe_is_repeated_and_what_is_not_is_not() {
    let mut client = connect(
        &["--restart-backoff", "1ms", "--tool", "answer_*=repeatable:true"],
        &["--mute", "prompts/get"],
    );
    let safe = client.request("prompts/get", &json!({"name": "p"}));
    let unsafe_call = client.begin("hang", &json!({}));
    let pid = pid_of_server(&mut client);
    kill(Pid::from_raw(pid), Signal::SIGKILL).expect("it lives");
    assert_eq!(client.answer(&unsafe_call)["error"]["code"], -31002);
    let seen = history(&mut client);
    assert!(seen.iter().any(|line| line.contains("prompts/get")), "{seen:?}");
    assert!(!seen.iter().any(|line| line.contains("\"hang\"")), "{seen:?}");
    client.cancel(&safe);
}

/// The whole of it within `timeout + cancel-grace + 2 s`.
#[test]
fn a_hung_server_is_replaced_in_time() {
    let mut client = connect(&["--tool", "echo=timeout:1s", "--cancel-grace", "1s"], &[]);
    let before = pid_of_server(&mut client);
    // A stopped process does nothing at all, like one that is deadlocked.
    kill(Pid::from_raw(before), Signal::SIGSTOP).expect("it lives");
    let began = Instant::now();
    let hung = client.begin("echo", &json!({}));
    let answer = client.answer(&hung);
    assert_eq!(data(&answer)["kind"], "timeout");
    client.stderr_where(|text| text.contains("hangs"));
    let after = pid_of_server(&mut client);
    assert_ne!(before, after);
    assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
}

#[test]
fn a_busy_or_slowly_printing_server_is_never_replaced() {
    for (tool, arguments) in [("spin", json!({"ms": 2_000})), ("write_stderr_slowly", json!({}))] {
        let mut client = connect(&["--tool", "spin=timeout:300ms", "--cancel-grace", "500ms"], &[]);
        let before = pid_of_server(&mut client);
        let answer = client.call(tool, &arguments);
        if tool == "spin" {
            assert_eq!(data(&answer)["kind"], "timeout");
        }
        client.value_of("silent", &json!({"ms": 200}));
        assert_eq!(pid_of_server(&mut client), before);
        assert!(!client.stderr().contains("restarting"), "{}", client.stderr());
    }
}

#[test]
fn on_timeout_replaces_whatever_the_signs() {
    let mut client = connect(&["--tool", "hang=timeout:300ms", "--restart", "on-timeout"], &[]);
    let before = pid_of_server(&mut client);
    let answer = client.call("hang", &json!({}));
    assert_eq!(data(&answer)["serverState"], "restarting");
    assert_ne!(pid_of_server(&mut client), before);
}

#[test]
fn a_server_that_keeps_crashing_counts_as_failed_and_says_when_it_is_tried_again() {
    let flags = ["--restart-backoff", "1ms", "--restart-intensity", "2", "--reconnect-every", "300ms"];
    let mut client = connect(&flags, &[]);
    // The third time it is not restarted, and nobody says so.
    for state in ["restarting", "restarting", "gone"] {
        let answer = client.call("exit", &json!({"status": 1}));
        assert_eq!(data(&answer)["serverState"], state);
    }
    let refused = client.call("echo", &json!({}));
    assert_eq!(refused["error"]["code"], -31003, "{refused}");
    assert!(
        refused["error"]["message"].as_str().is_some_and(|text| text.contains("next try is in")),
        "{refused}"
    );
    // It is tried again for ever, and one day it answers.
    let back = wait_until(LIMIT, || client.call("echo", &json!({"x": 1}))["result"].is_object());
    assert!(back, "it never came back");
}

/// Descriptors, threads and processes do not pile up.
#[test]
fn a_thousand_crashes_leave_as_much_as_one() {
    let mut command =
        wrapping(&["--restart-backoff", "off", "--restart-intensity", "1000000", "--log", "error"], &[]);
    let tree = Tree::mark(&mut command);
    let mut client = Peer::start(&mut command);
    client.handshake();
    let crash = |client: &mut Peer| {
        client.call("exit", &json!({"status": 1}));
        client.value_of("echo", &json!({"x": 1}));
    };
    crash(&mut client);
    let pid = client.pid();
    let count = |folder: &str| read_dir(format!("/proc/{pid}/{folder}")).expect("it lives").count();
    let before = (count("fd"), count("task"), tree.processes().len());
    for _ in 0..1_000 {
        crash(&mut client);
    }
    let same = wait_until(LIMIT, || (count("fd"), count("task"), tree.processes().len()) == before);
    assert!(same, "before {before:?}, after {:?}", (count("fd"), count("task"), tree.processes().len()));
    assert_eq!(client.hang_up().code(), Some(0));
    tree.wait_until_gone();
}
