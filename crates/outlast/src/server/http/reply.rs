//! A response while its body is read, with the connection it comes on.

use super::head::{self, Content};
use super::link::Link;
use crate::http1::Broken;
use crate::http1::fields::Known;
use crate::http1::head::Response;
use crate::observe::text::glimpse;
use bytes::{Bytes, BytesMut};
use outlast_engine::http::Trouble;
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
    pub head: Response,
    link: Link,
}

impl Reply {
    pub fn new(link: Link, head: Response) -> Reply {
        Reply { head, link }
    }

    pub fn content(&self) -> Content {
        Content::of(&self.head.fields)
    }

    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.head.status)
    }

    /// The next part of the body; empty at its end.
    pub async fn next(&mut self) -> Result<&[u8], Broken> {
        self.link.next().await
    }

    /// All of the body; `None` if it has more than `max` bytes.
    pub async fn whole(&mut self, max: usize) -> Result<Option<Bytes>, Broken> {
        self.link.whole(max).await
    }

    /// The beginning of the body, as far as it is soon there.
    async fn beginning(&mut self, most: usize) -> Bytes {
        let mut found = BytesMut::new();
        let read = async {
            while found.len() < most
                && let Ok(part @ [_, ..]) = self.next().await
            {
                found.extend_from_slice(&part[..part.len().min(most - found.len())]);
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
            status: self.head.status,
            retry_after: head::retry_after(&self.head.fields),
            had_session: false,
            body,
        }
    }

    /// What a 2xx means that holds no answer.
    pub async fn not_mcp(&mut self) -> Trouble {
        let body = self.beginning(SHOWN + 1).await;
        let kind = self.head.fields.text(Known::ContentType).to_owned();
        let kind = match kind.is_empty() {
            true => "no content type".to_owned(),
            false => glimpse(kind.as_bytes(), SHOWN),
        };
        let status = self.head.status;
        let why = match body.is_empty() {
            true => format!("status {status} without an answer"),
            false => format!("status {status} with {kind} instead of MCP: {}", glimpse(&body, SHOWN)),
        };
        Trouble::NotMcp(why.into())
    }

    /// Reads what is left, if that is soon done; the connection, if it can be used again.
    pub async fn finish(mut self) -> Option<Link> {
        if !self.link.is_done() {
            let _ = tokio::time::timeout(LINGER, self.read_rest()).await;
        }
        self.link.can_be_kept().then_some(self.link)
    }

    async fn read_rest(&mut self) {
        let mut read = 0;
        while read < REST
            && let Ok(part @ [_, ..]) = self.next().await
        {
            read += part.len();
        }
    }
}
