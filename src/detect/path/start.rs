//! The start of a path: the root, a drive, the home folder, a variable, or the working directory.

use crate::text::quick::WordSet;

/// The start of a path, and the rest of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Start<'p> {
    /// At the root (`/x`).
    Root(&'p str),
    /// At a drive's root (`C:\x`), the letter in lower case.
    Drive(char, &'p str),
    /// At the home folder.
    Home(&'p str),
    /// In the caller's working directory.
    WorkingFolder(&'p str),
    /// In a system's folder for temporary files.
    Scratch(&'p str),
    /// On another machine, in another user's home, in a drive's current folder, at a variable, or
    /// at the output of a command.
    Unknown(&'p str),
    /// At an address of something that is not a file.
    Address(&'p str),
}

/// Schemes that are followed by a path, or by another such address.
static FILE_SCHEMES: WordSet = WordSet::new(
    "file jar zip url view-source netdoc phar compress.zlib compress.bzip2 glob local_file local \
     vscode-file filesystem gzip tar nfs",
);
const HOME: [&str; 5] = ["HOME", "USERPROFILE", "HOMEPATH", "APPDATA", "LOCALAPPDATA"];
const WORKING_FOLDER: [&str; 5] = ["PWD", "CD", "WORKSPACE", "GITHUB_WORKSPACE", "PROJECT_ROOT"];
const SCRATCH: [&str; 4] = ["TMPDIR", "TMP", "TEMP", "RUNNER_TEMP"];

/// Determines where `path` starts. `\` separates components as `/` does.
pub(super) fn find_start(path: &str) -> Start<'_> {
    let mut path = path.trim_start_matches([' ', '\t', '"', '\'']);
    for _ in 0..4 {
        let Some((scheme, rest)) = scheme(path) else {
            break;
        };
        if scheme == "php" {
            match rest.rsplit_once("resource=") {
                Some((_, resource)) => path = resource,
                None => return Start::Address(rest),
            }
            continue;
        }
        if !FILE_SCHEMES.contains(&scheme.as_str()) {
            return Start::Address(rest);
        }
        path = rest;
        if scheme == "file" || scheme == "netdoc" || scheme == "local_file" || scheme == "nfs" {
            path = match path_of_file_url(path) {
                Some(path) => path,
                None => return Start::Unknown(rest),
            };
            break;
        }
        if !path.contains(':') {
            path = path.strip_prefix("//").unwrap_or(path);
        }
    }
    local_start(path)
}

/// Returns the path of a `file:` URL; `None` if it is on another machine (RFC 8089).
fn path_of_file_url(rest: &str) -> Option<&str> {
    let rest = rest.split(['?', '#']).next().unwrap_or(rest);
    let sign = |text: &str| text.starts_with(['/', '\\']);
    let Some(behind) = rest
        .strip_prefix("//")
        .or_else(|| rest.strip_prefix("\\\\"))
    else {
        return Some(rest);
    };
    if behind.is_empty() || sign(behind) || behind.starts_with(['~', '.']) {
        // Some clients read `file:////host` as a share, others as `/host`: outside in both cases
        // unless there is a root.
        return Some(behind);
    }
    let host = behind.split(['/', '\\']).next().unwrap_or(behind);
    if host.len() == 2 && host.ends_with(':') {
        return Some(behind);
    }
    matches!(
        host.to_ascii_lowercase().as_str(),
        "localhost" | "127.0.0.1" | "[::1]" | "localhost."
    )
    .then(|| behind.get(host.len()..).unwrap_or_default())
}

fn local_start(path: &str) -> Start<'_> {
    // `\\?\C:\x`, `\\.\C:\x` and `\??\C:\x` are verbatim paths.
    let verbatim = ["\\\\?\\", "//?/", "\\\\.\\", "//./", "\\??\\"]
        .iter()
        .find_map(|prefix| path.strip_prefix(prefix));
    if let Some(rest) = verbatim {
        return drive_start(rest).unwrap_or(Start::Unknown(rest));
    }
    if path.starts_with("\\\\") {
        return Start::Unknown(path);
    }
    if let Some(path_start) = drive_start(path.strip_prefix(['/', '\\']).unwrap_or(path)) {
        return path_start;
    }
    // `/~/x`, as in the path of a URL.
    let tilde = path.strip_prefix('/').unwrap_or(path);
    if let Some(rest) = tilde.strip_prefix('~') {
        let user = rest.split(['/', '\\']).next().unwrap_or(rest);
        let is_user = user
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'+'));
        match user {
            "" => return Start::Home(rest),
            _ if is_user => return Start::Unknown(rest),
            _ => {}
        }
    }
    if let Some(path_start) = variable_start(path) {
        return path_start;
    }
    if path.starts_with(['/', '\\']) {
        Start::Root(path)
    } else {
        Start::WorkingFolder(path)
    }
}

/// Parses the drive of a path: `C:\x` and `C:x`.
fn drive_start(path: &str) -> Option<Start<'_>> {
    let letter = path.chars().next().filter(char::is_ascii_alphabetic)?;
    let rest = path.get(1..)?.strip_prefix([':', '|'])?;
    let rooted = rest.is_empty() || rest.starts_with(['/', '\\']);
    Some(if rooted {
        Start::Drive(letter.to_ascii_lowercase(), rest)
    } else {
        Start::Unknown(rest)
    })
}

/// Returns the start of a path that begins with something a shell would expand.
fn variable_start(path: &str) -> Option<Start<'_>> {
    let close = |open: &str, end: char| path.strip_prefix(open)?.split_once(end);
    if path.starts_with("$(") || path.starts_with('`') {
        return Some(Start::Unknown(path));
    }
    let (name, rest, certain) = if let Some((name, rest)) = close("${", '}') {
        (name, rest, true)
    } else if let Some((name, rest)) = close("%", '%') {
        (name, rest, false)
    } else if let Some(behind) = path.strip_prefix('$') {
        let behind = behind
            .strip_prefix("env:")
            .or_else(|| behind.strip_prefix("Env:"))
            .unwrap_or(behind);
        let end = behind
            .find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
            .unwrap_or(behind.len());
        (behind.get(..end)?, behind.get(end..)?, false)
    } else {
        return None;
    };
    let plain = name.trim_start_matches("env:").trim_start_matches("env.");
    let upper = plain.to_ascii_uppercase();
    let is_among = |names: &[&str]| names.contains(&upper.as_str());
    let is_name = |name: &str| {
        name.len() > 1
            && name
                .bytes()
                .all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_')
    };
    // `$lib/x` and `$postId.tsx` are names of files; environment variables are in capitals.
    let capital = is_name(plain);
    if is_among(&HOME) && (capital || certain || path.starts_with('%')) {
        return Some(Start::Home(rest));
    }
    if is_among(&WORKING_FOLDER) && capital {
        return Some(Start::WorkingFolder(rest.trim_start_matches(['/', '\\'])));
    }
    if is_among(&SCRATCH) && capital {
        return Some(Start::Scratch(rest));
    }
    let operator =
        certain && plain.contains([':', '#', '%', '/', '!', '^', ',', '@', '-', '?', '+']);
    (operator || capital && (rest.is_empty() || rest.starts_with(['/', '\\'])))
        .then_some(Start::Unknown(rest))
}

/// Returns the scheme of an address, in lower case, and the rest. A drive, or a host with a port,
/// has none.
pub(super) fn scheme(path: &str) -> Option<(String, &str)> {
    let (scheme, rest) = path.split_once(':')?;
    let is_valid = (2..=20).contains(&scheme.len())
        && scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'.' | b'-' | b'_'));
    let scheme = scheme.to_ascii_lowercase();
    let address = rest.starts_with("//")
        || rest.starts_with("\\\\")
        || FILE_SCHEMES.contains(&scheme.as_str())
        || scheme == "php";
    (is_valid && address).then_some((scheme, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starts() {
        for (path, expected) in [
            ("/etc/passwd", Start::Root("/etc/passwd")),
            ("src/x", Start::WorkingFolder("src/x")),
            ("", Start::WorkingFolder("")),
            ("~", Start::Home("")),
            ("~/x", Start::Home("/x")),
            ("~root/x", Start::Unknown("root/x")),
            ("~$doc.docx", Start::WorkingFolder("~$doc.docx")),
            ("$HOME/x", Start::Home("/x")),
            ("${HOME}/x", Start::Home("/x")),
            ("%USERPROFILE%\\x", Start::Home("\\x")),
            ("$env:USERPROFILE\\x", Start::Home("\\x")),
            ("$lib/x", Start::WorkingFolder("$lib/x")),
            ("$postId.tsx", Start::WorkingFolder("$postId.tsx")),
            ("$PWD/x", Start::WorkingFolder("x")),
            ("$OLDPWD/x", Start::Unknown("/x")),
            ("${x:-..}/x", Start::Unknown("/x")),
            ("$(pwd)/x", Start::Unknown("$(pwd)/x")),
            ("C:\\Windows", Start::Drive('c', "\\Windows")),
            ("/c:/x", Start::Drive('c', "/x")),
            ("C:x", Start::Unknown("x")),
            ("\\\\host\\share", Start::Unknown("\\\\host\\share")),
            ("\\\\?\\C:\\x", Start::Drive('c', "\\x")),
            ("file:///etc/passwd", Start::Root("/etc/passwd")),
            ("FILE:/etc/passwd", Start::Root("/etc/passwd")),
            ("file://localhost/etc/passwd", Start::Root("/etc/passwd")),
            (
                "file://evil/etc/passwd",
                Start::Unknown("//evil/etc/passwd"),
            ),
            ("file:src/x", Start::WorkingFolder("src/x")),
            ("file:///C:/x", Start::Drive('c', "/x")),
            ("jar:file:///etc/x.jar!/y", Start::Root("/etc/x.jar!/y")),
            (
                "php://filter/convert.base64-encode/resource=/etc/passwd",
                Start::Root("/etc/passwd"),
            ),
            ("https://example.com/x", Start::Address("//example.com/x")),
            ("s3://bucket/x", Start::Address("//bucket/x")),
            ("main:src/x", Start::WorkingFolder("main:src/x")),
        ] {
            assert_eq!(find_start(path), expected, "{path}");
        }
    }
}
