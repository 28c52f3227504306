//! The mailbox.

use super::*;
use outlast_engine::store::Mail;

fn collect(process: &Process) -> Vec<(Ticket, Mail)> {
    match process.write(Write::Collect) {
        Done::Mail(messages) => messages,
        other => panic!("{other:?}"),
    }
}

fn post(ticket: &Ticket, message: &Mail) -> Write {
    Write::Post { ticket: ticket.clone(), message: message.clone() }
}

pub fn a_message_reaches_the_owner_once(bench: &dyn Bench) {
    let (machine, owner) = alone(bench);
    let other = another(bench, &machine);
    let (one, two) = (owner.create(1), owner.create(2));
    other.create(3);
    let messages = [
        (two.clone(), Mail::Input(Bytes::from_static(b"{\"a\":\xff}"))),
        (one.clone(), Mail::Cancel),
        (two, Mail::Wake),
    ];
    assert_eq!(owner.load(Query::Mail), Ok(Found::Mail(false)));
    for (ticket, message) in &messages {
        other.write(post(ticket, message));
    }
    assert_eq!(other.load(Query::Mail), Ok(Found::Mail(false)), "it is not for us");
    assert_eq!(collect(&other), []);
    assert_eq!(owner.load(Query::Mail), Ok(Found::Mail(true)));
    assert_eq!(collect(&owner), messages);
    assert_eq!(collect(&owner), []);
    assert_eq!(owner.load(Query::Mail), Ok(Found::Mail(false)));
}

pub fn messages_wait_for_a_new_owner(bench: &dyn Bench) {
    let (machine, owner) = alone(bench);
    let ticket = owner.create(1);
    let heir = another(bench, &machine);
    heir.write(post(&ticket, &Mail::Cancel));
    machine.kill(&owner);
    heir.write(Write::Claim { server: "files".into() });
    assert_eq!(collect(&owner), [], "it was taken for dead");
    assert_eq!(collect(&heir), [(ticket, Mail::Cancel)]);
}

pub fn messages_end_with_their_call(bench: &dyn Bench) {
    let (_, owner) = alone(bench);
    let ticket = owner.create(1);
    owner.write(post(&ticket, &Mail::Cancel));
    let before = owner.usage().bytes;
    owner.end(&ticket, None);
    assert_eq!(owner.load(Query::Mail), Ok(Found::Mail(false)));
    assert_eq!(collect(&owner), []);
    assert!(owner.usage().bytes < before);
}

pub fn nobody_writes_to_what_is_not_open(bench: &dyn Bench) {
    let (_, owner) = alone(bench);
    assert_eq!(owner.refused(post(&ticket(1), &Mail::Wake)), Refusal::Unknown);
    let ticket = owner.create(1);
    owner.end(&ticket, None);
    assert_eq!(owner.refused(post(&ticket, &Mail::Wake)), Refusal::Ended(State::Completed));
}

pub fn a_mailbox_has_a_bound(bench: &dyn Bench) {
    let machine = FakeMachine::new();
    let owner = bounded(bench, &machine, Bounds { mailbox: 2, ..Bounds::default() });
    let (one, two) = (owner.create(1), owner.create(2));
    owner.write(post(&one, &Mail::Wake));
    owner.write(post(&one, &Mail::Wake));
    assert_eq!(owner.refused(post(&one, &Mail::Wake)), Refusal::Full("mailbox messages".into()));
    owner.write(post(&two, &Mail::Wake));
    assert_eq!(collect(&owner).len(), 3);
    owner.write(post(&one, &Mail::Wake));
}
