//! Being asked to end, and asking others: console events, and for a process without a console an event with a name
//! that holds its number.

use super::{check, wide};
use std::io;
use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;
use tokio::signal::windows::{ctrl_break, ctrl_c, ctrl_close, ctrl_shutdown};
use tokio::sync::Notify;
use windows_sys::Win32::Foundation::{FALSE, TRUE, WAIT_OBJECT_0};
use windows_sys::Win32::System::Console::SetConsoleCtrlHandler;
use windows_sys::Win32::System::Threading::{
    CreateEventW, EVENT_MODIFY_STATE, INFINITE, OpenEventW, SetEvent, WaitForSingleObject,
};
use windows_sys::core::BOOL;

fn name(pid: u32) -> Vec<u16> {
    wide(format!(r"Local\outlast-stop-{pid}"))
}

/// Asks a process of ours to end in order. One that has just ended need not be asked.
pub fn ask_to_end(pid: u32) {
    // SAFETY: the name ends with a zero; what it gives is ours alone.
    let event = unsafe { OpenEventW(EVENT_MODIFY_STATE, FALSE, name(pid).as_ptr()) };
    if !event.is_null() {
        // SAFETY: the handle was just made, for us alone.
        let event = unsafe { OwnedHandle::from_raw_handle(event) };
        // SAFETY: the handle is open.
        unsafe { SetEvent(event.as_raw_handle()) };
    }
}

/// There is no such signal here, so it never comes.
pub fn on_hang_up() -> io::Result<Arc<Notify>> {
    Ok(Arc::default())
}

/// Calls somebody with the number that Unix has for each way to ask us to end. Must be called inside a runtime.
pub fn on_stop(_hang_up: bool, told: impl Fn(u8) + Clone + Send + 'static) -> io::Result<()> {
    let (mut interrupt, mut broken, mut closed, mut shutdown) =
        (ctrl_c()?, ctrl_break()?, ctrl_close()?, ctrl_shutdown()?);
    let asked = told.clone();
    tokio::spawn(async move {
        loop {
            let number = tokio::select! {
                _ = interrupt.recv() => 2,
                _ = broken.recv() => 15,
                _ = closed.recv() => 1,
                _ = shutdown.recv() => 15,
            };
            asked(number);
        }
    });
    let event = own_event()?;
    std::thread::Builder::new().name("stop".into()).spawn(move || {
        // SAFETY: the handle is open. The event stands for itself, so each waiting ends once for each time it is set.
        while unsafe { WaitForSingleObject(event.as_raw_handle(), INFINITE) } == WAIT_OBJECT_0 {
            told(15);
        }
    })?;
    Ok(())
}

/// The event by which others ask this process to end.
fn own_event() -> io::Result<OwnedHandle> {
    // SAFETY: the name ends with a zero; what it gives is ours alone.
    let event = unsafe { CreateEventW(std::ptr::null(), FALSE, FALSE, name(std::process::id()).as_ptr()) };
    if event.is_null() {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the handle was just made, for us alone.
    Ok(unsafe { OwnedHandle::from_raw_handle(event) })
}

/// Tells a thread that waits for it that we were asked to end.
#[derive(Debug)]
pub struct Interrupt;

static ASKED: (Mutex<bool>, Condvar) = (Mutex::new(false), Condvar::new());

/// Called by the system on a thread of its own.
unsafe extern "system" fn handle(_event: u32) -> BOOL {
    *ASKED.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
    ASKED.1.notify_all();
    TRUE
}

impl Interrupt {
    pub fn new() -> io::Result<Interrupt> {
        // SAFETY: the function is there as long as the program is.
        check(unsafe { SetConsoleCtrlHandler(Some(handle), TRUE) })?;
        Ok(Interrupt)
    }

    /// Waits so long, or for ever; whether we were asked.
    pub fn wait(&self, time: Option<Duration>) -> io::Result<bool> {
        let asked = ASKED.0.lock().unwrap_or_else(PoisonError::into_inner);
        let waits = |asked: &mut bool| !*asked;
        Ok(match time {
            Some(time) => {
                *ASKED.1.wait_timeout_while(asked, time, waits).unwrap_or_else(PoisonError::into_inner).0
            }
            None => *ASKED.1.wait_while(asked, waits).unwrap_or_else(PoisonError::into_inner),
        })
    }
}
