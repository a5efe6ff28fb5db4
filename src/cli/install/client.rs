//! The supported clients, and where each stores its servers.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use clap::ValueEnum;

use crate::config::path_from_env;

/// Maximum number of Amazon Q agent files that are read in one folder.
const MAX_AGENT_FILES: usize = 100;

/// A program with a list of MCP servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Client {
    ClaudeCode,
    ClaudeDesktop,
    Cursor,
    #[value(name = "vscode", alias = "vs-code")]
    VsCode,
    Windsurf,
    GeminiCli,
    Codex,
    Zed,
    Cline,
    #[value(name = "opencode")]
    OpenCode,
    CopilotCli,
    /// Junie, in JetBrains IDEs and on the command line
    #[value(alias = "jetbrains")]
    Junie,
    Kiro,
    AmazonQ,
    RooCode,
    Amp,
}

/// The format of a config file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    /// JSON, with comments and trailing commas if the client accepts them. Servers are the members
    /// of `servers`; for Claude Code also within each member of `projects`.
    Json { servers: &'static str },
    /// The JSON of OpenCode: servers are the members of `mcp` or, since version 2, of
    /// `mcp.servers`; a command and its arguments are one list, and a variable is `{env:NAME}`.
    OpenCode,
    /// TOML, with a table for each server.
    Toml { servers: &'static str },
}

/// A file in which a client stores servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ConfigFile {
    pub(super) client: Client,
    pub(super) path: PathBuf,
    pub(super) format: Format,
    /// The folder of the project that the file belongs to. Such a file may be shared with other
    /// people, including any information about this machine in it.
    pub(super) project: Option<PathBuf>,
}

/// The folders in which to look for files.
pub(super) struct Places {
    /// `HOME`.
    pub(super) home: PathBuf,
    /// `XDG_CONFIG_HOME`, or `~/.config`.
    pub(super) config: PathBuf,
    /// `CODEX_HOME`, or `~/.codex`.
    pub(super) codex: PathBuf,
    /// The folder of the project.
    pub(super) project: PathBuf,
    /// Whether this is macOS, where programs store their files in a different folder.
    pub(super) is_mac: bool,
}

impl Places {
    /// Returns the places for the current user and folder.
    pub(super) fn from_environment() -> Option<Self> {
        let home = path_from_env("HOME")?;
        let config = path_from_env("XDG_CONFIG_HOME").unwrap_or_else(|| home.join(".config"));
        let codex = path_from_env("CODEX_HOME").unwrap_or_else(|| home.join(".codex"));
        Some(Self {
            config,
            codex,
            project: std::env::current_dir().ok()?,
            is_mac: cfg!(target_os = "macos"),
            home,
        })
    }

    /// Returns the folder in which programs store their files, each under its own name.
    fn programs(&self) -> PathBuf {
        if self.is_mac {
            self.home.join("Library/Application Support")
        } else {
            self.config.clone()
        }
    }
}

impl Client {
    /// Returns the name of the client on the command line.
    pub(super) fn name(self) -> String {
        self.to_possible_value()
            .map(|value| value.get_name().to_owned())
            .unwrap_or_default()
    }

    /// Returns all files in which the client may store servers: those of the user, then those of
    /// the project. Names and formats follow the clients' own documentation.
    pub(super) fn files(self, places: &Places) -> Vec<ConfigFile> {
        let format = self.format();
        let user_files = self.user_paths(places).into_iter().map(|path| (path, None));
        let project = &places.project;
        let project_files = self
            .project_paths()
            .iter()
            .map(|path| (project.join(path), Some(project.clone())));
        let agents = (self == Self::AmazonQ)
            .then(|| project.join(".amazonq/cli-agents"))
            .into_iter();
        let of_agents = agents
            .flat_map(|folder| agent_files(&folder))
            .map(|path| (path, Some(project.clone())));
        // The home folder may also be the project folder, possibly through a symbolic link.
        let mut seen = HashSet::new();
        user_files
            .chain(project_files)
            .chain(of_agents)
            .filter(|(path, _)| seen.insert(path.canonicalize().unwrap_or_else(|_| path.clone())))
            .map(|(path, project)| ConfigFile {
                client: self,
                path,
                format,
                project,
            })
            .collect()
    }

    fn format(self) -> Format {
        match self {
            Self::VsCode => Format::Json { servers: "servers" },
            Self::Zed => Format::Json {
                servers: "context_servers",
            },
            Self::Amp => Format::Json {
                servers: "amp.mcpServers",
            },
            Self::OpenCode => Format::OpenCode,
            Self::Codex => Format::Toml {
                servers: "mcp_servers",
            },
            _ => Format::Json {
                servers: "mcpServers",
            },
        }
    }

    fn user_paths(self, places: &Places) -> Vec<PathBuf> {
        let Places { home, config, .. } = places;
        let code = places.programs().join("Code/User");
        match self {
            Self::ClaudeCode => vec![home.join(".claude.json")],
            Self::ClaudeDesktop => {
                vec![places.programs().join("Claude/claude_desktop_config.json")]
            }
            Self::Cursor => vec![home.join(".cursor/mcp.json")],
            Self::VsCode => vec![code.join("mcp.json")],
            Self::Windsurf => vec![home.join(".codeium/windsurf/mcp_config.json")],
            Self::GeminiCli => vec![home.join(".gemini/settings.json")],
            Self::Codex => vec![places.codex.join("config.toml")],
            Self::Zed => vec![config.join("zed/settings.json")],
            Self::Cline => {
                let of_editor = code
                    .join("globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json");
                vec![
                    of_editor,
                    home.join(".cline/data/settings/cline_mcp_settings.json"),
                ]
            }
            Self::OpenCode => vec![
                config.join("opencode/opencode.json"),
                config.join("opencode/opencode.jsonc"),
            ],
            Self::CopilotCli => vec![home.join(".copilot/mcp-config.json")],
            Self::Junie => vec![home.join(".junie/mcp/mcp.json")],
            Self::Kiro => vec![home.join(".kiro/settings/mcp.json")],
            Self::AmazonQ => {
                let folder = home.join(".aws/amazonq");
                let paths = ["mcp.json", "default.json", "agents/default.json"]
                    .map(|name| folder.join(name));
                paths
                    .into_iter()
                    .chain(agent_files(&folder.join("cli-agents")))
                    .collect()
            }
            Self::RooCode => vec![
                code.join("globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json"),
            ],
            Self::Amp => vec![
                config.join("amp/settings.json"),
                config.join("amp/settings.jsonc"),
            ],
        }
    }

    /// Returns the config files of a project, relative to its folder.
    fn project_paths(self) -> &'static [&'static str] {
        match self {
            Self::ClaudeCode => &[".mcp.json"],
            Self::Cursor => &[".cursor/mcp.json"],
            Self::VsCode => &[".vscode/mcp.json"],
            Self::GeminiCli => &[".gemini/settings.json"],
            Self::Codex => &[".codex/config.toml"],
            Self::Zed => &[".zed/settings.json"],
            Self::OpenCode => &[
                "opencode.json",
                "opencode.jsonc",
                ".opencode/opencode.json",
                ".opencode/opencode.jsonc",
            ],
            // It reads `.mcp.json` as well; the servers in that file are moved as those of Claude
            // Code.
            Self::CopilotCli => &[".github/mcp.json"],
            Self::Junie => &[".junie/mcp/mcp.json"],
            Self::Kiro => &[".kiro/settings/mcp.json"],
            Self::AmazonQ => &[".amazonq/mcp.json", ".amazonq/default.json"],
            Self::RooCode => &[".roo/mcp.json"],
            Self::Amp => &[".amp/settings.json", ".amp/settings.jsonc"],
            Self::ClaudeDesktop | Self::Windsurf | Self::Cline => &[],
        }
    }

    /// Describes how the client is made to read its file again.
    pub(super) fn restart(self) -> &'static str {
        match self {
            Self::ClaudeCode
            | Self::GeminiCli
            | Self::Codex
            | Self::OpenCode
            | Self::CopilotCli
            | Self::AmazonQ
            | Self::Amp => "new sessions use it",
            Self::ClaudeDesktop | Self::Windsurf => "restart it",
            Self::Cursor
            | Self::VsCode
            | Self::Zed
            | Self::Cline
            | Self::Junie
            | Self::Kiro
            | Self::RooCode => "it reloads the file automatically, or after a restart",
        }
    }
}

impl ConfigFile {
    /// Returns a file given by path, in the format of this client.
    pub(super) fn from_path(client: Client, path: &Path, places: &Places) -> Option<Self> {
        let path = std::path::absolute(path).ok()?;
        if let Some(known) = client
            .files(places)
            .into_iter()
            .find(|file| file.path == path)
        {
            return Some(known);
        }
        let suffixes = client
            .project_paths()
            .iter()
            .filter(|within| path.ends_with(within));
        // The longest match: `.opencode/opencode.json` ends with `opencode.json`.
        let depth = suffixes
            .map(|within| Path::new(within).components().count())
            .max();
        let project = depth
            .and_then(|depth| path.ancestors().nth(depth))
            .map(Path::to_owned);
        Some(Self {
            client,
            path,
            format: client.format(),
            project,
        })
    }
}

/// Returns the agent files of Amazon Q's command line, one per agent.
fn agent_files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path());
    let mut files: Vec<_> = entries
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "json")
        })
        .take(MAX_AGENT_FILES)
        .collect();
    files.sort();
    files
}
