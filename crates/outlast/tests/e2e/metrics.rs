//! The numbers for Prometheus: read with Prometheus's own reader, and compared with calls that were made.

use std::collections::BTreeMap;
use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use outlast_testkit::peer::{LIMIT, wait_until};
use serde_json::json;
use tempfile::TempDir;

use crate::http_dashboard::{auth, hold, post, with_tokens};
use crate::http_world::{Served, answer_of, faulty, said, serve, serve_url};
use crate::world::data;

/// A page: each row, and what stands behind it.
type Page = BTreeMap<String, f64>;

/// What Prometheus makes of a page. Its linter also knows how metrics are to be named.
fn read(page: &str) -> Page {
    let mut promtool = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("promtool (Debian: prometheus)");
    promtool.stdin.take().expect("its input").write_all(page.as_bytes()).expect("it reads");
    let output = promtool.wait_with_output().expect("it ends");
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}\n{page}");
    let rows = page.lines().filter(|line| !line.starts_with('#'));
    rows.map(|line| line.rsplit_once(' ').expect("a row"))
        .map(|(row, value)| (row.to_owned(), value.parse().expect("a number")))
        .collect()
}

fn scrape(served: &Served, headers: &[(&str, &str)]) -> Page {
    let response = served.ask("GET /metrics", headers, "");
    assert_eq!(response.status, 200, "{}", response.text());
    assert_eq!(response.header("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
    read(&response.text())
}

/// `outlast_NAME{server="fake_server",method="tools/call",tool="TOOL"MORE}`
fn of_tool(name: &str, tool: &str, more: &str) -> String {
    format!("outlast_{name}{{server=\"fake_server\",method=\"tools/call\",tool=\"{tool}\"{more}}}")
}

#[test]
fn every_call_is_counted_by_how_it_ended() {
    let served = serve(&["--metrics", "--tool", "hang=timeout:300ms"], &[]);
    let mut session = served.session();
    for _ in 0..3 {
        session.value_of("echo", &json!({"text": "x"}));
    }
    assert_eq!(data(&session.call("hang", &json!({})))["kind"], "timeout");
    let (mut unknown, _) = session.begin("x/\"odd\"", &json!({}));
    answer_of(&mut unknown);
    let page = scrape(&served, &[]);
    let ended = |outcome: &str, kind: &str| format!(",outcome=\"{outcome}\",kind=\"{kind}\"");
    for (row, count) in [
        (of_tool("calls_total", "echo", ""), 3.0),
        (of_tool("calls_total", "hang", ""), 1.0),
        (of_tool("calls_in_flight", "echo", ""), 0.0),
        (of_tool("calls_ended_total", "echo", &ended("answered", "")), 3.0),
        (of_tool("calls_ended_total", "hang", &ended("failed", "timeout")), 1.0),
        (of_tool("call_duration_seconds_count", "echo", ""), 3.0),
        (of_tool("call_duration_seconds_bucket", "hang", ",le=\"0.256\""), 0.0),
        (of_tool("call_duration_seconds_bucket", "hang", ",le=\"+Inf\""), 1.0),
        ("outlast_calls_total{server=\"fake_server\",method=\"initialize\",tool=\"\"}".into(), 1.0),
        ("outlast_calls_total{server=\"fake_server\",method=\"other\",tool=\"\"}".into(), 1.0),
        ("outlast_attempts_total{server=\"fake_server\"}".into(), 6.0),
        ("outlast_server_starts_total{server=\"fake_server\"}".into(), 1.0),
        ("outlast_server_up{server=\"fake_server\"}".into(), 1.0),
        ("outlast_servers{condition=\"ready\"}".into(), 1.0),
        ("outlast_notes_total{kind=\"timeout\"}".into(), 1.0),
        ("outlast_holds_waiting".into(), 0.0),
    ] {
        assert_eq!(page.get(&row), Some(&count), "{row}: {page:#?}");
    }
    assert!(page[&of_tool("call_duration_seconds_sum", "hang", "")] >= 0.3);
    assert!(page[&of_tool("response_bytes_total", "echo", "")] > 0.0);
}

#[test]
fn retries_and_what_servers_do_are_counted() {
    let calls = AtomicUsize::new(0);
    let server = faulty(move |request, connection| match calls.fetch_add(1, Ordering::Relaxed) {
        0 => connection.reset(),
        _ => connection.json(&said(request, &json!(true))),
    });
    let flags = ["--metrics", "--tool", "fault=repeatable:true", "--retry-backoff", "10ms"];
    let served = serve_url(&flags, &server.url());
    served.session().value_of("fault", &json!({}));
    let page = scrape(&served, &[]);
    assert_eq!(page["outlast_retries_total{server=\"127.0.0.1\"}"], 1.0);

    let served = serve(&["--metrics", "--restart-backoff", "1ms"], &[]);
    let mut session = served.session();
    assert_eq!(data(&session.call("exit", &json!({"status": 1})))["kind"], "server-gone");
    session.value_of("echo", &json!({}));
    let page = scrape(&served, &[]);
    for (name, count) in [("starts", 2.0), ("exits", 1.0), ("restarts", 1.0), ("failures", 0.0)] {
        assert_eq!(page[&format!("outlast_server_{name}_total{{server=\"fake_server\"}}")], count, "{name}");
    }
}

#[test]
fn calls_that_wait_and_tickets_are_counted() {
    let folder = TempDir::new().expect("a folder");
    let state = folder.path().to_str().expect("text");
    let flags = ["--metrics", "--state", state, "--tool", "echo=hold:true", "--keep-alive", "100ms"];
    let served = serve(&flags, &[]);
    let mut session = served.session();
    let (mut waiting, _) = session.begin_call("echo", &json!({}));
    let number = hold(&served, &[])["hold"].clone();
    let page = scrape(&served, &[]);
    assert_eq!(page["outlast_holds_waiting"], 1.0);
    assert_eq!(page[&of_tool("calls_in_flight", "echo", "")], 1.0);
    post(&served, &format!("/outlast/api/holds/{number}"), &[], &json!({"decision": "approve"}));
    answer_of(&mut waiting);
    let silent = json!({"name": "silent", "arguments": {"ms": 400}, "_meta": {"progressToken": 1}});
    let (mut silent, id) = session.begin("tools/call", &silent);
    silent.head();
    silent.answer(&id);
    let (mut made, _) = session.begin("tools/call", &json!({"name": "silent", "arguments": {}, "task": {}}));
    assert!(answer_of(&mut made)["result"]["task"].is_object());
    let page = scrape(&served, &[]);
    for (row, count) in [
        ("outlast_holds_total{server=\"fake_server\"}", 1.0),
        ("outlast_hold_decisions_total{server=\"fake_server\",decision=\"approved\"}", 1.0),
        ("outlast_hold_decisions_total{server=\"fake_server\",decision=\"declined\"}", 0.0),
        ("outlast_holds_waiting", 0.0),
        ("outlast_tasks_total{server=\"fake_server\"}", 1.0),
        ("outlast_store_records", 1.0),
        ("outlast_store_failures_total{operation=\"write\"}", 0.0),
    ] {
        assert_eq!(page.get(row), Some(&count), "{row}: {page:#?}");
    }
    assert!(page["outlast_keep_alives_total{server=\"fake_server\"}"] >= 1.0);
    assert!(page["outlast_store_bytes"] > 0.0);
}

/// A client may call a tool whatever it likes.
#[test]
fn hostile_names_break_no_page() {
    let served = serve(&["--metrics"], &[]);
    let mut session = served.session();
    let names =
        ["a\"b\\c\nd", "\u{1b}[2J\u{202e}", "x\"} 1\noutlast_calls_total{server=\"y", &"é".repeat(9_000)];
    for name in names {
        session.call(name, &json!({}));
    }
    let page = scrape(&served, &[]);
    assert_eq!(page[&of_tool("calls_total", "a\\\"b\\\\c\\\\u{a}d", "")], 1.0);
    assert!(page.keys().all(|row| !row.contains("server=\"y") && row.len() < 1_000));
    let series = page.keys().filter(|row| row.starts_with("outlast_calls_total{")).count();
    assert_eq!(series, names.len() + 1, "and the handshake");
}

/// Without flag there is nothing; with tokens they are for those who see everything.
#[test]
fn who_may_see_everything_may_read_them() {
    let off = serve(&[], &[]);
    assert_eq!(off.ask("GET /metrics", &[], "").status, 404);

    let folder = TempDir::new().expect("a folder");
    let (served, [ana, _, cleo]) = with_tokens(&folder, &["--metrics"]);
    let status = |line: &str, headers: &[(&str, &str)]| served.ask(line, headers, "").status;
    assert_eq!(status("GET /metrics", &[]), 401);
    assert_eq!(status("GET /metrics", &auth("Bearer wrong")), 401);
    assert_eq!(status("GET /metrics", &auth(&ana)), 403, "its own calls, and these are everybody's");
    assert_eq!(status("POST /metrics", &auth(&cleo)), 405);
    let foreign = [auth(&cleo)[0], ("Host", "evil.example")];
    assert_eq!(status("GET /metrics", &foreign), 403);
    let page = scrape(&served, &auth(&cleo));
    assert_eq!(page["outlast_servers{condition=\"not-started\"}"], 1.0);
    assert_eq!(page["outlast_retries_total{server=\"one\"}"], 0.0, "there before anything happens");
}

/// Whoever scrapes and does not read is not waited for.
#[test]
fn a_reader_that_never_reads_costs_no_call_anything() {
    let served = serve(&["--metrics"], &[]);
    let mut session = served.session();
    for tool in 0..300 {
        session.call(&format!("tool_with_a_long_name_{tool}_{}", "x".repeat(90)), &json!({}));
    }
    let silent: Vec<_> = (0..20)
        .map(|_| {
            let mut caller = served.caller();
            assert!(caller.request("GET /metrics", &[], ""));
            caller
        })
        .collect();
    for number in 0..20 {
        assert_eq!(session.value_of("echo", &json!({"n": number})), json!({"n": number}));
    }
    let counted = wait_until(LIMIT, || scrape(&served, &[])[&of_tool("calls_total", "echo", "")] == 20.0);
    assert!(counted, "the next reader gets nothing");
    drop(silent);
}
