//! Elements of a page, as far as layout and hiding need them.

use super::render::Point;
use super::style::{InheritedStyle, OwnStyle};

/// What an open element passes on to what is in it.
#[derive(Clone, Copy)]
pub(super) struct State {
    pub(super) seen: InheritedStyle,
    pub(super) pre: bool,
    /// SVG or MathML.
    pub(super) foreign: bool,
    /// A person sees it after a click: shown, and judged as hidden too.
    pub(super) folded: bool,
    /// Marked as code, or as struck out.
    pub(super) code: bool,
    pub(super) struck: bool,
}

impl State {
    pub(super) const START: Self = Self {
        seen: InheritedStyle::START,
        pre: false,
        foreign: false,
        folded: false,
        code: false,
        struck: false,
    };
}

pub(super) struct OpenElement {
    pub(super) name: u64,
    pub(super) kind: Kind,
    pub(super) state: State,
    pub(super) mark: Mark,
    /// How it looks, of an element that goes on after the block that it was opened in (13.2.4.3).
    pub(super) formatting: Option<Box<OwnStyle>>,
    /// Ends what was opened to go on, and no end tag of what is outside reaches into it.
    pub(super) marker: bool,
}

/// What is written where an element ends, around what was written since a point.
#[derive(Clone, Copy, Debug)]
pub(super) enum Mark {
    None,
    Link,
    Fence(Point),
    Code(Point),
    Struck(Point),
    /// And whether it stands above the line.
    Script(Point, bool),
    /// An outermost list.
    List,
    Table,
    Row,
    Cell,
}

/// What an element is to the layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Inline,
    Block,
    Void,
    /// Nobody sees what is in it.
    Gone,
    /// Text up to its end tag, none of it markup, and nobody sees it.
    Raw,
}

pub(super) fn kind(name: &str, foreign: bool) -> Kind {
    match name {
        "title" | "style" | "script" | "iframe" if foreign => Kind::Gone,
        "area" | "base" | "basefont" | "bgsound" | "br" | "col" | "embed" | "frame" | "hr"
        | "img" | "input" | "keygen" | "link" | "meta" | "param" | "source" | "track" | "wbr" => {
            Kind::Void
        }
        "script" | "style" | "noembed" | "noframes" | "noscript" | "iframe" | "title" => Kind::Raw,
        "head" | "template" | "datalist" | "object" | "desc" | "metadata" | "defs" | "symbol"
        | "applet" | "audio" | "video" | "canvas" | "clippath" | "mask" | "pattern" | "marker"
        | "lineargradient" | "radialgradient" | "filter" | "meter" | "progress" | "annotation"
        | "annotation-xml" | "mphantom" | "rp" | "frameset" => Kind::Gone,
        "address" | "article" | "aside" | "blockquote" | "body" | "caption" | "center" | "dd"
        | "details" | "dialog" | "dir" | "div" | "dl" | "dt" | "fieldset" | "figcaption"
        | "figure" | "footer" | "form" | "h1" | "h2" | "h3" | "h4" | "h5" | "h6" | "header"
        | "hgroup" | "html" | "legend" | "li" | "listing" | "main" | "menu" | "nav" | "ol"
        | "optgroup" | "option" | "p" | "plaintext" | "pre" | "search" | "section" | "summary"
        | "table" | "tbody" | "textarea" | "tfoot" | "thead" | "tr" | "ul" | "xmp" => Kind::Block,
        _ => Kind::Inline,
    }
}

/// Whether it goes on after the block that it was opened in, until its own end tag.
pub(super) fn formats(name: &str) -> bool {
    matches!(
        name,
        "a" | "b"
            | "big"
            | "code"
            | "em"
            | "font"
            | "i"
            | "nobr"
            | "s"
            | "small"
            | "strike"
            | "strong"
            | "tt"
            | "u"
    )
}

/// Whether no end tag of what is outside reaches into it (13.2.4.2).
pub(super) fn bounds(name: &str) -> bool {
    matches!(
        name,
        "td" | "th"
            | "caption"
            | "table"
            | "applet"
            | "marquee"
            | "object"
            | "template"
            | "foreignobject"
            | "desc"
            | "annotation-xml"
            | "mi"
            | "mo"
            | "mn"
            | "ms"
            | "mtext"
    )
}

/// Whether end tags of what merely stands around text do not reach past it.
pub(super) fn is_special(name: &str, kind: Kind) -> bool {
    !matches!(kind, Kind::Inline | Kind::Void)
        || bounds(name)
        || matches!(name, "td" | "th" | "select" | "button" | "colgroup")
}

/// Whether it may stand in `head` and leaves it open.
pub(super) fn of_head(name: &str) -> bool {
    matches!(
        name,
        "html"
            | "head"
            | "title"
            | "meta"
            | "link"
            | "style"
            | "script"
            | "base"
            | "basefont"
            | "bgsound"
            | "noscript"
            | "template"
            | "noframes"
    )
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
    pub(super) media: String,
    pub(super) rel: String,
    /// Attributes that amount to styles.
    pub(super) hints: String,
    /// All of them in lower case, where a style sheet asks for any.
    pub(super) attributes: Vec<(String, String)>,
    pub(super) hidden: bool,
    /// Nobody is meant to reach it: `aria-hidden`, `inert`, a `popover`.
    pub(super) set_aside: bool,
    pub(super) open: bool,
    /// What a list or an item begins to count with.
    pub(super) number: Option<u16>,
    /// How many columns and rows a cell spans.
    pub(super) spans: (usize, usize),
}

impl Tag {
    pub(super) fn open(&mut self, name: &str) {
        for buffer in [
            &mut self.name,
            &mut self.attribute,
            &mut self.style,
            &mut self.id,
            &mut self.classes,
            &mut self.href,
            &mut self.alt,
            &mut self.media,
            &mut self.rel,
            &mut self.hints,
        ] {
            buffer.clear();
        }
        self.attributes.clear();
        (self.hidden, self.set_aside, self.open, self.number) = (false, false, false, None);
        self.spans = (1, 1);
        self.name.push_str(name);
    }
}

impl Tag {
    /// Notes the value of the attribute at hand, where style sheets need it.
    pub(super) fn sheet_attribute(&mut self, value: &str) {
        match self.attribute.as_str() {
            "href" => self.href.push_str(value.trim()),
            "rel" => self.rel.push_str(&value.to_ascii_lowercase()),
            "media" => self.media.push_str(value),
            _ => {}
        }
    }

    /// Notes how many columns or rows a cell spans.
    pub(super) fn span(&mut self, value: &str) {
        let span = value.trim().parse().unwrap_or(1);
        match self.attribute.as_str() {
            "colspan" => self.spans.0 = span,
            _ => self.spans.1 = span,
        }
    }
}

/// A name as a number (FNV-1a); a clash would end the wrong element, no more.
pub(super) const fn hash(name: &str) -> u64 {
    let mut rest = if matches!(name.as_bytes(), [b'h', b'1'..=b'6']) {
        "h1".as_bytes()
    } else {
        name.as_bytes()
    };
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    while let [first, others @ ..] = rest {
        hash = (hash ^ *first as u64).wrapping_mul(0x100_0000_01b3);
        rest = others;
    }
    hash
}
