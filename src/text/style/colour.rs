//! Colours in CSS notation (CSS Color 4 and 5).

use super::space::{gamma, hsl, lightness, oklab, to_hsl, to_oklab};
use super::value::{arguments, length, list, number, words};

/// Red, green, blue and opacity, each from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Colour(pub(super) [f32; 4]);

/// Maximum difference in every channel at which letters cannot be distinguished from the
/// background.
const NEAR: f32 = 26.0 / 255.0;
/// Units of the channels of a colour.
const UNITS: [&str; 5] = ["%", "deg", "turn", "rad", "grad"];
/// Maximum depth of nested colour functions that are read.
const DEPTH: usize = 3;

impl Colour {
    /// The colour of a page before anything is painted.
    pub(crate) const WHITE: Self = Self([1.0; 4]);
    /// The colour of letters before any declaration.
    pub(crate) const BLACK: Self = Self([0.0, 0.0, 0.0, 1.0]);
    pub(crate) const CLEAR: Self = Self([0.0; 4]);

    /// Reports whether letters of this colour cannot be distinguished from the background.
    pub(crate) fn is_indistinguishable_from(self, background: Self) -> bool {
        let [r, g, b, _] = self.paint_over(background).0;
        let [r2, g2, b2, _] = background.0;
        [(r, r2), (g, g2), (b, b2)]
            .iter()
            .all(|(x, y)| (x - y).abs() <= NEAR)
    }

    /// Returns this colour painted over another.
    pub(crate) fn paint_over(self, background: Self) -> Self {
        let ([r, g, b, a], [r2, g2, b2, a2]) = (self.0, background.0);
        let mix = |x: f32, y: f32| x * a + y * (1.0 - a);
        Self([mix(r, r2), mix(g, g2), mix(b, b2), a + a2 * (1.0 - a)])
    }

    pub(super) fn alpha(self) -> f32 {
        self.0[3]
    }

    /// Returns how light the colour is, from 0 to 1.
    pub(super) fn light(self) -> f32 {
        let [r, g, b, _] = self.0;
        0.3 * r + 0.59 * g + 0.11 * b
    }

    fn from_hex(value: u32) -> Self {
        let part = |shift: u32| ((value >> shift) & 0xFF) as f32 / 255.0;
        Self([part(16), part(8), part(0), 1.0])
    }
}

/// The colour that a value specifies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Paint {
    Known(Colour),
    /// The colour of the letters.
    Current,
    Inherit,
    /// A colour that is not known here.
    Unknown,
}

/// Reads a colour, which is already in lower case. Returns `None` if it is not one: browsers ignore
/// such a declaration.
pub(crate) fn read_paint(value: &str) -> Option<Paint> {
    read(value.trim(), DEPTH)
}

fn read(value: &str, depth: usize) -> Option<Paint> {
    if let Some(digits) = value.strip_prefix('#') {
        return parse_hex(digits).map(Paint::Known);
    }
    if let Some((name, inner)) = value.split_once('(') {
        return read_function(
            name,
            inner.strip_suffix(')').unwrap_or(inner),
            depth.checked_sub(1)?,
        );
    }
    let to_paint = |hex| Some(Paint::Known(Colour::from_hex(hex)));
    match value {
        "currentcolor" => Some(Paint::Current),
        "inherit" | "unset" | "revert" | "revert-layer" => Some(Paint::Inherit),
        "transparent" => Some(Paint::Known(Colour::CLEAR)),
        "initial" | "canvastext" | "fieldtext" | "buttontext" | "windowtext" | "text"
        | "marktext" => to_paint(0),
        "canvas" | "field" | "window" | "background" | "menu" | "infobackground" => {
            to_paint(0xff_ffff)
        }
        "buttonface" | "threedface" => to_paint(0xef_efef),
        "linktext" => to_paint(0x00_00ee),
        _ => NAMES
            .binary_search_by_key(&value, |(name, _)| name)
            .ok()
            .and_then(|at| to_paint(NAMES.get(at)?.1)),
    }
}

fn parse_hex(digits: &str) -> Option<Colour> {
    let parts: Vec<u32> = digits
        .chars()
        .take(9)
        .map(|c| c.to_digit(16))
        .collect::<Option<_>>()?;
    let part = |high: u32, low: u32| (high * 16 + low) as f32 / 255.0;
    match *parts.as_slice() {
        [r, g, b] => Some(Colour([part(r, r), part(g, g), part(b, b), 1.0])),
        [r, g, b, a] => Some(Colour([part(r, r), part(g, g), part(b, b), part(a, a)])),
        [a, b, c, d, e, f] => Some(Colour([part(a, b), part(c, d), part(e, f), 1.0])),
        [a, b, c, d, e, f, g, h] => Some(Colour([part(a, b), part(c, d), part(e, f), part(g, h)])),
        _ => None,
    }
}

fn read_function(name: &str, inner: &str, depth: usize) -> Option<Paint> {
    if name == "light-dark" {
        return read(list(inner, ',').first()?, depth);
    }
    if name == "color-mix" {
        return read_mix(inner, depth);
    }
    if let Some(relative) = inner.strip_prefix("from ") {
        return read_relative(name, relative, depth);
    }
    let (space, inner) = if name == "color" {
        inner.split_once(' ')?
    } else {
        ("", inner)
    };
    let channel = |part: &'_ str| match part {
        "none" => Some((0.0, "")),
        _ if part.contains('(') => length(part).map(|length| (length.px(0.0, 1.0), "")),
        _ => number(part).map(|(n, unit)| {
            (
                n,
                UNITS
                    .iter()
                    .find(|allowed| **allowed == unit)
                    .copied()
                    .unwrap_or(""),
            )
        }),
    };
    let parts: Vec<(f32, &str)> = arguments(inner)
        .into_iter()
        .take(8)
        .map(channel)
        .collect::<Option<_>>()
        .unwrap_or_default();
    let [a, b, c, rest @ ..] = parts.as_slice() else {
        return Some(Paint::Unknown);
    };
    let share =
        |(n, unit): &(f32, &str), whole: f32| if *unit == "%" { n / 100.0 } else { n / whole };
    let alpha = rest
        .first()
        .map_or(1.0, |part| share(part, 1.0))
        .clamp(0.0, 1.0);
    let clamp_unit = |n: f32| n.clamp(0.0, 1.0);
    let rgb = match name {
        "rgb" | "rgba" => [a, b, c].map(|part| clamp_unit(share(part, 255.0))),
        "hsl" | "hsla" => hsl(
            to_turns(a),
            clamp_unit(b.0 / 100.0),
            clamp_unit(c.0 / 100.0),
        ),
        "hwb" => {
            let white = clamp_unit(b.0 / 100.0);
            let black = clamp_unit(c.0 / 100.0);
            if white + black >= 1.0 {
                [white / (white + black); 3]
            } else {
                hsl(to_turns(a), 1.0, 0.5).map(|n| n * (1.0 - white - black) + white)
            }
        }
        "oklab" | "oklch" | "lab" | "lch" => {
            let is_oklab = name.starts_with("ok");
            let light = share(a, if is_oklab { 1.0 } else { 100.0 });
            let scale_percent = |part: &(f32, &str), maximum: f32| {
                if part.1 == "%" {
                    part.0 / 100.0 * maximum
                } else {
                    part.0
                }
            };
            let (maximum, scale) = if is_oklab {
                (0.4, 1.0)
            } else {
                (125.0, 0.0032)
            };
            let (x, y) = if name.ends_with("lch") {
                let chroma = scale_percent(b, maximum) * scale;
                let angle = to_turns(c) * std::f32::consts::TAU;
                (chroma * angle.cos(), chroma * angle.sin())
            } else {
                (
                    scale_percent(b, maximum) * scale,
                    scale_percent(c, maximum) * scale,
                )
            };
            oklab(if is_oklab { light } else { lightness(light) }, x, y)
        }
        "color" if space.starts_with("xyz") => {
            let [x, y, z] = [a, b, c].map(|part| share(part, 1.0));
            [
                3.240_97 * x - 1.537_38 * y - 0.498_61 * z,
                -0.969_24 * x + 1.875_97 * y + 0.041_56 * z,
                0.055_63 * x - 0.203_98 * y + 1.056_97 * z,
            ]
            .map(|n| gamma(clamp_unit(n)))
        }
        "color" => {
            let is_linear = space.ends_with("-linear");
            [a, b, c].map(|part| {
                if is_linear {
                    gamma(clamp_unit(share(part, 1.0)))
                } else {
                    clamp_unit(share(part, 1.0))
                }
            })
        }
        _ => return Some(Paint::Unknown),
    };
    let [r, g, b] = rgb;
    Some(Paint::Known(Colour([r, g, b, alpha])))
}

/// Returns a colour made from the channels of another (CSS Color 5, 4).
fn read_relative(name: &str, relative: &str, depth: usize) -> Option<Paint> {
    let (origin, rest) = relative.trim().split_at(words(relative).first()?.len());
    let Some(Paint::Known(Colour([r, g, b, alpha]))) = read(origin, depth) else {
        return Some(Paint::Unknown);
    };
    let (hue, saturation, light) = to_hsl([r, g, b]);
    let [ok_light, ok_a, ok_b] = to_oklab([r, g, b]);
    let degrees = ok_b.atan2(ok_a).to_degrees();
    let channels: &[(&str, f32)] = match name {
        "rgb" | "rgba" => &[("r", r * 255.0), ("g", g * 255.0), ("b", b * 255.0)],
        "color" => &[("r", r), ("g", g), ("b", b)],
        "hsl" | "hsla" => &[("h", hue), ("s", saturation * 100.0), ("l", light * 100.0)],
        "hwb" => &[
            ("h", hue),
            ("w", r.min(g).min(b) * 100.0),
            ("b", 100.0 - r.max(g).max(b) * 100.0),
        ],
        "oklab" => &[("l", ok_light), ("a", ok_a), ("b", ok_b)],
        "oklch" => &[("l", ok_light), ("c", ok_a.hypot(ok_b)), ("h", degrees)],
        // Close enough, although the scales differ.
        "lab" => &[
            ("l", ok_light * 100.0),
            ("a", ok_a * 312.0),
            ("b", ok_b * 312.0),
        ],
        "lch" => &[
            ("l", ok_light * 100.0),
            ("c", ok_a.hypot(ok_b) * 312.0),
            ("h", degrees),
        ],
        _ => return Some(Paint::Unknown),
    };
    let mut resolved = String::new();
    let mut rest = rest;
    while let Some(c) = rest.chars().next() {
        let word = rest.bytes().take_while(u8::is_ascii_alphabetic).count();
        let piece_length = word.max(c.len_utf8());
        let piece = rest.get(..piece_length).unwrap_or_default();
        match channels.iter().find(|(channel, _)| *channel == piece) {
            Some((_, value)) => resolved.push_str(&value.to_string()),
            None if piece == "alpha" => resolved.push_str(&alpha.to_string()),
            None => resolved.push_str(piece),
        }
        rest = rest.get(piece_length..).unwrap_or_default();
    }
    read_function(name, resolved.trim(), depth.checked_sub(1)?)
}

fn read_mix(inner: &str, depth: usize) -> Option<Paint> {
    let parts = list(inner, ',');
    let [_, first, second] = parts.as_slice() else {
        return Some(Paint::Unknown);
    };
    let read_part = |part: &str| {
        let mut share = None;
        let mut colour = None;
        for word in words(part) {
            match number(word) {
                Some((n, "%")) => share = Some(n / 100.0),
                _ => colour = read(word, depth),
            }
        }
        (colour, share)
    };
    let (x, y) = match (read_part(first), read_part(second)) {
        // Nothing is left of an unknown colour with a share of zero.
        ((_, Some(0.0)), (Some(known), _)) | ((Some(known), _), (_, Some(0.0))) => {
            return Some(known);
        }
        ((Some(Paint::Known(x)), p), (Some(Paint::Known(y)), q)) => ((x, p), (y, q)),
        _ => return Some(Paint::Unknown),
    };
    let ((x, p), (y, q)) = (x, y);
    let p = p.or(q.map(|q| 1.0 - q)).unwrap_or(0.5).clamp(0.0, 1.0);
    // Channels are weighted by opacity, as in premultiplied colours.
    let alpha = x.alpha() * p + y.alpha() * (1.0 - p);
    let share = if alpha > 0.0 {
        x.alpha() * p / alpha
    } else {
        p
    };
    let ([r, g, b, _], [r2, g2, b2, _]) = (x.0, y.0);
    let mix_channel = |m: f32, n: f32| m * share + n * (1.0 - share);
    Some(Paint::Known(Colour([
        mix_channel(r, r2),
        mix_channel(g, g2),
        mix_channel(b, b2),
        alpha,
    ])))
}

/// Returns an angle as a fraction of a full turn.
fn to_turns((n, unit): &(f32, &str)) -> f32 {
    let turns = match *unit {
        "turn" => *n,
        "rad" => n / std::f32::consts::TAU,
        "grad" => n / 400.0,
        _ => n / 360.0,
    };
    turns.rem_euclid(1.0)
}

/// Named colours, sorted (CSS Color 4, 6.1).
#[rustfmt::skip]
const NAMES: [(&str, u32); 148] = [
    ("aliceblue", 0xf0_f8ff), ("antiquewhite", 0xfa_ebd7), ("aqua", 0x00_ffff), ("aquamarine", 0x7f_ffd4),
    ("azure", 0xf0_ffff), ("beige", 0xf5_f5dc), ("bisque", 0xff_e4c4), ("black", 0x00_0000), ("blanchedalmond", 0xff_ebcd),
    ("blue", 0x00_00ff), ("blueviolet", 0x8a_2be2), ("brown", 0xa5_2a2a), ("burlywood", 0xde_b887), ("cadetblue", 0x5f_9ea0),
    ("chartreuse", 0x7f_ff00), ("chocolate", 0xd2_691e), ("coral", 0xff_7f50), ("cornflowerblue", 0x64_95ed),
    ("cornsilk", 0xff_f8dc), ("crimson", 0xdc_143c), ("cyan", 0x00_ffff), ("darkblue", 0x00_008b), ("darkcyan", 0x00_8b8b),
    ("darkgoldenrod", 0xb8_860b), ("darkgray", 0xa9_a9a9), ("darkgreen", 0x00_6400), ("darkgrey", 0xa9_a9a9),
    ("darkkhaki", 0xbd_b76b), ("darkmagenta", 0x8b_008b), ("darkolivegreen", 0x55_6b2f), ("darkorange", 0xff_8c00),
    ("darkorchid", 0x99_32cc), ("darkred", 0x8b_0000), ("darksalmon", 0xe9_967a), ("darkseagreen", 0x8f_bc8f),
    ("darkslateblue", 0x48_3d8b), ("darkslategray", 0x2f_4f4f), ("darkslategrey", 0x2f_4f4f), ("darkturquoise", 0x00_ced1),
    ("darkviolet", 0x94_00d3), ("deeppink", 0xff_1493), ("deepskyblue", 0x00_bfff), ("dimgray", 0x69_6969),
    ("dimgrey", 0x69_6969), ("dodgerblue", 0x1e_90ff), ("firebrick", 0xb2_2222), ("floralwhite", 0xff_faf0),
    ("forestgreen", 0x22_8b22), ("fuchsia", 0xff_00ff), ("gainsboro", 0xdc_dcdc), ("ghostwhite", 0xf8_f8ff),
    ("gold", 0xff_d700), ("goldenrod", 0xda_a520), ("gray", 0x80_8080), ("green", 0x00_8000), ("greenyellow", 0xad_ff2f),
    ("grey", 0x80_8080), ("honeydew", 0xf0_fff0), ("hotpink", 0xff_69b4), ("indianred", 0xcd_5c5c), ("indigo", 0x4b_0082),
    ("ivory", 0xff_fff0), ("khaki", 0xf0_e68c), ("lavender", 0xe6_e6fa), ("lavenderblush", 0xff_f0f5),
    ("lawngreen", 0x7c_fc00), ("lemonchiffon", 0xff_facd), ("lightblue", 0xad_d8e6), ("lightcoral", 0xf0_8080),
    ("lightcyan", 0xe0_ffff), ("lightgoldenrodyellow", 0xfa_fad2), ("lightgray", 0xd3_d3d3), ("lightgreen", 0x90_ee90),
    ("lightgrey", 0xd3_d3d3), ("lightpink", 0xff_b6c1), ("lightsalmon", 0xff_a07a), ("lightseagreen", 0x20_b2aa),
    ("lightskyblue", 0x87_cefa), ("lightslategray", 0x77_8899), ("lightslategrey", 0x77_8899), ("lightsteelblue", 0xb0_c4de),
    ("lightyellow", 0xff_ffe0), ("lime", 0x00_ff00), ("limegreen", 0x32_cd32), ("linen", 0xfa_f0e6), ("magenta", 0xff_00ff),
    ("maroon", 0x80_0000), ("mediumaquamarine", 0x66_cdaa), ("mediumblue", 0x00_00cd), ("mediumorchid", 0xba_55d3),
    ("mediumpurple", 0x93_70db), ("mediumseagreen", 0x3c_b371), ("mediumslateblue", 0x7b_68ee),
    ("mediumspringgreen", 0x00_fa9a), ("mediumturquoise", 0x48_d1cc), ("mediumvioletred", 0xc7_1585),
    ("midnightblue", 0x19_1970), ("mintcream", 0xf5_fffa), ("mistyrose", 0xff_e4e1), ("moccasin", 0xff_e4b5),
    ("navajowhite", 0xff_dead), ("navy", 0x00_0080), ("oldlace", 0xfd_f5e6), ("olive", 0x80_8000), ("olivedrab", 0x6b_8e23),
    ("orange", 0xff_a500), ("orangered", 0xff_4500), ("orchid", 0xda_70d6), ("palegoldenrod", 0xee_e8aa),
    ("palegreen", 0x98_fb98), ("paleturquoise", 0xaf_eeee), ("palevioletred", 0xdb_7093), ("papayawhip", 0xff_efd5),
    ("peachpuff", 0xff_dab9), ("peru", 0xcd_853f), ("pink", 0xff_c0cb), ("plum", 0xdd_a0dd), ("powderblue", 0xb0_e0e6),
    ("purple", 0x80_0080), ("rebeccapurple", 0x66_3399), ("red", 0xff_0000), ("rosybrown", 0xbc_8f8f),
    ("royalblue", 0x41_69e1), ("saddlebrown", 0x8b_4513), ("salmon", 0xfa_8072), ("sandybrown", 0xf4_a460),
    ("seagreen", 0x2e_8b57), ("seashell", 0xff_f5ee), ("sienna", 0xa0_522d), ("silver", 0xc0_c0c0), ("skyblue", 0x87_ceeb),
    ("slateblue", 0x6a_5acd), ("slategray", 0x70_8090), ("slategrey", 0x70_8090), ("snow", 0xff_fafa),
    ("springgreen", 0x00_ff7f), ("steelblue", 0x46_82b4), ("tan", 0xd2_b48c), ("teal", 0x00_8080), ("thistle", 0xd8_bfd8),
    ("tomato", 0xff_6347), ("turquoise", 0x40_e0d0), ("violet", 0xee_82ee), ("wheat", 0xf5_deb3), ("white", 0xff_ffff),
    ("whitesmoke", 0xf5_f5f5), ("yellow", 0xff_ff00), ("yellowgreen", 0x9a_cd32),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn melts(letters: &str, ground: &str) -> bool {
        let (Some(Paint::Known(letters)), Some(Paint::Known(ground))) =
            (read_paint(letters), read_paint(ground))
        else {
            panic!("{letters} on {ground}")
        };
        letters.is_indistinguishable_from(ground)
    }

    #[test]
    fn each_notation_is_read() {
        for white in [
            "#fff",
            "#fefefe",
            "#ffff",
            "#ffffffff",
            "white",
            "rgb(255,255,255)",
            "rgb(100% 100% 100% / 1)",
            "rgba(0,0,0,0)",
            "hsl(120 50% 100%)",
            "hsla(0,0%,100%,1)",
            "hwb(0 100% 0%)",
            "oklch(1 0 0)",
            "oklch(99% 0.01 90)",
            "oklab(1 0 0)",
            "lab(100 0 0)",
            "lch(100% 0 0)",
            "color(srgb 1 1 1)",
            "color(display-p3 1 1 1)",
            "color-mix(in srgb, white, #fff)",
            "color-mix(in srgb, red 2%, white)",
            "light-dark(white, black)",
            "transparent",
            "snow",
            "rgb(from white r g b)",
            "rgb(from black calc(r + 255) 255 255)",
            "hsl(from red h s 100%)",
            "oklch(from navy 1 0 h)",
            "rgb(calc(250 + 5) 255 255)",
            "color(xyz 0.95 1 1.089)",
            "color-mix(in srgb, currentcolor 0%, white)",
            "rgb(0 0 0 / 5%)",
            "#0000000a",
        ] {
            assert!(melts(white, "white"), "{white}");
        }
        for seen in [
            "black",
            "#ccc",
            "yellow",
            "gold",
            "oklch(0.5 0.1 90)",
            "hsl(0 0% 80%)",
            "lab(50 0 0)",
            "hwb(0 0% 0%)",
        ] {
            assert!(!melts(seen, "white"), "{seen}");
        }
        assert!(melts("oklch(0.628 0.2577 29.23)", "red") && melts("hsl(240 100% 50%)", "blue"));
        assert_eq!(read_paint("bold"), None);
        assert_eq!(read_paint("#12"), None);
    }

    #[test]
    fn names_are_sorted() {
        assert!(NAMES.is_sorted());
    }
}
