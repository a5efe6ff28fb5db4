//! Files that a session's calls have written: what is in them is judged when a later call runs one.
//!
//! Contents are kept, not verdicts: whether a text is a script, and in which language, only shows when it is run, and
//! rules may have changed by then. Most files that an agent writes are never run, and none of those costs more than a copy.

use std::sync::Arc;

use crate::detect::command::{Content, Script, Written};

use super::arguments::Units;

/// Most files kept of a session, and bytes of them; the oldest is forgotten first.
const FILES: usize = 32;
const KEPT_BYTES: usize = 512 << 10;
/// Most files learnt from one message, and the longest name, in bytes.
const LEARNT: usize = 16;
const PATH_BYTES: usize = 1024;

/// Files that earlier calls wrote, the newest last, and the folder that they left their shell in. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Files {
    files: Vec<Arc<File>>,
    folder: Option<Box<str>>,
}

/// What a call leaves behind in the server's file system or shell.
#[derive(Clone, Debug)]
pub enum Wrote {
    /// A file that it writes.
    File(File),
    /// The folder that it goes to.
    Folder(Box<str>),
}

/// A file that a call writes.
#[derive(Clone, Debug)]
pub struct File {
    /// Its folders and its name.
    parts: Vec<Box<str>>,
    /// Its path begins at the root.
    rooted: bool,
    content: Content,
    /// It adds to what is there.
    adds: bool,
}

impl Files {
    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty() && self.folder.is_none()
    }

    /// Adds a file, in place of what was known of the same path, or goes to a folder.
    pub fn add(&mut self, wrote: Wrote) {
        let mut file = match wrote {
            Wrote::File(file) => file,
            Wrote::Folder(folder) => {
                self.folder = Some(folder);
                return;
            }
        };
        let same = self
            .files
            .iter()
            .position(|old| old.rooted == file.rooted && old.parts == file.parts);
        if let Some(old) = same.map(|at| self.files.remove(at))
            && file.adds
        {
            file.content = old.content.then(&file.content);
        }
        if file.content.is_unknown() {
            return;
        }
        self.files.push(Arc::new(file));
        let kept = |files: &[Arc<File>]| {
            files
                .iter()
                .map(|file| file.content.kept_bytes())
                .sum::<usize>()
        };
        while self.files.len() > FILES || kept(&self.files) > KEPT_BYTES {
            self.files.remove(0);
        }
    }
}

impl Written for Files {
    /// That of the newest file whose path may be this one: where one of them is relative, to no matter which folder.
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

impl Wrote {
    fn new(path: &str, content: Content, adds: bool) -> Option<Self> {
        let (parts, rooted) = parts(path);
        (path.len() <= PATH_BYTES && !parts.is_empty()).then_some(Self::File(File {
            parts,
            rooted,
            content,
            adds,
        }))
    }
}

/// Notes the files that a call writes by its own arguments.
pub(super) fn of_arguments(tool: &str, units: &Units<'_>, learnt: &mut Vec<Wrote>) {
    for written in units.written(tool) {
        learnt.extend(Wrote::new(
            written.path,
            Content::of(written.text),
            written.adds,
        ));
        learnt.truncate(LEARNT);
    }
    for path in units.downloaded(tool) {
        learnt.extend(Wrote::new(&path, Content::downloaded(), false));
        learnt.truncate(LEARNT);
    }
}

/// Notes the files that a command writes, and, where a shell `goes_on` from call to call, the folder that it ends in.
pub(super) fn of_script(script: &Script<'_>, goes_on: bool, learnt: &mut Vec<Wrote>) {
    for file in script.files() {
        learnt.extend(Wrote::new(&file.path, file.content.clone(), file.adds));
        learnt.truncate(LEARNT);
    }
    let folder = script
        .folder()
        .filter(|folder| goes_on && folder.len() <= PATH_BYTES);
    learnt.extend(folder.map(|folder| Wrote::Folder(folder.into())));
}

/// The parts of a path, and whether it begins at the root. Homes and variables may be anywhere.
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
