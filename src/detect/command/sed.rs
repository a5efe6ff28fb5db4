//! Evaluates simple `sed` scripts (`s`, `y`, `d`) on known text.

use regex::RegexBuilder;

use super::quote::split_unescaped;
use super::value::Field;

/// Maximum number of commands in one script, and maximum size of a compiled pattern in bytes.
const MAX_COMMANDS: usize = 16;
const PATTERN_BYTES: usize = 64 << 10;
/// Maximum size of the result, in bytes.
const MAX_TEXT: usize = 256 << 10;

/// Returns the scripts among the arguments of `sed`, and the files.
pub(super) fn arguments(arguments: &[Field]) -> (Vec<&str>, Vec<&str>) {
    let mut scripts = Vec::new();
    let mut operands = Vec::new();
    let mut words = arguments.iter().map(|field| field.text.as_str());
    while let Some(word) = words.next() {
        if let Some(script) = word.strip_prefix("--expression=") {
            scripts.push(script);
        } else if word == "--expression"
            || word.starts_with('-') && !word.starts_with("--") && word.ends_with('e')
        {
            scripts.extend(words.next());
        } else if !word.starts_with('-') || word == "-" {
            operands.push(word);
        }
    }
    if scripts.is_empty() && !operands.is_empty() {
        scripts.push(operands.remove(0));
    }
    (scripts, operands)
}

/// Applies the scripts to a text. Returns `None` if one of them uses a command that is not
/// supported here.
pub(super) fn edit(text: &str, scripts: &[&str]) -> Option<String> {
    let mut text = text.to_owned();
    let mut commands = 0;
    for script in scripts {
        let mut rest = script.trim_start();
        while !rest.is_empty() {
            commands += 1;
            let (result, behind) = apply_command(&text, rest)?;
            if commands > MAX_COMMANDS || result.len() > MAX_TEXT {
                return None;
            }
            text = result;
            rest = behind.trim_start_matches([' ', ';', '\n', '\t']);
        }
    }
    Some(text)
}

/// Applies the first command of a script. Returns the result and the rest of the script.
fn apply_command<'s>(text: &str, script: &'s str) -> Option<(String, &'s str)> {
    let digits = script
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(script.len());
    let (address, rest) = match script.strip_prefix('$') {
        Some(rest) => (Some(text.lines().count()), rest),
        None => (
            script.get(..digits)?.parse::<usize>().ok(),
            script.get(digits..)?,
        ),
    };
    let chosen = |line: usize| address.is_none_or(|number| number == line + 1);
    let join_lines =
        |lines: Vec<String>| lines.join("\n") + if text.ends_with('\n') { "\n" } else { "" };
    let edit_chosen = |edit: &dyn Fn(&str) -> String| {
        let lines = text.lines().enumerate();
        let edited = lines.map(|(at, line)| {
            if chosen(at) {
                edit(line)
            } else {
                line.to_owned()
            }
        });
        join_lines(edited.collect())
    };
    if let Some(rest) = rest.strip_prefix('d') {
        let lines = text
            .lines()
            .enumerate()
            .filter(|(at, _)| !chosen(*at))
            .map(|(_, line)| line.to_owned());
        return Some((join_lines(lines.collect()), rest));
    }
    let kind = rest
        .chars()
        .next()
        .filter(|kind| matches!(kind, 's' | 'y'))?;
    let rest = rest.get(1..)?;
    let by = rest.chars().next().filter(|by| by.is_ascii_punctuation())?;
    let (pattern, rest) = split_unescaped(rest.get(1..)?, by)?;
    let (with, rest) = split_unescaped(rest, by)?;
    let end = rest.find([';', '\n', '}']).unwrap_or(rest.len());
    let flags = rest.get(..end)?.trim();
    let behind = rest.get(end..)?;
    if kind == 'y' {
        let to: Vec<char> = with.chars().collect();
        let from: Vec<char> = pattern.chars().collect();
        let translate = |c: char| {
            from.iter()
                .position(|source| *source == c)
                .and_then(|at| to.get(at).copied())
                .unwrap_or(c)
        };
        let edited = edit_chosen(&|line| line.chars().map(translate).collect());
        return Some((edited, behind));
    }
    if !flags
        .bytes()
        .all(|flag| matches!(flag, b'g' | b'i' | b'I' | b'p'))
    {
        return None;
    }
    let regex = RegexBuilder::new(&to_rust_syntax(pattern))
        .case_insensitive(flags.contains(['i', 'I']))
        .size_limit(PATTERN_BYTES)
        .build()
        .ok()?;
    let with = replacement(with);
    let most = usize::from(!flags.contains('g'));
    let edited = edit_chosen(&|line| regex.replacen(line, most, &with).into_owned());
    Some((edited, behind))
}

/// Translates a POSIX basic regular expression, in which `\(` groups and `(` is literal.
fn to_rust_syntax(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len() + 8);
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(c @ ('(' | ')' | '{' | '}' | '|' | '+' | '?')) => out.push(c),
                Some(c) if c.is_ascii_alphanumeric() => out.extend(['\\', c]),
                Some(c) => out.push_str(&regex::escape(c.encode_utf8(&mut [0; 4]))),
                None => {}
            },
            '(' | ')' | '{' | '}' | '|' | '+' | '?' => out.extend(['\\', c]),
            c => out.push(c),
        }
    }
    out
}

/// Translates a replacement: `&` and `\1` to `${0}` and `${1}`.
fn replacement(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '$' => out.push_str("$$"),
            '&' => out.push_str("${0}"),
            '\\' => match chars.next() {
                Some(digit @ '0'..='9') => out.extend(['$', '{', digit, '}']),
                Some('n') => out.push('\n'),
                Some(c) => out.push(c),
                None => {}
            },
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_scripts_are_carried_out() {
        for (text, script, expected) in [
            ("XX -rf /\n", "s/XX/rm/", "rm -rf /\n"),
            ("a b a b", "s/a/c/g;s/b/d/", "c d c b"),
            ("#rm -rf /\nls", "s/^#//", "rm -rf /\nls"),
            ("echo rm", "s|echo \\(.*\\)|\\1 -rf /|", "rm -rf /"),
            ("a\nb\nc", "2d", "a\nc"),
            ("a\nb", "$s/b/c/", "a\nc"),
            ("sn -sg /", "y/sng/rmf/", "rm -rf /"),
            ("a/b", "s#/#-#", "a-b"),
            ("x$1", "s/x/&$/", "x$$1"),
            ("ab", "s/A/c/I", "cb"),
        ] {
            assert_eq!(edit(text, &[script]).as_deref(), Some(expected), "{script}");
        }
        for script in ["s/a/b/e", "w out", "/a/,/b/d", "s/a/b"] {
            assert_eq!(edit("a", &[script]), None, "{script}");
        }
    }

    #[test]
    fn scripts_and_files_are_told_apart() {
        for (line, scripts, files) in [
            ("-i s/a/b/ f", "s/a/b/", "f"),
            ("-i -e s/a/b/ -e 2d f g", "s/a/b/ 2d", "f g"),
            ("-n --expression=p f", "p", "f"),
        ] {
            let fields: Vec<Field> = line.split(' ').map(Field::plain).collect();
            let (actual_scripts, actual_files) = arguments(&fields);
            assert_eq!(
                (actual_scripts.join(" "), actual_files.join(" ")),
                (scripts.to_owned(), files.to_owned()),
                "{line}"
            );
        }
    }
}
