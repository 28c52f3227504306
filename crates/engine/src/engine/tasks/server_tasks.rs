//! Calls of clients without tasks to servers that insist on them: the server's task is made in the
//! client's place.
//!
//! A legacy server says in its list of tools, or by -32601, that a tool runs only as a task; a modern one
//! says so by -32021. Both mean that nothing has run yet. Once the server has made its task the call is
//! committed: it is followed (`following.rs`), and never sent again.

use super::making::with_task;
use super::offers::add_extension;
use super::{declares_tasks, millis};
use crate::action::Note;
use crate::calls::Call;
use crate::calls::server_task::{AsTask, Report, ServerTask};
use crate::clients::Way;
use crate::engine::Engine;
use crate::engine::remote::error_code;
use crate::id::{AttemptId, CallId, ServerId};
use crate::json;
use crate::limits;
use crate::method::Method;
use crate::step::What;
use crate::time::Mono;
use crate::wire::{Edit, Field, Message};

impl Engine {
    /// Decides when a call begins whether its server may make a task of it. Gives what is sent instead if
    /// the tool is known to need one.
    pub(in crate::engine) fn as_servers_task(
        &self,
        call: &mut Call,
        message: &Message,
    ) -> Option<Box<Message>> {
        let request = &call.request;
        let server = self.servers.get(&request.server)?;
        // The modern era need not ask a server what it can do.
        let unknown = request.modern && server.supported.is_empty();
        let may_be = server.own_tasks || unknown;
        may_be.then(|| self.may_be_servers_task(call, message)).flatten()
    }

    #[inline(never)]
    fn may_be_servers_task(&self, call: &mut Call, message: &Message) -> Option<Box<Message>> {
        let request = &call.request;
        let server = self.servers.get(&request.server)?;
        let asks_itself =
            (request.task || (request.modern && declares_tasks(message))) && !self.is_merged(request.client);
        if request.method != Method::ToolsCall || asks_itself {
            return None;
        }
        call.as_task = AsTask::May;
        let needed = request.tool.as_ref().is_some_and(|tool| server.needs_tasks.contains(tool));
        let asking = needed.then(|| self.asking_for_task(call, message)).flatten().map(Box::new);
        if asking.is_some() {
            call.as_task = AsTask::Asked;
        }
        if call.kept_for_task.is_none() && message.bytes.len() <= limits::REPEATABLE_BYTES {
            call.kept_for_task = Some(Box::new(message.owned()));
        }
        asking
    }

    /// The same call, asking for a task.
    fn asking_for_task(&self, call: &Call, message: &Message) -> Option<Message> {
        if call.request.modern {
            return declaring_tasks(message);
        }
        self.servers.get(&call.request.server).filter(|server| server.makes_tasks)?;
        // The server must not forget it before the call's own limit is reached.
        with_task(message, millis(self.policy_of(&call.request).max.time))
    }

    /// Takes an answer to a call that has become a task of its server, or must become one. False if it is
    /// for the client.
    pub(in crate::engine) fn answer_as_task(&mut self, now: Mono, id: CallId, answer: &Message) -> bool {
        let Some(call) = self.calls.get(id) else { return true };
        if let Some(joined) = call.server_task() {
            let attempt = joined.attempt.map_or(0, |attempt| attempt.0);
            let server = self.server_name(call.request.server);
            self.note(Note::LateAnswer { server, attempt });
            return true;
        }
        if call.request.method != Method::ToolsCall {
            return false;
        }
        let ours = matches!(call.request.way, Way::Ticket(_));
        match answer.raw(Field::Result) {
            // Nearly every call: nothing of its result is looked at.
            Some(_) if !ours && call.as_task == AsTask::No => {
                if call.request.modern {
                    self.note_own_tasks(id, answer);
                }
                false
            }
            Some(result) => self.pause_for_input(now, id, answer) || self.join_task(now, id, answer, result),
            None => self.insists_on_task(now, id, answer),
        }
    }

    /// A server that nobody asked what it can do shows that it has tasks: its client will ask it for this one.
    fn note_own_tasks(&mut self, id: CallId, answer: &Message) {
        let Some(call) = self.calls.get(id) else { return };
        if answer.raw(Field::ResultType) == Some(b"\"task\"") {
            let server = call.request.server;
            self.servers.has_own_tasks(server);
            self.servers.gave_task(server);
        }
    }

    /// A server refuses to run a tool plainly: nothing has happened yet, so the call is made once more as
    /// a task.
    fn insists_on_task(&mut self, now: Mono, id: CallId, answer: &Message) -> bool {
        let Some(call) = self.calls.get(id).filter(|call| call.as_task != AsTask::Asked) else {
            return false;
        };
        let (modern, server) = (call.request.modern, call.request.server);
        let insists = match error_code(answer) {
            Some(-32021) => modern && requires_tasks(answer),
            Some(-32601) => !modern && call.as_task == AsTask::May,
            _ => false,
        };
        if !insists {
            return false;
        }
        // One that was never asked what it can do has told it now.
        self.servers.has_own_tasks(server);
        let Some(call) = self.calls.get(id) else { return false };
        let message = call.kept_for_task.as_ref().or(call.kept.as_ref());
        let Some(asking) = message.and_then(|message| self.asking_for_task(call, message)) else {
            return false;
        };
        self.ask_for_task(now, id, asking);
        true
    }

    fn ask_for_task(&mut self, now: Mono, id: CallId, asking: Message) {
        self.calls.asks_for_task(id, &asking);
        self.send_attempt(now, id, &asking);
        self.arm_call(now, id);
    }

    /// The server has made a task of a call. False if it has not.
    fn join_task(&mut self, now: Mono, id: CallId, answer: &Message, result: &[u8]) -> bool {
        let Some(call) = self.calls.get(id) else { return false };
        // What is a task of ours is asked for by its client with the extension declared.
        let ours = matches!(call.request.way, Way::Ticket(_));
        let made = match (call.as_task, call.request.modern) {
            (AsTask::No, _) if !ours => None,
            (_, true) => (answer.raw(Field::ResultType) == Some(b"\"task\"")).then_some(result),
            (AsTask::Asked, false) => json::member(result, "task"),
            (_, false) => None,
        };
        let Some(report) = made.and_then(Report::read) else { return false };
        let meta = call.kept_for_task.as_ref().or(call.kept.as_ref()).and_then(|message| own_meta(message));
        if call.request.modern && meta.is_none() {
            return false;
        }
        let joined = ServerTask::new(&report, meta.filter(|_| call.request.modern), call.attempt(), now);
        let goes_on = matches!(report.status, "working" | "input_required");
        // Whoever is told of the task is asked under its name, and not before.
        let told = goes_on && self.calls.tells_of_task(now, id);
        self.follow(now, id, joined, report.status != "working" && !told);
        true
    }

    /// From now on a call is answered by its task at the server.
    pub(super) fn follow(&mut self, now: Mono, id: CallId, joined: ServerTask, at_once: bool) {
        let Some(call) = self.calls.get(id) else { return };
        let tool = call.request.tool.clone().filter(|_| call.as_task == AsTask::Asked);
        let server_id = call.request.server;
        self.servers.follows(server_id, joined.task.clone(), id, tool);
        let Some(server) = self.servers.get(&server_id) else { return };
        let interval = joined.interval;
        self.calls.follow(now, id, joined, &server.clock);
        self.step(id, || What::Followed);
        let at = if at_once { now } else { self.next_poll(now, interval) };
        self.poll_at(now, id, at);
        self.keep_names_at_server(id);
    }

    /// Learns from a list which tools run only as tasks.
    pub(in crate::engine) fn learn_task_tools(&mut self, id: ServerId, answer: &Message) {
        let tools = answer.raw(Field::Result).and_then(|result| json::member(result, "tools"));
        let tools = tools.and_then(json::elements).unwrap_or_default();
        self.servers.learn_task_tools(id, &tools);
    }
}

impl ServerTask {
    pub(super) fn new(
        report: &Report<'_>,
        meta: Option<Box<[u8]>>,
        attempt: Option<AttemptId>,
        now: Mono,
    ) -> ServerTask {
        let task = report.task_id.get().as_bytes().into();
        ServerTask {
            interval: report.interval(),
            looks: report.looks(),
            ..ServerTask::named(task, meta, attempt, now)
        }
    }

    /// A task of which only the name is known.
    pub(super) fn named(
        task: Box<[u8]>,
        meta: Option<Box<[u8]>>,
        attempt: Option<AttemptId>,
        now: Mono,
    ) -> ServerTask {
        ServerTask {
            task,
            meta,
            attempt,
            interval: limits::POLL,
            polled: now,
            poll_at: now,
            poll: None,
            fetch: None,
            looks: 0,
            ended: false,
            answered: Vec::new(),
            let_go: false,
        }
    }
}

/// Whether an error says that the client must have declared tasks.
fn requires_tasks(answer: &Message) -> bool {
    let extensions = || {
        let data = json::member(answer.raw(Field::Error)?, "data")?;
        json::member(json::member(data, "requiredCapabilities")?, "extensions")
    };
    extensions().is_some_and(|all| json::member(all, "io.modelcontextprotocol/tasks").is_some())
}

/// The same request with the extension declared.
fn declaring_tasks(message: &Message) -> Option<Message> {
    if declares_tasks(message) {
        return Some(message.owned());
    }
    let capabilities = message.raw(Field::MetaClientCapabilities)?;
    message.edited(add_extension(&message.bytes, capabilities)?)
}

/// `_meta` for what we ask in a client's place: its own, with tasks declared and without its token.
pub(super) fn own_meta(message: &Message) -> Option<Box<[u8]>> {
    let declaring = declaring_tasks(message)?;
    let without = match declaring.envelope.get(Field::MetaProgressToken) {
        Some(span) => declaring.edited(Edit::remove_member(&declaring.bytes, span))?,
        None => declaring,
    };
    without.raw(Field::ParamsMeta).map(Box::from)
}
