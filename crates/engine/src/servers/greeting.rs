//! The handshake of a server: what it was told, what it answered, and what the next process is told again.

use super::{Life, Servers};
use crate::clients::Way;
use crate::clients::session::Setup;
use crate::era::Era;
use crate::hash::fingerprint;
use crate::id::{AttemptId, ClientId, JsonId, ServerId};
use crate::limits;
use crate::memory::Memory;
use crate::method::Method;
use crate::time::Mono;
use crate::wire::{Field, Message};
use std::collections::BTreeSet;

/// A session that waits for the answer to another's handshake.
pub(crate) type AwaitsWelcome = (ClientId, Way, JsonId);

/// What a session that begins gets from its server.
#[derive(Debug)]
pub(crate) enum Greeting {
    /// It is the first: its handshake goes to the server.
    First,
    /// The same answer that the first one got.
    Welcome(Box<Message>),
    /// That answer is waited for.
    Waits,
}

impl Servers {
    /// A session begins on a server that others may share.
    pub(crate) fn greet(
        &mut self,
        id: ServerId,
        client: ClientId,
        way: Way,
        json_id: &JsonId,
    ) -> Option<Greeting> {
        let server = self.at(id)?;
        if server.greeted.is_none() {
            server.greeted = Some(client);
            return Some(Greeting::First);
        }
        if let Some(welcome) = server.welcome.clone() {
            return Some(Greeting::Welcome(Box::new(welcome)));
        }
        server.awaiting_welcome.push((client, way, json_id.clone()));
        Some(Greeting::Waits)
    }

    /// The handshake of the first session is answered. Gives back who that was, and who waited for the same answer.
    pub(crate) fn handshake_is_shared(
        &mut self,
        id: ServerId,
        answer: &Message,
    ) -> Option<(Option<ClientId>, Vec<AwaitsWelcome>)> {
        let server = self.at(id)?;
        let waiting = std::mem::take(&mut server.awaiting_welcome);
        let greeted = server.greeted;
        if answer.has(Field::Result) && answer.bytes.len() <= limits::HANDSHAKE_BYTES {
            server.welcome = Some(answer.owned());
        } else {
            // What was refused to one is not refused to the next unheard.
            server.greeted = None;
        }
        Some((greeted, waiting))
    }

    /// A server has said what it can do, to nobody in particular.
    pub(crate) fn is_welcomed(&mut self, id: ServerId, answer: &Message) {
        if let Some(server) = self.at(id).filter(|_| answer.bytes.len() <= limits::HANDSHAKE_BYTES) {
            server.welcome = Some(answer.owned());
        }
    }

    /// Sessions that wait for the answer to another's handshake will not get it.
    pub(crate) fn take_awaiting_welcome(&mut self, id: ServerId) -> Vec<AwaitsWelcome> {
        self.at(id).map(|server| std::mem::take(&mut server.awaiting_welcome)).unwrap_or_default()
    }

    /// A new server will be told this handshake as soon as it runs. Whether it runs already, and is told so now.
    pub(crate) fn will_be_greeted(
        &mut self,
        id: ServerId,
        client: ClientId,
        initialize: Message,
        initialized: Option<Message>,
    ) -> bool {
        let Some(server) = self.at(id).filter(|server| server.greeted.is_none()) else { return false };
        server.greeted = Some(client);
        let runs = server.life == Life::Up;
        if runs || server.life == Life::Starting {
            server.life = Life::Restarting;
        }
        server.handshake.initialize = Some(initialize);
        server.handshake.initialized = initialized;
        server.handshake.done = true;
        server.ever_answered = true;
        runs
    }

    /// A new server will be told the log level and the subscriptions of a session, after the handshake.
    pub(crate) fn will_be_set_up(&mut self, id: ServerId, client: ClientId, setup: &Setup) {
        let Some(server) = self.at(id) else { return };
        if setup.log_level.is_some() {
            server.handshake.log_level = setup.log_level.clone();
        }
        for (uri, message) in &setup.subscribed {
            let entry = (message.clone(), BTreeSet::from([client]));
            server.handshake.subscribed.insert(uri.clone(), entry);
        }
    }

    /// A handshake is answered from memory, and goes to the server under this number.
    pub(crate) fn is_answered_from_memory(
        &mut self,
        now: Mono,
        id: ServerId,
        attempt: AttemptId,
        initialize: Option<Message>,
        version: Option<Box<str>>,
        memory: Memory,
    ) {
        let Some(server) = self.at(id) else { return };
        server.life = Life::Reviving(attempt);
        server.stopped_at = now;
        if initialize.is_some() {
            server.handshake.initialize = initialize;
        }
        server.handshake.done = true;
        server.handshake.version = version;
        server.instant = Some(memory);
    }

    /// It has answered a handshake of this era.
    pub(crate) fn shows_era(&mut self, id: ServerId, era: Option<Era>) {
        if let (Some(server), Some(era)) = (self.at(id), era) {
            server.eras.learns(era);
        }
    }

    /// What a server says it is, in words.
    pub(crate) fn calls_itself(&mut self, id: ServerId, version: Box<str>) {
        if let Some(server) = self.at(id) {
            server.version = version;
        }
    }

    /// The handshake is answered: the version that was agreed on, and those that the server has.
    pub(crate) fn has_shaken_hands(
        &mut self,
        id: ServerId,
        version: Option<Box<str>>,
        supported: Vec<Box<str>>,
    ) {
        if let Some(server) = self.at(id) {
            // This run has been told everything: a connection that cannot be made does not change that.
            server.made_whole = Some(server.run);
            server.handshake.done = true;
            server.handshake.version = version;
            server.supported = supported;
        }
    }

    /// A restarted server has agreed on a version, if it named one.
    pub(crate) fn agrees_on(&mut self, id: ServerId, version: Option<Box<str>>) {
        if let Some(server) = self.at(id) {
            server.handshake.version = version.or(server.handshake.version.take());
        }
    }

    /// `initialized` is kept for the next process.
    pub(crate) fn keep_initialized(&mut self, id: ServerId, message: &Message) {
        if let Some(server) = self.at(id) {
            server.handshake.initialized = Some(message.owned());
        }
    }

    /// A client goes on without `initialized`. Whether that is news.
    pub(crate) fn skips_initialized(&mut self, id: ServerId) -> bool {
        let Some(server) = self.at(id) else { return false };
        let skips = server.handshake.done && !server.handshake.is_over();
        server.handshake.skipped |= skips;
        skips
    }

    /// Keeps what the next process must be told again.
    pub(crate) fn keep_for_next(
        &mut self,
        id: ServerId,
        client: ClientId,
        method: &Method,
        message: &Message,
    ) {
        let Some(server) = self.at(id) else { return };
        let handshake = &mut server.handshake;
        let uri = || message.raw(Field::ParamsUri).map(Box::<[u8]>::from).unwrap_or_default();
        match method {
            Method::Initialize => {
                handshake.done = false;
                handshake.initialize = Some(message.owned());
            }
            Method::LoggingSetLevel => handshake.log_level = Some(message.owned()),
            Method::ResourcesSubscribe => handshake.subscribe(uri(), client, message),
            Method::ResourcesUnsubscribe => handshake.unsubscribe(&uri(), client),
            Method::ToolsList
            | Method::PromptsList
            | Method::ResourcesList
            | Method::ResourcesTemplatesList
                if !message.has(Field::ParamsCursor) =>
            {
                handshake.keep_list(method, message, None);
            }
            _ => {}
        }
    }

    /// A list was answered from memory: the server itself is asked the same when it is there, to compare.
    pub(crate) fn keep_list(&mut self, id: ServerId, method: &Method, message: &Message, seen: u64) {
        if let Some(server) = self.at(id) {
            server.handshake.keep_list(method, message, Some(seen));
        }
    }

    /// Keeps what a list looks like; whether it looked different before.
    pub(crate) fn list_looks(&mut self, id: ServerId, method: &Method, result: &[u8]) -> Option<bool> {
        let lists = &mut self.at(id)?.handshake.lists;
        let (_, _, kept) = lists.iter_mut().find(|(known, _, _)| known == method)?;
        let before = kept.replace(fingerprint(result));
        before.map(|before| before != fingerprint(result))
    }
}
