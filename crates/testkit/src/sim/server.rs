//! A server with every bad habit we could name.

use super::rng::Rng;
use super::{Character, Plan};
use bytes::Bytes;
use outlast_engine::event::Exit;
use outlast_engine::id::Run;
use outlast_engine::wire::{Field, Message, Scanned, Shape, scan};
use std::time::Duration;

#[derive(Debug)]
pub(super) struct Server {
    pub(super) run: Run,
    alive: bool,
    asks: bool,
    crashes: bool,
    next_ask: u64,
    pub(super) plans: Vec<(Duration, Plan)>,
}

impl Server {
    pub(super) fn new(character: &Character) -> Server {
        let Character { asks, crashes, .. } = *character;
        Server { run: Run(0), alive: true, asks, crashes, next_ask: 0, plans: Vec::new() }
    }

    pub(super) fn fails_to_start(&self, rng: &mut Rng) -> bool {
        self.crashes && rng.chance(20)
    }

    pub(super) fn starts(&mut self, run: Run) {
        self.run = run;
        self.alive = true;
    }

    fn say(&mut self, after: Duration, line: impl Into<Vec<u8>>) {
        self.plans.push((after, Plan::ServerSends(self.run, line.into())));
    }

    fn die(&mut self, rng: &mut Rng, after: Duration, exit: Exit) {
        if !self.alive {
            return;
        }
        self.alive = false;
        let (first, second) = (after, after + rng.millis(0, 400));
        if rng.chance(50) {
            self.plans.push((first, Plan::ServerCloses(self.run)));
            self.plans.push((second, Plan::ServerExits(self.run, exit)));
        } else {
            self.plans.push((first, Plan::ServerExits(self.run, exit)));
            if rng.chance(80) {
                self.plans.push((second, Plan::ServerCloses(self.run)));
            }
        }
    }

    pub(super) fn input_closed(&mut self, rng: &mut Rng) {
        if rng.chance(70) {
            self.die(rng, Duration::from_millis(30), Exit::Code(0));
        }
    }

    pub(super) fn terminated(&mut self, rng: &mut Rng) {
        if rng.chance(70) {
            self.die(rng, Duration::from_millis(20), Exit::Signal(15));
        }
    }

    pub(super) fn killed(&mut self) {
        if self.alive {
            self.alive = false;
            self.plans.push((Duration::from_millis(1), Plan::ServerExits(self.run, Exit::Signal(9))));
            self.plans.push((Duration::from_millis(1), Plan::ServerCloses(self.run)));
        }
    }

    pub(super) fn receive(&mut self, rng: &mut Rng, line: &Bytes) {
        let Ok(Scanned::Message(message)) = scan(line) else { panic!("the server got a bad line: {line:?}") };
        if !self.alive {
            return;
        }
        match message.shape {
            Shape::Request => self.request(rng, &message),
            Shape::Notification | Shape::Answer => {}
        }
    }

    fn request(&mut self, rng: &mut Rng, message: &Message) {
        let text = |field| message.raw(field).map(|raw| String::from_utf8_lossy(raw).into_owned());
        let Some(id) = text(Field::Id) else { return };
        let nonce = nonce(&message.bytes);
        let answer = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"nonce":"{nonce}"}}}}"#);
        let soon = rng.millis(0, 150);
        if nonce == "ninit" {
            let refuses = self.run > Run(0) && rng.chance(10);
            let error = format!(r#"{{"id":{id},"error":{{"code":1,"message":"no"}}}}"#);
            return self.say(soon, if refuses { error } else { answer });
        }
        match rng.below(100) {
            0..8 => {}
            8..16 => self.say(rng.millis(0, 8_000), answer),
            16..34 => self.report(rng, text(Field::MetaProgressToken), answer),
            34..38 => {
                self.say(soon, answer.clone());
                self.say(soon + rng.millis(0, 100), answer);
            }
            38..41 => {
                let other =
                    if id.starts_with('"') { id.trim_matches('"').to_owned() } else { format!("\"{id}\"") };
                self.say(soon, answer.replace(&format!("\"id\":{id}"), &format!("\"id\":{other}")));
            }
            41..43 => self.say(soon, format!(r#"{{"id":{id},"result":{{"nonce":"{nonce}","x":NaN}}}}"#)),
            43..46 => {
                self.say(soon, noise(rng));
                self.say(soon, answer);
            }
            46..47 => self.plans.push((soon, Plan::ServerOversized(self.run, id))),
            47..49 => self.say(soon, format!("[{answer},{{\"method\":\"notifications/message\"}}]")),
            49..50 => self.say(soon, format!(r#"{{"id":{id},"error":{{"code":-5,"message":"{nonce}"}}}}"#)),
            50..55 if self.asks => self.ask(rng, answer),
            55..56 if self.crashes && rng.chance(20) => {
                self.plans.push((soon, Plan::ServerStopsReading(self.run)));
            }
            56..57 if self.crashes => {
                self.say(soon, answer);
                let exit = if rng.chance(50) { Exit::Code(1) } else { Exit::Signal(11) };
                self.die(rng, soon, exit);
            }
            _ => self.say(soon, answer),
        }
    }

    /// Reports that rise, fall, repeat or are no numbers; some after the answer.
    fn report(&mut self, rng: &mut Rng, token: Option<String>, answer: String) {
        let Some(token) = token else { return self.say(Duration::ZERO, answer) };
        let mut at = Duration::ZERO;
        for step in 0..rng.below(8) {
            at += rng.millis(0, 900);
            let value = match rng.below(10) {
                0 => "\"half\"".to_owned(),
                1 => "0".to_owned(),
                2 => "1e308".to_owned(),
                3 => format!("{}.5", step),
                _ => step.to_string(),
            };
            let total = if rng.chance(50) { r#","total":4"# } else { "" };
            self.say(at, format!(r#"{{"method":"notifications/progress","params":{{"progressToken":{token},"progress":{value}{total}}}}}"#));
        }
        self.say(at + rng.millis(0, 500), answer);
        if rng.chance(20) {
            self.say(at + rng.millis(500, 600), format!(r#"{{"method":"notifications/progress","params":{{"progressToken":{token},"progress":99}}}}"#));
        }
    }

    /// Asks the client something first; the answer does not wait for it.
    fn ask(&mut self, rng: &mut Rng, answer: String) {
        self.next_ask += 1;
        let n = self.next_ask;
        let method = ["elicitation/create", "sampling/createMessage", "roots/list", "ping"][rng.below(4)];
        let id = if rng.chance(50) { format!("\"s{n}\"") } else { n.to_string() };
        self.say(Duration::from_millis(1), format!(r#"{{"id":{id},"method":"{method}"}}"#));
        if rng.chance(15) {
            self.say(
                rng.millis(1, 2_000),
                format!(r#"{{"method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#),
            );
        }
        self.say(rng.millis(1, 4_000), answer);
    }
}

/// The word by which a request's answer is known again.
pub(super) fn nonce(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let after = text.split_once("\"nonce\":\"").map_or("", |(_, after)| after);
    after.split('"').next().unwrap_or_default().to_owned()
}

fn noise(rng: &mut Rng) -> Vec<u8> {
    let lines: [&[u8]; 6] = [
        b"Listening on stdio",
        b"{\"level\":\"info\"}",
        b"caf\xe9",
        br#"{"id":99999999,"result":{}}"#,
        br#"{"method":"notifications/progress","params":{"progressToken":"what","progress":1}}"#,
        br#"{"id":[],"method":"x"}"#,
    ];
    lines[rng.below(lines.len())].to_vec()
}
