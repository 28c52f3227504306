//! The engine of a world, and the recording of its run if somebody wants one.

use super::fingerprint;
use outlast_engine::recording::{Entry, Header, Moment, Player, Recorder};
use outlast_engine::{Action, Config, Engine, Event, Now};
use std::cell::RefCell;
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What one engine lived through.
#[derive(Debug, Default)]
pub struct Recording {
    /// As `outlast replay` reads it.
    pub text: String,
    /// A number made of every action of a moment, for each moment that came to its end.
    moments: Vec<u64>,
}

thread_local! {
    /// The recordings of this thread, one for each engine; `None` if nobody wants any.
    static RECORDINGS: RefCell<Option<Vec<Recording>>> = const { RefCell::new(None) };
}

/// Runs a world with its engines recorded, one recording for each, also if it fails.
pub fn recorded<T>(world: impl FnOnce() -> T) -> (Option<T>, Vec<Recording>) {
    RECORDINGS.set(Some(Vec::new()));
    let outcome = catch_unwind(AssertUnwindSafe(world)).ok();
    (outcome, RECORDINGS.take().unwrap_or_default())
}

/// An engine under test.
#[derive(Debug)]
pub(super) struct Subject {
    engine: Engine,
    recorder: Option<Recorder>,
    /// Which of the recordings is its own.
    number: usize,
    /// It is asked for actions; what it is told now answers one of them.
    acts: bool,
    moment: u64,
}

impl Subject {
    pub(super) fn new(config: Config) -> Subject {
        let header = Recorder::header(&config, env!("CARGO_PKG_VERSION"));
        let number = RECORDINGS.with_borrow_mut(|recordings| {
            let recordings = recordings.as_mut()?;
            recordings.push(Recording { text: header, moments: Vec::new() });
            Some(recordings.len() - 1)
        });
        let recorder = number.map(|_| Recorder::default());
        Subject { engine: Engine::new(config), recorder, number: number.unwrap_or(0), acts: false, moment: 0 }
    }

    pub(super) fn handle(&mut self, now: Now, event: Event) {
        if let Some(recorder) = &mut self.recorder {
            let line = if self.acts { Recorder::answer(&event) } else { recorder.event(now, &event) };
            self.write(|recording| recording.text.push_str(&line));
        }
        self.engine.handle(now, event);
    }

    pub(super) fn poll(&mut self) -> Option<Action> {
        let action = self.engine.poll();
        self.acts = action.is_some();
        if let Some(recorder) = &mut self.recorder {
            match &action {
                Some(action) => {
                    recorder.action(action);
                    self.moment = fingerprint(self.moment, action);
                }
                None => {
                    let (rest, moment) = (recorder.rest(), std::mem::take(&mut self.moment));
                    self.write(|recording| {
                        recording.text.push_str(&rest);
                        recording.moments.push(moment);
                    });
                }
            }
        }
        action
    }

    fn write(&self, write: impl FnOnce(&mut Recording)) {
        RECORDINGS.with_borrow_mut(|recordings| {
            if let Some(recording) = recordings.as_mut().and_then(|all| all.get_mut(self.number)) {
                write(recording);
            }
        });
    }
}

/// Of a world that fails, what was decided last matters most.
impl Drop for Subject {
    fn drop(&mut self) {
        let rest = self.recorder.as_mut().map(Recorder::rest).unwrap_or_default();
        self.write(|recording| recording.text.push_str(&rest));
    }
}

/// To be asked; only [`Subject::handle`] tells it anything.
impl Deref for Subject {
    type Target = Engine;

    fn deref(&self) -> &Engine {
        &self.engine
    }
}

impl Recording {
    /// Plays it again. The error says where the engine decides otherwise than it did.
    pub fn replay(&self) -> Result<(), String> {
        let mut lines = self.text.lines().zip(1..);
        let (first, _) = lines.next().ok_or("it is empty")?;
        let mut player = Player::new(Header::read(first).map_err(|error| error.to_string())?);
        let mut expected = self.moments.iter();
        for (line, number) in lines {
            let unreadable = |error| format!("line {number}: {error}");
            let moment = player.take(Entry::read(line).map_err(unreadable)?).map_err(unreadable)?;
            if let Some(moment) = moment {
                compare(&moment, expected.next()).map_err(|why| format!("before line {number}: {why}"))?;
            }
        }
        player.last().map_or(Ok(()), |moment| compare(&moment, expected.next()))
    }
}

/// Every byte of every action, if the moment came to its end when it was recorded.
fn compare(moment: &Moment, expected: Option<&u64>) -> Result<(), String> {
    if let Some(difference) = moment.difference() {
        return Err(format!("{:?} is not as it was: {difference:?}", moment.events));
    }
    let Some(expected) = expected else { return Ok(()) };
    match moment.actions.iter().fold(0, fingerprint) == *expected {
        true => Ok(()),
        false => Err(format!("{:?} is not as it was: {:?}", moment.events, moment.actions)),
    }
}
