//! `outlast doctor client`: a server whose tools measure the client that calls them.
//!
//! It is added to a client for a minute, and tells how long the client waits in silence, whether
//! progress makes it wait longer, whether it cancels, and what it declares. It speaks both eras.
//!
//! Map: `desk` holds what the threads share; this file reads and answers; `probe` runs one call on a
//! thread; `record` is what happened, `profile` what that says; `tools` are the words, `speech` the
//! form of messages.

mod desk;
mod probe;
mod profile;
mod record;
mod speech;
mod tools;

use crate::doctor::{MODERN, glimpse};
use crate::lines::{Cut, Lines};
use crate::observe::stderr::say;
use crate::sys::signals::Interrupt;
use desk::Desk;
use outlast_engine::Mono;
use profile::Cap;
use record::{CALLS, Call, Elicited, Fate, Probe, Record};
use serde_json::{Value, from_slice, json};
use speech::Era;
use std::io::{self, IsTerminal, Read};
use std::process::ExitCode;
use std::sync::Arc;
use std::thread::Builder;
use std::time::Duration;

/// Bytes of a message. A longer one is skipped.
const MESSAGE: usize = 16 << 20;

/// Bytes of a name, version or reason that are kept.
const NAME: usize = 100;

/// For a person who tries it in a terminal, where nothing would ever happen.
const IN_A_TERMINAL: &str = "waiting for an MCP client on standard input, and this is a terminal: add the command \
     `outlast doctor client` to your client as a server, and tell the agent: run the outlast probes. Ctrl-C ends it";

/// Serves until its input ends or somebody ends it.
pub fn run() -> io::Result<ExitCode> {
    if io::stdin().is_terminal() {
        say(IN_A_TERMINAL);
    }
    let desk = Arc::new(Desk::new());
    close_on_signals(&desk)?;
    read(&desk);
    desk.close();
    Ok(ExitCode::SUCCESS)
}

/// Some clients end a server by a signal; what was learned must not be lost then.
fn close_on_signals(desk: &Arc<Desk>) -> io::Result<()> {
    let interrupt = Interrupt::new()?;
    let desk = desk.clone();
    Builder::new().name("signals".into()).spawn(move || {
        while let Ok(asked) = interrupt.wait(None) {
            if asked {
                desk.close();
                std::process::exit(0);
            }
        }
    })?;
    Ok(())
}

fn read(desk: &Arc<Desk>) {
    let mut lines = Lines::new(MESSAGE);
    let mut input = io::stdin().lock();
    let mut each = |cut| match cut {
        Cut::Line(line) => take_line(desk, &line),
        Cut::Oversized(_) => {}
    };
    let mut bytes = [0; 8 << 10];
    while let Ok(count @ 1..) = input.read(&mut bytes) {
        lines.add(&bytes[..count], &mut each);
    }
    lines.finish(&mut each);
}

fn take_line(desk: &Arc<Desk>, line: &[u8]) {
    match from_slice(line) {
        Ok(Value::Array(messages)) => messages.iter().for_each(|message| take(desk, message)),
        Ok(message) => take(desk, &message),
        Err(_) => desk.send(&speech::error(&Value::Null, -32700, "not JSON", Value::Null)),
    }
}

fn take(desk: &Arc<Desk>, message: &Value) {
    let params = &message["params"];
    match (message["method"].as_str(), message.get("id")) {
        (Some(method), Some(id)) => take_request(desk, method, id, params),
        (Some("notifications/cancelled"), None) => {
            let reason = short(&params["reason"]).unwrap_or_default();
            desk.change(|record, now| record.cancel(&params["requestId"], &reason, now));
        }
        (None, Some(_)) => desk.change(|record, now| take_answer(record, message, now)),
        _ => {}
    }
}

fn take_request(desk: &Arc<Desk>, method: &str, id: &Value, params: &Value) {
    let era = Era::of(params);
    if speech::modern_version(params).is_some_and(|version| version != MODERN) {
        let data = json!({"supported": [MODERN], "requested": speech::modern_version(params)});
        return desk.send(&speech::error(id, -32022, "Unsupported protocol version", data));
    }
    if method == "initialize" || era == Era::Modern {
        desk.change(|record, _| meet(record, params));
    }
    let result = match method {
        "initialize" => speech::initialized(params, tools::INSTRUCTIONS),
        "server/discover" => era.cacheable(speech::discovered(tools::INSTRUCTIONS)),
        "tools/list" => era.cacheable(tools::list()),
        "ping" => json!({}),
        "tools/call" => return take_call(desk, era, id, params),
        _ => return desk.send(&speech::error(id, -32601, "Method not found", Value::Null)),
    };
    desk.send(&era.answer(id, result));
}

/// Notes who the client says it is. Modern ones say so with every request, and the last word counts.
fn meet(record: &mut Record, params: &Value) {
    let (info, capabilities) = speech::introduction(params);
    record.name = short(&info["name"]).or_else(|| record.name.take());
    record.version = short(&info["version"]).or_else(|| record.version.take());
    record.capabilities = Some(capabilities.clone());
    match speech::modern_version(params) {
        Some(version) => record.modern = Some(version.to_owned()),
        None => record.legacy = short(&params["protocolVersion"]).or(Some("no version".to_owned())),
    }
}

fn short(text: &Value) -> Option<String> {
    text.as_str().map(|text| glimpse(text.as_bytes(), NAME))
}

fn take_call(desk: &Arc<Desk>, era: Era, id: &Value, params: &Value) {
    let name = params["name"].as_str().unwrap_or_default();
    let Some(probe) = Probe::ALL.into_iter().find(|probe| probe.name() == name) else {
        return desk.send(&speech::error(id, -32602, "no such tool", Value::Null));
    };
    let begun = desk.change(|record, now| {
        let call = new_call(record, probe, id, params, now);
        (record.calls.len() < CALLS).then(|| record.begin(call))
    });
    let Some(place) = begun else {
        let mut result = speech::text("Too many calls; start outlast doctor client again.");
        result["isError"] = true.into();
        return desk.send(&era.answer(id, result));
    };
    match probe {
        Probe::Report => report(desk, era, id, place, &params["arguments"]),
        Probe::Elicitation if era == Era::Modern => elicit_modern(desk, id, place, params),
        _ => start(desk, era, id, place),
    }
}

fn new_call(record: &Record, probe: Probe, id: &Value, params: &Value, now: Mono) -> Call {
    let asked = params["arguments"]["seconds"].as_f64().filter(|seconds| *seconds > 0.0);
    let planned = asked.map(|seconds| Duration::from_secs_f64(seconds.min(tools::LONGEST.as_secs_f64())));
    // Nobody can know it before; whoever gives it back has read the answer.
    let secret = outlast_engine::hex::encode(&crate::random::bytes::<2>());
    Call {
        id: id.clone(),
        probe,
        began: now,
        planned: planned.unwrap_or_else(|| usual(record, probe)),
        token: params["_meta"].get("progressToken").cloned(),
        reports: 0,
        fate: Fate::Running,
        overtaken: None,
        receipt: format!("{}-{secret}", record.calls.len() + 1),
        received: false,
    }
}

/// How long a probe takes if nobody says: with progress long enough to outlive the client's cap.
fn usual(record: &Record, probe: Probe) -> Duration {
    match (probe, Cap::of(record).given_up_after()) {
        (Probe::Progress, Some(given_up)) => (given_up * 3 / 2 + Duration::from_secs(5)).min(tools::LONGEST),
        (Probe::Progress, None) => tools::PROGRESS,
        _ => tools::SILENCE,
    }
}

fn start(desk: &Arc<Desk>, era: Era, id: &Value, place: usize) {
    let shared = desk.clone();
    let run = move || probe::Run { desk: &shared, place, era }.go();
    if let Err(error) = Builder::new().name("probe".into()).spawn(run) {
        desk.change(|record, now| record.answer(place, now));
        desk.send(&speech::error(id, -32603, &error.to_string(), Value::Null));
    }
}

fn report(desk: &Desk, era: Era, id: &Value, place: usize, arguments: &Value) {
    let text = desk.change(|record, now| {
        record.answer(place, now);
        record.take_receipts(arguments["receipts"].as_array().map_or(&[], Vec::as_slice));
        profile::text(record)
    });
    desk.send(&era.answer(id, speech::text(&text)));
}

/// A modern server puts its question into the answer; the client asks again with the person's.
fn elicit_modern(desk: &Desk, id: &Value, place: usize, params: &Value) {
    let result = desk.change(|record, now| {
        record.answer(place, now);
        let answer = params["inputResponses"].get("seen");
        match (answer, &record.elicited) {
            (Some(answer), Elicited::Asked(asked)) => {
                record.elicited = Elicited::Answered(action(answer), now.since(*asked));
                speech::text("The client was asked; probe_report says how that went.")
            }
            _ if !record.takes_forms() => {
                record.elicited = Elicited::NotDeclared;
                speech::text("The client did not declare elicitation by forms, so nobody was asked.")
            }
            _ => {
                record.elicited = Elicited::Asked(now);
                let question = json!({"method": "elicitation/create", "params": tools::question()});
                json!({"resultType": "input_required", "inputRequests": {"seen": question}})
            }
        }
    });
    desk.send(&Era::Modern.answer(id, result));
}

/// The answer to our question, which is the only one we ask.
fn take_answer(record: &mut Record, answer: &Value, now: Mono) {
    let Elicited::Asked(asked) = record.elicited else { return };
    let after = now.since(asked);
    record.elicited = match answer.get("error").filter(|error| !error.is_null()) {
        None => Elicited::Answered(action(&answer["result"]), after),
        Some(error) => Elicited::Refused(glimpse(error.to_string().as_bytes(), NAME), after),
    };
}

fn action(result: &Value) -> String {
    short(&result["action"]).unwrap_or_else(|| "no action".to_owned())
}
