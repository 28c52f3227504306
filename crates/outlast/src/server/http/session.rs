//! One life of a server behind HTTP: its session, its attempts, its streams.
//!
//! Every method returns at once; what takes time is done by a task of the session. The driver calls
//! them while it holds its own lock and is fed by the tasks, so no task feeds while it holds ours.

use super::gate::{self, Gate};
use super::remote::Remote;
use super::sender::Job;
use super::talk;
use super::{Feed, Happening};
use crate::http1::fields::{self, Known};
use bytes::Bytes;
use outlast_engine::hash::IdMap;
use outlast_engine::http::{Post, StreamEnd, Trouble};
use outlast_engine::id::AttemptId;
use outlast_engine::wire::Outgoing;
use std::borrow::Cow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::task::AbortHandle;

/// A session of the engine's server. Dropping it closes everything without a word.
pub struct Session(Arc<Inner>);

/// What a session's tasks share.
pub(super) struct Inner {
    pub(super) remote: Arc<Remote>,
    feed: Arc<dyn Feed>,
    state: Mutex<State>,
    /// A task has ended, and the end of the last one is waited for.
    quiet: Notify,
}

#[derive(Default)]
struct State {
    /// `Mcp-Session-Id`.
    session: Option<Box<str>>,
    /// `MCP-Protocol-Version`, for requests that carry no message.
    version: Option<Box<str>>,
    /// Closes when what goes first has its response.
    gate: Option<Gate>,
    next_task: u64,
    /// Every task but the standing one and the farewell.
    tasks: IdMap<u64, AbortHandle>,
    /// Attempts without an answer.
    attempts: IdMap<AttemptId, Attempt>,
    standing: Option<AbortHandle>,
    standing_place: Place,
    farewell: Option<AbortHandle>,
    /// Nothing is sent or told any more.
    over: bool,
}

struct Attempt {
    task: u64,
    place: Place,
}

/// Where a stream can be taken up again.
#[derive(Clone, Default)]
pub(super) struct Place {
    /// The last event id.
    pub last: Option<Bytes>,
    /// The server's wish how long to wait before that.
    pub retry: Option<Duration>,
}

/// Whose stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Of {
    Attempt(AttemptId),
    Standing,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Session({:?})", self.0.remote)
    }
}

impl Session {
    /// A session on a server; nothing is sent yet. Its methods must be called inside a runtime.
    pub fn new(remote: Arc<Remote>, feed: Arc<dyn Feed>) -> Session {
        let state = Mutex::default();
        Session(Arc::new(Inner { remote, feed, state, quiet: Notify::new() }))
    }

    /// Opens a connection and keeps it: `Connected`, or `Trouble` without an attempt.
    pub fn connect(&self) {
        self.0.start(&mut self.0.lock(), talk::connect(self.0.clone()));
    }

    /// Posts a message.
    pub fn post(&self, post: Box<Post>) {
        let mut state = self.0.lock();
        if state.over {
            return;
        }
        state.note_version(&post.headers);
        let gate = state.gate();
        let opener = match (post.begins_session, post.goes_first) {
            // Whatever follows belongs to the session, so it waits for that as long as the handshake may take.
            (true, _) => Some(state.close_gate(None)),
            (false, true) => Some(state.close_gate(Some(gate::PATIENCE))),
            (false, false) => None,
        };
        let (attempt, resumes) = (post.attempt, post.resumes);
        let task = state.new_task();
        let job = Job { inner: self.0.clone(), post, gate, opener, task };
        state.tasks.insert(task, self.0.remote.senders().send(job));
        if let Some(attempt) = attempt {
            let before = state.attempts.remove(&attempt).filter(|_| resumes);
            let place = before.map(|attempt| attempt.place).unwrap_or_default();
            state.attempts.insert(attempt, Attempt { task, place });
        }
    }

    /// Opens the stream of an attempt again, from the last event id that was seen on it.
    pub fn reconnect(&self, attempt: AttemptId) {
        let mut state = self.0.lock();
        if state.over {
            return;
        }
        let gate = state.gate();
        let task = self.0.start(&mut state, talk::reopen(self.0.clone(), Of::Attempt(attempt), gate, None));
        if let Some(attempt) = state.attempts.get_mut(&attempt) {
            attempt.task = task;
        }
    }

    /// Closes the stream of an attempt, or its pending request, and forgets it.
    pub fn abandon(&self, attempt: AttemptId) {
        let mut state = self.0.lock();
        let Some(attempt) = state.attempts.remove(&attempt) else { return };
        if let Some(task) = state.tasks.remove(&attempt.task) {
            task.abort();
        }
        self.0.quiet.notify_one();
    }

    /// Opens the standing stream, in place of one that is open. At the beginning nothing overtakes it:
    /// some servers drop what they want to say before there is one.
    pub fn stand(&self) {
        let mut state = self.0.lock();
        if state.over || state.farewell.is_some() {
            return;
        }
        let gate = state.gate();
        let opener = gate.is_some().then(|| state.close_gate(Some(gate::PATIENCE)));
        let task = tokio::spawn(talk::reopen(self.0.clone(), Of::Standing, gate, opener)).abort_handle();
        if let Some(old) = state.standing.replace(task) {
            old.abort();
        }
    }

    /// Once nothing is in flight, ends the session at the server and closes everything: `Closed`.
    pub fn close(&self) {
        let mut state = self.0.lock();
        if state.over || state.farewell.is_some() {
            return;
        }
        if let Some(standing) = state.standing.take() {
            standing.abort();
        }
        state.farewell = Some(tokio::spawn(talk::farewell(self.0.clone())).abort_handle());
    }

    /// Closes everything at once: `Closed`.
    pub fn kill(&self) {
        if self.0.stop() {
            let inner = self.0.clone();
            tokio::spawn(async move { inner.feed.feed(&mut Some(Happening::Closed).into_iter()) });
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.0.stop();
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a task that belongs to the session.
    fn start(self: &Arc<Inner>, state: &mut State, work: impl Future<Output = ()> + Send + 'static) -> u64 {
        let task = state.new_task();
        let inner = self.clone();
        let handle = tokio::spawn(async move {
            let _ending = inner.ending(task);
            work.await;
        });
        state.tasks.insert(task, handle.abort_handle());
        task
    }

    /// Held by a task for as long as it runs. Made by the task itself: who stops one that has not begun
    /// takes it off the list himself.
    pub(super) fn ending(self: &Arc<Inner>, task: u64) -> Ending {
        Ending { inner: self.clone(), task }
    }

    /// Stops every task; whether that was news.
    fn stop(&self) -> bool {
        let mut state = self.lock();
        let was_over = std::mem::replace(&mut state.over, true);
        state.attempts.clear();
        let others = [state.standing.take(), state.farewell.take()];
        for task in state.tasks.drain().map(|(_, task)| task).chain(others.into_iter().flatten()) {
            task.abort();
        }
        !was_over
    }

    /// Waits until no task is left.
    pub(super) async fn quiet(&self) {
        while !self.lock().tasks.is_empty() {
            self.quiet.notified().await;
        }
    }

    /// The session has ended; nothing follows.
    pub(super) fn closed(&self) {
        if !std::mem::replace(&mut self.lock().over, true) {
            self.feed.feed(&mut Some(Happening::Closed).into_iter());
        }
    }

    /// Tells what happened at one time.
    pub(super) fn tell(&self, happenings: &mut dyn Iterator<Item = Happening>) {
        if !self.lock().over {
            self.feed.feed(happenings);
        }
    }

    /// Waits for room, if there is none.
    pub(super) async fn room(&self) {
        if let Some(congestion) = self.feed.congestion() {
            congestion.await;
        }
    }

    /// A post has failed for good.
    pub(super) fn fail(&self, attempt: Option<AttemptId>, trouble: Trouble) {
        if let Some(attempt) = attempt {
            self.settled(attempt);
        }
        self.tell(&mut Some(Happening::Trouble(attempt, trouble)).into_iter());
    }

    /// A post that comes back met no connection.
    pub(super) fn give_up(&self, message: Outgoing, why: Box<str>) {
        self.tell(&mut Some(Happening::Undelivered(message, why)).into_iter());
    }

    /// An attempt could not be resumed just now; it may be tried again from the same place.
    pub(super) fn fail_for_now(&self, attempt: Option<AttemptId>, trouble: Trouble) {
        self.tell(&mut Some(Happening::Trouble(attempt, trouble)).into_iter());
    }

    /// An attempt has its answer or gets none: it cannot be abandoned or resumed any more.
    pub(super) fn settled(&self, attempt: AttemptId) {
        self.lock().attempts.remove(&attempt);
    }

    /// Writes the session's field, if there is a session.
    pub(super) fn write_session(&self, to: &mut Vec<u8>) {
        if let Some(session) = &self.lock().session {
            fields::write(to, Known::McpSessionId.as_str(), session.as_bytes());
        }
    }

    /// Writes the version that the last message with one carried.
    pub(super) fn write_version(&self, to: &mut Vec<u8>) {
        if let Some(version) = &self.lock().version {
            fields::write(to, Known::McpProtocolVersion.as_str(), version.as_bytes());
        }
    }

    /// A session has begun, or none. The last event of the one before means nothing to it.
    pub(super) fn begin_session(&self, session: Option<Box<str>>) {
        let mut state = self.lock();
        (state.session, state.standing_place) = (session, Place::default());
    }

    /// Whether there is a session.
    pub(super) fn has_session(&self) -> bool {
        self.lock().session.is_some()
    }

    /// Where a stream can be taken up again.
    pub(super) fn place(&self, of: Of) -> Place {
        self.lock().place(of).cloned().unwrap_or_default()
    }

    /// Notes where a stream can be taken up again.
    pub(super) fn note_place(&self, of: Of, note: impl FnOnce(&mut Place)) {
        if let Some(place) = self.lock().place(of) {
            note(place);
        }
    }

    /// A stream ended before it had to. One that cannot be taken up again is forgotten.
    pub(super) fn stream_ended(&self, of: Of, opened: bool, status: Option<u16>, why: String) {
        let Place { last, retry } = self.place(of);
        let end = StreamEnd { resumable: last.is_some(), retry, opened, status, why: why.into() };
        let happening = match of {
            Of::Attempt(attempt) => {
                if !end.resumable {
                    self.settled(attempt);
                }
                Happening::StreamEnded(attempt, end)
            }
            Of::Standing => Happening::StandingEnded(end),
        };
        self.tell(&mut Some(happening).into_iter());
    }
}

impl State {
    fn new_task(&mut self) -> u64 {
        self.next_task += 1;
        self.next_task
    }

    /// What must come first, if it is still on its way.
    fn gate(&mut self) -> Option<Gate> {
        self.gate = self.gate.take().filter(|gate| !gate.is_open());
        self.gate.clone()
    }

    /// What comes from now on waits until this is let go of.
    fn close_gate(&mut self, patience: Option<Duration>) -> gate::Opener {
        let (opener, gate) = gate::closed(patience, self.gate.take());
        self.gate = Some(gate);
        opener
    }

    fn note_version(&mut self, headers: &[(Cow<'static, str>, Box<str>)]) {
        let version =
            headers.iter().find(|(name, _)| name.eq_ignore_ascii_case(Known::McpProtocolVersion.as_str()));
        let Some((_, version)) = version else { return };
        if self.version.as_ref() != Some(version) {
            self.version = Some(version.clone());
        }
    }

    fn place(&mut self, of: Of) -> Option<&mut Place> {
        match of {
            Of::Attempt(attempt) => self.attempts.get_mut(&attempt).map(|attempt| &mut attempt.place),
            Of::Standing => Some(&mut self.standing_place),
        }
    }
}

/// Takes a task off the list when it ends, however it ends.
pub(super) struct Ending {
    inner: Arc<Inner>,
    task: u64,
}

impl Ending {
    /// Takes a task off the list that has come to its end; nobody can stop it any more then. False for one
    /// that was stopped: it is off the list already, and the runtime may be about to drop it.
    pub(super) fn finish(self) -> bool {
        self.inner.lock().tasks.remove(&self.task).is_some()
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        self.inner.lock().tasks.remove(&self.task);
        self.inner.quiet.notify_one();
    }
}
