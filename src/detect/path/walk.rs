//! Walks a path component by component, as a kernel does: a link is followed before the `..` after
//! it.

use std::path::Path;

use super::roots::Links;

/// Maximum number of components that are walked, including those of links.
const STEPS: usize = 512;
/// Maximum number of links that are followed, as in kernels (ELOOP).
const LINKS: usize = 40;

/// The end of a walk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ResolvedPath {
    /// The components from the root; the first one of a drive is its letter and a colon.
    pub(super) components: Vec<String>,
    /// Number of steps up at the root, where nothing is left to leave.
    pub(super) above_root: usize,
    /// Number of all steps up.
    pub(super) steps_up: usize,
    /// Whether the walk was aborted: too long, or a cycle of links.
    pub(super) lost: bool,
}

/// Walks `path` from `base`; with `windows`, `\` separates components too. Links are followed if
/// they are known.
pub(super) fn walk(base: &[String], path: &str, windows: bool, links: &Links) -> ResolvedPath {
    let mut walked = ResolvedPath {
        components: base.to_vec(),
        ..ResolvedPath::default()
    };
    // In reverse, so that the components of a link's target go on top.
    let mut remaining: Vec<String> = parts(path, windows)
        .take(STEPS + 1)
        .map(str::to_owned)
        .collect();
    remaining.reverse();
    let mut steps = 0;
    let mut followed = 0;
    while let Some(part) = remaining.pop() {
        steps += 1;
        if steps > STEPS {
            walked.lost = true;
            break;
        }
        match part.as_str() {
            "" | "." => {}
            ".." => {
                walked.steps_up += 1;
                let drive = walked.components.len() == 1
                    && walked
                        .components
                        .first()
                        .is_some_and(|first| first.ends_with(':'));
                if drive || walked.components.pop().is_none() {
                    walked.above_root += 1;
                }
            }
            _ => {
                walked.components.push(part);
                let Some(target) = target(&walked.components, links) else {
                    continue;
                };
                followed += 1;
                if followed > LINKS {
                    walked.lost = true;
                    break;
                }
                walked.components.pop();
                if target.starts_with('/') {
                    walked.components.clear();
                }
                let target_parts: Vec<String> = parts(&target, false)
                    .take(STEPS)
                    .map(str::to_owned)
                    .collect();
                remaining.extend(target_parts.into_iter().rev());
            }
        }
    }
    walked
}

/// Returns the target of a link, as written in it.
fn target(at: &[String], links: &Links) -> Option<String> {
    match links {
        Links::Unknown => None,
        Links::Map(links) => links.get(&absolute(at)).cloned(),
        Links::Machine => {
            let target = std::fs::read_link(Path::new(&absolute(at))).ok()?;
            Some(target.to_string_lossy().into_owned())
        }
    }
}

/// Joins components to an absolute path.
pub(super) fn absolute(at: &[String]) -> String {
    let mut path = String::with_capacity(at.iter().map(|part| part.len() + 1).sum());
    for part in at {
        if !(path.is_empty() && part.ends_with(':')) {
            path.push('/');
        }
        path.push_str(part);
    }
    if path.is_empty() {
        "/".to_owned()
    } else {
        path
    }
}

/// Splits a path into its components, as written.
pub(super) fn parts(path: &str, windows: bool) -> impl Iterator<Item = &str> {
    path.split(move |c| c == '/' || windows && c == '\\')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn links(pairs: &[(&str, &str)]) -> Links {
        Links::Map(
            pairs
                .iter()
                .map(|(link, target)| ((*link).to_owned(), (*target).to_owned()))
                .collect(),
        )
    }

    #[test]
    fn links_are_followed_before_what_stands_behind_them() {
        let known_links = links(&[
            ("/w/out", "/etc/ssh"),
            ("/w/in", "a/b"),
            ("/w/up", ".."),
            ("/w/x", "y"),
            ("/w/y", "x"),
        ]);
        let base = ["w".to_owned()];
        for (path, expected) in [
            ("out", "/etc/ssh"),
            ("out/../passwd", "/etc/passwd"),
            ("in/../c", "/w/a/c"),
            ("up/x", "/x"),
            ("./a//b/../c", "/w/a/c"),
            ("../../../x", "/x"),
        ] {
            assert_eq!(
                absolute(&walk(&base, path, false, &known_links).components),
                expected,
                "{path}"
            );
        }
        assert!(walk(&base, "x", false, &known_links).lost);
        assert!(walk(&base, &"a/".repeat(STEPS + 1), false, &known_links).lost);
        assert_eq!(walk(&base, "../../x", false, &Links::Unknown).above_root, 1);
        assert_eq!(
            absolute(&walk(&["c:".into()], "\\a\\..\\..\\b", true, &known_links).components),
            "c:/b"
        );
    }
}
