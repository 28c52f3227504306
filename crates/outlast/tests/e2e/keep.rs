//! `outlast --keep`: calls that outlive the client that made them.

use std::fs::{metadata, read_dir};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use outlast_testkit::peer::{LIMIT, Peer, wait_until};
use serde_json::{Value, from_slice, json};
use tempfile::TempDir;

use crate::world::{Tree, fake_server, outlast};

/// A state folder, and what was started with it.
struct Home {
    folder: TempDir,
    flags: Vec<&'static str>,
    tree: Tree,
}

impl Home {
    fn new(flags: &[&'static str]) -> Home {
        Home { folder: TempDir::new().unwrap(), flags: flags.into(), tree: Tree::new() }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    /// `outlast --keep --state FOLDER FLAGS -- fake-server`
    fn command(&self) -> Command {
        let mut command = outlast();
        command.args(["--keep", "--state"]).arg(self.path()).args(&self.flags).arg("--").arg(fake_server());
        command
    }

    fn start(&mut self) -> Peer {
        let mut command = self.command();
        self.tree.marks(&mut command);
        Peer::start(&mut command)
    }

    /// A client whose server has a token.
    fn client_with_token(&mut self, token: &str) -> Peer {
        let mut command = self.command();
        self.tree.marks(&mut command);
        let mut client = Peer::start(command.env("API_TOKEN", token));
        client.handshake();
        client
    }

    /// The same, ready for calls.
    fn client(&mut self) -> Peer {
        let mut client = self.start();
        let answer = client.handshake();
        assert!(answer["result"]["capabilities"]["tasks"].is_object(), "{answer}");
        client
    }

    /// `outlast WORDS --state FOLDER`
    fn run(&self, words: &[&str]) -> Output {
        outlast().args(words).arg("--state").arg(self.path()).output().expect("outlast runs")
    }

    fn services(&self) -> Vec<Value> {
        from_slice(&self.run(&["keep", "list", "--json"]).stdout).expect("JSON")
    }

    fn wait_until_gone(&self) {
        self.tree.wait_until_gone();
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        // Nothing of a test that has failed stays behind, either.
        self.run(&["keep", "stop"]);
    }
}

/// Calls a tool as a task; its id.
fn begin(client: &mut Peer, tool: &str, arguments: &Value) -> String {
    let id = client.request("tools/call", &json!({"name": tool, "arguments": arguments, "task": {}}));
    let answer = client.answer(&id);
    answer["result"]["task"]["taskId"].as_str().unwrap_or_else(|| panic!("no task: {answer}")).to_owned()
}

fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn two_clients_share_one_service_that_nobody_else_can_reach() {
    let mut home = Home::new(&[]);
    let (mut one, mut two) = (home.client(), home.client());
    assert_eq!(one.value_of("tell_pid", &json!({})), two.value_of("tell_pid", &json!({})));
    let services = home.services();
    assert_eq!(services.len(), 1, "{services:?}");
    assert_eq!(
        (&services[0]["inUse"], &services[0]["service"]["server"]),
        (&json!(true), &json!("fake_server"))
    );
    let mode = |path: &Path| metadata(path).unwrap().permissions().mode() & 0o777;
    let folder = home.path().join("keep");
    assert_eq!(mode(&folder), 0o700);
    for entry in read_dir(&folder).unwrap().flatten() {
        assert_eq!(mode(&entry.path()), 0o600, "{:?}", entry.path());
    }
    one.hang_up();
    assert_eq!(two.value_of("echo", &json!({"still": "there"})), json!({"still": "there"}));
    two.hang_up();
    let stop = home.run(&["keep", "stop"]);
    assert!(stop.status.success() && err(&stop).starts_with("outlast: stopped "), "{}", err(&stop));
    home.wait_until_gone();
    assert_eq!(home.services(), Vec::<Value>::new());
    assert_eq!(read_dir(&folder).unwrap().count(), 0, "files are left");
}

/// What killed services left is removed by a stop of all; a service in use keeps its files.
#[test]
fn a_stop_leaves_no_files() {
    let mut home = Home::new(&[]);
    let mut client = home.client();
    let pid = home.services()[0]["service"]["pid"].as_i64().unwrap();
    client.hang_up();
    kill(Pid::from_raw(pid as i32), Signal::SIGKILL).unwrap();
    home.wait_until_gone();
    let folder = home.path().join("keep");
    assert!(wait_until(LIMIT, || home.services().is_empty()));
    assert!(read_dir(&folder).unwrap().count() > 0);
    assert!(home.run(&["keep", "stop"]).status.success());
    assert_eq!(read_dir(&folder).unwrap().count(), 0, "files are left");
    // The next door finds an empty folder, and all works.
    assert_eq!(home.client().value_of("echo", &json!({"a": 1})), json!({"a": 1}));
}

/// There is nothing to keep: the client is told at once, as without `--keep`.
#[test]
fn a_command_that_is_missing_is_told_at_once() {
    let home = Home::new(&[]);
    let mut command = outlast();
    command.args(["--keep", "--state"]).arg(home.path()).args(["--", "/no/such/server"]);
    let mut client = Peer::start(&mut command);
    let id = client.request("initialize", &json!({}));
    let answer = client.answer(&id);
    assert_eq!(answer["error"]["code"], -31003, "{answer}");
    assert_eq!(client.end().code(), Some(127));
    let stderr = String::from_utf8(client.all_stderr()).unwrap();
    assert!(stderr.contains("cannot start `/no/such/server`: command not found"), "{stderr}");
    assert!(home.services().is_empty());
}

#[test]
fn the_variable_is_as_good_as_the_flag() {
    let mut home = Home::new(&[]);
    let start = |value: &str, tree: &mut Tree| {
        let mut command = outlast();
        command
            .env("OUTLAST_KEEP", value)
            .arg("--state")
            .arg(home.folder.path())
            .arg("--")
            .arg(fake_server());
        tree.marks(&mut command);
        let mut client = Peer::start(&mut command);
        client.handshake();
        client
    };
    let mut kept = start("true", &mut home.tree);
    assert_eq!(home.services().len(), 1);
    kept.hang_up();
    assert_eq!(String::from_utf8(kept.all_stderr()).unwrap(), "");
    home.run(&["keep", "stop"]);
    let mut plain = start("false", &mut home.tree);
    assert_eq!(home.services(), Vec::<Value>::new());
    plain.hang_up();
}

/// Two entries of one configuration with the same command and other credentials are two servers.
#[test]
fn servers_with_other_credentials_share_no_process_and_no_ticket() {
    let mut home = Home::new(&[]);
    let (mut one, mut two) = (home.client_with_token("a"), home.client_with_token("b"));
    assert_ne!(one.value_of("tell_pid", &json!({})), two.value_of("tell_pid", &json!({})));
    assert_eq!(home.services().len(), 2);
    let task = begin(&mut one, "silent", &json!({"ms": 10}));
    let id = two.request("tasks/get", &json!({"taskId": task}));
    assert!(two.answer(&id)["error"].is_object());
    let mut again = home.client_with_token("a");
    assert_eq!(one.value_of("tell_pid", &json!({})), again.value_of("tell_pid", &json!({})));
    let id = again.request("tasks/result", &json!({"taskId": task}));
    assert_eq!(again.answer(&id)["result"]["structuredContent"], "done");
    for entry in walk(home.path()) {
        let found = std::fs::read(&entry).unwrap_or_default();
        assert!(!found.windows(9).any(|part| part == b"API_TOKEN"), "{}", entry.display());
    }
}

/// Every file below a folder.
fn walk(folder: &Path) -> Vec<std::path::PathBuf> {
    let entries = read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let (folders, mut files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
    files.retain(|path| path.is_file());
    files.into_iter().chain(folders.iter().flat_map(|folder| walk(folder))).collect()
}

/// A client that declares `resumableRequests` resumes a call at the service, through whichever door.
#[test]
fn a_killed_client_resumes_its_call_through_another_door() {
    let mut home = Home::new(&[]);
    let resumes = |home: &mut Home| {
        let mut client = home.start();
        let who = json!({"name": "test", "version": "1"});
        let capabilities = json!({"resumableRequests": {}});
        let params =
            json!({"protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": who});
        client.send(json!({"jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": params}));
        assert!(client.answer(&json!("hello"))["result"].is_object());
        client.send(json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        client
    };
    let mut client = resumes(&mut home);
    // So that the numbers of the two doors differ.
    client.value_of("echo", &json!({}));
    let arguments = json!({"every_ms": 300, "values": [1, 2, 3, 4, 5, 6]});
    let params = json!({"name": "progress", "arguments": arguments, "_meta": {"progressToken": "t"}});
    client.send(json!({"jsonrpc": "2.0", "id": 77, "method": "tools/call", "params": params}));
    let policy = client.message_where(|message| message["params"]["requestId"] == 77);
    assert_eq!(policy["method"], "notifications/requests/resumePolicy");
    let token = policy["params"]["resumeToken"].clone();
    client.message_where(|message| message["params"]["progressToken"] == "t");
    client.signal(Signal::SIGKILL);
    client.end();

    let mut client = resumes(&mut home);
    let params = json!({"requestId": 77, "resumeToken": token});
    client.send(json!({"jsonrpc": "2.0", "id": 5, "method": "requests/getStatus", "params": params}));
    let status = client.answer(&json!(5));
    assert_eq!(status["result"]["requestId"], 77, "{status}");
    assert_eq!(status["result"]["status"], "processing", "{status}");
    let params = json!({"resumeToken": token});
    client.send(json!({"jsonrpc": "2.0", "id": 77, "method": "requests/resume", "params": params}));
    client.message_where(|message| message["params"]["progressToken"] == "t");
    assert_eq!(client.answer(&json!(77))["result"]["structuredContent"], "done");
    // A token that was changed is nobody's.
    let wrong = token.as_str().expect("text").replace('.', "0.");
    let params = json!({"resumeToken": wrong});
    client.send(json!({"jsonrpc": "2.0", "id": 77, "method": "requests/resume", "params": params}));
    assert_eq!(client.answer(&json!(77))["error"]["code"], -31010);
}

/// A server may be talkative for months.
#[test]
fn its_log_does_not_grow_without_bound() {
    let mut home = Home::new(&[]);
    let mut client = home.client();
    let logs = |home: &Home| {
        let files = walk(home.path()).into_iter().filter(|path| path.to_string_lossy().contains(".log"));
        files.map(|path| metadata(path).map_or(0, |file| file.len())).collect::<Vec<u64>>()
    };
    for _ in 0..6 {
        client.value_of("flood_stderr", &json!({"bytes": 700_000}));
    }
    assert!(wait_until(LIMIT, || logs(&home).len() == 2), "{:?}", logs(&home));
    assert!(logs(&home).iter().all(|length| *length < 1_300_000), "{:?}", logs(&home));
}

#[test]
fn clients_that_come_at_once_start_one_service() {
    let mut home = Home::new(&[]);
    let mut clients: Vec<Peer> = (0..6).map(|_| home.start()).collect();
    clients.iter_mut().for_each(|client| drop(client.handshake()));
    let pids: Vec<Value> = clients.iter_mut().map(|client| client.value_of("tell_pid", &json!({}))).collect();
    assert!(pids.iter().all(|pid| *pid == pids[0]), "{pids:?}");
    assert_eq!(home.services().len(), 1);
}

#[test]
fn a_killed_client_comes_back_for_its_result() {
    let mut home = Home::new(&[]);
    let mut client = home.client();
    let id = begin(&mut client, "silent", &json!({"ms": 1000}));
    client.signal(Signal::SIGKILL);
    client.end();

    let mut client = home.client();
    let asked = client.request("tasks/get", &json!({"taskId": id}));
    let answer = client.answer(&asked);
    assert_eq!(answer["result"]["status"], "working", "{answer}");
    let asked = client.request("tasks/result", &json!({"taskId": id}));
    let answer = client.answer(&asked);
    assert_eq!(answer["result"]["structuredContent"], "done", "{answer}");
    let listed = client.request("tasks/list", &json!({}));
    let listed = client.answer(&listed);
    assert_eq!(listed["result"]["tasks"][0]["taskId"], json!(id), "{listed}");
}

#[test]
fn it_ends_by_itself_but_not_before_its_last_call() {
    // Ended early, it would not wait for its calls.
    let mut home = Home::new(&["--resume-wait", "200ms", "--drain", "100ms"]);
    let mut client = home.client();
    let id = begin(&mut client, "silent", &json!({"ms": 1000}));
    client.hang_up();
    home.wait_until_gone();
    let result = home.run(&["tasks", "result", &id]);
    assert_eq!(result.status.code(), Some(0), "{}", err(&result));
    assert!(
        read_dir(home.path().join("keep"))
            .unwrap()
            .flatten()
            .all(|entry| { entry.path().extension().is_none_or(|kind| kind != "sock") })
    );
    // And the next client finds another one, in which the result is still there.
    let mut client = home.client();
    let asked = client.request("tasks/result", &json!({"taskId": id}));
    assert_eq!(client.answer(&asked)["result"]["structuredContent"], "done");
    client.hang_up();
    home.wait_until_gone();
}

#[test]
fn clients_that_come_while_it_ends_are_served() {
    let mut home = Home::new(&["--resume-wait", "1ms"]);
    let mut seen = std::collections::BTreeSet::new();
    // How far the end of the one before has come is another matter each time.
    for number in 0..25 {
        let mut client = home.client();
        assert_eq!(client.value_of("echo", &json!({"n": number})), json!({"n": number}));
        seen.insert(client.value_of("tell_pid", &json!({})).to_string());
        client.hang_up();
        if number % 3 == 0 {
            home.wait_until_gone();
        }
    }
    assert!(seen.len() >= 9, "services did not end: {seen:?}");
    home.wait_until_gone();
}

#[test]
fn it_stays_as_long_as_a_client_is_there() {
    let mut home = Home::new(&["--resume-wait", "50ms"]);
    let mut client = home.client();
    let before = client.value_of("tell_pid", &json!({}));
    client.call("silent", &json!({"ms": 600}));
    let mut other = home.client();
    other.call("silent", &json!({"ms": 600}));
    assert_eq!(client.value_of("tell_pid", &json!({})), before);
}

#[test]
fn a_door_leaves_nothing_open_and_ends_alone() {
    let mut home = Home::new(&[]);
    let mut client = home.client();
    assert!(client.hang_up().success());
    // Both streams have come to their end although the service still runs.
    client.rest();
    client.all_stderr();
    assert_eq!(home.services().len(), 1);
    assert_eq!(home.services()[0]["inUse"], json!(false));
}

#[test]
fn a_service_that_was_killed_or_stopped_is_replaced() {
    let mut home = Home::new(&[]);
    let mut client = home.client();
    let first = home.services()[0]["service"]["pid"].as_i64().unwrap();
    kill(Pid::from_raw(first as i32), Signal::SIGKILL).unwrap();
    let is_first = |service: &Value| service["service"]["pid"].as_i64() == Some(first);
    assert!(wait_until(LIMIT, || !home.services().iter().any(is_first)), "the dead one is still listed");
    // The one that is there goes on with another service, and the socket of the dead one is in nobody's way.
    let answer = client.call("echo", &json!({"n": 1}));
    assert_eq!(answer["result"]["structuredContent"], json!({"n": 1}), "{answer}");
    let mut other = home.client();
    assert_eq!(other.value_of("tell_pid", &json!({})), client.value_of("tell_pid", &json!({})));
    let second = home.services()[0]["service"]["pid"].as_i64().unwrap();
    assert_ne!(first, second);
    assert!(home.run(&["keep", "stop", "fake_server"]).status.success());
    let answer = client.call("echo", &json!({"n": 2}));
    assert_eq!(answer["result"]["structuredContent"], json!({"n": 2}), "{answer}");
    client.hang_up();
    other.hang_up();
    home.run(&["keep", "stop"]);
    home.wait_until_gone();
}

#[test]
fn what_was_begun_without_it_is_found_with_it() {
    let mut home = Home::new(&[]);
    let mut command = outlast();
    command.args(["--tasks", "--state"]).arg(home.path()).arg("--").arg(fake_server());
    home.tree.marks(&mut command);
    let mut client = Peer::start(&mut command);
    client.handshake();
    let id = begin(&mut client, "echo", &json!({"n": 1}));
    let asked = client.request("tasks/result", &json!({"taskId": id}));
    client.answer(&asked);
    client.hang_up();
    let mut client = home.client();
    let asked = client.request("tasks/result", &json!({"taskId": id}));
    let answer = client.answer(&asked);
    assert_eq!(answer["result"]["structuredContent"], json!({"n": 1}), "{answer}");
}

#[test]
fn other_options_are_another_service() {
    let mut home = Home::new(&[]);
    let mut one = home.client();
    home.flags = vec!["--task-ttl", "2h"];
    let mut two = home.client();
    assert_ne!(one.value_of("tell_pid", &json!({})), two.value_of("tell_pid", &json!({})));
    assert_eq!(home.services().len(), 2);
    let stop = home.run(&["keep", "stop", "nothing"]);
    assert_eq!(stop.status.code(), Some(1));
    assert!(err(&stop).contains("no service is called `nothing`; "), "{}", err(&stop));
    assert_eq!(home.services().len(), 2);
}

#[test]
fn limits_are_those_of_the_options_and_fire_once() {
    let mut home = Home::new(&["--timeout", "300ms"]);
    let mut client = home.client();
    let answer = client.call("hang", &json!({}));
    assert_eq!(answer["error"]["data"]["outlast"]["setting"], "--timeout", "{answer}");
    assert_eq!(answer["error"]["data"]["outlast"]["limitMs"], 300);
}

#[test]
fn without_a_folder_it_says_what_is_missing() {
    let without = outlast().args(["--keep", "--state", "none", "--", "cat"]).output().unwrap();
    assert_eq!(without.status.code(), Some(2));
    assert!(err(&without).contains("--keep needs a folder"), "{}", err(&without));
    let home = Home::new(&[]);
    let file = home.path().join("file");
    std::fs::write(&file, "").unwrap();
    let blocked = outlast().args(["--keep", "--state"]).arg(&file).args(["--", "cat"]).output().unwrap();
    assert_eq!(blocked.status.code(), Some(2));
    assert!(err(&blocked).contains("name another folder with --state DIR"), "{}", err(&blocked));
    let long = home.path().join("x".repeat(100));
    let long = outlast().args(["--keep", "--state"]).arg(&long).args(["--", "cat"]).output().unwrap();
    assert!(err(&long).contains("too long for a socket"), "{}", err(&long));
    let wrong = outlast().args(["--keep", "https://host/mcp"]).output().unwrap();
    assert!(err(&wrong).contains("--keep needs a command"), "{}", err(&wrong));
}
