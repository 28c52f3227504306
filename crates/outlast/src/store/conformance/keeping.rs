//! Streams, sessions, notes about calls.

use super::*;
use outlast_engine::limits;
use outlast_engine::store::{CallNote, Name, News, Session};

fn stream(name: &str) -> Name {
    Name(name.into())
}

fn append(name: &str, keep: u64, events: &[(u64, &'static [u8])]) -> Write {
    let events = events.iter().map(|(number, bytes)| (*number, Bytes::from_static(bytes))).collect();
    Write::Append { stream: stream(name), keep: Duration::from_millis(keep), events }
}

fn events(process: &Process, name: &str, after: u64) -> (u64, Vec<(u64, Bytes)>) {
    match process.load(Query::Events { stream: stream(name), after }) {
        Ok(Found::Events { last, events, .. }) => (last, events),
        other => panic!("{other:?}"),
    }
}

fn session(number: u64) -> Session {
    Session {
        name: stream(&format!("session {number}")),
        principal: "ann".into(),
        initialize: Bytes::from_static(b"{\"id\": 1.0}"),
        initialized: Bytes::new(),
        setup: Bytes::new(),
        epoch: 1,
    }
}

fn kept(process: &Process, session: &Session) -> Option<Session> {
    match process.load(Query::Session(session.name.clone())) {
        Ok(Found::Session(session)) => session.map(|session| *session),
        other => panic!("{other:?}"),
    }
}

fn lives(process: &Process, name: &str) -> bool {
    matches!(
        process.load(Query::Events { stream: stream(name), after: 0 }),
        Ok(Found::Events { lives: true, .. })
    )
}

pub fn a_stream_belongs_to_who_began_it_while_that_process_lives(bench: &dyn Bench) {
    let (machine, process) = alone(bench);
    process.write(append("a", 600_000, &[(1, b"one")]));
    let other = another(bench, &machine);
    assert_eq!((lives(&process, "a"), lives(&other, "a"), lives(&other, "none")), (false, true, false));
    assert_eq!(other.refused(append("a", 600_000, &[(2, b"two")])), Refusal::Fenced);
    assert_eq!(other.refused(Write::Adopt(stream("a"))), Refusal::Fenced);
    // It says that it lives.
    machine.pass(limits::LEASE.as_millis() as u64 - 1);
    process.write(Write::Renew);
    machine.pass(limits::LEASE.as_millis() as u64 - 1);
    assert!(lives(&other, "a"));
    // It says nothing for too long.
    machine.pass(1);
    assert!(!lives(&other, "a"));
    other.write(Write::Adopt(stream("a")));
    assert_eq!(process.refused(append("a", 600_000, &[(2, b"two")])), Refusal::Fenced);
    assert_eq!(events(&other, "a", 0), (1, vec![(1, Bytes::from_static(b"one"))]));
}

pub fn a_stream_of_a_process_that_ended_can_be_adopted_at_once(bench: &dyn Bench) {
    let (machine, process) = alone(bench);
    process.write(append("a", 9, &[(1, b"one")]));
    let other = another(bench, &machine);
    machine.kill(&process);
    assert!(!lives(&other, "a"));
    other.write(Write::Adopt(stream("a")));
    other.write(append("a", 9, &[(2, b"two")]));
}

pub fn a_stream_is_read_from_a_number_on(bench: &dyn Bench) {
    let (machine, process) = alone(bench);
    process.write(append("a", 9, &[(1, b"one"), (2, b"two")]));
    process.write(append("b", 9, &[(1, b"other")]));
    process.write(append("a", 9, &[(2, b"not again"), (3, b"\xff\x00"), (7, b"")]));
    let other = another(bench, &machine);
    let wanted = [(2, &b"two"[..]), (3, b"\xff\x00"), (7, b"")]
        .map(|(number, bytes)| (number, Bytes::from_static(bytes)));
    assert_eq!(events(&other, "a", 1), (7, wanted.to_vec()));
    assert_eq!(events(&other, "a", 7), (7, vec![]));
    assert_eq!(events(&other, "none", 0), (0, vec![]));
    process.write(Write::Forget { stream: stream("a"), through: 3 });
    assert_eq!(events(&other, "a", 0), (7, wanted[2..].to_vec()));
    process.write(Write::Forget { stream: stream("a"), through: 7 });
    assert_eq!(events(&other, "a", 0), (7, vec![]), "its numbers go on where they were");
    process.write(Write::Forget { stream: stream("a"), through: u64::MAX });
    assert_eq!(events(&other, "a", 0), (0, vec![]));
    assert_eq!(events(&other, "b", 0).1.len(), 1);

    let many: Vec<(u64, &[u8])> =
        (1..=limits::STREAM_EVENTS as u64 + 5).map(|number| (number, &b"x"[..])).collect();
    process.write(append("c", 9, &many));
    assert_eq!(events(&process, "c", 0).1.len(), limits::STREAM_EVENTS);
    assert_eq!(events(&process, "c", limits::STREAM_EVENTS as u64).1.len(), 5);
}

pub fn what_came_on_several_streams_is_read_at_once(bench: &dyn Bench) {
    let (machine, process) = alone(bench);
    let other = another(bench, &machine);
    process.write(append("a", 60_000, &[(1, b"one"), (2, b"two"), (1 << 60, b"about it")]));
    process.write(append("b", 60_000, &[(1, b"three")]));
    other.write(append("c", 60_000, &[(7, b"seven")]));
    process.write(append("over", 10, &[(1, b"gone")]));
    machine.pass(10);
    let known = [("c", 0), ("none", 0), ("a", 1), ("over", 0), ("b", 1)];
    let known = known.map(|(name, after)| (stream(name), after)).to_vec();
    let news = |name, events: &[(u64, &'static str)], lives| News {
        stream: stream(name),
        events: events.iter().map(|(number, bytes)| (*number, (*bytes).into())).collect(),
        lives,
    };
    let [c, a] = [news("c", &[(7, "seven")], false), news("a", &[(2, "two"), (1 << 60, "about it")], true)];
    assert_eq!(other.load(Query::News(known.clone())), Ok(Found::News(vec![c, a, news("b", &[], true)])));
    machine.kill(&process);
    let Ok(Found::News(found)) = other.load(Query::News(known)) else { panic!() };
    assert_eq!(found.iter().map(|news| news.lives).collect::<Vec<_>>(), [false; 3]);
    assert_eq!(other.load(Query::News(Vec::new())), Ok(Found::News(Vec::new())));
}

pub fn a_stream_expires_as_a_whole(bench: &dyn Bench) {
    let (machine, process) = alone(bench);
    process.write(append("a", 100, &[(1, b"one")]));
    process.write(append("b", 100, &[(1, b"one")]));
    process.write(append("a", 200, &[(2, b"two")]));
    machine.pass(99);
    assert_eq!(process.write(Write::Expire), Done::Removed(0));
    machine.pass(1);
    assert_eq!(process.write(Write::Expire), Done::Removed(1));
    assert_eq!((events(&process, "a", 0).1.len(), events(&process, "b", 0).0), (2, 0));
    machine.pass(100);
    assert_eq!(process.write(Write::Expire), Done::Removed(1));
    assert_eq!(process.usage(), Usage::default());
}

pub fn a_stream_expires_although_nobody_sweeps(bench: &dyn Bench) {
    let (machine, process) = alone(bench);
    process.write(append("a", 60_000, &[(1, b"one")]));
    machine.pass(59_999);
    assert_eq!(events(&process, "a", 0).0, 1);
    machine.pass(1);
    assert_eq!(events(&process, "a", 0), (0, vec![]));
}

/// One write that takes a session.
fn take(process: &Process, session: &Session, principal: &str) -> Option<Session> {
    let take = Write::TakeSession { name: session.name.clone(), principal: principal.into() };
    match process.write(take) {
        Done::Session(session) => session.map(|session| *session),
        other => panic!("{other:?}"),
    }
}

pub fn a_session_is_taken_over_in_a_new_epoch(bench: &dyn Bench) {
    let (machine, first) = alone(bench);
    let (second, third) = (another(bench, &machine), another(bench, &machine));
    first.write(Write::Session(session(1).into()));
    let epoch = |process: &Process| take(process, &session(1), "ann").map(|session| session.epoch);
    assert_eq!(epoch(&first), Some(1), "it is its own");
    assert_eq!(epoch(&second), Some(2), "its owner lives, and loses it all the same: its client has moved");
    assert_eq!(epoch(&second), Some(2), "whoever has it gets it in the epoch that it has");
    machine.kill(&second);
    assert_eq!(epoch(&third), Some(3));
    assert_eq!(epoch(&first), Some(4), "it comes back in an epoch of its own");
    assert_eq!(kept(&second, &session(1)), Some(Session { epoch: 4, ..session(1) }));
    assert_eq!(take(&first, &session(2), "ann"), None);
}

pub fn a_session_that_was_taken_over_is_not_written_by_its_former_owner(bench: &dyn Bench) {
    let (machine, first) = alone(bench);
    let second = another(bench, &machine);
    let setup = |epoch, text: &'static str| {
        Write::Session(Box::new(Session { epoch, setup: text.into(), ..session(1) }))
    };
    first.write(setup(1, "[1]"));
    take(&second, &session(1), "ann");
    assert_eq!(first.refused(setup(1, "[2]")), Refusal::Fenced);
    assert_eq!(first.refused(setup(2, "[2]")), Refusal::Fenced, "it knows the epoch, and is not its owner");
    second.write(setup(2, "[3]"));
    take(&first, &session(1), "ann");
    take(&second, &session(1), "ann");
    assert_eq!(second.refused(setup(2, "[4]")), Refusal::Fenced, "its own, of an epoch that is over");
    assert_eq!(kept(&first, &session(1)).map(|kept| (kept.epoch, kept.setup)), Some((4, "[3]".into())));
    second.write(setup(4, "[5]"));
    // Its client wants it gone, whoever has it.
    first.write(Write::EndSession(session(1).name));
    assert_eq!((kept(&second, &session(1)), second.usage()), (None, Usage::default()));
}

pub fn a_session_is_not_taken_over_for_another_principal(bench: &dyn Bench) {
    let (machine, first) = alone(bench);
    let second = another(bench, &machine);
    first.write(Write::Session(session(1).into()));
    assert_eq!((take(&second, &session(1), "eve"), take(&second, &session(1), "")), (None, None));
    first.write(Write::Session(session(1).into()));
}

pub fn the_room_of_a_session_is_counted_in_every_epoch(bench: &dyn Bench) {
    let (machine, first) = alone(bench);
    let second = another(bench, &machine);
    first.write(Write::Session(session(1).into()));
    let before = first.usage().bytes;
    take(&second, &session(1), "ann");
    assert_eq!(first.usage().bytes, before);
    let more = Session { epoch: 2, setup: Bytes::from_static(b"12345"), ..session(1) };
    second.write(Write::Session(more.into()));
    assert_eq!(first.usage().bytes, before + 5);
    second.write(Write::EndSession(session(1).name));
    assert_eq!(first.usage(), Usage::default());
}

pub fn a_session_is_kept_and_ended(bench: &dyn Bench) {
    let (machine, process) = alone(bench);
    let first = session(1);
    process.write(Write::Session(first.clone().into()));
    let later = Session {
        initialized: Bytes::from_static(b"{}"),
        setup: Bytes::from_static(b"[{}]"),
        ..first.clone()
    };
    process.write(Write::Session(later.clone().into()));
    assert_eq!(kept(&another(bench, &machine), &first), Some(later));
    assert_eq!(kept(&process, &session(2)), None);
    process.write(Write::EndSession(first.name.clone()));
    assert_eq!(kept(&process, &first), None);
    assert_eq!(process.usage(), Usage::default());
}

pub fn sessions_have_a_bound_and_an_age(bench: &dyn Bench) {
    let machine = FakeMachine::new();
    let process = bounded(bench, &machine, Bounds { sessions: 2, ..Bounds::default() });
    for (number, used) in [(2, 1_100), (3, 1_200), (1, 1_300), (3, 1_400)] {
        machine.pass_to(used);
        process.write(Write::Session(session(number).into()));
    }
    let there = |number| kept(&process, &session(number)).is_some();
    assert_eq!([1, 2, 3].map(there), [true, false, true]);
    let day = limits::SLEEP.as_millis() as u64;
    machine.pass_to(day + 1_299);
    assert_eq!(process.write(Write::Expire), Done::Removed(0));
    machine.pass_to(day + 1_300);
    assert_eq!([1, 3].map(there), [false, true], "also before anybody sweeps");
    assert_eq!(take(&process, &session(1), "ann"), None);
    assert_eq!(process.write(Write::Expire), Done::Removed(1));
    // It is used.
    assert!(take(&process, &session(3), "ann").is_some());
    machine.pass_to(day + 1_400);
    assert_eq!(process.write(Write::Expire), Done::Removed(0));
}

pub fn notes_about_calls_are_a_ring(bench: &dyn Bench) {
    let machine = FakeMachine::new();
    let process = bounded(bench, &machine, Bounds { calls: 3, ..Bounds::default() });
    let note = |began| CallNote {
        server: "files".into(),
        method: "tools/call".into(),
        tool: "search".into(),
        outcome: "answered".into(),
        began: Wall(began),
        took_ms: 1_500,
        asked: 70,
        answered: 1 << 40,
    };
    process.write(Write::Calls(vec![note(1), note(2)]));
    process.write(Write::Calls(vec![note(3), note(4), note(5)]));
    let newest = |limit| process.load(Query::Calls { limit });
    assert_eq!(newest(100), Ok(Found::Calls([5, 4, 3].map(note).to_vec())));
    assert_eq!(newest(1), Ok(Found::Calls(vec![note(5)])));
}
