//! Where posts wait until what must go first has its response.

use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;

/// How long something waits for a notification that goes first. Then it goes too: a server that does not answer
/// that decides nothing for the others.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

/// Waited at by whoever comes later. They leave in the order in which they came.
#[derive(Clone)]
pub(super) struct Gate {
    opens: Arc<Semaphore>,
    patience: Option<Duration>,
    /// What its opener waits for; patience begins only then.
    before: Option<Box<Gate>>,
}

/// Opens the gate when it is let go of.
pub(super) struct Opener(Arc<Semaphore>);

/// A gate that is closed, and who opens it. Without patience it is waited at for as long as the opener is there.
pub(super) fn closed(patience: Option<Duration>, before: Option<Gate>) -> (Opener, Gate) {
    // It has nothing to give: whoever waits for it is let go when it is closed.
    let opens = Arc::new(Semaphore::new(0));
    let before = before.filter(|gate| !gate.is_open()).map(Box::new);
    (Opener(opens.clone()), Gate { opens, patience, before })
}

impl Gate {
    /// Whether nobody has to wait any more.
    pub fn is_open(&self) -> bool {
        self.opens.is_closed()
    }

    /// Waits until it opens, or patience ends.
    pub async fn pass(self) {
        let mut gates = vec![self];
        while let Some(before) = gates.last_mut().and_then(|gate| gate.before.take()) {
            gates.push(*before);
        }
        for gate in gates.iter().rev() {
            let opened = gate.opens.acquire();
            match gate.patience {
                Some(patience) => drop(tokio::time::timeout(patience, opened).await),
                None => drop(opened.await),
            }
        }
    }
}

impl Drop for Opener {
    fn drop(&mut self) {
        self.0.close();
    }
}
