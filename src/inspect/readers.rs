//! The policy's settings for how arguments are read, whatever they are called.

use crate::config::{PolicyConfig, ReadsAs};
use crate::text::glob_matches;

use super::arguments::Head;
use super::tools::Definition;

/// All settings of a policy.
#[derive(Clone, Debug, Default)]
pub(super) struct Readers(Vec<Reader>);

/// Tool and argument, both as globs, and how the argument is read.
#[derive(Clone, Debug)]
struct Reader {
    tool: String,
    argument: String,
    head: Head,
}

/// The settings for one tool.
pub(super) struct ToolReaders<'p> {
    readers: Vec<&'p Reader>,
    definition: Option<&'p Definition>,
}

impl Readers {
    /// Collects the settings of single tools first, then the lists; arguments that nothing executes
    /// precede those that something executes.
    pub(super) fn new(config: &PolicyConfig) -> Self {
        let tool_readers = config.tools.iter().flat_map(|(tool, of_tool)| {
            of_tool
                .arguments
                .iter()
                .filter_map(move |(argument, of_argument)| {
                    Some(Reader {
                        tool: tool.clone(),
                        argument: argument.clone(),
                        head: head(of_argument.read_as?),
                    })
                })
        });
        let lists = [
            (&config.text, ReadsAs::Text),
            (&config.shell, ReadsAs::Shell),
            (&config.path, ReadsAs::Path),
            (&config.url, ReadsAs::Url),
            (&config.sql, ReadsAs::Sql),
            (&config.sql_read_only, ReadsAs::Sql),
        ];
        let list_readers = lists.into_iter().flat_map(|(list, reads)| {
            list.iter()
                .flat_map(move |dotted| split(dotted, head(reads)))
        });
        Self(tool_readers.chain(list_readers).collect())
    }

    /// Returns the settings for one tool.
    pub(super) fn for_tool<'p>(
        &'p self,
        tool: &str,
        definition: Option<&'p Definition>,
    ) -> ToolReaders<'p> {
        ToolReaders {
            readers: self
                .0
                .iter()
                .filter(|reader| glob_matches(&reader.tool, tool))
                .collect(),
            definition,
        }
    }
}

impl ToolReaders<'_> {
    /// Returns how an argument is read, if the policy defines it.
    pub(super) fn kind(&self, argument: &str) -> Option<Head> {
        self.readers
            .iter()
            .find(|reader| glob_matches(&reader.argument, argument))
            .map(|reader| reader.head)
    }

    /// Returns how an argument is read, if the tool's definition indicates it.
    pub(super) fn head(&self, argument: &str) -> Option<Head> {
        self.definition
            .and_then(|tool| tool.argument_head(argument))
    }
}

/// `tool.argument`, split at each dot, since either name may contain one.
fn split(dotted: &str, head: Head) -> impl Iterator<Item = Reader> + '_ {
    dotted.match_indices('.').filter_map(move |(at, _)| {
        let tool = dotted.get(..at)?.to_owned();
        let argument = dotted.get(at + 1..)?.to_owned();
        Some(Reader {
            tool,
            argument,
            head,
        })
    })
}

fn head(reads: ReadsAs) -> Head {
    match reads {
        ReadsAs::Shell => Head::Shell,
        ReadsAs::Path => Head::Path,
        ReadsAs::Url => Head::Url,
        ReadsAs::Sql => Head::Sql,
        ReadsAs::Text => Head::Text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{ArgumentConfig, ToolConfig};

    #[test]
    fn the_nearest_pin_counts() {
        let read_as = |reads| ArgumentConfig {
            read_as: Some(reads),
            ..ArgumentConfig::default()
        };
        let tool = ToolConfig {
            arguments: [("q".to_owned(), read_as(ReadsAs::Path))].into(),
            ..ToolConfig::default()
        };
        let config = PolicyConfig {
            shell: vec!["run.q".into(), "*.go".into(), "a.b.c".into()],
            text: vec!["run.note".into()],
            url: vec!["fetch_*.x".into()],
            tools: vec![("run".into(), tool)],
            ..PolicyConfig::default()
        };
        let readers = Readers::new(&config);
        for (tool, argument, kind) in [
            ("run", "q", Some(Head::Path)),
            ("run", "note", Some(Head::Text)),
            ("walk", "note", None),
            ("walk", "go", Some(Head::Shell)),
            ("a.b", "c", Some(Head::Shell)),
            ("a", "b.c", Some(Head::Shell)),
            ("a", "c", None),
            ("fetch_it", "x", Some(Head::Url)),
        ] {
            assert_eq!(
                readers.for_tool(tool, None).kind(argument),
                kind,
                "{tool}.{argument}"
            );
        }
    }
}
