//! A file that is read again while its servers run.

use super::{Gateway, Mistake, Severity, TokenRule, load};
use crate::config::Settings;
use crate::program::Program;
use outlast_engine::ClientRule;
use outlast_engine::settings::Setting;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// What must be known to read a file again and get what a new process would get.
#[derive(Debug)]
pub struct Reading {
    path: PathBuf,
    /// What it was read from last, by the names that these files have on the disk.
    files: Vec<PathBuf>,
    flags: Vec<(&'static Setting, String)>,
    process: Vec<(&'static str, String)>,
    tokens: Tokens,
}

/// What the token of each principal is, and what it is for, as a text to compare.
type Tokens = BTreeMap<Box<str>, String>;

/// What a file says when it is read again.
#[derive(Debug)]
pub struct Again {
    /// Its servers, in `engine`.
    pub settings: Settings,
    /// How they are reached, in the same order.
    pub programs: Vec<Program>,
    /// Settings that are otherwise now, and count from the next start on.
    pub at_next_start: Vec<&'static str>,
    /// Principals whose token is gone, or is for something else; `None` for who needed none before.
    pub revoked: Vec<Option<Box<str>>>,
}

/// What a file looks like without reading it: where its name leads, and what the system knows of that.
type Stamp = Option<(PathBuf, u64, SystemTime, (u64, u64))>;

impl Reading {
    /// How to read again what was read from this path.
    pub fn of(path: &Path, gateway: &Gateway, flags: &[(&'static Setting, String)]) -> Reading {
        let (files, process) = (gateway.files.clone(), counts_at_start(gateway));
        let tokens = tokens_of(gateway);
        Reading { path: path.to_path_buf(), files, flags: flags.to_vec(), process, tokens }
    }

    /// Reads it. What is wrong with it is a line each; what was read before stays in force then.
    pub fn again(&mut self) -> Result<Again, Vec<String>> {
        let mut gateway = load(&self.path).map_err(|mistakes| {
            let errors = mistakes.iter().filter(|mistake| mistake.severity == Severity::Error);
            errors.map(Mistake::line).collect::<Vec<String>>()
        })?;
        self.files.clone_from(&gateway.files);
        gateway.overrule(&self.flags).map_err(|why| vec![why.to_string()])?;
        let (process, tokens) = (counts_at_start(&gateway), tokens_of(&gateway));
        let (settings, programs) = gateway.assemble().map_err(|why| vec![why])?;
        let at_next_start = differing(&self.process, &process);
        let revoked = revoked(&self.tokens, &tokens);
        (self.process, self.tokens) = (process, tokens);
        Ok(Again { settings, programs, at_next_start, revoked })
    }

    /// What all its files look like. Two that differ tell that it may say something else.
    pub fn stamps(&self) -> Vec<Stamp> {
        std::iter::once(&self.path).chain(&self.files).map(|path| stamp(path)).collect()
    }

    /// Its name, for people.
    pub fn name(&self) -> String {
        self.path.display().to_string()
    }
}

/// Bounds are left out: they hold for the calls that come, whoever is there.
fn tokens_of(gateway: &Gateway) -> Tokens {
    let said = |token: &TokenRule| format!("{:?}", (token.hash, &token.servers, &token.tools, token.reach));
    gateway.tokens.iter().map(|token| (token.name.as_str().into(), said(token))).collect()
}

/// Whose sessions end: what they may was decided when they began.
fn revoked(before: &Tokens, now: &Tokens) -> Vec<Option<Box<str>>> {
    let changed = before.iter().filter(|(name, said)| now.get(*name) != Some(said));
    let first = (before.is_empty() && !now.is_empty()).then_some(None);
    changed.map(|(name, _)| Some(name.clone())).chain(first).collect()
}

/// What a running process does not take over: settings of the whole process, and what is written of clients.
fn counts_at_start(gateway: &Gateway) -> Vec<(&'static str, String)> {
    let rules = gateway.settings.engine.clients.iter();
    let clients =
        rules.map(|rule| ("clients", format!("{:?}", ClientRule { source: "".into(), ..(**rule).clone() })));
    let callbacks = gateway.callbacks.iter().map(|rule| ("callbacks", rule.fingerprint().to_string()));
    gateway.process.iter().cloned().chain(clients).chain(callbacks).collect()
}

/// `None` while there is no such file. A link that leads elsewhere shows itself by where it leads.
fn stamp(path: &Path) -> Stamp {
    let real = std::fs::canonicalize(path).ok()?;
    let metadata = std::fs::metadata(&real).ok()?;
    let identity = crate::sys::files::identity(&real).ok()?;
    Some((real, metadata.len(), metadata.modified().ok()?, identity))
}

/// Settings that are only in one of these, or otherwise.
fn differing(before: &[(&'static str, String)], now: &[(&'static str, String)]) -> Vec<&'static str> {
    let of = |all: &[(&'static str, String)], name: &str| -> Vec<String> {
        all.iter().filter(|(known, _)| *known == name).map(|(_, text)| text.clone()).collect()
    };
    let mut names: Vec<&'static str> = before.iter().chain(now).map(|(name, _)| *name).collect();
    names.sort_unstable();
    names.dedup();
    names.retain(|name| of(before, name) != of(now, name));
    names
}
