//! What is stored of a stream besides its events, and what is told of it by a process that did not write it.

use crate::time::Wall;
use bytes::Bytes;

/// Numbers that no event has; what is stored under them is about the stream. The first one tells of the moment when
/// it was stored: the number of the last event, and the time.
pub(super) const BEFORE: u64 = 1 << 59;
pub(super) const FALLBACK: u64 = 1 << 60;
pub(super) const STANDING: u64 = 1 << 61;
pub(super) const SETTLED: u64 = 1 << 62;

/// What is noted of the moment when a stream is stored.
pub(super) fn moment(last: u64, now: Wall) -> Bytes {
    [last.to_be_bytes(), now.0.to_be_bytes()].concat().into()
}

/// What was stored of a stream, from shortly before the event on that a client has seen.
pub(super) struct Rest<'a> {
    /// Events with their numbers.
    events: Vec<&'a (u64, Bytes)>,
    /// The number of the last one that was ever sent.
    last: u64,
    pub(super) standing: bool,
    /// Its request is settled: nothing more comes.
    pub(super) settled: bool,
    /// How its request is answered if nobody has.
    fallback: Option<&'a Bytes>,
    /// When that was written.
    stored: Wall,
}

impl Rest<'_> {
    pub(super) fn of(stored: &[(u64, Bytes)], seen: u64, now: Wall) -> Rest<'_> {
        let told = |wanted: u64| stored.iter().find(|(number, _)| *number == wanted).map(|(_, bytes)| bytes);
        let events: Vec<_> = stored.iter().filter(|(number, _)| *number < BEFORE).collect();
        // Where the moment is not known, because an earlier version did not note it, the client is believed.
        let moment = told(BEFORE).and_then(|moment| moment.as_chunks::<8>().0.try_into().ok());
        let [before, at] =
            moment.map_or([seen, now.0], |moment: [[u8; 8]; 2]| moment.map(u64::from_be_bytes));
        let last = events.last().map_or(before, |(number, _)| before.max(*number));
        let settled = told(SETTLED).is_some();
        let fallback = told(FALLBACK).filter(|_| !settled);
        Rest { events, last, standing: told(STANDING).is_some(), settled, fallback, stored: Wall(at) }
    }

    /// Whether an event of this number was sent: also a fallback answer has one.
    pub(super) fn has_sent(&self, number: u64) -> bool {
        number <= self.last.saturating_add(self.fallback.is_some().into())
    }

    pub(super) fn after(&self, number: u64) -> impl Iterator<Item = &(u64, Bytes)> {
        self.events.iter().copied().filter(move |(event, _)| *event > number)
    }

    /// The fallback answer with its number, if it comes after this event.
    pub(super) fn fallback_after(&self, number: u64, now: Wall) -> Option<(u64, Vec<u8>)> {
        let fallback = self.fallback.filter(|_| number <= self.last)?;
        Some((self.last.saturating_add(1), later(fallback, now.0.saturating_sub(self.stored.0))))
    }

    /// Whether all that came after an event is there.
    pub(super) fn is_whole_after(&self, number: u64) -> bool {
        let mut told = number;
        let in_order = self.after(number).all(|(event, _)| {
            told = told.saturating_add(1);
            *event == told
        });
        in_order && told >= self.last
    }
}

/// A fallback answer, told some milliseconds after it was written.
fn later(answer: &[u8], time: u64) -> Vec<u8> {
    let member = b"\"elapsedMs\":";
    let Some(at) = memchr::memmem::find(answer, member).map(|at| at + member.len()) else {
        return answer.to_vec();
    };
    let (before, rest) = answer.split_at(at);
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let elapsed: u64 =
        std::str::from_utf8(&rest[..digits]).ok().and_then(|text| text.parse().ok()).unwrap_or(0);
    [before, elapsed.saturating_add(time).to_string().as_bytes(), &rest[digits..]].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An event that could not be written leaves a hole, and what comes after it is not all there is.
    #[test]
    fn a_stream_with_a_hole_is_not_whole_before_it() {
        let stored = [1, 2, 4, 5].map(|number| (number, Bytes::from_static(b"x")));
        let rest = Rest::of(&stored, 0, Wall(9));
        assert_eq!(
            [0, 1, 2, 3, 4, 5].map(|seen| rest.is_whole_after(seen)),
            [false, false, false, true, true, true]
        );
    }

    /// An earlier version noted no moment, and a client may say anything.
    #[test]
    fn a_number_beyond_all_numbers_is_no_trouble() {
        let stored = [(1, Bytes::from_static(b"one")), (FALLBACK, Bytes::from_static(b"{\"elapsedMs\":x}"))];
        let rest = Rest::of(&stored, u64::MAX, Wall(9));
        assert!(rest.has_sent(u64::MAX) && rest.is_whole_after(u64::MAX));
        assert_eq!(rest.fallback_after(u64::MAX, Wall(9)), Some((u64::MAX, b"{\"elapsedMs\":0x}".to_vec())));
    }
}
