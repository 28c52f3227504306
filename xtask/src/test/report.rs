//! The table at the end of `cargo xtask test`: what ran, how much of it, how long, and what came of it.

use std::fmt::Write;
use std::time::Duration;

use anyhow::{Result, bail};

use crate::amount::Amount;

/// One part that has run.
pub struct Row {
    pub part: &'static str,
    /// What it shows, in a few words.
    pub what: &'static str,
    pub amount: Amount,
    pub took: Duration,
    pub failure: Option<anyhow::Error>,
}

/// All that ran.
#[derive(Default)]
pub struct Report(Vec<Row>);

impl Report {
    pub fn add(&mut self, row: Row) {
        self.0.push(row);
    }

    /// An error that names the parts that failed, each with the command that runs it alone.
    pub fn verdict(&self) -> Result<()> {
        let failed = || self.0.iter().filter(|row| row.failure.is_some());
        if failed().next().is_none() {
            return Ok(());
        }
        let names: Vec<&str> = failed().map(|row| row.part).collect();
        let mut text = format!("failed: {}", names.join(", "));
        for row in failed() {
            let why = row.failure.as_ref().map(|why| format!("{why:#}")).unwrap_or_default();
            let first = why.lines().next().unwrap_or_default();
            let _ = write!(text, "\n  cargo xtask test {:<12} {first}", row.part);
        }
        bail!(text)
    }

    pub fn table(&self) -> String {
        let mut lines = vec![["part", "what", "how much", "time", ""].map(str::to_owned)];
        lines.extend(self.0.iter().map(cells));
        let total = time(self.0.iter().map(|row| row.took).sum());
        lines.push(["all", "", "", &total, ""].map(str::to_owned));
        let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
        let widths: [usize; 4] = std::array::from_fn(width);
        lines.iter().map(|line| shown(line, &widths)).collect()
    }
}

fn cells(row: &Row) -> [String; 5] {
    let outcome = if row.failure.is_some() { "FAILED" } else { "ok" };
    [row.part.to_owned(), row.what.to_owned(), row.amount.to_string(), time(row.took), outcome.to_owned()]
}

fn shown([part, what, amount, time, outcome]: &[String; 5], widths: &[usize; 4]) -> String {
    let [a, b, c, d] = *widths;
    let line = format!("{part:<a$}  {what:<b$}  {amount:<c$}  {time:>d$}  {outcome}");
    line.trim_end().to_owned() + "\n"
}

fn time(took: Duration) -> String {
    let seconds = took.as_secs_f64().round() as u64;
    format!("{}:{:02}", seconds / 60, seconds % 60)
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::anyhow;

    fn report(failure: Option<anyhow::Error>) -> Report {
        let mut report = Report::default();
        for (part, seconds, failure) in [("unit", 75, None), ("e2e", 5, failure)] {
            let mut amount = Amount::default();
            amount.add(1200, "tests");
            report.add(Row { part, what: "shows", amount, took: Duration::from_secs(seconds), failure });
        }
        report
    }

    #[test]
    fn the_table_has_a_line_for_each_part_and_the_time_of_all() {
        let expected = "part  what   how much     time\n\
                        unit  shows  1,200 tests  1:15  ok\n\
                        e2e   shows  1,200 tests  0:05  FAILED\n\
                        all                       1:20\n";
        assert_eq!(report(Some(anyhow!("boom"))).table(), expected);
    }

    #[test]
    fn what_failed_is_named_with_the_command_that_repeats_it() {
        assert!(report(None).verdict().is_ok());
        let verdict = report(Some(anyhow!("2 tests\nlong story"))).verdict().unwrap_err();
        assert_eq!(verdict.to_string(), "failed: e2e\n  cargo xtask test e2e          2 tests");
    }
}
