//! Where a command stands: in which folder, and on whose file system.

use std::rc::Rc;

use super::paths;

/// Where a command stands, beside the folder that a script named in full.
#[derive(Clone, Debug, Default)]
pub(super) struct Standing {
    /// The folder that it went to from where the script began, as far as the script says.
    pub(super) below: Option<Rc<str>>,
    /// The folder that it is in if its shell is still the one of the session's earlier calls: see [`Written::folder`].
    ///
    /// [`Written::folder`]: super::written::Written::folder
    pub(super) session: Option<Rc<str>>,
    /// In a container or on another host: its paths are not this machine's.
    pub(super) elsewhere: bool,
}

impl Standing {
    /// Notes a `cd`; `in_full` is the folder that it leads to from anywhere.
    pub(super) fn go(&mut self, target: &str, in_full: Option<&str>) {
        self.session = match in_full {
            Some(folder) => Some(Rc::from(folder)),
            None => self
                .session
                .take()
                .and_then(|from| paths::normal(target, Some(&from)))
                .map(Rc::from),
        };
        // Back to wherever it was before, nobody knows.
        if in_full.is_some() || target == "-" {
            self.below = None;
            return;
        }
        self.below = paths::normal(target, self.below.as_deref())
            .filter(|below| !below.is_empty())
            .map(Rc::from);
    }
}

/// Whether an operand of `ssh` names this very machine.
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
        let mut standing = Standing::default();
        let mut go = |target: &str, in_full: Option<&str>| {
            standing.go(target, in_full);
            standing.below.as_deref().unwrap_or("").to_owned()
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
        let mut standing = Standing::default();
        for (target, in_full, folder) in [
            ("x", None, None),
            ("~", Some("~"), Some("~")),
            ("..", None, Some("/home")),
            ("a", None, Some("~")),
            ("-", None, None),
        ] {
            standing.go(target, in_full);
            assert_eq!(standing.session.as_deref(), folder, "{target}");
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
