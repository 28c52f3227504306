//! A client that gives up after a fixed time gets a ticket before, and its result later.

use std::process::Command;
use std::time::{Duration, Instant};

use outlast_testkit::peer::Peer;
use serde_json::{Value, json};

use crate::http_world::{answer_of, modern_call, modern_meta, serve};
use crate::world::{cancels, wrapping};

/// How patient the client is. Long, because the machine may be busy.
const CAP: Duration = Duration::from_secs(3);

/// A state folder of its own, and outlast that uses it.
fn kept_in(folder: &std::path::Path) -> Command {
    let state = folder.to_str().expect("text");
    wrapping(&["--client-cap", "3s", "--state", state], &[])
}

/// The ticket in an answer, which stands there word for word in both places.
fn ticket(answer: &Value) -> String {
    let ticket = answer["result"]["_meta"]["dev.outlast/ticket"].as_str().expect("a ticket");
    let text = answer["result"]["content"][0]["text"].as_str().expect("a text");
    assert!(text.contains(ticket) && text.contains("_wait` with {"), "{text}");
    ticket.to_owned()
}

/// The names of all tools in an answer.
fn tools(listed: &Value) -> Vec<String> {
    let tools = listed["result"]["tools"].as_array().unwrap_or_else(|| panic!("no tools: {listed}"));
    tools.iter().filter_map(|tool| Some(tool["name"].as_str()?.to_owned())).collect()
}

/// Our two tools, which are the last of a list.
fn own_tools(client: &mut Peer) -> [String; 2] {
    let id = client.request("tools/list", &json!({}));
    let mut tools = tools(&client.answer(&id));
    tools.split_off(tools.len() - 2).try_into().expect("two")
}

/// A client may refuse two tools of one name, or ask the wrong server.
#[test]
fn two_servers_that_call_themselves_the_same_add_tools_of_different_names() {
    let folder = tempfile::tempdir().expect("a folder");
    let named = |arguments: &[&str]| {
        let state = folder.path().to_str().expect("text");
        let mut client = Peer::start(&mut wrapping(&["--client-cap", "3s", "--state", state], arguments));
        client.handshake();
        own_tools(&mut client)
    };
    let (one, other) = (named(&["--slow-start", "1"]), named(&["--slow-start", "2"]));
    let differ = [one.as_slice(), other.as_slice()].concat();
    let distinct: std::collections::BTreeSet<_> = differ.iter().collect();
    assert_eq!(distinct.len(), 4, "{differ:?}");
    assert!(differ.iter().all(|name| name.starts_with("fake-server_")), "{differ:?}");
    assert_eq!(named(&["--slow-start", "1"]), one, "the names stay from one start to the next");
}

#[test]
fn a_slow_call_is_answered_before_the_cap_and_fetched_later_even_after_a_restart() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut client = Peer::start(&mut kept_in(folder.path()));
    client.handshake();
    let [wait, cancel] = own_tools(&mut client);
    assert!(wait.starts_with("fake-server_") && wait.ends_with("_wait"), "{wait}");
    assert_eq!(cancel, wait.replace("_wait", "_cancel"));
    let began = Instant::now();
    let handed_off = client.call("silent", &json!({"ms": 4000}));
    assert!(began.elapsed() < CAP, "{:?}", began.elapsed());
    let ticket = ticket(&handed_off);
    let arguments = json!({"ticket": ticket});
    let running = client.call(&wait, &json!({"ticket": ticket, "seconds": 0}));
    assert!(running["result"]["content"][0]["text"].as_str().expect("text").contains("still running"));
    assert_eq!(client.value_of(&wait, &arguments), json!("done"));
    client.hang_up();

    let mut client = Peer::start(&mut kept_in(folder.path()));
    client.handshake();
    assert_eq!(client.value_of(&wait, &arguments), json!("done"));
    let unknown = client.call(&wait, &json!({"ticket": "0".repeat(32)}));
    assert_eq!(unknown["error"]["code"], -31010, "{unknown}");
}

#[test]
fn a_call_that_was_handed_off_is_cancelled_at_its_server() {
    let mut client = Peer::start(&mut wrapping(&["--client-cap", "1s", "--state", "none"], &[]));
    client.handshake();
    let [wait_tool, cancel_tool] = own_tools(&mut client);
    let arguments = json!({"ticket": ticket(&client.call("hang", &json!({})))});
    let wait = client.begin(&wait_tool, &arguments);
    let done = client.call(&cancel_tool, &arguments);
    assert!(done["result"]["content"][0]["text"].as_str().expect("text").contains("is cancelled"));
    assert_eq!(client.answer(&wait)["result"]["isError"], true);
    assert_eq!(cancels(&mut client).len(), 1);
}

#[test]
fn a_modern_client_over_http_fetches_its_result_on_another_connection() {
    let served = serve(&["--client-cap", "2s", "--state", "none"], &[]);
    let listed = answer_of(&mut served.modern("tools/list", &json!({"_meta": modern_meta()}), &[]));
    let wait = &tools(&listed)[1];
    assert!(wait.starts_with("outlast_") && wait.ends_with("_wait"), "{listed}");
    let call = modern_call("silent", &json!({"ms": 3000}));
    let ticket = ticket(&answer_of(&mut served.modern("tools/call", &call, &[])));
    assert_eq!(served.modern_value_of(wait, &json!({"ticket": ticket})), json!("done"));
}

#[test]
fn a_session_fetches_its_result_and_another_one_does_not() {
    let served = serve(&["--client-cap", "2s", "--state", "none"], &[]);
    let mut session = served.session();
    let (mut caller, _) = session.begin("tools/list", &json!({}));
    let wait = &tools(&answer_of(&mut caller))[1];
    let arguments = json!({"ticket": ticket(&session.call("silent", &json!({"ms": 3000})))});
    let stranger = served.session().call(wait, &arguments);
    assert_eq!(stranger["error"]["code"], -31010, "{stranger}");
    assert_eq!(session.value_of(wait, &arguments), json!("done"));
}
