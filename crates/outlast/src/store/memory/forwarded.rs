//! Mailbox messages about sessions, in memory.

use super::super::owner::Me;
use super::super::{id_of, small_weight};
use super::{Forwarded, Shelves, Turn};
use bytes::Bytes;
use outlast_engine::store::{Done, Name};
use outlast_engine::{Wall, limits};

impl Shelves {
    pub(super) fn forward(&mut self, session: &Name, message: &Bytes, turn: &Turn<'_>) -> Done {
        let former = self.sessions.get(&id_of(&session.0)).map(|kept| kept.former.clone());
        for owner in former.unwrap_or_default() {
            if owner == turn.me.name || self.waiting_for(&owner) >= turn.bounds.mailbox {
                continue;
            }
            if self.make_room(0, small_weight(message), turn.bounds).is_err() {
                break;
            }
            self.usage.bytes += small_weight(message);
            let until = turn.now.after(limits::FORWARDED);
            let number = self.next_number();
            let forwarded = Forwarded { session: session.clone(), message: message.clone(), until };
            self.forwarded.put((owner, number), forwarded);
        }
        Done::Kept
    }

    fn waiting_for(&self, owner: &str) -> u64 {
        self.forwarded.range((owner.into(), 0)..=(owner.into(), u64::MAX)).count() as u64
    }

    pub(super) fn has_forwarded(&self, me: &Me) -> bool {
        self.waiting_for(&me.name) > 0
    }

    pub(super) fn collect_forwarded(&mut self, me: &Me) -> Done {
        let taken = self.forwarded.take_where(|(owner, _), _| *owner == me.name);
        for (_, forwarded) in &taken {
            self.usage.bytes -= small_weight(&forwarded.message);
        }
        Done::Forwarded(taken.into_iter().map(|(_, told)| (told.session, told.message)).collect())
    }

    /// What nobody has taken for too long goes. How many.
    pub(super) fn forget_forwarded(&mut self, now: Wall) -> usize {
        let gone = self.forwarded.take_where(|_, forwarded| forwarded.until <= now);
        for (_, forwarded) in &gone {
            self.usage.bytes -= small_weight(&forwarded.message);
        }
        gone.len()
    }
}
