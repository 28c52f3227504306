//! Where a process is asked how its servers are.

use super::{as_json, folder};
use crate::clock;
use crate::driver::Driver;
use crate::store::Place;
use crate::sys::files;
use crate::sys::local::{self, LONGEST_PATH, LocalListener};
use serde_json::{Value, json};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::task::JoinHandle;

/// How long one that asks may take to read. They are served one after the other.
const PATIENCE: Duration = Duration::from_secs(1);

/// The pause after a connection that could not be taken.
const PAUSE: Duration = Duration::from_millis(50);

/// What a process says of itself.
#[derive(Clone, Debug, Default)]
pub struct About {
    /// The file that its servers come from.
    pub file: Option<String>,
    /// Where clients come in, if not on standard streams.
    pub address: Option<String>,
}

/// The socket of this process, until it is dropped.
#[derive(Debug)]
pub struct Desk {
    path: PathBuf,
    task: JoinHandle<()>,
}

impl Drop for Desk {
    fn drop(&mut self) {
        self.task.abort();
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Begins to answer. A state folder that cannot be used is no reason not to serve.
pub fn open(driver: &Arc<Driver>, place: &Place, about: About) -> Option<Desk> {
    let Place::Folder(state) = place else { return None };
    match listen(&folder(state)) {
        Ok((listener, path)) => {
            let task = tokio::spawn(answer(driver.clone(), listener, about));
            Some(Desk { path, task })
        }
        Err(error) => {
            driver.warn("servers", format!("`outlast servers` will not show this process: {error}"));
            None
        }
    }
}

fn listen(folder: &Path) -> io::Result<(LocalListener, PathBuf)> {
    files::make_own_folder(folder)?;
    // A process of another container may have our number.
    let serial = u32::from_le_bytes(crate::random::bytes());
    let path = folder.join(format!("{}-{serial:08x}.sock", std::process::id()));
    if path.as_os_str().len() > LONGEST_PATH {
        return Err(io::Error::other(format!("the path of `{}` is too long for a socket", folder.display())));
    }
    Ok((local::listen(&path)?, path))
}

async fn answer(driver: Arc<Driver>, mut listener: LocalListener, about: About) {
    loop {
        match listener.accept().await {
            Ok(mut stream) => {
                let text = said(&driver, &about).to_string();
                let _ = tokio::time::timeout(PATIENCE, stream.write_all(text.as_bytes())).await;
            }
            Err(_) => tokio::time::sleep_until(clock::in_future(PAUSE).into()).await,
        }
    }
}

fn said(driver: &Driver, about: &About) -> Value {
    let (servers, mistakes) = driver.report();
    let servers: Vec<Value> = servers.iter().map(as_json).collect();
    json!({
        "pid": std::process::id(),
        "outlast": env!("CARGO_PKG_VERSION"),
        "file": about.file,
        "address": about.address,
        "mistakes": mistakes,
        "servers": servers,
    })
}
