//! One visit to a fresh process: the handshake of one era, and, where that works, everything that
//! can be asked after it.

use super::Failure;
use super::bounds;
use super::ending::{self, End};
use super::lists::{self, List};
use super::noted::Noted;
use super::process::Lab;
use super::talk::{Answer, Era, Reply, Talk};
use crate::doctor::{META_SERVER, MODERN, glimpse};
use outlast_engine::event::Exit;
use serde_json::{Value, json};
use std::time::Duration;

/// How the process took to the handshake.
#[derive(Debug)]
pub enum Handshake {
    /// The era works.
    Works(Introduction),
    Error {
        code: i64,
        message: String,
        /// The versions that it names instead.
        supported: Vec<String>,
    },
    /// A result that is none of a handshake; its beginning.
    OddResult(String),
    Unreadable,
    Silence,
    Ended(Option<Exit>),
    /// It ended before anything was asked.
    EndedUnasked(Option<Exit>),
}

/// What the server said of itself.
#[derive(Debug)]
pub struct Introduction {
    pub version: String,
    /// Name and version.
    pub server: String,
    pub capabilities: Value,
}

/// How pings were taken.
#[derive(Debug)]
pub enum Ping {
    Answered(Duration),
    /// Only the one whose id was a number.
    NotWithStringId(Duration),
    Unanswered,
}

/// All that one process showed.
#[derive(Debug)]
pub struct Visit {
    pub handshake: Handshake,
    /// How long the handshake took.
    pub took: Duration,
    /// When anything was first answered, from the start on.
    pub first_answer: Option<Duration>,
    pub ping: Option<Ping>,
    pub lists: Vec<List>,
    /// How it ended; only one visit looks at that.
    pub end: Option<End>,
}

impl Visit {
    pub fn introduction(&self) -> Option<&Introduction> {
        if let Handshake::Works(introduction) = &self.handshake { Some(introduction) } else { None }
    }
}

/// Speaks to a fresh process as clients up to 2025-11-25 do.
pub fn legacy(lab: &mut Lab, noted: &mut Noted, timeout: Duration) -> Result<Visit, Failure> {
    lab.start()?;
    let mut talk = Talk::begin(lab, noted, Era::Legacy);
    let answer = talk.ask("initialize", &talk.handshake(), timeout);
    let (handshake, took) = (initialized(&answer), answer.took);
    let (mut ping, mut lists) = (None, Vec::new());
    if let Handshake::Works(introduction) = &handshake {
        talk.tell("notifications/initialized");
        ping = Some(try_ping(&mut talk, timeout.min(bounds::PING)));
        lists = lists::all(&mut talk, &introduction.capabilities, timeout.min(bounds::LIST));
    }
    let end = Some(ending::observe(&mut talk));
    Ok(Visit { handshake, took, first_answer: talk.first_answer, ping, lists, end })
}

/// Speaks to a fresh process as clients from 2026-07-28 on do. What the first visit has shown is
/// not looked at again.
pub fn modern(lab: &mut Lab, noted: &mut Noted, timeout: Duration, before: &Visit) -> Result<Visit, Failure> {
    lab.start()?;
    let mut talk = Talk::begin(lab, noted, Era::Modern);
    let usual = before.first_answer.unwrap_or_default();
    talk.listen(usual.clamp(bounds::LISTEN.0, bounds::LISTEN.1));
    let alive = talk.exit().is_none();
    let answer = talk.ask("server/discover", &talk.handshake(), timeout.min(bounds::DISCOVER + usual));
    let (handshake, took) = match discovered(&answer) {
        Handshake::Ended(exit) if !alive => (Handshake::EndedUnasked(exit), answer.took),
        handshake => (handshake, answer.took),
    };
    let mut lists = Vec::new();
    let mut end = None;
    if before.introduction().is_none() {
        if let Handshake::Works(introduction) = &handshake {
            lists = lists::all(&mut talk, &introduction.capabilities, timeout.min(bounds::LIST));
        }
        end = Some(ending::observe(&mut talk));
    } else {
        talk.lab.kill();
        talk.listen_out();
    }
    let first_answer = talk.first_answer;
    Ok(Visit { handshake, took, first_answer, ping: None, lists, end })
}

fn initialized(answer: &Answer) -> Handshake {
    let result = match settled(answer) {
        Ok(result) => result,
        Err(handshake) => return handshake,
    };
    let Some(version) = result["protocolVersion"].as_str() else { return odd_result(result) };
    Handshake::Works(Introduction {
        version: glimpse(version.as_bytes(), bounds::SHOWN),
        server: name_of(&result["serverInfo"]),
        capabilities: result["capabilities"].clone(),
    })
}

fn discovered(answer: &Answer) -> Handshake {
    let result = match settled(answer) {
        Ok(result) => result,
        Err(handshake) => return handshake,
    };
    let Some(versions) = texts(&result["supportedVersions"]) else { return odd_result(result) };
    let version = versions.iter().find(|version| *version == MODERN).or(versions.first());
    Handshake::Works(Introduction {
        version: version.cloned().unwrap_or_default(),
        server: name_of(&result["_meta"][META_SERVER]),
        capabilities: result["capabilities"].clone(),
    })
}

/// The result, or why there is none.
fn settled(answer: &Answer) -> Result<&Value, Handshake> {
    match &answer.reply {
        Reply::Result(result) => Ok(result),
        Reply::Error(code, message, data) => Err(Handshake::Error {
            code: *code,
            message: message.clone(),
            supported: texts(&data["supported"]).unwrap_or_default(),
        }),
        Reply::Unreadable => Err(Handshake::Unreadable),
        Reply::Silence => Err(Handshake::Silence),
        Reply::Ended(exit) => Err(Handshake::Ended(*exit)),
    }
}

fn odd_result(result: &Value) -> Handshake {
    Handshake::OddResult(glimpse(result.to_string().as_bytes(), bounds::SHOWN))
}

fn texts(list: &Value) -> Option<Vec<String>> {
    let shown = |text: &Value| Some(glimpse(text.as_str()?.as_bytes(), bounds::SHOWN));
    Some(list.as_array()?.iter().filter_map(shown).collect())
}

/// `demo 0.1.0`
fn name_of(info: &Value) -> String {
    let text = |key: &str| glimpse(info[key].as_str().unwrap_or_default().as_bytes(), bounds::SHOWN);
    format!("{} {}", text("name"), text("version")).trim().to_owned()
}

/// One ping with a number for an id, one with a string: some servers answer only the first.
fn try_ping(talk: &mut Talk<'_>, wait: Duration) -> Ping {
    let answer = talk.ask("ping", &json!({}), wait);
    if !is_answered(&answer) {
        return Ping::Unanswered;
    }
    let second = talk.ask_with_string_id("ping", &json!({}), wait);
    if is_answered(&second) { Ping::Answered(answer.took) } else { Ping::NotWithStringId(answer.took) }
}

/// An error says as well that somebody is there.
fn is_answered(answer: &Answer) -> bool {
    !matches!(answer.reply, Reply::Silence | Reply::Ended(_))
}
