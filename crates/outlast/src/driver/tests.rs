//! Several wait for one client.

use super::*;
use crate::observe::log::{Format, Log};
use crate::observe::stderr::Stderr;
use crate::store::Place;
use crate::sys::streams::closed_on_exec_pipe;
use outlast_engine::Level;
use outlast_engine::wire::Outgoing;
use std::io::Read;

/// A client that stopped reading for a while wakes everybody who waited for it.
#[tokio::test]
async fn everybody_goes_on_when_the_client_reads_again() {
    let (reader, writer) = closed_on_exec_pipe().unwrap();
    let log = Log { level: Level::Warn, format: Format::Text };
    let observers = Observers::new(Stderr::default(), log, None);
    let (starter, place) = (Starter::default(), Place::Memory);
    let driver = Driver::new(Config::default(), Clock::start(), starter, observers, None, place);
    tokio::spawn(driver.clone().pump(Peer::Client));
    driver.turn(|state| {
        state.client.sink = Some(Arc::new(Sink::pipe(writer).unwrap()));
        state.client.push(&Outgoing::plain(vec![b'x'; HARD + 1]));
    });
    assert!(driver.client_is_full());
    let waiting: Vec<_> = (0..3)
        .map(|_| driver.clone())
        .map(|driver| tokio::spawn(async move { driver.client_has_room().await }))
        .collect();
    let stdin = driver.clone();
    let stdin = tokio::spawn(async move { stdin.may_read(Peer::Client).await });
    tokio::task::yield_now().await;
    std::thread::spawn(move || std::fs::File::from(reader).read_to_end(&mut Vec::new()));
    for task in waiting.into_iter().chain([stdin]) {
        tokio::time::timeout(Duration::from_secs(20), task).await.expect("it sleeps on").unwrap();
    }
}
