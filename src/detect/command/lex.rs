//! Splits text into tokens, as a POSIX shell or bash does. Tolerant: anything unclosed ends with
//! the text.

use super::quote;
pub(super) use super::tokens::{Flow, Piece, Token, Word};
use super::words::{keyword, plain};

struct Lexer<'t> {
    text: &'t str,
    bytes: &'t [u8],
    at: usize,
    tokens: Vec<Token>,
    word: Word,
    in_word: bool,
    word_start: usize,
    /// Here-documents whose bodies follow the next line end: token, delimiter, quoted, tabs
    /// stripped.
    pending: Vec<(usize, String, bool, bool)>,
    /// Whether this is the inside of `a=(…)`, where no further list may start.
    in_list: bool,
    /// Whether a quote or a bracket is never closed.
    unclosed: bool,
}

/// Maximum number of words before a bracket among which the name of PowerShell is looked for.
const PROGRAM_WORDS: usize = 16;

/// Ends an item of `a=(…)` within the assigned value: the unit separator, which cleaned text never
/// contains.
pub(super) const ITEM: char = '\u{1f}';

/// Splits `text` into tokens, and reports whether a quote or bracket is never closed. Takes linear
/// time except for nesting, which the caller bounds.
pub(super) fn lex(text: &str) -> (Vec<Token>, bool) {
    let mut lexer = Lexer::new(text);
    lexer.run();
    (lexer.tokens, lexer.unclosed)
}

/// Returns the pieces of a here-document's body, where only `$`, backticks and backslashes are
/// special.
pub(super) fn lex_body(text: &str) -> Word {
    let mut lexer = Lexer::new(text);
    lexer.read_double_quoted(false);
    lexer.word
}

impl<'t> Lexer<'t> {
    fn new(text: &'t str) -> Self {
        Self {
            text,
            bytes: text.as_bytes(),
            at: 0,
            tokens: Vec::new(),
            word: Vec::new(),
            in_word: false,
            word_start: 0,
            pending: Vec::new(),
            in_list: false,
            unclosed: false,
        }
    }

    /// Returns where the bracket that was opened before `start` closes.
    fn find_closing(&mut self, start: usize, closer: u8) -> usize {
        let end = quote::find_closing(self.bytes, start, closer);
        self.unclosed |= end >= self.bytes.len();
        end
    }

    /// Returns the text up to the closing bracket, after an opening one of `length` bytes, and moves
    /// past it.
    fn read_bracketed(&mut self, length: usize, closer: u8) -> &'t str {
        let start = self.at + length;
        let end = self.find_closing(start, closer);
        self.at = end + 1;
        quote::cut(self.text, start, end)
    }

    fn peek(&self, ahead: usize) -> u8 {
        self.bytes.get(self.at + ahead).copied().unwrap_or(0)
    }

    fn run(&mut self) {
        while self.at < self.bytes.len() {
            match self.peek(0) {
                b' ' | b'\t' => {
                    self.end_word();
                    self.at += 1;
                }
                b'\n' => {
                    self.push_operator(Token::End, 1);
                    self.read_here_bodies();
                }
                b'#' if !self.in_word => self.at = quote::find(self.bytes, self.at, b'\n'),
                b';' if matches!(self.peek(1), b';' | b'&') => {
                    let length = if self.peek(1) == b';' && self.peek(2) == b'&' {
                        3
                    } else {
                        2
                    };
                    self.push_operator(Token::CaseEnd, length);
                }
                b';' => self.push_operator(Token::End, 1),
                b'&' if self.peek(1) == b'&' => self.push_operator(Token::And, 2),
                b'&' if self.peek(1) == b'>' => {
                    let (flow, length) = if self.peek(2) == b'>' {
                        (Flow::Append, 3)
                    } else {
                        (Flow::Write, 2)
                    };
                    self.end_word();
                    self.at += length;
                    self.push_redirect(flow);
                }
                b'&' => self.push_operator(Token::Background, 1),
                b'|' if self.peek(1) == b'|' => self.push_operator(Token::Or, 2),
                b'|' => {
                    let length = if self.peek(1) == b'&' { 2 } else { 1 };
                    self.push_operator(Token::Pipe, length);
                }
                // `a=(…)` and `a+=(…)` keep their list in the word.
                b'(' if self.in_word && !self.in_list && self.is_assignment() => self.read_array(),
                b'(' if self.in_word && self.ends_in_glob_mark() => self.read_glob_group(),
                b'(' if self.in_word && self.skip_glob_qualifier() => {}
                b'(' if !self.in_word && self.is_fish_substitution() => self.read_fish(),
                b'=' if !self.in_word && self.peek(1) == b'(' => self.read_process(),
                b'(' => self.push_operator(Token::Open, 1),
                b')' => self.push_operator(Token::Close, 1),
                b'<' | b'>' if self.peek(1) == b'(' => self.read_process(),
                b'<' | b'>' => self.read_angle(),
                _ => self.read_character(),
            }
        }
        self.end_word();
        self.read_here_bodies();
    }

    fn push_operator(&mut self, token: Token, length: usize) {
        self.end_word();
        self.tokens.push(token);
        self.at += length;
    }

    fn begin_word(&mut self) {
        if !self.in_word {
            self.in_word = true;
            self.word_start = self.at;
        }
    }

    fn end_word(&mut self) {
        if self.in_word {
            self.in_word = false;
            let word = std::mem::take(&mut self.word);
            // A number or `{name}` right before a redirection is its descriptor, which `angle` has
            // already taken.
            match self.tokens.last_mut() {
                Some(Token::Redirect { target, .. }) if target.is_empty() => *target = word,
                _ => self
                    .tokens
                    .push(Token::Word(word, self.word_start..self.at)),
            }
        }
    }

    /// Reports whether the word so far is `name=`.
    fn is_assignment(&self) -> bool {
        plain(&self.word).is_some_and(|text| {
            let is_part = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'+' | b'=');
            text.ends_with('=') && text.bytes().all(is_part)
        })
    }

    fn read_array(&mut self) {
        let mut items = Lexer::new(self.read_bracketed(1, b')'));
        items.in_list = true;
        items.run();
        for token in items.tokens {
            if let Token::Word(word, _) = token {
                self.word.extend(word);
                self.word.push(Piece::quoted(ITEM));
            }
        }
    }

    /// Reports whether the word so far ends in the mark of a group of patterns: `@(a|b)` (`extglob` of
    /// bash). `!(…)` where a command begins is a negated subshell.
    fn ends_in_glob_mark(&self) -> bool {
        let text = self.word.last().and_then(Piece::as_plain);
        let follows_word =
            matches!(self.tokens.last(), Some(Token::Word(word, _)) if keyword(word).is_none());
        text.is_some_and(|text| {
            text.ends_with(['@', '?', '+', '*'])
                || text.ends_with('!') && (follows_word || text.len() > 1)
        })
    }

    /// Reads a group of patterns as the braces that expand to its alternatives.
    fn read_glob_group(&mut self) {
        let inside = self.read_bracketed(1, b')');
        let choices: String = inside
            .chars()
            .filter(|c| !matches!(c, '\'' | '"' | '\\'))
            .map(|c| if c == '|' { ',' } else { c })
            .collect();
        let mark = match self.word.last_mut() {
            Some(Piece::Text { text, .. }) => text.pop(),
            _ => None,
        };
        let braces = match mark {
            Some('!') => "*".to_owned(),
            Some('@' | '+') if !choices.contains(',') => choices,
            Some('@' | '+') => format!("{{{choices}}}"),
            _ => format!("{{{choices},}}"),
        };
        self.push(&braces, false);
    }

    /// Moves past a qualifier after a pattern of zsh, `/bin/rm(N)`: a few letters in brackets that end
    /// a word with a path. Returns whether there is one.
    fn skip_glob_qualifier(&mut self) -> bool {
        const LETTERS: usize = 8;
        let rest = self.bytes.get(self.at + 1..).unwrap_or_default();
        let letters = rest
            .iter()
            .take(LETTERS)
            .take_while(|b| b.is_ascii_alphabetic())
            .count();
        let ends_word = matches!(
            rest.get(letters + 1),
            None | Some(b' ' | b'\t' | b'\n' | b';')
        );
        let is_path = plain(&self.word).is_some_and(|word| word.contains('/'));
        let is_there = is_path && letters > 0 && rest.get(letters) == Some(&b')') && ends_word;
        self.at += if is_there { letters + 2 } else { 0 };
        is_there
    }

    /// Reports whether a bracket after a word begins a substitution of fish, `eval (…)`: in other
    /// shells it may follow keywords only, or belongs to a function.
    fn is_fish_substitution(&self) -> bool {
        let Some(Token::Word(word, _)) = self.tokens.last() else {
            return false;
        };
        let rest = self.bytes.get(self.at + 1..).unwrap_or_default();
        let is_blank = |b: &&u8| matches!(b, b' ' | b'\t');
        let words = self.tokens.iter().rev().take(PROGRAM_WORDS);
        let is_powershell = words
            .map_while(|token| match token {
                Token::Word(word, _) => Some(plain(word)),
                _ => None,
            })
            .any(|word| matches!(word, Some("powershell" | "pwsh")));
        keyword(word).is_none()
            && !is_powershell
            && !matches!(plain(word), Some("[[" | "time"))
            && !matches!(rest.iter().find(|b| !is_blank(b)), None | Some(b')'))
    }

    fn read_fish(&mut self) {
        self.begin_word();
        let script = self.read_bracketed(1, b')').to_owned();
        let quoted = false;
        self.word.push(Piece::Run { script, quoted });
    }

    fn read_process(&mut self) {
        self.begin_word();
        let script = self.read_bracketed(2, b')').to_owned();
        self.word.push(Piece::Process { script });
    }

    fn read_angle(&mut self) {
        // Digits or `{name}` right before the redirection name its descriptor and are not a word of
        // their own.
        if let Some(text) = plain(&self.word)
            && (text.bytes().all(|b| b.is_ascii_digit())
                || (text.starts_with('{') && text.ends_with('}')))
        {
            self.word.clear();
            self.in_word = false;
        }
        self.end_word();
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let (flow, length) = match rest {
            [b'<', b'<', b'<', ..] => (Flow::Here, 3),
            [b'<', b'<', ..] => {
                self.at += 2;
                return self.read_here_document();
            }
            [b'<', b'>', ..] => (Flow::ReadWrite, 2),
            [b'<', b'&', ..] => (Flow::Duplicate, 2),
            [b'>', b'&', next, ..] if next.is_ascii_digit() || *next == b'-' => {
                (Flow::Duplicate, 2)
            }
            [b'>', b'>', ..] => (Flow::Append, 2),
            [b'>', b'&' | b'|', ..] => (Flow::Write, 2),
            [b'<', ..] => (Flow::Read, 1),
            _ => (Flow::Write, 1),
        };
        self.at += length;
        self.push_redirect(flow);
    }

    fn push_redirect(&mut self, flow: Flow) {
        while matches!(self.peek(0), b' ' | b'\t') {
            self.at += 1;
        }
        self.tokens.push(Token::Redirect {
            flow,
            target: Vec::new(),
        });
    }

    fn read_here_document(&mut self) {
        let tabs = self.peek(0) == b'-';
        self.at += usize::from(tabs);
        while matches!(self.peek(0), b' ' | b'\t') {
            self.at += 1;
        }
        let start = self.at;
        while !matches!(
            self.peek(0),
            0 | b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b'<' | b'>' | b'(' | b')'
        ) {
            self.at += 1;
        }
        let raw = quote::cut(self.text, start, self.at);
        let delimiter: String = raw
            .chars()
            .filter(|c| !matches!(c, '\'' | '"' | '\\'))
            .collect();
        let quoted = delimiter.len() != raw.len();
        self.pending
            .push((self.tokens.len(), delimiter, quoted, tabs));
        // Never empty; otherwise the next word would be taken as the target.
        let target = vec![Piece::quoted("")];
        self.tokens.push(Token::Redirect {
            flow: Flow::Here,
            target,
        });
    }

    fn read_here_bodies(&mut self) {
        for (token, delimiter, quoted, tabs) in std::mem::take(&mut self.pending) {
            let start = self.at;
            let mut end = self.bytes.len();
            while self.at < self.bytes.len() {
                let rest = self.text.get(self.at..).unwrap_or("");
                let line = rest.split('\n').next().unwrap_or("");
                let line_start = self.at;
                self.at = (self.at + line.len() + 1).min(self.bytes.len());
                let line = if tabs {
                    line.trim_start_matches('\t')
                } else {
                    line
                };
                if line.trim_end() == delimiter {
                    end = line_start;
                    break;
                }
            }
            let body = quote::cut(self.text, start, end);
            let word = if quoted {
                vec![Piece::quoted(body)]
            } else {
                lex_body(body)
            };
            if let Some(Token::Redirect { target, .. }) = self.tokens.get_mut(token) {
                *target = word;
            }
        }
    }

    /// Reads one character or quoted run of a word.
    fn read_character(&mut self) {
        self.begin_word();
        match self.peek(0) {
            b'\\' if self.peek(1) == b'\n' => {
                self.at += 2;
                self.in_word = !self.word.is_empty();
            }
            b'\\' => {
                self.at += 1;
                self.push_literal(true);
            }
            b'\'' => {
                let start = self.at + 1;
                let end = quote::find(self.bytes, start, b'\'');
                self.unclosed |= end >= self.bytes.len();
                self.push(quote::cut(self.text, start, end), true);
                self.at = end + 1;
            }
            b'"' => {
                self.at += 1;
                self.push("", true);
                self.read_double_quoted(true);
            }
            b'$' if self.peek(1) == b'\'' => {
                let (text, end) = quote::read_ansi_c(self.text, self.at + 2);
                self.push(&text, true);
                self.at = end;
            }
            b'$' if self.peek(1) == b'"' => self.at += 1,
            b'$' | b'`' => self.read_dollar(false),
            _ => self.read_run(false, |b| {
                !matches!(
                    b,
                    b' ' | b'\t'
                        | b'\n'
                        | b';'
                        | b'&'
                        | b'|'
                        | b'('
                        | b')'
                        | b'<'
                        | b'>'
                        | b'\\'
                        | b'\''
                        | b'"'
                        | b'$'
                        | b'`'
                )
            }),
        }
    }

    /// Reads the current character and all following ones without a special meaning.
    fn read_run(&mut self, quoted: bool, plain: impl Fn(u8) -> bool) {
        let rest = self.bytes.get(self.at + 1..).unwrap_or_default();
        let end = self.at + 1 + rest.iter().position(|b| !plain(*b)).unwrap_or(rest.len());
        // The character that ends the run is ASCII, so the end is a character boundary.
        self.push(quote::cut(self.text, self.at, end), quoted);
        self.at = end;
    }

    fn push_literal(&mut self, quoted: bool) {
        let c = quote::char_at(self.text, self.at);
        if let Some(c) = c {
            let mut buffer = [0; 4];
            self.push(c.encode_utf8(&mut buffer), quoted);
        }
        self.at += c.map_or(1, char::len_utf8);
    }

    fn push(&mut self, more: &str, as_quoted: bool) {
        match self.word.last_mut() {
            Some(Piece::Text { text, quoted }) if *quoted == as_quoted => text.push_str(more),
            _ => self.word.push(Piece::Text {
                text: more.to_owned(),
                quoted: as_quoted,
            }),
        }
    }

    /// Reads up to the closing quote (or, for a here-document, to the end).
    fn read_double_quoted(&mut self, closes: bool) {
        while self.at < self.bytes.len() {
            match self.peek(0) {
                b'"' if closes => {
                    self.at += 1;
                    return;
                }
                b'\\' if self.peek(1) == b'\n' => self.at += 2,
                b'\\' if matches!(self.peek(1), b'$' | b'`' | b'"' | b'\\') => {
                    self.at += 1;
                    self.push_literal(true);
                }
                b'$' | b'`' => self.read_dollar(true),
                _ => self.read_run(true, |b| !matches!(b, b'"' | b'\\' | b'$' | b'`')),
            }
        }
        self.unclosed |= closes;
    }

    /// Reads an expansion at `$` or a backtick.
    fn read_dollar(&mut self, quoted: bool) {
        if self.peek(0) == b'`' {
            let end = quote::find_unescaped(self.bytes, self.at + 1, b'`');
            self.unclosed |= end >= self.bytes.len();
            let script = quote::cut(self.text, self.at + 1, end)
                .replace("\\`", "`")
                .replace("\\\\", "\\")
                .replace("\\$", "$");
            self.word.push(Piece::Run { script, quoted });
            self.at = end + 1;
            return;
        }
        match (self.peek(1), self.peek(2)) {
            (b'(', b'(') => {
                let inside = self.read_bracketed(3, b')').to_owned();
                self.word.push(Piece::Arithmetic { inside });
                self.at += usize::from(self.peek(0) == b')');
            }
            (b'(', _) => {
                let script = self.read_bracketed(2, b')').to_owned();
                self.word.push(Piece::Run { script, quoted });
            }
            (b'{', _) => {
                let inside = self.read_bracketed(2, b'}').to_owned();
                self.word.push(Piece::Variable { inside, quoted });
            }
            (b'@' | b'*' | b'#' | b'?' | b'-' | b'$' | b'!' | b'0'..=b'9', _) => {
                let inside = quote::cut(self.text, self.at + 1, self.at + 2).to_owned();
                self.word.push(Piece::Variable { inside, quoted });
                self.at += 2;
            }
            (b'a'..=b'z' | b'A'..=b'Z' | b'_', _) => {
                let rest = self.text.get(self.at + 1..).unwrap_or_default();
                let inside = quote::split_name(rest).0.to_owned();
                self.at += 1 + inside.len();
                self.word.push(Piece::Variable { inside, quoted });
            }
            _ => self.push_literal(quoted),
        }
    }
}
