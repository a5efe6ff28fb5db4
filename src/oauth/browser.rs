//! Opens the user's browser with a program that the environment or the system names. The URL is not
//! passed through a shell.

use std::process::{Command, Stdio};

/// Programs that open a URL, used if `$BROWSER` names none.
#[cfg(target_os = "macos")]
const OPENERS: [&str; 1] = ["open"];
#[cfg(not(target_os = "macos"))]
const OPENERS: [&str; 2] = ["xdg-open", "wslview"];

/// Opens an `http` or `https` URL and returns whether a program for it could be started. The
/// program runs on its own.
pub fn open(url: &str) -> bool {
    if !(url.starts_with("https://") || url.starts_with("http://")) {
        return false;
    }
    let configured = std::env::var("BROWSER").unwrap_or_default();
    // `$BROWSER` is a list, of which the first program that starts is used; `%s` is replaced with
    // the URL.
    let programs = configured
        .split(':')
        .filter(|program| !program.trim().is_empty());
    programs
        .chain(OPENERS)
        .any(|program| start_program(program, url))
}

fn start_program(program: &str, url: &str) -> bool {
    let mut words = program.split_whitespace();
    let Some(name) = words.next() else {
        return false;
    };
    let mut arguments: Vec<String> = words.map(|word| word.replace("%s", url)).collect();
    if !program.contains("%s") {
        arguments.push(url.to_owned());
    }
    let mut command = Command::new(name);
    command
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let Ok(mut child) = command.spawn() else {
        return false;
    };
    // The child must be waited for, or it remains as a zombie process.
    std::thread::spawn(move || child.wait().is_ok_and(|status| status.success()));
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_of_pages_are_opened() {
        for url in [
            "file:///etc/passwd",
            "javascript:alert(1)",
            "-h",
            "",
            "data:text/html,x",
            "vscode://x",
        ] {
            assert!(!open(url), "{url}");
        }
        assert!(!start_program(
            "no-such-program-anywhere %s",
            "https://login.example/"
        ));
        assert!(start_program("true", "https://login.example/"));
    }
}
