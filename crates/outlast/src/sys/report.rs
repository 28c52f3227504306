//! What the guardian tells of its server.

use outlast_engine::event::{Exit, StartFailure};

/// What the guardian tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Report {
    /// The server runs.
    Started,
    /// The server could not be started.
    StartFailed(StartFailure),
    /// The server ended.
    Exited(Exit),
}
