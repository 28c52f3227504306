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
//! | a stream with an open call | goes on for as long as somebody reads it here; then it is stored, and read elsewhere (`relaying`) |
//! | open calls | go on; what the client says of them elsewhere is passed on to here (`former`) |
//! | what its server asked the client | stays asked: the answer is passed on in the same way |
//! | what is left after the last call | forgotten, without what is stored |
//! | what the session has set up here meanwhile | added to what is stored: the session is taken back for that, and let go of |

use crate::action::{Action, Note};
use crate::clients::Client;
use crate::clients::session::{Session, Setup};
use crate::engine::Engine;
use crate::engine::ledger::Pending;
use crate::id::{ClientId, StreamId};
use crate::store::{Done, Found, Loaded, Query, Refusal, Stored, Trouble, Write};
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
            self.session_was_taken(now, client);
        }
    }

    /// What came of keeping a session.
    pub(in crate::engine) fn session_was_kept(&mut self, now: Mono, client: ClientId, outcome: &Stored) {
        self.clients.was_stored(client, outcome.is_ok());
        self.open_session(now, client);
        if matches!(outcome, Err(Trouble::Refused { why: Refusal::Fenced, .. })) {
            self.session_was_taken(now, client);
        }
    }

    /// Another process serves a session now, or did before the client came back to us. What it has set up here meanwhile
    /// is added to what is stored first: its client was told that this is so.
    fn session_was_taken(&mut self, now: Mono, client: ClientId) {
        let Some(state) = self.clients.get(&client) else { return };
        let Some(session) = state.session().filter(|session| !session.disowned) else { return };
        if session.setup.is_same(&session.stored_setup) {
            return self.let_go_of_session(now, client);
        }
        let name = self.name_of_session(state.entry, &session.id);
        let principal = state.principal.clone().unwrap_or_default();
        self.submit(Pending::Retaken(client), Write::TakeSession { name, principal });
    }

    /// A session is ours again for as long as it takes to add to it. It goes on wherever its client asks next, with a
    /// server that is told all of it.
    pub(in crate::engine) fn session_was_retaken(&mut self, now: Mono, client: ClientId, outcome: &Stored) {
        let Ok(committed) = outcome else { return };
        let session = self.clients.get(&client).and_then(Client::session);
        if session.is_none_or(|session| session.disowned) {
            return;
        }
        if let [Done::Session(Some(kept))] = &committed.done[..] {
            self.clients.sets_up_beside(client, Setup::decode(&kept.setup), kept.epoch);
            self.keep_session(client);
        }
        self.let_go_of_session(now, client);
    }

    /// Another process serves a session now.
    pub(in crate::engine) fn let_go_of_session(&mut self, now: Mono, client: ClientId) {
        let Some(session) = self.clients.disown_session(client) else { return };
        let (name, standing) = (session.id[..8].into(), session.standing);
        self.note(Note::SessionTaken { session: name });
        self.end_standing(standing);
        self.end_if_disowned(now, client);
    }

    pub(in crate::engine) fn end_standing(&mut self, id: StreamId) {
        let Some(exchange) = self.clients.hangs_up(id) else { return };
        self.store_stream(id);
        self.act(Action::Finish(exchange));
    }

    /// Forgets a session of another process once nothing is left to be done for it here. True if it is such a session
    /// and is gone.
    pub(in crate::engine) fn end_if_disowned(&mut self, now: Mono, client: ClientId) -> bool {
        let Some(state) = self.clients.get(&client) else { return false };
        let Some(session) = state.session().filter(|session| session.disowned) else { return false };
        if state.is_busy() || self.has_readers(session) || self.relays.has_reader(client) {
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
