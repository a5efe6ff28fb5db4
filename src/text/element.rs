//! Elements of a page, as far as layout and hiding need them.

use super::style::Colour;

/// What an open element passes on to what is in it.
#[derive(Clone, Copy)]
pub(super) struct State {
    pub(super) gone: bool,
    pub(super) invisible: bool,
    pub(super) tiny: bool,
    pub(super) colour: Option<Colour>,
    pub(super) ground: Colour,
    /// The ground may be painted by something that is not known here.
    pub(super) unsure: bool,
    pub(super) pre: bool,
}

impl State {
    pub(super) fn hides(&self) -> bool {
        self.gone
            || self.invisible
            || self.tiny
            || (!self.unsure && self.colour.is_some_and(|colour| colour.melts_into(self.ground)))
    }
}

pub(super) struct Open {
    pub(super) name: u64,
    pub(super) kind: Kind,
    pub(super) state: State,
    pub(super) link: bool,
}

/// What an element is to the layout.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Inline,
    Block,
    Void,
    /// Nobody sees what is in it.
    Gone,
    /// Text up to its end tag, none of it markup, and nobody sees it.
    Raw,
}

pub(super) fn kind(name: &str) -> Kind {
    match name {
        "area" | "base" | "br" | "col" | "embed" | "hr" | "img" | "input" | "link" | "meta" | "param" | "source" | "track"
        | "wbr" => Kind::Void,
        "script" | "style" | "noembed" | "noframes" | "iframe" | "title" => Kind::Raw,
        "head" | "template" | "noscript" | "datalist" | "object" | "desc" | "metadata" | "defs" | "symbol" | "applet" => {
            Kind::Gone
        }
        "address" | "article" | "aside" | "blockquote" | "body" | "caption" | "center" | "dd" | "details" | "dialog" | "div"
        | "dl" | "dt" | "fieldset" | "figcaption" | "figure" | "footer" | "form" | "h1" | "h2" | "h3" | "h4" | "h5" | "h6"
        | "header" | "html" | "legend" | "li" | "main" | "nav" | "ol" | "option" | "p" | "pre" | "section" | "summary"
        | "table" | "tbody" | "textarea" | "tfoot" | "thead" | "tr" | "ul" => Kind::Block,
        _ => Kind::Inline,
    }
}

/// The start tag at hand; its buffers are kept from tag to tag.
#[derive(Default)]
pub(super) struct Tag {
    pub(super) name: String,
    pub(super) attribute: String,
    pub(super) style: String,
    pub(super) id: String,
    pub(super) classes: String,
    pub(super) href: String,
    pub(super) alt: String,
    pub(super) hidden: bool,
    pub(super) secret_input: bool,
    pub(super) colour: Option<Colour>,
    pub(super) ground: Option<Option<Colour>>,
}

impl Tag {
    pub(super) fn open(&mut self, name: &[u8]) {
        for buffer in
            [&mut self.name, &mut self.attribute, &mut self.style, &mut self.id, &mut self.classes, &mut self.href, &mut self.alt]
        {
            buffer.clear();
        }
        (self.hidden, self.secret_input, self.colour, self.ground) = (false, false, None, None);
        self.name.push_str(&String::from_utf8_lossy(name));
    }
}

/// A name as a number (FNV-1a); a clash would end the wrong element, no more.
pub(super) fn hash(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, b| (hash ^ u64::from(b)).wrapping_mul(0x100_0000_01b3))
}
