//! What the client of a session has to say to processes where the session was before.
//!
//! A session follows its client from process to process, and its calls stay where they began. So what a client says of a
//! call that is not known here goes to every process that has owned the session, as a mailbox message; a session that has
//! come back may have left calls in this very process. Each of them does what it would have done if the client had come to
//! it, and ignores what it does not know:
//!
//! | message | is heeded by the process |
//! |---|---|
//! | a cancel | that has the call |
//! | an answer | whose server, or whose held call, has asked that |
//! | an event id: its stream is read elsewhere | that writes this stream (`relaying`) |
//! | the session has ended | that has anything left of it |

use crate::clients::Client;
use crate::clients::session::EventId;
use crate::engine::Engine;
use crate::engine::ledger::Pending;
use crate::id::ClientId;
use crate::store::{Name, Write};
use crate::wire::{Message, Shape, scan_message};
use bytes::Bytes;

/// A message about a session.
#[derive(Clone, Debug)]
pub(in crate::engine) enum About {
    /// What its client said.
    Said(Box<Message>),
    /// A stream is read from this event on.
    Reads(EventId),
    /// Its client has ended it.
    Ended,
}

impl About {
    fn encode(&self) -> Bytes {
        match self {
            About::Said(message) => [b"s", &message.bytes[..]].concat().into(),
            About::Reads(event) => format!("r{event}").into(),
            About::Ended => Bytes::from_static(b"e"),
        }
    }

    /// `None` for what a later version may have to say.
    fn decode(bytes: &Bytes) -> Option<About> {
        let rest = bytes.get(1..)?;
        match bytes.first()? {
            b's' => scan_message(bytes.slice(1..)).map(Box::new).map(About::Said),
            b'r' => EventId::parse(std::str::from_utf8(rest).ok()?).map(About::Reads),
            b'e' => Some(About::Ended),
            _ => None,
        }
    }
}

impl Engine {
    /// Tells the processes where a client's session was before. False if it has always been with this one.
    #[cold]
    pub(in crate::engine) fn tell_former_owners(&mut self, client: ClientId, about: &About) -> bool {
        let Some(state) = self.clients.get(&client).filter(|_| self.config.durable) else { return false };
        let Some(session) = state.session() else { return false };
        let (name, moved) = (self.name_of_session(state.entry, &session.id), session.epoch > 1);
        if !moved {
            return false;
        }
        if !self.is_heeded(&name, Some(client), about) {
            self.submit(Pending::Noted, Write::Forward { session: name, message: about.encode() });
        }
        true
    }

    /// Other processes have something to say about sessions that were here.
    pub(in crate::engine) fn mail_about_sessions(&mut self, messages: &[(Name, Bytes)]) {
        for (name, message) in messages {
            if let Some(about) = About::decode(message) {
                self.is_heeded(name, None, &about);
            }
        }
    }

    /// Whether a message concerns a session that was here, besides the client who says it.
    fn is_heeded(&mut self, name: &Name, says: Option<ClientId>, about: &About) -> bool {
        let id = name.0.rsplit('/').next().unwrap_or_default();
        let meant = |client: &Client| {
            let session = client.session().filter(|session| *session.id == *id);
            session.is_some_and(|session| self.name_of_session(client.entry, &session.id) == *name)
        };
        let others = self.clients.iter().filter(|(client, state)| Some(**client) != says && meant(state));
        let others: Vec<ClientId> = others.map(|(client, _)| *client).collect();
        others.into_iter().any(|client| self.heeds(client, about))
    }

    fn heeds(&mut self, client: ClientId, about: &About) -> bool {
        match about {
            About::Said(message) => match message.shape {
                Shape::Notification => self.cancels_here(client, message),
                Shape::Answer => self.answers_here(self.at, client, message),
                Shape::Request => false,
            },
            About::Reads(event) => self.is_read_elsewhere(client, event),
            About::Ended => {
                self.end_client(self.at, client);
                // There may be more than one, and all of them have ended.
                false
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_come_as_they_went_and_unknown_ones_are_ignored() {
        let message = scan_message(Bytes::from_static(b"{\"id\":1.0,\"result\":{}}")).unwrap();
        let said = About::decode(&About::Said(Box::new(message.clone())).encode());
        assert!(matches!(said, Some(About::Said(came)) if came.bytes == message.bytes));
        let event = EventId::parse("ab-3-7").unwrap();
        let reads = About::decode(&About::Reads(event.clone()).encode());
        assert!(matches!(reads, Some(About::Reads(came)) if came == event));
        assert!(matches!(About::decode(&About::Ended.encode()), Some(About::Ended)));
        for unknown in ["", "x", "r", "rab-1", "s{", "snull"] {
            assert!(About::decode(&Bytes::from(unknown)).is_none(), "{unknown}");
        }
    }
}
