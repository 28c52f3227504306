//! Looking things up in the file.

use super::super::owner::Me;
use super::super::{Id, id_of};
use super::int;
use bytes::Bytes;
use outlast_engine::record::{Answer, Faces, Head, Origin, Record, State, Ticket};
use outlast_engine::store::{CallNote, Found, Name, News, Query, Session, Usage};
use outlast_engine::{Wall, limits};
use rusqlite::types::{FromSqlError, ToSql, Type};
use rusqlite::{Connection, Error, Result, Row, params, params_from_iter};

/// The columns of a head, in the order in which [`head_of`] reads them.
pub const HEAD: &str = "number, ticket, principal, server, method, tool, key, faces, state, created, updated,
    expires, revision, epoch, owner, body";

/// The columns of a session, in the order in which [`session_of`] reads them.
pub const SESSION: &str = "name, principal, initialize, initialized, setup, epoch";

/// Looks something up, all of it at one moment.
pub fn find(sql: &Connection, query: &Query, me: &Me) -> Result<Found> {
    let moment = sql.unchecked_transaction()?;
    let found = look(&moment, query, me)?;
    moment.commit()?;
    Ok(found)
}

fn look(sql: &Connection, query: &Query, me: &Me) -> Result<Found> {
    let now = me.wall();
    let lasts = |head: &Head| !head.is_over(now);
    Ok(match query {
        Query::Record(ticket) => {
            let found = one_head(sql, "id = ?1", params![&id_of(ticket.as_str())[..]])?;
            Found::Record(whole(sql, found.filter(|head| head.ticket == *ticket && lasts(head)))?)
        }
        Query::Key { principal, server, key } => {
            let order =
                "principal = ?1 AND server = ?2 AND key = ?3 ORDER BY state >= 2, number DESC LIMIT 1";
            let found = one_head(sql, order, params![&**principal, &**server, &**key])?;
            Found::Record(whole(sql, found.filter(lasts))?)
        }
        Query::Heads { principal, server, before, limit } => {
            Found::Heads(page(sql, (principal.as_deref(), server.as_deref()), *before, *limit, now)?)
        }
        Query::Changed(known) => {
            let newer = |known| newer(sql, known).transpose();
            Found::Heads(known.iter().filter_map(newer).collect::<Result<_>>()?)
        }
        Query::Mail => Found::Mail(has_mail(sql, me)?),
        Query::Events { stream, after } => events(sql, stream, *after, me)?,
        Query::News(known) => Found::News(news(sql, known, me)?),
        Query::Session(name) => Found::Session(session(sql, name, now)?),
        Query::Calls { limit } => Found::Calls(calls(sql, *limit)?),
        Query::Shown => super::shown::shown(sql, me)?,
        Query::Measured => super::shown::measured(sql, now)?,
        Query::Holds => Found::Holds(super::holds::open(sql, now)?),
        Query::Decided(holds) => Found::Decided(super::holds::decided(sql, holds)?),
        Query::Audit { limit } => Found::Audit(super::holds::audit(sql, *limit)?),
        Query::CallbackDue(names) => Found::Due(super::callbacks::is_due(sql, names, now)?),
        Query::Callbacks { limit } => Found::Callbacks(super::callbacks::all(sql, *limit)?),
        Query::Usage => {
            let mut select = sql.prepare_cached("SELECT records, bytes FROM usage")?;
            Found::Usage(
                select.query_row([], |row| Ok(Usage { records: count(row, 0)?, bytes: count(row, 1)? }))?,
            )
        }
    })
}

/// A record that has changed since this revision.
fn newer(sql: &Connection, (ticket, revision): &(Ticket, u64)) -> Result<Option<Head>> {
    let id = id_of(ticket.as_str());
    one_head(sql, "id = ?1 AND revision > ?2", params![&id[..], int(*revision)])
}

fn news(sql: &Connection, known: &[(Name, u64)], me: &Me) -> Result<Vec<News>> {
    let mut all = Vec::new();
    for (stream, after) in known {
        if let Found::Events { last: 1.., events, lives } = events(sql, stream, *after, me)? {
            all.push(News { stream: stream.clone(), events, lives });
        }
    }
    Ok(all)
}

fn has_mail(sql: &Connection, me: &Me) -> Result<bool> {
    let mut select = sql.prepare_cached(
        "SELECT EXISTS (SELECT 1 FROM messages JOIN records ON records.number = record
         WHERE owner = ?1 AND state < 2) OR EXISTS (SELECT 1 FROM forwarded WHERE owner = ?1)",
    )?;
    select.query_row([&*me.name], |row| row.get(0))
}

fn one_head(sql: &Connection, wanted: &str, values: &[&dyn ToSql]) -> Result<Option<Head>> {
    let mut select = sql.prepare_cached(&format!("SELECT {HEAD} FROM records WHERE {wanted}"))?;
    optional(select.query_row(values, head_of))
}

/// A head with its request and answer.
fn whole(sql: &Connection, head: Option<Head>) -> Result<Option<Box<Record>>> {
    let Some(head) = head else { return Ok(None) };
    let mut request = sql.prepare_cached("SELECT bytes FROM requests WHERE record = ?1")?;
    let request = request.query_row([int(head.number)], |row| blob(row, 0))?;
    let mut answer = sql.prepare_cached("SELECT failed, bytes FROM answers WHERE record = ?1")?;
    let answer = optional(answer.query_row([int(head.number)], |row| {
        let bytes = blob(row, 1)?;
        Ok(if row.get(0)? { Answer::Error(bytes) } else { Answer::Result(bytes) })
    }))?;
    Ok(Some(Box::new(Record { head, request, answer })))
}

fn page(
    sql: &Connection,
    (principal, server): (Option<&str>, Option<&str>),
    before: Option<u64>,
    limit: usize,
    now: Wall,
) -> Result<Vec<Head>> {
    let mut wanted = String::from("number < ? AND (state < 2 OR expires IS NULL OR expires > ?)");
    let (before, now) = (int(before.unwrap_or(u64::MAX)), int(now.0));
    let mut values: Vec<&dyn ToSql> = vec![&before, &now];
    for (column, value) in [("principal", &principal), ("server", &server)] {
        if let Some(value) = value {
            wanted += &format!(" AND {column} = ?");
            values.push(value);
        }
    }
    let limit = limit.min(limits::PAGE) as i64;
    values.push(&limit);
    let mut select = sql
        .prepare_cached(&format!("SELECT {HEAD} FROM records WHERE {wanted} ORDER BY number DESC LIMIT ?"))?;
    select.query_map(params_from_iter(values), head_of)?.collect()
}

/// Whether another process owns a stream and lives.
pub fn lives(sql: &Connection, stream: &Id, me: &Me) -> Result<bool> {
    let mut select = sql.prepare_cached(
        "SELECT owner, coalesce((SELECT until FROM leases WHERE leases.owner = streams.owner), 0)
         FROM streams WHERE id = ?1",
    )?;
    let owner = optional(select.query_row([&stream[..]], |row| Ok((text(row, 0)?, count(row, 1)?))))?;
    Ok(owner.is_some_and(|(owner, until)| *owner != *me.name && !me.outlives(&owner, until)))
}

fn events(sql: &Connection, name: &Name, after: u64, me: &Me) -> Result<Found> {
    let id = id_of(&name.0);
    let mut select = sql.prepare_cached("SELECT number, last FROM streams WHERE id = ?1 AND expires > ?2")?;
    let stream = select
        .query_row(params![&id[..], int(me.wall().0)], |row| Ok((row.get::<_, i64>(0)?, count(row, 1)?)));
    let Some((stream, last)) = optional(stream)? else {
        return Ok(Found::Events { last: 0, events: Vec::new(), lives: false });
    };
    // Before its events: an owner that ends meanwhile has written all that it will.
    let lives = lives(sql, &id, me)?;
    let mut select = sql.prepare_cached(
        "SELECT number, bytes FROM events WHERE stream = ?1 AND number > ?2 ORDER BY number LIMIT ?3",
    )?;
    let rows = select.query_map(params![stream, int(after), limits::STREAM_EVENTS as i64], |row| {
        Ok((count(row, 0)?, blob(row, 1)?))
    })?;
    Ok(Found::Events { last, events: rows.collect::<Result<_>>()?, lives })
}

fn session(sql: &Connection, name: &Name, now: Wall) -> Result<Option<Box<Session>>> {
    let wanted = format!("SELECT {SESSION} FROM sessions WHERE id = ?1 AND used > ?2");
    let mut select = sql.prepare_cached(&wanted)?;
    let slept = now.before(limits::SLEEP);
    optional(select.query_row(params![&id_of(&name.0)[..], int(slept.0)], session_of))
}

/// Reads the columns of [`SESSION`].
pub fn session_of(row: &Row<'_>) -> Result<Box<Session>> {
    Ok(Box::new(Session {
        name: Name(text(row, 0)?),
        principal: text(row, 1)?,
        initialize: blob(row, 2)?,
        initialized: blob(row, 3)?,
        setup: blob(row, 4)?,
        epoch: count(row, 5)?,
    }))
}

fn calls(sql: &Connection, limit: usize) -> Result<Vec<CallNote>> {
    let mut select = sql.prepare_cached(
        "SELECT server, method, tool, outcome, began, took, asked, answered FROM calls
         ORDER BY number DESC LIMIT ?1",
    )?;
    let rows = select.query_map([int(limit as u64)], |row| {
        Ok(CallNote {
            server: text(row, 0)?,
            method: text(row, 1)?,
            tool: text(row, 2)?,
            outcome: text(row, 3)?,
            began: Wall(count(row, 4)?),
            took_ms: count(row, 5)?,
            asked: count(row, 6)?,
            answered: count(row, 7)?,
        })
    })?;
    rows.collect()
}

/// Reads the columns of [`HEAD`].
pub fn head_of(row: &Row<'_>) -> Result<Head> {
    let origin = Origin {
        principal: text(row, 2)?,
        server: text(row, 3)?,
        method: text(row, 4)?,
        tool: text(row, 5)?,
        key: row.get::<_, Option<String>>(6)?.map(String::into_boxed_str),
    };
    Ok(Head {
        number: count(row, 0)?,
        ticket: Ticket::parse(row.get_ref(1)?.as_str()?).ok_or_else(|| odd(1, Type::Text))?,
        origin,
        faces: Faces(row.get(7)?),
        state: State::of_number(row.get(8)?).ok_or_else(|| odd(8, Type::Integer))?,
        created: Wall(count(row, 9)?),
        updated: Wall(count(row, 10)?),
        expires: row.get::<_, Option<i64>>(11)?.map(|at| Wall(at.unsigned_abs())),
        revision: count(row, 12)?,
        epoch: count(row, 13)?,
        owner: text(row, 14)?,
        body: blob(row, 15)?,
    })
}

/// A value that we never wrote: the file is damaged.
fn odd(column: usize, kind: Type) -> Error {
    Error::FromSqlConversionFailure(column, kind, Box::new(FromSqlError::InvalidType))
}

pub fn text(row: &Row<'_>, column: usize) -> Result<Box<str>> {
    Ok(row.get_ref(column)?.as_str()?.into())
}

pub fn blob(row: &Row<'_>, column: usize) -> Result<Bytes> {
    Ok(Bytes::copy_from_slice(row.get_ref(column)?.as_blob()?))
}

pub fn count(row: &Row<'_>, column: usize) -> Result<u64> {
    Ok(row.get::<_, i64>(column)?.unsigned_abs())
}

/// A row that is not there is no error.
pub fn optional<T>(found: Result<T>) -> Result<Option<T>> {
    match found {
        Ok(value) => Ok(Some(value)),
        Err(Error::QueryReturnedNoRows) => Ok(None),
        Err(error) => Err(error),
    }
}
