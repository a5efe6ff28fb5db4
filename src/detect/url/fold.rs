//! Characters that clients treat as others: compatibility forms, dots and slashes of other scripts,
//! percent signs.

use std::borrow::Cow;

use unicode_normalization::UnicodeNormalization;

use crate::text::Text;

/// Rounds of percent-decoding: one for a server in front, one for a server behind, and the rest in
/// reserve.
const ROUNDS: usize = 4;

/// Returns a text as clients read it: tabs and line breaks removed (WHATWG URL), compatibility
/// forms folded, invisible characters removed, ideographic and other dots as `.` (UTS 46), other
/// slashes as `/`; and whether that changed anything.
pub(super) fn fold(text: &str) -> (Cow<'_, str>, bool) {
    if text.bytes().all(|b| matches!(b, 0x20..=0x7e)) {
        return (Cow::Borrowed(text), false);
    }
    let visible: String = text.chars().filter(|c| !c.is_control()).collect();
    let plain = Text::new(visible.as_str());
    let folded: String = plain.plain().nfkc().map(ascii_look_alike).collect();
    let odd = folded != text;
    (Cow::Owned(folded), odd)
}

/// Returns the ASCII character that a look-alike resembles, among those that separate hosts and
/// paths.
pub(crate) fn ascii_look_alike(c: char) -> char {
    match c {
        '\u{3002}' | '\u{ff61}' | '\u{ff0e}' | '\u{2024}' | '\u{fe52}' | '\u{a4f8}' | '\u{701}'
        | '\u{702}' => '.',
        '\u{2044}' | '\u{2215}' | '\u{29f8}' | '\u{ff0f}' | '\u{2571}' | '\u{27cb}'
        | '\u{30ce}' => '/',
        '\u{2216}' | '\u{29f5}' | '\u{29f9}' | '\u{ff3c}' | '\u{fe68}' => '\\',
        '\u{a789}' | '\u{2236}' | '\u{fe55}' | '\u{ff1a}' => ':',
        '\u{fe6b}' | '\u{ff20}' => '@',
        other => other,
    }
}

/// Decodes percent signs until nothing changes, at most [`ROUNDS`] times. Bytes that are not UTF-8
/// are left undecoded.
pub(super) fn decode_percent(text: &str) -> String {
    let mut decoded = text.to_owned();
    for _ in 0..ROUNDS {
        match decode_percent_once(&decoded) {
            Some(next) => decoded = next,
            None => break,
        }
    }
    if decoded == text {
        decoded
    } else {
        fold(&decoded).0.into_owned()
    }
}

/// Decodes one round; `None` if nothing changes.
pub(super) fn decode_percent_once(text: &str) -> Option<String> {
    if !text.contains('%') {
        return None;
    }
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let digit = |at: usize| bytes.get(at).and_then(|b| char::from(*b).to_digit(16));
        match (byte, digit(at + 1), digit(at + 2)) {
            (b'%', Some(high), Some(low)) => {
                out.push((high * 16 + low) as u8);
                at += 3;
            }
            _ => {
                out.push(*byte);
                at += 1;
            }
        }
    }
    String::from_utf8(out)
        .ok()
        .filter(|decoded| decoded != text)
}
