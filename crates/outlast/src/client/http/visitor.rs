//! Who stands at the door: is the name they called us by ours, does a web page send them, do they have
//! a token?
//!
//! A web page may have its own name point to this machine. Its requests then carry that name in `Host`
//! and in `Origin`, and that is what gives them away.

use super::token::Tokens;
use crate::dashboard::sight::Reach;
use crate::http1::fields::{Fields, Known as Field, visible};
use outlast_engine::http::SAME_USER;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What is asked of a visitor.
#[derive(Debug, Default)]
pub struct Doorman {
    /// Only this machine can reach us.
    pub loopback: bool,
    /// Names that requests may use, beside addresses and `localhost`.
    pub hosts: Vec<String>,
    /// Web origins that may send requests.
    pub origins: Vec<String>,
    /// Who is let in, and what is shown to whom on the dashboard.
    pub access: Access,
    /// All who come are the user that we run for.
    pub same_user: bool,
}

/// Who comes in with a token. The file may say otherwise while we run.
#[derive(Debug, Default)]
pub struct Access {
    /// Without a token nobody comes in. Once that is so it stays so: a file that loses its last token opens nothing.
    asked: AtomicBool,
    /// How often the file has said otherwise.
    changes: AtomicU64,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    /// Those of `--token-file`, which count as long as we run.
    lasting: Tokens,
    tokens: Tokens,
    /// What is shown to whom on the dashboard; to who is not here, what is its own.
    reach: BTreeMap<Box<str>, Reach>,
}

impl Access {
    /// With what a token file says, and what the file of servers does.
    pub fn new(lasting: Option<Tokens>, tokens: Tokens, reach: BTreeMap<Box<str>, Reach>) -> Access {
        let asked = AtomicBool::new(lasting.is_some() || !tokens.is_empty());
        let known = Known { lasting: lasting.unwrap_or_default(), tokens, reach };
        Access { asked, changes: AtomicU64::default(), known: Mutex::new(known) }
    }

    /// The file says otherwise now.
    pub fn replace(&self, tokens: Tokens, reach: BTreeMap<Box<str>, Reach>) {
        if !tokens.is_empty() {
            self.asked.store(true, Ordering::Relaxed);
        }
        let mut known = self.known();
        (known.tokens, known.reach) = (tokens, reach);
        self.changes.fetch_add(1, Ordering::Relaxed);
    }

    /// What it is compared with to see whether the file has said otherwise meanwhile.
    pub fn changes(&self) -> u64 {
        self.changes.load(Ordering::Relaxed)
    }

    /// Whether a token is needed.
    pub fn is_asked_for(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }

    /// What somebody sees of the dashboard.
    pub fn reach_of(&self, principal: &str) -> Reach {
        self.known().reach.get(principal).copied().unwrap_or_default()
    }

    fn name_of(&self, token: &str) -> Option<Box<str>> {
        let known = self.known();
        known.tokens.name_of(token).or(known.lasting.name_of(token)).map(Box::from)
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Why somebody is not let in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// 403: what it is, and what helps.
    Forbidden(String),
    /// 401.
    Unauthorized,
}

impl Doorman {
    /// Checks who a request says it was sent to, and by which page.
    /// `named` is the name in its first line, where there is one; it counts before `Host`.
    pub fn check_names(&self, named: Option<&str>, fields: &Fields) -> Result<(), Refusal> {
        let host = one(fields, Field::Host)?.unwrap_or_default();
        if let Some(unknown) = [Some(host), named].into_iter().flatten().find(|name| !self.knows_host(name)) {
            return Err(forbidden("Host", unknown, "--allow-host"));
        }
        if let Some(origin) = one(fields, Field::Origin)?
            && !self.knows_origin(origin, host)
        {
            return Err(forbidden("Origin", origin, "--allow-origin"));
        }
        Ok(())
    }

    /// The name of a request's token, where tokens are asked for.
    pub fn principal(&self, fields: &Fields) -> Result<Option<Box<str>>, Refusal> {
        if self.same_user {
            return Ok(Some(SAME_USER.into()));
        }
        if !self.access.is_asked_for() {
            return Ok(None);
        }
        let token = one(fields, Field::Authorization)?.and_then(bearer).ok_or(Refusal::Unauthorized)?;
        self.access.name_of(token).map(Some).ok_or(Refusal::Unauthorized)
    }

    /// Any address is a good `Host` where others may come: a name could be made to point to us, an address
    /// cannot.
    fn knows_host(&self, host: &str) -> bool {
        let name = without_port(host);
        self.knows_name(name) || (!self.loopback && address(name).is_some())
    }

    /// This machine, or a name that a person gave us.
    fn knows_name(&self, name: &str) -> bool {
        // What nearly everybody says needs no parsing.
        name == "127.0.0.1"
            || name.eq_ignore_ascii_case("localhost")
            || address(name).is_some_and(|address| address.is_loopback())
            || self.hosts.iter().any(|known| known.eq_ignore_ascii_case(name))
    }

    /// An address tells nothing about who wrote the page that it served: it must be the very one that the
    /// request came to.
    fn knows_origin(&self, origin: &str, host: &str) -> bool {
        let listed =
            self.origins.iter().any(|known| known.trim_end_matches('/').eq_ignore_ascii_case(origin));
        let from = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
        listed || from.is_some_and(|from| from == host || self.knows_name(without_port(from)))
    }
}

/// The address that a name is.
fn address(name: &str) -> Option<IpAddr> {
    let bare = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(name);
    bare.parse().ok()
}

/// A header that may stand once.
fn one(fields: &Fields, name: Field) -> Result<Option<&str>, Refusal> {
    let mut values = fields.all(name);
    let first = values.next();
    if values.next().is_some() {
        return Err(Refusal::Forbidden(format!("Forbidden: {} stands twice", name.as_str())));
    }
    match first.map(visible) {
        None => Ok(None),
        Some(Some(text)) => Ok(Some(text)),
        Some(None) => Err(Refusal::Forbidden(format!("Forbidden: {} is not readable", name.as_str()))),
    }
}

fn forbidden(header: &str, value: &str, flag: &str) -> Refusal {
    let shown: String = value.chars().filter(|c| c.is_ascii_graphic()).take(100).collect();
    Refusal::Forbidden(format!(
        "Forbidden: {header} `{shown}` is not known here; if it is yours, say so with {flag}"
    ))
}

fn bearer(value: &str) -> Option<&str> {
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// `localhost:80` and `[::1]:80` without the port.
fn without_port(host: &str) -> &str {
    match host.rfind(':') {
        Some(at) if !host[at..].contains(']') && host[at + 1..].bytes().all(|byte| byte.is_ascii_digit()) => {
            &host[..at]
        }
        _ => host,
    }
}

/// Whether only this machine can reach an address.
pub fn is_loopback(address: &SocketAddr) -> bool {
    address.ip().is_loopback()
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Doorman {
        fn check(&self, fields: &Fields) -> Result<Option<Box<str>>, Refusal> {
            self.check_names(None, fields)?;
            self.principal(fields)
        }
    }

    fn headers(pairs: &[(&str, &str)]) -> Fields {
        Fields::of_pairs(pairs)
    }

    #[test]
    fn names_that_are_not_ours_are_refused() {
        let door = Doorman { loopback: true, hosts: vec!["box.lan".into()], ..Doorman::default() };
        for host in
            ["localhost", "LOCALHOST:80", "127.0.0.1:7600", "127.9.9.9", "[::1]:80", "[::1]", "box.lan:1"]
        {
            assert_eq!(door.check(&headers(&[("host", host)])), Ok(None), "{host}");
        }
        for host in [
            "evil.example",
            "localhost.evil.example",
            "10.0.0.1",
            "127.0.0.1.evil.example:80",
            "",
            "localhost:80@evil",
        ] {
            assert!(matches!(door.check(&headers(&[("host", host)])), Err(Refusal::Forbidden(_))), "{host}");
        }
        assert!(door.check(&headers(&[])).is_err(), "no Host at all");
        assert!(door.check(&headers(&[("host", "localhost"), ("host", "evil.example")])).is_err());
    }

    #[test]
    fn web_pages_are_refused_unless_they_are_ours() {
        let door =
            Doorman { loopback: true, origins: vec!["https://app.example".into()], ..Doorman::default() };
        let check = |origin| door.check(&headers(&[("host", "localhost"), ("origin", origin)]));
        for origin in ["http://localhost:3000", "http://127.0.0.1", "https://app.example"] {
            assert_eq!(check(origin), Ok(None), "{origin}");
        }
        for origin in ["null", "http://evil.example", "file://", "https://app.example.evil", "localhost", ""]
        {
            assert!(check(origin).is_err(), "{origin}");
        }
    }

    #[test]
    fn a_client_of_the_same_user_needs_no_token_but_a_name_of_ours() {
        let door = Doorman { loopback: true, same_user: true, ..Doorman::default() };
        assert_eq!(door.check(&headers(&[("host", "localhost")])), Ok(Some(SAME_USER.into())));
        assert!(door.check(&headers(&[("host", "evil.example")])).is_err());
        assert!(super::super::token::new(SAME_USER).is_err(), "a token could have this name");
    }

    #[test]
    fn addresses_are_enough_where_others_may_come() {
        let door = Doorman::default();
        assert_eq!(door.check(&headers(&[("host", "10.0.0.1:7600")])), Ok(None));
        assert!(door.check(&headers(&[("host", "evil.example")])).is_err());
    }

    /// Where others may come, a page of any machine could otherwise send requests in a visitor's name.
    #[test]
    fn an_address_is_no_good_origin_unless_it_is_the_one_that_was_asked() {
        let door = Doorman::default();
        let check = |origin| door.check(&headers(&[("host", "10.0.0.1:7600"), ("origin", origin)]));
        for origin in
            ["http://10.0.0.1:7600", "https://10.0.0.1:7600", "http://localhost:3000", "http://[::1]:1"]
        {
            assert_eq!(check(origin), Ok(None), "{origin}");
        }
        for origin in
            ["http://6.6.6.6", "http://10.0.0.1", "http://10.0.0.1:1", "http://[2001:db8::1]", "null"]
        {
            assert!(check(origin).is_err(), "{origin}");
        }
    }

    #[test]
    fn tokens_are_asked_for() {
        let (token, line) = super::super::token::new("alice").unwrap();
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), line).unwrap();
        let access =
            Access::new(Some(Tokens::read(file.path()).unwrap()), Tokens::default(), BTreeMap::new());
        let door = Doorman { loopback: true, access, ..Doorman::default() };
        assert_eq!(door.check(&headers(&[("host", "localhost")])), Err(Refusal::Unauthorized));
        let with = |value: String| door.check(&headers(&[("host", "localhost"), ("authorization", &value)]));
        assert_eq!(with(format!("bearer {token}")), Ok(Some("alice".into())));
        assert_eq!(with(format!("Basic {token}")), Err(Refusal::Unauthorized));
    }

    /// A file that loses its last token must not let everybody in.
    #[test]
    fn tokens_of_the_file_may_change_and_are_asked_for_ever_after() {
        let door = Doorman { loopback: true, ..Doorman::default() };
        let with = |token: &str| {
            let value = format!("Bearer {token}");
            door.check(&headers(&[("host", "localhost"), ("authorization", &value)]))
        };
        assert_eq!(with("any"), Ok(None));
        let (token, line) = super::super::token::new("alice").unwrap();
        let hash = line.split(' ').nth(1).and_then(outlast_engine::hex::decode).unwrap();
        let before = door.access.changes();
        door.access.replace(Tokens::default().and([("alice".into(), hash)]), BTreeMap::new());
        assert_eq!((with(&token), with("any")), (Ok(Some("alice".into())), Err(Refusal::Unauthorized)));
        assert_ne!(door.access.changes(), before);
        door.access.replace(Tokens::default(), BTreeMap::new());
        assert_eq!(with(&token), Err(Refusal::Unauthorized));
    }
}
