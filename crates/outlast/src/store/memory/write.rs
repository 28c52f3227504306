//! Writing into memory. What may be written is decided by the record.

use super::super::owner::Me;
use super::super::{Id, add_former_owner, id_of, session_weight, small_weight, weight};
use super::{Kept, Key, Shelves, Stream, Turn};
use bytes::Bytes;
use outlast_engine::record::{Change, Head, New, Origin, Record, Ticket};
use outlast_engine::store::{Bounds, CallNote, Done, Mail, Name, Refusal, Session, Write};
use outlast_engine::{Wall, limits};
use std::time::Duration;

impl Shelves {
    pub(super) fn write(&mut self, write: &Write, turn: &Turn<'_>) -> Result<Done, Refusal> {
        let &Turn { me, bounds, .. } = turn;
        match write {
            Write::Create(new) => self.create(new, turn),
            Write::Change(change) => self.change(change, turn),
            Write::Remove(ticket) => self.forget_record(ticket),
            Write::Claim { server } => Ok(self.claim(server, me)),
            Write::Renew => Ok(self.renew(me)),
            Write::Post { ticket, message } => self.post(ticket, message, bounds),
            Write::Collect => Ok(self.collect(me)),
            Write::Append { stream, keep, events } => self.append(stream, *keep, events, turn),
            Write::Adopt(stream) => self.adopt(id_of(&stream.0), me),
            Write::Forget { stream, through } => Ok(self.forget_events(id_of(&stream.0), *through)),
            Write::Session(session) => self.keep_session(session, turn),
            Write::TakeSession { name, principal } => Ok(self.take_session(name, principal, turn)),
            Write::EndSession(name) => Ok(self.end_session(&id_of(&name.0))),
            Write::Forward { session, message } => Ok(self.forward(session, message, turn)),
            Write::CollectForwarded => Ok(self.collect_forwarded(me)),
            Write::Hint(_) => Ok(Done::Kept),
            Write::Calls(notes) => Ok(self.note_calls(notes, bounds)),
            Write::Show { process, shown } => self.show(process, shown, me),
            Write::Tell { process, what } => self.tell(process, what, turn),
            Write::Measured(all) => Ok(self.measured(all, turn)),
            Write::Hold(new) => self.hold(new, turn),
            Write::Decide { hold, verdict } => Ok(self.decide(*hold, verdict, turn)),
            Write::AskAfter { hold, leave } => Ok(self.ask_after(*hold, *leave, turn)),
            Write::CallBack(new) => Ok(self.call_back(new, turn)),
            Write::TakeCallbacks { names, limit } => Ok(self.take_callbacks(names, *limit, turn)),
            Write::SettleCallback { callback, attempts, fate } => {
                self.settle_callback(*callback, *attempts, fate, turn)
            }
            Write::Expire => Ok(self.expire(turn)),
        }
    }

    fn note_calls(&mut self, notes: &[CallNote], bounds: &Bounds) -> Done {
        for note in notes {
            let number = self.next_number();
            self.calls.put(number, note.clone());
        }
        while self.calls.len() as u64 > bounds.calls {
            let oldest = self.calls.first();
            oldest.map(|(number, _)| self.calls.take(&number));
        }
        Done::Kept
    }

    fn create(&mut self, new: &New, &Turn { me, bounds, now }: &Turn<'_>) -> Result<Done, Refusal> {
        let id = id_of(new.ticket.as_str());
        if self.records.get(&id).is_some() {
            return Err(Refusal::Taken);
        }
        let key = key_of(&new.origin);
        if let Some(holder) = key.as_ref().and_then(|key| self.holder(key, new, now)) {
            return Err(Refusal::KeyTaken(holder));
        }
        let bytes = weight(&new.body, new.request.len() as u64, None);
        self.make_room(1, bytes, bounds)?;
        self.renew(me);
        let head = Head::new(new, self.next_number(), &me.name, now);
        self.order.put(head.number, id);
        if let Some(key) = key {
            self.keys.put(key, id);
        }
        self.records.put(id, Record { head, request: new.request.clone(), answer: None });
        self.usage.records += 1;
        self.usage.bytes += bytes;
        Ok(Done::Written(1))
    }

    /// The record that has the same idempotency key.
    fn holder(&self, key: &Key, new: &New, now: Wall) -> Option<Ticket> {
        let later = self.order.range(new.seen.saturating_add(1)..).map(|(_, id)| id);
        let mut ids = self.keys.get(key).into_iter().chain(later);
        let holder =
            ids.find_map(|id| self.records.get(id).filter(|record| record.head.holds_key_of(new, now)))?;
        Some(holder.head.ticket.clone())
    }

    fn change(&mut self, change: &Change, &Turn { me, bounds, now }: &Turn<'_>) -> Result<Done, Refusal> {
        let id = id_of(change.ticket.as_str());
        let mut record = self.records.get(&id).ok_or(Refusal::Unknown)?.clone();
        record.head.admit(change, &me.name)?;
        let before = record_weight(&record);
        record.head.apply(change, now);
        record.answer = change.answer.clone();
        let after = record_weight(&record);
        // A result is taken even where there is no room: its ticket was promised.
        let _ = self.make_room(0, after.saturating_sub(before), bounds);
        self.usage.bytes = self.usage.bytes + after - before;
        let head = &record.head;
        let revision = head.revision;
        if !head.state.is_open() {
            self.ended.put((head.updated, head.number), id);
            if let Some(key) = key_of(&head.origin) {
                self.keys.take(&key);
            }
            self.drop_mailbox(id);
        }
        self.records.put(id, record);
        Ok(Done::Written(revision))
    }

    fn forget_record(&mut self, ticket: &Ticket) -> Result<Done, Refusal> {
        let id = id_of(ticket.as_str());
        match self.records.get(&id) {
            Some(record) if record.head.state.is_open() => Err(Refusal::Open),
            Some(_) => {
                self.remove(id);
                Ok(Done::Removed(1))
            }
            None => Ok(Done::Removed(0)),
        }
    }

    /// Removes a record that has ended.
    pub fn remove(&mut self, id: Id) {
        let Some(record) = self.records.take(&id) else { return };
        self.order.take(&record.head.number);
        self.ended.take(&(record.head.updated, record.head.number));
        self.usage.records -= 1;
        self.usage.bytes -= record_weight(&record);
    }

    fn claim(&mut self, server: &str, me: &Me) -> Done {
        self.renew(me);
        let lost = |record: &Record| {
            let head = &record.head;
            let until = self.leases.get(&head.owner).copied().unwrap_or(0);
            *head.origin.server == *server
                && head.state.is_open()
                && head.owner != me.name
                && me.outlives(&head.owner, until)
        };
        let lost: Vec<Id> = self
            .order
            .iter()
            .filter(|(_, id)| self.records.get(id).is_some_and(lost))
            .map(|(_, id)| *id)
            .collect();
        let mut claimed = Vec::with_capacity(lost.len());
        for id in lost {
            let Some(mut record) = self.records.get(&id).cloned() else { continue };
            record.head.pass_to(&me.name);
            claimed.push(record.head.clone());
            self.records.put(id, record);
        }
        Done::Claimed(claimed)
    }

    pub(super) fn renew(&mut self, me: &Me) -> Done {
        self.leases.put(me.name.clone(), me.lease());
        Done::Kept
    }

    fn post(&mut self, ticket: &Ticket, message: &Mail, bounds: &Bounds) -> Result<Done, Refusal> {
        let id = id_of(ticket.as_str());
        let state = self.records.get(&id).ok_or(Refusal::Unknown)?.head.state;
        if !state.is_open() {
            return Err(Refusal::Ended(state));
        }
        if self.mailboxes.range((id, 0)..=(id, u64::MAX)).count() as u64 >= bounds.mailbox {
            return Err(Refusal::Full("mailbox messages".into()));
        }
        let bytes = message_weight(message);
        self.make_room(0, bytes, bounds)?;
        let number = self.next_number();
        self.mailboxes.put((id, number), message.clone());
        self.usage.bytes += bytes;
        Ok(Done::Kept)
    }

    fn collect(&mut self, me: &Me) -> Done {
        let records = &self.records;
        let ours = |id: &Id| {
            records.get(id).is_some_and(|record| record.head.state.is_open() && record.head.owner == me.name)
        };
        let mut taken = self.mailboxes.take_where(|(id, _), _| ours(id));
        taken.sort_by_key(|((_, number), _)| *number);
        let mut messages = Vec::with_capacity(taken.len());
        for ((id, _), message) in taken {
            self.usage.bytes -= message_weight(&message);
            let ticket = self.records.get(&id).map(|record| record.head.ticket.clone());
            messages.extend(ticket.map(|ticket| (ticket, message)));
        }
        Done::Mail(messages)
    }

    fn drop_mailbox(&mut self, id: Id) {
        for (_, message) in self.mailboxes.take_where(|(of, _), _| *of == id) {
            self.usage.bytes -= message_weight(&message);
        }
    }

    fn append(
        &mut self,
        stream: &Name,
        keep: Duration,
        events: &[(u64, Bytes)],
        &Turn { me, bounds, now }: &Turn<'_>,
    ) -> Result<Done, Refusal> {
        let (id, expires) = (id_of(&stream.0), now.after(keep));
        let new = || Stream { last: 0, expires, owner: me.name.clone(), epoch: 1 };
        let mut stream = self.streams.get(&id).cloned().unwrap_or_else(new);
        if stream.owner != me.name {
            return Err(Refusal::Fenced);
        }
        self.make_room(0, events.iter().map(|(_, bytes)| small_weight(bytes)).sum(), bounds)?;
        self.renew(me);
        for (number, bytes) in events {
            stream.last = stream.last.max(*number);
            if self.events.get(&(id, *number)).is_some() {
                continue;
            }
            self.events.put((id, *number), bytes.clone());
            self.usage.bytes += small_weight(bytes);
        }
        self.streams.put(id, Stream { expires, ..stream });
        Ok(Done::Kept)
    }

    fn adopt(&mut self, id: Id, me: &Me) -> Result<Done, Refusal> {
        if self.lives(&id, me) {
            return Err(Refusal::Fenced);
        }
        if let Some(stream) = self.streams.get(&id).filter(|stream| stream.owner != me.name).cloned() {
            let adopted = Stream { owner: me.name.clone(), epoch: stream.epoch + 1, ..stream };
            self.streams.put(id, adopted);
        }
        Ok(Done::Kept)
    }

    fn forget_events(&mut self, id: Id, through: u64) -> Done {
        for (_, bytes) in self.events.take_where(|(of, number), _| *of == id && *number <= through) {
            self.usage.bytes -= small_weight(&bytes);
        }
        if through == u64::MAX {
            self.streams.take(&id);
        }
        Done::Kept
    }

    fn keep_session(
        &mut self,
        session: &Session,
        &Turn { me, bounds, now }: &Turn<'_>,
    ) -> Result<Done, Refusal> {
        let id = id_of(&session.name.0);
        let is_ours = |kept: &Kept| kept.owner == me.name && kept.session.epoch == session.epoch;
        if self.sessions.get(&id).is_some_and(|kept| !is_ours(kept)) {
            return Err(Refusal::Fenced);
        }
        let former = self.sessions.get(&id).map(|kept| kept.former.clone()).unwrap_or_default();
        self.end_session(&id);
        while self.sessions.len() as u64 >= bounds.sessions.max(1) {
            let idle = self.sessions.iter().min_by_key(|(_, kept)| kept.used).map(|(id, _)| *id);
            idle.map(|id| self.end_session(&id));
        }
        self.make_room(0, session_weight(session), bounds)?;
        self.usage.bytes += session_weight(session);
        let kept = Kept { session: session.clone(), owner: me.name.clone(), former, used: now };
        self.sessions.put(id, kept);
        Ok(Done::Kept)
    }

    fn take_session(&mut self, name: &Name, principal: &str, turn: &Turn<'_>) -> Done {
        let (id, now) = (id_of(&name.0), turn.now);
        let is_there = |kept: &&Kept| *kept.session.principal == *principal && !kept.is_over(now);
        let Some(mut kept) = self.sessions.get(&id).filter(is_there).cloned() else {
            return Done::Session(None);
        };
        if kept.owner != turn.me.name {
            kept.session.epoch += 1;
            add_former_owner(&mut kept.former, &kept.owner, &turn.me.name);
        }
        (kept.owner, kept.used) = (turn.me.name.clone(), now);
        let session = Box::new(kept.session.clone());
        self.sessions.put(id, kept);
        Done::Session(Some(session))
    }

    fn end_session(&mut self, id: &Id) -> Done {
        if let Some(kept) = self.sessions.take(id) {
            self.usage.bytes -= session_weight(&kept.session);
        }
        Done::Kept
    }

    fn expire(&mut self, turn: &Turn<'_>) -> Done {
        let &Turn { me, now, .. } = turn;
        let over = |record: &Record| record.head.expires.is_some_and(|expires| expires <= now);
        let ended = self.ended.iter().filter(|(_, id)| self.records.get(id).is_some_and(over));
        let ended: Vec<Id> = ended.map(|(_, id)| *id).collect();
        let streams = self.streams.iter().filter(|(_, stream)| stream.expires <= now);
        let streams: Vec<Id> = streams.map(|(id, _)| *id).collect();
        let sessions = self.sessions.iter().filter(|(_, kept)| kept.is_over(now));
        let sessions: Vec<Id> = sessions.map(|(id, _)| *id).collect();
        let holds = self.forget_holds(now);
        let forwarded = self.forget_forwarded(now);
        let callbacks = self.forget_callbacks(turn);
        let count = ended.len() + streams.len() + sessions.len() + holds + forwarded + callbacks;
        ended.into_iter().for_each(|id| self.remove(id));
        streams.into_iter().for_each(|id| drop(self.forget_events(id, u64::MAX)));
        sessions.into_iter().for_each(|id| drop(self.end_session(&id)));
        let records = &self.records;
        let owns = |name: &str| {
            records.iter().any(|(_, record)| *record.head.owner == *name && record.head.state.is_open())
        };
        self.leases.take_where(|name, until| me.outlives(name, *until) && !owns(name));
        self.forget_shown(now);
        Done::Removed(count as u64)
    }
}

impl Kept {
    /// Nobody has used it for so long that it is forgotten.
    pub fn is_over(&self, now: Wall) -> bool {
        self.used.after(limits::SLEEP) <= now
    }
}

fn key_of(origin: &Origin) -> Option<Key> {
    Some((origin.principal.clone(), origin.server.clone(), origin.key.clone()?))
}

fn record_weight(record: &Record) -> u64 {
    weight(&record.head.body, record.request.len() as u64, record.answer.as_ref())
}

fn message_weight(message: &Mail) -> u64 {
    match message {
        Mail::Input(bytes) => small_weight(bytes),
        Mail::Cancel | Mail::Wake => small_weight(b""),
    }
}
