//! `outlast tasks`: what a person sees and does of calls that run in other processes.

use std::io::Read;
use std::path::Path;
use std::process::{Child, Output, Stdio};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use bytes::Bytes;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use outlast::store::{Machine, Store};
use outlast_engine::record::{Answer, Body, Change, Faces, New, Origin, State, Ticket};
use outlast_engine::store::{Bounds, Done, Mail, Write};
use outlast_testkit::peer::{LIMIT, Peer, wait_until};
use serde_json::{Value, from_slice, json};
use tempfile::TempDir;

use crate::world::{connect, outlast};

/// `outlast tasks WORDS --state FOLDER`
fn tasks(folder: &Path, words: &[&str]) -> Output {
    outlast().arg("tasks").args(words).arg("--state").arg(folder).output().expect("outlast runs")
}

fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// `outlast --tasks --state FOLDER -- fake-server`, ready for calls.
fn client(folder: &Path) -> Peer {
    connect(&["--tasks", "--state", folder.to_str().expect("text")], &[])
}

/// Calls a tool as a task; its id.
fn begin(client: &mut Peer, tool: &str, arguments: &Value) -> String {
    let params = json!({"name": tool, "arguments": arguments, "task": {}});
    let id = client.request("tools/call", &params);
    let answer = client.answer(&id);
    answer["result"]["task"]["taskId"].as_str().unwrap_or_else(|| panic!("no task: {answer}")).to_owned()
}

// Tests that play the process that owns a call.

struct Owner(Store);

impl Owner {
    fn new(folder: &Path) -> Owner {
        Owner(Store::open(folder, Arc::new(Machine::new()), Bounds::default()).expect("a store"))
    }

    fn write(&self, write: Write) -> Done {
        let (reply, stored) = channel();
        self.0.submit(vec![write], Box::new(move |outcome| drop(reply.send(outcome))));
        stored.recv().expect("a reply").expect("written").done.remove(0)
    }

    fn begin(&self, ticket: &str) {
        let origin = Origin {
            principal: "stdio".into(),
            server: "played#00".into(),
            method: "tools/call".into(),
            tool: "build".into(),
            key: None,
        };
        self.write(Write::Create(Box::new(New {
            ticket: Ticket::parse(ticket).expect("a ticket"),
            origin,
            faces: Faces::LEGACY_TASK,
            ran: Duration::ZERO,
            seen: 0,
            body: Body::default().encode(),
            request: Bytes::from_static(b"{}"),
        })));
    }

    fn end(&self, ticket: &str, state: State, answer: Answer) {
        self.write(Write::Change(Box::new(Change {
            ticket: Ticket::parse(ticket).expect("a ticket"),
            epoch: 1,
            state,
            faces: Faces::default(),
            keep: None,
            body: None,
            answer: Some(answer),
        })));
    }
}

/// A ticket that begins like this.
fn ticket(beginning: &str) -> String {
    format!("{beginning:0<32}")
}

#[test]
fn a_store_that_is_not_there_is_not_made() {
    let folder = TempDir::new().unwrap();
    let nowhere = folder.path().join("nowhere");
    let list = tasks(&nowhere, &["list"]);
    assert_eq!((out(&list).as_str(), list.status.code()), ("no tasks\n", Some(0)));
    let list = tasks(&nowhere, &["list", "--json"]);
    assert_eq!(
        from_slice::<Value>(&list.stdout).unwrap(),
        json!({"tasks": [], "page": 1, "pages": 1, "total": 0})
    );
    let show = tasks(&nowhere, &["show", "abc"]);
    assert_eq!(show.status.code(), Some(2));
    assert!(err(&show).starts_with("outlast: no tasks: there is no store in "), "{}", err(&show));
    assert!(!nowhere.exists());
}

#[test]
fn a_running_task_is_listed_shown_and_waited_for() {
    let folder = TempDir::new().unwrap();
    let mut client = client(folder.path());
    let id = begin(&mut client, "silent", &json!({"ms": 1500}));

    let list = out(&tasks(folder.path(), &["list"]));
    let mut lines = list.lines();
    assert_eq!(
        lines.next().unwrap().split_whitespace().collect::<Vec<_>>(),
        ["TICKET", "SERVER", "TOOL", "STATE", "AGE", "CHANGED"]
    );
    let row: Vec<&str> = lines.next().unwrap().split_whitespace().collect();
    assert_eq!(row[..4], [&id[..8], "fake_server", "silent", "working"]);
    assert!(!list.contains(&id), "the whole ticket stands there: {list}");

    let early = tasks(folder.path(), &["result", &id[..6]]);
    assert_eq!((out(&early).as_str(), early.status.code()), ("", Some(3)));
    assert!(err(&early).contains(&format!("write: outlast tasks wait {}", &id[..8])), "{}", err(&early));

    let show: Value = from_slice(&tasks(folder.path(), &["show", "--json", &id[..8]]).stdout).unwrap();
    assert_eq!((&show["ticket"], &show["state"]), (&json!(id), &json!("working")));
    assert_eq!(show["owner"], json!({"pid": client.pid(), "alive": true}));
    assert_eq!((&show["answerBytes"], &show["faces"]), (&Value::Null, &json!(["task"])));

    let waited = tasks(folder.path(), &["wait", &id[..8]]);
    assert_eq!(waited.status.code(), Some(0), "{}", err(&waited));
    let said = err(&waited);
    let age = said.strip_prefix(&format!("outlast: {} (silent): working · ", &id[..8]));
    assert!(age.is_some_and(|age| age.len() <= 3 && age.ends_with("s\n")), "{said}");
    let answer = client.request("tasks/result", &json!({"taskId": id}));
    let answer = client.answer(&answer);
    let result: Value = from_slice(&waited.stdout).unwrap();
    assert_eq!(result["structuredContent"], answer["result"]["structuredContent"]);

    let shown = out(&tasks(folder.path(), &["show", &id]));
    assert!(shown.contains(&format!("ticket     {id}\nstate      completed\n")), "{shown}");
    assert!(shown.contains(&format!("answer     {} bytes (result)\n", waited.stdout.len() - 1)), "{shown}");
}

#[test]
fn what_a_task_asks_is_shown_until_it_is_answered() {
    let folder = TempDir::new().unwrap();
    let mut client = client(folder.path());
    let arguments = json!({"id": "1", "method": "elicitation/create", "params": {"message": "sure?"}});
    let id = begin(&mut client, "ask", &arguments);
    let question = client.message("elicitation/create");
    let show = || tasks(folder.path(), &["show", &id]);
    assert!(
        wait_until(LIMIT, || out(&show()).contains("asks       elicitation/create: sure?\n")),
        "{}",
        out(&show())
    );
    assert!(out(&show()).contains("state      input_required\n"), "{}", out(&show()));
    let shown: Value = from_slice(&tasks(folder.path(), &["show", "--json", &id]).stdout).unwrap();
    let asked = json!([{"method": "elicitation/create", "params": {"message": "sure?"}}]);
    assert_eq!(shown["questions"], asked);

    client.send(json!({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept"}}));
    assert_eq!(tasks(folder.path(), &["wait", &id]).status.code(), Some(0));
    assert!(!out(&show()).contains("asks "), "{}", out(&show()));
}

#[test]
fn a_result_outlives_its_process_byte_for_byte() {
    let folder = TempDir::new().unwrap();
    let mut client = client(folder.path());
    let line = r#"{"jsonrpc":"2.0","id":$ID,"result": {"content" : [],"n":1.0,"big":18446744073709551617}}"#;
    let id = begin(&mut client, "answer_with", &json!({"line": line}));
    assert_eq!(tasks(folder.path(), &["wait", &id]).status.code(), Some(0));
    client.hang_up();
    let result = tasks(folder.path(), &["result", &id[..8]]);
    assert_eq!(out(&result), "{\"content\" : [],\"n\":1.0,\"big\":18446744073709551617}\n");
    let wrapped = out(&tasks(folder.path(), &["result", "--json", &id[..8]]));
    let expected = format!(
        r#"{{"ticket":"{id}","state":"completed","result":{{"content" : [],"n":1.0,"big":18446744073709551617}}}}"#
    );
    assert_eq!(wrapped, expected + "\n");
}

#[test]
fn a_failure_is_told_by_the_status() {
    let folder = TempDir::new().unwrap();
    let mut client = client(folder.path());
    let error = r#"{"jsonrpc":"2.0","id":$ID,"error":{"code":-5,"message":"no such branch"}}"#;
    let failed = begin(&mut client, "answer_with", &json!({"line": error}));
    let waited = tasks(folder.path(), &["wait", &failed]);
    assert_eq!((out(&waited).as_str(), waited.status.code()), ("", Some(1)));
    assert!(err(&waited).ends_with("{\"code\":-5,\"message\":\"no such branch\"}\n"), "{}", err(&waited));

    let said = r#"{"jsonrpc":"2.0","id":$ID,"result":{"content":[],"isError":true}}"#;
    let failed = begin(&mut client, "answer_with", &json!({"line": said}));
    let waited = tasks(folder.path(), &["wait", &failed]);
    assert_eq!(
        (out(&waited).as_str(), waited.status.code()),
        ("{\"content\":[],\"isError\":true}\n", Some(1))
    );
}

#[test]
fn a_task_whose_process_was_killed_says_so() {
    let folder = TempDir::new().unwrap();
    let mut client = client(folder.path());
    let id = begin(&mut client, "hang", &json!({}));
    client.signal(Signal::SIGKILL);
    client.end();
    let list = out(&tasks(folder.path(), &["list"]));
    assert!(list.contains("working, owner gone"), "{list}");
    let cancel = tasks(folder.path(), &["cancel", &id]);
    assert_eq!(cancel.status.code(), Some(3));
    assert!(err(&cancel).contains(&format!("process {} that ran", client.pid())), "{}", err(&cancel));
}

#[test]
fn the_owner_hears_of_a_cancel() {
    let folder = TempDir::new().unwrap();
    let owner = Owner::new(folder.path());
    let id = ticket("c0ffee");
    owner.begin(&id);
    let cancel = start(folder.path(), &["cancel", "c0ffee"]);
    let came = wait_until(LIMIT, || match owner.write(Write::Collect) {
        Done::Mail(messages) => matches!(messages[..], [(_, Mail::Cancel)]),
        other => panic!("{other:?}"),
    });
    assert!(came, "no mailbox message came");
    owner.end(&id, State::Cancelled, Answer::Error(Bytes::from_static(b"{}")));
    let output = cancel.wait_with_output().unwrap();
    assert_eq!((err(&output).as_str(), output.status.code()), ("outlast: c0ffee00 is cancelled\n", Some(0)));
    assert_eq!(tasks(folder.path(), &["result", "c0ffee"]).status.code(), Some(1));
    assert_eq!(tasks(folder.path(), &["cancel", "c0ffee"]).status.code(), Some(0), "cancelled is cancelled");
}

#[test]
fn what_has_ended_is_not_cancelled() {
    let folder = TempDir::new().unwrap();
    let owner = Owner::new(folder.path());
    let id = ticket("d0");
    owner.begin(&id);
    owner.end(&id, State::Completed, Answer::Result(Bytes::from_static(b"7")));
    let cancel = tasks(folder.path(), &["cancel", "d0"]);
    assert_eq!(cancel.status.code(), Some(1));
    assert!(err(&cancel).contains("had ended before (completed)"), "{}", err(&cancel));
    assert_eq!(out(&tasks(folder.path(), &["result", "d0"])), "7\n");
}

#[test]
fn the_beginning_of_a_ticket_is_enough_if_it_is_the_only_one() {
    let folder = TempDir::new().unwrap();
    let owner = Owner::new(folder.path());
    for beginning in ["abcdef0123", "abcdef0145", "77"] {
        owner.begin(&ticket(beginning));
    }
    let list = out(&tasks(folder.path(), &["list"]));
    for name in ["abcdef012 ", "abcdef014 ", "77000000 "] {
        assert!(list.contains(name), "{list}");
    }
    let several = tasks(folder.path(), &["show", "abcdef"]);
    assert_eq!(several.status.code(), Some(2));
    assert!(
        err(&several).contains("2 tickets begin with `abcdef` (abcdef014, abcdef012); write more characters"),
        "{}",
        err(&several)
    );
    let typed = tasks(folder.path(), &["show", "abcdff012"]);
    assert_eq!(typed.status.code(), Some(2));
    assert!(err(&typed).contains("did you mean abcdef012?"), "{}", err(&typed));
    assert_eq!(tasks(folder.path(), &["show", "ABCDEF012"]).status.code(), Some(0));
    assert_eq!(tasks(folder.path(), &["show", ""]).status.code(), Some(2));
    let word = tasks(folder.path(), &["shwo", "77"]);
    assert!(err(&word).contains("did you mean: outlast tasks show 77"), "{}", err(&word));
}

#[test]
fn long_lists_have_pages_and_what_runs_comes_first() {
    let folder = TempDir::new().unwrap();
    let owner = Owner::new(folder.path());
    for number in 0..60 {
        owner.begin(&format!("{number:032x}"));
        if number != 3 {
            owner.end(&format!("{number:032x}"), State::Completed, Answer::Result(Bytes::from_static(b"1")));
        }
    }
    let first: Value = from_slice(&tasks(folder.path(), &["list", "--json"]).stdout).unwrap();
    let tickets = |page: &Value| -> Vec<u64> {
        let number = |task: &Value| u64::from_str_radix(task["ticket"].as_str().unwrap(), 16).unwrap();
        page["tasks"].as_array().unwrap().iter().map(number).collect()
    };
    assert_eq!(tickets(&first)[..3], [3, 59, 58]);
    assert_eq!((tickets(&first).len(), &first["total"], &first["pages"]), (50, &json!(60), &json!(2)));
    let text = out(&tasks(folder.path(), &["list"]));
    assert!(text.ends_with("page 1 of 2; next: --page 2\n"), "{text}");
    let second: Value = from_slice(&tasks(folder.path(), &["list", "--json", "--page", "2"]).stdout).unwrap();
    assert_eq!(tickets(&second), [10, 9, 8, 7, 6, 5, 4, 2, 1, 0]);
    assert_eq!(tasks(folder.path(), &["list", "--page", "3"]).status.code(), Some(2));
}

#[test]
fn a_wait_that_is_interrupted_stops_nothing_else() {
    let folder = TempDir::new().unwrap();
    let owner = Owner::new(folder.path());
    owner.begin(&ticket("ee"));
    let mut wait = start(folder.path(), &["wait", "ee"]);
    // Its first line says that it waits, and so that it has heard of signals.
    let mut said = [0; 1];
    wait.stderr.as_mut().unwrap().read_exact(&mut said).unwrap();
    kill(Pid::from_raw(wait.id() as i32), Signal::SIGINT).unwrap();
    let output = wait.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    assert!(err(&output).ends_with("the call goes on: outlast tasks wait ee000000\n"), "{}", err(&output));
    let Done::Mail(messages) = owner.write(Write::Collect) else { panic!("messages") };
    assert!(messages.is_empty(), "its owner was told something: {messages:?}");
    let late = tasks(folder.path(), &["wait", "ee", "--timeout", "1ms"]);
    assert_eq!(late.status.code(), Some(3), "{}", err(&late));
}

#[test]
fn a_cancel_that_is_interrupted_has_asked_the_owner() {
    let folder = TempDir::new().unwrap();
    let owner = Owner::new(folder.path());
    owner.begin(&ticket("c1"));
    let cancel = start(folder.path(), &["cancel", "c1"]);
    // It listens for signals before it asks.
    let came = wait_until(LIMIT, || match owner.write(Write::Collect) {
        Done::Mail(messages) => matches!(messages[..], [(_, Mail::Cancel)]),
        other => panic!("{other:?}"),
    });
    assert!(came, "no mailbox message came");
    kill(Pid::from_raw(cancel.id() as i32), Signal::SIGINT).unwrap();
    let output = cancel.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", err(&output));
    assert!(err(&output).contains("its owner has been asked to cancel c1000000"), "{}", err(&output));
}

fn start(folder: &Path, words: &[&str]) -> Child {
    let mut command = outlast();
    command.arg("tasks").args(words).arg("--state").arg(folder);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("outlast runs")
}

/// Whoever names the file instead of its folder must not hear that there is nothing.
#[test]
fn a_file_in_place_of_the_folder_is_an_error() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("notes.txt");
    std::fs::write(&file, "mine").unwrap();
    for words in [
        &["list"][..],
        &["list", "--json"],
        &["show", "ab"],
        &["result", "ab"],
        &["cancel", "ab"],
        &["wait", "ab"],
    ] {
        let output = tasks(&file, words);
        assert_eq!((out(&output).as_str(), output.status.code()), ("", Some(4)), "{words:?}");
        let wanted = format!(
            "outlast: `{}` is not a folder; --state (OUTLAST_STATE) names the folder",
            file.display()
        );
        assert!(err(&output).starts_with(&wanted), "{}", err(&output));
    }
    for words in [&["keep", "list"][..], &["keep", "list", "--json"], &["keep", "stop"]] {
        let output = outlast().args(words).arg("--state").arg(&file).output().unwrap();
        assert_eq!((out(&output).as_str(), output.status.code()), ("", Some(1)), "{words:?}");
        assert!(err(&output).contains("is not a folder"), "{}", err(&output));
    }
    assert_eq!(std::fs::read(&file).unwrap(), b"mine");
}

#[test]
fn on_a_terminal_a_wait_is_one_living_line() {
    let folder = TempDir::new().unwrap();
    let owner = Owner::new(folder.path());
    owner.begin(&ticket("ab"));
    let terminal = nix::pty::openpty(None, None).unwrap();
    let mut command = outlast();
    command.args(["tasks", "wait", "ab", "--state"]).arg(folder.path()).env("TERM", "xterm");
    let mut wait = command.stdout(Stdio::piped()).stderr(terminal.slave).spawn().unwrap();
    // With it goes our copy of the terminal's other end, so that reading ends with the process.
    drop(command);
    let mut screen = std::fs::File::from(terminal.master);
    let mut seen = Vec::new();
    while !String::from_utf8_lossy(&seen).contains("outlast: ab000000 (build): working · ") {
        let mut byte = [0];
        screen.read_exact(&mut byte).unwrap();
        seen.push(byte[0]);
    }
    owner.end(&ticket("ab"), State::Completed, Answer::Result(Bytes::from_static(b"[1]")));
    let mut out = String::new();
    wait.stdout.take().unwrap().read_to_string(&mut out).unwrap();
    assert_eq!((out.as_str(), wait.wait().unwrap().code()), ("[1]\n", Some(0)));
    // A terminal without another end is read to an error.
    let _ = screen.read_to_end(&mut seen);
    let seen = String::from_utf8_lossy(&seen);
    assert!(seen.starts_with("\r\x1b[K") && seen.ends_with("\r\x1b[K"), "{seen:?}");
    assert!(!seen.contains('\n'), "more than one line: {seen:?}");
}
