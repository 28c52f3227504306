//! TOML as a tree.

use super::{Entry, Node, Unreadable, Value};
use crate::config::file::place::At;
use toml_edit::{Document, Item, TableLike};

pub fn read(text: &str, file: u16) -> Result<Vec<Entry>, Unreadable> {
    let document = Document::parse(text).map_err(|error| {
        let span = error.span().unwrap_or(0..0);
        // Its `Display` would show the line, and with it perhaps a secret.
        Unreadable { start: span.start, end: span.end, what: error.message().replace('\n', " ") }
    })?;
    Ok(entries(document.as_table(), At { file, start: 0, end: 0 }))
}

/// In the order of the file: a table may be spread over it.
fn entries(table: &dyn TableLike, above: At) -> Vec<Entry> {
    let mut found: Vec<Entry> = table.iter().filter_map(|(name, _)| entry(table, name, above)).collect();
    found.sort_by_key(|entry| entry.at.start);
    found
}

fn entry(table: &dyn TableLike, name: &str, above: At) -> Option<Entry> {
    let (key, item) = table.get_key_value(name)?;
    let at = key.span().map_or(above, |span| place(above.file, &span));
    Some(Entry { name: name.to_owned(), at, node: node(item, at) })
}

fn place(file: u16, span: &std::ops::Range<usize>) -> At {
    At { file, start: span.start as u32, end: span.end as u32 }
}

fn node(item: &Item, key: At) -> Node {
    let at = item.span().map_or(key, |span| place(key.file, &span));
    let value = match item {
        Item::Value(value) => return of_value(value, key),
        Item::Table(table) => Value::Table(entries(table, key)),
        Item::ArrayOfTables(tables) => Value::List(
            tables.iter().map(|table| Node { at: key, value: Value::Table(entries(table, key)) }).collect(),
        ),
        Item::None => Value::Odd,
    };
    Node { at, value }
}

fn of_value(value: &toml_edit::Value, above: At) -> Node {
    let at = value.span().map_or(above, |span| place(above.file, &span));
    let value = match value {
        toml_edit::Value::String(text) => Value::Text(text.value().clone()),
        toml_edit::Value::Integer(number) => Value::Number(number.value().to_string()),
        toml_edit::Value::Float(number) => Value::Number(number.value().to_string()),
        toml_edit::Value::Boolean(switch) => Value::Switch(*switch.value()),
        toml_edit::Value::Datetime(_) => Value::Odd,
        toml_edit::Value::Array(items) => Value::List(items.iter().map(|item| of_value(item, at)).collect()),
        toml_edit::Value::InlineTable(table) => Value::Table(entries(table, at)),
    };
    Node { at, value }
}
