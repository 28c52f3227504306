//! The table of settings: each an item with its name, type, default and documentation.
//!
//! `--help`, the reference page and the names of environment variables are made from this table,
//! a value is parsed in one place whatever it came from, and an option that has no effect in a mode
//! is refused there. A new setting is one more item.
//!
//! Not here: which value applies to a call (`policy.rs`).

mod glob;
mod parse;

pub use glob::{Closeness, Glob};
pub use parse::{BadValue, counted, nearest, parse_duration, show_duration};

use std::time::Duration;

/// Which signs of life reset a `timeout`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// A time; `None` when switched off.
    Time(Option<Duration>),
    /// A number of bytes.
    Size(usize),
    /// Signs of life.
    Signs(Signs),
    /// A number.
    Count(u32),
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
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
    Handshake,
    CancelGrace,
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
    Tool,
    Method,
    Log,
    LogFormat,
    TraceMessages,
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
#[derive(Debug)]
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
pub static SETTINGS: &[Setting] = &[
    Setting {
        key: Key::Timeout,
        name: "timeout",
        kind: Kind::TimeOrOff,
        scope: Scope::Call,
        place: Place::Call,
        group: Group::Common,
        applies: Applies::Everywhere,
        front: true,
        default: "the client decides",
        short: "fail a tool call after this long without a sign of life",
        long: "The client gets an error that names the limit, and the server is told to cancel the call. \
               `off` means no timeout. `--timeout` alone is for `tools/call`; for other methods write \
               `--method 'GLOB=timeout:TIME'`. Progress of the call resets the timeout; `signs` lets \
               the server's own activity reset it too. If you set no timeout, these limits are built \
               in: 30 minutes without any sign of life from call or server for a tool call while \
               keep-alive makes its client wait (otherwise the client decides), 5 minutes for other \
               known requests, and for requests of the server 10 minutes (`elicitation/create`), 4 \
               minutes (`sampling/createMessage`) or 1 minute (all others).",
    },
    Setting {
        key: Key::Max,
        name: "max",
        kind: Kind::TimeOrOff,
        scope: Scope::Call,
        place: Place::Call,
        group: Group::Common,
        applies: Applies::Everywhere,
        front: true,
        default: "24h",
        short: "end a tool call after this long, even with progress",
        long: "Nothing extends this limit. `off` means no limit. `--max` alone is for `tools/call`; for \
               other methods write `--method 'GLOB=max:TIME'`.",
    },
    Setting {
        key: Key::KeepAlive,
        name: "keep-alive",
        kind: Kind::TimeOrOff,
        scope: Scope::Call,
        place: Place::Call,
        group: Group::Common,
        applies: Applies::Everywhere,
        front: true,
        default: "10s",
        short: "send progress to a waiting client this often",
        long: "While a server is silent, outlast sends progress on the client's own progress token, so \
               that the client goes on waiting. Without a token nothing is sent. Choose about a third \
               of the client's limit. At least 50ms; `off` sends nothing.",
    },
    Setting {
        key: Key::Signs,
        name: "signs",
        kind: Kind::Signs,
        scope: Scope::Call,
        place: Place::Call,
        group: Group::Limits,
        applies: Applies::Everywhere,
        front: true,
        default: "call",
        short: "what resets `timeout`: call, server, call+server, none",
        long: "`call`: progress of the call, and messages of the server about it. `server`: anything \
               that the server writes, and activity of its processes (CPU time above 1 % of a core, \
               bytes read or written, context switches, processes that start or end), which is \
               checked in the last 10 s of the limit (or its last quarter, if that is shorter). `none`: \
               nothing resets the timeout. Built-in timeouts are reset by both.",
    },
    Setting {
        key: Key::Retries,
        name: "retries",
        kind: Kind::Count,
        scope: Scope::Call,
        place: Place::Call,
        group: Group::Limits,
        applies: Applies::Everywhere,
        front: true,
        default: "2",
        short: "send a failed call again this often, if that is safe",
        long: "Safe to repeat are methods that only read (lists, `resources/read`, `prompts/get`, \
               completion, ping), tools that you mark as `repeatable`, and with `--trust` tools that \
               their server marks. A call that has reported progress is repeated only if you marked \
               it. `timeout` counts for each attempt, `max` for all attempts together. Retries add at \
               most a fifth to the calls that a server gets.",
    },
    Setting {
        key: Key::Repeatable,
        name: "repeatable",
        kind: Kind::Switch,
        scope: Scope::Call,
        place: Place::Call,
        group: Group::Limits,
        applies: Applies::Everywhere,
        front: false,
        default: "false",
        short: "these calls may run twice: 'search*=repeatable:true'",
        long: "Only you can know which tools do no harm when they run twice. A tool call that may have \
               reached its server is not sent again unless it is repeatable.",
    },
    Setting {
        key: Key::Task,
        name: "task",
        kind: Kind::Choice(&["optional", "required", "forbidden"]),
        scope: Scope::Call,
        place: Place::Call,
        group: Group::Tasks,
        applies: Applies::Everywhere,
        front: false,
        default: "optional",
        short: "may calls be tasks: optional, required, forbidden",
        long: "Has an effect only with `tasks`. `required` tells clients to call the tool as a task; a \
               plain call still works. A tool whose server forbids tasks never becomes a task.",
    },
    Setting {
        key: Key::KeepAnswers,
        name: "keep-answers",
        kind: Kind::Switch,
        scope: Scope::Call,
        place: Place::Call,
        group: Group::Tasks,
        applies: Applies::Everywhere,
        front: false,
        default: "false",
        short: "keep answers of calls with an idempotency key",
        long: "For example `--tool 'pay*=keep-answers:true'`. The answer is stored for `task-ttl`; a \
               later call with the same key gets the stored answer and does not run. Errors are never \
               kept. Answers of tasks are always kept.",
    },
    Setting {
        key: Key::Idempotency,
        name: "idempotency",
        kind: Kind::Choice(&["unknown", "honoured"]),
        scope: Scope::Call,
        place: Place::Call,
        group: Group::Tasks,
        applies: Applies::Everywhere,
        front: false,
        default: "unknown",
        short: "does the server honour idempotency keys",
        long: "For example `--tool 'pay*=idempotency:honoured'`, if the server runs calls with the same \
               key only once. Then a call without `params.idempotencyKey` gets a key, the same in every \
               attempt, and counts as `repeatable`.",
    },
    Setting {
        key: Key::JoinRepeats,
        name: "join-repeats",
        kind: Kind::TimeOrOff,
        scope: Scope::Call,
        place: Place::Call,
        group: Group::Tasks,
        applies: Applies::Everywhere,
        front: false,
        default: "off",
        short: "a call that is made again within TIME joins the first",
        long: "For example `--tool 'build*=join-repeats:10m'`, for clients that make a call again after their \
               own timeout. The same tool with the same arguments, from the same client, joins the call that \
               runs, also when the client has cancelled it: the server is told to cancel only after this \
               time. So a cancel that is meant takes effect later. A call that carries an idempotency key is \
               judged by its key instead.",
    },
    Setting {
        key: Key::Handshake,
        name: "handshake",
        kind: Kind::Time,
        scope: Scope::Process,
        place: Place::Server,
        group: Group::Limits,
        applies: Applies::Everywhere,
        front: false,
        default: "5m",
        short: "how long a server may take for its first answer",
        long: "The limit of `initialize` and `server/discover`. It is generous, because `npx` may need \
               minutes to download a server. With `serve` it is 60s without a sign of life of the server, \
               and 5m in all.",
    },
    Setting {
        key: Key::CancelGrace,
        name: "cancel-grace",
        kind: Kind::Time,
        scope: Scope::Process,
        place: Place::Server,
        group: Group::Limits,
        applies: Applies::Everywhere,
        front: false,
        default: "5s",
        short: "silence after a cancel that makes a server hung",
        long: "When a limit fires, the server is told to cancel the call. If the server then shows no \
               sign of life for this long, it counts as hung, and `restart` decides what happens. The \
               client does not wait for this: its error is sent when the limit fires.",
    },
    Setting {
        key: Key::Drain,
        name: "drain",
        kind: Kind::Time,
        scope: Scope::Process,
        place: Place::Process,
        group: Group::Limits,
        applies: Applies::Everywhere,
        front: false,
        default: "30s",
        short: "how long open calls may finish after the client left",
        long: "So `printf … | outlast -- server` prints the answers, if the server goes on after the end \
               of its input. After its own end of input, a client gets only what the server writes and \
               errors of limits that fire. Then the server has one second to exit, gets SIGTERM, and \
               half a second later SIGKILL. If outlast gets SIGTERM or SIGINT, it sends SIGTERM to the \
               server at once and exits with status 143 or 130.",
    },
    Setting {
        key: Key::MaxMessage,
        name: "max-message",
        kind: Kind::Size,
        scope: Scope::Process,
        place: Place::Process,
        group: Group::Limits,
        applies: Applies::Everywhere,
        front: false,
        default: "64MiB",
        short: "the longest message that is accepted",
        long: "A longer message of the client is answered with an error; a longer message of the server \
               fails its call with `message-too-large`. The connection goes on with the next message. \
               Between 1KiB and 1GiB.",
    },
    Setting {
        key: Key::Restart,
        name: "restart",
        kind: Kind::Choice(&["on-hang", "on-timeout", "on-crash", "never"]),
        scope: Scope::Process,
        place: Place::Server,
        group: Group::Servers,
        applies: Applies::Everywhere,
        front: true,
        default: "on-hang",
        short: "restart a server: on-hang, on-timeout, on-crash, never",
        long: "`on-crash`: when its process ended, or closed its output, after it had answered once. \
               `on-hang`: also when a limit that you set has fired and the server showed no sign of \
               life within `cancel-grace` (no message, no answered ping, no CPU time, no bytes). \
               `on-timeout`: also whenever such a limit fires. `never`: outlast ends with its server. A \
               new process is told what the old one knew: the handshake, the log level, subscriptions.",
    },
    Setting {
        key: Key::RestartBackoff,
        name: "restart-backoff",
        kind: Kind::TimeOrOff,
        scope: Scope::Process,
        place: Place::Server,
        group: Group::Servers,
        applies: Applies::Everywhere,
        front: false,
        default: "500ms",
        short: "the pause before a crashed server is restarted",
        long: "Doubles with every crash within a minute, up to 30s, with jitter; `off` means no pause. A \
               hung server is restarted without a pause the first time.",
    },
    Setting {
        key: Key::RestartIntensity,
        name: "restart-intensity",
        kind: Kind::Count,
        scope: Scope::Process,
        place: Place::Server,
        group: Group::Servers,
        applies: Applies::Everywhere,
        front: false,
        default: "5",
        short: "restarts within a minute before a server is given up",
        long: "A server that was given up is tried again every `reconnect-every`. Until then every \
               request is answered at once with `server-failed` and the time of the next try.",
    },
    Setting {
        key: Key::ConnectRetries,
        name: "connect-retries",
        kind: Kind::Count,
        scope: Scope::Process,
        place: Place::Server,
        group: Group::Servers,
        applies: Applies::Everywhere,
        front: false,
        default: "3",
        short: "further tries if a restarted server does not come up",
        long: "A server does not come up if it cannot be started or reached, ends, refuses `initialize`, \
               or does not answer it within `handshake`. After these tries the server is given up for \
               `reconnect-every`. In wrap mode a server that ends before its first answer is not tried \
               again: outlast ends with the server's status, as the server alone would.",
    },
    Setting {
        key: Key::ConnectBackoff,
        name: "connect-backoff",
        kind: Kind::Time,
        scope: Scope::Process,
        place: Place::Server,
        group: Group::Servers,
        applies: Applies::Everywhere,
        front: false,
        default: "2s",
        short: "the pause before the first of `connect-retries`",
        long: "Doubles with every try: 2s, 4s, 8s with the defaults.",
    },
    Setting {
        key: Key::ReconnectEvery,
        name: "reconnect-every",
        kind: Kind::Time,
        scope: Scope::Process,
        place: Place::Server,
        group: Group::Servers,
        applies: Applies::Everywhere,
        front: false,
        default: "30s",
        short: "how often a server that was given up is tried again",
        long: "For ever, until the server answers.",
    },
    Setting {
        key: Key::Heartbeat,
        name: "heartbeat",
        kind: Kind::TimeOrOff,
        scope: Scope::Process,
        place: Place::Server,
        group: Group::Servers,
        applies: Applies::Everywhere,
        front: false,
        default: "30s in a service and with a file, else off",
        short: "how often a quiet server is asked whether it is there",
        long: "A `ping` to a server of the legacy era that has no call and has said nothing for this long. A \
               missing answer counts only if this process has answered a ping before; then the server has \
               `cancel-grace` for any sign of life, and is replaced like a hung one (`restart`) if there is \
               none. An answered ping never resets the limit of a call.",
    },
    Setting {
        key: Key::ServerIdle,
        name: "server-idle",
        kind: Kind::TimeOrOff,
        scope: Scope::Process,
        place: Place::Server,
        group: Group::Servers,
        applies: Applies::Everywhere,
        front: false,
        default: "off",
        short: "stop a process that had no call for this long",
        long: "Its clients stay connected, and the next call starts it again: it is told what it was told \
               before (handshake, log level), and calls wait until it is there. What it kept in memory is \
               lost. A server that a client is subscribed to, that has a call or has asked something is not \
               stopped, nor is one with `restart` set to `never`, and a remote one has no process.",
    },
    Setting {
        key: Key::RetryBackoff,
        name: "retry-backoff",
        kind: Kind::Time,
        scope: Scope::Process,
        place: Place::Server,
        group: Group::Limits,
        applies: Applies::Everywhere,
        front: false,
        default: "500ms",
        short: "the longest pause before a call is sent again",
        long: "Doubles with every attempt, up to 10s; the pause is a random time below that.",
    },
    Setting {
        key: Key::Trust,
        name: "trust",
        kind: Kind::Switch,
        scope: Scope::Process,
        place: Place::Server,
        group: Group::Servers,
        applies: Applies::Everywhere,
        front: false,
        default: "false",
        short: "believe the server which tools may be repeated",
        long: "Tools whose annotations say `readOnlyHint` or `idempotentHint` then count as \
               `repeatable`. The annotations are written by the server, so use this only for servers \
               that you know.",
    },
    Setting {
        key: Key::Instant,
        name: "instant",
        kind: Kind::Switch,
        scope: Scope::Process,
        place: Place::Server,
        group: Group::Common,
        applies: Applies::Wrap,
        front: true,
        default: "false",
        short: "answer handshake and lists from memory at the start",
        long: "outlast remembers what a server answered to `initialize` (or `server/discover`) and to the \
               lists of tools, prompts and resources. At the next start the client gets these answers \
               within milliseconds, and its calls wait for the server. If the server's own answers \
               differ, the client gets `list_changed`. The answers are kept in the state folder, for \
               each command, working directory, environment, client, and date of the program; \
               `outlast cache clear` deletes them.",
    },
    Setting {
        key: Key::Connect,
        name: "connect",
        kind: Kind::Time,
        scope: Scope::Process,
        place: Place::Server,
        group: Group::Http,
        applies: Applies::Url,
        front: false,
        default: "10s",
        short: "how long connecting to a remote server may take",
        long: "Name lookup, TCP, proxy and TLS together. Failed tries are repeated as `connect-retries` \
               says. How long a call may take is decided by `timeout` and `max`, as for every server.",
    },
    Setting {
        key: Key::PoolIdle,
        name: "pool-idle",
        kind: Kind::Time,
        scope: Scope::Process,
        place: Place::Server,
        group: Group::Http,
        applies: Applies::Url,
        front: false,
        default: "90s",
        short: "close an unused connection to a remote server after",
        long: "Until then the connection is kept for the next request.",
    },
    Setting {
        key: Key::PoolMaxIdle,
        name: "pool-max-idle",
        kind: Kind::Count,
        scope: Scope::Process,
        place: Place::Server,
        group: Group::Http,
        applies: Applies::Url,
        front: false,
        default: "32",
        short: "the most unused connections to keep open",
        long: "Further connections are closed as soon as they are unused.",
    },
    Setting {
        key: Key::Header,
        name: "header",
        kind: Kind::Lines("HEADER"),
        scope: Scope::Process,
        place: Place::Nowhere,
        group: Group::Http,
        applies: Applies::Url,
        front: true,
        default: "",
        short: "add a header to requests to a remote server",
        long: "`--header 'Authorization: Bearer ${TOKEN}'`: `${VAR}` is replaced by the variable of that \
               name, and a missing variable is an error. May be given several times; in the variable \
               OUTLAST_HEADER each header is a line. The token of a client is never passed on to the \
               server.",
    },
    Setting {
        key: Key::CaFile,
        name: "ca-file",
        kind: Kind::Path,
        scope: Scope::Process,
        place: Place::Server,
        group: Group::Http,
        applies: Applies::Url,
        front: false,
        default: "",
        short: "also trust the certificates in this PEM file",
        long: "For remote servers whose certificate comes from an authority of your own. The system's \
               certificates are trusted too.",
    },
    Setting {
        key: Key::Listen,
        name: "listen",
        kind: Kind::Lines("ADDR"),
        scope: Scope::Process,
        place: Place::Listen,
        group: Group::Http,
        applies: Applies::Serve,
        front: true,
        default: "",
        short: "the address to listen on, such as 127.0.0.1:7600",
        long: "MCP is at `/mcp`; `/healthz` and `/readyz` tell a supervisor that outlast runs and is \
               ready. With port 0 the system chooses a free port; the first line on stderr names it. An \
               address that other machines can reach needs `token-file` or `no-auth`.",
    },
    Setting {
        key: Key::TokenFile,
        name: "token-file",
        kind: Kind::Path,
        scope: Scope::Process,
        place: Place::Listen,
        group: Group::Http,
        applies: Applies::Serve,
        front: true,
        default: "",
        short: "who may connect: a line NAME SHA256-HEX for each token",
        long: "`outlast token new NAME >> FILE` adds a line and shows the token on stderr. Requests then \
               need `Authorization: Bearer TOKEN`. The name of a token is the principal: sessions, calls \
               and streams of different principals are kept apart.",
    },
    Setting {
        key: Key::NoAuth,
        name: "no-auth",
        kind: Kind::Switch,
        scope: Scope::Process,
        place: Place::Listen,
        group: Group::Http,
        applies: Applies::Serve,
        front: false,
        default: "false",
        short: "accept everybody who can reach the address",
        long: "Needed only for an address that other machines can reach, if there is no `token-file`.",
    },
    Setting {
        key: Key::AllowHost,
        name: "allow-host",
        kind: Kind::Lines("NAME"),
        scope: Scope::Process,
        place: Place::Listen,
        group: Group::Http,
        applies: Applies::Serve,
        front: false,
        default: "",
        short: "a host name that requests may use",
        long: "`localhost` and IP addresses are always accepted in `Host`. Any other name in `Host` or \
               `Origin` is refused with 403, because a web page could make a name of its own point to \
               this address. May be given several times.",
    },
    Setting {
        key: Key::AllowOrigin,
        name: "allow-origin",
        kind: Kind::Lines("ORIGIN"),
        scope: Scope::Process,
        place: Place::Listen,
        group: Group::Http,
        applies: Applies::Serve,
        front: false,
        default: "",
        short: "a web origin that may send requests",
        long: "Such as `https://app.example.com`. Origins on `localhost`, on an allowed host, and on the \
               address that the request was sent to are always accepted. No CORS headers are sent. May \
               be given several times.",
    },
    Setting {
        key: Key::Share,
        name: "share",
        kind: Kind::Choice(&["principal", "session", "all"]),
        scope: Scope::Process,
        place: Place::Server,
        group: Group::Http,
        applies: Applies::Service,
        front: false,
        default: "principal",
        short: "who shares a server process: principal, session, all",
        long: "`principal`: sessions of one token share one process (or one remote session) until the \
               server asks a client something, or a session subscribes or sets a log level; new \
               sessions then get a process of their own. Without tokens every session is its own \
               principal. `session`: nothing is shared. `all`: everybody shares. Only sessions with the \
               same protocol version, client name and capabilities share a process; modern clients, who \
               have no sessions, share one process per principal.",
    },
    Setting {
        key: Key::SessionIdle,
        name: "session-idle",
        kind: Kind::Time,
        scope: Scope::Process,
        place: Place::Listen,
        group: Group::Http,
        applies: Applies::Service,
        front: false,
        default: "5m",
        short: "free the server of an unused session after",
        long: "A session is unused if it has no request, no open stream and no unfinished call. Its id is \
               remembered for 24 hours; the next request wakes the session on a new server, which is \
               told the same `initialize`.",
    },
    Setting {
        key: Key::ResumeWait,
        name: "resume-wait",
        kind: Kind::Time,
        scope: Scope::Process,
        place: Place::Listen,
        group: Group::Http,
        applies: Applies::Everywhere,
        front: false,
        default: "10m",
        short: "how long a disconnected client may stay away",
        long: "For this long a finished stream can be fetched by Last-Event-ID (at most 16 MiB and 256 \
               streams per session are kept); a call with a resume token or an idempotency key goes on \
               without its client; a call that is found again after a crash of outlast waits for its \
               client; and the service of `--keep` stays without clients and calls.",
    },
    Setting {
        key: Key::ResumeMinWait,
        name: "resume-min-wait",
        kind: Kind::Time,
        scope: Scope::Process,
        place: Place::Listen,
        group: Group::Http,
        applies: Applies::Service,
        front: false,
        default: "1s",
        short: "how long a client should wait before it reconnects",
        long: "Sent as `retry` on every stream of a legacy client, and as `minWait` in resume policies.",
    },
    Setting {
        key: Key::MaxSessions,
        name: "max-sessions",
        kind: Kind::Count,
        scope: Scope::Process,
        place: Place::Listen,
        group: Group::Http,
        applies: Applies::Service,
        front: false,
        default: "1000",
        short: "the most sessions of one principal",
        long: "Further sessions are refused with 429 and `too-many-sessions`.",
    },
    Setting {
        key: Key::MaxCalls,
        name: "max-calls",
        kind: Kind::Count,
        scope: Scope::Process,
        place: Place::Listen,
        group: Group::Http,
        applies: Applies::Everywhere,
        front: false,
        default: "20000",
        short: "the most calls of one principal in flight",
        long: "A task, or another call with a ticket, counts until it ends, whether or not somebody waits \
               for it. Further calls are answered at once with `overloaded`.",
    },
    Setting {
        key: Key::MaxBytes,
        name: "max-bytes",
        kind: Kind::Size,
        scope: Scope::Process,
        place: Place::Listen,
        group: Group::Http,
        applies: Applies::Service,
        front: false,
        default: "256MiB",
        short: "the most memory for messages of one principal",
        long: "Counted are requests that are not answered yet and the part of responses that clients have \
               not read yet. A request above the limit is refused with 429 and `too-many-bytes`. While \
               the limit is exceeded, clients that have read nothing for 5s are disconnected, the one \
               that stopped reading first comes first; a legacy client can resume its stream. Without \
               tokens all clients together are one principal here.",
    },
    Setting {
        key: Key::MaxConnections,
        name: "max-connections",
        kind: Kind::Count,
        scope: Scope::Process,
        place: Place::Listen,
        group: Group::Http,
        applies: Applies::Service,
        front: false,
        default: "20000",
        short: "the most connections open at once",
        long: "A further connection waits until another one is closed. A connection is closed if the head \
               of a request takes longer than 30s, if its body pauses for 10s or takes longer than 5 \
               minutes, and after 2 minutes without a request.",
    },
    Setting {
        key: Key::MaxConnectionsPerAddress,
        name: "max-connections-per-address",
        kind: Kind::Count,
        scope: Scope::Process,
        place: Place::Listen,
        group: Group::Http,
        applies: Applies::Serve,
        front: false,
        default: "1000",
        short: "the most connections open at once from one address",
        long: "A further connection is answered with 429 and closed; the log counts these refusals in one \
               line. An IPv6 network of 64 bits counts as one address. `trusted-proxies` have no limit, \
               and neither has this machine, where a reverse proxy often runs, unless you set one here.",
    },
    Setting {
        key: Key::TrustedProxies,
        name: "trusted-proxies",
        kind: Kind::Lines("ADDR"),
        scope: Scope::Process,
        place: Place::Listen,
        group: Group::Http,
        applies: Applies::Serve,
        front: false,
        default: "",
        short: "a reverse proxy's address or network: 10.0.0.0/8",
        long: "A proxy forwards the connections of many clients, so `max-connections-per-address` does \
               not limit it. May be given several times.",
    },
    Setting {
        key: Key::Tasks,
        name: "tasks",
        kind: Kind::Switch,
        scope: Scope::Process,
        place: Place::Process,
        group: Group::Tasks,
        applies: Applies::Everywhere,
        front: true,
        default: "false",
        short: "let clients fetch the answers of slow tools later",
        long: "For any tool of any server: a client of 2025-11-25 that asks for a task gets a task at \
               once; a client of 2026-07-28 that declares the tasks extension gets a task if a call takes \
               longer than `task-after`. Servers that have tasks themselves handle them themselves. On \
               by default with `serve` and `--keep`.",
    },
    Setting {
        key: Key::TaskAfter,
        name: "task-after",
        kind: Kind::Time,
        scope: Scope::Process,
        place: Place::Process,
        group: Group::Tasks,
        applies: Applies::Everywhere,
        front: false,
        default: "10s",
        short: "a call of a modern client becomes a task after",
        long: "A call that is faster gets a plain answer.",
    },
    Setting {
        key: Key::TaskTtl,
        name: "task-ttl",
        kind: Kind::Time,
        scope: Scope::Process,
        place: Place::Store,
        group: Group::Tasks,
        applies: Applies::Everywhere,
        front: false,
        default: "1h",
        short: "how long results that can be fetched are kept",
        long: "Counted from the end of the call. A task is kept at least as long as its client was told: \
               its `ttl` is the sum of `max` and `task-ttl`, or what the client asked for if that is \
               longer. An unfinished task never expires.",
    },
    Setting {
        key: Key::TaskTtlMax,
        name: "task-ttl-max",
        kind: Kind::Time,
        scope: Scope::Process,
        place: Place::Store,
        group: Group::Tasks,
        applies: Applies::Everywhere,
        front: false,
        default: "72h",
        short: "the longest `ttl` that a client may ask for",
        long: "The `ttl` that a client gets is never shorter than the sum of `max` and `task-ttl`, because \
               a shorter one could lose a result.",
    },
    Setting {
        key: Key::IdempotencyKey,
        name: "idempotency-key",
        kind: Kind::Lines("PATH"),
        scope: Scope::Process,
        place: Place::Process,
        group: Group::Tasks,
        applies: Applies::Everywhere,
        front: false,
        default: "_meta.dev.outlast/idempotencyKey, _meta.claudecode/toolUseId, params.idempotencyKey",
        short: "where calls carry a key: _meta.NAME or params.NAME",
        long: "Calls of one principal with the same key, tool and arguments are one call and run once. May \
               be given several times: the first place that holds a key counts, and the places that are \
               built in are no longer used. `none` means no keys. Keys are passed on to the server \
               unchanged.",
    },
    Setting {
        key: Key::ClientCap,
        name: "client-cap",
        kind: Kind::TimeOrOff,
        scope: Scope::Process,
        place: Place::Process,
        group: Group::Common,
        applies: Applies::Everywhere,
        front: true,
        default: "what is known",
        short: "for a client that gives up after TIME despite progress",
        long: "Shortly before that time (a tenth of it, at most 5s) a call that still runs is answered with \
               a ticket, and goes on. The client gets two more tools: SERVER_…_wait fetches the result, \
               SERVER_…_cancel cancels the call. Without this setting, that happens for clients whose limit \
               was measured, learned or written (`outlast clients` shows them); `off` switches it off for \
               all. `outlast doctor client` measures when a client gives up. A client whose limit is reset \
               by progress does not need this.",
    },
    Setting {
        key: Key::ClientProfile,
        name: "client-profile",
        kind: Kind::Lines("ROW"),
        scope: Scope::Process,
        place: Place::Process,
        group: Group::Tasks,
        applies: Applies::Everywhere,
        front: false,
        default: "",
        short: "what a client does: 'my-agent*=cap:60s,progress:no'",
        long: "`GLOB=KEY:VALUE,…`, where GLOB matches the name that the client sends in `clientInfo`. `cap`: how \
               long the client waits for a silent tool, or `off`. `progress`: whether progress resets that, \
               `yes` or `no`. `total`: the longest that progress makes it wait. `version`: `1.2.3`, or \
               `1.2.3+` for it and later ones with the same first number. `token`: whether the client sends \
               a progress token. docs/hand-off.md explains all keys. The row wins over what was learned and \
               measured. May be given several times; in the environment, one line each.",
    },
    Setting {
        key: Key::Learn,
        name: "learn",
        kind: Kind::Choice(&["ask", "auto", "off"]),
        scope: Scope::Process,
        place: Place::Process,
        group: Group::Tasks,
        applies: Applies::Everywhere,
        front: false,
        default: "ask",
        short: "learn a client's limit from its cancels: ask, auto, off",
        long: "A client that cancels two silent calls at the same age has a limit of its own. The limit is \
               kept in the state directory, by the client's name and version. `ask`: it counts once you have \
               run `outlast clients learn NAME`. `auto`: it counts from the next call on. `off`: nothing is \
               kept.",
    },
    Setting {
        key: Key::State,
        name: "state",
        kind: Kind::Path,
        scope: Scope::Process,
        place: Place::Store,
        group: Group::Tasks,
        applies: Applies::Everywhere,
        front: false,
        default: "",
        short: "the folder for stored calls; `none`: memory only",
        long: "The default is `$XDG_STATE_HOME/outlast`, usually `~/.local/state/outlast`; on macOS \
               `~/Library/Application Support/outlast`. The folder is created when it is first needed, \
               can be read by you alone, and is shared by all your outlast processes. If it cannot be \
               used (the disk is full, the file is damaged or of a newer version), outlast says so once \
               and keeps its data in memory.",
    },
    Setting {
        key: Key::Tool,
        name: "tool",
        kind: Kind::Rules,
        scope: Scope::Process,
        place: Place::Nowhere,
        group: Group::Common,
        applies: Applies::Everywhere,
        front: true,
        default: "",
        short: "settings for some tools: 'run_*=timeout:5m,max:2h'",
        long: "`GLOB=KEY:VALUE,…`: GLOB matches the name of a tool (`*` is any text, `?` one character, \
               `{a,b}` one of these); KEY is a setting that says \"also inside `--tool` and `--method`\". May be given several \
               times; in the variable OUTLAST_TOOL rules are separated by `;`. If two globs match, the one \
               with the exact name wins, then the one with more literal characters, then the later one.",
    },
    Setting {
        key: Key::Method,
        name: "method",
        kind: Kind::Rules,
        scope: Scope::Process,
        place: Place::Nowhere,
        group: Group::Limits,
        applies: Applies::Everywhere,
        front: true,
        default: "",
        short: "settings for some methods: 'resources/*=timeout:10s'",
        long: "Like `--tool`, but GLOB matches the method of a request. If a rule for the tool and a rule \
               for the method match, the rule for the tool wins.",
    },
    Setting {
        key: Key::Log,
        name: "log",
        kind: Kind::Choice(&["error", "warn", "info", "debug"]),
        scope: Scope::Process,
        place: Place::Log,
        group: Group::Common,
        applies: Applies::Everywhere,
        front: true,
        default: "warn",
        short: "log level: error, warn, info, debug",
        long: "The log goes to stderr. At `warn` every limit that fires is one line.",
    },
    Setting {
        key: Key::LogFormat,
        name: "log-format",
        kind: Kind::Choice(&["text", "json"]),
        scope: Scope::Process,
        place: Place::Log,
        group: Group::Log,
        applies: Applies::Everywhere,
        front: false,
        default: "text",
        short: "log format: text or json",
        long: "`json` writes one object per line: `time`, `level`, `kind` and `message`, and what the line \
               is about in fields of its own, such as `server`, `tool`, `limitMs`. Its `kind` tells the \
               lines apart.",
    },
    Setting {
        key: Key::TraceMessages,
        name: "trace-messages",
        kind: Kind::Path,
        scope: Scope::Process,
        place: Place::Log,
        group: Group::Log,
        applies: Applies::Everywhere,
        front: false,
        default: "",
        short: "record every message in this file (-: stderr)",
        long: "One JSON object per line: time, direction, message; over HTTP also the number of the \
               client's request, and the status if it is not a success. Values of keys that look like \
               secrets (password, token, session, authorization, …) are replaced by `***`. The file gets \
               mode 0600, even if it exists already. No call waits for the file: up to 16 MiB wait to be \
               written; messages beyond that are not recorded, and counted in the file and in the log.",
    },
    Setting {
        key: Key::Keep,
        name: "keep",
        kind: Kind::Switch,
        scope: Scope::Process,
        place: Place::Nowhere,
        group: Group::Common,
        applies: Applies::Keep,
        front: true,
        default: "false",
        short: "run the server in the background: calls outlive clients",
        long: "A client that quits in the middle of a call, or is restarted, finds the call again. The \
               background service is shared by clients with the same command, folder, environment and \
               options; it ends after `resume-wait` without clients and calls. `outlast keep list` shows \
               the services that run, `outlast keep stop` ends them.",
    },
];

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
            Kind::Switch => "",
            Kind::Signs => "SIGNS",
            Kind::Choice(_) if self.key == Key::Log => "LEVEL",
            Kind::Choice(_) => "WORD",
            Kind::Path if self.key == Key::State => "DIR",
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
