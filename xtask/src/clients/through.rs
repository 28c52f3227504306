//! A call of five minutes or more: directly, and through outlast with what the client's limit asks for.

use std::time::Duration;

use anyhow::Result;

use super::measure::{Session, millis};
use super::row::{Call, Row};
use super::run::Plan;

/// The call that people complain about.
const CALL: Duration = Duration::from_secs(300);
/// A call has to be this much longer than the limit to die of it.
const BEYOND: Duration = Duration::from_secs(30);
const AROUND: Duration = Duration::from_secs(120);
const TEXT: usize = 300;

/// What outlast can do for a client.
#[derive(Debug, PartialEq)]
struct Help {
    how: &'static str,
    flags: Vec<String>,
}

/// Both calls, side by side.
pub fn calls(session: &Session<'_>, row: &Row) -> Result<(Call, Call)> {
    let mut help = help(row);
    if help.how != "plain" {
        help.flags.extend(session.extra_flags());
    }
    let long = length(row);
    std::thread::scope(|scope| {
        let direct = scope.spawn(|| call(session, "direct", long, None));
        let through = call(session, "through", long, Some(&help))?;
        Ok((direct.join().expect("a run does not panic")?, through))
    })
}

/// Long enough to die directly, if the client has a limit.
fn length(row: &Row) -> Duration {
    let limit = row.silent_limit_ms.map(Duration::from_millis);
    limit.map_or(CALL, |limit| CALL.max(limit + BEYOND))
}

/// Keep-alive where progress resets the limit, hand-off before a limit that nothing resets.
fn help(row: &Row) -> Help {
    let moves = row.progress_moves == Some(true);
    let within = row.progress_total_ms.is_none_or(|total| Duration::from_millis(total) > length(row));
    match row.silent_limit_ms {
        None => Help { how: "plain", flags: vec![] },
        Some(limit) if moves && within => {
            Help { how: "keep-alive", flags: vec![format!("--keep-alive={}s", seconds(limit / 3))] }
        }
        Some(limit) => Help { how: "hand-off", flags: vec![format!("--client-cap={}s", seconds(limit))] },
    }
}

/// What a person would write.
fn seconds(ms: u64) -> u64 {
    ((ms + 500) / 1000).max(1)
}

fn call(session: &Session<'_>, label: &str, long: Duration, help: Option<&Help>) -> Result<Call> {
    let mut plan = Plan::direct(label, format!("answer:{}", long.as_millis()), long + AROUND);
    plan.outlast = help.map(|help| help.flags.as_slice());
    plan.obey = help.is_some_and(|help| help.how == "hand-off");
    let end = session.run(&plan)?.end;
    Ok(Call {
        flags: help.map(|help| help.flags.clone()).unwrap_or_default(),
        call_ms: millis(long),
        outcome: end.outcome,
        text: end.text.chars().take(TEXT).collect(),
        how: help.map_or("direct", |help| help.how).to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(limit: Option<u64>, moves: bool, total: Option<u64>) -> Row {
        Row {
            silent_limit_ms: limit,
            progress_moves: Some(moves),
            progress_total_ms: total,
            ..Row::default()
        }
    }

    #[test]
    fn a_client_gets_what_its_limit_asks_for() {
        assert_eq!(help(&row(None, false, None)).how, "plain");
        assert_eq!(help(&row(Some(60_012), true, None)).flags, ["--keep-alive=20s"]);
        assert_eq!(help(&row(Some(60_012), false, None)).flags, ["--client-cap=60s"]);
        assert_eq!(help(&row(Some(60_000), true, Some(120_000))).how, "hand-off");
    }

    #[test]
    fn the_call_is_longer_than_the_limit() {
        assert_eq!(length(&row(Some(60_000), false, None)), CALL);
        assert_eq!(length(&row(Some(600_000), false, None)), Duration::from_secs(630));
    }
}
