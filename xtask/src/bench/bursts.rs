//! Ten thousand calls at once: do all of them end, and how late.
//!
//! A call counts from the moment before the write that completed it, so that time spent in pipes
//! and queues on the way counts as lateness, as it would for a client.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::figures::{Metric, Sample};
use super::link::Link;
use super::measures::millis;
use super::messages::{self, Call};
use super::processes;
use super::results::{median, percentile};
use super::sizes::Sizes;
use super::targets::{Programs, Target};

const CALLS: usize = 10_000;

/// Long enough that all calls are under way, and memory was read, before the first one is due.
const DELAY: Duration = Duration::from_millis(800);

/// Memory is read this long after the last call was written.
const SETTLE: Duration = Duration::from_millis(300);

/// The limit that fires ten thousand times, as outlast is told and as we measure it.
const TIMEOUT_FLAGS: [&str; 2] = ["--timeout", "2s"];
const TIMEOUT: Duration = Duration::from_secs(2);

/// An answer that is later than this counts as none.
const PATIENCE: Duration = Duration::from_secs(10);

/// How often the server is asked how many cancellations it has seen, and how long.
const ASK_EVERY: Duration = Duration::from_millis(50);
const ASK_FOR: Duration = Duration::from_secs(5);

/// Ten thousand calls that the server answers after a while.
///
/// Lateness is the median of several bursts, because one of them lasts only milliseconds and a
/// single interruption moves its p99.
pub fn pending(programs: &Programs, target: Target, sizes: &Sizes) -> Result<Vec<Sample>> {
    let mut link = Link::ready(programs, target, &[])?;
    let (mut unanswered, mut lateness, mut memory) = (0, Vec::new(), Vec::new());
    for _ in 0..sizes.bursts {
        let (burst, pss) = pending_burst(&mut link)?;
        unanswered += burst.answers.missing;
        lateness.push(burst.lateness_p99(DELAY)?);
        memory.push(pss);
    }
    link.close()?;
    let mut samples = vec![
        (Metric::PendingUnanswered, unanswered as f64),
        (Metric::PendingLateness, median(lateness).context("no burst")?),
    ];
    // Directly there is no process in the middle whose memory could count.
    if target != Target::Direct {
        let most = memory.into_iter().fold(0.0, f64::max);
        samples.push((Metric::MemoryPending, most));
    }
    Ok(samples)
}

/// One burst, and the memory while all of it was pending.
fn pending_burst(link: &mut Link) -> Result<(Burst, f64)> {
    let arguments = format!(r#"{{"ms":{}}}"#, DELAY.as_millis());
    let mut burst = Burst::new(link, &Call::new("later", &arguments));
    burst.write(link)?;
    std::thread::sleep(SETTLE);
    let memory = processes::pss_mib(&link.own_processes())?;
    burst.collect(link, DELAY)?;
    let errors = burst.answers.errors;
    ensure!(errors == 0, "{errors} calls got an error");
    Ok((burst, memory))
}

/// Ten thousand calls that the server never answers, so that as many limits fire.
pub fn limits(programs: &Programs, target: Target, _: &Sizes) -> Result<Vec<Sample>> {
    let mut link = Link::ready(programs, target, &TIMEOUT_FLAGS)?;
    let mut burst = Burst::new(&mut link, &Call::new("never", "{}"));
    burst.write(&mut link)?;
    burst.collect(&mut link, TIMEOUT)?;
    let results = CALLS - burst.answers.missing - burst.answers.errors;
    ensure!(results == 0, "{results} calls of `never` got a result");
    let cancelled = cancelled(&mut link)?;
    let samples = vec![
        (Metric::LimitsNotFired, burst.answers.missing as f64),
        (Metric::LimitsLateness, burst.lateness_p99(TIMEOUT)?),
        (Metric::LimitsNotCancelled, CALLS.abs_diff(cancelled as usize) as f64),
    ];
    link.close()?;
    Ok(samples)
}

/// How many cancellations have reached the server; the last ones may still be on their way.
fn cancelled(link: &mut Link) -> Result<u64> {
    let until = Instant::now() + ASK_FOR;
    loop {
        let seen = ask_cancelled(link)?;
        if seen >= CALLS as u64 || Instant::now() > until {
            return Ok(seen);
        }
        std::thread::sleep(ASK_EVERY);
    }
}

fn ask_cancelled(link: &mut Link) -> Result<u64> {
    link.call(&Call::new("stats", "{}"), |line| {
        messages::number_after(line, br#""cancelled":"#)
            .with_context(|| format!("no count in: {}", messages::start_of(line)))
    })
}

/// Many calls written as fast as the target takes them.
struct Burst {
    out: Vec<u8>,
    /// Where each call ends in `out`.
    ends: Vec<usize>,
    sent: Vec<Instant>,
    answers: Answers,
}

impl Burst {
    fn new(link: &mut Link, call: &Call) -> Burst {
        let first = link.fresh_ids(CALLS as u64);
        let mut out = Vec::new();
        let mut ends = Vec::with_capacity(CALLS);
        for id in first..first + CALLS as u64 {
            call.append(id, &mut out);
            ends.push(out.len());
        }
        Burst {
            out,
            ends,
            sent: Vec::with_capacity(CALLS),
            answers: Answers { first, arrived: vec![None; CALLS], missing: CALLS, errors: 0 },
        }
    }

    fn write(&mut self, link: &mut Link) -> Result<()> {
        let mut written = 0;
        loop {
            let began = Instant::now();
            written += link.write(&self.out[written..])?;
            let complete = self.ends.partition_point(|end| *end <= written);
            self.sent.resize(complete, began);
            if complete == CALLS {
                return Ok(());
            }
            link.listen(true, |line| self.answers.take(line))?;
        }
    }

    /// Waits for the rest of the answers; what is not there in time is left as missing.
    fn collect(&mut self, link: &mut Link, due_after: Duration) -> Result<()> {
        let until = Instant::now() + due_after + PATIENCE;
        while self.answers.missing > 0 {
            if !link.listen_until(until, false, |line| self.answers.take(line))? {
                return Ok(());
            }
        }
        Ok(())
    }

    /// In milliseconds, over the calls that were answered.
    fn lateness_p99(&self, due_after: Duration) -> Result<f64> {
        let both = self.sent.iter().zip(&self.answers.arrived);
        let late = both.filter_map(|(sent, arrived)| {
            let due = *sent + due_after;
            Some(millis((*arrived)?.saturating_duration_since(due)))
        });
        percentile(late.collect(), 0.99).context("no call was answered")
    }
}

/// Which calls were answered, and when.
struct Answers {
    /// The id of the first call.
    first: u64,
    arrived: Vec<Option<Instant>>,
    missing: usize,
    errors: usize,
}

impl Answers {
    fn take(&mut self, line: &[u8]) -> Result<()> {
        let place = messages::id_of(line)?.wrapping_sub(self.first) as usize;
        let arrived = self.arrived.get_mut(place).filter(|seen| seen.is_none());
        let arrived = arrived.with_context(|| format!("not awaited: {}", messages::start_of(line)))?;
        *arrived = Some(Instant::now());
        self.missing -= 1;
        self.errors += usize::from(!messages::is_result(line));
        Ok(())
    }
}
