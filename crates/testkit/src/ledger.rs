//! A store for scenarios and simulations: small, slow and simple, and it outlives the engines that use it.
//!
//! What may be written is decided by [`Head::admit`], as everywhere. Its clock is an argument, and what is over by
//! that clock is not found. Bounds and sweeping are the affair of real stores and of their own suite.

use bytes::Bytes;
use outlast_engine::Wall;
use outlast_engine::callback::{Callback, Fate};
use outlast_engine::hold::{Entry, Hold, Standing};
use outlast_engine::limits::SLEEP;
use outlast_engine::record::{Head, Record};
use outlast_engine::store::{
    Committed, Done, Found, Loaded, Mail, Name, News, Query, Refusal, Session, Stored, Trouble, Usage, Write,
};
use std::collections::BTreeMap;

/// What is kept, by ticket, stream and session.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    records: BTreeMap<String, Record>,
    mailboxes: Vec<(String, Mail)>,
    streams: BTreeMap<String, BTreeMap<u64, Bytes>>,
    /// Who owns them.
    stream_owners: BTreeMap<String, String>,
    /// When they are over.
    stream_ends: BTreeMap<String, Wall>,
    sessions: BTreeMap<String, Kept>,
    /// To whom, about which session.
    forwarded: Vec<(String, Name, Bytes)>,
    /// Owners that are gone.
    pub dead: Vec<String>,
    holds: BTreeMap<u64, Hold>,
    callbacks: BTreeMap<u64, Callback>,
    /// Every callback there ever was, as it was made.
    pub called: Vec<Callback>,
    /// What persons have said, in that order.
    pub audit: Vec<Entry>,
    last: u64,
}

/// A session, who owns it, and when it was last used.
#[derive(Clone, Debug)]
struct Kept {
    session: Session,
    owner: String,
    /// Who owned it before.
    former: Vec<String>,
    used: Wall,
}

impl Ledger {
    /// Writes all of these or none.
    pub fn submit(&mut self, owner: &str, now: Wall, writes: &[Write]) -> Stored {
        if let [write] = writes {
            let done = self.write(owner, now, write).map_err(|why| Trouble::Refused { at: 0, why })?;
            return Ok(Committed { at: now, done: vec![done] });
        }
        let mut after = self.clone();
        let mut done = Vec::new();
        for (at, write) in writes.iter().enumerate() {
            done.push(after.write(owner, now, write).map_err(|why| Trouble::Refused { at, why })?);
        }
        *self = after;
        Ok(Committed { at: now, done })
    }

    /// The sessions, with the epoch of each and the process that owns it.
    pub fn sessions(&self) -> impl Iterator<Item = (&str, u64, &str)> {
        self.sessions.iter().map(|(name, kept)| (&**name, kept.session.epoch, &*kept.owner))
    }

    /// A hold.
    pub fn hold(&self, number: u64) -> Option<&Hold> {
        self.holds.get(&number)
    }

    /// Every hold.
    pub fn holds(&self) -> impl Iterator<Item = &Hold> {
        self.holds.values()
    }

    /// Every record.
    pub fn records(&self) -> impl Iterator<Item = &Record> {
        self.records.values()
    }

    fn write(&mut self, owner: &str, now: Wall, write: &Write) -> Result<Done, Refusal> {
        match write {
            Write::Create(new) => {
                if let Some(holder) = self.records.values().find(|record| record.head.holds_key_of(new, now))
                {
                    return Err(Refusal::KeyTaken(holder.head.ticket.clone()));
                }
                self.last += 1;
                let record = Record {
                    head: Head::new(new, self.last, owner, now),
                    request: new.request.clone(),
                    answer: None,
                };
                match self.records.insert(new.ticket.as_str().into(), record) {
                    None => Ok(Done::Written(1)),
                    Some(_) => Err(Refusal::Taken),
                }
            }
            Write::Change(change) => {
                let record = self.records.get_mut(change.ticket.as_str()).ok_or(Refusal::Unknown)?;
                record.head.admit(change, owner)?;
                record.head.apply(change, now);
                record.answer = change.answer.clone();
                Ok(Done::Written(record.head.revision))
            }
            Write::Remove(ticket) => Ok(Done::Removed(self.records.remove(ticket.as_str()).is_some().into())),
            Write::Claim { server } => {
                let dead = self.dead.clone();
                let mut claimed = Vec::new();
                for record in self.records.values_mut() {
                    let head = &mut record.head;
                    let lost = head.state.is_open() && dead.iter().any(|name| **name == *head.owner);
                    if lost && head.origin.server == *server {
                        head.pass_to(owner);
                        claimed.push(head.clone());
                    }
                }
                claimed.sort_by_key(|head| head.number);
                Ok(Done::Claimed(claimed))
            }
            Write::Post { ticket, message } => {
                let record = self.records.get(ticket.as_str()).ok_or(Refusal::Unknown)?;
                if !record.head.state.is_open() {
                    return Err(Refusal::Ended(record.head.state));
                }
                self.mailboxes.push((ticket.as_str().into(), message.clone()));
                Ok(Done::Kept)
            }
            Write::Collect => {
                let ours = |(ticket, _): &mut (String, Mail)| {
                    self.records.get(ticket).is_some_and(|record| *record.head.owner == *owner)
                };
                let taken: Vec<_> = self.mailboxes.extract_if(.., ours).collect();
                let message = |(ticket, message): (String, Mail)| {
                    Some((self.records.get(&ticket)?.head.ticket.clone(), message))
                };
                Ok(Done::Mail(taken.into_iter().filter_map(message).collect()))
            }
            Write::Append { stream, keep, events } => {
                let owner =
                    self.stream_owners.entry(stream.0.to_string()).or_insert_with(|| owner.into()) == owner;
                if !owner {
                    return Err(Refusal::Fenced);
                }
                self.stream_ends.insert(stream.0.to_string(), now.after(*keep));
                let kept = self.streams.entry(stream.0.to_string()).or_default();
                for (number, bytes) in events {
                    kept.entry(*number).or_insert_with(|| bytes.clone());
                }
                Ok(Done::Kept)
            }
            Write::Adopt(stream) => {
                if self.lives(owner, &stream.0) {
                    return Err(Refusal::Fenced);
                }
                self.stream_owners.insert(stream.0.to_string(), owner.into());
                Ok(Done::Kept)
            }
            Write::Forget { stream, through } => {
                if let Some(kept) = self.streams.get_mut(&*stream.0) {
                    kept.retain(|number, _| number > through);
                }
                Ok(Done::Kept)
            }
            Write::Session(session) => self.keep_session(owner, now, session),
            Write::TakeSession { name, principal } => {
                let there = |kept: &&mut Kept| *kept.session.principal == **principal && !kept.is_over(now);
                let session = self.sessions.get_mut(&*name.0).filter(there).map(|kept| {
                    kept.belongs_to(owner);
                    kept.used = now;
                    Box::new(kept.session.clone())
                });
                Ok(Done::Session(session))
            }
            Write::EndSession(name) => {
                self.sessions.remove(&*name.0);
                Ok(Done::Kept)
            }
            Write::Forward { session, message } => {
                let former = self.sessions.get(&*session.0).map(|kept| kept.former.clone());
                let told = |owner: String| (owner, session.clone(), message.clone());
                self.forwarded.extend(former.into_iter().flatten().filter(|one| one != owner).map(told));
                Ok(Done::Kept)
            }
            Write::CollectForwarded => {
                let ours = self.forwarded.extract_if(.., |(to, ..)| to == owner);
                Ok(Done::Forwarded(ours.map(|(_, session, message)| (session, message)).collect()))
            }
            Write::Hint(_) | Write::Renew | Write::Calls(_) | Write::Tell { .. } | Write::Measured(_) => {
                Ok(Done::Kept)
            }
            Write::Show { .. } => Ok(Done::Told(Vec::new())),
            Write::Hold(new) => {
                let dead = &self.dead;
                let mut known = self.holds.values_mut();
                let met = known.find_map(|hold| {
                    let lives = !dead.iter().any(|name| **name == *hold.owner);
                    hold.meets(new, owner, now, lives)
                });
                Ok(Done::Held(met.unwrap_or_else(|| {
                    self.last += 1;
                    self.holds.insert(self.last, Hold::new(self.last, (**new).clone(), owner, now));
                    Standing::Asked(self.last)
                })))
            }
            Write::Decide { hold, verdict } => Ok(Done::Decided(self.holds.get_mut(hold).and_then(|hold| {
                if hold.decide(verdict, now) {
                    self.audit.extend(Entry::of(hold));
                }
                hold.decision.clone().map(Box::new)
            }))),
            Write::AskAfter { hold, leave } => {
                let hold = self.holds.get_mut(hold);
                Ok(Done::Decided(hold.and_then(|hold| hold.ask_after(owner, *leave, now)).map(Box::new)))
            }
            Write::CallBack(new) => {
                self.last += 1;
                let callback = Callback::new(self.last, (**new).clone(), now);
                self.called.push(callback.clone());
                self.callbacks.insert(self.last, callback);
                Ok(Done::Kept)
            }
            Write::TakeCallbacks { names, limit } => {
                let due = |one: &&mut Callback| one.is_due(now) && names.contains(&one.about.name);
                let taken = self.callbacks.values_mut().filter(due).take(*limit).map(|callback| {
                    callback.take(now);
                    callback.clone()
                });
                Ok(Done::Callbacks(taken.collect()))
            }
            Write::SettleCallback { callback, attempts, fate } => {
                self.settle_callback(*callback, *attempts, fate, now)
            }
            Write::Expire => Ok(Done::Removed(0)),
        }
    }

    fn settle_callback(
        &mut self,
        number: u64,
        attempts: Option<u64>,
        fate: &Fate,
        now: Wall,
    ) -> Result<Done, Refusal> {
        let callback = self.callbacks.get_mut(&number).ok_or(Refusal::Unknown)?;
        if attempts.is_some_and(|attempts| attempts != callback.attempts) {
            return Err(Refusal::Fenced);
        }
        if !callback.settle(fate, now) {
            self.callbacks.remove(&number);
        }
        Ok(Done::Kept)
    }

    /// Callbacks that were not delivered yet.
    pub fn callbacks(&self) -> impl Iterator<Item = &Callback> {
        self.callbacks.values()
    }

    fn keep_session(&mut self, owner: &str, now: Wall, session: &Session) -> Result<Done, Refusal> {
        let ours = |kept: &Kept| kept.owner == owner && kept.session.epoch == session.epoch;
        if self.sessions.get(&*session.name.0).is_some_and(|kept| !ours(kept)) {
            return Err(Refusal::Fenced);
        }
        let former = self.sessions.get(&*session.name.0).map(|kept| kept.former.clone()).unwrap_or_default();
        let kept = Kept { session: session.clone(), owner: owner.into(), former, used: now };
        self.sessions.insert(session.name.0.to_string(), kept);
        Ok(Done::Kept)
    }

    /// Whether somebody else owns a stream and lives.
    fn lives(&self, owner: &str, stream: &str) -> bool {
        self.stream_owners.get(stream).is_some_and(|other| *other != owner && !self.dead.contains(other))
    }

    /// Looks something up.
    pub fn load(&self, owner: &str, now: Wall, query: &Query) -> Loaded {
        let lasts = |record: &&Record| !record.head.is_over(now);
        Ok(match query {
            Query::Record(ticket) => {
                Found::Record(self.records.get(ticket.as_str()).filter(lasts).cloned().map(Box::new))
            }
            Query::Key { principal, server, key } => {
                let has = |record: &&Record| {
                    let origin = &record.head.origin;
                    origin.principal == *principal
                        && origin.server == *server
                        && origin.key.as_ref() == Some(key)
                };
                let newest = |record: &&Record| (record.head.state.is_open(), record.head.number);
                let found = self.records.values().filter(has).max_by_key(newest).filter(lasts);
                Found::Record(found.cloned().map(Box::new))
            }
            Query::Heads { principal, server, before, limit } => {
                let wanted = |head: &&Head| {
                    principal.as_ref().is_none_or(|name| head.origin.principal == *name)
                        && server.as_ref().is_none_or(|name| head.origin.server == *name)
                        && before.is_none_or(|before| head.number < before)
                };
                let mut heads: Vec<Head> = self
                    .records
                    .values()
                    .filter(lasts)
                    .map(|record| &record.head)
                    .filter(wanted)
                    .cloned()
                    .collect();
                heads.sort_by_key(|head| std::cmp::Reverse(head.number));
                heads.truncate(*limit);
                Found::Heads(heads)
            }
            Query::Changed(known) => {
                let newer = |(ticket, revision): &(outlast_engine::record::Ticket, u64)| {
                    let head = &self.records.get(ticket.as_str())?.head;
                    (head.revision > *revision).then(|| head.clone())
                };
                Found::Heads(known.iter().filter_map(newer).collect())
            }
            Query::Mail => Found::Mail(
                self.forwarded.iter().any(|(to, ..)| to == owner)
                    || self.mailboxes.iter().any(|(ticket, _)| {
                        self.records.get(ticket).is_some_and(|record| *record.head.owner == *owner)
                    }),
            ),
            Query::Events { stream, after } => {
                let lasts = self.stream_ends.get(&*stream.0).is_some_and(|ends| *ends > now);
                let kept = self.streams.get(&*stream.0).filter(|_| lasts);
                let last = kept.and_then(|kept| kept.keys().last().copied()).unwrap_or(0);
                let later = kept.into_iter().flatten().filter(|(number, _)| *number > after);
                Found::Events {
                    last,
                    events: later.map(|(number, bytes)| (*number, bytes.clone())).collect(),
                    lives: self.lives(owner, &stream.0),
                }
            }
            Query::News(known) => {
                let news = |(stream, after): &(Name, u64)| {
                    let events = Query::Events { stream: stream.clone(), after: *after };
                    match self.load(owner, now, &events) {
                        Ok(Found::Events { last: 1.., events, lives }) => {
                            Some(News { stream: stream.clone(), events, lives })
                        }
                        _ => None,
                    }
                };
                Found::News(known.iter().filter_map(news).collect())
            }
            Query::Session(name) => {
                let kept = self.sessions.get(&*name.0).filter(|kept| !kept.is_over(now));
                Found::Session(kept.map(|kept| Box::new(kept.session.clone())))
            }
            Query::Calls { .. } => Found::Calls(Vec::new()),
            Query::Holds => {
                Found::Holds(self.holds.values().filter(|hold| !hold.is_over(now)).cloned().collect())
            }
            Query::Decided(wanted) => {
                let decided =
                    |number: &&u64| self.holds.get(number).is_none_or(|hold| hold.decision.is_some());
                Found::Decided(wanted.iter().filter(decided).copied().collect())
            }
            Query::Shown => Found::Shown(Vec::new()),
            Query::Measured => Found::Measured(Vec::new()),
            Query::Audit { limit } => Found::Audit(self.audit.iter().rev().take(*limit).cloned().collect()),
            Query::CallbackDue(names) => {
                let due = |one: &Callback| one.is_due(now) && names.contains(&one.about.name);
                Found::Due(self.callbacks.values().any(due))
            }
            Query::Callbacks { limit } => {
                Found::Callbacks(self.callbacks.values().take(*limit).cloned().collect())
            }
            Query::Usage => Found::Usage(Usage::default()),
        })
    }
}

impl Kept {
    /// Another process may own it from now on.
    fn belongs_to(&mut self, owner: &str) {
        if self.owner != owner {
            self.session.epoch += 1;
            let before = std::mem::replace(&mut self.owner, owner.into());
            self.former.retain(|one| *one != owner && *one != before);
            self.former.push(before);
        }
    }

    fn is_over(&self, now: Wall) -> bool {
        self.used.after(SLEEP) <= now
    }
}
