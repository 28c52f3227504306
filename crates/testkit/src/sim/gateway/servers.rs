//! The processes behind the doors, and what is wrong with them.

use super::{Plan, STEADY, TOOLS, World, name_of};
use bytes::Bytes;
use outlast_engine::event::{Exit, StartFailure};
use outlast_engine::id::{Run, ServerId};
use outlast_engine::{Action, Event};
use serde_json::{Value, json};
use std::time::Duration;

/// One process.
#[derive(Debug)]
pub(super) struct Process {
    name: String,
    program: u64,
    run: Run,
    alive: bool,
    /// Pages of a list that has no end.
    pages: u64,
}

impl Process {
    pub(super) fn runs(&self, run: Run) -> bool {
        self.alive && self.run == run
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
        let process = Process { name, program: defined.program, run, alive: !fails, pages: 0 };
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
        let Some(run) = self.processes.get(&id).map(|process| process.run) else { return };
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
        let Some(method) = message["method"].as_str().filter(|_| message.get("id").is_some()) else { return };
        let steady = is_steady(&name);
        let (result, delay) = match method {
            "initialize" => {
                let version = &message["params"]["protocolVersion"];
                let capabilities = json!({"tools": {"listChanged": true}, "resources": {}, "logging": {}});
                (json!({"protocolVersion": version, "capabilities": capabilities}), self.rng.millis(0, 100))
            }
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
        if self.rng.chance(5) {
            let log = json!({"level": "info", "data": format!("{name}|{}", id.0)});
            let log = json!({"jsonrpc": "2.0", "method": "notifications/message", "params": log});
            self.agenda.plan(delay / 2, Plan::Says(id, run, log));
        }
        let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
        self.agenda.plan(delay, Plan::Says(id, run, answer));
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
