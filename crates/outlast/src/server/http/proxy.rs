//! The way through a proxy that the environment names.

use super::tcp::Host;
use super::words;
use http::Uri;
use http::header::HeaderValue;
use hyper_util::client::proxy::matcher::Matcher;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Bytes of a proxy's answer. A longer one is refused.
const ANSWER: usize = 8 << 10;

/// A proxy.
pub struct Proxy {
    pub host: Host,
    pub authorization: Option<HeaderValue>,
}

/// The proxy for a URL; none for this machine itself. The error is for people.
pub fn of(url: &Uri, host: &Host, proxies: &Matcher) -> Result<Option<Proxy>, String> {
    let Some(found) = proxies.intercept(url).filter(|_| !host.is_loopback()) else { return Ok(None) };
    let scheme = found.uri().scheme_str().unwrap_or_default();
    let Some(proxy) = Host::of(found.uri()) else { return Ok(None) };
    if scheme != "http" {
        return Err(format!(
            "the proxy {proxy} of the environment speaks {scheme}; only http:// proxies are supported \
             (NO_PROXY exempts a host)"
        ));
    }
    Ok(Some(Proxy { host: proxy, authorization: found.basic_auth().cloned() }))
}

impl Proxy {
    /// Has the proxy connect us to a host. The error is for people.
    pub async fn tunnel(&self, stream: &mut TcpStream, to: &Host) -> Result<(), String> {
        let mut request = format!("CONNECT {to} HTTP/1.1\r\nHost: {to}\r\n").into_bytes();
        if let Some(authorization) = &self.authorization {
            request.extend_from_slice(b"Proxy-Authorization: ");
            request.extend_from_slice(authorization.as_bytes());
            request.extend_from_slice(b"\r\n");
        }
        request.extend_from_slice(b"\r\n");
        let failed = |error: std::io::Error| format!("the proxy {}: {}", self.host, words::of_io(&error));
        stream.write_all(&request).await.map_err(failed)?;
        let mut answer = Vec::with_capacity(512);
        while !answer.ends_with(b"\r\n\r\n") {
            // Byte for byte, once per connection: what follows is not ours to read.
            match stream.read_u8().await {
                Ok(byte) if answer.len() < ANSWER => answer.push(byte),
                Ok(_) => return Err(format!("the proxy {} answers too much", self.host)),
                Err(error) => return Err(failed(error)),
            }
        }
        match status(&answer) {
            Some(200..=299) => Ok(()),
            Some(407) => Err(format!("the proxy {} wants other credentials (407)", self.host)),
            Some(status) => Err(format!("the proxy {} refused to connect to {to} ({status})", self.host)),
            None => Err(format!("the proxy {} does not speak HTTP", self.host)),
        }
    }
}

fn status(answer: &[u8]) -> Option<u16> {
    let rest = answer.strip_prefix(b"HTTP/1.")?.get(2..5)?;
    std::str::from_utf8(rest).ok()?.parse().ok()
}
