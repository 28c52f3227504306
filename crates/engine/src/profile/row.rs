//! One row of what is known of clients: `GLOB=KEY:VALUE,…`, read and written.

use super::{Effect, Introduction, Versions};
use crate::settings::{BadValue, Glob, parse_duration, show_duration};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// Who says so.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Origin {
    /// A run of `cargo xtask clients`, on this day.
    Measured(Box<str>),
    /// People say so; nothing is done for it.
    Reported,
    /// A person wrote it, in this setting.
    Written(Box<str>),
    /// Seen on this machine, twice.
    Learned,
}

/// One client, or some of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Profile {
    /// What it calls itself in `clientInfo.name`, with `*` and `?`.
    pub glob: Glob,
    /// What people call it.
    pub client: Box<str>,
    /// Which versions it is about; all, without.
    pub version: Option<Versions>,
    /// The revision that it asks for.
    pub revision: Option<Box<str>>,
    /// The names of its capabilities, with `+` between them; `none`.
    pub capabilities: Option<Box<str>>,
    /// Other programs, which were not measured, may call themselves the same: it is known, and does not act.
    pub shared: bool,
    /// Whether it sends a progress token.
    pub token: Option<bool>,
    /// How long it waits for a tool that is silent.
    pub cap: Option<Duration>,
    /// No limit was found in this time.
    pub watched: Option<Duration>,
    /// Whether progress makes it wait longer.
    pub progress: Option<bool>,
    /// The longest that progress makes it wait.
    pub total: Option<Duration>,
    /// Whether it asks for tools again after `list_changed`.
    pub relists: Option<bool>,
    /// Whether it knows tasks.
    pub tasks: Option<bool>,
    /// How often it makes a call again after its own timeout.
    pub repeats: Option<u32>,
    /// How long it waits for `initialize`.
    pub start: Option<Duration>,
    /// How long it waits for `tools/list`.
    pub list: Option<Duration>,
    /// Who says so.
    pub origin: Origin,
}

const FORM: &str = "write 'NAME=cap:60s,progress:no'";

/// What a row may say.
pub const KEYS: &str = "cap, progress, total, token, version, revision, capabilities, shared, relists, tasks, repeats, \
                        start, list, watched, client, measured";

impl Profile {
    /// Nothing, of a client of this name.
    pub fn new(glob: Glob, origin: Origin) -> Profile {
        Profile {
            client: glob.to_string().into(),
            glob,
            version: None,
            revision: None,
            capabilities: None,
            shared: false,
            token: None,
            cap: None,
            watched: None,
            progress: None,
            total: None,
            relists: None,
            tasks: None,
            repeats: None,
            start: None,
            list: None,
            origin,
        }
    }

    /// A cap that was seen of one version on this machine. `None` if the name cannot stand in a row.
    pub fn learned(name: &str, version: &str, cap: Duration) -> Option<Profile> {
        // In braces the name would mean others.
        let glob = Glob::new(name).ok().filter(|_| !name.contains(['{', '}']))?;
        let mut row = Profile::new(glob, Origin::Learned);
        (row.version, row.cap, row.progress) = (Some(Versions::parse(version)), Some(cap), Some(false));
        Some(row)
    }

    /// Reads a row that a person wrote.
    pub fn parse(text: &str, source: &str) -> Result<Profile, BadValue> {
        let row = Profile::read(text, Origin::Written(source.into()))?;
        let wrong = |what: &str| Err(BadValue(format!("`{text}`: {what}; {FORM}")));
        match &row.origin {
            Origin::Written(_) => {}
            _ => return wrong("`measured` is for the table that is compiled in"),
        }
        if row.cap.is_some() && row.progress.is_none() {
            return wrong("say whether progress resets the cap: progress:yes or progress:no");
        }
        Ok(row)
    }

    /// Reads a row of the table.
    pub fn of_table(line: &str) -> Result<Profile, BadValue> {
        Profile::read(line, Origin::Reported)
    }

    /// The same, if it is about a client of this name.
    pub(super) fn read_if_named(line: &str, name: &str) -> Option<Profile> {
        let (glob, _) = line.split_once('=')?;
        Glob::new(glob.trim()).ok().filter(|glob| glob.matches(name))?;
        Profile::of_table(line).ok()
    }

    fn read(text: &str, origin: Origin) -> Result<Profile, BadValue> {
        let wrong = |what: String| BadValue(format!("`{text}`: {what}; {FORM}"));
        let (glob, pairs) = text.split_once('=').ok_or_else(|| wrong("`=` is missing".into()))?;
        let mut row = Profile::new(Glob::new(glob.trim())?, origin);
        for pair in pairs.split(',') {
            let (key, value) =
                pair.split_once(':').ok_or_else(|| wrong(format!("`{pair}` is not KEY:VALUE")))?;
            row.take(key.trim(), value.trim()).map_err(|BadValue(what)| wrong(what))?;
        }
        Ok(row)
    }

    fn take(&mut self, key: &str, value: &str) -> Result<(), BadValue> {
        match key {
            "cap" => self.cap = time_or_off(value)?,
            "progress" => self.progress = Some(yes_or_no(value)?),
            "total" => self.total = time_or_off(value)?,
            "shared" => self.shared = yes_or_no(value)?,
            "token" => self.token = Some(yes_or_no(value)?),
            "version" => self.version = Some(Versions::parse(value)),
            "revision" => self.revision = Some(value.into()),
            "capabilities" => self.capabilities = Some(value.into()),
            "relists" => self.relists = Some(yes_or_no(value)?),
            "tasks" => self.tasks = Some(yes_or_no(value)?),
            "repeats" => self.repeats = Some(number(value)?),
            "start" => self.start = time_or_off(value)?,
            "list" => self.list = time_or_off(value)?,
            "watched" => self.watched = Some(parse_duration(value)?),
            "client" => self.client = value.into(),
            "measured" => self.origin = Origin::Measured(value.into()),
            _ => return Err(BadValue(format!("unknown key `{key}`: known are {KEYS}"))),
        }
        Ok(())
    }

    /// Whether it says more than what people report.
    pub fn is_certain(&self) -> bool {
        self.origin != Origin::Reported
    }

    /// How many letters of the name it fixes: the more, the nearer.
    pub(super) fn literal(&self) -> usize {
        self.glob.literal()
    }

    /// Whether it is about a client that says this of itself.
    pub fn fits(&self, client: &Introduction) -> bool {
        let capabilities = if client.capabilities.is_empty() { "none" } else { &client.capabilities };
        self.glob.matches(&client.name)
            && self.version.as_ref().is_none_or(|versions| versions.contain(&client.version))
            && self.revision.as_deref().is_none_or(|revision| *revision == *client.revision)
            && self.capabilities.as_deref().is_none_or(|own| own == capabilities)
    }

    /// What it says is to be done for a call; `None` if it is about calls with a token and this one has none, or the
    /// other way round.
    pub(super) fn effect(&self, has_token: Option<bool>) -> Option<Effect> {
        if has_token.is_some() && self.token.is_some() && has_token != self.token {
            return None;
        }
        let token = has_token.or(self.token);
        Some(match self.progress {
            // Without a token no progress can be sent.
            Some(true) if token != Some(false) => Effect { cap: self.total, silence: self.cap },
            Some(_) => Effect { cap: self.cap, silence: None },
            None if token == Some(false) && self.token == Some(false) => {
                Effect { cap: self.cap, silence: None }
            }
            None => Effect::default(),
        })
    }
}

impl fmt::Display for Profile {
    /// As it is read.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let yes = |known: bool| if known { "yes" } else { "no" }.to_owned();
        let measured = match &self.origin {
            Origin::Measured(day) => Some(day.to_string()),
            Origin::Reported | Origin::Written(_) | Origin::Learned => None,
        };
        let pairs = [
            ("client", (*self.client != *self.glob.to_string()).then(|| self.client.to_string())),
            ("version", self.version.as_ref().map(Versions::to_string)),
            ("revision", self.revision.as_deref().map(str::to_owned)),
            ("capabilities", self.capabilities.as_deref().map(str::to_owned)),
            ("shared", self.shared.then(|| yes(true))),
            ("token", self.token.map(yes)),
            ("cap", self.cap.map(show_duration)),
            ("watched", self.watched.map(show_duration)),
            ("progress", self.progress.map(yes)),
            ("total", self.total.map(show_duration)),
            ("relists", self.relists.map(yes)),
            ("tasks", self.tasks.map(yes)),
            ("repeats", self.repeats.map(|times| times.to_string())),
            ("start", self.start.map(show_duration)),
            ("list", self.list.map(show_duration)),
            ("measured", measured),
        ];
        let pairs = pairs.into_iter().filter_map(|(key, value)| Some(format!("{key}:{}", value?)));
        write!(f, "{}={}", self.glob, pairs.collect::<Vec<_>>().join(","))
    }
}

fn yes_or_no(value: &str) -> Result<bool, BadValue> {
    match value {
        "yes" => Ok(true),
        "no" => Ok(false),
        _ => Err(BadValue(format!("`{value}` is neither yes nor no"))),
    }
}

fn time_or_off(value: &str) -> Result<Option<Duration>, BadValue> {
    if value == "off" { Ok(None) } else { parse_duration(value).map(Some) }
}

fn number(value: &str) -> Result<u32, BadValue> {
    value.parse().map_err(|_| BadValue(format!("`{value}` is not a whole number")))
}
