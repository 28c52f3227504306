//! Follows calls by their steps: what is open, what has ended and how it went, how long tools take.
//!
//! It stands beside the engine under the driver's lock and only takes notes, so no call waits for it and nothing can
//! be lost on the way. What it keeps is bounded: the last [`ENDED`] calls, [`STEPS`] steps of each. Whoever looks on
//! takes a whole state, waits until something has changed ([`Feed::changes`]), and takes the next; so one who is slow
//! misses states in between and nothing else.
//!
//! Not here: how a state is written (`state.rs`), and who may see it.

use super::metrics::{Metrics, Spot};
use super::state::{self, Call, Ended, Proposed, Server, State, Story, StoryOf, StoryStep, Tool};
use outlast_engine::durations::{self, Durations, Tally};
use outlast_engine::hash::IdMap;
use outlast_engine::method::Method;
use outlast_engine::snapshot::{OpenCall, ServerNow, Snapshot};
use outlast_engine::step::{Began, CallNo, Ended as End, ServerWhat, Step, What};
use outlast_engine::store::CallNote;
use outlast_engine::{Wall, limits};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// Calls that are over and still known. One more: the oldest goes.
pub const ENDED: usize = 1_000;

/// Steps of one call. More: of those in the middle only the number is known.
pub const STEPS: usize = 100;

/// Bytes of a step as JSON besides its text, at most.
const STEP: usize = 80;

/// Names of servers that are remembered. One more: it is not told since when it is as it is.
const SERVERS: usize = 1_000;

/// What is known of an open call besides what the engine tells.
#[derive(Debug)]
struct Open {
    began: Began,
    at: Wall,
    story: Steps,
    message: Option<Box<str>>,
    hold: Option<u64>,
    spot: Option<Spot>,
}

/// What happened to a call after it began.
#[derive(Debug, Default)]
struct Steps {
    first: Vec<(Wall, What)>,
    last: VecDeque<(Wall, What)>,
    dropped: u64,
}

/// A call that is over.
#[derive(Debug)]
struct Over {
    no: CallNo,
    began: Began,
    at: Wall,
    end: End,
    story: Steps,
}

/// What is known of a server besides what the engine tells.
#[derive(Debug, Default)]
struct Seen {
    since: Wall,
    restarts: u32,
}

/// What is still to be written down.
#[derive(Debug, Default)]
pub struct Fresh {
    /// How long tools took.
    pub durations: Durations,
    /// Calls that took longer than a second. More than [`ENDED`]: the later ones are not noted.
    pub notes: Vec<CallNote>,
}

impl Fresh {
    /// Whether there is nothing.
    pub fn is_empty(&self) -> bool {
        self.durations.is_empty() && self.notes.is_empty()
    }
}

/// Follows calls.
#[derive(Debug)]
pub struct Feed {
    process: Box<str>,
    open: IdMap<CallNo, Open>,
    over: VecDeque<Over>,
    servers: BTreeMap<Box<str>, Seen>,
    durations: Durations,
    fresh: Fresh,
    /// Something happened in this turn.
    changed: bool,
    changes: Arc<watch::Sender<u64>>,
    /// What is counted, and since when.
    metrics: Option<Box<(Metrics, Wall)>>,
}

impl Steps {
    fn push(&mut self, at: Wall, what: What) {
        if self.first.len() < STEPS / 2 - 1 {
            return self.first.push((at, what));
        }
        if self.last.len() == STEPS / 2 {
            self.last.pop_front();
            self.dropped += 1;
        }
        self.last.push_back((at, what));
    }

    /// All of it, as that of a call that began so.
    fn told(&self, began: &Began, at: Wall) -> Vec<StoryStep> {
        let began = (at, What::Began(Box::new(began.clone())));
        let all = std::iter::once(&began).chain(&self.first).chain(&self.last);
        all.map(|(at, what)| StoryStep { at: at.0, what: what.word().into(), text: what.to_string() })
            .collect()
    }
}

// What happens.
impl Feed {
    /// A feed of the process of this name.
    pub fn new(process: &str) -> Feed {
        Feed {
            process: process.into(),
            open: IdMap::default(),
            over: VecDeque::new(),
            servers: BTreeMap::new(),
            durations: Durations::default(),
            fresh: Fresh::default(),
            changed: false,
            changes: Arc::new(watch::Sender::new(0)),
            metrics: None,
        }
    }

    /// The same, and what happens from now on is counted.
    pub fn measuring(self, now: Wall) -> Feed {
        Feed { metrics: Some(Box::new((Metrics::default(), now))), ..self }
    }

    /// The log was told something of this kind.
    pub fn note(&mut self, kind: &'static str) {
        if let Some(measured) = &mut self.metrics {
            measured.0.note(kind);
        }
    }

    /// Something happened.
    pub fn step(&mut self, now: Wall, step: Step) {
        match step {
            Step::Call(no, what) => self.call(now, no, what),
            Step::Server(step) => self.server(now, step.server, &step.what),
        }
        self.changed = true;
    }

    /// Wakes whoever looks on, once for all that happened in a turn: ten thousand calls may end in one.
    #[inline]
    pub fn wake(&mut self) {
        if std::mem::take(&mut self.changed) && self.changes.receiver_count() > 0 {
            self.changes.send_modify(|count| *count += 1);
        }
    }

    fn call(&mut self, now: Wall, no: CallNo, what: What) {
        if let What::Began(began) = what {
            return self.begins(now, no, *began);
        }
        let Some(open) = self.open.get_mut(&no) else { return };
        if let (Some(measured), Some(spot)) = (&mut self.metrics, open.spot) {
            measured.0.happens(spot, &what);
        }
        match &what {
            What::Progress { message: Some(message) } => open.message = Some(message.clone()),
            What::Held { hold } => open.hold = Some(*hold),
            What::Decided { .. } => open.hold = None,
            What::Ended(end) => {
                let end = *end;
                open.story.push(now, what);
                return self.ends(no, end);
            }
            _ => {}
        }
        open.story.push(now, what);
    }

    fn begins(&mut self, now: Wall, no: CallNo, began: Began) {
        let at = now.before(began.ago);
        let spot = self.metrics.as_mut().map(|measured| measured.0.begins(&began));
        self.open.insert(no, Open { began, at, story: Steps::default(), message: None, hold: None, spot });
    }

    fn ends(&mut self, no: CallNo, end: End) {
        let Some(Open { began, at, story, .. }) = self.open.remove(&no) else { return };
        if let Some(tool) = began.tool.as_deref().filter(|_| began.method == Method::ToolsCall) {
            self.durations.add(&began.server, tool, end.took, end.outcome);
            self.fresh.durations.add(&began.server, tool, end.took, end.outcome);
        }
        if end.took >= limits::SLOW && self.fresh.notes.len() < ENDED {
            self.fresh.notes.push(note_of(&began, at, end));
        }
        if self.over.len() == ENDED {
            self.over.pop_front();
        }
        self.over.push_back(Over { no, began, at, end, story });
    }

    /// What was measured and noted since the last time.
    pub fn fresh(&mut self) -> Fresh {
        std::mem::take(&mut self.fresh)
    }

    /// Whether there is anything of that.
    pub fn has_fresh(&self) -> bool {
        !self.fresh.is_empty()
    }

    fn server(&mut self, now: Wall, name: Box<str>, what: &ServerWhat) {
        if let Some(measured) = &mut self.metrics {
            measured.0.happens_to_server(&name, what);
        }
        if self.servers.len() >= SERVERS && !self.servers.contains_key(&name) {
            return;
        }
        let seen = self.servers.entry(name).or_default();
        seen.since = now;
        seen.restarts += u32::from(matches!(what, ServerWhat::Restarting { .. }));
    }
}

// What is so.
impl Feed {
    /// Tells when something has changed; what it holds means nothing.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// What was counted, and since when; `None` if nothing is.
    pub fn metrics(&self) -> Option<(Metrics, Wall)> {
        self.metrics.as_deref().cloned()
    }

    /// Calls that wait for a person's yes.
    pub fn held(&self) -> usize {
        self.open.values().filter(|open| open.hold.is_some()).count()
    }

    /// What is so, with what the engine says of it. `limits` tells how long a tool of a server may be silent, and how
    /// long it may take.
    pub fn state(
        &self,
        now: Wall,
        snapshot: &Snapshot,
        limits: impl Fn(&str, &str) -> Option<(Option<Duration>, Duration)>,
    ) -> State {
        State {
            version: state::VERSION,
            now: now.0,
            more: snapshot.more as u64,
            calls: snapshot.calls.iter().map(|call| self.open_call(call)).collect(),
            servers: snapshot.servers.iter().map(|server| self.one_server(server)).collect(),
            tools: tools(&self.durations, limits),
            ended: self.over.iter().rev().map(|over| self.ended(over)).collect(),
            ..State::default()
        }
    }

    /// The story of a call that is open, or was not long ago.
    pub fn story(&self, no: CallNo, snapshot: &Snapshot) -> Option<Story> {
        if let Some(over) = self.over.iter().rev().find(|over| over.no == no) {
            let call = serde_json::to_value(self.ended(over)).ok()?;
            let steps = over.story.told(&over.began, over.at);
            return Some(Story { call, steps, dropped: over.story.dropped });
        }
        let open = self.open.get(&no)?;
        let call = snapshot.calls.iter().find(|call| call.no == no).map(|call| self.open_call(call));
        let call = serde_json::to_value(call).ok()?;
        Some(Story { call, steps: open.story.told(&open.began, open.at), dropped: open.story.dropped })
    }

    /// The stories of these calls, the first of them first, until they have this many bytes together.
    pub fn stories<'a>(&self, ids: impl Iterator<Item = &'a str>, most: usize) -> Vec<StoryOf> {
        let over: IdMap<CallNo, &Over> = self.over.iter().map(|over| (over.no, over)).collect();
        let mut bytes = 0;
        let story = |id: &'a str| {
            let no = self.number(id)?;
            let open = self.open.get(&no).map(|open| (&open.story, &open.began, open.at));
            let (story, began, at) =
                open.or_else(|| over.get(&no).map(|over| (&over.story, &over.began, over.at)))?;
            let steps = story.told(began, at);
            Some(StoryOf { id: id.to_owned(), steps, dropped: story.dropped })
        };
        let size = |story: &StoryOf| -> usize { story.steps.iter().map(|step| STEP + step.text.len()).sum() };
        let fits = |story: &StoryOf| {
            bytes += size(story);
            bytes <= most
        };
        ids.filter_map(story).take_while(fits).collect()
    }

    /// The number of a call that this process calls so.
    pub fn number(&self, id: &str) -> Option<CallNo> {
        let (process, number) = id.rsplit_once('.')?;
        let number = number.parse().ok().filter(|_| *process == *self.process)?;
        Some(CallNo(number))
    }

    /// The same, if the call is open.
    pub fn open(&self, id: &str) -> Option<CallNo> {
        self.number(id).filter(|no| self.open.contains_key(no))
    }

    fn id(&self, no: CallNo) -> String {
        format!("{}.{}", self.process, no.0)
    }

    fn open_call(&self, call: &OpenCall) -> Call {
        let open = self.open.get(&call.no);
        Call {
            id: self.id(call.no),
            process: self.process.to_string(),
            server: call.server.to_string(),
            method: call.method.as_str().to_owned(),
            tool: call.tool.as_deref().map(str::to_owned),
            client: call.client.to_string(),
            principal: call.principal.to_string(),
            state: call.place.word().to_owned(),
            began: call.began.0,
            timeout_ms: call.timeout.map(|(timeout, _)| millis(timeout)),
            timeout_left_ms: call.timeout.map(|(_, left)| millis(left)),
            max_ms: millis(call.max),
            last_sign: call.last_sign.0,
            attempts: call.attempts,
            ticket: call.ticket,
            message: open.and_then(|open| open.message.as_deref()).map(str::to_owned),
            hold: open.and_then(|open| open.hold),
        }
    }

    fn one_server(&self, server: &ServerNow) -> Server {
        let seen = self.servers.get(&server.name);
        Server {
            name: server.name.to_string(),
            process: self.process.to_string(),
            state: server.state.to_owned(),
            era: server.era.to_owned(),
            version: server.version.to_string(),
            run: server.run,
            restarts: seen.map_or(0, |seen| seen.restarts),
            since: seen.map_or(0, |seen| seen.since.0),
            in_flight: server.in_flight as u64,
            waiting: server.waiting as u64,
            error: server.error.as_deref().map(str::to_owned),
            stderr: server.stderr.iter().map(ToString::to_string).collect(),
        }
    }

    fn ended(&self, over: &Over) -> Ended {
        let Over { no, began, at, end, .. } = over;
        Ended {
            id: self.id(*no),
            server: began.server.to_string(),
            tool: began.tool.as_deref().map(str::to_owned),
            method: began.method.as_str().to_owned(),
            client: began.client.to_string(),
            principal: began.principal.to_string(),
            began: at.0,
            took_ms: millis(end.took),
            outcome: end.outcome.word().to_owned(),
            kind: end.outcome.kind().map(str::to_owned),
        }
    }
}

fn note_of(began: &Began, at: Wall, end: End) -> CallNote {
    CallNote {
        server: began.server.clone(),
        method: began.method.as_str().into(),
        tool: began.tool.clone().unwrap_or_default(),
        outcome: end.outcome.kind().unwrap_or(end.outcome.word()).into(),
        began: at,
        took_ms: millis(end.took),
        asked: began.bytes,
        answered: end.bytes,
    }
}

/// How long tools took, and the limits that follow from it.
pub fn tools(
    durations: &Durations,
    limits: impl Fn(&str, &str) -> Option<(Option<Duration>, Duration)>,
) -> Vec<Tool> {
    durations
        .iter()
        .map(|(server, tool, tally)| one_tool(server, tool, tally, limits(server, tool)))
        .collect()
}

fn one_tool(server: &str, tool: &str, tally: &Tally, limits: Option<(Option<Duration>, Duration)>) -> Tool {
    let proposed = durations::propose(tally).ok();
    Tool {
        server: server.to_owned(),
        tool: tool.to_owned(),
        calls: tally.calls,
        failures: tally.failures,
        cut_off: tally.cut_off,
        p50: millis(tally.percentile(50)),
        p99: millis(tally.percentile(99)),
        slowest: tally.slowest_ms,
        timeout_ms: limits.and_then(|(timeout, _)| timeout).map(millis),
        max_ms: limits.map(|(_, max)| millis(max)),
        proposed: proposed.map(|proposed| Proposed {
            timeout_ms: millis(proposed.timeout),
            max_ms: millis(proposed.max),
            why: proposed.why,
        }),
        buckets: tally.buckets().map(|(bucket, count)| (durations::up_to(bucket), count.into())).collect(),
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use outlast_engine::step::Outcome;
    use std::num::NonZeroU64;

    fn no(number: u64) -> CallNo {
        CallNo(NonZeroU64::new(number).unwrap())
    }

    fn began(tool: &str) -> What {
        What::Began(Box::new(Began {
            server: "ci".into(),
            method: Method::ToolsCall,
            tool: Some(tool.into()),
            client: "cursor 1.2".into(),
            principal: "".into(),
            bytes: 10,
            ago: Duration::ZERO,
            trace: None,
        }))
    }

    fn ended(outcome: Outcome) -> What {
        What::Ended(End { outcome, took: Duration::from_millis(70), bytes: 5, code: None })
    }

    fn feed(steps: impl IntoIterator<Item = (u64, What)>) -> Feed {
        let mut feed = Feed::new("p");
        for (at, (number, what)) in steps.into_iter().enumerate() {
            feed.step(Wall(at as u64), Step::Call(no(number), what));
        }
        feed
    }

    #[test]
    fn the_story_of_a_call_is_known_after_its_end() {
        let sent = What::Sent { attempt: 1, run: outlast_engine::id::Run(0), traced: None };
        let feed = feed([(1, began("build")), (1, sent), (1, ended(Outcome::ToolError))]);
        let story = feed.story(no(1), &Snapshot::default()).unwrap();
        let words: Vec<(u64, &str)> = story.steps.iter().map(|step| (step.at, &*step.what)).collect();
        assert_eq!(words, [(0, "began"), (1, "sent"), (2, "ended")]);
        assert_eq!((&story.call["id"], &story.call["outcome"]), (&"p.1".into(), &"tool-error".into()));
        assert_eq!(feed.number("p.1"), Some(no(1)));
        assert_eq!((feed.number("q.1"), feed.number("p.0"), feed.number("p")), (None, None, None));
    }

    #[test]
    fn stories_are_told_up_to_a_bound() {
        let sent = || What::Sent { attempt: 1, run: outlast_engine::id::Run(0), traced: None };
        let calls =
            [(1, began("a")), (1, sent()), (1, ended(Outcome::Answered)), (2, began("b")), (2, sent())];
        let feed = feed(calls);
        let ids = || ["p.2", "q.7", "p.1"].into_iter();
        let told = |most| {
            feed.stories(ids(), most).iter().map(|it| (it.id.clone(), it.steps.len())).collect::<Vec<_>>()
        };
        assert_eq!(told(10_000), [("p.2".to_owned(), 2), ("p.1".to_owned(), 3)]);
        assert_eq!(told(300), [("p.2".to_owned(), 2)]);
        let step = StoryStep { at: u64::MAX, what: "x".repeat(15).into(), text: String::new() };
        assert!(serde_json::to_vec(&step).unwrap().len() <= STEP, "a step is longer than it may be");
    }

    #[test]
    fn how_long_tools_take_is_counted() {
        let calls = (1..=3).flat_map(|number| [(number, began("build")), (number, ended(Outcome::Answered))]);
        let feed = feed(calls);
        let state = feed.state(Wall(9), &Snapshot::default(), |_, _| None);
        let tool = &state.tools[0];
        assert_eq!((&*tool.server, &*tool.tool, tool.calls, tool.slowest), ("ci", "build", 3, 70));
        assert_eq!((tool.buckets.clone(), state.ended.len()), (vec![(71, 3)], 3));
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let calls =
            (1..=ENDED as u64 + 7).flat_map(|number| [(number, began("x")), (number, ended(Outcome::Left))]);
        let feed = feed(calls);
        let state = feed.state(Wall(9), &Snapshot::default(), |_, _| None);
        assert_eq!((state.ended.len(), &*state.ended[0].id), (ENDED, "p.1007"));

        let progress = (0..500).map(|_| (1, What::Progress { message: Some("x".into()) }));
        let feed = self::feed([(1, began("x"))].into_iter().chain(progress));
        let story = feed.story(no(1), &Snapshot::default()).unwrap();
        assert_eq!((story.steps.len(), story.dropped), (STEPS, 401));
        assert_eq!(story.steps[STEPS - 1].at, 500, "the newest are kept");
    }

    /// One who looks on and does not come back for the next state holds nobody up.
    #[test]
    fn whoever_looks_on_hears_that_something_changed_and_is_not_waited_for() {
        let mut feed = Feed::new("p");
        let mut changes = feed.changes();
        assert!(!changes.has_changed().unwrap());
        (0..10_000).for_each(|_| feed.step(Wall(1), Step::Call(no(1), began("x"))));
        feed.wake();
        assert!(changes.has_changed().unwrap());
        changes.mark_unchanged();
        feed.wake();
        assert!(!changes.has_changed().unwrap());
    }
}
