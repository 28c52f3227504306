//! Why a call ended without an answer from its server, and what its client is told.
//!
//! Most hosts show only `message`, so it alone says what happened, the limit and its setting, and
//! one sentence of advice. `data.outlast` carries the same for programs. Each code has a page:
//! `outlast help CODE` prints it, and it is in `docs/errors/`.

use crate::limits;
use crate::settings::show_duration;
use serde::Serialize;
use std::fmt::Write;
use std::time::Duration;

/// The kinds of failure; programs tell them apart by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// No sign of life for as long as `timeout` allows.
    Timeout,
    /// The hard cap.
    Max,
    /// The server went away in mid-call.
    ServerGone,
    /// The server cannot be reached at all.
    ServerFailed,
    /// A bound in `limits.rs` was reached.
    Overloaded,
    /// An HTTP server answered with a status and no MCP.
    HttpStatus,
    /// What an HTTP server answered is no MCP.
    NotMcp,
    /// A principal has too many sessions open.
    TooManySessions,
    /// A principal sends too much at once.
    TooManyBytes,
    /// No call that whoever asks may fetch has this ticket.
    TicketUnknown,
    /// A message was longer than `max-message`.
    MessageTooLarge,
    /// Another call has its idempotency key.
    KeyConflict,
    /// A later request for the same call has taken its place.
    Superseded,
    /// No person said yes in time.
    HoldTimeout,
    /// A person cancelled it, and not its client.
    Cancelled,
    /// The tool is not for whoever called it.
    NotAllowed,
    /// `max-in-flight` is reached, and nobody may wait.
    TooManyCalls,
    /// `queue` calls wait already.
    QueueFull,
    /// It waited `queue-wait` for its turn.
    QueueWait,
    /// `rate` does not let it begin in time.
    RateLimited,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 20] = [
        Kind::Timeout,
        Kind::Max,
        Kind::ServerGone,
        Kind::ServerFailed,
        Kind::Overloaded,
        Kind::HttpStatus,
        Kind::NotMcp,
        Kind::TooManySessions,
        Kind::TooManyBytes,
        Kind::TicketUnknown,
        Kind::MessageTooLarge,
        Kind::KeyConflict,
        Kind::Superseded,
        Kind::HoldTimeout,
        Kind::Cancelled,
        Kind::NotAllowed,
        Kind::TooManyCalls,
        Kind::QueueFull,
        Kind::QueueWait,
        Kind::RateLimited,
    ];

    /// For programs.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Timeout => "timeout",
            Kind::Max => "max",
            Kind::ServerGone => "server-gone",
            Kind::ServerFailed => "server-failed",
            Kind::Overloaded => "overloaded",
            Kind::HttpStatus => "http-status",
            Kind::NotMcp => "not-mcp",
            Kind::TooManySessions => "too-many-sessions",
            Kind::TooManyBytes => "too-many-bytes",
            Kind::TicketUnknown => "ticket-unknown",
            Kind::MessageTooLarge => "message-too-large",
            Kind::KeyConflict => "key-conflict",
            Kind::Superseded => "superseded",
            Kind::HoldTimeout => "hold-timeout",
            Kind::Cancelled => "cancelled",
            Kind::NotAllowed => "not-allowed",
            Kind::TooManyCalls => "too-many-calls",
            Kind::QueueFull => "queue-full",
            Kind::QueueWait => "queue-wait",
            Kind::RateLimited => "rate-limited",
        }
    }

    /// The JSON-RPC code. Towards 2025 clients a timeout is the SDKs' own RequestTimeout; the
    /// 2026-07-28 revision closes that range to new meanings.
    pub fn code(self, modern: bool) -> i32 {
        match self {
            Kind::Timeout | Kind::Max if modern => -31001,
            Kind::Timeout | Kind::Max => -32001,
            Kind::ServerGone => -31002,
            Kind::ServerFailed => -31003,
            Kind::Overloaded => -31004,
            Kind::HttpStatus => -31005,
            Kind::NotMcp => -31006,
            Kind::TooManySessions => -31007,
            Kind::TooManyBytes => -31008,
            Kind::TicketUnknown => -31010,
            Kind::MessageTooLarge => -31011,
            Kind::KeyConflict => -31012,
            Kind::Superseded => -31013,
            Kind::HoldTimeout => -31014,
            Kind::Cancelled => -31015,
            Kind::NotAllowed => -31020,
            Kind::TooManyCalls => -31021,
            Kind::QueueFull => -31022,
            Kind::QueueWait => -31023,
            Kind::RateLimited => -31024,
        }
    }
}

/// What the server is doing as far as we know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ServerState {
    /// It was told to cancel.
    Cancelled,
    /// It was told to cancel, and has gone on after such words before.
    CancelIgnored,
    /// Its process has ended.
    Gone,
    /// It is being restarted.
    Restarting,
    /// The call never reached it.
    NeverReached,
    /// It goes on: this request is never cancelled.
    Running,
}

/// Whether asking again does harm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum Retry {
    Safe,
    Unsafe,
    Pointless,
}

/// Whose words an error uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wording {
    /// Ours.
    Own,
    /// Those of `timeout-mcp`, whose users' scripts match on them.
    TimeoutMcp,
}

/// One failure, with all that is known about it.
#[derive(Clone, Debug)]
pub struct Failure {
    /// What kind.
    pub kind: Kind,
    /// The server's name.
    pub server: Box<str>,
    /// The request's method.
    pub method: Box<str>,
    /// The tool, for `tools/call`.
    pub tool: Option<Box<str>>,
    /// How long the call ran.
    pub elapsed: Duration,
    /// The limit that was reached.
    pub limit: Option<Duration>,
    /// Who set that limit.
    pub setting: Option<Box<str>>,
    /// How often it was sent to a server.
    pub attempts: u32,
    /// When it may be asked again, if that is known.
    pub retry_after: Option<Duration>,
    /// What the server is doing.
    pub state: ServerState,
    /// Whether asking again does harm.
    pub retry: Retry,
    /// How long ago the call last gave a sign of life.
    pub last_sign: Option<Duration>,
    /// Nothing moved the limit: it was a plain timer.
    pub plain: bool,
    /// How the server ended, or why it could not start; which bound was reached.
    pub detail: Option<String>,
    /// The last that the server wrote to stderr.
    pub stderr: Option<String>,
}

/// Who says so.
#[derive(Serialize)]
pub(crate) struct Origin<'a> {
    outlast: Data<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Data<'a> {
    kind: &'a str,
    server: &'a str,
    method: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool: Option<&'a str>,
    elapsed_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    limit_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    setting: Option<&'a str>,
    attempts: u32,
    server_state: ServerState,
    retry: Retry,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after_ms: Option<u64>,
    signs: Signs<'a>,
    help: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Signs<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    last_sign_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stderr: Option<&'a str>,
}

impl Failure {
    /// The JSON-RPC answer, for the raw id it belongs to.
    pub fn answer(&self, id: &[u8], modern: bool, wording: Wording) -> Vec<u8> {
        let (code, message) = match wording {
            Wording::Own => (self.kind.code(modern), self.message()),
            Wording::TimeoutMcp => (-32603, self.timeout_mcp_message()),
        };
        error_answer(id, code, &message, Some(&Origin { outlast: self.data(modern) }))
    }

    /// The same for the log, and what the message has in words.
    pub(crate) fn facts(&self) -> serde_json::Value {
        let mut facts = serde_json::to_value(self.data(false)).unwrap_or_default();
        if let (Some(facts), Some(detail)) = (facts.as_object_mut(), &self.detail) {
            facts.insert("detail".into(), detail.as_str().into());
        }
        facts
    }

    fn data(&self, modern: bool) -> Data<'_> {
        let millis = |time: Duration| time.as_millis() as u64;
        Data {
            kind: self.kind.name(),
            server: cut(&self.server, limits::NAME),
            method: cut(&self.method, limits::NAME),
            tool: self.tool.as_deref().map(|tool| cut(tool, limits::NAME)),
            elapsed_ms: millis(self.elapsed),
            limit_ms: self.limit.map(millis),
            setting: self.setting.as_deref().map(|setting| cut(setting, limits::NAME)),
            attempts: self.attempts,
            server_state: self.state,
            retry: self.retry,
            retry_after_ms: self.retry_after.map(millis),
            signs: Signs { last_sign_ms: self.last_sign.map(millis), stderr: self.stderr.as_deref() },
            help: format!("outlast help {}", self.kind.code(modern)),
        }
    }

    /// What the person sees: what happened, the limit and its setting, one sentence of advice.
    pub fn message(&self) -> String {
        let what = cut(self.tool.as_deref().unwrap_or(&self.method), 60);
        let limit = self.limit.map(show_duration).unwrap_or_default();
        let setting = self.setting.as_deref().unwrap_or("built-in");
        let detail = self.detail.as_deref().unwrap_or("ended");
        let (fate, server) = (self.fate(), cut(&self.server, 40));
        let mut text = String::with_capacity(limits::ERROR_MESSAGE);
        // Ten thousand limits may fire at one moment: texts are put together, not formatted.
        let mut say = |parts: &[&str]| parts.iter().for_each(|part| text.push_str(part));
        match self.kind {
            Kind::Timeout => {
                let did = if self.plain { "` did not answer within " } else { "` gave no sign of life for " };
                say(&["`", what, did, &limit, " (timeout, ", setting, "); ", fate, ". "]);
                say(&["Raise it with ", &self.advice("timeout"), "."]);
            }
            Kind::Max => {
                say(&[
                    "`",
                    what,
                    "` was ended after ",
                    &limit,
                    ", the longest time allowed (max, ",
                    setting,
                    "); ",
                    fate,
                    ". ",
                ]);
                say(&["Raise it with ", &self.advice("max"), "."]);
            }
            Kind::ServerGone => {
                let last_line = self.last_line();
                say(&[
                    "server `",
                    server,
                    "` went away (",
                    detail,
                    ") before it answered `",
                    what,
                    "`",
                    &last_line,
                    ".",
                ]);
                say(&[if self.retry == Retry::Unsafe { " The call may have run." } else { "" }]);
            }
            Kind::ServerFailed => {
                say(&["server `", server, "` cannot be reached: ", detail, &self.last_line(), "."]);
            }
            Kind::Overloaded => {
                say(&["`", what, "` was not sent: ", detail, ". Call again when other calls have ended."]);
            }
            Kind::HttpStatus => {
                say(&["server `", server, "` refused `", what, "`: ", detail, "."]);
            }
            Kind::NotMcp => {
                say(&[
                    "server `",
                    server,
                    "` answered `",
                    what,
                    "` with something that is not MCP: ",
                    detail,
                    ". ",
                ]);
                say(&["Is this the URL of an MCP endpoint?"]);
            }
            // Whoever sends too much is refused before there is a call.
            Kind::TooManySessions | Kind::TooManyBytes => say(&[detail]),
            Kind::KeyConflict => {
                say(&["`", what, "` was not sent: ", detail, ". "]);
                say(&["Give every call an idempotency key of its own."]);
            }
            Kind::TooManyCalls | Kind::QueueFull | Kind::QueueWait | Kind::RateLimited => {
                let after = show_duration(self.retry_after.unwrap_or_default());
                say(&["`", what, "` was not sent: ", detail, ". Call again in ", &after, "."]);
            }
            Kind::Superseded => say(&[detail]),
            Kind::HoldTimeout => {
                say(&[
                    "Command timed out waiting for approval. Consider approving faster or configuring a longer \
                       timeout. `",
                    what,
                    "` was not sent: nobody approved it within ",
                    &limit,
                    " (hold-timeout, ",
                ]);
                say(&[setting, "); ", detail, "."]);
            }
            Kind::Cancelled => {
                say(&["`", what, "` was cancelled by ", detail, "; ", fate, ". "]);
                say(&["Ask that person before you call it again."]);
            }
            Kind::NotAllowed => {
                say(&[
                    detail,
                    ". Use a tool that `tools/list` names, or ask whoever runs outlast to allow it.",
                ]);
            }
            Kind::TicketUnknown if self.detail.is_some() => say(&[detail]),
            Kind::TicketUnknown => {
                say(&["no call has this ticket: it is mistyped, expired, or belongs to somebody else. "]);
                say(&["Copy the ticket exactly, or call the tool again."]);
            }
            Kind::MessageTooLarge => {
                say(&["`", what, "`: ", detail, " (max-message). "]);
                say(&["Raise it with --max-message, or ask for less."]);
            }
        }
        reached!(ERROR_MESSAGE if text.len() > limits::ERROR_MESSAGE);
        text.truncate(text.floor_char_boundary(limits::ERROR_MESSAGE));
        text
    }

    /// The flag that would have helped, with twice the limit.
    fn advice(&self, key: &str) -> String {
        let twice = show_duration(self.limit.unwrap_or_default() * 2);
        if self.setting.as_deref().is_some_and(|setting| setting.starts_with("_meta")) {
            return "a longer dev.outlast/timeoutMs in the request".to_owned();
        }
        let (flag, name) = match (&self.tool, &*self.method) {
            (_, "initialize" | "server/discover") => return ["--handshake ", &twice].concat(),
            (Some(tool), _) => ("--tool '", &**tool),
            (None, method) => ("--method '", method),
        };
        // A name that a rule cannot spell is matched by a glob that it can.
        let odd = |c: char| "=,'[]{}!\\".contains(c) || c.is_control();
        let name = if name.is_empty() || name.len() > 60 { "*".to_owned() } else { name.replace(odd, "?") };
        [flag, &name, "=", key, ":", &twice, "'"].concat()
    }

    fn fate(&self) -> &'static str {
        match self.state {
            ServerState::Cancelled => "the server was told to cancel it",
            ServerState::CancelIgnored => "the server was told to cancel it, but has ignored that before",
            ServerState::Gone => "the server has ended",
            ServerState::Restarting => "the server is being restarted",
            ServerState::NeverReached => "it never reached the server",
            ServerState::Running => "the server goes on with it",
        }
    }

    fn last_line(&self) -> String {
        let line = self.stderr.as_deref().and_then(|tail| tail.lines().rev().find(|l| !l.trim().is_empty()));
        line.map(|line| format!("; last line on stderr: {}", cut(line.trim(), 100))).unwrap_or_default()
    }

    fn timeout_mcp_message(&self) -> String {
        let restarting = if self.state == ServerState::Restarting { " (restarting now...)" } else { "" };
        match (self.kind, self.limit) {
            (Kind::Timeout, Some(limit)) => {
                format!("Method '{}' timed out after {}{restarting}", self.method, go_duration(limit))
            }
            _ => format!("{}{restarting}", self.message()),
        }
    }

    /// One line for the log: every field, in a fixed order.
    pub(crate) fn log_line(&self) -> String {
        let mut line = String::with_capacity(256);
        let mut field = |name: &str, value: &str| {
            line.push_str(name);
            line.push_str(value);
        };
        let short = |name| cut(name, limits::NAME);
        field("", self.kind.name());
        field(" server=", short(&self.server));
        field(" method=", short(&self.method));
        if let Some(tool) = &self.tool {
            field(" tool=", short(tool));
        }
        if let Some(limit) = self.limit {
            field(" limit=", &show_duration(limit));
        }
        field(" elapsed=", &show_duration(self.elapsed));
        if let Some(setting) = &self.setting {
            field(" setting=", setting);
        }
        field(" state=", self.fate());
        if let Some(detail) = &self.detail {
            field(" detail=", cut(detail, limits::ERROR_MESSAGE));
        }
        line
    }
}

/// A JSON-RPC error of an edge, to what never became a message.
pub fn edge_error(code: i32, message: &str) -> Vec<u8> {
    error_answer(b"null", code, message, None)
}

/// A JSON-RPC error answer. `id` is raw JSON.
pub(crate) fn error_answer(id: &[u8], code: i32, message: &str, data: Option<&Origin<'_>>) -> Vec<u8> {
    let mut answer = Vec::with_capacity(1024);
    answer.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    answer.extend_from_slice(id);
    answer.extend_from_slice(b",\"error\":");
    // Numbers and strings always serialise, and memory does not refuse a write.
    let _ = serde_json::to_writer(&mut answer, &Error { code, message, data });
    answer.push(b'}');
    answer
}

#[derive(Serialize)]
struct Error<'a> {
    code: i32,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<&'a Origin<'a>>,
}

/// A JSON string.
pub(crate) fn json_text(text: &str) -> Vec<u8> {
    // Strings always serialise.
    serde_json::to_vec(text).unwrap_or_default()
}

/// At most this many bytes, cut between characters.
pub(crate) fn cut(text: &str, most: usize) -> &str {
    reached!(NAME if most == limits::NAME && text.len() > most);
    &text[..text.floor_char_boundary(most)]
}

/// A duration as Go prints it: `30s`, `1m30s`, `1h0m0s`.
pub fn go_duration(time: Duration) -> String {
    let seconds = time.as_secs();
    let millis = time.subsec_millis();
    if seconds == 0 {
        return format!("{millis}ms");
    }
    let mut text = String::new();
    if seconds >= 3600 {
        let _ = write!(text, "{}h", seconds / 3600);
    }
    if seconds >= 60 {
        let _ = write!(text, "{}m", seconds / 60 % 60);
    }
    let _ = write!(text, "{}", seconds % 60);
    if millis > 0 {
        text += format!(".{millis:03}").trim_end_matches('0');
    }
    text + "s"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_look_as_go_prints_them() {
        let show = |millis| go_duration(Duration::from_millis(millis));
        assert_eq!(show(30_000), "30s");
        assert_eq!(show(90_000), "1m30s");
        assert_eq!(show(3_600_000), "1h0m0s");
        assert_eq!(show(1_500), "1.5s");
        assert_eq!(show(500), "500ms");
        assert_eq!(show(60_000), "1m0s");
    }

    #[test]
    fn a_message_stays_within_its_bound_whatever_the_names() {
        let long: Box<str> = "ü".repeat(500).into();
        let mut failure = Failure {
            kind: Kind::Timeout,
            server: long.clone(),
            method: "tools/call".into(),
            tool: Some(long.clone()),
            elapsed: Duration::from_secs(9),
            limit: Some(Duration::from_secs(9)),
            retry_after: Some(Duration::from_secs(9)),
            setting: Some(long.clone()),
            attempts: 1,
            state: ServerState::Cancelled,
            retry: Retry::Unsafe,
            last_sign: None,
            plain: false,
            detail: Some(long.to_string()),
            stderr: Some("x\n\u{1b}[31m".repeat(60)),
        };
        for kind in [
            Kind::Timeout,
            Kind::Max,
            Kind::ServerGone,
            Kind::ServerFailed,
            Kind::Overloaded,
            Kind::MessageTooLarge,
        ] {
            failure.kind = kind;
            assert!(failure.message().len() <= limits::ERROR_MESSAGE);
            let answer = failure.answer(b"1", true, Wording::Own);
            let answer: serde_json::Value = serde_json::from_slice(&answer).unwrap();
            let data = serde_json::to_string(&answer["error"]["data"]).unwrap();
            assert!(data.len() <= 2048, "{}", data.len());
            assert_eq!(answer["error"]["data"]["outlast"]["kind"], kind.name());
        }
    }
}
