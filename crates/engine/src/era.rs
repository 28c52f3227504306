//! The two eras of the protocol, and which of them a server is known to speak.
//!
//! Legacy revisions (up to 2025-11-25) open with `initialize` and have sessions; in the modern one each request stands
//! for itself. outlast passes messages on in the era they came in and never probes, so what a server speaks is learned
//! from its answers alone. Connecting a client of one era with a server of the other would be done at two places, and nowhere
//! else: `engine/seams.rs`.

use crate::method::Method;

/// An era of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Era {
    Legacy,
    Modern,
}

impl Era {
    /// The era that a handshake belongs to.
    pub(crate) fn of_handshake(method: &Method) -> Option<Era> {
        match method {
            Method::Initialize => Some(Era::Legacy),
            Method::Discover => Some(Era::Modern),
            _ => None,
        }
    }
}

/// The eras that a server has shown it speaks, by answering a handshake of theirs. Many servers speak both.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Eras {
    legacy: bool,
    modern: bool,
}

impl Eras {
    pub(crate) fn speaks(self, era: Era) -> bool {
        match era {
            Era::Legacy => self.legacy,
            Era::Modern => self.modern,
        }
    }

    pub(crate) fn learns(&mut self, era: Era) {
        match era {
            Era::Legacy => self.legacy = true,
            Era::Modern => self.modern = true,
        }
    }
}
