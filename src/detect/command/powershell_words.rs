//! Reads PowerShell's words: variables, names of types and members, texts in double quotes.

use super::powershell::{Frame, Kind, Session};
use super::powershell_terms::{self as terms, Item};
use super::quote;
use super::term::Term;

impl Session<'_, '_> {
    /// Reads `[type]::member(`, `[type]::member` or `[type]value`.
    pub(super) fn read_type_name(
        &mut self,
        text: &str,
        at: usize,
        frames: &mut Vec<Frame>,
    ) -> usize {
        let end = quote::find_closing(text.as_bytes(), at + 1, b']').min(text.len());
        let name = quote::cut(text, at + 1, end);
        let proper = name.len() <= 120
            && name.chars().all(|c| {
                c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '[' | ']' | ',' | ' ' | '`')
            });
        if !proper || name.is_empty() {
            return at + 1;
        }
        let name = name.replace('`', "").to_ascii_lowercase();
        let name = name.strip_prefix("system.").unwrap_or(&name).to_owned();
        if text.get(end + 1..end + 3) == Some("::") {
            self.push(frames, Term::named(name));
            return self.read_member(text, end + 3, frames);
        }
        if let Some(frame) = frames.last_mut() {
            frame.items.push(Item::Cast(name));
        }
        end + 1
    }

    /// Reads `.name` or `.name(` after a value.
    pub(super) fn read_member(&mut self, text: &str, at: usize, frames: &mut Vec<Frame>) -> usize {
        let bytes = text.as_bytes();
        let (name, mut end) = match bytes.get(at) {
            Some(b'\'') => {
                let end = terms::single_end(bytes, at + 1);
                (quote::cut(text, at + 1, end).to_owned(), end + 1)
            }
            Some(b'"') => {
                let end = terms::double_end(bytes, at + 1);
                let name = self.expand_text(quote::cut(text, at + 1, end));
                (name.items.concat(), end + 1)
            }
            Some(b'$') => {
                let end = terms::name_end(bytes, at + 1);
                (self.get(quote::cut(text, at + 1, end)).items.concat(), end)
            }
            _ => {
                let end = bytes
                    .get(at..)
                    .and_then(|rest| {
                        rest.iter()
                            .position(|b| !(b.is_ascii_alphanumeric() || matches!(b, b'_' | b'`')))
                    })
                    .map_or(bytes.len(), |n| at + n);
                (quote::cut(text, at, end).replace('`', ""), end)
            }
        };
        let Some(Item::Value(subject)) = frames.last_mut().and_then(|frame| frame.items.pop())
        else {
            return end.max(at + 1);
        };
        let calls = bytes.get(end) == Some(&b'(');
        if calls {
            self.open(frames, Kind::Call(subject, name));
            end += 1;
        } else {
            let term = self.get_property(subject, &name);
            self.push(frames, term);
        }
        end
    }

    /// Reads a variable, or an assignment to one.
    pub(super) fn read_dollar(&mut self, text: &str, at: usize, frames: &mut [Frame]) -> usize {
        let bytes = text.as_bytes();
        let (name, end) = if bytes.get(at + 1) == Some(&b'{') {
            let end = quote::find(bytes, at, b'}');
            (quote::cut(text, at + 2, end), end + 1)
        } else {
            let end = terms::name_end(bytes, at + 1);
            (quote::cut(text, at + 1, end), end)
        };
        if name.is_empty() {
            return at + 1;
        }
        let rest = text.get(end..).unwrap_or_default();
        let trimmed = rest.trim_start_matches([' ', '\t']);
        let skipped = end + rest.len() - trimmed.len();
        let assigns = trimmed.starts_with('=') && !trimmed.starts_with("==");
        let appends = trimmed.starts_with("+=");
        let loops = trimmed
            .get(..3)
            .is_some_and(|word| word.eq_ignore_ascii_case("in "));
        if (assigns || appends || loops)
            && let Some(frame) = frames.last_mut()
            && frame
                .items
                .iter()
                .all(|item| matches!(item, Item::Cast(_) | Item::Word(_)))
        {
            frame.items.clear();
            frame.target = Some((name.to_ascii_lowercase(), appends));
            return skipped + if assigns { 1 } else { 2 };
        }
        let term = self.get(name);
        // The text continues: `$env:TEMP\x`.
        if matches!(bytes.get(end), Some(b'\\' | b'/')) {
            let start = if term.is_known() {
                term.first().to_owned()
            } else {
                quote::cut(text, at, end).to_owned()
            };
            return self.read_word(text, end, frames, start);
        }
        self.push(frames, term);
        end
    }

    /// Reads an unquoted word.
    pub(super) fn read_word(
        &mut self,
        text: &str,
        at: usize,
        frames: &mut [Frame],
        mut word: String,
    ) -> usize {
        let Some(frame) = frames.last_mut() else {
            return text.len();
        };
        let operator =
            matches!(frame.items.last(), Some(Item::Value(_)) if text.get(at..=at) == Some("-"));
        let digits = text.as_bytes().get(at).is_some_and(u8::is_ascii_digit) && word.is_empty();
        let in_index = matches!(frame.kind, Kind::Index(_));
        let in_hash = frame.kind == Kind::Hash;
        let mut started = !word.is_empty();
        let mut end = at;
        while let Some(c) = quote::char_at(text, end) {
            let stops = match c {
                c if c.is_whitespace() => true,
                ';' | '|' | '&' | '(' | ')' | '{' | '}' | ',' | '>' => true,
                '=' => in_hash,
                ']' => in_index,
                '\'' | '"' | '$' => operator,
                '+' => digits || in_index,
                '.' if digits => text
                    .get(end + 1..end + 2)
                    .is_some_and(|next| next.starts_with(|c: char| c.is_ascii_alphabetic())),
                _ => false,
            };
            if stops || (operator && end > at && !c.is_ascii_alphabetic()) {
                break;
            }
            started = true;
            match c {
                '`' => {
                    end += 1;
                    if let Some(next) = quote::char_at(text, end) {
                        word.push(next);
                        end += next.len_utf8();
                    }
                }
                '\'' => {
                    let close = terms::single_end(text.as_bytes(), end + 1);
                    word.push_str(quote::cut(text, end + 1, close));
                    end = close + 1;
                }
                '"' => {
                    let close = terms::double_end(text.as_bytes(), end + 1);
                    let inside = self.expand_text(quote::cut(text, end + 1, close));
                    word.push_str(&inside.items.concat());
                    end = close + 1;
                }
                '$' => {
                    let name = terms::name_end(text.as_bytes(), end + 1);
                    let term = self.get(quote::cut(text, end + 1, name));
                    word.push_str(if term.is_known() {
                        term.first()
                    } else {
                        quote::cut(text, end, name)
                    });
                    end = name.max(end + 1);
                }
                c => {
                    word.push(c);
                    end += c.len_utf8();
                }
            }
        }
        let redirect = text.get(end..=end) == Some(">")
            && word.len() <= 1
            && word.chars().all(|c| c.is_ascii_digit() || c == '*');
        if started
            && !redirect
            && let Some(frame) = frames.last_mut()
        {
            frame.items.push(Item::Word(word));
        }
        end
    }

    /// Evaluates a text in double quotes, including its variables and `$(…)`.
    pub(super) fn expand_text(&mut self, text: &str) -> Term {
        let mut out = Term::text("");
        let mut expansion = String::new();
        let mut at = 0;
        while let Some(c) = quote::char_at(text, at) {
            let rest = text.get(at + c.len_utf8()..).unwrap_or_default();
            match c {
                '`' => {
                    let next = rest.chars().next().unwrap_or(' ');
                    expansion.push(match next {
                        'n' | 'r' => '\n',
                        't' => '\t',
                        next => next,
                    });
                    at += 1 + next.len_utf8();
                    continue;
                }
                '"' if rest.starts_with('"') => at += 1,
                '$' if rest.starts_with('(') => {
                    let end = quote::find_closing(text.as_bytes(), at + 2, b')');
                    let inner = self.run(quote::cut(text, at + 2, end));
                    out.taint |= inner.taint;
                    expansion.push_str(&inner.items.join(" "));
                    at = end + 1;
                    continue;
                }
                '$' => {
                    let braced = rest.starts_with('{');
                    let end = if braced {
                        quote::find(text.as_bytes(), at, b'}')
                    } else {
                        terms::name_end(text.as_bytes(), at + 1)
                    };
                    let name = quote::cut(text, at + 1 + usize::from(braced), end);
                    if !name.is_empty() {
                        let term = self.get(name);
                        out.taint |= term.taint;
                        let end = (end + usize::from(braced)).min(text.len());
                        // An unknown value is not an empty one: `"$x/"` is not the root.
                        let source = quote::cut(text, at, end);
                        expansion.push_str(&if term.is_known() {
                            term.items.join(" ")
                        } else {
                            source.to_owned()
                        });
                        at = end;
                        continue;
                    }
                }
                _ => {}
            }
            expansion.push(c);
            at += c.len_utf8();
        }
        self.reader.spend_bytes(expansion.len());
        out.items = vec![expansion];
        out
    }
}
