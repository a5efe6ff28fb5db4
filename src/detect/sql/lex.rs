//! Splits SQL into tokens, in the way of each family of databases.
//!
//! A string or a comment in one database is a statement in another (`'a\'; DROP …`, `# …`, `$$…$$`,
//! `/*! … */`). Which database will read the text is unknown, so it is read in every way that
//! differs.

use std::ops::Range;

/// The lexical rules of a family of databases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flavour {
    /// SQLite, Oracle, DB2 and the standard.
    Plain,
    /// PostgreSQL and its kin: `$tag$…$tag$`, `E'…'`, nested comments.
    Postgres,
    /// MySQL and MariaDB, BigQuery, Hive: backslashes in strings, `#` comments, `/*! … */` is
    /// executed.
    MySql,
    /// SQL Server: `[name]`, nested comments.
    MsSql,
}

impl Flavour {
    /// All of them.
    pub(super) const ALL: [Self; 4] = [Self::Plain, Self::Postgres, Self::MySql, Self::MsSql];
}

/// The kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A keyword or a name.
    Word,
    /// A name in quotes, or in MySQL a string in double quotes.
    Quoted,
    /// A string.
    Text,
    /// A number, `0x…` included.
    Number,
    /// Any other single character.
    Mark,
    /// A command of the client, such as `\!` or `.shell`, up to the end of the line.
    Client,
}

/// A token; `text` is without its quotes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Token<'t> {
    pub(super) kind: Kind,
    pub(super) text: &'t str,
    /// Its byte range in the text, quotes included.
    pub(super) span: Range<usize>,
    /// Number of brackets around it.
    pub(super) depth: usize,
}

impl Token<'_> {
    /// Reports whether it is this keyword, given in lower case.
    pub(super) fn is(&self, word: &str) -> bool {
        self.kind == Kind::Word && self.text.eq_ignore_ascii_case(word)
    }

    /// Reports whether it is one of these keywords, given in lower case.
    pub(super) fn is_any<'w>(&self, words: impl IntoIterator<Item = &'w &'w str>) -> bool {
        words.into_iter().any(|word| self.is(word))
    }

    /// Reports whether it is this single character.
    pub(super) fn is_mark(&self, mark: &str) -> bool {
        self.kind == Kind::Mark && self.text == mark
    }
}

/// Reports whether families of databases could tokenize the text differently.
pub(super) fn is_ambiguous(text: &str) -> bool {
    text.contains(['\\', '#', '$', '[', '`'])
        || text.contains("/*")
        || text.contains("--")
        || text.contains("q'")
        || text.contains("Q'")
}

/// Returns the tokens of a text; `None` if a string, a name or a comment has no end.
pub(super) fn tokens(text: &str, flavour: Flavour) -> Option<Vec<Token<'_>>> {
    Lexer {
        text,
        bytes: text.as_bytes(),
        at: 0,
        flavour,
        tokens: Vec::new(),
        depth: 0,
        hint: false,
    }
    .run()
}

struct Lexer<'t> {
    text: &'t str,
    bytes: &'t [u8],
    at: usize,
    flavour: Flavour,
    tokens: Vec<Token<'t>>,
    depth: usize,
    /// Whether it is inside `/*! … */`, whose end is then not a token.
    hint: bool,
}

impl<'t> Lexer<'t> {
    fn byte(&self, ahead: usize) -> u8 {
        self.bytes.get(self.at + ahead).copied().unwrap_or(0)
    }

    fn run(mut self) -> Option<Vec<Token<'t>>> {
        while self.at < self.bytes.len() {
            self.step()?;
        }
        Some(self.tokens)
    }

    fn step(&mut self) -> Option<()> {
        let start = self.at;
        let byte = self.byte(0);
        if byte.is_ascii_whitespace() || byte == 0 || byte == 0x0b {
            self.at += 1;
            return Some(());
        }
        if self.skip_comment()? || self.read_client() {
            return Some(());
        }
        match byte {
            b'\'' => self.read_string(1, self.flavour == Flavour::MySql),
            b'"' => self.read_quoted(b'"', self.flavour == Flavour::MySql),
            b'`' => self.read_quoted(b'`', false),
            b'[' if self.flavour == Flavour::MsSql || self.is_bracketed_name() => {
                self.read_quoted(b']', false)
            }
            b'$' if self.flavour == Flavour::Postgres && self.read_dollar_quoted()? => Some(()),
            b'0'..=b'9' => {
                self.read_word(Kind::Number);
                Some(())
            }
            _ if is_word(byte) => {
                let prefix = byte.to_ascii_lowercase();
                match (prefix, self.byte(1)) {
                    (b'e', b'\'') => self.read_string(2, true),
                    (b'n' | b'b' | b'x' | b'r', b'\'') => {
                        self.read_string(2, self.flavour == Flavour::MySql)
                    }
                    (b'q', b'\'') if self.flavour == Flavour::Plain => self.read_oracle_string(),
                    (b'u', b'&') if matches!(self.byte(2), b'\'') => self.read_string(3, false),
                    _ => {
                        self.read_word(Kind::Word);
                        Some(())
                    }
                }
            }
            _ => {
                let c = self.text.get(start..).and_then(|rest| rest.chars().next());
                let length = c.map_or(1, char::len_utf8);
                if c.is_some_and(char::is_whitespace) {
                    self.at += length;
                    return Some(());
                }
                self.depth = match byte {
                    b')' => self.depth.saturating_sub(1),
                    _ => self.depth,
                };
                self.push(Kind::Mark, start, start..start + length, start + length);
                self.depth += usize::from(byte == b'(');
                Some(())
            }
        }
    }

    fn push(&mut self, kind: Kind, start: usize, inner: Range<usize>, end: usize) {
        let text = self.text.get(inner).unwrap_or_default();
        self.tokens.push(Token {
            kind,
            text,
            span: start..end,
            depth: self.depth,
        });
        self.at = end;
    }

    /// Skips a comment, if one begins here. Returns `None` if it has no end.
    fn skip_comment(&mut self) -> Option<bool> {
        let mysql = self.flavour == Flavour::MySql;
        match (self.byte(0), self.byte(1)) {
            (b'-', b'-') if !mysql || self.byte(2) <= b' ' => self.at = self.line_end(),
            (b'#', _) if mysql => self.at = self.line_end(),
            (b'/', b'*')
                if mysql
                    && (self.byte(2) == b'!' || (self.byte(2) == b'M' && self.byte(3) == b'!')) =>
            {
                self.at += if self.byte(2) == b'!' { 3 } else { 4 };
                while self.byte(0).is_ascii_digit() {
                    self.at += 1;
                }
                self.hint = true;
            }
            (b'*', b'/') if self.hint => {
                self.hint = false;
                self.at += 2;
            }
            (b'/', b'*') => {
                let nests = matches!(self.flavour, Flavour::Postgres | Flavour::MsSql);
                let mut open = 0usize;
                loop {
                    match (self.byte(0), self.byte(1)) {
                        (b'/', b'*') if open == 0 || nests => {
                            open += 1;
                            self.at += 2;
                        }
                        (b'*', b'/') => {
                            open -= 1;
                            self.at += 2;
                            if open == 0 {
                                break;
                            }
                        }
                        _ if self.at >= self.bytes.len() => return None,
                        _ => self.at += 1,
                    }
                }
            }
            _ => return Some(false),
        }
        Some(true)
    }

    fn line_end(&self) -> usize {
        memchr::memchr2(b'\n', b'\r', self.bytes.get(self.at..).unwrap_or_default())
            .map_or(self.bytes.len(), |n| self.at + n)
    }

    /// Reads a command of the client: `\!` and the like anywhere; `.shell`, `!`, `:!!` where a
    /// statement would begin.
    fn read_client(&mut self) -> bool {
        let begins = self
            .tokens
            .last()
            .is_none_or(|last| last.is_mark(";") || last.kind == Kind::Client);
        let (byte, next) = (self.byte(0), self.byte(1));
        let is_command = match byte {
            b'\\' => next == b'!' || next.is_ascii_alphabetic(),
            b'.' => begins && next.is_ascii_alphabetic(),
            b'!' => begins && next != b'=',
            b':' => begins && (next == b'!' || next.is_ascii_alphabetic()),
            b'@' => begins && (next == b'@' || next == b'/' || next == b'.'),
            _ => false,
        };
        if is_command {
            let end = self.line_end();
            self.push(Kind::Client, self.at, self.at..end, end);
        }
        is_command
    }

    /// Reads a word or a number; a non-ASCII space ends it, or is skipped at its start.
    fn read_word(&mut self, kind: Kind) {
        let start = self.at;
        let allows_hash = self.flavour != Flavour::MySql;
        let is_part = |c: char| {
            c.is_alphanumeric()
                || matches!(c, '_' | '@' | '$')
                || c == '#' && allows_hash
                || !c.is_ascii() && !c.is_whitespace()
        };
        let rest = self.text.get(start..).unwrap_or_default();
        let length = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        if length == 0 {
            self.at += rest.chars().next().map_or(1, char::len_utf8);
            return;
        }
        self.push(kind, start, start..start + length, start + length);
    }

    /// Reads a string whose first quote is `before − 1` bytes ahead; doubled quotes are part of it.
    fn read_string(&mut self, before: usize, backslashes: bool) -> Option<()> {
        self.read_until(b'\'', before, backslashes, Kind::Text)
    }

    fn read_quoted(&mut self, quote: u8, backslashes: bool) -> Option<()> {
        self.read_until(quote, 1, backslashes, Kind::Quoted)
    }

    fn read_until(
        &mut self,
        quote: u8,
        before: usize,
        backslashes: bool,
        kind: Kind,
    ) -> Option<()> {
        let start = self.at;
        let from = self.at + before;
        let mut end = from;
        loop {
            match self.bytes.get(end)? {
                b'\\' if backslashes => end += 2,
                byte if *byte == quote && self.bytes.get(end + 1) == Some(&quote) => end += 2,
                byte if *byte == quote => break,
                _ => end += 1,
            }
        }
        self.push(kind, start, from..end, end + 1);
        Some(())
    }

    /// Reads `$tag$…$tag$`; returns whether there was one, or `None` if it has no end.
    fn read_dollar_quoted(&mut self) -> Option<bool> {
        let rest = self.text.get(self.at + 1..)?;
        let Some(tag) = rest.find('$').and_then(|end| rest.get(..end)) else {
            return Some(false);
        };
        if tag.len() > 64
            || !tag.bytes().all(|b| is_word(b) || b.is_ascii_digit())
            || tag.starts_with(|c: char| c.is_ascii_digit())
        {
            return Some(false);
        }
        let fence = self.text.get(self.at..self.at + tag.len() + 2)?;
        let from = self.at + fence.len();
        let end = from + memchr::memmem::find(self.bytes.get(from..)?, fence.as_bytes())?;
        self.push(Kind::Text, self.at, from..end, end + fence.len());
        Some(true)
    }

    /// Reads Oracle's `q'[…]'`.
    fn read_oracle_string(&mut self) -> Option<()> {
        let close = match self.byte(2) {
            b'[' => b']',
            b'(' => b')',
            b'{' => b'}',
            b'<' => b'>',
            other => other,
        };
        let from = self.at + 3;
        let end = from + memchr::memmem::find(self.bytes.get(from..)?, &[close, b'\''])?;
        self.push(Kind::Text, self.at, from..end, end + 2);
        Some(())
    }

    /// Reports whether `[` begins a name, as in SQLite, rather than an index or a list.
    fn is_bracketed_name(&self) -> bool {
        let previous = self.tokens.last();
        let index = previous.is_some_and(|t| {
            (t.kind == Kind::Word && t.span.end == self.at) || t.is_mark(")") || t.is_mark("]")
        });
        self.flavour == Flavour::Plain && !index && (is_word(self.byte(1)))
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_' || byte == b'@' || byte >= 0x80
}
