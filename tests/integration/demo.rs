//! `lychgate demo` shows the gate at work, and what it announces is true.

use super::harness::{assert_contains, lychgate};
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

#[test]
fn the_tour_goes_as_promised() {
    let output = lychgate().args(["demo", "--once"]).output().unwrap();
    let told = String::from_utf8(output.stdout).unwrap();
    assert!(
        output.status.success(),
        "{told}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert_contains(
        &told,
        &[
            "passed",
            "refused",
            "cleaned",
            "audit log",
            "counters",
            "lychgate_commands_blocked_total",
            "all as expected",
        ],
    );
    assert!(!told.contains('\x1b'), "no colour where nobody sees it");
}

#[test]
fn it_stays_up_and_says_where_until_it_is_told_to_stop() {
    let mut process = lychgate()
        .arg("demo")
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let lines: Vec<String> = BufReader::new(process.stdout.as_mut().unwrap())
        .lines()
        .map(Result::unwrap)
        .take_while(|line| !line.starts_with("ctrl-c"))
        .collect();
    let told = lines.join("\n");
    assert_contains(
        &told,
        &["Claude Code", "Cursor", "VS Code", "Python", "TypeScript"],
    );
    assert!(process.try_wait().unwrap().is_none(), "it stays up");
    let status = Command::new("kill")
        .args(["-TERM", &process.id().to_string()])
        .status()
        .unwrap();
    assert!(status.success() && process.wait().unwrap().success());
}
