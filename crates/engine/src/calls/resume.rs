//! Calls that are resumed after a lost connection (SEP-975): what is known of one, at either end.
//!
//! At our door a call that can be resumed is a call with a ticket (`tickets/task.rs`), and whoever waits for it is
//! the one waiter of that ticket. Its request is the first *generation* of the call; every `requests/resume`
//! is the next one, under the same id. What the server says goes to the generation that waits. Over HTTP
//! that is its stream, which keeps every event until a `Last-Event-ID` confirms it; a resume takes what is
//! left over to its own stream and ends the earlier one. On a line nothing is confirmed, so the newest
//! progress is enough there.
//!
//! | row | state | event | becomes | what happens |
//! |---|---|---|---|---|
//! | `a_policy_comes_first_and_after_it_is_stored` | new | stored | attached | the policy to the client, then the attempt to the server |
//! | `a_call_that_cannot_be_stored_is_an_ordinary_one` | new | not stored | – | no policy |
//! | `an_answer_is_stored_before_it_is_given` | attached | answer | ended | stored, then given |
//! | `a_lost_connection_leaves_the_call_running` | attached | client hangs up | alone | what comes is kept |
//! | `a_resume_brings_what_was_missed_then_what_comes_then_the_answer` | alone | resume | attached | undelivered messages first |
//! | `the_last_of_two_resumes_wins` | attached | resume | attached | the earlier stream ends unanswered |
//! | `on_a_line_the_earlier_resume_is_superseded` | attached | resume | attached | the earlier request gets error `superseded` |
//! | `nobody_came_back_in_time` | alone | `resume-wait` is over | ended | cancelled at the server, freed here |
//! | `both_questions_reset_the_wait` | alone | status or resume | alone, attached | `resume-wait` starts again |
//! | `a_cancel_ends_a_call_and_its_token` | any | client cancels | ended | the server is told, the token is void |
//! | `a_finished_answer_waits_to_be_fetched` | ended | resume | ended | the answer, for `task-ttl` |
//! | `every_refusal_looks_the_same` | any | wrong token, principal or id; expired; cancelled | – | error `ticket-unknown` |
//!
//! Each row has a test of the same name, in `tests/engine/resume.rs`. As a client of a server that sends policies we
//! keep the token with the attempt: see [`Policy`] and `engine/resuming.rs`.

use crate::id::JsonId;
use crate::json;
use crate::record::{Faces, Record};
use crate::time::Mono;
use crate::wire::{Field, Message, Outgoing, Scanned, scan};
use std::time::Duration;

/// What a call of ours has that can be resumed.
#[derive(Debug)]
pub(crate) struct Resume {
    /// Of the request and of everything that resumes it.
    pub(crate) id: JsonId,
    /// When somebody was last there for it, as far as that was looked at.
    pub(crate) seen: Mono,
    /// The newest progress, for a line that cannot say what it has missed.
    pub(crate) newest: Option<Outgoing>,
}

impl Resume {
    /// Of a call as a store has it; `None` if its ticket is no resume token.
    pub(crate) fn of_record(record: &Record) -> Option<Resume> {
        let token = record.head.faces.has(Faces::RESUME);
        let id = match scan(record.request.clone()) {
            Ok(Scanned::Message(request)) if token => request.raw(Field::Id).and_then(JsonId::new),
            _ => None,
        };
        id.map(|id| Resume { id, seen: Mono::default(), newest: None })
    }
}

/// Whether an `initialize` declares `resumableRequests`.
pub(crate) fn declares(initialize: &Message) -> bool {
    let capabilities = initialize.raw(Field::Params).and_then(|params| json::member(params, "capabilities"));
    capabilities.is_some_and(|capabilities| json::member(capabilities, "resumableRequests").is_some())
}

/// What a server said about resuming an attempt of ours.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Policy {
    /// Whoever has it may have the call.
    pub(crate) token: Box<str>,
    pub(crate) min_wait: Duration,
    /// Without one the server promises nothing; the call's own limits govern then.
    pub(crate) max_wait: Option<Duration>,
}

impl Policy {
    /// Reads the parameters of `notifications/requests/resumePolicy`.
    pub(crate) fn read(params: &[u8]) -> Option<Policy> {
        #[derive(serde::Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Params {
            resume_token: Box<str>,
            min_wait: Option<f64>,
            max_wait: Option<f64>,
        }
        let Params { resume_token, min_wait, max_wait } = serde_json::from_slice(params).ok()?;
        let time = |seconds: f64| Duration::try_from_secs_f64(seconds).ok();
        Some(Policy {
            token: resume_token,
            min_wait: min_wait.and_then(time).unwrap_or_default(),
            max_wait: max_wait.and_then(time),
        })
    }
}

/// Seconds as JSON: whole ones without a fraction.
pub(crate) fn seconds(time: Duration) -> String {
    if time.subsec_nanos() == 0 { time.as_secs().to_string() } else { time.as_secs_f64().to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_is_read_with_and_without_its_waits() {
        let read = |text: &str| Policy::read(text.as_bytes());
        let policy = |min: f64, max: Option<u64>| Policy {
            token: "t".into(),
            min_wait: Duration::from_secs_f64(min),
            max_wait: max.map(Duration::from_secs),
        };
        assert_eq!(read(r#"{"requestId":1,"resumeToken":"t"}"#), Some(policy(0.0, None)));
        assert_eq!(read(r#"{"resumeToken":"t","minWait":0.5,"maxWait":60}"#), Some(policy(0.5, Some(60))));
        assert_eq!(read(r#"{"resumeToken":"t","minWait":-1,"maxWait":1e300}"#), Some(policy(0.0, None)));
        assert_eq!(read(r#"{"requestId":1}"#), None);
    }

    #[test]
    fn seconds_are_written_plainly() {
        assert_eq!(seconds(Duration::from_secs(600)), "600");
        assert_eq!(seconds(Duration::from_millis(1500)), "1.5");
    }
}
