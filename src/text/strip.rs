//! Reads HTML token by token and tells what shows from what is hidden. Linear: the stack of open elements is explicit,
//! and no token looks at more than a bounded part of it.

use std::collections::HashMap;
use std::convert::Infallible;
use std::ops::Range;

use html5gum::emitters::callback::{CallbackEmitter, CallbackEvent};
use html5gum::{Span, Tokenizer};

use super::element::{Kind, Open, State, Tag, hash, kind};
use super::html::{CLEAN_BYTES, CLEAN_CELLS, CLEAN_DEPTH};
use super::layout::Lines;
use super::sniff::Shape;
use super::style::{Colour, Sheet, Style, colour};

/// What reading gives.
pub(super) struct Read {
    pub(super) visible: String,
    pub(super) hidden: String,
    pub(super) clean: Option<String>,
}

/// Stand for `<` and `&` in code that Markdown shows as it is. Noncharacters: no text means them.
const MASKS: [(char, char); 2] = [('<', '\u{fdd0}'), ('&', '\u{fdd1}')];
/// Attribute values shorter than this are no prose.
const PROSE_BYTES: usize = 16;
/// Longest link target that is written out, in bytes.
const LINK_BYTES: usize = 300;
/// How far up the stack an element looks for the one it ends by beginning.
const IMPLIED: usize = 32;

/// Reads a text as HTML; `code` says which parts show as they are.
pub(super) fn read(text: &str, shape: Shape, code: &[Range<usize>]) -> Read {
    let masked = mask(text, code);
    let text = masked.as_deref().unwrap_or(text);
    let mut reader = Reader::new(text, shape);
    let mut emitter = CallbackEmitter::new(|event: CallbackEvent<'_>, _: Span<()>| -> Option<Infallible> {
        reader.take(event);
        None
    });
    emitter.naively_switch_states(true);
    let Ok(()) = Tokenizer::new_with_emitter(text, emitter).finish();
    let mut read = reader.finish(text);
    if masked.is_some() {
        for (c, mask) in MASKS {
            read.visible = read.visible.replace(mask, c.encode_utf8(&mut [0; 4]));
            read.hidden = read.hidden.replace(mask, c.encode_utf8(&mut [0; 4]));
        }
    }
    read
}

fn mask(text: &str, code: &[Range<usize>]) -> Option<String> {
    if code.is_empty() || MASKS.iter().any(|(_, mask)| text.contains(*mask)) {
        return None;
    }
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    for range in code {
        out.push_str(text.get(at..range.start)?);
        let part = text.get(range.clone())?;
        out.extend(part.chars().map(|c| MASKS.iter().find(|(from, _)| *from == c).map_or(c, |(_, mask)| *mask)));
        at = range.end;
    }
    out.push_str(text.get(at..)?);
    Some(out)
}

struct Reader {
    verbatim: bool,
    sheet: Sheet,
    /// The page takes styles from elsewhere, by class or id.
    linked: bool,
    stack: Vec<Open>,
    open: HashMap<u64, usize>,
    tag: Tag,
    lines: Lines,
    /// How each open link ends when it is written out.
    links: Vec<String>,
    hidden: String,
    clean: Option<String>,
    tables: usize,
    cells: usize,
}

impl Reader {
    fn new(text: &str, shape: Shape) -> Self {
        let mut sheet = Sheet::default();
        let mut linked = false;
        let mut rest = text;
        while let Some(at) = rest.find("<s").into_iter().chain(rest.find("<S")).min() {
            rest = rest.get(at..).unwrap_or_default();
            if rest.get(1..6).is_some_and(|name| name.eq_ignore_ascii_case("style")) {
                let end = rest.find("</").unwrap_or(rest.len());
                let body = rest.get(..end).and_then(|part| part.split_once('>')).map_or("", |(_, body)| body);
                linked |= body.contains("@import");
                sheet.add(body.trim_start_matches("<!--"));
                rest = rest.get(end..).unwrap_or_default();
            } else {
                rest = rest.get(2..).unwrap_or_default();
            }
        }
        linked |= text.contains("stylesheet");
        Self {
            verbatim: shape == Shape::Fragment,
            sheet,
            linked,
            stack: Vec::new(),
            open: HashMap::new(),
            tag: Tag::default(),
            lines: Lines::new(shape == Shape::Fragment, text.len() / 2),
            links: Vec::new(),
            hidden: String::new(),
            clean: (shape == Shape::Document && text.len() <= 4 * CLEAN_BYTES).then(String::new),
            tables: 0,
            cells: 0,
        }
    }

    fn state(&self) -> State {
        let start =
            State { gone: false, invisible: false, tiny: false, colour: None, ground: Colour::WHITE, unsure: false, pre: false };
        self.stack.last().map_or(start, |open| open.state)
    }

    fn take(&mut self, event: CallbackEvent<'_>) {
        match event {
            CallbackEvent::OpenStartTag { name } => self.tag.open(name),
            CallbackEvent::AttributeName { name } => {
                self.tag.attribute.clear();
                self.tag.attribute.push_str(&String::from_utf8_lossy(name));
                if self.tag.attribute == "hidden" {
                    self.tag.hidden = true;
                }
            }
            CallbackEvent::AttributeValue { value } => self.attribute(&String::from_utf8_lossy(value)),
            CallbackEvent::CloseStartTag { self_closing } => self.start(self_closing),
            CallbackEvent::EndTag { name } => self.end(&String::from_utf8_lossy(name)),
            CallbackEvent::String { value } => self.text(&String::from_utf8_lossy(value)),
            CallbackEvent::Comment { value } => self.hide(&String::from_utf8_lossy(value)),
            CallbackEvent::Doctype { .. } | CallbackEvent::Error(_) => {}
        }
    }

    fn attribute(&mut self, value: &str) {
        let tag = &mut self.tag;
        match tag.attribute.as_str() {
            "style" => tag.style.push_str(value),
            "id" => tag.id.push_str(value),
            "class" => tag.classes.push_str(value),
            "href" => tag.href.push_str(value.trim()),
            "alt" if tag.name == "img" => tag.alt.push_str(value),
            "aria-hidden" => tag.hidden |= value.trim().eq_ignore_ascii_case("true"),
            "type" => tag.secret_input |= value.trim().eq_ignore_ascii_case("hidden"),
            "color" => tag.colour = colour(&value.to_ascii_lowercase()),
            "bgcolor" => tag.ground = Some(colour(&value.to_ascii_lowercase())),
            "background" => tag.ground = Some(None),
            "src" | "srcset" | "d" | "action" | "xmlns" => {}
            _ if value.len() >= PROSE_BYTES && value.contains(' ') => {
                let value = value.to_owned();
                self.hide(&value);
            }
            _ => {}
        }
    }

    fn start(&mut self, self_closing: bool) {
        let name = std::mem::take(&mut self.tag.name);
        let kind = kind(&name);
        self.imply_ends(&name, kind);
        let mut state = self.state();
        let mut style = self.sheet.style(&name, &self.tag.id, &self.tag.classes);
        if !self.tag.style.is_empty() {
            style.lay(&Style::read(&self.tag.style));
        }
        state.gone |= style.gone == Some(true) || matches!(kind, Kind::Gone | Kind::Raw) || self.tag.hidden;
        state.invisible = style.invisible.unwrap_or(state.invisible);
        state.tiny = style.tiny.unwrap_or(state.tiny);
        state.colour = style.colour.unwrap_or(self.tag.colour.or(state.colour));
        state.unsure |=
            self.linked && !matches!(&*name, "html" | "body") && !(self.tag.classes.is_empty() && self.tag.id.is_empty());
        match style.background.or(self.tag.ground) {
            Some(Some(Colour([.., alpha]))) if alpha < 128 => {}
            Some(Some(ground)) => (state.ground, state.unsure) = (ground, false),
            Some(None) => state.unsure = true,
            None => {}
        }
        state.pre |= matches!(&*name, "pre" | "textarea");
        if !state.hides() {
            self.lay_out_start(&name, kind);
        }
        if kind != Kind::Void && !(self_closing && kind == Kind::Inline) {
            let link = name == "a" && !state.hides() && self.link_starts();
            let name = hash(&name);
            *self.open.entry(name).or_default() += 1;
            self.stack.push(Open { name, kind, state, link });
        }
        if self.stack.len() > CLEAN_DEPTH {
            self.clean = None;
        }
        self.tag.name = name;
    }

    fn lay_out_start(&mut self, name: &str, kind: Kind) {
        match name {
            "br" => self.lines.end(1),
            "hr" => {
                self.lines.end(1);
                self.lines.mark("---");
                self.lines.end(1);
            }
            "img" if !self.tag.alt.trim().is_empty() => {
                let alt = format!("[image: {}]", self.tag.alt.trim());
                self.lines.text(&alt, false);
                self.clean_text(&alt);
            }
            "td" | "th" => {
                self.cells += 1;
                if self.cells > CLEAN_CELLS {
                    self.clean = None;
                }
                self.lines.text(" ", false);
            }
            "li" => {
                self.lines.end(1);
                self.lines.mark("- ");
            }
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => {
                self.lines.end(2);
                let level = name.as_bytes().get(1).copied().map_or(1, |digit| usize::from(digit.saturating_sub(b'0')));
                self.lines.mark(&format!("{} ", "#".repeat(level)));
            }
            "p" | "table" | "blockquote" | "pre" | "ul" | "ol" => self.lines.end(2),
            _ if kind == Kind::Block => self.lines.end(1),
            _ => {}
        }
        self.tables += usize::from(name == "table");
        self.clean_tag(name, "");
    }

    fn link_starts(&mut self) -> bool {
        let href = &self.tag.href;
        let shown = href.len() <= LINK_BYTES
            && (href.starts_with("http://") || href.starts_with("https://"))
            && !href.contains(char::is_whitespace);
        if shown {
            self.links.push(format!("]({href})"));
            self.lines.mark("[");
        }
        shown
    }

    /// Ends what an element ends by beginning (WHATWG HTML, 13.1.2.4).
    fn imply_ends(&mut self, name: &str, kind: Kind) {
        let (ends, until): (&[&str], &[&str]) = match name {
            "li" => (&["li"], &["ul", "ol"]),
            "dt" | "dd" => (&["dt", "dd"], &["dl"]),
            "td" | "th" => (&["td", "th"], &["tr", "table"]),
            "tr" => (&["tr"], &["table"]),
            "option" => (&["option"], &["select", "datalist"]),
            "body" => (&["head"], &[]),
            _ if kind == Kind::Block => (&["p"], &["div", "td", "th", "li", "section", "article", "body", "button"]),
            _ => return,
        };
        let is = |open: &Open, names: &[&str]| names.iter().any(|name| hash(name) == open.name);
        let near = self.stack.iter().rev().take(IMPLIED).take_while(|open| !is(open, until)).position(|open| is(open, ends));
        if let Some(up) = near {
            self.close(self.stack.len() - up - 1);
        }
    }

    fn end(&mut self, name: &str) {
        if matches!(name, "p" | "br") && !self.open.contains_key(&hash(name)) {
            self.lines.end(1);
            return;
        }
        let wanted = hash(name);
        // Every look up the stack ends in closing what it passed, so looks cost no more than openings did.
        if self.open.get(&wanted).is_none_or(|count| *count == 0) {
            return;
        }
        if let Some(at) = self.stack.iter().rposition(|open| open.name == wanted) {
            if self.stack.get(at).is_some_and(|open| !open.state.hides()) {
                self.clean_tag(name, "/");
            }
            self.close(at);
        }
    }

    fn close(&mut self, from: usize) {
        for open in self.stack.drain(from.min(self.stack.len())..).rev() {
            if let Some(count) = self.open.get_mut(&open.name) {
                *count = count.saturating_sub(1);
            }
            if let Some(target) = open.link.then(|| self.links.pop()).flatten() {
                self.lines.mark(&target);
            }
            if open.kind == Kind::Block && !open.state.hides() {
                self.lines.end(1);
            }
        }
    }

    fn text(&mut self, text: &str) {
        let state = self.state();
        if state.hides() {
            self.hide(text);
        } else {
            self.lines.text(text, state.pre);
            self.clean_text(text);
        }
    }

    fn hide(&mut self, text: &str) {
        let text = text.trim();
        if !text.is_empty() {
            if !self.hidden.is_empty() {
                self.hidden.push_str("\n\n");
            }
            self.hidden.push_str(text);
        }
    }

    fn clean_tag(&mut self, name: &str, slash: &str) {
        const KEPT: [&str; 26] = [
            "b",
            "blockquote",
            "br",
            "caption",
            "code",
            "dd",
            "div",
            "dl",
            "dt",
            "em",
            "h1",
            "h2",
            "h3",
            "h4",
            "hr",
            "i",
            "li",
            "ol",
            "p",
            "pre",
            "strong",
            "table",
            "td",
            "th",
            "tr",
            "ul",
        ];
        if let Some(clean) = self.clean.as_mut().filter(|_| KEPT.binary_search(&name).is_ok()) {
            clean.push_str(&format!("<{slash}{name}>"));
        }
    }

    fn clean_text(&mut self, text: &str) {
        let Some(clean) = &mut self.clean else { return };
        for c in text.chars() {
            match c {
                '<' => clean.push_str("&lt;"),
                '>' => clean.push_str("&gt;"),
                '&' => clean.push_str("&amp;"),
                c => clean.push(c),
            }
        }
        if clean.len() > CLEAN_BYTES {
            self.clean = None;
        }
    }

    fn finish(mut self, text: &str) -> Read {
        // In text of another kind, what never ends is no markup: it shows.
        let open_comment = text.rfind("<!--").filter(|at| text.get(*at..).is_some_and(|rest| !rest.contains("-->")));
        let raw = self.stack.last().is_some_and(|open| open.kind == Kind::Raw);
        if self.verbatim && (raw || open_comment.is_some()) {
            let lost = if raw {
                self.hidden.rsplit("\n\n").next().unwrap_or_default().to_owned()
            } else {
                text.get(open_comment.unwrap_or(0)..).unwrap_or_default().to_owned()
            };
            self.lines.end(1);
            self.lines.text(&lost, true);
        }
        self.close(0);
        let clean = self.clean.take().filter(|_| self.tables > 0);
        Read { visible: self.lines.finish(), hidden: self.hidden, clean }
    }
}
