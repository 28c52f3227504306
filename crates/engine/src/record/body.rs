//! What a record holds that no store looks into: written as JSON with a version.
//!
//! A field may be added without a new version as long as its absence means what it meant before. A
//! new version is for a field that means something else; its reader then reads the older ones too. What
//! a newer outlast wrote is refused, never half understood.

use crate::limits;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// The version that is written.
const VERSION: u32 = 1;

/// What is known of a stored call besides its head.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Body {
    /// What the client is shown.
    pub status_message: Option<String>,
    /// How often the client may ask.
    pub poll_interval_ms: Option<u64>,
    /// The `ttl` that the client was told.
    pub ttl_ms: Option<u64>,
    /// Whether the call may be made again, and what that rests on. Decided when it began.
    pub repeatable: Option<String>,
    /// The server's own task for it.
    pub server_task: Option<String>,
    /// The server's own resume token for it.
    pub server_token: Option<String>,
    /// The number that the attempt with this token has there: it is resumed under the same one.
    pub server_attempt: Option<u64>,
    /// It has waited for a person's yes ever since it began, so nothing of it has reached its server.
    pub held: bool,
    /// The request's id as its client wrote it, raw JSON.
    pub request_id: Option<String>,
    /// Which callback tells of it.
    pub callback: Option<String>,
    /// What the server asks the client.
    pub questions: Vec<Question>,
}

/// A request of the server that the client has not answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// Its key, unique for this call.
    pub key: String,
    /// The request, byte for byte.
    pub request: Bytes,
}

/// Why a stored body was not understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadBody {
    /// A newer outlast wrote it.
    #[error("the record has format {0}, and this outlast knows formats up to {VERSION}: use the newer one")]
    Newer(u32),
    /// It is not what any outlast writes.
    #[error("the record is damaged: {0}")]
    Damaged(String),
}

#[derive(Deserialize)]
struct Versioned {
    v: u32,
}

#[derive(Serialize, Deserialize)]
struct Version1<'a> {
    v: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    poll: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ttl: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    repeatable: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    task: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    token: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    attempt: Option<u64>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    held: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    callback: Option<String>,
    #[serde(default, borrow, skip_serializing_if = "Vec::is_empty")]
    questions: Vec<(String, &'a RawValue)>,
}

impl Body {
    /// Takes a question in that others are to see, if it fits into [`limits::STORED_QUESTIONS`].
    pub fn ask(&mut self, question: Question) {
        let size = |question: &Question| question.key.len() + question.request.len();
        let before: usize = self.questions.iter().map(size).sum();
        if !reached!(STORED_QUESTIONS, before + size(&question) > limits::STORED_QUESTIONS) {
            self.questions.push(question);
        }
    }

    /// As it is stored. A question that is no JSON is left out: it could never be asked.
    pub fn encode(&self) -> Bytes {
        let raw = |question: &'_ Question| -> Option<(String, Box<RawValue>)> {
            let text = std::str::from_utf8(&question.request).ok()?;
            Some((question.key.clone(), RawValue::from_string(text.to_owned()).ok()?))
        };
        let questions: Vec<_> = self.questions.iter().filter_map(raw).collect();
        let written = Version1 {
            v: VERSION,
            message: self.status_message.clone(),
            poll: self.poll_interval_ms,
            ttl: self.ttl_ms,
            repeatable: self.repeatable.clone(),
            task: self.server_task.clone(),
            token: self.server_token.clone(),
            attempt: self.server_attempt,
            held: self.held,
            id: self.request_id.clone(),
            callback: self.callback.clone(),
            questions: questions.iter().map(|(key, raw)| (key.clone(), &**raw)).collect(),
        };
        serde_json::to_vec(&written).unwrap_or_default().into()
    }

    /// Reads what any outlast up to this one wrote.
    pub fn decode(bytes: &[u8]) -> Result<Body, BadBody> {
        let damaged = |error: serde_json::Error| BadBody::Damaged(error.to_string());
        match serde_json::from_slice::<Versioned>(bytes).map_err(damaged)?.v {
            1 => serde_json::from_slice::<Version1<'_>>(bytes).map(Body::from).map_err(damaged),
            0 => Err(BadBody::Damaged("there is no format 0".into())),
            newer => Err(BadBody::Newer(newer)),
        }
    }
}

impl From<Version1<'_>> for Body {
    fn from(read: Version1<'_>) -> Body {
        let question = |(key, request): (String, &RawValue)| Question {
            key,
            request: Bytes::copy_from_slice(request.get().as_bytes()),
        };
        Body {
            status_message: read.message,
            poll_interval_ms: read.poll,
            ttl_ms: read.ttl,
            repeatable: read.repeatable,
            server_task: read.task,
            server_token: read.token,
            server_attempt: read.attempt,
            held: read.held,
            request_id: read.id,
            callback: read.callback,
            questions: read.questions.into_iter().map(question).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn full() -> Body {
        Body {
            status_message: Some("half \"way\"".into()),
            poll_interval_ms: Some(5_000),
            ttl_ms: Some(u64::MAX),
            repeatable: Some("idempotentHint".into()),
            server_task: Some("786".into()),
            server_token: Some("t".into()),
            server_attempt: Some(7),
            held: true,
            request_id: Some("\"r-1\"".into()),
            callback: Some("ops".into()),
            questions: vec![Question {
                key: "a".into(),
                request: Bytes::from_static(
                    br#"{"method": "elicitation/create","n":1.0,"big":18446744073709551617}"#,
                ),
            }],
        }
    }

    #[test]
    fn what_is_written_is_read_back_byte_for_byte() {
        for body in [Body::default(), full()] {
            assert_eq!(Body::decode(&body.encode()), Ok(body));
        }
    }

    /// The text is what version 1 wrote, so that later versions keep reading it.
    #[test]
    fn version_1_is_read() {
        let text = r#"{"v":1,"message":"half \"way\"","poll":5000,"ttl":18446744073709551615,"repeatable":"idempotentHint","task":"786","token":"t","attempt":7,"held":true,"id":"\"r-1\"","callback":"ops","questions":[["a",{"method": "elicitation/create","n":1.0,"big":18446744073709551617}]]}"#;
        assert_eq!(Body::decode(text.as_bytes()), Ok(full()));
        assert_eq!(&*full().encode(), text.as_bytes());
        assert_eq!(Body::decode(br#"{"v":1,"added later":2}"#), Ok(Body::default()));
    }

    #[test]
    fn questions_are_stored_up_to_a_bound() {
        let question = |size: usize| Question { key: "k".into(), request: vec![b' '; size - 1].into() };
        let mut body = Body::default();
        body.ask(question(limits::STORED_QUESTIONS - 9));
        body.ask(question(10));
        body.ask(question(9));
        let sizes: Vec<usize> = body.questions.iter().map(|question| question.request.len() + 1).collect();
        assert_eq!(sizes, [limits::STORED_QUESTIONS - 9, 9]);
    }

    #[test]
    fn what_a_newer_outlast_wrote_is_not_half_understood() {
        assert_eq!(Body::decode(br#"{"v":2,"message":5}"#), Err(BadBody::Newer(2)));
    }

    #[test]
    fn a_damaged_body_is_told_apart() {
        for text in ["", "{", "{}", "[]", r#"{"v":0}"#, r#"{"v":1,"poll":"x"}"#] {
            assert!(matches!(Body::decode(text.as_bytes()), Err(BadBody::Damaged(_))), "{text}");
        }
    }
}
