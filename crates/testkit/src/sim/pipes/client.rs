//! A client that asks, cancels, answers questions, writes nonsense, and leaves.

use super::Plan;
use crate::sim::process::{member, odd};
use crate::sim::rng::Rng;
use bytes::Bytes;
use outlast_engine::limits::HANDSHAKE_BYTES;
use outlast_engine::wire::{Field, Scanned, Shape, scan};
use std::time::Duration;

#[derive(Debug)]
pub(super) struct Client {
    left: usize,
    next: usize,
    /// It may ask for tasks.
    tasks: bool,
    pub(super) plans: Vec<(Duration, Plan)>,
}

impl Client {
    /// `long`: its handshake is longer than what is kept of one. `elicits`: it can show a form to its user.
    pub(super) fn new(calls: usize, long: bool, tasks: bool, elicits: bool) -> Client {
        let more = if long { "x".repeat(HANDSHAKE_BYTES) } else { String::new() };
        let version = match (elicits, tasks) {
            (true, _) => r#""protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"#,
            (false, true) => r#""protocolVersion":"2025-11-25","capabilities":{},"#,
            (false, false) => "",
        };
        let initialize = format!(
            r#"{{"jsonrpc":"2.0","id":"init","method":"initialize","params":{{{version}"nonce":"ninit","more":"{more}"}}}}"#
        );
        let initialized = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#.to_owned();
        let plans = [initialize, initialized].map(|line| (Duration::ZERO, Plan::ClientSends(line)));
        Client { left: calls, next: 0, tasks, plans: plans.into() }
    }

    pub(super) fn done(&self) -> bool {
        self.left == 0
    }

    pub(super) fn send(&mut self, line: String) {
        self.plans.push((Duration::from_micros(200), Plan::ClientSends(line)));
    }

    /// Sends the next request or array, and plans the one after it; at the end it leaves.
    pub(super) fn act(&mut self, rng: &mut Rng) {
        if self.left == 0 {
            // Time for what is under way, or none.
            let wait = if rng.chance(50) { rng.millis(0, 50) } else { Duration::from_secs(200) };
            self.plans.push((wait, Plan::ClientEof));
            return;
        }
        match rng.below(100) {
            0..2 => self.send(nonsense(rng)),
            2..5 => self.batch(rng),
            5..8 => self.send(format!(r#"{{"method":"notifications/odd","params":{{"n":{}}}}}"#, self.next)),
            8..9 => self.plans.push((Duration::ZERO, Plan::Slept)),
            _ => {
                let request = self.request(rng);
                self.send(request);
            }
        }
        let pause = if rng.chance(70) { rng.millis(0, 5) } else { rng.millis(0, 400) };
        self.plans.push((pause, Plan::ClientActs));
    }

    /// Calls a tool; `params` stand before its name.
    pub(super) fn call(&mut self, method: &str, tool: &str, params: &str) {
        let n = self.next;
        self.next += 1;
        let odd = odd(&format!("n{n}"));
        self.send(format!(
            r#"{{"jsonrpc":"2.0","id":{n},"method":"{method}","params":{{{params}"name":"{tool}","nonce":"n{n}","odd":{odd}}}}}"#
        ));
    }

    fn batch(&mut self, rng: &mut Rng) {
        let count = rng.below(5) + 1;
        let members: Vec<String> = (0..count)
            .map(|_| match rng.below(4) {
                0 => r#"{"method":"notifications/in_array"}"#.to_owned(),
                _ => self.request(rng),
            })
            .collect();
        self.send(format!("[{}]", members.join(",")));
    }

    fn request(&mut self, rng: &mut Rng) -> String {
        self.left = self.left.saturating_sub(1);
        let n = self.next;
        self.next += 1;
        let id = match rng.below(4) {
            0 => format!("\"c{n}\""),
            1 => format!("9007199254{n:09}123"),
            _ => n.to_string(),
        };
        let method = match rng.below(20) {
            0 => "tools/list",
            1 => "resources/read",
            2 => "prompts/get",
            3 => "ping",
            4 => "vendor/thing",
            5 => "subscriptions/listen",
            _ => "tools/call",
        };
        let token = match rng.below(3) {
            0 => String::new(),
            1 => format!(r#""_meta":{{"progressToken":{n}}},"#),
            _ => format!(r#""_meta":{{"x":1,"progressToken":"tok{n}"}},"#),
        };
        if rng.chance(12) || method == "subscriptions/listen" {
            let after = if rng.chance(50) { rng.millis(0, 20) } else { rng.millis(0, 4_000) };
            self.plans.push((after, Plan::ClientCancels(n)));
        }
        let tool = rng.below(4);
        let task = self.tasks && method == "tools/call" && rng.chance(15);
        let task = if task { r#""task":{},"# } else { "" };
        // Few enough keys that many calls meet, and now and then one of another tool.
        let key = match rng.below(10) {
            0 | 1 => format!(r#""idempotencyKey":"k{tool}-{}","#, rng.below(4)),
            2 if rng.chance(20) => r#""idempotencyKey":"k1-0","#.to_owned(),
            _ => String::new(),
        };
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{{token}{task}{key}"name":"t{tool}","nonce":"n{n}","odd":{}}}}}"#,
            odd(&format!("n{n}"))
        )
    }

    /// Cancels by any of the ids that the request may have; all but one of them are unknown.
    pub(super) fn cancel(&mut self, n: usize) {
        for id in [format!("\"c{n}\""), format!("9007199254{n:09}123"), n.to_string()] {
            self.send(format!(r#"{{"method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#));
        }
    }

    /// Waits for the answer of a task, at once or when it has ended; some are forgotten.
    fn fetch(&mut self, rng: &mut Rng, task: &str) {
        if task.is_empty() || rng.chance(10) {
            return;
        }
        let n = self.next;
        self.next += 1;
        let line = format!(
            r#"{{"jsonrpc":"2.0","id":{n},"method":"tasks/result","params":{{"taskId":"{task}","nonce":"n{n}"}}}}"#
        );
        let after = if rng.chance(50) { rng.millis(0, 20) } else { rng.millis(0, 8_000) };
        self.plans.push((after, Plan::ClientSends(line)));
    }

    /// Answers most questions, after a while, some twice.
    pub(super) fn receive(&mut self, rng: &mut Rng, line: &Bytes) {
        let Ok(Scanned::Message(message)) = scan(line.clone()) else { return };
        if message.shape == Shape::Answer {
            return self.fetch(rng, &member(&message.bytes, "taskId"));
        }
        let (Shape::Request, Some(id)) = (message.shape, message.raw(Field::Id)) else { return };
        let id = String::from_utf8_lossy(id).into_owned();
        if rng.chance(10) {
            return;
        }
        let answer = format!(r#"{{"id":{id},"result":{{"answer":{id}}}}}"#);
        let after = rng.millis(0, 3_000);
        if rng.chance(5) {
            self.plans.push((after, Plan::ClientSends(answer.clone())));
        }
        self.plans.push((after, Plan::ClientSends(answer)));
    }
}

fn nonsense(rng: &mut Rng) -> String {
    let lines = [
        "hello",
        "{",
        r#"{"id":"bad"}"#,
        "[]",
        r#"{"id":"bad","id":"worse","method":"x"}"#,
        "17",
        r#"{"id":{},"method":"x"}"#,
        r#"{"id":"unknown","result":{}}"#,
        r#"{"method":"notifications/cancelled","params":{"requestId":"never"}}"#,
    ];
    lines[rng.below(lines.len())].to_owned()
}
