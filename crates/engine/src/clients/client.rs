//! One client: who it is, how it is reached, and what it has open.
//!
//! A stdio client is one connection. A legacy HTTP client is a session, which outlives its
//! connections. A modern HTTP client is one exchange: the revision knows no more of it.

use crate::calls::progress::Progress;
use crate::calls::resume;
use crate::catalog::View;
use crate::clients::identity::IdentityNo;
use crate::clients::session::Session;
use crate::config::ClientRule;
use crate::hash::IdMap;
use crate::id::{
    AttemptId, BatchId, CallId, DefinitionId, GatherNo, JsonId, KeyNo, ServerId, StreamId, TaskNo,
};
use crate::limits;
use crate::record::Ticket;
use crate::small_map::SmallMap;
use crate::time::Mono;
use crate::wire::Message;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Weak};

/// What a client's id stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Open {
    Call(CallId),
    Subscription(AttemptId),
    /// For a task to end.
    Wait(TaskNo),
    /// For the store, under this number.
    Look(u64),
    /// For what is known of its key.
    Key(KeyNo),
    /// For what servers say, at the merged door.
    Gather(GatherNo),
}

/// Where what belongs to a request goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// The one line of a stdio client.
    Line,
    /// The same, collected with the other answers of an array.
    Array(BatchId),
    /// A stream of events.
    Stream(StreamId),
    /// To a task, which is asked for it.
    Ticket(TaskNo),
    /// To nobody: its client hung up, and may ask again with the same key.
    Nowhere,
}

/// What a client talks to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    /// One server, as if we were not there.
    Server(DefinitionId),
    /// Us, in the place of all servers.
    Merged,
}

/// How a client is reached.
#[derive(Debug)]
pub(crate) enum Door {
    Line,
    Session(Box<Session>),
    Exchange(StreamId),
}

/// The state of one client.
#[derive(Debug)]
pub(crate) struct Client {
    /// The servers that it uses: one of each definition. None while it sleeps.
    servers: SmallMap<DefinitionId, ServerId>,
    pub(crate) door: Door,
    pub(crate) entry: Entry,
    /// The name of its token.
    pub(crate) principal: Option<Box<str>>,
    /// By [`JsonId::key`]. If a client uses an id twice at once, the newer one is found.
    open: IdMap<JsonId, Open>,
    /// What is still open although its id was used again.
    shadowed: Vec<Open>,
    pub(crate) subscriptions: usize,
    pub(crate) batches: BTreeMap<BatchId, Batch>,
    pub(crate) next_batch: u64,
    pub(crate) task_tokens: VecDeque<TaskToken>,
    pub(crate) congested: bool,
    /// It closed its end: it hears what its server says, and nothing of ours but limits.
    pub(crate) finished: bool,
    /// Who it is, as far as it has said.
    pub(crate) identity: Option<IdentityNo>,
    /// What a person wrote for clients that call themselves as it does.
    pub(crate) rule: Option<Arc<ClientRule>>,
    /// It was given a list with our tools in it.
    pub(crate) shows_our_tools: bool,
    /// It declared `resumableRequests`.
    pub(crate) resumes: bool,
    /// It declared that it can show a form to its user.
    pub(crate) elicits: bool,
    /// It speaks the modern revision.
    pub(crate) modern: bool,
    /// Lists that it was told have changed, and has not looked at since; at the merged door.
    told: u8,
    /// Servers of which it was told that they are missing; at the merged door.
    missing: Vec<DefinitionId>,
    /// Resources that it calls otherwise than their servers do, and hears of.
    renamed: BTreeMap<(DefinitionId, Box<str>), Box<str>>,
    /// The tools that it sees at the merged door, for as long as nothing they are made of has changed: the count of
    /// changes that they are as new as. Nobody is kept from letting go of them.
    tools: Option<(u64, Weak<View>)>,
    /// Its handshake, if it is a line at the merged door; a session keeps its own.
    pub(crate) handshake: Option<Box<Message>>,
    /// The headers that repeat arguments of its one request, where it is not known yet whose tool that calls.
    pub(crate) mirrored: Vec<(Box<str>, Box<str>)>,
}

/// An array of requests whose answers are collected.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    pub(crate) open: usize,
    /// Each with the id it answers, where there is one.
    pub(crate) answers: Vec<(Option<JsonId>, Vec<u8>)>,
    pub(crate) bytes: usize,
}

/// A token that stays valid after its request was answered with a task.
#[derive(Debug)]
pub(crate) struct TaskToken {
    pub(crate) attempt: AttemptId,
    /// Who has the task, and alone may report on it.
    pub(crate) server: ServerId,
    pub(crate) token: JsonId,
    pub(crate) progress: Progress,
}

/// A `subscriptions/listen` that goes on until one side ends it.
#[derive(Debug)]
pub(crate) struct Subscription {
    pub(crate) client: crate::id::ClientId,
    pub(crate) server: ServerId,
    pub(crate) way: Way,
    pub(crate) id: JsonId,
    /// Sent again to a restarted server.
    pub(crate) message: Message,
    /// The client knows that it is acknowledged: what is sent again to a restarted server is so once more.
    pub(crate) acknowledged: bool,
    /// Streams to an HTTP server that broke in a row.
    pub(crate) breaks: u32,
    pub(crate) armed: Option<Mono>,
    /// Tasks of ours that it asks for.
    pub(crate) tasks: Option<Box<Watched>>,
    pub(crate) role: Role,
}

/// What a subscription is to its server.
#[derive(Debug)]
pub(crate) enum Role {
    /// The client's own.
    Whole,
    /// The client's own at the merged door: no server knows it, each has a part of it.
    Merged(Box<Wanted>),
    /// What one server has of that one, and of which lists it promised to tell.
    Part { of: AttemptId, lists: u8 },
}

/// What a subscription at the merged door asks for.
#[derive(Debug)]
pub(crate) struct Wanted {
    /// Of which lists it wants to hear, and has heard since somebody looked.
    pub(crate) lists: u8,
    pub(crate) told: u8,
    pub(crate) resources: Vec<WantedResource>,
    /// What the client said of itself.
    pub(crate) meta: Box<[u8]>,
}

/// A resource that a client of the merged door wants to hear of.
#[derive(Debug)]
pub(crate) struct WantedResource {
    pub(crate) public: Box<str>,
    pub(crate) definition: DefinitionId,
    /// As its server calls it.
    pub(crate) own: Box<str>,
}

/// What a subscription says of tasks of ours.
#[derive(Debug, Default)]
pub(crate) struct Watched {
    pub(crate) tickets: Vec<Ticket>,
    /// It asks for nothing else, so the server knows nothing of it.
    pub(crate) alone: bool,
    pub(crate) acknowledged: bool,
    /// What is told once it is acknowledged; the first few.
    pub(crate) owed: Vec<Vec<u8>>,
}

impl Subscription {
    /// Whether it asks for a task of ours.
    pub(crate) fn listens_to(&self, ticket: &Ticket) -> bool {
        self.tasks.as_ref().is_some_and(|watched| watched.tickets.contains(ticket))
    }

    /// Whether the server knows nothing of it.
    pub(crate) fn is_ours_alone(&self) -> bool {
        matches!(self.role, Role::Merged(_)) || self.tasks.as_ref().is_some_and(|tasks| tasks.alone)
    }
}

impl Client {
    pub(crate) fn new(door: Door, entry: Entry, principal: Option<Box<str>>) -> Client {
        let resumes = match &door {
            Door::Session(session) => resume::declares(&session.initialize),
            Door::Line | Door::Exchange(_) => false,
        };
        Client {
            servers: SmallMap::default(),
            door,
            entry,
            principal,
            open: IdMap::default(),
            shadowed: Vec::new(),
            subscriptions: 0,
            batches: BTreeMap::new(),
            next_batch: 0,
            task_tokens: VecDeque::new(),
            congested: false,
            finished: false,
            identity: None,
            rule: None,
            shows_our_tools: false,
            elicits: false,
            resumes,
            modern: false,
            told: 0,
            missing: Vec::new(),
            renamed: BTreeMap::new(),
            tools: None,
            handshake: None,
            mirrored: Vec::new(),
        }
    }

    /// The server of a definition that it uses.
    #[inline]
    pub(crate) fn server_of(&self, definition: DefinitionId) -> Option<ServerId> {
        self.servers.get(&definition).copied()
    }

    /// The server that what it says is for. `None` while it sleeps, and where each message says it.
    #[inline]
    pub(crate) fn only_server(&self) -> Option<ServerId> {
        match self.entry {
            Entry::Server(definition) => self.server_of(definition),
            Entry::Merged => None,
        }
    }

    /// Every server that it uses.
    pub(crate) fn servers(&self) -> impl Iterator<Item = ServerId> {
        self.servers.values().copied()
    }

    pub(crate) fn uses(&self, server: ServerId) -> bool {
        self.servers().any(|used| used == server)
    }

    /// It uses a server from now on, in place of another of the same definition.
    pub(super) fn has_server(&mut self, definition: DefinitionId, server: ServerId) {
        self.tools = None;
        self.servers.insert(definition, server);
    }

    /// A server of this definition is gone. It may have another by now.
    pub(super) fn loses_server(&mut self, definition: DefinitionId, server: ServerId) {
        if self.servers.get(&definition) == Some(&server) {
            self.tools = None;
            self.servers.remove(&definition);
        }
    }

    /// It uses no server any more.
    pub(super) fn take_servers(&mut self) -> Vec<ServerId> {
        self.tools = None;
        let servers = std::mem::take(&mut self.servers);
        servers.values().copied().collect()
    }

    /// What a person wrote for it.
    pub(super) fn has_rule(&mut self, rule: Option<Arc<ClientRule>>) {
        self.tools = None;
        self.rule = rule;
    }

    /// The tools that it sees, if they are as new as this.
    pub(crate) fn tools(&self, changes: u64) -> Option<Arc<View>> {
        self.tools.as_ref().filter(|(known, _)| *known == changes)?.1.upgrade()
    }

    pub(super) fn sees_tools(&mut self, changes: u64, tools: &Arc<View>) {
        self.tools = Some((changes, Arc::downgrade(tools)));
    }

    /// It is told that a list has changed. False if it knows.
    pub(super) fn hears_of_change(&mut self, list: u8) -> bool {
        let news = self.told & list == 0;
        self.told |= list;
        news
    }

    /// It is told that a server is missing. False if it knows.
    pub(super) fn hears_of_missing(&mut self, definition: DefinitionId) -> bool {
        let news = !self.missing.contains(&definition);
        if news {
            self.missing.push(definition);
        }
        news
    }

    /// A server that was missing is there.
    pub(super) fn misses_no_more(&mut self, definition: DefinitionId) {
        self.missing.retain(|missing| *missing != definition);
    }

    /// It calls a resource this, which its server calls otherwise.
    pub(super) fn renames(&mut self, definition: DefinitionId, own: &str, public: Option<&str>) {
        let key = (definition, own.into());
        match public {
            Some(public) if self.renamed.len() < limits::SUBSCRIBED => {
                self.renamed.insert(key, public.into());
            }
            Some(_) => {}
            None => drop(self.renamed.remove(&key)),
        }
    }

    /// What it calls a resource, if that is not what its server does.
    pub(crate) fn name_for(&self, definition: DefinitionId, own: &str) -> Option<&str> {
        if self.renamed.is_empty() {
            return None;
        }
        self.renamed.get(&(definition, own.into())).map(|public| &**public)
    }

    /// It looks at a list.
    pub(super) fn looks_at(&mut self, list: u8) {
        self.told &= !list;
    }

    /// The session that it is.
    pub(crate) fn session(&self) -> Option<&Session> {
        match &self.door {
            Door::Session(session) => Some(session),
            Door::Line | Door::Exchange(_) => None,
        }
    }

    /// The same, to be changed.
    pub(crate) fn session_mut(&mut self) -> Option<&mut Session> {
        match &mut self.door {
            Door::Session(session) => Some(session),
            Door::Line | Door::Exchange(_) => None,
        }
    }

    /// The only thing it has open.
    pub(crate) fn only_open(&self) -> Option<Open> {
        let only = self.open.len() + self.shadowed.len() == 1;
        self.open.values().next().copied().filter(|_| only)
    }

    /// Whether it has anything open.
    pub(crate) fn is_busy(&self) -> bool {
        !self.open.is_empty() || !self.shadowed.is_empty()
    }

    /// What an id stands for.
    pub(crate) fn named(&self, key: &JsonId) -> Option<Open> {
        self.open.get(key).copied()
    }

    /// Everything it has open.
    pub(crate) fn all_open(&self) -> impl Iterator<Item = Open> {
        self.open.values().chain(&self.shadowed).copied()
    }

    /// Opens something under the key of an id.
    pub(crate) fn open(&mut self, key: JsonId, open: Open) {
        if let Some(older) = self.open.insert(key, open) {
            self.shadowed.push(older);
        }
    }

    /// Forgets what an id stood for; the id too, unless a newer request has taken it over.
    pub(crate) fn close(&mut self, id: &JsonId, open: Open) {
        let key = id.key();
        let found = self.open.remove(&key);
        if found != Some(open) {
            self.close_older(key, found, open);
        }
    }

    #[cold]
    fn close_older(&mut self, key: JsonId, newer: Option<Open>, open: Open) {
        if let Some(newer) = newer {
            self.open.insert(key, newer);
        }
        self.shadowed.retain(|shadowed| *shadowed != open);
    }
}
