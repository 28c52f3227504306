//! How a server's process, or its remote session, comes and goes.

use super::{Alarm, Fate, Life, Own, Server, Servers};
use crate::event::{Exit, StartFailure};
use crate::id::{AttemptId, CallId, Run, ServerId};
use crate::time::Mono;
use crate::timers::{Owner, Timers};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// What a server that did not come up, or is gone, does next.
#[derive(Debug)]
pub(crate) enum Rest {
    /// It is started again after this wait.
    For(Duration),
    /// It has failed too often; whether that is new.
    Down { first: bool },
}

/// A server that is there again.
#[derive(Debug)]
pub(crate) struct Back {
    /// It has been told everything before: a connection came back, not a process.
    pub(crate) whole: bool,
    /// It is not the first process.
    pub(crate) restarted: bool,
    /// It was away, for so long.
    pub(crate) away: Option<Duration>,
    /// Calls that waited for it.
    pub(crate) waiting: VecDeque<CallId>,
}

/// What becomes of a session that a server does not know any more.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NewSession {
    /// One has begun since, or is about to.
    Begun,
    /// One is to be begun now.
    Begins,
    /// Too many have been begun of late.
    TooMany,
}

impl Servers {
    fn lives(&mut self, id: ServerId, life: Life) {
        if let Some(server) = self.at(id) {
            server.life = life;
        }
    }

    /// When the alarm of a server rings, and what for.
    pub(crate) fn arm(&mut self, timers: &mut Timers, id: ServerId, alarm: Option<(Alarm, Mono)>) {
        let Some(server) = self.at(id) else { return };
        server.alarm = alarm.map(|(alarm, _)| alarm);
        timers.set(Owner::Server(id), &mut server.armed, alarm.map(|(_, at)| at));
    }

    /// The alarm of a server rings.
    pub(crate) fn ring(&mut self, id: ServerId) -> Option<Alarm> {
        let server = self.at(id)?;
        server.armed = None;
        server.alarm.take()
    }

    /// A process runs, or a connection is there.
    pub(crate) fn started(&mut self, id: ServerId) {
        if let Some(server) = self.at(id).filter(|server| server.life == Life::Starting) {
            server.life = Life::Up;
        }
    }

    /// What troubled it last is over.
    pub(crate) fn is_reached(&mut self, id: ServerId) {
        if let Some(server) = self.at(id) {
            server.last_trouble = None;
            (server.ran, server.hopeless) = (true, false);
        }
    }

    /// It could not be reached, or started, and why.
    pub(crate) fn has_trouble(&mut self, id: ServerId, why: &str) {
        if let Some(server) = self.at(id) {
            server.last_trouble = Some(why.into());
            server.last_error = Some(why.into());
        }
    }

    /// Something went wrong that is told to who asks how it is.
    pub(crate) fn has_erred(&mut self, id: ServerId, why: &str) {
        if let Some(server) = self.at(id) {
            server.last_error = Some(why.into());
        }
    }

    /// This run is not ready, whatever it was before.
    pub(crate) fn did_not_come_up(&mut self, id: ServerId) {
        if let Some(server) = self.at(id) {
            server.came_up = false;
        }
    }

    /// It could not be started, and stays so.
    pub(crate) fn failed(&mut self, id: ServerId, why: StartFailure) {
        self.lives(id, Life::Failed(why));
    }

    /// It has ended, and what it wrote last is yet to be read.
    pub(crate) fn exited(&mut self, id: ServerId, exit: Exit) {
        if let Some(server) = self.at(id) {
            server.exit = Some(exit);
            if !matches!(server.life, Life::Stopping | Life::Leaving) {
                server.last_error = Some(exit.to_string().into());
            }
        }
    }

    pub(crate) fn closed_its_output(&mut self, id: ServerId) {
        if let Some(server) = self.at(id) {
            server.output_closed = true;
        }
    }

    /// It can be told nothing any more. Whether that is news.
    pub(crate) fn closed_its_input(&mut self, id: ServerId) -> Option<bool> {
        self.at(id).map(|server| !std::mem::replace(&mut server.input_closed, true))
    }

    /// Nothing of it is left to read.
    pub(crate) fn is_gone(&mut self, id: ServerId, restarts: bool, exit: Exit) {
        self.lives(id, if restarts { Life::Resting } else { Life::Ended(exit) });
    }

    /// It waits to be started again.
    pub(crate) fn rests(&mut self, id: ServerId) {
        self.lives(id, Life::Resting);
    }

    /// It is told to end, so that it can be started again.
    pub(crate) fn stops(&mut self, now: Mono, id: ServerId) {
        if let Some(server) = self.at(id) {
            server.life = Life::Stopping;
            server.stopped_at = now;
        }
    }

    /// It is not needed any more, and told to end. Whether there is a process to end.
    pub(crate) fn leaves(&mut self, id: ServerId) -> Option<bool> {
        let server = self.at(id)?;
        let runs = server.has_process();
        server.life = Life::Leaving;
        Some(runs)
    }

    /// How long to wait before the next start. `stopped` if it was we who stopped it.
    pub(crate) fn rest(
        &mut self,
        now: Mono,
        id: ServerId,
        jitter: f64,
        at_once: bool,
        stopped: bool,
    ) -> Option<Rest> {
        let server = self.at(id)?;
        if server.fate == Fate::Replaced {
            server.life = Life::Resting;
            server.stopped_at = now;
            return Some(Rest::For(Duration::ZERO));
        }
        let Some(wait) = server.restart_after(now, jitter, at_once) else {
            let first = server.life != Life::Down;
            server.life = Life::Down;
            self.given_up = true;
            return Some(Rest::Down { first });
        };
        server.life = Life::Resting;
        if !stopped && server.has_just_gone() {
            server.stopped_at = now;
        }
        Some(Rest::For(wait))
    }

    /// It is started again: as the same run if only a connection could not be made. Gives back what nobody will
    /// answer any more.
    pub(crate) fn starts_again(
        &mut self,
        id: ServerId,
        same: bool,
    ) -> Option<(Run, BTreeMap<AttemptId, Own>)> {
        let server = self.at(id)?;
        server.life = Life::Restarting;
        if same {
            return Some((server.run, BTreeMap::new()));
        }
        server.restarted += u32::from(!server.wakes);
        let unanswered = std::mem::take(&mut server.own);
        Some((server.next_run(), unanswered))
    }

    /// It is given the handshake under this number.
    pub(crate) fn is_greeted(&mut self, id: ServerId, attempt: AttemptId) {
        if let Some(server) = self.at(id) {
            server.life = Life::Reviving(attempt);
            server.session_since = attempt;
        }
    }

    /// It refused the version of the handshake, and is given it once more with one of its own. False if it was
    /// before.
    pub(crate) fn tries_other_version(&mut self, id: ServerId) -> bool {
        self.at(id).is_some_and(|server| !std::mem::replace(&mut server.other_version, true))
    }

    /// It is there again, and has been told the handshake.
    pub(crate) fn is_back(&mut self, now: Mono, id: ServerId, remote: bool) -> Option<Back> {
        let server = self.at(id)?;
        let whole = remote && server.made_whole == Some(server.run);
        server.made_whole = Some(server.run);
        server.other_version = false;
        server.life = Life::Up;
        if !remote {
            server.is_up();
        }
        server.waiting_bytes = 0;
        let restarted = server.run > Run(0) || server.session_lost;
        let came_back = restarted | server.last_trouble.take().is_some();
        let came_back = came_back && !std::mem::take(&mut server.wakes);
        Some(Back {
            whole,
            restarted,
            away: came_back.then(|| now.since(server.stopped_at)),
            waiting: std::mem::take(&mut server.waiting),
        })
    }

    /// It answers, so it can be reached.
    pub(crate) fn answers(&mut self, id: ServerId) {
        if let Some(server) = self.at(id) {
            server.answers();
        }
    }

    /// A client has its answer. Whether it is the first that this server has given.
    pub(crate) fn has_answered(&mut self, id: ServerId) -> bool {
        self.given_up = false;
        let Some(server) = self.at(id) else { return false };
        server.answers();
        !std::mem::replace(&mut server.ever_answered, true)
    }

    /// Its handshake failed: the next one is to be told everything.
    pub(crate) fn handshake_failed(&mut self, id: ServerId) {
        if let Some(server) = self.at(id) {
            server.came_up = false;
            server.made_whole = None;
        }
    }

    /// It does not know the session that an attempt was sent on. What is in flight goes on.
    pub(crate) fn session_is_lost(
        &mut self,
        now: Mono,
        id: ServerId,
        attempt: Option<AttemptId>,
    ) -> Option<NewSession> {
        let server = self.at(id)?;
        let before = attempt.is_some_and(|attempt| attempt < server.session_since);
        if before || matches!(server.life, Life::Reviving(_)) {
            return Some(NewSession::Begun);
        }
        if !matches!(server.life, Life::Up | Life::Starting) {
            // It is away, and will be told everything when it is back.
            server.forgets_session();
            return Some(NewSession::Begun);
        }
        if !server.may_restart(now) {
            return Some(NewSession::TooMany);
        }
        server.forgets_session();
        server.came_up = true;
        Some(NewSession::Begins)
    }
}

// The standing stream of a remote server.
impl Servers {
    pub(crate) fn arm_standing(&mut self, timers: &mut Timers, id: ServerId, at: Option<Mono>) {
        if let Some(server) = self.at(id) {
            timers.set(Owner::Standing(id), &mut server.standing_armed, at);
        }
    }

    pub(crate) fn standing_rings(&mut self, id: ServerId) -> Option<&Server> {
        let server = self.at(id)?;
        server.standing_armed = None;
        Some(server)
    }

    /// It broke. How often that has happened in a row; hanging up as it said it would is no failure.
    pub(crate) fn standing_broke(&mut self, id: ServerId, as_it_said: bool) -> Option<u32> {
        let server = self.at(id)?;
        server.standing_breaks = if as_it_said { 1 } else { server.standing_breaks.saturating_add(1) };
        Some(server.standing_breaks)
    }
}
