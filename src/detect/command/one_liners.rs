//! The output of one-liners in scripting languages that print only literal text.

use super::quote;
use super::value::Field;
use super::wrappers::value_of;

/// Maximum length of code that is examined, in bytes.
const MAX_CODE: usize = 16 * 1024;
/// Statements and functions that print.
const PRINTS: [&str; 9] = [
    "sys.stdout.write",
    "process.stdout.write",
    "io.write",
    "console.log",
    "printf",
    "print",
    "puts",
    "echo",
    "say",
];

/// Returns the text that `program` prints, if its code is in its arguments and prints nothing that
/// must be computed.
pub(super) fn printed_text(program: &str, arguments: &[Field]) -> Option<String> {
    let code = match program.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.') {
        "awk" | "gawk" | "mawk" | "nawk" => arguments.iter().find(|f| f.text.contains("BEGIN"))?,
        "python" | "pypy" | "perl" | "ruby" | "node" | "nodejs" | "php" | "lua" | "luajit"
        | "bun" => value_of(arguments, &["-c", "-e", "-E", "-r", "--eval"])?,
        _ => return None,
    };
    let mut rest = code.text.as_str();
    if rest.len() > MAX_CODE {
        return None;
    }
    let mut out = String::new();
    let mut before = ' ';
    while let Some(c) = rest.chars().next() {
        let word = if before.is_alphanumeric() || matches!(before, '_' | '.' | '$') {
            None
        } else {
            PRINTS
                .iter()
                .find_map(|word| rest.strip_prefix(word))
                .filter(|after| !after.starts_with(char::is_alphanumeric))
        };
        if let Some(after) = word {
            let (text, tail) = literals(after.trim_start_matches([' ', '(', '\t']))?;
            out.push_str(&text);
            out.push('\n');
            rest = tail;
            before = ' ';
        } else {
            before = c;
            rest = rest.get(c.len_utf8()..)?;
        }
    }
    (!out.is_empty()).then_some(out)
}

/// Returns the file that an awk script without input writes a literal text to, and the text: `BEGIN {
/// print "…" > "file" }`.
pub(super) fn written_by_awk(arguments: &[Field]) -> Option<(String, String)> {
    let script = arguments.iter().find(|f| f.text.contains("BEGIN"))?;
    let code = Some(script.text.as_str()).filter(|code| code.len() <= MAX_CODE)?;
    let (_, printed) = code.split_once("print")?;
    let printed = printed.trim_start_matches(['f', ' ', '(', '\t']);
    let (text, rest) = quote::split_unescaped(printed.strip_prefix('"')?, '"')?;
    let target = rest
        .trim_start_matches([')', ' ', '\t'])
        .strip_prefix('>')?;
    let target = target
        .trim_start_matches(['>', ' ', '\t'])
        .strip_prefix('"')?;
    let (name, _) = quote::split_unescaped(target, '"')?;
    Some((name.to_owned(), quote::decode_escapes(text) + "\n"))
}

/// Returns joined string literals and the text after them; `None` if more than literals is printed.
fn literals(mut rest: &str) -> Option<(String, &str)> {
    let mut out = String::new();
    loop {
        let mark = rest
            .chars()
            .next()
            .filter(|c| matches!(c, '\'' | '"' | '`'))?;
        let (text, after) = quote::split_unescaped(rest.get(1..)?, mark)?;
        if mark != '\'' && (text.contains('$') || text.contains("#{")) || text.contains('%') {
            return None;
        }
        out.push_str(&quote::decode_escapes(text));
        rest = after.trim_start_matches([' ', '\t']);
        match rest.chars().next() {
            None | Some(')' | ';' | '\n' | '}') => return Some((out, rest)),
            Some(joint @ ('+' | '.' | ',')) => {
                rest = rest.get(1..)?.trim_start_matches([' ', '\t', '.']);
                if joint == ',' {
                    out.push(' ');
                }
            }
            Some('\'' | '"') => {}
            Some(_) => return None,
        }
    }
}
