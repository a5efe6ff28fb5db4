//! Loading of single values: names, paths, and references to secrets.

use std::cell::RefCell;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::config::is_name;
use crate::document::{Fault, Located, Place, Table};

use super::Environment;

/// Maximum length of a secret, in bytes.
const SECRET_BYTES: u64 = 64 << 10;

/// The context in which values are read.
pub(super) struct Reader<'w> {
    config: PathBuf,
    folder: PathBuf,
    home: Option<PathBuf>,
    environment: &'w dyn Environment,
    /// Files that values were read from.
    read_files: RefCell<Vec<PathBuf>>,
    /// Whether values that are missing for one upstream are faults of that upstream only.
    isolates_upstreams: bool,
    /// What is missing for the upstream that is currently read.
    missing: RefCell<Option<Vec<Fault>>>,
}

impl<'w> Reader<'w> {
    /// Returns a reader for the config file at `path`.
    pub(super) fn new(path: &Path, environment: &'w dyn Environment) -> Self {
        let folder = path.parent().map(Path::to_path_buf).unwrap_or_default();
        let home = environment.variable("HOME").map(PathBuf::from);
        Self {
            config: path.to_owned(),
            folder,
            home,
            environment,
            read_files: RefCell::default(),
            isolates_upstreams: false,
            missing: RefCell::default(),
        }
    }

    /// Returns the same reader for a gate that runs without those upstreams for which something is
    /// missing.
    pub(super) fn isolating_upstreams(self) -> Self {
        Self {
            isolates_upstreams: true,
            ..self
        }
    }

    /// Reports whether missing values are faults of their upstream only.
    pub(super) fn isolates_upstreams(&self) -> bool {
        self.isolates_upstreams
    }

    /// Reads an upstream, or another optional part of the config, and returns it with the faults
    /// about missing values.
    pub(super) fn collect_missing<T>(&self, read: impl FnOnce() -> T) -> (T, Vec<Fault>) {
        *self.missing.borrow_mut() = self.isolates_upstreams.then(Vec::new);
        let value = read();
        (value, self.missing.borrow_mut().take().unwrap_or_default())
    }

    /// Records that something that the file references is missing.
    fn missing(&self, table: &Table<'_>, place: &Place, message: String, hint: Option<&str>) {
        match self.missing.borrow_mut().as_mut() {
            Some(missing) => missing.push(place.fault(message, hint)),
            None => table.fault_at(place, message, hint),
        }
    }

    /// Records that the file of a section cannot be read.
    pub(super) fn unreadable(&self, root: &Table<'_>, section: &str, message: String) {
        match self.missing.borrow_mut().as_mut() {
            Some(missing) => missing.push(root.place().fault(message, None)),
            None => root.fault_at_key(section, message, None),
        }
    }

    /// Resolves a path: `~` is the home folder, and relative paths start at the config file's
    /// folder.
    pub(super) fn path(&self, written: &str) -> PathBuf {
        if let (Some(rest), Some(home)) = (written.strip_prefix('~'), &self.home)
            && (rest.is_empty() || rest.starts_with('/'))
        {
            return home.join(rest.trim_start_matches('/'));
        }
        // `./` is removed so that messages show the path as a person would write it.
        self.folder
            .join(written.strip_prefix("./").unwrap_or(written))
    }

    /// Returns an environment variable, if it is set.
    pub(super) fn variable(&self, name: &str) -> Option<String> {
        self.environment.variable(name)
    }

    /// Returns the text of the config file.
    pub(super) fn config(&self, path: &Path, most: u64) -> io::Result<String> {
        self.environment.read(path, most)
    }

    /// Returns the text of a file of at most `most` bytes.
    pub(super) fn read(&self, path: &Path, most: u64) -> io::Result<String> {
        self.read_files.borrow_mut().push(path.to_path_buf());
        self.environment.read(path, most)
    }

    /// Records a file that is read elsewhere: a change to it counts as a change of the config.
    pub(super) fn watch(&self, path: &Path) {
        self.read_files.borrow_mut().push(path.to_path_buf());
    }

    pub(super) fn config_file(&self) -> PathBuf {
        self.config.clone()
    }

    /// Returns every file that a value was read from.
    pub(super) fn files(&self) -> Vec<PathBuf> {
        self.read_files.borrow().clone()
    }

    /// Returns what a program prints within this time.
    pub(super) fn run(&self, command: &[String], timeout: Duration) -> io::Result<String> {
        self.environment.run(command, timeout)
    }

    /// Reads a path, if set; whether it exists is not checked.
    pub(super) fn any_path(&self, table: &Table<'_>, key: &str) -> Option<PathBuf> {
        let written = table.string(key)?;
        if written.value.is_empty() {
            table.fault_at(&written.place, format!("`{key}` is empty"), None);
        }
        Some(self.path(&written.value))
    }

    /// Reads the path of a file that must exist.
    pub(super) fn file(&self, table: &Table<'_>, key: &str) -> Option<PathBuf> {
        let written = table.string(key)?;
        let path = self.path(&written.value);
        if !self.environment.is_file(&path) {
            let message = format!("`{key}`: there is no file `{}`", path.display());
            let hint = "relative paths start at the config file's folder";
            self.missing(table, &written.place, message, Some(hint));
        }
        Some(path)
    }

    /// Reads the path of a folder that must exist.
    pub(super) fn folder(
        &self,
        table: &Table<'_>,
        key: &str,
        written: &Located<String>,
    ) -> PathBuf {
        let path = self.path(&written.value);
        if !self.environment.is_folder(&path) {
            let message = format!("`{key}`: there is no folder `{}`", path.display());
            let hint = "relative paths start at the config file's folder";
            self.missing(table, &written.place, message, Some(hint));
        }
        path
    }

    /// Reads a secret, if the key is set: `{ env = "NAME" }` or `{ file = "PATH" }`, never the
    /// secret itself.
    pub(super) fn secret(&self, table: &Table<'_>, key: &str) -> Option<String> {
        if !table.has(key) {
            return None;
        }
        if !table.is_table(key) {
            table.mark_known(key);
            let message = format!("`{key}` is a secret and must not be in the config file");
            table.fault_at_key(key, message, Some(&secret_hint(key)));
            return None;
        }
        let place = table.table(key)?;
        let env = place.string("env");
        let file = place.string("file");
        place.finish();
        match (env, file) {
            (Some(name), None) => match self.environment.variable(&name.value) {
                Some(value) => self.check_secret(&place, &name, value),
                None => {
                    let message = format!("the environment variable `{}` is not set", name.value);
                    let hint = "set it before lychgate starts, or use `{ file = \"PATH\" }`";
                    self.missing(&place, &name.place, message, Some(hint));
                    None
                }
            },
            (None, Some(name)) => {
                let path = self.path(&name.value);
                match self.read(&path, SECRET_BYTES) {
                    Ok(value) => self.check_secret(
                        &place,
                        &name,
                        value.trim_end_matches(['\r', '\n']).to_owned(),
                    ),
                    Err(error) => {
                        let message = format!("`{}` cannot be read: {error}", path.display());
                        let hint = "create it, or make it readable for the gate's user";
                        self.missing(&place, &name.place, message, Some(hint));
                        None
                    }
                }
            }
            _ => {
                let message = format!("`{key}` needs either `env` or `file`");
                place.fault(message, Some(&secret_hint(key)));
                None
            }
        }
    }

    /// Checks that a secret is usable.
    fn check_secret(
        &self,
        table: &Table<'_>,
        name: &Located<String>,
        value: String,
    ) -> Option<String> {
        if value.is_empty() {
            let message = format!("the secret in `{}` is empty", name.value);
            self.missing(table, &name.place, message, None);
            return None;
        }
        if value.chars().any(char::is_control) {
            let message = format!("the secret in `{}` holds a control character", name.value);
            let hint = "use a single line without tabs";
            self.missing(table, &name.place, message, Some(hint));
            return None;
        }
        Some(value)
    }
}

fn secret_hint(key: &str) -> String {
    format!("write `{key} = {{ env = \"NAME\" }}` or `{key} = {{ file = \"PATH\" }}`")
}

/// Records a fault if a name cannot be part of a path and a metric label: 1 to 64 of `a-z`, `0-9`,
/// `_` and `-`.
pub(super) fn check_name(table: &Table<'_>, name: &Located<String>, what: &str) {
    if !is_name(&name.value) {
        let hint = "a name has 1 to 64 of the characters `a` to `z`, `0` to `9`, `_` and `-`";
        let message = format!("invalid {what} name `{}`", name.value.escape_debug());
        table.fault_at(&name.place, message, Some(hint));
    }
}
