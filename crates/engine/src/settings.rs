//! The table of settings: each an item with its name, type, default and documentation.
//!
//! `--help`, the reference page and the names of environment variables are made from this table,
//! a value is parsed in one place whatever it came from, and an option that has no effect in a mode
//! is refused there. A new setting is one more
//! key and one more item, in the file of its subject.
//!
//! Not here: which value applies to a call (`policy.rs`).

mod calls;
mod glob;
mod http;
mod log;
mod parse;
mod rate;
mod servers;
mod tasks;

pub use glob::{Closeness, Glob};
pub use parse::{BadValue, counted, nearest, parse_duration, show_duration};
pub use rate::Rate;

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Which signs of life reset a `timeout`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signs {
    /// Progress of the call, and what the server sends for it.
    pub call: bool,
    /// CPU time, bytes moved, lines on stderr.
    pub server: bool,
}

impl Signs {
    /// A plain timer.
    pub const NONE: Signs = Signs { call: false, server: false };
    /// What every SDK user expects of a timeout.
    pub const CALL: Signs = Signs { call: true, server: false };
    /// The most patient.
    pub const BOTH: Signs = Signs { call: true, server: true };
}

/// A checked value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Value {
    /// A time; `None` when switched off.
    Time(Option<Duration>),
    /// A number of bytes.
    Size(usize),
    /// Signs of life.
    Signs(Signs),
    /// A number.
    Count(u32),
    /// So many in a time; `None` when switched off.
    Rate(Option<Rate>),
    /// On or off.
    Switch(bool),
    /// A word or a path.
    Text(String),
}

/// What a setting's values look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `30s`, `5m`, `1h30m`.
    Time,
    /// A time, or `off`.
    TimeOrOff,
    /// `64MiB`.
    Size,
    /// `call`, `server`, `call+server`, `none`.
    Signs,
    /// A whole number.
    Count,
    /// `10/s`, `600/m`, or `off`.
    Rate,
    /// `true` or `false`; as a flag it takes no value.
    Switch,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// A file's path, or `-`.
    Path,
    /// `GLOB=KEY:VALUE,…`.
    Rules,
    /// Any text; may be given several times. What stands for it in `--help`.
    Lines(&'static str),
}

/// Where a setting may stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Also inside `--tool` and `--method`.
    Call,
    /// For the whole process only.
    Process,
}

/// The settings' names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[allow(missing_docs)] // each is documented in its item of `SETTINGS`
pub enum Key {
    Timeout,
    Max,
    KeepAlive,
    Signs,
    Retries,
    Repeatable,
    Task,
    KeepAnswers,
    Idempotency,
    JoinRepeats,
    Hold,
    HoldTimeout,
    HoldAskClient,
    Adaptive,
    AdaptiveMin,
    AdaptiveMax,
    Handshake,
    CancelGrace,
    ListWait,
    DeclareTimeouts,
    Drain,
    MaxMessage,
    Restart,
    RestartBackoff,
    RestartIntensity,
    ConnectRetries,
    ConnectBackoff,
    ReconnectEvery,
    Heartbeat,
    ServerIdle,
    RetryBackoff,
    MaxInFlight,
    Queue,
    QueueWait,
    Rate,
    Trust,
    Instant,
    Connect,
    PoolIdle,
    PoolMaxIdle,
    Header,
    CaFile,
    Listen,
    TokenFile,
    NoAuth,
    AllowHost,
    AllowOrigin,
    Share,
    SessionIdle,
    ResumeWait,
    ResumeMinWait,
    MaxSessions,
    MaxCalls,
    MaxBytes,
    MaxConnections,
    MaxConnectionsPerAddress,
    TrustedProxies,
    Metrics,
    Tasks,
    TaskAfter,
    TaskTtl,
    TaskTtlMax,
    IdempotencyKey,
    ClientCap,
    ClientProfile,
    Learn,
    /// `state`
    State,
    StoreUrl,
    Tool,
    Method,
    Log,
    LogFormat,
    TraceMessages,
    Otlp,
    OtlpHeader,
    AccessLog,
    Record,
    Redact,
    Keep,
}

/// Where a setting stands in `--help`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// What most people want.
    Common,
    /// Times, sizes and repeats of calls.
    Limits,
    /// How servers are started again.
    Servers,
    /// Remote servers, and clients over HTTP.
    Http,
    /// Calls that can be fetched later, and idempotency keys.
    Tasks,
    /// What is logged.
    Log,
}

impl Group {
    /// All of them, in the order of `--help`.
    pub const ALL: [Group; 6] =
        [Group::Common, Group::Limits, Group::Servers, Group::Http, Group::Tasks, Group::Log];

    /// The heading.
    pub fn title(self) -> &'static str {
        match self {
            Group::Common => "Common",
            Group::Limits => "Limits",
            Group::Servers => "Servers",
            Group::Http => "HTTP",
            Group::Tasks => "Tasks and idempotency",
            Group::Log => "Log",
        }
    }
}

/// How outlast is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mode {
    /// `serve`: clients come over HTTP.
    pub serves: bool,
    /// `--keep`: the server runs in the background.
    pub keeps: bool,
    /// The server is behind a URL.
    pub remote: bool,
}

/// In which modes a setting has an effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Applies {
    /// In all of them.
    Everywhere,
    /// `outlast -- COMMAND`, without `--keep`.
    Wrap,
    /// `outlast --keep -- COMMAND` itself.
    Keep,
    /// With a remote server.
    Url,
    /// With `outlast serve`.
    Serve,
    /// With `outlast serve` and with `--keep`.
    Service,
}

impl Applies {
    /// Whether the setting has an effect in this mode.
    pub fn to(self, mode: Mode) -> bool {
        match self {
            Applies::Everywhere => true,
            Applies::Wrap => !mode.serves && !mode.keeps && !mode.remote,
            Applies::Keep => !mode.serves && !mode.remote,
            Applies::Url => mode.remote,
            Applies::Serve => mode.serves,
            Applies::Service => mode.serves || mode.keeps,
        }
    }

    /// What a person would write to get into the mode; empty for all modes.
    pub fn form(self) -> &'static str {
        match self {
            Applies::Everywhere => "",
            Applies::Wrap | Applies::Keep => "outlast -- COMMAND",
            Applies::Url => "outlast URL",
            Applies::Serve => "outlast serve",
            Applies::Service => "outlast serve or outlast --keep",
        }
    }
}

/// In which table of the file a setting stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In `[defaults]`, in `[servers.NAME]`, and in their `tools` and `methods`.
    Call,
    /// In `[defaults]` and in `[servers.NAME]`.
    Server,
    /// In `[defaults]` alone: it is about all servers together.
    Process,
    /// In `[listen]`.
    Listen,
    /// In `[store]`.
    Store,
    /// In `[log]`.
    Log,
    /// In no table: the file has other words for it.
    Nowhere,
}

impl Place {
    /// The tables, for people; empty where there is none.
    pub fn tables(self) -> &'static str {
        match self {
            Place::Call => "[defaults], [servers.NAME], and their tools and methods",
            Place::Server => "[defaults], [servers.NAME]",
            Place::Process => "[defaults]",
            Place::Listen => "[listen]",
            Place::Store => "[store]",
            Place::Log => "[log]",
            Place::Nowhere => "",
        }
    }
}

/// One setting.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// For the code.
    pub key: Key,
    /// For people: the flag is `--name`, the variable `OUTLAST_NAME`.
    pub name: &'static str,
    /// What its values look like.
    pub kind: Kind,
    /// Where it may stand.
    pub scope: Scope,
    /// In which table of the file it stands.
    pub place: Place,
    /// Where it stands in `--help`.
    pub group: Group,
    /// In which modes it has an effect.
    pub applies: Applies,
    /// It is on the first screen of `--help`.
    pub front: bool,
    /// What is so without it.
    pub default: &'static str,
    /// One line for `--help`.
    pub short: &'static str,
    /// All about it, for the reference page.
    pub long: &'static str,
}

/// The table.
pub static SETTINGS: &[Setting] = &joined();

/// The items of each subject, one subject after another, in the order of [`Key`].
const SUBJECTS: [&[Setting]; 5] = [calls::ITEMS, servers::ITEMS, http::ITEMS, tasks::ITEMS, log::ITEMS];

const fn joined() -> [Setting; Key::Keep as usize + 1] {
    let mut all = [calls::ITEMS[0]; Key::Keep as usize + 1];
    let (mut subject, mut item, mut next) = (0, 0, 0);
    while subject < SUBJECTS.len() {
        if item == SUBJECTS[subject].len() {
            (subject, item) = (subject + 1, 0);
        } else {
            all[next] = SUBJECTS[subject][item];
            (item, next) = (item + 1, next + 1);
        }
    }
    all
}

/// The item of a key.
pub fn setting(key: Key) -> &'static Setting {
    // The table's order is the enum's order; a test holds them together.
    &SETTINGS[key as usize]
}

impl Setting {
    /// Looks a setting up by its name.
    pub fn named(name: &str) -> Option<&'static Setting> {
        SETTINGS.iter().find(|setting| setting.name == name)
    }

    /// `OUTLAST_KEEP_ALIVE` for `keep-alive`.
    pub fn variable(&self) -> String {
        format!("OUTLAST_{}", self.name.to_uppercase().replace('-', "_"))
    }

    /// What stands for a value in `--help`.
    pub fn placeholder(&self) -> &'static str {
        match self.kind {
            Kind::Time | Kind::TimeOrOff => "TIME",
            Kind::Size => "SIZE",
            Kind::Count => "N",
            Kind::Rate => "RATE",
            Kind::Switch => "",
            Kind::Signs => "SIGNS",
            Kind::Choice(_) if self.key == Key::Log => "LEVEL",
            Kind::Choice(_) => "WORD",
            Kind::Path if self.key == Key::State => "DIR",
            Kind::Path if self.key == Key::StoreUrl => "URL",
            Kind::Path => "FILE",
            Kind::Rules => "RULE",
            Kind::Lines(placeholder) => placeholder,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_the_order_of_its_keys() {
        for (index, item) in SETTINGS.iter().enumerate() {
            assert_eq!(item.key as usize, index, "{}", item.name);
            assert!(std::ptr::eq(setting(item.key), item));
            assert!(std::ptr::eq(Setting::named(item.name).unwrap(), item));
        }
    }

    #[test]
    fn every_default_that_is_a_value_parses() {
        for item in SETTINGS {
            let words = matches!(item.key, Key::Timeout | Key::ClientCap | Key::Heartbeat);
            if !matches!(item.kind, Kind::Rules | Kind::Path | Kind::Lines(_)) && !words {
                assert!(item.parse(item.default).is_ok(), "{}", item.name);
            }
        }
    }

    #[test]
    fn a_line_of_help_fits_a_screen() {
        for item in SETTINGS {
            assert!(item.short.chars().count() <= 56, "{}: {}", item.name, item.short.chars().count());
        }
    }

    #[test]
    fn an_option_has_an_effect_in_some_mode() {
        let modes = |serves, keeps, remote| Mode { serves, keeps, remote };
        let modes = [
            modes(false, false, false),
            modes(false, true, false),
            modes(false, false, true),
            modes(true, false, false),
            modes(true, false, true),
        ];
        for item in SETTINGS {
            let fits = modes.iter().filter(|mode| item.applies.to(**mode)).count();
            assert!(fits > 0, "{}", item.name);
            assert_eq!(fits == modes.len(), item.applies.form().is_empty(), "{}", item.name);
        }
        assert!(!setting(Key::Listen).applies.to(modes[0]) && setting(Key::Listen).applies.to(modes[3]));
        assert!(!setting(Key::Header).applies.to(modes[3]) && setting(Key::Header).applies.to(modes[4]));
        assert!(setting(Key::Share).applies.to(modes[1]) && !setting(Key::Instant).applies.to(modes[1]));
    }

    #[test]
    fn what_holds_for_one_call_stands_with_the_calls() {
        for item in SETTINGS {
            assert_eq!(item.scope == Scope::Call, item.place == Place::Call, "{}", item.name);
        }
    }

    #[test]
    fn names_make_variables() {
        assert_eq!(setting(Key::KeepAlive).variable(), "OUTLAST_KEEP_ALIVE");
    }
}
