//! Rules, the log, the background.

use super::{Applies, Group, Key, Kind, Place, Scope, Setting};

pub(super) const ITEMS: &[Setting] = &[
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
               secrets (password, token, session, authorization, …), and of those that `redact` names, are \
               replaced by `***`; of a task id, a ticket or a session's id only the first 8 characters \
               are written. The file gets mode 0600, even if it exists already. No call waits for the file: up to 16 MiB wait to be \
               written; messages beyond that are not recorded, and counted in the file and in the log.",
    },
    Setting {
        key: Key::Otlp,
        name: "otlp",
        kind: Kind::Lines("URL"),
        scope: Scope::Process,
        place: Place::Log,
        group: Group::Log,
        applies: Applies::Everywhere,
        front: false,
        default: "",
        short: "send traces to this OpenTelemetry collector",
        long: "Such as `http://127.0.0.1:4318`; `/v1/traces` is added to the path. Traces are sent by OTLP over HTTP as \
               JSON: a span for each call and each attempt. Servers are told their place in the trace \
               (`traceparent` in `_meta`, and over HTTP in a header). No call waits for the collector: up to \
               4 MiB of spans wait for it; more are lost, and the log says how many. `off` switches it off \
               again. The variables OTEL_EXPORTER_OTLP_* are not read: they are there for the servers. See \
               `docs/traces.md`.",
    },
    Setting {
        key: Key::OtlpHeader,
        name: "otlp-header",
        kind: Kind::Lines("HEADER"),
        scope: Scope::Process,
        place: Place::Log,
        group: Group::Log,
        applies: Applies::Everywhere,
        front: false,
        default: "",
        short: "add a header to requests to the collector",
        long: "`--otlp-header 'Authorization: Bearer ${TOKEN}'`: `${VAR}` is replaced by the variable of that \
               name, and a missing variable is an error. The value is never shown. May be given several \
               times; in the variable OUTLAST_OTLP_HEADER each header is a line.",
    },
    Setting {
        key: Key::AccessLog,
        name: "access-log",
        kind: Kind::Path,
        scope: Scope::Process,
        place: Place::Log,
        group: Group::Log,
        applies: Applies::Serve,
        front: false,
        default: "",
        short: "a line for every HTTP request in this file (-: stderr)",
        long: "Time, address, principal, HTTP method, path without its query, method and tool of the message, \
               status, bytes written, duration; also of requests that are refused. With `log-format json` each \
               line is an object. Tokens, session ids and arguments are never in it. The file gets mode 0600, \
               even if it exists already, and is never rotated by outlast. No request waits for it: up to \
               16 MiB of lines wait to be written; what is lost beyond that is counted in the file and in the log.",
    },
    Setting {
        key: Key::Record,
        name: "record",
        kind: Kind::Path,
        scope: Scope::Process,
        place: Place::Log,
        group: Group::Log,
        applies: Applies::Everywhere,
        front: false,
        default: "",
        short: "record this run in FILE, for `outlast replay`",
        long: "Keeps everything that happens to outlast, and in few words what it decides; `outlast replay FILE` \
               shows the run again, so that a bug report is a file. Each start begins a new FILE with mode 0600; \
               the one before becomes FILE.1. Secrets are replaced, long texts of messages are cut. The recording \
               ends after 64 MiB, or when 16 MiB wait to be written: no call waits for it. With `--keep` the \
               service in the background is recorded.",
    },
    Setting {
        key: Key::Redact,
        name: "redact",
        kind: Kind::Lines("GLOB"),
        scope: Scope::Process,
        place: Place::Log,
        group: Group::Log,
        applies: Applies::Everywhere,
        front: false,
        default: "",
        short: "arguments whose values are always hidden: 'iban*'",
        long: "Names of arguments whose values are shown as `***` where a person is asked to approve a call, and in \
               `trace-messages`, besides those that are called password, token, secret, key and the like. \
               May be given several times; in the environment, one line each.",
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
