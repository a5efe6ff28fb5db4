//! Globs over whole paths, as rules write them.

use crate::detect::command::glob;

/// A glob over a normalized path in lower case: `**` at its start is any folder, at its end
/// anything below (or the folder itself); `*` and `?` stay within a component.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Glob {
    anywhere: bool,
    below: bool,
    rooted: bool,
    parts: Vec<String>,
    /// The longest part without wildcards: a path that does not contain it cannot match.
    literal: String,
}

impl Glob {
    /// Parses a glob; `None` unless it starts with `/`, `~` or `**/`.
    pub(super) fn read(text: &str) -> Option<Self> {
        let lower = text.to_lowercase();
        let anywhere = lower.starts_with("**/");
        let below = lower.ends_with("/**");
        let rooted = lower.starts_with('/');
        let middle = lower.strip_prefix("**/").unwrap_or(&lower);
        let middle = middle.strip_suffix("/**").unwrap_or(middle);
        let parts: Vec<String> = middle
            .split('/')
            .filter(|part| !part.is_empty())
            .map(str::to_owned)
            .collect();
        let is_valid = (anywhere || rooted || lower.starts_with('~'))
            && !parts.is_empty()
            && !parts.iter().any(|part| part == "**");
        let plain = parts.iter().filter(|part| !part.contains(['*', '?']));
        let literal = plain
            .max_by_key(|part| part.len())
            .cloned()
            .unwrap_or_default();
        is_valid.then_some(Self {
            anywhere,
            below,
            rooted,
            parts,
            literal,
        })
    }

    /// Reports whether a path matches.
    pub(super) fn fits(&self, path: &str) -> bool {
        let may_end = self.below || path.ends_with(&*self.literal);
        if !self.anywhere && path.starts_with('/') != self.rooted
            || !may_end && self.parts.len() == 1
            || !path.contains(&*self.literal)
        {
            return false;
        }
        let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        self.fits_parts(&parts)
    }

    fn fits_parts(&self, path: &[&str]) -> bool {
        let last = path.len().saturating_sub(self.parts.len());
        if path.len() < self.parts.len() {
            return false;
        }
        let starts = if !self.anywhere {
            0..=0
        } else if self.below {
            0..=last.min(64)
        } else {
            last..=last
        };
        starts.into_iter().any(|start| {
            let rest = path.get(start..).unwrap_or_default();
            (self.below || rest.len() == self.parts.len())
                && self
                    .parts
                    .iter()
                    .zip(rest)
                    .all(|(pattern, part)| part_matches(pattern, part))
        })
    }
}

fn part_matches(pattern: &str, part: &str) -> bool {
    if pattern.contains(['*', '?']) {
        glob::matches(pattern, part)
    } else {
        pattern == part
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs() {
        for (glob, path, fits) in [
            ("**/.env", ".env", true),
            ("**/.env", "/a/b/.env", true),
            ("**/.env", "/a/.env/b", false),
            ("**/.git/**", ".git/hooks/x", true),
            ("**/.git/**", "/a/.git", true),
            ("**/.git/**", "/a/x.git/b", false),
            ("**/a/b/**", "/x/a/b/c/d", true),
            ("**/*.key", "a/b.key", true),
            ("~/.x/*", "~/.x/y", true),
            ("~/.x/*", "/.x/y", false),
            (
                "/run/user/*/podman/**",
                "/run/user/1000/podman/p.sock",
                true,
            ),
            ("/run/**", "/run", true),
            ("**/login?data", "~/a/login data", true),
        ] {
            assert_eq!(Glob::read(glob).unwrap().fits(path), fits, "{glob} {path}");
        }
        for bad in ["", "x", "/", "/a/**/b", "**/"] {
            assert_eq!(Glob::read(bad), None, "{bad}");
        }
    }
}
