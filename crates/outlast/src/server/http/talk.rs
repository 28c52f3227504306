//! What the tasks of a session do: post a message, read what comes back, stand by, say goodbye.

use super::Happening;
use super::gate::{Gate, Opener};
use super::head::{self, Content};
use super::remote::Remote;
use super::reply::{LINGER, Reply};
use super::session::{Inner, Of};
use super::words;
use crate::http1::fields::{self, Known};
use crate::server::sse::{Parsed, Parser};
use bytes::Bytes;
use http::Method;
use outlast_engine::event::Line;
use outlast_engine::http::{Post, Trouble};
use outlast_engine::id::AttemptId;
use outlast_engine::wire::{self, Field, Message, Oversized, Patch, Scanned, Shape};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

/// How long what comes next waits for the response to the standing stream. Some servers say nothing before
/// there is something to say.
const HEARD: Duration = Duration::from_millis(300);

/// How long a goodbye may take.
const FAREWELL: Duration = Duration::from_secs(1);

const FOR_A_POST: &[u8] =
    b"content-type: application/json\r\naccept: application/json, text/event-stream\r\n";
const FOR_A_STREAM: &[u8] = b"accept: text/event-stream\r\n";

/// Opens a connection for later.
pub async fn connect(inner: Arc<Inner>) {
    match inner.remote.open().await {
        Ok(()) => inner.tell(&mut Some(Happening::Connected).into_iter()),
        Err(why) => inner.fail(None, Trouble::Unreachable(why.into())),
    }
}

async fn pass(gate: Option<Gate>) {
    if let Some(gate) = gate {
        gate.pass().await;
    }
}

/// Posts a message and reads what comes back.
pub async fn post(inner: Arc<Inner>, post: Box<Post>, gate: Option<Gate>, opener: Option<Opener>) {
    pass(gate).await;
    let had_session = !post.begins_session && inner.has_session();
    let last =
        post.attempt.filter(|_| post.resumes).and_then(|attempt| inner.place(Of::Attempt(attempt)).last);
    let sent = inner.remote.send(Method::POST, Some(&post.message), post.harmless, |to| {
        to.extend_from_slice(FOR_A_POST);
        // What HTTP cannot carry is left out, and the server says so.
        post.headers.iter().for_each(|(name, value)| fields::write_any(to, name, value.as_bytes()));
        if !post.begins_session {
            inner.write_session(to);
        }
        write_last(last.as_deref(), to);
    });
    let sent = sent.await;
    if post.begins_session {
        let named = sent.as_ref().ok().filter(|reply| reply.is_success());
        inner.begin_session(named.and_then(|reply| head::session(&reply.head.fields)));
    }
    drop(opener);
    let (attempt, resumes) = (post.attempt, post.resumes);
    if let (true, Err(Trouble::Unreachable(why))) = (post.comes_back, &sent) {
        return inner.give_up(post.message, why.clone());
    }
    drop(post);
    let fail = |trouble| match resumes {
        true => inner.fail_for_now(attempt, with_session(trouble, had_session)),
        false => inner.fail(attempt, with_session(trouble, had_session)),
    };
    match sent {
        Err(trouble) => fail(trouble),
        Ok(reply) if reply.is_success() => answer(&inner, attempt, reply).await,
        Ok(mut reply) => {
            fail(reply.refusal().await);
            inner.remote.give_back(reply).await;
        }
    }
}

fn write_last(last: Option<&[u8]>, to: &mut Vec<u8>) {
    if let Some(last) = last {
        fields::write(to, Known::LastEventId.as_str(), last);
    }
}

fn with_session(mut trouble: Trouble, had: bool) -> Trouble {
    if let Trouble::Status { had_session, .. } = &mut trouble {
        *had_session = had;
    }
    trouble
}

/// Reads what came with a 2xx.
async fn answer(inner: &Inner, attempt: Option<AttemptId>, mut reply: Reply) {
    let Some(attempt) = attempt else {
        // A notification or an answer has been taken; there is nothing to read.
        return inner.remote.give_back(reply).await;
    };
    match reply.content() {
        Content::Events => stream(inner, Of::Attempt(attempt), reply).await,
        Content::Json => json(inner, attempt, reply).await,
        Content::Other => {
            let trouble = reply.not_mcp().await;
            inner.fail(Some(attempt), trouble);
            inner.remote.give_back(reply).await;
        }
    }
}

/// Reads an answer that comes in one piece.
async fn json(inner: &Inner, attempt: AttemptId, mut reply: Reply) {
    inner.room().await;
    let body = match reply.whole(inner.remote.max_message()).await {
        Ok(Some(body)) => body,
        Ok(None) => {
            inner.settled(attempt);
            let message = Oversized { id: Some(name_of(attempt)), answer: true };
            return inner.tell(&mut Some(Happening::Oversized(message)).into_iter());
        }
        Err(why) => return inner.fail(Some(attempt), words::broken(&why)),
    };
    let line = wire::one_line(body);
    inner.settled(attempt);
    if line.is_empty() {
        inner.fail(Some(attempt), Trouble::NotMcp("an empty answer".into()));
    } else {
        let line = wire::scan(line);
        let trouble = (!has_answer(&line, attempt)).then(|| {
            let why = Trouble::NotMcp("JSON that is not the answer to the request".into());
            Happening::Trouble(Some(attempt), why)
        });
        inner.tell(&mut Some(Happening::FromStream(attempt, line)).into_iter().chain(trouble));
    }
    inner.remote.give_back(reply).await;
}

/// Whether the answer to an attempt is in a line.
fn has_answer(line: &Line, attempt: AttemptId) -> bool {
    let answers = |message: &Message| {
        message.shape == Shape::Answer && message.raw(Field::Id).is_some_and(|id| is_id(id, attempt))
    };
    match line {
        Ok(Scanned::Message(message)) => answers(message),
        Ok(Scanned::Batch(members)) => members.iter().flatten().any(answers),
        Err(_) => false,
    }
}

/// What the engine calls an attempt, whatever number it has on the wire.
fn name_of(attempt: AttemptId) -> Bytes {
    Bytes::copy_from_slice(Patch::number(attempt.0, false).as_slice())
}

/// Whether a raw id is the attempt's: `17`, `"17"`, or `17.0` from languages without integers.
fn is_id(raw: &[u8], attempt: AttemptId) -> bool {
    let bare = raw.strip_prefix(b"\"").and_then(|rest| rest.strip_suffix(b"\"")).unwrap_or(raw);
    bare.strip_suffix(b".0").unwrap_or(bare) == Patch::number(attempt.on_wire(), false).as_slice()
}

/// Opens a stream (again), from the last event id that was seen on it.
pub async fn reopen(inner: Arc<Inner>, of: Of, gate: Option<Gate>, opener: Option<Opener>) {
    pass(gate).await;
    let last = inner.place(of).last;
    if last.is_none() && of != Of::Standing {
        return inner.stream_ended(of, false, None, "it has no event id to go on from".into());
    }
    let sent = inner.remote.send(Method::GET, None, true, |to| {
        to.extend_from_slice(FOR_A_STREAM);
        inner.write_session(to);
        inner.write_version(to);
        write_last(last.as_deref(), to);
    });
    match heard_first(sent, opener).await {
        Ok(reply) if reply.head.status == 200 && reply.content() == Content::Events => {
            stream(&inner, of, reply).await;
        }
        Ok(reply) => {
            let status = reply.head.status;
            let why = match reply.is_success() {
                true => "the answer is not an event stream".to_owned(),
                false => format!("refused with {}", words::of_status(status)),
            };
            inner.stream_ended(of, false, Some(status), why);
            inner.remote.give_back(reply).await;
        }
        Err(Trouble::Status { status, body, .. }) => {
            inner.stream_ended(of, false, Some(status), String::from_utf8_lossy(&body).into_owned());
        }
        Err(Trouble::Unreachable(why) | Trouble::Broken(why) | Trouble::NotMcp(why)) => {
            inner.stream_ended(of, false, None, why.into());
        }
    }
}

/// Waits for a response, and lets nobody overtake it for a while.
async fn heard_first<T>(sent: impl Future<Output = T>, opener: Option<Opener>) -> T {
    let mut sent = pin!(sent);
    if opener.is_some()
        && let Ok(heard) = tokio::time::timeout(HEARD, &mut sent).await
    {
        return heard;
    }
    drop(opener);
    sent.await
}

/// Reads a stream of events to its end.
async fn stream(inner: &Inner, of: Of, mut reply: Reply) {
    let mut events = Events {
        inner,
        of,
        parser: Parser::new(inner.remote.max_message()),
        found: Vec::new(),
        answered: false,
    };
    if let Err(why) = events.read_to_answer(&mut reply).await {
        inner.stream_ended(of, true, None, why);
        return inner.remote.give_back(reply).await;
    }
    // The server should end the stream now, and then its connection can be used again.
    if tokio::time::timeout(LINGER, events.read_to_end(&mut reply)).await.is_ok() {
        inner.remote.give_back(reply).await;
    }
}

/// A stream that is being read.
struct Events<'a> {
    inner: &'a Inner,
    of: Of,
    parser: Parser,
    /// What the part at hand held.
    found: Vec<Happening>,
    answered: bool,
}

impl Events<'_> {
    /// Reads until the answer to the attempt; the error says how the stream ended before it.
    async fn read_to_answer(&mut self, reply: &mut Reply) -> Result<(), String> {
        while !self.answered {
            self.inner.room().await;
            match reply.next().await {
                Ok([]) => return Err("the server ended the stream".into()),
                Ok(part) => self.take(part),
                Err(why) => return Err(words::of(&why)),
            }
        }
        Ok(())
    }

    async fn read_to_end(&mut self, reply: &mut Reply) {
        while let Ok(part @ [_, ..]) = reply.next().await {
            self.take(part);
        }
    }

    fn take(&mut self, part: &[u8]) {
        let Events { inner, of, parser, found, answered } = self;
        parser.feed(part, &mut |parsed| {
            let id = match parsed {
                Parsed::Event { data, id, name } => {
                    if name.is_none_or(|name| name.is_empty() || name == "message"[..]) {
                        let line = wire::scan(wire::one_line(data));
                        found.push(match of {
                            Of::Attempt(attempt) => {
                                *answered |= has_answer(&line, *attempt);
                                Happening::FromStream(*attempt, line)
                            }
                            Of::Standing => Happening::FromStanding(line),
                        });
                    }
                    id
                }
                Parsed::Oversized { mut message, id } => {
                    let is_ours = |attempt| message.id.as_ref().is_some_and(|id| is_id(id, attempt));
                    if let Of::Attempt(attempt) = *of
                        && message.answer
                        && is_ours(attempt)
                    {
                        *answered = true;
                        message.id = Some(name_of(attempt));
                    }
                    found.push(Happening::Oversized(message));
                    id
                }
                Parsed::Id(id) => Some(id),
                Parsed::Retry(time) => return inner.note_place(*of, |place| place.retry = Some(time)),
            };
            if let Some(id) = id {
                let last = Some(id).filter(|id| !id.is_empty() && fields::is_value(id));
                inner.note_place(*of, |place| place.last = last);
            }
        });
        if let (Of::Attempt(attempt), true) = (*of, *answered) {
            inner.settled(attempt);
        }
        if !found.is_empty() {
            inner.tell(&mut found.drain(..));
        }
    }
}

/// Ends the session at the server once nothing is in flight.
pub async fn farewell(inner: Arc<Inner>) {
    inner.quiet().await;
    if inner.has_session() {
        let _ = tokio::time::timeout(FAREWELL, delete(&inner, &inner.remote)).await;
    }
    inner.closed();
}

async fn delete(inner: &Inner, remote: &Remote) {
    let sent = remote.send(Method::DELETE, None, true, |to| {
        inner.write_session(to);
        inner.write_version(to);
    });
    if let Ok(reply) = sent.await {
        remote.give_back(reply).await;
    }
}
