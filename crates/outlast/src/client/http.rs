//! Clients that come over HTTP: the server's half of Streamable HTTP, both eras, at `/mcp`.
//!
//! Only mechanics: who stands at the door, what their head says, their body as one message; then the
//! engine decides, and its response is written. What is refused here never becomes a message.

mod access;
pub mod addresses;
mod answer;
mod body;
mod connection;
pub mod flow;
mod head;
mod held;
mod intake;
mod metrics;
mod pages;
mod presence;
mod refusals;
mod slow;
pub mod token;
pub mod visitor;

use crate::clock;
use crate::dashboard::Dashboard;
use crate::dashboard::route::route;
use crate::dashboard::sight::{Everything, Reach};
use crate::driver::{Driver, Entry};
use crate::http1::head::Request;
use crate::http1::io::Io;
use crate::observe::access::{AccessEntry, AccessLog};
use crate::sys::local::LocalListener;
use access::Asked;
use addresses::Addresses;
pub use answer::Dates;
use answer::{Answer, Manner};
use body::Visit;
use bytes::Bytes;
use connection::{Came, Connection};
use held::Held;
use http::{Method, StatusCode, Uri};
use intake::Intake;
use outlast_engine::error::Kind;
use outlast_engine::http::Body;
use outlast_engine::report::Report;
use outlast_engine::{Event, wire};
use refusals::{Reason, Refusals};
use serde_json::json;
use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use token::Tokens;
use tokio::net::TcpListener;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use visitor::{Doorman, Refusal};

/// The longest pause in a body.
const BODY_PAUSE: Duration = Duration::from_secs(10);

/// The longest time for a body.
const BODY_TIME: Duration = Duration::from_secs(5 * 60);

/// The pause after a connection that could not be taken.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// A pause this long between connections that wait to be accepted, and there are no more of them.
const LAST_ACCEPT: Duration = Duration::from_millis(2);

/// How long the end waits for responses to be read.
const LAST_WRITES: Duration = Duration::from_secs(1);

/// Bytes of a server's name in an address. A longer one names nobody.
const NAME_BYTES: usize = 256;

const NO_ENDPOINT: &str = "outlast: the endpoint is /mcp, and /mcp/NAME for one of several servers; \
     the dashboard is /outlast/\n";

/// What connections come to.
#[derive(Debug)]
pub enum Listener {
    /// From this machine or others.
    Tcp(TcpListener),
    /// Of this user alone.
    Local(LocalListener),
}

impl Listener {
    /// The next connection, and where it comes from; an error if it is nobody's whom we serve.
    async fn accept(&mut self) -> io::Result<(Io, Option<IpAddr>)> {
        match self {
            Listener::Tcp(listener) => {
                let (stream, from) = listener.accept().await?;
                let _ = stream.set_nodelay(true);
                Ok((Io::Plain(stream), Some(from.ip())))
            }
            Listener::Local(listener) => Ok((Io::Local(listener.accept().await?), None)),
        }
    }
}

/// Where clients come in.
#[derive(Debug)]
pub struct Door {
    driver: Arc<Driver>,
    dashboard: Arc<Dashboard>,
    /// There is more than the dashboard.
    serves: bool,
    doorman: Doorman,
    bounds: Bounds,
    intake: Arc<Intake>,
    held: Arc<Held>,
    addresses: Arc<Addresses>,
    refusals: Refusals,
    dates: Dates,
    access: Option<AccessLog>,
}

/// What clients may take.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// `max-bytes`.
    pub bytes: usize,
    /// `max-connections`.
    pub connections: usize,
}

impl Door {
    /// The file says otherwise who may come in. Pages of the dashboard that were open for the others are closed.
    pub fn lets_in(&self, tokens: Tokens, reach: BTreeMap<Box<str>, Reach>, revoked: &[Option<Box<str>>]) {
        self.doorman.access.replace(tokens, reach);
        self.dashboard.close_of(revoked);
    }

    /// A door that is watched by this doorman.
    pub fn new(
        driver: Arc<Driver>,
        doorman: Doorman,
        bounds: Bounds,
        rules: addresses::Rules,
        everything: Everything,
        dates: Dates,
        access: Option<AccessLog>,
    ) -> Arc<Door> {
        Arc::new(Door {
            dashboard: Dashboard::new(driver.clone(), everything),
            serves: everything == Everything::Served,
            driver,
            doorman,
            bounds,
            intake: Arc::default(),
            held: Held::new(bounds.bytes),
            addresses: Addresses::new(rules),
            refusals: Refusals::default(),
            dates,
            access,
        })
    }

    /// Takes connections for as long as clients may come in; then those that are open may end for a moment.
    pub async fn listen(self: Arc<Door>, mut listener: Listener, mut entry: watch::Receiver<Entry>) {
        let places = Arc::new(Semaphore::new(self.bounds.connections));
        loop {
            let next = tokio::select! {
                next = next(&places, &mut listener) => next,
                _ = entry.changed() => break,
            };
            self.let_in(next, &entry);
        }
        // Whoever the system has let in already has been promised an answer.
        while let Ok(next) = tokio::time::timeout(LAST_ACCEPT, next(&places, &mut listener)).await {
            self.let_in(next, &entry);
        }
        drop(listener);
        self.dashboard.close();
        let all = u32::try_from(self.bounds.connections).unwrap_or(u32::MAX);
        let is_open = async || places.acquire_many(all).await.map(drop);
        if *entry.borrow_and_update() == Entry::Leaving {
            tokio::select! {
                _ = is_open() => self.driver.turn(|state| state.feed(Event::DoorEmpty)),
                _ = entry.changed() => {}
            }
            let _ = entry.wait_for(|entry| *entry == Entry::Closed).await;
        }
        let _ = tokio::time::timeout(LAST_WRITES, is_open()).await;
        self.tell_refusals();
        self.finish_access();
    }

    /// Serves a connection, if there is one and its address has not too many.
    fn let_in(
        self: &Arc<Door>,
        came: Option<(OwnedSemaphorePermit, (Io, Option<IpAddr>))>,
        entry: &watch::Receiver<Entry>,
    ) {
        let Some((place, (io, from))) = came else { return };
        let Ok(of_address) = from.map(|from| self.addresses.enter(from)).transpose() else {
            return self.turn_away(&io, from);
        };
        let (door, entry) = (self.clone(), entry.clone());
        tokio::spawn(async move {
            door.talk(Connection::new(io, door.held.clone()), from, entry).await;
            drop((place, of_address));
        });
    }

    /// One connection too many from one address. What does not fit into the socket is not said.
    fn turn_away(self: &Arc<Door>, io: &Io, from: Option<IpAddr>) {
        let why = format!(
            "outlast: more than {} connections from your address (max-connections-per-address)\n",
            self.addresses.most()
        );
        let text = format!(
            "HTTP/1.1 429 Too Many Requests\r\ncontent-type: text/plain; charset=utf-8\r\n\
             content-length: {}\r\nconnection: close\r\n\r\n{why}",
            why.len()
        );
        if let Io::Plain(stream) = io {
            let _ = stream.try_write(text.as_bytes());
        }
        if self.access.is_some() {
            let status = StatusCode::TOO_MANY_REQUESTS.as_u16();
            self.log_access(AccessEntry {
                address: from,
                status,
                bytes: text.len() as u64,
                ..AccessEntry::default()
            });
        }
        self.refuse(Reason::Address, from);
    }

    /// Counts somebody who was turned away; the log says so once in a while.
    fn refuse(self: &Arc<Door>, reason: Reason, from: Option<IpAddr>) {
        if !self.refusals.count(reason, from) {
            return;
        }
        self.tell_refusals();
        let door = Arc::downgrade(self);
        tokio::spawn(async move {
            loop {
                tokio::time::sleep_until(clock::in_future(refusals::EVERY).into()).await;
                if !door.upgrade().is_some_and(|door| door.tell_refusals()) {
                    return;
                }
            }
        });
    }

    /// Whether there was anything to tell.
    fn tell_refusals(&self) -> bool {
        let line = self.refusals.take();
        line.map(|line| self.driver.warn("turned-away", line)).is_some()
    }

    /// Answers one request after another.
    async fn talk(
        self: &Arc<Door>,
        mut connection: Connection,
        from: Option<IpAddr>,
        mut entry: watch::Receiver<Entry>,
    ) {
        loop {
            let (answer, manner, line) = match connection.request(&mut entry).await {
                Came::Nothing => return,
                Came::Late => return self.refuse(Reason::Silent, from),
                Came::Unreadable(status) => {
                    self.refuse(Reason::Unreadable, from);
                    (Answer::unreadable(status), Manner::LAST, self.begin_line(None, from))
                }
                Came::Request(request) => {
                    let line = self.begin_line(Some(&request), from);
                    let Some(answer) = self.answer(&request, &mut connection, from).await else {
                        return self.end_line_of_who_left(line, &mut connection);
                    };
                    // What is left of a body that we did not want would look like the next request.
                    let keeps = connection.body_at_hand().is_some() && *entry.borrow() == Entry::Open;
                    let manner = Manner::of(&request, &answer, keeps);
                    (answer, manner, line)
                }
            };
            let status = answer.status();
            let written = connection.respond(answer, &self.dates, manner).await;
            self.end_line(line, &mut connection, status);
            // How a connection ends tells nothing that its exchange has not been told.
            if written.is_err() {
                return;
            }
            if !manner.keeps {
                return connection.close().await;
            }
        }
    }

    /// The answer to a request; `None` if the client left before there was one.
    async fn answer(
        self: &Arc<Door>,
        request: &Request,
        connection: &mut Connection,
        from: Option<IpAddr>,
    ) -> Option<Answer> {
        let whole: Uri;
        let (named, path) = if request.target.starts_with('/') {
            (None, request.target.split('?').next().unwrap_or_default())
        } else {
            let Ok(uri) = request.target.parse() else {
                return Some(Answer::unreadable(StatusCode::BAD_REQUEST));
            };
            whole = uri;
            (whole.authority().map(http::uri::Authority::as_str), whole.path())
        };
        if let Err(refusal) = self.doorman.check_names(named, &request.fields) {
            return Some(self.refused(refusal, from));
        }
        match path {
            "/mcp" | "/mcp/" if self.serves => self.mcp(request, None, connection, from).await,
            "/healthz" => Some(Answer::text(StatusCode::OK, "ok\n")),
            "/readyz" => Some(self.readiness(request)),
            path => self.elsewhere(request, path, connection, from).await,
        }
    }

    /// Paths that are not asked for with every call.
    async fn elsewhere(
        self: &Arc<Door>,
        request: &Request,
        path: &str,
        connection: &mut Connection,
        from: Option<IpAddr>,
    ) -> Option<Answer> {
        if let Some(route) = route(&request.method, path) {
            // Boxed: few need it, and every request would carry the room for it as long as it lives.
            return Box::pin(self.page(request, route, connection, from)).await;
        }
        if path == "/metrics" {
            return Some(Box::pin(self.metrics(request, connection, from)).await);
        }
        match path.strip_prefix("/mcp/").map(|name| name.strip_suffix('/').unwrap_or(name)) {
            Some(name) if is_name(name) && self.serves => {
                self.mcp(request, Some(name), connection, from).await
            }
            _ => Some(Answer::text(StatusCode::NOT_FOUND, NO_ENDPOINT)),
        }
    }

    /// Whether we are ready, and to whom we let in how the servers are that they may use.
    fn readiness(&self, request: &Request) -> Answer {
        let ready = self.driver.is_ready();
        let mut said = json!({"ready": ready});
        if let Ok(principal) = self.doorman.principal(&request.fields) {
            let servers = self.driver.report_to(principal.as_deref());
            let named = |report: &Report| json!({"name": report.name, "state": report.condition.word()});
            said["servers"] = servers.iter().map(named).collect();
        }
        let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
        Answer::json(status, format!("{said}\n").into())
    }

    async fn mcp(
        self: &Arc<Door>,
        request: &Request,
        server: Option<&str>,
        connection: &mut Connection,
        from: Option<IpAddr>,
    ) -> Option<Answer> {
        let principal = match self.doorman.principal(&request.fields) {
            Ok(principal) => principal,
            Err(refusal) => return Some(self.refused(refusal, from)),
        };
        let changes = self.doorman.access.changes();
        connection.is_known();
        let mut head = Box::new(head::read(&request.fields, principal.clone()));
        head.server = server.map(Box::from);
        let mut visit = Visit::new(self.clone(), principal);
        match request.method {
            Method::POST => {
                if !head::is_json(&request.fields) {
                    let why = "Unsupported Media Type: Content-Type must be application/json";
                    return Some(Answer::json_rpc(StatusCode::UNSUPPORTED_MEDIA_TYPE, -32000, why));
                }
                let body = match self.read(connection, &mut visit).await {
                    Ok(body) => body,
                    Err(refusal) => return Some(*refusal),
                };
                // Its token may have been taken back while the body was on its way.
                if self.doorman.access.changes() != changes
                    && let Err(refusal) = self.doorman.principal(&request.fields)
                {
                    return Some(self.refused(refusal, from));
                }
                let line = wire::scan(wire::one_line(body));
                if self.access.is_some() {
                    connection.asks(Asked::of(&line));
                }
                self.open(visit, connection, |exchange| Event::Posted(exchange, head, line)).await
            }
            Method::GET => self.open(visit, connection, |exchange| Event::Got(exchange, head)).await,
            Method::DELETE => self.open(visit, connection, |exchange| Event::Deleted(exchange, head)).await,
            _ => {
                let why = "Method Not Allowed: POST, GET or DELETE";
                let answer = Answer::json_rpc(StatusCode::METHOD_NOT_ALLOWED, -32000, why);
                Some(answer.with("allow", "POST, GET, DELETE"))
            }
        }
    }

    /// Hands a request to the engine and waits for the response to begin; `None` if the client does not.
    async fn open(
        &self,
        mut visit: Visit,
        connection: &mut Connection,
        event: impl FnOnce(outlast_engine::id::ExchangeId) -> Event,
    ) -> Option<Answer> {
        let (exchange, flow) = self.driver.new_exchange();
        visit.begins(exchange);
        self.driver.turn(|state| state.feed(event(exchange)));
        let response = connection.unless_gone(|cx| flow.poll_response(cx)).await?;
        let status = StatusCode::from_u16(response.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        if !matches!(response.body, Body::Events) {
            visit.is_over();
        }
        let mut answer = match response.body {
            Body::Empty => Answer::new(status).to(visit),
            Body::Json(bytes) => Answer::json(status, bytes).to(visit),
            Body::Events => Answer::events(status, Box::new(body::Events::new(flow, visit))),
        };
        if status == StatusCode::METHOD_NOT_ALLOWED {
            answer = answer.with("allow", "POST");
        }
        if let Some(seconds) = response.retry_after {
            answer = answer.with("retry-after", &seconds.to_string());
        }
        if let Some(session) = response.session {
            answer = answer.with("mcp-session-id", &session);
        }
        Some(answer)
    }

    /// Reads a body, no longer than a message may be and no slower than a person would type it.
    async fn read(&self, connection: &mut Connection, visit: &mut Visit) -> Result<Bytes, Box<Answer>> {
        if connection.body().missing() > self.driver.max_message() as u64 {
            return Err(Box::new(self.too_large()));
        }
        if let Some(body) = connection.body_at_hand() {
            return match visit.hold(body.len()) {
                true => Ok(body),
                false => Err(Box::new(self.too_much(visit.principal()))),
            };
        }
        // Boxed: few need it, and every request would carry the room for it as long as it lives.
        let read = Box::pin(tokio::time::timeout(BODY_TIME, self.read_parts(connection, visit)));
        read.await.unwrap_or_else(|_| Err(Box::new(too_slow())))
    }

    async fn read_parts(&self, connection: &mut Connection, visit: &mut Visit) -> Result<Bytes, Box<Answer>> {
        let mut whole = Vec::new();
        loop {
            let read = tokio::time::timeout(BODY_PAUSE, connection.read(&self.intake, &mut whole));
            let read = read.await.map_err(|_| Box::new(too_slow()))?.map_err(|_| Box::new(broke_off()))?;
            if read == 0 {
                return Ok(self.intake.finish(whole));
            }
            if !visit.hold(read) {
                return Err(Box::new(self.too_much(visit.principal())));
            }
            if whole.len() > self.driver.max_message() {
                return Err(Box::new(self.too_large()));
            }
        }
    }

    fn too_large(&self) -> Answer {
        let limit = self.driver.max_message();
        let why =
            format!("the message is longer than max-message ({limit} bytes); raise it with --max-message");
        Answer::json_rpc(StatusCode::PAYLOAD_TOO_LARGE, Kind::MessageTooLarge.code(false), &why)
    }

    fn too_much(&self, principal: &Option<Box<str>>) -> Answer {
        let whose = principal.as_deref().unwrap_or("anonymous");
        let why = format!(
            "`{whose}` has more than {} bytes in requests that are not answered and responses that are not read (max-bytes); wait for some, or raise it with --max-bytes",
            self.bounds.bytes
        );
        Answer::json_rpc(StatusCode::TOO_MANY_REQUESTS, Kind::TooManyBytes.code(false), &why)
    }

    fn refused(self: &Arc<Door>, refusal: Refusal, from: Option<IpAddr>) -> Answer {
        match refusal {
            Refusal::Forbidden(why) => {
                self.refuse(Reason::Name, from);
                Answer::json_rpc(StatusCode::FORBIDDEN, -32000, &why)
            }
            Refusal::Unauthorized => {
                self.refuse(Reason::Token, from);
                let why =
                    "Unauthorized: send Authorization: Bearer TOKEN; `outlast token new NAME` makes one";
                let answer = Answer::json_rpc(StatusCode::UNAUTHORIZED, -32000, why);
                answer.with("www-authenticate", "Bearer")
            }
        }
    }
}

/// Whether a server may be called so.
fn is_name(name: &str) -> bool {
    !name.is_empty() && name.len() <= NAME_BYTES && !name.contains('/')
}

/// Waits for a place and then for who takes it; `None` if that failed.
async fn next(
    places: &Arc<Semaphore>,
    listener: &mut Listener,
) -> Option<(OwnedSemaphorePermit, (Io, Option<IpAddr>))> {
    let place = places.clone().acquire_owned().await.ok()?;
    match listener.accept().await {
        Ok(came) => Some((place, came)),
        Err(_) => {
            // A client that was gone before we came, or too many open files: then at once would be too soon.
            tokio::time::sleep_until(clock::in_future(ACCEPT_PAUSE).into()).await;
            None
        }
    }
}

fn too_slow() -> Answer {
    Answer::text(StatusCode::REQUEST_TIMEOUT, "outlast: the body came too slowly\n")
}

fn broke_off() -> Answer {
    Answer::text(StatusCode::BAD_REQUEST, "outlast: the body broke off\n")
}
