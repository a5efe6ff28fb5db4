//! Parses selectors.

use super::select::{Combinator, Selector, Simple, Test, Tree};

/// Maximum number of compounds of a selector; longer ones count as `Perhaps`.
const COMPOUNDS: usize = 12;

impl Selector {
    /// Reads a selector. Returns `None` if it selects something other than an element, or a state
    /// that pages do not start in.
    pub(super) fn read(text: &str, tree: &Tree) -> Option<Self> {
        let mut reader = Reader {
            rest: text,
            tree,
            ids: 0,
            classes: 0,
            names: 0,
        };
        let mut compounds = Vec::new();
        let mut combinator = Combinator::Descendant;
        loop {
            reader.skip_space();
            let compound = reader.read_compound(true);
            if compound.contains(&Simple::Never) {
                return None;
            }
            let is_empty = compound.is_empty();
            compounds.push((combinator, compound));
            let is_spaced = reader.skip_space();
            let (next, sign) = match reader.rest.bytes().next() {
                None => break,
                Some(b'>') => (Combinator::Child, 1),
                Some(b'+' | b'~') => (Combinator::Sibling, 1),
                Some(_) if is_spaced && !is_empty => (Combinator::Descendant, 0),
                Some(_) => (Combinator::Sibling, usize::MAX),
            };
            if sign == usize::MAX || compounds.len() > COMPOUNDS {
                // A selector that cannot be read, or is too long, counts as `Perhaps`.
                if let Some((_, last)) = compounds.last_mut() {
                    last.push(Simple::Perhaps);
                }
                break;
            }
            reader.skip(sign);
            combinator = next;
        }
        let specificity =
            (reader.ids.min(255) << 16) | (reader.classes.min(255) << 8) | reader.names.min(255);
        // The combinator between two compounds is stored with the later one, since they are read
        // from the end.
        compounds.reverse();
        let key = compounds.first().and_then(|(_, compound)| {
            // An id before a class, and a class before a name.
            let keys = compound.iter().filter_map(|simple| match simple {
                Simple::Id(id) => Some((0, *id)),
                Simple::Class(class) => Some((1, *class)),
                Simple::Name(name) => Some((2, *name)),
                _ => None,
            });
            keys.min_by_key(|(rank, _)| *rank).map(|(_, key)| key)
        });
        Some(Self {
            compounds,
            specificity,
            key,
        })
    }
}

struct Reader<'s, 't> {
    rest: &'s str,
    tree: &'t Tree,
    ids: u32,
    classes: u32,
    names: u32,
}

impl Reader<'_, '_> {
    /// Skips white space and comments. Returns whether there were any.
    fn skip_space(&mut self) -> bool {
        let before = self.rest.len();
        loop {
            self.rest = self.rest.trim_start();
            let Some(comment) = self.rest.strip_prefix("/*") else {
                break;
            };
            self.rest = comment.split_once("*/").map_or("", |(_, after)| after);
        }
        self.rest.len() < before
    }

    fn skip(&mut self, bytes: usize) {
        self.rest = self.rest.get(bytes..).unwrap_or_default();
    }

    /// Reads a name, decodes its escapes and converts it to lower case.
    fn read_name(&mut self) -> String {
        let bytes = self.rest.as_bytes();
        let mut end = 0;
        while let Some(b) = bytes.get(end) {
            end += match b {
                b'\\' => {
                    let digits = bytes
                        .iter()
                        .skip(end + 1)
                        .take(6)
                        .take_while(|b| b.is_ascii_hexdigit())
                        .count();
                    let space = digits > 0
                        && bytes
                            .get(end + 1 + digits)
                            .is_some_and(u8::is_ascii_whitespace);
                    1 + digits.max(1) + usize::from(space)
                }
                b if b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_') || *b >= 0x80 => 1,
                _ => break,
            };
        }
        let end = self.rest.ceil_char_boundary(end);
        let name = super::scan::decode(self.rest.get(..end).unwrap_or_default()).to_lowercase();
        self.skip(end);
        name
    }

    fn read_compound(&mut self, outer: bool) -> Vec<Simple> {
        let mut simples = Vec::new();
        while let Some(b) = self.rest.bytes().next() {
            match b {
                b'*' => self.skip(1),
                b'&' => {
                    self.skip(1);
                    simples.push(Simple::Perhaps);
                }
                b'|' => self.skip(1),
                b'.' | b'#' => {
                    self.skip(1);
                    let name = self.read_name();
                    let number = self.tree.hash_name(&name);
                    if b == b'.' {
                        self.classes += u32::from(outer);
                        simples.push(Simple::Class(number));
                    } else {
                        self.ids += u32::from(outer);
                        simples.push(Simple::Id(number));
                    }
                }
                b'[' => {
                    self.classes += u32::from(outer);
                    simples.push(self.read_attribute());
                }
                b':' => simples.push(self.read_pseudo(outer)),
                b if b.is_ascii_alphabetic() || matches!(b, b'_' | b'-' | b'\\') || b >= 0x80 => {
                    self.names += u32::from(outer);
                    let name = self.read_name();
                    simples.push(Simple::Name(self.tree.hash_name(&name)));
                }
                _ => break,
            }
        }
        simples
    }

    /// Returns the content of the brackets that open here.
    fn read_bracketed(&mut self, close: u8) -> String {
        self.skip(1);
        let end = super::scan::find_end(self.rest, &[close]).map_or(self.rest.len(), |(at, _)| at);
        let inner = self.rest.get(..end).unwrap_or_default().to_owned();
        self.skip(end + 1);
        inner
    }

    fn read_attribute(&mut self) -> Simple {
        let inner = super::scan::decode(&self.read_bracketed(b']'));
        let inner = inner.trim_start().trim_start_matches(['*', '|']);
        let Some((name, value)) = inner.split_once('=') else {
            return Simple::Attribute(inner.trim().to_owned(), Test::Exists, String::new());
        };
        let (name, test) = match name.trim_end() {
            name if name.ends_with('~') => (name.trim_end_matches('~'), Test::Word),
            name if name.ends_with('|') => (name.trim_end_matches('|'), Test::Dash),
            name if name.ends_with('^') => (name.trim_end_matches('^'), Test::Start),
            name if name.ends_with('$') => (name.trim_end_matches('$'), Test::End),
            name if name.ends_with('*') => (name.trim_end_matches('*'), Test::Contains),
            name => (name, Test::Equals),
        };
        let value = value.trim();
        let value = value
            .strip_suffix(" i")
            .or(value.strip_suffix(" s"))
            .unwrap_or(value)
            .trim()
            .trim_matches(['"', '\'']);
        Simple::Attribute(name.trim().to_owned(), test, value.to_owned())
    }

    fn read_pseudo(&mut self, outer: bool) -> Simple {
        let colons = self.rest.bytes().take_while(|b| *b == b':').count();
        self.skip(colons);
        let name = self.read_name();
        let inner = self
            .rest
            .starts_with('(')
            .then(|| self.read_bracketed(b')'));
        if name == "first-line" {
            return Simple::Perhaps;
        }
        if colons > 1 {
            return Simple::Never;
        }
        self.classes += u32::from(outer && name != "where");
        let nth_child = |first| Simple::Nth(0, first);
        match (name.as_str(), inner) {
            ("not", Some(inner)) => Simple::Not(self.read_alternatives(&inner)),
            ("is" | "where" | "matches" | "-webkit-any" | "-moz-any", Some(inner)) => {
                Simple::Any(self.read_alternatives(&inner))
            }
            ("root", _) => Simple::Root,
            ("first-child", _) => nth_child(1),
            ("nth-child", Some(inner)) => match inner.trim() {
                "odd" | "2n+1" => Simple::Nth(2, 1),
                "even" | "2n" => Simple::Nth(2, 2),
                "n" | "1n" => Simple::Nth(1, 1),
                n => n.parse().map_or(Simple::Perhaps, nth_child),
            },
            ("checked", _) => Simple::Attribute("checked".into(), Test::Exists, String::new()),
            ("disabled", _) => Simple::Attribute("disabled".into(), Test::Exists, String::new()),
            ("link" | "any-link", _) => {
                Simple::Attribute("href".into(), Test::Exists, String::new())
            }
            ("defined" | "enabled" | "read-only" | "scope" | "host" | "dir" | "lang", _) => {
                Simple::Perhaps
            }
            (
                "hover" | "focus" | "active" | "visited" | "target" | "focus-within"
                | "focus-visible" | "before" | "after" | "first-letter" | "popover-open" | "modal"
                | "fullscreen" | "playing" | "paused" | "invalid" | "user-invalid" | "autofill"
                | "open" | "indeterminate",
                _,
            ) => Simple::Never,
            _ => Simple::Perhaps,
        }
    }

    fn read_alternatives(&mut self, inner: &str) -> Vec<Vec<Simple>> {
        let mut compounds = Vec::new();
        let mut rest = inner;
        while !rest.trim().is_empty() && compounds.len() < 64 {
            let end = super::scan::find_end(rest, b",").map_or(rest.len(), |(at, _)| at);
            let part = rest.get(..end).unwrap_or_default().trim();
            rest = rest.get(end + 1..).unwrap_or_default();
            // Nested brackets, and anything other than a single compound, are not followed.
            let mut reader = Reader {
                rest: part,
                tree: self.tree,
                ids: 0,
                classes: 0,
                names: 0,
            };
            let is_plain = part.matches(':').count() <= 1 && !part.contains('(');
            let compound = if is_plain {
                reader.read_compound(true)
            } else {
                vec![Simple::Perhaps]
            };
            let is_whole = !is_plain || reader.rest.is_empty();
            compounds.push(if is_whole {
                compound
            } else {
                vec![Simple::Perhaps]
            });
            (self.ids, self.classes, self.names) = (
                self.ids + reader.ids,
                self.classes + reader.classes,
                self.names + reader.names,
            );
        }
        compounds
    }
}
