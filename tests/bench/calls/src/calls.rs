//! Calls to judge: ordinary ones, disguised ones, and those made to be slow.

/// Returns the name and text of ordinary commands.
pub fn ordinary() -> Vec<(&'static str, String)> {
    let script = "set -euo pipefail\nfor f in src/*.rs; do\n  if grep -q 'TODO' \"$f\"; then echo \"$f\" >> todo.txt; fi\ndone\nVERSION=$(git describe --tags)\ntar czf \"dist/app-$VERSION.tgz\" target/release/app\n";
    vec![
        ("plain", "ls -la src".into()),
        ("test run", "cargo test --lib -- --nocapture 2>&1 | tail -n 40".into()),
        ("pipeline", "grep -rn 'fn main' src | sort | uniq -c | sort -rn | head -20".into()),
        ("commit", "cd /repo/app && git add -A && git commit -m 'Say what rm -rf / would do' && git push origin main".into()),
        ("script", script.into()),
        ("long script", script.repeat(40)),
        ("encoded", "echo cm0gLXJmIC90bXAveA== | base64 -d | sh".into()),
        ("wrapped", "sudo -u root env A=1 nice -n 5 timeout 10 bash -c \"eval 'r''m' -rf /tmp/x\"".into()),
        ("code", "python3 -c 'import os, sys; print(os.listdir(sys.argv[1]))' src".into()),
    ]
}

/// Returns commands made to be slow: none may take longer than the limits allow.
pub fn hostile() -> Vec<(&'static str, String)> {
    let doubling: String = (0..59).map(|n| format!("a{}=$a{n}$a{n};", n + 1)).collect();
    let many = |text: &str, bytes: usize| text.repeat(bytes / text.len());
    vec![
        ("substitutions", "$(".repeat(5_000)),
        ("backticks", "`".repeat(20_000)),
        ("braces", "{a,b}".repeat(200)),
        ("quotes", "\"'".repeat(50_000)),
        ("defaults", "${a:-".repeat(10_000)),
        ("doubling", format!("a0=xx;{doubling}echo $a59")),
        ("here-documents", "cat <<E\n".repeat(3_000)),
        ("pipes", "a|".repeat(20_000)),
        ("xargs", "xargs ".repeat(3_000)),
        (
            "xargs with input",
            format!("echo a | {}", "xargs ".repeat(3_000)),
        ),
        ("env", "env ".repeat(5_000)),
        ("groups", "{ ".repeat(5_000)),
        ("subshells", "( ".repeat(5_000)),
        ("lists", "a=(".repeat(5_000)),
        ("ifs", "if ".repeat(5_000)),
        ("cases", "case x in ".repeat(5_000)),
        ("functions", "f(){ f;};f;".repeat(2_000)),
        (
            "functions in functions",
            (0..200)
                .map(|n| format!("f{n}(){{ f{};f{};}};", n + 1, n + 1))
                .collect::<String>()
                + "f0",
        ),
        ("assignments", many("a=$a$a;", 200_000)),
        ("words", many("a ", 200_000)),
        ("words that run", many("run ", 200_000)),
        ("shells", many("x sh -c ", 200_000)),
        (
            "find",
            format!("find / {}", many("-exec rm {} ; ", 200_000)),
        ),
        ("paths", format!("cat {}", many("/a/../b/", 200_000))),
        (
            "many paths",
            many("cat ../../etc/x/y/z/.ssh/id_rsa ", 200_000),
        ),
        (
            "globs",
            format!("ls {}", many("/*a*b*c*d*e*/?[a-z]* ", 200_000)),
        ),
        ("one glob", format!("ls /{}", "*a".repeat(2_000))),
        (
            "cut variables",
            format!(
                "a={};{}",
                "x".repeat(4_000),
                many("echo ${a##*b*c*d};", 100_000)
            ),
        ),
        (
            "replaced letters",
            format!(
                "a={};{}",
                "x".repeat(4_000),
                many("b=${a//x/yyyy};", 100_000)
            ),
        ),
        ("aliases", many("alias a='a a';a;", 100_000)),
        (
            "sed",
            format!(
                "echo {} | {}",
                "a".repeat(4_000),
                many("sed s/a/aa/g | ", 20_000)
            ),
        ),
        (
            "tr",
            format!(
                "echo {} | {}",
                "a".repeat(4_000),
                many("tr a-z b-za | ", 20_000)
            ),
        ),
        (
            "python",
            format!("python3 -c '{}'", many("a=b(\"c\",d);", 200_000)),
        ),
        (
            "python calls",
            format!("python3 -c '{}'", many("open(", 200_000)),
        ),
        (
            "python strings",
            format!("python3 -c '{}'", many("x=\"a\"+\"b\";eval(x);", 200_000)),
        ),
        (
            "tcl",
            format!("tclsh -c '{}'", many("exec \"a b\";", 200_000)),
        ),
        (
            "makefile",
            format!("make --eval='{}'", many("a:;$(shell a b)\n", 100_000)),
        ),
        ("windows", many("Remove-Item C:\\a;", 200_000)),
        ("windows variables", many("%temp%%temp% ", 200_000)),
        ("escapes", format!("echo -e '{}'", many("\\x41", 200_000))),
        ("control characters", many("\u{1b}[31ma\u{8}", 200_000)),
        ("look-alikes", many("\u{430}\u{200b}\u{ff52} ", 200_000)),
        ("arithmetic", many("$((1+1))", 200_000)),
        ("process substitutions", many("cat <(a) ", 200_000)),
        (
            "while read",
            format!(
                "while read l; do echo $l; done <<< '{}'",
                many("a b\n", 100_000)
            ),
        ),
        (
            "loops",
            format!(
                "for a in {}; do for b in $a; do echo $b; done; done",
                many("a b ", 100_000)
            ),
        ),
        (
            "xargs one by one",
            format!(
                "printf '{}' | xargs -n1 {}",
                many("a ", 10_000),
                many("xargs -n1 ", 200)
            ),
        ),
        (
            "parallel",
            format!(
                "parallel {} ::: {}",
                many("parallel ", 1_000),
                many("a ", 10_000)
            ),
        ),
        ("nested base64", nested(12)),
        ("a single word", "a".repeat(250_000)),
        ("too long", "a".repeat(300_000)),
    ]
}

/// Returns a command in nested base64.
fn nested(times: usize) -> String {
    (0..times).fold("id".to_owned(), |text, _| {
        format!("echo {} | base64 -d | sh", base64(text.as_bytes()))
    })
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for chunk in bytes.chunks(3) {
        let bits = chunk
            .iter()
            .fold(0usize, |bits, b| bits << 8 | usize::from(*b))
            << (8 * (3 - chunk.len()));
        for n in 0..4 {
            out.push(if n <= chunk.len() {
                char::from(LETTERS[bits >> (18 - 6 * n) & 63])
            } else {
                '='
            });
        }
    }
    out
}
