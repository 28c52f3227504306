//! The service behind `--keep`: detached from whoever started it, and gone when nobody needs it.

use super::{Room, try_lock};
use crate::driver::Driver;
use crate::observe::rotation::Rotation;
use crate::observe::stderr::Stderr;
use crate::sys::files::private;
use crate::sys::local::LocalListener;
use crate::sys::lock::{self, Kind, Lock};
use crate::sys::service::{self, Entrance};
use crate::{clock, config};
use outlast_engine::Event;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::time::Duration;

/// How often it is looked whether anybody is there, at least and at most.
const LOOK: [Duration; 2] = [Duration::from_millis(20), Duration::from_secs(30)];

/// What a service says of itself to those who list it.
#[derive(Debug, Serialize, Deserialize)]
pub struct Card {
    pub name: String,
    pub server: String,
    pub pid: u32,
    /// Milliseconds since 1970.
    pub since: u64,
    pub folder: String,
    pub command: Vec<String>,
}

/// What a service has that was started by a door.
#[derive(Debug)]
pub struct Kept {
    room: Room,
    entrance: Entrance,
    _card: Lock,
}

/// Leaves the session of whoever started us. `None` in the process that is only to end. Must be called
/// before any thread exists.
pub fn enter(room: Room, name: &str, server: &str, command: &[OsString]) -> io::Result<Option<Kept>> {
    let Some(entrance) = service::enter(&room.socket())? else { return Ok(None) };
    let card = Card {
        name: name.into(),
        server: server.into(),
        pid: std::process::id(),
        since: clock::wall().0,
        folder: config::working_directory().unwrap_or_default(),
        command: command.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
    };
    let held = write_card(&room, &card)?;
    Ok(Some(Kept { room, entrance, _card: held }))
}

/// Puts a card in place of one that an earlier service may still hold.
fn write_card(room: &Room, card: &Card) -> io::Result<Lock> {
    let path = room.file(&format!("card.{}", card.pid));
    let file = private(File::options().write(true).create(true).truncate(true)).open(&path)?;
    let Ok(mut held) = lock::try_lock(file, Kind::Exclusive)? else {
        return Err(io::Error::other(format!("`{}` is held by another process", path.display())));
    };
    held.write_all(&serde_json::to_vec(card)?)?;
    fs::rename(&path, room.file("card"))?;
    Ok(held)
}

impl Kept {
    /// Our stderr, which is the service's log.
    pub fn log(&self) -> Stderr {
        Stderr::rotated(Rotation::new(self.room.log()))
    }

    /// Where doors come in.
    pub fn listener(&self) -> io::Result<LocalListener> {
        self.entrance.open()
    }

    /// Waits for the end, and brings it about once no door and no call was there for this long.
    /// From then on doors find no socket, and wait for our end before they start another service.
    pub async fn until_unused(&self, driver: &Driver, wait: Duration) -> u8 {
        let (look, wait) = ((wait / 8).clamp(LOOK[0], LOOK[1]), wait.as_millis() as u64);
        let mut unused_since = None;
        let mut alone = None;
        let status = loop {
            if let Ok(status) = tokio::time::timeout(look, driver.ended()).await {
                break status;
            }
            if alone.is_some() {
                continue;
            }
            let users = self.room.file("users");
            // A door that comes in this very moment waits until the lock is let go of again.
            let Some(lock) = try_lock(&users, Kind::Exclusive).ok().flatten().filter(|_| driver.is_idle())
            else {
                unused_since = None;
                continue;
            };
            let now = clock::awake();
            if now.saturating_sub(*unused_since.get_or_insert(now)) >= wait {
                alone = Some(lock);
                driver.turn(|state| state.feed(Event::Stop(15)));
            }
        };
        // Ours alone: another service binds only what nobody can connect to.
        service::close(&self.room.socket());
        // The process holds it to its end, so that no door meets it half gone.
        std::mem::forget(alone);
        status
    }
}
