//! Tickets at the merged door: they are ours, whichever server runs the call.

use super::{Asking, Engine};
use crate::calls::handoff::KnownTools;
use crate::time::Mono;
use crate::wire::Message;

impl Engine {
    /// A request about a task or a call to be resumed.
    pub(super) fn about_ticket_merged(&mut self, now: Mono, asking: &Asking, message: &Message) {
        let Some(server) = self.servers_of(asking.client).first().copied() else { return };
        let (id, method) = (asking.id.clone(), asking.method.clone());
        let request = self.read_request(asking.client, server, id, method, message, asking.way);
        let taken = (self.config.tasks && self.task_request_of_ours(now, &request, message))
            || (self.config.resumable && self.resume_request(now, &request, message));
        if !taken {
            let text = format!("Method not found: {}", asking.method.as_str());
            self.refuse_merged(asking, -32601, &text);
        }
    }

    /// A call to one of our own tools, which are called after us here.
    pub(super) fn own_tool_at_merged(&mut self, now: Mono, asking: &Asking, message: &Message) -> bool {
        let Some(server) = self.servers_of(asking.client).first().copied() else { return false };
        let (id, method) = (asking.id.clone(), asking.method.clone());
        let request = self.read_request(asking.client, server, id, method, message, asking.way);
        let own = request.tool.as_deref().and_then(|tool| KnownTools::default().own(tool, ""));
        own.is_some_and(|own| self.own_tool_is_called(now, &request, &own, message))
    }
}
