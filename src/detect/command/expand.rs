//! Expands words to fields: braces, variables, substitutions, splitting.

use super::brace;
use super::lex::{Piece, Word};
use super::reader::Reader;
use super::value::{Field, Taint, UNKNOWN, Value};
use crate::text::quick::WordSet;

impl Reader<'_> {
    /// Adds the fields that a word expands to; none if it expands to nothing.
    pub(super) fn expand_word(&mut self, word: &Word, out: &mut Vec<Field>) {
        match brace::expand(word) {
            brace::Braces::None => self.split_word(word, out),
            brace::Braces::Words(words) => {
                for word in &words {
                    self.split_word(word, out);
                }
            }
            brace::Braces::TooMany => self.give_up(),
        }
    }

    /// Returns the single field of a word that is not split: an assigned value, the target of a
    /// redirection.
    pub(super) fn expand_single(&mut self, word: &Word) -> Field {
        let mut field = Field::default();
        for (at, piece) in word.iter().enumerate() {
            match piece {
                Piece::Text { text, quoted } => push_text(&mut field, text, *quoted),
                _ => {
                    let value = self.evaluate_piece(piece);
                    let text = self
                        .stand_in(piece, &value, &field.text, word.get(at + 1))
                        .unwrap_or_else(|| value.items.join(" "));
                    field.text.push_str(&text);
                    field.taint |= value.taint;
                }
            }
        }
        self.spend_bytes(field.text.len());
        field
    }

    fn split_word(&mut self, word: &Word, out: &mut Vec<Field>) {
        if let [Piece::Text { text, quoted }] = word.as_slice() {
            self.spend_bytes(text.len());
            let mut field = Field::default();
            push_text(&mut field, text, *quoted);
            out.push(field);
            return;
        }
        let mut separators = vec![' ', '\t', '\n'];
        separators.extend(
            self.variables
                .get("IFS")
                .and_then(Value::as_text)
                .unwrap_or_default()
                .chars()
                .take(16),
        );
        let mut field = Field::default();
        let mut started = false;
        for (at, piece) in word.iter().enumerate() {
            let (value, quoted) = match piece {
                Piece::Text { text, quoted } => {
                    push_text(&mut field, text, *quoted);
                    started = true;
                    continue;
                }
                Piece::Variable {
                    inside,
                    quoted: false,
                } if inside.starts_with("IFS") => {
                    finish_field(&mut field, &mut started, out);
                    continue;
                }
                Piece::Variable { quoted, .. } | Piece::Run { quoted, .. } => {
                    (self.evaluate_piece(piece), *quoted)
                }
                Piece::Process { .. } | Piece::Arithmetic { .. } => {
                    (self.evaluate_piece(piece), true)
                }
            };
            field.taint |= value.taint;
            if let Some(text) = self.stand_in(piece, &value, &field.text, word.get(at + 1)) {
                let is_unset_variable =
                    matches!(piece, Piece::Variable { inside, .. } if self.is_unset(inside));
                field.unset |= is_unset_variable && field.text.is_empty() && text.starts_with('$');
                started |= !text.is_empty();
                field.text.push_str(&text);
                continue;
            }
            for (n, item) in value.items.iter().enumerate() {
                if n > 0 {
                    finish_field(&mut field, &mut started, out);
                    field.taint = value.taint;
                }
                if quoted {
                    push_text(&mut field, item, true);
                    started = true;
                    continue;
                }
                for (n, part) in item.split(separators.as_slice()).enumerate() {
                    if n > 0 {
                        finish_field(&mut field, &mut started, out);
                        field.taint = value.taint;
                    }
                    push_text(&mut field, part, false);
                    started |= !part.is_empty();
                }
            }
            started |= quoted;
            self.spend_bytes(field.text.len());
            if self.is_spent() {
                return;
            }
        }
        finish_field(&mut field, &mut started, out);
    }

    /// Returns the stand-in for an unknown value: its own name, so that paths such as `$BUILD/x`
    /// keep their shape, or nothing if the name is wedged between letters (`c$@at`, `wh${x}oami`).
    fn stand_in(
        &self,
        piece: &Piece,
        value: &Value,
        before: &str,
        after: Option<&Piece>,
    ) -> Option<String> {
        if value.known {
            return None;
        }
        let follows = match after {
            Some(Piece::Text { text, .. }) => text.chars().next(),
            _ => None,
        };
        let Piece::Variable { inside, .. } = piece else {
            let wedged = before.ends_with(|c: char| c.is_alphanumeric())
                || follows.is_some_and(|c| c.is_alphanumeric());
            return Some(if wedged && value.taint == Taint::NONE {
                String::new()
            } else {
                UNKNOWN.into()
            });
        };
        let positional = inside
            .chars()
            .all(|c| c.is_ascii_digit() || matches!(c, '@' | '*'));
        let wedged = before.ends_with(|c: char| c.is_alphanumeric() || c == '/' || c == '-')
            && (positional || follows.is_some_and(|c| c.is_alphanumeric()));
        // Scripts do not have this many arguments: `$9` is written to expand to nothing.
        let empty = matches!(inside.as_str(), "6" | "7" | "8" | "9");
        let leads = empty || (before.is_empty() && positional && follows.is_some_and(|c| c != '/'));
        let name: String = inside
            .chars()
            .take_while(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '@' | '*' | '?'))
            .collect();
        Some(if wedged || leads {
            String::new()
        } else {
            format!("${name}")
        })
    }

    /// Reports whether nothing visible sets a variable, and it is not one that build systems set.
    fn is_unset(&self, name: &str) -> bool {
        static SET_ELSEWHERE: WordSet = WordSet::new(
            "GITHUB_ RUNNER_ CI XDG_ BUILD WORKSPACE TMP TEMP CACHE DIST OUT JENKINS AGENT_ CARGO \
             npm_ @",
        );
        let plain = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        plain
            && !self.variables.contains_key(name)
            && !SET_ELSEWHERE.iter().any(|part| name.contains(part))
    }

    /// Returns the value of a piece that is not text.
    fn evaluate_piece(&mut self, piece: &Piece) -> Value {
        match piece {
            Piece::Text { text, .. } => Value::text(text.clone()),
            Piece::Variable { inside, .. } => self.expand_variable(inside),
            Piece::Run { script, .. } => {
                let mut value = self.read_inner_script(script, &Value::empty());
                if let [text] = value.items.as_mut_slice() {
                    text.truncate(text.trim_end_matches('\n').len());
                    text.retain(|c| c != '\0');
                }
                value
            }
            Piece::Process { script } => {
                let value = self.read_inner_script(script, &Value::empty());
                let name = self.keep_stream(value.clone());
                Value::text(name).with(value.taint)
            }
            Piece::Arithmetic { inside } => {
                self.run_subscripts(inside);
                Value::text(arithmetic(inside))
            }
        }
    }
}

impl Reader<'_> {
    /// Runs the substitutions of an arithmetic expression: in the expression, in a subscript, or in
    /// the value of a variable that it names.
    pub(super) fn run_subscripts(&mut self, inside: &str) {
        let substitutes = |text: &str| text.contains("$(") || text.contains('`');
        let words = inside
            .split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
            .filter(|word| !word.is_empty());
        let values = words
            .take(64)
            .filter_map(|word| self.variables.get(word)?.as_text());
        let texts: Vec<String> = std::iter::once(inside)
            .chain(values)
            .filter(|text| substitutes(text))
            .map(str::to_owned)
            .collect();
        for text in texts {
            self.expand_inner_text(&text);
        }
    }
}

fn push_text(field: &mut Field, text: &str, quoted: bool) {
    field.text.push_str(text);
    field.quoted |= quoted;
    field.glob |= !quoted && text.contains(['*', '?', '[']);
}

fn finish_field(field: &mut Field, started: &mut bool, out: &mut Vec<Field>) {
    let done = std::mem::take(field);
    if *started {
        out.push(done);
    }
    *started = false;
}

/// Evaluates sums and differences from left to right; anything else is returned as written.
pub(super) fn arithmetic(inside: &str) -> String {
    let mut total = 0i64;
    let mut sign = 1i64;
    let mut digits = String::new();
    for c in inside.chars().chain(['+']) {
        match c {
            '0'..='9' if digits.len() < 15 => digits.push(c),
            '+' | '-' => {
                total = total.saturating_add(sign * digits.parse::<i64>().unwrap_or(0));
                digits.clear();
                sign = if c == '-' { -1 } else { 1 };
            }
            ' ' => {}
            _ => return inside.trim().to_owned(),
        }
    }
    total.to_string()
}
