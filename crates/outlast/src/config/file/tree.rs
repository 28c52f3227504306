//! A file as a tree of values that know their places, whether it was TOML or JSON.

mod json;
mod toml;

use super::place::At;

/// A value and where it stands.
#[derive(Debug)]
pub struct Node {
    pub at: At,
    pub value: Value,
}

#[derive(Debug)]
pub enum Value {
    Text(String),
    /// As it was written.
    Number(String),
    Switch(bool),
    List(Vec<Node>),
    /// In the order of the file.
    Table(Vec<Entry>),
    /// `null`, or a date.
    Odd,
}

/// A member of a table.
#[derive(Debug)]
pub struct Entry {
    pub name: String,
    /// Where its name stands.
    pub at: At,
    pub node: Node,
}

impl Value {
    /// What a person would call it.
    pub fn kind(&self) -> &'static str {
        match self {
            Value::Text(_) => "a text",
            Value::Number(_) => "a number",
            Value::Switch(_) => "true or false",
            Value::List(_) => "a list",
            Value::Table(_) => "a table",
            Value::Odd => "something else",
        }
    }
}

/// How a file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Toml,
    Json,
}

/// Why a text is no tree, and where.
#[derive(Debug)]
pub struct Unreadable {
    pub start: usize,
    pub end: usize,
    pub what: String,
}

/// Reads a text. `file` is the number of its file.
pub fn read(text: &str, format: Format, file: u16) -> Result<Vec<Entry>, Unreadable> {
    match format {
        Format::Toml => toml::read(text, file),
        Format::Json => json::read(text, file),
    }
}
