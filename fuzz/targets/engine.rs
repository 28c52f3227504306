//! The engine never panics and never breaks an invariant, whatever either side writes and whenever.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| outlast_testkit::chaos::play(bytes));
