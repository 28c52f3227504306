//! The guardian of a server is a job object: it needs no process, because the system itself ends what is in it when
//! our last handle closes.

use super::job::Job;
use super::limits::FileLimit;
use super::proc::Root;
use super::streams::End;
use crate::program;
use crate::sys::report::Report;
use outlast_engine::event::{Exit, StartFailure};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::windows::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use windows_sys::Win32::Foundation::ERROR_BAD_EXE_FORMAT;
use windows_sys::Win32::System::Console::{CTRL_BREAK_EVENT, GenerateConsoleCtrlEvent};
use windows_sys::Win32::System::Threading::{CREATE_NEW_PROCESS_GROUP, CREATE_SUSPENDED};

/// Reports that may wait: a start and an end of the server, and of the one before it.
const REPORTS: usize = 8;

/// No guardian is a program here.
pub const GUARDIAN: &str = "guardian-of";

pub fn run(_: &[OsString]) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// There is nothing to know of all of them.
#[derive(Clone, Debug, Default)]
pub struct Guardians;

/// Guards one server.
#[derive(Debug)]
pub struct Guardian {
    command: program::Command,
    job: Arc<Job>,
    /// The process that runs, 0 for none.
    pid: Arc<AtomicU32>,
    told: Sender<Report>,
    reports: Mutex<Option<Receiver<Report>>>,
}

/// Our ends of a server's streams.
#[derive(Debug)]
pub struct Ends {
    /// What it reads.
    pub to_server: End,
    /// What it writes.
    pub from_server: End,
    /// What it complains to.
    pub errors: End,
}

/// The guardian's reports, one after the other. None when the guardian is gone.
#[derive(Debug)]
pub struct Reports(Receiver<Report>);

impl Reports {
    /// Waits on this thread.
    pub fn next(&mut self) -> Option<Report> {
        self.0.blocking_recv()
    }

    /// Brings each to somebody.
    pub async fn each(mut self, mut told: impl FnMut(Report)) {
        while let Some(report) = self.0.recv().await {
            told(report);
        }
    }
}

impl Guardians {
    pub fn fork(&self, command: &[OsString]) -> io::Result<Guardian> {
        self.guard(command.to_vec().into())
    }

    fn guard(&self, command: program::Command) -> io::Result<Guardian> {
        let (told, reports) = channel(REPORTS);
        Ok(Guardian {
            command,
            job: Arc::new(Job::new()?),
            pid: Arc::default(),
            told,
            reports: Mutex::new(Some(reports)),
        })
    }

    pub fn spawn(&self, command: &program::Command, _: Option<FileLimit>) -> io::Result<Guardian> {
        self.guard(command.clone())
    }

    pub fn finish(&self, last: Vec<Guardian>) {
        last.into_iter().for_each(Guardian::finish);
    }
}

impl Guardian {
    /// The reports; they can be had once.
    pub fn reports(&self) -> io::Result<Reports> {
        let reports = self.reports.lock().unwrap_or_else(PoisonError::into_inner).take();
        reports.map(Reports).ok_or_else(|| io::ErrorKind::AlreadyExists.into())
    }

    /// What everything that it guards is below.
    pub fn root(&self) -> Root {
        Root(self.job.clone())
    }

    /// Starts the server on fresh pipes. What is left of an earlier one is ended first.
    pub fn start(&self) -> io::Result<Ends> {
        self.job.end();
        let (stdin, to_server) = io::pipe()?;
        let (from_server, stdout) = io::pipe()?;
        let (errors, stderr) = io::pipe()?;
        match self.spawn(stdin.into(), stdout.into(), stderr.into()) {
            Ok(child) => {
                self.pid.store(child.id(), Ordering::Relaxed);
                self.tell(Report::Started);
                let (told, pid) = (self.told.clone(), self.pid.clone());
                std::thread::Builder::new().name("server".into()).spawn(move || wait(child, &pid, &told))?;
            }
            Err(error) => self.tell(Report::StartFailed(failure(&error))),
        }
        Ok(Ends { to_server: to_server.into(), from_server: from_server.into(), errors: errors.into() })
    }

    fn spawn(&self, stdin: Stdio, stdout: Stdio, stderr: Stdio) -> io::Result<Child> {
        let (program, arguments) = self.command.words.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let mut command = Command::new(find(program));
        command.args(arguments).stdin(stdin).stdout(stdout).stderr(stderr);
        if let Some(directory) = &self.command.directory {
            command.current_dir(directory);
        }
        command.envs(self.command.variables.iter().cloned());
        for (name, _) in crate::config::own_variables() {
            command.env_remove(name);
        }
        // In a group of its own, so that a break reaches it and not us.
        let mut child = command.creation_flags(CREATE_SUSPENDED | CREATE_NEW_PROCESS_GROUP).spawn()?;
        if let Err(error) = self.job.take(&child) {
            // What cannot be guarded does not run.
            let _ = child.kill();
            return Err(error);
        }
        Ok(child)
    }

    fn tell(&self, report: Report) {
        // Who does not listen has let go of the server.
        let _ = self.told.try_send(report);
    }

    /// Here a server runs at once.
    pub fn go_first(&self) {}

    /// Asks the server to end, if it shares our console; otherwise the engine's next step is to end it.
    pub fn terminate(&self) {
        let group = self.pid.load(Ordering::Relaxed);
        if group != 0 {
            // SAFETY: two numbers.
            unsafe { GenerateConsoleCtrlEvent(CTRL_BREAK_EVENT, group) };
        }
    }

    /// Ends the server and all its descendants.
    pub fn kill(&self) {
        self.job.end();
    }

    /// Ends everything.
    pub fn finish(self) {
        self.job.end();
    }

    /// Nobody can end a job but us.
    pub fn is_lost(&self) {}
}

/// Waits for the end of a server and tells it.
fn wait(mut child: Child, pid: &AtomicU32, told: &Sender<Report>) {
    let own = child.id();
    let code = child.wait().ok().and_then(|status| status.code()).unwrap_or(1);
    // Another may have been started since.
    let _ = pid.compare_exchange(own, 0, Ordering::Relaxed, Ordering::Relaxed);
    // A code has 32 bits here; what does not fit is a failure all the same.
    let code = u8::try_from(code).unwrap_or(u8::MAX);
    let _ = told.blocking_send(Report::Exited(Exit::Code(code)));
}

fn failure(error: &io::Error) -> StartFailure {
    match error.kind() {
        io::ErrorKind::NotFound => StartFailure::NotFound,
        io::ErrorKind::PermissionDenied => StartFailure::NotExecutable,
        _ => match error.raw_os_error() {
            Some(code) if code == ERROR_BAD_EXE_FORMAT as i32 => StartFailure::NotExecutable,
            code => StartFailure::Refused(code.unwrap_or_default()),
        },
    }
}

/// The file of a program. A shell would try the endings of `PATHEXT`, and `npx` is `npx.cmd`; the system itself tries
/// `.exe` alone.
fn find(program: &OsStr) -> PathBuf {
    let path = Path::new(program);
    if path.extension().is_some() || path.components().count() > 1 {
        return path.to_owned();
    }
    let candidates = crate::config::search_path().into_iter().flat_map(|folder| {
        ["exe", "cmd", "bat", "com"].map(|ending| folder.join(path).with_extension(ending))
    });
    candidates.into_iter().find(|file| file.is_file()).unwrap_or_else(|| path.to_owned())
}

/// Why a command can certainly not be started: here only the attempt to start it tells.
pub fn missing(_: &[OsString]) -> Option<StartFailure> {
    None
}
