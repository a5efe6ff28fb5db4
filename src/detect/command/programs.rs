//! Interpreters: programs that run what they are given.

/// Languages that a program runs, as far as their code is looked into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Runs {
    Shell,
    /// PowerShell or cmd.exe.
    Windows,
    Code,
}

/// What a program runs, if it is an interpreter.
pub(super) fn interpreter(program: &str) -> Option<Runs> {
    let base = program.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    match base {
        "sh" | "bash" | "zsh" | "dash" | "ksh" | "mksh" | "ash" | "csh" | "tcsh" | "fish" | "rbash" | "yash" | "ksh93"
        | "pdksh" | "oksh" | "elvish" | "nu" | "xonsh" | "osh" => Some(Runs::Shell),
        "pwsh" | "powershell" | "cmd" | "powershell_ise" => Some(Runs::Windows),
        "R" | "ghc" | "octave-cli" | "clisp" | "racket" | "janet" | "pike" | "dart" | "clojure" | "python" | "pypy"
        | "python3" | "python2" | "ipython" | "perl" | "ruby" | "node" | "nodejs" | "deno" | "bun" | "php" | "lua" | "luajit"
        | "tclsh" | "wish" | "expect" | "awk" | "gawk" | "mawk" | "nawk" | "osascript" | "Rscript" | "julia" | "groovy"
        | "jjs" | "jrunscript" | "guile" | "gdb" | "irb" | "jshell" | "swift" | "elixir" | "erl" | "octave" | "ts-node"
        | "tsx" | "raku" | "sbcl" | "ghci" | "runghc" | "scala" | "crystal" | "wscript" | "cscript" | "mshta" => Some(Runs::Code),
        _ => None,
    }
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
