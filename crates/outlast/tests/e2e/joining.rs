//! Calls with the same idempotency key: the tool counts its runs in a file, and runs once.

use std::fs::{read_to_string, write};
use std::path::PathBuf;

use outlast_testkit::peer::{LIMIT, Peer, wait_until};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::http_world::{answer_of, modern_call, serve};
use crate::world::{cancels, connect, data, history};

/// A tool that has run as often as the file has lines, and answers when the gate opens.
struct Counted {
    folder: TempDir,
}

impl Counted {
    fn new() -> Counted {
        Counted { folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn arguments(&self) -> Value {
        json!({"file": self.path("runs"), "gate": self.path("gate")})
    }

    /// The parameters of a call with a key.
    fn call(&self, key: &str) -> Value {
        json!({"name": "count", "arguments": self.arguments(), "_meta": {"dev.outlast/idempotencyKey": key}})
    }

    /// The same of a modern call.
    fn modern_call(&self, key: &str) -> Value {
        let mut params = modern_call("count", &self.arguments());
        params["_meta"]["dev.outlast/idempotencyKey"] = json!(key);
        params
    }

    fn runs(&self) -> usize {
        read_to_string(self.path("runs")).unwrap_or_default().lines().count()
    }

    fn has_run(&self, times: usize) {
        assert!(wait_until(LIMIT, || self.runs() >= times), "it does not run");
        assert_eq!(self.runs(), times);
    }

    fn open_the_gate(&self) {
        write(self.path("gate"), "").unwrap();
    }
}

/// Whatever was sent before has been taken.
fn catch_up(client: &mut Peer) {
    client.value_of("echo", &json!({}));
}

#[test]
fn two_calls_with_one_key_run_once() {
    let counted = Counted::new();
    let mut client = connect(&[], &[]);
    let first = client.request("tools/call", &counted.call("k"));
    let second = client.request("tools/call", &counted.call("k"));
    let other = client.request("tools/call", &counted.call("j"));
    catch_up(&mut client);
    counted.has_run(2);
    counted.open_the_gate();
    for id in [first, second, other] {
        assert_eq!(client.answer(&id)["result"]["structuredContent"], true);
    }
    assert_eq!(counted.runs(), 2);
    // Nothing of it was kept.
    let again = client.request("tools/call", &counted.call("k"));
    client.answer(&again);
    assert_eq!(counted.runs(), 3);
    // The key is passed on as it came.
    let keyed = history(&mut client).into_iter().filter(|line| line.contains(r#"idempotencyKey":"k""#));
    assert_eq!(keyed.count(), 2);
}

#[test]
fn a_cancel_of_one_leaves_the_call_to_the_other() {
    let counted = Counted::new();
    let mut client = connect(&[], &[]);
    let first = client.request("tools/call", &counted.call("k"));
    counted.has_run(1);
    let second = client.request("tools/call", &counted.call("k"));
    client.cancel(&first);
    catch_up(&mut client);
    counted.open_the_gate();
    assert_eq!(client.answer(&second)["result"]["structuredContent"], true);
    assert_eq!(cancels(&mut client), Vec::<Value>::new());
    assert_eq!(counted.runs(), 1);
}

#[test]
fn a_key_of_another_call_is_refused() {
    let counted = Counted::new();
    let mut client = connect(&[], &[]);
    let first = client.request("tools/call", &counted.call("k"));
    let mut other = counted.call("k");
    other["arguments"]["more"] = json!(1);
    let second = client.request("tools/call", &other);
    let answer = client.answer(&second);
    assert_eq!(answer["error"]["code"], -31012);
    assert_eq!(data(&answer)["kind"], "key-conflict");
    counted.has_run(1);
    counted.open_the_gate();
    assert_eq!(client.answer(&first)["result"]["structuredContent"], true);
}

#[test]
fn a_modern_client_that_lost_its_stream_asks_again() {
    let counted = Counted::new();
    let served = serve(&[], &[]);
    let lost = served.modern("tools/call", &counted.modern_call("k"), &[]);
    counted.has_run(1);
    lost.reset();
    let mut again = served.modern("tools/call", &counted.modern_call("k"), &[]);
    counted.open_the_gate();
    assert_eq!(answer_of(&mut again)["result"]["structuredContent"], true);
    assert_eq!(counted.runs(), 1);
    let told = served.modern_value_of("tell_cancels", &json!({}));
    assert_eq!(told, json!([]));
}

/// The gate opens first, so that the answer may come while nobody is there.
#[test]
fn an_answer_waits_for_a_client_that_lost_its_stream() {
    let counted = Counted::new();
    let served = serve(&[], &[]);
    let lost = served.modern("tools/call", &counted.modern_call("k"), &[]);
    counted.has_run(1);
    lost.reset();
    counted.open_the_gate();
    let mut again = served.modern("tools/call", &counted.modern_call("k"), &[]);
    assert_eq!(answer_of(&mut again)["result"]["structuredContent"], true);
    assert_eq!(counted.runs(), 1);
}

#[test]
fn a_client_that_does_not_come_back_has_cancelled() {
    let counted = Counted::new();
    let served = serve(&["--resume-wait", "50ms"], &[]);
    let lost = served.modern("tools/call", &counted.modern_call("k"), &[]);
    counted.has_run(1);
    lost.reset();
    let told = || served.modern_value_of("tell_cancels", &json!({})).as_array().unwrap().len();
    assert!(wait_until(LIMIT, || told() == 1), "its server was not told");
}

#[test]
fn a_kept_answer_outlives_the_process() {
    let counted = Counted::new();
    counted.open_the_gate();
    let state = counted.path("state");
    let flags = ["--tool", "count=keep-answers:true", "--state", state.to_str().unwrap()];
    for _ in 0..2 {
        let mut client = connect(&flags, &[]);
        for _ in 0..2 {
            let id = client.request("tools/call", &counted.call("k"));
            assert_eq!(client.answer(&id)["result"]["structuredContent"], true);
        }
        assert_eq!(client.hang_up().code(), Some(0));
    }
    assert_eq!(counted.runs(), 1);
}

#[test]
fn a_call_gets_a_key_where_it_is_honoured() {
    let mut client = connect(&["--tool", "tell_*=idempotency:honoured"], &[]);
    let lines: Vec<Value> = (0..2)
        .map(|_| client.value_of("tell_line", &json!({})))
        .map(|line| serde_json::from_str(line.as_str().unwrap()).unwrap())
        .collect();
    let keys: Vec<&str> =
        lines.iter().map(|line| line["params"]["idempotencyKey"].as_str().unwrap()).collect();
    assert_eq!(keys[0].len(), 32);
    assert_ne!(keys[0], keys[1]);
}
