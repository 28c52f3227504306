//! What has to be installed before the tests can run: stated here, checked here.
//!
//! Each tool has one sentence that says what it is for and where Debian has it. A part of the tests names the
//! tools that it needs and all of them are looked for before the first part begins: a run of twenty minutes
//! does not end with "curl: not found".
//!
//! Not here: packages that the tests install by themselves, below `target/` (`interop/setup.rs`).

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// A program that must be there.
struct Tool {
    name: &'static str,
    /// Succeeds if the tool is usable; a version is read from what it prints.
    probe: &'static [&'static str],
    /// Major and minor version.
    least: Option<(u32, u32)>,
    /// What it is for, and the package that has it.
    why: &'static str,
}

const TOOLS: [Tool; 18] = [
    Tool {
        name: "rustc",
        probe: &["rustc", "--version"],
        least: Some(RUST),
        why: "compiles everything (`rustup update stable`)",
    },
    Tool {
        name: "cc",
        probe: &["cc", "--version"],
        least: None,
        why: "compiles SQLite and links every program (Debian: gcc libc6-dev)",
    },
    Tool { name: "c++", probe: &["c++", "--version"], least: None, why: "compiles libFuzzer (Debian: g++)" },
    Tool {
        name: "rustfmt",
        probe: &["rustfmt", "--version"],
        least: None,
        why: "checks the formatting (`rustup component add rustfmt`)",
    },
    Tool {
        name: "clippy",
        probe: &["cargo-clippy", "--version"],
        least: None,
        why: "checks the code (`rustup component add clippy`)",
    },
    Tool {
        name: "node",
        probe: &["node", "--version"],
        least: Some((20, 0)),
        why: "runs the TypeScript SDKs, the schema validator and the conformance suite (Debian: nodejs)",
    },
    Tool {
        name: "npm",
        probe: &["npm", "--version"],
        least: None,
        why: "installs the TypeScript SDKs below target/ (Debian: npm)",
    },
    Tool {
        name: "python3",
        probe: &["python3", "--version"],
        least: Some((3, 11)),
        why: "runs the Python SDKs (Debian: python3)",
    },
    Tool {
        name: "venv",
        probe: &["python3", "-c", "import ensurepip, venv"],
        least: None,
        why: "keeps the Python SDKs below target/ (Debian: python3-venv)",
    },
    Tool {
        name: "curl",
        probe: &["curl", "--version"],
        least: None,
        why: "replays the commands that the documentation shows (Debian: curl)",
    },
    Tool {
        name: "setpriv",
        probe: &["setpriv", "--version"],
        least: None,
        why: "takes rights away from outlast to see a store that cannot be written (Debian: util-linux)",
    },
    Tool {
        name: "prlimit",
        probe: &["prlimit", "--version"],
        least: None,
        why: "gives outlast a full disk and room again (Debian: util-linux)",
    },
    Tool {
        name: "postgresql",
        probe: &["sh", "-c", "ls /usr/lib/postgresql/*/bin/postgres"],
        least: None,
        why: "is the database that replicas share (Debian: postgresql)",
    },
    Tool {
        name: "pgbouncer",
        probe: &["pgbouncer", "--version"],
        least: None,
        why: "is the pool before that database (Debian: pgbouncer)",
    },
    Tool {
        name: "nginx",
        probe: &["nginx", "-v"],
        least: None,
        why: "balances replicas (Debian: nginx-light)",
    },
    Tool {
        name: "promtool",
        probe: &["promtool", "--version"],
        least: None,
        why: "reads the metrics as Prometheus does (Debian: prometheus)",
    },
    Tool {
        name: "chromium",
        probe: &["sh", "-c", BROWSER],
        least: None,
        why: "shows the dashboard (Debian: chromium; CHROMIUM names another)",
    },
    Tool {
        name: "systemd",
        probe: &["systemd-socket-activate", "--version"],
        least: None,
        why: "starts outlast for the first client, and reads the units (Debian: systemd)",
    },
];

/// What the tests go without where it is missing.
const OPTIONAL: [Tool; 2] = [
    Tool {
        name: "valgrind",
        probe: &["valgrind", "--version"],
        least: None,
        why: "counts instructions in the benchmark, which leaves that out without it (Debian: valgrind)",
    },
    Tool {
        name: "llvm-22",
        probe: &["sh", "-c", "ls /usr/lib/llvm-22/bin/llvm-cov"],
        least: None,
        why: "reads what `cargo xtask coverage` has counted (Debian: llvm-22)",
    },
];

/// Prints the path of a browser: the one that is named, or the first that systems have.
const BROWSER: &str = "for path in \"$CHROMIUM\" /usr/bin/chromium /usr/bin/chromium-browser /usr/bin/google-chrome \
                       /snap/bin/chromium; do [ -x \"$path\" ] && echo \"$path\" && exit; done; exit 1";

/// What `Cargo.toml` asks for; cargo itself refuses an older compiler.
const RUST: (u32, u32) = (1, 95);

/// `cargo xtask needs`: every tool, and whether it is there.
pub fn run() -> Result<()> {
    for (tools, missing) in [(&TOOLS[..], "MISSING"), (&OPTIONAL[..], "without")] {
        for tool in tools {
            println!("{:<8} {}", if tool.fault().is_none() { "ok" } else { missing }, tool.sentence());
        }
    }
    require(&TOOLS.each_ref().map(|tool| tool.name))
}

/// The browser that shows the dashboard.
pub fn browser() -> Result<PathBuf> {
    require(&["chromium"])?;
    let path = output(&["sh", "-c", BROWSER]).context("chromium is gone")?;
    Ok(path.trim().into())
}

/// Whether a tool that is not needed is there.
pub fn has(name: &str) -> bool {
    OPTIONAL.iter().any(|tool| tool.name == name && tool.fault().is_none())
}

/// An error with one sentence for each of the named tools that is missing or too old.
pub fn require(names: &[&str]) -> Result<()> {
    install(names);
    let named = TOOLS.iter().filter(|tool| names.contains(&tool.name));
    let faults: Vec<String> = named.filter_map(Tool::fault).collect();
    if faults.is_empty() {
        return Ok(());
    }
    bail!("not everything that is needed is installed:\n  {}", faults.join("\n  "))
}

/// Installs what is no developer's everyday tool where root runs this and it is missing; whatever comes of it is seen
/// afterwards.
fn install(names: &[&str]) {
    let debian = [
        ("postgresql", "postgresql"),
        ("pgbouncer", "pgbouncer"),
        ("nginx", "nginx-light"),
        ("promtool", "prometheus"),
        ("chromium", "chromium"),
        ("systemd", "systemd"),
    ];
    let missing = |name: &str| TOOLS.iter().any(|tool| tool.name == name && tool.fault().is_some());
    let wanted = debian.iter().filter(|(name, _)| names.contains(name) && missing(name));
    let packages: Vec<&str> = wanted.map(|(_, package)| *package).collect();
    let root = output(&["id", "-u"]).is_some_and(|id| id.trim() == "0");
    if root && !packages.is_empty() {
        eprintln!("installing {}", packages.join(", "));
        output(&[&["apt-get", "install", "-y", "-q", "--no-install-recommends"], &packages[..]].concat());
    }
}

impl Tool {
    /// `python3 3.11 or newer: runs …`.
    fn sentence(&self) -> String {
        let version = self.least.map(|least| match least {
            (major, 0) => format!(" {major} or newer"),
            (major, minor) => format!(" {major}.{minor} or newer"),
        });
        format!("{}{}: {}", self.name, version.unwrap_or_default(), self.why)
    }

    /// What is wrong with the installed one, if anything is.
    fn fault(&self) -> Option<String> {
        let Some(said) = output(self.probe) else {
            return Some(format!("{}; it was not found", self.sentence()));
        };
        let least = self.least?;
        let found = version(&said)?;
        (found < least).then(|| format!("{}; {}.{} is installed", self.sentence(), found.0, found.1))
    }
}

fn output(words: &[&str]) -> Option<String> {
    let (program, arguments) = words.split_first()?;
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The first `MAJOR.MINOR` in a text.
fn version(text: &str) -> Option<(u32, u32)> {
    text.split(|c: char| !c.is_ascii_digit() && c != '.').find_map(|word| {
        let mut numbers = word.split('.').map_while(|number| number.parse().ok());
        Some((numbers.next()?, numbers.next()?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell::root;

    #[test]
    fn the_first_version_in_a_text_is_found() {
        assert_eq!(version("v20.20.2\n"), Some((20, 20)));
        assert_eq!(version("Python 3.11.7"), Some((3, 11)));
        assert_eq!(version("rustc 1.95.0 (f2d3ce0bd 2026-03-21)"), Some((1, 95)));
        assert_eq!(version("no version"), None);
    }

    #[test]
    fn a_tool_that_is_too_old_or_missing_gets_one_sentence() {
        let old =
            Tool { name: "sh", probe: &["echo", "v1.2"], least: Some((1, 3)), why: "runs (Debian: dash)" };
        assert_eq!(old.fault().unwrap(), "sh 1.3 or newer: runs (Debian: dash); 1.2 is installed");
        let missing = Tool { probe: &["/nowhere/sh"], ..old };
        assert_eq!(missing.fault().unwrap(), "sh 1.3 or newer: runs (Debian: dash); it was not found");
    }

    /// A person reads the page before anything is compiled.
    #[test]
    fn contributing_states_every_tool() {
        let page = std::fs::read_to_string(root().join("CONTRIBUTING.md")).unwrap();
        let missing =
            TOOLS.iter().chain(&OPTIONAL).filter(|tool| !page.contains(&format!("`{}`", tool.name)));
        assert_eq!(missing.map(|tool| tool.name).collect::<Vec<_>>(), [""; 0]);
    }

    #[test]
    fn the_compiler_is_the_one_that_the_manifest_asks_for() {
        assert_eq!(version(concat!(env!("CARGO_PKG_RUST_VERSION"), ".")), Some(RUST));
    }
}
