//! Callbacks: a queue whose members are never lost and never with two at once.

use super::*;
use outlast_engine::callback::{Callback, Fate, NewCallback};
use outlast_engine::limits::{CALLBACK_CLAIM, CALLBACK_KEPT};

fn write(name: &str, body: &str) -> Write {
    Write::CallBack(NewCallback { name: name.into(), body: body.into() }.into())
}

fn take(process: &Process, names: &[&str], limit: usize) -> Vec<Callback> {
    let names = names.iter().map(|name| (*name).into()).collect();
    match process.write(Write::TakeCallbacks { names, limit }) {
        Done::Callbacks(callbacks) => callbacks,
        other => panic!("{other:?}"),
    }
}

fn settle(callback: &Callback, fate: Fate) -> Write {
    Write::SettleCallback { callback: callback.number, attempts: Some(callback.attempts), fate }
}

fn all(process: &Process) -> Vec<Callback> {
    match process.load(Query::Callbacks { limit: 99 }) {
        Ok(Found::Callbacks(callbacks)) => callbacks,
        other => panic!("{other:?}"),
    }
}

fn bodies(callbacks: &[Callback]) -> Vec<&str> {
    callbacks.iter().map(|callback| &*callback.about.body).collect()
}

fn is_due(process: &Process) -> bool {
    let due = process.load(Query::CallbackDue(vec!["ops".into()]));
    due == Ok(Found::Due(true))
}

pub fn a_callback_is_taken_by_one(bench: &dyn Bench) {
    let (machine, process) = alone(bench);
    let other = another(bench, &machine);
    process.write(write("ops", "1"));
    process.write(write("elsewhere", "2"));
    process.write(write("ops", "3"));
    assert!(is_due(&other));
    assert_eq!(bodies(&take(&process, &["ops"], 1)), ["1"], "the oldest first");
    let taken = take(&other, &["ops", "unused"], 9);
    assert_eq!(bodies(&taken), ["3"]);
    assert_eq!((taken[0].attempts, taken[0].made), (1, Wall(1_000)));
    assert_eq!(take(&process, &["ops"], 9), []);
    assert!(!is_due(&other));
    assert_eq!(bodies(&all(&process)), ["1", "2", "3"]);
}

pub fn a_callback_comes_back_from_a_process_that_is_silent(bench: &dyn Bench) {
    let (machine, process) = alone(bench);
    let other = another(bench, &machine);
    process.write(write("ops", "1"));
    let first = take(&process, &["ops"], 9).remove(0);
    machine.pass(CALLBACK_CLAIM.as_millis() as u64);
    let second = take(&other, &["ops"], 9).remove(0);
    assert_eq!((second.attempts, second.id()), (2, first.id()));
    assert_eq!(process.refused(settle(&first, Fate::Gone)), Refusal::Fenced);
    assert_eq!(other.write(settle(&second, Fate::Gone)), Done::Kept);
    assert_eq!(other.refused(settle(&second, Fate::Gone)), Refusal::Unknown);
    assert_eq!(all(&process), []);
}

pub fn a_callback_waits_and_is_parked(bench: &dyn Bench) {
    let (machine, process) = alone(bench);
    process.write(write("ops", "1"));
    let taken = take(&process, &["ops"], 9).remove(0);
    process.write(settle(&taken, Fate::Again(Duration::from_millis(5_000), "refused".into())));
    machine.pass(4_999);
    assert_eq!(take(&process, &["ops"], 9), []);
    machine.pass(1);
    let taken = take(&process, &["ops"], 9).remove(0);
    assert_eq!((taken.attempts, &*taken.why), (2, "refused"));
    process.write(settle(&taken, Fate::Parked("gone".into())));
    machine.pass(CALLBACK_CLAIM.as_millis() as u64);
    assert_eq!(take(&process, &["ops"], 9), []);
    assert_eq!(all(&process).iter().map(|one| (one.due, &*one.why)).collect::<Vec<_>>(), [(None, "gone")]);
    // A person has it sent again.
    let fate = Fate::Again(Duration::ZERO, "".into());
    process.write(Write::SettleCallback { callback: taken.number, attempts: None, fate });
    assert_eq!(take(&process, &["ops"], 9).len(), 1);
}

pub fn a_callback_comes_with_what_it_tells_of_or_not_at_all(bench: &dyn Bench) {
    let (_, process) = alone(bench);
    let ticket = process.create(1);
    let end = Change::to(State::Cancelled, &process.head(&ticket));
    let with_callback = || vec![Write::Change(Box::new(end.clone())), write("ops", "1")];
    assert!(process.submit(with_callback()).is_ok());
    assert!(process.submit(with_callback()).is_err(), "it has ended already");
    assert_eq!(all(&process).len(), 1);
}

pub fn callbacks_have_a_bound_and_an_age(bench: &dyn Bench) {
    let machine = FakeMachine::new();
    let process = bounded(bench, &machine, Bounds { callbacks: 2, ..Bounds::default() });
    for body in ["1", "2", "3", "4"] {
        process.write(write("ops", body));
    }
    let third = take(&process, &["ops"], 3).remove(2);
    process.write(settle(&third, Fate::Parked("gone".into())));
    assert_eq!(process.write(Write::Expire), Done::Removed(2));
    assert_eq!(bodies(&all(&process)), ["2", "4"], "what is parked goes first, then what is oldest");
    machine.pass(CALLBACK_KEPT.as_millis() as u64);
    assert_eq!(process.write(Write::Expire), Done::Removed(2));
}
