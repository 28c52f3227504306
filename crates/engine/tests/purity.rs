//! What the engine may depend on, and what it may not touch.

use std::fs::{read_dir, read_to_string};
use std::path::Path;

const HERE: &str = env!("CARGO_MANIFEST_DIR");

#[test]
fn the_engine_depends_on_six_crates() {
    let manifest = read_to_string(Path::new(HERE).join("Cargo.toml")).unwrap();
    let section = manifest.split("[dependencies]").nth(1).unwrap().split("\n[").next().unwrap();
    let names: Vec<&str> = section
        .lines()
        .filter_map(|line| line.split(['.', ' ', '=']).next())
        .filter(|name| !name.is_empty())
        .collect();
    assert_eq!(names, ["bytes", "memchr", "serde", "serde_json", "simdutf8", "thiserror"]);
}

/// The compiler guards the crate's border; this guards what std would let through.
#[test]
fn the_engine_reads_no_clock_file_or_environment() {
    let banned = [
        "Instant::",
        "SystemTime",
        "std::fs",
        "std::net",
        "std::env",
        "std::thread",
        "std::process",
        "println!",
        "async fn",
        "RandomState",
        "static mut",
        "thread_local!",
    ];
    for_each_line_of_code(|path, line| {
        for word in banned {
            assert!(!line.contains(word), "{path}: {line}");
        }
    });
}

/// Calls what is left of every file without comments and tests.
fn for_each_line_of_code(look: impl Fn(&str, &str)) {
    let mut files = vec![Path::new(HERE).join("src")];
    let mut seen = 0;
    while let Some(path) = files.pop() {
        if path.is_dir() {
            files.extend(read_dir(path).unwrap().map(|entry| entry.unwrap().path()));
            continue;
        }
        seen += 1;
        let text = read_to_string(&path).unwrap();
        let code = text.split("#[cfg(test)]").next().unwrap().lines();
        code.filter(|line| !line.trim_start().starts_with("//"))
            .for_each(|line| look(&path.display().to_string(), line));
    }
    assert!(seen > 20, "only {seen} files were looked at");
}

/// What an id names may be gone when an event comes: a lookup gives nothing then, and never ends the process.
/// The engine's own maps have no index; this guards those of std, and what else panics.
#[test]
fn nothing_is_looked_up_by_index() {
    let maps = [
        "servers",
        "clients",
        "calls",
        "streams",
        "tasks",
        "attempts",
        "subscriptions",
        "asks",
        "sessions",
        "exchanges",
        "tickets",
        "joints",
        "pending",
        "lookups",
        "memories",
        "in_flight",
        "shared",
        "own",
        "joined",
        "batches",
    ];
    let banned = [".unwrap()", ".expect(\"", "panic!(", "unreachable!(", "todo!("];
    for_each_line_of_code(|path, line| {
        for map in maps {
            assert!(!line.contains(&format!(".{map}[")), "{path}: {line}");
        }
        for word in banned {
            assert!(!line.contains(word), "{path}: {line}");
        }
    });
}

/// A table that nobody checks is a story.
#[test]
fn every_row_of_the_two_tables_has_a_test_of_its_name() {
    for (source, tests) in
        [("src/calls/call.rs", "tests/call.rs"), ("src/servers/server.rs", "tests/server.rs")]
    {
        let read = |path: &str| read_to_string(Path::new(HERE).join(path)).unwrap();
        let (table, tests) = (read(source), read(tests));
        let rows: Vec<&str> = table
            .lines()
            .filter_map(|line| line.strip_prefix("//! | `")?.split_once('`').map(|(name, _)| name))
            .collect();
        assert!(rows.len() > 10, "{source} has only {} rows", rows.len());
        for row in rows {
            assert!(tests.contains(&format!("fn {row}()")), "row `{row}` of {source} has no test");
        }
    }
}
