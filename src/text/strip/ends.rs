//! Elements that a tag opens or ends besides its own (WHATWG HTML, 13.2.6).

use std::collections::HashMap;

use super::Reader;
use crate::text::element::{
    Kind, Mark, OpenElement, hash, is_formatting, is_head_content, is_special, kind,
};
use crate::text::presentational_attrs::initial_style;
use crate::text::style::StartTag;

/// Maximum length of the name of an element whose content is not displayed, in bytes.
const NAME_BYTES: usize = 16;

/// Returns the position of the last end tag of each name.
pub(super) fn last_ends(text: &str) -> HashMap<u64, usize> {
    let ends = memchr::memmem::find_iter(text.as_bytes(), b"</").filter_map(|at| {
        let name = text.get(at + 2..)?;
        let length = name
            .bytes()
            .take(NAME_BYTES)
            .take_while(|b| b.is_ascii_alphanumeric() || *b == b'-')
            .count();
        let name = name.get(..length).filter(|name| !name.is_empty())?;
        Some((hash(&name.to_ascii_lowercase()), at))
    });
    ends.collect()
}

impl Reader {
    /// Opens elements that a page omits, if styles may refer to them.
    pub(super) fn open_omitted(&mut self, name: &str) {
        let implies_body = !is_head_content(name) && name != "body";
        for (implied, is_needed) in [("html", name != "html"), ("body", implies_body)] {
            if is_needed && self.sheet.has_rules() && self.tree.position(implied).is_none() {
                self.imply(implied);
            }
        }
    }

    fn imply(&mut self, name: &str) {
        let mut state = self.tree.state();
        let style = self.sheet.open_element(
            self.tree.depth(),
            &StartTag {
                name,
                ..StartTag::default()
            },
            initial_style(name, false, ""),
        );
        state.style = style.resolve_within(&state.style);
        let name = hash(name);
        let kind = Kind::Block;
        self.tree.push(
            OpenElement {
                name,
                kind,
                state,
                mark: Mark::None,
                formatting: None,
                is_marker: false,
            },
            true,
        );
    }

    /// Ends the elements that a start tag implicitly ends (WHATWG HTML, 13.1.2.4 and 13.2.6).
    pub(super) fn imply_ends(&mut self, name: &str, kind: Kind) {
        let state = self.tree.state();
        let leaves_svg = matches!(kind, Kind::Block)
            || matches!(
                name,
                "b" | "big"
                    | "br"
                    | "code"
                    | "em"
                    | "i"
                    | "img"
                    | "s"
                    | "small"
                    | "span"
                    | "strong"
                    | "sub"
                    | "sup"
                    | "td"
                    | "tt"
                    | "u"
            );
        if state.foreign
            && leaves_svg
            && let Some(at) = [self.tree.position("svg"), self.tree.position("math")]
                .into_iter()
                .flatten()
                .max()
        {
            self.close(at, false);
        }
        if !is_head_content(name)
            && let Some(head) = self.tree.position("head")
            && !self.tree.is_bounded(head)
        {
            self.close(head, false);
        }
        let at = match name {
            "li" => self
                .tree
                .implied_end(&["li"], &["ul", "ol", "td", "th", "table"]),
            "dt" | "dd" => self
                .tree
                .implied_end(&["dt", "dd"], &["dl", "td", "th", "table"]),
            "td" | "th" => self
                .tree
                .implied_end(&["td", "th", "caption"], &["tr", "table"]),
            "tr" | "tbody" | "thead" | "tfoot" => {
                self.tree.implied_end(&["tr", "caption"], &["table"])
            }
            "option" | "optgroup" => self.tree.implied_end(&["option"], &["select", "datalist"]),
            "a" => self
                .tree
                .position("a")
                .filter(|at| !self.tree.is_bounded(*at) && !self.tree.contains_blocks(*at)),
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => self
                .tree
                .last()
                .filter(|open| open.name == hash("h1"))
                .map(|_| self.tree.depth() - 1),
            _ => None,
        };
        if let Some(at) = at {
            self.close(at, false);
        }
        if name == "tr"
            && self.sheet.has_rules()
            && self
                .tree
                .last()
                .is_some_and(|open| open.name == hash("table"))
        {
            self.imply("tbody");
        }
        if kind == Kind::Block
            && !matches!(
                name,
                "option"
                    | "optgroup"
                    | "html"
                    | "body"
                    | "textarea"
                    | "caption"
                    | "tr"
                    | "tbody"
                    | "thead"
                    | "tfoot"
                    | "legend"
            )
            && let Some(at) = self.tree.position("p")
            && !self.tree.is_bounded(at)
            && self
                .tree
                .position("button")
                .is_none_or(|button| button < at)
        {
            self.close(at, false);
        }
    }

    pub(super) fn handle_end_tag(&mut self, name: &str) {
        let Some(at) = self.tree.position(name) else {
            if matches!(name, "p" | "br") {
                self.lines.end_line(1);
            }
            if is_formatting(name) {
                self.tree.stop_formatting(name);
            }
            return;
        };
        let is_table_part = matches!(
            name,
            "table"
                | "tbody"
                | "thead"
                | "tfoot"
                | "tr"
                | "td"
                | "th"
                | "caption"
                | "template"
                | "object"
                | "svg"
                | "math"
                | "head"
        );
        // Content after the end of the body belongs to the body.
        let stays_open = matches!(name, "body" | "html")
            || (!is_table_part && self.tree.is_bounded(at))
            || (!is_table_part
                && !is_formatting(name)
                && !is_special(name, kind(name, false))
                && self.tree.contains_blocks(at));
        if stays_open {
            return;
        }
        self.close(at, true);
    }

    pub(super) fn close(&mut self, from: usize, ended: bool) {
        for open in self.tree.close(from, ended) {
            self.finish_mark(open.mark);
            if open.kind == Kind::Block && !open.state.style.hides_text() {
                if open.name == hash("li") || open.name == hash("h1") {
                    self.lines.drop_lead();
                }
                self.lines.end_line(1);
            }
        }
    }
}
