//! What the store costs a call that has nothing to do with it, and what counting for Prometheus costs each.
//!
//! Counted in instructions, by callgrind: a per cent of a call would drown in the noise of a clock, and a
//! count is the same on a busy machine. What start and end cost is in both of two runs of different length,
//! and so not in their difference.

use anyhow::{Context, Result};

use super::figures::{Metric, Sample};
use super::http::client::{Client, Connection};
use super::link::Link;
use super::measures::SMALL;
use super::messages::{Call, Era};
use super::running::Running;
use super::sizes::Sizes;
use super::targets::{Programs, Target};
use crate::needs;

/// What the measures are called.
pub const STORE: &str = "store";
pub const METRICS: &str = "metrics";

/// Whether a measure is counted: then it is the same in every round.
pub fn is_counted(measure: &str) -> bool {
    [STORE, METRICS].contains(&measure)
}

/// Calls until everything that grows has grown.
const SHORT: u64 = 500;

/// Plain calls with a file to keep tickets in, against the same without one.
pub fn store(programs: &Programs, _: Target, sizes: &Sizes) -> Result<Vec<Sample>> {
    if !can_count("what the store costs a call") {
        return Ok(Vec::new());
    }
    let folder = programs.state().join("counted");
    let folder = folder.to_str().context("the path is no text")?;
    let on = ["--tasks", "--state", folder];
    // To make the file costs more than thousands of calls, and only once.
    count(programs, &on, 1)?;
    let on = per_call(programs, &on, sizes.counted)?;
    let off = per_call(programs, &["--tasks", "--state", "none"], sizes.counted)?;
    println!("  {off:.0} instructions per call without a store, {on:.0} with one");
    Ok(vec![(Metric::StoreInstructions, on / off)])
}

/// Plain calls with a database to keep tickets in, against the same without one; nothing where they cannot be counted.
pub fn of_database(programs: &Programs, url: &str, calls: u64) -> Result<Option<f64>> {
    if !can_count("what the database costs a call") {
        return Ok(None);
    }
    let on = per_call(programs, &["--tasks", "--store-url", url], calls)?;
    let off = per_call(programs, &["--tasks", "--state", "none"], calls)?;
    println!("  {off:.0} instructions per call without a store, {on:.0} with the database");
    Ok(Some(on / off))
}

/// Plain calls over HTTP with metrics, against the same without.
pub fn metrics(programs: &Programs, _: Target, sizes: &Sizes) -> Result<Vec<Sample>> {
    if !can_count("what metrics cost a call") {
        return Ok(Vec::new());
    }
    let per_call = |flags: &[&str]| difference(sizes.counted, |calls| count_served(programs, flags, calls));
    let (on, off) = (per_call(&["--metrics"])?, per_call(&[])?);
    println!("  {off:.0} instructions per call without metrics, {on:.0} with them");
    Ok(vec![(Metric::MetricsInstructions, on / off)])
}

fn can_count(what: &str) -> bool {
    let can = needs::has("valgrind");
    if !can {
        println!("  no valgrind here: {what} is not counted");
    }
    can
}

fn per_call(programs: &Programs, flags: &[&str], calls: u64) -> Result<f64> {
    difference(calls, |calls| count(programs, flags, calls))
}

/// What each call costs: by two lives of different length.
fn difference(calls: u64, count: impl Fn(u64) -> Result<u64>) -> Result<f64> {
    let (short, long) = (count(SHORT)?, count(SHORT + calls)?);
    Ok((long as f64 - short as f64) / calls as f64)
}

/// All instructions of `outlast serve` in a life with so many calls of a legacy session, one by one.
fn count_served(programs: &Programs, flags: &[&str], calls: u64) -> Result<u64> {
    let mut server = Running::start("server", programs.server(&[]))?;
    let mut served = Running::start("counted", programs.counted_serve(server.address()?, flags))?;
    let mut connection = Connection::open(served.address()?)?;
    let mut client = Client::enter(&mut connection, Era::Legacy)?;
    let request = client.prepare(Call::echo_of(Era::Legacy, SMALL));
    let first = client.fresh_ids(calls);
    for id in first..first + calls {
        connection.exchange(&request.bytes(id))?.expect_result(id)?;
    }
    let (pid, said) = served.end_and_tell()?;
    server.end()?;
    collected(pid, &said).with_context(|| format!("valgrind said no count: {said}"))
}

/// All instructions of outlast's first process in a life with so many calls, one by one.
fn count(programs: &Programs, flags: &[&str], calls: u64) -> Result<u64> {
    let mut link = Link::open_counted(programs, flags)?;
    link.shake_hands()?;
    let call = Call::echo(SMALL);
    for _ in 0..calls {
        link.call(&call, |_| Ok(()))?;
    }
    let (pid, said) = link.close_and_tell()?;
    collected(pid, &said).with_context(|| format!("valgrind said no count: {said}"))
}

/// `==PID== Collected : N`; the guardian, a fork, says its own.
fn collected(pid: u32, said: &str) -> Option<u64> {
    let mark = format!("=={pid}== Collected :");
    said.lines().find_map(|line| line.strip_prefix(&mark)?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_count_of_the_right_process_is_found() {
        let said = "==8== Collected : 77\noutlast: ready\n==7== Events    : Ir\n==7== Collected : 123456\n";
        assert_eq!(collected(7, said), Some(123_456));
        assert_eq!(collected(9, said), None);
    }
}
