//! HTML as a person sees it. The only file that touches html2text.

use std::panic::{AssertUnwindSafe, catch_unwind};

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
}

/// Width of lines that html2text writes, in characters.
const WIDTH: usize = 120;
/// html2text is super-linear in nesting (220 kB of nested tags took 5 s) and has panicked on tables: larger or deeper
/// pages than this are written by [`strip`] alone.
pub(super) const CLEAN_BYTES: usize = 256 << 10;
/// Deepest nesting that html2text gets.
pub(super) const CLEAN_DEPTH: usize = 32;
/// Most cells of tables that it gets.
pub(super) const CLEAN_CELLS: usize = 2000;

impl Page {
    /// Reads a text as HTML; `None` where it is none.
    pub(super) fn of(text: &str) -> Option<Self> {
        if !text.contains('<') {
            return None;
        }
        let code = sniff::code(text);
        let shape = sniff::shape(text, &code)?;
        let code = if shape == Shape::Fragment { code } else { Vec::new() };
        let read = strip::read(text, shape, &code);
        Some(Self { visible: read.visible, hidden: read.hidden, clean: read.clean })
    }

    /// What an agent gets of it where nothing is withheld: like `visible`, with tables laid out.
    pub fn written(&self) -> String {
        let laid_out = self.clean.as_deref().and_then(|clean| {
            let config = || html2text::config::plain().no_table_borders().no_link_wrapping();
            // A panic in a foreign crate must cost no more than the nicer layout.
            catch_unwind(AssertUnwindSafe(|| config().string_from_read(clean.as_bytes(), WIDTH).ok())).ok().flatten()
        });
        laid_out.unwrap_or_else(|| self.visible.clone())
    }
}

#[cfg(test)]
mod tests;
