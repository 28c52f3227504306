//! What every store must do, wherever it puts things.
//!
//! A place joins with a [`Bench`] and one line of `conformance!` in `tests.rs`. Every handle on a bench
//! is a process of its own: it has another owner, and the world lets it live or die.

pub mod callbacks;
pub mod claims;
pub mod forwarded;
pub mod holds;
pub mod keeping;
pub mod mailbox;
pub mod records;
pub mod room;
pub mod shown;

use super::owner::{Owner, World};
use super::{Reply, Store};
use bytes::Bytes;
use outlast_engine::Wall;
use outlast_engine::record::{Answer, Body, Change, Faces, Head, New, Origin, Record, State, Ticket};
use outlast_engine::store::{Bounds, Done, Found, Loaded, Query, Refusal, Stored, Trouble, Usage, Write};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// One place in which several processes store things.
pub trait Bench {
    /// Another process that opens it.
    fn open(&self, world: Arc<dyn World>, bounds: Bounds) -> Store;
}

/// All of the suite, for one bench.
macro_rules! conformance {
    ($place:ident, $bench:expr) => {
        mod $place {
            use super::*;
            $crate::store::conformance::suite! { $bench;
                records: a_record_is_read_back_byte_for_byte,
                records: a_ticket_is_taken_once,
                records: every_change_raises_the_revision_and_the_last_one_is_final,
                records: a_submission_is_written_wholly_or_not_at_all,
                records: submissions_are_written_in_their_order,
                records: a_key_is_held_while_its_call_is_open,
                records: lists_go_on_page_by_page,
                records: a_page_has_a_bound,
                records: only_what_changed_is_told,
                records: only_what_has_ended_is_removed,
                claims: a_silent_owner_loses_its_records,
                claims: a_dead_owner_loses_its_records_at_once,
                claims: a_late_owner_writes_nothing,
                claims: a_record_is_claimed_by_one,
                mailbox: a_message_reaches_the_owner_once,
                mailbox: messages_wait_for_a_new_owner,
                mailbox: messages_end_with_their_call,
                mailbox: nobody_writes_to_what_is_not_open,
                mailbox: a_mailbox_has_a_bound,
                forwarded: a_message_about_a_session_reaches_every_former_owner_once,
                forwarded: former_owners_are_known_after_the_session_was_kept_again,
                forwarded: messages_about_sessions_have_bounds_and_an_age,
                forwarded: the_earliest_of_too_many_owners_is_told_nothing,
                keeping: a_stream_is_read_from_a_number_on,
                keeping: a_stream_belongs_to_who_began_it_while_that_process_lives,
                keeping: a_stream_of_a_process_that_ended_can_be_adopted_at_once,
                keeping: what_came_on_several_streams_is_read_at_once,
                keeping: a_stream_expires_as_a_whole,
                keeping: a_stream_expires_although_nobody_sweeps,
                keeping: a_session_is_kept_and_ended,
                keeping: a_session_is_taken_over_in_a_new_epoch,
                keeping: a_session_that_was_taken_over_is_not_written_by_its_former_owner,
                keeping: a_session_is_not_taken_over_for_another_principal,
                keeping: the_room_of_a_session_is_counted_in_every_epoch,
                keeping: sessions_have_a_bound_and_an_age,
                keeping: notes_about_calls_are_a_ring,
                holds: a_yes_is_used_once,
                holds: the_first_word_counts_and_every_word_is_in_the_audit_log,
                holds: a_question_outlives_the_process_that_asked,
                holds: a_yes_for_a_while_is_good_until_it_runs_out,
                holds: questions_and_the_audit_log_have_bounds,
                callbacks: a_callback_is_taken_by_one,
                callbacks: a_callback_comes_back_from_a_process_that_is_silent,
                callbacks: a_callback_waits_and_is_parked,
                callbacks: a_callback_comes_with_what_it_tells_of_or_not_at_all,
                callbacks: callbacks_have_a_bound_and_an_age,
                shown: what_a_process_shows_ends_with_it,
                shown: a_process_is_told_once_and_only_while_it_shows_something,
                shown: what_a_process_shows_and_is_told_has_bounds,
                shown: durations_are_added_up_and_go_after_a_month,
                shown: durations_have_a_bound,
                room: what_is_open_never_expires,
                room: what_is_over_is_not_found_before_it_is_swept,
                room: every_commit_tells_the_time_of_the_store,
                room: the_first_to_end_is_the_first_to_go,
                room: what_is_open_is_never_dropped_for_room,
                room: a_result_is_taken_even_where_there_is_no_room,
                room: bytes_are_counted_down_to_nothing,
            }
        }
    };
}

macro_rules! suite {
    ($bench:expr; $($part:ident: $name:ident,)*) => {$(
        #[test]
        fn $name() {
            $crate::store::conformance::$part::$name(&$bench);
        }
    )*};
}

pub(super) use {conformance, suite};

/// A machine whose clock stands still unless it is told to go on.
#[derive(Debug)]
pub struct FakeMachine {
    now: AtomicU64,
    processes: AtomicU32,
    dead: Mutex<BTreeSet<u32>>,
}

impl FakeMachine {
    pub fn new() -> Arc<FakeMachine> {
        Arc::new(FakeMachine {
            now: AtomicU64::new(1_000),
            processes: AtomicU32::new(0),
            dead: Mutex::default(),
        })
    }

    /// Until this moment.
    pub fn pass_to(&self, moment: u64) {
        assert!(self.now.swap(moment, Ordering::Relaxed) <= moment, "time goes on");
    }

    pub fn pass(&self, millis: u64) {
        self.now.fetch_add(millis, Ordering::Relaxed);
    }

    pub fn kill(&self, process: &Process) {
        self.dead.lock().unwrap().insert(process.pid);
    }
}

impl World for FakeMachine {
    fn now(&self) -> u64 {
        self.now.load(Ordering::Relaxed)
    }

    fn wall(&self) -> Wall {
        Wall(self.now())
    }

    fn owner(&self) -> Owner {
        let pid = self.processes.fetch_add(1, Ordering::Relaxed) + 1;
        Owner { boot: "boot".into(), space: 1, pid, started: 1, serial: 1 }
    }

    fn runs(&self, pid: u32, _: u64) -> bool {
        !self.dead.lock().unwrap().contains(&pid)
    }
}

/// A process with the store open. Its questions wait for their answers, as no driver would.
pub struct Process {
    store: Store,
    pid: u32,
}

impl Process {
    pub fn of(store: Store, machine: &FakeMachine) -> Process {
        Process { store, pid: machine.processes.load(Ordering::Relaxed) }
    }

    pub fn submit(&self, writes: Vec<Write>) -> Stored {
        wait(|reply| self.store.submit(writes, reply))
    }

    /// One write that must be made.
    pub fn write(&self, write: Write) -> Done {
        self.submit(vec![write]).unwrap().done.remove(0)
    }

    /// One write that must not be made.
    pub fn refused(&self, write: Write) -> Refusal {
        match self.submit(vec![write]) {
            Err(Trouble::Refused { at: 0, why }) => why,
            other => panic!("not refused: {other:?}"),
        }
    }

    pub fn load(&self, query: Query) -> Loaded {
        wait(|reply| self.store.load(query, reply))
    }

    pub fn record(&self, ticket: &Ticket) -> Option<Record> {
        match self.load(Query::Record(ticket.clone())) {
            Ok(Found::Record(record)) => record.map(|record| *record),
            other => panic!("{other:?}"),
        }
    }

    pub fn head(&self, ticket: &Ticket) -> Head {
        self.record(ticket).expect("the record is there").head
    }

    pub fn heads(&self, query: Query) -> Vec<Head> {
        match self.load(query) {
            Ok(Found::Heads(heads)) => heads,
            other => panic!("{other:?}"),
        }
    }

    pub fn usage(&self) -> Usage {
        match self.load(Query::Usage) {
            Ok(Found::Usage(usage)) => usage,
            other => panic!("{other:?}"),
        }
    }

    /// Makes a record of the usual kind.
    pub fn create(&self, number: u8) -> Ticket {
        assert_eq!(self.write(Write::Create(new(number).into())), Done::Written(1));
        ticket(number)
    }

    /// Ends a call with an answer, to be kept for so many milliseconds.
    pub fn end(&self, ticket: &Ticket, keep: Option<u64>) {
        let head = self.head(ticket);
        let answer = Some(Answer::Result(Bytes::from_static(b"{}")));
        let keep = keep.map(Duration::from_millis);
        let change = Change { answer, keep, ..Change::to(State::Completed, &head) };
        self.write(Write::Change(change.into()));
    }
}

pub fn wait<T: Send + 'static>(ask: impl FnOnce(Reply<T>)) -> T {
    let (sender, receiver) = channel();
    ask(Box::new(move |answer| sender.send(answer).unwrap()));
    receiver.recv().unwrap()
}

/// A machine, and one process on it with the usual bounds.
fn alone(bench: &dyn Bench) -> (Arc<FakeMachine>, Process) {
    let machine = FakeMachine::new();
    let process = another(bench, &machine);
    (machine, process)
}

fn another(bench: &dyn Bench, machine: &Arc<FakeMachine>) -> Process {
    bounded(bench, machine, Bounds::default())
}

fn bounded(bench: &dyn Bench, machine: &Arc<FakeMachine>, bounds: Bounds) -> Process {
    let store = bench.open(machine.clone(), bounds);
    Process::of(store, machine)
}

pub fn ticket(number: u8) -> Ticket {
    Ticket::of(&[number; 16])
}

pub fn new(number: u8) -> New {
    New {
        ticket: ticket(number),
        origin: Origin {
            principal: "ann".into(),
            server: "files".into(),
            method: "tools/call".into(),
            tool: "search".into(),
            key: None,
        },
        faces: Faces::LEGACY_TASK,
        ran: Duration::from_millis(100),
        seen: 0,
        body: Body::default().encode(),
        request: Bytes::from_static(br#"{"jsonrpc":"2.0","id":1,"method":"tools/call"}"#),
    }
}
