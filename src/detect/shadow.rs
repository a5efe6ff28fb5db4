//! Rules of the kind `shadow`: tools of one server that imitate or mention the tools of another.

use std::collections::HashMap;

use super::{Detector, Kind, Match, Place, Surface};
use crate::document::Table;
use crate::message::Role;
use crate::text::{Text, skeleton};

/// Maximum length of a name that is looked up, in bytes.
const NAME_BYTES: usize = 200;
/// Maximum number of words of a text that are looked up.
const WORDS: usize = 20_000;

/// The kind `shadow`.
#[derive(Debug)]
pub struct Shadow;

/// Settings of a rule of this kind.
#[derive(Debug)]
pub struct Spec {
    how: NameUse,
    /// Names that belong to no server: the agent's own tools.
    names: Vec<String>,
}

enum_with_names! {
    /// What a server does with the name of another server's tool.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum NameUse {
        /// One of its tools has the same name.
        Same = "same",
        /// One of its tools has a similar-looking name, or one that looks like that of another of
        /// its own tools.
        Alike = "alike",
        /// One of its texts mentions the name.
        Named = "named",
    }
}

/// Names of tools and the servers that have them, indexed by their look-alike form.
#[derive(Clone, Debug, Default)]
pub struct Names(HashMap<Box<str>, Vec<ServerTool>>);

/// A server and the name of one of its tools.
type ServerTool = (Box<str>, Box<str>);

impl Names {
    /// Adds a tool of a server.
    pub fn add(&mut self, server: &str, name: &str) {
        if (1..=NAME_BYTES).contains(&name.len()) {
            let similar = self.0.entry(skeleton(name).into()).or_default();
            let entry = (server.into(), name.into());
            if !similar.contains(&entry) {
                similar.push(entry);
            }
        }
    }

    /// Returns each tool with its server, in no particular order.
    pub fn tools(&self) -> impl Iterator<Item = &(Box<str>, Box<str>)> {
        self.0.values().flatten()
    }

    fn similar_to(&self, name: &str) -> &[ServerTool] {
        self.0.get(&*skeleton(name)).map_or(&[], Vec::as_slice)
    }
}

/// The tools that a definition is compared with.
#[derive(Clone, Copy, Debug)]
pub struct KnownTools<'n> {
    /// The tools of all servers.
    pub all_servers: &'n Names,
    /// The tools in the same list.
    pub same_list: &'n Names,
    /// The server that sent the list.
    pub server: &'n str,
}

impl Kind for Shadow {
    type Spec = Spec;

    fn read(table: &Table<'_>) -> Option<Spec> {
        if !table.has("how") {
            table.missing("how", "`same`, `alike` or `named`");
        }
        let how = table.choice("how", &NameUse::WORDS);
        let names = table
            .strings("names")
            .into_iter()
            .map(|name| name.value)
            .collect();
        table.finish();
        Some(Spec { how: how?, names })
    }

    fn build(rules: &[(usize, &Spec)]) -> Result<Box<dyn Detector>, Vec<(usize, String)>> {
        let rule = |(rule, spec): &(usize, &Spec)| {
            let mut rule_names = Names::default();
            spec.names.iter().for_each(|name| rule_names.add("", name));
            Rule {
                rule: *rule,
                how: spec.how,
                rule_names,
            }
        };
        Ok(Box::new(Shadows(rules.iter().map(rule).collect())))
    }
}

/// All shadow rules of a rule set.
#[derive(Debug)]
struct Shadows(Vec<Rule>);

#[derive(Debug)]
struct Rule {
    rule: usize,
    how: NameUse,
    /// The names from the rule, under a server without a name.
    rule_names: Names,
}

impl Detector for Shadows {
    fn scan(&self, text: &Text<'_>, place: &Place<'_>, matches: &mut Vec<Match>) {
        let raw = text.raw();
        let in_list = place.surface == Surface::Definition
            && place.role == Role::Value
            && place.method == Some("tools/list");
        if !in_list && !place.trial {
            return;
        }
        // A test case of one word is a name. In a list, a string is a name if it is that of the
        // tool described.
        let is_name = if place.trial {
            !raw.contains(' ')
        } else {
            place.tool == Some(raw)
        };
        for Rule {
            rule,
            how,
            rule_names,
        } in &self.0
        {
            let span = match how {
                NameUse::Same | NameUse::Alike if is_name && raw.len() <= NAME_BYTES => {
                    let other = |(server, name): &ServerTool| match how {
                        NameUse::Same => {
                            **name == *raw
                                && place
                                    .inbound()
                                    .known_tools
                                    .is_none_or(|listing| **server != *listing.server)
                        }
                        _ => **name != *raw,
                    };
                    similar_tools(rule_names, place, raw)
                        .any(other)
                        .then_some(0..raw.len())
                }
                NameUse::Named if !is_name => find_mention(raw, rule_names, place),
                _ => None,
            };
            if let Some(span) = span {
                matches.push(Match::new(*rule, Some(span), "shadow"));
            }
        }
    }
}

/// Returns the known tools whose names look like `name`.
fn similar_tools<'n>(
    rule_names: &'n Names,
    place: &Place<'n>,
    name: &str,
) -> impl Iterator<Item = &'n ServerTool> {
    let listed = place.inbound().known_tools.map(|listing| {
        [
            listing.all_servers.similar_to(name),
            listing.same_list.similar_to(name),
        ]
    });
    rule_names
        .similar_to(name)
        .iter()
        .chain(listed.into_iter().flatten().flatten())
}

/// Returns the place where a text mentions a tool that another server has and its own server does
/// not have.
fn find_mention(
    raw: &str,
    rule_names: &Names,
    place: &Place<'_>,
) -> Option<std::ops::Range<usize>> {
    let mut at = 0;
    let is_word_char = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    for (count, piece) in raw.split(|c: char| !is_word_char(c)).enumerate() {
        let start = at;
        let end = at + piece.len();
        at = end
            + raw
                .get(end..)
                .and_then(|rest| rest.chars().next())
                .map_or(0, char::len_utf8);
        let name = piece.trim_end_matches(['.', '-']);
        if count >= WORDS
            || name.len() > NAME_BYTES
            || name.len() < 3
            || !(is_distinctive(name) || is_quoted(raw, start, end))
        {
            continue;
        }
        let same = similar_tools(rule_names, place, name).filter(|(_, known)| **known == *name);
        let servers: Vec<&str> = same.map(|(server, _)| &**server).collect();
        if !servers.is_empty()
            && place
                .inbound()
                .known_tools
                .is_none_or(|listing| !servers.contains(&listing.server))
        {
            return Some(start..start + name.len());
        }
    }
    None
}

/// Reports whether a word can only be a name and not an ordinary word: joined, or with a capital
/// inside.
fn is_distinctive(name: &str) -> bool {
    let joined = name.trim_matches('_').contains('_') || (name.contains('-') && name.len() > 8);
    joined
        || name
            .chars()
            .zip(name.chars().skip(1))
            .any(|(a, b)| a.is_lowercase() && b.is_uppercase())
}

fn is_quoted(raw: &str, start: usize, end: usize) -> bool {
    let before = raw
        .get(..start)
        .and_then(|before| before.chars().next_back());
    let after = raw.get(end..).and_then(|after| after.chars().next());
    before.is_some() && before == after && matches!(before, Some('`' | '\'' | '"'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::detect::{Details, InboundDetails};

    fn detector() -> Box<dyn Detector> {
        let specs = NameUse::ALL.map(|how| Spec {
            how,
            names: vec!["TodoWrite".into()],
        });
        Shadow::build(&specs.iter().enumerate().collect::<Vec<_>>()).unwrap()
    }

    fn matched_rules(detector: &dyn Detector, tool: &str, text: &str) -> Vec<usize> {
        let mut all = Names::default();
        let mut same_list = Names::default();
        [
            ("mail", "send_email"),
            ("mail", "search"),
            ("files", "read_file"),
        ]
        .iter()
        .for_each(|(server, name)| all.add(server, name));
        ["read_file", "readFi1e", "list"]
            .iter()
            .for_each(|name| same_list.add("files", name));
        let known_tools = KnownTools {
            all_servers: &all,
            same_list: &same_list,
            server: "files",
        };
        let place = Place {
            surface: Surface::Definition,
            method: Some("tools/list"),
            tool: Some(tool),
            details: Details::Inbound(InboundDetails {
                known_tools: Some(&known_tools),
                ..InboundDetails::default()
            }),
            ..Place::default()
        };
        let mut found = Vec::new();
        detector.scan(&Text::new(text), &place, &mut found);
        found.into_iter().map(|found| found.rule).collect()
    }

    #[test]
    fn names_and_what_is_said_of_them() {
        let detector = detector();
        for (tool, text, rules) in [
            ("send_email", "send_email", vec![0]),
            ("send-emai1", "send-emai1", vec![1]),
            ("read_file", "read_file", vec![1]),
            ("list", "list", vec![]),
            ("TodoWrite", "TodoWrite", vec![0]),
            (
                "list",
                "Lists. Before using `send_email`, call this.",
                vec![2],
            ),
            ("list", "Lists files for the search tool.", vec![]),
            ("list", "Lists files for 'search'.", vec![2]),
            ("list", "Give its result to read_file.", vec![]),
            ("list", "Better than TodoWrite.", vec![2]),
        ] {
            assert_eq!(matched_rules(&*detector, tool, text), rules, "{text}");
        }
    }
}
