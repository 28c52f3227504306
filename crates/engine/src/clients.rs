//! The machine of clients: lines, sessions and exchanges, what each has open, and the streams that lead to them.
//!
//! Outside this folder a client, its session and its streams can be read and not changed. A session and its streams
//! live here together, because what is kept of events is counted for both; the name of a session, the connection of
//! a stream and the count of what a principal has in flight never come apart from what they stand for.
//!
//! Not here: what a client is told (the router, `engine/`), and to which server it speaks.

mod client;
mod identity;
mod listens;
pub(crate) mod session;
mod sessions;
mod streams;

pub(crate) use client::{
    Batch, Client, Door, Entry, Open, Role, Subscription, TaskToken, Wanted, WantedResource, Watched, Way,
};
pub(crate) use identity::{Identity, IdentityNo};
pub(crate) use listens::Listens;
pub(crate) use sessions::Sleep;
pub(crate) use streams::{Carried, Settled};

use crate::calls::progress::Progress;
use crate::catalog::View;
use crate::hash::IdMap;
use crate::id::{AttemptId, BatchId, ClientId, DefinitionId, ExchangeId, JsonId, ServerId, StreamId};
use crate::limits;
use crate::small_map::SmallMap;
use crate::tickets::Payer;
use crate::timers::{Owner, Timers};
use crate::wire::{Message, Outgoing};
use identity::Identities;
use session::Stream;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Every client.
#[derive(Debug)]
pub(crate) struct Clients {
    all: SmallMap<ClientId, Client>,
    last: u64,
    /// Sessions by their names.
    sessions: BTreeMap<Box<str>, ClientId>,
    streams: IdMap<StreamId, Stream>,
    /// Those whose events are stored.
    stored_streams: BTreeSet<StreamId>,
    /// Which connection carries which stream.
    exchanges: IdMap<ExchangeId, StreamId>,
    next_stream: u64,
    /// Some request has said to which trace it belongs.
    heard_of_traces: bool,
    /// Bytes of events that are kept for clients that come back.
    kept_events: usize,
    /// Calls in flight by principal, of clients that come over HTTP.
    in_flight: BTreeMap<Option<Box<str>>, usize>,
    /// What is known of them by what they say of themselves.
    identities: Identities,
}

impl Default for Clients {
    fn default() -> Self {
        Clients {
            all: SmallMap::default(),
            last: 0,
            sessions: BTreeMap::new(),
            streams: IdMap::default(),
            stored_streams: BTreeSet::new(),
            exchanges: IdMap::default(),
            next_stream: 1,
            heard_of_traces: false,
            kept_events: 0,
            in_flight: BTreeMap::new(),
            identities: Identities::default(),
        }
    }
}

// Reading.
impl Clients {
    #[inline]
    pub(crate) fn get(&self, id: &ClientId) -> Option<&Client> {
        self.all.get(id)
    }

    /// For the methods of this machine alone.
    #[inline]
    fn at(&mut self, id: ClientId) -> Option<&mut Client> {
        self.all.get_mut(&id)
    }

    #[inline]
    pub(crate) fn contains_key(&self, id: &ClientId) -> bool {
        self.all.contains_key(id)
    }

    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = (&ClientId, &Client)> {
        self.all.iter()
    }

    pub(crate) fn values(&self) -> impl DoubleEndedIterator<Item = &Client> {
        self.all.values()
    }

    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    /// Names lead to what knows them, and what is counted is there.
    pub(crate) fn check(&self) -> Result<(), String> {
        for client in self.sessions.values() {
            if self.get(client).is_none_or(|client| client.session().is_none()) {
                return Err(format!("{client:?} is gone, and its session's name is not"));
            }
        }
        self.check_streams()
    }

    /// What is in flight by principal, to be compared with what there is.
    pub(crate) fn in_flight(&self) -> &BTreeMap<Option<Box<str>>, usize> {
        &self.in_flight
    }
}

// Beginning and end.
impl Clients {
    /// A number for a client that comes over HTTP.
    pub(crate) fn new_id(&mut self) -> ClientId {
        self.last += 1;
        ClientId(self.last)
    }

    /// Keeps the headers of a request at the merged door until it is known which tool they are about.
    pub(crate) fn mirrors(&mut self, id: ClientId, params: &[(Box<str>, Box<str>)]) {
        if let Some(client) = self.all.get_mut(&id).filter(|_| !params.is_empty()) {
            client.mirrored = params.to_vec();
        }
    }

    pub(crate) fn open(&mut self, id: ClientId, client: Client) {
        if let Some(session) = client.session() {
            self.sessions.insert(session.id.clone(), id);
        }
        self.all.insert(id, client);
    }

    /// A client is gone: no name and no timer is left of it. Its streams are closed before.
    pub(crate) fn end(&mut self, timers: &mut Timers, id: ClientId) -> Option<Client> {
        let mut client = self.all.remove(&id)?;
        if let Door::Session(session) = &mut client.door {
            timers.set(Owner::Session(id), &mut session.armed, None);
            if !session.disowned {
                self.sessions.remove(&session.id);
            }
        }
        Some(client)
    }
}

// What it has open.
impl Clients {
    /// From now on an id of a client stands for this.
    #[inline]
    pub(crate) fn opens(&mut self, id: ClientId, key: JsonId, open: Open) {
        if let Some(client) = self.at(id) {
            client.open(key, open);
        }
    }

    /// What an id stood for is over.
    #[inline]
    pub(crate) fn closes(&mut self, id: ClientId, json_id: &JsonId, open: Open) {
        if let Some(client) = self.at(id) {
            client.close(json_id, open);
        }
    }

    /// One subscription more. False if there are too many, or the client is gone.
    pub(crate) fn subscribes(&mut self, id: ClientId, key: JsonId, attempt: AttemptId) -> bool {
        let Some(client) = self.at(id) else { return false };
        if client.subscriptions >= limits::SUBSCRIPTIONS {
            return false;
        }
        client.subscriptions += 1;
        client.open(key, Open::Subscription(attempt));
        true
    }

    pub(crate) fn unsubscribes(&mut self, id: ClientId, json_id: &JsonId, attempt: AttemptId) {
        if let Some(client) = self.at(id) {
            client.subscriptions -= 1;
            client.close(json_id, Open::Subscription(attempt));
        }
    }
}

// What is known of it.
impl Clients {
    /// A line at the merged door shakes hands; each server that it gets later is told so, too.
    pub(crate) fn keeps_handshake(&mut self, id: ClientId, initialize: &Message) {
        if let Some(client) = self.at(id).filter(|client| matches!(client.door, Door::Line)) {
            client.handshake = Some(Box::new(initialize.owned()));
        }
    }

    /// The handshake of a client of the legacy era.
    pub(crate) fn handshake_of(&self, id: ClientId) -> Option<Message> {
        let client = self.get(&id)?;
        match &client.door {
            Door::Session(session) => Some(session.initialize.clone()),
            Door::Line | Door::Exchange(_) => client.handshake.as_deref().cloned(),
        }
    }

    /// Whether it declared `resumableRequests`.
    pub(crate) fn resumes(&mut self, id: ClientId, declared: bool) {
        if let Some(client) = self.at(id) {
            client.resumes = declared;
        }
    }

    /// Whether it declared that it can show a form to its user.
    pub(crate) fn elicits(&mut self, id: ClientId, declared: bool) {
        if let Some(client) = self.at(id) {
            client.elicits = declared;
        }
    }

    /// It is to be told that a list has changed. False if it was, and has not looked since.
    pub(crate) fn hears_of_change(&mut self, id: ClientId, list: u8) -> bool {
        self.at(id).is_some_and(|client| client.hears_of_change(list))
    }

    /// It is to be told that a server is missing. False if it was.
    pub(crate) fn hears_of_missing(&mut self, id: ClientId, definition: DefinitionId) -> bool {
        self.at(id).is_some_and(|client| client.hears_of_missing(definition))
    }

    pub(crate) fn misses_no_more(&mut self, id: ClientId, definition: DefinitionId) {
        if let Some(client) = self.at(id) {
            client.misses_no_more(definition);
        }
    }

    /// It hears of a resource that it calls otherwise than its server does; or no more.
    pub(crate) fn renames(
        &mut self,
        id: ClientId,
        definition: DefinitionId,
        own: &str,
        public: Option<&str>,
    ) {
        if let Some(client) = self.at(id) {
            client.renames(definition, own, public);
        }
    }

    /// These are the tools that it sees, as long as nothing changes.
    pub(crate) fn sees_tools(&mut self, id: ClientId, changes: u64, tools: &Arc<View>) {
        if let Some(client) = self.at(id) {
            client.sees_tools(changes, tools);
        }
    }

    /// It looks at a list.
    pub(crate) fn looks_at(&mut self, id: ClientId, list: u8) {
        if let Some(client) = self.at(id) {
            client.looks_at(list);
        }
    }

    /// It speaks the modern revision. Whether that is news.
    pub(crate) fn is_modern(&mut self, id: ClientId) -> bool {
        self.at(id).is_some_and(|client| !std::mem::replace(&mut client.modern, true))
    }

    /// It has said its last word: only its servers are passed on to it. Gives back these.
    pub(crate) fn finishes(&mut self, id: ClientId) -> Option<Vec<ServerId>> {
        let client = self.at(id)?;
        client.finished = true;
        Some(client.servers().collect())
    }

    pub(crate) fn is_congested(&mut self, id: ClientId, congested: bool) {
        if let Some(client) = self.at(id) {
            client.congested = congested;
        }
    }

    /// It uses a server of this definition.
    pub(crate) fn has_server(&mut self, id: ClientId, definition: DefinitionId, server: ServerId) {
        if let Some(client) = self.at(id) {
            client.has_server(definition, server);
        }
    }

    /// A server of this definition is gone.
    pub(crate) fn loses_server(&mut self, id: ClientId, definition: DefinitionId, server: ServerId) {
        if let Some(client) = self.at(id) {
            client.loses_server(definition, server);
        }
    }

    /// Keeps a token alive that may report on until its task ends.
    pub(crate) fn keep_task_token(&mut self, id: ClientId, token: TaskToken) {
        let Some(client) = self.at(id) else { return };
        if reached!(TASK_TOKENS, client.task_tokens.len() == limits::TASK_TOKENS) {
            client.task_tokens.pop_front();
        }
        client.task_tokens.push_back(token);
    }

    /// Merges a report on a task into its series. `merge` gives what the client is told. `None` if nobody holds a
    /// token for it.
    pub(crate) fn report_on_task(
        &mut self,
        id: ClientId,
        attempt: AttemptId,
        merge: impl FnOnce(&JsonId, &mut Progress) -> Option<Outgoing>,
    ) -> Option<Option<Outgoing>> {
        let kept = self.at(id)?.task_tokens.iter_mut().find(|kept| kept.attempt == attempt)?;
        Some(merge(&kept.token, &mut kept.progress))
    }
}

// Arrays.
impl Clients {
    /// An array of so many requests came. It is one more than there are, so that nothing leaves before every member
    /// was looked at.
    pub(crate) fn new_batch(&mut self, id: ClientId, open: usize) -> Option<BatchId> {
        let client = self.at(id)?;
        let batch = BatchId(client.next_batch);
        client.next_batch += 1;
        client.batches.insert(batch, Batch { open: open + 1, ..Batch::default() });
        Some(batch)
    }

    /// Puts an answer into its array. Gives it back if it does not fit: an array beyond `max-message` helps nobody.
    pub(crate) fn collect(
        &mut self,
        id: ClientId,
        batch: BatchId,
        to: Option<&JsonId>,
        answer: Outgoing,
        most: usize,
    ) -> Option<Outgoing> {
        let collected = self.at(id)?.batches.get_mut(&batch)?;
        if collected.bytes + answer.len() > most {
            return Some(answer);
        }
        collected.bytes += answer.len();
        collected.answers.push((to.map(JsonId::key), answer.to_vec()));
        None
    }

    /// A client gave up a call whose answer is collected but not sent: it must not get it any more.
    pub(crate) fn forget_collected(&mut self, id: ClientId, key: &JsonId) {
        let Some(client) = self.at(id) else { return };
        for batch in client.batches.values_mut() {
            batch.answers.retain(|(to, _)| to.as_ref() != Some(key));
        }
    }

    /// One member of an array is settled. Gives back the whole array after the last one, unless it is empty.
    pub(crate) fn member_done(&mut self, id: ClientId, batch: BatchId) -> Option<Vec<u8>> {
        let client = self.at(id)?;
        let collected = client.batches.get_mut(&batch)?;
        collected.open -= 1;
        if collected.open > 0 {
            return None;
        }
        let answers = client.batches.remove(&batch)?.answers;
        let answers: Vec<Vec<u8>> = answers.into_iter().map(|(_, answer)| answer).collect();
        (!answers.is_empty()).then(|| [b"[", &*answers.join(&b","[..]), b"]"].concat())
    }
}

// What a principal has in flight.
impl Clients {
    /// For whom a client's calls count; for nobody on a line, where it is alone.
    pub(crate) fn payer_of(&self, id: ClientId) -> Option<Payer> {
        let client = self.get(&id).filter(|client| !matches!(client.door, Door::Line))?;
        Some(Payer(client.principal.clone()))
    }

    pub(crate) fn has_room_for(&self, payer: &Payer, most: usize) -> bool {
        self.in_flight.get(&payer.0).is_none_or(|count| *count < most)
    }

    pub(crate) fn charge(&mut self, payer: Payer) {
        *self.in_flight.entry(payer.0).or_default() += 1;
    }

    #[inline(never)]
    pub(crate) fn discharge(&mut self, payer: Option<Payer>) {
        let Some(payer) = payer else { return };
        if let Some(count) = self.in_flight.get_mut(&payer.0) {
            *count -= 1;
            if *count == 0 {
                self.in_flight.remove(&payer.0);
            }
        }
    }

    /// Whether a client's calls count at all.
    #[inline]
    pub(crate) fn comes_over_http(&self, id: ClientId) -> bool {
        self.get(&id).is_some_and(|client| !matches!(client.door, Door::Line))
    }
}
