//! A server behind HTTP: it refuses, is busy, forgets its session, breaks its streams, or never answers.

use crate::sim::process::{answer, error, forgery, nonce, question, reports};
use crate::sim::rng::Rng;
use bytes::Bytes;
use outlast_engine::Event;
use outlast_engine::event::Exit;
use outlast_engine::http::{Post, StreamEnd, Trouble};
use outlast_engine::id::{AttemptId, Run, ServerId};
use outlast_engine::limits::{CURSOR, RETRY_MOST};
use outlast_engine::wire::{Field, Message, Outgoing, Oversized, Shape, scan};
use std::collections::BTreeMap;
use std::time::Duration;

/// The server misses headers.
const MISMATCH: &str = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32020,"message":"Header mismatch"}}"#;

/// What reaches us from a remote server.
#[derive(Debug)]
pub(in crate::sim) enum Happening {
    Connected,
    Says(AttemptId, String),
    /// Says on the stream of one attempt what belongs to another.
    Forges(AttemptId, String),
    Oversized(AttemptId),
    StreamEnded(AttemptId, StreamEnd),
    Standing(String),
    StandingEnded(StreamEnd),
    Trouble(Option<AttemptId>, Trouble),
    /// An answer that met no connection comes back.
    Undelivered(Outgoing, Box<str>),
    Closed,
}

impl Happening {
    fn attempt(&self) -> Option<AttemptId> {
        match self {
            Happening::Says(attempt, _)
            | Happening::Oversized(attempt)
            | Happening::StreamEnded(attempt, _) => Some(*attempt),
            Happening::Trouble(attempt, _) => *attempt,
            _ => None,
        }
    }

    /// What the edge makes of it.
    pub(in crate::sim) fn events(self, server: ServerId, run: Run) -> Vec<Event> {
        let line = |text: String| scan(Bytes::from(text));
        vec![match self {
            Happening::Connected => Event::Started(server, run),
            Happening::Says(attempt, text) | Happening::Forges(attempt, text) => {
                Event::FromStream(server, run, attempt, line(text))
            }
            Happening::Oversized(attempt) => {
                let id = Some(attempt.0.to_string().into());
                Event::ServerOversized(server, run, Oversized { id, answer: true })
            }
            Happening::StreamEnded(attempt, end) => Event::StreamEnded(server, run, attempt, end),
            Happening::Standing(text) => Event::FromServer(server, run, line(text)),
            Happening::StandingEnded(end) => Event::StandingEnded(server, run, end),
            Happening::Trouble(attempt, trouble) => Event::Trouble(server, run, attempt, trouble),
            Happening::Undelivered(answer, why) => Event::Undelivered(server, run, answer, why),
            Happening::Closed => {
                return vec![Event::OutputClosed(server, run), Event::Exited(server, run, Exit::Code(0))];
            }
        }]
    }
}

#[derive(Debug)]
pub(in crate::sim) struct Remote {
    asks: bool,
    crashes: bool,
    /// Its number, if it speaks of what it was not asked.
    forges: Option<u32>,
    run: Run,
    /// It cannot be reached before then.
    away_until: Duration,
    /// The session that we are in, and the only one that it remembers.
    session: Option<u64>,
    remembers: u64,
    /// It gives out sessions at all.
    has_sessions: bool,
    /// Attempts that are not answered, with what is still to come after a break.
    open: BTreeMap<AttemptId, Vec<String>>,
    closing: bool,
    over: bool,
    next_ask: u64,
    /// Its list of tools has no end.
    pages: bool,
    pub(in crate::sim) happenings: Vec<(Duration, Run, Happening)>,
}

impl Remote {
    pub(in crate::sim) fn new(rng: &mut Rng, asks: bool, crashes: bool, forges: Option<u32>) -> Remote {
        Remote {
            asks,
            crashes,
            forges,
            run: Run(0),
            away_until: Duration::ZERO,
            session: None,
            remembers: 1,
            has_sessions: rng.chance(80),
            open: BTreeMap::new(),
            closing: false,
            over: false,
            next_ask: 0,
            pages: rng.chance(5),
            happenings: Vec::new(),
        }
    }

    fn happens(&mut self, after: Duration, happening: Happening) {
        self.happenings.push((after, self.run, happening));
    }

    /// A new life: whatever was open is closed without a word.
    pub(in crate::sim) fn begins(&mut self, run: Run) {
        self.run = run;
        self.session = None;
        self.open.clear();
        (self.closing, self.over) = (false, false);
    }

    /// A connection is to be made, after one could not be.
    pub(in crate::sim) fn connects(&mut self, rng: &mut Rng, now: Duration) {
        let reached = now >= self.away_until;
        let refused = Trouble::Unreachable("refused".into());
        let outcome = if reached { Happening::Connected } else { Happening::Trouble(None, refused) };
        self.happens(rng.millis(1, 100), outcome);
    }

    /// Whether something that was on its way still arrives.
    pub(in crate::sim) fn delivers(&mut self, rng: &mut Rng, run: Run, happening: &Happening) -> bool {
        if run != self.run || self.over {
            return false;
        }
        if let Happening::Closed = happening {
            self.over = true;
            return true;
        }
        if let Happening::Forges(attempt, _) = happening {
            return self.open.contains_key(attempt);
        }
        let Some(attempt) = happening.attempt() else { return true };
        // What was abandoned may have been under way already.
        if !self.open.contains_key(&attempt) {
            return rng.chance(10);
        }
        let last = match happening {
            Happening::Says(_, text) => text.contains("\"result\"") || text.contains("\"error\""),
            Happening::StreamEnded(_, end) => !end.resumable,
            _ => true,
        };
        if last {
            self.abandon(attempt);
        }
        true
    }

    /// Nothing on the stream of an attempt matters any more.
    pub(in crate::sim) fn abandon(&mut self, attempt: AttemptId) {
        self.open.remove(&attempt);
        if self.closing && self.open.is_empty() {
            self.happens(Duration::from_millis(2), Happening::Closed);
        }
    }

    /// Once nothing is in flight, the session ends.
    pub(in crate::sim) fn close(&mut self) {
        self.closing = true;
        if self.open.is_empty() {
            self.happens(Duration::from_millis(5), Happening::Closed);
        }
    }

    pub(in crate::sim) fn kill(&mut self) {
        self.happens(Duration::from_millis(1), Happening::Closed);
    }

    /// Takes a message; whether it was looked at.
    pub(in crate::sim) fn post(
        &mut self,
        rng: &mut Rng,
        now: Duration,
        post: &Post,
        message: &Message,
    ) -> bool {
        if self.over {
            return false;
        }
        let soon = rng.millis(0, 150);
        if self.crashes && rng.chance(1) {
            self.away_until = now + rng.millis(0, 20_000);
        }
        if self.crashes && rng.chance(2) {
            self.remembers += 1;
        }
        if let Some(attempt) = post.attempt {
            self.open.insert(attempt, Vec::new());
        }
        if let Some(trouble) = self.refuses(rng, now, post, message) {
            let arrived = match &trouble {
                Trouble::Broken(_) | Trouble::Status { status: 503, .. } => true,
                // It was looked at, whatever it says about sessions.
                Trouble::Status { status: 400 | 404 | 409, body, .. } => !body.is_empty() && body != MISMATCH,
                _ => false,
            };
            self.happens(
                soon,
                match trouble {
                    Trouble::Unreachable(why) if post.comes_back => {
                        Happening::Undelivered(post.message.clone(), why)
                    }
                    trouble => Happening::Trouble(post.attempt, trouble),
                },
            );
            return arrived;
        }
        if post.begins_session {
            self.session = Some(self.remembers).filter(|_| self.has_sessions);
        }
        if let Some(attempt) = post.attempt.filter(|_| message.shape == Shape::Request) {
            self.request(rng, soon, attempt, message);
        }
        true
    }

    /// It does not know the session that we are in.
    fn is_stranger(&self) -> bool {
        self.session.is_some_and(|session| session != self.remembers)
    }

    fn refuses(&self, rng: &mut Rng, now: Duration, post: &Post, message: &Message) -> Option<Trouble> {
        let status = |status: u16, retry_after: Option<Duration>, body: &'static str| Trouble::Status {
            status,
            retry_after,
            had_session: self.session.is_some() && !post.begins_session,
            body: Bytes::from_static(body.as_bytes()),
        };
        if now < self.away_until {
            return Some(Trouble::Unreachable("refused".into()));
        }
        if self.is_stranger() && !post.begins_session {
            return Some(status(404, None, ""));
        }
        let retry_after = Some(rng.millis(0, 3_000)).filter(|_| rng.chance(50));
        let modern_call = message.has(Field::MetaProtocolVersion)
            && message.text(Field::Method).as_deref() == Some("tools/call");
        match rng.below(200) {
            0..4 => Some(Trouble::Unreachable("reset while connecting".into())),
            4..6 => Some(Trouble::Broken("reset".into())),
            6..9 => Some(status(429, retry_after, "slow down")),
            9..12 => Some(status(503, retry_after, "busy")),
            12 => Some(Trouble::NotMcp("text/html".into())),
            13..16 if modern_call => Some(status(400, None, MISMATCH)),
            16 => Some(status(400, None, "the argument `session` is malformed")),
            17 => Some(status(409, None, "another session has this file open")),
            18 => Some(status(503, retry_after, "too many sessions at the database")),
            19 => Some(self.answers_with_404(post, message)),
            _ => None,
        }
    }

    /// An answer that comes with the status of a lost session, and is none.
    fn answers_with_404(&self, post: &Post, message: &Message) -> Trouble {
        let id = message.raw(Field::Id).map(String::from_utf8_lossy).unwrap_or_default();
        let nonce = nonce(&message.bytes);
        let body = match id.is_empty() {
            true => String::new(),
            false => format!(
                r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32602,"message":"Unknown tool","data":{{"nonce":"{nonce}"}}}}}}"#
            ),
        };
        let had_session = self.session.is_some() && !post.begins_session && !id.is_empty();
        Trouble::Status { status: 404, retry_after: None, had_session, body: Bytes::from(body) }
    }

    fn request(&mut self, rng: &mut Rng, soon: Duration, attempt: AttemptId, message: &Message) {
        let text = |field| message.raw(field).map(|raw| String::from_utf8_lossy(raw).into_owned());
        let (id, nonce) = (text(Field::Id).unwrap_or_default(), nonce(&message.bytes));
        let answer = answer(message);
        if message.text(Field::Method).as_deref() == Some("initialize") {
            return self.stream(rng, soon, attempt, vec![answer]);
        }
        if message.text(Field::Method).as_deref() == Some("tools/list") && self.pages {
            let page = self.page(rng, &id, &nonce);
            return self.happens(rng.millis(0, 20), Happening::Says(attempt, page));
        }
        if let Some(server) = self.forges.filter(|_| rng.chance(20)) {
            for _ in 0..rng.below(4) + 1 {
                let other = (attempt.0 + rng.between(0, 8)).saturating_sub(4);
                let forged = forgery(server, other, rng.below(4));
                self.happens(rng.millis(0, 200), Happening::Forges(attempt, forged));
            }
        }
        let mut at = soon;
        let said = match rng.below(100) {
            0..8 => vec![],
            8..14 => {
                at = rng.millis(0, 8_000);
                vec![answer]
            }
            14..34 => match text(Field::MetaProgressToken) {
                Some(token) => [reports(rng, &token), vec![answer]].concat(),
                None => vec![answer],
            },
            34..40 if self.asks => {
                self.next_ask += 1;
                let (_, question) = question(rng, self.next_ask, &nonce);
                self.before(rng, soon, question, answer)
            }
            40..46 => {
                let log = format!(r#"{{"method":"notifications/message","params":{{"nonce":"{nonce}"}}}}"#);
                self.before(rng, soon, log, answer)
            }
            46..47 => return self.happens(soon, Happening::Oversized(attempt)),
            47..49 => vec![error(&id, &nonce)],
            _ => vec![answer],
        };
        self.stream(rng, at, attempt, said);
    }

    /// A page of a list that never ends.
    fn page(&mut self, rng: &mut Rng, id: &str, nonce: &str) -> String {
        self.next_ask += 1;
        let cursor = if rng.chance(4) { "c".repeat(CURSOR + 1) } else { format!("c{}", self.next_ask) };
        format!(r#"{{"id":{id},"result":{{"tools":[],"nonce":"{nonce}","nextCursor":"{cursor}"}}}}"#)
    }

    /// Something that is said before an answer: on the same stream, or on the standing one.
    fn before(&mut self, rng: &mut Rng, at: Duration, first: String, answer: String) -> Vec<String> {
        if rng.chance(75) {
            return vec![first, answer];
        }
        self.happens(at, Happening::Standing(first));
        vec![answer]
    }

    /// Says this on the stream of an attempt, which may break at any point.
    fn stream(&mut self, rng: &mut Rng, first: Duration, attempt: AttemptId, mut said: Vec<String>) {
        let breaks = rng.chance(if self.crashes { 15 } else { 5 });
        let kept = if breaks { rng.below(said.len() + 1) } else { said.len() };
        let rest = said.split_off(kept);
        let mut at = first;
        for message in said {
            self.happens(at, Happening::Says(attempt, message));
            at += rng.millis(0, 900);
        }
        if breaks && (!rest.is_empty() || kept == 0) {
            let wish = if rng.chance(3) { RETRY_MOST * 2 } else { rng.millis(0, 2_000) };
            let retry = Some(wish).filter(|_| rng.chance(50));
            let end = StreamEnd {
                resumable: rng.chance(70),
                retry,
                opened: true,
                status: None,
                why: "it ended".into(),
            };
            self.open.insert(attempt, rest);
            self.happens(at, Happening::StreamEnded(attempt, end));
        }
    }

    /// A broken stream is opened again.
    pub(in crate::sim) fn reconnect(&mut self, rng: &mut Rng, now: Duration, attempt: AttemptId) {
        let Some(rest) = self.open.get(&attempt).cloned() else { return };
        let soon = rng.millis(0, 100);
        let refused = match rng.below(10) {
            _ if now < self.away_until => Some(None),
            _ if self.is_stranger() => Some(Some(404)),
            0 => Some(Some(409)),
            1 => Some(Some(503)),
            2 => Some(None),
            3 if rng.chance(30) => Some(Some(405)),
            _ => None,
        };
        let Some(status) = refused else { return self.stream(rng, soon, attempt, rest) };
        let end =
            StreamEnd { resumable: true, retry: None, opened: false, status, why: "it was refused".into() };
        self.happens(soon, Happening::StreamEnded(attempt, end));
    }

    pub(in crate::sim) fn stand(&mut self, rng: &mut Rng, now: Duration) {
        let (after, status) = match rng.below(10) {
            _ if now < self.away_until => (1, None),
            0 => (10, Some(405)),
            1 => (10, Some(503)),
            2..5 => (20_000, None),
            _ => return,
        };
        let end = StreamEnd {
            resumable: false,
            retry: None,
            opened: status.is_none(),
            status,
            why: "it ended".into(),
        };
        self.happens(rng.millis(1, after), Happening::StandingEnded(end));
    }
}
