//! Settings for single tools: `[policy.NAME.tool.TOOL]`.

use std::collections::BTreeMap;

use super::{AskTool, PolicyConfig, ToolLimits};
use crate::detect::url::HostList;
use crate::text::glob_fits;

/// The settings of a tool. Settings that are missing come from the policy.
#[derive(Clone, Debug, Default)]
pub struct ToolConfig {
    /// Whether agents neither see it nor may call it (`hidden`).
    pub hidden: Option<bool>,
    /// What agents read in place of the server's words (`description`).
    pub description: Option<String>,
    /// Its arguments, by names joined by dots.
    pub arguments: BTreeMap<String, ArgumentConfig>,
    /// Hosts that it may reach even though they are internal, and such that it may not (`urls`).
    pub urls: HostList,
    /// Which of its calls a person is asked about (`ask`).
    pub ask: Option<AskTool>,
    /// Whether of SQL only queries may pass in its arguments (`sql_read_only`).
    pub sql_read_only: Option<bool>,
    /// Which of the texts that it returns are rendered as pages (`render_pages`).
    pub render_pages: Option<RenderPages>,
    /// Whether what it returns is judged as instruction files (`instruction_files`).
    pub instruction_files: Option<InstructionFiles>,
    /// How many of its calls, how fast, how large.
    pub limits: ToolLimits,
}

/// Which texts an agent gets as a person would see them, without markup.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RenderPages {
    /// Every text with HTML in it, source files included.
    Always,
    /// A text that is an HTML page from its beginning and does not come from a file.
    #[default]
    Pages,
    Never,
}

impl RenderPages {
    /// Words of the config file.
    pub const WORDS: [(&'static str, Self); 3] = [
        ("always", Self::Always),
        ("pages", Self::Pages),
        ("never", Self::Never),
    ];

    /// Whether a text with HTML in it is rendered; `whole` if it is a page from its beginning.
    pub fn renders(self, whole: bool) -> bool {
        match self {
            Self::Always => true,
            Self::Pages => whole,
            Self::Never => false,
        }
    }
}

/// Which texts are judged as files that instruct agents (`AGENTS.md`): orders pass, unless they hide something from the user
/// or send data away.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InstructionFiles {
    /// Every text.
    Always,
    /// A text that was asked for by the path or URI of such a file.
    #[default]
    Named,
    /// None.
    Never,
}

impl InstructionFiles {
    /// Words of the config file.
    pub const WORDS: [(&'static str, Self); 3] = [
        ("always", Self::Always),
        ("named", Self::Named),
        ("never", Self::Never),
    ];
}

/// The settings of one argument of a tool.
#[derive(Clone, Debug, Default)]
pub struct ArgumentConfig {
    /// What agents read in place of the server's words (`description`).
    pub description: Option<String>,
    /// Whether a call must have it (`required`).
    pub required: bool,
    /// An absolute path is wanted (`format = "absolute-path"`), or one that stays below a folder (`relative-path`).
    pub format: Option<PathFormat>,
    /// Keywords of JSON Schema by name, values as JSON: `minimum`, `maximum`, `minLength`, `maxLength`, `maxItems`,
    /// `pattern`, `enum`, `const`, `default`.
    pub keywords: BTreeMap<&'static str, String>,
    /// Who reads it (`read_as`).
    pub read_as: Option<ReadsAs>,
}

/// Which paths an argument may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathFormat {
    /// From the root, without `..`.
    Absolute,
    /// From some folder, without `..`.
    Relative,
}

impl PathFormat {
    /// Words of the config file.
    pub const WORDS: [(&'static str, Self); 2] = [
        ("absolute-path", Self::Absolute),
        ("relative-path", Self::Relative),
    ];
}

/// Whether the tools' own schemas are enforced: `[policy.NAME.schema]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SchemaConfig {
    /// A call that breaks the `inputSchema` its server listed is refused (`enforce`).
    pub enforce: bool,
    /// A tool that no list had may be called (`unlisted = "pass"`).
    pub unlisted: bool,
}

impl Default for SchemaConfig {
    fn default() -> Self {
        Self {
            enforce: true,
            unlisted: true,
        }
    }
}

/// How an argument is interpreted, as in the config file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadsAs {
    Shell,
    /// A file system.
    Path,
    /// A client that connects to it.
    Url,
    /// A database.
    Sql,
    /// Nothing that acts on it.
    Text,
}

impl ReadsAs {
    /// Words of the config file.
    pub const WORDS: [(&'static str, Self); 5] = [
        ("sql", Self::Sql),
        ("shell", Self::Shell),
        ("path", Self::Path),
        ("url", Self::Url),
        ("text", Self::Text),
    ];
}

impl PolicyConfig {
    /// The settings of a tool, most specific first: its exact name, then matching globs, longest first.
    pub fn of_tool<'c>(&'c self, tool: &'c str) -> impl Iterator<Item = &'c ToolConfig> {
        self.tools
            .iter()
            .filter(move |(glob, _)| glob_fits(glob, tool))
            .map(|(_, of_tool)| of_tool)
    }
}
