//! Which servers Codex's `config.toml` describes, and where their command lines stand.
//!
//! `toml_edit` reads the file and knows the place of everything; the text is edited here as in the
//! other formats, so nothing that we did not touch can come out differently.

use super::server::{Kind, Launch, List, Missing, Problem, Server, Span, Word};
use super::server::{joint, line_end, line_start, newline};
use toml_edit::{Array, Document, Item, Key, TableLike, Value};

/// The servers of a file, in its order.
pub fn servers(source: &str) -> Result<Vec<Server>, Problem> {
    let document = Document::parse(source).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        // Its `Display` would show the line, and with it perhaps a secret.
        Problem::new(at, error.message().replace('\n', " "))
    })?;
    let Some((key, map)) = document.get_key_value("mcp_servers") else { return Ok(Vec::new()) };
    let map = map.as_table_like().ok_or_else(|| Problem::new(start(key), "`mcp_servers` is not a table"))?;
    let mut found: Vec<Server> = map.iter().filter_map(|(name, _)| server(source, map, name)).collect();
    found.sort_by_key(|server| server.at);
    Ok(found)
}

fn start(key: &Key) -> usize {
    key.span().map_or(0, |span| span.start)
}

fn server(source: &str, map: &dyn TableLike, name: &str) -> Option<Server> {
    let (key, item) = map.get_key_value(name)?;
    let table = item.as_table_like();
    let number = |value: &Item| value.as_float().or_else(|| value.as_integer().map(|number| number as f64));
    let numbers = table.into_iter().flat_map(|table| table.iter());
    let numbers = numbers.filter_map(|(name, value)| Some((name.to_owned(), number(value)?))).collect();
    Some(Server { name: name.to_owned(), at: start(key), kind: kind(source, item), numbers })
}

fn kind(source: &str, item: &Item) -> Kind {
    let Some(table) = item.as_table_like() else { return Kind::Unclear("it is not a table") };
    if table.contains_key("url") {
        return Kind::Remote;
    }
    let Some((key, command)) = table.get_key_value("command") else { return Kind::NoCommand };
    launch(source, item.is_inline_table(), table, key, command).map_or_else(Kind::Unclear, Kind::Stdio)
}

fn launch(
    source: &str,
    inline: bool,
    table: &dyn TableLike,
    key: &Key,
    command: &Item,
) -> Result<Launch, &'static str> {
    const NO_PLACE: &str = "where its command stands is not known";
    let key = key.span().ok_or(NO_PLACE)?;
    let value = command.as_value().filter(|value| value.is_str()).ok_or("its command is not text")?;
    let command = word(value).ok_or(NO_PLACE)?;
    let mut keys = vec![key.clone()];
    let mut list = None;
    if let Some((name, args)) = table.get_key_value("args") {
        let array = args.as_array().ok_or("its arguments are not a list")?;
        list = Some(words(source, array).ok_or(NO_PLACE)?);
        keys.extend(name.span());
    }
    let missing = missing(source, inline, &key, &command.span)?;
    Ok(Launch { command, list, joined: false, missing, keys })
}

/// In a table the list gets the next line, below a comment that belongs to the command.
fn missing(source: &str, inline: bool, key: &Span, command: &Span) -> Result<Missing, &'static str> {
    let between = ", ".into();
    let path = &source[line_start(source, key.start)..key.start];
    if !inline {
        let before = format!("{}{path}args = [", newline(source));
        return Ok(Missing { at: line_end(source, command.end), before, between, after: "]" });
    }
    if path.trim_end().ends_with('.') {
        return Err("its command is a dotted key in an inline table");
    }
    Ok(Missing { at: command.end, before: ", args = [".into(), between, after: "]" })
}

fn words(source: &str, array: &Array) -> Option<List> {
    let items: Vec<Word> = array.iter().map(word).collect::<Option<_>>()?;
    Some(List { span: array.span()?, joint: joint(source, &items), items, by_lines: false })
}

fn word(value: &Value) -> Option<Word> {
    Some(Word { span: value.span()?, text: value.as_str().map(str::to_owned) })
}
