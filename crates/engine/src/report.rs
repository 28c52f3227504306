//! What is told of servers to people who ask: where each stands, and what is wrong with it.

/// Where a server stands, the worst last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Condition {
    /// Nobody has needed it yet.
    NotStarted,
    /// It was stopped because nobody used it.
    Asleep,
    /// It answers.
    Ready,
    /// It runs, and has not answered yet.
    Starting,
    /// It has ended, or is about to, and is started again.
    Restarting,
    /// It could not be started or reached several times in a row.
    Failed,
}

impl Condition {
    /// In a word.
    pub fn word(self) -> &'static str {
        match self {
            Condition::NotStarted => "not-started",
            Condition::Asleep => "asleep",
            Condition::Ready => "ready",
            Condition::Starting => "starting",
            Condition::Restarting => "restarting",
            Condition::Failed => "failed",
        }
    }
}

/// A server of the file, with all processes and sessions that there are of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Its name.
    pub name: Box<str>,
    /// Where it stands; of several processes the one that is worst off decides.
    pub condition: Condition,
    /// Processes that run, or sessions of a remote one.
    pub running: usize,
    /// How often a process of it was started again.
    pub restarts: u32,
    /// Calls that it has.
    pub in_flight: usize,
    /// It has answered a handshake of the legacy era.
    pub legacy: bool,
    /// It has answered in the modern era.
    pub modern: bool,
    /// What it calls itself, and its version.
    pub calls_itself: Option<Box<str>>,
    /// What went wrong last.
    pub error: Option<Box<str>>,
    /// It is left out of merged lists, because it does not speak the era of a client.
    pub left_out: bool,
}

impl Report {
    /// Of a server that nobody has needed yet.
    pub(crate) fn new(name: &str) -> Report {
        Report {
            name: name.into(),
            condition: Condition::NotStarted,
            running: 0,
            restarts: 0,
            in_flight: 0,
            legacy: false,
            modern: false,
            calls_itself: None,
            error: None,
            left_out: false,
        }
    }

    /// The eras that it has shown it speaks, in a word.
    pub fn era(&self) -> Option<&'static str> {
        match (self.legacy, self.modern) {
            (true, true) => Some("both"),
            (true, false) => Some("legacy"),
            (false, true) => Some("modern"),
            (false, false) => None,
        }
    }
}
