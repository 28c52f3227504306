//! The figures of a fleet.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::json;

use super::fleet::{Replica, database};
use super::load::{Client, rate};
use crate::bench::gateway::Sample;
use crate::bench::instructions;
use crate::bench::options::Options;
use crate::bench::targets::Programs;
use crate::postgres::Postgres;

/// Clients, and connections of whoever inserts rows.
const CLIENTS: usize = 64;

/// How long the sleeping server sleeps.
const SLEEP_MS: u64 = 50;

/// Live tickets of the measure at rest.
const TICKETS: u64 = 100_000;

/// Kills whose take-over is measured.
const KILLS: usize = 3;

/// How much is measured in one round.
struct Sizes {
    rate: Duration,
    rest: Duration,
    kills: usize,
    tickets: u64,
}

impl Sizes {
    fn new(quick: bool) -> Sizes {
        let seconds = Duration::from_secs;
        match quick {
            true => Sizes { rate: seconds(1), rest: seconds(4), kills: 1, tickets: 1_000 },
            false => Sizes { rate: seconds(5), rest: seconds(20), kills: KILLS, tickets: TICKETS },
        }
    }
}

type Take = fn(&Programs, &Postgres, &Sizes) -> Result<Vec<Sample>>;

const MEASURES: [(&str, Take); 5] =
    [("tasks", tasks), ("two", two), ("rest", rest), ("take-over", take_over), ("instructions", plain_call)];

/// Takes the measures that are wanted.
pub fn take(programs: &Programs, options: &Options) -> Result<Vec<Sample>> {
    let (server, sizes) = (database(), Sizes::new(options.quick));
    let mut samples = Vec::new();
    for (name, measure) in MEASURES.iter().filter(|(name, _)| options.wants(name)) {
        println!("  {name}");
        samples.extend(measure(programs, &server, &sizes).with_context(|| format!("measure {name}"))?);
    }
    Ok(samples)
}

fn echo(programs: &Programs) -> String {
    programs.echo_server().display().to_string()
}

/// Handles of tasks per second, before a server that answers at once; and what the database does without us.
fn tasks(programs: &Programs, server: &Postgres, sizes: &Sizes) -> Result<Vec<Sample>> {
    let (url, echo) = (server.database(), echo(programs));
    let inserts = inserts(&url, server.port, sizes.rate)?;
    let one = Replica::start(programs, Some(&url), "one", &[&echo])?;
    let begin = |client: &mut Client| client.begin("echo", &json!({"text": "x"})).map(drop);
    let tasks = rate(&[one.address], CLIENTS, sizes.rate, begin)?;
    let two = Replica::start(programs, Some(&url), "two", &[&echo])?;
    let both = rate(&[one.address, two.address], CLIENTS, sizes.rate, begin)?;
    Ok(vec![("inserts", inserts), ("tasks", tasks), ("tasks_share", tasks / inserts), ("two_tasks", both)])
}

/// Rows of 300 bytes per second, one in each transaction, as fast as the driver can.
fn inserts(url: &str, port: u16, time: Duration) -> Result<f64> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let first = connect(url, port).await?;
        let table =
            "CREATE TABLE public.rows (number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, bytes bytea)";
        first.batch_execute(table).await?;
        let began = Instant::now();
        let mut all = Vec::new();
        for _ in 0..CLIENTS {
            let client = connect(url, port).await?;
            all.push(tokio::spawn(async move {
                let (insert, mut done) =
                    (client.prepare("INSERT INTO public.rows (bytes) VALUES ($1)").await?, 0);
                while began.elapsed() < time {
                    client.execute(&insert, &[&&[7_u8; 300][..]]).await?;
                    done += 1;
                }
                Ok::<u64, tokio_postgres::Error>(done)
            }));
        }
        let mut done = 0;
        for one in all {
            done += one.await??;
        }
        Ok(done as f64 / began.elapsed().as_secs_f64())
    })
}

async fn connect(url: &str, port: u16) -> Result<tokio_postgres::Client> {
    let stream = tokio::net::TcpStream::connect(("127.0.0.1", port)).await?;
    stream.set_nodelay(true)?;
    let (client, way) =
        url.parse::<tokio_postgres::Config>()?.connect_raw(stream, tokio_postgres::NoTls).await?;
    tokio::spawn(way);
    Ok(client)
}

/// Calls of a server that sleeps, so that neither a core nor the server is what ends first.
fn two(programs: &Programs, server: &Postgres, sizes: &Sizes) -> Result<Vec<Sample>> {
    let (url, sleeper) = (server.database(), programs.fake_server());
    let sleeper = sleeper.to_str().context("the path is no text")?;
    let call = |client: &mut Client| {
        let params = json!({"name": "silent", "arguments": {"ms": SLEEP_MS}});
        client.ask("tools/call", &params).map(drop)
    };
    let first = Replica::start(programs, Some(&url), "one", &[sleeper])?;
    let one = rate(&[first.address], CLIENTS, sizes.rate, call)?;
    let second = Replica::start(programs, Some(&url), "two", &[sleeper])?;
    let two = rate(&[first.address, second.address], 2 * CLIENTS, sizes.rate, call)?;
    Ok(vec![("one", one), ("two", two), ("two_share", two / one)])
}

/// Statements per second and replica while many tickets are open: as the database logs them.
fn rest(programs: &Programs, server: &Postgres, sizes: &Sizes) -> Result<Vec<Sample>> {
    let (url, sleeper) = (server.database(), programs.fake_server());
    let sleeper = sleeper.to_str().context("the path is no text")?;
    let mut replicas = Vec::new();
    for name in ["one", "two", "three"] {
        replicas.push(Replica::start(programs, Some(&url), name, &[sleeper])?);
    }
    let mut clients =
        replicas.iter().map(|replica| Client::connect(replica.address)).collect::<Result<Vec<_>>>()?;
    let tickets =
        clients.iter_mut().map(|client| client.begin("hang", &json!({}))).collect::<Result<Vec<_>>>()?;
    server.sql(&url, &many_records(sizes.tickets));
    let open = server.sql(&url, "SELECT count(*) FROM outlast.records WHERE state < 2").parse::<u64>()?;
    ensure!(open > sizes.tickets, "{open} records are open");
    let count = replicas.len() as f64;
    let rest = statements(server, &url, sizes.rest)? / count;
    let waiting: Vec<_> = clients
        .iter()
        .zip(&tickets)
        .enumerate()
        .map(|(at, (client, ticket))| {
            let elsewhere = client.at(replicas[(at + 1) % replicas.len()].address);
            let ticket = json!({"taskId": ticket});
            // Its session ends with the replica.
            std::thread::spawn(move || {
                drop(elsewhere.and_then(|mut client| client.ask("tasks/result", &ticket)))
            })
        })
        .collect();
    std::thread::sleep(Duration::from_secs(2));
    let waits = statements(server, &url, sizes.rest)? / count;
    replicas.into_iter().try_for_each(Replica::kill)?;
    waiting.into_iter().for_each(|thread| drop(thread.join()));
    Ok(vec![("rest", rest), ("waits", waits)])
}

/// Open records in the name of every owner that there is, as if each had so many calls.
fn many_records(count: u64) -> String {
    format!(
        "WITH owners AS (SELECT owner, row_number() OVER () - 1 AS at, count(*) OVER () AS number FROM outlast.leases),
            model AS (SELECT * FROM outlast.records LIMIT 1)
        INSERT INTO outlast.records (id, ticket, principal, server, method, tool, key, faces, state, created, updated,
            expires, revision, epoch, owner, weight, body)
        SELECT decode(md5(n::text) || md5('x' || n::text), 'hex'), convert_to(md5(n::text) || md5('y' || n::text), 'UTF8'),
            model.principal, model.server, model.method, model.tool, NULL, model.faces, 0, model.created, model.updated, NULL, 1,
            1, owners.owner, model.weight, model.body
        FROM generate_series(1, {count}) AS n JOIN owners ON owners.at = n % owners.number CROSS JOIN model;
        ANALYZE outlast.records"
    )
}

fn statements(server: &Postgres, url: &str, time: Duration) -> Result<f64> {
    let name = url.rsplit('/').next().context("a name")?;
    let log = |what: &str| server.sql("postgres", &format!("ALTER SYSTEM SET log_statement = '{what}'; "));
    let reload = || server.sql("postgres", "SELECT pg_reload_conf()");
    ensure!(!name.is_empty(), "a database");
    log("all");
    reload();
    std::thread::sleep(Duration::from_secs(1));
    let counted = |text: &str| {
        let said = |line: &&str| line.contains("LOG:  statement: ") || line.contains("LOG:  execute ");
        text.lines().filter(said).count()
    };
    let (before, began) = (counted(&server.log()), Instant::now());
    std::thread::sleep(time);
    let count = counted(&server.log()) - before;
    let rate = count as f64 / began.elapsed().as_secs_f64();
    log("none");
    reload();
    Ok(rate)
}

/// How long somebody waits elsewhere for what a killed replica had: the longest of some.
fn take_over(programs: &Programs, server: &Postgres, sizes: &Sizes) -> Result<Vec<Sample>> {
    let (url, sleeper) = (server.database(), programs.fake_server());
    let sleeper = sleeper.to_str().context("the path is no text")?;
    let stays = Replica::start(programs, Some(&url), "one", &[sleeper])?;
    let mut longest = Duration::ZERO;
    for kill in 0..sizes.kills {
        let dies = Replica::start_apart(programs, &url, "two", &[sleeper])?;
        let mut client = Client::connect(dies.address)?;
        let ticket = client.begin("hang", &json!({}))?;
        // Another moment of its renewals each time.
        std::thread::sleep(Duration::from_millis(6_000 + 1_700 * kill as u64));
        let mut elsewhere = client.at(stays.address)?;
        dies.kill()?;
        let since = Instant::now();
        // It may not be repeated, so it fails with the reason.
        let end = elsewhere.ask("tasks/result", &json!({"taskId": ticket}));
        let said = end.err().map(|error| error.to_string()).unwrap_or_default();
        ensure!(said.contains("server-gone"), "{said}");
        longest = longest.max(since.elapsed());
    }
    Ok(vec![("take_over", longest.as_secs_f64())])
}

/// What the database costs a call that has nothing to do with it.
fn plain_call(programs: &Programs, server: &Postgres, sizes: &Sizes) -> Result<Vec<Sample>> {
    let calls = if sizes.kills == 1 { 200 } else { 2_000 };
    let ratio = instructions::of_database(programs, &server.database(), calls)?;
    Ok(ratio.map(|ratio| ("instructions", ratio)).into_iter().collect())
}
