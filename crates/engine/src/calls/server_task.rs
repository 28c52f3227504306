//! A call that its server works on as a task of its own, while its client waits for a plain answer.

use crate::id::AttemptId;
use crate::limits;
use crate::time::Mono;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::time::Duration;

/// Whether a call may be a task of its server although its client does not know of tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AsTask {
    /// The client has tasks, or this is nothing that could be one.
    No,
    /// If the server insists.
    May,
    /// We have asked for it in the client's place.
    Asked,
}

/// The server's task for a call.
#[derive(Debug)]
pub(crate) struct ServerTask {
    /// The server's name for it, as raw JSON.
    pub(crate) task: Box<[u8]>,
    /// `_meta` of what we ask in the client's place. The legacy era needs none.
    pub(crate) meta: Option<Box<[u8]>>,
    /// What the task was made by: its progress goes on under that number.
    pub(crate) attempt: Option<AttemptId>,
    /// How often the server wants to be asked.
    pub(crate) interval: Duration,
    /// When it was asked last, and when it is asked next.
    pub(crate) polled: Mono,
    pub(crate) poll_at: Mono,
    /// Our open question about it.
    pub(crate) poll: Option<AttemptId>,
    /// Our open wait for its result.
    pub(crate) fetch: Option<AttemptId>,
    /// What it looked like, as a number.
    pub(crate) looks: u64,
    /// It was said to have ended.
    pub(crate) ended: bool,
    /// What it asks that the client has answered.
    pub(crate) answered: Vec<Box<str>>,
    /// It is not to be cancelled: it has ended, or its client comes back for it.
    pub(crate) let_go: bool,
}

/// What a server says of a task, in either era.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Report<'a> {
    #[serde(borrow)]
    pub(crate) task_id: &'a RawValue,
    pub(crate) status: &'a str,
    #[serde(borrow)]
    pub(crate) status_message: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(crate) last_updated_at: Option<&'a RawValue>,
    /// As the legacy era calls it, and as the modern one does.
    poll_interval: Option<f64>,
    poll_interval_ms: Option<f64>,
    #[serde(borrow)]
    pub(crate) result: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(crate) error: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(crate) input_requests: Option<&'a RawValue>,
}

impl Report<'_> {
    pub(crate) fn read(raw: &[u8]) -> Option<Report<'_>> {
        serde_json::from_slice(raw).ok()
    }

    /// How often the server wants to be asked, within reason.
    pub(crate) fn interval(&self) -> Duration {
        let wish = self.poll_interval_ms.or(self.poll_interval);
        let wish = wish.and_then(|millis| Duration::try_from_secs_f64(millis / 1000.0).ok());
        reached!(POLL if wish.is_none());
        reached!(POLL_LEAST if wish.is_some_and(|wish| wish < limits::POLL_LEAST));
        reached!(POLL_MOST if wish.is_some_and(|wish| wish > limits::POLL_MOST));
        wish.unwrap_or(limits::POLL).clamp(limits::POLL_LEAST, limits::POLL_MOST)
    }

    pub(crate) fn has_ended(&self) -> bool {
        matches!(self.status, "completed" | "failed" | "cancelled")
    }

    /// A number that differs when the task has changed.
    pub(crate) fn looks(&self) -> u64 {
        let raw = |part: Option<&RawValue>| part.map(RawValue::get).unwrap_or_default().to_owned();
        let shown = [self.status, &raw(self.status_message), &raw(self.last_updated_at)].join("\n");
        crate::hash::fingerprint(shown.as_bytes())
    }
}
