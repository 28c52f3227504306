//! Servers that nobody hears of for a while, or that nobody has needed yet.

use super::{Life, Own, Server, Servers};
use crate::id::{AttemptId, DefinitionId, ServerId};
use crate::time::Mono;
use crate::timers::{Owner, Timers};
use std::time::Duration;

/// What a heartbeat that is due finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pulse {
    /// The server has said something of late, or is not to be asked.
    NotDue,
    /// It is asked whether it is there.
    Ask,
    /// It has not answered the last one, although it has answered one before.
    Missing,
}

impl Server {
    /// When it was last known to be there.
    fn last_sign(&self) -> Mono {
        [self.heard, self.pulse, Some(self.used)].into_iter().flatten().max().unwrap_or_default()
    }

    fn pulse_at(&self, now: Mono, every: Duration) -> Pulse {
        match self.heartbeat {
            Some((_, sent)) if self.heard.is_some_and(|heard| heard > sent) => Pulse::Ask,
            Some(_) if self.pulse.is_some() => Pulse::Missing,
            // It may not know the question.
            Some((_, sent)) if now.since(sent) < every => Pulse::NotDue,
            None if now.since(self.last_sign()) < every => Pulse::NotDue,
            Some(_) | None => Pulse::Ask,
        }
    }
}

impl Servers {
    /// When a server is looked after next.
    pub(crate) fn arm_quiet(&mut self, timers: &mut Timers, id: ServerId, at: Option<Mono>) {
        if let Some(server) = self.at(id) {
            timers.set(Owner::Quiet(id), &mut server.quiet_armed, at);
        }
    }

    pub(crate) fn quiet_rings(&mut self, id: ServerId) -> Option<&Server> {
        let server = self.at(id)?;
        server.quiet_armed = None;
        Some(server)
    }

    /// What becomes of the heartbeat of a server that has no call.
    pub(crate) fn pulse(&mut self, now: Mono, id: ServerId, every: Duration) -> Pulse {
        let Some(server) = self.at(id) else { return Pulse::NotDue };
        let pulse = server.pulse_at(now, every);
        if pulse != Pulse::NotDue
            && let Some((attempt, _)) = server.heartbeat.take()
        {
            server.own.remove(&attempt);
        }
        pulse
    }

    pub(crate) fn is_asked_for_pulse(&mut self, now: Mono, id: ServerId, attempt: AttemptId) {
        let Some(server) = self.at(id) else { return };
        server.heartbeat = Some((attempt, now));
        server.own.insert(attempt, Own::Heartbeat);
    }

    pub(crate) fn answers_heartbeat(&mut self, now: Mono, id: ServerId) {
        if let Some(server) = self.at(id) {
            (server.heartbeat, server.pulse) = (None, Some(now));
        }
    }

    /// A call has begun, which has limits of its own: whether the server is there shows in them.
    pub(crate) fn forgets_heartbeat(&mut self, id: ServerId) {
        let Some(server) = self.at(id) else { return };
        if let Some((attempt, _)) = server.heartbeat.take() {
            server.own.remove(&attempt);
        }
    }

    /// It is stopped because nobody uses it.
    pub(crate) fn falls_asleep(&mut self, now: Mono, id: ServerId) {
        if let Some(server) = self.at(id) {
            (server.life, server.falls_asleep, server.stopped_at) = (Life::Stopping, true, now);
        }
    }

    pub(crate) fn is_asleep(&mut self, id: ServerId) {
        if let Some(server) = self.at(id) {
            (server.life, server.falls_asleep) = (Life::Asleep, false);
        }
    }

    /// Somebody uses it again. Whether it sleeps; one that is about to is started as soon as it has ended.
    pub(crate) fn is_needed_again(&mut self, id: ServerId) -> bool {
        let Some(server) = self.at(id) else { return false };
        server.falls_asleep = false;
        let sleeps = server.life == Life::Asleep;
        // Others may need it too before it is there.
        server.wakes |= sleeps;
        sleeps
    }
}

// Servers that were started before anybody needed them.
impl Servers {
    pub(crate) fn is_spare(&mut self, id: ServerId) {
        if let Some(server) = self.at(id) {
            server.spare = true;
        }
    }

    pub(crate) fn is_no_spare(&mut self, id: ServerId) {
        if let Some(server) = self.at(id) {
            server.spare = false;
        }
    }

    /// A server that belongs to nobody yet.
    pub(crate) fn take_spare(&mut self, definition: DefinitionId) -> Option<ServerId> {
        let spare = |server: &Server| server.spare && server.definition == definition;
        let id = self.iter().find(|(_, server)| spare(server)).map(|(id, _)| *id)?;
        self.at(id)?.spare = false;
        Some(id)
    }
}
