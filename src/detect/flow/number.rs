//! Numbers of accounts, cards and telephones, however their digits are grouped; and IBANs.

use super::piece::{FoundPiece, Piece, emit};

/// Minimum number of digits of an ungrouped number, and of a grouped one.
const DIGITS: usize = 6;
const GROUPED: usize = 7;
/// Maximum number of digits of a number.
const MAX_DIGITS: usize = 30;
/// Maximum number of groups of one number.
const GROUPS: usize = 12;
/// Maximum number of digits of a group; a longer one is a number by itself.
const GROUP: usize = 5;

/// Passes the numbers of a text to `take`, digits only.
pub(super) fn numbers(text: &str, take: &mut dyn FnMut(FoundPiece<'_>)) {
    let bytes = text.as_bytes();
    let byte = |at: usize| bytes.get(at).copied().unwrap_or(b' ');
    let before = |at: usize| at.checked_sub(1).map_or(b' ', byte);
    let mut at = 0;
    while let Some(skipped) = bytes
        .get(at..)
        .and_then(|rest| rest.iter().position(u8::is_ascii_digit))
    {
        at += skipped;
        let end = run_end(bytes, at);
        let joined = before(at).is_ascii_alphanumeric() || matches!(before(at), b'_' | 0x80..);
        if joined {
            iban(text, at, end, take);
        }
        let decimal = matches!(before(at), b'.' | b',') && at >= 2 && byte(at - 2).is_ascii_digit();
        if joined || decimal || byte(end).is_ascii_alphabetic() {
            at = end;
            continue;
        }
        at = read_grouped(text, at, end, take);
    }
}

/// Reads a number that begins with the digits from `at` to `end`, and passes it to `take`. Returns
/// the offset at which to continue.
fn read_grouped(text: &str, at: usize, end: usize, take: &mut dyn FnMut(FoundPiece<'_>)) -> usize {
    let bytes = text.as_bytes();
    let mut groups: Vec<std::ops::Range<usize>> = std::iter::once(at..end).collect();
    let mut last = end;
    while groups.len() < GROUPS {
        let gap = bytes
            .get(last..)
            .unwrap_or_default()
            .iter()
            .take(3)
            .take_while(|byte| matches!(byte, b' ' | b'-' | b'.' | b'/' | b'(' | b')'))
            .count();
        let next = last + gap;
        if !(1..=2).contains(&gap) || !bytes.get(next).is_some_and(u8::is_ascii_digit) {
            break;
        }
        let end = run_end(bytes, next);
        if bytes.get(end).is_some_and(u8::is_ascii_alphabetic) {
            break;
        }
        groups.push(next..end);
        last = end;
    }
    // A decimal fraction does not identify anything.
    if matches!(&*groups, [whole, part] if text.get(whole.end..part.start) == Some(".")) {
        return last;
    }
    let dotted = groups.len() == 4
        && groups
            .iter()
            .all(|group| group.len() <= 3 && bytes.get(group.end) != Some(&b' '));
    let date_groups = count_date_groups(&groups, text);
    for group in groups.iter().filter(|group| group.len() >= DIGITS) {
        let digits = text.get(group.clone()).unwrap_or_default();
        if !is_plain(digits) {
            emit(Piece::Number, digits, group.clone(), take);
        }
    }
    let long_groups = groups.iter().filter(|group| group.len() > GROUP).count();
    let rest = groups.get(date_groups..).unwrap_or_default();
    if let (Some(first), Some(last), true) = (
        rest.first(),
        rest.last(),
        rest.len() > 1 && long_groups <= 1 && !dotted,
    ) {
        let span = first.start..last.end;
        let digits: String = text
            .get(span.clone())
            .unwrap_or_default()
            .chars()
            .filter(char::is_ascii_digit)
            .collect();
        if (GROUPED..=MAX_DIGITS).contains(&digits.len()) && !is_plain(&digits) {
            emit(Piece::Number, &digits, span, take);
        }
    }
    last
}

/// Returns the number of leading groups that form a date (`2026-11-22` or `22.11.2026`) and a time
/// after it.
fn count_date_groups(groups: &[std::ops::Range<usize>], text: &str) -> usize {
    let [a, b, c, rest @ ..] = groups else {
        return 0;
    };
    let year = |group: &std::ops::Range<usize>| {
        group.len() == 4
            && text
                .get(group.start..group.start + 2)
                .is_some_and(|century| matches!(century, "19" | "20"))
    };
    let short = |group: &std::ops::Range<usize>| group.len() <= 2;
    if year(a) && short(b) && short(c) || short(a) && short(b) && year(c) {
        return 3 + rest.iter().take_while(|group| short(group)).count();
    }
    0
}

/// Reports whether a number is too common to be distinctive: round numbers, one digit repeated,
/// dates.
fn is_plain(digits: &str) -> bool {
    let first = digits.as_bytes().first();
    let date = digits.len() == 8
        && (digits.starts_with("19") || digits.starts_with("20"))
        && digits.get(4..6).is_some_and(|month| month <= "12");
    digits.len() < 10 && digits.ends_with("000")
        || digits.bytes().all(|digit| Some(&digit) == first)
        || date
        || digits == "123456"
        || digits == "1234567890"
}

/// Reads an IBAN in groups of four (ISO 13616) that begins with two letters and the digits at `at`,
/// and passes it to `take`.
fn iban(text: &str, at: usize, end: usize, take: &mut dyn FnMut(FoundPiece<'_>)) {
    let bytes = text.as_bytes();
    let Some(start) = at.checked_sub(2).filter(|_| end == at + 2) else {
        return;
    };
    let letters = bytes
        .get(start..at)
        .is_some_and(|two| two.iter().all(u8::is_ascii_lowercase));
    let alone = start
        .checked_sub(1)
        .and_then(|before| bytes.get(before))
        .is_none_or(|byte| !byte.is_ascii_alphanumeric());
    if !letters || !alone {
        return;
    }
    let mut joined = text.get(start..end).unwrap_or_default().to_owned();
    let mut last = end;
    while joined.len() < 34 && matches!(bytes.get(last), Some(b' ' | b'-')) {
        let group = bytes
            .get(last + 1..)
            .unwrap_or_default()
            .iter()
            .take_while(|byte| byte.is_ascii_alphanumeric())
            .count();
        let Some(part) = text
            .get(last + 1..last + 1 + group)
            .filter(|part| (1..=4).contains(&part.len()))
        else {
            break;
        };
        // Words may follow.
        if part.bytes().all(|byte| byte.is_ascii_alphabetic()) && joined.len() > 4 {
            break;
        }
        joined.push_str(part);
        last += 1 + group;
        if group < 4 {
            break;
        }
    }
    if (15..=34).contains(&joined.len()) {
        emit(Piece::Token, &joined, start..last, take);
    }
}

fn run_end(bytes: &[u8], at: usize) -> usize {
    at + bytes
        .get(at..)
        .unwrap_or_default()
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .count()
}
