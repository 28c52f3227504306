//! Where the database is: what a URL says, checked before anything is connected.

use super::error::Shown;
use crate::config;
use crate::server::http::tcp::Host as Address;
use crate::server::http::tls::Tls;
use crate::sys::database;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use tokio_postgres::Config;
use tokio_postgres::config::SslMode;

/// Where the database is, and how to get in.
#[derive(Clone)]
pub struct Database(Arc<Inner>);

struct Inner {
    config: Config,
    hosts: Vec<Reach>,
    shown: Shown,
}

/// One way to reach a host.
pub enum Reach {
    Tcp(Address, Option<Tls>),
    /// A socket on this machine, where the system has such.
    Local(PathBuf),
}

/// Never the password.
impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Database({})", self.0.shown)
    }
}

impl Database {
    /// Reads a URL: `postgres://user:password@host:5432/database?sslmode=…&sslrootcert=…`. The error is for people,
    /// and holds nothing of a password.
    pub fn parse(url: &str) -> Result<Database, String> {
        if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
            return Err("the URL of a database begins with postgres://".into());
        }
        let (url, ours) = take_options(url);
        let mut config: Config = url.parse().map_err(|error| wrong(&error))?;
        if config.get_user().is_none() {
            config.user(config::user_name());
        }
        let user = config.get_user().unwrap_or_default().to_owned();
        let database = config.get_dbname().unwrap_or(&user).to_owned();
        config.application_name("outlast");
        let hosts = reaches(&config, &ours)?;
        let host = hosts.iter().map(Reach::to_string).collect::<Vec<_>>().join(", ");
        let shown = Shown { host, database, user };
        Ok(Database(Arc::new(Inner { config, hosts, shown })))
    }

    /// As people may see it.
    pub fn shown(&self) -> &Shown {
        &self.0.shown
    }

    /// Tried in this order.
    pub fn hosts(&self) -> &[Reach] {
        &self.0.hosts
    }

    /// How to get in, with TLS or without.
    pub fn config(&self, tls: bool) -> Config {
        let mut config = self.0.config.clone();
        config.ssl_mode(if tls { SslMode::Require } else { SslMode::Disable });
        config
    }
}

/// What of a URL is ours to understand.
#[derive(Default)]
struct Options {
    mode: Option<String>,
    roots: Option<PathBuf>,
}

/// Takes `sslmode` and `sslrootcert` out of a URL, which PostgreSQL's driver knows less of than its users do.
fn take_options(url: &str) -> (String, Options) {
    let mut ours = Options::default();
    let Some((base, query)) = url.split_once('?') else { return (url.to_owned(), ours) };
    let mut others = Vec::new();
    for pair in query.split('&') {
        match pair.split_once('=') {
            Some(("sslmode", mode)) => ours.mode = Some(mode.to_owned()),
            Some(("sslrootcert", path)) => ours.roots = Some(unescaped(path).into()),
            _ => others.push(pair),
        }
    }
    let query = others.join("&");
    (if query.is_empty() { base.to_owned() } else { format!("{base}?{query}") }, ours)
}

/// `%2F` and the like.
fn unescaped(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, others)) = rest.split_first() {
        let digits = others.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()).filter(|_| *first == b'%') {
            Some(byte) => {
                bytes.push(byte);
                rest = &others[2..];
            }
            None => {
                bytes.push(*first);
                rest = others;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Without what was written, which may be a password.
fn wrong(error: &tokio_postgres::Error) -> String {
    let cause = std::error::Error::source(error).map(ToString::to_string);
    format!("the URL of the database cannot be read ({})", cause.unwrap_or_else(|| error.to_string()))
}

fn reaches(config: &Config, ours: &Options) -> Result<Vec<Reach>, String> {
    let ports = config.get_ports();
    let hosts = config.get_hosts().iter().enumerate();
    let hosts = hosts.map(|(at, host)| {
        let port = ports.get(at).or(ports.first()).copied().unwrap_or(5432);
        match database::folder_or_name(host) {
            Ok(folder) => Ok(Reach::Local(folder.join(format!(".s.PGSQL.{port}")))),
            Err(name) => tcp(name, port, ours),
        }
    });
    let hosts = hosts.collect::<Result<Vec<_>, _>>()?;
    if hosts.is_empty() { Err("the URL of the database names no host".into()) } else { Ok(hosts) }
}

/// TLS with a checked certificate, unless it is this machine or somebody wrote that there is to be none.
fn tcp(name: &str, port: u16, ours: &Options) -> Result<Reach, String> {
    let address = Address { name: name.trim_matches(['[', ']']).into(), port };
    let secure = match ours.mode.as_deref() {
        None => !address.is_loopback() || ours.roots.is_some(),
        Some("disable") => false,
        Some("require" | "verify-full") => true,
        Some(other) => {
            return Err(format!(
                "sslmode={other} would send the password to whoever answers; write sslmode=verify-full, or \
                 sslmode=disable in a network that you trust"
            ));
        }
    };
    let tls = secure.then(|| Tls::for_database(&address, ours.roots.as_deref())).transpose()?;
    Ok(Reach::Tcp(address, tls))
}

impl fmt::Display for Reach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reach::Tcp(address, _) => address.fmt(f),
            Reach::Local(path) => path.display().fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(url: &str) -> String {
        Database::parse(url).unwrap().shown().host.clone()
    }

    #[test]
    fn a_url_says_where() {
        assert_eq!(host("postgres://ann:secret@127.0.0.1:6000/db"), "127.0.0.1:6000");
        assert_eq!(host("postgresql://ann@localhost/db?connect_timeout=3"), "localhost:5432");
        assert_eq!(host("postgres://ann@a.example,b.example/db"), "a.example:5432, b.example:5432");
        let database = Database::parse("postgres://ann:secret@localhost").unwrap();
        assert_eq!((&*database.shown().database, &*database.shown().user), ("ann", "ann"));
        assert_eq!(format!("{database:?}"), "Database(PostgreSQL at localhost:5432)");
    }

    #[test]
    fn a_password_goes_only_where_a_certificate_says_who_it_is() {
        let secure = |url: &str| match &Database::parse(url).unwrap().hosts()[0] {
            Reach::Tcp(_, tls) => tls.is_some(),
            Reach::Local(_) => false,
        };
        assert!(secure("postgres://a:b@db.example/x") && !secure("postgres://a:b@localhost/x"));
        assert!(secure("postgres://a:b@localhost/x?sslmode=require"));
        assert!(!secure("postgres://a:b@db.example/x?sslmode=disable"));
        for mode in ["prefer", "allow", "verify-ca"] {
            let why = Database::parse(&format!("postgres://a:b@h/x?sslmode={mode}")).unwrap_err();
            assert!(why.contains("sslmode=verify-full"), "{why}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_said_without_the_password() {
        for url in ["mysql://a:secret@h/x", "postgres://a:secret@h:port/x", "postgres://a:secret@h/x?no=1"] {
            let why = Database::parse(url).unwrap_err();
            assert!(!why.contains("secret"), "{why}");
        }
        assert_eq!(unescaped("%2Fetc%2fca%2"), "/etc/ca%2");
    }
}
