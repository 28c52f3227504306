//! The server on Streamable HTTP, both eras at once.
//!
//! A legacy client gets a session and must name it, a modern one needs none. An answer is JSON or,
//! if the server was started so, a stream that opens at once. A GET is a standing stream on which
//! nothing ever comes.

use std::collections::{HashSet, VecDeque};
use std::convert::Infallible;
use std::io;
use std::net::Ipv4Addr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::Sleep;

use super::messages::{self, Ask, Counts, ECHO, INITIALIZED, Message, NOTHING, Reader};

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const MODERN: &str = "2026-07-28";

/// A payload from this size on is written from where it was read instead of being copied first.
const LARGE: usize = 64 * 1024;

/// Connections that may wait to be accepted: ten thousand come at once.
const BACKLOG: u32 = 4096;

/// How requests are answered.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Form {
    Json,
    Stream,
}

/// Serves until it is ended.
pub fn serve(reader: Reader, form: Form) -> io::Result<()> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(accept(reader, form))
}

async fn accept(reader: Reader, form: Form) -> io::Result<()> {
    let socket = TcpSocket::new_v4()?;
    socket.bind((Ipv4Addr::LOCALHOST, 0).into())?;
    let listener = socket.listen(BACKLOG)?;
    eprintln!("echo-server: listening on http://{}/mcp", listener.local_addr()?);
    let server = Arc::new(Server::new(reader, form));
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        tokio::spawn(converse(stream, server.clone()));
    }
}

/// A connection that breaks is the client's business: it notices.
async fn converse(stream: TcpStream, server: Arc<Server>) {
    let service = service_fn(move |request| {
        let server = server.clone();
        async move { Ok::<_, Infallible>(server.respond(request).await) }
    });
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

struct Server {
    form: Form,
    reader: Reader,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    counts: Counts,
    sessions: HashSet<String>,
}

impl Server {
    fn new(reader: Reader, form: Form) -> Server {
        Server { form, reader, state: Mutex::default() }
    }

    async fn respond(&self, request: Request<Incoming>) -> Response<Answer> {
        if let Err(status) = self.admit(request.headers()) {
            return empty(status);
        }
        match *request.method() {
            Method::POST => self.post(request).await,
            Method::GET => stream(VecDeque::new(), Wait::Forever),
            Method::DELETE => empty(StatusCode::OK),
            _ => empty(StatusCode::METHOD_NOT_ALLOWED),
        }
    }

    /// A session that is named must be ours. That one is missing shows later: only `initialize`
    /// does without.
    fn admit(&self, headers: &HeaderMap) -> Result<(), StatusCode> {
        let Some(session) = headers.get(SESSION) else { return Ok(()) };
        let known = session.to_str().is_ok_and(|name| self.state().sessions.contains(name));
        known.then_some(()).ok_or(StatusCode::NOT_FOUND)
    }

    async fn post(&self, request: Request<Incoming>) -> Response<Answer> {
        let (head, body) = request.into_parts();
        let Ok(body) = body.collect().await else { return empty(StatusCode::BAD_REQUEST) };
        let text = body.to_bytes();
        let Ok(message) = self.reader.read(&text) else { return empty(StatusCode::BAD_REQUEST) };
        self.state().counts.note(&message);
        let Message::Request { id, ask } = message else { return empty(StatusCode::ACCEPTED) };
        if matches!(ask, Ask::Initialize) {
            return self.open_session(id);
        }
        if !head.headers.contains_key(SESSION) && !is_modern(&head.headers) {
            return empty(StatusCode::BAD_REQUEST);
        }
        self.answer(id, ask, &text).await
    }

    fn open_session(&self, id: &[u8]) -> Response<Answer> {
        let mut state = self.state();
        let name = format!("session-{}", state.sessions.len());
        let value = HeaderValue::try_from(&name);
        state.sessions.insert(name);
        let mut response = self.now(whole(id, INITIALIZED));
        if let Ok(value) = value {
            response.headers_mut().insert(SESSION, value);
        }
        response
    }

    async fn answer(&self, id: &[u8], ask: Ask<'_>, text: &Bytes) -> Response<Answer> {
        match ask {
            Ask::Initialize => self.now(whole(id, INITIALIZED)),
            Ask::Same(result) => self.now(whole(id, result)),
            Ask::Echo(payload) => self.now(echo(id, text.slice_ref(payload))),
            Ask::Say(said) => self.now(say(id, &said)),
            Ask::Stats => self.now(whole(id, &self.state().counts.result())),
            Ask::Never if self.form == Form::Stream => stream(VecDeque::new(), Wait::Forever),
            Ask::Never => std::future::pending().await,
            Ask::Later(delay) if self.form == Form::Stream => {
                let sleep = Box::pin(tokio::time::sleep(delay));
                stream(whole(id, NOTHING), Wait::Until(sleep))
            }
            Ask::Later(delay) => {
                tokio::time::sleep(delay).await;
                self.now(whole(id, NOTHING))
            }
        }
    }

    fn now(&self, parts: VecDeque<Bytes>) -> Response<Answer> {
        match self.form {
            Form::Json => with_type("application/json", Answer::json(parts)),
            Form::Stream => stream(parts, Wait::No),
        }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_modern(headers: &HeaderMap) -> bool {
    headers.get(VERSION).is_some_and(|version| version == MODERN)
}

fn empty(status: StatusCode) -> Response<Answer> {
    let mut response = Response::new(Answer::json(VecDeque::new()));
    *response.status_mut() = status;
    response
}

fn stream(parts: VecDeque<Bytes>, wait: Wait) -> Response<Answer> {
    with_type("text/event-stream", Answer::stream(parts, wait))
}

fn with_type(kind: &'static str, answer: Answer) -> Response<Answer> {
    let mut response = Response::new(answer);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

fn whole(id: &[u8], result: &[u8]) -> VecDeque<Bytes> {
    let mut out = Vec::new();
    messages::begin(id, &mut out);
    out.extend_from_slice(result);
    out.push(b'}');
    VecDeque::from([out.into()])
}

fn say(id: &[u8], said: &str) -> VecDeque<Bytes> {
    let mut out = Vec::new();
    // Writing a string to a vector cannot fail.
    let _ = messages::say(id, said, &mut out);
    VecDeque::from([out.into()])
}

/// A large payload stays a part of its own.
fn echo(id: &[u8], payload: Bytes) -> VecDeque<Bytes> {
    let mut front = Vec::with_capacity(256);
    messages::begin(id, &mut front);
    front.extend_from_slice(ECHO[0]);
    if payload.len() < LARGE {
        front.extend_from_slice(&payload);
        front.extend_from_slice(ECHO[1]);
        front.push(b'}');
        return VecDeque::from([front.into()]);
    }
    VecDeque::from([front.into(), payload, Bytes::from([ECHO[1], b"}"].concat())])
}

/// The body of an answer.
struct Answer {
    parts: VecDeque<Bytes>,
    wait: Wait,
    form: Form,
}

/// What comes before the parts.
enum Wait {
    No,
    Until(Pin<Box<Sleep>>),
    Forever,
}

impl Answer {
    fn json(parts: VecDeque<Bytes>) -> Answer {
        Answer { parts, wait: Wait::No, form: Form::Json }
    }

    fn stream(mut parts: VecDeque<Bytes>, wait: Wait) -> Answer {
        parts.push_front(Bytes::from_static(b"data: "));
        parts.push_back(Bytes::from_static(b"\n\n"));
        Answer { parts, wait, form: Form::Stream }
    }
}

impl Body for Answer {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut self.wait {
            Wait::No => {}
            Wait::Until(sleep) => ready!(sleep.as_mut().poll(cx)),
            Wait::Forever => return Poll::Pending,
        }
        self.wait = Wait::No;
        Poll::Ready(self.parts.pop_front().map(|part| Ok(Frame::data(part))))
    }

    fn is_end_stream(&self) -> bool {
        self.parts.is_empty()
    }

    /// Exact, and so a `Content-Length`, except on a stream: there real servers send chunks.
    fn size_hint(&self) -> SizeHint {
        match self.form {
            Form::Json => SizeHint::with_exact(self.parts.iter().map(|part| part.len() as u64).sum()),
            Form::Stream => SizeHint::default(),
        }
    }
}
