//! Disguises of single words: quotes, escapes, expansions, look-alikes, control characters.

use super::Disguise;

pub(crate) const DISGUISES: [(&str, Disguise); 24] = [
    ("quotes", |s, random| {
        program(s).map(|(word, rest)| {
            let cut = 1 + random.below(word.len() - 1);
            let quote = if random.coin() { "''" } else { "\"\"" };
            format!("{}{quote}{}{rest}", &word[..cut], &word[cut..])
        })
    }),
    ("single letters quoted", |s, _| {
        program(s).map(|(word, rest)| {
            format!(
                "{}{rest}",
                word.chars().map(|c| format!("'{c}'")).collect::<String>()
            )
        })
    }),
    ("backslashes", |s, _| {
        program(s).map(|(word, rest)| {
            format!(
                "{}{rest}",
                word.chars().map(|c| format!("\\{c}")).collect::<String>()
            )
        })
    }),
    ("empty expansions", |s, _| {
        program(s).map(|(word, rest)| format!("{}$@{}{rest}", &word[..1], &word[1..]))
    }),
    ("empty substitution", |s, _| {
        program(s).map(|(word, rest)| format!("{}$(){}{rest}", &word[..1], &word[1..]))
    }),
    ("unset variable", |s, _| {
        program(s).map(|(word, rest)| format!("{}${{zz}}{}{rest}", &word[..1], &word[1..]))
    }),
    ("IFS", |s, _| simple(s).map(|s| s.replace(' ', "${IFS}"))),
    ("IFS and $9", |s, _| {
        simple(s).map(|s| s.replace(' ', "$IFS$9"))
    }),
    ("braces", |s, _| {
        simple(s)
            .filter(|s| s.contains(' ') && !s.contains([',', '{', '=']))
            .map(|s| format!("{{{}}}", s.replace(' ', ",")))
    }),
    ("ansi-c word", |s, _| {
        program(s).map(|(word, rest)| {
            format!(
                "$'{}'{rest}",
                word.bytes()
                    .map(|b| format!("\\x{b:02x}"))
                    .collect::<String>()
            )
        })
    }),
    ("substituted word", |s, _| {
        program(s).map(|(word, rest)| format!("$(printf {word}){rest}"))
    }),
    ("backticked word", |s, _| {
        program(s).map(|(word, rest)| format!("`echo {word}`{rest}"))
    }),
    ("word in pieces", |s, _| {
        program(s).map(|(word, rest)| format!("a={}; b={}; $a$b{rest}", &word[..1], &word[1..]))
    }),
    ("replaced letters", |s, _| {
        program(s)
            .filter(|(word, _)| !word.contains('%'))
            .map(|(word, rest)| {
                let mask = format!("{}%{}", &word[..1], &word[1..]);
                format!("w={mask}; ${{w//%/}}{rest}")
            })
    }),
    ("lower case", |s, _| {
        program(s)
            .filter(|(word, _)| !word.contains(|c: char| c.is_ascii_uppercase()))
            .map(|(word, rest)| format!("w={}; ${{w,,}}{rest}", word.to_ascii_uppercase()))
    }),
    ("cut out", |s, _| {
        program(s).map(|(word, rest)| format!("w=xx{word}yy; ${{w:2:{}}}{rest}", word.len()))
    }),
    ("path", |s, _| {
        program(s)
            .filter(|(word, _)| !BUILT_IN.contains(word))
            .map(|(word, rest)| format!("/usr/bin/{word}{rest}"))
    }),
    ("odd path", |s, _| {
        program(s)
            .filter(|(word, _)| !BUILT_IN.contains(word))
            .map(|(word, rest)| format!("/usr/../usr//bin/./{word}{rest}"))
    }),
    ("command", |s, _| {
        program(s)
            .filter(|(word, _)| !matches!(*word, "exec"))
            .map(|(word, rest)| format!("command {word}{rest}"))
    }),
    ("continued lines", |s, _| {
        simple(s).map(|s| s.replacen(' ', " \\\n  ", 2))
    }),
    ("full-width", |s, _| {
        program(s).map(|(word, rest)| {
            let wide = |c: char| {
                if c.is_ascii_graphic() {
                    char::from_u32(c as u32 + 0xfee0).unwrap_or(c)
                } else {
                    c
                }
            };
            format!("{}{rest}", word.chars().map(wide).collect::<String>())
        })
    }),
    ("zero-width", |s, _| {
        program(s).map(|(word, rest)| format!("{}\u{200b}{}{rest}", &word[..1], &word[1..]))
    }),
    ("carriage return", |s, _| Some(format!("ls # list\r{s}"))),
    ("terminal colours", |s, _| {
        program(s).map(|(word, rest)| format!("\u{1b}[31m{word}\u{1b}[0m{rest}"))
    }),
];

/// Commands without an executable file.
const BUILT_IN: [&str; 22] = [
    "cd", "exec", "history", "unset", "export", "set", "ulimit", "eval", "source", "trap", "alias",
    "read", "declare", "command", "builtin", "true", "umask", "wait", "shopt", "typeset", "enable",
    "hash",
];

/// Returns the first word, if it is the plain name of a program, and the text after it.
fn program(script: &str) -> Option<(&str, &str)> {
    let end = script
        .find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')))
        .unwrap_or(script.len());
    let (word, rest) = script.split_at(end);
    let keyword = matches!(
        word,
        "if" | "for"
            | "while"
            | "until"
            | "case"
            | "function"
            | "select"
            | "time"
            | "do"
            | "then"
            | "coproc"
    );
    let plain = word.len() > 1
        && word.starts_with(|c: char| c.is_ascii_lowercase())
        && (rest.is_empty() || rest.starts_with(' '));
    // The word may be the name of an alias or a function.
    (plain && !keyword && !matches!(word, "alias")).then_some((word, rest))
}

/// Returns the script if it is one command of plain words.
fn simple(script: &str) -> Option<&str> {
    let plain = |c: char| {
        c.is_ascii_alphanumeric()
            || matches!(
                c,
                ' ' | '-' | '_' | '.' | '/' | ':' | '+' | '@' | '%' | '=' | ','
            )
    };
    (script.chars().all(plain) && program(script).is_some() && !script.contains("  "))
        .then_some(script)
}
