//! One server behind HTTP: how to connect to it, its idle connections, and what every request says.

use super::head;
use super::io::{Io, Whole};
use super::link::Link;
use super::pool::Pool;
use super::proxy::{self, Proxy};
use super::reply::Reply;
use super::tcp::{self, Host};
use super::tls::Tls;
use super::{Options, words};
use crate::keep::Way;
use bytes::Bytes;
use hyper::header::{HOST, HeaderMap, HeaderName, HeaderValue, PROXY_AUTHORIZATION, USER_AGENT};
use hyper::{Method, Request, Uri};
use outlast_engine::http::Trouble;
use outlast_engine::settings::show_duration;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;

/// Redirects that are followed in a row. One more: the request has failed.
const REDIRECTS: usize = 5;

/// Connections that are made at the same time. Who wants one more waits, and takes one that becomes
/// free meanwhile.
const DIALLING: usize = 128;

/// A server, shared by all sessions on it.
pub struct Remote {
    url: Uri,
    host: Host,
    tls: Option<Tls>,
    proxy: Option<Proxy>,
    way: Option<Arc<Way>>,
    /// What every request carries.
    headers: Vec<(HeaderName, HeaderValue)>,
    connect: Duration,
    pool_idle: Duration,
    pool: Arc<Pool>,
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
        let host = Host::of(&url).ok_or("the server's URL names no host")?;
        if url.authority().is_some_and(|authority| authority.as_str().contains('@')) {
            return Err(format!(
                "the URL of {host} holds credentials; give them with --header 'Authorization: …'"
            ));
        }
        let tls = secure.then(|| Tls::new(&host, ca_file.as_deref())).transpose()?;
        let proxy = proxy::of(&url, &host, &proxies)?;
        let mut headers = vec![(HOST, head::host(&url)?)];
        if !options.headers.iter().any(|(name, _)| *name == USER_AGENT) {
            let us = HeaderValue::from_static(concat!("outlast/", env!("CARGO_PKG_VERSION")));
            headers.push((USER_AGENT, us));
        }
        if let Some(authorization) = proxy.as_ref().filter(|_| !secure).and_then(|p| p.authorization.clone())
        {
            headers.push((PROXY_AUTHORIZATION, authorization));
        }
        headers.extend(options.headers);
        Ok(Arc::new(Remote {
            url,
            host,
            tls,
            proxy,
            way: options.way,
            headers,
            connect: options.connect,
            pool_idle: options.pool_idle,
            pool: Pool::new(options.pool_max_idle),
            dialling: Semaphore::new(DIALLING),
            max_message: options.max_message,
        }))
    }

    /// The longest message.
    pub fn max_message(&self) -> usize {
        self.max_message
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
            let io = Io::Unix(way.connect().await?);
            return Link::new(io).await.map_err(|error| words::of_hyper(&error));
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
        Link::new(io).await.map_err(|error| words::of_hyper(&error))
    }

    /// Sends a request and brings the head of its response. Redirects within the same origin are
    /// followed; elsewhere they would carry our credentials to somebody else.
    pub async fn send(
        &self,
        method: Method,
        body: Bytes,
        headers: impl Fn(&mut HeaderMap),
    ) -> Result<Reply, Trouble> {
        let mut target = self.url.clone();
        for _ in 0..=REDIRECTS {
            let mut request = Request::new(Whole(body.clone()));
            *request.method_mut() = method.clone();
            *request.uri_mut() = self.request_target(&target);
            request.headers_mut().reserve(16);
            headers(request.headers_mut());
            for (name, value) in &self.headers {
                request.headers_mut().append(name.clone(), value.clone());
            }
            let reply = self.exchange(request).await?;
            let Some(location) = head::location(&reply.head) else { return Ok(reply) };
            match head::follow(&method, reply.head.status, &target, location) {
                Ok(next) => target = next,
                Err(why) => return Err(reply.refused_because(why)),
            }
            self.give_back(reply).await;
        }
        Err(Trouble::NotMcp(format!("redirected more than {REDIRECTS} times").into()))
    }

    /// As the request line says it: a proxy needs all of it.
    fn request_target(&self, url: &Uri) -> Uri {
        if self.proxy.is_some() && self.tls.is_none() {
            return url.clone();
        }
        url.path_and_query().map_or_else(Uri::default, |path| Uri::from(path.clone()))
    }

    /// One request on one connection. One that was kept may turn out to be closed; as long as
    /// nothing was written to it, the request goes to another.
    async fn exchange(&self, mut request: Request<Whole>) -> Result<Reply, Trouble> {
        loop {
            let (mut link, used) = self.link().await.map_err(|why| Trouble::Unreachable(why.into()))?;
            let mut error = match link.send(request).await {
                Ok(response) => return Ok(Reply::new(link, response)),
                Err(error) => error,
            };
            match error.take_message() {
                None => return Err(words::broken(error.error())),
                Some(unsent) if used => request = unsent,
                Some(_) => return Err(Trouble::Unreachable(words::of_hyper(error.error()).into())),
            }
        }
    }

    /// Reads what is left of a response, if that is soon done, and keeps its connection.
    pub async fn give_back(&self, reply: Reply) {
        let time = head::kept_for(&reply.head).unwrap_or(self.pool_idle).min(self.pool_idle);
        if let Some(link) = reply.finish().await {
            self.pool.give(link, time);
        }
    }
}
