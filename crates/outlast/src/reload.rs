//! Notices that a file has changed, reads it again, and gives the engine what it says now.
//!
//! The files are looked at once a second, because that sees whatever there is: a file that is written anew, one that
//! is renamed into its place, a link that is turned to another folder (as Kubernetes does), a folder on another
//! machine. It costs one `stat` per file.

#![allow(clippy::disallowed_methods)] // files tell nobody when they change, and no rule depends on this wait

use crate::client::http::Door;
use crate::client::http::token::Tokens;
use crate::config::file::{Again, Reading};
use crate::driver::Driver;
use crate::identity::Key;
use crate::program::Program;
use crate::serve::name_servers;
use outlast_engine::{Config, Reload};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

/// How often the files are looked at.
const LOOK: Duration = Duration::from_secs(1);

/// How long they must stay as they are before they are read: who writes several, or one in parts, needs a moment.
const SETTLE: Duration = Duration::from_millis(200);

/// At most so many times; what still changes then is read all the same.
const SETTLES: usize = 25;

/// The programs of a configuration by the names of their servers.
pub fn by_name(config: &Config, programs: Vec<Program>) -> BTreeMap<Box<str>, Program> {
    config.definitions().map(|(_, server)| server.name.clone()).zip(programs).collect()
}

/// Watches a file for as long as the process lives. `asked` tells that somebody wants it read now; at `door` come those
/// in who have a token.
pub async fn watch(
    driver: Arc<Driver>,
    reading: Reading,
    key: Key,
    (asked, door): (Option<Arc<Notify>>, Option<Arc<Door>>),
) {
    let mut reading = Some(reading);
    let mut seen = match look(&mut reading).await {
        Some(seen) => seen,
        None => return,
    };
    loop {
        let wanted = tokio::select! {
            () = tokio::time::sleep(LOOK) => false,
            () = wait_for(asked.as_ref()) => true,
        };
        let Some(now) = look(&mut reading).await else { return };
        if !wanted && now == seen {
            continue;
        }
        seen = now;
        for _ in 0..SETTLES {
            tokio::time::sleep(SETTLE).await;
            let Some(later) = look(&mut reading).await else { return };
            if later == seen {
                break;
            }
            seen = later;
        }
        if read((&driver, door.as_deref()), &mut reading, &key).await.is_none() {
            return;
        }
        // What it includes may be other files now.
        let Some(now) = look(&mut reading).await else { return };
        seen = now;
    }
}

async fn wait_for(asked: Option<&Arc<Notify>>) {
    match asked {
        Some(asked) => asked.notified().await,
        None => std::future::pending().await,
    }
}

/// Does something with the files where a slow disk holds nobody up. `None` if the process ends.
async fn apart<T: Send + 'static>(
    reading: &mut Option<Reading>,
    work: impl FnOnce(&mut Reading) -> T + Send + 'static,
) -> Option<T> {
    let mut taken = reading.take()?;
    let done = tokio::task::spawn_blocking(move || {
        let done = work(&mut taken);
        (taken, done)
    });
    let (back, done) = done.await.ok()?;
    *reading = Some(back);
    Some(done)
}

async fn look(reading: &mut Option<Reading>) -> Option<impl PartialEq + use<>> {
    apart(reading, |reading| reading.stamps()).await
}

async fn read(
    (driver, door): (&Driver, Option<&Door>),
    reading: &mut Option<Reading>,
    key: &Key,
) -> Option<()> {
    let name = reading.as_ref()?.name();
    match apart(reading, Reading::again).await? {
        Ok(again) => take(driver, door, again, key),
        Err(why) => driver.turn(|state| state.refuse_file(&name, &why)),
    }
    Some(())
}

fn take(driver: &Driver, door: Option<&Door>, again: Again, key: &Key) {
    let Again { settings, programs, at_next_start, revoked } = again;
    let mut config = settings.engine;
    name_servers(&mut config, key, &programs);
    let programs = by_name(&config, programs);
    let servers = config.definitions().map(|(_, server)| server.clone()).collect();
    if let Some(door) = door {
        let tokens = Tokens::default().and(settings.service.tokens);
        door.lets_in(tokens, settings.service.reach, &revoked);
    }
    let Config { separator, rights, .. } = config;
    let reload = Reload { servers, separator, rights, revoked };
    if !at_next_start.is_empty() {
        let names = at_next_start.join(", ");
        let text = format!("{names}: what the file says of these now counts when outlast is started again");
        driver.warn("reload", text);
    }
    driver.turn(|state| state.reload(reload, programs));
}
