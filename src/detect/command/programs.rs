//! Interpreters: programs that run what they are given.

use std::sync::LazyLock;

use crate::text::quick::QuickMap;

/// Languages that a program runs, as far as their code is looked into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Runs {
    Shell,
    /// PowerShell or cmd.exe.
    Windows,
    Code,
}

/// POSIX shells and their kin.
const SHELLS: [&str; 19] = [
    "sh", "bash", "zsh", "dash", "ksh", "mksh", "ash", "csh", "tcsh", "fish", "rbash", "yash", "ksh93", "pdksh", "oksh",
    "elvish", "nu", "xonsh", "osh",
];
/// PowerShell and cmd.exe.
const WINDOWS: [&str; 4] = ["pwsh", "powershell", "cmd", "powershell_ise"];
/// Interpreters of other languages.
const CODE: [&str; 55] = [
    "R",
    "ghc",
    "octave-cli",
    "clisp",
    "racket",
    "janet",
    "pike",
    "dart",
    "clojure",
    "python",
    "pypy",
    "python3",
    "python2",
    "ipython",
    "perl",
    "ruby",
    "node",
    "nodejs",
    "deno",
    "bun",
    "php",
    "lua",
    "luajit",
    "tclsh",
    "wish",
    "expect",
    "awk",
    "gawk",
    "mawk",
    "nawk",
    "osascript",
    "Rscript",
    "julia",
    "groovy",
    "jjs",
    "jrunscript",
    "guile",
    "gdb",
    "irb",
    "jshell",
    "swift",
    "elixir",
    "erl",
    "octave",
    "ts-node",
    "tsx",
    "raku",
    "sbcl",
    "ghci",
    "runghc",
    "scala",
    "crystal",
    "wscript",
    "cscript",
    "mshta",
];

static RUNS: LazyLock<QuickMap<&str, Runs>> = LazyLock::new(|| {
    let lists: [(&[&'static str], Runs); 3] = [(&SHELLS, Runs::Shell), (&WINDOWS, Runs::Windows), (&CODE, Runs::Code)];
    lists.iter().flat_map(|(names, runs)| names.iter().map(|name| (*name, *runs))).collect()
});

/// What a program runs, if it is an interpreter.
pub(super) fn interpreter(program: &str) -> Option<Runs> {
    RUNS.get(program.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.')).copied()
}

/// The names of all interpreters.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    SHELLS.into_iter().chain(WINDOWS).chain(CODE)
}

/// Interpreters of languages that nobody here reads.
const RARE: [&str; 34] = [
    "tclsh",
    "wish",
    "expect",
    "osascript",
    "Rscript",
    "R",
    "julia",
    "groovy",
    "jjs",
    "jrunscript",
    "guile",
    "jshell",
    "swift",
    "elixir",
    "erl",
    "octave",
    "octave-cli",
    "raku",
    "sbcl",
    "ghci",
    "ghc",
    "runghc",
    "scala",
    "crystal",
    "clisp",
    "racket",
    "emacs",
    "janet",
    "gst",
    "pike",
    "dart",
    "deno",
    "bun",
    "clojure",
];

/// Whether `program` runs code of a language that nobody here reads.
pub(super) fn is_rare(program: &str) -> bool {
    RARE.contains(&program.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.'))
}
