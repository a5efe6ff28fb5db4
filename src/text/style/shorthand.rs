//! Properties that set several others at once, and those with lists of their own.

use super::Colour;
use super::colour::{Paint, paint};
use super::declare::{Declaration, HidingProperty, Measure, Side};
use super::hides;
use super::value::{Length, functions, length, list, number, words};

/// Reads such a property as the equivalent declarations; adds nothing for any other property.
pub(super) fn shorthand(name: &str, value: &str, to: &mut Vec<Declaration>) {
    let sides = |parts: &[&str]| -> Option<[Option<Length>; 4]> {
        let read = |at: usize| parts.get(at).map(|part| length(part));
        let top = read(0)?;
        let right = read(1).unwrap_or(top);
        Some([top, right, read(2).unwrap_or(top), read(3).unwrap_or(right)])
    };
    const ROUND: [Side; 4] = [Side::Top, Side::Right, Side::Bottom, Side::Left];
    let parts = || words(value);
    match name {
        "inset" => {
            let all = sides(&parts()).into_iter().flatten();
            to.extend(
                ROUND
                    .into_iter()
                    .zip(all)
                    .map(|(side, length)| Declaration::Shift(side, length)),
            );
        }
        "margin" => {
            let all = sides(&parts()).into_iter().flatten();
            to.extend(
                ROUND
                    .into_iter()
                    .zip(all)
                    .map(|(side, length)| Declaration::Margin(side, length.unwrap_or_default())),
            );
        }
        "padding" => {
            if let Some([top, _, _, left]) = sides(&parts()) {
                to.extend(left.map(Declaration::Indent));
                to.extend(top.map(Declaration::Pad));
            }
        }
        "inset-inline" | "inset-block" | "margin-inline" | "margin-block" => {
            let side = if name.ends_with("inline") {
                Side::Left
            } else {
                Side::Top
            };
            let first = parts().first().and_then(|part| length(part));
            to.push(if name.starts_with('i') {
                Declaration::Shift(side, first)
            } else {
                Declaration::Margin(side, first.unwrap_or_default())
            });
        }
        "scale" if value != "none" => {
            to.push(Declaration::Vanish(
                HidingProperty::Scale,
                hides::scale(&parts()),
            ));
            to.extend(
                parts()
                    .first()
                    .and_then(|n| hides::share(n))
                    .map(|by| Declaration::Grow(false, by.abs())),
            );
        }
        "grid-template" => {
            if let Some((rows, columns)) = value.split_once('/') {
                to.extend(
                    length(rows.trim()).map(|rows| Declaration::Size(Measure::Rows, Some(rows))),
                );
                to.extend(
                    length(columns.trim())
                        .map(|columns| Declaration::Size(Measure::Columns, Some(columns))),
                );
            }
        }
        "background" => background(value, to),
        "font" => font(value, to),
        "transform" | "-webkit-transform" | "-ms-transform" => {
            let zero = hides::transform(value);
            to.push(Declaration::Vanish(HidingProperty::Transform, zero));
            to.push(Declaration::Turned(hides::is_turned_away(value)));
            if value.contains("scale") || value.contains("matrix") {
                to.push(Declaration::Grow(true, hides::scale_factor(value)));
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
            to.push(Declaration::Translate(x, y));
        }
        _ => {}
    }
}

fn background(value: &str, to: &mut Vec<Declaration>) {
    let mut ground = Paint::Is(Colour::CLEAR);
    let mut image = None;
    let mut clip = false;
    for part in words(value).into_iter().flat_map(|word| list(word, ',')) {
        if part.starts_with("url(")
            || part.starts_with("image")
            || part.contains("gradient(")
            || part.starts_with("cross-fade(")
        {
            image = Some(hides::gradient(part));
        } else if let Some(paint) = paint(part) {
            ground = paint;
        } else {
            clip |= part == "text";
        }
    }
    to.extend([
        Declaration::Ground(ground),
        Declaration::Image(image),
        Declaration::ClipText(clip),
    ]);
}

fn font(value: &str, to: &mut Vec<Declaration>) {
    let size = words(value).into_iter().find_map(|word| {
        let (size, line) = word
            .split_once('/')
            .map_or((word, None), |(size, line)| (size, Some(line)));
        // Weights are numbers too, but only zero is a size without a unit.
        let weight = size.parse::<f32>().is_ok_and(|n| n != 0.0);
        (!weight)
            .then(|| font_size(size))
            .flatten()
            .map(|size| (size, line))
    });
    if let Some((size, line)) = size {
        to.push(Declaration::FontSize(size));
        to.extend(line.and_then(line_height).map(Declaration::LineHeight));
    }
}

pub(super) fn font_size(value: &str) -> Option<Length> {
    let of_px = |px| Some(Length::of_px(px));
    match value {
        "xx-small" => of_px(9.0),
        "x-small" => of_px(10.0),
        "small" => of_px(13.0),
        "medium" | "initial" | "revert" => of_px(16.0),
        "large" => of_px(18.0),
        "x-large" => of_px(24.0),
        "xx-large" => of_px(32.0),
        "xxx-large" => of_px(48.0),
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

pub(super) fn line_height(value: &str) -> Option<Length> {
    // A number is a multiple of the font size.
    match number(value) {
        Some((n, "")) => Some(Length {
            em: n,
            ..Length::default()
        }),
        _ => length(value),
    }
}
