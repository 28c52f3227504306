//! Clients that write HTTP themselves, each on one connection, one request after another.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

/// The revision with tasks.
const VERSION: &str = "2025-11-25";

/// A client with a session.
pub struct Client {
    stream: BufReader<TcpStream>,
    address: SocketAddr,
    session: Option<String>,
    next: u64,
}

impl Client {
    pub fn connect(address: SocketAddr) -> Result<Client> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(60)))?;
        let mut client = Client { stream: BufReader::new(stream), address, session: None, next: 0 };
        let who = json!({"name": "bench", "version": "1"});
        client
            .ask("initialize", &json!({"protocolVersion": VERSION, "capabilities": {}, "clientInfo": who}))?;
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))?;
        client.read()?;
        Ok(client)
    }

    /// The same session at another replica.
    pub fn at(&self, address: SocketAddr) -> Result<Client> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(60)))?;
        Ok(Client { stream: BufReader::new(stream), address, session: self.session.clone(), next: 1 << 20 })
    }

    fn send(&mut self, message: &Value) -> Result<()> {
        let body = message.to_string();
        let session = self.session.as_ref().map(|id| format!("mcp-session-id: {id}\r\n")).unwrap_or_default();
        let head = format!(
            "POST /mcp HTTP/1.1\r\nhost: {}\r\naccept: application/json, text/event-stream\r\n\
             content-type: application/json\r\n{session}content-length: {}\r\n\r\n",
            self.address,
            body.len()
        );
        Ok(self.stream.get_mut().write_all((head + &body).as_bytes())?)
    }

    /// A request and its result.
    pub fn ask(&mut self, method: &str, params: &Value) -> Result<Value> {
        self.next += 1;
        self.send(&json!({"jsonrpc": "2.0", "id": self.next, "method": method, "params": params}))?;
        let said = self.read()?;
        let answer = said.lines().map(|line| line.strip_prefix("data: ").unwrap_or(line));
        let mut answers = answer.filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let answer =
            answers.find(|answer| answer["id"] == self.next).with_context(|| format!("no answer: {said}"))?;
        ensure!(answer["error"].is_null(), "{answer}");
        Ok(answer["result"].clone())
    }

    /// A call that becomes a task: its ticket.
    pub fn begin(&mut self, tool: &str, arguments: &Value) -> Result<String> {
        let result = self.ask("tools/call", &json!({"name": tool, "arguments": arguments, "task": {}}))?;
        Ok(result["task"]["taskId"].as_str().with_context(|| format!("no task: {result}"))?.to_owned())
    }

    /// The body of the next response, all of it.
    fn read(&mut self) -> Result<String> {
        let (mut length, mut chunked) = (0, false);
        loop {
            let mut line = String::new();
            if self.stream.read_line(&mut line)? == 0 {
                bail!("the connection has ended");
            }
            let line = line.trim_end().to_ascii_lowercase();
            if line.is_empty() {
                break;
            }
            if let Some(value) = line.strip_prefix("content-length: ") {
                length = value.parse()?;
            }
            if let Some(session) = line.strip_prefix("mcp-session-id: ") {
                self.session = Some(session.to_owned());
            }
            chunked |= line == "transfer-encoding: chunked";
        }
        let mut body = Vec::new();
        if !chunked {
            body.resize(length, 0);
            self.stream.read_exact(&mut body)?;
        }
        while chunked {
            let mut size = String::new();
            self.stream.read_line(&mut size)?;
            let start = body.len();
            let size = usize::from_str_radix(size.trim(), 16)?;
            body.resize(start + size + 2, 0);
            self.stream.read_exact(&mut body[start..])?;
            body.truncate(start + size);
            chunked = size > 0;
        }
        Ok(String::from_utf8_lossy(&body).into_owned())
    }
}

/// What so many clients do per second, spread over these replicas, each again and again for a while.
pub fn rate(
    addresses: &[SocketAddr],
    clients: usize,
    time: Duration,
    act: impl Fn(&mut Client) -> Result<()> + Sync,
) -> Result<f64> {
    let all = (0..clients).map(|at| Client::connect(addresses[at % addresses.len()]));
    let mut all = all.collect::<Result<Vec<_>>>()?;
    let (over, done) = (AtomicBool::new(false), AtomicU64::new(0));
    let began = Instant::now();
    std::thread::scope(|scope| {
        let threads: Vec<_> = all
            .iter_mut()
            .map(|client| {
                let (over, done, act) = (&over, &done, &act);
                scope.spawn(move || -> Result<()> {
                    while !over.load(Ordering::Relaxed) {
                        act(client)?;
                        done.fetch_add(1, Ordering::Relaxed);
                    }
                    Ok(())
                })
            })
            .collect();
        std::thread::sleep(time);
        over.store(true, Ordering::Relaxed);
        threads
            .into_iter()
            .try_for_each(|thread| thread.join().unwrap_or_else(|_| bail!("a client panicked")))
    })?;
    Ok(done.load(Ordering::Relaxed) as f64 / began.elapsed().as_secs_f64())
}
