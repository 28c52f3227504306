//! Calls that a process left behind when it ended: never silently lost, never run twice unasked.
//!
//! A call that its server has a name for is asked for there (`orphaned.rs`), one that may be repeated is made
//! again, one that waited for a person's yes waits again, any other has failed and says why. That happens as soon as there is a server: in wrap mode when the
//! client has shaken hands with it; in serve mode at once in the modern era, and for whatever has a name at the
//! server. A legacy call that is to be made again needs what its client could do, so it waits for a session
//! of its principal, or for one of anybody's where all share a server. None waits longer than `resume-wait`, but for
//! those that their server has.

use super::following::about;
use super::server_tasks::own_meta;
use crate::action::Note;
use crate::calls::Request;
use crate::calls::orphaned::Place;
use crate::clients::{Client, Way};
use crate::config::Share;
use crate::engine::Engine;
use crate::engine::sharing::own_initialized;
use crate::error::{Failure, Kind, Retry, ServerState, Wording};
use crate::http::SAME_USER;
use crate::id::{ClientId, DefinitionId, JsonId, NOBODY, ServerId, TaskNo};
use crate::method::Method;
use crate::record::{Record, State, Ticket};
use crate::servers::{Own, Readiness, Server};
use crate::store::{Found, Loaded};
use crate::tickets::{Orphan, Task, Tickets};
use crate::time::Mono;
use crate::wire::{Field, Outgoing, Scanned, scan};

/// What is shown of a call that waits.
const WAITS: &str = "outlast was restarted; the call goes on when a session of its client is there again";

const NOT_BACK: &str =
    "outlast itself was ended during the call, and its client did not come back in time (resume-wait)";

impl Engine {
    /// A record that is ours now has been read.
    pub(super) fn orphan_was_read(&mut self, ticket: Ticket, outcome: &Loaded) {
        let record = match outcome {
            Ok(Found::Record(Some(record))) => record,
            Ok(_) => return,
            // It is ours, and nobody else will take it: it is read again with the next renewal.
            Err(_) => {
                self.tickets.is_unread(ticket);
                let stored_calls = self.has_stored_calls();
                return self.tickets.arm_upkeep(&mut self.timers, self.at, stored_calls);
            }
        };
        if !record.head.state.is_open() {
            return;
        }
        let no = self.adopt(record);
        let Some(task) = self.tickets.get(no) else { return };
        let place = self.place_at_server(no);
        let hope = place.is_some() || task.body.repeatable.is_some();
        let hope = hope || (task.body.held && !planted!(self, ForgetsHeld));
        let message = match scan(record.request.clone()) {
            Ok(Scanned::Message(message)) if hope => Box::new(message),
            _ => return self.fail_orphan(no, "outlast itself was ended during the call"),
        };
        // A hand-off does not tell by its face.
        let modern = message.has(Field::MetaProtocolVersion);
        let (principal, definition) = (task.principal.clone(), self.definition_called(&task.server));
        // Only what is called as one of ours was claimed.
        let Some(definition) = definition else { return };
        self.take_questions_back(no);
        self.tickets.add_orphan(Orphan { no, message, modern, principal, definition, place, since: self.at });
        self.tickets.orphans_may_go_on();
    }

    /// Takes a record in as a task of ours; somebody may wait for it already.
    fn adopt(&mut self, record: &Record) -> TaskNo {
        let adopted = Task::of_record(record, NOBODY);
        match self.tickets.named(&record.head.ticket) {
            Some(no) => {
                self.tickets.adopt(no, adopted);
                no
            }
            None => self.add_task(adopted),
        }
    }

    /// What the process that is gone was asked cannot be answered here; whoever still needs it asks again.
    fn take_questions_back(&mut self, no: TaskNo) {
        if self.tickets.get(no).is_some_and(|task| task.state == State::InputRequired) {
            let change =
                self.tickets.move_to(no, State::Working, self.store_time(), |body| body.questions.clear());
            self.write_move(no, State::InputRequired, change);
        }
    }

    fn fail_orphan(&mut self, no: TaskNo, why: &str) {
        let Some(task) = self.tickets.get(no) else { return };
        let failure = Failure {
            kind: Kind::ServerGone,
            server: self.name_in_store(&task.server),
            // No other call has a ticket.
            method: Method::ToolsCall.as_str().into(),
            tool: Some(task.tool.clone()).filter(|tool| !tool.is_empty()),
            elapsed: self.store_time().since(task.created),
            limit: None,
            setting: None,
            retry_after: None,
            attempts: u32::from(!task.body.held),
            state: if task.body.held { ServerState::NeverReached } else { ServerState::Gone },
            retry: if task.body.held || task.body.repeatable.is_some() { Retry::Safe } else { Retry::Unsafe },
            last_sign: None,
            plain: false,
            detail: Some(why.to_owned()),
            stderr: None,
        };
        let modern = task.modern;
        let answer = failure.answer(b"0", modern, Wording::Own);
        self.note(Note::Failed(Box::new(failure)));
        self.task_answered(no, &Outgoing::plain(answer));
    }

    /// Goes on with the calls that have a server now.
    pub(in crate::engine) fn start_orphans(&mut self, now: Mono) {
        for orphan in self.tickets.take_orphans() {
            match self.server_of_orphan(now, &orphan) {
                Some(server) => self.start_orphan(now, server, orphan),
                None => self.let_orphan_wait(orphan),
            }
        }
    }

    fn let_orphan_wait(&mut self, orphan: Orphan) {
        if self.config.manner.serves() {
            self.change_body(orphan.no, |body| body.status_message = Some(WAITS.into()));
        }
        if self.tickets.get(orphan.no).is_some_and(|task| task.state.is_open()) || orphan.place.is_some() {
            self.tickets.add_orphan(orphan);
        }
    }

    /// A server that can take a call of a client that is gone, in the same name and era.
    fn server_of_orphan(&mut self, now: Mono, orphan: &Orphan) -> Option<ServerId> {
        if !self.config.manner.serves() {
            let mut servers = self.servers.iter();
            let (id, server) = servers.find(|(_, server)| server.definition == orphan.definition)?;
            // The modern era has no handshake: a client that speaks it is enough.
            let spoken = || self.clients.values().any(|client| client.modern);
            let greeted = server.handshake.is_over() || (orphan.modern && spoken());
            return greeted.then_some(*id);
        }
        let definition = orphan.definition;
        if orphan.modern {
            return self.server_for_exchange(now, definition, name_of(&orphan.principal));
        }
        let greeted = self.greeted_server(definition, &orphan.principal);
        if orphan.place.is_some() {
            return greeted.or_else(|| self.server_for_orphan(now, definition, &orphan.principal));
        }
        greeted
    }

    /// What people call the server that is called so in the store.
    pub(in crate::engine) fn name_in_store(&self, identity: &str) -> Box<str> {
        let definition = self.definition_called(identity).and_then(|id| self.config.definition(id));
        definition.map_or_else(|| identity.into(), |definition| definition.name.clone())
    }

    /// A server that a session of this principal has shaken hands with, or that all share.
    fn greeted_server(&self, definition: DefinitionId, principal: &str) -> Option<ServerId> {
        let named = |client: &ClientId| self.principal_of(*client).as_ref() == principal;
        let fits = |server: &Server| {
            let all = server.config.share == Share::All;
            let greeted = server.handshake.done && server.handshake.is_over();
            let there = greeted && server.readiness() != Readiness::IsGone;
            let there = there && server.definition == definition;
            there && server.clients.iter().any(|client| all || named(client))
        };
        self.servers.iter().find(|(_, server)| fits(server)).map(|(id, _)| *id)
    }

    /// A call of ours may be the first thing that a server hears after the handshake of a client that goes on without
    /// `initialized`. It may wait for that before it takes anything.
    fn initialize_for_client(&mut self, id: ServerId) {
        if self.servers.get(&id).is_none_or(|server| server.handshake.initialized.is_some()) {
            return;
        }
        if let Some(initialized) = own_initialized() {
            self.servers.keep_initialized(id, &initialized);
            self.pass_to_server(id, &initialized);
        }
    }

    /// A client asks for something. If it never said `initialized`, it is not going to, or has said so to another
    /// replica. Its server may wait for that before it takes anything, so it hears it from us.
    pub(in crate::engine) fn goes_on_without_initialized(&mut self, client: ClientId, server: ServerId) {
        if !self.servers.skips_initialized(server) {
            return;
        }
        let is_session = self.clients.get(&client).and_then(Client::session).is_some();
        if self.config.replicated && is_session {
            self.initialize_for_client(server);
        }
        self.tickets.orphans_may_go_on();
    }

    fn start_orphan(&mut self, now: Mono, server: ServerId, orphan: Orphan) {
        let Some(task) = self.tickets.get(orphan.no).filter(|task| task.state.is_open()) else {
            return self.cancel_orphan(server, &orphan);
        };
        let (client, resumed) = (task.client, task.resume.is_some());
        let Orphan { no, message, modern, .. } = orphan;
        if !modern {
            self.initialize_for_client(server);
        }
        let Some(id) = message.raw(Field::Id).and_then(JsonId::new) else { return };
        // Whoever comes back for it knows its token; anybody else may use the same for something new.
        let token = message.raw(Field::MetaProgressToken).and_then(JsonId::token).filter(|_| resumed);
        let request = Request {
            client,
            server,
            id,
            method: Method::of(&message),
            tool: message.text(Field::ParamsName).map(|name| name.as_ref().into()),
            modern,
            task: false,
            way: Way::Ticket(no),
            logs: false,
            token,
            handshake_digest: None,
            cap: None,
            key_no: None,
            no: None,
        };
        self.change_body(no, |body| body.status_message = None);
        self.begin_call(now, request, &message);
    }

    /// It was cancelled while there was no server to tell.
    fn cancel_orphan(&mut self, server: ServerId, orphan: &Orphan) {
        let runs = self.servers.get(&server).is_some_and(|server| server.readiness() == Readiness::Runs);
        if let Some(Place::Task(task)) = orphan.place.as_ref().filter(|_| runs) {
            let meta = own_meta(&orphan.message).filter(|_| orphan.modern);
            let cancel = about("tasks/cancel", task, meta.as_deref(), b"");
            self.send_about_task(server, &cancel, Own::Quiet);
        }
    }

    /// Nobody came for a call within `resume-wait`: it has failed, because its client may be at another process and
    /// would wait there for ever. One that its server has is waited for as long as its client was told it is kept.
    pub(super) fn give_orphans_up(&mut self, now: Mono) {
        let (store_time, patience) = (self.store_time(), self.config.resume_wait);
        let over = |tickets: &Tickets, orphan: &Orphan| {
            let task = tickets.get(orphan.no).filter(|task| task.state.is_open());
            let kept = |task: &Task| store_time.since(task.created).as_millis() <= u128::from(task.ttl());
            let waits = orphan.place.is_some() || now.since(orphan.since) < patience;
            task.is_some_and(|task| !kept(task) || !waits)
        };
        let over = self.tickets.take_orphans_if(over);
        for orphan in over {
            self.fail_orphan(orphan.no, NOT_BACK);
        }
    }
}

/// The name of a principal, as its clients have it.
fn name_of(principal: &str) -> Option<&str> {
    if principal == "stdio" { Some(SAME_USER) } else { principal.strip_prefix("token:") }
}
