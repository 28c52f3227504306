//! The door's way to its service: connects, and starts the service where there is none.

use super::{Room, SERVICE, lock_within};
use crate::config;
use crate::observe::rotation;
use crate::sys::limits::FileLimit;
use crate::sys::local::{self, LocalStream};
use crate::sys::lock::{Kind, Lock};
use crate::sys::service;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

/// How long a door waits for another door that starts the service.
const TURN: Duration = Duration::from_secs(8);

/// How long a door waits for a service that ends: as long as that takes if its server must be killed.
const GOING: Duration = Duration::from_secs(10);

/// Bytes of a log that an error shows.
const TAIL: u64 = 300;

/// The way to a service. As long as it is held the service stays.
pub struct Way {
    room: Room,
    /// What follows the service's name on its command line.
    arguments: Vec<OsString>,
    /// How many descriptors the service may have, before we raise that for ourselves.
    file_limit: Option<FileLimit>,
    _user: Lock,
}

impl Way {
    /// Announces a door; connects to nothing yet. The error is for people.
    pub fn new(room: Room, arguments: Vec<OsString>) -> Result<Arc<Way>, String> {
        let path = room.file("users");
        let cannot = |why: &dyn std::fmt::Display| format!("--keep cannot use `{}`: {why}", path.display());
        let user = lock_within(&path, Kind::Shared, GOING).map_err(|error| cannot(&error))?;
        let user = user.ok_or_else(|| {
            format!("the service that ran before does not end; write: outlast keep stop {}", room.name)
        })?;
        Ok(Arc::new(Way { room, arguments, file_limit: FileLimit::now(), _user: user }))
    }

    /// A connection to the service. The error is for people.
    pub async fn connect(self: &Arc<Way>) -> Result<LocalStream, String> {
        if let Ok(stream) = local::connect(&self.room.socket()).await {
            return Ok(stream);
        }
        let way = self.clone();
        let started = tokio::task::spawn_blocking(move || way.start());
        let stream = started.await.map_err(io::Error::other).and_then(|stream| stream);
        stream.map_err(|error| format!("cannot start the service in the background: {error}"))
    }

    /// Starts the service, unless another door was faster.
    fn start(&self) -> io::Result<LocalStream> {
        let Some(_turn) = lock_within(&self.room.file("lock"), Kind::Exclusive, TURN)? else {
            return Err(io::Error::other("another door has not finished starting it"));
        };
        let socket = self.room.socket();
        if let Ok(stream) = local::connect_now(&socket) {
            return Ok(stream);
        }
        let log = self.room.log();
        let mut command = Command::new(config::this_program()?);
        command.arg(SERVICE).arg(&self.room.name);
        command.arg(FileLimit::word(self.file_limit)).args(&self.arguments);
        let at_once = || io::Error::other(last_lines(&log));
        if !service::start(command, &socket, rotation::open(&log)?)? {
            return Err(at_once());
        }
        local::connect_now(&socket).map_err(|_| at_once())
    }
}

/// The end of a log, for a person.
fn last_lines(path: &Path) -> String {
    let read = || -> io::Result<String> {
        let mut log = File::open(path)?;
        let length = log.metadata()?.len();
        log.seek(SeekFrom::Start(length.saturating_sub(TAIL)))?;
        let mut bytes = Vec::new();
        log.read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).trim().to_owned())
    };
    let said = read().unwrap_or_default();
    format!("it ended at once; the end of `{}`: {said}", path.display())
}
