//! When outlast is gone, everything of the server's is gone, whatever it does and however outlast ends.

use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use outlast_testkit::peer::{LIMIT, Peer, wait_until};
use serde_json::json;

use crate::world::{OUTLAST, Tree, data, fake_server, outlast, wrapping};

/// The worst server: ignores its end of input and SIGTERM, and has a child that holds its stdout
/// and a daemon in a session of its own.
fn worst() -> (Peer, Tree) {
    let (mut client, tree) = started(&["--ignore-term", "--ignore-eof"]);
    client.value_of("start_grandchild", &json!({}));
    client.value_of("start_daemon", &json!({}));
    // Outlast, its guardian, the server, its child, its daemon.
    assert_eq!(tree.processes().len(), 5);
    (client, tree)
}

fn started(server: &[&str]) -> (Peer, Tree) {
    started_with(&[], server)
}

fn started_with(flags: &[&str], server: &[&str]) -> (Peer, Tree) {
    let mut command = wrapping(flags, server);
    let tree = Tree::mark(&mut command);
    let mut client = Peer::start(&mut command);
    client.handshake();
    (client, tree)
}

/// Ends the worst server by a signal to outlast. How long each step may take is the engine's, and tested there.
fn worst_is_ended_by(signal: Signal) {
    let (mut client, tree) = worst();
    client.signal(signal);
    client.end();
    tree.wait_until_gone();
}

#[test]
fn nothing_survives_the_clients_end() {
    let (mut client, tree) = worst();
    client.hang_up();
    tree.wait_until_gone();
}

#[test]
fn nothing_survives_sigterm() {
    worst_is_ended_by(Signal::SIGTERM);
}

#[test]
fn nothing_survives_sigint() {
    worst_is_ended_by(Signal::SIGINT);
}

#[test]
fn nothing_survives_sigkill() {
    worst_is_ended_by(Signal::SIGKILL);
}

#[test]
fn a_second_sigterm_does_not_wait_for_the_first() {
    let (mut client, tree) = worst();
    client.signal(Signal::SIGTERM);
    client.signal(Signal::SIGTERM);
    client.end();
    tree.wait_until_gone();
}

#[test]
fn a_server_that_ends_at_its_end_of_input_is_not_killed() {
    let (mut client, tree) = started(&[]);
    let call = client.begin("silent", &json!({"ms": 300}));
    assert_eq!(client.hang_up().code(), Some(0));
    assert_eq!(client.answer(&call)["result"]["structuredContent"], "done", "it was killed in mid-call");
    tree.wait_until_gone();
}

#[test]
fn a_grandchild_that_holds_stdout_does_not_hide_the_servers_end() {
    let (mut client, tree) = started_with(&["--restart", "never"], &[]);
    // The grandchild lives for longer than anything is waited for here.
    client.value_of("start_grandchild", &json!({}));
    let answer = client.call("exit", &json!({"status": 4}));
    assert_eq!(data(&answer)["kind"], "server-gone");
    assert_eq!(client.end().code(), Some(4));
    tree.wait_until_gone();
}

#[test]
fn a_daemon_goes_with_a_server_that_ended_by_itself() {
    let (mut client, tree) = started_with(&["--restart", "never"], &[]);
    client.value_of("start_daemon", &json!({}));
    client.call("exit", &json!({"status": 0, "answers": true}));
    assert_eq!(client.end().code(), Some(0));
    tree.wait_until_gone();
}

#[test]
fn a_daemon_goes_with_the_clients_end() {
    let (mut client, tree) = started(&[]);
    client.value_of("start_daemon", &json!({}));
    assert_eq!(client.hang_up().code(), Some(0));
    tree.wait_until_gone();
}

#[test]
fn nothing_survives_a_guardian_that_was_killed() {
    let (mut client, tree) = worst();
    let outlast = client.pid();
    let parent = |pid: &u32| parent_of(*pid) == Some(outlast);
    let guardian = tree.processes().into_iter().find(parent).expect("a guardian");
    kill(Pid::from_raw(guardian as i32), Signal::SIGKILL).unwrap();
    client.close_input();
    client.end_within(Duration::from_secs(5));
    tree.wait_until_gone();
}

#[test]
fn a_guardian_that_was_killed_is_replaced_and_what_it_held_is_ended() {
    let (mut client, tree) = worst();
    for _ in 0..2 {
        let outlast = client.pid();
        let parent = |pid: &u32| parent_of(*pid) == Some(outlast);
        let before = tree.processes();
        let guardian = *before.iter().find(|pid| parent(pid)).expect("a guardian");
        kill(Pid::from_raw(guardian as i32), Signal::SIGKILL).unwrap();
        let lives = |pid: &u32| *pid != outlast && tree.processes().contains(pid);
        assert!(wait_until(LIMIT, || !before.iter().any(lives)), "what it held lives on");
        while client.call("echo", &json!({})).get("result").is_none() {}
        // Outlast, its new guardian, the new server.
        assert_eq!(tree.processes().len(), 3);
    }
    client.hang_up();
    tree.wait_until_gone();
}

fn parent_of(pid: u32) -> Option<u32> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse().ok()
}

#[test]
fn nothing_survives_sigkill_in_the_first_moments() {
    for _ in 0..10 {
        let mut command = wrapping(&[], &["--ignore-eof", "--ignore-term"]);
        let tree = Tree::mark(&mut command);
        let mut client = Peer::start(&mut command);
        client.signal(Signal::SIGKILL);
        client.end();
        tree.wait_until_gone();
    }
}

#[test]
fn nothing_survives_when_the_client_ends_in_the_middle_of_a_restart() {
    let mut command = outlast();
    command
        .args(["timeout-mcp", "--auto-restart", "--timeout", "300ms", "--"])
        .arg(fake_server())
        .args(["--ignore-term", "--ignore-eof"]);
    let tree = Tree::mark(&mut command);
    let mut client = Peer::start(&mut command);
    client.handshake();
    client.call("hang", &json!({}));
    assert_eq!(client.hang_up().code(), Some(0));
    tree.wait_until_gone();
}

#[test]
fn nothing_survives_of_an_outlast_behind_an_outlast() {
    let mut command = outlast();
    command.args(["--", OUTLAST, "--"]).arg(fake_server()).args(["--ignore-term", "--ignore-eof"]);
    let tree = Tree::mark(&mut command);
    let mut client = Peer::start(&mut command);
    client.handshake();
    client.value_of("start_daemon", &json!({}));
    assert_eq!(tree.processes().len(), 6);
    client.signal(Signal::SIGKILL);
    client.end();
    tree.wait_until_gone();
}

#[test]
fn a_restart_leaves_nothing_of_the_old_server() {
    let mut command = outlast();
    command
        .args(["timeout-mcp", "--auto-restart", "--timeout", "500ms", "--"])
        .arg(fake_server())
        .arg("--ignore-term");
    let tree = Tree::mark(&mut command);
    let mut client = Peer::start(&mut command);
    client.handshake();
    client.value_of("start_grandchild", &json!({}));
    client.value_of("start_daemon", &json!({}));
    client.call("hang", &json!({}));
    while client.call("echo", &json!({})).get("result").is_none() {}
    // Outlast, its guardian, the new server.
    assert_eq!(tree.processes().len(), 3);
}
