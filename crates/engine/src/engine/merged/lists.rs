//! Lists: asked of each server, kept, and joined for each client.

use super::{Asking, Engine};
use crate::action::Note;
use crate::catalog::{Kind, Listed, Listing, Page, Part, Shown, View};
use crate::clients::Way;
use crate::config::Expose;
use crate::engine::remote::error_code;
use crate::engine::revival::list_changed_message;
use crate::error::cut;
use crate::id::{AttemptId, ClientId, ServerId};
use crate::json;
use crate::limits;
use crate::merged::{ListDue, PartKey, ViewKey};
use crate::servers::{Own, Readiness};
use crate::settings::show_duration;
use crate::time::Mono;
use crate::wire::{Field, Message, Outgoing, scan_message};
use bytes::Bytes;
use std::sync::Arc;
use std::time::Duration;

/// How long a list is kept at most, whatever its server says.
const LONGEST_KEPT: Duration = Duration::from_secs(24 * 60 * 60);

/// The error of a server that has no such list.
const NO_SUCH_METHOD: i64 = -32601;

impl Engine {
    /// Whether a server says that it has lists of this kind. What has not been said is tried.
    pub(super) fn may_list(&self, id: ServerId, kind: Kind) -> bool {
        let Some(server) = self.servers.get(&id) else { return false };
        let Some(result) = server.welcome.as_ref().and_then(|welcome| welcome.raw(Field::Result)) else {
            return true;
        };
        let capabilities = json::member(result, "capabilities").unwrap_or_default();
        json::member(capabilities, kind.capability()).is_some()
    }

    pub(super) fn is_there(&self, id: ServerId) -> bool {
        self.servers.get(&id).is_some_and(|server| server.readiness() == Readiness::Runs)
    }

    pub(super) fn ask_if_there(&mut self, now: Mono, id: ServerId, kind: Kind) {
        if self.is_there(id) {
            self.ask_for_page(now, (id, kind), Box::default(), None);
        }
    }

    /// A server is there, perhaps again: it is asked for what somebody wants of it.
    pub(in crate::engine) fn lists_are_due(&mut self, now: Mono, id: ServerId, anew: bool) {
        self.server_is_there(id);
        self.parts_are_due(id);
        for kind in self.merged.wanted(id, anew) {
            if self.may_list(id, kind) {
                self.ask_for_page(now, (id, kind), Box::default(), None);
            } else if self.merged.refuses(&mut self.timers, id, kind) {
                self.tell_of_news(id, kind);
            }
        }
        self.gathered_may_go_on(now, id);
    }

    fn ask_for_page(
        &mut self,
        now: Mono,
        (id, kind): (ServerId, Kind),
        so_far: Box<Listing>,
        cursor: Option<&[u8]>,
    ) {
        let method = kind.method();
        let meta = self.merged.meta(id).map(|meta| [b"\"_meta\":", meta].concat());
        let cursor = cursor.map(|cursor| [b"\"cursor\":", cursor].concat());
        let params: Vec<Vec<u8>> = meta.into_iter().chain(cursor).collect();
        let params = match params.is_empty() {
            true => Vec::new(),
            false => [b",\"params\":{", &*params.join(&b","[..]), b"}"].concat(),
        };
        let request =
            [br#"{"jsonrpc":"2.0","id":0,"method":""#, method.as_str().as_bytes(), b"\"", &*params, b"}"];
        let Some(message) = scan_message(request.concat().into()) else { return };
        let attempt = self.new_attempt();
        let until = self.limit_of_own(id, &method).map(|limit| now + limit.time);
        self.merged.asks(&mut self.timers, (id, kind), attempt, so_far, until);
        self.send_own(id, &message, &method, attempt);
        self.servers.asks_own(id, attempt, Own::Listing(kind));
    }

    /// A page of a list has come.
    pub(in crate::engine) fn page_came(
        &mut self,
        now: Mono,
        (id, attempt): (ServerId, AttemptId),
        kind: Kind,
        answer: &Message,
    ) {
        let Some(mut listing) = self.merged.take_asked(id, kind, attempt) else { return };
        let Some(page) = self.page_as_shown(id, kind, answer) else {
            return self.list_is_refused(now, id, kind, answer);
        };
        match listing.add(kind, &page) {
            Listed::More(cursor) => return self.ask_for_page(now, (id, kind), listing, Some(&cursor)),
            Listed::Last => {}
            Listed::Ends(why) => {
                let server = self.server_name(id);
                self.note(Note::OddList { server, method: kind.method().as_str().into(), why });
            }
        }
        let until = self.kept_until(now, id, kind, answer);
        self.list_is_known(now, id, kind, *listing, until);
    }

    /// An error says that there is no such list, or none for us; or that it cannot be had now.
    fn list_is_refused(&mut self, now: Mono, id: ServerId, kind: Kind, answer: &Message) {
        if is_of_other_era(answer) && self.merged.meta(id).is_some() && !self.merged.has_listed(id) {
            self.is_foreign(id);
        }
        if error_code(answer) == Some(NO_SUCH_METHOD) || self.merged.does_not_speak(id) {
            return self.list_is_known(now, id, kind, Listing::default(), None);
        }
        let error = answer.raw(Field::Error).unwrap_or_default();
        let why = format!("error {}", cut(&String::from_utf8_lossy(error), limits::ERROR_MESSAGE));
        self.list_failed(now, id, kind, why);
    }

    /// A list could not be had: what was known of it stays, and it is asked for again as a server would be that cannot
    /// be reached.
    fn list_failed(&mut self, now: Mono, id: ServerId, kind: Kind, why: String) {
        let failures = self.merged.failures(id, kind);
        let config = self.definition_of(id);
        let again = config.connect_again_after(failures);
        let wait = again.unwrap_or(config.reconnect_every);
        // That it goes on so is said once.
        if failures <= config.connect_retries + 1 {
            let (server, method) = (self.server_name(id), kind.method().as_str().into());
            self.note(Note::ListFailed { server, method, why: why.clone(), wait, failed: again.is_none() });
        }
        self.servers.has_erred(id, &format!("{}: {why}", kind.method().as_str()));
        let wait = if planted!(self, ForgetsFailedLists) { LONGEST_KEPT } else { wait };
        self.merged.fails(&mut self.timers, (id, kind), now + wait);
        self.gathered_may_go_on(now, id);
    }

    /// A list of a server is to be asked for again, or was not answered for as long as its limit allows.
    pub(in crate::engine) fn lists_ring(&mut self, now: Mono, id: ServerId) {
        for due in self.merged.lists_ring(&mut self.timers, now, id) {
            match due {
                ListDue::Again(kind) if self.ending.is_none() => self.ask_if_there(now, id, kind),
                ListDue::Again(_) => {}
                ListDue::Unanswered(kind, attempt) => self.list_is_unanswered(now, id, kind, attempt),
            }
        }
    }

    fn list_is_unanswered(&mut self, now: Mono, id: ServerId, kind: Kind, attempt: AttemptId) {
        self.servers.take_own(id, attempt);
        let limit = self.limit_of_own(id, &kind.method()).map(|limit| show_duration(limit.time));
        let why = format!("no answer within {} (timeout)", limit.unwrap_or_default());
        if self.is_there(id) {
            let modern = self.merged.meta(id).is_some();
            self.cancel_attempt(id, attempt, modern, false, &why);
        }
        self.page_is_lost(now, (id, attempt), kind, why);
    }

    /// Whoever waits for a list goes on, and clients are told if others looked at something else. Who asked before a
    /// change was told of it when it came, and knows that what comes now may be old.
    fn list_is_known(&mut self, now: Mono, id: ServerId, kind: Kind, listing: Listing, until: Option<Mono>) {
        if self.merged.has_failed(id, kind) {
            self.server_is_there(id);
        }
        if self.merged.is_listed(&mut self.timers, (id, kind), listing, until) {
            self.tell_of_news(id, kind);
        }
        self.gathered_may_go_on(now, id);
    }

    /// How long a list is kept of which no change is told: as long as its server says. One of the legacy era, or one that
    /// somebody listens to, tells of changes.
    fn kept_until(&self, now: Mono, id: ServerId, kind: Kind, answer: &Message) -> Option<Mono> {
        if self.merged.meta(id).is_none() || self.listens.are_told(id, kind.bit()) {
            return None;
        }
        let ttl = json::member(answer.raw(Field::Result)?, "ttlMs");
        let ttl: f64 = ttl.and_then(|raw| serde_json::from_slice(raw).ok()).unwrap_or(0.0);
        let ttl = Duration::try_from_secs_f64(ttl.max(0.0) / 1000.0).unwrap_or(LONGEST_KEPT);
        Some(now + ttl.min(LONGEST_KEPT))
    }

    /// The result of a page, with what we add to each tool. Everything that is learned from a list that a client asks
    /// for is learned from it.
    fn page_as_shown(&mut self, id: ServerId, kind: Kind, answer: &Message) -> Option<Bytes> {
        let result = answer.envelope.get(Field::Result)?;
        if kind != Kind::Tools {
            return Some(answer.bytes.slice(result.start()..result.end()));
        }
        let modern = self.merged.meta(id).is_some();
        self.learn_tools(id, answer, modern);
        self.servers.learn_tools(id, answer.raw(Field::Result)?);
        let edits = self.add_tasks_to_tools(id, true, answer);
        let edited = Outgoing::edited(answer.bytes.clone(), edits).to_vec();
        let edited = scan_message(edited.into())?;
        let span = edited.envelope.get(Field::Result)?;
        Some(edited.bytes.slice(span.start()..span.end()))
    }

    /// A page will not come. Nobody waits for it any longer unless its server is about to be asked again.
    pub(in crate::engine) fn page_is_lost(
        &mut self,
        now: Mono,
        (id, attempt): (ServerId, AttemptId),
        kind: Kind,
        why: String,
    ) {
        if self.merged.take_asked(id, kind, attempt).is_none() {
            return;
        }
        if self.is_there(id) {
            return self.list_failed(now, id, kind, why);
        }
        self.merged.is_interrupted(&mut self.timers, id, kind);
        self.gathered_may_go_on(now, id);
    }

    // Changes.

    /// A server says that a list of its has changed.
    pub(in crate::engine) fn catalog_changes(&mut self, id: ServerId, message: &Message) {
        let method = message.text(Field::Method).unwrap_or_default();
        for kind in Kind::ALL {
            if method.strip_prefix("notifications/").and_then(|rest| rest.strip_suffix("/list_changed"))
                == Some(kind.capability())
            {
                self.merged.is_stale(&mut self.timers, id, kind);
                if self.merged.is_news(id, kind) {
                    self.tell_of_change(id, kind, self.users_of(id));
                }
            }
        }
    }

    /// A list looks different from what somebody was shown. Whoever waits for it gets it now.
    fn tell_of_news(&mut self, id: ServerId, kind: Kind) {
        let mut clients = self.users_of(id);
        clients.retain(|client| !self.merged.awaits_list(*client, kind));
        self.tell_of_change(id, kind, clients);
    }

    fn users_of(&self, id: ServerId) -> Vec<ClientId> {
        self.servers.get(&id).map(|server| server.clients.iter().copied().collect()).unwrap_or_default()
    }

    /// Clients of the merged door are told once, until they look.
    fn tell_of_change(&mut self, id: ServerId, kind: Kind, clients: Vec<ClientId>) {
        for client in clients {
            self.tell_of_change_to(client, id, kind);
        }
    }

    /// A client of the merged door is told that what a server lists has changed.
    fn tell_of_change_to(&mut self, client: ClientId, id: ServerId, kind: Kind) {
        // What is found on demand is in no list.
        if kind != Kind::Tools || self.expose_of(client, id) != Expose::OnDemand {
            self.tell_of_lists(client, kind);
        }
    }

    pub(in crate::engine) fn tell_of_lists(&mut self, client: ClientId, kind: Kind) {
        if !self.is_merged(client) {
            return;
        }
        if self.clients.get(&client).is_some_and(|client| client.modern) {
            self.tell_listeners(client, kind);
        } else if self.clients.hears_of_change(client, kind.bit()) {
            let message = list_changed_message(kind.capability(), None);
            self.tell_client(client, Outgoing::plain(message));
        }
    }

    // What clients see.

    /// A merged list of what this client's servers have, as far as it is known.
    pub(super) fn view_of(&mut self, client: ClientId, kind: Kind, shown: bool) -> Arc<View> {
        let changes = self.merged.changes();
        let known = self.clients.get(&client).and_then(|client| client.tools(changes));
        if let Some(known) = known.filter(|_| kind == Kind::Tools && !shown) {
            return known;
        }
        let view = self.make_view(client, kind, shown);
        if kind == Kind::Tools {
            self.clients.sees_tools(client, changes, &view);
        }
        view
    }

    fn make_view(&mut self, client: ClientId, kind: Kind, shown: bool) -> Arc<View> {
        if shown {
            for server in self.servers_of(client) {
                self.merged.is_shown(server, kind);
            }
        }
        let (key, known) = self.view_key(client, kind);
        if let Some(view) = self.merged.view(&key) {
            return view;
        }
        let named = |(part, (server, listing)): (&PartKey, (ServerId, Arc<Listing>))| Part {
            definition: part.definition,
            server: self.server_name(server).into(),
            exposure: part.exposure.clone(),
            expose: part.expose,
            listing,
        };
        let parts: Vec<Part> = key.parts.iter().zip(known).map(named).collect();
        let reserved: Vec<&str> = key.reserved.iter().map(String::as_str).collect();
        let view = Arc::new(View::new(kind, &self.config.separator, &reserved, &parts));
        self.merged.keep_view(key, view.clone());
        view
    }

    /// What a client's merged list is made of, and what is known of that.
    fn view_key(&self, client: ClientId, kind: Kind) -> (ViewKey, Vec<(ServerId, Arc<Listing>)>) {
        let reserved = if kind == Kind::Tools { self.reserved(client) } else { Vec::new() };
        let (mut listings, mut parts) = (Vec::new(), Vec::new());
        for server in self.servers_of(client) {
            let known = self.merged.known(server, kind).zip(self.servers.get(&server));
            let Some(((listing, digest), state)) = known else { continue };
            listings.push((server, listing));
            let (definition, exposure) = (state.definition, state.config.exposure.clone());
            parts.push(PartKey { definition, digest, expose: self.expose_of(client, server), exposure });
        }
        (ViewKey { kind, reserved, parts }, listings)
    }

    /// Whether the tools that a client was found to see are those that it sees.
    pub(in crate::engine) fn sees_what_there_is(&self, client: ClientId) -> bool {
        let kept = self.clients.get(&client).and_then(|client| client.tools(self.merged.changes()));
        let now = || self.merged.view(&self.view_key(client, Kind::Tools).0);
        kept.is_none_or(|kept| now().is_some_and(|now| Arc::ptr_eq(&kept, &now)))
    }

    /// A client looks at a list: from now on a change of it is news again.
    pub(super) fn looks_at_list(&mut self, asking: &Asking) {
        let Some(kind) = Kind::of(&asking.method) else { return };
        self.clients.looks_at(asking.client, kind.bit());
        if asking.modern {
            self.listens.is_looked_at(kind.bit());
        }
    }

    pub(super) fn list_merged(&mut self, asking: &Asking, kind: Kind, message: &Message) {
        self.name_the_missing(asking, kind, message);
        let view = self.view_of(asking.client, kind, true);
        let cursor = message.text(Field::ParamsCursor);
        if message.has(Field::ParamsCursor) && cursor.is_none() {
            return self.bad_cursor(asking);
        }
        let Some(from) = view.begins(cursor.as_deref()) else { return self.bad_cursor(asking) };
        let own = if kind == Kind::Tools { self.own_tools_of(asking) } else { String::new() };
        let page = self.page_of(asking.client, kind, &view, from);
        self.answer_list(asking, &page, &own);
    }

    /// A page of a list, as it is kept ready for everybody who may see the same.
    fn page_of(&mut self, client: ClientId, kind: Kind, view: &Arc<View>, from: usize) -> Page {
        let principal = self.clients.get(&client).and_then(|client| client.principal.as_deref());
        let reader = principal.filter(|_| kind == Kind::Tools && self.rights_of(principal).is_some());
        let reader = reader.map(Box::from);
        if let Some(page) = self.merged.page(view, from, &reader) {
            return page;
        }
        let is_for =
            |shown: &Shown| reader.is_none() || self.may_call(client, &shown.server, &shown.entry.name);
        let page = view.page(from, is_for);
        self.merged.keep_page(view, from, reader, &page);
        page
    }

    /// Tools of ours that a client needs.
    fn own_tools_of(&mut self, asking: &Asking) -> String {
        let cap = self.cap_of(asking.client, &asking.method, false);
        let waits = cap.map(|_| {
            self.clients.shows_our_tools(asking.client);
            self.own_tools_merged()
        });
        let all: Vec<String> = self.tools_on_demand(asking).into_iter().chain(waits).collect();
        all.join(",")
    }

    /// A modern list says how long it may be kept: not at all, because it is made of several.
    fn answer_list(&mut self, asking: &Asking, page: &Page, own: &str) {
        const HINTS: &str = concat!(
            r#""resultType":"complete","ttlMs":0,"cacheScope":"private","_meta":{"#,
            r#""io.modelcontextprotocol/serverInfo":{"name":"outlast","version":""#,
            env!("CARGO_PKG_VERSION"),
            r#""}},"#
        );
        let hints = if asking.modern { HINTS } else { "" };
        let answer = page.answer(&asking.id, hints, own);
        match asking.way {
            Way::Stream(stream) if page.may_be_split() => self.answer_in_parts(stream, &answer),
            way => self.reply(asking.client, way, Some(&asking.id), answer),
        }
    }

    fn bad_cursor(&mut self, asking: &Asking) {
        let text = "Invalid params: the cursor is not one of ours; list from the beginning";
        self.refuse_merged(asking, -32602, text);
    }
}

/// Whether an error tells of a server that has had no handshake, and wants one. An internal error tells of nothing, and
/// may be over soon.
pub(super) fn is_of_other_era(answer: &Message) -> bool {
    !matches!(error_code(answer), Some(-32022..=-32020 | -32603))
}
