//! A TCP connection to a host by its name, whichever of its addresses answers first (RFC 8305): they are tried
//! one shortly after another, the families in turns, so that a silent address costs a moment and not all of
//! the time that there is.

use super::words;
use socket2::{SockRef, TcpKeepalive};
use std::io;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::{TcpStream, lookup_host};
use tokio::task::JoinSet;

/// How long an address has before the next one is tried too. One that fails is not waited for.
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
    /// Of a URL; `None` if it names no host, or a port that cannot be.
    pub fn of(url: &http::Uri) -> Option<Host> {
        let name = url.host().filter(|name| !name.is_empty())?;
        let bare = name.strip_prefix('[').and_then(|name| name.strip_suffix(']'));
        // The parser takes any digits for a port, and then knows none.
        let (_, after) = url.authority()?.as_str().rsplit_once(name)?;
        let port = match after.strip_prefix(':') {
            None | Some("") if url.scheme_str() == Some("https") => 443,
            None | Some("") => 80,
            Some(port) => port.parse().ok().filter(|port| *port > 0)?,
        };
        Some(Host { name: bare.unwrap_or(name).into(), port })
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
    connect_to(found.collect()).await
}

/// Connects to one of these addresses and to no other; the error is for people.
pub async fn connect_to(addresses: Vec<SocketAddr>) -> Result<TcpStream, String> {
    let stream = race(in_turns(addresses)).await?;
    // What cannot be set is only slower.
    let _ = stream.set_nodelay(true);
    let alive =
        TcpKeepalive::new().with_time(ALIVE_AFTER).with_interval(ALIVE_AGAIN).with_retries(ALIVE_TRIES);
    let _ = SockRef::from(&stream).set_tcp_keepalive(&alive);
    Ok(stream)
}

/// The families in turns, beginning with that of the first address; within one in the order of the resolver.
fn in_turns(addresses: Vec<SocketAddr>) -> Vec<SocketAddr> {
    let preferred = addresses.first().is_some_and(SocketAddr::is_ipv6);
    let (first, second): (Vec<_>, Vec<_>) =
        addresses.into_iter().partition(|address| address.is_ipv6() == preferred);
    let mut second = second.into_iter();
    let mut turns = Vec::with_capacity(first.len() + second.len());
    for address in first {
        turns.push(address);
        turns.extend(second.next());
    }
    turns.extend(second);
    turns
}

/// Tries the addresses in their order, each a moment after the one before or as soon as one fails. The first
/// connection wins and the others are given up; if there is none, the error is that of the first to fail.
async fn race(addresses: Vec<SocketAddr>) -> Result<TcpStream, String> {
    if let [only] = addresses[..] {
        return TcpStream::connect(only).await.map_err(|error| failed(only, &error));
    }
    let (mut trying, mut waiting) = (JoinSet::new(), addresses.into_iter());
    let mut failure = None;
    loop {
        if let Some(address) = waiting.next() {
            trying.spawn(async move { (address, TcpStream::connect(address).await) });
        }
        let ended = match waiting.len() {
            0 => trying.join_next().await,
            _ => match tokio::time::timeout(HEAD_START, trying.join_next()).await {
                Ok(ended) => ended,
                Err(_still_trying) => continue,
            },
        };
        match ended {
            Some(Ok((_, Ok(stream)))) => return Ok(stream),
            Some(Ok((address, Err(error)))) => {
                failure.get_or_insert_with(|| failed(address, &error));
            }
            Some(Err(_)) => {}
            None => return Err(failure.unwrap_or_else(|| "the name has no address".into())),
        }
    }
}

fn failed(address: SocketAddr, error: &io::Error) -> String {
    format!("{} ({address})", words::of_io(error))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::disallowed_methods)] // it is the paused clock that is read here

    use super::*;

    #[test]
    fn a_host_is_read_from_a_url() {
        let shown = |url: &'static str| Host::of(&http::Uri::from_static(url)).map(|host| host.to_string());
        assert_eq!(shown("https://Example.org/mcp").as_deref(), Some("Example.org:443"));
        assert_eq!(shown("http://example.org").as_deref(), Some("example.org:80"));
        assert_eq!(shown("http://[::1]:8080/x").as_deref(), Some("[::1]:8080"));
        assert_eq!(shown("http://u:p@example.org:81/").as_deref(), Some("example.org:81"));
        assert_eq!(shown("/mcp"), None);
        assert_eq!(shown("http://example.org:99999/"), None);
        assert_eq!(shown("http://example.org:0/"), None);
    }

    #[test]
    fn families_take_turns() {
        let of = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect::<Vec<SocketAddr>>();
        let found = of(&["[::1]:1", "[::2]:1", "[::3]:1", "1.0.0.1:1", "1.0.0.2:1"]);
        assert_eq!(in_turns(found), of(&["[::1]:1", "1.0.0.1:1", "[::2]:1", "1.0.0.2:1", "[::3]:1"]));
        let found = of(&["1.0.0.1:1", "[::1]:1", "[::2]:1"]);
        assert_eq!(in_turns(found), of(&["1.0.0.1:1", "[::1]:1", "[::2]:1"]));
        assert_eq!(in_turns(Vec::new()), []);
    }

    /// Somebody who listens and takes no more connections: whoever tries hears nothing.
    struct Silent {
        _listener: socket2::Socket,
        _filling: Vec<socket2::Socket>,
        address: SocketAddr,
    }

    impl Silent {
        fn new() -> Silent {
            use socket2::{Domain, Socket, Type};
            let new = || Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
            let listener = new();
            listener.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
            listener.listen(0).unwrap();
            let address = listener.local_addr().unwrap();
            let fill = |_| {
                let socket = new();
                socket.set_nonblocking(true).unwrap();
                let _ = socket.connect(&address);
                socket
            };
            let filling = (0..8).map(fill).collect();
            Silent { _listener: listener, _filling: filling, address: address.as_socket().unwrap() }
        }
    }

    /// Addresses of one family do not share one budget: three dead ones cost three moments.
    #[tokio::test(start_paused = true)]
    async fn silent_addresses_do_not_keep_the_next_one_waiting() {
        let silent = [Silent::new(), Silent::new(), Silent::new()];
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let alive = listener.local_addr().unwrap();
        let began = tokio::time::Instant::now();
        let addresses = silent.iter().map(|silent| silent.address).chain([alive]).collect();
        let stream = tokio::time::timeout(Duration::from_secs(10), race(addresses)).await;
        assert_eq!(stream.expect("in time").unwrap().peer_addr().unwrap(), alive);
        assert_eq!(began.elapsed(), 3 * HEAD_START);
    }

    #[tokio::test(start_paused = true)]
    async fn an_address_that_fails_is_not_waited_for_and_is_named() {
        let closed = || std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let (first, second) = (closed(), closed());
        let began = tokio::time::Instant::now();
        let why = race(vec![first, second]).await.unwrap_err();
        assert!(why.ends_with(&format!("({first})")), "{why}");
        assert_eq!(began.elapsed(), Duration::ZERO);
        assert_eq!(race(Vec::new()).await.unwrap_err(), "the name has no address");
    }

    #[test]
    fn this_machine_is_known_by_all_its_names() {
        let loopback = |name: &str| Host { name: name.into(), port: 1 }.is_loopback();
        assert!(loopback("localhost") && loopback("127.0.0.2") && loopback("::1"));
        assert!(!loopback("localhost.example") && !loopback("192.0.2.1"));
    }
}
