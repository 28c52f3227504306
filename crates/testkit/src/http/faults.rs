//! A remote server that answers exactly what a test says.
//!
//! A test gives a script: a function that is called for every request, or for every connection
//! before anything is read, and that writes raw bytes, waits for the test, resets or does nothing.
//! Each connection has its own thread, so a script may wait; it waits for the test (a channel) or
//! for the peer, never for a time. Every request that came is kept in the order of arrival.

#![allow(clippy::disallowed_methods, reason = "waits for real sockets in real time")]

use std::io::{self, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::{self, JoinHandle};

use serde_json::Value;

use super::{Framing, Head, chunk, reset_on_close};
use crate::peer::LIMIT;

/// A request as it came.
#[derive(Clone, Debug)]
pub struct Request {
    /// Which connection it came on, counted from 0.
    pub connection: usize,
    /// `POST` and the like.
    pub method: String,
    /// As it stands in the request line.
    pub path: String,
    /// The rest of it.
    pub head: Head,
    /// All of it.
    pub body: Vec<u8>,
}

impl Request {
    /// The first header of this name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.header(name)
    }

    /// The body as JSON; `null` if it is none.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// The method of the message in the body, or nothing.
    pub fn rpc(&self) -> String {
        self.json()["method"].as_str().unwrap_or_default().to_owned()
    }

    /// The tool that is called, or nothing.
    pub fn tool(&self) -> String {
        self.json()["params"]["name"].as_str().unwrap_or_default().to_owned()
    }
}

/// What a connection speaks through.
pub trait Stream: Read + Write + Send {}
impl<T: Read + Write + Send> Stream for T {}

/// A socket that can be reset although several hold it.
#[derive(Clone, Debug)]
pub struct Socket(Arc<TcpStream>);

impl Read for Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        (&*self.0).read(buffer)
    }
}

impl Write for Socket {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        (&*self.0).write(buffer)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// One connection, as its script sees it. It ends with its script.
pub struct Connection {
    /// Counted from 0.
    pub number: usize,
    open: Option<(Socket, BufReader<Box<dyn Stream>>)>,
    seen: Arc<Seen>,
}

impl Connection {
    /// The next request, all of it; none when the peer has closed or is not understood.
    pub fn request(&mut self) -> Option<Request> {
        let head = self.head()?;
        self.rest(head)
    }

    /// The rest of a request whose head has been read.
    pub fn rest(&mut self, mut request: Request) -> Option<Request> {
        let mut framing = request.head.framing(Framing::Over);
        if request.header("Expect").is_some() {
            self.send("HTTP/1.1 100 Continue\r\n\r\n");
        }
        let (_, stream) = self.open.as_mut()?;
        request.body = framing.read_all(stream).ok()?;
        self.seen.add(request.clone());
        Some(request)
    }

    /// The head of the next request. Its body stays unread and the request is not kept.
    pub fn head(&mut self) -> Option<Request> {
        let (_, stream) = self.open.as_mut()?;
        let head = Head::read(stream).ok()??;
        let (method, path) = (head.word(0).to_owned(), head.word(1).to_owned());
        Some(Request { connection: self.number, method, path, head, body: Vec::new() })
    }

    /// Reads so many bytes and forgets them.
    pub fn skip(&mut self, count: usize) {
        if let Some((_, stream)) = &mut self.open {
            let _ = io::copy(&mut stream.take(count as u64), &mut io::sink());
        }
    }

    /// Sends bytes as they are. A peer that is gone does not get them.
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        if let Some((_, stream)) = &mut self.open {
            let stream = stream.get_mut();
            let _ = stream.write_all(bytes.as_ref()).and_then(|()| stream.flush());
        }
    }

    /// A whole answer: `404 Not Found`, headers, a body of the right length.
    pub fn answer(&mut self, status: &str, headers: &[(&str, &str)], body: impl AsRef<[u8]>) {
        let body = body.as_ref();
        let length = body.len().to_string();
        self.send_head(status, &[headers, &[("Content-Length", &length)]].concat());
        self.send(body);
    }

    /// The beginning of an answer.
    pub fn send_head(&mut self, status: &str, headers: &[(&str, &str)]) {
        let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        self.send(format!("HTTP/1.1 {status}\r\n{headers}\r\n"));
    }

    /// 200 with this JSON.
    pub fn json(&mut self, value: &Value) {
        self.answer("200 OK", &[("Content-Type", "application/json")], value.to_string());
    }

    /// 200 and the head of a stream of events; what follows comes in chunks.
    pub fn open_events(&mut self, headers: &[(&str, &str)]) {
        let stream = [("Content-Type", "text/event-stream"), ("Transfer-Encoding", "chunked")];
        self.send_head("200 OK", &[&stream, headers].concat());
    }

    /// A piece of the stream, whole events or not, as one chunk.
    pub fn events(&mut self, bytes: impl AsRef<[u8]>) {
        self.send(chunk(bytes.as_ref()));
    }

    /// The orderly end of the stream; the connection goes on.
    pub fn end_events(&mut self) {
        self.send("0\r\n\r\n");
    }

    /// A whole stream.
    pub fn all_events(&mut self, bytes: impl AsRef<[u8]>) {
        self.open_events(&[]);
        self.events(bytes);
        self.end_events();
    }

    /// Closes in an orderly way.
    pub fn close(&mut self) {
        self.open = None;
    }

    /// Closes with a reset: whatever is on its way is lost.
    pub fn reset(&mut self) {
        if let Some((socket, _)) = &self.open {
            reset_on_close(&socket.0);
        }
        self.close();
    }

    /// Waits until the peer closes; false if it says something instead, or stays for too long.
    pub fn wait_for_close(&mut self) -> bool {
        let Some((_, stream)) = &mut self.open else { return true };
        match stream.read(&mut [0]) {
            Ok(count) => count == 0,
            Err(error) => !matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut),
        }
    }
}

/// Every request so far, and the connections that are open.
#[derive(Debug, Default)]
struct Seen {
    requests: Mutex<Vec<Request>>,
    grew: Condvar,
    sockets: Mutex<Vec<Weak<TcpStream>>>,
    stopping: AtomicBool,
}

impl Seen {
    fn add(&self, request: Request) {
        lock(&self.requests).push(request);
        self.grew.notify_all();
    }
}

/// A server under a test's control. Dropped, it is gone: connections end, new ones are refused.
#[derive(Debug)]
pub struct FaultServer {
    address: SocketAddr,
    seen: Arc<Seen>,
    acceptor: Option<JoinHandle<()>>,
}

impl FaultServer {
    /// Calls the script for every request.
    pub fn start(script: impl Fn(&Request, &mut Connection) + Send + Sync + 'static) -> FaultServer {
        FaultServer::start_at("127.0.0.1:0", script)
    }

    /// The same at an address of the test's own.
    pub fn start_at(
        address: &str,
        script: impl Fn(&Request, &mut Connection) + Send + Sync + 'static,
    ) -> FaultServer {
        FaultServer::start_with(address, plain, per_request(script))
    }

    /// The same through something that stands between it and the socket, as TLS does.
    pub fn start_through(
        wrap: impl Fn(Socket) -> io::Result<Box<dyn Stream>> + Send + Sync + 'static,
        script: impl Fn(&Request, &mut Connection) + Send + Sync + 'static,
    ) -> FaultServer {
        FaultServer::start_with("127.0.0.1:0", wrap, per_request(script))
    }

    /// Calls the script for every connection; nothing is read before it asks.
    pub fn start_raw(script: impl Fn(&mut Connection) + Send + Sync + 'static) -> FaultServer {
        FaultServer::start_with("127.0.0.1:0", plain, script)
    }

    fn start_with(
        address: &str,
        wrap: impl Fn(Socket) -> io::Result<Box<dyn Stream>> + Send + Sync + 'static,
        script: impl Fn(&mut Connection) + Send + Sync + 'static,
    ) -> FaultServer {
        let listener = TcpListener::bind(address).unwrap_or_else(|error| panic!("{address}: {error}"));
        let address = listener.local_addr().expect("it listens");
        let seen = Arc::new(Seen::default());
        let shared = Arc::new((wrap, script));
        let accepted = seen.clone();
        let acceptor = thread::spawn(move || {
            for (number, socket) in listener.incoming().enumerate() {
                if accepted.stopping.load(Ordering::Relaxed) {
                    return;
                }
                let Ok(socket) = socket else { continue };
                let socket = accepted.keep(socket);
                let (shared, seen) = (shared.clone(), accepted.clone());
                thread::spawn(move || {
                    let Ok(stream) = (shared.0)(socket.clone()) else { return };
                    let open = Some((socket, BufReader::new(stream)));
                    (shared.1)(&mut Connection { number, open, seen });
                });
            }
        });
        FaultServer { address, seen, acceptor: Some(acceptor) }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its endpoint.
    pub fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// Every request so far.
    pub fn requests(&self) -> Vec<Request> {
        lock(&self.seen.requests).clone()
    }

    /// Those of this JSON-RPC method so far.
    pub fn requests_of(&self, rpc: &str) -> Vec<Request> {
        self.requests().into_iter().filter(|request| request.rpc() == rpc).collect()
    }

    /// How many connections came.
    pub fn connections(&self) -> usize {
        lock(&self.seen.sockets).len()
    }

    /// The first request that fits; waits for it.
    pub fn request_where(&self, fits: impl Fn(&Request) -> bool) -> Request {
        let missing = |requests: &mut Vec<Request>| !requests.iter().any(&fits);
        let waited = self.seen.grew.wait_timeout_while(lock(&self.seen.requests), LIMIT, missing);
        let (requests, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let found = requests.iter().find(|request| fits(request)).cloned();
        found.unwrap_or_else(|| panic!("the request did not come; these did: {requests:#?}"))
    }
}

impl Seen {
    fn keep(&self, socket: TcpStream) -> Socket {
        socket.set_read_timeout(Some(LIMIT)).expect("a limit");
        socket.set_write_timeout(Some(LIMIT)).expect("a limit");
        // Each piece is a segment of its own.
        socket.set_nodelay(true).expect("an option");
        let socket = Arc::new(socket);
        lock(&self.sockets).push(Arc::downgrade(&socket));
        Socket(socket)
    }
}

impl Drop for FaultServer {
    fn drop(&mut self) {
        self.seen.stopping.store(true, Ordering::Relaxed);
        // Wakes the acceptor.
        let _ = TcpStream::connect(self.address);
        if let Some(acceptor) = self.acceptor.take() {
            let _ = acceptor.join();
        }
        for socket in lock(&self.seen.sockets).iter().filter_map(Weak::upgrade) {
            let _ = socket.shutdown(Shutdown::Both);
        }
    }
}

/// An address where nobody listens.
pub fn closed_address() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("it listens")
}

fn plain(socket: Socket) -> io::Result<Box<dyn Stream>> {
    Ok(Box::new(socket))
}

fn per_request(script: impl Fn(&Request, &mut Connection)) -> impl Fn(&mut Connection) {
    move |connection| {
        while let Some(request) = connection.request() {
            script(&request, connection);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
