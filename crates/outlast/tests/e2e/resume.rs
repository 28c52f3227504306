//! Calls that are resumed after a lost connection: by HTTP clients at our door, and by us at the door of
//! another outlast.

use std::fs;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use outlast_testkit::http::caller::Caller;
use outlast_testkit::peer::Peer;
use serde_json::{Value, json};

use crate::http_world::{ACCEPT, JSON, LEGACY, Served, answer_below, reached, serve};
use crate::world::{data, ids_at_the_server};

/// A folder for what is stored, gone with its test.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Folder {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("outlast-resume-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(&folder).expect("a folder");
        Folder(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn served(folder: &Folder, flags: &[&str]) -> Served {
    let state = folder.0.to_str().expect("text");
    serve(&[&["--state", state], flags].concat(), &[])
}

/// What lies between a client and its server and can be cut.
struct Wire {
    address: SocketAddr,
    open: Arc<Mutex<Vec<TcpStream>>>,
    /// What the client has sent.
    sent: Arc<Mutex<Vec<u8>>>,
}

impl Wire {
    fn to(server: SocketAddr) -> Wire {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let open: Arc<Mutex<Vec<TcpStream>>> = Arc::default();
        let sent: Arc<Mutex<Vec<u8>>> = Arc::default();
        let (all, noted) = (open.clone(), sent.clone());
        thread::spawn(move || {
            for near in listener.incoming().flatten() {
                let Ok(far) = TcpStream::connect(server) else { continue };
                let mut held = all.lock().expect("a lock");
                held.extend([near.try_clone().expect("a socket"), far.try_clone().expect("a socket")]);
                drop(held);
                let back = (far.try_clone().expect("a socket"), near.try_clone().expect("a socket"));
                let noted = noted.clone();
                thread::spawn(move || carry(near, far, |bytes| noted.lock().expect("a lock").extend(bytes)));
                thread::spawn(move || carry(back.0, back.1, |_| {}));
            }
        });
        Wire { address, open, sent }
    }

    /// How often the client has sent this.
    fn count_sent(&self, text: &str) -> usize {
        String::from_utf8_lossy(&self.sent.lock().expect("a lock")).matches(text).count()
    }

    /// Cuts every connection that is open now.
    fn cut(&self) {
        for socket in self.open.lock().expect("a lock").drain(..) {
            let _ = socket.shutdown(Shutdown::Both);
        }
    }

    fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }
}

fn carry(mut from: TcpStream, mut to: TcpStream, note: impl Fn(&[u8])) {
    let mut buffer = [0; 4096];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        note(&buffer[..count]);
        if to.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    let _: [io::Result<()>; 2] = [from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both)];
}

/// How far a client has heard its call to be.
fn progress_of(client: &Peer) -> Vec<f64> {
    let messages = client.log().iter().map(|line| line.json());
    messages.filter_map(|message| message["params"]["progress"].as_f64()).collect()
}

#[test]
fn a_stdio_client_notices_nothing_of_a_connection_that_is_cut() {
    let folder = Folder::new();
    let served = served(&folder, &["--resume-min-wait", "10ms"]);
    let wire = Wire::to(served.address);
    let mut client = reached(&[], &wire.url());
    let arguments = json!({"values": [1, 2, 3, 4], "every_ms": 400});
    let id = client.begin_with_token("progress", &arguments, &json!("p"));
    for value in [1, 3] {
        client.message_where(|message| message["params"]["progress"] == value);
        wire.cut();
    }
    let answer = client.answer(&id);
    assert!(answer["result"].is_object(), "{answer}");
    let heard = progress_of(&client);
    assert!(heard.windows(2).all(|pair| pair[0] < pair[1]), "{heard:?}");
    assert!([1.0, 2.0, 3.0, 4.0].iter().all(|value| heard.contains(value)), "{heard:?}");
    let policies = client.log().iter().filter(|line| line.text().contains("resumePolicy"));
    assert_eq!(policies.count(), 0, "the client did not declare it");
    assert_eq!(ids_at_the_server(&mut client, "progress").len(), 1, "it ran once");
    assert!(wire.count_sent("requests/resume") >= 2, "it was resumed");
    assert!(wire.count_sent("last-event-id: ") >= 2, "from the last event");
    let answers = client.log().iter().filter(|line| line.json()["id"] == id);
    assert_eq!(answers.count(), 1);
}

#[test]
fn an_answer_that_came_while_nobody_was_there_is_fetched() {
    let folder = Folder::new();
    // Longer than the call still takes.
    let served = served(&folder, &["--resume-min-wait", "2s"]);
    let wire = Wire::to(served.address);
    let mut client = reached(&[], &wire.url());
    let arguments = json!({"values": [1], "every_ms": 300});
    let id = client.begin_with_token("progress", &arguments, &json!("p"));
    client.message_where(|message| message["params"]["progress"] == 1);
    wire.cut();
    let answer = client.answer(&id);
    assert!(answer["result"].is_object(), "{answer}");
    assert_eq!(ids_at_the_server(&mut client, "progress").len(), 1, "it ran once");
}

/// An HTTP client that declared `resumableRequests`.
pub struct Client {
    address: SocketAddr,
    session: String,
    token: Option<String>,
}

impl Client {
    fn open(address: SocketAddr) -> Client {
        Client::open_as(address, None)
    }

    /// The handshake, with this `Authorization`.
    pub fn open_as(address: SocketAddr, token: Option<&str>) -> Client {
        let mut client = Client { address, session: String::new(), token: token.map(str::to_owned) };
        let params = json!({
            "protocolVersion": LEGACY,
            "capabilities": {"resumableRequests": {}},
            "clientInfo": {"name": "test", "version": "1"},
        });
        let handshake = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params});
        let mut caller = client.post(&handshake.to_string(), None);
        let (status, head) = caller.head();
        assert_eq!(status, 200);
        client.session = head.header("Mcp-Session-Id").expect("a session").to_owned();
        answer_below(&mut caller, &head);
        let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        assert_eq!(client.post(&initialized.to_string(), None).head().0, 202);
        client
    }

    /// Opens its standing stream.
    pub fn listen(&self) -> Caller {
        let mut headers = vec![("Accept", "text/event-stream"), ("Mcp-Session-Id", self.session.as_str())];
        headers.extend(self.token.as_deref().map(|token| ("Authorization", token)));
        let mut caller = Caller::connect(self.address);
        caller.request("GET /mcp", &headers, "");
        assert_eq!(caller.head().0, 200);
        caller
    }

    /// Posts a message; the head of the answer is unread.
    pub fn post(&self, body: &str, last_event: Option<&str>) -> Caller {
        let mut headers = vec![ACCEPT, JSON];
        if !self.session.is_empty() {
            headers.push(("Mcp-Session-Id", &self.session));
        }
        headers.extend(self.token.as_deref().map(|token| ("Authorization", token)));
        headers.extend(last_event.map(|id| ("Last-Event-ID", id)));
        let mut caller = Caller::connect(self.address);
        caller.request("POST /mcp", &headers, body);
        caller
    }

    /// Sends a request and reads the head of its stream.
    pub fn ask(&self, body: &str, last_event: Option<&str>) -> Caller {
        let mut caller = self.post(body, last_event);
        assert_eq!(caller.head().0, 200);
        caller
    }
}

/// The next message on a stream, and its event id.
fn next(caller: &mut Caller) -> (Value, String) {
    loop {
        let event = caller.event().expect("an event");
        if !event.data.trim().is_empty() {
            return (event.json(), event.id.unwrap_or_default());
        }
    }
}

/// What `docs/resume.md` shows is what happens on the wire.
#[test]
fn the_page_shows_what_happens() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/resume.md");
    let page = fs::read_to_string(page).expect("the page");
    let excerpt =
        page.split("```text\n").nth(1).and_then(|rest| rest.split("```").next()).expect("an excerpt");
    let folder = Folder::new();
    let served = served(&folder, &[]);
    let client = Client::open(served.address);
    let (mut stream, mut token, mut last) = (None::<Caller>, String::new(), None::<String>);
    let mut messages = 0;
    for line in excerpt.lines() {
        if let Some(request) = line.strip_prefix("> ") {
            let request = request.replace("TOKEN", &token);
            let resumes = request.contains("requests/resume");
            stream = Some(client.ask(&request, last.as_deref().filter(|_| resumes)));
        } else if let Some(expected) = line.strip_prefix("< ") {
            let (message, id) = next(stream.as_mut().expect("a request comes first"));
            if let Some(given) = message["params"]["resumeToken"].as_str() {
                given.clone_into(&mut token);
            }
            if !message["id"].is_u64() {
                last = Some(id);
            }
            let text = message.to_string();
            let expected: Value =
                serde_json::from_str(&expected.replace("TOKEN", &token).replace('…', "true")).expect("JSON");
            let mut shown = message;
            if !shown["result"]["hasPendingMessage"].is_null() {
                shown["result"]["hasPendingMessage"] = json!(true);
            }
            assert_eq!(shown, expected, "{text}");
            messages += 1;
        } else if line.starts_with("(the connection is lost)") {
            stream.take().expect("a connection").reset();
        }
    }
    assert_eq!(messages, 5);
}

#[test]
fn a_token_is_of_no_use_to_another_session() {
    let folder = Folder::new();
    let served = served(&folder, &[]);
    let (client, other) = (Client::open(served.address), Client::open(served.address));
    let call = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "silent", "arguments": {"ms": 500}}});
    let mut stream = client.ask(&call.to_string(), None);
    let (policy, _) = next(&mut stream);
    let token = &policy["params"]["resumeToken"];
    assert_eq!(token.as_str().map(str::len), Some(64), "{policy}");
    let resume =
        json!({"jsonrpc": "2.0", "id": 7, "method": "requests/resume", "params": {"resumeToken": token}});
    let (refusal, _) = next(&mut other.ask(&resume.to_string(), None));
    assert_eq!(
        (&refusal["error"]["code"], &data(&refusal)["kind"]),
        (&json!(-31010), &json!("ticket-unknown"))
    );
    let (answer, _) = next(&mut stream);
    assert!(answer["result"].is_object(), "{answer}");
}

/// Whoever never comes back holds nothing.
#[test]
fn a_call_that_nobody_comes_back_for_is_cancelled_at_the_server() {
    let folder = Folder::new();
    let served = served(&folder, &["--resume-wait", "300ms", "--share", "all"]);
    let client = Client::open(served.address);
    let call = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "late"}});
    let mut stream = client.ask(&call.to_string(), None);
    let (policy, _) = next(&mut stream);
    assert_eq!(policy["params"]["maxWait"], 0.3, "{policy}");
    stream.reset();
    let told = json!({"jsonrpc": "2.0", "id": 8, "method": "tools/call", "params": {"name": "tell_cancels"}});
    let found = outlast_testkit::peer::wait_until(outlast_testkit::peer::LIMIT, || {
        let mut stream = client.ask(&told.to_string(), None);
        let message = stream.message_where(|message| message["id"] == 8);
        message.to_string().contains("nobody came back")
    });
    assert!(found);
}
