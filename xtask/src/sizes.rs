//! `cargo xtask sizes`: how long the functions of the product are.
//!
//! A function makes one decision; one that has grown beyond a screen makes several. So the median is held at
//! eight lines, and none that decides may be longer than fifty. A table of data is no decision: it stands in
//! `EXCEPTIONS` with its reason.
//!
//! The formatter does the parsing: in formatted code the end of a function is the first closing brace with
//! the indentation of its `fn`. A function's length is the number of lines from its `fn` to that brace; blank
//! lines, comments and attributes do not count. Left out are modules that are compiled for tests only.

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use crate::amount::Amount;
use crate::shell::root;
use anyhow::{Context, Result, ensure};

const SOURCES: [&str; 2] = ["crates/engine/src", "crates/outlast/src"];

const MEDIAN: usize = 8;
const LONGEST: usize = 50;

/// Longer functions, each with the reason why it may be long. One that is gone or short again must leave.
const EXCEPTIONS: [Exception; 8] = [
    table("crates/engine/src/action.rs", "fmt", "the text of each note"),
    table("crates/engine/src/action.rs", "kind", "the name of each note for machines"),
    table("crates/engine/src/error.rs", "message", "the text of each kind of error"),
    table("crates/engine/src/engine/invariants.rs", "check_nothing_is_left", "a line for each machine"),
    table("crates/engine/src/engine.rs", "handle", "a line for each event: who handles it"),
    table("crates/engine/src/recording/words.rs", "happened", "the words for each event"),
    table("crates/engine/src/servers/server.rs", "new", "a line for each field"),
    table("crates/outlast/src/config.rs", "take", "a line for each setting: where it is kept"),
];

struct Exception {
    file: &'static str,
    name: &'static str,
    why: &'static str,
}

/// Data in the form of code: long, but nothing to think about.
const fn table(file: &'static str, name: &'static str, why: &'static str) -> Exception {
    Exception { file, name, why }
}

struct Function {
    file: String,
    line: usize,
    name: String,
    length: usize,
}

pub fn run(amount: &mut Amount) -> Result<()> {
    let mut functions = Vec::new();
    for source in SOURCES {
        functions.extend(of_folder(source)?);
    }
    functions.sort_by_key(|function| function.length);
    amount.add(functions.len() as u64, "functions");
    let median = functions.get(functions.len() / 2).map_or(0, |function| function.length);
    println!("{} functions, the median has {median} lines (at most {MEDIAN})", functions.len());
    ensure!(median <= MEDIAN, "the median function has {median} lines, more than {MEDIAN}");
    let (excused, too_long): (Vec<_>, Vec<_>) = functions
        .iter()
        .filter(|function| function.length > LONGEST)
        .partition(|long| long.excuse().is_some());
    excused.iter().for_each(|function| println!("{function}"));
    let known = |exception: &&Exception| excused.iter().any(|function| exception.is_about(function));
    let old: Vec<_> = EXCEPTIONS.iter().filter(|exception| !known(exception)).map(|old| old.name).collect();
    ensure!(old.is_empty(), "no longer above {LONGEST} lines; remove from EXCEPTIONS: {}", old.join(", "));
    let too_long: Vec<String> = too_long.iter().map(ToString::to_string).collect();
    ensure!(too_long.is_empty(), "above {LONGEST} lines, split them:\n  {}", too_long.join("\n  "));
    Ok(())
}

impl Function {
    fn excuse(&self) -> Option<&'static Exception> {
        EXCEPTIONS.iter().find(|exception| exception.is_about(self))
    }
}

impl Exception {
    fn is_about(&self, function: &Function) -> bool {
        self.file == function.file && self.name == function.name
    }
}

impl fmt::Display for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Function { file, line, name, length } = self;
        write!(f, "{length} lines: `{name}` ({file}:{line})")?;
        self.excuse().map_or(Ok(()), |exception| write!(f, ": {}", exception.why))
    }
}

fn of_folder(folder: &str) -> Result<Vec<Function>> {
    let mut files = Vec::new();
    collect(&root().join(folder), &mut files)?;
    let mut functions = Vec::new();
    let mut tests = BTreeSet::new();
    for path in &files {
        let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        let file = path.strip_prefix(root()).unwrap_or(path).display().to_string();
        tests.extend(test_files(path, &text));
        functions.push((path, of_text(&file, &text)));
    }
    let is_test = |path: &Path| path.ancestors().any(|path| tests.contains(&path.with_extension("")));
    Ok(functions.into_iter().filter(|(path, _)| !is_test(path)).flat_map(|(_, found)| found).collect())
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    Ok(())
}

/// The modules of a file that are only compiled for tests and lie in files of their own, without extension.
fn test_files(path: &Path, text: &str) -> Vec<PathBuf> {
    let name = path.file_stem().unwrap_or_default();
    let own = if ["lib", "main", "mod"].iter().any(|root| name == *root) {
        path.with_file_name("")
    } else {
        path.with_extension("")
    };
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let for_tests = (0..lines.len()).filter(|at| lines[*at] == "#[cfg(test)]");
    let items = for_tests.filter_map(|at| lines[at..].iter().find(|line| !line.starts_with("#[")));
    let names = items.filter_map(|line| line.rsplit_once("mod ")?.1.strip_suffix(';'));
    names.map(|name| own.join(name)).collect()
}

fn of_text(file: &str, text: &str) -> Vec<Function> {
    let lines: Vec<&str> = text.lines().collect();
    let mut functions = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        if lines[at].trim() == "#[cfg(test)]" && lines.get(at + 1).is_some_and(|line| line.ends_with('{')) {
            at = end_of(&lines, at + 1) + 1;
            continue;
        }
        if let Some(name) = name_of(lines[at]) {
            let body = &lines[at..=end_of(&lines, at)];
            // A declaration in a trait has no body.
            if !body.last().is_some_and(|line| line.ends_with(';')) {
                let length = body.iter().filter(|line| is_code(line)).count();
                functions.push(Function { file: file.to_owned(), line: at + 1, name, length });
            }
        }
        at += 1;
    }
    functions
}

fn is_code(line: &str) -> bool {
    let line = line.trim_start();
    !(line.is_empty() || line.starts_with("//") || line.starts_with("#["))
}

/// The name of the function that begins in a line.
fn name_of(line: &str) -> Option<String> {
    let (before, after) = line.split_once("fn ")?;
    let before = before.trim_start();
    let rest = match before.strip_prefix("pub(") {
        Some(visibility) => visibility.split_once(')')?.1,
        None => before.strip_prefix("pub ").unwrap_or(before),
    };
    let qualifiers = ["const", "async", "unsafe", "extern", "\"C\""];
    if !rest.split_whitespace().all(|word| qualifiers.contains(&word)) {
        return None;
    }
    let name: String = after.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
    (!name.is_empty()).then_some(name)
}

/// The last line of the item that begins in line `at`.
fn end_of(lines: &[&str], at: usize) -> usize {
    let indentation = lines[at].len() - lines[at].trim_start().len();
    let first = lines[at].trim_end();
    if first.ends_with('}') || first.ends_with(';') {
        return at;
    }
    let ends = |line: &&str| {
        let rest = line.get(indentation..).unwrap_or_default();
        let closes = rest == "}" || (rest.starts_with(')') && rest.ends_with(';'));
        closes && line[..indentation].trim().is_empty()
    };
    lines[at..].iter().position(ends).map_or(lines.len() - 1, |length| at + length)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"//! A file.

trait Says {
    fn declared(&self);
    fn declared_at_length(
        &self,
    ) -> bool;
}

pub(in crate::x) const fn short() {}

impl X {
    /// Of four lines.
    pub async fn four(&self) -> usize {

        // Why.
        #[allow(unused)]
        let x = || {
        };
    }
}

#[cfg(test)]
mod tests {
    fn left_out() {
    }
}

fn last(
    x: u8,
) {
}
"#;

    #[test]
    fn lines_of_code_are_counted_and_tests_are_left_out() {
        let found = of_text("x.rs", TEXT);
        let found: Vec<_> = found.iter().map(|f| (f.name.as_str(), f.line, f.length)).collect();
        assert_eq!(found, [("short", 10, 1), ("four", 14, 4), ("last", 29, 4)]);
    }

    #[test]
    fn files_of_tests_are_known_by_the_line_that_declares_them() {
        let text = "mod body;\n#[cfg(test)]\n#[path = \"x\"] // why\nmod tests;\n#[cfg(test)]\npub mod conformance;\n";
        let found = test_files(Path::new("/src/store.rs"), text);
        assert_eq!(found, [PathBuf::from("/src/store/tests"), PathBuf::from("/src/store/conformance")]);
        assert_eq!(test_files(Path::new("/src/lib.rs"), text)[0], PathBuf::from("/src/tests"));
    }
}
