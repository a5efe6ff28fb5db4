//! The gate's own files, wherever its config places them: a rule protects them by their role, not
//! by their names.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::detect::command::paths::normal;

enum_with_names! {
    /// A category of the gate's own files. Named as in rule files.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(super) enum FileCategory {
        /// Its inputs: config, rules, pins, agents and audit log. Reading them does no harm.
        Config = "config",
        /// Its state: keys, tokens, messages that were withheld.
        State = "state",
    }
}

/// The gate's own files and folders, in the form in which rules of the kind `path` compare them.
#[derive(Clone, Debug, Default)]
pub struct GateFiles {
    config: Arc<[String]>,
    state: Arc<[String]>,
}

impl GateFiles {
    /// Creates the set from the files and folders that hold the gate's inputs (`config`) and its
    /// state (`state`).
    pub fn new(config: &[PathBuf], state: &[PathBuf]) -> Self {
        let home = std::env::var("HOME").ok();
        let all_forms = |paths: &[PathBuf]| {
            paths
                .iter()
                .flat_map(|path| forms(path, home.as_deref()))
                .collect()
        };
        Self {
            config: all_forms(config),
            state: all_forms(state),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.config.is_empty() && self.state.is_empty()
    }

    /// Reports whether a path is one of them or below one. `form` is the result of [`normal`], in
    /// lower case.
    pub(super) fn contains(&self, part: FileCategory, form: &str) -> bool {
        let files = match part {
            FileCategory::Config => &self.config,
            FileCategory::State => &self.state,
        };
        files.iter().any(|file| {
            form.strip_prefix(file.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
    }
}

/// Returns the forms of a path: as written and with links followed, each also with the home folder
/// as `~`.
fn forms(path: &Path, home: Option<&str>) -> Vec<String> {
    let Ok(path) = std::path::absolute(path) else {
        return Vec::new();
    };
    let mut out = Vec::new();
    for path in [resolve_links(&path), path] {
        let path = path.to_string_lossy();
        let at_home = home
            .and_then(|home| path.strip_prefix(home))
            .filter(|rest| rest.starts_with('/'));
        for text in [
            Some(path.clone().into_owned()),
            at_home.map(|rest| format!("~{rest}")),
        ]
        .into_iter()
        .flatten()
        {
            let form = normal(&text, None).unwrap_or(text).to_lowercase();
            // The root is not one of the gate's files, and everything is below it.
            if form.len() > 1 && !out.contains(&form) {
                out.push(form);
            }
        }
    }
    out
}

/// Resolves the links of a path, as far as it exists.
fn resolve_links(path: &Path) -> PathBuf {
    for ancestor in path.ancestors() {
        if let Ok(real) = ancestor.canonicalize() {
            let rest = path.strip_prefix(ancestor).unwrap_or(Path::new(""));
            return if rest.as_os_str().is_empty() {
                real
            } else {
                real.join(rest)
            };
        }
    }
    path.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_known_by_every_way_to_write_them() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        std::fs::create_dir(root.join("real")).unwrap();
        std::os::unix::fs::symlink(root.join("real"), root.join("link")).unwrap();
        let files = GateFiles::new(
            &[root.join("link/Gate.toml")],
            &["/root/state".into(), "/".into()],
        );
        let at = |name: &str| {
            normal(&root.join(name).display().to_string(), None)
                .unwrap()
                .to_lowercase()
        };
        for (part, form, is_own) in [
            (FileCategory::Config, at("link/gate.toml"), true),
            (FileCategory::Config, at("real/gate.toml"), true),
            (FileCategory::Config, at("real/gate.toml.bak"), false),
            (FileCategory::State, at("real/gate.toml"), false),
            (FileCategory::State, "~/state/keys/a".to_owned(), true),
            (FileCategory::State, "~/states".to_owned(), false),
            (FileCategory::State, "/etc/passwd".to_owned(), false),
        ] {
            assert_eq!(files.contains(part, &form), is_own, "{part:?} {form}");
        }
    }
}
