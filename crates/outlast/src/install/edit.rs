//! Puts outlast in front of a server and takes it away again, as edits of the text.
//!
//! Words are only inserted, and one is replaced, so what install does can be undone to the byte: the old program
//! moves as the literal that it was. An entry that ran through outlast before keeps what it had; words are added to
//! it, and uninstall takes out those and no others.

use super::server::{
    DASHES, INSTALLED, Kind, Launch, List, Mark, Server, Span, is_outlast, not_movable, quoted,
};

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
    /// Takes out what install put there.
    Uninstall,
    /// Takes outlast out wherever it is.
    UninstallAll,
}

impl Aim {
    /// The command that a person types for it.
    pub fn command(self) -> &'static str {
        if self == Aim::Install { "install" } else { "uninstall" }
    }
}

/// What is to be done about one server.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    Change(Vec<Edit>),
    /// It is as it should be, or nothing of ours.
    Fine,
    /// It was put behind outlast by hand, and stays so.
    ByHand,
    /// It is left alone for this reason.
    Unclear(&'static str),
}

/// Decides what is to be done about a server. `ours` is what we write for ourselves, with and
/// without the file's quotes; `flags` are those that it is to have.
pub fn judge(source: &str, server: &Server, aim: Aim, ours: &Ours, flags: &[String]) -> Verdict {
    let launch = match &server.kind {
        Kind::Stdio(launch) => launch,
        Kind::Unclear(why) => return Verdict::Unclear(why),
        Kind::Remote | Kind::NoCommand => return Verdict::Fine,
    };
    let Some(program) = launch.command.text.as_deref() else {
        return Verdict::Unclear("its command is not text");
    };
    let changed = |edits: Result<Vec<Edit>, _>| edits.map_or_else(Verdict::Unclear, Verdict::Change);
    match (aim, is_outlast(program, &ours.word), launch.mark()) {
        (Aim::Install, false, _) => match not_movable(program) {
            Some(why) => Verdict::Unclear(why),
            None => Verdict::Change(wrap(source, launch, ours, flags)),
        },
        (Aim::Install, true, None) => {
            add(launch, flags).map_or(Verdict::Fine, |edit| Verdict::Change(vec![edit]))
        }
        (Aim::Install, true, Some(_)) | (Aim::Uninstall | Aim::UninstallAll, false, _) => Verdict::Fine,
        (Aim::Uninstall, true, None) => Verdict::ByHand,
        (Aim::Uninstall, true, Some(Mark::Added(count))) => changed(take_added(source, launch, count)),
        (Aim::Uninstall | Aim::UninstallAll, true, _) => changed(unwrap(source, launch)),
    }
}

/// How outlast is called in a file.
#[derive(Debug, Clone)]
pub struct Ours {
    pub word: String,
    pub literal: String,
}

fn wrap(source: &str, launch: &Launch, ours: &Ours, flags: &[String]) -> Vec<Edit> {
    let program = source[launch.command.span.clone()].to_owned();
    let replaced = Edit { span: launch.command.span.clone(), text: ours.literal.clone() };
    let mut words = vec![quoted(INSTALLED)];
    words.extend(flags.iter().map(|flag| quoted(flag)));
    words.push(quoted(DASHES));
    match &launch.list {
        Some(list) if launch.joined => {
            words.insert(0, ours.literal.clone());
            vec![insert(launch.command.span.start, words.join(&list.joint) + &list.joint)]
        }
        Some(list) => {
            words.push(program);
            vec![replaced, front(list, &words)]
        }
        None => {
            words.push(program);
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            vec![replaced, insert(launch.missing.at, launch.missing.text(&words))]
        }
    }
}

fn front(list: &List, words: &[String]) -> Edit {
    match list.items.first() {
        Some(first) => insert(first.span.start, words.join(&list.joint) + &list.joint),
        // Without a space: see `Missing::text`.
        None => insert(list.span.start + 1, words.join(",")),
    }
}

/// Adds flags to an entry that runs through outlast already: those that it does not have. `None` if it has all, or if
/// it is another command of outlast than the one that takes them.
fn add(launch: &Launch, flags: &[String]) -> Option<Edit> {
    let missing = missing_flags(launch, flags);
    let (first, list) = launch.arguments().first().zip(launch.list.as_ref())?;
    let takes_flags = launch.wrapped().is_some() && first.text.as_deref()?.starts_with("--");
    if missing.is_empty() || !takes_flags {
        return None;
    }
    let mut words = vec![quoted(&format!("{INSTALLED}={}", missing.len()))];
    words.extend(missing.iter().map(|word| quoted(word)));
    Some(insert(first.span.start, words.join(&list.joint) + &list.joint))
}

/// Flags with their values, without those that an entry has.
fn missing_flags<'a>(launch: &Launch, flags: &'a [String]) -> Vec<&'a str> {
    let mut missing = Vec::new();
    let mut has = false;
    for word in flags {
        if word.starts_with("--") {
            let name = |flag: &str| flag.split('=').next().unwrap_or_default().to_owned();
            let kept = word == "--instant" && launch.flags().any(|flag| flag == "--keep");
            has = kept || launch.flags().any(|flag| name(flag) == name(word));
        }
        if !has {
            missing.push(word.as_str());
        }
    }
    missing
}

/// Takes out what install added to an entry that ran through outlast before.
fn take_added(source: &str, launch: &Launch, count: usize) -> Result<Vec<Edit>, &'static str> {
    let list = launch.list.as_ref().ok_or("its arguments are not a list")?;
    let before = usize::from(launch.joined);
    let words = list.items.get(before..).unwrap_or_default();
    let next = words.get(count + 1).ok_or("it has fewer arguments than install has added")?;
    let gaps = words[..count + 2].windows(2).map(|pair| pair[0].span.end..pair[1].span.start);
    if gaps.into_iter().any(|gap| !is_joint(&source[gap])) {
        return Err("a comment stands between the words that would go");
    }
    Ok(vec![Edit { span: words[0].span.start..next.span.start, text: String::new() }])
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
    let words: Vec<&str> = list.items[..=program].iter().map(|word| &source[word.span.clone()]).collect();
    let restored = Edit { span: launch.command.span.clone(), text: words[program].to_owned() };
    let written = launch.missing.text(&words);
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
