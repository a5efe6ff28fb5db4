//! Matches names against patterns with `*`.

/// Reports whether `name` matches `glob`, in which `*` stands for any run of characters.
pub fn glob_matches(glob: &str, name: &str) -> bool {
    let mut parts = glob.split('*');
    let Some(mut rest) = parts.next().and_then(|first| name.strip_prefix(first)) else {
        return false;
    };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else {
        return rest.is_empty();
    };
    for part in parts {
        let Some((_, after)) = rest.split_once(part) else {
            return false;
        };
        rest = after;
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::glob_matches as fits;

    #[test]
    fn globs() {
        let fitting = [
            ("run", "run"),
            ("*", ""),
            ("*", "x"),
            ("run_*", "run_shell"),
            ("*shell*", "a_shell_b"),
            ("a*b*c", "aXbXbXc"),
        ];
        let not = [
            ("run", "runs"),
            ("run_*", "run"),
            ("a*a", "a"),
            ("*x", "xy"),
            ("a*b*c", "acb"),
            ("", "x"),
        ];
        assert!(fitting.iter().all(|(glob, name)| fits(glob, name)));
        for (glob, name) in not {
            assert!(!fits(glob, name), "{glob} {name}");
        }
    }
}
