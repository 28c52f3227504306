//! What the engine may depend on, and what it may not touch.

use std::fs::{read_dir, read_to_string};
use std::path::{Path, PathBuf};

const HERE: &str = env!("CARGO_MANIFEST_DIR");

#[test]
fn the_engine_depends_on_seven_crates() {
    let manifest = read_to_string(Path::new(HERE).join("Cargo.toml")).unwrap();
    let section = manifest.split("[dependencies]").nth(1).unwrap().split("\n[").next().unwrap();
    let names: Vec<&str> = section
        .lines()
        .filter_map(|line| line.split(['.', ' ', '=']).next())
        .filter(|name| !name.is_empty())
        .collect();
    assert_eq!(names, ["bytes", "libm", "memchr", "serde", "serde_json", "simdutf8", "thiserror"]);
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
        // What counts bounds for tests; the engine never reads it, and a release build never writes it.
        let counts = path.ends_with("reached.rs") && line == "thread_local! {";
        for word in banned {
            assert!(!line.contains(word) || counts, "{path}: {line}");
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

/// Expected lines of scenarios of which only the mark is stated: each hides what may go wrong there. Fewer is
/// better; more needs a reason.
const BARE: usize = 12;

#[test]
fn what_scenarios_leave_open_is_counted() {
    let bare = |line: &str| {
        let line = line.trim();
        let mark = ["<<", ">>", "..", "!!"].iter().find_map(|mark| line.strip_prefix(mark));
        // `!! warn: …` and `<< 3: …` say no more.
        let open = mark.and_then(|rest| rest.trim().strip_suffix('…'));
        open.is_some_and(|head| head.chars().all(|c| c.is_ascii_alphanumeric() || " :".contains(c)))
    };
    let count = |path: PathBuf| read_to_string(path).unwrap().lines().filter(|line| bare(line)).count();
    let files = read_dir(Path::new(HERE).join("tests/engine")).unwrap().map(|entry| entry.unwrap().path());
    let found: usize = files.filter(|path| path.extension().is_some_and(|end| end == "rs")).map(count).sum();
    assert_eq!(found, BARE, "lines of scenarios that state nothing");
}
