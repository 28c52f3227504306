//! What the documents say is what the program does.
//!
//! A fenced block marked `console` is a transcript: each line that begins with `$ ` is run by a
//! shell that finds `outlast`, and what follows must come out; `…` stands for any text.

#![allow(clippy::disallowed_methods)] // a test may look at its environment

use std::fs::read_to_string;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn page(name: &str) -> String {
    read_to_string(root().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn outlast(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_outlast")).args(arguments).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_reference_is_made_from_the_table() {
    let hint = "docs/settings.md is old; run: cargo run -- help settings > docs/settings.md";
    assert!(page("docs/settings.md") == outlast(&["help", "settings"]), "{hint}");
}

#[test]
fn every_code_has_a_page_and_a_row() {
    use outlast_engine::error::Kind;
    let index = page("docs/errors/README.md");
    for kind in [
        Kind::Timeout,
        Kind::Max,
        Kind::ServerGone,
        Kind::ServerFailed,
        Kind::Overloaded,
        Kind::HttpStatus,
        Kind::NotMcp,
        Kind::TooManySessions,
        Kind::TooManyBytes,
        Kind::TicketUnknown,
        Kind::MessageTooLarge,
        Kind::KeyConflict,
        Kind::Superseded,
    ] {
        for code in [kind.code(false), kind.code(true)] {
            let text = page(&format!("docs/errors/{code}.md"));
            assert!(text.starts_with(&format!("# {code}")), "{code}");
            assert!(index.contains(&format!("[{code}]({code}.md)")), "{code} is not in the index");
        }
        assert!(index.contains(&format!("`{}`", kind.name())), "{} is not in the index", kind.name());
    }
}

/// The table of clients, as a page has it.
#[test]
fn the_clients_are_those_of_the_table() {
    use outlast_engine::profile::PROFILES;
    use outlast_engine::settings::show_duration;
    let word = |known: Option<bool>| match known {
        Some(true) => "yes",
        Some(false) => "no",
        None => "?",
    };
    let mut table =
        "| client | calls itself | waits | progress helps | sends a token | tasks | measured |\n|---|---|--:|---|---|---|---|\n"
            .to_owned();
    for profile in PROFILES {
        let cap = profile.cap.map_or_else(|| "?".to_owned(), show_duration);
        let [resets, token, tasks] = [profile.resets, profile.token, profile.tasks].map(word);
        let verified = word(Some(profile.verified));
        table += &format!(
            "| {} | `{}` | {cap} | {resets} | {token} | {tasks} | {verified} |\n",
            profile.client, profile.name
        );
    }
    assert!(page("docs/hand-off.md").contains(&table), "docs/hand-off.md is old; its table is:\n{table}");
}

#[test]
fn links_between_pages_lead_somewhere() {
    let pages = [
        "README.md",
        "ARCHITECTURE.md",
        "CONTRIBUTING.md",
        "docs/doctor.md",
        "docs/idempotency.md",
        "docs/hand-off.md",
        "docs/install.md",
        "docs/keep.md",
        "docs/remote.md",
        "docs/restarts.md",
        "docs/resume.md",
        "docs/serve.md",
        "docs/tasks-command.md",
        "docs/tasks.md",
        "docs/troubleshooting.md",
        "docs/errors/README.md",
    ];
    for name in pages {
        let text = page(name);
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = root().join(name).parent().unwrap().join(file);
            assert!(link.starts_with("http") || target.exists(), "{name} links to {link}");
            let has = |text: String| {
                let mut headings = text.lines().filter_map(|line| line.strip_prefix("## "));
                headings.any(|heading| heading.to_lowercase().replace(' ', "-") == anchor)
            };
            let found = anchor.is_empty() || read_to_string(&target).is_ok_and(has);
            assert!(found, "{name} links to {link}, which has no such heading");
        }
    }
}

#[test]
fn transcripts_are_true() {
    let mut played = 0;
    for name in [
        "README.md",
        "docs/doctor.md",
        "docs/keep.md",
        "docs/hand-off.md",
        "docs/remote.md",
        "docs/serve.md",
        "docs/tasks-command.md",
        "docs/tasks.md",
        "docs/troubleshooting.md",
    ] {
        for block in page(name).split("```console\n").skip(1) {
            let block = block.split("```").next().unwrap();
            for (command, expected) in commands(block) {
                played += 1;
                let actual = shell(&command);
                assert!(
                    agrees(&expected, &actual),
                    "{name}: $ {command}\nexpected:\n{expected}\nactual:\n{actual}"
                );
            }
        }
    }
    assert!(played >= 2, "only {played} commands were found");
}

fn commands(block: &str) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    for line in block.lines() {
        match (line.strip_prefix("$ "), found.last_mut()) {
            (Some(command), _) => found.push((command.to_owned(), String::new())),
            (None, Some((_, output))) => *output += &format!("{line}\n"),
            (None, None) => {}
        }
    }
    found
}

fn shell(command: &str) -> String {
    let folder = Path::new(env!("CARGO_BIN_EXE_outlast")).parent().unwrap();
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap_or_default());
    let output = Command::new("sh").args(["-c", command]).env("PATH", path).output().unwrap();
    String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
}

/// The parts between `…` in order, the first at the beginning and the last at the end.
fn agrees(expected: &str, actual: &str) -> bool {
    let mut parts = expected.trim_end().split('…');
    let Some(mut rest) = parts.next().and_then(|first| actual.strip_prefix(first)) else { return false };
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    expected.trim_end().ends_with('…') || rest.trim().is_empty()
}
