//! What is to become of a file: its new text, and the difference to show.
//!
//! A plan proves itself before anybody sees it: the new text is read again, every server must start
//! what it started before, and what install did must come undone to the byte. A file for which that
//! fails is left alone.

use super::clients::Shape;
use super::diff::{Side, diff};
use super::edit::{Aim, Edit, Ours, Verdict, apply, judge};
use super::server::{Kind, Problem, Server};
use super::{json, toml, yaml};

/// What is to become of a file.
#[derive(Debug)]
pub struct Plan {
    /// The new text; `None` if nothing is to be done.
    pub text: Option<String>,
    pub diff: String,
    /// Servers that are left alone: where, which, why.
    pub unclear: Vec<(usize, String, &'static str)>,
    /// How many servers were meant.
    pub meant: usize,
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
        serde_json::Value::from(word).to_string()
    };
    Ours { word: word.to_owned(), literal }
}

/// Plans a file. `only` names the servers that are meant; if it is empty, all are.
pub fn plan(source: &str, shape: Shape, aim: Aim, ours: &Ours, only: &[String]) -> Result<Plan, Problem> {
    let old = servers(source, shape)?;
    let mut plan = Plan { text: None, diff: String::new(), unclear: Vec::new(), meant: 0 };
    let mut edits: Vec<Edit> = Vec::new();
    let mut changed = vec![false; old.len()];
    let is_meant = |server: &Server| only.is_empty() || only.contains(&server.name);
    for (server, changed) in old.iter().zip(&mut changed).filter(|(server, _)| is_meant(server)) {
        plan.meant += 1;
        match judge(source, server, aim, ours) {
            Verdict::Fine => {}
            Verdict::Unclear(why) => plan.unclear.push((server.at, server.name.clone(), why)),
            Verdict::Change(some) => {
                edits.extend(some);
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
    let proved = same_servers(&old, &new, &changed, aim)
        && (aim == Aim::Uninstall || comes_undone(source, &text, &new, &changed, ours));
    if !proved {
        return Err(Problem::new(0, "it could not be changed so that it would come back as it is"));
    }
    let (before, after) = (Side { text: source, servers: &old }, Side { text: &text, servers: &new });
    plan.diff = diff(&before, &after, &edits, &ours.word);
    plan.text = Some(text);
    Ok(plan)
}

/// Whether every server starts what it started before, with or without outlast in front.
fn same_servers(old: &[Server], new: &[Server], changed: &[bool], aim: Aim) -> bool {
    let same = |(old, new): (&Server, &Server), changed: bool| match (&old.kind, &new.kind) {
        (Kind::Stdio(a), Kind::Stdio(b)) => match (changed, aim) {
            (false, _) => a.words() == b.words(),
            (true, Aim::Install) => behind_dashes(&b.words()) == Some(&a.words()),
            (true, Aim::Uninstall) => behind_dashes(&a.words()) == Some(&b.words()),
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

fn behind_dashes<'a, 'b>(words: &'a [Option<&'b str>]) -> Option<&'a [Option<&'b str>]> {
    words.iter().position(|word| *word == Some("--")).map(|dashes| &words[dashes + 1..])
}

fn comes_undone(source: &str, text: &str, new: &[Server], changed: &[bool], ours: &Ours) -> bool {
    let mut back: Vec<Edit> = Vec::new();
    for (server, _) in new.iter().zip(changed).filter(|(_, changed)| **changed) {
        match judge(text, server, Aim::Uninstall, ours) {
            Verdict::Change(edits) => back.extend(edits),
            Verdict::Fine | Verdict::Unclear(_) => return false,
        }
    }
    back.sort_by_key(|edit| edit.span.start);
    apply(text, &back) == source
}
