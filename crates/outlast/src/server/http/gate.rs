//! Where posts wait until what must go first has its response.

use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;

/// How long something waits for what goes first. Then it goes too: a server that does not answer
/// its first message decides nothing for the others.
const PATIENCE: Duration = Duration::from_secs(10);

/// Waited at by whoever comes later. They leave in the order in which they came.
#[derive(Clone)]
pub(super) struct Gate(Arc<Semaphore>);

/// Opens the gate when it is let go of.
pub(super) struct Opener(Arc<Semaphore>);

/// A gate that is closed, and who opens it.
pub(super) fn closed() -> (Opener, Gate) {
    // It has nothing to give: whoever waits for it is let go when it is closed.
    let semaphore = Arc::new(Semaphore::new(0));
    (Opener(semaphore.clone()), Gate(semaphore))
}

impl Gate {
    /// Whether nobody has to wait any more.
    pub fn is_open(&self) -> bool {
        self.0.is_closed()
    }

    /// Waits until it opens, but not for ever.
    pub async fn pass(self) {
        let _ = tokio::time::timeout(PATIENCE, self.0.acquire()).await;
    }
}

impl Drop for Opener {
    fn drop(&mut self) {
        self.0.close();
    }
}
