//! How many calls at once, and how often: of a server, of everybody who uses it, of one token.

use crate::gateway::token;
use crate::http_world::{
    ACCEPT, JSON, answer_below, answer_of, listening, modern_call, outlast_alone, serve,
};
use crate::world::{connect, data, fake_server};
use outlast_testkit::peer::wait_until;
use serde_json::{Value, json};
use std::time::Duration;

const SOON: Duration = Duration::from_secs(20);

fn runs(file: &std::path::Path) -> usize {
    std::fs::read_to_string(file).map_or(0, |text| text.lines().count())
}

/// The tool adds a line to the file when it runs, and answers when the gate is there.
#[test]
fn a_call_beyond_the_bound_waits_and_one_beyond_the_queue_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (file, gate) = (folder.path().join("runs"), folder.path().join("gate"));
    let arguments = json!({"file": file, "gate": gate});
    let mut client = connect(&["--max-in-flight", "1", "--queue", "1"], &[]);
    let first = client.begin("count", &arguments);
    assert!(wait_until(SOON, || runs(&file) == 1));
    let second = client.begin("count", &arguments);
    let third = client.call("count", &arguments);
    assert_eq!(
        (&third["error"]["code"], &data(&third)["kind"]),
        (&json!(-31022), &json!("queue-full")),
        "{third}"
    );
    assert_eq!((&data(&third)["retry"], &data(&third)["retryAfterMs"]), (&json!("safe"), &json!(1000)));
    // What makes no work passes.
    let list = client.request("tools/list", &json!({}));
    client.answer(&list);
    assert_eq!(runs(&file), 1, "the second call was sent beside the first");
    std::fs::write(&gate, "").unwrap();
    for id in [first, second] {
        assert_eq!(client.answer(&id)["result"]["structuredContent"], true);
    }
    assert_eq!(runs(&file), 2);
}

#[test]
fn a_call_that_has_waited_too_long_is_refused_and_a_cancel_gives_its_place_away() {
    let mut client = connect(&["--max-in-flight", "1", "--queue-wait", "300ms"], &[]);
    let hangs = client.begin("hang", &json!({}));
    let waited = client.call("echo", &json!({}));
    assert_eq!(data(&waited)["kind"], "queue-wait", "{waited}");
    assert_eq!((&data(&waited)["limitMs"], &data(&waited)["setting"]), (&json!(300), &json!("--queue-wait")));
    assert_eq!(data(&waited)["serverState"], "never-reached");
    client.cancel(&hangs);
    assert_eq!(client.value_of("echo", &json!({"x": 1})), json!({"x": 1}));
}

/// The places that a server's process had are free when it is gone.
#[test]
fn a_crash_gives_its_places_back() {
    let mut client = connect(&["--max-in-flight", "2", "--queue", "0"], &[]);
    client.value_of("tell_pid", &json!({}));
    let hangs = client.begin("hang", &json!({}));
    let dies = client.call("die", &json!({"signal": 9}));
    assert_eq!(data(&dies)["kind"], "server-gone");
    assert_eq!(data(&client.answer(&hangs))["kind"], "server-gone");
    let (one, other) =
        (client.begin("silent", &json!({"ms": 50})), client.begin("silent", &json!({"ms": 50})));
    assert!(client.answer(&one).get("result").is_some() && client.answer(&other).get("result").is_some());
}

/// Over HTTP the refusal has a status that proxies and clients know.
#[test]
fn more_calls_than_the_rate_are_refused_with_429() {
    let served = serve(&["--rate", "2/h", "--queue-wait", "1s"], &[]);
    for _ in 0..2 {
        served.modern_value_of("echo", &json!({}));
    }
    let mut caller = served.modern("tools/call", &modern_call("echo", &json!({})), &[]);
    let (status, head) = caller.head();
    let answer = answer_below(&mut caller, &head);
    assert_eq!((status, &data(&answer)["kind"]), (429, &json!("rate-limited")), "{answer}");
    let wait = data(&answer)["retryAfterMs"].as_u64().unwrap();
    assert!((1_700_000..=1_800_000).contains(&wait), "{wait}");
    let seconds: u64 = head.header("Retry-After").unwrap().parse().unwrap();
    assert_eq!(seconds, wait.div_ceil(1000));
}

/// One token has one place, another as many as it likes: nobody takes anything from the other.
#[test]
fn a_token_has_bounds_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let ((ann_hash, ann), (bob_hash, bob)) = (token("ann"), token("bob"));
    let text = format!(
        "[servers.alpha]\ncommand = \"{}\"\n[listen]\nlisten = \"127.0.0.1:0\"\n[tokens.ann]\nhash = \"{ann_hash}\"\n\
         [tokens.bob]\nhash = \"{bob_hash}\"\nmax-in-flight = 1\nqueue = 0\n",
        fake_server().display()
    );
    let path = folder.path().join("outlast.toml");
    std::fs::write(&path, text).unwrap();
    let mut command = outlast_alone();
    let served = listening(command.args(["serve", "--config"]).arg(&path));
    let call = |who: &str, tool: &str| {
        let headers = [("Authorization", who), ACCEPT, JSON];
        served.modern("tools/call", &modern_call(tool, &json!({"ms": 10})), &headers)
    };
    let (bobs, _anns) = (call(&bob, "hang"), call(&ann, "hang"));
    // Until his first call has come in, another one of his has the place.
    let refused = wait_for(|| answer_of(&mut call(&bob, "silent")), |answer| answer.get("error").is_some());
    assert_eq!(data(&refused)["kind"], "too-many-calls", "{refused}");
    let message = refused["error"]["message"].as_str().unwrap();
    assert!(message.contains("[tokens.bob] in outlast.toml:7"), "{message}");
    assert!(answer_of(&mut call(&ann, "silent")).get("result").is_some());
    // He hangs up, and has his place again.
    drop(bobs);
    wait_for(|| answer_of(&mut call(&bob, "silent")), |answer| answer.get("result").is_some());
}

/// Asks until the answer is the one that comes when everything before it has been noticed.
fn wait_for(ask: impl Fn() -> Value, fits: impl Fn(&Value) -> bool) -> Value {
    let mut last = Value::Null;
    assert!(
        wait_until(SOON, || {
            last = ask();
            fits(&last)
        }),
        "{last}"
    );
    last
}

/// What `explain` says of the bounds is what a call meets.
#[test]
fn explain_names_the_bounds_of_a_server() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("outlast.toml");
    std::fs::write(
        &path,
        "[defaults]\nqueue = 5\n[servers.db]\ncommand = \"x\"\nmax-in-flight = 4\nrate = \"10/s\"\n",
    )
    .unwrap();
    let output = outlast_alone().args(["explain", "db", "query", "--config"]).arg(&path).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    for line in [
        "max-in-flight 4            [servers.db] in outlast.toml:5",
        "queue         5            [defaults] in outlast.toml:2",
        "rate          10/s         [servers.db] in outlast.toml:6",
    ] {
        assert!(said.contains(line), "{line:?} is not in\n{said}");
    }
    assert!(said.contains("Before that it may wait 30s for its turn (queue-wait)"), "{said}");
}

#[test]
fn explain_says_what_a_token_and_a_client_may_use() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("outlast.toml");
    let hash = "0".repeat(64);
    let file = format!(
        "[servers.db]\ncommand = \"x\"\n[servers.ci]\ncommand = \"y\"\nmax-in-flight = 4\n\
         [clients.\"ide*\"]\nservers = [\"db\"]\n\
         [tokens.bob]\nhash = \"{hash}\"\nservers = [\"c?\"]\ntools = [\"run_*\", \"ci__look\"]\nrate = \"60/m\"\n"
    );
    std::fs::write(&path, file).unwrap();
    let explain = |words: &[&str]| {
        let output = outlast_alone().arg("explain").args(words).arg("--config").arg(&path).output().unwrap();
        String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
    };
    let said = explain(&["ci", "look", "--token", "bob", "--client", "ide-2"]);
    for line in [
        "with token `bob`, of all its calls together:",
        "servers       c?           [tokens.bob] in outlast.toml:8",
        "tools         run_*, ci__look [tokens.bob] in outlast.toml:8",
        "queue         100          built in",
        "rate          60/m         [tokens.bob] in outlast.toml:8",
        "The merged door does not show the server to `ide-2` (servers, [clients.\"ide*\"] in outlast.toml:6). A call can last",
        "Before that it may wait 30s for its turn at its token (queue-wait), then 30s for its turn at its server (queue-wait).",
    ] {
        assert!(said.contains(line), "{line:?} is not in\n{said}");
    }
    let refused = explain(&["ci", "wipe", "--token", "bob"]);
    assert!(
        refused.contains("The tool is not for token `bob` ([tokens.bob] in outlast.toml:8)."),
        "{refused}"
    );
    let hidden = explain(&["db", "run_x", "--token", "bob"]);
    assert!(hidden.contains("The server is not there for token `bob`"), "{hidden}");
    let unknown = explain(&["db", "run_x", "--token", "bop"]);
    assert!(unknown.contains("the file has no token `bop`; did you mean bob?"), "{unknown}");
    let json: Value = serde_json::from_str(&explain(&["ci", "look", "--token", "bob", "--json"])).unwrap();
    assert_eq!((&json["token"], &json["ofToken"][1]["value"]), (&json!("bob"), &json!("run_*, ci__look")));
}
