//! Whether the value of a property hides an element by itself.

use super::colour::{Colour, Paint, read_paint};
use super::value::{Length, functions, length, list, number, words};

/// Position at which an image covers nothing, in pixels.
const FAR_OFF: f32 = -1000.0;

/// Reports whether a word is a value of `display`: a declaration with any other is ignored.
pub(super) fn is_display_value(word: &str) -> bool {
    matches!(
        word,
        "none"
            | "block"
            | "inline"
            | "contents"
            | "flow"
            | "flow-root"
            | "flex"
            | "grid"
            | "table"
            | "list-item"
            | "ruby"
            | "math"
            | "run-in"
            | "initial"
            | "unset"
            | "revert"
            | "revert-layer"
    ) || ["inline-", "table-", "ruby-", "-webkit-", "-ms-", "-moz-"]
        .iter()
        .any(|start| word.starts_with(start))
}

/// Reads a number or a percentage, which may have to be calculated.
pub(super) fn read_fraction(value: &str) -> Option<f32> {
    match number(value.trim()) {
        Some((n, "%")) => Some(n / 100.0),
        Some((n, "")) => Some(n),
        _ => length(value).map(|length| length.px(0.0, 1.0)),
    }
}

/// Reports whether a `filter` leaves nothing of the element, or nothing distinguishable.
pub(super) fn filter(value: &str) -> bool {
    let mut is_white = false;
    functions(value).into_iter().any(|(name, inner)| {
        let share = || read_fraction(inner);
        match name {
            "opacity" => share().is_some_and(|n| n <= 0.1),
            "brightness" if !is_white => {
                is_white = share().is_some_and(|n| n <= 0.02);
                false
            }
            // Letters become white, on the page's own background.
            "invert" => is_white && share().is_none_or(|n| n >= 0.98),
            "contrast" => share().is_some_and(|n| n <= 0.03),
            "blur" => length(inner).is_some_and(|radius| radius.px(16.0, 0.0) >= 8.0),
            _ => false,
        }
    })
}

/// Reports whether a `transform` turns or scales the element to nothing.
pub(super) fn transform(value: &str) -> bool {
    let mut depth = f32::MAX;
    functions(value).into_iter().any(|(name, inner)| {
        // SVG omits the commas.
        let parts = if inner.contains(',') {
            list(inner, ',')
        } else {
            words(inner)
        };
        let is_near_zero = |at: usize| {
            parts
                .get(at)
                .and_then(|n| read_fraction(n))
                .is_some_and(|n| n.abs() < 0.05)
        };
        match name {
            "scale" | "scale3d" => scale(parts.get(..parts.len().min(2)).unwrap_or_default()),
            "scalex" | "scaley" => is_near_zero(0),
            "matrix" => {
                (is_near_zero(0) && is_near_zero(1)) || (is_near_zero(2) && is_near_zero(3))
            }
            "matrix3d" => {
                (is_near_zero(0) && is_near_zero(1)) || (is_near_zero(4) && is_near_zero(5))
            }
            "rotatex" | "rotatey" => is_edge_on(inner),
            "rotate3d" => {
                parts
                    .get(2)
                    .and_then(|z| number(z))
                    .is_some_and(|(z, _)| z == 0.0)
                    && parts.get(3).is_some_and(|turn| is_edge_on(turn))
            }
            "skew" | "skewx" | "skewy" => parts.iter().any(|part| is_edge_on(part)),
            "perspective" => {
                depth = length(inner).map_or(depth, |depth| depth.px(16.0, 0.0));
                false
            }
            // Behind the eye of the viewer.
            "translatez" => length(inner).is_some_and(|z| z.px(16.0, 0.0) >= depth),
            _ => false,
        }
    })
}

/// Reports whether a `rotate` turns the element edge-on.
pub(super) fn rotate(value: &str) -> bool {
    let parts = words(value);
    // An axis given in numbers is a tilted one, except for `0 0 1`.
    let numbers: Vec<f32> = parts
        .iter()
        .filter_map(|part| number(part))
        .filter(|(_, unit)| unit.is_empty())
        .map(|n| n.0)
        .collect();
    let is_tilted =
        matches!(numbers.as_slice(), [x, y, z] if *z == 0.0 && (*x != 0.0 || *y != 0.0));
    (is_tilted || parts.contains(&"x") || parts.contains(&"y"))
        && parts
            .iter()
            .any(|part| number(part).is_some() && is_edge_on(part))
}

/// Reports whether a `transform` turns the back to the front.
pub(super) fn is_turned_away(value: &str) -> bool {
    functions(value).into_iter().any(|(name, inner)| {
        let degrees = read_degrees(inner.rsplit(',').next().unwrap_or_default())
            .map(|turn| turn.rem_euclid(360.0));
        matches!(name, "rotatex" | "rotatey" | "rotate3d")
            && degrees.is_some_and(|turn| turn > 90.0 && turn < 270.0)
    })
}

/// Reports whether an angle is a right angle, or nearly one.
fn is_edge_on(angle: &str) -> bool {
    read_degrees(angle).is_some_and(|degrees| (degrees.rem_euclid(180.0) - 90.0).abs() < 1.0)
}

fn read_degrees(angle: &str) -> Option<f32> {
    let (n, unit) = number(angle.trim())?;
    Some(match unit {
        "turn" => n * 360.0,
        "rad" => n.to_degrees(),
        "grad" => n * 0.9,
        _ => n,
    })
}

/// Returns how much of the size the scale functions of a `transform` leave.
pub(super) fn scale_factor(value: &str) -> f32 {
    functions(value)
        .into_iter()
        .filter(|(name, _)| matches!(*name, "scale" | "scale3d" | "scalex" | "scaley"))
        .filter_map(|(_, inner)| read_fraction(inner.split(',').next().unwrap_or_default()))
        .fold(1.0, |left, by| left * by.abs())
}

/// Reports whether any of the factors leaves almost nothing.
pub(super) fn scale(parts: &[&str]) -> bool {
    parts
        .iter()
        .take(2)
        .any(|part| read_fraction(part).is_some_and(|n| n.abs() < 0.05))
}

/// Reports whether a `clip` is a rectangle without area.
pub(super) fn clip(value: &str) -> bool {
    let functions = functions(value);
    let Some(("rect", inner)) = functions.first() else {
        return false;
    };
    let sides: Vec<Option<f32>> = inner
        .split([',', ' '])
        .filter(|part| !part.is_empty())
        .map(|part| length(part).map(|side| side.px(16.0, 0.0)))
        .collect();
    let has_no_extent =
        |from: Option<Option<f32>>, to: Option<Option<f32>>| match (from.flatten(), to.flatten()) {
            (from, Some(to)) => to - from.unwrap_or(0.0) <= 2.0,
            // If the first edge is far out, `auto` leaves nothing either.
            (Some(from), None) => from >= 1000.0,
            (None, None) => false,
        };
    let at = |n: usize| sides.get(n).copied();
    has_no_extent(at(0), at(2)) || has_no_extent(at(3), at(1))
}

/// Reports whether a `clip-path` is a shape without area.
pub(super) fn clip_path(value: &str) -> bool {
    const WHOLE: f32 = 300.0;
    let px = |length: Length| length.px(16.0, WHOLE);
    functions(value).into_iter().any(|(name, inner)| {
        let shape = inner
            .split(" round ")
            .next()
            .unwrap_or_default()
            .split(" at ")
            .next()
            .unwrap_or_default();
        let parts: Vec<Option<f32>> = words(shape)
            .iter()
            .map(|part| length(part).map(px))
            .collect();
        let at = |n: usize| parts.get(n).copied().flatten();
        match name {
            "inset" => {
                let top = at(0).unwrap_or(0.0);
                let right = at(1).unwrap_or(top);
                let bottom = at(2).unwrap_or(top);
                let left = at(3).unwrap_or(right);
                top + bottom >= WHOLE - 3.0 || left + right >= WHOLE - 3.0
            }
            "circle" | "ellipse" => {
                at(0).is_some_and(|n| n <= 1.0) || at(1).is_some_and(|n| n <= 1.0) || {
                    let centre = inner.split_once(" at ").map_or("", |(_, centre)| centre);
                    let radius = at(0).unwrap_or(WHOLE).max(at(1).unwrap_or(0.0));
                    words(centre)
                        .iter()
                        .filter_map(|part| length(part))
                        .any(|far| px(far) <= -radius)
                }
            }
            "rect" => {
                at(2).zip(at(0)).is_some_and(|(to, from)| to - from <= 1.0)
                    || at(1).zip(at(3)).is_some_and(|(to, from)| to - from <= 1.0)
            }
            "xywh" => {
                let lies_beyond = |from: usize, size: usize| {
                    at(from)
                        .zip(at(size))
                        .is_some_and(|(from, size)| from + size <= 1.0)
                };
                at(2).is_some_and(|n| n <= 1.0)
                    || at(3).is_some_and(|n| n <= 1.0)
                    || lies_beyond(0, 2)
                    || lies_beyond(1, 3)
            }
            "polygon" => is_flat(inner, WHOLE) && is_flat(inner, 10.0 * WHOLE),
            // A path that never leaves its first point, or begins and stays outside.
            "path" | "shape" => {
                let is_outside = inner
                    .trim_start_matches(['"', '\'', 'm', ' ', '+'])
                    .starts_with('-')
                    && !inner.contains(['l', 'c', 'q', 'a', 's', 't']);
                is_outside || !inner.bytes().any(|b| b.is_ascii_digit() && b != b'0')
            }
            _ => false,
        }
    })
}

/// Reports whether a polygon encloses nothing of a box of a given size.
fn is_flat(inner: &str, whole: f32) -> bool {
    let mut points = Vec::new();
    for point in list(inner, ',') {
        let coordinates: Vec<f32> = words(point)
            .iter()
            .filter_map(|part| length(part))
            .map(|part| part.px(16.0, whole))
            .collect();
        match coordinates.as_slice() {
            [x, y] => points.push((*x, *y)),
            _ if matches!(point, "nonzero" | "evenodd") => {}
            _ => return false,
        }
    }
    let next = points.iter().cycle().skip(1);
    let area: f32 = points
        .iter()
        .zip(next)
        .map(|((x, y), (x2, y2))| x * y2 - x2 * y)
        .sum();
    // Or it is entirely outside the box.
    area.abs() < 4.0
        || points.iter().all(|(x, _)| *x < 0.0)
        || points.iter().all(|(_, y)| *y < 0.0)
        || points.iter().all(|(x, _)| *x >= whole)
        || points.iter().all(|(_, y)| *y >= whole)
}

/// Reports whether a `mask` lets nothing show through.
pub(super) fn mask(value: &str) -> bool {
    // An image that cannot be loaded masks everything, and one that can be loaded is not seen here.
    if value.contains("url(") && !value.contains("url(#") {
        return true;
    }
    let is_far = |part: &str| length(part).is_some_and(|at| at.px(16.0, 0.0) <= FAR_OFF);
    let size = value.split_once('/').map_or("", |(_, size)| size);
    if words(size)
        .iter()
        .take(2)
        .any(|part| length(part).is_some_and(|n| n.px(16.0, 1000.0) < 1.0))
        || words(value).into_iter().any(is_far)
    {
        return true;
    }
    let inner = functions(value)
        .into_iter()
        .find(|(name, _)| name.ends_with("image-set"))
        .map_or(value, |(_, inner)| inner);
    let stops = find_stops(inner);
    !stops.is_empty()
        && stops
            .iter()
            .all(|stop| matches!(stop, Paint::Known(colour) if colour.alpha() < 0.1))
}

/// Returns an image behind the letters as a plain colour, if it is one.
pub(super) fn gradient(value: &str) -> Paint {
    let stops = find_stops(value);
    match stops.as_slice() {
        [Paint::Known(first), rest @ ..]
            if rest
                .iter()
                .all(|stop| matches!(stop, Paint::Known(colour) if is_near(*first, *colour))) =>
        {
            Paint::Known(*first)
        }
        _ => Paint::Unknown,
    }
}

fn is_near(a: Colour, b: Colour) -> bool {
    a.0.iter().zip(b.0).all(|(x, y)| (x - y).abs() < 0.05)
}

/// Returns the colours of all gradients in a value; empty if there is another image as well.
fn find_stops(value: &str) -> Vec<Paint> {
    let mut colours = Vec::new();
    for (name, inner) in list(value, ',').into_iter().flat_map(functions) {
        if !name.ends_with("gradient") {
            return Vec::new();
        }
        colours.extend(
            list(inner, ',')
                .into_iter()
                .filter_map(|part| words(part).iter().find_map(|word| read_paint(word))),
        );
    }
    colours
}
