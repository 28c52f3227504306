//! A legacy client: a session that comes and goes, whose streams break and are taken up again.

use super::visit::{Visit, What, method, request, while_of};
use crate::exchange::Read;
use crate::sim::process::member;
use crate::sim::rng::Rng;
use bytes::Bytes;
use outlast_engine::http::{Body, Response};
use outlast_engine::id::ExchangeId;
use outlast_engine::wire::{Field, Message, Scanned, Shape, scan, scan_tolerant};
use std::collections::BTreeSet;
use std::time::Duration;

const HANDSHAKE: &str = "\"handshake\"";
const VERSIONS: [&str; 3] = ["2025-03-26", "2025-06-18", "2025-11-25"];

/// Handshakes before a client that is not let in goes away.
const HANDSHAKES: u32 = 30;

/// What a client is about to do, in one of its sessions.
#[derive(Clone, Debug)]
pub(super) enum Move {
    Greet,
    SaysInitialized,
    Act,
    /// Take up a stream again.
    ComeBack(usize),
    Cancel(String),
    Answer(String),
    /// Wait for the answer of a task.
    Fetch(String),
    /// Delete the session in the midst of its calls, and begin another one.
    BeginAgain,
    Leave,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Outside,
    Greeting,
    Inside,
    Left,
}

/// A stream as its client knows it, over all its connections.
#[derive(Debug, Default)]
struct Thread {
    /// The session that it belongs to.
    generation: u32,
    /// The POST that it began with.
    post: Option<ExchangeId>,
    /// The connection that the client reads now.
    exchange: Option<ExchangeId>,
    /// Ids that are not answered.
    pending: BTreeSet<String>,
    /// Events that were read, and which id each of them answered.
    seen: Vec<(String, Option<String>)>,
}

#[derive(Debug)]
pub(super) struct Session {
    index: usize,
    principal: Option<&'static str>,
    state: State,
    pub(super) generation: u32,
    pub(super) name: Option<Box<str>>,
    wanted: &'static str,
    agreed: String,
    left: usize,
    next: u64,
    idle: Duration,
    threads: Vec<Thread>,
    standing: Option<usize>,
    pub(super) plans: Vec<(Duration, u32, Move)>,
    /// POSTs whose answers it cannot get any more.
    pub(super) lost: Vec<ExchangeId>,
}

impl Session {
    pub(super) fn new(
        index: usize,
        principal: Option<&'static str>,
        calls: usize,
        idle: Duration,
        rng: &mut Rng,
    ) -> Session {
        Session {
            index,
            principal,
            state: State::Outside,
            generation: 0,
            name: None,
            wanted: VERSIONS[rng.below(3)],
            agreed: String::new(),
            left: calls,
            next: 0,
            idle,
            threads: Vec::new(),
            standing: None,
            // Some come when others have fallen asleep already.
            plans: vec![(if rng.chance(75) { rng.millis(0, 2_000) } else { idle * 3 }, 0, Move::Greet)],
            lost: Vec::new(),
        }
    }

    /// Without a token every session is a principal of its own.
    fn owner(&self) -> String {
        match self.principal {
            Some(name) => name.to_owned(),
            None => format!("anon{}-{}", self.index, self.generation),
        }
    }

    fn plan(&mut self, after: Duration, next: Move) {
        self.plans.push((after, self.generation, next));
    }

    fn visit(&self, rng: &mut Rng, what: What) -> Visit {
        // Older clients know no such header.
        let version = Some(self.agreed.clone()).filter(|agreed| !agreed.is_empty() && rng.chance(80));
        Visit { principal: self.principal, owner: self.owner(), session: self.name.clone(), version, what }
    }

    fn post(&self, rng: &mut Rng, body: String) -> Visit {
        self.visit(rng, What::Post(body))
    }

    /// Connections that it reads.
    pub(super) fn open(&self) -> Vec<ExchangeId> {
        self.threads.iter().filter_map(|thread| thread.exchange).collect()
    }

    pub(super) fn has_left(&self) -> bool {
        self.state == State::Left
    }

    /// Makes a move: what it sends, and the stream on which it reads the response.
    pub(super) fn act(&mut self, rng: &mut Rng, next: Move) -> Option<(Visit, Option<usize>)> {
        match next {
            Move::Greet => self.greet(rng),
            Move::ComeBack(thread) => self.come_back(rng, thread),
            _ if self.state != State::Inside => None,
            Move::SaysInitialized => {
                let body = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
                Some((self.post(rng, body.into()), None))
            }
            Move::Act => self.something(rng),
            Move::Cancel(id) => {
                for thread in self.threads.iter_mut().filter(|thread| thread.generation == self.generation) {
                    thread.pending.remove(&id);
                }
                let body = format!(r#"{{"method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#);
                Some((self.post(rng, body), None))
            }
            Move::Answer(id) => {
                let body = format!(r#"{{"id":{id},"result":{{"nonce":"{}.answer"}}}}"#, self.owner());
                Some((self.post(rng, body), None))
            }
            Move::Fetch(task) => {
                self.next += 1;
                let (id, nonce) = (self.next, format!("{}.s{}.{}", self.owner(), self.index, self.next));
                let body = format!(
                    r#"{{"jsonrpc":"2.0","id":{id},"method":"tasks/result","params":{{"taskId":"{task}","nonce":"{nonce}"}}}}"#
                );
                let thread = self.thread([id.to_string()].into());
                Some((self.post(rng, body), Some(thread)))
            }
            Move::BeginAgain => {
                let visit = self.visit(rng, What::Delete);
                self.begin_again(rng);
                Some((visit, None))
            }
            Move::Leave => {
                self.state = State::Left;
                Some((self.visit(rng, What::Delete), None))
            }
        }
    }

    fn greet(&mut self, rng: &mut Rng) -> Option<(Visit, Option<usize>)> {
        if self.state == State::Left {
            return None;
        }
        self.state = State::Greeting;
        self.name = None;
        self.agreed = String::new();
        let (wanted, owner) = (self.wanted, self.owner());
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":{HANDSHAKE},"method":"initialize","params":{{"protocolVersion":"{wanted}","capabilities":{{}},"nonce":"{owner}.handshake"}}}}"#
        );
        let thread = self.thread([HANDSHAKE.to_owned()].into());
        Some((self.post(rng, body), Some(thread)))
    }

    fn thread(&mut self, pending: BTreeSet<String>) -> usize {
        self.threads.push(Thread { generation: self.generation, pending, ..Thread::default() });
        self.threads.len() - 1
    }

    /// It is in no session any more, and begins another one.
    fn begin_again(&mut self, rng: &mut Rng) {
        self.generation += 1;
        self.standing = None;
        self.state = if self.generation < HANDSHAKES { State::Outside } else { State::Left };
        let wait = while_of(rng, 500, 20_000);
        self.plan(wait, Move::Greet);
    }

    fn something(&mut self, rng: &mut Rng) -> Option<(Visit, Option<usize>)> {
        if self.left == 0 {
            return self.leave(rng);
        }
        let pause = match rng.below(100) {
            // Long enough to fall asleep, now and then.
            0..2 => self.idle * 2,
            2..70 => rng.millis(0, 5),
            _ => rng.millis(0, 400),
        };
        self.plan(pause, Move::Act);
        match rng.below(100) {
            0..2 => {
                let body = nonsense(rng);
                Some((self.post(rng, body), None))
            }
            2..5 => {
                let body = format!(r#"{{"method":"notifications/odd","params":{{"n":{}}}}}"#, self.next);
                Some((self.post(rng, body), None))
            }
            5..10 if self.agreed == "2025-03-26" => Some(self.array(rng)),
            10..15 => self.stand(rng),
            16 if rng.chance(10) => self.act(rng, Move::BeginAgain),
            // A question that was put to somebody else, perhaps.
            15 => {
                let id = rng.below(30).to_string();
                self.act(rng, Move::Answer(id))
            }
            _ => {
                let (id, body) = self.request(rng);
                let thread = self.thread([id].into());
                Some((self.post(rng, body), Some(thread)))
            }
        }
    }

    /// Waits for what is under way, or not; and ends the session, or just goes away.
    fn leave(&mut self, rng: &mut Rng) -> Option<(Visit, Option<usize>)> {
        let current = |thread: &&Thread| thread.generation == self.generation;
        let busy = self.threads.iter().filter(current).any(|thread| !thread.pending.is_empty());
        if busy && rng.chance(98) {
            self.plan(rng.millis(500, 5_000), Move::Act);
            return None;
        }
        if rng.chance(60) {
            self.plan(Duration::ZERO, Move::Leave);
        } else {
            self.state = State::Left;
            let posts: Vec<ExchangeId> = self.threads.iter().filter_map(|thread| thread.post).collect();
            self.lost.extend(posts);
        }
        None
    }

    fn array(&mut self, rng: &mut Rng) -> (Visit, Option<usize>) {
        let mut ids = BTreeSet::new();
        let mut members = vec![r#"{"method":"notifications/in_array"}"#.to_owned()];
        for _ in 0..rng.below(4) + 1 {
            let (id, body) = self.request(rng);
            ids.insert(id);
            members.push(body);
        }
        let thread = self.thread(ids);
        (self.post(rng, format!("[{}]", members.join(","))), Some(thread))
    }

    fn request(&mut self, rng: &mut Rng) -> (String, String) {
        self.left = self.left.saturating_sub(1);
        self.next += 1;
        let n = self.next;
        let id = match rng.below(4) {
            0 => format!("\"c{n}\""),
            1 => format!("9007199254{n:09}123"),
            _ => n.to_string(),
        };
        let nonce = format!("{}.s{}.{n}", self.owner(), self.index);
        let method = method(rng, false);
        let body = request(rng, &id, &format!("tok{n}"), method, &nonce, "");
        if rng.chance(12) {
            let after = while_of(rng, 20, 4_000);
            self.plan(after, Move::Cancel(id.clone()));
        }
        let task = method == "tools/call" && self.agreed == "2025-11-25" && rng.chance(15);
        let body = if task { body.replacen("\"params\":{", "\"params\":{\"task\":{},", 1) } else { body };
        (id, body)
    }

    fn stand(&mut self, rng: &mut Rng) -> Option<(Visit, Option<usize>)> {
        let open = self.standing.filter(|thread| self.threads[*thread].exchange.is_some());
        if open.is_some() && rng.chance(95) {
            return None;
        }
        let thread = match self.standing.filter(|_| open.is_none()) {
            Some(thread) => thread,
            None => self.thread(BTreeSet::new()),
        };
        if open.is_none() {
            self.standing = Some(thread);
        }
        let last = self.threads[thread].seen.last().map(|(event, _)| event.clone());
        Some((self.visit(rng, What::Get(last)), Some(thread)))
    }

    fn come_back(&mut self, rng: &mut Rng, thread: usize) -> Option<(Visit, Option<usize>)> {
        let known = &self.threads[thread];
        if self.state == State::Left || known.generation != self.generation || known.exchange.is_some() {
            return None;
        }
        let last = known.seen.last().map(|(event, _)| event.clone());
        Some((self.visit(rng, What::Get(last)), Some(thread)))
    }

    // What comes back.

    /// A request has been sent, and its response is read as part of a stream.
    pub(super) fn sends(&mut self, thread: usize, exchange: ExchangeId, posts: bool) {
        let thread = &mut self.threads[thread];
        thread.exchange = Some(exchange);
        if posts {
            thread.post = Some(exchange);
        }
    }

    fn reads(&self, thread: usize, exchange: ExchangeId) -> bool {
        self.threads[thread].exchange == Some(exchange)
    }

    /// A session that a request named does not exist, or a handshake was refused.
    pub(super) fn responded(
        &mut self,
        rng: &mut Rng,
        generation: u32,
        thread: Option<usize>,
        exchange: ExchangeId,
        response: &Response,
    ) {
        if generation != self.generation || self.state == State::Left {
            return;
        }
        if let Some(name) = &response.session {
            self.name = Some(name.clone());
        }
        let over = response.body != Body::Events;
        let refused = response.status >= 400;
        if let Some(thread) = thread.filter(|thread| over && self.reads(*thread, exchange)) {
            self.threads[thread].exchange = None;
            self.give_up(rng, thread);
        }
        if refused && response.status == 404 && self.state == State::Inside {
            self.begin_again(rng);
        }
    }

    /// Reads an event; `seen` tells whether the client lives to see it.
    pub(super) fn read(&mut self, rng: &mut Rng, thread: usize, exchange: ExchangeId, event: &Read) {
        if !self.reads(thread, exchange) {
            return;
        }
        let data = event.data.as_ref().filter(|data| !data.is_empty());
        let message = data.and_then(message);
        let answered = message.as_ref().filter(|message| message.shape == Shape::Answer).and_then(id_of);
        if let Some(id) = &answered {
            self.threads[thread].pending.remove(id);
        }
        if let Some(event) = &event.id {
            self.threads[thread].seen.push((event.clone(), answered.clone()));
        }
        let current = self.threads[thread].generation == self.generation && self.state != State::Left;
        let Some(message) = message.filter(|_| current) else { return };
        if answered.as_deref() == Some(HANDSHAKE) {
            return self.welcomed(rng, &message);
        }
        let task = member(&message.bytes, "taskId");
        if answered.is_some() && !task.is_empty() {
            let after = while_of(rng, 50, 5_000);
            self.plan(after, Move::Fetch(task));
        }
        if message.shape == Shape::Request {
            self.asked(rng, &message);
        }
    }

    fn welcomed(&mut self, rng: &mut Rng, answer: &Message) {
        if self.state != State::Greeting {
            return;
        }
        if !answer.has(Field::Result) {
            return self.begin_again(rng);
        }
        self.state = State::Inside;
        self.agreed = member(&answer.bytes, "protocolVersion");
        self.plan(Duration::from_micros(200), Move::SaysInitialized);
        self.plan(rng.millis(1, 50), Move::Act);
    }

    /// Answers most questions, after a while, some twice.
    fn asked(&mut self, rng: &mut Rng, question: &Message) {
        let Some(id) = id_of(question).filter(|_| rng.chance(90)) else { return };
        let after = rng.millis(0, 3_000);
        if rng.chance(5) {
            self.plan(after, Move::Answer(id.clone()));
        }
        self.plan(after, Move::Answer(id));
    }

    /// Its connection has ended: by the other side, or because it broke. What was on its way is not
    /// read then.
    pub(super) fn ended(&mut self, rng: &mut Rng, thread: usize, exchange: ExchangeId, broke: bool) {
        if !self.reads(thread, exchange) {
            return;
        }
        self.threads[thread].exchange = None;
        if broke {
            for _ in 0..rng.below(4) {
                let state = &mut self.threads[thread];
                // The first event is what a client comes back with.
                if state.seen.len() > 1 {
                    let (_, answered) = state.seen.pop().expect("an event");
                    state.pending.extend(answered);
                }
            }
        }
        if self.state == State::Left || self.threads[thread].generation != self.generation {
            return;
        }
        let stands = self.standing == Some(thread);
        if self.threads[thread].pending.is_empty() && !stands {
            return;
        }
        let knows = !self.threads[thread].seen.is_empty();
        if knows && rng.chance(90) {
            let after = while_of(rng, 3_000, 30_000);
            self.plan(after, Move::ComeBack(thread));
        } else {
            self.give_up(rng, thread);
        }
    }

    /// What is not answered on this stream will not be.
    fn give_up(&mut self, rng: &mut Rng, thread: usize) {
        let state = &mut self.threads[thread];
        self.lost.extend(state.post);
        let handshake = state.pending.contains(HANDSHAKE);
        state.pending.clear();
        if handshake && self.state == State::Greeting {
            self.begin_again(rng);
        }
    }
}

pub(super) fn message(data: &Bytes) -> Option<Message> {
    match scan(data.clone()) {
        Ok(Scanned::Message(message)) => Some(message),
        // A careless answer of the server passes as it is.
        Ok(Scanned::Batch(_)) => None,
        Err(refused) => scan_tolerant(&refused.bytes),
    }
}

fn id_of(message: &Message) -> Option<String> {
    message.raw(Field::Id).map(|id| String::from_utf8_lossy(id).into_owned())
}

fn nonsense(rng: &mut Rng) -> String {
    let bodies = [
        "handshake",
        "{",
        "[]",
        "17",
        r#"{"id":"bad","id":"worse","method":"x"}"#,
        r#"{"id":{},"method":"x"}"#,
    ];
    bodies[rng.below(bodies.len())].to_owned()
}
