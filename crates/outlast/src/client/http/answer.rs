//! What a request is answered with, and how that is written.

use super::body::{Events, Visit};
use crate::clock;
use crate::http1::fields;
use crate::http1::head::Request;
use bytes::Bytes;
use http::{Method, StatusCode};
use outlast_engine::error::edge_error;
use outlast_engine::wire::Patch;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, UNIX_EPOCH};

/// A response.
#[derive(Debug)]
pub struct Answer {
    status: StatusCode,
    /// The fields that say what follows, as they are written.
    kind: &'static [u8],
    /// Its other fields.
    fields: Vec<u8>,
    /// What follows.
    pub body: Out,
    /// The request that it answers, for as long as it is written; that of a stream belongs to the stream.
    pub visit: Option<Visit>,
}

/// What follows the head of a response.
#[derive(Debug)]
pub enum Out {
    /// Nothing.
    Empty,
    /// One piece.
    Whole(Bytes),
    /// A stream.
    Events(Box<Events>),
}

/// How a response is written, whatever it says.
#[derive(Clone, Copy, Debug)]
pub struct Manner {
    /// Another request may follow.
    pub keeps: bool,
    /// The client does not know chunks (HTTP/1.0): the end of a stream is the connection's.
    pub old: bool,
    /// The client wants the head alone.
    pub head_only: bool,
}

impl Manner {
    /// To something that was no request.
    pub const LAST: Manner = Manner { keeps: false, old: false, head_only: false };

    /// To a request; another one may follow unless we do not want it.
    pub fn of(request: &Request, answer: &Answer, keeps: bool) -> Manner {
        let old = request.old;
        let head_only = request.method == Method::HEAD;
        let endless = old && !head_only && matches!(answer.body, Out::Events(_));
        Manner { keeps: keeps && request.keeps && !endless, old, head_only }
    }
}

impl Answer {
    /// A response of this status without a body.
    pub fn new(status: StatusCode) -> Answer {
        Answer { status, kind: b"", fields: Vec::new(), body: Out::Empty, visit: None }
    }

    /// How it goes.
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// A message.
    pub fn json(status: StatusCode, bytes: Bytes) -> Answer {
        Answer::whole(status, b"content-type: application/json\r\n", bytes)
    }

    /// One piece of the kind that this field says.
    pub fn whole(status: StatusCode, kind: &'static [u8], bytes: Bytes) -> Answer {
        Answer { kind, body: Out::Whole(bytes), ..Answer::new(status) }
    }

    /// A stream, which nobody on the way may hold back or change.
    pub fn events(status: StatusCode, events: Box<Events>) -> Answer {
        let kind = b"content-type: text/event-stream\r\ncache-control: no-cache, no-transform\r\n\
            x-accel-buffering: no\r\n";
        Answer { kind, body: Out::Events(events), ..Answer::new(status) }
    }

    /// A text for people.
    pub fn text(status: StatusCode, text: &'static str) -> Answer {
        let kind = b"content-type: text/plain; charset=utf-8\r\n";
        Answer::whole(status, kind, Bytes::from_static(text.as_bytes()))
    }

    /// A page for browsers that is made for one request.
    pub fn page(page: String) -> Answer {
        let kind = b"content-type: text/html; charset=utf-8\r\n";
        Answer { kind, body: Out::Whole(page.into()), ..Answer::new(StatusCode::OK) }
    }

    /// A page for browsers.
    pub fn html(page: &'static str) -> Answer {
        let kind = b"content-type: text/html; charset=utf-8\r\n";
        Answer::whole(StatusCode::OK, kind, Bytes::from_static(page.as_bytes()))
    }

    /// To what is no request that can be understood.
    pub fn unreadable(status: StatusCode) -> Answer {
        Answer::text(status, "outlast: this is no HTTP/1.1 request that can be read\n")
    }

    /// An error of ours, for whoever reads JSON-RPC.
    pub fn json_rpc(status: StatusCode, code: i32, why: &str) -> Answer {
        Answer::json(status, edge_error(code, why).into())
    }

    /// To this request.
    pub fn to(self, visit: Visit) -> Answer {
        Answer { visit: Some(visit), ..self }
    }

    /// With a field.
    pub fn with(mut self, name: &'static str, value: &str) -> Answer {
        fields::write(&mut self.fields, name, value.as_bytes());
        self
    }

    /// Writes the head.
    pub fn write_head(&self, to: &mut Vec<u8>, dates: &Dates, manner: Manner) {
        to.extend_from_slice(b"HTTP/1.1 ");
        to.extend_from_slice(self.status.as_str().as_bytes());
        to.push(b' ');
        to.extend_from_slice(self.status.canonical_reason().unwrap_or_default().as_bytes());
        to.extend_from_slice(b"\r\n");
        to.extend_from_slice(self.kind);
        to.extend_from_slice(&self.fields);
        dates.write(to);
        match &self.body {
            Out::Empty if self.status == StatusCode::NO_CONTENT => {}
            Out::Empty => to.extend_from_slice(b"content-length: 0\r\n"),
            Out::Whole(bytes) => {
                let length = Patch::number(bytes.len() as u64, false);
                fields::write(to, "content-length", length.as_slice());
            }
            Out::Events(_) if manner.old => {}
            Out::Events(_) => to.extend_from_slice(b"transfer-encoding: chunked\r\n"),
        }
        match manner {
            Manner { keeps: false, .. } => to.extend_from_slice(b"connection: close\r\n"),
            Manner { old: true, .. } => to.extend_from_slice(b"connection: keep-alive\r\n"),
            _ => {}
        }
        to.extend_from_slice(b"\r\n");
    }
}

/// The fields that every response has: `Date`, put into words once a second, and which of several replicas answers.
#[derive(Debug, Default)]
pub struct Dates {
    /// The field of the replica; empty where there is only one.
    replica: Vec<u8>,
    kept: Mutex<(u64, Vec<u8>)>,
}

impl Dates {
    /// Those of a replica, for balancers that want to know.
    pub fn of_replica(name: &str) -> Dates {
        let mut replica = Vec::new();
        fields::write(&mut replica, "outlast-replica", name.as_bytes());
        Dates { replica, kept: Mutex::default() }
    }

    fn write(&self, to: &mut Vec<u8>) {
        let now = clock::wall().0 / 1000;
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.0 != now {
            let date = httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(now));
            *kept = (now, self.replica.clone());
            fields::write(&mut kept.1, "date", date.as_bytes());
        }
        to.extend_from_slice(&kept.1);
    }
}
