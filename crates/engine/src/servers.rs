//! The machine of servers: their processes and remote sessions, who shares them, what waits for them, what is known
//! of them.
//!
//! Outside this folder a server can be read and not changed. Each way in which it changes is a method here. What
//! concerns a call, a client or a ticket is kept under its id alone, and comes back from these methods as such.
//!
//! Not here: what is sent to a server and what becomes of its calls (the router, `engine/`). The table of a server's
//! life is in `server.rs`.

mod ask;
mod greeting;
mod knowledge;
mod life;
mod queue;
mod quiet;
mod replace;
mod server;
mod unsent;
mod watching;

pub(crate) use ask::{Ask, Asks, Waits};
pub(crate) use greeting::Greeting;
pub(crate) use life::{Back, NewSession, Rest};
pub(crate) use quiet::Pulse;
pub(crate) use server::{Alarm, Fate, Life, Own, Paging, Readiness, Server};
pub(crate) use watching::Verdict;

use crate::config::ServerConfig;
use crate::id::{ClientId, DefinitionId, Run, ServerId};
use crate::memory::Memory;
use crate::method::Method;
use crate::small_map::SmallMap;
use crate::time::Mono;
use crate::timers::{Owner, Timers};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What sessions must have in common to share a server.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ShareKey {
    pub(crate) definition: DefinitionId,
    /// `None` where all principals share.
    pub(crate) principal: Option<Box<str>>,
    /// The way they opened their handshake; `None` for the modern era, which has no handshake.
    pub(crate) handshake: Option<u64>,
}

/// Every server.
#[derive(Debug, Default)]
pub(crate) struct Servers {
    all: SmallMap<ServerId, Server>,
    last: u32,
    shared: BTreeMap<ShareKey, ServerId>,
    /// What earlier processes of a server answered, for an instant start.
    memories: BTreeMap<ServerId, Vec<Memory>>,
    /// A server was given up, and none has answered since.
    given_up: bool,
}

// Reading.
impl Servers {
    #[inline]
    pub(crate) fn get(&self, id: &ServerId) -> Option<&Server> {
        self.all.get(id)
    }

    /// For the methods of this machine alone.
    #[inline]
    fn at(&mut self, id: ServerId) -> Option<&mut Server> {
        self.all.get_mut(&id)
    }

    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = (&ServerId, &Server)> {
        self.all.iter()
    }

    pub(crate) fn keys(&self) -> impl DoubleEndedIterator<Item = &ServerId> {
        self.all.keys()
    }

    pub(crate) fn values(&self) -> impl DoubleEndedIterator<Item = &Server> {
        self.all.values()
    }

    pub(crate) fn contains_key(&self, id: &ServerId) -> bool {
        self.all.contains_key(id)
    }

    /// Whether this is the process that runs, or the session that there is.
    #[inline]
    pub(crate) fn is_current(&self, id: ServerId, run: Run) -> bool {
        self.get(&id).is_some_and(|server| server.run == run)
    }

    pub(crate) fn shared(&self) -> usize {
        self.shared.len()
    }

    pub(crate) fn is_given_up(&self) -> bool {
        self.given_up
    }

    /// Whoever is shared is there.
    pub(crate) fn check(&self) -> Result<(), String> {
        match self.shared.iter().find(|(_, server)| !self.contains_key(server)) {
            Some((key, server)) => Err(format!("{server:?} is gone and shared by {key:?}")),
            None => Ok(()),
        }
    }
}

// Beginning and end.
impl Servers {
    /// The one server of wrap mode, whose number is given.
    pub(crate) fn open(&mut self, id: ServerId, config: Arc<ServerConfig>) -> Run {
        let server = Server::new(DefinitionId::FIRST, config);
        let run = server.run;
        self.all.insert(id, server);
        run
    }

    /// A server of a service: it has yet to come up.
    pub(crate) fn add(
        &mut self,
        now: Mono,
        definition: DefinitionId,
        config: Arc<ServerConfig>,
    ) -> (ServerId, Run) {
        self.last += 1;
        let id = ServerId(self.last);
        let mut server = Server::new(definition, config);
        server.came_up = false;
        server.stopped_at = now;
        let run = server.run;
        self.all.insert(id, server);
        (id, run)
    }

    /// A server is let go of: no timer and no name is left of it.
    pub(crate) fn end(&mut self, timers: &mut Timers, id: ServerId) -> Option<Server> {
        let mut server = self.all.remove(&id)?;
        self.shared.retain(|_, shared| *shared != id);
        self.memories.remove(&id);
        timers.set(Owner::Server(id), &mut server.armed, None);
        timers.set(Owner::Grace(id), &mut server.grace_armed, None);
        timers.set(Owner::Standing(id), &mut server.standing_armed, None);
        timers.set(Owner::Quiet(id), &mut server.quiet_armed, None);
        Some(server)
    }
}

// Who shares a server.
impl Servers {
    pub(crate) fn shared_by(&self, key: &ShareKey) -> Option<ServerId> {
        self.shared.get(key).copied()
    }

    pub(crate) fn share(&mut self, key: ShareKey, id: ServerId) {
        self.shared.insert(key, id);
    }

    /// From now on new sessions get a server of their own. Requests of the modern era share it on.
    pub(crate) fn stop_sharing(&mut self, id: ServerId) {
        self.shared.retain(|key, shared| *shared != id || key.handshake.is_none());
    }

    /// Nobody new shares a server.
    pub(crate) fn share_no_more(&mut self, id: ServerId) {
        self.shared.retain(|_, shared| *shared != id);
    }

    /// A client uses a server. Whether it was about to end because nobody did.
    pub(crate) fn join(&mut self, id: ServerId, client: ClientId) -> bool {
        let Some(server) = self.at(id) else { return false };
        server.clients.insert(client);
        server.alarm == Some(Alarm::Idle)
    }

    /// A client does not use a server any more. Whether others wait for the answer to its handshake, which nobody
    /// will hear.
    pub(crate) fn part(&mut self, id: ServerId, client: ClientId) -> bool {
        let Some(server) = self.at(id) else { return false };
        server.clients.remove(&client);
        server.awaiting_welcome.retain(|(waiting, _, _)| *waiting != client);
        server.greeted == Some(client) && server.welcome.is_none()
    }

    /// A client does not want to hear of a resource any more; others may.
    pub(crate) fn unsubscribe(&mut self, id: ServerId, uri: &[u8], client: ClientId) {
        if let Some(server) = self.at(id) {
            server.handshake.unsubscribe(uri, client);
        }
    }

    /// Forgets what a client wanted to hear of. Gives back the resources that nobody else does.
    pub(crate) fn unsubscribe_all(&mut self, id: ServerId, client: ClientId) -> Vec<Box<[u8]>> {
        let Some(server) = self.at(id) else { return Vec::new() };
        let subscribed = &mut server.handshake.subscribed;
        subscribed.values_mut().for_each(|(_, clients)| _ = clients.remove(&client));
        subscribed.extract_if(.., |_, (_, clients)| clients.is_empty()).map(|(uri, _)| uri).collect()
    }
}

// Memory.
impl Servers {
    /// What earlier processes answered.
    pub(crate) fn remembers(&mut self, id: ServerId, memories: &[Memory]) {
        let sound = memories.iter().filter(|memory| memory.is_sound()).cloned().collect();
        self.memories.insert(id, sound);
    }

    /// What was answered to a client like this one.
    pub(crate) fn memory_for(&self, id: ServerId, client: u64, method: &Method) -> Option<&Memory> {
        let memories = self.memories.get(&id)?;
        memories.iter().find(|memory| memory.client == client && memory.method == *method)
    }

    /// What is kept for the next start.
    pub(crate) fn keep_memory(&mut self, id: ServerId, memory: Memory) {
        if let Some(server) = self.at(id) {
            server.memory = Some(memory);
        }
    }

    /// What was answered in a server's place; it has answered itself now.
    pub(crate) fn take_instant(&mut self, id: ServerId) -> Option<Memory> {
        let server = self.at(id)?;
        server.ever_answered = true;
        server.instant.take()
    }
}
