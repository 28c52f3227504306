//! A client that sends exactly what a test says, on one connection.

use std::io::{self, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};

use serde_json::Value;

use super::{Framing, Head, reset_on_close};
use crate::peer::LIMIT;

/// A whole answer.
#[derive(Clone, Debug)]
pub struct Response {
    /// 200 and the like.
    pub status: u16,
    /// The rest of it.
    pub head: Head,
    /// Without its framing.
    pub body: Vec<u8>,
}

impl Response {
    /// The first header of this name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.header(name)
    }

    /// The body as JSON; `null` if it is none.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// One event of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Event {
    /// Its `id`.
    pub id: Option<String>,
    /// Its `event`.
    pub name: Option<String>,
    /// Its `retry`.
    pub retry: Option<u64>,
    /// Its `data`, lines joined.
    pub data: String,
}

impl Event {
    /// Its data as JSON; `null` if it is none.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.data).unwrap_or_default()
    }

    fn read(lines: &str) -> Event {
        let mut event = Event::default();
        for line in lines.lines() {
            let (field, value) = line.split_once(':').unwrap_or((line, ""));
            let value = value.strip_prefix(' ').unwrap_or(value);
            match field {
                "id" => event.id = Some(value.to_owned()),
                "event" => event.name = Some(value.to_owned()),
                "retry" => event.retry = value.parse().ok(),
                "data" if event.data.is_empty() => event.data = value.to_owned(),
                "data" => event.data.extend(["\n", value]),
                _ => {}
            }
        }
        event
    }
}

/// A connection to a server.
#[derive(Debug)]
pub struct Caller {
    address: SocketAddr,
    stream: BufReader<TcpStream>,
    /// How the body that is being read ends.
    framing: Framing,
    /// Of a stream of events: what came after the last whole one, every line ended by a line feed.
    rest: Vec<u8>,
    /// The last line ended in a carriage return, so a line feed that follows belongs to it.
    after_cr: bool,
}

impl Caller {
    /// Connects.
    pub fn connect(address: SocketAddr) -> Caller {
        Caller::try_connect(address).expect("it listens")
    }

    /// The same where perhaps nobody listens.
    pub fn try_connect(address: SocketAddr) -> io::Result<Caller> {
        let socket = TcpStream::connect_timeout(&address, LIMIT)?;
        socket.set_read_timeout(Some(LIMIT)).expect("a limit");
        socket.set_write_timeout(Some(LIMIT)).expect("a limit");
        socket.set_nodelay(true).expect("an option");
        Ok(Caller {
            address,
            stream: BufReader::new(socket),
            framing: Framing::Over,
            rest: Vec::new(),
            after_cr: false,
        })
    }

    /// Sends bytes as they are; whether all of them left.
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) -> bool {
        self.stream.get_mut().write_all(bytes.as_ref()).is_ok()
    }

    /// Sends a request with these headers, and with `Host` and `Content-Length` unless they are
    /// among them.
    pub fn request(&mut self, line: &str, headers: &[(&str, &str)], body: impl AsRef<[u8]>) -> bool {
        let body = body.as_ref();
        let given = |name: &str| headers.iter().any(|(given, _)| given.eq_ignore_ascii_case(name));
        let mut head = format!("{line} HTTP/1.1\r\n");
        if !given("Host") {
            head += &format!("Host: {}\r\n", self.address);
        }
        if !given("Content-Length") && !given("Transfer-Encoding") {
            head += &format!("Content-Length: {}\r\n", body.len());
        }
        for (name, value) in headers {
            head += &format!("{name}: {value}\r\n");
        }
        self.send([head.as_bytes(), b"\r\n", body].concat())
    }

    /// The head of the next answer; interim ones are passed over. None if the connection ends.
    pub fn try_head(&mut self) -> Option<(u16, Head)> {
        loop {
            let head = Head::read(&mut self.stream).unwrap_or_else(|error| ended(&error))?;
            let status: u16 = head.word(1).parse().unwrap_or_else(|_| panic!("no status: {}", head.start));
            if status >= 200 {
                self.rest.clear();
                self.after_cr = false;
                let empty = matches!(status, 204 | 304);
                self.framing = head.framing(if empty { Framing::Over } else { Framing::UntilClose });
                return Some((status, head));
            }
        }
    }

    /// The head of the next answer.
    pub fn head(&mut self) -> (u16, Head) {
        self.try_head().expect("an answer, not the end of the connection")
    }

    /// The next answer, all of it; none if the connection ends before it begins.
    pub fn try_response(&mut self) -> Option<Response> {
        let (status, head) = self.try_head()?;
        Some(Response { status, head, body: self.body() })
    }

    /// What is left of the body whose head has been read.
    pub fn body(&mut self) -> Vec<u8> {
        self.framing.read_all(&mut self.stream).expect("the rest of the answer")
    }

    /// The same; none if the connection ends before that.
    pub fn try_body(&mut self) -> Option<Vec<u8>> {
        self.framing.read_all(&mut self.stream).map_or_else(|error| ended(&error), Some)
    }

    /// The next answer, all of it.
    pub fn response(&mut self) -> Response {
        self.try_response().expect("an answer, not the end of the connection")
    }

    /// Sends a request and waits for its answer.
    pub fn ask(&mut self, line: &str, headers: &[(&str, &str)], body: impl AsRef<[u8]>) -> Response {
        self.request(line, headers, body);
        self.response()
    }

    /// The next event of a stream whose head has been read; comments are passed over. None at its end.
    pub fn event(&mut self) -> Option<Event> {
        loop {
            let Some(end) = self.rest.windows(2).position(|two| two == b"\n\n") else {
                let piece = self
                    .framing
                    .read(&mut self.stream)
                    .unwrap_or_else(|error| ended(&error).unwrap_or_default());
                if piece.is_empty() {
                    return None;
                }
                self.add_lines(&piece);
                continue;
            };
            let block: Vec<u8> = self.rest.drain(..end + 2).collect();
            let event = Event::read(&String::from_utf8_lossy(&block));
            if event != Event::default() {
                return Some(event);
            }
        }
    }

    /// Takes a part of a stream. A carriage return alone ends a line too.
    fn add_lines(&mut self, piece: &[u8]) {
        for byte in piece {
            let after_cr = std::mem::replace(&mut self.after_cr, *byte == b'\r');
            match byte {
                b'\n' if after_cr => {}
                b'\r' => self.rest.push(b'\n'),
                byte => self.rest.push(*byte),
            }
        }
    }

    /// The data of the first event that fits.
    pub fn message_where(&mut self, fits: impl Fn(&Value) -> bool) -> Value {
        let mut others = Vec::new();
        loop {
            let Some(event) = self.event() else { panic!("the stream has ended after {others:#?}") };
            let message = event.json();
            if fits(&message) {
                return message;
            }
            others.push(event);
        }
    }

    /// The answer to a request, from the stream.
    pub fn answer(&mut self, id: &Value) -> Value {
        self.message_where(|message| message["id"] == *id && message.get("method").is_none())
    }

    /// Waits until the other side closes; false if it says something instead.
    pub fn wait_for_close(&mut self) -> bool {
        self.stream.read(&mut [0]).unwrap_or_else(|error| ended(&error).unwrap_or_default()) == 0
    }

    /// Writes no more, and goes on reading.
    pub fn finish_writing(&mut self) {
        self.stream.get_ref().shutdown(Shutdown::Write).expect("an open connection");
    }

    /// Closes with a reset.
    pub fn reset(self) {
        reset_on_close(self.stream.get_ref());
    }
}

/// A reset is an end like another; that nothing comes is a failure.
fn ended<T>(error: &io::Error) -> Option<T> {
    let late = matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut);
    assert!(!late, "nothing came within {LIMIT:?}");
    None
}
