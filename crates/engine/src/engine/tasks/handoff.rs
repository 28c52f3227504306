//! Hand-off: a client that would give up gets a ticket in place of an answer, and two tools to use it with.
//!
//! The call goes on under its ticket like that of a task. Its client asks with an ordinary tool of ours,
//! as often as it likes, and gets the server's answer as the server gave it.

use super::asking::{About, Asked};
use crate::calls::handoff::{self, KnownTools, Names, OwnTool};
use crate::calls::{Call, Request};
use crate::clients::Open;
use crate::engine::Engine;
use crate::error::{Failure, Kind, Retry, ServerState, cut};
use crate::id::{ClientId, ServerId, TaskNo};
use crate::json;
use crate::limits;
use crate::memory;
use crate::method::Method;
use crate::record::{Answer, Faces, State, Ticket};
use crate::servers::Server;
use crate::settings::show_duration;
use crate::tickets::{Task, Waiter, Wants};
use crate::time::Mono;
use crate::wire::{Edit, Field, Message, Outgoing, Patch};
use serde_json::json;
use std::time::Duration;

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
        let (Some(_), Some(tool)) = (request.cap, request.tool.as_deref()) else { return false };
        let own = self.own_tool(request.server, tool);
        own.is_some_and(|own| self.own_tool_is_called(now, request, &own, message))
    }

    /// The same of a tool that is called as one of ours is.
    pub(in crate::engine) fn own_tool_is_called(
        &mut self,
        now: Mono,
        request: &Request,
        own: &OwnTool,
        message: &Message,
    ) -> bool {
        let Some(cap) = request.cap else { return false };
        let arguments = || json::member(message.raw(Field::Params)?, "arguments");
        let argument = |name: &str| json::member(arguments()?, name);
        let ticket: Option<String> = argument("ticket").and_then(|raw| serde_json::from_slice(raw).ok());
        let ticket = ticket.and_then(|text| Ticket::parse(text.trim()));
        if !own.certain && ticket.is_none() {
            return false;
        }
        let about = if own.waits {
            let wish = argument("seconds").and_then(|raw| serde_json::from_slice(raw).ok());
            About::Fetch(now + handoff::wait(cap.into(), wish))
        } else {
            About::Stop
        };
        let asked = self.asked(request, about);
        self.ask_about(now, ticket, asked);
        true
    }

    /// Which of our tools a name stands for.
    fn own_tool(&self, server: ServerId, tool: &str) -> Option<OwnTool> {
        let server = self.servers.get(&server);
        match server {
            Some(server) => server.tools.own(tool, &server.config.identity),
            None => KnownTools::default().own(tool, &self.config.server.identity),
        }
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
            Some(server) => server.tools.names(&server.config.identity),
            // At the merged door, where they are listed so.
            None if !self.config.others.is_empty() => KnownTools::default().names(""),
            None => KnownTools::default().names(&self.config.server.identity),
        }
    }

    /// Our tools, as the end of a list has them for a client that needs them.
    pub(in crate::engine) fn own_tools(&self, server: ServerId, result: &[u8]) -> Option<String> {
        if !memory::is_complete(result) {
            return None;
        }
        Some(tools_called(self.own_names(self.servers.get(&server))))
    }

    /// The same at the merged door, where they are called after us.
    pub(in crate::engine) fn own_tools_merged(&self) -> String {
        tools_called(KnownTools::default().names(""))
    }
}

/// Our tools under these names.
fn tools_called(names: Names) -> String {
    let Names { wait, cancel } = names;
    let ticket = json!({"type": "string", "description": "The ticket from the answer. Copy it exactly."});
    let wait = json!({
        "name": wait,
        "description": "Gets the result of a call that is still running. Use it when another tool of this server \
            answers with a ticket instead of a result. Waits and returns the result. If the call is still running \
            then, call this tool again with the same ticket.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "ticket": ticket,
                "seconds": {
                    "type": "number", "minimum": 0,
                    "description": "Optional. How long to wait at most. Leave it out.",
                },
                "after": {"type": "number", "description": "Optional. Copy it from the last answer."},
            },
            "required": ["ticket"],
        },
        "annotations": {"readOnlyHint": true, "idempotentHint": true},
    });
    let cancel = json!({
        "name": cancel,
        "description": "Stops a call that is still running. Use it only when its result is no longer wanted. Needs \
            the ticket that another tool of this server answered with.",
        "inputSchema": {"type": "object", "properties": {"ticket": ticket}, "required": ["ticket"]},
        "annotations": {"readOnlyHint": false, "idempotentHint": true},
    });
    format!("{wait},{cancel}")
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
        let names = self.own_names(server);
        let (tool, ticket) = (cut(&task.tool, limits::NAME), task.ticket.as_str());
        let words = Words { names: &names, tool, ticket };
        let mut meta = json!({"dev.outlast/ticket": ticket});
        let (text, failed) = match (waiter.wants, task.shown()) {
            (Wants::Handle, _) => {
                meta["dev.outlast/why"] = self.origin_of_cap(waiter.client).into();
                (words.handed_off(), server.is_some_and(|server| server.tools.has_schema(&task.tool)))
            }
            (Wants::Until(_), State::Cancelled) => {
                (format!("`{tool}` was cancelled; there is no result."), true)
            }
            (Wants::Until(_), _) => (words.still_running(self.age_of(task).as_secs()), false),
            (_, State::Cancelled) => (format!("`{tool}` is cancelled."), false),
            (_, state) if state.is_open() => (format!("`{tool}` is being cancelled."), false),
            (_, _) => (words.has_ended(), false),
        };
        let mut result = json!({"content": [{"type": "text", "text": text}], "_meta": meta});
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

/// What a model is told. Each text that asks for something begins with one order: the tool and its arguments, ready to
/// be copied. Explanations follow it, because a small model obeys what it reads first.
struct Words<'a> {
    names: &'a Names,
    tool: &'a str,
    ticket: &'a str,
}

impl Words<'_> {
    fn order(&self) -> String {
        format!("Call the tool `{}` with {{\"ticket\": \"{}\"}}", self.names.wait, self.ticket)
    }

    fn handed_off(&self) -> String {
        let Words { names: Names { wait, cancel }, tool, .. } = self;
        format!(
            "`{tool}` is still running. {} now: it waits and returns the result. Do not call `{tool}` again, that would \
             run it twice. If you see no tool `{wait}`, look for one whose name ends in {wait}, or search your tools \
             for it. (`{cancel}` with the same ticket stops `{tool}`.)",
            self.order()
        )
    }

    /// Some clients take the same call with the same arguments, a few times in a row, for a model that has lost its way:
    /// `after` makes them differ.
    fn still_running(&self, seconds: u64) -> String {
        let Words { names: Names { wait, .. }, tool, ticket } = self;
        let age = show_duration(Duration::from_secs(seconds));
        format!(
            "`{tool}` is still running, for {age} now. Call the tool `{wait}` with {{\"ticket\": \"{ticket}\", \
             \"after\": {seconds}}} to wait on."
        )
    }

    fn has_ended(&self) -> String {
        format!("`{}` has already ended. {} to get its result.", self.tool, self.order())
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
