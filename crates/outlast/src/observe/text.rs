//! What is said to people: one line, bounded, and nothing in it can steer a terminal or hide what it says.
//!
//! Names and texts come from servers and clients. So whatever is no plain character is escaped: control
//! characters (also those above ASCII, which terminals obey), separators of lines and paragraphs, marks that
//! turn the direction of writing, and characters that nobody sees.

use std::borrow::Cow;

/// Bytes of a text that are shown. More: cut, and a sign says so.
pub const LINE: usize = 4 << 10;

/// A text as people may see it.
pub fn escape(text: &str) -> String {
    escape_up_to(text, LINE).into_owned()
}

/// The same of its first bytes.
pub fn escape_up_to(text: &str, most: usize) -> Cow<'_, str> {
    let shown = &text[..text.floor_char_boundary(most)];
    let dots = if shown.len() < text.len() { "…" } else { "" };
    if dots.is_empty() && shown.bytes().all(|byte| (0x20..0x7f).contains(&byte)) {
        return Cow::Borrowed(shown);
    }
    let mut line = String::with_capacity(shown.len() + dots.len());
    for c in shown.chars() {
        if is_odd(c) { line.extend(c.escape_unicode()) } else { line.push(c) }
    }
    Cow::Owned(line + dots)
}

fn is_odd(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}')
        || matches!(c, '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// A peer's text for a person: cut, and nothing in it can steer a terminal.
pub fn glimpse(bytes: &[u8], most: usize) -> String {
    // Not more than what may be shown is looked at; one byte more tells that there is more.
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(most + 4)]);
    escape_up_to(&text, most).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_steers_a_terminal_or_hides() {
        for odd in
            ['\n', '\u{1b}', '\u{7f}', '\u{9b}', '\u{2028}', '\u{2029}', '\u{202e}', '\u{2066}', '\u{200b}']
        {
            let shown = escape(&format!("a{odd}b"));
            assert_eq!(shown, format!("a\\u{{{:x}}}b", odd as u32));
        }
        for plain in ["", "a b", "größe", "日本語", "👍🏽"] {
            assert_eq!(escape(plain), plain);
        }
    }

    #[test]
    fn a_peers_text_is_cut_and_cannot_steer_a_terminal() {
        assert_eq!(glimpse(b"a\x1b[2Jb\nc", 6), "a\\u{1b}[2Jb…");
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        assert_eq!(escape_up_to("größe", 3), "gr…");
        assert_eq!(escape_up_to("größe", 100), "größe");
        assert!(escape(&"x".repeat(1 << 20)).len() < LINE + 4);
    }
}
