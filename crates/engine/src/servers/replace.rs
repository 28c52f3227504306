//! What a file that was read again makes of servers that run.

use super::{Alarm, Fate, Life, Servers};
use crate::config::ServerConfig;
use crate::event::StartFailure;
use crate::id::{DefinitionId, ServerId};
use std::sync::Arc;

impl Servers {
    /// Every server of a definition.
    pub(crate) fn of(&self, definition: DefinitionId) -> Vec<ServerId> {
        self.iter().filter(|(_, server)| server.definition == definition).map(|(id, _)| *id).collect()
    }

    /// What is written of a server has changed. Calls that have begun keep what they began with.
    pub(crate) fn is_redefined(&mut self, id: ServerId, config: Arc<ServerConfig>) {
        if let Some(server) = self.at(id) {
            server.config = config;
        }
    }

    /// Another program is to take its place.
    pub(crate) fn is_to_be_replaced(&mut self, id: ServerId) {
        let Some(server) = self.at(id).filter(|server| server.life != Life::Leaving) else { return };
        server.fate = Fate::Replaced;
        server.forgets_failures();
    }

    /// It is to go, and nobody new is to get it.
    pub(crate) fn is_to_go(&mut self, id: ServerId) {
        let Some(server) = self.at(id) else { return };
        server.fate = Fate::Removed;
        server.spare = false;
        self.share_no_more(id);
    }

    /// Whether nothing but time keeps it from changing: it is not about to end anyway.
    pub(crate) fn may_change(&self, id: ServerId) -> bool {
        let Some(server) = self.get(&id) else { return false };
        let ends = matches!(server.alarm, Some(Alarm::Lingers | Alarm::Kill | Alarm::LastOutput));
        server.fate != Fate::Stays && !ends && server.life != Life::Leaving
    }

    /// A command that has never run and is not there will not be there in two seconds either.
    pub(crate) fn start_is_hopeless(&mut self, id: ServerId, why: StartFailure) {
        let hopeless = matches!(why, StartFailure::NotFound | StartFailure::NotExecutable);
        if let Some(server) = self.at(id).filter(|server| hopeless && server.never_ran()) {
            server.gives_up();
        }
    }
}
