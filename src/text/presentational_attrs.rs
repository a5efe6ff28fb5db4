//! How attributes other than `style` affect the look of an element (WHATWG HTML, 15; SVG 2, 6.6).

use super::style::OwnStyle;

/// Maximum length of an image description that is written out, in bytes; a longer one is text that
/// nobody sees.
pub(super) const ALT_BYTES: usize = 80;
/// Minimum length of attribute values and titles that count as prose, in bytes.
const PROSE_BYTES: usize = 16;

/// Reports whether a text is long enough to be a message by itself.
pub(super) fn is_prose(text: &str) -> bool {
    text.len() >= PROSE_BYTES && text.trim().matches(' ').count() > 1
}

/// Class names that hide elements by convention of the major style sheets (Bootstrap, Tailwind,
/// WordPress, HTML5 Boilerplate), unless the page's own sheets say otherwise.
const HIDING: [&str; 25] = [
    "a11y-hidden",
    "d-none",
    "display-none",
    "element-invisible",
    "hidden",
    "hide",
    "invisible",
    "is-hidden",
    "is-invisible",
    "opacity-0",
    "scale-0",
    "screen-reader-only",
    "screen-reader-text",
    "show-for-sr",
    "sr-only",
    "text-[0]",
    "text-[0px]",
    "text-hide",
    "text-transparent",
    "u-hidden",
    "u-visually-hidden",
    "visually-hidden",
    "visually-hidden-focusable",
    "visuallyhidden",
    "vh",
];

/// Attributes of SVG and MathML that are styles.
const STYLES: [&str; 14] = [
    "opacity",
    "fill",
    "fill-opacity",
    "stroke",
    "display",
    "visibility",
    "font-size",
    "transform",
    "clip-path",
    "mask",
    "overflow",
    "width",
    "height",
    "color",
];

/// Reports whether one of the classes hides an element and none of them shows it again on some
/// screens.
pub(super) fn has_hiding_class(classes: &str) -> bool {
    let mut all = classes.split_ascii_whitespace();
    let shows = |class: &str| {
        class.contains(':')
            || ((class.starts_with("d-") || class.starts_with("visible-")) && class != "d-none")
            || class == "bg-clip-text"
    };
    let hides = |class: &str| {
        let first = class.bytes().next().unwrap_or(0).to_ascii_lowercase();
        matches!(
            first,
            b'a' | b'd' | b'e' | b'h' | b'i' | b'o' | b's' | b't' | b'u' | b'v'
        ) && HIDING
            .iter()
            .any(|hiding| hiding.eq_ignore_ascii_case(class))
    };
    all.clone().any(hides) && !all.any(shows)
}

/// Adds an attribute as the equivalent style declaration.
pub(super) fn add_hint(
    element: &str,
    foreign: bool,
    name: &str,
    value: &str,
    declarations: &mut String,
) {
    let mut add = |property: &str, value: &str| {
        // One attribute is one declaration.
        if !value.contains([';', '{', '}']) {
            for part in [property, ":", value, ";"] {
                declarations.push_str(part);
            }
        }
    };
    match name {
        _ if foreign && STYLES.contains(&name) => add(name, value),
        "x" | "dx" if foreign => add("margin-left", value),
        "y" | "dy" if foreign => add("margin-top", value),
        "viewbox" if element == "svg" => add("viewbox", value),
        "textlength" if foreign => add("textlength", value),
        "width" | "height" if element == "marquee" => add(name, value),
        "mathcolor" => add("color", value),
        "mathbackground" => add("background-color", value),
        "mathsize" => add("font-size", value),
        "bgcolor" => add("background-color", &css_colour(value)),
        "color" if element == "font" || element == "basefont" => add("color", &css_colour(value)),
        "text" if element == "body" => add("color", &css_colour(value)),
        "background" => add("background-image", "url(x)"),
        "size" if element == "font" => {
            let size = match value.trim() {
                "1" | "0" | "-2" | "-3" | "-4" | "-5" | "-6" | "-7" => "10px",
                "2" | "-1" => "13px",
                _ => "16px",
            };
            add("font-size", size);
        }
        _ => {}
    }
}

/// Reports whether an element looks different from the text around it.
pub(super) fn has_own_style(element: &str) -> bool {
    matches!(
        element,
        "small"
            | "sub"
            | "sup"
            | "big"
            | "mark"
            | "button"
            | "input"
            | "select"
            | "textarea"
            | "svg"
            | "foreignobject"
            | "marquee"
    )
}

/// Returns how an element looks before styles are applied.
pub(super) fn initial_style(element: &str, hidden: bool, hints: &str) -> OwnStyle {
    let mut style = OwnStyle::default();
    match element {
        "small" | "sub" | "sup" => style.apply_hint("font-size:smaller"),
        "big" => style.apply_hint("font-size:larger"),
        "mark" => style.apply_hint("background-color:#ff0;color:#000"),
        "button" | "input" | "select" => style.apply_hint("background-color:#efefef;color:#000"),
        "textarea" => style.apply_hint("background-color:#fff;color:#000;overflow:hidden"),
        "svg" | "foreignobject" | "marquee" => style.apply_hint("overflow:hidden"),
        _ => {}
    }
    if !hints.is_empty() {
        style.apply_hint(hints);
    }
    if element == "svg" && !hints.contains("viewbox:") {
        let side = |name: &str| {
            hints
                .split(';')
                .rev()
                .find_map(|hint| hint.strip_prefix(name))
        };
        let or_unlimited = |side: Option<&str>| {
            side.filter(|side| !side.contains('%'))
                .unwrap_or("100000")
                .to_owned()
        };
        style.apply_hint(&format!(
            "viewbox:0 0 {} {}",
            or_unlimited(side("width:")),
            or_unlimited(side("height:"))
        ));
    }
    if hidden {
        style.apply_hint("display:none");
    }
    style
}

/// Converts the colour of an attribute, written with or without `#`, to CSS.
fn css_colour(value: &str) -> String {
    let value = value.trim();
    let is_bare = matches!(value.len(), 3 | 6) && value.bytes().all(|b| b.is_ascii_hexdigit());
    if is_bare {
        format!("#{value}")
    } else {
        value.to_owned()
    }
}
