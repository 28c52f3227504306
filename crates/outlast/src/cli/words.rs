//! The words that may follow `outlast`, for what is made from them: the manual page and the completions.

/// A command, and the words that may follow it.
pub(super) struct Word {
    pub name: &'static str,
    pub then: &'static [&'static str],
    pub about: &'static str,
}

const fn word(name: &'static str, then: &'static [&'static str], about: &'static str) -> Word {
    Word { name, then, about }
}

/// Every command that people type.
pub(super) const WORDS: [Word; 13] = [
    word("cache", &["clear"], "forget what --instant remembers"),
    word("completions", super::completions::SHELLS, "print the completions for a shell"),
    word("demo", &[], "see it work in ten seconds"),
    word("doctor", &["client"], "examine a server, or the client it is added to"),
    word("help", &["settings"], "print the help, or all about every setting"),
    word("install", &[], "put outlast in front of the servers of a client"),
    word("keep", &["list", "stop"], "see or end what --keep has running"),
    word("man", &[], "print the manual page"),
    word("serve", &[], "serve a server over HTTP"),
    word(
        "tasks",
        &["list", "show", "result", "cancel", "wait"],
        "see and use calls that can be fetched later",
    ),
    word("timeout-mcp", &[], "drop-in for the program of that name"),
    word("token", &["new"], "make a token for those who may use `serve`"),
    word("uninstall", &[], "take outlast away from a client again"),
];

/// Names of clients follow these two.
pub(super) fn takes_a_client(word: &str) -> bool {
    matches!(word, "install" | "uninstall")
}

#[cfg(test)]
mod tests {
    use super::WORDS;
    use crate::cli::{help, parse};

    #[test]
    fn every_word_is_a_command() {
        for word in &WORDS {
            let answer = parse(vec![word.name.into()]);
            let refused = answer.err().map(|wrong| wrong.0).unwrap_or_default();
            assert!(!refused.contains(&format!("outlast -- {}", word.name)), "{refused}");
        }
        let unknown = parse(vec!["frobnicate".into()]).err().map(|wrong| wrong.0).unwrap_or_default();
        assert!(unknown.contains("outlast -- frobnicate"), "{unknown}");
    }

    #[test]
    fn every_command_of_the_help_is_a_word() {
        let help = help::text();
        let lines = help.lines().filter_map(|line| line.trim_start().strip_prefix("outlast "));
        let shown: Vec<&str> = lines
            .filter_map(|line| line.split_whitespace().next())
            .filter(|word| word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-'))
            .filter(|word| !word.starts_with('-'))
            .collect();
        assert!(shown.contains(&"serve"), "{shown:?}");
        for word in shown {
            assert!(WORDS.iter().any(|known| known.name == word), "`{word}` is not in words.rs");
        }
    }
}
