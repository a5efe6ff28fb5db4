//! Parts of PowerShell expressions, and their evaluation.

use super::glob;
use super::term::{Term, parse_number};
use super::value::Field;

/// A part of a statement.
#[derive(Clone, Debug)]
pub(super) enum Item {
    /// An unquoted word.
    Word(String),
    Value(Term),
    /// The value of a script block.
    Block(Term),
    /// A cast before a value, such as `[char]`.
    Cast(String),
    Sign(char),
}

/// Reports whether a word starts a statement without being a command.
pub(super) fn is_keyword(word: &str) -> bool {
    const WORDS: [&str; 22] = [
        "if", "elseif", "else", "foreach", "for", "while", "do", "until", "try", "catch",
        "finally", "return", "throw", "switch", "param", "begin", "process", "end", "function",
        "filter", "!", "-not",
    ];
    WORDS
        .iter()
        .any(|keyword| keyword.eq_ignore_ascii_case(word))
}

/// Returns where a text in single quotes ends.
pub(super) fn single_end(bytes: &[u8], from: usize) -> usize {
    let mut at = from;
    while let Some(b) = bytes.get(at) {
        if *b == b'\'' {
            if bytes.get(at + 1) != Some(&b'\'') {
                return at;
            }
            at += 1;
        }
        at += 1;
    }
    bytes.len()
}

/// Returns where a text in double quotes ends.
pub(super) fn double_end(bytes: &[u8], from: usize) -> usize {
    let mut at = from;
    while let Some(b) = bytes.get(at) {
        match b {
            b'`' => at += 1,
            b'"' if bytes.get(at + 1) == Some(&b'"') => at += 1,
            b'"' => return at,
            b'$' if bytes.get(at + 1) == Some(&b'(') => {
                at = super::quote::find_closing(bytes, at + 2, b')')
            }
            _ => {}
        }
        at += 1;
    }
    bytes.len()
}

/// Returns where a variable's name ends: letters, digits, and one scope before a colon.
pub(super) fn name_end(bytes: &[u8], from: usize) -> usize {
    let mut at = from;
    let mut scoped = false;
    while let Some(b) = bytes.get(at) {
        let proper = b.is_ascii_alphanumeric()
            || *b == b'_'
            || (at == from && matches!(b, b'?' | b'$' | b'^'));
        let scope = *b == b':'
            && !scoped
            && bytes
                .get(at + 1)
                .is_some_and(|b| b.is_ascii_alphabetic() || *b == b'_');
        if !proper && !scope {
            break;
        }
        scoped |= scope;
        at += 1;
    }
    at
}

pub(super) fn starts_member(b: u8) -> bool {
    b.is_ascii_alphabetic() || matches!(b, b'_' | b'\'' | b'"' | b'$' | b'`')
}

/// Splits a word such as `-Path:C:\x` into a parameter and its value.
pub(super) fn split_parameter(word: String) -> Vec<Field> {
    if word.starts_with('-')
        && let Some((name, value)) = word.split_once(':')
        && name.len() > 1
        && !value.is_empty()
        && name.bytes().skip(1).all(|b| b.is_ascii_alphabetic())
    {
        // `-WhatIf:$false` is the same as no `-WhatIf`.
        if value.eq_ignore_ascii_case("false") && name.to_ascii_lowercase().starts_with("-wh") {
            return Vec::new();
        }
        return vec![Field::plain(name), Field::plain(value)];
    }
    vec![Field {
        glob: word.contains('*'),
        ..Field::plain(word)
    }]
}

/// Returns the words that a value expands to.
pub(super) fn to_fields(term: Term) -> Vec<Field> {
    let taint = term.taint;
    if term.items.is_empty() {
        return vec![Field::plain("$…").with(taint)];
    }
    let recursive = term.name == RECURSIVE;
    let mut out: Vec<Field> = term
        .items
        .into_iter()
        .map(|text| Field {
            quoted: true,
            glob: text.contains('*'),
            taint,
            text,
            ..Field::default()
        })
        .collect();
    if recursive {
        out.push(Field::plain("-recurse"));
    }
    out
}

/// The name of a list of everything below some folders.
pub(super) const RECURSIVE: &str = "everything below";

/// Returns numbers and ranges (`-1..-5`) as single numbers.
pub(super) fn expand_ranges(items: &[String]) -> Vec<String> {
    let mut out = Vec::new();
    for item in items {
        match item
            .split_once("..")
            .and_then(|(from, to)| parse_number(from).zip(parse_number(to)))
        {
            Some((from, to)) if (from - to).abs() <= 1_024 => {
                let step = if from <= to { 1 } else { -1 };
                out.extend((0..=(from - to).abs()).map(|n| (from + n * step).to_string()));
            }
            _ => out.push(item.clone()),
        }
    }
    out
}

/// Evaluates an expression.
pub(super) fn evaluate_expression(items: Vec<Item>) -> Term {
    let items = combine_lists(apply_casts(items));
    let mut out: Option<Term> = None;
    let mut operator: Option<String> = None;
    for item in items {
        match item {
            Item::Word(word)
                if word.starts_with('-')
                    && parse_number(&word).is_none()
                    && !word.contains("..") =>
            {
                operator = Some(word.to_ascii_lowercase());
            }
            Item::Sign('+') => operator = Some("+".into()),
            Item::Sign(_) | Item::Cast(_) => {}
            item => {
                let term = operand(item);
                out = Some(match (out, operator.take()) {
                    (None, Some(sign)) if sign == "-join" => term.join(""),
                    (None, _) => term,
                    (Some(before), None) => before.with(term.taint),
                    (Some(before), Some(sign)) => apply_operator(before, &sign, term),
                });
            }
        }
    }
    out.unwrap_or_default()
}

fn operand(item: Item) -> Term {
    match item {
        Item::Value(term) | Item::Block(term) => term,
        Item::Word(word) if word.contains("..") => Term::list(expand_ranges(&[word])),
        Item::Word(word) => Term::text(word),
        _ => Term::default(),
    }
}

fn apply_operator(before: Term, sign: &str, term: Term) -> Term {
    match sign {
        "+" => before.plus(term),
        "-join" => {
            let by = term.first().to_owned();
            before.join(&by)
        }
        "-f" => before.fill_in(&term.items),
        "-replace" | "-creplace" | "-ireplace" => {
            let pattern = term.first().replace('\\', "");
            let by = term.items.get(1).cloned().unwrap_or_default();
            // Case-insensitive, but only one spelling is replaced.
            if pattern.is_empty() || before.items.iter().any(|item| item.contains(&pattern)) {
                before.replace(&pattern, &by)
            } else {
                let text = before.items.concat();
                let position = text
                    .to_ascii_lowercase()
                    .find(&pattern.to_ascii_lowercase());
                let spelling = position
                    .and_then(|at| text.get(at..at + pattern.len()))
                    .unwrap_or_default()
                    .to_owned();
                before.replace(&spelling, &by)
            }
        }
        "-split" | "-csplit" | "-isplit" => {
            super::term::call("split", Some(&before), &[term]).unwrap_or(before)
        }
        "-as" | "-is" | "-bxor" | "-band" => before,
        _ => Term::unknown(before.taint | term.taint),
    }
}

/// Returns the arguments of a call, each evaluated separately.
pub(super) fn evaluate_arguments(items: Vec<Item>) -> Vec<Term> {
    let mut out: Vec<Vec<Item>> = vec![Vec::new()];
    for item in items {
        match (item, out.last_mut()) {
            (Item::Sign(','), _) => out.push(Vec::new()),
            (item, Some(last)) => last.push(item),
            _ => {}
        }
    }
    out.into_iter()
        .filter(|items| !items.is_empty())
        .map(evaluate_expression)
        .collect()
}

/// Returns a table as the parameters of a command: `@{ a = 'x' }` is `-a x`.
pub(super) fn parameters(items: &[Item]) -> Vec<Field> {
    let mut fields = Vec::new();
    for entry in items.windows(3) {
        let [key, Item::Sign('='), value] = entry else {
            continue;
        };
        let key = match key {
            Item::Word(word) => word.clone(),
            Item::Value(term) => term.items.concat(),
            _ => continue,
        };
        fields.push(Field::plain(format!("-{key}")));
        match value {
            Item::Word(word) => fields.push(Field::plain(word.clone())),
            Item::Value(term) => fields.extend(to_fields(term.clone())),
            _ => {}
        }
    }
    fields
}

/// Returns the values of a table: `@{ a = 'x' }`.
pub(super) fn values(items: Vec<Item>) -> Term {
    let mut texts = Vec::new();
    let mut taint = super::value::Taint::NONE;
    let mut valued = false;
    for item in items {
        match item {
            Item::Sign('=') => valued = true,
            Item::Value(term) => {
                taint |= term.taint;
                texts.extend(term.items);
                valued = false;
            }
            Item::Word(word) if valued => {
                texts.push(word);
                valued = false;
            }
            _ => {}
        }
    }
    Term::list(texts).with(taint)
}

/// Applies the casts.
pub(super) fn apply_casts(items: Vec<Item>) -> Vec<Item> {
    if !items.iter().any(|item| matches!(item, Item::Cast(_))) {
        return items;
    }
    let mut out: Vec<Item> = Vec::with_capacity(items.len());
    for item in items.into_iter().rev() {
        match (item, out.last()) {
            (Item::Cast(name), Some(Item::Value(_) | Item::Word(_) | Item::Block(_))) => {
                let value = out.pop().map(operand).unwrap_or_default();
                out.push(Item::Value(apply_cast(&name, value)));
            }
            (Item::Cast(_), _) => {}
            (item, _) => out.push(item),
        }
    }
    out.reverse();
    out
}

fn apply_cast(name: &str, value: Term) -> Term {
    match name {
        "char" => value.into_letters(),
        "char[]" if value.list => value.into_letters(),
        "char[]" => super::term::call("tochararray", Some(&value), &[]).unwrap_or(value),
        "string" if value.list => value.join(" "),
        "adsi" | "wmiclass" | "wmi" | "wmisearcher" => value.with_name(name),
        _ => value,
    }
}

/// Combines values that are separated by commas into one list.
pub(super) fn combine_lists(items: Vec<Item>) -> Vec<Item> {
    if !items.iter().any(|item| matches!(item, Item::Sign(','))) {
        return items;
    }
    let mut out: Vec<Item> = Vec::with_capacity(items.len());
    let mut joins = false;
    for item in items {
        match item {
            Item::Sign(',') => joins = true,
            item @ (Item::Value(_) | Item::Word(_)) if std::mem::take(&mut joins) => {
                let next = operand(item);
                match out.pop() {
                    Some(first @ (Item::Value(_) | Item::Word(_))) => {
                        let mut list = operand(first);
                        list.list = true;
                        list.taint |= next.taint;
                        list.items.extend(next.items);
                        list.items.truncate(1_024);
                        out.push(Item::Value(list));
                    }
                    Some(other) => out.extend([other, Item::Value(Term { list: true, ..next })]),
                    None => out.push(Item::Value(Term { list: true, ..next })),
                }
            }
            item => {
                joins = false;
                out.push(item);
            }
        }
    }
    out
}

/// Returns the first of `known` that a pattern with wildcards matches.
pub(super) fn first_match<'k>(
    pattern: &str,
    known: impl IntoIterator<Item = &'k str>,
) -> Option<&'k str> {
    let pattern = pattern.to_ascii_lowercase();
    known.into_iter().find(|name| {
        if pattern.contains(['*', '?']) {
            glob::matches(&pattern, name)
        } else {
            pattern == **name
        }
    })
}
