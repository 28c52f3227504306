//! Tasks of the modern extension with the client of the official Rust SDK.
//!
//! `rmcp-tasks -- COMMAND...|URL`
//!
//! The server behind outlast knows nothing of tasks; its tools are those of `../../README.md`. Prints one
//! JSON line for each check.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use rmcp::ClientHandler;
use rmcp::model::*;
use rmcp::service::{ClientLifecycleMode, ClientServiceExt, RoleClient, RunningService, ServiceError};
use rmcp::transport::{StreamableHttpClientTransport, TokioChildProcess};
use serde_json::{Value, json};

const CHECK_LIMIT: Duration = Duration::from_secs(15);

#[derive(Clone)]
struct Caller;

impl ClientHandler for Caller {
    fn get_info(&self) -> ClientConfig {
        let capabilities = ClientCapabilities::builder().enable_tasks().build();
        ClientConfig::new(capabilities, Implementation::new("interop-rust-tasks", "1.0.0"))
    }
}

type Client = RunningService<RoleClient, Caller>;
type Check = for<'a> fn(&'a Client) -> Pin<Box<dyn Future<Output = Result<String>> + 'a>>;

const CHECKS: [(&str, Check); 7] = [
    ("offered", |client| Box::pin(offered(client))),
    ("fast", |client| Box::pin(fast(client))),
    ("poll", |client| Box::pin(poll(client))),
    ("progress", |client| Box::pin(progress(client))),
    ("update", |client| Box::pin(update(client))),
    ("cancel", |client| Box::pin(cancel(client))),
    ("unknown", |client| Box::pin(unknown(client))),
];

async fn connect(server: &[String]) -> Result<Client> {
    let lifecycle = ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] };
    if server[0].starts_with("http") {
        let transport = StreamableHttpClientTransport::from_uri(server[0].as_str());
        return Ok(Caller.serve_with_lifecycle(transport, lifecycle).await?);
    }
    let mut process = tokio::process::Command::new(&server[0]);
    process.args(&server[1..]);
    Ok(Caller.serve_with_lifecycle(TokioChildProcess::new(process)?, lifecycle).await?)
}

async fn call(client: &Client, name: &str, arguments: Value) -> Result<CallToolResponse> {
    let params = serde_json::from_value(json!({"name": name, "arguments": arguments}))?;
    Ok(client.call_tool_once(params).await?)
}

/// Calls a tool that is too slow to be answered plainly.
async fn begin(client: &Client, name: &str, arguments: Value) -> Result<Task> {
    match call(client, name, arguments).await? {
        CallToolResponse::Task(handle) => Ok(handle.task),
        other => bail!("not a task: {other:?}"),
    }
}

async fn plain(client: &Client, name: &str, arguments: Value) -> Result<Value> {
    match call(client, name, arguments).await? {
        CallToolResponse::Complete(result) => Ok(serde_json::to_value(result)?),
        other => bail!("not a plain answer: {other:?}"),
    }
}

fn text(result: &Value) -> Result<&str> {
    result["content"][0]["text"].as_str().with_context(|| format!("no text in {result}"))
}

async fn look(client: &Client, task: &Task) -> Result<DetailedTask> {
    Ok(client.get_task(GetTaskParams::new(&task.task_id)).await?.task)
}

/// Polls as often as it is told to, until the task has ended.
async fn finished(client: &Client, task: &Task) -> Result<TaskPayload> {
    loop {
        let now = look(client, task).await?;
        if now.status().is_terminal() {
            return Ok(now.payload);
        }
        let wait = now.task.poll_interval_ms.context("no poll interval")?;
        tokio::time::sleep(Duration::from_millis(wait)).await;
    }
}

async fn result_of(client: &Client, task: &Task) -> Result<Value> {
    match finished(client, task).await? {
        TaskPayload::Completed { result } => Ok(Value::Object(result)),
        other => bail!("not completed: {other:?}"),
    }
}

async fn offered(client: &Client) -> Result<String> {
    let found = serde_json::to_value(client.discover(RequestMetaObject::new()).await?.capabilities)?;
    ensure!(found["extensions"][TASKS_EXTENSION_ID] == json!({}), "not declared: {found}");
    Ok("declared".to_owned())
}

/// What is answered soon stays plain.
async fn fast(client: &Client) -> Result<String> {
    Ok(text(&plain(client, "echo", json!({"text": "soon"})).await?)?.to_owned())
}

async fn poll(client: &Client) -> Result<String> {
    let task = begin(client, "slow", json!({"ms": 2000})).await?;
    let status = look(client, &task).await?.status();
    ensure!(status == TaskStatus::Working, "{status:?}");
    let result = result_of(client, &task).await?;
    let direct = plain(client, "slow", json!({"ms": 0})).await?;
    let keys = |value: &Value| value.as_object().map(|map| map.keys().cloned().collect::<Vec<_>>());
    ensure!(keys(&result) == keys(&direct), "{result} is not like {direct}");
    Ok(text(&result)?.to_owned())
}

/// A call that reports while it works becomes a task like any other.
async fn progress(client: &Client) -> Result<String> {
    let task = begin(client, "progress", json!({"steps": 3, "ms": 500})).await?;
    Ok(text(&result_of(client, &task).await?)?.to_owned())
}

/// Nothing was asked, so nothing is answered; it is acknowledged all the same.
async fn update(client: &Client) -> Result<String> {
    let task = begin(client, "slow", json!({"ms": 1500})).await?;
    client.update_task(UpdateTaskParams::new(&task.task_id, InputResponses::new())).await?;
    Ok(text(&result_of(client, &task).await?)?.to_owned())
}

async fn cancelled(client: &Client) -> Result<u64> {
    Ok(text(&plain(client, "was_cancelled", json!({})).await?)?.parse()?)
}

async fn cancel(client: &Client) -> Result<String> {
    let before = cancelled(client).await?;
    let task = begin(client, "wait_cancel", json!({})).await?;
    client.cancel_task(CancelTaskParams::new(&task.task_id)).await?;
    let ended = finished(client, &task).await?;
    ensure!(ended == TaskPayload::Cancelled, "{ended:?}");
    while cancelled(client).await? != before + 1 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok("the server noticed".to_owned())
}

async fn unknown(client: &Client) -> Result<String> {
    match client.get_task(GetTaskParams::new("0".repeat(64))).await {
        Err(ServiceError::McpError(error)) => Ok(format!("error {}", error.code.0)),
        other => bail!("{other:?}"),
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let server: Vec<String> = std::env::args().skip_while(|word| word != "--").skip(1).collect();
    ensure!(!server.is_empty(), "the server's command or URL goes after `--`");
    let mut client = tokio::time::timeout(CHECK_LIMIT, connect(&server)).await??;
    let mut failed = false;
    for (check, body) in CHECKS {
        let late = |_| anyhow::anyhow!("nothing within {CHECK_LIMIT:?}");
        let outcome = tokio::time::timeout(CHECK_LIMIT, body(&client)).await.map_err(late).flatten();
        let (ok, detail) = match outcome {
            Ok(detail) => (true, detail),
            Err(error) => (false, format!("{error:#}")),
        };
        failed |= !ok;
        println!("{}", json!({"check": check, "ok": ok, "detail": detail}));
    }
    client.close().await?;
    std::process::exit(failed.into());
}
