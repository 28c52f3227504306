//! The pages about errors, in the program: an error names `outlast help CODE`, which works without a network.
//!
//! The same pages are in `docs/errors`; a test compares them.

use super::terminal;
use outlast_engine::error::Kind;

/// Each code and its page.
const PAGES: &[(&str, &str)] = &[
    ("-31001", include_str!("errors/-31001.md")),
    ("-31002", include_str!("errors/-31002.md")),
    ("-31003", include_str!("errors/-31003.md")),
    ("-31004", include_str!("errors/-31004.md")),
    ("-31005", include_str!("errors/-31005.md")),
    ("-31006", include_str!("errors/-31006.md")),
    ("-31007", include_str!("errors/-31007.md")),
    ("-31008", include_str!("errors/-31008.md")),
    ("-31010", include_str!("errors/-31010.md")),
    ("-31011", include_str!("errors/-31011.md")),
    ("-31012", include_str!("errors/-31012.md")),
    ("-31013", include_str!("errors/-31013.md")),
    ("-31014", include_str!("errors/-31014.md")),
    ("-31015", include_str!("errors/-31015.md")),
    ("-31020", include_str!("errors/-31020.md")),
    ("-31021", include_str!("errors/-31021.md")),
    ("-31022", include_str!("errors/-31022.md")),
    ("-31023", include_str!("errors/-31023.md")),
    ("-31024", include_str!("errors/-31024.md")),
    ("-32001", include_str!("errors/-32001.md")),
    ("-32603", include_str!("errors/-32603.md")),
    ("-32700", include_str!("errors/-32700.md")),
];

/// The page of a code (`-31002`, `31002`) or of a kind (`server-gone`), for a terminal.
pub(super) fn page(word: &str) -> Option<String> {
    let code = match Kind::ALL.iter().find(|kind| kind.name() == word) {
        Some(kind) => kind.code(false).to_string(),
        // Both codes are about lines of a client that are no messages.
        None if word.trim_start_matches('-') == "32600" => "-32700".to_owned(),
        None => format!("-{}", word.trim_start_matches('-')),
    };
    PAGES.iter().find(|(known, _)| *known == code).map(|(_, page)| terminal::page(page))
}

/// The kinds of errors.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    Kind::ALL.iter().map(|kind| kind.name())
}

/// Every code and its first line.
pub(super) fn index() -> String {
    let title = |page: &'static str| page.lines().next().unwrap_or_default().trim_start_matches("# ");
    let mut text = String::from("Errors of outlast itself; errors of a server pass unchanged.\n\n");
    for (_, page) in PAGES {
        text += &format!("  {}\n", title(page));
    }
    text + "\nAbout one of them: outlast help CODE\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_for_a_terminal_names_no_file() {
        for (code, _) in PAGES {
            let text = page(code).unwrap();
            assert!(!text.contains("](") && !text.contains("**") && !text.contains("docs/"), "{text}");
            assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        }
    }
}
