//! The fuzzers, on the stable compiler: libFuzzer with the coverage that rustc itself can put in.

use crate::shell::{program, root, run as run_program};
use anyhow::{Result, bail};
use std::fs;

const TARGETS: [&str; 6] = ["scan", "engine", "sse", "http", "http1", "chunks"];

/// What cargo-fuzz passes to a nightly compiler, without the sanitizers that need one.
const FLAGS: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares --cfg fuzzing -Ccodegen-units=1";

/// `fuzz [TARGET] [SECONDS]`.
pub fn run(words: &[String]) -> Result<()> {
    let seconds = words.get(1).map_or(Ok(60), |word| word.parse())?;
    match words.first() {
        None => all(seconds),
        Some(target) if TARGETS.contains(&target.as_str()) => {
            build()?;
            fuzz(target, seconds)
        }
        Some(other) => bail!("no fuzz target `{other}`; there are: {}", TARGETS.join(", ")),
    }
}

/// Every target for this long.
pub fn all(seconds: u64) -> Result<()> {
    build()?;
    TARGETS.iter().try_for_each(|target| fuzz(target, seconds))
}

fn build() -> Result<()> {
    let mut cargo =
        program("cargo", &["build", "--quiet", "--release", "--manifest-path", "fuzz/Cargo.toml"]);
    // With --target the flags are not applied to build scripts.
    cargo.args(["--target", host(), "--target-dir", "target/fuzz"]).env("RUSTFLAGS", FLAGS);
    run_program(cargo)
}

fn host() -> &'static str {
    if cfg!(target_os = "macos") { "aarch64-apple-darwin" } else { "x86_64-unknown-linux-gnu" }
}

fn fuzz(target: &str, seconds: u64) -> Result<()> {
    let (corpus, artifacts) =
        (root().join("target/fuzz/corpus").join(target), root().join("target/fuzz/artifacts"));
    fs::create_dir_all(&corpus)?;
    fs::create_dir_all(&artifacts)?;
    seed(&corpus)?;
    let binary = format!("target/fuzz/{}/release/{target}", host());
    let mut fuzzer = program(&binary, &[]);
    fuzzer
        .arg(corpus)
        .arg(format!("-max_total_time={seconds}"))
        .arg(format!("-artifact_prefix={}/", artifacts.display()));
    fuzzer.args(["-print_final_stats=1", "-verbosity=0", "-max_len=4096", "-rss_limit_mb=2048"]);
    run_program(fuzzer)
}

/// A few messages to begin with.
fn seed(corpus: &std::path::Path) -> Result<()> {
    let messages = [
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","_meta":{"progressToken":"t"}}}"#,
        r#"{"jsonrpc":"2.0","id":"a","result":{"_meta":{"io.modelcontextprotocol/subscriptionId":1}}}"#,
        r#"[{"id":1,"method":"ping"},{"method":"notifications/cancelled","params":{"requestId":1}}]"#,
        "0{\"id\":1,\"method\":\"tools/call\",\"params\":{\"_meta\":{\"progressToken\":1}}}\n6{\"method\":\"notifications/progress\",\"params\":{\"progressToken\":1,\"progress\":1,\"total\":2}}\n6{\"id\":1,\"result\":{}}",
        "\x03\u{feff}: hello\r\nretry: 5\nid: 7\ndata:\n\nevent: message\rdata: {\rdata: }\r\rid: 8\ndata: half",
        // A session of alice: hello, a call, a disconnect, the stream taken up again, the end of it.
        "@\x02{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"2025-11-25\"}}\n:\x00{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"protocolVersion\":\"2025-11-25\"}}\n0\x02{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n0\x02{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\",\"params\":{\"name\":\"x\"}}\n7\x02\n5\x022-0\n:\x00{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{}}\n5\x03\n6\x02",
        // A modern call, behind HTTP.
        "A\x06{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"x\",\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\",\"io.modelcontextprotocol/clientCapabilities\":{}}}}\n<\x00{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n=\x01\n>\x07",
        // HTTP/1.1: a request with a length, a response in chunks.
        "\x06POST /mcp HTTP/1.1\r\nHost: a\r\nMcp-Param-Region: eu\r\nContent-Length: 5\r\n\r\nhello",
        "\x07HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n0\r\nx: y\r\n\r\n",
    ];
    for (index, message) in messages.iter().enumerate() {
        fs::write(corpus.join(format!("seed-{index}")), message)?;
    }
    Ok(())
}
