//! What a recording does not hold.
//!
//! A line is JSON with messages as texts inside. All of it is walked as text, so that everything else stays as it is:
//! numbers, order, what stands twice. Replaced are
//! - in every text: 32 hexadecimal digits or more, of which our tickets and the ids of sessions are made. They are made
//!   of random bytes, 16 at a time, so each 32 digits are replaced for themselves, and so are those of the random bytes;
//! - in messages: the values of keys that say so ([`redact::is_hidden`]), tasks of servers, texts that look like
//!   credentials; and what is long is cut.
//!
//! What a process writes that is no JSON has no keys that would tell its secrets: it becomes `x`, letter by letter.

use bytes::Bytes;
use outlast_engine::event::Line;
use outlast_engine::http::{Head, Trouble};
use outlast_engine::redact;
use outlast_engine::settings::Glob;
use outlast_engine::wire::{Refused, scan_tolerant};
use outlast_engine::{Event, hex};
use ring::hmac;
use std::borrow::Cow;

/// Digits of a name of ours, at least; and of what stands for one.
const DIGITS: usize = 32;

/// Bytes of a text of a peer that are recorded. The rest is cut off.
const LONGEST: usize = 1 << 10;

/// Replaces secrets, the same one by the same text.
pub(super) struct Redactor {
    key: hmac::Key,
    named: Vec<Glob>,
}

impl std::fmt::Debug for Redactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Redactor(…)")
    }
}

/// Whose text it is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Whose {
    /// The frame around messages.
    Ours,
    /// A message, or a part of one.
    Peers,
}

impl Redactor {
    /// With a key that nobody else will ever have. Keys of values are `named` by a person, besides those that say so
    /// themselves.
    pub(super) fn new(named: Vec<Glob>) -> Redactor {
        let key: [u8; 32] = crate::random::bytes();
        Redactor { key: hmac::Key::new(hmac::HMAC_SHA256, &key), named }
    }

    /// A line without its secrets.
    pub(super) fn redact(&self, line: &str) -> String {
        self.json(line, Whose::Ours)
    }

    fn json(&self, text: &str, whose: Whose) -> String {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((before, quoted)) = split_at_quote(rest) {
            out.push_str(before);
            let (token, after) = quoted.split_at(length_of_text(quoted));
            let Some(value) = value_of_key(after) else {
                out.push_str(&self.quoted(token, whose));
                rest = after;
                continue;
            };
            out.push_str(&self.quoted(token, Whose::Ours));
            out.push_str(&after[..after.len() - value.len()]);
            rest = value;
            if whose == Whose::Peers && self.hides(token) {
                let (hidden, after) = value.split_at(length_of_value(value));
                out.push_str(&self.hidden(hidden));
                rest = after;
            }
        }
        out + rest
    }

    fn hides(&self, key: &str) -> bool {
        let key = serde_json::from_str::<String>(key).unwrap_or_else(|_| key.trim_matches('"').to_owned());
        // A server may call its tasks what it likes.
        key == "taskId" || redact::is_hidden(&key, &self.named)
    }

    /// The value of a key that hides it.
    fn hidden(&self, value: &str) -> String {
        let inner = value.strip_prefix('"').map(|inner| inner.strip_suffix('"').unwrap_or(inner));
        match inner {
            Some(digits) if digits.len() >= DIGITS && is_hex(digits) => {
                format!("\"{}\"", self.digits(digits))
            }
            Some("") => value.into(),
            Some(secret) => format!("\"{}\"", self.digest(secret)),
            // A switch is no secret, and what is a number or a text would show how it is made.
            None if matches!(value.trim_end(), "true" | "false" | "null") => value.into(),
            None => "\"***\"".into(),
        }
    }

    /// A text with its quotes. What nothing is replaced in stays as it is written.
    fn quoted<'a>(&self, token: &'a str, whose: Whose) -> Cow<'a, str> {
        let Ok(text) = serde_json::from_str::<Cow<'_, str>>(token) else {
            // It does not end, or no strict parser takes it.
            return self.without_digits(token);
        };
        match self.text(&text, whose) {
            Cow::Owned(other) if other != text => serde_json::Value::String(other).to_string().into(),
            _ => token.into(),
        }
    }

    fn text<'a>(&self, text: &'a str, whose: Whose) -> Cow<'a, str> {
        if text.trim_start().starts_with(['{', '[']) {
            return self.json(text, Whose::Peers).into();
        }
        if text.contains("data: ") {
            return text
                .split_inclusive('\n')
                .map(|line| self.line_of_stream(line))
                .collect::<String>()
                .into();
        }
        if whose == Whose::Peers && redact::is_credential(text) {
            return self.digest(text).into();
        }
        if whose == Whose::Peers && text.len() > LONGEST {
            let kept = &text[..text.floor_char_boundary(LONGEST)];
            return format!("{}… ({} bytes)", self.without_digits(kept), text.len()).into();
        }
        self.without_digits(text)
    }

    /// A line of an event stream.
    fn line_of_stream<'a>(&self, line: &'a str) -> Cow<'a, str> {
        match line.strip_prefix("data: ") {
            Some(message) => format!("data: {}", self.json(message, Whose::Peers)).into(),
            None => self.without_digits(line),
        }
    }

    /// A text without runs of digits that could be a name of ours.
    fn without_digits<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let runs = || text.as_bytes().chunk_by(|a, b| a.is_ascii_hexdigit() == b.is_ascii_hexdigit());
        let is_name = |run: &[u8]| run.len() >= DIGITS && run.iter().all(u8::is_ascii_hexdigit);
        if !runs().any(is_name) {
            return text.into();
        }
        let mut at = 0;
        let pieces = runs().map(|run| {
            let piece = &text[at..at + run.len()];
            at += run.len();
            if is_name(run) { self.digits(piece).into() } else { Cow::Borrowed(piece) }
        });
        pieces.collect::<String>().into()
    }

    /// As many digits, which say nothing.
    fn digits(&self, digits: &str) -> String {
        let chunks = digits.as_bytes().chunks(DIGITS);
        chunks.map(|chunk| self.digest(&String::from_utf8_lossy(chunk))[..chunk.len()].to_owned()).collect()
    }

    fn digest(&self, secret: &str) -> String {
        hex::encode(&hmac::sign(&self.key, secret.as_bytes()).as_ref()[..DIGITS / 2])
    }
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// What stands before the next text, and what begins with it.
fn split_at_quote(json: &str) -> Option<(&str, &str)> {
    memchr::memchr(b'"', json.as_bytes()).map(|at| json.split_at(at))
}

/// How long the text is that this begins with, with its quotes.
fn length_of_text(quoted: &str) -> usize {
    let bytes = quoted.as_bytes();
    let mut at = 1;
    while let Some(next) = bytes.get(at..).and_then(|rest| memchr::memchr2(b'"', b'\\', rest)) {
        at += next;
        match bytes[at] {
            b'"' => return at + 1,
            // What is escaped ends nothing. It is one byte, or the first one of a character.
            _ => at += 2,
        }
    }
    quoted.len()
}

/// What follows a key and its colon; `None` if that was no key.
fn value_of_key(after: &str) -> Option<&str> {
    Some(after.trim_start().strip_prefix(':')?.trim_start())
}

/// How long the value is that this begins with.
fn length_of_value(value: &str) -> usize {
    let (mut depth, mut at) = (0u32, 0);
    while let Some(byte) = value.as_bytes().get(at) {
        match byte {
            b'"' => at += length_of_text(&value[at..]),
            b'{' | b'[' => (depth, at) = (depth + 1, at + 1),
            b'}' | b']' | b',' if depth == 0 => return at,
            b'}' | b']' => (depth, at) = (depth - 1, at + 1),
            _ => at += 1,
        }
        if depth == 0 && matches!(byte, b'"' | b'}' | b']') {
            return at.min(value.len());
        }
    }
    value.len()
}

/// An event without what has no keys that would tell its secrets. `None`: it may be shown as it is.
pub(super) fn masked(event: &Event, named: &[Glob]) -> Option<Event> {
    Some(match event {
        Event::Stderr(server, run, bytes) => Event::Stderr(*server, *run, mask(bytes)),
        Event::FromClient(client, line) => Event::FromClient(*client, masked_line(line)?),
        Event::FromServer(server, run, line) => Event::FromServer(*server, *run, masked_line(line)?),
        Event::FromStream(server, run, attempt, line) => {
            Event::FromStream(*server, *run, *attempt, masked_line(line)?)
        }
        Event::Posted(exchange, head, line) => {
            let (masked, other) = (masked_head(head, named), masked_line(line));
            if masked.is_none() && other.is_none() {
                return None;
            }
            let line = other.unwrap_or_else(|| line.clone());
            Event::Posted(*exchange, masked.unwrap_or_else(|| head.clone()), line)
        }
        Event::Got(exchange, head) => Event::Got(*exchange, masked_head(head, named)?),
        Event::Deleted(exchange, head) => Event::Deleted(*exchange, masked_head(head, named)?),
        Event::Trouble(server, run, attempt, Trouble::Status { status, retry_after, had_session, body })
            if scan_tolerant(body).is_none() =>
        {
            let (status, retry_after, had_session) = (*status, *retry_after, *had_session);
            let body = mask(body);
            Event::Trouble(
                *server,
                *run,
                *attempt,
                Trouble::Status { status, retry_after, had_session, body },
            )
        }
        _ => return None,
    })
}

/// A line that no parser takes. One that a tolerant one takes has keys.
fn masked_line(line: &Line) -> Option<Line> {
    let Err(refused) = line else { return None };
    let has_keys = || {
        refused.bytes.trim_ascii_start().starts_with(b"{")
            || refused.bytes.trim_ascii_start().starts_with(b"[")
    };
    let is_json = || serde_json::from_slice::<serde::de::IgnoredAny>(&refused.bytes).is_ok();
    if (has_keys() && is_json()) || scan_tolerant(&refused.bytes).is_some() {
        return None;
    }
    Some(Err(Refused { bytes: mask(&refused.bytes), ..refused.clone() }))
}

/// Headers that mirror arguments.
fn masked_head(head: &Head, named: &[Glob]) -> Option<Box<Head>> {
    let hides = |name: &str| redact::is_hidden(name, named);
    if !head.params.iter().any(|(name, _)| hides(name)) {
        return None;
    }
    let mut masked = Box::new(head.clone());
    let hidden = masked.params.iter_mut().filter(|(name, _)| hides(name));
    hidden.for_each(|(_, value)| *value = "***".into());
    Some(masked)
}

/// As many bytes in as many words and lines.
fn mask(bytes: &[u8]) -> Bytes {
    bytes.iter().map(|byte| if byte.is_ascii_graphic() || !byte.is_ascii() { b'x' } else { *byte }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use outlast_engine::id::{ClientId, Run, ServerId};
    use outlast_engine::record::Ticket;
    use outlast_engine::recording::{Entry, Recorder};
    use outlast_engine::{Now, wire};

    fn redactor() -> Redactor {
        Redactor::new(vec![Glob::new("iban*").unwrap()])
    }

    /// What is recorded of a message.
    fn recorded(redactor: &Redactor, message: &str) -> String {
        let line = wire::scan(Bytes::copy_from_slice(message.as_bytes()));
        let event = Event::FromClient(ClientId(0), line);
        let event = masked(&event, &redactor.named).unwrap_or(event);
        let line = redactor.redact(&Recorder::default().event(Now::default(), &event));
        match Entry::read(line.trim_end()).unwrap() {
            Entry::Event(_, Event::FromClient(_, Ok(wire::Scanned::Message(message)))) => {
                String::from_utf8(message.bytes.to_vec()).unwrap()
            }
            Entry::Event(_, Event::FromClient(_, Err(refused))) => {
                String::from_utf8_lossy(&refused.bytes).into_owned()
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_is_no_secret_stays_byte_for_byte() {
        for message in [
            r#"{"jsonrpc":"2.0","id":12345678901234567890123,"method":"x","params":{"b":1.0, "a":[ ],"B":"\u00e9\/"}}"#,
            r#"{ "id" : "a-b", "result" : {"text":"{\"nested\": [1.50, \"x\"]}","tokens":5,"progressToken":"t"} }"#,
            r#"{"id":1,"method":"tools/call","params":{"name":"é🎈","_meta":{"progressToken":1e2}}}"#,
        ] {
            assert_eq!(recorded(&redactor(), message), message);
        }
    }

    #[test]
    fn values_of_secret_keys_are_gone_wherever_they_are() {
        let message = r#"{"id":1,"method":"x","params":{"password":"S1","list":[{"api-key" : ["S2",{"a":"S3"}],"n":1}],
            "iban":"S4","text":"{\"token\":\"S5\",\"seen\":1}","pin":{"secret":4711},"on":{"auth":true},"h":"Bearer S6"}}"#;
        let shown = recorded(&redactor(), message);
        assert!((1..=6).all(|number| !shown.contains(&format!("S{number}"))), "{shown}");
        assert!(!shown.contains("4711") && shown.contains(r#""auth":true"#), "{shown}");
        assert!(shown.contains(r#"\"seen\":1"#) && shown.contains(r#""n":1"#), "{shown}");
    }

    #[test]
    fn the_same_secret_is_the_same_text_and_another_key_makes_another() {
        let one = redactor();
        let says = |redactor: &Redactor, secret: &str| {
            recorded(redactor, &format!(r#"{{"id":1,"method":"x","params":{{"resumeToken":"{secret}"}}}}"#))
        };
        assert_eq!(says(&one, "a.b"), says(&one, "a.b"));
        assert_ne!(says(&one, "a.b"), says(&one, "a.c"));
        assert_ne!(says(&one, "a.b"), says(&redactor(), "a.b"));
    }

    /// Tickets, sessions and marks are made of random bytes, which are an event themselves.
    #[test]
    fn names_are_made_of_the_random_bytes_that_stand_in_the_recording() {
        let redactor = redactor();
        let mut entropy = [0; 32];
        (0..32).for_each(|at| entropy[at] = 7 * at as u8);
        let line = redactor.redact(&Recorder::default().event(Now::default(), &Event::Entropy(entropy)));
        let Entry::Event(_, Event::Entropy(other)) = Entry::read(line.trim_end()).unwrap() else {
            panic!("{line}")
        };
        assert_ne!(other, entropy);
        for part in [&entropy[..], &entropy[..16], &entropy[16..]] {
            let name = Ticket::of(part);
            let shown = recorded(&redactor, &format!(r#"{{"id":"{}-7","method":"x"}}"#, name.as_str()));
            let range = if part.len() == 16 && part[0] != 0 { 16..32 } else { 0..part.len() };
            let expected = Ticket::of(&other[range]);
            assert_eq!(shown, format!(r#"{{"id":"{}-7","method":"x"}}"#, expected.as_str()));
        }
    }

    #[test]
    fn digits_that_are_no_name_stay_and_longer_ones_go_to_the_last() {
        let redactor = redactor();
        let short = "f".repeat(31);
        assert_eq!(redactor.without_digits(&short), short);
        let long = format!("é{}g", "0123456789abcdefABCDEF00".repeat(3));
        let other = redactor.without_digits(&long);
        assert_eq!(other.len(), long.len());
        assert!(other.starts_with('é') && other.ends_with('g'));
        let kept = other.bytes().zip(long.bytes()).filter(|(a, b)| a == b).count();
        assert!(kept < 20, "{other}");
    }

    #[test]
    fn what_is_no_json_becomes_letters() {
        assert_eq!(recorded(&redactor(), "started with hunter2!"), "xxxxxxx xxxx xxxxxxxx");
        assert_eq!(recorded(&redactor(), r#"{"password":"hunter2"#), "xxxxxxxxxxxxxxxxxxxx");
        let event = Event::Stderr(ServerId(0), Run(0), Bytes::from_static(b"a hunter2\nb\n"));
        let Some(Event::Stderr(_, _, bytes)) = masked(&event, &[]) else { panic!() };
        assert_eq!(bytes, &b"x xxxxxxx\nx\n"[..]);
    }

    #[test]
    fn headers_that_mirror_arguments_are_masked() {
        let head = Head {
            params: vec![("Api-Key".into(), "hunter2".into()), ("Region".into(), "eu".into())],
            ..Head::default()
        };
        let masked = masked_head(&head, &[]).unwrap();
        assert_eq!(masked.params, [("Api-Key".into(), "***".into()), ("Region".into(), "eu".into())]);
        assert_eq!(masked_head(&Head::default(), &[]), None);
    }

    #[test]
    fn long_texts_are_cut() {
        let text = "é".repeat(5000);
        let shown = recorded(&redactor(), &format!(r#"{{"id":1,"result":{{"text":"{text}"}}}}"#));
        assert!(shown.len() < LONGEST + 100 && shown.contains("… (10000 bytes)"), "{shown}");
    }

    /// Whatever it is given, also twice.
    #[test]
    fn odd_texts_do_no_harm() {
        let redactor = redactor();
        for text in [
            "",
            "\"",
            "\"\\",
            "{\"a\":",
            "{\"token\":",
            "{\"token\":{\"a\":[",
            "{\"token\":\"é\\",
            "{\"token\"é:1}",
            "[[{\"auth\":[1,2]},3]]",
        ] {
            for whose in [Whose::Ours, Whose::Peers] {
                let once = redactor.json(text, whose);
                redactor.json(&once, whose);
                redactor.text(&once, whose);
            }
        }
        assert_eq!(redactor.json(r#"{"auth":[1,2],"b":3}"#, Whose::Peers), r#"{"auth":"***","b":3}"#);
    }
}
