//! A TCP connection to a host by its name, whichever of its addresses answers first.

use super::words;
use socket2::{SockRef, TcpKeepalive};
use std::net::SocketAddr;
use std::pin::pin;
use std::time::Duration;
use tokio::net::{TcpStream, lookup_host};

/// How long the addresses of one family have before the other family is tried too (RFC 8305 has
/// 250 ms).
const HEAD_START: Duration = Duration::from_millis(250);

/// When a silent connection is asked whether it lives, how often again, and how many times: a dead
/// one is noticed after two minutes.
const ALIVE_AFTER: Duration = Duration::from_secs(60);
const ALIVE_AGAIN: Duration = Duration::from_secs(15);
const ALIVE_TRIES: u32 = 4;

/// A name or an address, and a port.
#[derive(Clone, Debug)]
pub struct Host {
    /// Without brackets.
    pub name: Box<str>,
    pub port: u16,
}

impl Host {
    /// Of a URL; `None` if it names no host.
    pub fn of(url: &http::Uri) -> Option<Host> {
        let name = url.host().filter(|name| !name.is_empty())?;
        let bare = name.strip_prefix('[').and_then(|name| name.strip_suffix(']'));
        let usual = if url.scheme_str() == Some("https") { 443 } else { 80 };
        Some(Host { name: bare.unwrap_or(name).into(), port: url.port_u16().unwrap_or(usual) })
    }

    /// Whether it is this machine.
    pub fn is_loopback(&self) -> bool {
        let address = self.name.parse::<std::net::IpAddr>();
        address.map_or(self.name.eq_ignore_ascii_case("localhost"), |address| address.is_loopback())
    }
}

impl std::fmt::Display for Host {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Host { name, port } = self;
        if name.contains(':') { write!(f, "[{name}]:{port}") } else { write!(f, "{name}:{port}") }
    }
}

/// Connects; the error is for people.
pub async fn connect(host: &Host) -> Result<TcpStream, String> {
    let found = lookup_host((&*host.name, host.port)).await;
    let found = found.map_err(|error| format!("cannot resolve {}: {}", host.name, words::of_io(&error)))?;
    let addresses: Vec<SocketAddr> = found.collect();
    let preferred = addresses.first().is_some_and(SocketAddr::is_ipv6);
    let (first, second): (Vec<SocketAddr>, Vec<SocketAddr>) =
        addresses.into_iter().partition(|address| address.is_ipv6() == preferred);
    let stream = race(&first, &second).await?;
    // What cannot be set is only slower.
    let _ = stream.set_nodelay(true);
    let alive =
        TcpKeepalive::new().with_time(ALIVE_AFTER).with_interval(ALIVE_AGAIN).with_retries(ALIVE_TRIES);
    let _ = SockRef::from(&stream).set_tcp_keepalive(&alive);
    Ok(stream)
}

/// Tries one family after the other, the second without waiting for the first for long.
async fn race(first: &[SocketAddr], second: &[SocketAddr]) -> Result<TcpStream, String> {
    let mut early = pin!(one_of(first));
    if second.is_empty() {
        return early.await;
    }
    match tokio::time::timeout(HEAD_START, &mut early).await {
        Ok(Ok(stream)) => return Ok(stream),
        Ok(Err(why)) => return one_of(second).await.map_err(|_| why),
        Err(_still_trying) => {}
    }
    let mut late = pin!(one_of(second));
    tokio::select! {
        done = &mut early => match done {
            Ok(stream) => Ok(stream),
            Err(_) => late.await,
        },
        done = &mut late => match done {
            Ok(stream) => Ok(stream),
            Err(_) => early.await,
        },
    }
}

async fn one_of(addresses: &[SocketAddr]) -> Result<TcpStream, String> {
    let mut last = String::from("the name has no address");
    for address in addresses {
        match TcpStream::connect(address).await {
            Ok(stream) => return Ok(stream),
            Err(error) => last = format!("{} ({address})", words::of_io(&error)),
        }
    }
    Err(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_read_from_a_url() {
        let shown = |url: &'static str| Host::of(&http::Uri::from_static(url)).map(|host| host.to_string());
        assert_eq!(shown("https://Example.org/mcp").as_deref(), Some("Example.org:443"));
        assert_eq!(shown("http://example.org").as_deref(), Some("example.org:80"));
        assert_eq!(shown("http://[::1]:8080/x").as_deref(), Some("[::1]:8080"));
        assert_eq!(shown("http://u:p@example.org:81/").as_deref(), Some("example.org:81"));
        assert_eq!(shown("/mcp"), None);
    }

    #[test]
    fn this_machine_is_known_by_all_its_names() {
        let loopback = |name: &str| Host { name: name.into(), port: 1 }.is_loopback();
        assert!(loopback("localhost") && loopback("127.0.0.2") && loopback("::1"));
        assert!(!loopback("localhost.example") && !loopback("192.0.2.1"));
    }
}
