//! Splits code into names, texts and signs: the part of a lexer that the languages of all
//! interpreters share.

use super::{compiled, quote};

/// Maximum number of tokens in one piece of code.
const MAX_TOKENS: usize = 65_536;

/// The name under which sources of compiled languages are read.
pub(in crate::detect) const COMPILED: &str = "compiled";

/// A language, if it is read differently from others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Language {
    Python,
    JavaScript,
    Ruby,
    Perl,
    Php,
    Lua,
    Awk,
    /// Go, Rust, C, Java and the like.
    Compiled,
    Other,
}

impl Language {
    /// Returns the language that an interpreter runs.
    pub(super) fn of_program(program: &str) -> Self {
        let base = program.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
        match base {
            "python" | "pypy" | "ipython" | "py" => Self::Python,
            "node" | "nodejs" | "deno" | "bun" | "ts-node" | "tsx" | "jjs" => Self::JavaScript,
            "ruby" | "irb" => Self::Ruby,
            "perl" | "raku" => Self::Perl,
            "php" => Self::Php,
            "lua" | "luajit" => Self::Lua,
            "awk" | "gawk" | "mawk" | "nawk" => Self::Awk,
            COMPILED | "jshell" | "scala" | "swift" | "kotlin" => Self::Compiled,
            _ => Self::Other,
        }
    }

    pub(super) fn joins_with_dot(self) -> bool {
        matches!(self, Self::Perl | Self::Php)
    }

    /// Reports whether a call needs no parentheses.
    pub(super) fn calls_loosely(self) -> bool {
        matches!(
            self,
            Self::Perl | Self::Ruby | Self::Lua | Self::Php | Self::Other | Self::Awk
        )
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    /// A name with its qualifiers: `os.system`, `IO::Socket`, `$s->exec`.
    Name(String),
    Text(String),
    /// A text in which the language replaces names by their values.
    Filled(String),
    Number(String),
    /// A text that the language runs as a command: backticks, `qx()`, `%x()`, a line of IPython
    /// that starts with `!`.
    Command(String),
    Sign(char),
    Line,
}

/// Splits code into tokens; `None` if there are too many.
pub(super) fn lex(code: &str, language: Language) -> Option<Vec<Token>> {
    let bytes = code.as_bytes();
    let hashes = !matches!(language, Language::JavaScript | Language::Lua);
    let slashes = matches!(
        language,
        Language::JavaScript | Language::Php | Language::Compiled
    );
    let runs_backticks = matches!(language, Language::Perl | Language::Ruby | Language::Php);
    let mut out: Vec<Token> = Vec::new();
    let mut at = 0;
    while let Some(&b) = bytes.get(at) {
        if out.len() > MAX_TOKENS {
            return None;
        }
        let next = bytes.get(at + 1).copied();
        let at_line = matches!(out.last(), None | Some(Token::Line));
        match b {
            // A method call on a line of its own belongs to the previous line.
            b'\n'
                if language == Language::Compiled
                    && compiled::continues_on_next_line(bytes, at) =>
            {
                at += 1
            }
            b'\n' => {
                out.push(Token::Line);
                at += 1;
            }
            b'\'' if language == Language::Compiled => at = compiled::behind_character(code, at),
            b'!' | b'%' if language == Language::Python && at_line => {
                at = read_magic(code, at, &mut out)
            }
            // A Rust attribute is not a comment.
            b'#' if language == Language::Compiled && next == Some(b'[') => at += 1,
            b'#' if hashes
                && (at == 0 || bytes.get(at - 1).is_some_and(u8::is_ascii_whitespace)) =>
            {
                at = quote::find(bytes, at, b'\n')
            }
            // `/pattern/ { … }`
            b'/' if language == Language::Awk
                && matches!(out.last(), None | Some(Token::Line | Token::Sign(_))) =>
            {
                let end = quote::find_unescaped(bytes, at + 1, b'/');
                let is_regex = end < bytes.len() && !quote::cut(code, at + 1, end).contains('\n');
                at = if is_regex { end + 1 } else { at + 1 };
            }
            b'/' if slashes
                && next == Some(b'/')
                && bytes.get(at.wrapping_sub(1)) != Some(&b':') =>
            {
                at = quote::find(bytes, at, b'\n')
            }
            b'/' if slashes && next == Some(b'*') => at = quote::find_text(code, at, "*/") + 2,
            b'-' if language == Language::Lua && next == Some(b'-') => {
                at = quote::find(bytes, at, b'\n')
            }
            b'\'' | b'"' | b'`' => at = read_text(code, at, language, runs_backticks, &mut out),
            b':' if language == Language::Ruby
                && next.is_some_and(|b| b.is_ascii_lowercase())
                && bytes.get(at.wrapping_sub(1)) != Some(&b':') =>
            {
                // `:system` is a text, too.
                let end = word_end(bytes, at + 1);
                out.push(Token::Text(quote::cut(code, at + 1, end).to_owned()));
                at = end;
            }
            b if b.is_ascii_alphabetic() || matches!(b, b'_' | b'$' | b'@') => {
                at = read_name(code, at, language, &mut out)
            }
            b'%' if language == Language::Ruby
                && next == Some(b'x')
                && bytes.get(at + 2).is_some_and(u8::is_ascii_punctuation) =>
            {
                at = read_command(code, at + 2, &mut out);
            }
            b if b.is_ascii_digit() => {
                let start = at;
                while bytes.get(at).is_some_and(u8::is_ascii_alphanumeric) {
                    at += 1;
                }
                out.push(Token::Number(quote::cut(code, start, at).to_owned()));
            }
            b if b.is_ascii_whitespace() => at += 1,
            b'{' if language == Language::Compiled => {
                // `[]string{"a", "b"}`: a list.
                if let [.., Token::Sign('['), Token::Sign(']'), Token::Name(_)] = out.as_slice() {
                    out.truncate(out.len() - 3);
                }
                out.push(Token::Sign('{'));
                at += 1;
            }
            b'\\' if next == Some(b'\n') => at += 2,
            b if b.is_ascii() => {
                out.push(Token::Sign(b as char));
                at += 1;
            }
            _ => at += 1,
        }
    }
    Some(out)
}

/// Reads IPython's `!command`, `%system command` and `%%bash`.
fn read_magic(code: &str, at: usize, out: &mut Vec<Token>) -> usize {
    let rest = code.get(at..).unwrap_or_default();
    let line = rest.lines().next().unwrap_or_default();
    if let Some(cell) = rest.strip_prefix("%%") {
        let (head, body) = cell.split_once('\n').unwrap_or((cell, ""));
        if ["bash", "sh", "script", "system"]
            .iter()
            .any(|shell| head.trim_start().starts_with(shell))
        {
            out.push(Token::Command(body.to_owned()));
            return code.len();
        }
        return at + 2 + head.len();
    }
    let command = line.strip_prefix('!').or_else(|| {
        ["%system ", "%sx ", "%bash "]
            .iter()
            .find_map(|word| line.strip_prefix(word))
    });
    match command {
        Some(command) => {
            out.push(Token::Command(command.trim_start_matches('!').to_owned()));
            at + line.len()
        }
        None => at + 1,
    }
}

/// Reads a quoted text and returns the index after it.
fn read_text(
    code: &str,
    at: usize,
    language: Language,
    runs_backticks: bool,
    out: &mut Vec<Token>,
) -> usize {
    let bytes = code.as_bytes();
    let Some(&b) = bytes.get(at) else {
        return at + 1;
    };
    // A prefix of letters determines how Python reads the text.
    let prefix: String = match out.last() {
        Some(Token::Name(name)) if name.len() <= 2 && at > 0 && language == Language::Python => {
            let glued = bytes.get(at - 1).is_some_and(u8::is_ascii_alphabetic);
            let proper = name
                .bytes()
                .all(|b| matches!(b, b'r' | b'b' | b'f' | b'u' | b'R' | b'B' | b'F' | b'U'));
            if glued && proper {
                name.to_ascii_lowercase()
            } else {
                String::new()
            }
        }
        _ => String::new(),
    };
    if !prefix.is_empty() {
        out.pop();
    }
    // Raw strings of Go and Rust, and verbatim strings of C#, have no escapes.
    let raw_quote = language == Language::Compiled
        && (b == b'`'
            || matches!(
                at.checked_sub(1).and_then(|at| bytes.get(at)),
                Some(b'r' | b'@')
            ));
    let triple = bytes.get(at + 1) == Some(&b) && bytes.get(at + 2) == Some(&b) && b != b'`';
    let (start, end, next) = if triple {
        let start = at + 3;
        let close = if b == b'"' { "\"\"\"" } else { "'''" };
        let end = quote::find_text(code, start, close);
        (start, end, end + 3)
    } else {
        let end = if raw_quote {
            quote::find(bytes, at + 1, b)
        } else {
            quote::find_unescaped(bytes, at + 1, b)
        };
        (at + 1, end, end + 1)
    };
    let raw = quote::cut(code, start, end);
    let plain = raw_quote
        || prefix.contains('r')
        || (b == b'\'' && matches!(language, Language::Ruby | Language::Perl | Language::Php));
    let text = if plain {
        raw.to_owned()
    } else {
        unescape(raw, language)
    };
    let filled = prefix.contains('f')
        || (b == b'`' && language == Language::JavaScript)
        || (b == b'"' && matches!(language, Language::Ruby | Language::Perl | Language::Php));
    out.push(match b {
        b'`' if runs_backticks => Token::Command(text),
        _ if filled => Token::Filled(text),
        _ => Token::Text(text),
    });
    next
}

/// Returns a text with its escapes decoded, including `\u0072` and `\u{72}`.
fn unescape(text: &str, language: Language) -> String {
    if language == Language::JavaScript && text.contains("\\u") {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find("\\u") {
            out.push_str(rest.get(..at).unwrap_or_default());
            let tail = rest.get(at + 2..).unwrap_or_default();
            let (digits, used) = match tail.strip_prefix('{') {
                Some(inner) => inner
                    .split_once('}')
                    .map_or(("", 0), |(digits, _)| (digits, digits.len() + 2)),
                None => (tail.get(..4).unwrap_or_default(), 4),
            };
            match u32::from_str_radix(digits, 16)
                .ok()
                .and_then(char::from_u32)
            {
                Some(c) => {
                    out.push(c);
                    rest = tail.get(used..).unwrap_or_default();
                }
                None => {
                    out.push('u');
                    rest = tail;
                }
            }
        }
        out.push_str(rest);
        return quote::decode_escapes(&out);
    }
    quote::decode_escapes(text)
}

fn word_end(bytes: &[u8], from: usize) -> usize {
    let mut at = from;
    while bytes
        .get(at)
        .is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_')
    {
        at += 1;
    }
    at
}

fn read_name(code: &str, from: usize, language: Language, out: &mut Vec<Token>) -> usize {
    let bytes = code.as_bytes();
    let arrows = matches!(language, Language::Perl | Language::Php);
    let mut at = from;
    while let Some(&b) = bytes.get(at) {
        let next = bytes.get(at + 1).copied();
        let is_part = b.is_ascii_alphanumeric()
            || matches!(b, b'_' | b'$' | b'@')
            || (b == b'.'
                && !language.joins_with_dot()
                && next.is_some_and(|b| b.is_ascii_alphabetic() || matches!(b, b'_' | b'$')))
            || (b == b':'
                && (next == Some(b':') || bytes.get(at.wrapping_sub(1)) == Some(&b':'))
                && at > from)
            || (arrows
                && b == b'-'
                && next == Some(b'>')
                && bytes.get(at + 2).is_some_and(u8::is_ascii_alphabetic))
            || (arrows && b == b'>' && bytes.get(at.wrapping_sub(1)) == Some(&b'-') && at > from)
            || (language == Language::Ruby && matches!(b, b'!' | b'?') && next != Some(b'='));
        if !is_part {
            break;
        }
        at += 1;
    }
    let name = quote::cut(code, from, at).trim_end_matches([':', '!', '?']);
    match name {
        // `qx{…}` runs a command, whereas `q{…}` and `qq{…}` are texts.
        "qx" if matches!(language, Language::Perl | Language::Ruby) => {
            return read_command(code, at, out);
        }
        "q" | "qq" | "qw" if language == Language::Perl => {
            let end = read_command(code, at, out);
            if let Some(Token::Command(text)) = out.last().cloned() {
                out.pop();
                out.push(Token::Text(text));
            }
            return end;
        }
        _ => out.push(Token::Name(name.to_owned())),
    }
    at
}

fn read_command(code: &str, at: usize, out: &mut Vec<Token>) -> usize {
    let bytes = code.as_bytes();
    let close = match bytes.get(at) {
        Some(b'(') => b')',
        Some(b'{') => b'}',
        Some(b'[') => b']',
        Some(b'<') => b'>',
        Some(b) if b.is_ascii_punctuation() => *b,
        _ => return at,
    };
    let end = quote::find(bytes, at + 1, close);
    out.push(Token::Command(quote::cut(code, at + 1, end).to_owned()));
    end + 1
}
