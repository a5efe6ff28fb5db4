//! Loading of a config file with an edit that is not written yet.

use std::io;
use std::path::Path;

use super::{Environment, LoadScope, Machine, check_length, load, load_in};
use crate::config::Config;
use crate::document::Fault;

/// Reads a config file as if its content were `text`: like [`load`] if the current file is valid
/// for that, otherwise like [`load_policies`](super::load_policies).
///
/// # Errors
/// See [`load`].
pub fn load_edited(path: &Path, text: &str) -> Result<Config, Vec<Fault>> {
    let scope = if load(path).is_ok() {
        LoadScope::Upstreams
    } else {
        LoadScope::Policies
    };
    load_in(path, &EditedFile { path, text }, scope)
}

/// This machine, except that the config file has another content.
struct EditedFile<'e> {
    path: &'e Path,
    text: &'e str,
}

impl Environment for EditedFile<'_> {
    fn read(&self, path: &Path, most: u64) -> io::Result<String> {
        if path == self.path {
            check_length(self.text.to_owned(), most)
        } else {
            Machine.read(path, most)
        }
    }
}
