//! Programs with a language of their own in which a line or a flag passes text to a shell: editors,
//! debuggers, database clients, `sed`, `make`, and rarely used interpreters.

use super::facts::Facts;
use super::quote::split_unescaped;
use super::reader::Reader;
use super::value::{Field, Value};

/// Prefixes of lines that are passed to a shell.
const MARKS: [&str; 14] = [
    "!",
    "\\!",
    ".shell ",
    ".system ",
    "system ",
    "shell ",
    "platform shell ",
    ":!",
    "silent !",
    "r !",
    "read !",
    "w !",
    "sh -c ",
    "make ",
];
/// Prefixes of lines of editors and debuggers that are Python.
const PYTHON: [&str; 6] = ["python ", "python3 ", "py ", "py3 ", "pyx ", "pi "];
/// Words in code of rare languages that pass a text to a shell.
const RUNNERS: [&str; 14] = [
    "system", "exec", "shell", "cmd", "command", "run", "spawn", "process", "popen", "execute",
    "os:", "call", ".!", "`",
];
/// Maximum length of a line that is examined.
const LINE_BYTES: usize = 16 << 10;
/// Maximum number of lines in one script, and of texts in one piece of code.
const MAX_LINES: usize = 256;

/// Returns the lines that are examined.
fn examined<'t>(lines: impl Iterator<Item = &'t str>) -> impl Iterator<Item = &'t str> {
    lines
        .take(MAX_LINES)
        .filter(|line| line.len() <= LINE_BYTES)
}

impl Reader<'_> {
    /// Reads the commands that the lines of an editor's or client's script pass to a shell.
    pub(super) fn read_escape_lines(&mut self, text: &str) {
        for line in examined(text.lines()) {
            let line = line.trim_start();
            let marked = MARKS
                .iter()
                .filter(|mark| **mark != "make ")
                .find_map(|mark| line.strip_prefix(mark));
            // An address may precede the mark: `1,5!sort`.
            let addressed = || {
                line.split_once('!')
                    .filter(|(before, _)| before.len() <= 12)
                    .map(|(_, script)| script)
            };
            if let Some(script) = marked
                .or_else(addressed)
                .filter(|script| !script.starts_with('='))
            {
                self.read_shell_text(script.trim_end_matches([')', '"']));
            } else if let Some((_, program)) = line.split_once("PROGRAM '") {
                self.read_shell_text(
                    program
                        .rsplit_once('\'')
                        .map_or(program, |(program, _)| program),
                );
            } else if let Some((_, call)) = line.split_once("system(\"") {
                // gdb: `call (int)system("…")`.
                self.read_shell_text(call.rsplit_once('"').map_or(call, |(script, _)| script));
            } else if let Some(code) = PYTHON.iter().find_map(|mark| line.strip_prefix(mark)) {
                self.evaluate_code("python", code, Default::default());
            }
        }
    }

    /// Reads the arguments of `sed`: the command `e`, the flag `e` of `s`, and the files of `r` and
    /// `w`.
    pub(super) fn read_sed(&mut self, facts: &mut Facts, arguments: &[Field]) {
        let expressions: Vec<&Field> = arguments
            .iter()
            .zip(arguments.iter().skip(1))
            .filter(|(flag, _)| matches!(flag.text.as_str(), "-e" | "--expression" | "-ne"))
            .map(|(_, script)| script)
            .collect();
        let first = arguments.iter().find(|f| !f.text.starts_with('-'));
        let scripts = if expressions.is_empty() {
            first.into_iter().collect()
        } else {
            expressions
        };
        for script in scripts {
            for line in examined(script.text.split(['\n', ';'])) {
                self.read_sed_command(facts, line);
            }
        }
    }

    fn read_sed_command(&mut self, facts: &mut Facts, line: &str) {
        let command = behind_address(line);
        let mut chars = command.chars();
        match (chars.next(), chars.as_str()) {
            (Some('e'), script) => self.read_shell_text(script),
            (Some('w'), file) if file.starts_with(' ') => facts.redirect_write(file.trim(), None),
            (Some('r'), file) if file.starts_with(' ') => {
                facts.redirect_read(file.trim(), None);
            }
            (Some('s'), rest) => {
                let Some(by) = rest.chars().next().filter(char::is_ascii_punctuation) else {
                    return;
                };
                let parts: Vec<&str> = rest.get(1..).unwrap_or("").split(by).collect();
                let Some((flags, before)) = parts.split_last() else {
                    return;
                };
                let (flag, file) = flags
                    .split_once('w')
                    .map_or((*flags, None), |(flag, file)| (flag, Some(file)));
                if let Some(file) = file.filter(|file| file.starts_with(' ')) {
                    facts.redirect_write(file.trim(), None);
                }
                if flag.contains('e') && flag.len() <= 6 {
                    self.read_shell_text(
                        &before
                            .get(1..)
                            .unwrap_or_default()
                            .join(&by.to_string())
                            .replace('\\', ""),
                    );
                }
            }
            _ => {}
        }
    }

    /// Reads the recipes of a makefile.
    pub(super) fn read_makefile(&mut self, text: &str) {
        for line in examined(text.lines()) {
            let recipe = match line.strip_prefix('\t') {
                Some(recipe) => Some(recipe),
                None => line
                    .split_once(':')
                    .and_then(|(_, rule)| rule.split_once(';'))
                    .map(|(_, recipe)| recipe),
            };
            if let Some(recipe) = recipe {
                self.read_shell_text(
                    &recipe
                        .trim_start_matches([' ', '@', '-', '+'])
                        .replace("$$", "$"),
                );
            }
            for shell in line.split("$(shell ").skip(1) {
                self.read_shell_text(shell.rsplit_once(')').map_or(shell, |(script, _)| script));
            }
            if let Some((_, script)) = line.split_once("!=") {
                self.read_shell_text(script);
            }
        }
    }

    /// Reads the commands of a CMake script: `execute_process(COMMAND rm -rf x)`.
    pub(super) fn read_cmake(&mut self, text: &str) {
        for command in examined(text.split("COMMAND ").skip(1)) {
            self.read_shell_text(command.split([')', '\n']).next().unwrap_or(command));
        }
    }

    /// Reads code of a language without a parser here: if the code runs anything, each of its texts
    /// may be a command.
    pub(super) fn read_rare_code(&mut self, text: &str) {
        if !RUNNERS.iter().any(|word| text.contains(word)) {
            return;
        }
        for line in examined(text.lines()) {
            // Tcl: words, with braces as quotes.
            let command = line.split([';', '[']).find_map(|part| {
                let part = part.trim_start();
                ["exec ", "spawn ", "system ", "open |"]
                    .iter()
                    .find_map(|word| part.strip_prefix(word))
            });
            if let Some(command) = command.filter(|command| !command.starts_with('(')) {
                self.read_shell_text(&command.replace(['{', '}'], "'"));
            }
            let mut rest = line;
            for _ in 0..64 {
                let Some((inside, after)) = first_quoted(rest) else {
                    break;
                };
                if inside.contains(' ') {
                    self.read_shell_text(&inside.replace("\\\"", "\""));
                }
                rest = after;
            }
        }
    }

    /// Reads a shell's `-c` and its script if they are separate texts of a list: `["sh", "-c",
    /// "…"]`.
    pub(super) fn read_argument_lists(&mut self, code: &str) {
        for (at, _) in code.match_indices("-c").take(16) {
            let Some(behind) = code.get(at + 2..) else {
                continue;
            };
            let gap = behind.len()
                - behind
                    .trim_start_matches(['"', '\'', '`', ' ', ',', '\n'])
                    .len();
            let quote = behind
                .get(..gap)
                .and_then(|gap| gap.chars().last())
                .filter(|c| matches!(c, '"' | '\'' | '`'));
            if let Some((quote, text)) = quote.zip(behind.get(gap..))
                && let Some((script, _)) = split_unescaped(text, quote)
            {
                self.read_shell_text(&script.replace("\\\"", "\""));
            }
        }
    }

    fn read_shell_text(&mut self, script: &str) {
        let script = script.trim();
        if !script.is_empty() {
            self.read_nested_script(script, &Value::empty());
        }
    }
}

/// Returns a `sed` command without the address of the lines that it applies to: `1,5`, `$`,
/// `/regex/`, `\%regex%`, `!`.
fn behind_address(line: &str) -> &str {
    let mut rest = line.trim_start_matches([' ', '\t', '{']);
    for _ in 0..4 {
        let trimmed = rest.trim_start_matches(|c: char| {
            c.is_ascii_digit() || matches!(c, '$' | ',' | '~' | '!' | ' ' | '+')
        });
        rest = match trimmed.strip_prefix('/') {
            Some(regex) => split_unescaped(regex, '/').map_or("", |(_, after)| after),
            None => return trimmed,
        };
    }
    rest
}

/// Returns the first quoted text, and the text after it.
fn first_quoted(text: &str) -> Option<(&str, &str)> {
    let (_, marked) = text.split_at_checked(text.find(['"', '\'', '`'])?)?;
    let mut chars = marked.chars();
    let quote = chars.next()?;
    split_unescaped(chars.as_str(), quote)
}
