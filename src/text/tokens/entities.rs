//! Decodes entities in text and attribute values (13.2.5.72). The common ones are decoded here, all
//! others by html5gum, which has the table.

use std::borrow::Cow;
use std::convert::Infallible;

use html5gum::emitters::callback::{CallbackEmitter, CallbackEvent};
use html5gum::{Span, Tokenizer};
use memchr::memchr;

/// Maximum length of an entity's name, in bytes; longer than any valid number.
const NAME_BYTES: usize = 40;

/// Returns a text with its entities decoded.
pub(super) fn read(text: &str, in_value: bool) -> Cow<'_, str> {
    if memchr(b'&', text.as_bytes()).is_none() {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = memchr(b'&', rest.as_bytes()) {
        out.push_str(rest.get(..at).unwrap_or_default());
        rest = rest.get(at..).unwrap_or_default();
        let length = entity_length(rest);
        let entity = rest.get(..length).unwrap_or_default();
        match decode_common(entity) {
            Some(c) => out.push(c),
            None => decode_named(rest, length, in_value, &mut out),
        }
        rest = rest.get(length..).unwrap_or_default();
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// Returns the length of a possible entity, including its semicolon; 1 for an ampersand alone.
fn entity_length(rest: &str) -> usize {
    let name = rest
        .bytes()
        .skip(1)
        .take(NAME_BYTES)
        .take_while(|b| b.is_ascii_alphanumeric() || *b == b'#')
        .count();
    1 + name + usize::from(rest.as_bytes().get(1 + name) == Some(&b';'))
}

fn decode_common(entity: &str) -> Option<char> {
    match entity {
        "&lt;" => Some('<'),
        "&gt;" => Some('>'),
        "&amp;" => Some('&'),
        "&quot;" => Some('"'),
        "&apos;" => Some('\''),
        "&nbsp;" => Some('\u{a0}'),
        "&" => Some('&'),
        _ => {
            let digits = entity.strip_prefix("&#")?.strip_suffix(';')?;
            let number = match digits.strip_prefix(['x', 'X']) {
                Some(hex) => u32::from_str_radix(hex, 16),
                None => digits.parse(),
            };
            char::from_u32(number.ok()?).filter(
                |c| matches!(*c, ' '..='~' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fdcf}'),
            )
        }
    }
}

/// Decodes an entity with the table. In an attribute value, the character after it decides whether
/// it is an entity.
fn decode_named(rest: &str, length: usize, in_value: bool, out: &mut String) {
    let next = rest
        .as_bytes()
        .get(length)
        .filter(|b| in_value && **b == b'=')
        .map_or("", |_| "=");
    let entity = rest.get(..length).unwrap_or_default();
    let html = if in_value {
        format!("<a b=\"{entity}{next}\">")
    } else {
        entity.to_owned()
    };
    let start = out.len();
    let emitter = CallbackEmitter::new(
        |event: CallbackEvent<'_>, _: Span<()>| -> Option<Infallible> {
            match event {
                CallbackEvent::String { value } | CallbackEvent::AttributeValue { value } => {
                    out.push_str(&String::from_utf8_lossy(value));
                }
                _ => {}
            }
            None
        },
    );
    let Ok(()) = Tokenizer::new_with_emitter(html.as_str(), emitter).finish();
    if !next.is_empty() && out.len() > start {
        out.pop();
    }
}
