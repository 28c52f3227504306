//! Where things stand in a JSON document that a person may have written: comments and trailing commas
//! are welcome, everything else is strict.
//!
//! The result is a tree of places, not of values: what is edited is the text itself. Recursion is
//! bounded by `DEPTH`, since a file is not ours.
//!
//! Not here: what a server looks like (`json/servers.rs`).

pub mod servers;

use super::server::{Problem, Span};

/// How deep values may be nested. What is deeper is left alone.
pub const DEPTH: usize = 128;

/// A value and where it stands.
#[derive(Debug)]
pub struct Node {
    pub span: Span,
    pub value: Value,
}

#[derive(Debug)]
pub enum Value {
    Object(Vec<Member>),
    Array(Vec<Node>),
    Text,
    /// A number, `true`, `false` or `null`.
    Plain,
}

#[derive(Debug)]
pub struct Member {
    pub key: Span,
    pub name: String,
    pub node: Node,
}

impl Node {
    pub fn members(&self) -> &[Member] {
        if let Value::Object(members) = &self.value { members } else { &[] }
    }

    /// The member with a name. The last one counts, as it does for the programs that read such files.
    pub fn get(&self, name: &str) -> Option<&Member> {
        self.members().iter().rev().find(|member| member.name == name)
    }

    /// What a text means; `None` for anything else, and for a text that is no Unicode.
    pub fn text(&self, source: &str) -> Option<String> {
        matches!(self.value, Value::Text).then(|| decode(&source[self.span.clone()])).flatten()
    }
}

/// Reads a whole document.
pub fn parse(source: &str) -> Result<Node, Problem> {
    let start = if source.starts_with('\u{feff}') { 3 } else { 0 };
    let mut scanner = Scanner { bytes: source.as_bytes(), source, at: start, depth: 0 };
    scanner.skip()?;
    if scanner.peek().is_none() {
        return Err(scanner.problem("the file is empty"));
    }
    let node = scanner.value()?;
    scanner.skip()?;
    match scanner.peek() {
        None => Ok(node),
        Some(_) => Err(scanner.problem("something follows the end of the document")),
    }
}

fn decode(literal: &str) -> Option<String> {
    serde_json::from_str(literal).ok()
}

struct Scanner<'a> {
    bytes: &'a [u8],
    source: &'a str,
    at: usize,
    depth: usize,
}

impl Scanner<'_> {
    fn problem(&self, what: &str) -> Problem {
        Problem::new(self.at, what)
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn take(&mut self, byte: u8) -> bool {
        let there = self.peek() == Some(byte);
        self.at += usize::from(there);
        there
    }

    /// Passes over white space and comments.
    fn skip(&mut self) -> Result<(), Problem> {
        loop {
            match self.peek() {
                Some(b' ' | b'\t' | b'\n' | b'\r') => self.at += 1,
                Some(b'/') => self.comment()?,
                _ => return Ok(()),
            }
        }
    }

    fn comment(&mut self) -> Result<(), Problem> {
        let rest = &self.bytes[self.at..];
        let length = match rest.get(1) {
            Some(b'/') => memchr::memchr2(b'\n', b'\r', rest).unwrap_or(rest.len()),
            Some(b'*') => match memchr::memmem::find(&rest[2..], b"*/") {
                Some(end) => end + 4,
                None => return Err(self.problem("a comment has no end")),
            },
            _ => return Err(self.problem("`/` begins no comment")),
        };
        self.at += length;
        Ok(())
    }

    fn value(&mut self) -> Result<Node, Problem> {
        let start = self.at;
        let value = match self.peek() {
            Some(b'{') => self.nested(Scanner::object)?,
            Some(b'[') => self.nested(Scanner::array)?,
            Some(b'"') => {
                self.string()?;
                Value::Text
            }
            Some(_) => self.plain()?,
            None => return Err(self.problem("the file ends too early")),
        };
        Ok(Node { span: start..self.at, value })
    }

    fn nested(&mut self, read: fn(&mut Self) -> Result<Value, Problem>) -> Result<Value, Problem> {
        if self.depth == DEPTH {
            return Err(self.problem("values are nested too deeply"));
        }
        self.depth += 1;
        self.at += 1;
        let value = read(self);
        self.depth -= 1;
        value
    }

    fn object(&mut self) -> Result<Value, Problem> {
        let mut members = Vec::new();
        loop {
            self.skip()?;
            if self.take(b'}') {
                return Ok(Value::Object(members));
            }
            members.push(self.member()?);
            self.skip()?;
            if !self.take(b',') && self.peek() != Some(b'}') {
                return Err(self.problem("expected `,` or `}`"));
            }
        }
    }

    fn member(&mut self) -> Result<Member, Problem> {
        if self.peek() != Some(b'"') {
            return Err(self.problem("expected a name in double quotes"));
        }
        let start = self.at;
        self.string()?;
        let key = start..self.at;
        self.skip()?;
        if !self.take(b':') {
            return Err(self.problem("expected `:`"));
        }
        self.skip()?;
        // A name that is no Unicode is none that we look for.
        let name = decode(&self.source[key.clone()]).unwrap_or_default();
        Ok(Member { key, name, node: self.value()? })
    }

    fn array(&mut self) -> Result<Value, Problem> {
        let mut items = Vec::new();
        loop {
            self.skip()?;
            if self.take(b']') {
                return Ok(Value::Array(items));
            }
            items.push(self.value()?);
            self.skip()?;
            if !self.take(b',') && self.peek() != Some(b']') {
                return Err(self.problem("expected `,` or `]`"));
            }
        }
    }

    fn string(&mut self) -> Result<(), Problem> {
        self.at += 1;
        loop {
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b'\\') => self.escape()?,
                Some(0..0x20) => return Err(self.problem("a text is not closed on its line")),
                Some(_) => self.at += 1,
                None => return Err(self.problem("a text is not closed")),
            }
        }
    }

    fn escape(&mut self) -> Result<(), Problem> {
        let rest = &self.bytes[self.at..];
        let length = match rest.get(1) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => 2,
            Some(b'u') if rest.get(2..6).is_some_and(|hex| hex.iter().all(u8::is_ascii_hexdigit)) => 6,
            _ => return Err(self.problem("an unknown escape in a text")),
        };
        self.at += length;
        Ok(())
    }

    fn plain(&mut self) -> Result<Value, Problem> {
        let rest = &self.bytes[self.at..];
        let ends = |byte: &u8| !matches!(byte, b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' | b'+' | b'-' | b'.');
        let length = rest.iter().position(ends).unwrap_or(rest.len());
        let known = matches!(&rest[..length], b"true" | b"false" | b"null") || is_number(&rest[..length]);
        if !known {
            return Err(self.problem("expected a value"));
        }
        self.at += length;
        Ok(Value::Plain)
    }
}

fn is_number(word: &[u8]) -> bool {
    let word = word.strip_prefix(b"-").unwrap_or(word);
    let (whole, rest) = digits(word);
    let proper = whole.len() == 1 || whole.first().is_some_and(|digit| *digit != b'0');
    let rest = match rest.strip_prefix(b".").map(digits) {
        Some(([], _)) => return false,
        Some((_, rest)) => rest,
        None => rest,
    };
    let exponent = rest.strip_prefix(b"e").or(rest.strip_prefix(b"E"));
    let rest = match exponent
        .map(|power| digits(power.strip_prefix(b"+").or(power.strip_prefix(b"-")).unwrap_or(power)))
    {
        Some(([], _)) => return false,
        Some((_, rest)) => rest,
        None => rest,
    };
    proper && rest.is_empty()
}

fn digits(word: &[u8]) -> (&[u8], &[u8]) {
    word.split_at(word.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(word.len()))
}
