//! What people wrote: flags and the environment, checked, as the engine's configuration.
//!
//! The only place that reads the environment. `file` reads `outlast.toml`, and never one from the
//! working directory: a cloned repository must not configure us.

#![allow(clippy::disallowed_methods)] // this is the one place

pub mod file;

use crate::callbacks::Callers;
use crate::client::http::Bounds;
use crate::client::http::addresses::Network;
use crate::dashboard::sight::Reach;
use crate::observe::log::{Format, Log};
use crate::observe::otlp::{self, Collector};
use crate::server::http::parse_header;
use crate::store::{Database, Home, Place};
use http::{HeaderName, HeaderValue};
use outlast_engine::idempotency::KeyPlace;
use outlast_engine::policy::Rules;
use outlast_engine::profile::{Learn, Profile};
use outlast_engine::settings::{BadValue, Glob, Key, Kind, SETTINGS, Setting, Value};
use outlast_engine::{ClientCap, Config, Level, Manner, Restart, ServerConfig, Share, Transport};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// How often a quiet server of a service is asked whether it is there, if nobody says otherwise.
const HEARTBEAT: Duration = Duration::from_secs(30);

/// Variables of the environment that are ours; a server never sees them.
pub fn own_variables() -> impl Iterator<Item = (OsString, OsString)> {
    std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("OUTLAST_"))
}

/// Variables that a server sees.
pub fn servers_variables() -> impl Iterator<Item = (OsString, OsString)> {
    std::env::vars_os().filter(|(name, _)| !name.to_string_lossy().starts_with("OUTLAST_"))
}

/// A variable of the environment, for `${VAR}`.
pub fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// The path of our own program, for people and their files.
pub fn own_program() -> std::io::Result<PathBuf> {
    std::env::current_exe()
}

/// The program that runs here, to start another process of it: on Linux also after somebody has replaced or
/// removed its file.
pub fn this_program() -> std::io::Result<PathBuf> {
    let runs = PathBuf::from("/proc/self/exe");
    if runs.exists() { Ok(runs) } else { own_program() }
}

/// The person's home directory.
pub fn home() -> Option<PathBuf> {
    directory(if cfg!(windows) { "USERPROFILE" } else { "HOME" })
}

/// A directory that a variable names. A relative one would mean another place for every program.
pub fn directory(variable: &str) -> Option<PathBuf> {
    std::env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute())
}

/// What the person who runs us is called.
pub fn user_name() -> String {
    ["USER", "LOGNAME", "USERNAME"].into_iter().find_map(any_variable).unwrap_or_else(|| "somebody".into())
}

/// Where a bare name of a program is looked for, in order.
pub fn search_path() -> Vec<PathBuf> {
    std::env::var_os("PATH").map(|path| std::env::split_paths(&path).collect()).unwrap_or_default()
}

/// A variable of the environment, whatever bytes it holds.
pub fn any_variable(name: &str) -> Option<String> {
    std::env::var_os(name).map(|value| value.to_string_lossy().into_owned())
}

/// Our arguments, the program's name first.
pub fn arguments() -> impl Iterator<Item = OsString> {
    std::env::args_os()
}

/// The working directory.
pub fn working_directory() -> Option<String> {
    Some(std::env::current_dir().ok()?.to_string_lossy().into_owned())
}

/// Where this user's programs keep what they want to find again.
pub fn state_folder() -> Option<PathBuf> {
    let base = match directory("XDG_STATE_HOME") {
        Some(base) => base,
        None if cfg!(windows) => directory("LOCALAPPDATA")?,
        None if cfg!(target_os = "macos") => home()?.join("Library/Application Support"),
        None => home()?.join(".local/state"),
    };
    Some(base.join("outlast"))
}

/// Where to keep what outlives a connection: as written, or as the environment says.
pub fn place(written: Option<&str>) -> Place {
    let named = variable("OUTLAST_STATE").filter(|name| !name.is_empty());
    let folder = match written.or(named.as_deref()) {
        Some("none") => None,
        Some(folder) => Some(PathBuf::from(folder)),
        None => state_folder(),
    };
    folder.map_or(Place::Memory, Place::Folder)
}

/// The same with a database, if one is written or the environment names one. The error is for people.
pub fn kept_at(state: Option<&str>, url: Option<&str>) -> Result<Home, String> {
    let named = variable("OUTLAST_STORE_URL").filter(|url| !url.is_empty() && state.is_none());
    let database = url.or(named.as_deref()).map(Database::parse).transpose();
    Ok(Home { place: place(state), database: database.map_err(|why| format!("--store-url: {why}"))? })
}

/// Everything that was configured.
#[derive(Debug)]
pub struct Settings {
    /// For the engine.
    pub engine: Config,
    /// For the log.
    pub log: Log,
    /// `state`.
    pub state: Option<String>,
    /// `store-url`.
    pub database: Option<Database>,
    /// Where messages are recorded.
    pub trace: Option<String>,
    /// Where traces go.
    pub otlp: OtlpSettings,
    /// Where the run is recorded.
    pub record: Option<String>,
    /// How a remote server is reached.
    pub remote: RemoteSettings,
    /// Where clients come in.
    pub service: ServiceSettings,
    /// Somebody said where keys stand.
    own_key_places: bool,
    /// Variables that begin as ours do and mean nothing.
    pub unknown: Vec<String>,
    /// Who is called back.
    pub callers: Callers,
    /// The file that all this comes from, to be read again.
    pub reading: Option<file::Reading>,
}

/// Where traces go. What of it is secret is not printed.
#[derive(Debug, Default)]
pub struct OtlpSettings {
    /// `otlp`.
    url: Option<http::Uri>,
    /// `otlp-header`.
    headers: Vec<(HeaderName, HeaderValue)>,
}

impl OtlpSettings {
    fn take_url(&mut self, text: &str) -> Result<(), BadValue> {
        self.url = if text == "off" { None } else { Some(otlp::endpoint(text)?) };
        Ok(())
    }

    fn take_header(&mut self, text: &str) -> Result<(), BadValue> {
        self.headers
            .push(parse_header(text, variable).map_err(|why| BadValue(format!("otlp-header: {why}")))?);
        Ok(())
    }

    /// The collector, if there is one. The error is for people.
    pub fn collector(self) -> Result<Option<Collector>, String> {
        self.url.map(|url| Collector::new(&url, self.headers)).transpose()
    }
}

/// How a remote server is reached, as it was written.
#[derive(Debug)]
pub struct RemoteSettings {
    /// `connect`.
    pub connect: Duration,
    /// `pool-idle`.
    pub pool_idle: Duration,
    /// `pool-max-idle`.
    pub pool_max_idle: usize,
    /// `header`, each as it was written.
    pub headers: Vec<String>,
    /// `ca-file`.
    pub ca_file: Option<PathBuf>,
}

impl Default for RemoteSettings {
    fn default() -> Self {
        RemoteSettings {
            connect: Duration::from_secs(10),
            pool_idle: Duration::from_secs(90),
            pool_max_idle: 32,
            headers: Vec::new(),
            ca_file: None,
        }
    }
}

/// Where clients come in and who they may be, as it was written.
#[derive(Debug)]
pub struct ServiceSettings {
    /// `listen`.
    pub listen: Option<String>,
    /// `token-file`.
    pub token_file: Option<PathBuf>,
    /// Tokens that a file has itself: names and hashes.
    pub tokens: Vec<(Box<str>, [u8; 32])>,
    /// What the dashboard shows to tokens of a file that say so.
    pub reach: BTreeMap<Box<str>, Reach>,
    /// `no-auth`.
    pub no_auth: bool,
    /// `allow-host`.
    pub hosts: Vec<String>,
    /// `allow-origin`.
    pub origins: Vec<String>,
    /// `max-bytes` and `max-connections`.
    pub bounds: Bounds,
    /// `max-connections-per-address`, if it was written.
    pub max_connections_per_address: Option<usize>,
    /// `trusted-proxies`.
    pub trusted_proxies: Vec<Network>,
    /// `metrics`.
    pub metrics: bool,
    /// `access-log`.
    pub access_log: Option<String>,
}

impl Settings {
    /// The built-in values for a command.
    pub fn new(command: &[OsString]) -> Settings {
        let first = command.first().map(|word| word.to_string_lossy()).unwrap_or_default();
        Settings::named(&server_name(command), &first)
    }

    /// The built-in values for a remote server.
    pub fn for_remote(url: &http::Uri) -> Settings {
        let host = url.host().unwrap_or_default();
        let mut settings = Settings::named(host, host);
        settings.engine.server_mut().transport = Transport::Http;
        settings
    }

    fn named(name: &str, command: &str) -> Settings {
        let engine =
            ServerConfig { name: name.into(), command: command.into(), ..ServerConfig::default() }.into();
        Settings {
            engine,
            log: Log { level: Level::Warn, format: Format::Text },
            state: None,
            database: None,
            trace: None,
            otlp: OtlpSettings::default(),
            record: None,
            remote: RemoteSettings::default(),
            service: ServiceSettings {
                listen: None,
                token_file: None,
                tokens: Vec::new(),
                reach: BTreeMap::new(),
                no_auth: false,
                hosts: Vec::new(),
                origins: Vec::new(),
                bounds: Bounds { bytes: 256 << 20, connections: 20_000 },
                max_connections_per_address: None,
                trusted_proxies: Vec::new(),
                metrics: false,
                access_log: None,
            },
            own_key_places: false,
            unknown: Vec::new(),
            callers: Callers::default(),
            reading: None,
        }
    }

    /// What is built in for a service.
    pub fn serving(mut self) -> Settings {
        self.engine.manner = Manner::Serve;
        self.engine.resumable = true;
        self.engine.tasks = true;
        self.engine.server_mut().heartbeat = Some(HEARTBEAT);
        self
    }

    /// Where to keep what outlives a connection.
    pub fn place(&self) -> Place {
        place(self.state.as_deref())
    }

    /// Takes the environment's values. Flags come after them and so win over them.
    pub fn take_environment(&mut self) -> Result<(), BadValue> {
        let (written, unknown) = environment();
        self.unknown = unknown;
        for (setting, value, name) in written {
            let named = |error: BadValue| BadValue(format!("{name}: {error}"));
            if setting.kind == Kind::Rules {
                self.engine.rules_mut().add(setting.key, &value, &name).map_err(named)?;
            } else {
                self.take(setting, &value, &name).map_err(named)?;
            }
        }
        Ok(())
    }

    /// Takes one flag's value.
    pub fn take_flag(&mut self, setting: &'static Setting, value: &str) -> Result<(), BadValue> {
        let source = format!("--{}", setting.name);
        let named = |error: BadValue| BadValue(format!("{source}: {error}"));
        if setting.kind == Kind::Rules {
            return self.engine.rules_mut().add(setting.key, value, &source).map_err(named);
        }
        self.take(setting, value, &source).map_err(|error| BadValue(format!("--{error}")))
    }

    fn take(&mut self, setting: &'static Setting, text: &str, source: &str) -> Result<(), BadValue> {
        let server = Arc::make_mut(&mut self.engine.server);
        let Some(value) = take_of_server(server, &mut self.remote, setting.key, setting.parse(text)?) else {
            return Ok(());
        };
        match (setting.key, value) {
            (Key::Drain, Value::Time(Some(time))) => self.engine.drain = time,
            (Key::MaxMessage, Value::Size(size)) => self.engine.max_message = size,
            (Key::ListWait, Value::Time(Some(time))) => self.engine.list_wait = time,
            (Key::DeclareTimeouts, Value::Switch(on)) => self.engine.declare_timeouts = on,
            (Key::Tasks, Value::Switch(on)) => self.engine.tasks = on,
            (Key::TaskAfter, Value::Time(Some(time))) => self.engine.task_after = time,
            (Key::TaskTtl, Value::Time(Some(time))) => self.engine.task_ttl = time,
            (Key::TaskTtlMax, Value::Time(Some(time))) => self.engine.task_ttl_max = time,
            (Key::IdempotencyKey, Value::Text(path)) => self.take_key_place(&path)?,
            (Key::Redact, Value::Text(glob)) => self.engine.redact.push(Glob::new(&glob)?),
            (Key::ClientCap, Value::Time(time)) => {
                self.engine.client_cap = time.map_or(ClientCap::Off, ClientCap::After)
            }
            (Key::ClientProfile, Value::Text(row)) => {
                self.engine.profiles.written.push(Profile::parse(&row, source)?)
            }
            (Key::Learn, Value::Text(word)) => self.engine.learn = learn(&word),
            (Key::State, Value::Text(path)) => self.state = Some(path),
            (Key::StoreUrl, Value::Text(url)) => {
                self.database =
                    Some(Database::parse(&url).map_err(|why| BadValue(format!("store-url: {why}")))?)
            }
            (Key::SessionIdle, Value::Time(Some(time))) => self.engine.session_idle = time,
            (Key::ResumeWait, Value::Time(Some(time))) => self.engine.resume_wait = time,
            (Key::ResumeMinWait, Value::Time(Some(time))) => self.engine.resume_min_wait = time,
            (Key::MaxSessions, Value::Count(count)) => self.engine.max_sessions = count as usize,
            (Key::MaxCalls, Value::Count(count)) => self.engine.max_calls = count as usize,
            (Key::MaxBytes, Value::Size(size)) => self.service.bounds.bytes = size,
            (Key::MaxConnections, Value::Count(count)) => {
                self.service.bounds.connections = count.max(1) as usize
            }
            (Key::MaxConnectionsPerAddress, Value::Count(count)) => {
                self.service.max_connections_per_address = Some(count.max(1) as usize)
            }
            (Key::TrustedProxies, Value::Text(text)) => self.service.trusted_proxies.push(network(&text)?),
            (Key::Listen, Value::Text(text)) => self.service.listen = Some(text),
            (Key::TokenFile, Value::Text(path)) => self.service.token_file = Some(path.into()),
            (Key::NoAuth, Value::Switch(on)) => self.service.no_auth = on,
            (Key::Metrics, Value::Switch(on)) => self.service.metrics = on,
            (Key::AllowHost, Value::Text(text)) => self.service.hosts.push(text),
            (Key::AllowOrigin, Value::Text(text)) => self.service.origins.push(text),
            (Key::Log, Value::Text(word)) => self.log.level = level(&word),
            (Key::LogFormat, Value::Text(word)) => self.log.format = format_named(&word),
            (Key::TraceMessages, Value::Text(path)) => self.trace = Some(path),
            (Key::Otlp, Value::Text(url)) => self.otlp.take_url(&url)?,
            (Key::OtlpHeader, Value::Text(text)) => self.otlp.take_header(&text)?,
            (Key::AccessLog, Value::Text(path)) => self.service.access_log = Some(path),
            (Key::Record, Value::Text(path)) => self.record = Some(path),
            // Decided before there are settings: it says which process has them.
            (Key::Keep, _) => {}
            (key, value) => self.engine.rules_mut().bare(key, value, source),
        }
        Ok(())
    }

    /// The first place that somebody names stands for all the built-in ones.
    fn take_key_place(&mut self, path: &str) -> Result<(), BadValue> {
        let places = &mut self.engine.key_places;
        if !std::mem::replace(&mut self.own_key_places, true) {
            places.clear();
        }
        if path != "none" {
            places.push(
                KeyPlace::parse(path).map_err(|BadValue(why)| BadValue(format!("idempotency-key: {why}")))?,
            );
        }
        Ok(())
    }

    /// Takes on the habits of `timeout-mcp`: three methods on a plain timer, all others untimed.
    pub fn act_as_timeout_mcp(
        &mut self,
        timeout: std::time::Duration,
        auto_restart: bool,
    ) -> Result<(), BadValue> {
        let shown = outlast_engine::settings::show_duration(timeout);
        let mut rules = Rules::default();
        rules.add(Key::Method, "*=timeout:off,signs:none,keep-alive:off,retries:0", "timeout-mcp")?;
        for method in ["tools/call", "initialize", "tools/list"] {
            rules.add(Key::Method, &format!("{method}=timeout:{shown}"), "timeout-mcp")?;
        }
        *self.engine.rules_mut() = rules;
        self.engine.manner = Manner::TimeoutMcp;
        self.engine.server_mut().restart = if auto_restart { Restart::OnTimeout } else { Restart::Never };
        Ok(())
    }
}

/// Takes a value that is about one server. Gives it back if it is about something else, or a limit of its calls.
fn take_of_server(
    server: &mut ServerConfig,
    remote: &mut RemoteSettings,
    key: Key,
    value: Value,
) -> Option<Value> {
    let value = match server.bounds.take(key, value.clone()) {
        // Its place is remembered, as that of a limit is.
        None => return Some(value),
        Some(value) => value,
    };
    match (key, value) {
        (Key::CancelGrace, Value::Time(Some(time))) => server.cancel_grace = time,
        (Key::Restart, Value::Text(word)) => server.restart = restart(&word),
        (Key::RestartBackoff, Value::Time(time)) => server.restart_backoff = time.unwrap_or_default(),
        (Key::RestartIntensity, Value::Count(count)) => server.restart_intensity = count,
        (Key::ConnectRetries, Value::Count(count)) => server.connect_retries = count,
        (Key::ConnectBackoff, Value::Time(Some(time))) => server.connect_backoff = time,
        (Key::ReconnectEvery, Value::Time(Some(time))) => server.reconnect_every = time,
        (Key::Heartbeat, Value::Time(time)) => server.heartbeat = time,
        (Key::ServerIdle, Value::Time(time)) => server.server_idle = time,
        (Key::RetryBackoff, Value::Time(Some(time))) => server.retry_backoff = time,
        (Key::Trust, Value::Switch(trust)) => server.trust = trust,
        (Key::Instant, Value::Switch(instant)) => server.instant = instant,
        (Key::Share, Value::Text(word)) => server.share = share(&word),
        (Key::Connect, Value::Time(Some(time))) => remote.connect = time,
        (Key::PoolIdle, Value::Time(Some(time))) => remote.pool_idle = time,
        (Key::PoolMaxIdle, Value::Count(count)) => remote.pool_max_idle = count as usize,
        (Key::CaFile, Value::Text(path)) => remote.ca_file = Some(path.into()),
        (Key::Header, Value::Text(text)) => remote.headers.push(text),
        (_, value) => return Some(value),
    }
    None
}

/// The settings that the environment has: setting, value, name of the variable. And variables that begin as ours do
/// and mean nothing: one of a newer version, or of a wrapper's own, is no reason to stop.
fn environment() -> (Vec<(&'static Setting, String, String)>, Vec<String>) {
    let (mut written, mut unknown) = (Vec::new(), Vec::new());
    for (name, value) in own_variables() {
        let (name, value) = (name.to_string_lossy().into_owned(), value.to_string_lossy().into_owned());
        let Some(setting) = SETTINGS.iter().find(|setting| setting.variable() == name) else {
            unknown.push(name);
            continue;
        };
        let pieces: Vec<&str> = match setting.kind {
            Kind::Rules => value.split(';').collect(),
            Kind::Lines(_) => value.lines().collect(),
            _ => vec![&value],
        };
        let pieces = pieces.into_iter().map(str::trim).filter(|piece| !piece.is_empty());
        written.extend(pieces.map(|piece| (setting, piece.to_owned(), name.clone())));
    }
    (written, unknown)
}

fn network(text: &str) -> Result<Network, BadValue> {
    Network::parse(text.trim()).ok_or_else(|| {
        BadValue(format!("trusted-proxies: `{text}` is no address or network; write 10.0.0.1 or 10.0.0.0/8"))
    })
}

fn learn(word: &str) -> Learn {
    match word {
        "auto" => Learn::Auto,
        "off" => Learn::Off,
        _ => Learn::Ask,
    }
}

fn level(word: &str) -> Level {
    match word {
        "error" => Level::Error,
        "info" => Level::Info,
        "debug" => Level::Debug,
        _ => Level::Warn,
    }
}

fn share(word: &str) -> Share {
    match word {
        "session" => Share::Session,
        "all" => Share::All,
        _ => Share::Principal,
    }
}

fn restart(word: &str) -> Restart {
    match word {
        "never" => Restart::Never,
        "on-crash" => Restart::OnCrash,
        "on-timeout" => Restart::OnTimeout,
        _ => Restart::OnHang,
    }
}

fn format_named(word: &str) -> Format {
    if word == "json" { Format::Json } else { Format::Text }
}

/// What a person would call the server: of `npx -y some-server` that is `some-server`.
fn server_name(command: &[OsString]) -> String {
    const LAUNCHERS: [&str; 12] =
        ["npx", "uvx", "node", "python", "python3", "deno", "bun", "bunx", "pnpm", "uv", "sh", "bash"];
    let base = |word: &OsString| {
        let word = word.to_string_lossy();
        word.rsplit('/').find(|part| !part.is_empty()).unwrap_or(&word).to_owned()
    };
    let first = command.first().map(base).unwrap_or_default();
    if !LAUNCHERS.contains(&first.as_str()) {
        return first;
    }
    // What follows `-c` or `-e` is a program, and may hold secrets.
    let plain =
        |word: &&OsString| !["-c", "-e", "-p", "--eval", "--command"].iter().any(|flag| *word == flag);
    let words: Vec<&OsString> = command.iter().skip(1).take_while(plain).collect();
    let ends_in_program = words.len() + 1 < command.len();
    let is_name = |word: &&&OsString| !word.to_string_lossy().starts_with('-');
    match words.iter().find(is_name).filter(|_| !ends_in_program) {
        Some(word) => base(word),
        None => first,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_named_after_what_is_run() {
        let name = |words: &[&str]| server_name(&words.iter().map(OsString::from).collect::<Vec<_>>());
        assert_eq!(name(&["npx", "-y", "@scope/some-server", "--port"]), "some-server");
        assert_eq!(name(&["/usr/bin/python3", "path/server.py"]), "server.py");
        assert_eq!(name(&["./my-server", "x"]), "my-server");
        assert_eq!(name(&["node"]), "node");
        assert_eq!(name(&["sh", "-c", "API_KEY=x run"]), "sh");
        assert_eq!(name(&["python3", "-m", "server"]), "server");
    }
}
