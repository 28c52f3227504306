//! Callbacks on their way out: the addresses that a person named, and how one is called.
//!
//! A callback goes where a stranger may have pointed a name, so nothing here trusts what it meets: the name is resolved
//! once and the connection goes to exactly that address, never to a private one that the file does not list
//! (`address`); redirects are not followed; little of an answer is read, and all of it within a limit.
//!
//! What is sent is signed as <https://www.standardwebhooks.com> says. Not here: what it says and when it is sent again,
//! which the engine decides.

mod address;
pub mod queue;

use crate::client::http::addresses::Network;
use crate::clock;
use crate::dashboard::link::HoldLink;
use crate::http1::fields::{self, Known};
use crate::http1::head::Response;
use crate::http1::io::Io;
use crate::server::http::link::{Link, Unanswered};
use crate::server::http::tcp::{self, Host};
use crate::server::http::tls::Tls;
use crate::server::http::{head, words};
use http::Uri;
use outlast_engine::callback::{Callback, Delivery};
use outlast_engine::{base64, hex, limits};
use ring::hmac;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use tokio::net::lookup_host;

/// What a secret begins with.
const PREFIX: &str = "whsec_";

/// Bytes of a secret: fewer can be guessed, more are not worth anything.
const SECRET: std::ops::RangeInclusive<usize> = 24..=64;

/// The receiver wants nothing more.
const GONE: u16 = 410;

/// Every address by its name.
#[derive(Clone, Default)]
pub struct Callers(BTreeMap<Box<str>, Arc<Receiver>>);

impl std::fmt::Debug for Callers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl Callers {
    /// Takes an address in.
    pub fn add(&mut self, name: Box<str>, receiver: Receiver) {
        self.0.insert(name, Arc::new(receiver));
    }

    /// Whether a link to a held call was signed for one of these, and has not ended.
    pub fn knows(&self, link: &HoldLink) -> bool {
        self.0.get(&*link.callback).is_some_and(|receiver| receiver.knows(link))
    }

    /// Sends a callback. Whoever waits for that hears what came of it.
    pub fn call(&self, callback: &Callback) -> impl Future<Output = Delivery> + use<> {
        let receiver = self.0.get(&callback.about.name).cloned();
        let (id, name, body) = (callback.id(), callback.about.name.clone(), callback.about.body.clone());
        async move {
            match receiver {
                Some(receiver) => receiver.call(&id, &receiver.with_link(&name, &body)).await,
                None => failed("no address has this name".into()),
            }
        }
    }
}

/// What is signed of a link: nothing that a callback could be.
fn signed(hold: u64, until: &str) -> String {
    format!("link {hold} {until}")
}

/// Who is called back. Not printable: it holds a secret.
pub struct Receiver {
    host: Host,
    /// `None`: it is called without TLS.
    tls: Option<Tls>,
    /// Path and query.
    target: Box<str>,
    /// `Host`.
    authority: http::HeaderValue,
    secret: hmac::Key,
    /// Private addresses that may be called.
    allowed: Vec<Network>,
    /// Where links to pages of ours lead, if whoever is called back may decide held calls.
    links: Option<Box<str>>,
}

impl Receiver {
    /// Reads the certificates that are trusted. The error is for people.
    pub fn new(
        url: &Uri,
        secret: &[u8],
        allowed: Vec<Network>,
        ca_file: Option<&Path>,
        links: Option<Box<str>>,
    ) -> Result<Receiver, String> {
        let host = Host::of(url).ok_or("the URL names no host")?;
        let tls = match url.scheme_str() {
            Some("https") => Some(Tls::new(&host, ca_file)?),
            _ => None,
        };
        Ok(Receiver {
            tls,
            target: url.path_and_query().map_or("/", http::uri::PathAndQuery::as_str).into(),
            authority: head::host(url)?,
            secret: hmac::Key::new(hmac::HMAC_SHA256, secret),
            allowed,
            links,
            host,
        })
    }

    /// What is said of a held call, with a link that decides it.
    fn with_link(&self, name: &str, body: &str) -> String {
        let Some(base) = &self.links else { return body.to_owned() };
        let mut told: Value = serde_json::from_str(body).unwrap_or_default();
        let hold = &told["data"]["hold"];
        let (Some(number), Some(until)) = (hold["number"].as_u64(), hold["until"].as_str()) else {
            return body.to_owned();
        };
        let tag = hmac::sign(&self.secret, signed(number, until).as_bytes());
        let link = format!("{base}/outlast/hold/{name}/{number}/{until}/{}", hex::encode(tag.as_ref()));
        told["data"]["link"] = link.into();
        told.to_string()
    }

    /// Whether a link is one of ours, and its hold may still be open.
    fn knows(&self, link: &HoldLink) -> bool {
        let tag = hex::decode(&link.signature);
        let verify =
            |tag: &[u8; 32]| hmac::verify(&self.secret, signed(link.hold, &link.until).as_bytes(), tag);
        let now = clock::wall().timestamp();
        self.links.is_some() && link.until > now && tag.is_some_and(|tag| verify(&tag).is_ok())
    }

    async fn call(&self, id: &str, body: &str) -> Delivery {
        let sent = tokio::time::timeout(limits::CALLBACK_TIME, self.send(id, body)).await;
        match sent {
            Ok(Ok(answer)) => judge(&answer),
            Ok(Err(why)) => failed(why),
            Err(_late) => failed(format!("no answer within {}s", limits::CALLBACK_TIME.as_secs())),
        }
    }

    /// Sends a request and reads what comes back; the error is for people.
    async fn send(&self, id: &str, body: &str) -> Result<Response, String> {
        let mut link = Link::new(self.connect().await?);
        let request = self.request(id, clock::wall().0 / 1000, body);
        let sent = link.send(request).await;
        let answer = sent.map_err(|Unanswered { why, .. }| words::of(&why))?;
        // So that the receiver can finish. What it says is nobody's business.
        let mut read = 0;
        while read < limits::CALLBACK_ANSWER
            && let Ok(part @ [_, ..]) = link.next().await
        {
            read += part.len();
        }
        Ok(answer)
    }

    /// Connects to an address that may be called: the very one that was looked at.
    async fn connect(&self) -> Result<Io, String> {
        let Host { name, port } = &self.host;
        let found = lookup_host((&**name, *port)).await;
        let found = found.map_err(|error| format!("cannot resolve {name}: {}", words::of_io(&error)))?;
        let addresses = address::callable(found, &self.allowed, self.tls.is_some())?;
        let stream = tcp::connect_to(addresses).await?;
        Ok(match &self.tls {
            None => Io::Plain(stream),
            Some(tls) => Io::Tls(Box::new(tls.handshake(stream).await?)),
        })
    }

    fn request(&self, id: &str, seconds: u64, body: &str) -> Vec<u8> {
        let seconds = seconds.to_string();
        let mut request = format!("POST {} HTTP/1.1\r\n", self.target).into_bytes();
        for (name, value) in [
            ("host", self.authority.as_bytes()),
            ("content-type", b"application/json"),
            ("content-length", body.len().to_string().as_bytes()),
            ("user-agent", concat!("outlast/", env!("CARGO_PKG_VERSION")).as_bytes()),
            ("connection", b"close"),
            ("webhook-id", id.as_bytes()),
            ("webhook-timestamp", seconds.as_bytes()),
            ("webhook-signature", self.signature(id, &seconds, body).as_bytes()),
        ] {
            fields::write(&mut request, name, value);
        }
        request.extend_from_slice(b"\r\n");
        request.extend_from_slice(body.as_bytes());
        request
    }

    fn signature(&self, id: &str, seconds: &str, body: &str) -> String {
        let tag = hmac::sign(&self.secret, format!("{id}.{seconds}.{body}").as_bytes());
        format!("v1,{}", base64::encode(tag.as_ref()))
    }
}

/// Reads `whsec_…`; the error never shows it.
pub fn read_secret(text: &str) -> Result<Vec<u8>, &'static str> {
    let secret = text.strip_prefix(PREFIX).and_then(base64::decode);
    let secret = secret.ok_or("the secret is not `whsec_` and base64")?;
    if SECRET.contains(&secret.len()) { Ok(secret) } else { Err("the secret does not have 24 to 64 bytes") }
}

/// What an answer means. A redirect is none: who signs for one address does not sign for another.
fn judge(answer: &Response) -> Delivery {
    let why = || words::of_status(answer.status).into();
    match answer.status {
        200..=299 => Delivery::Done,
        GONE => Delivery::Unwanted(why()),
        300..=399 => failed(format!("{} (redirects are not followed)", words::of_status(answer.status))),
        _ => {
            let waits = !answer.fields.text(Known::RetryAfter).is_empty();
            let retry_after = waits.then(|| head::retry_after(&answer.fields)).flatten();
            Delivery::Failed { why: why(), retry_after }
        }
    }
}

fn failed(why: String) -> Delivery {
    Delivery::Failed { why: why.into(), retry_after: None }
}

#[cfg(test)]
mod tests;
