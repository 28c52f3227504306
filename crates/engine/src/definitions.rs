//! What a file says when it is read again, and what that changes.
//!
//! A definition keeps its number for as long as this process runs, also while the file does not have it: a session
//! that began at the address of one server never comes to another.

use crate::config::{Config, Rights, ServerConfig};
use crate::id::DefinitionId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Names of servers that a file may have had since the process began, those it has now among them. One more: that
/// server is left out until outlast is started again.
pub(crate) const NAMES: usize = 10_000;

/// What a file says now.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Reload {
    /// Every server of it, in its order. Of two with one name the first counts.
    #[serde(with = "crate::recording::form")]
    pub servers: Vec<Arc<ServerConfig>>,
    /// What stands between a server's name and that of its tool.
    pub separator: Box<str>,
    /// What each principal may use.
    pub rights: BTreeMap<Box<str>, Rights>,
    /// Principals whose token is not there any more, or is for something else; `None` for those without one, if one is
    /// asked for now. What they have open ends.
    pub revoked: Vec<Option<Box<str>>>,
}

/// What is otherwise than before.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    pub(crate) added: Vec<DefinitionId>,
    pub(crate) removed: Vec<DefinitionId>,
    /// Another program is started or reached under the same name.
    pub(crate) replaced: Vec<DefinitionId>,
    /// The same program, with other limits or another way to be shown.
    pub(crate) adjusted: Vec<DefinitionId>,
    /// Public names may differ.
    pub(crate) renames: bool,
    /// Names that there is no number left for.
    pub(crate) refused: usize,
}

impl Changes {
    pub(crate) fn is_nothing(&self) -> bool {
        let all = [&self.added, &self.removed, &self.replaced, &self.adjusted];
        all.iter().all(|some| some.is_empty()) && !self.renames && self.refused == 0
    }
}

impl Config {
    /// Takes what the file says now in the place of what it said before.
    pub(crate) fn take_definitions(&mut self, reload: &Reload) -> Changes {
        let mut changes = Changes { renames: *self.separator != *reload.separator, ..Changes::default() };
        self.separator.clone_from(&reload.separator);
        self.was_alone = self.only_definition().or(self.was_alone);
        let known: BTreeMap<Box<str>, DefinitionId> =
            self.named().map(|(id, config)| (config.name.clone(), id)).collect();
        let mut kept = std::collections::BTreeSet::new();
        for config in &reload.servers {
            match known.get(&config.name) {
                Some(id) if kept.insert(*id) => self.redefine(*id, config, &mut changes),
                Some(_) => {}
                None => kept.extend(self.define(config, &mut changes)),
            }
        }
        let gone = self.definitions().map(|(id, _)| id).filter(|id| !kept.contains(id));
        changes.removed = gone.collect();
        self.gone.extend(changes.removed.iter().copied());
        changes
    }

    fn define(&mut self, config: &Arc<ServerConfig>, changes: &mut Changes) -> Option<DefinitionId> {
        if self.others.len() + 1 >= NAMES {
            changes.refused += 1;
            return None;
        }
        self.others.push(config.clone());
        let id = DefinitionId(self.others.len() as u16);
        changes.added.push(id);
        Some(id)
    }

    fn redefine(&mut self, id: DefinitionId, new: &Arc<ServerConfig>, changes: &mut Changes) {
        let slot = match usize::from(id.0).checked_sub(1) {
            None => Some(&mut self.server),
            Some(other) => self.others.get_mut(other),
        };
        let Some(slot) = slot else { return };
        let old = std::mem::replace(slot, new.clone());
        if self.gone.remove(&id) {
            return changes.added.push(id);
        }
        changes.renames |= old.exposure != new.exposure;
        if old.program != new.program || old.transport != new.transport {
            changes.replaced.push(id);
        } else if !old.says_the_same(new) {
            changes.adjusted.push(id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(name: &str, program: u64) -> Arc<ServerConfig> {
        Arc::new(ServerConfig { name: name.into(), program, ..ServerConfig::default() })
    }

    fn read(config: &mut Config, servers: &[Arc<ServerConfig>]) -> Changes {
        config.take_definitions(&Reload {
            servers: servers.to_vec(),
            separator: "__".into(),
            ..Reload::default()
        })
    }

    #[test]
    fn a_name_keeps_its_number_also_while_it_is_gone() {
        let mut config = Config { server: server("a", 1), others: vec![server("b", 1)], ..Config::default() };
        let changes = read(&mut config, &[server("b", 2), server("c", 1)]);
        assert_eq!((changes.removed, changes.replaced), (vec![DefinitionId(0)], vec![DefinitionId(1)]));
        assert_eq!(changes.added, [DefinitionId(2)]);
        assert!(config.definition(DefinitionId(0)).is_none());
        let changes = read(&mut config, &[server("a", 1), server("c", 1)]);
        assert_eq!((changes.added, changes.removed), (vec![DefinitionId(0)], vec![DefinitionId(1)]));
        assert_eq!(config.only_definition(), None);
    }

    #[test]
    fn another_line_of_the_file_or_another_place_in_it_changes_nothing() {
        let mut config = Config { server: server("a", 1), others: vec![server("b", 1)], ..Config::default() };
        let moved =
            ServerConfig { source: "[servers.a] in outlast.toml:9".into(), ..(*server("a", 1)).clone() };
        assert!(read(&mut config, &[server("b", 1), Arc::new(moved)]).is_nothing());
        let limited = ServerConfig { restart_intensity: 1, ..(*server("a", 1)).clone() };
        let changes = read(&mut config, &[Arc::new(limited), server("b", 1)]);
        assert_eq!(changes.adjusted, [DefinitionId(0)]);
    }

    #[test]
    fn numbers_do_not_run_over() {
        let mut config = Config::default();
        let many: Vec<_> = (1..NAMES + 9).map(|name| server(&name.to_string(), 1)).collect();
        assert_eq!(read(&mut config, &many).refused, 9);
        assert_eq!(config.others.len() + 1, NAMES);
        // Those that have a number are taken on.
        assert!(read(&mut config, &many[..9]).removed.len() > 9);
        assert_eq!(read(&mut config, &many[..10]).added.len(), 1);
    }
}
