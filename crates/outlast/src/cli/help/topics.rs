//! `outlast help TOPIC`: what concerns many commands. The pages are those of `docs`.

use super::errors::for_terminal;

/// A topic: its name, one line about it, its page.
type Topic = (&'static str, &'static str, &'static str);

const PAGES: &[Topic] = &[
    ("exit-codes", "with what each command ends", include_str!("topics/exit-codes.md")),
    ("output", "stdout, stderr, JSON, colours", include_str!("topics/output.md")),
    ("files", "which files are read and written", include_str!("topics/files.md")),
];

/// Those that are made from tables.
const MADE: [(&str, &str); 3] = [
    ("settings", "all about every option (docs/settings.md)"),
    ("errors", "all errors"),
    ("schema", "the JSON schema of outlast.toml, for editors"),
];

/// What can be asked for.
pub const TOPICS: &[&str] = &["settings", "errors", "exit-codes", "output", "files", "schema"];

/// The page of a topic, for a terminal.
pub fn page(name: &str) -> Option<String> {
    PAGES.iter().find(|(known, ..)| *known == name).map(|(.., page)| for_terminal(page))
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
    use super::*;

    #[test]
    fn every_topic_is_listed_and_fits_a_terminal() {
        assert_eq!(TOPICS.len(), PAGES.len() + MADE.len());
        assert_eq!(list().lines().count(), TOPICS.len());
        for (name, ..) in PAGES {
            let text = page(name).unwrap();
            assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        }
    }
}
