//! `${…}`: variables and the operations that the shell can apply to them.

use super::env_secrets;
use super::expand;
use super::glob;
use super::lex;
use super::quote;
use super::reader::Reader;
use super::term;
use super::value::{Taint, Value};

/// Values in the shell of an ordinary user, sufficient to cut letters out of.
const DEFAULTS: [(&str, &str); 12] = [
    ("HOME", "~"),
    ("PWD", "."),
    ("OLDPWD", ".."),
    ("USER", "user"),
    ("LOGNAME", "user"),
    ("SHELL", "/bin/bash"),
    ("BASH", "/bin/bash"),
    ("TMPDIR", "/tmp"),
    ("HISTFILE", "~/.bash_history"),
    ("XDG_CONFIG_HOME", "~/.config"),
    (
        "PATH",
        "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    ),
    ("IFS", " \t\n"),
];

/// Returns the letter of a text at a position that is counted from 1, as zsh does.
fn letter(text: &str, index: usize) -> Option<String> {
    let text = text.replacen('~', "/home/user", 1);
    text.chars().nth(index.checked_sub(1)?).map(String::from)
}

/// Returns the first item and the number of items of a slice of a list: `:1:2`.
fn slice(operation: &str) -> Option<(usize, usize)> {
    let range = operation.strip_prefix(':')?;
    let (from, length) = range.split_once(':').unwrap_or((range, ""));
    let length = match length.trim() {
        "" => usize::MAX,
        length => length.parse().ok()?,
    };
    Some((from.trim().parse().ok()?, length))
}

impl Reader<'_> {
    /// Returns the value of the text between `${` and `}`.
    pub(super) fn expand_variable(&mut self, inside: &str) -> Value {
        if let Some(name) = inside.strip_prefix('!')
            && !name.is_empty()
        {
            let length = quote::split_name(name).0.len();
            let (name, rest) = name.split_at_checked(length.max(1)).unwrap_or((name, ""));
            let target = self.expand_variable(name);
            return match target.as_text() {
                // `${!n:0:1}`: the operation is applied to the value of the variable that is named.
                Some(name) if rest.starts_with([':', '#', '%', '/', '^', ',', '-', '+', '=']) => {
                    let (name, value) = (name.to_owned(), self.look_up(name));
                    self.apply_operation(&name, value, rest)
                }
                Some(name) => self.look_up(name),
                None => Value::unknown(target.taint),
            };
        }
        if let Some(name) = inside.strip_prefix('#')
            && !name.is_empty()
        {
            let value = self.look_up(name);
            return match value.as_text() {
                Some(text) => Value::text(text.chars().count().to_string()),
                None => Value::unknown(value.taint),
            };
        }
        if inside.contains("[$(") || inside.contains("[`") {
            self.run_subscripts(inside);
        }
        let length = match inside.chars().next() {
            Some(c) if c.is_ascii_alphabetic() || c == '_' => quote::split_name(inside).0.len(),
            Some(c) if c.is_ascii_digit() => inside.bytes().take_while(u8::is_ascii_digit).count(),
            Some(c) => c.len_utf8(),
            None => 0,
        };
        let name = inside.get(..length).unwrap_or("");
        let mut rest = inside.get(length..).unwrap_or("");
        let mut value = self.look_up(name);
        if let Some(subscript) = rest.strip_prefix('[')
            && let Some((index, after)) = subscript.split_once(']')
        {
            rest = after;
            if let Ok(index) = index.trim().parse::<usize>() {
                value.items = match value.items.as_slice() {
                    // zsh counts the letters of a text from 1.
                    [text] if index > 0 => letter(text, index).into_iter().collect(),
                    items => items.get(index).cloned().into_iter().collect(),
                };
            } else if matches!(index, "@" | "*")
                && let Some((from, length)) = slice(rest)
            {
                let items = value.items.into_iter().skip(from);
                value.items = items.take(length).collect();
                rest = "";
            } else if !matches!(index, "@" | "*")
                && let Some(element) = self.variables.get(&format!("{name}[{index}]"))
            {
                value = element.clone();
            }
        }
        if rest.is_empty() {
            value
        } else {
            self.apply_operation(name, value, rest)
        }
    }

    fn look_up(&self, name: &str) -> Value {
        if let Some(value) = self.variables.get(name) {
            return value.clone();
        }
        match DEFAULTS.iter().find(|(usual, _)| *usual == name) {
            Some((_, text)) => Value::text(*text),
            None if env_secrets::is_secret(name) => Value::unknown(Taint::SECRET_VARIABLE),
            None => Value::unknown(Taint::NONE),
        }
    }

    fn apply_operation(&mut self, name: &str, mut value: Value, rest: &str) -> Value {
        for colon in [":", ""] {
            let Some((operator, word)) = rest.strip_prefix(colon).and_then(|rest| {
                let operator = rest
                    .chars()
                    .next()
                    .filter(|c| matches!(c, '-' | '=' | '+' | '?'))?;
                Some((operator, rest.get(1..)?))
            }) else {
                continue;
            };
            let set = value.known && !(value.items.is_empty() && colon == ":");
            return match operator {
                '+' if !set => Value::empty(),
                '-' | '=' if set => value,
                '?' => value,
                _ => {
                    let default = self.expand_inner_text(word);
                    if operator == '=' {
                        self.assign(name, default.clone());
                    }
                    default
                }
            };
        }
        if !value.known {
            // The whole value is replaced, even if it is not known.
            let replaced = rest
                .strip_prefix("//*/")
                .or_else(|| rest.strip_prefix("/*/"));
            return replaced.map_or(value, |by| self.expand_inner_text(by));
        }
        // Letters are cut out of full paths (`${HOME:0:1}` is `/`).
        for item in &mut value.items {
            if item.starts_with('~') {
                item.replace_range(..1, "/home/user");
            } else if item == "." || item == ".." {
                "/work".clone_into(item);
            }
        }
        let taint = value.taint;
        let items = value
            .items
            .iter()
            .map(|item| self.change_text(item, rest))
            .collect::<Option<Vec<_>>>();
        items.map_or_else(
            || Value::unknown(taint),
            |items| Value::list(items).with(taint),
        )
    }

    fn change_text(&mut self, text: &str, rest: &str) -> Option<String> {
        if text.len() > 4096 {
            return None;
        }
        // A pattern is tried at up to 256 positions of the text, and in a replacement with several
        // ends at each.
        let places = text.len().min(256);
        self.spend_steps(
            1 + if rest.starts_with('/') && rest.contains(['*', '?', '[']) {
                places * 2
            } else {
                places / 4
            },
        );
        let first = rest.chars().next()?;
        let tail = rest.get(first.len_utf8()..)?;
        let doubled = tail.strip_prefix(first);
        match first {
            ':' => {
                let (offset, length) = tail
                    .split_once(':')
                    .map_or((tail, None), |(o, l)| (o, Some(l)));
                let count = text.chars().count() as i64;
                // A missing offset is 0 (`${V::1}`); others are sums.
                let number = |text: &str| {
                    expand::arithmetic(text.trim().trim_matches(['(', ')'])).parse::<i64>()
                };
                let offset = number(offset).ok()?;
                let from = if offset < 0 {
                    (count + offset).max(0)
                } else {
                    offset.min(count)
                };
                let to = match length.map(number) {
                    None => count,
                    Some(Ok(l)) if l < 0 => count + l,
                    Some(Ok(l)) => from + l,
                    Some(Err(_)) => return None,
                };
                let width = usize::try_from(to - from).unwrap_or(0);
                Some(
                    text.chars()
                        .skip(usize::try_from(from).ok()?)
                        .take(width)
                        .collect(),
                )
            }
            '^' if doubled.is_some() => Some(text.to_uppercase()),
            ',' if doubled.is_some() => Some(text.to_lowercase()),
            '^' | ',' => {
                let mut chars = text.chars();
                let head = chars.next()?;
                let head = if first == '^' {
                    head.to_uppercase().to_string()
                } else {
                    head.to_lowercase().to_string()
                };
                Some(head + chars.as_str())
            }
            '~' => Some(term::swap_case(text)),
            '@' => match tail {
                "U" => Some(text.to_uppercase()),
                "L" => Some(text.to_lowercase()),
                // A prompt runs the script in `$(…)`.
                "P" => Some(
                    self.expand_inner_text(&quote::decode_escapes(text))
                        .items
                        .concat(),
                ),
                "E" => Some(quote::decode_escapes(text)),
                _ => Some(text.to_owned()),
            },
            '#' | '%' => {
                let pattern = self.expand_pattern(doubled.unwrap_or(tail));
                let trim = match first {
                    '#' => glob::trim_start,
                    _ => glob::trim_end,
                };
                Some(trim(text, &pattern, doubled.is_some()).to_owned())
            }
            '/' => {
                let (pattern_word, by) = doubled
                    .unwrap_or(tail)
                    .split_once('/')
                    .unwrap_or((doubled.unwrap_or(tail), ""));
                let pattern = self.expand_pattern(pattern_word);
                let by = self.expand_pattern(by);
                if pattern.is_empty() {
                    return Some(text.to_owned());
                }
                Some(glob::replace(text, &pattern, &by, doubled.is_some()))
            }
            _ => None,
        }
    }

    fn expand_pattern(&mut self, word: &str) -> String {
        self.expand_inner_text(word)
            .items
            .join(" ")
            .replace(['\'', '"', '\\'], "")
    }

    /// Returns the text of a word within `${…}`.
    pub(super) fn expand_inner_text(&mut self, word: &str) -> Value {
        if !word.contains(['$', '`', '\\', '\'', '"']) {
            return Value::text(word);
        }
        if !self.go_deeper() {
            return Value::unknown(Default::default());
        }
        let bare = word
            .strip_prefix('"')
            .and_then(|w| w.strip_suffix('"'))
            .unwrap_or(word);
        let bare = bare
            .strip_prefix('\'')
            .and_then(|w| w.strip_suffix('\''))
            .unwrap_or(bare);
        let field = self.expand_single(&lex::lex_body(bare));
        self.come_up();
        Value::text(field.text).with(field.taint)
    }
}
