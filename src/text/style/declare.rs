//! Declarations that affect visibility, and their values.

use super::colour::{Paint, read_paint};
use super::hides;
use super::scan::{decode, find_end};
use super::shorthand::{read_font_size, read_line_height, read_shorthand};
use super::value::{Length, length, number, words};

/// The effect of one declaration, as far as it matters for visibility.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Declaration {
    /// `display`, and whether it is `none`.
    Display(bool),
    /// `visibility`, and whether it hides; `None` inherits.
    Visibility(Option<bool>),
    Opacity(f32),
    FontSize(Length),
    Zoom(f32),
    LineHeight(Length),
    /// A property that can hide the element by itself, and whether its value does.
    Hide(HidingProperty, bool),
    Colour(Paint),
    /// The fill colour of the letters; with `None`, the text colour applies.
    Fill(Option<Paint>),
    /// The outline of the letters; `None` if there is none.
    Stroke(Option<Paint>),
    Background(Paint),
    /// A background image: `None` if there is none, otherwise its colour, if it is a plain one.
    Image(Option<Paint>),
    /// Whether the background is clipped to the letters.
    ClipText(bool),
    Scheme(bool),
    /// Whether `left` and similar properties apply, and whether they are relative to the screen.
    Position(bool, bool),
    Shift(Side, Option<Length>),
    Margin(Side, Length),
    Indent(Length),
    Translate(Length, Length),
    /// Whether content that does not fit is cut off, and whether it cannot be scrolled into view.
    Overflow(bool, bool),
    /// Whether the box keeps its size regardless of its content.
    Contained(bool),
    /// The padding at the top.
    PaddingTop(Length),
    /// Whether padding is part of the size.
    BorderBox(bool),
    /// How much of the size `transform` (if the flag is set) or `scale` leaves.
    Scale(bool, f32),
    /// Whether the back is turned to the front.
    Turned(bool),
    /// Whether the back is invisible.
    BackfaceHidden(bool),
    /// Width and height of the area that it shows, in its own units.
    ViewBox(f32, f32),
    /// Words of its animation declarations.
    Animation(Box<str>),
    Size(Measure, Option<Length>),
    ZIndex(i32),
    Blend(Blend),
    /// `all`: resets all properties.
    All,
    /// A custom property.
    Custom(Box<str>, Box<str>),
    /// A declaration whose value depends on custom properties.
    Unresolved(Box<str>, Box<str>),
}

/// Properties that hide by themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HidingProperty {
    Content,
    Filter,
    Clip,
    ClipPath,
    Mask,
    MaskSize,
    Transform,
    Scale,
    Rotate,
    Spacing,
    Security,
    Contain,
    FontAdjust,
    Replaced,
    Font,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Left,
    Top,
    Right,
    Bottom,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Measure {
    Width,
    Height,
    MaxWidth,
    MaxHeight,
    Rows,
    Columns,
}

/// How an element's colours are blended with those behind it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Blend {
    #[default]
    Normal,
    /// Light colours behind it remain.
    Lighter,
    /// Dark colours behind it remain.
    Darker,
    /// Black changes nothing.
    Difference,
}

/// The declarations of one block, with the important ones separate.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Block {
    pub(super) normal: Vec<Declaration>,
    pub(super) important: Vec<Declaration>,
}

/// Maximum length of a value that is read, in bytes.
const VALUE_BYTES: usize = 4096;
/// Maximum number of declarations of a block that count.
const MAX_DECLARATIONS: usize = 4000;

impl Block {
    /// Reads the content of a `style` attribute.
    pub(crate) fn read(text: &str) -> Self {
        let mut block = Self::default();
        let mut rest = text;
        while !rest.is_empty() {
            let end = find_end(rest, b";").map_or(rest.len(), |(at, _)| at);
            block.add(rest.get(..end).unwrap_or_default());
            rest = rest.get(end + 1..).unwrap_or_default();
        }
        block
    }

    /// Adds one declaration.
    pub(super) fn add(&mut self, text: &str) {
        let Some((at, _)) = find_end(text, b":") else {
            return;
        };
        let (Some(name), Some(value)) = (text.get(..at), text.get(at + 1..)) else {
            return;
        };
        let name = decode(name.trim());
        let mut value = decode(value.trim());
        let mut important = false;
        if let Some((before, after)) = value.rsplit_once('!')
            && after.trim() == "important"
        {
            (important, value) = (true, before.trim_end().to_owned());
        }
        let declarations = if important {
            &mut self.important
        } else {
            &mut self.normal
        };
        if declarations.len() < MAX_DECLARATIONS {
            read_declaration(name.trim(), value.trim(), declarations);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.normal.is_empty() && self.important.is_empty()
    }
}

/// Reports whether browsers support a property, as far as this is known here.
pub(super) fn is_known_property(name: &str) -> bool {
    name.starts_with("--")
        || PROPERTIES.binary_search(&name).is_ok()
        || matches!(
            name,
            "gap"
                | "aspect-ratio"
                | "grid-area"
                | "backdrop-filter"
                | "-webkit-backdrop-filter"
                | "object-fit"
        )
}

/// Reads a declaration, which is in lower case, and adds its effects: none if it is invalid or does
/// not matter here.
pub(super) fn read_declaration(name: &str, value: &str, declarations: &mut Vec<Declaration>) {
    if let Some(custom) = name.strip_prefix("--") {
        declarations.push(Declaration::Custom(custom.into(), value.into()));
        return;
    }
    if PROPERTIES.binary_search(&name).is_err() {
        return;
    }
    if value.len() > VALUE_BYTES {
        return;
    }
    if value.contains("var(") {
        declarations.push(Declaration::Unresolved(name.into(), value.into()));
        return;
    }
    let before = declarations.len();
    read_shorthand(name, value, declarations);
    if declarations.len() == before {
        declarations.extend(read_single(name, value));
    }
}

/// Properties that are read, sorted. All others cost no more than a look at their names.
#[rustfmt::skip]
const PROPERTIES: [&str; 104] = [
    "-ms-transform", "-webkit-animation", "-webkit-animation-fill-mode", "-webkit-animation-name",
    "-webkit-backface-visibility", "-webkit-background-clip", "-webkit-clip-path", "-webkit-filter", "-webkit-mask",
    "-webkit-mask-image", "-webkit-mask-size", "-webkit-text-fill-color", "-webkit-text-security", "-webkit-transform",
    "all", "animation", "animation-delay", "animation-duration", "animation-fill-mode", "animation-name",
    "animation-play-state", "backface-visibility", "background", "background-clip", "background-color", "background-image",
    "block-size", "bottom", "box-sizing", "clip", "clip-path", "color", "color-scheme", "contain", "content",
    "content-visibility", "display", "fill", "fill-opacity", "filter", "font", "font-family", "font-size",
    "font-size-adjust", "grid-template", "grid-template-columns", "grid-template-rows", "height", "inline-size", "inset",
    "inset-block", "inset-block-end", "inset-block-start", "inset-inline", "inset-inline-end", "inset-inline-start", "left",
    "letter-spacing", "line-height", "margin", "margin-block", "margin-block-end", "margin-block-start", "margin-bottom",
    "margin-inline", "margin-inline-end", "margin-inline-start", "margin-left", "margin-right", "margin-top", "mask",
    "mask-image", "mask-size", "max-block-size", "max-height", "max-inline-size", "max-width", "mix-blend-mode", "opacity",
    "overflow", "overflow-x", "overflow-y", "padding", "padding-inline-start", "padding-left", "padding-top", "position",
    "right", "rotate", "scale", "stroke", "stroke-width", "text-indent", "text-security", "textlength", "top", "transform",
    "translate", "viewbox", "visibility", "width", "word-spacing", "z-index", "zoom",
];

fn read_single(name: &str, value: &str) -> Option<Declaration> {
    use Declaration as D;
    let hide = |property, hides| Some(D::Hide(property, hides));
    let parsed_length = length(value);
    let is_reset = matches!(value, "initial" | "unset" | "revert" | "revert-layer");
    let shift = |side| {
        (parsed_length.is_some() || is_reset || value == "auto")
            .then_some(D::Shift(side, parsed_length))
    };
    let margin = |side| Some(D::Margin(side, parsed_length.unwrap_or_default()));
    let measure = |dimension| Some(D::Size(dimension, parsed_length));
    match name {
        "display" if value == "inherit" => None,
        "display" => words(value)
            .iter()
            .all(|word| hides::is_display_value(word))
            .then_some(D::Display(
                value == "none" || value.starts_with("table-column"),
            )),
        "visibility" => match value {
            "hidden" | "collapse" => Some(D::Visibility(Some(true))),
            "visible" | "initial" => Some(D::Visibility(Some(false))),
            "inherit" | "unset" | "revert" => Some(D::Visibility(None)),
            _ => None,
        },
        "content-visibility" => hide(HidingProperty::Content, value == "hidden"),
        "opacity" | "fill-opacity" if is_reset => Some(D::Opacity(1.0)),
        "opacity" | "fill-opacity" => {
            hides::read_fraction(value).map(|n| D::Opacity(n.clamp(0.0, 1.0)))
        }
        "filter" | "-webkit-filter" => hide(HidingProperty::Filter, hides::filter(value)),
        "font-size" => read_font_size(value).map(D::FontSize),
        "font-size-adjust" => hide(
            HidingProperty::FontAdjust,
            words(value)
                .last()
                .and_then(|n| number(n))
                .is_some_and(|(n, _)| n < 0.05),
        ),
        "color" => read_paint(value).map(D::Colour),
        "-webkit-text-fill-color" => {
            read_paint(value).map(|paint| D::Fill((paint != Paint::Current).then_some(paint)))
        }
        "fill" if value == "none" => Some(D::Fill(Some(Paint::Known(super::Colour::CLEAR)))),
        "fill" => Some(D::Fill(Some(read_paint(value).unwrap_or(Paint::Unknown)))),
        "stroke" if value == "none" => Some(D::Stroke(None)),
        "stroke" => Some(D::Stroke(Some(read_paint(value).unwrap_or(Paint::Unknown)))),
        "background-color" => read_paint(value).map(D::Background),
        "background-image" => Some(D::Image(
            (value != "none" && !is_reset).then(|| hides::gradient(value)),
        )),
        "background-clip" | "-webkit-background-clip" => {
            Some(D::ClipText(words(value).contains(&"text")))
        }
        "position" => Some(D::Position(
            matches!(value, "absolute" | "fixed" | "relative" | "sticky"),
            value == "fixed",
        )),
        "left" | "inset-inline-start" => shift(Side::Left),
        "top" | "inset-block-start" => shift(Side::Top),
        "right" | "inset-inline-end" => shift(Side::Right),
        "bottom" | "inset-block-end" => shift(Side::Bottom),
        "margin-left" | "margin-inline-start" => margin(Side::Left),
        "margin-top" | "margin-block-start" => margin(Side::Top),
        "margin-right" | "margin-inline-end" => margin(Side::Right),
        "margin-bottom" | "margin-block-end" => margin(Side::Bottom),
        "text-indent" | "padding-left" | "padding-inline-start" => {
            words(value).first().and_then(|n| length(n)).map(D::Indent)
        }
        "translate" => {
            let parts = words(value);
            let at = |n: usize| {
                parts
                    .get(n)
                    .and_then(|part| length(part))
                    .unwrap_or_default()
            };
            Some(D::Translate(at(0), at(1)))
        }
        "scale" => hide(HidingProperty::Scale, false),
        "rotate" => hide(HidingProperty::Rotate, hides::rotate(value)),
        "clip" => hide(HidingProperty::Clip, hides::clip(value)),
        "clip-path" | "-webkit-clip-path" => {
            hide(HidingProperty::ClipPath, hides::clip_path(value))
        }
        "mask" | "mask-image" | "-webkit-mask" | "-webkit-mask-image" => {
            hide(HidingProperty::Mask, hides::mask(value))
        }
        "mask-size" | "-webkit-mask-size" => hide(
            HidingProperty::MaskSize,
            words(value)
                .iter()
                .any(|part| length(part).is_some_and(|size| size.px(16.0, 1000.0) < 1.0)),
        ),
        "overflow" | "overflow-x" | "overflow-y" => {
            let cuts = words(value)
                .iter()
                .any(|word| matches!(*word, "hidden" | "clip"));
            Some(D::Overflow(
                cuts || words(value)
                    .iter()
                    .any(|word| matches!(*word, "scroll" | "auto")),
                cuts,
            ))
        }
        "width" | "inline-size" => measure(Measure::Width),
        "height" | "block-size" => measure(Measure::Height),
        "max-width" | "max-inline-size" => measure(Measure::MaxWidth),
        "max-height" | "max-block-size" => measure(Measure::MaxHeight),
        "grid-template-rows" => Some(D::Size(Measure::Rows, first_track(value))),
        "grid-template-columns" => Some(D::Size(Measure::Columns, first_track(value))),
        "padding-top" => parsed_length.map(D::PaddingTop),
        "box-sizing" => Some(D::BorderBox(value == "border-box")),
        "viewbox" => {
            let numbers: Vec<f32> = value
                .split([',', ' '])
                .filter_map(|part| number(part.trim()))
                .map(|(n, _)| n)
                .collect();
            if let [_, _, width, height] = *numbers.as_slice() {
                Some(D::ViewBox(width, height))
            } else {
                None
            }
        }
        "textlength" => hide(
            HidingProperty::Spacing,
            parsed_length.is_some_and(|length| length.px(16.0, 300.0) <= 3.0),
        ),
        "backface-visibility" | "-webkit-backface-visibility" => {
            Some(D::BackfaceHidden(value == "hidden"))
        }
        // An image in place of the content of the element.
        "content" => hide(HidingProperty::Replaced, value.contains("url(")),
        "font-family" => hide(HidingProperty::Font, value.contains("blank")),
        _ if name.starts_with("animation-")
            || name.starts_with("-webkit-animation")
            || name == "animation" =>
        {
            Some(D::Animation(value.into()))
        }
        "line-height" => read_line_height(value).map(D::LineHeight),
        "zoom" => hides::read_fraction(value).map(|n| D::Zoom(n.clamp(0.0, 100.0))),
        "z-index" => Some(D::ZIndex(value.parse().unwrap_or(0))),
        "mix-blend-mode" => Some(D::Blend(match value {
            "screen" | "lighten" | "color-dodge" | "plus-lighter" => Blend::Lighter,
            "multiply" | "darken" | "color-burn" | "plus-darker" => Blend::Darker,
            "difference" | "exclusion" => Blend::Difference,
            _ => Blend::Normal,
        })),
        "all" => Some(D::All),
        "letter-spacing" | "word-spacing" => hide(
            HidingProperty::Spacing,
            parsed_length.is_some_and(|gap| {
                gap.px(16.0, 16.0)
                    <= if name == "word-spacing" {
                        -100.0
                    } else {
                        -11.0
                    }
            }),
        ),
        "-webkit-text-security" | "text-security" => {
            hide(HidingProperty::Security, value != "none")
        }
        "contain" => {
            let parts = words(value);
            let size = parts.contains(&"strict") || parts.contains(&"size");
            if size && (parts.contains(&"strict") || parts.contains(&"paint")) {
                hide(HidingProperty::Contain, true)
            } else {
                Some(D::Contained(size))
            }
        }
        "color-scheme" => Some(D::Scheme(
            words(value)
                .iter()
                .all(|word| matches!(*word, "dark" | "only")),
        )),
        _ => None,
    }
}

/// Returns the size of the first track of a grid, if it is a length or zero.
fn first_track(value: &str) -> Option<Length> {
    let first = words(value).first().copied()?;
    if first == "0fr" {
        Some(Length::default())
    } else {
        length(first)
    }
}
