//! Round trips, calls in flight and large payloads, each in both eras.

use std::time::Instant;

use anyhow::{Context, Result, ensure};

use super::client::{Client, Connection};
use super::crowd::Crowd;
use super::site::{Behind, Site};
use crate::bench::figures::{Metric, Sample};
use crate::bench::link::{LIMIT, Link};
use crate::bench::measures::{IN_FLIGHT, MEGABYTE, SMALL, Spent, WARM_UP, at, micros, millis};
use crate::bench::messages::{Call, Era};
use crate::bench::results::median;
use crate::bench::sizes::Sizes;
use crate::bench::targets::{Programs, Target};

/// Large calls until every buffer is as large as it gets.
const GROWING: usize = 3;

/// Both eras, each with a fresh target: what one has done to its memory must not help the other.
fn each_era(
    programs: &Programs,
    target: Target,
    behind: Behind,
    take: impl Fn(&Site, Era) -> Result<Vec<Sample>>,
) -> Result<Vec<Sample>> {
    let mut samples = Vec::new();
    for era in Era::ALL {
        let site = Site::open(programs, target, behind, &[])?;
        samples.extend(take(&site, era).with_context(|| site.with_stderr("failed"))?);
        site.close()?;
    }
    Ok(samples)
}

/// Small calls one by one.
pub fn round_trip(programs: &Programs, target: Target, sizes: &Sizes) -> Result<Vec<Sample>> {
    each_era(programs, target, Behind::Stdio, |site, era| {
        let times = one_by_one(site, era, sizes.http.one_by_one)?;
        Ok(vec![(Metric::HttpP50(era), at(&times, 0.5)?), (Metric::HttpP99(era), at(&times, 0.99)?)])
    })
}

/// The same with a server on HTTP behind outlast.
pub fn to_http(programs: &Programs, target: Target, sizes: &Sizes) -> Result<Vec<Sample>> {
    each_era(programs, target, Behind::Http, |site, era| {
        let times = one_by_one(site, era, sizes.http.one_by_one)?;
        Ok(vec![(Metric::HttpToHttp(era), at(&times, 0.5)?)])
    })
}

/// The same from a client on stdio; directly there is only HTTP.
pub fn from_stdio(programs: &Programs, target: Target, sizes: &Sizes) -> Result<Vec<Sample>> {
    let count = sizes.http.one_by_one;
    if target != Target::Outlast {
        return each_era(programs, target, Behind::Http, |site, era| {
            Ok(vec![(Metric::StdioToHttp(era), at(&one_by_one(site, era, count)?, 0.5)?)])
        });
    }
    let mut samples = Vec::new();
    for era in Era::ALL {
        let times = one_by_one_on_stdio(programs, era, count)?;
        samples.push((Metric::StdioToHttp(era), at(&times, 0.5)?));
    }
    Ok(samples)
}

/// How long each call took, in microseconds.
fn one_by_one(site: &Site, era: Era, count: u64) -> Result<Vec<f64>> {
    let mut connection = Connection::open(site.address)?;
    let mut client = Client::enter(&mut connection, era)?;
    let request = client.prepare(Call::echo_of(era, SMALL));
    let mut times = Vec::with_capacity(count as usize);
    let first = client.fresh_ids(WARM_UP + count);
    for id in first..first + WARM_UP + count {
        let bytes = request.bytes(id);
        let began = Instant::now();
        let reply = connection.exchange(&bytes)?;
        times.push(micros(began.elapsed()));
        reply.expect_result(id)?;
    }
    Ok(times.split_off(WARM_UP as usize))
}

fn one_by_one_on_stdio(programs: &Programs, era: Era, count: u64) -> Result<Vec<f64>> {
    let mut link = Link::open_remote(programs)?;
    if era == Era::Legacy {
        link.shake_hands()?;
    }
    let call = Call::echo_of(era, SMALL);
    let mut times = Vec::with_capacity(count as usize);
    for _ in 0..WARM_UP + count {
        let (request, id) = link.request(&call);
        let began = Instant::now();
        link.exchange(&request, id, |_| Ok(()))?;
        times.push(micros(began.elapsed()));
    }
    link.close()?;
    Ok(times.split_off(WARM_UP as usize))
}

/// Small calls on 64 connections, one always under way on each.
pub fn in_flight(programs: &Programs, target: Target, sizes: &Sizes) -> Result<Vec<Sample>> {
    let count = sizes.http.in_flight;
    each_era(programs, target, Behind::Stdio, |site, era| {
        per_second(site, era, WARM_UP)?;
        let spent = Spent::begin(site.own_processes(), target)?;
        let mut samples = vec![(Metric::HttpPerSecond(era), per_second(site, era, count)?)];
        samples.extend(spent.per_call(count)?.map(|cpu| (Metric::HttpCpu(era), cpu)));
        Ok(samples)
    })
}

fn per_second(site: &Site, era: Era, count: u64) -> Result<f64> {
    let mut client = Client::enter(&mut Connection::open(site.address)?, era)?;
    let request = client.prepare(Call::echo_of(era, SMALL));
    let mut crowd = Crowd::connect(site.address, IN_FLIGHT as usize)?;
    let first = client.fresh_ids(count);
    let mut asked = [0; IN_FLIGHT as usize];
    let (mut next, last) = (first, first + count);
    let mut free: Vec<usize> = (0..asked.len()).collect();
    let (mut done, mut out) = (0, Vec::new());
    let began = Instant::now();
    while done < count {
        for place in free.drain(..).take((last - next) as usize) {
            out.clear();
            request.append(next, &mut out);
            crowd.send(place, &out)?;
            asked[place] = next;
            next += 1;
        }
        let in_time = crowd.listen(began + LIMIT, |place, reply| {
            done += 1;
            free.push(place);
            reply.expect_result(asked[place])
        })?;
        ensure!(in_time, "not done in time");
    }
    Ok(count as f64 / began.elapsed().as_secs_f64())
}

/// 1 MB and 10 MB there and back, one by one.
pub fn large(programs: &Programs, target: Target, sizes: &Sizes) -> Result<Vec<Sample>> {
    each_era(programs, target, Behind::Stdio, |site, era| {
        let one = time_large(site, era, MEGABYTE, sizes.http.one_megabyte)?;
        let ten = time_large(site, era, 10 * MEGABYTE, sizes.http.ten_megabytes)?;
        Ok(vec![(Metric::HttpOneMegabyte(era), one), (Metric::HttpTenMegabytes(era), ten)])
    })
}

/// The median in milliseconds; the first ones grow buffers and do not count.
fn time_large(site: &Site, era: Era, size: usize, count: usize) -> Result<f64> {
    let mut connection = Connection::open(site.address)?;
    let mut client = Client::enter(&mut connection, era)?;
    let request = client.prepare(Call::echo_of(era, size));
    let mut times = Vec::new();
    for _ in 0..GROWING + count {
        let id = client.fresh_ids(1);
        let bytes = request.bytes(id);
        let began = Instant::now();
        let reply = connection.exchange(&bytes)?;
        times.push(millis(began.elapsed()));
        reply.expect_result(id)?;
        ensure!(reply.length > size, "{size} bytes came back as {}", reply.length);
    }
    median(times.split_off(GROWING)).context("nothing was timed")
}
