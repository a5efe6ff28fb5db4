//! Opens a person's browser, by a program that the environment or the system names. No shell reads the address.

use std::process::{Command, Stdio};

/// Programs that open an address, where `$BROWSER` names none.
#[cfg(target_os = "macos")]
const OPENERS: [&str; 1] = ["open"];
#[cfg(not(target_os = "macos"))]
const OPENERS: [&str; 2] = ["xdg-open", "wslview"];

/// Opens `http` and `https` addresses; says whether a program for it could be started. It runs on by itself.
pub fn open(url: &str) -> bool {
    if !(url.starts_with("https://") || url.starts_with("http://")) {
        return false;
    }
    let named = std::env::var("BROWSER").unwrap_or_default();
    // A list, the first that can be started counts; `%s` stands for the address.
    let named = named
        .split(':')
        .filter(|program| !program.trim().is_empty());
    named.chain(OPENERS).any(|program| started(program, url))
}

fn started(program: &str, url: &str) -> bool {
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
    // Somebody has to hear of its end, or it stays in the system's list.
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
        assert!(!started(
            "no-such-program-anywhere %s",
            "https://login.example/"
        ));
        assert!(started("true", "https://login.example/"));
    }
}
