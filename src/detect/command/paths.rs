//! Normalizes paths as the file system resolves them.

use std::borrow::Cow;

pub(in crate::detect) use super::path_match::{Classes, classes, fits_glob};

/// Number of levels above an unknown folder at which a path without a name after them is assumed to
/// mean the root.
const MANY_CLIMBED: usize = 5;
/// Maximum number of levels that a relative path climbs; more lead to the root anyway.
const MAX_CLIMBED: usize = 64;

/// Returns a path in its normal form: home as `~`, no `//`, `.` or `..`, no trailing slash; `/*`
/// and similar patterns as `*`. Returns `None` if the text is not a path that is worth examining.
pub(in crate::detect) fn normal(text: &str, folder: Option<&str>) -> Option<String> {
    let text = text.strip_prefix("file://").unwrap_or(text);
    // A sentence that mentions a path is not a path.
    let sentence =
        !text.starts_with(['/', '~']) && text.contains([' ', '\n']) && text.get(1..2) != Some(":");
    if sentence
        || text.is_empty()
        || text.len() > 4096
        || text.contains("://")
        || text.starts_with('-')
        || text.bytes().all(|b| b == b'\\')
    {
        return None;
    }
    let mut text = if text.contains('\\') {
        Cow::Owned(text.replace('\\', "/"))
    } else {
        Cow::Borrowed(text)
    };
    let drive = text.get(1..2) == Some(":") && text.starts_with(|c: char| c.is_ascii_alphabetic());
    if drive {
        text.to_mut().make_ascii_lowercase();
    }
    let rooted = text.starts_with(['/', '~']) || drive;
    if !rooted && let Some(folder) = folder {
        text = Cow::Owned(format!("{folder}/{text}"));
    }
    let climbs = !rooted && text.starts_with("../");
    let mut parts: Vec<&str> = Vec::with_capacity(8);
    let mut climbed = 0;
    let mut above_home = false;
    for part in text.split('/') {
        match part {
            "" | "." => {}
            ".." => match parts.pop() {
                None => climbed += 1,
                // Homes are in `/home`, except that of root.
                Some(home)
                    if home.starts_with('~')
                        && parts.is_empty()
                        && text.starts_with('~')
                        && !above_home =>
                {
                    above_home = true;
                    parts.extend((home != "~root").then_some("home"));
                }
                Some(_) => {}
            },
            part => parts.push(part),
        }
    }
    // The root or the working directory of any process may be the root directory.
    while let ["proc", _, "root" | "cwd", ..] = parts.as_slice() {
        parts.drain(..3);
    }
    if let Some(last) = parts.last_mut()
        && last
            .chars()
            .all(|c| matches!(c, '*' | '?' | '.' | '[' | ']' | '!' | '^'))
        && last.contains(['*', '?'])
    {
        *last = "*";
    }
    let absolute = text.starts_with('/')
        || above_home
        || (climbs
            && climbed >= 2
            && parts.first().is_some_and(|p| matches!(*p, "etc" | "root" | "home" | "var" | "proc" | "usr" | "dev")))
        // This many levels up, there is only the root.
        || (climbs && climbed >= MANY_CLIMBED && parts.first().is_none_or(|p| *p == "*"));
    let joined_path = match (absolute, parts.as_slice()) {
        (true, ["root", rest @ ..]) | (true, ["home" | "Users", _, rest @ ..])
            if !matches!(parts.as_slice(), ["home" | "Users", "*"]) =>
        {
            home(rest)
        }
        (true, ["var", "root", rest @ ..] | ["private", "var", "root", rest @ ..]) => home(rest),
        (true, []) => "/".to_owned(),
        (true, parts) => join("", parts),
        (false, [first, rest @ ..]) if first.starts_with('~') => home(rest),
        // Keeps the levels that the path climbs: `roots` decide whether these are too many.
        (false, parts) => std::iter::repeat_n("..", climbed.min(MAX_CLIMBED))
            .chain(parts.iter().copied())
            .collect::<Vec<_>>()
            .join("/"),
    };
    Some(joined_path)
}

/// Returns the home folder that a path spells out, and that [`normal`] replaces by `~`.
pub(super) fn home_of(text: &str, folder: Option<&str>) -> Option<Box<str>> {
    let text = text.strip_prefix("file://").unwrap_or(text);
    let full_path = if text.starts_with(['/', '\\']) {
        text
    } else {
        folder.filter(|folder| folder.starts_with('/'))?
    };
    let mut parts: Vec<&str> = Vec::with_capacity(8);
    for part in full_path.split(['/', '\\']) {
        match part {
            "" | "." => {}
            ".." => _ = parts.pop(),
            part => parts.push(part),
        }
    }
    let length = match parts.as_slice() {
        ["root", ..] => 1,
        ["home" | "Users", ..] | ["var", "root", ..] => 2,
        ["private", "var", "root", ..] => 3,
        _ => return None,
    };
    Some(join("", parts.get(..length)?).into())
}

fn home(rest: &[&str]) -> String {
    join("~", rest)
}

fn join(start: &str, parts: &[&str]) -> String {
    let mut path =
        String::with_capacity(start.len() + parts.iter().map(|part| part.len() + 1).sum::<usize>());
    path.push_str(start);
    for part in parts {
        path.push('/');
        path.push_str(part);
    }
    path
}
