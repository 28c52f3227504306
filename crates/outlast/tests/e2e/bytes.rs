//! Byte for byte: what outlast does not have to change arrives as it was sent.

use outlast_testkit::peer::Peer;
use serde_json::{Value, json, to_string};

use crate::world::{OUTLAST, cancels, connect, fake_server, history, outlast, start};

/// Ids of every kind that JSON-RPC knows, and some that only exist on the wire.
const IDS: [&str; 15] = [
    "0",
    "7",
    "-7",
    "-0",
    "1.0",
    "1e2",
    "9007199254740993",
    "18446744073709551616",
    "123456789012345678901234567890",
    "null",
    r#""""#,
    r#""7""#,
    r#""a b""#,
    r#""\u0061\"\\\/ü\ud83d\ude00""#,
    r#""6ba7b810-9dad-11d1-80b4-00c04fd430c8""#,
];

/// Calls `answer_with`: the server writes this line, with its own id for `$ID`.
fn send_answer_with(client: &mut Peer, id: &str, line: &str) {
    let line = to_string(line).unwrap();
    client.send(format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"answer_with","arguments":{{"line":{line}}}}}}}"#
    ));
}

#[test]
fn ids_of_every_kind_come_back_exactly() {
    let mut client = connect(&[], &[]);
    for id in IDS {
        send_answer_with(&mut client, id, r#"{"jsonrpc":"2.0","id":$ID,"result":{}}"#);
        assert_eq!(client.next_line().text(), format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#));
    }
}

#[test]
fn ids_of_every_kind_are_in_flight_at_once_and_are_not_mixed_up() {
    let mut client = connect(&[], &[]);
    for id in IDS {
        client.send(format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"echo","arguments":{{"mine":{}}}}}}}"#,
            to_string(id).unwrap()
        ));
    }
    for _ in IDS {
        let line = client.next_line();
        let mine = line.json()["result"]["structuredContent"]["mine"].as_str().expect("an echo").to_owned();
        assert!(line.text().starts_with(&format!(r#"{{"jsonrpc":"2.0","id":{mine},"#)), "{}", line.text());
    }
}

#[test]
fn an_id_goes_to_the_server_in_its_json_type_and_may_come_back_in_the_other() {
    let mut client = connect(&["--log", "info"], &[]);
    for id in ["5", r#""five""#] {
        client.send(format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"answer_other_id_type"}}}}"#));
        assert!(client.next_line().text().contains(&format!(r#""id":{id},"#)));
    }
    client.stderr_where(|text| text.contains("another JSON type"));
    let calls: Vec<String> =
        history(&mut client).into_iter().filter(|line| line.contains("other_id_type")).collect();
    let ids: Vec<Value> =
        calls.iter().map(|line| serde_json::from_str::<Value>(line).unwrap()["id"].clone()).collect();
    assert!(ids[0].is_i64() && ids[1].is_string(), "{ids:?}");
}

#[test]
fn a_request_reaches_the_server_with_every_byte_but_its_id() {
    let params = r#"{"z":1.0, "a" : 1e400,"big":123456789012345678901234567890,"esc":"\u00e9\/\ud83d\ude00é","twice":{"k":1,"k":2},"list":[1 ,2,	3],"deep":{"id":1,"method":"x","_meta":{"progressToken":5}}}"#;
    let line = |id: &str| {
        format!(
            r#"{{"extra":{{"x":null}},"params":{params},"method":"vendor/thing" , "id":{id},"jsonrpc":"2.0"}}"#
        )
    };
    let mut client = connect(&[], &[]);
    client.send(line("815"));
    client.answer(&json!(815));
    let history = history(&mut client);
    let got = history.iter().find(|line| line.contains("vendor/thing")).expect("it arrived");
    let inner = serde_json::from_str::<Value>(&got.replace("1e400", "1")).unwrap()["id"].to_string();
    assert_eq!(*got, line(&inner));
}

#[test]
fn a_tool_call_reaches_the_server_with_every_byte_but_its_id_and_token() {
    let line = |id: &str, token: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","method":"tools/\u0063all","params":{{"arguments":{{"x":1.0}},"_meta":{{"b":[], "progressToken" :{token},"a":{{}}}},"name":"tell_line"}},"\u0069d":{id}}}"#
        )
    };
    let mut client = connect(&[], &[]);
    client.send(line(r#""mine""#, r#""t""#));
    let answer = client.answer(&json!("mine"));
    let got = answer["result"]["structuredContent"].as_str().expect("the line");
    let message: Value = serde_json::from_str(got).unwrap();
    let token = &message["params"]["_meta"]["progressToken"];
    assert_eq!(got, line(&message["id"].to_string(), &token.to_string()));
}

#[test]
fn notifications_pass_both_ways_unchanged() {
    let mut client = connect(&[], &[]);
    let ours = r#"{ "params" : {"x":1.0,"y":"\u0041"} ,"method":"notifications/vendor","jsonrpc":"2.0"}"#;
    client.send(ours);
    // The client's progress on a question of the server is not ours to touch.
    let progress = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t","progress":1.0}}"#;
    client.send(progress);
    let theirs = r#"{ "params" : {"n":2.50,"y":"\u0042"} ,"method":"notifications/other","jsonrpc":"2.0"}"#;
    client.value_of("write_lines", &json!({"lines": [theirs]}));
    assert!(client.log().iter().any(|line| line.text() == theirs));
    let history = history(&mut client);
    assert!(history.contains(&ours.to_owned()) && history.contains(&progress.to_owned()), "{history:?}");
}

#[test]
fn an_answer_reaches_the_client_with_every_byte_but_its_id() {
    let answers = [
        r#"{"result":{"v":1.0,"w":1e400,"big":123456789012345678901234567890},"id":$ID,"jsonrpc":"2.0"}"#,
        r#"{ "jsonrpc" : "2.0" , "id" : $ID , "result" : { "b":1,"a":2,"esc":"\u00e9\/\ud83d\ude00é" } }"#,
        r#"{"jsonrpc":"2.0","result":{"id":1,"result":{"id":2},"error":null},"\u0069d":$ID,"x":[]}"#,
        r#"{"jsonrpc":"2.0","id":$ID,"error":{"code":-32001,"message":"mine","data":{"n":1.0}}}"#,
        r#"{"jsonrpc":"2.0","id":$ID,"error":{"code":-31001,"message":"also mine"}}"#,
        r#"{"jsonrpc":"2.0","id":$ID,"result":null}"#,
        r#"{"id":$ID,"result":"no version"}"#,
    ];
    let mut client = connect(&[], &[]);
    for answer in answers {
        send_answer_with(&mut client, "1.50", answer);
        assert_eq!(client.next_line().text(), answer.replace("$ID", "1.50"));
    }
}

#[test]
fn an_answer_that_strict_json_refuses_passes_unchanged_and_is_noted() {
    let mut client = connect(&[], &[]);
    client.send(r#"{"jsonrpc":"2.0","id":"l","method":"tools/call","params":{"name":"answer_latin1"}}"#);
    assert_eq!(
        client.next_line().bytes,
        b"{\"jsonrpc\":\"2.0\",\"id\":\"l\",\"result\":{\"text\":\"caf\xe9\"}}"
    );
    client.send(r#"{"jsonrpc":"2.0","id":"n","method":"tools/call","params":{"name":"answer_nan"}}"#);
    let expected = r#"{"jsonrpc":"2.0","id":"n","result":{"content":[],"structuredContent":{"mean":NaN,"low":-Infinity}}}"#;
    assert_eq!(client.next_line().text(), expected);
    client.stderr_where(|text| text.contains("not strict JSON"));
}

#[test]
fn line_ends_marks_and_blank_lines_do_not_matter() {
    let mut client = connect(&[], &[]);
    client.send_bytes(b"\xef\xbb\xbf{\"jsonrpc\":\"2.0\",\"id\":\"bom\",\"method\":\"ping\"}\r\n\r\n\n  \n");
    assert_eq!(client.next_line().json()["id"], "bom");
    client.send_bytes(b"  {\"jsonrpc\":\"2.0\",\"id\":\"blank\",\"method\":\"ping\"}  \r\n");
    assert_eq!(client.next_line().json()["id"], "blank");
    let line = "{\"jsonrpc\":\"2.0\",\"id\":$ID,\"result\":{}}\r";
    send_answer_with(&mut client, "1", line);
    assert_eq!(client.next_line().json(), json!({"jsonrpc": "2.0", "id": 1, "result": {}}));
}

#[test]
fn a_hundred_thousand_levels_pass() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let mut client = connect(&[], &[]);
    send_answer_with(&mut client, "1", &format!(r#"{{"jsonrpc":"2.0","id":$ID,"result":{deep}}}"#));
    assert_eq!(client.next_line().text(), format!(r#"{{"jsonrpc":"2.0","id":1,"result":{deep}}}"#));
}

#[test]
fn ten_megabytes_pass_there_and_back() {
    let mut client = connect(&[], &[]);
    let payload: String = (0..10 << 20).map(|number| char::from(b'a' + (number % 23) as u8)).collect();
    let back = client.value_of("echo", &json!({"payload": payload}));
    assert!(back["payload"] == payload, "it came back changed");
}

#[test]
fn outlast_in_front_of_outlast_changes_nothing() {
    let mut command = outlast();
    command.args(["--", OUTLAST, "--", OUTLAST, "--"]).arg(fake_server());
    let mut client = Peer::start(&mut command);
    client.handshake();
    let answer = r#"{"result":{"v":1.0},"id":$ID,"jsonrpc":"2.0"}"#;
    for id in IDS {
        send_answer_with(&mut client, id, answer);
        assert_eq!(client.next_line().text(), answer.replace("$ID", id));
    }
}

#[test]
fn a_modern_conversation_passes_too() {
    let mut client = start(&[], &[]);
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28"});
    let id = client.request("server/discover", &json!({"_meta": meta}));
    assert_eq!(client.answer(&id)["result"]["method"], "server/discover");
    client.send(r#"{"jsonrpc":"2.0","id":"sub","method":"subscriptions/listen","params":{}}"#);
    let update = client.message("notifications/resources/updated");
    assert_eq!(update["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], "sub");
    client.cancel(&json!("sub"));
    assert_eq!(cancels(&mut client).len(), 1);
}
