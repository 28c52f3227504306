//! Notes about calls that took longer than a second: a ring.

use super::error::Stop;
use super::{Page, int};
use outlast_engine::store::{CallNote, Done};
use rusqlite::params;

impl Page<'_> {
    pub fn note_calls(&self, notes: &[CallNote]) -> Result<Done, Stop> {
        let mut insert = self.sql.prepare_cached(
            "INSERT INTO calls (server, method, tool, outcome, began, took, asked, answered)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        )?;
        for note in notes {
            insert.execute(params![
                &*note.server,
                &*note.method,
                &*note.tool,
                &*note.outcome,
                int(note.began.0),
                int(note.took_ms),
                int(note.asked),
                int(note.answered),
            ])?;
        }
        // Numbers only count up and only the oldest go, so they say how many there are.
        let mut delete = self
            .sql
            .prepare_cached("DELETE FROM calls WHERE number <= (SELECT max(number) FROM calls) - ?1")?;
        delete.execute([int(self.bounds.calls)])?;
        Ok(Done::Kept)
    }
}
