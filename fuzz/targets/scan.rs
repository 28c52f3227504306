//! Our scanner and `serde_json` agree on every input.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| outlast_testkit::oracle::compare(bytes));
