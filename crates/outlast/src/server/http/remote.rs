//! One server behind HTTP: how to connect to it, its idle connections, and what every request says.

use super::head;
use super::link::{Link, Unanswered};
use super::pool::Pool;
use super::proxy::{self, Proxy};
use super::reply::Reply;
use super::sender::SenderPool;
use super::tcp::{self, Host};
use super::tls::Tls;
use super::{Options, words};
use crate::http1::io::Io;
use crate::http1::{Broken, fields};
use crate::identity::Key;
use crate::keep::Way;
use http::header::{HeaderName, HeaderValue, USER_AGENT};
use http::{Method, Uri};
use outlast_engine::http::Trouble;
use outlast_engine::settings::show_duration;
use outlast_engine::wire::{Outgoing, Patch};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;

/// Redirects that are followed in a row. One more: the request has failed.
const REDIRECTS: usize = 5;

/// Connections that are made at the same time. Who wants one more waits, and takes one that becomes
/// free meanwhile.
const DIALLING: usize = 128;

/// Bytes of a head that are made room for beside what every request carries.
const HEAD: usize = 384;

/// A server, shared by all sessions on it.
pub struct Remote {
    url: Uri,
    host: Host,
    tls: Option<Tls>,
    proxy: Option<Proxy>,
    way: Option<Arc<Way>>,
    /// The headers that a person wrote.
    headers: Vec<(HeaderName, HeaderValue)>,
    /// The fields that every request carries, as they are written.
    fields: Vec<u8>,
    connect: Duration,
    pool_idle: Duration,
    pool: Arc<Pool>,
    senders: Arc<SenderPool>,
    dialling: Semaphore,
    max_message: usize,
}

impl std::fmt::Debug for Remote {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Remote({})", self.host)
    }
}

impl Remote {
    /// Prepares everything and connects to nothing. The error is for people.
    pub fn new(options: Options) -> Result<Arc<Remote>, String> {
        let Options { url, ca_file, proxies, .. } = options;
        let secure = match url.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return Err("a server's URL begins with http:// or https://".into()),
        };
        let host = Host::of(&url).ok_or("the server's URL names no host, or a port that cannot be")?;
        if url.authority().is_some_and(|authority| authority.as_str().contains('@')) {
            return Err(format!(
                "the URL of {host} holds credentials; give them with --header 'Authorization: …'"
            ));
        }
        let tls = secure.then(|| Tls::new(&host, ca_file.as_deref())).transpose()?;
        let proxy = proxy::of(&url, &host, &proxies)?;
        let mut fields = Vec::new();
        fields::write(&mut fields, "host", head::host(&url)?.as_bytes());
        if !options.headers.iter().any(|(name, _)| *name == USER_AGENT) {
            let us = concat!("outlast/", env!("CARGO_PKG_VERSION"));
            fields::write(&mut fields, "user-agent", us.as_bytes());
        }
        if let Some(authorization) = proxy.as_ref().filter(|_| !secure).and_then(|p| p.authorization.as_ref())
        {
            fields::write(&mut fields, "proxy-authorization", authorization.as_bytes());
        }
        for (name, value) in &options.headers {
            fields::write_any(&mut fields, name.as_str(), value.as_bytes());
        }
        Ok(Arc::new(Remote {
            url,
            host,
            tls,
            proxy,
            way: options.way,
            headers: options.headers,
            fields,
            connect: options.connect,
            pool_idle: options.pool_idle,
            pool: Pool::new(options.pool_max_idle),
            senders: Arc::default(),
            dialling: Semaphore::new(DIALLING),
            max_message: options.max_message,
        }))
    }

    /// What it is called in the store.
    pub fn identity(&self, key: &Key) -> Box<str> {
        key.of_address(&self.url, &self.headers)
    }

    /// The longest message.
    pub fn max_message(&self) -> usize {
        self.max_message
    }

    /// Who carries posts.
    pub fn senders(&self) -> &Arc<SenderPool> {
        &self.senders
    }

    /// Connections without use.
    #[cfg(test)]
    pub fn idle(&self) -> usize {
        self.pool.len()
    }

    /// Opens a connection and keeps it. The error is for people.
    pub async fn open(&self) -> Result<(), String> {
        let link = self.within_limit(self.dial()).await?;
        self.pool.give(link, self.pool_idle);
        Ok(())
    }

    /// A connection; whether it was used before. The error is for people.
    async fn link(&self) -> Result<(Link, bool), String> {
        if let Some(link) = self.pool.take().await {
            return Ok((link, true));
        }
        // Boxed: it is large, and every post would carry the room for it as long as it lives.
        Box::pin(self.within_limit(self.fresh())).await
    }

    /// One that was never used.
    async fn new_link(&self) -> Result<(Link, bool), String> {
        Box::pin(self.within_limit(self.dial())).await.map(|link| (link, false))
    }

    async fn fresh(&self) -> Result<(Link, bool), String> {
        let _turn = self.dialling.acquire().await;
        if let Some(link) = self.pool.take().await {
            return Ok((link, true));
        }
        self.dial().await.map(|link| (link, false))
    }

    async fn within_limit<T>(&self, work: impl Future<Output = Result<T, String>>) -> Result<T, String> {
        tokio::time::timeout(self.connect, work).await.unwrap_or_else(|_late| {
            Err(format!("no connection to {} within {} (connect)", self.host, show_duration(self.connect)))
        })
    }

    async fn dial(&self) -> Result<Link, String> {
        if let Some(way) = &self.way {
            let io = Io::Local(way.connect().await?);
            return Ok(Link::new(io));
        }
        let mut stream = match &self.proxy {
            None => tcp::connect(&self.host).await?,
            Some(proxy) => {
                let stream = tcp::connect(&proxy.host).await;
                stream.map_err(|why| format!("the proxy {}: {why}", proxy.host))?
            }
        };
        if let (Some(_), Some(proxy)) = (&self.tls, &self.proxy) {
            proxy.tunnel(&mut stream, &self.host).await?;
        }
        let io = match &self.tls {
            None => Io::Plain(stream),
            Some(tls) => Io::Tls(Box::new(tls.handshake(stream).await?)),
        };
        Ok(Link::new(io))
    }

    /// Sends a request and brings the head of its response. Redirects within the same origin are
    /// followed; elsewhere they would carry our credentials to somebody else. A harmless request is sent
    /// again if the server closed a kept connection without a word.
    pub async fn send(
        &self,
        method: Method,
        body: Option<&Outgoing>,
        harmless: bool,
        fields: impl Fn(&mut Vec<u8>),
    ) -> Result<Reply, Trouble> {
        let mut moved = None;
        for _ in 0..=REDIRECTS {
            let target = moved.as_ref().unwrap_or(&self.url);
            let request = || self.request(&method, target, body, &fields);
            let reply = self.exchange(request, harmless).await?;
            let Some(location) = head::location(&reply.head) else { return Ok(reply) };
            match head::follow(&method, reply.head.status, target, location) {
                Ok(next) => moved = Some(next),
                Err(why) => return Err(reply.refused_because(why)),
            }
            self.give_back(reply).await;
        }
        Err(Trouble::NotMcp(format!("redirected more than {REDIRECTS} times").into()))
    }

    /// A request in one piece.
    fn request(
        &self,
        method: &Method,
        target: &Uri,
        body: Option<&Outgoing>,
        fields: impl Fn(&mut Vec<u8>),
    ) -> Vec<u8> {
        let length = body.map_or(0, Outgoing::len);
        let mut request = Vec::with_capacity(HEAD + self.fields.len() + length);
        request.extend_from_slice(method.as_str().as_bytes());
        request.push(b' ');
        // A proxy needs all of it.
        if self.proxy.is_some() && self.tls.is_none() {
            request.extend_from_slice(target.to_string().as_bytes());
        } else {
            request.extend_from_slice(target.path().as_bytes());
            if let Some(query) = target.query() {
                request.push(b'?');
                request.extend_from_slice(query.as_bytes());
            }
        }
        request.extend_from_slice(b" HTTP/1.1\r\n");
        request.extend_from_slice(&self.fields);
        fields(&mut request);
        if let Some(body) = body {
            fields::write(&mut request, "content-length", Patch::number(length as u64, false).as_slice());
            request.extend_from_slice(b"\r\n");
            body.append_to(&mut request);
        } else {
            request.extend_from_slice(b"\r\n");
        }
        request
    }

    /// One request on one connection. One that was kept may turn out to be closed; as long as
    /// nothing was written to it, the request goes to another. A harmless one then goes to a new one.
    async fn exchange(&self, request: impl Fn() -> Vec<u8>, harmless: bool) -> Result<Reply, Trouble> {
        let (mut text, mut anew) = (request(), false);
        loop {
            let link = if anew { self.new_link().await } else { self.link().await };
            let (mut link, used) = link.map_err(|why| Trouble::Unreachable(why.into()))?;
            match link.send(text).await {
                Ok(head) => return Ok(Reply::new(link, head)),
                Err(Unanswered { unsent: Some(unsent), .. }) if used => text = unsent,
                Err(Unanswered { unsent: Some(_), why }) => {
                    return Err(Trouble::Unreachable(words::of(&why).into()));
                }
                Err(Unanswered { why: Broken::Closed | Broken::Io(_), .. }) if used && harmless => {
                    (text, anew) = (request(), true);
                }
                Err(Unanswered { unsent: None, why }) => return Err(words::broken(&why)),
            }
        }
    }

    /// Reads what is left of a response, if that is soon done, and keeps its connection.
    pub async fn give_back(&self, reply: Reply) {
        let time = head::kept_for(&reply.head.fields).unwrap_or(self.pool_idle).min(self.pool_idle);
        if let Some(link) = reply.finish().await {
            self.pool.give(link, time);
        }
    }
}
