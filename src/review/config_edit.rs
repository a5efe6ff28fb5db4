//! An edit of a config file that has been validated but not yet written.

use std::io;
use std::path::{Path, PathBuf};

use crate::config::{self, Config};
use crate::document::{Fault, replace};
use crate::inspect::Policy;
use crate::rules::Library;

/// An edit of a config file that has been validated but not yet written.
#[derive(Debug)]
pub struct ConfigEdit {
    path: PathBuf,
    before: String,
    after: String,
}

impl ConfigEdit {
    /// Reads the file and edits its text.
    ///
    /// # Errors
    /// The file cannot be read, or `edit` returns why it cannot be edited.
    pub(super) fn new(
        path: &Path,
        edit: impl FnOnce(&str) -> Result<String, String>,
    ) -> Result<Self, Vec<Fault>> {
        let before = std::fs::read_to_string(path).map_err(|error| {
            let hint = "name another file with `--config FILE`";
            vec![Fault::of_file(
                path.display().to_string(),
                format!("cannot be read: {error}"),
                Some(hint),
            )]
        })?;
        let after = edit(&before)
            .map_err(|why| vec![Fault::of_file(path.display().to_string(), why, None)])?;
        Ok(Self {
            path: path.to_owned(),
            before,
            after,
        })
    }

    /// Loads the config as edited.
    ///
    /// # Errors
    /// The edited file does not load.
    pub(super) fn load(&self) -> Result<Config, Vec<Fault>> {
        config::load_edited(&self.path, &self.after)
    }

    /// Compiles a policy of the edited config the way the gate does.
    ///
    /// # Errors
    /// The policy does not exist, or the gate would reject it.
    pub(super) fn policy(&self, config: &Config, name: &str) -> Result<Policy, Vec<Fault>> {
        let rules = config
            .policies
            .get(name)
            .ok_or_else(|| self.fault(format!("there is no `[policy.{name}]`"), None))?;
        let library = Library::load(rules.builtin, &rules.rules)?;
        Policy::new(name, rules, &library)
    }

    /// Returns a fault for this file.
    pub(super) fn fault(&self, message: String, hint: Option<&str>) -> Vec<Fault> {
        vec![Fault::of_file(
            self.path.display().to_string(),
            message,
            hint,
        )]
    }

    /// Returns the text added at the end of the file; empty if the edit is elsewhere.
    pub fn added_text(&self) -> &str {
        self.after
            .strip_prefix(self.before.as_str())
            .unwrap_or_default()
            .trim_start()
    }

    /// Writes the file, provided that it still contains the text that was read. Writes nothing if
    /// the edit changes nothing.
    ///
    /// # Errors
    /// The file cannot be written, or has changed since it was read.
    pub fn write(&self) -> io::Result<()> {
        match self.before == self.after {
            true => Ok(()),
            false => replace(&self.path, &self.before, &self.after),
        }
    }
}
