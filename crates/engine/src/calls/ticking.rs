//! The timer of a call: what it rings for, and what a sample of its server decides.

use super::Calls;
use super::call::State;
use super::deadline::{Due, WorkClock};
use crate::clients::Way;
use crate::id::CallId;
use crate::life::Sample;
use crate::policy::Limit;
use crate::time::Mono;
use crate::timers::{Owner, Timers};

/// What a call's timer rings for.
#[derive(Debug)]
pub(crate) enum Ring {
    /// It has become slow: whoever looks on is told of it.
    Slow,
    /// It is sent again.
    Retry,
    /// Its stream is opened again.
    Reconnect,
    /// Its task at the server is asked for.
    Poll,
    /// It becomes a task, or is handed off.
    Task,
    /// Its response begins as a stream.
    Stream(Way),
    /// Its limits want this; then perhaps a keep-alive.
    Limits(Due),
}

/// What a sample says of a call whose limit is near.
#[derive(Debug)]
pub(crate) enum Judgement {
    GoesOn,
    TimedOut(Limit),
}

impl Calls {
    /// When a call's timer rings.
    pub(crate) fn armed(&self, id: CallId) -> Option<Mono> {
        self.get(id)?.armed
    }

    /// Sets the timer of a call to the next moment it must be looked at.
    pub(crate) fn arm(&mut self, timers: &mut Timers, now: Mono, id: CallId, clock: &WorkClock) {
        let Some(call) = self.all.get_mut(id) else { return };
        let at = call.wake_at(now, clock);
        timers.set(Owner::Call(id), &mut call.armed, Some(at));
    }

    /// Sets the timer of a call to a moment that its limits do not know of.
    pub(crate) fn look_again_at(&mut self, timers: &mut Timers, id: CallId, at: Mono) {
        if let Some(call) = self.all.get_mut(id) {
            timers.set(Owner::Call(id), &mut call.armed, Some(at));
        }
    }

    /// The timer of a call rings. Of several things that are due the first of these is told.
    pub(crate) fn ring(&mut self, now: Mono, id: CallId, clock: &WorkClock) -> Option<Ring> {
        let call = self.all.get_mut(id)?;
        call.armed = None;
        if matches!(call.state, State::Paused) || call.waits_at().is_some() {
            // Only `max` runs while its client is waited for, or it waits for its turn.
            call.deadline.sign(now, clock);
        }
        let due = |at: Option<Mono>| at.is_some_and(|at| at <= now);
        if due(call.told_at()) {
            call.unseen = false;
            return Some(Ring::Slow);
        }
        if due(call.retry_at) {
            return Some(Ring::Retry);
        }
        if due(call.reconnect_at) {
            return Some(Ring::Reconnect);
        }
        if due(call.server_task().map(|joined| joined.poll_at)) {
            return Some(Ring::Poll);
        }
        if due(call.task_at) {
            return Some(Ring::Task);
        }
        if due(call.stream_at) {
            call.stream_at = None;
            return Some(Ring::Stream(call.request.way));
        }
        Some(Ring::Limits(call.deadline.due(now, clock)))
    }

    /// Keeps what the server looked like before a limit.
    pub(crate) fn keep_sample(&mut self, id: CallId, sample: Sample) {
        if let Some(call) = self.all.get_mut(id) {
            call.deadline.keep_sample(sample);
        }
    }

    /// Decides about a call by a sample of its server, which last said something at `heard`: the sample is kept for
    /// later, or the call goes on, or it has reached its limit.
    pub(crate) fn judge(
        &mut self,
        now: Mono,
        id: CallId,
        sample: Option<Sample>,
        clock: &WorkClock,
        heard: Option<Mono>,
    ) -> Option<Judgement> {
        let call = self.all.get_mut(id)?;
        match call.deadline.due(now, clock) {
            Due::FirstSample => {
                if let Some(sample) = sample {
                    call.deadline.keep_sample(sample);
                }
            }
            Due::LastSample => {
                let first = call.deadline.first_sample();
                let worked = first.zip(sample).is_some_and(|(first, last)| last.shows_life_since(first));
                // What it said since then needs no samples.
                let spoke = heard.is_some_and(|heard| heard > call.deadline.sign_at());
                if worked || spoke {
                    call.sign = Some(now);
                    call.deadline.sign(now, clock);
                } else if let Some(limit) = call.deadline.timeout() {
                    return Some(Judgement::TimedOut(limit));
                }
            }
            Due::Nothing | Due::End(_) => {}
        }
        Some(Judgement::GoesOn)
    }

    /// Whether a client has heard nothing for so long that it should be told that its call lives. The next time is
    /// an interval later, whether it is told or not.
    pub(crate) fn keep_alive_is_due(&mut self, now: Mono, id: CallId) -> bool {
        let Some(call) = self.all.get_mut(id) else { return false };
        let due = call.keep_alive_at().is_some_and(|at| now >= at);
        if due {
            call.heard = now;
        }
        due
    }

    /// The next report of our own in the series of a call: a value, and the total that was named.
    pub(crate) fn next_keep_alive(&mut self, id: CallId) -> Option<(f64, Option<f64>)> {
        self.all.get_mut(id)?.progress.keep_alive()
    }
}
