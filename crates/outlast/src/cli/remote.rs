//! `outlast [OPTIONS] URL`: a server behind HTTP.

use super::flags::{Flags, take};
use super::{Task, Wrong};
use crate::config::{self, Settings};
use crate::server::http::{Options, Remote, parse_header, proxies_of_environment};
use http::Uri;
use outlast_engine::settings::Mode;
use std::ffi::OsString;
use std::sync::Arc;

/// `outlast [OPTIONS] URL`.
pub(super) fn parse(word: &OsString, flags: &Flags, mode: Mode) -> Result<Task, Wrong> {
    let url = url(word)?;
    let settings = take(Settings::for_remote(&url), flags, mode)?;
    let remote = reach(url, &settings)?;
    Ok(Task::Remote(Box::new(settings), remote))
}

/// Whether a word is the address of a remote server.
pub(super) fn is_url(word: &OsString) -> bool {
    word.to_str().is_some_and(|word| word.starts_with("http://") || word.starts_with("https://"))
}

/// Reads the address of a remote server.
pub(super) fn url(word: &OsString) -> Result<Uri, Wrong> {
    let wrong = || Wrong("that is not the URL of an MCP server; write: outlast https://host/mcp".into());
    let url: Uri = word.to_str().and_then(|word| word.parse().ok()).ok_or_else(wrong)?;
    let host = url.host().filter(|host| !host.is_empty()).ok_or_else(wrong)?;
    // The parser takes any text for a port.
    let authority = url.authority().map_or("", |authority| authority.as_str());
    let port = authority.rsplit_once(host).and_then(|(_, rest)| rest.strip_prefix(':'));
    if port.is_some_and(|port| port.parse::<u16>().is_err()) {
        return Err(wrong());
    }
    Ok(url)
}

/// What is needed to reach a server.
pub(super) fn reach(url: Uri, settings: &Settings) -> Result<Arc<Remote>, Wrong> {
    let remote = &settings.remote;
    let read =
        |text: &String| parse_header(text, config::variable).map_err(|why| Wrong(format!("--header: {why}")));
    let proxies = proxies_of_environment(&url, config::any_variable).map_err(Wrong)?;
    let options = Options {
        url,
        headers: remote.headers.iter().map(read).collect::<Result<_, Wrong>>()?,
        ca_file: remote.ca_file.clone(),
        proxies,
        way: None,
        connect: remote.connect,
        pool_idle: remote.pool_idle,
        pool_max_idle: remote.pool_max_idle,
        max_message: settings.engine.max_message,
    };
    Remote::new(options).map_err(Wrong)
}
