//! A line on a person's terminal that says what a command waits for, once that takes longer than a second.

use super::stderr;
use super::terminal::{CLEAR, Stream, over};
use super::text::escape;
use crate::clock;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// What is faster is not worth a line, in milliseconds.
const PATIENCE: u64 = 1000;

/// How often the line is written again.
const TICK: Duration = Duration::from_millis(200);

/// One after another: something goes on.
const SIGNS: [char; 4] = ['|', '/', '-', '\\'];

/// The line; it is gone when this is dropped. Elsewhere than on a terminal there is none.
#[derive(Debug)]
pub struct Progress(Option<(Arc<Shared>, Option<JoinHandle<()>>)>);

#[derive(Debug, Default)]
struct Shared {
    line: Mutex<Line>,
    over: Condvar,
}

#[derive(Debug, Default)]
struct Line {
    what: String,
    since: u64,
    turn: usize,
    shown: bool,
    over: bool,
}

impl Progress {
    /// What is waited for, from now on.
    pub fn begin(what: &str) -> Progress {
        if !Stream::Stderr.is_terminal() {
            return Progress(None);
        }
        let shared = Arc::new(Shared::default());
        shared.lock().begin(what);
        let thread = std::thread::Builder::new().name("progress".into());
        let painter = shared.clone();
        let thread = thread.spawn(move || painter.paint()).ok();
        Progress(Some((shared, thread)))
    }

    /// Nothing is waited for.
    pub fn none() -> Progress {
        Progress(None)
    }

    /// The next thing that is waited for.
    pub fn next(&self, what: &str) {
        if let Some((shared, _)) = &self.0 {
            shared.lock().begin(what);
        }
    }

    /// Does something that may print, with the line out of its way.
    pub fn aside<T>(&self, work: impl FnOnce() -> T) -> T {
        let mut line = self.0.as_ref().map(|(shared, _)| shared.lock());
        line.iter_mut().for_each(|line| line.clear());
        work()
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        let Some((shared, thread)) = &mut self.0 else { return };
        shared.lock().over = true;
        shared.over.notify_all();
        if let Some(thread) = thread.take() {
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn paint(&self) {
        let mut line = self.lock();
        while !line.over {
            line.show();
            let waited = self.over.wait_timeout_while(line, TICK, |line| !line.over);
            line = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        line.clear();
    }
}

impl Line {
    fn begin(&mut self, what: &str) {
        (self.what, self.since) = (escape(what), clock::awake());
    }

    fn show(&mut self) {
        let waited = clock::awake().saturating_sub(self.since);
        if waited < PATIENCE {
            return;
        }
        let sign = SIGNS[self.turn % SIGNS.len()];
        self.turn += 1;
        self.shown = true;
        stderr::write(over(&format!("{sign} {} ({} s)", self.what, waited / 1000)).as_bytes());
    }

    fn clear(&mut self) {
        if std::mem::take(&mut self.shown) {
            stderr::write(CLEAR.as_bytes());
        }
    }
}
