//! Is a server hung? After a limit that a person wrote has fired, it owes us a sign of life.
//!
//! Any message, an answered ping, CPU time or bytes within `cancel-grace` clear it: the call has
//! failed, the server stays. Nothing at all means hung. A limit that nobody wrote starts no watch.

use super::{Engine, Restart};
use crate::action::{Action, Note};
use crate::id::ServerId;
use crate::life::Sample;
use crate::limits;
use crate::policy::{Layer, Limit};
use crate::servers::{Life, Own, Watch};
use crate::time::Mono;
use crate::timers::Owner;
use crate::wire::Outgoing;

impl Engine {
    /// A limit fired and the server was told to cancel.
    pub(super) fn watch(&mut self, now: Mono, id: ServerId, limit: Limit) {
        if matches!(limit.layer, Layer::BuiltIn | Layer::Server) {
            return;
        }
        if self.config.restart == Restart::OnTimeout {
            return self.restart(now, id, "a call timed out", limits::KILL_GRACE);
        }
        let at = now + self.config.cancel_grace;
        let Some(server) = self.servers.get_mut(&id) else { return };
        if server.watch.is_some() || server.life != Life::Up {
            return;
        }
        server.watch = Some(Watch { since: now, first: None, deciding: false });
        let legacy = server.handshake.initialize.is_some() && server.handshake.done;
        self.timers.set(Owner::Grace(id), &mut server.grace_armed, Some(at));
        self.sample(id);
        if legacy {
            self.ping(id);
        }
    }

    /// A ping of our own. An event loop answers it while a tool is deadlocked, so it never moves a
    /// call's limit; but a server that answers is not hung.
    fn ping(&mut self, id: ServerId) {
        let attempt = self.new_attempt();
        let ping = format!(r#"{{"jsonrpc":"2.0","id":{},"method":"ping"}}"#, attempt.0);
        if let Some(server) = self.servers.get_mut(&id) {
            server.own.insert(attempt, Own::Quiet);
        }
        self.send(id, Some(attempt), None, Outgoing::plain(ping));
    }

    fn sample(&mut self, id: ServerId) {
        let Some(server) = self.servers.get_mut(&id) else { return };
        if !server.sampling {
            server.sampling = true;
            self.act(Action::Sample(id));
        }
    }

    /// The server said something, on whichever of its outputs.
    pub(super) fn server_speaks(&mut self, now: Mono, id: ServerId) {
        if let Some(server) = self.servers.get_mut(&id) {
            server.heard = Some(now);
        }
        self.stop_watching(id);
    }

    /// The server said something, or is gone: there is nothing to watch.
    pub(super) fn stop_watching(&mut self, id: ServerId) {
        let Some(server) = self.servers.get_mut(&id) else { return };
        if server.watch.take().is_some() {
            self.timers.set(Owner::Grace(id), &mut server.grace_armed, None);
        }
    }

    pub(super) fn grace_over(&mut self, id: ServerId) {
        let Some(server) = self.servers.get_mut(&id) else { return };
        server.grace_armed = None;
        if let Some(watch) = &mut server.watch {
            watch.deciding = true;
            self.sample(id);
        }
    }

    /// A sample came while the server is watched.
    pub(super) fn watched(&mut self, now: Mono, id: ServerId, sample: Option<Sample>) {
        let Some(server) = self.servers.get_mut(&id) else { return };
        let Some(watch) = &mut server.watch else { return };
        if !watch.deciding {
            watch.first = watch.first.or(sample);
            return;
        }
        let worked = watch.first.zip(sample).is_some_and(|(first, last)| last.shows_life_since(&first));
        let silent = now.since(watch.since);
        server.watch = None;
        if worked {
            return;
        }
        let note = Note::Hung { server: server.name.clone(), silent };
        self.note(note);
        if self.config.restart >= Restart::OnHang {
            self.restart(now, id, "it hangs", limits::HUNG_GRACE);
        }
    }
}
