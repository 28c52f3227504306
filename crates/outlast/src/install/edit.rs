//! Puts outlast in front of a server and takes it away again, as edits of the text.
//!
//! `wrap` only replaces one word and inserts two, so what it does can be undone to the byte:
//! the old program moves as the literal that it was.

use super::server::{DASHES, Kind, Launch, List, Server, Span, is_outlast, not_movable};

/// Bytes and what takes their place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    pub span: Span,
    pub text: String,
}

/// What is to be done to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Aim {
    Install,
    Uninstall,
}

/// What is to be done about one server.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    Change(Vec<Edit>),
    /// It is as it should be, or nothing of ours.
    Fine,
    /// It is left alone for this reason.
    Unclear(&'static str),
}

/// Decides what is to be done about a server. `ours` is what we write for ourselves, with and
/// without the file's quotes.
pub fn judge(source: &str, server: &Server, aim: Aim, ours: &Ours) -> Verdict {
    let launch = match &server.kind {
        Kind::Stdio(launch) => launch,
        Kind::Unclear(why) => return Verdict::Unclear(why),
        Kind::Remote | Kind::NoCommand => return Verdict::Fine,
    };
    let Some(program) = launch.command.text.as_deref() else {
        return Verdict::Unclear("its command is no text");
    };
    match (aim, is_outlast(program, &ours.word)) {
        (Aim::Install, true) | (Aim::Uninstall, false) => Verdict::Fine,
        (Aim::Install, false) => match not_movable(program) {
            Some(why) => Verdict::Unclear(why),
            None => Verdict::Change(wrap(source, launch, &ours.literal)),
        },
        (Aim::Uninstall, true) => unwrap(source, launch).map_or_else(Verdict::Unclear, Verdict::Change),
    }
}

/// How outlast is called in a file.
#[derive(Debug, Clone)]
pub struct Ours {
    pub word: String,
    pub literal: String,
}

fn wrap(source: &str, launch: &Launch, ours: &str) -> Vec<Edit> {
    let program = &source[launch.command.span.clone()];
    let replaced = Edit { span: launch.command.span.clone(), text: ours.to_owned() };
    match &launch.list {
        Some(list) if launch.joined => {
            vec![insert(launch.command.span.start, format!("{ours}{0}{DASHES}{0}", list.joint))]
        }
        Some(list) => vec![replaced, front(list, program)],
        None => vec![replaced, insert(launch.missing.at, launch.missing.text(program))],
    }
}

fn front(list: &List, program: &str) -> Edit {
    match list.items.first() {
        Some(first) => insert(first.span.start, format!("{DASHES}{0}{program}{0}", list.joint)),
        // Without a space: see `Missing::text`.
        None => insert(list.span.start + 1, format!("{DASHES},{program}")),
    }
}

fn insert(at: usize, text: String) -> Edit {
    Edit { span: at..at, text }
}

fn unwrap(source: &str, launch: &Launch) -> Result<Vec<Edit>, &'static str> {
    let (Some(program), Some(list)) = (launch.wrapped(), &launch.list) else {
        return Err("it runs through outlast in a way that has no `--` and no program behind it");
    };
    if launch.joined {
        // Among all words, not among the arguments: everything before the program goes.
        return Ok(vec![remove(source, list, program + 1)?]);
    }
    let literal = &source[list.items[program].span.clone()];
    let restored = Edit { span: launch.command.span.clone(), text: literal.to_owned() };
    let written = launch.missing.text(literal);
    let at = launch.missing.at;
    if source[at..].starts_with(&written) && list.span.end == at + written.len() {
        return Ok(vec![restored, Edit { span: at..at + written.len(), text: String::new() }]);
    }
    Ok(vec![restored, remove(source, list, program + 1)?])
}

/// Takes the first words out of a list.
fn remove(source: &str, list: &List, count: usize) -> Result<Edit, &'static str> {
    const COMMENT: &str = "a comment stands between the words that would go";
    let (first, last) = (&list.items[0], &list.items[count - 1]);
    let gaps = list.items[..count].windows(2).map(|pair| pair[0].span.end..pair[1].span.start);
    let next = list.items.get(count).map(|next| next.span.start);
    let last_gap = next.map(|next| last.span.end..next);
    if gaps.chain(last_gap).any(|gap| !is_joint(&source[gap])) {
        return Err(COMMENT);
    }
    let (span, text) = match next {
        Some(next) => (first.span.start..next, ""),
        None if list.by_lines && !is_joint(&source[list.span.start..first.span.start]) => {
            return Err(COMMENT);
        }
        None if list.by_lines => (list.span.clone(), " []"),
        None => (first.span.start..last.span.end + trailing_comma(&source[last.span.end..list.span.end]), ""),
    };
    Ok(Edit { span, text: text.to_owned() })
}

fn is_joint(gap: &str) -> bool {
    gap.chars().all(|letter| letter.is_ascii_whitespace() || letter == ',' || letter == '-')
}

/// How far a comma reaches behind the last word; alone in brackets it would be a mistake.
fn trailing_comma(rest: &str) -> usize {
    let comma = rest.len() - rest.trim_start().len();
    if rest[comma..].starts_with(',') { comma + 1 } else { 0 }
}

/// The text with all edits made. They do not overlap.
pub fn apply(source: &str, edits: &[Edit]) -> String {
    let mut result = String::with_capacity(source.len() + 64);
    let mut at = 0;
    for edit in edits {
        result.push_str(&source[at..edit.span.start]);
        result.push_str(&edit.text);
        at = edit.span.end;
    }
    result.push_str(&source[at..]);
    result
}
