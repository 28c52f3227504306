//! Pages of `docs` as a terminal shows them: without marks, in lines of a screen's width, and with the help that works
//! without a network in the place of links.

use super::{COMMANDS, TOPICS, wrapped};
use outlast_engine::settings::Setting;

/// Pages that are called otherwise as a word of `outlast help`.
const CALLED: [(&str, &str); 5] = [
    ("tasks-command", "tasks"),
    ("dashboard", "ui"),
    ("idempotency", "idempotency-key"),
    ("bounds", "max-in-flight"),
    ("README", "errors"),
];

/// What stands on a page, line by line.
enum Line<'a> {
    /// Begins or ends lines that are shown as they are.
    Fence,
    /// Separates the head of a table from its rows.
    Rule,
    Row(Vec<&'a str>),
    Text(&'a str),
}

/// A page for a terminal.
pub(super) fn page(page: &str) -> String {
    let mut text = String::new();
    let (mut shown_as_it_is, mut in_table) = (false, false);
    for line in page.lines() {
        let part = part(line);
        let first_row = matches!(part, Line::Row(_)) && !in_table;
        in_table = matches!(part, Line::Row(_) | Line::Rule);
        match part {
            Line::Fence => shown_as_it_is = !shown_as_it_is,
            _ if shown_as_it_is => text += &format!("    {line}\n"),
            Line::Rule => {}
            // The head of a table says nothing that its rows do not say.
            Line::Row(_) if first_row => {}
            Line::Row(cells) => text += &row(&cells),
            Line::Text(line) => text += &paragraph(line),
        }
    }
    text
}

fn part(line: &str) -> Line<'_> {
    let inner = line.strip_prefix('|').and_then(|line| line.strip_suffix('|'));
    match inner {
        _ if line.starts_with("```") => Line::Fence,
        Some(inner) if inner.bytes().all(|byte| b"|-: ".contains(&byte)) => Line::Rule,
        Some(inner) => Line::Row(inner.split(" | ").map(str::trim).collect()),
        None => Line::Text(line),
    }
}

fn row(cells: &[&str]) -> String {
    let (first, rest) = cells.split_first().unwrap_or((&"", &[]));
    paragraph(&format!("- {first}: {}", rest.join("; ")))
}

fn paragraph(line: &str) -> String {
    let line = without_links(&line.replace("**", ""));
    let line = line.trim_start_matches('#').trim_start();
    wrapped(line, if line.starts_with("- ") { 2 } else { 0 }) + "\n"
}

/// `[text](PAGE)` as `text (outlast help WORD)`, or as the text alone where no help of the program is about that page.
fn without_links(line: &str) -> String {
    let Some((before, rest)) = line.split_once('[') else { return line.to_owned() };
    let link = rest.split_once(']').and_then(|(text, rest)| {
        let (link, after) = rest.strip_prefix('(')?.split_once(')')?;
        Some((text, link, after))
    });
    let Some((text, link, after)) = link else {
        // It is no link; something behind it may be one.
        return format!("{before}[{}", without_links(rest));
    };
    let shown = match word(link) {
        Some(word) => format!("{text} (outlast help {word})"),
        None => text.to_owned(),
    };
    format!("{before}{shown}{}", without_links(after))
}

/// The word of `outlast help` that is about a page.
fn word(link: &str) -> Option<&str> {
    let (page, heading) = link.split_once('#').unwrap_or((link, ""));
    let name = page.rsplit('/').next()?.strip_suffix(".md")?;
    if name == "settings" && Setting::named(heading).is_some() {
        return Some(heading);
    }
    if let Some((_, word)) = CALLED.iter().find(|(called, _)| *called == name) {
        return Some(word);
    }
    let known = COMMANDS.iter().any(|command| command.name == name) || TOPICS.contains(&name);
    (known || name.starts_with('-')).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_become_help_that_works_without_a_network() {
        for (page, shown) in [
            (
                "a [-32001](-32001.md), [gone](-31002.md).",
                "a -32001 (outlast help -32001), gone (outlast help -31002).",
            ),
            ("[after a crash](../tasks.md#after-a-crash)", "after a crash (outlast help tasks)"),
            ("[a state folder](settings.md#state)", "a state folder (outlast help state)"),
            ("[below](#who-may) and [there](scale.md)", "below and there"),
            ("`[defaults]`, [the file](file.md)", "`[defaults]`, the file (outlast help file)"),
        ] {
            assert_eq!(without_links(page), shown);
        }
    }

    #[test]
    fn every_word_that_links_become_has_help() {
        for (_, word) in CALLED {
            assert!(super::super::about(word).is_some(), "{word}");
        }
    }

    #[test]
    fn tables_become_lists_and_commands_stay_whole() {
        let long = "x".repeat(90);
        let shown = page(&format!(
            "# Head\n\n| a | b | c |\n|---|--:|---|\n| **one** | two | three |\n\n```\n{long}\n```\n"
        ));
        assert_eq!(shown, format!("Head\n\n- one: two; three\n\n    {long}\n"));
    }
}
