//! Which files there are: the one that was named, and what it includes.

use super::desk::Desk;
use super::place::{At, Severity, Source};
use super::tree::{self, Entry, Format};
use std::path::{Path, PathBuf};

/// The largest file. A larger one is refused.
pub const LARGEST: u64 = 1 << 20;
/// How deep files may include each other. What is deeper is refused.
const DEPTH: usize = 16;
/// How many files there may be in all.
const FILES: usize = 64;

/// Why a file cannot be read; where in it, if that is known.
pub struct NotRead {
    pub what: String,
    pub line: Option<usize>,
}

/// Reads a file: its path as it really is, and its text.
pub type Read<'a> = &'a dyn Fn(&Path) -> Result<(PathBuf, String), NotRead>;

/// A file that was read, in the order in which it counts: what is included comes before what includes it.
pub struct Part {
    pub format: Format,
    pub entries: Vec<Entry>,
}

/// Reads the file and what it includes.
pub fn gather(desk: &mut Desk<'_>, read: Read<'_>, path: &Path, name: &str) -> Vec<Part> {
    let mut gathering = Gathering { desk, read, above: Vec::new(), parts: Vec::new() };
    gathering.file(path, name, None);
    gathering.parts
}

struct Gathering<'d, 'a, 'r> {
    desk: &'d mut Desk<'a>,
    read: Read<'r>,
    /// The files that lead to the one that is read.
    above: Vec<PathBuf>,
    parts: Vec<Part>,
}

impl Gathering<'_, '_, '_> {
    fn file(&mut self, path: &Path, name: &str, included: Option<At>) {
        let (real, text) = match (self.read)(path) {
            Ok(found) => found,
            // One that was not found where it was looked for is named with its folder.
            Err(why) if included.is_none() => {
                return self.not_read(&path.display().to_string(), why, included);
            }
            Err(why) => return self.not_read(name, why, included),
        };
        if self.above.contains(&real) {
            let help = "a file that includes itself has no end; leave one of the two out".to_owned();
            return self.refuse(included, format!("`{name}` includes itself"), Some(help));
        }
        if self.desk.sources.iter().any(|source| source.path == real) {
            return self.refuse(included, format!("`{name}` is included twice"), None);
        }
        let format = format(path, &text);
        let number = self.desk.sources.len() as u16;
        self.desk.sources.push(Source::new(real.clone(), name.to_owned(), text));
        let text = std::mem::take(&mut self.desk.sources[usize::from(number)].text);
        let tree = tree::read(&text, format, number);
        self.desk.sources[usize::from(number)].text = text;
        match tree {
            Ok(entries) => self.part(real, format, entries),
            Err(wrong) => {
                let at = At { file: number, start: wrong.start as u32, end: wrong.end as u32 };
                self.desk.wrong_in_secret(at, wrong.what, None);
            }
        }
    }

    fn part(&mut self, real: PathBuf, format: Format, entries: Vec<Entry>) {
        let folder = real.parent().map(Path::to_path_buf).unwrap_or_default();
        self.above.push(real);
        for entry in entries.iter().filter(|entry| entry.name == "include" && format == Format::Toml) {
            for (written, at) in self.desk.texts(entry) {
                self.include(&folder, &written, at);
            }
        }
        self.above.pop();
        self.parts.push(Part { format, entries });
    }

    fn include(&mut self, folder: &Path, written: &str, at: At) {
        if self.above.len() >= DEPTH {
            return self.desk.wrong(at, format!("files include each other more than {DEPTH} deep"), None);
        }
        if self.desk.sources.len() >= FILES {
            return self.desk.wrong(at, format!("more than {FILES} files"), None);
        }
        self.file(&folder.join(written), written, Some(at));
    }

    fn refuse(&mut self, included: Option<At>, what: String, help: Option<String>) {
        self.desk.tell(Severity::Error, included, false, what, help);
    }

    fn not_read(&mut self, name: &str, why: NotRead, included: Option<At>) {
        if included.is_none() {
            self.desk.sources.push(Source::new(PathBuf::new(), name.to_owned(), String::new()));
        }
        let line = why.line.map(|line| format!("line {line}: ")).unwrap_or_default();
        self.refuse(included, format!("cannot read `{name}`: {line}{}", why.what), None);
    }
}

fn format(path: &Path, text: &str) -> Format {
    let ends = |wanted: &str| path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case(wanted));
    let begins = text.trim_start_matches(['\u{feff}', ' ', '\t', '\r', '\n']).starts_with(['{', '/']);
    if ends("json") || ends("jsonc") || begins { Format::Json } else { Format::Toml }
}

/// Reads a file of this machine.
pub fn read_file(path: &Path) -> Result<(PathBuf, String), NotRead> {
    let plain = |what: String| NotRead { what, line: None };
    let failed = |error: std::io::Error| plain(error.to_string());
    let real = std::fs::canonicalize(path).map_err(failed)?;
    let metadata = std::fs::metadata(&real).map_err(failed)?;
    if metadata.is_dir() {
        return Err(plain("it is a directory".into()));
    }
    if !metadata.is_file() {
        return Err(plain("it is not a regular file".into()));
    }
    if metadata.len() > LARGEST {
        let size = metadata.len() >> 20;
        return Err(plain(format!("it has {size} MiB; a file may have {} MiB", LARGEST >> 20)));
    }
    let bytes = std::fs::read(&real).map_err(failed)?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let good = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = memchr::memchr_iter(b'\n', good).count() + 1;
        NotRead { what: "it is not UTF-8".into(), line: Some(line) }
    })?;
    Ok((real, text))
}
