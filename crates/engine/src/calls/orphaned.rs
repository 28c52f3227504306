//! A call that an earlier process of ours left at its server, and how it is found there.
//!
//! | row | state | event | becomes | what happens |
//! |---|---|---|---|---|
//! | `a_call_is_found_again_by_its_servers_task` | orphaned, with a task | its server is ready | followed | the task is asked for; the call is not sent |
//! | `a_call_is_found_again_by_its_servers_token` | orphaned, with a token | its server is ready | sent | resumed under the number that it has there |
//! | `what_the_server_has_lost_is_made_again_if_that_is_safe` | followed, sent | unknown there, repeatable | new | begun anew |
//! | `what_the_server_has_lost_fails_if_repeating_may_do_harm` | followed, sent | unknown there | settled | error `server-gone`, with the reason |
//! | `a_repeatable_call_without_a_name_is_made_again` | orphaned, repeatable | its server is ready | new | begun anew |
//! | `a_call_that_nothing_can_be_done_for_fails_at_once` | orphaned, neither | claimed | settled | error `server-gone` |
//!
//! Each row has a test of the same name, in `tests/engine/recovery.rs`.

use crate::error::json_text;
use crate::record::Body;
use crate::wire::Message;

/// What is known of such a call, until its server has said something else of it.
#[derive(Debug)]
pub(crate) struct Orphaned {
    /// Where it is.
    pub(crate) place: Place,
    /// What it is made again with, if that is safe.
    pub(crate) again: Option<Box<Message>>,
    /// Its server has been asked for it.
    pub(crate) asked: bool,
}

/// Under which name a server knows a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Its task, as raw JSON.
    Task(Box<[u8]>),
    /// A resume token, and the number of the attempt that it belongs to.
    Token(Box<str>, u64),
}

impl Place {
    /// What the record of a call says. A token is of use only where connections come and go.
    pub(crate) fn of(body: &Body, remote: bool) -> Option<Place> {
        if let Some(task) = &body.server_task {
            return Some(Place::Task(json_text(task).into()));
        }
        let token = body.server_token.as_deref().zip(body.server_attempt).filter(|_| remote);
        token.map(|(token, attempt)| Place::Token(token.into(), attempt))
    }
}
