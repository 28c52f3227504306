//! How servers are started, bounded and reached.

use super::{Applies, Group, Key, Kind, Place, Scope, Setting};

pub(super) const ITEMS: &[Setting] = &[
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
        long: "A server of revision 2025-11-25 or older that has no call and has said nothing for this long is \
               sent a `ping`. A missing answer counts only if this process has answered a ping before; the \
               server then has `cancel-grace` to show a sign of life, and counts as hung if it shows none \
               (`restart`). An answered ping never resets the limit of a call.",
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
        long: "Its clients stay connected, and the next call or subscription starts it again: it is told what \
               it was told before (handshake, log level), and calls wait until it is there. What it kept in memory is \
               lost. A server is not stopped while it has a call, waits for an answer of a client or has a \
               subscription, after it has made a task of its own, nor if `restart` is `never`. A remote server has no process to stop.",
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
        key: Key::MaxInFlight,
        name: "max-in-flight",
        kind: Kind::Count,
        scope: Scope::Process,
        place: Place::Server,
        group: Group::Limits,
        applies: Applies::Everywhere,
        front: false,
        default: "100000",
        short: "the most calls of a server in flight",
        long: "The calls of all clients count together; in `[tokens.NAME]`, all calls with that token. Counted are \
               `tools/call`, `prompts/get`, `resources/read` and `completion/complete`; a task counts until \
               it ends. Further calls wait (`queue`); if none may wait they fail with \
               `too-many-calls`. The default is the most that one outlast process can have in flight.",
    },
    Setting {
        key: Key::Queue,
        name: "queue",
        kind: Kind::Count,
        scope: Scope::Process,
        place: Place::Server,
        group: Group::Limits,
        applies: Applies::Everywhere,
        front: false,
        default: "100",
        short: "the most calls that wait for their turn",
        long: "Calls beyond `max-in-flight` or `rate` wait here, first come, first served. Further ones fail with \
               `queue-full`. With 0 no call waits. Also in `[tokens.NAME]`.",
    },
    Setting {
        key: Key::QueueWait,
        name: "queue-wait",
        kind: Kind::Time,
        scope: Scope::Process,
        place: Place::Server,
        group: Group::Limits,
        applies: Applies::Everywhere,
        front: false,
        default: "30s",
        short: "the longest wait of a call for its turn",
        long: "Then the call fails with `queue-wait`. `timeout` begins to run when the wait is over; `max` runs all \
               the time, and keep-alive goes on. Also in `[tokens.NAME]`.",
    },
    Setting {
        key: Key::Rate,
        name: "rate",
        kind: Kind::Rate,
        scope: Scope::Process,
        place: Place::Server,
        group: Group::Limits,
        applies: Applies::Everywhere,
        front: false,
        default: "off",
        short: "how many calls may begin: 10/s, 600/m, 5000/h",
        long: "As many as the number says may begin at once, after that one each time the unit divided by the \
               number has passed (a token bucket). Others wait (`queue`); one that would wait longer than \
               `queue-wait` fails at once with `rate-limited`. Also in `[tokens.NAME]`.",
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
        short: "trust the server about which tools may be repeated",
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
        short: "how long an unused connection to a server is kept",
        long: "A connection to a remote server is kept for this long for the next request, then closed.",
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
];
