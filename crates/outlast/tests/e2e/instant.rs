//! The second start does not wait for the server.

use std::fs::{metadata, read_dir, remove_file, write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use outlast_testkit::peer::{LIMIT, Peer, wait_until};
use serde_json::json;

use crate::world::{outlast, wrapping};

/// A server that does not start before it may.
fn slow(home: &Path) -> Command {
    let gate = gate(home);
    let mut command = wrapping(&["--instant"], &["--start-when", &gate.display().to_string()]);
    command.env("OUTLAST_STATE", home.join("outlast"));
    command
}

/// The file whose being there lets the server start.
fn gate(home: &Path) -> PathBuf {
    home.join("may-start")
}

fn files(home: &Path) -> Vec<PathBuf> {
    let entries = read_dir(home.join("outlast/instant")).map(|entries| entries.flatten().collect::<Vec<_>>());
    entries
        .unwrap_or_default()
        .iter()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|e| e == "json"))
        .collect()
}

/// Fills the memory: the handshake and the tools.
fn first_day(home: &Path) {
    write(gate(home), b"").expect("written");
    let mut client = Peer::start(&mut slow(home));
    client.handshake();
    let id = client.request("tools/list", &json!({}));
    client.answer(&id);
    let kept = wait_until(LIMIT, || {
        files(home)
            .first()
            .is_some_and(|path| std::fs::read_to_string(path).is_ok_and(|text| text.contains("tools/list")))
    });
    assert!(kept, "nothing was kept");
    client.hang_up();
}

#[test]
fn the_second_start_answers_while_the_server_is_still_starting() {
    let home = tempfile::tempdir().expect("a folder");
    first_day(home.path());
    remove_file(gate(home.path())).expect("removed");
    let mut client = Peer::start(&mut slow(home.path()));
    client.handshake();
    let id = client.request("tools/list", &json!({}));
    let answer = client.answer(&id);
    assert!(answer["result"]["tools"].is_array(), "{answer}");
    // A call waits for the server itself, which was told everything in order.
    let call = client.begin("echo", &json!({"x": 1}));
    write(gate(home.path()), b"").expect("written");
    assert_eq!(client.answer(&call)["result"]["structuredContent"], json!({"x": 1}));
    assert_eq!(client.hang_up().code(), Some(0));
}

#[test]
fn the_memory_is_private_and_can_be_cleared() {
    let home = tempfile::tempdir().expect("a folder");
    first_day(home.path());
    let kept = files(home.path());
    assert_eq!(kept.len(), 1);
    assert_eq!(metadata(&kept[0]).expect("a file").permissions().mode() & 0o777, 0o600);
    let elsewhere = tempfile::tempdir().expect("a folder");
    let clear =
        |state: &Path| outlast().args(["cache", "clear", "--state"]).arg(state).status().expect("it runs");
    assert!(clear(elsewhere.path()).success() && files(home.path()).len() == 1);
    assert!(clear(&home.path().join("outlast")).success() && files(home.path()).is_empty());
}

#[test]
fn what_is_no_file_is_not_waited_for() {
    let home = tempfile::tempdir().expect("a folder");
    first_day(home.path());
    let kept = files(home.path()).remove(0);
    remove_file(&kept).expect("removed");
    nix::unistd::mkfifo(&kept, nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
    let mut client = Peer::start(&mut slow(home.path()));
    client.handshake();
    assert_eq!(client.value_of("echo", &json!({"x": 1})), json!({"x": 1}));
}

/// The folder that `--state` names is where the memory is, as it is with the variable.
#[test]
fn the_memory_is_in_the_folder_that_the_flag_names() {
    let home = tempfile::tempdir().expect("a folder");
    first_day(home.path());
    remove_file(gate(home.path())).expect("removed");
    let (state, gate) = (home.path().join("outlast"), gate(home.path()));
    let words = |state: &Path| {
        let mut command = wrapping(
            &["--instant", "--state", &state.display().to_string()],
            &["--start-when", &gate.display().to_string()],
        );
        command.env_remove("OUTLAST_STATE");
        command
    };
    let mut client = Peer::start(&mut words(&state));
    client.handshake();
    let id = client.request("tools/list", &json!({}));
    assert!(client.answer(&id)["result"]["tools"].is_array(), "not answered from that folder");
    write(&gate, b"").expect("written");
    assert_eq!(client.hang_up().code(), Some(0));
    // Another folder holds another memory, and the flag wins over the variable.
    let elsewhere = tempfile::tempdir().expect("a folder");
    let mut client = Peer::start(words(elsewhere.path()).env("OUTLAST_STATE", &state));
    client.handshake();
    let kept = || read_dir(elsewhere.path().join("instant")).is_ok_and(|files| files.count() > 0);
    assert!(wait_until(LIMIT, kept), "nothing was kept in the folder that the flag names");
}

/// What one account may call is nothing for another.
#[test]
fn a_server_with_other_credentials_has_a_memory_of_its_own() {
    let home = tempfile::tempdir().expect("a folder");
    first_day(home.path());
    let mut client = Peer::start(slow(home.path()).env("API_TOKEN", "another"));
    client.handshake();
    assert!(wait_until(LIMIT, || files(home.path()).len() == 2), "{:?}", files(home.path()));
}

#[test]
fn a_damaged_memory_costs_nothing_but_time() {
    let home = tempfile::tempdir().expect("a folder");
    first_day(home.path());
    write(&files(home.path())[0], b"{\"of\":null").expect("written");
    let mut client = Peer::start(&mut slow(home.path()));
    client.handshake();
    assert_eq!(client.value_of("echo", &json!({"x": 1})), json!({"x": 1}));
}

#[test]
fn without_the_flag_nothing_is_kept() {
    let home = tempfile::tempdir().expect("a folder");
    let mut command = wrapping(&[], &[]);
    let mut client = Peer::start(command.env("XDG_STATE_HOME", home.path()));
    client.handshake();
    client.hang_up();
    assert!(!home.path().join("outlast").exists());
}
