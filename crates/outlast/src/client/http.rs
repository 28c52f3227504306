//! Clients that come over HTTP: the server's half of Streamable HTTP, both eras, at `/mcp`.
//!
//! Only mechanics: who stands at the door, what their head says, their body as one message; then the
//! engine decides, and its response is written. What is refused here never becomes a message.

mod body;
pub mod flow;
mod head;
mod intake;
pub mod token;
pub mod visitor;

use crate::driver::Driver;
use body::{Out, Visit};
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue, WWW_AUTHENTICATE};
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use intake::Intake;
use outlast_engine::error::{Kind, edge_error};
use outlast_engine::http::Body;
use outlast_engine::{Event, wire};
use std::collections::HashMap;
use std::convert::Infallible;
use std::future::poll_fn;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::{Semaphore, watch};
use visitor::{Doorman, Refusal};

/// A connection that has sent no whole head for this long is closed.
const HEAD_TIME: Duration = Duration::from_secs(60);

/// The longest pause in a body.
const BODY_PAUSE: Duration = Duration::from_secs(10);

/// The longest time for a body.
const BODY_TIME: Duration = Duration::from_secs(5 * 60);

/// Bytes of a head that are taken for certain; from twice as many on: 431.
const HEAD_BYTES: usize = 32 << 10;

/// Headers of a request. More: 431.
const HEADERS: usize = 100;

/// How long the end waits for responses to be read.
const LAST_WRITES: Duration = Duration::from_secs(1);

/// What connections come to.
#[derive(Debug)]
pub enum Listener {
    /// From this machine or others.
    Tcp(TcpListener),
    /// Of this user alone.
    Unix(UnixListener),
}

/// A connection that has come.
enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Listener {
    /// The next connection; an error if it is nobody's whom we serve.
    async fn accept(&self) -> io::Result<Stream> {
        match self {
            Listener::Tcp(listener) => listener.accept().await.map(|(stream, _)| Stream::Tcp(stream)),
            Listener::Unix(listener) => {
                let (stream, _) = listener.accept().await?;
                // The folder keeps others out; this keeps out whom somebody let into the folder.
                match stream.peer_cred()?.uid() == nix::unistd::geteuid().as_raw() {
                    true => Ok(Stream::Unix(stream)),
                    false => Err(io::ErrorKind::PermissionDenied.into()),
                }
            }
        }
    }
}

/// Where clients come in.
#[derive(Debug)]
pub struct Door {
    driver: Arc<Driver>,
    doorman: Doorman,
    max_bytes: usize,
    max_connections: usize,
    intake: Arc<Intake>,
    /// Bytes of requests that are not answered, by principal.
    held: Mutex<HashMap<Option<Box<str>>, usize>>,
}

impl Door {
    /// A door that is watched by this doorman.
    pub fn new(driver: Arc<Driver>, doorman: Doorman, max_bytes: usize, max_connections: usize) -> Arc<Door> {
        let intake = Arc::default();
        Arc::new(Door { driver, doorman, max_bytes, max_connections, intake, held: Mutex::default() })
    }

    /// Takes connections until `stop` says so; then those that are open may end for a moment.
    pub async fn listen(self: Arc<Door>, listener: Listener, mut stop: watch::Receiver<bool>) {
        let places = Arc::new(Semaphore::new(self.max_connections));
        loop {
            let Ok(place) = places.clone().acquire_owned().await else { return };
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                _ = stop.changed() => break,
            };
            // Too many open files, or a client that was gone before we came: the next one may be luckier.
            let Ok(stream) = accepted else {
                tokio::task::yield_now().await;
                continue;
            };
            let (door, stop) = (self.clone(), stop.clone());
            tokio::spawn(async move {
                match stream {
                    Stream::Tcp(stream) => {
                        let _ = stream.set_nodelay(true);
                        door.talk(stream, stop).await;
                    }
                    Stream::Unix(stream) => door.talk(stream, stop).await,
                }
                drop(place);
            });
        }
        let all = u32::try_from(self.max_connections).unwrap_or(u32::MAX);
        let _ = tokio::time::timeout(LAST_WRITES, places.acquire_many(all)).await;
    }

    async fn talk(
        self: Arc<Door>,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        mut stop: watch::Receiver<bool>,
    ) {
        let service = hyper::service::service_fn(move |request| {
            let door = self.clone();
            async move { Ok::<_, Infallible>(door.answer(request).await) }
        });
        let connection = hyper::server::conn::http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_TIME)
            .max_buf_size(HEAD_BYTES)
            .max_headers(HEADERS)
            .serve_connection(TokioIo::new(stream), service);
        let mut connection = std::pin::pin!(connection);
        tokio::select! {
            _ = connection.as_mut() => return,
            _ = stop.changed() => connection.as_mut().graceful_shutdown(),
        }
        // How a connection ends tells nothing that its exchange has not been told.
        let _ = connection.await;
    }

    async fn answer(self: Arc<Door>, request: Request<Incoming>) -> Response<Out> {
        let named = request.uri().authority().map(hyper::http::uri::Authority::as_str);
        if let Err(refusal) = self.doorman.check_names(named, request.headers()) {
            return refused(refusal);
        }
        match request.uri().path() {
            "/mcp" | "/mcp/" => self.mcp(request).await,
            "/healthz" => text(StatusCode::OK, "ok\n"),
            "/readyz" if self.driver.is_ready() => text(StatusCode::OK, "ready\n"),
            "/readyz" => text(StatusCode::SERVICE_UNAVAILABLE, "not ready\n"),
            _ => text(StatusCode::NOT_FOUND, "outlast: the endpoint is /mcp\n"),
        }
    }

    async fn mcp(self: Arc<Door>, request: Request<Incoming>) -> Response<Out> {
        let principal = match self.doorman.principal(request.headers()) {
            Ok(principal) => principal,
            Err(refusal) => return refused(refusal),
        };
        let head = Box::new(head::read(request.headers(), principal.clone()));
        let mut visit = Visit::new(self.clone(), principal);
        let event = match *request.method() {
            Method::POST => {
                if !head::is_json(request.headers()) {
                    let why = "Unsupported Media Type: Content-Type must be application/json";
                    return json_rpc(StatusCode::UNSUPPORTED_MEDIA_TYPE, -32000, why);
                }
                let body = match self.read(request, &mut visit).await {
                    Ok(body) => body,
                    Err(refusal) => return *refusal,
                };
                let line = wire::scan(one_line(body));
                move |exchange| Event::Posted(exchange, head, line)
            }
            Method::GET => return self.open(visit, move |exchange| Event::Got(exchange, head)).await,
            Method::DELETE => return self.open(visit, move |exchange| Event::Deleted(exchange, head)).await,
            _ => {
                let why = "Method Not Allowed: POST, GET or DELETE";
                let mut response = json_rpc(StatusCode::METHOD_NOT_ALLOWED, -32000, why);
                response.headers_mut().insert(ALLOW, HeaderValue::from_static("POST, GET, DELETE"));
                return response;
            }
        };
        self.open(visit, event).await
    }

    /// Hands a request to the engine and waits for the response to begin.
    async fn open(
        &self,
        mut visit: Visit,
        event: impl FnOnce(outlast_engine::id::ExchangeId) -> Event,
    ) -> Response<Out> {
        let (exchange, flow) = self.driver.new_exchange();
        visit.begins(exchange);
        self.driver.turn(|state| state.feed(event(exchange)));
        let response = poll_fn(|context| flow.poll_response(context)).await;
        let status = StatusCode::from_u16(response.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let streams = matches!(response.body, Body::Events);
        if !streams {
            visit.is_over();
        }
        let (out, kind) = match response.body {
            Body::Empty => (Out::Empty, None),
            Body::Json(bytes) => (Out::Whole(Some(bytes)), Some("application/json")),
            Body::Events => {
                (Out::Events(Box::new(body::Events::new(flow, visit))), Some("text/event-stream"))
            }
        };
        let mut answer = Response::new(out);
        *answer.status_mut() = status;
        let headers = answer.headers_mut();
        if let Some(kind) = kind {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
        }
        if streams {
            headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform"));
            headers.insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
        }
        if status == StatusCode::METHOD_NOT_ALLOWED {
            headers.insert(ALLOW, HeaderValue::from_static("POST"));
        }
        if let Some(session) = response.session.and_then(|name| HeaderValue::from_str(&name).ok()) {
            headers.insert(HeaderName::from_static("mcp-session-id"), session);
        }
        answer
    }

    /// Reads a body, no longer than a message may be and no slower than a person would type it.
    async fn read(&self, request: Request<Incoming>, visit: &mut Visit) -> Result<Bytes, Box<Response<Out>>> {
        let announced = hyper::body::Body::size_hint(request.body()).lower();
        if announced > self.driver.max_message() as u64 {
            return Err(Box::new(self.too_large()));
        }
        let body = request.into_body();
        let read = tokio::time::timeout(BODY_TIME, self.read_parts(body, visit)).await;
        read.unwrap_or_else(|_| Err(Box::new(too_slow())))
    }

    async fn read_parts(&self, mut body: Incoming, visit: &mut Visit) -> Result<Bytes, Box<Response<Out>>> {
        let announced = hyper::body::Body::size_hint(&body).lower() as usize;
        let mut whole = intake::Body::default();
        loop {
            let frame =
                tokio::time::timeout(BODY_PAUSE, body.frame()).await.map_err(|_| Box::new(too_slow()))?;
            let data = match frame {
                None => break,
                Some(Ok(frame)) => frame.into_data().unwrap_or_default(),
                Some(Err(_)) => {
                    let why = "outlast: the body broke off\n";
                    return Err(Box::new(text(StatusCode::BAD_REQUEST, why)));
                }
            };
            if !visit.hold(data.len()) {
                return Err(Box::new(self.too_much(visit.principal())));
            }
            if whole.len() + data.len() > self.driver.max_message() {
                return Err(Box::new(self.too_large()));
            }
            self.intake.add(&mut whole, data, announced);
        }
        Ok(self.intake.finish(whole))
    }

    fn too_large(&self) -> Response<Out> {
        let limit = self.driver.max_message();
        let why =
            format!("the message is longer than max-message ({limit} bytes); raise it with --max-message");
        json_rpc(StatusCode::PAYLOAD_TOO_LARGE, Kind::MessageTooLarge.code(false), &why)
    }

    fn too_much(&self, principal: Option<&str>) -> Response<Out> {
        let whose = principal.unwrap_or("anonymous");
        let why = format!(
            "`{whose}` has more than {} bytes in requests that are not answered (max-bytes); wait for some, or raise it with --max-bytes",
            self.max_bytes
        );
        json_rpc(StatusCode::TOO_MANY_REQUESTS, Kind::TooManyBytes.code(false), &why)
    }

    /// Counts bytes for a principal. False if that is too much.
    fn hold(&self, principal: &Option<Box<str>>, bytes: usize) -> bool {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let sum = held.get(principal).copied().unwrap_or_default() + bytes;
        if sum > self.max_bytes {
            return false;
        }
        held.insert(principal.clone(), sum);
        true
    }

    fn release(&self, principal: &Option<Box<str>>, bytes: usize) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        match held.get_mut(principal) {
            Some(sum) if *sum > bytes => *sum -= bytes,
            _ => drop(held.remove(principal)),
        }
    }
}

/// JSON has line breaks only between its parts, where a blank is as good.
pub fn one_line(body: Bytes) -> Bytes {
    let body = match body.iter().rposition(|byte| !byte.is_ascii_whitespace()) {
        Some(last) => body.slice(..=last),
        None => body,
    };
    if memchr::memchr2(b'\n', b'\r', &body).is_none() {
        return body;
    }
    body.iter()
        .map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { *byte })
        .collect::<Vec<u8>>()
        .into()
}

fn refused(refusal: Refusal) -> Response<Out> {
    match refusal {
        Refusal::Forbidden(why) => json_rpc(StatusCode::FORBIDDEN, -32000, &why),
        Refusal::Unauthorized => {
            let why = "Unauthorized: send Authorization: Bearer TOKEN; `outlast token new NAME` makes one";
            let mut response = json_rpc(StatusCode::UNAUTHORIZED, -32000, why);
            response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            response
        }
    }
}

fn too_slow() -> Response<Out> {
    text(StatusCode::REQUEST_TIMEOUT, "outlast: the body came too slowly\n")
}

fn json_rpc(status: StatusCode, code: i32, why: &str) -> Response<Out> {
    let mut response = Response::new(Out::Whole(Some(edge_error(code, why).into())));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

fn text(status: StatusCode, text: &'static str) -> Response<Out> {
    let mut response = Response::new(Out::Whole(Some(Bytes::from_static(text.as_bytes()))));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}
