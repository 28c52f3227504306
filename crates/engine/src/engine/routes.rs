//! Which way a message takes: to a server over its pipe or by HTTP, to a client on its line or on one
//! of its streams.

use super::Engine;
use crate::action::Action;
use crate::calls::Call;
use crate::clients::{Client, Door, Open, Way};
use crate::http::Post;
use crate::id::{AttemptId, CallId, ClientId, ServerId};
use crate::method::Method;
use crate::mirror;
use crate::wire::{Field, Message, Outgoing};

impl Engine {
    /// Sends something to a server. `attempt` is the request it carries, `message` what it was made of.
    pub(super) fn send(
        &mut self,
        server: ServerId,
        attempt: Option<AttemptId>,
        message: Option<&Message>,
        outgoing: Outgoing,
    ) {
        if !self.is_remote(server) {
            return self.act(Action::ToServer(server, outgoing));
        }
        self.post_to(server, attempt, message, outgoing, false);
    }

    /// Sends a client's answer to what a server asked. It is kept if the server cannot be reached just now.
    pub(super) fn send_answer(&mut self, server: ServerId, answer: Outgoing) {
        if !self.is_remote(server) {
            return self.act(Action::ToServer(server, answer));
        }
        self.post_to(server, None, None, answer, true);
    }

    fn post_to(
        &mut self,
        server: ServerId,
        attempt: Option<AttemptId>,
        message: Option<&Message>,
        outgoing: Outgoing,
        comes_back: bool,
    ) {
        let Some(state) = self.servers.get(&server) else { return };
        let modern = message.filter(|message| message.has(Field::MetaProtocolVersion));
        let method = message.map(Method::of);
        let begins_session = method == Some(Method::Initialize);
        let goes_first = message.is_some_and(is_initialized);
        let mut headers = match (modern, &state.handshake.version) {
            (Some(message), _) => mirror::headers(message, &state.mirrors),
            (None, Some(version)) if !begins_session => {
                vec![("mcp-protocol-version".into(), version.clone())]
            }
            (None, _) => Vec::new(),
        };
        self.add_trace(server, attempt, &mut headers);
        let handshake =
            message.filter(|_| begins_session).and_then(|handshake| self.declare_resumable(handshake));
        let message = match handshake {
            Some(edit) => outgoing.and(edit),
            None => outgoing,
        };
        let resumes = method == Some(Method::RequestsResume);
        // What a notification of the client's own does is not known.
        let harmless = attempt.is_none() && (goes_first || method.is_none());
        let post =
            Post { attempt, message, headers, begins_session, goes_first, resumes, harmless, comes_back };
        self.act(Action::Post(server, Box::new(post)));
        if goes_first {
            self.servers.arm_standing(&mut self.timers, server, None);
            self.act(Action::Stand(server));
        }
    }

    /// Tells a client something about a request of its own.
    pub(super) fn tell(&mut self, client: ClientId, way: Way, message: Outgoing) {
        match way {
            Way::Line | Way::Array(_) if self.is_hushed(client) => {}
            Way::Line | Way::Array(_) => self.act(Action::ToClient(client, message)),
            Way::Stream(stream) => self.tell_stream(stream, &message),
            Way::Nowhere => {}
            Way::Ticket(no) => match self.attached(no) {
                Some((client, way)) => self.tell(client, way, message),
                None => self.tell_unattached(client, no, message),
            },
        }
    }

    /// Tells a client something that belongs to no request of its own.
    pub(super) fn tell_client(&mut self, client: ClientId, message: Outgoing) {
        if let Some(way) = self.way_to(client) {
            self.tell(client, way, message);
        }
    }

    /// The way to a client for what belongs to no request: on a session the request that it must be
    /// about, if there is only one; else the standing stream, or any that somebody reads.
    pub(super) fn way_to(&self, client: ClientId) -> Option<Way> {
        let client = self.clients.get(&client)?;
        let session = match &client.door {
            Door::Line => return Some(Way::Line),
            Door::Exchange(stream) => return Some(Way::Stream(*stream)),
            Door::Session(session) => session,
        };
        let call = self.only_call_of(client).and_then(|id| self.way_of_call(id));
        let only = call.filter(|way| self.is_read(*way));
        let standing = Way::Stream(session.standing);
        if only.is_some() || self.is_read(standing) {
            return only.or(Some(standing));
        }
        let read = |stream: &&crate::id::StreamId| self.is_read(Way::Stream(**stream));
        let read = session.streams.iter().rev().find(read).map(|stream| Way::Stream(*stream));
        // Whoever comes back for a call finds it there.
        let kept = call.filter(|way| {
            matches!(way, Way::Stream(id) if self.clients.stream(*id).is_some_and(|stream| stream.settled.is_none()))
        });
        Some(read.or(kept).unwrap_or(standing))
    }

    pub(super) fn is_read(&self, way: Way) -> bool {
        match way {
            Way::Line | Way::Array(_) => true,
            Way::Ticket(_) | Way::Nowhere => false,
            Way::Stream(stream) => self
                .clients
                .stream(stream)
                .is_some_and(|stream| stream.exchange.is_some() && stream.settled.is_none()),
        }
    }

    fn way_of_call(&self, id: CallId) -> Option<Way> {
        self.calls.get(id).map(|call| self.real_way(call).1)
    }

    /// Who is to hear of a call, and the way there: of one that can be resumed whoever waits for it now.
    pub(super) fn real_way(&self, call: &Call) -> (ClientId, Way) {
        let attached = match call.request.way {
            Way::Ticket(no) => self.attached(no),
            _ => None,
        };
        attached.unwrap_or((call.request.client, call.request.way))
    }

    /// The only call that a client has open.
    fn only_call_of(&self, client: &Client) -> Option<CallId> {
        match client.only_open()? {
            Open::Call(id) => Some(id),
            Open::Wait(no) => self.tickets.get(no).filter(|task| task.resume.is_some())?.call,
            Open::Subscription(_) | Open::Look(_) | Open::Key(_) | Open::Gather(_) => None,
        }
    }

    /// The call whose stream a message of an HTTP server came on.
    fn tied_call(&self, server: ServerId) -> Option<(ClientId, Way)> {
        let attempt = self.tied?;
        if let Some(id) = self.calls.of(server, attempt) {
            let call = self.calls.get(id)?;
            return Some(self.real_way(call));
        }
        if let Some(subscription) = self.listens.get(attempt) {
            return Some((subscription.client, subscription.way));
        }
        self.fetched_for(attempt).map(|call| (call.request.client, call.request.way))
    }

    /// The way of the call on whose stream a message of an HTTP server came, as its client asked for it.
    pub(super) fn tied_way(&self, server: ServerId) -> Option<Way> {
        let attempt = self.tied?;
        let call = self.calls.of(server, attempt).and_then(|id| self.calls.get(id));
        call.or_else(|| self.fetched_for(attempt)).map(|call| call.request.way)
    }

    /// The only call that is in flight at a server, whoever made it.
    fn only_call_at(&self, server: ServerId) -> Option<(ClientId, Way)> {
        let clients = &self.servers.get(&server)?.clients;
        let mut found = None;
        for id in clients {
            let Some(client) = self.clients.get(id).filter(|client| client.is_busy()) else {
                continue;
            };
            if found.is_some() {
                return None;
            }
            found = Some((*id, self.only_call_of(client)?));
        }
        let (client, call) = found?;
        Some((client, self.way_of_call(call)?))
    }

    /// A log message of a server with several modern calls: the newest call that asked for log messages gets it.
    fn newest_that_logs(&self, server: ServerId) -> Option<(ClientId, Way)> {
        let clients = &self.servers.get(&server)?.clients;
        clients.iter().rev().find_map(|id| {
            let call = self.calls.get(self.only_call_of(self.clients.get(id)?)?)?;
            call.request.logs.then_some((*id, call.request.way))
        })
    }

    /// Clients that can be told something unasked.
    fn lasting_clients(&self, server: ServerId) -> Vec<ClientId> {
        let lasts = |id: &&ClientId| {
            self.clients.get(id).is_some_and(|client| !matches!(client.door, Door::Exchange(_)))
        };
        self.servers
            .get(&server)
            .map(|server| server.clients.iter().filter(lasts).copied().collect())
            .unwrap_or_default()
    }

    /// Passes a server's notification to whom it concerns: the call whose stream it came on, the only
    /// call there is, or everybody who shares the server.
    pub(super) fn tell_audience(&mut self, server: ServerId, message: &Message) {
        let method = message.text(Field::Method).unwrap_or_default();
        let about_all = method.ends_with("list_changed");
        let call = self
            .tied_call(server)
            .or_else(|| self.only_call_at(server).filter(|_| !about_all))
            .or_else(|| self.newest_that_logs(server).filter(|_| method == "notifications/message"));
        if let Some((client, way)) = call {
            if is_of_task(&method) && self.is_merged(client) {
                return;
            }
            let seen = self.as_known_to(client, server, message);
            return self.tell(client, way, seen);
        }
        if planted!(self, TellsEverybody) {
            let all: Vec<_> = self.servers.keys().flat_map(|id| self.lasting_clients(*id)).collect();
            all.into_iter().for_each(|id| self.tell_client(id, Outgoing::plain(message.bytes.clone())));
        }
        for client in self.wanted_by(server, message) {
            let seen = self.as_known_to(client, server, message);
            self.tell_client(client, seen);
        }
    }

    /// Everybody, or of an updated resource those who subscribed to it.
    fn wanted_by(&self, server: ServerId, message: &Message) -> Vec<ClientId> {
        let mut everybody = self.lasting_clients(server);
        if message
            .text(Field::Method)
            .is_some_and(|method| method.ends_with("list_changed") || is_of_task(&method))
        {
            // At the merged door it means our list, see `catalog_changes`; and tasks are ours there.
            everybody.retain(|client| !self.is_merged(*client));
        }
        let updated = message.text(Field::Method).as_deref() == Some("notifications/resources/updated");
        let uri = message.raw(Field::ParamsUri).filter(|_| updated && everybody.len() > 1);
        let subscribed = uri.and_then(|uri| self.servers.get(&server)?.handshake.subscribed.get(uri));
        match subscribed {
            Some((_, clients)) => everybody.into_iter().filter(|id| clients.contains(id)).collect(),
            None => everybody,
        }
    }

    /// Everybody who shares a server is told something of ours.
    pub(super) fn tell_everybody(&mut self, server: ServerId, message: &[u8]) {
        for client in self.lasting_clients(server) {
            self.tell_client(client, Outgoing::plain(bytes::Bytes::copy_from_slice(message)));
        }
    }

    /// Who must be meant by a server's question, and the way there. Where several could be meant,
    /// nobody is asked: a wrong person would be worse.
    pub(super) fn who_is_asked(&self, server: ServerId) -> Option<(ClientId, Way)> {
        // Of a call that was taken over from another process the client is not here.
        if let Some(tied) = self.tied_call(server).filter(|(client, _)| self.clients.contains_key(client)) {
            return Some(tied);
        }
        let clients = self.lasting_clients(server);
        let only = match clients.as_slice() {
            [only] => *only,
            several => {
                let busy = |id: &&ClientId| self.clients.get(id).is_some_and(Client::has_calls);
                let mut busy = several.iter().filter(busy);
                let first = busy.next()?;
                busy.next().is_none().then_some(*first)?
            }
        };
        Some((only, self.way_to(only)?))
    }

    pub(super) fn holds_task_token(&self, server: ServerId, attempt: AttemptId) -> Option<ClientId> {
        let holds = |client: &Client| {
            client.task_tokens.iter().any(|kept| kept.attempt == attempt && kept.server == server)
        };
        self.lasting_clients(server).into_iter().find(|id| self.clients.get(id).is_some_and(holds))
    }
}

/// Whether a notification tells of a task of the server's own.
fn is_of_task(method: &str) -> bool {
    method.starts_with("notifications/tasks/")
}

impl Client {
    fn has_calls(&self) -> bool {
        self.all_open().any(|open| matches!(open, Open::Call(_) | Open::Wait(_)))
    }
}

fn is_initialized(message: &Message) -> bool {
    message.raw(Field::Method) == Some(b"\"notifications/initialized\"")
}
