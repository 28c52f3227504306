//! W3C trace context: where a request stands among all that one cause has led to.
//!
//! `traceparent` names the trace and the span of whoever sends a request; whoever receives it makes a span of its own
//! below that one. `tracestate` belongs to those who record traces, and passes as it came.
//!
//! Not here: which calls stand in a trace, and what their servers are told (`engine/tracing.rs`).

use std::fmt;
use std::num::{NonZeroU64, NonZeroU128};

/// All that one cause has led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TraceId(pub NonZeroU128);

/// One piece of work in a trace: a call, or one attempt of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SpanId(pub NonZeroU64);

/// What `traceparent` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Context {
    /// The trace.
    pub trace: TraceId,
    /// The span of whoever says it.
    pub span: SpanId,
    /// [`Context::SAMPLED`], [`Context::RANDOM`].
    pub flags: u8,
}

/// How long `traceparent` is in the version that we write.
const LENGTH: usize = 55;

impl Context {
    /// The trace is recorded.
    pub const SAMPLED: u8 = 1;
    /// The trace's id is random.
    pub const RANDOM: u8 = 2;

    /// Reads `traceparent`; `None` if it is not one. Of a later version its beginning is read, as the standard wants.
    pub fn parse(text: &str) -> Option<Context> {
        let (known, more) = text.split_at_checked(LENGTH)?;
        let mut parts = known.split('-');
        let version = number(parts.next()?, 2)?;
        let trace = number(parts.next()?, 32).and_then(NonZeroU128::new)?;
        let span = number(parts.next()?, 16).and_then(|span| NonZeroU64::new(span as u64))?;
        let flags = number(parts.next()?, 2)? as u8;
        let is_whole = if version == 0 { more.is_empty() } else { more.is_empty() || more.starts_with('-') };
        let context = Context { trace: TraceId(trace), span: SpanId(span), flags };
        (version != 0xff && is_whole).then_some(context)
    }

    /// Whether whoever began the trace has it recorded.
    pub fn is_sampled(&self) -> bool {
        self.flags & Context::SAMPLED != 0
    }
}

/// A number of so many hexadecimal digits, none of them a capital.
fn number(text: &str, digits: usize) -> Option<u128> {
    let fits = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let whole = text.len() == digits && text.bytes().all(fits);
    u128::from_str_radix(text, 16).ok().filter(|_| whole)
}

/// As `traceparent` is written. Flags that we do not know are not passed on.
impl fmt::Display for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = self.flags & (Context::SAMPLED | Context::RANDOM);
        write!(f, "00-{}-{}-{known:02x}", self.trace, self.span)
    }
}

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Display for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn what_is_read_is_written_again() {
        let context = Context::parse(KNOWN).unwrap();
        assert_eq!(context.to_string(), KNOWN);
        assert!(context.is_sampled());
        let unsampled = Context::parse(&KNOWN.replace("-01", "-00")).unwrap();
        assert!(!unsampled.is_sampled());
        let flags = Context::parse(&KNOWN.replace("-01", "-ff")).unwrap();
        assert!(flags.to_string().ends_with("-03"), "{flags}");
    }

    #[test]
    fn a_later_version_is_read_as_far_as_it_is_known() {
        for later in [KNOWN.replacen("00", "01", 1), KNOWN.replacen("00", "cc", 1) + "-what-follows"] {
            assert_eq!(Context::parse(&later).unwrap().to_string(), KNOWN, "{later}");
        }
    }

    #[test]
    fn what_is_none_is_not_taken_for_one() {
        let span = "00f067aa0ba902b7";
        let odd = [
            String::new(),
            "00-ab-cd-01".into(),
            KNOWN.to_uppercase(),
            KNOWN.replacen("00", "ff", 1),
            KNOWN.replace(span, "0000000000000000"),
            KNOWN.replace("4bf92f3577b34da6a3ce929d0e0e4736", "00000000000000000000000000000000"),
            KNOWN.replace("4bf9", "+bf9"),
            KNOWN.replace("-01", "-0g"),
            format!("{KNOWN}-x"),
            format!(" {KNOWN}"),
            KNOWN.replacen("00", "01", 1) + "x",
            KNOWN.replace("0-4", "004"),
            "ü".repeat(40),
        ];
        for text in odd {
            assert_eq!(Context::parse(&text), None, "{text}");
        }
    }
}
