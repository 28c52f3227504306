//! Whatever stands in a configuration file, it is read or refused, every mistake has its place, and neither takes long.

#![no_main]

use outlast::config::file::{Mistake, examine};
use std::fs;
use std::time::Duration;

/// The promise is 100 ms per MB; this is a quarter of that length, in a program that the fuzzer made several times
/// slower.
const LONG: usize = 256 << 10;
const MOST: Duration = Duration::from_millis(125);

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    check(text);
    // A long file costs as much as a hundred short ones, so few are tried.
    if bytes.iter().fold(0u8, |sum, byte| sum.wrapping_mul(31).wrapping_add(*byte)) == 7 {
        let before = cpu();
        check(&repeated(text));
        assert!(cpu() - before < MOST, "it took {:?}", cpu() - before);
    }
});

fn check(text: &str) {
    if let Err(mistakes) = examine(text) {
        assert!(!mistakes.is_empty());
        assert!(mistakes.iter().all(|mistake: &Mistake| !mistake.line().is_empty() && mistake.spot.is_some()));
        assert!(mistakes.iter().all(|mistake| mistake.to_string().len() < 10_000));
    }
}

/// The same again and again, with a number in place of each zero, so that keys need not be there twice.
fn repeated(text: &str) -> String {
    let mut long = String::new();
    for number in 0.. {
        if text.is_empty() || long.len() + text.len() > LONG {
            break;
        }
        long += &text.replacen('0', &number.to_string(), 8);
    }
    long
}

/// CPU time of this thread, where the system tells it.
fn cpu() -> Duration {
    let schedstat = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos = schedstat.split(' ').next().and_then(|nanos| nanos.parse().ok());
    Duration::from_nanos(nanos.unwrap_or_default())
}
