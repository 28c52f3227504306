//! What is told of servers to people who ask.

use outlast_engine::report::{Condition, Report};
use outlast_testkit::script::World;

const HANDSHAKE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}"#;

struct Told(World);

impl Told {
    fn after(lines: &[&str]) -> Told {
        let mut told = Told(World::default());
        told.and(lines);
        told
    }

    fn and(&mut self, lines: &[&str]) {
        for line in lines {
            self.0.input(line);
        }
    }

    fn of(&self, name: &str) -> Report {
        let reports = self.0.engine.report();
        reports.into_iter().find(|report| *report.name == *name).unwrap_or_else(|| panic!("no {name}"))
    }

    fn conditions(&self) -> Vec<&'static str> {
        self.0.engine.report().iter().map(|report| report.condition.word()).collect()
    }
}

/// Two servers, `srv` (1) and `ci` (2), and a session at the merged door.
fn told() -> Told {
    Told::after(&[
        "set serve",
        "set server ci",
        "set server idle",
        "set rights bob servers=ci",
        &format!("post 1 {HANDSHAKE}"),
    ])
}

#[test]
fn a_server_is_told_from_its_start_to_its_return() {
    let mut told = Told::after(&["set serve", "set server ci", &format!("post 1 {HANDSHAKE}")]);
    assert_eq!(told.conditions(), ["starting", "starting"]);
    let answer = r#"server-1 < {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"build","version":"2.1"}}}"#;
    told.and(&["server-1 started", answer, "server-2 started"]);
    let srv = told.of("srv");
    assert_eq!((srv.condition, srv.running, srv.era()), (Condition::Ready, 1, Some("legacy")));
    assert_eq!((srv.calls_itself.as_deref(), srv.error.as_deref()), (Some("build 2.1"), None));
    assert_eq!(told.of("ci").condition, Condition::Starting);
    told.and(&["server-1 exited 3", "server-1 output-closed"]);
    let srv = told.of("srv");
    assert_eq!((srv.condition, srv.running, srv.restarts), (Condition::Restarting, 0, 0));
    assert_eq!(srv.error.as_deref(), Some("exit status 3"));
    told.and(&["wait 1s", "server-1 started"]);
    assert_eq!(told.of("srv").restarts, 1);
}

/// With several servers one that fails leaves the others their clients.
#[test]
fn outlast_is_ready_while_one_of_several_servers_may_answer() {
    let mut told = told();
    told.and(&["server-1 start-failed not-found"]);
    assert_eq!(told.conditions(), ["failed", "starting", "starting"]);
    assert!(told.0.engine.is_ready());
    let error = told.of("srv").error.unwrap();
    assert!(error.contains("not"), "{error}");
    told.and(&["server-2 start-failed not-found", "server-3 start-failed not-found"]);
    assert_eq!(told.conditions(), ["failed"; 3]);
    assert!(!told.0.engine.is_ready());
}

#[test]
fn a_principal_is_told_of_its_own_servers() {
    let told = told();
    let named = |principal| -> Vec<Box<str>> {
        told.0.engine.report_to(principal).into_iter().map(|report| report.name).collect()
    };
    assert_eq!(named(Some("bob")), ["ci".into()]);
    assert_eq!(named(None).len(), 3);
}

#[test]
fn a_server_of_the_other_era_is_said_to_be_left_out() {
    let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
    let mut told = Told::after(&[
        "set serve",
        "set server ci",
        &format!(
            r#"post 1 version=2026-07-28 method=tools/list {{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{{{meta}}}}}"#
        ),
        "server-1 started",
        "server-2 started",
    ]);
    told.and(&[r#"server-1 < {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"not initialized"}}"#]);
    assert_eq!((told.of("srv").left_out, told.of("ci").left_out), (true, false));
}

#[test]
fn calls_in_flight_are_counted_where_they_are() {
    let call = r#"> {"id":2,"method":"tools/call","params":{"name":"x"}}"#;
    let told = Told::after(&["> {\"id\":1,\"method\":\"tools/list\"}", "started", call]);
    assert_eq!(told.of("srv").in_flight, 2);
}
