//! Files that are this user's alone.

use crate::sys::lock::Kind;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::unistd::geteuid;
use std::fs::{self, File, Metadata, OpenOptions, Permissions, TryLockError};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::Path;

/// A file that is made so is nobody else's.
pub fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    options.mode(0o600)
}

/// Makes a folder that nobody else can enter, unless it is there.
pub fn make_folder(folder: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// Makes a folder that only this user can enter, whatever was there.
pub fn make_own_folder(folder: &Path) -> io::Result<()> {
    make_folder(folder)?;
    let found = fs::symlink_metadata(folder)?;
    if !found.is_dir() || found.uid() != geteuid().as_raw() {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "it belongs to somebody else"));
    }
    if found.mode() & 0o077 != 0 {
        fs::set_permissions(folder, Permissions::from_mode(0o700))?;
    }
    Ok(())
}

/// Takes a file that is there away from everybody else.
pub fn close_to_others(path: &Path) -> io::Result<()> {
    if fs::metadata(path)?.permissions().mode() & 0o077 != 0 {
        fs::set_permissions(path, Permissions::from_mode(0o600))?;
    }
    Ok(())
}

/// Whether nobody else may read or write a file.
#[cfg(test)]
pub fn is_private(path: &Path) -> io::Result<bool> {
    Ok(fs::metadata(path)?.permissions().mode() & 0o077 == 0)
}

/// Makes a link to something that need not be there.
#[cfg(test)]
pub fn link(to: &str, path: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(to, path)
}

/// Differs for two files that are there at once.
pub fn identity(path: &Path) -> io::Result<(u64, u64)> {
    fs::metadata(path).map(|found| (found.dev(), found.ino()))
}

/// Who we are.
pub fn user() -> String {
    geteuid().to_string()
}

/// Whether it can be started.
pub fn is_program(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

/// Gives a file the owner and mode of another.
pub fn make_alike(file: &File, like: &Metadata) -> io::Result<()> {
    let own = file.metadata()?;
    if (own.uid(), own.gid()) != (like.uid(), like.gid()) {
        fchown(file, Some(like.uid()), Some(like.gid()))?;
    }
    file.set_permissions(Permissions::from_mode(like.mode() & 0o7777))
}

/// Opens a file to append to, private even if it was there. A pipe that nobody reads is refused instead of waited
/// for.
pub fn open_record(path: &str) -> io::Result<File> {
    let mut options = File::options();
    let file = private(options.create(true).append(true)).custom_flags(nix::libc::O_NONBLOCK).open(path)?;
    let metadata = file.metadata()?;
    if metadata.is_file() && metadata.permissions().mode() & 0o777 != 0o600 {
        file.set_permissions(Permissions::from_mode(0o600))?;
    }
    // From now on only the thread that writes waits, and it may.
    fcntl(&file, FcntlArg::F_SETFL(OFlag::O_APPEND))?;
    Ok(file)
}

/// Our stderr becomes this file.
pub fn replace_stderr(file: &File) -> io::Result<()> {
    Ok(nix::unistd::dup2_stderr(file)?)
}

/// Reads a small file of our own. Whatever else lies in its place, it is not waited for, and nothing longer
/// than the bound is taken.
pub fn read_small(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let file = File::options().read(true).custom_flags(nix::libc::O_NONBLOCK).open(path)?;
    if !file.metadata()?.is_file() {
        let why = format!("`{}` is not a file", path.display());
        return Err(io::Error::new(io::ErrorKind::InvalidData, why));
    }
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Waits for a lock of a file.
pub fn lock(file: &File, kind: Kind) -> io::Result<()> {
    match kind {
        Kind::Shared => file.lock_shared(),
        Kind::Exclusive => file.lock(),
    }
}

/// Whether a lock could be had at once.
pub fn try_lock(file: &File, kind: Kind) -> io::Result<bool> {
    let tried = match kind {
        Kind::Shared => file.try_lock_shared(),
        Kind::Exclusive => file.try_lock(),
    };
    match tried {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Lets go of a lock.
pub fn unlock(file: &File) -> io::Result<()> {
    file.unlock()
}

/// Whether an open file is the one that has this name now.
pub fn is_at(file: &std::fs::File, path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    let number = file.metadata()?.ino();
    Ok(std::fs::metadata(path).is_ok_and(|there| there.ino() == number))
}
