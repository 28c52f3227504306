//! The fuzzers, on the stable compiler: libFuzzer with the coverage that rustc itself can put in.

use crate::amount::Amount;
use crate::needs;
use crate::shell::{cargo_command, program, root, run as run_program, run_and_keep};
use anyhow::{Context, Result, bail};
use std::fs;

const TARGETS: [&str; 8] = ["scan", "engine", "sse", "http", "http1", "chunks", "file", "recording"];

/// What cargo-fuzz passes to a nightly compiler, without the sanitizers that need one.
const FLAGS: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares --cfg fuzzing -Ccodegen-units=1";

/// `fuzz [TARGET] [SECONDS]`.
pub fn run(words: &[String]) -> Result<()> {
    let seconds = words.get(1).map_or(Ok(60), |word| word.parse())?;
    needs::require(&["c++"])?;
    let amount = &mut Amount::default();
    match words.first() {
        None => all(seconds, amount),
        Some(target) if TARGETS.contains(&target.as_str()) => fuzz(target, seconds, &build()?, amount),
        Some(other) => bail!("no fuzz target `{other}`; there are: {}", TARGETS.join(", ")),
    }
}

/// Every target for this long.
pub fn all(seconds: u64, amount: &mut Amount) -> Result<()> {
    let host = build()?;
    TARGETS.iter().try_for_each(|target| fuzz(target, seconds, &host, amount))
}

/// Builds the targets and says for which system, which is where they are.
fn build() -> Result<String> {
    let host = host()?;
    let mut cargo = cargo_command(&["build", "--quiet", "--release", "--manifest-path", "fuzz/Cargo.toml"]);
    // With --target the flags are not applied to build scripts.
    cargo.args(["--target", &host, "--target-dir", "target/fuzz"]).env("RUSTFLAGS", FLAGS);
    run_program(cargo)?;
    Ok(host)
}

/// The system that we run on, in the compiler's words.
fn host() -> Result<String> {
    let output = program("rustc", &["-vV"]).output().context("cannot run rustc")?;
    let said = String::from_utf8_lossy(&output.stdout);
    let host = said.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("rustc -vV names no host")?.to_owned())
}

fn fuzz(target: &str, seconds: u64, host: &str, amount: &mut Amount) -> Result<()> {
    let (corpus, artifacts) =
        (root().join("target/fuzz/corpus").join(target), root().join("target/fuzz/artifacts"));
    fs::create_dir_all(&corpus)?;
    fs::create_dir_all(&artifacts)?;
    seed(&corpus)?;
    let binary = format!("target/fuzz/{host}/release/{target}");
    let mut fuzzer = program(&binary, &[]);
    fuzzer
        .arg(corpus)
        .arg(format!("-max_total_time={seconds}"))
        .arg(format!("-artifact_prefix={}/", artifacts.display()));
    fuzzer.args(["-print_final_stats=1", "-verbosity=0", "-max_len=4096", "-rss_limit_mb=2048"]);
    let (said, result) = run_and_keep(fuzzer)?;
    amount.add(inputs(&said), "inputs");
    result.with_context(|| format!("fuzz target `{target}`"))
}

/// How many inputs libFuzzer says it has tried.
fn inputs(said: &str) -> u64 {
    let count = said.split_once("stat::number_of_executed_units:").map(|(_, rest)| rest);
    count.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

/// A few messages to begin with.
fn seed(corpus: &std::path::Path) -> Result<()> {
    let messages = [
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","_meta":{"progressToken":"t"}}}"#,
        r#"{"jsonrpc":"2.0","id":"a","result":{"_meta":{"io.modelcontextprotocol/subscriptionId":1}}}"#,
        r#"[{"id":1,"method":"ping"},{"method":"notifications/cancelled","params":{"requestId":1}}]"#,
        "0{\"id\":1,\"method\":\"tools/call\",\"params\":{\"_meta\":{\"progressToken\":1}}}\n6{\"method\":\"notifications/progress\",\"params\":{\"progressToken\":1,\"progress\":1,\"total\":2}}\n6{\"id\":1,\"result\":{}}",
        "\x03\u{feff}: hello\r\nretry: 5\nid: 7\ndata:\n\nevent: message\rdata: {\rdata: }\r\rid: 8\ndata: half",
        // A session of alice: the handshake, a call, a disconnect, the stream taken up again, the end of it.
        "@\x02{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"2025-11-25\"}}\n:\x00{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"protocolVersion\":\"2025-11-25\"}}\n0\x02{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n0\x02{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\",\"params\":{\"name\":\"x\"}}\n7\x02\n5\x022-0\n:\x00{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{}}\n5\x03\n6\x02",
        // A modern call, behind HTTP.
        "A\x06{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"x\",\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\",\"io.modelcontextprotocol/clientCapabilities\":{}}}}\n<\x00{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n=\x01\n>\x07",
        // HTTP/1.1: a request with a length, a response in chunks.
        "\x06POST /mcp HTTP/1.1\r\nHost: a\r\nMcp-Param-Region: eu\r\nContent-Length: 5\r\n\r\nhello",
        // A configuration file, and a client's own.
        "separator = \"__\"\n[defaults]\ntimeout = \"30s\"\n[defaults.tools.\"{run_*,b}\"]\nmax = \"1h\"\n[servers.s0]\ncommand = \"x\"\nargs = [\"${A:-b}\"]\nenv = { K = \"v\" }\ntools.deny = [\"rm\"]\n[clients.\"c*\"]\nservers = [\"s0\"]\n[tokens.t]\nhash = \"00\"\n",
        "{\"mcpServers\": {\"a b\": {\"command\": \"x\", \"args\": [\"y\"], \"env\": {\"K\": \"${env:V}\"}, \"timeout\": 5}, // c\n},}",
        "\x07HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n0\r\nx: y\r\n\r\n",
        // A recording: a call, its answer, and another one that never ends.
        "{\"recording\":{\"format\":1,\"outlast\":\"0.1.0\",\"config\":{}}}\n{\"event\":[{\"mono\":1,\"wall\":1},{\"Opened\":[0,0]}]}\n{\"answer\":{\"Started\":[0,0]}}\n{\"did\":[\".. start 0\"]}\n{\"event\":[{\"mono\":2,\"wall\":1},{\"FromClient\":[0,\"{\\\"id\\\":1,\\\"method\\\":\\\"tools/call\\\"}\"]}]}\n{\"event\":[{\"mono\":3,\"wall\":1},{\"FromServer\":[0,0,\"{\\\"id\\\":1,\\\"result\\\":{}}\"]}]}\n{\"event\":[{\"mono\":9,\"wall\":1},{\"Stored\":[1,{\"Err\":{\"Failed\":\"full\"}}]}]}\n{\"truncated\":\"enough\"}\n",
    ];
    for (index, message) in messages.iter().enumerate() {
        fs::write(corpus.join(format!("seed-{index}")), message)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_is_the_one_of_the_compiler() {
        let host = host().unwrap();
        assert!(host.starts_with(std::env::consts::ARCH) && host.contains('-'), "{host}");
    }

    #[test]
    fn inputs_are_counted_by_the_fuzzer() {
        assert_eq!(
            inputs("Done\nstat::number_of_executed_units: 1234\nstat::average_exec_per_sec: 3\n"),
            1234
        );
        assert_eq!(inputs("==7== ERROR"), 0);
    }
}
