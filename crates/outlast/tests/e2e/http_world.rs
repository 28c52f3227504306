//! Remote servers under a test's control, and `outlast serve` with clients of both eras.

use std::net::SocketAddr;
use std::process::Command;

use outlast_testkit::http::Head;
use outlast_testkit::http::caller::{Caller, Response};
use outlast_testkit::http::faults::{Connection, FaultServer, Request};
use outlast_testkit::peer::Peer;
use serde_json::{Value, json};

use crate::world::{fake_server, outlast};

/// The two revisions that are spoken here.
pub const LEGACY: &str = "2025-11-25";
pub const MODERN: &str = "2026-07-28";

/// What every POST of a client accepts.
pub const ACCEPT: (&str, &str) = ("Accept", "application/json, text/event-stream");
pub const JSON: (&str, &str) = ("Content-Type", "application/json");

/// Outlast without proxies of whoever runs the tests.
pub fn outlast_alone() -> Command {
    let mut command = outlast();
    for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"] {
        command.env_remove(name).env_remove(name.to_lowercase());
    }
    command
}

// A stdio client in front of a remote server.

/// `outlast FLAGS URL`, before the first message.
pub fn reach(flags: &[&str], url: &str) -> Peer {
    Peer::start(outlast_alone().args(flags).arg(url))
}

/// The same, ready for calls.
pub fn reached(flags: &[&str], url: &str) -> Peer {
    let mut client = reach(flags, url);
    let answer = client.handshake();
    assert!(answer["result"].is_object(), "{answer}");
    client
}

/// The answer to a request, whatever id it came under.
pub fn answer_to(request: &Request, result: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": request.json()["id"], "result": result})
}

/// What a tool says.
pub fn said(request: &Request, value: &Value) -> Value {
    answer_to(request, &json!({"content": [], "structuredContent": value}))
}

/// One event with this answer.
pub fn event(answer: &Value) -> String {
    format!("data: {answer}\n\n")
}

/// A legacy server that does nothing wrong: answers in JSON, has sessions and no standing stream.
/// Every tool says its arguments.
pub fn legacy(request: &Request, connection: &mut Connection) {
    let introduction = json!({
        "protocolVersion": LEGACY,
        "capabilities": {"tools": {}, "logging": {}},
        "serverInfo": {"name": "remote", "version": "1"},
    });
    match (request.method.as_str(), request.rpc().as_str()) {
        ("POST", "initialize") => {
            let body = answer_to(request, &introduction).to_string();
            connection.answer("200 OK", &[JSON, ("Mcp-Session-Id", "session-1")], body);
        }
        ("POST", "tools/list") => connection.json(&answer_to(request, &json!({"tools": tools()}))),
        ("POST", "tools/call") => connection.json(&said(request, &request.json()["params"]["arguments"])),
        ("POST", _) if request.json()["id"].is_null() => connection.answer("202 Accepted", &[], ""),
        ("POST", _) => connection.json(&answer_to(request, &json!({}))),
        ("DELETE", _) => connection.answer("200 OK", &[], ""),
        _ => connection.answer("405 Method Not Allowed", &[("Allow", "POST, DELETE")], ""),
    }
}

fn tools() -> Value {
    let schema =
        json!({"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}});
    json!([{"name": "echo", "inputSchema": schema}])
}

/// A modern server that does nothing wrong.
pub fn modern(request: &Request, connection: &mut Connection) {
    let arguments = &request.json()["params"]["arguments"];
    let result = match (request.method.as_str(), request.rpc().as_str()) {
        ("POST", "server/discover") => json!({
            "supportedVersions": [MODERN], "capabilities": {"tools": {}}, "ttlMs": 0, "cacheScope": "private",
        }),
        ("POST", "tools/list") => json!({"tools": tools(), "ttlMs": 0, "cacheScope": "private"}),
        ("POST", "tools/call") => json!({"content": [], "structuredContent": arguments}),
        ("POST", _) => {
            let error = json!({"code": -32601, "message": "Method not found"});
            let body = json!({"jsonrpc": "2.0", "id": request.json()["id"], "error": error});
            return connection.answer("404 Not Found", &[JSON], body.to_string());
        }
        _ => return connection.answer("405 Method Not Allowed", &[("Allow", "POST")], ""),
    };
    let mut complete = result;
    complete["resultType"] = json!("complete");
    connection.json(&answer_to(request, &complete));
}

/// A server that behaves but for one tool.
pub fn faulty(fault: impl Fn(&Request, &mut Connection) + Send + Sync + 'static) -> FaultServer {
    FaultServer::start(move |request, connection| match request.tool().as_str() {
        "fault" => fault(request, connection),
        _ => legacy(request, connection),
    })
}

/// The metadata of a modern request.
pub fn modern_meta() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    })
}

/// The parameters of a modern tool call.
pub fn modern_call(tool: &str, arguments: &Value) -> Value {
    json!({"_meta": modern_meta(), "name": tool, "arguments": arguments})
}

// HTTP clients in front of a server.

/// `outlast serve`, listening.
pub struct Served {
    pub process: Peer,
    pub address: SocketAddr,
}

/// `outlast serve --listen 127.0.0.1:0 FLAGS -- fake-server SERVER`
pub fn serve(flags: &[&str], server: &[&str]) -> Served {
    let mut command = outlast_alone();
    command.args(["serve", "--listen", "127.0.0.1:0"]).args(flags).arg("--").arg(fake_server()).args(server);
    listening(&mut command)
}

/// `outlast serve --listen 127.0.0.1:0 FLAGS URL`
pub fn serve_url(flags: &[&str], url: &str) -> Served {
    let mut command = outlast_alone();
    listening(command.args(["serve", "--listen", "127.0.0.1:0"]).args(flags).arg(url))
}

/// Starts it and waits for the line that says where it listens.
pub fn listening(command: &mut Command) -> Served {
    let process = Peer::start(command);
    let stderr = process.stderr_where(|text| text.contains("/mcp\n"));
    let (_, after) = stderr.split_once("listening on http://").expect("the line");
    let (address, _) = after.split_once("/mcp").expect("an endpoint");
    Served { address: address.parse().expect("an address"), process }
}

impl Served {
    /// A new connection.
    pub fn caller(&self) -> Caller {
        Caller::connect(self.address)
    }

    /// One request on a connection of its own.
    pub fn ask(&self, line: &str, headers: &[(&str, &str)], body: impl AsRef<[u8]>) -> Response {
        self.caller().ask(line, headers, body)
    }

    /// A new legacy session.
    pub fn session(&self) -> Session {
        Session::open(self.address, None)
    }

    /// A modern request on a connection of its own, its answer unread.
    pub fn modern(&self, method: &str, params: &Value, headers: &[(&str, &str)]) -> Caller {
        let mut caller = self.caller();
        send_modern(&mut caller, method, params, headers);
        caller
    }

    /// A modern tool call and what the tool says.
    pub fn modern_value_of(&self, tool: &str, arguments: &Value) -> Value {
        let answer = answer_of(&mut self.modern("tools/call", &modern_call(tool, arguments), &[]));
        let said = answer["result"].get("structuredContent");
        said.unwrap_or_else(|| panic!("`{tool}` did not answer well: {answer}")).clone()
    }

    /// It is as well as ever.
    pub fn assert_goes_on(&mut self) {
        assert!(self.process.exited().is_none(), "it has ended: {}", self.process.stderr());
        assert_eq!(self.session().value_of("echo", &json!({"still": "there"})), json!({"still": "there"}));
    }
}

/// Sends a modern request with the headers that it needs; `headers` replace those of the same name,
/// and an empty value leaves one out.
pub fn send_modern(caller: &mut Caller, method: &str, params: &Value, headers: &[(&str, &str)]) {
    let name = params["name"].as_str().unwrap_or_default();
    let usual = [ACCEPT, JSON, ("MCP-Protocol-Version", MODERN), ("Mcp-Method", method), ("Mcp-Name", name)];
    let replaced = |name: &str| headers.iter().any(|(given, _)| given.eq_ignore_ascii_case(name));
    let all = usual.iter().filter(|(name, _)| !replaced(name)).chain(headers).copied();
    let all: Vec<_> = all.filter(|(_, value)| !value.is_empty()).collect();
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    caller.request("POST /mcp", &all, message.to_string());
}

/// The one answer to what was sent, be it JSON or the last of a stream.
pub fn answer_of(caller: &mut Caller) -> Value {
    let (_, head) = caller.head();
    answer_below(caller, &head)
}

/// The same after the head.
pub fn answer_below(caller: &mut Caller, head: &Head) -> Value {
    if head.header("Content-Type").is_some_and(|kind| kind.starts_with("text/event-stream")) {
        return caller
            .message_where(|message| message.get("id").is_some() && message.get("method").is_none());
    }
    serde_json::from_slice(&caller.body()).expect("JSON")
}

/// A legacy client.
pub struct Session {
    address: SocketAddr,
    /// Its session id.
    pub id: String,
    token: Option<String>,
    next_id: u64,
}

impl Session {
    /// The handshake, with a token if there is one.
    pub fn open(address: SocketAddr, token: Option<&str>) -> Session {
        Session::open_as(address, token, LEGACY)
    }

    /// The same in another revision.
    pub fn open_as(address: SocketAddr, token: Option<&str>, version: &str) -> Session {
        let mut session = Session { address, id: String::new(), token: token.map(str::to_owned), next_id: 0 };
        let who = json!({"name": "test", "version": "1"});
        let params = json!({"protocolVersion": version, "capabilities": {}, "clientInfo": who});
        let (mut caller, id) = session.begin("initialize", &params);
        let (status, head) = caller.head();
        assert_eq!(status, 200, "{head:?}");
        session.id = head.header("Mcp-Session-Id").expect("a session id").to_owned();
        let answer = answer_below(&mut caller, &head);
        assert_eq!(answer["id"], id, "{answer}");
        let accepted = session.post(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        assert_eq!((accepted.status, accepted.body.len()), (202, 0));
        session
    }

    /// The same session at another address.
    pub fn at(self, address: SocketAddr) -> Session {
        Session { address, ..self }
    }

    /// The headers of all its requests.
    pub fn headers(&self) -> Vec<(&str, &str)> {
        let mut headers = vec![ACCEPT];
        if !self.id.is_empty() {
            headers.extend([("Mcp-Session-Id", self.id.as_str()), ("MCP-Protocol-Version", LEGACY)]);
        }
        headers.extend(self.token.as_deref().map(|token| ("Authorization", token)));
        headers
    }

    /// Posts one message and reads the whole answer.
    pub fn post(&self, message: &Value) -> Response {
        self.post_bytes(message.to_string())
    }

    /// Posts bytes and reads the whole answer.
    pub fn post_bytes(&self, body: impl AsRef<[u8]>) -> Response {
        let headers = [&self.headers()[..], &[JSON]].concat();
        Caller::connect(self.address).ask("POST /mcp", &headers, body)
    }

    /// Sends a request; its connection and its id.
    pub fn begin(&mut self, method: &str, params: &Value) -> (Caller, Value) {
        self.next_id += 1;
        let message = json!({"jsonrpc": "2.0", "id": self.next_id, "method": method, "params": params});
        let mut caller = Caller::connect(self.address);
        caller.request("POST /mcp", &[&self.headers()[..], &[JSON]].concat(), message.to_string());
        (caller, json!(self.next_id))
    }

    /// Sends a tool call.
    pub fn begin_call(&mut self, tool: &str, arguments: &Value) -> (Caller, Value) {
        self.begin("tools/call", &json!({"name": tool, "arguments": arguments}))
    }

    /// Calls a tool and waits for the answer.
    pub fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        let (mut caller, id) = self.begin_call(tool, arguments);
        let answer = answer_of(&mut caller);
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    /// Calls a tool that must answer well; what it says.
    pub fn value_of(&mut self, tool: &str, arguments: &Value) -> Value {
        let answer = self.call(tool, arguments);
        let said = answer["result"].get("structuredContent");
        said.unwrap_or_else(|| panic!("`{tool}` did not answer well: {answer}")).clone()
    }

    /// Opens a GET, with a `Last-Event-ID` if there is one; the head is unread.
    pub fn listen(&self, last_event: Option<&str>) -> Caller {
        let mut headers = self.headers();
        headers[0] = ("Accept", "text/event-stream");
        headers.extend(last_event.map(|id| ("Last-Event-ID", id)));
        let mut caller = Caller::connect(self.address);
        caller.request("GET /mcp", &headers, "");
        caller
    }

    /// Ends the session.
    pub fn delete(&self) -> Response {
        Caller::connect(self.address).ask("DELETE /mcp", &self.headers(), "")
    }
}
