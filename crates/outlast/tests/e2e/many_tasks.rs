//! Ten thousand tasks at once, in one process, with a real file.

use std::thread;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::http_world::{Session, serve};
use crate::world::{memory_of, outlast};

const TASKS: u64 = 10_000;

/// As many begin at once: their handles wait for the same commits.
const AT_ONCE: u64 = 20;

/// All of it, in a build without optimisation.
const MEMORY: u64 = 100 << 20;

/// Calls a tool as a task, under this id; the handle.
fn begin(session: &Session, id: u64) -> String {
    let params = json!({"name": "hang", "arguments": {"n": id}, "task": {}});
    let answer = session.post(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}));
    let text = answer.text();
    let (_, handle) = text.split_once(r#""taskId":""#).unwrap_or_else(|| panic!("no task: {text}"));
    handle[..64].to_owned()
}

#[test]
fn ten_thousand_live_tasks_fit_into_100_mb() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().to_str().expect("text");
    let served = serve(&["--state", path, "--log", "error"], &[]);
    let session = &served.session();
    let share = TASKS / AT_ONCE;
    let begin_share = |first: u64| (first..first + share).map(|id| begin(session, id)).collect::<Vec<_>>();
    let handles: Vec<String> = thread::scope(|scope| {
        let threads = (0..AT_ONCE).map(|place| scope.spawn(move || begin_share(1_000 + place * share)));
        let threads: Vec<_> = threads.collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("a share")).collect()
    });
    let memory = memory_of(served.process.pid());
    assert!(memory <= MEMORY, "{} MiB", memory >> 20);

    let list = outlast().args(["tasks", "list", "--json", "--state", path]).output().expect("outlast runs");
    let list: Value = serde_json::from_slice(&list.stdout).expect("JSON");
    assert_eq!((&list["total"], &list["tasks"][0]["state"]), (&json!(TASKS), &json!("working")));

    // They live: any of them can be asked for and cancelled.
    for handle in handles.iter().step_by(997) {
        let params = json!({"taskId": handle});
        let cancel = json!({"jsonrpc": "2.0", "id": 1, "method": "tasks/cancel", "params": params});
        let answer = session.post(&cancel);
        assert!(answer.text().contains(r#""status":"cancelled""#), "{}", answer.text());
    }
}
