//! Arrays of messages. They are always split; a client gets its answers as one array.

use super::Engine;
use crate::action::Action;
use crate::client::{Batch, Way};
use crate::id::{BatchId, ClientId, JsonId};
use crate::time::Mono;
use crate::wire::{Message, Outgoing, Refused, Shape};

impl Engine {
    pub(super) fn client_batch(
        &mut self,
        now: Mono,
        client_id: ClientId,
        members: &[Result<Message, Refused>],
    ) {
        let Some(client) = self.clients.get_mut(&client_id) else { return };
        let batch = BatchId(client.next_batch);
        client.next_batch += 1;
        let answered = |member: &&Result<Message, Refused>| !matches!(member, Ok(message) if message.shape != Shape::Request);
        let open = members.iter().filter(answered).count();
        // One more than there are, so that nothing leaves before every member was looked at.
        client.batches.insert(batch, Batch { open: open + 1, ..Batch::default() });
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
            // It is kept for a while: see `joining.rs`.
            Way::Nowhere => {}
            Way::Stream(stream) => {
                self.answer_on_stream(stream, &answer);
                self.settled_on_stream(self.at, stream);
            }
        }
    }

    /// Puts an answer into its array.
    #[cold]
    fn collect(&mut self, client: ClientId, id: BatchId, to: Option<&JsonId>, answer: Outgoing) {
        let limit = self.config.max_message;
        let Some(collected) = self.clients.get_mut(&client).and_then(|c| c.batches.get_mut(&id)) else {
            return;
        };
        collected.bytes += answer.len();
        if collected.bytes <= limit {
            collected.answers.push((to.map(JsonId::key), answer.to_vec()));
        } else {
            // An array beyond `max-message` helps nobody: what does not fit leaves by itself.
            self.act(Action::ToClient(client, answer));
        }
        self.member_done(client, id);
    }

    /// A client gave up a call whose answer is collected but not sent: it must not get it any more.
    pub(super) fn forget_collected(&mut self, client: ClientId, id: &JsonId) {
        let Some(client) = self.clients.get_mut(&client) else { return };
        for batch in client.batches.values_mut() {
            batch.answers.retain(|(to, _)| to.as_ref() != Some(id));
        }
    }

    /// One member of an array is settled; the last one sends it off.
    pub(super) fn member_done(&mut self, client_id: ClientId, id: BatchId) {
        let Some(client) = self.clients.get_mut(&client_id) else { return };
        let Some(batch) = client.batches.get_mut(&id) else { return };
        batch.open -= 1;
        if batch.open > 0 {
            return;
        }
        let Some(batch) = client.batches.remove(&id) else { return };
        if !batch.answers.is_empty() {
            let answers: Vec<Vec<u8>> = batch.answers.into_iter().map(|(_, answer)| answer).collect();
            let array = [b"[", &*answers.join(&b","[..]), b"]"].concat();
            self.act(Action::ToClient(client_id, Outgoing::plain(array)));
        }
    }
}
