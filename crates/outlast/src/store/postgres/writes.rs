//! Each kind of write: as one statement where that can be, with its reasons where that was refused.

use super::error::Stop;
use super::statement::Statement;
use super::transaction::{Counted, Transaction};
use super::{callbacks, forwarded, hints, mailbox, notes, records, streams};
use crate::store::owner::Me;
use crate::store::{session_weight, small_weight, weight};
use outlast_engine::Wall;
use outlast_engine::limits::FORMER_OWNERS;
use outlast_engine::store::{Bounds, Done, Write};
use tokio_postgres::Row;

/// A write as one statement.
pub struct Quick<'a> {
    /// `None`: every transaction does it anyway.
    pub statement: Option<Statement<'a>>,
    /// What it did; `None` if it is not allowed, and nothing was done.
    pub read: fn(&[Row]) -> Option<Done>,
    /// The first two columns say how many records, and how many bytes, became more.
    pub counts: bool,
}

impl<'a> Quick<'a> {
    pub fn counted(statement: Statement<'a>, read: fn(&[Row]) -> Option<Done>) -> Quick<'a> {
        Quick { statement: Some(statement), read, counts: true }
    }

    pub fn uncounted(statement: Statement<'a>, read: fn(&[Row]) -> Option<Done>) -> Quick<'a> {
        Quick { statement: Some(statement), read, counts: false }
    }
}

/// It was done, whatever came back.
pub fn kept(_: &[Row]) -> Option<Done> {
    Some(Done::Kept)
}

/// It was done if a row came back.
pub fn kept_if_any(rows: &[Row]) -> Option<Done> {
    rows.first().map(|_| Done::Kept)
}

/// Whether a write is one statement.
pub fn is_quick(write: &Write) -> bool {
    match write {
        // Somebody may have ended a call with the same key at the same moment.
        Write::Create(new) => new.origin.key.is_none(),
        Write::Change(_)
        | Write::Remove(_)
        | Write::Renew
        | Write::Post { .. }
        | Write::Collect
        | Write::Append { .. }
        | Write::Forget { .. }
        | Write::Session(_)
        | Write::TakeSession { .. }
        | Write::EndSession(_)
        | Write::Forward { .. }
        | Write::CollectForwarded
        | Write::Hint(_)
        | Write::CallBack(_)
        | Write::Calls(_) => true,
        Write::Claim { .. }
        | Write::Adopt(_)
        | Write::Show { .. }
        | Write::Tell { .. }
        | Write::Measured(_)
        | Write::Hold(_)
        | Write::Decide { .. }
        | Write::AskAfter { .. }
        | Write::TakeCallbacks { .. }
        | Write::SettleCallback { .. }
        | Write::Expire => false,
    }
}

/// The one statement, with so much room left.
pub fn quick<'a>(write: &'a Write, me: &'a Me, left: &Bounds) -> Option<Quick<'a>> {
    Some(match write {
        Write::Create(new) => records::create(new, me, left),
        Write::Change(change) => records::change(change, me, left.bytes),
        Write::Remove(ticket) => records::remove(ticket),
        Write::Renew => Quick { statement: None, read: kept, counts: false },
        Write::Post { ticket, message } => mailbox::post(ticket, message, left),
        Write::Collect => mailbox::collect(me),
        Write::Append { stream, keep, events } => streams::append(stream, *keep, events, me, left.bytes),
        Write::Forget { stream, through } => streams::forget(stream, *through),
        Write::Session(session) => streams::keep_session(session, me, left),
        Write::TakeSession { name, principal } => streams::take_session(name, principal, me),
        Write::EndSession(name) => streams::end_session(name),
        Write::Forward { session, message } => forwarded::forward(session, message, me, left),
        Write::CollectForwarded => forwarded::collect(me),
        Write::Hint(stream) => hints::hint(stream),
        Write::CallBack(new) => callbacks::call_back(new),
        Write::Calls(notes) => notes::note_calls(notes, left.calls),
        Write::Claim { .. }
        | Write::Adopt(_)
        | Write::Show { .. }
        | Write::Tell { .. }
        | Write::Measured(_)
        | Write::Hold(_)
        | Write::Decide { .. }
        | Write::AskAfter { .. }
        | Write::TakeCallbacks { .. }
        | Write::SettleCallback { .. }
        | Write::Expire => return None,
    })
}

/// How much room a write takes at most.
pub fn takes(write: &Write) -> Counted {
    let bytes = |bytes: u64| Counted { records: 0, bytes: super::statement::int(bytes) };
    match write {
        Write::Create(new) => {
            Counted { records: 1, ..bytes(weight(&new.body, new.request.len() as u64, None)) }
        }
        Write::Change(change) => {
            let body = change.body.as_ref().map_or(0, |body| body.len() as u64);
            bytes(body + change.answer.as_ref().map_or(0, |answer| answer.bytes().len() as u64))
        }
        Write::Post { message, .. } => bytes(small_weight(mailbox::written(message).1)),
        Write::Append { events, .. } => bytes(events.iter().map(|(_, bytes)| small_weight(bytes)).sum()),
        Write::Session(session) => bytes(session_weight(session)),
        Write::Forward { message, .. } => bytes(FORMER_OWNERS as u64 * small_weight(message)),
        _ => Counted::default(),
    }
}

/// Whether somebody was promised to find it again.
pub fn is_promise(write: &Write) -> bool {
    matches!(
        write,
        Write::Create(_)
            | Write::Change(_)
            | Write::Claim { .. }
            | Write::CallBack(_)
            | Write::Decide { .. }
            | Write::AskAfter { .. }
    )
}

impl Transaction<'_> {
    /// Makes one write, whatever it takes, or says why not.
    pub async fn write(&self, write: &Write, now: Wall) -> Result<Done, Stop> {
        match write {
            Write::Create(new) => return self.create(new).await,
            Write::Change(change) => return self.change(change).await,
            Write::Claim { server } => return self.claim(server).await,
            Write::Adopt(stream) => return self.adopt(stream).await,
            Write::Show { process, shown } => return self.show(process, shown).await,
            Write::Tell { process, what } => return self.tell(process, what).await,
            Write::Measured(all) => return self.measured(all, now).await,
            Write::Hold(new) => return self.hold(new, now).await,
            Write::Decide { hold, verdict } => return self.decide(*hold, verdict, now).await,
            Write::AskAfter { hold, leave } => return self.ask_after(*hold, *leave, now).await,
            Write::TakeCallbacks { names, limit } => return self.take_callbacks(names, *limit, now).await,
            Write::SettleCallback { callback, attempts, fate } => {
                return self.settle_callback(*callback, *attempts, fate, now).await;
            }
            Write::Expire => return self.expire(now).await,
            _ => {}
        }
        let takes = self.takes_of(write).await?;
        if takes.bytes > 0 {
            self.make_room(takes.records.unsigned_abs(), takes.bytes.unsigned_abs()).await?;
        }
        let left = self.left();
        let Some(quick) = quick(write, self.me, &left) else { return Ok(Done::Kept) };
        match self.try_quick(&quick).await? {
            Some(done) => Ok(done),
            None => Err(self.why_not(write).await?),
        }
    }

    /// What a write needs room for, unless it is refused for another reason: nothing is let go for nothing.
    async fn takes_of(&self, write: &Write) -> Result<Counted, Stop> {
        match write {
            Write::Post { ticket, .. } => self.may_post(ticket).await?,
            Write::Append { stream, .. } => self.may_append(stream).await?,
            _ => {}
        }
        Ok(takes(write))
    }

    /// Why a statement did nothing.
    async fn why_not(&self, write: &Write) -> Result<Stop, Stop> {
        use outlast_engine::store::Refusal;
        Ok(Stop::Refused(match write {
            Write::Remove(_) => Refusal::Open,
            Write::Post { .. } => Refusal::Full("mailbox messages".into()),
            Write::Append { .. } | Write::Session(_) => Refusal::Fenced,
            _ => Refusal::Unknown,
        }))
    }
}
