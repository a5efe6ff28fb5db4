//! Reads code of interpreters: evaluates expressions that consist only of texts, and reports calls
//! as commands.

use super::code_flow::{Flow, Frame, Kind};
use super::code_imports;
use super::code_lex::{self, Language, Token};
use super::code_names;
use super::compiled;
use super::env_secrets;
use super::facts::{Behaviour, Facts};
use super::reader::Reader;
use super::term::{self, Term};
use super::value::{Taint, Value};

/// Maximum nesting depth of brackets.
const MAX_FRAMES: usize = 128;

impl Reader<'_> {
    /// Reads code of the language that `program` runs.
    pub(super) fn code(&mut self, program: &str, text: &str, taint: Taint) {
        let language = Language::of_program(program);
        let deletes_in_walk = language == Language::Compiled && compiled::deletes_in_walk(text);
        let mut flow = Flow {
            taint,
            deletes_in_walk,
            ..Flow::default()
        };
        self.more_code(language, text, &mut flow);
        let executes = if flow.evaluates {
            flow.taint.without(Taint::SOCKET)
        } else {
            Taint::NONE
        };
        let sends = flow
            .sent
            .without(Taint::DOWNLOAD | Taint::DECODED | Taint::SOCKET | Taint::SECRET_VARIABLE);
        if executes != Taint::NONE || sends != Taint::NONE {
            self.facts.push(Facts {
                program: program.to_owned(),
                executes,
                sends,
                ..Facts::default()
            });
        }
        if flow.connects && flow.shells {
            self.facts.push(Facts::new(Behaviour::ReverseShell));
        }
    }

    /// Reads code, or code within code, with the names that are already known.
    pub(super) fn more_code(&mut self, language: Language, text: &str, flow: &mut Flow) {
        self.spend_bytes(text.len());
        if !self.spend_command() || !self.go_deeper() {
            return;
        }
        self.scripts.push(text.to_owned());
        code_names::behaviour(self, text);
        match code_lex::lex(text, language) {
            Some(tokens) => {
                self.pass(language, &tokens, flow);
                // A second pass resolves names that are used before they are known: the arguments
                // of a function, or a loop that follows the code that it repeats.
                if std::mem::take(&mut flow.again) && !self.is_spent() {
                    self.pass(language, &tokens, flow);
                }
            }
            None => self.give_up(),
        }
        self.come_up();
    }

    fn pass(&mut self, language: Language, tokens: &[Token], flow: &mut Flow) {
        let mut frames = vec![Frame::default()];
        let mut at = 0;
        while at < tokens.len() && !self.is_spent() {
            at = self
                .step(language, tokens, at, &mut frames, flow)
                .max(at + 1);
        }
        while frames.len() > 1 {
            self.close(language, &mut frames, flow);
        }
        if let Some(frame) = frames.last_mut() {
            frame.end(flow);
        }
    }

    fn step(
        &mut self,
        language: Language,
        tokens: &[Token],
        at: usize,
        frames: &mut Vec<Frame>,
        flow: &mut Flow,
    ) -> usize {
        let token = tokens.get(at);
        if matches!(
            token,
            Some(Token::Line | Token::Sign(';' | ')' | ']' | '}'))
        ) {
            while frames.len() > 1 && frames.last().is_some_and(|frame| frame.loose) {
                self.close(language, frames, flow);
            }
        }
        let depth = frames.len();
        let (Some(token), Some(frame)) = (token, frames.last_mut()) else {
            return at + 1;
        };
        let next = tokens.get(at + 1);
        match token {
            Token::Command(script) => {
                let script = flow.filled(script);
                flow.shells |= script.contains("$_");
                let out = self.inner_script(&script, &Value::nothing());
                frame.operand(Term::unknown(out.taint));
            }
            Token::Text(text) => {
                let piped = matches!(next, Some(Token::Sign('|')))
                    || matches!(tokens.get(at.wrapping_sub(1)), Some(Token::Sign('|')));
                if language == Language::Awk && piped {
                    self.inner_script(text, &Value::nothing());
                }
                frame.operand(Term::text(text.clone()));
            }
            Token::Filled(text) => {
                let text = flow.filled(text);
                // $`rm -rf /`
                if let Some(term) = frame
                    .value
                    .take_if(|term| term.name == "$" || term.name.ends_with(".$"))
                {
                    self.code_call(language, term, &[Term::text(text)], flow);
                } else {
                    frame.operand(Term::text(text));
                }
            }
            Token::Number(text) => frame.operand(Term::text(text.clone())),
            Token::Name(name) => return self.name(language, name, tokens, at, frames, flow),
            Token::Line if depth == 1 || matches!(frame.kind, Kind::Block) => frame.end(flow),
            Token::Line => {}
            Token::Sign(sign) => self.sign(language, *sign, tokens, at, frames, flow),
        }
        at + 1
    }

    fn sign(
        &mut self,
        language: Language,
        sign: char,
        tokens: &[Token],
        at: usize,
        frames: &mut Vec<Frame>,
        flow: &mut Flow,
    ) {
        let depth = frames.len();
        let Some(frame) = frames.last_mut() else {
            return;
        };
        let next = tokens.get(at + 1);
        let before = at.checked_sub(1).and_then(|at| tokens.get(at));
        let behind_value = frame.value.is_some() && frame.sign.is_none();
        let compared = matches!(next, Some(Token::Sign('=' | '~')))
            || matches!(before, Some(Token::Sign('=' | '!' | '<' | '>')));
        match sign {
            '(' | '[' if behind_value => {
                let of = frame.value.take().unwrap_or_default();
                frame.sign = frame.held_sign.take();
                let held = frame.held.take();
                frame.value = held;
                self.open(
                    frames,
                    if sign == '(' {
                        Kind::Call(of)
                    } else {
                        Kind::Index(of)
                    },
                );
            }
            '(' | '[' => self.open(frames, Kind::Group),
            '{' if behind_value && language == Language::Perl && frame.last_name == "ENV" => {
                let of = frame.value.take().unwrap_or_default();
                self.open(frames, Kind::Index(of));
            }
            '{' => {
                // The head of a loop ends here: `for _, d := range dirs {`.
                if language == Language::Compiled
                    && !frame.targets.is_empty()
                    && frame.value.as_ref().is_some_and(Term::is_known)
                {
                    frame.end(flow);
                }
                // `each { |f| … }`
                if language == Language::Ruby && matches!(next, Some(Token::Sign('|'))) {
                    let of = frame.value.clone().unwrap_or_default();
                    if let Some(Token::Name(name)) = tokens.get(at + 2) {
                        flow.keep(
                            name,
                            Term {
                                name: String::new(),
                                ..of
                            },
                        );
                    }
                }
                self.open(frames, Kind::Block);
            }
            ')' | ']' | '}' => self.close(language, frames, flow),
            ';' => frame.end(flow),
            ',' => {
                frame.settle();
                let value = frame.value.take();
                frame.done.extend(value);
            }
            '=' if compared => frame.value = None,
            // A key, or the parameters of an arrow function.
            '=' if matches!(next, Some(Token::Sign('>')))
                || matches!(frame.kind, Kind::Call(_)) =>
            {
                frame.value = None;
                frame.sign = None;
            }
            '=' => {
                let appends = matches!(before, Some(Token::Sign('+' | '.')));
                let old = flow
                    .names
                    .get(&frame.last_name)
                    .cloned()
                    .filter(|_| appends);
                frame.clear();
                frame.sign = old.is_some().then_some('+');
                frame.value = old;
                frame.targets = std::mem::take(&mut frame.seen);
            }
            ':' if matches!(frame.kind, Kind::Index(_)) => {
                let value = frame.value.take().unwrap_or_else(|| Term::text(":"));
                frame.done.push(value);
            }
            ':' if language == Language::Lua && frame.value.is_some() => frame.sign = Some('>'),
            ':' if depth > 1 => {
                // `{ exec: run }` makes `run` another name for `exec`. Otherwise, the key of a
                // table is not a value.
                if let (Kind::Block, Some(Token::Name(alias)), Some(Token::Sign(',' | '}'))) =
                    (&frame.kind, next, tokens.get(at + 2))
                {
                    flow.keep(alias, Term::named(frame.last_name.clone()));
                }
                frame.value = None;
                frame.sign = None;
            }
            // `home, _ := f()`
            ':' if language == Language::Compiled && matches!(next, Some(Token::Sign('='))) => {}
            // `let x: &str = …`: a type.
            ':' if language == Language::Compiled => frame.clear(),
            // The head of a loop ends here.
            ':' => frame.end(flow),
            '.' if language == Language::Lua && matches!(before, Some(Token::Sign('.'))) => {}
            '.' if language == Language::Lua && matches!(next, Some(Token::Sign('.'))) => {
                frame.settle();
                frame.sign = Some('+');
            }
            '.' if !language.joins_with_dot() && frame.value.is_some() => frame.sign = Some('>'),
            '.' if !language.joins_with_dot() => {}
            '>' if matches!(before, Some(Token::Sign('-'))) && frame.value.is_some() => {
                frame.sign = Some('>')
            }
            '-' if matches!(next, Some(Token::Sign('>'))) => {}
            '+' | '.' | '%' | '/' | '|' | '-' => {
                frame.settle();
                frame.sign = Some(sign);
            }
            _ => {}
        }
    }

    fn open(&mut self, frames: &mut Vec<Frame>, kind: Kind) {
        if frames.len() >= MAX_FRAMES {
            self.give_up();
            return;
        }
        frames.push(Frame {
            kind,
            ..Frame::default()
        });
    }

    fn close(&mut self, language: Language, frames: &mut Vec<Frame>, flow: &mut Flow) {
        if frames.len() < 2 {
            return;
        }
        let Some(mut frame) = frames.pop() else {
            return;
        };
        frame.settle();
        if !frame.targets.is_empty()
            && (frame.result.is_some()
                || flow.again
                || !matches!(frame.kind, Kind::Call(_) | Kind::Index(_)))
        {
            flow.again |= !matches!(frame.kind, Kind::Block);
            let value = frame.value.clone();
            frame.end(flow);
            frame.value = frame.result.take().or(value);
        }
        let list = frames.len() > 1 || !frame.done.is_empty();
        let mut done = frame.done;
        done.extend(frame.value.take());
        let block = matches!(frame.kind, Kind::Block);
        let group = matches!(frame.kind, Kind::Group);
        let made = match frame.kind {
            Kind::Call(callee) => self.code_call(language, callee, &done, flow),
            Kind::Index(of) => index(of, &done),
            Kind::Group if done.len() == 1 => {
                let mut only = done.pop().unwrap_or_default();
                only.list |= list && only.items.len() > 1;
                only
            }
            Kind::Group | Kind::Block => {
                let taint = done
                    .iter()
                    .fold(Taint::NONE, |taint, term| taint | term.taint);
                Term::list(
                    done.into_iter()
                        .flat_map(|term| term.items)
                        .take(1_024)
                        .collect(),
                )
                .with(taint)
            }
        };
        self.spend_bytes(made.size());
        if language == Language::Perl && group && made.is_known() {
            flow.keep("_", made.clone());
        }
        let Some(frame) = frames.last_mut() else {
            return;
        };
        if block
            && (frame.value.is_some() || !(made.is_known() || made.taint != Taint::NONE))
            && frame.targets.is_empty()
        {
            // A body, not a table.
            if !matches!(frame.kind, Kind::Call(_)) {
                frame.end(flow);
            }
            return;
        }
        frame.seen.clear();
        frame.operand(made);
    }

    fn name(
        &mut self,
        language: Language,
        name: &str,
        tokens: &[Token],
        at: usize,
        frames: &mut Vec<Frame>,
        flow: &mut Flow,
    ) -> usize {
        let Some(frame) = frames.last_mut() else {
            return at + 1;
        };
        let opens = matches!(tokens.get(at + 1), Some(Token::Sign('(')));
        let member = frame.sign == Some('>') && frame.value.is_some();
        if !member {
            match name {
                "import" | "from" | "use" if !opens => {
                    return code_imports::imports(tokens, at, flow);
                }
                "def" | "function" | "sub" | "fn" | "func" => {
                    return code_imports::defines(tokens, at, flow);
                }
                "as" => {
                    frame.settle();
                    if let (Some(Token::Name(alias)), Some(value)) =
                        (tokens.get(at + 1), frame.value.clone())
                    {
                        flow.keep(alias, value);
                    }
                    return at + 2;
                }
                "in" | "of" => {
                    frame.targets = std::mem::take(&mut frame.seen);
                    frame.clear();
                    return at + 1;
                }
                _ if code_names::is_keyword(name, language) => {
                    if !frame.targets.is_empty() && name == "for" {
                        flow.again = true;
                        frame.end(flow);
                    }
                    if name == "for" && matches!(frame.kind, Kind::Call(_) | Kind::Group) {
                        frame.settle();
                        frame.result = frame
                            .result
                            .take()
                            .or(frame.value.take().filter(Term::is_known));
                        flow.again = true;
                    }
                    frame.clear();
                    frame.seen.clear();
                    return at + 1;
                }
                _ => {}
            }
        }
        let bare = name.trim_start_matches(['$', '@', '%', '&', '\\']);
        let bare = if bare.is_empty() { name } else { bare };
        frame.last_name = bare.to_owned();
        let found = if member {
            let of = frame.value.take().unwrap_or_default();
            frame.sign = None;
            frame.seen.clear();
            Term {
                name: format!("{}.{bare}", of.name),
                ..of
            }
        } else {
            frame.seen.push(bare.to_owned());
            flow.look_up(bare)
        };
        // Some languages need no parentheses for `system "x"` and `exec "a", "b"`.
        let given = matches!(
            tokens.get(at + 1),
            Some(
                Token::Text(_)
                    | Token::Filled(_)
                    | Token::Number(_)
                    | Token::Name(_)
                    | Token::Command(_)
                    | Token::Sign('-' | '$')
            )
        );
        if given && language.calls_loosely() && code_names::acts(bare) {
            frame.seen.clear();
            self.open(frames, Kind::Call(found));
            if let Some(frame) = frames.last_mut() {
                frame.loose = true;
            }
            return at + 1;
        }
        // In Ruby, the name of a method alone calls it.
        if member
            && !opens
            && language == Language::Ruby
            && let Some(made) = term::call(
                &bare.rsplit('.').next().unwrap_or(bare).to_ascii_lowercase(),
                Some(&found),
                &[],
            )
            && made.is_known()
        {
            frame.operand(made);
            return at + 1;
        }
        frame.operand(found);
        at + 1
    }
}

/// Returns the term for an environment variable that contains a secret: its name as a shell would
/// write it.
pub(super) fn variable(name: &str) -> Option<Term> {
    env_secrets::is_secret(name)
        .then(|| Term::text(format!("${name}")).with(Taint::SECRET_VARIABLE))
}

/// Evaluates `of[…]`: a member by its name, an item by its index, or the reversed text (`[::-1]`).
fn index(of: Term, by: &[Term]) -> Term {
    let words: Vec<&str> = by.iter().map(Term::first).collect();
    match words.as_slice() {
        [":", ":", "-1"] => of.reversed(),
        [one] if of.name.ends_with("environ") || of.name.ends_with("env") || of.name == "ENV" => {
            match *one {
                "HOME" | "USERPROFILE" => Term::text("~"),
                name => variable(name).unwrap_or_default(),
            }
        }
        [one] if term::number(one).is_some() && of.is_known() => of.at(&[(*one).to_owned()]),
        [one] if !one.is_empty() && !of.is_known() => Term {
            name: format!("{}.{one}", of.name),
            ..of
        },
        _ => of,
    }
}
