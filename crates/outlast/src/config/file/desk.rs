//! What is read, and what is wrong with it: every value passes here, and a wrong one becomes a mistake with its place.

use super::place::{At, Mistake, Severity, Source};
use super::tree::{Entry, Node, Value};
use super::variables::expand;
use outlast_engine::settings::{Glob, Kind, Place, Setting, nearest};
use std::path::PathBuf;

/// How many mistakes are told. The file is refused all the same.
const MISTAKES: usize = 100;
/// Bytes that variables may add to all texts together. A file whose texts grow more is refused.
const GROWTH: usize = 16 << 20;

/// Reads values and collects mistakes.
pub struct Desk<'a> {
    pub sources: Vec<Source>,
    pub mistakes: Vec<Mistake>,
    variable: &'a dyn Fn(&str) -> Option<String>,
    grown: usize,
}

impl<'a> Desk<'a> {
    pub fn new(variable: &'a dyn Fn(&str) -> Option<String>) -> Desk<'a> {
        Desk { sources: Vec::new(), mistakes: Vec::new(), variable, grown: 0 }
    }

    pub fn wrong(&mut self, at: At, what: impl Into<String>, help: Option<String>) {
        self.tell(Severity::Error, Some(at), false, what.into(), help);
    }

    pub fn warn(&mut self, at: At, what: impl Into<String>, help: Option<String>) {
        self.tell(Severity::Warning, Some(at), false, what.into(), help);
    }

    /// A mistake in a line that may hold a secret.
    pub fn wrong_in_secret(&mut self, at: At, what: impl Into<String>, help: Option<String>) {
        self.tell(Severity::Error, Some(at), true, what.into(), help);
    }

    pub fn tell(
        &mut self,
        severity: Severity,
        at: Option<At>,
        secret: bool,
        what: String,
        help: Option<String>,
    ) {
        if self.mistakes.len() >= MISTAKES {
            if let Some(last) = self.mistakes.last_mut().filter(|_| severity == Severity::Error) {
                last.severity = Severity::Error;
            }
            return;
        }
        let source = at.and_then(|at| self.sources.get(usize::from(at.file)));
        let file = source.or(self.sources.first()).map(|source| source.name.clone()).unwrap_or_default();
        let spot = at.and_then(|at| Some(source?.spot(at, secret)));
        self.mistakes.push(Mistake { severity, what, file, spot, help });
    }

    pub fn has_errors(&self) -> bool {
        self.mistakes.iter().any(|mistake| mistake.severity == Severity::Error)
    }

    /// `[servers.ci] in outlast.toml:12`
    pub fn source(&self, section: &str, at: At) -> Box<str> {
        match self.sources.get(usize::from(at.file)) {
            Some(source) => format!("{section} in {}:{}", source.name, source.line(at.start)).into(),
            None => section.into(),
        }
    }

    pub fn expected<T>(&mut self, what: &str, entry: &Entry) -> Option<T> {
        let found = entry.node.value.kind();
        self.wrong(entry.node.at, format!("`{}` must be {what}, and is {found}", entry.name), None);
        None
    }

    /// A key that nothing is known of. `known` are the keys that may stand there.
    pub fn unknown<'k>(&mut self, entry: &Entry, table: &str, known: impl IntoIterator<Item = &'k str>) {
        if self.mistakes.len() >= MISTAKES {
            // It would not be told, and a file may have a hundred thousand such keys.
            return self.wrong(entry.at, "", None);
        }
        let known: Vec<&str> = known.into_iter().collect();
        let elsewhere = Setting::named(&entry.name).map(|item| item.place.tables());
        let help = match (elsewhere, nearest(&entry.name, known.iter().copied())) {
            (Some(""), _) => other_words(&entry.name),
            (Some(tables), _) => format!("`{}` stands in {tables}", entry.name),
            (None, Some(meant)) => format!("did you mean `{meant}`?"),
            (None, None) => format!("known here are {}", known.join(", ")),
        };
        self.wrong(entry.at, format!("unknown key `{}` in {table}", entry.name), Some(help));
    }

    /// A path: a relative one is meant from the folder of its file, wherever outlast was started.
    pub fn path(&self, text: &str, at: At) -> PathBuf {
        let source = self.sources.get(usize::from(at.file));
        match source.and_then(|source| source.path.parent()) {
            Some(folder) if !matches!(text, "-" | "none") => folder.join(text),
            _ => PathBuf::from(text),
        }
    }

    /// A text, with its variables.
    pub fn text(&mut self, entry: &Entry) -> Option<String> {
        match &entry.node.value {
            Value::Text(text) => self.expanded(text, entry.node.at, false),
            _ => self.expected("a text", entry),
        }
    }

    /// The same of one that may be secret.
    pub fn secret(&mut self, entry: &Entry) -> Option<String> {
        match &entry.node.value {
            Value::Text(text) => self.expanded(text, entry.node.at, true),
            other => {
                let what = format!("`{}` must be a text, and is {}", entry.name, other.kind());
                self.wrong_in_secret(entry.node.at, what, None);
                None
            }
        }
    }

    fn expanded(&mut self, text: &str, at: At, secret: bool) -> Option<String> {
        let found = match expand(text, self.variable) {
            Ok(found) => found,
            Err((what, help)) => {
                self.tell(Severity::Error, Some(at), secret, what, Some(help));
                return None;
            }
        };
        self.grown += found.len().saturating_sub(text.len());
        if self.grown > GROWTH {
            self.wrong(at, format!("variables make the texts more than {} MiB longer", GROWTH >> 20), None);
            return None;
        }
        Some(found)
    }

    pub fn switch(&mut self, entry: &Entry) -> Option<bool> {
        match entry.node.value {
            Value::Switch(on) => Some(on),
            _ => self.expected("true or false", entry),
        }
    }

    pub fn table<'n>(&mut self, entry: &'n Entry) -> &'n [Entry] {
        match &entry.node.value {
            Value::Table(entries) => entries,
            _ => self.expected("a table", entry).unwrap_or_default(),
        }
    }

    /// A list of texts, each with its place.
    pub fn texts(&mut self, entry: &Entry) -> Vec<(String, At)> {
        let Value::List(items) = &entry.node.value else {
            return self.expected("a list of texts", entry).unwrap_or_default();
        };
        items.iter().filter_map(|item| self.item(entry, item)).collect()
    }

    fn item(&mut self, entry: &Entry, item: &Node) -> Option<(String, At)> {
        let Value::Text(text) = &item.value else {
            let found = item.value.kind();
            self.wrong(item.at, format!("`{}` must hold texts, and this is {found}", entry.name), None);
            return None;
        };
        Some((self.expanded(text, item.at, false)?, item.at))
    }

    /// Names and texts, such as the variables of a server. Their values may be secret.
    pub fn pairs(&mut self, entry: &Entry) -> Vec<(String, String)> {
        let mut found = Vec::new();
        for pair in self.table(entry) {
            let text = match &pair.node.value {
                Value::Text(text) => self.expanded(text, pair.node.at, true),
                Value::Number(number) => Some(number.clone()),
                Value::Switch(on) => Some(on.to_string()),
                other => {
                    let what = format!("`{}` must be a text, and is {}", pair.name, other.kind());
                    self.wrong_in_secret(pair.node.at, what, None);
                    None
                }
            };
            found.extend(text.map(|text| (pair.name.clone(), text)));
        }
        found
    }

    pub fn globs(&mut self, entry: &Entry) -> Vec<(Glob, At)> {
        let texts = self.texts(entry);
        texts.into_iter().filter_map(|(text, at)| Some((self.glob(&text, at)?, at))).collect()
    }

    pub fn glob(&mut self, text: &str, at: At) -> Option<Glob> {
        if text.is_empty() {
            self.wrong(at, "a glob is empty", Some("`*` stands for any name".into()));
            return None;
        }
        Glob::new(text).map_err(|why| self.wrong(at, why.0, None)).ok()
    }

    /// One of these words.
    pub fn choice<T: Copy>(&mut self, entry: &Entry, words: &[(&str, T)]) -> Option<T> {
        let text = self.text(entry)?;
        let found = words.iter().find(|(word, _)| *word == text);
        if found.is_none() {
            let known = words.iter().map(|(word, _)| *word);
            let help = nearest(&text, known.clone()).map(|meant| format!("did you mean \"{meant}\"?"));
            let known = known.collect::<Vec<_>>().join(", ");
            self.wrong(entry.node.at, format!("`{}`: `{text}` is not one of {known}", entry.name), help);
        }
        found.map(|(_, value)| *value)
    }

    /// The values of a setting as texts that its parser has accepted: several for those that may be given so.
    pub fn setting(&mut self, entry: &Entry, item: &'static Setting) -> Vec<String> {
        let texts: Vec<(String, At)> = match (&entry.node.value, item.kind) {
            (Value::List(_), Kind::Lines(_)) => self.texts(entry),
            (Value::List(_), Kind::Signs) => {
                let words: Vec<String> = self.texts(entry).into_iter().map(|(word, _)| word).collect();
                let signs = if words.is_empty() { "none".into() } else { words.join("+") };
                vec![(signs, entry.node.at)]
            }
            (Value::Switch(on), Kind::Switch) => vec![(on.to_string(), entry.node.at)],
            // `hold = true` beside `hold = "destructive"`.
            (Value::Switch(on), Kind::Choice(words)) if words.contains(&"true") => {
                vec![(on.to_string(), entry.node.at)]
            }
            (Value::Number(number), _) => vec![(number.clone(), entry.node.at)],
            (Value::Text(_), _) => self.text(entry).map(|text| (text, entry.node.at)).into_iter().collect(),
            _ => self.expected(form(item), entry).unwrap_or_default(),
        };
        let accepts = |desk: &mut Self, text: &str, at: At| {
            item.parse(text).map_err(|why| desk.wrong(at, why.0, None)).is_ok()
        };
        texts.into_iter().filter(|(text, at)| accepts(self, text, *at)).map(|(text, _)| text).collect()
    }
}

/// What a setting's value looks like in the file.
fn form(item: &Setting) -> &'static str {
    match item.kind {
        Kind::Time => "a time such as \"30s\"",
        Kind::TimeOrOff => "a time such as \"30s\", or \"off\"",
        Kind::Size => "a size such as \"64MiB\"",
        Kind::Signs => "a list such as [\"call\", \"server\"]",
        Kind::Count => "a whole number",
        Kind::Rate => "a rate such as \"10/s\"",
        Kind::Switch => "true or false",
        Kind::Choice(_) | Kind::Path | Kind::Rules => "a text",
        Kind::Lines(_) => "a text or a list of texts",
    }
}

/// What the file has instead of a setting of the command line.
fn other_words(name: &str) -> String {
    match name {
        "header" => "write `headers = { Name = \"value\" }` in [servers.NAME]",
        "tool" => "write a table such as [servers.NAME.tools.\"run_*\"]",
        "method" => "write a table such as [servers.NAME.methods.\"resources/*\"]",
        _ => "it is for the command line alone",
    }
    .to_owned()
}

/// Settings that stand in a table.
pub fn settings_of(places: &[Place]) -> impl Iterator<Item = &'static Setting> {
    outlast_engine::settings::SETTINGS.iter().filter(move |item| places.contains(&item.place))
}

/// The setting of this name, if it stands in one of these tables.
pub fn setting_named(name: &str, places: &[Place]) -> Option<&'static Setting> {
    Setting::named(name).filter(|item| places.contains(&item.place))
}
