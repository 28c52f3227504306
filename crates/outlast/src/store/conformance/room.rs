//! Room: what goes, and what never does.

use super::*;
use outlast_engine::store::{CallNote, Mail, Name, RECORD_OVERHEAD};

pub fn what_is_open_never_expires(bench: &dyn Bench) {
    let (machine, process) = alone(bench);
    let open = process.create(1);
    let keep = Some(Duration::from_millis(5));
    let change = Change { keep, ..Change::to(State::Working, &process.head(&open)) };
    process.write(Write::Change(change.into()));
    let (soon, later, never) = (process.create(2), process.create(3), process.create(4));
    process.end(&soon, Some(100));
    process.end(&later, Some(101));
    process.end(&never, None);
    machine.pass(99);
    assert_eq!(process.write(Write::Expire), Done::Removed(0));
    machine.pass(1);
    assert_eq!(process.write(Write::Expire), Done::Removed(1));
    assert_eq!(process.record(&soon), None);
    machine.pass_to(u64::MAX >> 2);
    assert_eq!(process.write(Write::Expire), Done::Removed(1));
    assert!(process.record(&open).is_some() && process.record(&never).is_some());
}

pub fn what_is_over_is_not_found_before_it_is_swept(bench: &dyn Bench) {
    let (machine, process) = alone(bench);
    let origin = Origin { key: Some("k".into()), ..new(1).origin };
    process.write(Write::Create(New { origin, ..new(1) }.into()));
    process.end(&ticket(1), Some(100));
    let listed = || {
        let query = Query::Heads { principal: None, server: None, before: None, limit: 9 };
        process.heads(query).len()
    };
    let by_key = || {
        let query = Query::Key { principal: "ann".into(), server: "files".into(), key: "k".into() };
        matches!(process.load(query), Ok(Found::Record(Some(_))))
    };
    machine.pass(99);
    assert_eq!((process.record(&ticket(1)).is_some(), listed(), by_key()), (true, 1, true));
    machine.pass(1);
    assert_eq!((process.record(&ticket(1)).is_some(), listed(), by_key()), (false, 0, false));
    assert_eq!(process.usage().records, 1, "nobody has swept");
}

pub fn every_commit_tells_the_time_of_the_store(bench: &dyn Bench) {
    let (machine, process) = alone(bench);
    for moment in [1_000, 5_000] {
        machine.pass_to(moment);
        let committed = process.submit(vec![Write::Renew, Write::Renew]).unwrap();
        assert_eq!((committed.at, committed.done.len()), (Wall(moment), 2));
    }
}

pub fn the_first_to_end_is_the_first_to_go(bench: &dyn Bench) {
    let machine = FakeMachine::new();
    let process = bounded(bench, &machine, Bounds { records: 4, ..Bounds::default() });
    for number in 1..=4 {
        process.create(number);
    }
    process.end(&ticket(3), None);
    machine.pass(1_000);
    process.end(&ticket(1), None);
    process.create(5);
    process.create(6);
    let there = |number| process.record(&ticket(number)).is_some();
    assert_eq!([1, 2, 3, 4, 5, 6].map(there), [false, true, false, true, true, true]);
    assert_eq!(process.usage().records, 4);
}

pub fn what_is_open_is_never_dropped_for_room(bench: &dyn Bench) {
    let machine = FakeMachine::new();
    let process = bounded(bench, &machine, Bounds { records: 2, ..Bounds::default() });
    process.create(1);
    process.create(2);
    assert_eq!(process.refused(Write::Create(new(3).into())), Refusal::Full("records".into()));

    let bytes = process.usage().bytes + RECORD_OVERHEAD;
    let narrow = bounded(bench, &machine, Bounds { bytes, ..Bounds::default() });
    assert_eq!(narrow.refused(Write::Create(new(3).into())), Refusal::Full("bytes".into()));
    let large = Bytes::from(vec![b'x'; 10_000]);
    let message = Write::Post { ticket: ticket(1), message: Mail::Input(large.clone()) };
    assert_eq!(narrow.refused(message), Refusal::Full("bytes".into()));
    let append =
        Write::Append { stream: Name("s".into()), keep: Duration::from_secs(9), events: vec![(1, large)] };
    assert_eq!(narrow.refused(append), Refusal::Full("bytes".into()));
    process.end(&ticket(1), None);
    narrow.create(3);
    assert_eq!(narrow.record(&ticket(1)), None);
}

pub fn a_result_is_taken_even_where_there_is_no_room(bench: &dyn Bench) {
    let machine = FakeMachine::new();
    let process = bounded(bench, &machine, Bounds { bytes: 2_000, ..Bounds::default() });
    let (one, two) = (process.create(1), process.create(2));
    process.end(&one, None);
    machine.pass(1_000);
    let large = Bytes::from(vec![b'x'; 10_000]);
    let answer = Some(Answer::Result(large.clone()));
    let change = Change { answer, ..Change::to(State::Completed, &process.head(&two)) };
    assert_eq!(process.write(Write::Change(change.into())), Done::Written(2));
    assert_eq!(process.record(&one), None, "what ended earlier made room, as far as it could");
    assert_eq!(process.record(&two).unwrap().answer, Some(Answer::Result(large)));
}

pub fn bytes_are_counted_down_to_nothing(bench: &dyn Bench) {
    let (machine, process) = alone(bench);
    assert_eq!(process.usage(), Usage::default());
    let (one, two) = (process.create(1), process.create(2));
    let weight = RECORD_OVERHEAD + (new(1).body.len() + new(1).request.len()) as u64;
    assert_eq!(process.usage(), Usage { records: 2, bytes: 2 * weight });
    process.write(Write::Post { ticket: one.clone(), message: Mail::Input(Bytes::from_static(b"12345")) });
    process.write(Write::Post { ticket: one.clone(), message: Mail::Cancel });
    assert_eq!(process.usage().bytes, 2 * weight + 64 + 5 + 64);
    process.write(Write::Collect);
    process.write(Write::Calls(vec![CallNote {
        server: "s".into(),
        method: "m".into(),
        tool: "t".into(),
        outcome: "o".into(),
        began: Wall(1),
        took_ms: 1,
        asked: 1,
        answered: 1,
    }]));
    process.end(&one, Some(1_000));
    process.end(&two, Some(1_000));
    assert_eq!(process.usage().bytes, 2 * (weight + 2));
    machine.pass(1_000);
    process.write(Write::Expire);
    assert_eq!(process.usage(), Usage::default());
}
