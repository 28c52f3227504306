//! `cargo xtask order`: which functions a start and a plain call run, for the linker to lay side by side.
//!
//! The kernel brings a program in by pages, and a function here and one there brings in most of it: a wrapper that
//! ran half a megabyte of code held four. The list is a linker script, `crates/outlast/first.ld`; the build script
//! hands it to the linker. A name that is not there any more does no harm, and a function that is missing only lies
//! elsewhere, so the list need not be made for each change; the row for memory shows when it has grown old.
//!
//! Callgrind tells what ran, in three scenes: wrap mode, the door to a remote server, HTTP on both sides.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fmt::Write;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use super::http::client::{Client, Connection};
use super::link::Link;
use super::measures::SMALL;
use super::messages::{Call, Era};
use super::options::scratch;
use super::running::Running;
use super::targets::{Programs, Target, under_callgrind};

const SCRIPT: &str = "crates/outlast/first.ld";

const HEAD: &str = "\
/* What runs at every start and for every plain call, side by side, so that little of the program has to be brought
   in. Written by `cargo xtask order`; stars stand for hashes. */
SECTIONS
{
  .text.first :
  {
";

const TAIL: &str = "  }\n}\nINSERT BEFORE .text;\n";

type Scene = fn(&Programs, &OsStr) -> Result<()>;

/// What most processes run comes first.
const SCENES: [(&str, Scene); 3] = [("pipes", over_pipes), ("remote", to_remote), ("http", over_http)];

/// Calls of a scene: enough that what grows has grown.
const CALLS: u64 = 200;

pub fn run() -> Result<()> {
    if cfg!(debug_assertions) {
        return super::run_optimised("order", &[]);
    }
    let folder = scratch().join("order");
    let _ = std::fs::remove_dir_all(&folder);
    let programs = Programs::build(None)?;
    let mut patterns = Vec::new();
    for (name, scene) in SCENES {
        let folder = folder.join(name);
        std::fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
        scene(&programs, folder.join("%p").as_os_str())?;
        let more = patterns_of(&folder)?;
        patterns.extend(more.into_iter().filter(|name| !patterns.contains(name)).collect::<Vec<_>>());
    }
    std::fs::write(SCRIPT, script(&patterns)).with_context(|| format!("cannot write {SCRIPT}"))?;
    println!("{SCRIPT}: {} names", patterns.len());
    Ok(())
}

fn over_pipes(programs: &Programs, out: &OsStr) -> Result<()> {
    let command = programs.command(Target::Outlast, &[]);
    talk(Link::open_command(under_callgrind(&command, out), None)?)
}

fn to_remote(programs: &Programs, out: &OsStr) -> Result<()> {
    let mut server = Running::start("server", programs.server(&[]))?;
    let command = programs.remote(server.address()?);
    talk(Link::open_command(under_callgrind(&command, out), Some(server))?)
}

fn talk(mut link: Link) -> Result<()> {
    link.shake_hands()?;
    link.list_tools()?;
    let call = Call::echo(SMALL);
    for _ in 0..CALLS {
        link.call(&call, |_| Ok(()))?;
    }
    link.close_and_tell().map(drop)
}

fn over_http(programs: &Programs, out: &OsStr) -> Result<()> {
    let mut server = Running::start("server", programs.server(&[]))?;
    let command = programs.serve(Some(server.address()?), &[]);
    let mut outlast = Running::start("outlast", under_callgrind(&command, out))?;
    let address = outlast.address()?;
    for era in Era::ALL {
        let mut connection = Connection::open(address)?;
        let mut client = Client::enter(&mut connection, era)?;
        let call = client.prepare(Call::echo_of(era, SMALL));
        let first = client.fresh_ids(CALLS);
        for id in first..first + CALLS {
            connection.exchange(&call.bytes(id))?.expect_result(id)?;
        }
        if era == Era::Legacy {
            Connection::open(address)?.begin(&client.listen())?;
        }
    }
    outlast.end()?;
    server.end()
}

/// The names in everything that callgrind wrote, without what differs from build to build.
fn patterns_of(folder: &Path) -> Result<BTreeSet<String>> {
    let mut patterns = BTreeSet::new();
    for file in std::fs::read_dir(folder)? {
        let path = file?.path();
        let text =
            std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        patterns.extend(functions(&text).iter().filter_map(|name| pattern(name)));
    }
    ensure!(!patterns.is_empty(), "callgrind saw no function of outlast");
    Ok(patterns)
}

/// The functions of outlast itself that ran, of one process. Callgrind writes a name once, and then its number.
fn functions(text: &str) -> BTreeSet<String> {
    let (mut names, mut objects) = (BTreeMap::new(), BTreeMap::new());
    let (mut ours, mut found) = (false, BTreeSet::new());
    for line in text.lines() {
        let Some((kind, (number, name))) =
            line.split_once('=').and_then(|(kind, rest)| Some((kind, numbered(rest)?)))
        else {
            continue;
        };
        let known = match kind {
            "ob" | "cob" => &mut objects,
            "fn" | "cfn" => &mut names,
            _ => continue,
        };
        if let Some(name) = name {
            known.insert(number, name);
        }
        let name = known.get(number).copied().unwrap_or_default();
        match kind {
            // Of a section that it does not know by name valgrind does not say whose it is; libraries have the usual.
            "ob" => ours = name.ends_with("/outlast") || name == "???",
            "fn" if ours => drop(found.insert(name.to_owned())),
            _ => {}
        }
    }
    found
}

/// `(12) name`, or `(12)`.
fn numbered(text: &str) -> Option<(&str, Option<&str>)> {
    let (number, name) = text.strip_prefix('(')?.split_once(')')?;
    Some((number, name.strip_prefix(' ')))
}

/// A mangled name as the linker knows it, with stars in place of hashes. `None` for what is no name.
fn pattern(name: &str) -> Option<String> {
    // Callgrind numbers the depths of a recursion, the compiler its copies.
    let name = name.split('\'').next()?;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_$.".contains(&byte);
    if name.starts_with(|first: char| first.is_ascii_digit()) || !name.bytes().all(plain) {
        return None;
    }
    if name.starts_with("_ZN") {
        return Some(name.rfind("17h").map_or(name.to_owned(), |hash| format!("{}17h*", &name[..hash])));
    }
    if !name.starts_with("_R") {
        return Some(name.to_owned());
    }
    let mut parts = name.split('.').next()?.split("Cs");
    let mut pattern = parts.next()?.to_owned();
    for part in parts {
        // A crate: `Cs`, its hash, `_`, the length of its name, its name.
        let (_, rest) = part.split_once('_').unwrap_or(("", part));
        pattern += "Cs*_";
        pattern += rest;
    }
    Some(pattern)
}

fn script(patterns: &[String]) -> String {
    let mut script = HEAD.to_owned();
    for pattern in patterns {
        // Writing to a string cannot fail. What the compiler holds for cold runs too.
        let _ = writeln!(script, "    *(.text.{pattern} .text.unlikely.{pattern})");
    }
    script + TAIL
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_of_the_program_are_found_under_their_numbers() {
        let text = "ob=(1) /lib/ld.so\nfn=(1) strlen\ncob=(2) /x/release/outlast\ncfn=(2) main\n\
                    ob=(2)\nfn=(2)\nfn=(3) _ZN1a1b17h0123456789abcdefE'2\nob=(1)\nfn=(4) free\n";
        let found: Vec<_> = functions(text).into_iter().collect();
        assert_eq!(found, ["_ZN1a1b17h0123456789abcdefE'2", "main"]);
    }

    #[test]
    fn a_name_loses_what_differs_between_builds() {
        let is = |name: &str, expected: &str| assert_eq!(pattern(name).as_deref(), Some(expected));
        is("_ZN1a1b17h0123456789abcdefE'2", "_ZN1a1b17h*");
        is("_ZN1a1b17h0123456789abcdefE.llvm.77", "_ZN1a1b17h*");
        is("_RNvNtCsgEmfK2I1SDS_4core3fmt5write", "_RNvNtCs*_4core3fmt5write");
        is("_RNvMs5_NtCsjrHSEGnQ3l9_3std4kind.147", "_RNvMs5_NtCs*_3std4kind");
        is("main", "main");
        assert_eq!(pattern("0x0000000000128a60"), None);
        assert_eq!(pattern("(below main)"), None);
    }
}
