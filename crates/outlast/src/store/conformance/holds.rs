//! Calls that wait for a person.

use super::*;
use outlast_engine::hold::{Decision, Leave, NewHold, Scope, Standing, Verdict};

fn call(arguments: &str) -> NewHold {
    NewHold {
        key: format!("key of {arguments}").into(),
        principal: "stdio".into(),
        server: "files#1".into(),
        name: "files".into(),
        tool: "delete".into(),
        arguments: arguments.into(),
        client: "editor".into(),
        session: "session-1".into(),
        keep: Duration::from_secs(120),
    }
}

fn verdict(yes: bool, scope: Scope) -> Verdict {
    Verdict { yes, scope, reason: "why".into(), place: "command line".into(), by: "ann".into() }
}

fn ask(process: &Process, arguments: &str) -> Standing {
    match process.write(Write::Hold(call(arguments).into())) {
        Done::Held(standing) => standing,
        other => panic!("{other:?}"),
    }
}

fn asked(process: &Process, arguments: &str) -> u64 {
    match ask(process, arguments) {
        Standing::Asked(number) => number,
        granted => panic!("{granted:?}"),
    }
}

fn decide(process: &Process, hold: u64, yes: bool, scope: Scope) -> Option<bool> {
    decided(process.write(Write::Decide { hold, verdict: verdict(yes, scope).into() }))
}

fn ask_after(process: &Process, hold: u64, leave: Leave) -> Option<bool> {
    decided(process.write(Write::AskAfter { hold, leave }))
}

fn decided(done: Done) -> Option<bool> {
    match done {
        Done::Decided(decision) => decision.map(|decision: Box<Decision>| decision.verdict.yes),
        other => panic!("{other:?}"),
    }
}

fn looked(process: &Process, hold: u64) -> bool {
    process.load(Query::Decided(vec![hold])) == Ok(Found::Decided(vec![hold]))
}

fn open(process: &Process) -> Vec<u64> {
    match process.load(Query::Holds) {
        Ok(Found::Holds(holds)) => holds.into_iter().map(|hold| hold.number).collect(),
        other => panic!("{other:?}"),
    }
}

pub fn a_yes_is_used_once(bench: &dyn Bench) {
    let (machine, process) = alone(bench);
    let other = another(bench, &machine);
    let hold = asked(&process, "{}");
    assert_eq!(open(&other), [hold]);
    assert!(!looked(&process, hold));
    assert_eq!(ask_after(&process, hold, Leave::Waits), None);
    assert_eq!(decide(&other, hold, true, Scope::Once), Some(true));
    assert!(looked(&process, hold));
    assert_eq!(ask_after(&other, hold, Leave::Waits), None, "it is another process's call");
    assert_eq!(ask_after(&process, hold, Leave::Waits), Some(true));
    assert_eq!(ask_after(&process, hold, Leave::Waits), None);
    assert_ne!(asked(&process, "{}"), hold, "the next call is asked about again");
}

pub fn the_first_word_counts_and_every_word_is_in_the_audit_log(bench: &dyn Bench) {
    let (_, process) = alone(bench);
    let hold = asked(&process, r#"{"path":"/"}"#);
    assert_eq!(decide(&process, hold, false, Scope::Once), Some(false));
    assert_eq!(decide(&process, hold, true, Scope::Once), Some(false));
    assert_eq!(decide(&process, hold + 99, true, Scope::Once), None);
    let Ok(Found::Audit(log)) = process.load(Query::Audit { limit: 9 }) else { panic!() };
    let [line] = &log[..] else { panic!("{log:?}") };
    assert_eq!(
        (line.hold, &*line.tool, &*line.server, &*line.arguments),
        (hold, "delete", "files", r#"{"path":"/"}"#)
    );
    assert_eq!((line.decision.verdict.clone(), line.decision.at), (verdict(false, Scope::Once), Wall(1_000)));
    assert_eq!(ask_after(&process, hold, Leave::Waits), Some(false));
}

pub fn a_question_outlives_the_process_that_asked(bench: &dyn Bench) {
    let (machine, first) = alone(bench);
    let hold = asked(&first, "{}");
    let next = another(bench, &machine);
    assert_ne!(asked(&next, "{}"), hold, "the first process lives");
    machine.kill(&first);
    decide(&next, hold, true, Scope::Once);
    assert_eq!(ask(&next, "{}"), Standing::Granted(hold));
    // A client that leaves early may come back.
    let early = asked(&next, "early");
    assert_eq!(ask_after(&next, early, Leave::Open(Duration::from_secs(600))), None);
    machine.pass(599_000);
    assert_eq!(decide(&next, early, true, Scope::Once), Some(true));
    assert_eq!(ask(&next, "early"), Standing::Granted(early));
    // One that is given up is gone.
    let gone = asked(&next, "gone");
    assert_eq!(ask_after(&next, gone, Leave::Gone), None);
    assert_eq!(decide(&next, gone, true, Scope::Once), None);
}

pub fn a_yes_for_a_while_is_good_until_it_runs_out(bench: &dyn Bench) {
    let (machine, process) = alone(bench);
    let hold = asked(&process, "one");
    decide(&process, hold, true, Scope::Minutes);
    assert_eq!(ask_after(&process, hold, Leave::Waits), Some(true));
    assert_eq!(ask(&process, "two"), Standing::Granted(hold));
    assert_eq!(process.write(Write::Expire), Done::Removed(0));
    assert_eq!(open(&process), [hold], "it is shown as long as it is good");
    machine.pass(600_000);
    assert!(matches!(ask(&process, "two"), Standing::Asked(_)));
    assert_eq!(process.write(Write::Expire), Done::Removed(1));
    let Ok(Found::Audit(log)) = process.load(Query::Audit { limit: 9 }) else { panic!() };
    assert_eq!(log.len(), 1, "what was said stays");
}

pub fn questions_and_the_audit_log_have_bounds(bench: &dyn Bench) {
    let machine = FakeMachine::new();
    let process = bounded(bench, &machine, Bounds { holds: 2, audit: 2, ..Bounds::default() });
    let [one, _two] = ["1", "2"].map(|arguments| asked(&process, arguments));
    assert_eq!(process.refused(Write::Hold(call("3").into())), Refusal::Full("holds".into()));
    decide(&process, one, false, Scope::Once);
    let three = asked(&process, "3");
    decide(&process, three, false, Scope::Once);
    let four = asked(&process, "4");
    decide(&process, four, false, Scope::Once);
    let Ok(Found::Audit(log)) = process.load(Query::Audit { limit: 9 }) else { panic!() };
    assert_eq!(log.iter().map(|line| line.hold).collect::<Vec<_>>(), [four, three]);
}
