//! Custom properties (CSS Variables 1): inherited, and looked up when a value refers to them.

use std::collections::HashMap;

/// Maximum number of substitutions of custom properties in one value.
const MAX_SUBSTITUTIONS: usize = 16;
/// Maximum length of the resulting value, in bytes.
const VALUE_BYTES: usize = 4096;

/// The custom properties of a page's open elements.
#[derive(Debug, Default)]
pub(super) struct Vars {
    scopes: Vec<Scope>,
    /// The values of registered properties where nothing sets them.
    initial: HashMap<Box<str>, Box<str>>,
}

#[derive(Debug)]
struct Scope {
    /// Number of elements that are open outside of the one that sets them.
    depth: usize,
    values: HashMap<Box<str>, Box<str>>,
}

impl Vars {
    /// Sets a property for the element at a depth of the stack.
    pub(super) fn set(&mut self, depth: usize, name: &str, value: &str) {
        if self.scopes.last().is_none_or(|scope| scope.depth != depth) {
            self.scopes.push(Scope {
                depth,
                values: HashMap::new(),
            });
        }
        if let Some(scope) = self.scopes.last_mut() {
            scope.values.insert(name.into(), value.into());
        }
    }

    /// Sets the value that a property has where nothing sets it.
    pub(super) fn register(&mut self, name: &str, value: &str) {
        self.initial.insert(name.into(), value.into());
    }

    /// Removes the properties of elements that are closed.
    pub(super) fn close(&mut self, depth: usize) {
        while self.scopes.last().is_some_and(|scope| scope.depth >= depth) {
            self.scopes.pop();
        }
    }

    fn get(&self, name: &str, work: &mut usize) -> Option<&str> {
        let scoped = self.scopes.iter().rev().find_map(|scope| {
            *work += 1;
            scope.values.get(name)
        });
        scoped.or_else(|| self.initial.get(name)).map(AsRef::as_ref)
    }

    /// Returns a value with its `var(…)` substituted; `None` if one has neither a value nor a
    /// fallback.
    pub(super) fn resolve(&self, value: &str, work: &mut usize) -> Option<String> {
        let mut text = value.to_owned();
        for _ in 0..MAX_SUBSTITUTIONS {
            // The innermost one begins last.
            let Some(start) = text.rfind("var(") else {
                return Some(text);
            };
            let inner = text.get(start + 4..)?;
            let end = closing_bracket(inner)?;
            let call = inner.get(..end)?;
            *work += call.len() / 16 + 1;
            let (name, fallback) = call
                .split_once(',')
                .map_or((call, None), |(name, other)| (name, Some(other)));
            let name = name.trim().strip_prefix("--")?;
            // A property that refers to itself has no value.
            let replacement = self
                .get(name, work)
                .filter(|found| !found.contains(&format!("var(--{name}")))
                .or(fallback)?;
            if text.len() + replacement.len() > VALUE_BYTES {
                return None;
            }
            let replacement = replacement.trim().to_owned();
            text.replace_range(start..start + 4 + end + 1, &replacement);
        }
        None
    }
}

/// Returns the position of the bracket that closes one opened before the text.
fn closing_bracket(inner: &str) -> Option<usize> {
    let mut depth = 1_usize;
    for (at, b) in inner.bytes().enumerate() {
        match b {
            b'(' => depth += 1,
            b')' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(at);
        }
    }
    None
}
