//! Reads cmd.exe scripts: carets, variables and parts of them, `for`, `set`, and the commands after
//! `call` and `start`.

use std::collections::HashMap;

use super::facts::{Behaviour, Facts};
use super::reader::Reader;
use super::value::{Field, Taint, Value, join_words};
use super::windows;
use crate::text::quick::WordSet;

/// Maximum number of variable substitutions.
const MAX_SUBSTITUTIONS: usize = 4_096;
/// Maximum number of lines of a file that a `for` reads.
const MAX_LINES: usize = 16;
/// What may be between the sign and the name of a variable of a `for`, the longest first: the parts
/// of its path that are meant.
const MODIFIERS: [&str; 9] = ["~dpnx", "~dp", "~nx", "~fs", "~f", "~s", "~n", "~", ""];

/// Programs that print what they download.
static DOWNLOADERS: WordSet =
    WordSet::new("curl wget invoke-webrequest invoke-restmethod webclient.downloadstring");

/// A cmd.exe session that reads a script.
pub(super) struct Prompt<'r, 'w> {
    reader: &'r mut Reader<'w>,
    variables: HashMap<String, String>,
    /// The variable of a `for`, and its values.
    loop_variable: Option<(String, Vec<String>)>,
    /// The origin of these values, if a command prints them.
    loop_taint: Taint,
    /// The output of earlier commands.
    echoed: String,
    labels: Vec<String>,
    has_start: bool,
    /// Whether there was a `for /l` without end.
    endless: bool,
    /// The flag of a `for` whose set follows.
    pending_flag: Option<String>,
    substitutions: usize,
}

/// The words of the command that is being read.
#[derive(Default)]
struct Line {
    /// The current word, and whether it has begun.
    word: Field,
    open: bool,
    words: Vec<Field>,
    /// Number of redirections whose targets follow.
    targets: usize,
    target_words: Vec<Field>,
}

impl Line {
    fn push(&mut self, c: char) {
        self.word.text.push(c);
        self.open = true;
    }

    fn end_word(&mut self) {
        if std::mem::take(&mut self.open) {
            let field = std::mem::take(&mut self.word);
            if self.targets > 0 {
                self.targets -= 1;
                self.target_words.push(field);
            } else {
                self.words.push(field);
            }
        }
    }
}

impl<'r, 'w> Prompt<'r, 'w> {
    pub(super) fn new(reader: &'r mut Reader<'w>) -> Self {
        Self {
            reader,
            variables: HashMap::new(),
            loop_variable: None,
            loop_taint: Taint::NONE,
            echoed: String::new(),
            labels: Vec::new(),
            has_start: false,
            endless: false,
            pending_flag: None,
            substitutions: 0,
        }
    }

    pub(super) fn run(&mut self, text: &str) {
        self.reader.spend_bytes(text.len());
        if !self.reader.spend_command() || !self.reader.go_deeper() {
            return;
        }
        // The characters still to be read, in reverse: the value of a variable is put in its place
        // and read again.
        let mut rest: Vec<char> = text.chars().rev().collect();
        let mut line = Line::default();
        let mut quoted = false;
        while let Some(c) = rest.pop() {
            if self.reader.is_spent() {
                break;
            }
            match c {
                '^' if !quoted => {
                    if let Some(next) = rest.pop()
                        && next != '\n'
                    {
                        line.push(next);
                    }
                }
                '"' => {
                    quoted = !quoted;
                    line.word.quoted = true;
                    line.open = true;
                }
                '%' | '!' if self.substitute_variable(c, &mut rest) => {}
                '&' | '|' | '\n' | '(' | ')' if !quoted => {
                    line.end_word();
                    self.run_command(
                        std::mem::take(&mut line.words),
                        std::mem::take(&mut line.target_words),
                    );
                }
                '>' | '<' if !quoted => {
                    if matches!(line.word.text.as_bytes(), [b'0'..=b'9']) {
                        line.word = Field::default();
                        line.open = false;
                    }
                    line.end_word();
                    line.targets += usize::from(
                        c == '>' && rest.last() != Some(&'&') && rest.last() != Some(&'>'),
                    );
                    if rest.last() == Some(&'&') {
                        rest.pop();
                        rest.pop();
                    }
                }
                c if c.is_whitespace() && !quoted => line.end_word(),
                c => {
                    line.push(c);
                    line.word.glob |= c == '*';
                }
            }
        }
        line.end_word();
        self.run_command(line.words, line.target_words);
        self.reader.come_up();
    }

    /// Replaces a variable by its value: `%name%`, `%name:~1,3%`, `%name:a=b%`, and the same with
    /// `!`.
    fn substitute_variable(&mut self, mark: char, rest: &mut Vec<char>) -> bool {
        let name: String = rest
            .iter()
            .rev()
            .take(256)
            .take_while(|c| **c != mark && **c != '\n')
            .collect();
        if name.is_empty()
            || rest.len() <= name.chars().count()
            || name.starts_with([' ', '~', '*'])
        {
            return false;
        }
        let (base, change) = name
            .split_once(':')
            .map_or((name.as_str(), None), |(base, change)| (base, Some(change)));
        let base = base.to_ascii_lowercase();
        let stored = self
            .variables
            .get(&base)
            .cloned()
            .or_else(|| windows::default_variable(&base).map(String::from));
        let Some(value) = stored else { return false };
        let value = match change {
            Some(change) => apply_change(&value, change),
            None => value,
        };
        self.substitutions += 1;
        self.reader.spend_bytes(value.len());
        if self.substitutions > MAX_SUBSTITUTIONS {
            self.reader.give_up();
        }
        rest.truncate(rest.len() - name.chars().count() - 1);
        rest.extend(value.chars().rev());
        true
    }

    fn run_command(&mut self, words: Vec<Field>, targets: Vec<Field>) {
        // `(echo a& echo b)>file`
        if words.is_empty() {
            for target in &targets {
                let text = Value::text(self.echoed.clone());
                self.reader.keep_windows_file(&target.text, text);
            }
        }
        if !words.is_empty()
            && let Some(flag) = self.pending_flag.take()
        {
            return self.bind_set(&flag, words);
        }
        let mut words = self.substitute_loop_variable(words);
        for _ in 0..16 {
            let Some(first) = words.first_mut() else {
                return;
            };
            let text = first.text.trim_start_matches('@').to_ascii_lowercase();
            match text.as_str() {
                "" | "call" | "do" | "else" | "if" | "not" | "exist" | "/i" | "in" => {
                    let conditional =
                        matches!(text.as_str(), "exist" | "if" | "not") || text == "/i";
                    words.remove(0);
                    // The condition: a file, or a comparison of two words.
                    let next = words
                        .first()
                        .map(|word| word.text.to_ascii_lowercase())
                        .unwrap_or_default();
                    let condition = (text == "exist"
                        || next.contains("==")
                        || next == "errorlevel"
                        || next == "defined")
                        && conditional
                        && !matches!(next.as_str(), "exist" | "not" | "/i");
                    if condition {
                        let takes_word = matches!(next.as_str(), "errorlevel" | "defined");
                        words.drain(..words.len().min(1 + usize::from(takes_word)));
                    }
                }
                "start" => {
                    words.remove(0);
                    self.has_start = true;
                    if self.endless {
                        self.reader.facts.push(Facts::new(Behaviour::ForkBomb));
                    }
                    while words.first().is_some_and(|word| {
                        word.text.starts_with('/')
                            || (word.quoted && !word.text.contains(['\\', '.']))
                    }) {
                        words.remove(0);
                    }
                }
                "for" => return self.read_for(&words),
                "rem" => return,
                "set" => return self.set_variable(&words),
                "goto" => {
                    let label = words
                        .get(1)
                        .map(|word| word.text.trim_start_matches(':').to_ascii_lowercase())
                        .unwrap_or_default();
                    if self.has_start && self.labels.contains(&label) {
                        self.reader.facts.push(Facts::new(Behaviour::ForkBomb));
                    }
                    return;
                }
                _ if text.starts_with(':') => {
                    if self.labels.len() < 64 {
                        self.labels.push(text.trim_start_matches(':').to_owned());
                    }
                    return;
                }
                _ => {
                    // `del/f/s` is `del /f/s`, and `cd..` is `cd ..`.
                    const BUILT_IN: [&str; 10] = [
                        "del", "erase", "rd", "rmdir", "cd", "echo", "dir", "copy", "move", "type",
                    ];
                    let head: String = text.chars().take_while(char::is_ascii_alphabetic).collect();
                    if head.len() < text.len()
                        && BUILT_IN.contains(&head.as_str())
                        && text
                            .get(head.len()..)
                            .is_some_and(|t| t.starts_with(['/', '.', '\\', ':']))
                    {
                        let tail = first
                            .text
                            .trim_start_matches('@')
                            .get(head.len()..)
                            .unwrap_or_default()
                            .trim_start_matches([':'])
                            .to_owned();
                        *first = Field::plain(head);
                        words.insert(1, Field::plain(tail));
                    }
                    break;
                }
            }
        }
        // `/s/q` are two flags.
        let mut split: Vec<Field> = Vec::with_capacity(words.len());
        for word in words.into_iter() {
            let pieces: Vec<&str> = word.text.split('/').skip(1).collect();
            if word.text.starts_with('/')
                && pieces.len() > 1
                && pieces.iter().all(|p| (1..=3).contains(&p.len()))
                && !word.quoted
            {
                split.extend(pieces.iter().map(|piece| Field::plain(format!("/{piece}"))));
            } else {
                split.push(word);
            }
        }
        // A command line that was downloaded.
        if split
            .first()
            .is_some_and(|word| word.taint.intersects(Taint::DOWNLOAD))
        {
            split.splice(..0, ["cmd", "/c"].map(Field::plain));
        }
        if split.is_empty() {
            return;
        }
        let name = windows::base_name(&split.remove(0).text);
        // A variable of another shell.
        if name.starts_with('$') {
            return;
        }
        if name == "echo" {
            if self.echoed.len() < 65_536 {
                self.echoed.push_str(&join_words(&split));
                self.echoed.push('\n');
            }
            for target in &targets {
                self.reader
                    .keep_windows_file(&target.text, Value::text(self.echoed.clone()));
            }
        }
        let echoed = self.echoed.clone();
        self.reader
            .run_windows_program(&name, split, &targets, Taint::NONE, &echoed);
    }

    /// Returns the words with the variable of a `for` replaced by its values.
    fn substitute_loop_variable(&self, words: Vec<Field>) -> Vec<Field> {
        let Some((name, items)) = &self.loop_variable else {
            return words;
        };
        let marks: Vec<String> = MODIFIERS
            .iter()
            .flat_map(|modifiers| ["%%", "%"].map(|sign| format!("{sign}{modifiers}{name}")))
            .collect();
        let mut out = Vec::with_capacity(words.len());
        for word in words {
            match marks.iter().find(|mark| word.text.contains(mark.as_str())) {
                Some(mark) => out.extend(items.iter().take(16).map(|item| {
                    let text = word.text.replace(mark.as_str(), item);
                    Field {
                        text,
                        ..word.clone()
                    }
                    .with(self.loop_taint)
                })),
                None => out.push(word),
            }
        }
        out
    }

    /// Handles `for %i in (…)`. Its set follows as the next command and is bound there.
    fn read_for(&mut self, words: &[Field]) {
        let name = words
            .iter()
            .find(|word| word.text.starts_with('%'))
            .map(|word| word.text.trim_start_matches('%').to_owned());
        let flag = words
            .get(1)
            .map(|word| word.text.to_ascii_lowercase())
            .unwrap_or_default();
        let folder = words
            .get(2)
            .filter(|_| flag == "/r")
            .map(|word| format!("{}\\*", word.text.trim_end_matches('\\')));
        self.pending_flag = Some(flag);
        self.loop_variable = name.map(|name| (name, folder.into_iter().collect()));
    }

    /// Binds the set of a `for`.
    fn bind_set(&mut self, flag: &str, mut words: Vec<Field>) {
        match flag {
            "/l" => {
                let numbers: Vec<&str> =
                    words.iter().flat_map(|word| word.text.split(',')).collect();
                self.endless |= numbers.get(1) == Some(&"0");
            }
            "/f" => {
                let command = words
                    .first()
                    .is_some_and(|word| word.text.starts_with(['\'', '`']));
                if let Some((_, items)) = &mut self.loop_variable {
                    *items = listed_paths(&words).unwrap_or_else(|| vec!["*".into()]);
                }
                if !command
                    && let Some(lines) = words.first().and_then(|file| self.lines_of(&file.text))
                    && let Some((_, items)) = &mut self.loop_variable
                {
                    *items = lines;
                }
                if command {
                    for word in &mut words {
                        word.text = word.text.trim_matches(['\'', '`']).to_owned();
                    }
                    self.bind_output(words);
                }
            }
            _ => {
                if let Some((_, items)) = &mut self.loop_variable
                    && items.is_empty()
                {
                    *items = words.into_iter().map(|word| word.text).collect();
                }
            }
        }
    }

    /// Returns the lines of a file that an earlier command wrote.
    fn lines_of(&mut self, file: &str) -> Option<Vec<String>> {
        let content = self.reader.file_to_run(&windows::base_name(file))?;
        let lines = content
            .as_text()?
            .lines()
            .map(|line| line.trim().to_owned());
        Some(
            lines
                .filter(|line| !line.is_empty())
                .take(MAX_LINES)
                .collect(),
        )
    }

    /// Binds the lines that a command prints to the variable of a `for`, as far as they are known.
    fn bind_output(&mut self, words: Vec<Field>) {
        let (echoed, facts) = (self.echoed.len(), self.reader.facts.len());
        let loop_variable = self.loop_variable.take();
        self.run_command(words, Vec::new());
        self.loop_variable = loop_variable;
        let downloads = |facts: &Facts| DOWNLOADERS.contains(facts.program.as_str());
        let new_facts = self.reader.facts.get(facts..).unwrap_or_default();
        self.loop_taint = if new_facts.iter().any(downloads) {
            Taint::DOWNLOAD
        } else {
            Taint::NONE
        };
        let lines: Vec<String> = self
            .echoed
            .get(echoed..)
            .unwrap_or_default()
            .lines()
            .map(str::to_owned)
            .collect();
        if let Some((_, items)) = self.loop_variable.as_mut().filter(|_| !lines.is_empty()) {
            *items = lines;
        }
    }

    fn set_variable(&mut self, words: &[Field]) {
        let text = join_words(words.iter().skip(1));
        if let Some((name, value)) = text.split_once('=')
            && self.variables.len() < 256
        {
            let name = name
                .trim_start_matches("/a ")
                .trim_start_matches("/p ")
                .trim();
            self.variables
                .insert(name.to_ascii_lowercase(), value.to_owned());
        }
    }
}

/// Returns the paths that `dir` lists with those below them; `None` for another command.
fn listed_paths(words: &[Field]) -> Option<Vec<String>> {
    let words = || words.iter().map(|word| word.text.trim_matches(['\'', '`']));
    let is_listing = words().next()?.eq_ignore_ascii_case("dir")
        && words().any(|word| word.eq_ignore_ascii_case("/s"));
    let paths = words().skip(1).filter(|word| !word.starts_with('/'));
    let below = |path: &str| match path.contains('*') {
        true => path.to_owned(),
        false => format!("{}\\*", path.trim_end_matches('\\')),
    };
    is_listing.then(|| paths.map(below).collect())
}

/// Returns a part of a variable's value, or the value with a text replaced by another.
fn apply_change(value: &str, change: &str) -> String {
    if let Some(part) = change.strip_prefix('~') {
        let chars: Vec<char> = value.chars().collect();
        let mut numbers = part.split(',').map(|n| n.trim().parse::<i64>().ok());
        let length = chars.len() as i64;
        let start = numbers.next().flatten().unwrap_or(0);
        let start = if start < 0 {
            (length + start).max(0)
        } else {
            start.min(length)
        };
        let end = match numbers.next().flatten() {
            Some(n) if n < 0 => length + n,
            Some(n) => start.saturating_add(n).min(length),
            None => length,
        };
        return chars
            .iter()
            .skip(start as usize)
            .take((end - start).max(0) as usize)
            .collect();
    }
    match change.split_once('=') {
        Some((pattern, by)) if !pattern.is_empty() && by.len() <= 64 && value.len() <= 8_192 => {
            value.replace(pattern, by)
        }
        _ => value.to_owned(),
    }
}
