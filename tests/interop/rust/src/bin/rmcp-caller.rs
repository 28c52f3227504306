//! A client on the official Rust SDK in its default settings: it starts the server that its arguments name, lists its tools,
//! calls `slow_probe` once and prints what it got. It ends when its standard input does.

use anyhow::{Context, Result};
use rmcp::ServiceExt;
use rmcp::model::CallToolRequestParams;
use rmcp::transport::TokioChildProcess;
use tokio::io::{copy, sink, stdin};

async fn call(server: &[String]) -> Result<String> {
    let mut process = tokio::process::Command::new(server.first().context("usage: rmcp-caller COMMAND…")?);
    process.args(&server[1..]);
    let client = ().serve(TokioChildProcess::new(process)?).await?;
    client.list_all_tools().await?;
    let result = client.call_tool(CallToolRequestParams::new("slow_probe")).await?;
    client.cancel().await?;
    Ok(serde_json::to_string(&result)?)
}

async fn end_of_input() {
    let _ = copy(&mut stdin(), &mut sink()).await;
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let server: Vec<String> = std::env::args().skip(1).collect();
    let words = tokio::select! {
        result = call(&server) => result.unwrap_or_else(|error| format!("{error:#}")),
        () = end_of_input() => "the driver is gone".to_owned(),
    };
    println!("{words}");
    // Reading standard input has a thread of its own, which would keep the process.
    std::process::exit(0);
}
