//! Claims: what happens to the records of a process that is gone.

use super::*;
use outlast_engine::limits::{LEASE, RENEW};

const SECOND: u64 = 1_000;

fn claim(process: &Process) -> Vec<Ticket> {
    match process.write(Write::Claim { server: "files".into() }) {
        Done::Claimed(heads) => heads.into_iter().map(|head| head.ticket).collect(),
        other => panic!("{other:?}"),
    }
}

pub fn a_silent_owner_loses_its_records(bench: &dyn Bench) {
    let (machine, owner) = alone(bench);
    let (one, two) = (owner.create(1), owner.create(2));
    let ended = owner.create(3);
    owner.end(&ended, None);
    let mut elsewhere = new(4);
    elsewhere.origin.server = "mail".into();
    owner.write(Write::Create(elsewhere.into()));
    let heir = another(bench, &machine);
    for _ in 0..6 {
        machine.pass(RENEW.as_millis() as u64);
        owner.write(Write::Renew);
        assert_eq!(claim(&heir), []);
    }
    machine.pass(LEASE.as_millis() as u64 - 1);
    assert_eq!(claim(&heir), []);
    machine.pass(1);
    let before = owner.head(&one);
    let Done::Claimed(heads) = heir.write(Write::Claim { server: "files".into() }) else { panic!() };
    assert_eq!(heads.iter().map(|head| head.ticket.clone()).collect::<Vec<_>>(), [one.clone(), two]);
    assert_eq!(heads[0], heir.head(&one), "what a claim gives is what is stored");
    let wanted =
        Head { epoch: 2, revision: before.revision + 1, owner: heads[0].owner.clone(), ..before.clone() };
    assert_eq!(heads[0], wanted, "nothing else has changed");
    assert_ne!(heads[0].owner, before.owner);
    assert_eq!(claim(&owner), [], "the heir lives");
}

pub fn a_dead_owner_loses_its_records_at_once(bench: &dyn Bench) {
    let (machine, owner) = alone(bench);
    let ticket = owner.create(1);
    let heir = another(bench, &machine);
    assert_eq!(claim(&heir), []);
    machine.kill(&owner);
    assert_eq!(claim(&heir), [ticket]);
}

pub fn a_late_owner_writes_nothing(bench: &dyn Bench) {
    let (machine, owner) = alone(bench);
    let ticket = owner.create(1);
    let old = owner.head(&ticket);
    machine.pass(20 * SECOND);
    let heir = another(bench, &machine);
    assert_eq!(claim(&heir), vec![ticket.clone()]);
    let late = Change::to(State::Cancelled, &old);
    assert_eq!(owner.refused(Write::Change(late.clone().into())), Refusal::Fenced);
    let forged = Change { epoch: 2, ..late };
    assert_eq!(owner.refused(Write::Change(forged.into())), Refusal::Fenced, "the epoch alone is not enough");

    machine.pass(20 * SECOND);
    assert_eq!(claim(&owner), vec![ticket.clone()], "and back again");
    assert_eq!(owner.head(&ticket).epoch, 3);
    owner.end(&ticket, None);
}

pub fn a_record_is_claimed_by_one(bench: &dyn Bench) {
    let (machine, owner) = alone(bench);
    let tickets: Vec<Ticket> = (0..100).map(|number| owner.create(number)).collect();
    machine.kill(&owner);
    let heirs: Vec<Process> = (0..4).map(|_| another(bench, &machine)).collect();
    let (sender, receiver) = channel();
    for heir in &heirs {
        let sender = sender.clone();
        let reply = move |stored| sender.send(stored).unwrap();
        heir.store.submit(vec![Write::Claim { server: "files".into() }], Box::new(reply));
    }
    drop(sender);
    let mut claimed = Vec::new();
    for stored in receiver {
        let Done::Claimed(heads) = Stored::unwrap(stored).done.remove(0) else { panic!() };
        claimed.extend(heads.into_iter().map(|head| head.ticket));
    }
    claimed.sort_by(|a, b| a.as_str().cmp(b.as_str()));
    assert_eq!(claimed, tickets);
}
