//! Tickets at the merged door: they are ours, whichever server runs the call.

use super::{Asking, Engine};
use crate::calls::handoff::KnownTools;
use crate::id::ServerId;
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

    /// Tasks that a server makes itself have names of its own, which nobody here could tell apart: at the merged door
    /// there are only ours. What a server runs only as a task, it runs as one that we follow.
    pub(in crate::engine) fn has_our_tasks_alone(&mut self, id: ServerId) {
        let greeted = self.servers.get(&id).and_then(|server| server.greeted);
        if greeted.is_some_and(|client| self.is_merged(client)) {
            self.servers.has_our_tasks_alone(id);
        }
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
