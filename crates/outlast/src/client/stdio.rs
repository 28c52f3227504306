//! The client on our standard input. (Its output is written by the driver's turns.)

use crate::driver::{CLIENT, Driver, Peer};
use crate::lines::{Cut, Lines};
use crate::sys::streams::Source;
use outlast_engine::{Event, wire};
use std::sync::Arc;

/// Reads the client until it closes its end.
pub async fn read(driver: Arc<Driver>, mut source: Source, max_message: usize) {
    let mut lines = Lines::new(max_message);
    driver.may_read(Peer::Client).await;
    loop {
        let count = crate::server::stdio::read_or_rest(&mut source, &mut lines).await;
        let may_go_on = driver.turn_of_reader(Peer::Client, |state| {
            let mut feed = |cut| match cut {
                Cut::Line(line) => state.feed(Event::FromClient(CLIENT, wire::scan(line))),
                Cut::Oversized(id) => state.feed(Event::ClientOversized(CLIENT, id)),
            };
            match count {
                0 => {
                    lines.finish(&mut feed);
                    state.feed(Event::ClientEof(CLIENT));
                }
                _ => lines.read(&mut feed),
            }
        });
        if count == 0 {
            return;
        }
        if !may_go_on {
            driver.may_read(Peer::Client).await;
        }
    }
}
