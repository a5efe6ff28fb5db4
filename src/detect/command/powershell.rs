//! Reads PowerShell: its words, strings and expressions. Expressions that consist only of texts are
//! evaluated.

use std::collections::HashMap;

use super::powershell_terms::{self as terms, Item};
use super::quote;
use super::reader::Reader;
use super::term::Term;
use super::value::{Field, Taint};
use super::windows;

/// Maximum nesting depth of brackets.
const MAX_FRAMES: usize = 64;

/// Maximum number of tables that are kept.
const MAX_TABLES: usize = 64;

/// The content of a bracket.
#[derive(Debug, PartialEq)]
pub(super) enum Kind {
    /// `( )`, `$( )`, `@( )` or the script itself.
    Group,
    Block,
    /// `@{ }`
    Hash,
    /// The arguments of a method, with its object and its name.
    Call(Term, String),
    /// An index after a value: `[1,2]`.
    Index(Term),
}

pub(super) struct Frame {
    pub(super) kind: Kind,
    pub(super) items: Vec<Item>,
    /// The variable that the statement assigns to, and whether it appends.
    pub(super) target: Option<(String, bool)>,
    /// The input from the pipe.
    input: Option<Term>,
    value: Term,
}

impl Frame {
    fn new(kind: Kind) -> Self {
        Self {
            kind,
            items: Vec::new(),
            target: None,
            input: None,
            value: Term::default(),
        }
    }
}

/// A PowerShell session.
pub(super) struct Session<'r, 'w> {
    pub(super) reader: &'r mut Reader<'w>,
    variables: HashMap<String, Term>,
    /// The tables that variables hold, as the parameters that `@name` passes to a command.
    tables: HashMap<String, Vec<Field>>,
    /// The table that the current statement ends with, in the same form.
    last_table: Option<Vec<Field>>,
    pub(super) aliases: HashMap<String, String>,
    /// Whether the session fetched content, opened a connection, or ran a text that is not known.
    pub(super) fetches: bool,
    pub(super) connects: bool,
    pub(super) runs_unknown: bool,
}

impl<'r, 'w> Session<'r, 'w> {
    pub(super) fn new(reader: &'r mut Reader<'w>) -> Self {
        Self {
            reader,
            variables: HashMap::new(),
            tables: HashMap::new(),
            last_table: None,
            aliases: HashMap::new(),
            fetches: false,
            connects: false,
            runs_unknown: false,
        }
    }

    /// Reads a script and returns its output.
    pub(super) fn run(&mut self, text: &str) -> Term {
        self.reader.spend_bytes(text.len());
        if !self.reader.spend_command() || !self.reader.go_deeper() {
            return Term::default();
        }
        let mut frames = vec![Frame::new(Kind::Group)];
        let mut at = 0;
        while at < text.len() && !self.reader.is_spent() {
            at = self.step(text, at, &mut frames).max(at + 1);
        }
        while frames.len() > 1 {
            self.close(&mut frames);
        }
        let value = match frames.pop() {
            Some(mut frame) => {
                self.finish_statement(&mut frame, false);
                frame.value
            }
            None => Term::default(),
        };
        self.reader.come_up();
        value
    }

    fn step(&mut self, text: &str, at: usize, frames: &mut Vec<Frame>) -> usize {
        let bytes = text.as_bytes();
        let (Some(&b), Some(frame)) = (bytes.get(at), frames.last_mut()) else {
            return text.len();
        };
        let next = bytes.get(at + 1).copied().unwrap_or(b' ');
        let glued = at > 0 && bytes.get(at - 1).is_some_and(|b| !b.is_ascii_whitespace());
        let after_value = glued && matches!(frame.items.last(), Some(Item::Value(_)));
        match b {
            b'\n' if matches!(frame.kind, Kind::Call(..) | Kind::Index(_)) => {}
            b'\n' | b';' if frame.kind == Kind::Hash => {}
            b'\n' | b';' => self.finish_statement(frame, false),
            b' ' | b'\t' | b'\r' => {}
            b'`' if next.is_ascii_whitespace() => return at + 2,
            b'<' if next == b'#' => {
                return quote::find_text(text, at, "#>") + 2;
            }
            b'#' if !glued => return quote::find(bytes, at, b'\n'),
            b'|' if next == b'|' => {
                self.finish_statement(frame, false);
                return at + 2;
            }
            b'|' => self.finish_statement(frame, true),
            b'&' if next == b'&' => {
                self.finish_statement(frame, false);
                return at + 2;
            }
            b'&' if frame.items.is_empty() => frame.items.push(Item::Sign('&')),
            b'&' if next.is_ascii_digit() => return at + 2,
            b'&' => self.finish_statement(frame, false),
            b'(' => self.open(frames, Kind::Group),
            b')' | b'}' => self.close(frames),
            b'{' => self.open(frames, Kind::Block),
            b'@' | b'$' if next == b'(' => {
                self.open(frames, Kind::Group);
                return at + 2;
            }
            b'@' if next == b'{' => {
                self.open(frames, Kind::Hash);
                return at + 2;
            }
            b'@' if matches!(next, b'\'' | b'"') => {
                let close = if next == b'"' { "\n\"@" } else { "\n'@" };
                let end = quote::find_text(text, at + 2, close);
                let inner = quote::cut(text, at + 2, end).trim_start_matches(['\r', '\n']);
                let term = if next == b'"' {
                    self.expand_text(inner)
                } else {
                    Term::text(inner)
                };
                self.push(frames, term);
                return end + 3;
            }
            b'[' if after_value => {
                let Some(Item::Value(subject)) = frame.items.pop() else {
                    return at + 1;
                };
                self.open(frames, Kind::Index(subject));
            }
            b'[' => return self.read_type_name(text, at, frames),
            b']' if matches!(frame.kind, Kind::Index(_)) => self.close(frames),
            b'\'' => {
                let end = terms::single_end(bytes, at + 1);
                let inner = quote::cut(text, at + 1, end).replace("''", "'");
                self.push(frames, Term::text(inner));
                return end + 1;
            }
            b'"' => {
                let end = terms::double_end(bytes, at + 1);
                let term = self.expand_text(quote::cut(text, at + 1, end));
                self.push(frames, term);
                return end + 1;
            }
            b'$' => return self.read_dollar(text, at, frames),
            b'.' if after_value && terms::starts_member(next) => {
                return self.read_member(text, at + 1, frames);
            }
            b':' if after_value && next == b':' => return self.read_member(text, at + 2, frames),
            b'.' if frame.items.is_empty()
                && (next.is_ascii_whitespace()
                    || matches!(next, b'(' | b'$' | b'\'' | b'"' | b'{' | b'[')) =>
            {
                frame.items.push(Item::Sign('.'));
            }
            b',' | b'=' => frame.items.push(Item::Sign(b as char)),
            b'+' if matches!(frame.items.last(), Some(Item::Value(_) | Item::Sign(_)))
                || frame.is_number() =>
            {
                frame.items.push(Item::Sign('+'));
            }
            b'>' => {
                frame.items.push(Item::Word(">".into()));
                return at + 1 + usize::from(next == b'>');
            }
            _ => return self.read_word(text, at, frames, String::new()),
        }
        at + 1
    }

    pub(super) fn push(&mut self, frames: &mut [Frame], term: Term) {
        self.reader.spend_bytes(term.size());
        if let Some(frame) = frames.last_mut() {
            frame.items.push(Item::Value(term));
        }
    }

    pub(super) fn open(&mut self, frames: &mut Vec<Frame>, kind: Kind) {
        if frames.len() >= MAX_FRAMES {
            self.reader.give_up();
            return;
        }
        // A block receives the input from the pipe as `$_`.
        if kind == Kind::Block
            && let Some(input) = frames.last().and_then(|frame| frame.input.clone())
        {
            self.set("_", input);
        }
        frames.push(Frame::new(kind));
    }

    fn close(&mut self, frames: &mut Vec<Frame>) {
        if frames.len() < 2 {
            return;
        }
        let Some(mut frame) = frames.pop() else {
            return;
        };
        let item = match frame.kind {
            Kind::Call(subject, name) => {
                let arguments: Vec<Term> = terms::evaluate_arguments(frame.items);
                Item::Value(self.call_method(subject, &name, &arguments))
            }
            Kind::Index(subject) => {
                let index = terms::evaluate_expression(frame.items);
                Item::Value(subject.at(&terms::expand_ranges(&index.items)))
            }
            Kind::Hash => {
                self.last_table = Some(terms::parameters(&frame.items));
                Item::Value(terms::values(frame.items))
            }
            Kind::Group => {
                self.finish_statement(&mut frame, false);
                Item::Value(frame.value)
            }
            Kind::Block => {
                self.finish_statement(&mut frame, false);
                Item::Block(frame.value)
            }
        };
        let block = matches!(item, Item::Block(_));
        if let Item::Value(term) = &item {
            self.reader.spend_bytes(term.size());
        }
        if let Some(frame) = frames.last_mut() {
            frame.items.push(item);
            // The text after a statement's block is the next statement.
            if block
                && matches!(frame.items.first(), Some(Item::Word(word)) if terms::is_keyword(word))
                && frame.input.is_none()
            {
                self.finish_statement(frame, false);
            }
        }
    }

    /// Ends a statement, or one part of a pipeline.
    fn finish_statement(&mut self, frame: &mut Frame, piped: bool) {
        let mut items = std::mem::take(&mut frame.items);
        let input = frame.input.take();
        let table = self.last_table.take();
        while let Some(Item::Word(word)) = items.first()
            && terms::is_keyword(word)
            && input.is_none()
        {
            items.remove(0);
        }
        if items.is_empty() {
            return;
        }
        let runs = match items.first() {
            Some(Item::Word(word)) => {
                super::term::parse_number(word).is_none()
                    && !word.starts_with('-')
                    && !word.contains("..")
            }
            Some(Item::Sign('&' | '.')) => true,
            _ => false,
        };
        let result = if runs {
            self.run_command(items, input)
        } else {
            terms::evaluate_expression(items)
        };
        let endless = matches!(frame.kind, Kind::Block)
            && frame.value.taint == Taint::NONE
            && !result.is_known();
        if let Some((name, appends)) = frame.target.take() {
            if let Some(table) = table.filter(|_| self.tables.len() < MAX_TABLES) {
                self.tables.insert(name.clone(), table);
            }
            let result = match Some(self.get(&name)).filter(|old| appends && old.is_known()) {
                Some(old) => old.plus(result),
                None => result,
            };
            self.set(&name, result);
        } else if piped {
            frame.input = Some(result);
        } else if !endless {
            frame.value = if frame.value.list {
                frame.value.clone().plus(result)
            } else {
                result
            };
        }
    }

    fn run_command(&mut self, items: Vec<Item>, input: Option<Term>) -> Term {
        let mut items = terms::combine_lists(terms::apply_casts(items))
            .into_iter()
            .peekable();
        while items
            .next_if(|item| matches!(item, Item::Sign('&' | '.')))
            .is_some()
        {}
        let (name, taint) = match items.next() {
            Some(Item::Word(word)) => (word, Taint::NONE),
            Some(Item::Value(term)) if term.name == "scriptblock" => {
                return self.evaluate(&term.items.concat(), term.taint);
            }
            Some(Item::Value(term))
                if !term.is_known() && term.taint.intersects(Taint::DOWNLOAD | Taint::DECODED) =>
            {
                return self.evaluate("", term.taint);
            }
            Some(Item::Value(term)) if term.is_known() => (term.items.concat(), term.taint),
            Some(Item::Value(term)) => (term.name, term.taint),
            Some(Item::Block(value)) => return value,
            _ => return Term::default(),
        };
        let mut fields: Vec<Field> = Vec::new();
        let mut targets: Vec<Field> = Vec::new();
        let mut block = None;
        let mut redirects = false;
        for item in items {
            let words = match item {
                Item::Word(word) if word == ">" => {
                    redirects = true;
                    continue;
                }
                Item::Word(word) => match self.table(&word) {
                    Some(parameters) => parameters.clone(),
                    None => terms::split_parameter(word),
                },
                Item::Value(term) => terms::to_fields(term),
                Item::Block(value) => {
                    block = Some(value);
                    continue;
                }
                _ => continue,
            };
            if std::mem::take(&mut redirects) {
                targets.extend(words)
            } else {
                fields.extend(words)
            }
        }
        self.run_cmdlet(
            &name,
            taint,
            fields,
            targets,
            input.unwrap_or_default(),
            block,
        )
    }

    /// Returns the parameters in the table that a word names: `@name`.
    fn table(&self, word: &str) -> Option<&Vec<Field>> {
        self.tables
            .get(&word.strip_prefix('@')?.to_ascii_lowercase())
    }

    pub(super) fn get(&self, name: &str) -> Term {
        let name = name.to_ascii_lowercase();
        let name = name
            .trim_start_matches("global:")
            .trim_start_matches("script:")
            .trim_start_matches("variable:");
        match self.variables.get(name) {
            Some(term) => term.clone(),
            None => {
                let secret = || {
                    super::code::secret_variable(&name.strip_prefix("env:")?.to_ascii_uppercase())
                };
                let usual = windows::default_variable(name.strip_prefix("env:").unwrap_or(name))
                    .map(Term::text);
                usual.or_else(secret).unwrap_or_default()
            }
        }
    }

    pub(super) fn set(&mut self, name: &str, term: Term) {
        self.reader.spend_bytes(term.size());
        if self.variables.len() < 1_024 {
            self.variables.insert(name.to_ascii_lowercase(), term);
        }
    }
}

impl Frame {
    fn is_number(&self) -> bool {
        matches!(self.items.last(), Some(Item::Word(word)) if super::term::parse_number(word).is_some())
    }
}
