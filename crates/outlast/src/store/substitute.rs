//! Memory in place of a file that cannot be opened.
//!
//! The file may hold what memory does not: of a ticket that is not here nobody says that it does not exist,
//! or its client would give up a call that has a result.

use super::desk::{Ledger, Reader};
use super::memory::Memory;
use outlast_engine::store::{Found, Loaded, Query, Stored, Trouble, Write};

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
}

impl Reader for Substitute {
    fn find(&mut self, query: &Query) -> Loaded {
        match (query, self.memory.find(query)) {
            (Query::Record(_), Ok(Found::Record(None))) => Err(Trouble::Failed(self.why.clone())),
            (_, found) => found,
        }
    }
}

impl Ledger for Substitute {
    fn commit(&mut self, group: &[Vec<Write>]) -> Vec<Stored> {
        self.memory.commit(group)
    }

    fn readers(&self) -> Vec<Box<dyn Reader>> {
        Vec::new()
    }
}
