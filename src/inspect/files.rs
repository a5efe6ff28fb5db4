//! Files that a session's calls have written: their contents are judged when a later call runs one.
//!
//! Contents are stored, not verdicts: whether a text is a script, and in which language, is only
//! known when it is run, and the rules may have changed by then. Most files that an agent writes
//! are never run, and each of those costs no more than a copy.

use std::sync::Arc;

use crate::detect::command::{Content, Script, WrittenFiles};

use super::arguments::{Units, Written};

/// Maximum number of files stored for a session, and of their bytes; the oldest is removed first.
const FILES: usize = 32;
const TOTAL_BYTES: usize = 512 << 10;
/// Maximum number of files recorded from one message, and maximum length of a path, in bytes.
const MAX_RECORDED: usize = 16;
const PATH_BYTES: usize = 1024;

/// Files that earlier calls wrote, newest last, and the folder in which they left their shell.
/// Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Files {
    files: Vec<Arc<File>>,
    folder: Option<Box<str>>,
}

/// A change that a call makes to the server's file system or shell.
#[derive(Clone, Debug)]
pub enum FileEffect {
    /// A file that the call writes.
    File(File),
    /// The folder that the call changes to.
    Folder(Box<str>),
}

/// A file that a call writes.
#[derive(Clone, Debug)]
pub struct File {
    /// The folders and the name of the file.
    parts: Vec<Box<str>>,
    /// Whether the path begins at the root.
    rooted: bool,
    content: Content,
    /// Whether the call adds to the existing content.
    appends: bool,
}

impl Files {
    /// Returns whether nothing is recorded.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty() && self.folder.is_none()
    }

    /// Adds a file, replacing an earlier one with the same path, or changes to a folder.
    pub fn add(&mut self, effect: FileEffect) {
        let mut file = match effect {
            FileEffect::File(file) => file,
            FileEffect::Folder(folder) => {
                self.folder = Some(folder);
                return;
            }
        };
        let index = self
            .files
            .iter()
            .position(|old| old.rooted == file.rooted && old.parts == file.parts);
        if let Some(old) = index.map(|at| self.files.remove(at))
            && file.appends
        {
            file.content = old.content.concat(&file.content);
        }
        if file.content.is_unknown() {
            return;
        }
        self.files.push(Arc::new(file));
        let total_bytes = |files: &[Arc<File>]| {
            files
                .iter()
                .map(|file| file.content.stored_bytes())
                .sum::<usize>()
        };
        while self.files.len() > FILES || total_bytes(&self.files) > TOTAL_BYTES {
            self.files.remove(0);
        }
    }
}

impl WrittenFiles for Files {
    /// Returns the content of the newest file whose path may be this one: if either path is
    /// relative, it can be relative to any folder.
    fn content(&self, path: &str) -> Option<&Content> {
        if self.files.is_empty() || path.len() > PATH_BYTES {
            return None;
        }
        let (parts, rooted) = parts(path);
        let fits = |file: &&Arc<File>| match (file.rooted, rooted) {
            (true, true) => file.parts == parts,
            (true, false) => file.parts.ends_with(&parts),
            (false, true) => parts.ends_with(&file.parts),
            (false, false) => file.parts.ends_with(&parts) || parts.ends_with(&file.parts),
        };
        if parts.is_empty() {
            None
        } else {
            self.files.iter().rev().find(fits).map(|file| &file.content)
        }
    }

    fn folder(&self) -> Option<&str> {
        self.folder.as_deref()
    }
}

impl FileEffect {
    fn new(path: &str, content: Content, appends: bool) -> Option<Self> {
        let (parts, rooted) = parts(path);
        (path.len() <= PATH_BYTES && !parts.is_empty()).then_some(Self::File(File {
            parts,
            rooted,
            content,
            appends,
        }))
    }
}

/// Records the files that a call writes according to its own arguments.
pub(super) fn record_written_files(
    tool: &str,
    units: &Units<'_>,
    written_texts: &[Written<'_>],
    effects: &mut Vec<FileEffect>,
) {
    for written in written_texts {
        effects.extend(FileEffect::new(
            written.path,
            Content::new(written.text),
            written.appends,
        ));
        effects.truncate(MAX_RECORDED);
    }
    for path in units.downloaded_files(tool) {
        effects.extend(FileEffect::new(&path, Content::downloaded(), false));
        effects.truncate(MAX_RECORDED);
    }
}

/// Records the files that a command writes and, if a shell `goes_on` from call to call, the folder
/// that it ends in.
pub(super) fn record_script_effects(
    script: &Script<'_>,
    goes_on: bool,
    effects: &mut Vec<FileEffect>,
) {
    for file in script.files() {
        effects.extend(FileEffect::new(
            &file.path,
            file.content.clone(),
            file.appends,
        ));
        effects.truncate(MAX_RECORDED);
    }
    let folder = script
        .folder()
        .filter(|folder| goes_on && folder.len() <= PATH_BYTES);
    effects.extend(folder.map(|folder| FileEffect::Folder(folder.into())));
}

/// Splits a path into its parts, and returns whether it begins at the root. Home folders and
/// variables may be anywhere.
fn parts(path: &str) -> (Vec<Box<str>>, bool) {
    let path = path.trim().strip_prefix("file://").unwrap_or(path.trim());
    let rooted = path.starts_with('/') || matches!(path.get(1..3), Some(":\\" | ":/"));
    let mut parts: Vec<Box<str>> = Vec::new();
    for part in path.split(['/', '\\']) {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part if parts.is_empty() && part.starts_with(['~', '$', '%']) => {}
            part => parts.push(part.into()),
        }
    }
    (parts, rooted)
}

#[cfg(test)]
mod tests;
