//! Being asked to end, and asking others.

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use signal_hook::consts::{SIGINT, SIGTERM};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Notify;

/// Asks a process of ours to end in order. One that has just ended need not be asked.
pub fn ask_to_end(pid: u32) {
    let _ = kill(Pid::from_raw(pid as i32), Signal::SIGTERM);
}

/// Calls somebody with the number of each signal that asks us to end; a hang-up is one of them if so wished. Must be
/// called inside a runtime.
pub fn on_stop(hang_up: bool, told: impl Fn(u8) + Clone + Send + 'static) -> io::Result<()> {
    let always = [(SignalKind::terminate(), 15), (SignalKind::interrupt(), 2)];
    for (kind, number) in always.into_iter().chain(hang_up.then_some((SignalKind::hangup(), 1))) {
        let mut signals = signal(kind)?;
        let told = told.clone();
        tokio::spawn(async move {
            while signals.recv().await.is_some() {
                told(number);
            }
        });
    }
    Ok(())
}

/// Tells of each hang-up. Must be called inside a runtime.
pub fn on_hang_up() -> io::Result<Arc<Notify>> {
    let mut signals = signal(SignalKind::hangup())?;
    let told = Arc::new(Notify::new());
    let tells = told.clone();
    tokio::spawn(async move {
        while signals.recv().await.is_some() {
            tells.notify_one();
        }
    });
    Ok(told)
}

/// Tells a thread that waits for it that we were asked to end.
#[derive(Debug)]
pub struct Interrupt {
    signals: UnixStream,
    /// Without it the other end would always be readable.
    _wake: UnixStream,
}

impl Interrupt {
    pub fn new() -> io::Result<Interrupt> {
        let (wake, read) = UnixStream::pair()?;
        for signal in [SIGTERM, SIGINT] {
            signal_hook::low_level::pipe::register(signal, wake.try_clone()?)?;
        }
        Ok(Interrupt { signals: read, _wake: wake })
    }

    /// Waits so long, or for ever; whether a signal came.
    pub fn wait(&self, time: Option<Duration>) -> io::Result<bool> {
        let mut fds = [PollFd::new(self.signals.as_fd(), PollFlags::POLLIN)];
        let time =
            time.map_or(PollTimeout::NONE, |time| PollTimeout::try_from(time).unwrap_or(PollTimeout::MAX));
        match poll(&mut fds, time) {
            Err(nix::errno::Errno::EINTR) => Ok(false),
            ready => Ok(ready? > 0),
        }
    }
}
