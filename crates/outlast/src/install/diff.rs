//! What a person sees before a file is changed: the lines that differ, and in them nothing but what
//! we move.
//!
//! Only places that the readers named are shown: the keys `command` and `args`, the program, our own
//! words. Everything else that shares a line with them, the other arguments, `env`, headers, comments,
//! is `…`, unless it is punctuation. So no rule has to guess what a secret looks like.

use super::edit::Edit;
use super::server::{
    INSTALLED, Kind, Launch, Server, Span, Word, is_outlast, line_end, line_start, may_show,
};
use crate::observe::text::escape_up_to;
use outlast_engine::settings::{Kind as Values, Setting};
use std::fmt::Write;

/// One version of a file.
pub struct Side<'a> {
    pub text: &'a str,
    pub servers: &'a [Server],
}

/// The difference that edits make: whose it is, then lines that begin with `-` or `+`.
pub fn diff(old: &Side, new: &Side, edits: &[Edit], ours: &str) -> String {
    let (shown_old, shown_new) = (old.shown(ours), new.shown(ours));
    let mut out = String::new();
    let (mut whose, mut end) = (String::new(), 0);
    let (mut gone, mut come) = (String::new(), String::new());
    for (before, after) in hunks(old.text, new.text, edits) {
        let title = old.title(&before);
        if title != whose || !adjoin(old.text, end, before.start) {
            out += &std::mem::take(&mut gone);
            out += &std::mem::take(&mut come);
        }
        if title != whose {
            let _ = writeln!(out, "@@ {title}");
            whose = title;
        }
        end = before.end;
        let (less, more) =
            without_common(lines(old.text, before), lines(new.text, after), old.text, new.text);
        for line in less {
            let _ = writeln!(gone, "-{}", visible(&render(old.text, line, &shown_old)));
        }
        for line in more {
            let _ = writeln!(come, "+{}", visible(&render(new.text, line, &shown_new)));
        }
    }
    out + &gone + &come
}

impl Side<'_> {
    /// Places that may be shown, in order.
    fn shown(&self, ours: &str) -> Vec<Span> {
        let mut shown: Vec<Span> = Vec::new();
        for server in self.servers {
            let Kind::Stdio(launch) = &server.kind else { continue };
            let Some(program) = &launch.command.text else { continue };
            shown.extend(launch.keys.iter().cloned());
            let mut words = vec![&launch.command];
            if is_outlast(program, ours) {
                words.extend(own_words(launch));
            }
            let harmless = |text: &Option<String>| {
                text.as_deref().is_some_and(|text| may_show(text) || text.starts_with(INSTALLED))
            };
            shown.extend(words.into_iter().filter(|word| harmless(&word.text)).map(|word| word.span.clone()));
        }
        shown.sort_by_key(|span| span.start);
        shown
    }

    /// The servers to which a place belongs: those that begin in it, or the last one before it.
    fn title(&self, span: &Span) -> String {
        let within = self.servers.iter().filter(|server| span.contains(&server.at));
        let before =
            self.servers.iter().filter(|server| server.at < span.start).max_by_key(|server| server.at);
        let mut names: Vec<String> = within.map(|server| visible(&server.name)).collect();
        if names.is_empty() {
            names.extend(before.map(|server| visible(&server.name)));
        }
        names.join(", ")
    }
}

/// Our words among the arguments: the mark, flags that cannot hold a secret, `--`, the program behind it.
fn own_words(launch: &Launch) -> Vec<&Word> {
    let count = launch.wrapped().map_or(0, |program| program + 1);
    let arguments = &launch.arguments()[..count];
    let text = |at: usize| arguments.get(at).and_then(|word| word.text.as_deref()).unwrap_or_default();
    let shows = |at: usize| {
        let value_of_harmless = at > 0 && is_harmless(text(at - 1)) && !text(at).starts_with("--");
        at + 2 >= count || is_harmless(text(at)) || value_of_harmless
    };
    arguments.iter().enumerate().filter(|(at, _)| shows(*at)).map(|(_, word)| word).collect()
}

/// Whether a flag and its value may be shown: a time, a number, a switch or one of a few words.
fn is_harmless(flag: &str) -> bool {
    let Some(name) = flag.strip_prefix("--") else { return false };
    let kind = Setting::named(name).map(|setting| setting.kind);
    let open = |kind: Values| matches!(kind, Values::Path | Values::Rules | Values::Lines(_));
    flag.starts_with(INSTALLED) || kind.is_some_and(|kind| !open(kind))
}

/// The lines that edits touch, on both sides; edits on the same line are one.
fn hunks(old: &str, new: &str, edits: &[Edit]) -> Vec<(Span, Span)> {
    let mut hunks: Vec<(Span, Span)> = Vec::new();
    let mut moved = 0isize;
    for edit in edits {
        let start = edit.span.start.saturating_add_signed(moved);
        let before = line_start(old, edit.span.start)..line_end(old, edit.span.end);
        let after = line_start(new, start)..line_end(new, start + edit.text.len());
        moved += edit.text.len() as isize - edit.span.len() as isize;
        match hunks.last_mut() {
            Some(last) if before.start <= last.0.end => {
                last.0.end = last.0.end.max(before.end);
                last.1.end = last.1.end.max(after.end);
            }
            _ => hunks.push((before, after)),
        }
    }
    hunks
}

/// Whether a line begins before or right after the end of another.
fn adjoin(text: &str, end: usize, start: usize) -> bool {
    text.get(end..start).is_none_or(|between| between.matches('\n').count() <= 1)
}

fn lines(text: &str, span: Span) -> Vec<Span> {
    let mut found = Vec::new();
    let mut at = span.start;
    loop {
        let end = line_end(text, at);
        found.push(at..end);
        match text[end..].find('\n') {
            Some(newline) if end < span.end => at = end + newline + 1,
            _ => return found,
        }
    }
}

/// Drops the lines that are the same on both sides, at the beginning and at the end.
fn without_common(mut a: Vec<Span>, mut b: Vec<Span>, old: &str, new: &str) -> (Vec<Span>, Vec<Span>) {
    let same = |x: Option<&Span>, y: Option<&Span>| match (x, y) {
        (Some(x), Some(y)) => old[x.clone()] == new[y.clone()],
        _ => false,
    };
    while same(a.last(), b.last()) {
        a.pop();
        b.pop();
    }
    let common = a.iter().zip(&b).take_while(|(x, y)| same(Some(x), Some(y))).count();
    (a.split_off(common), b.split_off(common))
}

/// A line with only what may be shown.
fn render(text: &str, line: Span, shown: &[Span]) -> String {
    let mut out = String::new();
    let mut at = line.start;
    for span in shown.iter().filter(|span| span.start >= line.start && span.end <= line.end) {
        out.push_str(&covered(&text[at..span.start]));
        out.push_str(&text[span.clone()]);
        at = span.end;
    }
    out + &covered(&text[at..line.end])
}

/// What stands between: punctuation stays at both ends, the rest is `…`.
fn covered(gap: &str) -> String {
    let plain = |letter: char| letter.is_whitespace() || ":,=-[]{}".contains(letter);
    let start = gap.trim_start_matches(plain);
    if start.is_empty() {
        return gap.to_owned();
    }
    let end = gap.trim_end_matches(plain);
    format!("{}…{}", &gap[..gap.len() - start.len()], &gap[end.len()..])
}

/// A text from a file as a terminal may show it: nothing in it moves the cursor or turns the direction.
pub fn visible(text: &str) -> String {
    // Files are indented with tabs.
    text.split('\t').map(|part| escape_up_to(part, usize::MAX)).collect::<Vec<_>>().join("\t")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_named_places_and_punctuation_are_shown() {
        let line = r#"  "x": {"command": "npx", "args": ["k"], "env": {"T": "s3cret"}}, // s3cret"#;
        let at = line.find("\"command\"").unwrap();
        let npx = line.find("\"npx\"").unwrap();
        let shown = [at..at + 9, npx..npx + 5];
        assert_eq!(render(line, 0..line.len(), &shown), r#"  …: {"command": "npx", …"#);
        assert_eq!(covered(r#", "s3cret"]}"#), ", …]}");
        assert_eq!(covered(" = ["), " = [");
    }

    #[test]
    fn nothing_from_a_file_moves_the_cursor() {
        assert_eq!(visible("a\u{1b}[2Jb\u{202e}\tc"), "a\\u{1b}[2Jb\\u{202e}\tc");
    }
}
