//! Feeds a recording to an engine and keeps what it decides beside what was decided then.

use super::{Entry, Header, Unreadable, gist};
use crate::action::Action;
use crate::engine::Engine;
use crate::event::Event;
use crate::time::Now;

/// An engine that lives through a recording.
#[derive(Debug)]
pub struct Player {
    engine: Engine,
    /// What is not over yet.
    moment: Option<Moment>,
    truncated: Option<Box<str>>,
}

/// What happened at one moment, and what was decided.
#[derive(Debug)]
pub struct Moment {
    /// When.
    pub now: Now,
    /// An event, and what answered actions at once.
    pub events: Vec<Event>,
    /// What this engine decided.
    pub actions: Vec<Action>,
    /// What was decided when it was recorded, as [`gist`] says it.
    pub recorded: Vec<Box<str>>,
    /// Something came after it, so that what is not written was not decided.
    pub whole: bool,
}

/// The first decision of a moment that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// What was decided then; `None`: nothing more.
    pub recorded: Option<Box<str>>,
    /// What this engine decided; `None`: nothing more.
    pub decided: Option<String>,
}

impl Player {
    /// An engine like the one that was recorded.
    pub fn new(header: Header) -> Player {
        Player { engine: Engine::new(header.config), moment: None, truncated: None }
    }

    /// Takes a line after the first one. Gives the moment before it, if that is over now.
    pub fn take(&mut self, entry: Entry) -> Result<Option<Moment>, Unreadable> {
        if self.truncated.is_some() {
            return Err(Unreadable::Misplaced("the recording has ended"));
        }
        match entry {
            Entry::Recording(_) => Err(Unreadable::Misplaced("it is a second header")),
            Entry::Event(now, event) => {
                let before = self.moment.take();
                self.moment = Some(Moment::at(now));
                self.feed(event)?;
                Ok(before.map(|moment| Moment { whole: true, ..moment }))
            }
            Entry::Answer(event) => self.feed(event).map(|()| None),
            Entry::Did(did) => {
                let moment = self.moment.as_mut().ok_or(Unreadable::Misplaced("nothing has happened yet"))?;
                moment.recorded.extend(did);
                Ok(None)
            }
            Entry::Truncated(why) => {
                self.truncated = Some(why);
                Ok(None)
            }
        }
    }

    fn feed(&mut self, event: Event) -> Result<(), Unreadable> {
        let moment = self.moment.as_mut().ok_or(Unreadable::Misplaced("nothing has happened yet"))?;
        self.engine.handle(moment.now, event.clone());
        moment.events.push(event);
        moment.actions.extend(std::iter::from_fn(|| self.engine.poll()));
        Ok(())
    }

    /// The last moment, which may not be whole.
    pub fn last(&mut self) -> Option<Moment> {
        self.moment.take()
    }

    /// Why the recording ends before the run did.
    pub fn truncated(&self) -> Option<&str> {
        self.truncated.as_deref()
    }

    /// The engine, as it is now.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }
}

impl Moment {
    /// Nothing has happened yet.
    fn at(now: Now) -> Moment {
        Moment { now, events: Vec::new(), actions: Vec::new(), recorded: Vec::new(), whole: false }
    }

    /// Where this engine decides otherwise; `None` if it does not, as far as that is recorded.
    pub fn difference(&self) -> Option<Difference> {
        let mut decided = self.actions.iter().filter_map(gist);
        for then in &self.recorded {
            match decided.next() {
                Some(now) if *now == **then => {}
                now => return Some(Difference { recorded: Some(then.clone()), decided: now }),
            }
        }
        let more = decided.next().filter(|_| self.whole)?;
        Some(Difference { recorded: None, decided: Some(more) })
    }
}
