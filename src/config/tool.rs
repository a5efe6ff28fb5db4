//! Settings for single tools: `[policy.NAME.tool.TOOL]`.

use std::collections::BTreeMap;

use super::{AskTool, PolicyConfig, ToolLimits};
use crate::detect::url::HostList;
use crate::text::glob_matches;

/// The settings of a tool. Settings that are missing are taken from the policy.
#[derive(Clone, Debug, Default)]
pub struct ToolConfig {
    /// Whether the tool is hidden from agents and may not be called (`hidden`).
    pub hidden: Option<bool>,
    /// The description that agents get in place of the server's (`description`).
    pub description: Option<String>,
    /// Settings of arguments, by names joined by dots.
    pub arguments: BTreeMap<String, ArgumentConfig>,
    /// Internal hosts that the tool may reach nevertheless, and hosts that it may not (`urls`).
    pub urls: HostList,
    /// Which of its calls require approval (`ask`).
    pub ask: Option<AskTool>,
    /// Whether SQL in its arguments may contain only queries (`sql_read_only`).
    pub sql_read_only: Option<bool>,
    /// Which of the texts that it returns are rendered as HTML pages (`render_pages`).
    pub render_pages: Option<RenderPages>,
    /// Whether the texts that it returns are treated as instruction files (`instruction_files`).
    pub instruction_files: Option<InstructionFiles>,
    /// Limits on the number, rate and size of its calls.
    pub limits: ToolLimits,
}

enum_with_names! {
    /// Which HTML texts are rendered for agents as a person would see them, without markup. Named
    /// as in the config file.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub enum RenderPages {
        /// Every text that contains HTML, including source files.
        Always = "always",
        /// A text that is an HTML page from its beginning and does not come from a file.
        #[default]
        Pages = "pages",
        Never = "never",
    }
}

impl RenderPages {
    /// Reports whether a text that contains HTML is rendered; `is_document` is whether it is a page
    /// from its beginning.
    pub fn renders(self, is_document: bool) -> bool {
        match self {
            Self::Always => true,
            Self::Pages => is_document,
            Self::Never => false,
        }
    }
}

enum_with_names! {
    /// Which texts are treated as files that instruct agents (`AGENTS.md`): instructions pass,
    /// unless they hide something from the user or send data away. Named as in the config file.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum InstructionFiles {
        /// Every text.
        Always = "always",
        /// A text that was requested by the path or URI of such a file.
        #[default]
        Named = "named",
        Never = "never",
    }
}

/// The settings of one argument of a tool.
#[derive(Clone, Debug, Default)]
pub struct ArgumentConfig {
    /// The description that agents get in place of the server's (`description`).
    pub description: Option<String>,
    /// Whether a call must include it (`required`).
    pub required: bool,
    /// The path format that is required: absolute (`format = "absolute-path"`), or relative without
    /// leaving the folder (`relative-path`).
    pub format: Option<PathFormat>,
    /// Keywords of JSON Schema by name, with their values as JSON: `minimum`, `maximum`,
    /// `minLength`, `maxLength`, `maxItems`, `pattern`, `enum`, `const`, `default`.
    pub keywords: BTreeMap<&'static str, String>,
    /// How it is interpreted (`read_as`).
    pub read_as: Option<ReadsAs>,
}

enum_with_names! {
    /// The format of paths that an argument accepts. Named as in the config file.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum PathFormat {
        /// A path from the root, without `..`.
        Absolute = "absolute-path",
        /// A path relative to some folder, without `..`.
        Relative = "relative-path",
    }
}

/// Whether the input schemas of tools are enforced: `[policy.NAME.schema]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SchemaConfig {
    /// Whether a call that violates the `inputSchema` listed by its server is refused (`enforce`).
    pub enforce: bool,
    /// Whether a tool that was in no list may be called (`unlisted = "pass"`).
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

enum_with_names! {
    /// How an argument is interpreted, as set in the config file.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum ReadsAs {
        Shell = "shell",
        /// As a path in a file system.
        Path = "path",
        /// As a URL that a client connects to.
        Url = "url",
        /// As SQL that a database executes.
        Sql = "sql",
        /// As plain text that nothing acts on.
        Text = "text",
    }
}

impl PolicyConfig {
    /// Returns the settings of a tool, most specific first: its exact name, then matching globs,
    /// longest first.
    pub fn tool_settings<'c>(&'c self, tool: &'c str) -> impl Iterator<Item = &'c ToolConfig> {
        self.tools
            .iter()
            .filter(move |(glob, _)| glob_matches(glob, tool))
            .map(|(_, config)| config)
    }
}
