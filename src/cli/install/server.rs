//! A server as a client's file has it, and how it is moved behind the gate.

use std::ops::Range;
use std::path::Path;

/// An entry of a client's file.
#[derive(Clone, Debug)]
pub(super) struct Server {
    /// Its name there.
    pub(super) name: String,
    /// The keys that lead to it.
    pub(super) path: Vec<String>,
    /// Position of its value in the text.
    pub(super) span: Range<usize>,
    /// How the client reaches it.
    pub(super) reached: Connection,
}

/// How a client reaches a server.
#[derive(Clone, Debug)]
pub(super) enum Connection {
    /// As a child process.
    Child(CommandEntry),
    /// Over HTTP.
    Url(UrlEntry),
    /// Through lychgate already.
    Gate,
    /// In a way that cannot be moved: why, and what would do instead.
    Otherwise(String),
}

/// A command in a client's file.
#[derive(Clone, Debug)]
pub(super) struct CommandEntry {
    pub(super) command: String,
    /// Position of the command.
    pub(super) command_span: Range<usize>,
    /// Just behind the bracket that opens the arguments, and whether there are any; or where a list of them can be added.
    pub(super) arguments: Arguments,
}

/// Where arguments are, or would be.
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
    /// Whether it is a server of the older kind, HTTP+SSE.
    pub(super) sse: bool,
    /// What the client sends along, which the gate will do instead.
    pub(super) headers: Vec<(String, Header)>,
    /// Where they stand, with what separates them from the rest.
    pub(super) headers_spans: Vec<Range<usize>>,
}

/// What a header holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Header {
    /// This.
    Text(String),
    /// What a variable holds.
    Variable(String),
    /// `Bearer` and what a variable holds.
    BearerVariable(String),
}

impl Header {
    /// What clients write in a header, with one variable at the most: `${NAME}` or `${env:NAME}`, alone or after `Bearer`.
    /// `None` for what the gate cannot say (`${input:NAME}`, several of them).
    pub(super) fn read(name: &str, written: &str) -> Option<Self> {
        let variable = |text: &str| {
            let inner = text.strip_prefix("${")?.strip_suffix('}')?;
            let name = inner.strip_prefix("env:").unwrap_or(inner);
            let fits =
                !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
            fits.then(|| name.to_owned())
        };
        let is_authorization = name.eq_ignore_ascii_case("authorization");
        if let Some(name) = variable(written) {
            return Some(Self::Variable(name));
        }
        if let (true, Some(name)) = (
            is_authorization,
            written.strip_prefix("Bearer ").and_then(variable),
        ) {
            return Some(Self::BearerVariable(name));
        }
        (!written.contains("${")).then(|| Self::Text(written.to_owned()))
    }
}

/// By what an entry is known that leads to the gate already.
pub(super) struct GateEntry {
    /// How the URLs of the gate begin.
    pub(super) base: String,
    /// The path of this program.
    pub(super) program: String,
    /// The commands and URLs that were ever written and are not put back.
    pub(super) written: Vec<String>,
}

impl GateEntry {
    /// Whether a command is this program already.
    pub(super) fn is_wrap(&self, command: &str, first_argument: Option<&str>) -> bool {
        let name = |path| Path::new(path).file_name();
        let is_program = [name(&*self.program), Some("lychgate".as_ref())].contains(&name(command));
        first_argument == Some("wrap") && (is_program || self.has_written(command))
    }

    fn is_url(&self, url: &str) -> bool {
        url.starts_with(&self.base) || self.has_written(url)
    }

    fn has_written(&self, text: &str) -> bool {
        self.written.iter().any(|written| written == text)
    }
}

impl Connection {
    /// A URL and what goes with it, if the gate can say the same.
    pub(super) fn url(url: UrlEntry, headers: Vec<(String, String)>, known: &GateEntry) -> Self {
        if known.is_url(&url.url) {
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
        let mut read = vec![];
        for (name, written) in headers {
            let Some(header) = Header::read(&name, &written) else {
                let why = format!(
                    "the header `{name}` depends on values that only the client has: add the server to the gate's config manually"
                );
                return Self::Otherwise(why);
            };
            read.push((name, header));
        }
        Self::Url(UrlEntry {
            headers: read,
            ..url
        })
    }

    /// One word of it for a table.
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
            written: vec!["/old/lg".into()],
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
