//! A server behind pipes with every bad habit we could name.

use super::rng::Rng;
use bytes::Bytes;
use outlast_engine::Event;
use outlast_engine::event::Exit;
use outlast_engine::id::{Run, ServerId};
use outlast_engine::limits::{ASKS, BAD_LINE_SHOWN, SESSION_BYTES, STDERR_TAIL, STREAM_EVENTS};
use outlast_engine::wire::{Field, Message, Oversized, Scanned, Shape, scan};
use std::time::Duration;

/// What a process does.
#[derive(Debug)]
pub(super) enum Deed {
    Says(Vec<u8>),
    /// Says more than anybody reads, as the answer to this id.
    Oversized(String),
    /// Writes to stderr.
    Complains(Vec<u8>),
    Closes,
    Exits(Exit),
    StopsReading,
}

impl Deed {
    /// It comes out of the same pipe as what was said before.
    pub(super) fn keeps_its_place(&self) -> bool {
        matches!(self, Deed::Says(_) | Deed::Oversized(_) | Deed::Closes)
    }

    pub(super) fn event(self, server: ServerId, run: Run) -> Event {
        match self {
            Deed::Says(line) => Event::FromServer(server, run, scan(line.into())),
            Deed::Oversized(id) => {
                Event::ServerOversized(server, run, Oversized { id: Some(id.into()), answer: true })
            }
            Deed::Complains(bytes) => Event::Stderr(server, run, bytes.into()),
            Deed::Closes => Event::OutputClosed(server, run),
            Deed::Exits(exit) => Event::Exited(server, run, exit),
            Deed::StopsReading => Event::InputBroken(server, run, Vec::new()),
        }
    }
}

#[derive(Debug)]
pub(super) struct Process {
    pub(super) run: Run,
    alive: bool,
    asks: bool,
    crashes: bool,
    /// Its number, if it speaks of what it was not asked.
    forges: Option<u32>,
    /// It says more than is kept for a client that is away.
    floods: bool,
    /// The last id that it was sent.
    last: u64,
    next_ask: u64,
    pub(super) deeds: Vec<(Duration, Run, Deed)>,
}

impl Process {
    pub(super) fn new(asks: bool, crashes: bool, forges: Option<u32>) -> Process {
        Process {
            run: Run(0),
            alive: true,
            asks,
            crashes,
            forges,
            floods: false,
            last: 0,
            next_ask: 0,
            deeds: Vec::new(),
        }
    }

    pub(super) fn flooding(self, floods: bool) -> Process {
        Process { floods, ..self }
    }

    fn act(&mut self, after: Duration, deed: Deed) {
        self.deeds.push((after, self.run, deed));
    }

    pub(super) fn fails_to_start(&self, rng: &mut Rng) -> bool {
        self.crashes && rng.chance(20)
    }

    pub(super) fn starts(&mut self, run: Run) {
        self.run = run;
        self.alive = true;
    }

    fn say(&mut self, after: Duration, line: impl Into<Vec<u8>>) {
        self.act(after, Deed::Says(line.into()));
    }

    fn die(&mut self, rng: &mut Rng, after: Duration, exit: Exit) {
        if !self.alive {
            return;
        }
        self.alive = false;
        if rng.chance(30) {
            self.act(after, Deed::Complains(complaint(rng)));
        }
        if let Some(server) = self.forges {
            // What holds its pipe open speaks on when another process runs, and knows which ids come next.
            for number in 1..20 {
                let late = after + rng.millis(500, 5_000);
                self.act(late, Deed::Says(forgery(server, self.last + number, 0).into_bytes()));
            }
        }
        let (first, second) = (after, after + rng.millis(0, 400));
        if rng.chance(50) {
            self.act(first, Deed::Closes);
            self.act(second, Deed::Exits(exit));
        } else {
            self.act(first, Deed::Exits(exit));
            if rng.chance(80) {
                self.act(second, Deed::Closes);
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

    /// It ends at once, or where the system lets it wait for a disk, later than anybody waits for it.
    pub(super) fn killed(&mut self, rng: &mut Rng) {
        if self.alive {
            self.alive = false;
            let after = if rng.chance(10) { Duration::from_secs(2) } else { Duration::from_millis(1) };
            self.act(after, Deed::Exits(Exit::Signal(9)));
            self.act(after, Deed::Closes);
        }
    }

    /// Asks more than may be open at once.
    pub(super) fn ask_too_much(&mut self) {
        for _ in 0..ASKS + 10 {
            self.next_ask += 1;
            let question = format!(r#"{{"id":{},"method":"roots/list","params":{{}}}}"#, self.next_ask);
            self.say(Duration::from_millis(1), question);
        }
    }

    pub(super) fn receive(&mut self, rng: &mut Rng, line: &Bytes) {
        let Ok(Scanned::Message(message)) = scan(line.clone()) else {
            panic!("the server got a bad line: {line:?}")
        };
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
        self.last = id.trim_matches('"').parse().unwrap_or(self.last);
        let nonce = nonce(&message.bytes);
        let answer = answer(message);
        let soon = rng.millis(0, 150);
        if message.text(Field::Method).as_deref() == Some("initialize") {
            let refuses = self.run > Run(0) && rng.chance(10);
            let error = format!(r#"{{"id":{id},"error":{{"code":1,"message":"no"}}}}"#);
            return self.say(soon, if refuses { error } else { answer });
        }
        if let Some(server) = self.forges.filter(|_| rng.chance(15)) {
            for deed in forgeries(rng, server, &id) {
                self.act(rng.millis(0, 300), deed);
            }
        }
        if self.floods && rng.chance(3) {
            return self.flood(rng, &nonce, answer);
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
            46..47 => self.act(soon, Deed::Oversized(id)),
            47..49 => {
                let log = format!(r#"{{"method":"notifications/message","params":{{"nonce":"{nonce}"}}}}"#);
                self.say(soon, format!("[{log},{answer}]"));
            }
            49..50 => self.say(soon, error(&id, &nonce)),
            50..55 if self.asks => self.ask(rng, &nonce, answer),
            55..56 if self.crashes && rng.chance(20) => {
                self.act(soon, Deed::StopsReading);
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
        for report in reports(rng, &token) {
            at += rng.millis(0, 900);
            self.say(at, report);
        }
        self.say(at + rng.millis(0, 500), answer);
        if rng.chance(20) {
            self.say(at + rng.millis(500, 600), format!(r#"{{"method":"notifications/progress","params":{{"progressToken":{token},"progress":99}}}}"#));
        }
    }

    /// Says more than one stream may keep before the answer, or an answer that is more than a session may keep.
    fn flood(&mut self, rng: &mut Rng, nonce: &str, answer: String) {
        if rng.chance(20) {
            let long = "x".repeat(SESSION_BYTES);
            let answer = answer.replace("\"odd\":", &format!("\"long\":\"{long}\",\"odd\":"));
            return self.say(rng.millis(0, 3_000), answer);
        }
        let log = format!(r#"{{"method":"notifications/message","params":{{"nonce":"{nonce}"}}}}"#);
        let mut at = Duration::ZERO;
        for _ in 0..STREAM_EVENTS + 100 {
            at += Duration::from_micros(rng.between(0, 4_000));
            self.say(at, log.clone());
        }
        self.say(at, answer);
    }

    /// Asks the client something first; the answer does not wait for it.
    fn ask(&mut self, rng: &mut Rng, nonce: &str, answer: String) {
        self.next_ask += 1;
        let (id, question) = question(rng, self.next_ask, nonce);
        self.say(Duration::from_millis(1), question);
        if rng.chance(15) {
            self.say(
                rng.millis(1, 2_000),
                format!(r#"{{"method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#),
            );
        }
        self.say(rng.millis(1, 4_000), answer);
    }
}

/// What a hostile server says of ids near this one, whoever they belong to.
fn forgeries(rng: &mut Rng, server: u32, id: &str) -> Vec<Deed> {
    let known: u64 = id.trim_matches('"').parse().unwrap_or(0);
    let near = |rng: &mut Rng| (known + rng.between(0, 8)).saturating_sub(4);
    let count = rng.below(5) + 1;
    (0..count)
        .map(|_| match (near(rng), rng.below(12)) {
            (other, 0) if other != known => Deed::Oversized(other.to_string()),
            (other, what) => Deed::Says(forgery(server, other, what).into_bytes()),
        })
        .collect()
}

/// Something that a hostile server says of this id.
pub(super) fn forgery(server: u32, id: u64, what: usize) -> String {
    match what % 4 {
        0 => format!(r#"{{"id":{id},"result":{{"forged":{server}}}}}"#),
        1 => format!(
            r#"{{"id":"{id}","error":{{"code":-9,"message":"forged","data":{{"forged":{server}}}}}}}"#
        ),
        2 => format!(
            r#"{{"method":"notifications/progress","params":{{"progressToken":{id},"progress":0.5,"message":"by server {server}"}}}}"#
        ),
        _ => format!(r#"{{"method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#),
    }
}

/// Things that are the same only byte for byte.
const ODD: [&str; 8] = [
    "1.0",
    "123456789012345678901234567890",
    "-0",
    "1e400",
    r#""\u00e9\ud83d\ude00\u2028""#,
    r#"{"b" : [ 1 ,2 ],"a":{}}"#,
    r#""\/é☃""#,
    "[[],{},\"\",null, true]",
];

/// One of these; the same for the same mark.
pub(super) fn odd(nonce: &str) -> &'static str {
    ODD[nonce.bytes().map(usize::from).sum::<usize>() % ODD.len()]
}

/// The same, without the number that is too large for whoever reads it as a number.
pub(super) fn odd_but_small(nonce: &str) -> &'static str {
    Some(odd(nonce)).filter(|odd| *odd != "1e400").unwrap_or("1e-400")
}

/// The answer to a request. A handshake is agreed to, whatever version it asks for.
pub(super) fn answer(message: &Message) -> String {
    let id = message.raw(Field::Id).map(String::from_utf8_lossy).unwrap_or_default();
    let nonce = nonce(&message.bytes);
    let version = member(&message.bytes, "protocolVersion");
    let agreed = Some(version).filter(|version| !version.is_empty());
    let agreed = agreed.map(|version| format!(r#","protocolVersion":"{version}","capabilities":{{}}"#));
    let agreed = agreed.unwrap_or_default();
    let odd = odd(&nonce);
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[],"nonce":"{nonce}"{agreed},"odd":{odd}}}}}"#
    )
}

/// An error of the server's own.
pub(super) fn error(id: &str, nonce: &str) -> String {
    format!(r#"{{"id":{id},"error":{{"code":-5,"message":"no","data":{{"nonce":"{nonce}"}}}}}}"#)
}

/// Reports that rise, fall, repeat or are no numbers.
pub(super) fn reports(rng: &mut Rng, token: &str) -> Vec<String> {
    let count = rng.below(8);
    let report = |step: usize| {
        let value = match rng.below(10) {
            0 => "\"half\"".to_owned(),
            1 => "0".to_owned(),
            2 => "1e308".to_owned(),
            3 => format!("{step}.5"),
            _ => step.to_string(),
        };
        let total = if rng.chance(50) { r#","total":4"# } else { "" };
        format!(
            r#"{{"method":"notifications/progress","params":{{"progressToken":{token},"progress":{value}{total}}}}}"#
        )
    };
    (0..count).map(report).collect()
}

/// A question about a request, and its id.
pub(super) fn question(rng: &mut Rng, number: u64, nonce: &str) -> (String, String) {
    let method = ["elicitation/create", "sampling/createMessage", "roots/list", "ping"][rng.below(4)];
    let id = if rng.chance(50) { format!("\"s{number}\"") } else { number.to_string() };
    let question = format!(r#"{{"id":{id},"method":"{method}","params":{{"nonce":"{nonce}"}}}}"#);
    (id, question)
}

/// The word by which a request's answer is known again.
pub(super) fn nonce(bytes: &[u8]) -> String {
    member(bytes, "nonce")
}

/// What nobody may change of a request: everything from the name of its tool on.
pub(super) fn tail(bytes: &[u8]) -> &[u8] {
    let at = memchr::memmem::find(bytes, b"\"name\":");
    at.map_or(b"", |at| &bytes[at..])
}

/// The text of the first member of this name, wherever it stands.
pub(super) fn member(bytes: &[u8], name: &str) -> String {
    let text = String::from_utf8_lossy(bytes);
    let after = text.split_once(&format!("\"{name}\":\"")).map_or("", |(_, after)| after);
    after.split('"').next().unwrap_or_default().to_owned()
}

/// What a server writes to stderr before it ends: some lines, or more than is kept.
fn complaint(rng: &mut Rng) -> Vec<u8> {
    let lines = [3, 200, STDERR_TAIL][rng.below(3)];
    (0..lines).flat_map(|line| format!("e{}\n", line % 10).into_bytes()).collect()
}

fn noise(rng: &mut Rng) -> Vec<u8> {
    if rng.chance(10) {
        return "Loading… ".repeat(BAD_LINE_SHOWN).into_bytes();
    }
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
