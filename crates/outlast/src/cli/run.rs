//! Does what a command line asks for.

use super::{Task, USAGE, keep};
use crate::callbacks::Callers;
use crate::config::Settings;
use crate::observe::Observers;
use crate::observe::access::AccessLog;
use crate::observe::recording::Recording;
use crate::observe::stderr::{Stderr, say};
use crate::observe::stdout;
use crate::observe::trace;
use crate::program::Program;
use crate::serve::Service;
use crate::store::{Home, Place};
use crate::{demo, install, memory, wrap};
use outlast_engine::event::StartFailure;
use outlast_engine::settings::counted;
use std::ffi::{OsStr, OsString};
use std::process::ExitCode;

pub(super) fn run(task: Task) -> ExitCode {
    let done = match task {
        Task::Print(text) => stdout::print(text).map(|_| ExitCode::SUCCESS),
        Task::PrintAndTell(text, told) => print_and_tell(&text, &told),
        Task::Wrap(settings, command) => {
            return with_observers(*settings, |config, observers, place| {
                wrap::run(config, observers, place, &command)
            });
        }
        Task::Remote(settings, remote) => {
            return with_observers(*settings, |config, observers, place| {
                wrap::run_remote(config, observers, place, remote)
            });
        }
        Task::Gateway(mut settings, programs) => {
            let reading = settings.reading.take();
            let callers = std::mem::take(&mut settings.callers);
            return with_observers(*settings, |config, observers, place| {
                wrap::run_gateway(config, observers, place, programs, callers, reading)
            });
        }
        Task::Serve(settings, service, programs) => return serve(*settings, *service, programs),
        Task::KeepService(name, settings, command) => return keep_service(&name, *settings, command),
        Task::Keep(request) => crate::keep::run(&request),
        Task::Guardian(command) => crate::sys::guardian::run(&command).map(|()| ExitCode::SUCCESS),
        Task::CannotStart(program, why) => Ok(cannot_start(&program, why)),
        Task::Demo => demo::run(),
        Task::ClearCache(place) => clear_cache(&place),
        Task::DemoServer => demo::server::run().map(|()| ExitCode::SUCCESS),
        Task::Install(request) => install::run(&request),
        Task::Doctor(options, command) => crate::doctor::server(options, &command),
        Task::DoctorClient => crate::doctor::client(),
        Task::Tasks(request) => crate::tasks::run(&request),
        Task::Holds(request) => crate::holds::run(&request),
        Task::Callbacks(request) => crate::callbacks::queue::run(&request),
        Task::Top(request) => crate::top::run(request),
        Task::Advise(request) => crate::advise::run(&request),
        Task::Ui(request) => crate::dashboard::alone::run(&request),
        Task::Clients(request) => crate::clients::run(&request),
        Task::Servers(request) => crate::servers::run(&request),
        Task::Check(path, json) => super::check::run(&path, json),
        Task::Explain(request) => crate::explain::run(&request),
        Task::Import(request) => crate::import::run(&request),
        Task::Replay(request) => crate::replay::run(&request),
    };
    done.unwrap_or_else(|error| failed(&error))
}

fn serve(mut settings: Settings, mut service: Service, programs: Vec<Program>) -> ExitCode {
    let (reading, database) = (settings.reading.take(), settings.database.take());
    if let Some(path) = &settings.service.access_log {
        match AccessLog::open(path, settings.log.format) {
            Ok(log) => service.access = Some(log),
            Err(error) => return cannot_write("access-log", path, &error),
        }
    }
    let callers = std::mem::take(&mut settings.callers);
    with_observers(settings, |config, observers, place| {
        let home = Home { place, database };
        crate::serve::run(config, observers, home, service, (programs, callers), reading)
    })
}

/// The service in the background that `--keep` starts. Another one may have been faster.
fn keep_service(name: &str, settings: Settings, command: Vec<OsString>) -> ExitCode {
    match keep::enter(name, &settings, &command) {
        Ok(None) => ExitCode::SUCCESS,
        Ok(Some(service)) => {
            let program = Program::Command(command.into());
            with_log(settings, service.log(), |config, observers, place| {
                crate::serve::run(
                    config,
                    observers,
                    place.into(),
                    *service,
                    (vec![program], Callers::default()),
                    None,
                )
            })
        }
        Err(error) => failed(&error),
    }
}

fn failed(error: &std::io::Error) -> ExitCode {
    say(&error.to_string());
    ExitCode::FAILURE
}

fn print_and_tell(text: &str, told: &str) -> std::io::Result<ExitCode> {
    // What goes with a line that nobody has is worth nothing.
    stdout::print(text)?;
    say(told);
    Ok(ExitCode::SUCCESS)
}

fn clear_cache(place: &Place) -> std::io::Result<ExitCode> {
    let count = memory::clear(place)?;
    say(&format!("deleted what was remembered of {}", counted(count, "server")));
    Ok(ExitCode::SUCCESS)
}

fn cannot_start(program: &OsStr, why: StartFailure) -> ExitCode {
    say(&format!("cannot start `{}`: {why}", program.to_string_lossy()));
    ExitCode::from(why.status())
}

fn cannot_write(setting: &str, path: &str, error: &std::io::Error) -> ExitCode {
    say(&format!("--{setting}: cannot write `{path}`: {error}"));
    ExitCode::from(USAGE)
}

fn with_observers(
    settings: Settings,
    run: impl FnOnce(outlast_engine::Config, Observers, Place) -> std::io::Result<ExitCode>,
) -> ExitCode {
    with_log(settings, Stderr::default(), run)
}

fn with_log(
    settings: Settings,
    stderr: Stderr,
    run: impl FnOnce(outlast_engine::Config, Observers, Place) -> std::io::Result<ExitCode>,
) -> ExitCode {
    for name in &settings.unknown {
        say(&format!("warn: unknown variable {name}; ignored"));
    }
    let open = |path: &str| trace::open(path, settings.engine.redact.clone());
    let trace = match settings.trace.as_deref().map(open).transpose() {
        Ok(trace) => trace,
        Err(error) => {
            return cannot_write("trace-messages", &settings.trace.unwrap_or_default(), &error);
        }
    };
    let place = settings.place();
    let collector = match settings.otlp.collector() {
        Ok(collector) => collector,
        Err(why) => {
            say(&format!("--otlp: {why}"));
            return ExitCode::from(USAGE);
        }
    };
    let mut observers = Observers::new(stderr, settings.log, trace).with_collector(collector);
    if settings.service.metrics {
        observers.measure();
    }
    // The service behind the door of --keep has the calls, and the same options.
    if let Some(path) = settings.record.filter(|_| !settings.engine.door) {
        match Recording::open(&path, settings.engine.redact.clone()) {
            Ok(recording) => observers.record(recording),
            Err(error) => return cannot_write("record", &path, &error),
        }
    }
    run(settings.engine, observers, place).unwrap_or_else(|error| {
        say(&format!("cannot start: {error}"));
        ExitCode::FAILURE
    })
}
