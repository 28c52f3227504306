//! Calls that can be fetched later, keys, hand-offs, the store.

use super::{Applies, Group, Key, Kind, Place, Scope, Setting};

pub(super) const ITEMS: &[Setting] = &[
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
        short: "when the call of a modern client becomes a task",
        long: "A call that ends sooner gets a plain answer.",
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
               a progress token. `outlast help hand-off` explains all keys. The row wins over what was learned and \
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
        default: "the user's state folder",
        short: "the folder for stored calls; `none`: memory only",
        long: "The default is `$XDG_STATE_HOME/outlast`, usually `~/.local/state/outlast`; on macOS \
               `~/Library/Application Support/outlast`. The folder is created when it is first needed, \
               can be read by you alone, and is shared by all your outlast processes. If it cannot be \
               used (the disk is full, the file is damaged or of a newer version), outlast says so once \
               and keeps its data in memory.",
    },
    Setting {
        key: Key::StoreUrl,
        name: "store-url",
        kind: Kind::Path,
        scope: Scope::Process,
        place: Place::Store,
        group: Group::Tasks,
        applies: Applies::Serve,
        front: false,
        default: "",
        short: "the PostgreSQL database that replicas share",
        long: "`postgres://USER:PASSWORD@HOST:5432/DATABASE`. In the file: `url` in [store], with `${VARIABLE}` for \
               the password. Calls with a ticket, sessions, streams and decisions of persons are kept there \
               instead of in the state directory, so that every replica can answer for them. A host that is not \
               this machine must have TLS with a valid certificate, unless the URL ends with \
               `?sslmode=disable`; `sslrootcert=FILE` names the certificates to trust. A database that cannot \
               be reached ends `outlast serve` when it starts, and is waited for later.",
    },
];
