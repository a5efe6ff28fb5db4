//! SQL within SQL: the strings that a statement runs, concatenated where the statement joins them.

use super::lex::{Kind, Token};
use super::statement::Statement;
use crate::text::quick::WordSet;

/// Functions that run a string argument as SQL.
static RUN_SQL: WordSet = WordSet::new(
    "sp_executesql dblink dblink_exec dblink_open dblink_send_query query_to_xml \
     query_to_xml_and_xmlschema cursor_to_xml openquery openrowset schedule external_query \
     execute_immediate parse sp_sqlexec run_statement exec_sql ts_stat",
);

fn begins_with(part: &[Token<'_>], words: &[&str]) -> bool {
    part.first().is_some_and(|first| first.is_any(words))
}

/// Returns the strings that the statement runs as SQL.
pub(super) fn executed_strings(part: &[Token<'_>], statement: &Statement) -> Vec<String> {
    let runs_strings = begins_with(part, &["exec", "execute", "do", "prepare"])
        || statement
            .words
            .windows(2)
            .any(|two| two == ["execute", "immediate"])
        || statement
            .calls
            .iter()
            .any(|call| RUN_SQL.contains(&call.as_str()));
    if !runs_strings {
        return Vec::new();
    }
    let decode = |token: &Token<'_>| match token.kind {
        Kind::Text | Kind::Quoted if token.text.len() >= 6 => Some(token.text.replace("''", "'")),
        Kind::Number => decode_hex(token.text),
        _ => None,
    };
    let mut strings: Vec<String> = part.iter().filter_map(decode).collect();
    let joined = texts(part)
        .into_iter()
        .filter(|text| !strings.contains(text))
        .collect::<Vec<_>>();
    strings.extend(joined);
    strings
}

/// Returns the strings of a statement; those joined by `+`, `||` or `CONCAT` as one:
/// `'xp_' + 'cmdshell'`.
pub(super) fn texts(part: &[Token<'_>]) -> Vec<String> {
    let mut strings = Vec::new();
    let mut text = String::new();
    let mut concat = None;
    for (at, token) in part.iter().enumerate() {
        let before = at.checked_sub(1).and_then(|before| part.get(before));
        // `N'…'` and `E'…'` are strings with a prefix letter.
        let prefix = token.is_any(&["n", "e", "u"])
            && part.get(at + 1).is_some_and(|next| next.kind == Kind::Text);
        let joins = ["+", "|"].iter().any(|mark| token.is_mark(mark))
            || concat.is_some() && token.is_mark(",");
        match token.kind {
            Kind::Text => text.push_str(&token.text.replace("''", "'")),
            _ if prefix || joins => {}
            _ => {
                if token.is_mark("(") && before.is_some_and(|before| before.is("concat")) {
                    concat = Some(token.depth);
                } else if token.is_mark(")") && concat.is_some_and(|depth| token.depth <= depth + 1)
                {
                    concat = None;
                }
                strings.extend((!text.is_empty()).then(|| std::mem::take(&mut text)));
            }
        }
    }
    strings.extend((!text.is_empty()).then_some(text));
    strings.retain(|text| text.len() >= 6);
    strings
}

/// Reports whether a statement assigns a value to a variable.
pub(super) fn assigns_variable(part: &[Token<'_>]) -> bool {
    begins_with(part, &["declare", "set", "select"])
        && part.iter().any(|token| token.is_mark("="))
        && part.iter().any(|token| token.text.starts_with('@'))
}

/// Reports whether a statement runs the value of a variable.
pub(super) fn runs_variable(part: &[Token<'_>]) -> bool {
    begins_with(part, &["exec", "execute", "prepare"])
        && part.iter().take(8).any(|token| token.text.starts_with('@'))
}

/// Returns the text that a number such as `0x44524f50…` encodes.
fn decode_hex(number: &str) -> Option<String> {
    let digits = number
        .strip_prefix("0x")
        .or_else(|| number.strip_prefix("0X"))
        .filter(|digits| digits.len() >= 12)?;
    let byte = |pair: &[u8]| {
        std::str::from_utf8(pair)
            .ok()
            .and_then(|pair| u8::from_str_radix(pair, 16).ok())
    };
    let bytes: Vec<u8> = digits
        .as_bytes()
        .chunks(2)
        .map(byte)
        .collect::<Option<_>>()?;
    // SQL Server's own strings have two bytes per character.
    String::from_utf8(bytes.into_iter().filter(|byte| *byte != 0).collect()).ok()
}
