//! A recording may be any file: it is read and played, or refused.

#![no_main]

use outlast_engine::recording::{Entry, Header, Player};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let mut lines = text.lines();
    let Ok(header) = Header::read(lines.next().unwrap_or_default()) else { return };
    let mut player = Player::new(header);
    for line in lines {
        let Ok(entry) = Entry::read(line) else { return };
        // What is read can be written, and is the same then.
        let written = entry.line();
        assert_eq!(Entry::read(&written).expect("our own").line(), written);
        match player.take(entry) {
            Ok(moment) => drop(moment.map(|moment| moment.difference())),
            Err(_) => return,
        }
    }
});
