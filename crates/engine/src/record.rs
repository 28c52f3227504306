//! What is stored of a call that has a ticket, and what may become of it.
//!
//! A record is made when a call gets its ticket, changed only by the process that owns the call, and
//! final once the call has ended. Two numbers guard it: the *revision* rises with every write, so that
//! others see what is new; the *epoch* rises with every owner, so that an owner who was taken for dead
//! cannot write any more.
//!
//! Stores differ in where they put a record, never in what they allow: [`Head::admit`] decides for
//! all of them. Not here: what a store is asked (`store.rs`).

mod body;
mod ticket;

pub use body::{BadBody, Body, Question};
pub use ticket::Ticket;

use crate::store::Refusal;
use crate::time::Wall;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How far a stored call has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum State {
    /// The server works.
    Working,
    /// The server waits for an answer of the client.
    InputRequired,
    /// The server answered.
    Completed,
    /// It ended with an error.
    Failed,
    /// It was cancelled, whatever the server did then.
    Cancelled,
}

impl State {
    /// All of them, in the order of their numbers.
    pub const ALL: [State; 5] =
        [State::Working, State::InputRequired, State::Completed, State::Failed, State::Cancelled];

    /// Whether anything may still come.
    pub fn is_open(self) -> bool {
        matches!(self, State::Working | State::InputRequired)
    }

    /// Its number in a store.
    pub fn number(self) -> u8 {
        self as u8
    }

    /// The state with this number.
    pub fn of_number(number: u8) -> Option<State> {
        State::ALL.get(usize::from(number)).copied()
    }

    /// Its name on the wire, the same in both eras.
    pub fn as_str(self) -> &'static str {
        match self {
            State::Working => "working",
            State::InputRequired => "input_required",
            State::Completed => "completed",
            State::Failed => "failed",
            State::Cancelled => "cancelled",
        }
    }
}

/// Under which names a client knows the ticket: a set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Faces(pub u8);

impl Faces {
    /// A task of 2025-11-25.
    pub const LEGACY_TASK: Faces = Faces(1);
    /// A task of the modern extension.
    pub const MODERN_TASK: Faces = Faces(2);
    /// A resume token (SEP-975).
    pub const RESUME: Faces = Faces(4);
    /// A ticket for the wait tool.
    pub const HAND_OFF: Faces = Faces(8);

    /// Both sets together.
    pub fn with(self, other: Faces) -> Faces {
        Faces(self.0 | other.0)
    }

    /// Whether all of the other are in this one.
    pub fn has(self, other: Faces) -> bool {
        self.0 & other.0 == other.0
    }
}

/// Whose call it is and what it calls: the same as long as the record lives.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// Whose call it is.
    pub principal: Box<str>,
    /// Which server it is for: the same text after a restart of ours.
    pub server: Box<str>,
    /// Its method.
    pub method: Box<str>,
    /// Its tool; empty where there is none.
    pub tool: Box<str>,
    /// Its idempotency key. While the call is open no other of this principal and server has it; so a
    /// second call finds the first one, also if it is for another tool and must be refused. See
    /// [`Head::holds_key_of`].
    pub key: Option<Box<str>>,
}

/// The answer's bytes, exactly as the server gave them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answer {
    /// What stood under `result`.
    Result(#[serde(with = "crate::recording::form")] Bytes),
    /// What stood under `error`.
    Error(#[serde(with = "crate::recording::form")] Bytes),
}

impl Answer {
    /// The bytes, whichever they are.
    pub fn bytes(&self) -> &Bytes {
        match self {
            Answer::Result(bytes) | Answer::Error(bytes) => bytes,
        }
    }
}

/// A record without its large parts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// The handle.
    pub ticket: Ticket,
    /// Whose, and what.
    pub origin: Origin,
    /// Under which names the client knows it.
    pub faces: Faces,
    /// How far it has come.
    pub state: State,
    /// When its call began. All times of a record are on the store's clock.
    pub created: Wall,
    /// When the call last changed; a change of owner does not count.
    pub updated: Wall,
    /// When it may be forgotten. An open record never is, whatever stands here.
    pub expires: Option<Wall>,
    /// What else is known, as [`Body::encode`] writes it.
    #[serde(with = "crate::recording::form")]
    pub body: Bytes,
    /// Its place in the order of creation, for lists that go on page by page.
    pub number: u64,
    /// Rises with every write.
    pub revision: u64,
    /// Rises with every owner.
    pub epoch: u64,
    /// The process that owns it, as the store names processes.
    pub owner: Box<str>,
}

/// A whole record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// The small part.
    pub head: Head,
    /// The request as it came, byte for byte.
    #[serde(with = "crate::recording::form")]
    pub request: Bytes,
    /// The answer, once there is one.
    pub answer: Option<Answer>,
}

/// A record to be made. It begins as [`State::Working`] in epoch 1, owned by whoever makes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct New {
    /// The handle.
    pub ticket: Ticket,
    /// Whose, and what.
    pub origin: Origin,
    /// Under which names the client knows it.
    pub faces: Faces,
    /// How long the call has run, which may have begun before it got a ticket.
    pub ran: Duration,
    /// The newest record with its key that its maker knows of, by [`Head::number`]; 0 if there is none.
    pub seen: u64,
    /// What else is known, as [`Body::encode`] writes it.
    pub body: Bytes,
    /// The request as it came, byte for byte.
    pub request: Bytes,
}

/// A change of a record by its owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Which record.
    pub ticket: Ticket,
    /// The epoch in which the owner got it.
    pub epoch: u64,
    /// How far it has come now.
    pub state: State,
    /// Names under which the client knows it from now on, besides the earlier ones.
    pub faces: Faces,
    /// How long it is kept from now on, once it has ended; for ever if nothing stands here.
    pub keep: Option<Duration>,
    /// What else is known now; `None` leaves it as it was.
    pub body: Option<Bytes>,
    /// The answer, with the change that ends the call.
    pub answer: Option<Answer>,
}

impl Change {
    /// A change that only says how far the call has come.
    pub fn to(state: State, head: &Head) -> Change {
        Change {
            ticket: head.ticket.clone(),
            epoch: head.epoch,
            state,
            faces: Faces::default(),
            keep: None,
            body: None,
            answer: None,
        }
    }
}

impl Head {
    /// The head of a record that is made now.
    pub fn new(new: &New, number: u64, owner: &str, now: Wall) -> Head {
        Head {
            ticket: new.ticket.clone(),
            origin: new.origin.clone(),
            faces: new.faces,
            state: State::Working,
            created: now.before(new.ran),
            updated: now,
            expires: None,
            body: new.body.clone(),
            number,
            revision: 1,
            epoch: 1,
            owner: owner.into(),
        }
    }

    /// Whether it may be forgotten, although nobody did yet.
    pub fn is_over(&self, now: Wall) -> bool {
        !self.state.is_open() && self.expires.is_some_and(|expires| expires <= now)
    }

    /// Whether a new record is refused because this one has its key. What is open has it; and so has what was
    /// completed since the maker of the new one looked, or the same call would be made twice.
    pub fn holds_key_of(&self, new: &New, now: Wall) -> bool {
        let (ours, theirs) = (&self.origin, &new.origin);
        let same =
            (&ours.principal, &ours.server, &ours.key) == (&theirs.principal, &theirs.server, &theirs.key);
        let missed = self.state == State::Completed && self.number > new.seen && !self.is_over(now);
        theirs.key.is_some() && same && (self.state.is_open() || missed)
    }

    /// Whether this owner may make this change. One that was taken for dead may not; and what has
    /// ended has ended: a client may have seen it.
    pub fn admit(&self, change: &Change, owner: &str) -> Result<(), Refusal> {
        if change.epoch != self.epoch || *owner != *self.owner {
            return Err(Refusal::Fenced);
        }
        if !self.state.is_open() {
            return Err(Refusal::Ended(self.state));
        }
        if change.answer.is_some() == change.state.is_open() && change.state != State::Cancelled {
            return Err(Refusal::Incomplete);
        }
        Ok(())
    }

    /// The head after a change that was admitted and is made now.
    pub fn apply(&mut self, change: &Change, now: Wall) {
        self.state = change.state;
        self.faces = self.faces.with(change.faces);
        self.updated = self.updated.max(now);
        self.expires = change.keep.map(|keep| now.after(keep));
        if let Some(body) = &change.body {
            self.body = body.clone();
        }
        self.revision += 1;
    }

    /// The head under a new owner.
    pub fn pass_to(&mut self, owner: &str) {
        self.owner = owner.into();
        self.epoch += 1;
        self.revision += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(state: State) -> Head {
        let origin = Origin {
            principal: "ann".into(),
            server: "s".into(),
            method: "tools/call".into(),
            tool: "t".into(),
            key: None,
        };
        let new = New {
            ticket: Ticket::of(&[7; 16]),
            origin,
            faces: Faces::RESUME,
            ran: Duration::from_millis(1),
            seen: 0,
            body: Bytes::new(),
            request: Bytes::new(),
        };
        Head { state, ..Head::new(&new, 1, "me", Wall(5)) }
    }

    fn change(head: &Head, state: State) -> Change {
        let answer = (!state.is_open()).then(|| Answer::Result(Bytes::from_static(b"{}")));
        Change { answer, ..Change::to(state, head) }
    }

    #[test]
    fn what_has_ended_never_changes() {
        for from in State::ALL {
            for to in State::ALL {
                let head = head(from);
                let admitted = head.admit(&change(&head, to), "me");
                let wanted = if from.is_open() { Ok(()) } else { Err(Refusal::Ended(from)) };
                assert_eq!(admitted, wanted, "{from:?} to {to:?}");
            }
        }
    }

    #[test]
    fn an_owner_of_an_earlier_epoch_writes_nothing() {
        let mut head = head(State::Working);
        let old = change(&head, State::Completed);
        assert_eq!(head.admit(&old, "other"), Err(Refusal::Fenced));
        head.pass_to("me");
        assert_eq!(head.admit(&old, "me"), Err(Refusal::Fenced));
        assert_eq!((head.epoch, head.revision, head.updated), (2, 2, Wall(5)));
    }

    #[test]
    fn an_answer_comes_with_the_end_and_only_then() {
        let head = head(State::Working);
        let without = Change { answer: None, ..change(&head, State::Completed) };
        assert_eq!(head.admit(&without, "me"), Err(Refusal::Incomplete));
        let early = Change { answer: Some(Answer::Error(Bytes::new())), ..change(&head, State::Working) };
        assert_eq!(head.admit(&early, "me"), Err(Refusal::Incomplete));
        assert_eq!(head.admit(&Change::to(State::Cancelled, &head), "me"), Ok(()));
    }

    #[test]
    fn a_change_adds_names_and_never_goes_back_in_time() {
        let mut head = head(State::Working);
        let change = Change { faces: Faces::HAND_OFF, ..change(&head, State::InputRequired) };
        head.apply(&change, Wall(3));
        assert!(head.faces.has(Faces::RESUME.with(Faces::HAND_OFF)));
        assert!(!head.faces.has(Faces::LEGACY_TASK));
        assert_eq!((head.updated, head.revision), (Wall(5), 2));
    }

    /// Its owner says how long, and the store says from when.
    #[test]
    fn a_record_is_kept_from_its_end_on_by_the_clock_of_the_store() {
        let mut head = head(State::Working);
        assert_eq!((head.created, head.updated), (Wall(4), Wall(5)));
        let end = Change { keep: Some(Duration::from_millis(10)), ..change(&head, State::Completed) };
        head.apply(&end, Wall(20));
        assert_eq!((head.updated, head.expires), (Wall(20), Some(Wall(30))));
        assert!(!head.is_over(Wall(29)) && head.is_over(Wall(30)));
    }

    #[test]
    fn states_are_found_by_their_numbers() {
        for state in State::ALL {
            assert_eq!(State::of_number(state.number()), Some(state));
        }
        assert_eq!(State::of_number(5), None);
    }
}
