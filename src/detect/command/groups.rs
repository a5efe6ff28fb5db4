//! Lists, pipelines and groups: the order in which a shell runs commands.

use super::lex::Token;
use super::reader::{CommandContext, Reader};
use super::value::{Taint, Value};
use super::words::{keyword, plain};

impl Reader<'_> {
    pub(super) fn read_list(&mut self, tokens: &[Token], input: &Value) -> Value {
        let mut out = Value::empty();
        let mut at = 0;
        while at < tokens.len() && !self.is_spent() {
            let mut stream = input.clone();
            let mut piped = false;
            loop {
                let (value, next) = self.read_stage(tokens, at, stream, piped);
                at = next.max(at);
                stream = value;
                if !matches!(tokens.get(at), Some(Token::Pipe)) || self.is_spent() {
                    break;
                }
                piped = true;
                at += 1;
            }
            out.append(stream);
            if matches!(tokens.get(at), Some(Token::CaseEnd)) {
                at = skip_patterns(tokens, at + 1);
            } else {
                at += 1;
            }
        }
        out
    }

    /// Reads one stage of a pipeline: a group or a simple command. Returns its output and the index
    /// after it.
    pub(super) fn read_stage(
        &mut self,
        tokens: &[Token],
        mut at: usize,
        input: Value,
        piped: bool,
    ) -> (Value, usize) {
        while let Some(Token::Word(word, _)) = tokens.get(at)
            && matches!(
                keyword(word),
                Some(
                    "!" | "then" | "do" | "else" | "elif" | "fi" | "done" | "esac" | "}" | "coproc"
                )
            )
        {
            at += 1;
        }
        if let (Some(Token::Word(name, _)), Some(Token::Open), Some(Token::Close)) =
            (tokens.get(at), tokens.get(at + 1), tokens.get(at + 2))
        {
            let name = name.clone();
            return (Value::empty(), self.define_function(&name, tokens, at + 3));
        }
        let start = at;
        let body = match tokens.get(at) {
            Some(Token::Open) => at + 1,
            Some(Token::Word(word, _)) => match keyword(word) {
                Some("function") => {
                    let Some(Token::Word(name, _)) = tokens.get(at + 1) else {
                        return (input, at + 1);
                    };
                    let name = name.clone();
                    let parens = if matches!(tokens.get(at + 2), Some(Token::Open)) {
                        2
                    } else {
                        0
                    };
                    return (
                        Value::empty(),
                        self.define_function(&name, tokens, at + 2 + parens),
                    );
                }
                Some("for" | "select") => self.read_loop_variable(tokens, at + 1),
                Some("case") => skip_patterns(tokens, self.read_case_word(tokens, at + 1)),
                Some("{" | "while" | "until" | "if") => at + 1,
                _ => return self.read_simple(tokens, at, input, piped),
            },
            _ => return self.read_simple(tokens, at, input, piped),
        };
        let end = closer(tokens, start);
        if !self.go_deeper() {
            return (Value::unknown(input.taint), tokens.len());
        }
        let (redirects, next) = self.read_trailing_redirects(tokens, end + 1);
        let mut stdin = input;
        for (flow, target) in &redirects {
            stdin = self.redirected_input(*flow, target, stdin);
        }
        let before = (self.folder.clone(), self.location.clone());
        let out = self.read_list(tokens.get(body..end).unwrap_or_default(), &stdin);
        self.come_up();
        if matches!(tokens.get(start), Some(Token::Open)) {
            // A separate shell.
            (self.folder, self.location) = before;
        }
        let context = CommandContext {
            input: out,
            redirects,
            piped,
            ..CommandContext::default()
        };
        (self.read_bare(context), next)
    }

    fn read_loop_variable(&mut self, tokens: &[Token], at: usize) -> usize {
        let Some(Token::Word(name, _)) = tokens.get(at) else {
            return at;
        };
        let name = plain(name).unwrap_or_default().to_owned();
        let mut items = Vec::new();
        let mut taint = Taint::NONE;
        let mut next = at + 1;
        while let Some(Token::Word(word, _)) = tokens.get(next) {
            if next > at + 1 {
                let mut fields = Vec::new();
                self.expand_word(word, &mut fields);
                for field in fields {
                    taint |= field.taint;
                    items.push(field.text);
                }
            }
            next += 1;
        }
        self.spend_steps(items.len());
        self.assign(
            &name,
            Value {
                items,
                known: next > at + 1,
                taint,
            },
        );
        next
    }

    fn read_case_word(&mut self, tokens: &[Token], mut at: usize) -> usize {
        while let Some(Token::Word(word, _)) = tokens.get(at) {
            at += 1;
            if keyword(word) == Some("in") {
                break;
            }
            self.expand_word(word, &mut Vec::new());
        }
        at
    }
}

fn skip_patterns(tokens: &[Token], start: usize) -> usize {
    let mut at = start;
    while let Some(token) = tokens.get(at) {
        match token {
            Token::Close => return at + 1,
            Token::Word(word, _) if keyword(word) == Some("esac") => return at,
            _ => at += 1,
        }
    }
    at
}

/// Returns the index of the token that closes the group that opens at `start`, or the end.
pub(super) fn closer(tokens: &[Token], start: usize) -> usize {
    let mut open: Vec<&str> = Vec::new();
    let mut commands = true;
    for (at, token) in tokens.iter().enumerate().skip(start) {
        let mut next_commands = !matches!(token, Token::Word(_, _) | Token::Redirect { .. });
        match token {
            Token::Open => open.push(")"),
            Token::Close if open.last() == Some(&")") => {
                open.pop();
            }
            Token::Word(word, _) if commands => {
                next_commands = keyword(word).is_some_and(|k| k != "for" && k != "case");
                match keyword(word) {
                    Some("{") => open.push("}"),
                    Some("if") => open.push("fi"),
                    Some("case") => open.push("esac"),
                    Some("while" | "until" | "for" | "select") => open.push("done"),
                    Some(word) if open.last() == Some(&word) => {
                        open.pop();
                    }
                    _ => {}
                }
            }
            _ => {}
        }
        if open.is_empty() {
            return at;
        }
        commands = next_commands;
    }
    tokens.len()
}
