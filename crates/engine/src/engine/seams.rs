//! The two seams: what a request becomes on its way to a server, and an answer on its way back.
//!
//! Everything that a client asks of a server passes the first, and everything that answers it the second. They replace
//! ids and progress tokens and leave every other byte as it is. Whoever joins the eras translates here.

use crate::calls::Call;
use crate::id::{AttemptId, JsonId, own_id};
use crate::method::Method;
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

/// What differs in an answer on its way to the client: it is the client's own id again.
#[inline]
pub(super) fn toward_client(message: &Message, call: &Call) -> Option<Edit> {
    let span = message.envelope.get(Field::Id)?;
    Some(Edit::replace(span, call.request.id.patch()))
}
