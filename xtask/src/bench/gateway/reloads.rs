//! A file that is read again and says the same: what that costs, and what calls notice of it.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::sites::{Gateway, public};
use super::{Sample, Sizes};
use crate::bench::http::client::{Client, Connection, Request};
use crate::bench::measures::{SETTLE, millis};
use crate::bench::messages::{Call, Era};
use crate::bench::processes;
use crate::bench::results::percentile;
use crate::bench::targets::Programs;

const SERVERS: usize = 200;

/// From the signal until the file has been read: it must have stayed as it is for a while before.
const READ_AFTER: Duration = Duration::from_secs(1);

pub fn take(programs: &Programs, sizes: &Sizes) -> Result<Vec<Sample>> {
    let gateway = Gateway::open(programs, SERVERS)?;
    let mut connection = Connection::open(gateway.address)?;
    let mut client = Client::enter(&mut connection, Era::Legacy)?;
    let id = client.fresh_ids(1);
    connection.exchange(&client.list_tools(id))?;
    let before = gateway.processes();
    let work = work(&gateway, sizes.reloads)?;
    let call = client.prepare(Call::new(&public(SERVERS - 1), "{\"payload\":\"x\"}"));
    let mut calls = |until| times(&mut connection, &mut client, &call, until);
    let alone = calls(Instant::now() + READ_AFTER)?;
    let mut beside = Vec::new();
    for _ in 0..sizes.reloads {
        gateway.read_again()?;
        beside.extend(calls(Instant::now() + READ_AFTER)?);
    }
    ensure!(gateway.processes() == before, "a server was started again");
    gateway.close()?;
    let longest = |times: Vec<f64>| percentile(times, 1.0).context("nothing was timed");
    Ok(vec![("reload", work), ("alone_longest", longest(alone)?), ("beside_longest", longest(beside)?)])
}

/// What one reload takes of the processor, in milliseconds, beyond what outlast does anyway: it looks at its files.
fn work(gateway: &Gateway, reloads: usize) -> Result<f64> {
    let spent = || processes::cpu_ns(&gateway.own_processes());
    std::thread::sleep(SETTLE);
    let began = spent()?;
    std::thread::sleep(READ_AFTER);
    let idle = spent()? - began;
    let began = spent()?;
    for _ in 0..reloads {
        gateway.read_again()?;
        std::thread::sleep(READ_AFTER);
    }
    let each = (spent()? - began) as f64 / reloads as f64;
    Ok((each - idle as f64) / 1e6)
}

/// Calls one after the other until then; each must have a result.
fn times(
    connection: &mut Connection,
    client: &mut Client,
    call: &Request,
    until: Instant,
) -> Result<Vec<f64>> {
    let mut times = Vec::new();
    while Instant::now() < until {
        let id = client.fresh_ids(1);
        let bytes = call.bytes(id);
        let began = Instant::now();
        let reply = connection.exchange(&bytes)?;
        times.push(millis(began.elapsed()));
        reply.expect_result(id)?;
    }
    Ok(times)
}
