//! What is to become of a file: its new text, and the difference to show.
//!
//! A plan proves itself before anybody sees it: the new text is read again, every server must start
//! what it started before, and what install did must come undone to the byte. A file for which that
//! fails is left alone.

use super::clients::Shape;
use super::diff::{Side, diff};
use super::edit::{Aim, Edit, Ours, Verdict, apply, judge};
use super::server::{DASHES, INSTALLED, Kind, Problem, Server, quoted};
use super::{json, toml, yaml};

/// What is to become of a file.
#[derive(Debug, Default)]
pub struct Plan {
    /// The new text; `None` if nothing is to be done.
    pub text: Option<String>,
    pub diff: String,
    /// Servers that are left alone: where, which, why.
    pub unclear: Vec<(usize, String, &'static str)>,
    /// Servers that somebody put behind outlast by hand, and that uninstall leaves so.
    pub by_hand: Vec<String>,
    /// Servers that are changed, and the flags that each gets.
    pub changed: Vec<(String, Vec<String>)>,
    /// How many servers were meant.
    pub meant: usize,
}

/// What is wanted of a file.
#[derive(Clone, Copy)]
pub struct Wish<'a> {
    pub aim: Aim,
    pub ours: &'a Ours,
    /// Which servers; if none is named, all.
    pub only: &'a [String],
    /// The flags that a server is to have.
    pub flags: &'a dyn Fn(&Server) -> Vec<String>,
}

/// The servers of a file.
pub fn servers(source: &str, shape: Shape) -> Result<Vec<Server>, Problem> {
    match shape {
        Shape::Codex => toml::servers(source),
        Shape::Goose => yaml::servers(source),
        _ => json::servers::servers(source, shape),
    }
}

/// How outlast is called in a file of a shape.
pub fn ours(word: &str, shape: Shape) -> Ours {
    let plain = word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/._-".contains(&byte));
    let literal = if shape == Shape::Goose && plain {
        word.to_owned()
    } else {
        // A JSON text is one in TOML and in YAML too.
        quoted(word)
    };
    Ours { word: word.to_owned(), literal }
}

/// Plans a file.
pub fn plan(source: &str, shape: Shape, wish: Wish<'_>) -> Result<Plan, Problem> {
    let old = servers(source, shape)?;
    let mut plan = Plan::default();
    let mut edits: Vec<Edit> = Vec::new();
    let mut changed = vec![false; old.len()];
    let is_meant = |server: &Server| wish.only.is_empty() || wish.only.contains(&server.name);
    for (server, changed) in old.iter().zip(&mut changed).filter(|(server, _)| is_meant(server)) {
        plan.meant += 1;
        let flags = (wish.flags)(server);
        match judge(source, server, wish.aim, wish.ours, &flags) {
            Verdict::Fine => {}
            Verdict::ByHand => plan.by_hand.push(server.name.clone()),
            Verdict::Unclear(why) => plan.unclear.push((server.at, server.name.clone(), why)),
            Verdict::Change(some) => {
                edits.extend(some);
                plan.changed.push((server.name.clone(), flags));
                *changed = true;
            }
        }
    }
    if edits.is_empty() {
        return Ok(plan);
    }
    edits.sort_by_key(|edit| edit.span.start);
    let text = apply(source, &edits);
    let new = servers(&text, shape)?;
    let proved = same_servers(&old, &new, &changed, wish.aim)
        && (wish.aim != Aim::Install || comes_undone(source, &text, &new, &changed, wish.ours));
    if !proved {
        return Err(Problem::new(0, "it could not be changed so that it would come back as it is"));
    }
    let (before, after) = (Side { text: source, servers: &old }, Side { text: &text, servers: &new });
    plan.diff = diff(&before, &after, &edits, &wish.ours.word);
    plan.text = Some(text);
    Ok(plan)
}

/// Whether every server starts what it started before, with or without outlast in front.
fn same_servers(old: &[Server], new: &[Server], changed: &[bool], aim: Aim) -> bool {
    let same = |(old, new): (&Server, &Server), changed: bool| match (&old.kind, &new.kind) {
        (Kind::Stdio(a), Kind::Stdio(b)) => match (changed, aim) {
            (false, _) => a.words() == b.words(),
            (true, Aim::Install) => before_install(&b.words()).as_deref() == Some(&a.words()),
            (true, Aim::Uninstall) => before_install(&a.words()).as_deref() == Some(&b.words()),
            (true, Aim::UninstallAll) => behind_dashes(&a.words()) == Some(&b.words()),
        },
        (a, b) => std::mem::discriminant(a) == std::mem::discriminant(b) && !changed,
    };
    old.len() == new.len()
        && old
            .iter()
            .zip(new)
            .zip(changed)
            .all(|(pair, changed)| pair.0.name == pair.1.name && same(pair, *changed))
}

/// The command line of an entry before install changed it.
fn before_install<'b>(words: &[Option<&'b str>]) -> Option<Vec<Option<&'b str>>> {
    let rest = words.get(1).copied().flatten()?.strip_prefix(INSTALLED)?;
    match rest.strip_prefix('=') {
        None => behind_dashes(words).map(<[_]>::to_vec),
        Some(count) => {
            let kept = words.get(2 + count.parse::<usize>().ok()?..)?;
            Some(words[..1].iter().chain(kept).copied().collect())
        }
    }
}

fn behind_dashes<'a, 'b>(words: &'a [Option<&'b str>]) -> Option<&'a [Option<&'b str>]> {
    words.iter().position(|word| *word == Some(DASHES)).map(|dashes| &words[dashes + 1..])
}

fn comes_undone(source: &str, text: &str, new: &[Server], changed: &[bool], ours: &Ours) -> bool {
    let mut back: Vec<Edit> = Vec::new();
    for (server, _) in new.iter().zip(changed).filter(|(_, changed)| **changed) {
        match judge(text, server, Aim::Uninstall, ours, &[]) {
            Verdict::Change(edits) => back.extend(edits),
            Verdict::Fine | Verdict::ByHand | Verdict::Unclear(_) => return false,
        }
    }
    back.sort_by_key(|edit| edit.span.start);
    apply(text, &back) == source
}
