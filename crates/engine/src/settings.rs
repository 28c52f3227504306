//! The table of settings: each an item with its name, type, default and documentation.
//!
//! `--help`, the reference page and the names of environment variables are made from this table,
//! and a value is parsed in one place whatever it came from. A new setting is one more item.
//!
//! Not here: which value applies to a call (`policy.rs`).

mod parse;

pub use parse::{BadValue, Glob, parse_duration, show_duration};

use std::time::Duration;

/// Which signs of life move a `timeout`.
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
    /// `state`
    State,
    Tool,
    Method,
    Log,
    LogFormat,
    TraceMessages,
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
        default: "the client decides",
        short: "fail a tool call that gives no sign of life this long",
        long: "`off` removes it. Alone it means `tools/call`; for other methods write `--method 'GLOB=timeout:TIME'`. \
               When it fires, the client gets an error that says so and the server is told to \
               cancel. A timeout that you write is moved by signs of the call only (see `signs`). \
               Without one, a tool call that we keep alive by progress ends after 30 minutes \
               without any sign of the call or of the server, other known requests after 5 \
               minutes, and `elicitation/create` (10 minutes), `sampling/createMessage` (4 \
               minutes) and other requests of a server (1 minute) have limits of their own.",
    },
    Setting {
        key: Key::Max,
        name: "max",
        kind: Kind::Time,
        scope: Scope::Call,
        default: "24h",
        short: "end a call after this long, whatever its signs of life",
        long: "The hard cap: nothing moves it. Alone it means `tools/call`.",
    },
    Setting {
        key: Key::KeepAlive,
        name: "keep-alive",
        kind: Kind::TimeOrOff,
        scope: Scope::Call,
        default: "10s",
        short: "tell a waiting client every so often that its call lives",
        long: "Sent as progress on the client's own token, only while the server is silent, and \
               only if the client gave a token. It must be shorter than the client's limit; a \
               third of it is a good choice. At least 50ms; `off` sends none.",
    },
    Setting {
        key: Key::Signs,
        name: "signs",
        kind: Kind::Signs,
        scope: Scope::Call,
        default: "call",
        short: "what moves `timeout`: call, server, call+server or none",
        long: "`call`: progress of the call. `server`: whatever it writes, and shortly before the \
               limit (10 s, or a quarter of it) CPU time above 1 % of a core, bytes moved, context switches, \
               processes that come or go. `none` makes `timeout` a plain timer. \
               Limits that nobody wrote are moved by both.",
    },
    Setting {
        key: Key::Retries,
        name: "retries",
        kind: Kind::Count,
        scope: Scope::Call,
        default: "2",
        short: "how often a call is tried again, if repeating it is safe",
        long: "Safe are methods that only read (lists, `resources/read`, `prompts/get`, completion, ping), \
               tools that you mark `repeatable`, and with `--trust` tools whose server says so. A call that \
               reported progress is not repeated, unless it is `repeatable`. `timeout` counts per attempt, \
               `max` for all of them; and retries add at most a fifth to a server's calls.",
    },
    Setting {
        key: Key::Repeatable,
        name: "repeatable",
        kind: Kind::Switch,
        scope: Scope::Call,
        default: "false",
        short: "running a call twice does no harm: 'search*=repeatable:true'",
        long: "Only you can know. Without it a tool call that may have reached its server is never sent again.",
    },
    Setting {
        key: Key::Task,
        name: "task",
        kind: Kind::Choice(&["optional", "required", "forbidden"]),
        scope: Scope::Call,
        default: "optional",
        short: "whether a tool's calls may be tasks: optional, required or forbidden",
        long: "With `tasks`. `required` tells clients to call it as a task; a plain call works all the same. What a server itself \
               forbids stays forbidden.",
    },
    Setting {
        key: Key::KeepAnswers,
        name: "keep-answers",
        kind: Kind::Switch,
        scope: Scope::Call,
        default: "false",
        short: "keep answers for calls with the same idempotency key: 'pay*=keep-answers:true'",
        long: "The answer of a call with a key is stored for `task-ttl`, and a later call with the same key gets it and does \
               not run. Errors are never kept. Answers of tasks are kept in any case.",
    },
    Setting {
        key: Key::Idempotency,
        name: "idempotency",
        kind: Kind::Choice(&["unknown", "honoured"]),
        scope: Scope::Call,
        default: "unknown",
        short: "whether a server runs calls with the same key only once: 'pay*=idempotency:honoured'",
        long: "`honoured`: a call without `params.idempotencyKey` gets one, the same in every attempt, and is `repeatable`.",
    },
    Setting {
        key: Key::Handshake,
        name: "handshake",
        kind: Kind::Time,
        scope: Scope::Process,
        default: "5m",
        short: "how long `initialize` or `server/discover` may take",
        long: "A first `npx` may take minutes to download a server; that is no reason to give up. With `serve`: 60s without \
               a sign of the server, and 5m in all.",
    },
    Setting {
        key: Key::CancelGrace,
        name: "cancel-grace",
        kind: Kind::Time,
        scope: Scope::Process,
        default: "5s",
        short: "how long after a limit fired a server may be silent before it is called hung",
        long: "The client never waits for it: its error leaves when the limit fires. What \
               happens to a server that shows no sign of life in this time is up to `restart`.",
    },
    Setting {
        key: Key::Drain,
        name: "drain",
        kind: Kind::Time,
        scope: Scope::Process,
        default: "30s",
        short: "how long calls in flight may finish after the client closed its end",
        long: "So `printf … | outlast -- server` prints the answers, if the server goes on after the \
               end of its input. After its end a client hears only what the server says, and limits that fire: \
               a call that the server leaves unanswered stays so. Then the server has a second to end, gets SIGTERM, and half a second later \
               SIGKILL. On SIGTERM or SIGINT that begins with SIGTERM at once, and the status is 143 or 130.",
    },
    Setting {
        key: Key::MaxMessage,
        name: "max-message",
        kind: Kind::Size,
        scope: Scope::Process,
        default: "64MiB",
        short: "the longest message that is taken",
        long: "A longer one from the client is answered with an error; one from the server fails \
               its call with `message-too-large`. The connection goes on with the next line. \
               Between 1KiB and 1GiB.",
    },
    Setting {
        key: Key::Restart,
        name: "restart",
        kind: Kind::Choice(&["on-hang", "on-timeout", "on-crash", "never"]),
        scope: Scope::Process,
        default: "on-hang",
        short: "when to start a server again: on-hang, on-timeout, on-crash or never",
        long: "`on-crash`: when its process ended, or closed its output, after it had answered once. \
               `on-hang`: also when a limit that you wrote fired and the server showed no sign of life \
               within `cancel-grace`: no message, no answered ping, no CPU time, no bytes. `on-timeout`: also \
               whenever such a limit fires. `never`: outlast ends with its server. A new process is told \
               what the old one knew: the handshake, the log level, subscriptions.",
    },
    Setting {
        key: Key::RestartBackoff,
        name: "restart-backoff",
        kind: Kind::TimeOrOff,
        scope: Scope::Process,
        default: "500ms",
        short: "the wait before a crashed server is started again",
        long: "Doubles with every crash within a minute, up to 30s, with jitter; `off` means at once. A hung \
               server is started at once the first time.",
    },
    Setting {
        key: Key::RestartIntensity,
        name: "restart-intensity",
        kind: Kind::Count,
        scope: Scope::Process,
        default: "5",
        short: "restarts within a minute before a server counts as failed",
        long: "A failed server answers every request at once with `server-failed` and the time of the next \
               try, which comes every `reconnect-every`.",
    },
    Setting {
        key: Key::ConnectRetries,
        name: "connect-retries",
        kind: Kind::Count,
        scope: Scope::Process,
        default: "3",
        short: "further tries when a restarted server does not come up",
        long: "It could not be started, ended, refused `initialize` or did not answer it within `handshake`. \
               After these tries the server counts as failed. A server that ends before it ever answered is \
               not tried again: outlast ends with its status, as the server alone would.",
    },
    Setting {
        key: Key::ConnectBackoff,
        name: "connect-backoff",
        kind: Kind::Time,
        scope: Scope::Process,
        default: "2s",
        short: "the wait before the first of these tries; it doubles",
        long: "2s, 4s, 8s with the defaults.",
    },
    Setting {
        key: Key::ReconnectEvery,
        name: "reconnect-every",
        kind: Kind::Time,
        scope: Scope::Process,
        default: "30s",
        short: "how often a failed server is tried again, for ever",
        long: "Until it answers.",
    },
    Setting {
        key: Key::RetryBackoff,
        name: "retry-backoff",
        kind: Kind::Time,
        scope: Scope::Process,
        default: "500ms",
        short: "the longest wait before a call's second attempt",
        long: "Doubles with every attempt up to 10s; the real wait lies anywhere below it.",
    },
    Setting {
        key: Key::Trust,
        name: "trust",
        kind: Kind::Switch,
        scope: Scope::Process,
        default: "false",
        short: "believe the server's hints about which tools may be repeated",
        long: "A tool whose annotations say `readOnlyHint` or `idempotentHint` is then repeatable. The hints \
               come from the server's own tool list, so trust only servers that you know.",
    },
    Setting {
        key: Key::Instant,
        name: "instant",
        kind: Kind::Switch,
        scope: Scope::Process,
        default: "false",
        short: "answer the handshake and the lists from memory while the server starts",
        long: "What a server answered to `initialize` (or `server/discover`) and to the lists of tools, prompts \
               and resources is remembered in the state directory, under the command, the working directory, the \
               server's environment, the client and the program's date. The next start answers from it in \
               milliseconds; calls wait for the server. If its real answers differ, the client gets \
               `list_changed`. `outlast cache clear` forgets all.",
    },
    Setting {
        key: Key::Connect,
        name: "connect",
        kind: Kind::Time,
        scope: Scope::Process,
        default: "10s",
        short: "how long a connection to a remote server may take",
        long: "Name, TCP, proxy and TLS. Nothing else about a remote server has a time limit of its own: what a call may \
               take is up to `timeout` and `max`. Tries that fail are repeated as `connect-retries` says.",
    },
    Setting {
        key: Key::PoolIdle,
        name: "pool-idle",
        kind: Kind::Time,
        scope: Scope::Process,
        default: "90s",
        short: "how long an unused connection to a remote server is kept",
        long: "Then it is closed.",
    },
    Setting {
        key: Key::PoolMaxIdle,
        name: "pool-max-idle",
        kind: Kind::Count,
        scope: Scope::Process,
        default: "32",
        short: "unused connections that are kept",
        long: "One more is closed at once.",
    },
    Setting {
        key: Key::Header,
        name: "header",
        kind: Kind::Lines("'NAME: VALUE'"),
        scope: Scope::Process,
        default: "",
        short: "a header for every request to a remote server",
        long: "`--header 'Authorization: Bearer ${TOKEN}'`; `${VAR}` is taken from the environment, and a missing one is an \
               error. May be given several times; in the environment one a line. The client's own token is never \
               passed on.",
    },
    Setting {
        key: Key::CaFile,
        name: "ca-file",
        kind: Kind::Path,
        scope: Scope::Process,
        default: "",
        short: "trust the certificates in this PEM file, beside the system's",
        long: "For servers with a certificate of your own authority.",
    },
    Setting {
        key: Key::Listen,
        name: "listen",
        kind: Kind::Lines("ADDR"),
        scope: Scope::Process,
        default: "",
        short: "`serve`: where to listen, such as 127.0.0.1:7600",
        long: "The endpoint is `/mcp`; `/healthz` and `/readyz` say whether it lives and is ready. Port 0 takes a free one; \
               the line that `serve` writes to stderr names it. An address that others can reach needs `token-file` or `no-auth`.",
    },
    Setting {
        key: Key::TokenFile,
        name: "token-file",
        kind: Kind::Path,
        scope: Scope::Process,
        default: "",
        short: "`serve`: who may come in: a line for each, NAME SHA256-HEX",
        long: "`outlast token new NAME >> FILE` adds a line, and shows the token on stderr. A request then needs `Authorization: Bearer TOKEN`; its name is \
               the principal whose sessions, calls and streams are kept apart from others.",
    },
    Setting {
        key: Key::NoAuth,
        name: "no-auth",
        kind: Kind::Switch,
        scope: Scope::Process,
        default: "false",
        short: "`serve`: let everybody in who can reach the address",
        long: "Only needed for addresses that others can reach.",
    },
    Setting {
        key: Key::AllowHost,
        name: "allow-host",
        kind: Kind::Lines("NAME"),
        scope: Scope::Process,
        default: "",
        short: "`serve`: a host name that requests may use",
        long: "`localhost` and addresses are always taken in `Host`; every other name in `Host` or `Origin` is refused with 403, \
               because a web page could have its own name point here. May be given several times.",
    },
    Setting {
        key: Key::AllowOrigin,
        name: "allow-origin",
        kind: Kind::Lines("ORIGIN"),
        scope: Scope::Process,
        default: "",
        short: "`serve`: a web origin that may send requests",
        long: "`https://app.example.com`. Origins on `localhost`, on an allowed host and on the very address that a request is \
               sent to are taken anyway. No CORS headers are sent. May be given several times.",
    },
    Setting {
        key: Key::Share,
        name: "share",
        kind: Kind::Choice(&["principal", "session", "all"]),
        scope: Scope::Process,
        default: "principal",
        short: "`serve`: who shares a server: principal, session or all",
        long: "`principal`: the sessions of one token share one process (or one remote session), until it asks a client \
               something, or a session subscribes or sets a log level; from then on new sessions get their own. \
               Without tokens every session is its own principal. `session`: never shared. `all`: shared by everybody. \
               Only sessions share that ask for the same version and have the same name and capabilities; modern \
               clients, who have no sessions, share one per principal.",
    },
    Setting {
        key: Key::SessionIdle,
        name: "session-idle",
        kind: Kind::Time,
        scope: Scope::Process,
        default: "5m",
        short: "`serve`: free what an unused session holds after this long",
        long: "Unused: no request, no open stream, no unfinished call. Its id is remembered for 24 hours, and the next \
               request wakes it on a server that is told the same `initialize`.",
    },
    Setting {
        key: Key::ResumeWait,
        name: "resume-wait",
        kind: Kind::Time,
        scope: Scope::Process,
        default: "10m",
        short: "`serve`: how long a client that lost its connection may stay away",
        long: "A finished stream can be fetched by Last-Event-ID for this long (at most 16 MiB and 256 streams per session are \
               kept), a call with a resume token or an idempotency key goes on for this long without its client, one \
               that is made again after a crash of outlast waits this long for its client to come back, and a service of \
               `--keep` ends after this long without work.",
    },
    Setting {
        key: Key::ResumeMinWait,
        name: "resume-min-wait",
        kind: Kind::Time,
        scope: Scope::Process,
        default: "1s",
        short: "`serve`: how long a client should wait before it comes back",
        long: "Sent as `retry` on every stream of a legacy client.",
    },
    Setting {
        key: Key::MaxSessions,
        name: "max-sessions",
        kind: Kind::Count,
        scope: Scope::Process,
        default: "1000",
        short: "`serve`: sessions of one principal",
        long: "One more is refused with 429 and `too-many-sessions`.",
    },
    Setting {
        key: Key::MaxCalls,
        name: "max-calls",
        kind: Kind::Count,
        scope: Scope::Process,
        default: "20000",
        short: "`serve`: calls of one principal in flight",
        long: "A task, or another call with a ticket, counts until it ends, whoever waits for it. One more is \
               answered at once with `overloaded`.",
    },
    Setting {
        key: Key::MaxBytes,
        name: "max-bytes",
        kind: Kind::Size,
        scope: Scope::Process,
        default: "256MiB",
        short: "`serve`: bytes of one principal in requests not answered and responses not read",
        long: "A request beyond that is refused with 429 and `too-many-bytes`. Of a response counts what its client does not take; \
               beyond the bound, a client that has taken nothing for 5s is cut off, the one that stopped first before others, \
               and a legacy client can take its stream up again. Without tokens all clients are one principal here.",
    },
    Setting {
        key: Key::MaxConnections,
        name: "max-connections",
        kind: Kind::Count,
        scope: Scope::Process,
        default: "20000",
        short: "`serve`: connections open at once",
        long: "One more waits until another is closed. A connection that has sent no whole head of a request for 30s is \
               closed; so is one whose body pauses for 10s or takes longer than 5 minutes. A client that has been let in \
               may rest for 2 minutes between two requests.",
    },
    Setting {
        key: Key::MaxConnectionsPerAddress,
        name: "max-connections-per-address",
        kind: Kind::Count,
        scope: Scope::Process,
        default: "1000",
        short: "`serve`: connections open at once from one address",
        long: "One more is answered with 429 and closed, and the log counts them in one line. An IPv6 network of 64 bits counts \
               as one address. There is no bound for `trusted-proxies`, nor, unless this is set, for connections from this \
               machine, where a reverse proxy often runs.",
    },
    Setting {
        key: Key::TrustedProxies,
        name: "trusted-proxies",
        kind: Kind::Lines("ADDR"),
        scope: Scope::Process,
        default: "",
        short: "`serve`: a reverse proxy's address or network, such as 10.0.0.0/8",
        long: "A proxy brings the connections of many clients, so `max-connections-per-address` does not hold for it. May be \
               given several times.",
    },
    Setting {
        key: Key::Tasks,
        name: "tasks",
        kind: Kind::Switch,
        scope: Scope::Process,
        default: "false",
        short: "let clients fetch the answers of slow tools later",
        long: "For any tool of any server: a client of 2025-11-25 that asks for a task gets its handle at once, a client of \
               2026-07-28 that declares the extension gets one when a call takes longer than `task-after`. Servers that have \
               tasks of their own are left to it. On by default in `serve` and with `--keep`.",
    },
    Setting {
        key: Key::TaskAfter,
        name: "task-after",
        kind: Kind::Time,
        scope: Scope::Process,
        default: "10s",
        short: "how long a modern call may take before it becomes a task",
        long: "Fast calls stay plain.",
    },
    Setting {
        key: Key::TaskTtl,
        name: "task-ttl",
        kind: Kind::Time,
        scope: Scope::Process,
        default: "1h",
        short: "how long the result of a call with a ticket is kept after its end",
        long: "A task is kept longer if its client was told so: its `ttl` is `max` and `task-ttl` together, or what the client asked \
               for. An unfinished task is never forgotten.",
    },
    Setting {
        key: Key::TaskTtlMax,
        name: "task-ttl-max",
        kind: Kind::Time,
        scope: Scope::Process,
        default: "72h",
        short: "the longest time that a client may ask for",
        long: "The time that a client is told is at least `max` and `task-ttl` together, because a shorter one would lose work.",
    },
    Setting {
        key: Key::IdempotencyKey,
        name: "idempotency-key",
        kind: Kind::Lines("PATH"),
        scope: Scope::Process,
        default: "_meta.dev.outlast/idempotencyKey, _meta.claudecode/toolUseId, params.idempotencyKey",
        short: "where a tool call carries its idempotency key: _meta.NAME or params.NAME",
        long: "Two calls of one principal with the same key, tool and arguments are one call. May be given several times; the \
               first place with a key counts, and the built-in places are no longer looked at. `none` looks nowhere. Keys are \
               passed on as they came.",
    },
    Setting {
        key: Key::ClientCap,
        name: "client-cap",
        kind: Kind::TimeOrOff,
        scope: Scope::Process,
        default: "off",
        short: "when the client gives a tool up, whatever progress it sees",
        long: "Shortly before (a tenth of it, at most 5s) a call that still runs is answered with a ticket and goes on. The \
               client's list of tools has two more: SERVER_wait fetches the result, SERVER_cancel cancels the call. \
               Measure the cap of a client with `outlast doctor client`. Clients that progress keeps patient need none.",
    },
    Setting {
        key: Key::State,
        name: "state",
        kind: Kind::Path,
        scope: Scope::Process,
        default: "",
        short: "the folder for what outlives a connection, or `none` for memory",
        long: "By default `$XDG_STATE_HOME/outlast`, that is `~/.local/state/outlast`, on macOS \
               `~/Library/Application Support/outlast`. It is opened when it is first needed, readable by you \
               alone, and shared by all your outlast processes. If it cannot be used (a full disk, a file of a \
               newer version, a damaged one), outlast says so once and keeps what it must in memory.",
    },
    Setting {
        key: Key::Tool,
        name: "tool",
        kind: Kind::Rules,
        scope: Scope::Process,
        default: "",
        short: "settings for tools by name: 'run_*=timeout:5m,max:2h'",
        long: "`GLOB=KEY:VALUE,…` where GLOB matches the tool's name (`*` any text, `?` one \
               character) and KEY is timeout, max, keep-alive or signs. May be given several \
               times; in the environment separate by `;`. Of two globs that match, the one with \
               the longer literal part wins, then the later.",
    },
    Setting {
        key: Key::Method,
        name: "method",
        kind: Kind::Rules,
        scope: Scope::Process,
        default: "",
        short: "settings for methods: 'resources/*=timeout:10s'",
        long: "As `--tool`, for the request's method. A rule for a tool is nearer than one for a \
               method.",
    },
    Setting {
        key: Key::Log,
        name: "log",
        kind: Kind::Choice(&["error", "warn", "info", "debug"]),
        scope: Scope::Process,
        default: "warn",
        short: "how much to say on stderr: error, warn, info or debug",
        long: "At `warn` every limit that fires is one line.",
    },
    Setting {
        key: Key::LogFormat,
        name: "log-format",
        kind: Kind::Choice(&["text", "json"]),
        scope: Scope::Process,
        default: "text",
        short: "how to write the log: text or json",
        long: "`json` writes an object a line.",
    },
    Setting {
        key: Key::TraceMessages,
        name: "trace-messages",
        kind: Kind::Path,
        scope: Scope::Process,
        default: "",
        short: "record every message to this file (- for stderr)",
        long: "One JSON object a line: time, direction, message; over HTTP also the number of the client's exchange, and a status \
               that is no success. Values of keys that look like secrets (password, token, session, authorization, …) are \
               replaced by `***`. The file gets mode 0600, also if it is there already. No call waits for it: up to \
               16 MiB wait to be written, and what is lost beyond that is counted there and in the log.",
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
            Kind::Choice(_) => "WORD",
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
            if !matches!(item.kind, Kind::Rules | Kind::Path | Kind::Lines(_)) && item.key != Key::Timeout {
                assert!(item.parse(item.default).is_ok(), "{}", item.name);
            }
        }
    }

    #[test]
    fn names_make_variables() {
        assert_eq!(setting(Key::KeepAlive).variable(), "OUTLAST_KEEP_ALIVE");
    }
}
