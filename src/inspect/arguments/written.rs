//! What a call writes to which file by its own arguments.

use std::cell::LazyCell;
use std::collections::HashMap;

use super::words::Words;
use super::{Units, last_name};
use crate::detect::ReadAs;
use crate::message::Role;

/// A text that goes to a file.
pub(in crate::inspect) struct Written<'u> {
    pub(in crate::inspect) path: &'u str,
    pub(in crate::inspect) text: &'u str,
    /// It does not take the place of what is there.
    pub(in crate::inspect) adds: bool,
}

/// Last words of the names of what is written.
const WHOLE: [&str; 14] = [
    "content", "contents", "text", "data", "body", "code", "source", "script", "lines", "value", "payload", "input", "string",
    "bytes",
];
/// With one of these in front or alone it goes between what is there.
const PARTS: [&str; 9] = ["new", "insert", "insertion", "append", "replacement", "replace", "addition", "edit", "edits"];
/// Tools that add.
const ADDS: [&str; 6] = ["append", "insert", "edit", "replace", "patch", "update"];
/// A text is looked for so many steps below the object that its path is in.
const STEPS: usize = 4;
/// Most texts that are told of one call.
const TEXTS: usize = 16;

impl Units<'_> {
    /// Every text that stands beside a path, or under one, and by its name is what is in the file.
    pub(in crate::inspect) fn written(&self, tool: &str) -> Vec<Written<'_>> {
        let values = || self.units.iter().filter(|unit| !unit.joined);
        let mut beside: HashMap<Option<usize>, &str> = HashMap::new();
        let mut above: HashMap<usize, &str> = HashMap::new();
        for unit in values().filter(|unit| unit.read_as == ReadAs::Path) {
            match unit.role {
                Role::Value => drop(beside.entry(self.parent(unit.node)).or_insert(&unit.text)),
                Role::Key => drop(above.insert(unit.node, &unit.text)),
            }
        }
        if beside.is_empty() && above.is_empty() {
            return Vec::new();
        }
        let tool_adds = LazyCell::new(|| Words::of(tool).list().iter().any(|word| ADDS.contains(word)));
        let texts = values().filter(|unit| unit.role == Role::Value && !matches!(unit.read_as, ReadAs::Path | ReadAs::Url));
        let written = texts.filter_map(|unit| {
            if let Some(path) = above.get(&unit.node) {
                return Some(Written { path, text: &unit.text, adds: *tool_adds });
            }
            let name = Words::of(last_name(&unit.argument));
            let names = name.list();
            let part = names.iter().any(|name| PARTS.contains(name));
            let whole = names.last().is_some_and(|name| WHOLE.contains(name));
            let mut at = Some(unit.node);
            let path = (0..STEPS).filter(|_| part || whole).find_map(|_| {
                at = self.parent(at?);
                beside.get(&at)
            })?;
            Some(Written { path, text: &unit.text, adds: part || *tool_adds })
        });
        written.take(TEXTS).collect()
    }

    fn parent(&self, node: usize) -> Option<usize> {
        self.nodes.get(node).and_then(|node| node.parent)
    }
}
