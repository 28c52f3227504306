//! The merged door: we are the server that its clients talk to, and a client of each server behind it.
//!
//! A request is answered here (handshake, lists, ping), or it names something that one server has: then it becomes an
//! ordinary call of that server, under the server's own name for it. Whoever needs what a server has not said yet
//! waits, `list-wait` at most, and goes on with what is known.

mod greeting;
mod listen;
mod lists;
mod missing;
mod naming;
mod on_demand;
mod tickets;

use super::Engine;
use super::from_client::is_modern;
use super::sharing::own_handshake;
use crate::catalog::Kind;
use crate::clients::{Entry, Open, Way};
use crate::config::ServerConfig;
use crate::id::{ClientId, DefinitionId, GatherNo, JsonId, ServerId};
use crate::merged::{Gathered, Needs};
use crate::method::Method;
use crate::servers::{Fate, Life};
use crate::time::Mono;
use crate::wire::Message;
use serde_json::{Value, json};

/// A request at the merged door.
#[derive(Clone, Debug)]
struct Asking {
    client: ClientId,
    way: Way,
    id: JsonId,
    method: Method,
    modern: bool,
}

impl Engine {
    pub(super) fn is_merged(&self, client: ClientId) -> bool {
        self.clients.get(&client).is_some_and(|client| client.entry == Entry::Merged)
    }

    /// A request of a client that has no server of its own. One that was forgotten meanwhile waits for nothing.
    #[cold]
    pub(super) fn merged_request(
        &mut self,
        now: Mono,
        (client, way): (ClientId, Way),
        id: JsonId,
        method: Method,
        message: &Message,
    ) {
        if !self.is_merged(client) {
            return;
        }
        let modern = is_modern(&method, message);
        if modern {
            self.speaks_modern(client, &method, message);
            self.meet_at_merged(client, message);
        }
        if self.clients.get(&client).is_some_and(|client| client.servers().next().is_none()) {
            self.meet_with_handshake(now, client, &method, message, modern);
        }
        let asking = Asking { client, way, id, method, modern };
        self.looks_at_list(&asking);
        self.answer_merged(now, asking, message, true);
    }

    /// A client has no servers: it has just come, or all that it had were removed. Each is told the client's own
    /// handshake, whatever it asks for now; a client that has said none is introduced by us.
    fn meet_with_handshake(
        &mut self,
        now: Mono,
        client: ClientId,
        method: &Method,
        message: &Message,
        modern: bool,
    ) {
        match method {
            _ if modern => self.meet_servers(now, client, message, true),
            Method::Initialize => {
                self.clients.keeps_handshake(client, message);
                self.meet_servers(now, client, message, false);
            }
            // It may come before the handshake, and is about us alone.
            Method::Ping => {}
            _ => {
                if let Some(handshake) = self.clients.handshake_of(client).or_else(own_handshake) {
                    self.meet_servers(now, client, &handshake, false);
                }
            }
        }
    }

    /// Answers a request, or passes it to its server. A patient one waits for what is not known yet.
    fn answer_merged(&mut self, now: Mono, asking: Asking, message: &Message, patient: bool) {
        let meant = self.meant(&asking, message);
        let needs = match asking.method {
            Method::Initialize | Method::Discover => Some(Needs::Handshakes),
            Method::ToolsList => Some(Needs::Shown),
            Method::PromptsList => Some(Needs::Lists(&[Kind::Prompts])),
            Method::ResourcesList => Some(Needs::Lists(&[Kind::Resources])),
            Method::ResourcesTemplatesList => Some(Needs::Lists(&[Kind::Templates])),
            Method::Listen if asking.modern => self.needs_to_listen(&asking, message),
            // Only who has an extension that we do not know can answer.
            Method::Other(_) if asking.modern => Some(Needs::Handshakes),
            _ => meant.needs(),
        };
        if let Some(needs) = needs.filter(|_| patient) {
            self.ask_for(now, &asking, message, needs);
            if self.gathers(now, &asking, message, needs) {
                return;
            }
        }
        match asking.method {
            Method::Initialize | Method::Discover => self.welcome_merged(&asking, message),
            Method::Ping if !asking.modern => {
                self.answer_result(asking.client, asking.way, &asking.id, b"{}");
            }
            Method::Listen if asking.modern => self.listen_merged(now, &asking, message),
            Method::LoggingSetLevel if !asking.modern => self.set_level_everywhere(&asking, message),
            Method::TasksGet
            | Method::TasksList
            | Method::TasksCancel
            | Method::TasksUpdate
            | Method::TasksResult
            | Method::RequestsResume
            | Method::RequestsGetStatus
            | Method::RequestsStatusAll
            | Method::RequestsResumeAll => self.about_ticket_merged(now, &asking, message),
            _ => match Kind::of(&asking.method) {
                Some(kind) => self.list_merged(&asking, kind, message),
                None => self.call_merged(now, &asking, message, meant),
            },
        }
    }

    /// Asks every server of a client for what is needed of it, as far as it is there to be asked.
    fn ask_for(&mut self, now: Mono, asking: &Asking, message: &Message, needs: Needs) {
        for server in self.servers_of(asking.client) {
            if asking.modern {
                self.speak_modern_to(server, message, needs);
            }
            for kind in needs.kinds() {
                if self.may_list(server, *kind) && self.merged.wants(now, server, *kind) {
                    self.wake_server(server);
                    self.ask_if_there(now, server, *kind);
                }
            }
        }
    }

    fn servers_of(&self, client: ClientId) -> Vec<ServerId> {
        let stays = |id: &ServerId| self.servers.get(id).is_some_and(|server| server.fate != Fate::Removed);
        self.clients.get(&client).map(|client| client.servers().filter(stays).collect()).unwrap_or_default()
    }

    /// Lets a request wait for what is on its way. False if there is nothing to wait for.
    fn gathers(&mut self, now: Mono, asking: &Asking, message: &Message, needs: Needs) -> bool {
        if !self.is_expecting(asking.client, needs) || !self.merged.has_room() {
            return false;
        }
        let Asking { client, way, id, method, .. } = asking.clone();
        let gathered = Gathered::new(client, way, id.clone(), method, message.owned(), needs);
        let no = self.merged.gather(&mut self.timers, gathered, now + self.config.list_wait);
        self.clients.opens(client, id.key(), Open::Gather(no));
        true
    }

    /// Whether something that is needed may still come.
    fn is_expecting(&self, client: ClientId, needs: Needs) -> bool {
        let Some(state) = self.clients.get(&client) else { return false };
        let expected = |server| self.is_expected(server, needs) && self.is_concerned(client, server, needs);
        state.servers().any(expected)
    }

    fn is_expected(&self, id: ServerId, needs: Needs) -> bool {
        let Some(server) = self.servers.get(&id) else { return false };
        // One that has ended, or cannot be started or reached, is not waited for: it is told of when it is back.
        let there = matches!(server.life, Life::Starting | Life::Up | Life::Restarting | Life::Reviving(_));
        if !there || server.last_trouble.is_some() || server.fate == Fate::Removed {
            return false;
        }
        let welcomes = needs.handshakes() && server.welcome.is_none();
        // What a server without a handshake lists is on its way, too, and tells as much.
        let greets = match self.merged.meta(id) {
            Some(_) => welcomes && self.merged.is_discovering(id),
            None => welcomes && needs == Needs::Handshakes,
        };
        greets || needs.kinds().iter().any(|kind| self.merged.is_expected(id, *kind))
    }

    /// A server has said something, or will not: whoever has waited for it may have everything now.
    pub(super) fn gathered_may_go_on(&mut self, now: Mono, server: ServerId) {
        if self.merged.waiting() == 0 {
            return;
        }
        let uses = |client: ClientId| self.clients.get(&client).is_some_and(|client| client.uses(server));
        let ready = |gathered: &Gathered| {
            uses(gathered.client) && !self.is_expecting(gathered.client, gathered.needs)
        };
        let ready = self.merged.iter().filter(|(_, gathered)| ready(gathered)).map(|(no, _)| no);
        for no in ready.collect::<Vec<_>>() {
            self.go_on_gathered(now, no);
        }
    }

    fn go_on_gathered(&mut self, now: Mono, no: GatherNo) {
        let Some(gathered) = self.merged.take(&mut self.timers, no) else { return };
        let Gathered { client, way, id, method, message, .. } = gathered;
        self.clients.closes(client, &id, Open::Gather(no));
        let modern = is_modern(&method, &message);
        self.answer_merged(now, Asking { client, way, id, method, modern }, &message, false);
    }

    /// `list-wait` is over: what is missing by now is left out.
    pub(super) fn gathered_long_enough(&mut self, now: Mono, no: GatherNo) {
        let Some((_, gathered)) = self.merged.iter().find(|(waiting, _)| *waiting == no) else { return };
        let (client, needs) = (gathered.client, gathered.needs);
        let mut late = self.servers_of(client);
        late.retain(|server| self.is_expected(*server, needs) && self.is_concerned(client, *server, needs));
        for server in late {
            self.merged.is_late(server);
            let server = self.server_name(server);
            self.note(crate::action::Note::ListLate { server, wait: self.config.list_wait });
        }
        self.go_on_gathered(now, no);
    }

    /// A client gives up a request that waits.
    pub(super) fn stop_gathering(&mut self, client: ClientId, id: &JsonId, no: GatherNo) {
        let Some(gathered) = self.merged.take(&mut self.timers, no) else { return };
        self.clients.closes(client, id, Open::Gather(no));
        self.settled_without_answer(client, gathered.way);
    }

    /// What a modern client may see depends on who it is, whatever it asks.
    fn meet_at_merged(&mut self, client: ClientId, message: &Message) {
        let new = self.clients.get(&client).is_some_and(|client| client.identity.is_none());
        if new && !self.config.clients.is_empty() {
            self.meet(client, message);
        }
    }

    /// Whether a client sees a server here.
    fn sees(&self, client: ClientId, server: &ServerConfig) -> bool {
        let rule = self.clients.get(&client).and_then(|client| client.rule.as_ref());
        rule.is_none_or(|rule| rule.shows(&server.name))
    }

    /// The definitions that a client sees a server of.
    fn definitions_seen_by(&self, client: ClientId) -> Vec<DefinitionId> {
        let principal = self.clients.get(&client).and_then(|client| client.principal.as_deref());
        let mut seen = self.definitions_for(principal);
        seen.retain(|id| self.config.definition(*id).is_some_and(|server| self.sees(client, server)));
        seen
    }

    /// Answers a request with a result of ours.
    fn answer_here(&mut self, asking: &Asking, mut result: Value) {
        if asking.modern {
            result["resultType"] = "complete".into();
            result["_meta"] = json!({"io.modelcontextprotocol/serverInfo": greeting::server_info()});
        }
        self.answer_result(asking.client, asking.way, &asking.id, result.to_string().as_bytes());
    }

    /// Refuses a request; in the modern era the error's code decides the status, too.
    fn refuse_merged(&mut self, asking: &Asking, code: i32, text: &str) {
        if asking.modern {
            self.set_status(asking.way, Some(code.into()));
        }
        self.answer_error(asking.client, asking.way, &asking.id, code, text);
    }

    /// A client is gone that waited.
    pub(super) fn forget_gathered(&mut self, client: ClientId, no: GatherNo) {
        if let Some(gathered) = self.merged.take(&mut self.timers, no) {
            self.clients.closes(client, &gathered.id, Open::Gather(no));
        }
    }
}
