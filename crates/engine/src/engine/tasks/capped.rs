//! Which clients give a tool up whatever progress they see: who they are, what is known of them, what is learned.
//!
//! What a person wrote in the file for this client wins, then what was written for all (`--client-cap`). Else the rows
//! of `profile.rs` count: what a person wrote of this client, what was learned of it on this machine, what was measured
//! of it.

use crate::action::{Action, Note};
use crate::calls::{Request, handoff};
use crate::clients::{Client, Identity, IdentityNo, Open};
use crate::config::{ClientCap, Manner};
use crate::engine::Engine;
use crate::engine::holding::declares_elicitation;
use crate::engine::revival::list_changed_message;
use crate::hash::fingerprint;
use crate::id::{CallId, ClientId};
use crate::method::Method;
use crate::profile::{Introduction, Learn, Origin, Profile, Sighting};
use crate::settings::show_duration;
use crate::wire::{Field, Message, Outgoing};
use std::time::Duration;

// Who it is.
impl Engine {
    /// A client says who it is.
    pub(in crate::engine) fn meet(&mut self, client: ClientId, handshake: &Message) {
        if self.config.manner == Manner::TimeoutMcp {
            return;
        }
        let params = handshake.raw(Field::Params);
        let capabilities = params.and_then(|params| crate::json::member(params, "capabilities"));
        self.clients.elicits(client, capabilities.is_some_and(declares_elicitation));
        let identity = self.identify(client, handshake);
        self.clients.has_identity(client, identity);
        if !self.config.clients.is_empty() {
            self.finds_rule(client);
        }
        if identity.is_some() && self.clients.is_noted_first(client) {
            self.note_what_is_known(client);
        }
    }

    /// What a person wrote for clients that call themselves so. For one that does not say its name `*` stands, and no
    /// other glob.
    #[cold]
    fn finds_rule(&mut self, client: ClientId) {
        let known = self.clients.identity_of(client);
        let name = known.map(|identity| identity.introduction.name.clone()).unwrap_or_default();
        self.clients.has_rule(client, self.config.rule_for(&name).cloned());
    }

    /// What a person wrote about when a client gives a tool up.
    #[inline]
    fn written_cap(&self, client: ClientId) -> ClientCap {
        if self.config.clients.is_empty() { self.config.client_cap } else { self.cap_of_rule(client) }
    }

    #[cold]
    fn cap_of_rule(&self, client: ClientId) -> ClientCap {
        let rule = self.clients.get(&client).and_then(|client| client.rule.as_ref());
        rule.and_then(|rule| rule.cap()).unwrap_or(self.config.client_cap)
    }

    /// A client of the modern era says so in every request; on a line it stays who it is.
    #[inline]
    pub(in crate::engine) fn meet_in_passing(
        &mut self,
        client: ClientId,
        method: &Method,
        message: &Message,
    ) {
        let new = || self.clients.get(&client).is_some_and(|client| client.identity.is_none());
        if matches!(method, Method::ToolsCall | Method::ToolsList) && new() {
            self.meet(client, message);
        }
    }

    #[inline(never)]
    fn identify(&mut self, client: ClientId, message: &Message) -> Option<IdentityNo> {
        let principal = self.clients.get(&client)?.principal.as_ref();
        let principal = principal.map_or(0, |name| fingerprint(name.as_bytes()));
        let no = IdentityNo { principal, introduction: Introduction::fingerprint(message)? };
        if !self.clients.knows(no) {
            let introduction = Introduction::read(message)?;
            let rows = self.config.profiles.of(&introduction);
            let gave_up = self.config.profiles.gave_up(&introduction);
            self.clients.learn_identity(no, Identity::new(introduction, rows, gave_up));
        }
        Some(no)
    }

    fn note_what_is_known(&mut self, client: ClientId) {
        let Some(identity) = self.clients.identity_of(client) else { return };
        if self.written_cap(client) != ClientCap::Known {
            return;
        }
        let (name, unclear) = (named(&identity.introduction), identity.is_unclear());
        let known = identity.shortest_cap().zip(origin_of(&identity.rows));
        if let Some((cap, from)) = known {
            self.needs_identity();
            self.note(Note::CapKnown { client: name, cap, from });
        } else if unclear {
            self.note(Note::ClientUnclear { client: name });
        }
    }

    /// Calls of this client may be stored: the server needs its name in the store by then.
    fn needs_identity(&mut self) {
        if self.config.server.identity.is_empty() {
            self.act(Action::NeedIdentity);
        }
    }

    /// What the server is called in the store.
    pub(in crate::engine) fn is_called(&mut self, identity: &str) {
        self.config.is_called(identity.into());
        self.servers.are_called(identity);
    }
}

// What follows for its calls.
impl Engine {
    /// When the client of a request gives it up whatever progress it sees, if that is known.
    pub(in crate::engine) fn cap_of(
        &self,
        client: ClientId,
        method: &Method,
        has_token: bool,
    ) -> Option<Duration> {
        let about_tools = matches!(method, Method::ToolsCall | Method::ToolsList);
        if !about_tools || self.config.manner == Manner::TimeoutMcp {
            return None;
        }
        match self.written_cap(client) {
            ClientCap::After(cap) => Some(cap),
            ClientCap::Off => None,
            ClientCap::Known if *method == Method::ToolsList => {
                self.clients.limits_of(client)?.shortest_cap()
            }
            ClientCap::Known => {
                let cap = self.clients.limits_of(client)?.effect(has_token).cap?;
                self.clients.can_fetch(client).then_some(cap)
            }
        }
    }

    /// After how much silence a client gives a call up, if progress resets that.
    pub(in crate::engine) fn silence_of(&self, request: &Request) -> Option<Duration> {
        if request.method != Method::ToolsCall || self.config.manner == Manner::TimeoutMcp {
            return None;
        }
        self.clients.limits_of(request.client)?.effect(request.token.is_some()).silence
    }

    /// Where the cap of a client came from, as a person would look for it.
    pub(super) fn origin_of_cap(&self, client: ClientId) -> String {
        let known = || origin_of(&self.clients.identity_of(client)?.rows);
        let rule = self.clients.get(&client).and_then(|client| client.rule.as_ref());
        if let Some(rule) = rule.filter(|rule| rule.cap().is_some()) {
            return rule.source.to_string();
        }
        match self.config.client_cap {
            ClientCap::After(cap) => format!("client-cap {}", show_duration(cap)),
            ClientCap::Known | ClientCap::Off => known().unwrap_or_default(),
        }
    }
}

// What its cancels teach.
impl Engine {
    /// A client gives a call up. The second time at the same age is hardly a person's doing.
    pub(in crate::engine) fn note_likely_cap(&mut self, call: CallId, reason: Option<&str>) {
        let Some(call) = self.calls.get(call) else { return };
        // How long the client of a joined call has waited is not known.
        let joined =
            call.is_joined() || self.keys.get(call.request.key_no).is_some_and(|key| key.changed_hands);
        if call.request.method != Method::ToolsCall || joined {
            return;
        }
        let (client, silent, has_token) =
            (call.request.client, call.sign.is_none(), call.request.token.is_some());
        let age = self.at.since(call.began);
        self.check_the_cap(client, has_token, age);
        let stated = reason.and_then(|reason| handoff::stated_cap(reason, age));
        if silent
            && (stated.is_some() || age >= handoff::LIKELY)
            && let Some(cap) = self.clients.gives_up(client, age, stated)
        {
            self.learn_from_cancel(client, age, cap);
        }
    }

    /// A client that waited longer than its row says has another limit than the default: its user changed it. The row
    /// does not act any more.
    fn check_the_cap(&mut self, client: ClientId, has_token: bool, age: Duration) {
        let Some(identity) = self.clients.identity_of(client) else { return };
        let Some(cap) = identity.effect(has_token).cap else { return };
        if self.written_cap(client) == ClientCap::Known && handoff::is_beyond(cap, age) {
            let client_name = named(&identity.introduction);
            self.clients.has_rows(client, Vec::new());
            self.note(Note::WaitsLonger { client: client_name, cap, age });
        }
    }

    fn learn_from_cancel(&mut self, client: ClientId, age: Duration, cap: Option<Duration>) {
        let introduction = self.clients.identity_of(client).map(|identity| &identity.introduction);
        let introduction = introduction.filter(|one| !one.name.is_empty()).cloned();
        let learn = if introduction.is_some() { self.config.learn } else { Learn::Off };
        if let Some(cap) = cap {
            let name = introduction.as_ref().map(|one| one.name.clone());
            self.note(Note::LikelyCap { cap, client: name, learn });
        }
        let Some(Introduction { name, version, .. }) = introduction.filter(|_| learn != Learn::Off) else {
            return;
        };
        if learn == Learn::Auto
            && let Some(row) = cap.and_then(|cap| Profile::learned(&name, &version, cap))
        {
            self.acts_on(client, row);
        }
        self.act(Action::Learn(Box::new(Sighting { name, version, age, cap })));
    }

    /// A cap was learned, and counts from now on: the client is asked to look at the tools again, because it needs two
    /// of ours.
    fn acts_on(&mut self, client: ClientId, row: Profile) {
        if self.written_cap(client) != ClientCap::Known {
            return;
        }
        self.clients.has_rows(client, vec![row]);
        self.needs_identity();
        match self.server_for(client) {
            Some(server) => self.list_changed(server, &Method::ToolsList),
            None => self.tell_client(client, Outgoing::plain(list_changed_message("tools", None))),
        }
    }

    /// A client of the modern era gives up what it asked by hanging up.
    pub(in crate::engine) fn hung_up_on_calls(&mut self, client: ClientId) {
        let open = self.clients.get(&client).into_iter().flat_map(Client::all_open);
        let calls = open.filter_map(|open| if let Open::Call(call) = open { Some(call) } else { None });
        let calls: Vec<CallId> = calls.collect();
        calls.into_iter().for_each(|call| self.note_likely_cap(call, None));
    }
}

/// What a client calls itself, and which version that is.
pub(in crate::engine) fn named(client: &Introduction) -> Box<str> {
    let (name, version) = (&client.name, &client.version);
    if version.is_empty() { name.clone() } else { [&**name, " ", version].concat().into() }
}

/// Who says what the rows say.
fn origin_of(rows: &[Profile]) -> Option<String> {
    let row = rows.first()?;
    let version = row.version.as_ref().map(|version| format!(" {version}")).unwrap_or_default();
    Some(match &row.origin {
        Origin::Measured(day) => format!("measured of {}{version} on {day}", row.client),
        Origin::Written(source) => format!("{source} '{}'", row.glob),
        Origin::Learned => format!("learned on this machine of {}{version}", row.glob),
        Origin::Reported => return None,
    })
}
