//! A client over HTTP: what it writes, and one connection that is kept open.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use anyhow::{Context, Result, bail, ensure};

use super::reply::Reply;
use crate::bench::link::LIMIT;
use crate::bench::messages::{self, Call, Era};

/// Room for each read.
pub const CHUNK: usize = 256 * 1024;

/// Who asks: an era and, in the legacy one, a session.
pub struct Client {
    pub era: Era,
    address: SocketAddr,
    /// The endpoint: `/mcp`, or that of one of several servers.
    path: &'static str,
    session: Option<String>,
    next_id: u64,
}

impl Client {
    /// Introduces itself, if its era does that.
    pub fn enter(connection: &mut Connection, era: Era) -> Result<Client> {
        Client::enter_at(connection, era, "/mcp")
    }

    /// The same at another endpoint.
    pub fn enter_at(connection: &mut Connection, era: Era, path: &'static str) -> Result<Client> {
        let mut client = Client { era, address: connection.address, path, session: None, next_id: 1 };
        if era == Era::Legacy {
            client.shake_hands(connection)?;
        }
        Ok(client)
    }

    fn shake_hands(&mut self, connection: &mut Connection) -> Result<()> {
        let id = self.fresh_ids(1);
        let answer = connection.exchange(&self.post("", &messages::initialize(id)))?;
        answer.expect_result(id)?;
        self.session = Some(answer.session.context("`initialize` gave no session")?);
        let accepted = connection.exchange(&self.post("", messages::INITIALIZED))?;
        ensure!(accepted.status == 202, "`initialized` was answered with {}", accepted.status);
        Ok(())
    }

    /// Reserves ids for `count` calls and gives the first.
    pub fn fresh_ids(&mut self, count: u64) -> u64 {
        let first = self.next_id;
        self.next_id += count;
        first
    }

    /// A call that is sent many times.
    pub fn prepare(&self, call: Call) -> Request {
        let mirrored = match self.era {
            Era::Legacy => String::new(),
            Era::Modern => format!("Mcp-Method: tools/call\r\nMcp-Name: {}\r\n", call.tool),
        };
        Request { head: self.head("POST", &mirrored), call }
    }

    /// The request for a standing stream.
    pub fn listen(&self) -> Vec<u8> {
        (self.head("GET", "") + "\r\n").into_bytes()
    }

    /// A legacy request for the list of tools.
    pub fn list_tools(&self, id: u64) -> Vec<u8> {
        self.post("", &messages::list_tools(id))
    }

    fn post(&self, headers: &str, body: &[u8]) -> Vec<u8> {
        let mut request = self.head("POST", headers).into_bytes();
        append_body(body, &mut request);
        request
    }

    fn head(&self, method: &str, headers: &str) -> String {
        let (address, path, version) = (self.address, self.path, self.era.version());
        let session = self.session.as_ref().map(|id| format!("Mcp-Session-Id: {id}\r\n"));
        format!(
            "{method} {path} HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: {version}\r\n{}{headers}",
            session.unwrap_or_default()
        )
    }
}

/// A call with its head, without its id.
pub struct Request {
    head: String,
    call: Call,
}

impl Request {
    pub fn bytes(&self, id: u64) -> Vec<u8> {
        let mut out = Vec::new();
        self.append(id, &mut out);
        out
    }

    pub fn append(&self, id: u64, out: &mut Vec<u8>) {
        let mut body = Vec::new();
        self.call.append(id, &mut body);
        out.extend_from_slice(self.head.as_bytes());
        append_body(&body, out);
    }
}

/// The end of the head and the body, without the newline that ends a message on a pipe.
fn append_body(body: &[u8], out: &mut Vec<u8>) {
    let body = body.trim_ascii_end();
    // Writing to a vector cannot fail.
    let _ = write!(out, "Content-Length: {}\r\n\r\n", body.len());
    out.extend_from_slice(body);
}

/// A connection for one exchange after the other. Its reads and writes are bounded in time.
pub struct Connection {
    address: SocketAddr,
    stream: TcpStream,
    chunk: Vec<u8>,
}

impl Connection {
    pub fn open(address: SocketAddr) -> Result<Connection> {
        let stream = TcpStream::connect(address).context("cannot connect")?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(LIMIT))?;
        stream.set_write_timeout(Some(LIMIT))?;
        Ok(Connection { address, stream, chunk: vec![0; CHUNK] })
    }

    /// Sends a request and reads its response to the end.
    pub fn exchange(&mut self, request: &[u8]) -> Result<Reply> {
        self.send(request)?;
        self.receive()
    }

    /// Sends a request, whose response is read later.
    pub fn send(&mut self, request: &[u8]) -> Result<()> {
        self.stream.write_all(request).context("cannot be written to")
    }

    /// Reads a response to its end.
    pub fn receive(&mut self) -> Result<Reply> {
        let mut reply = Reply::default();
        while !self.read_into(&mut reply)? {}
        Ok(reply)
    }

    /// Sends a request and reads until its response has begun; gives the connection away.
    pub fn begin(mut self, request: &[u8]) -> Result<(TcpStream, Reply)> {
        self.stream.write_all(request).context("cannot be written to")?;
        let mut reply = Reply::default();
        while reply.status == 0 {
            self.read_into(&mut reply)?;
        }
        Ok((self.stream, reply))
    }

    fn read_into(&mut self, reply: &mut Reply) -> Result<bool> {
        match self.stream.read(&mut self.chunk).context("cannot be read")? {
            0 => bail!("the connection was closed"),
            count => reply.take(&self.chunk[..count]),
        }
    }
}
