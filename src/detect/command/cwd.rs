//! The location of a command: its folder, and the machine whose file system it sees.

use std::rc::Rc;

use super::paths;

/// The location of a command, apart from a folder that the script named in full.
#[derive(Clone, Debug, Default)]
pub(super) struct Location {
    /// The folder that the script changed to from where it began, as far as it is known.
    pub(super) relative_folder: Option<Rc<str>>,
    /// The current folder if the shell is still that of the session's earlier calls: see
    /// [`WrittenFiles::folder`].
    ///
    /// [`WrittenFiles::folder`]: super::written_files::WrittenFiles::folder
    pub(super) session_folder: Option<Rc<str>>,
    /// Whether the command runs in a container or on another host, so that its paths are not those
    /// of this machine.
    pub(super) is_elsewhere: bool,
}

impl Location {
    /// Records a `cd`; `in_full` is the folder that it leads to, if it is the same from anywhere.
    pub(super) fn change_to(&mut self, target: &str, in_full: Option<&str>) {
        self.session_folder = match in_full {
            Some(folder) => Some(Rc::from(folder)),
            None => self
                .session_folder
                .take()
                .and_then(|from| paths::normal(target, Some(&from)))
                .map(Rc::from),
        };
        // The folder that `cd -` returns to is not known.
        if in_full.is_some() || target == "-" {
            self.relative_folder = None;
            return;
        }
        self.relative_folder = paths::normal(target, self.relative_folder.as_deref())
            .filter(|below| !below.is_empty())
            .map(Rc::from);
    }
}

/// Reports whether an operand of `ssh` names this machine.
pub(super) fn is_this_machine(host: &str) -> bool {
    let host = host
        .rsplit_once('@')
        .map_or(host, |(_, host)| host)
        .trim_start_matches("ssh://");
    host.contains("localhost")
        || host.starts_with("127.")
        || host.contains("::1")
        || host.contains('$')
        || host == "0"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_add_up() {
        let mut location = Location::default();
        let mut go = |target: &str, in_full: Option<&str>| {
            location.change_to(target, in_full);
            location.relative_folder.as_deref().unwrap_or("").to_owned()
        };
        let steps = [
            ("web", "web"),
            ("src/x", "web/src/x"),
            ("..", "web/src"),
            ("../..", ""),
            ("..", ".."),
            ("$d", "../$d"),
            ("-", ""),
        ];
        for (target, expected) in steps {
            assert_eq!(go(target, None), expected, "{target}");
        }
        assert_eq!(
            (go("a", None), go("/srv", Some("/srv"))),
            ("a".to_owned(), String::new())
        );
    }

    #[test]
    fn a_session_goes_on_from_its_last_folder() {
        let mut location = Location::default();
        for (target, in_full, folder) in [
            ("x", None, None),
            ("~", Some("~"), Some("~")),
            ("..", None, Some("/home")),
            ("a", None, Some("~")),
            ("-", None, None),
        ] {
            location.change_to(target, in_full);
            assert_eq!(location.session_folder.as_deref(), folder, "{target}");
        }
    }

    #[test]
    fn this_machine_has_names() {
        for host in [
            "localhost",
            "me@127.0.0.1",
            "ssh://me@localhost:22",
            "$HOST",
        ] {
            assert!(is_this_machine(host), "{host}");
        }
        assert!(!is_this_machine("me@web1.example.org"));
    }
}
