//! Who may come in: tokens, of which we know only a hash.

use crate::random;
use outlast_engine::hex;
use ring::digest::{SHA256, digest};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Bytes of a token file. More is no list of people.
const FILE: u64 = 1 << 20;

/// What a token begins with, so that people and scanners know one when they see it.
const PREFIX: &str = "outlast_";

/// Characters of a name.
const NAME: usize = 64;

/// The tokens that are let in.
#[derive(Debug, Default)]
pub struct Tokens(Vec<(Box<str>, [u8; 32])>);

impl Tokens {
    /// These too. Of two with one name both are let in, as one principal.
    pub fn and(mut self, others: impl IntoIterator<Item = (Box<str>, [u8; 32])>) -> Tokens {
        self.0.extend(others);
        self
    }

    /// Whether nobody is let in.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Reads lines `NAME SHA256-HEX`; empty lines and those that begin with `#` are skipped.
    pub fn read(path: &Path) -> Result<Tokens, String> {
        let shown = path.display();
        let mut text = String::new();
        // It may be a pipe, so its length is known only when it was read.
        File::open(path)
            .and_then(|file| file.take(FILE + 1).read_to_string(&mut text))
            .map_err(|error| format!("cannot read `{shown}`: {error}"))?;
        if text.len() as u64 > FILE {
            return Err(format!("`{shown}` is longer than {FILE} bytes"));
        }
        let mut tokens = Vec::new();
        for (number, line) in text.lines().map(str::trim).enumerate() {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let number = number + 1;
            if holds_token(line) {
                return Err(format!(
                    "`{shown}` line {number} holds a token, which is for its client alone: remove that line and keep \
                     the one that reads NAME SHA256-HEX (outlast token new NAME >> FILE)"
                ));
            }
            let wrong = || {
                format!(
                    "`{shown}` line {number}: write NAME SHA256-HEX and nothing else (outlast token new NAME >> FILE)"
                )
            };
            let (name, hash) = line.split_once(char::is_whitespace).ok_or_else(wrong)?;
            check_name(name)?;
            tokens.push((name.into(), hex::decode(hash.trim()).ok_or_else(wrong)?));
        }
        if tokens.is_empty() {
            return Err(format!("`{shown}` holds no token; make one with `outlast token new NAME`"));
        }
        Ok(Tokens(tokens))
    }

    /// The name of a token. Every hash is looked at in full, so that time tells nothing.
    pub fn name_of(&self, token: &str) -> Option<&str> {
        let hash = digest(&SHA256, token.as_bytes());
        let mut found = None;
        for (name, known) in &self.0 {
            let difference = known.iter().zip(hash.as_ref()).fold(0, |sum, (a, b)| sum | (a ^ b));
            if difference == 0 {
                found = Some(&**name);
            }
        }
        found
    }
}

/// A new token, and its line for the file.
pub fn new(name: &str) -> Result<(String, String), String> {
    check_name(name)?;
    let token = format!("{PREFIX}{}", hex::encode(&random::bytes::<32>()));
    let line = format!("{name} {}", hex::encode(digest(&SHA256, token.as_bytes()).as_ref()));
    Ok((token, line))
}

/// Whether a token stands in a line, whatever is around it. A name may begin as one, and is too short to be one.
fn holds_token(line: &str) -> bool {
    line.split(PREFIX)
        .skip(1)
        .any(|rest| rest.get(..64).is_some_and(|digits| hex::decode::<32>(digits).is_some()))
}

/// Whether somebody can be called so.
pub fn check_name(name: &str) -> Result<(), String> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "-_.@".contains(c);
    if name.is_empty() || name.len() > NAME || !name.chars().all(allowed) {
        return Err(format!("`{name}` is no name for a token: at most {NAME} letters, digits or -_.@"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> Result<Tokens, String> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        Tokens::read(file.path())
    }

    #[test]
    fn a_token_is_known_by_its_hash() {
        let (token, line) = new("alice").unwrap();
        let (other, other_line) = new("bob").unwrap();
        let tokens = file(&format!("# people\n\n{line}\n{other_line}\n")).unwrap();
        assert_eq!(tokens.name_of(&token), Some("alice"));
        assert_eq!(tokens.name_of(&other), Some("bob"));
        assert_eq!(tokens.name_of("outlast_"), None);
        assert!(!line.contains(&token));
    }

    #[test]
    fn a_bad_file_says_which_line() {
        assert!(file("alice\n").unwrap_err().contains("line 1"));
        assert!(file("alice 12\n").unwrap_err().contains("line 1"));
        let (token, line) = new("alice").unwrap();
        let both = file(&format!("{line}\ntoken: {token}\n")).unwrap_err();
        assert!(both.contains("line 2 holds a token") && !both.contains(&token), "{both}");
        assert!(file(&format!("outlast_ci {}\n", "0f".repeat(32))).is_ok());
        assert!(file("\n").unwrap_err().contains("no token"));
        assert!(file("a/b 00\n").unwrap_err().contains("no name"));
        assert!(new("a b").is_err() && new("").is_err());
    }
}
