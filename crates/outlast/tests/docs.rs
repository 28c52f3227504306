//! What the documents say is what the program does.
//!
//! A fenced block marked `console` is a transcript: its lines that begin with `$ ` are run by one
//! shell that finds `outlast`, in an empty folder, and what follows each must come out; `…` stands for any
//! text. Where a block speaks of `$URL`, that is the address of an `outlast serve` before the demo's server.

#![allow(clippy::disallowed_methods)] // a test may look at its environment

use std::fs::read_to_string;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

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
fn the_schema_is_made_from_the_table() {
    let hint = "docs/outlast.schema.json is old; run: cargo run -- help schema > docs/outlast.schema.json";
    assert!(page("docs/outlast.schema.json") == outlast(&["help", "schema"]), "{hint}");
}

/// `outlast help CODE` prints the pages that are in the program, a browser shows those in `docs`.
#[test]
fn the_pages_about_errors_are_those_in_the_program() {
    let own = root().join("crates/outlast/src/cli/help/errors");
    let names = |folder: PathBuf| -> Vec<String> {
        let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<String> = entries.map(|name| name.into_string().unwrap()).collect();
        names.retain(|name| name != "README.md");
        names.sort();
        names
    };
    assert_eq!(names(own.clone()), names(root().join("docs/errors")));
    for name in names(own.clone()) {
        let hint = format!("write: cp {}/{name} docs/errors/", own.display());
        let code = name.strip_suffix(".md").unwrap();
        assert!(read_to_string(own.join(&name)).unwrap() == page(&format!("docs/errors/{name}")), "{hint}");
        assert!(outlast(&["help", code]).starts_with(code), "outlast help {code}");
    }
}

#[test]
fn the_pages_about_topics_are_those_in_the_program() {
    let own = root().join("crates/outlast/src/cli/help/topics");
    for entry in std::fs::read_dir(&own).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let hint = format!("write: cp {}/{name} docs/", own.display());
        assert!(read_to_string(own.join(&name)).unwrap() == page(&format!("docs/{name}")), "{hint}");
    }
}

#[test]
fn every_code_has_a_page_and_a_row() {
    use outlast_engine::error::Kind;
    let index = page("docs/errors/README.md");
    for kind in Kind::ALL {
        for code in [kind.code(false), kind.code(true)] {
            let text = page(&format!("docs/errors/{code}.md"));
            assert!(text.starts_with(&format!("# {code}")), "{code}");
            assert!(index.contains(&format!("[{code}]({code}.md)")), "{code} is not in the index");
        }
        assert!(index.contains(&format!("`{}`", kind.name())), "{} is not in the index", kind.name());
    }
}

/// Whoever writes a row about a client finds every key explained.
#[test]
fn every_key_of_a_client_profile_is_explained() {
    let page = page("docs/hand-off.md");
    for key in outlast_engine::profile::KEYS.split(", ").filter(|key| *key != "measured") {
        assert!(page.contains(&format!("| `{key}` |")), "docs/hand-off.md does not explain `{key}`");
    }
}

/// What a link to a heading says: small letters, and a hyphen for each blank.
fn anchor_of(line: &str) -> Option<String> {
    let heading = line.strip_prefix("## ")?.to_lowercase();
    let letters = heading.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    Some(letters.map(|c| if c == ' ' { '-' } else { c }).collect())
}

#[test]
fn links_between_pages_lead_somewhere() {
    let pages = [
        "README.md",
        "ARCHITECTURE.md",
        "CONTRIBUTING.md",
        "docs/advise.md",
        "docs/bench.md",
        "docs/bounds.md",
        "docs/callbacks.md",
        "docs/clients.md",
        "docs/doctor.md",
        "docs/exit-codes.md",
        "docs/file.md",
        "docs/files.md",
        "docs/idempotency.md",
        "docs/hand-off.md",
        "docs/holds.md",
        "docs/install.md",
        "docs/keep.md",
        "docs/many-servers.md",
        "docs/metrics.md",
        "docs/on-demand.md",
        "docs/output.md",
        "docs/platforms.md",
        "docs/reload.md",
        "docs/remote.md",
        "docs/replay.md",
        "docs/restarts.md",
        "docs/running.md",
        "docs/resume.md",
        "docs/running.md",
        "docs/serve.md",
        "docs/tasks-command.md",
        "docs/tasks.md",
        "docs/traces.md",
        "docs/troubleshooting.md",
        "docs/errors/README.md",
    ];
    for name in pages {
        let text = page(name);
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let own = root().join(name);
            let target = if file.is_empty() { own } else { own.parent().unwrap().join(file) };
            assert!(link.starts_with("http") || target.exists(), "{name} links to {link}");
            let headed = |text: String| text.lines().any(|line| anchor_of(line).as_deref() == Some(anchor));
            let found = anchor.is_empty() || read_to_string(&target).is_ok_and(headed);
            assert!(found, "{name} links to {link}, which has no such heading");
        }
    }
}

/// A file that a reader copies is one that outlast takes, and has the limits that the page speaks of.
#[test]
fn files_that_pages_show_are_taken() {
    let mut checked = 0;
    for name in [
        "README.md",
        "docs/bounds.md",
        "docs/file.md",
        "docs/many-servers.md",
        "docs/on-demand.md",
        "docs/traces.md",
    ] {
        for block in page(name).split("```toml\n").skip(1) {
            let block = block.split("```").next().unwrap();
            let folder = tempfile::tempdir().unwrap();
            std::fs::write(folder.path().join("outlast.toml"), block).unwrap();
            let output = Command::new(env!("CARGO_BIN_EXE_outlast"))
                .args(["check", "outlast.toml"])
                .env("CI_TOKEN", "x")
                .current_dir(folder.path())
                .output()
                .unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success() && !said.contains("error:"), "{name}: {block}\n{said}");
            checked += 1;
        }
    }
    assert!(checked >= 3, "only {checked} files were found");
}

/// The three tiers of limits that the first page promises.
#[test]
fn the_file_of_the_first_page_has_three_tiers_of_limits() {
    let readme = page("README.md");
    let block = readme.split("```toml\n").nth(1).unwrap().split("```").next().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("outlast.toml");
    std::fs::write(&path, block).unwrap();
    let path = path.to_str().unwrap();
    let tiers = [
        ("5s", &["list_files", "get_status", "read_file"][..]),
        ("30s", &["search_codebase", "query_database", "anything_else"]),
        ("5m", &["run_build", "generate_report", "run_tests"]),
    ];
    for (limit, tool) in tiers.iter().flat_map(|(limit, tools)| tools.iter().map(move |tool| (limit, tool))) {
        for server in ["files", "build"] {
            let said = outlast(&["explain", server, tool, "--config", path, "--json"]);
            let said: serde_json::Value = serde_json::from_str(&said).unwrap();
            let limits = said["limits"].as_array().unwrap();
            let timeout = limits.iter().find(|row| row["setting"] == "timeout").unwrap();
            assert_eq!(timeout["value"], **limit, "{server} {tool}");
        }
    }
}

#[test]
fn transcripts_are_true() {
    let mut played = 0;
    for name in [
        "README.md",
        "docs/advise.md",
        "docs/bounds.md",
        "docs/callbacks.md",
        "docs/clients.md",
        "docs/doctor.md",
        "docs/exit-codes.md",
        "docs/file.md",
        "docs/files.md",
        "docs/keep.md",
        "docs/hand-off.md",
        "docs/holds.md",
        "docs/many-servers.md",
        "docs/on-demand.md",
        "docs/output.md",
        "docs/platforms.md",
        "docs/reload.md",
        "docs/remote.md",
        "docs/replay.md",
        "docs/running.md",
        "docs/serve.md",
        "docs/tasks-command.md",
        "docs/tasks.md",
        "docs/traces.md",
        "docs/troubleshooting.md",
    ] {
        for block in page(name).split("```console\n").skip(1) {
            let block = block.split("```").next().unwrap();
            let commands = commands(block);
            for ((command, expected), actual) in commands.iter().zip(play(&commands)) {
                played += 1;
                assert!(
                    agrees(expected, &actual),
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

/// A line that no command prints.
const END: &str = "--- the end of a command ---";

/// Runs the commands of a block; what each of them prints.
fn play(commands: &[(String, String)]) -> Vec<String> {
    let script: String = commands.iter().map(|(command, _)| format!("{command}\necho '{END}'\n")).collect();
    let served = ["$URL", "${URL"].iter().any(|url| script.contains(url)).then(Served::start);
    let folder = tempfile::tempdir().unwrap();
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("exec 2>&1\n{script}")]).env("PATH", path()).current_dir(folder.path());
    if let Some(served) = &served {
        shell.env("URL", &served.url);
    }
    let output = shell.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let parts: Vec<String> = text.split(&format!("{END}\n")).map(str::to_owned).collect();
    assert_eq!(parts.len(), commands.len() + 1, "a command ended the shell: {text}");
    parts
}

fn path() -> String {
    let folder = Path::new(env!("CARGO_BIN_EXE_outlast")).parent().unwrap();
    format!("{}:{}", folder.display(), std::env::var("PATH").unwrap_or_default())
}

/// `outlast serve` before the demo's server, as long as it is held.
struct Served {
    child: Child,
    url: String,
}

impl Served {
    fn start() -> Served {
        let mut child = Command::new(env!("CARGO_BIN_EXE_outlast"))
            .args(["serve", "--listen", "127.0.0.1:0", "--state", "none", "--", "outlast", "demo-server"])
            .env("PATH", path())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
        let url = lines.find_map(|line| Some(line.split_once("listening on ")?.1.to_owned())).unwrap();
        // Whatever else it says must not stop it.
        std::thread::spawn(move || lines.for_each(drop));
        Served { child, url }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
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
