//! Wrap mode: one client on our standard streams, one server below the guardian.

use crate::client;
use crate::clock::Clock;
use crate::driver::{Driver, Peer};
use crate::guardian::Guardian;
use crate::observe::Observers;
use crate::server::stdio::read_reports;
use crate::sys::unix;
use outlast_engine::{Config, Event};
use std::ffi::OsString;
use std::io;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};

/// How long the end waits for a client to read what is left.
const LAST_WRITE: Duration = Duration::from_millis(500);

/// Runs until the client or the server ends. The guardian is forked first, while there is one thread.
pub fn run(config: Config, observers: Observers, command: &[OsString]) -> io::Result<ExitCode> {
    let guardian = Guardian::fork(command)?;
    unix::adopt_orphans();
    unix::raise_file_limit();
    unix::return_large_buffers();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
    let status = runtime.block_on(serve(config, observers, guardian))?;
    // Threads that are blocked on a terminal or a file must not keep us.
    runtime.shutdown_background();
    Ok(ExitCode::from(status))
}

async fn serve(config: Config, observers: Observers, guardian: Guardian) -> io::Result<u8> {
    let max_message = config.max_message;
    let reports = guardian.reports()?;
    let (sink, last_writer) = unix::stdout_sink()?;
    let (source, sink) = (unix::stdin_source()?, Arc::new(sink));
    let driver = Driver::new(config, Clock::start(), guardian, observers);
    watch_signals(&driver)?;
    tokio::spawn(driver.clone().keep_time());
    tokio::spawn(driver.clone().pump(Peer::Client));
    tokio::spawn(driver.clone().pump(Peer::Server));
    driver.open(sink.clone());
    tokio::spawn(read_reports(driver.clone(), reports));
    tokio::spawn(client::stdio::read(driver.clone(), source, max_message));
    let reader_watch = tokio::spawn(watch_reader(driver.clone(), sink));
    let status = driver.ended().await;
    finish(&driver).await;
    reader_watch.abort();
    let guardian = driver.close();
    guardian.into_iter().for_each(Guardian::finish);
    if let Some(thread) = last_writer {
        // It ends when everything it was given is written: its pipe has no other end any more.
        let _ = tokio::time::timeout(LAST_WRITE, tokio::task::spawn_blocking(move || thread.join())).await;
    }
    Ok(status)
}

/// Writes what is left for the client, as long as it reads.
async fn finish(driver: &Driver) {
    let served = async {
        while !driver.client_is_served() {
            tokio::task::yield_now().await;
            driver.turn(|_| {});
        }
    };
    let _ = tokio::time::timeout(LAST_WRITE, served).await;
}

/// Ends when asked to: by the client's host, a terminal, or a service manager.
fn watch_signals(driver: &Arc<Driver>) -> io::Result<()> {
    for (kind, number) in
        [(SignalKind::terminate(), 15), (SignalKind::interrupt(), 2), (SignalKind::hangup(), 1)]
    {
        let mut signals = signal(kind)?;
        let driver = driver.clone();
        tokio::spawn(async move {
            while signals.recv().await.is_some() {
                driver.turn(|state| state.feed(Event::Stop(number)));
            }
        });
    }
    Ok(())
}

/// Notices when nobody reads our output any more, even while there is nothing to write.
async fn watch_reader(driver: Arc<Driver>, sink: Arc<unix::Sink>) {
    sink.closed().await;
    driver.turn(|state| state.feed(Event::ClientGone(crate::driver::CLIENT)));
}
