//! `outlast help TOPIC`: what concerns many commands. The pages are those of `docs`.

use super::terminal;

/// A topic: its name, one line about it, its page.
type Topic = (&'static str, &'static str, &'static str);

const PAGES: &[Topic] = &[
    ("exit-codes", "with what each command ends", include_str!("topics/exit-codes.md")),
    ("output", "stdout, stderr, JSON, colours", include_str!("topics/output.md")),
    ("files", "which files are read and written", include_str!("topics/files.md")),
    ("hand-off", "for clients that give up, whatever they hear", include_str!("topics/hand-off.md")),
];

/// Those that are made from tables.
const MADE: [(&str, &str); 4] = [
    ("settings", "all about every option"),
    ("errors", "all errors"),
    ("file", "every table and key of outlast.toml"),
    ("schema", "the JSON schema of outlast.toml, for editors"),
];

/// What can be asked for.
pub const TOPICS: &[&str] =
    &["settings", "errors", "exit-codes", "output", "files", "hand-off", "file", "schema"];

/// The page of a topic, for a terminal.
pub fn page(name: &str) -> Option<String> {
    PAGES.iter().find(|(known, ..)| *known == name).map(|(.., page)| terminal::page(page))
}

/// Every topic, a line each.
pub fn list() -> String {
    let about = |name: &&str| {
        let pages = PAGES.iter().map(|(name, about, _)| (*name, *about));
        let (name, about) = pages.chain(MADE).find(|(known, _)| known == name)?;
        Some(format!("    {name:<20}  {about}"))
    };
    TOPICS.iter().filter_map(about).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::super::commands::COMMANDS;
    use super::*;

    /// Commands that end with 0, with 2, or because their output cannot be written; `timeout-mcp` as the program whose
    /// place it takes.
    const PLAIN: [&str; 7] = ["cache", "completions", "demo-server", "help", "man", "timeout-mcp", "token"];

    /// Whether a page names a command, alone or with what stands before or behind it.
    fn names(page: &str, command: &str) -> bool {
        ["`NAME`", "`NAME ", "`outlast NAME`", "`outlast NAME "]
            .iter()
            .any(|form| page.contains(&form.replace("NAME", command)))
    }

    fn source(name: &str) -> &'static str {
        PAGES.iter().find(|(known, ..)| *known == name).unwrap().2
    }

    #[test]
    fn the_page_about_statuses_names_every_command_that_has_its_own() {
        for command in COMMANDS {
            let told = names(source("exit-codes"), command.name);
            assert_eq!(told, !PLAIN.contains(&command.name), "{}", command.name);
        }
    }

    #[test]
    fn the_page_about_output_names_every_command_that_prints_json() {
        let json = source("output").lines().find(|line| line.starts_with("- `--json`")).unwrap();
        for command in COMMANDS {
            assert_eq!(names(json, command.name), command.options.contains(&"json"), "{}", command.name);
        }
    }

    #[test]
    fn every_topic_is_listed_and_fits_a_terminal() {
        assert_eq!(TOPICS.len(), PAGES.len() + MADE.len());
        assert_eq!(list().lines().count(), TOPICS.len());
        for (name, ..) in PAGES {
            let text = page(name).unwrap();
            // What can be typed is not broken into lines.
            let wide = text.lines().find(|line| line.chars().count() > 80 && !line.starts_with("    "));
            assert_eq!(wide, None, "{name}");
            assert!(!text.contains("]("), "{text}");
        }
    }
}
