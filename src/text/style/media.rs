//! Media queries (Media Queries 4), evaluated for a common screen.

use super::value::{SCREEN, length, list};

/// Reports whether a list of queries holds, or `None` if that is not known.
pub(super) fn evaluate(queries: &str) -> Option<bool> {
    let mut has_unknown = false;
    for query in list(queries, ',') {
        match evaluate_query(query) {
            Some(true) => return Some(true),
            Some(false) => {}
            None => has_unknown = true,
        }
    }
    (!has_unknown).then_some(false)
}

fn evaluate_query(query: &str) -> Option<bool> {
    let (is_negated, query) = query
        .strip_prefix("not ")
        .map_or((false, query), |rest| (true, rest.trim()));
    if query.contains(" or ") || query.contains("not ") {
        return None;
    }
    let mut result = Some(true);
    for part in query.split(" and ") {
        match evaluate_feature(part.trim().trim_start_matches("only ").trim()) {
            Some(true) => {}
            Some(false) => {
                result = Some(false);
                break;
            }
            None => result = None,
        }
    }
    result.map(|all| all != is_negated)
}

fn evaluate_feature(part: &str) -> Option<bool> {
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
    for (mark, is_upper) in [("<=", true), (">=", false), ("<", true), (">", false)] {
        if let Some((left, right)) = inner.split_once(mark) {
            let left = left.trim();
            let right = right.trim();
            let dimension = |name: &str| {
                if name == "width" {
                    Some(width)
                } else {
                    (name == "height").then_some(height)
                }
            };
            return match (dimension(left), dimension(right)) {
                (Some(actual), _) => px(right).map(|limit| {
                    if is_upper {
                        actual <= limit
                    } else {
                        actual >= limit
                    }
                }),
                (_, Some(actual)) => px(left).map(|limit| {
                    if is_upper {
                        limit <= actual
                    } else {
                        limit >= actual
                    }
                }),
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
    use super::evaluate;

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
            assert_eq!(evaluate(query), answer, "{query}");
        }
    }
}
