//! Paths as the file system resolves them, and the classes that rules name them by.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::glob;
use super::path_classes::CLASSES;

/// Classes of paths, as a set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::detect) struct Classes(u32);

impl Classes {
    pub(in crate::detect) const NONE: Self = Self(0);

    /// The set that holds the class of this name only.
    pub(in crate::detect) fn named(name: &str) -> Option<Self> {
        CLASSES.iter().position(|(known, _)| *known == name).map(|at| Self(1 << at))
    }

    pub(in crate::detect) fn names() -> impl Iterator<Item = &'static str> {
        CLASSES.iter().map(|(name, _)| *name)
    }

    pub(in crate::detect) fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    pub(in crate::detect) fn join(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

type Patterns = Vec<(Vec<&'static str>, Classes)>;

/// Patterns by their first component (`*` where that is a glob), those under `**` left out.
static BY_FIRST: LazyLock<HashMap<&'static str, Patterns>> = LazyLock::new(|| by_component(false));

/// Patterns that may start in any folder, by the component behind `**`.
static ANYWHERE: LazyLock<HashMap<&'static str, Patterns>> = LazyLock::new(|| by_component(true));

fn by_component(anywhere: bool) -> HashMap<&'static str, Patterns> {
    let mut map: HashMap<&'static str, Patterns> = HashMap::new();
    for (at, (_, patterns)) in CLASSES.iter().enumerate() {
        for pattern in patterns.split_whitespace() {
            let tail = pattern.strip_prefix("**/");
            if tail.is_some() != anywhere {
                continue;
            }
            let parts: Vec<&str> = tail.unwrap_or(pattern.trim_start_matches('/')).split('/').collect();
            let first = parts.first().copied().filter(|first| !first.contains(['*', '?'])).unwrap_or("*");
            map.entry(first).or_default().push((parts, Classes(1 << at)));
        }
    }
    map
}

/// Every path a pattern names outright: what a glob in a command may stand for.
static WELL_KNOWN: LazyLock<Vec<String>> = LazyLock::new(|| {
    let plain = CLASSES
        .iter()
        .flat_map(|(_, patterns)| patterns.split_whitespace())
        .filter(|p| !p.contains(['*', '?']) && p.starts_with(['/', '~']));
    let hidden = [
        "~/.ssh/id_rsa",
        "~/.ssh/id_ed25519",
        "~/.aws/credentials",
        "~/.netrc",
        "~/.kube/config",
        "/dev/sda",
        "/dev/nvme0n1",
        "/etc/shadow",
        "~/.bash_history",
    ];
    plain.map(|p| (*p).to_owned()).chain(hidden.map(String::from)).collect()
});

/// A path in one form: home as `~`, no `//`, `.` or `..`, no end slash; `/*` and its kin as `*`.
/// `None` if the text is not a path that is worth a look.
pub(in crate::detect) fn normal(text: &str, folder: Option<&str>) -> Option<String> {
    let text = text.strip_prefix("file://").unwrap_or(text);
    // A sentence that names a path is no path.
    let sentence = !text.starts_with(['/', '~']) && text.contains([' ', '\n']) && text.get(1..2) != Some(":");
    if sentence || text.is_empty() || text.len() > 4096 || text.contains("://") || text.starts_with('-') {
        return None;
    }
    let mut text = text.replace('\\', "/");
    let drive = text.get(1..2) == Some(":") && text.starts_with(|c: char| c.is_ascii_alphabetic());
    if drive {
        text = text.to_ascii_lowercase();
    }
    let rooted = text.starts_with(['/', '~']) || drive;
    if !rooted && let Some(folder) = folder {
        text = format!("{folder}/{text}");
    }
    let climbs = !rooted && text.starts_with("../");
    let mut parts: Vec<&str> = Vec::new();
    let mut climbed = 0;
    for part in text.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                if parts.pop().is_none() {
                    climbed += 1;
                }
            }
            part => parts.push(part),
        }
    }
    // Any process's root or folder may be the root.
    while let ["proc", _, "root" | "cwd", ..] = parts.as_slice() {
        parts.drain(..3);
    }
    if let Some(last) = parts.last_mut()
        && last.chars().all(|c| matches!(c, '*' | '?' | '.' | '[' | ']' | '!' | '^'))
        && last.contains(['*', '?'])
    {
        *last = "*";
    }
    let absolute = text.starts_with('/')
        || (climbs
            && climbed >= 2
            && parts.first().is_some_and(|p| matches!(*p, "etc" | "root" | "home" | "var" | "proc" | "usr" | "dev")));
    let joined = match (absolute, parts.as_slice()) {
        (true, ["root", rest @ ..]) | (true, ["home" | "Users", _, rest @ ..])
            if !matches!(parts.as_slice(), ["home" | "Users", "*"]) =>
        {
            home(rest)
        }
        (true, ["var", "root", rest @ ..] | ["private", "var", "root", rest @ ..]) => home(rest),
        (true, parts) => format!("/{}", parts.join("/")),
        (false, [first, rest @ ..]) if first.starts_with('~') => home(rest),
        // As far up as it goes: whether that is too far, roots say.
        (false, parts) => std::iter::repeat_n("..", climbed.min(64)).chain(parts.iter().copied()).collect::<Vec<_>>().join("/"),
    };
    Some(joined)
}

fn home(rest: &[&str]) -> String {
    if rest.is_empty() { "~".to_owned() } else { format!("~/{}", rest.join("/")) }
}

/// The classes of a normalised path.
pub(in crate::detect) fn classes(path: &str) -> Classes {
    let mut found = Classes::NONE;
    let parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
    let absolute = path.starts_with(['/', '~']) || path.get(1..2) == Some(":");
    let first = parts.first().copied().unwrap_or("");
    for key in [first, "*"] {
        if absolute && let Some(patterns) = BY_FIRST.get(key) {
            for (pattern, class) in patterns {
                if !found.meets(*class) && fits(pattern, &parts) {
                    found = found.join(*class);
                }
            }
        }
    }
    for (start, part) in parts.iter().enumerate().take(64) {
        let rest = parts.get(start..).unwrap_or_default();
        for (tail, class) in ANYWHERE.get(part).into_iter().flatten() {
            if fits(tail, rest) {
                found = found.join(*class);
            }
        }
    }
    for (tail, class) in ANYWHERE.get("*").into_iter().flatten() {
        if !found.meets(*class) && parts.get(parts.len().saturating_sub(tail.len())..).is_some_and(|rest| fits(tail, rest)) {
            found = found.join(*class);
        }
    }
    // What is public or merely listed among the keys.
    if let Some(last) = parts.last()
        && (last.ends_with(".pub")
            || matches!(
                *last,
                "known_hosts"
                    | "known_hosts.old"
                    | "authorized_keys"
                    | "authorized_keys2"
                    | ".env.example"
                    | ".env.sample"
                    | ".env.template"
                    | ".env.test"
                    | ".env.dist"
            )
            || (parts.contains(&".ssh") && *last == "config"))
        && let Some(secret) = Classes::named("credential").zip(Classes::named("env-file")).map(|(a, b)| a.join(b))
    {
        found = Classes(found.0 & !secret.0);
    }
    found
}

fn fits(pattern: &[&str], parts: &[&str]) -> bool {
    for (at, wanted) in pattern.iter().enumerate() {
        if *wanted == "**" {
            return true;
        }
        let Some(part) = parts.get(at) else { return false };
        // `*$` takes a bare star in the command only: the folder's whole content, not one thing in it.
        let same = match *wanted {
            "*$" => *part == "*",
            wanted if wanted.contains(['*', '?']) => glob::matches(wanted, part),
            wanted => wanted == *part,
        };
        if !same {
            return false;
        }
    }
    pattern.len() == parts.len()
}

/// Whether a path fits a rule's own glob (`/etc/foo*`, `**/x`, `/boot/**`).
pub(in crate::detect) fn fits_glob(pattern: &str, path: &str) -> bool {
    let parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
    match pattern.strip_prefix("**/") {
        Some(tail) => {
            let tail: Vec<&str> = tail.split('/').collect();
            parts.len() >= tail.len() && parts.get(parts.len() - tail.len()..).is_some_and(|rest| fits(&tail, rest))
        }
        None => {
            let pattern_parts: Vec<&str> = pattern.trim_start_matches('/').split('/').collect();
            pattern.starts_with('/') == path.starts_with('/') && fits(&pattern_parts, &parts)
        }
    }
}

/// The well-known path that a glob stands for, if it spells enough of it to mean it.
pub(super) fn resolve_glob(path: &str) -> Option<&'static str> {
    let spelt = path.chars().filter(|c| c.is_alphanumeric()).count();
    if !path.starts_with(['/', '~']) || path.ends_with("/*") || spelt == 0 && !path.contains("???") {
        return None;
    }
    WELL_KNOWN
        .iter()
        .find(|known| {
            let same_depth = known.matches('/').count() == path.matches('/').count();
            same_depth && known.len() >= 6 && glob::matches(path, known)
        })
        .map(String::as_str)
}
