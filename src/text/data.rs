//! Decodes `data:` URLs (RFC 2397) to the text that they contain.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// Returns the text of a `data:` URL, or `None` for any other URL.
pub(super) fn text(url: &str) -> Option<String> {
    let rest = url
        .get(..5)
        .filter(|scheme| scheme.eq_ignore_ascii_case("data:"))
        .and_then(|_| url.get(5..))?;
    let (kind, payload) = rest.split_once(',')?;
    let bytes = decode_percent(payload);
    let bytes = if kind.trim_end().to_ascii_lowercase().ends_with(";base64") {
        STANDARD.decode(bytes).ok()?
    } else {
        bytes
    };
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

fn decode_percent(text: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut at = 0;
    while let Some(b) = text.as_bytes().get(at) {
        let code = (*b == b'%')
            .then(|| text.get(at + 1..at + 3))
            .flatten()
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        out.push(code.unwrap_or(*b));
        at += if code.is_some() { 3 } else { 1 };
    }
    out
}

#[cfg(test)]
mod tests {
    use super::text;

    #[test]
    fn urls_hold_text() {
        assert_eq!(
            text("data:text/css,.a%7Bb:c%7D%").as_deref(),
            Some(".a{b:c}%")
        );
        assert_eq!(
            text("DATA:text/css;base64,LmF7fQ==").as_deref(),
            Some(".a{}")
        );
        assert_eq!(text("https://example.test/,x"), None);
    }
}
