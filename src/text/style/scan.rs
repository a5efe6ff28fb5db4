//! Splits CSS into pieces where CSS itself would (CSS Syntax 3), without interpreting them.

/// Finds the first of `ends` in `text` outside of strings, brackets and comments. Returns its
/// position and which one it is. Nested braces are not searched, unless `{` is one of them.
pub(super) fn find_end(text: &str, ends: &[u8]) -> Option<(usize, u8)> {
    let bytes = text.as_bytes();
    let mut at = 0;
    let mut depth = 0_usize;
    while let Some(&b) = bytes.get(at) {
        if depth == 0 && ends.contains(&b) {
            return Some((at, b));
        }
        at += match b {
            b'\\' => 2,
            b'/' if bytes.get(at + 1) == Some(&b'*') => comment_length(text, at),
            b'"' | b'\'' => string_length(bytes, at),
            b'(' | b'[' | b'{' => {
                depth += 1;
                1
            }
            b')' | b']' | b'}' => {
                depth = depth.saturating_sub(1);
                1
            }
            _ => 1,
        };
    }
    None
}

/// Returns the length of the comment that starts at `at`.
fn comment_length(text: &str, at: usize) -> usize {
    text.get(at + 2..)
        .and_then(|rest| rest.find("*/"))
        .map_or(text.len() - at, |end| end + 4)
}

/// Returns the length of the string that starts at `at`. A line end also ends it.
fn string_length(bytes: &[u8], at: usize) -> usize {
    let quote = bytes.get(at);
    let mut end = at + 1;
    while let Some(b) = bytes.get(end) {
        match b {
            b'\\' => end += 1,
            b'\n' | b'\r' | 0x0C => break,
            b if Some(b) == quote => break,
            _ => {}
        }
        end += 1;
    }
    (end + 1).min(bytes.len()) - at
}

/// Returns a text in lower case, except for custom names (`--Name`), without comments and with
/// escapes decoded (CSS Syntax 3, 4.3.7). The text must already be split into pieces.
pub(super) fn decode(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut is_custom = false;
    let mut chars = text.chars().peekable();
    let mut quote = None;
    while let Some(c) = chars.next() {
        match c {
            '/' if quote.is_none() && chars.peek() == Some(&'*') => {
                chars.next();
                let mut star = false;
                for c in chars.by_ref() {
                    if star && c == '/' {
                        break;
                    }
                    star = c == '*';
                }
            }
            '\\' => {
                let mut code = 0;
                let mut digits = 0;
                while let Some(digit) = chars
                    .peek()
                    .and_then(|c| c.to_digit(16))
                    .filter(|_| digits < 6)
                {
                    code = code * 16 + digit;
                    digits += 1;
                    chars.next();
                }
                if digits == 0 {
                    out.extend(chars.next());
                } else {
                    chars.next_if(|c| c.is_ascii_whitespace());
                    out.push(char::from_u32(code).unwrap_or(' ').to_ascii_lowercase());
                }
            }
            '"' | '\'' if quote.is_none() => {
                quote = Some(c);
                out.push(c);
            }
            c => {
                if quote == Some(c) {
                    quote = None;
                }
                let is_name_char = c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
                is_custom = is_name_char && (is_custom || (c == '-' && out.ends_with('-')));
                out.push(if is_custom { c } else { c.to_ascii_lowercase() });
            }
        }
    }
    out
}
