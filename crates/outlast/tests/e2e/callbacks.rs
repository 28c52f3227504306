//! Calls with a ticket that call an address of a person back: over real connections, through restarts, by one replica.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::sys::signal::Signal;
use outlast_engine::base64;
use outlast_testkit::http::faults::{Connection, FaultServer, Request, closed_address};
use outlast_testkit::peer::{LIMIT, wait_until};
use outlast_testkit::postgres::Postgres;
use ring::hmac;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::http_tls::Authority;
use crate::http_world::{Served, Session, answer_of, listening, outlast_alone};
use crate::world::fake_server;

const SECRET: &str = "c2VjcmV0IG9mIHRoZSB0ZXN0cyBvZiBvdXRsYXN0ISE=";

/// A file with one server and one callback, and a state folder.
struct World {
    folder: TempDir,
    /// A database that replicas share, in place of the folder.
    database: Option<String>,
}

impl World {
    fn new(url: &str, more: &str) -> World {
        let folder = TempDir::new().unwrap();
        let server = fake_server();
        let text = format!(
            "[servers.fake]\ncommand = \"{}\"\n[callbacks.ops]\nurl = \"{url}\"\nsecret = \"${{SECRET}}\"\n{more}\n",
            server.display()
        );
        std::fs::write(folder.path().join("outlast.toml"), text).unwrap();
        World { folder, database: None }
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("outlast.toml")
    }

    fn serve(&self) -> Served {
        let mut command = outlast_alone();
        command.env("SECRET", format!("whsec_{SECRET}")).args([
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--config",
        ]);
        command.env("OUTLAST_STATE", self.folder.path().join("state"));
        command.arg(self.file()).envs(self.database.as_ref().map(|url| ("OUTLAST_STORE_URL", url)));
        listening(&mut command)
    }

    /// `outlast callbacks WORDS`
    fn callbacks(&self, words: &[&str]) -> String {
        let mut command: Command = outlast_alone();
        command.arg("callbacks").args(words).arg("--state").arg(self.folder.path().join("state"));
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn waiting(&self) -> Vec<Value> {
        let listed: Value = serde_json::from_str(&self.callbacks(&["--json"])).unwrap();
        listed["callbacks"].as_array().unwrap().clone()
    }

    /// The one callback that waits, once this is so of it.
    fn waits_where(&self, fits: impl Fn(&Value) -> bool) -> Value {
        let mut found = Value::Null;
        let there = wait_until(LIMIT, || {
            found = self.waiting().into_iter().next().unwrap_or_default();
            !found.is_null() && fits(&found)
        });
        assert!(there, "{found}");
        found
    }
}

/// Makes a task that ends soon, and leaves; its ticket.
fn leave_a_task(served: &Served, arguments: &Value) -> String {
    let mut client = Session::open(served.address, None);
    let params = json!({
        "name": "silent", "arguments": arguments, "task": {}, "_meta": {"dev.outlast/callback": "ops"},
    });
    let answer = answer_of(&mut client.begin("tools/call", &params).0);
    answer["result"]["task"]["taskId"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
}

fn accepts(_: &Request, connection: &mut Connection) {
    connection.answer("204 No Content", &[], "");
}

fn is_callback(request: &Request) -> bool {
    request.header("webhook-id").is_some()
}

/// Whether a receiver that knows the secret would take it.
fn is_signed(request: &Request) -> bool {
    let header = |name| request.header(name).unwrap_or_default();
    let signed =
        [header("webhook-id").as_bytes(), b".", header("webhook-timestamp").as_bytes(), b".", &request.body];
    let key = hmac::Key::new(hmac::HMAC_SHA256, &base64::decode(SECRET).unwrap());
    let tag = header("webhook-signature").strip_prefix("v1,").and_then(base64::decode).unwrap_or_default();
    hmac::verify(&key, &signed.concat(), &tag).is_ok()
}

#[test]
fn an_end_that_nobody_hears_is_told_to_a_receiver_that_can_check_it() {
    let receiver = FaultServer::start(accepts);
    let world = World::new(&format!("{}/hooks?of=us", receiver.url()), "allow = [\"127.0.0.1\"]");
    let mut served = world.serve();
    let ticket = leave_a_task(&served, &json!({"ms": 300, "password": "hunter2"}));
    let request = receiver.request_where(is_callback);
    assert!(is_signed(&request), "{request:?}");
    assert_eq!((request.method.as_str(), request.header("content-type")), ("POST", Some("application/json")));
    let (body, data) = (request.json(), &request.json()["data"]);
    assert_eq!(body["type"], "call.completed", "{body}");
    assert_eq!(
        (&data["requestId"], &data["server"], &data["tool"], &data["status"]),
        (&json!(2), &json!("fake"), &json!("silent"), &json!("completed"))
    );
    let whole = format!("{request:?}{}", String::from_utf8_lossy(&request.body));
    assert!(!whole.contains(&ticket) && !whole.contains("hunter2") && !whole.contains(SECRET), "{whole}");
    assert!(wait_until(LIMIT, || world.waiting().is_empty()), "it was delivered");
    assert_eq!(world.callbacks(&[]), "every callback was delivered\n");
    served.process.signal(Signal::SIGTERM);
    served.process.end();
    assert!(!served.process.stderr().contains(SECRET));
}

#[test]
fn a_receiver_over_tls_must_have_the_right_certificate() {
    let authority = Authority::new();
    let receiver = authority.server_with("localhost", 2020..2040, accepts);
    let url = format!("https://localhost:{}/", receiver.address().port());
    let allow = "allow = [\"127.0.0.0/8\", \"::1\"]";
    let untrusting = World::new(&url, allow);
    let served = untrusting.serve();
    leave_a_task(&served, &json!({"ms": 0}));
    let failed = untrusting.waits_where(|callback| callback["why"] != "");
    assert!(failed["why"].as_str().unwrap().contains("signed by nobody whom this system trusts"), "{failed}");

    let world = World::new(&url, &format!("{allow}\nca-file = \"{}\"", authority.file().display()));
    let served = world.serve();
    leave_a_task(&served, &json!({"ms": 0}));
    assert!(is_signed(&receiver.request_where(is_callback)));
}

#[test]
fn a_callback_outlives_a_receiver_that_is_down_and_a_killed_process() {
    let address = closed_address();
    let world = World::new(&format!("http://{address}/"), "allow = [\"127.0.0.1\"]");
    let mut served = world.serve();
    leave_a_task(&served, &json!({"ms": 0}));
    let failed = world.waits_where(|callback| callback["attempts"] == 1 && callback["why"] != "");
    assert!(failed["why"].as_str().unwrap().starts_with("connection refused"), "{failed}");
    served.process.signal(Signal::SIGKILL);
    served.process.end();
    let receiver = FaultServer::start_at(&address.to_string(), accepts);
    let _served = world.serve();
    let request = receiver.request_where(is_callback);
    assert!(is_signed(&request));
    assert_eq!(request.header("webhook-id"), failed["id"].as_str(), "it is known by its id");
}

#[test]
fn redirects_are_not_followed() {
    let elsewhere = FaultServer::start(accepts);
    let location = elsewhere.url();
    let receiver = FaultServer::start(move |_, connection| {
        connection.answer("307 Temporary Redirect", &[("Location", &location)], "");
    });
    let world = World::new(&receiver.url(), "allow = [\"127.0.0.1\"]");
    let served = world.serve();
    leave_a_task(&served, &json!({"ms": 0}));
    let failed = world.waits_where(|callback| callback["why"] != "");
    assert_eq!(failed["why"], "307 Temporary Redirect (redirects are not followed)");
    assert_eq!(elsewhere.connections(), 0);
}

#[test]
fn a_private_address_that_is_not_listed_is_not_called() {
    let receiver = FaultServer::start(accepts);
    for (host, allow) in
        [("127.0.0.1", "10.0.0.0/8"), ("[::ffff:127.0.0.1]", "::1"), ("localhost", "192.0.2.1")]
    {
        let url = format!("http://{host}:{}/", receiver.address().port());
        let world = World::new(&url, &format!("allow = [\"{allow}\"]"));
        let served = world.serve();
        leave_a_task(&served, &json!({"ms": 0}));
        let failed = world.waits_where(|callback| callback["why"] != "");
        let why = failed["why"].as_str().unwrap();
        assert!(why.ends_with("is called without TLS only if `allow` lists it"), "{why}");
    }
    assert_eq!(receiver.connections(), 0);
}

/// A receiver that never stops talking holds nothing up.
#[test]
fn an_endless_answer_is_not_read_to_its_end() {
    let receiver = FaultServer::start(|_, connection| {
        connection.send_head("200 OK", &[("Content-Length", "1000000000000")]);
        connection.send(vec![b'x'; 1 << 20]);
        connection.wait_for_close();
    });
    let world = World::new(&receiver.url(), "allow = [\"127.0.0.1\"]");
    let served = world.serve();
    leave_a_task(&served, &json!({"ms": 0}));
    receiver.request_where(is_callback);
    assert!(wait_until(LIMIT, || world.waiting().is_empty()), "{:?}", world.waiting());
}

#[test]
fn what_a_receiver_does_not_want_is_parked_until_a_person_sends_it_again() {
    let wants = Arc::new(AtomicBool::new(false));
    let now = wants.clone();
    let receiver = FaultServer::start(move |_, connection| {
        let status = if now.load(Ordering::Relaxed) { "200 OK" } else { "410 Gone" };
        connection.answer(status, &[], "");
    });
    let world = World::new(&receiver.url(), "allow = [\"127.0.0.1\"]");
    let served = world.serve();
    leave_a_task(&served, &json!({"ms": 0}));
    let parked = world.waits_where(|callback| callback["parked"] == true);
    let shown = world.callbacks(&[]);
    assert!(shown.contains("to ops: call.completed, silent of fake"), "{shown}");
    assert!(shown.contains("parked, 1 attempt since ") && shown.contains(": 410 Gone"), "{shown}");
    wants.store(true, Ordering::Relaxed);
    world.callbacks(&["retry", &parked["callback"].to_string()]);
    assert!(wait_until(LIMIT, || world.waiting().is_empty()), "{:?}", world.waiting());
    assert_eq!(receiver.requests().iter().filter(|request| is_callback(request)).count(), 2);
}

/// Both look for callbacks all the time; a database gives each to one of them.
#[test]
fn of_two_replicas_one_sends_a_callback() {
    let receiver = FaultServer::start(accepts);
    let mut world = World::new(&receiver.url(), "allow = [\"127.0.0.1\"]");
    world.database = Some(Postgres::shared().database());
    let replicas = [world.serve(), world.serve()];
    for number in 0..20 {
        leave_a_task(&replicas[number % 2], &json!({"ms": 100 * (number % 3)}));
    }
    let ids = || {
        let mut ids: BTreeMap<String, usize> = BTreeMap::new();
        for request in receiver.requests().iter().filter(|request| is_callback(request)) {
            *ids.entry(request.header("webhook-id").unwrap().to_owned()).or_default() += 1;
        }
        ids
    };
    assert!(wait_until(LIMIT, || ids().len() == 20), "{:?}", ids());
    assert!(ids().values().all(|times| *times == 1), "{:?}", ids());
}

/// The link of a callback about a held call.
fn link_of(receiver: &FaultServer) -> String {
    let request = receiver.request_where(is_callback);
    assert!(is_signed(&request), "{request:?}");
    let link = request.json()["data"]["link"].as_str().unwrap_or_else(|| panic!("{request:?}")).to_owned();
    link.strip_prefix("https://outlast.example").unwrap().to_owned()
}

/// A held task, its server, and the session that waits for it.
fn hold_a_task(world: &World) -> (Served, Session, String) {
    let served = world.serve();
    let mut client = Session::open(served.address, None);
    let arguments = json!({"note": "<script>alert(1)</script>", "password": "hunter2"});
    let params = json!({
        "name": "echo", "arguments": arguments, "task": {}, "_meta": {"dev.outlast/callback": "ops"},
    });
    let answer = answer_of(&mut client.begin("tools/call", &params).0);
    let ticket = answer["result"]["task"]["taskId"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned();
    (served, client, ticket)
}

const HELD: &str = "allow = [\"127.0.0.1\"]\nlinks = \"https://outlast.example/\"\n\
    [defaults.tools.echo]\nhold = true\nhold-timeout = \"1h\"";

#[test]
fn a_link_decides_a_held_call_once_and_not_by_being_looked_at() {
    let receiver = FaultServer::start(accepts);
    let world = World::new(&receiver.url(), HELD);
    let (served, mut client, ticket) = hold_a_task(&world);
    let link = link_of(&receiver);
    let form = [("Content-Type", "application/x-www-form-urlencoded")];

    for _ in 0..2 {
        let page = served.ask(&format!("GET {link}"), &[], "");
        assert_eq!(page.status, 200, "{}", page.text());
        let shown = page.text();
        assert!(shown.contains("May <code>echo</code> of <code>fake</code> be run?"), "{shown}");
        assert!(shown.contains("&lt;script&gt;") && !shown.contains("<script"), "{shown}");
        assert!(!shown.contains("hunter2"), "{shown}");
        assert!(page.header("content-security-policy").unwrap().starts_with("default-src 'none'"));
    }
    let forged = link.replace("/hold/ops/", "/hold/other/");
    assert_eq!(served.ask(&format!("POST {forged}"), &form, "decision=approve").status, 404);
    let (before, signature) = link.rsplit_once('/').unwrap();
    let wrong = format!("POST {before}/{}", "0".repeat(signature.len()));
    assert_eq!(served.ask(&wrong, &form, "decision=approve").status, 404);
    assert_eq!(served.ask(&format!("POST {link}"), &form, "").status, 400);

    let approved = served.ask(&format!("POST {link}"), &form, "decision=approve").text();
    assert!(approved.contains("<code>echo</code> was approved</h1>"), "{approved}");
    let answer = answer_of(&mut client.begin("tasks/result", &json!({"taskId": ticket})).0);
    assert!(answer["result"].is_object(), "{answer}");
    // It has been used.
    let again = served.ask(&format!("POST {link}"), &form, "decision=decline");
    assert!(again.status == 404 || again.text().contains("was approved before"), "{}", again.text());
    let audit =
        outlast_alone().args(["audit", "--state"]).arg(world.folder.path().join("state")).output().unwrap();
    let audit = String::from_utf8_lossy(&audit.stdout).into_owned();
    assert!(audit.contains("who has the link of callback ops (link) approved echo of fake"), "{audit}");
}
