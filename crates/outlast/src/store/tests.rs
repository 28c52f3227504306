//! The suite at every place there is, and what only a file can do.

use super::conformance::{Bench, conformance};
use super::memory::{Memory, Shelves};
use super::owner::{Me, World};
use super::{Desk, Store};
use outlast_engine::store::Bounds;
use std::sync::{Arc, Mutex};
use tempfile::TempDir;

/// One memory for all processes of a test.
#[derive(Default)]
struct InMemory(Arc<Mutex<Shelves>>);

impl Bench for InMemory {
    fn open(&self, world: Arc<dyn World>, bounds: Bounds) -> Store {
        let memory = Memory::sharing(self.0.clone(), Me::new(world), bounds);
        Store(Desk::start(move || Box::new(memory)).unwrap())
    }
}

/// One file for all processes of a test.
struct InFile(TempDir);

impl Default for InFile {
    fn default() -> InFile {
        InFile(tempfile::tempdir().unwrap())
    }
}

impl Bench for InFile {
    fn open(&self, world: Arc<dyn World>, bounds: Bounds) -> Store {
        Store::open(self.0.path(), world, bounds).unwrap()
    }
}

conformance!(in_memory, InMemory::default());
conformance!(in_a_file, InFile::default());
