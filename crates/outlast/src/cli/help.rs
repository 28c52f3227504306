//! `--help` and the reference page, made from the table of settings.

use super::{Task, Wrong};
use crate::install::clients::CLIENTS;
use lexopt::prelude::*;
use outlast_engine::settings::{SETTINGS, Scope, Setting};
use std::fmt::Write;

/// `outlast help [settings]`.
pub(super) fn parse(mut parser: lexopt::Parser) -> Result<Task, Wrong> {
    match parser.next()? {
        Some(Value(topic)) if topic == "settings" => Ok(Task::Print(reference())),
        None => Ok(Task::Print(text())),
        Some(_) => Err(Wrong("there is `outlast --help` and `outlast help settings`".into())),
    }
}

/// `--help`.
pub fn text() -> String {
    let mut text = String::from(
        "Keep MCP calls alive: put outlast in front of a server, and no call is lost to a timeout.
Usage: outlast [OPTIONS] -- COMMAND...
       outlast [OPTIONS] URL
       outlast serve --listen ADDR [OPTIONS] URL | -- COMMAND...

  outlast -- npx -y some-server               put one stdio server behind outlast
  outlast --timeout 5m -- python server.py    the same, with a limit for tool calls
  outlast https://host/mcp                    bring a stdio client to a remote server
  outlast serve --listen 127.0.0.1:7600 -- npx -y some-server   serve it over HTTP at /mcp
  outlast token new NAME                      a token for those who may use `serve`
  outlast install cursor                      put it in front of the servers of a client
  outlast install                             list what clients and servers are there
  outlast uninstall cursor                    take it away again
  outlast demo                                see it work in ten seconds
  outlast doctor -- npx -y some-server        what is odd about a server, and what helps
  outlast doctor client                       a server that measures the client it is added to
  outlast --keep -- npx -y some-server        the same as the first, but calls outlive their client
  outlast keep list                           what --keep has running; `outlast keep stop [NAME]` ends it
  outlast tasks list                          calls that can be fetched later; also show, result, cancel, wait
  outlast timeout-mcp [--auto-restart] SECONDS COMMAND...   drop-in for that program
  outlast cache clear [--state DIR]           forget what --instant remembers
  outlast completions SHELL                   for bash, fish, powershell or zsh; `outlast man` is the manual
  outlast help settings                       all about every option

",
    );
    for setting in SETTINGS {
        let flag = format!("--{} {}", setting.name, setting.placeholder());
        let default = if setting.default.is_empty() {
            String::new()
        } else {
            format!(" [default: {}]", setting.default)
        };
        let _ = writeln!(text, "      {flag:<22} {}{default}", setting.short);
    }
    text += "      --keep                 run the server in the background, for this client and the next one
  -h, --help                 this text
  -V, --version [--json]     the version; with --json also the commit and the features

Times need a unit: 500ms, 30s, 5m, 1h30m. Every option is also a variable: OUTLAST_KEEP_ALIVE=5s.
";
    text
}

pub(super) fn timeout_mcp() -> String {
    "Usage: timeout-mcp [--auto-restart] [SECONDS] COMMAND...
       timeout-mcp [--auto-restart] --timeout 30s -- COMMAND...

Ends tools/call, initialize and tools/list with error -32603 after SECONDS [default: 30].
With --auto-restart the server is started again after a timeout and when it has ended.
"
    .into()
}

pub(super) fn install() -> String {
    let clients: Vec<&str> = CLIENTS.iter().map(|client| client.name).collect();
    format!(
        "Put outlast in front of the stdio servers in a client's own file, or take it away again.
Usage: outlast install [CLIENT] [OPTIONS]
       outlast uninstall CLIENT [OPTIONS]

  outlast install                  list the files and servers that are there
  outlast install CLIENT           show what would change, ask, change it

      --scope project|user   the file in the working directory, or your own [default: user]
      --server NAME          only this server; may be given more than once
      --dry-run              show what would change, and change nothing
  -y, --yes                  do not ask

Clients: {}.
It ends with 0 if everything is as asked, with 1 if something was left alone, with 2 if it
does not understand the command line.
",
        clients.join(", ")
    )
}

pub(super) fn doctor() -> String {
    "Usage: outlast doctor [--json] [--timeout TIME] -- COMMAND...
       outlast doctor client

With a command: starts the server twice, speaks to it as an old and as a new client would, and reports
what it offers and what is odd, each with what helps. Nothing of it is left running.
`client`: a server to add to your client for a minute; then tell the agent: run the outlast probes.

      --json           print one JSON object
      --timeout TIME   the longest wait for one answer [default: 60s]
  -h, --help           this text

Other waits: server/discover 10s more than the first answer took, ping 5s, each list 30s and 100 pages
(each at most --timeout); the end after its input closes 3s, after SIGTERM 2s, after SIGKILL 2s; processes
that it leaves behind 0.5s; its last output 0.2s; the system to start it 10s; before the second process is
asked anything 0.25s to 2s.
Ends with 0 if nothing is odd, 1 if something is, 2 for a bad command line, 126 or 127 if the command
cannot be started.
"
    .into()
}

pub(super) fn tasks() -> String {
    "See and use the calls that can be fetched later, of all outlast processes of this user.
Usage: outlast tasks list [--page N] [OPTIONS]
       outlast tasks show|result|cancel|wait TICKET [OPTIONS]

  list             those that run first, then the newest; 50 on a page
  show TICKET      everything that is known of one
  result TICKET    its result, exactly as the server gave it
  cancel TICKET    have it cancelled by the process that runs it (waits 10s for that)
  wait TICKET      wait for its end, then as `result`; Ctrl-C only stops waiting

TICKET is a ticket or task id, or so much of its beginning that it is the only one.

      --json           print one JSON object
      --state DIR      the folder that outlast was started with [default: as for every outlast]
      --timeout TIME   how long to wait [default: until the end]
  -h, --help           this text

Ends with 0 if it is done (`result`, `wait`: completed; `cancel`: cancelled), 1 if the call failed or was
cancelled (`cancel`: had ended otherwise), 2 for a bad command line or ticket, 3 if the call still runs,
4 if the store cannot be read.
"
    .into()
}

pub(super) fn keep() -> String {
    "What `outlast --keep -- COMMAND` has running in the background, for this user.
Usage: outlast keep list [--json] [--state DIR]
       outlast keep stop [NAME] [--state DIR]

  list          the services that run, and whether a client uses them
  stop          end all of them; calls that run may finish within --drain
  stop NAME     end one, by its name or the name of its server

A service ends by itself when no client is there and no call runs for --resume-wait.
"
    .into()
}

/// `docs/settings.md`.
pub fn reference() -> String {
    let mut page = String::from(
        "# Settings

Every setting is a flag (`--keep-alive 5s`) and a variable (`OUTLAST_KEEP_ALIVE=5s`); the flag wins.
Times need a unit (`500ms`, `30s`, `5m`, `1h30m`), because half the clients mean seconds by a bare
number and half milliseconds. This page is made from the code: `outlast help settings`.

Nearest wins: built-in, what the server declares (may only lengthen), a bare flag, `--method`,
`--tool`, the request's own `_meta[\"dev.outlast/timeoutMs\"]` (may only shorten).
",
    );
    for setting in SETTINGS {
        page += &section(setting);
    }
    page
}

fn section(setting: &Setting) -> String {
    let Setting { name, short, long, default, .. } = setting;
    let default = if default.is_empty() { "none" } else { default };
    let scope = match setting.scope {
        Scope::Call => "also inside `--tool` and `--method`",
        Scope::Process => "for the whole process",
    };
    let (variable, placeholder) = (setting.variable(), setting.placeholder());
    format!(
        "\n## {name}\n`--{name} {placeholder}` · `{variable}` · default: {default} · {scope}\n\n{}. {long}\n",
        capital(short)
    )
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}
