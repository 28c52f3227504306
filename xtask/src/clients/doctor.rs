//! Does `outlast doctor client` find the same figures? It measures from inside what the probe's record shows from outside.

use std::time::Duration;

use anyhow::Result;
use serde_json::json;

use super::measure::Session;
use super::row::{Doctor, Row};
use super::run::Plan;

/// Longer limits would take the doctor most of an hour.
const LONGEST: Duration = Duration::from_secs(310);
/// How much longer than the limit the silent call is.
const BEYOND: Duration = Duration::from_secs(30);
const AROUND: Duration = Duration::from_secs(120);
/// The doctor gives tenths of a second, and a busy machine is late.
const TOLERANCE: f64 = 0.02;

/// Lets the client's model call the doctor's tools; nothing for a client without a model.
pub fn examine(session: &Session<'_>, row: &Row) -> Result<Option<Doctor>> {
    let Some(limit) = row.silent_limit_ms.map(Duration::from_millis).filter(|limit| *limit <= LONGEST) else {
        return Ok(None);
    };
    if row.offered_as.is_none() {
        return Ok(None);
    }
    let seconds = (limit + BEYOND).as_secs();
    let mut plan = Plan::direct("doctor", "silent", limit * 3 + AROUND);
    plan.doctor = Some(json!([
        { "name": "probe_silence", "arguments": { "seconds": seconds } },
        { "name": "probe_progress", "arguments": {} },
        { "name": "probe_report", "arguments": {} },
    ]));
    Ok(Some(compare(&session.run(&plan)?.end.text, row)))
}

fn compare(report: &str, row: &Row) -> Doctor {
    let (cap, resets) = (value(report, "cap"), value(report, "resets-on-progress"));
    let expected = match row.progress_moves {
        // Without a token the doctor cannot try.
        _ if !row.token => "unknown",
        Some(true) => "yes",
        _ => "no",
    };
    let agrees = is_close(&cap, row.silent_limit_ms.unwrap_or_default()) && resets == expected;
    Doctor { cap, resets_on_progress: resets, agrees }
}

/// `cap = "60.0s"`; some clients hand the report on as JSON, with its quotes escaped.
fn value(report: &str, key: &str) -> String {
    let found = report.split_once(&format!("{key} = ")).map_or("", |(_, rest)| rest);
    found.trim_start_matches(['\\', '"']).chars().take_while(|c| !['\\', '"'].contains(c)).collect()
}

/// `<=` stands before what was seen by the next call and not by a cancel.
fn is_close(cap: &str, limit_ms: u64) -> bool {
    let seconds: Option<f64> =
        cap.trim_start_matches("<=").strip_suffix('s').and_then(|text| text.parse().ok());
    let limit = Duration::from_millis(limit_ms).as_secs_f64();
    seconds.is_some_and(|seconds| (seconds - limit).abs() <= limit * TOLERANCE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_compared_with_the_row() {
        let row =
            Row { silent_limit_ms: Some(60_010), progress_moves: Some(true), token: true, ..Row::default() };
        let report = "cap = \"60.0s\"  # x\nresets-on-progress = \"yes\"  # y";
        let found = compare(report, &row);
        assert!(found.agrees && found.cap == "60.0s", "{found:?}");
        assert!(!compare(report, &Row { silent_limit_ms: Some(70_000), ..row.clone() }).agrees);
        assert!(!compare(report, &Row { progress_moves: Some(false), ..row }).agrees);
    }

    #[test]
    fn a_report_inside_json_is_read_too() {
        let row = Row { silent_limit_ms: Some(60_010), progress_moves: Some(false), ..Row::default() };
        let report = r#"{"text":"cap = \"<=60.0s\"  # x\nresets-on-progress = \"unknown\"  # y"}"#;
        assert!(compare(report, &row).agrees);
    }
}
