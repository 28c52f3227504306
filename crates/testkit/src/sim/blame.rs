//! Who is to blame when a call waits or fails: its server, or outlast.
//!
//! It sees only what the engine is told and what it does, so it serves every world. Three rules follow from the
//! promise of design §3:
//!
//! - an error of ours needs a fault on the way of that very call, of a kind that excuses it;
//! - a limit may fire only while the server has the call and is silent, or while the server is away;
//! - what a server has answered reaches the client within [`SLACK`].
//!
//! A call that no fault touched has no excuse, so it must succeed.

use bytes::Bytes;
use outlast_engine::event::Line;
use outlast_engine::http::{StreamEnd, Trouble};
use outlast_engine::id::{Run, ServerId};
use outlast_engine::limits::RETRY_MOST;
use outlast_engine::reached::Bound;
use outlast_engine::wire::{Field, Message, Oversized, Scanned, Shape, scan, scan_tolerant};
use outlast_engine::{Action, Config, Event};
use std::collections::BTreeMap;
use std::time::Duration;

/// How long outlast may take by itself: a commit of the store, a response that leaves in one piece.
pub(super) const SLACK: Duration = Duration::from_secs(1);

/// The longest rest before a server is tried again: the longest backoff, a look at a failed server, a start.
const REST: Duration = Duration::from_secs(40);

/// The longest wait between two attempts: the longest backoff, and what a server asks for.
const PAUSE: Duration = Duration::from_secs(14);

/// What became of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// The server has it and says nothing.
    Held,
    Answered,
    /// Its answer is too long.
    Oversized,
    /// It never arrived, or was not looked at.
    Unreached,
    /// Its server did not know our session, and did not look at it.
    Forgotten,
    /// A status that is about this request alone.
    Refused,
    NotMcp,
    /// Its stream broke, and may be opened again.
    Broken,
    /// Its server ended, or its connection broke.
    Lost,
}

/// One sending of a call.
#[derive(Debug)]
struct Attempt {
    server: ServerId,
    run: Run,
    handshake: bool,
    sent: Duration,
    fate: Fate,
    since: Duration,
    /// When the server was told that nobody waits for it.
    given_up: Option<Duration>,
    /// Its server has cancelled it, as it may do with a subscription.
    cancelled: bool,
    /// How long its stream may stay broken.
    patience: Duration,
    /// The result or the error, as its server wrote it.
    said: Option<Bytes>,
}

/// How a server is.
#[derive(Debug, Default)]
struct Health {
    /// Since when it is away.
    away: Option<Duration>,
    /// The last time that something was wrong with it, and when it was back.
    wrong: Option<Duration>,
    back: Option<Duration>,
    /// The run that is over.
    over: Option<Run>,
}

impl Health {
    fn goes_wrong(&mut self, now: Duration) {
        self.away = Some(now);
        self.wrong = Some(now);
    }

    fn comes_back(&mut self, now: Duration) {
        if self.away.take().is_some() {
            self.back = Some(now);
        }
    }

    /// It is away, and not for longer than it may rest; or it was a moment ago.
    fn is_away(&self, now: Duration) -> bool {
        self.away.is_some_and(|since| now <= since + REST) || self.back.is_some_and(|at| now <= at + SLACK)
    }

    fn was_wrong_since(&self, then: Duration) -> bool {
        self.away.is_some() || self.wrong.max(self.back).is_some_and(|at| at >= then)
    }
}

#[derive(Debug)]
pub(super) struct Blame {
    attempts: BTreeMap<u64, Attempt>,
    servers: BTreeMap<ServerId, Health>,
    /// Attempts that were answered since somebody looked.
    answered: Vec<u64>,
    few_calls: bool,
    few_sessions: bool,
    /// How often bounds had been reached, beyond which a call is refused, before the events that are judged.
    full: u64,
}

/// How often a bound was reached, beyond which a call is refused.
fn refusals() -> u64 {
    [Bound::CALLS, Bound::SUBSCRIPTIONS, Bound::WAITING_BYTES, Bound::JOINED].map(Bound::count).iter().sum()
}

impl Blame {
    pub(super) fn new(config: &Config) -> Blame {
        Blame {
            attempts: BTreeMap::new(),
            servers: BTreeMap::new(),
            answered: Vec::new(),
            few_calls: config.max_calls < 1_000,
            few_sessions: config.max_sessions < 1_000,
            full: refusals(),
        }
    }

    fn health(&mut self, server: ServerId) -> &mut Health {
        self.servers.entry(server).or_default()
    }

    /// Everything so far has been judged.
    pub(super) fn is_judged(&mut self) {
        self.full = refusals();
    }

    /// Attempts that were answered since the last time, and are not given up.
    pub(super) fn take_answered(&mut self) -> Vec<u64> {
        let wanted = |number: &u64| self.attempts[number].given_up.is_none();
        std::mem::take(&mut self.answered).into_iter().filter(wanted).collect()
    }

    /// The result or the error that the server of an attempt wrote.
    pub(super) fn said(&self, attempt: u64) -> Option<&Bytes> {
        self.attempts.get(&attempt)?.said.as_ref()
    }

    // What the engine is told.

    pub(super) fn told(&mut self, now: Duration, event: &Event) {
        match event {
            Event::FromServer(server, run, line) => {
                for message in messages(line) {
                    self.server_says(now, *server, *run, &message);
                }
            }
            Event::FromStream(server, run, stream, line) => {
                // An answer belongs on the stream of its request.
                let belongs = |message: &Message| {
                    let named = message.raw(Field::Id).and_then(number);
                    message.shape == Shape::Notification || named == Some(stream.on_wire())
                };
                for message in messages(line).into_iter().filter(belongs) {
                    self.server_says(now, *server, *run, &message);
                }
            }
            Event::ServerOversized(server, run, Oversized { id: Some(id), answer: true }) => {
                if let Some(number) = number(id) {
                    self.attempt_ends(now, *server, *run, number, Fate::Oversized);
                }
            }
            Event::Started(server, _) => self.health(*server).comes_back(now),
            Event::StartFailed(server, run, _)
            | Event::Exited(server, run, _)
            | Event::OutputClosed(server, run)
            | Event::InputBroken(server, run, _) => self.run_ends(now, *server, *run),
            Event::Trouble(server, run, attempt, trouble) => {
                self.trouble(now, *server, *run, attempt.map(|attempt| attempt.on_wire()), trouble);
            }
            Event::Undelivered(server, run, _, why) => {
                self.trouble(now, *server, *run, None, &Trouble::Unreachable(why.clone()));
            }
            Event::StreamEnded(server, run, attempt, end) => {
                self.stream_ended(now, *server, *run, attempt.on_wire(), end);
            }
            _ => {}
        }
    }

    fn server_says(&mut self, now: Duration, server: ServerId, run: Run, message: &Message) {
        if message.text(Field::Method).as_deref() == Some("notifications/cancelled") {
            // It ends a subscription.
            let ended = message.raw(Field::ParamsRequestId).and_then(number);
            let attempt = ended.and_then(|number| self.attempts.get_mut(&number));
            if let Some(attempt) = attempt.filter(|attempt| (attempt.server, attempt.run) == (server, run)) {
                attempt.cancelled = true;
            }
        }
        let answer = message.raw(Field::Id).filter(|_| message.shape == Shape::Answer).and_then(number);
        let Some(attempt) = answer else { return };
        let handshake = self.attempts.get(&attempt).is_some_and(|attempt| attempt.handshake);
        if let Some(known) = self.attempts.get_mut(&attempt)
            && (known.server, known.run) == (server, run)
            && known.said.is_none()
        {
            known.said = message.raw(Field::Result).or(message.raw(Field::Error)).map(Bytes::copy_from_slice);
        }
        if !self.attempt_ends(now, server, run, attempt, Fate::Answered) {
            return;
        }
        self.answered.push(attempt);
        let health = self.health(server);
        if health.over == Some(run) {
            return;
        }
        // What comes on a stream that was open before says nothing about new ones.
        match message.has(Field::Result) {
            _ if !handshake => {}
            true => health.comes_back(now),
            false => health.goes_wrong(now),
        }
    }

    /// Something became of an attempt; false if this server does not have it.
    fn attempt_ends(&mut self, now: Duration, server: ServerId, run: Run, number: u64, fate: Fate) -> bool {
        let Some(attempt) = self.attempts.get_mut(&number) else { return false };
        // What a server wrote last may arrive after its end.
        let lost = attempt.fate == Fate::Lost && fate != Fate::Answered;
        let open = (matches!(attempt.fate, Fate::Held | Fate::Broken) || lost) && attempt.given_up.is_none();
        if (attempt.server, attempt.run) != (server, run) || !open {
            return false;
        }
        (attempt.fate, attempt.since) = (fate, now);
        true
    }

    fn run_ends(&mut self, now: Duration, server: ServerId, run: Run) {
        let health = self.health(server);
        health.goes_wrong(now);
        health.over = Some(run);
        self.lose_all(now, server, run);
    }

    fn lose_all(&mut self, now: Duration, server: ServerId, run: Run) {
        let open = |attempt: &&mut Attempt| {
            (attempt.server, attempt.run) == (server, run)
                && matches!(attempt.fate, Fate::Held | Fate::Broken)
        };
        for attempt in self.attempts.values_mut().rev().take(2_000).filter(open) {
            (attempt.fate, attempt.since) = (Fate::Lost, now);
        }
    }

    fn trouble(
        &mut self,
        now: Duration,
        server: ServerId,
        run: Run,
        attempt: Option<u64>,
        trouble: &Trouble,
    ) {
        let fate = match trouble {
            Trouble::Unreachable(_) => {
                self.health(server).goes_wrong(now);
                Fate::Unreached
            }
            Trouble::Broken(_) => Fate::Lost,
            Trouble::NotMcp(_) => Fate::NotMcp,
            Trouble::Status { status, had_session, body, .. }
                if is_session_loss(*status, *had_session, body) =>
            {
                // What else is open has connections of its own.
                self.health(server).goes_wrong(now);
                Fate::Forgotten
            }
            Trouble::Status { body, .. } => {
                if let (Some(number), Ok(Scanned::Message(message))) = (attempt, scan(body.clone()))
                    && let Some(attempt) = self.attempts.get_mut(&number)
                {
                    attempt.said = message.raw(Field::Error).map(Bytes::copy_from_slice);
                }
                Fate::Refused
            }
        };
        let Some(number) = attempt else { return };
        if self.attempts.get(&number).is_some_and(|attempt| attempt.handshake) {
            self.health(server).goes_wrong(now);
        }
        self.attempt_ends(now, server, run, number, fate);
    }

    fn stream_ended(&mut self, now: Duration, server: ServerId, run: Run, attempt: u64, end: &StreamEnd) {
        let handshake = self.attempts.get(&attempt).is_some_and(|attempt| attempt.handshake);
        if handshake {
            self.health(server).goes_wrong(now);
        }
        if end.status == Some(404) {
            self.health(server).goes_wrong(now);
        }
        let fate = if end.resumable && end.status != Some(404) { Fate::Broken } else { Fate::Lost };
        if self.attempt_ends(now, server, run, attempt, fate)
            && let Some(attempt) = self.attempts.get_mut(&attempt)
        {
            // Each break doubles the wait, unless the server says how long it is.
            let wait = end.retry.map_or((attempt.patience * 2).min(REST), |retry| retry.min(RETRY_MOST));
            attempt.patience = wait + SLACK;
        }
    }

    // What the engine does.

    /// A request leaves for a server.
    pub(super) fn sent(&mut self, now: Duration, server: ServerId, run: Run, message: &Message) {
        let Some(number) = message.raw(Field::Id).and_then(number) else { return };
        let handshake = message.text(Field::Method).as_deref() == Some("initialize");
        if handshake {
            let health = self.health(server);
            health.away = Some(now);
        }
        let fate = if self.servers.get(&server).is_some_and(|health| health.over == Some(run)) {
            Fate::Lost
        } else {
            Fate::Held
        };
        let attempt = Attempt {
            server,
            run,
            handshake,
            sent: now,
            fate,
            since: now,
            given_up: None,
            cancelled: false,
            patience: SLACK / 2,
            said: None,
        };
        self.attempts.insert(number, attempt);
    }

    /// The server is told that nobody waits for an attempt.
    pub(super) fn given_up(&mut self, now: Duration, number: u64) {
        if let Some(attempt) = self.attempts.get_mut(&number) {
            attempt.given_up.get_or_insert(now);
        }
    }

    pub(super) fn done(&mut self, now: Duration, action: &Action) {
        match action {
            Action::Start(server, _) => self.health(*server).away = Some(now),
            Action::Reconnect(_, attempt) => {
                let broken = self.attempts.get_mut(&attempt.on_wire());
                if let Some(attempt) = broken.filter(|attempt| attempt.fate == Fate::Broken) {
                    (attempt.fate, attempt.since) = (Fate::Held, now);
                }
            }
            Action::Abandon(_, attempt) => self.given_up(now, attempt.on_wire()),
            // It is stopped by us; whoever had a call there has lost it.
            Action::Terminate(server) | Action::Kill(server) => {
                let runs: Vec<Run> = self
                    .attempts
                    .values()
                    .rev()
                    .take(500)
                    .filter(|a| a.server == *server)
                    .map(|a| a.run)
                    .collect();
                self.health(*server).goes_wrong(now);
                if let Some(run) = runs.into_iter().max() {
                    self.lose_all(now, *server, run);
                }
            }
            _ => {}
        }
    }

    // Judgement.

    /// Whether what happened to an attempt, or to the servers that it may have waited for, excuses an error of
    /// ours of this kind.
    pub(super) fn excuses(
        &self,
        now: Duration,
        began: Duration,
        kind: &str,
        attempt: Option<u64>,
        mut may_wait_for: impl FnMut(ServerId) -> bool,
    ) -> bool {
        let attempt = attempt.and_then(|number| self.attempts.get(&number));
        let mut servers = self.servers.iter().filter(|(id, _)| match attempt {
            Some(attempt) => attempt.server == **id,
            None => may_wait_for(**id),
        });
        match kind {
            "timeout" | "max" => {
                let silent = attempt.is_some_and(|attempt| attempt.excuses_limit(now, kind));
                silent || servers.any(|(_, health)| health.is_away(now))
            }
            "server-gone" => {
                let lost = |attempt: &Attempt| {
                    matches!(attempt.fate, Fate::Lost | Fate::Broken | Fate::Unreached | Fate::Forgotten)
                };
                let then = attempt.map_or(began, |attempt| attempt.sent);
                attempt.is_some_and(lost) || servers.any(|(_, health)| health.was_wrong_since(then))
            }
            "server-failed" => {
                let never = attempt.is_some_and(|attempt| attempt.fate == Fate::Unreached);
                never || servers.any(|(_, health)| health.was_wrong_since(began.saturating_sub(SLACK)))
            }
            "overloaded" => self.few_calls || refusals() > self.full,
            "too-many-sessions" => self.few_sessions,
            // A second session that is forgotten is no reason to begin a third.
            "http-status" => {
                attempt.is_some_and(|attempt| matches!(attempt.fate, Fate::Refused | Fate::Forgotten))
            }
            "not-mcp" => attempt.is_some_and(|attempt| attempt.fate == Fate::NotMcp),
            "message-too-large" => attempt.is_some_and(|attempt| attempt.fate == Fate::Oversized),
            _ => false,
        }
    }

    /// Whether a server has an attempt, and is waited for.
    pub(super) fn is_held(&self, attempt: Option<u64>) -> bool {
        let attempt = attempt.and_then(|number| self.attempts.get(&number));
        attempt.is_some_and(|attempt| attempt.fate == Fate::Held && attempt.given_up.is_none())
    }

    /// Whether the server of an attempt has cancelled it.
    pub(super) fn is_cancelled(&self, attempt: u64) -> bool {
        self.attempts.get(&attempt).is_some_and(|attempt| attempt.cancelled)
    }

    /// When the server was told that nobody waits for an attempt.
    pub(super) fn when_given_up(&self, attempt: Option<u64>) -> Option<Duration> {
        self.attempts.get(&attempt?)?.given_up
    }

    /// What is known of an attempt, for whoever reads why a world broke.
    pub(super) fn tell(&self, attempt: Option<u64>) -> String {
        let attempt = attempt.and_then(|number| self.attempts.get(&number));
        let health = attempt.and_then(|attempt| self.servers.get(&attempt.server));
        format!("{attempt:?}, its server: {health:?}")
    }
}

impl Attempt {
    /// A limit may fire: the server is silent, or the call is between two attempts.
    fn excuses_limit(&self, now: Duration, kind: &str) -> bool {
        let pauses = kind == "timeout" && now <= self.given_up.unwrap_or(self.since) + PAUSE;
        match self.fate {
            Fate::Held => self.given_up.is_none_or(|at| at == now) || pauses,
            Fate::Broken => now <= self.since + self.patience,
            Fate::Answered => self.given_up.is_some_and(|at| at < now) && pauses,
            Fate::Lost | Fate::Refused | Fate::Unreached | Fate::Forgotten => pauses,
            Fate::Oversized | Fate::NotMcp => false,
        }
    }
}

/// Only what the protocol calls a lost session is one: 404 to a request that named it, and no answer to that
/// request.
pub(super) fn is_session_loss(status: u16, had_session: bool, body: &Bytes) -> bool {
    let named = |message: &Message| message.raw(Field::Id).is_some_and(|id| id != b"null");
    let answers = matches!(scan(body.clone()), Ok(Scanned::Message(message)) if named(&message));
    status == 404 && had_session && !answers
}

/// The kind of an error of ours; `None` if it is not ours.
pub(super) fn own_kind(message: &Message) -> Option<String> {
    let ours = message.has(Field::Error) && memchr::memmem::find(&message.bytes, b"\"outlast\":{").is_some();
    ours.then(|| super::process::member(&message.bytes, "kind"))
}

/// The messages of a line, as far as the engine listens to them.
fn messages(line: &Line) -> Vec<Message> {
    match line {
        Ok(Scanned::Message(message)) => vec![message.clone()],
        Ok(Scanned::Batch(members)) => members.iter().flatten().cloned().collect(),
        Err(refused) => scan_tolerant(&refused.bytes).into_iter().collect(),
    }
}

/// An id of ours, whatever JSON type it came back in.
fn number(raw: impl AsRef<[u8]>) -> Option<u64> {
    std::str::from_utf8(raw.as_ref()).ok()?.trim_matches('"').parse().ok()
}
