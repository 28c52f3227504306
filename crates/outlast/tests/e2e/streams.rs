//! Kinds of standard streams: hosts give pipes, sockets, files and nothing at all.

use std::fs::{File, read_to_string};
use std::io::Write;
use std::net::Shutdown;
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::Stdio;
use std::ptr::{null, null_mut};
use std::time::Duration;

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::libc;
use nix::sys::signal::Signal;
use outlast_testkit::peer::{Peer, Streams};
use serde_json::{Value, from_str, json};

use crate::world::wrapping;

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#;
const PING: &str = r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#;

fn ids(text: &str) -> Vec<Value> {
    text.lines().map(|line| from_str::<Value>(line).expect("JSON")["id"].clone()).collect()
}

#[test]
fn sockets_serve_as_well_as_pipes() {
    let (ours_in, theirs_in) = UnixStream::pair().unwrap();
    let (ours_out, theirs_out) = UnixStream::pair().unwrap();
    let mut command = wrapping(&[], &[]);
    command.stdin(OwnedFd::from(theirs_in)).stdout(OwnedFd::from(theirs_out));
    let end = ours_in.try_clone().unwrap();
    let streams =
        Streams { input: Some(Box::new(ours_in)), output: Some(Box::new(ours_out)), ..Streams::default() };
    let mut client = Peer::start_with(&mut command, streams).with_output_read();
    drop(command);
    client.handshake();
    let text = "x".repeat(3 << 20);
    assert!(client.value_of("echo", &json!({"text": text}))["text"] == text);
    end.shutdown(Shutdown::Write).unwrap();
    assert_eq!(client.end().code(), Some(0));
    assert!(client.rest().is_empty());
}

#[test]
fn one_socket_serves_for_both_ways() {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let mut command = wrapping(&[], &[]);
    command.stdin(OwnedFd::from(theirs.try_clone().unwrap())).stdout(OwnedFd::from(theirs));
    let end = ours.try_clone().unwrap();
    let streams = Streams {
        input: Some(Box::new(ours.try_clone().unwrap())),
        output: Some(Box::new(ours)),
        ..Streams::default()
    };
    let mut client = Peer::start_with(&mut command, streams).with_output_read();
    drop(command);
    client.handshake();
    assert_eq!(client.value_of("echo", &json!({"a": 1})), json!({"a": 1}));
    end.shutdown(Shutdown::Write).unwrap();
    assert_eq!(client.end().code(), Some(0));
}

#[test]
fn a_file_can_be_read_and_its_requests_are_answered() {
    let mut file = tempfile::tempfile().unwrap();
    write!(file, "{INITIALIZE}\n{PING}").unwrap();
    std::io::Seek::rewind(&mut file).unwrap();
    let mut command = wrapping(&[], &[]);
    command.stdin(file).stdout(Stdio::piped());
    let mut client = Peer::start_with(&mut command, Streams::default()).with_output_read();
    let text: Vec<String> = client.rest().iter().map(|line| line.text()).collect();
    assert_eq!(ids(&text.join("\n")), [json!(1), json!(2)]);
    assert_eq!(client.end().code(), Some(0));
}

#[test]
fn a_file_can_be_written() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("answers");
    let mut command = wrapping(&[], &[]);
    command.stdin(Stdio::piped()).stdout(File::create(&path).unwrap());
    let mut client = Peer::start_with(&mut command, Streams::default());
    client.send(INITIALIZE);
    client.send(json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "answer_big", "arguments": {"bytes": 2_000_000}}}));
    client.send(json!({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": "silent", "arguments": {"ms": 200}}}));
    assert_eq!(client.hang_up().code(), Some(0));
    let text = read_to_string(&path).unwrap();
    let ids = ids(&text);
    assert!(ids.len() == 3 && [1, 2, 3].iter().all(|id| ids.contains(&json!(id))), "{ids:?}");
    assert!(text.len() > 2_000_000);
}

#[test]
fn a_terminal_serves_and_stays_as_it_was() {
    let (ours, theirs) = terminal();
    let mut command = wrapping(&[], &[]);
    command.stdin(theirs.try_clone().unwrap()).stdout(theirs.try_clone().unwrap());
    let streams = Streams {
        input: Some(Box::new(ours.try_clone().unwrap())),
        output: Some(Box::new(ours)),
        ..Streams::default()
    };
    let mut client = Peer::start_with(&mut command, streams).with_output_read();
    client.handshake();
    assert_eq!(client.value_of("echo", &json!({"a": 1})), json!({"a": 1}));
    let flags = fcntl(&theirs, FcntlArg::F_GETFL).unwrap();
    assert!(!OFlag::from_bits_truncate(flags).contains(OFlag::O_NONBLOCK), "it leaks into the shell");
    client.signal(Signal::SIGTERM);
    assert_eq!(client.end_within(Duration::from_secs(5)).code(), Some(143));
}

/// Both ends of a terminal that passes everything as it is.
fn terminal() -> (File, File) {
    let (mut ours, mut theirs) = (-1, -1);
    // SAFETY: the two numbers are ours to be written to, and nothing else is passed; the
    // descriptors are new and nobody else's.
    unsafe {
        let (name, mode, size) = (null_mut(), null(), null());
        assert_eq!(libc::openpty(&mut ours, &mut theirs, name, mode, size), 0);
        let mut mode: libc::termios = std::mem::zeroed();
        assert_eq!(libc::tcgetattr(theirs, &mut mode), 0);
        libc::cfmakeraw(&mut mode);
        assert_eq!(libc::tcsetattr(theirs, libc::TCSANOW, &mode), 0);
        (File::from_raw_fd(ours), File::from_raw_fd(theirs))
    }
}

#[test]
fn no_input_at_all_ends_it() {
    let mut command = wrapping(&[], &[]);
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    let mut client = Peer::start_with(&mut command, Streams::default()).with_output_read();
    assert_eq!(client.end_within(Duration::from_secs(5)).code(), Some(0));
    assert!(client.rest().is_empty());
}

#[test]
fn output_to_nowhere_harms_nobody() {
    let mut command = wrapping(&[], &[]);
    command.stdin(Stdio::piped()).stdout(Stdio::null());
    let mut client = Peer::start_with(&mut command, Streams::default());
    client.send(INITIALIZE);
    client.send(PING);
    assert_eq!(client.hang_up().code(), Some(0));
}

#[test]
fn pipes_that_others_share_are_not_made_nonblocking() {
    let (in_reader, in_writer) = std::io::pipe().unwrap();
    let (out_reader, out_writer) = std::io::pipe().unwrap();
    let mut command = wrapping(&[], &[]);
    command.stdin(in_reader.try_clone().unwrap()).stdout(out_writer.try_clone().unwrap());
    let streams = Streams {
        input: Some(Box::new(in_writer)),
        output: Some(Box::new(out_reader)),
        ..Streams::default()
    };
    let mut client = Peer::start_with(&mut command, streams).with_output_read();
    client.handshake();
    for flags in [fcntl(&in_reader, FcntlArg::F_GETFL), fcntl(&out_writer, FcntlArg::F_GETFL)] {
        assert!(!OFlag::from_bits_truncate(flags.unwrap()).contains(OFlag::O_NONBLOCK));
    }
}
