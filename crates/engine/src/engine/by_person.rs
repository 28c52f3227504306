//! What a person wants done with a call or a server, from outside: on the dashboard, in `top`.
//!
//! A call that a person cancels has a client that still waits, so it gets an error that says who did it; a task is
//! cancelled as its client would do it. A handshake is never cancelled.

use super::Engine;
use crate::clients::Way;
use crate::error::{Kind, cut};
use crate::id::{CallId, ServerId};
use crate::limits;
use crate::step::{CallNo, What};
use crate::time::Mono;

impl Engine {
    /// A person cancels a call. `by` says who and where.
    #[cold]
    pub(super) fn cancelled_by_person(&mut self, now: Mono, no: CallNo, by: &str) {
        let Some(id) = self.call_numbered(no) else { return };
        let Some(call) = self.calls.get(id).filter(|call| !call.request.method.is_handshake()) else {
            return;
        };
        if let Way::Ticket(no) = call.request.way {
            self.step(id, || What::CancelAsked { by: by.into() });
            return self.end_by_cancel(now, no);
        }
        let (server, attempt) = (call.request.server, call.attempt());
        let (modern, text) = (call.modern, call.text);
        let mut failure = self.failure(now, call, Kind::Cancelled, None);
        failure.detail = Some(cut(by, limits::NAME).to_owned());
        self.step(id, || What::CancelAsked { by: by.into() });
        if let Some(attempt) = attempt {
            self.cancel_attempt(server, attempt, modern, text, "a person cancelled it");
        }
        self.fail(id, failure);
    }

    fn call_numbered(&self, no: CallNo) -> Option<CallId> {
        self.calls.iter().find(|(_, call)| call.request.no == Some(no)).map(|(id, _)| id)
    }

    /// A person has a server started again: every process of it.
    #[cold]
    pub(super) fn restarted_by_person(&mut self, now: Mono, name: &str) {
        let called = self.servers.iter().filter(|(_, server)| *server.config.name == *name);
        let called: Vec<ServerId> = called.map(|(id, _)| *id).collect();
        for id in called {
            self.restart(now, id, "a person asked for it", limits::KILL_GRACE);
        }
    }
}
