//! `cargo xtask dist`: everything that people install, as far as this machine can make it.
//!
//! `build` makes the programs (`build.rs`), `pack` wraps them for every package manager, `twice` builds them
//! again in another folder and wants the same bytes, `check` type-checks for systems that cannot be linked here,
//! `try` installs each package into an empty home and uses it. Everything goes to `target/dist`; the tools that
//! this needs go to `target/dist-tools`, in pinned versions (`packaging/tools`).
//!
//! What this machine cannot make is left out, and said at the end with the reason.

mod archive;
mod build;
mod check;
mod compiler;
mod crates;
mod deb;
mod manifests;
mod npm;
mod platform;
mod sbom;
mod symbols;
mod tools;
mod trial;
mod wheel;

use crate::needs;
use crate::shell::root;
use anyhow::{Context, Result, bail, ensure};
use std::fs;
use std::path::PathBuf;
use std::process::Command;

const USAGE: &str = "usage: cargo xtask dist [build] [pack] [twice] [check] [try] [--target T] [--way NAME] [--url BASE]

  cargo xtask dist             all of it
  cargo xtask dist build       the programs, for Linux with glibc 2.17 and newer
  cargo xtask dist pack        npm, wheels, crates, Debian, archives, formulas, SBOM, checksums
  cargo xtask dist twice       the first program again, in another folder: the same bytes?
  cargo xtask dist check       does it compile for macOS and Windows?
  cargo xtask dist try         install what was packed into an empty home, use it, remove it

      --target T   build for this target only; may be given more than once
      --way NAME   try this way only (npm, npx, pnpm, yarn, pip, uv, uvx, deb, archive, cargo); may be repeated
      --url BASE   where the archives will be found, for the formulas of Homebrew and Scoop";

type Part = fn(&mut Dist) -> Result<()>;

/// The parts, in their order.
const PARTS: [(&str, Part); 5] = [
    ("build", build::all),
    ("pack", pack),
    ("twice", build::twice),
    ("check", check::all),
    ("try", trial::all),
];

/// What is made, and from what.
pub struct Dist {
    pub out: PathBuf,
    pub tools: PathBuf,
    pub version: String,
    /// With `-modified` behind it if the repository holds more than the commit.
    pub commit: String,
    /// When the commit was made: the only time that packages know.
    pub epoch: String,
    pub url: String,
    targets: Vec<String>,
    ways: Vec<String>,
    /// Why something is missing.
    left_out: Vec<String>,
}

impl Dist {
    fn new() -> Result<Dist> {
        let modified = !git(&["status", "--porcelain", "--untracked-files=no"])?.is_empty();
        Ok(Dist {
            out: root().join("target/dist"),
            tools: root().join("target/dist-tools"),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            commit: git(&["rev-parse", "HEAD"])? + if modified { "-modified" } else { "" },
            epoch: git(&["log", "-1", "--format=%ct"])?,
            url: "https://example.invalid/outlast".to_owned(),
            targets: Vec::new(),
            ways: Vec::new(),
            left_out: Vec::new(),
        })
    }

    /// Whether a way is to be tried.
    fn wants(&self, way: &str) -> bool {
        self.ways.is_empty() || self.ways.iter().any(|wanted| wanted == way)
    }

    /// Says later why something is missing.
    pub fn leave_out(&mut self, why: impl Into<String>) {
        self.left_out.push(why.into());
    }

    /// A new, empty folder below `target/dist`.
    pub fn empty(&self, name: &str) -> Result<PathBuf> {
        let folder = self.out.join(name);
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        fs::create_dir_all(&folder)?;
        Ok(folder)
    }

    /// The same packages for everybody who packs this commit.
    pub fn dated(&self, command: &mut Command) {
        command.env("SOURCE_DATE_EPOCH", &self.epoch);
    }
}

fn git(words: &[&str]) -> Result<String> {
    output(Command::new("git").args(words).current_dir(root()))
}

/// What a program prints, without blanks at the ends.
pub fn output(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("cannot run {command:?}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{command:?} ended with {}: {said}", output.status);
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

pub fn run(words: &[String]) -> Result<()> {
    needs::require(&["rustc", "cc", "node", "npm", "python3", "venv"])?;
    let mut dist = Dist::new()?;
    let mut chosen = Vec::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let mut value = || words.next().cloned().with_context(|| format!("{word} needs a value"));
        match word.as_str() {
            "--target" => dist.targets.push(value()?),
            "--way" => dist.ways.push(value()?),
            "--url" => dist.url = value()?,
            name if PARTS.iter().any(|(part, _)| *part == name) => chosen.push(name),
            other => bail!("unknown part `{other}`\n{USAGE}"),
        }
    }
    for (name, part) in PARTS {
        if chosen.is_empty() || chosen.contains(&name) {
            println!("\n== {name}");
            part(&mut dist).with_context(|| format!("cargo xtask dist {name}"))?;
        }
    }
    dist.left_out.iter().for_each(|why| println!("left out: {why}"));
    Ok(())
}

fn pack(dist: &mut Dist) -> Result<()> {
    let built = platform::built(dist);
    ensure!(!built.is_empty(), "there is no program in target/dist/bin; run: cargo xtask dist build");
    tools::prepare(dist)?;
    archive::share(dist)?;
    dist.empty("packages")?;
    for platform in &built {
        archive::pack(dist, platform)?;
        deb::pack(dist, platform)?;
        wheel::pack(dist, platform)?;
    }
    archive::pack_windows(dist)?;
    npm::pack(dist, &built)?;
    crates::pack(dist)?;
    sbom::write(dist)?;
    manifests::write(dist)?;
    archive::sums(dist)
}
