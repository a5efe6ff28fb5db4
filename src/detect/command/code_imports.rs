//! Names that code gives to its imports, and to the parameters of its functions.

use super::code_flow::Flow;
use super::code_lex::Token;
use super::term::Term;

/// Records the meaning of imported names: `import os as o`, `from os import system as s`, `import {
/// exec } from "child_process"`. Returns the index after the statement.
pub(super) fn read_imports(tokens: &[Token], at: usize, flow: &mut Flow) -> usize {
    let mut end = at;
    let mut words: Vec<&str> = Vec::new();
    while let Some(token) = tokens.get(end).filter(|_| end < at + 96) {
        match token {
            Token::Line if words.contains(&"(") && !words.contains(&")") => {}
            Token::Line | Token::Sign(';') => break,
            Token::Name(name) => words.push(name),
            Token::Text(text) => words.push(text),
            Token::Sign('(') => words.push("("),
            Token::Sign(')') => words.push(")"),
            _ => {}
        }
        end += 1;
    }
    words.retain(|word| !matches!(*word, "(" | ")"));
    // JavaScript names the module last, Python first.
    let from = words.iter().position(|word| *word == "from");
    let (module, names): (&str, &[&str]) = match (from, words.as_slice()) {
        (Some(0), [_, module, "import", names @ ..]) => (module, names),
        (Some(at), [_, ..]) if at > 0 => (
            words.last().copied().unwrap_or_default(),
            words.get(1..at).unwrap_or_default(),
        ),
        (None, ["import" | "use", names @ ..]) => ("", names),
        _ => return end,
    };
    let module = module.trim_start_matches("node:");
    let mut names = names.iter().peekable();
    while let Some(name) = names.next() {
        let alias = match names.peek() {
            Some(&&"as") => {
                names.next();
                names.next().copied().unwrap_or(name)
            }
            _ => name,
        };
        let full_name = if module.is_empty() {
            (*name).to_owned()
        } else {
            format!("{module}.{name}")
        };
        flow.assign(alias, Term::named(full_name));
    }
    end
}

/// Records the names of a function's parameters: `def name(a, b)`. Returns the index after them.
pub(super) fn read_function(tokens: &[Token], at: usize, flow: &mut Flow) -> usize {
    let Some(Token::Name(name)) = tokens.get(at + 1) else {
        return at + 1;
    };
    let mut end = at + 2;
    let mut names = Vec::new();
    while let Some(token) = tokens.get(end).filter(|_| end < at + 64) {
        match token {
            Token::Name(name) => names.push(name.trim_start_matches('$').to_owned()),
            Token::Sign(')' | '{' | ';') | Token::Line => break,
            _ => {}
        }
        end += 1;
    }
    if flow.functions.len() < 256 {
        flow.functions.insert(name.clone(), names);
    }
    end
}
