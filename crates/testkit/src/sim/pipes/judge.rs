//! Watches both ends and knows what the engine may never do.

use super::persons::WorkTime;
use super::{Character, SERVER};
use crate::sim::blame::{Blame, SLACK, own_kind};
use crate::sim::process::{member, nonce, tail};
use bytes::Bytes;
use outlast_engine::calls::retry::is_safe_by_nature;
use outlast_engine::event::Line;
use outlast_engine::id::{AttemptId, Run};
use outlast_engine::method::Method;
use outlast_engine::policy::{CallFacts, Declared, Layer};
use outlast_engine::settings::Signs;
use outlast_engine::wire::{Field, Message, Scanned, Shape, scan};
use outlast_engine::{Config, Event};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

/// How far back the calls lie that one can share its fate with.
const NEAR: usize = 3_000;

/// The time in which restarts are counted.
const MINUTE: Duration = Duration::from_secs(60);

/// What our errors are about that a client gets even after it closed its end.
const LIMITS: [&[u8]; 4] =
    [br#""kind":"timeout""#, br#""kind":"max""#, br#""kind":"queue-wait""#, br#""kind":"message-too-large""#];

/// One request of the client, as the client sees it.
#[derive(Debug)]
struct Request {
    nonce: String,
    /// As the client wrote it.
    asked: Bytes,
    /// Under which calls of the same tool are one.
    key: Option<(String, String)>,
    began: Duration,
    /// In working time.
    began_working: Duration,
    /// The last moment at which it gave a sign of life that moves its limit.
    sign: Duration,
    method: Method,
    settled: bool,
    settled_at: Option<Duration>,
    cancelled: bool,
    /// It is answered with the handle of a task.
    task: bool,
    /// Its answer leaves with those of its array.
    in_array: bool,
    last_progress: f64,
    /// Running it twice does no harm, so it may be sent more than once.
    safe: bool,
    /// A person says so, so not even progress commits it.
    repeatable: bool,
    progressed: bool,
    attempts: u32,
    /// Its latest attempt.
    sent: Option<u64>,
    /// The limit that must fire exactly, where nothing but progress moves it.
    exact: Option<(Duration, bool)>,
    /// The limit that fires at the latest so long after a word of the server, however long persons are asked.
    bounded: Option<Duration>,
    max: Duration,
}

#[derive(Debug)]
pub(super) struct Judge {
    config: Config,
    asks: bool,
    requests: Vec<Request>,
    by_id: BTreeMap<String, usize>,
    by_token: BTreeMap<String, usize>,
    /// Attempts by the id that the server saw.
    attempts: BTreeMap<String, usize>,
    used: BTreeSet<String>,
    /// Requests by the tasks that they became.
    tasks: BTreeMap<String, usize>,
    cancelled_attempts: BTreeSet<String>,
    open_asks: BTreeSet<String>,
    work: WorkTime,
    /// When the server last said anything, in working time.
    heard: Duration,
    /// Starts within the last minute.
    starts: VecDeque<Duration>,
    pub(super) blame: Blame,
    /// Errors of ours that this event brought, with their kinds.
    errors: Vec<(usize, String)>,
    /// The client has closed its end: what is open is ended in haste.
    pub(super) ending: bool,
    pub(super) congested: bool,
    /// When the client closed its end.
    pub(super) finished: Option<Duration>,
    pub(super) failed: u64,
    pub(super) cancelled: u64,
    pub(super) progress: u64,
}

impl Judge {
    pub(super) fn new(config: &Config, character: &Character) -> Judge {
        Judge {
            config: config.clone(),
            asks: character.asks,
            requests: Vec::new(),
            by_id: BTreeMap::new(),
            by_token: BTreeMap::new(),
            attempts: BTreeMap::new(),
            used: BTreeSet::new(),
            tasks: BTreeMap::new(),
            cancelled_attempts: BTreeSet::new(),
            open_asks: BTreeSet::new(),
            work: WorkTime::default(),
            heard: Duration::ZERO,
            starts: VecDeque::new(),
            blame: Blame::new(config),
            errors: Vec::new(),
            ending: false,
            congested: false,
            finished: None,
            failed: 0,
            cancelled: 0,
            progress: 0,
        }
    }

    pub(super) fn requests(&self) -> usize {
        self.requests.len()
    }

    // What the engine is told.

    pub(super) fn client_line(&mut self, now: Duration, line: &Line) {
        match line {
            Ok(Scanned::Message(message)) => self.client_message(now, message, false),
            Ok(Scanned::Batch(members)) => {
                members.iter().flatten().for_each(|m| self.client_message(now, m, true))
            }
            Err(_) => {}
        }
    }

    fn client_message(&mut self, now: Duration, message: &Message, in_array: bool) {
        if message.shape == Shape::Answer {
            self.work.answers(now, &message.raw(Field::Id).map(show).unwrap_or_default());
        }
        let method = message.text(Field::Method).unwrap_or_default();
        if method == "notifications/cancelled" {
            let id = message.raw(Field::ParamsRequestId).map(show).unwrap_or_default();
            if let Some(request) = self.by_id.get(&id).map(|index| &mut self.requests[*index])
                && !request.settled
                && request.method != Method::Initialize
            {
                request.settled = true;
                request.settled_at = Some(now);
                request.cancelled = true;
                self.cancelled += 1;
            }
            return;
        }
        let (Shape::Request, nonce) = (message.shape, nonce(&message.bytes)) else { return };
        if nonce.is_empty() {
            return;
        }
        let method = Method::new(&method);
        let token = message.raw(Field::MetaProgressToken).map(show);
        let policy = self.config.server.rules.for_call(CallFacts {
            method: &method,
            tool: message.text(Field::ParamsName).as_deref(),
            has_token: token.is_some(),
            cap: None,
            silence: None,
            wish: None,
            declared: &Declared::default(),
        });
        let key = message.raw(Field::ParamsIdempotencyKey).filter(|_| method == Method::ToolsCall).map(show);
        let key = key.map(|key| (key, message.raw(Field::ParamsName).map(show).unwrap_or_default()));
        let written = policy.timeout.filter(|limit| matches!(limit.layer, Layer::Rule(_)));
        // An answer that is collected leaves with the last of its array.
        let endless = in_array || matches!(method, Method::Listen | Method::TasksResult);
        let task = message.has(Field::ParamsTask) && self.config.tasks;
        let repeatable = policy.repeatable == Some(true);
        // A subscription is opened again with every process.
        let safe = repeatable || is_safe_by_nature(&method) || method == Method::Listen;
        let bounded = written
            .filter(|_| !policy.signs.server && !endless && !safe)
            // The limits of a call that it joins may come first.
            .filter(|_| key.is_none() && !task)
            // It begins to run when the call has its turn.
            .filter(|_| !self.config.server.bounds.is_bound());
        let exact = bounded.filter(|_| !self.asks);
        let index = self.requests.len();
        self.by_id.insert(message.raw(Field::Id).map(show).unwrap_or_default(), index);
        if let Some(token) = token {
            self.by_token.insert(token, index);
        }
        self.requests.push(Request {
            nonce,
            asked: message.bytes.clone(),
            key,
            safe,
            repeatable,
            progressed: false,
            attempts: 0,
            sent: None,
            began: now,
            began_working: self.work.at(now),
            sign: now,
            settled: false,
            settled_at: None,
            cancelled: false,
            task,
            in_array,
            last_progress: f64::NEG_INFINITY,
            exact: exact.map(|limit| (limit.time, policy.signs == Signs::CALL)),
            bounded: bounded.map(|limit| limit.time),
            max: if endless { Duration::MAX } else { policy.max.time },
            method,
        });
    }

    /// `counts` says whether the engine still listens to an attempt.
    pub(super) fn server_line(
        &mut self,
        now: Duration,
        run: Run,
        line: &Line,
        counts: impl Fn(AttemptId) -> bool,
    ) {
        self.heard = self.work.at(now);
        let Ok(Scanned::Message(message)) = line else { return };
        if message.text(Field::Method).as_deref() != Some("notifications/progress") {
            return;
        }
        let token = message.raw(Field::ParamsProgressToken).map(show).unwrap_or_default();
        let attempt = format!("{}:{token}", run.0);
        if let Some(request) = self.attempts.get(&attempt).map(|index| &mut self.requests[*index])
            && !request.settled
        {
            request.progressed |= token.parse().is_ok_and(|number| counts(AttemptId(number)));
            if request.exact.is_some_and(|(_, moves)| moves) {
                request.sign = now;
            }
        }
    }

    /// Restarts never exceed their intensity, whatever happens.
    pub(super) fn server_starts(&mut self, now: Duration) {
        self.open_asks.clear();
        self.work.nobody_asks(now);
        self.heard = self.work.at(now);
        self.starts.push_back(now);
        while self.starts.front().is_some_and(|start| now - *start > MINUTE) {
            self.starts.pop_front();
        }
        // Each crash within a minute, and each look at a failed server, may take some tries to come up.
        let looks = (MINUTE.as_millis() / self.config.server.reconnect_every.as_millis().max(1)) as usize + 1;
        let most = (self.config.server.restart_intensity as usize + looks)
            * (1 + self.config.server.connect_retries as usize)
            + 1;
        assert!(self.starts.len() <= most, "{} starts within a minute, more than {most}", self.starts.len());
    }

    // What the engine does.

    pub(super) fn sent_to_server(&mut self, now: Duration, run: Run, line: &Bytes) {
        let Ok(Scanned::Message(message)) = scan(line.clone()) else {
            panic!("a bad line to the server: {line:?}")
        };
        if message.shape == Shape::Request {
            self.blame.sent(now, SERVER, run, &message);
        }
        let id = message.raw(Field::Id).map(show).unwrap_or_default();
        match message.shape {
            Shape::Request => {
                let number = id.trim_matches('"').to_owned();
                assert!(self.used.insert(number.clone()), "attempt id {id} was used twice");
                let nonce = nonce(&message.bytes);
                if let Some(index) = self.requests.iter().rposition(|request| request.nonce == nonce) {
                    let again = nonce == "ninit";
                    assert!(
                        again || tail(&message.bytes) == tail(&self.requests[index].asked),
                        "{nonce} has changed on its way: {message:?}"
                    );
                    self.is_the_only_one(index);
                    let shared = self.is_shared(index);
                    let request = &mut self.requests[index];
                    // A list that was asked for is asked for again by ourselves, to compare.
                    let compared = request.settled && request.method.shapes_the_connection();
                    // A handle that waits in an array stands for a task that runs already.
                    let made = request.task && request.in_array;
                    assert!(
                        again || compared || shared || made || !request.cancelled,
                        "{nonce} was cancelled, and sent"
                    );
                    request.attempts += 1;
                    request.sent = number.parse().ok();
                    let twice = request.attempts > 1 && !again;
                    assert!(!twice || request.safe, "{nonce} may have acted, and was sent again");
                    assert!(
                        !twice || compared || request.repeatable || !request.progressed,
                        "{nonce} was committed, and was sent again"
                    );
                    self.attempts.insert(format!("{}:{number}", run.0), index);
                }
            }
            Shape::Answer => {}
            Shape::Notification
                if message.text(Field::Method).as_deref() == Some("notifications/cancelled") =>
            {
                let id = message.raw(Field::ParamsRequestId).map(show).unwrap_or_default();
                assert!(self.used.contains(id.trim_matches('"')), "cancelled {id}, which was never sent");
                assert!(self.cancelled_attempts.insert(id.clone()), "cancelled {id} twice");
                self.blame.given_up(now, id.trim_matches('"').parse().unwrap_or(0));
            }
            Shape::Notification => {}
        }
    }

    /// Of calls with one key only one is at the server.
    fn is_the_only_one(&self, index: usize) {
        let sent = &self.requests[index];
        let Some((key, _)) = sent.key.as_ref().filter(|_| sent.attempts == 0) else { return };
        let other = |other: &&Request| {
            let same = other.key.as_ref().is_some_and(|(other, _)| other == key);
            same && other.nonce != sent.nonce && other.attempts > 0 && !other.settled && !other.in_array
        };
        if let Some(other) = self.requests.iter().rev().take(NEAR).find(other) {
            panic!("{} was sent although {} with its key is at the server", sent.nonce, other.nonce);
        }
    }

    /// Whether another call with the same key is not settled. That of a task goes on when its client has the handle.
    fn is_shared(&self, index: usize) -> bool {
        let sent = &self.requests[index];
        let goes_on = |other: &Request| !other.settled || (other.task && other.nonce != sent.nonce);
        let same = |other: &Request| other.key == sent.key && goes_on(other);
        sent.key.is_some() && self.requests.iter().rev().take(NEAR).any(same)
    }

    pub(super) fn sent_to_client(&mut self, now: Duration, line: &Bytes) {
        match scan(line.clone()) {
            Ok(Scanned::Message(message)) => self.message_to_client(now, &message),
            Ok(Scanned::Batch(members)) => {
                for member in members {
                    let message = member.expect("a member of our own array");
                    assert_eq!(message.shape, Shape::Answer, "only answers are collected");
                    self.message_to_client(now, &message);
                }
            }
            Err(refused) => {
                // A careless answer of the server passes as it is.
                let message = outlast_engine::wire::scan_tolerant(&refused.bytes);
                let message = message.unwrap_or_else(|| panic!("no answer: {:?}", refused.bytes));
                self.message_to_client(now, &message);
            }
        }
    }

    fn message_to_client(&mut self, now: Duration, message: &Message) {
        match message.shape {
            Shape::Answer => self.answer(now, message),
            Shape::Request => {
                let id = message.raw(Field::Id).map(show).unwrap_or_default();
                assert!(self.open_asks.insert(id.clone()), "question {id} was asked twice");
                if Method::of(message).waits_for_a_person() {
                    self.work.asks(now, id);
                }
            }
            Shape::Notification => self.notification(now, message),
        }
    }

    fn answer(&mut self, now: Duration, message: &Message) {
        let id = message.raw(Field::Id).map(show).unwrap_or_default();
        let ours = own_kind(message);
        let Some(index) = self.by_id.get(&id).copied() else {
            // The refusal of a line that was no request.
            return;
        };
        let request = &mut self.requests[index];
        assert!(!request.cancelled, "{id} was answered after its cancel");
        assert!(!request.settled, "{id} was answered twice");
        request.settled = true;
        request.settled_at = Some(now);
        if let Some(kind) = ours {
            self.failed += 1;
            self.may_be_said(now, index, message);
            self.errors.push((index, kind));
        } else if message.has(Field::Result) && request.method == Method::TasksResult {
            self.check_bytes_of_task(index, message);
        } else if message.has(Field::Result) {
            match member(&message.bytes, "taskId") {
                task if request.task && !task.is_empty() => _ = self.tasks.insert(task, index),
                _ => self.check_bytes(index, message),
            }
        }
        let request = &self.requests[index];
        // Where there is a store, keys are looked up there first.
        let slack = if self.config.tasks && request.key.is_some() { SLACK } else { Duration::ZERO };
        assert!(
            now <= request.began.saturating_add(request.max).saturating_add(slack),
            "{id} outlived its max"
        );
        let timed_out = message.bytes.windows(16).any(|part| part == b"\"kind\":\"timeout\"");
        if let Some(limit) = request.bounded {
            let last = self.heard.max(request.began_working);
            assert!(
                self.work.at(now) <= last + limit,
                "{id} outlived its timeout, without its waits for persons"
            );
        }
        if let Some((limit, _)) = request.exact {
            assert!(now <= request.sign + limit, "{id} outlived its timeout");
            assert!(!timed_out || now == request.sign + limit, "{id} timed out at the wrong time");
        }
    }

    /// From its end on a client hears nothing of our own but limits, and what its array holds from before.
    fn may_be_said(&self, now: Duration, index: usize, message: &Message) {
        let request = &self.requests[index];
        let limit = LIMITS.iter().any(|kind| message.bytes.windows(kind.len()).any(|part| part == *kind));
        // Calls with one key are as old as the first of them.
        let same = |other: &&Request| other.key.is_some() && other.key == request.key;
        let shared = self.requests.iter().rev().take(NEAR).filter(same).map(|other| other.began);
        let age = elapsed(message).unwrap_or(now - request.began);
        let said = shared.chain([request.began]).any(|began| Some(began + age) <= self.finished);
        // How a task ended is a fact that was stored; who waits for it hears of it when the store has it.
        let before = request.in_array && said || request.method == Method::TasksResult;
        // What becomes of a key is known when the store has looked for it.
        let before = before || (self.config.tasks && request.key.is_some());
        assert!(
            self.finished.is_none() || limit || before,
            "{} got a word of our own after the client's end: {message:?}",
            request.nonce
        );
    }

    /// What the client reads is what the server wrote for this very call, or for one with its key.
    fn check_bytes(&self, index: usize, message: &Message) {
        let request = &self.requests[index];
        let said = |sent: Option<u64>| self.blame.said(sent?).map(|said| &said[..]);
        let right = |other: &Request| said(other.sent) == message.raw(Field::Result);
        let same = |other: &&Request| other.key.is_some() && other.key == request.key;
        let shared = || self.requests.iter().rev().take(NEAR).filter(same).any(right);
        // Of what shapes the connection we ask ourselves too, and add to it.
        let known = request.method.shapes_the_connection() || request.method == Method::Listen;
        assert!(
            right(request) || known || shared(),
            "{} got another's answer: {message:?}, and its server said {:?}",
            request.nonce,
            said(request.sent)
        );
    }

    /// What is read of a task is what its server wrote, with no more than the name of the task added.
    fn check_bytes_of_task(&self, index: usize, message: &Message) {
        let task = member(&self.requests[index].asked, "taskId");
        let request = &self.requests[*self.tasks.get(&task).expect("a task of somebody")];
        let whole = |other: &Request| {
            let said = other.sent.and_then(|sent| self.blame.said(sent));
            said.is_some_and(|said| memchr::memmem::find(&message.bytes, &said[1..said.len() - 1]).is_some())
        };
        let same = |other: &&Request| other.key.is_some() && other.key == request.key;
        let right = whole(request) || self.requests.iter().rev().take(NEAR).filter(same).any(whole);
        assert!(right, "{request:?} reads {message:?}, {}", self.blame.tell(request.sent));
    }

    fn notification(&mut self, now: Duration, message: &Message) {
        if let Some(question) = message.raw(Field::ParamsRequestId) {
            // A question is taken back.
            self.work.answers(now, &show(question));
        }
        if message.text(Field::Method).as_deref() != Some("notifications/progress") {
            return;
        }
        self.progress += 1;
        let token = message.raw(Field::ParamsProgressToken).map(show).unwrap_or_default();
        let index = *self.by_token.get(&token).unwrap_or_else(|| panic!("progress on unknown token {token}"));
        let request = &mut self.requests[index];
        // Progress of a task outlives its handle.
        assert!(!request.settled || request.task, "progress on {token} after the end");
        let value = message.number(Field::ParamsProgress).expect("a number");
        assert!(value > request.last_progress, "progress on {token} does not rise");
        request.last_progress = value;
        let kept_alive = message.bytes.windows(7).any(|part| part == b"running");
        assert!(!kept_alive || self.finished.is_none(), "keep-alive after the client's end");
        assert!(!kept_alive || !self.congested, "keep-alive to a client that does not read");
    }

    /// Everything that one event brings about has been seen.
    pub(super) fn batch_ends(&mut self, now: Duration) {
        for (index, kind) in std::mem::take(&mut self.errors) {
            self.check_excuse(now, index, &kind);
        }
        for attempt in self.blame.take_answered() {
            let open = |request: &&Request| {
                // What shapes the connection is asked again by ourselves.
                let own = request.attempts > 1 && request.method.shapes_the_connection();
                // A server may end a subscription.
                let own = own || (request.method == Method::Listen && self.blame.is_cancelled(attempt));
                request.sent == Some(attempt) && !request.settled && !request.in_array && !own
            };
            let open = self.requests.iter().rev().take(NEAR).find(open);
            assert!(open.is_none() || self.ending, "{open:?} is answered, and its client does not know");
        }
        self.blame.is_judged();
    }

    /// An error of ours needs a fault on the way of its call.
    fn check_excuse(&self, now: Duration, index: usize, kind: &str) {
        let request = &self.requests[index];
        // An error inside an array leaves with the last answer of the array.
        let given_up = self.blame.when_given_up(request.sent);
        let now = given_up.filter(|_| request.in_array).unwrap_or(now);
        let unseen = request.in_array && given_up.is_none();
        let excuses = |sent| self.blame.excuses(now, request.began, kind, sent, |_| true);
        // What befell one of several calls with one key befell all of them.
        let same = |other: &&Request| other.key.is_some() && other.key == request.key;
        let shared = || self.requests.iter().rev().take(NEAR).filter(same).any(|other| excuses(other.sent));
        let conflict = kind == "key-conflict" && request.key.is_some();
        // What befell a task is judged where its call is; who waits for it only hears of it.
        let waits = request.method == Method::TasksResult;
        let bound = self.bound_is_reached(now, index, kind);
        assert!(
            self.ending || bound || conflict || waits || unseen || excuses(request.sent) || shared(),
            "{kind} without a reason: {request:?}, {}",
            self.blame.tell(request.sent)
        );
    }

    /// Whether other calls leave no room for one, so that it may be refused.
    fn bound_is_reached(&self, now: Duration, index: usize, kind: &str) -> bool {
        let bounds = &self.config.server.bounds;
        let began = self.requests[index].began;
        let others =
            || self.requests.iter().enumerate().filter(|(at, request)| *at != index && request.works());
        // What became a task is in flight until the task ends.
        let open = |request: &Request| !request.settled || request.task || request.settled_at == Some(now);
        let count = || others().filter(|(_, other)| open(other)).count() as u32;
        let busy = |every: Duration| others().filter(|(_, other)| other.began + every >= began).count();
        let rated =
            bounds.rate.is_some_and(|rate| busy(rate.every + bounds.queue_wait) + 1 >= rate.calls as usize);
        match kind {
            _ if !bounds.is_bound() => false,
            "too-many-calls" => bounds.queue == 0 && count() >= bounds.max_in_flight,
            "queue-full" => count() >= bounds.max_in_flight + bounds.queue,
            "rate-limited" => rated,
            // A call that joins another waits with it, and under limits of its own.
            "timeout" if self.requests[index].key.is_none() => false,
            // Who has its turn may wait for its server.
            "queue-wait" | "max" | "timeout" => {
                let away = self.blame.excuses(now, began, "server-failed", None, |_| true);
                // A call that has its turn may be between two attempts.
                count() >= bounds.max_in_flight || rated || away
            }
            _ => false,
        }
    }

    /// Something happens to the engine.
    pub(super) fn told(&mut self, now: Duration, event: &Event) {
        self.ending |= matches!(event, Event::ClientEof(_));
        self.blame.told(now, event);
    }

    /// After the end nobody may be left without an answer who did not close its end first.
    pub(super) fn everything_is_settled(&self, ended: bool) {
        if self.finished.is_some() {
            return;
        }
        let patient = |request: &&Request| !request.settled && request.method != Method::Listen;
        if let Some(open) = self.requests.iter().find(patient) {
            let heard = ended;
            assert!(!heard, "{} was never answered", open.nonce);
        }
    }
}

impl Request {
    /// It makes its server work, so bounds count it.
    fn works(&self) -> bool {
        let counted =
            [Method::ToolsCall, Method::PromptsGet, Method::ResourcesRead, Method::CompletionComplete];
        counted.contains(&self.method)
    }
}

/// How old a call was when an error of ours was made for it.
fn elapsed(message: &Message) -> Option<Duration> {
    let text = String::from_utf8_lossy(&message.bytes);
    let (_, after) = text.split_once("\"elapsedMs\":")?;
    after.split([',', '}']).next()?.parse().ok().map(Duration::from_millis)
}

fn show(raw: &[u8]) -> String {
    String::from_utf8_lossy(raw).into_owned()
}
