//! Sessions: found by their names, put to sleep, woken.

use super::session::{Session, Setup};
use super::{Client, Clients, Way};
use crate::id::{ClientId, ServerId, StreamId};
use crate::limits;
use crate::method::Method;
use crate::time::Mono;
use crate::timers::{Owner, Timers};
use crate::wire::Message;
use std::time::Duration;

/// What the timer of a session finds.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Sleep {
    /// It is in use, or was a while ago.
    Stays(Duration),
    /// Nobody uses it: it falls asleep.
    Begins,
    /// It has slept so long that it is forgotten.
    Ends,
}

/// What a session that wakes needs to be told to its server.
#[derive(Debug)]
pub(crate) struct Waking {
    pub(crate) principal: Option<Box<str>>,
    pub(crate) handshake_digest: u64,
    pub(crate) initialize: Message,
    pub(crate) initialized: Option<Message>,
    pub(crate) setup: Setup,
}

impl Clients {
    fn session_at(&mut self, id: ClientId) -> Option<&mut Session> {
        self.at(id).and_then(Client::session_mut)
    }

    pub(crate) fn session_named(&self, name: &str) -> Option<ClientId> {
        self.sessions.get(name).copied()
    }

    pub(crate) fn sessions(&self) -> usize {
        self.sessions.len()
    }

    pub(crate) fn session_armed(&self, id: ClientId) -> Option<Mono> {
        self.get(&id)?.session()?.armed
    }

    /// A session and its server have agreed on a version.
    pub(crate) fn agrees_on(&mut self, id: ClientId, version: &str) {
        if let Some(session) = self.session_at(id) {
            session.version = version.into();
        }
    }

    /// A session said `initialized`. False if this client is no session.
    pub(crate) fn is_initialized(&mut self, id: ClientId, message: &Message) -> bool {
        self.session_at(id).map(|session| session.initialized = Some(message.owned())).is_some()
    }

    /// Keeps what a session sets up with its server. False if there is nothing to keep.
    pub(crate) fn sets_up(&mut self, id: ClientId, method: &Method, message: &Message) -> bool {
        self.session_at(id).is_some_and(|session| session.setup.take(method, message))
    }

    /// The same with one of several servers, in that one's words.
    pub(crate) fn sets_up_at(
        &mut self,
        id: ClientId,
        server: &str,
        method: &Method,
        message: &Message,
    ) -> bool {
        self.session_at(id).is_some_and(|session| session.setup.take_at(server, method, message))
    }

    /// A session is being stored.
    pub(crate) fn is_being_stored(&mut self, id: ClientId, now: Mono) {
        if let Some(session) = self.session_at(id) {
            session.stored = now;
            session.keeps += 1;
        }
    }

    /// That was done, or was not.
    pub(crate) fn was_stored(&mut self, id: ClientId, done: bool) {
        let Some(session) = self.session_at(id) else { return };
        session.keeps = session.keeps.saturating_sub(1);
        // What came since may be on its way.
        if done && session.keeps == 0 {
            session.stored_setup = session.setup.clone();
        }
    }

    /// A handshake is not opened before its session is stored. False if it is.
    pub(crate) fn opens_later(&mut self, id: ClientId, message: &Message, way: Way) -> bool {
        let Some(session) = self.session_at(id).filter(|session| session.keeps > 0) else { return false };
        session.opening = Some(Box::new((message.owned(), way)));
        true
    }

    /// It is opened now.
    pub(crate) fn takes_opening(&mut self, id: ClientId) -> Option<(Message, Way)> {
        self.session_at(id)?.opening.take().map(|opening| *opening)
    }

    /// What a session has set up here that is not stored, if there is anything. Merged with what is stored, in whose
    /// epoch the session is ours from now on.
    pub(crate) fn sets_up_beside(&mut self, id: ClientId, stored: Setup, epoch: u64) {
        let Some(session) = self.session_at(id) else { return };
        session.setup = session.setup.changed_elsewhere(&session.stored_setup, stored);
        session.epoch = session.epoch.max(epoch);
    }

    /// A session is ours in the store since this epoch.
    pub(crate) fn is_owned_in(&mut self, id: ClientId, epoch: u64) {
        if let Some(session) = self.session_at(id) {
            session.epoch = session.epoch.max(epoch);
        }
    }

    /// The store is asked whether a session is ours.
    pub(crate) fn is_confirmed(&mut self, id: ClientId, now: Mono) {
        if let Some(session) = self.session_at(id) {
            session.confirmed = now;
        }
    }

    /// Another process owns a session: its name means nothing here any more. `None` if that was known.
    pub(crate) fn disown_session(&mut self, id: ClientId) -> Option<&Session> {
        let session = self.session_at(id).filter(|session| !session.disowned)?;
        session.disowned = true;
        let name = session.id.clone();
        self.sessions.remove(&name);
        self.get(&id)?.session()
    }

    /// Whether a session with this mark was taken over by another process and still has something to do here.
    pub(crate) fn has_disowned(&self, mark: &str) -> bool {
        let sessions = self.values().filter_map(Client::session);
        sessions.filter(|session| session.disowned).any(|session| *session.mark == *mark)
    }

    /// A session is used; its timer finds out later whether it still is. Whether its owner is to be confirmed.
    pub(crate) fn is_used(&mut self, timers: &mut Timers, id: ClientId, now: Mono, idle: Duration) -> bool {
        let Some(session) = self.session_at(id) else { return false };
        session.used = now;
        if session.armed.is_none() {
            timers.set(Owner::Session(id), &mut session.armed, Some(now + idle));
        }
        now.since(session.confirmed) >= limits::LEASE
    }

    pub(crate) fn arm_session(&mut self, timers: &mut Timers, id: ClientId, at: Mono) {
        if let Some(session) = self.session_at(id) {
            timers.set(Owner::Session(id), &mut session.armed, Some(at));
        }
    }

    /// The timer of a session rings.
    pub(crate) fn session_rings(&mut self, id: ClientId, now: Mono, idle: Duration) -> Option<Sleep> {
        let busy = self.get(&id)?.is_busy();
        let session = self.session_at(id)?;
        session.armed = None;
        let (asleep, unused) = (session.asleep, now.since(session.used));
        let streams: Vec<StreamId> = session.streams.iter().copied().collect();
        let read = |id: &StreamId| self.stream(*id).is_some_and(|stream| stream.exchange.is_some());
        Some(match asleep {
            true if reached!(SLEEP, unused >= limits::SLEEP) => Sleep::Ends,
            true => Sleep::Stays(limits::SLEEP - unused),
            false if busy || streams.iter().any(read) => Sleep::Stays(idle),
            false if unused < idle => Sleep::Stays(idle - unused),
            false => Sleep::Begins,
        })
    }

    /// A session falls asleep. Gives back the servers that it does not need any more, and how it is called in notes.
    pub(crate) fn sleeps(&mut self, id: ClientId) -> Option<(Vec<ServerId>, Box<str>)> {
        let client = self.at(id)?;
        let session = client.session_mut()?;
        session.asleep = true;
        let name = session.id[..8].into();
        Some((client.take_servers(), name))
    }

    /// The oldest session that sleeps, if there are too many of them.
    pub(crate) fn sleeper_too_many(&self) -> Option<ClientId> {
        let asleep = |client: &Client| client.session().is_some_and(|session| session.asleep);
        let mut sleepers = self.iter().filter(|(_, client)| asleep(client)).map(|(id, _)| *id);
        let oldest = sleepers.next()?;
        reached!(SLEEPERS, sleepers.count() >= limits::SLEEPERS).then_some(oldest)
    }

    /// A session wakes. `None` if it did not sleep.
    pub(crate) fn wakes(&mut self, id: ClientId) -> Option<Waking> {
        let principal = self.get(&id)?.principal.clone();
        let session = self.session_at(id).filter(|session| session.asleep)?;
        session.asleep = false;
        Some(Waking {
            principal,
            handshake_digest: session.handshake_digest,
            initialize: session.initialize.clone(),
            initialized: session.initialized.clone(),
            setup: session.setup.clone(),
        })
    }
}
