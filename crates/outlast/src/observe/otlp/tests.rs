//! Spans of calls, and how they are written.

use super::*;
use outlast_engine::Wall;
use outlast_engine::id::{AttemptId, Run};
use outlast_engine::method::Method;
use outlast_engine::trace::{Context, SpanId};
use serde_json::{Value as Json, json};
use span::{Origin, request};
use std::num::{NonZeroU64, NonZeroU128};

const NO: CallNo = CallNo(NonZeroU64::MIN);

fn span_id(number: u64) -> SpanId {
    SpanId(NonZeroU64::new(number).unwrap())
}

fn otlp() -> Otlp {
    let url = endpoint("http://127.0.0.1:4318").unwrap();
    Otlp::new(Collector::new(&url, Vec::new()).unwrap())
}

fn at(millis: u64) -> Now {
    let since = Duration::from_millis(millis);
    Now { mono: Mono::after_start(since), wall: Wall(1_000_000 + millis) }
}

fn began() -> What {
    let context = Context {
        trace: outlast_engine::trace::TraceId(NonZeroU128::new(0xabc).unwrap()),
        span: span_id(1),
        flags: Context::SAMPLED,
    };
    let traced = Traced {
        context,
        parent: Some(span_id(0xf00)),
        state: "a=1".into(),
        id: "req-7".into(),
        prompt: None,
        version: "2025-11-25".into(),
        client_over_http: true,
        server_over_http: false,
    };
    What::Began(Box::new(Began {
        server: "ci".into(),
        method: Method::ToolsCall,
        tool: Some("build".into()),
        client: "cursor 1.2".into(),
        principal: "".into(),
        bytes: 10,
        ago: Duration::ZERO,
        trace: Some(Box::new(traced)),
    }))
}

fn sent(nth: u32) -> What {
    let traced = Attempt { span: span_id(10 + u64::from(nth)), id: AttemptId(40 + u64::from(nth)) };
    What::Sent { attempt: nth, run: Run(0), traced: Some(traced) }
}

fn ended(outcome: Outcome, code: Option<i64>) -> What {
    What::Ended(Ended { outcome, took: Duration::ZERO, bytes: 5, code })
}

/// The spans of one call as they are written, its own first.
fn spans(steps: impl IntoIterator<Item = (u64, What)>) -> Vec<Json> {
    let mut otlp = otlp();
    for (millis, what) in steps {
        otlp.step(at(millis), &Step::Call(NO, what));
    }
    assert!(otlp.open.is_empty());
    let spans = otlp.spans.collect(Duration::ZERO);
    let whole = request(&Origin { process: "p-1".into() }, &spans);
    let mut whole: Json = serde_json::from_slice(&whole).unwrap();
    assert_valid(&whole);
    whole["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array_mut().unwrap().drain(..).collect()
}

fn attribute<'a>(span: &'a Json, name: &str) -> Option<&'a str> {
    let all = span["attributes"].as_array().unwrap();
    let found = all.iter().find(|one| one["key"] == name)?;
    found["value"].as_object().unwrap().values().next().unwrap().as_str()
}

/// The shape of an `ExportTraceServiceRequest` in JSON: what may stand where, and as what.
fn assert_valid(whole: &Json) {
    let members = |json: &Json, known: &[&str]| {
        for name in json.as_object().expect("an object").keys() {
            assert!(known.contains(&name.as_str()), "{name} in {json}");
        }
    };
    let hex = |json: &Json, digits: usize| {
        let text = json.as_str().expect("a text");
        assert!(text.len() == digits && text.bytes().all(|byte| byte.is_ascii_hexdigit()), "{text}");
    };
    let nanos =
        |json: &Json| assert!(json.as_str().is_some_and(|text| text.parse::<u64>().is_ok()), "{json}");
    let attributes = |json: &Json| {
        for one in json.as_array().expect("a list") {
            members(one, &["key", "value"]);
            members(&one["value"], &["stringValue", "intValue", "boolValue"]);
            assert_eq!(one["value"].as_object().map(serde_json::Map::len), Some(1), "{one}");
            assert!(one["value"].get("intValue").is_none_or(Json::is_string), "{one}");
        }
    };
    members(whole, &["resourceSpans"]);
    let of_resource = &whole["resourceSpans"][0];
    members(of_resource, &["resource", "scopeSpans"]);
    attributes(&of_resource["resource"]["attributes"]);
    let of_scope = &of_resource["scopeSpans"][0];
    members(of_scope, &["scope", "spans"]);
    for span in of_scope["spans"].as_array().unwrap() {
        members(
            span,
            &[
                "traceId",
                "spanId",
                "parentSpanId",
                "traceState",
                "flags",
                "name",
                "kind",
                "startTimeUnixNano",
                "endTimeUnixNano",
                "attributes",
                "events",
                "droppedEventsCount",
                "status",
            ],
        );
        hex(&span["traceId"], 32);
        hex(&span["spanId"], 16);
        if let Some(parent) = span.get("parentSpanId") {
            hex(parent, 16);
        }
        nanos(&span["startTimeUnixNano"]);
        nanos(&span["endTimeUnixNano"]);
        assert!(span["flags"].is_u64() && span["kind"].is_u64(), "{span}");
        attributes(&span["attributes"]);
        for event in span["events"].as_array().into_iter().flatten() {
            members(event, &["timeUnixNano", "name", "attributes"]);
            nanos(&event["timeUnixNano"]);
            attributes(&event["attributes"]);
        }
    }
}

#[test]
fn a_call_and_its_attempt_are_two_spans() {
    let spans = spans([(0, began()), (2, sent(1)), (7, ended(Outcome::Answered, None))]);
    let [call, attempt] = &spans[..] else { panic!("{spans:?}") };
    let text = |key: &str, value: &str| json!({"key": key, "value": {"stringValue": value}});
    let expected = json!({
        "traceId": "00000000000000000000000000000abc", "spanId": "0000000000000001",
        "parentSpanId": "0000000000000f00", "traceState": "a=1", "flags": 0x301,
        "name": "tools/call build", "kind": 2,
        "startTimeUnixNano": "1000000000000", "endTimeUnixNano": "1000007000000",
        "attributes": [
            text("mcp.method.name", "tools/call"), text("gen_ai.operation.name", "execute_tool"),
            text("gen_ai.tool.name", "build"), text("jsonrpc.request.id", "req-7"),
            text("mcp.protocol.version", "2025-11-25"), text("network.transport", "tcp"),
            text("network.protocol.name", "http"), text("network.protocol.version", "1.1"),
            text("outlast.server", "ci"), text("outlast.outcome", "answered"),
            {"key": "outlast.attempts", "value": {"intValue": "1"}}, text("outlast.client", "cursor 1.2"),
        ],
    });
    assert_eq!(*call, expected);
    let expected = json!({
        "traceId": "00000000000000000000000000000abc", "spanId": "000000000000000b",
        "parentSpanId": "0000000000000001", "traceState": "a=1", "flags": 0x101,
        "name": "tools/call build", "kind": 3,
        "startTimeUnixNano": "1000002000000", "endTimeUnixNano": "1000007000000",
        "attributes": [
            text("mcp.method.name", "tools/call"), text("gen_ai.operation.name", "execute_tool"),
            text("gen_ai.tool.name", "build"), text("jsonrpc.request.id", "41"),
            text("mcp.protocol.version", "2025-11-25"), text("network.transport", "pipe"),
            text("outlast.server", "ci"),
            {"key": "outlast.attempt", "value": {"intValue": "1"}}, {"key": "outlast.run", "value": {"intValue": "0"}},
        ],
    });
    assert_eq!(*attempt, expected);
}

#[test]
fn each_attempt_says_how_it_ended() {
    let why = "its server went away";
    let steps = [
        (0, began()),
        (0, sent(1)),
        (5, What::Retried { why }),
        (5, What::Queued),
        (9, sent(2)),
        (12, ended(Outcome::Failed("timeout"), Some(-32001))),
    ];
    let spans = spans(steps);
    let said = |span: &Json| (attribute(span, "error.type").map(str::to_owned), span["status"].clone());
    let error = json!({"code": 2});
    assert_eq!(said(&spans[0]), (Some("timeout".into()), error.clone()));
    assert_eq!(attribute(&spans[0], "rpc.response.status_code"), Some("-32001"));
    assert_eq!(said(&spans[1]), (Some("_OTHER".into()), json!({"code": 2, "message": why})));
    assert_eq!(spans[1]["endTimeUnixNano"], "1000005000000");
    assert_eq!(said(&spans[2]), (Some("timeout".into()), error));
    assert_eq!(spans[2]["startTimeUnixNano"], "1000009000000");
    let events: Vec<&str> =
        spans[0]["events"].as_array().unwrap().iter().map(|e| e["name"].as_str().unwrap()).collect();
    assert_eq!(events, ["retried", "queued"]);
}

#[test]
fn a_failure_is_named_by_the_conventions_and_a_cancel_is_none() {
    let kind = |outcome, code| {
        let spans = spans([(0, began()), (1, ended(outcome, code))]);
        (attribute(&spans[0], "error.type").map(str::to_owned), spans[0]["status"]["code"].as_u64())
    };
    assert_eq!(kind(Outcome::ToolError, None), (Some("tool_error".into()), Some(2)));
    assert_eq!(kind(Outcome::Error, Some(-32602)), (Some("-32602".into()), Some(2)));
    assert_eq!(kind(Outcome::Error, None), (Some("_OTHER".into()), Some(2)));
    for outcome in [Outcome::Answered, Outcome::Cancelled, Outcome::Left, Outcome::Declined] {
        assert_eq!(kind(outcome, None), (None, None), "{outcome:?}");
    }
}

/// A call of a day has thousands of keep-alives, and may be asked about without end.
#[test]
fn what_is_kept_of_one_call_is_bounded() {
    let steps = |middle: What, times: u32| {
        let middle = (0..times).map(move |_| (1, middle.clone()));
        [(0, began())].into_iter().chain(middle).chain([(2, ended(Outcome::Answered, None))])
    };
    let quiet = spans(steps(What::KeepAlive, 5_000));
    assert_eq!(quiet[0]["events"].as_array().map(Vec::len), Some(1));
    assert_eq!(attribute(&quiet[0], "outlast.keep_alives"), Some("5000"));
    let asked = spans(steps(What::Asked, 50));
    assert_eq!(asked[0]["events"].as_array().map(Vec::len), Some(EVENTS));
    assert_eq!(asked[0]["droppedEventsCount"], 50 - EVENTS);
    let sent = spans(steps(sent(1), 50));
    assert_eq!((sent.len(), attribute(&sent[0], "outlast.attempts")), (1 + ATTEMPTS, Some("50")));
}

#[test]
fn what_belongs_to_no_trace_is_no_span() {
    let mut otlp = otlp();
    let What::Began(mut unsampled) = began() else { unreachable!() };
    unsampled.trace = None;
    for what in [What::Began(unsampled), sent(1), ended(Outcome::Answered, None)] {
        otlp.step(at(0), &Step::Call(NO, what));
    }
    otlp.spans.finish(Duration::ZERO);
    assert!(otlp.spans.collect(Duration::ZERO).is_empty());
}

#[test]
fn spans_that_nobody_takes_are_lost_and_told_of_in_turns() {
    let mut otlp = otlp();
    let mut told = Vec::new();
    for _ in 0..20_000 {
        for what in [began(), ended(Outcome::Answered, None)] {
            otlp.step(at(0), &Step::Call(NO, what));
        }
        told.extend(otlp.lost(false));
    }
    assert_eq!(told, [1, 10, 100, 1_000, 10_000]);
    assert_eq!(otlp.lost(true), Some(otlp.spans.lost()));
    assert_eq!(otlp.lost(true), None);
}

#[test]
fn an_address_is_taken_with_and_without_the_path_of_traces() {
    let read = |text: &str| endpoint(text).map(|url| url.to_string()).map_err(|why| why.0);
    let ok = |text: &str| Ok(text.to_owned());
    assert_eq!(read("http://127.0.0.1:4318"), ok("http://127.0.0.1:4318/v1/traces"));
    assert_eq!(read("http://127.0.0.1:4318/"), ok("http://127.0.0.1:4318/v1/traces"));
    assert_eq!(read("https://host/otlp"), ok("https://host/otlp/v1/traces"));
    assert_eq!(read("https://host/otlp/v1/traces/?key=1"), ok("https://host/otlp/v1/traces?key=1"));
    for odd in ["127.0.0.1:4318", "grpc://host:4317", "http://", "http://host:99999", "", "a\u{1b}b"] {
        let why = read(odd).unwrap_err();
        assert!(why.contains("write http://127.0.0.1:4318") && !why.contains('\u{1b}'), "{why}");
    }
}
