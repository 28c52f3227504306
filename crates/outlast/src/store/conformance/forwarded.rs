//! Messages about sessions, to those who have owned them.

use super::*;
use outlast_engine::limits::{FORMER_OWNERS, FORWARDED};
use outlast_engine::store::{Name, Session};

fn name(number: u64) -> Name {
    Name(format!("session {number}").into())
}

fn keep(process: &Process, number: u64) {
    let session = Session {
        name: name(number),
        principal: "ann".into(),
        initialize: Bytes::from_static(b"{}"),
        initialized: Bytes::new(),
        setup: Bytes::new(),
        epoch: 1,
    };
    process.write(Write::Session(session.into()));
}

fn take(process: &Process, number: u64) -> u64 {
    let take = Write::TakeSession { name: name(number), principal: "ann".into() };
    match process.write(take) {
        Done::Session(Some(session)) => session.epoch,
        other => panic!("{other:?}"),
    }
}

fn forward(process: &Process, number: u64, message: &'static [u8]) {
    let message = Bytes::from_static(message);
    assert_eq!(process.write(Write::Forward { session: name(number), message }), Done::Kept);
}

fn collect(process: &Process) -> Vec<(Name, Bytes)> {
    match process.write(Write::CollectForwarded) {
        Done::Forwarded(messages) => messages,
        other => panic!("{other:?}"),
    }
}

fn mail(process: &Process) -> bool {
    process.load(Query::Mail) == Ok(Found::Mail(true))
}

pub fn a_message_about_a_session_reaches_every_former_owner_once(bench: &dyn Bench) {
    let (machine, first) = alone(bench);
    let [second, third, stranger] = [(); 3].map(|()| another(bench, &machine));
    keep(&first, 1);
    keep(&first, 2);
    forward(&first, 1, b"nobody has owned it before");
    assert_eq!((take(&second, 1), take(&third, 1), take(&third, 1)), (2, 3, 3));
    forward(&third, 1, b"{\"a\":\xff}");
    forward(&third, 1, b"two");
    forward(&third, 2, b"also nobody");
    forward(&third, 3, b"no such session");
    assert_eq!([&first, &second, &third, &stranger].map(mail), [true, true, false, false]);
    let told = [(name(1), Bytes::from_static(b"{\"a\":\xff}")), (name(1), "two".into())];
    assert_eq!((collect(&first), collect(&second)), (told.to_vec(), told.to_vec()));
    assert_eq!((collect(&first), collect(&third), mail(&first)), (vec![], vec![], false));
    // It comes back, and what runs at the others is asked of them.
    take(&first, 1);
    forward(&first, 1, b"three");
    assert_eq!([&first, &second, &third].map(|process| collect(process).len()), [0, 1, 1]);
}

pub fn former_owners_are_known_after_the_session_was_kept_again(bench: &dyn Bench) {
    let (machine, first) = alone(bench);
    let second = another(bench, &machine);
    keep(&first, 1);
    take(&second, 1);
    let Ok(Found::Session(Some(session))) = second.load(Query::Session(name(1))) else { panic!() };
    second.write(Write::Session(session));
    forward(&second, 1, b"one");
    assert_eq!(collect(&first).len(), 1);
}

pub fn messages_about_sessions_have_bounds_and_an_age(bench: &dyn Bench) {
    let machine = FakeMachine::new();
    let bounds = Bounds { mailbox: 2, ..Bounds::default() };
    let first = bounded(bench, &machine, bounds);
    let second = bounded(bench, &machine, bounds);
    keep(&first, 1);
    let before = first.usage().bytes;
    take(&second, 1);
    for message in [&b"one"[..], b"two", b"three"] {
        forward(&second, 1, message);
    }
    assert_eq!(first.usage().bytes, before + 2 * 64 + 6);
    assert_eq!(collect(&first).iter().map(|(_, told)| &told[..]).collect::<Vec<_>>(), [b"one", b"two"]);
    assert_eq!(first.usage().bytes, before);
    forward(&second, 1, b"four");
    machine.pass(FORWARDED.as_millis() as u64 - 1);
    assert_eq!((second.write(Write::Expire), mail(&first)), (Done::Removed(0), true));
    machine.pass(1);
    assert_eq!((second.write(Write::Expire), mail(&first)), (Done::Removed(1), false));
    assert_eq!(first.usage().bytes, before);
}

pub fn the_earliest_of_too_many_owners_is_told_nothing(bench: &dyn Bench) {
    let (machine, first) = alone(bench);
    keep(&first, 1);
    let later: Vec<Process> = (0..=FORMER_OWNERS).map(|_| another(bench, &machine)).collect();
    for process in &later {
        take(process, 1);
    }
    forward(later.last().unwrap(), 1, b"one");
    assert_eq!(collect(&first), []);
    assert_eq!(later.iter().map(|process| collect(process).len()).sum::<usize>(), FORMER_OWNERS);
}
