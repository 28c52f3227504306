//! What is odd about a server, and what helps: a pure reading of the facts.
//!
//! Each function is one question. What is only unusual (no prompts, a line on stderr) is a fact of
//! the report and not odd.

use super::ending::{End, How};
use super::lists::{List, Outcome};
use super::noted::{Noted, Sample};
use super::visit::{Handshake, Ping, Visit};
use super::{Facts, bounds};
use crate::doctor::{glimpse, show};
use outlast_engine::limits::{END_GRACE, KILL_GRACE};
use outlast_engine::settings::counted;

/// Neither era works.
pub const NO_HANDSHAKE: &str = "no-handshake";

/// One oddity.
#[derive(Debug)]
pub struct Odd {
    /// For programs.
    pub kind: &'static str,
    /// The row of the report that it belongs to.
    pub row: &'static str,
    pub says: String,
    /// The setting or action that helps.
    pub helps: String,
}

/// Everything odd, in the order of the report's rows.
pub fn find(facts: &Facts) -> Vec<Odd> {
    let mut found = Findings(Vec::new());
    found.start(facts);
    found.eras(facts);
    let talked = facts.talked();
    talked.lists.iter().for_each(|list| found.list(list));
    found.tasks(talked);
    found.ping(talked);
    if let Some(end) = &talked.end {
        found.end(end, talked.introduction().is_some());
    }
    found.stdout(&facts.noted);
    found.stderr(&facts.noted);
    found.0
}

struct Findings(Vec<Odd>);

impl Findings {
    fn add(
        &mut self,
        row: &'static str,
        kind: &'static str,
        says: impl Into<String>,
        helps: impl Into<String>,
    ) {
        self.0.push(Odd { kind, row, says: says.into(), helps: helps.into() });
    }

    fn start(&mut self, facts: &Facts) {
        let Some(first) = facts.first_answer().filter(|first| *first > bounds::SLOW_START) else { return };
        self.add(
            "start",
            "slow-start",
            format!("The first answer came {} after the start.", show(first)),
            "Normal for a first start with npx or uvx, which download the server; some clients give up \
             earlier. outlast waits 5m (--handshake), and with --instant the client need not wait at \
             all. If every start is slow, install the server and start it without npx.",
        );
    }

    fn eras(&mut self, facts: &Facts) {
        let Some(modern) = &facts.modern else {
            return if facts.legacy.introduction().is_none() {
                self.no_era(facts)
            };
        };
        match (facts.legacy.introduction(), modern.introduction()) {
            (Some(_), Some(_)) => {}
            (Some(_), None) => self.other_era("modern", "server/discover", modern),
            (None, Some(_)) => self.other_era("legacy", "initialize", &facts.legacy),
            (None, None) => {
                self.no_era(facts);
                self.not_modern_either(modern);
            }
        }
    }

    /// How a server refuses the era that it does not speak. An error is the right way.
    fn other_era(&mut self, row: &'static str, method: &str, visit: &Visit) {
        let helps = format!(
            "A client that tries `{method}` first has a problem at every start. Update the server's SDK, or \
             tell the client which protocol version to use."
        );
        match &visit.handshake {
            Handshake::Works(_) | Handshake::Error { .. } => {}
            Handshake::Ended(_) => {
                self.add(row, "handshake-kills", format!("`{method}` ends the server."), helps);
            }
            Handshake::EndedUnasked(exit) => self.add(
                row,
                "second-start",
                format!("A second start ended before anything was asked ({}).", exit_text(*exit)),
                "Did the first start leave a lock or a port behind? Then a client that restarts the server \
                 fails too.",
            ),
            Handshake::Silence => {
                let says = format!("`{method}` got no answer within {}.", show(visit.took));
                self.add(row, "handshake-silent", says, helps);
            }
            Handshake::OddResult(result) => {
                let says =
                    format!("`{method}` was answered with a result that is not a handshake: `{result}`.");
                self.add(
                    row,
                    "handshake-odd",
                    says,
                    "A server should answer a method that it does not know with error -32601. Some clients \
                     read any result as support of this version.",
                );
            }
            Handshake::Unreadable => {
                let says = format!("The answer to `{method}` is not strict JSON.");
                self.add(row, "handshake-unreadable", says, helps);
            }
        }
    }

    /// `initialize` did not work, and this neither.
    fn not_modern_either(&mut self, visit: &Visit) {
        let says = match &visit.handshake {
            Handshake::Ended(exit) | Handshake::EndedUnasked(exit) => {
                format!("A second start ended as well ({}).", exit_text(*exit))
            }
            Handshake::Silence => format!("`server/discover` got no answer within {}.", show(visit.took)),
            _ => "`server/discover` does not work.".to_owned(),
        };
        self.add("modern", NO_HANDSHAKE, says, "Probably for the same reason as `initialize`.");
    }

    fn no_era(&mut self, facts: &Facts) {
        let last = facts.noted.stderr_tail.trim_ascii().rsplit(|byte| *byte == b'\n').next();
        let last_line = match last.unwrap_or_default() {
            [] => String::new(),
            line => format!(" Last line on stderr: `{}`.", glimpse(line, bounds::SHOWN)),
        };
        let (says, helps) = match &facts.legacy.handshake {
            Handshake::Ended(exit) => (
                format!("The server ended before it answered ({}).{last_line}", exit_text(*exit)),
                "Run the command by itself: often an argument, a key or a variable is missing, or your \
                 client's environment differs from your shell's.",
            ),
            Handshake::Silence => (
                format!("`initialize` got no answer within {}.{last_line}", show(facts.legacy.took)),
                "If the server is still being downloaded, try again with --timeout 5m; if it serves HTTP and \
                 not stdio, look for its stdio option.",
            ),
            _ => (
                format!("`initialize` does not work.{last_line}"),
                "Is this an MCP server? Look at the answers above.",
            ),
        };
        self.add("legacy", NO_HANDSHAKE, says, helps);
    }

    fn list(&mut self, list: &List) {
        self.list_outcome(list);
        if list.bytes > bounds::LARGE_LIST {
            self.add(
                list.name,
                "large-list",
                format!("`{}` answered {:.1} MiB at once.", list.method, list.bytes as f64 / 1048576.0),
                "Shorten descriptions or answer in pages: the whole list goes into a model's context, and \
                 TypeScript clients lose the connection at 10 MiB. In outlast the bound is --max-message.",
            );
        }
        if !list.tools.bad_names.is_empty() {
            self.add(
                list.name,
                "tool-name",
                format!("Names that are not 1 to 128 of A-Z a-z 0-9 _ . -: {}.", some(&list.tools.bad_names)),
                "Rename these tools: clients refuse them, and some clients then refuse all tools of the server.",
            );
        }
        if !list.tools.duplicates.is_empty() {
            self.add(
                list.name,
                "tool-twice",
                format!("Listed more than once: {}.", some(&list.tools.duplicates)),
                "Give every tool its own name: of two tools with one name a client reaches only one.",
            );
        }
    }

    fn list_outcome(&mut self, list: &List) {
        let method = list.method;
        let (kind, says) = match &list.outcome {
            Outcome::Whole => return,
            Outcome::Failed(code, message) => {
                ("list-failed", format!("`{method}` is declared and answers error {code}: `{message}`."))
            }
            Outcome::Unreadable => {
                ("list-unreadable", format!("The answer to `{method}` is not strict JSON, or no list."))
            }
            Outcome::Silence => ("list-silent", format!("`{method}` got no answer in {}.", show(list.took))),
            Outcome::Ended => ("list-kills", format!("The server ended at `{method}`.")),
            Outcome::Endless => {
                ("list-endless", format!("`{method}` has more than {} pages.", bounds::PAGES))
            }
        };
        let helps = match &list.outcome {
            Outcome::Silence => {
                format!("Fix the server. --method '{method}=timeout:10s' lets a client fail fast.")
            }
            _ => "Fix the server, or do not declare what it does not offer.".to_owned(),
        };
        self.add(list.name, kind, says, helps);
    }

    fn tasks(&mut self, visit: &Visit) {
        let Some(list) = visit.lists.iter().find(|list| list.name == "tools") else { return };
        let wanting = list.tools.optional_tasks + list.tools.required_tasks;
        let declared = visit.introduction().is_some_and(|it| !it.capabilities["tasks"].is_null());
        if wanting > 0 && !declared && visit.ping.is_some() {
            self.add(
                "tasks",
                "tasks-undeclared",
                format!(
                    "Tasks are offered by {}, but the server does not declare `tasks`.",
                    counted(wanting, "tool")
                ),
                "Declare capabilities.tasks.requests.tools.call; without it clients must ignore the offer.",
            );
        }
    }

    fn ping(&mut self, visit: &Visit) {
        match &visit.ping {
            None | Some(Ping::Answered(_)) => {}
            Some(Ping::Unanswered) => self.add(
                "ping",
                "ping-unanswered",
                "`ping` got no answer.",
                "Clients that check connections by ping drop this server. outlast does not need pings; \
                 --signs says what it counts as a sign of life.",
            ),
            Some(Ping::NotWithStringId(_)) => self.add(
                "ping",
                "string-id",
                "A request whose id is a string got no answer; one with a number did.",
                "Fix the server; until then use a client that numbers its requests.",
            ),
        }
    }

    fn end(&mut self, end: &End, worked: bool) {
        let grace = format!(
            "The server should exit when its input ends. Behind outlast its whole process tree gets SIGTERM \
             {} later and SIGKILL {} after that; without outlast it may stay for ever.",
            show(END_GRACE),
            show(KILL_GRACE)
        );
        let exit = exit_text(end.exit);
        match end.how {
            How::Eof if end.took > END_GRACE => {
                let says = format!("The server took {} to exit after the end of its input.", show(end.took));
                self.add("end", "slow-end", says, grace);
            }
            How::Before if worked => {
                let says = format!("The server ended during the examination ({exit}).");
                let helps = "Look at its stderr. Calls in flight then fail; behind outlast their error says how \
                             the server ended, with its last line on stderr.";
                self.add("end", "ended-early", says, helps);
            }
            How::Before | How::Eof => {}
            How::Term => {
                let says = format!(
                    "The server did not exit within {} after the end of its input; SIGTERM ended it ({exit}, after {} in all).",
                    show(bounds::AFTER_EOF),
                    show(end.took)
                );
                self.add("end", "needs-term", says, grace);
            }
            How::Kill | How::Never => {
                let then = if end.how == How::Kill { "SIGKILL ended it" } else { "SIGKILL did not end it" };
                let says = format!(
                    "The server exited neither after the end of its input ({}) nor after SIGTERM ({}); {then} (after {}).",
                    show(bounds::AFTER_EOF),
                    show(bounds::AFTER_TERM),
                    show(end.took)
                );
                self.add("end", "needs-kill", says, grace);
            }
        }
        if !end.orphans.is_empty() {
            self.add(
                "end",
                "orphans",
                format!("Processes that the server started outlived it: {}.", some(&end.orphans)),
                "Run the server behind outlast, which ends its whole process tree. The doctor has ended these.",
            );
        }
    }

    fn stdout(&mut self, noted: &Noted) {
        let to_stderr = "The server should log to stderr; stdout belongs to the protocol. outlast drops such \
                         lines and counts them in its log.";
        self.lines(&noted.early, "stdout-early", "line", "on stdout before the first request", to_stderr);
        self.lines(&noted.noise, "stdout-noise", "line", "on stdout, not JSON", to_stderr);
        self.lines(
            &noted.no_message,
            "stdout-no-message",
            "line",
            "on stdout, JSON but not a message",
            "TypeScript clients report each as an error of the connection. outlast drops such lines and \
             counts them in its log.",
        );
        self.lines(
            &noted.not_strict,
            "not-strict-json",
            "message",
            "not in strict JSON (NaN, Infinity, a raw control character, not UTF-8, a field that occurs twice)",
            "Fix how the server writes JSON (in Python: allow_nan=False). outlast passes such an answer on; \
             strict clients lose it.",
        );
        self.lines(
            &noted.ids,
            "id-type",
            "answer",
            "with an id of another JSON type than the id of the request",
            "Fix the server: a client that compares strictly never sees such an answer. Behind outlast it \
             does, because each client gets its own id back.",
        );
        self.lines(
            &noted.no_ids,
            "id-missing",
            "error",
            "without the id of the request",
            "Fix the server: a client cannot tell which request has failed, and waits until it gives up.",
        );
        if noted.too_long > 0 {
            let says =
                format!("{} of more than {} MiB.", counted(noted.too_long, "line"), bounds::LINE >> 20);
            self.add("stdout", "line-too-long", says, "In outlast the bound is --max-message.");
        }
    }

    fn lines(&mut self, sample: &Sample, kind: &'static str, noun: &str, what: &str, helps: &str) {
        if sample.count > 0 {
            let says = format!("{} {what}; the first: `{}`.", counted(sample.count, noun), sample.first);
            self.add("stdout", kind, says, helps);
        }
    }

    fn stderr(&mut self, noted: &Noted) {
        if noted.stderr_lines > bounds::STDERR_LINES {
            self.add(
                "stderr",
                "stderr-flood",
                format!("{} lines on stderr for a few requests.", noted.stderr_lines),
                "Lower the server's log level: some clients keep everything, and some stop reading, which \
                 blocks the server. outlast always reads it.",
            );
        }
    }
}

/// The first few of many.
fn some(names: &[String]) -> String {
    const SHOWN: usize = 5;
    let mut text = names.iter().take(SHOWN).map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    if names.len() > SHOWN {
        text += &format!(" and {} more", names.len() - SHOWN);
    }
    text
}

/// How a process ended, for a person.
pub fn exit_text(exit: Option<outlast_engine::event::Exit>) -> String {
    exit.map_or_else(|| "it closed its stdout".to_owned(), |exit| exit.to_string())
}
