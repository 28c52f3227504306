//! Traces, as a collector gets them, and what becomes of calls when there is none.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::mpsc::channel;

use nix::sys::signal::Signal;
use outlast_testkit::http::faults::{Connection, FaultServer, Request, closed_address};
use outlast_testkit::peer::{LIMIT, Peer, wait_until};
use serde_json::{Value, json};

use crate::http_world::{JSON, answer_of, modern, modern_meta, serve, serve_url};
use crate::world::{OUTLAST, connect, fake_server, history, outlast, wrapping};

const KNOWN: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

fn takes(_: &Request, connection: &mut Connection) {
    connection.json(&json!({}));
}

/// Where a collector is, as a person writes it.
fn base(server: &FaultServer) -> String {
    format!("http://{}", server.address())
}

/// The spans that came so far.
fn spans(collector: &FaultServer) -> Vec<Value> {
    let all = collector.requests();
    let list = |value: &Value| value.as_array().expect("a list").clone();
    let of_resource = all.iter().flat_map(|request| list(&request.json()["resourceSpans"]));
    let of_scope = of_resource.flat_map(|resource| list(&resource["scopeSpans"]));
    of_scope.flat_map(|scope| list(&scope["spans"])).collect()
}

fn attribute<'a>(span: &'a Value, name: &str) -> Option<&'a str> {
    let all = span["attributes"].as_array().expect("a list");
    let value = &all.iter().find(|one| one["key"] == name)?["value"];
    value["stringValue"].as_str().or_else(|| value["intValue"].as_str())
}

/// The spans of calls of a tool: first those of calls, then those of attempts, each in the order in which they came.
fn spans_of(collector: &FaultServer, tool: &str) -> (Vec<Value>, Vec<Value>) {
    let name = format!("tools/call {tool}");
    let all = spans(collector).into_iter().filter(|span| span["name"] == name.as_str());
    all.partition(|span| span["kind"] == 2)
}

/// What the server of a call was told.
fn told(line: &str) -> (Value, Value) {
    let message: Value = serde_json::from_str(line).expect("JSON");
    let parent = message["params"]["_meta"]["traceparent"].as_str().expect("a trace");
    let parts: Vec<&str> = parent.split('-').collect();
    (parts[1].into(), parts[2].into())
}

/// Lines of the log about the collector.
fn said(client: &Peer) -> Vec<String> {
    let stderr = String::from_utf8(client.all_stderr()).unwrap();
    stderr.lines().filter(|line| line.contains("otlp")).map(str::to_owned).collect()
}

#[test]
fn a_call_arrives_as_a_span_and_its_attempt_below_it() {
    let collector = FaultServer::start(takes);
    let mut client = connect(&["--otlp", &base(&collector), "--otlp-header", "X-Key: k"], &[]);
    client.value_of("echo", &json!({"planted": "argument"}));
    let lines = history(&mut client);
    client.hang_up();
    assert_eq!(said(&client), Vec::<String>::new());
    for request in collector.requests() {
        assert_eq!((request.method.as_str(), request.path.as_str()), ("POST", "/v1/traces"));
        assert_eq!(
            (request.header("Content-Type"), request.header("X-Key")),
            (Some("application/json"), Some("k"))
        );
        let body = String::from_utf8(request.body).unwrap();
        assert!(!body.contains("argument"), "{body}");
    }
    let (calls, attempts) = spans_of(&collector, "echo");
    let ([call], [attempt]) = (&calls[..], &attempts[..]) else { panic!("{calls:?} {attempts:?}") };
    let line = lines.iter().find(|line| line.contains(r#""name":"echo""#)).expect("the call");
    assert_eq!(told(line), (call["traceId"].clone(), attempt["spanId"].clone()));
    assert_eq!((&attempt["traceId"], &attempt["parentSpanId"]), (&call["traceId"], &call["spanId"]));
    assert!(call.get("parentSpanId").is_none() && call.get("status").is_none(), "{call}");
    for (name, value) in [
        ("mcp.method.name", "tools/call"),
        ("gen_ai.tool.name", "echo"),
        ("gen_ai.operation.name", "execute_tool"),
        ("mcp.protocol.version", "2025-11-25"),
        ("network.transport", "pipe"),
        ("outlast.server", "fake_server"),
        ("outlast.outcome", "answered"),
    ] {
        assert_eq!(attribute(call, name), Some(value), "{call}");
    }
    let time = |span: &Value, name: &str| span[name].as_str().unwrap().parse::<u64>().unwrap();
    let of = |span: &Value| (time(span, "startTimeUnixNano"), time(span, "endTimeUnixNano"));
    let ((begins, ends), (sent, answered)) = (of(call), of(attempt));
    assert!(begins <= sent && sent <= answered && answered <= ends, "{call} {attempt}");
    let names: BTreeSet<String> = spans(&collector).iter().map(|span| span["name"].to_string()).collect();
    assert!(names.contains("\"initialize\""), "{names:?}");
}

#[test]
fn a_failure_is_told_with_its_kind_and_its_code() {
    let collector = FaultServer::start(takes);
    let mut client = connect(&["--otlp", &base(&collector), "--timeout", "300ms"], &[]);
    client.call("hang", &json!({}));
    client.hang_up();
    let (calls, attempts) = spans_of(&collector, "hang");
    for span in calls.iter().chain(&attempts) {
        assert_eq!(
            (attribute(span, "error.type"), &span["status"]["code"]),
            (Some("timeout"), &json!(2)),
            "{span}"
        );
        assert_eq!(attribute(span, "rpc.response.status_code"), Some("-32001"), "{span}");
    }
    assert_eq!((calls.len(), attempts.len()), (1, 1));
    assert_eq!(calls[0]["events"][0]["name"], "cancel-asked", "{}", calls[0]);
}

/// The span of the outer attempt is the parent of the inner call.
#[test]
fn two_in_a_row_are_one_trace() {
    let collector = FaultServer::start(takes);
    let mut command = outlast();
    let otlp = ["--otlp", &base(&collector)];
    command.args(otlp).arg("--").arg(OUTLAST).args(otlp).arg("--").arg(fake_server());
    let mut client = Peer::start(&mut command);
    client.handshake();
    let params =
        json!({"name": "echo", "arguments": {}, "_meta": {"traceparent": KNOWN, "tracestate": "a=1"}});
    let id = client.request("tools/call", &params);
    client.answer(&id);
    client.hang_up();
    let (calls, attempts) = spans_of(&collector, "echo");
    assert_eq!((calls.len(), attempts.len()), (2, 2));
    let mut parent = json!("00f067aa0ba902b7");
    for _ in 0..2 {
        let call = calls.iter().find(|span| span["parentSpanId"] == parent).expect("a call below");
        let attempt =
            attempts.iter().find(|span| span["parentSpanId"] == call["spanId"]).expect("its attempt");
        for span in [call, attempt] {
            assert_eq!(span["traceId"], "4bf92f3577b34da6a3ce929d0e0e4736", "{span}");
            assert_eq!(span["traceState"], "a=1", "{span}");
        }
        parent = attempt["spanId"].clone();
    }
}

// The header of a request over HTTP.

#[test]
fn the_header_of_a_client_reaches_an_http_server_recorded_or_not() {
    let collector = FaultServer::start(takes);
    for flags in [vec![], vec!["--otlp".to_owned(), base(&collector)]] {
        let server = FaultServer::start(modern);
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        let served = serve_url(&flags, &server.url());
        let headers = [("traceparent", KNOWN), ("TraceState", "a=1,b=2")];
        let params = json!({"_meta": modern_meta()});
        answer_of(&mut served.modern("tools/list", &params, &headers));
        let request = server.request_where(|request| request.rpc() == "tools/list");
        let parent = request.header("traceparent").expect("a header").to_owned();
        assert_eq!(request.header("tracestate"), Some("a=1,b=2"));
        let meta = &request.json()["params"]["_meta"];
        if flags.is_empty() {
            assert_eq!((parent.as_str(), meta.get("traceparent")), (KNOWN, None));
        } else {
            assert!(parent != KNOWN && parent.starts_with(&KNOWN[..36]), "{parent}");
            assert_eq!((&meta["traceparent"], &meta["tracestate"]), (&json!(parent), &json!("a=1,b=2")));
        }
    }
}

#[test]
fn a_session_over_http_stands_below_its_header() {
    let collector = FaultServer::start(takes);
    let mut served = serve(&["--otlp", &base(&collector)], &[]);
    let session = served.session();
    let message = json!({"jsonrpc": "2.0", "id": "x-1", "method": "tools/call", "params": {"name": "echo", "arguments": {}}});
    let headers = [&session.headers()[..], &[JSON, ("traceparent", KNOWN)]].concat();
    served.ask("POST /mcp", &headers, message.to_string());
    served.process.signal(Signal::SIGTERM);
    served.process.end();
    let (calls, attempts) = spans_of(&collector, "echo");
    let call = &calls[0];
    assert_eq!(call["parentSpanId"], "00f067aa0ba902b7", "{call}");
    assert_eq!(
        (attribute(call, "jsonrpc.request.id"), attribute(call, "network.transport")),
        (Some("x-1"), Some("tcp"))
    );
    assert_eq!(attribute(&attempts[0], "network.transport"), Some("pipe"));
    let all: String = collector
        .requests()
        .iter()
        .map(|request| String::from_utf8_lossy(&request.body).into_owned())
        .collect();
    assert!(!all.contains(&session.id), "the id of a session is a secret");
}

/// What its client does not have recorded is not recorded here, and its server is told nothing new.
#[test]
fn a_trace_that_is_not_sampled_is_left_alone() {
    let collector = FaultServer::start(takes);
    let mut client = connect(&["--otlp", &base(&collector)], &[]);
    let unsampled = KNOWN.replace("-01", "-00");
    let params = json!({"name": "echo", "arguments": {}, "_meta": {"traceparent": unsampled}});
    let id = client.request("tools/call", &params);
    client.answer(&id);
    let lines = history(&mut client);
    client.hang_up();
    assert!(lines.iter().any(|line| line.contains(&unsampled)), "{lines:?}");
    assert!(spans_of(&collector, "echo").0.is_empty());
}

// A collector that is no good.

#[test]
fn a_collector_that_is_not_there_costs_a_line_and_no_call() {
    let address = format!("http://{}", closed_address());
    let mut client = connect(&["--otlp", &address], &[]);
    for number in 0..50 {
        assert_eq!(client.value_of("echo", &json!({"n": number})), json!({"n": number}));
    }
    client.stderr_where(|text| text.contains("connection refused"));
    client.hang_up();
    let said = said(&client);
    let [line, lost] = &said[..] else { panic!("{said:?}") };
    assert!(line.contains(&format!("otlp: no traces to {address}/v1/traces: connection refused")), "{line}");
    assert!(
        lost.contains("otlp: 102 spans lost"),
        "50 calls and the handshake, each with an attempt: {lost}"
    );
}

#[test]
fn a_collector_that_refuses_is_told_of_once() {
    let collector =
        FaultServer::start(|_, connection| connection.answer("401 Unauthorized", &[], "who are you?"));
    let mut client =
        connect(&["--otlp", &base(&collector), "--otlp-header", "X-Key: planted", "--log", "debug"], &[]);
    for _ in 0..3 {
        client.value_of("echo", &json!({}));
        let before = collector.requests().len();
        assert!(wait_until(LIMIT, || collector.requests().len() > before), "it is asked again");
    }
    client.hang_up();
    let said = said(&client);
    let refusals: Vec<_> = said
        .iter()
        .filter(|line| line.contains("401 Unauthorized; give its credentials with otlp-header"))
        .collect();
    assert_eq!(refusals.len(), 1, "{said:?}");
    assert!(said.iter().any(|line| line.contains("lost")), "{said:?}");
    assert!(!String::from_utf8(client.all_stderr()).unwrap().contains("planted"));
}

/// As a collector that is stuck: it takes the connection, and no byte from it.
#[test]
fn a_collector_that_never_reads_costs_no_call_and_what_is_lost_is_counted() {
    let (hold, held) = channel::<()>();
    let held = Mutex::new(held);
    let collector = FaultServer::start_raw(move |_| held.lock().unwrap().recv().unwrap_or_default());
    let mut client = connect(&["--otlp", &base(&collector)], &[]);
    const CALLS: usize = 6_000;
    for number in 0..CALLS {
        let id = client.begin("echo", &json!({"n": number}));
        if number % 100 == 99 {
            client.answer(&id);
        }
    }
    client.stderr_where(|text| text.contains("lost so far"));
    client.hang_up();
    client.rest();
    drop(hold);
    let answers =
        client.log().iter().filter(|line| line.text().contains(r#""structuredContent":{"n":"#)).count();
    assert_eq!(answers, CALLS);
    assert!(said(&client).iter().any(|line| line.contains("spans lost")), "{:?}", said(&client));
}

#[test]
fn spans_wait_for_a_collector_that_comes_back() {
    let first = FaultServer::start(takes);
    let address = first.address().to_string();
    let mut client = connect(&["--otlp", &base(&first)], &[]);
    client.value_of("echo", &json!({"n": 1}));
    first.request_where(|request| String::from_utf8_lossy(&request.body).contains("tools/call echo"));
    drop(first);
    client.value_of("tell_cancels", &json!({}));
    client.stderr_where(|text| text.contains("otlp: no traces to"));
    let second = FaultServer::start_at(&address, takes);
    second.request_where(|request| String::from_utf8_lossy(&request.body).contains("tell_cancels"));
    client.stderr_where(|text| text.contains("takes traces again; none is lost"));
    client.hang_up();
    assert_eq!(spans_of(&second, "tell_cancels").0.len(), 1);
}

#[test]
fn spans_that_a_collector_does_not_want_are_lost() {
    let collector = FaultServer::start(|_, connection| {
        connection
            .json(&json!({"partialSuccess": {"rejectedSpans": "2", "errorMessage": "too \u{1b}[1mold"}}));
    });
    let mut client = connect(&["--otlp", &base(&collector)], &[]);
    client.stderr_where(|text| text.contains("it rejects spans: too") && !text.contains('\u{1b}'));
    client.hang_up();
    assert!(said(&client).iter().any(|line| line.contains("spans lost")), "{:?}", said(&client));
}

#[test]
fn a_wrong_address_is_named_before_anything_starts() {
    for (flags, why) in [
        (["--otlp", "127.0.0.1:4317"], "write http://127.0.0.1:4318"),
        (
            ["--otlp-header", "Authorization: Bearer ${NO_SUCH_TOKEN}"],
            "the variable NO_SUCH_TOKEN is not set",
        ),
    ] {
        let output = wrapping(&flags, &[]).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(2) && said.contains(why), "{said}");
    }
}

/// Not even with all that a service has in its environment for its servers.
#[test]
fn the_variables_of_servers_switch_nothing_on() {
    let collector = FaultServer::start(takes);
    let mut command = wrapping(&[], &[]);
    command.env("OTEL_EXPORTER_OTLP_ENDPOINT", base(&collector)).env("OTEL_SERVICE_NAME", "theirs");
    let mut client = Peer::start(&mut command);
    client.handshake();
    client.value_of("echo", &json!({}));
    let lines = history(&mut client);
    client.hang_up();
    assert!(!lines.iter().any(|line| line.contains("traceparent")), "{lines:?}");
    assert_eq!(collector.requests().len(), 0);
}

/// `--keep`: the service records, and the door in front of it does not.
#[test]
fn a_call_that_is_kept_is_recorded_once() {
    let collector = FaultServer::start(takes);
    let state = tempfile::tempdir().unwrap();
    let state = state.path().to_str().unwrap();
    let flags = ["--keep", "--state", state, "--resume-wait", "1s", "--otlp", &base(&collector)];
    let mut client = connect(&flags, &[]);
    client.value_of("echo", &json!({}));
    client.hang_up();
    collector.request_where(|request| String::from_utf8_lossy(&request.body).contains("tools/call echo"));
    let stopped = outlast().args(["keep", "stop", "--state", state]).output().expect("outlast runs");
    assert!(stopped.status.success());
    let (calls, attempts) = spans_of(&collector, "echo");
    assert_eq!((calls.len(), attempts.len()), (1, 1));
}
