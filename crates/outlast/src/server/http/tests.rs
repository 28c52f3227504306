//! A server that does exactly what a test says, byte for byte, and a feed that writes down what it
//! was told. Nothing sleeps; a test that hangs is ended by [`PATIENCE`].

mod ends;
mod posts;
mod proxies;
mod streams;
mod tls;

use super::*;
use outlast_engine::http::Post;
use outlast_engine::wire::{Outgoing, Scanned};
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

const PATIENCE: Duration = Duration::from_secs(20);

async fn patiently<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, work).await.expect("nothing happens")
}

/// A listener, a session that leads to it, and what the session tells.
struct World {
    listener: TcpListener,
    remote: Arc<Remote>,
    session: Session,
    told: mpsc::UnboundedReceiver<String>,
}

impl World {
    async fn new() -> World {
        World::with(|_| {}).await
    }

    async fn with(change: impl FnOnce(&mut Options)) -> World {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut options = options(&format!("http://{}/mcp", listener.local_addr().unwrap()));
        change(&mut options);
        World::of(listener, options)
    }

    fn of(listener: TcpListener, options: Options) -> World {
        let (sender, told) = mpsc::unbounded_channel();
        let remote = Remote::new(options).unwrap();
        let session = Session::new(remote.clone(), Arc::new(Writer(sender)));
        World { listener, remote, session, told }
    }

    /// Waits until so many connections are without use.
    async fn idle(&self, count: usize) {
        let wait = async {
            while self.remote.idle() != count {
                tokio::task::yield_now().await;
            }
        };
        patiently(wait).await;
    }

    /// The next connection.
    async fn accept(&self) -> Peer<TcpStream> {
        Peer(patiently(self.listener.accept()).await.unwrap().0)
    }

    /// What was told next, in one go.
    async fn told(&mut self) -> String {
        patiently(self.told.recv()).await.unwrap()
    }

    /// Posts a request, takes its connection and its text.
    async fn call(&mut self, attempt: u64) -> (Peer<TcpStream>, String) {
        self.session.post(request(attempt));
        let mut peer = self.accept().await;
        let text = peer.request().await;
        (peer, text)
    }

    /// Begins a session of this name.
    async fn begin(&mut self, session: &str) -> Peer<TcpStream> {
        let mut first = request(1);
        (first.begins_session, first.goes_first) = (true, true);
        self.session.post(first);
        let mut peer = self.accept().await;
        assert_eq!(header(&peer.request().await, "mcp-session-id"), None);
        peer.json_with(&format!("Mcp-Session-Id: {session}\r\n"), &answer(1)).await;
        assert_eq!(self.told().await, format!("stream 1: {}", answer(1)));
        peer
    }
}

fn options(url: &str) -> Options {
    Options {
        url: url.parse().unwrap(),
        headers: Vec::new(),
        ca_file: None,
        proxies: Matcher::builder().build(),
        way: None,
        connect: PATIENCE,
        pool_idle: Duration::from_secs(90),
        pool_max_idle: 32,
        max_message: 1 << 20,
    }
}

fn session(options: Options) -> (Session, mpsc::UnboundedReceiver<String>) {
    let (sender, told) = mpsc::unbounded_channel();
    (Session::new(Remote::new(options).unwrap(), Arc::new(Writer(sender))), told)
}

/// Writes down what it is told.
struct Writer(mpsc::UnboundedSender<String>);

impl Feed for Writer {
    fn feed(&self, happenings: &mut dyn Iterator<Item = Happening>) {
        let _ = self.0.send(happenings.map(show).collect::<Vec<_>>().join(" + "));
    }
}

fn show(happening: Happening) -> String {
    match happening {
        Happening::FromStream(attempt, line) => format!("stream {}: {}", attempt.0, text(line)),
        Happening::FromStanding(line) => format!("standing: {}", text(line)),
        Happening::Oversized(message) => {
            let id = message.id.map(|id| String::from_utf8_lossy(&id).into_owned());
            format!("oversized {id:?} {}", message.answer)
        }
        Happening::StreamEnded(attempt, end) => format!("ended {}: {}", attempt.0, show_end(end)),
        Happening::StandingEnded(end) => format!("standing ended: {}", show_end(end)),
        Happening::Undelivered(message, why) => {
            format!("undelivered {}: {why}", String::from_utf8_lossy(&message.to_vec()))
        }
        Happening::Trouble(attempt, trouble) => {
            let attempt = attempt.map_or("none".to_owned(), |attempt| attempt.0.to_string());
            match trouble {
                Trouble::Status { status, retry_after, had_session, body } => {
                    let body = String::from_utf8_lossy(&body).into_owned();
                    format!("{attempt} status {status} {retry_after:?} session={had_session}: {body}")
                }
                Trouble::Unreachable(why) => format!("{attempt} unreachable: {why}"),
                Trouble::Broken(why) => format!("{attempt} broken: {why}"),
                Trouble::NotMcp(why) => format!("{attempt} not mcp: {why}"),
            }
        }
        Happening::Connected => "connected".into(),
        Happening::Closed => "closed".into(),
    }
}

fn text(line: Line) -> String {
    match line {
        Ok(Scanned::Message(message)) => String::from_utf8(message.bytes.to_vec()).unwrap(),
        Ok(Scanned::Batch(members)) => format!("{} members", members.len()),
        Err(refused) => format!("refused {:?}", refused.fault),
    }
}

fn show_end(end: StreamEnd) -> String {
    let StreamEnd { resumable, retry, opened, status, why } = end;
    let unopened = if opened { "" } else { "unopened " };
    format!("{unopened}resumable={resumable} retry={retry:?} status={status:?} {why}")
}

/// The other end of a connection.
struct Peer<S>(S);

impl<S: AsyncRead + AsyncWrite + Unpin> Peer<S> {
    /// A request with its body, as it was written.
    async fn request(&mut self) -> String {
        let mut text = Vec::new();
        while !text.ends_with(b"\r\n\r\n") {
            text.push(patiently(self.0.read_u8()).await.expect("no request came"));
        }
        let head = String::from_utf8(text).unwrap();
        let length = header(&head, "content-length").map_or(0, |length| length.parse().unwrap());
        let mut body = vec![0; length];
        patiently(self.0.read_exact(&mut body)).await.unwrap();
        head + std::str::from_utf8(&body).unwrap()
    }

    async fn write(&mut self, text: &str) {
        patiently(self.0.write_all(text.as_bytes())).await.unwrap();
    }

    async fn json(&mut self, body: &str) {
        self.json_with("", body).await;
    }

    async fn json_with(&mut self, headers: &str, body: &str) {
        let length = body.len();
        let head = format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n{headers}");
        self.write(&format!("{head}Content-Length: {length}\r\n\r\n{body}")).await;
    }

    /// Begins a stream of events.
    async fn events(&mut self) {
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked";
        self.write(&format!("{head}\r\n\r\n")).await;
    }

    /// One chunk of it; an empty one ends it.
    async fn chunk(&mut self, text: &str) {
        self.write(&format!("{:x}\r\n{text}\r\n", text.len())).await;
    }

    /// Waits until the other side has closed.
    async fn closed(&mut self) {
        let mut rest = Vec::new();
        // A reset is an end too.
        let _ = patiently(self.0.read_to_end(&mut rest)).await;
        assert_eq!(String::from_utf8_lossy(&rest), "");
    }
}

/// A header of a request.
fn header<'a>(request: &'a str, name: &str) -> Option<&'a str> {
    let head = request.split("\r\n\r\n").next().unwrap();
    let mut fields = head.lines().skip(1).filter_map(|line| line.split_once(": "));
    fields.find(|(field, _)| field.eq_ignore_ascii_case(name)).map(|(_, value)| value)
}

fn message(attempt: Option<u64>, text: String) -> Box<Post> {
    Box::new(Post {
        attempt: attempt.map(AttemptId),
        message: Outgoing::plain(text.into_bytes()),
        headers: Vec::new(),
        begins_session: false,
        goes_first: false,
        resumes: false,
        harmless: false,
        comes_back: false,
    })
}

fn request(attempt: u64) -> Box<Post> {
    message(Some(attempt), format!(r#"{{"jsonrpc":"2.0","id":{attempt},"method":"tools/call"}}"#))
}

fn notification() -> Box<Post> {
    message(None, r#"{"jsonrpc":"2.0","method":"notifications/x"}"#.into())
}

fn answer(attempt: u64) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{attempt},"result":{{}}}}"#)
}

fn progress() -> &'static str {
    r#"{"jsonrpc":"2.0","method":"notifications/progress"}"#
}
