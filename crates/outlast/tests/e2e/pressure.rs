//! Peers that do not read: the other side is held up as by a pipe, memory stays bounded, limits work.

use std::process::Stdio;
use std::time::Duration;

use outlast_testkit::peer::{LIMIT, Line, Peer, Streams, wait_until};
use serde_json::json;

use crate::world::{MUCH_MEMORY, connect, cpu_of, data, memory_of, wrapping};

#[test]
fn a_client_that_does_not_read_holds_the_server_up_and_limits_still_fire() {
    const COUNT: usize = 4000;
    const SIZE: usize = 20_000;
    let mut client = Peer::start_without_reading(&mut wrapping(
        &["--timeout", "700ms", "--tool", "flood=timeout:1h"],
        &[],
    ));
    client.handshake_blindly();
    let flood = client.begin("flood", &json!({"count": COUNT, "bytes": SIZE}));
    let hang = client.begin("hang", &json!({}));
    client.stderr_where(|text| text.contains("tool=hang"));
    let memory = memory_of(client.pid());
    assert!(memory < MUCH_MEMORY, "{memory}");
    client.read_output();
    assert_eq!(data(&client.answer(&hang))["kind"], "timeout");
    for number in 0..COUNT {
        let message = client.message("notifications/message");
        assert_eq!(message["params"]["number"], number, "out of order");
        assert_eq!(message["params"]["data"].as_str().map(str::len), Some(SIZE));
    }
    assert_eq!(client.answer(&flood)["result"]["structuredContent"], "done");
    let memory = memory_of(client.pid());
    assert!(memory < MUCH_MEMORY, "{memory}");
}

#[test]
fn a_client_that_never_reads_does_not_keep_it_from_ending() {
    let mut client = Peer::start_without_reading(&mut wrapping(&[], &[]));
    client.handshake_blindly();
    client.begin("flood", &json!({"count": 1000, "bytes": 20_000}));
    client.signal(nix::sys::signal::Signal::SIGTERM);
    client.end();
}

#[test]
fn a_client_that_does_not_read_gets_no_heap_of_keep_alives() {
    let mut client = Peer::start_without_reading(&mut wrapping(
        &["--keep-alive", "50ms", "--timeout", "1h", "--tool", "hang=timeout:1s"],
        &[],
    ));
    client.handshake_blindly();
    client.begin_with_token("flood", &json!({"count": 1000, "bytes": 20_000}), &json!("t"));
    client.begin("hang", &json!({}));
    client.stderr_where(|text| text.contains("tool=hang"));
    client.read_output();
    client.message_where(|message| message["params"]["number"] == 999);
    // While nothing else came through, they would stand side by side.
    let is_ours = |line: &Line| line.json()["params"]["progressToken"] == "t";
    let heap = client
        .log()
        .chunk_by(|a, b| is_ours(a) == is_ours(b))
        .filter(|lines| is_ours(&lines[0]))
        .map(<[Line]>::len)
        .max();
    assert!(heap.unwrap_or(0) < 10, "{heap:?}");
}

#[test]
fn a_server_that_stops_reading_holds_the_client_up_and_limits_still_fire() {
    const COUNT: usize = 3000;
    let mut client = connect(&["--timeout", "400ms", "--tool", "tell*=timeout:1h"], &[]);
    client.value_of("stop_reading", &json!({"ms": 2000}));
    let hang = client.begin("hang", &json!({}));
    let sent = client.bytes_taken();
    let note = format!(r#"{{"jsonrpc":"2.0","method":"notifications/x","params":"{}"}}"#, "y".repeat(20_000));
    for _ in 0..COUNT {
        client.send(&note);
    }
    let total = sent + (COUNT * (note.len() + 1)) as u64;
    assert_eq!(data(&client.answer(&hang))["kind"], "timeout");
    let taken = client.bytes_taken();
    assert!(taken < 20 << 20, "the client was not held up: {taken}");
    let memory = memory_of(client.pid());
    assert!(memory < MUCH_MEMORY, "{memory}");
    // When it reads again, everything arrives.
    assert!(wait_until(LIMIT, || client.bytes_taken() >= total), "{} of {total}", client.bytes_taken());
    let cancels = crate::world::cancels(&mut client);
    assert_eq!(cancels.len(), 1, "{cancels:?}");
}

#[test]
fn a_client_that_sends_nonsense_and_does_not_read_is_held_up() {
    const COUNT: usize = 300_000;
    let mut client = Peer::start_without_reading(&mut wrapping(&["--log", "error"], &[]));
    client.handshake_blindly();
    let start = client.bytes_taken();
    client.send_bytes(&b"nonsense\n".repeat(COUNT));
    let total = start + 9 * COUNT as u64;
    // As much as it takes now is all that it takes.
    let mut taken = 0;
    wait_until(LIMIT, || {
        let still = client.bytes_taken() == taken && taken > 0;
        taken = client.bytes_taken();
        still
    });
    let memory = memory_of(client.pid());
    assert!(memory < MUCH_MEMORY, "{memory}");
    client.read_output();
    assert!(wait_until(LIMIT, || client.bytes_taken() >= total), "{} of {total}", client.bytes_taken());
    client.value_of("echo", &json!({}));
    let refused = client.log().iter().filter(|line| line.text().contains("-32700")).count();
    assert_eq!(refused, COUNT);
}

#[test]
fn a_server_that_does_not_read_goes_with_its_host() {
    let mut command = wrapping(&[], &[]);
    command.stdin(Stdio::piped());
    let (reader, writer) = std::io::pipe().unwrap();
    command.stdout(writer);
    let mut client = Peer::start_with(&mut command, Streams::default());
    drop(command);
    client.handshake_blindly();
    client.begin("stop_reading", &json!({"ms": 60_000}));
    client.send_bytes(&b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}\n".repeat(200_000));
    drop(reader);
    client.end_within(Duration::from_secs(5));
}

#[test]
fn waiting_for_a_peer_that_does_not_read_costs_no_cpu() {
    let mut client = Peer::start_without_reading(&mut wrapping(
        &["--timeout", "1500ms", "--tool", "flood=timeout:1h"],
        &[],
    ));
    client.handshake_blindly();
    client.begin("flood", &json!({"count": 1000, "bytes": 20_000}));
    client.begin("hang", &json!({}));
    client.stderr_where(|text| text.contains("tool=hang"));
    let used = cpu_of(client.pid());
    assert!(used < Duration::from_millis(700), "{used:?}");
}

#[test]
fn a_thousand_calls_are_in_flight_at_once() {
    let mut client = connect(&[], &[]);
    let ids: Vec<_> = (0..1000).map(|number| (number, client.begin("echo", &json!({"n": number})))).collect();
    for (number, id) in &ids {
        assert_eq!(client.answer(id)["result"]["structuredContent"]["n"], *number);
    }
}

#[test]
fn both_ways_can_be_full_at_once_without_a_deadlock() {
    let mut client = connect(&[], &[]);
    let text = "z".repeat(200_000);
    let ids: Vec<_> = (0..100).map(|_| client.begin("echo", &json!({"text": text}))).collect();
    for id in &ids {
        assert_eq!(
            client.answer(id)["result"]["structuredContent"]["text"].as_str().map(str::len),
            Some(text.len())
        );
    }
}
