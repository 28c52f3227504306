//! An empty home, and a PATH on which there is no compiler.

use super::super::{Dist, output};
use anyhow::{Context, Result, ensure};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What installers and servers may use.
const PROGRAMS: [&str; 22] = [
    "node",
    "npm",
    "npx",
    "sh",
    "env",
    "uname",
    "readlink",
    "dirname",
    "basename",
    "sed",
    "mkdir",
    "rm",
    "cp",
    "cat",
    "tar",
    "gzip",
    "dpkg",
    "dpkg-deb",
    "dpkg-split",
    "ldconfig",
    "diff",
    "start-stop-daemon",
];

pub struct Home {
    pub path: PathBuf,
    packages: PathBuf,
    tools: PathBuf,
}

impl Home {
    pub fn new(dist: &Dist, name: &str) -> Result<Home> {
        let path = dist.empty(&format!("homes/{name}"))?;
        let programs = path.join("path");
        fs::create_dir(&programs)?;
        for name in PROGRAMS {
            // A program that is missing is missed by the way that needs it.
            if let Ok(found) = output(Command::new("sh").arg("-c").arg(format!("command -v {name}"))) {
                symlink(found, programs.join(name))?;
            }
        }
        // `python3` may be a script that looks for others on the PATH.
        let python = output(Command::new("python3").args(["-c", "import sys; print(sys.executable)"]))?;
        symlink(Path::new(&python).canonicalize()?, programs.join("python3"))?;
        Ok(Home { path, packages: dist.out.join("packages"), tools: dist.tools.clone() })
    }

    /// Replaces `@home`, `@packages` and `@tools` in a line.
    pub fn fill(&self, line: &str) -> String {
        let pairs = [("@home", &self.path), ("@packages", &self.packages), ("@tools", &self.tools)];
        pairs
            .iter()
            .fold(line.to_owned(), |line, (word, path)| line.replace(word, &path.display().to_string()))
    }

    /// A command that knows nothing but this home.
    pub fn command(&self, words: &[String]) -> Command {
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).env_clear().current_dir(&self.path);
        command.env("HOME", &self.path).env("PATH", self.path.join("path")).env("LANG", "C.UTF-8");
        if let Ok(url) = fs::read_to_string(self.path.join("registry")) {
            command.env("npm_config_registry", &url).env("YARN_REGISTRY", url.trim());
        }
        command
    }

    /// Runs a command to its end; what it says.
    pub fn run(&self, words: &[String]) -> Result<String> {
        let mut command = self.command(words);
        let output =
            command.stdin(Stdio::null()).output().with_context(|| format!("cannot run {words:?}"))?;
        let said =
            [output.stdout, output.stderr].map(|said| String::from_utf8_lossy(&said).into_owned()).concat();
        ensure!(output.status.success(), "{words:?} ended with {}:\n{said}", output.status);
        Ok(said)
    }
}
