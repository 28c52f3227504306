//! A run is recorded with `--record`, and `outlast replay` sees it again: a bug report is a file.

use std::fs::{metadata, read_to_string, write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Output;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use outlast_testkit::peer::Peer;
use serde_json::{Value, from_str, json};
use tempfile::TempDir;

use crate::http_world::{Served, answer_of, modern_call, serve};
use crate::world::{connect, outlast};

/// Where one test's recording is.
struct Folder(TempDir);

impl Folder {
    fn new() -> Folder {
        Folder(TempDir::new().expect("a folder"))
    }

    fn file(&self) -> PathBuf {
        self.0.path().join("run.jsonl")
    }

    /// `outlast --record FILE FLAGS -- fake-server`
    fn wrapped(&self, flags: &[&str]) -> Peer {
        connect(&[&["--record", text(&self.file())], flags].concat(), &[])
    }

    /// `outlast serve --record FILE FLAGS -- fake-server`
    fn served(&self, flags: &[&str]) -> Served {
        serve(&[&["--record", text(&self.file())], flags].concat(), &[])
    }

    fn recorded(&self) -> String {
        read_to_string(self.file()).expect("a recording")
    }

    /// `outlast replay FILE WORDS`
    fn replay(&self, words: &[&str]) -> Output {
        outlast().arg("replay").arg(self.file()).args(words).output().expect("outlast runs")
    }

    /// What is said of it when it is played; it must be as it was.
    fn same(&self) -> String {
        let output = self.replay(&[]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{said}\n{}", self.recorded());
        assert!(said.contains(", all as outlast "), "{said}");
        let compared = self.replay(&["--compare"]);
        assert_eq!((compared.status.code(), compared.stdout.len()), (Some(0), 0), "{compared:?}");
        String::from_utf8(output.stdout).expect("text")
    }

    /// What is wrong with it.
    fn wrong(&self) -> String {
        let output = self.replay(&[]);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        String::from_utf8(output.stderr).expect("text")
    }
}

fn text(path: &Path) -> &str {
    path.to_str().expect("text")
}

fn ended(mut served: Served) {
    served.process.signal(Signal::SIGTERM);
    served.process.end();
}

#[test]
fn a_run_over_pipes_decides_the_same_again() {
    let folder = Folder::new();
    let mut client = folder.wrapped(&["--tool", "hang=timeout:300ms"]);
    assert_eq!(client.value_of("echo", &json!({"seen": "this"})), json!({"seen": "this"}));
    assert_eq!(client.call("hang", &json!({}))["error"]["code"], -32001);
    client.hang_up();
    assert_eq!(metadata(folder.file()).expect("a file").permissions().mode() & 0o777, 0o600);
    let shown = folder.same();
    assert!(shown.contains(r#">> {"jsonrpc""#) && shown.contains(r#"{"seen":"this"}"#), "{shown}");
    assert!(shown.contains("!! warn: timeout") && shown.contains(".. end 0"), "{shown}");
}

#[test]
fn a_service_decides_the_same_again() {
    let folder = Folder::new();
    let state = TempDir::new().expect("a folder");
    let served = folder.served(&["--state", text(state.path()), "--tasks"]);
    let mut session = served.session();
    assert_eq!(session.value_of("echo", &json!({"x": 1})), json!({"x": 1}));
    let task = json!({"name": "echo", "arguments": {"x": 2}, "task": {}});
    let made = answer_of(&mut session.begin("tools/call", &task).0);
    let name = made["result"]["task"]["taskId"].as_str().expect("a task").to_owned();
    let result = answer_of(&mut session.begin("tasks/result", &json!({"taskId": name})).0);
    assert_eq!(result["result"]["structuredContent"], json!({"x": 2}), "{result}");
    assert_eq!(served.modern_value_of("echo", &json!({"x": 3})), json!({"x": 3}));
    assert_eq!(session.delete().status, 200);
    let id = session.id.clone();
    ended(served);
    let recorded = folder.recorded();
    assert!(!recorded.contains(&id), "the session's name is in the recording");
    assert!(!recorded.contains(&name), "the ticket is in the recording");
    let shown = folder.same();
    assert!(shown.contains(".. store") && shown.contains("tasks/result"), "{shown}");
}

/// What the store gives back is an event as well.
#[test]
fn a_process_that_takes_over_decides_the_same_again() {
    let folder = Folder::new();
    let state = TempDir::new().expect("a folder");
    let flags = ["--state", text(state.path()), "--tasks"];
    let mut first = serve(&flags, &[]);
    let mut session = first.session();
    let task = json!({"name": "hang", "arguments": {}, "task": {}});
    let made = answer_of(&mut session.begin("tools/call", &task).0);
    let name = made["result"]["task"]["taskId"].as_str().expect("a task").to_owned();
    first.process.signal(Signal::SIGKILL);
    first.process.end();
    let second = folder.served(&flags);
    let mut session = session.at(second.address);
    let asked = answer_of(&mut session.begin("tasks/get", &json!({"taskId": name})).0);
    assert_eq!(asked["result"]["taskId"], name, "{asked}");
    ended(second);
    let recorded = folder.recorded();
    assert!(!recorded.contains(&name) && !recorded.contains(&session.id), "{recorded}");
    folder.same();
}

#[test]
fn a_crashed_server_is_replaced_in_the_same_way_again() {
    let folder = Folder::new();
    let mut client = folder.wrapped(&["--restart-backoff", "1ms"]);
    let id = client.begin("hang", &json!({}));
    let pid = client.value_of("tell_pid", &json!({})).as_i64().expect("a number");
    kill(Pid::from_raw(pid as i32), Signal::SIGKILL).expect("it lives");
    assert_eq!(client.answer(&id)["error"]["code"], -31002);
    assert_eq!(client.value_of("echo", &json!({})), json!({}));
    client.hang_up();
    let shown = folder.same();
    assert!(shown.contains("exited 0: signal 9") && shown.contains(".. start 1"), "{shown}");
}

#[test]
fn a_call_that_waits_for_a_person_does_so_again() {
    let folder = Folder::new();
    let state = TempDir::new().expect("a folder");
    let mut client =
        folder.wrapped(&["--state", text(state.path()), "--tool", "echo=hold:true,hold-timeout:300ms"]);
    let answer = client.call("echo", &json!({"account": "me", "password": "hunter2"}));
    assert!(answer["error"]["message"].as_str().expect("an error").contains("approv"), "{answer}");
    client.hang_up();
    assert!(!folder.recorded().contains("hunter2"));
    let shown = folder.same();
    assert!(shown.contains("waits for") || shown.contains("hold"), "{shown}");
}

#[test]
fn secrets_are_not_recorded_and_what_remains_is_still_consistent() {
    let folder = Folder::new();
    let secret = "hunter2-very-secret";
    let mut client =
        folder.wrapped(&["--redact", "iban*", "--redact", "lines", "--tool", "echo=keep-answers:true"]);
    let arguments = json!({
        "password": secret, "apiKey": secret, "deep": [{"client_secret": [secret]}], "header": format!("Bearer {secret}"),
        "iban": secret, "seen": "to be seen", "pin": {"passwords": {"a": secret}},
    });
    assert_eq!(client.value_of("echo", &arguments), arguments);
    let bytes = format!("starting with {secret}\n").into_bytes();
    client.call("write_stderr", &json!({"bytes": bytes}));
    client.call(
        "write_lines",
        &json!({"lines": [format!("no JSON, but {secret}"), format!("{{\"token\": \"{secret}")]}),
    );
    client.hang_up();
    let recorded = folder.recorded();
    assert!(!recorded.contains(secret) && !recorded.contains("hunter2"), "{recorded}");
    assert!(recorded.contains("to be seen"), "{recorded}");
    folder.same();
}

#[test]
fn the_moments_of_one_call_are_shown_alone() {
    let folder = Folder::new();
    let mut client = folder.wrapped(&[]);
    client.value_of("echo", &json!({"which": "first"}));
    client.value_of("echo", &json!({"which": "second"}));
    client.hang_up();
    let all = folder.same();
    let numbers: Vec<&str> = all
        .lines()
        .filter(|line| line.contains("began tools/call"))
        .filter_map(|line| line.trim().strip_prefix("%% ")?.split(' ').next())
        .collect();
    let [_, second] = numbers[..] else { panic!("two calls: {all}") };
    let output = folder.replay(&["--call", second]);
    let shown = String::from_utf8(output.stdout).expect("text");
    assert!(shown.contains("second") && !shown.contains("first"), "{shown}");
    let output = folder.replay(&["--call", second, "--json"]);
    let moments: Vec<Value> = String::from_utf8(output.stdout)
        .expect("text")
        .lines()
        .map(|line| from_str(line).expect("JSON"))
        .collect();
    assert!(moments.len() >= 2, "{moments:?}");
    assert!(moments.iter().all(|moment| moment["events"].is_array() && moment["time"].is_string()));
}

/// Stands for another version of outlast: what it decided then is not what this one decides.
#[test]
fn the_first_decision_that_differs_is_shown() {
    let folder = Folder::new();
    let mut client = folder.wrapped(&[]);
    client.value_of("echo", &json!({}));
    client.hang_up();
    let other = folder.recorded().replacen("<< client 0: result to", "<< client 0: error -32001 to", 1);
    assert_ne!(other, folder.recorded());
    write(folder.file(), other).expect("written");
    let output = folder.replay(&["--compare"]);
    let (shown, said) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(1), "{shown}{said}");
    assert!(shown.contains("differs: recorded is  << client 0: error -32001 to"), "{shown}");
    assert!(shown.contains("this is      << client 0: result to"), "{shown}");
    assert!(said.contains("decides otherwise"), "{said}");
}

#[test]
fn each_start_begins_a_new_recording_and_keeps_the_one_before() {
    let folder = Folder::new();
    write(folder.file(), "an old one").expect("written");
    folder.wrapped(&[]).hang_up();
    let before = folder.file().with_file_name("run.jsonl.1");
    assert_eq!(read_to_string(before).expect("a file"), "an old one");
    assert!(folder.recorded().starts_with(r#"{"recording":{"format":1,"outlast":""#));
    folder.same();
}

#[test]
fn a_recording_that_cannot_be_written_costs_no_call_and_is_told_of() {
    let mut client = connect(&["--record", "/dev/full"], &[]);
    assert_eq!(client.value_of("echo", &json!({"a": 1})), json!({"a": 1}));
    client.hang_up();
    let stderr = String::from_utf8(client.all_stderr()).expect("text");
    assert!(stderr.contains("record: the recording ends here: it cannot be written"), "{stderr}");
}

#[test]
fn a_recording_that_ends_anywhere_is_played_as_far_as_it_goes() {
    let folder = Folder::new();
    let mut client = folder.wrapped(&[]);
    client.value_of("echo", &json!({}));
    client.hang_up();
    let whole = folder.recorded();
    let header = whole.find('\n').expect("a header") + 1;
    for part in [header, header + 1, whole.len() / 2, whole.len() - 1] {
        write(folder.file(), &whole[..part]).expect("written");
        folder.same();
    }
}

#[test]
fn what_is_no_recording_is_told_with_its_place() {
    let folder = Folder::new();
    folder.wrapped(&[]).hang_up();
    let whole = folder.recorded();
    let header = whole.lines().next().expect("a header");
    for (bytes, expected) in [
        (b"\x7fELF\x02\x01\xff\xfe".to_vec(), "line 1: this is not a recording of outlast"),
        (b"{\"time\":1}\n".to_vec(), "line 1: this is not a recording of outlast"),
        (Vec::new(), ": this is not a recording of outlast"),
        (
            br#"{"recording":{"format":2,"outlast":"9.9.9","config":"other"}}"#.to_vec(),
            "line 1: outlast 9.9.9 wrote it in format 2, and this outlast reads formats up to 1: replay it with the newer one",
        ),
        (format!("{header}\n{{\"event\":\n").into_bytes(), "line 2: this line is damaged: EOF"),
        (
            format!("{header}\n{{\"event\":[{{\"mono\":1,\"wall\":1}},\"Later\"]}}\n").into_bytes(),
            "line 2: this line is damaged: unknown variant `Later` at column",
        ),
        (format!("{header}\n{{\"did\":[\"x\"]}}\n").into_bytes(), "line 2: this line cannot stand here"),
        ([header.as_bytes(), b"\n\xff\n"].concat(), "line 2: it is not UTF-8"),
        (vec![b'['; 100_000_000], "line 1: it is longer than 64 MiB"),
    ] {
        write(folder.file(), bytes).expect("written");
        let said = folder.wrong();
        assert!(said.contains(expected), "{said} instead of: {expected}");
    }
    let missing = outlast().args(["replay", "/no/such/file"]).output().expect("outlast runs");
    assert_eq!(missing.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&missing.stderr).contains("cannot read `/no/such/file`"), "{missing:?}");
}

/// A modern call that becomes a task.
#[test]
fn a_hand_off_decides_the_same_again() {
    let folder = Folder::new();
    let served = folder.served(&["--tasks", "--client-cap", "600ms", "--drain", "100ms"]);
    let answer = answer_of(&mut served.modern("tools/call", &modern_call("hang", &json!({})), &[]));
    assert!(answer["result"].is_object(), "{answer}");
    ended(served);
    folder.same();
}
