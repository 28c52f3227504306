//! Hints from one process to another, by `NOTIFY`: that there is a mailbox message, or something new on a stream.
//!
//! One connection of its own listens. A hint may be lost (the connection is gone, the hints before it are not taken yet):
//! everybody looks all the same, only later. Behind a pool that gives each transaction another connection nothing can be
//! heard, and nobody listens.
//!
//! A hint goes out with the transaction whose news it tells of. `NOTIFY` lets such transactions commit one by one, so it
//! is sent only with what somebody waits for: a mailbox message, and a stream that is read at another process.

use super::connection::Connection;
use super::place::Database;
use super::runtime;
use super::statement::Statement;
use super::writes::{Quick, kept};
use crate::store::{OnHint, id_of};
use outlast_engine::hex;
use outlast_engine::store::{Hint, Name};
use std::future::pending;
use std::io;
use std::thread::Builder;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

/// Hints that are not taken yet. One more is lost.
pub const WAITING: usize = 64;

/// How long nothing is heard before it is seen whether the database is still there; and the wait between two tries.
const QUIET: Duration = Duration::from_secs(30);
const AGAIN: Duration = Duration::from_secs(5);

/// What is said of streams. Of mailbox messages it is said to whom.
const NEWS: &str = "news";

/// Said once in a transaction, however many streams have something new.
pub fn hint(_: &Name) -> Quick<'static> {
    Quick::uncounted(Statement::new("SELECT pg_notify('outlast', 'news')::text"), kept)
}

/// Who listens. Dropping it ends that.
#[derive(Debug)]
pub struct Listener {
    _lives: oneshot::Sender<()>,
}

/// Listens on a thread of its own for what concerns the process of this name.
pub fn listen(database: Database, name: &str, on_hint: OnHint) -> io::Result<Listener> {
    let (_lives, ended) = oneshot::channel::<()>();
    let ours = hex::encode(&id_of(name));
    let listens = move || {
        // Without it everything is found a little later.
        let Ok(runtime) = runtime() else { return };
        runtime.block_on(async {
            tokio::select! {
                () = hear(&database, &ours, &on_hint) => {}
                _ = ended => {}
            }
        });
    };
    Builder::new().name("store-hints".into()).spawn(listens)?;
    Ok(Listener { _lives })
}

async fn hear(database: &Database, ours: &str, on_hint: &OnHint) {
    loop {
        let (heard, mut hints) = mpsc::channel(WAITING);
        if let Ok(connection) = Connection::open_to_hear(database, heard).await {
            if !connection.own {
                return;
            }
            // What came before is found by whoever looks.
            if connection.run("LISTEN outlast").await.is_ok() {
                pass_on(&connection, &mut hints, ours, on_hint).await;
            }
        }
        // Nothing comes here: it is how long the thread waits.
        let _ = timeout(AGAIN, pending::<()>()).await;
    }
}

/// Until the connection is gone.
async fn pass_on(connection: &Connection, hints: &mut mpsc::Receiver<String>, ours: &str, on_hint: &OnHint) {
    loop {
        match timeout(QUIET, hints.recv()).await {
            Ok(Some(said)) if said == NEWS => on_hint(Hint::News),
            Ok(Some(said)) if said == ours => on_hint(Hint::Mail),
            Ok(Some(_)) => {}
            Ok(None) => return,
            Err(_) if connection.run("SELECT").await.is_ok() => {}
            Err(_) => return,
        }
    }
}
