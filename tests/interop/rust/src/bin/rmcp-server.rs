//! The fixture server on the official Rust SDK; `../README.md` says what each tool does.
//!
//! It speaks both eras: the first message of the client decides. A legacy client is asked for
//! input by a request, a modern one by an `input_required` result and a second call. With `--http`
//! it listens on a free port and says where.

// The SDK calls half of the legacy era deprecated, which is what we are here to offer.
#![allow(deprecated)]

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use anyhow::Result;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use rmcp::model::*;
use rmcp::service::{RequestContext, RoleServer, SubscriptionContext, SubscriptionSink};
use rmcp::transport::streamable_http_server::StreamableHttpService;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::{ErrorData, ServerHandler, ServiceExt};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

const COUNTER: &str = "test://counter";
const LEVELS: [&str; 8] = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

/// The name of each tool and of its arguments; `ms` and `steps` are numbers, the rest is text.
const TOOLS: [(&str, &[&str]); 11] = [
    ("echo", &["text"]),
    ("slow", &["ms"]),
    ("progress", &["ms", "steps"]),
    ("ask_sampling", &["prompt"]),
    ("ask_elicit", &[]),
    ("wait_cancel", &[]),
    ("was_cancelled", &[]),
    ("hang_up", &[]),
    ("touch", &[]),
    ("log", &["level", "text"]),
    ("meta", &[]),
];

type Context = RequestContext<RoleServer>;
type Answer = Result<CallToolResponse, ErrorData>;

#[derive(Clone, Default)]
struct Fixture(Arc<Mutex<State>>);

/// What the tools remember between calls.
#[derive(Default)]
struct State {
    touched: u32,
    cancelled: u32,
    subscribed: bool,
    accepted: usize,
    listening: Vec<SubscriptionSink>,
    level: String,
}

/// The SDK's models have private parts; JSON builds them all.
fn model<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).expect("the fixture's own JSON fits the model")
}

/// A result with one member; the modern era wants to be told that it is complete.
fn complete<T: DeserializeOwned>(member: &str, value: Value) -> T {
    model(json!({"resultType": "complete", member: value}))
}

fn say(text: impl ToString) -> Answer {
    let content = json!([{"type": "text", "text": text.to_string()}]);
    Ok(complete::<CallToolResult>("content", content).into())
}

fn failed(error: impl std::fmt::Display) -> ErrorData {
    ErrorData::internal_error(error.to_string(), None)
}

fn is_modern(context: &Context) -> bool {
    context.protocol_version().is_some_and(|version| !version.has_initialize())
}

fn input_required(key: &str, request: Value, state: Option<&str>) -> Answer {
    let mut result =
        InputRequiredResult::from_input_requests(InputRequests::from([(key.to_owned(), model(request))]));
    result.request_state = state.map(str::to_owned);
    Ok(result.into())
}

fn rank(level: &str) -> usize {
    LEVELS.iter().position(|known| *known == level).unwrap_or(0)
}

fn schema(arguments: &[&str]) -> Value {
    let kind = |name: &str| {
        if matches!(name, "ms" | "steps") { "number" } else { "string" }
    };
    let properties: serde_json::Map<_, _> =
        arguments.iter().map(|name| ((*name).to_owned(), json!({"type": kind(name)}))).collect();
    json!({"type": "object", "properties": properties, "required": arguments})
}

impl Fixture {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    async fn progress(&self, steps: u64, ms: u64, context: &Context) -> Answer {
        for step in 1..=steps {
            if let Some(token) = context.meta.get_progress_token() {
                let report = json!({
                    "progressToken": token, "progress": step, "total": steps,
                    "message": format!("step {step}"),
                });
                context.peer.notify_progress(model(report)).await.map_err(failed)?;
            }
            // Also after the last report: one that travels with the answer is lost in some SDKs.
            tokio::time::sleep(Duration::from_millis(ms)).await;
        }
        say(format!("done {steps}"))
    }

    async fn ask_sampling(&self, call: &CallToolRequestParams, context: &Context) -> Answer {
        if let Some(answers) = &call.input_responses {
            return say(first_text(&answers["sample"]["content"]));
        }
        let prompt = call.arguments.as_ref().and_then(|args| args["prompt"].as_str());
        let message = json!({"role": "user", "content": {"type": "text", "text": prompt}});
        let params = json!({"messages": [message], "maxTokens": 100});
        if is_modern(context) {
            let request = json!({"method": "sampling/createMessage", "params": params});
            return input_required("sample", request, None);
        }
        let answer = context.peer.create_message(model(params)).await.map_err(failed)?;
        say(first_text(&serde_json::to_value(answer).map_err(failed)?["content"]))
    }

    async fn ask_elicit(&self, call: &CallToolRequestParams, context: &Context) -> Answer {
        let tell = |answer: &Value| {
            let word = |value: &Value| value.as_str().unwrap_or("nothing").to_owned();
            format!("{} {}", word(&answer["action"]), word(&answer["content"]["colour"]))
        };
        if let Some(answers) = &call.input_responses {
            let state = call.request_state.as_deref().unwrap_or("no state");
            return say(format!("{} {state}", tell(&answers["colour"])));
        }
        let params =
            json!({"mode": "form", "message": "Which colour?", "requestedSchema": schema(&["colour"])});
        if is_modern(context) {
            let request = json!({"method": "elicitation/create", "params": params});
            return input_required("colour", request, Some("state-42"));
        }
        let answer = context.peer.create_elicitation(model(params)).await.map_err(failed)?;
        say(tell(&serde_json::to_value(answer).map_err(failed)?))
    }

    async fn wait_cancel(&self, context: &Context) -> Answer {
        let patience = tokio::time::sleep(Duration::from_secs(30));
        tokio::select! {
            () = patience => say("never cancelled"),
            () = context.ct.cancelled() => {
                self.state().cancelled += 1;
                say("cancelled")
            }
        }
    }

    async fn touch(&self, context: &Context) -> Answer {
        self.listeners_are_here().await;
        let (count, subscribed, listening) = {
            let mut state = self.state();
            state.touched += 1;
            (state.touched, state.subscribed, state.listening.clone())
        };
        for sink in listening {
            // One whose client stopped listening says so; that is no failure of this call.
            let _ = sink.notify_resource_updated(COUNTER).await;
        }
        if subscribed {
            let update = model(json!({"uri": COUNTER}));
            context.peer.notify_resource_updated(update).await.map_err(failed)?;
        }
        say(count)
    }

    /// The SDK tells the client that it may listen before it tells us who does.
    async fn listeners_are_here(&self) {
        let missing = || {
            let state = self.state();
            state.listening.len() < state.accepted
        };
        for _ in 0..200 {
            if !missing() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    async fn log(&self, level: &str, text: &str, context: &Context) -> Answer {
        // A modern request says itself what it wants to hear; the legacy level is the session's.
        let wanted = if is_modern(context) {
            context.meta.log_level().map(|level| serde_json::to_value(level).unwrap_or_default())
        } else {
            Some(json!(self.state().level))
        };
        if wanted.is_some_and(|wanted| rank(level) >= rank(wanted.as_str().unwrap_or_default())) {
            let entry = json!({"level": level, "logger": "fixture", "data": text});
            context.peer.notify_logging_message(model(entry)).await.map_err(failed)?;
        }
        say("logged")
    }

    fn meta(&self, context: &Context) -> Answer {
        let mut seen = context.meta.0.0.clone();
        seen.remove("progressToken");
        say(Value::Object(seen))
    }
}

fn first_text(content: &Value) -> String {
    let part = if content.is_array() { &content[0] } else { content };
    part["text"].as_str().unwrap_or_default().to_owned()
}

impl ServerHandler for Fixture {
    fn get_info(&self) -> ServerConfig {
        let capabilities = json!({
            "completions": {}, "logging": {}, "prompts": {},
            "resources": {"subscribe": true}, "tools": {},
        });
        ServerConfig::new(model(capabilities)).with_server_info(Implementation::new("fixture-rust", "1.0.0"))
    }

    async fn list_tools(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: Context,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools: Vec<Value> = TOOLS
            .iter()
            .map(|(name, arguments)| json!({"name": name, "inputSchema": schema(arguments)}))
            .collect();
        Ok(complete("tools", json!(tools)))
    }

    async fn call_tool(&self, call: CallToolRequestParams, context: Context) -> Answer {
        let arguments = Value::Object(call.arguments.clone().unwrap_or_default());
        let text = |name: &str| arguments[name].as_str().unwrap_or_default();
        let number = |name: &str| arguments[name].as_f64().unwrap_or_default() as u64;
        match call.name.as_ref() {
            "echo" => say(text("text")),
            "slow" => {
                tokio::time::sleep(Duration::from_millis(number("ms"))).await;
                say(format!("slept {}", number("ms")))
            }
            "progress" => self.progress(number("steps"), number("ms"), &context).await,
            "ask_sampling" => self.ask_sampling(&call, &context).await,
            "ask_elicit" => self.ask_elicit(&call, &context).await,
            "wait_cancel" => self.wait_cancel(&context).await,
            "was_cancelled" => say(self.state().cancelled),
            // This SDK lets no tool hang up.
            "hang_up" => {
                tokio::time::sleep(Duration::from_millis(300)).await;
                say("still here")
            }
            "touch" => self.touch(&context).await,
            "log" => self.log(text("level"), text("text"), &context).await,
            "meta" => self.meta(&context),
            other => Err(ErrorData::invalid_params(format!("unknown tool {other}"), None)),
        }
    }

    async fn list_resources(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: Context,
    ) -> Result<ListResourcesResult, ErrorData> {
        let counter = json!({"uri": COUNTER, "name": "counter", "mimeType": "text/plain"});
        Ok(complete("resources", json!([counter])))
    }

    async fn read_resource(
        &self,
        _request: ReadResourceRequestParams,
        _context: Context,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let text = self.state().touched.to_string();
        let content = json!({"uri": COUNTER, "mimeType": "text/plain", "text": text});
        Ok(complete::<ReadResourceResult>("contents", json!([content])).into())
    }

    async fn subscribe(&self, request: SubscribeRequestParams, _context: Context) -> Result<(), ErrorData> {
        self.state().subscribed = request.uri == COUNTER;
        Ok(())
    }

    async fn unsubscribe(
        &self,
        _request: UnsubscribeRequestParams,
        _context: Context,
    ) -> Result<(), ErrorData> {
        self.state().subscribed = false;
        Ok(())
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        self.state().accepted += 1;
        Some(requested.clone())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        self.state().listening.push(context.sink().clone());
        context.cancelled().await;
        Ok(())
    }

    async fn list_prompts(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: Context,
    ) -> Result<ListPromptsResult, ErrorData> {
        let greet = json!({"name": "greet", "arguments": [{"name": "name", "required": true}]});
        Ok(complete("prompts", json!([greet])))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _context: Context,
    ) -> Result<GetPromptResponse, ErrorData> {
        let arguments = serde_json::to_value(request.arguments).map_err(failed)?;
        let text = format!("Hello, {}!", arguments["name"].as_str().unwrap_or_default());
        let message = json!({"role": "user", "content": {"type": "text", "text": text}});
        Ok(complete::<GetPromptResult>("messages", json!([message])).into())
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        _context: Context,
    ) -> Result<CompleteResult, ErrorData> {
        let fits = |name: &&str| name.starts_with(&request.argument.value);
        let values: Vec<&str> = ["Ada", "Alan", "Grace"].into_iter().filter(fits).collect();
        Ok(complete("completion", json!({"values": values})))
    }

    async fn set_level(&self, request: SetLevelRequestParams, _context: Context) -> Result<(), ErrorData> {
        let level = serde_json::to_value(request.level).map_err(failed)?;
        self.state().level = level.as_str().unwrap_or_default().to_owned();
        Ok(())
    }
}

/// Listens on a free port of loopback and says on stderr where, until it is ended.
async fn serve_http() -> Result<()> {
    let fixture = Fixture::default();
    let service = StreamableHttpService::<_, LocalSessionManager>::new(
        move || Ok(fixture.clone()),
        Arc::default(),
        Default::default(),
    );
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    eprintln!("listening on http://{}/mcp", listener.local_addr()?);
    loop {
        let (stream, _) = listener.accept().await?;
        let service = TowerToHyperService::new(service.clone());
        let connection =
            hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service);
        tokio::spawn(connection);
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    if std::env::args().any(|word| word == "--http") {
        return serve_http().await;
    }
    Fixture::default().serve(rmcp::transport::stdio()).await?.waiting().await?;
    Ok(())
}
