//! As much of CSS as decides whether a person sees a text.

use std::collections::HashMap;

/// What a style says that matters here. `None` says nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Style {
    /// Takes the element and all in it away: `display: none`, no opacity, off the screen, clipped to nothing.
    pub(super) gone: Option<bool>,
    /// `visibility`: inherited, and can be taken back.
    pub(super) invisible: Option<bool>,
    /// Letters of no size: inherited, and can be taken back by a size of its own.
    pub(super) tiny: Option<bool>,
    /// Colour of the letters; the outer `Some` says that one is given, the inner that it could be read.
    pub(super) colour: Option<Option<Colour>>,
    /// Colour behind them.
    pub(super) background: Option<Option<Colour>>,
    absolute: bool,
    clipped: bool,
    flat: bool,
    shifted: bool,
}

/// Red, green, blue and opacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Colour(pub(super) [u8; 4]);

impl Colour {
    /// What a page is before anyone paints it.
    pub(super) const WHITE: Self = Self([255; 4]);

    /// Whether letters of this colour cannot be told from the ground.
    pub(super) fn melts_into(self, ground: Self) -> bool {
        let [r, g, b, a] = self.0;
        let [r2, g2, b2, _] = ground.0;
        a < 13 || [(r, r2), (g, g2), (b, b2)].iter().all(|(x, y)| x.abs_diff(*y) <= 12)
    }
}

/// A length from which on a shift leads off the screen, in pixels or nearly so.
const FAR: f32 = 400.0;
/// Most rules of a page that count; a page may not make judging slow by more.
const RULES: usize = 20_000;

impl Style {
    /// Reads declarations, as a `style` attribute holds them.
    pub(super) fn read(declarations: &str) -> Self {
        let mut style = Self::default();
        style.add(declarations);
        style
    }

    fn add(&mut self, declarations: &str) {
        let text = decode(declarations);
        for declaration in text.split(';') {
            if let Some((name, value)) = declaration.split_once(':') {
                self.declare(name.trim(), value.trim().trim_end_matches("!important").trim_end());
            }
        }
        if (self.absolute && self.shifted) || (self.clipped && self.flat) {
            self.gone = Some(true);
        }
    }

    /// Lays a stronger style over this one.
    pub(super) fn lay(&mut self, over: &Self) {
        self.gone = over.gone.or(self.gone);
        self.invisible = over.invisible.or(self.invisible);
        self.tiny = over.tiny.or(self.tiny);
        self.colour = over.colour.or(self.colour);
        self.background = over.background.or(self.background);
        self.absolute |= over.absolute;
        self.clipped |= over.clipped;
        self.flat |= over.flat;
        self.shifted |= over.shifted;
        if (self.absolute && self.shifted) || (self.clipped && self.flat) {
            self.gone = Some(true);
        }
    }

    fn declare(&mut self, name: &str, value: &str) {
        let length = number(value);
        match name {
            "display" => self.gone = Some(value == "none"),
            "visibility" => self.invisible = Some(matches!(value, "hidden" | "collapse")),
            "content-visibility" if value == "hidden" => self.gone = Some(true),
            "opacity" => self.gone = Some(length.is_some_and(|n| n.abs() < 0.05)),
            "filter" if value.contains("opacity(0") => self.gone = Some(true),
            "font-size" => {
                self.tiny =
                    length.map(|n| n < if value.ends_with("em") || value.ends_with('%') { 0.05 } else { 2.0 }).or(Some(false))
            }
            "font" => {
                let size =
                    value.split([' ', '/']).filter(|part| part.ends_with(|c: char| c.is_ascii_alphabetic())).find_map(number);
                self.tiny =
                    size.map(|n| n < 1.0).or(if value.starts_with("0/") || value.starts_with("0 ") { Some(true) } else { None });
            }
            "color" | "-webkit-text-fill-color" => self.colour = Some(colour(value)),
            "background-color" => self.background = Some(colour(value)),
            "background" => self.background = Some(value.split(' ').find_map(colour)),
            "background-image" => self.background = Some(None),
            "position" => self.absolute = matches!(value, "absolute" | "fixed"),
            "left" | "top" | "right" | "bottom" => self.shifted |= far(value, length),
            "text-indent" | "margin-left" | "margin-top" if far(value, length) => self.gone = Some(true),
            "transform" => {
                let inner = value.split_once('(').map_or("", |(_, inner)| inner);
                let zero = value.starts_with("scale") && number(inner).is_some_and(|n| n == 0.0);
                if zero || (value.starts_with("translate") && far(inner, number(inner))) {
                    self.gone = Some(true);
                }
            }
            "clip"
                if value.starts_with("rect(")
                    && value
                        .trim_start_matches("rect(")
                        .split([',', ' '])
                        .filter(|part| !part.is_empty())
                        .all(|part| number(part).is_some_and(|n| n <= 1.0)) =>
            {
                self.gone = Some(true);
            }
            "clip-path" if ["inset(50%", "inset(100%", "circle(0", "polygon(0 0)"].iter().any(|none| value.starts_with(none)) => {
                self.gone = Some(true);
            }
            "overflow" | "overflow-x" | "overflow-y" => self.clipped |= matches!(value, "hidden" | "clip"),
            "width" | "height" | "max-width" | "max-height" => {
                self.flat |= length.is_some_and(|n| n <= 1.0) && !value.contains('%') && !value.contains("em")
            }
            _ => {}
        }
    }
}

/// Whether a length leads off the screen.
fn far(value: &str, length: Option<f32>) -> bool {
    let unit = if value.contains("em") {
        16.0
    } else if value.contains('%') || value.contains("vw") || value.contains("vh") {
        8.0
    } else {
        1.0
    };
    length.is_some_and(|n| n * unit <= -FAR || n * unit >= 20.0 * FAR)
}

/// The number at the start of a value.
fn number(value: &str) -> Option<f32> {
    let end = value.bytes().take_while(|b| b.is_ascii_digit() || matches!(b, b'.' | b'-' | b'+')).count();
    value.get(..end)?.parse().ok()
}

/// Lower case, without comments, with escapes undone (CSS Syntax 3, 4.3.7).
fn decode(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '/' if chars.peek() == Some(&'*') => {
                chars.next();
                let mut star = false;
                for c in chars.by_ref() {
                    if star && c == '/' {
                        break;
                    }
                    star = c == '*';
                }
            }
            '\\' => {
                let mut code = 0;
                let mut digits = 0;
                while let Some(digit) = chars.peek().and_then(|c| c.to_digit(16)).filter(|_| digits < 6) {
                    code = code * 16 + digit;
                    digits += 1;
                    chars.next();
                }
                if digits == 0 {
                    out.extend(chars.next());
                } else {
                    chars.next_if(|c| c.is_ascii_whitespace());
                    out.push(char::from_u32(code).unwrap_or(' ').to_ascii_lowercase());
                }
            }
            c => out.push(c.to_ascii_lowercase()),
        }
    }
    out
}

/// Reads a colour, already lower case. `None` where it is none that is known.
pub(super) fn colour(value: &str) -> Option<Colour> {
    if let Some(hex) = value.strip_prefix('#') {
        let digits: Vec<u8> = hex.chars().map_while(|c| c.to_digit(16)).map(|d| d as u8).collect();
        return match *digits.as_slice() {
            [r, g, b] => Some(Colour([r * 17, g * 17, b * 17, 255])),
            [r, g, b, a] => Some(Colour([r * 17, g * 17, b * 17, a * 17])),
            [a, b, c, d, e, f] => Some(Colour([a * 16 + b, c * 16 + d, e * 16 + f, 255])),
            [a, b, c, d, e, f, g, h] => Some(Colour([a * 16 + b, c * 16 + d, e * 16 + f, g * 16 + h])),
            _ => None,
        };
    }
    if let Some((name, inner)) = value.split_once('(') {
        let parts: Vec<f32> = inner.split([',', ' ', '/', ')']).filter(|part| !part.is_empty()).filter_map(number).collect();
        let alpha = parts.get(3).map_or(255.0, |a| if *a <= 1.0 { a * 255.0 } else { a * 2.55 }) as u8;
        return match (name, parts.as_slice()) {
            ("rgb" | "rgba", [r, g, b, ..]) => Some(Colour([*r as u8, *g as u8, *b as u8, alpha])),
            // Only greys are told apart by lightness alone; that is enough to compare black and white.
            ("hsl" | "hsla", [_, saturation, light, ..]) if *saturation == 0.0 || *light == 0.0 || *light == 100.0 => {
                let grey = (light * 2.55) as u8;
                Some(Colour([grey, grey, grey, alpha]))
            }
            _ => None,
        };
    }
    let rgb = match value {
        "white" => [255, 255, 255, 255],
        "snow" => [255, 250, 250, 255],
        "ivory" => [255, 255, 240, 255],
        "whitesmoke" => [245, 245, 245, 255],
        "ghostwhite" => [248, 248, 255, 255],
        "black" => [0, 0, 0, 255],
        "red" => [255, 0, 0, 255],
        "green" => [0, 128, 0, 255],
        "blue" => [0, 0, 255, 255],
        "yellow" => [255, 255, 0, 255],
        "gray" | "grey" => [128, 128, 128, 255],
        "silver" => [192, 192, 192, 255],
        "navy" => [0, 0, 128, 255],
        "orange" => [255, 165, 0, 255],
        "transparent" => [0, 0, 0, 0],
        _ => return None,
    };
    Some(Colour(rgb))
}

/// The rules of a page's style sheets, by the one thing that each selects.
#[derive(Debug, Default)]
pub(super) struct Sheet(HashMap<String, Style>);

impl Sheet {
    /// Reads a style sheet: rules with simple selectors (`p`, `.a`, `p.a`, `.a.b`, `#i`), also behind element names
    /// (`body .a`). Others are left out, and so are rules for print.
    pub(super) fn add(&mut self, sheet: &str) {
        let text = decode(sheet);
        let mut rest = text.as_str();
        while let Some((head, after)) = rest.split_once('{') {
            let head = head.rsplit([';', '}']).next().unwrap_or_default().trim();
            if head.starts_with('@') {
                // A block for screens is read as if it stood alone; its closing brace then ends nothing.
                rest = if head.contains("print") || !head.starts_with("@media") { skip_block(after) } else { after };
                continue;
            }
            let Some((body, after)) = after.split_once('}') else { return };
            rest = after;
            let mut style = Style::default();
            style.add(body);
            if style == Style::default() {
                continue;
            }
            for selector in head.split(',') {
                if let Some(key) = key(selector)
                    && (self.0.len() < RULES || self.0.contains_key(&key))
                {
                    self.0.entry(key).or_default().lay(&style);
                }
            }
        }
    }

    /// The style that the sheets give an element. Classes beyond the eighth do not count in pairs.
    pub(super) fn style(&self, element: &str, id: &str, classes: &str) -> Style {
        let mut style = Style::default();
        if self.0.is_empty() {
            return style;
        }
        let mut lay = |key: &str| {
            if let Some(found) = self.0.get(key) {
                style.lay(found);
            }
        };
        lay(element);
        let mut classes: Vec<String> = classes.split_ascii_whitespace().take(64).map(|class| class.to_lowercase()).collect();
        classes.sort();
        for class in &classes {
            lay(&format!(".{class}"));
            lay(&format!("{element}.{class}"));
        }
        for (n, first) in classes.iter().take(8).enumerate() {
            for second in classes.iter().take(8).skip(n + 1) {
                lay(&format!(".{first}.{second}"));
            }
        }
        if !id.is_empty() {
            let id = id.to_lowercase();
            lay(&format!("#{id}"));
            lay(&format!("{element}#{id}"));
        }
        style
    }
}

fn skip_block(after: &str) -> &str {
    let mut depth = 1;
    for (at, c) in after.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return after.get(at + 1..).unwrap_or_default();
        }
    }
    ""
}

/// The key of a selector; `None` for those that are left out.
fn key(selector: &str) -> Option<String> {
    let mut parts: Vec<&str> = selector.split([' ', '>', '\n', '\t', '\r']).filter(|part| !part.is_empty()).collect();
    let last = parts.pop()?;
    let plain = |part: &str| part.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_') || b >= 0x80);
    if !parts.iter().all(|part| plain(part)) {
        return None;
    }
    if !last.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.' | b'#') || b >= 0x80) {
        return None;
    }
    let marks = last.matches(['.', '#']).count();
    if marks == 2 && last.starts_with('.') && !last.contains('#') {
        let mut classes: Vec<&str> = last.split('.').filter(|class| !class.is_empty()).collect();
        classes.sort_unstable();
        return Some(classes.iter().map(|class| format!(".{class}")).collect());
    }
    (marks <= 1).then(|| last.to_owned())
}
