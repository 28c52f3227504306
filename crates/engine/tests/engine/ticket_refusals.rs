//! Whoever holds a ticket that is not good for anything learns nothing from how it is refused: the answer is the
//! same to the byte, and so is what is done for it.

use outlast_testkit::script::World;

/// What a refusal looks like from outside, and what was done for it.
#[derive(Debug, PartialEq, Eq)]
struct Refusal {
    /// The message that comes.
    said: String,
    /// The kind of each action.
    done: Vec<String>,
}

/// `post N principal=… session=…`, with what makes a client.
fn session(exchange: u32, principal: &str, handshake: &str) -> String {
    format!(
        r#"post {exchange} principal={principal} {{"jsonrpc":"2.0","id":1,"method":"initialize","params":{{"protocolVersion":"2025-11-25","capabilities":{{"resumableRequests":{{}}}},"clientInfo":{{"name":"{handshake}","version":"1"}}}}}}
        started
        < {{"jsonrpc":"2.0","id":{exchange},"result":{{"protocolVersion":"2025-11-25","capabilities":{{"tools":{{}}}}}}}}"#
    )
}

/// Plays what leads there, then asks; `id` stands for the id of the request in what is said.
fn refused(world: &[&str], ask: &str, id: &str) -> Refusal {
    let mut played = World::default();
    for line in world.iter().flat_map(|part| part.lines()).map(str::trim).filter(|line| !line.is_empty()) {
        played.input(line);
    }
    played.trace.clear();
    let out = played.input(ask);
    let answer = out.iter().find_map(|line| line.split_once("data: {")).unwrap_or_else(|| panic!("{out:?}"));
    let said = answer.1.replacen(&format!(r#""id":{id},"#), r#""id":ID,"#, 1);
    assert!(said.contains(r#""id":ID,"error":"#), "not refused: {said}");
    assert_eq!(played.engine.check_invariants(), Ok(()));
    Refusal { said, done: std::mem::take(&mut played.trace) }
}

fn all_alike(refusals: &[(&str, Refusal)]) {
    let (first, alike) = &refusals[0];
    let loads = alike.done.iter().filter(|kind| *kind == "Load").count();
    assert_eq!(loads, 1, "the store is asked once: {:?}", alike.done);
    for (name, refusal) in refusals {
        assert_eq!(refusal, alike, "{name} differs from {first}");
    }
}

/// The ticket of the first call of the first session, and one that nobody has.
fn tickets() -> (String, String) {
    ("03".repeat(32), "aa".repeat(32))
}

#[test]
fn resume_tokens_are_refused_alike() {
    let settings = "set serve\nset resumable\nset resume-wait 60s\nset task-ttl 10s\nset keep-alive off";
    let (ann, bob) = (session(1, "ann", "a"), session(2, "bob", "a"));
    let (good, bad) = tickets();
    let call = r#"post 3 principal=ann session=1 {"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"x"}}
        stored 1
        hang-up 3"#;
    let cancel = r#"post 4 principal=ann session=1 {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}"#;
    let answer = "server-1 < {\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{}}\nstored 2\nwait 11s";
    let base = [settings, &ann, &bob, call];
    let resume = |whose: &str, id: &str, token: &str| {
        format!(
            r#"post 9 {whose} {{"jsonrpc":"2.0","id":{id},"method":"requests/resume","params":{{"resumeToken":"{token}"}}}}"#
        )
    };
    let status = |whose: &str, call: &str, token: &str| {
        format!(
            r#"post 9 {whose} {{"jsonrpc":"2.0","id":9,"method":"requests/getStatus","params":{{"requestId":{call},"resumeToken":"{token}"}}}}"#
        )
    };
    let (ann, bob) = ("principal=ann session=1", "principal=bob session=2");
    for asks_only in [false, true] {
        let ask = |more: &[&str], whose: &str, call: &str, token: &str| {
            let world = [&base[..], more].concat();
            match asks_only {
                true => refused(&world, &status(whose, call, token), "9"),
                false => refused(&world, &resume(whose, call, token), call),
            }
        };
        all_alike(&[
            ("unknown", ask(&[], ann, "7", &bad)),
            ("of another principal", ask(&[], bob, "7", &good)),
            ("of another call", ask(&[], ann, "8", &good)),
            ("cancelled", ask(&[cancel, "stored 2"], ann, "7", &good)),
            ("nobody came back", ask(&["wait 60s", "stored 2"], ann, "7", &good)),
            ("forgotten", ask(&[answer], ann, "7", &good)),
        ]);
    }
}

#[test]
fn tasks_are_refused_alike() {
    let settings = "set serve\nset tasks\nset task-ttl 10s\nset max 30s";
    let (ann, bob) = (session(1, "ann", "a"), session(2, "bob", "a"));
    let (good, bad) = tickets();
    let call = r#"post 3 principal=ann session=1 {"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"x","task":{}}}
        stored 1"#;
    let answer = "server-1 < {\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{}}\nstored 2\nwait 41s";
    let base = [settings, &ann, &bob, call];
    let (ann, bob) = ("principal=ann session=1", "principal=bob session=2");
    for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
        let ask = |more: &[&str], whose: &str, task: &str| {
            let ask = format!(
                r#"post 9 {whose} {{"jsonrpc":"2.0","id":9,"method":"{method}","params":{{"taskId":"{task}"}}}}"#
            );
            refused(&[&base[..], more].concat(), &ask, "9")
        };
        all_alike(&[
            ("unknown", ask(&[], ann, &bad)),
            ("of another principal", ask(&[], bob, &good)),
            ("of another principal, ended", ask(&[answer], bob, &good)),
            ("forgotten", ask(&[answer], ann, &good)),
        ]);
    }
}

#[test]
fn tickets_of_a_hand_off_are_refused_alike() {
    let settings = "set serve\nset task-ttl 10s\nset client-cap 60s";
    let (ann, bob) = (session(1, "ann", "a"), session(2, "bob", "a"));
    let (good, bad) = ("03".repeat(16), "aa".repeat(16));
    let call = r#"post 3 principal=ann session=1 {"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"x"}}
        wait 1m
        stored 1"#;
    let answer = "server-1 < {\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{}}\nstored 2\nwait 11s";
    let base = [settings, &ann, &bob, call];
    let (ann, bob) = ("principal=ann session=1", "principal=bob session=2");
    for tool in ["outlast_wait", "outlast_cancel"] {
        let ask = |more: &[&str], whose: &str, ticket: &str| {
            let ask = format!(
                r#"post 9 {whose} {{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{{"name":"{tool}","arguments":{{"ticket":"{ticket}"}}}}}}"#
            );
            refused(&[&base[..], more].concat(), &ask, "9")
        };
        all_alike(&[
            ("unknown", ask(&[], ann, &bad)),
            ("of another principal", ask(&[], bob, &good)),
            ("of another principal, ended", ask(&[answer], bob, &good)),
            ("forgotten", ask(&[answer], ann, &good)),
        ]);
    }
}
