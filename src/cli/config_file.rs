//! Selects the config file of a command: the one that is named, or the first one in the default
//! locations.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use crate::config::path_from_env;
use crate::document::Fault;

/// The environment variable that names the config file for all commands.
const VARIABLE: &str = "LYCHGATE_CONFIG";
const FILE: &str = "lychgate.toml";
const SYSTEM_FILE: &str = "/etc/lychgate/lychgate.toml";

/// The option `--config`, flattened into the arguments of a verb.
#[derive(Clone, Debug, Default, clap::Args)]
pub(super) struct ConfigArg {
    /// Config file of the gateway [default: $LYCHGATE_CONFIG, or the first of ./lychgate.toml,
    /// ~/.config/lychgate/lychgate.toml and /etc/lychgate/lychgate.toml]
    #[arg(id = "config", long = "config", value_name = "FILE", global = true)]
    file: Option<PathBuf>,
}

impl ConfigArg {
    #[cfg(test)]
    pub(super) fn new(file: impl Into<PathBuf>) -> Self {
        Self {
            file: Some(file.into()),
        }
    }

    /// Returns the file that the command line names.
    pub(super) fn on_command_line(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// Returns the file that the command line or the environment names. It need not exist.
    pub(super) fn named_file(&self) -> Option<PathBuf> {
        Search::from_environment().named_file(self)
    }

    /// Returns the file for `wrap`: the named one, or that of the user or the system. Clients start
    /// `wrap` in a project folder, whose `./lychgate.toml` could disable the rules; that file is
    /// therefore ignored.
    pub(super) fn find_for_wrap(&self) -> Option<WrapConfig> {
        Search::from_environment().find_for_wrap(self)
    }

    /// Returns the file to use, for commands that also work without one.
    pub(super) fn find_if_any(&self) -> Option<PathBuf> {
        Search::from_environment().find(self).ok()
    }

    /// Returns the file to use.
    ///
    /// # Errors
    /// No file is named, and there is none in the default locations.
    pub(super) fn find(&self) -> Result<PathBuf, Vec<Fault>> {
        Search::from_environment()
            .find(self)
            .map_err(|fault| vec![fault])
    }
}

/// Returns the config file of the user, which need not exist: in `$XDG_CONFIG_HOME/lychgate` or
/// `~/.config/lychgate`.
pub(super) fn user_file() -> Option<PathBuf> {
    let folder = path_from_env("XDG_CONFIG_HOME")
        .or_else(|| Some(path_from_env("HOME")?.join(".config")))?;
    Some(folder.join("lychgate").join(FILE))
}

/// The config file of `lychgate wrap`.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum WrapConfig {
    /// The file named on the command line or in the environment.
    Named(PathBuf),
    User(PathBuf),
    System(PathBuf),
}

impl WrapConfig {
    pub(super) fn path(&self) -> &Path {
        match self {
            Self::Named(path) | Self::User(path) | Self::System(path) => path,
        }
    }
}

/// The locations in which to look for a config file.
struct Search {
    variable: Option<OsString>,
    folder: PathBuf,
    user_file: Option<PathBuf>,
    system_file: PathBuf,
}

impl Search {
    fn from_environment() -> Self {
        Self {
            variable: std::env::var_os(VARIABLE),
            folder: PathBuf::new(),
            user_file: user_file(),
            system_file: SYSTEM_FILE.into(),
        }
    }

    fn named_file(&self, arg: &ConfigArg) -> Option<PathBuf> {
        let variable = self
            .variable
            .as_ref()
            .filter(|value| !value.is_empty())
            .map(PathBuf::from);
        arg.file.clone().or(variable)
    }

    fn find_for_wrap(&self, arg: &ConfigArg) -> Option<WrapConfig> {
        if let Some(named) = self.named_file(arg) {
            return Some(WrapConfig::Named(named));
        }
        let user = self
            .user_file
            .clone()
            .filter(|path| skip_reason(path, true).is_none())
            .map(WrapConfig::User);
        let system = || {
            skip_reason(&self.system_file, false)
                .is_none()
                .then(|| WrapConfig::System(self.system_file.clone()))
        };
        user.or_else(system)
    }

    fn find(&self, arg: &ConfigArg) -> Result<PathBuf, Fault> {
        if let Some(named) = self.named_file(arg) {
            return Ok(named);
        }
        let own_files = std::iter::once(self.folder.join(FILE)).chain(self.user_file.clone());
        let mut skipped = Vec::new();
        for (path, is_own) in own_files
            .map(|path| (path, true))
            .chain([(self.system_file.clone(), false)])
        {
            match skip_reason(&path, is_own) {
                Some(reason) => skipped.push(format!("`{}`{reason}", path.display())),
                None => return Ok(path),
            }
        }
        let message = format!("no config file found; searched {}", skipped.join(", "));
        let hint = format!(
            "create one with `lychgate init`, or pass one with `--config FILE` or `{VARIABLE}`"
        );
        Err(Fault::of_file("config", message, Some(&hint)))
    }
}

/// Returns why a file is skipped; `None` if it is the one to use. The user's own file is used even
/// if it cannot be read, so that the error is reported: the next file might protect less. The
/// system's file is skipped then, since it may be for the user of a service only.
fn skip_reason(path: &Path, is_own: bool) -> Option<&'static str> {
    match probe(path).err()?.kind() {
        ErrorKind::PermissionDenied if !is_own => Some(" (permission denied)"),
        ErrorKind::NotFound | ErrorKind::NotADirectory => Some(""),
        _ => None,
    }
}

fn probe(path: &Path) -> io::Result<()> {
    // Opening a named pipe would block until there is a writer.
    if std::fs::metadata(path)?.is_file() {
        File::open(path).map(drop)
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn search(root: &Path) -> Search {
        let of_user = root.join("home/.config/lychgate/lychgate.toml");
        let of_system = root.join("etc/lychgate.toml");
        for folder in ["work", "etc"] {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        fs::create_dir_all(of_user.parent().unwrap()).unwrap();
        Search {
            variable: None,
            folder: root.join("work"),
            user_file: Some(of_user),
            system_file: of_system,
        }
    }

    #[test]
    fn places_are_searched_in_order() {
        let root = tempfile::tempdir().unwrap();
        let mut search = search(root.path());
        let none = ConfigArg::default();
        let missing = search.find(&none).unwrap_err().to_string();
        assert_contains!(
            missing,
            "work/lychgate.toml",
            "home/.config/lychgate/lychgate.toml",
            "etc/lychgate.toml",
            "LYCHGATE_CONFIG",
            "--config",
            "lychgate init"
        );
        let expected = [
            search.system_file.clone(),
            search.user_file.clone().unwrap(),
            search.folder.join(FILE),
        ];
        for path in expected {
            fs::write(&path, "").unwrap();
            assert_eq!(search.find(&none).unwrap(), path);
        }
        search.variable = Some("".into());
        assert_eq!(
            search.find(&none).unwrap(),
            search.folder.join(FILE),
            "an empty variable is unset"
        );
        search.variable = Some("from-variable.toml".into());
        assert_eq!(search.find(&none).unwrap(), Path::new("from-variable.toml"));
        assert_eq!(
            search.find(&ConfigArg::new("named.toml")).unwrap(),
            Path::new("named.toml")
        );
    }

    #[test]
    fn wrap_uses_every_place_but_the_working_folder() {
        let root = tempfile::tempdir().unwrap();
        let mut search = search(root.path());
        let none = ConfigArg::default();
        fs::write(search.folder.join(FILE), "").unwrap();
        assert_eq!(search.find_for_wrap(&none), None);
        fs::write(&search.system_file, "").unwrap();
        assert_eq!(
            search.find_for_wrap(&none),
            Some(WrapConfig::System(search.system_file.clone()))
        );
        let user = search.user_file.clone().unwrap();
        fs::write(&user, "").unwrap();
        assert_eq!(search.find_for_wrap(&none), Some(WrapConfig::User(user)));
        search.variable = Some("from-variable.toml".into());
        assert_eq!(
            search.find_for_wrap(&none),
            Some(WrapConfig::Named("from-variable.toml".into()))
        );
    }

    #[test]
    fn something_else_in_a_place_is_not_passed_over() {
        let root = tempfile::tempdir().unwrap();
        let search = search(root.path());
        fs::write(&search.system_file, "").unwrap();
        fs::create_dir(search.folder.join(FILE)).unwrap();
        assert_eq!(
            search.find(&ConfigArg::default()).unwrap(),
            search.folder.join(FILE)
        );
    }
}
