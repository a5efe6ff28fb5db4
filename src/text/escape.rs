//! Terminal escape sequences (ECMA-48), recognised strictly: text that is not clearly a sequence
//! stays readable.

/// A sequence at the start of a text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Escape<'t> {
    /// The length in bytes, including the escape character.
    pub(super) length: usize,
    /// Whether it swallows characters that a reader who ignores sequences could read as text.
    pub(super) swallows: bool,
    /// The kind of the sequence, with its content.
    pub(super) kind: Kind<'t>,
}

/// The effect of a sequence.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Kind<'t> {
    /// Select graphic rendition (SGR), with its parameters.
    Rendition(&'t str),
    /// A string for the terminal itself (title, link), with its content.
    String(&'t str),
    Other,
}

/// Maximum length of a string sequence; a longer one is treated as text after a stray introducer.
const STRING_BYTES: usize = 4096;
/// Maximum length of each part of a control sequence; a longer one is treated likewise.
const CONTROL_BYTES: usize = 64;

/// Reads the sequence at the start of `text`, which begins with ESC. Of a broken sequence, only the
/// ESC is taken.
pub(super) fn read(text: &str) -> Escape<'_> {
    let bytes = text.as_bytes();
    let stray = Escape {
        length: 1,
        swallows: false,
        kind: Kind::Other,
    };
    match bytes.get(1) {
        Some(b'[') => read_control(text).unwrap_or(stray),
        Some(b']' | b'P' | b'X' | b'^' | b'_') => read_string(text).unwrap_or(stray),
        Some(b'(' | b')' | b'*' | b'+') => match bytes.get(2) {
            Some(b'0' | b'A' | b'B') => Escape {
                length: 3,
                swallows: bytes.get(1) != Some(&b'('),
                kind: Kind::Other,
            },
            _ => stray,
        },
        Some(b'7' | b'8' | b'=' | b'>' | b'c' | b'D' | b'E' | b'H' | b'M' | b'N' | b'O' | b'Z') => {
            Escape {
                length: 2,
                swallows: true,
                kind: Kind::Other,
            }
        }
        _ => stray,
    }
}

fn read_control(text: &str) -> Option<Escape<'_>> {
    let bytes = text.as_bytes().get(2..)?;
    let parameters = bytes
        .iter()
        .take(CONTROL_BYTES)
        .take_while(|b| matches!(b, 0x30..=0x3F))
        .count();
    let intermediates = bytes
        .iter()
        .skip(parameters)
        .take(CONTROL_BYTES)
        .take_while(|b| matches!(b, 0x20..=0x2F))
        .count();
    let last = *bytes.get(parameters + intermediates)?;
    if !matches!(last, 0x40..=0x7E) {
        return None;
    }
    let content = text.get(2..2 + parameters)?;
    let is_usual = intermediates == 0
        && matches!(last, b'm' | b'K' | b'J' | b'H' | b'A'..=b'G' | b'h' | b'l')
        && content.trim_start_matches('?').split(';').all(|part| {
            part.len() <= 4
                && part.bytes().all(|b| b.is_ascii_digit())
                && (!part.is_empty() || content.is_empty())
        });
    let kind = if last == b'm' && intermediates == 0 {
        Kind::Rendition(content)
    } else {
        Kind::Other
    };
    Some(Escape {
        length: 2 + parameters + intermediates + 1,
        swallows: !is_usual,
        kind,
    })
}

fn read_string(text: &str) -> Option<Escape<'_>> {
    let bytes = text.as_bytes();
    let body = bytes.get(2..)?;
    let end = body
        .iter()
        .take(STRING_BYTES)
        .position(|b| matches!(b, 0x07 | 0x1B))?;
    let closer = match body.get(end..)? {
        [0x07, ..] => 1,
        [0x1B, b'\\', ..] => 2,
        _ => return None,
    };
    Some(Escape {
        length: 2 + end + closer,
        swallows: end > 0,
        kind: Kind::String(text.get(2..2 + end)?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usual_sequences_swallow_nothing() {
        for (text, length) in [
            ("\x1b[31mred", 5),
            ("\x1b[0m", 4),
            ("\x1b[m", 3),
            ("\x1b[?25lx", 6),
            ("\x1b[38;5;8mx", 9),
            ("\x1b(B", 3),
        ] {
            let escape = read(text);
            assert_eq!(
                (escape.length, escape.swallows),
                (length, false),
                "{text:?}"
            );
        }
    }

    #[test]
    fn what_may_hide_text_says_so() {
        for text in [
            "\x1b[;rm -rf /",
            "\x1b[1;halt",
            "\x1b]0;title\x07",
            "\x1bP; reboot ;\x1b\\",
        ] {
            assert!(read(text).swallows, "{text:?}");
        }
    }

    #[test]
    fn an_open_string_is_text_after_a_stray_escape() {
        assert_eq!(read("\x1b]rm -rf /").length, 1);
        assert_eq!(read("\x1b[").length, 1);
        assert_eq!(read("\x1b;reboot").length, 1);
        assert_eq!(
            read(&format!("\x1b]{}\x07", "x".repeat(STRING_BYTES + 1))).length,
            1
        );
    }
}
