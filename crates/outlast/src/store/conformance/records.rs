//! Records: byte for byte, all or nothing, once.

use super::*;
use outlast_engine::limits;
use outlast_engine::store::{Mail, Name};

fn all(principal: Option<&str>, server: Option<&str>, before: Option<u64>, limit: usize) -> Query {
    Query::Heads { principal: principal.map(Into::into), server: server.map(Into::into), before, limit }
}

pub fn a_record_is_read_back_byte_for_byte(bench: &dyn Bench) {
    let (machine, process) = alone(bench);
    let odd = Bytes::from_static(b"{\"a\": 1.0,\n \"b\":\"\xe9\x00\"}");
    let origin = Origin { tool: "".into(), key: Some("k\u{0}é".into()), ..new(1).origin };
    let made = New { origin: origin.clone(), request: odd.clone(), faces: Faces::RESUME, ..new(1) };
    assert_eq!(process.write(Write::Create(made.clone().into())), Done::Written(1));
    let record = process.record(&ticket(1)).unwrap();
    assert_eq!((&record.request, &record.answer, &record.head.body), (&odd, &None, &made.body));
    assert_eq!(
        (record.head.origin.clone(), record.head.state, record.head.faces),
        (origin, State::Working, Faces::RESUME)
    );
    assert_eq!(
        (record.head.created, record.head.updated, record.head.expires),
        (Wall(900), Wall(1_000), None)
    );
    assert_eq!((record.head.revision, record.head.epoch), (1, 1));

    let body = Body { status_message: Some("…".into()), ..Body::default() }.encode();
    let change = Change {
        faces: Faces::HAND_OFF,
        keep: Some(Duration::from_secs(3)),
        body: Some(body.clone()),
        answer: Some(Answer::Error(odd.clone())),
        ..Change::to(State::Failed, &record.head)
    };
    machine.pass_to(2_000);
    assert_eq!(process.write(Write::Change(change.into())), Done::Written(2));
    let ended = process.record(&ticket(1)).unwrap();
    assert_eq!(
        (ended.answer, ended.request, &ended.head.body),
        (Some(Answer::Error(odd.clone())), odd, &body)
    );
    assert_eq!(
        (ended.head.state, ended.head.updated, ended.head.expires),
        (State::Failed, Wall(2_000), Some(Wall(5_000)))
    );
    assert_eq!(ended.head.faces, Faces::RESUME.with(Faces::HAND_OFF));
    assert_eq!(process.record(&ticket(2)), None);
}

pub fn a_ticket_is_taken_once(bench: &dyn Bench) {
    let (machine, process) = alone(bench);
    process.create(1);
    assert_eq!(process.refused(Write::Create(new(1).into())), Refusal::Taken);
    assert_eq!(another(bench, &machine).refused(Write::Create(new(1).into())), Refusal::Taken);
}

pub fn every_change_raises_the_revision_and_the_last_one_is_final(bench: &dyn Bench) {
    let (_, process) = alone(bench);
    let ticket = process.create(1);
    let to = |state| Change::to(state, &process.head(&ticket));
    assert_eq!(process.write(Write::Change(to(State::InputRequired).into())), Done::Written(2));
    assert_eq!(process.write(Write::Change(to(State::Working).into())), Done::Written(3));
    assert_eq!(process.refused(Write::Change(to(State::Completed).into())), Refusal::Incomplete);
    assert_eq!(process.write(Write::Change(to(State::Cancelled).into())), Done::Written(4));
    for state in State::ALL {
        assert_eq!(process.refused(Write::Change(to(state).into())), Refusal::Ended(State::Cancelled));
    }
    assert_eq!(process.head(&ticket).revision, 4);
    let unknown = Change { ticket: super::ticket(9), ..to(State::Working) };
    assert_eq!(process.refused(Write::Change(unknown.into())), Refusal::Unknown);
}

pub fn a_submission_is_written_wholly_or_not_at_all(bench: &dyn Bench) {
    let (_, process) = alone(bench);
    let (open, ended) = (process.create(1), process.create(2));
    process.end(&ended, Some(10));
    process.write(Write::Post { ticket: open.clone(), message: Mail::Wake });
    let stream = Name("s".into());
    let append = |number| Write::Append {
        stream: stream.clone(),
        keep: Duration::from_secs(9),
        events: vec![(number, Bytes::new())],
    };
    process.write(append(1));
    let before = (process.usage(), process.record(&open), process.record(&ended));

    let change = Change::to(State::Cancelled, &process.head(&open));
    let writes = vec![
        Write::Create(new(3).into()),
        Write::Change(change.into()),
        Write::Remove(ended.clone()),
        append(2),
        Write::Forget { stream: stream.clone(), through: 1 },
        Write::Expire,
        Write::Create(new(3).into()),
    ];
    assert_eq!(process.submit(writes), Err(Trouble::Refused { at: 6, why: Refusal::Taken }));
    assert_eq!((process.usage(), process.record(&open), process.record(&ended)), before);
    assert_eq!(process.record(&ticket(3)), None);
    let events = process.load(Query::Events { stream, after: 0 });
    assert_eq!(events, Ok(Found::Events { last: 1, events: vec![(1, Bytes::new())], lives: false }));
    assert_eq!(process.write(Write::Collect), Done::Mail(vec![(open, Mail::Wake)]));
    assert_eq!(process.submit(Vec::new()).map(|committed| committed.done), Ok(Vec::new()));
}

pub fn submissions_are_written_in_their_order(bench: &dyn Bench) {
    let (_, process) = alone(bench);
    let ticket = process.create(1);
    let head = process.head(&ticket);
    let (sender, receiver) = channel::<(u64, Stored)>();
    for number in 2..1_500_u64 {
        let sender = sender.clone();
        let change = Change::to(State::Working, &head);
        let reply = move |stored| sender.send((number, stored)).unwrap();
        process.store.submit(vec![Write::Change(change.into())], Box::new(reply));
    }
    drop(sender);
    for (wanted, (number, stored)) in (2..).zip(receiver) {
        assert_eq!((number, stored.unwrap().done), (wanted, vec![Done::Written(wanted)]));
    }
    assert_eq!(process.head(&ticket).revision, 1_499);
}

pub fn a_key_is_held_while_its_call_is_open(bench: &dyn Bench) {
    let (machine, process) = alone(bench);
    let keyed = |number, change: fn(&mut Origin)| {
        let mut origin = Origin { key: Some("k".into()), ..new(number).origin };
        change(&mut origin);
        Write::Create(New { origin, ..new(number) }.into())
    };
    let find = || {
        let query = Query::Key { principal: "ann".into(), server: "files".into(), key: "k".into() };
        match process.load(query) {
            Ok(Found::Record(record)) => record.map(|record| record.head.ticket),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(find(), None);
    process.write(keyed(1, |_| ()));
    assert_eq!(process.refused(keyed(2, |_| ())), Refusal::KeyTaken(ticket(1)));
    assert_eq!(
        process.refused(keyed(2, |origin| origin.tool = "other".into())),
        Refusal::KeyTaken(ticket(1))
    );
    process.write(keyed(3, |origin| origin.principal = "bob".into()));
    process.write(keyed(4, |origin| origin.server = "mail".into()));
    assert_eq!(find(), Some(ticket(1)));

    process.end(&ticket(1), None);
    assert_eq!(find(), Some(ticket(1)), "it has ended, and its answer is there");
    assert_eq!(process.refused(keyed(5, |_| ())), Refusal::KeyTaken(ticket(1)), "its maker does not know");
    let knowing = |number, other: u8| {
        let Write::Create(new) = keyed(number, |_| ()) else { panic!("a record") };
        Write::Create(New { seen: process.head(&ticket(other)).number, ..*new }.into())
    };
    process.write(knowing(5, 1));
    assert_eq!(find(), Some(ticket(5)));
    assert_eq!(process.refused(knowing(6, 5)), Refusal::KeyTaken(ticket(5)), "it is open");
    process.end(&ticket(5), None);
    assert_eq!(find(), Some(ticket(5)), "the newest of those that have ended");
    assert_eq!(process.refused(knowing(6, 1)), Refusal::KeyTaken(ticket(5)), "one came since then");
    process.write(knowing(6, 5));
    // What has failed, or is over, is no answer to anybody.
    process.write(Write::Change(Change::to(State::Cancelled, &process.head(&ticket(6))).into()));
    process.write(knowing(7, 5));
    process.end(&ticket(7), Some(50));
    assert_eq!(process.refused(knowing(8, 5)), Refusal::KeyTaken(ticket(7)));
    machine.pass(50);
    process.write(knowing(8, 5));
}

pub fn lists_go_on_page_by_page(bench: &dyn Bench) {
    let (_, process) = alone(bench);
    for number in 1..=6 {
        let mut made = new(number);
        made.origin.principal = if number % 2 == 0 { "bob" } else { "ann" }.into();
        made.origin.server = if number == 6 { "mail" } else { "files" }.into();
        process.write(Write::Create(made.into()));
    }
    let tickets = |query| process.heads(query).into_iter().map(|head| head.ticket).collect::<Vec<_>>();
    assert_eq!(tickets(all(None, None, None, 2)), [ticket(6), ticket(5)]);
    let last = process.heads(all(None, None, None, 2))[1].number;
    assert_eq!(tickets(all(None, None, Some(last), 100)), [4, 3, 2, 1].map(ticket));
    assert_eq!(tickets(all(Some("bob"), None, None, 100)), [6, 4, 2].map(ticket));
    assert_eq!(tickets(all(Some("bob"), Some("files"), Some(last), 1)), [ticket(4)]);
    assert_eq!(tickets(all(Some("eve"), None, None, 100)), []);
    assert_eq!(process.heads(all(None, None, None, 1))[0], process.head(&ticket(6)));
}

pub fn a_page_has_a_bound(bench: &dyn Bench) {
    let (_, process) = alone(bench);
    for number in 0..=limits::PAGE {
        let ticket = Ticket::parse(&format!("{number:064x}")).unwrap();
        process.write(Write::Create(New { ticket, ..new(1) }.into()));
    }
    assert_eq!(process.heads(all(None, None, None, 10 * limits::PAGE)).len(), limits::PAGE);
}

pub fn only_what_changed_is_told(bench: &dyn Bench) {
    let (_, process) = alone(bench);
    let (one, two) = (process.create(1), process.create(2));
    let known = vec![(one.clone(), 1), (two.clone(), 1), (ticket(9), 0)];
    assert_eq!(process.heads(Query::Changed(known.clone())), []);
    process.end(&two, None);
    assert_eq!(process.heads(Query::Changed(known)), [process.head(&two)]);
    assert_eq!(process.heads(Query::Changed(vec![(one.clone(), 0)])), [process.head(&one)]);
}

pub fn only_what_has_ended_is_removed(bench: &dyn Bench) {
    let (_, process) = alone(bench);
    let ticket = process.create(1);
    assert_eq!(process.refused(Write::Remove(ticket.clone())), Refusal::Open);
    process.end(&ticket, None);
    assert_eq!(process.write(Write::Remove(ticket.clone())), Done::Removed(1));
    assert_eq!(process.write(Write::Remove(ticket.clone())), Done::Removed(0));
    assert_eq!(process.record(&ticket), None);
}
