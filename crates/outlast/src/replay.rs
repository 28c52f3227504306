//! `outlast replay`: what outlast decided in a recorded run, and why; or where this version decides otherwise.

use crate::observe::{stderr, stdout, text};
use outlast_engine::recording::{
    Difference, Entry, Header, Moment, Player, Unreadable, gist, happened, show,
};
use outlast_engine::settings::{counted, show_duration};
use outlast_engine::step::CallNo;
use outlast_engine::{Action, Mono, Observed, Step};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::num::NonZeroU64;
use std::path::PathBuf;
use std::process::ExitCode;

/// The status where decisions differ, and for a file that cannot be read.
const DIFFERS: u8 = 1;
const UNREADABLE: u8 = 2;

/// Bytes of a line: no recording is longer as a whole ([`crate::observe::recording::BOUND`]).
const LINE: u64 = crate::observe::recording::BOUND;

/// What was asked for.
#[derive(Debug)]
pub struct Request {
    pub path: PathBuf,
    pub what: What,
    pub json: bool,
}

/// What is to be shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    Everything,
    /// The moments that concern a call.
    Call(NonZeroU64),
    /// The first decision that is not as it was.
    Differences,
}

/// Why a recording is not played to its end.
struct Stopped(String);

impl From<io::Error> for Stopped {
    fn from(error: io::Error) -> Stopped {
        Stopped(error.to_string())
    }
}

/// Plays the recording.
pub fn run(request: &Request) -> io::Result<ExitCode> {
    let shown = request.path.display();
    let file = match File::open(&request.path) {
        Ok(file) => file,
        Err(error) => return Ok(unreadable(&format!("cannot read `{shown}`: {error}"))),
    };
    let mut lines = Lines { reader: BufReader::new(file), number: 0 };
    match play(request, &mut lines) {
        Ok(status) => Ok(status),
        Err(Stopped(why)) if lines.number == 0 => Ok(unreadable(&format!("{shown}: {why}"))),
        Err(Stopped(why)) => Ok(unreadable(&format!("{shown}, line {}: {why}", lines.number))),
    }
}

fn unreadable(why: &str) -> ExitCode {
    stderr::say(why);
    ExitCode::from(UNREADABLE)
}

/// The lines of a recording.
struct Lines {
    reader: BufReader<File>,
    /// The line that was read last.
    number: u64,
}

impl Lines {
    /// The next line, and whether it is whole: the process that wrote it may have been killed.
    fn next(&mut self) -> Result<Option<(String, bool)>, Stopped> {
        let mut line = Vec::new();
        let read = self.reader.by_ref().take(LINE + 1).read_until(b'\n', &mut line)?;
        if read == 0 {
            return Ok(None);
        }
        self.number += 1;
        if read as u64 > LINE {
            return Err(Stopped(format!("it is longer than {} MiB", LINE >> 20)));
        }
        let whole = line.pop_if(|byte| *byte == b'\n').is_some();
        let line = String::from_utf8(line).map_err(|_| match self.number {
            1 => Stopped(Unreadable::NotARecording.to_string()),
            _ => Stopped("it is not UTF-8".into()),
        })?;
        Ok(Some((line, whole)))
    }
}

fn play(request: &Request, lines: &mut Lines) -> Result<ExitCode, Stopped> {
    let first = lines.next()?.map(|(line, _)| line).unwrap_or_default();
    let mut header = Header::read(&first).map_err(|why| Stopped(why.to_string()))?;
    // Steps have the numbers of calls. Nothing else depends on them.
    header.config.observed = Observed::All;
    let by = header.outlast.clone();
    let mut player = Player::new(header);
    let mut shown = Shown::new(request, &by);
    while let Some((line, whole)) = lines.next()? {
        let entry = match Entry::read(&line) {
            Err(_) if !whole => break,
            entry => entry.map_err(|why| Stopped(of_another(&why, &by)))?,
        };
        if let Some(moment) = player.take(entry).map_err(|why| Stopped(why.to_string()))? {
            shown.take(&moment)?;
        }
    }
    if let Some(moment) = player.last() {
        shown.take(&moment)?;
    }
    shown.end(&player)
}

/// Another version may know what this one does not.
fn of_another(why: &Unreadable, by: &str) -> String {
    let ours = env!("CARGO_PKG_VERSION");
    if by == ours { why.to_string() } else { format!("{why} (outlast {by} recorded it, this is {ours})") }
}

/// What is printed.
struct Shown<'a> {
    request: &'a Request,
    began: Option<Mono>,
    moments: u64,
    decisions: u64,
    /// The first difference, and the moment that it is in.
    difference: Option<(u64, Difference)>,
    by: &'a str,
}

impl<'a> Shown<'a> {
    fn new(request: &'a Request, by: &'a str) -> Shown<'a> {
        Shown { request, began: None, moments: 0, decisions: 0, difference: None, by }
    }

    fn take(&mut self, moment: &Moment) -> Result<(), Stopped> {
        self.moments += 1;
        self.decisions += moment.actions.iter().filter_map(gist).count() as u64;
        let began = *self.began.get_or_insert(moment.now.mono);
        let difference = moment.difference();
        let concerned = match self.request.what {
            What::Everything => true,
            What::Call(number) => concerns(moment, CallNo(number)),
            What::Differences => self.difference.is_none() && difference.is_some(),
        };
        if concerned {
            let text = if self.request.json {
                format!("{}\n", object(moment, began, difference.as_ref()))
            } else {
                in_lines(moment, began, difference.as_ref())
            };
            stdout::print(text)?;
        }
        if self.difference.is_none() {
            self.difference = difference.map(|difference| (self.moments, difference));
        }
        Ok(())
    }

    /// How it went as a whole.
    fn end(self, player: &Player) -> Result<ExitCode, Stopped> {
        if let Some(why) = player.truncated() {
            stderr::say(&format!("the recording ends before the run did: {why}"));
        }
        if let Err(broken) = player.engine().check_invariants() {
            stderr::say(&format!("after the last event an invariant of outlast is broken: {broken}"));
        }
        let ours = env!("CARGO_PKG_VERSION");
        let (happened, decided) = (counted(self.moments, "event"), counted(self.decisions, "decision"));
        match self.difference {
            None => {
                stderr::say(&format!("{happened}, {decided}, all as outlast {} recorded them", self.by));
                Ok(ExitCode::SUCCESS)
            }
            Some((moment, _)) => {
                let recorder = self.by;
                stderr::say(&format!(
                    "{happened}, {decided}; from event {moment} on outlast {ours} decides otherwise than outlast {recorder} did"
                ));
                Ok(ExitCode::from(DIFFERS))
            }
        }
    }
}

/// Whether anything happened to a call.
fn concerns(moment: &Moment, call: CallNo) -> bool {
    moment.actions.iter().any(|action| matches!(action, Action::Step(Step::Call(no, _)) if *no == call))
}

/// A moment: its time, what happened, and below it what was decided.
fn in_lines(moment: &Moment, began: Mono, difference: Option<&Difference>) -> String {
    let mut out = String::new();
    let mut time = format!("+{}", show_duration(moment.now.mono.since(began)));
    for event in &moment.events {
        let _ = writeln!(out, "{time:>9}  {}", plain(&happened(event)));
        time.clear();
    }
    for action in &moment.actions {
        let _ = writeln!(out, "{:9}    {}", "", plain(&show(action)));
    }
    if let Some(Difference { recorded, decided }) = difference {
        let nothing = || "nothing more".to_owned();
        let recorded = recorded.as_deref().map_or_else(nothing, plain);
        let decided = decided.as_deref().map_or_else(nothing, plain);
        let _ = writeln!(out, "{:9}  differs: recorded is  {recorded}", "");
        let _ = writeln!(out, "{:9}           this is      {decided}", "");
    }
    out
}

/// What peers say may hold anything, and a terminal obeys.
fn plain(line: &str) -> String {
    text::escape_up_to(line, usize::MAX).into_owned()
}

fn object(moment: &Moment, began: Mono, difference: Option<&Difference>) -> Value {
    let events: Vec<String> = moment.events.iter().map(happened).collect();
    let decisions: Vec<String> = moment.actions.iter().map(show).collect();
    let mut object = json!({
        "time": moment.now.wall.timestamp(), "afterMs": moment.now.mono.since(began).as_micros() as f64 / 1000.0,
        "events": events, "decisions": decisions,
    });
    if let Some(Difference { recorded, decided }) = difference {
        object["differs"] = json!({"recorded": recorded, "decided": decided});
    }
    object
}
