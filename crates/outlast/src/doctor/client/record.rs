//! What the client did, as it happened: who it is, what it declared, and the fate of each call.
//!
//! Not here: what that says about it (`profile.rs`).

use outlast_engine::Mono;
use serde_json::Value;
use std::time::Duration;

/// Calls that are remembered. One more is refused.
pub const CALLS: usize = 200;

/// The tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Probe {
    Silence,
    Progress,
    Elicitation,
    Report,
}

impl Probe {
    pub const ALL: [Probe; 4] = [Probe::Silence, Probe::Progress, Probe::Elicitation, Probe::Report];

    pub fn name(self) -> &'static str {
        match self {
            Probe::Silence => "probe_silence",
            Probe::Progress => "probe_progress",
            Probe::Elicitation => "probe_elicitation",
            Probe::Report => "probe_report",
        }
    }
}

/// What became of a call; times since it began.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    Running,
    Answered(Duration),
    /// With the client's reason.
    Cancelled(Duration, String),
    /// The client closed the connection.
    Closed(Duration),
}

/// One call of a probe.
#[derive(Clone, Debug)]
pub struct Call {
    pub id: Value,
    pub probe: Probe,
    pub began: Mono,
    /// How long it is to take.
    pub planned: Duration,
    pub token: Option<Value>,
    /// Progress that was sent.
    pub reports: u32,
    pub fate: Fate,
    /// When another call came although this one ran: its client may have given up in silence.
    pub overtaken: Option<Duration>,
    /// Goes out with the answer. Coming back, it proves that the answer arrived.
    pub receipt: String,
    pub received: bool,
}

/// How the question to the person went.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Elicited {
    #[default]
    NotTried,
    NotDeclared,
    Asked(Mono),
    /// The action that was chosen.
    Answered(String, Duration),
    Refused(String, Duration),
    Silence(Duration),
}

/// Everything so far.
#[derive(Debug, Default)]
pub struct Record {
    pub name: Option<String>,
    pub version: Option<String>,
    /// The version in which the client said `initialize`.
    pub legacy: Option<String>,
    /// The version in a modern request.
    pub modern: Option<String>,
    /// As declared last.
    pub capabilities: Option<Value>,
    pub calls: Vec<Call>,
    pub elicited: Elicited,
    pub closed: bool,
}

impl Record {
    /// Notes a new call; its place.
    pub fn begin(&mut self, call: Call) -> usize {
        for earlier in self.calls.iter_mut().filter(|call| call.fate == Fate::Running) {
            earlier.overtaken.get_or_insert(call.began.since(earlier.began));
        }
        self.calls.push(call);
        self.calls.len() - 1
    }

    pub fn cancel(&mut self, id: &Value, reason: &str, now: Mono) {
        let mut running = self.calls.iter_mut().filter(|call| call.fate == Fate::Running);
        if let Some(call) = running.find(|call| call.id == *id) {
            call.fate = Fate::Cancelled(now.since(call.began), reason.to_owned());
        }
    }

    /// The connection has ended, and with it every call.
    pub fn close(&mut self, now: Mono) {
        self.closed = true;
        for call in self.calls.iter_mut().filter(|call| call.fate == Fate::Running) {
            call.fate = Fate::Closed(now.since(call.began));
        }
    }

    /// Takes a call as answered, if nobody has taken it back.
    pub fn answer(&mut self, place: usize, now: Mono) -> bool {
        let call = &mut self.calls[place];
        let open = call.fate == Fate::Running;
        if open {
            call.fate = Fate::Answered(now.since(call.began));
        }
        open
    }

    pub fn take_receipts(&mut self, receipts: &[Value]) {
        for call in &mut self.calls {
            call.received |= receipts.iter().any(|receipt| *receipt == call.receipt.as_str());
        }
    }

    pub fn of(&self, probe: Probe) -> impl DoubleEndedIterator<Item = &Call> {
        self.calls.iter().filter(move |call| call.probe == probe)
    }

    /// Whether the client shows forms to its person. Nothing inside means forms.
    pub fn takes_forms(&self) -> bool {
        let kinds = self.declared("/elicitation").and_then(Value::as_object);
        kinds.is_some_and(|kinds| kinds.is_empty() || kinds.contains_key("form"))
    }

    /// A member of what the client declared.
    pub fn declared(&self, pointer: &str) -> Option<&Value> {
        self.capabilities.as_ref()?.pointer(pointer)
    }
}
