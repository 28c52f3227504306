//! Is a server hung? After a limit that a person wrote has fired, or a heartbeat is missing, it owes us a sign of life.
//!
//! Any message, an answered ping, CPU time or bytes within `cancel-grace` clear it: the call has
//! failed, the server stays. Nothing at all means hung. A limit that nobody wrote starts no watch.

use super::Engine;
use crate::action::{Action, Note};
use crate::config::Restart;
use crate::era::Era;
use crate::id::ServerId;
use crate::life::Sample;
use crate::limits;
use crate::policy::{Layer, Limit};
use crate::servers::{Own, Verdict, Waits};
use crate::time::Mono;
use crate::wire::Outgoing;

impl Engine {
    /// A limit fired and the server was told to cancel.
    pub(super) fn watch(&mut self, now: Mono, id: ServerId, limit: Limit) {
        if matches!(limit.layer, Layer::BuiltIn | Layer::Server) {
            return;
        }
        if self.definition_of(id).restart == Restart::OnTimeout {
            return self.restart(now, id, "a call timed out", limits::KILL_GRACE);
        }
        self.owes_a_sign(now, id, "it was told to cancel");
    }

    /// Anything at all that it does shows that a server is there. `asked` says since when it owes us that.
    pub(super) fn owes_a_sign(&mut self, now: Mono, id: ServerId, asked: &'static str) {
        let at = now + self.definition_of(id).cancel_grace;
        if !self.servers.watch(&mut self.timers, (now, asked), id, at) {
            return;
        }
        let has_ping = self.servers.get(&id).is_some_and(|server| server.eras.speaks(Era::Legacy));
        self.sample(id);
        if has_ping {
            self.ping(id);
        }
    }

    /// A ping of our own. An event loop answers it while a tool is deadlocked, so it never moves a
    /// call's limit; but a server that answers is not hung.
    fn ping(&mut self, id: ServerId) {
        let attempt = self.new_attempt();
        let ping = format!(r#"{{"jsonrpc":"2.0","id":{},"method":"ping"}}"#, attempt.0);
        self.servers.asks_own(id, attempt, Own::Quiet);
        self.send(id, Some(attempt), None, Outgoing::plain(ping));
    }

    pub(super) fn sample(&mut self, id: ServerId) {
        if self.servers.wants_sample(id) {
            self.act(Action::Sample(id));
        }
    }

    pub(super) fn grace_over(&mut self, id: ServerId) {
        if self.servers.grace_is_over(id) {
            self.sample(id);
        }
    }

    /// A sample came while the server is watched.
    pub(super) fn watched(&mut self, now: Mono, id: ServerId, sample: Option<Sample>) {
        let Some(Verdict::Hung(silent, asked)) = self.servers.judge(now, id, sample) else { return };
        if self.asks.iter().any(|(_, ask)| ask.server == id && ask.waits != Waits::Nobody) {
            // It waits for a person, as it should; a restart would take the question away.
            return;
        }
        let server = self.server_name(id);
        self.note(Note::Hung { server, silent, asked });
        if reached!(HUNG_GRACE, self.definition_of(id).restart >= Restart::OnHang) {
            self.restart(now, id, "it hangs", limits::HUNG_GRACE);
        }
    }
}
