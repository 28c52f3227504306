//! How a process ends when its client leaves: by itself, after SIGTERM, after SIGKILL; and what it
//! leaves behind.

use super::bounds;
use super::talk::Talk;
use outlast_engine::event::Exit;
use std::time::Duration;

/// What it took to end the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// It had ended before its input was closed.
    Before,
    /// It ended by itself when its input was closed.
    Eof,
    Term,
    Kill,
    /// Not even SIGKILL ended it in time.
    Never,
}

/// A process's end.
#[derive(Debug)]
pub struct End {
    pub how: How,
    /// Since its input was closed.
    pub took: Duration,
    pub exit: Option<Exit>,
    /// Descendants that outlived it.
    pub orphans: Vec<String>,
}

/// Leaves as clients do, and watches.
pub fn observe(talk: &mut Talk<'_>) -> End {
    let how = if talk.exit().is_some() { How::Before } else { How::Eof };
    let began = talk.lab.now();
    talk.lab.close_stdin();
    let how = escalate(talk, how);
    let took = talk.lab.now().since(began);
    let orphans = if matches!(how, How::Kill | How::Never) { Vec::new() } else { orphans(talk) };
    talk.lab.kill();
    talk.listen_out();
    End { how, took, exit: talk.exit(), orphans }
}

fn escalate(talk: &mut Talk<'_>, first: How) -> How {
    if talk.listen_to_the_end(talk.lab.now() + bounds::AFTER_EOF) {
        return first;
    }
    talk.lab.terminate();
    if talk.listen_to_the_end(talk.lab.now() + bounds::AFTER_TERM) {
        return How::Term;
    }
    talk.lab.kill();
    if talk.listen_to_the_end(talk.lab.now() + bounds::AFTER_KILL) { How::Kill } else { How::Never }
}

/// Those that are still there after a moment in which they could have ended, too.
fn orphans(talk: &mut Talk<'_>) -> Vec<String> {
    const LOOK: Duration = Duration::from_millis(20);
    let until = talk.lab.now() + bounds::ORPHANS;
    loop {
        let running = talk.lab.running();
        if running.is_empty() || talk.lab.now() >= until {
            return running;
        }
        talk.listen(LOOK);
    }
}
