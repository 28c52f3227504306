//! The tables of `docs/clients.md`: made from `measured.json`, between two markers.

use std::path::PathBuf;

use anyhow::{Context, Result};

use super::list::{self, LeftOut};
use super::row::{Call, Measured, Row};
use crate::shell::root;

const BEGIN: &str = "<!-- measured: written by `cargo xtask clients` -->\n";
const END: &str = "<!-- /measured -->\n";

fn path() -> PathBuf {
    root().join("docs/clients.md")
}

/// Writes the tables into the page.
pub fn write(measured: &Measured) -> Result<()> {
    let page = std::fs::read_to_string(path()).context("cannot read docs/clients.md")?;
    let (before, after) = around(&page)?;
    Ok(std::fs::write(path(), [before, &tables(measured, &list::left_out()?), after].concat())?)
}

/// The page without its tables, markers included.
fn around(page: &str) -> Result<(&str, &str)> {
    let begin = page.find(BEGIN).context("docs/clients.md has lost its first marker")? + BEGIN.len();
    let end = page.find(END).context("docs/clients.md has lost its last marker")?;
    Ok((&page[..begin], &page[end..]))
}

fn tables(measured: &Measured, left_out: &[LeftOut]) -> String {
    let (good, failed): (Vec<&Row>, Vec<&Row>) =
        measured.clients.iter().partition(|row| row.failed.is_none());
    let mut text = String::from("\n## Will it help my client?\n\n");
    text += "| client | a silent call ends after | progress resets that | a slow call directly | through outlast | with |\n";
    text += "|---|--:|---|---|---|---|\n";
    text += &good.iter().map(|row| help(row)).collect::<String>();
    text += "\n## What each client does\n\n";
    text += "| client | calls itself | revision | token | gives up by | start, list | `list_changed` | tasks, elicitation | doctor finds | measured |\n";
    text += "|---|---|---|---|---|---|---|---|---|---|\n";
    text += &good.iter().map(|row| conduct(row)).collect::<String>();
    text += "\n## Notes\n\n";
    text += &good
        .iter()
        .filter(|row| !row.notes.is_empty())
        .map(|row| note(&row.name, &row.notes))
        .collect::<String>();
    text += &failed.iter().map(|row| unmeasured(row)).collect::<String>();
    text += &left_out.iter().map(|it| note(&it.name, &format!("left out. {}", it.why))).collect::<String>();
    text + "\n"
}

fn note(name: &str, text: &str) -> String {
    format!("- **{name}**: {text}\n")
}

fn unmeasured(row: &Row) -> String {
    note(&row.name, &format!("not measured: {}", row.failed.clone().unwrap_or_default()))
}

fn help(row: &Row) -> String {
    let direct = row.direct.as_ref().map_or("not tried".to_owned(), verdict);
    let through = row.through_outlast.as_ref().map_or("not tried".to_owned(), verdict);
    let with = row.through_outlast.as_ref().map(with).unwrap_or_default();
    let limit = limit(row.silent_limit_ms, row.silent_observed_up_to_ms);
    format!("| {} {} | {limit} | {} | {direct} | {through} | {with} |\n", row.name, row.version, resets(row))
}

fn verdict(call: &Call) -> String {
    let time = time(call.call_ms);
    match call.outcome.as_str() {
        "result" => format!("{time}: answered"),
        "error" => format!("{time}: **lost**"),
        other => format!("{time}: {other}"),
    }
}

fn with(call: &Call) -> String {
    let flags =
        call.flags.iter().map(|flag| format!("`{}`", flag.replace('=', " "))).collect::<Vec<_>>().join(" ");
    match call.how.as_str() {
        "plain" => "nothing: it has no limit to help with".to_owned(),
        how => format!("{how}, {flags}"),
    }
}

fn resets(row: &Row) -> String {
    let seen = row.progress_observed_up_to_ms.map(time).unwrap_or_default();
    match (row.progress_moves, row.progress_total_ms) {
        (Some(false), _) if !row.token => "no (no token)".to_owned(),
        (Some(false), _) => "no".to_owned(),
        (Some(true), Some(total)) => format!("yes, up to {}", time(total)),
        (Some(true), None) => format!("yes (watched for {seen})"),
        (None, _) => "–".to_owned(),
    }
}

fn conduct(row: &Row) -> String {
    let sends = [&row.sends.name, &row.sends.version].map(|word| word.clone().unwrap_or_default()).join(" ");
    let yes = |is: bool| if is { "yes" } else { "no" };
    let start = limit(row.start_limit_ms, row.start_observed_up_to_ms);
    let without =
        row.starts_without_ms.map(|ms| format!("; begins without it after {}", time(ms))).unwrap_or_default();
    let list = limit(row.list_limit_ms, row.list_observed_up_to_ms);
    format!(
        "| {} | `{sends}` | {} | {} | {} | {start}{without}, {list} | {} | {}, {} | {} | {} |\n",
        row.name,
        row.asks_for.clone().unwrap_or_default(),
        yes(row.token),
        gives_up(row),
        yes(row.list_changed),
        yes(row.tasks),
        yes(row.elicitation),
        examined(row),
        row.date,
    )
}

fn examined(row: &Row) -> String {
    match &row.doctor {
        Some(found) if found.agrees => "the same".to_owned(),
        Some(found) => format!("{}, {}", found.cap, found.resets_on_progress),
        None => "–".to_owned(),
    }
}

fn gives_up(row: &Row) -> String {
    let how = match row.cancels.as_deref() {
        Some("notification") => "`cancelled`",
        Some("eof") => "closing the server",
        Some(_) => "nothing",
        None => "–",
    };
    let answered = if row.cancels_answered { ", also for answered calls" } else { "" };
    let repeats =
        if row.repeats > 0 { format!(", then calls again ({}×)", row.repeats) } else { String::new() };
    format!("{how}{answered}{repeats}")
}

fn limit(limit: Option<u64>, watched: u64) -> String {
    limit.map_or_else(|| format!("none in {}", time(watched)), time)
}

/// Milliseconds for people.
fn time(ms: u64) -> String {
    let minutes = (ms + 500) / 60_000;
    match ms {
        0..10_000 => format!("{}.{} s", ms / 1000, ms % 1000 / 100),
        _ if ms.abs_diff(minutes * 60_000) < 1000 && minutes > 1 => format!("{minutes} min"),
        _ => format!("{} s", (ms + 500) / 1000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A figure on the page is one that a run has put into the file.
    #[test]
    fn the_page_says_what_was_measured() {
        let page = std::fs::read_to_string(path()).unwrap();
        let (before, after) = around(&page).unwrap();
        let between = &page[before.len()..page.len() - after.len()];
        assert_eq!(between, tables(&Measured::read().unwrap(), &list::left_out().unwrap()));
    }

    /// A row needs a run, and a run a driver of that version.
    #[test]
    fn every_row_is_of_a_client_in_the_list() {
        let listed = list::chosen(&[]).unwrap();
        for row in Measured::read().unwrap().clients {
            let client = listed
                .iter()
                .find(|client| client.name == row.name)
                .unwrap_or_else(|| panic!("{}", row.name));
            assert_eq!(client.version, row.version, "{} was measured in another version", row.name);
            assert!(row.failed.is_some() || !row.date.is_empty());
        }
    }

    #[test]
    fn times_are_for_people() {
        assert_eq!(time(850), "0.8 s");
        assert_eq!(time(60_012), "60 s");
        assert_eq!(time(300_400), "5 min");
        assert_eq!(time(330_000), "330 s");
    }
}
