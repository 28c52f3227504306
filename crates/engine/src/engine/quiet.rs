//! Servers that are quiet, not used, or not needed yet.
//!
//! A heartbeat goes to a quiet server that has no call: a call has limits of its own, and a server with one thread
//! answers nothing while it works. A missing answer counts only if this process has answered one before, and then as
//! a limit of a person does (`hang.rs`): the server owes us a sign of life.

use super::Engine;
use crate::action::{Action, Note};
use crate::config::{Restart, ServerConfig};
use crate::era::Era;
use crate::id::{DefinitionId, ServerId};
use crate::limits;
use crate::servers::{Alarm, Fate, Life, Pulse, Server};
use crate::time::Mono;
use crate::wire::Outgoing;
use std::time::Duration;

/// How often a server is looked after.
fn period(config: &ServerConfig) -> Option<Duration> {
    [config.heartbeat, config.server_idle].into_iter().flatten().min()
}

impl Engine {
    /// A server runs, and may be quiet from now on.
    pub(super) fn look_after(&mut self, now: Mono, id: ServerId) {
        let at = period(self.definition_of(id)).map(|period| now + period);
        self.servers.arm_quiet(&mut self.timers, id, at);
    }

    pub(super) fn quiet_due(&mut self, now: Mono, id: ServerId) {
        let Some(server) = self.servers.quiet_rings(id) else { return };
        let (life, config) = (server.life, server.config.clone());
        let Some(period) = period(&config) else { return };
        self.servers.arm_quiet(&mut self.timers, id, Some(now + period));
        if life != Life::Up || self.ending.is_some() || self.is_at_work(id) {
            return self.servers.forgets_heartbeat(id);
        }
        if config.server_idle.is_some_and(|idle| self.may_sleep(now, id, idle)) {
            return self.puts_to_sleep(now, id, &config);
        }
        if let Some(every) = config.heartbeat {
            self.take_pulse(now, id, every);
        }
    }

    /// Whether a server has anything to do for somebody.
    fn is_at_work(&self, id: ServerId) -> bool {
        let Some(server) = self.servers.get(&id) else { return false };
        server.watch.is_some()
            || !server.waiting.is_empty()
            || self.calls.iter().any(|(_, call)| call.request.server == id)
            || self.asks.iter().any(|(_, ask)| ask.server == id)
    }

    // Heartbeats.

    fn take_pulse(&mut self, now: Mono, id: ServerId, every: Duration) {
        let knows_ping = |server: &Server| server.eras.speaks(Era::Legacy) && server.handshake.is_over();
        if !self.servers.get(&id).is_some_and(knows_ping) {
            return;
        }
        match self.servers.pulse(now, id, every) {
            Pulse::NotDue => {}
            Pulse::Ask => self.ask_for_pulse(now, id),
            Pulse::Missing => self.owes_a_sign(now, id, "it was asked whether it is there"),
        }
    }

    fn ask_for_pulse(&mut self, now: Mono, id: ServerId) {
        let attempt = self.new_attempt();
        let ping = format!(r#"{{"jsonrpc":"2.0","id":{},"method":"ping"}}"#, attempt.0);
        self.servers.is_asked_for_pulse(now, id, attempt);
        self.send(id, Some(attempt), None, Outgoing::plain(ping));
    }

    // Sleep.

    /// Whether a process can end and be started again without anybody noticing.
    fn may_sleep(&self, now: Mono, id: ServerId, idle: Duration) -> bool {
        let Some(server) = self.servers.get(&id) else { return false };
        let known = server.handshake.done && server.handshake.initialize.is_some();
        let modern = server.greeted.is_none() && !server.eras.speaks(Era::Legacy);
        let revivable = server.config.restart > Restart::Never && (known || modern);
        let heard_of = !server.handshake.subscribed.is_empty()
            || self.listens.iter().any(|(_, listen)| listen.server == id);
        let free = server.fate == Fate::Stays && !server.spare && !server.is_unused() && !server.gave_task;
        let settled = server.alarm.is_none() && server.own.is_empty();
        revivable && free && settled && !heard_of && !self.is_remote(id) && now.since(server.used) >= idle
    }

    fn puts_to_sleep(&mut self, now: Mono, id: ServerId, config: &ServerConfig) {
        let idle = config.server_idle.unwrap_or_default();
        self.note(Note::FellAsleep { server: config.name.clone(), idle });
        self.servers.forgets_heartbeat(id);
        self.servers.falls_asleep(now, id);
        self.act(Action::CloseInput(id));
        self.arm_server(id, Some((Alarm::Lingers, now + limits::END_GRACE)));
    }

    /// Its process has ended, as it was told.
    pub(super) fn is_asleep(&mut self, now: Mono, id: ServerId) {
        self.drop_asks_of(now, id);
        self.servers.is_asleep(id);
        self.arm_server(id, None);
        self.servers.arm_quiet(&mut self.timers, id, None);
    }

    /// Somebody needs a server: one that sleeps is started.
    pub(super) fn wake_server(&mut self, id: ServerId) {
        if self.servers.is_needed_again(id) && self.ending.is_none() {
            self.start_again(self.at, id);
        }
    }

    // Servers that run before anybody needs them.

    /// A server that nobody needs yet is not to be there before any more.
    pub(super) fn let_unwanted_spare_go(&mut self, id: ServerId) {
        if self.servers.get(&id).is_some_and(|server| server.spare && !server.config.eager) {
            self.servers.is_no_spare(id);
            self.dismiss(self.at, id);
        }
    }

    /// Of each definition that says so there is always a process.
    pub(super) fn start_eager(&mut self, now: Mono) {
        if self.ending.is_some() {
            return;
        }
        let eager = self.config.definitions().filter(|(_, config)| config.eager).map(|(id, _)| id);
        for definition in eager.collect::<Vec<DefinitionId>>() {
            if self.servers.of(definition).is_empty()
                && let Some(id) = self.new_server(now, definition)
            {
                self.servers.is_spare(id);
                self.arm_server(id, None);
            }
        }
    }
}
