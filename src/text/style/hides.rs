//! Whether a value of a property by itself takes an element from sight.

use super::colour::{Colour, Paint, paint};
use super::value::{Length, functions, length, list, number, words};

/// Whether a word is one of `display`: a declaration with any other is passed over.
pub(super) fn displays(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|b| b.is_ascii_lowercase() || b == b'-') && !matches!(word, "hidden" | "visible" | "0")
}

/// `filter`: nothing of it is left, or nothing that could be told apart.
pub(super) fn filter(value: &str) -> bool {
    functions(value).into_iter().any(|(name, inner)| {
        let share = || number(inner.trim()).map(|(n, unit)| if unit == "%" { n / 100.0 } else { n });
        match name {
            "opacity" => share().is_some_and(|n| n <= 0.1),
            "contrast" => share().is_some_and(|n| n <= 0.03),
            "blur" => length(inner).is_some_and(|radius| radius.px(16.0, 0.0) >= 8.0),
            _ => false,
        }
    })
}

/// `transform`: the element is turned or scaled to nothing.
pub(super) fn transform(value: &str) -> bool {
    functions(value).into_iter().any(|(name, inner)| {
        let parts = list(inner, ',');
        let near = |at: usize| parts.get(at).and_then(|n| number(n)).is_some_and(|(n, _)| n.abs() < 0.05);
        match name {
            "scale" | "scale3d" => scale(parts.get(..parts.len().min(2)).unwrap_or_default()),
            "scalex" | "scaley" => near(0),
            "matrix" => (near(0) && near(1)) || (near(2) && near(3)),
            "matrix3d" => (near(0) && near(1)) || (near(4) && near(5)),
            "rotatex" | "rotatey" => edge_on(inner),
            "rotate3d" => {
                parts.get(2).and_then(|z| number(z)).is_some_and(|(z, _)| z == 0.0)
                    && parts.get(3).is_some_and(|turn| edge_on(turn))
            }
            "skew" | "skewx" | "skewy" => edge_on(inner),
            _ => false,
        }
    })
}

/// `rotate`: turned edge-on.
pub(super) fn rotate(value: &str) -> bool {
    let parts = words(value);
    (parts.contains(&"x") || parts.contains(&"y")) && parts.iter().any(|part| number(part).is_some() && edge_on(part))
}

/// Whether an angle is a right one, or nearly.
fn edge_on(angle: &str) -> bool {
    let Some((n, unit)) = number(angle.trim()) else { return false };
    let degrees = match unit {
        "turn" => n * 360.0,
        "rad" => n.to_degrees(),
        "grad" => n * 0.9,
        _ => n,
    };
    (degrees.rem_euclid(180.0) - 90.0).abs() < 1.0
}

/// Whether any of the factors leaves next to nothing.
pub(super) fn scale(parts: &[&str]) -> bool {
    parts.iter().take(2).any(|part| number(part).is_some_and(|(n, unit)| (if unit == "%" { n / 100.0 } else { n }).abs() < 0.05))
}

/// `clip`: a rectangle without area.
pub(super) fn clip(value: &str) -> bool {
    let functions = functions(value);
    let Some(("rect", inner)) = functions.first() else { return false };
    let sides: Vec<Option<f32>> =
        inner.split([',', ' ']).filter(|part| !part.is_empty()).map(|part| length(part).map(|side| side.px(16.0, 0.0))).collect();
    let none = |from: Option<Option<f32>>, to: Option<Option<f32>>| match (from.flatten(), to.flatten()) {
        (from, Some(to)) => to - from.unwrap_or(0.0) <= 2.0,
        // From far out on, `auto` leaves nothing either.
        (Some(from), None) => from >= 1000.0,
        (None, None) => false,
    };
    let at = |n: usize| sides.get(n).copied();
    none(at(0), at(2)) || none(at(3), at(1))
}

/// `clip-path`: a shape without area.
pub(super) fn clip_path(value: &str) -> bool {
    const WHOLE: f32 = 300.0;
    let px = |length: Length| length.px(16.0, WHOLE);
    functions(value).into_iter().any(|(name, inner)| {
        let shape = inner.split(" round ").next().unwrap_or_default().split(" at ").next().unwrap_or_default();
        let parts: Vec<Option<f32>> = words(shape).iter().map(|part| length(part).map(px)).collect();
        let at = |n: usize| parts.get(n).copied().flatten();
        match name {
            "inset" => {
                let top = at(0).unwrap_or(0.0);
                let right = at(1).unwrap_or(top);
                let bottom = at(2).unwrap_or(top);
                let left = at(3).unwrap_or(right);
                top + bottom >= WHOLE - 3.0 || left + right >= WHOLE - 3.0
            }
            "circle" | "ellipse" => at(0).is_some_and(|n| n <= 1.0) || at(1).is_some_and(|n| n <= 1.0),
            "rect" => {
                at(2).zip(at(0)).is_some_and(|(to, from)| to - from <= 1.0)
                    || at(1).zip(at(3)).is_some_and(|(to, from)| to - from <= 1.0)
            }
            "xywh" => at(2).is_some_and(|n| n <= 1.0) || at(3).is_some_and(|n| n <= 1.0),
            "polygon" => flat(inner),
            // A path that never leaves its first point.
            "path" => !inner.bytes().any(|b| b.is_ascii_digit() && b != b'0'),
            _ => false,
        }
    })
}

/// Whether a polygon encloses nothing.
fn flat(inner: &str) -> bool {
    let mut points = Vec::new();
    for point in list(inner, ',') {
        let read: Vec<f32> = words(point).iter().filter_map(|part| length(part)).map(|part| part.px(16.0, 300.0)).collect();
        match read.as_slice() {
            [x, y] => points.push((*x, *y)),
            _ if matches!(point, "nonzero" | "evenodd") => {}
            _ => return false,
        }
    }
    let next = points.iter().cycle().skip(1);
    let area: f32 = points.iter().zip(next).map(|((x, y), (x2, y2))| x * y2 - x2 * y).sum();
    // Or it lies wholly outside the box.
    area.abs() < 4.0 || points.iter().all(|(x, _)| *x < 0.0) || points.iter().all(|(_, y)| *y < 0.0)
}

/// `mask`: nothing of it shows through.
pub(super) fn mask(value: &str) -> bool {
    let stops = stops(value);
    !stops.is_empty() && stops.iter().all(|stop| matches!(stop, Paint::Is(colour) if colour.alpha() < 0.1))
}

/// An image behind the letters, as a plain colour where it is one.
pub(super) fn gradient(value: &str) -> Paint {
    let stops = stops(value);
    match stops.as_slice() {
        [Paint::Is(first), rest @ ..] if rest.iter().all(|stop| matches!(stop, Paint::Is(colour) if near(*first, *colour))) => {
            Paint::Is(*first)
        }
        _ => Paint::Unknown,
    }
}

fn near(a: Colour, b: Colour) -> bool {
    a.0.iter().zip(b.0).all(|(x, y)| (x - y).abs() < 0.05)
}

/// The colours of all gradients in a value; empty where there is another image as well.
fn stops(value: &str) -> Vec<Paint> {
    let mut found = Vec::new();
    for (name, inner) in list(value, ',').into_iter().flat_map(functions) {
        if !name.ends_with("gradient") {
            return Vec::new();
        }
        found.extend(list(inner, ',').into_iter().filter_map(|part| words(part).iter().find_map(|word| paint(word))));
    }
    found
}
