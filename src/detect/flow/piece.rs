//! Recognizable pieces of a text: addresses, hosts, URLs, paths, numbers, tokens, commands and
//! phrases.

use std::borrow::Cow;
use std::ops::Range;

use super::hash::hash;
use super::{net, number, words};

enum_with_names! {
    /// The kind of a piece of text. Named as in rule files.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Piece {
        /// An e-mail address.
        Address = "address",
        /// A URL without its scheme.
        Url = "url",
        /// The name or address of a host that is not a common one.
        Host = "host",
        /// A path of a minimum length.
        Path = "path",
        /// The number of an account, a card or a telephone: digits only.
        Number = "number",
        /// Letters and digits that are not a word: a key, an id, a wallet, an IBAN.
        Token = "token",
        /// The first words of a command.
        Command = "command",
        /// A number of consecutive words.
        Phrase = "phrase",
    }
}

impl Piece {
    /// Reports whether calling a server again with such a piece from that server is ordinary work:
    /// opening something that was found.
    pub(super) fn is_reference(self) -> bool {
        matches!(
            self,
            Self::Url | Self::Host | Self::Path | Self::Number | Self::Token
        )
    }

    pub(super) fn hash(self, text: &str) -> u64 {
        hash(self as u8 + 1, text.as_bytes())
    }
}

/// A piece that was found.
pub(super) struct FoundPiece<'t> {
    pub(super) piece: Piece,
    pub(super) hash: u64,
    /// In the form in which it is compared: without scheme, white space and the like.
    pub(super) text: &'t str,
    /// Its byte range in the text.
    pub(super) span: Range<usize>,
}

/// The purpose for which a text is split into pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    /// Learn all pieces.
    All,
    /// Learn a selection of its phrases, enough to recognize a quotation that is a few words longer
    /// than a phrase.
    Some,
    /// Learn only pieces with which a server may be called again.
    References,
    /// Compare: also prefixes of URLs and suffixes of hosts.
    Compare,
}

/// Maximum length of a run without white space that is examined, in bytes: the rest of it is
/// ignored.
const RUN_BYTES: usize = 4096;
/// Maximum length of a piece that is compared, in bytes.
const PIECE_BYTES: usize = 256;
/// Minimum length of a token, in characters.
const TOKEN: usize = 12;
/// Number of characters of the id of an AWS access key, and its prefixes, folded. One id in eight
/// has fewer than two digits.
const KEY_ID: usize = 20;
const KEY_ID_BEGINS: [&str; 2] = ["akia", "asia"];
/// Minimum length of a path, in characters.
const PATH: usize = 10;

/// Folds a text to the form in which pieces are searched for.
pub(super) fn fold_text(text: &str) -> Cow<'_, str> {
    if text
        .bytes()
        .any(|byte| byte.is_ascii_uppercase() || !byte.is_ascii())
    {
        return Cow::Owned(text.to_lowercase());
    }
    Cow::Borrowed(text)
}

/// Passes every piece of a text that was [`fold_text`] to `take`, in linear time.
pub(super) fn pieces(text: &str, look: Look, take: &mut dyn FnMut(FoundPiece<'_>)) {
    let bytes = text.as_bytes();
    let mut start = 0;
    let mut classes = 0;
    let mut digits = 0;
    let mut any_digits = false;
    for (at, byte) in bytes.iter().chain(b" ").enumerate() {
        let class = CLASSES.get(usize::from(*byte)).copied().unwrap_or(0);
        if class & ENDS == 0 {
            classes |= class;
            digits += usize::from(class & DIGIT != 0);
            continue;
        }
        let length = at - start;
        any_digits |= digits > 0;
        let distinctive =
            length >= 6 && (classes & (DOT | SLASH) != 0 || may_hold_token(length, digits));
        let short = (2..=words::PROGRAM_BYTES).contains(&length) && look != Look::References;
        if distinctive || short {
            let whole = text.get(start..at).unwrap_or_default();
            if short && words::is_program(whole) {
                words::command(text, start, take);
            }
            if distinctive {
                run(
                    crate::text::cut(whole, RUN_BYTES),
                    start,
                    classes,
                    digits,
                    look,
                    take,
                );
            }
        }
        (start, classes, digits) = (at + 1, 0, 0);
    }
    if any_digits {
        number::numbers(text, take);
    }
    if look != Look::References {
        words::phrases(text, look, take);
    }
}

const ENDS: u8 = 1;
const DOT: u8 = 2;
const SLASH: u8 = 4;
const SIGN: u8 = 8;
const DIGIT: u8 = 16;

const CLASSES: [u8; 256] = byte_table!(class);

/// Returns the class of a byte: of those that end a run of characters, and those that indicate
/// pieces.
const fn class(byte: u8) -> u8 {
    match byte {
        0..=b' '
        | 0x7f
        | b'"'
        | b'\''
        | b'`'
        | b'<'
        | b'>'
        | b'{'
        | b'}'
        | b'|'
        | b'^'
        | b'('
        | b')'
        | b'['
        | b']'
        | b';' => ENDS,
        b'.' => DOT,
        b'/' | b'\\' => SLASH,
        b'@' => SIGN,
        b'0'..=b'9' => DIGIT,
        _ => 0,
    }
}

fn run(
    run: &str,
    start: usize,
    classes: u8,
    digits: usize,
    look: Look,
    take: &mut dyn FnMut(FoundPiece<'_>),
) {
    let dot = classes & DOT != 0;
    let slash = classes & SLASH != 0;
    let urls = slash && net::urls(run, start, look, take);
    if dot && classes & SIGN != 0 {
        net::addresses(run, start, look, take);
    }
    if dot && !urls {
        net::hosts(run, start, look, take);
    }
    if slash && !urls {
        paths(run, start, take);
    }
    if may_hold_token(run.len(), digits) {
        tokens(run, start, take);
    }
}

/// Reports whether a run with these numbers of characters and of digits may contain a token.
fn may_hold_token(length: usize, digits: usize) -> bool {
    digits >= 2 && length >= TOKEN || digits == 1 && length >= KEY_ID
}

/// Passes runs of letters and digits that are not words to `take`.
fn tokens(run: &str, start: usize, take: &mut dyn FnMut(FoundPiece<'_>)) {
    for part in run.split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))) {
        let token = part.trim_matches(['-', '_']);
        let digits = token.bytes().filter(u8::is_ascii_digit).count();
        let letters = token.bytes().filter(u8::is_ascii_alphabetic).count();
        let is_key_id = digits + letters == KEY_ID
            && KEY_ID_BEGINS.iter().any(|begins| token.starts_with(begins));
        if digits + letters >= TOKEN && digits >= 2 && letters >= 1 || digits == 1 && is_key_id {
            let at = start + offset(run, token);
            emit(Piece::Token, token, at..at + token.len(), take);
        }
    }
}

/// Passes paths to `take`: absolute ones, those from a drive or a home folder, and relative ones of
/// three parts or more that contain more than letters.
fn paths(run: &str, start: usize, take: &mut dyn FnMut(FoundPiece<'_>)) {
    let is_drive = |part: &str| matches!(part.as_bytes(), [letter] if letter.is_ascii_alphabetic());
    let mut drive = None;
    for part in run.split(['=', ',', ':']) {
        let at = offset(run, part);
        if is_drive(part) {
            drive = Some(at);
            continue;
        }
        let from = drive
            .take()
            .filter(|_| part.starts_with(['\\', '/']))
            .unwrap_or(at);
        let Some(whole) = run.get(from..at + part.len()) else {
            continue;
        };
        let path = whole.trim_end_matches(['.', '!', '?', '*', '/', '\\', '&', '#']);
        let rooted = path.starts_with(['/', '~', '\\'])
            || path.starts_with("./")
            || path.starts_with("../")
            || from < at;
        let parts = path
            .bytes()
            .filter(|byte| matches!(byte, b'/' | b'\\'))
            .count();
        let is_distinctive = || {
            path.bytes()
                .any(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'_' | b'-'))
        };
        if path.len() >= PATH && (rooted && parts >= 1 || parts >= 2 && is_distinctive()) {
            let normalized = if path.contains('\\') {
                Cow::Owned(path.replace('\\', "/"))
            } else {
                Cow::Borrowed(path)
            };
            if !net::is_common(&normalized) {
                emit(
                    Piece::Path,
                    &normalized,
                    start + from..start + from + path.len(),
                    take,
                );
            }
        }
    }
}

/// Returns the offset of a part of a text in that text.
pub(super) fn offset(text: &str, part: &str) -> usize {
    part.as_ptr().addr().saturating_sub(text.as_ptr().addr())
}

/// Passes one piece to `take`.
pub(super) fn emit(
    piece: Piece,
    text: &str,
    span: Range<usize>,
    take: &mut dyn FnMut(FoundPiece<'_>),
) {
    let text = crate::text::cut(text, PIECE_BYTES);
    take(FoundPiece {
        piece,
        hash: piece.hash(text),
        text,
        span,
    });
}
