//! What fits a client: the flags that its servers get, and what will happen there, in words.
//!
//! What was measured of a client acts by itself, so no flag is needed for it. A flag is written where the person has
//! set a limit of their own in the client's file, which the measured default knows nothing of; and `--instant` where
//! the client goes on without tools when a server starts slowly.

use super::clients::Client;
use super::server::{Kind, Server};
use crate::clients::advice::{self, UNKNOWN};
use outlast_engine::profile::{Effect, Profile, TABLE, keep_alive_for, rows};
use outlast_engine::settings::show_duration;
use std::time::Duration;

/// A client that waits no longer than this for a server to start goes on without it too often.
const HASTY_START: Duration = Duration::from_secs(10);

/// A keep-alive of ours that is shorter needs a flag.
const KEEP_ALIVE: Duration = Duration::from_secs(10);

/// The unit of a limit in a client's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    Seconds,
    Milliseconds,
}

/// What fits the servers of a client.
#[derive(Debug)]
pub struct Fitting<'a> {
    client: &'a Client,
    row: Option<Profile>,
}

impl<'a> Fitting<'a> {
    /// What is known of a client: what was measured last, or what people report.
    pub fn of(client: &'a Client) -> Fitting<'a> {
        let known = rows(TABLE).filter_map(|line| Profile::of_table(line).ok());
        let own: Vec<Profile> = known.filter(|row| *row.client == *client.called).collect();
        let measured = own.iter().rev().find(|row| row.is_certain());
        Fitting { client, row: measured.or(own.last()).cloned() }
    }

    fn measured(&self) -> Option<&Profile> {
        self.row.as_ref().filter(|row| row.is_certain())
    }

    /// The limit that the person has set for a server in the client's file.
    fn set(&self, server: &Server) -> Option<Duration> {
        let (key, unit) = self.client.limit?;
        let (_, number) = server.numbers.iter().find(|(name, _)| name == key)?;
        let seconds = if unit == Unit::Seconds { *number } else { number / 1000.0 };
        Duration::try_from_secs_f64(seconds).ok().filter(|time| *time >= Duration::from_millis(100))
    }

    /// Whether progress resets the client's limit, as far as anybody says.
    fn progress_helps(&self) -> bool {
        self.row.as_ref().is_some_and(|row| row.progress == Some(true) && row.token != Some(false))
    }

    /// The flags that fit a server.
    pub fn flags(&self, server: &Server) -> Vec<String> {
        if !matches!(server.kind, Kind::Stdio(_)) {
            return Vec::new();
        }
        let mut flags = Vec::new();
        match self.set(server) {
            Some(limit) if self.progress_helps() => {
                let pace = keep_alive_for(limit);
                if pace < KEEP_ALIVE {
                    flags.extend(["--keep-alive".to_owned(), written(pace)]);
                }
            }
            Some(limit) => flags.extend(["--client-cap".to_owned(), written(limit)]),
            None => {}
        }
        if self.measured().and_then(|row| row.start).is_some_and(|start| start <= HASTY_START) {
            flags.push("--instant".to_owned());
        }
        flags
    }

    /// What will happen with calls of a server.
    pub fn says(&self, server: &Server) -> String {
        let known = match (self.set(server), &self.row) {
            (Some(limit), _) if self.progress_helps() => {
                advice::of_effect(Effect { cap: None, silence: Some(limit) })
            }
            (Some(limit), _) => advice::of_effect(Effect { cap: Some(limit), silence: None }),
            (None, Some(row)) if row.is_certain() => advice::what_happens(row),
            (None, Some(Profile { cap: Some(cap), .. })) => {
                format!("{UNKNOWN} (others report a limit of {})", show_duration(*cap))
            }
            (None, _) => UNKNOWN.to_owned(),
        };
        let set = self.set(server).map(|limit| format!(" (its limit is set to {})", show_duration(limit)));
        let instant = self.measured().and_then(|row| row.start).filter(|start| *start <= HASTY_START);
        let instant = instant.map(|_| "; it does not wait for a slow start: --instant answers at once");
        format!("{known}{}{}", set.unwrap_or_default(), instant.unwrap_or_default())
    }
}

/// A time as people write it, in whole milliseconds.
fn written(time: Duration) -> String {
    show_duration(Duration::from_millis(time.as_millis() as u64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::install::clients::{CLIENTS, Shape};
    use crate::install::plan::servers;

    fn fits(row: Option<&str>, client: &str, entry: &str) -> (Vec<String>, String) {
        let text = format!(r#"{{"mcpServers":{{"a":{{"command":"x"{entry}}}}}}}"#);
        let found = servers(&text, Shape::McpServers).expect("servers");
        let client = CLIENTS.iter().find(|known| known.name == client).expect("a client");
        let row = row.map(|row| Profile::of_table(row).expect("a row"));
        let fitting = Fitting { client, row };
        (fitting.flags(&found[0]), fitting.says(&found[0]))
    }

    #[test]
    fn what_was_measured_acts_by_itself() {
        let (flags, says) = fits(Some("x=cap:60s,progress:no,measured:1"), "cline", "");
        assert_eq!((flags, says.as_str()), (vec![], "answers are handed off after 55s"));
        let (flags, says) = fits(Some("x=cap:60s,progress:yes,token:yes,measured:1"), "cline", "");
        assert_eq!((flags, says.as_str()), (vec![], "progress helps: sent every 10s"));
    }

    #[test]
    fn a_limit_in_the_file_is_written_down() {
        let (flags, says) = fits(Some("x=cap:60s,progress:no,measured:1"), "cline", r#","timeout":120"#);
        assert_eq!(flags, ["--client-cap", "2m"]);
        assert_eq!(says, "answers are handed off after 1m55s (its limit is set to 2m)");
        let (flags, says) = fits(Some("x=cap:10m,progress:yes"), "gemini", r#","timeout":15000"#);
        assert_eq!(flags, ["--keep-alive", "5s"]);
        assert_eq!(says, "progress helps: sent every 5s (its limit is set to 15s)");
        let (flags, _) = fits(Some("x=cap:10m,progress:yes"), "gemini", r#","timeout":20000"#);
        assert_eq!(flags, ["--keep-alive", "6s"], "whole seconds");
        let (flags, _) = fits(Some("x=cap:10m,progress:yes"), "gemini", r#","timeout":600000"#);
        assert_eq!(flags, Vec::<String>::new(), "the usual keep-alive is enough");
        let (flags, _) = fits(None, "gemini", r#","timeout":"soon""#);
        assert_eq!(flags, Vec::<String>::new());
    }

    #[test]
    fn nothing_is_written_for_what_others_say() {
        let (flags, says) = fits(Some("x=cap:1m,progress:no"), "cursor", "");
        assert_eq!(flags, Vec::<String>::new());
        assert_eq!(says, "unknown: run outlast doctor client (others report a limit of 1m)");
        assert_eq!(fits(None, "windsurf", "").1, "unknown: run outlast doctor client");
    }

    #[test]
    fn a_client_that_does_not_wait_for_a_start_gets_an_instant_one() {
        let (flags, says) = fits(Some("x=cap:5m,progress:no,start:1s,measured:1"), "codex", "");
        assert_eq!(flags, ["--instant"]);
        assert!(says.ends_with("--instant answers at once"), "{says}");
    }

    #[test]
    fn every_client_is_called_as_the_table_calls_it_or_not_at_all() {
        let known: Vec<Profile> = rows(TABLE).filter_map(|line| Profile::of_table(line).ok()).collect();
        for client in CLIENTS.iter().filter(|client| client.name != "windsurf") {
            assert!(known.iter().any(|row| *row.client == *client.called), "{}", client.name);
        }
    }
}
