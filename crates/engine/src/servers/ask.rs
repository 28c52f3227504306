//! A request of a server to the client: sampling, elicitation, roots, ping.

use crate::clients::Way;
use crate::id::{AskId, CallId, ClientId, JsonId, Run, ServerId};
use crate::limits;
use crate::method::Method;
use crate::policy::Limit;
use crate::time::Mono;
use crate::timers::{Owner, Timers};
use std::collections::BTreeMap;

/// One such request, until the client answers it.
#[derive(Debug)]
pub(crate) struct Ask {
    pub(crate) client: ClientId,
    pub(crate) way: Way,
    pub(crate) server: ServerId,
    /// The process that asked: its successor must not get the answer.
    pub(crate) run: Run,
    /// As the server wrote it.
    pub(crate) id: JsonId,
    pub(crate) method: Method,
    pub(crate) limit: Option<Limit>,
    /// Where that is written.
    pub(crate) source: Box<str>,
    /// Who waits while a person is asked.
    pub(crate) waits: Waits,
    /// The server's token for progress, where the client has another one.
    pub(crate) token: Option<JsonId>,
    pub(crate) armed: Option<Mono>,
}

/// Whose clock stands still while a question is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waits {
    /// Nobody's: a program answers.
    Nobody,
    /// The clock of the call that the question came for.
    Call(CallId),
    /// Every call of the server: on a pipe nothing ties a question to a call.
    Server,
}

/// Every question of a server that a client has not answered.
#[derive(Debug)]
pub(crate) struct Asks {
    open: BTreeMap<AskId, Ask>,
    last: u64,
}

impl Asks {
    /// Questions are counted from here on. Replicas serve the same sessions, so an answer may come to another process
    /// than the one that asked; it must not find a question of its number there.
    pub(crate) fn counted_from(first: u64) -> Asks {
        Asks { open: BTreeMap::new(), last: first }
    }

    pub(crate) fn get(&self, id: AskId) -> Option<&Ask> {
        self.open.get(&id)
    }

    /// The question under this number, if this client was asked it.
    pub(crate) fn of(&self, client: ClientId, id: AskId) -> Option<&Ask> {
        self.get(id).filter(|ask| ask.client == client)
    }

    /// The newest question that a server means by an id of its own.
    pub(crate) fn named(&self, server: ServerId, id: &JsonId) -> Option<AskId> {
        let key = id.key();
        let same = |ask: &Ask| ask.server == server && ask.id.key() == key;
        self.open.iter().rev().find(|(_, ask)| same(ask)).map(|(id, _)| *id)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (AskId, &Ask)> {
        self.open.iter().map(|(id, ask)| (*id, ask))
    }

    /// The numbers of those that a rule is about.
    pub(crate) fn numbers(&self, about: impl Fn(&Ask) -> bool) -> Vec<AskId> {
        self.iter().filter(|(_, ask)| about(ask)).map(|(id, _)| id).collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.open.len()
    }

    pub(crate) fn is_full(&self) -> bool {
        reached!(ASKS, self.len() >= limits::ASKS)
    }

    pub(crate) fn armed(&self, id: AskId) -> Option<Mono> {
        self.get(id)?.armed
    }

    /// A number for a question to a client; of a server, or of ours.
    pub(crate) fn number(&mut self) -> AskId {
        self.last += 1;
        AskId(self.last)
    }

    /// A server asks. Its limit begins to run.
    pub(crate) fn open(&mut self, timers: &mut Timers, now: Mono, mut ask: Ask) -> AskId {
        let id = self.number();
        let at = ask.limit.map(|limit| now + limit.time);
        timers.set(Owner::Ask(id), &mut ask.armed, at);
        self.open.insert(id, ask);
        id
    }

    /// A question is answered, taken back or given up.
    pub(crate) fn close(&mut self, timers: &mut Timers, id: AskId) -> Option<Ask> {
        let mut ask = self.open.remove(&id)?;
        timers.set(Owner::Ask(id), &mut ask.armed, None);
        Some(ask)
    }

    /// The limit of a question is reached.
    pub(crate) fn ring(&mut self, id: AskId) {
        if let Some(ask) = self.open.get_mut(&id) {
            ask.armed = None;
        }
    }

    /// Another client is asked, or the same on another way.
    pub(crate) fn ask_instead(&mut self, id: AskId, client: ClientId, way: Way) {
        if let Some(ask) = self.open.get_mut(&id) {
            (ask.client, ask.way) = (client, way);
        }
    }

    /// Whoever reads this way now is asked what was asked on another.
    pub(crate) fn move_to(&mut self, earlier: Way, client: ClientId, way: Way) {
        for ask in self.open.values_mut().filter(|ask| ask.way == earlier) {
            (ask.client, ask.way) = (client, way);
        }
    }
}
