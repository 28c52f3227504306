//! Every `subscriptions/listen` that is open.

use super::{Role, Subscription, Wanted, Watched};
use crate::calls::retry;
use crate::id::{AttemptId, ClientId, ServerId};
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

    /// What servers have of one at the merged door.
    pub(crate) fn parts_of(&self, attempt: AttemptId) -> Vec<AttemptId> {
        let part = |listen: &Subscription| matches!(listen.role, Role::Part { of, .. } if of == attempt);
        self.iter().filter(|(_, listen)| part(listen)).map(|(attempt, _)| attempt).collect()
    }

    /// Those at the merged door of a client, and what they ask for.
    pub(crate) fn merged_of(&self, client: ClientId) -> Vec<(AttemptId, &Wanted)> {
        let wanted = |(attempt, listen): (AttemptId, &'_ Subscription)| match &listen.role {
            Role::Merged(_) if listen.client == client => Some(attempt),
            _ => None,
        };
        let found: Vec<AttemptId> = self.iter().filter_map(wanted).collect();
        found.into_iter().filter_map(|attempt| Some((attempt, self.wanted(attempt)?))).collect()
    }

    /// What one at the merged door asks for.
    pub(crate) fn wanted(&self, attempt: AttemptId) -> Option<&Wanted> {
        match &self.get(attempt)?.role {
            Role::Merged(wanted) => Some(wanted),
            Role::Whole | Role::Part { .. } => None,
        }
    }

    /// A list has changed. Whether one at the merged door is told: it wants to be, and was not since somebody looked.
    pub(crate) fn hears_of_change(&mut self, attempt: AttemptId, list: u8) -> bool {
        let Some(Role::Merged(wanted)) = self.0.get_mut(&attempt).map(|listen| &mut listen.role) else {
            return false;
        };
        let news = wanted.lists & list != 0 && wanted.told & list == 0;
        wanted.told |= list;
        news
    }

    /// Somebody looks at a list. Of which client is not known: in the modern era each request is another one.
    pub(crate) fn is_looked_at(&mut self, list: u8) {
        for listen in self.0.values_mut() {
            if let Role::Merged(wanted) = &mut listen.role {
                wanted.told &= !list;
            }
        }
    }

    /// A server has promised to tell of these lists.
    pub(crate) fn is_promised(&mut self, attempt: AttemptId, promised: u8) {
        if let Some(Role::Part { lists, .. }) = self.0.get_mut(&attempt).map(|listen| &mut listen.role) {
            *lists = promised;
        }
    }

    /// Whether a server tells of changes of a list.
    pub(crate) fn are_told(&self, server: ServerId, list: u8) -> bool {
        let tells =
            |listen: &Subscription| matches!(listen.role, Role::Part { lists, .. } if lists & list != 0);
        self.0.values().any(|listen| listen.server == server && tells(listen))
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
        let Some(listen) = self.0.get_mut(&attempt) else { return Vec::new() };
        listen.acknowledged = true;
        let Some(watched) = &mut listen.tasks else { return Vec::new() };
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
