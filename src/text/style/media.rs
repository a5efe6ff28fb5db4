//! Media queries (Media Queries 4), evaluated for a common screen.

use super::value::{SCREEN, length, list};

/// Reports whether a list of queries holds, or `None` if that is not known.
pub(super) fn holds(queries: &str) -> Option<bool> {
    let mut unknown = false;
    for query in list(queries, ',') {
        match one(query) {
            Some(true) => return Some(true),
            Some(false) => {}
            None => unknown = true,
        }
    }
    (!unknown).then_some(false)
}

fn one(query: &str) -> Option<bool> {
    let (not, query) = query
        .strip_prefix("not ")
        .map_or((false, query), |rest| (true, rest.trim()));
    if query.contains(" or ") || query.contains("not ") {
        return None;
    }
    let mut all = Some(true);
    for part in query.split(" and ") {
        match feature(part.trim().trim_start_matches("only ").trim()) {
            Some(true) => {}
            Some(false) => {
                all = Some(false);
                break;
            }
            None => all = None,
        }
    }
    all.map(|all| all != not)
}

fn feature(part: &str) -> Option<bool> {
    let inner = part.trim_start_matches('(').trim_end_matches(')').trim();
    let px = |value: &str| length(value).map(|length| length.px(16.0, 0.0));
    let (width, height) = SCREEN;
    if let Some((name, value)) = inner.split_once(':') {
        let value = value.trim();
        return match name.trim() {
            "min-width" | "min-device-width" => px(value).map(|least| width >= least),
            "max-width" | "max-device-width" => px(value).map(|most| width <= most),
            "min-height" => px(value).map(|least| height >= least),
            "max-height" => px(value).map(|most| height <= most),
            "orientation" => Some(value == "landscape"),
            "prefers-color-scheme" => Some(value == "light"),
            "prefers-reduced-motion" | "prefers-contrast" | "prefers-reduced-transparency" => {
                Some(value == "no-preference")
            }
            "hover" | "any-hover" => Some(value == "hover"),
            "pointer" | "any-pointer" => Some(value == "fine"),
            "scripting" => Some(value == "enabled"),
            "forced-colors" | "inverted-colors" => Some(value == "none"),
            "display-mode" => Some(value == "browser"),
            _ => None,
        };
    }
    for (mark, less) in [("<=", true), (">=", false), ("<", true), (">", false)] {
        if let Some((left, right)) = inner.split_once(mark) {
            let left = left.trim();
            let right = right.trim();
            let of = |name: &str| {
                if name == "width" {
                    Some(width)
                } else {
                    (name == "height").then_some(height)
                }
            };
            return match (of(left), of(right)) {
                (Some(ours), _) => {
                    px(right).map(|given| if less { ours <= given } else { ours >= given })
                }
                (_, Some(ours)) => {
                    px(left).map(|given| if less { given <= ours } else { given >= ours })
                }
                _ => None,
            };
        }
    }
    match inner {
        "screen" | "all" | "" | "color" | "hover" | "scripting" | "grid: 0" => Some(true),
        "print" | "speech" | "tty" | "aural" | "braille" | "embossed" | "handheld"
        | "projection" | "tv" | "monochrome" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::holds;

    #[test]
    fn queries_are_asked_of_a_screen() {
        for (query, answer) in [
            ("", Some(true)),
            ("screen and (min-width: 600px)", Some(true)),
            ("(max-width: 600px)", Some(false)),
            ("only screen and (max-width: 99999px)", Some(true)),
            ("not print", Some(true)),
            ("print, (width >= 40em)", Some(true)),
            ("(400px <= width)", Some(true)),
            ("(prefers-color-scheme: dark)", Some(false)),
            ("(unheard-of: 1)", None),
        ] {
            assert_eq!(holds(query), answer, "{query}");
        }
    }
}
