//! Calls that wait for a person, in memory. What a word is good for is decided by the hold.

use super::super::owner::Me;
use super::{Shelves, Turn};
use outlast_engine::Wall;
use outlast_engine::hold::{Entry, Hold, Leave, NewHold, Standing, Verdict};
use outlast_engine::store::{Done, Refusal};

impl Shelves {
    pub(super) fn hold(&mut self, new: &NewHold, turn: &Turn<'_>) -> Result<Done, Refusal> {
        let &Turn { me, bounds, now } = turn;
        let known: Vec<Hold> = self.holds.iter().map(|(_, hold)| hold.clone()).collect();
        for mut hold in known {
            let lives = self.is_alive(&hold.owner, me);
            if let Some(standing) = hold.meets(new, &me.name, now, lives) {
                self.holds.put(hold.number, hold);
                self.renew(me);
                return Ok(Done::Held(standing));
            }
        }
        if self.holds.iter().filter(|(_, hold)| hold.is_open(now)).count() as u64 >= bounds.holds {
            return Err(Refusal::Full("holds".into()));
        }
        self.renew(me);
        let number = self.next_number();
        self.holds.put(number, Hold::new(number, new.clone(), &me.name, now));
        Ok(Done::Held(Standing::Asked(number)))
    }

    fn is_alive(&self, owner: &str, me: &Me) -> bool {
        *owner == *me.name || !me.outlives(owner, self.leases.get(&Box::from(owner)).copied().unwrap_or(0))
    }

    pub(super) fn decide(&mut self, number: u64, verdict: &Verdict, turn: &Turn<'_>) -> Done {
        let Some(mut hold) = self.holds.get(&number).cloned() else { return Done::Decided(None) };
        if hold.decide(verdict, turn.now) {
            if let Some(entry) = Entry::of(&hold) {
                self.note_decision(entry, turn.bounds.audit);
            }
            self.holds.put(number, hold.clone());
        }
        Done::Decided(hold.decision.map(Box::new))
    }

    fn note_decision(&mut self, entry: Entry, most: u64) {
        let number = self.next_number();
        self.audit.put(number, entry);
        while self.audit.len() as u64 > most {
            let Some((oldest, _)) = self.audit.first() else { return };
            self.audit.take(&oldest);
        }
    }

    pub(super) fn ask_after(&mut self, number: u64, leave: Leave, turn: &Turn<'_>) -> Done {
        let Some(mut hold) = self.holds.get(&number).cloned() else { return Done::Decided(None) };
        let decision = hold.ask_after(&turn.me.name, leave, turn.now);
        self.holds.put(number, hold);
        Done::Decided(decision.map(Box::new))
    }

    pub(super) fn open_holds(&self, now: Wall) -> Vec<Hold> {
        self.holds.iter().map(|(_, hold)| hold).filter(|hold| !hold.is_over(now)).cloned().collect()
    }

    pub(super) fn decided(&self, holds: &[u64]) -> Vec<u64> {
        let decided = |number: &&u64| self.holds.get(number).is_none_or(|hold| hold.decision.is_some());
        holds.iter().filter(decided).copied().collect()
    }

    pub(super) fn forget_holds(&mut self, now: Wall) -> usize {
        self.holds.take_where(|_, hold| hold.is_over(now)).len()
    }
}
