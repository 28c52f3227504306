//! How a setting's value is read, and what is said when it cannot be.

use super::{Kind, Rate, Setting, Signs, Value};
use crate::limits;
use crate::wire::Patch;
use std::time::Duration;

/// A value that cannot be taken: what is wrong, and the right form.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadValue(pub String);

fn bad<T>(text: impl Into<String>) -> Result<T, BadValue> {
    Err(BadValue(text.into()))
}

impl Setting {
    /// Reads a value. Not for [`Kind::Rules`], which `policy.rs` takes apart.
    pub fn parse(&self, text: &str) -> Result<Value, BadValue> {
        let text = text.trim();
        let named = |error: BadValue| BadValue(format!("{}: {error}", self.name));
        match self.kind {
            Kind::TimeOrOff if text == "off" => Ok(Value::Time(None)),
            Kind::Time | Kind::TimeOrOff => parse_duration(text)
                .and_then(|time| self.in_range(time))
                .map(|time| Value::Time(Some(time)))
                .map_err(named),
            Kind::Size => parse_size(text).map(Value::Size).map_err(named),
            Kind::Count => text.parse().map(Value::Count).map_err(|_| {
                BadValue(format!("{}: `{text}` is not a whole number; write {}", self.name, self.default))
            }),
            Kind::Rate if text == "off" => Ok(Value::Rate(None)),
            Kind::Rate => Rate::parse(text).map(|rate| Value::Rate(Some(rate))).map_err(named),
            Kind::Switch => match text {
                "true" => Ok(Value::Switch(true)),
                "false" => Ok(Value::Switch(false)),
                _ => bad(format!("{}: `{text}` is neither true nor false", self.name)),
            },
            Kind::Signs => parse_signs(text).map(Value::Signs).map_err(named),
            Kind::Choice(words) if !words.contains(&text) => {
                bad(format!("{}: `{text}` is not one of {}", self.name, words.join(", ")))
            }
            Kind::Path if text.is_empty() => bad(format!("{}: a path is missing", self.name)),
            Kind::Lines(_) if text.is_empty() => bad(format!("{}: a value is missing", self.name)),
            Kind::Choice(_) | Kind::Path | Kind::Rules | Kind::Lines(_) => Ok(Value::Text(text.to_owned())),
        }
    }

    fn in_range(&self, time: Duration) -> Result<Duration, BadValue> {
        if self.key == super::Key::KeepAlive && time < limits::KEEP_ALIVE_MIN {
            return bad("must be at least 50ms, or `off`");
        }
        Ok(time)
    }
}

const UNITS: [(&str, u64); 5] = [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];

/// Reads `500ms`, `30s`, `1h30m`. A bare number is refused: half the clients mean seconds by it
/// and half milliseconds.
pub fn parse_duration(text: &str) -> Result<Duration, BadValue> {
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return bad(format!("`{text}` has no unit; write `{text}s` or `{text}ms`"));
    }
    let wrong = || BadValue(format!("`{text}` is not a time; write 30s, 5m, 1h30m or 500ms"));
    let mut rest = text;
    let mut millis: u64 = 0;
    while !rest.is_empty() {
        let (number, after) = split_at_first(rest, |c| !c.is_ascii_digit());
        let (unit, after) = split_at_first(after, |c| c.is_ascii_digit());
        let number: u64 = number.parse().map_err(|_| wrong())?;
        let (_, factor) = UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(wrong)?;
        millis = number.checked_mul(*factor).and_then(|n| n.checked_add(millis)).ok_or_else(wrong)?;
        rest = after;
    }
    if millis == 0 {
        return if text.is_empty() { Err(wrong()) } else { bad("a time must be longer than zero") };
    }
    Ok(Duration::from_millis(millis))
}

fn split_at_first(text: &str, end: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(end).unwrap_or(text.len()))
}

/// How many there are: `1 line`, `2 lines`.
pub fn counted(count: impl std::fmt::Display, noun: &str) -> String {
    let count = count.to_string();
    let ending = if count == "1" { "" } else { "s" };
    format!("{count} {noun}{ending}")
}

/// Writes a time as [`parse_duration`] reads it: `90s` as `1m30s`.
pub fn show_duration(time: Duration) -> String {
    let mut millis = time.as_millis() as u64;
    if millis == 0 {
        return "0s".to_owned();
    }
    let mut text = String::with_capacity(16);
    for (unit, factor) in UNITS.iter().rev() {
        if millis >= *factor {
            // Ten thousand limits may fire at one moment, and each is shown several times.
            let digits = Patch::number(millis / factor, false);
            text.extend(digits.as_slice().iter().map(|digit| char::from(*digit)));
            text.push_str(unit);
            millis %= factor;
        }
    }
    text
}

const SIZES: [(&str, usize); 7] = [
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("B", 1),
];

fn parse_size(text: &str) -> Result<usize, BadValue> {
    let wrong = || BadValue(format!("`{text}` is not a size; write 10MiB or 512KiB"));
    let (number, unit) = split_at_first(text, |c| !c.is_ascii_digit());
    let (_, factor) = SIZES.iter().find(|(name, _)| *name == unit).ok_or_else(wrong)?;
    let number: usize = number.parse().map_err(|_| wrong())?;
    let size = number.checked_mul(*factor).ok_or_else(wrong)?;
    if !(1 << 10..=1 << 30).contains(&size) {
        return bad("must lie between 1KiB and 1GiB");
    }
    Ok(size)
}

fn parse_signs(text: &str) -> Result<Signs, BadValue> {
    match text {
        "none" => Ok(Signs::NONE),
        "call" => Ok(Signs::CALL),
        "server" => Ok(Signs { call: false, server: true }),
        "call+server" | "server+call" => Ok(Signs::BOTH),
        _ => bad(format!("`{text}` is not one of call, server, call+server, none")),
    }
}

/// The word that was probably meant: the nearest of these, if few letters differ.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let near = |known: &str| distance(known, word);
    let most = (word.len() / 4).clamp(1, 3);
    known.into_iter().min_by_key(|known| near(known)).filter(|known| near(known) <= most)
}

/// How many letters must be changed, added, left out or swapped with the next to get from one word to the other.
fn distance(a: &str, b: &str) -> usize {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut rows: Vec<Vec<usize>> = vec![(0..=b.len()).collect()];
    for (i, x) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, y) in b.iter().enumerate() {
            let change = rows[i][j] + usize::from(x != y);
            let swapped = i > 0 && j > 0 && a[i - 1] == *y && *x == b[j - 1];
            let swap = if swapped { rows[i - 1][j - 1] + 1 } else { usize::MAX };
            row.push(change.min(row[j] + 1).min(rows[i][j + 1] + 1).min(swap));
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::super::{Key, setting};
    use super::*;

    #[test]
    fn durations_need_a_unit() {
        let millis = |text| parse_duration(text).map(|time| time.as_millis());
        assert_eq!(millis("500ms"), Ok(500));
        assert_eq!(millis("30s"), Ok(30_000));
        assert_eq!(millis("1h30m"), Ok(5_400_000));
        assert_eq!(millis("2d"), Ok(172_800_000));
        assert_eq!(parse_duration("30").unwrap_err().to_string(), "`30` has no unit; write `30s` or `30ms`");
        for wrong in ["", "s", "5x", "5m5", "-5s", "1.5h", "0s", "99999999999999999999s", "5 s"] {
            assert!(parse_duration(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn durations_are_shown_as_they_are_read() {
        for text in ["500ms", "30s", "1m30s", "1h30m", "1d", "1d2h3m4s5ms"] {
            assert_eq!(show_duration(parse_duration(text).unwrap()), text);
        }
        assert_eq!(show_duration(Duration::ZERO), "0s");
    }

    #[test]
    fn sizes_have_bounds() {
        assert_eq!(parse_size("64MiB"), Ok(64 << 20));
        assert_eq!(parse_size("10MB"), Ok(10_000_000));
        assert_eq!(parse_size("2048B"), Ok(2048));
        for wrong in ["", "64", "64M", "1B", "2GiB", "99999999999999999999GiB", "99999999999GiB"] {
            assert!(parse_size(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_wrong_value_names_its_setting_and_the_right_form() {
        let says = |key, text| setting(key).parse(text).unwrap_err().to_string();
        assert_eq!(says(Key::Timeout, "30"), "timeout: `30` has no unit; write `30s` or `30ms`");
        assert_eq!(says(Key::Log, "loud"), "log: `loud` is not one of error, warn, info, debug");
        assert_eq!(says(Key::Signs, "cpu"), "signs: `cpu` is not one of call, server, call+server, none");
        assert_eq!(says(Key::KeepAlive, "1ms"), "keep-alive: must be at least 50ms, or `off`");
        assert_eq!(says(Key::TraceMessages, ""), "trace-messages: a path is missing");
        assert_eq!(says(Key::Retries, "two"), "retries: `two` is not a whole number; write 2");
        assert_eq!(says(Key::Trust, "yes"), "trust: `yes` is neither true nor false");
        assert!(says(Key::Drain, "off").starts_with("drain: `off` is not a time"));
        assert!(says(Key::MaxMessage, "5").starts_with("max-message: `5` is not a size"));
    }

    #[test]
    fn the_word_that_was_meant_is_found() {
        let known = ["install", "uninstall", "tasks", "keep", "demo", "demo-server"];
        for (word, meant) in [
            ("isntall", Some("install")),
            ("instal", Some("install")),
            ("task", Some("tasks")),
            ("kep", Some("keep")),
            ("npx", None),
            ("server.py", None),
            ("some-server", None),
            ("", None),
        ] {
            assert_eq!(nearest(word, known), meant, "{word}");
        }
    }
}
