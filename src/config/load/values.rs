//! Single values: names, paths, and secrets that stand somewhere else.

use std::cell::RefCell;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::config::is_name;
use crate::document::{Located, Table};

use super::Surroundings;

/// Longest secret, in bytes.
const SECRET_BYTES: u64 = 64 << 10;

/// What is needed to make sense of a value.
pub(super) struct Reader<'w> {
    folder: PathBuf,
    home: Option<PathBuf>,
    world: &'w dyn Surroundings,
    /// Files that values were read from.
    read: RefCell<Vec<PathBuf>>,
}

impl<'w> Reader<'w> {
    /// A reader for the config file at `path`.
    pub(super) fn new(path: &Path, world: &'w dyn Surroundings) -> Self {
        let folder = path.parent().map(Path::to_path_buf).unwrap_or_default();
        Self { folder, home: world.variable("HOME").map(PathBuf::from), world, read: RefCell::default() }
    }

    /// A path as meant: `~` is the home folder, and what is relative starts at the config file's folder.
    pub(super) fn path(&self, written: &str) -> PathBuf {
        if let (Some(rest), Some(home)) = (written.strip_prefix('~'), &self.home)
            && (rest.is_empty() || rest.starts_with('/'))
        {
            return home.join(rest.trim_start_matches('/'));
        }
        // `./` is dropped so that messages name the path as a person would.
        self.folder.join(written.strip_prefix("./").unwrap_or(written))
    }

    /// An environment variable, if it is set.
    pub(super) fn variable(&self, name: &str) -> Option<String> {
        self.world.variable(name)
    }

    /// A file's text, up to a number of bytes.
    pub(super) fn read(&self, path: &Path, most: u64) -> io::Result<String> {
        self.read.borrow_mut().push(path.to_path_buf());
        self.world.read(path, most)
    }

    /// Notes a file that is read elsewhere: a change of it is a change of the config.
    pub(super) fn watch(&self, path: &Path) {
        self.read.borrow_mut().push(path.to_path_buf());
    }

    /// Every file that a value was read from.
    pub(super) fn files(&self) -> Vec<PathBuf> {
        self.read.borrow().clone()
    }

    /// What a program prints within this time.
    pub(super) fn run(&self, command: &[String], within: Duration) -> io::Result<String> {
        self.world.run(command, within)
    }

    /// A path, if there, whatever it leads to.
    pub(super) fn any_path(&self, table: &Table<'_>, key: &str) -> Option<PathBuf> {
        let written = table.string(key)?;
        if written.value.is_empty() {
            table.fault_at(&written.place, format!("`{key}` is empty"), None);
        }
        Some(self.path(&written.value))
    }

    /// The path of a file that must be there.
    pub(super) fn file(&self, table: &Table<'_>, key: &str) -> Option<PathBuf> {
        let written = table.string(key)?;
        let path = self.path(&written.value);
        if !self.world.is_file(&path) {
            let message = format!("`{key}`: there is no file `{}`", path.display());
            table.fault_at(&written.place, message, Some("a relative path starts at the config file's folder"));
        }
        Some(path)
    }

    /// The path of a folder that must be there.
    pub(super) fn folder(&self, table: &Table<'_>, key: &str, written: &Located<String>) -> PathBuf {
        let path = self.path(&written.value);
        if !self.world.is_folder(&path) {
            let message = format!("`{key}`: there is no folder `{}`", path.display());
            table.fault_at(&written.place, message, Some("a relative path starts at the config file's folder"));
        }
        path
    }

    /// A secret, if the key is there: `{ env = "NAME" }` or `{ file = "PATH" }`, never the secret itself.
    pub(super) fn secret(&self, table: &Table<'_>, key: &str) -> Option<String> {
        if !table.has(key) {
            return None;
        }
        if !table.is_table(key) {
            table.know(key);
            table.fault_of(key, format!("`{key}` is a secret and must not stand in the file"), Some(&secret_hint(key)));
            return None;
        }
        let place = table.table(key)?;
        let (env, file) = (place.string("env"), place.string("file"));
        place.finish();
        match (env, file) {
            (Some(name), None) => match self.world.variable(&name.value) {
                Some(value) => checked(&place, &name, value),
                None => {
                    let message = format!("the environment variable `{}` is not set", name.value);
                    place.fault_at(&name.place, message, Some("set it before lychgate starts, or use `{ file = \"PATH\" }`"));
                    None
                }
            },
            (None, Some(name)) => {
                let path = self.path(&name.value);
                match self.read(&path, SECRET_BYTES) {
                    Ok(value) => checked(&place, &name, value.trim_end_matches(['\r', '\n']).to_owned()),
                    Err(error) => {
                        place.fault_at(&name.place, format!("`{}` cannot be read: {error}", path.display()), None);
                        None
                    }
                }
            }
            _ => {
                place.fault(format!("`{key}` says `env` or `file`, one of the two"), Some(&secret_hint(key)));
                None
            }
        }
    }
}

fn secret_hint(key: &str) -> String {
    format!("write `{key} = {{ env = \"NAME\" }}` or `{key} = {{ file = \"PATH\" }}`")
}

fn checked(table: &Table<'_>, name: &Located<String>, value: String) -> Option<String> {
    if value.is_empty() {
        table.fault_at(&name.place, format!("the secret in `{}` is empty", name.value), None);
        return None;
    }
    if value.chars().any(char::is_control) {
        let hint = "it is one line without line breaks or tabs";
        table.fault_at(&name.place, format!("the secret in `{}` holds a control character", name.value), Some(hint));
        return None;
    }
    Some(value)
}

/// Notes a fault if a name cannot be part of a path and a metric label: 1 to 64 of `a-z`, `0-9`, `_` and `-`.
pub(super) fn check_name(table: &Table<'_>, name: &Located<String>, what: &str) {
    if !is_name(&name.value) {
        let hint = "a name is 1 to 64 of `a` to `z`, `0` to `9`, `_` and `-`";
        table.fault_at(&name.place, format!("bad {what} name `{}`", name.value.escape_debug()), Some(hint));
    }
}
