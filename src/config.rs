//! The config file: plain data with defaults, and [`load`], which reads it.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::document::Fault;
use crate::inspect::Unread;

mod access;
mod agents;
mod approval;
mod audit;
mod calls;
mod classifier;
mod flow;
mod guarded_secrets;
mod limits;
mod listen;
mod load;
mod notify;
mod oauth;
mod otlp;
mod pins;
mod places;
mod results;
mod secret;
mod stores;
mod suppress;
mod tokens;
mod tool;

pub use access::{AccessConfig, Lists};
pub use agents::{Agent, AgentsFile, IssuerConfig};
pub use approval::{ApprovalConfig, AskTool, Scope};
pub use audit::{Anchor, AuditConfig, AuditTo, Rotation};
pub use calls::{CallLimits, ToolLimits};
pub use classifier::{ClassifierConfig, ClassifierScope};
pub use flow::FlowConfig;
pub use guarded_secrets::OwnConfig;
pub use limits::Limits;
pub use listen::{Listen, ListenTls};
pub use load::{
    load, load_admin, load_agents, load_audit, load_edited, load_kept, load_listen, load_login,
    load_oauth, load_pins, load_policies, load_to_run,
};
pub use notify::NotifyConfig;
pub use oauth::{Callback, EnterpriseConfig, Grant, LoginConfig, OAuthConfig, TokenOf, VaultKey};
pub use otlp::OtlpConfig;
pub use pins::{ChangeAction, ChangeClass, ChangesConfig, PinsConfig};
pub use places::PlacesConfig;
pub use results::StoredResultLimits;
pub use secret::{Secret, names_a_secret};
pub use stores::{EvidenceConfig, Keeps, QuarantineConfig};
pub use suppress::Suppression;
pub use tokens::{AgentToken, is_name};
pub use tool::{
    ArgumentConfig, InstructionFiles, PathFormat, ReadsAs, RenderPages, SchemaConfig, ToolConfig,
};

/// The contents of a config file.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// The side that faces agents.
    pub listen: Listen,
    /// Who may call.
    pub agents: Vec<Agent>,
    /// Where more of them are; already among `agents`.
    pub agents_file: AgentsFile,
    /// Who vouches for others.
    pub issuers: Vec<IssuerConfig>,
    /// Access tables; without any, all callers may use everything.
    pub access: Vec<Arc<AccessConfig>>,
    /// Policies by name; `default` is always there.
    pub policies: BTreeMap<String, PolicyConfig>,
    /// Upstreams by name.
    pub upstreams: BTreeMap<String, UpstreamConfig>,
    /// The audit log.
    pub audit: AuditConfig,
    /// The admin port.
    pub admin: Admin,
    /// How people are asked about calls.
    pub approval: ApprovalConfig,
    /// How people are notified that a call waits for approval.
    pub notify: NotifyConfig,
    /// Where definitions are pinned.
    pub pins: PinsConfig,
    /// How the gate logs in to servers.
    pub oauth: OAuthConfig,
    /// Where messages are kept that something was taken out of.
    pub quarantine: QuarantineConfig,
    /// Where whole messages are kept.
    pub evidence: EvidenceConfig,
    /// Where logs, traces and metrics go besides; nowhere if not set.
    pub otlp: Option<OtlpConfig>,
    /// Bounds on everything.
    pub limits: Limits,
    /// The file that it was read from.
    pub path: Option<PathBuf>,
    /// Files that secrets were read from, besides the config file: a change of one is a change of the config.
    pub files: Vec<PathBuf>,
}

impl Config {
    /// With default folders for stored messages, below the user's `state` folder.
    #[must_use]
    pub fn keeping_at_home(mut self, state: Option<PathBuf>) -> Self {
        self.quarantine = self.quarantine.of_user(state.clone());
        self.evidence = self.evidence.of_user(state);
        self
    }
}

/// How an upstream's traffic is judged.
#[derive(Clone, Debug)]
pub struct PolicyConfig {
    /// Whether verdicts are carried out.
    pub enforce: bool,
    /// Rule folders read after the built-in rules; a rule with the same id takes the place of the earlier one.
    pub rules: Vec<PathBuf>,
    /// Whether the built-in rules are used at all.
    pub builtin: bool,
    /// Packs switched on that ship off (`ops`), and off that ship on.
    pub packs: BTreeMap<String, bool>,
    /// Rules changed by id.
    pub overrides: BTreeMap<String, Override>,
    /// Findings that are known to be none (`suppress`).
    pub suppress: Vec<Arc<Suppression>>,
    /// `TOOL.ARGUMENT` patterns of arguments that a shell interprets.
    pub shell: Vec<String>,
    /// `TOOL.ARGUMENT` patterns of arguments that are plain text.
    pub text: Vec<String>,
    /// `tool.argument` names that a file system resolves.
    pub path: Vec<String>,
    /// `tool.argument` names that a client connects to.
    pub url: Vec<String>,
    /// `tool.argument` names that a database reads.
    pub sql: Vec<String>,
    /// The same, and nothing but a query may pass.
    pub sql_read_only: Vec<String>,
    /// Settings of single tools, by glob, most specific first: see [`PolicyConfig::of_tool`].
    pub tools: Vec<(String, ToolConfig)>,
    /// Whether a person is asked about the first write of a session (`confirm`).
    pub confirm_first_write: bool,
    /// What a person's yes may be for, the narrowest first (`approval.scopes`).
    pub scopes: Vec<Scope>,
    /// Whether agents may ask their own users (`approval.through_agent`); if not, only the gate's own ways count.
    pub through_agent: bool,
    /// Whether the tools' own schemas are enforced (`schema`).
    pub schema: SchemaConfig,
    /// What is done about definitions that change (`pins`).
    pub changes: ChangesConfig,
    /// Which texts are rendered as pages (`render_pages`).
    pub render_pages: RenderPages,
    /// Which texts are judged as files that instruct agents (`instruction_files`).
    pub instruction_files: InstructionFiles,
    /// Longest text of a tool's result, in bytes, by tool name; `*` for all others.
    pub result_text_bytes: BTreeMap<String, usize>,
    /// The same for each block of it; no separate limit if not set.
    pub result_block_bytes: BTreeMap<String, usize>,
    /// Where calls may reach.
    pub places: PlacesConfig,
    /// Values that must never leave.
    pub own: OwnConfig,
    /// Reasons for which content that was not inspected blocks its message (`block_uninspected`).
    pub block_uninspected: Vec<Unread>,
    /// Whether secrets are taken out of results (`redact_results`, which switches packs on for all else).
    pub redact_secrets: bool,
    /// Which tools give and take what (`flow`).
    pub flow: FlowConfig,
    /// The external classifier for server content (`classifier`), if set.
    pub classifier: Option<Arc<ClassifierConfig>>,
    /// What is kept of messages for later (`evidence`).
    pub evidence: Keeps,
}

/// Default for [`PolicyConfig::result_text_bytes`].
pub const RESULT_TEXT_BYTES: usize = 50_000;
/// The same for tools that a policy names in `shell`.
pub const SHELL_RESULT_TEXT_BYTES: usize = 10_000;

impl Default for PolicyConfig {
    fn default() -> Self {
        Self {
            enforce: true,
            rules: vec![],
            builtin: true,
            packs: BTreeMap::new(),
            overrides: BTreeMap::new(),
            suppress: vec![],
            shell: vec![],
            text: vec![],
            path: vec![],
            url: vec![],
            sql: vec![],
            sql_read_only: vec![],
            tools: vec![],
            confirm_first_write: false,
            scopes: vec![Scope::Once, Scope::Session, Scope::Call],
            through_agent: true,
            schema: SchemaConfig::default(),
            changes: ChangesConfig::default(),
            render_pages: RenderPages::default(),
            instruction_files: InstructionFiles::default(),
            result_text_bytes: BTreeMap::new(),
            result_block_bytes: BTreeMap::new(),
            places: PlacesConfig::default(),
            own: OwnConfig::default(),
            block_uninspected: vec![],
            redact_secrets: false,
            flow: FlowConfig::default(),
            classifier: None,
            evidence: Keeps::default(),
        }
    }
}

/// A change to one rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Override {
    /// Another action.
    pub action: Option<crate::rules::Action>,
    /// On or off.
    pub enabled: Option<bool>,
}

/// A server behind the gateway.
#[derive(Clone, Debug)]
pub struct UpstreamConfig {
    /// How it is reached.
    pub transport: Transport,
    /// Which policy judges it.
    pub policy: String,
    /// Whether verdicts are enforced here; overrides the policy.
    pub enforce: Option<bool>,
    /// Time for the answer to `initialize` (`initialize_timeout_seconds`, 10).
    pub initialize_timeout: Duration,
    /// Time for each other answer to begin (`request_timeout_seconds`, 300); between the events of a stream `stream_idle` counts.
    pub request_timeout: Duration,
    /// Folders that paths must stay in, in place of those of the policy (`roots`).
    pub roots: Option<Vec<String>>,
    /// Data flow of tools; replaces that of the policy (`flow`).
    pub flow: Option<FlowConfig>,
    /// What the file refers to for this upstream and is missing: variables, secrets, files. With one of them the upstream is
    /// down, and the rest of it is not to be used.
    pub faults: Vec<Fault>,
}

impl UpstreamConfig {
    /// An upstream reached by `transport`, all else at its default.
    pub fn new(transport: Transport) -> Self {
        Self {
            transport,
            policy: "default".to_owned(),
            enforce: None,
            initialize_timeout: Duration::from_secs(10),
            request_timeout: Duration::from_secs(300),
            roots: None,
            flow: None,
            faults: Vec::new(),
        }
    }

    /// Whether the server is reached in the same way, so that what runs for it may go on. Policies may differ.
    pub fn is_reached_like(&self, other: &Self) -> bool {
        self.transport == other.transport
            && self.initialize_timeout == other.initialize_timeout
            && self.request_timeout == other.request_timeout
            && self.faults == other.faults
    }
}

/// How a server is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Transport {
    /// Streamable HTTP.
    Http(HttpTransport),
    /// HTTP+SSE of 2024-11-05; the URL is the stream's.
    Sse(HttpTransport),
    /// A child process.
    Stdio(StdioTransport),
}

/// A server reached by HTTP.
#[derive(Clone, PartialEq, Eq)]
pub struct HttpTransport {
    /// The URL, as written.
    pub url: String,
    /// The gateway's own token for it. A secret.
    pub bearer: Option<String>,
    /// How the gate logs in, where there is no such token; `None` for not at all: `oauth = false`.
    pub login: Option<Box<LoginConfig>>,
    /// Further headers to send, by name. Values may be secrets.
    pub headers: Vec<(String, String)>,
    /// PEM file of authorities to trust instead of the system's.
    pub ca: Option<PathBuf>,
    /// Client certificate and key, PEM files.
    pub client_cert: Option<(PathBuf, PathBuf)>,
}

impl HttpTransport {
    /// The server at this URL, all else at its default.
    pub fn new(url: String) -> Self {
        Self {
            url,
            bearer: None,
            login: Some(Box::default()),
            headers: vec![],
            ca: None,
            client_cert: None,
        }
    }
}

impl Transport {
    /// Whether this is the same server as another, apart from credentials.
    pub fn leads_where(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Http(one), Self::Http(other)) | (Self::Sse(one), Self::Sse(other)) => {
                one.url == other.url
            }
            (Self::Stdio(one), Self::Stdio(other)) => {
                one.command == other.command && one.directory == other.directory
            }
            _ => false,
        }
    }

    /// The files that are read when the upstream is built.
    pub fn files(&self) -> Vec<&PathBuf> {
        match self {
            Self::Http(http) | Self::Sse(http) => {
                let pair = http
                    .client_cert
                    .iter()
                    .flat_map(|(certificate, key)| [certificate, key]);
                http.ca.iter().chain(pair).collect()
            }
            Self::Stdio(_) => Vec::new(),
        }
    }
}

impl StdioTransport {
    /// The program, empty if none is named.
    pub fn program(&self) -> &str {
        self.command.first().map(String::as_str).unwrap_or_default()
    }
}

impl std::fmt::Debug for HttpTransport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Some servers take a key in the query.
        let url = self.url.split('?').next().unwrap_or_default();
        f.debug_struct("HttpTransport")
            .field("url", &url)
            .finish_non_exhaustive()
    }
}

/// A server that is a child process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StdioTransport {
    /// Program and arguments, exactly; no shell.
    pub command: Vec<String>,
    /// Names of environment variables let through.
    pub env: Vec<String>,
    /// Variables set outright. Values may be secrets: never shown.
    pub set_env: Vec<(String, Secret)>,
    /// Working folder.
    pub directory: Option<PathBuf>,
}

/// The admin port: `/metrics`, `/healthz`, `/readyz`, and the console.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Admin {
    /// Where to listen; no admin port if not set.
    pub address: Option<SocketAddr>,
    /// Host names by which the port is reached, besides `localhost` and the address itself: `hosts`.
    pub hosts: Vec<String>,
    /// Whether people may look at the gate in a browser: `console`. Said of no address, it is so on loopback.
    pub console: Option<bool>,
    /// The `https` URL by which browsers reach the console through a proxy that speaks TLS, without a path: `console_url`.
    pub console_url: Option<String>,
}

impl Admin {
    /// Whether there is a console: never off loopback, unless it is asked for and reached by TLS.
    pub fn has_console(&self) -> bool {
        let loopback = self
            .address
            .is_some_and(|address| address.ip().is_loopback());
        let asked = self.console.unwrap_or(loopback);
        asked && self.address.is_some() && (loopback || self.console_url.is_some())
    }
}
