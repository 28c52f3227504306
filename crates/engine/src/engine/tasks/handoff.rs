//! Hand-off: a client that would give up gets a ticket in place of an answer, and two tools to use it with.
//!
//! The call goes on under its ticket like that of a task. Its client asks with an ordinary tool of ours,
//! as often as it likes, and gets the server's answer as the server gave it.

use super::asking::{About, Asked};
use crate::action::Note;
use crate::calls::handoff::{self, KnownTools, Names};
use crate::calls::{Call, Request};
use crate::clients::{Client, Open};
use crate::config::Manner;
use crate::engine::Engine;
use crate::error::{Failure, Kind, Retry, ServerState, cut};
use crate::id::{CallId, ClientId, ServerId, TaskNo};
use crate::json;
use crate::limits;
use crate::memory;
use crate::method::Method;
use crate::profile;
use crate::record::{Answer, Faces, State, Ticket};
use crate::servers::Server;
use crate::settings::show_duration;
use crate::tickets::{Task, Waiter, Wants};
use crate::time::Mono;
use crate::wire::{Edit, Field, Message, Outgoing, Patch};
use serde_json::json;
use std::time::Duration;

// Which clients.

impl Engine {
    /// A client says who it is.
    pub(in crate::engine) fn meet(&mut self, client: ClientId, handshake: &Message) {
        let cap = profile::hard_cap(self.config.profiles, handshake);
        self.clients.has_cap(client, cap);
    }

    /// When the client of a request gives it up whatever progress it sees, if that is known.
    pub(in crate::engine) fn cap_of(
        &self,
        client: ClientId,
        method: &Method,
        message: &Message,
    ) -> Option<Duration> {
        let about_tools = matches!(method, Method::ToolsCall | Method::ToolsList);
        if !about_tools || self.config.manner == Manner::TimeoutMcp {
            return None;
        }
        let profile = || self.clients.get(&client)?.cap;
        let modern = || {
            message.raw(Field::MetaProtocolVersion)?;
            profile::hard_cap(self.config.profiles, message)
        };
        self.config.client_cap.or_else(profile).or_else(modern)
    }

    /// Whether there may be clients whose calls are handed off.
    pub(in crate::engine) fn may_hand_off(&self) -> bool {
        self.config.client_cap.is_some() || self.config.profiles.iter().any(|profile| profile.verified)
    }

    /// A client gives a call up. The second time at the same age is hardly a person's doing.
    pub(in crate::engine) fn note_likely_cap(&mut self, call: CallId) {
        let Some(call) = self.calls.get(call) else { return };
        if call.request.method != Method::ToolsCall || call.sign.is_some() {
            return;
        }
        let age = self.at.since(call.began);
        if let Some(cap) = self.clients.gives_up(call.request.client, age) {
            self.note(Note::LikelyCap { cap });
        }
    }

    /// A client of the modern era gives up what it asked by hanging up.
    pub(in crate::engine) fn hung_up_on_calls(&mut self, client: ClientId) {
        let open = self.clients.get(&client).into_iter().flat_map(Client::all_open);
        let calls = open.filter_map(|open| if let Open::Call(call) = open { Some(call) } else { None });
        let calls: Vec<CallId> = calls.collect();
        calls.into_iter().for_each(|call| self.note_likely_cap(call));
    }
}

// The call.

impl Engine {
    /// Decides when a call is handed off. One that may become a task does so, in time.
    pub(in crate::engine) fn plan_hand_off(&self, call: &mut Call, now: Mono) {
        let plain = call.request.method == Method::ToolsCall && !call.request.task;
        let Some(cap) = call.request.cap.filter(|_| plain) else { return };
        let at = now + handoff::patience(cap.into());
        call.hands_off = call.task_at.is_none();
        call.task_at = Some(call.task_at.map_or(at, |task| task.min(at)));
    }

    /// A call to one of our own tools. False if it is the server's.
    pub(in crate::engine) fn own_tool_called(
        &mut self,
        now: Mono,
        request: &Request,
        message: &Message,
    ) -> bool {
        let (Some(cap), Some(tool)) = (request.cap, request.tool.as_deref()) else { return false };
        let arguments = || json::member(message.raw(Field::Params)?, "arguments");
        let argument = |name: &str| json::member(arguments()?, name);
        let names = self.own_names(self.servers.get(&request.server));
        let about = if tool == names.wait {
            let wish = argument("seconds").and_then(|raw| serde_json::from_slice(raw).ok());
            About::Fetch(now + handoff::wait(cap.into(), wish))
        } else if tool == names.cancel {
            About::Stop
        } else {
            return false;
        };
        let asked = self.asked(request, about);
        let ticket: Option<String> = argument("ticket").and_then(|raw| serde_json::from_slice(raw).ok());
        self.ask_about(now, ticket.and_then(|text| Ticket::parse(text.trim())), asked);
        true
    }

    /// Whoever waits longer than its time hears that the call still runs.
    pub(in crate::engine) fn waits_due(&mut self, now: Mono, no: TaskNo) {
        for waiter in self.tickets.waits_ring(now, no) {
            self.clients.closes(waiter.client, &waiter.id, Open::Wait(no));
            self.show_task(no, &waiter);
        }
        self.tickets.arm_waits(&mut self.timers, no);
        self.leave_theirs(no);
    }
}

// The tools.

impl Engine {
    fn server_of(&self, client: ClientId) -> Option<&Server> {
        self.servers.get(&self.server_for(client)?)
    }

    fn own_names(&self, server: Option<&Server>) -> Names {
        match server {
            Some(server) => server.tools.names(&server.config.name),
            None => KnownTools::default().names(&self.config.server.name),
        }
    }

    /// Learns from a page of a list of tools what a hand-off must know.
    pub(in crate::engine) fn learn_tools(&mut self, server: ServerId, result: &[u8]) {
        if self.may_hand_off() {
            self.servers.learn_tools(server, result);
        }
    }

    /// Our tools, as the end of a list has them for a client that needs them.
    pub(in crate::engine) fn own_tools(
        &self,
        server: ServerId,
        cap: Option<Duration>,
        result: &[u8],
    ) -> Option<String> {
        cap?;
        if !memory::is_complete(result) {
            return None;
        }
        let Names { wait, cancel } = self.own_names(self.servers.get(&server));
        let ticket =
            json!({"type": "string", "description": "The ticket, word for word as it was given to you."});
        let wait = json!({
            "name": wait,
            "description": "Waits for a call of another tool of this server that was still running when it was \
                answered with a ticket, and returns its result. If it still runs then, call this again.",
            "inputSchema": {
                "type": "object",
                "properties": {
                    "ticket": ticket,
                    "seconds": {"type": "number", "minimum": 0, "description": "How long to wait at most."},
                },
                "required": ["ticket"],
            },
            "annotations": {"readOnlyHint": true, "idempotentHint": true},
        });
        let cancel = json!({
            "name": cancel,
            "description": "Cancels a call of another tool of this server that was answered with a ticket.",
            "inputSchema": {"type": "object", "properties": {"ticket": ticket}, "required": ["ticket"]},
            "annotations": {"readOnlyHint": false, "idempotentHint": true},
        });
        Some(format!("{wait},{cancel}"))
    }
}

/// Puts tools at the end of a list that is a part of `whole`.
pub(in crate::engine) fn add_to_tools(whole: &[u8], result: &[u8], tools: &str) -> Option<Edit> {
    let list = json::member(result, "tools")?;
    let comma: &[u8] = if json::elements(list)?.is_empty() { b"" } else { b"," };
    let at = json::range_in(whole, list).end - 1;
    Some(Edit::insert(at, Patch::of(&[comma, tools.as_bytes()])))
}

// The words.

impl Engine {
    /// Gives a waiter what it wants to see of a call that was handed off.
    pub(super) fn show_hand_off(&mut self, task: &Task, waiter: &Waiter) {
        let fetches = matches!(waiter.wants, Wants::Until(_));
        match &task.answer {
            Some(answer) if fetches && task.has_ended() => self.answer_as_it_came(answer, waiter),
            _ => {
                let result = self.hand_off_words(task, waiter);
                self.answer_result(waiter.client, waiter.way, &waiter.id, &result);
            }
        }
    }

    fn answer_as_it_came(&mut self, answer: &Answer, waiter: &Waiter) {
        match answer {
            Answer::Result(result) => self.answer_result(waiter.client, waiter.way, &waiter.id, result),
            Answer::Error(error) => {
                let id = waiter.id.patch();
                let answer =
                    [br#"{"jsonrpc":"2.0","id":"#, id.as_slice(), br#","error":"#, error, b"}"].concat();
                self.reply(waiter.client, waiter.way, Some(&waiter.id), Outgoing::plain(answer));
            }
        }
    }

    /// A tool's result that says in words how a call stands.
    fn hand_off_words(&self, task: &Task, waiter: &Waiter) -> Vec<u8> {
        let server = self.server_of(waiter.client);
        let Names { wait, cancel } = self.own_names(server);
        let (tool, ticket) = (cut(&task.tool, limits::NAME), task.ticket.as_str());
        let (text, failed) = match (waiter.wants, task.shown()) {
            (Wants::Handle, _) => {
                let text = format!(
                    "`{tool}` is still running; its result is not lost. Call the tool `{wait}` with \
                     {{\"ticket\": \"{ticket}\"}} to get it. To stop it instead, call `{cancel}` with the same \
                     ticket. Do not call `{tool}` again: that would run it a second time."
                );
                let schema = server.is_some_and(|server| server.tools.has_schema(&task.tool));
                (text, schema)
            }
            (Wants::Until(_), State::Cancelled) => {
                (format!("`{tool}` was cancelled; there is no result."), true)
            }
            (Wants::Until(_), _) => {
                let age = show_duration(Duration::from_secs(self.age_of(task).as_secs()));
                let text = format!(
                    "`{tool}` is still running, for {age} now. Call `{wait}` again with {{\"ticket\": \
                     \"{ticket}\"}}."
                );
                (text, false)
            }
            (_, State::Cancelled) => (format!("`{tool}` is cancelled."), false),
            (_, state) if state.is_open() => (format!("`{tool}` is being cancelled."), false),
            (_, _) => {
                let text = format!("`{tool}` has ended already; call `{wait}` to get its result.");
                (text, false)
            }
        };
        let mut result = json!({
            "content": [{"type": "text", "text": text}],
            "_meta": {"dev.outlast/ticket": ticket},
        });
        if failed {
            result["isError"] = true.into();
        }
        if task.modern {
            result["resultType"] = "complete".into();
        }
        result.to_string().into_bytes()
    }

    fn age_of(&self, task: &Task) -> Duration {
        match task.call.and_then(|call| self.calls.get(call)) {
            Some(call) => call.age(self.at),
            None => self.store_time().since(task.created),
        }
    }

    /// The one answer to whatever ticket whoever asks may not see.
    pub(super) fn ticket_unknown(&mut self, asked: &Asked) {
        let server = self.server_of(asked.client);
        let failure = Failure {
            kind: Kind::TicketUnknown,
            server: server.map(|server| server.config.name.clone()).unwrap_or_default(),
            method: Method::ToolsCall.as_str().into(),
            tool: None,
            elapsed: Duration::ZERO,
            limit: None,
            setting: None,
            attempts: 0,
            state: ServerState::NeverReached,
            retry: Retry::Pointless,
            last_sign: None,
            plain: false,
            detail: None,
            stderr: None,
        };
        let id = asked.id.patch();
        let answer = failure.answer(id.as_slice(), asked.modern, self.config.manner.wording());
        self.reply(asked.client, asked.way, Some(&asked.id), Outgoing::plain(answer));
    }
}

impl Asked {
    /// Under which name the client must know the ticket.
    pub(super) fn face(&self) -> Faces {
        match self.about {
            About::Fetch(_) | About::Stop => Faces::HAND_OFF,
            _ if self.modern => Faces::MODERN_TASK,
            _ => Faces::LEGACY_TASK,
        }
    }
}
