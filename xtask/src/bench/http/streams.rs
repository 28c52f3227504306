//! What waiting costs: sessions that only listen, and thousands of open streams with a call each.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::client::{Client, Connection};
use super::crowd::Crowd;
use super::site::{Behind, Site};
use crate::bench::figures::{Metric, Sample};
use crate::bench::measures::{SETTLE, SMALL, millis};
use crate::bench::messages::{Call, Era};
use crate::bench::processes;
use crate::bench::results::percentile;
use crate::bench::sizes::Sizes;
use crate::bench::targets::{Programs, Target};

/// One server for all sessions: a thousand servers would be measured otherwise.
const SHARED: [&str; 2] = ["--share", "all"];

/// An answer that is later than this counts as none.
const PATIENCE: Duration = Duration::from_secs(20);

/// Memory when nothing has happened for a while, and what a thousand sessions add that only listen.
pub fn memory(programs: &Programs, target: Target, sizes: &Sizes) -> Result<Vec<Sample>> {
    let flags: &[&str] = if target == Target::Outlast { &SHARED } else { &[] };
    let site = Site::open(programs, target, Behind::Stdio, flags)?;
    warm(&site)?;
    let idle = settled(&site)?;
    let mut samples = vec![(Metric::ServeIdle, idle)];
    if target == Target::Outlast {
        let mut streams = Vec::new();
        for _ in 0..sizes.http.sessions {
            streams.push(listening_session(&site).with_context(|| site.with_stderr("failed"))?);
        }
        let more = settled(&site)? - idle;
        samples.push((Metric::ServeSession, more * 1024.0 / streams.len() as f64));
    }
    site.close()?;
    Ok(samples)
}

fn settled(site: &Site) -> Result<f64> {
    std::thread::sleep(SETTLE);
    processes::pss_mib(&site.own_processes())
}

fn warm(site: &Site) -> Result<()> {
    for era in Era::ALL {
        let mut connection = Connection::open(site.address)?;
        let mut client = Client::enter(&mut connection, era)?;
        let request = client.prepare(Call::echo_of(era, SMALL));
        for _ in 0..100 {
            let id = client.fresh_ids(1);
            connection.exchange(&request.bytes(id))?.expect_result(id)?;
        }
    }
    Ok(())
}

/// A session with its standing stream, on the one connection that its handshake used.
fn listening_session(site: &Site) -> Result<std::net::TcpStream> {
    let mut connection = Connection::open(site.address)?;
    let client = Client::enter(&mut connection, Era::Legacy)?;
    let (stream, reply) = connection.begin(&client.listen())?;
    ensure!(reply.is_open_stream(), "the standing stream was refused with {}", reply.status);
    Ok(stream)
}

/// As many connections as streams, each with one call that is answered after a while.
pub fn pending(programs: &Programs, target: Target, sizes: &Sizes) -> Result<Vec<Sample>> {
    let (mut unanswered, mut lateness, mut memory) = (0, 0.0_f64, 0.0_f64);
    for era in Era::ALL {
        let site = match target {
            Target::Outlast => Site::open(programs, target, Behind::Stdio, &[])?,
            Target::Direct | Target::Floor => Site::streaming(programs)?,
        };
        let mut burst = Burst::open(&site, era, sizes)?;
        memory = memory.max(burst.send(&site)?);
        burst.collect()?;
        memory = memory.max(processes::pss_mib(&site.own_processes())?);
        unanswered += burst.missing;
        lateness = lateness.max(burst.lateness_p99()?);
        drop(burst);
        site.close()?;
    }
    let mut samples =
        vec![(Metric::StreamsUnanswered, unanswered as f64), (Metric::StreamsLateness, lateness)];
    // Directly there is no process in the middle whose memory could count.
    if target != Target::Direct {
        samples.push((Metric::StreamsMemory, memory));
    }
    Ok(samples)
}

struct Burst {
    crowd: Crowd,
    requests: Vec<Vec<u8>>,
    first: u64,
    delay: Duration,
    sent: Vec<Instant>,
    arrived: Vec<Option<Instant>>,
    missing: usize,
}

impl Burst {
    fn open(site: &Site, era: Era, sizes: &Sizes) -> Result<Burst> {
        let (count, delay) = (sizes.http.streams, sizes.http.pending);
        let mut client = Client::enter(&mut Connection::open(site.address)?, era)?;
        let arguments = format!(r#"{{"ms":{}}}"#, delay.as_millis());
        let request = client.prepare(Call::of(era, "later", &arguments));
        let first = client.fresh_ids(count as u64);
        let crowd = Crowd::connect(site.address, count).with_context(|| site.with_stderr("failed"))?;
        Ok(Burst {
            crowd,
            requests: (first..first + count as u64).map(|id| request.bytes(id)).collect(),
            first,
            delay,
            sent: Vec::with_capacity(count),
            arrived: vec![None; count],
            missing: count,
        })
    }

    /// Opens all streams; gives the memory in MiB while every call is pending.
    fn send(&mut self, site: &Site) -> Result<f64> {
        for (place, request) in self.requests.iter().enumerate() {
            self.sent.push(Instant::now());
            self.crowd.send(place, request)?;
        }
        let count = self.requests.len();
        let due = self.sent.first().context("no stream")?.checked_add(self.delay).context("no time")?;
        while self.crowd.open_streams() < count && Instant::now() < due {
            self.listen(due)?;
        }
        let open = self.crowd.open_streams();
        ensure!(open == count, "only {open} of {count} streams were open at once");
        processes::pss_mib(&site.own_processes())
    }

    /// Waits for the rest of the answers; what is not there in time is left as missing.
    fn collect(&mut self) -> Result<()> {
        let until = Instant::now() + self.delay + PATIENCE;
        while self.missing > 0 && Instant::now() < until {
            self.listen(until)?;
        }
        Ok(())
    }

    fn listen(&mut self, until: Instant) -> Result<()> {
        self.crowd.listen(until, |place, reply| {
            reply.expect_result(self.first + place as u64)?;
            self.arrived[place] = Some(Instant::now());
            self.missing -= 1;
            Ok(())
        })?;
        Ok(())
    }

    /// In milliseconds, over the calls that were answered.
    fn lateness_p99(&self) -> Result<f64> {
        let both = self.sent.iter().zip(&self.arrived);
        let late = both.filter_map(|(sent, arrived)| {
            Some(millis((*arrived)?.saturating_duration_since(*sent + self.delay)))
        });
        percentile(late.collect(), 0.99).context("no call was answered")
    }
}
