//! The server's process is what it would be without outlast.

use std::collections::BTreeMap;
use std::process::Stdio;

use outlast_testkit::peer::{Peer, Streams};
use serde_json::json;

use crate::world::{MUCH_MEMORY, connect, fake_server, memory_of, outlast, wrapping};

#[test]
fn the_environment_passes_except_what_is_ours() {
    let environment = BTreeMap::from([
        ("PATH", "/usr/bin:/bin"),
        ("TOKEN", "a b=c\"'$(x)"),
        ("EMPTY", ""),
        ("OUTLASTING", "not ours"),
        ("MY_OUTLAST_X", "not ours either"),
    ]);
    let mut command = wrapping(&[], &[]);
    command.env_clear().envs(&environment);
    command.envs([("OUTLAST_TIMEOUT", "10m"), ("OUTLAST_OF_TOMORROW", "x"), ("OUTLAST_LOG", "error")]);
    let mut client = Peer::start(&mut command);
    client.handshake();
    assert_eq!(client.value_of("tell_environment", &json!({})), json!(environment));
}

#[test]
fn arguments_pass_unchanged() {
    let arguments = [
        "--", "a b", "", "'single'", "\"double\"", "$(touch /tmp/x)", "`x`", "$HOME", "--timeout", "30", "--", "-h", "*",
        "a\\b", "new\nline", "ü", ";", "&&", "| cat",
    ];
    let mut client = connect(&["--timeout", "10s"], &arguments);
    assert_eq!(client.value_of("tell_arguments", &json!({})), json!(arguments));
}

#[test]
fn the_working_directory_passes() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().canonicalize().unwrap();
    let mut client = Peer::start(wrapping(&[], &[]).current_dir(&path));
    client.handshake();
    assert_eq!(client.value_of("tell_directory", &json!({})), json!(path));
}

#[test]
fn a_command_is_looked_up_in_the_path() {
    let server = fake_server();
    let mut command = outlast();
    command.args(["--", "fake_server"]).env("PATH", server.parent().unwrap());
    let mut client = Peer::start(&mut command);
    client.handshake();
    assert_eq!(client.value_of("echo", &json!({"a": 1})), json!({"a": 1}));
}

#[test]
fn stderr_passes_as_it_is() {
    let mut client = connect(&[], &[]);
    let bytes: Vec<u8> = (0..=255).chain([27, 91, 51, 49, 109, 0, 255, 10, 13, 10]).collect();
    client.value_of("write_stderr", &json!({"bytes": bytes}));
    client.value_of("write_stderr", &json!({"bytes": [33]}));
    client.hang_up();
    assert_eq!(client.all_stderr(), [&bytes[..], b"!"].concat());
}

#[test]
fn a_flood_on_stderr_arrives_whole_where_somebody_reads() {
    let mut client = connect(&[], &[]);
    client.value_of("flood_stderr", &json!({"bytes": 300_000}));
    client.hang_up();
    assert_eq!(client.all_stderr(), vec![b'e'; 300_000]);
}

#[test]
fn a_flood_on_stderr_that_nobody_reads_blocks_no_call() {
    let mut command = wrapping(&[], &[]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let streams = Streams { deaf_to_stderr: true, ..Streams::default() };
    let mut client = Peer::start_with(&mut command, streams).with_output_read();
    client.handshake();
    assert_eq!(client.value_of("flood_stderr", &json!({"bytes": 20 << 20})), "done");
    assert_eq!(client.value_of("echo", &json!({"a": 1})), json!({"a": 1}));
    let memory = memory_of(client.pid());
    assert!(memory < MUCH_MEMORY, "{memory}");
    assert_eq!(client.hang_up().code(), Some(0));
}

#[test]
fn file_descriptors_of_outlast_do_not_leak_into_the_server() {
    let mut client = connect(&[], &[]);
    let pid = client.value_of("tell_pid", &json!({}));
    let open = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count();
    // Its three streams, and the copy of stdout that it makes itself.
    assert_eq!(open, 4);
}
