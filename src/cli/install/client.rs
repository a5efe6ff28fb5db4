//! The clients that are known, and where each keeps its servers.

use std::path::{Path, PathBuf};

use clap::ValueEnum;

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
}

/// How a file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    /// JSON, with comments and trailing commas where the client takes them. Servers are the members of `servers`; for Claude
    /// Code also within each member of `projects`.
    Json { servers: &'static str },
    /// TOML, a table for each server.
    Toml { servers: &'static str },
}

/// A file in which a client keeps servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ConfigFile {
    pub(super) client: Client,
    pub(super) path: PathBuf,
    pub(super) format: Format,
}

/// Where files are looked for.
pub(super) struct Places {
    /// `HOME`.
    pub(super) home: PathBuf,
    /// `XDG_CONFIG_HOME`, or `~/.config`.
    pub(super) config: PathBuf,
    /// The folder of the project.
    pub(super) project: PathBuf,
    /// macOS keeps what programs write elsewhere.
    pub(super) is_mac: bool,
}

impl Places {
    /// Those of whoever runs this, in this folder.
    pub(super) fn here() -> Option<Self> {
        let set = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let home = set("HOME")?;
        let config = set("XDG_CONFIG_HOME").unwrap_or_else(|| home.join(".config"));
        Some(Self { config, project: std::env::current_dir().ok()?, is_mac: cfg!(target_os = "macos"), home })
    }

    /// Where programs keep what they write, under their own name.
    fn programs(&self) -> PathBuf {
        if self.is_mac { self.home.join("Library/Application Support") } else { self.config.clone() }
    }
}

impl Client {
    /// Its name on the command line.
    pub(super) fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }

    /// All files that it may keep servers in: those of the user, then those of the project. Names and formats are those of the
    /// clients' own documentation.
    pub(super) fn files(self, places: &Places) -> Vec<ConfigFile> {
        let Places { home, project, .. } = places;
        let code = places.programs().join("Code/User");
        let (servers, paths) = match self {
            Self::ClaudeCode => ("mcpServers", vec![home.join(".claude.json"), project.join(".mcp.json")]),
            Self::ClaudeDesktop => ("mcpServers", vec![places.programs().join("Claude/claude_desktop_config.json")]),
            Self::Cursor => ("mcpServers", vec![home.join(".cursor/mcp.json"), project.join(".cursor/mcp.json")]),
            Self::VsCode => ("servers", vec![code.join("mcp.json"), project.join(".vscode/mcp.json")]),
            Self::Windsurf => ("mcpServers", vec![home.join(".codeium/windsurf/mcp_config.json")]),
            Self::GeminiCli => ("mcpServers", vec![home.join(".gemini/settings.json"), project.join(".gemini/settings.json")]),
            Self::Zed => ("context_servers", vec![places.config.join("zed/settings.json"), project.join(".zed/settings.json")]),
            Self::Cline => {
                let of_editor = code.join("globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json");
                ("mcpServers", vec![of_editor, home.join(".cline/data/settings/cline_mcp_settings.json")])
            }
            Self::Codex => ("mcp_servers", vec![home.join(".codex/config.toml"), project.join(".codex/config.toml")]),
        };
        let format = if self == Self::Codex { Format::Toml { servers } } else { Format::Json { servers } };
        let mut files: Vec<_> = paths.into_iter().map(|path| ConfigFile { client: self, path, format }).collect();
        // The home folder may be the project too, also by way of a link.
        let real = |file: &ConfigFile| file.path.canonicalize().unwrap_or_else(|_| file.path.clone());
        files.dedup_by(|a, b| real(a) == real(b));
        files
    }

    /// What it is to be told so that it looks at its file again.
    pub(super) fn restart(self) -> &'static str {
        match self {
            Self::ClaudeCode | Self::GeminiCli | Self::Codex => "new sessions use it",
            Self::ClaudeDesktop | Self::Windsurf => "restart it",
            Self::Cursor | Self::VsCode | Self::Zed | Self::Cline => "it reads the file again by itself, or after a restart",
        }
    }
}

impl ConfigFile {
    /// Whether it belongs to a project, so that others may get it too, with all that it says of this machine.
    pub(super) fn is_of_project(&self, places: &Places) -> bool {
        let users =
            [&places.home, &places.config].into_iter().any(|folder| self.path.parent().and_then(Path::parent) == Some(folder));
        let names = [
            ".mcp.json",
            ".vscode/mcp.json",
            ".cursor/mcp.json",
            ".gemini/settings.json",
            ".zed/settings.json",
            ".codex/config.toml",
        ];
        !users && names.iter().any(|name| self.path.ends_with(name))
    }

    /// A file that was named by hand, written as this client writes its own.
    pub(super) fn named(client: Client, path: &Path, places: &Places) -> Option<Self> {
        let format = client.files(places).first()?.format;
        Some(Self { client, path: std::path::absolute(path).ok()?, format })
    }
}
