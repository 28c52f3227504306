//! Properties: whatever a file looks like, every server starts the same program behind outlast, a
//! second install changes nothing, and uninstall gives back every byte.

use super::clients::Shape;
use super::edit::Aim;
use super::json::{self, Node, Value as Kind};
use super::plan::{Plan, Wish, ours, plan, servers};
use super::server::{Kind as ServerKind, Problem, not_movable};
use proptest::prelude::*;
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// A server as the generators make it.
#[derive(Debug, Clone)]
struct Entry {
    program: String,
    arguments: Option<Vec<String>>,
    remote: bool,
    swapped: bool,
}

fn entry() -> impl Strategy<Value = Entry> {
    let program = "[a-z/$.\\\\\"'é{}, -]{1,8}".prop_filter("can be moved", |program| {
        not_movable(program).is_none() && !program.ends_with("outlast") && program.trim() == program
    });
    let arguments = prop::option::of(prop::collection::vec("[a-z\\\\\"'#/*\\[\\], ü-]{0,6}", 0..4));
    (program, arguments, prop::bool::weighted(0.15), any::<bool>())
        .prop_map(|(program, arguments, remote, swapped)| Entry { program, arguments, remote, swapped })
}

/// Decisions about form, one after the other; when they run out, the plainest form.
struct Form {
    choices: std::vec::IntoIter<u8>,
    newline: &'static str,
    comment: &'static [&'static str],
}

impl Form {
    fn new(choices: Vec<u8>, comment: &'static [&'static str]) -> Form {
        let mut choices = choices.into_iter();
        let newline = if choices.next().unwrap_or(0).is_multiple_of(2) { "\n" } else { "\r\n" };
        Form { choices, newline, comment }
    }

    fn pick(&mut self, count: u8) -> u8 {
        self.choices.next().unwrap_or(0) % count
    }

    /// White space or a comment, anything that may stand between two words.
    fn gap(&mut self) -> String {
        let newline = self.newline;
        match self.pick(8) {
            3 => " ".into(),
            4 => format!("{newline}    "),
            5 => format!("{newline}\t"),
            6 => self.comment[0].replace('\n', newline),
            7 => self.comment[self.comment.len() - 1].replace('\n', newline),
            _ => String::new(),
        }
    }

    fn trailing_comma(&mut self) -> &'static str {
        if self.pick(3) == 2 { "," } else { "" }
    }

    fn joined(&mut self, items: &[String]) -> String {
        let mut out = self.gap();
        for (index, item) in items.iter().enumerate() {
            let comma = if index + 1 < items.len() { "," } else { self.trailing_comma() };
            out += &format!("{item}{}{comma}{}", self.gap(), self.gap());
        }
        out
    }
}

fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

fn jsonc(entries: &[Entry], form: &mut Form, one_list: bool) -> String {
    let mut members = Vec::new();
    for (index, entry) in entries.iter().enumerate() {
        let body = jsonc_server(entry, form, one_list);
        members.push(format!("\"s{index}\"{}:{}{{{body}}}", form.gap(), form.gap()));
    }
    let bom = if form.pick(5) == 4 { "\u{feff}" } else { "" };
    let key = if one_list { "mcp" } else { "mcpServers" };
    format!(
        "{bom}{}{{\"other\":[1,{{}}],\"{key}\":{}{{{}}}}}{}",
        form.gap(),
        form.gap(),
        form.joined(&members),
        form.gap()
    )
}

fn jsonc_server(entry: &Entry, form: &mut Form, one_list: bool) -> String {
    let mut words: Vec<String> = entry.arguments.iter().flatten().map(|word| quoted(word)).collect();
    let mut members = vec![];
    if entry.remote {
        members.push("\"url\":\"https://example.com\"".to_owned());
    } else if one_list {
        words.insert(0, quoted(&entry.program));
        members.push(format!("\"command\":{}[{}]", form.gap(), form.joined(&words)));
    } else {
        members.push(format!("\"command\"{}:{}{}", form.gap(), form.gap(), quoted(&entry.program)));
        if entry.arguments.is_some() {
            members.push(format!("\"args\":{}[{}]", form.gap(), form.joined(&words)));
        }
    }
    members.push("\"env\":{\"A\":\"b\"}".to_owned());
    if entry.swapped {
        members.reverse();
    }
    form.joined(&members)
}

/// What a tree of places means.
fn meaning(source: &str, node: &Node) -> Value {
    match &node.value {
        Kind::Object(members) => {
            members.iter().map(|member| (member.name.clone(), meaning(source, &member.node))).collect()
        }
        Kind::Array(items) => items.iter().map(|item| meaning(source, item)).collect(),
        Kind::Text => node.text(source).map_or(Value::Null, Value::from),
        Kind::Plain => serde_json::from_str(&source[node.span.clone()]).unwrap_or(Value::Null),
    }
}

/// Strict JSON from a tree of places.
fn strict(source: &str, node: &Node) -> String {
    let list = |items: Vec<String>| items.join(",");
    match &node.value {
        Kind::Object(members) => {
            let member = |member: &json::Member| {
                format!("{}:{}", &source[member.key.clone()], strict(source, &member.node))
            };
            format!("{{{}}}", list(members.iter().map(member).collect()))
        }
        Kind::Array(items) => format!("[{}]", list(items.iter().map(|item| strict(source, item)).collect())),
        Kind::Text | Kind::Plain => source[node.span.clone()].to_owned(),
    }
}

/// The command lines of a file.
fn commands(source: &str, shape: Shape) -> Vec<Vec<String>> {
    let found = servers(source, shape).unwrap_or_else(|problem| panic!("{problem:?} in {source}"));
    let words = |server: &super::server::Server| match &server.kind {
        ServerKind::Stdio(launch) => {
            launch.words().into_iter().map(|word| word.unwrap_or("?").to_owned()).collect()
        }
        _ => Vec::new(),
    };
    found.iter().map(words).collect()
}

fn expected(entries: &[Entry], front: &[&str]) -> Vec<Vec<String>> {
    let words = |entry: &Entry| {
        let own = std::iter::once(&entry.program).chain(entry.arguments.iter().flatten()).cloned();
        front.iter().map(|word| (*word).to_owned()).chain(own).collect()
    };
    entries.iter().map(|entry| if entry.remote { Vec::new() } else { words(entry) }).collect()
}

/// Plans a file without flags.
fn plain(text: &str, shape: Shape, aim: Aim) -> Result<Plan, Problem> {
    plan(text, shape, Wish { aim, ours: &ours("outlast", shape), only: &[], flags: &|_| Vec::new() })
}

/// Puts every server behind outlast as a person might, adds to that, and takes it away again.
fn by_hand_and_back(source: &str, shape: Shape) {
    // What install writes without its mark is what a person writes.
    let Some(marked) = plain(source, shape, Aim::Install).unwrap().text else { return };
    let (mark, dashes) = (quoted("--installed"), quoted("--"));
    let by_hand =
        marked.replace(&mark, &quoted("--max")).replace(&dashes, &format!("{},{dashes}", quoted("1h")));
    if shape == Shape::Goose || servers(&by_hand, shape).is_err() {
        return;
    }
    let flags = |_: &super::server::Server| ["--max", "2h", "--timeout", "10m"].map(str::to_owned).into();
    let ours = ours("outlast", shape);
    let wish = |aim| Wish { aim, ours: &ours, only: &[], flags: &flags };
    let added = plan(&by_hand, shape, wish(Aim::Install)).unwrap().text.expect("a flag is added");
    assert!(added.contains("\"--installed=2\"") && !added.contains("2h"), "{added}");
    assert_eq!(plan(&added, shape, wish(Aim::Install)).unwrap().text, None, "{added}");
    assert_eq!(
        plan(&added, shape, wish(Aim::Uninstall)).unwrap().text.as_deref(),
        Some(&*by_hand),
        "{added}"
    );
    assert_eq!(plan(&by_hand, shape, wish(Aim::Uninstall)).unwrap().text, None, "it was there before");
}

/// Install, install again, uninstall.
fn there_and_back(source: &str, shape: Shape, entries: &[Entry]) {
    assert_eq!(commands(source, shape), expected(entries, &[]), "{source}");
    let ours = ours("/opt/my tools/outlast", shape);
    let flags = |_: &super::server::Server| vec!["--timeout".to_owned(), "10m".to_owned()];
    let make = |text: &str, aim| match plan(text, shape, Wish { aim, ours: &ours, only: &[], flags: &flags })
    {
        Ok(plan) => {
            assert!(plan.unclear.is_empty(), "{:?} in {text}", plan.unclear);
            plan.text
        }
        Err(problem) => panic!("{problem:?} in {text}"),
    };
    let local = entries.iter().any(|entry| !entry.remote);
    let installed = make(source, Aim::Install);
    assert_eq!(installed.is_some(), local, "{source}");
    let Some(installed) = installed else { return };
    assert_eq!(
        commands(&installed, shape),
        expected(entries, &["/opt/my tools/outlast", "--installed", "--timeout", "10m", "--"]),
        "{installed}"
    );
    assert_eq!(make(&installed, Aim::Install), None, "{installed}");
    assert_eq!(make(&installed, Aim::Uninstall).as_deref(), Some(source), "{installed}");
    assert_eq!(make(&installed, Aim::UninstallAll).as_deref(), Some(source), "{installed}");
    by_hand_and_back(source, shape);
}

const JSON_COMMENTS: &[&str] = &[" /* it's \"x\": [{, */ ", " // it's \"x\": [{,\n"];
const HASH_COMMENTS: &[&str] = &[" # it's \"x\": [{,\n"];

fn toml(entries: &[Entry], form: &mut Form) -> String {
    let newline = form.newline;
    let mut out = format!("# mine{newline}model = \"x\"{newline}");
    for (index, entry) in entries.iter().enumerate() {
        let comment = if form.pick(3) == 2 { " # why" } else { "" };
        let mut lines = vec![format!("command = {}", quoted(&entry.program))];
        if let Some(arguments) = &entry.arguments {
            let words: Vec<String> = arguments.iter().map(|word| quoted(word)).collect();
            lines.push(format!("args = [{}]", form.joined(&words)));
        }
        if entry.remote {
            lines = vec!["url = \"https://example.com\"".to_owned()];
        }
        if entry.swapped {
            lines.reverse();
        }
        let indent = if form.pick(4) == 3 { "  " } else { "" };
        out += &format!("{newline}{indent}[mcp_servers.s{index}]{comment}{newline}");
        for line in lines {
            out += &format!("{indent}{line}{comment}{newline}");
        }
    }
    if form.pick(3) == 2 { out.trim_end().to_owned() } else { out }
}

/// A text with something else in place of a few of its letters.
fn damaged(mut text: String, at: usize, cut: usize, put: &str) -> String {
    let border =
        |at: usize| (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    let start = border((at * text.len()) >> 16);
    let end = border(start + cut).max(start);
    text.replace_range(start..end, put);
    text
}

fn yaml(entries: &[Entry], form: &mut Form) -> String {
    let newline = form.newline;
    let (outer, inner) = [("  ", "    "), ("    ", "      "), (" ", "   ")][usize::from(form.pick(3))];
    let mut out = format!("GOOSE_MODEL: x{newline}extensions:{newline}");
    for (index, entry) in entries.iter().enumerate() {
        let comment = if form.pick(3) == 2 { "  # why" } else { "" };
        let mut parts = vec![format!("{inner}cmd: {}{comment}{newline}", quoted(&entry.program))];
        parts.extend(entry.arguments.as_ref().map(|words| yaml_list(words, form, inner)));
        parts.push(format!("{inner}type: {}{newline}", if entry.remote { "sse" } else { "stdio" }));
        if entry.swapped {
            parts.reverse();
        }
        out += &format!("{outer}s{index}:{comment}{newline}{}", parts.concat());
        if form.pick(4) == 3 {
            out += &format!("{newline}{outer}# next{newline}");
        }
    }
    if form.pick(3) == 2 { out.trim_end().to_owned() } else { format!("{out}after: 1{newline}") }
}

fn yaml_list(words: &[String], form: &mut Form, inner: &str) -> String {
    let newline = form.newline;
    let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
    if words.is_empty() || form.pick(3) == 2 {
        return format!("{inner}args: [{}]{newline}", words.join(", "));
    }
    let dash = ["- ", "  - ", "-   "][usize::from(form.pick(3))];
    let items: Vec<String> = words.iter().map(|word| format!("{inner}{dash}{word}{newline}")).collect();
    format!("{inner}args:{newline}{}", items.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn jsonc_comes_back(entries in prop::collection::vec(entry(), 0..4), choices in prop::collection::vec(any::<u8>(), 0..160)) {
        let source = jsonc(&entries, &mut Form::new(choices, JSON_COMMENTS), false);
        there_and_back(&source, Shape::McpServers, &entries);
    }

    #[test]
    fn jsonc_with_one_list_comes_back(entries in prop::collection::vec(entry(), 0..4), choices in prop::collection::vec(any::<u8>(), 0..160)) {
        let source = jsonc(&entries, &mut Form::new(choices, JSON_COMMENTS), true);
        there_and_back(&source, Shape::OpenCode, &entries);
    }

    #[test]
    fn toml_comes_back(entries in prop::collection::vec(entry(), 0..4), choices in prop::collection::vec(any::<u8>(), 0..160)) {
        let source = toml(&entries, &mut Form::new(choices, HASH_COMMENTS));
        there_and_back(&source, Shape::Codex, &entries);
    }

    #[test]
    fn yaml_comes_back(entries in prop::collection::vec(entry(), 0..4), choices in prop::collection::vec(any::<u8>(), 0..60)) {
        let source = yaml(&entries, &mut Form::new(choices, HASH_COMMENTS));
        there_and_back(&source, Shape::Goose, &entries);
    }

    /// Beside what is edited, everything means what it meant.
    #[test]
    fn only_the_command_lines_change(entries in prop::collection::vec(entry(), 1..4), choices in prop::collection::vec(any::<u8>(), 0..160)) {
        let source = jsonc(&entries, &mut Form::new(choices, JSON_COMMENTS), false);
        let installed = plain(&source, Shape::McpServers, Aim::Install).unwrap().text;
        let read = |text: &str| meaning(text, &json::parse(text).unwrap());
        let mut wanted = read(&source);
        for (index, entry) in entries.iter().enumerate().filter(|(_, entry)| !entry.remote) {
            let server = &mut wanted["mcpServers"][format!("s{index}")];
            let words = expected(std::slice::from_ref(entry), &["--installed", "--"]);
            server["command"] = json!("outlast");
            server["args"] = json!(words[0]);
        }
        prop_assert_eq!(read(&installed.unwrap_or(source)), wanted);
    }

    /// A file that somebody broke is understood or refused; nothing else happens.
    #[test]
    fn a_broken_file_breaks_nothing(entries in prop::collection::vec(entry(), 1..3), choices in prop::collection::vec(any::<u8>(), 0..80), at in any::<prop::sample::Index>(), put in "[\\[\\]{}:,=.\"'\\\\#|&*!\\r\\n\\t é-]{0,3}", cut in 0usize..9) {
        let whole = [
            (Shape::McpServers, jsonc(&entries, &mut Form::new(choices.clone(), JSON_COMMENTS), false)),
            (Shape::OpenCode, jsonc(&entries, &mut Form::new(choices.clone(), JSON_COMMENTS), true)),
            (Shape::Codex, toml(&entries, &mut Form::new(choices.clone(), HASH_COMMENTS))),
            (Shape::Goose, yaml(&entries, &mut Form::new(choices, HASH_COMMENTS))),
        ];
        for (shape, text) in whole {
            let text = damaged(text, at.index(1 << 16), cut, &put);
            for aim in [Aim::Install, Aim::Uninstall] {
                let Ok(plan) = plain(&text, shape, aim) else { continue };
                let installed = plan.text.filter(|_| aim == Aim::Install);
                // A plan proves itself, so what broke but is understood comes back too.
                prop_assert!(installed.is_none_or(|text| servers(&text, shape).is_ok()));
            }
        }
    }

    /// What strict JSON is to serde is so to us, and what we accept is strict but for comments and commas.
    #[test]
    fn the_scanner_agrees_with_serde(entries in prop::collection::vec(entry(), 0..3), at in any::<prop::sample::Index>(), put in "[\\[\\]{}:,\"\\\\0-9eE.+ntu/* -]{0,3}", cut in 0usize..4) {
        let text = jsonc(&entries, &mut Form::new(Vec::new(), JSON_COMMENTS), false);
        let text = damaged(text, at.index(1 << 16), cut, &put);
        let parsed = json::parse(&text);
        if serde_json::from_str::<&RawValue>(&text).is_ok() {
            prop_assert!(parsed.is_ok(), "{:?}: {}", parsed, text);
        }
        if let Ok(node) = parsed {
            let strict = strict(&text, &node);
            prop_assert!(serde_json::from_str::<&RawValue>(&strict).is_ok(), "{}", text);
        }
    }
}

#[test]
fn numbers_are_those_of_json() {
    for text in ["0", "-0", "12", "1.5", "-1.5e+10", "1E-2", "0.0", "[1,2]"] {
        assert!(json::parse(text).is_ok(), "{text}");
    }
    for text in ["01", "-", "1.", ".5", "1e", "1e+", "+1", "NaN", "Infinity", "1a", "0x10", "truE", "--1"] {
        assert!(json::parse(text).is_err(), "{text}");
    }
}

#[test]
fn what_is_too_deep_is_refused_and_nothing_overflows() {
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    assert!(json::parse(&nested(json::DEPTH)).is_ok());
    for text in [nested(json::DEPTH + 1), "[".repeat(1_000_000), "{\"a\":".repeat(1_000_000)] {
        assert!(json::parse(&text).is_err());
    }
}

#[test]
fn a_document_that_is_none_is_refused_where_it_breaks() {
    for (text, line, what) in [
        ("", 1, "empty"),
        (" // nothing\n", 2, "empty"),
        ("{\n  'a': 1\n}", 2, "double quotes"),
        ("{\n  a: 1\n}", 2, "double quotes"),
        ("{\"a\": 1}\n}", 2, "follows"),
        ("{\"a\"\n 1}", 2, "`:`"),
        ("{\"a\": 1\n \"b\": 2}", 2, "`,`"),
        ("[1\n 2]", 2, "`,`"),
        ("[1,,2]", 1, "value"),
        ("{,}", 1, "double quotes"),
        ("[\"a\n\"]", 1, "not closed"),
        ("[\"a", 1, "not closed"),
        ("[\"\\x\"]", 1, "escape"),
        ("{\n/* a", 2, "comment"),
        ("{ / }", 1, "comment"),
        ("{\"a\":", 1, "too early"),
        ("[", 1, "too early"),
    ] {
        let problem = json::parse(text).unwrap_err();
        assert!(problem.what.contains(what), "{text}: {}", problem.what);
        assert_eq!(super::line_of(text, problem.at), line, "{text}");
    }
}
