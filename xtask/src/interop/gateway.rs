//! One gateway with twenty servers, two hundred clients, and somebody who kills servers and changes the file meanwhile.
//!
//! Servers on stdio and over HTTP, the reference server and fixtures; clients on four official SDKs and clients that
//! write HTTP themselves (`js/crowd.mjs`, `py/crowd.py`). Servers over HTTP come back at their address. Every call carries a word of its own and must get the
//! answer to that word, or an error that says that its server went away; then it is made again. Each change of the file
//! takes a server out or puts it back, makes another program of a second one, and gives a third other limits.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Result;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::client::{self, Outcome, Run};
use super::endpoint::Endpoint;
use super::matrix::{Sdk, server};
use super::tally::Verdict;
use super::{Places, setup};

pub const SDKS: [Sdk; 4] = [Sdk::Ts1, Sdk::Ts2, Sdk::Py1, Sdk::Py2];

/// A server of the table, how many of it on stdio and over HTTP, and what its `echo` calls its argument.
const SERVERS: [(&str, usize, usize, &str); 3] =
    [("everything", 2, 1, "message"), ("ts1", 3, 2, "text"), ("py1", 1, 1, "text")];

/// Servers that are not on an SDK, and cost little.
const FAKES: usize = 10;

/// Clients of one program: on the SDK, by hand.
const NODE: [(&str, usize, usize); 3] =
    [("ts1/crowd.mjs", 35, 10), ("ts1/crowd.mjs", 35, 10), ("ts2/crowd.mjs", 40, 10)];
const PYTHON: [(&str, &str, usize); 2] =
    [("py1/bin/python", "py/crowd1.py", 30), ("py2/bin/python", "py/crowd2.py", 30)];

/// Calls of each client.
const CALLS: usize = 20;

const LIMIT: Duration = Duration::from_secs(90);

/// How often a server is killed, and how often in all: no server may lose more than the file allows.
const PAUSE: Duration = Duration::from_millis(500);
const KILLS: usize = 40;

/// Of so many kills one is of a server over HTTP.
const OVER_HTTP: usize = 5;

const DEFAULTS: &str = "[defaults]\nshare = \"all\"\nrestart-backoff = \"100ms\"\nrestart-intensity = 100\n\
                        connect-backoff = \"200ms\"\nconnect-retries = 10\n[defaults.tools.\"*\"]\nrepeatable = true\n";

/// How often the file changes: outlast looks at it once a second.
const CHANGES: Duration = Duration::from_millis(1500);

const RELOADED: &str = "the file was read again";

/// What clients are told of a server.
struct Named {
    name: String,
    argument: &'static str,
}

pub fn check(places: &Places, outlast: &str) -> Verdict {
    run(places, outlast).unwrap_or_else(|error| Err(vec![format!("{error:#}")]))
}

fn run(places: &Places, outlast: &str) -> Result<Verdict> {
    setup::cargo_build("outlast-testkit")?;
    let mut remote = Vec::new();
    let (file, named) = file(places, &mut remote)?;
    let path = places.logs().join("gateway.toml");
    std::fs::write(&path, changed(places, &file, 0))?;
    let serve = [outlast, "serve", "--listen", "127.0.0.1:0", "--max-sessions", "1000", "--state", "none"];
    // Changes that are taken are told at this level.
    let config = ["--log".to_owned(), "info".to_owned(), "--config".to_owned(), path.display().to_string()];
    let command = [serve.map(str::to_owned).to_vec(), config.to_vec()].concat();
    let gateway = Endpoint::start(&command, &places.logs().join("gateway-outlast.log"))?;
    let change = |turn| std::fs::write(&path, changed(places, &file, turn)).is_ok();
    let (runs, kills) = visit(places, (&gateway, &mut remote), &named, change);
    let reloads = reloads(gateway.log());
    gateway.stop()?;
    remote.into_iter().try_for_each(Endpoint::stop)?;
    Ok(judge(&runs, &kills, reloads, named.len()))
}

/// What the file says after so many changes. Clients are told of none of these servers but the last two.
fn changed(places: &Places, file: &str, turn: usize) -> String {
    let fake = places.built.join("fake_server").display().to_string();
    let comes_and_goes = match turn % 2 {
        0 => String::new(),
        _ => format!("[servers.passing]\ncommand = {fake:?}\n"),
    };
    let becomes_another = format!("[servers.fake-0.env]\nTURN = \"{turn}\"\n");
    let other_limits = format!("[servers.fake-1.tools.\"echo\"]\ntimeout = \"{}s\"\n", 60 + turn);
    [file, &comes_and_goes, &becomes_another, &other_limits].concat()
}

/// How often outlast says that it has taken a change.
fn reloads(log: &Path) -> usize {
    let said = std::fs::read(log).unwrap_or_default();
    String::from_utf8_lossy(&said).matches(RELOADED).count()
}

/// The file, and what is in it. Servers over HTTP are started.
fn file(places: &Places, remote: &mut Vec<Endpoint>) -> Result<(String, Vec<Named>)> {
    let (mut text, mut named) = (DEFAULTS.to_owned(), Vec::new());
    let mut add = |name: String, argument, how: String| -> Result<()> {
        write!(text, "[servers.{name}]\n{how}\n")?;
        named.push(Named { name, argument });
        Ok(())
    };
    let stdio = |command: &[String]| format!("command = {:?}\nargs = {:?}", command[0], &command[1..]);
    for (program, on_stdio, over_http, argument) in SERVERS {
        for number in 0..on_stdio {
            add(format!("{program}-{number}"), argument, stdio(&server(program).stdio_command(places)))?;
        }
        for number in 0..over_http {
            let log = places.logs().join(format!("gateway-{program}-{number}.log"));
            let endpoint = Endpoint::start(&server(program).http_command(places), &log)?;
            add(format!("{program}-http-{number}"), argument, format!("url = {:?}", endpoint.url))?;
            remote.push(endpoint);
        }
    }
    let fake = places.built.join("fake_server").display().to_string();
    for number in 0..FAKES {
        add(format!("fake-{number}"), "text", stdio(std::slice::from_ref(&fake)))?;
    }
    Ok((text, named))
}

/// Lets all clients in at once; kills servers and changes the file until they are done.
fn visit(
    places: &Places,
    (gateway, remote): (&Endpoint, &mut [Endpoint]),
    named: &[Named],
    change: impl Fn(usize) -> bool + Sync,
) -> (Vec<Run>, Kills) {
    let done = AtomicBool::new(false);
    let commands = commands(places, named, &gateway.url);
    std::thread::scope(|scope| {
        let killer = scope.spawn(|| kill_until(&done, gateway, remote));
        scope.spawn(|| {
            let steps = (CHANGES.as_millis() / PAUSE.as_millis()) as usize;
            for step in (1..).take_while(|_| !done.load(Ordering::Relaxed)) {
                std::thread::sleep(PAUSE);
                if step % steps == 0 && !change(step / steps) {
                    return;
                }
            }
        });
        let started: Vec<_> = commands
            .iter()
            .enumerate()
            .map(|(number, command)| {
                let log = places.logs().join(format!("gateway-clients-{number}.log"));
                scope.spawn(move || client::run(command, &log, LIMIT))
            })
            .collect();
        let runs = started.into_iter().filter_map(|run| run.join().ok()).collect();
        done.store(true, Ordering::Relaxed);
        (runs, killer.join().unwrap_or_default())
    })
}

/// How often servers were killed, and what went wrong with that.
#[derive(Default)]
struct Kills {
    on_stdio: usize,
    over_http: usize,
    trouble: Option<String>,
}

fn kill_until(done: &AtomicBool, gateway: &Endpoint, remote: &mut [Endpoint]) -> Kills {
    let mut kills = Kills::default();
    for turn in 1..=KILLS {
        std::thread::sleep(PAUSE);
        if done.load(Ordering::Relaxed) {
            break;
        }
        if turn % OVER_HTTP > 0 {
            kills.on_stdio += kill_one(gateway, turn);
            continue;
        }
        let at = turn / OVER_HTTP % remote.len();
        match remote[at].restart() {
            Ok(()) => kills.over_http += 1,
            Err(why) => kills.trouble = Some(format!("a server over HTTP did not come back: {why:#}")),
        }
    }
    kills
}

fn commands(places: &Places, named: &[Named], url: &str) -> Vec<Vec<String>> {
    let servers: Vec<_> = named
        .iter()
        .map(|named| serde_json::json!({"name": named.name, "argument": named.argument}))
        .collect();
    let servers = serde_json::Value::from(servers).to_string();
    let installed = |path: &str| places.installed.join(path).display().to_string();
    let mut first = 0;
    let mut commands = Vec::new();
    for (program, sdk, raw) in NODE {
        let words = [sdk, raw, CALLS, first].map(|number| number.to_string());
        let program = vec!["node".to_owned(), installed(program), servers.clone()];
        commands.push([program, words.to_vec(), vec!["--".to_owned(), url.to_owned()]].concat());
        first += sdk + raw;
    }
    for (python, program, clients) in PYTHON {
        let words = [clients, CALLS, first].map(|number| number.to_string());
        let program = vec![installed(python), installed(program), servers.clone()];
        commands.push([program, words.to_vec(), vec!["--".to_owned(), url.to_owned()]].concat());
        first += clients;
    }
    commands
}

/// Kills a server's process, another one each time; how many that were.
fn kill_one(gateway: &Endpoint, turn: usize) -> usize {
    let servers = gateway.pid().map(servers_below).unwrap_or_default();
    let chosen = servers.get(turn * 7 % servers.len().max(1));
    usize::from(chosen.is_some_and(|pid| kill(*pid, Signal::SIGKILL).is_ok()))
}

/// The processes below outlast that are not outlast itself.
fn servers_below(outlast: u32) -> Vec<Pid> {
    let parents = parents();
    let is_below = |mut pid: i32| {
        for _ in 0..8 {
            match parents.get(&pid) {
                Some(parent) if *parent == outlast.cast_signed() => return true,
                Some(parent) => pid = *parent,
                None => return false,
            }
        }
        false
    };
    let is_outlast = |pid: i32| {
        std::fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|program| program.ends_with("outlast"))
    };
    parents
        .keys()
        .filter(|pid| is_below(**pid) && !is_outlast(**pid))
        .map(|pid| Pid::from_raw(*pid))
        .collect()
}

/// Every process and its parent.
fn parents() -> BTreeMap<i32, i32> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return BTreeMap::new() };
    let parent = |pid: i32| -> Option<i32> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
    };
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    pids.filter_map(|pid| Some((pid, parent(pid)?))).collect()
}

fn judge(runs: &[Run], kills: &Kills, reloads: usize, servers: usize) -> Verdict {
    let by_hand = NODE.iter().map(|(_, _, raw)| raw).sum::<usize>();
    let in_node = NODE.iter().map(|(_, sdk, _)| sdk).sum::<usize>();
    let on_sdks = in_node + PYTHON.iter().map(|(_, _, clients)| clients).sum::<usize>();
    let Kills { on_stdio, over_http, trouble } = kills;
    let well = |run: &&Run| run.outcomes.get("calls").is_some_and(|calls| calls.ok == Outcome::PASSED);
    let mut complaints: Vec<String> = runs
        .iter()
        .filter(|run| !well(run) || run.trouble.is_some())
        .flat_map(|run| {
            let said = run.outcomes.values().map(ToString::to_string);
            said.chain(run.story()).collect::<Vec<_>>()
        })
        .collect();
    complaints.extend(trouble.clone());
    if runs.len() != NODE.len() + PYTHON.len() {
        complaints.push("a program of clients was lost".to_owned());
    }
    if *on_stdio == 0 || *over_http == 0 || reloads == 0 {
        let killed = format!("{on_stdio} servers on stdio and {over_http} over HTTP were killed");
        complaints.push(format!("{killed}, {reloads} changes taken: nothing was shown"));
    }
    if !complaints.is_empty() {
        return Err(complaints);
    }
    let details: Vec<&str> =
        runs.iter().filter_map(|run| Some(run.outcomes.get("calls")?.detail.as_str())).collect();
    Ok(format!(
        "{on_sdks} clients on SDKs, {by_hand} by hand, {servers} servers, {on_stdio} killed on stdio, {over_http} over HTTP, {reloads} changes of the file: {}",
        details.join("; ")
    ))
}
