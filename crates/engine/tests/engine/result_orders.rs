//! `tasks/result`, in every order of what it waits for: the end of the call, the commit of its record, the commit of its
//! end, and the request itself. Whoever waits gets the answer once, and not before its end is stored.

use outlast_testkit::script::World;

const TICKET: &str = "0101010101010101010101010101010101010101010101010101010101010101";

/// Plays lines in turn; gives what came out of each.
fn play(world: &mut World, lines: &[&str]) -> Vec<Vec<String>> {
    lines.iter().map(|line| world.input(&line.replace("T1", TICKET))).collect()
}

/// All orders of so many things.
fn orders(count: usize) -> Vec<Vec<usize>> {
    if count == 0 {
        return vec![Vec::new()];
    }
    let insert = |order: Vec<usize>| {
        (0..count).map(move |at| {
            let mut order = order.clone();
            order.insert(at, count - 1);
            order
        })
    };
    orders(count - 1).into_iter().flat_map(insert).collect()
}

/// A line, and the steps that come before it in any case.
type Step<'a> = (&'a str, &'a [usize]);

/// Plays `steps` in every order that is possible: the request for the result (the last step) is answered once, and with
/// the later of two steps: the request, and the commit of the end (the step before). Gives the number of orders.
fn in_every_order(before: &[&str], steps: &[Step<'_>]) -> usize {
    let (request, commit) = (steps.len() - 1, steps.len() - 2);
    let mut played = 0;
    for order in orders(steps.len()) {
        let place = |step: usize| order.iter().position(|at| *at == step);
        let possible =
            |(at, (_, needs)): (usize, &Step<'_>)| needs.iter().all(|step| place(*step) < place(at));
        if !steps.iter().enumerate().all(possible) {
            continue;
        }
        played += 1;
        let mut world = World::default();
        play(&mut world, before);
        let lines: Vec<&str> = order.iter().map(|at| steps[*at].0).collect();
        let outputs = play(&mut world, &lines);
        let answered = |at: usize| outputs[at].iter().filter(|line| line.contains(ANSWER)).map(move |_| at);
        let answered: Vec<Option<usize>> = (0..outputs.len()).flat_map(answered).map(Some).collect();
        assert_eq!(answered, [place(request).max(place(commit))], "{lines:?}: {outputs:?}");
        world.engine.check_invariants().unwrap();
    }
    played
}

const BEGIN: [&str; 3] = [
    "set tasks",
    r#"> {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}"#,
    r#"< {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}}"#,
];

const RESULT: &str = r#"> {"jsonrpc":"2.0","id":9,"method":"tasks/result","params":{"taskId":"T1"}}"#;
const ANSWER: &str =
    r#"<< {"jsonrpc":"2.0","id":9,"result":{"_meta":{"io.modelcontextprotocol/related-task""#;

/// A call that is a task from its beginning: it is sent once its record is stored.
#[test]
fn a_task_that_was_asked_for_is_waited_for() {
    let call = r#"> {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x","task":{}}}"#;
    let before = [&BEGIN[..], &[call, "stored 1"]].concat();
    let end = r#"< {"jsonrpc":"2.0","id":2,"result":{"content":[]}}"#;
    assert_eq!(in_every_order(&before, &[(end, &[]), ("stored 2", &[0]), (RESULT, &[])]), 3);
    // An end that cannot be stored is told all the same.
    assert_eq!(in_every_order(&before, &[(end, &[]), ("not-stored 2", &[0]), (RESULT, &[])]), 3);
}

/// A task that joins a call that runs: the call may end before the record of the task is stored.
#[test]
fn a_task_whose_call_ends_before_it_is_stored_is_waited_for() {
    let plain = r#"> {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"pay","_meta":{"dev.outlast/idempotencyKey":"k"}}}"#;
    let task = r#"> {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"pay","task":{},"_meta":{"dev.outlast/idempotencyKey":"k"}}}"#;
    let before = [&BEGIN[..], &[plain, task]].concat();
    let end = r#"< {"jsonrpc":"2.0","id":2,"result":{"content":[]}}"#;
    let steps = [("stored 2", &[][..]), (end, &[]), ("stored 3", &[0, 1]), (RESULT, &[0])];
    assert_eq!(in_every_order(&before, &steps), 5);
}
