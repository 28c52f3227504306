//! Tools on demand: what a search over all tools costs.

use std::time::Instant;

use anyhow::{Context, Result, ensure};

use super::measures::SERVERS;
use super::sites::{Gateway, public};
use super::{Sample, Sizes};
use crate::bench::http::client::{Client, Connection};
use crate::bench::measures::millis;
use crate::bench::messages::{Call, Era};
use crate::bench::results::percentile;
use crate::bench::targets::Programs;

/// Words of one tool, of a server's tools, and of all tools, whose definitions are alike: the more is found, the more
/// there is to sort.
const QUERIES: [&str; 4] = ["tool 42 of s07", "s13", "takes a payload and gives it back", "tool"];

/// The first search, which makes the index of what the servers list; then many more.
pub fn take(programs: &Programs, sizes: &Sizes) -> Result<Vec<Sample>> {
    let gateway = Gateway::open_with(programs, SERVERS, "[clients.\"*\"]\nexpose = \"on-demand\"\n")?;
    let mut connection = Connection::open(gateway.address)?;
    let mut client = Client::enter(&mut connection, Era::Legacy)?;
    let id = client.fresh_ids(1);
    // Whatever the servers list is there after this, and nobody has searched it.
    let look = Call::new("describe_tool", &format!(r#"{{"name":"{}"}}"#, public(SERVERS - 1)));
    connection.exchange(&client.prepare(look).bytes(id))?.expect_result(id)?;
    let mut times = Vec::new();
    for place in 0..sizes.lists as usize {
        let query = QUERIES[place % QUERIES.len()];
        let request = client.prepare(Call::new("find_tools", &format!(r#"{{"query":"{query}"}}"#)));
        let id = client.fresh_ids(1);
        let bytes = request.bytes(id);
        let began = Instant::now();
        let reply = connection.exchange(&bytes)?;
        times.push(millis(began.elapsed()));
        reply.expect_result(id)?;
        ensure!(reply.length > 500, "`{query}` found nothing");
    }
    gateway.close()?;
    let first = *times.first().context("nothing was timed")?;
    let p99 = percentile(times, 0.99).context("nothing was timed")?;
    Ok(vec![("find_first", first), ("find_p99", p99)])
}
