//! One client: what is open on its connection.

use crate::call::progress::Progress;
use crate::hash::IdMap;
use crate::id::{AskId, AttemptId, BatchId, CallId, JsonId, ServerId};
use crate::wire::Message;
use std::collections::{BTreeMap, VecDeque};

/// What a client's id stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Open {
    Call(CallId),
    Subscription(AttemptId),
}

/// The state of one connection.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) server: ServerId,
    /// By [`JsonId::key`]. If a client uses an id twice at once, the newer one is found.
    pub(crate) open: IdMap<JsonId, Open>,
    pub(crate) subscriptions: usize,
    pub(crate) batches: BTreeMap<BatchId, Batch>,
    pub(crate) next_batch: u64,
    /// Ids of ours that the client's answers name.
    pub(crate) next_ask: u64,
    pub(crate) task_tokens: VecDeque<TaskToken>,
    pub(crate) congested: bool,
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
    pub(crate) token: JsonId,
    pub(crate) progress: Progress,
}

/// A `subscriptions/listen` that goes on until one side ends it.
#[derive(Debug)]
pub(crate) struct Subscription {
    pub(crate) client: crate::id::ClientId,
    pub(crate) server: ServerId,
    pub(crate) id: JsonId,
    /// Sent again to a restarted server.
    pub(crate) message: Message,
    /// It was sent again: the client knows already that it is acknowledged.
    pub(crate) again: bool,
}

impl Client {
    pub(crate) fn new(server: ServerId) -> Client {
        Client {
            server,
            open: IdMap::default(),
            subscriptions: 0,
            batches: BTreeMap::new(),
            next_batch: 0,
            next_ask: 0,
            task_tokens: VecDeque::new(),
            congested: false,
        }
    }

    pub(crate) fn new_ask(&mut self) -> AskId {
        self.next_ask += 1;
        AskId(self.next_ask)
    }

    /// Forgets an id, unless a newer request has taken it over.
    pub(crate) fn close(&mut self, id: &JsonId, open: Open) {
        let key = id.key();
        if self.open.get(&key) == Some(&open) {
            self.open.remove(&key);
        }
    }
}
