//! The tables in the headers of the engine: every row is played, not only named.

use crate::script;

/// Names the tests of a table and plays them: `play_table!("../src/calls/call.rs": row, row)`. Fails if the table has
/// another row, or a row plays nothing.
#[macro_export]
macro_rules! play_table {
    ($source:literal: $($row:ident),+ $(,)?) => {
        $crate::table::play(include_str!($source), &[$((stringify!($row), $row as fn())),+])
    };
}

/// Plays every row of a table, in its order.
pub fn play(source: &str, rows: &[(&str, fn())]) {
    let row = |line: &str| Some(line.strip_prefix("//! | `")?.split_once('`')?.0.to_owned());
    let table: Vec<String> = source.lines().filter_map(row).collect();
    let names: Vec<&str> = rows.iter().map(|(name, _)| *name).collect();
    assert_eq!(table, names, "the table and what is played of it differ");
    for (name, play) in rows {
        let before = script::played();
        play();
        assert!(script::played() > before, "`{name}` plays nothing");
    }
}
