//! Paths outside the roots that commands touch in ordinary work.

use std::sync::LazyLock;

use crate::detect::command::FileUse;
use crate::detect::command::paths::{Classes, fits_glob};
use crate::text::quick::WordSet;

/// Folders of programs and of their dependencies: read and run by nearly every command.
static READABLE: WordSet = WordSet::new(
    "/usr/** /bin/** /sbin/** /lib/** /lib32/** /lib64/** /opt/** /etc/** /nix/** /snap/** \
     /sys/** /proc/** /dev/** /run/** /var/lib/** /var/cache/** /System/** /Library/** \
     /Applications/** c:/windows/** c:/program?files*/** ~/.local/** ~/.cache/** ~/.cargo/** \
     ~/.rustup/** ~/.npm/** ~/.nvm/** ~/.pyenv/** ~/.rbenv/** ~/.m2/** ~/.gradle/** ~/.deno/** \
     ~/.bun/** ~/go/**",
);
/// Paths that every command may write to.
static WRITABLE: WordSet = WordSet::new(
    "/tmp/** /var/tmp/** /private/tmp/** /dev/null /dev/zero /dev/full /dev/stdin /dev/stdout \
     /dev/stderr /dev/tty /dev/fd/* /dev/shm/** ~/.cache/**",
);

/// Reports whether a command may touch `path`, which is normalized, although it is outside the
/// roots. Keys and the like are covered by the rules for commands.
pub(super) fn is_ordinary(path: &str, file_use: FileUse) -> bool {
    let is_among = |globs: &WordSet| globs.iter().any(|glob| fits_glob(glob, path));
    // What is only named may be deleted.
    is_among(&WRITABLE) || file_use != FileUse::Write && is_among(&READABLE)
}

/// Reports whether a path starts in the command's working directory, at the output of a command, or
/// at a variable that nothing in the command sets: the operator of the tool has chosen its value.
/// Variables that hold a user's folders do not count.
pub(super) fn is_below(path: &str) -> bool {
    let Some(rest) = path.strip_prefix('$') else {
        return !path.starts_with(['/', '~', '\\', '`', '%']);
    };
    if rest.starts_with('(') {
        return true;
    }
    let name = rest.strip_prefix('{').unwrap_or(rest);
    let end = name
        .find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
        .unwrap_or(name.len());
    let (name, behind) = name.split_at_checked(end).unwrap_or_default();
    let plain = !rest.starts_with('{') || behind.starts_with(['}', '%', '#', '^', ',', '/']);
    plain
        && !name.is_empty()
        && !["OLDPWD", "HISTFILE", "GNUPGHOME"].contains(&name)
        && !name.starts_with("XDG_")
}

/// Returns the classes of files whose names do not occur in projects.
pub(super) fn non_project_classes() -> Classes {
    static CLASSES: LazyLock<Classes> = LazyLock::new(|| {
        Classes::from_names(&["accounts", "credential", "authorized-keys", "history"])
    });
    *CLASSES
}

/// Returns the classes of places that a path from within a project has no reason to climb to.
pub(super) fn climb_targets() -> Classes {
    static CLASSES: LazyLock<Classes> = LazyLock::new(|| {
        Classes::from_names(&[
            "accounts",
            "credential",
            "etc",
            "kernel",
            "history",
            "cron",
            "authorized-keys",
            "device",
            "log",
            "service",
            "loader",
        ])
    });
    *CLASSES
}
