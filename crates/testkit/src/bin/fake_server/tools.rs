//! The tools: one fault each. Arguments are named in the arm that reads them.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::exit;
use std::time::{Duration, Instant};
use std::{env, hint, process, thread};

use serde_json::{Value, json};

use super::call::Call;
use super::processes;

/// What `tools/list` shows: what `FAKE_TOOLS` says, since behind one address with others only what is
/// listed can be called. The rest is known to those who talk to this server alone.
pub fn list() -> Value {
    let names = env::var("FAKE_TOOLS").unwrap_or_else(|_| "echo".into());
    names.split(' ').map(|name| json!({"name": name, "inputSchema": {"type": "object"}})).collect()
}

/// Runs one call to its end, which need not be an answer.
pub fn run(call: &Call) {
    match call.tool.as_str() {
        "echo" => call.give_raw(&call.raw_arguments),
        "silent" => {
            call.rest("ms");
            call.done();
        }
        "hang" => {}
        "progress" => progress(call),
        "late" => {
            call.server.wait_for_cancel(&call.id);
            call.done();
        }
        "spin" => spin(call),
        "count" => count(call),
        "ask" => ask(call),
        "flood" => flood(call),
        name if name.starts_with("answer_") => answer_oddly(call, &name["answer_".len()..]),
        name if name.starts_with("report_") => report_oddly(call, &name["report_".len()..]),
        name if name.starts_with("tell_") => tell(call, &name["tell_".len()..]),
        _ => misbehave(call),
    }
}

/// `every_ms`, `values`: a report for each value, then the answer; with `hangs` no answer. With `stamped` each report
/// has the time at which it left, in milliseconds.
fn progress(call: &Call) {
    for value in call.value("values").as_array().into_iter().flatten() {
        call.rest("every_ms");
        if let Some(token) = &call.token {
            if call.value("stamped") == true {
                call.report_with(token, value, &super::tasks::now().to_string());
            } else {
                call.report(token, value);
            }
        }
    }
    if call.value("hangs") == true {
        return;
    }
    call.rest("every_ms");
    call.done();
}

/// `file`, `gate`: adds a line to a file, and answers as soon as the other one is there.
fn count(call: &Call) {
    let file = OpenOptions::new().create(true).append(true).open(call.text("file"));
    let counted = file.and_then(|mut file| file.write_all(b"run\n"));
    processes::wait_for(Path::new(call.text("gate")));
    call.give(&json!(counted.is_ok()));
}

/// `ms`: works hard and says nothing.
fn spin(call: &Call) {
    let end = Instant::now() + Duration::from_millis(call.number("ms"));
    while Instant::now() < end {
        hint::spin_loop();
    }
    call.done();
}

/// `id` (raw JSON), `method`, `params`: asks the client and answers with its whole line. With
/// `take_back` the question is taken back at once.
fn ask(call: &Call) {
    let id = if call.text("id").is_empty() { "1" } else { call.text("id") };
    let answer = call.server.ask(id, call.text("method"), call.value("params"));
    if call.value("take_back") == true {
        call.server.write(&format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#
        ));
        return call.done();
    }
    if let Ok(line) = answer.recv() {
        call.give(&json!(line));
    }
}

/// `count`, `bytes`: so many notifications of this size, then the answer. With `exits` the process
/// ends then.
fn flood(call: &Call) {
    let data = "x".repeat(call.number("bytes") as usize);
    for number in 0..call.number("count") {
        call.server.write(&format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/message","params":{{"level":"info","data":"{data}","number":{number}}}}}"#
        ));
    }
    call.done();
    if call.value("exits") == true {
        exit(0);
    }
}

/// Answers that a careful server does not give.
fn answer_oddly(call: &Call, how: &str) {
    let id = &call.id;
    match how {
        // `line`: exactly this, with `$ID` for the id.
        "with" => call.server.write(&call.text("line").replace("$ID", id)),
        "twice" => {
            call.done();
            call.give(&json!("again"));
        }
        "unknown_id" => {
            call.give_under("987654321", r#""who asked?""#);
            call.give_under(r#""nobody""#, r#""who asked?""#);
            call.done();
        }
        "other_id_type" => {
            let quoted = format!("\"{id}\"");
            call.give_under(id.strip_prefix('"').and_then(|id| id.strip_suffix('"')).unwrap_or(&quoted), "1");
        }
        "latin1" => {
            let line = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"text":"caf?"}}}}"#);
            let bytes: Vec<u8> = line.bytes().map(|byte| if byte == b'?' { 0xe9 } else { byte }).collect();
            call.server.write_bytes(&[&bytes[..], b"\n"].concat());
        }
        "nan" => call.give_raw(r#"{"mean":NaN,"low":-Infinity}"#),
        "as_array" => call.server.write(&format!(
            r#"[{{"jsonrpc":"2.0","method":"notifications/message","params":{{"level":"info","data":"in an array"}}}},{{"jsonrpc":"2.0","id":{id},"result":{{"ok":true}}}}]"#
        )),
        // The last line lacks its end.
        "and_exit_in_mid_line" => {
            call.server.write_bytes(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"whole":1}}}}"#).as_bytes());
            exit(0);
        }
        // `bytes`: so much of one line.
        "big" => call.give(&json!("x".repeat(call.number("bytes") as usize))),
        // `gate`: the second half comes as soon as there is such a file, and a log message after it. Otherwise
        // `ms`: between the halves; 0: the second half never comes.
        "in_halves" => {
            let line = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"half":"#);
            call.server.write_bytes(line.as_bytes());
            if call.value("gate").is_string() {
                processes::wait_for(Path::new(call.text("gate")));
                call.server.write("2}}");
                call.server.write(r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"whole"}}"#);
            } else if call.number("ms") > 0 {
                call.rest("ms");
                call.server.write("2}}");
            }
        }
        _ => unknown(call),
    }
}

/// Progress that a careful server does not send.
fn report_oddly(call: &Call, how: &str) {
    match how {
        "on_unknown_tokens" => {
            call.report("987654321", &json!(1));
            call.report(r#""nobody""#, &json!(1));
            call.done();
        }
        "after_the_answer" => {
            call.done();
            call.report(call.token.as_deref().unwrap_or("0"), &json!(999));
        }
        _ => unknown(call),
    }
}

/// What the process knows.
fn tell(call: &Call, what: &str) {
    match what {
        "line" => call.give(&json!(call.line)),
        "history" => call.give(&json!(call.server.history())),
        "cancels" => {
            let mut lines = call.server.history();
            lines.retain(|line| line.contains("notifications/cancelled"));
            call.give(&json!(lines));
        }
        "token" => call.give(&json!(call.token)),
        "environment" => call.give(&json!(env::vars().collect::<BTreeMap<_, _>>())),
        "arguments" => {
            // As text where it is text, else as bytes.
            let shown = |word: OsString| {
                word.into_string().map_or_else(|raw| json!(raw.as_bytes()), |text| json!(text))
            };
            call.give(&json!(env::args_os().skip(1).map(shown).collect::<Vec<_>>()));
        }
        "directory" => call.give(&json!(env::current_dir().unwrap_or_default())),
        "pid" => call.give(&json!(process::id())),
        _ => unknown(call),
    }
}

/// Faults of the process, and lines that are no answers.
fn misbehave(call: &Call) {
    match call.tool.as_str() {
        // `lines`: these, then the answer.
        "write_lines" => {
            for line in call.value("lines").as_array().into_iter().flatten() {
                call.server.write(line.as_str().unwrap_or_default());
            }
            call.done();
        }
        // `bytes`: an array of numbers. They go to stderr as they are.
        "write_stderr" => {
            let bytes = call.value("bytes").as_array().into_iter().flatten();
            let bytes: Vec<u8> = bytes.filter_map(|byte| byte.as_u64()).map(|byte| byte as u8).collect();
            let _ = processes::complain(&bytes);
            call.done();
        }
        // `bytes`: a number.
        "write_stderr_slowly" => {
            for step in 0..12 {
                eprintln!("step {step}");
                thread::sleep(Duration::from_millis(100));
            }
            call.give(&json!("done"));
        }
        "flood_stderr" => {
            let _ = processes::complain(&vec![b'e'; call.number("bytes") as usize]);
            call.done();
        }
        // `ms`: how long. Runs on the thread that reads.
        "stop_reading" => {
            call.done();
            call.rest("ms");
        }
        "close_stdout" => {
            let _ = call.server.close_stdout();
            processes::park();
        }
        "close_stdin" => {
            let _ = processes::close_stdin();
            call.done();
            processes::park();
        }
        // `status`, `answers` (true, or a number of bytes), `stderr`.
        "exit" => {
            let _ = processes::complain(call.text("stderr").as_bytes());
            if call.value("answers") == true {
                call.done();
            } else if call.number("answers") > 0 {
                call.give(&json!("x".repeat(call.number("answers") as usize)));
            }
            exit(call.number("status") as i32);
        }
        // `signal`.
        "die" => processes::die_by(call.number("signal") as i32),
        "start_grandchild" => call.give(&json!(processes::start_grandchild().map_or(0, |child| child.id()))),
        "start_daemon" => call.give(&json!(processes::start_daemon().unwrap_or_default())),
        _ => unknown(call),
    }
}

fn unknown(call: &Call) {
    call.give(&json!(format!("fake-server has no tool `{}`", call.tool)));
}
