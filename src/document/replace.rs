//! Replaces files that people edit.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::Path;

/// Atomically replaces the text `before` of a file with `after`: the file contains one of the two
/// at any time. It keeps its mode and owner, and a symbolic link keeps its target.
///
/// # Errors
/// The file no longer contains `before`, or it cannot be written.
pub fn replace(path: &Path, before: &str, after: &str) -> io::Result<()> {
    let target = fs::canonicalize(path)?;
    let metadata = fs::metadata(&target)?;
    let mut name = std::ffi::OsString::from(".");
    name.push(target.file_name().unwrap_or_default());
    name.push(format!(".{}.new", std::process::id()));
    let new = target.with_file_name(name);
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&new)?;
    let result = (|| {
        let current = file.metadata()?;
        if (current.uid(), current.gid()) != (metadata.uid(), metadata.gid()) {
            fchown(&file, Some(metadata.uid()), Some(metadata.gid())).map_err(|error| {
                io::Error::new(error.kind(), format!("its owner cannot be kept: {error}"))
            })?;
        }
        file.set_permissions(Permissions::from_mode(metadata.mode() & 0o7777))?;
        file.write_all(after.as_bytes())?;
        file.sync_all()?;
        if fs::read(&target)? != before.as_bytes() {
            return Err(io::Error::other("it was changed in the meantime"));
        }
        fs::rename(&new, &target)
    })();
    if result.is_err() {
        // Best effort: nothing depends on its removal.
        fs::remove_file(&new).unwrap_or_default();
    }
    result?;
    match target.parent() {
        Some(folder) => File::open(folder)?.sync_all(),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replaced_file_keeps_its_mode_and_a_link_its_target() {
        let folder = tempfile::tempdir().unwrap();
        let real = folder.path().join("real.toml");
        let link = folder.path().join("link.toml");
        fs::write(&real, "a = 1\n").unwrap();
        fs::set_permissions(&real, Permissions::from_mode(0o640)).unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        replace(&link, "a = 1\n", "a = 2\n").unwrap();
        assert_eq!(fs::read_to_string(&real).unwrap(), "a = 2\n");
        assert_eq!(fs::metadata(&real).unwrap().mode() & 0o777, 0o640);
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        let changed = replace(&real, "a = 1\n", "a = 3\n").unwrap_err();
        assert!(
            changed.to_string().contains("changed in the meantime"),
            "{changed}"
        );
        assert_eq!(fs::read_to_string(&real).unwrap(), "a = 2\n");
        assert_eq!(
            fs::read_dir(folder.path()).unwrap().count(),
            2,
            "nothing is left behind"
        );
    }
}
