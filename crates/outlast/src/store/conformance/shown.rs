//! What processes show each other and tell each other to do, and how long tools took.

use super::{Bench, FakeMachine, Process, alone, another, bounded};
use bytes::Bytes;
use outlast_engine::durations::Tally;
use outlast_engine::limits::{LEASE, MEASURED_DAYS, SHOWN_BYTES};
use outlast_engine::step::Outcome;
use outlast_engine::store::{Bounds, Done, Found, Measured, Query, Refusal, Write};
use std::time::Duration;

const DAY: u64 = 86_400_000;

fn show(process: &str, shown: &'static str) -> Write {
    Write::Show { process: process.into(), shown: shown.into() }
}

fn tell(process: &str, what: &'static str) -> Write {
    Write::Tell { process: process.into(), what: what.into() }
}

fn shown(process: &Process) -> Vec<Bytes> {
    match process.load(Query::Shown) {
        Ok(Found::Shown(all)) => all,
        other => panic!("{other:?}"),
    }
}

/// Whoever is gone shows nothing, whether it said so or was killed, and before anybody sweeps.
pub fn what_a_process_shows_ends_with_it(bench: &dyn Bench) {
    let (machine, one) = alone(bench);
    let [two, silent] = [another(bench, &machine), another(bench, &machine)];
    assert_eq!(one.write(show("a", "1")), Done::Told(vec![]));
    two.write(show("b", "2"));
    silent.write(show("c", "3"));
    one.write(show("a", "4"));
    assert_eq!(shown(&two), ["4", "2", "3"].map(Bytes::from));
    machine.kill(&two);
    assert_eq!(shown(&one), ["4", "3"].map(Bytes::from));
    machine.pass(LEASE.as_millis() as u64);
    one.write(show("a", "5"));
    assert_eq!(shown(&one), ["5"].map(Bytes::from));
    one.write(Write::Expire);
    assert_eq!(shown(&one), ["5"].map(Bytes::from));
    one.write(show("a", ""));
    assert_eq!(shown(&one), [] as [Bytes; 0]);
}

pub fn a_process_is_told_once_and_only_while_it_shows_something(bench: &dyn Bench) {
    let (machine, one) = alone(bench);
    let two = another(bench, &machine);
    assert_eq!(two.refused(tell("a", "x")), Refusal::Unknown);
    one.write(show("a", "1"));
    assert_eq!(two.write(tell("a", "x")), Done::Kept);
    assert_eq!(two.write(tell("a", "y")), Done::Kept);
    assert_eq!(two.write(show("b", "1")), Done::Told(vec![]), "it is for another");
    assert_eq!(one.write(show("a", "2")), Done::Told(vec!["x".into(), "y".into()]));
    assert_eq!(one.write(show("a", "3")), Done::Told(vec![]));
    machine.kill(&one);
    assert_eq!(two.refused(tell("a", "z")), Refusal::Unknown);
}

pub fn what_a_process_shows_and_is_told_has_bounds(bench: &dyn Bench) {
    let machine = FakeMachine::new();
    let process = bounded(bench, &machine, Bounds { mailbox: 2, ..Bounds::default() });
    let long =
        |more: usize| Write::Show { process: "a".into(), shown: vec![b'x'; SHOWN_BYTES + more].into() };
    assert!(matches!(process.refused(long(1)), Refusal::Full(_)));
    process.write(long(0));
    process.write(tell("a", "1"));
    process.write(tell("a", "2"));
    assert!(matches!(process.refused(tell("a", "3")), Refusal::Full(_)));
}

fn took(server: &str, times: &[u64]) -> Measured {
    let mut tally = Tally::default();
    times.iter().for_each(|ms| tally.add(Duration::from_millis(*ms), Outcome::Failed("timeout")));
    Measured { server: server.into(), tool: "search".into(), tally }
}

fn measured(process: &Process) -> Vec<Measured> {
    match process.load(Query::Measured) {
        Ok(Found::Measured(all)) => all,
        other => panic!("{other:?}"),
    }
}

pub fn durations_are_added_up_and_go_after_a_month(bench: &dyn Bench) {
    let (machine, one) = alone(bench);
    let two = another(bench, &machine);
    one.write(Write::Measured(vec![took("files", &[5, 70]), took("git", &[9])]));
    two.write(Write::Measured(vec![took("files", &[5, 3_000])]));
    machine.pass(DAY);
    one.write(Write::Measured(vec![took("files", &[1])]));
    assert_eq!(measured(&two), [took("files", &[1, 5, 5, 70, 3_000]), took("git", &[9])]);
    machine.pass((MEASURED_DAYS - 1) * DAY);
    assert_eq!(measured(&two), [took("files", &[1])], "also before anybody sweeps");
    one.write(Write::Expire);
    assert_eq!(measured(&two), [took("files", &[1])]);
    machine.pass(DAY);
    one.write(Write::Expire);
    assert_eq!(measured(&two), []);
}

/// The oldest day goes, whoever wrote it.
pub fn durations_have_a_bound(bench: &dyn Bench) {
    let machine = FakeMachine::new();
    let process = bounded(bench, &machine, Bounds { measured: 5, ..Bounds::default() });
    process.write(Write::Measured(vec![took("files", &[5, 70])]));
    machine.pass(DAY);
    process.write(Write::Measured(vec![took("git", &[9])]));
    assert_eq!(measured(&process).len(), 2);
    process.write(Write::Measured(vec![took("web", &[9])]));
    assert_eq!(measured(&process), [took("git", &[9]), took("web", &[9])]);
}
