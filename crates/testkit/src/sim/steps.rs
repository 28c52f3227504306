//! Judges what is told to those who look on: each call begins once and ends once, nothing is told of it after that, and
//! nothing that waits for a person's yes is sent before it.

use outlast_engine::step::{CallNo, What};
use outlast_engine::{Action, Config, Observed, Step};
use std::collections::BTreeMap;

/// Where a call is by its steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Open,
    Held,
    Over,
}

/// The calls of one engine.
#[derive(Debug, Default)]
pub(super) struct Steps(BTreeMap<CallNo, Stage>);

/// Somebody looks on in most worlds. Nothing else is changed by that, so it is drawn from nothing that is drawn.
pub(super) fn look_on(config: &mut Config) {
    config.observed = [Observed::All, Observed::Slow, Observed::Nothing][(config.seed % 3) as usize];
}

impl Steps {
    pub(super) fn take(&mut self, action: &Action) {
        let Action::Step(Step::Call(no, what)) = action else { return };
        let before = self.0.get(no).copied();
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
        self.0.insert(*no, after);
    }

    /// No call is open any more.
    pub(super) fn are_over(&self) {
        if let Some((no, stage)) = self.0.iter().find(|(_, stage)| **stage != Stage::Over) {
            panic!("{no:?} is {stage:?} to those who look on, and no call is open");
        }
    }
}
