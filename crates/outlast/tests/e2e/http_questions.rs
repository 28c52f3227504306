//! Questions of a server to HTTP clients, and progress: each finds the client that it is for, and nobody
//! else can answer.

use outlast_testkit::http::caller::Caller;
use serde_json::{Value, json};

use crate::http_world::{Served, Session, serve};

/// A session whose client can be asked.
fn asked(served: &Served) -> Session {
    served.session()
}

/// Begins a call whose tool asks the client; the question, on whichever of the two streams it comes.
fn question(session: &mut Session, method: &str) -> (Caller, Value, Value) {
    let arguments = json!({"id": "\"q\"", "method": method, "params": {"message": "?"}});
    let (mut caller, id) = session.begin_call("ask", &arguments);
    assert_eq!(caller.head().0, 200);
    let question = caller.message_where(|message| message["method"] == method);
    (caller, id, question)
}

fn answer_with(session: &Session, question: &Value, word: &str) -> u16 {
    let answer = json!({"jsonrpc": "2.0", "id": question["id"], "result": {"word": word}});
    session.post(&answer).status
}

/// What the tool says is the whole line of the answer that it got.
fn word_of(answer: &Value) -> Value {
    let line = answer["result"]["structuredContent"].as_str().unwrap_or_else(|| panic!("{answer}"));
    serde_json::from_str::<Value>(line).expect("JSON")["result"]["word"].clone()
}

#[test]
fn a_question_comes_on_the_stream_of_its_call_and_is_answered_by_a_post() {
    let served = serve(&[], &[]);
    let mut session = asked(&served);
    let (mut caller, id, question) = question(&mut session, "elicitation/create");
    assert_eq!(answer_with(&session, &question, "yes"), 202);
    assert_eq!(word_of(&caller.answer(&id)), "yes");
    // A second answer to the same question is nobody's.
    assert_eq!(answer_with(&session, &question, "again"), 202);
    assert_eq!(session.value_of("echo", &json!(1)), json!(1));
}

/// Ids of questions are ours and count up, so they can be guessed; that must not be enough.
#[test]
fn another_session_cannot_answer_a_question() {
    for share in ["session", "all"] {
        let served = serve(&["--share", share], &[]);
        let (mut one, other) = (asked(&served), served.session());
        let (mut caller, id, question) = question(&mut one, "elicitation/create");
        answer_with(&other, &question, "forged");
        assert_eq!(answer_with(&one, &question, "mine"), 202);
        assert_eq!(word_of(&caller.answer(&id)), "mine", "--share {share}");
    }
}

#[test]
fn a_question_is_answered_although_its_client_was_away() {
    let served = serve(&[], &[]);
    let mut session = asked(&served);
    let arguments = json!({"id": "7", "method": "elicitation/create", "params": {}});
    let (mut caller, id) = session.begin_call("ask", &arguments);
    caller.head();
    let first = caller.event().expect("a priming event").id.expect("an id");
    caller.reset();
    let mut again = session.listen(Some(&first));
    assert_eq!(again.head().0, 200);
    let question = again.message_where(|message| message["method"] == "elicitation/create");
    assert_eq!(answer_with(&session, &question, "back"), 202);
    assert_eq!(word_of(&again.answer(&id)), "back");
}

#[test]
fn a_session_that_ends_leaves_no_question_open() {
    let served = serve(&["--share", "all"], &[]);
    let (mut one, mut other) = (asked(&served), served.session());
    let (_caller, _, _) = question(&mut one, "elicitation/create");
    one.delete();
    assert_eq!(other.value_of("echo", &json!(1)), json!(1));
    let history = other.value_of("tell_history", &json!({})).to_string();
    assert!(history.contains(r#"\"id\":\"q\""#), "the server was left waiting: {history}");
}

/// Every client counts its tokens alike.
#[test]
fn progress_goes_to_its_own_session() {
    let served = serve(&["--share", "all"], &[]);
    let mut callers = Vec::new();
    for (client, values) in [json!([1, 2, 3]), json!([10, 20, 30])].iter().enumerate() {
        let mut session = served.session();
        let arguments = json!({"every_ms": 60, "values": values});
        let params = json!({"_meta": {"progressToken": 1}, "name": "progress", "arguments": arguments});
        let (mut caller, id) = session.begin("tools/call", &params);
        caller.head();
        callers.push((client, session, caller, id, values.clone()));
    }
    for (client, _session, mut caller, id, values) in callers {
        let mut seen = Vec::new();
        loop {
            let message = caller.event().expect("progress and an answer").json();
            if message["id"] == id {
                break;
            }
            if message["method"] == "notifications/progress" {
                assert_eq!(message["params"]["progressToken"], 1);
                seen.push(message["params"]["progress"].clone());
            }
        }
        assert_eq!(Value::from(seen), values, "client {client}");
    }
}
