//! Which extensions goose's `config.yaml` describes, and where their command lines stand.
//!
//! Not a reader of YAML: it knows the shape that goose itself writes, block mappings with plain or
//! quoted words and lists by lines or in brackets, and line by line refuses everything else. What
//! stands outside `extensions:` is not looked at.
//!
//! ```yaml
//! extensions:
//!   files:
//!     type: stdio
//!     cmd: npx
//!     args:
//!     - -y
//! ```

mod words;

use super::server::{Kind, Launch, List, Missing, Problem, Server, Span, Word, joint, newline};
use words::{flow, key, value, word};

/// A line that is neither blank nor only a comment.
#[derive(Clone, Copy)]
struct Line {
    /// Where its first letter stands, and where it ends.
    start: usize,
    end: usize,
    indent: usize,
}

/// A `name: value` of an extension, with the lines that belong to it.
struct Field {
    key: Span,
    name: String,
    value: Span,
    line: Line,
    below: Vec<Line>,
}

/// The extensions of a file, in its order.
pub fn servers(source: &str) -> Result<Vec<Server>, Problem> {
    let lines = lines(source);
    let block = block(source, &lines)?;
    let Some(first) = block.first() else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    for entry in block.chunk_by(|_, next| next.indent > first.indent) {
        found.push(extension(source, entry, first.indent)?);
    }
    Ok(found)
}

fn lines(source: &str) -> Vec<Line> {
    let mut found = Vec::new();
    let mut at = if source.starts_with('\u{feff}') { 3 } else { 0 };
    for line in source[at..].split_inclusive('\n') {
        let content = line.trim_end_matches(['\n', '\r']);
        let indent = content.len() - content.trim_start_matches(' ').len();
        let blank = content[indent..].trim().is_empty() || content[indent..].starts_with('#');
        if !blank {
            found.push(Line { start: at + indent, end: at + content.len(), indent });
        }
        at += line.len();
    }
    found
}

/// The lines below `extensions:`.
fn block<'a>(source: &str, lines: &'a [Line]) -> Result<&'a [Line], Problem> {
    let text = |line: &Line| &source[line.start..line.end];
    if let Some(line) = lines.iter().skip(1).find(|line| line.indent == 0 && text(line).starts_with("---")) {
        return Err(Problem::new(line.start, "the file has more than one document"));
    }
    let named = |line: &Line| key(source, line.start..line.end).filter(|(_, name)| name == "extensions");
    let mut heads =
        (0..lines.len()).filter_map(|at| Some((at, named(&lines[at]).filter(|_| lines[at].indent == 0)?.0)));
    let Some((at, head)) = heads.next() else { return Ok(&[]) };
    if let Some((_, again)) = heads.next() {
        return Err(Problem::new(again.start, "`extensions` is written twice"));
    }
    match value(source, head.end + 1..lines[at].end).map(|rest| &source[rest]) {
        Some("" | "{}") => {}
        _ => return Err(Problem::new(head.start, "`extensions` is not written line by line")),
    }
    let below = &lines[at + 1..];
    let end = below.iter().position(|line| line.indent == 0).unwrap_or(below.len());
    match below.get(end) {
        Some(line) if text(line).starts_with('\t') => {
            Err(Problem::new(line.start, "this line is indented by a tab"))
        }
        Some(line) if text(line).starts_with("- ") => Err(Problem::new(line.start, "`extensions` is a list")),
        _ => Ok(&below[..end]),
    }
}

fn extension(source: &str, lines: &[Line], indent: usize) -> Result<Server, Problem> {
    let head = lines[0];
    let bad = |line: Line, what: &str| Problem::new(line.start, what);
    if head.indent != indent {
        return Err(bad(head, "this line is indented less than those above it"));
    }
    let (span, name) = key(source, head.start..head.end).ok_or_else(|| bad(head, "expected `name:`"))?;
    let rest = value(source, span.end + 1..head.end).ok_or_else(|| bad(head, "this is not understood"))?;
    let fields = fields(source, &lines[1..])?;
    let kind = match rest.is_empty() {
        true if !fields.is_empty() => kind(source, &fields),
        _ => Kind::Unclear("it is not written line by line"),
    };
    let number = |field: &Field| Some((field.name.clone(), source[field.value.clone()].trim().parse().ok()?));
    Ok(Server { name, at: head.start, kind, numbers: fields.iter().filter_map(number).collect() })
}

/// The fields of one extension. A list may stand as far left as the name it belongs to.
fn fields(source: &str, lines: &[Line]) -> Result<Vec<Field>, Problem> {
    let mut fields: Vec<Field> = Vec::new();
    let Some(indent) = lines.first().map(|line| line.indent) else { return Ok(fields) };
    for line in lines {
        let item = source[line.start..line.end].starts_with("- ");
        match fields.last_mut() {
            Some(field) if line.indent > indent || (line.indent == indent && item) => field.below.push(*line),
            _ if line.indent < indent => {
                return Err(Problem::new(line.start, "this line is indented less than those above it"));
            }
            _ => fields.push(field(source, *line)?),
        }
    }
    Ok(fields)
}

fn field(source: &str, line: Line) -> Result<Field, Problem> {
    let problem = || Problem::new(line.start, "expected `name: value`");
    let (key, name) = key(source, line.start..line.end).ok_or_else(problem)?;
    let rest = key.end + 1..line.end;
    // A description may go on for lines. What we use must be whole, and `word` sees to that.
    let value = value(source, rest.clone()).unwrap_or(rest);
    Ok(Field { key, name, value, line, below: Vec::new() })
}

fn kind(source: &str, fields: &[Field]) -> Kind {
    let named = |name: &str| fields.iter().filter(|field| field.name == name).collect::<Vec<_>>();
    if ["type", "cmd", "args"].iter().any(|name| named(name).len() > 1) {
        return Kind::Unclear("its type, its cmd or its args are written twice");
    }
    let transport = named("type").first().and_then(|field| word(source, field.value.clone())?.text);
    match (transport.as_deref(), named("cmd").first()) {
        (Some("stdio"), Some(command)) => {
            let args = named("args").first().copied();
            launch(source, command, args).map_or_else(Kind::Unclear, Kind::Stdio)
        }
        (Some("sse" | "streamable_http"), _) => Kind::Remote,
        (_, None) | (Some("builtin" | "platform" | "frontend" | "inline_python"), _) => Kind::NoCommand,
        (_, Some(_)) => Kind::Unclear("it has a cmd, but its type is not stdio"),
    }
}

fn launch(source: &str, command: &Field, args: Option<&Field>) -> Result<Launch, &'static str> {
    let program = word(source, command.value.clone()).filter(|_| command.below.is_empty());
    let program = program.filter(words::is_text).ok_or("its cmd is not a plain or quoted text")?;
    let list = match args {
        Some(field) => Some(list(source, field)?),
        None => None,
    };
    let literal = &source[program.span.clone()];
    let in_brackets = list.as_ref().is_some_and(|list| !list.by_lines);
    if in_brackets && !literal.starts_with(['"', '\'']) && literal.contains([',', '[', ']', '{', '}']) {
        return Err("its cmd cannot stand in brackets without quotes");
    }
    let keys = [Some(command), args].into_iter().flatten().map(|field| field.key.clone()).collect();
    let line = format!("{}{}", newline(source), " ".repeat(command.line.indent));
    let missing = Missing {
        at: command.line.end,
        before: format!("{line}args:{line}- "),
        between: format!("{line}- "),
        after: "",
    };
    Ok(Launch { command: program, list, joined: false, missing, keys })
}

fn list(source: &str, args: &Field) -> Result<List, &'static str> {
    const NOT_UNDERSTOOD: &str = "its args are not a list of plain or quoted words";
    if !args.value.is_empty() {
        let items =
            flow(source, args.value.clone()).filter(|_| args.below.is_empty()).ok_or(NOT_UNDERSTOOD)?;
        return Ok(List { span: args.value.clone(), joint: joint(source, &items), items, by_lines: false });
    }
    let first = args.below.first().ok_or("its args are empty; write args: []")?;
    let items = args.below.iter().map(|line| item(source, first, line)).collect::<Option<Vec<Word>>>();
    let items = items.ok_or(NOT_UNDERSTOOD)?;
    let (Some(one), Some(last)) = (items.first(), items.last()) else { return Err(NOT_UNDERSTOOD) };
    let prefix = &source[first.start - first.indent..one.span.start];
    let span = args.key.end + 1..last.span.end;
    Ok(List { span, joint: format!("{}{prefix}", newline(source)), items, by_lines: true })
}

fn item(source: &str, first: &Line, line: &Line) -> Option<Word> {
    let rest = source[line.start..line.end].strip_prefix("- ").filter(|_| line.indent == first.indent)?;
    word(source, value(source, line.end - rest.len()..line.end)?)
}
