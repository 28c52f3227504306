//! The connection: how the Rust SDK reaches a server, calls it and hears from it.
//!
//! Results are handed over as JSON, so that the checks read like those of the other languages.

// The SDK calls half of the legacy era deprecated, which is what we are here to use.
#![allow(deprecated)]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rmcp::model::*;
use rmcp::service::{
    ClientLifecycleMode, ClientServiceExt, NotificationContext, PeerRequestOptions, RequestContext,
    RoleClient, RunningService, ServiceError,
};
use rmcp::transport::{StreamableHttpClientTransport, TokioChildProcess};
use rmcp::{ClientHandler, ErrorData};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

#[derive(Clone, Copy)]
pub enum Era {
    Legacy,
    Modern,
    Auto,
}

/// What the server sent without being asked.
#[derive(Default)]
pub struct Heard {
    pub progress: Vec<(ProgressToken, f64)>,
    pub logs: Vec<(Value, Value)>,
    pub updates: Vec<String>,
}

#[derive(Clone, Default)]
struct Ears(Arc<Mutex<Heard>>);

pub struct Peer {
    service: RunningService<RoleClient, Ears>,
    ears: Ears,
    /// The server's process, if we started it.
    pub pid: Option<u32>,
}

/// What a call may carry beside its arguments.
#[derive(Default)]
pub struct Extra {
    pub meta: Value,
    pub timeout_reset_by_progress: Option<Duration>,
}

/// The SDK's models have private parts; JSON builds them all.
pub fn model<T: DeserializeOwned>(value: Value) -> Result<T> {
    serde_json::from_value(value).context("the client's own JSON does not fit the model")
}

fn plain(result: impl Serialize) -> Result<Value> {
    Ok(serde_json::to_value(result)?)
}

fn call_request(name: &str, arguments: Value) -> Result<CallToolRequestParams> {
    model(json!({"name": name, "arguments": arguments}))
}

impl Peer {
    /// Connects to what `server` says: a URL, or a command and its arguments.
    pub async fn connect(server: &[String], era: Era) -> Result<Self> {
        let modern = vec![ProtocolVersion::V_2026_07_28];
        let lifecycle = match era {
            Era::Legacy => ClientLifecycleMode::Initialize,
            Era::Modern => ClientLifecycleMode::Discover { preferred_versions: modern },
            Era::Auto => ClientLifecycleMode::Auto { preferred_versions: modern, legacy_version: None },
        };
        let ears = Ears::default();
        if server[0].starts_with("http") {
            let transport = StreamableHttpClientTransport::from_uri(server[0].as_str());
            let service = ears.clone().serve_with_lifecycle(transport, lifecycle).await?;
            return Ok(Self { service, ears, pid: None });
        }
        let mut process = tokio::process::Command::new(&server[0]);
        process.args(&server[1..]);
        let transport = TokioChildProcess::new(process)?;
        let pid = Some(transport.id().context("the server is gone already")?);
        let service = ears.clone().serve_with_lifecycle(transport, lifecycle).await?;
        Ok(Self { service, ears, pid })
    }

    fn version(&self) -> Option<ProtocolVersion> {
        self.service.peer_info().map(|info| info.protocol_version.clone())
    }

    pub fn version_text(&self) -> String {
        self.version().map_or_else(String::new, |version| version.to_string())
    }

    pub fn is_modern(&self) -> bool {
        self.version().is_some_and(|version| !version.has_initialize())
    }

    pub fn describe(&self) -> String {
        let info = self.service.peer_info();
        let server = info.as_ref().and_then(|info| info.server_info.as_ref());
        let era = if self.is_modern() { "modern" } else { "legacy" };
        let name = server.map_or("no name", |server| server.name.as_str());
        format!("{era} {}, {name}", self.version_text())
    }

    pub fn heard<T>(&self, look: impl FnOnce(&Heard) -> T) -> T {
        look(&self.ears.0.lock().unwrap())
    }

    pub async fn close(&mut self) -> Result<()> {
        self.service.close().await?;
        Ok(())
    }

    pub async fn ping(&self) -> Result<String> {
        let request = ClientRequest::PingRequest(model(json!({"method": "ping"}))?);
        self.service.send_request(request).await?;
        Ok(String::new())
    }

    pub async fn discover(&self) -> Result<String> {
        let found = self.service.discover(RequestMetaObject::new()).await?;
        let versions: Vec<_> = found.supported_versions.iter().map(|v| v.as_str()).collect();
        let capabilities = plain(found.capabilities)?;
        let offered: Vec<_> =
            capabilities.as_object().into_iter().flatten().map(|(k, _)| k.as_str()).collect();
        Ok(format!("{}: {}", versions.join(" "), offered.join(" ")))
    }

    pub async fn lists(&self) -> Result<Value> {
        Ok(json!({
            "tools": self.service.list_all_tools().await?,
            "resources": self.service.list_all_resources().await?,
            "prompts": self.service.list_all_prompts().await?,
        }))
    }

    /// Calls a tool and answers, in the modern era, what the server asks on the way.
    pub async fn call(&self, name: &str, arguments: Value) -> Result<Value> {
        plain(self.service.call_tool(call_request(name, arguments)?).await?)
    }

    /// Calls a tool that may fail: the error code if the protocol says so.
    pub async fn try_call(&self, name: &str, arguments: Value) -> Result<Result<Value, i32>> {
        match self.service.call_tool(call_request(name, arguments)?).await {
            Ok(result) => Ok(Ok(plain(result)?)),
            Err(ServiceError::McpError(error)) => Ok(Err(error.code.0)),
            Err(other) => Err(other.into()),
        }
    }

    /// Calls a tool and gives the progress it reported back as well.
    pub async fn call_with(&self, name: &str, arguments: Value, extra: Extra) -> Result<(Value, Vec<f64>)> {
        let mut options = match extra.timeout_reset_by_progress {
            Some(timeout) => PeerRequestOptions::with_timeout(timeout).reset_timeout_on_progress(),
            None => PeerRequestOptions::no_options(),
        };
        if extra.meta.is_object() {
            options = options.with_meta(model(extra.meta)?);
        }
        let request = CallToolRequest::new(call_request(name, arguments)?);
        let request = ClientRequest::CallToolRequest(request);
        let handle = self.service.send_request_with_option(request, options).await?;
        let token = handle.progress_token.clone();
        let result = plain(handle.await_response().await?)?;
        let reports = self.heard(|heard| {
            heard.progress.iter().filter(|(of, _)| *of == token).map(|(_, value)| *value).collect()
        });
        Ok((result, reports))
    }

    /// Starts a call and cancels it.
    pub async fn call_and_cancel(&self, name: &str, arguments: Value, after: Duration) -> Result<()> {
        let request = CallToolRequest::new(call_request(name, arguments)?);
        let request = ClientRequest::CallToolRequest(request);
        let mut handle =
            self.service.send_request_with_option(request, PeerRequestOptions::no_options()).await?;
        if tokio::time::timeout(after, &mut handle.rx).await.is_ok() {
            bail!("the call was answered");
        }
        Ok(handle.cancel(Some("interop".to_owned())).await?)
    }

    pub async fn read_resource(&self, uri: &str) -> Result<Value> {
        plain(self.service.read_resource(model(json!({"uri": uri}))?).await?)
    }

    pub async fn get_prompt(&self, name: &str, arguments: Value) -> Result<Value> {
        let request = model(json!({"name": name, "arguments": arguments}))?;
        plain(self.service.get_prompt(request).await?)
    }

    pub async fn complete_prompt(&self, prompt: &str, name: &str, value: &str) -> Result<Value> {
        let request = json!({
            "ref": {"type": "ref/prompt", "name": prompt},
            "argument": {"name": name, "value": value},
        });
        plain(self.service.complete(model(request)?).await?)
    }

    pub async fn set_level(&self, level: &str) -> Result<()> {
        Ok(self.service.set_level(model(json!({"level": level}))?).await?)
    }

    pub async fn subscribe(&self, uri: &str) -> Result<()> {
        Ok(self.service.subscribe(model(json!({"uri": uri}))?).await?)
    }

    pub async fn unsubscribe(&self, uri: &str) -> Result<()> {
        Ok(self.service.unsubscribe(model(json!({"uri": uri}))?).await?)
    }

    pub async fn listen(&self, uri: &str) -> Result<rmcp::service::Subscription> {
        Ok(self.service.listen(model(json!({"resourceSubscriptions": [uri]}))?).await?)
    }
}

impl ClientHandler for Ears {
    fn get_info(&self) -> ClientConfig {
        let capabilities = ClientCapabilities::builder().enable_sampling().enable_elicitation();
        ClientConfig::new(capabilities.build(), Implementation::new("interop-rust", "1.0.0"))
    }

    async fn create_message(
        &self,
        params: CreateMessageRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        let asked = serde_json::to_value(params).unwrap_or_default();
        let content = &asked["messages"][0]["content"];
        let prompt = if content.is_array() { &content[0]["text"] } else { &content["text"] };
        let text = format!("sampled: {}", prompt.as_str().unwrap_or_default());
        let content = json!({"type": "text", "text": text});
        model(json!({"role": "assistant", "model": "fixture", "content": content}))
            .map_err(|error| ErrorData::internal_error(error.to_string(), None))
    }

    async fn create_elicitation(
        &self,
        params: ElicitRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let asked = serde_json::to_value(params).unwrap_or_default();
        let wants_colour = asked["requestedSchema"]["properties"].get("colour").is_some();
        let content = if wants_colour { json!({"colour": "teal"}) } else { json!({"name": "teal"}) };
        Ok(ElicitResult::new(ElicitationAction::Accept).with_content(content))
    }

    async fn on_progress(
        &self,
        report: ProgressNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        self.0.lock().unwrap().progress.push((report.progress_token, report.progress));
    }

    async fn on_logging_message(
        &self,
        entry: LoggingMessageNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        let level = serde_json::to_value(entry.level).unwrap_or_default();
        self.0.lock().unwrap().logs.push((level, entry.data));
    }

    async fn on_resource_updated(
        &self,
        update: ResourceUpdatedNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        self.0.lock().unwrap().updates.push(update.uri);
    }
}
