//! What Markdown hides when it is shown: titles of links, definitions that nothing refers to, comments written as such
//! definitions, long descriptions of images (CommonMark 0.31, 4.7 and 6.3).

use std::ops::Range;

use super::hints::{ALT_BYTES, prose};

/// Longest title or label that is looked at, in bytes.
const PART_BYTES: usize = 4000;
/// Most labels that are looked for elsewhere in the text; the references to more are taken for none.
const LABELS: usize = 64;

/// Takes out what shows nowhere: what is left, and what was taken, each on a paragraph of its own. `None` if there is none.
pub(super) fn strip(text: &str, code: &[Range<usize>]) -> Option<(String, String)> {
    if !text.contains("](") && !text.contains("]:") {
        return None;
    }
    let mut cuts: Vec<(Range<usize>, &str)> = Vec::new();
    definitions(text, &mut cuts);
    inline(text, &mut cuts);
    let mut code = code.iter().peekable();
    cuts.sort_by_key(|(range, _)| range.start);
    cuts.retain(|(range, _)| {
        while code.next_if(|known| known.end <= range.start).is_some() {}
        !code.peek().is_some_and(|known| known.contains(&range.start))
    });
    if cuts.is_empty() {
        return None;
    }
    let (mut left, mut taken, mut at) = (String::with_capacity(text.len()), String::new(), 0);
    for (range, stand_in) in cuts {
        if range.start < at {
            continue;
        }
        left.push_str(text.get(at..range.start)?);
        left.push_str(stand_in);
        if !taken.is_empty() {
            taken.push_str("\n\n");
        }
        taken.push_str(text.get(range.clone())?.trim());
        at = range.end;
    }
    left.push_str(text.get(at..)?);
    Some((left, taken))
}

/// Definitions at the start of lines: `[label]: target "title"`, `[^note]: text`.
fn definitions(text: &str, cuts: &mut Vec<(Range<usize>, &str)>) {
    let mut labels = 0;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let start = at;
        at += line.len();
        let inner = line.trim_start_matches(' ');
        if line.len() - inner.len() > 3 || !inner.starts_with('[') {
            continue;
        }
        let Some((label, rest)) = inner.get(1..).and_then(|rest| rest.split_once("]:")) else { continue };
        if label.contains(['[', ']']) || label.len() > PART_BYTES {
            continue;
        }
        let mut used = || {
            labels += 1;
            let name = format!("[{label}]");
            labels <= LABELS && text.matches(&*name).nth(1).is_some()
        };
        if label.starts_with('^') {
            if prose(rest) && !used() {
                cuts.push((start..at, ""));
            }
            continue;
        }
        let rest = rest.trim();
        let (target, title) = rest.split_once([' ', '\t']).unwrap_or((rest, ""));
        let nowhere = matches!(target, "#" | "<>" | "-" | "_" | "//" | "/" | "<#>" | "." | "about:blank");
        let comment = !label.contains(|c: char| c.is_alphanumeric()) || label.eq_ignore_ascii_case("comment");
        let title_start = at - line.len() + line.find(title).unwrap_or(0);
        let title = title.trim();
        let quoted = title.starts_with(['"', '\'', '(']);
        if quoted && (nowhere || comment) && title.len() >= 8 {
            cuts.push((start..at, ""));
        } else if quoted && leads_somewhere(target) && prose(title) && !title.starts_with('(') {
            cuts.push((title_start..title_start + title.len(), ""));
        } else if (nowhere || leads_somewhere(target)) && title.is_empty() {
            if prose(label) && label.split(' ').count() > 5 && !used() {
                cuts.push((start..at, ""));
            }
            // A title may stand on the line after.
            let next = text.get(at..).unwrap_or_default();
            let line = next.split_inclusive('\n').next().unwrap_or_default();
            let title = line.trim();
            if title.len() > 2 && title.starts_with(['"', '\'']) && title.ends_with(['"', '\'']) && prose(title) {
                cuts.push((at..at + line.len(), ""));
            }
        }
    }
}

fn leads_somewhere(target: &str) -> bool {
    target.contains("://") || target.starts_with(['/', '#', '.', '<']) || target.starts_with("mailto:")
}

/// Titles within links, and what long descriptions of images say.
fn inline(text: &str, cuts: &mut Vec<(Range<usize>, &str)>) {
    for (at, _) in text.match_indices("](") {
        let after = at + 2;
        let rest = text.get(after..).unwrap_or_default();
        let target = rest.bytes().take(PART_BYTES).take_while(|b| !matches!(b, b' ' | b'\n' | b'\t' | b')' | b'(')).count();
        if target == PART_BYTES {
            continue;
        }
        let spaced = rest.get(target..).unwrap_or_default();
        let title = spaced.trim_start();
        let opening = title.bytes().next().filter(|b| matches!(b, b'"' | b'\''));
        if let Some(quote) = opening
            && title.len() < spaced.len()
        {
            let inner = title.as_bytes().iter().skip(1).take(PART_BYTES);
            if let Some(end) = inner.clone().position(|b| *b == quote) {
                let start = after + target;
                let end = text.len() - title.len() + end + 2;
                if text.get(end..).is_some_and(|rest| rest.trim_start().starts_with(')'))
                    && text.get(start..end).is_some_and(prose)
                {
                    cuts.push((start..end, ""));
                }
            }
        }
        if let Some(alt) = image(text, at)
            && alt.len() > ALT_BYTES
        {
            cuts.push((alt, "image"));
        }
    }
}

/// Where the description of an image stands whose bracket closes at a place.
fn image(text: &str, close: usize) -> Option<Range<usize>> {
    let before = text.as_bytes().get(close.saturating_sub(PART_BYTES)..close)?;
    let open = before.iter().rposition(|b| matches!(b, b'[' | b']')).filter(|at| before.get(*at) == Some(&b'['))?;
    let start = close - (before.len() - open) + 1;
    text.get(..start)?.ends_with("![").then_some(start..close)
}

#[cfg(test)]
mod tests {
    use super::strip;

    fn left(text: &str) -> String {
        strip(text, &[]).map_or_else(|| text.to_owned(), |(left, _)| left)
    }

    #[test]
    fn what_shows_nowhere_is_taken_out() {
        for text in [
            "a\n\n[//]: # (SECRET words for nobody)\n\nb",
            "a\n\n[comment]: <> (SECRET words for nobody)\n\nb",
            "see [x](https://a.test/ \"SECRET words for nobody at all\") b",
            "see [x][y] b\n\n[y]: https://a.test/ 'SECRET words for nobody'\n",
            "see [x][y] b\n\n[y]: https://a.test/\n  \"SECRET words for nobody\"\n",
            "b\n\n[SECRET words that say what nobody shall see]: #\n",
            "b\n\n[^1]: SECRET words for nobody to see\n",
            &format!("![SECRET {}](a.png) b", "word ".repeat(20)),
        ] {
            let (left, taken) = strip(text, &[]).unwrap_or_else(|| panic!("{text}"));
            assert!(!left.contains("SECRET") && taken.contains("SECRET") && left.contains('b'), "{left}");
        }
    }

    #[test]
    fn what_shows_or_only_looks_so_stays() {
        for text in [
            "see [the guide](https://a.test/b \"Guide\") and ![a logo](l.png)",
            "a[^1]\n\n[^1]: A note that is referred to above.\n",
            "[INFO]: started (with 3 workers and more)\n[WARN]: a.txt (was not found in the path)\n",
            "[section]: \"a quoted text that follows\"\nlist[0]: 'one of these words'\n",
            "[a]: https://a.test/\n[b]: <https://b.test>\n",
        ] {
            assert_eq!(left(text), text);
        }
    }

    #[test]
    fn many_brackets_cost_linear_time() {
        for text in ["](".repeat(50_000), "[a]: # (".repeat(50_000), "[a]:\n".repeat(50_000), "![".repeat(50_000)] {
            let began = std::time::Instant::now();
            strip(&text, &[]);
            assert!(began.elapsed().as_secs() < 5, "{:?}", text.get(..8));
        }
    }
}
