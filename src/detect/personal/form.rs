//! The forms of personal data.

use std::ops::Range;

enum_with_names! {
    /// A form of personal data. Named as in `find.personal.is`.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Form {
        /// An e-mail address.
        Email = "email",
        /// A telephone number: international, North American, or preceded by a word such as `tel`.
        Phone = "phone",
        /// The number of a payment card, by its issuer's digits and its checksum (ISO/IEC 7812).
        Card = "card",
        /// The number of a bank account (ISO 13616), by its checksum.
        Iban = "iban",
        /// A social security number of the United States.
        Ssn = "ssn",
    }
}

/// Maximum length of the local part of an address (RFC 5321, 4.5.3.1.1), and of a host name.
const LOCAL_BYTES: usize = 64;
const HOST_BYTES: usize = 253;
/// Words before a number that identify it as a telephone number, however it is written.
const PHONE_WORDS: [&str; 9] = [
    "tel", "phone", "mobile", "cell", "fax", "whatsapp", "telefon", "mobil", "handy",
];
/// Extensions of file names, which may contain an `@`.
const FILES: [&str; 12] = [
    "png", "jpg", "jpeg", "gif", "svg", "webp", "css", "js", "ts", "json", "md", "py",
];
/// Countries whose account numbers have this form, with their lengths (ISO 13616 registry).
const IBANS: &str = "AD24AE23AL28AT20AZ28BA20BE16BG22BH22BR29BY28CH21CR22CY28CZ24DE22DK18DO28EE20EG29ES24FI18FO18FR27GB22GE22GI23GL18\
                     GR27GT28HR21HU28IE22IL23IQ23IS26IT27JO30KW30KZ20LB28LC32LI21LT20LU20LV21LY25MC27MD24ME22MK19MR27MT31MU30NL18\
                     NO15PK24PL28PS29PT25QA29RO24RS22SA24SC31SE24SI19SK24SM27ST25SV28TL23TN24TR26UA29VA22VG24XK20";

impl Form {
    /// Returns the places where a text has this form: up to `limit` and one more. Takes linear
    /// time.
    pub(super) fn find(self, text: &str, limit: usize) -> Vec<Range<usize>> {
        let mut spans = Vec::new();
        let mut at = 0;
        while spans.len() <= limit {
            let Some(next) = self.next(text, at) else {
                break;
            };
            at = next.1;
            spans.extend(next.0);
        }
        spans
    }

    /// Returns the next candidate after `from`, and the offset at which to continue; `None` at the
    /// end.
    fn next(self, text: &str, from: usize) -> Option<(Option<Range<usize>>, usize)> {
        let bytes = text.as_bytes();
        if self == Self::Email {
            let at = from + memchr::memchr(b'@', bytes.get(from..)?)?;
            let span = email(text, from, at);
            let resume = span.as_ref().map_or(at + 1, |span| span.end);
            return Some((span, resume));
        }
        if self == Self::Iban {
            let at = from + bytes.get(from..)?.windows(4).position(is_iban_start)?;
            let span = iban(bytes, at);
            let resume = span.as_ref().map_or(at + 1, |span| span.end);
            return Some((span, resume));
        }
        let start = from + bytes.get(from..)?.iter().position(u8::is_ascii_digit)?;
        let run = Run::new(bytes, start);
        let span = match self {
            Self::Phone => phone(text, &run),
            Self::Card => card(bytes, &run),
            _ => ssn(bytes, &run),
        };
        Some((span, run.end))
    }
}

/// Digits with separators between them, as people group them.
struct Run {
    start: usize,
    end: usize,
    digits: Vec<u8>,
    /// The lengths of the groups.
    groups: Vec<usize>,
    /// The separators between groups, each by its first byte.
    separators: Vec<u8>,
}

impl Run {
    fn new(bytes: &[u8], start: usize) -> Self {
        let mut run = Self {
            start,
            end: start,
            digits: Vec::new(),
            groups: vec![0],
            separators: Vec::new(),
        };
        let mut at = start;
        while let Some(byte) = bytes.get(at) {
            if byte.is_ascii_digit() {
                run.digits.push(byte - b'0');
                run.groups
                    .last_mut()
                    .into_iter()
                    .for_each(|group| *group += 1);
                at += 1;
                run.end = at;
                continue;
            }
            // `) `, `-` and the like: at most two separators, followed by a digit.
            let gap = bytes
                .get(at..)
                .unwrap_or_default()
                .iter()
                .take_while(|byte| matches!(byte, b' ' | b'-' | b'.' | b'(' | b')' | b'/'))
                .count();
            let digit = bytes.get(at + gap).is_some_and(u8::is_ascii_digit);
            if !(1..=2).contains(&gap) || !digit || run.digits.len() > 24 {
                break;
            }
            run.separators.push(*byte);
            run.groups.push(0);
            at += gap;
        }
        run
    }

    /// Reports whether it is not part of something longer.
    fn stands_alone(&self, bytes: &[u8]) -> bool {
        let joins = |byte: Option<&u8>| {
            byte.is_some_and(|byte| {
                byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'=' | b'#')
            })
        };
        let before = self.start.checked_sub(1).and_then(|at| bytes.get(at));
        !joins(before)
            && !matches!(before, Some(b'-' | b'.' | b'/' | b':'))
            && !joins(bytes.get(self.end))
    }
}

fn email(text: &str, from: usize, at: usize) -> Option<Range<usize>> {
    let local = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '%' | '+' | '-' | '\'');
    let before = text.get(from..at)?;
    let start = before
        .char_indices()
        .rev()
        .take_while(|(n, c)| local(*c) && before.len() - n <= LOCAL_BYTES)
        .last()?
        .0
        + from;
    let start = start + text.get(start..at)?.find(|c: char| c.is_alphanumeric())?;
    let after = text.get(at + 1..)?;
    let host = |c: char| c.is_alphanumeric() || matches!(c, '.' | '-');
    let length = after
        .char_indices()
        .take_while(|(n, c)| host(*c) && *n <= HOST_BYTES)
        .map(|(n, c)| n + c.len_utf8())
        .last()?;
    let host = after.get(..length)?.trim_end_matches(['.', '-']);
    let (name, top) = host.rsplit_once('.')?;
    let valid = !name.is_empty()
        && host.split('.').all(|label| !label.is_empty())
        && top.chars().count() >= 2
        && top.chars().all(char::is_alphabetic)
        && !FILES.contains(&top.to_ascii_lowercase().as_str());
    // `git@example.org:team/app.git` is the location of a repository.
    let repository = text.get(start..at) == Some("git")
        && after
            .get(host.len()..)
            .is_some_and(|rest| rest.starts_with([':', '/']));
    (valid && !repository).then(|| start..at + 1 + host.len())
}

fn phone(text: &str, run: &Run) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    let count = run.digits.len();
    let mut start = run.start;
    let before = text.get(..run.start)?;
    let opened = before.ends_with('(');
    let before = before.trim_end_matches('(');
    let international = before.ends_with('+');
    start -= usize::from(opened);
    if international {
        let start = before.len() - 1;
        let alone = !before
            .get(..start)?
            .ends_with(|c: char| c.is_ascii_alphanumeric() || c == '+');
        let grouped = run.separators.len() > 1;
        return (alone
            && (if grouped { 8 } else { 10 }..=15).contains(&count)
            && run.digits.first() != Some(&0))
        .then_some(start..run.end);
    }
    if !run.stands_alone(bytes) {
        return None;
    }
    let american = (run.groups == [3, 3, 4]
        || run.groups == [1, 3, 3, 4] && run.digits.first() == Some(&1))
        && run
            .digits
            .iter()
            .rev()
            .nth(9)
            .is_some_and(|digit| *digit >= 2)
        && run
            .digits
            .iter()
            .rev()
            .nth(6)
            .is_some_and(|digit| *digit >= 2)
        && !run.separators.contains(&b'/');
    let words = before.len() - before.len().min(16);
    let words = (words..=before.len())
        .find_map(|at| before.get(at..))
        .unwrap_or_default()
        .to_ascii_lowercase();
    let has_phone_word = (6..=15).contains(&count)
        && PHONE_WORDS.iter().any(|word| words.contains(word))
        && !words.contains('\n');
    (american || has_phone_word).then_some(start..run.end)
}

fn card(bytes: &[u8], run: &Run) -> Option<Range<usize>> {
    let count = run.digits.len();
    let number = |length: usize| {
        run.digits
            .iter()
            .take(length)
            .fold(0u32, |n, digit| n * 10 + u32::from(*digit))
    };
    let issued = match (number(1), number(2), number(4)) {
        (4, ..) => matches!(count, 13 | 16 | 19),
        (_, 51..=55, _) | (_, _, 2221..=2720) => count == 16,
        (_, 34 | 37, _) => count == 15,
        (_, 36 | 38 | 39, _) | (_, _, 3000..=3059) => (14..=19).contains(&count),
        (_, 35 | 62 | 64 | 65, _) | (_, _, 6011) => (16..=19).contains(&count),
        (_, 50 | 56..=69, _) => (16..=19).contains(&count) && !run.separators.is_empty(),
        _ => false,
    };
    let grouped = run
        .separators
        .windows(2)
        .all(|pair| matches!(pair, [a, b] if a == b))
        && run
            .separators
            .iter()
            .all(|sign| matches!(sign, b' ' | b'-'));
    let varied = run
        .digits
        .iter()
        .any(|digit| Some(digit) != run.digits.last());
    (issued && grouped && varied && run.stands_alone(bytes) && luhn(&run.digits))
        .then_some(run.start..run.end)
}

fn luhn(digits: &[u8]) -> bool {
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(n, digit)| match (n % 2, u32::from(*digit)) {
            (0, digit) => digit,
            (_, digit) if digit > 4 => digit * 2 - 9,
            (_, digit) => digit * 2,
        })
        .sum();
    sum.is_multiple_of(10)
}

fn is_iban_start(head: &[u8]) -> bool {
    matches!(head, [a, b, c, d] if a.is_ascii_uppercase() && b.is_ascii_uppercase() && c.is_ascii_digit() && d.is_ascii_digit())
}

fn iban(bytes: &[u8], start: usize) -> Option<Range<usize>> {
    let before = start.checked_sub(1).and_then(|at| bytes.get(at));
    if before.is_some_and(u8::is_ascii_alphanumeric) {
        return None;
    }
    let country = std::str::from_utf8(bytes.get(start..start + 2)?).ok()?;
    let length = (0..IBANS.len()).step_by(4).find_map(|at| {
        IBANS
            .get(at..at + 4)?
            .strip_prefix(country)?
            .parse::<usize>()
            .ok()
    })?;
    let mut signs = Vec::with_capacity(length);
    let mut at = start;
    while signs.len() < length {
        match bytes.get(at)? {
            byte if byte.is_ascii_digit() || byte.is_ascii_uppercase() => signs.push(*byte),
            b' ' if signs.len() % 4 == 0 => {}
            _ => return None,
        }
        at += 1;
    }
    if bytes.get(at).is_some_and(u8::is_ascii_alphanumeric) {
        return None;
    }
    signs.rotate_left(4);
    let rest = signs.iter().fold(0u32, |rest, sign| match sign {
        b'0'..=b'9' => (rest * 10 + u32::from(sign - b'0')) % 97,
        _ => (rest * 100 + u32::from(sign - b'A') + 10) % 97,
    });
    (rest == 1).then_some(start..at)
}

fn ssn(bytes: &[u8], run: &Run) -> Option<Range<usize>> {
    let part = |range: Range<usize>| {
        run.digits
            .get(range)
            .unwrap_or_default()
            .iter()
            .fold(0u32, |n, digit| n * 10 + u32::from(*digit))
    };
    let is_grouped = run.groups == [3, 2, 4]
        && (run.separators == [b'-', b'-'] || run.separators == [b' ', b' ']);
    let is_issued =
        !matches!(part(0..3), 0 | 666 | 900..=999) && part(3..5) != 0 && part(5..9) != 0;
    (is_grouped && is_issued && run.stands_alone(bytes)).then_some(run.start..run.end)
}
