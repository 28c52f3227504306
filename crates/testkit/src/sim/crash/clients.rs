//! The clients: each makes its calls, comes back for what it was promised, and looks once more when it has it.

use super::judge::{End, Sight, is_as_it_was_said, is_no};
use super::{CLIENT, EXCHANGES, Heard, Plan, World};
use crate::exchange::{MODERN, mirror, read};
use crate::ledger::Ledger;
use crate::sim::rng::Rng;
use bytes::Bytes;
use outlast_engine::http::{Body, Head};
use outlast_engine::id::ExchangeId;
use outlast_engine::wire::scan;
use outlast_engine::{Event, Manner};
use serde_json::{Value, json};
use std::time::Duration;

/// How long a client waits for an answer before it asks again.
const WAITS: Duration = Duration::from_secs(8);

/// How often it looks again at what it has.
const LOOKS: u32 = 2;

/// Under which name a client knows its call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Face {
    /// None at all.
    Plain,
    LegacyTask,
    ModernTask,
    Resume,
    HandOff,
}

/// What a request is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    Handshake,
    Call,
    /// The same call with the same key, although its end is known.
    Again,
    Task,
    Result,
    Wait,
    Resume,
    Status,
    /// All calls of the principal that can be resumed.
    All,
    Cancel,
    /// Nothing that is answered with more than a word.
    Word,
}

/// A request over HTTP: whose it is, and who takes it.
#[derive(Debug)]
pub(super) struct Visit {
    client: usize,
    errand: Option<usize>,
    asked: Asked,
    session: Option<Box<str>>,
    life: usize,
    /// The process has heard of it.
    pub(super) arrived: bool,
}

/// A request that is not answered. Without an exchange it was written to a line.
#[derive(Debug)]
struct Waiting {
    exchange: Option<ExchangeId>,
    id: u64,
    asked: Asked,
    since: Duration,
}

/// One call of a client.
#[derive(Debug)]
pub(super) struct Errand {
    pub(super) nonce: String,
    tool: &'static str,
    pub(super) face: Face,
    pub(super) key: bool,
    /// It is to be cancelled, and was told to be.
    cancels: bool,
    pub(super) cancelled: bool,
    id: u64,
    /// How often it was called.
    pub(super) issued: u32,
    waiting: Option<Waiting>,
    /// Questions that are to be answered.
    questions: Vec<String>,
    pub(super) sight: Sight,
    looks: u32,
    pub(super) done: bool,
}

#[derive(Debug)]
pub(super) struct Client {
    index: usize,
    modern: bool,
    face: Face,
    principal: Option<&'static str>,
    session: Option<Box<str>>,
    greets: Option<ExchangeId>,
    inside: bool,
    next_id: u64,
    pub(super) errands: Vec<Errand>,
    pub(super) left: bool,
    /// It has deleted its session in the midst of its calls.
    deleted: bool,
}

impl Errand {
    /// Running it twice does no harm.
    pub(super) fn is_safe(&self) -> bool {
        self.tool.starts_with("safe_")
    }

    /// A person must say yes before it is sent.
    pub(super) fn is_held(&self) -> bool {
        self.tool.starts_with("held_")
    }

    /// Its tool says that it failed, and errors are never given again.
    pub(super) fn fails(&self) -> bool {
        self.tool.ends_with("_fails")
    }

    /// Its client may ask again without harm.
    fn may_ask_again(&self) -> bool {
        self.is_safe() || self.key || self.sight.ticket.is_some()
    }

    fn is_owed(&self) -> bool {
        self.issued > 0 && !self.done && self.sight.end.is_none()
    }

    /// What to ask next; `None` if nothing is left to be asked.
    fn next(&mut self, rng: &mut Rng, tardy: bool) -> Option<Asked> {
        if self.sight.ticket.is_none() {
            let calls = self.sight.end.is_none() && (self.issued == 0 || self.may_ask_again());
            return calls.then_some(Asked::Call);
        }
        if self.sight.end.is_some() {
            self.looks = self.looks.checked_sub(1)?;
        }
        if !self.questions.is_empty() {
            return Some(Asked::Word);
        }
        if self.cancels && self.sight.end.is_none() && rng.chance(50) {
            (self.cancels, self.cancelled) = (false, true);
            return Some(Asked::Cancel);
        }
        let kept = matches!(self.sight.end, Some(End::Answered(_))) && !self.fails();
        if self.key && kept && !tardy && rng.chance(50) {
            return Some(Asked::Again);
        }
        Some(match self.face {
            Face::LegacyTask if rng.chance(50) => Asked::Result,
            Face::LegacyTask | Face::ModernTask => Asked::Task,
            Face::HandOff => Asked::Wait,
            Face::Resume if self.key && rng.chance(15) => Asked::All,
            Face::Resume if rng.chance(30) => Asked::Status,
            Face::Resume => Asked::Resume,
            Face::Plain => panic!("a plain call has no ticket"),
        })
    }

    fn body(&mut self, asked: Asked) -> (&'static str, Value) {
        let ticket = self.sight.ticket.clone().unwrap_or_default();
        match asked {
            Asked::Call | Asked::Again => {
                self.issued += u32::from(asked == Asked::Call);
                let mut params = json!({"name": self.tool, "arguments": {"nonce": self.nonce}});
                if self.key {
                    params["idempotencyKey"] = format!("key of {}", self.nonce).into();
                }
                if self.face == Face::LegacyTask {
                    params["task"] = json!({});
                }
                ("tools/call", params)
            }
            Asked::Task => ("tasks/get", json!({"taskId": ticket})),
            Asked::Result => ("tasks/result", json!({"taskId": ticket})),
            Asked::Wait => {
                ("tools/call", json!({"name": "outlast_wait", "arguments": {"ticket": ticket, "seconds": 1}}))
            }
            Asked::Resume => ("requests/resume", json!({"resumeToken": ticket})),
            Asked::Status => ("requests/getStatus", json!({"requestId": self.id, "resumeToken": ticket})),
            Asked::All => ("dev.outlast/requests/getStatus/all", json!({})),
            Asked::Cancel => match self.face {
                Face::HandOff => {
                    ("tools/call", json!({"name": "outlast_cancel", "arguments": {"ticket": ticket}}))
                }
                Face::Resume => ("notifications/cancelled", json!({"requestId": self.id})),
                _ => ("tasks/cancel", json!({"taskId": ticket})),
            },
            Asked::Word => {
                let answer = |key| (key, json!({"action": "accept", "content": {}}));
                let answers: serde_json::Map<_, _> = self.questions.drain(..).map(answer).collect();
                ("tasks/update", json!({"taskId": ticket, "inputResponses": answers}))
            }
            Asked::Handshake => panic!("no call"),
        }
    }

    /// Its request is answered.
    fn answered(&mut self, asked: Asked, message: &Value) {
        let (result, error) = (&message["result"], &message["error"]);
        let handle = result["_meta"]["dev.outlast/ticket"].as_str();
        if !error.is_null() {
            return self.refused(asked, error);
        }
        match asked {
            Asked::Call | Asked::Again if result["task"].is_object() => self.sight.task(&result["task"]),
            Asked::Call | Asked::Again if result["resultType"] == "task" => self.sight.task(result),
            Asked::Call | Asked::Again if handle.is_some() => self.sight.handed(handle.unwrap_or_default()),
            Asked::Task => {
                self.sight.task(result);
                let asks = result["inputRequests"].as_object();
                self.questions = asks.map(|asks| asks.keys().cloned().collect()).unwrap_or_default();
            }
            Asked::Wait if handle.is_some() => {
                let text = result["content"][0]["text"].as_str().unwrap_or_default();
                if text.contains("was cancelled") {
                    self.sight.ends(End::Cancelled);
                } else {
                    assert!(text.contains("still running"), "{result}");
                    assert_eq!(self.sight.end, None, "an ended call runs again: {text}");
                }
            }
            Asked::Status => {
                let ended = result["status"] != "processing";
                assert!(ended || self.sight.end.is_none(), "{:?} became {result}", self.sight.end);
            }
            Asked::Cancel if self.face == Face::LegacyTask => self.sight.task(result),
            Asked::All => {
                let listed = result["requests"].as_array().expect("a list").iter();
                let ours = listed.filter(|call| call["resumeToken"].as_str() == self.sight.ticket.as_deref());
                let ours: Vec<&Value> = ours.collect();
                assert!(ours.len() <= 1, "a call is listed twice: {result}");
                let ended = ours.first().is_none_or(|call| call["status"] != "processing");
                assert!(ended || self.sight.end.is_none(), "{:?} became {result}", self.sight.end);
            }
            Asked::Cancel | Asked::Word | Asked::Handshake => {}
            Asked::Call | Asked::Again | Asked::Result | Asked::Wait | Asked::Resume => {
                assert!(is_no(result) || result["nonce"] == *self.nonce, "another's answer");
                // Of twins each has a record of its own: what is safe is run for both of them after a crash.
                let twin = asked == Asked::Again && self.is_safe() && self.issued > 1;
                if !(twin && self.sight.end.is_some()) {
                    self.sight.answered(result);
                }
            }
        }
    }

    fn refused(&mut self, asked: Asked, error: &Value) {
        let kind = error["data"]["outlast"]["kind"].as_str().unwrap_or_default();
        let text = error["message"].as_str().unwrap_or_default();
        if kind == "superseded" {
            return;
        }
        if kind == "ticket-unknown" || text.contains("no such task") {
            // A token is void once its call is cancelled.
            assert_eq!(self.face, Face::Resume, "a ticket is lost: {error}, {self:?}");
            return self.sight.ends(End::Cancelled);
        }
        match asked {
            // On a line nobody has a name.
            Asked::All if text.contains("needs authentication") => {}
            // It has ended already.
            Asked::Cancel if text.contains("the task has ended") => {}
            Asked::Result if text == "the task was cancelled" => self.sight.ends(End::Cancelled),
            Asked::Resume if text == "the call was cancelled" => self.sight.ends(End::Cancelled),
            Asked::Call | Asked::Result | Asked::Wait | Asked::Resume => {
                let ours = ["server-gone", "server-failed"].contains(&kind);
                let theirs = error["data"]["nonce"] == *self.nonce;
                assert!(ours || theirs, "{asked:?} was refused: {error}, {self:?}");
                self.may_end_so(error);
                self.sight.ends(End::Failed(error.clone()));
            }
            _ => panic!("{asked:?} was refused: {error}, {self:?}"),
        }
    }
}

impl Client {
    pub(super) fn new(index: usize, modern: bool, face: Face, principal: Option<&'static str>) -> Client {
        Client {
            index,
            modern,
            face,
            principal,
            session: None,
            greets: None,
            inside: modern,
            next_id: 1_000,
            errands: Vec::new(),
            left: false,
            deleted: false,
        }
    }

    pub(super) fn calls(mut self, tool: &'static str, key: bool, cancels: bool) -> Client {
        let at = self.errands.len();
        self.errands.push(Errand {
            nonce: format!("c{}e{at}", self.index),
            tool,
            face: self.face,
            key,
            cancels,
            cancelled: false,
            id: 100 + at as u64,
            issued: 0,
            waiting: None,
            questions: Vec::new(),
            sight: Sight::default(),
            looks: LOOKS,
            done: false,
        });
        self
    }

    /// Something that it asked for is between its request and its answer.
    pub(super) fn is_owed(&self) -> bool {
        self.errands.iter().any(Errand::is_owed)
    }

    fn name(&self) -> &'static str {
        if self.face == Face::HandOff { "hasty" } else { "patient" }
    }

    fn meta(&self) -> Value {
        let mut capabilities = json!({});
        if self.face == Face::ModernTask {
            capabilities["extensions"] = json!({"io.modelcontextprotocol/tasks": {}});
        }
        json!({
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientCapabilities": capabilities,
            "io.modelcontextprotocol/clientInfo": {"name": self.name(), "version": "1"},
        })
    }

    fn handshake(&self) -> Value {
        let mut capabilities = json!({"elicitation": {}});
        if self.face == Face::Resume {
            capabilities["resumableRequests"] = json!({});
        }
        json!({
            "protocolVersion": "2025-11-25",
            "capabilities": capabilities,
            "clientInfo": {"name": self.name(), "version": "1"},
        })
    }

    fn next_id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }
}

impl World {
    /// A client does what it has to do next.
    pub(super) fn act(&mut self, index: usize) {
        let client = &mut self.clients[index];
        if client.errands.iter().all(|errand| errand.done) {
            return self.leave(index);
        }
        let pause = self.rng.millis(50, 700);
        self.agenda.plan(pause, Plan::Acts(index));
        if self.front.is_none() {
            return;
        }
        if !client.inside {
            if client.greets.is_none() {
                let (id, handshake) = (client.next_id(), client.handshake());
                self.send(index, None, Asked::Handshake, id, "initialize", handshake);
            }
            return;
        }
        for at in 0..self.clients[index].errands.len() {
            self.pursue(index, at);
        }
    }

    fn pursue(&mut self, index: usize, at: usize) {
        let tardy = self.is_tardy();
        let errand = &mut self.clients[index].errands[at];
        if errand.done {
            return;
        }
        if let Some(waiting) = &errand.waiting {
            let patient = waiting.asked == Asked::Call && !errand.may_ask_again();
            let late = self.agenda.now > waiting.since + WAITS || self.rng.chance(3);
            let Some(exchange) = waiting.exchange.filter(|_| late && !patient) else { return };
            errand.waiting = None;
            return self.hang_up(exchange);
        }
        let Some(asked) = errand.next(&mut self.rng, tardy) else {
            errand.done = true;
            return;
        };
        let (method, params) = errand.body(asked);
        let same = matches!(asked, Asked::Call | Asked::Resume);
        let id = if same { errand.id } else { self.clients[index].next_id() };
        self.send(index, Some(at), asked, id, method, params);
    }

    fn hang_up(&mut self, exchange: ExchangeId) {
        let life = self.visits[exchange.0 as usize].life;
        // It does not overtake the request.
        self.agenda.plan(Duration::from_millis(5), Plan::HangsUp(life, exchange));
    }

    fn send(
        &mut self,
        index: usize,
        errand: Option<usize>,
        asked: Asked,
        id: u64,
        method: &str,
        mut params: Value,
    ) {
        let Some(life) = self.front else { return };
        let client = &mut self.clients[index];
        if client.modern {
            params["_meta"] = client.meta();
        }
        let mut message = json!({"jsonrpc": "2.0", "method": method, "params": params});
        let notifies = method.starts_with("notifications/");
        if !notifies {
            message["id"] = id.into();
        }
        let exchange = self.post(index, errand, asked, life, &message);
        let client = &mut self.clients[index];
        match errand {
            Some(at) if !notifies || exchange.is_some() => {
                let since = self.agenda.now;
                client.errands[at].waiting = Some(Waiting { exchange, id, asked, since });
            }
            None if asked == Asked::Handshake => client.greets = exchange.or(Some(ExchangeId(u64::MAX))),
            _ => {}
        }
    }

    /// Sends a message to a process; over HTTP as an exchange.
    fn post(
        &mut self,
        index: usize,
        errand: Option<usize>,
        asked: Asked,
        life: usize,
        message: &Value,
    ) -> Option<ExchangeId> {
        let client = &self.clients[index];
        let line = scan(Bytes::from(message.to_string()));
        let after = self.rng.millis(0, 4);
        if self.config.manner == Manner::Wrap {
            let event = Event::FromClient(CLIENT, line);
            self.agenda.plan_in_order(super::LINE + 1_000 + life as u64, after, Plan::Reaches(life, event));
            return None;
        }
        let mut head = Head {
            principal: client.principal.map(Into::into),
            session: client.session.clone(),
            takes_json: true,
            takes_events: true,
            ..Head::default()
        };
        if client.modern {
            head.version = Some(MODERN.into());
            mirror(&mut head, &line);
            let task = message["params"]["taskId"].as_str();
            head.name = task.map(Into::into).or(head.name);
        }
        let exchange = self.exchanges.open(&head, client.modern);
        let session = client.session.clone();
        self.visits.push(Visit { client: index, errand, asked, session, life, arrived: false });
        let event = Event::Posted(exchange, Box::new(head), line);
        self.agenda.plan_in_order(EXCHANGES / 2 + index as u64, after, Plan::Reaches(life, event));
        Some(exchange)
    }

    /// Every connection to a process is cut, and it learns of that before anything else.
    pub(super) fn cut_connections(&mut self, life: usize) {
        for number in 0..self.visits.len() {
            let id = ExchangeId(number as u64);
            if self.visits[number].arrived
                && self.visits[number].life == life
                && self.exchanges.all()[number].is_open()
            {
                self.agenda.plan(Duration::ZERO, Plan::HangsUp(life, id));
                self.over(id);
            }
        }
    }

    /// Whether a process has a connection of any client, or will have.
    pub(super) fn has_connections(&self, life: usize) -> bool {
        let open =
            |(number, visit): (usize, &Visit)| visit.life == life && self.exchanges.all()[number].is_open();
        self.visits.iter().enumerate().any(open)
    }

    /// The first client with a session deletes it, in the midst of its calls.
    pub(super) fn delete_a_session(&mut self, life: usize) {
        let Some(index) = self.clients.iter().position(|client| client.session.is_some()) else { return };
        self.clients[index].deleted = true;
        self.delete(index, life, Duration::ZERO);
    }

    fn delete(&mut self, index: usize, life: usize, after: Duration) {
        let client = &self.clients[index];
        let principal = client.principal.map(Into::into);
        let head = Head { principal, session: client.session.clone(), ..Head::default() };
        let exchange = self.exchanges.open(&head, false);
        let session = client.session.clone();
        self.visits.push(Visit {
            client: index,
            errand: None,
            asked: Asked::Word,
            session,
            life,
            arrived: false,
        });
        let event = Event::Deleted(exchange, Box::new(head));
        self.agenda.plan(after, Plan::Reaches(life, event));
    }

    fn leave(&mut self, index: usize) {
        let client = &mut self.clients[index];
        if client.left {
            return;
        }
        let Some(life) = self.front else {
            // The next process is to hear that nobody needs it.
            return self.agenda.plan(Duration::from_millis(10), Plan::Acts(index));
        };
        client.left = true;
        if self.clients.iter().all(|client| client.left) {
            self.left = Some(self.agenda.now);
            self.end_the_others(life);
            self.end_the_sender(life);
        }
        let client = &self.clients[index];
        if self.config.manner == Manner::Wrap {
            return self
                .agenda
                .plan(Duration::from_millis(10), Plan::Reaches(life, Event::ClientEof(CLIENT)));
        }
        if client.session.is_none() {
            return;
        }
        self.delete(index, life, Duration::from_millis(10));
    }

    // What comes back.

    /// A process has ended, and every connection to it.
    pub(super) fn connections_break(&mut self, life: usize) {
        for number in 0..self.visits.len() {
            if self.visits[number].life == life {
                self.exchanges.hang_up(ExchangeId(number as u64));
                self.over(ExchangeId(number as u64));
            }
        }
        if self.config.manner == Manner::Wrap {
            let client = &mut self.clients[0];
            (client.inside, client.greets) = (client.modern, None);
            client.errands.iter_mut().for_each(|errand| errand.waiting = None);
        }
    }

    /// Nothing comes on an exchange any more.
    fn over(&mut self, id: ExchangeId) {
        let visit = &self.visits[id.0 as usize];
        let client = &mut self.clients[visit.client];
        if client.greets == Some(id) {
            client.greets = None;
        }
        if let Some(errand) = visit.errand.map(|at| &mut client.errands[at])
            && errand.waiting.as_ref().is_some_and(|waiting| waiting.exchange == Some(id))
        {
            errand.waiting = None;
        }
    }

    pub(super) fn hear(&mut self, heard: Heard) {
        match heard {
            Heard::Response(id, response) => {
                let visit = &self.visits[id.0 as usize];
                let client = &mut self.clients[visit.client];
                if let Some(name) = response.session {
                    client.session = Some(name);
                }
                if response.status == 404 && !client.modern {
                    // It may have begun another one meanwhile.
                    if client.session == visit.session {
                        (client.session, client.inside) = (None, false);
                    }
                    return self.over(id);
                }
                match response.body {
                    Body::Events => {}
                    Body::Empty => self.over(id),
                    Body::Json(bytes) => {
                        self.message(Some(id), &bytes);
                        self.over(id);
                    }
                }
            }
            Heard::Events(id, bytes) => {
                for data in read(&bytes).into_iter().filter_map(|event| event.data) {
                    if !data.is_empty() {
                        self.message(Some(id), &data);
                    }
                }
            }
            Heard::End(id) => self.over(id),
            Heard::Line(bytes) => self.message(None, &bytes),
        }
    }

    fn message(&mut self, exchange: Option<ExchangeId>, bytes: &Bytes) {
        is_as_it_was_said(bytes);
        let message: Value = serde_json::from_slice(bytes).expect("a message to a client");
        let index = exchange.map_or(0, |id| self.visits[id.0 as usize].client);
        match message["method"].as_str() {
            None => self.answer_came(index, exchange, &message),
            Some("notifications/requests/resumePolicy") => {
                let params = &message["params"];
                let waits = |errand: &&mut Errand| {
                    let waiting = errand.waiting.as_ref();
                    waiting.is_some_and(|waiting| waiting.exchange == exchange)
                        && params["requestId"] == errand.id
                };
                if let Some(errand) = self.clients[index].errands.iter_mut().find(waits) {
                    errand.sight.handed(params["resumeToken"].as_str().expect("a token"));
                }
            }
            Some(_) if !message["id"].is_null() => {
                let result = json!({"action": "accept", "content": {}});
                let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
                if let Some(life) = self.front {
                    self.post(index, None, Asked::Word, life, &answer);
                }
            }
            Some(_) => {}
        }
    }

    fn answer_came(&mut self, index: usize, exchange: Option<ExchangeId>, message: &Value) {
        let client = &mut self.clients[index];
        let handshake = match exchange {
            Some(id) => self.visits[id.0 as usize].asked == Asked::Handshake,
            None => message["result"]["protocolVersion"].is_string(),
        };
        if handshake {
            client.greets = None;
            // A session may be lost again before its handshake is read.
            let named = client.session.is_some() || exchange.is_none();
            if message["error"].is_null() && named {
                client.inside = true;
                let method = "notifications/initialized";
                self.send(index, None, Asked::Word, 0, method, json!({}));
            }
            return;
        }
        let answers = |errand: &&mut Errand| {
            let waiting = errand.waiting.as_ref();
            waiting.is_some_and(|waiting| waiting.exchange == exchange && message["id"] == waiting.id)
        };
        if let Some(errand) = client.errands.iter_mut().find(answers)
            && let Some(waiting) = errand.waiting.take()
        {
            errand.answered(waiting.asked, message);
            only_own_calls_are_listed(client.principal, message, &self.ledger);
            errand.is_stored(&self.ledger);
        }
    }
}

/// A list of all calls has only those of whoever asks.
fn only_own_calls_are_listed(principal: Option<&str>, message: &Value, ledger: &Ledger) {
    for call in message["result"]["requests"].as_array().into_iter().flatten() {
        let token = call["resumeToken"].as_str().expect("a token");
        let record = ledger.records().find(|record| record.head.ticket.as_str() == token);
        let whose = record.map(|record| record.head.origin.principal.to_string());
        let own = principal.map(|name| format!("token:{name}"));
        assert_eq!(whose, own, "a call of somebody else is listed");
    }
}
