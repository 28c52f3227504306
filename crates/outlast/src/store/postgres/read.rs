//! Looking things up in the database.

use super::connection::Connection;
use super::error::Failure;
use super::statement::{Statement, blob, count, text};
use super::{callbacks, holds, shown};
use crate::store::id_of;
use crate::store::owner::Me;
use bytes::Bytes;
use outlast_engine::Wall;
use outlast_engine::limits::{self, LEASE};
use outlast_engine::record::{Answer, Faces, Head, Origin, Record, State, Ticket};
use outlast_engine::store::{CallNote, Found, Mail, Name, News, Query, Session, Usage};
use tokio_postgres::Row;

/// The columns of a head, in the order in which [`head_of`] reads them.
macro_rules! head {
    () => {
        "number, ticket, principal, server, method, tool, key, faces, state, created, updated, expires, revision,
         epoch, owner, body"
    };
}

/// The columns of a session, in the order in which [`session_of`] reads them.
macro_rules! session {
    () => {
        "name, principal, initialize, initialized, setup, epoch"
    };
}

pub(super) use {head, session};

/// A record that is not over, with its request and its answer.
macro_rules! whole {
    ($wanted:literal) => {
        concat!(
            "SELECT ",
            head!(),
            ", requests.bytes, answers.failed, answers.bytes FROM (SELECT * FROM outlast.records WHERE ",
            $wanted,
            ") AS records JOIN outlast.requests ON requests.record = number
               LEFT JOIN outlast.answers ON answers.record = number
             WHERE state < 2 OR expires IS NULL OR expires > outlast.clock()"
        )
    };
}

/// Those of these records that have changed.
const CHANGED: &str = concat!(
    "SELECT ",
    head!(),
    " FROM unnest($1::bytea[], $2::bigint[]) WITH ORDINALITY AS known (id, seen, place)
      JOIN outlast.records USING (id) WHERE revision > seen ORDER BY place"
);

const PAGE: &str = concat!(
    "SELECT ",
    head!(),
    " FROM outlast.records WHERE number < $1 AND (state < 2 OR expires IS NULL OR expires > outlast.clock())
        AND ($2::bytea IS NULL OR principal = $2) AND ($3::bytea IS NULL OR server = $3)
      ORDER BY number DESC LIMIT $4"
);

const MAIL: &str =
    "SELECT EXISTS (SELECT FROM outlast.messages JOIN outlast.records ON records.number = record
    WHERE owner = $1 AND state < 2) OR EXISTS (SELECT FROM outlast.forwarded WHERE owner = $1)";

/// A stream, and whether its owner says that it lives.
const STREAM: &str = "SELECT number, last, streams.owner, coalesce(until, 0) > outlast.clock()
        OR outlast.began() + $2 > outlast.clock()
    FROM outlast.streams LEFT JOIN outlast.leases ON leases.owner = streams.owner
    WHERE id = $1 AND expires > outlast.clock()";

const EVENTS: &str =
    "SELECT number, bytes FROM outlast.events WHERE stream = $1 AND number > $2 ORDER BY number LIMIT $3";

/// The same for several streams, each with its place among them.
const STREAMS: &str = "SELECT place, number, streams.owner, coalesce(until, 0) > outlast.clock()
        OR outlast.began() + $2 > outlast.clock()
    FROM unnest($1::bytea[]) WITH ORDINALITY AS known (id, place) JOIN outlast.streams USING (id)
        LEFT JOIN outlast.leases ON leases.owner = streams.owner
    WHERE expires > outlast.clock() ORDER BY place";

const NEWS: &str = "SELECT place, event.number, event.bytes
    FROM unnest($1::bigint[], $2::bigint[]) WITH ORDINALITY AS known (stream, seen, place),
        LATERAL (SELECT number, bytes FROM outlast.events WHERE events.stream = known.stream AND number > seen
            ORDER BY number LIMIT $3) AS event
    ORDER BY place, event.number";

const SESSION: &str =
    concat!("SELECT ", session!(), " FROM outlast.sessions WHERE id = $1 AND used > outlast.clock() - $2");

const CALLS: &str = "SELECT server, method, tool, outcome, began, took, asked, answered FROM outlast.calls
    ORDER BY number DESC LIMIT $1";

const USAGE: &str =
    "SELECT coalesce(sum(records), 0)::bigint, coalesce(sum(bytes), 0)::bigint FROM outlast.usage";

/// How long a session may sleep.
pub fn sleep() -> u64 {
    limits::SLEEP.as_millis() as u64
}

/// Looks something up.
pub async fn find(sql: &Connection, query: &Query, me: &Me) -> Result<Found, Failure> {
    Ok(match query {
        Query::Record(ticket) => {
            let wanted = Statement::new(whole!("id = $1 AND ticket = $2"));
            one(sql, wanted.id(id_of(ticket.as_str())).text(ticket.as_str())).await?
        }
        Query::Key { principal, server, key } => {
            let wanted = Statement::new(whole!(
                "principal = $1 AND server = $2 AND key = $3 ORDER BY state >= 2, number DESC LIMIT 1"
            ));
            one(sql, wanted.text(principal).text(server).text(key)).await?
        }
        Query::Heads { principal, server, before, limit } => {
            let bytes = |text: &'_ Option<Box<str>>| text.as_deref().map(|text| text.as_bytes().to_vec());
            let (principal, server) = (bytes(principal), bytes(server));
            let page = Statement::new(PAGE)
                .int(before.unwrap_or(u64::MAX))
                .maybe_blob(principal.as_deref())
                .maybe_blob(server.as_deref())
                .int((*limit).min(limits::PAGE) as u64);
            heads(sql, &page).await?
        }
        Query::Changed(known) => changed(sql, known).await?,
        Query::Mail => Found::Mail(sql.one(&Statement::new(MAIL).text(&me.name)).await?.get(0)),
        Query::Events { stream, after } => events(sql, stream, *after, me).await?,
        Query::News(known) => news(sql, known, me).await?,
        Query::Session(name) => {
            let session = Statement::new(SESSION).id(id_of(&name.0)).int(sleep());
            Found::Session(sql.maybe(&session).await?.map(|row| session_of(&row)))
        }
        Query::Calls { limit } => {
            let calls = sql.rows(&Statement::new(CALLS).int(*limit as u64)).await?;
            Found::Calls(calls.iter().map(call_of).collect())
        }
        Query::Shown => shown::shown(sql, me).await?,
        Query::Measured => shown::measured(sql).await?,
        Query::Holds => Found::Holds(holds::open(sql).await?),
        Query::Decided(wanted) => Found::Decided(holds::decided(sql, wanted).await?),
        Query::Audit { limit } => Found::Audit(holds::audit(sql, *limit).await?),
        Query::CallbackDue(names) => Found::Due(callbacks::is_due(sql, names).await?),
        Query::Callbacks { limit } => Found::Callbacks(callbacks::all(sql, *limit).await?),
        Query::Usage => {
            let row = sql.one(&Statement::new(USAGE)).await?;
            Found::Usage(Usage { records: count(&row, 0), bytes: count(&row, 1) })
        }
    })
}

async fn one(sql: &Connection, wanted: Statement<'_>) -> Result<Found, Failure> {
    let Some(row) = sql.maybe(&wanted).await? else { return Ok(Found::Record(None)) };
    let head = head_of(&row)?;
    let answer = row.get::<_, Option<&[u8]>>(18).map(|bytes| {
        let bytes = Bytes::copy_from_slice(bytes);
        if row.get(17) { Answer::Error(bytes) } else { Answer::Result(bytes) }
    });
    Ok(Found::Record(Some(Box::new(Record { head, request: blob(&row, 16), answer }))))
}

/// Records that have changed since these revisions.
async fn changed(sql: &Connection, known: &[(Ticket, u64)]) -> Result<Found, Failure> {
    let ids: Vec<_> = known.iter().map(|(ticket, _)| id_of(ticket.as_str())).collect();
    let changed = Statement::new(CHANGED)
        .blobs(ids.iter().map(|id| &id[..]))
        .ints(known.iter().map(|(_, revision)| *revision));
    heads(sql, &changed).await
}

async fn heads(sql: &Connection, wanted: &Statement<'_>) -> Result<Found, Failure> {
    let rows = sql.rows(wanted).await?;
    Ok(Found::Heads(rows.iter().map(head_of).collect::<Result<_, _>>()?))
}

async fn events(sql: &Connection, name: &Name, after: u64, me: &Me) -> Result<Found, Failure> {
    // Before its events: an owner that ends meanwhile has written all that it will.
    let stream = Statement::new(STREAM).id(id_of(&name.0)).int(LEASE.as_millis() as u64);
    let Some(stream) = sql.maybe(&stream).await? else {
        return Ok(Found::Events { last: 0, events: Vec::new(), lives: false });
    };
    let (number, last, owner) = (count(&stream, 0), count(&stream, 1), text(&stream, 2));
    let lives = *owner != *me.name && stream.get::<_, bool>(3) && !me.sees_the_end_of(&owner);
    let events = Statement::new(EVENTS).int(number).int(after).int(limits::STREAM_EVENTS as u64);
    let events = sql.rows(&events).await?.iter().map(|row| (count(row, 0), blob(row, 1))).collect();
    Ok(Found::Events { last, events, lives })
}

/// Two statements, however many streams there are.
async fn news(sql: &Connection, known: &[(Name, u64)], me: &Me) -> Result<Found, Failure> {
    let ids: Vec<_> = known.iter().map(|(stream, _)| id_of(&stream.0)).collect();
    let streams = Statement::new(STREAMS).blobs(ids.iter().map(|id| &id[..])).int(LEASE.as_millis() as u64);
    // Before their events, as above.
    let streams = sql.rows(&streams).await?;
    let found =
        streams.iter().filter_map(|row| Some((row, known.get(count(row, 0).checked_sub(1)? as usize)?)));
    let found: Vec<(&Row, &(Name, u64))> = found.collect();
    let events = Statement::new(NEWS)
        .ints(found.iter().map(|(row, _)| count(row, 1)))
        .ints(found.iter().map(|(_, (_, after))| *after))
        .int(limits::STREAM_EVENTS as u64);
    let news = |(row, (stream, _)): &(&Row, &(Name, u64))| {
        let owner = text(row, 2);
        let lives = *owner != *me.name && row.get::<_, bool>(3) && !me.sees_the_end_of(&owner);
        News { stream: stream.clone(), events: Vec::new(), lives }
    };
    let mut all: Vec<News> = found.iter().map(news).collect();
    for row in &sql.rows(&events).await? {
        if let Some(news) = count(row, 0).checked_sub(1).and_then(|at| all.get_mut(at as usize)) {
            news.events.push((count(row, 1), blob(row, 2)));
        }
    }
    Ok(Found::News(all))
}

/// Reads the columns of a session.
pub fn session_of(row: &Row) -> Box<Session> {
    Box::new(Session {
        name: Name(text(row, 0)),
        principal: text(row, 1),
        initialize: blob(row, 2),
        initialized: blob(row, 3),
        setup: blob(row, 4),
        epoch: count(row, 5),
    })
}

fn call_of(row: &Row) -> CallNote {
    CallNote {
        server: text(row, 0),
        method: text(row, 1),
        tool: text(row, 2),
        outcome: text(row, 3),
        began: Wall(count(row, 4)),
        took_ms: count(row, 5),
        asked: count(row, 6),
        answered: count(row, 7),
    }
}

/// Reads the columns of a head.
pub fn head_of(row: &Row) -> Result<Head, Failure> {
    let origin = Origin {
        principal: text(row, 2),
        server: text(row, 3),
        method: text(row, 4),
        tool: text(row, 5),
        key: row.get::<_, Option<&[u8]>>(6).map(|key| String::from_utf8_lossy(key).into()),
    };
    let byte = |column| u8::try_from(count(row, column)).unwrap_or(u8::MAX);
    Ok(Head {
        number: count(row, 0),
        ticket: Ticket::parse(&text(row, 1)).ok_or_else(odd)?,
        origin,
        faces: Faces(byte(7)),
        state: State::of_number(byte(8)).ok_or_else(odd)?,
        created: Wall(count(row, 9)),
        updated: Wall(count(row, 10)),
        expires: row.get::<_, Option<i64>>(11).map(|at| Wall(at.unsigned_abs())),
        revision: count(row, 12),
        epoch: count(row, 13),
        owner: text(row, 14),
        body: blob(row, 15),
    })
}

/// A ticket and what is written to it.
pub fn mail(row: &Row, from: usize) -> Option<(Ticket, Mail)> {
    let mail = match count(row, from + 1) {
        0 => Mail::Cancel,
        1 => Mail::Input(blob(row, from + 2)),
        2 => Mail::Wake,
        _ => return None,
    };
    Some((Ticket::parse(&text(row, from))?, mail))
}

/// A value that we never wrote.
fn odd() -> Failure {
    Failure::Broken("a row of the schema `outlast` holds what outlast never writes; was it edited?".into())
}
