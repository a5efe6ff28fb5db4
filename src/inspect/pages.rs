//! Determines which texts an agent receives as a person would see them: web pages. What a tool
//! reads from a file or a repository is forwarded as written, since an agent edits it and writes it
//! back.

use crate::config::{PolicyConfig, RenderPages, name_words};
use crate::message::Value;
use crate::protocol::{CallTarget, OpenRequest, is_web_url, names_source_file};
use crate::text::glob_matches;

/// The policy's settings for rendering.
#[derive(Clone, Debug)]
pub(super) struct Pages {
    all: RenderPages,
    /// By tool glob, most specific first.
    by_tool: Vec<(Box<str>, RenderPages)>,
}

/// Words in names of tools that return files or parts of a repository.
const FILE_WORDS: [&str; 12] = [
    "file",
    "files",
    "git",
    "cat",
    "diff",
    "commit",
    "blob",
    "repo",
    "repository",
    "patch",
    "source",
    "notebook",
];
/// First words of names of tools that return files, unless a word of [`WEB_WORDS`] follows.
const READING_WORDS: [&str; 2] = ["read", "view"];
const WEB_WORDS: [&str; 12] = [
    "page", "pages", "url", "urls", "web", "website", "webpage", "site", "link", "html", "article",
    "browser",
];
/// Types of text that contain tags and are not pages.
const NOT_PAGES: [&str; 7] = [
    "text/xml",
    "application/xml",
    "image/svg+xml",
    "text/markdown",
    "text/x-",
    "application/x-",
    "profile=mcp-app",
];

impl Pages {
    pub(super) fn new(config: &PolicyConfig) -> Self {
        let by_tool = config
            .tools
            .iter()
            .filter_map(|(glob, tool)| Some((glob.as_str().into(), tool.render_pages?)));
        Self {
            all: config.render_pages,
            by_tool: by_tool.collect(),
        }
    }

    /// Returns what is rendered of the response to a request.
    pub(super) fn for_request(&self, request: Option<&OpenRequest>) -> Rendering {
        let tool = request.and_then(|asked| asked.tool.as_deref());
        let tool_setting = tool.and_then(|tool| {
            self.by_tool
                .iter()
                .find(|(glob, _)| glob_matches(glob, tool))
        });
        let pages = tool_setting.map_or(self.all, |(_, render)| *render);
        Rendering {
            pages,
            returns_file: request.is_some_and(returns_file),
        }
    }
}

/// What is rendered of one response.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rendering {
    pages: RenderPages,
    /// Whether the response is a file, judging by the request.
    returns_file: bool,
}

impl Rendering {
    /// Returns what is rendered of a string that `holder` contains.
    pub(super) fn within(self, holder: Option<Value<'_>>) -> RenderPages {
        match self.pages {
            RenderPages::Pages if is_file(holder, self.returns_file) => RenderPages::Never,
            pages => pages,
        }
    }
}

/// Returns whether a string was read from a file or a repository.
fn is_file(holder: Option<Value<'_>>, returns_file: bool) -> bool {
    let member = |name: &str| holder.and_then(|holder| holder.get_str(name));
    if let Some(kind) = member("mimeType") {
        let kind = kind.to_ascii_lowercase();
        if NOT_PAGES.iter().any(|other| kind.contains(other)) {
            return true;
        }
    }
    if let Some(uri) = member("uri") {
        // A URI with a scheme of its own (`ui:`, `repo:`) is a file of the server.
        return !is_web_url(&uri) || names_source_file(&uri);
    }
    returns_file
}

/// Returns whether the response to a request is a file, judging by its arguments and the name of
/// its tool.
fn returns_file(request: &OpenRequest) -> bool {
    match request.target {
        CallTarget::Web => false,
        CallTarget::File | CallTarget::InstructionFile => true,
        CallTarget::Other => request.tool.as_deref().is_some_and(names_file_tool),
    }
}

/// Returns whether a tool returns files, judging by its name: `read_text_file`, `getFileContents`,
/// `git_show`.
fn names_file_tool(tool: &str) -> bool {
    let words = name_words(tool.chars());
    let has = |known: &[&str]| words.iter().any(|word| known.contains(&&**word));
    let reads = words
        .first()
        .is_some_and(|first| READING_WORDS.contains(&&**first));
    has(&FILE_WORDS) || (reads && !has(&WEB_WORDS))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inspect::tests::context;

    #[test]
    fn tools_that_return_files_are_known_by_name() {
        let files =
            "read_text_file getFileContents git_show view cat get_pull_request_diff read_resource";
        for tool in files.split(' ') {
            assert!(names_file_tool(tool), "{tool}");
        }
        let pages = "fetch read_page readUrl browser_snapshot get_article search scrape";
        for tool in pages.split(' ') {
            assert!(!names_file_tool(tool), "{tool}");
        }
    }

    #[test]
    fn an_argument_decides_before_the_name_and_a_tool_before_the_policy() {
        let mut config = PolicyConfig::default();
        let of = |config: &PolicyConfig, tool, target| {
            let mut request = context("tools/call", tool).requests[0].clone();
            request.target = target;
            Pages::new(config).for_request(Some(&request)).within(None)
        };
        assert_eq!(of(&config, "fetch", CallTarget::Other), RenderPages::Pages);
        assert_eq!(of(&config, "fetch", CallTarget::File), RenderPages::Never);
        let read = of(&config, "read_file", CallTarget::Web);
        assert_eq!(read, RenderPages::Pages);
        config.render_pages = RenderPages::Never;
        let tool = crate::config::ToolConfig {
            render_pages: Some(RenderPages::Always),
            ..Default::default()
        };
        config.tools.push(("read_*".to_owned(), tool));
        assert_eq!(of(&config, "fetch", CallTarget::Other), RenderPages::Never);
        let read = of(&config, "read_file", CallTarget::File);
        assert_eq!(read, RenderPages::Always);
    }
}
