//! What `top --url` asks an `outlast serve`: one short request at a time, on a connection of its own.

use crate::tasks::{Problem, Status};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

/// How long a service may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// The longest answer; more is cut off, and is then no JSON.
const ANSWER: u64 = 64 << 20;

/// An `outlast serve`.
#[derive(Debug)]
pub struct Address {
    /// `HOST:PORT`.
    host: String,
    token: Option<String>,
}

impl Address {
    /// What a person writes.
    pub fn parse(url: &str, token: Option<String>) -> Result<Address, String> {
        let rest = url.strip_prefix("http://").ok_or_else(|| {
            format!("--url: `{url}` does not begin with http://; for another machine use a tunnel")
        })?;
        let host = rest.split('/').next().unwrap_or_default();
        if host.is_empty() {
            return Err(format!("--url: `{url}` names no host"));
        }
        let host = if host.rsplit(']').next().is_some_and(|end| end.contains(':')) {
            host.to_owned()
        } else {
            format!("{host}:80")
        };
        Ok(Address { host, token })
    }

    pub fn get(&self, path: &str) -> Result<Value, Problem> {
        self.ask("GET", path, "")
    }

    pub fn post(&self, path: &str, body: &Value) -> Result<Value, Problem> {
        self.ask("POST", path, &body.to_string())
    }

    fn ask(&self, method: &str, path: &str, body: &str) -> Result<Value, Problem> {
        let failed = |why: String| Problem(Status::Failed, format!("http://{}: {why}", self.host));
        let answer = self.exchange(method, path, body).map_err(|error| failed(error.to_string()))?;
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
        match head.split(' ').nth(1) {
            Some("200" | "202" | "204") if body.is_empty() => Ok(Value::Null),
            Some("200" | "202") => serde_json::from_str(body).map_err(|error| failed(error.to_string())),
            Some("401") => Err(failed("it wants a token: write --token-file FILE".into())),
            Some(status) => Err(failed(format!("status {status}: {}", body.trim()))),
            None => Err(failed("that is no HTTP".into())),
        }
    }

    /// The answer ends with the connection.
    fn exchange(&self, method: &str, path: &str, body: &str) -> std::io::Result<String> {
        let nowhere = || std::io::Error::other("no such host");
        let address = self.host.to_socket_addrs()?.next().ok_or_else(nowhere)?;
        let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let Address { host, token } = self;
        let token =
            token.as_ref().map(|token| format!("Authorization: Bearer {token}\r\n")).unwrap_or_default();
        let origin = if method == "POST" {
            format!(
                "Origin: http://{host}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n",
                body.len()
            )
        } else {
            String::new()
        };
        let request = format!(
            "{method} /outlast/{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{token}{origin}\r\n{body}"
        );
        stream.write_all(request.as_bytes())?;
        let mut answer = Vec::new();
        stream.take(ANSWER).read_to_end(&mut answer)?;
        Ok(String::from_utf8_lossy(&answer).into_owned())
    }
}
