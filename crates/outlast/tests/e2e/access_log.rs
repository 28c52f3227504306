//! The access log of `outlast serve`: a line for every request, also for those that are refused.

use std::fs::read_to_string;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use nix::sys::signal::Signal;
use outlast_testkit::http::caller::Caller;
use outlast_testkit::peer::{LIMIT, wait_until};
use serde_json::{Value, from_str, json};
use tempfile::TempDir;

use crate::http_dashboard::{auth, with_tokens};
use crate::http_world::{Session, serve};

fn lines(path: &Path) -> Vec<Value> {
    read_to_string(path).unwrap_or_default().lines().map(|line| from_str(line).expect("JSON")).collect()
}

#[test]
fn every_request_is_a_line_and_no_line_tells_a_secret() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("access.log");
    let log = path.to_str().expect("text");
    let more = ["--access-log", log, "--log-format", "json", "--tool", "echo=hold:false"];
    let (mut served, [ana, ..]) = with_tokens(&folder, &more);
    let mut session = Session::open(served.address, Some(&ana));
    session.value_of("echo", &json!({"password": "hunter2"}));
    let ticket = "0a".repeat(16);
    assert_eq!(served.ask(&format!("GET /mcp?token={ticket}"), &[], "").status, 401);
    assert_eq!(served.ask("GET /healthz", &[("Host", "evil.example")], "").status, 403);
    assert_eq!(served.ask(&format!("GET /outlast/api/tasks/{ticket}"), &auth(&ana), "").status, 404);
    assert!(served.caller().send("nonsense\r\n\r\n"));
    let unread = wait_until(LIMIT, || lines(&path).iter().any(|line| line["status"] == 400));
    assert!(unread, "what cannot be read is a line, too");
    served.process.signal(Signal::SIGTERM);
    served.process.end();

    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let text = read_to_string(&path).unwrap();
    let token = ana.trim_start_matches("Bearer ");
    for secret in [token, &session.id, "hunter2", "token=", &ticket] {
        assert!(!text.contains(secret), "{secret}: {text}");
    }
    let lines = lines(&path);
    let line = |fits: &dyn Fn(&Value) -> bool| lines.iter().find(|line| fits(line)).expect("a line").clone();
    let called = line(&|line| line["tool"] == "echo");
    for (field, value) in [
        ("address", json!("127.0.0.1")),
        ("principal", json!("ana")),
        ("httpMethod", json!("POST")),
        ("path", json!("/mcp")),
        ("method", json!("tools/call")),
        ("status", json!(200)),
    ] {
        assert_eq!(called[field], value, "{field}: {called}");
    }
    assert!(called["bytes"].as_u64() > Some(100) && called["ms"].is_u64(), "{called}");
    assert_eq!(line(&|line| line["status"] == 401)["path"], "/mcp");
    assert_eq!(line(&|line| line["status"] == 403)["path"], "/healthz");
    assert_eq!(line(&|line| line["status"] == 404)["path"], "/outlast/api/tasks/0a0a0a0a…");
    assert!(lines.iter().any(|line| line["method"] == "initialize" && line["tool"].is_null()));
}

#[test]
fn who_is_turned_away_and_who_leaves_is_a_line() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("access.log");
    let log = path.to_str().expect("text");
    let served = serve(&["--access-log", log, "--max-connections-per-address", "2"], &[]);
    let mut session = served.session();
    let (hangs, _) = session.begin_call("hang", &json!({}));
    let second = served.caller();
    assert_eq!(Caller::connect(served.address).response().status, 429);
    drop((hangs, second));
    let told = |what: &str| wait_until(LIMIT, || read_to_string(&path).unwrap_or_default().contains(what));
    assert!(told(" 127.0.0.1 - - - - - 429 "), "{:?}", read_to_string(&path));
    assert!(told(" 127.0.0.1 - POST /mcp tools/call hang "), "{:?}", read_to_string(&path));
}

/// No disk is worth a call.
#[test]
fn a_log_that_cannot_be_written_is_told_of_and_waited_for_by_nobody() {
    let mut served = serve(&["--access-log", "/dev/full"], &[]);
    let mut session = served.session();
    for number in 0..10 {
        assert_eq!(session.value_of("echo", &json!({"n": number})), json!({"n": number}));
    }
    served.process.stderr_where(|text| text.contains("access-log: ") && text.contains("were not written"));
    served.assert_goes_on();
}
