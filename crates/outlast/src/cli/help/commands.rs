//! The commands: what `--help` lists, and what each one's own `--help` says.

use crate::cli::completions::SHELLS;
use crate::install::clients::CLIENTS;

/// A command.
pub struct Command {
    pub name: &'static str,
    /// It is on the first screen.
    pub listed: bool,
    /// The words that may follow it.
    pub then: &'static [&'static str],
    /// The options that it alone reads, without their dashes; `serve` and `timeout-mcp` read those of all.
    pub options: &'static [&'static str],
    /// One line.
    pub short: &'static str,
    /// `outlast NAME --help`.
    pub text: fn() -> String,
}

/// All of them. The manual page and the completions are made from this table, too.
pub const COMMANDS: &[Command] = &[
    Command {
        name: "install",
        listed: true,
        then: &[],
        options: &["scope", "server", "dry-run", "json", "yes"],
        short: "put outlast in front of a client's servers",
        text: install,
    },
    Command {
        name: "uninstall",
        listed: false,
        then: &[],
        options: &["scope", "server", "dry-run", "json", "yes", "all"],
        short: "undo install",
        text: install,
    },
    Command {
        name: "doctor",
        listed: true,
        then: &["client"],
        options: &["json", "timeout"],
        short: "what is wrong with a server, or how a client behaves",
        text: doctor,
    },
    Command {
        name: "clients",
        listed: true,
        then: &["learn", "forget"],
        options: &["json", "state"],
        short: "which clients are known, and their limits",
        text: clients,
    },
    Command {
        name: "check",
        listed: false,
        then: &[],
        options: &["json"],
        short: "what is wrong with a configuration file",
        text: check,
    },
    Command {
        name: "explain",
        listed: false,
        then: &[],
        options: &["client", "token", "config", "json"],
        short: "every limit of a tool, and where it is set",
        text: explain,
    },
    Command {
        name: "import",
        listed: false,
        then: &[],
        options: &["scope", "output"],
        short: "make a configuration file from clients' files",
        text: import,
    },
    Command {
        name: "demo",
        listed: true,
        then: &[],
        options: &[],
        short: "see outlast work in ten seconds",
        text: demo,
    },
    Command {
        name: "serve",
        listed: true,
        then: &[],
        options: &[],
        short: "serve MCP over HTTP",
        text: serve,
    },
    Command {
        name: "servers",
        listed: false,
        then: &[],
        options: &["json", "state"],
        short: "the state of the servers of running processes",
        text: servers,
    },
    Command {
        name: "tasks",
        listed: true,
        then: &["list", "show", "result", "cancel", "wait"],
        options: &["json", "state", "store-url", "timeout", "page"],
        short: "calls that can be fetched later",
        text: tasks,
    },
    Command {
        name: "top",
        listed: false,
        then: &[],
        options: &["once", "json", "sort", "filter", "url", "token-file", "state"],
        short: "what runs now, and how near it is to its limits",
        text: top,
    },
    Command {
        name: "holds",
        listed: false,
        then: &["list", "approve", "decline"],
        options: &["for", "reason", "watch", "json", "state", "store-url"],
        short: "calls that wait for your approval",
        text: holds,
    },
    Command {
        name: "callbacks",
        listed: false,
        then: &["list", "retry", "drop"],
        options: &["json", "state", "store-url"],
        short: "callbacks that were not delivered yet",
        text: callbacks,
    },
    Command {
        name: "audit",
        listed: false,
        then: &[],
        options: &["last", "json", "state", "store-url"],
        short: "who approved or declined which call",
        text: audit,
    },
    Command {
        name: "advise",
        listed: false,
        then: &[],
        options: &["toml", "json", "state"],
        short: "limits proposed from what was measured",
        text: advise,
    },
    Command {
        name: "replay",
        listed: false,
        then: &[],
        options: &["call", "compare", "json"],
        short: "what outlast decided in a recorded run, and why",
        text: replay,
    },
    Command {
        name: "ui",
        listed: false,
        then: &[],
        options: &["no-browser", "state"],
        short: "a live dashboard in your browser",
        text: ui,
    },
    Command {
        name: "keep",
        listed: true,
        then: &["list", "stop"],
        options: &["json", "state"],
        short: "servers that run in the background",
        text: keep,
    },
    Command {
        name: "token",
        listed: false,
        then: &["new"],
        options: &[],
        short: "make a token for clients of serve",
        text: token,
    },
    Command {
        name: "cache",
        listed: false,
        then: &["clear"],
        options: &["state"],
        short: "delete what --instant remembers",
        text: cache,
    },
    Command {
        name: "timeout-mcp",
        listed: false,
        then: &[],
        options: &[],
        short: "behave like the program timeout-mcp",
        text: timeout_mcp,
    },
    Command {
        name: "completions",
        listed: false,
        then: SHELLS,
        options: &[],
        short: "completions for a shell",
        text: completions,
    },
    Command { name: "man", listed: false, then: &[], options: &[], short: "the manual page", text: man },
    Command {
        name: "demo-server",
        listed: false,
        then: &[],
        options: &[],
        short: "the demo's server, for trials",
        text: demo_server,
    },
    Command {
        name: "help",
        listed: true,
        then: super::TOPICS,
        options: &["all"],
        short: "about a command, an option, an error, a topic",
        text: help,
    },
];

/// The command of this name.
pub fn named(name: &str) -> Option<&'static Command> {
    COMMANDS.iter().find(|command| command.name == name)
}

fn help() -> String {
    format!(
        "Usage: outlast help [WORD]

  outlast help COMMAND    about a command, such as doctor
  outlast help OPTION     about an option, such as timeout
  outlast help CODE       about an error, such as -31002 or server-gone
  outlast help TOPIC      about one of these:
{}
  outlast help --all      every command and every option, a line each
",
        super::topics::list()
    )
}

fn serve() -> String {
    "Serve MCP servers to many clients over HTTP.
Usage: outlast serve --listen ADDR [OPTIONS] URL | -- COMMAND...   one server
       outlast serve [--config FILE] [OPTIONS]             the servers of a file

  outlast serve --listen 127.0.0.1:7600 -- npx -y some-server
  outlast serve --listen 0.0.0.0:7600 --token-file FILE https://host/mcp
  outlast serve --config team.toml

Clients connect to http://ADDR/mcp, or with a file to http://ADDR/mcp/NAME for
one of its servers. Servers are started when clients need them. An address that
other machines can reach needs tokens (see: outlast help token) or --no-auth.
FILE is an outlast.toml or an mcp.json [default: $XDG_CONFIG_HOME/outlast/
outlast.toml]; outlast check reads it and reports every mistake.

Options: outlast --help --all, group HTTP. All other options work here too,
except --instant and --keep; those for remote servers only with a URL.
Ends with 0 after SIGTERM or SIGINT, once open calls have ended (--drain), 2 for
a bad command line, 126 or 127 if COMMAND cannot be started.
"
    .into()
}

fn timeout_mcp() -> String {
    "Behave like the program timeout-mcp.
Usage: outlast timeout-mcp [--auto-restart] [SECONDS] COMMAND...
       outlast timeout-mcp [--auto-restart] --timeout 30s -- COMMAND...

tools/call, initialize and tools/list fail with error -32603 after SECONDS
[default: 30]. With --auto-restart the server is restarted after a timeout and
when it has ended. A binary named timeout-mcp behaves in the same way.
"
    .into()
}

fn install() -> String {
    let clients: Vec<&str> = CLIENTS.iter().map(|client| client.name).collect();
    format!(
        "Put outlast in front of the stdio servers in a client's own file, or undo that.
Usage: outlast install [CLIENT|all] [OPTIONS] [-- FLAGS...]
       outlast uninstall CLIENT|all [OPTIONS]

  outlast install             list the clients and servers that are found
  outlast install CLIENT      show what would change, ask, change the file
  outlast install all         the same for every client that has a file here
  outlast install cursor -- --timeout 10m    the same, with flags for outlast
  outlast uninstall CLIENT    restore the file

      --scope project|user   the file in the working directory, or your own
                             [default: user]
      --server NAME          only this server; may be given several times
      --dry-run              show what would change, and change nothing
      --json                 print one JSON object; needs --yes or --dry-run,
                             except with `outlast install` alone
      --all                  uninstall: also where outlast was put by hand
  -y, --yes                  do not ask
  -h, --help                 this text

Clients: {}.
Ends with 0 if everything is as you asked, 1 if something was not changed, 2 for
a bad command line.
",
        super::wrapped(&clients.join(", "), 9)
    )
}

fn clients() -> String {
    "Show which clients are known: how long each waits for a tool, what outlast does
for it, and where that is known from.
Usage: outlast clients [--json] [--state DIR]
       outlast clients learn [NAME]
       outlast clients forget NAME

  learn          the limits learned on this machine from cancelled calls
  learn NAME     apply the limit learned for this client from now on
  forget NAME    delete the limit learned for this client

      --json        print one JSON object
      --state DIR   the state folder, if outlast was started with --state
  -h, --help        this text

To add a client: --client-profile 'NAME=cap:60s,progress:no'. To measure one:
outlast doctor client.
"
    .into()
}

fn replay() -> String {
    "Show a run that was recorded with --record again: what happened, what outlast
decided, and why.
Usage: outlast replay FILE [--call N] [--json]
       outlast replay FILE --compare [--json]

  > and <     a client and a server say something, or POST, GET and DELETE
  << and >>   what outlast says to the client and to the server
  !!          why: what the log tells
  %%          what happens to a call, with its number
  ..          everything else that outlast does

      --call N    only what concerns this call
      --compare   say only where this version of outlast decides otherwise than
                  the one that recorded
      --json      print one JSON object for each moment
  -h, --help      this text

Ends with 0, with 1 if this version decides otherwise than the recording one,
or with 2 if the file cannot be read, is no recording, or has a newer format.
"
    .into()
}

fn servers() -> String {
    "Show the servers of every outlast serve and outlast --config FILE of this user:
state, era, restarts, calls in flight, last error; and the mistakes in a file
that has changed.
Usage: outlast servers [--json] [--state DIR]

      --json        print one JSON object
      --state DIR   the state directory of these processes; those with --state
                    none are not shown
  -h, --help        this text

States: not-started, asleep (unused, see --server-idle), starting, ready,
restarting, failed (tried again every --reconnect-every).
"
    .into()
}

fn check() -> String {
    "Read a configuration file and report every mistake in it. Nothing is started.
Usage: outlast check [--json] [FILE]

FILE is an outlast.toml (see: outlast help file) or a client's own mcp.json
[default: $XDG_CONFIG_HOME/outlast/outlast.toml, usually ~/.config/outlast/].

      --json   print one JSON object
  -h, --help   this text

Ends with 0 if the file can be used, 1 if not, 2 for a bad command line.
"
    .into()
}

fn explain() -> String {
    "Show every limit of a tool, where it is set, and which settings it overrides.
Usage: outlast explain SERVER TOOL [OPTIONS]

      --client NAME   also how long a call of this client can last; NAME is what
                      the client calls itself (see: outlast clients)
      --token NAME    also what [tokens.NAME] allows: servers, tools, and calls
                      at once
      --config FILE   the file [default: $XDG_CONFIG_HOME/outlast/outlast.toml]
      --json          print one JSON object
  -h, --help          this text

Variables such as OUTLAST_TIMEOUT count as they would for outlast itself.
"
    .into()
}

fn import() -> String {
    let names: Vec<&str> = CLIENTS.iter().map(|client| client.name).collect();
    format!(
        "Make an outlast.toml from the servers in clients' files.
Usage: outlast import CLIENT... [OPTIONS]

CLIENT is one of
{}
or all. Values of variables and headers, and arguments that look like secrets,
are not copied: the file has ${{VARIABLE}} in their place, and outlast lists the
variables to set. For a server that already runs through outlast, the file gets
the server's own command, and outlast's flags as settings. Whatever cannot be
converted is reported.

      --scope WORD    user or project [default: user]
  -o, --output FILE   the file, which must not be there yet; - prints it
                      [default: $XDG_CONFIG_HOME/outlast/outlast.toml]
  -h, --help          this text
",
        super::wrapped(&names.join(", "), 0)
    )
}

fn doctor() -> String {
    "Find out what is wrong with a server, or how a client behaves.
Usage: outlast doctor [--json] [--timeout TIME] -- COMMAND...
       outlast doctor client

With a command: starts the stdio server twice, talks to it as an old and as a
new client would, and reports what the server offers, what is odd, and what
helps. No tool is called, and no process is left behind.
`client`: an MCP server that measures the client it is added to. Add it to your
client for a minute and tell the agent: run the outlast probes.

      --json           print one JSON object
      --timeout TIME   the longest wait for one answer [default: 60s]
  -h, --help           this text

No wait is longer than this (nor than --timeout): server/discover 10s plus the
time of the first answer; ping 5s; each list 30s and 100 pages; the exit 3s
after the end of input, 2s after SIGTERM, 2s after SIGKILL; processes left
behind 0.5s; the last output 0.2s; the system to start the process 10s; output
of the second process before its first request 0.25s to 2s.
Ends with 0 if nothing is odd, 1 if something is, 2 for a bad command line, 126
or 127 if the command cannot be started.
"
    .into()
}

fn demo() -> String {
    "See outlast work: a client that waits 2 seconds calls a tool that takes 6
seconds, first directly, then through outlast.
Usage: outlast demo
"
    .into()
}

fn demo_server() -> String {
    "The server of `outlast demo`: one tool, build_project, that works for 6 seconds
in silence.
Usage: outlast demo-server
"
    .into()
}

fn token() -> String {
    "Make a token for clients of `outlast serve`.
Usage: outlast token new NAME >> FILE

Prints a line for --token-file: NAME and the SHA-256 of the token. The token
itself is shown once, on stderr; clients send it as Authorization: Bearer TOKEN.
"
    .into()
}

fn cache() -> String {
    "Delete what --instant remembers of servers.
Usage: outlast cache clear [--state DIR]

      --state DIR   the state folder, if outlast was started with --state
  -h, --help        this text
"
    .into()
}

fn completions() -> String {
    "Print completions for a shell.
Usage: outlast completions bash|fish|powershell|zsh
"
    .into()
}

fn man() -> String {
    "Print the manual page, for man: outlast man > outlast.1
Usage: outlast man
"
    .into()
}

fn tasks() -> String {
    "See and use the calls that can be fetched later, of all outlast processes of
this user.
Usage: outlast tasks list [--page N] [OPTIONS]
       outlast tasks show|result|cancel|wait TICKET [OPTIONS]

  list             running calls first, then the newest; 50 per page (--page N)
  show TICKET      everything that is known about a call
  result TICKET    the result, exactly as the server gave it
  cancel TICKET    ask the owning process to cancel the call; waits up to 10s
  wait TICKET      wait for the end, then like `result`; Ctrl-C ends the wait

TICKET is a ticket or task id, or the first characters of one, if only one fits.

      --json           print one JSON object
      --state DIR      the state folder, if outlast was started with --state
      --store-url URL  the database, if outlast was started with --store-url
      --timeout TIME   `wait`: how long to wait [default: until the end]
  -h, --help           this text

Ends with 0 for success (`result`, `wait`: the call completed; `cancel`: the
call was cancelled), 1 if the call failed or was cancelled (`cancel`: it had
ended already), 2 for a bad command line or ticket, 3 if the call still runs, 4
if the store cannot be read.
"
    .into()
}

fn top() -> String {
    "What runs now: calls, how near they are to their limits, what waits for you.
Usage: outlast top [OPTIONS]

  outlast top                             all outlast processes of this user
  outlast top --url http://localhost:7600 one `outlast serve`, with its quick
                                          calls

      --once           print the list once
      --json           print everything once, as JSON
      --sort COLUMN    age, limit, server, tool or state [default: age]
      --filter TEXT    only lines with this text
      --url URL        look at this `outlast serve` instead of the store
      --token-file FILE  the token for it
      --state DIR      the state folder, if outlast was started with --state
  -h, --help           this text

On the screen: arrows choose, s sorts, / filters, p pauses, Enter tells the
story of a call, c cancels it, a and d approve and decline, q leaves.
Calls are shown once they have run for a second.
"
    .into()
}

fn holds() -> String {
    "See and decide the calls that wait for a person (`--tool 'delete_*=hold:true'`),
of all outlast processes of this user.
Usage: outlast holds [--watch] [OPTIONS]
       outlast holds approve NUMBER [--for SCOPE] [--reason TEXT]
       outlast holds decline NUMBER [--reason TEXT]

  approve NUMBER   the call is sent
  decline NUMBER   the call is not sent; its client is told the reason. Also
                   withdraws an approval for a session or for minutes

      --for SCOPE      what else the approval is good for: `once` (nothing),
                       `session` (this tool, in this client's session),
                       `minutes` (this tool, for 10 minutes) [default: once]
      --reason TEXT    why; shown to the client, and kept in `outlast audit`
      --watch          show what comes, until Ctrl-C
      --json           print JSON
      --state DIR      the state folder, if outlast was started with --state
      --store-url URL  the database, if outlast was started with --store-url
  -h, --help           this text

Ends with 0 if your decision counts, 1 if somebody else decided first, 2 for a
bad command line or number, 4 if the store cannot be read.
"
    .into()
}

fn callbacks() -> String {
    "See the callbacks that were not delivered yet ([callbacks.NAME] in the file), of
all outlast processes of this user, or of all replicas of a database.
Usage: outlast callbacks [OPTIONS]
       outlast callbacks retry|drop NUMBER

  retry NUMBER     send it again now, also if it is parked
  drop NUMBER      forget it

      --json           print JSON
      --state DIR      the state folder, if outlast was started with --state
      --store-url URL  the database, if outlast was started with --store-url
  -h, --help           this text

A callback is sent again after 5s, 10s, 20s … up to an hour. After 24 hours, or
when its receiver answers 410, it is parked: it is sent only if you say so, and
forgotten 7 days after it was made.

Ends with 0 if that is done, 2 for a bad command line or number, 4 if the store
cannot be read or written.
"
    .into()
}

fn audit() -> String {
    "Who approved or declined which call, the newest last.
Usage: outlast audit [--last COUNT] [--json] [--state DIR]

      --last COUNT     how many lines [default: 50]; 100000 are kept
      --json           print one JSON object per line
      --state DIR      the state folder, if outlast was started with --state
      --store-url URL  the database, if outlast was started with --store-url
  -h, --help           this text
"
    .into()
}

fn advise() -> String {
    "Limits for tools, proposed from how long their calls took in the last 30 days.
Usage: outlast advise [SERVER [TOOL]] [--toml|--json] [--state DIR]

  outlast advise             what is known, and the limits that follow
  outlast advise ci build    only of one tool

      --toml           print a fragment for a configuration file
      --json           print everything as JSON, with the histograms
      --state DIR      the state folder, if outlast was started with --state
  -h, --help           this text

A server that is not behind `outlast serve` is measured only by its calls that
took longer than a second.
"
    .into()
}

fn ui() -> String {
    "What runs, what waits for you and what has a ticket, on a page in your browser,
for all outlast processes of this user.
Usage: outlast ui [OPTIONS]

      --no-browser     only print the address
      --state DIR      the state folder, if outlast was started with --state
  -h, --help           this text

The page is on a free port of this machine; the token in its address lets in
whoever has it, and ends with the command. `outlast serve` has the same page for
its own servers at http://ADDR/outlast/.
"
    .into()
}

fn keep() -> String {
    "Servers that `outlast --keep -- COMMAND` runs in the background, for this user.
Usage: outlast keep list [--json] [--state DIR]
       outlast keep stop [NAME] [--state DIR]

  list          the services that run, and whether a client uses them
  stop          stop all of them; open calls may finish within --drain
  stop NAME     stop one, by its name or the name of its server

      --json        `list`: print JSON
      --state DIR   the state folder, if outlast was started with --state
  -h, --help        this text

A service ends by itself after --resume-wait without clients and open calls.
"
    .into()
}
