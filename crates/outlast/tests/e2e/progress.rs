//! Progress: the server's and our own in one rising series, on the client's token, until the answer.

use outlast_testkit::peer::{Line, Peer};
use serde_json::{Value, json};

use crate::world::{connect, data, history};

fn is_progress(line: &Line) -> bool {
    line.json()["method"] == "notifications/progress"
}

/// The reports so far.
fn reports(client: &Peer) -> Vec<Value> {
    client.log().iter().filter(|line| is_progress(line)).map(|line| line.json()["params"].clone()).collect()
}

fn assert_rising(reports: &[Value]) {
    let values: Vec<f64> =
        reports.iter().map(|report| report["progress"].as_f64().expect("a number")).collect();
    assert!(values.windows(2).all(|pair| pair[0] < pair[1]), "{values:?}");
}

/// Sends a call with a raw token and waits for its answer.
fn call_with_raw_token(client: &mut Peer, token: &str, tool: &str, arguments: &Value) -> Value {
    client.send(format!(
        r#"{{"jsonrpc":"2.0","id":"t","method":"tools/call","params":{{"_meta":{{"progressToken":{token}}},"name":"{tool}","arguments":{arguments}}}}}"#
    ));
    client.answer(&json!("t"))
}

#[test]
fn a_silent_call_is_kept_alive_on_the_clients_own_token() {
    let tokens = [r#""tok""#, "7", "0", r#""7""#, "9007199254740993", r#""\u0074\"ö""#, "-1"];
    let mut client = connect(&["--keep-alive", "50ms"], &[]);
    for token in tokens {
        let before = client.log().len();
        let answer = call_with_raw_token(&mut client, token, "silent", &json!({"ms": 330}));
        assert_eq!(answer["result"]["structuredContent"], "done");
        let kept: Vec<&Line> = client.log()[before..].iter().filter(|line| is_progress(line)).collect();
        assert!(kept.len() >= 3, "{token}: {kept:?}");
        for line in &kept {
            assert!(line.text().contains(&format!(r#""progressToken":{token},"#)), "{}", line.text());
        }
        let kept: Vec<Value> = kept.iter().map(|line| line.json()["params"].clone()).collect();
        assert_rising(&kept);
        assert!(kept.iter().all(|report| report.get("total").is_none()), "{kept:?}");
        assert_eq!(kept[0]["message"], "`silent` still running (0 s), no progress reported yet");
    }
}

#[test]
fn nothing_comes_on_a_token_after_the_answer() {
    let mut client = connect(&["--keep-alive", "50ms"], &[]);
    let id = client.begin_with_token("silent", &json!({"ms": 300}), &json!("first"));
    client.answer(&id);
    let answered = client.log().len();
    // Time passes while another call runs, which has no token.
    client.value_of("silent", &json!({"ms": 300}));
    let late: Vec<String> =
        client.log()[answered..].iter().filter(|line| is_progress(line)).map(Line::text).collect();
    assert!(late.is_empty(), "{late:?}");
}

#[test]
fn a_call_without_a_token_gets_no_progress() {
    let mut client = connect(&["--keep-alive", "50ms"], &[]);
    client.value_of("silent", &json!({"ms": 300}));
    client.value_of("progress", &json!({"every_ms": 20, "values": [1, 2, 3]}));
    assert_eq!(reports(&client), [] as [Value; 0]);
}

#[test]
fn null_is_no_token() {
    let mut client = connect(&["--keep-alive", "50ms"], &[]);
    call_with_raw_token(&mut client, "null", "silent", &json!({"ms": 300}));
    assert_eq!(reports(&client), [] as [Value; 0]);
}

#[test]
fn the_server_is_asked_for_progress_even_if_the_client_does_not_want_it() {
    let mut client = connect(&[], &[]);
    assert!(client.value_of("tell_token", &json!({})).is_string());
}

#[test]
fn a_token_is_added_only_where_there_is_an_object_to_hold_it() {
    let mut client = connect(&[], &[]);
    let lines = [
        r#"{"jsonrpc":"2.0","id":901,"method":"tools/call"}"#,
        r#"{"jsonrpc":"2.0","id":902,"method":"tools/call","params":[1]}"#,
        r#"{"jsonrpc":"2.0","id":903,"method":"tools/list","params":{}}"#,
        r#"{"jsonrpc":"2.0","id":904,"method":"vendor/thing","params":{}}"#,
        r#"{"jsonrpc":"2.0","id":905,"method":"resources/read","params":{}}"#,
        r#"{"jsonrpc":"2.0","id":906,"method":"prompts/get","params":{"_meta":{}}}"#,
        r#"{"jsonrpc":"2.0","id":907,"method":"tools/call","params":{"_meta":{"a":1},"name":"echo"}}"#,
    ];
    for line in lines {
        client.send(line);
    }
    let history = history(&mut client);
    let got: Vec<Value> = history.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    let got = &got[2..2 + lines.len()];
    assert_eq!(got[0].get("params"), None);
    assert_eq!(got[1]["params"], json!([1]));
    assert_eq!(got[2]["params"], json!({}));
    assert_eq!(got[3]["params"], json!({}));
    for message in &got[4..] {
        assert!(!message["params"]["_meta"]["progressToken"].is_null(), "{message}");
    }
    assert_eq!(got[6]["params"]["_meta"]["a"], 1);
}

#[test]
fn the_servers_progress_is_forwarded_as_it_is() {
    let mut client = connect(&[], &[]);
    let arguments = json!({"every_ms": 10, "values": [1, 2.5, 40]});
    let id = client.begin_with_token("progress", &arguments, &json!("mine"));
    client.answer(&id);
    let expected: Vec<Value> = [json!(1), json!(2.5), json!(40)]
        .iter()
        .map(|value| json!({"progressToken": "mine", "progress": value, "total": 1000, "message": "step"}))
        .collect();
    assert_eq!(reports(&client), expected);
}

#[test]
fn our_keep_alive_and_the_servers_progress_make_one_rising_series() {
    let mut client = connect(&["--keep-alive", "50ms"], &[]);
    let arguments = json!({"every_ms": 130, "values": [0, 0, 1, 1, 0.5, 2, 1000, 1000]});
    let id = client.begin_with_token("progress", &arguments, &json!(3));
    client.answer(&id);
    let reports = reports(&client);
    assert_rising(&reports);
    let ours = |report: &&Value| report["message"] != "step";
    assert!(reports.iter().filter(ours).count() >= 3, "{reports:?}");
    assert!(
        reports
            .iter()
            .any(|report| report["message"].as_str().unwrap().contains("last sign of life 0 s ago"))
    );
    let claims_the_end = |report: &&Value| {
        report["total"].as_f64().is_some_and(|total| report["progress"].as_f64() >= Some(total))
    };
    assert!(
        reports.iter().filter(claims_the_end).count() <= 1,
        "only the server says that it is done: {reports:?}"
    );
}

#[test]
fn keep_alive_can_be_switched_off() {
    let mut client = connect(&["--keep-alive", "50ms", "--tool", "silent=keep-alive:off"], &[]);
    let id = client.begin_with_token("silent", &json!({"ms": 300}), &json!(3));
    client.answer(&id);
    assert_eq!(reports(&client), [] as [Value; 0]);
}

#[test]
fn progress_moves_the_timeout() {
    let mut client = connect(&["--timeout", "700ms"], &[]);
    let answer = client.call("progress", &json!({"every_ms": 200, "values": [1, 2, 3, 4, 5]}));
    assert_eq!(answer["result"]["structuredContent"], "done");
}

#[test]
fn our_own_keep_alive_does_not_move_the_timeout() {
    let mut client = connect(&["--timeout", "400ms", "--keep-alive", "50ms"], &[]);
    let id = client.begin_with_token("hang", &json!({}), &json!(1));
    assert_eq!(data(&client.answer(&id))["kind"], "timeout");
    assert!(reports(&client).len() >= 2);
}

#[test]
fn progress_with_a_plain_timer_does_not_move_it() {
    let mut client = connect(&["--timeout", "500ms", "--signs", "none"], &[]);
    let answer = client.call("progress", &json!({"every_ms": 150, "values": [1, 2, 3, 4, 5, 6]}));
    assert_eq!(data(&answer)["kind"], "timeout");
}

#[test]
fn progress_never_moves_the_hard_cap() {
    let mut client = connect(&["--timeout", "500ms", "--max", "700ms"], &[]);
    let id =
        client.begin_with_token("progress", &json!({"every_ms": 100, "values": vec![1; 20]}), &json!("x"));
    let answer = client.answer(&id);
    assert_eq!(data(&answer)["kind"], "max");
    assert_eq!(data(&answer)["limitMs"], 700);
}

#[test]
fn progress_on_tokens_that_nobody_gave_is_dropped() {
    let mut client = connect(&[], &[]);
    let id = client.begin_with_token("report_on_unknown_tokens", &json!({}), &json!("mine"));
    client.answer(&id);
    assert_eq!(reports(&client), [] as [Value; 0]);
}

#[test]
fn progress_after_the_answer_is_dropped() {
    let mut client = connect(&[], &[]);
    let id = client.begin_with_token("report_after_the_answer", &json!({}), &json!("mine"));
    client.answer(&id);
    client.value_of("silent", &json!({"ms": 50}));
    assert_eq!(reports(&client), [] as [Value; 0]);
}
