//! The server's process is what it would be without outlast.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use outlast_testkit::peer::{LIMIT, Peer, Streams, wait_until};
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
        "--",
        "a b",
        "",
        "'single'",
        "\"double\"",
        "$(touch /tmp/x)",
        "`x`",
        "$HOME",
        "--timeout",
        "30",
        "--",
        "-h",
        "*",
        "a\\b",
        "new\nline",
        "ü",
        ";",
        "&&",
        "| cat",
    ];
    let mut client = connect(&["--timeout", "10s"], &arguments);
    assert_eq!(client.value_of("tell_arguments", &json!({})), json!(arguments));
}

#[test]
fn arguments_need_not_be_text() {
    let mut command = wrapping(&[], &["--"]);
    let mut client = Peer::start(command.arg(OsStr::from_bytes(b"caf\xe9")));
    client.handshake();
    assert_eq!(client.value_of("tell_arguments", &json!({})), json!(["--", [99, 97, 102, 0xe9]]));
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
    let pid = client.value_of("tell_pid", &json!({})).to_string();
    let passed_on = descriptors("self", |flags| flags & nix::libc::O_CLOEXEC == 0);
    let mut open = descriptors(&pid, |_| true);
    open.retain(|target| !passed_on.contains(target));
    // What it would not have without us: its three streams.
    assert_eq!(open.len(), 3, "{open:?}");
}

#[test]
fn signals_and_limits_of_the_server_are_as_without_us() {
    let connected = |command: &mut Command| {
        let mut client = Peer::start(command);
        client.handshake();
        let pid = client.value_of("tell_pid", &json!({}));
        (client, pid.to_string())
    };
    let (_direct, direct) = connected(&mut Command::new(fake_server()));
    let (_wrapped, wrapped) = connected(&mut wrapping(&[], &[]));
    // For a moment a server blocks its signals itself, while it starts a thread.
    let same = wait_until(LIMIT, || traits_of(&direct) == traits_of(&wrapped));
    assert!(same, "{:#?} without us, {:#?} with us", traits_of(&direct), traits_of(&wrapped));
}

/// What a process has inherited, in words.
fn traits_of(pid: &str) -> Vec<String> {
    let names = ["SigBlk", "SigIgn", "SigCgt", "Umask", "NoNewPrivs"];
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let limits = fs::read_to_string(format!("/proc/{pid}/limits")).unwrap();
    let named = |line: &&str| names.iter().any(|name| line.starts_with(name));
    status.lines().filter(named).chain(limits.lines()).map(str::to_owned).collect()
}

/// What the descriptors of a process stand for, by their flags.
fn descriptors(pid: &str, wanted: impl Fn(i32) -> bool) -> BTreeSet<PathBuf> {
    let numbers = fs::read_dir(format!("/proc/{pid}/fd")).unwrap().flatten();
    let described = numbers.filter_map(|entry| {
        let number = entry.file_name().into_string().ok()?;
        let info = fs::read_to_string(format!("/proc/{pid}/fdinfo/{number}")).ok()?;
        let flags = info.lines().find_map(|line| line.strip_prefix("flags:"))?;
        let flags = i32::from_str_radix(flags.trim(), 8).ok()?;
        wanted(flags).then(|| fs::read_link(entry.path()).ok())?
    });
    described.collect()
}
