//! What is known of one client, and the file of all: `tests/clients/measured.json`.

use std::path::PathBuf;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use super::list::Client;
use super::sources;

/// The file. Rows are put in by name, so that one client can be measured again alone.
#[derive(Debug, Default, Deserialize, Serialize)]
pub struct Measured {
    pub clients: Vec<Row>,
}

/// One client. Times are milliseconds; a limit that is absent was not seen for as long as was watched.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct Row {
    pub name: String,
    pub package: String,
    pub version: String,
    pub kind: String,
    pub date: String,
    /// Whether the run had a network of its own with nothing but loopback.
    pub offline: bool,
    /// Why there are no figures.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
    /// `clientInfo`.
    pub sends: Sends,
    pub asks_for: Option<String>,
    pub token: bool,
    pub capabilities: Vec<String>,
    pub silent_limit_ms: Option<u64>,
    pub silent_observed_up_to_ms: u64,
    pub progress_moves: Option<bool>,
    /// The age at which a call that reports progress was given up.
    pub progress_total_ms: Option<u64>,
    pub progress_observed_up_to_ms: Option<u64>,
    /// `notification`, `eof` or `none`.
    pub cancels: Option<String>,
    /// Whether it also cancels calls that were answered.
    pub cancels_answered: bool,
    /// How often it makes the call again by itself after its limit.
    pub repeats: u64,
    pub start_limit_ms: Option<u64>,
    pub start_observed_up_to_ms: u64,
    /// The age of a server that has not answered when the first turn begins without its tools.
    pub starts_without_ms: Option<u64>,
    pub list_limit_ms: Option<u64>,
    pub list_observed_up_to_ms: u64,
    pub list_changed: bool,
    pub tasks: bool,
    pub elicitation: bool,
    pub offered_as: Option<String>,
    pub behind_search: bool,
    /// The same call without outlast.
    pub direct: Option<Call>,
    pub through_outlast: Option<Call>,
    pub doctor: Option<Doctor>,
    pub notes: String,
}

/// As the client calls itself.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct Sends {
    pub name: Option<String>,
    pub version: Option<String>,
}

/// A slow call and what came of it.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct Call {
    pub flags: Vec<String>,
    pub call_ms: u64,
    pub outcome: String,
    pub text: String,
    /// `plain`, `keep-alive` or `hand-off`.
    pub how: String,
}

/// What `outlast doctor client` found of the same client.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default)]
pub struct Doctor {
    pub cap: String,
    pub resets_on_progress: String,
    /// Whether that is what the probe found.
    pub agrees: bool,
}

fn path() -> PathBuf {
    sources().join("measured.json")
}

impl Measured {
    pub fn read() -> Result<Self> {
        match std::fs::read_to_string(path()) {
            Ok(text) => serde_json::from_str(&text).context("cannot read measured.json"),
            Err(_) => Ok(Self::default()),
        }
    }

    pub fn write(&self) -> Result<()> {
        Ok(std::fs::write(path(), serde_json::to_string_pretty(self)? + "\n")?)
    }

    /// Puts the rows in the order of the list, with its notes: both are written by people.
    pub fn annotate(&mut self, list: &[Client]) {
        let place = |row: &Row| list.iter().position(|client| client.name == row.name);
        self.clients.sort_by_key(place);
        for row in &mut self.clients {
            row.notes = place(row).map(|at| list[at].notes.clone()).unwrap_or_default();
        }
    }

    /// Puts the row in the place of the one with its name. A failure never replaces figures of the same version.
    pub fn put(&mut self, row: Row) {
        match self.clients.iter_mut().find(|known| known.name == row.name) {
            Some(known) if row.failed.is_some() && known.failed.is_none() && known.version == row.version => {
            }
            Some(known) => *known = row,
            None => self.clients.push(row),
        }
    }
}

impl Row {
    /// One line for a person who waits.
    pub fn summary(&self) -> String {
        if let Some(why) = &self.failed {
            return format!("{}: not measured: {why}", self.name);
        }
        let call =
            |call: &Option<Call>| call.as_ref().map_or("not tried".to_owned(), |it| it.outcome.clone());
        let limit = self.silent_limit_ms.map_or("no limit seen".to_owned(), |ms| format!("{ms} ms"));
        let moves = self.progress_moves.map_or("?", |moves| if moves { "yes" } else { "no" });
        let (direct, through) = (call(&self.direct), call(&self.through_outlast));
        format!("{}: silent {limit}, progress {moves}, direct {direct}, through outlast {through}", self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(version: &str, limit: u64, failed: bool) -> Row {
        Row {
            name: "x".to_owned(),
            version: version.to_owned(),
            silent_limit_ms: Some(limit),
            failed: failed.then(|| "why".to_owned()),
            ..Row::default()
        }
    }

    #[test]
    fn a_row_replaces_the_one_of_its_name_and_no_other() {
        let mut measured = Measured::default();
        measured.put(row("1", 1, false));
        measured.put(Row { name: "y".to_owned(), ..Row::default() });
        measured.put(row("1", 2, false));
        assert_eq!(measured.clients.len(), 2);
        assert_eq!(measured.clients[0].silent_limit_ms, Some(2));
    }

    #[test]
    fn a_failed_run_does_not_throw_figures_of_the_same_version_away() {
        let mut measured = Measured::default();
        measured.put(row("1", 1, false));
        measured.put(row("1", 0, true));
        assert_eq!(measured.clients[0].silent_limit_ms, Some(1));
        measured.put(row("2", 0, true));
        assert!(measured.clients[0].failed.is_some());
    }
}
