//! Folders that a call's paths must stay in, and what is known about the file system they are on.

use std::collections::HashMap;

use super::walk::{absolute, parts, walk};

/// Folders that paths must stay in. If there are none, no path is outside.
#[derive(Clone, Debug, Default)]
pub struct Roots {
    roots: Vec<Root>,
    home: Option<Vec<String>>,
    base: Option<Vec<String>>,
    links: Links,
}

/// A folder, as its components from the root of the file system.
#[derive(Clone, Debug)]
struct Root {
    /// As written in the policy.
    literal: Vec<String>,
    /// With its links followed.
    real: Vec<String>,
}

/// What is known about symbolic links.
#[derive(Clone, Debug, Default)]
pub enum Links {
    /// Nothing: the paths are on another machine.
    #[default]
    Unknown,
    /// Exactly these: from the link's absolute path to its target as written.
    Map(HashMap<String, String>),
    /// Read from the file system of this machine.
    Machine,
}

impl Roots {
    /// Creates roots at these absolute folders (`/srv/data`, `C:\work`).
    pub fn new(folders: impl IntoIterator<Item = String>, links: Links) -> Self {
        let links = match links {
            Links::Map(links) => Links::Map(
                links
                    .into_iter()
                    .map(|(link, target)| (absolute(&components(&link)), target))
                    .collect(),
            ),
            other => other,
        };
        let root = |folder: String| {
            let literal = components(&folder);
            let real = walk(&[], &literal.join("/"), false, &links).components;
            Root { literal, real }
        };
        let roots = folders.into_iter().map(root).collect();
        Self {
            roots,
            home: None,
            base: None,
            links,
        }
    }

    /// Sets the home folder of the user that opens the paths, to which `~` expands.
    pub fn with_home(self, home: Option<String>) -> Self {
        let Some(home) = home.map(|home| components(&home)) else {
            return self;
        };
        let expand_home = |root: Root| match root.literal.split_first() {
            Some((first, rest)) if first == "~" => {
                let literal = [home.as_slice(), rest].concat();
                Root {
                    real: walk(&[], &literal.join("/"), false, &self.links).components,
                    literal,
                }
            }
            _ => root,
        };
        let roots = self.roots.into_iter().map(expand_home).collect();
        Self {
            roots,
            home: Some(home),
            base: self.base,
            links: self.links,
        }
    }

    /// Sets the folder that relative paths start at. Without it they start at each root.
    pub fn with_base(self, base: Option<String>) -> Self {
        Self {
            base: base.map(|base| components(&base)),
            ..self
        }
    }

    /// Reports whether there are any roots.
    pub fn is_set(&self) -> bool {
        !self.roots.is_empty()
    }

    /// Reports whether links are resolved: not if the paths are on another machine.
    pub fn resolves_links(&self) -> bool {
        !matches!(self.links, Links::Unknown)
    }

    /// Returns what is known about links.
    pub(super) fn links(&self) -> &Links {
        &self.links
    }

    /// Returns the home folder, if known.
    pub(super) fn home(&self) -> Option<&[String]> {
        self.home.as_deref()
    }

    /// Returns the folders where relative paths may start.
    pub(super) fn bases(&self) -> impl Iterator<Item = &[String]> {
        let roots = self
            .roots
            .iter()
            .filter(|_| self.base.is_none())
            .map(|root| root.literal.as_slice());
        self.base.as_deref().into_iter().chain(roots)
    }

    /// Reports whether `path`, walked from `base`, stays in the roots: as written, and with links
    /// followed.
    pub(super) fn contains(&self, base: &[String], path: &str, windows: bool) -> bool {
        let by_words = walk(base, path, windows, &Links::Unknown);
        if by_words.lost
            || !self.roots.iter().any(|root| {
                is_below(&by_words.components, &root.literal)
                    || is_below(&by_words.components, &root.real)
            })
        {
            return false;
        }
        if !self.resolves_links() || base.first().is_some_and(|first| first.ends_with(':')) {
            return true;
        }
        let full_path: Vec<&str> = base
            .iter()
            .map(String::as_str)
            .chain(parts(path, windows))
            .filter(|part| !part.is_empty())
            .collect();
        // The links of a root itself are already followed.
        let below = self.roots.iter().find_map(|root| {
            let rest = full_path.get(root.literal.len()..)?;
            full_path
                .iter()
                .zip(&root.literal)
                .all(|(a, b)| a == b)
                .then(|| walk(&root.real, &rest.join("/"), false, &self.links))
        });
        let walked = below.unwrap_or_else(|| walk(&[], &full_path.join("/"), false, &self.links));
        !walked.lost
            && self
                .roots
                .iter()
                .any(|root| is_below(&walked.components, &root.real))
    }
}

/// Reports whether `at` is `root` or below it. Drives are case-insensitive.
fn is_below(at: &[String], root: &[String]) -> bool {
    let drive = root.first().is_some_and(|first| first.ends_with(':'));
    at.len() >= root.len()
        && at
            .iter()
            .zip(root)
            .all(|(a, b)| a == b || drive && a.eq_ignore_ascii_case(b))
}

/// Returns the components of an absolute folder.
fn components(folder: &str) -> Vec<String> {
    let drive =
        folder.get(1..2) == Some(":") && folder.starts_with(|c: char| c.is_ascii_alphabetic());
    let windows = drive || folder.starts_with("\\\\");
    let mut out: Vec<String> = parts(folder, windows)
        .filter(|part| !part.is_empty() && *part != ".")
        .map(str::to_owned)
        .collect();
    if let Some(first) = out.first_mut().filter(|_| drive) {
        *first = first.to_ascii_lowercase();
    }
    out
}
