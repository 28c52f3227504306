//! `outlast ui`: the dashboard of everything that this user runs, on a port of this machine that nobody else knows.
//!
//! It is a service without servers, which looks into the store that all processes of the user share. Who has the
//! address has the token, which is in it and in no request line; a browser gets it from a file that is nobody
//! else's, because others on this machine can read what a command was started with.

use super::sight::{Everything, Reach};
use crate::client::http::addresses::Rules;
use crate::client::http::token::{self, Tokens};
use crate::client::http::visitor::{Access, Doorman};
use crate::client::http::{Bounds, Dates, Door, Listener};
use crate::clock::Clock;
use crate::config::{self, Settings};
use crate::driver::Driver;
use crate::link::Starter;
use crate::observe::Observers;
use crate::observe::stderr::{Stderr, say};
use crate::serve::listen;
use crate::store::Place;
use crate::sys::files::{make_folder, private};
use crate::sys::{browser, signals};
use outlast_engine::{Event, Manner};
use std::fs::File;
use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// A person and a few programs.
const BOUNDS: Bounds = Bounds { bytes: 64 << 20, connections: 256 };

/// What is asked.
#[derive(Debug)]
pub struct Request {
    /// Where the store is.
    pub place: Place,
    /// Open the page in a browser, if there is one.
    pub opens: bool,
}

/// Shows the dashboard until it is interrupted.
pub fn run(request: &Request) -> io::Result<ExitCode> {
    let Place::Folder(folder) = &request.place else {
        say("--state none keeps everything in the memory of each process: there is nothing to see here");
        return Ok(ExitCode::from(2));
    };
    make_folder(folder)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
    let status = runtime.block_on(show(folder, request.opens))?;
    runtime.shutdown_background();
    Ok(ExitCode::from(status))
}

async fn show(folder: &Path, opens: bool) -> io::Result<u8> {
    let driver = driver(folder);
    let stopping = driver.clone();
    signals::on_stop(true, move |number| stopping.turn(|state| state.feed(Event::Stop(number))))?;
    tokio::spawn(driver.clone().keep_time());
    let (doorman, token) = doorman()?;
    let listener = listen(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
    let address = format!("http://{}/outlast/#token={token}", listener.local_addr()?);
    let rules = Rules { most: None, trusted: Vec::new() };
    let (everything, dates) = (Everything::OfThisUser, Dates::default());
    let door = Door::new(driver.clone(), doorman, BOUNDS, rules, everything, dates, None);
    let doors = tokio::spawn(door.listen(Listener::Tcp(listener), driver.entry()));
    say(&format!("the dashboard is at {address} (Ctrl-C ends it)"));
    let way = if opens { open(folder, &address) } else { None };
    let status = driver.ended().await;
    way.map(std::fs::remove_file);
    driver.close_entry();
    let _ = doors.await;
    driver.close_store();
    Ok(status)
}

/// A driver that starts nothing: it is the way to the store.
fn driver(folder: &Path) -> std::sync::Arc<Driver> {
    let mut settings = Settings::new(&[]);
    settings.engine.manner = Manner::Serve;
    let observers = Observers::new(Stderr::default(), settings.log, None);
    let place = Place::Folder(folder.to_owned());
    Driver::new(settings.engine, Clock::start(), Starter::default(), observers, None, place)
}

/// Lets in whoever has the token, as the user that we run for.
fn doorman() -> io::Result<(Doorman, String)> {
    let (token, line) = token::new("ui").map_err(io::Error::other)?;
    let hash = line.split(' ').nth(1).and_then(outlast_engine::hex::decode).unwrap_or_default();
    let user: Box<str> = config::user_name().into();
    let tokens = Tokens::default().and([(user.clone(), hash)]);
    let access = Access::new(None, tokens, [(user, Reach::All)].into());
    Ok((Doorman { loopback: true, access, ..Doorman::default() }, token))
}

/// Opens the page, by a file that leads there. Its path, if there is a browser.
fn open(folder: &Path, address: &str) -> Option<PathBuf> {
    let path = folder.join(format!("ui-{}.html", std::process::id()));
    let page = format!("<!doctype html><meta http-equiv=\"refresh\" content=\"0;url={address}\">");
    let mut file = private(File::options().write(true).create(true).truncate(true)).open(&path).ok()?;
    let opened = file.write_all(page.as_bytes()).is_ok() && browser::open(&path);
    if !opened {
        let _ = std::fs::remove_file(&path);
        return None;
    }
    Some(path)
}
