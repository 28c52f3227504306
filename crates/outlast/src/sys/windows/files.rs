//! Files that are this user's alone: those below the user's profile are, by the rights that they inherit.

use super::check;
use crate::sys::lock::Kind;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read};
use std::os::windows::io::AsRawHandle;
use std::path::Path;
use windows_sys::Win32::Foundation::{ERROR_IO_PENDING, ERROR_LOCK_VIOLATION, HANDLE};
use windows_sys::Win32::Storage::FileSystem::{
    BY_HANDLE_FILE_INFORMATION, GetFileInformationByHandle, LOCKFILE_EXCLUSIVE_LOCK,
    LOCKFILE_FAIL_IMMEDIATELY, LockFileEx, UnlockFileEx,
};
use windows_sys::Win32::System::Console::{STD_ERROR_HANDLE, SetStdHandle};
use windows_sys::Win32::System::IO::OVERLAPPED;

/// The rights of the folder decide, which a new file inherits.
pub fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    options
}

/// Makes a folder, unless it is there.
pub fn make_folder(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)
}

/// Makes a folder that no link leads away from.
pub fn make_own_folder(folder: &Path) -> io::Result<()> {
    make_folder(folder)?;
    if !fs::symlink_metadata(folder)?.is_dir() {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "it is not a folder"));
    }
    Ok(())
}

pub fn close_to_others(_: &Path) -> io::Result<()> {
    Ok(())
}

/// Whether nobody else may read or write a file.
#[cfg(test)]
pub fn is_private(path: &Path) -> io::Result<bool> {
    // The rights of its folder decide.
    fs::metadata(path).map(|_| true)
}

/// Makes a link to something that need not be there.
#[cfg(test)]
pub fn link(to: &str, path: &Path) -> io::Result<()> {
    std::os::windows::fs::symlink_file(to, path)
}

/// Differs for two files that are there at once.
pub fn identity(path: &Path) -> io::Result<(u64, u64)> {
    let file = File::open(path)?;
    let mut found = BY_HANDLE_FILE_INFORMATION::default();
    // SAFETY: the handle is open, and the structure is the one that is asked for.
    check(unsafe { GetFileInformationByHandle(handle(&file), &mut found) })?;
    let number = u64::from(found.nFileIndexHigh) << 32 | u64::from(found.nFileIndexLow);
    Ok((u64::from(found.dwVolumeSerialNumber), number))
}

/// Who we are.
pub fn user() -> String {
    crate::config::any_variable("USERNAME").unwrap_or_default()
}

/// Whether it can be started.
pub fn is_program(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| found.is_file())
}

/// A file in the same folder has the same owner and rights; what is read-only stays so.
pub fn make_alike(file: &File, like: &Metadata) -> io::Result<()> {
    file.set_permissions(like.permissions())
}

/// Opens a file to append to.
pub fn open_record(path: &str) -> io::Result<File> {
    File::options().create(true).append(true).open(path)
}

/// Our stderr becomes this file: a copy of its handle that is never closed.
pub fn replace_stderr(file: &File) -> io::Result<()> {
    let copy = std::mem::ManuallyDrop::new(file.try_clone()?);
    // SAFETY: the handle is open and stays so.
    check(unsafe { SetStdHandle(STD_ERROR_HANDLE, handle(&copy)) })
}

/// Reads a small file of our own; nothing longer than the bound is taken.
pub fn read_small(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let file = File::open(path)?;
    if !file.metadata()?.is_file() {
        let why = format!("`{}` is not a file", path.display());
        return Err(io::Error::new(io::ErrorKind::InvalidData, why));
    }
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn handle(file: &File) -> HANDLE {
    file.as_raw_handle()
}

/// Locks one byte far behind the end: here a lock keeps others from reading, and a card must be read.
fn place() -> OVERLAPPED {
    let mut place = OVERLAPPED::default();
    place.Anonymous.Anonymous.OffsetHigh = 0x4000_0000;
    place
}

fn take_lock(file: &File, kind: Kind, how: u32) -> io::Result<()> {
    let kind = if kind == Kind::Exclusive { LOCKFILE_EXCLUSIVE_LOCK } else { 0 };
    // SAFETY: the handle is open; it is not overlapped, so the call is over when it returns.
    check(unsafe { LockFileEx(handle(file), kind | how, 0, 1, 0, &mut place()) })
}

/// Waits for a lock of a file.
pub fn lock(file: &File, kind: Kind) -> io::Result<()> {
    take_lock(file, kind, 0)
}

/// Whether a lock could be had at once.
pub fn try_lock(file: &File, kind: Kind) -> io::Result<bool> {
    let held = [ERROR_LOCK_VIOLATION, ERROR_IO_PENDING].map(|error| Some(error as i32));
    match take_lock(file, kind, LOCKFILE_FAIL_IMMEDIATELY) {
        Ok(()) => Ok(true),
        Err(error) if held.contains(&error.raw_os_error()) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Lets go of a lock.
pub fn unlock(file: &File) -> io::Result<()> {
    // SAFETY: as above.
    check(unsafe { UnlockFileEx(handle(file), 0, 1, 0, &mut place()) })
}

/// Whether an open file is the one that has this name now. A file that is open cannot be replaced here.
pub fn is_at(_: &std::fs::File, path: &Path) -> io::Result<bool> {
    Ok(path.exists())
}
