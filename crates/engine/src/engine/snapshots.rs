//! What is so right now, for whoever looks on.

use super::Engine;
use crate::calls::{Call, State};
use crate::clients::Way;
use crate::era::{Era, Eras};
use crate::id::{CallId, ServerId};
use crate::limits;
use crate::method::Method;
use crate::policy::{CallFacts, Declared};
use crate::servers::{Life, Server};
use crate::snapshot::{OpenCall, Place, ServerNow, Snapshot};
use crate::time::Now;
use std::collections::BTreeMap;
use std::time::Duration;

/// Lines of a server's stderr that a snapshot has.
const LINES: usize = 10;

impl Engine {
    /// What is so right now. Changes nothing.
    pub fn snapshot(&self, now: Now) -> Snapshot {
        let told = self.calls.iter().filter(|(_, call)| call.request.no.is_some());
        let mut all: Vec<(CallId, &Call)> = told.collect();
        all.sort_unstable_by_key(|(_, call)| call.request.no);
        reached!(SNAPSHOT if all.len() > limits::SNAPSHOT);
        let more = all.len().saturating_sub(limits::SNAPSHOT);
        let shown = all.iter().take(limits::SNAPSHOT);
        let calls = shown.filter_map(|(id, call)| self.open_call_now(now, *id, call)).collect();
        Snapshot { calls, more, servers: self.servers_now() }
    }

    /// Whether a server of this name was started.
    pub fn has_server(&self, name: &str) -> bool {
        self.servers.values().any(|server| *server.config.name == *name)
    }

    /// The limits of a tool as they are written now: how long a call may be silent, and the longest that it may take.
    pub fn limits_of(&self, server: &str, tool: &str) -> Option<(Option<Duration>, Duration)> {
        let (_, config) = self.config.definitions().find(|(_, config)| *config.name == *server)?;
        let policy = config.rules.for_call(CallFacts {
            method: &Method::ToolsCall,
            tool: Some(tool),
            has_token: true,
            cap: None,
            silence: None,
            wish: None,
            declared: &Declared::default(),
        });
        Some((policy.timeout.map(|limit| limit.time), policy.max.time))
    }

    fn open_call_now(&self, now: Now, id: CallId, call: &Call) -> Option<OpenCall> {
        let request = &call.request;
        let clock = self.servers.get(&request.server).map(|server| server.clock).unwrap_or_default();
        let timeout = call.deadline.timeout().map(|limit| limit.time);
        let sign = call.sign.unwrap_or(call.began);
        Some(OpenCall {
            no: request.no?,
            server: self.server_name(request.server),
            method: request.method.clone(),
            tool: request.tool.clone(),
            client: self.client_in_words(request.client),
            principal: self.principal_in_words(request.client),
            place: self.place_of(id, call),
            began: now.wall.before(call.age(now.mono)),
            timeout: timeout.zip(call.deadline.timeout_left(now.mono, &clock)),
            max: call.deadline.max(),
            last_sign: now.wall.before(now.mono.since(sign)),
            attempts: call.attempts.into(),
            ticket: matches!(request.way, Way::Ticket(_)),
        })
    }

    fn place_of(&self, id: CallId, call: &Call) -> Place {
        match &call.state {
            _ if self.holds.has(id) => Place::Held,
            State::Shares => Place::Joined,
            State::Followed(_) => Place::Followed,
            State::Paused => Place::Parked,
            State::Waiting(_) if call.is_parked() => Place::Parked,
            State::Waiting(_) => Place::Queued,
            State::New | State::Sent(_) if call.hands_off && matches!(call.request.way, Way::Ticket(_)) => {
                Place::HandedOff
            }
            State::New | State::Sent(_) => Place::Running,
        }
    }

    fn servers_now(&self) -> Vec<ServerNow> {
        let mut at: BTreeMap<ServerId, usize> = BTreeMap::new();
        for (_, call) in self.calls.iter().filter(|(_, call)| call.attempt().is_some()) {
            *at.entry(call.request.server).or_default() += 1;
        }
        let shown = self.servers.iter().take(limits::SNAPSHOT);
        shown.map(|(id, server)| server_now(server, at.get(id).copied().unwrap_or_default())).collect()
    }
}

fn server_now(server: &Server, in_flight: usize) -> ServerNow {
    let lines = server.stderr_tail().unwrap_or_default();
    let lines: Vec<Box<str>> = lines.lines().map(Into::into).collect();
    ServerNow {
        name: server.config.name.clone(),
        state: state_of(server),
        era: era_of(server.eras),
        version: server.version.clone(),
        run: server.run.0,
        in_flight,
        waiting: server.waiting.len(),
        error: error_of(server),
        stderr: lines[lines.len().saturating_sub(LINES)..].to_vec(),
    }
}

fn state_of(server: &Server) -> &'static str {
    match server.life {
        Life::Starting => "starting",
        Life::Up => "ready",
        Life::Resting | Life::Restarting | Life::Reviving(_) => "restarting",
        Life::Stopping | Life::Leaving => "stopping",
        Life::Asleep => "asleep",
        Life::Down | Life::Failed(_) => "failed",
        Life::Ended(_) => "ended",
    }
}

fn era_of(eras: Eras) -> &'static str {
    match (eras.speaks(Era::Legacy), eras.speaks(Era::Modern)) {
        (true, true) => "legacy+modern",
        (true, false) => "legacy",
        (false, true) => "modern",
        (false, false) => "",
    }
}

fn error_of(server: &Server) -> Option<Box<str>> {
    match server.life {
        Life::Failed(why) => Some(why.to_string().into()),
        Life::Ended(exit) => Some(exit.to_string().into()),
        _ => server.last_trouble.clone(),
    }
}
