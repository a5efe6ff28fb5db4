//! Reads HTML token by token and separates visible from hidden text. Linear: the stack of open
//! elements is explicit, and each token examines only a bounded part of it.

mod ends;
mod lists;
mod marks;
mod mask;
mod sheets;
mod spans;
mod tables;

use std::collections::HashMap;
use std::ops::Range;

use memchr::memchr_iter;

use super::element::{
    Kind, Mark, OpenElement, Tag, hash, is_boundary, is_formatting, is_special, kind,
};
use super::origins::Origins;
use super::presentational_attrs::{
    ALT_BYTES, add_hint, has_hiding_class, has_own_style, initial_style,
};
use super::render::Lines;
use super::sniff::Shape;
use super::style::{Sheet, StartTag};
use super::tokens::{Event, Mode, read_events};
use super::tree::Tree;
use tables::{Row, Table};

/// The result of reading a text.
#[derive(Default)]
pub(super) struct StrippedText {
    pub(super) visible: String,
    pub(super) hidden: String,
    /// Whether some of the hidden text is also visible, because a person may unfold it.
    pub(super) folded: bool,
    /// The origins of both in the text, if it is not a page.
    pub(super) visible_origins: Origins,
    pub(super) hidden_origins: Origins,
}

/// Minimum length of attribute values that count as prose, in bytes.
const PROSE_BYTES: usize = 16;
/// Maximum length of a link target that is written out, in bytes.
const LINK_BYTES: usize = 300;
/// Maximum length of a text that is shown if it is unknown whether a person can distinguish it from
/// its background, in bytes, and the maximum length of all such text together.
const DOUBTFUL_BYTES: usize = 40;
const DOUBTFUL_TOTAL_BYTES: usize = 400;

/// Reads a text as HTML. `code` contains the ranges that are shown verbatim. With `unfold`, content
/// that a person may unfold is shown.
pub(super) fn read(text: &str, shape: Shape, code: &[Range<usize>], unfold: bool) -> StrippedText {
    let fragment = shape == Shape::Fragment;
    let masked = mask::apply(text, code);
    let text = masked.as_deref().unwrap_or(text);
    // The length must not change: parts found in a fragment are cut out of the original text.
    let unified =
        (fragment && text.contains('\r')).then(|| text.replace("\r\n", " \n").replace('\r', "\n"));
    let text = unified.as_deref().unwrap_or(text);
    let mut sheet = Sheet::new(text.len());
    let sheets_read = has_sheets(text);
    if sheets_read {
        sheets::add_all(text, fragment, &mut sheet);
    }
    let mode = Mode::new(fragment);
    let mut reader = Reader::new(text, shape, sheet, unfold);
    reader.sheets_read = sheets_read;
    read_events(text, &mode, |event| reader.handle_event(event, &mode));
    let mut stripped = reader.finish(text);
    if masked.is_some() {
        mask::remove(&mut stripped.visible);
        mask::remove(&mut stripped.hidden);
    }
    stripped
}

/// Reports whether a text may contain style sheets. They apply to all of it, so they are read
/// first.
fn has_sheets(text: &str) -> bool {
    memchr_iter(b'<', text.as_bytes()).any(|at| {
        text.get(at + 1..at + 6)
            .is_some_and(|start| start.eq_ignore_ascii_case("style"))
    })
}

struct Reader {
    verbatim: bool,
    /// The position of the last end tag of each element whose content is not displayed, in a text
    /// that is not a page.
    last_ends: HashMap<u64, usize>,
    /// The range of the current event.
    range: Range<usize>,
    visible_origins: Origins,
    hidden_origins: Origins,
    unfold: bool,
    sheet: Sheet,
    /// Whether the style sheets of the page were read in advance.
    sheets_read: bool,
    tree: Tree,
    tag: Tag,
    lines: Lines,
    /// The text that ends each open link.
    links: Vec<String>,
    /// The depth of each open list and, for an ordered list, the number of items written.
    lists: Vec<(usize, Option<usize>)>,
    hidden: String,
    folded: bool,
    doubtful_bytes: usize,
    /// The open tables, their open rows, and the number of cells laid out in tables with spanning
    /// cells.
    tables: Vec<Table>,
    rows: Vec<Row>,
    laid_out_cells: usize,
    /// The language of the open code block.
    language: String,
}

impl Reader {
    fn new(text: &str, shape: Shape, sheet: Sheet, unfold: bool) -> Self {
        Self {
            verbatim: shape == Shape::Fragment,
            last_ends: if shape == Shape::Fragment {
                ends::last_ends(text)
            } else {
                HashMap::new()
            },
            range: 0..0,
            visible_origins: Origins::default(),
            hidden_origins: Origins::default(),
            unfold,
            sheet,
            sheets_read: false,
            tree: Tree::default(),
            tag: Tag::default(),
            lines: Lines::new(shape == Shape::Fragment, text.len() / 2),
            links: Vec::new(),
            lists: Vec::new(),
            hidden: String::new(),
            folded: false,
            doubtful_bytes: 0,
            tables: Vec::new(),
            rows: Vec::new(),
            laid_out_cells: 0,
            language: String::new(),
        }
    }

    fn handle_event(&mut self, event: Event<'_>, mode: &Mode) {
        self.range = mode.range();
        match event {
            Event::OpenStartTag(name) => self.tag.reset(name),
            Event::AttributeName(name) => {
                self.tag.attribute.clear();
                self.tag.attribute.push_str(name);
                self.set_flag();
            }
            Event::AttributeValue(value) => self.read_attribute(value),
            Event::CloseStartTag(self_closing) => self.open_element(self_closing, mode),
            Event::EndTag(name) => self.handle_end_tag(name),
            Event::Text(text) => self.handle_text(text),
            Event::Comment(text) => self.hide(text),
        }
        mode.set_foreign(self.tree.state().foreign);
    }

    /// Handles an attribute that counts without a value.
    fn set_flag(&mut self) {
        let tag = &mut self.tag;
        match tag.attribute.as_str() {
            "hidden" => tag.hidden = true,
            "inert" | "popover" => tag.set_aside = true,
            "open" => tag.open = true,
            _ => {}
        }
        if self.sheet.wants_attributes {
            self.tag
                .attributes
                .push((self.tag.attribute.clone(), String::new()));
        }
    }

    fn read_attribute(&mut self, value: &str) {
        let foreign = self.tree.state().foreign || self.tag.name == "svg";
        let tag = &mut self.tag;
        if let Some((_, stored)) = tag.attributes.last_mut() {
            *stored = value.to_lowercase();
        }
        match tag.attribute.as_str() {
            // Of several attributes with the same name, the first counts.
            "style" if tag.style.is_empty() => tag.style.push_str(value),
            "id" if tag.id.is_empty() => tag.id.push_str(value),
            "class" if tag.classes.is_empty() => tag.classes.push_str(value),
            "href" | "rel" | "media" => tag.store_sheet_attribute(value),
            "alt" if tag.name == "img" && value.trim().len() <= ALT_BYTES => {
                tag.alt.push_str(value)
            }
            // It is displayed in place of the element's content.
            "label" if tag.name == "option" && !value.is_empty() => {
                tag.set_aside = true;
                let value = value.to_owned();
                self.hide(&value);
            }
            "aria-hidden" => tag.set_aside |= value.trim().eq_ignore_ascii_case("true"),
            "start" | "value" if matches!(&*tag.name, "ol" | "li") => {
                tag.number = value.trim().parse().ok()
            }
            "colspan" | "rowspan" => tag.store_span(value),
            "src" | "srcset" | "d" | "action" | "xmlns" | "points" => {}
            _ if value.len() >= PROSE_BYTES && value.contains(' ') => {
                let value = value.to_owned();
                add_hint(
                    &self.tag.name,
                    foreign,
                    &self.tag.attribute,
                    &value,
                    &mut self.tag.hints,
                );
                self.hide(&value);
            }
            _ => add_hint(&tag.name, foreign, &tag.attribute, value, &mut tag.hints),
        }
    }

    fn open_element(&mut self, self_closing: bool, mode: &Mode) {
        let name = std::mem::take(&mut self.tag.name);
        let outer = self.tree.state();
        let kind = kind(&name, outer.foreign);
        // A placeholder (`<title>` in a manual) hides nothing: an element that never ends would
        // swallow the rest.
        let not_displayed =
            matches!(kind, Kind::NotDisplayed | Kind::Raw) && !(self_closing && outer.foreign);
        if self.verbatim
            && not_displayed
            && self
                .last_ends
                .get(&hash(&name))
                .is_none_or(|end| *end < self.range.end)
        {
            self.tag.name = name;
            return;
        }
        if name == "link" && !self.sheets_read {
            sheets::add_linked(&self.tag, &mut self.sheet);
        }
        self.open_omitted(&name);
        if matches!(&*name, "html" | "body") && self.tree.position(&name).is_some() {
            self.tag.name = name;
            return;
        }
        self.imply_ends(&name, kind);
        if kind != Kind::Block && kind != Kind::Raw {
            self.tree.reopen_formatting();
        }
        let mut state = self.tree.state();
        let tag = &self.tag;
        let has_class_or_id = !(tag.classes.is_empty() && tag.id.is_empty());
        let is_closed = (name == "dialog" && !tag.open)
            || (!tag.classes.is_empty() && has_hiding_class(&tag.classes));
        let not_displayed = tag.set_aside || matches!(kind, Kind::NotDisplayed | Kind::Raw);
        let has_style = !(tag.style.is_empty() && tag.hints.is_empty())
            || tag.hidden
            || is_closed
            || has_own_style(&name);
        let depth = self.tree.depth();
        let own = if has_style || self.sheet.has_rules() {
            let mut own = initial_style(&name, tag.hidden || is_closed, &tag.hints);
            own.hidden = not_displayed;
            let own = self.sheet.open_element(
                depth,
                &StartTag {
                    name: &name,
                    id: &tag.id,
                    classes: &tag.classes,
                    attributes: &tag.attributes,
                    style: &tag.style,
                },
                own,
            );
            state.style = own.resolve_within(&state.style);
            let sets_background = own.background.is_some();
            state.style.uncertain_background |= self.sheet.linked
                && has_class_or_id
                && !matches!(&*name, "html" | "body")
                && !sets_background;
            Some(own)
        } else {
            self.sheet.skip_element(depth);
            state.style.hidden |= not_displayed;
            state.style.uncertain_background |=
                self.sheet.linked && has_class_or_id && !matches!(&*name, "html" | "body");
            None
        };
        state.style.hidden |= self.sheet.exhausted;
        state.pre |= matches!(&*name, "pre" | "textarea" | "xmp" | "plaintext" | "listing");
        state.folded = match &*name {
            "details" => state.folded || !tag.open,
            // A summary is visible whenever the content around its `details` element is.
            "summary" => self.tree.parent().is_some_and(|parent| parent.state.folded),
            _ => state.folded,
        };
        state.foreign = match &*name {
            "svg" | "math" => true,
            "foreignobject" | "desc" | "title" | "annotation-xml" | "mtext" | "mi" | "mo"
            | "mn" | "ms" => false,
            _ => state.foreign,
        };
        if !state.style.hides_text() {
            self.lay_out_start(&name, kind);
        }
        if kind != Kind::Void
            && !(self_closing && outer.foreign)
            && !(self_closing && self.verbatim && kind == Kind::Inline)
        {
            if !outer.foreign {
                mode.set_content_of(&name);
            }
            let mark = match () {
                () if state.style.hides_text() => Mark::None,
                () if name == "a" => self.open_link(),
                () => self.begin_mark(&name, &mut state),
            };
            let is_styled = has_class_or_id
                || !(self.tag.style.is_empty() && self.tag.hints.is_empty())
                || self.tag.hidden;
            let formatting = own
                .filter(|_| is_styled && is_formatting(&name))
                .map(Box::new);
            let special = is_special(&name, kind);
            self.tree.push(
                OpenElement {
                    name: hash(&name),
                    kind,
                    state,
                    mark,
                    formatting,
                    is_marker: is_boundary(&name),
                },
                special,
            );
        }
        self.tag.name = name;
    }

    fn lay_out_start(&mut self, name: &str, kind: Kind) {
        match name {
            "br" => self.lines.end_line(1),
            "hr" => {
                self.lines.end_line(1);
                self.lines.add_mark("---");
                self.lines.end_line(1);
            }
            "img" if !self.tag.alt.trim().is_empty() => {
                let alt = format!("[image: {}]", self.tag.alt.trim());
                self.lines.add_text(&alt, false);
            }
            "td" | "th" if self.verbatim => self.lines.add_cell(),
            "li" => {
                let mark = self.item_mark();
                self.lines.begin_line(1, &mark);
            }
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => {
                let level = name
                    .as_bytes()
                    .get(1)
                    .copied()
                    .map_or(1, |digit| usize::from(digit.saturating_sub(b'0')));
                self.lines.begin_line(2, &format!("{} ", "#".repeat(level)));
            }
            "ul" | "ol" => self.open_list(name == "ol"),
            "p" | "table" | "blockquote" | "pre" => self.lines.end_line(2),
            _ if kind == Kind::Block => self.lines.end_line(1),
            _ => {}
        }
        if matches!(
            name,
            "ul" | "ol"
                | "pre"
                | "table"
                | "blockquote"
                | "hr"
                | "details"
                | "h1"
                | "h2"
                | "h3"
                | "h4"
                | "h5"
                | "h6"
        ) {
            self.lay_out_row();
        }
    }

    fn open_link(&mut self) -> Mark {
        let href = &self.tag.href;
        let is_web = href.starts_with("http://") || href.starts_with("https://");
        // A relative link leads to another page of the site; links of other schemes are not
        // followed.
        let is_relative = !href.is_empty()
            && !href
                .split(['/', '?', '#'])
                .next()
                .is_some_and(|first| first.contains(':'));
        let is_shown = href.len() <= LINK_BYTES
            && (is_web || is_relative)
            && !href.contains(char::is_whitespace);
        if is_shown {
            self.links.push(format!("]({href})"));
            self.lines.add_mark("[");
        }
        if is_shown { Mark::Link } else { Mark::None }
    }

    fn handle_text(&mut self, text: &str) {
        let is_blank = text.trim().is_empty();
        if self
            .tree
            .last()
            .is_some_and(|open| open.name == hash("title") && open.kind == Kind::Raw)
        {
            self.write_title(text);
        }
        if !is_blank
            && self
                .tree
                .last()
                .is_some_and(|open| open.name == hash("head"))
        {
            self.close(self.tree.depth() - 1, false);
        }
        if !is_blank && self.tree.last().is_none_or(|open| open.kind != Kind::Raw) {
            self.tree.reopen_formatting();
        }
        if !is_blank {
            self.open_omitted("");
        }
        let state = self.tree.state();
        let length = text.trim().len();
        let is_doubtful = state.style.is_doubtful() && {
            self.doubtful_bytes += length;
            length > DOUBTFUL_BYTES || self.doubtful_bytes > DOUBTFUL_TOTAL_BYTES
        };
        if state.style.hides_text() || is_doubtful || (state.folded && !self.unfold) {
            self.hide(text);
            return;
        }
        if state.folded {
            self.folded |= length > 0;
            self.hide(text);
        }
        self.lines.add_text(text, state.pre);
        if self.verbatim {
            let end = self.lines.len();
            self.visible_origins
                .add(end - text.len()..end, self.range.clone());
        }
    }

    fn hide(&mut self, text: &str) {
        let length = text.len();
        let trimmed = text.trim_start();
        let text = trimmed.trim_end();
        if !text.is_empty() {
            if !self.hidden.is_empty() {
                self.hidden.push_str("\n\n");
            }
            self.hidden.push_str(text);
            if self.verbatim {
                let end = self.hidden.len();
                let start = self.range.start + (length - trimmed.len());
                let is_verbatim = self.range.len() == length;
                let range = if is_verbatim {
                    start..start + text.len()
                } else {
                    self.range.clone()
                };
                self.hidden_origins.add(end - text.len()..end, range);
            }
        }
    }

    fn finish(mut self, text: &str) -> StrippedText {
        // In text of another kind, markup that never ends is not markup: it is shown.
        let has_end = |rest: &str| rest.contains("-->") || rest.contains("--!>");
        let open_comment = memchr::memmem::rfind(text.as_bytes(), b"<!--")
            .filter(|at| !text.get(*at..).is_none_or(has_end));
        let is_raw = self.tree.last().is_some_and(|open| open.kind == Kind::Raw);
        if self.verbatim && (is_raw || open_comment.is_some()) {
            let unclosed = if is_raw {
                self.hidden
                    .rsplit("\n\n")
                    .next()
                    .unwrap_or_default()
                    .to_owned()
            } else {
                text.get(open_comment.unwrap_or(0)..)
                    .unwrap_or_default()
                    .to_owned()
            };
            self.lines.end_line(1);
            self.lines.add_text(&unclosed, true);
            let end = self.lines.len();
            self.visible_origins.add(
                end - unclosed.len()..end,
                text.rfind(&*unclosed)
                    .map_or(0..text.len(), |at| at..at + unclosed.len()),
            );
        }
        self.close(0, false);
        StrippedText {
            visible: self.lines.finish(),
            hidden: self.hidden,
            folded: self.folded,
            visible_origins: self.visible_origins,
            hidden_origins: self.hidden_origins,
        }
    }
}
