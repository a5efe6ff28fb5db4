//! Tests of the commands that disguises result in, and of texts that only mention commands.

use std::time::{Duration, Instant};

use super::reader::{Reader, ScriptContext};

fn lines(text: &str) -> Vec<String> {
    super::clean::readings(text)
        .flat_map(|reading| Reader::read(&reading, ScriptContext::default()).facts)
        .map(|facts| facts.line())
        .collect()
}

fn assert_reads_as(text: &str, line: &str) {
    let lines = lines(text);
    assert!(
        lines.iter().any(|found| found == line),
        "{text:?} came down to {lines:?}, not to {line:?}"
    );
}

#[test]
fn scripts_are_resolved_word_by_word() {
    let resolved = |text| Reader::read(text, ScriptContext::default()).resolved;
    for (text, expected) in [
        ("c${zz}url -O h | s\\h", "curl -O h | sh"),
        ("a=c; b=url; $a$b -O h", "a=c; b=url; curl -O h"),
        ("w=CURL; ${w,,} -O h", "w=CURL; curl -O h"),
        (
            "c='curl -s'; for x in 1 2; do $c $x; done",
            "c='curl -s'; for x in 1 2; do curl -s 1 2; done",
        ),
        ("/usr/../bin/./curl -O h", "curl -O h"),
        ("/???/c?rl -O h", "curl -O h"),
        ("$(printf cd) / && ls", "cd / && ls"),
        ("f() { $1 -O h; }\nf curl", "f() { curl -O h; }\nf curl"),
        ("$'\\x63url' \"a b\" -O h", "curl \"a b\" -O h"),
    ] {
        let found = resolved(text);
        assert!(
            found.iter().any(|script| script == expected),
            "{text:?} came down to {found:?}"
        );
    }
    for text in [
        "curl -O \"$url\"",
        "'curl' -s \"h\"",
        "./curl x",
        "echo 'a b' \\; ls",
    ] {
        assert_eq!(resolved(text), Vec::<String>::new(), "{text:?}");
    }
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
        assert_reads_as(text, "rm -rf /tmp/x");
    }
}

#[test]
fn what_is_only_said_is_not_run() {
    for text in [
        "echo 'rm -rf /'",
        "grep -rn 'rm -rf /' docs/",
        "git commit -m 'rm -rf /'",
        "# rm -rf /",
        "printf '%s' \"rm -rf /\"",
    ] {
        assert!(
            !lines(text).iter().any(|line| line.starts_with("rm")),
            "{text}"
        );
    }
}

#[test]
fn what_programs_hand_to_a_shell_is_read() {
    for text in [
        "vim -c ':!rm -rf /tmp/x'",
        "man -P 'rm -rf /tmp/x' ls",
        "PAGER='rm -rf /tmp/x' git log",
        "export GIT_SSH_COMMAND='rm -rf /tmp/x'",
        "git rebase --exec 'rm -rf /tmp/x' HEAD~1",
        "git -c core.pager='rm -rf /tmp/x' log",
        "sed '1e rm -rf /tmp/x' f",
        "printf 'all:\\n\\trm -rf /tmp/x\\n' | make -f -",
        "echo '!rm -rf /tmp/x' | ed f",
        "tclsh <<< 'exec rm -rf /tmp/x'",
        "emacs --batch --eval '(shell-command \"rm -rf /tmp/x\")'",
        "somewrapper --flag sh -c 'rm -rf /tmp/x'",
        "sometool --post-command='rm -rf /tmp/x'",
        "sometool run rm -rf /tmp/x",
        "printf 'rm -rf /tmp/x\\0' | xargs -0 sh -c",
        "echo /tmp/x | xargs -I% rm -rf %",
        "parallel ::: 'rm -rf /tmp/x'",
        "ssh host <<< 'rm -rf /tmp/x'",
        "env -S 'rm -rf /tmp/x'",
        "echo 'rm -rf /tmp/x' > a.sh; sh a.sh",
        "cat > a.sh <<E\nrm -rf /tmp/x\nE\n. ./a.sh",
        "sudo -s 'rm -rf /tmp/x'",
        "readarray -d , -t q <<< 'rm,-rf,/tmp/x,y'; \"${q[@]:0:3}\"",
        "set -A k rm -rf /tmp/x; \"${k[@]}\"",
        "set c rm -rf /tmp/x; $c",
        "print 'rm|-rf|/tmp/x' | IFS='|' read -A w; ${w[@]}",
        "tclsh <<< 'exec {*}[list rm -rf /tmp/x]'",
        "exec 3> a.sh; echo 'rm -rf /tmp/x' >&3; exec 3>&-; . ./a.sh",
        "awk 'BEGIN{print \"rm -rf /tmp/x\" > \"a.sh\"}'; sh a.sh",
        "echo 'rm -rf /tmp/x' > a.sh; sh /proc/self/cwd/a.sh",
        "rm -rf \"$(expr substr \"$HOME\" 1 1)tmp/x\"",
        "rm -rf \"${HOME[1]}tmp/x\"",
        "jimsh -e 'if {1} {exec rm -rf /tmp/x}'",
        "tclsh <<< 'proc c {d} {foreach f [glob $d/x] {exec rm -rf $f}}; c /tmp'",
        "rm\u{2800}-rf\u{2800}/tmp/x",
    ] {
        assert_reads_as(text, "rm -rf /tmp/x");
    }
}

#[test]
fn other_languages_made_to_exhaust_end_in_time() {
    let doubling: String = (0..59)
        .map(|n| format!("$a{} = $a{n} + $a{n}; ", n + 1))
        .collect();
    let puts: String = (0..59)
        .map(|n| format!("set a{}=%a{n}%%a{n}%& ", n + 1))
        .collect();
    let sums: String = (0..59)
        .map(|n| format!("a{} = a{n} + a{n}\n", n + 1))
        .collect();
    let powershell = |reader: &mut Reader<'_>, text: &str| reader.read_windows_script(text);
    let python = |reader: &mut Reader<'_>, text: &str| {
        reader.evaluate_code("python3", text, super::value::Taint::NONE)
    };
    type Read = fn(&mut Reader<'_>, &str);
    let cases: [(Read, String); 16] = [
        (powershell, "$(".repeat(5_000)),
        (powershell, "\"$(".repeat(3_000)),
        (powershell, "iex '".repeat(2_000)),
        (powershell, "{(@(".repeat(5_000)),
        (powershell, format!("$a0 = 'xx'; {doubling} iex $a59")),
        (powershell, format!("set a0=xx& {puts} call %a59%")),
        (powershell, "'a' + ".repeat(20_000)),
        (powershell, "for %i in (a b c) do ".repeat(3_000)),
        (powershell, "%a%".repeat(20_000)),
        (powershell, "[char]1,".repeat(20_000)),
        (powershell, "x | ".repeat(20_000)),
        (python, "f(".repeat(20_000)),
        (python, format!("a0 = 'xx'\n{sums}os.system(a59)")),
        (python, "'a' + ".repeat(30_000)),
        (python, "eval(\"".repeat(3_000)),
        (python, "[x for x in ".repeat(3_000)),
    ];
    for (run, text) in cases {
        let start = Instant::now();
        let mut reader = Reader::default();
        run(&mut reader, &text);
        let beginning: String = text.chars().take(24).collect();
        assert!(
            start.elapsed() < Duration::from_secs(3),
            "{beginning} took {:?}",
            start.elapsed()
        );
        assert!(reader.facts.len() < 20_000, "{beginning}");
    }
}
