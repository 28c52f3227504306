//! Arrays of messages. They are always split; a client gets its answers as one array.

use super::Engine;
use crate::action::Action;
use crate::clients::Way;
use crate::id::{BatchId, ClientId, JsonId};
use crate::time::Mono;
use crate::wire::{Message, Outgoing, Refused, Shape, scan};

impl Engine {
    pub(super) fn client_batch(
        &mut self,
        now: Mono,
        client_id: ClientId,
        members: &[Result<Message, Refused>],
    ) {
        let answered = |member: &&Result<Message, Refused>| !matches!(member, Ok(message) if message.shape != Shape::Request);
        let open = members.iter().filter(answered).count();
        let Some(batch) = self.clients.new_batch(client_id, open) else { return };
        for member in members {
            match member {
                Ok(message) => self.client_message(now, client_id, message, Way::Array(batch)),
                Err(refused) => {
                    let answer = self.refusal(refused);
                    self.reply(client_id, Way::Array(batch), None, Outgoing::plain(answer));
                }
            }
        }
        self.member_done(client_id, batch);
    }

    /// Gives a client an answer: at once, or as part of its array, or on a stream.
    pub(super) fn reply(&mut self, client: ClientId, way: Way, to: Option<&JsonId>, answer: Outgoing) {
        match way {
            Way::Array(id) if self.is_hushed(client) => self.member_done(client, id),
            Way::Line if self.is_hushed(client) => {}
            Way::Array(id) => self.collect(client, id, to, answer),
            Way::Line => self.act(Action::ToClient(client, answer)),
            Way::Ticket(no) => self.task_answered(no, &answer),
            // It is kept for a while: see `keyed.rs`.
            Way::Nowhere => {}
            Way::Stream(stream) => {
                self.answer_on_stream(stream, &answer);
                self.settled_on_stream(self.at, stream);
            }
        }
    }

    /// A request was given up by whoever made it: what waits for its answer waits no longer.
    pub(super) fn settled_without_answer(&mut self, client: ClientId, way: Way) {
        match way {
            Way::Array(batch) => self.member_done(client, batch),
            Way::Stream(stream) => self.settled_on_stream(self.at, stream),
            // Whoever gave it up has said what becomes of its task.
            Way::Line | Way::Ticket(_) | Way::Nowhere => {}
        }
    }

    /// Puts an answer into its array.
    #[cold]
    fn collect(&mut self, client: ClientId, id: BatchId, to: Option<&JsonId>, answer: Outgoing) {
        // What was stored for a ticket may be careless too, and would make the whole array unreadable.
        let strict = scan(answer.to_vec().into()).is_ok();
        let most = if strict { self.config.max_message } else { 0 };
        if let Some(answer) = self.clients.collect(client, id, to, answer, most) {
            // What does not fit leaves by itself.
            self.act(Action::ToClient(client, answer));
        }
        self.member_done(client, id);
    }

    /// One member of an array is settled; the last one sends it off.
    pub(super) fn member_done(&mut self, client_id: ClientId, id: BatchId) {
        if let Some(array) = self.clients.member_done(client_id, id) {
            self.act(Action::ToClient(client_id, Outgoing::plain(array)));
        }
    }
}
