//! Computes the output of programs that only produce or change text, if all of their input is
//! known.

use base64::Engine;
use base64::alphabet::{STANDARD, URL_SAFE};
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

use super::find;
use super::one_liners;
use super::quote;
use super::sed;
use super::value::{Field, Value, join_words};

/// Maximum length of a text that is processed.
const MAX_TEXT: usize = 256 * 1024;

/// Programs whose output can be computed.
const MAKERS: [&str; 48] = [
    "echo", "printf", "cat", "tee", "head", "tail", "sort", "uniq", "tac", "fold", "nl", "less",
    "more", "pv", "paste", "unbuffer", "rev", "base64", "gbase64", "basenc", "base32", "openssl",
    "xxd", "tr", "cut", "sed", "true", "false", ":", "test", "[", "sleep", "unset", "cd", "set",
    "export", "find", "dd", "pidof", "pgrep", "ls", "expr", "dirname", "basename", "getent",
    "realpath", "readlink", "print",
];

/// Returns the output of `program`, if it can be computed.
pub(super) fn output(
    program: &str,
    arguments: &[Field],
    input: &Value,
    file: impl Fn(&str) -> Option<Value>,
) -> Option<Value> {
    if !MAKERS.contains(&program) {
        return one_liners::printed_text(program, arguments).map(Value::text);
    }
    let has_flag = |flags: &[&str]| arguments.iter().any(|f| flags.contains(&f.text.as_str()));
    let operands: Vec<&str> = arguments
        .iter()
        .map(|f| f.text.as_str())
        .filter(|t| !t.starts_with('-') || *t == "-")
        .collect();
    // The input of a filter: a file that an earlier command wrote, or its standard input.
    let input_text = |operands: &[&str]| -> Option<String> {
        let value = match operands.iter().find(|o| **o != "-") {
            Some(name) => file(name)?,
            None => input.clone(),
        };
        value
            .as_text()
            .filter(|text| text.len() <= MAX_TEXT)
            .map(str::to_owned)
    };
    let result = match program {
        "true" | "false" | ":" | "test" | "[" | "sleep" | "unset" | "cd" | "set" | "export" => {
            Some(String::new())
        }
        "echo" => Some(echo(arguments)),
        // The one of ksh and zsh.
        "print" => Some(operands.join(" ") + "\n"),
        "printf" => printf(arguments),
        "cat" | "tee" | "head" | "tail" | "sort" | "uniq" | "tac" | "fold" | "nl" | "less"
        | "more" | "pv" | "paste" | "unbuffer" => {
            if matches!(program, "head" | "tail")
                && arguments
                    .iter()
                    .any(|f| f.text.starts_with("-c") || f.text.starts_with("-n+"))
            {
                return None;
            }
            let from = if program == "tee" {
                input_text(&[])
            } else if matches!(program, "cat" | "tac") && operands.len() > 1 {
                // The known contents of several files are used even if one of them is unknown.
                let parts: Vec<String> = operands
                    .iter()
                    .take(64)
                    .filter_map(|name| input_text(&[*name]))
                    .collect();
                (!parts.is_empty()).then(|| parts.concat())
            } else {
                input_text(&operands)
            };
            from.map(|text| {
                if program == "tac" {
                    text.lines().rev().collect::<Vec<_>>().join("\n")
                } else {
                    text
                }
            })
        }
        "find" => find::find_output(arguments),
        "ls" => find::ls_output(arguments),
        // The name of a process is used in place of its number, so that `kill` shows which process
        // is meant.
        "pidof" | "pgrep" => Some(operands.join(" ")).filter(|names| !names.is_empty()),
        "dd" if arguments.iter().all(|f| {
            ["if=", "bs=", "status=", "ibs=", "obs="]
                .iter()
                .any(|option| f.text.starts_with(option))
        }) =>
        {
            let from = arguments.iter().find_map(|f| f.text.strip_prefix("if="));
            input_text(
                from.filter(|from| {
                    !matches!(*from, "/dev/stdin" | "/dev/fd/0" | "/proc/self/fd/0")
                })
                .as_slice(),
            )
        }
        "rev" => input_text(&operands).map(|text| {
            text.lines()
                .map(|line| line.chars().rev().collect::<String>())
                .collect::<Vec<_>>()
                .join("\n")
        }),
        "base64" | "gbase64" if has_flag(&["-d", "-D", "--decode", "-di", "-id"]) => {
            base64_text(&input_text(&operands)?)
        }
        "basenc" if has_flag(&["-d", "--decode"]) => {
            let text = input_text(&operands)?;
            if has_flag(&["--base16"]) {
                hex_text(&text)
            } else if has_flag(&["--base32"]) {
                base32_text(&text)
            } else {
                base64_text(&text)
            }
        }
        "base32" if has_flag(&["-d", "-D", "--decode"]) => base32_text(&input_text(&operands)?),
        "openssl"
            if has_flag(&["base64", "-base64", "-a"])
                && has_flag(&["-d"])
                && !has_flag(&["-k", "-K", "-pass"]) =>
        {
            base64_text(&input_text(&[])?)
        }
        "xxd" if arguments.iter().any(|f| f.text.starts_with("-r")) || has_flag(&["-revert"]) => {
            hex_text(&input_text(&[])?)
        }
        "expr" => substring(&operands),
        "dirname" => operands.first().map(|path| dirname(path)),
        "basename" => operands
            .first()
            .and_then(|path| path.trim_end_matches('/').rsplit('/').next())
            .map(str::to_owned),
        "getent" => account(&operands),
        "realpath" | "readlink" => operands.last().map(|path| (*path).to_owned()),
        "tr" => tr(&input_text(&[])?, arguments),
        "cut" => cut(&input_text(&[])?, arguments),
        "sed" => {
            let (scripts, files) = sed::arguments(arguments);
            sed::edit(&input_text(&files)?, &scripts)
        }
        // A new and unique name, in the folder for such files.
        "mktemp" => Some("/tmp/tmp.XXXXXXXXXX".to_owned()),
        _ => None,
    };
    result
        .filter(|text| text.len() <= MAX_TEXT)
        .map(Value::text)
}

/// Returns the output of `expr substr TEXT POSITION LENGTH`; a home is written out, so that a slash can
/// be cut out of it.
fn substring(operands: &[&str]) -> Option<String> {
    let ["substr", text, position, length] = operands else {
        return None;
    };
    let text = text.replacen('~', "/home/user", 1);
    let position: usize = position.parse().ok()?;
    let length = length.parse().ok()?;
    let chars = text.chars().skip(position.checked_sub(1)?);
    Some(chars.take(length).collect())
}

/// Returns the folder that a path is in; that of a home has the homes of all users.
fn dirname(path: &str) -> String {
    match path.trim_end_matches('/').rsplit_once('/') {
        Some(("", _)) => "/".to_owned(),
        Some((folder, _)) => folder.to_owned(),
        None if path.starts_with('~') => "/home".to_owned(),
        None => ".".to_owned(),
    }
}

/// Returns the line of an account that `getent passwd NAME` prints.
fn account(operands: &[&str]) -> Option<String> {
    let ["passwd", name] = operands else {
        return None;
    };
    let home = if matches!(*name, "root" | "0") {
        "/root"
    } else {
        "/home/user"
    };
    Some(format!("{name}:x:1000:1000::{home}:/bin/sh\n"))
}

fn echo(arguments: &[Field]) -> String {
    let mut escapes = false;
    let mut ends_line = true;
    let mut at = 0;
    while let Some(field) = arguments.get(at)
        && field.text.len() > 1
        && field
            .text
            .strip_prefix('-')
            .is_some_and(|flags| flags.bytes().all(|b| matches!(b, b'n' | b'e' | b'E')))
    {
        escapes |= field.text.contains('e');
        ends_line &= !field.text.contains('n');
        at += 1;
    }
    let text = join_words(arguments.iter().skip(at)) + if ends_line { "\n" } else { "" };
    // The built-in `echo` of a shell may decode escapes by default; texts for other shells contain
    // few of them.
    if escapes || text.contains("\\x") || text.contains("\\0") {
        quote::decode_escapes(&text)
    } else {
        text
    }
}

fn printf(arguments: &[Field]) -> Option<String> {
    let skip = usize::from(arguments.first()?.text == "--");
    let format = quote::decode_escapes(&arguments.get(skip)?.text);
    let mut values = arguments
        .iter()
        .skip(skip + 1)
        .map(|f| f.text.as_str())
        .peekable();
    let mut out = String::new();
    loop {
        let before = values.len();
        let mut chars = format.chars();
        while let Some(c) = chars.next() {
            if c != '%' {
                out.push(c);
                continue;
            }
            match chars.find(|c| !matches!(c, '0'..='9' | '.' | '-' | '+' | '#')) {
                Some('%') => out.push('%'),
                Some('b') => out.push_str(&quote::decode_escapes(values.next().unwrap_or(""))),
                Some('s' | 'd' | 'i' | 'u' | 'q' | 'c') => {
                    out.push_str(values.next().unwrap_or(""))
                }
                Some(radix @ ('x' | 'o')) => {
                    let number = values.next()?.parse::<u64>().ok()?;
                    out.push_str(&match radix {
                        'x' => format!("{number:x}"),
                        _ => format!("{number:o}"),
                    });
                }
                _ => return None,
            }
        }
        if values.len() == 0 || values.len() == before || out.len() > MAX_TEXT {
            return Some(out);
        }
    }
}

/// Decodes base64 in either alphabet, with or without padding.
pub(super) fn base64_bytes(text: &str) -> Option<Vec<u8>> {
    let clean: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    let alphabet = if clean.contains(['-', '_']) {
        URL_SAFE
    } else {
        STANDARD
    };
    let lenient = GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true);
    GeneralPurpose::new(&alphabet, lenient)
        .decode(clean.trim_end_matches('='))
        .ok()
}

pub(super) fn base64_text(text: &str) -> Option<String> {
    Some(String::from_utf8_lossy(&base64_bytes(text)?).into_owned())
}

fn base32_text(text: &str) -> Option<String> {
    let mut bits = 0u32;
    let mut buffer = 0u32;
    let mut out = Vec::new();
    for c in text.chars().filter(|c| !c.is_whitespace() && *c != '=') {
        let value = match c.to_ascii_uppercase() {
            c @ 'A'..='Z' => c as u32 - 'A' as u32,
            c @ '2'..='7' => c as u32 - '2' as u32 + 26,
            _ => return None,
        };
        buffer = (buffer << 5 | value) & 0xfff;
        bits += 5;
        if bits >= 8 {
            bits -= 8;
            out.push((buffer >> bits) as u8);
        }
    }
    Some(String::from_utf8_lossy(&out).into_owned())
}

pub(super) fn hex_text(text: &str) -> Option<String> {
    let digits: Vec<u32> = text
        .replace("\\x", "")
        .chars()
        .filter(|c| !c.is_whitespace())
        .map_while(|c| c.to_digit(16))
        .collect();
    let bytes: Vec<u8> = digits
        .chunks_exact(2)
        .map(|pair| pair.iter().fold(0u32, |n, d| n * 16 + d) as u8)
        .collect();
    (!bytes.is_empty()).then(|| String::from_utf8_lossy(&bytes).into_owned())
}

fn tr(text: &str, arguments: &[Field]) -> Option<String> {
    let operands: Vec<Vec<char>> = arguments
        .iter()
        .filter(|f| !f.text.starts_with('-') || f.text == "-")
        .map(|f| tr_set(&f.text))
        .collect();
    let flags: String = arguments
        .iter()
        .filter(|f| f.text.starts_with('-') && f.text.len() > 1)
        .map(|f| f.text.as_str())
        .collect();
    let from = operands.first()?;
    let inverted = flags.contains(['c', 'C']);
    if flags.contains('d') {
        return Some(
            text.chars()
                .filter(|c| from.contains(c) == inverted)
                .collect(),
        );
    }
    let Some(to) = operands.get(1) else {
        return Some(text.to_owned());
    };
    if inverted {
        return None;
    }
    let last = to.last().copied()?;
    Some(
        text.chars()
            .map(|c| {
                from.iter()
                    .position(|f| *f == c)
                    .map_or(c, |at| to.get(at).copied().unwrap_or(last))
            })
            .collect(),
    )
}

fn tr_set(text: &str) -> Vec<char> {
    let classes = [
        ("[:upper:]", "A-Z"),
        ("[:lower:]", "a-z"),
        ("[:space:]", " \\t\\n"),
        ("[:digit:]", "0-9"),
        ("[:alpha:]", "A-Za-z"),
        ("[:punct:]", "!-/:-@"),
    ];
    let mut text = quote::decode_escapes(text);
    for (name, set) in classes {
        text = text.replace(name, &quote::decode_escapes(set));
    }
    let chars: Vec<char> = text.chars().take(1024).collect();
    let mut out = Vec::new();
    let mut at = 0;
    while let Some(&c) = chars.get(at) {
        match (chars.get(at + 1), chars.get(at + 2)) {
            (Some('-'), Some(&end)) if c <= end && (end as u32) - (c as u32) < 256 => {
                out.extend(c..=end);
                at += 3;
            }
            _ => {
                out.push(c);
                at += 1;
            }
        }
    }
    out
}

fn cut(text: &str, arguments: &[Field]) -> Option<String> {
    let value = |flag: &str| -> Option<String> {
        let at = arguments.iter().position(|f| f.text.starts_with(flag))?;
        let joined = arguments.get(at)?.text.get(flag.len()..)?;
        if joined.is_empty() {
            arguments.get(at + 1).map(|f| f.text.clone())
        } else {
            Some(joined.to_owned())
        }
    };
    let ranges = |list: &str| -> Vec<(usize, usize)> {
        list.split(',')
            .filter_map(|part| match part.split_once('-') {
                Some((from, to)) => {
                    Some((from.parse().unwrap_or(1), to.parse().unwrap_or(usize::MAX)))
                }
                None => part.parse().ok().map(|n| (n, n)),
            })
            .take(64)
            .collect()
    };
    let pick = |ranges: &[(usize, usize)], n: usize| {
        ranges.iter().any(|(from, to)| (*from..=*to).contains(&n))
    };
    let lines: Vec<String> = if let Some(list) = value("-c").or_else(|| value("-b")) {
        let ranges = ranges(&list);
        text.lines()
            .map(|line| {
                line.chars()
                    .enumerate()
                    .filter(|(n, _)| pick(&ranges, n + 1))
                    .map(|(_, c)| c)
                    .collect()
            })
            .collect()
    } else {
        let ranges = ranges(&value("-f")?);
        let by = value("-d").and_then(|d| d.chars().next()).unwrap_or('\t');
        let fields = |line: &str| {
            line.split(by)
                .enumerate()
                .filter(|(n, _)| pick(&ranges, n + 1))
                .map(|(_, f)| f.to_owned())
                .collect::<Vec<_>>()
        };
        text.lines()
            .map(|line| fields(line).join(&by.to_string()))
            .collect()
    };
    Some(lines.join("\n"))
}
