//! The unguessable handle of a stored call.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The handle under which a call can be fetched later: 128 random bits or more, as hexadecimal text.
///
/// Whoever has it may have the call, so it is compared in constant time and never shown.
#[derive(Clone, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Ticket(Box<str>);

/// Characters of a ticket.
const LENGTH: std::ops::RangeInclusive<usize> = 32..=64;

impl Ticket {
    /// The ticket made of these random bytes: 16 at least, 32 at most.
    pub fn of(entropy: &[u8]) -> Ticket {
        debug_assert!(LENGTH.contains(&(entropy.len() * 2)));
        Ticket(crate::hex::encode(entropy).into())
    }

    /// Takes a text from outside; `None` if we would never have made it.
    pub fn parse(text: &str) -> Option<Ticket> {
        let hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        (LENGTH.contains(&text.len()) && text.bytes().all(hex)).then(|| Ticket(text.into()))
    }

    /// The text, for those who may see it: the client it belongs to, and the store.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for Ticket {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Ticket, &'static str> {
        Ticket::parse(&text).ok_or("not a ticket")
    }
}

impl From<Ticket> for String {
    fn from(ticket: Ticket) -> String {
        ticket.0.into()
    }
}

impl PartialEq for Ticket {
    fn eq(&self, other: &Ticket) -> bool {
        let (ours, theirs) = (self.0.as_bytes(), other.0.as_bytes());
        let difference = ours.iter().zip(theirs).fold(0, |sum, (a, b)| sum | (a ^ b));
        ours.len() == theirs.len() && std::hint::black_box(difference) == 0
    }
}

impl std::hash::Hash for Ticket {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        state.write(self.0.as_bytes());
    }
}

impl fmt::Debug for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Ticket(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ticket_is_never_shown() {
        assert_eq!(format!("{:?}", Ticket::of(&[0xab; 16])), "Ticket(…)");
    }

    #[test]
    fn only_what_we_could_have_made_is_a_ticket() {
        let made = Ticket::of(&[0x0f; 16]);
        assert_eq!(Ticket::parse(made.as_str()), Some(made));
        assert!(Ticket::parse(&"a".repeat(64)).is_some());
        for text in ["", "abc", &"A".repeat(32), &"g".repeat(32), &"a".repeat(31), &"a".repeat(65)] {
            assert_eq!(Ticket::parse(text), None, "{text}");
        }
    }

    #[test]
    fn tickets_are_equal_only_as_a_whole() {
        let mut other = [3; 16];
        other[15] = 4;
        assert_ne!(Ticket::of(&[3; 16]), Ticket::of(&other));
        assert_ne!(Ticket::of(&[3; 16]), Ticket::of(&[3; 17]));
    }
}
