//! The figures of a gateway: many servers at once, one call at a time, lists, and sessions that only wait.

use std::net::{SocketAddr, TcpStream};
use std::time::Instant;

use anyhow::{Context, Result, ensure};

use super::sites::{Gateway, public};
use super::{Sample, Sizes, reloads, search};
use crate::bench::http::client::{Client, Connection, Request};
use crate::bench::http::crowd::Crowd;
use crate::bench::link::LIMIT;
use crate::bench::measures::{SETTLE, WARM_UP, micros, millis};
use crate::bench::messages::{Call, Era};
use crate::bench::processes;
use crate::bench::results::percentile;
use crate::bench::targets::Programs;

pub const SERVERS: usize = 20;
const CLIENTS: usize = 200;
const PAYLOAD: &str = r#"{"payload":"0123456789012345678901234567890123456789"}"#;

/// One round of everything.
pub fn take(programs: &Programs, sizes: &Sizes) -> Result<Vec<Sample>> {
    let one = Gateway::open(programs, 1)?;
    let rate_one = rate(one.address, &["echo".to_owned()], sizes.calls)?;
    one.close()?;
    let many = Gateway::open(programs, SERVERS)?;
    let names: Vec<String> = (0..SERVERS).map(public).collect();
    let rate_many = rate(many.address, &names, sizes.calls)?;
    let p50_one = p50(many.address, "/mcp/s00", "echo", sizes.one_by_one)?;
    let p50_merged = p50(many.address, "/mcp", &public(0), sizes.one_by_one)?;
    let mut samples = vec![
        ("rate_one", rate_one),
        ("rate", rate_many / rate_one),
        ("p50_one", p50_one),
        ("p50", p50_merged / p50_one),
    ];
    samples.extend(lists(many.address, sizes.lists)?);
    samples.push(("session", session(&many, sizes.sessions, false)?));
    samples.push(("listed", session(&many, sizes.sessions / 10, true)?));
    many.close()?;
    samples.extend(search::take(programs, sizes)?);
    samples.extend(reloads::take(programs, sizes)?);
    Ok(samples)
}

/// Calls per second of 200 sessions, one under way in each; every session goes round the tools.
fn rate(address: SocketAddr, tools: &[String], count: u64) -> Result<f64> {
    let requests: Vec<Vec<Request>> = (0..CLIENTS)
        .map(|_| {
            let client = Client::enter(&mut Connection::open(address)?, Era::Legacy)?;
            Ok(tools.iter().map(|tool| client.prepare(Call::new(tool, PAYLOAD))).collect())
        })
        .collect::<Result<_>>()?;
    let mut crowd = Crowd::connect(address, CLIENTS)?;
    calls(&mut crowd, &requests, WARM_UP.max(CLIENTS as u64))?;
    let began = Instant::now();
    calls(&mut crowd, &requests, count)?;
    Ok(count as f64 / began.elapsed().as_secs_f64())
}

fn calls(crowd: &mut Crowd, requests: &[Vec<Request>], count: u64) -> Result<()> {
    let (mut sent, mut done) = (0, 0);
    let mut asked = vec![0; requests.len()];
    let mut free: Vec<usize> = (0..requests.len()).collect();
    let until = Instant::now() + LIMIT;
    while done < count {
        for place in free.drain(..).take((count - sent) as usize) {
            let id = sent + 10;
            let of_client = &requests[place];
            crowd.send(place, &of_client[(place + sent as usize) % of_client.len()].bytes(id))?;
            asked[place] = id;
            sent += 1;
        }
        let in_time = crowd.listen(until, |place, reply| {
            done += 1;
            free.push(place);
            reply.expect_result(asked[place])
        })?;
        ensure!(in_time, "not done in time");
    }
    Ok(())
}

fn p50(address: SocketAddr, path: &'static str, tool: &str, count: u64) -> Result<f64> {
    let mut connection = Connection::open(address)?;
    let mut client = Client::enter_at(&mut connection, Era::Legacy, path)?;
    let request = client.prepare(Call::new(tool, PAYLOAD));
    let mut times = Vec::new();
    for place in 0..WARM_UP + count {
        let took = time_of_call(&mut connection, &mut client, &request)?;
        if place >= WARM_UP {
            times.push(micros(took));
        }
    }
    percentile(times, 0.5).context("nothing was timed")
}

fn time_of_call(
    connection: &mut Connection,
    client: &mut Client,
    request: &Request,
) -> Result<std::time::Duration> {
    let id = client.fresh_ids(1);
    let bytes = request.bytes(id);
    let began = Instant::now();
    let reply = connection.exchange(&bytes)?;
    let took = began.elapsed();
    reply.expect_result(id)?;
    Ok(took)
}

/// Lists one after the other; then calls, alone and each right behind a list of another session.
fn lists(address: SocketAddr, count: u64) -> Result<Vec<Sample>> {
    let mut lister = Connection::open(address)?;
    let mut listing = Client::enter(&mut lister, Era::Legacy)?;
    let mut caller = Connection::open(address)?;
    let mut calling = Client::enter(&mut caller, Era::Legacy)?;
    let request = calling.prepare(Call::new(&public(0), PAYLOAD));
    let (mut times, mut alone, mut beside) = (Vec::new(), Vec::new(), Vec::new());
    for place in 0..count + 10 {
        let id = listing.fresh_ids(2);
        let began = Instant::now();
        let reply = lister.exchange(&listing.list_tools(id))?;
        let took = millis(began.elapsed());
        ensure!(reply.length > 2000 * 100, "a list of {} bytes", reply.length);
        let call_alone = millis(time_of_call(&mut caller, &mut calling, &request)?);
        lister.send(&listing.list_tools(id + 1))?;
        let call_beside = millis(time_of_call(&mut caller, &mut calling, &request)?);
        lister.receive()?;
        // The first ones fill what is kept ready.
        if place >= 10 {
            times.push(took);
            alone.push(call_alone);
            beside.push(call_beside);
        }
    }
    let p99 = |times: Vec<f64>| percentile(times, 0.99).context("nothing was timed");
    let (alone, beside) = (p99(alone)?, p99(beside)?);
    let p50 = percentile(times.clone(), 0.5).context("nothing was timed")?;
    Ok(vec![
        ("list_p50", p50),
        ("list_p99", p99(times)?),
        ("call_p99", alone),
        ("beside_p99", beside - alone),
    ])
}

/// What a session adds that only listens, in KiB; it may have listed the tools before.
fn session(gateway: &Gateway, count: usize, lists: bool) -> Result<f64> {
    std::thread::sleep(SETTLE);
    let idle = processes::pss_mib(&gateway.own_processes())?;
    let sessions = (0..count).map(|_| listening(gateway.address, lists)).collect::<Result<Vec<_>>>()?;
    std::thread::sleep(SETTLE);
    let more = processes::pss_mib(&gateway.own_processes())? - idle;
    Ok(more * 1024.0 / sessions.len() as f64)
}

fn listening(address: SocketAddr, lists: bool) -> Result<TcpStream> {
    let mut connection = Connection::open(address)?;
    let mut client = Client::enter(&mut connection, Era::Legacy)?;
    if lists {
        let id = client.fresh_ids(1);
        connection.exchange(&client.list_tools(id))?;
    }
    let (stream, reply) = connection.begin(&client.listen())?;
    ensure!(reply.is_open_stream(), "the standing stream was refused with {}", reply.status);
    Ok(stream)
}
