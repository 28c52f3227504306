//! Clients over HTTP, their sessions and bounds.

use super::{Applies, Group, Key, Kind, Place, Scope, Setting};

pub(super) const ITEMS: &[Setting] = &[
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
               ready. With port 0 the system chooses a free port; the first line on stderr names it. A \
               socket that a service manager passes (systemd's socket activation) is used in its place. An \
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
        short: "how long an unused session keeps its server",
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
        key: Key::Metrics,
        name: "metrics",
        kind: Kind::Switch,
        scope: Scope::Process,
        place: Place::Listen,
        group: Group::Http,
        applies: Applies::Serve,
        front: false,
        default: "false",
        short: "numbers for Prometheus at /metrics",
        long: "Calls, outcomes, durations, restarts and more, in the text format of Prometheus; `docs/metrics.md` \
               lists them. Whoever may see everything on the dashboard may read them: with tokens those with \
               `dashboard = \"all\"`, without tokens this machine only.",
    },
];
