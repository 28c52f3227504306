//! Tasks that a modern client listens to.
//!
//! A `subscriptions/listen` may ask for tasks of ours and for notifications of the server at once. The
//! server gets it without our tickets, and its acknowledgement gets those that we honour; a listen that
//! asks for nothing else never leaves. What is not the caller's own or not known is left out of the
//! acknowledgement. What another process runs is watched in the store, as long as somebody listens.

use super::asking::{About, Asked};
use super::declares_tasks;
use crate::calls::Request;
use crate::clients::{Open, Role, Subscription, Watched};
use crate::engine::Engine;
use crate::engine::ledger::Pending;
use crate::error::error_answer;
use crate::id::{AttemptId, ClientId, JsonId, ServerId, TaskNo};
use crate::json;
use crate::limits;
use crate::record::{Head, Ticket};
use crate::store::{Found, Loaded, Query};
use crate::tickets::Task;
use crate::time::Mono;
use crate::wire::{Edit, Field, Message, Outgoing, Patch};

/// A listen whose tasks are being looked up.
#[derive(Clone, Debug)]
pub(in crate::engine) struct Listening {
    request: Request,
    /// As the server gets it; `None` if it does not.
    message: Option<Message>,
    whole: Message,
    left: Vec<Ticket>,
    honoured: Vec<Ticket>,
    /// Tasks of other processes.
    theirs: Vec<Head>,
    /// Tasks that have ended already.
    ended: Vec<Vec<u8>>,
}

impl Engine {
    /// Whether a listen asks for tasks of ours and does not say that its client knows them.
    pub(in crate::engine) fn must_declare_tasks(
        &self,
        client: ClientId,
        server: ServerId,
        message: &Message,
    ) -> bool {
        let ours = self.config.tasks && !self.has_its_own_tasks(server, client);
        ours && wanted_tasks(message).is_some() && !declares_tasks(message)
    }

    /// Takes a listen that asks for tasks of ours. False if it does not.
    pub(super) fn listen_to_tasks(&mut self, now: Mono, request: &Request, message: &Message) -> bool {
        let Some((wanted, ids)) = wanted_tasks(message) else { return false };
        if self.must_declare_tasks(request.client, request.server, message) {
            self.set_status(request.way, Some(-32021));
            self.refuse_to_declare(request);
            return true;
        }
        let mut left: Vec<Ticket> = Vec::new();
        reached!(LISTENED_TASKS if ids.len() > limits::LISTENED_TASKS);
        for id in ids.into_iter().take(limits::LISTENED_TASKS) {
            let ticket = serde_json::from_slice::<String>(id).ok().and_then(|text| Ticket::parse(&text));
            left.extend(ticket.filter(|ticket| !left.contains(ticket)));
        }
        left.reverse();
        let others = json::without(wanted, &["taskIds".into()]);
        let range = json::range_in(&message.bytes, wanted);
        let rest = [b"{", &*others.join(&b","[..]), b"}"].concat();
        let for_server =
            (!others.is_empty()).then(|| message.edited(Edit::range(range, Patch::of(&[&rest])))).flatten();
        let listening = Listening {
            request: request.clone(),
            message: for_server,
            whole: message.owned(),
            left,
            honoured: Vec::new(),
            theirs: Vec::new(),
            ended: Vec::new(),
        };
        self.look_for_listened(now, listening);
        true
    }

    /// Finds one task after the other, then begins to listen.
    fn look_for_listened(&mut self, now: Mono, mut listening: Listening) {
        while let Some(ticket) = listening.left.pop() {
            if self.honours(&ticket, &mut listening) {
                continue;
            }
            let (client, way) = (listening.request.client, listening.request.way);
            let asked = Asked {
                client,
                way,
                id: listening.request.id.clone(),
                principal: self.principal_of(client),
                modern: true,
                about: About::Listen(Box::new(listening)),
            };
            return self.look_up(asked, Query::Record(ticket), Pending::Asked);
        }
        self.begin_to_listen(now, listening);
    }

    /// Takes a task of this process in. False if it is none.
    fn honours(&self, ticket: &Ticket, listening: &mut Listening) -> bool {
        let principal = self.principal_of(listening.request.client);
        let task = self.tickets.named(ticket).and_then(|no| self.tickets.get(no));
        let Some(task) = task.filter(|task| task.theirs.is_none()) else { return false };
        if task.principal == principal && task.modern {
            listening.honoured.push(ticket.clone());
            listening.ended.extend(task.has_ended().then(|| self.modern_task(task, None)));
        }
        true
    }

    /// The store has been asked for one of them.
    pub(super) fn listened_is_found(&mut self, now: Mono, asked: &Asked, outcome: &Loaded) {
        let About::Listen(listening) = &asked.about else { return };
        let mut listening = (**listening).clone();
        if let Ok(Found::Record(Some(record))) = outcome
            && self.may_see(&record.head, asked)
            && !self.honours(&record.head.ticket, &mut listening)
        {
            listening.honoured.push(record.head.ticket.clone());
            if record.head.state.is_open() {
                self.claim_if_abandoned(now);
                listening.theirs.push(record.head.clone());
            } else {
                listening.ended.push(self.modern_task(&Task::of_record(record, asked.client), None));
            }
        }
        self.look_for_listened(now, listening);
    }

    fn begin_to_listen(&mut self, now: Mono, listening: Listening) {
        let watched = Watched {
            tickets: listening.honoured,
            alone: listening.message.is_none(),
            acknowledged: false,
            owed: listening.ended,
        };
        let request = listening.request;
        if self.is_merged(request.client) {
            let (client, way) = (request.client, request.way);
            listening.theirs.iter().for_each(|head| self.watch_theirs(head, client));
            return self.listen_merged_with_tasks((client, way), &listening.whole, watched);
        }
        for head in &listening.theirs {
            self.watch_theirs(head, request.client);
        }
        match listening.message {
            Some(message) => self.listen_beside_server(now, request, &message, watched),
            None => self.listen_alone(request, listening.whole, watched),
        }
    }

    /// From now on it is seen what becomes of another process's task.
    fn watch_theirs(&mut self, head: &Head, client: ClientId) {
        if self.tickets.named(&head.ticket).is_none() {
            let task = Task::of_head(head, client);
            self.add_task(Task { theirs: Some(head.revision), ..task });
        }
    }

    /// Whether anybody listens to a task.
    pub(in crate::engine) fn is_listened_to(&self, ticket: &Ticket) -> bool {
        !self.listens.to(ticket).is_empty()
    }

    fn listen_beside_server(&mut self, now: Mono, request: Request, message: &Message, watched: Watched) {
        let (client, key) = (request.client, request.id.key());
        self.subscribe(now, request, message);
        let opened = self.clients.get(&client).and_then(|client| client.named(&key));
        // It may have been refused.
        if let Some(Open::Subscription(attempt)) = opened {
            self.listens.watches(attempt, watched);
        }
    }

    fn listen_alone(&mut self, request: Request, message: Message, watched: Watched) {
        let attempt = self.new_attempt();
        if !self.clients.subscribes(request.client, request.id.key(), attempt) {
            let text = "Internal error: too many subscriptions are open";
            let answer = error_answer(request.id.patch().as_slice(), -32603, text, None);
            return self.reply(request.client, request.way, Some(&request.id), Outgoing::plain(answer));
        }
        let params = [b"\"notifications\":{", &*ticket_list(&watched.tickets), b"}"].concat();
        let subscription = Subscription {
            client: request.client,
            server: request.server,
            way: request.way,
            id: request.id,
            message,
            acknowledged: false,
            breaks: 0,
            armed: None,
            tasks: Some(Box::new(watched)),
            role: Role::Whole,
        };
        let (client, way) = (subscription.client, subscription.way);
        let acknowledgement = notification("subscriptions/acknowledged", &subscription.id, &params);
        self.listens.open(attempt, subscription);
        self.tell(client, way, Outgoing::plain(acknowledgement));
        self.is_acknowledged(attempt);
    }

    /// What is added to a server's acknowledgement: the tasks that we honour.
    pub(in crate::engine) fn add_tickets(&self, attempt: AttemptId, message: &Message) -> Option<Edit> {
        let watched = self.listens.get(attempt)?.tasks.as_ref()?;
        let list = ticket_list(&watched.tickets);
        let params = message.raw(Field::Params)?;
        match json::member(params, "notifications") {
            Some(honoured) => json::insert_member(&message.bytes, honoured, &list),
            None => {
                let member = [b"\"notifications\":{", &*list, b"}"].concat();
                json::insert_member(&message.bytes, params, &member)
            }
        }
    }

    /// A subscription has been acknowledged: what it missed is told.
    pub(in crate::engine) fn is_acknowledged(&mut self, attempt: AttemptId) {
        for shown in self.listens.is_acknowledged(attempt) {
            self.push(attempt, shown);
        }
    }

    /// Tells whoever listens that a modern task has changed.
    pub(super) fn push_task(&mut self, no: TaskNo) {
        let Some(task) = self.tickets.get(no) else { return };
        let listening = self.listens.to(&task.ticket);
        if listening.is_empty() {
            return;
        }
        let shown = self.modern_task(task, None);
        for attempt in listening {
            self.push(attempt, shown.clone());
        }
    }

    fn push(&mut self, attempt: AttemptId, shown: Vec<u8>) {
        let Some(shown) = self.listens.tell(attempt, shown) else { return };
        let Some(listen) = self.listens.get(attempt) else { return };
        let members = shown.strip_prefix(b"{").and_then(|rest| rest.strip_suffix(b"}")).unwrap_or_default();
        let message = notification("tasks", &listen.id, members);
        let (client, way) = (listen.client, listen.way);
        self.tell(client, way, Outgoing::plain(message));
    }
}

/// What a listen asks for, and the tasks in it.
pub(in crate::engine) fn wanted_tasks(message: &Message) -> Option<(&[u8], Vec<&[u8]>)> {
    let wanted = json::member(message.raw(Field::Params)?, "notifications")?;
    Some((wanted, json::elements(json::member(wanted, "taskIds")?)?))
}

/// `"taskIds":[…]`.
pub(in crate::engine) fn ticket_list(tickets: &[Ticket]) -> Vec<u8> {
    let ids: Vec<String> = tickets.iter().map(|ticket| format!("\"{}\"", ticket.as_str())).collect();
    format!(r#""taskIds":[{}]"#, ids.join(",")).into_bytes()
}

/// A notification of a subscription. `members` are those of its params.
pub(in crate::engine) fn notification(name: &str, subscription: &JsonId, members: &[u8]) -> Vec<u8> {
    let head = format!(r#"{{"jsonrpc":"2.0","method":"notifications/{name}","params":{{"_meta":{{"#);
    let id = subscription.patch();
    let key = br#""io.modelcontextprotocol/subscriptionId":"#;
    [head.as_bytes(), key, id.as_slice(), b"},", members, b"}}"].concat()
}
