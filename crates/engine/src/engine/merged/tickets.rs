//! Tickets at the merged door: they are ours, whichever server runs the call.

use super::{Asking, Engine};
use crate::calls::handoff::KnownTools;
use crate::engine::tasks::without_task;
use crate::id::{ClientId, ServerId};
use crate::time::Mono;
use crate::wire::{Field, Message};

impl Engine {
    /// A request about a task or a call to be resumed.
    pub(super) fn about_ticket_merged(&mut self, now: Mono, asking: &Asking, message: &Message) {
        let Some(server) = self.servers_of(asking.client).first().copied() else {
            // A ticket belongs to a call, and this client sees no server that could have had one.
            return self.refuse_merged(
                asking,
                -32602,
                "Unknown ticket: no server is behind this address for this client",
            );
        };
        let (id, method) = (asking.id.clone(), asking.method.clone());
        let request = self.read_request(asking.client, server, id, method, message, asking.way);
        let taken = (self.config.tasks && self.task_request_of_ours(now, &request, message))
            || (self.config.resumable && self.resume_request(now, &request, message));
        if !taken {
            let text = format!("Method not found: {}", asking.method.as_str());
            self.refuse_merged(asking, -32601, &text);
        }
    }

    /// Whether a client asks a server itself for the tasks that the server makes. They have names of the server's own,
    /// which nobody could tell apart at the merged door: there are only ours, and a server's task is one that we follow
    /// in its client's place.
    pub(in crate::engine) fn has_its_own_tasks(&self, id: ServerId, client: ClientId) -> bool {
        self.servers.get(&id).is_some_and(|server| server.own_tasks) && !self.is_merged(client)
    }

    /// A call without the wish for a task that nobody here makes: its client was promised none.
    pub(super) fn without_wish_for_task(&self, id: ServerId, message: &Message) -> Option<Message> {
        let wishes = message.has(Field::ParamsTask) && !self.makes_legacy_tasks(id, true);
        wishes.then(|| without_task(message)).flatten()
    }

    /// A call to one of our own tools, which are called after us here.
    pub(super) fn own_tool_at_merged(&mut self, now: Mono, asking: &Asking, message: &Message) -> bool {
        if !message.text(Field::ParamsName).is_some_and(|tool| KnownTools::may_be_own(&tool)) {
            return false;
        }
        let Some(server) = self.servers_of(asking.client).first().copied() else { return false };
        let (id, method) = (asking.id.clone(), asking.method.clone());
        let request = self.read_request(asking.client, server, id, method, message, asking.way);
        let own = request.tool.as_deref().and_then(|tool| KnownTools::default().own(tool, ""));
        own.is_some_and(|own| self.own_tool_is_called(now, &request, &own, message))
    }
}
