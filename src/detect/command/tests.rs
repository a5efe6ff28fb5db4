//! The reader against what would break a naive one.

use std::time::{Duration, Instant};

use super::facts::Behaviour;
use super::reader::Reader;

fn lines(text: &str) -> Vec<String> {
    super::clean::readings(text).flat_map(|reading| Reader::read(&reading, None).facts).map(|facts| facts.line()).collect()
}

fn comes_down_to(text: &str, line: &str) {
    let lines = lines(text);
    assert!(lines.iter().any(|found| found == line), "{text:?} came down to {lines:?}, not to {line:?}");
}

#[test]
fn disguises_come_down_to_the_plain_command() {
    for text in [
        "rm -rf /tmp/x",
        "r\\m -r''f \"/tmp/x\"",
        "rm${IFS}-rf${IFS}/tmp/x",
        "rm$IFS$9-rf$IFS$9/tmp/x",
        "{rm,-rf,/tmp/x}",
        "$'\\x72m' -rf /tmp/x",
        "a=r; b=m; $a$b -rf /tmp/x",
        "sudo -u root env X=1 nice -n 5 rm -rf /tmp/x",
        "sh -c 'bash -c \"rm -rf /tmp/x\"'",
        "eval 'rm -rf' /tmp/x",
        "echo rm -rf /tmp/x | sh",
        "echo cm0gLXJmIC90bXAveA== | base64 -d | sh",
        "$(echo rm) -rf /tmp/x",
        "`printf %s rm` -rf /tmp/x",
        "echo x/pmt/ fr- mr | rev | bash",
        "bash <<EOF\nrm -rf /tmp/x\nEOF",
        "bash <<< 'rm -rf /tmp/x'",
        "f() { rm -rf $1; }; f /tmp/x",
        "if true; then rm -rf /tmp/x; fi",
        "for d in /tmp/x; do rm -rf $d; done",
        "case a in a) rm -rf /tmp/x;; esac",
        "ssh host rm -rf /tmp/x",
        "docker exec -it web rm -rf /tmp/x",
        "x=12rm34; ${x:2:2} -rf /tmp/x",
        "r\u{8}rm -rf /tmp/x",
        "rm\r -rf /tmp/x",
        "\u{1b}[31mrm -rf /tmp/x",
        "ｒｍ -rf /tmp/x",
        "python3 -c 'import os; os.system(\"rm -rf /tmp/x\")'",
        "rm -rf /tmp/x # harmless",
    ] {
        comes_down_to(text, "rm -rf /tmp/x");
    }
}

#[test]
fn what_is_only_said_is_not_run() {
    for text in
        ["echo 'rm -rf /'", "grep -rn 'rm -rf /' docs/", "git commit -m 'rm -rf /'", "# rm -rf /", "printf '%s' \"rm -rf /\""]
    {
        assert!(!lines(text).iter().any(|line| line.starts_with("rm")), "{text}");
    }
}

#[test]
fn inputs_made_to_exhaust_end_in_time() {
    let nested = |times: usize| (0..times).fold("id".to_owned(), |text, _| format!("echo {} | sh", text.replace(' ', "_")));
    let doubling: String = (0..59).map(|n| format!("a{}=$a{n}$a{n};", n + 1)).collect();
    for (text, what) in [
        ("$(".repeat(5_000), "substitutions"),
        ("`".repeat(20_000), "backticks"),
        ("{a,b}".repeat(200), "braces"),
        ("\"'".repeat(50_000), "quotes"),
        ("${a:-".repeat(10_000), "defaults"),
        (format!("a0=xx;{doubling}echo $a59"), "doubling"),
        ("cat <<E\n".repeat(3_000), "here-documents"),
        ("a|".repeat(20_000), "pipes"),
        (nested(12), "pipes to shells"),
        ("xargs ".repeat(3_000), "xargs"),
        (format!("echo a | {}", "xargs ".repeat(3_000)), "xargs with input"),
        ("env ".repeat(5_000), "env"),
        ("{ ".repeat(5_000), "groups"),
        ("( ".repeat(5_000), "subshells"),
        ("a=(".repeat(5_000), "lists"),
        ("if ".repeat(5_000), "ifs"),
        ("f(){ f;};f;".repeat(2_000), "functions"),
    ] {
        let start = Instant::now();
        let read = Reader::read(&text, None);
        assert!(start.elapsed() < Duration::from_secs(3), "{what} took {:?}", start.elapsed());
        assert!(read.facts.len() < 20_000, "{what}");
    }
}

#[test]
fn a_limit_that_is_hit_is_told() {
    for text in ["$(".repeat(5_000), "{a,b}".repeat(200), "env ".repeat(5_000), "( ".repeat(5_000)] {
        let told = Reader::read(&text, None).facts.iter().any(|facts| facts.behaviour == Some(Behaviour::Unreadable));
        assert!(told, "{:?}", text.get(..20));
    }
}
