//! A minimal client that has a server identify itself and list what it offers. It calls no tool,
//! gets no prompt and reads no resource.

use std::time::Duration;

use futures_util::StreamExt;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue};
use http::{HeaderMap, StatusCode};

use crate::inspect::definitions::Kind;
use crate::message::{Message, MessageKind, ReadLimits, quote};
use crate::protocol::{
    AgentName, Call, CallError, CallKind, Context, Era, JSON_OR_EVENTS, MODERN, Payload,
    UpstreamName, answer, header, headers,
};
use crate::upstream::Upstream;

/// The agent name under which servers are queried if the arguments name none.
pub(super) const AGENT: &str = "lychgate-scan";
/// The revision that is requested in `initialize`.
const LEGACY: &str = "2025-11-25";
/// Maximum number of pages of one list, and of entries in all lists of a server.
const MAX_PAGES: usize = 100;
const MAX_ITEMS: usize = 10_000;
/// Timeout of `server/discover`, which older servers do not know.
const DISCOVER_TIMEOUT: Duration = Duration::from_secs(5);

/// Error code of an unknown method (JSON-RPC 2.0, section 5.1).
const NO_METHOD: &str = "-32601";
const TEMPLATES: &str = "resources/templates/list";

/// The lists of a server: the kind of their entries, the method, the member of the result, the
/// member that names each entry, and the corresponding capability.
pub(super) const LISTS: [(Kind, &str, &str, &str, &str); 4] = [
    (Kind::Tool, "tools/list", "tools", "name", "tools"),
    (Kind::Prompt, "prompts/list", "prompts", "name", "prompts"),
    (
        Kind::Resource,
        "resources/list",
        "resources",
        "uri",
        "resources",
    ),
    (
        Kind::Template,
        TEMPLATES,
        "resourceTemplates",
        "uriTemplate",
        "resources",
    ),
];

/// A response of the server, with the method that it answers.
pub(in crate::cli) struct ReplyPage {
    pub(super) method: &'static str,
    pub(super) message: Message,
    pub(super) context: Context,
}

/// All responses of a server.
pub(super) struct ServerLists {
    /// The protocol revision that was used.
    pub(super) version: String,
    pub(super) pages: Vec<ReplyPage>,
    /// The names of the declared capabilities.
    pub(super) capabilities: Vec<String>,
    /// What could not be listed completely, and why.
    pub(super) notes: Vec<String>,
}

/// Why a server did not answer a request.
pub(in crate::cli) enum RequestError {
    /// The request could not be sent, or received no response.
    Call(CallError),
    /// The response is an error.
    Error { code: String, text: String },
    /// The response has this status and no readable body.
    Status(StatusCode),
}

impl RequestError {
    /// Reports whether the server may be of the other era, or may not offer what was requested.
    fn may_be_other_era(&self) -> bool {
        match self {
            Self::Error { .. } => true,
            Self::Status(status) => status.is_client_error() && *status != StatusCode::UNAUTHORIZED,
            Self::Call(error) => {
                matches!(
                    error,
                    CallError::NotOffered
                        | CallError::BadReply(_)
                        | CallError::NotMcp(_)
                        | CallError::Silent(_)
                )
            }
        }
    }
}

impl RequestError {
    /// Reports whether the server responded that it does not support this.
    fn is_unsupported(&self) -> bool {
        match self {
            Self::Error { code, .. } => code == NO_METHOD,
            Self::Status(status) => status.is_client_error() && *status != StatusCode::UNAUTHORIZED,
            Self::Call(error) => matches!(error, CallError::NotOffered),
        }
    }
}

/// A server that is being queried.
pub(in crate::cli) struct Client<'u> {
    upstream: &'u Upstream,
    context: Context,
    version: String,
    limits: &'u ReadLimits,
    last_id: u64,
}

impl<'u> Client<'u> {
    pub(in crate::cli) fn new(
        upstream: &'u Upstream,
        name: &str,
        agent: Option<&str>,
        limits: &'u ReadLimits,
    ) -> Self {
        let context = Context::new(
            AgentName(agent.unwrap_or(AGENT).into()),
            UpstreamName(name.into()),
            Era::Modern,
        );
        Self {
            upstream,
            context,
            version: MODERN.to_owned(),
            limits,
            last_id: 0,
        }
    }

    /// Queries a server of any revision.
    pub(super) async fn read_lists(&mut self, child: bool) -> Result<ServerLists, RequestError> {
        let first = self.greet(child).await?;
        let capabilities = capabilities(&first.message);
        let mut lists = ServerLists {
            version: self.version.clone(),
            pages: vec![first],
            capabilities,
            notes: Vec::new(),
        };
        let mut items = 0;
        for (_, method, member, _, capability) in LISTS {
            let declared = lists.capabilities.iter().any(|known| known == capability);
            // Servers that do not declare tools may still have some; clients ask.
            if declared || capability == "tools" {
                self.list(method, member, declared, &mut items, &mut lists)
                    .await;
            }
        }
        Ok(lists)
    }

    /// Has the server identify itself. A child process first receives `initialize`, which most
    /// servers support; any other server first receives `server/discover`, which does not create a
    /// session.
    pub(in crate::cli) async fn greet(&mut self, child: bool) -> Result<ReplyPage, RequestError> {
        match child {
            true => match self.initialize().await {
                Err(failed) if failed.may_be_other_era() => {
                    self.discover().await.map_err(|_| failed)
                }
                said => said,
            },
            false => match self.discover().await {
                Err(failed) if failed.may_be_other_era() => self.initialize().await,
                said => said,
            },
        }
    }

    /// Ends the session, if there is one.
    pub(in crate::cli) async fn close(&mut self) {
        if self.context.session.is_some() {
            let call = Call {
                kind: CallKind::Close,
                headers: self.headers(None),
                context: self.context.clone(),
            };
            // Nothing can be done here about an error response.
            drop(self.upstream.call(&call).await);
        }
    }

    async fn discover(&mut self) -> Result<ReplyPage, RequestError> {
        (self.context.era, self.version) = (Era::Modern, MODERN.to_owned());
        let result = tokio::time::timeout(DISCOVER_TIMEOUT, self.ask("server/discover", "")).await;
        result.unwrap_or(Err(RequestError::Call(CallError::Silent(DISCOVER_TIMEOUT))))
    }

    async fn initialize(&mut self) -> Result<ReplyPage, RequestError> {
        (self.context.era, self.version) = (Era::Legacy, LEGACY.to_owned());
        let params = format!(
            r#""protocolVersion":"{LEGACY}","capabilities":{{}},"clientInfo":{{"name":"lychgate-scan","version":"{}"}}"#,
            env!("CARGO_PKG_VERSION")
        );
        let page = self.ask("initialize", &params).await?;
        let result = page.message.single_body();
        let version = result.and_then(|result| result.get_str("protocolVersion"));
        // The value is sent in a header, so only the characters of a date are accepted: revisions
        // are dates.
        if let Some(version) =
            version.filter(|version| version.bytes().all(|b| b.is_ascii_digit() || b == b'-'))
        {
            self.version = version.into_owned();
        }
        self.notify_ready().await;
        Ok(page)
    }

    async fn notify_ready(&self) {
        let notification = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        let Ok(message) = Message::parse(notification.into(), self.limits) else {
            return;
        };
        let call = Call {
            kind: CallKind::Send(message),
            headers: self.headers(None),
            context: self.context.clone(),
        };
        if let Ok(mut reply) = self.upstream.call(&call).await {
            while let Some(Ok(_)) = reply.frames.next().await {}
        }
    }

    async fn list(
        &mut self,
        method: &'static str,
        member: &str,
        declared: bool,
        items: &mut usize,
        lists: &mut ServerLists,
    ) {
        let mut cursor = String::new();
        for _ in 0..MAX_PAGES {
            let page = match self.ask(method, &cursor).await {
                Ok(page) => page,
                // A server with resources need not have resource templates.
                Err(failed) if failed.is_unsupported() && (!declared || method == TEMPLATES) => {
                    return;
                }
                Err(failed) => return lists.notes.push(format!("`{method}`: {failed}")),
            };
            let result = page.message.single_body();
            *items += result
                .and_then(|result| result.get(member))
                .map_or(0, |list| list.elements().count());
            let next = result
                .and_then(|result| result.get_str("nextCursor"))
                .map(|next| format!(r#""cursor":{}"#, quote(&next)));
            lists.pages.push(page);
            match next {
                None => return,
                Some(next) if next == cursor => {
                    return lists
                        .notes
                        .push(format!("`{method}`: its pages form a loop"));
                }
                Some(_) if *items > MAX_ITEMS => {
                    return lists.notes.push(format!(
                        "`{method}`: more than {MAX_ITEMS} entries; the rest was not inspected"
                    ));
                }
                Some(next) => cursor = next,
            }
        }
        lists.notes.push(format!(
            "`{method}`: more than {MAX_PAGES} pages; the rest was not inspected"
        ));
    }

    /// Sends one request, with these additional members in its parameters.
    async fn ask(
        &mut self,
        method: &'static str,
        members: &str,
    ) -> Result<ReplyPage, RequestError> {
        self.last_id += 1;
        let id = self.last_id;
        let comma = if members.is_empty() { "" } else { "," };
        let meta = match self.context.era {
            Era::Modern => format!(
                r#"{comma}"_meta":{{"{}":"{MODERN}","io.modelcontextprotocol/clientCapabilities":{{}},"io.modelcontextprotocol/clientInfo":{{"name":"lychgate-scan","version":"{}"}}}}"#,
                headers::META_VERSION,
                env!("CARGO_PKG_VERSION")
            ),
            Era::Legacy => String::new(),
        };
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{{members}{meta}}}}}"#
        );
        let request = Message::parse(body.into(), self.limits)
            .map_err(|error| RequestError::Call(CallError::BadMessage(error)))?;
        let context = Context {
            requests: headers::requests(&request).into(),
            ..self.context.clone()
        };
        let call = Call {
            kind: CallKind::Send(request),
            headers: self.headers(Some(method)),
            context: context.clone(),
        };
        let mut reply = self
            .upstream
            .call(&call)
            .await
            .map_err(RequestError::Call)?;
        if method == "initialize" {
            self.context.session = answer::opened_session(&reply);
        }
        let own_id = id.to_string();
        while let Some(frame) = reply.frames.next().await {
            let Payload::Message(message) = frame.map_err(RequestError::Call)?.payload else {
                continue;
            };
            let Some(envelope) = message.single() else {
                continue;
            };
            let is_own = message.id(envelope).is_some_and(|id| id == own_id);
            match envelope.kind {
                MessageKind::Result if is_own => {
                    return Ok(ReplyPage {
                        method,
                        message,
                        context,
                    });
                }
                // An error response may lack the id of its request.
                MessageKind::Error => {
                    let error = message.body(envelope);
                    let code = error
                        .and_then(|error| error.get("code"))
                        .map_or("", |code| code.raw())
                        .to_owned();
                    let text = error
                        .and_then(|error| error.get_str("message"))
                        .unwrap_or_default()
                        .into_owned();
                    return Err(RequestError::Error { code, text });
                }
                _ => {}
            }
        }
        Err(RequestError::Status(reply.status))
    }

    fn headers(&self, method: Option<&'static str>) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static(JSON_OR_EVENTS));
        let mut add = |name, value: &str| {
            if let Ok(value) = HeaderValue::from_str(value) {
                headers.insert(HeaderName::from_static(name), value);
            }
        };
        if method != Some("initialize") {
            add(header::VERSION, &self.version);
        }
        if let (Era::Modern, Some(method)) = (self.context.era, method) {
            add(header::METHOD, method);
        }
        if let Some(session) = &self.context.session {
            add(header::SESSION, session.expose());
        }
        headers
    }
}

/// Returns the capabilities that a server declares.
fn capabilities(message: &Message) -> Vec<String> {
    let result = message.single_body();
    let capabilities = result.and_then(|result| result.get("capabilities"));
    capabilities
        .into_iter()
        .flat_map(|all| all.members())
        .map(|(name, _)| name.into_owned())
        .take(50)
        .collect()
}

impl std::fmt::Display for RequestError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Call(CallError::Connect(error)) => write!(f, "unreachable: {error}"),
            Self::Call(CallError::Process(fault)) => f.write_str(&fault.describe()),
            Self::Call(error) => error.fmt(f),
            Self::Error { code, text } => {
                write!(
                    f,
                    "it responded with error {}: {}",
                    super::show::escape_text(code, 20),
                    super::show::escape_text(text, 200)
                )
            }
            Self::Status(status) => write!(
                f,
                "it responded with status {status} instead of an MCP message"
            ),
        }
    }
}
