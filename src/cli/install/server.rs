//! A server as defined in a client's file, and how it is moved behind the gate.

use std::ops::Range;
use std::path::Path;

/// An entry of a client's file.
#[derive(Clone, Debug)]
pub(super) struct Server {
    /// Its name in the file.
    pub(super) name: String,
    /// The keys that lead to it.
    pub(super) path: Vec<String>,
    /// The position of its value in the text.
    pub(super) span: Range<usize>,
    /// How the client reaches it.
    pub(super) connection: Connection,
}

/// How a client reaches a server.
#[derive(Clone, Debug)]
pub(super) enum Connection {
    /// Runs it as a child process.
    Child(CommandEntry),
    /// Connects over HTTP.
    Url(UrlEntry),
    /// Already leads through lychgate.
    Gate,
    /// Cannot be moved; contains the reason and an alternative.
    Otherwise(String),
}

/// A command in a client's file.
#[derive(Clone, Debug)]
pub(super) struct CommandEntry {
    pub(super) command: String,
    /// The position of the command.
    pub(super) command_span: Range<usize>,
    /// The position after the opening bracket of the arguments, and whether the list is empty; or
    /// where to add a list.
    pub(super) arguments: Arguments,
}

/// The position of the arguments, or where they would be.
#[derive(Clone, Debug)]
pub(super) enum Arguments {
    At {
        behind_bracket: usize,
        empty: bool,
    },
    Missing {
        at: usize,
    },
    /// In one list with the command, which is its first element.
    WithCommand {
        behind_bracket: usize,
    },
}

/// A URL in a client's file.
#[derive(Clone, Debug)]
pub(super) struct UrlEntry {
    pub(super) url: String,
    pub(super) url_span: Range<usize>,
    /// Whether the server uses the older transport, HTTP+SSE.
    pub(super) sse: bool,
    /// The headers that the client sends, which the gate will send instead.
    pub(super) headers: Vec<(String, Header)>,
    /// The positions of the headers, including their separators.
    pub(super) headers_spans: Vec<Range<usize>>,
}

/// The value of a header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Header {
    /// A literal value.
    Text(String),
    /// The value of a variable.
    Variable(String),
    /// `Bearer` and the value of a variable.
    BearerVariable(String),
}

impl Header {
    /// Parses a header value of a client, with at most one variable: `${NAME}` or `${env:NAME}`,
    /// alone or after `Bearer`. Returns `None` for values that the gate cannot produce
    /// (`${input:NAME}`, several variables).
    pub(super) fn read(name: &str, value: &str) -> Option<Self> {
        let variable = |text: &str| {
            let inner = text.strip_prefix("${")?.strip_suffix('}')?;
            let name = inner.strip_prefix("env:").unwrap_or(inner);
            let is_valid =
                !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
            is_valid.then(|| name.to_owned())
        };
        let is_authorization = name.eq_ignore_ascii_case("authorization");
        if let Some(name) = variable(value) {
            return Some(Self::Variable(name));
        }
        if let (true, Some(name)) = (
            is_authorization,
            value.strip_prefix("Bearer ").and_then(variable),
        ) {
            return Some(Self::BearerVariable(name));
        }
        (!value.contains("${")).then(|| Self::Text(value.to_owned()))
    }
}

/// Identifies entries that already lead to the gate.
pub(super) struct GateEntry {
    /// The prefix of the gate's URLs.
    pub(super) base: String,
    /// The path of this program.
    pub(super) program: String,
    /// All commands and URLs that were written and have not been restored.
    pub(super) moved_targets: Vec<String>,
}

impl GateEntry {
    /// Reports whether a command already is this program.
    pub(super) fn is_wrap(&self, command: &str, first_argument: Option<&str>) -> bool {
        let name = |path| Path::new(path).file_name();
        let is_program = [name(&*self.program), Some("lychgate".as_ref())].contains(&name(command));
        first_argument == Some("wrap") && (is_program || self.is_moved_target(command))
    }

    fn is_url(&self, url: &str) -> bool {
        url.starts_with(&self.base) || self.is_moved_target(url)
    }

    fn is_moved_target(&self, text: &str) -> bool {
        self.moved_targets.iter().any(|written| written == text)
    }
}

impl Connection {
    /// Returns the connection for a URL with its headers, if the gate can reproduce it.
    pub(super) fn url(
        url: UrlEntry,
        headers: Vec<(String, String)>,
        gate_entry: &GateEntry,
    ) -> Self {
        if gate_entry.is_url(&url.url) {
            return Self::Gate;
        }
        if url.url.contains("${") {
            return Self::Otherwise(
                "its URL contains a variable: write it in full, or add it to the gate's config manually".to_owned(),
            );
        }
        if !(url.url.starts_with("http://") || url.url.starts_with("https://")) {
            return Self::Otherwise("its URL is neither http nor https".to_owned());
        }
        let mut parsed = vec![];
        for (name, value) in headers {
            let Some(header) = Header::read(&name, &value) else {
                let why = format!(
                    "the header `{name}` depends on values that only the client has: add the server to the gate's config manually"
                );
                return Self::Otherwise(why);
            };
            parsed.push((name, header));
        }
        Self::Url(UrlEntry {
            headers: parsed,
            ..url
        })
    }

    /// Returns the type of the connection as a word for a table.
    pub(super) fn word(&self) -> &'static str {
        match self {
            Self::Child(_) => "stdio",
            Self::Url(url) if url.sse => "sse",
            Self::Url(_) => "http",
            Self::Gate => "behind the gate",
            Self::Otherwise(_) => "cannot be moved",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_with_one_variable_can_be_said_by_the_gate() {
        let read = |written| Header::read("Authorization", written);
        assert_eq!(read("Bearer abc"), Some(Header::Text("Bearer abc".into())));
        assert_eq!(read("${TOKEN}"), Some(Header::Variable("TOKEN".into())));
        assert_eq!(read("${env:TOKEN}"), Some(Header::Variable("TOKEN".into())));
        assert_eq!(
            read("Bearer ${env:TOKEN}"),
            Some(Header::BearerVariable("TOKEN".into()))
        );
        assert_eq!(read("Bearer ${input:token}"), None);
        assert_eq!(read("Basic ${TOKEN}"), None);
        assert_eq!(Header::read("X-Other", "Bearer ${TOKEN}"), None);
        assert_eq!(read("Bearer ${A}${B}"), None);
    }

    #[test]
    fn the_gate_knows_itself() {
        let known = GateEntry {
            base: "http://gate/".into(),
            program: "/opt/lg-1.2".into(),
            moved_targets: vec!["/old/lg".into()],
        };
        for command in [
            "/usr/bin/lychgate",
            "lychgate",
            "/opt/lg-1.2",
            "/home/me/bin/lg-1.2",
            "/old/lg",
        ] {
            assert!(known.is_wrap(command, Some("wrap")), "{command}");
            assert!(!known.is_wrap(command, Some("demo")), "{command}");
        }
        assert!(!known.is_wrap("npx", Some("wrap")) && !known.is_wrap("/other/lg", Some("wrap")));
    }
}
