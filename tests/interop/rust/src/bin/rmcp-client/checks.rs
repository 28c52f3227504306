//! The checks themselves, against our fixture servers and against `server-everything`.
//!
//! A detail is the same on every run of the same pair, so that the runner can compare the direct
//! run with the one through outlast word for word.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use nix::sys::signal::kill;
use nix::unistd::Pid;
use rmcp::model::ServerNotification;
use serde_json::{Value, json};

use crate::Report;
use crate::peer::{Extra, Heard, Peer};

const COUNTER: &str = "test://counter";
const TAG: &str = "example.org/tag";
const MODERN_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const MODERN_LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
const LONG: &str = "trigger-long-running-operation";
const DYNAMIC: &str = "demo://resource/dynamic/text/1";
const UNICODE: &str = "żółć 漢字 🦀 \"quoted\" \\ tab\t newline\n \u{2028}\u{2029} \u{0} \u{feff} end";

fn same<A: PartialEq<B> + std::fmt::Debug, B: std::fmt::Debug>(actual: A, wanted: B) -> Result<()> {
    let brief = |value: &dyn std::fmt::Debug| format!("{value:?}").chars().take(200).collect();
    let (got, want): (String, String) = (brief(&actual), brief(&wanted));
    ensure!(actual == wanted, "got {got}, wanted {want}");
    Ok(())
}

fn text(result: &Value) -> Result<&str> {
    ensure!(result["isError"] != json!(true), "the tool answered with an error: {result}");
    result["content"][0]["text"].as_str().with_context(|| format!("no text in {result}"))
}

fn digest(value: &Value) -> String {
    let mut hasher = DefaultHasher::new();
    value.to_string().hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

fn names<'a>(list: &'a Value, key: &str) -> Vec<&'a str> {
    list.as_array().into_iter().flatten().filter_map(|item| item[key].as_str()).collect()
}

async fn until(peer: &Peer, what: &str, seen: impl Fn(&Heard) -> bool) -> Result<()> {
    for _ in 0..200 {
        if peer.heard(&seen) {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    bail!("{what}: not within 4 s")
}

pub async fn fixture(peer: &Peer, report: &Report) {
    report.run("lists", lists(peer)).await;
    report.run("echo", echo(peer, "hello")).await;
    report.run("request_meta", request_meta(peer)).await;
    report.run("progress", progress(peer, "progress", json!({"steps": 12, "ms": 40}))).await;
    report.run("cancel", cancel(peer)).await;
    report.run("sampling", sampling(peer)).await;
    report.run("elicitation", elicitation(peer)).await;
    report.run("read_resource", read_resource(peer)).await;
    report.run("subscription", subscription(peer)).await;
    report.run("resume", resume(peer)).await;
    report.run("prompt", prompt(peer, "greet", json!({"name": "Ada"}), "Hello, Ada!")).await;
    report.run("completion", completion(peer, "greet", "name", "A", ["Ada", "Alan"])).await;
    report.run("logging", logging(peer)).await;
    report.run("unknown_tool", unknown_tool(peer)).await;
    report.run("concurrent", concurrent(peer)).await;
    report.run("unicode", echo(peer, UNICODE)).await;
    report.run("large", echo(peer, &large())).await;
}

pub async fn everything(peer: &Peer, report: &Report) {
    report.run("lists", everything_lists(peer)).await;
    report.run("echo", everything_echo(peer, "hello")).await;
    report.run("environment", everything_environment(peer)).await;
    report.run("progress", progress(peer, LONG, json!({"duration": 1, "steps": 10}))).await;
    report.run("cancel", everything_cancel(peer)).await;
    report.run("sampling", everything_sampling(peer)).await;
    report.run("elicitation", everything_elicitation(peer)).await;
    report.run("read_resource", everything_read_resource(peer)).await;
    report.run("subscription", everything_subscription(peer)).await;
    let weather = "What's weather in Oslo?";
    report.run("prompt", prompt(peer, "args-prompt", json!({"city": "Oslo"}), weather)).await;
    let team = completion(peer, "completable-prompt", "department", "S", ["Sales", "Support"]);
    report.run("completion", team).await;
    report.run("logging", everything_logging(peer)).await;
    report.run("unknown_tool", unknown_tool(peer)).await;
    report.run("concurrent", everything_concurrent(peer)).await;
    report.run("unicode", everything_echo(peer, UNICODE)).await;
    report.run("large", everything_echo(peer, &large())).await;
}

fn large() -> String {
    "x0123456789abcde".repeat(1 << 16)
}

// What is the same whatever the server.

/// A second of patience, three seconds of work, a sign of life every 400 ms.
pub async fn progress_resets_timeout(peer: &Peer, everything: bool) -> Result<String> {
    let extra = Extra { timeout_reset_by_progress: Some(Duration::from_secs(1)), ..Extra::default() };
    let call = if everything {
        peer.call_with(LONG, json!({"duration": 3, "steps": 8}), extra)
    } else {
        peer.call_with("progress", json!({"steps": 8, "ms": 400}), extra)
    };
    let (answer, reports) = call.await?;
    ensure!(reports.len() >= 5, "only {} reports", reports.len());
    Ok(text(&answer)?.to_owned())
}

pub async fn closes_cleanly(peer: &mut Peer) -> Result<String> {
    let started = Instant::now();
    peer.close().await?;
    let took = started.elapsed();
    // The SDK waits three seconds for the server to end by itself before it kills.
    ensure!(took < Duration::from_millis(1900), "the server had to be killed ({took:?})");
    let Some(pid) = peer.pid else {
        return Ok("closed".to_owned());
    };
    let pid = Pid::from_raw(i32::try_from(pid)?);
    for _ in 0..50 {
        if kill(pid, None).is_err() {
            return Ok("ended by itself".to_owned());
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    bail!("the process is still there")
}

async fn progress(peer: &Peer, tool: &str, arguments: Value) -> Result<String> {
    let (answer, reports) = peer.call_with(tool, arguments, Extra::default()).await?;
    text(&answer)?;
    ensure!(reports.windows(2).all(|pair| pair[0] < pair[1]), "progress went {reports:?}");
    // Reports that travel together with the answer are lost in some SDKs, so the last may be missing.
    same(reports.get(..4), Some(&[1.0, 2.0, 3.0, 4.0][..]))?;
    Ok("from 1 on, increasing".to_owned())
}

async fn unknown_tool(peer: &Peer) -> Result<String> {
    match peer.try_call("no_such_tool", json!({})).await? {
        Err(code) => Ok(format!("error {code}")),
        Ok(result) => {
            ensure!(result["isError"] == json!(true), "answered as if it existed: {result}");
            Ok("answered with isError".to_owned())
        }
    }
}

async fn prompt(peer: &Peer, name: &str, arguments: Value, wanted: &str) -> Result<String> {
    let result = peer.get_prompt(name, arguments).await?;
    same(&result["messages"][0]["content"]["text"], &json!(wanted))?;
    Ok(wanted.to_owned())
}

async fn completion(peer: &Peer, prompt: &str, name: &str, value: &str, wanted: [&str; 2]) -> Result<String> {
    let result = peer.complete_prompt(prompt, name, value).await?;
    same(&result["completion"]["values"], &json!(wanted))?;
    Ok(wanted.join(" "))
}

/// Calls all at once; the answers in the order of the calls.
async fn at_once(peer: &Peer, tool: &str, arguments: Vec<Value>) -> Result<Vec<String>> {
    let calls = arguments.into_iter().map(|arguments| async {
        let answer = peer.call(tool, arguments).await?;
        Ok(text(&answer)?.to_owned())
    });
    futures::future::try_join_all(calls).await
}

// Against one of our own fixture servers.

async fn lists(peer: &Peer) -> Result<String> {
    let lists = peer.lists().await?;
    let mut tools = names(&lists["tools"], "name");
    tools.sort_unstable();
    let wanted =
        "ask_elicit ask_sampling echo hang_up log meta progress slow touch wait_cancel was_cancelled";
    same(tools.join(" "), wanted)?;
    same(names(&lists["resources"], "uri"), [COUNTER])?;
    same(names(&lists["prompts"], "name"), ["greet"])?;
    Ok(digest(&lists))
}

async fn echo(peer: &Peer, message: &str) -> Result<String> {
    let answer = peer.call("echo", json!({"text": message})).await?;
    same(text(&answer)?, message)?;
    Ok(format!("{} characters", message.chars().count()))
}

async fn request_meta(peer: &Peer) -> Result<String> {
    let extra = Extra { meta: json!({TAG: "t-1"}), ..Extra::default() };
    let (answer, _) = peer.call_with("meta", json!({}), extra).await?;
    let seen: Value = serde_json::from_str(text(&answer)?)?;
    same(&seen[TAG], &json!("t-1"))?;
    if peer.is_modern() {
        same(&seen[MODERN_VERSION], &json!(peer.version_text()))?;
    }
    Ok(digest(&seen))
}

async fn cancel(peer: &Peer) -> Result<String> {
    let count = async || anyhow::Ok(text(&peer.call("was_cancelled", json!({})).await?)?.parse::<u32>()?);
    let before = count().await?;
    peer.call_and_cancel("wait_cancel", json!({}), Duration::from_millis(200)).await?;
    for _ in 0..100 {
        if count().await? == before + 1 {
            return Ok("the server noticed".to_owned());
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    bail!("the server did not notice the cancel")
}

async fn sampling(peer: &Peer) -> Result<String> {
    let answer = peer.call("ask_sampling", json!({"prompt": "p-17"})).await?;
    same(text(&answer)?, "sampled: p-17")?;
    Ok("sampled: p-17".to_owned())
}

async fn elicitation(peer: &Peer) -> Result<String> {
    // A modern server cannot send requests: it answers `input_required` with a state that has to
    // come back unchanged.
    let result = peer.call("ask_elicit", json!({})).await?;
    let answer = text(&result)?;
    ensure!(answer.starts_with("accept teal"), "{answer}");
    ensure!(!peer.is_modern() || answer.ends_with("state-42"), "{answer}");
    Ok(answer.to_owned())
}

async fn read_resource(peer: &Peer) -> Result<String> {
    let result = peer.read_resource(COUNTER).await?;
    let content = &result["contents"][0];
    same(&content["uri"], &json!(COUNTER))?;
    content["text"].as_str().context("no text")?.parse::<u32>()?;
    Ok(content["mimeType"].as_str().unwrap_or_default().to_owned())
}

async fn subscription(peer: &Peer) -> Result<String> {
    if !peer.is_modern() {
        peer.subscribe(COUNTER).await?;
        peer.call("touch", json!({})).await?;
        until(peer, "an update", |heard| heard.updates.iter().any(|uri| uri == COUNTER)).await?;
        peer.unsubscribe(COUNTER).await?;
        return Ok("resources/subscribe".to_owned());
    }
    let mut subscription = peer.listen(COUNTER).await?;
    peer.call("touch", json!({})).await?;
    match subscription.next().await? {
        Some(ServerNotification::ResourceUpdatedNotification(update)) => {
            same(update.params.uri, COUNTER)?;
        }
        other => bail!("instead of an update: {other:?}"),
    }
    subscription.cancel().await?;
    Ok("subscriptions/listen".to_owned())
}

/// Over HTTP the stream breaks off in mid-call, and the client has to come back for the answer.
async fn resume(peer: &Peer) -> Result<String> {
    let answer = peer.call("hang_up", json!({})).await?;
    Ok(text(&answer)?.to_owned())
}

async fn logging(peer: &Peer) -> Result<String> {
    let mut meta = Value::Null;
    if peer.is_modern() {
        meta = json!({MODERN_LOG_LEVEL: "warning"});
        peer.call("log", json!({"level": "error", "text": "not asked for"})).await?;
    } else {
        peer.set_level("warning").await?;
    }
    for (level, words) in [("info", "quiet"), ("error", "loud")] {
        let extra = Extra { meta: meta.clone(), ..Extra::default() };
        peer.call_with("log", json!({"level": level, "text": words}), extra).await?;
    }
    until(peer, "a log message", |heard| !heard.logs.is_empty()).await?;
    same(peer.heard(|heard| heard.logs.clone()), [(json!("error"), json!("loud"))])?;
    Ok("error: loud".to_owned())
}

async fn concurrent(peer: &Peer) -> Result<String> {
    // The first asked is the last to be answered.
    let waits: Vec<u32> = (0..20).map(|i| 240 - 12 * i).collect();
    let calls = waits.iter().map(|ms| json!({"ms": ms})).collect();
    let answers = at_once(peer, "slow", calls).await?;
    same(&answers, &waits.iter().map(|ms| format!("slept {ms}")).collect::<Vec<_>>())?;
    Ok(format!("{} answers", answers.len()))
}

// Against `@modelcontextprotocol/server-everything`, whose tools have other names.

async fn everything_lists(peer: &Peer) -> Result<String> {
    let lists = peer.lists().await?;
    let tools = names(&lists["tools"], "name");
    for wanted in ["echo", "get-env", "trigger-sampling-request", "trigger-elicitation-request"] {
        ensure!(tools.contains(&wanted), "no tool {wanted}");
    }
    ensure!(names(&lists["prompts"], "name").contains(&"args-prompt"), "no prompt args-prompt");
    ensure!(!names(&lists["resources"], "uri").is_empty(), "no resources");
    Ok(digest(&lists))
}

async fn everything_echo(peer: &Peer, message: &str) -> Result<String> {
    let answer = peer.call("echo", json!({"message": message})).await?;
    same(text(&answer)?, format!("Echo: {message}"))?;
    Ok(format!("{} characters", message.chars().count()))
}

/// The server sees the same environment with and without outlast.
async fn everything_environment(peer: &Peer) -> Result<String> {
    let answer = peer.call("get-env", json!({})).await?;
    Ok(digest(&serde_json::from_str(text(&answer)?)?))
}

/// This server tells nobody that it was cancelled; what is left is that the client goes on.
async fn everything_cancel(peer: &Peer) -> Result<String> {
    let arguments = json!({"duration": 1.5, "steps": 3});
    peer.call_and_cancel(LONG, arguments, Duration::from_millis(200)).await?;
    Ok("the client was freed".to_owned())
}

async fn everything_sampling(peer: &Peer) -> Result<String> {
    let arguments = json!({"prompt": "p-17", "maxTokens": 10});
    let result = peer.call("trigger-sampling-request", arguments).await?;
    let answer = text(&result)?;
    ensure!(answer.contains("sampled: ") && answer.contains("p-17"), "{answer}");
    Ok(digest(&json!(answer)))
}

async fn everything_elicitation(peer: &Peer) -> Result<String> {
    let result = peer.call("trigger-elicitation-request", json!({})).await?;
    ensure!(result.to_string().contains("- Name: teal"), "{result}");
    Ok(digest(&result))
}

async fn everything_read_resource(peer: &Peer) -> Result<String> {
    let result = peer.read_resource(DYNAMIC).await?;
    let content = &result["contents"][0];
    ensure!(content["text"].to_string().contains("Resource 1"), "{content}");
    Ok(content["mimeType"].as_str().unwrap_or_default().to_owned())
}

async fn everything_subscription(peer: &Peer) -> Result<String> {
    peer.subscribe(DYNAMIC).await?;
    peer.call("toggle-subscriber-updates", json!({})).await?;
    until(peer, "an update", |heard| heard.updates.iter().any(|uri| uri == DYNAMIC)).await?;
    peer.call("toggle-subscriber-updates", json!({})).await?;
    peer.unsubscribe(DYNAMIC).await?;
    Ok("resources/subscribe".to_owned())
}

async fn everything_logging(peer: &Peer) -> Result<String> {
    peer.set_level("debug").await?;
    peer.call("toggle-simulated-logging", json!({})).await?;
    let random = |heard: &Heard| heard.logs.iter().any(|(_, data)| data.to_string().contains("message"));
    until(peer, "a log message", random).await?;
    peer.call("toggle-simulated-logging", json!({})).await?;
    Ok("a message of a random level".to_owned())
}

async fn everything_concurrent(peer: &Peer) -> Result<String> {
    let words: Vec<String> = (0..20).map(|i| format!("word-{i}")).collect();
    let calls = words.iter().map(|word| json!({"message": word})).collect();
    let answers = at_once(peer, "echo", calls).await?;
    same(&answers, &words.iter().map(|word| format!("Echo: {word}")).collect::<Vec<_>>())?;
    Ok(format!("{} answers", answers.len()))
}
