//! Values of CSS declarations: lengths with their arithmetic, functions, lists.

/// Assumed size of the screen, in pixels.
pub(super) const SCREEN: (f32, f32) = (1280.0, 800.0);
/// Maximum nesting of functions in a calculated value.
const DEPTH: usize = 4;
/// Maximum number of terms in a calculated value.
const TERMS: usize = 64;

/// A length before the sizes that it relates to are known.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Length {
    pub(super) px: f32,
    pub(super) em: f32,
    /// Percentage of the size that it relates to.
    pub(super) percent: f32,
}

impl Length {
    pub(super) fn from_px(px: f32) -> Self {
        Self {
            px,
            ..Self::default()
        }
    }

    /// Returns the length in pixels. `em` is the font size, and percentages are of `whole`.
    pub(super) fn px(self, em: f32, whole: f32) -> f32 {
        self.px + self.em * em + self.percent / 100.0 * whole
    }

    fn add(self, other: Self, sign: f32) -> Self {
        Self {
            px: self.px + sign * other.px,
            em: self.em + sign * other.em,
            percent: self.percent + sign * other.percent,
        }
    }

    fn multiply(self, by: f32) -> Self {
        Self {
            px: self.px * by,
            em: self.em * by,
            percent: self.percent * by,
        }
    }
}

/// Returns the number at the start of a value, and the rest of the value.
pub(super) fn number(value: &str) -> Option<(f32, &str)> {
    let bytes = value.as_bytes();
    let mut end = usize::from(matches!(bytes.first(), Some(b'-' | b'+')));
    let digits = |from: usize| {
        bytes
            .iter()
            .skip(from)
            .take_while(|b| b.is_ascii_digit())
            .count()
    };
    end += digits(end);
    if bytes.get(end) == Some(&b'.') && digits(end + 1) > 0 {
        end += 1 + digits(end + 1);
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'-' | b'+')));
        if digits(end + 1 + sign) > 0 {
            end += 1 + sign + digits(end + 1 + sign);
        }
    }
    let parsed: f32 = value.get(..end)?.parse().ok()?;
    Some((parsed.clamp(-1e9, 1e9), value.get(end..)?))
}

/// Reads one length; returns `None` for anything else. A bare number counts as pixels, as in
/// attributes.
pub(super) fn length(value: &str) -> Option<Length> {
    read_calculated(value.trim(), DEPTH)
}

fn read_single(value: &str) -> Option<Length> {
    let (n, unit) = number(value)?;
    let px = |by: f32| Some(Length::from_px(n * by));
    match unit {
        "" | "px" => px(1.0),
        "em" | "ex" | "ch" | "lh" | "ic" | "cap" => Some(Length {
            em: n,
            ..Length::default()
        }),
        "%" => Some(Length {
            percent: n,
            ..Length::default()
        }),
        "rem" | "rlh" | "pc" => px(16.0),
        "pt" => px(4.0 / 3.0),
        "in" => px(96.0),
        "cm" => px(37.8),
        "mm" => px(3.78),
        "q" => px(0.945),
        "vw" | "svw" | "lvw" | "dvw" | "vi" | "vmax" | "cqw" | "cqi" | "cqmax" => {
            px(SCREEN.0 / 100.0)
        }
        "vh" | "svh" | "lvh" | "dvh" | "vb" | "vmin" | "cqh" | "cqb" | "cqmin" => {
            px(SCREEN.1 / 100.0)
        }
        _ => None,
    }
}

fn read_calculated(value: &str, depth: usize) -> Option<Length> {
    let Some((name, inner)) = value.split_once('(') else {
        return read_single(value);
    };
    let depth = depth.checked_sub(1)?;
    let inner = inner.strip_suffix(')').unwrap_or(inner);
    let approximate = |length: &Length| length.px(16.0, 100.0);
    match name {
        "calc" | "" | "-webkit-calc" | "-moz-calc" => sum(inner, depth),
        "min" | "max" => {
            let mut parts = Vec::new();
            for part in list(inner, ',').into_iter().take(TERMS) {
                parts.push(sum(part, depth)?);
            }
            let order = |a: &Length, b: &Length| approximate(a).total_cmp(&approximate(b));
            if name == "min" {
                parts.into_iter().min_by(order)
            } else {
                parts.into_iter().max_by(order)
            }
        }
        "clamp" => {
            let parts = list(inner, ',');
            let [minimum, preferred, maximum] = parts.as_slice() else {
                return None;
            };
            let (minimum, preferred, maximum) = (
                sum(minimum, depth)?,
                sum(preferred, depth)?,
                sum(maximum, depth)?,
            );
            Some(if approximate(&preferred) < approximate(&minimum) {
                minimum
            } else if approximate(&preferred) > approximate(&maximum) {
                maximum
            } else {
                preferred
            })
        }
        "mod" | "rem" | "round" => {
            let parts = list(inner, ',');
            let mut numbers = parts
                .iter()
                .filter_map(|part| sum(part, depth))
                .map(|length| approximate(&length));
            let whole = numbers.next()?;
            let step = numbers.next().unwrap_or(1.0);
            let steps = match parts.first().copied() {
                Some("up") => (whole / step).ceil(),
                Some("down" | "to-zero") => (whole / step).floor(),
                _ if name == "round" => (whole / step).round(),
                _ => (whole / step).floor(),
            };
            let rounded = steps * step;
            let px = if name == "round" {
                rounded
            } else {
                whole - rounded
            };
            px.is_finite().then(|| Length::from_px(px))
        }
        "env" | "fit-content" | "anchor" | "anchor-size" => None,
        "abs" => sum(inner, depth).map(|length| {
            if approximate(&length) < 0.0 {
                length.multiply(-1.0)
            } else {
                length
            }
        }),
        _ => None,
    }
}

/// Adds up the terms of a calculation.
fn sum(value: &str, depth: usize) -> Option<Length> {
    let mut total = Length::default();
    let mut term: Option<Length> = None;
    let mut sign = 1.0;
    let mut divide = None;
    for part in words(value).into_iter().flat_map(split_signs).take(TERMS) {
        match part {
            "+" | "-" => {
                total = total.add(term.take()?, sign);
                sign = if part == "+" { 1.0 } else { -1.0 };
            }
            "*" => divide = Some(false),
            "/" => divide = Some(true),
            _ => {
                let operand = read_calculated(part, depth)?;
                term = Some(match (term, divide.take()) {
                    (None, _) => operand,
                    (Some(_), None) => return None,
                    (Some(term), Some(true)) if operand.px != 0.0 => {
                        term.multiply(1.0 / operand.px)
                    }
                    (Some(_), Some(true)) => return None,
                    (Some(term), Some(false)) if operand.em == 0.0 && operand.percent == 0.0 => {
                        term.multiply(operand.px)
                    }
                    (Some(term), Some(false)) => operand.multiply(term.px),
                });
            }
        }
    }
    Some(total.add(term?, sign))
}

/// Splits `a*b` and `a/b` without spaces around the sign, outside of brackets.
fn split_signs(word: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut start = 0;
    let mut depth = 0_usize;
    for (at, b) in word.bytes().enumerate() {
        match b {
            b'(' => depth += 1,
            b')' => depth = depth.saturating_sub(1),
            b'*' | b'/' if depth == 0 => {
                parts.extend(
                    [word.get(start..at), word.get(at..=at)]
                        .into_iter()
                        .flatten(),
                );
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.extend(word.get(start..));
    parts.retain(|part| !part.is_empty());
    parts
}

/// Returns the parts of a value between `mark`s outside of brackets and strings.
pub(super) fn list(value: &str, mark: char) -> Vec<&str> {
    split(value, |c| c == mark)
}

/// Returns the words of a value, separated by white space outside of brackets and strings.
pub(super) fn words(value: &str) -> Vec<&str> {
    split(value, |c| c.is_ascii_whitespace())
        .into_iter()
        .filter(|word| !word.is_empty())
        .collect()
}

/// Returns the arguments of a function, separated by any of the separators in colours, outside of
/// brackets.
pub(super) fn arguments(value: &str) -> Vec<&str> {
    split(value, |c| matches!(c, ',' | '/' | ' ' | '\t' | '\n'))
        .into_iter()
        .filter(|part| !part.is_empty())
        .collect()
}

fn split(value: &str, mark: impl Fn(char) -> bool) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut start = 0;
    let mut depth = 0_usize;
    let mut quote = None;
    for (at, c) in value.char_indices() {
        match c {
            _ if quote == Some(c) => quote = None,
            _ if quote.is_some() => {}
            '"' | '\'' => quote = Some(c),
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            c if depth == 0 && mark(c) => {
                parts.extend(value.get(start..at).map(str::trim));
                start = at + c.len_utf8();
            }
            _ => {}
        }
    }
    parts.extend(value.get(start..).map(str::trim));
    parts
}

/// Returns the functions of a value, in order: the name, and the content of the brackets.
pub(super) fn functions(value: &str) -> Vec<(&str, &str)> {
    let call = |word| {
        let (name, inner) = str::split_once(word, '(')?;
        Some((name, inner.strip_suffix(')').unwrap_or(inner)))
    };
    // `a(1)b(2)` also contains two functions.
    words(value)
        .into_iter()
        .flat_map(|word| {
            let mut parts = Vec::new();
            let mut start = 0;
            let mut depth = 0_usize;
            for (at, c) in word.char_indices() {
                match c {
                    '(' => depth += 1,
                    ')' => {
                        depth = depth.saturating_sub(1);
                        if depth == 0 {
                            parts.extend(word.get(start..=at));
                            start = at + 1;
                        }
                    }
                    _ => {}
                }
            }
            parts.extend(word.get(start..).filter(|rest| !rest.is_empty()));
            parts
        })
        .filter_map(call)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_calculated() {
        for (value, px) in [
            ("0", 0.0),
            ("-9999px", -9999.0),
            ("2em", 40.0),
            ("10%", 100.0),
            ("1e1px", 10.0),
            ("calc(-1 * 9999px)", -9999.0),
            ("calc(100% - 2em)", 960.0),
            ("calc(1px*0)", 0.0),
            ("calc(-1*(5000px + 20px))", -5020.0),
            ("min(0px, 5px)", 0.0),
            ("max(1px, 2px)", 2.0),
            ("clamp(0px, 9px, 1px)", 1.0),
            ("-100vw", -1280.0),
        ] {
            assert_eq!(
                length(value).map(|length| length.px(20.0, 1000.0)),
                Some(px),
                "{value}"
            );
        }
        assert_eq!(length("auto"), None);
        assert_eq!(length(&"calc(".repeat(5000)), None);
    }

    #[test]
    fn functions_are_told_apart() {
        assert_eq!(
            functions("scale(0) translate(1px, calc(2px + 1px))rotate(3deg)").len(),
            3
        );
        assert_eq!(list("a(b,c), 'd,e',f", ','), ["a(b,c)", "'d,e'", "f"]);
    }
}
