//! Parts of PowerShell expressions, and their evaluation.

use super::glob;
use super::term::{Term, number};
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
    WORDS.iter().any(|known| known.eq_ignore_ascii_case(word))
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
                at = super::quote::closing(bytes, at + 2, b')')
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
pub(super) fn parameter(word: String) -> Vec<Field> {
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
pub(super) fn fields(term: Term) -> Vec<Field> {
    let taint = term.taint;
    if term.items.is_empty() {
        return vec![Field {
            text: "$…".into(),
            taint,
            ..Field::default()
        }];
    }
    let recursive = term.name == RECURSIVE;
    let mut made: Vec<Field> = term
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
        made.push(Field::plain("-recurse"));
    }
    made
}

/// The name of a list of everything below some folders.
pub(super) const RECURSIVE: &str = "everything below";

/// Returns numbers and ranges (`-1..-5`) as single numbers.
pub(super) fn ranges(items: &[String]) -> Vec<String> {
    let mut out = Vec::new();
    for item in items {
        match item
            .split_once("..")
            .and_then(|(from, to)| number(from).zip(number(to)))
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
pub(super) fn expression(items: Vec<Item>) -> Term {
    let items = lists(casts(items));
    let mut out: Option<Term> = None;
    let mut waiting: Option<String> = None;
    for item in items {
        match item {
            Item::Word(word)
                if word.starts_with('-') && number(&word).is_none() && !word.contains("..") =>
            {
                waiting = Some(word.to_ascii_lowercase());
            }
            Item::Sign('+') => waiting = Some("+".into()),
            Item::Sign(_) | Item::Cast(_) => {}
            item => {
                let term = operand(item);
                out = Some(match (out, waiting.take()) {
                    (None, Some(sign)) if sign == "-join" => term.joined(""),
                    (None, _) => term,
                    (Some(before), None) => Term {
                        taint: before.taint | term.taint,
                        ..before
                    },
                    (Some(before), Some(sign)) => operate(before, &sign, term),
                });
            }
        }
    }
    out.unwrap_or_default()
}

fn operand(item: Item) -> Term {
    match item {
        Item::Value(term) | Item::Block(term) => term,
        Item::Word(word) if word.contains("..") => Term::list(ranges(&[word])),
        Item::Word(word) => Term::text(word),
        _ => Term::default(),
    }
}

fn operate(before: Term, sign: &str, term: Term) -> Term {
    match sign {
        "+" => before.plus(term),
        "-join" => {
            let by = term.first().to_owned();
            before.joined(&by)
        }
        "-f" => before.filled(&term.items),
        "-replace" | "-creplace" | "-ireplace" => {
            let wanted = term.first().replace('\\', "");
            let by = term.items.get(1).cloned().unwrap_or_default();
            // Case-insensitive, but only one spelling is replaced.
            if wanted.is_empty() || before.items.iter().any(|item| item.contains(&wanted)) {
                before.replaced(&wanted, &by)
            } else {
                let spelt = before.items.concat();
                let found = spelt
                    .to_ascii_lowercase()
                    .find(&wanted.to_ascii_lowercase());
                let spelling = found
                    .and_then(|at| spelt.get(at..at + wanted.len()))
                    .unwrap_or_default()
                    .to_owned();
                before.replaced(&spelling, &by)
            }
        }
        "-split" | "-csplit" | "-isplit" => {
            super::term::call("split", Some(&before), &[term]).unwrap_or(before)
        }
        "-as" | "-is" | "-bxor" | "-band" => before,
        _ => Term {
            taint: before.taint | term.taint,
            ..Term::default()
        },
    }
}

/// Returns the arguments of a call, each evaluated separately.
pub(super) fn arguments(items: Vec<Item>) -> Vec<Term> {
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
        .map(expression)
        .collect()
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
pub(super) fn casts(items: Vec<Item>) -> Vec<Item> {
    if !items.iter().any(|item| matches!(item, Item::Cast(_))) {
        return items;
    }
    let mut out: Vec<Item> = Vec::with_capacity(items.len());
    for item in items.into_iter().rev() {
        match (item, out.last()) {
            (Item::Cast(name), Some(Item::Value(_) | Item::Word(_) | Item::Block(_))) => {
                let of = out.pop().map(operand).unwrap_or_default();
                out.push(Item::Value(cast(&name, of)));
            }
            (Item::Cast(_), _) => {}
            (item, _) => out.push(item),
        }
    }
    out.reverse();
    out
}

fn cast(name: &str, of: Term) -> Term {
    match name {
        "char" => of.into_letters(),
        "char[]" if of.list => of.into_letters(),
        "char[]" => super::term::call("tochararray", Some(&of), &[]).unwrap_or(of),
        "string" if of.list => of.joined(" "),
        "adsi" | "wmiclass" | "wmi" | "wmisearcher" => Term {
            name: name.to_owned(),
            ..of
        },
        _ => of,
    }
}

/// Combines values that are separated by commas into one list.
pub(super) fn lists(items: Vec<Item>) -> Vec<Item> {
    if !items.iter().any(|item| matches!(item, Item::Sign(','))) {
        return items;
    }
    let mut out: Vec<Item> = Vec::with_capacity(items.len());
    let mut joins = false;
    for item in items {
        match item {
            Item::Sign(',') => joins = true,
            item @ (Item::Value(_) | Item::Word(_)) if std::mem::take(&mut joins) => {
                let more = operand(item);
                match out.pop() {
                    Some(first @ (Item::Value(_) | Item::Word(_))) => {
                        let mut list = operand(first);
                        list.list = true;
                        list.taint |= more.taint;
                        list.items.extend(more.items);
                        list.items.truncate(1_024);
                        out.push(Item::Value(list));
                    }
                    Some(other) => out.extend([other, Item::Value(Term { list: true, ..more })]),
                    None => out.push(Item::Value(Term { list: true, ..more })),
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
pub(super) fn meant<'k>(
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
