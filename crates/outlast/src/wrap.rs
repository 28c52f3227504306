//! Wrap mode: one client on our standard streams, one server below the guardian.

use crate::callbacks::Callers;
use crate::client;
use crate::clock::Clock;
use crate::config::file::Reading;
use crate::driver::{Driver, Peer};
use crate::identity::Key;
use crate::link::Starter;
use crate::memory::Keeper;
use crate::observe::Observers;
use crate::program::Program;
use crate::reload::{self, by_name};
use crate::serve::name_servers;
use crate::server::http::Remote;
use crate::servers::desk::{self, About};
use crate::store::Place;
use crate::sys::guardian::Guardians;
use crate::sys::{limits, signals, streams};
use outlast_engine::{Config, Event, Note};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

/// How long the end waits for the thread that writes to a file or a terminal.
const LAST_WRITE: Duration = Duration::from_millis(500);

fn only(config: &Config, program: Program) -> BTreeMap<Box<str>, Program> {
    BTreeMap::from([(config.server.name.clone(), program)])
}

/// Runs until the client or the server ends. The guardian is forked first, while there is one thread, and
/// starts the server at once: it is what takes longest.
pub fn run(
    mut config: Config,
    mut observers: Observers,
    place: Place,
    command: &[OsString],
) -> io::Result<ExitCode> {
    let guardians = Guardians::default();
    let guardian = guardians.fork(command)?;
    let ends = guardian.start()?;
    // With an instant start it is we who answer first.
    if !config.server.instant {
        guardian.go_first();
    }
    if config.uses_store() || config.server.instant {
        let key = identity_key(&place, &mut observers);
        config.is_called(key.of_command(&config.server.name, &command.to_vec().into()));
    }
    limits::adopt_orphans();
    let starter = Starter {
        forked: Some((guardian, ends)),
        programs: only(&config, Program::Command(command.to_vec().into())),
        guardians,
        file_limit: limits::raise_file_limit(),
        callers: Callers::default(),
    };
    limits::return_large_buffers();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
    let keeper = if config.server.instant { Keeper::open(&place, &config.identity, command) } else { None };
    let status = runtime.block_on(serve(config, observers, place, starter, keeper, None))?;
    // Threads that are blocked on a terminal or a file must not keep us.
    runtime.shutdown_background();
    Ok(ExitCode::from(status))
}

/// The key that names servers. Without one nothing of an earlier process is found, and nothing of another
/// account's either.
pub fn identity_key(place: &Place, observers: &mut Observers) -> Key {
    Key::of(place).unwrap_or_else(|error| {
        // Of a folder that cannot be used at all the store will tell.
        if error.kind() == io::ErrorKind::InvalidData {
            let why = format!("calls will not be found again by another process of outlast: {error}");
            observers.note(&Note::StoreLost { why });
        }
        Key::fresh()
    })
}

/// The same with a remote server.
pub fn run_remote(
    mut config: Config,
    mut observers: Observers,
    place: Place,
    remote: Arc<Remote>,
) -> io::Result<ExitCode> {
    if config.uses_store() {
        config.is_called(remote.identity(&identity_key(&place, &mut observers)));
    }
    limits::raise_file_limit();
    limits::return_large_buffers();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
    let starter = Starter { programs: only(&config, Program::Remote(remote)), ..Starter::default() };
    let status = runtime.block_on(serve(config, observers, place, starter, None, None))?;
    runtime.shutdown_background();
    Ok(ExitCode::from(status))
}

/// The same in front of several servers: they are started when the client has said who it is.
pub fn run_gateway(
    mut config: Config,
    mut observers: Observers,
    place: Place,
    programs: Vec<Program>,
    callers: Callers,
    reading: Option<Reading>,
) -> io::Result<ExitCode> {
    let key = identity_key(&place, &mut observers);
    name_servers(&mut config, &key, &programs);
    limits::adopt_orphans();
    let programs = by_name(&config, programs);
    let starter = Starter { programs, callers, file_limit: limits::raise_file_limit(), ..Starter::default() };
    limits::return_large_buffers();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
    let watched = reading.map(|reading| (reading, key));
    let status = runtime.block_on(serve(config, observers, place, starter, None, watched))?;
    runtime.shutdown_background();
    Ok(ExitCode::from(status))
}

async fn serve(
    config: Config,
    observers: Observers,
    place: Place,
    starter: Starter,
    keeper: Option<Keeper>,
    watched: Option<(Reading, Key)>,
) -> io::Result<u8> {
    let eager = config.definitions().any(|(_, server)| server.eager);
    let (max_message, has_tickets) = (config.max_message, config.has_tickets());
    let (sink, last_writer) = streams::stdout_sink()?;
    let (source, sink) = (streams::stdin_source()?, Arc::new(sink));
    let shown = watched.as_ref().map(|(reading, _)| (reading.name(), place.clone()));
    let driver = Driver::new(config, Clock::start(), starter, observers, keeper, place);
    watch_signals(&driver, true)?;
    tokio::spawn(driver.clone().keep_time());
    tokio::spawn(driver.clone().pump(Peer::Client));
    tokio::spawn(driver.clone().publish());
    driver.turn(|state| {
        // For the first ticket or key; whoever takes it asks for the next.
        state.feed(Event::Entropy(crate::random::bytes()));
        if has_tickets {
            state.feed(Event::Begin);
        }
    });
    if eager {
        driver.turn(|state| state.feed(Event::Warm));
    }
    let desk = shown
        .and_then(|(file, place)| desk::open(&driver, &place, About { file: Some(file), address: None }));
    // The end of a terminal ends us here, as it ends other servers on standard streams: only the file is watched.
    let watch =
        watched.map(|(reading, key)| tokio::spawn(reload::watch(driver.clone(), reading, key, (None, None))));
    driver.open(sink.clone());
    tokio::spawn(client::stdio::read(driver.clone(), source, max_message));
    let reader_watch = tokio::spawn(watch_reader(driver.clone(), sink));
    driver.ended().await;
    drop(desk);
    watch.inspect(tokio::task::JoinHandle::abort);
    driver.end_servers();
    let status = driver.client_has_read().await;
    driver.close_store();
    reader_watch.abort();
    driver.let_go_of_client();
    if let Some(thread) = last_writer {
        // It ends when everything it was given is written: its pipe has no other end any more.
        let _ = tokio::time::timeout(LAST_WRITE, tokio::task::spawn_blocking(move || thread.join())).await;
    }
    Ok(status)
}

/// Ends when asked to: by the client's host, a terminal, or a service manager.
/// With `hang_up` the end of a terminal is among them.
fn watch_signals(driver: &Arc<Driver>, hang_up: bool) -> io::Result<()> {
    let driver = driver.clone();
    signals::on_stop(hang_up, move |number| driver.turn(|state| state.feed(Event::Stop(number))))
}

/// Notices when nobody reads our output any more, even while there is nothing to write.
async fn watch_reader(driver: Arc<Driver>, sink: Arc<streams::Sink>) {
    sink.closed().await;
    driver.turn(|state| state.feed(Event::ClientGone(crate::driver::CLIENT)));
}
