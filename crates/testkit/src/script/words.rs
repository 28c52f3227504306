//! What the words of a scenario mean, where they are more than one word.

use bytes::Bytes;
use outlast_engine::callback::Delivery;
use outlast_engine::event::{Exit, StartFailure};
use outlast_engine::http::{Head, StreamEnd, Trouble};
use outlast_engine::profile::Sighting;
use outlast_engine::settings::{Glob, Setting, parse_duration};
use outlast_engine::{ClientCap, ClientRule, Event, Expose, Rights};

/// `NAME servers=GLOB,… tools=GLOB,…`.
pub(super) fn rights(text: &str) -> (Box<str>, Rights) {
    let mut words = text.split(' ');
    let name = words.next().unwrap_or_default().into();
    let mut rights = Rights { source: format!("[tokens.{name}]").into(), ..Rights::default() };
    for word in words {
        let (of, value) = word.split_once('=').expect(text);
        let globs = Some(value.split(',').map(|glob| Glob::new(glob).expect(text)).collect());
        match of {
            "servers" => rights.servers = globs,
            "tools" => rights.tools = globs,
            bound => {
                let setting = Setting::named(bound).expect(text);
                rights.bounds.take(setting.key, setting.parse(value).expect(text));
            }
        }
    }
    (name, rights)
}

pub(super) fn expose(text: &str) -> Expose {
    match text {
        "on-demand" => Expose::OnDemand,
        "plain-names" => Expose::PlainNames,
        _ => Expose::Names,
    }
}

pub(super) fn client_rule(text: &str) -> ClientRule {
    let mut words = text.split(' ');
    let glob = Glob::new(words.next().expect(text)).expect(text);
    let source = format!("[clients.\"{glob}\"]").into();
    let mut rule =
        ClientRule { glob, cap: None, hand_off: None, servers: None, expose: None, callback: None, source };
    for (key, value) in words.map(|word| word.split_once('=').expect(text)) {
        match key {
            "client-cap" => rule.cap = Some(parse_duration(value).map_or(ClientCap::Off, ClientCap::After)),
            "hand-off" => rule.hand_off = Some(value == "true"),
            "callback" => rule.callback = Some(value.into()),
            "servers" => rule.servers = Some(vec![Glob::new(value).expect(text)]),
            _ => rule.expose = Some(expose(value)),
        }
    }
    rule
}

/// `NUMBER ATTEMPTS done`, `NUMBER ATTEMPTS unwanted WHY`, `NUMBER ATTEMPTS failed [after=TIME] WHY`.
pub(super) fn called_back(text: &str) -> Event {
    let words: Vec<&str> = text.splitn(4, ' ').collect();
    let [callback, attempts, what, rest @ ..] = &words[..] else { panic!("{text}") };
    let why = rest.first().copied().unwrap_or_default();
    let delivery = match *what {
        "done" => Delivery::Done,
        "unwanted" => Delivery::Unwanted(why.into()),
        _ => {
            let after = why.strip_prefix("after=").and_then(|rest| rest.split_once(' '));
            let (after, why) = after.map_or((None, why), |(after, why)| (parse_duration(after).ok(), why));
            Delivery::Failed { why: why.into(), retry_after: after }
        }
    };
    let (callback, attempts) = (callback.parse().expect(text), attempts.parse().expect(text));
    Event::CalledBack { callback, attempts, delivery }
}

/// `NAME VERSION AGE`.
pub(super) fn sighting(text: &str) -> Sighting {
    let words: Vec<&str> = text.split(' ').collect();
    let [name, version, age] = words[..] else { panic!("{text}") };
    Sighting { name: name.into(), version: version.into(), age: parse_duration(age).expect(text), cap: None }
}

/// `server=NAME session=1 version=V principal=P method=M name=N last=STREAM-NUMBER param-X=V accept=json traceparent=T
/// tracestate=S`, then the body.
pub(super) fn head(text: &str) -> (Head, &str) {
    let body = text.find(['{', '[']).unwrap_or(text.len());
    let (words, body) = text.split_at(body);
    let mut head = Head { takes_json: true, takes_events: true, ..Head::default() };
    for word in words.split_whitespace() {
        let (key, value) = word.split_once('=').expect(word);
        let text = || Some(value.into());
        match key {
            "server" => head.server = text(),
            "session" => head.session = Some(session_name(value)),
            "version" => head.version = text(),
            "principal" => head.principal = text(),
            "method" => head.method = text(),
            "name" => head.name = text(),
            "last" => head.last_event = Some(event_id(head.session.as_deref(), value)),
            "traceparent" => head.trace.get_or_insert_default().parent = value.into(),
            "tracestate" => head.trace.get_or_insert_default().state = value.into(),
            "accept" => (head.takes_json, head.takes_events) = (value == "json", value == "events"),
            _ => head.params.push((key.strip_prefix("param-").expect(key).into(), value.into())),
        }
    }
    (head, body)
}

/// A session by the order in which it got its name; anything else as it stands.
fn session_name(text: &str) -> Box<str> {
    text.parse::<u8>().map_or_else(|_| text.into(), |number| format!("{number:02x}").repeat(16).into())
}

/// `STREAM-NUMBER`, or `SESSION:STREAM-NUMBER` for an event that another session wrote: with the mark, which is
/// made of the same bytes as the session's name.
fn event_id(session: Option<&str>, text: &str) -> Box<str> {
    match text.split_once(':') {
        Some((session, rest)) => format!("{}-{rest}", session_name(session)).into(),
        None => format!("{}-{text}", session.unwrap_or_default()).into(),
    }
}

/// `unreachable WHY`, `broken WHY`, `not-mcp WHY`, `status N [after=TIME] [session] BODY`.
pub(super) fn trouble(text: &str) -> Trouble {
    let (kind, rest) = text.split_once(' ').unwrap_or((text, ""));
    match kind {
        "unreachable" => Trouble::Unreachable(rest.into()),
        "broken" => Trouble::Broken(rest.into()),
        "not-mcp" => Trouble::NotMcp(rest.into()),
        _ => {
            let body = rest.find('{').unwrap_or(rest.len());
            let (words, body) = rest.split_at(body);
            let mut words = words.split_whitespace();
            let status = words.next().and_then(|word| word.parse().ok()).expect(text);
            let (mut retry_after, mut had_session) = (None, false);
            for word in words {
                match word.strip_prefix("after=") {
                    Some(time) => retry_after = parse_duration(time).ok(),
                    None => had_session = word == "session",
                }
            }
            Trouble::Status {
                status,
                retry_after,
                had_session,
                body: Bytes::copy_from_slice(body.as_bytes()),
            }
        }
    }
}

/// `resumable`, `unopened`, `retry=TIME`, `status=N`, in any order. What has a status was not opened either.
pub(super) fn stream_end(text: &str) -> StreamEnd {
    let mut end =
        StreamEnd { resumable: false, retry: None, opened: true, status: None, why: "it ended".into() };
    for word in text.split_whitespace() {
        match word.split_once('=') {
            Some(("retry", time)) => end.retry = parse_duration(time).ok(),
            Some(("status", status)) => (end.status, end.opened) = (status.parse().ok(), false),
            _ if word == "unopened" => end.opened = false,
            _ => end.resumable = word == "resumable",
        }
    }
    end
}

pub(super) fn exit(text: &str) -> Exit {
    match text.strip_prefix("signal ") {
        Some(signal) => Exit::Signal(signal.parse().expect(text)),
        None => Exit::Code(text.parse().expect(text)),
    }
}

pub(super) fn start_failure(text: &str) -> StartFailure {
    match text {
        "not-found" => StartFailure::NotFound,
        "not-executable" => StartFailure::NotExecutable,
        errno => StartFailure::Refused(errno.parse().expect(text)),
    }
}
