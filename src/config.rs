//! The config file: plain data with defaults, and [`load()`], which reads it.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::document::Fault;
use crate::inspect::SkipReason;

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
pub use guarded_secrets::GuardedSecretsConfig;
pub use limits::Limits;
pub use listen::{Listen, ListenTls};
pub use load::{
    load, load_admin, load_agents, load_audit, load_edited, load_listen, load_login, load_oauth,
    load_pins, load_policies, load_stores, load_to_run,
};
pub use notify::NotifyConfig;
pub use oauth::{Callback, EnterpriseConfig, Grant, LoginConfig, OAuthConfig, TokenOf, VaultKey};
pub use otlp::OtlpConfig;
pub use pins::{ChangeAction, ChangeClass, ChangesConfig, PinsConfig};
pub use places::PlacesConfig;
pub use results::StoredResultLimits;
pub use secret::{Secret, is_secret_name, name_words};
pub use stores::{EvidenceConfig, EvidenceLevel, QuarantineConfig};
pub use suppress::Suppression;
pub use tokens::{AgentToken, is_name};
pub use tool::{
    ArgumentConfig, InstructionFiles, PathFormat, ReadsAs, RenderPages, SchemaConfig, ToolConfig,
};

/// The contents of a config file.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// The listener for agents.
    pub listen: Listen,
    /// The agents that may call.
    pub agents: Vec<Agent>,
    /// The file with further agents; those in it are already among `agents`.
    pub agents_file: AgentsFile,
    /// The issuers whose tokens are accepted from agents.
    pub issuers: Vec<IssuerConfig>,
    /// Access tables; if there are none, all callers may use everything.
    pub access: Vec<Arc<AccessConfig>>,
    /// Policies by name; `default` is always present.
    pub policies: BTreeMap<String, PolicyConfig>,
    /// Upstreams by name.
    pub upstreams: BTreeMap<String, UpstreamConfig>,
    /// The audit log.
    pub audit: AuditConfig,
    /// The admin port.
    pub admin: Admin,
    /// How approval is requested for calls.
    pub approval: ApprovalConfig,
    /// How people are notified of calls that wait for approval.
    pub notify: NotifyConfig,
    /// Pinning of definitions.
    pub pins: PinsConfig,
    /// How the gate logs in to upstream servers.
    pub oauth: OAuthConfig,
    /// The store for messages from which content was removed.
    pub quarantine: QuarantineConfig,
    /// The store for complete messages.
    pub evidence: EvidenceConfig,
    /// Where logs, traces and metrics are exported over OTLP; not exported if not set.
    pub otlp: Option<OtlpConfig>,
    /// Limits on resource use.
    pub limits: Limits,
    /// The path of the config file.
    pub path: Option<PathBuf>,
    /// Files that secrets were read from, in addition to the config file: a change to one of them
    /// counts as a change of the config.
    pub files: Vec<PathBuf>,
}

impl Config {
    /// Fills in default folders for stored messages, below the user's `state` folder.
    #[must_use]
    pub fn with_default_folders(mut self, state: Option<PathBuf>) -> Self {
        self.quarantine = self.quarantine.with_default_folder(state.clone());
        self.evidence = self.evidence.with_default_folder(state);
        self
    }
}

/// How an upstream's traffic is inspected, and what is done about findings.
#[derive(Clone, Debug)]
pub struct PolicyConfig {
    /// Whether verdicts are enforced.
    pub enforce: bool,
    /// Rule folders that are read after the built-in rules; a rule replaces an earlier one with the
    /// same id.
    pub rules: Vec<PathBuf>,
    /// Whether the built-in rules are used.
    pub builtin: bool,
    /// Packs that are switched on although they are off by default (`ops`), or off although they
    /// are on.
    pub packs: BTreeMap<String, bool>,
    /// Changes to single rules, by rule id.
    pub overrides: BTreeMap<String, Override>,
    /// Findings that are known to be false positives (`suppress`).
    pub suppress: Vec<Arc<Suppression>>,
    /// `TOOL.ARGUMENT` patterns of arguments that a shell interprets.
    pub shell: Vec<String>,
    /// `TOOL.ARGUMENT` patterns of arguments that are plain text.
    pub text: Vec<String>,
    /// `TOOL.ARGUMENT` patterns of arguments that are file system paths.
    pub path: Vec<String>,
    /// `TOOL.ARGUMENT` patterns of arguments that a client connects to.
    pub url: Vec<String>,
    /// `TOOL.ARGUMENT` patterns of arguments that a database executes.
    pub sql: Vec<String>,
    /// The same, for arguments that may contain nothing but queries.
    pub sql_read_only: Vec<String>,
    /// Settings of single tools by glob, most specific first; see [`PolicyConfig::tool_settings`].
    pub tools: Vec<(String, ToolConfig)>,
    /// Whether the first write of a session requires approval (`confirm`).
    pub confirm_first_write: bool,
    /// The scopes that an approval may have, narrowest first (`approval.scopes`).
    pub scopes: Vec<Scope>,
    /// Whether agents may ask their own users for approval (`approval.through_agent`); if not, only
    /// the gate's own channels count.
    pub through_agent: bool,
    /// Whether the tools' own schemas are enforced (`schema`).
    pub schema: SchemaConfig,
    /// How changed definitions are handled (`pins`).
    pub changes: ChangesConfig,
    /// Which texts are rendered as HTML pages (`render_pages`).
    pub render_pages: RenderPages,
    /// Which texts are treated as files with instructions for agents (`instruction_files`).
    pub instruction_files: InstructionFiles,
    /// Maximum length of the text of a tool's result, in bytes, by tool name; `*` for all others.
    pub result_text_bytes: BTreeMap<String, usize>,
    /// The same for each block of a result; no separate limit if not set.
    pub result_block_bytes: BTreeMap<String, usize>,
    /// The files and hosts that calls may reach.
    pub places: PlacesConfig,
    /// Secret values that must never leave.
    pub guarded_secrets: GuardedSecretsConfig,
    /// Reasons for which content that was not inspected causes its message to be blocked
    /// (`block_uninspected`).
    pub block_uninspected: Vec<SkipReason>,
    /// Whether secrets are redacted from results (`redact_results`; its other values switch packs
    /// on).
    pub redact_secrets: bool,
    /// The data flow labels of tools (`flow`).
    pub flow: FlowConfig,
    /// The external classifier for server content (`classifier`), if set.
    pub classifier: Option<Arc<ClassifierConfig>>,
    /// What is stored of messages for later (`evidence`).
    pub evidence: EvidenceLevel,
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
            guarded_secrets: GuardedSecretsConfig::default(),
            block_uninspected: vec![],
            redact_secrets: false,
            flow: FlowConfig::default(),
            classifier: None,
            evidence: EvidenceLevel::default(),
        }
    }
}

/// A change to one rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Override {
    /// The action that replaces the rule's own.
    pub action: Option<crate::rules::Action>,
    /// Whether the rule is enabled.
    pub enabled: Option<bool>,
}

/// An upstream server behind the gateway.
#[derive(Clone, Debug)]
pub struct UpstreamConfig {
    /// The transport by which it is reached.
    pub transport: Transport,
    /// The name of the policy for it.
    pub policy: String,
    /// Whether verdicts are enforced for this upstream; overrides the policy.
    pub enforce: Option<bool>,
    /// Maximum time until the response to `initialize` (`initialize_timeout_seconds`, 10).
    pub initialize_timeout: Duration,
    /// Maximum time until any other response begins (`request_timeout_seconds`, 300); between the
    /// events of a stream, `stream_idle` applies.
    pub request_timeout: Duration,
    /// Folders that paths must stay in; replaces those of the policy (`roots`).
    pub roots: Option<Vec<String>>,
    /// Data flow labels of tools; replaces those of the policy (`flow`).
    pub flow: Option<FlowConfig>,
    /// What the file references for this upstream and is missing: variables, secrets, files. If
    /// there are any, the upstream is down and its other settings must not be used.
    pub faults: Vec<Fault>,
}

impl UpstreamConfig {
    /// Returns the config of an upstream that is reached by `transport`, with defaults for
    /// everything else.
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

    /// Reports whether the server is reached in the same way, so that its running connections and
    /// processes can be kept. Policies may differ.
    pub fn has_same_connection(&self, other: &Self) -> bool {
        self.transport == other.transport
            && self.initialize_timeout == other.initialize_timeout
            && self.request_timeout == other.request_timeout
            && self.faults == other.faults
    }
}

/// The transport by which a server is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Transport {
    /// Streamable HTTP.
    Http(HttpTransport),
    /// HTTP+SSE of 2024-11-05; the URL is that of the event stream.
    Sse(HttpTransport),
    /// A child process.
    Stdio(StdioTransport),
}

/// A server reached over HTTP.
#[derive(Clone, PartialEq, Eq)]
pub struct HttpTransport {
    /// The URL, as written.
    pub url: String,
    /// The bearer token that the gateway sends to the server. A secret.
    pub bearer: Option<String>,
    /// How the gate logs in if `bearer` is not set; `None` if it does not: `oauth = false`.
    pub login: Option<Box<LoginConfig>>,
    /// Additional headers to send, by name. Values may be secrets.
    pub headers: Vec<(String, String)>,
    /// PEM file of CA certificates to trust instead of the system's.
    pub ca: Option<PathBuf>,
    /// Client certificate and private key, PEM files.
    pub client_cert: Option<(PathBuf, PathBuf)>,
}

impl HttpTransport {
    /// Returns the transport for the server at this URL, with defaults for everything else.
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
    /// Reports whether this is the same server as `other`, apart from credentials.
    pub fn is_same_server(&self, other: &Self) -> bool {
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

    /// Returns the files that are read when the upstream is built.
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
    /// Returns the program, empty if none is named.
    pub fn program(&self) -> &str {
        self.command.first().map(String::as_str).unwrap_or_default()
    }
}

impl std::fmt::Debug for HttpTransport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Some servers take an API key in the query.
        let url = self.url.split('?').next().unwrap_or_default();
        f.debug_struct("HttpTransport")
            .field("url", &url)
            .finish_non_exhaustive()
    }
}

/// A server that is a child process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StdioTransport {
    /// Program and arguments, passed as they are and without a shell.
    pub command: Vec<String>,
    /// Names of environment variables that are passed through.
    pub env: Vec<String>,
    /// Environment variables with explicit values. Values may be secrets and are never shown.
    pub set_env: Vec<(String, Secret)>,
    /// The working directory.
    pub directory: Option<PathBuf>,
}

/// The admin port: `/metrics`, `/healthz`, `/readyz`, and the console.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Admin {
    /// The address to listen on; no admin port if not set.
    pub address: Option<SocketAddr>,
    /// Host names by which the port is reached, in addition to `localhost` and the address itself:
    /// `hosts`.
    pub hosts: Vec<String>,
    /// Whether the console is served: `console`. If not set, it is served on loopback addresses
    /// only.
    pub console: Option<bool>,
    /// The `https` URL, without a path, by which browsers reach the console through a proxy that
    /// terminates TLS: `console_url`.
    pub console_url: Option<String>,
}

impl Admin {
    /// Reports whether the console is served: on addresses other than loopback only if it is
    /// switched on and reached over TLS.
    pub fn has_console(&self) -> bool {
        let loopback = self
            .address
            .is_some_and(|address| address.ip().is_loopback());
        let enabled = self.console.unwrap_or(loopback);
        enabled && self.address.is_some() && (loopback || self.console_url.is_some())
    }
}

/// Returns the path in an environment variable, if it is absolute.
pub fn path_from_env(name: &str) -> Option<PathBuf> {
    std::env::var_os(name)
        .map(PathBuf::from)
        .filter(|path| path.is_absolute())
}

/// Returns the folder in which programs store the state of the current user, if there is one.
fn user_state_home() -> Option<PathBuf> {
    path_from_env("XDG_STATE_HOME").or_else(|| Some(path_from_env("HOME")?.join(".local/state")))
}
