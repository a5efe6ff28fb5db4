//! Tests the reader with input that would break a naive one: it stops in time, reports that, and
//! takes at most twice as long for twice the input.

use std::time::{Duration, Instant};

use super::facts::Behaviour;
use super::reader::{Reader, ScriptContext};

/// Pieces that make a text slow to read if they are repeated.
const PIECES: [&str; 44] = [
    "$(",
    "`",
    "{a,b}",
    "\"'",
    "${a:-",
    "cat <<E\n",
    "a|",
    "xargs ",
    "env ",
    "{ ",
    "( ",
    "a=(",
    "if ",
    "case x in ",
    "f(){ f;};f;",
    "a=$a$a;",
    "a ",
    "run ",
    "x sh -c ",
    "find / -exec rm {} \\; ",
    "/a/../b/",
    "cat ../../etc/x/y/z/.ssh/id_rsa ",
    "/*a*b*c*d*e*/?[a-z]* ",
    "echo ${a##*b*c*d};",
    "b=${a//x/yyyy};",
    "alias a='a a';a;",
    "echo a | tr a-z b-za | ",
    "python3 -c 'a=b(\"c\",d)';",
    "tclsh -c 'exec \"a b\"';",
    "make --eval='a:;$(shell a b)';",
    "echo $((1+1))",
    "cat <(a) ",
    "while read l; do ",
    "for a in b c; do ",
    "parallel ",
    "vim -c '!a' ",
    "git -c alias.a='!a' ",
    "sed 's/a/b/e;' ",
    "$a ",
    "eval ",
    "bash -c '",
    "a=b ",
    "> a ",
    "\\\n",
];

/// Returns texts that are slow for reasons other than repetition.
fn slow_texts() -> Vec<String> {
    let nested = (0..12).fold("id".to_owned(), |text, _| {
        format!("echo {} | sh", text.replace(' ', "_"))
    });
    let doubling: String = (0..59).map(|n| format!("a{}=$a{n}$a{n};", n + 1)).collect();
    let calls: String = (0..200)
        .map(|n| format!("f{n}(){{ f{};f{};}};", n + 1, n + 1))
        .collect();
    vec![
        nested,
        format!("a0=xx;{doubling}echo $a59"),
        calls + "f0",
        format!("echo a | {}", "xargs ".repeat(3_000)),
        format!(
            "a={};{}",
            "x".repeat(4_000),
            "echo ${a##*b*c*d};".repeat(2_000)
        ),
        format!("ls /{}", "*a".repeat(2_000)),
        format!(
            "for a in {}; do for b in $a; do echo $b; done; done",
            "a b ".repeat(5_000)
        ),
        format!(
            "printf '{}' | xargs -n1 {}",
            "a ".repeat(5_000),
            "xargs -n1 ".repeat(20)
        ),
        "a".repeat(120_000),
    ]
}

fn is_unread(read: &Reader<'_>) -> bool {
    read.facts
        .iter()
        .any(|facts| facts.behaviour == Some(Behaviour::Unreadable))
}

#[test]
fn inputs_made_to_exhaust_end_in_time() {
    for text in PIECES
        .iter()
        .map(|piece| piece.repeat(40_000 / piece.len()))
        .chain(slow_texts())
    {
        let start = Instant::now();
        let reader = Reader::read(&text, ScriptContext::default());
        let beginning: String = text.chars().take(24).collect();
        // Generous, because the build is unoptimized and the machine may be busy: the next bound is
        // the one that matters.
        assert!(
            start.elapsed() < Duration::from_secs(5),
            "{beginning:?} took {:?}",
            start.elapsed()
        );
        // The limit, plus the tokens of one text.
        assert!(
            reader.steps() < 24_000 + 45_000,
            "{beginning:?} took {} steps",
            reader.steps()
        );
        assert!(reader.facts.len() < 20_000, "{beginning:?}");
    }
}

#[test]
fn twice_as_much_takes_twice_as_long() {
    for piece in PIECES {
        let steps = |times: usize| {
            let reader = Reader::read(&piece.repeat(times), ScriptContext::default());
            (!is_unread(&reader)).then(|| reader.steps())
        };
        for times in [20, 100, 400] {
            if let Some((once, twice)) = steps(times).zip(steps(times * 2)) {
                assert!(
                    twice <= once * 5 / 2 + 100,
                    "{piece:?}: {once} steps {times} times, {twice} steps twice as often"
                );
            }
        }
    }
}

#[test]
fn a_limit_that_is_hit_is_told() {
    let many = ["$(", "env ", "( ", "x sh -c ", "a=b ", "eval ", "a ", "if "]
        .map(|piece| piece.repeat(30_000));
    let tcl = [
        "puts a\n".repeat(1_100),
        (0..1_100).map(|n| format!("set v{n} a\n")).collect(),
    ];
    let tcl = tcl.map(|script| format!("tclsh <<'E'\n{script}E\n"));
    for text in many.into_iter().chain(tcl).chain(["{a,b}".repeat(200)]) {
        assert!(
            is_unread(&Reader::read(&text, ScriptContext::default())),
            "{:?}",
            text.get(..20)
        );
    }
}

#[test]
fn scripts_that_people_write_are_read_to_their_end() {
    let line = "for f in src/*.rs; do if grep -q TODO \"$f\"; then echo \"$f: $(wc -l < \"$f\")\" | tee -a out.txt; fi; done\n";
    let log = "log() { printf '%s %s\\n' \"$(date)\" \"$*\" >&2; }\n".to_owned()
        + &"log starting step && run_step --flag value\n".repeat(300);
    let document = format!(
        "cat > notes.md <<'END'\n{}\nEND\n",
        "Some words of a long document that is written to a file.\n".repeat(1_000)
    );
    for text in [line.repeat(150), log, document] {
        let reader = Reader::read(&text, ScriptContext::default());
        assert!(
            !is_unread(&reader),
            "{} bytes, {} steps",
            text.len(),
            reader.steps()
        );
    }
}
