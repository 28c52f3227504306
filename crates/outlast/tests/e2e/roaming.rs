//! Two devices of one person, and one of somebody else: calls are found, resumed and followed from another device.

use outlast_testkit::http::caller::Caller;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::http_security::new_token;
use crate::http_world::{Served, answer_of, serve};
use crate::resume::Client;

struct World {
    served: Served,
    ann: String,
    bob: String,
    _folder: TempDir,
}

impl World {
    fn new() -> World {
        let folder = TempDir::new().unwrap();
        let ((ann, first), (bob, second)) = (new_token("ann"), new_token("bob"));
        let (file, state) = (folder.path().join("tokens"), folder.path().join("state"));
        std::fs::write(&file, format!("{first}\n{second}\n")).unwrap();
        let flags = ["--token-file", file.to_str().unwrap(), "--state", state.to_str().unwrap()];
        World {
            served: serve(&flags, &[]),
            ann: format!("Bearer {ann}"),
            bob: format!("Bearer {bob}"),
            _folder: folder,
        }
    }

    fn device_of(&self, token: &str) -> Client {
        Client::open_as(self.served.address, Some(token))
    }
}

/// A call that takes so long, on its stream; its token.
fn begin(client: &Client, id: u64, ms: u64) -> (Caller, String) {
    let call = json!({
        "jsonrpc": "2.0", "id": id, "method": "tools/call",
        "params": {"name": "silent", "arguments": {"ms": ms}},
    });
    let mut stream = client.ask(&call.to_string(), None);
    let policy = stream.message_where(|message| message["method"] == "notifications/requests/resumePolicy");
    (stream, policy["params"]["resumeToken"].as_str().unwrap().to_owned())
}

fn all(client: &Client, method: &str) -> Value {
    let request = json!({"jsonrpc": "2.0", "id": 90, "method": method}).to_string();
    let mut caller = client.ask(&request, None);
    let answer = caller.message_where(|message| message["id"] == 90);
    answer["result"]["requests"].clone()
}

#[test]
fn a_call_begun_on_one_device_is_finished_on_another() {
    let world = World::new();
    let (laptop, phone) = (world.device_of(&world.ann), world.device_of(&world.ann));
    let (stream, token) = begin(&laptop, 7, 1_500);
    // The lid is closed.
    drop(stream);
    let listed = all(&phone, "dev.outlast/requests/getStatus/all");
    let call = &listed[0];
    assert_eq!(
        (&call["requestId"], &call["resumeToken"], &call["name"], &call["status"]),
        (&json!(7), &json!(token), &json!("silent"), &json!("processing")),
        "{listed}"
    );
    let params = json!({"requestId": 7, "resumeToken": token});
    let resume = json!({"jsonrpc": "2.0", "id": 55, "method": "requests/resume", "params": params});
    let answer = phone.ask(&resume.to_string(), None).message_where(|message| message["id"] == 55);
    assert!(answer["result"].is_object(), "{answer}");
    let listed = all(&phone, "dev.outlast/requests/getStatus/all");
    assert_eq!(listed[0]["status"], "completed", "{listed}");
}

#[test]
fn whoever_follows_all_calls_hears_each_end() {
    let world = World::new();
    let (laptop, phone) = (world.device_of(&world.ann), world.device_of(&world.ann));
    // One that has ended by then, and one that has not.
    let (mut ended, first) = begin(&laptop, 7, 0);
    ended.message_where(|message| message["id"] == 7);
    let (_running, second) = begin(&laptop, 8, 1_500);
    let mut standing = phone.listen();
    let listed = all(&phone, "dev.outlast/requests/resume/all");
    assert_eq!(listed.as_array().map(Vec::len), Some(2), "{listed}");
    for token in [first, second] {
        let told = standing.message_where(|message| message["params"]["resumeToken"] == *token);
        assert_eq!(told["method"], "dev.outlast/requests/ended", "{told}");
        assert!(told["params"]["result"].is_object(), "{told}");
    }
}

#[test]
fn nobody_sees_the_calls_of_somebody_else() {
    let world = World::new();
    let (ann, bob) = (world.device_of(&world.ann), world.device_of(&world.bob));
    let (_stream, token) = begin(&ann, 7, 3_000);
    assert_eq!(all(&bob, "dev.outlast/requests/getStatus/all"), json!([]));
    assert_eq!(all(&bob, "dev.outlast/requests/resume/all"), json!([]));
    let params = json!({"requestId": 7, "resumeToken": token});
    let resume = json!({"jsonrpc": "2.0", "id": 55, "method": "requests/resume", "params": params});
    let answer = answer_of(&mut bob.post(&resume.to_string(), None));
    assert_eq!(answer["error"]["data"]["outlast"]["kind"], "ticket-unknown", "{answer}");
    // Without tokens a session is its own principal, and has no other device.
    let served = serve(&[], &[]);
    let nobody = Client::open_as(served.address, None);
    let request = json!({"jsonrpc": "2.0", "id": 9, "method": "dev.outlast/requests/getStatus/all"});
    let answer = answer_of(&mut nobody.post(&request.to_string(), None));
    assert_eq!(answer["error"]["code"], -32601, "{answer}");
}
