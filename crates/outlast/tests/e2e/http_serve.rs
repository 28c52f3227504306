//! `outlast serve` as a process: what it starts it ends, and what breaks behind it breaks one session.

use std::process::Command;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use outlast_testkit::http::faults::closed_address;
use outlast_testkit::peer::Peer;
use serde_json::{Value, json};

use crate::http_world::{ACCEPT, JSON, Served, answer_below, listening, outlast_alone, serve};
use crate::world::{Tree, data, fake_server};

fn marked(flags: &[&str]) -> (Served, Tree) {
    let mut command = outlast_alone();
    command.args(["serve", "--listen", "127.0.0.1:0"]).args(flags).arg("--").arg(fake_server());
    let tree = Tree::mark(&mut command);
    (listening(&mut command), tree)
}

#[test]
fn nothing_of_it_lives_on_when_it_is_killed() {
    for signal in [Signal::SIGKILL, Signal::SIGTERM, Signal::SIGINT] {
        let (mut served, tree) = marked(&["--drain", "100ms"]);
        let mut sessions: Vec<_> = (0..3).map(|_| served.session()).collect();
        for session in &mut sessions {
            session.value_of("start_grandchild", &json!({}));
            let (caller, _) = session.begin_call("hang", &json!({}));
            drop(caller);
        }
        assert!(tree.processes().len() > 3);
        served.process.signal(signal);
        served.process.end();
        tree.wait_until_gone();
    }
}

#[test]
fn a_command_that_is_missing_is_told_at_once() {
    for (program, status, why) in [
        ("/no/such/server", 127, "command not found"),
        ("no-such-server", 127, ""),
        ("/etc/passwd", 126, "not executable"),
    ] {
        let mut command = outlast_alone();
        let mut outlast = Peer::start(command.args(["serve", "--listen", "127.0.0.1:0", "--", program]));
        assert_eq!(outlast.end().code(), Some(status), "{program}");
        let stderr = String::from_utf8(outlast.all_stderr()).unwrap();
        assert!(stderr.contains(&format!("cannot start `{program}`: {why}")), "{stderr}");
    }
}

/// An update of outlast is nothing that a service which runs may stumble over.
#[test]
fn a_program_whose_file_was_replaced_goes_on_starting_servers() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("outlast");
    std::fs::copy(crate::world::OUTLAST, &program).unwrap();
    let mut command = Command::new(&program);
    command.env("OUTLAST_STATE", "none").args(["serve", "--listen", "127.0.0.1:0", "--"]).arg(fake_server());
    let served = listening(&mut command);
    let mut before = served.session();
    assert_eq!(before.value_of("echo", &json!(1)), 1);
    std::fs::remove_file(&program).unwrap();
    std::fs::write(&program, "another version").unwrap();
    assert_eq!(served.session().value_of("echo", &json!(2)), 2);
    assert_eq!(before.value_of("echo", &json!(3)), 3);
}

/// Some programs close every descriptor that they might have, or use `select`.
#[test]
fn servers_have_the_limit_of_descriptors_that_they_would_have_without_us() {
    let mut command = outlast_alone();
    let program = std::mem::replace(&mut command, Command::new("sh"));
    command.env("OUTLAST_STATE", "none").args(["-c", r#"ulimit -Sn 200; exec "$0" "$@""#]);
    command.arg(program.get_program()).args(["serve", "--listen", "127.0.0.1:0", "--"]).arg(fake_server());
    let served = listening(&mut command);
    let limit = |pid: &Value| {
        let limits = std::fs::read_to_string(format!("/proc/{pid}/limits")).expect("it runs");
        let line =
            limits.lines().find_map(|line| line.strip_prefix("Max open files")).expect("a limit").to_owned();
        line.split_ascii_whitespace().next().and_then(|soft| soft.parse::<u64>().ok()).expect("a number")
    };
    assert_eq!(limit(&served.session().value_of("tell_pid", &json!({}))), 200);
    assert!(limit(&json!(served.process.pid())) > 200, "ours is raised");
}

#[test]
fn a_stop_does_not_wait_longer_than_drain_for_a_call() {
    let mut served = serve(&["--drain", "300ms"], &[]);
    let mut session = served.session();
    let (mut caller, id) = session.begin_call("hang", &json!({}));
    let (_, head) = caller.head();
    let first = caller.event().expect("a priming event");
    let began = Instant::now();
    served.process.signal(Signal::SIGTERM);
    // Told so, or let go of in a way that lets it come back.
    let mut told = None;
    while let Some(event) = caller.event() {
        told = told.or(Some(event).filter(|event| event.json()["id"] == id));
    }
    assert!(began.elapsed() < Duration::from_secs(5), "{:?} {head:?} {first:?}", began.elapsed());
    if let Some(event) = told {
        data(&event.json());
    }
    served.process.end_within(Duration::from_secs(5));
}

#[test]
fn a_stop_refuses_what_is_new() {
    let mut served = serve(&["--drain", "10s"], &[]);
    let mut session = served.session();
    let (mut caller, id) = session.begin_call("silent", &json!({"ms": 700}));
    caller.head();
    let mut idle = served.caller();
    served.process.signal(Signal::SIGTERM);
    served.process.stderr_where(|_| true);
    idle.request("GET /readyz", &[], "");
    if let Some(response) = idle.try_response() {
        assert!([200, 503].contains(&response.status), "{}", response.status);
    }
    assert_eq!(caller.answer(&id)["result"]["structuredContent"], "done");
    served.process.end();
}

#[test]
fn a_server_that_dies_costs_its_own_session_a_call_and_comes_back() {
    let served = serve(&["--restart-backoff", "10ms"], &[]);
    let (mut one, mut other) = (served.session(), served.session());
    let pid = other.value_of("tell_pid", &json!({}));
    let (mut waiting, id) = other.begin_call("silent", &json!({"ms": 500}));
    let answer = one.call("die", &json!({"signal": 9}));
    assert_eq!(data(&answer)["kind"], "server-gone", "{answer}");
    assert_eq!(one.value_of("echo", &json!("again")), "again");
    let (_, head) = waiting.head();
    assert_eq!(answer_below(&mut waiting, &head)["id"], id);
    assert_eq!(other.value_of("tell_pid", &json!({})), pid);
}

/// What a client is told whose server cannot be had.
fn told(served: &Served) -> Value {
    let who = json!({"name": "test", "version": "1"});
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": who});
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params});
    let mut caller = served.caller();
    caller.request("POST /mcp", &[ACCEPT, JSON], message.to_string());
    let (_, head) = caller.head();
    answer_below(&mut caller, &head)
}

#[test]
fn a_server_that_cannot_be_had_is_told_to_every_session_and_serve_goes_on() {
    let remote = format!("http://{}/mcp", closed_address());
    // It is there, and the system cannot start it all the same.
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("server");
    std::fs::write(&script, "#!/no/such/interpreter\n").unwrap();
    std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    for server in [&["--", script.to_str().unwrap()][..], &[&remote]] {
        let mut command = outlast_alone();
        command.args(["serve", "--listen", "127.0.0.1:0", "--connect-backoff", "10ms"]).args(server);
        let mut served = listening(&mut command);
        for _ in 0..2 {
            let began = Instant::now();
            let answer = told(&served);
            assert_eq!(data(&answer)["kind"], "server-failed", "{server:?}: {answer}");
            assert!(began.elapsed() < Duration::from_secs(5), "{server:?}: {:?}", began.elapsed());
        }
        assert_eq!(served.ask("GET /healthz", &[], "").status, 200);
        assert_eq!(served.ask("GET /readyz", &[], "").status, 503);
        assert!(served.process.exited().is_none());
    }
}

#[test]
fn a_server_that_ends_at_once_is_told_to_every_session_and_serve_goes_on() {
    let mut served = serve(&["--restart-backoff", "10ms"], &["--exit", "3"]);
    for _ in 0..2 {
        let answer = told(&served);
        // Whether it ended before it was asked or after is up to the system.
        let kind = &data(&answer)["kind"];
        assert!(kind == "server-gone" || kind == "server-failed", "{answer}");
        assert!(answer["error"]["message"].as_str().unwrap().contains("exit status 3"), "{answer}");
    }
    assert!(served.process.exited().is_none());
}

/// Its stdin is nobody's client.
#[test]
fn serve_does_not_read_stdin() {
    let mut served = serve(&[], &[]);
    served.process.send(json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}));
    served.process.close_input();
    served.assert_goes_on();
    assert!(served.process.log().is_empty());
}

/// The end of a stream without chunks is the end of the connection, whatever such a client would like.
#[test]
fn a_client_of_the_first_http_is_understood() {
    let served = serve(&[], &[]);
    let session = served.session();
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    for wish in ["", "Connection: keep-alive\r\n"] {
        let mut caller = served.caller();
        caller.send(format!(
            "POST /mcp HTTP/1.0\r\nHost: {}\r\nAccept: */*\r\nContent-Type: application/json\r\nMcp-Session-Id: {}\r\n{wish}Content-Length: {}\r\n\r\n{body}",
            served.address, session.id, body.len()
        ));
        let (status, head) = caller.head();
        assert_eq!((status, head.header("Transfer-Encoding")), (200, None));
        assert_eq!(head.header("Connection"), Some("close"));
        assert_eq!(answer_below(&mut caller, &head)["id"], 1);
        while caller.event().is_some() {}
        assert!(caller.wait_for_close());
    }
}
