//! HTML as a person sees it.

use std::borrow::Cow;
use std::ops::Range;

use super::origins::Origins;
use super::sniff::{self, Shape};
use super::strip;
use super::{Facts, markdown};

/// A text that is HTML or contains some, split into what a person would see and what markup hides.
#[derive(Debug)]
pub struct Page {
    /// The text that a person would see, as plain lines with a few Markdown marks.
    pub visible: String,
    /// The text that markup hides: text hidden by styles, comments, scripts, attributes with prose.
    /// Each part is a paragraph of its own; empty if there is none.
    pub hidden: String,
    /// Whether some of the hidden text is also visible, because a person may unfold it.
    pub folded: bool,
    /// Whether the text is a page from its beginning, not a text of another kind with tags in it.
    pub is_document: bool,
    /// The origins of `visible` and `hidden` in the text, if it is not read as a page.
    visible_origins: Origins,
    hidden_origins: Origins,
    /// The hidden parts in the order of the text. Parts separated only by tags and blanks are
    /// joined.
    groups: Vec<Range<usize>>,
}

/// Maximum length of adjacent hidden parts that are removed as one, in bytes.
const GROUP_BYTES: usize = 4096;

impl Page {
    /// Reads a text as HTML; returns `None` if it contains none.
    pub(super) fn parse(text: &str, facts: &Facts) -> Option<Self> {
        Self::read(text, facts, true, true)
    }

    /// Like [`Self::parse`], but hides content that a person would have to unfold.
    pub(super) fn parse_folded(text: &str, facts: &Facts) -> Option<Self> {
        Self::read(text, facts, false, true)
    }

    /// Reads a text as one of another kind with tags in it, even if it is a page from its
    /// beginning.
    pub(super) fn parse_fragment(text: &str, facts: &Facts) -> Option<Self> {
        Self::read(text, facts, true, false)
    }

    fn read(text: &str, facts: &Facts, unfold: bool, may_be_document: bool) -> Option<Self> {
        let has_tags = facts.has(b'<');
        let is_document = has_tags && sniff::is_page(text);
        if is_document && may_be_document {
            let stripped = strip::read(text, Shape::Document, &[], unfold);
            return Some(Self {
                visible: escape_tags(stripped.visible),
                is_document,
                ..Self::from_stripped(strip::StrippedText {
                    visible: String::new(),
                    ..stripped
                })
            });
        }
        let code = sniff::code_ranges(text, facts);
        let has_markup = is_document || has_tags && sniff::shape(text, &code).is_some();
        let hidden = markdown::find_hidden(text, facts, &code);
        if hidden.is_empty() && !has_markup {
            return None;
        }
        let mut remaining = String::with_capacity(text.len());
        for (range, _) in &hidden {
            remaining.push_str(text.get(remaining.len()..range.start)?);
            remaining.extend(
                text.get(range.clone())?
                    .bytes()
                    .map(|b| if b == b'\n' { '\n' } else { ' ' }),
            );
        }
        remaining.push_str(text.get(remaining.len()..)?);
        let stripped = if has_markup {
            strip::read(&remaining, Shape::Fragment, &code, unfold)
        } else {
            let mut visible_origins = Origins::default();
            visible_origins.add(0..remaining.len(), 0..text.len());
            strip::StrippedText {
                visible: remaining,
                visible_origins,
                ..strip::StrippedText::default()
            }
        };
        let mut page = Self {
            is_document,
            ..Self::from_stripped(stripped)
        };
        for (range, _) in hidden {
            if !page.hidden.is_empty() {
                page.hidden.push_str("\n\n");
            }
            let start = page.hidden.len();
            // Leave out the quotation marks of a title, so that its link stays valid.
            let part = text.get(range.clone())?;
            let trimmed = part.trim_start_matches([' ', '\n', '"', '\'']);
            let inner = trimmed.trim_end_matches([' ', '\n', '"', '\'']);
            let from = range.start + (part.len() - trimmed.len());
            page.hidden.push_str(inner);
            page.hidden_origins
                .add(start..page.hidden.len(), from..from + inner.len());
        }
        page.groups = group_parts(text, &page.hidden_origins);
        Some(page)
    }

    fn from_stripped(stripped: strip::StrippedText) -> Self {
        Self {
            visible: stripped.visible,
            hidden: stripped.hidden,
            folded: stripped.folded,
            is_document: false,
            visible_origins: stripped.visible_origins,
            hidden_origins: stripped.hidden_origins,
            groups: Vec::new(),
        }
    }

    /// Returns the text that a person would see, with nothing in it that could be read as markup
    /// again.
    pub fn visible_text(&self) -> Cow<'_, str> {
        if self.is_document {
            Cow::Borrowed(&self.visible)
        } else {
            Cow::Owned(escape_tags(self.visible.clone()))
        }
    }

    /// Returns the range of the text for a range of `visible`, including the tags within it.
    pub fn locate_visible(&self, range: &Range<usize>) -> Option<Range<usize>> {
        self.visible_origins.cover(range)
    }

    /// Returns the range of the text for a range of `hidden`.
    pub fn locate_hidden(&self, range: &Range<usize>) -> Option<Range<usize>> {
        self.hidden_origins.cover(range)
    }

    /// Returns the hidden parts of the text that a range of `hidden` touches, each with the parts
    /// adjacent to it, or `None` if one of them is too long to be removed as a whole.
    pub fn hidden_parts(&self, range: &Range<usize>) -> Option<Vec<Range<usize>>> {
        let mut groups = Vec::new();
        for part in self.hidden_origins.parts(range) {
            let group = self.hidden_group(&part)?;
            if groups.last() != Some(&group) {
                groups.push(group);
            }
        }
        Some(groups)
    }

    /// Returns the hidden part of the text around a range, with the parts adjacent to it, if it is
    /// short enough to be removed as a whole.
    pub fn hidden_group(&self, range: &Range<usize>) -> Option<Range<usize>> {
        let after = self
            .groups
            .partition_point(|group| group.start <= range.start);
        let group = self.groups.get(after.checked_sub(1)?)?;
        (range.end <= group.end && group.len() <= GROUP_BYTES).then(|| group.clone())
    }
}

/// Returns the hidden parts of a text in its order. Parts separated only by tags and blanks are
/// joined.
fn group_parts(text: &str, origins: &Origins) -> Vec<Range<usize>> {
    let mut parts: Vec<Range<usize>> = origins.all().collect();
    parts.sort_unstable_by_key(|part| (part.start, part.end));
    let mut groups: Vec<Range<usize>> = Vec::new();
    // A comment is a message of its own, so it is not joined with other parts.
    let is_comment = |part: &Range<usize>| {
        text.get(part.clone())
            .is_some_and(|part| part.starts_with("<!"))
    };
    for part in parts {
        match groups.last_mut() {
            Some(last) if part.start < last.end => last.end = last.end.max(part.end),
            Some(last)
                if part.end - last.start <= GROUP_BYTES
                    && !is_comment(last)
                    && !is_comment(&part)
                    && text.get(last.end..part.start).is_some_and(has_only_tags) =>
            {
                last.end = part.end;
            }
            _ => groups.push(part),
        }
    }
    groups
}

/// Reports whether a text consists of tags and blanks only.
fn has_only_tags(text: &str) -> bool {
    let mut in_tag = false;
    text.chars().all(|c| {
        let part_of_tag = in_tag || c == '<' || c.is_whitespace();
        in_tag = (in_tag || c == '<') && c != '>';
        part_of_tag
    }) && !in_tag
}

/// Escapes the tags that a text shows, so that a later reader, such as another gate or a viewer,
/// does not take them for markup.
fn escape_tags(text: String) -> String {
    let facts = Facts::new(&text);
    if !facts.has(b'<') {
        return text;
    }
    let code = sniff::code_ranges(&text, &facts);
    if sniff::shape(&text, &code).is_none() {
        return text;
    }
    let mut code = code.iter().peekable();
    let mut out = String::with_capacity(text.len() + 64);
    let mut after = text.chars().skip(1);
    for (at, c) in text.char_indices() {
        let next = after.next().unwrap_or(' ');
        while code.next_if(|range| range.end <= at).is_some() {}
        let is_tag = c == '<' && (next.is_ascii_alphabetic() || matches!(next, '/' | '!' | '?'));
        if is_tag && !code.peek().is_some_and(|range| range.contains(&at)) {
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
