//! Who looks on: the log, the record of messages, whoever follows calls. Observers read; nothing waits for them.

pub mod access;
mod backlog;
pub mod feed;
pub mod log;
pub mod metrics;
pub mod otlp;
pub mod progress;
pub mod record;
pub mod recording;
pub mod rotation;
pub mod state;
pub mod stderr;
pub mod stdout;
pub mod table;
pub mod terminal;
pub mod text;
pub mod trace;

use crate::clock;
use bytes::Bytes;
use feed::{Feed, Fresh};
use log::Log;
use otlp::{Collector, LastSpans, Otlp, Warn};
use outlast_engine::http::{Body, Response, Trouble};
use outlast_engine::id::ExchangeId;
use outlast_engine::settings::counted;
use outlast_engine::wire::Scanned;
use outlast_engine::{Action, Config, Event, Level, Note, Now, Step};
use recording::Recording;
use stderr::Stderr;
use trace::{Trace, Way};

/// All of them.
#[derive(Debug)]
pub struct Observers {
    stderr: Stderr,
    log: Log,
    trace: Option<Trace>,
    recording: Option<Recording>,
    /// Events and actions are written down, in one of these ways or in both.
    writes: bool,
    feed: Option<Feed>,
    otlp: Option<Otlp>,
    /// What happens is counted.
    measures: bool,
}

impl Observers {
    /// Observers that write to our stderr, and messages to `trace` if it is there.
    pub fn new(stderr: Stderr, log: Log, trace: Option<Trace>) -> Observers {
        Observers {
            stderr,
            log,
            writes: trace.is_some(),
            trace,
            recording: None,
            feed: None,
            otlp: None,
            measures: false,
        }
    }

    /// What happens is recorded from now on.
    pub fn record(&mut self, recording: Recording) {
        self.recording = Some(recording);
        self.writes = true;
    }

    /// How the engine is made, before anything happens to it.
    pub fn begin(&mut self, config: &Config) {
        if let Some(recording) = &mut self.recording {
            recording.begin(config);
        }
    }

    /// The same, and traces go to this collector.
    pub fn with_collector(self, collector: Option<Collector>) -> Observers {
        Observers { otlp: collector.map(Otlp::new), ..self }
    }

    /// Whether traces go to a collector.
    pub fn has_collector(&self) -> bool {
        self.otlp.is_some()
    }

    /// What happens is counted as soon as calls are followed.
    pub fn measure(&mut self) {
        self.measures = true;
    }

    /// Whether that is so.
    pub fn measures(&self) -> bool {
        self.measures
    }

    /// From now on calls are followed, in the name of this process. What happens beside it is told to `warn`.
    pub fn follow(&mut self, process: &str, warn: Warn) {
        let feed = Feed::new(process);
        self.feed = Some(if self.measures { feed.measuring(clock::wall()) } else { feed });
        if let Some(otlp) = &mut self.otlp {
            otlp.start(process, warn);
        }
    }

    /// Who follows calls.
    pub fn feed(&self) -> Option<&Feed> {
        self.feed.as_ref()
    }

    /// What was measured and noted since the last time.
    pub fn fresh(&mut self) -> Fresh {
        self.feed.as_mut().map(Feed::fresh).unwrap_or_default()
    }

    /// Whether there is anything of that.
    pub fn has_fresh(&self) -> bool {
        self.feed.as_ref().is_some_and(Feed::has_fresh)
    }

    /// Something happened to a call or a server.
    pub fn step(&mut self, now: Now, step: Step) {
        if let Some(otlp) = &mut self.otlp {
            otlp.step(now, &step);
            self.tell_lost_spans(false);
        }
        if let Some(feed) = &mut self.feed {
            feed.step(now.wall, step);
        }
    }

    /// Something that the engine wants seen.
    pub fn note(&mut self, note: &Note) {
        self.count(note.kind());
        if let Some(line) = self.log.line(note) {
            self.stderr.line(line.as_bytes());
        }
    }

    /// Something that an edge wants seen.
    pub fn warn(&mut self, kind: &'static str, text: String) {
        self.count(kind);
        if let Some(line) = self.log.line_of(Level::Warn, kind, || text) {
            self.stderr.line(line.as_bytes());
        }
    }

    fn count(&mut self, kind: &'static str) {
        if self.measures
            && let Some(feed) = &mut self.feed
        {
            feed.note(kind);
        }
    }

    /// A server's own complaints: bytes as they come, without a prefix.
    pub fn server_stderr(&mut self, bytes: &[u8]) {
        self.stderr.server(bytes);
    }

    /// Something happened.
    #[inline]
    pub fn event(&mut self, now: Now, event: &Event) {
        if self.writes {
            self.write_event(now, event);
        }
    }

    #[cold]
    fn write_event(&mut self, now: Now, event: &Event) {
        if let Some(recording) = &mut self.recording {
            recording.event(now, event);
        }
        self.trace_event(event);
    }

    /// An action was answered at once.
    pub fn answer(&mut self, event: &Event) {
        if let Some(recording) = &mut self.recording {
            recording.answer(event);
        }
    }

    fn trace_event(&mut self, event: &Event) {
        let Some(trace) = &mut self.trace else { return };
        let (way, line) = match event {
            Event::FromClient(_, line) => (Way::plain("client>"), line),
            Event::Posted(exchange, _, line) => {
                (Way { exchange: Some(exchange.0), ..Way::plain("client>") }, line)
            }
            Event::FromServer(_, _, line) | Event::FromStream(_, _, _, line) => (Way::plain("server>"), line),
            Event::Trouble(_, _, _, Trouble::Status { status, body, .. }) => {
                return trace.record_bytes(Way { status: Some(*status), ..Way::plain("server>") }, body);
            }
            _ => return,
        };
        match line {
            Ok(Scanned::Message(message)) => trace.record_bytes(way, &message.bytes),
            Ok(Scanned::Batch(members)) => {
                for member in members {
                    let bytes =
                        member.as_ref().map_or_else(|refused| &refused.bytes, |message| &message.bytes);
                    trace.record_bytes(way, bytes);
                }
            }
            Err(refused) => trace.record_bytes(way, &refused.bytes),
        }
    }

    /// Something is about to be done.
    #[inline]
    pub fn action(&mut self, action: &Action) {
        if self.writes {
            self.write_action(action);
        }
    }

    #[cold]
    fn write_action(&mut self, action: &Action) {
        if let Some(recording) = &mut self.recording {
            recording.action(action);
        }
        self.trace_action(action);
    }

    fn trace_action(&mut self, action: &Action) {
        let Some(trace) = &mut self.trace else { return };
        let of = |exchange: &ExchangeId| Way { exchange: Some(exchange.0), ..Way::plain(">client") };
        match action {
            Action::ToClient(_, message) => trace.record(Way::plain(">client"), message),
            Action::ToServer(_, message) => trace.record(Way::plain(">server"), message),
            Action::Post(_, post) => trace.record(Way::plain(">server"), &post.message),
            Action::Respond(exchange, Response { body: Body::Json(bytes), .. }) => {
                trace.record_bytes(of(exchange), bytes)
            }
            Action::Write(exchange, event) => {
                if let Some(message) = message_in(event) {
                    trace.record_bytes(of(exchange), &message);
                }
            }
            _ => {}
        }
    }

    fn tell_lost(&mut self, at_the_end: bool) {
        if let Some(lost) = self.trace.as_mut().and_then(|trace| trace.lost(at_the_end)) {
            let more = if at_the_end { "" } else { " so far" };
            let text = format!(
                "trace-messages: {lost} messages were not recorded{more}: they cannot be written fast enough, or at all"
            );
            self.warn("trace-lost", text);
        }
    }

    fn tell_lost_spans(&mut self, at_the_end: bool) {
        if let Some(lost) = self.otlp.as_mut().and_then(|otlp| otlp.lost(at_the_end)) {
            let (lost, more) = (counted(lost, "span"), if at_the_end { "" } else { " so far" });
            let text =
                format!("otlp: {lost} lost{more}: the collector does not take them in time, or at all");
            self.warn("otlp", text);
        }
    }

    /// The end of a turn: lets go of what it wrote, and wakes whoever looks on.
    pub fn flush(&mut self) {
        if self.writes {
            self.flush_written();
        }
        if let Some(feed) = &mut self.feed {
            feed.wake();
        }
        self.stderr.flush();
    }

    /// Spans that are still to be sent, if any are.
    pub fn last_spans(&self) -> Option<LastSpans> {
        self.otlp.as_ref().and_then(Otlp::last_spans)
    }

    #[cold]
    fn flush_written(&mut self) {
        self.tell_lost(false);
        if let Some(text) = self.recording.as_mut().and_then(Recording::flush) {
            self.warn("record-ends", text);
        }
    }

    /// Writes what is left, for a short while.
    pub fn finish(&mut self) {
        self.trace.iter_mut().for_each(Trace::finish);
        self.tell_lost(true);
        self.tell_lost_spans(true);
        if let Some(text) = self.recording.as_mut().and_then(Recording::finish) {
            self.warn("record-ends", text);
        }
        self.stderr.finish();
    }
}

/// The message of an event as it is written; `None` if it has none.
fn message_in(event: &Bytes) -> Option<Bytes> {
    let start = memchr::memmem::find(event, b"data: ")? + b"data: ".len();
    let message = event.slice(start..event.len().checked_sub(2)?);
    (!message.is_empty()).then_some(message)
}
