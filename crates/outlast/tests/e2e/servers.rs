//! `outlast servers` and `/readyz`: how the servers are of every process that has several, or serves.

use crate::gateway::token;
use crate::http_world::{listening, outlast_alone};
use crate::world::fake_server;
use nix::sys::signal::Signal;
use outlast_testkit::peer::{Peer, wait_until};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const SOON: Duration = Duration::from_secs(20);

struct World {
    folder: tempfile::TempDir,
}

impl World {
    fn new(text: &str) -> World {
        let world = World { folder: tempfile::tempdir().unwrap() };
        std::fs::write(world.file(), text.replace("SERVER", &fake_server().display().to_string())).unwrap();
        world
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("outlast.toml")
    }

    fn outlast(&self) -> Command {
        let mut command = outlast_alone();
        command.env("OUTLAST_STATE", self.folder.path().join("state"));
        command
    }

    /// What every process says of its servers.
    fn processes(&self) -> Vec<Value> {
        let output = self.outlast().args(["servers", "--json"]).output().unwrap();
        assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
        let said: Value = serde_json::from_slice(&output.stdout).unwrap();
        said["processes"].as_array().unwrap().clone()
    }

    /// One server of the only process.
    fn server(&self, name: &str) -> Value {
        let processes = self.processes();
        assert_eq!(processes.len(), 1, "{processes:?}");
        let servers = processes[0]["servers"].as_array().unwrap();
        servers.iter().find(|server| server["name"] == name).unwrap_or(&Value::Null).clone()
    }
}

const TWO: &str = "[servers.alpha]\ncommand = \"SERVER\"\nenv = { KEY = \"s3cret\", FAKE_TOOLS = \"echo die hang\" }\n\
                   [servers.gone]\ncommand = \"/no/such/server\"\n";

#[test]
fn a_gateway_tells_how_its_servers_are() {
    let world = World::new(TWO);
    let mut client = Peer::start(world.outlast().arg("--config").arg(world.file()));
    client.handshake();
    client.value_of("alpha__echo", &json!({}));
    let alpha = world.server("alpha");
    let told = ["state", "era", "version", "running", "restarts"].map(|name| alpha[name].clone());
    assert_eq!(told, [json!("ready"), json!("legacy"), json!("fake-server 1"), json!(1), json!(0)]);
    let gone = world.server("gone");
    assert_eq!(gone["state"], "failed", "{gone}");
    assert!(gone["error"].as_str().unwrap().contains("not found"), "{gone}");
    // A crash is told after the server is back, too.
    client.call("alpha__die", &json!({"signal": 9}));
    assert!(wait_until(SOON, || world.server("alpha")["state"] == "ready"), "{}", world.server("alpha"));
    let alpha = world.server("alpha");
    assert_eq!((&alpha["restarts"], &alpha["error"]), (&json!(1), &json!("signal 9")), "{alpha}");
    client.begin("alpha__hang", &json!({}));
    assert!(wait_until(SOON, || world.server("alpha")["inFlight"] == 1), "{}", world.server("alpha"));
    let shown = world.outlast().arg("servers").output().unwrap();
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(shown.contains("outlast.toml\n  SERVER") && shown.contains("\n  gone    failed"), "{shown}");
    assert!(!shown.contains("s3cret"));
    client.close_input();
    client.end();
    assert_eq!(world.processes(), Vec::<Value>::new());
}

#[test]
fn a_mistake_in_a_changed_file_is_told_until_it_is_mended() {
    let world = World::new(TWO);
    let mut client = Peer::start(world.outlast().arg("--config").arg(world.file()));
    client.handshake();
    let good = std::fs::read_to_string(world.file()).unwrap();
    let mistakes = || world.processes()[0]["mistakes"].as_array().unwrap().clone();
    assert_eq!(mistakes(), Vec::<Value>::new());
    std::fs::write(world.file(), good.clone() + "timout = 1\n").unwrap();
    assert!(wait_until(SOON, || !mistakes().is_empty()));
    assert!(
        mistakes()[0].as_str().unwrap().contains("outlast.toml:6:1: unknown key `timout`"),
        "{:?}",
        mistakes()
    );
    std::fs::write(world.file(), good).unwrap();
    assert!(wait_until(SOON, || mistakes().is_empty()), "{:?}", mistakes());
}

/// The socket of a killed process is cleared away, and only its user may use one.
#[test]
fn what_a_killed_process_leaves_is_cleared_away() {
    let world = World::new(TWO);
    let mut one = Peer::start(world.outlast().arg("--config").arg(world.file()));
    let mut other = Peer::start(world.outlast().arg("--config").arg(world.file()));
    one.handshake();
    other.handshake();
    assert_eq!(world.processes().len(), 2);
    let folder = world.folder.path().join("state/servers");
    let mode = |path: &Path| std::os::unix::fs::MetadataExt::mode(&std::fs::metadata(path).unwrap()) & 0o777;
    let sockets =
        || std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect::<Vec<_>>();
    assert_eq!(mode(&folder), 0o700);
    assert!(sockets().iter().all(|socket| mode(socket) == 0o600));
    one.signal(Signal::SIGKILL);
    one.end();
    assert_eq!((world.processes().len(), sockets().len()), (1, 1));
}

/// With several servers one that fails is no reason to send clients elsewhere; when all have failed, it is.
#[test]
fn readyz_says_how_the_servers_are_to_whom_it_lets_in() {
    let ((ann_hash, ann), (bob_hash, bob)) = (token("ann"), token("bob"));
    let tokens = format!(
        "[listen]\nlisten = \"127.0.0.1:0\"\n[tokens.ann]\nhash = \"{ann_hash}\"\n\
         [tokens.bob]\nhash = \"{bob_hash}\"\nservers = [\"gone\"]\n"
    );
    let eager = TWO.replace("[servers.gone]\n", "[servers.gone]\nstart = \"eager\"\n");
    let world = World::new(&(eager + &tokens));
    let served = listening(world.outlast().args(["serve", "--config"]).arg(world.file()));
    let ready = |who: &[(&str, &str)]| {
        let answer = served.ask("GET /readyz", who, "");
        assert_eq!(answer.header("Content-Type"), Some("application/json"));
        (answer.status, answer.json())
    };
    assert!(wait_until(SOON, || ready(&[("Authorization", &ann)]).1["servers"][1]["state"] == "failed"));
    let (status, all) = ready(&[("Authorization", &ann)]);
    let expected = json!({"ready": true, "servers": [
        {"name": "alpha", "state": "not-started"}, {"name": "gone", "state": "failed"}]});
    assert_eq!((status, &all), (200, &expected));
    let (status, some) = ready(&[("Authorization", &bob)]);
    let expected = json!({"ready": true, "servers": [{"name": "gone", "state": "failed"}]});
    assert_eq!((status, &some), (200, &expected));
    assert_eq!(ready(&[]), (200, json!({"ready": true})));
    let process = &world.processes()[0];
    assert_eq!(process["address"].as_str().unwrap(), format!("http://{}/mcp", served.address));
}
