//! `subscriptions/listen` at the merged door: the client has one subscription, each server that it concerns a part.
//!
//! Changes of lists are told as changes of our list, once until somebody looks; what servers say of resources passes,
//! under the name that the client has for the resource. A part that ends, or cannot be opened, ends nothing else:
//! what its server lists is then kept only as long as that server says.

use super::{Asking, Engine};
use crate::catalog::Kind;
use crate::clients::{Role, Subscription, Wanted, WantedResource, Watched};
use crate::engine::revival::list_changed_message;
use crate::engine::tasks::{declares_tasks, notification, ticket_list, wanted_tasks};
use crate::error::json_text;
use crate::id::{AttemptId, ClientId, DefinitionId, ServerId};
use crate::json;
use crate::limits;
use crate::merged::Needs;
use crate::method::Method;
use crate::time::Mono;
use crate::wire::{Edit, Field, Message, Outgoing, Patch, scan_message};

/// The lists that may be listened to, as a request calls them.
const LISTS: [(&str, Kind); 3] = [
    ("toolsListChanged", Kind::Tools),
    ("promptsListChanged", Kind::Prompts),
    ("resourcesListChanged", Kind::Resources),
];

// The client's own.
impl Engine {
    /// What must be known before it is known which resources are meant.
    pub(super) fn needs_to_listen(&mut self, asking: &Asking, message: &Message) -> Option<Needs> {
        let all = uris(message);
        let unknown = all.iter().any(|uri| self.resource_called(asking.client, uri).is_none());
        unknown.then_some(Needs::Lists(&[Kind::Resources, Kind::Templates]))
    }

    /// Takes a listen. What it asks of tasks is looked up first.
    pub(super) fn listen_merged(&mut self, now: Mono, asking: &Asking, message: &Message) {
        let server = self.servers_of(asking.client).first().copied();
        if let Some(server) = server.filter(|_| self.config.tasks) {
            let method = Method::Listen;
            let request =
                self.read_request(asking.client, server, asking.id.clone(), method, message, asking.way);
            if self.task_request_of_ours(now, &request, message) {
                return;
            }
        }
        self.begin_to_listen_merged(asking, message, None);
    }

    /// Whether a listen asks for tasks and does not say that its client knows them.
    pub(in crate::engine) fn must_declare_tasks_merged(&self, message: &Message) -> bool {
        self.config.tasks && wanted_tasks(message).is_some() && !declares_tasks(message)
    }

    /// The same after the tasks have been found.
    pub(in crate::engine) fn listen_merged_with_tasks(
        &mut self,
        (client, way): (ClientId, crate::clients::Way),
        message: &Message,
        watched: Watched,
    ) {
        let Some(id) = message.raw(Field::Id).and_then(crate::id::JsonId::new) else { return };
        let asking = Asking { client, way, id, method: Method::Listen, modern: true };
        self.begin_to_listen_merged(&asking, message, Some(watched));
    }

    fn begin_to_listen_merged(&mut self, asking: &Asking, message: &Message, watched: Option<Watched>) {
        let attempt = self.new_attempt();
        if !self.clients.subscribes(asking.client, asking.id.key(), attempt) {
            let text = "Internal error: too many subscriptions are open; end one of them";
            return self.refuse_merged(asking, -32603, text);
        }
        let wanted = self.wanted_of(asking.client, message);
        let honoured = honoured(&wanted, watched.as_ref());
        let acknowledgement = notification("subscriptions/acknowledged", &asking.id, &honoured);
        let server = self.servers_of(asking.client).first().copied().unwrap_or(ServerId(0));
        let listen = Subscription {
            client: asking.client,
            server,
            way: asking.way,
            id: asking.id.clone(),
            message: message.owned(),
            acknowledged: false,
            breaks: 0,
            armed: None,
            tasks: watched.map(Box::new),
            role: Role::Merged(Box::new(wanted)),
        };
        self.listens.open(attempt, listen);
        self.tell(asking.client, asking.way, Outgoing::plain(acknowledgement));
        self.is_acknowledged(attempt);
        for server in self.servers_of(asking.client) {
            self.merged.has_new_listener(server);
            self.open_part(server, attempt);
        }
    }

    fn wanted_of(&mut self, client: ClientId, message: &Message) -> Wanted {
        let asked = json::member(message.raw(Field::Params).unwrap_or_default(), "notifications");
        let is_on = |name| json::member(asked.unwrap_or_default(), name) == Some(b"true");
        let lists = LISTS.into_iter().filter(|(name, _)| is_on(name)).map(|(_, kind)| kind.bit());
        let mut resources = Vec::new();
        for public in uris(message) {
            let Some((definition, own)) = self.resource_called(client, &public) else { continue };
            resources.push(WantedResource { public: public.into(), definition, own });
        }
        let meta = super::greeting::meta_of(message).unwrap_or_else(|| (*b"{}").into());
        Wanted { lists: lists.fold(0, |all, one| all | one), told: 0, resources, meta }
    }
}

// What servers have of it.
impl Engine {
    /// A server is there, perhaps again: whoever listens and has no part there gets one.
    pub(super) fn parts_are_due(&mut self, id: ServerId) {
        let Some(server) = self.servers.get(&id).filter(|_| self.listens.len() > 0) else { return };
        let clients: Vec<ClientId> = server.clients.iter().copied().collect();
        let open: Vec<AttemptId> =
            clients.into_iter().flat_map(|client| self.listens.merged_of(client)).map(|(no, _)| no).collect();
        for attempt in open {
            let parts = self.listens.parts_of(attempt);
            let has = parts.iter().any(|part| self.listens.get(*part).is_some_and(|s| s.server == id));
            if !has {
                self.open_part(id, attempt);
            }
        }
    }

    /// Asks a server for what it can tell of what somebody listens to.
    fn open_part(&mut self, id: ServerId, of: AttemptId) {
        let Some(state) = self.servers.get(&id).filter(|_| self.is_there(id)) else { return };
        let Some((listen, wanted)) = self.listens.get(of).zip(self.listens.wanted(of)) else { return };
        let (client, way, json_id) = (listen.client, listen.way, listen.id.clone());
        let Some(message) = part_of(wanted, state.definition).filter(|_| !self.merged.does_not_speak(id))
        else {
            return;
        };
        let attempt = self.new_attempt();
        let part = Subscription {
            client,
            server: id,
            way,
            id: json_id,
            message: message.clone(),
            acknowledged: false,
            breaks: 0,
            armed: None,
            tasks: None,
            role: Role::Part { of, lists: 0 },
        };
        let edits = message.envelope.get(Field::Id);
        let edits = edits.map(|span| Edit::replace(span, crate::id::own_id(attempt.0, part.id.is_text())));
        self.listens.open(attempt, part);
        let outgoing = Outgoing::edited(message.bytes.clone(), edits.into_iter().collect());
        self.send(id, Some(attempt), Some(&message), outgoing);
    }

    /// A server says something on a part.
    pub(in crate::engine) fn told_of_part(&mut self, id: ServerId, attempt: AttemptId, message: &Message) {
        let method = message.text(Field::Method).unwrap_or_default();
        match &*method {
            "notifications/subscriptions/acknowledged" => {
                let params = message.raw(Field::Params).unwrap_or_default();
                let honoured = json::member(params, "notifications").unwrap_or_default();
                let is_on = |name| json::member(honoured, name) == Some(b"true");
                let lists = LISTS.into_iter().filter(|(name, _)| is_on(name));
                self.listens.is_promised(attempt, lists.fold(0, |all, (_, kind)| all | kind.bit()));
            }
            // They mean our list: see `catalog_changes`.
            method if method.ends_with("/list_changed") => {}
            _ => self.pass_to_listener(id, attempt, message),
        }
    }

    fn pass_to_listener(&mut self, id: ServerId, attempt: AttemptId, message: &Message) {
        let Some(span) = message.envelope.get(Field::MetaSubscriptionId) else { return };
        let Some(part) = self.listens.get(attempt) else { return };
        let (client, way) = (part.client, part.way);
        let mut edits = vec![Edit::replace(span, part.id.patch())];
        if let Role::Part { of, .. } = part.role {
            edits.extend(self.uri_as_listened(id, of, message));
        }
        self.tell(client, way, Outgoing::edited(message.bytes.clone(), edits));
    }

    /// A resource under the name that whoever listens has for it.
    fn uri_as_listened(&self, id: ServerId, of: AttemptId, message: &Message) -> Option<Edit> {
        let definition = self.servers.get(&id)?.definition;
        let (span, uri) = message.envelope.get(Field::ParamsUri).zip(message.text(Field::ParamsUri))?;
        let same = |one: &&WantedResource| one.definition == definition && *one.own == *uri;
        let known = self.listens.wanted(of)?.resources.iter().find(same)?;
        (known.public != known.own).then(|| Edit::replace(span, Patch::of(&[&json_text(&known.public)])))
    }

    /// Nobody listens any more: its servers are told so.
    pub(in crate::engine) fn end_parts(&mut self, of: AttemptId) {
        for attempt in self.listens.parts_of(of) {
            let Some(part) = self.listens.close(&mut self.timers, attempt) else { continue };
            if let Role::Part { lists, .. } = part.role {
                self.part_has_ended(part.server, lists);
            }
            self.cancel_attempt(part.server, attempt, true, part.id.is_text(), "the client listens no more");
        }
    }

    /// What a server promised to tell is not told any more, unless to somebody else.
    pub(in crate::engine) fn part_has_ended(&mut self, id: ServerId, lists: u8) {
        for kind in Kind::ALL {
            if lists & kind.bit() != 0 && !self.listens.are_told(id, kind.bit()) {
                self.merged.is_stale(&mut self.timers, id, kind);
            }
        }
    }

    /// A modern client is told that a list has changed, by each subscription that asked for it.
    pub(super) fn tell_listeners(&mut self, client: ClientId, kind: Kind) {
        let open: Vec<AttemptId> = self.listens.merged_of(client).into_iter().map(|(no, _)| no).collect();
        for attempt in open {
            let news = self.listens.hears_of_change(attempt, kind.bit());
            let Some(listen) = self.listens.get(attempt).filter(|_| news) else { continue };
            let message = list_changed_message(kind.capability(), Some(&listen.id));
            self.tell(client, listen.way, Outgoing::plain(message));
        }
    }
}

/// The resources that a listen names.
fn uris(message: &Message) -> Vec<String> {
    let asked = || json::member(message.raw(Field::Params)?, "notifications");
    let uris = asked().and_then(|asked| json::elements(json::member(asked, "resourceSubscriptions")?));
    let uris = uris.unwrap_or_default().into_iter().filter_map(|raw| serde_json::from_slice(raw).ok());
    uris.take(limits::SUBSCRIBED).collect()
}

/// What we promise to tell, as members of an acknowledgement.
fn honoured(wanted: &Wanted, watched: Option<&Watched>) -> Vec<u8> {
    let mut members = lists_of(wanted);
    if !wanted.resources.is_empty() {
        let uris = wanted.resources.iter().map(|one| json_text(&one.public));
        members.push(resource_list(&uris.collect::<Vec<_>>()));
    }
    members.extend(watched.map(|watched| ticket_list(&watched.tickets)));
    [b"\"notifications\":{", &*members.join(&b','), b"}"].concat()
}

fn lists_of(wanted: &Wanted) -> Vec<Vec<u8>> {
    let wanted = LISTS.into_iter().filter(|(_, kind)| wanted.lists & kind.bit() != 0);
    wanted.map(|(name, _)| format!("\"{name}\":true").into_bytes()).collect()
}

fn resource_list(uris: &[Vec<u8>]) -> Vec<u8> {
    [b"\"resourceSubscriptions\":[", &*uris.join(&b','), b"]"].concat()
}

/// What one server is asked for; `None` if nothing is.
fn part_of(wanted: &Wanted, definition: DefinitionId) -> Option<Message> {
    let mut members = lists_of(wanted);
    let own = wanted.resources.iter().filter(|one| one.definition == definition);
    let own: Vec<Vec<u8>> = own.map(|one| json_text(&one.own)).collect();
    if !own.is_empty() {
        members.push(resource_list(&own));
    }
    let head = br#"{"jsonrpc":"2.0","id":0,"method":"subscriptions/listen","params":{"_meta":"#;
    let whole = [head, &*wanted.meta, b",\"notifications\":{", &*members.join(&b','), b"}}}"].concat();
    if members.is_empty() { None } else { scan_message(whole.into()) }
}
