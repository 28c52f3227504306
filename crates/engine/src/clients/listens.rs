//! Every `subscriptions/listen` that is open.

use super::{Subscription, Watched};
use crate::calls::retry;
use crate::id::{AttemptId, ServerId};
use crate::limits;
use crate::record::Ticket;
use crate::time::Mono;
use crate::timers::{Owner, Timers};
use std::collections::BTreeMap;

/// By the number under which a server knows it, or would.
#[derive(Debug, Default)]
pub(crate) struct Listens(BTreeMap<AttemptId, Subscription>);

impl Listens {
    pub(crate) fn get(&self, attempt: AttemptId) -> Option<&Subscription> {
        self.0.get(&attempt)
    }

    pub(crate) fn contains(&self, attempt: AttemptId) -> bool {
        self.0.contains_key(&attempt)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (AttemptId, &Subscription)> {
        self.0.iter().map(|(attempt, listen)| (*attempt, listen))
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn armed(&self, attempt: AttemptId) -> Option<Mono> {
        self.get(attempt)?.armed
    }

    /// The numbers of those at a server, without those that it knows nothing of.
    pub(crate) fn at(&self, server: ServerId) -> Vec<AttemptId> {
        let at = |listen: &Subscription| listen.server == server && !listen.is_ours_alone();
        self.iter().filter(|(_, listen)| at(listen)).map(|(attempt, _)| attempt).collect()
    }

    /// Those who listen to a task.
    pub(crate) fn to(&self, ticket: &Ticket) -> Vec<AttemptId> {
        self.iter().filter(|(_, listen)| listen.listens_to(ticket)).map(|(attempt, _)| attempt).collect()
    }

    pub(crate) fn open(&mut self, attempt: AttemptId, listen: Subscription) {
        self.0.insert(attempt, listen);
    }

    pub(crate) fn close(&mut self, timers: &mut Timers, attempt: AttemptId) -> Option<Subscription> {
        let mut listen = self.0.remove(&attempt)?;
        timers.set(Owner::Listen(attempt), &mut listen.armed, None);
        Some(listen)
    }

    /// Its stream broke: it is opened again after ever longer waits.
    pub(crate) fn broke(&mut self, timers: &mut Timers, now: Mono, attempt: AttemptId) {
        let Some(listen) = self.0.get_mut(&attempt) else { return };
        listen.breaks += 1;
        let at = now + retry::reopen(None, listen.breaks);
        timers.set(Owner::Listen(attempt), &mut listen.armed, Some(at));
    }

    /// Something came on its stream.
    pub(crate) fn lives(&mut self, attempt: AttemptId) {
        if let Some(listen) = self.0.get_mut(&attempt) {
            listen.breaks = 0;
        }
    }

    /// The time has come to open it again: at this server.
    pub(crate) fn ring(&mut self, attempt: AttemptId) -> Option<ServerId> {
        let listen = self.0.get_mut(&attempt)?;
        listen.armed = None;
        Some(listen.server)
    }

    /// It asks for tasks of ours too.
    pub(crate) fn watches(&mut self, attempt: AttemptId, tasks: Watched) {
        if let Some(listen) = self.0.get_mut(&attempt) {
            listen.tasks = Some(Box::new(tasks));
        }
    }

    /// It has been acknowledged. Gives back what it missed.
    pub(crate) fn is_acknowledged(&mut self, attempt: AttemptId) -> Vec<Vec<u8>> {
        let watched = self.0.get_mut(&attempt).and_then(|listen| listen.tasks.as_mut());
        let Some(watched) = watched else { return Vec::new() };
        watched.acknowledged = true;
        std::mem::take(&mut watched.owed)
    }

    /// A task that it asks for has changed. Gives back what it is told, unless that has to wait.
    pub(crate) fn tell(&mut self, attempt: AttemptId, shown: Vec<u8>) -> Option<Vec<u8>> {
        let watched = self.0.get_mut(&attempt)?.tasks.as_mut()?;
        if watched.acknowledged {
            return Some(shown);
        }
        if watched.owed.len() < limits::LISTENED_TASKS {
            watched.owed.push(shown);
        }
        None
    }
}
