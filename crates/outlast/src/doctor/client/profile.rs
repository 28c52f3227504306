//! From what a client did to what that says about it. Pure: a record in, text out.
//!
//! What was not measured is `unknown`, with what would measure it; nothing is guessed from the name.

use super::record::{Call, Elicited, Fate, Probe, Record};
use crate::doctor::{TASKS, show};
use outlast_engine::settings::counted;
use serde_json::Value;
use std::fmt::Write;
use std::time::Duration;

/// How much longer than the cap a call with progress must live before we believe in a reset.
const MARGIN: Duration = Duration::from_secs(1);

/// How soon after it gave a call up a client makes the same call again, if it is the client that repeats it.
const AT_ONCE: Duration = Duration::from_secs(2);

/// The keep-alive that is used if nobody says otherwise.
const KEEP_ALIVE: Duration = Duration::from_secs(10);

/// When a silent call is given up.
#[derive(Debug, PartialEq)]
pub enum Cap {
    /// It was cancelled then.
    Cancelled(Duration, String),
    /// Another call came then, and no answer arrived.
    AtMost(Duration),
    /// The connection was closed then, by the client or by a person.
    Closed(Duration),
    /// An answer arrived that late.
    MoreThan(Duration),
    /// And why.
    Unknown(String),
}

impl Cap {
    pub fn of(record: &Record) -> Cap {
        let cancelled = |call: &Call| match &call.fate {
            Fate::Cancelled(after, reason) => Some(Cap::Cancelled(*after, reason.clone())),
            _ => None,
        };
        // A cancel is certain, whatever else was seen; of the rest the latest counts.
        let silent = || record.of(Probe::Silence).rev();
        silent().find_map(cancelled).or_else(|| silent().find_map(Cap::from_silence)).unwrap_or_else(|| {
            Cap::Unknown(match silent().next().map(|call| &call.fate) {
                None => "probe_silence was not called".to_owned(),
                Some(Fate::Answered(after)) => {
                    format!("answered after {}, but no receipt came back", show(*after))
                }
                Some(_) => "probe_silence still runs".to_owned(),
            })
        })
    }

    fn from_silence(call: &Call) -> Option<Cap> {
        match (&call.fate, call.overtaken) {
            (Fate::Answered(after), _) if call.received => Some(Cap::MoreThan(*after)),
            (_, Some(after)) => Some(Cap::AtMost(after)),
            (Fate::Closed(after), _) => Some(Cap::Closed(*after)),
            _ => None,
        }
    }

    /// A time after which the client has certainly given up.
    pub fn given_up_after(&self) -> Option<Duration> {
        match self {
            Cap::Cancelled(after, _) | Cap::AtMost(after) => Some(*after),
            Cap::Closed(_) | Cap::MoreThan(_) | Cap::Unknown(_) => None,
        }
    }

    fn finding(&self) -> Finding {
        let seconds = |time: &Duration| format!("{:.1}s", time.as_secs_f64());
        match self {
            Cap::Cancelled(after, reason) => {
                Finding::new(seconds(after), format!("a silent call was cancelled then, reason: {reason:?}"))
            }
            Cap::AtMost(after) => {
                Finding::new(format!("<={}", seconds(after)), "the next call came then, without a cancel")
            }
            Cap::Closed(after) => {
                Finding::unknown(format!("the connection was closed after {} of silence", show(*after)))
            }
            Cap::MoreThan(after) => Finding::new(
                format!(">{}", seconds(after)),
                format!(
                    "a silent call was still heard; probe_silence with more seconds than {:.0} looks further",
                    after.as_secs_f64()
                ),
            ),
            Cap::Unknown(why) => Finding::unknown(why.clone()),
        }
    }
}

/// Yes, no, or not known.
type Verdict = Option<bool>;

/// A value, and how it came about.
struct Finding {
    value: String,
    why: String,
}

impl Finding {
    fn new(value: impl Into<String>, why: impl Into<String>) -> Finding {
        Finding { value: value.into(), why: why.into() }
    }

    fn unknown(why: impl Into<String>) -> Finding {
        Finding::new("unknown", why)
    }

    fn verdict(verdict: Verdict, why: impl Into<String>) -> Finding {
        Finding::new(verdict.map_or("unknown", |yes| if yes { "yes" } else { "no" }), why)
    }
}

/// The profile and the advice.
pub fn text(record: &Record) -> String {
    let cap = Cap::of(record);
    let (resets, resets_why) = resets(record, &cap);
    let (token, token_why) = token(record);
    let (cancels, cancels_why) = cancels(record);
    let unsaid = || "unknown".to_owned();
    let rows = [
        ("name", Finding::new(record.name.clone().unwrap_or_else(unsaid), "as it calls itself")),
        ("version", Finding::new(record.version.clone().unwrap_or_else(unsaid), "as it calls itself")),
        ("era", era(record)),
        ("cap", cap.finding()),
        ("resets-on-progress", Finding::verdict(resets, resets_why)),
        ("sends-token", Finding::verdict(token, token_why)),
        ("cancels", Finding::verdict(cancels, cancels_why)),
        ("tasks", tasks(record)),
        ("elicitation", elicitation(record)),
        ("sampling", declared(record, "/sampling")),
    ];
    let mut text = "[client]\n".to_owned();
    for (key, Finding { value, why }) in rows {
        let _ = writeln!(text, "{:<40} # {why}", format!("{key} = {value:?}"));
    }
    let advice = [
        keep_alive_advice(&cap, token, resets),
        usefulness(token, resets),
        hand_off_advice(&cap, token, resets, record.of(Probe::Progress).next_back().and_then(lifetime)),
    ];
    let _ = write!(text, "\n{}\n", advice.join("\n"));
    if let Some(advice) = repeats_advice(record) {
        let _ = writeln!(text, "{advice}");
    }
    text
}

fn era(record: &Record) -> Finding {
    match (&record.legacy, &record.modern) {
        (None, None) => Finding::unknown("neither `initialize` nor a modern request came"),
        (Some(version), None) => Finding::new("legacy", format!("`initialize` with {version}")),
        (None, Some(version)) => Finding::new("modern", format!("requests of {version}")),
        (Some(old), Some(new)) => Finding::new("both", format!("`initialize` with {old}, requests of {new}")),
    }
}

fn token(record: &Record) -> (Verdict, String) {
    let all = record.calls.len();
    let tokens: Vec<&Value> = record.calls.iter().filter_map(|call| call.token.as_ref()).collect();
    match tokens.last() {
        None if all == 0 => (None, "no probe was called".to_owned()),
        None => (Some(false), format!("in none of {}", counted(all, "call"))),
        Some(token) => {
            let kind = if token.is_string() { "a string" } else { "a number" };
            (Some(true), format!("{kind}, in {} of {}", tokens.len(), counted(all, "call")))
        }
    }
}

fn cancels(record: &Record) -> (Verdict, String) {
    let fate = |wanted: fn(&Fate) -> bool| record.calls.iter().any(|call| wanted(&call.fate));
    if fate(|fate| matches!(fate, Fate::Cancelled(..))) {
        return (Some(true), "notifications/cancelled came".to_owned());
    }
    if record.calls.iter().any(|call| call.overtaken.is_some() && !call.received) {
        return (Some(false), "it went on to another call without a cancel".to_owned());
    }
    if fate(|fate| matches!(fate, Fate::Closed(_))) {
        return (None, "it closed the connection during a call".to_owned());
    }
    (None, "it gave no call up".to_owned())
}

/// Whether a call with progress outlived what a silent one did not.
fn resets(record: &Record, cap: &Cap) -> (Verdict, String) {
    let Some(call) = record.of(Probe::Progress).next_back() else {
        return (None, "probe_progress was not called".to_owned());
    };
    if call.token.is_none() {
        return (None, "no token came with probe_progress, so no progress could be sent".to_owned());
    }
    let Some(given_up) = cap.given_up_after() else {
        return (None, "no silent call was given up, so there is nothing to compare".to_owned());
    };
    let needed = given_up + MARGIN.max(given_up / 10);
    let Some((lived, cut)) = lifetime(call) else {
        return (None, "probe_progress still runs".to_owned());
    };
    // Who cancels when it gives up, and did not cancel, has not given up.
    let alive = cut || call.received || matches!(cap, Cap::Cancelled(..));
    let reports = call.reports;
    match (lived >= needed, cut, alive) {
        (true, true, _) => {
            (Some(true), format!("given up after {}, with {reports} reports: a total cap", show(lived)))
        }
        (true, false, true) => (Some(true), format!("a call with {reports} reports lived {}", show(lived))),
        (true, false, false) => (None, "probe_progress answered, but no receipt came back".to_owned()),
        (false, true, _) => {
            (Some(false), format!("given up after {} all the same, with {reports} reports", show(lived)))
        }
        (false, false, _) => (None, format!("probe_progress must take longer than {}", show(needed))),
    }
}

/// How old a call got, and whether the client ended it.
fn lifetime(call: &Call) -> Option<(Duration, bool)> {
    match (&call.fate, call.overtaken) {
        (Fate::Cancelled(after, _) | Fate::Closed(after), _) => Some((*after, true)),
        (_, Some(after)) if !call.received => Some((after, true)),
        (Fate::Answered(after), _) => Some((*after, false)),
        (Fate::Running, _) => None,
    }
}

fn declared(record: &Record, pointer: &str) -> Finding {
    match (&record.capabilities, record.declared(pointer)) {
        (None, _) => Finding::unknown("it declared no capabilities"),
        (Some(_), Some(_)) => Finding::new("yes", "declared"),
        (Some(_), None) => Finding::new("no", "not declared"),
    }
}

fn tasks(record: &Record) -> Finding {
    let extension = format!("/extensions/{}", TASKS.replace('/', "~1"));
    match (record.declared("/tasks"), record.declared(&extension)) {
        (None, Some(_)) => Finding::new("yes", "declared, as in 2026-07-28"),
        (Some(_), _) => Finding::new("yes", "declared, as in 2025-11-25"),
        (None, None) => declared(record, "/tasks"),
    }
}

fn elicitation(record: &Record) -> Finding {
    let declared = declared(record, "/elicitation");
    let tried = match &record.elicited {
        Elicited::NotTried => "probe_elicitation was not called".to_owned(),
        Elicited::NotDeclared => return declared,
        Elicited::Asked(_) => "asked, no answer yet".to_owned(),
        Elicited::Answered(action, after) => format!("answered `{action}` after {}", show(*after)),
        Elicited::Refused(why, after) => format!("refused after {}: {why}", show(*after)),
        Elicited::Silence(after) => format!("no answer within {}", show(*after)),
    };
    Finding::new(declared.value, format!("{}; {tried}", declared.why))
}

fn keep_alive_advice(cap: &Cap, token: Verdict, resets: Verdict) -> String {
    if token == Some(false) {
        return "Keep-alive: it sends no token, so no --keep-alive changes anything.".to_owned();
    }
    if resets == Some(false) {
        return "Keep-alive: it takes no notice of progress, so no --keep-alive changes anything.".to_owned();
    }
    if let Cap::Unknown(_) = cap {
        return "Keep-alive: stay with the default (10s) until its cap is known.".to_owned();
    }
    match cap.given_up_after().map(third) {
        Some(third) if third < KEEP_ALIVE => {
            format!("Keep-alive: use --keep-alive {}, a third of its cap.", time(third))
        }
        Some(_) => "Keep-alive: the default (10s) is below a third of its cap.".to_owned(),
        None => "Keep-alive: stay with the default (10s); no cap was found.".to_owned(),
    }
}

/// A client that makes a call again right after it gave it up has its tool run twice.
fn repeats_advice(record: &Record) -> Option<String> {
    let silent: Vec<&Call> = record.of(Probe::Silence).collect();
    let again = |pair: &&[&Call]| {
        let given_up = match (&pair[0].fate, pair[0].overtaken) {
            (Fate::Cancelled(after, _), _) => Some(*after),
            (Fate::Running, overtaken) => overtaken,
            _ => None,
        };
        let pause = given_up.map(|after| pair[1].began.since(pair[0].began).saturating_sub(after));
        pair[0].planned == pair[1].planned && pause.is_some_and(|pause| pause <= AT_ONCE)
    };
    let times = silent.windows(2).filter(again).count();
    (times > 0).then(|| {
        format!(
            "Repeats: it made a silent call again {} right after giving it up; with --tool 'NAME={}' such a repeat joins the first call.",
            counted(times, "time"),
            crate::clients::advice::JOIN_REPEATS
        )
    })
}

fn usefulness(token: Verdict, resets: Verdict) -> String {
    let verdict = match (token, resets) {
        (Some(false), _) => "No: the client sends no progress token, so it cannot be sent progress.",
        (_, Some(false)) => "No: progress does not reset its limit.",
        (Some(true), Some(true)) => "Yes: progress resets its limit.",
        (Some(true), None) => {
            "Perhaps: it sends a token; whether progress resets its limit was not measured."
        }
        (None, _) => "Unknown: run the probes first.",
    };
    format!("Can keep-alive help? {verdict}")
}

fn hand_off_advice(cap: &Cap, token: Verdict, resets: Verdict, lived: Option<(Duration, bool)>) -> String {
    if let Cap::Unknown(why) = cap {
        return format!("Hand-off: unknown whether it is needed, {why}.");
    }
    let Some(given_up) = cap.given_up_after() else {
        return "Hand-off: not needed, no cap was found.".to_owned();
    };
    if let (Some(true), Some((age, cut))) = (resets, lived) {
        return beyond_progress(age, cut);
    }
    let cap = time(written(given_up));
    let remedy = format!("with --client-cap {cap} slow calls are answered with a ticket before its limit");
    if token == Some(false) || resets == Some(false) {
        format!("Hand-off: raise its own limit; or {remedy}.")
    } else {
        format!("Hand-off: if progress does not reset its limit, {remedy}.")
    }
}

/// Where progress extends the limit: a total that it does not extend, or how far nobody has looked.
fn beyond_progress(age: Duration, cut: bool) -> String {
    let age = time(written(age));
    if cut {
        return format!("Hand-off: --client-cap {age} has calls answered with a ticket before that total.");
    }
    format!("Hand-off: not needed for calls of up to {age}; probe_progress with more seconds looks further.")
}

/// Rounded down to something that people write.
fn written(cap: Duration) -> Duration {
    let millis = cap.as_millis() as u64;
    let step = if millis >= 10_000 { 1000 } else { 100 };
    Duration::from_millis((millis / step * step).max(100))
}

/// A third, rounded down to something that people write.
fn third(cap: Duration) -> Duration {
    let millis = (cap / 3).as_millis() as u64;
    let step = if millis >= 1000 { 1000 } else { 50 };
    Duration::from_millis((millis / step * step).max(50))
}

fn time(time: Duration) -> String {
    outlast_engine::settings::show_duration(time)
}

#[cfg(test)]
mod tests {
    use super::*;
    use outlast_engine::Mono;
    use serde_json::json;

    const fn secs(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn call(probe: Probe, fate: Fate) -> Call {
        Call {
            id: json!(1),
            probe,
            began: Mono::default(),
            planned: secs(90),
            token: Some(json!(1)),
            reports: 60,
            fate,
            overtaken: None,
            receipt: "r".into(),
            received: false,
        }
    }

    fn cancelled(after: u64) -> Fate {
        Fate::Cancelled(secs(after), "timeout".into())
    }

    fn profile(calls: Vec<Call>) -> String {
        text(&Record { calls, ..Record::default() })
    }

    fn holds(text: &str, parts: &[&str]) {
        for part in parts {
            assert!(text.contains(part), "`{part}` is not in:\n{text}");
        }
    }

    #[test]
    fn nothing_measured_is_unknown_and_says_what_is_missing() {
        let text = profile(vec![]);
        holds(&text, &["cap = \"unknown\"", "probe_silence was not called", "sends-token = \"unknown\""]);
        holds(
            &text,
            &[
                "cancels = \"unknown\"",
                "elicitation = \"unknown\"",
                "Unknown: run the probes first.",
                "until its cap is known",
                "Hand-off: unknown whether it is needed, probe_silence was not called.",
            ],
        );
    }

    #[test]
    fn a_client_that_progress_keeps_patient() {
        let mut progress = call(Probe::Progress, Fate::Answered(secs(95)));
        progress.received = true;
        let text = profile(vec![call(Probe::Silence, cancelled(60)), progress]);
        holds(&text, &["cap = \"60.0s\"", "resets-on-progress = \"yes\"", "cancels = \"yes\""]);
        holds(
            &text,
            &[
                "the default (10s) is below a third",
                "Yes: progress resets its limit.",
                "Hand-off: not needed",
            ],
        );
    }

    /// Qwen Code waits 5 minutes in silence and 10 in all: what was not tried is not promised.
    #[test]
    fn a_total_that_progress_does_not_extend_wants_a_hand_off() {
        let mut tried = call(Probe::Progress, Fate::Answered(secs(455)));
        tried.received = true;
        let text = profile(vec![call(Probe::Silence, cancelled(300)), tried]);
        holds(&text, &["Hand-off: not needed for calls of up to 7m35s", "with more seconds looks further"]);
        let text = profile(vec![call(Probe::Silence, cancelled(300)), call(Probe::Progress, cancelled(600))]);
        holds(&text, &["resets-on-progress = \"yes\"", "a total cap", "Hand-off: --client-cap 10m has"]);
    }

    #[test]
    fn a_client_that_ignores_progress() {
        let text = profile(vec![call(Probe::Silence, cancelled(15)), call(Probe::Progress, cancelled(15))]);
        holds(
            &text,
            &[
                "resets-on-progress = \"no\"",
                "no --keep-alive changes",
                "No: progress does not reset",
                "Hand-off: raise its own limit; or with --client-cap 15s",
            ],
        );
    }

    #[test]
    fn a_short_cap_wants_a_shorter_interval() {
        let text = profile(vec![call(Probe::Silence, cancelled(15)), call(Probe::Progress, cancelled(40))]);
        holds(&text, &["use --keep-alive 5s, a third"]);
    }

    #[test]
    fn a_total_cap_beyond_the_reset_is_told() {
        let text = profile(vec![call(Probe::Silence, cancelled(60)), call(Probe::Progress, cancelled(80))]);
        holds(&text, &["resets-on-progress = \"yes\"", "given up after 80.0 s", "a total cap"]);
    }

    #[test]
    fn a_client_that_makes_a_call_again_is_offered_to_join_it() {
        let later = |after: u64, seconds: u64| Call {
            began: Mono::default() + secs(after),
            planned: secs(seconds),
            ..call(Probe::Silence, cancelled(60))
        };
        let repeats = "Repeats: it made a silent call again 2 times right after giving it up; with --tool 'NAME=join-repeats:10m'";
        holds(&profile(vec![later(0, 90), later(60, 90), later(121, 90)]), &[repeats]);
        for other in [later(60, 30), later(70, 90)] {
            assert!(!profile(vec![later(0, 90), other]).contains("Repeats"), "a model may call again, too");
        }
    }

    #[test]
    fn a_client_that_goes_on_without_a_cancel() {
        let mut silence = call(Probe::Silence, Fate::Running);
        silence.overtaken = Some(secs(62));
        silence.token = None;
        let text = profile(vec![silence]);
        holds(
            &text,
            &[
                "cap = \"<=62.0s\"",
                "cancels = \"no\"",
                "sends-token = \"no\"",
                "with --client-cap 1m2s slow calls",
            ],
        );
    }

    #[test]
    fn an_answer_counts_only_with_its_receipt() {
        let mut silence = call(Probe::Silence, Fate::Answered(secs(90)));
        holds(&profile(vec![silence.clone()]), &["cap = \"unknown\"", "no receipt came back"]);
        silence.received = true;
        holds(&profile(vec![silence]), &["cap = \">90.0s\"", "more seconds than 90"]);
    }

    #[test]
    fn progress_that_ended_before_the_cap_proves_nothing() {
        let silence = call(Probe::Silence, cancelled(60));
        let text = profile(vec![silence, call(Probe::Progress, Fate::Answered(secs(20)))]);
        holds(&text, &["resets-on-progress = \"unknown\"", "must take longer than 66.0 s"]);
    }

    #[test]
    fn a_third_is_something_that_people_write() {
        assert_eq!(third(secs(60)), secs(20));
        assert_eq!(third(secs(10)), secs(3));
        assert_eq!(third(secs(1)), Duration::from_millis(300));
        assert_eq!(third(Duration::from_millis(20)), Duration::from_millis(50));
    }
}
