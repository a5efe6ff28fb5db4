//! Finds the path of this program that remains valid after updates.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

/// Returns the path to write into files that start this program later. If `PATH` leads to it
/// through a symbolic link (Homebrew's `bin`, a version manager), this is the link, since the path
/// of the file behind it changes with an update.
///
/// # Errors
/// The path of this program is unknown.
pub(super) fn stable_path() -> io::Result<PathBuf> {
    let program = std::env::current_exe()?;
    let path = std::env::var_os("PATH").unwrap_or_default();
    Ok(find_on_path(&program, &path).unwrap_or(program))
}

/// Returns the first program of this name on `PATH`, if it is this one.
fn find_on_path(program: &Path, path: &OsStr) -> Option<PathBuf> {
    let real = program.canonicalize().ok()?;
    let names = ["lychgate".as_ref(), program.file_name()?];
    names.into_iter().find_map(|name| {
        let folders = std::env::split_paths(path).filter(|folder| folder.is_absolute());
        let first = folders
            .map(|folder| folder.join(name))
            .find(|candidate| candidate.is_file())?;
        (first.canonicalize().ok()? == real).then_some(first)
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_link_on_the_path_is_preferred_where_it_leads_here() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in ["cellar/1.0/bin", "bin", "other"] {
            fs::create_dir_all(at(name)).unwrap();
        }
        let real = at("cellar/1.0/bin/lychgate");
        fs::write(&real, "").unwrap();
        symlink(&real, at("bin/lychgate")).unwrap();
        let path = |folders: &[PathBuf]| std::env::join_paths(folders).unwrap();
        let bin = path(&["relative".into(), at("missing"), at("bin")]);
        assert_eq!(find_on_path(&real, &bin), Some(at("bin/lychgate")));
        assert_eq!(find_on_path(&real, &path(&[at("missing")])), None);
        // Another program of that name comes first, and a shell would run that one.
        fs::write(at("other/lychgate"), "").unwrap();
        assert_eq!(find_on_path(&real, &path(&[at("other"), at("bin")])), None);
        // A program under another name is found by that name.
        let versioned = at("cellar/1.0/bin/lychgate-1.0");
        fs::write(&versioned, "").unwrap();
        symlink(&versioned, at("bin/lychgate-1.0")).unwrap();
        assert_eq!(find_on_path(&versioned, &bin), Some(at("bin/lychgate-1.0")));
    }
}
