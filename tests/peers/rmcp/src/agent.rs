//! An agent built on rmcp: it reads a plan from standard input and reports the results on standard
//! output.
#![allow(deprecated)] // sampling and roots are, since the latest revision, and still have to pass

use std::io::Read as _;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use rmcp::model::{
    CreateMessageRequestParams, CreateMessageResult, ElicitRequestParams, ElicitResult, ErrorData,
    ListRootsResult, LoggingMessageNotificationParam, ProgressNotificationParam, ProtocolVersion,
};
use rmcp::service::{NotificationContext, RequestContext, RunningService, ServiceError};
use rmcp::transport::{StreamableHttpClientTransport, TokioChildProcess};
use rmcp::{ClientHandler, ClientLifecycleMode, ClientServiceExt as _, RoleClient};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

pub async fn follow() {
    let mut plan = String::new();
    std::io::stdin()
        .read_to_string(&mut plan)
        .expect("a plan on standard input");
    let plan: Value = serde_json::from_str(&plan).expect("a plan in JSON");
    let notebook = Arc::new(Mutex::new(Notebook {
        events: vec![],
        began: Instant::now(),
    }));
    let agent = Agent {
        notebook: notebook.clone(),
    };
    let running = connect(agent, &plan).await;
    let mut steps = vec![];
    for step in plan["steps"].as_array().into_iter().flatten() {
        *notebook.lock().expect("notebook") = Notebook {
            events: vec![],
            began: Instant::now(),
        };
        let mut account = match take(&running, step).await {
            Ok(result) => json!({ "result": result }),
            Err(ServiceError::McpError(error)) => json!({ "error": error }),
            Err(other) => panic!("{step}: {other}"),
        };
        let book = notebook.lock().expect("notebook");
        account["step"] = step.clone();
        account["ms"] = json!(book.began.elapsed().as_millis() as u64);
        account["events"] = json!(book.events);
        steps.push(account);
    }
    let protocol = running
        .peer()
        .peer_info()
        .map(|info| info.protocol_version.clone());
    running.cancel().await.expect("a clean end");
    println!("{}", json!({ "protocol": protocol, "steps": steps }));
}

async fn connect(agent: Agent, plan: &Value) -> RunningService<RoleClient, Agent> {
    let lifecycle = match plan["era"].as_str() {
        Some("modern") => ClientLifecycleMode::Discover {
            preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        },
        _ => ClientLifecycleMode::Initialize,
    };
    let running = if let Some(url) = plan["target"]["http"].as_str() {
        agent
            .serve_with_lifecycle(StreamableHttpClientTransport::from_uri(url), lifecycle)
            .await
    } else {
        let words: Vec<String> = to(plan["target"]["stdio"].clone());
        let mut command = tokio::process::Command::new(&words[0]);
        command.args(&words[1..]);
        agent
            .serve_with_lifecycle(
                TokioChildProcess::new(command).expect("the server starts"),
                lifecycle,
            )
            .await
    };
    running.expect("a connection")
}

async fn take(
    running: &RunningService<RoleClient, Agent>,
    step: &Value,
) -> Result<Value, ServiceError> {
    let arguments = step.get("arguments").cloned().unwrap_or_else(|| json!({}));
    if let Some(name) = step["call"].as_str() {
        return running
            .call_tool(to(json!({ "name": name, "arguments": arguments })))
            .await
            .map(from);
    }
    if let Some(uri) = step["read"].as_str() {
        return running
            .read_resource(to(json!({ "uri": uri })))
            .await
            .map(from);
    }
    if let Some(name) = step["prompt"].as_str() {
        return running
            .get_prompt(to(json!({ "name": name, "arguments": arguments })))
            .await
            .map(from);
    }
    match step["list"].as_str() {
        Some("tools") => running.list_tools(None).await.map(from),
        Some("prompts") => running.list_prompts(None).await.map(from),
        Some("resources") => running.list_resources(None).await.map(from),
        other => panic!("no step {other:?}"),
    }
}

struct Notebook {
    events: Vec<Value>,
    began: Instant,
}

struct Agent {
    notebook: Arc<Mutex<Notebook>>,
}

impl Agent {
    fn saw(&self, method: &str, params: impl Serialize) {
        let mut book = self.notebook.lock().expect("notebook");
        let ms = book.began.elapsed().as_millis() as u64;
        book.events
            .push(json!({ "method": method, "params": params, "ms": ms }));
    }
}

impl ClientHandler for Agent {
    fn get_info(&self) -> rmcp::model::ClientConfig {
        to(json!({
            "protocolVersion": "2025-11-25",
            "capabilities": { "sampling": {}, "elicitation": { "form": {} }, "roots": {} },
            "clientInfo": { "name": "peer", "version": "1.0.0" },
        }))
    }

    async fn create_message(
        &self,
        params: CreateMessageRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        self.saw("sampling/createMessage", params);
        Ok(to(json!({
            "role": "assistant", "content": { "type": "text", "text": "Paris" }, "model": "a-model", "stopReason": "endTurn",
        })))
    }

    async fn create_elicitation(
        &self,
        params: ElicitRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let params = from(params);
        let schema = &params["requestedSchema"];
        let content: serde_json::Map<String, Value> = schema["required"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .map(|name| (name.to_owned(), given(&schema["properties"][name])))
            .collect();
        self.saw("elicitation/create", &params);
        Ok(to(json!({ "action": "accept", "content": content })))
    }

    async fn list_roots(
        &self,
        _context: RequestContext<RoleClient>,
    ) -> Result<ListRootsResult, ErrorData> {
        self.saw("roots/list", json!({}));
        Ok(to(
            json!({ "roots": [{ "uri": "file:///tmp", "name": "tmp" }] }),
        ))
    }

    async fn on_progress(
        &self,
        params: ProgressNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        self.saw(
            "notifications/progress",
            json!({ "progress": params.progress, "total": params.total }),
        );
    }

    async fn on_logging_message(
        &self,
        params: LoggingMessageNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        self.saw("notifications/message", params);
    }
}

/// Returns a value that a form with this schema accepts.
fn given(schema: &Value) -> Value {
    if let Some(default) = schema.get("default") {
        return default.clone();
    }
    if let Some(first) = schema.get("enum").and_then(|choices| choices.get(0)) {
        return first.clone();
    }
    match schema["type"].as_str() {
        Some("boolean") => json!(true),
        Some("integer") => json!(1),
        Some("number") => json!(1.5),
        _ => json!("given"),
    }
}

fn to<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).expect("the shape that the SDK knows")
}

fn from(value: impl Serialize) -> Value {
    serde_json::to_value(value).expect("a value in JSON")
}
