//! What a policy says of who reads an argument, whatever it is called.

use crate::config::{PolicyConfig, ReadsAs};
use crate::text::glob_fits;

use super::argument_names::Kind;
use super::tools::Definition;

/// Every pin of a policy.
#[derive(Clone, Debug, Default)]
pub(super) struct Pins(Vec<Pin>);

/// Whose argument it is and what it is called, globs both, and who reads it.
#[derive(Clone, Debug)]
struct Pin {
    tool: String,
    argument: String,
    kind: Kind,
}

/// The pins of one tool.
pub(super) struct Pinned<'p> {
    pins: Vec<&'p Pin>,
    definition: Option<&'p Definition>,
}

impl Pins {
    /// Those that stand with single tools first, then the lists; what nothing runs before what something does.
    pub(super) fn new(config: &PolicyConfig) -> Self {
        let of_tools = config.tools.iter().flat_map(|(tool, of_tool)| {
            of_tool.arguments.iter().filter_map(move |(argument, of_argument)| {
                Some(Pin { tool: tool.clone(), argument: argument.clone(), kind: kind(of_argument.read_as?) })
            })
        });
        let lists = [
            (&config.text, ReadsAs::Text),
            (&config.shell, ReadsAs::Shell),
            (&config.path, ReadsAs::Path),
            (&config.url, ReadsAs::Url),
        ];
        let listed = lists.into_iter().flat_map(|(list, reads)| list.iter().flat_map(move |written| split(written, kind(reads))));
        Self(of_tools.chain(listed).collect())
    }

    /// Those of one tool.
    pub(super) fn of<'p>(&'p self, tool: &str, definition: Option<&'p Definition>) -> Pinned<'p> {
        Pinned { pins: self.0.iter().filter(|pin| glob_fits(&pin.tool, tool)).collect(), definition }
    }
}

impl Pinned<'_> {
    /// Who reads an argument, if the policy or the tool's own schema says so.
    pub(super) fn kind(&self, argument: &str) -> Option<Kind> {
        let pinned = self.pins.iter().find(|pin| glob_fits(&pin.argument, argument)).map(|pin| pin.kind);
        pinned.or_else(|| self.definition.is_some_and(|tool| tool.is_url(argument)).then_some(Kind::Url))
    }
}

/// `tool.argument` at each point, for either name may hold one.
fn split(written: &str, kind: Kind) -> impl Iterator<Item = Pin> + '_ {
    written.match_indices('.').filter_map(move |(at, _)| {
        let (tool, argument) = (written.get(..at)?.to_owned(), written.get(at + 1..)?.to_owned());
        Some(Pin { tool, argument, kind })
    })
}

fn kind(reads: ReadsAs) -> Kind {
    match reads {
        ReadsAs::Shell => Kind::Shell,
        ReadsAs::Path => Kind::Path,
        ReadsAs::Url => Kind::Url,
        ReadsAs::Text => Kind::Text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{ArgumentConfig, ToolConfig};

    #[test]
    fn the_nearest_pin_counts() {
        let read_as = |reads| ArgumentConfig { read_as: Some(reads) };
        let tool = ToolConfig { arguments: [("q".to_owned(), read_as(ReadsAs::Path))].into() };
        let config = PolicyConfig {
            shell: vec!["run.q".into(), "*.go".into(), "a.b.c".into()],
            text: vec!["run.note".into()],
            url: vec!["fetch_*.x".into()],
            tools: vec![("run".into(), tool)],
            ..PolicyConfig::default()
        };
        let pins = Pins::new(&config);
        for (tool, argument, kind) in [
            ("run", "q", Some(Kind::Path)),
            ("run", "note", Some(Kind::Text)),
            ("walk", "note", None),
            ("walk", "go", Some(Kind::Shell)),
            ("a.b", "c", Some(Kind::Shell)),
            ("a", "b.c", Some(Kind::Shell)),
            ("a", "c", None),
            ("fetch_it", "x", Some(Kind::Url)),
        ] {
            assert_eq!(pins.of(tool, None).kind(argument), kind, "{tool}.{argument}");
        }
    }
}
