//! outlast under a service manager: what it is told, the socket that it passes, and the units that we give people.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use nix::sys::signal::Signal;
use outlast_testkit::peer::{LIMIT, Peer, Streams};
use serde_json::json;

use crate::http_world::{answer_below, listening, outlast_alone};
use crate::world::{OUTLAST, fake_server};

/// The socket that a service manager reads, and the command with its name.
fn manager(command: &mut Command) -> (UnixDatagram, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    socket.set_read_timeout(Some(LIMIT)).unwrap();
    command.env("NOTIFY_SOCKET", path);
    (socket, folder)
}

fn told(manager: &UnixDatagram) -> String {
    let mut message = [0; 4096];
    let length = manager.recv(&mut message).expect("the manager is told");
    String::from_utf8_lossy(&message[..length]).into_owned()
}

#[test]
fn a_service_manager_is_told_when_requests_are_taken_and_when_calls_end() {
    let mut command = outlast_alone();
    command.args(["serve", "--listen", "127.0.0.1:0", "--"]).arg(fake_server());
    let (manager, _folder) = manager(&mut command);
    let mut served = listening(&mut command);
    let ready = told(&manager);
    assert!(ready.starts_with("READY=1\nSTATUS=listening on http://127.0.0.1:"), "{ready}");
    let mut session = served.session();
    let (mut call, _) = session.begin_call("silent", &json!({"ms": 300}));
    let (status, head) = call.head();
    assert_eq!(status, 200);
    served.process.signal(Signal::SIGTERM);
    assert!(told(&manager).starts_with("STOPPING=1\n"));
    // Nothing that runs is lost by that.
    assert!(answer_below(&mut call, &head)["result"].is_object());
    assert!(served.process.end().success());
}

#[test]
fn a_client_that_came_before_outlast_is_served_on_the_socket_that_was_passed() {
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut early = TcpStream::connect(socket.local_addr().unwrap()).unwrap();
    early.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
    let mut outlast = with_sockets(1, socket.into());
    let mut response = String::new();
    early.set_read_timeout(Some(LIMIT)).unwrap();
    early.read_to_string(&mut response).unwrap();
    assert!(response.starts_with("HTTP/1.1 200 OK"), "{response}");
    outlast.signal(Signal::SIGTERM);
    assert!(outlast.end().success());
}

/// systemd's own activation: it listens, and becomes outlast when the first client comes.
#[cfg(target_os = "linux")]
#[test]
fn systemd_starts_outlast_for_the_first_client() {
    let address = format!("127.0.0.1:{}", outlast_testkit::postgres::free_port());
    let mut command = Command::new("systemd-socket-activate");
    command.args(["-l", &address, "-E", "OUTLAST_STATE=none", OUTLAST, "serve", "--"]).arg(fake_server());
    command.stdin(Stdio::null()).stdout(Stdio::null());
    let mut outlast = Peer::start_with(&mut command, Streams::default());
    outlast.stderr_where(|text| text.contains("Listening on"));
    let mut client = TcpStream::connect(&address).unwrap();
    client.set_read_timeout(Some(LIMIT)).unwrap();
    client.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
    let mut response = String::new();
    client.read_to_string(&mut response).unwrap();
    assert!(response.starts_with("HTTP/1.1 200 OK"), "{response}");
    outlast.stderr_where(|text| text.contains(&format!("listening on http://{address}/mcp")));
    outlast.signal(Signal::SIGTERM);
    assert!(outlast.end().success());
}

#[test]
fn what_is_passed_and_is_not_one_listening_socket_is_refused() {
    let file = std::fs::File::open("/dev/null").unwrap();
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    for (count, passed, why) in
        [(1, OwnedFd::from(file), "not a listening TCP socket"), (2, socket.into(), "2 sockets")]
    {
        let mut outlast = with_sockets(count, passed);
        assert_eq!(outlast.end().code(), Some(2));
        let stderr = String::from_utf8(outlast.all_stderr()).unwrap();
        assert!(stderr.contains(why) && stderr.contains("LISTEN_FDS"), "{stderr}");
    }
}

/// `outlast serve` with a descriptor at the place where a service manager puts it.
fn with_sockets(count: u32, passed: OwnedFd) -> Peer {
    let script = format!(r#"exec env LISTEN_PID=$$ LISTEN_FDS={count} "$0" "$@" 3<&0 < /dev/null"#);
    let mut command = Command::new("sh");
    command.args(["-c", &script, OUTLAST, "serve", "--"]).arg(fake_server());
    command.env("OUTLAST_STATE", "none").stdin(Stdio::from(passed)).stdout(Stdio::null());
    Peer::start_with(&mut command, Streams::default())
}

fn packaging(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging").join(path)
}

/// systemd's own opinion of the units, with the program that is there in the place of the installed one.
#[cfg(target_os = "linux")]
#[test]
fn systemd_finds_nothing_wrong_with_our_units() {
    let folder = tempfile::tempdir().unwrap();
    for (given, manager) in [("systemd", "--system"), ("systemd/user", "--user")] {
        let mut units = Vec::new();
        for unit in ["outlast.service", "outlast.socket"] {
            let Ok(text) = std::fs::read_to_string(packaging(given).join(unit)) else { continue };
            let path = folder.path().join(unit);
            std::fs::write(&path, text.replace("/usr/bin/outlast", OUTLAST)).unwrap();
            units.push(path);
        }
        assert!(!units.is_empty());
        let mut verify = Command::new("systemd-analyze");
        verify.args(["verify", "--man=no", manager]).args(&units).env("XDG_RUNTIME_DIR", folder.path());
        let output = verify.output().expect("systemd is installed (`cargo xtask needs`)");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success() && !said.contains("outlast"), "{manager}: {said}");
        units.iter().for_each(|unit| std::fs::remove_file(unit).unwrap());
    }
}
