//! The servers: what a tool does is in its name.
//!
//! `safe_…` may be repeated, by a rule; `held_…` needs a person's yes; any but the first acts. `…_slow` takes longer than a client waits for a plain
//! answer, `…_even` exactly as long, `…_asks` asks its client something first, `…_dies` takes its server with
//! it. Every run of a tool has a number, which is in its answer: two runs never answer the same.

use super::{Plan, SERVERS, World};
use crate::sim::process::{forgery, member, odd_but_small};
use bytes::Bytes;
use outlast_engine::event::{Exit, Line};
use outlast_engine::id::{AttemptId, Run, ServerId};
use outlast_engine::wire::scan;
use outlast_engine::{Action, Event};
use serde_json::{Value, json};
use std::time::Duration;

/// How long a modern call may take before it becomes a task.
pub(super) const PATIENCE: Duration = Duration::from_millis(500);

/// How long a server waits for an answer of its client.
const ASKS: Duration = Duration::from_secs(4);

/// Where an answer goes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Back {
    pub(super) life: usize,
    server: ServerId,
    run: Run,
    attempt: Option<AttemptId>,
}

impl World {
    pub(super) fn tell_server(&mut self, life: usize, action: Action) {
        let run = |server: &ServerId| self.lives[life].servers.get(server).copied().unwrap_or_default();
        let (server, plan) = match action {
            Action::Start(server, run) => {
                self.outcome.runs += 1;
                self.lives[life].servers.insert(server, run);
                (server, Plan::Reaches(life, Event::Started(server, run)))
            }
            Action::ToServer(server, message) => {
                (server, Plan::Serves(life, server, run(&server), None, message.to_vec().into()))
            }
            Action::Post(server, post) => {
                let bytes = post.message.to_vec().into();
                (server, Plan::Serves(life, server, run(&server), post.attempt, bytes))
            }
            Action::CloseInput(server) | Action::Terminate(server) | Action::Kill(server) => {
                return self.server_ends(life, server, run(&server), 0);
            }
            Action::Stand(_) | Action::Abandon(..) => return,
            action => panic!("{action:?} in a world of crashes"),
        };
        let after = self.rng.millis(0, 4);
        let line = SERVERS + ((life as u64) << 12) + u64::from(server.0);
        self.agenda.plan_in_order(line, after, plan);
    }

    /// Every server of a process ends at once.
    pub(super) fn kill_servers(&mut self, life: usize) {
        let servers: Vec<(ServerId, Run)> =
            self.lives[life].servers.iter().map(|(id, run)| (*id, *run)).collect();
        for (server, run) in servers {
            if self.gone.insert((life, server, run)) {
                self.agenda.plan(Duration::ZERO, Plan::Reaches(life, Event::OutputClosed(server, run)));
                self.agenda
                    .plan(Duration::ZERO, Plan::Reaches(life, Event::Exited(server, run, Exit::Signal(9))));
            }
        }
    }

    fn server_ends(&mut self, life: usize, server: ServerId, run: Run, status: u8) {
        if self.gone.insert((life, server, run)) {
            let (soon, exit) = (Duration::from_millis(2), Exit::Code(status));
            self.agenda.plan(soon, Plan::Reaches(life, Event::OutputClosed(server, run)));
            self.agenda.plan(soon, Plan::Reaches(life, Event::Exited(server, run, exit)));
        }
    }

    /// A message reaches a server, also if whoever sent it has ended meanwhile.
    pub(super) fn serve(
        &mut self,
        life: usize,
        server: ServerId,
        run: Run,
        attempt: Option<AttemptId>,
        bytes: &Bytes,
    ) {
        if self.gone.contains(&(life, server, run)) {
            return;
        }
        let back = Back { life, server, run, attempt };
        let message: Value = serde_json::from_slice(bytes).expect("a message to a server");
        let (id, params) = (message["id"].clone(), &message["params"]);
        let own = id.to_string().trim_matches('"').parse().ok().filter(|_| message["method"].is_string());
        if let Some(own) = own {
            self.judge.sent.insert((life, server, own));
            if self.forges {
                self.forge(back, own);
            }
        }
        match message["method"].as_str() {
            Some("tools/call") => self.call(back, &id, params),
            Some("initialize") => {
                let version = &params["protocolVersion"];
                let result =
                    json!({"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": {}});
                self.answer(back, &id, &result, Duration::ZERO);
            }
            Some(_) if id.is_null() => {}
            Some(_) => self.answer(back, &id, &json!({"resultType": "complete"}), Duration::ZERO),
            None => {
                if let Some((back, answer)) = self.judge.asked.remove(id.as_str().unwrap_or_default()) {
                    self.say(back, &answer, Duration::from_millis(300));
                }
            }
        }
    }

    fn call(&mut self, back: Back, id: &Value, params: &Value) {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (tool, nonce) = (text(&params["name"]), text(&params["arguments"]["nonce"]));
        let number = self.runs(&nonce);
        let mut result = json!({"content": [], "nonce": nonce, "run": number, "odd": null});
        if params["_meta"]["io.modelcontextprotocol/protocolVersion"].is_string() {
            result["resultType"] = "complete".into();
        }
        let error =
            json!({"code": -5, "message": "no", "data": {"nonce": nonce, "run": number, "odd": null}});
        let what = tool.split_once('_').map_or("", |(_, what)| what);
        match what {
            "slow" => self.answer(back, id, &result, Duration::from_secs(2)),
            "even" => self.answer(back, id, &result, PATIENCE),
            "fails" => {
                result["isError"] = true.into();
                self.answer(back, id, &result, Duration::from_secs(1));
            }
            "errs" => {
                let answer = json!({"jsonrpc": "2.0", "id": id, "error": error});
                self.say(back, &answer, Duration::from_secs(1));
            }
            "asks" => {
                let answer = json!({"jsonrpc": "2.0", "id": id, "result": result});
                self.ask(back, number, answer);
            }
            "dies" => {
                self.server_ends(back.life, back.server, back.run, 1);
            }
            _ => self.answer(back, id, &result, Duration::from_millis(5)),
        }
    }

    fn ask(&mut self, back: Back, number: usize, answer: Value) {
        let id = format!("q{number}");
        let params = json!({"message": "?", "mode": "form", "requestedSchema": {"type": "object"}});
        let question = json!({"jsonrpc": "2.0", "id": id, "method": "elicitation/create", "params": params});
        // Later than the patience of a modern client: a task is what shows it.
        self.say(back, &question, PATIENCE * 2);
        // It does not wait for ever.
        self.say(back, &answer, ASKS);
        self.judge.asked.insert(id, (back, answer));
    }

    fn answer(&mut self, back: Back, id: &Value, result: &Value, after: Duration) {
        self.say(back, &json!({"jsonrpc": "2.0", "id": id, "result": result}), after);
    }

    /// A hostile server speaks of what others were asked: nobody may hear of it.
    fn forge(&mut self, back: Back, own: u64) {
        for what in 0..self.rng.below(4) {
            let other = own.saturating_sub(self.rng.between(1, 4));
            if !self.judge.sent.contains(&(back.life, back.server, other)) {
                let forged = scan(Bytes::from(forgery(back.server.0, other, what)));
                let after = self.rng.millis(0, 50);
                self.say_line(back, forged, after);
            }
        }
    }

    fn say(&mut self, back: Back, message: &Value, after: Duration) {
        let text = message.to_string();
        let odd = odd_member(&member(text.as_bytes(), "nonce"));
        self.say_line(back, scan(Bytes::from(text.replacen("\"odd\":null", &odd, 1))), after);
    }

    fn say_line(&mut self, back: Back, line: Line, after: Duration) {
        let Back { life, server, run, attempt } = back;
        let event = match attempt.filter(|_| self.is_remote()) {
            Some(attempt) => Event::FromStream(server, run, attempt, line),
            None => Event::FromServer(server, run, line),
        };
        self.agenda.plan(after + self.rng.millis(0, 4), Plan::Reaches(life, event));
    }
}

/// What is the same only byte for byte, as part of the answer to a call.
pub(super) fn odd_member(nonce: &str) -> String {
    format!("\"odd\" : {}", odd_but_small(nonce))
}
