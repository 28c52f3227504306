//! Limits, repeats and holds of calls.

use super::{Applies, Group, Key, Kind, Place, Scope, Setting};

pub(super) const ITEMS: &[Setting] = &[
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
        short: "calls as tasks: optional, required or forbidden",
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
        short: "whether the server honours keys: honoured, unknown",
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
        key: Key::Hold,
        name: "hold",
        kind: Kind::Choice(&["false", "true", "destructive"]),
        scope: Scope::Call,
        place: Place::Call,
        group: Group::Limits,
        applies: Applies::Everywhere,
        front: false,
        default: "false",
        short: "a person must approve these calls: 'delete_*=hold:true'",
        long: "The call is sent only after a person has said yes (`outlast holds`); meanwhile its client is kept \
               patient as during a slow call, and its `timeout` stands still. `destructive` means every tool whose \
               server does not say that it only reads (`readOnlyHint`) or destroys nothing (`destructiveHint: \
               false`). A server could lie about that: for a server that you do not trust, write `true`.",
    },
    Setting {
        key: Key::HoldTimeout,
        name: "hold-timeout",
        kind: Kind::Time,
        scope: Scope::Call,
        place: Place::Call,
        group: Group::Limits,
        applies: Applies::Everywhere,
        front: false,
        default: "2m",
        short: "how long a call waits for a person's yes",
        long: "Then the call fails and was never sent. A client that cannot be kept patient (no progress token, no \
               task, no known limit) is assumed to give up after 60s: its call fails after 50s, the question stays \
               open for 10 minutes, and if a person says yes meanwhile, the same call passes at once.",
    },
    Setting {
        key: Key::HoldAskClient,
        name: "hold-ask-client",
        kind: Kind::Switch,
        scope: Scope::Call,
        place: Place::Call,
        group: Group::Limits,
        applies: Applies::Everywhere,
        front: false,
        default: "false",
        short: "held calls may be approved in the client, too",
        long: "A client that can show a form to its user (MCP's elicitation) is asked as well, and the first word \
               counts, wherever it comes from. Only for clients that you trust: one that answers without its user \
               approves its own calls.",
    },
    Setting {
        key: Key::Adaptive,
        name: "adaptive",
        kind: Kind::Switch,
        scope: Scope::Call,
        place: Place::Call,
        group: Group::Limits,
        applies: Applies::Everywhere,
        front: false,
        default: "false",
        short: "adapt a tool's timeout to what was measured",
        long: "The timeout of a tool follows how long its calls took in the last 30 days, as `outlast advise` \
               proposes it, between `adaptive-min` and `adaptive-max`. Both must be written; without them, and with \
               fewer than 30 calls, `timeout` stays what it is. `outlast explain` shows what follows.",
    },
    Setting {
        key: Key::AdaptiveMin,
        name: "adaptive-min",
        kind: Kind::TimeOrOff,
        scope: Scope::Call,
        place: Place::Call,
        group: Group::Limits,
        applies: Applies::Everywhere,
        front: false,
        default: "off",
        short: "the shortest timeout that `adaptive` may set",
        long: "Only with `adaptive`.",
    },
    Setting {
        key: Key::AdaptiveMax,
        name: "adaptive-max",
        kind: Kind::TimeOrOff,
        scope: Scope::Call,
        place: Place::Call,
        group: Group::Limits,
        applies: Applies::Everywhere,
        front: false,
        default: "off",
        short: "the longest timeout that `adaptive` may set",
        long: "Only with `adaptive`.",
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
        short: "silence after a cancel before a server counts as hung",
        long: "When a limit fires, the server is told to cancel the call. If the server then shows no \
               sign of life for this long, it counts as hung, and `restart` decides what happens. The \
               client does not wait for this: its error is sent when the limit fires.",
    },
    Setting {
        key: Key::ListWait,
        name: "list-wait",
        kind: Kind::Time,
        scope: Scope::Process,
        place: Place::Process,
        group: Group::Limits,
        applies: Applies::Everywhere,
        front: false,
        default: "4s",
        short: "how long a merged list waits for a slow server",
        long: "Where a file has several servers: a server that has not listed by then is left out, or what \
               is known of it from before is shown, and the client is notified when it has listed. The \
               default is a second less than the shortest limit that a client is known to have for a \
               list.",
    },
    Setting {
        key: Key::DeclareTimeouts,
        name: "declare-timeouts",
        kind: Kind::Switch,
        scope: Scope::Process,
        place: Place::Process,
        group: Group::Limits,
        applies: Applies::Everywhere,
        front: false,
        default: "false",
        short: "tell clients in the handshake how long calls may take",
        long: "`capabilities.tools.timeouts.call` and the like, in seconds, as proposed in RFC #1492: a \
               client that waits as long never gives up before outlast does. For `tools/call` it is the \
               longest `max` of any tool, for other methods `timeout` times the attempts. The proposal \
               was not adopted, and a client that checks capabilities strictly may refuse them.",
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
        short: "how long open calls may go on after the client left",
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
];
