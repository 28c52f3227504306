//! A client's JSON, with comments and trailing commas, as a tree.

use super::{Entry, Node, Unreadable, Value};
use crate::config::file::place::At;
use crate::install::json;

pub fn read(text: &str, file: u16) -> Result<Vec<Entry>, Unreadable> {
    let wrong = |start: usize, what: String| Unreadable { start, end: start + 1, what };
    let root = json::parse(text).map_err(|problem| wrong(problem.at, problem.what))?;
    let start = root.span.start;
    match node(text, &root, file).value {
        Value::Table(entries) => Ok(entries),
        other => Err(wrong(start, format!("the document is {}, not an object", other.kind()))),
    }
}

fn place(file: u16, span: &std::ops::Range<usize>) -> At {
    At { file, start: span.start as u32, end: span.end as u32 }
}

fn node(text: &str, node: &json::Node, file: u16) -> Node {
    let written = &text[node.span.clone()];
    let value = match &node.value {
        json::Value::Object(members) => {
            Value::Table(members.iter().map(|member| entry(text, member, file)).collect())
        }
        json::Value::Array(items) => {
            Value::List(items.iter().map(|item| self::node(text, item, file)).collect())
        }
        json::Value::Text => node.text(text).map_or(Value::Odd, Value::Text),
        json::Value::Plain => match written {
            "true" => Value::Switch(true),
            "false" => Value::Switch(false),
            "null" => Value::Odd,
            number => Value::Number(number.to_owned()),
        },
    };
    Node { at: place(file, &node.span), value }
}

fn entry(text: &str, member: &json::Member, file: u16) -> Entry {
    let node = node(text, &member.node, file);
    Entry { name: member.name.clone(), at: place(file, &member.key), node }
}
