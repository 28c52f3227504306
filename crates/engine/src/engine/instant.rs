//! Instant start: the client's first questions are answered from memory while the server starts.
//!
//! The server gets the client's own handshake all the same, as a restarted one would, and whatever is
//! not remembered waits for it. When its real answers differ, the client is told as far as the
//! protocol allows.

use super::Engine;
use crate::action::{Action, Note};
use crate::clients::Way;
use crate::config::Manner;
use crate::hash::fingerprint;
use crate::id::{ClientId, JsonId, ServerId};
use crate::memory::{self, Memory};
use crate::method::Method;
use crate::servers::{Alarm, Life};
use crate::time::Mono;
use crate::wire::{Field, Message, Outgoing, scan_message};

impl Engine {
    pub(super) fn remembered(&mut self, server: ServerId, memories: &[Memory]) {
        self.servers.remembers(server, memories);
    }

    /// Answers a handshake from memory and passes it on as our own. False if it must go the usual way.
    pub(super) fn instant_handshake(
        &mut self,
        now: Mono,
        client: ClientId,
        id: &JsonId,
        method: &Method,
        message: &Message,
    ) -> bool {
        if !method.is_handshake() {
            return false;
        }
        let Some(server_id) = self.server_for(client) else { return false };
        let Some(server) = self.servers.get(&server_id) else { return false };
        let fresh = matches!(server.life, Life::Starting | Life::Up) && !server.ever_answered;
        let Some(memory) = self.memory_of(server_id, method, message).filter(|_| fresh) else { return false };
        let Some(answer) = answer(id, &memory.result) else { return false };
        let version = super::from_server::agreed_version(&memory.result);
        let limit = self.limit_of_handshake(server_id);
        let attempt = self.new_attempt();
        let initialize = (*method == Method::Initialize).then(|| message.owned());
        self.servers.is_answered_from_memory(now, server_id, attempt, initialize, version, memory);
        self.read_capabilities(server_id);
        let edits = self.add_to_handshake(server_id, client, &answer);
        self.tell_client(client, Outgoing::edited(answer.bytes, edits));
        self.send_own(server_id, message, method, attempt);
        self.arm_server(server_id, limit.map(|limit| (Alarm::Handshake, now + limit.time)));
        true
    }

    fn memory_of(&self, server: ServerId, method: &Method, message: &Message) -> Option<Memory> {
        let client = memory::client_of(message)?;
        self.servers.memory_for(server, client, method).cloned()
    }

    fn read_capabilities(&mut self, id: ServerId) {
        let Some(memory) = self.servers.get(&id).and_then(|server| server.instant.clone()) else { return };
        self.learn_capabilities(id, &memory.result);
    }

    /// Answers a list from memory while the server is not there yet.
    pub(super) fn instant_list(
        &mut self,
        client: ClientId,
        id: &JsonId,
        method: &Method,
        message: &Message,
        way: Way,
    ) -> bool {
        let Some(server_id) = self.server_for(client) else { return false };
        let Some(server) = self.servers.get(&server_id) else { return false };
        if !matches!(server.life, Life::Reviving(_)) || message.has(Field::ParamsCursor) {
            return false;
        }
        let Some(memory) = server.instant.as_ref() else { return false };
        let Some(list) = memory.list(method).map(<[u8]>::to_vec) else { return false };
        let seen = fingerprint(&list);
        let Some(answer) = answer(id, &list) else { return false };
        let mut edits = Vec::new();
        if *method == Method::ToolsList {
            let cap = self.cap_of(client, method, false);
            self.learn_task_tools(server_id, &answer);
            edits.extend(self.add_tasks_to_tools(server_id, false, &answer));
            edits.extend(self.change_tools((client, server_id), cap, false, &answer));
        }
        self.servers.keep_list(server_id, method, message, seen);
        let mut shown = Outgoing::edited(answer.bytes.clone(), edits);
        if self.selective {
            shown = self.without_forbidden((client, server_id), &answer, shown);
        }
        self.reply(client, way, Some(id), shown);
        true
    }

    /// The server itself has answered the handshake that was answered from memory.
    pub(super) fn compare_with_memory(&mut self, id: ServerId, answer: &Message) {
        let Some(result) = answer.raw(Field::Result) else { return };
        let Some(memory) = self.servers.take_instant(id) else { return };
        if *memory.result != *result {
            let server = self.server_name(id);
            self.note(Note::MemoryWasWrong { server });
            self.act(Action::Forget(id));
        }
        self.learn_capabilities(id, result);
        self.keep_memory(id, Memory { result: result.into(), lists: memory.lists, ..memory });
    }

    /// Begins to remember a handshake that went the usual way.
    pub(super) fn remember_handshake(
        &mut self,
        id: ServerId,
        client: Option<u64>,
        method: &Method,
        answer: &Message,
    ) {
        let (Some(client), Some(result)) = (client, answer.raw(Field::Result)) else { return };
        self.keep_memory(
            id,
            Memory { client, method: method.clone(), result: result.into(), lists: Vec::new() },
        );
    }

    /// Remembers a complete list.
    pub(super) fn remember_whole_list(&mut self, id: ServerId, method: &Method, answer: &Message) {
        if !self.definition_of(id).instant {
            return;
        }
        let Some(result) = answer.raw(Field::Result).filter(|result| memory::is_complete(result)) else {
            return;
        };
        let Some(mut memory) = self.servers.get(&id).and_then(|server| server.memory.clone()) else { return };
        if memory.list(method) == Some(result) {
            return;
        }
        memory.lists.retain(|(known, _)| known != method);
        memory.lists.push((method.clone(), result.into()));
        self.keep_memory(id, memory);
    }

    fn keep_memory(&mut self, id: ServerId, memory: Memory) {
        if !memory.is_sound() {
            return;
        }
        self.servers.keep_memory(id, memory.clone());
        self.act(Action::Remember(id, Box::new(memory)));
    }

    /// A slow start is worth a hint, once.
    pub(super) fn mention_slow_start(&mut self, now: Mono, id: ServerId, began: Mono) {
        let took = now.since(began);
        let helps = self.config.manner == Manner::Wrap && !self.is_remote(id);
        if helps && !self.definition_of(id).instant && took > memory::SLOW_START {
            let server = self.server_name(id);
            self.note(Note::SlowStart { server, took });
        }
    }
}

/// A result under a client's own id.
fn answer(id: &JsonId, result: &[u8]) -> Option<Message> {
    let id = id.patch();
    let answer = [br#"{"jsonrpc":"2.0","id":"#, id.as_slice(), br#","result":"#, result, b"}"].concat();
    scan_message(answer.into())
}
