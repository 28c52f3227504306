//! One server: the life of its process, and what we know about it.
//!
//! | row | state | event | becomes | what happens |
//! |---|---|---|---|---|
//! | `a_server_starts` | starting | started | up | – |
//! | `a_command_that_cannot_start_answers_the_first_request` | starting | start failed | failed | the first request gets `server-failed`, then we end |
//! | `a_server_that_ends_ends_us` | up | ended | ended | calls fail with `server-gone`, we end with its status |
//! | `a_server_that_never_answered_ends_us_after_the_first_request` | up | ended, nothing answered | ended | the first request gets `server-gone`, then we end |
//! | `what_an_ended_server_wrote_last_still_counts` | up | exit before the last output | up | the output is read first |
//! | `a_server_that_closed_its_output_is_stopped` | up | output closed, lives on | up | terminated after a second |
//! | `a_server_that_closed_its_input_is_stopped` | up | a message could not be written | up | that call fails as never sent, others wait; terminated after a second |
//! | `a_timeout_restarts_where_asked` | up | a written `timeout`, `--restart on-timeout` | stopping | calls are repeated or fail, the tree is stopped |
//! | `a_hung_server_is_replaced` | up | no sign of life within `cancel-grace` | stopping | the same |
//! | `a_crash_restarts` | up | ended | resting | calls are repeated or fail |
//! | `a_stopped_server_is_started_again` | stopping | ended | resting | – |
//! | `a_rested_server_is_started` | resting | wait is over | restarting | a new run |
//! | `a_restarted_server_gets_the_handshake` | restarting | started, a client was initialised | reviving | the client's own `initialize` |
//! | `a_revived_server_is_made_whole` | reviving | answer | up | `initialized`, log level, subscriptions, then the calls that waited |
//! | `a_restart_that_fails_is_tried_again_later` | restarting, reviving | error, end, silence | stopping or resting | `connect-backoff` doubles |
//! | `too_many_restarts_are_a_failure` | up | ended once more than `restart-intensity` | down | calls that waited fail |
//! | `a_failed_server_answers_at_once` | down | request | down | error `server-failed` with the time of the next try |
//! | `a_failed_server_is_tried_for_ever` | down | `reconnect-every` is over | restarting | a new run |
//!
//! Each row has a test of the same name, in `tests/engine/server.rs`. What a file that was read again does to a server is in
//! `engine/reload.rs`; one that nobody uses is asleep until somebody does (`engine/quiet.rs`).

use super::unsent::Unsent;
use crate::calls::deadline::WorkClock;
use crate::calls::handoff::KnownTools;
use crate::calls::retry::Budget;
use crate::catalog::Kind;
use crate::clients::Way;
use crate::clients::session::version_wanted;
use crate::config::{ServerConfig, Transport, doubled};
use crate::era::Eras;
use crate::event::{Exit, StartFailure};
use crate::id::{AttemptId, CallId, ClientId, DefinitionId, JsonId, Run};
use crate::life::Sample;
use crate::limits;
use crate::memory::Memory;
use crate::method::Method;
use crate::mirror::Mirrors;
use crate::policy::Declared;
use crate::time::Mono;
use crate::wire::Message;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

/// The time in which restarts are counted.
const INTENSITY_WINDOW: Duration = Duration::from_secs(60);

/// Where a server's process is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Life {
    /// Being started for the first time: what is sent waits in its pipe.
    Starting,
    /// Runs.
    Up,
    /// Told to end, so that it can be started again.
    Stopping,
    /// Ended; is started again after a while.
    Resting,
    /// Was stopped because nobody used it; the next use starts it.
    Asleep,
    /// Being started again.
    Restarting,
    /// Runs again, and is given the client's handshake under this id.
    Reviving(AttemptId),
    /// Has failed too often; is tried again now and then.
    Down,
    /// Not needed any more; told to end.
    Leaving,
    /// Ended, and stays so.
    Ended(Exit),
    /// Could not be started, and stays so.
    Failed(StartFailure),
}

/// What a request can expect of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Readiness {
    Runs,
    ComesBack,
    IsGone,
}

/// What the server's timer is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Alarm {
    /// The output of an ended process is not waited for any longer.
    LastOutput,
    /// It closed its output and should have ended.
    Lingers,
    /// It was asked to end and did not.
    Kill,
    /// The backoff is over.
    Restart,
    /// A restarted server did not answer the handshake.
    Handshake,
    /// No first request came to a server that cannot run.
    FirstRequest,
    /// Nobody has needed it for a while.
    Idle,
    /// Its definition has changed, and its calls have had their time to end.
    Drain,
}

/// What the file makes of a server that runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Stays,
    /// Another program takes its place once its calls have ended; what comes meanwhile waits for that.
    Replaced,
    /// It goes once its calls have ended, and takes no more.
    Removed,
}

/// One server.
#[derive(Debug)]
pub(crate) struct Server {
    /// What it is, and the number of that.
    pub(crate) definition: DefinitionId,
    pub(crate) config: Arc<ServerConfig>,
    pub(crate) run: Run,
    pub(crate) life: Life,
    /// Who uses it.
    pub(crate) clients: BTreeSet<ClientId>,
    /// Answers to what it asked that could not be sent yet.
    pub(crate) unsent: Unsent,
    /// What the file has made of its definition since it was started.
    pub(crate) fate: Fate,
    /// How this run is reached; its definition may say otherwise by now.
    pub(crate) transport: Transport,
    /// A process of it has run.
    pub(crate) ran: bool,
    /// It was given up at its first failure.
    pub(crate) hopeless: bool,
    /// It was started before anybody needs it, and belongs to nobody yet.
    pub(crate) spare: bool,
    /// When it was last sent a call.
    pub(crate) used: Mono,
    /// When a quiet server is looked after next.
    pub(crate) quiet_armed: Option<Mono>,
    /// The heartbeat that it has not answered yet, and when it was sent.
    pub(crate) heartbeat: Option<(AttemptId, Mono)>,
    /// When it answered a heartbeat last, in this run.
    pub(crate) pulse: Option<Mono>,
    /// It is stopped because nobody uses it, and started when somebody does.
    pub(crate) falls_asleep: bool,
    /// It is started because somebody uses it again, which is nothing to tell.
    pub(crate) wakes: bool,
    /// This process has made a task of its own for a client; whether the task has ended, only the two of them know.
    pub(crate) gave_task: bool,
    /// The session whose handshake it got.
    pub(crate) greeted: Option<ClientId>,
    /// What it answered to that.
    pub(crate) welcome: Option<Message>,
    /// What it says it is, in words, if anybody looks on.
    pub(crate) version: Box<str>,
    /// Sessions that wait for the same answer.
    pub(crate) awaiting_welcome: Vec<(ClientId, Way, JsonId)>,
    /// The eras that it has shown it speaks.
    pub(crate) eras: Eras,
    /// The revisions it named in `server/discover`.
    pub(crate) supported: Vec<Box<str>>,
    /// It has tasks of its own.
    pub(crate) own_tasks: bool,
    /// It makes tasks of tool calls, in the legacy era.
    pub(crate) makes_tasks: bool,
    /// Tools that it runs only as tasks of its own.
    pub(crate) needs_tasks: BTreeSet<Box<str>>,
    /// Its tasks that we follow in a client's place, by its raw name for them.
    pub(crate) followed: BTreeMap<Box<[u8]>, CallId>,
    /// Tools of which it says that they cannot be tasks.
    pub(crate) forbids_tasks: BTreeSet<Box<str>>,
    /// Tools that it says destroy nothing.
    pub(crate) harmless: BTreeSet<Box<str>>,
    /// What must be known of its tools to hand calls off.
    pub(crate) tools: KnownTools,
    /// Calls of tasks that it has.
    pub(crate) tickets: usize,
    /// Arguments that are mirrored in headers.
    pub(crate) mirrors: Mirrors,
    /// An HTTP server has forgotten a session of this run.
    pub(crate) session_lost: bool,
    /// The handshake of its session, if it is not the first: what was sent before belongs to one that is lost.
    pub(crate) session_since: AttemptId,
    /// The run that has been told everything.
    pub(crate) made_whole: Option<Run>,
    /// It was tried with a version of its own.
    pub(crate) other_version: bool,
    /// Why it could not be reached last.
    pub(crate) last_trouble: Option<Box<str>>,
    /// What went wrong last, whether or not it has come back since.
    pub(crate) last_error: Option<Box<str>>,
    /// How often another process took over.
    pub(crate) restarted: u32,
    /// Standing streams that broke in a row, and when the next one is opened.
    pub(crate) standing_breaks: u32,
    pub(crate) standing_armed: Option<Mono>,
    /// It has answered something, in some run.
    pub(crate) ever_answered: bool,
    /// It has been ready, in this run.
    pub(crate) came_up: bool,
    pub(crate) exit: Option<Exit>,
    pub(crate) output_closed: bool,
    /// It does not read any more: it is being stopped, and what comes waits for the next run.
    pub(crate) input_closed: bool,
    pub(crate) alarm: Option<Alarm>,
    pub(crate) armed: Option<Mono>,

    pub(crate) clock: WorkClock,
    /// Calls whose timer was set while the clock stood still.
    pub(crate) stalled: BTreeSet<CallId>,

    /// When it last said anything, on whichever of its outputs.
    pub(crate) heard: Option<Mono>,
    pub(crate) sample: Option<Sample>,
    pub(crate) sampling: bool,
    /// Calls that the next sample decides on.
    pub(crate) judged: Vec<CallId>,

    /// It owes us a sign of life after a cancel.
    pub(crate) watch: Option<Watch>,
    pub(crate) grace_armed: Option<Mono>,

    pub(crate) declared: Declared,
    pub(crate) handshake: Handshake,
    /// What was answered in its place, until it answers itself.
    pub(crate) instant: Option<Memory>,
    /// What is kept for its next start.
    pub(crate) memory: Option<Memory>,
    pub(crate) waiting: VecDeque<CallId>,
    pub(crate) waiting_bytes: usize,
    /// Requests of our own that it has not answered yet.
    pub(crate) own: BTreeMap<AttemptId, Own>,
    /// Tools that it calls repeatable, if it is trusted.
    pub(crate) repeatable: BTreeSet<Box<str>>,
    pub(crate) budget: Budget,
    /// Restarts within the last minute.
    restarts: VecDeque<Mono>,
    /// Tries in a row that did not come up.
    tries: u32,
    pub(crate) stopped_at: Mono,

    stderr: VecDeque<u8>,
    /// Attempts that it was told to cancel, the newest last, and when.
    told_to_cancel: VecDeque<(AttemptId, Mono)>,
    /// It has gone on with one of them long after.
    pub(crate) ignores_cancels: bool,
    /// Lines that are no messages, and how many of them were told of.
    pub(crate) bad_lines: u64,
    pub(crate) bad_lines_told: u64,
    pub(crate) refused_asks: u64,
    pub(crate) noted_id_type: bool,
}

/// A request of our own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Own {
    /// Its answer is not looked at; that it came is a sign of life.
    Quiet,
    /// Is it there?
    Heartbeat,
    /// A list that the client knows: has it changed?
    List(Method),
    /// Tools whose schemas a call waits for.
    Tools(Box<Paging>),
    /// How far its task for a call is.
    Poll(CallId),
    /// The result of its task for a call.
    Fetch(CallId),
    /// A page of a list, for the merged door.
    Listing(Kind),
    /// What it can do, for the merged door.
    Discover,
}

/// A list that is read page by page on behalf of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Paging {
    pub(crate) call: CallId,
    /// Where it has been continued, as numbers.
    seen: Vec<u64>,
}

impl Paging {
    pub(crate) fn of(call: CallId) -> Paging {
        Paging { call, seen: Vec::new() }
    }

    /// Whether to read on from here. Not in circles, and not for ever: the call is sent with what is known by then.
    pub(crate) fn turns_to(&mut self, cursor: &str) -> bool {
        let page = crate::hash::fingerprint(cursor.as_bytes());
        let long = reached!(CURSOR, cursor.len() > limits::CURSOR);
        let many = reached!(TOOL_PAGES, self.seen.len() + 1 >= limits::TOOL_PAGES);
        let turns = !long && !many && !self.seen.contains(&page);
        if turns {
            self.seen.push(page);
        }
        turns
    }
}

/// What is waited for after a server was told to cancel, or has missed a heartbeat.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Watch {
    pub(crate) since: Mono,
    /// What it was asked then, for people.
    pub(crate) asked: &'static str,
    /// What it had used when it was told.
    pub(crate) first: Option<Sample>,
    /// The next sample decides.
    pub(crate) deciding: bool,
}

/// What a restarted server is told again.
#[derive(Debug, Default)]
pub(crate) struct Handshake {
    pub(crate) initialize: Option<Message>,
    pub(crate) initialized: Option<Message>,
    /// The client's `initialize` was answered, so it may be repeated.
    pub(crate) done: bool,
    /// Its client went on without `initialized`, as many do.
    pub(crate) skipped: bool,
    /// The server declared logging, so a warning may be given that way.
    pub(crate) logging: bool,
    pub(crate) log_level: Option<Message>,
    /// The revision that was agreed on.
    pub(crate) version: Option<Box<str>>,
    /// By the raw uri, with who asked for it.
    pub(crate) subscribed: BTreeMap<Box<[u8]>, (Message, BTreeSet<ClientId>)>,
    /// The client's own request for each list, and what came back, as a number.
    pub(crate) lists: Vec<(Method, Message, Option<u64>)>,
}

impl Handshake {
    /// Whether the client has said all that it says before its first request.
    pub(crate) fn is_over(&self) -> bool {
        self.initialized.is_some() || self.skipped
    }

    /// A client wants to hear of a resource, unless there are too many of them.
    pub(crate) fn subscribe(&mut self, uri: Box<[u8]>, client: ClientId, message: &Message) {
        let full = self.subscribed.len() >= limits::SUBSCRIBED && !self.subscribed.contains_key(&uri);
        if !reached!(SUBSCRIBED, full) {
            let entry = self.subscribed.entry(uri).or_insert_with(|| (message.owned(), BTreeSet::new()));
            entry.1.insert(client);
        }
    }

    /// Keeps the client's own request for a list, and what it has seen of it.
    pub(crate) fn keep_list(&mut self, method: &Method, message: &Message, seen: Option<u64>) {
        self.lists.retain(|(known, _, _)| known != method);
        self.lists.push((method.clone(), message.owned(), seen));
    }

    /// A client does not want to hear of a resource any more; others may.
    pub(crate) fn unsubscribe(&mut self, uri: &[u8], client: ClientId) {
        let Some((_, clients)) = self.subscribed.get_mut(uri) else { return };
        clients.remove(&client);
        if clients.is_empty() {
            self.subscribed.remove(uri);
        }
    }
}

impl Server {
    pub(crate) fn new(definition: DefinitionId, config: Arc<ServerConfig>) -> Server {
        let transport = config.transport;
        Server {
            definition,
            config,
            run: Run(0),
            life: Life::Starting,
            clients: BTreeSet::new(),
            unsent: Unsent::default(),
            fate: Fate::Stays,
            transport,
            ran: false,
            hopeless: false,
            spare: false,
            used: Mono::default(),
            quiet_armed: None,
            heartbeat: None,
            pulse: None,
            falls_asleep: false,
            gave_task: false,
            wakes: false,
            greeted: None,
            welcome: None,
            version: "".into(),
            awaiting_welcome: Vec::new(),
            eras: Eras::default(),
            supported: Vec::new(),
            own_tasks: false,
            makes_tasks: false,
            needs_tasks: BTreeSet::new(),
            followed: BTreeMap::new(),
            forbids_tasks: BTreeSet::new(),
            harmless: BTreeSet::new(),
            tools: KnownTools::default(),
            tickets: 0,
            mirrors: Mirrors::default(),
            session_lost: false,
            session_since: AttemptId(0),
            made_whole: None,
            other_version: false,
            last_trouble: None,
            last_error: None,
            restarted: 0,
            standing_breaks: 0,
            standing_armed: None,
            ever_answered: false,
            came_up: true,
            exit: None,
            output_closed: false,
            input_closed: false,
            alarm: None,
            armed: None,
            clock: WorkClock::default(),
            stalled: BTreeSet::new(),
            heard: None,
            sample: None,
            sampling: false,
            judged: Vec::new(),
            watch: None,
            grace_armed: None,
            declared: Declared::default(),
            handshake: Handshake::default(),
            instant: None,
            memory: None,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            own: BTreeMap::new(),
            repeatable: BTreeSet::new(),
            budget: Budget::default(),
            restarts: VecDeque::new(),
            tries: 0,
            stopped_at: Mono::default(),
            stderr: VecDeque::new(),
            told_to_cancel: VecDeque::new(),
            ignores_cancels: false,
            bad_lines: 0,
            bad_lines_told: 0,
            refused_asks: 0,
            noted_id_type: false,
        }
    }

    /// Whether no client and no task needs it.
    pub(crate) fn is_unused(&self) -> bool {
        self.clients.is_empty() && self.tickets == 0 && !self.spare
    }

    pub(crate) fn readiness(&self) -> Readiness {
        match self.life {
            _ if self.fate == Fate::Removed => Readiness::IsGone,
            Life::Starting | Life::Up if self.input_closed || self.fate == Fate::Replaced => {
                Readiness::ComesBack
            }
            Life::Starting | Life::Up => Readiness::Runs,
            Life::Stopping | Life::Resting | Life::Asleep | Life::Restarting | Life::Reviving(_) => {
                Readiness::ComesBack
            }
            Life::Down | Life::Leaving | Life::Ended(_) | Life::Failed(_) => Readiness::IsGone,
        }
    }

    /// Whether its process was stopped because nobody used it, or is being stopped for that.
    pub(crate) fn sleeps(&self) -> bool {
        self.life == Life::Asleep || self.falls_asleep
    }

    /// Whether it is reached over HTTP.
    #[inline]
    pub(crate) fn is_remote(&self) -> bool {
        self.config.transport == Transport::Http
    }

    /// Whether there is a process that could be waited for.
    pub(crate) fn has_process(&self) -> bool {
        !matches!(self.life, Life::Resting | Life::Asleep | Life::Down | Life::Ended(_) | Life::Failed(_))
    }

    /// A new process takes over. What belonged to the old one is forgotten.
    pub(crate) fn next_run(&mut self) -> Run {
        self.run = Run(self.run.0 + 1);
        self.transport = self.config.transport;
        self.heartbeat = None;
        self.pulse = None;
        self.falls_asleep = false;
        self.gave_task = false;
        if self.fate == Fate::Replaced {
            self.becomes_another();
        }
        self.came_up = false;
        self.session_lost = false;
        self.own.clear();
        self.exit = None;
        self.output_closed = false;
        self.input_closed = false;
        self.heard = None;
        self.sample = None;
        self.sampling = false;
        self.stderr.clear();
        self.told_to_cancel.clear();
        self.bad_lines = 0;
        self.bad_lines_told = 0;
        self.noted_id_type = false;
        self.run
    }

    /// Another program takes its place: what the old one said of itself does not count.
    #[cold]
    fn becomes_another(&mut self) {
        self.fate = Fate::Stays;
        self.welcome = None;
        self.eras = Eras::default();
        self.supported.clear();
        self.other_version = false;
        self.made_whole = None;
        self.repeatable.clear();
        self.needs_tasks.clear();
        self.forbids_tasks.clear();
    }

    /// Whether none of its processes has ever run.
    pub(crate) fn never_ran(&self) -> bool {
        !self.ran
    }

    /// Failures of the program that it was do not count for the one that it will be.
    pub(crate) fn forgets_failures(&mut self) {
        self.restarts.clear();
        self.tries = 0;
    }

    /// Whether waiting cannot help it: it has never run, and its command is not there.
    pub(crate) fn gives_up(&mut self) {
        self.tries = self.config.connect_retries;
        self.hopeless = true;
    }

    /// How long to wait before the next start; `None` when it has failed too often. `jitter` lies between one half
    /// and one.
    pub(crate) fn restart_after(&mut self, now: Mono, jitter: f64, at_once: bool) -> Option<Duration> {
        if !self.came_up {
            self.tries += 1;
            return self.config.connect_again_after(self.tries);
        }
        if !self.may_restart(now) {
            return None;
        }
        let recent = self.restarts.len() as u32;
        self.restarts.push_back(now);
        if at_once && recent == 0 {
            return Some(Duration::ZERO);
        }
        Some(doubled(self.config.restart_backoff, recent).mul_f64(jitter))
    }

    /// Whether its next end, now, is one too many.
    pub(crate) fn is_given_up_next(&self, now: Mono) -> bool {
        if !self.came_up {
            return self.tries >= self.config.connect_retries;
        }
        let recent = self.restarts.iter().filter(|restart| now.since(**restart) <= INTENSITY_WINDOW);
        recent.count() as u32 >= self.config.restart_intensity
    }

    /// Whether it was not restarted too often within the last minute.
    pub(crate) fn may_restart(&mut self, now: Mono) -> bool {
        while self.restarts.front().is_some_and(|restart| now.since(*restart) > INTENSITY_WINDOW) {
            self.restarts.pop_front();
        }
        (self.restarts.len() as u32) < self.config.restart_intensity
    }

    /// It does not know our session any more: the next handshake begins another one. What is in flight goes on.
    pub(crate) fn forgets_session(&mut self) {
        self.session_lost = true;
        self.made_whole = None;
    }

    /// The legacy revision that was agreed on.
    pub(crate) fn agreed(&self) -> Option<&str> {
        self.handshake.version.as_deref()
    }

    /// Whether it is about to be asked for a revision by a session that it, or one like it, has agreed with before: what
    /// comes until it answers is understood as that session means it.
    pub(crate) fn is_asked_again_for(&self, version: &str) -> bool {
        let handshake = &self.handshake;
        let again = handshake.version.is_none() && handshake.done;
        again
            && handshake.initialize.as_ref().is_some_and(|initialize| *version_wanted(initialize) == *version)
    }

    /// It is told to cancel an attempt.
    pub(crate) fn is_told_to_cancel(&mut self, now: Mono, attempt: AttemptId) {
        if reached!(TOLD_TO_CANCEL, self.told_to_cancel.len() == limits::TOLD_TO_CANCEL) {
            self.told_to_cancel.pop_front();
        }
        self.told_to_cancel.push_back((attempt, now));
    }

    /// It speaks of an attempt that has ended. Did it ignore a cancel, or did the two cross?
    pub(crate) fn speaks_of_ended(&mut self, now: Mono, attempt: AttemptId) {
        let told = self.told_to_cancel.iter().find(|(told, _)| *told == attempt);
        let late = told.is_some_and(|(_, at)| now.since(*at) > limits::CANCEL_CROSSES);
        if reached!(CANCEL_CROSSES, late) {
            self.ignores_cancels = true;
        }
    }

    /// It is away for the first time since it was there.
    pub(crate) fn has_just_gone(&self) -> bool {
        self.tries <= 1
    }

    /// It is ready.
    pub(crate) fn is_up(&mut self) {
        self.life = Life::Up;
        self.answers();
    }

    /// It answers, so it has come up.
    pub(crate) fn answers(&mut self) {
        self.came_up = true;
        self.tries = 0;
        self.standing_breaks = 0;
    }

    /// A call need not wait for it any longer.
    #[cold]
    pub(crate) fn waits_no_more(&mut self, id: CallId, size: usize) {
        self.waiting.retain(|waiting| *waiting != id);
        self.waiting_bytes = self.waiting_bytes.saturating_sub(size);
    }

    pub(crate) fn keep_stderr(&mut self, bytes: &[u8]) {
        reached!(STDERR_TAIL if self.stderr.len() + bytes.len() > limits::STDERR_TAIL);
        let new = &bytes[bytes.len().saturating_sub(limits::STDERR_TAIL)..];
        let over = (self.stderr.len() + new.len()).saturating_sub(limits::STDERR_TAIL);
        self.stderr.drain(..over.min(self.stderr.len()));
        self.stderr.extend(new);
    }

    /// The end of what it wrote to stderr, without control characters.
    pub(crate) fn stderr_tail(&self) -> Option<String> {
        reached!(ERROR_TAIL if self.stderr.len() > limits::ERROR_TAIL);
        let skipped = self.stderr.len().saturating_sub(limits::ERROR_TAIL);
        let tail: Vec<u8> = self.stderr.iter().skip(skipped).copied().collect();
        let text: String = String::from_utf8_lossy(&tail)
            .chars()
            .map(|c| if c.is_control() && c != '\n' { ' ' } else { c })
            .collect();
        let lines: Vec<&str> = text.trim().lines().collect();
        reached!(STDERR_LINES if lines.len() > limits::STDERR_LINES);
        let kept = lines[lines.len().saturating_sub(limits::STDERR_LINES)..].join("\n");
        (!kept.is_empty()).then_some(kept)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server() -> Server {
        Server::new(DefinitionId::FIRST, Arc::default())
    }

    fn at(seconds: u64) -> Mono {
        Mono::after_start(Duration::from_secs(seconds))
    }

    #[test]
    fn crashes_wait_ever_longer_until_there_are_too_many() {
        let mut server = server();
        let mut waits = |now| server.restart_after(at(now), 1.0, false).map(|wait| wait.as_millis());
        assert_eq!(
            [0, 1, 2, 3, 4, 5].map(&mut waits),
            [Some(500), Some(1000), Some(2000), Some(4000), Some(8000), None]
        );
        assert_eq!(waits(61), Some(8000), "the first has been forgotten");
    }

    #[test]
    fn a_hung_server_is_replaced_at_once_the_first_time() {
        let mut server = server();
        assert_eq!(server.restart_after(at(0), 1.0, true), Some(Duration::ZERO));
        assert_eq!(server.restart_after(at(1), 1.0, true), Some(Duration::from_secs(1)));
    }

    #[test]
    fn what_does_not_come_up_is_tried_three_times_more() {
        let mut server = server();
        server.came_up = false;
        let mut waits = || server.restart_after(at(0), 1.0, false).map(|wait| wait.as_secs());
        assert_eq!([waits(), waits(), waits(), waits()], [Some(2), Some(4), Some(8), None]);
        server.is_up();
        server.came_up = false;
        assert_eq!(server.restart_after(at(0), 1.0, false), Some(Duration::from_secs(2)));
    }

    #[test]
    fn the_stderr_tail_is_bounded_and_clean() {
        let mut server = server();
        assert_eq!(server.stderr_tail(), None);
        server.keep_stderr(&vec![b'a'; 10_000]);
        server.keep_stderr(b"\x1b[31mred\x07\n");
        let tail = server.stderr_tail().unwrap();
        assert!(tail.len() <= limits::ERROR_TAIL && tail.ends_with("[31mred"), "{tail}");
        assert!(server.stderr.len() <= limits::STDERR_TAIL);
    }
}
