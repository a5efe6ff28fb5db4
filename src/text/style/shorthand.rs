//! Properties that set several others at once, and those with lists of their own.

use super::Colour;
use super::colour::{Paint, read_paint};
use super::declare::{Declaration, HidingProperty, Measure, Side};
use super::hides;
use super::value::{Length, functions, length, list, number, words};

/// Reads such a property as the equivalent declarations; adds nothing for any other property.
pub(super) fn read_shorthand(name: &str, value: &str, declarations: &mut Vec<Declaration>) {
    let sides = |parts: &[&str]| -> Option<[Option<Length>; 4]> {
        let length_at = |at: usize| parts.get(at).map(|part| length(part));
        let top = length_at(0)?;
        let right = length_at(1).unwrap_or(top);
        Some([
            top,
            right,
            length_at(2).unwrap_or(top),
            length_at(3).unwrap_or(right),
        ])
    };
    const ROUND: [Side; 4] = [Side::Top, Side::Right, Side::Bottom, Side::Left];
    let parts = || words(value);
    match name {
        "inset" => {
            let all = sides(&parts()).into_iter().flatten();
            declarations.extend(
                ROUND
                    .into_iter()
                    .zip(all)
                    .map(|(side, length)| Declaration::Shift(side, length)),
            );
        }
        "margin" => {
            let all = sides(&parts()).into_iter().flatten();
            declarations.extend(
                ROUND
                    .into_iter()
                    .zip(all)
                    .map(|(side, length)| Declaration::Margin(side, length.unwrap_or_default())),
            );
        }
        "padding" => {
            if let Some([top, _, _, left]) = sides(&parts()) {
                declarations.extend(left.map(Declaration::Indent));
                declarations.extend(top.map(Declaration::PaddingTop));
            }
        }
        "inset-inline" | "inset-block" | "margin-inline" | "margin-block" => {
            let side = if name.ends_with("inline") {
                Side::Left
            } else {
                Side::Top
            };
            let first = parts().first().and_then(|part| length(part));
            declarations.push(if name.starts_with('i') {
                Declaration::Shift(side, first)
            } else {
                Declaration::Margin(side, first.unwrap_or_default())
            });
        }
        "scale" if value != "none" => {
            declarations.push(Declaration::Hide(
                HidingProperty::Scale,
                hides::scale(&parts()),
            ));
            declarations.extend(
                parts()
                    .first()
                    .and_then(|n| hides::read_fraction(n))
                    .map(|by| Declaration::Scale(false, by.abs())),
            );
        }
        "grid-template" => {
            if let Some((rows, columns)) = value.split_once('/') {
                declarations.extend(
                    length(rows.trim()).map(|rows| Declaration::Size(Measure::Rows, Some(rows))),
                );
                declarations.extend(
                    length(columns.trim())
                        .map(|columns| Declaration::Size(Measure::Columns, Some(columns))),
                );
            }
        }
        "background" => read_background(value, declarations),
        "font" => read_font(value, declarations),
        "transform" | "-webkit-transform" | "-ms-transform" => {
            let is_hidden = hides::transform(value);
            declarations.push(Declaration::Hide(HidingProperty::Transform, is_hidden));
            declarations.push(Declaration::Turned(hides::is_turned_away(value)));
            if value.contains("scale") || value.contains("matrix") {
                declarations.push(Declaration::Scale(true, hides::scale_factor(value)));
            }
            let mut x = Length::default();
            let mut y = Length::default();
            for (name, inner) in functions(value) {
                // SVG omits the commas.
                let parts = if inner.contains(',') {
                    list(inner, ',')
                } else {
                    words(inner)
                };
                let at = |n: usize| {
                    parts
                        .get(n)
                        .and_then(|part| length(part))
                        .unwrap_or_default()
                };
                match name {
                    "translate" | "translate3d" => (x, y) = (at(0), at(1)),
                    "translatex" => x = at(0),
                    "translatey" => y = at(0),
                    "matrix" => (x, y) = (at(4), at(5)),
                    "matrix3d" => (x, y) = (at(12), at(13)),
                    _ => {}
                }
            }
            declarations.push(Declaration::Translate(x, y));
        }
        _ => {}
    }
}

fn read_background(value: &str, declarations: &mut Vec<Declaration>) {
    let mut colour = Paint::Known(Colour::CLEAR);
    let mut image = None;
    let mut clip = false;
    for part in words(value).into_iter().flat_map(|word| list(word, ',')) {
        if part.starts_with("url(")
            || part.starts_with("image")
            || part.contains("gradient(")
            || part.starts_with("cross-fade(")
        {
            image = Some(hides::gradient(part));
        } else if let Some(paint) = read_paint(part) {
            colour = paint;
        } else {
            clip |= part == "text";
        }
    }
    declarations.extend([
        Declaration::Background(colour),
        Declaration::Image(image),
        Declaration::ClipText(clip),
    ]);
}

fn read_font(value: &str, declarations: &mut Vec<Declaration>) {
    let size = words(value).into_iter().find_map(|word| {
        let (size, line) = word
            .split_once('/')
            .map_or((word, None), |(size, line)| (size, Some(line)));
        // Weights are numbers too, but only zero is a size without a unit.
        let is_weight = size.parse::<f32>().is_ok_and(|n| n != 0.0);
        (!is_weight)
            .then(|| read_font_size(size))
            .flatten()
            .map(|size| (size, line))
    });
    if let Some((size, line)) = size {
        declarations.push(Declaration::FontSize(size));
        declarations.extend(line.and_then(read_line_height).map(Declaration::LineHeight));
    }
}

pub(super) fn read_font_size(value: &str) -> Option<Length> {
    let from_px = |px| Some(Length::from_px(px));
    match value {
        "xx-small" => from_px(9.0),
        "x-small" => from_px(10.0),
        "small" => from_px(13.0),
        "medium" | "initial" | "revert" => from_px(16.0),
        "large" => from_px(18.0),
        "x-large" => from_px(24.0),
        "xx-large" => from_px(32.0),
        "xxx-large" => from_px(48.0),
        "smaller" => Some(Length {
            em: 0.833,
            ..Length::default()
        }),
        "larger" => Some(Length {
            em: 1.2,
            ..Length::default()
        }),
        "inherit" | "unset" => Some(Length {
            em: 1.0,
            ..Length::default()
        }),
        _ => length(value),
    }
}

pub(super) fn read_line_height(value: &str) -> Option<Length> {
    // A number is a multiple of the font size.
    match number(value) {
        Some((n, "")) => Some(Length {
            em: n,
            ..Length::default()
        }),
        _ => length(value),
    }
}
