//! How it ends: statuses, the client's end of file, and who is waited for how long.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::Stdio;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use outlast_testkit::peer::{Peer, Streams};
use serde_json::json;

use crate::world::{connect, data, start, wrapping};

#[test]
fn it_ends_with_the_servers_status_after_the_clients_end() {
    let mut client = connect(&[], &[]);
    assert_eq!(client.hang_up().code(), Some(0));
    assert_eq!(client.rest().len(), 0);
}

#[test]
fn it_ends_with_128_and_the_signal_that_ended_it() {
    for (signal, status) in [(Signal::SIGTERM, 143), (Signal::SIGINT, 130), (Signal::SIGHUP, 129)] {
        let mut client = connect(&[], &[]);
        client.signal(signal);
        assert_eq!(client.end().code(), Some(status), "{signal}");
    }
}

#[test]
fn a_server_that_ends_by_itself_ends_outlast_while_the_client_is_still_there() {
    let mut client = connect(&["--restart", "never"], &[]);
    client.call("exit", &json!({"status": 7, "answers": true}));
    assert_eq!(client.end().code(), Some(7));
}

#[test]
fn everything_piped_in_is_answered() {
    let mut client = start(&[], &[]);
    client.send(json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}}));
    client.send(json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    for id in 2..50 {
        client.send(json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "echo"}}));
    }
    client.send(json!({"jsonrpc": "2.0", "id": 50, "method": "tools/call", "params": {"name": "silent", "arguments": {"ms": 300}}}));
    // The last line lacks its end, as `printf` leaves it.
    client.send_bytes(br#"{"jsonrpc":"2.0","id":51,"method":"ping"}"#);
    client.close_input();
    let mut ids: Vec<u64> = client.rest().iter().filter_map(|line| line.json()["id"].as_u64()).collect();
    ids.sort_unstable();
    assert_eq!(ids, (1..=51).collect::<Vec<_>>());
    assert_eq!(client.end().code(), Some(0));
}

#[test]
fn the_clients_end_cancels_nothing() {
    let mut client = connect(&[], &[]);
    let id = client.begin("silent", &json!({"ms": 500}));
    client.close_input();
    assert_eq!(client.answer(&id)["result"]["structuredContent"], "done");
    assert_eq!(client.end().code(), Some(0));
}

#[test]
fn calls_in_flight_may_finish_only_within_the_drain_time() {
    let mut client = connect(&["--drain", "300ms"], &["--ignore-eof"]);
    client.begin("hang", &json!({}));
    let began = Instant::now();
    client.hang_up();
    let took = began.elapsed();
    // Drain, a second to end by itself, then SIGTERM.
    assert!(took >= Duration::from_millis(1250) && took < Duration::from_secs(4), "{took:?}");
}

#[test]
fn a_limit_still_fires_while_calls_may_finish() {
    let mut client = connect(&["--timeout", "400ms"], &["--ignore-eof"]);
    let id = client.begin("hang", &json!({}));
    client.close_input();
    assert_eq!(data(&client.answer(&id))["kind"], "timeout");
    client.end_within(Duration::from_secs(5));
}

#[test]
fn nobody_is_waited_for_when_nobody_reads_the_answers() {
    let mut command = wrapping(&[], &["--ignore-eof"]);
    command.stdin(Stdio::piped());
    let (reader, writer) = std::io::pipe().unwrap();
    command.stdout(writer);
    let mut client = Peer::start_with(&mut command, Streams::default());
    // The command holds our copy of the writing end.
    drop(command);
    client.handshake_blindly();
    client.begin("hang", &json!({}));
    drop(reader);
    let began = Instant::now();
    client.hang_up();
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
}

#[test]
fn nobody_is_waited_for_when_a_host_with_sockets_has_died() {
    let (ours_in, theirs_in) = UnixStream::pair().unwrap();
    let (ours_out, theirs_out) = UnixStream::pair().unwrap();
    let mut command = wrapping(&[], &["--ignore-eof"]);
    command.stdin(OwnedFd::from(theirs_in)).stdout(OwnedFd::from(theirs_out));
    let streams = Streams { input: Some(Box::new(ours_in)), ..Streams::default() };
    let mut client = Peer::start_with(&mut command, streams);
    drop(command);
    client.handshake_blindly();
    client.begin("hang", &json!({}));
    drop(ours_out);
    let began = Instant::now();
    client.hang_up();
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
}

#[test]
fn calls_that_a_server_leaves_at_its_end_of_input_stay_unanswered_as_without_us() {
    let mut client = connect(&[], &[]);
    client.begin("hang", &json!({}));
    client.close_input();
    assert_eq!(client.rest().len(), 0);
    assert_eq!(client.end().code(), Some(0));
}

/// So the Python SDK closes a session: it lets go of our input, waits, and sends SIGTERM. It breaks on an
/// answer that comes then.
#[test]
fn a_signal_after_the_clients_end_ends_silently() {
    let mut client = connect(&[], &["--ignore-eof"]);
    client.begin("hang", &json!({}));
    client.close_input();
    client.stderr_where(|_| true);
    client.signal(Signal::SIGTERM);
    assert_eq!(client.rest().len(), 0);
    assert_eq!(client.end().code(), Some(143));
}

#[test]
fn a_large_answer_is_delivered_whole_when_the_server_ends_right_after_it() {
    let mut client = connect(&["--restart", "never"], &[]);
    let said = client.value_of("exit", &json!({"status": 0, "answers": 5 << 20}));
    assert_eq!(said.as_str().map(str::len), Some(5 << 20));
    assert_eq!(client.end().code(), Some(0));
}

#[test]
fn a_last_line_without_its_end_is_delivered() {
    let mut client = connect(&["--restart", "never"], &[]);
    let answer = client.call("answer_and_exit_in_mid_line", &json!({}));
    assert_eq!(answer["result"], json!({"whole": 1}));
    assert_eq!(client.end().code(), Some(0));
}

#[test]
fn a_slow_reader_gets_the_last_answer_of_a_server_that_ended() {
    let mut client = Peer::start_without_reading(&mut wrapping(&["--restart", "never"], &[]));
    client.handshake_blindly();
    // So much that some of it still is in the server's own pipe when it ends.
    let id = client.begin("flood", &json!({"count": 29, "bytes": 100_000, "exits": true}));
    connect(&[], &[]).value_of("silent", &json!({"ms": 1500}));
    client.read_output();
    let answer = client.answer(&id);
    assert_eq!(answer["result"]["structuredContent"], "done", "{answer}");
    assert_eq!(client.end().code(), Some(0));
}

#[test]
fn a_reader_that_takes_its_time_gets_everything_that_was_piped() {
    let mut client = Peer::start_without_reading(&mut wrapping(&[], &[]));
    client.handshake_blindly();
    let id = client.begin("answer_big", &json!({"bytes": 5_000_000}));
    client.close_input();
    // Time passes elsewhere; a pager is not in a hurry.
    connect(&[], &[]).value_of("silent", &json!({"ms": 1500}));
    client.read_output();
    let answer = client.answer(&id);
    assert_eq!(answer["result"]["structuredContent"].as_str().map(str::len), Some(5_000_000));
}

#[test]
fn a_reader_that_goes_away_ends_it_even_with_its_input_open() {
    let mut command = wrapping(&[], &[]);
    command.stdin(Stdio::piped());
    let (reader, writer) = std::io::pipe().unwrap();
    command.stdout(writer);
    let mut client = Peer::start_with(&mut command, Streams::default());
    drop(command);
    client.handshake_blindly();
    drop(reader);
    client.end_within(Duration::from_secs(5));
}

#[test]
fn an_answer_that_is_complete_at_the_servers_end_is_delivered() {
    let mut client = connect(&[], &[]);
    let id = client.begin("exit", &json!({"status": 0, "answers": true}));
    client.close_input();
    assert_eq!(client.answer(&id)["result"]["structuredContent"], "done");
    assert_eq!(client.end().code(), Some(0));
}
