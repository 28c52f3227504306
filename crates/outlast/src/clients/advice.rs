//! What outlast does for a client, in words.

use outlast_engine::profile::{Effect, Profile, Verdict, handed_off_after, keep_alive_for, verdict};
use outlast_engine::settings::{counted, show_duration};
use std::time::Duration;

/// What is said where nothing is known.
pub const UNKNOWN: &str = "unknown: run outlast doctor client";

/// What is offered for a client that makes a call again after its own timeout. Nothing of it is done unasked: a cancel
/// that is meant would take effect later.
pub const JOIN_REPEATS: &str = "join-repeats:10m";

/// What outlast does for calls of a client that a row is about, and what it offers.
pub fn what_happens(row: &Profile) -> String {
    if !row.is_certain() {
        return format!("nothing, not measured ({UNKNOWN})");
    }
    let offer = row.repeats.filter(|times| *times > 0).map(|times| {
        format!(
            "; makes a call again {}: --tool '*={JOIN_REPEATS}' joins them",
            counted(times as usize, "time")
        )
    });
    by_itself(row) + &offer.unwrap_or_default()
}

fn by_itself(row: &Profile) -> String {
    match verdict(std::slice::from_ref(row), row.token) {
        Verdict::Does(effect) => of_effect(effect),
        Verdict::Unknown | Verdict::Unclear => match (row.cap, row.watched) {
            (None, Some(watched)) => {
                format!("nothing needed: no limit was seen in {}", show_duration(watched))
            }
            (None, None) => "nothing".into(),
            (Some(_), _) if row.shared => "nothing, other programs call themselves the same".into(),
            (Some(_), _) => UNKNOWN.into(),
        },
    }
}

/// The same of an effect.
pub fn of_effect(effect: Effect) -> String {
    let hands_off =
        |cap: Duration| format!("answers are handed off after {}", show_duration(handed_off_after(cap)));
    match effect {
        Effect { cap, silence: Some(silence) } => {
            let helps = format!("progress helps: sent every {}", show_duration(keep_alive_for(silence)));
            cap.map_or(helps.clone(), |cap| format!("{helps}; {}", hands_off(cap)))
        }
        Effect { cap: Some(cap), silence: None } => hands_off(cap),
        Effect { cap: None, silence: None } => "nothing".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_said_in_words() {
        let says = |row: &str| what_happens(&Profile::of_table(row).expect("a row"));
        assert_eq!(says("a=cap:60s,progress:no,measured:1"), "answers are handed off after 55s");
        assert_eq!(says("a=cap:15s,progress:yes,token:yes,measured:1"), "progress helps: sent every 5s");
        assert_eq!(
            says("a=cap:5m,progress:yes,token:yes,total:10m,measured:1"),
            "progress helps: sent every 10s; answers are handed off after 9m55s"
        );
        assert_eq!(
            says("a=cap:60s,progress:no,repeats:3,measured:1"),
            "answers are handed off after 55s; makes a call again 3 times: --tool '*=join-repeats:10m' joins them"
        );
        assert_eq!(says("a=watched:10m,measured:1"), "nothing needed: no limit was seen in 10m");
        assert_eq!(
            says("a=cap:60s,progress:no"),
            "nothing, not measured (unknown: run outlast doctor client)"
        );
    }
}
