//! Servers of a service: how they start, and what reaches them and us.

use super::remote::{Happening, Remote};
use super::{Character, Plan, World};
use crate::sim::process::{Deed, Process};
use bytes::Bytes;
use outlast_engine::event::StartFailure;
use outlast_engine::id::{Run, ServerId};
use outlast_engine::wire::{Message, Outgoing, Scanned, scan};
use outlast_engine::{Action, Event, Transport};
use std::time::Duration;

/// One server.
#[derive(Debug)]
pub(super) struct Peer {
    run: Run,
    pub(super) kind: PeerKind,
}

#[derive(Debug)]
pub(super) enum PeerKind {
    /// With what waits in its pipe until it runs.
    Process(Process, Option<Vec<Message>>),
    Remote(Remote),
}

impl World {
    pub(super) fn process_starts(&mut self, id: ServerId, run: Run) {
        let Some(peer) = self.servers.get_mut(&id).filter(|peer| peer.run == run) else { return };
        let PeerKind::Process(process, pipe) = &mut peer.kind else { return };
        let waiting = pipe.take().unwrap_or_default();
        if process.fails_to_start(&mut self.rng) {
            return self.feed(Event::StartFailed(id, run, StartFailure::NotFound));
        }
        process.starts(run);
        for message in waiting {
            self.judge.arrives(&message);
            process.receive(&mut self.rng, &message.bytes);
        }
        self.feed(Event::Started(id, run));
    }

    pub(super) fn process_does(&mut self, id: ServerId, run: Run, deed: Deed) {
        let event = deed.event(id, run);
        self.hear(&event);
        self.feed(event);
    }

    pub(super) fn remote_happens(&mut self, id: ServerId, run: Run, happening: Happening) {
        let Some(Peer { kind: PeerKind::Remote(remote), .. }) = self.servers.get_mut(&id) else { return };
        if !remote.delivers(&mut self.rng, run, &happening) {
            return;
        }
        for event in happening.events(id, run) {
            self.hear(&event);
            self.feed(event);
        }
    }

    fn hear(&mut self, event: &Event) {
        let (id, run, stream, line) = match event {
            Event::FromServer(id, run, line) => (id, run, None, line),
            Event::FromStream(id, run, stream, line) => (id, run, Some(*stream), line),
            _ => return,
        };
        let engine = &self.engine;
        // Of a call only its own stream speaks.
        let own = |attempt| stream.is_none_or(|stream| stream == attempt);
        self.judge.server_says(*id, line, |attempt| own(attempt) && engine.expects(*id, *run, attempt));
    }

    pub(super) fn start(&mut self, id: ServerId, run: Run) -> Option<Event> {
        self.outcome.runs += 1;
        let Character { asks, crashes, forges, floods, .. } = self.character;
        let forges = forges.then_some(id.0);
        let http = self.transport == Transport::Http;
        let again = self.servers.get(&id).is_some_and(|peer| peer.run == run);
        let rng = &mut self.rng;
        let peer = self.servers.entry(id).or_insert_with(|| Peer {
            run,
            kind: match http {
                true => PeerKind::Remote(Remote::new(rng, asks, crashes, forges)),
                false => PeerKind::Process(Process::new(asks, crashes, forges).flooding(floods), None),
            },
        });
        peer.run = run;
        match &mut peer.kind {
            PeerKind::Remote(remote) if again => remote.connects(&mut self.rng, self.agenda.now),
            PeerKind::Remote(remote) => {
                remote.begins(run);
                return Some(Event::Started(id, run));
            }
            PeerKind::Process(_, pipe) => {
                *pipe = Some(Vec::new());
                self.agenda.plan(Duration::from_millis(5), Plan::Starts(id, run));
            }
        }
        None
    }

    pub(super) fn tell_process(&mut self, id: ServerId, outgoing: &Outgoing) {
        let message = scanned(outgoing);
        let Some(peer) = self.servers.get_mut(&id) else { return };
        self.judge.sent(self.agenda.now, id, peer.run, &message);
        let PeerKind::Process(process, pipe) = &mut peer.kind else { panic!("a pipe to a remote server") };
        match pipe {
            Some(pipe) => pipe.push(message),
            None => {
                self.judge.arrives(&message);
                process.receive(&mut self.rng, &message.bytes);
            }
        }
    }

    pub(super) fn tell_server(&mut self, action: Action) {
        let (rng, now) = (&mut self.rng, self.agenda.now);
        let (Action::Post(id, _)
        | Action::Reconnect(id, _)
        | Action::Abandon(id, _)
        | Action::Stand(id)
        | Action::CloseInput(id)
        | Action::Terminate(id)
        | Action::Kill(id)) = &action
        else {
            panic!("{action:?} in a world of HTTP clients")
        };
        let Some(peer) = self.servers.get_mut(id) else { return };
        match (&mut peer.kind, action) {
            (PeerKind::Process(process, _), Action::CloseInput(_)) => process.input_closed(rng),
            (PeerKind::Process(process, _), Action::Terminate(_)) => process.terminated(rng),
            (PeerKind::Process(process, _), Action::Kill(_)) => process.killed(rng),
            (PeerKind::Remote(remote), Action::Post(id, post)) => {
                let message = scanned(&post.message);
                self.judge.sent(self.agenda.now, id, peer.run, &message);
                if remote.post(rng, now, &post, &message) {
                    self.judge.arrives(&message);
                }
            }
            (PeerKind::Remote(remote), Action::Reconnect(_, attempt)) => remote.reconnect(rng, now, attempt),
            (PeerKind::Remote(remote), Action::Abandon(id, attempt)) => {
                self.judge.abandoned(id, attempt);
                remote.abandon(attempt);
            }
            (PeerKind::Remote(remote), Action::Stand(_)) => remote.stand(rng, now),
            (PeerKind::Remote(remote), Action::CloseInput(_)) => remote.close(),
            (PeerKind::Remote(remote), Action::Terminate(_) | Action::Kill(_)) => remote.kill(),
            (PeerKind::Process(..), action) => panic!("{action:?} for a process"),
            (PeerKind::Remote(_), action) => panic!("{action:?} for a remote server"),
        }
    }
}

fn scanned(outgoing: &Outgoing) -> Message {
    match scan(Bytes::from(outgoing.to_vec())) {
        Ok(Scanned::Message(message)) => message,
        other => panic!("a bad line to a server: {other:?}"),
    }
}
