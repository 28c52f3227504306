//! Serve mode: clients come over HTTP, servers are started as they are needed.

use crate::client::http::visitor::Doorman;
use crate::client::http::{Bounds, Door, Listener, addresses};
use crate::clock::{Clock, timestamp};
use crate::config::file::Reading;
use crate::driver::Driver;
use crate::identity::Key;
use crate::keep::Kept;
use crate::link::Starter;
use crate::observe::Observers;
use crate::observe::stderr::Stderr;
use crate::program::Program;
use crate::reload::{self, by_name};
use crate::store::Place;
use crate::sys::{limits, signals};
use crate::wrap::{identity_key, watch_signals};
use outlast_engine::{Config, Event};
use std::io;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Connections that the system may hold for us while we are busy.
const BACKLOG: u32 = 1024;

/// Where clients come in.
#[derive(Debug)]
pub enum Entrance {
    /// Where others may come from, too.
    Address(SocketAddr),
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
}

impl Service {
    /// Where what we say goes.
    pub fn log(&self) -> Stderr {
        match &self.entrance {
            Entrance::Address(_) => Stderr::default(),
            Entrance::Kept(kept) => kept.log(),
        }
    }
}

/// Serves until a signal comes.
pub fn run(
    mut config: Config,
    mut observers: Observers,
    place: Place,
    service: Service,
    programs: Vec<Program>,
    reading: Option<Reading>,
) -> io::Result<ExitCode> {
    config.durable = matches!(place, Place::Folder(_));
    let key = identity_key(&place, &mut observers);
    name_servers(&mut config, &key, &programs);
    let mut starter = Starter { programs: by_name(&config, programs), ..Starter::default() };
    limits::adopt_orphans();
    starter.file_limit = limits::raise_file_limit();
    limits::return_large_buffers();
    let watched = reading.map(|reading| (reading, key));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
    let status = runtime.block_on(serve(config, observers, place, service, starter, watched))?;
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

async fn serve(
    config: Config,
    observers: Observers,
    place: Place,
    service: Service,
    starter: Starter,
    watched: Option<(Reading, Key)>,
) -> io::Result<u8> {
    let eager = config.definitions().any(|(_, server)| server.eager);
    let (resume_wait, has_tickets) = (config.resume_wait, config.has_tickets());
    let (listener, greeting, kept) = match service.entrance {
        Entrance::Address(address) => {
            let listener = listen(address)?;
            let greeting = format!("outlast: listening on http://{}/mcp", listener.local_addr()?);
            (Listener::Tcp(listener), greeting, None)
        }
        Entrance::Kept(kept) => {
            let greeting = format!("{} outlast: kept by process {}", timestamp(), std::process::id());
            (Listener::Local(kept.listener()?), greeting, Some(kept))
        }
    };
    let driver = Driver::new(config, Clock::start(), starter, observers, None, place);
    // With a file a hang-up asks us to read it again.
    watch_signals(&driver, watched.is_none())?;
    tokio::spawn(driver.clone().keep_time());
    driver.turn(|state| {
        state.feed(Event::Entropy(crate::random::bytes()));
        if has_tickets {
            state.feed(Event::Begin);
        }
    });
    if eager {
        driver.turn(|state| state.feed(Event::Warm));
    }
    let reader = watched.map(|watched| read_again(&driver, watched)).transpose()?;
    let (stop, stopped) = watch::channel(false);
    let door = Door::new(driver.clone(), service.doorman, service.bounds, service.addresses);
    let doors = tokio::spawn(door.listen(listener, stopped));
    // Programs wait for this line to know that we are there, and where.
    crate::observe::stderr::write(format!("{greeting}\n").as_bytes());
    let status = match &kept {
        None => driver.ended().await,
        Some(kept) => kept.until_unused(&driver, resume_wait).await,
    };
    reader.inspect(JoinHandle::abort);
    let _ = stop.send(true);
    let _ = doors.await;
    driver.end_servers();
    driver.close_store();
    driver.let_go_of_client();
    Ok(status)
}

/// Reads the file again when it changes, or when somebody asks for it.
fn read_again(driver: &Arc<Driver>, (reading, key): (Reading, Key)) -> io::Result<JoinHandle<()>> {
    let asked = signals::on_hang_up()?;
    Ok(tokio::spawn(reload::watch(driver.clone(), reading, key, Some(asked))))
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket =
        if address.is_ipv4() { tokio::net::TcpSocket::new_v4()? } else { tokio::net::TcpSocket::new_v6()? };
    socket.set_reuseaddr(true)?;
    let listening = socket.bind(address).and_then(|()| socket.listen(BACKLOG));
    listening.map_err(|error| io::Error::new(error.kind(), format!("cannot listen on {address}: {error}")))
}
