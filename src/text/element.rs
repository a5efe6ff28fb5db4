//! Elements of a page, as far as they matter for layout and hiding.

use super::render::Point;
use super::style::{InheritedStyle, OwnStyle};

/// The state that an open element passes on to its content.
#[derive(Clone, Copy)]
pub(super) struct State {
    pub(super) style: InheritedStyle,
    pub(super) pre: bool,
    /// Whether the content is SVG or MathML.
    pub(super) foreign: bool,
    /// Whether a person sees the content only after a click. Such content is shown, and also judged
    /// as hidden.
    pub(super) folded: bool,
    /// Marked as code, or as struck out.
    pub(super) code: bool,
    pub(super) struck: bool,
}

impl State {
    pub(super) const START: Self = Self {
        style: InheritedStyle::START,
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
    /// The style of a formatting element, which continues after the end of the block that it was
    /// opened in (13.2.4.3).
    pub(super) formatting: Option<Box<OwnStyle>>,
    /// Whether the element is a boundary: formatting elements opened inside end with it, and end
    /// tags of outer elements do not reach into it.
    pub(super) is_marker: bool,
}

/// The mark that is written when an element ends, around the text written since a point.
#[derive(Clone, Copy, Debug)]
pub(super) enum Mark {
    None,
    Link,
    Fence(Point),
    Code(Point),
    Struck(Point),
    /// The flag is set for text above the line (superscript).
    Script(Point, bool),
    /// An outermost list.
    List,
    Table,
    Row,
    Cell,
}

/// The role of an element in the layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Inline,
    Block,
    Void,
    /// Its content is not displayed.
    NotDisplayed,
    /// Raw text up to its end tag, without markup in it; not displayed.
    Raw,
}

pub(super) fn kind(name: &str, foreign: bool) -> Kind {
    match name {
        "title" | "style" | "script" | "iframe" if foreign => Kind::NotDisplayed,
        "area" | "base" | "basefont" | "bgsound" | "br" | "col" | "embed" | "frame" | "hr"
        | "img" | "input" | "keygen" | "link" | "meta" | "param" | "source" | "track" | "wbr" => {
            Kind::Void
        }
        "script" | "style" | "noembed" | "noframes" | "noscript" | "iframe" | "title" => Kind::Raw,
        "head" | "template" | "datalist" | "object" | "desc" | "metadata" | "defs" | "symbol"
        | "applet" | "audio" | "video" | "canvas" | "clippath" | "mask" | "pattern" | "marker"
        | "lineargradient" | "radialgradient" | "filter" | "meter" | "progress" | "annotation"
        | "annotation-xml" | "mphantom" | "rp" | "frameset" => Kind::NotDisplayed,
        "address" | "article" | "aside" | "blockquote" | "body" | "caption" | "center" | "dd"
        | "details" | "dialog" | "dir" | "div" | "dl" | "dt" | "fieldset" | "figcaption"
        | "figure" | "footer" | "form" | "h1" | "h2" | "h3" | "h4" | "h5" | "h6" | "header"
        | "hgroup" | "html" | "legend" | "li" | "listing" | "main" | "menu" | "nav" | "ol"
        | "optgroup" | "option" | "p" | "plaintext" | "pre" | "search" | "section" | "summary"
        | "table" | "tbody" | "textarea" | "tfoot" | "thead" | "tr" | "ul" | "xmp" => Kind::Block,
        _ => Kind::Inline,
    }
}

/// Reports whether an element continues after the end of the block that it was opened in, until its
/// own end tag.
pub(super) fn is_formatting(name: &str) -> bool {
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

/// Reports whether end tags of outer elements do not reach into an element (13.2.4.2).
pub(super) fn is_boundary(name: &str) -> bool {
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

/// Reports whether end tags of inline elements do not reach past an element.
pub(super) fn is_special(name: &str, kind: Kind) -> bool {
    !matches!(kind, Kind::Inline | Kind::Void)
        || is_boundary(name)
        || matches!(name, "td" | "th" | "select" | "button" | "colgroup")
}

/// Reports whether an element may occur in `head` without closing it.
pub(super) fn is_head_content(name: &str) -> bool {
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

/// The current start tag. Its buffers are reused from tag to tag.
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
    /// Presentational attributes, written as style declarations.
    pub(super) hints: String,
    /// All attributes in lower case, if a style sheet has selectors for attributes.
    pub(super) attributes: Vec<(String, String)>,
    pub(super) hidden: bool,
    /// Whether nobody is meant to reach the element: `aria-hidden`, `inert`, a `popover`.
    pub(super) set_aside: bool,
    pub(super) open: bool,
    /// The number at which a list or an item starts to count.
    pub(super) number: Option<u16>,
    /// The number of columns and rows that a cell spans.
    pub(super) spans: (usize, usize),
}

impl Tag {
    pub(super) fn reset(&mut self, name: &str) {
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
    /// Stores the value of the current attribute, if style sheets need it.
    pub(super) fn store_sheet_attribute(&mut self, value: &str) {
        match self.attribute.as_str() {
            "href" => self.href.push_str(value.trim()),
            "rel" => self.rel.push_str(&value.to_ascii_lowercase()),
            "media" => self.media.push_str(value),
            _ => {}
        }
    }

    /// Stores the number of columns or rows that a cell spans.
    pub(super) fn store_span(&mut self, value: &str) {
        let span = value.trim().parse().unwrap_or(1);
        match self.attribute.as_str() {
            "colspan" => self.spans.0 = span,
            _ => self.spans.1 = span,
        }
    }
}

/// Returns a name as a number (FNV-1a). A collision would only end the wrong element.
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
