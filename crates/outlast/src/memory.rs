//! What servers answered, kept between starts: one small file for each server.
//!
//! A file is bounded, readable by its owner only, written beside its place and then moved there, and
//! believed only if it is for this very server (see `identity.rs`) and program. What is wrong with one costs
//! nothing but a slower start.

use crate::config;
use crate::store::Place;
use crate::sys::files::{make_folder, private, read_small};
use outlast_engine::memory::{BYTES, Memory};
use outlast_engine::method::Method;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::UNIX_EPOCH;

/// Clients that are remembered for one command; the longest ago goes.
const CLIENTS: usize = 8;

/// The longest file that is read.
const FILE: u64 = (CLIENTS * BYTES) as u64;

/// The memory of one command.
#[derive(Debug)]
pub struct Keeper {
    path: PathBuf,
    /// What the file must say to be believed.
    of: Value,
    memories: Vec<Memory>,
    pen: Pen,
}

impl Keeper {
    /// Reads what is kept for a server of this identity. `None` where there is no place to keep anything.
    pub fn open(place: &Place, identity: &str, command: &[OsString]) -> Option<Keeper> {
        let of = json!({"server": identity, "modified": modified(command)});
        let path = folder(place)?.join(format!("{:016x}.json", number(&of.to_string())));
        let memories = read(&path, &of).unwrap_or_default();
        Some(Keeper { path, of, memories, pen: Pen::default() })
    }

    /// What is kept.
    pub fn memories(&self) -> Vec<Memory> {
        self.memories.clone()
    }

    /// Keeps one, in place of what was kept for the same client.
    pub fn keep(&mut self, memory: Memory) {
        self.memories.retain(|kept| (kept.client, &kept.method) != (memory.client, &memory.method));
        self.memories.push(memory);
        let excess = self.memories.len().saturating_sub(CLIENTS);
        self.memories.drain(..excess);
        self.write();
    }

    /// Forgets everything about this command.
    pub fn forget(&mut self) {
        self.memories.clear();
        self.write();
    }

    fn write(&self) {
        self.pen.write(&self.path, render(&self.of, &self.memories));
    }
}

/// Writes on a thread of its own: no call waits for a disk. What cannot be written is not kept.
///
/// There is one thread at most, and of the texts that come while it writes only the newest is kept:
/// an older one never replaces a newer one.
#[derive(Clone, Debug, Default)]
struct Pen(Arc<Mutex<Paper>>);

#[derive(Debug, Default)]
struct Paper {
    next: Option<String>,
    writing: bool,
}

impl Pen {
    fn write(&self, path: &Path, text: String) {
        let mut paper = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        paper.next = Some(text);
        if paper.writing {
            return;
        }
        let (pen, path) = (self.clone(), path.to_owned());
        let thread = std::thread::Builder::new().name("memory".into()).spawn(move || {
            while let Some(text) = pen.next() {
                let _ = replace(&path, text.as_bytes());
            }
        });
        paper.writing = thread.is_ok();
    }

    fn next(&self) -> Option<String> {
        let mut paper = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let next = paper.next.take();
        paper.writing = next.is_some();
        next
    }
}

fn folder(place: &Place) -> Option<PathBuf> {
    match place {
        Place::Folder(state) => Some(state.join("instant")),
        Place::Memory => None,
    }
}

/// Removes everything that is kept; how many files there were.
pub fn clear(place: &Place) -> io::Result<usize> {
    let Some(folder) = folder(place) else { return Ok(0) };
    let entries = match fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        Err(error) => return Err(io::Error::other(crate::store::no_folder(&folder, &error))),
    };
    let mut count = 0;
    for entry in entries {
        fs::remove_file(entry?.path())?;
        count += 1;
    }
    Ok(count)
}

/// When the program was last changed: another program deserves no memory of the old one.
fn modified(command: &[OsString]) -> Option<u64> {
    let program = command.first()?;
    let path = if program.to_string_lossy().contains('/') {
        PathBuf::from(program)
    } else {
        config::search_path().into_iter().map(|folder| folder.join(program)).find(|path| path.is_file())?
    };
    let time = fs::metadata(path).ok()?.modified().ok()?;
    Some(time.duration_since(UNIX_EPOCH).ok()?.as_millis() as u64)
}

/// FNV-1a, for file names that stay the same.
fn number(text: &str) -> u64 {
    text.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |sum, byte| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

fn read(path: &Path, of: &Value) -> Option<Vec<Memory>> {
    let text = String::from_utf8(read_small(path, FILE).ok()?).ok()?;
    parse(&text, of)
}

#[derive(serde::Deserialize)]
struct Kept<'a> {
    of: Value,
    #[serde(borrow)]
    memories: Vec<KeptMemory<'a>>,
}

#[derive(serde::Deserialize)]
struct KeptMemory<'a> {
    client: u64,
    method: String,
    #[serde(borrow)]
    result: &'a RawValue,
    #[serde(borrow)]
    lists: Vec<(String, &'a RawValue)>,
}

fn parse(text: &str, of: &Value) -> Option<Vec<Memory>> {
    let kept: Kept<'_> = serde_json::from_str(text).ok()?;
    if kept.of != *of {
        return None;
    }
    let raw = |value: &RawValue| value.get().as_bytes().into();
    let memories = kept.memories.into_iter().map(|memory| Memory {
        client: memory.client,
        method: Method::new(&memory.method),
        result: raw(memory.result),
        lists: memory.lists.iter().map(|(method, list)| (Method::new(method), raw(list))).collect(),
    });
    Some(memories.filter(Memory::is_sound).take(CLIENTS).collect())
}

fn render(of: &Value, memories: &[Memory]) -> String {
    let text = |raw: &[u8]| String::from_utf8_lossy(raw).into_owned();
    let memories: Vec<String> = memories
        .iter()
        .map(|memory| {
            let lists: Vec<String> = memory
                .lists
                .iter()
                .map(|(method, list)| format!("[{},{}]", json!(method.as_str()), text(list)))
                .collect();
            format!(
                r#"{{"client":{},"method":{},"result":{},"lists":[{}]}}"#,
                memory.client,
                json!(memory.method.as_str()),
                text(&memory.result),
                lists.join(",")
            )
        })
        .collect();
    format!("{{\"of\":{of},\"memories\":[{}]}}\n", memories.join(","))
}

fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    make_folder(folder)?;
    let beside = path.with_extension(format!("{}.new", std::process::id()));
    let mut file = private(File::options().write(true).create(true).truncate(true)).open(&beside)?;
    file.write_all(bytes)?;
    drop(file);
    fs::rename(beside, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory(client: u64) -> Memory {
        Memory {
            client,
            method: Method::Initialize,
            result: br#"{"protocolVersion":"2025-11-25","x":1.0}"#[..].into(),
            lists: vec![(Method::ToolsList, br#"{"tools":[]}"#[..].into())],
        }
    }

    #[test]
    fn what_is_kept_is_read_back_byte_for_byte() {
        let of = json!({"command": ["x"]});
        let kept = vec![memory(1), memory(u64::MAX)];
        assert_eq!(parse(&render(&of, &kept), &of), Some(kept.clone()));
        assert_eq!(parse(&render(&of, &kept), &json!({"command": ["y"]})), None, "another command");
    }

    #[test]
    fn the_newest_text_is_the_one_that_stays() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("kept.json");
        for round in 0..100 {
            let pen = Pen::default();
            for text in ["old", "newer", "newest"] {
                pen.write(&path, format!("{round} {text}"));
            }
            while pen.0.lock().expect("it did not panic").writing {
                std::thread::yield_now();
            }
            assert_eq!(fs::read_to_string(&path).expect("written"), format!("{round} newest"));
        }
    }

    #[test]
    fn a_damaged_file_is_not_believed() {
        let of = json!(1);
        let whole = render(&of, &[memory(1)]);
        for cut in [0, 1, whole.len() / 2, whole.len() - 3] {
            assert_eq!(parse(&whole[..cut], &of), None);
        }
        let odd = whole.replace("protocolVersion", "somethingElse");
        assert_eq!(parse(&odd, &of), Some(Vec::new()));
    }
}
