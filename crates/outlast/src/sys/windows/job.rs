//! A job object: it holds a server and everything that the server starts, and ends all of them with us.

use super::check;
use super::proc::Pid;
use std::io;
use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle};
use std::process::Child;
use windows_sys::Win32::Foundation::{INVALID_HANDLE_VALUE, TRUE};
use windows_sys::Win32::System::Diagnostics::ToolHelp::{
    CreateToolhelp32Snapshot, TH32CS_SNAPTHREAD, THREADENTRY32, Thread32First, Thread32Next,
};
use windows_sys::Win32::System::JobObjects::{
    AssignProcessToJobObject, CreateJobObjectW, JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE,
    JOBOBJECT_BASIC_PROCESS_ID_LIST, JOBOBJECT_EXTENDED_LIMIT_INFORMATION, JobObjectBasicProcessIdList,
    JobObjectExtendedLimitInformation, QueryInformationJobObject, SetInformationJobObject,
    TerminateJobObject,
};
use windows_sys::Win32::System::Threading::{OpenThread, ResumeThread, THREAD_SUSPEND_RESUME};

/// Processes of one job that are looked at. More are not counted as signs of life.
const PROCESSES: usize = 1024;

#[derive(Debug)]
pub struct Job(OwnedHandle);

impl Job {
    /// An empty one. When its last handle is closed, which our end does however it comes, all in it ends.
    pub fn new() -> io::Result<Job> {
        // SAFETY: without a name and attributes; what it gives is ours alone.
        let handle = unsafe { CreateJobObjectW(std::ptr::null(), std::ptr::null()) };
        if handle.is_null() {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the handle was just made, for us alone.
        let job = Job(unsafe { OwnedHandle::from_raw_handle(handle) });
        let mut limits = JOBOBJECT_EXTENDED_LIMIT_INFORMATION::default();
        limits.BasicLimitInformation.LimitFlags = JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE;
        let size = size_of_val(&limits) as u32;
        let limits = (&raw const limits).cast();
        // SAFETY: the structure is the one that this kind of information has.
        check(unsafe {
            SetInformationJobObject(job.0.as_raw_handle(), JobObjectExtendedLimitInformation, limits, size)
        })?;
        Ok(job)
    }

    /// Takes a process in that was started suspended, and lets it run: nothing that it starts can escape.
    pub fn take(&self, child: &Child) -> io::Result<()> {
        // SAFETY: both handles are open.
        check(unsafe { AssignProcessToJobObject(self.0.as_raw_handle(), child.as_raw_handle()) })?;
        resume(child.id())
    }

    /// Ends everything in it.
    pub fn end(&self) {
        // SAFETY: the handle is open. There may be nothing left to end.
        unsafe { TerminateJobObject(self.0.as_raw_handle(), 1) };
    }

    /// Everything in it.
    pub fn processes(&self) -> Vec<Pid> {
        // Two numbers of 32 bits, then the list: the layout of JOBOBJECT_BASIC_PROCESS_ID_LIST.
        let head = std::mem::offset_of!(JOBOBJECT_BASIC_PROCESS_ID_LIST, ProcessIdList) / size_of::<usize>();
        let mut list = vec![0_usize; head + PROCESSES];
        let size = (list.len() * size_of::<usize>()) as u32;
        // SAFETY: as many bytes may be written as are there. If not all processes fit, those that do are written.
        unsafe {
            QueryInformationJobObject(
                self.0.as_raw_handle(),
                JobObjectBasicProcessIdList,
                list.as_mut_ptr().cast(),
                size,
                std::ptr::null_mut(),
            )
        };
        list[head..].iter().take_while(|pid| **pid != 0).map(|pid| Pid(*pid as u32)).collect()
    }
}

/// Lets the threads of a process run: it has one, which has not begun.
fn resume(pid: u32) -> io::Result<()> {
    // SAFETY: what it gives is ours alone.
    let snapshot = unsafe { CreateToolhelp32Snapshot(TH32CS_SNAPTHREAD, 0) };
    if snapshot == INVALID_HANDLE_VALUE {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the handle was just made, for us alone.
    let snapshot = unsafe { OwnedHandle::from_raw_handle(snapshot) };
    let mut thread = THREADENTRY32 { dwSize: size_of::<THREADENTRY32>() as u32, ..Default::default() };
    // SAFETY: the structure says how large it is.
    let mut more = unsafe { Thread32First(snapshot.as_raw_handle(), &mut thread) };
    while more == TRUE {
        if thread.th32OwnerProcessID == pid {
            resume_thread(thread.th32ThreadID)?;
        }
        // SAFETY: as above.
        more = unsafe { Thread32Next(snapshot.as_raw_handle(), &mut thread) };
    }
    Ok(())
}

fn resume_thread(id: u32) -> io::Result<()> {
    // SAFETY: what it gives is ours alone.
    let thread = unsafe { OpenThread(THREAD_SUSPEND_RESUME, 0, id) };
    if thread.is_null() {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the handle was just made, for us alone.
    let thread = unsafe { OwnedHandle::from_raw_handle(thread) };
    // SAFETY: the handle is open.
    if unsafe { ResumeThread(thread.as_raw_handle()) } == u32::MAX {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}
