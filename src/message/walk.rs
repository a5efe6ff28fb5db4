//! Iterates over every string of a JSON text, with its place.

use std::borrow::Cow;
use std::ops::Range;

use super::json::{Value, ValueKind};

/// Whether a string is the name of a member or a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Role {
    /// The name of an object's member.
    Key,
    #[default]
    Value,
}

/// One string: its text, and the position of its bytes.
pub struct JsonString<'j> {
    /// The unescaped text; borrowed when the string has no escapes.
    pub value: Cow<'j, str>,
    /// The bytes between the quotes, as offsets into the message.
    pub span: Range<usize>,
    pub role: Role,
}

/// One step from a value to a value inside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step<'j> {
    /// To the member with this name.
    Key(Cow<'j, str>),
    /// To the element at this index.
    Index(usize),
}

/// The path from a root to a value. For a key it is the path to the key's value.
pub type Path<'j> = [Step<'j>];

/// Formats a path as a JSON pointer (RFC 6901).
pub fn pointer(path: &Path<'_>) -> String {
    let mut out = String::new();
    for step in path {
        out.push('/');
        match step {
            Step::Key(key) => {
                for c in key.chars() {
                    match c {
                        '~' => out.push_str("~0"),
                        '/' => out.push_str("~1"),
                        c => out.push(c),
                    }
                }
            }
            Step::Index(index) => out.push_str(&index.to_string()),
        }
    }
    out
}

impl<'j> Value<'j> {
    /// Calls `visit` with every string in this value, keys included, in the order of the text.
    /// Paths start at this value. Iterative: depth costs memory, never stack.
    pub fn strings(&self, mut visit: impl FnMut(&Path<'j>, JsonString<'j>)) {
        self.walk(|path, value, role| {
            if let Some(text) = value.str() {
                let span = value.span();
                visit(
                    path,
                    JsonString {
                        value: text,
                        span: span.start + 1..span.end.saturating_sub(1),
                        role,
                    },
                );
            }
        });
    }

    /// Calls `visit` with every value and key in this value (itself included), in the order of the
    /// text.
    pub fn walk(&self, mut visit: impl FnMut(&Path<'j>, Self, Role)) {
        let mut path: Vec<Step<'j>> = Vec::new();
        // One entry for each open container: its end, and whether it is an array.
        let mut open: Vec<(u32, bool)> = Vec::new();
        let mut at = self.handle();
        let end = self.node().next();
        let mut expects_key = false;
        while at < end {
            while let Some(&(close, _)) = open.last() {
                if at < close {
                    break;
                }
                open.pop();
                path.pop();
            }
            let value = self.value_at(at);
            let node = value.node();
            match open.last() {
                Some((_, false)) if expects_key => {
                    if let (Some(last), Some(key)) = (path.last_mut(), value.str()) {
                        *last = Step::Key(key);
                    }
                    visit(&path, value, Role::Key);
                    expects_key = false;
                    at += 1;
                    continue;
                }
                Some((_, true)) => {
                    if let Some(Step::Index(index)) = path.last_mut() {
                        *index = index.wrapping_add(1);
                    }
                }
                _ => {}
            }
            visit(&path, value, Role::Value);
            match node.kind() {
                ValueKind::Object => {
                    open.push((node.next(), false));
                    path.push(Step::Key(Cow::Borrowed("")));
                }
                ValueKind::Array => {
                    open.push((node.next(), true));
                    path.push(Step::Index(usize::MAX));
                }
                _ => {}
            }
            at += 1;
            while let Some(&(close, _)) = open.last() {
                if at < close {
                    break;
                }
                open.pop();
                path.pop();
            }
            expects_key = matches!(open.last(), Some((_, false)));
        }
    }
}
