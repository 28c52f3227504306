//! A compiler for a target whose standard library is not installed.
//!
//! rustup would bring it; where rustup may not download, Debian has a whole compiler with the library for other
//! processors and its source. It is unpacked below `target/dist-tools/rust`, from the sources that apt knows, with
//! lists of its own: nothing is installed, and apt's own state is not touched. apt checks the signatures; the
//! version is the one that Debian has today, because old ones disappear from there.

use super::{Dist, output};
use anyhow::{Context, Result, bail};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What compiles for a target.
#[derive(Clone)]
pub struct Compiler {
    /// `None` for the installed one.
    pub rustc: Option<PathBuf>,
    pub version: String,
}

impl Compiler {
    /// Has cargo use it.
    pub fn apply(&self, cargo: &mut Command) {
        if let Some(rustc) = &self.rustc {
            cargo.env("RUSTC", rustc);
        }
    }
}

/// The installed compiler if it has the target, otherwise Debian's.
pub fn for_target(dist: &Dist, target: &str) -> Result<Compiler> {
    let library = output(Command::new("rustc").args(["--print", "target-libdir", "--target", target]))?;
    if Path::new(&library).is_dir() {
        return Ok(Compiler { rustc: None, version: output(Command::new("rustc").arg("--version"))? });
    }
    debian(dist).with_context(|| {
        format!("no standard library for {target} (rustup target add {target}), and none from Debian")
    })
}

/// Debian calls its compiler by one of these, with the packages of its library and its source.
const NAMES: [[&str; 3]; 2] =
    [["rustc", "libstd-rust-dev", "rust-src"], ["rustc-web", "libstd-rust-web-dev", "rust-web-src"]];

/// Those of the running system have to do: they must match each other.
const SYSTEM: [&str; 6] = ["libc6", "libgcc-s1", "libstdc++6", "gcc-12-base", "libcrypt1", "gcc-14-base"];

/// Debian's compiler with the libraries for both processors and the library's source.
pub fn debian(dist: &Dist) -> Result<Compiler> {
    let home = dist.tools.join("rust");
    let start = home.join("rustc");
    if !start.is_file() {
        let apt = Apt::new(&home)?;
        let [rustc, library, source] = apt.newest()?;
        let mut packages = apt.closure(library)?;
        packages.extend([rustc, source].map(str::to_owned));
        packages.push(format!("{library}:{}", if apt.native == "arm64" { "amd64" } else { "arm64" }));
        apt.unpack(&packages, &home.join("root"))?;
        write_start(&home, &start)?;
    }
    let version = output(Command::new(&start).arg("--version"))?;
    Ok(Compiler { rustc: Some(start), version })
}

/// A script that lets the compiler find its own libraries.
fn write_start(home: &Path, start: &Path) -> Result<()> {
    let root = home.join("root/usr");
    let libraries =
        output(Command::new("sh").arg("-c").arg(format!("ls -d {}/lib/*-linux-gnu", root.display())))?;
    let text = format!(
        "#!/bin/sh\nLD_LIBRARY_PATH='{}' exec '{}' \"$@\"\n",
        libraries.replace('\n', ":"),
        root.join("bin/rustc").display()
    );
    fs::write(start, text)?;
    Ok(fs::set_permissions(start, fs::Permissions::from_mode(0o755))?)
}

/// apt with its state in a folder of ours.
struct Apt {
    configuration: PathBuf,
    native: String,
}

impl Apt {
    fn new(home: &Path) -> Result<Apt> {
        let state = home.join("apt");
        fs::create_dir_all(state.join("lists/partial"))?;
        fs::create_dir_all(state.join("archives/partial"))?;
        fs::write(state.join("status"), "")?;
        let native = output(Command::new("dpkg").arg("--print-architecture"))?;
        let state = state.display();
        let text = format!(
            "Dir::State \"{state}\";\nDir::State::lists \"{state}/lists\";\nDir::State::status \"{state}/status\";
Dir::Cache \"{state}\";\nAPT::Architecture \"{native}\";\nAPT::Architectures {{ \"amd64\"; \"arm64\"; }};\n"
        );
        let apt = Apt { configuration: home.join("apt.conf"), native };
        fs::write(&apt.configuration, text)?;
        // A source without packages for the other processor is no reason to stop.
        let _ = apt.ask("apt-get", &["--quiet=2", "update"]);
        Ok(apt)
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env("APT_CONFIG", &self.configuration);
        command
    }

    fn ask(&self, program: &str, words: &[&str]) -> Result<String> {
        output(self.command(program).args(words))
    }

    /// The names of a compiler that is new enough.
    fn newest(&self) -> Result<[&'static str; 3]> {
        for names in NAMES {
            let shown = self.ask("apt-cache", &["show", "--no-all-versions", names[0]]).unwrap_or_default();
            let version = shown.lines().find_map(|line| line.strip_prefix("Version: ")).unwrap_or("0");
            let mut numbers = version.split(['.', '+']).map(|number| number.parse().unwrap_or(0));
            let version: (u32, u32) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
            if version >= (1, 95) {
                return Ok(names);
            }
        }
        bail!("apt knows no rustc 1.95 or newer")
    }

    /// A package and what it needs, without what the system has.
    fn closure(&self, package: &str) -> Result<Vec<String>> {
        let words =
            ["depends", "--recurse", "--no-recommends", "--no-suggests", "--no-conflicts", "--no-breaks"];
        let text =
            self.ask("apt-cache", &[&words[..], &["--no-replaces", "--no-enhances", package]].concat())?;
        let names = text.lines().filter(|line| !line.starts_with([' ', '<', '|']));
        Ok(names.filter(|name| !SYSTEM.contains(name) && !name.contains(':')).map(str::to_owned).collect())
    }

    fn unpack(&self, packages: &[String], to: &Path) -> Result<()> {
        let downloads = self.configuration.with_file_name("debs");
        fs::create_dir_all(&downloads)?;
        println!("unpacking {} packages of Debian's compiler", packages.len());
        output(
            self.command("apt-get").args(["--quiet=2", "download"]).args(packages).current_dir(&downloads),
        )?;
        for package in fs::read_dir(&downloads)? {
            output(Command::new("dpkg-deb").arg("-x").arg(package?.path()).arg(to))?;
        }
        Ok(fs::remove_dir_all(downloads)?)
    }
}
