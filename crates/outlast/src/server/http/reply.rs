//! A response while its body is read, with the connection it comes on.

use super::head::{self, Content};
use super::link::Link;
use crate::doctor::glimpse;
use bytes::{Bytes, BytesMut};
use hyper::Response;
use hyper::body::{Body, Incoming};
use hyper::header::CONTENT_TYPE;
use hyper::http::response::Parts;
use outlast_engine::http::Trouble;
use std::future::poll_fn;
use std::time::Duration;

/// How long the end of a response is waited for, so that its connection can be used again.
pub const LINGER: Duration = Duration::from_secs(1);

/// Bytes that are read for that.
const REST: usize = 64 << 10;

/// Bytes of a refusal that are read, and for how long. What is not there by then is left.
const REFUSAL: usize = 64 << 10;
const REFUSAL_TIME: Duration = Duration::from_secs(5);

/// Bytes of an answer that is no MCP which are shown.
const SHOWN: usize = 120;

/// A response.
pub struct Reply {
    pub head: Parts,
    body: Incoming,
    link: Link,
}

impl Reply {
    pub fn new(link: Link, response: Response<Incoming>) -> Reply {
        let (head, body) = response.into_parts();
        Reply { head, body, link }
    }

    pub fn content(&self) -> Content {
        Content::of(&self.head)
    }

    /// The next part of the body; `None` at its end.
    pub async fn next(&mut self) -> Option<Result<Bytes, hyper::Error>> {
        self.link.next(&mut self.body).await
    }

    /// All of the body; `None` if it has more than `max` bytes.
    pub async fn whole(&mut self, max: usize) -> Result<Option<Bytes>, hyper::Error> {
        if self.body.size_hint().lower() > max as u64 {
            return Ok(None);
        }
        let Some(first) = self.next().await.transpose()? else { return Ok(Some(Bytes::new())) };
        if self.body.is_end_stream() {
            // Nearly always: it came in one read and is passed on without a copy.
            return Ok(Some(first).filter(|first| first.len() <= max));
        }
        let rest = self.body.size_hint().exact().unwrap_or_default() as usize;
        let mut whole = BytesMut::with_capacity(first.len() + rest);
        let mut part = Some(first);
        while let Some(bytes) = part {
            if whole.len() + bytes.len() > max {
                return Ok(None);
            }
            whole.extend_from_slice(&bytes);
            part = self.next().await.transpose()?;
        }
        Ok(Some(whole.freeze()))
    }

    /// The beginning of the body, as far as it is soon there.
    async fn beginning(&mut self, most: usize) -> Bytes {
        let mut found = BytesMut::new();
        let read = async {
            while found.len() < most
                && let Some(Ok(bytes)) = self.next().await
            {
                found.extend_from_slice(&bytes[..bytes.len().min(most - found.len())]);
            }
        };
        let _ = tokio::time::timeout(REFUSAL_TIME, read).await;
        found.freeze()
    }

    /// What a status other than 2xx means.
    pub async fn refusal(&mut self) -> Trouble {
        let body = self.beginning(REFUSAL).await;
        self.status(body)
    }

    /// The same with words of our own.
    pub fn refused_because(&self, why: String) -> Trouble {
        self.status(why.into())
    }

    fn status(&self, body: Bytes) -> Trouble {
        Trouble::Status {
            status: self.head.status.as_u16(),
            retry_after: head::retry_after(&self.head),
            had_session: false,
            body,
        }
    }

    /// What a 2xx means that holds no answer.
    pub async fn not_mcp(&mut self) -> Trouble {
        let body = self.beginning(SHOWN + 1).await;
        let kind = head::text(&self.head, CONTENT_TYPE).to_owned();
        let kind = match kind.is_empty() {
            true => "no content type".to_owned(),
            false => glimpse(kind.as_bytes(), SHOWN),
        };
        let status = self.head.status.as_u16();
        let why = match body.is_empty() {
            true => format!("status {status} without an answer"),
            false => format!("status {status} with {kind} instead of MCP: {}", glimpse(&body, SHOWN)),
        };
        Trouble::NotMcp(why.into())
    }

    /// Reads what is left, if that is soon done; the connection, if it can be used again.
    pub async fn finish(mut self) -> Option<Link> {
        let mut read = 0;
        let rest = async {
            while !self.body.is_end_stream()
                && let Some(part) = self.link.next(&mut self.body).await
            {
                read += part.map_or(REST, |bytes| bytes.len());
                if read >= REST {
                    return false;
                }
            }
            poll_fn(|cx| self.link.poll_ready(cx)).await
        };
        let ready = tokio::time::timeout(LINGER, rest).await.unwrap_or(false);
        ready.then_some(self.link)
    }
}
