//! The paths of this machine that a command touches, and how it uses them.

use super::facts::{Facts, NamedPath};
use super::paths;
use super::traits::Traits;
use super::value::Field;
use crate::text::quick::WordSet;

/// Windows programs whose operands are files and folders.
static WINDOWS_WORKERS: WordSet = WordSet::new(
    "get-content set-content add-content clear-content out-file get-item set-item new-item remove-item copy-item \
    move-item rename-item get-childitem test-path resolve-path set-location push-location select-string import- \
    csv export-csv compress-archive expand-archive type copy move del erase ren rename xcopy robocopy dir md \
    mkdir rd rmdir cd chdir pushd more findstr fc attrib icacls takeown notepad mklink replace",
);

/// The way in which a script uses a path that it names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileUse {
    /// Its content is read.
    Read,
    /// It is created, changed, or overwritten.
    Write,
    /// It is started, or its content is run.
    Run,
    /// It is named: listed, deleted, moved, or used in an unknown way.
    Named,
}

/// A path that a script names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileAccess<'s> {
    /// The normalized path: a home as `~`, no `//`, `.` or inner `..`; relative to no folder unless
    /// the script changed to one that it named in full.
    pub path: &'s str,
    /// The home folder that `~` represents, if the script spelled it out.
    pub home: Option<&'s str>,
    /// The folder in which a relative path starts, if the script changed to it from where it began.
    pub start_folder: Option<&'s str>,
    /// The way in which the path is used.
    pub file_use: FileUse,
}

/// Returns every path that a command touches.
pub(super) fn file_accesses(facts: &Facts) -> impl Iterator<Item = FileAccess<'_>> {
    let program = facts.program.as_str();
    let filters = facts.traits.has(Traits::FILTERS) && !facts.windows;
    let works = if facts.windows {
        WINDOWS_WORKERS.contains(program)
    } else {
        filters || facts.traits.has(Traits::WORKS_ON_FILES)
    };
    // The pattern that a filter searches for often looks like a path, and so do escapes and
    // options.
    let first = facts.operands().next().filter(|_| filters);
    let excluded = facts
        .arguments()
        .iter()
        .filter(move |field| is_no_path(field, facts));
    let mut no_paths: Vec<String> = first
        .into_iter()
        .chain(excluded)
        .filter_map(|field| paths::normal(&field.text, None))
        .collect();
    // `/` is usually a field separator, unless the program works on files.
    if !(works
        && !filters
        && facts
            .operands()
            .any(|field| field.text.bytes().all(|b| matches!(b, b'/' | b'.' | b'*'))))
    {
        no_paths.push("/".to_owned());
    }
    let is_drive = |named_path: &NamedPath| facts.windows && named_path.path.get(1..2) == Some(":");
    let mentions = facts.paths.iter().filter(move |named_path| {
        (works || is_drive(named_path))
            && !facts.reads.contains(named_path)
            && !facts.writes.contains(named_path)
    });
    let in_place = matches!(program, "sed" | "gsed" | "perl" | "ruby");
    let accesses = mentions
        .chain(&facts.mounts)
        .map(|named_path| (named_path, FileUse::Named))
        .chain(with_use(&facts.reads, FileUse::Read))
        .chain(with_use(&facts.writes, FileUse::Write))
        .chain(with_use(&facts.runs, FileUse::Run));
    accesses
        .filter(move |(named_path, file_use)| {
            !facts.location.is_elsewhere
                && (*file_use == FileUse::Write && !in_place
                    || no_paths.iter().all(|text| *text != named_path.path))
        })
        .map(|(named_path, file_use)| FileAccess {
            path: &named_path.path,
            home: named_path.home.as_deref(),
            start_folder: facts.location.relative_folder.as_deref(),
            file_use,
        })
}

fn with_use(
    named_paths: &[NamedPath],
    file_use: FileUse,
) -> impl Iterator<Item = (&NamedPath, FileUse)> {
    named_paths
        .iter()
        .map(move |named_path| (named_path, file_use))
}

/// Reports whether an argument is not a path: `\n`, `\\033[1m`, `/s` and the like.
fn is_no_path(field: &Field, facts: &Facts) -> bool {
    let text = field.text.as_str();
    // `~3` is a number to most programs, and a slash may begin a regex for a filter.
    let digits = text
        .strip_prefix('~')
        .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    let regex = facts.traits.has(Traits::FILTERS)
        && text.starts_with('/')
        && text.contains(['^', '$', '[', '(', '{', '|', '\\', '+', ' ']);
    if digits || regex {
        return true;
    }
    if let Some(rest) = text.strip_prefix('\\') {
        return !is_share(rest) && (!facts.windows || rest.starts_with('\\'));
    }
    let Some(option) = text
        .strip_prefix('/')
        .filter(|_| facts.windows || facts.program == "dir")
    else {
        return false;
    };
    let name = option.split(':').next().unwrap_or(option);
    name.len() <= if facts.windows { 12 } else { 1 }
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'?')
}

/// Reports whether the text after a `\` makes it a network share: `\\host\share`.
fn is_share(rest: &str) -> bool {
    rest.strip_prefix('\\')
        .and_then(|rest| rest.split_once('\\'))
        .is_some_and(|(host, share)| {
            let is_host = host.bytes().all(|b| {
                b.is_ascii_alphanumeric()
                    || matches!(b, b'.' | b'-' | b'_' | b'$' | b'?' | b'@' | b':')
            });
            is_host
                && !host.is_empty()
                && share.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '$')
        })
}
