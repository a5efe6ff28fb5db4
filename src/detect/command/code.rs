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
    pub(super) fn evaluate_code(&mut self, program: &str, text: &str, taint: Taint) {
        let language = Language::of_program(program);
        let deletes_in_walk = language == Language::Compiled && compiled::deletes_in_walk(text);
        let mut flow = Flow {
            taint,
            deletes_in_walk,
            ..Flow::default()
        };
        self.evaluate_in_flow(language, text, &mut flow);
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
    pub(super) fn evaluate_in_flow(&mut self, language: Language, text: &str, flow: &mut Flow) {
        self.spend_bytes(text.len());
        if !self.spend_command() || !self.go_deeper() {
            return;
        }
        self.scripts.push(text.to_owned());
        code_names::report_behaviour(self, text);
        match code_lex::lex(text, language) {
            Some(tokens) => {
                self.run_pass(language, &tokens, flow);
                // A second pass resolves names that are used before they are known: the arguments
                // of a function, or a loop that follows the code that it repeats.
                if std::mem::take(&mut flow.needs_second_pass) && !self.is_spent() {
                    self.run_pass(language, &tokens, flow);
                }
            }
            None => self.give_up(),
        }
        self.come_up();
    }

    fn run_pass(&mut self, language: Language, tokens: &[Token], flow: &mut Flow) {
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
            frame.end_statement(flow);
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
                let script = flow.fill_placeholders(script);
                flow.shells |= script.contains("$_");
                let out = self.read_inner_script(&script, &Value::empty());
                frame.push_operand(Term::unknown(out.taint));
            }
            Token::Text(text) => {
                let piped = matches!(next, Some(Token::Sign('|')))
                    || matches!(tokens.get(at.wrapping_sub(1)), Some(Token::Sign('|')));
                if language == Language::Awk && piped {
                    self.read_inner_script(text, &Value::empty());
                }
                frame.push_operand(Term::text(text.clone()));
            }
            Token::Filled(text) => {
                let text = flow.fill_placeholders(text);
                // $`rm -rf /`
                if let Some(term) = frame
                    .value
                    .take_if(|term| term.name == "$" || term.name.ends_with(".$"))
                {
                    self.evaluate_call(language, term, &[Term::text(text)], flow);
                } else {
                    frame.push_operand(Term::text(text));
                }
            }
            Token::Number(text) => frame.push_operand(Term::text(text.clone())),
            Token::Name(name) => return self.read_name(language, name, tokens, at, frames, flow),
            Token::Line if depth == 1 || matches!(frame.kind, Kind::Block) => {
                frame.end_statement(flow)
            }
            Token::Line => {}
            Token::Sign(sign) => self.read_sign(language, *sign, tokens, at, frames, flow),
        }
        at + 1
    }

    fn read_sign(
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
                let subject = frame.value.take().unwrap_or_default();
                frame.sign = frame.pending_sign.take();
                let pending = frame.pending.take();
                frame.value = pending;
                let kind = match sign {
                    '(' => Kind::Call(subject),
                    _ => Kind::Index(subject),
                };
                self.open(frames, kind);
            }
            '(' | '[' => self.open(frames, Kind::Group),
            '{' if behind_value && language == Language::Perl && frame.last_name == "ENV" => {
                let subject = frame.value.take().unwrap_or_default();
                self.open(frames, Kind::Index(subject));
            }
            // `new String[]{"rm", "-rf"}`
            '{' if language == Language::Compiled && matches!(before, Some(Token::Sign(']'))) => {
                frame.clear();
                self.open(frames, Kind::Group);
            }
            '{' => {
                // The head of a loop ends here: `for _, d := range dirs {`.
                if language == Language::Compiled
                    && !frame.targets.is_empty()
                    && frame.value.as_ref().is_some_and(Term::is_known)
                {
                    frame.end_statement(flow);
                }
                // `each { |f| … }`
                if language == Language::Ruby && matches!(next, Some(Token::Sign('|'))) {
                    let list = frame.value.clone().unwrap_or_default();
                    if let Some(Token::Name(name)) = tokens.get(at + 2) {
                        flow.assign(name, list.with_name(""));
                    }
                }
                self.open(frames, Kind::Block);
            }
            ')' | ']' | '}' => self.close(language, frames, flow),
            ';' => frame.end_statement(flow),
            ',' => {
                frame.apply_sign();
                let value = frame.value.take();
                frame.items.extend(value);
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
                frame.targets = std::mem::take(&mut frame.names);
            }
            ':' if matches!(frame.kind, Kind::Index(_)) => {
                let value = frame.value.take().unwrap_or_else(|| Term::text(":"));
                frame.items.push(value);
            }
            ':' if language == Language::Lua && frame.value.is_some() => frame.sign = Some('>'),
            ':' if depth > 1 => {
                // `{ exec: run }` makes `run` another name for `exec`. Otherwise, the key of a
                // table is not a value.
                if let (Kind::Block, Some(Token::Name(alias)), Some(Token::Sign(',' | '}'))) =
                    (&frame.kind, next, tokens.get(at + 2))
                {
                    flow.assign(alias, Term::named(frame.last_name.clone()));
                }
                frame.value = None;
                frame.sign = None;
            }
            // `home, _ := f()`
            ':' if language == Language::Compiled && matches!(next, Some(Token::Sign('='))) => {}
            // `let x: &str = …`: a type.
            ':' if language == Language::Compiled => frame.clear(),
            // The head of a loop ends here.
            ':' => frame.end_statement(flow),
            '.' if language == Language::Lua && matches!(before, Some(Token::Sign('.'))) => {}
            '.' if language == Language::Lua && matches!(next, Some(Token::Sign('.'))) => {
                frame.apply_sign();
                frame.sign = Some('+');
            }
            '.' if !language.joins_with_dot() && frame.value.is_some() => frame.sign = Some('>'),
            '.' if !language.joins_with_dot() => {}
            '>' if matches!(before, Some(Token::Sign('-'))) && frame.value.is_some() => {
                frame.sign = Some('>')
            }
            '-' if matches!(next, Some(Token::Sign('>'))) => {}
            '+' | '.' | '%' | '/' | '|' | '-' => {
                // `$this->{folder} . '/'`
                if frame.value.is_none() && matches!(before, Some(Token::Sign('}' | ']' | ')'))) {
                    frame.value = Some(Term::default());
                }
                frame.apply_sign();
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
        frame.apply_sign();
        if !frame.targets.is_empty()
            && (frame.result.is_some()
                || flow.needs_second_pass
                || !matches!(frame.kind, Kind::Call(_) | Kind::Index(_)))
        {
            flow.needs_second_pass |= !matches!(frame.kind, Kind::Block);
            let value = frame.value.clone();
            frame.end_statement(flow);
            frame.value = frame.result.take().or(value);
        }
        let list = frames.len() > 1 || !frame.items.is_empty();
        let mut items = frame.items;
        items.extend(frame.value.take());
        let block = matches!(frame.kind, Kind::Block);
        let group = matches!(frame.kind, Kind::Group);
        let result = match frame.kind {
            Kind::Call(callee) => self.evaluate_call(language, callee, &items, flow),
            Kind::Index(subject) => index(subject, &items),
            Kind::Group if items.len() == 1 => {
                let mut only = items.pop().unwrap_or_default();
                only.list |= list && only.items.len() > 1;
                only
            }
            Kind::Group | Kind::Block => {
                let taint = term::taint_of_terms(&items);
                Term::list(
                    items
                        .into_iter()
                        .flat_map(|term| term.items)
                        .take(1_024)
                        .collect(),
                )
                .with(taint)
            }
        };
        self.spend_bytes(result.size());
        if language == Language::Perl && group && result.is_known() {
            flow.assign("_", result.clone());
        }
        let Some(frame) = frames.last_mut() else {
            return;
        };
        if block
            && (frame.value.is_some() || !(result.is_known() || result.taint != Taint::NONE))
            && frame.targets.is_empty()
        {
            // A body, not a table.
            if !matches!(frame.kind, Kind::Call(_)) {
                frame.end_statement(flow);
            }
            return;
        }
        frame.names.clear();
        frame.push_operand(result);
    }

    fn read_name(
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
                    return code_imports::read_imports(tokens, at, flow);
                }
                "def" | "function" | "sub" | "fn" | "func" => {
                    return code_imports::read_function(tokens, at, flow);
                }
                "as" => {
                    frame.apply_sign();
                    if let (Some(Token::Name(alias)), Some(value)) =
                        (tokens.get(at + 1), frame.value.clone())
                    {
                        flow.assign(alias, value);
                    }
                    return at + 2;
                }
                "in" | "of" => {
                    frame.targets = std::mem::take(&mut frame.names);
                    frame.clear();
                    return at + 1;
                }
                _ if code_names::is_keyword(name, language) => {
                    if !frame.targets.is_empty() && name == "for" {
                        flow.needs_second_pass = true;
                        frame.end_statement(flow);
                    }
                    if name == "for" && matches!(frame.kind, Kind::Call(_) | Kind::Group) {
                        frame.apply_sign();
                        frame.result = frame
                            .result
                            .take()
                            .or(frame.value.take().filter(Term::is_known));
                        flow.needs_second_pass = true;
                    }
                    frame.clear();
                    frame.names.clear();
                    return at + 1;
                }
                _ => {}
            }
        }
        let bare = name.trim_start_matches(['$', '@', '%', '&', '\\']);
        let bare = if bare.is_empty() { name } else { bare };
        frame.last_name = bare.to_owned();
        let operand = if member {
            let subject = frame.value.take().unwrap_or_default();
            frame.sign = None;
            frame.names.clear();
            subject.member(bare)
        } else {
            frame.names.push(bare.to_owned());
            flow.look_up(bare)
        };
        // Some languages need no parentheses for `system "x"` and `exec "a", "b"`.
        let has_argument = matches!(
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
        if has_argument && language.calls_loosely() && code_names::acts_on_text(bare) {
            frame.names.clear();
            self.open(frames, Kind::Call(operand));
            if let Some(frame) = frames.last_mut() {
                frame.loose = true;
            }
            return at + 1;
        }
        // In Ruby, the name of a method alone calls it.
        if member
            && !opens
            && language == Language::Ruby
            && let Some(result) = term::call(
                &bare.rsplit('.').next().unwrap_or(bare).to_ascii_lowercase(),
                Some(&operand),
                &[],
            )
            && result.is_known()
        {
            frame.push_operand(result);
            return at + 1;
        }
        frame.push_operand(operand);
        at + 1
    }
}

/// Returns the term for an environment variable that contains a secret: its name as a shell would
/// write it.
pub(super) fn secret_variable(name: &str) -> Option<Term> {
    env_secrets::is_secret(name)
        .then(|| Term::text(format!("${name}")).with(Taint::SECRET_VARIABLE))
}

/// Evaluates `of[…]`: a member by its name, an item by its index, or the reversed text (`[::-1]`).
fn index(subject: Term, keys: &[Term]) -> Term {
    // Perl: `$ENV{HOME}`.
    let is_bare = |key: &Term| subject.name == "ENV" && key.first().is_empty();
    let words: Vec<&str> = keys
        .iter()
        .map(|key| if is_bare(key) { &key.name } else { key.first() })
        .collect();
    match words.as_slice() {
        [":", ":", "-1"] => subject.reverse(),
        [key]
            if subject.name.ends_with("environ")
                || subject.name.ends_with("env")
                || subject.name == "ENV" =>
        {
            match *key {
                "HOME" | "USERPROFILE" => Term::text("~"),
                name => secret_variable(name).unwrap_or_default(),
            }
        }
        [key] if term::parse_number(key).is_some() && subject.is_known() => {
            subject.at(&[(*key).to_owned()])
        }
        [key] if !key.is_empty() && !subject.is_known() => subject.member(key),
        _ => subject,
    }
}
