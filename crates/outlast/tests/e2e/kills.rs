//! `kill -9` of outlast at any moment: every ticket that a client was given still resolves, and to the same.

use crate::world::connect;
use nix::sys::signal::Signal;
use outlast_testkit::peer::{Line, Peer};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use tempfile::TempDir;

const KILLS: u64 = 200;

/// Calls that are begun before each of them; every third hangs.
const CALLS: u64 = 9;

/// What a client knows of a task: the number that its call echoes, and its answer, if it saw one.
struct Known {
    number: u64,
    seen: Option<Value>,
}

fn begin(client: &mut Peer, number: u64) -> Value {
    let tool = if number % 3 == 2 { "hang" } else { "echo" };
    client.request("tools/call", &json!({"name": tool, "arguments": {"n": number}, "task": {}}))
}

fn ticket(answer: &Value) -> Option<String> {
    Some(answer["result"]["task"]["taskId"].as_str()?.to_owned())
}

/// What was answered, without the id it was asked under.
fn said(answer: &Value) -> Value {
    answer.get("result").or_else(|| answer.get("error")).cloned().unwrap_or_default()
}

/// One life of outlast: calls, some of whose answers are awaited, and the end in the midst of it.
fn live_and_die(flags: &[&str], life: u64, known: &mut BTreeMap<String, Known>) {
    let mut client = connect(flags, &[]);
    let begun: Vec<(Value, u64)> = (0..CALLS)
        .map(|call| life * CALLS + call)
        .map(|number| (begin(&mut client, number), number))
        .collect();
    let mut asked: Vec<(Value, String)> = Vec::new();
    // How far it gets differs from life to life.
    let patience = (life * 7 % (CALLS + 1)) as usize;
    for (id, number) in &begun[..patience] {
        let answer = client.answer(id);
        let Some(ticket) = ticket(&answer) else { panic!("no task: {answer}") };
        asked.push((client.request("tasks/result", &json!({"taskId": ticket})), ticket.clone()));
        known.insert(ticket, Known { number: *number, seen: None });
    }
    if life % 2 == 1 {
        let quick = asked.iter().filter(|(_, ticket)| known[ticket].number % 3 != 2).collect::<Vec<_>>();
        if let Some((id, ticket)) = quick.last() {
            let answer = said(&client.answer(id));
            known.get_mut(ticket).expect("known").seen = Some(answer);
        }
    }
    client.signal(Signal::SIGKILL);
    // What was on its way counts too.
    for answer in client.rest().iter().map(Line::json) {
        if let (Some(ticket), Some((_, number))) =
            (ticket(&answer), begun.iter().find(|(id, _)| *id == answer["id"]))
        {
            known.entry(ticket).or_insert(Known { number: *number, seen: None });
        } else if let Some((_, ticket)) = asked.iter().find(|(id, _)| *id == answer["id"]) {
            known.get_mut(ticket).expect("known").seen = Some(said(&answer));
        }
    }
}

#[test]
fn every_ticket_resolves_after_two_hundred_kills() {
    let folder = TempDir::new().expect("a folder");
    let flags = ["--tasks", "--log", "error", "--state", folder.path().to_str().expect("text")];
    let mut known = BTreeMap::new();
    for life in 0..KILLS {
        live_and_die(&flags, life, &mut known);
    }
    let mut client = connect(&flags, &[]);
    let (mut finished, mut interrupted) = (0, 0);
    for (ticket, known) in &known {
        let id = client.request("tasks/result", &json!({"taskId": ticket}));
        let answer = client.answer(&id);
        match (&known.seen, answer.get("result")) {
            (Some(seen), _) => assert_eq!(said(&answer), *seen, "the answer to {ticket} has changed"),
            (None, Some(result)) => {
                assert_eq!(result["structuredContent"], json!({"n": known.number}), "{answer}");
                finished += 1;
            }
            (None, None) => {
                assert_eq!(answer["error"]["data"]["outlast"]["kind"], "server-gone", "{answer}");
                interrupted += 1;
            }
        }
    }
    let seen = known.values().filter(|known| known.seen.is_some()).count();
    assert!(known.len() > 500 && seen > 50, "{} tickets, {seen} answers seen", known.len());
    assert!(finished > 50 && interrupted > 50, "{finished} had finished, {interrupted} had not");
}
