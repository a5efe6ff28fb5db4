//! The open elements of a page. Every lookup takes the same time, however deeply they are nested.

use std::collections::HashMap;

use super::element::{Kind, Mark, OpenElement, State, hash};
use super::style::OwnStyle;

/// Maximum number of formatting elements that continue after their block.
const MAX_CONTINUED: usize = 8;
/// Maximum number of levels that are searched for an element that a start tag implicitly ends.
const IMPLIED: usize = 32;

/// Names of frequent elements, and of those that are looked up at each tag.
const COMMON: [u64; 32] = [
    hash("p"),
    hash("head"),
    hash("html"),
    hash("body"),
    hash("a"),
    hash("span"),
    hash("div"),
    hash("li"),
    hash("code"),
    hash("button"),
    hash("svg"),
    hash("math"),
    hash("template"),
    hash("td"),
    hash("th"),
    hash("tr"),
    hash("ul"),
    hash("ol"),
    hash("b"),
    hash("i"),
    hash("em"),
    hash("strong"),
    hash("pre"),
    hash("table"),
    hash("h1"),
    hash("dt"),
    hash("dd"),
    hash("dl"),
    hash("section"),
    hash("tt"),
    hash("img"),
    hash("tbody"),
];

fn common_index(name: u64) -> Option<usize> {
    COMMON.iter().position(|common| *common == name)
}

#[derive(Default)]
pub(super) struct Tree {
    stack: Vec<OpenElement>,
    /// Positions of the open elements by name: of common names, and of all others.
    common: [Vec<usize>; COMMON.len()],
    positions: HashMap<u64, Vec<usize>>,
    /// Positions of the elements that no end tag from outside reaches into.
    bounds: Vec<usize>,
    /// Positions of the elements that end tags of inline elements do not reach past.
    specials: Vec<usize>,
    /// Formatting elements that were closed with their block and continue in the next.
    continued_formatting: Vec<(u64, Box<OwnStyle>)>,
}

impl Tree {
    pub(super) fn state(&self) -> State {
        self.stack.last().map_or(State::START, |open| open.state)
    }

    /// Returns the parent of the innermost element.
    pub(super) fn parent(&self) -> Option<&OpenElement> {
        self.stack
            .len()
            .checked_sub(2)
            .and_then(|at| self.stack.get(at))
    }

    pub(super) fn depth(&self) -> usize {
        self.stack.len()
    }

    pub(super) fn last(&self) -> Option<&OpenElement> {
        self.stack.last()
    }

    pub(super) fn push(&mut self, open: OpenElement, special: bool) {
        let at = self.stack.len();
        match common_index(open.name) {
            Some(index) => self
                .common
                .get_mut(index)
                .map(|positions| positions.push(at))
                .unwrap_or_default(),
            None => self.positions.entry(open.name).or_default().push(at),
        }
        if open.is_marker {
            self.bounds.push(at);
        }
        if special {
            self.specials.push(at);
        }
        self.stack.push(open);
    }

    /// Returns the position of the innermost open element with a name.
    pub(super) fn position(&self, name: &str) -> Option<usize> {
        let name = hash(name);
        match common_index(name) {
            Some(index) => self.common.get(index),
            None => self.positions.get(&name),
        }
        .and_then(|positions| positions.last())
        .copied()
    }

    /// Reports whether a boundary is open inside the element at a position.
    pub(super) fn is_bounded(&self, at: usize) -> bool {
        self.bounds.last().is_some_and(|bound| *bound > at)
    }

    /// Reports whether the element at a position contains more than text and inline elements.
    pub(super) fn contains_blocks(&self, at: usize) -> bool {
        self.specials.last().is_some_and(|special| *special > at)
    }

    /// Returns the position of the element that a start tag implicitly ends.
    pub(super) fn implied_end(&self, ends: &[&str], until: &[&str]) -> Option<usize> {
        let has_name =
            |open: &OpenElement, names: &[&str]| names.iter().any(|name| hash(name) == open.name);
        let distance = self
            .stack
            .iter()
            .rev()
            .take(IMPLIED)
            .take_while(|open| !has_name(open, until))
            .position(|open| has_name(open, ends));
        distance.map(|up| self.stack.len() - up - 1)
    }

    /// Closes the elements from a position on, innermost first. An element that is `ended` by its
    /// own end tag does not continue.
    pub(super) fn close(&mut self, from: usize, ended: bool) -> Vec<OpenElement> {
        if from >= self.stack.len() {
            return Vec::new();
        }
        let closed: Vec<OpenElement> = self
            .stack
            .drain(from.min(self.stack.len())..)
            .rev()
            .collect();
        let mut continued: Vec<(u64, Box<OwnStyle>)> = Vec::new();
        let last = closed.len().saturating_sub(1);
        for (nth, open) in closed.iter().enumerate() {
            let positions = match common_index(open.name) {
                Some(index) => self.common.get_mut(index),
                None => self.positions.get_mut(&open.name),
            };
            positions.and_then(Vec::pop);
            if open.is_marker {
                continued.clear();
            } else if let Some(style) = &open.formatting
                && !(ended && nth == last)
            {
                continued.push((open.name, style.clone()));
            }
        }
        self.bounds
            .truncate(self.bounds.partition_point(|at| *at < from));
        self.specials
            .truncate(self.specials.partition_point(|at| *at < from));
        continued.truncate(MAX_CONTINUED);
        self.continued_formatting
            .extend(continued.into_iter().rev());
        let excess = self
            .continued_formatting
            .len()
            .saturating_sub(MAX_CONTINUED);
        self.continued_formatting.drain(..excess);
        closed
    }

    /// Ends a formatting element that would continue.
    pub(super) fn stop_formatting(&mut self, name: &str) {
        if let Some(at) = self
            .continued_formatting
            .iter()
            .rposition(|(formatting_name, _)| *formatting_name == hash(name))
        {
            self.continued_formatting.remove(at);
        }
    }

    /// Reopens the elements that continue, before text or an inline element.
    pub(super) fn reopen_formatting(&mut self) {
        for (name, style) in std::mem::take(&mut self.continued_formatting) {
            let mut state = self.state();
            state.style = style.resolve_within(&state.style);
            self.push(
                OpenElement {
                    name,
                    kind: Kind::Inline,
                    state,
                    mark: Mark::None,
                    formatting: Some(style),
                    is_marker: false,
                },
                false,
            );
        }
    }
}
