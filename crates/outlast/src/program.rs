//! How each server is reached: a command with its surroundings, or an address.

use crate::identity::Key;
use crate::server::http::Remote;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

/// A command that starts a server. Not printable: its variables may hold secrets.
#[derive(Clone, Default, PartialEq)]
pub struct Command {
    /// The program and its arguments.
    pub words: Vec<OsString>,
    /// Variables that it sees beside, or in place of, our own.
    pub variables: Vec<(OsString, OsString)>,
    /// The directory that it runs in; ours if none is named.
    pub directory: Option<PathBuf>,
}

impl std::fmt::Debug for Command {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Command({:?})", self.words.first())
    }
}

impl From<Vec<OsString>> for Command {
    fn from(words: Vec<OsString>) -> Command {
        Command { words, ..Command::default() }
    }
}

/// How a server is reached.
#[derive(Clone, Debug)]
pub enum Program {
    /// Over pipes, started by this command.
    Command(Command),
    /// Over HTTP.
    Remote(Arc<Remote>),
}

impl Program {
    /// What the server is called in the store: two that differ in a credential are two.
    pub fn identity(&self, key: &Key, name: &str) -> Box<str> {
        match self {
            Program::Command(command) => key.of_command(name, command),
            Program::Remote(remote) => remote.identity(key),
        }
    }
}
