//! Signs of life of a server: what it says, samples of its process, and the watch after a cancel.

use super::server::Watch;
use super::{Life, Servers};
use crate::calls::deadline::WorkClock;
use crate::id::{CallId, ServerId};
use crate::life::Sample;
use crate::limits;
use crate::time::Mono;
use crate::timers::{Owner, Timers};
use std::time::Duration;

/// What a sample says of a server that owes us a sign of life.
#[derive(Debug)]
pub(crate) enum Verdict {
    Alive,
    /// Nothing at all for so long, and since what.
    Hung(Duration, &'static str),
}

impl Servers {
    /// It said something, on whichever of its outputs.
    #[inline]
    pub(crate) fn speaks(&mut self, timers: &mut Timers, now: Mono, id: ServerId) {
        let Some(server) = self.at(id) else { return };
        server.heard = Some(now);
        if server.watch.take().is_some() {
            timers.set(Owner::Grace(id), &mut server.grace_armed, None);
        }
    }

    pub(crate) fn keep_stderr(&mut self, id: ServerId, bytes: &[u8]) {
        if let Some(server) = self.at(id) {
            server.keep_stderr(bytes);
        }
    }

    /// A line that is no message came. How many there have been, if it is time to say so.
    pub(crate) fn bad_line(&mut self, id: ServerId) -> Option<u64> {
        let server = self.at(id)?;
        server.bad_lines += 1;
        let due = server.bad_lines == 1 || server.bad_lines.is_multiple_of(limits::BAD_LINES_PER_NOTE);
        reached!(BAD_LINES_PER_NOTE if !due);
        if !due {
            return None;
        }
        server.bad_lines_told = server.bad_lines;
        Some(server.bad_lines)
    }

    /// How many lines were no messages, if that was not told yet.
    pub(crate) fn untold_bad_lines(&mut self, id: ServerId) -> Option<u64> {
        let server = self.at(id)?;
        let told = std::mem::replace(&mut server.bad_lines_told, server.bad_lines);
        (told < server.bad_lines).then_some(server.bad_lines)
    }

    /// A question was refused because too many are open. Whether it is time to say so: a flood of questions must not
    /// become a flood of notes.
    pub(crate) fn ask_was_refused(&mut self, id: ServerId) -> bool {
        let Some(server) = self.at(id) else { return false };
        server.refused_asks += 1;
        server.refused_asks % limits::BAD_LINES_PER_NOTE == 1
    }

    /// It answered under our id in another JSON type. Whether that is news.
    pub(crate) fn uses_other_id_type(&mut self, id: ServerId) -> bool {
        self.at(id).is_some_and(|server| !std::mem::replace(&mut server.noted_id_type, true))
    }
}

// Waits for a person.
impl Servers {
    pub(crate) fn wait_begins(&mut self, now: Mono, id: ServerId) {
        if let Some(server) = self.at(id) {
            server.clock.wait_begins(now);
        }
    }

    /// A person answered, or is waited for no longer. Gives back the calls whose clock runs again.
    pub(crate) fn wait_ends(&mut self, now: Mono, id: ServerId) -> Vec<CallId> {
        let Some(server) = self.at(id) else { return Vec::new() };
        if !server.clock.wait_ends(now) {
            return Vec::new();
        }
        std::mem::take(&mut server.stalled).into_iter().collect()
    }

    /// The clock by which the timer of a call is set. If it stands still, the timer is set again when it runs.
    #[inline]
    pub(crate) fn clock_for(&mut self, id: ServerId, call: CallId) -> Option<&WorkClock> {
        let server = self.at(id)?;
        if server.clock.stands_still() {
            server.stalled.insert(call);
        }
        Some(&server.clock)
    }
}

// Samples.
impl Servers {
    /// A sample is wanted. Whether it has to be asked for.
    pub(crate) fn wants_sample(&mut self, id: ServerId) -> bool {
        self.at(id).is_some_and(|server| !std::mem::replace(&mut server.sampling, true))
    }

    /// The next sample decides on a call.
    pub(crate) fn is_judged(&mut self, id: ServerId, call: CallId) {
        if let Some(server) = self.at(id) {
            server.judged.push(call);
        }
    }

    /// A sample came. Gives back the calls that it decides on.
    pub(crate) fn sampled(&mut self, id: ServerId, sample: Option<Sample>) -> Vec<CallId> {
        let Some(server) = self.at(id) else { return Vec::new() };
        server.sampling = false;
        server.sample = sample.or(server.sample);
        std::mem::take(&mut server.judged)
    }
}

// The watch after a cancel.
impl Servers {
    /// It owes us a sign of life until then. False if it is watched already, or is not there.
    pub(crate) fn watch(
        &mut self,
        timers: &mut Timers,
        (now, asked): (Mono, &'static str),
        id: ServerId,
        until: Mono,
    ) -> bool {
        let Some(server) = self.at(id) else { return false };
        if server.watch.is_some() || server.life != Life::Up {
            return false;
        }
        server.watch = Some(Watch { since: now, asked, first: None, deciding: false });
        timers.set(Owner::Grace(id), &mut server.grace_armed, Some(until));
        true
    }

    pub(crate) fn stop_watching(&mut self, timers: &mut Timers, id: ServerId) {
        let Some(server) = self.at(id) else { return };
        if server.watch.take().is_some() {
            timers.set(Owner::Grace(id), &mut server.grace_armed, None);
        }
    }

    /// The time is over: the next sample decides. False if it is not watched any more.
    pub(crate) fn grace_is_over(&mut self, id: ServerId) -> bool {
        let Some(server) = self.at(id) else { return false };
        server.grace_armed = None;
        server.watch.as_mut().map(|watch| watch.deciding = true).is_some()
    }

    /// A sample came while a server may be watched. `None` if nothing is decided by it.
    pub(crate) fn judge(&mut self, now: Mono, id: ServerId, sample: Option<Sample>) -> Option<Verdict> {
        let server = self.at(id)?;
        let watch = server.watch.as_mut()?;
        if !watch.deciding {
            watch.first = watch.first.or(sample);
            return None;
        }
        let worked = watch.first.zip(sample).is_some_and(|(first, last)| last.shows_life_since(&first));
        let (silent, asked) = (now.since(watch.since), watch.asked);
        server.watch = None;
        Some(if worked { Verdict::Alive } else { Verdict::Hung(silent, asked) })
    }
}
