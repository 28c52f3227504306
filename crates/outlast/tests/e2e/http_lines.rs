//! Line ends inside messages: no byte of a message ends a line of ours, whatever its writer put where.

use serde_json::{Value, json};

use crate::http_world::{JSON, faulty, reached, said, serve, serve_url};

/// White space between tokens may be a carriage return, which ends a line of an event stream.
#[test]
fn a_carriage_return_between_tokens_costs_no_answer() {
    let served = serve(&[], &[]);
    let line = "{\"jsonrpc\":\"2.0\",\r\"id\":$ID,\r\"result\":\r{\"structuredContent\":\"whole\"}}";
    assert_eq!(served.session().value_of("answer_with", &json!({"line": line})), "whole");
}

/// A tool that repeats what a stranger wrote must not let the stranger write events.
#[test]
fn a_carriage_return_inside_a_text_forges_no_event() {
    let served = serve(&[], &[]);
    let text = "a\r\rid: forged\rdata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\"}\r\rb";
    let raw = text.replace('"', "\\\"");
    let line = format!("{{\"jsonrpc\":\"2.0\",\"id\":$ID,\"result\":{{\"structuredContent\":\"{raw}\"}}}}");
    let mut session = served.session();
    let (mut caller, id) = session.begin_call("answer_with", &json!({"line": line}));
    caller.head();
    let events: Vec<_> = std::iter::from_fn(|| caller.event()).collect();
    let messages: Vec<Value> =
        events.iter().filter(|event| !event.data.is_empty()).map(|event| event.json()).collect();
    assert_eq!(messages, [json!({"jsonrpc": "2.0", "id": id, "result": {"structuredContent": text}})]);
    assert!(events.iter().all(|event| event.id.as_deref() != Some("forged")), "{events:?}");
}

/// What a stream kept for a client that comes back is written in the same way.
#[test]
fn a_resumed_stream_holds_no_carriage_return_either() {
    let served = serve(&[], &[]);
    let mut session = served.session();
    let line = "{\"jsonrpc\":\"2.0\",\"id\":$ID,\"result\":{\"structuredContent\":\"1\r2\"}\r}";
    let (mut caller, id) = session.begin_call("answer_with", &json!({"line": line}));
    caller.head();
    let first = caller.event().expect("an event").id.expect("its id");
    assert_eq!(caller.answer(&id)["result"]["structuredContent"], "1\r2");
    let mut again = session.listen(Some(&first));
    again.head();
    assert_eq!(again.answer(&id)["result"]["structuredContent"], "1\r2");
}

/// Answers of a remote server over several lines, to a client on a pipe and to one on a stream.
#[test]
fn answers_over_several_lines_are_one_line_everywhere() {
    let server = faulty(|request, connection| {
        let how = request.json()["params"]["arguments"]["how"].clone();
        let pretty =
            serde_json::to_string_pretty(&said(request, &json!({"said": how, "list": [1, 2]}))).unwrap();
        match how.as_str() {
            Some("json") => connection.answer("200 OK", &[JSON], pretty.replace('\n', "\r\n")),
            // No strict JSON: the line end stands raw inside a text.
            Some("raw") => connection.answer("200 OK", &[JSON], pretty.replace("\"raw\"", "\"raw\r\n\n\"")),
            _ => connection.all_events(format!("data: {}\n\n", pretty.replace('\n', "\r\ndata: "))),
        }
    });
    let served = serve_url(&[], &server.url());
    let (mut piped, mut session) = (reached(&[], &server.url()), served.session());
    for (how, expected) in [("json", "json"), ("events", "events"), ("raw", "raw\r\n\n")] {
        let expected = json!({"said": expected, "list": [1, 2]});
        assert_eq!(piped.value_of("fault", &json!({"how": how})), expected);
        assert_eq!(session.value_of("fault", &json!({"how": how})), expected);
    }
}

/// A client's own request over several lines reaches a server on a pipe as one.
#[test]
fn requests_over_several_lines_are_one_line_to_a_pipe() {
    let served = serve(&[], &[]);
    let session = served.session();
    let params = json!({"name": "tell_line", "arguments": {"a": [1, {"b": 2}]}});
    let message = json!({"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": params});
    for end in ["\n", "\r\n", "\r"] {
        let body = serde_json::to_string_pretty(&message).unwrap().replace('\n', end);
        let text = session.post_bytes(body).text();
        let data = text.lines().rev().find_map(|line| line.strip_prefix("data: ")).expect("an answer");
        let answer: Value = serde_json::from_str(data).unwrap();
        let line = answer["result"]["structuredContent"].as_str().expect("a line");
        let heard: Value = serde_json::from_str(line).unwrap();
        assert_eq!(heard["params"]["arguments"], params["arguments"], "{end:?}");
    }
}
