//! A home directory and a project that exist only for one test, and outlast run in them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

/// The program under test.
pub const OUTLAST: &str = env!("CARGO_BIN_EXE_outlast");

/// In the values of every fixture and of every test that nobody may see.
pub const CANARY: &str = "CANARY";

/// Below the home directory, where the system keeps what graphical programs store.
pub const PROGRAMS: &str = if cfg!(target_os = "macos") { "Library/Application Support" } else { ".config" };

pub struct World {
    folder: TempDir,
}

impl World {
    pub fn new() -> World {
        let folder = tempfile::tempdir().unwrap();
        let world = World { folder };
        fs::create_dir(world.home("")).unwrap();
        fs::create_dir(world.project("")).unwrap();
        world
    }

    fn root(&self) -> PathBuf {
        fs::canonicalize(self.folder.path()).unwrap()
    }

    pub fn home(&self, path: &str) -> PathBuf {
        self.root().join("home").join(path)
    }

    pub fn project(&self, path: &str) -> PathBuf {
        self.root().join("project").join(path)
    }

    /// A program in the project, without anything of whoever runs the tests; `outlast` is on the path.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(OUTLAST);
        command.args(arguments).env_clear().current_dir(self.project("")).env("HOME", self.home(""));
        command.env("PATH", Path::new(OUTLAST).parent().unwrap());
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Said {
        Said::new(self, &self.command(arguments).output().unwrap())
    }
}

/// What a run said, with paths as a reader would write them.
#[derive(Debug)]
pub struct Said {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Said {
    pub fn new(world: &World, output: &Output) -> Said {
        let text = |bytes: &[u8]| {
            let text = String::from_utf8(bytes.to_vec()).unwrap();
            assert!(!text.contains(CANARY), "a secret was shown: {text}");
            let home = world.home("").display().to_string();
            let project = world.project("").display().to_string();
            text.replace(&home, "~/").replace(&project, "")
        };
        Said { code: output.status.code().unwrap(), out: text(&output.stdout), err: text(&output.stderr) }
    }
}

/// Writes a file, with the folders above it.
pub fn put(path: &Path, text: impl AsRef<[u8]>) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

pub fn text(path: &Path) -> String {
    String::from_utf8(fs::read(path).unwrap()).unwrap()
}

/// The names in a folder, in order.
pub fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// One server in the file of a client that has nothing special.
pub const PLAIN: &str = r#"{"mcpServers": {"time": {"command": "uvx", "args": ["mcp-server-time"]}}}"#;
pub const WRAPPED: &str = r#"{"mcpServers": {"time": {"command": "outlast", "args": ["--installed", "--", "uvx", "mcp-server-time"]}}}"#;
