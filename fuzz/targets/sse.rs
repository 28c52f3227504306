//! A stream of events says the same whether it comes whole or in pieces, and never more than it may.

#![no_main]

#[path = "../../crates/outlast/src/server/sse.rs"]
mod sse;

use sse::{Parsed, Parser};

/// The longest event, so short that the fuzzer gets beyond it.
const MAX: usize = 64;

// The first byte says how long the pieces are.
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some((length, stream)) = bytes.split_first() else { return };
    let whole = parse(stream.chunks(stream.len().max(1)));
    assert_eq!(parse(stream.chunks(usize::from(*length).max(1))), whole);
    for parsed in whole {
        check(parsed);
    }
});

fn parse<'a>(chunks: impl Iterator<Item = &'a [u8]>) -> Vec<Parsed> {
    let mut parser = Parser::new(MAX);
    let mut parsed = Vec::new();
    for chunk in chunks {
        parser.feed(chunk, &mut |one| parsed.push(one));
    }
    parsed
}

fn check(parsed: Parsed) {
    match parsed {
        Parsed::Event { data, id, name } => {
            assert!((1..=MAX).contains(&data.len()) && !data.contains(&b'\r'));
            [id, name].into_iter().flatten().for_each(|value| check_value(&value));
        }
        Parsed::Id(id) => check_value(&id),
        Parsed::Oversized { id, .. } => id.into_iter().for_each(|id| check_value(&id)),
        Parsed::Retry(_) => {}
    }
}

fn check_value(value: &[u8]) {
    assert!(!value.contains(&b'\n') && !value.contains(&b'\r'));
}
