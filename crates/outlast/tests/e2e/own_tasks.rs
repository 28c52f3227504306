//! Servers that have tasks of their own: with tasks or without, a client gets its result.

use std::fs::{create_dir_all, read_dir, read_to_string, remove_dir_all};
use std::path::PathBuf;
use std::process;

use outlast_testkit::peer::{LIMIT, Peer, wait_until};
use serde_json::{Value, json};

use crate::http_world::{MODERN, Served, answer_of, serve};
use crate::world::{connect, history, start};

/// Where one test's server keeps its tasks.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("outlast-own-tasks-{}-{name}", process::id()));
        let _ = remove_dir_all(&path);
        create_dir_all(&path).expect("a folder");
        Folder(path)
    }

    fn flag(&self) -> [&str; 2] {
        ["--tasks", self.0.to_str().expect("text")]
    }

    /// Tasks that were ever made.
    fn count(&self) -> usize {
        read_dir(&self.0).expect("a folder").count()
    }

    fn task(&self, name: &str) -> String {
        read_to_string(self.0.join(name)).unwrap_or_default()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = remove_dir_all(&self.0);
    }
}

/// How often the server has got a request of this method.
fn times(client: &mut Peer, method: &str) -> usize {
    let asked = format!("\"{method}\"");
    history(client).iter().filter(|line| line.contains(&asked)).count()
}

#[test]
fn a_tool_that_needs_a_task_answers_a_client_without_tasks() {
    let folder = Folder::new("plain");
    let mut client = connect(&["--keep-alive", "100ms"], &folder.flag());
    let id = client.begin_with_token("job", &json!({"ms": 500}), &json!("token"));
    let answer = client.answer(&id);
    assert_eq!(answer["result"]["structuredContent"], json!({"word": "none"}), "{answer}");
    assert_eq!(
        answer["result"]["_meta"]["io.modelcontextprotocol/related-task"],
        json!({"taskId": "job-0"}),
        "exactly as the server gave it"
    );
    let patient = client.log().iter().filter(|line| line.text().contains("\"progressToken\":\"token\""));
    assert!(patient.count() >= 2, "the client was kept patient");
    // At 100 ms and more, half a second has room for few questions.
    let polls = times(&mut client, "tasks/get");
    assert!((2..=6).contains(&polls), "{polls} questions");
    assert_eq!((folder.count(), times(&mut client, "tasks/result")), (1, 1));
}

#[test]
fn a_task_outlives_the_process_that_made_it_and_is_made_once() {
    let folder = Folder::new("crash");
    let mut client = connect(&[], &folder.flag());
    let answer = client.call("job", &json!({"ms": 800, "exits": true}));
    assert_eq!(answer["result"]["structuredContent"], json!({"word": "none"}), "{answer}");
    assert_eq!(folder.count(), 1, "it was not called twice");
}

#[test]
fn a_cancel_reaches_the_task() {
    let folder = Folder::new("cancel");
    let mut client = connect(&[], &folder.flag());
    let id = client.begin("job", &json!({"ms": 50_000}));
    assert!(wait_until(LIMIT, || folder.task("job-0").contains("ready")));
    assert_eq!(times(&mut client, "tasks/cancel"), 0);
    client.cancel(&id);
    assert!(wait_until(LIMIT, || folder.task("job-0").contains("\"cancelled\":true")));
}

#[test]
fn what_a_legacy_task_asks_reaches_a_client_without_tasks() {
    let folder = Folder::new("asks");
    let mut client = connect(&[], &folder.flag());
    let id = client.begin("job", &json!({"asks": true}));
    let question = client.message("elicitation/create");
    client.send(json!({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept"}}));
    let answer = client.answer(&id);
    assert_eq!(answer["result"]["structuredContent"]["word"], json!({"action": "accept"}), "{answer}");
}

#[test]
fn a_client_with_tasks_and_its_server_are_left_to_themselves() {
    let folder = Folder::new("through");
    let mut client = connect(&["--tasks"], &folder.flag());
    let id =
        client.request("tools/call", &json!({"name": "job", "arguments": {"ms": 300}, "task": {"ttl": 9}}));
    assert_eq!(client.answer(&id)["result"]["task"]["taskId"], "job-0");
    let id = client.request("tasks/get", &json!({"taskId": "job-0"}));
    assert_eq!(client.answer(&id)["result"]["status"], "working");
    let id = client.request("tasks/result", &json!({"taskId": "job-0"}));
    assert_eq!(client.answer(&id)["result"]["structuredContent"], json!({"word": "none"}));
    let id = client.request("tasks/get", &json!({"taskId": "job-9"}));
    assert_eq!(client.answer(&id)["error"]["code"], -32602);
    assert_eq!(times(&mut client, "tasks/get"), 2, "nobody else asked");
}

/// The metadata of a modern request, with these extensions.
fn meta(extensions: &Value) -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}, "extensions": extensions},
    })
}

#[test]
fn a_modern_client_without_the_extension_is_served_and_asked_in_its_own_way() {
    let folder = Folder::new("modern");
    let mut client = start(&[], &folder.flag());
    let mut params =
        json!({"name": "job", "arguments": {"ms": 300, "asks": true}, "_meta": meta(&json!({}))});
    for asks_first in [false, true] {
        // Whether or not it has asked what the server can do.
        if asks_first {
            let id = client.request("server/discover", &json!({"_meta": meta(&json!({}))}));
            client.answer(&id);
        }
        let id = client.request("tools/call", &params);
        let asked = client.answer(&id)["result"].clone();
        assert_eq!(asked["resultType"], "input_required", "{asked}");
        assert_eq!(asked["inputRequests"]["word"]["method"], "elicitation/create");
        params["inputResponses"] = json!({"word": {"action": "accept"}});
        params["requestState"] = asked["requestState"].clone();
        let id = client.request("tools/call", &params);
        let answer = client.answer(&id);
        assert_eq!(answer["result"]["structuredContent"]["word"], json!({"action": "accept"}), "{answer}");
        for member in ["inputResponses", "requestState"] {
            params.as_object_mut().expect("an object").remove(member);
        }
    }
    assert_eq!(folder.count(), 2);
}

/// A modern request about a task of ours.
fn about(served: &Served, method: &str, params: &Value) -> Value {
    let name = params["taskId"].as_str().unwrap_or_default();
    answer_of(&mut served.modern(method, params, &[("Mcp-Name", name)]))
}

#[test]
fn a_modern_task_of_ours_asks_and_is_listened_to() {
    let served = serve(&["--tasks", "--task-after", "50ms", "--state", "none"], &[]);
    let plain = meta(&json!({}));
    let meta = meta(&json!({"io.modelcontextprotocol/tasks": {}}));
    let arguments = json!({"id": "7", "method": "elicitation/create", "params": {"message": "sure?"}});
    // Nothing says which call a question is about: the task that runs shows what another call asks.
    let quiet = json!({"name": "silent", "arguments": {"ms": 1500}, "_meta": meta});
    let quiet = answer_of(&mut served.modern("tools/call", &quiet, &[]))["result"].clone();
    assert_eq!((&quiet["resultType"], &quiet["status"]), (&json!("task"), &json!("working")), "{quiet}");
    let listen = json!({"notifications": {"taskIds": [quiet["taskId"], "nonsense"]}, "_meta": meta});
    let mut events = served.modern("subscriptions/listen", &listen, &[]);
    events.head();
    let acknowledged = events.message_where(|_| true);
    assert_eq!(acknowledged["params"]["notifications"]["taskIds"], json!([quiet["taskId"]]));
    let asking = json!({"name": "ask", "arguments": arguments, "_meta": plain});
    let mut asking = served.modern("tools/call", &asking, &[]);
    let shown = events.message_where(|message| message["params"]["status"] == "input_required");
    let keys: Vec<&String> =
        shown["params"]["inputRequests"].as_object().expect("questions").keys().collect();
    assert_eq!(keys.len(), 1);
    let got = about(&served, "tasks/get", &json!({"taskId": quiet["taskId"], "_meta": meta}));
    assert_eq!(got["result"]["inputRequests"], shown["params"]["inputRequests"]);
    let responses = json!({keys[0]: {"action": "accept"}});
    let update = json!({"taskId": quiet["taskId"], "inputResponses": responses, "_meta": meta});
    assert_eq!(about(&served, "tasks/update", &update)["result"], json!({"resultType": "complete"}));
    let answer = answer_of(&mut asking).to_string();
    assert!(answer.contains("accept"), "{answer}");
    let ended = events.message_where(|message| message["params"]["status"] == "completed");
    assert_eq!(ended["params"]["result"]["structuredContent"], "done");
    assert_eq!(ended["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], 1);
}
