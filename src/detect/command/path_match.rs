//! Determines the classes of a path, and matches paths against the globs of rules.

use std::sync::LazyLock;

use super::glob;
use super::path_classes::CLASSES;
use super::paths;
use crate::text::quick::{QuickMap, WordSet};

/// A set of path classes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::detect) struct Classes(u32);

impl Classes {
    pub(in crate::detect) const NONE: Self = Self(0);

    /// Returns the set that contains only the class of this name.
    pub(in crate::detect) fn from_name(name: &str) -> Option<Self> {
        CLASSES
            .iter()
            .position(|(candidate, _)| *candidate == name)
            .map(|at| Self(1 << at))
    }

    /// Returns the set of the classes of these names.
    pub(in crate::detect) fn from_names(names: &[&str]) -> Self {
        names
            .iter()
            .filter_map(|name| Self::from_name(name))
            .fold(Self::NONE, Self::join)
    }

    pub(in crate::detect) fn names() -> impl Iterator<Item = &'static str> {
        CLASSES.iter().map(|(name, _)| *name)
    }

    pub(in crate::detect) fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    pub(in crate::detect) fn join(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}

/// A component of a pattern.
#[derive(Clone, Debug)]
enum Part {
    Exactly(Box<str>),
    /// `*$`: matches only a bare star in the command, which is the whole content of the folder, not
    /// a single item in it.
    Star,
    /// `**`: anything below, or nothing.
    Deep,
    /// `*.pem`
    EndsIn(Box<str>),
    Glob(Box<str>),
}

impl Part {
    fn new(text: &str) -> Self {
        match text {
            "*$" => Self::Star,
            "**" => Self::Deep,
            _ => match text
                .strip_prefix('*')
                .filter(|rest| !rest.is_empty() && !rest.contains(['*', '?', '[']))
            {
                Some(rest) => Self::EndsIn(rest.into()),
                None if text.contains(['*', '?']) => Self::Glob(text.into()),
                None => Self::Exactly(text.into()),
            },
        }
    }

    fn matches(&self, part: &str) -> bool {
        match self {
            Self::Exactly(text) => **text == *part,
            Self::Star => part == "*",
            Self::Deep => true,
            Self::EndsIn(end) => part.ends_with(&**end),
            Self::Glob(pattern) => glob::matches(pattern, part),
        }
    }
}

fn parts(pattern: &str) -> Vec<Part> {
    pattern
        .trim_start_matches('/')
        .split('/')
        .map(Part::new)
        .collect()
}

/// Reports whether `path` matches the pattern, component by component.
fn fits(pattern: &[Part], path: &str) -> bool {
    let mut components = path.split('/');
    for part in pattern {
        if matches!(part, Part::Deep) {
            return true;
        }
        if !components
            .next()
            .is_some_and(|component| part.matches(component))
        {
            return false;
        }
    }
    components.next().is_none()
}

/// Returns the suffixes of a path that start with a component, longest first.
fn suffixes(path: &str) -> impl Iterator<Item = &str> {
    let tails = path
        .match_indices('/')
        .filter_map(|(at, _)| path.get(at + 1..));
    std::iter::once(path).chain(tails).take(MAX_COMPONENTS)
}

/// Maximum number of components of a path at which patterns may start.
const MAX_COMPONENTS: usize = 64;

/// The glob of a rule: `/etc/foo*`, `**/x`, `/boot/**`.
#[derive(Clone)]
pub(super) struct Glob {
    source: String,
    parts: Vec<Part>,
    anywhere: bool,
}

impl Glob {
    pub(super) fn new(source: String) -> Self {
        let tail = source.strip_prefix("**/");
        let parts = parts(tail.unwrap_or(&source));
        let anywhere = tail.is_some();
        Self {
            source,
            parts,
            anywhere,
        }
    }

    pub(super) fn fits(&self, path: &str) -> bool {
        let rooted = path.starts_with('/');
        let path = path.trim_start_matches('/');
        if self.anywhere {
            return suffixes(path).any(|end| fits(&self.parts, end));
        }
        self.source.starts_with('/') == rooted && fits(&self.parts, path)
    }
}

/// Reports whether a path matches a glob, with the syntax of [`Glob`].
pub(in crate::detect) fn fits_glob(pattern: &str, path: &str) -> bool {
    let part_matches = |expected: &str, part: &str| {
        if expected.contains(['*', '?']) {
            glob::matches(expected, part)
        } else {
            expected == part
        }
    };
    let fits = |tail: &str, end: &str| {
        let mut components = end.split('/');
        for expected in tail.split('/') {
            if expected == "**" {
                return true;
            }
            if !components
                .next()
                .is_some_and(|part| part_matches(expected, part))
            {
                return false;
            }
        }
        components.next().is_none()
    };
    let bare = path.trim_start_matches('/');
    match pattern.strip_prefix("**/") {
        Some(tail) => suffixes(bare).any(|end| fits(tail, end)),
        None => {
            pattern.starts_with('/') == path.starts_with('/')
                && fits(pattern.trim_start_matches('/'), bare)
        }
    }
}

impl std::fmt::Debug for Glob {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.source)
    }
}

type Patterns = Vec<(Vec<Part>, Classes)>;

#[derive(Default)]
struct Table {
    /// Patterns by their first component. Those whose second component is not a glob either are in
    /// `pairs`, by both: homes have many.
    by_first: QuickMap<&'static str, Patterns>,
    pairs: QuickMap<&'static str, Patterns>,
    /// Patterns whose first component is a glob.
    globs: Patterns,
}

impl Table {
    fn new(anywhere: bool) -> Self {
        let mut table = Self::default();
        for (at, (_, patterns)) in CLASSES.iter().enumerate() {
            for pattern in patterns.split_whitespace() {
                let tail = pattern.strip_prefix("**/");
                if tail.is_some() != anywhere {
                    continue;
                }
                let text = tail.unwrap_or(pattern.trim_start_matches('/'));
                let first = text.split('/').next().unwrap_or(text);
                let list = match pair(text).filter(|pair| !pair.contains(['*', '?'])) {
                    Some(pair) => table.pairs.entry(pair).or_default(),
                    None if first.contains(['*', '?']) => &mut table.globs,
                    None => table.by_first.entry(first).or_default(),
                };
                list.push((parts(text), Classes(1 << at)));
            }
        }
        table
    }

    /// Returns the patterns that may match a path, except those whose first component is a glob.
    fn candidates(&self, path: &str) -> impl Iterator<Item = &(Vec<Part>, Classes)> {
        let first = path.split('/').next().unwrap_or(path);
        let pairs = pair(path).and_then(|pair| self.pairs.get(pair));
        self.by_first.get(first).into_iter().chain(pairs).flatten()
    }
}

/// Returns the first two components of a path, if it has two.
fn pair(path: &str) -> Option<&str> {
    let (first, rest) = path.split_once('/')?;
    let second = rest.find('/').unwrap_or(rest.len());
    path.get(..first.len() + 1 + second)
}

/// Patterns that start at the root or a home.
static ROOTED: LazyLock<Table> = LazyLock::new(|| Table::new(false));

/// Patterns that may start in any folder.
static ANYWHERE: LazyLock<Table> = LazyLock::new(|| Table::new(true));

/// Names of files that match the patterns for keys, but are public or only examples.
static PUBLIC: WordSet = WordSet::new(
    "known_hosts known_hosts.old authorized_keys authorized_keys2 .env.example .env.sample \
     .env.template .env.test .env.dist",
);

pub(super) static SECRET: LazyLock<Classes> =
    LazyLock::new(|| Classes::from_names(&["credential", "env-file"]));

/// Reports whether a word must be classified: it may be more than a name, or it is a name that has
/// a class.
pub(super) fn may_have_class(word: &str) -> bool {
    // Every glob pattern for a single name contains a dot or a space.
    word.bytes().any(|b| {
        matches!(
            b,
            b'/' | b'\\' | b'~' | b'.' | b':' | b'*' | b'?' | b'[' | b' '
        )
    }) || ANYWHERE.by_first.contains_key(word)
}

/// Returns the classes of a normalized path.
pub(in crate::detect) fn classes(path: &str) -> Classes {
    let mut out = Classes::NONE;
    let absolute = path.starts_with(['/', '~']) || path.get(1..2) == Some(":");
    let path = path.trim_start_matches('/');
    if absolute {
        for (pattern, class) in ROOTED.candidates(path).chain(&ROOTED.globs) {
            if !out.intersects(*class) && fits(pattern, path) {
                out = out.join(*class);
            }
        }
    }
    let depth = 1 + path.bytes().filter(|b| *b == b'/').count();
    for (start, end) in suffixes(path).enumerate() {
        let first = end.split('/').next().unwrap_or(end);
        for (tail, class) in ANYWHERE.candidates(end) {
            if fits(tail, end) {
                out = out.join(*class);
            }
        }
        for (tail, class) in &ANYWHERE.globs {
            let takes_first = || {
                tail.first()
                    .is_some_and(|component| component.matches(first))
            };
            if tail.len() == depth - start
                && !out.intersects(*class)
                && takes_first()
                && (tail.len() == 1 || fits(tail, end))
            {
                out = out.join(*class);
            }
        }
    }
    if out.intersects(*SECRET) {
        let last = path.rsplit('/').next().unwrap_or(path);
        let listed = last == "config" && path.split('/').any(|part| part == ".ssh");
        if last.ends_with(".pub") || PUBLIC.contains(&last) || listed {
            out = out.without(*SECRET);
        }
    }
    out
}

/// Folders in the root directory whose loss affects a whole system or a user.
const ROOT_FOLDERS: [&str; 20] = [
    "bin", "boot", "dev", "etc", "home", "lib", "lib64", "mnt", "opt", "proc", "root", "run",
    "sbin", "srv", "sys", "usr", "var", "Users", "System", "Library",
];

/// Returns the classes of all paths that a path may refer to if its first component is a glob:
/// `/h*` may be `/home`.
pub(super) fn classes_below_root(path: &str) -> Classes {
    let Some((first, rest)) = path
        .strip_prefix('/')
        .map(|path| path.split_once('/').unwrap_or((path, "")))
    else {
        return Classes::NONE;
    };
    if first == "*" || !first.contains(['*', '?', '[']) {
        return Classes::NONE;
    }
    let fits = ROOT_FOLDERS
        .iter()
        .filter(|folder| glob::matches(first, folder));
    let paths = fits.filter_map(|folder| paths::normal(&format!("/{folder}/{rest}"), None));
    paths.fold(Classes::NONE, |union, path| union.join(classes(&path)))
}

/// All paths that a pattern names without wildcards: the possible meanings of a glob in a command.
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
    plain
        .map(|p| (*p).to_owned())
        .chain(hidden.map(String::from))
        .collect()
});

/// Returns the well-known path that a glob refers to, if the glob spells enough of it.
pub(super) fn resolve_glob(path: &str) -> Option<&'static str> {
    let literal_count = path.chars().filter(|c| c.is_alphanumeric()).count();
    if !path.starts_with(['/', '~'])
        || path.ends_with("/*")
        || literal_count == 0 && !path.contains("???")
    {
        return None;
    }
    let depth = path.matches('/').count();
    WELL_KNOWN
        .iter()
        .find(|candidate| {
            candidate.len() >= 6
                && candidate.matches('/').count() == depth
                && glob::matches(path, candidate)
        })
        .map(String::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_without_a_dot_or_a_space_needs_no_globs() {
        for (tail, _) in &ANYWHERE.globs {
            let tells = match tail.as_slice() {
                [Part::EndsIn(text) | Part::Glob(text)] => text.contains(['.', '?']),
                _ => true,
            };
            assert!(tells, "{tail:?}");
        }
    }

    #[test]
    fn classes_of_paths() {
        let class_of = |name: &str| Classes::from_name(name).unwrap();
        for (path, class) in [
            ("/", "root"),
            ("/*", "root"),
            ("~", "home"),
            ("/etc/passwd", "accounts"),
            ("x/.ssh/id_rsa", "credential"),
            ("server.pem", "env-file"),
            ("/home/*", "home"),
            ("Login Data", "credential"),
        ] {
            assert!(
                classes(path).intersects(class_of(class)),
                "{path} is of {class}"
            );
        }
        for (path, class) in [
            ("~/.ssh/config", "credential"),
            ("x.pub", "env-file"),
            ("src", "system"),
            ("/home/x", "root"),
        ] {
            assert!(
                !classes(path).intersects(class_of(class)),
                "{path} is not of {class}"
            );
        }
    }
}
