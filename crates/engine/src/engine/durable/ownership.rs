//! Which process serves a session that several could serve.
//!
//! The store names the owner of a session and counts its owners (the *epoch*). A session follows its client: a process
//! that gets a request for a session that it does not have takes the session over, whether or not the owner lives, and
//! the epoch rises. The store refuses what the former owner writes in its own epoch, and the former owner asks now and
//! then while it is used. Either way it learns that the session is not its own any more, and lets go of it:
//!
//! | of the former owner | becomes |
//! |---|---|
//! | the session's name | unknown here: the next request for it takes the session back from the store |
//! | the standing stream | ends; the client opens it again, wherever its session is by then |
//! | a stream with an open call | stored, and ended if the client knows that a stream may end before its answer. An older client keeps its connection until the answer, because it would not come back for it |
//! | open calls | go on; their answers are stored with their streams, where every process finds them |
//! | what its server asked the client | refused: the client would answer elsewhere |
//! | what is left after the last call | forgotten, without what is stored |

use crate::action::{Action, Note};
use crate::clients::session::Session;
use crate::clients::{Client, Way};
use crate::engine::Engine;
use crate::engine::ledger::Pending;
use crate::id::{ClientId, StreamId};
use crate::store::{Found, Loaded, Query};
use crate::time::Mono;

impl Engine {
    /// A session is used, and it has not been known for a while whether it is still ours. The store is asked beside
    /// what it is used for, which does not wait.
    #[cold]
    pub(in crate::engine) fn confirm_owner(&mut self, now: Mono, client: ClientId) {
        let Some(state) = self.clients.get(&client) else { return };
        let Some(session) = state.session() else { return };
        if self.config.durable && !session.disowned {
            let name = self.name_of_session(state.entry, &session.id);
            self.load(Pending::Owned(client), Query::Session(name));
        }
        self.clients.is_confirmed(client, now);
    }

    pub(in crate::engine) fn owner_was_looked_up(&mut self, now: Mono, client: ClientId, outcome: &Loaded) {
        let Ok(Found::Session(Some(kept))) = outcome else { return };
        let session = self.clients.get(&client).and_then(Client::session);
        if session.is_some_and(|session| session.epoch < kept.epoch) {
            self.let_go_of_session(now, client);
        }
    }

    /// Another process serves a session now.
    pub(in crate::engine) fn let_go_of_session(&mut self, now: Mono, client: ClientId) {
        let Some(session) = self.clients.disown_session(client) else { return };
        let (name, standing) = (session.id[..8].into(), session.standing);
        let streams: Vec<StreamId> = session.streams.iter().copied().collect();
        self.note(Note::SessionTaken { session: name });
        self.drop_asks_by(now, client);
        for stream in streams {
            if stream == standing {
                self.end_standing(stream);
            } else {
                self.let_client_poll(Way::Stream(stream), self.config.resume_min_wait);
            }
        }
        self.end_if_disowned(now, client);
    }

    fn end_standing(&mut self, id: StreamId) {
        let Some(exchange) = self.clients.hangs_up(id) else { return };
        self.store_stream(id);
        self.act(Action::Finish(exchange));
    }

    /// Forgets a session of another process once nothing is left to be done for it here. True if it is such a session
    /// and is gone.
    pub(in crate::engine) fn end_if_disowned(&mut self, now: Mono, client: ClientId) -> bool {
        let Some(state) = self.clients.get(&client) else { return false };
        let Some(session) = state.session().filter(|session| session.disowned) else { return false };
        if state.is_busy() || self.has_readers(session) {
            return false;
        }
        self.end_client(now, client);
        true
    }

    fn has_readers(&self, session: &Session) -> bool {
        let is_read =
            |id: &StreamId| self.clients.stream(*id).is_some_and(|stream| stream.exchange.is_some());
        session.streams.iter().any(is_read)
    }
}
