//! Answers to what a remote server asked, which could not be sent because the server cannot be reached. Nobody can be
//! asked for them again, so they wait here until the server is back in the same session.

use super::Servers;
use crate::id::ServerId;
use crate::limits;
use crate::time::Mono;
use crate::wire::{Field, Outgoing, scan_message};
use std::collections::VecDeque;

/// The oldest first.
#[derive(Debug, Default)]
pub(crate) struct Unsent(VecDeque<Answer>);

#[derive(Debug)]
struct Answer {
    message: Outgoing,
    since: Mono,
}

impl Unsent {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn bytes(&self) -> usize {
        self.0.iter().map(|answer| answer.message.len()).sum()
    }

    /// Keeps one more. How many had to go for it.
    fn keep(&mut self, now: Mono, message: Outgoing) -> usize {
        self.0.push_back(Answer { message, since: now });
        let mut dropped = 0;
        while reached!(UNSENT_ANSWERS, self.0.len() > limits::UNSENT_ANSWERS)
            || reached!(UNSENT_BYTES, self.bytes() > limits::UNSENT_BYTES)
        {
            self.0.pop_front();
            dropped += 1;
        }
        dropped
    }
}

impl Servers {
    /// An answer could not be sent. How many are dropped because there are too many.
    pub(crate) fn keep_unsent(&mut self, now: Mono, id: ServerId, message: Outgoing) -> usize {
        self.at(id).map_or(1, |server| server.unsent.keep(now, message))
    }

    /// Takes all that is kept: what can still be sent, and how many are too old for that.
    pub(crate) fn take_unsent(&mut self, now: Mono, id: ServerId) -> (Vec<Outgoing>, usize) {
        let Some(server) = self.at(id) else { return (Vec::new(), 0) };
        let all = std::mem::take(&mut server.unsent.0);
        let count = all.len();
        let fresh = all.into_iter().filter(|answer| now.since(answer.since) < limits::UNSENT);
        let fresh: Vec<Outgoing> = fresh.map(|answer| answer.message).collect();
        let old = count - fresh.len();
        reached!(UNSENT if old > 0);
        (fresh, old)
    }

    /// The server does not want the answer to this question any more. Whether there was one.
    pub(crate) fn forget_unsent(&mut self, id: ServerId, question: &[u8]) -> bool {
        let Some(server) = self.at(id).filter(|server| !server.unsent.is_empty()) else { return false };
        let before = server.unsent.0.len();
        server.unsent.0.retain(|answer| !answers(&answer.message, question));
        server.unsent.0.len() < before
    }
}

fn answers(message: &Outgoing, question: &[u8]) -> bool {
    let message = scan_message(message.to_vec().into());
    message.is_some_and(|message| message.raw(Field::Id) == Some(question))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_has_a_bound() {
        let mut unsent = Unsent::default();
        let small = || Outgoing::plain(b"{}".to_vec());
        let dropped: usize =
            (0..limits::UNSENT_ANSWERS + 3).map(|_| unsent.keep(Mono::default(), small())).sum();
        assert_eq!((dropped, unsent.0.len()), (3, limits::UNSENT_ANSWERS));
        let large = Outgoing::plain(vec![b' '; limits::UNSENT_BYTES]);
        assert_eq!(
            unsent.keep(Mono::default(), large),
            limits::UNSENT_ANSWERS,
            "the newest is the one that stays"
        );
        assert_eq!(unsent.keep(Mono::default(), small()), 1);
    }
}
