//! Marks of a rendered page: fences and backticks around code, strike-through, subscripts and
//! superscripts, the title. An element is marked when it ends, because only then is it known
//! whether its text is on one line. Of nested elements that would get the same mark, only the
//! outermost does, so that the cost stays linear.

use super::Reader;
use crate::text::element::{Mark, State, hash};
use crate::text::render::Point;

/// Maximum length of a subscript or superscript that is marked, in bytes; a longer one is text in
/// small letters.
const SCRIPT_BYTES: usize = 16;
/// Maximum length of a title that is written, in bytes.
const TITLE_BYTES: usize = 200;
/// Maximum length of the name of a programming language, in bytes.
const LANGUAGE_BYTES: usize = 20;
/// Superscripts that are read as a part of their word.
const ORDINALS: [&str; 6] = ["st", "nd", "rd", "th", "TM", "SM"];
/// Characters that have a form above or below the line.
const SIGNS: [char; 15] = [
    '0', '1', '2', '3', '4', '5', '6', '7', '8', '9', '+', '-', '=', '(', ')',
];
const ABOVE: [char; 15] = [
    '⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹', '⁺', '⁻', '⁼', '⁽', '⁾',
];
const BELOW: [char; 15] = [
    '₀', '₁', '₂', '₃', '₄', '₅', '₆', '₇', '₈', '₉', '₊', '₋', '₌', '₍', '₎',
];

impl Reader {
    /// Returns how a visible element of a page is marked, and records in `state` what is not marked
    /// again within it.
    pub(super) fn begin_mark(&mut self, name: &str, state: &mut State) -> Mark {
        if self.verbatim {
            return Mark::None;
        }
        let outer = self.tree.state();
        match name {
            "pre" | "listing" | "xmp" if !outer.pre => {
                (state.code, self.language) = (true, find_language(&self.tag.classes));
                Mark::Fence(self.lines.point())
            }
            "code" if outer.pre => {
                if self.language.is_empty() {
                    self.language = find_language(&self.tag.classes);
                }
                Mark::None
            }
            "code" | "kbd" | "samp" | "tt" if !state.code => {
                state.code = true;
                Mark::Code(self.lines.point())
            }
            "s" | "del" | "strike" if !state.struck && !state.code => {
                state.struck = true;
                Mark::Struck(self.lines.point())
            }
            "sub" | "sup" if !state.code => Mark::Script(self.lines.point(), name == "sup"),
            "ul" | "ol" if self.lists.len() == 1 => Mark::List,
            "table" => {
                self.open_table();
                Mark::Table
            }
            "tr" if !state.pre => self.open_row(),
            "td" | "th" => self.open_cell(name == "th"),
            _ => Mark::None,
        }
    }

    /// Writes the mark of an element when it ends.
    pub(super) fn finish_mark(&mut self, mark: Mark) {
        match mark {
            Mark::None => {}
            Mark::Link => {
                if let Some(target) = self.links.pop() {
                    self.lines.add_mark(&target);
                }
            }
            Mark::Fence(since) => self.write_fence(since),
            Mark::Code(since) => self.replace_line(since, |code| {
                let ticks = "`".repeat(longest_run(code) + 1);
                let pad = if code.starts_with('`') || code.ends_with('`') {
                    " "
                } else {
                    ""
                };
                Some([&ticks, pad, code, pad, &ticks].concat())
            }),
            Mark::Struck(since) => self.replace_line(since, |text| Some(format!("~~{text}~~"))),
            Mark::Script(since, above) => self.replace_line(since, |text| to_script(text, above)),
            Mark::List => self.lines.end_line(2),
            Mark::Table => self.close_table(),
            Mark::Row => self.close_row(),
            Mark::Cell => self.close_cell(),
        }
    }

    fn replace_line(&mut self, since: Point, write: impl FnOnce(&str) -> Option<String>) {
        let text = self.lines.written_since(since);
        if !self.lines.ended_since(since)
            && !text.trim().is_empty()
            && let Some(marked) = write(text)
        {
            self.lines.replace_since(since, &marked);
        }
    }

    fn write_fence(&mut self, since: Point) {
        let code = self
            .lines
            .written_since(since)
            .trim_start_matches('\n')
            .trim_end();
        if !code.is_empty() {
            let ticks = "`".repeat(longest_run(code).max(2) + 1);
            let fenced = format!("{ticks}{}\n{code}\n{ticks}", self.language);
            self.lines.replace_since(since, &fenced);
        }
        self.language.clear();
        self.lines.end_line(2);
    }

    /// Writes the title of a page as its first line. A person sees it at most at the edge of the
    /// window, so it is also judged as hidden.
    pub(super) fn write_title(&mut self, title: &str) {
        let is_in_head = self
            .tree
            .parent()
            .is_none_or(|parent| [hash("head"), hash("html")].contains(&parent.name));
        let is_page_title = is_in_head && self.lines.len() == 0;
        let title = title.trim();
        if self.verbatim || !is_page_title || title.is_empty() || title.len() > TITLE_BYTES {
            return;
        }
        self.folded = true;
        if self.unfold {
            self.lines.add_mark("Title: ");
            self.lines.add_text(title, false);
            self.lines.end_line(2);
        }
    }
}

/// Returns the language named by the classes of code: `language-rust`, `lang-js`.
fn find_language(classes: &str) -> String {
    let mut classes = classes.split_ascii_whitespace();
    let language_name = classes.find_map(|class| {
        class
            .strip_prefix("language-")
            .or_else(|| class.strip_prefix("lang-"))
    });
    let is_name_byte = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'#' | b'-' | b'_');
    language_name
        .filter(|name| name.len() <= LANGUAGE_BYTES && name.bytes().all(is_name_byte))
        .unwrap_or_default()
        .to_owned()
}

/// Returns a text as superscript or subscript, or `None` if it stays unchanged.
fn to_script(text: &str, above: bool) -> Option<String> {
    // A footnote that is a link already has a mark.
    if text.len() > SCRIPT_BYTES
        || text.contains(['[', '`', '~', '^'])
        || (above && ORDINALS.contains(&text))
    {
        return None;
    }
    let forms = if above { &ABOVE } else { &BELOW };
    let form = |c: char| {
        let sign = if c == '\u{2212}' { '-' } else { c };
        SIGNS
            .iter()
            .zip(forms)
            .find_map(|(plain, form)| (*plain == sign).then_some(*form))
    };
    let mark = if above { '^' } else { '~' };
    Some(
        text.chars()
            .map(form)
            .collect::<Option<String>>()
            .unwrap_or_else(|| format!("{mark}{text}{mark}")),
    )
}

/// Returns the length of the longest run of backticks.
fn longest_run(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}
