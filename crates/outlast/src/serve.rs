//! Serve mode: clients come over HTTP, servers are started as they are needed.

use crate::callbacks::Callers;
use crate::client::http::visitor::Doorman;
use crate::client::http::{Bounds, Dates, Door, Listener, addresses};
use crate::clock::{Clock, timestamp};
use crate::config::file::Reading;
use crate::dashboard::sight::Everything;
use crate::driver::Driver;
use crate::identity::Key;
use crate::keep::Kept;
use crate::link::Starter;
use crate::observe::Observers;
use crate::observe::access::AccessLog;
use crate::observe::stderr::Stderr;
use crate::program::Program;
use crate::reload::{self, by_name};
use crate::servers::desk::{self, About};
use crate::store::Home;
use crate::sys::{limits, manager, signals};
use crate::wrap::identity_key;
use outlast_engine::{Config, Event};
use std::io;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// Connections that the system may hold for us while we are busy.
const BACKLOG: u32 = 1024;

/// Where clients come in.
#[derive(Debug)]
pub enum Entrance {
    /// Where others may come from, too.
    Address(SocketAddr),
    /// The same, on a socket that the service manager listens on until we do.
    Passed(std::net::TcpListener),
    /// The doors of `outlast --keep`.
    Kept(Kept),
}

/// Where and for whom.
#[derive(Debug)]
pub struct Service {
    /// Where clients come in.
    pub entrance: Entrance,
    /// Who is let in.
    pub doorman: Doorman,
    /// What they may take.
    pub bounds: Bounds,
    /// What is known of their addresses.
    pub addresses: addresses::Rules,
    /// Where their requests are written down.
    pub access: Option<AccessLog>,
}

impl Service {
    /// Where what we say goes.
    pub fn log(&self) -> Stderr {
        match &self.entrance {
            Entrance::Address(_) | Entrance::Passed(_) => Stderr::default(),
            Entrance::Kept(kept) => kept.log(),
        }
    }
}

/// Serves until a signal comes.
pub fn run(
    mut config: Config,
    mut observers: Observers,
    home: Home,
    service: Service,
    (programs, callers): (Vec<Program>, Callers),
    reading: Option<Reading>,
) -> io::Result<ExitCode> {
    config.durable = home.is_durable();
    config.replicated = home.database.is_some();
    let key = match &home.database {
        Some(database) => Key::shared(database).map_err(io::Error::other)?,
        None => identity_key(&home.place, &mut observers),
    };
    name_servers(&mut config, &key, &programs);
    let mut starter = Starter { programs: by_name(&config, programs), callers, ..Starter::default() };
    limits::adopt_orphans();
    starter.file_limit = limits::raise_file_limit();
    limits::return_large_buffers();
    let watched = reading.map(|reading| (reading, key));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
    let status = runtime.block_on(serve(config, observers, home, service, starter, watched))?;
    runtime.shutdown_background();
    Ok(ExitCode::from(status))
}

/// Gives every server the name that the store knows it by, and the address that of all of them.
pub fn name_servers(config: &mut Config, key: &Key, programs: &[Program]) {
    let names: Vec<Box<str>> = config
        .definitions()
        .zip(programs)
        .map(|((_, server), program)| program.identity(key, &server.name))
        .collect();
    let Some((first, others)) = names.split_first() else { return };
    config.is_called(first.clone());
    for (server, name) in config.others.iter_mut().zip(others) {
        Arc::make_mut(server).identity = name.clone();
    }
    if !config.others.is_empty() {
        let parts: Vec<Vec<u8>> = names.iter().map(|name| name.as_bytes().to_vec()).collect();
        config.identity = format!("outlast#{}", key.digest(&parts)).into();
    }
}

/// What this replica is called: by its machine, and differently after each start.
fn replica() -> String {
    let host = crate::config::any_variable("HOSTNAME").unwrap_or_default();
    let host: String =
        host.chars().filter(|c| c.is_ascii_alphanumeric() || "-.".contains(*c)).take(64).collect();
    let host = if host.is_empty() { "replica" } else { &host };
    format!("{host}-{}", outlast_engine::hex::encode(&crate::random::bytes::<4>()))
}

async fn serve(
    config: Config,
    observers: Observers,
    home: Home,
    service: Service,
    starter: Starter,
    watched: Option<(Reading, Key)>,
) -> io::Result<u8> {
    let eager = config.definitions().any(|(_, server)| server.eager);
    let (resume_wait, has_tickets) = (config.resume_wait, config.has_tickets());
    let (greeting, listener, kept) = enter(service.entrance)?;
    let file = watched.as_ref().map(|(reading, _)| reading.name());
    let shown = home.place.clone();
    let dates = home.database.as_ref().map_or_else(Dates::default, |_| Dates::of_replica(&replica()));
    let driver = Driver::new(config, Clock::start(), starter, observers, None, home);
    // With a file a hang-up asks us to read it again.
    watch_signals(&driver, watched.is_none(), kept.is_none())?;
    tokio::spawn(driver.clone().keep_time());
    tokio::spawn(driver.clone().publish());
    begin(&driver, has_tickets, eager);
    let address = greeting.rsplit(' ').next().map(str::to_owned);
    let about = About { file, address };
    // `outlast keep list` shows the others.
    let desk = if kept.is_none() { desk::open(&driver, &shown, about) } else { None };
    let Service { doorman, bounds, addresses, access, .. } = service;
    let everything = Everything::Served;
    let door = Door::new(driver.clone(), doorman, bounds, addresses, everything, dates, access);
    let reader = watched.map(|watched| read_again(&driver, &door, watched)).transpose()?;
    let doors = tokio::spawn(door.listen(listener, driver.entry()));
    // Programs wait for this line to know that we are there, and where.
    crate::observe::stderr::write(format!("{greeting}\n").as_bytes());
    if kept.is_none() {
        manager::ready(greeting.trim_start_matches("outlast: "));
    }
    let status = match &kept {
        None => driver.ended().await,
        Some(kept) => kept.until_unused(&driver, resume_wait).await,
    };
    drop(desk);
    reader.inspect(JoinHandle::abort);
    driver.close_entry();
    let _ = doors.await;
    driver.end_servers();
    driver.close_store();
    driver.let_go_of_client();
    Ok(status)
}

/// The first events: random bytes, what an earlier process left, servers that start before anybody needs them.
fn begin(driver: &Driver, has_tickets: bool, eager: bool) {
    driver.turn(|state| {
        state.feed(Event::Entropy(crate::random::bytes()));
        if has_tickets {
            state.feed(Event::Begin);
        }
    });
    if eager {
        driver.turn(|state| state.feed(Event::Warm));
    }
}

/// Opens the entrance: what is said of it, where clients come in, and what `--keep` knows of it.
fn enter(entrance: Entrance) -> io::Result<(String, Listener, Option<Kept>)> {
    Ok(match entrance {
        Entrance::Address(address) => {
            let listener = listen(address)?;
            (greeting_at(&listener)?, Listener::Tcp(listener), None)
        }
        Entrance::Passed(socket) => {
            let listener = TcpListener::from_std(socket)?;
            (greeting_at(&listener)?, Listener::Tcp(listener), None)
        }
        Entrance::Kept(kept) => {
            let greeting = format!("{} outlast: kept by process {}", timestamp(), std::process::id());
            (greeting, Listener::Local(kept.listener()?), Some(kept))
        }
    })
}

/// Ends in order when a signal comes; a service manager hears of it before calls have ended.
/// With `hang_up` the end of a terminal is such a signal.
fn watch_signals(driver: &Arc<Driver>, hang_up: bool, managed: bool) -> io::Result<()> {
    let driver = driver.clone();
    signals::on_stop(hang_up, move |number| {
        if managed {
            manager::stopping();
        }
        driver.turn(|state| state.feed(Event::Stop(number)));
    })
}

fn greeting_at(listener: &TcpListener) -> io::Result<String> {
    Ok(format!("outlast: listening on http://{}/mcp", listener.local_addr()?))
}

/// Reads the file again when it changes, or when somebody asks for it.
fn read_again(
    driver: &Arc<Driver>,
    door: &Arc<Door>,
    (reading, key): (Reading, Key),
) -> io::Result<JoinHandle<()>> {
    let asked = signals::on_hang_up()?;
    let told = (Some(asked), Some(door.clone()));
    Ok(tokio::spawn(reload::watch(driver.clone(), reading, key, told)))
}

/// Listens on an address.
pub fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket =
        if address.is_ipv4() { tokio::net::TcpSocket::new_v4()? } else { tokio::net::TcpSocket::new_v6()? };
    socket.set_reuseaddr(true)?;
    let listening = socket.bind(address).and_then(|()| socket.listen(BACKLOG));
    listening.map_err(|error| io::Error::new(error.kind(), format!("cannot listen on {address}: {error}")))
}
