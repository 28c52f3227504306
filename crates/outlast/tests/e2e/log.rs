//! What outlast says on stderr and writes to its record.

use std::fs::{Permissions, read_to_string, set_permissions};
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, from_str, json};

use crate::http_world::{JSON, event, faulty, said, serve_url};
use crate::world::connect;

#[test]
fn nothing_is_said_while_all_goes_well() {
    let mut client = connect(&[], &[]);
    client.value_of("echo", &json!({}));
    let id = client.begin("hang", &json!({}));
    client.cancel(&id);
    client.hang_up();
    assert_eq!(String::from_utf8(client.all_stderr()).unwrap(), "");
}

#[test]
fn a_limit_that_fires_is_one_warn_line_with_all_about_it() {
    let mut client = connect(&["--timeout", "300ms"], &[]);
    client.call("hang", &json!({}));
    client.hang_up();
    let stderr = String::from_utf8(client.all_stderr()).unwrap();
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    for part in [
        "warn",
        "timeout",
        "server=fake_server",
        "method=tools/call",
        "tool=hang",
        "limit=300ms",
        "elapsed=",
        "setting=--timeout",
        "state=",
        "cancel",
    ] {
        assert!(stderr.contains(part), "`{part}` is not in: {stderr}");
    }
}

#[test]
fn every_limit_that_fires_is_a_line_of_its_own() {
    let mut client = connect(&["--timeout", "300ms", "--max", "5s"], &[]);
    let ids: Vec<Value> = (0..5).map(|_| client.begin("hang", &json!({}))).collect();
    for id in ids {
        client.answer(&id);
    }
    client.hang_up();
    let stderr = String::from_utf8(client.all_stderr()).unwrap();
    assert_eq!(stderr.lines().filter(|line| line.contains("warn: timeout")).count(), 5, "{stderr}");
}

#[test]
fn the_log_can_be_an_object_a_line() {
    let mut client = connect(&["--timeout", "300ms", "--log-format", "json"], &[]);
    client.call("hang", &json!({}));
    client.hang_up();
    let stderr = String::from_utf8(client.all_stderr()).unwrap();
    let lines: Vec<Value> = stderr.lines().map(|line| from_str(line).expect("JSON")).collect();
    assert_eq!(lines.len(), 1, "{stderr}");
    assert_eq!((&lines[0]["level"], &lines[0]["kind"]), (&json!("warn"), &json!("timeout")));
    assert!(lines[0]["time"].as_str().unwrap().ends_with('Z'), "{stderr}");
    let line = &lines[0];
    assert!(line["message"].as_str().unwrap().starts_with("`hang` gave no sign of life for 300ms"), "{line}");
    for (field, value) in [
        ("server", json!("fake_server")),
        ("method", json!("tools/call")),
        ("tool", json!("hang")),
        ("limitMs", json!(300)),
        ("setting", json!("--timeout")),
        ("attempts", json!(1)),
        ("serverState", json!("cancelled")),
        ("retry", json!("unsafe")),
    ] {
        assert_eq!(line[field], value, "{field}: {line}");
    }
    assert!(line["elapsedMs"].as_u64().unwrap() >= 300, "{line}");
}

#[test]
fn a_line_of_the_log_begins_with_its_time() {
    let mut client = connect(&["--timeout", "300ms"], &[]);
    client.call("hang", &json!({}));
    client.hang_up();
    let stderr = String::from_utf8(client.all_stderr()).unwrap();
    let (time, rest) = stderr.split_once(' ').unwrap();
    assert!(time.len() == "2026-11-15T09:30:00.123Z".len() && time.ends_with('Z'), "{stderr}");
    assert!(rest.starts_with("outlast: warn: timeout "), "{stderr}");
}

#[test]
fn noise_is_counted_to_the_end() {
    let mut client = connect(&[], &[]);
    client.value_of("write_lines", &json!({"lines": ["one", "two", "three"]}));
    client.hang_up();
    let stderr = String::from_utf8(client.all_stderr()).unwrap();
    let lines: Vec<&str> = stderr.lines().collect();
    assert_eq!(lines.len(), 2, "{stderr}");
    assert!(lines[0].contains("wrote a line to stdout that is not a message; dropped: one"), "{stderr}");
    assert!(lines[1].contains("wrote 3 lines to stdout that are not messages (total)"), "{stderr}");
}

#[test]
fn the_level_decides_what_is_said() {
    let mut client = connect(&["--timeout", "300ms", "--log", "error"], &[]);
    client.call("hang", &json!({}));
    client.hang_up();
    assert_eq!(String::from_utf8(client.all_stderr()).unwrap(), "");
    let mut client = connect(&["--log", "debug"], &[]);
    client.hang_up();
    let stderr = String::from_utf8(client.all_stderr()).unwrap();
    assert!(stderr.contains("debug") && stderr.contains("fake_server"), "{stderr}");
}

#[test]
fn a_note_is_one_line_whatever_a_server_writes() {
    let mut client = connect(&[], &[]);
    client.value_of("write_lines", &json!({"lines": ["\u{1b}[31mred\u{7} \r \u{202e}turned"]}));
    client.hang_up();
    let stderr = String::from_utf8(client.all_stderr()).unwrap();
    assert_eq!(stderr.lines().count(), 1, "{stderr:?}");
    assert!(!stderr.trim_end().chars().any(|c| c.is_control() || c == '\u{202e}'), "{stderr:?}");
}

fn records(path: &std::path::Path) -> Vec<Value> {
    read_to_string(path).unwrap().lines().map(|line| from_str(line).expect("JSON")).collect()
}

#[test]
fn every_message_is_recorded_with_its_time_and_direction() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("messages.jsonl");
    let mut client = connect(&["--trace-messages", path.to_str().unwrap()], &[]);
    client.value_of("echo", &json!({"a": 1}));
    client.hang_up();
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let records = records(&path);
    let ways: Vec<&str> = records.iter().map(|record| record["way"].as_str().expect("a direction")).collect();
    let exchange = ["client>", ">server", "server>", ">client"];
    let expected = [&exchange[..], &["client>", ">server"], &exchange[..]].concat();
    assert_eq!(ways, expected);
    assert!(records.iter().all(|record| record["time"].as_str().unwrap().ends_with('Z')));
    assert_eq!(records[6]["message"]["params"]["arguments"], json!({"a": 1}));
    assert_eq!(records[9]["message"]["result"]["structuredContent"], json!({"a": 1}));
}

#[test]
fn secrets_are_not_recorded() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("messages.jsonl");
    let mut client = connect(&["--trace-messages", path.to_str().unwrap()], &[]);
    let secret = "hunter2-very-secret";
    client.value_of(
        "echo",
        &json!({
            "password": secret, "api_key": secret, "apiKey": secret, "accessToken": secret, "Authorization": secret,
            "deep": [{"client_secret": secret, "headers": {"cookie": secret}}], "header": format!("Bearer {secret}"),
            "harmless": "to be seen",
        }),
    );
    client.hang_up();
    let text = read_to_string(&path).unwrap();
    assert!(!text.contains(secret), "{text}");
    assert!(text.contains("to be seen") && text.contains("***"), "{text}");
}

#[test]
fn what_a_person_names_is_not_recorded() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("messages.jsonl");
    let mut client = connect(&["--redact", "iban*", "--trace-messages", path.to_str().unwrap()], &[]);
    client.value_of("echo", &json!({"payment": {"iban_of": "DE00-planted", "amount": 5}}));
    client.hang_up();
    let text = read_to_string(&path).unwrap();
    assert!(!text.contains("DE00-planted") && text.contains(r#"{"amount":5,"iban_of":"***"}"#), "{text}");
}

/// With the whole of it, whoever is given the record could fetch the answer.
#[test]
fn the_ticket_of_a_task_is_cut_in_the_record() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("messages.jsonl");
    let mut client = connect(&["--tasks", "--trace-messages", path.to_str().unwrap()], &[]);
    let params = json!({"name": "echo", "arguments": {}, "task": {}});
    let id = client.request("tools/call", &params);
    let made = client.answer(&id);
    let ticket = made["result"]["task"]["taskId"].as_str().expect("a task").to_owned();
    let id = client.request("tasks/result", &json!({"taskId": ticket}));
    assert!(client.answer(&id)["result"].is_object());
    client.hang_up();
    let text = read_to_string(&path).unwrap();
    assert!(!text.contains(&ticket), "{text}");
    let shown = format!("\"{}…\"", &ticket[..8]);
    assert!(text.matches(&shown).count() >= 3, "made, asked for, and in the answer: {text}");
}

#[test]
fn a_secret_in_a_list_or_an_object_under_a_secret_name_is_not_recorded() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("messages.jsonl");
    let mut client = connect(&["--trace-messages", path.to_str().unwrap()], &[]);
    let secret = "hunter2-very-secret";
    client.value_of("echo", &json!({"passwords": [secret], "credentials": {"user": "me", "pin": secret}}));
    client.hang_up();
    let text = read_to_string(&path).unwrap();
    assert!(!text.contains(secret), "{text}");
}

#[test]
fn a_record_that_is_there_is_appended_to() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("messages.jsonl");
    std::fs::write(&path, "{}\n").unwrap();
    set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
    let mut client = connect(&["--trace-messages", path.to_str().unwrap()], &[]);
    client.hang_up();
    assert_eq!(records(&path)[0], json!({}));
    assert!(records(&path).len() > 1);
}

#[test]
fn a_record_that_others_could_read_is_closed_to_them() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("messages.jsonl");
    std::fs::write(&path, "").unwrap();
    set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
    connect(&["--trace-messages", path.to_str().unwrap()], &[]).hang_up();
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn a_record_that_cannot_grow_costs_no_call_and_is_told_of() {
    let mut client = connect(&["--trace-messages", "/dev/full"], &[]);
    assert_eq!(client.value_of("echo", &json!({"a": 1})), json!({"a": 1}));
    client.hang_up();
    let stderr = String::from_utf8(client.all_stderr()).unwrap();
    assert!(stderr.contains("trace-messages: 10 messages were not recorded"), "{stderr}");
}

/// Clients and servers over HTTP, answers in one piece and on streams, and an error that came with a status.
#[test]
fn messages_over_http_are_recorded_on_both_sides() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("messages.jsonl");
    let server = faulty(|request, connection| match request.json()["params"]["arguments"]["how"].as_str() {
        Some("events") => connection.all_events(event(&said(request, &json!("on a stream")))),
        _ => {
            let error = json!({"code": -32602, "message": "no"});
            let body = json!({"jsonrpc": "2.0", "id": request.json()["id"], "error": error});
            connection.answer("400 Bad Request", &[JSON], body.to_string());
        }
    });
    let mut served = serve_url(&["--trace-messages", path.to_str().unwrap()], &server.url());
    let mut session = served.session();
    session.value_of("echo", &json!({"pwd": "hunter2", "seen": "in one piece"}));
    session.value_of("fault", &json!({"how": "events"}));
    assert_eq!(session.call("fault", &json!({}))["error"]["code"], -32602);
    served.process.signal(nix::sys::signal::Signal::SIGTERM);
    served.process.end();
    let text = read_to_string(&path).unwrap();
    assert!(!text.contains("hunter2") && !text.contains(&session.id), "{text}");
    let records = records(&path);
    let ways = |fits: &dyn Fn(&Value) -> bool| -> Vec<&str> {
        let fitting = records.iter().filter(|record| fits(&record["message"]));
        fitting.map(|record| record["way"].as_str().expect("a direction")).collect()
    };
    let calls = ways(&|message| message["method"] == "tools/call");
    assert_eq!(calls, ["client>", ">server"].repeat(3));
    assert_eq!(
        ways(&|message| message["result"]["structuredContent"] == "on a stream"),
        ["server>", ">client"]
    );
    assert_eq!(
        ways(&|message| message["result"]["structuredContent"]["seen"] == "in one piece"),
        ["server>", ">client"]
    );
    assert_eq!(ways(&|message| message["error"]["code"] == -32602), ["server>", ">client"]);
    assert!(records.iter().any(|record| record["status"] == 400 && record["way"] == "server>"), "{text}");
    let exchanges = records.iter().filter(|record| record["way"].as_str().unwrap().contains("client"));
    assert!(exchanges.into_iter().all(|record| record["exchange"].is_u64()), "{text}");
}

#[test]
fn messages_can_be_recorded_to_stderr() {
    let mut client = connect(&["--trace-messages", "-"], &[]);
    client.value_of("echo", &json!({"password": "hunter2"}));
    client.hang_up();
    let stderr = String::from_utf8(client.all_stderr()).unwrap();
    assert!(
        stderr.lines().count() >= 10 && stderr.contains("client>") && !stderr.contains("hunter2"),
        "{stderr}"
    );
}
