//! What the system knows of processes.

use super::job::Job;
use std::fmt;
use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle};
use std::sync::Arc;
use std::time::Duration;
use windows_sys::Win32::Foundation::{FILETIME, HANDLE, WAIT_TIMEOUT};
use windows_sys::Win32::System::Threading::{
    GetProcessIoCounters, GetProcessTimes, IO_COUNTERS, OpenProcess, PROCESS_NAME_WIN32,
    PROCESS_QUERY_LIMITED_INFORMATION, PROCESS_SYNCHRONIZE, QueryFullProcessImageNameW, WaitForSingleObject,
};

/// The number of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pid(pub u32);

impl Pid {
    pub fn as_raw(self) -> u32 {
        self.0
    }
}

impl fmt::Display for Pid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What all processes of one server are in.
#[derive(Clone, Debug)]
pub struct Root(pub(super) Arc<Job>);

impl PartialEq for Root {
    fn eq(&self, other: &Root) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// A job knows its processes, so there is nothing to read beforehand.
#[derive(Debug)]
pub struct Table;

impl Table {
    pub fn read() -> Table {
        Table
    }

    /// Everything that a server has running.
    pub fn below(&self, root: &Root) -> Vec<Pid> {
        root.0.processes()
    }
}

/// Everything that a server has running now.
pub fn descendants(root: &Root) -> Vec<Pid> {
    root.0.processes()
}

/// What a process has used so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Used {
    pub cpu: Duration,
    pub bytes: u64,
    pub switches: u64,
}

fn open(pid: u32) -> Option<OwnedHandle> {
    // SAFETY: what it gives is ours alone.
    let handle = unsafe { OpenProcess(PROCESS_QUERY_LIMITED_INFORMATION | PROCESS_SYNCHRONIZE, 0, pid) };
    // SAFETY: the handle was just made, for us alone.
    (!handle.is_null()).then(|| unsafe { OwnedHandle::from_raw_handle(handle) })
}

/// When it began, and what it has computed, in hundreds of nanoseconds.
fn times(process: HANDLE) -> Option<(u64, u64)> {
    let [mut began, mut ended, mut kernel, mut user] = [FILETIME::default(); 4];
    // SAFETY: the handle is open; four structures are written.
    let done = unsafe { GetProcessTimes(process, &mut began, &mut ended, &mut kernel, &mut user) };
    let number = |time: FILETIME| u64::from(time.dwHighDateTime) << 32 | u64::from(time.dwLowDateTime);
    (done != 0).then(|| (number(began), number(kernel) + number(user)))
}

/// `None` if it has ended.
pub fn used(pid: Pid) -> Option<Used> {
    let process = open(pid.0)?;
    let (_, cpu) = times(process.as_raw_handle())?;
    let mut io = IO_COUNTERS::default();
    // SAFETY: the handle is open; one structure is written. Without it CPU time must do.
    unsafe { GetProcessIoCounters(process.as_raw_handle(), &mut io) };
    let bytes = io.ReadTransferCount + io.WriteTransferCount + io.OtherTransferCount;
    Some(Used { cpu: Duration::from_nanos(cpu * 100), bytes, switches: 0 })
}

/// When a process began; `None` if it has ended.
pub fn started(pid: u32) -> Option<u64> {
    let process = open(pid)?;
    // SAFETY: the handle is open. One of a process that has ended is signalled.
    (unsafe { WaitForSingleObject(process.as_raw_handle(), 0) } == WAIT_TIMEOUT).then_some(())?;
    times(process.as_raw_handle()).map(|(began, _)| began)
}

/// The file that a process was started from.
pub fn name(pid: Pid) -> String {
    let Some(process) = open(pid.0) else { return String::new() };
    let mut name = [0; 1024];
    let mut length = name.len() as u32;
    // SAFETY: the handle is open; as many letters may be written as are there.
    let done = unsafe {
        QueryFullProcessImageNameW(
            process.as_raw_handle(),
            PROCESS_NAME_WIN32,
            name.as_mut_ptr(),
            &mut length,
        )
    };
    let path = String::from_utf16_lossy(if done == 0 { &[] } else { &name[..length as usize] });
    path.rsplit('\\').next().unwrap_or_default().to_owned()
}

/// Processes are told apart by when they began, which is a time of day here and differs after a restart.
pub fn boot() -> String {
    "windows".to_owned()
}

pub fn space() -> u64 {
    0
}
