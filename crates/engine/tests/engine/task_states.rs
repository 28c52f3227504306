//! The two state machines of tasks: whatever happens to one, in whatever order, what its client is shown
//! follows the transitions that the protocol allows.

use outlast_testkit::script::World;
use proptest::prelude::*;
use serde_json::Value;
use std::collections::{BTreeSet, VecDeque};

const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}"#;

/// How long an ended task is kept.
const TTL: u64 = 3_600;

/// Something that happens to a task.
#[derive(Clone, Copy, Debug)]
enum Move {
    /// The server answers; also if it has answered, or was told to cancel.
    Answers,
    AnswersWithFailure,
    AnswersWithError,
    Reports,
    Asks,
    TakesBack,
    /// The client answers what it was asked first.
    Replies,
    Gets,
    /// Legacy only.
    WantsResult,
    /// It stops waiting for that.
    GivesUp,
    Cancels,
    /// The store commits what it was given first.
    Commits,
    Waits(u64),
    /// The process ends, and another begins.
    Crashes,
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let one = prop_oneof![
        2 => Just(Move::Answers),
        1 => Just(Move::AnswersWithFailure),
        1 => Just(Move::AnswersWithError),
        2 => Just(Move::Reports),
        3 => Just(Move::Asks),
        1 => Just(Move::TakesBack),
        3 => Just(Move::Replies),
        6 => Just(Move::Gets),
        4 => Just(Move::WantsResult),
        1 => Just(Move::GivesUp),
        1 => Just(Move::Cancels),
        8 => Just(Move::Commits),
        3 => (1..900u64).prop_map(Move::Waits),
        1 => Just(Move::Crashes),
    ];
    prop::collection::vec(one, 1..40)
}

/// What the client has seen of its task.
#[derive(Debug, Default)]
struct Seen {
    status: String,
    created: Value,
    updated: String,
    ttl: Value,
    /// The answer of the call, byte for byte.
    answer: Option<String>,
    forgotten: bool,
}

fn is_end(status: &str) -> bool {
    ["completed", "failed", "cancelled"].contains(&status)
}

impl Seen {
    fn task(&mut self, task: &Value) {
        let text = |name: &str| task[name].as_str().unwrap_or_default().to_owned();
        let (status, updated) = (text("status"), text("lastUpdatedAt"));
        let known = is_end(&status) || ["working", "input_required"].contains(&&*status);
        assert!(known, "no status: {task}");
        assert!(!is_end(&self.status) || self.status == status, "{} became {status}", self.status);
        assert!(self.answer.is_none() || is_end(&status), "answered, and {status}");
        assert!(!self.forgotten, "a forgotten task is back");
        if self.status.is_empty() {
            assert_eq!(status, "working", "a task begins as working");
            self.created = task["createdAt"].clone();
            self.ttl = task.get("ttl").or(task.get("ttlMs")).expect("a ttl").clone();
        }
        assert_eq!(self.created, task["createdAt"]);
        assert_eq!(Some(&self.ttl), task.get("ttl").or(task.get("ttlMs")));
        assert!(self.updated <= updated, "{} went back to {updated}", self.updated);
        (self.status, self.updated) = (status, updated);
    }

    fn answer(&mut self, answer: String) {
        assert!(!self.forgotten, "the answer of a forgotten task");
        let first = self.answer.get_or_insert_with(|| answer.clone());
        assert_eq!(*first, answer, "two answers");
    }
}

/// One task and everybody around it.
struct Play {
    world: World,
    modern: bool,
    ticket: String,
    next_id: u64,
    /// Submissions that are not committed.
    submitted: VecDeque<u64>,
    waits: BTreeSet<u64>,
    /// Questions to the client: ids of requests, or keys.
    asked: Vec<String>,
    questions: u64,
    /// The number of its attempt, while the process lives that made it.
    attempt: Option<u64>,
    now: u64,
    /// When it could have ended first.
    over: Option<u64>,
    seen: Seen,
}

impl Play {
    fn new(modern: bool) -> Play {
        let mut play = Play {
            world: World::default(),
            modern,
            ticket: String::new(),
            next_id: 10,
            submitted: VecDeque::new(),
            waits: BTreeSet::new(),
            asked: Vec::new(),
            questions: 0,
            attempt: Some(if modern { 1 } else { 2 }),
            now: 0,
            over: None,
            seen: Seen::default(),
        };
        for line in ["set tasks", "set timeout off", "set task-ttl 1h"] {
            play.say(line);
        }
        play.greet();
        if modern {
            play.say(&format!(
                r#"> {{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{{"name":"x",{META}}}}}"#
            ));
            play.say("wait 10s");
        } else {
            play.say(r#"> {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x","task":{"ttl":60000}}}"#);
        }
        play.make(Move::Commits);
        assert_eq!(play.seen.status, "working", "there is no task");
        play
    }

    fn greet(&mut self) {
        if !self.modern {
            self.say(r#"> {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}"#);
            self.say(r#"< {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}}"#);
            self.say(r#"> {"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        }
    }

    fn make(&mut self, next: Move) {
        match next {
            Move::Answers => self.answers(r#""result":{"content":[],"n":1.0}"#),
            Move::AnswersWithFailure => self.answers(r#""result":{"content":[],"isError":true}"#),
            Move::AnswersWithError => self.answers(r#""error":{"code":-5,"message":"no"}"#),
            Move::Reports => {
                if let Some(attempt) = self.attempt {
                    let params = format!(r#"{{"progressToken":{attempt},"progress":{}}}"#, self.next_id);
                    self.say(&format!(
                        r#"< {{"jsonrpc":"2.0","method":"notifications/progress","params":{params}}}"#
                    ));
                }
            }
            Move::Asks => {
                self.questions += 1;
                let id = format!("q{}", self.questions);
                self.say(&format!(
                    r#"< {{"jsonrpc":"2.0","id":"{id}","method":"elicitation/create","params":{{}}}}"#
                ));
            }
            Move::TakesBack => {
                let id = format!("q{}", self.questions);
                self.say(&format!(
                    r#"< {{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":"{id}"}}}}"#
                ));
            }
            Move::Replies => self.reply(),
            Move::Gets => self.ask("tasks/get", ""),
            Move::WantsResult if self.modern => self.ask("tasks/get", ""),
            Move::WantsResult => {
                self.ask("tasks/result", "");
                // If that was answered, it has ended.
                self.ask("tasks/get", "");
            }
            Move::GivesUp => {
                if let Some(id) = self.waits.pop_first() {
                    self.say(&format!(
                        r#"> {{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#
                    ));
                }
            }
            Move::Cancels => {
                self.over.get_or_insert(self.now);
                self.ask("tasks/cancel", "");
            }
            Move::Commits => {
                if let Some(number) = self.submitted.pop_front() {
                    self.say(&format!("stored {number}"));
                }
            }
            Move::Waits(seconds) => {
                self.now += seconds;
                self.say(&format!("wait {seconds}s"));
            }
            Move::Crashes => self.crash(),
        }
    }

    fn answers(&mut self, what: &str) {
        if let Some(attempt) = self.attempt {
            self.over.get_or_insert(self.now);
            self.say(&format!(r#"< {{"jsonrpc":"2.0","id":{attempt},{what}}}"#));
        }
    }

    fn reply(&mut self) {
        let Some(key) = self.asked.pop() else { return };
        if self.modern {
            self.ask("tasks/update", &format!(r#","inputResponses":{{"{key}":{{"action":"accept"}}}}"#));
        } else {
            self.say(&format!(r#"> {{"jsonrpc":"2.0","id":"{key}","result":{{"action":"accept"}}}}"#));
        }
    }

    fn ask(&mut self, method: &str, more: &str) {
        self.next_id += 1;
        let (id, ticket) = (self.next_id, &self.ticket);
        let meta = if self.modern { format!(",{META}") } else { String::new() };
        let params = format!(r#"{{"taskId":"{ticket}"{more}{meta}}}"#);
        self.waits.insert(id);
        self.say(&format!(r#"> {{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#));
        // Only what waits for an end, or for an end to be stored, is not answered at once.
        let blocks = ["tasks/result", "tasks/cancel"].contains(&method);
        assert!(blocks || !self.waits.contains(&id), "{method} was not answered");
    }

    fn crash(&mut self) {
        self.over.get_or_insert(self.now);
        self.attempt = None;
        self.submitted.clear();
        self.waits.clear();
        self.asked.clear();
        self.say("again");
        self.say("begin");
        // What was left is taken over before anything else.
        self.make(Move::Commits);
        self.greet();
    }

    // What comes back.

    fn say(&mut self, line: &str) {
        for line in self.world.input(line) {
            if let Some(rest) = line.strip_prefix(".. store ") {
                let number = rest.split(':').next().and_then(|number| number.parse().ok());
                self.submitted.push_back(number.expect("a number"));
            }
            if let Some(message) = line.strip_prefix("<< ") {
                self.hear(message);
            }
        }
    }

    fn hear(&mut self, text: &str) {
        let message: Value = serde_json::from_str(text).expect("a message");
        match message["method"].as_str() {
            Some("notifications/tasks/status") => self.seen.task(&message["params"]),
            Some("elicitation/create") => {
                self.asked.push(message["id"].as_str().expect("an id").to_owned());
            }
            Some(_) => {}
            None => self.answered(&message, text),
        }
    }

    fn answered(&mut self, message: &Value, text: &str) {
        let result = &message["result"];
        let id = message["id"].as_u64().unwrap_or_default();
        if id == 2 {
            let task = if self.modern { result } else { &result["task"] };
            self.ticket = task["taskId"].as_str().expect("a handle").to_owned();
            return self.seen.task(task);
        }
        if id > 10 {
            assert!(self.waits.remove(&id), "{id} was answered twice, or after it was given up: {text}");
        }
        if message["error"]["message"] == "Invalid params: no such task" {
            let over = self.over.expect("an open task was forgotten");
            assert!(self.now - over >= TTL, "an ended task was forgotten too soon");
            self.seen.forgotten = true;
        } else if result["status"].is_string() {
            self.seen.task(result);
            self.shown_inline(text, result);
        } else if id > 10 && !self.modern && !message["error"]["message"].to_string().contains("has ended") {
            // The answer of the call: there is one only after the end.
            let (_, answer) = text.split_once(&format!(r#""id":{id},"#)).expect("an id");
            self.seen.answer(answer.to_owned());
        }
    }

    /// A modern task shows its questions, and its answer once it has ended.
    fn shown_inline(&mut self, text: &str, task: &Value) {
        if !self.modern {
            return;
        }
        let keys = task["inputRequests"].as_object().map(|all| all.keys().cloned().collect());
        self.asked = keys.unwrap_or_default();
        let ended = is_end(&self.seen.status) && self.seen.status != "cancelled";
        let inline = task.get("result").is_some() || task.get("error").is_some();
        assert_eq!(ended, inline, "{text}");
        assert_eq!(task["status"] == "input_required", task.get("inputRequests").is_some(), "{text}");
        if let Some((_, answer)) = text.split_once(r#","result":{"content"#).filter(|_| inline) {
            self.seen.answer(answer.to_owned());
        }
    }

    /// Everything is committed and answered at last.
    fn finish(&mut self) {
        self.make(Move::Answers);
        while !self.submitted.is_empty() {
            self.make(Move::Commits);
        }
        assert!(self.waits.is_empty(), "never answered: {:?}", self.waits);
        self.make(Move::Gets);
        assert!(self.seen.forgotten || is_end(&self.seen.status), "{:?}", self.seen);
        self.world.engine.check_invariants().expect("what must hold");
    }
}

fn play(modern: bool, moves: &[Move]) {
    let mut play = Play::new(modern);
    for next in moves {
        play.make(*next);
    }
    play.finish();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn a_legacy_task_follows_the_transitions_of_its_protocol(moves in moves()) {
        play(false, &moves);
    }

    #[test]
    fn a_modern_task_follows_the_transitions_of_its_protocol(moves in moves()) {
        play(true, &moves);
    }
}
