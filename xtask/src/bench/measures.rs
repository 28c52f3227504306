//! How each figure is taken, one fresh target at a time.
//!
//! Not here: the figures about ten thousand calls at once (`bursts.rs`).

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::bursts;
use super::figures::{Metric, Sample};
use super::instructions;
use super::link::Link;
use super::messages::{self, Call};
use super::processes;
use super::results::{median, percentile};
use super::sizes::Sizes;
use super::targets::{Programs, Target};

/// The payload of a small call. With its envelope a message is about twice as long.
pub const SMALL: usize = 100;

/// Calls in flight at once; all of them together fit into a pipe.
pub const IN_FLIGHT: u64 = 64;

/// Small calls before a measurement begins, so that pages and caches are warm.
pub const WARM_UP: u64 = 500;

/// Quiet time before memory counts as idle.
pub const SETTLE: Duration = Duration::from_millis(300);

/// "One second after": a little more, because a timer of exactly one second needs to have fired.
const AFTER_LARGE: Duration = Duration::from_millis(1200);

pub const MEGABYTE: usize = 1_000_000;

/// One thing to do with a target, which gives some figures.
pub struct Measure {
    pub name: &'static str,
    pub targets: &'static [Target],
    pub take: fn(&Programs, Target, &Sizes) -> Result<Vec<Sample>>,
}

pub static MEASURES: [Measure; 9] = [
    Measure { name: "round trip", targets: &Target::ALL, take: round_trip },
    Measure { name: "calls in flight", targets: &Target::ALL, take: in_flight },
    Measure { name: "large payloads", targets: &Target::ALL, take: large },
    Measure { name: "cold start", targets: &Target::ALL, take: cold_start },
    Measure { name: "slow start", targets: &Target::ALL, take: slow_start },
    // Directly there is no process in the middle whose memory could be read.
    Measure { name: "memory", targets: &[Target::Floor, Target::Outlast], take: memory },
    Measure { name: "10,000 calls pending", targets: &Target::ALL, take: bursts::pending },
    // Only outlast has limits.
    Measure { name: "10,000 limits", targets: &[Target::Outlast], take: bursts::limits },
    Measure { name: instructions::STORE, targets: &[Target::Outlast], take: instructions::store },
];

/// Small calls one by one: how long each takes, and what the proxy's processes spend on it.
fn round_trip(programs: &Programs, target: Target, sizes: &Sizes) -> Result<Vec<Sample>> {
    let mut link = warm(programs, target)?;
    let call = Call::echo(SMALL);
    let mut times = Vec::with_capacity(sizes.one_by_one as usize);
    let spent = Spent::begin(link.own_processes(), target)?;
    for _ in 0..sizes.one_by_one {
        let (request, id) = link.request(&call);
        let began = Instant::now();
        link.exchange(&request, id, |_| Ok(()))?;
        times.push(micros(began.elapsed()));
    }
    let cpu = spent.per_call(sizes.one_by_one)?;
    link.close()?;
    let mut samples =
        vec![(Metric::RoundTripP50, at(&times, 0.5)?), (Metric::RoundTripP99, at(&times, 0.99)?)];
    samples.extend(cpu.map(|cpu| (Metric::CpuOneByOne, cpu)));
    Ok(samples)
}

/// How a client with several requests to send hands them to the pipe.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Writes {
    /// Each by itself, as the SDKs do.
    Single,
    /// All at once, which no client does. The driver is then so cheap that the proxy's own cost is
    /// most of what is left to see.
    Joined,
}

/// Small calls with 64 of them always under way, by a client like the real ones and by a cheap one.
fn in_flight(programs: &Programs, target: Target, sizes: &Sizes) -> Result<Vec<Sample>> {
    let mut link = warm(programs, target)?;
    let spent = Spent::begin(link.own_processes(), target)?;
    let single = calls_per_second(&mut link, sizes.in_flight, Writes::Single)?;
    let cpu = spent.per_call(sizes.in_flight)?;
    let joined = calls_per_second(&mut link, sizes.in_flight, Writes::Joined)?;
    link.close()?;
    let mut samples = vec![(Metric::CallsPerSecond, single), (Metric::CallsPerSecondJoined, joined)];
    samples.extend(cpu.map(|cpu| (Metric::CpuInFlight, cpu)));
    Ok(samples)
}

/// Every answer makes room for the next call.
fn calls_per_second(link: &mut Link, count: u64, writes: Writes) -> Result<f64> {
    let call = Call::echo(SMALL);
    let first = link.fresh_ids(count);
    let mut answered = vec![false; count as usize];
    let (mut asked, mut done) = (0, 0);
    let mut out = Vec::new();
    let began = Instant::now();
    while done < count {
        while asked < count && asked - done < IN_FLIGHT {
            call.append(first + asked, &mut out);
            asked += 1;
            if writes == Writes::Single {
                flush(link, &mut out)?;
            }
        }
        flush(link, &mut out)?;
        link.listen(!out.is_empty(), |line| {
            let place = messages::id_of(line)?.wrapping_sub(first) as usize;
            let seen = answered.get_mut(place).filter(|seen| !**seen);
            *seen.with_context(|| format!("not awaited: {}", messages::start_of(line)))? = true;
            done += 1;
            Ok(())
        })?;
    }
    Ok(count as f64 / began.elapsed().as_secs_f64())
}

fn flush(link: &mut Link, out: &mut Vec<u8>) -> Result<()> {
    let written = link.write(out)?;
    out.drain(..written);
    Ok(())
}

/// 1 MB and 10 MB there and back, one by one.
fn large(programs: &Programs, target: Target, sizes: &Sizes) -> Result<Vec<Sample>> {
    let mut link = warm(programs, target)?;
    let one = time_large(&mut link, MEGABYTE, sizes.one_megabyte)?;
    let ten = time_large(&mut link, 10 * MEGABYTE, sizes.ten_megabytes)?;
    link.close()?;
    Ok(vec![(Metric::OneMegabyte, one), (Metric::TenMegabytes, ten)])
}

/// The median time of a large call in milliseconds; the first one grows buffers and does not count.
fn time_large(link: &mut Link, size: usize, count: usize) -> Result<f64> {
    let call = Call::echo(size);
    let mut times = Vec::new();
    for _ in 0..=count {
        let (request, id) = link.request(&call);
        let began = Instant::now();
        let length = link.exchange(&request, id, |line| Ok(line.len()))?;
        times.push(millis(began.elapsed()));
        ensure!(length > size, "{size} bytes came back as {length}");
    }
    median(times.split_off(1)).context("nothing was timed")
}

/// From the spawn to the answer to `initialize`.
fn cold_start(programs: &Programs, target: Target, sizes: &Sizes) -> Result<Vec<Sample>> {
    let mut times = Vec::new();
    for _ in 0..sizes.cold_starts {
        let mut link = Link::open(programs, target, &[])?;
        link.initialize()?;
        times.push(millis(link.age()));
        link.close()?;
    }
    let typical = median(times).context("nothing was timed")?;
    Ok(vec![(Metric::ColdStart, typical)])
}

/// From the spawn to the answers to `initialize` and `tools/list`, of a server that loads for a
/// second; outlast has met it before.
fn slow_start(programs: &Programs, target: Target, _: &Sizes) -> Result<Vec<Sample>> {
    let flags = ["--instant"];
    let mut took = 0.0;
    for _day in 0..2 {
        let mut link = Link::open_slow(programs, target, &flags, Duration::from_secs(1))?;
        link.initialize()?;
        link.write(messages::INITIALIZED)?;
        link.list_tools()?;
        took = millis(link.age());
        // The server itself must have answered before the memory is complete.
        link.call(&Call::echo(1), |_| Ok(()))?;
        link.close()?;
    }
    Ok(vec![(Metric::SlowStart, took)])
}

/// Memory when nothing has happened for a while, and after large messages.
fn memory(programs: &Programs, target: Target, _: &Sizes) -> Result<Vec<Sample>> {
    let mut link = warm(programs, target)?;
    std::thread::sleep(SETTLE);
    let idle = processes::pss_mib(&link.own_processes())?;
    time_large(&mut link, 10 * MEGABYTE, 3)?;
    std::thread::sleep(AFTER_LARGE);
    let after = processes::pss_mib(&link.own_processes())?;
    link.close()?;
    Ok(vec![(Metric::MemoryIdle, idle), (Metric::MemoryAfterLarge, after)])
}

fn warm(programs: &Programs, target: Target) -> Result<Link> {
    let mut link = Link::ready(programs, target, &[])?;
    let call = Call::echo(SMALL);
    for _ in 0..WARM_UP {
        link.call(&call, |_| Ok(()))?;
    }
    Ok(link)
}

/// The processor time of the proxy's own processes; directly there are none.
pub struct Spent {
    pids: Vec<u32>,
    before: u64,
}

impl Spent {
    pub fn begin(own: Vec<u32>, target: Target) -> Result<Spent> {
        let pids = match target {
            Target::Direct => Vec::new(),
            Target::Floor | Target::Outlast => own,
        };
        let before = processes::cpu_ns(&pids)?;
        Ok(Spent { pids, before })
    }

    /// Microseconds per call since the beginning.
    pub fn per_call(&self, calls: u64) -> Result<Option<f64>> {
        if self.pids.is_empty() {
            return Ok(None);
        }
        let spent = processes::cpu_ns(&self.pids)?.saturating_sub(self.before);
        Ok(Some(spent as f64 / 1000.0 / calls as f64))
    }
}

pub fn at(times: &[f64], share: f64) -> Result<f64> {
    percentile(times.to_vec(), share).context("nothing was timed")
}

pub fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

pub fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
