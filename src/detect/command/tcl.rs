//! Reads Tcl and Expect scripts, in whose words braces are quotes: commands that run programs or
//! change files.

use std::collections::HashMap;

use super::facts::{Behaviour, Facts};
use super::quote;
use super::reader::Reader;
use super::term::Term;
use super::value::Value;
use crate::text::quick::WordSet;

/// Maximum number of commands of one script, and of variables. A script that exceeds this or one of
/// the limits below is unreadable.
const MAX_COMMANDS: usize = 1_024;
const MAX_VARIABLES: usize = 1_024;
/// Maximum number of bytes that variables may add to one script.
const EXPANDED_BYTES: usize = 64 << 10;
/// Maximum number of items of a list for which the body of a loop is read.
const MAX_ITEMS: usize = 8;
/// Maximum depth of scripts within scripts.
const MAX_NESTED: usize = 24;
/// Maximum length of the name of an array element, in bytes.
const ELEMENT_BYTES: usize = 64;
/// Prefix of the names of procedures among the variables.
const PROCEDURE: &str = "proc ";
/// Prefix of the value of a channel to a file.
const CHANNEL: &str = "channel ";
/// Commands whose words in braces are data.
static DATA: WordSet =
    WordSet::new("puts lappend list string regexp regsub format return send_user array");
/// Commands that run their words as scripts, in quotation marks or braces.
const BODIES: [&str; 8] = [
    "catch", "after", "if", "while", "for", "foreach", "time", "try",
];

/// A word of a command.
#[derive(Default)]
struct Word {
    text: String,
    braced: bool,
    /// Whether the word is preceded by `{*}`: its value is several words.
    expands: bool,
}

/// The variables that scripts set.
type Variables = HashMap<String, String>;

/// Reports whether an interpreter runs Tcl.
pub(super) fn is_tcl(program: &str) -> bool {
    let name = program.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    matches!(
        name,
        "tclsh" | "wish" | "expect" | "jimsh" | "itclsh" | "openocd"
    )
}

/// Returns the file that `open FILE w` opens to be written.
fn opened_file(script: &str) -> Option<&str> {
    let (name, mode) = script.strip_prefix("open ")?.trim().rsplit_once(' ')?;
    let name = name.trim().trim_matches(['{', '}', '"']);
    (mode.starts_with(['w', 'a']) && !name.starts_with('|')).then_some(name)
}

/// Reports whether a script opens a connection, and has a shell or itself run lines that are read.
fn runs_what_a_socket_sends(text: &str) -> bool {
    let Some((_, rest)) = text.split_once("[socket ") else {
        return false;
    };
    rest.contains("gets ")
        && ["exec ", "eval ", "uplevel "].iter().any(|command| {
            let mut calls = rest.split(command).skip(1);
            calls.any(|call| {
                let line = call.split(['\n', ';', '}']).next().unwrap_or_default();
                line.contains(['$', '['])
            })
        })
}

impl Reader<'_> {
    /// Reads a Tcl script.
    pub(super) fn read_tcl(&mut self, text: &str) {
        if runs_what_a_socket_sends(text) {
            self.facts.push(Facts::new(Behaviour::ReverseShell));
        }
        self.read_tcl_script(text, &mut Variables::new(), 0);
    }

    fn read_tcl_script(&mut self, text: &str, variables: &mut Variables, nested: usize) {
        self.spend_bytes(text.len());
        if nested >= MAX_NESTED {
            self.give_up();
        }
        if !self.spend_command() {
            return;
        }
        let mut at = 0;
        let mut room = Some(EXPANDED_BYTES);
        for _ in 0..=MAX_COMMANDS {
            let mut scan = Scan {
                text,
                at,
                variables: &mut *variables,
                nested_scripts: Vec::new(),
                room,
            };
            let Some(words) = scan.next_command() else {
                return;
            };
            let inner = std::mem::take(&mut scan.nested_scripts);
            (at, room) = (scan.at, scan.room);
            if variables.len() > MAX_VARIABLES || room.is_none() {
                return self.give_up();
            }
            for script in inner {
                self.read_tcl_script(script, variables, nested + 1);
            }
            self.read_tcl_command(&words, variables, nested + 1);
        }
        self.give_up();
    }

    fn read_tcl_command(&mut self, words: &[Word], variables: &mut Variables, nested: usize) {
        let Some((name, arguments)) = words.split_first() else {
            return;
        };
        let name = name.text.trim_start_matches("::");
        let texts = || arguments.iter().map(|word| word.text.as_str());
        match name {
            "exec" | "spawn" | "system" | "overlay" => {
                let program = arguments
                    .iter()
                    .skip_while(|word| word.text.starts_with('-'));
                let words: Vec<String> = program.flat_map(Word::shell_words).collect();
                // `system` passes its words to a shell, which parses them again.
                let line = if name == "system" {
                    texts().collect::<Vec<_>>().join(" ")
                } else {
                    words.join(" ")
                };
                self.read_tcl_shell_line(&line);
            }
            "open" => match arguments.split_first() {
                Some((file, _)) if file.text.starts_with('|') => texts()
                    .filter_map(|text| text.strip_prefix('|'))
                    .for_each(|line| self.read_tcl_shell_line(line)),
                Some((file, mode)) if mode.iter().all(|mode| mode.text.starts_with(['r', 'R'])) => {
                    self.report_command(&["cat"], &[&Term::text(file.text.clone())]);
                }
                _ => {}
            },
            "send" | "exp_send" => texts()
                .filter(|text| !text.starts_with('-'))
                .for_each(|line| self.read_tcl_shell_line(line)),
            "eval" | "uplevel" | "subst" => {
                let is_level = |text: &&str| {
                    name == "uplevel" && text.starts_with(|c: char| c == '#' || c.is_ascii_digit())
                };
                let script = texts().skip_while(is_level).collect::<Vec<_>>().join(" ");
                self.read_tcl_script(&script, variables, nested);
            }
            "file" => self.read_tcl_file(arguments),
            "foreach" => {
                if let [name, list, body] = arguments {
                    let items: Vec<&str> = list.text.split_whitespace().take(MAX_ITEMS).collect();
                    for item in if items.is_empty() { vec![""] } else { items } {
                        variables.insert(name.text.clone(), item.to_owned());
                        self.read_tcl_script(&body.text, variables, nested);
                    }
                }
            }
            "set" | "append" => {
                if let [variable, values @ ..] = arguments
                    && !values.is_empty()
                {
                    let value = variables.entry(variable.text.clone()).or_default();
                    if name == "set" {
                        value.clear();
                    }
                    values.iter().for_each(|word| value.push_str(&word.text));
                }
            }
            "proc" => {
                if let [name, names, body] = arguments {
                    variables.insert(
                        format!("{PROCEDURE}{}", name.text),
                        format!("{}\0{}", names.text, body.text),
                    );
                    self.read_tcl_script(&body.text, variables, nested);
                }
            }
            "puts" => {
                let channel = texts().find_map(|text| text.strip_prefix(CHANNEL));
                if let (Some(file), Some(text)) = (channel, texts().next_back()) {
                    self.append_file(file, Value::text(format!("{text}\n")));
                    self.note_written_by_code(file);
                }
            }
            name if DATA.contains(&name) => {}
            name if variables.contains_key(&format!("{PROCEDURE}{name}")) => {
                // Removed while it runs, so that it cannot call itself.
                let Some((key, procedure)) = variables.remove_entry(&format!("{PROCEDURE}{name}"))
                else {
                    return;
                };
                let (names, body) = procedure.split_once('\0').unwrap_or_default();
                for (name, value) in names.split_whitespace().zip(texts()) {
                    variables.insert(name.trim_matches(['{', '}']).to_owned(), value.to_owned());
                }
                self.read_tcl_script(body, variables, nested);
                variables.insert(key, procedure);
            }
            _ => {
                let is_script = |word: &&Word| {
                    (word.braced || BODIES.contains(&name))
                        && word.text.contains(char::is_whitespace)
                };
                for body in words.iter().filter(is_script) {
                    self.read_tcl_script(&body.text, variables, nested);
                }
            }
        }
    }

    /// Reads `file delete -force /x`, `file rename a b` or `file copy a b`.
    fn read_tcl_file(&mut self, arguments: &[Word]) {
        let Some((verb, arguments)) = arguments.split_first() else {
            return;
        };
        let force = arguments.iter().any(|word| word.text == "-force");
        let words: &[&str] = match verb.text.as_str() {
            "delete" if force => &["rm", "-r", "-f"],
            "delete" => &["rm", "-f"],
            "rename" => &["mv"],
            "copy" => &["cp", "-r"],
            _ => return,
        };
        let paths = arguments
            .iter()
            .filter(|word| !word.text.starts_with('-'))
            .map(|word| Term::text(word.text.clone()));
        let paths: Vec<Term> = paths.collect();
        self.report_command(words, &paths.iter().collect::<Vec<_>>());
    }

    fn read_tcl_shell_line(&mut self, line: &str) {
        let line = line.trim().trim_end_matches("\\r");
        if !line.is_empty() {
            self.read_nested_script(line, &Value::empty());
        }
    }
}

impl Word {
    /// Returns the word, quoted for a shell. Redirections and pipes are not quoted.
    fn shell_words(&self) -> Vec<String> {
        let sign = |text: &str| {
            matches!(
                text,
                "|" | "|&" | "&" | "<" | ">" | ">>" | "2>" | ">&" | "<<"
            )
        };
        let quoted = |text: &str| {
            if sign(text) {
                text.to_owned()
            } else {
                format!("'{}'", text.replace('\'', "'\\''"))
            }
        };
        if self.expands {
            self.text.split_whitespace().map(quoted).collect()
        } else {
            vec![quoted(&self.text)]
        }
    }
}

/// Splits a script into commands and words (Tcl's manual, `Tcl(n)`).
struct Scan<'t, 'v> {
    text: &'t str,
    at: usize,
    variables: &'v mut Variables,
    /// Scripts in brackets, which run before the command that contains them.
    nested_scripts: Vec<&'t str>,
    /// Bytes that variables may still add; `None` once they have added more.
    room: Option<usize>,
}

impl<'t> Scan<'t, '_> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// Returns the words of the next command; `None` at the end.
    fn next_command(&mut self) -> Option<Vec<Word>> {
        loop {
            match self.peek()? {
                b';' => self.at += 1,
                b if b.is_ascii_whitespace() => self.at += 1,
                b'#' => self.at = quote::find(self.text.as_bytes(), self.at, b'\n'),
                _ => break,
            }
        }
        let mut words = Vec::new();
        loop {
            match self.peek() {
                None | Some(b'\n' | b';') => return Some(words),
                Some(b'\\') if self.text.as_bytes().get(self.at + 1) == Some(&b'\n') => {
                    self.at += 2
                }
                Some(b) if b.is_ascii_whitespace() => self.at += 1,
                Some(_) => words.push(self.read_word()),
            }
        }
    }

    fn read_word(&mut self) -> Word {
        let expands = self
            .text
            .get(self.at..)
            .is_some_and(|rest| rest.starts_with("{*}"));
        if expands {
            self.at += 3;
        }
        if self.peek() == Some(b'{') {
            let text = self.read_balanced(b'{', b'}');
            return Word {
                text: text.to_owned(),
                braced: true,
                expands,
            };
        }
        let quoted = self.peek() == Some(b'"');
        self.at += usize::from(quoted);
        let mut text = String::new();
        while let Some(b) = self.peek() {
            match b {
                b'"' if quoted => {
                    self.at += 1;
                    break;
                }
                b';' | b'\n' | b' ' | b'\t' | b'\r' if !quoted => break,
                b'\\' if !quoted && self.text.as_bytes().get(self.at + 1) == Some(&b'\n') => break,
                b'\\' => self.read_escape(&mut text),
                b'[' => match self.read_balanced(b'[', b']') {
                    list if list.starts_with("list ") => {
                        let words = list.trim_start_matches("list ").split_whitespace();
                        let words: Vec<String> = words.map(|word| self.with_values(word)).collect();
                        self.push_value(&words.join(" "), &mut text);
                    }
                    // The value of a channel is the name of the file that it writes to.
                    script if opened_file(script).is_some() => {
                        let name = opened_file(script).unwrap_or_default();
                        let name = format!("{CHANNEL}{}", self.with_values(name));
                        self.push_value(&name, &mut text);
                    }
                    // The value of `glob` is its pattern, which the rules for paths understand.
                    script if script.starts_with("glob ") => {
                        let pattern = script.rsplit(' ').next().unwrap_or_default();
                        let pattern = self.with_values(pattern);
                        self.push_value(&pattern, &mut text);
                    }
                    script => self.nested_scripts.push(script),
                },
                b'$' => self.read_variable(&mut text),
                _ => {
                    let c = quote::char_at(self.text, self.at);
                    text.extend(c);
                    self.at += c.map_or(1, char::len_utf8);
                }
            }
        }
        Word {
            text,
            braced: false,
            expands,
        }
    }

    /// Returns a word with the variable at its start replaced by its value.
    fn with_values(&self, word: &str) -> String {
        let Some(rest) = word.strip_prefix('$') else {
            return word.to_owned();
        };
        let (name, rest) = quote::split_name(rest);
        let value = self.variables.get(name).map_or("", String::as_str);
        format!("{value}{rest}")
    }

    /// Adds the value that a word refers to.
    fn push_value(&mut self, value: &str, text: &mut String) {
        self.room = self.room.and_then(|room| room.checked_sub(value.len()));
        if self.room.is_some() {
            text.push_str(value);
        }
    }

    fn read_escape(&mut self, text: &mut String) {
        let rest = self.text.get(self.at + 1..).unwrap_or_default();
        if let Some((letter, length)) = decode_escape(rest) {
            text.push(letter);
            self.at += 1 + length;
            return;
        }
        let next = rest.chars().next();
        match next {
            Some('\n') => text.push(' '),
            Some('n' | 'r') => text.push('\n'),
            Some('t') => text.push('\t'),
            Some(c) => text.push(c),
            None => {}
        }
        self.at += 1 + next.map_or(0, char::len_utf8);
    }

    fn read_variable(&mut self, text: &mut String) {
        let rest = self.text.get(self.at + 1..).unwrap_or_default();
        let (name, length) = match rest.strip_prefix('{') {
            Some(inner) => inner
                .split_once('}')
                .map_or((inner, inner.len() + 1), |(name, _)| (name, name.len() + 2)),
            None => {
                let end = rest
                    .find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | ':')))
                    .unwrap_or(rest.len());
                let element = rest
                    .get(end..)
                    .filter(|rest| rest.starts_with('('))
                    .and_then(|rest| rest.find(')'));
                let end = end
                    + element
                        .filter(|length| *length < ELEMENT_BYTES)
                        .map_or(0, |length| length + 1);
                (rest.get(..end).unwrap_or_default(), end)
            }
        };
        match self
            .variables
            .get(name)
            .filter(|_| self.room.is_some())
            .cloned()
        {
            Some(value) => self.push_value(&value, text),
            // `$env(HOME)` is a variable of the shell, too.
            None if name == "env(HOME)" => text.push('~'),
            None => {}
        }
        self.at += 1 + length;
    }

    /// Returns the text between the current bracket and the closing one, or the end of the script,
    /// and moves past it.
    fn read_balanced(&mut self, open: u8, close: u8) -> &'t str {
        let start = self.at + 1;
        let bytes = self.text.as_bytes();
        let mut depth = 0_usize;
        while let Some(&b) = bytes.get(self.at) {
            match b {
                b'\\' => self.at += 1,
                _ if b == open => depth += 1,
                _ if b == close => depth -= 1,
                _ => {}
            }
            self.at += 1;
            if depth == 0 {
                return self.text.get(start..self.at - 1).unwrap_or_default();
            }
        }
        self.at = bytes.len();
        self.text.get(start..).unwrap_or_default()
    }
}

/// Returns the character whose code follows a backslash, and the length of the code: `x72`,
/// `u0072`, `162` (`Tcl(n)`, rule 9).
fn decode_escape(rest: &str) -> Option<(char, usize)> {
    let (digits, radix, most) = match rest.as_bytes().first()? {
        b'x' => (rest.get(1..)?, 16, 2),
        b'u' => (rest.get(1..)?, 16, 4),
        _ => (rest, 8, 3),
    };
    let length = digits
        .bytes()
        .take(most)
        .take_while(|byte| char::from(*byte).is_digit(radix))
        .count();
    let letter = u32::from_str_radix(digits.get(..length)?, radix)
        .ok()
        .and_then(char::from_u32)?;
    Some((letter, length + usize::from(radix == 16)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(script: &str) -> Vec<Vec<String>> {
        let mut variables = Variables::from([("d".to_owned(), "/srv".to_owned())]);
        let mut scan = Scan {
            text: script,
            at: 0,
            variables: &mut variables,
            nested_scripts: Vec::new(),
            room: Some(64),
        };
        std::iter::from_fn(|| scan.next_command())
            .map(|words| words.into_iter().map(|word| word.text).collect())
            .collect()
    }

    #[test]
    fn braces_and_quotes_keep_words_together() {
        for (script, expected) in [
            (
                "exec sh -c {a; b {c d}}",
                vec![vec!["exec", "sh", "-c", "a; b {c d}"]],
            ),
            (
                "a \"b $d c\"; e\\ f ${d}x",
                vec![vec!["a", "b /srv c"], vec!["e f", "/srvx"]],
            ),
            ("# a; b\nc \\\n d", vec![vec!["c", "d"]]),
            ("{*}{a b} $none", vec![vec!["a b", ""]]),
            ("a {b", vec![vec!["a", "b"]]),
            ("é {ü \\} ö}", vec![vec!["é", "ü \\} ö"]]),
            (
                "a\\\n b \\x72m \\162m \\u0072m",
                vec![vec!["a", "b", "rm", "rm", "rm"]],
            ),
            ("$a(x) ${d", vec![vec!["", "/srv"]]),
        ] {
            assert_eq!(words(script), expected, "{script}");
        }
        assert!(words("").is_empty() && words(" \n;").is_empty());
    }

    #[test]
    fn a_word_is_quoted_for_the_shell() {
        let word = |text: &str, expands| Word {
            text: text.to_owned(),
            braced: true,
            expands,
        };
        assert_eq!(word("it's; x", false).shell_words(), ["'it'\\''s; x'"]);
        assert_eq!(
            word("rm -rf x", true).shell_words(),
            ["'rm'", "'-rf'", "'x'"]
        );
        assert_eq!(word("|", false).shell_words(), ["|"]);
    }
}
