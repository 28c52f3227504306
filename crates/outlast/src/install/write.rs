//! Reads a client's file and replaces it in one step, or not at all.
//!
//! The new file is written beside the old one, gets its owner and mode, reaches the disk, and takes
//! its name; nobody ever sees half of it. The old bytes stay as a backup. Extended attributes, access
//! lists and further hard links are not carried over.

use crate::sys::files::{make_alike, private};
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

/// The largest file that is read. What is larger is left alone.
const LARGEST: u64 = 64 << 20;

/// How many backups of one file there may be. At the last one nothing is changed any more.
const BACKUPS: u32 = 1000;

/// A file as it was read.
#[derive(Debug)]
pub struct Original {
    /// The file itself, behind every symbolic link.
    pub path: PathBuf,
    pub text: String,
    metadata: Metadata,
}

/// Reads a file. `Ok(None)` if there is none.
pub fn read(path: &Path) -> Result<Option<Original>, String> {
    let path = match fs::canonicalize(path) {
        Ok(path) => path,
        Err(error) if error.kind() == ErrorKind::NotFound && fs::symlink_metadata(path).is_err() => {
            return Ok(None);
        }
        Err(error) => return Err(format!("cannot be read: {error}")),
    };
    let metadata = fs::metadata(&path).map_err(|error| format!("cannot be read: {error}"))?;
    if !metadata.is_file() {
        return Err("is not a regular file".into());
    }
    if metadata.len() > LARGEST {
        return Err(format!("is larger than {} MiB", LARGEST >> 20));
    }
    let mut bytes = Vec::new();
    // It may grow while it is read.
    let whole = File::open(&path).and_then(|file| file.take(LARGEST + 1).read_to_end(&mut bytes));
    whole.map_err(|error| format!("cannot be read: {error}"))?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let good = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = good.iter().filter(|byte| **byte == b'\n').count() + 1;
        format!("line {line}: is not UTF-8")
    })?;
    Ok(Some(Original { path, text, metadata }))
}

/// Replaces a file and says where its backup is.
pub fn replace(original: &Original, text: &str) -> Result<PathBuf, String> {
    // Who may write the directory could replace it all the same; but somebody meant something.
    if original.metadata.permissions().readonly() {
        return Err("is read-only".into());
    }
    let failed = |what: &'static str| move |error: io::Error| format!("{what}: {error}");
    unchanged(original)?;
    let backup = back_up(original).map_err(failed("cannot write a backup beside it"))?;
    let fresh = beside(&original.path, &format!("outlast-new-{}", std::process::id()));
    let written =
        create(&fresh, text.as_bytes(), &original.metadata).map_err(failed("cannot write beside it"));
    if let Err(why) = written.and_then(|()| swap(original, &fresh)) {
        // A backup of what is still there; if it cannot be removed, it does no harm.
        let _ = fs::remove_file(&backup);
        return Err(why);
    }
    // The name is in the directory, which has to reach the disk too; if it does not, the old one is there.
    let _ = original
        .path
        .parent()
        .map(File::open)
        .transpose()
        .map(|folder| folder.map(|folder| folder.sync_all()));
    Ok(backup)
}

fn swap(original: &Original, fresh: &Path) -> Result<(), String> {
    // Looked at last of all: between this look and the next step nothing of ours takes time.
    let done = unchanged(original).and_then(|()| {
        fs::rename(fresh, &original.path).map_err(|error| format!("cannot be replaced: {error}"))
    });
    if done.is_err() {
        let _ = fs::remove_file(fresh);
    }
    done
}

fn unchanged(original: &Original) -> Result<(), String> {
    match fs::read(&original.path) {
        Ok(bytes) if bytes == original.text.as_bytes() => Ok(()),
        Ok(_) => Err("changed in the meantime".into()),
        Err(error) => Err(format!("went away in the meantime: {error}")),
    }
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".");
    name.push(ending);
    path.with_file_name(name)
}

/// Keeps the old bytes under the first name that is free: `FILE.outlast-backup`, then `….2`, `….3`.
fn back_up(original: &Original) -> io::Result<PathBuf> {
    let mut number = 1;
    loop {
        let ending =
            if number == 1 { "outlast-backup".to_owned() } else { format!("outlast-backup.{number}") };
        let path = beside(&original.path, &ending);
        match create(&path, original.text.as_bytes(), &original.metadata) {
            Ok(()) => return Ok(path),
            Err(error) if error.kind() == ErrorKind::AlreadyExists && number < BACKUPS => number += 1,
            Err(error) => return Err(error),
        }
    }
}

/// Makes a new file with the owner and mode of another. Until it has both, only we may read it.
fn create(path: &Path, bytes: &[u8], like: &Metadata) -> io::Result<()> {
    let mut file = private(OpenOptions::new().write(true).create_new(true)).open(path)?;
    let filled = fill(&mut file, bytes, like);
    if filled.is_err() {
        let _ = fs::remove_file(path);
    }
    filled
}

fn fill(file: &mut File, bytes: &[u8], like: &Metadata) -> io::Result<()> {
    file.write_all(bytes)?;
    make_alike(file, like)?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mcp.json");
        fs::write(&path, text).unwrap();
        (folder, path)
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_that_changed_in_the_meantime_is_kept() {
        let (folder, path) = file("old");
        let original = read(&path).unwrap().unwrap();
        fs::write(&path, "theirs").unwrap();
        assert_eq!(replace(&original, "ours").unwrap_err(), "changed in the meantime");
        assert_eq!(fs::read_to_string(&path).unwrap(), "theirs");
        assert_eq!(names(folder.path()), ["mcp.json"]);
        fs::remove_file(&path).unwrap();
        assert!(replace(&original, "ours").unwrap_err().contains("went away"));
    }

    #[test]
    fn backups_are_numbered_and_never_overwritten() {
        let (folder, path) = file("1");
        for text in ["2", "3", "4"] {
            replace(&read(&path).unwrap().unwrap(), text).unwrap();
        }
        let expected =
            ["mcp.json", "mcp.json.outlast-backup", "mcp.json.outlast-backup.2", "mcp.json.outlast-backup.3"];
        assert_eq!(names(folder.path()), expected);
        let texts = expected.map(|name| fs::read_to_string(folder.path().join(name)).unwrap());
        assert_eq!(texts, ["4", "1", "2", "3"]);
    }

    #[test]
    fn a_name_that_is_taken_leaves_everything_as_it_was() {
        let (folder, path) = file("old");
        let taken = beside(&path, &format!("outlast-new-{}", std::process::id()));
        fs::create_dir(&taken).unwrap();
        assert!(replace(&read(&path).unwrap().unwrap(), "new").is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        assert!(!names(folder.path()).iter().any(|name| name.contains("backup")));
    }

    #[test]
    fn what_is_no_text_is_not_read() {
        let (folder, path) = file("");
        fs::write(&path, b"{\n\xff").unwrap();
        assert_eq!(read(&path).unwrap_err(), "line 2: is not UTF-8");
        assert_eq!(read(folder.path()).unwrap_err(), "is not a regular file");
        assert!(read(&folder.path().join("none")).unwrap().is_none());
        crate::sys::files::link("nowhere", &folder.path().join("link")).unwrap();
        assert!(read(&folder.path().join("link")).unwrap_err().contains("cannot be read"));
    }
}
