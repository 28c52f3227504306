//! A person who decides about every call that is held, after a while, in whichever process it waits by then; and what must
//! hold of such calls: no tool runs more often than it was approved, none runs after a no, nobody hears of a no that was
//! not said, and none that was never sent is taken for one that may have run.

use super::clients::Errand;
use super::judge::End;
use super::{Plan, World};
use crate::ledger::Ledger;
use outlast_engine::hold::{Hold, Scope, Standing, Verdict};
use outlast_engine::store::{Done, Stored, Write};

impl World {
    /// Whoever is asked thinks for a while.
    pub(super) fn persons_are_asked(&mut self, stored: &Stored) {
        let Ok(committed) = stored else { return };
        let asked = committed.done.iter().filter_map(|done| match done {
            Done::Held(Standing::Asked(number)) => Some(*number),
            _ => None,
        });
        for number in asked {
            let after = self.rng.millis(0, 4_000);
            self.agenda.plan(after, Plan::Decides(number));
        }
    }

    /// Mostly yes. Two calls with one key may have two answers after a no, because errors are given once only.
    pub(super) fn decide(&mut self, hold: u64) {
        let (place, by) = ("command line".into(), "ann".into());
        let mut errands = self.clients.iter().flat_map(|client| &client.errands);
        let of = |errand: &&Errand| holds_of(errand, &self.ledger).any(|known| known.number == hold);
        let alone = errands.find(of).is_some_and(|errand| !errand.key);
        let yes = !(alone && self.rng.chance(30));
        let verdict = Verdict { yes, scope: Scope::Once, reason: "".into(), place, by };
        self.commit("somebody else", &[Write::Decide { hold, verdict: verdict.into() }], |_, _| {});
    }

    /// A tool that needs a yes has run so often.
    pub(super) fn was_approved(&self, errand: &Errand, runs: usize) {
        let approved = holds_of(errand, &self.ledger).filter(|hold| was_used(hold)).count();
        assert!(!errand.is_held() || runs <= approved, "{} ran without a yes", errand.nonce);
    }
}

impl Errand {
    /// A client hears of a no only if a person has said it, and then nothing ran.
    pub(super) fn was_declined(&self, ledger: &Ledger, ran: bool) {
        let no = |hold: &Hold| hold.decision.as_ref().is_some_and(|decision| !decision.verdict.yes);
        let declined = self.sight.end == Some(End::Declined);
        assert!(!declined || holds_of(self, ledger).any(no), "{} was declined by nobody", self.nonce);
        assert!(!declined || !ran, "{} ran, and was declined", self.nonce);
    }

    /// What was never sent waits on after a crash; nobody says that it may have run. Calls with one key are found again
    /// only as one.
    pub(super) fn was_not_forgotten(&self, ledger: &Ledger) {
        let sent = holds_of(self, ledger).any(was_used);
        let Some(End::Failed(error)) =
            self.sight.end.as_ref().filter(|_| self.is_held() && !self.key && !sent)
        else {
            return;
        };
        let text = error.to_string();
        assert!(
            !text.contains("was ended during the call)"),
            "{} waited, and was given up: {text}",
            self.nonce
        );
    }
}

fn holds_of<'a>(errand: &'a Errand, ledger: &'a Ledger) -> impl Iterator<Item = &'a Hold> {
    let mark = format!("\"{}\"", errand.nonce);
    ledger.holds().filter(move |hold| hold.about.key.contains(&mark))
}

fn was_used(hold: &Hold) -> bool {
    hold.used && hold.decision.as_ref().is_some_and(|decision| decision.verdict.yes)
}
