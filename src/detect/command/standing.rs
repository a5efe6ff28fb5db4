//! Where a command stands: in which folder, and on whose file system.

use std::rc::Rc;

use super::paths;

/// Where a command stands, beside the folder that a script named in full.
#[derive(Clone, Debug, Default)]
pub(super) struct Standing {
    /// The folder that it went to from where the script began, as far as the script says.
    pub(super) below: Option<Rc<str>>,
    /// In a container or on another host: its paths are not this machine's.
    pub(super) elsewhere: bool,
}

impl Standing {
    /// Notes a `cd`; `in_full` if it leads to the same folder from anywhere.
    pub(super) fn go(&mut self, target: &str, in_full: bool) {
        // Back to wherever it was before, nobody knows.
        if in_full || target == "-" {
            self.below = None;
            return;
        }
        self.below = paths::normal(target, self.below.as_deref()).filter(|below| !below.is_empty()).map(Rc::from);
    }
}

/// Whether an operand of `ssh` names this very machine.
pub(super) fn is_this_machine(host: &str) -> bool {
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host).trim_start_matches("ssh://");
    host.contains("localhost") || host.starts_with("127.") || host.contains("::1") || host.contains('$') || host == "0"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_add_up() {
        let mut standing = Standing::default();
        let mut go = |target: &str, in_full| {
            standing.go(target, in_full);
            standing.below.as_deref().unwrap_or("").to_owned()
        };
        let steps =
            [("web", "web"), ("src/x", "web/src/x"), ("..", "web/src"), ("../..", ""), ("..", ".."), ("$d", "../$d"), ("-", "")];
        for (target, expected) in steps {
            assert_eq!(go(target, false), expected, "{target}");
        }
        assert_eq!((go("a", false), go("/srv", true)), ("a".to_owned(), String::new()));
    }

    #[test]
    fn this_machine_has_names() {
        for host in ["localhost", "me@127.0.0.1", "ssh://me@localhost:22", "$HOST"] {
            assert!(is_this_machine(host), "{host}");
        }
        assert!(!is_this_machine("me@web1.example.org"));
    }
}
