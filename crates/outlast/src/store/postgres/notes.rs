//! Notes about calls that took longer than a second: a ring.

use super::statement::Statement;
use super::writes::{Quick, kept};
use outlast_engine::store::CallNote;

/// Numbers only count up and only the oldest go, so they say how many there are, at most.
const NOTE: &str = "
WITH made AS (
    INSERT INTO outlast.calls (server, method, tool, outcome, began, took, asked, answered)
    SELECT * FROM unnest($1::bytea[], $2::bytea[], $3::bytea[], $4::bytea[], $5::bigint[], $6::bigint[], $7::bigint[],
        $8::bigint[]) RETURNING number)
DELETE FROM outlast.calls WHERE number <= (SELECT max(number) FROM made) - $9";

pub fn note_calls<'a>(notes: &'a [CallNote], most: u64) -> Quick<'a> {
    let texts = |of: fn(&'a CallNote) -> &'a str| notes.iter().map(move |note| of(note).as_bytes());
    let statement = Statement::new(NOTE)
        .blobs(texts(|note| &note.server))
        .blobs(texts(|note| &note.method))
        .blobs(texts(|note| &note.tool))
        .blobs(texts(|note| &note.outcome))
        .ints(notes.iter().map(|note| note.began.0))
        .ints(notes.iter().map(|note| note.took_ms))
        .ints(notes.iter().map(|note| note.asked))
        .ints(notes.iter().map(|note| note.answered))
        .int(most);
    Quick::uncounted(statement, kept)
}
