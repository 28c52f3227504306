//! A file was read again: only servers whose program changed are restarted, and calls keep what they began with.
//!
//! | a definition is | what happens |
//! |---|---|
//! | new | whoever is at the merged door gets a server of it, and is told that lists have changed |
//! | otherwise, but the same program | calls that begin now have the new limits; shown names may change |
//! | another program | its calls may finish within `drain`, new ones wait; then a new process is told what the old one knew |
//! | gone | its calls may finish within `drain`, new ones fail; then it is let go of, and sessions at its own address end |
//! | as before | nothing |
//!
//! A token that is gone, or is for something else, ends what its principal has open; who comes in from then on is the
//! edge's to say.

use super::Engine;
use crate::action::Note;
use crate::catalog::Kind;
use crate::clients::{Client, Door, Entry};
use crate::definitions::{Changes, Reload};
use crate::id::{ClientId, DefinitionId, ServerId};
use crate::limits;
use crate::servers::{Alarm, Fate, Life};
use crate::time::Mono;

/// Why calls of a server end that the file does not have any more.
pub(super) const REMOVED: &str = "it was removed from the configuration file";

impl Engine {
    #[cold]
    pub(super) fn reload(&mut self, now: Mono, reload: &Reload) {
        if self.ending.is_some() {
            return;
        }
        let alone = self.config.only_definition();
        let changes = self.config.take_definitions(reload);
        self.take_rights(now, reload);
        // Calls that are counted already are counted to their end.
        self.bounded |= Engine::bounds_calls(&self.config);
        self.selective = self.config.leaves_tools_out();
        self.config.looks_on_itself();
        self.adapts = self.config.adapts();
        self.redefine_servers();
        if changes.is_nothing() {
            return;
        }
        self.tell_what_changed(&changes);
        if let Some(alone) = alone.filter(|_| self.config.only_definition().is_none()) {
            self.tell_who_stays(alone);
        }
        self.merged.forget_views();
        for definition in &changes.added {
            self.definition_comes(now, *definition);
        }
        if planted!(self, RestartsEverything) {
            let all: Vec<ServerId> = self.servers.keys().copied().collect();
            all.into_iter().for_each(|server| self.replaced_now(now, server));
        }
        for definition in &changes.replaced {
            if planted!(self, KeepsOldPrograms) {
                break;
            }
            for server in self.servers.of(*definition) {
                self.servers.is_to_be_replaced(server);
                self.merged.is_another(server);
                self.changes_soon(now, server);
            }
        }
        for definition in &changes.removed {
            self.definition_goes(now, *definition);
        }
        if !(changes.added.is_empty() && changes.removed.is_empty()) || changes.renames {
            self.tell_merged_of_names();
        }
        self.start_eager(now);
    }

    /// What principals may use is what the file says now, and some are not let in any more.
    fn take_rights(&mut self, now: Mono, reload: &Reload) {
        self.config.rights.clone_from(&reload.rights);
        for (name, rights) in &reload.rights {
            self.throttles.principal_is_redefined(name, &rights.bounds);
        }
        if reload.revoked.is_empty() {
            return;
        }
        self.note(Note::Revoked { names: reload.revoked.iter().flatten().cloned().collect() });
        // Some pages of lists are kept for one reader.
        self.merged.forget_views();
        let revoked = |client: &Client| reload.revoked.contains(&client.principal);
        for client in self.clients_that(revoked) {
            if !planted!(self, KeepsRevoked) {
                self.end_revoked(now, client);
            }
        }
    }

    /// Whoever waits for an answer gets one that says that it is over.
    fn end_revoked(&mut self, now: Mono, client: ClientId) {
        match self.clients.get(&client).map(|client| &client.door) {
            Some(Door::Session(_)) => self.end_session(now, client),
            Some(Door::Exchange(stream)) => {
                self.close_stream(*stream);
                self.end_client(now, client);
            }
            // Nobody has a token on our standard streams.
            Some(Door::Line) | None => {}
        }
    }

    /// There was one server, and there are several now. A client that began with the one talks to it alone.
    fn tell_who_stays(&mut self, alone: DefinitionId) {
        let clients = self.clients_that(|client| client.entry == Entry::Server(alone)).len();
        let server = self.config.named().find(|(id, _)| *id == alone).map(|(_, config)| config.name.clone());
        if let Some(server) = server.filter(|_| clients > 0) {
            self.note(Note::StaysAlone { server, clients });
        }
    }

    /// Every server knows what is written of it now; calls hold the rules that they began with.
    fn redefine_servers(&mut self) {
        for (id, definition) in
            self.servers.iter().map(|(id, server)| (*id, server.definition)).collect::<Vec<_>>()
        {
            let Some(config) = self.config.definition(definition).cloned() else { continue };
            let Some(old) = self.servers.get(&id).map(|server| server.config.clone()) else { continue };
            let watched = (old.heartbeat, old.server_idle) != (config.heartbeat, config.server_idle);
            self.throttles.is_redefined(definition, &config.bounds);
            self.servers.is_redefined(id, config);
            if watched {
                self.look_after(self.at, id);
            }
            self.let_unwanted_spare_go(id);
        }
    }

    fn tell_what_changed(&mut self, changes: &Changes) {
        if changes.refused > 0 {
            self.note(Note::TooManyNames { count: changes.refused });
        }
        let names = |ids: &[DefinitionId]| {
            let named = |id: &DefinitionId| self.config.named().find(|(known, _)| known == id);
            ids.iter().filter_map(named).map(|(_, config)| config.name.clone()).collect()
        };
        self.note(Note::Reloaded {
            added: names(&changes.added),
            removed: names(&changes.removed),
            replaced: names(&changes.replaced),
            adjusted: names(&changes.adjusted),
        });
    }

    // What comes.

    fn definition_comes(&mut self, now: Mono, definition: DefinitionId) {
        let merged = |client: &Client| client.entry == Entry::Merged && client.servers().next().is_some();
        for client in self.clients_that(merged) {
            self.meet_another(now, client, definition);
        }
    }

    fn clients_that(&self, fits: impl Fn(&Client) -> bool) -> Vec<ClientId> {
        self.clients.iter().filter(|(_, client)| fits(client)).map(|(id, _)| *id).collect()
    }

    fn tell_merged_of_names(&mut self) {
        for client in self.clients_that(|client| client.entry == Entry::Merged) {
            for kind in [Kind::Tools, Kind::Prompts, Kind::Resources] {
                self.tell_of_lists(client, kind);
            }
        }
    }

    // What changes or goes.

    fn definition_goes(&mut self, now: Mono, definition: DefinitionId) {
        for server in self.servers.of(definition) {
            if planted!(self, ServesRemoved) {
                continue;
            }
            self.servers.is_to_go(server);
            self.merged.has_changed();
            self.gathered_may_go_on(now, server);
            self.changes_soon(now, server);
        }
        // Those that sleep have no server that takes them along.
        let at_it =
            |client: &Client| client.entry == Entry::Server(definition) && client.servers().next().is_none();
        for client in self.clients_that(at_it) {
            self.end_at_removed(now, client);
        }
    }

    /// A server changes when its calls have ended, and at the latest when `drain` is over.
    fn changes_soon(&mut self, now: Mono, id: ServerId) {
        if !self.servers.may_change(id) {
            return;
        }
        let wait = match self.calls.at(id, true).is_empty() {
            true => std::time::Duration::ZERO,
            false => self.config.drain,
        };
        if wait.is_zero() {
            return self.changes_now(now, id);
        }
        self.arm_server(id, Some((Alarm::Drain, now + wait)));
    }

    /// A call has ended at a server that waits for that. It is not changed here: whoever ended the call may have more
    /// to end.
    #[cold]
    pub(super) fn ended_where_it_changes(&mut self, id: ServerId) {
        if self.servers.may_change(id) && self.calls.at(id, true).is_empty() {
            self.arm_server(id, Some((Alarm::Drain, self.at)));
        }
    }

    pub(super) fn changes_now(&mut self, now: Mono, id: ServerId) {
        match self.servers.get(&id).map(|server| server.fate) {
            Some(Fate::Replaced) => self.replaced_now(now, id),
            Some(Fate::Removed) => self.removed_goes(now, id),
            Some(Fate::Stays) | None => {}
        }
    }

    fn replaced_now(&mut self, now: Mono, id: ServerId) {
        let Some(life) = self.servers.get(&id).map(|server| server.life) else { return };
        let open = self.calls.at(id, true);
        match life {
            Life::Starting | Life::Up | Life::Restarting | Life::Reviving(_) => {
                let (server, why) = (self.server_name(id), "its definition has changed");
                self.note(Note::Restarting { server, why, wait: std::time::Duration::ZERO });
                self.stop_for_restart(now, id, limits::END_GRACE);
            }
            // One that would not be started again was another program.
            Life::Resting | Life::Down | Life::Ended(_) | Life::Failed(_) => {
                self.servers.rests(id);
                self.arm_server(id, Some((Alarm::Restart, now)));
            }
            // It will be started as what it is now.
            Life::Stopping | Life::Asleep | Life::Leaving => {}
        }
        self.interrupt(now, id, open, "its definition in the configuration file has changed");
    }

    /// A server that the file does not have any more is let go of, and so is whoever talks to it alone.
    pub(super) fn removed_goes(&mut self, now: Mono, id: ServerId) {
        let calls = [self.calls.at(id, true), self.calls.at(id, false)].concat();
        self.interrupt(now, id, calls, REMOVED);
        self.end_subscriptions(id, REMOVED);
        let Some(server) = self.servers.get(&id) else { return };
        let (definition, clients) = (server.definition, server.clients.clone());
        for client in clients {
            if self.is_merged(client) {
                self.clients.loses_server(client, definition, id);
                self.leave(now, client, id);
            } else {
                self.end_at_removed(now, client);
            }
        }
        if self.servers.get(&id).is_some_and(|server| server.life != Life::Leaving) {
            self.dismiss(now, id);
        }
    }

    fn end_at_removed(&mut self, now: Mono, client: ClientId) {
        match self.clients.get(&client).map(|client| &client.door) {
            Some(Door::Session(_)) => self.end_session(now, client),
            Some(Door::Exchange(_)) => self.end_client(now, client),
            // A line alone has no other address to go to.
            Some(Door::Line) | None => {}
        }
    }
}
