//! A server built on rmcp, over stdio.

use std::time::Duration;

use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{CallToolResult, ContentBlock, ProgressNotificationParam, RequestMetaObject};
use rmcp::{
    ErrorData, Peer, RoleServer, ServerHandler, ServiceExt as _, schemars, tool, tool_handler,
    tool_router,
};

pub async fn serve() {
    let running = Server
        .serve(rmcp::transport::stdio())
        .await
        .expect("a client");
    running.waiting().await.expect("a clean end");
}

#[derive(Clone)]
struct Server;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Text {
    text: String,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Command {
    command: String,
}

#[tool_router]
impl Server {
    #[tool(description = "Repeats its text")]
    async fn echo(
        &self,
        Parameters(Text { text }): Parameters<Text>,
    ) -> Result<CallToolResult, ErrorData> {
        Ok(say(text))
    }

    #[tool(description = "Would run a shell command; only says so")]
    async fn run_command(
        &self,
        Parameters(Command { command }): Parameters<Command>,
    ) -> Result<CallToolResult, ErrorData> {
        Ok(say(format!("ran: {command}")))
    }

    #[tool(description = "Reports progress three times, a tenth of a second apart")]
    async fn slow(
        &self,
        meta: RequestMetaObject,
        client: Peer<RoleServer>,
    ) -> Result<CallToolResult, ErrorData> {
        for step in 0..3 {
            if let Some(token) = meta.get_progress_token() {
                let progress =
                    ProgressNotificationParam::new(token, f64::from(step)).with_total(3.0);
                client
                    .notify_progress(progress)
                    .await
                    .map_err(|e| ErrorData::internal_error(e.to_string(), None))?;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        Ok(say("done".to_owned()))
    }

    #[tool(description = "Always fails")]
    async fn broken(&self) -> Result<CallToolResult, ErrorData> {
        Ok(CallToolResult::error(vec![ContentBlock::text(
            "this tool fails",
        )]))
    }
}

#[tool_handler]
impl ServerHandler for Server {}

fn say(text: String) -> CallToolResult {
    CallToolResult::success(vec![ContentBlock::text(text)])
}
