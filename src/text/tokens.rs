//! Splits HTML into tokens (WHATWG HTML, 13.2.5). Which text is markup depends on the open
//! elements, so the reader specifies after each tag how to continue.

mod entities;
mod raw;

use std::borrow::Cow;
use std::cell::Cell;
use std::ops::Range;

use memchr::{memchr, memmem};

/// A token of a page. Names are in lower case, entities are decoded.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Event<'t> {
    OpenStartTag(&'t str),
    AttributeName(&'t str),
    AttributeValue(&'t str),
    /// The end of a start tag, and whether it has a slash.
    CloseStartTag(bool),
    EndTag(&'t str),
    Text(&'t str),
    Comment(&'t str),
}

/// Content of an element that has parsing rules of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Content {
    /// Text with entities.
    RcData(&'static str),
    RawText(&'static str),
    Script,
    PlainText,
}

/// How the consumer of the tokens wants the text after a tag to be read.
#[derive(Debug, Default)]
pub(super) struct Mode {
    next: Cell<Option<Content>>,
    foreign: Cell<bool>,
    /// Whether the text is not a page. In that case, an element whose content extends to its end
    /// tag has no content if that tag is missing.
    fragment: bool,
    /// Where the current event begins and ends in the text.
    start: Cell<usize>,
    end: Cell<usize>,
}

impl Mode {
    /// Creates the mode for a page or, if `fragment` is set, for a text with tags in it.
    pub(super) fn new(fragment: bool) -> Self {
        Self {
            fragment,
            ..Self::default()
        }
    }

    /// Returns the range of the text that the current event was read from.
    pub(super) fn range(&self) -> Range<usize> {
        self.start.get()..self.end.get()
    }

    fn set_range(&self, range: Range<usize>) {
        self.start.set(range.start);
        self.end.set(range.end);
    }

    /// Makes the following text the content of this element, if the element has content with
    /// parsing rules of its own.
    pub(super) fn set_content_of(&self, name: &str) {
        self.next.set(match name {
            "textarea" => Some(Content::RcData("textarea")),
            "title" => Some(Content::RcData("title")),
            "plaintext" => Some(Content::PlainText),
            "script" => Some(Content::Script),
            "style" => Some(Content::RawText("style")),
            "iframe" => Some(Content::RawText("iframe")),
            "xmp" => Some(Content::RawText("xmp")),
            "noembed" => Some(Content::RawText("noembed")),
            "noframes" => Some(Content::RawText("noframes")),
            "noscript" => Some(Content::RawText("noscript")),
            _ => None,
        });
    }

    /// Sets whether the open element is SVG or MathML, where CDATA is text.
    pub(super) fn set_foreign(&self, foreign: bool) {
        self.foreign.set(foreign);
    }
}

/// Reads a text to its end.
pub(super) fn read_events(text: &str, mode: &Mode, handle: impl FnMut(Event<'_>)) {
    let text = if memchr(b'\r', text.as_bytes()).is_some() {
        Cow::Owned(text.replace("\r\n", "\n").replace('\r', "\n"))
    } else {
        Cow::Borrowed(text)
    };
    let has = |byte| memchr(byte, text.as_bytes()).is_some();
    let signs = DecodeFlags {
        references: has(b'&'),
        nul: has(0),
    };
    let mut tokenizer = Tokenizer {
        text: &text,
        signs,
        mode,
        at: 0,
        handle,
        lower: String::new(),
        unclosed: Vec::new(),
    };
    while tokenizer.at < text.len() {
        match mode.next.take() {
            Some(content) => tokenizer.read_content(content),
            None => tokenizer.read_data(),
        }
    }
}

struct Tokenizer<'t, F> {
    text: &'t str,
    signs: DecodeFlags,
    mode: &'t Mode,
    at: usize,
    handle: F,
    lower: String,
    /// Content without an end tag in the rest of a fragment: searching for the end at each start
    /// tag would take quadratic time.
    unclosed: Vec<Content>,
}

/// What a text contains that has to be decoded. Most texts contain neither.
struct DecodeFlags {
    /// Possible character references.
    references: bool,
    nul: bool,
}

impl DecodeFlags {
    fn decode<'s>(&self, text: &'s str, in_attribute: bool) -> Cow<'s, str> {
        if self.references {
            entities::read(text, in_attribute)
        } else {
            Cow::Borrowed(text)
        }
    }

    fn replace_nul<'s>(&self, text: &'s str) -> Cow<'s, str> {
        if self.nul {
            Cow::Owned(text.replace('\0', "\u{fffd}"))
        } else {
            Cow::Borrowed(text)
        }
    }
}

impl<'t, F: FnMut(Event<'_>)> Tokenizer<'t, F> {
    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn emit_text(&mut self, to: usize) {
        let text = self.text.get(self.at..to).unwrap_or_default();
        if self.mode.fragment && self.signs.references && memchr(b'&', text.as_bytes()).is_some() {
            // Emit text line by line, so that the position of text after an entity is known to the
            // line.
            for line in text.split_inclusive('\n') {
                self.emit_part(line);
            }
        } else if !text.is_empty() {
            self.emit_part(text);
        }
        self.at = to;
    }

    fn emit_part(&mut self, text: &str) {
        self.mode.set_range(self.at..self.at + text.len());
        self.at += text.len();
        (self.handle)(Event::Text(&self.signs.decode(text, false)));
    }

    /// Reads the text up to a tag, and the tag.
    fn read_data(&mut self) {
        let rest = self.rest().as_bytes();
        let Some(open) = memchr(b'<', rest) else {
            return self.emit_text(self.text.len());
        };
        if open > 0 {
            self.emit_text(self.at + open);
        }
        let after = self.rest().as_bytes().get(1..).unwrap_or_default();
        match after {
            [b, ..] if b.is_ascii_alphabetic() => {
                self.at += 1;
                self.read_tag(true);
            }
            [b'/', b, ..] if b.is_ascii_alphabetic() => {
                self.at += 2;
                self.read_tag(false);
            }
            [b'/', b'>', ..] => self.at += 3,
            [b'/', _, ..] => self.read_bogus_comment(2),
            [b'!', b'-', b'-', ..] => self.read_comment(),
            [b'!', after @ ..] => {
                if after
                    .get(..7)
                    .is_some_and(|word| word.eq_ignore_ascii_case(b"doctype"))
                {
                    let end = memchr(b'>', self.rest().as_bytes());
                    self.at = end.map_or(self.text.len(), |end| self.at + end + 1);
                } else if self.mode.foreign.get() && after.starts_with(b"[CDATA[") {
                    self.at += 9;
                    let cdata = self.rest();
                    let end = memmem::find(cdata.as_bytes(), b"]]>").unwrap_or(cdata.len());
                    self.mode.set_range(self.at..self.at + end);
                    (self.handle)(Event::Text(cdata.get(..end).unwrap_or_default()));
                    self.at = (self.at + end + 3).min(self.text.len());
                } else {
                    self.read_bogus_comment(2);
                }
            }
            [b'?', ..] => self.read_bogus_comment(1),
            _ => self.emit_text(self.at + 1),
        }
    }

    /// Reads a bogus comment, up to the next `>`.
    fn read_bogus_comment(&mut self, mark: usize) {
        self.at += mark;
        let rest = self.rest();
        let end = memchr(b'>', rest.as_bytes()).unwrap_or(rest.len());
        self.mode
            .set_range(self.at - mark..(self.at + end + 1).min(self.text.len()));
        (self.handle)(Event::Comment(
            &self.signs.replace_nul(rest.get(..end).unwrap_or_default()),
        ));
        self.at = (self.at + end + 1).min(self.text.len());
    }

    fn read_comment(&mut self) {
        self.at += 4;
        let content = self.rest();
        for short in [">", "->"] {
            if content.starts_with(short) {
                self.at += short.len();
                return (self.handle)(Event::Comment(""));
            }
        }
        let mut from = 0;
        let mut end = content.len();
        let mut width = 0;
        while let Some(dashes) = content
            .as_bytes()
            .get(from..)
            .and_then(|rest| memmem::find(rest, b"--"))
        {
            let after = content.get(from + dashes + 2..).unwrap_or_default();
            if after.starts_with('>') || after.starts_with("!>") {
                (end, width) = (from + dashes, if after.starts_with('>') { 3 } else { 4 });
                break;
            }
            from += dashes + 1;
        }
        let mut inner = content.get(..end).unwrap_or_default();
        if width == 0 {
            // The beginning of an end mark is not part of the content.
            inner = ["--!", "--", "-"]
                .iter()
                .find_map(|prefix| inner.strip_suffix(prefix))
                .unwrap_or(inner);
        }
        self.mode.set_range(self.at - 4..self.at + end + width);
        (self.handle)(Event::Comment(&self.signs.replace_nul(inner)));
        self.at += end + width;
    }

    /// Reads a tag from its name on. If the text ends within it, it is not a tag.
    fn read_tag(&mut self, is_start_tag: bool) {
        let name = self.read_until(|b| matches!(b, b'\t' | b'\n' | 0x0C | b' ' | b'/' | b'>'));
        let lower = std::mem::take(&mut self.lower);
        let name = to_lower(name, lower);
        if is_start_tag {
            (self.handle)(Event::OpenStartTag(&name));
        }
        let closing = self.read_attributes(is_start_tag);
        if let Some(slash) = closing {
            (self.handle)(if is_start_tag {
                Event::CloseStartTag(slash)
            } else {
                Event::EndTag(&name)
            });
        }
        if let Cow::Owned(lower) = name {
            self.lower = lower;
        }
    }

    /// Reads the attributes up to the end of a tag. Returns whether the tag ends with a slash, or
    /// `None` if it never ends.
    fn read_attributes(&mut self, emits: bool) -> Option<bool> {
        loop {
            self.skip_space();
            match self.byte()? {
                b'>' => {
                    self.at += 1;
                    return Some(false);
                }
                b'/' => {
                    self.at += 1;
                    if self.byte() == Some(b'>') {
                        self.at += 1;
                        return Some(true);
                    }
                }
                _ => self.read_attribute(emits)?,
            }
        }
    }

    fn read_attribute(&mut self, emits: bool) -> Option<()> {
        let start = self.at;
        // A name may begin with a character that would otherwise end it.
        self.at += 1;
        self.read_until(|b| matches!(b, b'\t' | b'\n' | 0x0C | b' ' | b'/' | b'>' | b'='));
        if emits {
            let name = to_lower(
                self.text.get(start..self.at).unwrap_or_default(),
                String::new(),
            );
            (self.handle)(Event::AttributeName(&name));
        }
        self.skip_space();
        if self.byte()? != b'=' {
            return Some(());
        }
        self.at += 1;
        self.skip_space();
        let quoted = matches!(self.byte()?, b'"' | b'\'');
        let value = match self.byte()? {
            b'>' => return Some(()),
            quote @ (b'"' | b'\'') => {
                self.at += 1;
                let rest = self.rest();
                let Some(end) = memchr(quote, rest.as_bytes()) else {
                    self.at = self.text.len();
                    return None;
                };
                self.at += end + 1;
                rest.get(..end).unwrap_or_default()
            }
            _ => self.read_until(|b| matches!(b, b'\t' | b'\n' | 0x0C | b' ' | b'>')),
        };
        if emits {
            let end = self.at - usize::from(quoted);
            self.mode.set_range(end - value.len()..end);
            let value = self.signs.replace_nul(value);
            (self.handle)(Event::AttributeValue(&self.signs.decode(&value, true)));
        }
        Some(())
    }

    fn skip_space(&mut self) {
        let rest = self.rest().bytes();
        self.at += rest
            .take_while(|b| matches!(b, b'\t' | b'\n' | 0x0C | b' '))
            .count();
    }

    fn read_until(&mut self, ends: impl Fn(u8) -> bool) -> &'t str {
        let rest = self.rest();
        let length = rest.bytes().position(ends).unwrap_or(rest.len());
        self.at += length;
        rest.get(..length).unwrap_or_default()
    }

    /// Reads the content of an element with parsing rules of its own. Its end tag is read like any
    /// other.
    fn read_content(&mut self, content: Content) {
        if self.unclosed.contains(&content) {
            return self.read_data();
        }
        let rest = self.rest();
        let end = match content {
            Content::PlainText => None,
            Content::Script => raw::script_end(rest),
            Content::RcData(name) | Content::RawText(name) => raw::element_end(rest, name),
        };
        if end.is_none() && self.mode.fragment {
            self.unclosed.push(content);
            return self.read_data();
        }
        let text = rest.get(..end.unwrap_or(rest.len())).unwrap_or_default();
        self.mode.set_range(self.at..self.at + text.len());
        self.at += text.len();
        if !text.is_empty() {
            let has_entities = matches!(content, Content::RcData(_));
            let text = self.signs.replace_nul(text);
            (self.handle)(Event::Text(&if has_entities {
                self.signs.decode(&text, false)
            } else {
                text
            }));
        }
        if end.is_some() {
            self.at += 2;
            self.read_tag(false);
        }
    }
}

/// Returns a name in lower case, with NUL replaced by U+FFFD.
fn to_lower(name: &str, mut buffer: String) -> Cow<'_, str> {
    if !name.bytes().any(|b| b.is_ascii_uppercase() || b == 0) {
        return Cow::Borrowed(name);
    }
    buffer.clear();
    buffer.extend(name.chars().map(|c| {
        if c == '\0' {
            '\u{fffd}'
        } else {
            c.to_ascii_lowercase()
        }
    }));
    Cow::Owned(buffer)
}

#[cfg(test)]
mod tests;
