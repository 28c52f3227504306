//! A file that changes while its servers run, and servers that are quiet, unused, or started early.

use crate::gateway::token;
use crate::http_world::{ACCEPT, JSON, Session, listening, outlast_alone};
use crate::world::{Tree, fake_server};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use outlast_testkit::peer::{Peer, wait_until};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::Duration;

const SOON: Duration = Duration::from_secs(20);

/// One server of the file, that knows who it is.
fn server(name: &str, who: &str, more: &str) -> String {
    let program = fake_server();
    format!(
        "[servers.{name}]\ncommand = \"{}\"\nenv = {{ WHO = \"{who}\", FAKE_TOOLS = \"echo silent tell_environment tell_pid\" }}\n{more}\n",
        program.display()
    )
}

/// Writes a file beside the real one and renames it into its place, as editors do.
fn put(path: &Path, text: &str) {
    let beside = path.with_extension("new");
    fs::write(&beside, text).unwrap();
    fs::rename(&beside, path).unwrap();
}

fn connected(path: &Path) -> Peer {
    let mut command = outlast_alone();
    command.args(["--log", "info", "--config"]).arg(path);
    let mut client = Peer::start(&mut command);
    client.handshake();
    client
}

fn who(client: &mut Peer, server: &str) -> Value {
    client.call(&format!("{server}__tell_environment"), &json!({}))["result"]["structuredContent"]["WHO"]
        .clone()
}

fn pid(client: &mut Peer, server: &str) -> u64 {
    client.value_of(&format!("{server}__tell_pid"), &json!({})).as_u64().unwrap()
}

#[test]
fn a_file_that_is_renamed_into_its_place_is_read_and_calls_of_other_servers_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("outlast.toml");
    put(&path, &(server("alpha", "one", "") + &server("beta", "b", "")));
    let mut client = connected(&path);
    assert_eq!(who(&mut client, "alpha"), "one");
    let beta = pid(&mut client, "beta");
    let slow = client.begin("beta__silent", &json!({"ms": 4000}));
    let slow_too = client.begin("alpha__silent", &json!({"ms": 3000}));
    put(&path, &(server("alpha", "two", "") + &server("beta", "b", "") + &server("gamma", "g", "")));
    client.message("notifications/tools/list_changed");
    // The call that was there keeps its server, and the next one gets the new program.
    assert_eq!(who(&mut client, "alpha"), "two");
    assert!(client.answer(&slow_too).get("result").is_some());
    assert!(client.answer(&slow).get("result").is_some());
    assert_eq!(pid(&mut client, "beta"), beta);
    let list = client.request("tools/list", &json!({}));
    client.answer(&list);
    assert_eq!(who(&mut client, "gamma"), "g");
    // And it goes again.
    put(&path, &(server("alpha", "two", "") + &server("beta", "b", "")));
    assert!(wait_until(SOON, || client.stderr().contains("gone: gamma")), "{}", client.stderr());
    assert_eq!(client.call("gamma__echo", &json!({}))["error"]["code"], -32602);
    assert_eq!(pid(&mut client, "beta"), beta);
}

/// As Kubernetes does it: the file is a link through `..data`, which is turned to another folder.
#[test]
fn a_link_that_is_turned_to_another_folder_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    for (version, who) in [("..v1", "one"), ("..v2", "two")] {
        fs::create_dir(at(version)).unwrap();
        fs::write(at(version).join("outlast.toml"), "include = [\"more.toml\"]\n").unwrap();
        fs::write(at(version).join("more.toml"), server("alpha", who, "")).unwrap();
    }
    symlink("..v1", at("..data")).unwrap();
    symlink("..data/outlast.toml", at("outlast.toml")).unwrap();
    let mut client = connected(&at("outlast.toml"));
    assert_eq!(who(&mut client, "alpha"), "one");
    symlink("..v2", at("..data_tmp")).unwrap();
    fs::rename(at("..data_tmp"), at("..data")).unwrap();
    assert!(wait_until(SOON, || client.stderr().contains("restarted: alpha")), "{}", client.stderr());
    assert_eq!(who(&mut client, "alpha"), "two");
    // An included file alone counts as well.
    put(&at("..v2/more.toml"), &server("alpha", "three", ""));
    assert!(wait_until(SOON, || who(&mut client, "alpha") == "three"), "{}", client.stderr());
}

#[test]
fn a_file_with_a_mistake_changes_nothing_and_says_where() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("outlast.toml");
    put(&path, &(server("alpha", "one", "") + &server("beta", "b", "")));
    let mut client = connected(&path);
    let before = pid(&mut client, "alpha");
    put(&path, &(server("alpha", "two", "timout = \"5s\"") + &server("beta", "b", "")));
    assert!(wait_until(SOON, || client.stderr().contains("timout")), "{}", client.stderr());
    let told = client.stderr();
    assert!(told.contains("the earlier settings stay in force") && told.contains("outlast.toml:4"), "{told}");
    assert_eq!((pid(&mut client, "alpha"), who(&mut client, "alpha")), (before, "one".into()));
    put(&path, &(server("alpha", "two", "timeout = \"5s\"") + &server("beta", "b", "")));
    assert!(wait_until(SOON, || who(&mut client, "alpha") == "two"), "{}", client.stderr());
}

#[test]
fn a_hang_up_has_a_service_read_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("outlast.toml");
    let listen = "[listen]\nlisten = \"127.0.0.1:0\"\n";
    put(&path, &(server("alpha", "one", "") + listen));
    let mut command = outlast_alone();
    command.args(["serve", "--log", "info", "--config"]).arg(&path);
    let mut served = listening(&mut command);
    let mut session = served.session();
    assert_eq!(session.value_of("tell_environment", &json!({}))["WHO"], "one");
    put(&path, &(server("alpha", "two", "") + listen));
    served.process.signal(Signal::SIGHUP);
    let renewed = wait_until(SOON, || session.value_of("tell_environment", &json!({}))["WHO"] == "two");
    assert!(renewed, "{}", served.process.stderr());
    // The session that began when the server was alone goes on with it when it is not, and the log says so.
    put(&path, &(server("alpha", "two", "") + &server("beta", "b", "") + listen));
    served.process.signal(Signal::SIGHUP);
    assert!(wait_until(SOON, || served.process.stderr().contains("new: beta")));
    served.process.stderr_where(|text| text.contains("1 client that began when `alpha` was the only server"));
    assert_eq!(session.value_of("tell_environment", &json!({}))["WHO"], "two");
}

/// A token that has leaked must not work until somebody finds the time for a restart.
#[test]
fn a_token_that_is_taken_back_lets_nobody_in() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("outlast.toml");
    let ((ann_hash, ann), (bob_hash, bob)) = (token("ann"), token("bob"));
    let whole = server("alpha", "one", "") + "[listen]\nlisten = \"127.0.0.1:0\"\n";
    let of = |name: &str, hash: &str| format!("[tokens.{name}]\nhash = \"{hash}\"\n");
    put(&path, &(whole.clone() + &of("ann", &ann_hash) + &of("bob", &bob_hash)));
    let mut command = outlast_alone();
    command.args(["serve", "--log", "info", "--config"]).arg(&path);
    let mut served = listening(&mut command);
    let mut sessions = [&ann, &bob].map(|token| Session::open(served.address, Some(token)));
    let mut stream = sessions[1].listen(None);
    assert_eq!(stream.head().0, 200);
    put(&path, &(whole.clone() + &of("ann", &ann_hash)));
    served.process.signal(Signal::SIGHUP);
    served.process.stderr_where(|text| text.contains("tokens that are gone or for something else: bob"));
    let ping = json!({"jsonrpc": "2.0", "id": 9, "method": "ping"});
    assert_eq!(sessions[1].post(&ping).status, 401);
    // What it had open ends, after what was written first.
    while stream.event().is_some() {}
    assert_eq!(sessions[0].value_of("echo", &json!({"a": 1})), json!({"a": 1}));
    // Another token under the old name is let in, and gets a session of its own; without any, nobody is.
    let (new_hash, new) = token("bob");
    put(&path, &(whole.clone() + &of("bob", &new_hash)));
    served.process.signal(Signal::SIGHUP);
    served.process.stderr_where(|text| text.contains("something else: ann"));
    assert_eq!((sessions[0].post(&ping).status, sessions[1].post(&ping).status), (401, 401));
    Session::open(served.address, Some(&new));
    put(&path, &whole);
    served.process.signal(Signal::SIGHUP);
    served.process.stderr_where(|text| text.matches("something else: bob").count() == 2);
    assert_eq!(served.ask("POST /mcp", &[ACCEPT, JSON], ping.to_string()).status, 401);
}

#[test]
fn a_server_that_nobody_uses_is_stopped_and_the_next_call_starts_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("outlast.toml");
    put(&path, &(server("alpha", "a", "server-idle = \"300ms\"") + &server("beta", "b", "")));
    let mut client = connected(&path);
    let first = pid(&mut client, "alpha");
    let gone = || !Path::new(&format!("/proc/{first}")).exists();
    assert!(wait_until(SOON, gone), "{}", client.stderr());
    assert_ne!(pid(&mut client, "alpha"), first);
}

#[test]
fn a_quiet_server_that_does_not_answer_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("outlast.toml");
    let quick = "heartbeat = \"200ms\"\ncancel-grace = \"200ms\"";
    put(&path, &(server("alpha", "a", quick) + &server("beta", "b", "")));
    let mut client = connected(&path);
    let first = pid(&mut client, "alpha");
    // Long enough for a heartbeat that is answered.
    std::thread::sleep(Duration::from_secs(1));
    kill(Pid::from_raw(first as i32), Signal::SIGSTOP).unwrap();
    assert!(wait_until(SOON, || client.stderr().contains("`alpha` hangs")), "{}", client.stderr());
    assert_ne!(pid(&mut client, "alpha"), first);
}

#[test]
fn an_eager_server_runs_before_anybody_comes() {
    let folder = tempfile::tempdir().unwrap();
    let path: PathBuf = folder.path().join("outlast.toml");
    put(&path, &(server("alpha", "a", "start = \"eager\"") + &server("beta", "b", "")));
    let mut command = outlast_alone();
    command.arg("--config").arg(&path);
    let tree = Tree::mark(&mut command);
    let mut client = Peer::start(&mut command);
    let runs = |tree: &Tree| {
        let name = |pid: &u32| fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        tree.processes().iter().filter(|pid| name(pid).starts_with("fake_server")).count()
    };
    assert!(wait_until(SOON, || runs(&tree) == 1));
    client.handshake();
    assert_eq!(who(&mut client, "alpha"), "a");
    assert!(wait_until(SOON, || runs(&tree) == 2), "no second process of the eager one");
}
