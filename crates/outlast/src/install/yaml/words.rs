//! The words of a line of YAML: plain, in single quotes, in double quotes, or a list of them in brackets.

use crate::install::server::{Span, Word};

/// The name before a colon, and where it stands; it ends right before the colon.
pub fn key(source: &str, line: Span) -> Option<(Span, String)> {
    let text = &source[line.clone()];
    let length = match text.chars().next()? {
        quote @ ('"' | '\'') => closing(text, quote)?,
        _ => text.find(": ").or_else(|| text.trim_end().strip_suffix(':').map(str::len))?,
    };
    let follows = &text[length..];
    let proper = follows == ":" || follows.starts_with(": ") || follows.trim_end() == ":";
    let span = line.start..line.start + length;
    let name = word(source, span.clone())?.text?;
    proper.then_some((span, name))
}

/// What stands behind a colon or a dash, without white space and without a comment.
pub fn value(source: &str, rest: Span) -> Option<Span> {
    let text = &source[rest.clone()];
    let start = text.len() - text.trim_start_matches(' ').len();
    let text = &text[start..];
    let length = match text.chars().next() {
        None | Some('#') => 0,
        Some(quote @ ('"' | '\'')) => {
            let length = closing(text, quote)?;
            let after = &text[length..];
            if !after.trim().is_empty() && !after.trim_start().starts_with('#') {
                return None;
            }
            length
        }
        Some('[') => brackets(text)?,
        Some(_) => text.find(" #").or_else(|| text.find("\t#")).unwrap_or(text.len()),
    };
    let start = rest.start + start;
    Some(start..start + text[..length].trim_end().len())
}

/// The length of a quoted text with its quotes.
fn closing(text: &str, quote: char) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = 1;
    loop {
        match *bytes.get(at)? {
            b'\\' if quote == '"' => at += 2,
            b'\'' if quote == '\'' && bytes.get(at + 1) == Some(&b'\'') => at += 2,
            byte if char::from(byte) == quote => return Some(at + 1),
            _ => at += 1,
        }
    }
}

/// The length of a list in brackets, if it ends on this line and nothing but a comment follows.
fn brackets(text: &str) -> Option<usize> {
    let mut at = 1;
    loop {
        match text[at..].chars().next()? {
            quote @ ('"' | '\'') => at += closing(&text[at..], quote)?,
            '[' | '{' | '#' => return None,
            ']' => break,
            letter => at += letter.len_utf8(),
        }
    }
    let after = text[at + 1..].trim_start();
    (after.is_empty() || after.starts_with('#')).then_some(at + 1)
}

/// The words of a list in brackets.
pub fn flow(source: &str, list: Span) -> Option<Vec<Word>> {
    let inner = source[list.clone()].strip_prefix('[')?.strip_suffix(']')?;
    let mut items = Vec::new();
    let mut at = 0;
    while !inner[at..].trim().is_empty() {
        let start = at + inner[at..].len() - inner[at..].trim_start_matches(' ').len();
        let text = &inner[start..];
        let length = match text.chars().next()? {
            quote @ ('"' | '\'') => closing(text, quote)?,
            _ => text.find(',').map_or(text, |comma| &text[..comma]).trim_end().len(),
        };
        let from = list.start + 1 + start;
        items.push(word(source, from..from + length)?);
        let after = &inner[start + length..];
        let comma = after.trim_start();
        match comma.strip_prefix(',') {
            Some(rest) => at = inner.len() - rest.len(),
            None if comma.is_empty() => break,
            None => return None,
        }
    }
    Some(items)
}

/// A literal and what it means; `None` if it is more than a word: a tag, an anchor, a block of text.
pub fn word(source: &str, span: Span) -> Option<Word> {
    let literal = &source[span.clone()];
    let text = match literal.chars().next()? {
        '"' => serde_json::from_str(literal).ok()?,
        '\'' => {
            let inner = literal.strip_prefix('\'')?.strip_suffix('\'')?;
            inner.replace("''", "'")
        }
        first => {
            let second = literal[first.len_utf8()..].chars().next();
            let dash = matches!(first, '-' | '?' | ':') && second.is_none_or(|next| next == ' ');
            let indicator = ",[]{}#&*!|>%@`".contains(first);
            let special = literal.contains(": ") || literal.ends_with(':') || literal.contains('\t');
            if dash || indicator || special {
                return None;
            }
            literal.to_owned()
        }
    };
    Some(Word { span, text: Some(text) })
}

/// Whether a word is a text to a reader of YAML: a plain one may also be a number or nothing.
pub fn is_text(word: &Word) -> bool {
    let Some(text) = &word.text else { return false };
    let plain = word.span.len() == text.len();
    let nothing = ["null", "Null", "NULL", "~", "true", "True", "TRUE", "false", "False", "FALSE"];
    !(plain && (nothing.contains(&text.as_str()) || text.parse::<f64>().is_ok() || text.starts_with("0x")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Option<String> {
        word(text, value(text, 0..text.len())?)?.text
    }

    #[test]
    fn words_are_read_as_yaml_reads_them() {
        for (text, meaning) in [
            ("npx", "npx"),
            ("  npx  # why", "npx"),
            ("a#b", "a#b"),
            ("\"a # b\" # c", "a # b"),
            ("'it''s'", "it's"),
            ("-y", "-y"),
            ("\"--\"", "--"),
            ("http://x", "http://x"),
            ("@scope/name", ""),
            ("\"\\u00e4\"", "ä"),
        ] {
            assert_eq!(of(text).unwrap_or_default(), meaning, "{text}");
        }
        for text in
            ["&anchor x", "*x", "!!str x", "|", ">-", "{a: b}", "- x", "a: b", "\"x\" y", "'x", "\"\\q\""]
        {
            assert!(of(text).is_none(), "{text}");
        }
    }

    #[test]
    fn lists_in_brackets_hold_words_only() {
        let words = |text: &str| {
            let items = flow(text, value(text, 0..text.len())?)?;
            Some(items.into_iter().filter_map(|item| item.text).collect::<Vec<_>>().join("|"))
        };
        assert_eq!(words("[]").as_deref(), Some(""));
        assert_eq!(words(" [ -y, \"a, b\", 'c', d ] # e").as_deref(), Some("-y|a, b|c|d"));
        assert_eq!(words("[a,]").as_deref(), Some("a"));
        for text in ["[a", "[a] b", "[[a]]", "[a, {b: c}]", "[a, , b]", "[\"a\" b]", "[a # b]"] {
            assert!(words(text).is_none(), "{text}");
        }
    }

    #[test]
    fn a_key_ends_at_its_colon() {
        let name = |text: &str| key(text, 0..text.len()).map(|(_, name)| name);
        assert_eq!(name("a: b").as_deref(), Some("a"));
        assert_eq!(name("a:b: c").as_deref(), Some("a:b"));
        assert_eq!(name("\"a: b\": c").as_deref(), Some("a: b"));
        assert_eq!(name("a b:").as_deref(), Some("a b"));
        assert_eq!(name("a:  ").as_deref(), Some("a"));
        for text in ["a", "\"a\" b: c", "? a", "- a: b", "*a : b"] {
            assert!(name(text).is_none(), "{text}");
        }
    }
}
