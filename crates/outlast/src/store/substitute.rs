//! Memory in place of a file that cannot be opened.
//!
//! The file may hold what memory does not: of a ticket, a session or a stream that is not here nobody says that it
//! does not exist, or its client would give up a call that has a result.

use super::desk::{Ledger, Reader};
use super::memory::Memory;
use outlast_engine::store::{Committed, Done, Found, Loaded, Query, Stored, Trouble, Write};

/// Memory, and why it is no file.
#[derive(Debug)]
pub struct Substitute {
    memory: Memory,
    why: String,
}

impl Substitute {
    pub fn new(memory: Memory, why: String) -> Substitute {
        Substitute { memory, why }
    }

    fn trouble(&self) -> Trouble {
        Trouble::Failed(self.why.clone())
    }
}

impl Reader for Substitute {
    fn find(&mut self, query: &Query) -> Loaded {
        let found = self.memory.find(query);
        let denied = match (query, &found) {
            (Query::Record(_), Ok(Found::Record(None))) | (_, Ok(Found::Session(None))) => true,
            (_, Ok(Found::Events { last, events, .. })) => *last == 0 && events.is_empty(),
            _ => false,
        };
        if denied { Err(self.trouble()) } else { found }
    }
}

impl Ledger for Substitute {
    fn commit(&mut self, group: &[Vec<Write>]) -> Vec<Stored> {
        let outcomes = self.memory.commit(group).into_iter();
        outcomes.map(|outcome| if denies(&outcome) { Err(self.trouble()) } else { outcome }).collect()
    }

    fn readers(&self) -> Vec<Box<dyn Reader>> {
        Vec::new()
    }
}

/// Whether a session is said not to be there. Such a write is submitted alone, and has changed nothing.
fn denies(outcome: &Stored) -> bool {
    matches!(outcome, Ok(Committed { done, .. }) if done.contains(&Done::Session(None)))
}
