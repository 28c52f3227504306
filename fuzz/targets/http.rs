//! A service never panics, breaks no invariant and wrongs no client, whatever is posted and whenever.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| outlast_testkit::chaos::http::play(bytes));
