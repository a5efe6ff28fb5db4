//! Selectors (Selectors 4), and whether they match an open element. A selector that cannot be
//! decided while a page is read from its start yields [`Matches::Perhaps`].

use std::hash::{BuildHasher, RandomState};
use std::ops::Range;

/// Whether a selector matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Matches {
    No,
    Perhaps,
    Yes,
}

/// The parts of a start tag that styles depend on.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct StartTag<'a> {
    pub(crate) name: &'a str,
    pub(crate) id: &'a str,
    pub(crate) classes: &'a str,
    pub(crate) attributes: &'a [(String, String)],
    pub(crate) style: &'a str,
}

/// An open element, as far as selectors refer to it.
#[derive(Clone, Debug)]
struct Element {
    name: u64,
    id: Option<u64>,
    classes: Range<usize>,
    attributes: Range<usize>,
    /// Its position among the children of its parent, from 1.
    position: usize,
    children: usize,
}

/// The open elements of a page. Names are stored as numbers under a key of this process, so that
/// nobody can construct two that collide.
#[derive(Debug, Default)]
pub(super) struct Tree {
    key: RandomState,
    stack: Vec<Element>,
    classes: Vec<u64>,
    attributes: Vec<(String, String)>,
}

impl Tree {
    pub(super) fn hash_name(&self, name: &str) -> u64 {
        self.key.hash_one(name)
    }

    pub(super) fn push(&mut self, tag: &StartTag<'_>) {
        let class_start = self.classes.len();
        for class in tag.classes.split_ascii_whitespace() {
            let number = self.hash_name(&class.to_lowercase());
            self.classes.push(number);
        }
        let attribute_start = self.attributes.len();
        self.attributes.extend_from_slice(tag.attributes);
        let position = self.stack.last_mut().map_or(1, |parent| {
            parent.children += 1;
            parent.children
        });
        self.stack.push(Element {
            name: self.hash_name(tag.name),
            id: (!tag.id.is_empty()).then(|| self.hash_name(&tag.id.to_lowercase())),
            classes: class_start..self.classes.len(),
            attributes: attribute_start..self.attributes.len(),
            position,
            children: 0,
        });
    }

    /// Closes all elements except for the first `to`. If fewer are open, the missing ones are those
    /// that no rule refers to.
    pub(super) fn close(&mut self, to: usize) {
        let classes = self.classes.len();
        let attributes = self.attributes.len();
        while self.stack.len() < to {
            let classes = classes..classes;
            let attributes = attributes..attributes;
            self.stack.push(Element {
                name: 0,
                id: None,
                classes,
                attributes,
                position: 1,
                children: 0,
            });
        }
        if let Some(first) = self.stack.get(to) {
            self.classes.truncate(first.classes.start);
            self.attributes.truncate(first.attributes.start);
            self.stack.truncate(to);
        }
    }

    /// Returns the keys under which rules for the innermost element may be stored.
    pub(super) fn keys(&self) -> impl Iterator<Item = u64> + '_ {
        self.stack.last().into_iter().flat_map(|element| {
            let classes = self
                .classes
                .get(element.classes.clone())
                .unwrap_or_default();
            [Some(element.name), element.id]
                .into_iter()
                .flatten()
                .chain(classes.iter().copied())
        })
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Simple {
    Name(u64),
    Id(u64),
    Class(u64),
    Attribute(String, Test, String),
    /// None of these compounds matches.
    Not(Vec<Vec<Self>>),
    /// Any of these compounds matches.
    Any(Vec<Vec<Self>>),
    /// Every child at a given step, starting with a given one.
    Nth(usize, usize),
    Root,
    Never,
    Perhaps,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Test {
    Exists,
    Equals,
    Word,
    Dash,
    Start,
    End,
    Contains,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Combinator {
    Descendant,
    Child,
    /// A sibling: the preceding elements are no longer known.
    Sibling,
}

/// A selector, its last compound first.
#[derive(Clone, Debug)]
pub(super) struct Selector {
    pub(super) compounds: Vec<(Combinator, Vec<Simple>)>,
    pub(super) specificity: u32,
    /// A class, id or name that an element must have for the selector to match.
    pub(super) key: Option<u64>,
}

impl Selector {
    /// Returns whether the selector matches the innermost element. Each step is counted as work.
    pub(super) fn matches(&self, tree: &Tree, work: &mut usize) -> Matches {
        let Some(last) = tree.stack.len().checked_sub(1) else {
            return Matches::No;
        };
        self.match_from(0, last, tree, work)
    }

    /// Recurses as deep as the selector has compounds, which are few.
    fn match_from(&self, nth: usize, at: usize, tree: &Tree, work: &mut usize) -> Matches {
        let Some((combinator, compound)) = self.compounds.get(nth) else {
            return Matches::Yes;
        };
        let own = match_compound(compound, at, tree, work);
        if own == Matches::No || nth + 1 == self.compounds.len() {
            return own;
        }
        let rest = match combinator {
            Combinator::Sibling => Matches::Perhaps,
            Combinator::Child => at.checked_sub(1).map_or(Matches::No, |parent| {
                self.match_from(nth + 1, parent, tree, work)
            }),
            Combinator::Descendant => {
                let mut best = Matches::No;
                for ancestor in (0..at).rev() {
                    best = best.max(self.match_from(nth + 1, ancestor, tree, work));
                    if best == Matches::Yes {
                        break;
                    }
                }
                best
            }
        };
        own.min(rest)
    }
}

fn match_compound(compound: &[Simple], at: usize, tree: &Tree, work: &mut usize) -> Matches {
    let Some(element) = tree.stack.get(at) else {
        return Matches::No;
    };
    let mut all = Matches::Yes;
    for simple in compound {
        *work += 1;
        let from_bool = |yes: bool| if yes { Matches::Yes } else { Matches::No };
        let result = match simple {
            Simple::Name(name) => from_bool(element.name == *name),
            Simple::Id(id) => from_bool(element.id == Some(*id)),
            Simple::Class(class) => {
                let classes = tree
                    .classes
                    .get(element.classes.clone())
                    .unwrap_or_default();
                *work += classes.len() / 4;
                from_bool(classes.contains(class))
            }
            Simple::Attribute(name, test, value) => {
                let attributes = tree
                    .attributes
                    .get(element.attributes.clone())
                    .unwrap_or_default();
                *work += attributes.len();
                from_bool(attributes.iter().any(|(attribute_name, stored)| {
                    attribute_name == name && test.is_match(stored, value)
                }))
            }
            Simple::Not(others) => match others
                .iter()
                .map(|other| match_compound(other, at, tree, work))
                .max()
            {
                Some(Matches::Yes) => Matches::No,
                Some(Matches::Perhaps) => Matches::Perhaps,
                Some(Matches::No) | None => Matches::Yes,
            },
            Simple::Any(others) => others
                .iter()
                .map(|other| match_compound(other, at, tree, work))
                .max()
                .unwrap_or(Matches::No),
            Simple::Nth(step, first) => {
                let position = element.position;
                from_bool(if *step == 0 {
                    position == *first
                } else {
                    position >= *first && (position - first).is_multiple_of(*step)
                })
            }
            Simple::Root => from_bool(at == 0),
            Simple::Never => Matches::No,
            Simple::Perhaps => Matches::Perhaps,
        };
        all = all.min(result);
        if all == Matches::No {
            break;
        }
    }
    all
}

impl Test {
    fn is_match(self, attribute: &str, value: &str) -> bool {
        match self {
            Self::Exists => true,
            Self::Equals => attribute == value,
            Self::Word => attribute.split_ascii_whitespace().any(|word| word == value),
            Self::Dash => attribute
                .strip_prefix(value)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('-')),
            Self::Start => !value.is_empty() && attribute.starts_with(value),
            Self::End => !value.is_empty() && attribute.ends_with(value),
            Self::Contains => !value.is_empty() && attribute.contains(value),
        }
    }
}
