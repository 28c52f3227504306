//! One call: a client's request, from its arrival until it is settled.
//!
//! | row | state | event | becomes | what happens |
//! |---|---|---|---|---|
//! | `request_is_sent` | new | request, server runs | sent | the attempt goes to the server under an id of ours |
//! | `request_waits_for_a_restart` | new | request, server restarts | waiting | kept, under its own limits |
//! | `request_to_a_failed_server_fails_at_once` | new | request, server cannot run | settled | error `server-failed` |
//! | `request_beyond_the_bound_is_refused` | new | request, too many calls | settled | error `overloaded` |
//! | `waiting_call_is_sent_when_the_server_is_back` | waiting | server ready | sent | the attempt goes to the server |
//! | `waiting_call_is_cancelled` | waiting | client cancels | settled | nobody is told: the server never saw it |
//! | `waiting_call_reaches_its_limit` | waiting | limit | settled | error, state `never-reached` |
//! | `answer_settles` | sent | answer | settled | the answer goes to the client under its own id |
//! | `progress_moves_timeout_but_never_max` | sent | progress | sent | `timeout` starts again; forwarded if the client gave a token |
//! | `silence_is_kept_alive` | sent | keep-alive due | sent | progress of our own, if the client gave a token |
//! | `cancel_reaches_the_attempt` | sent | client cancels | settled | the server is told; the client gets nothing more |
//! | `initialize_is_never_cancelled` | sent | client cancels `initialize` | sent | nothing |
//! | `timeout_fails_the_call_and_cancels_the_attempt` | sent | `timeout` | settled | error to the client, cancel to the server |
//! | `max_fails_the_call_and_cancels_the_attempt` | sent | `max` | settled | the same |
//! | `signs_of_the_server_move_timeout` | sent | `timeout` near, samples differ | sent | `timeout` starts again |
//! | `a_still_server_lets_timeout_fire` | sent | `timeout`, samples equal | settled | as `timeout` |
//! | `server_gone_settles` | sent | server ends | settled | error `server-gone` |
//! | `oversized_answer_fails_the_call` | sent | answer beyond `max-message` | settled | error `message-too-large` |
//! | `a_safe_call_is_repeated_after_a_crash` | sent | server ends, repeating is safe | waiting | kept for the next process |
//! | `an_unsafe_call_is_not_repeated` | sent | server ends, repeating may do harm | settled | error `server-gone` |
//! | `a_safe_call_is_repeated_after_a_timeout` | sent | `timeout`, repeating is safe | waiting | cancelled at the server, sent again after a while |
//! | `a_call_that_showed_progress_is_not_repeated` | sent | server ends after progress | settled | error `server-gone` |
//! | `a_second_call_with_the_same_key_joins` | new | request with the key of an open call | joined | shares its attempt, its progress and its answer |
//! | `a_joined_call_is_cancelled_alone` | joined | client cancels | settled | the server is not told: the other call has the attempt |
//! | `a_joined_call_takes_the_place_of_the_first` | joined | client of the first call cancels | sent | the attempt is its own now |
//! | `a_task_of_the_server_is_followed` | sent | handle of a task | followed | the server is asked for the task |
//! | `a_followed_task_settles_its_call` | followed | task ended | settled | its result goes to the client |
//! | `an_answer_that_asks_pauses_its_call` | sent | `input_required`, and the call has a ticket | paused | the ticket shows what is asked; only `max` runs |
//! | `a_paused_call_goes_on_with_the_answers` | paused | client answers | sent | sent again with the answers |
//! | `late_answer_is_dropped` | settled | answer | settled | noted |
//! | `late_progress_is_dropped` | settled | progress | settled | noted |
//! | `cancel_of_a_settled_call_is_ignored` | settled | client cancels | settled | nothing |
//!
//! Each row has a test of the same name, in `tests/engine/call.rs`.

use super::deadline::{Deadline, WorkClock};
use super::orphaned::Orphaned;
use super::progress::Progress;
use super::resume;
use super::server_task::{AsTask, ServerTask};
use crate::clients::Way;
use crate::id::{AttemptId, ClientId, JsonId, KeyNo, ServerId, ThrottleNo};
use crate::limits;
use crate::method::Method;
use crate::policy::{Policy, Rules};
use crate::step::CallNo;
use crate::throttles::Passage;
use crate::time::{Mono, Span};
use crate::wire::Message;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

/// Where a call is.
#[derive(Debug)]
pub(crate) enum State {
    /// Just arrived.
    New,
    /// For its server to come back. The message is kept to be sent.
    Waiting(Box<Message>),
    /// At the server.
    Sent(AttemptId),
    /// For another call with the same key, which has the attempt.
    Shares,
    /// For its client to answer what the server wants to know; it is sent again then.
    Paused,
    /// At the server, which has made a task of its own for it.
    Followed(Box<ServerTask>),
}

/// What a client asked for. Fixed from the beginning, but for the way back.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) client: ClientId,
    pub(crate) server: ServerId,
    /// As the client wrote it.
    pub(crate) id: JsonId,
    pub(crate) method: Method,
    pub(crate) tool: Option<Box<str>>,
    /// It speaks the 2026-07-28 revision.
    pub(crate) modern: bool,
    /// Asked for as a legacy task: its progress may outlive its answer.
    pub(crate) task: bool,
    /// Where its answer goes.
    pub(crate) way: Way,
    /// It asked for log messages, as a modern request may.
    pub(crate) logs: bool,
    /// The client's own progress token.
    pub(crate) token: Option<JsonId>,
    /// How its client opened its handshake, for a handshake that is to be remembered.
    pub(crate) handshake_digest: Option<NonZeroU64>,
    /// What is remembered under its key.
    pub(crate) key_no: Option<KeyNo>,
    /// When its client gives it up, whatever progress it sees; known of tools alone.
    pub(crate) cap: Option<Span>,
    /// As those who look on know it, if they do.
    pub(crate) no: Option<CallNo>,
}

/// One call.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) request: Request,
    /// The limits and choices that its policy was made of: a reload does not change them.
    pub(crate) rules: Arc<Rules>,
    /// How it was told to its server, whoever waits for it now: in the modern era, under an id that is text.
    pub(crate) modern: bool,
    pub(crate) text: bool,
    pub(crate) state: State,
    pub(crate) progress: Progress,
    pub(crate) keep_alive: Option<Span>,
    pub(crate) signs_of_call: bool,
    /// How often it may still be tried again; 0 where that is not safe.
    pub(crate) retries: u16,
    /// Sending it again does no harm, even if it arrived.
    pub(crate) safe: bool,
    /// A person, or a trusted server, says that running it twice does no harm.
    pub(crate) repeatable: bool,
    /// Kept so that it can be sent again.
    pub(crate) kept: Option<Box<Message>>,
    pub(crate) attempts: u16,
    /// When it is sent again.
    pub(crate) retry_at: Option<Mono>,
    /// Streams of an HTTP server that broke in a row, and when the next one is opened.
    pub(crate) breaks: u8,
    pub(crate) reconnect_at: Option<Mono>,
    /// How its server lets us resume it, and since when its connection is lost.
    pub(crate) policy: Option<Box<resume::Policy>>,
    pub(crate) lost: Option<Mono>,
    /// It is told of once it is slow.
    pub(crate) unseen: bool,
    /// It was sent again with other headers.
    pub(crate) mirrored: bool,
    /// It was sent again because its server had forgotten our session. That happens once.
    pub(crate) session_lost: bool,
    /// When it becomes a task, and what is stored of it then.
    pub(crate) task_at: Option<Mono>,
    /// It does not become a task then, but is handed off.
    pub(crate) hands_off: bool,
    pub(crate) kept_for_task: Option<Box<Message>>,
    /// Its answer is kept under its key.
    pub(crate) keeps: bool,
    /// Its server stays for it, although its client is gone or needs another one.
    pub(crate) holds: bool,
    /// Whether it may be a task of its server.
    pub(crate) as_task: AsTask,
    /// An earlier process left it at its server.
    pub(crate) orphaned: Option<Box<Orphaned>>,
    /// What counts it, and where it waits for its turn.
    pub(crate) passage: Option<Box<Passage>>,
    /// When its response begins as a stream, if it has not been answered by then.
    pub(crate) stream_at: Option<Mono>,
    pub(crate) deadline: Deadline,
    pub(crate) began: Mono,
    /// How long it had run before that, in a process that is gone.
    pub(crate) before: Option<Span>,
    /// When the client last heard of it.
    pub(crate) heard: Mono,
    /// When it last gave a sign of life.
    pub(crate) sign: Option<Mono>,
    pub(crate) armed: Option<Mono>,
}

impl Call {
    /// Built where it stays: a call is large, and every move of it would cost.
    pub(crate) fn new(
        request: Request,
        policy: &Policy,
        rules: Arc<Rules>,
        now: Mono,
        clock: &WorkClock,
    ) -> Box<Call> {
        let room = Box::new_uninit();
        let request = Request { no: None, ..request };
        let call = Call {
            keep_alive: policy.keep_alive.filter(|_| request.token.is_some()).map(Span::from),
            modern: request.modern,
            text: request.id.is_text(),
            request,
            rules,
            state: State::New,
            progress: Progress::default(),
            signs_of_call: policy.signs.call,
            retries: 0,
            safe: false,
            repeatable: false,
            kept: None,
            attempts: 0,
            retry_at: None,
            breaks: 0,
            reconnect_at: None,
            policy: None,
            lost: None,
            unseen: false,
            mirrored: false,
            session_lost: false,
            stream_at: None,
            task_at: None,
            hands_off: false,
            kept_for_task: None,
            keeps: policy.keep_answers,
            holds: false,
            as_task: AsTask::No,
            orphaned: None,
            passage: None,
            deadline: Deadline::new(policy, now, clock),
            began: now,
            before: None,
            heard: now,
            sign: None,
            armed: None,
        };
        Box::write(room, call)
    }

    /// How long its client has waited for it.
    pub(crate) fn age(&self, now: Mono) -> Duration {
        self.before.map_or(Duration::ZERO, Duration::from) + now.since(self.began)
    }

    /// One more attempt begins.
    pub(crate) fn count_attempt(&mut self) {
        self.attempts = self.attempts.saturating_add(1);
    }

    /// One more stream broke; how many have, in a row.
    pub(crate) fn count_break(&mut self) -> u32 {
        self.breaks = self.breaks.saturating_add(1);
        self.breaks.into()
    }

    pub(crate) fn attempt(&self) -> Option<AttemptId> {
        match self.state {
            State::Sent(attempt) => Some(attempt),
            State::New | State::Waiting(_) | State::Paused | State::Shares | State::Followed(_) => None,
        }
    }

    /// Its task at the server.
    pub(crate) fn server_task(&self) -> Option<&ServerTask> {
        match &self.state {
            State::Followed(joined) => Some(joined),
            _ => None,
        }
    }

    /// The same, to be changed.
    pub(crate) fn server_task_mut(&mut self) -> Option<&mut ServerTask> {
        match &mut self.state {
            State::Followed(joined) => Some(joined),
            _ => None,
        }
    }

    /// Takes that out of a call that is over.
    #[inline]
    pub(super) fn take_server_task(&mut self) -> Option<Box<ServerTask>> {
        if !matches!(self.state, State::Followed(_)) {
            return None;
        }
        match std::mem::replace(&mut self.state, State::New) {
            State::Followed(joined) => Some(joined),
            _ => None,
        }
    }

    pub(crate) fn is_orphaned(&self) -> bool {
        self.orphaned.is_some()
    }

    /// Whether its server has it under a name, so that it is lost neither with us nor while the server is away.
    pub(crate) fn is_kept_at_server(&self) -> bool {
        let named =
            self.server_task().is_some() || self.orphaned.as_ref().is_some_and(|orphaned| !orphaned.asked);
        named && matches!(self.request.way, Way::Ticket(_))
    }

    /// Takes a sign of life. Gives back what was kept: what has begun to show its work is not
    /// repeated, unless that is known to do no harm.
    #[must_use]
    pub(crate) fn shows_life(&mut self, now: Mono, clock: &WorkClock) -> Option<Box<Message>> {
        self.sign = Some(now);
        if self.signs_of_call {
            self.deadline.sign(now, clock);
        }
        if self.repeatable { None } else { self.kept.take() }
    }

    /// The throttle at which it waits for its turn.
    pub(crate) fn waits_at(&self) -> Option<ThrottleNo> {
        self.passage.as_ref()?.next()
    }

    /// Whether it waits to be sent at a certain time, or for what must be known before.
    pub(crate) fn is_parked(&self) -> bool {
        matches!(self.state, State::Waiting(_)) && self.retry_at.is_some()
    }

    /// Whether another call has its attempt.
    pub(crate) fn is_joined(&self) -> bool {
        matches!(self.state, State::Shares)
    }

    /// When the client is to be told that the call lives.
    pub(crate) fn keep_alive_at(&self) -> Option<Mono> {
        self.keep_alive.map(|interval| self.heard + interval.into())
    }

    /// When it is told of, if it is open by then.
    pub(crate) fn told_at(&self) -> Option<Mono> {
        self.unseen.then(|| self.began + limits::SLOW)
    }

    /// When to look at it again.
    pub(crate) fn wake_at(&self, now: Mono, clock: &WorkClock) -> Mono {
        let limit = self.deadline.wake_at(now, clock);
        let poll_at = self.server_task().map(|joined| joined.poll_at);
        let told_at = self.told_at();
        [
            self.keep_alive_at(),
            self.retry_at,
            self.reconnect_at,
            self.stream_at,
            self.task_at,
            poll_at,
            told_at,
        ]
        .into_iter()
        .flatten()
        .fold(limit, Mono::min)
    }

    /// What a person calls it.
    pub(crate) fn name(&self) -> &str {
        self.request.tool.as_deref().unwrap_or_else(|| self.request.method.as_str())
    }
}
