//! The processes behind the doors, and what is wrong with them.

use super::{Plan, STEADY, TOOLS, World, name_of};
use bytes::Bytes;
use outlast_engine::event::{Exit, StartFailure};
use outlast_engine::id::{Run, ServerId};
use outlast_engine::{Action, Event};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

/// How long after a list has failed it must have been asked for again: the longest wait before that, the time in which a
/// server that is to be replaced lets its calls end, and a little.
const AGAIN: Duration = Duration::from_secs(8);

/// One process.
#[derive(Debug)]
pub(super) struct Process {
    name: String,
    program: u64,
    run: Run,
    alive: bool,
    /// Pages of a list that has no end.
    pages: u64,
    /// It was told to end.
    ends: bool,
    /// When the list failed that outlast asked for last, and it has not been asked for again.
    failed: Option<Duration>,
    /// What it has asked, by the ids that it gave.
    asked: BTreeMap<u64, String>,
}

impl Process {
    pub(super) fn runs(&self, run: Run) -> bool {
        self.alive && self.run == run
    }

    /// Whether it is there to say something.
    pub(super) fn says(&mut self, run: Run, message: &Value) -> bool {
        // Whoever needs the list of a server that has changed asks for it.
        if message["method"] == "notifications/tools/list_changed" {
            self.failed = None;
        }
        self.runs(run)
    }
}

fn is_steady(name: &str) -> bool {
    (0..STEADY).any(|server| name == name_of(server))
}

impl World {
    pub(super) fn tells_server(&mut self, action: Action) {
        match action {
            Action::Start(id, run) => self.starts(id, run),
            Action::ToServer(id, message) => {
                let Some(process) = self.processes.get(&id).filter(|process| process.alive) else { return };
                let (run, delay) = (process.run, self.rng.millis(0, 5));
                let bytes: Bytes = message.to_vec().into();
                self.agenda.plan_in_order(u64::from(id.0) * 2, delay, Plan::Reaches(id, run, bytes));
            }
            Action::CloseInput(id) => self.ends(id, 800),
            Action::Terminate(id) => self.ends(id, 300),
            Action::Kill(id) => self.ends(id, 1),
            _ => {}
        }
    }

    fn starts(&mut self, id: ServerId, run: Run) {
        let name = self.engine.name_of(id).expect("it is about to start").to_owned();
        let steady = is_steady(&name);
        // A file that has changed meanwhile starts what it says now.
        let Some(defined) = self.judge.last_defined(&name) else { return };
        self.outcome.runs += 1;
        let fails = !steady && self.rng.chance(5);
        let process = Process {
            name,
            program: defined.program,
            run,
            alive: !fails,
            pages: 0,
            ends: false,
            failed: None,
            asked: BTreeMap::new(),
        };
        self.processes.insert(id, process);
        let delay = self.rng.millis(1, 200);
        let event = match fails {
            true if self.rng.chance(50) => Event::StartFailed(id, run, StartFailure::NotFound),
            true => Event::StartFailed(id, run, StartFailure::Refused(11)),
            false => Event::Started(id, run),
        };
        self.agenda.plan_in_order(u64::from(id.0) * 2 + 1, delay, Plan::Feed(Box::new(event)));
    }

    fn ends(&mut self, id: ServerId, within: u64) {
        let Some(process) = self.processes.get_mut(&id) else { return };
        process.ends = true;
        let run = process.run;
        let delay = self.rng.millis(0, within);
        self.agenda.plan_in_order(u64::from(id.0) * 2 + 1, delay, Plan::Exits(id, run));
    }

    pub(super) fn exits(&mut self, id: ServerId, run: Run) {
        let Some(process) = self.processes.get_mut(&id).filter(|process| process.runs(run)) else { return };
        process.alive = false;
        self.feed(Event::OutputClosed(id, run));
        self.feed(Event::Exited(id, run, Exit::Code(0)));
    }

    /// A message reaches a process.
    pub(super) fn reaches(&mut self, id: ServerId, run: Run, bytes: &Bytes) {
        let Some(process) = self.processes.get(&id).filter(|process| process.runs(run)) else { return };
        let (name, program) = (process.name.clone(), process.program);
        let message: Value = serde_json::from_slice(bytes).expect("JSON");
        let Some(method) = message["method"].as_str() else { return self.is_answered(id, &message) };
        if message.get("id").is_none() {
            return;
        }
        let steady = is_steady(&name);
        let (result, delay) = match method {
            "initialize" => {
                let version = &message["params"]["protocolVersion"];
                let capabilities = json!({"tools": {"listChanged": true}, "resources": {}, "logging": {}});
                (json!({"protocolVersion": version, "capabilities": capabilities}), self.rng.millis(0, 100))
            }
            "tools/list" if !steady && self.fails_to_list((id, run), &message) => return,
            "tools/list" => self.list(id, steady),
            "resources/list" => {
                let uris = [format!("res://{name}"), "res://both".to_owned()];
                let resources: Vec<Value> = uris.iter().map(|uri| json!({"uri": uri, "name": "r"})).collect();
                (json!({"resources": resources}), self.rng.millis(0, 30))
            }
            "subscriptions/listen" => return self.is_listened_to((id, run), &name, &message),
            "tools/call" => {
                let (tool, nonce) = (&message["params"]["name"], &message["params"]["arguments"]["nonce"]);
                self.judge.is_called(self.agenda.now, nonce.as_u64().expect("a nonce"));
                let text = format!("{name}|{program}|{}|{}|{nonce}", id.0, tool.as_str().expect("a tool"));
                let slowest = if steady { 900 } else { 6_000 };
                (json!({"content": [{"type": "text", "text": text}]}), self.rng.millis(0, slowest))
            }
            "ping" if !steady && self.rng.chance(20) => return,
            _ => (json!({}), self.rng.millis(0, 20)),
        };
        if !steady && method == "tools/call" {
            match self.rng.below(40) {
                0 => return,
                1 => return self.ends(id, 500),
                _ => {}
            }
        }
        if method == "tools/call" {
            self.speaks_of((id, run), &name, &message, delay);
        }
        if self.rng.chance(5) {
            let log = json!({"level": "info", "data": format!("{name}|{}", id.0)});
            let log = json!({"jsonrpc": "2.0", "method": "notifications/message", "params": log});
            self.agenda.plan(delay / 2, Plan::Says(id, run, log));
        }
        let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
        self.agenda.plan(delay, Plan::Says(id, run, answer));
    }

    /// Before it answers a call it may report on it, and ask the client. Servers count their questions alike.
    fn speaks_of(&mut self, (id, run): (ServerId, Run), name: &str, message: &Value, delay: Duration) {
        let params = &message["params"];
        if self.rng.chance(30) && !params["_meta"]["progressToken"].is_null() {
            let text = format!("{name}|{}", params["arguments"]["nonce"]);
            let report =
                json!({"progressToken": params["_meta"]["progressToken"], "progress": 1, "message": text});
            let report = json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": report});
            self.agenda.plan(delay / 2, Plan::Says(id, run, report));
        }
        if self.rng.chance(10) {
            let Some(process) = self.processes.get_mut(&id) else { return };
            let number = process.asked.last_key_value().map_or(1, |(last, _)| last + 1);
            let from = format!("{name}|{}", id.0);
            process.asked.insert(number, from.clone());
            let params = json!({"_meta": {"from": from}});
            let ask = json!({"jsonrpc": "2.0", "id": number, "method": "roots/list", "params": params});
            self.agenda.plan(delay / 3, Plan::Says(id, run, ask));
        }
    }

    /// What it asked is answered by whom it asked, or by outlast for somebody who cannot answer.
    fn is_answered(&mut self, id: ServerId, message: &Value) {
        let (Some(number), Some(process)) = (message["id"].as_u64(), self.processes.get_mut(&id)) else {
            return;
        };
        let Some(from) = process.asked.get(&number) else {
            panic!("{} did not ask under {number}: {message}", process.name)
        };
        let said = &message["result"]["roots"][0]["uri"];
        assert!(message.get("error").is_some() || *said == **from, "{from} asked, and hears {message}");
    }

    /// Now and then a list fails, or is not answered. What outlast asks for itself is asked for again.
    fn fails_to_list(&mut self, (id, run): (ServerId, Run), message: &Value) -> bool {
        // A client's own request, which passes as it is, has parameters without anything in them.
        let own = message["params"] != json!({});
        let (fails, silent) = (self.rng.chance(10), self.rng.chance(20));
        let now = self.agenda.now;
        let Some(process) = self.processes.get_mut(&id) else { return false };
        if own {
            let limit = if silent { Duration::from_secs(5) } else { Duration::ZERO };
            process.failed = fails.then_some(now + limit);
        }
        if fails && !silent {
            let error = json!({"code": -32603, "message": "busy"});
            let answer = json!({"jsonrpc": "2.0", "id": message["id"], "error": error});
            self.agenda.plan(Duration::ZERO, Plan::Says(id, run, answer));
        }
        fails
    }

    pub(super) fn failed_lists_are_asked_for_again(&self) {
        let waits = |process: &&Process| process.alive && !process.ends;
        for process in self.processes.values().filter(waits) {
            let late = process.failed.is_some_and(|failed| self.agenda.now > failed + AGAIN);
            assert!(
                !late,
                "the list of {} failed at {:?}, and nobody asks again",
                process.name, process.failed
            );
        }
    }

    /// Somebody listens: that is acknowledged, and then things change, whether or not anybody listens still.
    fn is_listened_to(&mut self, (id, run): (ServerId, Run), name: &str, message: &Value) {
        let asked = &message["params"]["notifications"];
        let meta = json!({"io.modelcontextprotocol/subscriptionId": message["id"]});
        let says = |method: &str, mut params: Value| {
            params["_meta"] = meta.clone();
            json!({"jsonrpc": "2.0", "method": format!("notifications/{method}"), "params": params})
        };
        let first = self.rng.millis(0, 20);
        let known = says("subscriptions/acknowledged", json!({"notifications": asked}));
        self.agenda.plan(first, Plan::Says(id, run, known));
        for uri in asked["resourceSubscriptions"].as_array().into_iter().flatten() {
            let updated = json!({"uri": uri, "name": name, "server": id.0});
            let later = first + self.rng.millis(1, 3_000);
            self.agenda.plan(later, Plan::Says(id, run, says("resources/updated", updated)));
        }
        let later = first + self.rng.millis(1, 3_000);
        self.agenda.plan(later, Plan::Says(id, run, says("tools/list_changed", json!({}))));
    }

    /// What is listed, and when. Of those that are not steady some are slow, and some never come to an end.
    fn list(&mut self, id: ServerId, steady: bool) -> (Value, Duration) {
        let tools: Vec<Value> = TOOLS.iter().map(|tool| json!({"name": tool})).collect();
        if steady {
            return (json!({"tools": tools}), self.rng.millis(0, 30));
        }
        let odd = id.0 % 5;
        let delay = if odd == 1 { self.rng.millis(1_000, 9_000) } else { self.rng.millis(0, 200) };
        let page = self.processes.get_mut(&id).map_or(0, |process| {
            process.pages += 1;
            process.pages
        });
        match odd {
            2 => (json!({"tools": tools, "nextCursor": "again"}), delay),
            3 if page < 3_000 => (json!({"tools": tools, "nextCursor": page.to_string()}), Duration::ZERO),
            _ => (json!({"tools": tools}), delay),
        }
    }
}
