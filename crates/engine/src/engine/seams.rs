//! The two seams: what a request becomes on its way to a server, and an answer on its way back.
//!
//! Everything that a client asks of a server passes the first, and everything that answers it the second. They replace
//! ids and progress tokens, and of a call that is recorded its place in its trace, and leave every other byte as it is.
//! Whoever joins the eras translates here.

use crate::calls::Call;
use crate::http::TraceFields;
use crate::id::{AttemptId, JsonId, own_id};
use crate::json;
use crate::limits;
use crate::method::Method;
use crate::trace::Context;
use crate::wire::{Edit, Field, Message, Patch};

/// What differs in a request on its way to the server: its id and its progress token.
pub(super) fn toward_server(message: &Message, text: bool, method: &Method, attempt: AttemptId) -> Vec<Edit> {
    let mut edits = Vec::with_capacity(2);
    if let Some(span) = message.envelope.get(Field::Id) {
        edits.push(Edit::replace(span, own_id(attempt.0, text)));
    }
    edits.extend(token_edit(message, method, attempt));
    edits
}

/// Our token in place of the client's; or a new one, so that progress reaches us as a sign of life.
fn token_edit(message: &Message, method: &Method, attempt: AttemptId) -> Option<Edit> {
    if let Some(span) = message.envelope.get(Field::MetaProgressToken) {
        JsonId::token(span.of(&message.bytes))?;
        return Some(Edit::replace(span, own_id(attempt.0, false)));
    }
    if !method.takes_progress() || !message.is_object(Field::Params) {
        return None;
    }
    if let Some(span) = message.envelope.get(Field::ParamsMeta) {
        if !message.is_object(Field::ParamsMeta) {
            return None;
        }
        let after: &[u8] = if has_members(message, Field::ParamsMeta) { b"," } else { b"" };
        let patch = Patch::number_within(b"\"progressToken\":", attempt.0, after);
        return Some(Edit::insert(span.start() + 1, patch));
    }
    let span = message.envelope.get(Field::Params)?;
    let after: &[u8] = if has_members(message, Field::Params) { b"}," } else { b"}" };
    let patch = Patch::number_within(b"\"_meta\":{\"progressToken\":", attempt.0, after);
    Some(Edit::insert(span.start() + 1, patch))
}

/// Whether a comma must follow what is inserted at the front of an object.
fn has_members(message: &Message, object: Field) -> bool {
    let inner = message.raw(object).and_then(|raw| raw.strip_prefix(b"{")).unwrap_or_default();
    inner.trim_ascii_start().first() != Some(&b'}')
}

/// What the server of an attempt is told of its trace.
#[derive(Debug)]
pub(super) struct Mark {
    /// The attempt's own span.
    pub(super) context: Context,
    /// `tracestate`; may be empty.
    pub(super) state: Box<str>,
}

/// The same for an attempt that is recorded. What it stands below is said in `_meta`; what stands there and cannot be
/// read is left as it is.
#[cold]
pub(super) fn toward_server_marked(
    message: &Message,
    text: bool,
    method: &Method,
    attempt: AttemptId,
    mark: &Mark,
) -> Vec<Edit> {
    let mut edits = toward_server(message, text, method, attempt);
    let meta = message.raw(Field::ParamsMeta).unwrap_or_default();
    if let Some(said) = json::member(meta, PARENT) {
        if text_of(said).is_some_and(|said| Context::parse(&said).is_some()) {
            let own = Patch::of(&[b"\"", mark.context.to_string().as_bytes(), b"\""]);
            edits.push(Edit::range(json::range_in(&message.bytes, said), own));
        }
        return edits;
    }
    let mut added = format!("\"{PARENT}\":\"{}\"", mark.context).into_bytes();
    if !mark.state.is_empty() && json::member(meta, STATE).is_none() {
        let state = serde_json::to_string(&mark.state).unwrap_or_default();
        added.extend_from_slice(format!(",\"{STATE}\":{state}").as_bytes());
    }
    if !message.has(Field::MetaProgressToken) && token_edit(message, method, attempt).is_some() {
        // Both would be put in at the same place.
        edits.pop();
        added.extend_from_slice(b",\"progressToken\":");
        added.extend_from_slice(Patch::number(attempt.0, false).as_slice());
    }
    edits.extend(added_to_meta(message, &added));
    edits
}

/// Puts members at the front of `_meta`, which is made if it is not there.
fn added_to_meta(message: &Message, members: &[u8]) -> Option<Edit> {
    let whole = &message.bytes;
    match message.raw(Field::ParamsMeta) {
        Some(meta) => json::insert_member(whole, meta, members),
        None => {
            let meta = [b"\"_meta\":{", members, b"}"].concat();
            json::insert_member(whole, message.raw(Field::Params)?, &meta)
        }
    }
}

const PARENT: &str = "traceparent";
const STATE: &str = "tracestate";

/// To which trace `_meta` says that its request belongs.
pub(super) fn trace_in(meta: &[u8]) -> Option<TraceFields> {
    let text = |name| text_of(json::member(meta, name)?);
    Some(TraceFields { parent: text(PARENT)?, state: text(STATE).unwrap_or_default() })
}

fn text_of(raw: &[u8]) -> Option<Box<str>> {
    let fits = !reached!(TRACE, raw.len() > limits::TRACE);
    serde_json::from_slice(raw).ok().filter(|_| fits)
}

/// What differs in an answer on its way to the client: it is the client's own id again.
#[inline]
pub(super) fn toward_client(message: &Message, call: &Call) -> Option<Edit> {
    let span = message.envelope.get(Field::Id)?;
    Some(Edit::replace(span, call.request.id.patch()))
}
