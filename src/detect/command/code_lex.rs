//! Code to names, texts and signs: as much of a lexer as every interpreter's language shares.

use std::collections::HashMap;

use super::quote;

/// Most tokens of one piece of code.
const MAX_TOKENS: usize = 65_536;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    /// A name with what it is qualified by: `os.system`, `IO::Socket`, `$s->exec`.
    Name(String),
    /// A string, pieces that are added together joined.
    Text(String),
    /// A string that the language itself runs: backticks, `qx()`, `%x()`.
    Command(String),
    Sign(char),
}

/// Splits code; `None` if there is too much of it.
pub(super) fn lex(code: &str, language: &str) -> Option<Vec<Token>> {
    let bytes = code.as_bytes();
    let hash_comments = !matches!(language, "node" | "nodejs" | "deno" | "bun" | "ts-node" | "tsx");
    let runs_backticks = matches!(language, "perl" | "ruby" | "php" | "irb" | "raku");
    let mut out: Vec<Token> = Vec::new();
    let mut at = 0;
    while let Some(&b) = bytes.get(at) {
        if out.len() > MAX_TOKENS {
            return None;
        }
        match b {
            b'#' if hash_comments && (at == 0 || bytes.get(at - 1).is_some_and(u8::is_ascii_whitespace)) => {
                at = quote::find(bytes, at, b'\n')
            }
            b'/' if !hash_comments && bytes.get(at + 1) == Some(&b'/') && bytes.get(at.wrapping_sub(1)) != Some(&b':') => {
                at = quote::find(bytes, at, b'\n')
            }
            b'\'' | b'"' | b'`' => {
                let triple = bytes.get(at + 1) == Some(&b) && bytes.get(at + 2) == Some(&b) && b != b'`';
                let (start, end, next) = if triple {
                    let start = at + 3;
                    let close = if b == b'"' { "\"\"\"" } else { "'''" };
                    let end = code.get(start..).and_then(|rest| rest.find(close)).map_or(bytes.len(), |n| start + n);
                    (start, end, end + 3)
                } else {
                    let end = quote::find_unescaped(bytes, at + 1, b);
                    (at + 1, end, end + 1)
                };
                let text = quote::escapes(quote::cut(code, start, end));
                at = next;
                if b == b'`' && runs_backticks { out.push(Token::Command(text)) } else { push_text(&mut out, text) }
            }
            b if b.is_ascii_alphabetic() || matches!(b, b'_' | b'$' | b'@') => {
                let start = at;
                while let Some(&b) = bytes.get(at)
                    && (b.is_ascii_alphanumeric()
                        || matches!(b, b'_' | b'.' | b':' | b'$' | b'@')
                        || (b == b'>' && bytes.get(at - 1) == Some(&b'-'))
                        || (b == b'-' && bytes.get(at + 1) == Some(&b'>')))
                {
                    at += 1;
                }
                let name = quote::cut(code, start, at).trim_end_matches(['.', ':']);
                // Prefixes of strings are no names.
                if !(name.len() <= 2
                    && matches!(bytes.get(at), Some(b'\'' | b'"'))
                    && name.bytes().all(|b| matches!(b, b'r' | b'b' | b'f' | b'u' | b'R' | b'B' | b'F')))
                {
                    out.push(Token::Name(name.to_owned()));
                }
                if matches!(name, "qx") {
                    at = command(code, at, &mut out);
                }
            }
            b'%' if bytes.get(at + 1) == Some(&b'x') && bytes.get(at + 2).is_some_and(u8::is_ascii_punctuation) => {
                at = command(code, at + 2, &mut out)
            }
            b if b.is_ascii_digit() => {
                let start = at;
                while bytes.get(at).is_some_and(u8::is_ascii_alphanumeric) {
                    at += 1;
                }
                character(&mut out, quote::cut(code, start, at));
            }
            b if b.is_ascii_whitespace() => at += 1,
            b if b.is_ascii() => {
                out.push(Token::Sign(b as char));
                at += 1;
            }
            _ => at += 1,
        }
    }
    Some(out)
}

/// Adds a string, to the one before it if a plus (or a dot) stands between them.
fn push_text(out: &mut Vec<Token>, more: String) {
    if let [.., Token::Text(_), Token::Sign('+' | '.')] = out.as_slice() {
        out.pop();
    }
    match out.last_mut() {
        Some(Token::Text(text)) => text.push_str(&more),
        _ => out.push(Token::Text(more)),
    }
}

/// `chr(114)` is a string too.
fn character(out: &mut Vec<Token>, digits: &str) {
    let number = digits.strip_prefix("0x").map_or_else(|| digits.parse::<u32>().ok(), |hex| u32::from_str_radix(hex, 16).ok());
    let called = matches!(out.as_slice(), [.., Token::Name(name), Token::Sign('(')] if matches!(name.as_str(), "chr" | "String.fromCharCode"));
    match number.and_then(char::from_u32) {
        Some(c) if called => {
            out.truncate(out.len() - 2);
            push_text(out, c.into());
        }
        _ => out.push(Token::Sign('0')),
    }
}

fn command(code: &str, at: usize, out: &mut Vec<Token>) -> usize {
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

/// The texts among the arguments that start at `at`, names of known texts included, and the index behind them.
pub(super) fn arguments(tokens: &[Token], at: usize, texts: &HashMap<String, String>) -> (Vec<String>, usize) {
    let mut found = Vec::new();
    let mut depth = 0usize;
    let mut next = at;
    for token in tokens.iter().skip(at).take(64) {
        next += 1;
        match token {
            Token::Sign('(' | '[' | '{') => depth += 1,
            Token::Sign(')' | ']' | '}') => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    break;
                }
            }
            Token::Text(text) => found.push(text.clone()),
            Token::Name(name) => found.extend(texts.get(name).cloned()),
            Token::Sign(';') if depth == 0 => break,
            Token::Sign(',') => {}
            _ if depth == 0 && found.is_empty() && next > at + 2 => break,
            _ => {}
        }
    }
    (found, next)
}
