//! Decisions as lines: `>>` to a server, `<<` to a client, `!!` a note, `%%` a step, `..` all else.
//!
//! [`show`] tells everything, for scenarios and for people; [`gist`] nothing that a peer has said but the methods and
//! ids of its messages, for a file that holds no secrets. `happened` tells events, in the words that scenarios have for
//! most of them.

use crate::action::Action;
use crate::callback::Fate;
use crate::event::{Event, Line};
use crate::http::{Body, Head, Post, Response, Trouble};
use crate::id::ServerId;
use crate::json;
use crate::settings::{counted, show_duration};
use crate::step::{Step, What};
use crate::store::{Hint, Write};
use crate::wire::{Field, Message, Outgoing, Scanned, Shape, scan_message};
use bytes::Bytes;
use std::fmt::Write as _;

/// A decision in full.
pub fn show(action: &Action) -> String {
    let text = |message: &Outgoing| String::from_utf8_lossy(&message.to_vec()).into_owned();
    match action {
        Action::ToClient(_, message) => format!("<< {}", text(message)),
        Action::ToServer(server, message) => format!(">> {}{}", of(*server), text(message)),
        Action::Post(server, post) => {
            format!(">> {}post [{}] {}", of(*server), said_with(post), text(&post.message))
        }
        Action::Respond(exchange, response) => {
            let body = match &response.body {
                Body::Json(bytes) => format!(" {}", String::from_utf8_lossy(bytes)),
                Body::Empty | Body::Events => String::new(),
            };
            format!("<< {}: {}{body}", exchange.0, head(response))
        }
        Action::Write(exchange, bytes) => {
            let text = String::from_utf8_lossy(bytes).replace('\n', "|");
            format!("<< {}: {}", exchange.0, without_mark(&text))
        }
        Action::Step(step) => told(step),
        Action::Note(note) => format!("!! {}: {note}", format!("{:?}", note.level()).to_lowercase()),
        Action::Learn(seen) => {
            let cap = seen.cap.map_or_else(|| "one".into(), show_duration);
            format!(".. learn {} {} {}: {cap}", seen.name, seen.version, show_duration(seen.age))
        }
        Action::Store(number, _) => format!(".. store {number}"),
        Action::Reconnect(_, attempt) => format!(".. reconnect {}", attempt.0),
        Action::Abandon(_, attempt) => format!(".. abandon {}", attempt.0),
        Action::Stand(_) => ".. stand".into(),
        Action::Finish(exchange) => format!("<< {}: finish", exchange.0),
        Action::CallBack(callback) => {
            format!(".. call back {}: {} {}", callback.about.name, callback.id(), callback.about.body)
        }
        Action::CloseDoor => ".. close-door".into(),
        Action::NeedEntropy => ".. entropy".into(),
        Action::NeedIdentity => ".. identity".into(),
        Action::Load(number, _) => format!(".. load {number}"),
        Action::LetGo(server) => format!(".. let go of {}", server.0),
        Action::Start(server, run) => format!(".. {}start {}", of(*server), run.0),
        Action::CloseInput(server) => format!(".. {}close-input", of(*server)),
        Action::Terminate(server) => format!(".. {}terminate", of(*server)),
        Action::Kill(server) => format!(".. {}kill", of(*server)),
        Action::Sample(_) => ".. sample".into(),
        Action::Remember(_, memory) => {
            format!(".. remember {} and {} lists", memory.method.as_str(), memory.lists.len())
        }
        Action::Forget(_) => ".. forget".into(),
        Action::End { status, .. } => format!(".. end {status}"),
    }
}

/// What a message is posted with.
fn said_with(post: &Post) -> String {
    let headers = post.headers.iter().map(|(name, value)| format!("{name}: {value}"));
    let begins = if post.begins_session { "begins session, " } else { "" };
    begins.to_owned() + &headers.collect::<Vec<_>>().join(", ")
}

/// A decision without what peers say. `None` for a step: steps are told to whoever looks on, and nothing depends on
/// whether somebody does.
pub fn gist(action: &Action) -> Option<String> {
    let message = |message: &Outgoing| gist_of(message.to_vec());
    Some(match action {
        Action::ToClient(client, sent) => format!("<< client {}: {}", client.0, message(sent)),
        Action::ToServer(server, sent) => format!(">> {}{}", of(*server), message(sent)),
        Action::Post(server, post) => format!(">> {}post {}", of(*server), message(&post.message)),
        Action::Respond(exchange, response) => {
            let body = match &response.body {
                Body::Json(bytes) => format!(" {}", gist_of(bytes.to_vec())),
                Body::Empty | Body::Events => String::new(),
            };
            format!("<< {}: {}{body}", exchange.0, head(response))
        }
        Action::Write(exchange, bytes) => format!("<< {}: {}", exchange.0, gist_of_events(bytes)),
        Action::Step(_) => return None,
        Action::Note(note) => {
            format!("!! {} {}", format!("{:?}", note.level()).to_lowercase(), note.kind())
        }
        Action::Learn(_) => ".. learn".into(),
        Action::CallBack(callback) => format!(".. call back {}: {}", callback.about.name, callback.id()),
        Action::Store(number, writes) => {
            let words: Vec<&str> = writes.iter().map(written).collect();
            format!(".. store {number}: {}", words.join(", "))
        }
        // In these no peer says anything.
        Action::Reconnect(..)
        | Action::Abandon(..)
        | Action::Stand(_)
        | Action::Finish(_)
        | Action::CloseDoor
        | Action::NeedEntropy
        | Action::NeedIdentity
        | Action::Load(..)
        | Action::LetGo(_)
        | Action::Start(..)
        | Action::CloseInput(_)
        | Action::Terminate(_)
        | Action::Kill(_)
        | Action::Sample(_)
        | Action::Remember(..)
        | Action::Forget(_)
        | Action::End { .. } => show(action),
    })
}

/// Something that happened.
pub fn happened(event: &Event) -> String {
    match event {
        Event::FromClient(_, line) => format!("> {}", text(line)),
        Event::FromServer(server, _, line) => format!("< {}{}", of(*server), text(line)),
        Event::FromStream(server, _, attempt, line) => {
            format!("<~{} {}{}", attempt.on_wire(), of(*server), text(line))
        }
        Event::Posted(exchange, head, line) => {
            format!("post {} {}{}", exchange.0, came_with(head), text(line))
        }
        Event::Got(exchange, head) => format!("get {} {}", exchange.0, came_with(head)),
        Event::Deleted(exchange, head) => format!("delete {} {}", exchange.0, came_with(head)),
        Event::Begin => "begin".into(),
        Event::Opened(client, server) => format!("client {} is there, for server {}", client.0, server.0),
        Event::Entered(client) => format!("client {} is there", client.0),
        Event::Remembered(_, memories) => format!("remembered {}", counted(memories.len(), "handshake")),
        Event::ClientOversized(client, _) => format!("client-oversized, client {}", client.0),
        Event::ServerOversized(server, ..) => format!("server-oversized, server {}", server.0),
        Event::ClientEof(_) => "eof".into(),
        Event::ClientGone(_) => "gone".into(),
        Event::Congested(_, on) => format!("congested {}", if *on { "on" } else { "off" }),
        Event::Started(server, run) => format!("{}started {}", of(*server), run.0),
        Event::StartFailed(server, run, why) => format!("{}start-failed {}: {why}", of(*server), run.0),
        Event::Exited(server, run, exit) => format!("{}exited {}: {exit}", of(*server), run.0),
        Event::OutputClosed(server, run) => format!("{}output-closed {}", of(*server), run.0),
        Event::InputBroken(server, run, unsent) => {
            format!("{}input-broken {}, {} unsent", of(*server), run.0, counted(unsent.len(), "message"))
        }
        Event::Stderr(server, _, bytes) => format!("{}stderr, {}", of(*server), counted(bytes.len(), "byte")),
        Event::Sampled(server, sample) => {
            format!("{}sampled{}", of(*server), if sample.is_some() { "" } else { ": nothing" })
        }
        Event::HungUp(exchange) => format!("hang-up {}", exchange.0),
        Event::Stored(number, Ok(_)) => format!("stored {number}"),
        Event::Stored(number, Err(why)) => format!("not-stored {number}: {why}"),
        Event::StoreLost(why) => format!("store-lost: {why}"),
        Event::Loaded(number, Ok(_)) => format!("loaded {number}"),
        Event::Loaded(number, Err(why)) => format!("not-loaded {number}: {why}"),
        Event::Hinted(Hint::Mail) => "hint mail".into(),
        Event::Hinted(Hint::News) => "hint news".into(),
        Event::CalledBack { callback, attempts, delivery } => {
            format!("called back {callback}, {}: {delivery:?}", counted(attempts, "attempt"))
        }
        Event::DoorEmpty => "door empty".into(),
        Event::Entropy(_) => "entropy".into(),
        Event::Identity(_) => "identity".into(),
        Event::StreamEnded(server, _, attempt, end) => {
            format!("{}stream-ended {}: {}", of(*server), attempt.on_wire(), end.why)
        }
        Event::StandingEnded(server, _, end) => format!("{}standing-ended: {}", of(*server), end.why),
        Event::Trouble(server, _, attempt, trouble) => {
            let attempt = attempt.map(|attempt| format!(" {}", attempt.on_wire())).unwrap_or_default();
            format!("{}trouble{attempt}: {}", of(*server), in_words(trouble))
        }
        Event::Undelivered(server, _, message, why) => {
            format!("{}undelivered ({why}): {}", of(*server), String::from_utf8_lossy(&message.to_vec()))
        }
        Event::Warm => "warm".into(),
        Event::Reload(reload) => format!("reload: {}", counted(reload.servers.len(), "server")),
        Event::Measured(measured) => format!("measured: {}", counted(measured.len(), "tool")),
        Event::CancelCall(no, by) => format!("person cancels {}: {by}", no.0),
        Event::RestartServer(name) => format!("person restarts {name}"),
        Event::Slept(time) => format!("slept {}", show_duration(*time)),
        Event::Stop(signal) => format!("stop {signal}"),
        Event::Tick => "tick".into(),
    }
}

/// What was read.
fn text(line: &Line) -> String {
    let bytes = match line {
        Ok(Scanned::Message(message)) => return String::from_utf8_lossy(&message.bytes).into_owned(),
        Ok(Scanned::Batch(members)) => return format!("an array of {}", counted(members.len(), "message")),
        Err(refused) => &refused.bytes,
    };
    format!("no message: {}", String::from_utf8_lossy(bytes))
}

/// Who sent a request, and to where.
fn came_with(head: &Head) -> String {
    let place = head.server.as_deref().map(|server| format!("/{server} ")).unwrap_or_default();
    let session = if head.session.is_some() { "in a session " } else { "" };
    let last = head.last_event.as_deref().map(|last| format!("after {last} ")).unwrap_or_default();
    [place, session.into(), last].concat()
}

/// What went wrong with a post.
fn in_words(trouble: &Trouble) -> String {
    match trouble {
        Trouble::Unreachable(why) => format!("unreachable, {why}"),
        Trouble::Broken(why) => format!("broken, {why}"),
        Trouble::Status { status, .. } => format!("status {status}"),
        Trouble::NotMcp(why) => format!("not MCP, {why}"),
    }
}

/// Most runs have one server, which needs no name.
fn of(server: ServerId) -> String {
    if server == ServerId(0) { String::new() } else { format!("{}: ", server.0) }
}

/// What stands above the body of a response.
fn head(response: &Response) -> String {
    let mut text = response.status.to_string();
    if let Some(after) = response.retry_after {
        let _ = write!(text, " retry-after={after}");
    }
    if response.session.is_some() {
        text.push_str(" with a session");
    }
    if matches!(response.body, Body::Events) {
        text.push_str(" events");
    }
    text
}

/// The same text without the mark of an event's id.
fn without_mark(text: &str) -> String {
    let Some((before, rest)) = text.split_once("id: ") else { return text.into() };
    match rest.split_once('-') {
        Some((mark, rest)) if before.is_empty() && mark.len() == 32 => format!("id: {rest}"),
        _ => text.into(),
    }
}

/// What a write is.
pub fn written(write: &Write) -> &'static str {
    match write {
        Write::Create(_) => "create",
        Write::Change(change) => change.state.as_str(),
        Write::Remove(_) => "remove",
        Write::Claim { .. } => "claim",
        Write::Renew => "renew",
        Write::Post { .. } => "mailbox",
        Write::Collect => "collect",
        Write::Forward { .. } => "forward",
        Write::Hint(_) => "hint",
        Write::CollectForwarded => "collect all",
        Write::Append { .. } => "append",
        Write::Adopt(_) => "adopt",
        Write::Forget { .. } => "forget",
        Write::Session(_) => "session",
        Write::TakeSession { .. } => "take session",
        Write::EndSession(_) => "end session",
        Write::Calls(_) => "calls",
        Write::Show { .. } => "show",
        Write::Tell { .. } => "tell",
        Write::Measured(_) => "measured",
        Write::Hold(_) => "hold",
        Write::Decide { .. } => "decide",
        Write::AskAfter { .. } => "ask after",
        Write::CallBack(_) => "call back",
        Write::TakeCallbacks { .. } => "take callbacks",
        Write::SettleCallback { fate, .. } => match fate {
            Fate::Gone => "callback gone",
            Fate::Again(..) => "callback again",
            Fate::Parked(_) => "callback parked",
        },
        Write::Expire => "expire",
    }
}

/// A step as a line: `%% 1 sent 1/0`.
fn told(step: &Step) -> String {
    match step {
        Step::Server(step) => format!("%% {} {:?}", step.server, step.what),
        Step::Call(no, What::Began(began)) => {
            let tool = began.tool.as_deref().unwrap_or("-");
            format!(
                "%% {} began {} {tool} of `{}` for `{}`",
                no.0,
                began.method.as_str(),
                began.server,
                began.client
            )
        }
        Step::Call(no, What::Ended(ended)) => {
            let kind = ended.outcome.kind().map(|kind| format!(" {kind}")).unwrap_or_default();
            format!("%% {} ended {}{kind} after {}", no.0, ended.outcome.word(), show_duration(ended.took))
        }
        Step::Call(no, what) => format!("%% {} {}: {what}", no.0, what.word()),
    }
}

/// A message by its method and id.
fn gist_of(bytes: Vec<u8>) -> String {
    let Some(message) = scan_message(bytes.into()) else { return "no message".into() };
    let text = |field: Field| String::from_utf8_lossy(message.raw(field).unwrap_or_default()).into_owned();
    let method = || message.text(Field::Method).unwrap_or_default().into_owned();
    match message.shape {
        Shape::Request => format!("{} {}", method(), text(Field::Id)),
        Shape::Notification => [method(), text(Field::ParamsProgressToken)].join(" ").trim_end().to_owned(),
        Shape::Answer => match code(&message) {
            Some(code) => format!("error {code} to {}", text(Field::Id)),
            None => format!("result to {}", text(Field::Id)),
        },
    }
}

/// The code of an error; 0 if it has none.
fn code(message: &Message) -> Option<i64> {
    let code = json::member(message.raw(Field::Error)?, "code");
    Some(code.and_then(|code| std::str::from_utf8(code).ok()?.parse().ok()).unwrap_or_default())
}

/// The messages of a piece of a stream.
fn gist_of_events(bytes: &Bytes) -> String {
    let data = bytes.split(|byte| *byte == b'\n').filter_map(|line| line.strip_prefix(b"data: "));
    let messages: Vec<String> = data.map(|data| gist_of(data.to_vec())).collect();
    if messages.is_empty() { "no message".into() } else { messages.join(", ") }
}
