//! Calls that wait for a person's yes, decided by `outlast holds` in another process.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Output, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use outlast_testkit::peer::{LIMIT, Peer, wait_until};
use serde_json::{Value, from_str, json};
use tempfile::TempDir;

use crate::world::{connect, history, outlast};

/// `outlast WORDS --state FOLDER`
fn ours(folder: &Path, words: &[&str]) -> Output {
    outlast().args(words).arg("--state").arg(folder).output().expect("outlast runs")
}

/// What waits, as soon as something does.
fn waiting(folder: &Path) -> Value {
    let mut holds = Value::Null;
    let there = wait_until(LIMIT, || {
        let shown = String::from_utf8(ours(folder, &["holds", "--json"]).stdout).expect("text");
        holds = from_str::<Value>(&shown).expect("JSON")["holds"].take();
        holds.as_array().is_some_and(|holds| !holds.is_empty())
    });
    assert!(there, "nothing waits");
    holds[0].take()
}

fn held(folder: &Path, more: &[&str]) -> Peer {
    let folder = folder.to_str().expect("text");
    connect(&[&["--state", folder, "--tool", "echo=hold:true"], more].concat(), &[])
}

fn calls_of(client: &mut Peer) -> usize {
    history(client).iter().filter(|line| line.contains("\"echo\"")).count()
}

#[test]
fn a_call_is_sent_once_a_person_has_approved_it() {
    let folder = TempDir::new().expect("a folder");
    let mut client = held(folder.path(), &["--keep-alive", "200ms"]);
    let arguments = json!({"text": "paid", "password": "hunter2"});
    let id = client.begin_with_token("echo", &arguments, &json!(7));
    let hold = waiting(folder.path());
    assert_eq!((&hold["tool"], &hold["open"]), (&json!("echo"), &json!(true)), "{hold}");
    let shown = hold["arguments"].as_str().expect("text");
    assert!(shown.contains("paid") && shown.contains("***") && !shown.contains("hunter2"), "{shown}");
    let progress = client.message("notifications/progress");
    let words = progress["params"]["message"].as_str().expect("text");
    assert!(words.starts_with("waiting for approval of `echo` ("), "{words}");
    assert_eq!(calls_of(&mut client), 0, "the server has seen it before anybody said yes");
    let approved = ours(folder.path(), &["holds", "approve", &hold["hold"].to_string(), "--reason", "fine"]);
    assert!(approved.status.success(), "{approved:?}");
    let answer = client.answer(&id);
    assert!(answer["result"].is_object(), "{answer}");
    assert_eq!(calls_of(&mut client), 1);
    let late = ours(folder.path(), &["holds", "decline", &hold["hold"].to_string()]);
    assert!(!late.status.success(), "the first word counts: {late:?}");
    let audit = String::from_utf8(ours(folder.path(), &["audit", "--json"]).stdout).expect("text");
    let line: Value = from_str(audit.trim()).expect("one line");
    assert_eq!(
        (&line["yes"], &line["reason"], &line["place"]),
        (&json!(true), &json!("fine"), &json!("command line"))
    );
    assert!(!audit.contains("hunter2"));
}

#[test]
fn a_declined_call_is_told_to_the_model_and_never_sent() {
    let folder = TempDir::new().expect("a folder");
    let mut client = held(folder.path(), &[]);
    let id = client.begin("echo", &json!({}));
    let hold = waiting(folder.path());
    let number = hold["hold"].to_string();
    assert!(ours(folder.path(), &["holds", "decline", &number, "--reason", "not today"]).status.success());
    let answer = client.answer(&id);
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    let text = answer["result"]["content"][0]["text"].as_str().expect("text");
    assert!(text.contains("a person declined it: not today"), "{text}");
    assert_eq!(calls_of(&mut client), 0);
}

#[test]
fn a_client_that_leaves_takes_its_question_with_it() {
    let folder = TempDir::new().expect("a folder");
    let mut client = held(folder.path(), &[]);
    let id = client.begin("echo", &json!({}));
    let hold = waiting(folder.path());
    client.cancel(&id);
    let gone = wait_until(LIMIT, || {
        let shown = String::from_utf8(ours(folder.path(), &["holds"]).stdout).expect("text");
        shown == "no call waits for approval\n"
    });
    assert!(gone, "the question stayed");
    assert_eq!(ours(folder.path(), &["holds", "approve", &hold["hold"].to_string()]).status.code(), Some(2));
    assert_eq!(calls_of(&mut client), 0);
}

#[test]
fn a_yes_for_the_session_is_good_for_the_next_call() {
    let folder = TempDir::new().expect("a folder");
    let mut client = held(folder.path(), &[]);
    let id = client.begin("echo", &json!({"n": 1}));
    let number = waiting(folder.path())["hold"].to_string();
    assert!(ours(folder.path(), &["holds", "approve", &number, "--for", "session"]).status.success());
    client.answer(&id);
    let answer = client.call("echo", &json!({"n": 2}));
    assert!(answer["result"].is_object(), "{answer}");
    let shown = String::from_utf8(ours(folder.path(), &["holds"]).stdout).expect("text");
    assert!(shown.contains("approved for this session"), "{shown}");
}

#[test]
fn a_mistyped_word_is_answered_with_the_line_that_was_meant() {
    let folder = TempDir::new().expect("a folder");
    let said = |words: &[&str]| String::from_utf8(ours(folder.path(), words).stderr).expect("text");
    assert!(said(&["holds", "aprove", "3"]).contains("did you mean: outlast holds approve 3"));
    assert!(said(&["holds", "approve", "x"]).contains("`x` is not the number of a call"));
    assert!(said(&["holds", "approve", "3"]).contains("nobody is asked about call 3"));
}

/// Without anybody looking again and again: each change is one line.
#[test]
fn watching_shows_what_comes_and_what_goes() {
    let folder = TempDir::new().expect("a folder");
    let mut client = held(folder.path(), &["--hold-ask-client"]);
    // The store is made by the first call that needs it.
    let first = client.begin("echo", &json!({"n": 1}));
    waiting(folder.path());
    let mut command = outlast();
    command.args(["holds", "--watch", "--json", "--state"]).arg(folder.path()).stdout(Stdio::piped());
    let mut watch = command.spawn().expect("outlast runs");
    let mut lines = BufReader::new(watch.stdout.take().expect("its output")).lines();
    let mut next = || from_str::<Value>(&lines.next().expect("a line").expect("text")).expect("JSON");
    assert_eq!(next()["holds"][0]["tool"], "echo");
    client.cancel(&first);
    assert_eq!(next(), json!({"holds": []}));
    client.begin("echo", &json!({"n": 2}));
    let holds = next();
    assert_eq!((&holds["holds"][0]["arguments"], &holds["holds"][1]), (&json!("{\"n\":2}"), &Value::Null));
    let watched = Pid::from_raw(i32::try_from(watch.id()).expect("a process id"));
    kill(watched, Signal::SIGINT).expect("it runs");
    assert_eq!(watch.wait().expect("it ends").code(), Some(130));
}
