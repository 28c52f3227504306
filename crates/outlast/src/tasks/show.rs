//! Tasks in words, and in JSON.

use super::shelf::{Alive, OwnedBy};
use crate::observe::text::escape;
use outlast_engine::Wall;
use outlast_engine::record::{Answer, Body, Faces, Head, Question, Record};
use serde_json::{Value, json};
use std::fmt::Write;

/// The longest name of a server or a tool in a table.
const WIDE: usize = 32;

/// A line of the table.
#[derive(Debug)]
pub struct Row<'a> {
    pub head: &'a Head,
    pub name: &'a str,
    pub owner: OwnedBy,
}

/// All rows, with a heading.
pub fn table(rows: &[Row<'_>], now: Wall) -> String {
    let heading = ["TICKET", "SERVER", "TOOL", "STATE", "AGE", "CHANGED"].map(str::to_owned);
    let line = |row: &Row<'_>| {
        let head = row.head;
        [
            row.name.to_owned(),
            brief(server_name(&head.origin.server)),
            brief(what(head)),
            state(head, &row.owner),
            rough(now, head.created),
            format!("{} ago", rough(now, head.updated)),
        ]
    };
    let lines: Vec<_> = std::iter::once(heading).chain(rows.iter().map(line)).collect();
    crate::observe::table::table(&lines)
}

/// All that is known of one.
pub fn text(record: &Record, owner: &OwnedBy, now: Wall) -> String {
    let head = &record.head;
    let mut text = String::new();
    let mut line = |name: &str, value: String| {
        let _ = writeln!(text, "{name:<10} {}", escape(&value));
    };
    let at = |wall: Wall| format!("{} ({} ago)", wall.timestamp(), rough(now, wall));
    line("ticket", head.ticket.as_str().into());
    line("state", state(head, owner));
    line("server", head.origin.server.to_string());
    line("method", head.origin.method.to_string());
    if !head.origin.tool.is_empty() {
        line("tool", head.origin.tool.to_string());
    }
    line("whose", head.origin.principal.to_string());
    line("known as", faces(head.faces).join(", "));
    if let Some(key) = &head.origin.key {
        line("key", key.to_string());
    }
    line("made", at(head.created));
    line("changed", at(head.updated));
    line("expires", expiry(head, now));
    line("owner", owner_words(owner));
    line("request", format!("{} bytes", record.request.len()));
    line(
        "answer",
        match &record.answer {
            None => "none yet".into(),
            Some(Answer::Result(bytes)) => format!("{} bytes (result)", bytes.len()),
            Some(Answer::Error(bytes)) => format!("{} bytes (error)", bytes.len()),
        },
    );
    match Body::decode(&head.body) {
        Err(why) => line("more", why.to_string()),
        Ok(body) => {
            body.status_message.into_iter().for_each(|message| line("says", message));
            body.repeatable.into_iter().for_each(|why| line("repeatable", why));
            body.server_task.into_iter().for_each(|task| line("its task", task));
            body.questions.iter().for_each(|question| line("asks", asked(question)));
        }
    }
    text
}

/// A question that the client has not answered: what kind, and the words for the person where there are any.
fn asked(question: &Question) -> String {
    let request = read(question);
    let method = request["method"].as_str().unwrap_or_default();
    match request["params"]["message"].as_str() {
        Some(message) => format!("{method}: {message}"),
        None => method.to_owned(),
    }
}

fn read(question: &Question) -> Value {
    serde_json::from_slice(&question.request).unwrap_or_default()
}

/// All that is known of one, for programs; with the sizes where the whole record is there.
pub fn json(head: &Head, owner: &OwnedBy, now: Wall, record: Option<&Record>) -> Value {
    let body = Body::decode(&head.body).unwrap_or_default();
    let mut task = json!({
        "ticket": head.ticket.as_str(),
        "state": head.state.as_str(),
        "server": server_name(&head.origin.server),
        "serverIdentity": &*head.origin.server,
        "method": &*head.origin.method,
        "tool": Some(&*head.origin.tool).filter(|tool| !tool.is_empty()),
        "principal": &*head.origin.principal,
        "idempotencyKey": head.origin.key.as_deref(),
        "faces": faces(head.faces),
        "createdAt": head.created.timestamp(),
        "lastUpdatedAt": head.updated.timestamp(),
        "expiresAt": head.expires.map(Wall::timestamp),
        "ageMs": now.0.saturating_sub(head.created.0),
        "owner": {"pid": owner.pid, "alive": match owner.alive {
            Alive::Yes => Some(true),
            Alive::No => Some(false),
            Alive::Unknown => None,
        }},
        "revision": head.revision,
        "epoch": head.epoch,
        "statusMessage": body.status_message,
        "ttlMs": body.ttl_ms,
        "repeatable": body.repeatable,
        "serverTask": body.server_task,
        "questions": body.questions.iter().map(read).collect::<Vec<_>>(),
    });
    if let Some(record) = record {
        task["requestBytes"] = json!(record.request.len());
        task["answerBytes"] = json!(record.answer.as_ref().map(|answer| answer.bytes().len()));
    }
    task
}

/// A result with what it is the result of. Its bytes stay as they are.
pub fn result_json(record: &Record) -> Vec<u8> {
    let head = &record.head;
    let mut text =
        format!(r#"{{"ticket":"{}","state":"{}""#, head.ticket.as_str(), head.state.as_str()).into_bytes();
    if let Some(answer) = &record.answer {
        let name: &[u8] = match answer {
            Answer::Result(_) => b",\"result\":",
            Answer::Error(_) => b",\"error\":",
        };
        text.extend_from_slice(name);
        text.extend_from_slice(answer.bytes());
    }
    text.extend_from_slice(b"}\n");
    text
}

/// What is called.
pub fn what(head: &Head) -> &str {
    if head.origin.tool.is_empty() { &head.origin.method } else { &head.origin.tool }
}

fn state(head: &Head, owner: &OwnedBy) -> String {
    let orphan = head.state.is_open() && owner.alive == Alive::No;
    format!("{}{}", head.state.as_str(), if orphan { ", owner gone" } else { "" })
}

fn owner_words(owner: &OwnedBy) -> String {
    let alive = match owner.alive {
        Alive::Yes => "runs",
        Alive::No => "has ended",
        Alive::Unknown => "cannot be seen from here",
    };
    match owner.pid {
        Some(pid) => format!("process {pid}, which {alive}"),
        None => format!("a process that {alive}"),
    }
}

fn expiry(head: &Head, now: Wall) -> String {
    match head.expires {
        _ if head.state.is_open() => "not before it has ended".into(),
        None => "never".into(),
        Some(at) => format!("{} (in {})", at.timestamp(), rough(at, now)),
    }
}

fn faces(faces: Faces) -> Vec<&'static str> {
    let all = [
        (Faces::LEGACY_TASK, "task"),
        (Faces::MODERN_TASK, "modern task"),
        (Faces::RESUME, "resume token"),
        (Faces::HAND_OFF, "hand-off"),
    ];
    all.into_iter().filter(|(face, _)| faces.has(*face)).map(|(_, name)| name).collect()
}

/// The name for people in a server's identity.
fn server_name(identity: &str) -> &str {
    identity.rsplit_once('#').map_or(identity, |(name, _)| name)
}

fn brief(text: &str) -> String {
    let text = escape(text);
    if text.chars().count() <= WIDE {
        return text;
    }
    text.chars().take(WIDE - 1).chain(['…']).collect()
}

/// How much time lies between two moments, in one unit.
pub fn rough(later: Wall, earlier: Wall) -> String {
    match later.0.saturating_sub(earlier.0) / 1000 {
        seconds @ 0..120 => format!("{seconds}s"),
        seconds @ 120..7_200 => format!("{}m", seconds / 60),
        seconds @ 7_200..172_800 => format!("{}h", seconds / 3_600),
        seconds => format!("{}d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_shown_in_the_unit_that_tells_most() {
        let shown = |seconds: u64| rough(Wall(seconds * 1000 + 5), Wall(5));
        assert_eq!(shown(0), "0s");
        assert_eq!(shown(119), "119s");
        assert_eq!(shown(120), "2m");
        assert_eq!(shown(7_199), "119m");
        assert_eq!(shown(7_200), "2h");
        assert_eq!(shown(172_800), "2d");
        assert_eq!(rough(Wall(0), Wall(9)), "0s", "a clock that was set back");
    }

    #[test]
    fn an_identity_may_hold_the_sign_that_ends_its_name() {
        assert_eq!(server_name("c#-server#0011223344556677"), "c#-server");
        assert_eq!(server_name("plain"), "plain");
    }
}
