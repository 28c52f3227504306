//! Judges what is told to those who look on: each call begins once and ends once, nothing is told of it after that,
//! nothing that waits for a person's yes is sent before it, and no two spans have one id.

use outlast_engine::step::{CallNo, What};
use outlast_engine::trace::SpanId;
use outlast_engine::{Action, Config, Observed, Step};
use std::cell::Cell;
use std::collections::{BTreeMap, HashSet};

thread_local! {
    /// Whether the worlds of this thread are recorded; as the seed says, without.
    static RECORDED: Cell<Option<bool>> = const { Cell::new(None) };
}

/// Has the worlds of this thread recorded, or not, whatever their seeds say. What a server is told of its place in a
/// trace, and what those who look on are told, is then no part of their fingerprints.
pub fn record(traces: Option<bool>) {
    RECORDED.set(traces);
}

/// Whether worlds are compared that differ in nothing but that.
pub(super) fn are_left_out() -> bool {
    RECORDED.get().is_some()
}

/// What a server would get without recording.
pub(super) fn without_place(message: Vec<u8>) -> Vec<u8> {
    const KEY: &[u8] = br#""traceparent":""#;
    let Some(at) = memchr::memmem::find(&message, KEY) else { return message };
    let end = at + KEY.len() + 56;
    let alone = message[..at].ends_with(br#""_meta":{"#) && message[end..].starts_with(b"}");
    let (from, to) = if alone { (at - br#""_meta":{"#.len(), end + 1) } else { (at, end) };
    let comma = usize::from(message[to..].starts_with(b","));
    [&message[..from], &message[to + comma..]].concat()
}

/// Where a call is by its steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Open,
    Held,
    Over,
}

/// The calls of one engine.
#[derive(Debug, Default)]
pub(super) struct Steps {
    calls: BTreeMap<CallNo, Stage>,
    spans: HashSet<SpanId>,
}

/// Somebody looks on in most worlds. Nothing else is changed by that, so it is drawn from nothing that is drawn.
pub(super) fn look_on(config: &mut Config) {
    config.observed = [Observed::All, Observed::Slow, Observed::Nothing][(config.seed % 3) as usize];
    config.traces = config.observed == Observed::All && config.seed & 0x100 != 0;
    if let Some(traces) = RECORDED.get() {
        (config.observed, config.traces) = (Observed::All, traces);
    }
}

impl Steps {
    pub(super) fn take(&mut self, action: &Action) {
        let Action::Step(Step::Call(no, what)) = action else { return };
        let before = self.calls.get(no).copied();
        let after = match (before, what) {
            (None, What::Began(_)) => Stage::Open,
            (None, _) => panic!("{what:?} of a call that has not begun"),
            (Some(Stage::Over), _) => panic!("{what:?} of {no:?}, which is over"),
            (Some(_), What::Began(_)) => panic!("{no:?} begins twice"),
            (Some(_), What::Ended(_)) => Stage::Over,
            (Some(Stage::Held), What::Sent { .. }) => panic!("{no:?} is sent before its yes"),
            (Some(_), What::Held { .. }) => Stage::Held,
            (Some(Stage::Held), What::Decided { yes: true, .. }) => Stage::Open,
            (Some(stage), _) => stage,
        };
        self.calls.insert(*no, after);
        let span = match what {
            What::Began(began) => began.trace.as_ref().map(|trace| trace.context.span),
            What::Sent { traced, .. } => traced.map(|attempt| attempt.span),
            _ => None,
        };
        if let Some(span) = span {
            assert!(self.spans.insert(span), "two spans are {span}");
        }
    }

    /// No call is open any more.
    pub(super) fn are_over(&self) {
        if let Some((no, stage)) = self.calls.iter().find(|(_, stage)| **stage != Stage::Over) {
            panic!("{no:?} is {stage:?} to those who look on, and no call is open");
        }
    }
}
