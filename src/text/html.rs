//! HTML as a person sees it. The only file that touches html2text.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::markdown;
use super::sniff::{self, Shape};
use super::strip;

/// A text that is HTML, or holds some, taken apart into what a person would see and what not.
#[derive(Debug)]
pub struct Page {
    /// What a person would see, as plain lines.
    pub visible: String,
    /// What markup hides: text that styles hide, comments, scripts, attributes in prose. Each on a paragraph of its own;
    /// empty if there is none.
    pub hidden: String,
    /// Visible markup without attributes, where html2text writes it better and within its bounds.
    clean: Option<String>,
    /// Some of what is hidden shows too, for a person may unfold it.
    pub folded: bool,
}

/// Width of lines that html2text writes, in characters.
const WIDTH: usize = 120;
impl Page {
    /// Reads a text as HTML; `None` where it is none.
    pub(super) fn of(text: &str) -> Option<Self> {
        Self::read(text, true)
    }

    /// The same where nothing shows that a person would have to unfold.
    pub(super) fn folded(text: &str) -> Option<Self> {
        Self::read(text, false)
    }

    fn read(text: &str, unfold: bool) -> Option<Self> {
        let code = sniff::code(text);
        let shape = if text.contains('<') { sniff::shape(text, &code) } else { None };
        if shape == Some(Shape::Document) {
            return Some(Self::made(strip::read(text, Shape::Document, &[], unfold), String::new()));
        }
        let stripped = markdown::strip(text, &code);
        let (left, taken) = match (stripped, shape) {
            (None, None) => return None,
            (None, Some(_)) => return Some(Self::made(strip::read(text, Shape::Fragment, &code, unfold), String::new())),
            (Some((left, taken)), None) => {
                return Some(Self { visible: left, hidden: taken, clean: None, folded: false });
            }
            (Some(stripped), Some(_)) => stripped,
        };
        Some(Self::made(strip::read(&left, Shape::Fragment, &sniff::code(&left), unfold), taken))
    }

    fn made(read: strip::Read, mut hidden: String) -> Self {
        if !hidden.is_empty() {
            hidden.push_str("\n\n");
        }
        hidden.push_str(&read.hidden);
        Self { visible: settled(read.visible), hidden, clean: read.clean, folded: read.folded }
    }

    /// What an agent gets of it where nothing is withheld: like `visible`, with tables laid out.
    pub fn written(&self) -> String {
        let laid_out = self.clean.as_deref().and_then(|clean| {
            let config = || html2text::config::plain().no_table_borders().no_link_wrapping();
            // A panic in a foreign crate must cost no more than the nicer layout.
            catch_unwind(AssertUnwindSafe(|| config().string_from_read(clean.as_bytes(), WIDTH).ok())).ok().flatten()
        });
        laid_out.map_or_else(|| self.visible.clone(), settled)
    }
}

/// A text that showed tags, with them written so that nobody who reads it again takes them for markup: another gate, or what
/// shows it to a person.
fn settled(text: String) -> String {
    let code = if text.contains('<') { sniff::code(&text) } else { return text };
    if sniff::shape(&text, &code).is_none() {
        return text;
    }
    let mut code = code.iter().peekable();
    let mut out = String::with_capacity(text.len() + 64);
    let mut after = text.chars().skip(1);
    for (at, c) in text.char_indices() {
        let next = after.next().unwrap_or(' ');
        while code.next_if(|range| range.end <= at).is_some() {}
        let tag = c == '<' && (next.is_ascii_alphabetic() || matches!(next, '/' | '!' | '?'));
        if tag && !code.peek().is_some_and(|range| range.contains(&at)) {
            out.push_str("&lt;");
        } else {
            out.push(c);
        }
    }
    out
}

#[cfg(test)]
mod hiding;
#[cfg(test)]
mod tests;
