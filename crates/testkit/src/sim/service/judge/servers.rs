//! What reaches servers: whose words, how often, and what they are told to cancel.

use super::{Judge, Kind, Request, State, show};
use crate::sim::process::{member, nonce, tail};
use crate::sim::service::visit::owner_of;
use outlast_engine::event::Line;
use outlast_engine::id::{AttemptId, Run, ServerId};
use outlast_engine::method::Method;
use outlast_engine::wire::{Field, Message, Scanned, Shape};
use std::time::Duration;

/// By then every limit has passed that a server may be kept for.
const KEPT: Duration = Duration::from_secs(2 * 60 * 60);

impl Judge {
    /// A message leaves for a server.
    pub(in crate::sim::service) fn sent(
        &mut self,
        now: Duration,
        server: ServerId,
        run: Run,
        message: &Message,
    ) {
        self.check_owner(server, message);
        if message.shape == Shape::Request {
            self.blame.sent(now, server, run, message);
        }
        match message.shape {
            Shape::Request => self.request_sent(server, run, message),
            Shape::Notification if is_cancel(message) => {
                let number = message.raw(Field::ParamsRequestId).and_then(number).expect("an id of ours");
                assert!(self.used.contains(&number), "cancelled {number}, which was never sent");
                assert!(!self.handshakes.contains(&number), "initialize was cancelled");
                assert!(self.cancelled_attempts.insert(number), "cancelled {number} twice");
                self.blame.given_up(now, number);
                self.told.push((server, number, Some(member(&message.bytes, "reason"))));
            }
            Shape::Notification | Shape::Answer => {}
        }
    }

    /// The stream of an attempt is closed, which is how a modern request is cancelled.
    pub(in crate::sim::service) fn abandoned(&mut self, server: ServerId, attempt: AttemptId) {
        self.told.push((server, attempt.0, None));
    }

    /// Only one principal ever talks to a server, unless a person lets all share it.
    fn check_owner(&mut self, server: ServerId, message: &Message) {
        let nonce = nonce(&message.bytes);
        if nonce.is_empty() || self.shares_all() {
            return;
        }
        let owner = self.owners.entry(server).or_insert_with(|| owner_of(&nonce).to_owned());
        assert_eq!(owner, owner_of(&nonce), "two principals at {server:?}");
    }

    fn request_sent(&mut self, server: ServerId, run: Run, message: &Message) {
        let number = message.raw(Field::Id).and_then(number).expect("an id of ours");
        assert!(self.used.insert(number), "attempt {number} was used twice");
        if Method::of(message) == Method::Initialize {
            self.handshakes.insert(number);
        }
        let Some(index) = self.by_nonce.get(&nonce(&message.bytes)).copied() else { return };
        self.check_subscription(server, index);
        self.is_the_only_one(index);
        let shared = self.is_shared(index);
        let request = &mut self.requests[index];
        assert_eq!(tail(&message.bytes), tail(&request.asked), "{} has changed on its way", request.nonce);
        self.attempts.insert(number, (server, index));
        if told_again(request) {
            // Whether this is one more attempt or a word of our own, only the engine knows.
            request.sent = Some((server, run, number));
            return;
        }
        // A task outlives the session that made it.
        assert!(
            request.state != State::Cancelled || request.task || shared,
            "{} was cancelled, and sent",
            request.nonce
        );
        let committed = request.progressed && !request.repeatable;
        assert!(!committed, "{} was committed, and was sent again", request.nonce);
        request.sent = Some((server, run, number));
    }

    /// Of calls with one key only one is at a server.
    fn is_the_only_one(&self, index: usize) {
        let sent = &self.requests[index];
        let other = |other: &&Request| {
            let attempt = other.sent.map(|(_, _, attempt)| attempt);
            other.nonce != sent.nonce && self.blame.is_held(attempt)
        };
        let other = self.with_its_key(sent).find(other).map(|other| &other.nonce);
        assert_eq!(other, None, "{} was sent although one with its key is at a server", sent.nonce);
    }

    /// Whether a call goes on although its client does not want it: another with the same key may.
    fn is_shared(&self, index: usize) -> bool {
        let sent = &self.requests[index];
        // A modern client that hung up may ask again, and a task outlives its session.
        let may_ask =
            |other: &Request| other.task || self.readings[other.carrier.0 as usize].kind == Kind::Modern;
        let wants = |other: &Request| other.state == State::Open && other.nonce != sent.nonce;
        self.with_its_key(sent).any(|other| may_ask(other) || wants(other))
    }

    /// One of several sessions that are subscribed must not end it for the others.
    fn check_subscription(&mut self, server: ServerId, index: usize) {
        let request = &self.requests[index];
        let Some(session) = self.readings[request.carrier.0 as usize].session.clone() else { return };
        // Who has slept may wake at another server.
        let elsewhere = self.subscribed.iter_mut().filter(|((at, _), _)| *at != server);
        elsewhere.for_each(|(_, sessions)| _ = sessions.remove(&session));
        let at = (server, member(&request.asked, "uri"));
        match request.method {
            Method::ResourcesSubscribe if request.state == State::Open => {
                self.subscribed.entry(at).or_default().insert(session, index);
            }
            Method::ResourcesUnsubscribe => {
                let mut others = self.subscribed.remove(&at).unwrap_or_default();
                others.remove(&session);
                // Who unsubscribed while others wanted to hear of it was answered by outlast.
                others.retain(|name, since| !self.has_unsubscribed(name, &at.1, *since));
                // Who may be asleep has left its server.
                let idle = self.config.session_idle;
                let awake = |name: &str| {
                    let session = &self.sessions[name];
                    !session.ended && self.last_visit < session.used + idle
                };
                let other = others.keys().find(|name| awake(name));
                assert_eq!(other, None, "{session} has ended what another is subscribed to");
            }
            _ => {}
        }
    }

    /// Whether a session has asked to hear no more of something, after a request.
    fn has_unsubscribed(&self, session: &str, uri: &str, since: usize) -> bool {
        self.requests[since..].iter().any(|request| {
            request.method == Method::ResourcesUnsubscribe
                && self.readings[request.carrier.0 as usize].session.as_deref() == Some(session)
                && member(&request.asked, "uri") == uri
        })
    }

    /// A server is let go of: not long after its last use.
    pub(in crate::sim::service) fn let_go(&self, now: Duration) {
        let late = now.saturating_sub(self.last_visit);
        assert!(late < KEPT, "a server was kept for {late:?} although nobody used it");
    }

    /// A message has come to a server that looks at it.
    pub(in crate::sim::service) fn arrives(&mut self, message: &Message) {
        let index = self.by_nonce.get(&nonce(&message.bytes)).filter(|_| message.shape == Shape::Request);
        let Some(request) = index.map(|index| &mut self.requests[*index]) else { return };
        request.arrivals += 1;
        let again = request.arrivals > 1 && !request.method.shapes_the_connection();
        assert!(!again || request.safe, "{} may have acted, and arrived again", request.nonce);
    }

    /// A server says something; `counts` says whether the engine still listens to an attempt.
    pub(in crate::sim::service) fn server_says(
        &mut self,
        server: ServerId,
        line: &Line,
        counts: impl Fn(AttemptId) -> bool,
    ) {
        let Ok(Scanned::Message(message)) = line else { return };
        if message.text(Field::Method).as_deref() != Some("notifications/progress") {
            return;
        }
        let Some(attempt) = message.raw(Field::ParamsProgressToken).and_then(number) else { return };
        // What another server has is not its to speak of.
        if let Some((_, index)) = self.attempts.get(&attempt).filter(|(at, _)| *at == server) {
            self.requests[*index].progressed |= counts(AttemptId(attempt));
        }
    }

    /// A server is told to cancel only what has ended for its client. That a stream of a legacy client
    /// broke ends nothing.
    pub(super) fn check_cancel(&self, server: ServerId, attempt: u64, reason: Option<&str>) {
        let Some((at, index)) = self.attempts.get(&attempt) else { return };
        assert_eq!(*at, server, "attempt {attempt} is cancelled at another server");
        let request = &self.requests[*index];
        let read = !self.readings[request.carrier.0 as usize].over;
        let open = request.state == State::Open && request.sent.is_some_and(|(_, _, sent)| sent == attempt);
        let open = open && !told_again(request);
        // Where nobody reads, nobody sees that a limit has fired.
        assert!(
            !open || request.safe || !read,
            "{request:?} is open, and was cancelled: {reason:?}, {}",
            self.blame.tell(Some(attempt))
        );
        let hung_up = reason.is_some_and(|reason| reason.contains("hung up"));
        assert!(!hung_up || request.state != State::Open, "{} was cancelled: {reason:?}", request.nonce);
    }
}

/// What shapes a connection is told to every new run of its server, and asked again to compare.
fn told_again(request: &Request) -> bool {
    request.sent.is_some() && request.method.shapes_the_connection()
}

fn is_cancel(message: &Message) -> bool {
    message.text(Field::Method).as_deref() == Some("notifications/cancelled")
}

pub(super) fn number(raw: &[u8]) -> Option<u64> {
    show(raw).trim_matches('"').parse().ok()
}
