//! How rare a run of letters is in ordinary text.

use std::sync::LazyLock;

use crate::text::quick::QuickMap;

/// Classes of characters: letters, white space, digits, all others.
const CLASSES: usize = 29;
/// For each class how many bits each next one is worth: -log2 of how often it follows; nine and more are nine. Counted over
/// five megabytes of English documents, mails, logs and code.
const NEXT: [&[u8; CLASSES]; CLASSES] = [
    b"95459859597343959433567868475",
    b"38673879459379479547389848554",
    b"49684983594389279453599979664",
    b"47852889398788489667599979363",
    b"57546579899553967334967579373",
    b"49884599299597399476599979353",
    b"59782855399586579456599998383",
    b"39992999499788399483599989464",
    b"66445559998452359543959797695",
    b"38772997689889466828478988675",
    b"48862669499685679636687989383",
    b"38852799399469489855579959493",
    b"36762979499459339958699979484",
    b"47544639596787579943669979393",
    b"76549669776542559355465799495",
    b"39863987499478459354599859594",
    b"79978989899399999978148999774",
    b"49562869496665389654567959394",
    b"69583995496789548743599979392",
    b"49773993399669459455698959393",
    b"55564859499443849333869899657",
    b"37791979399979599879899999463",
    b"38984993298894479548995599374",
    b"59585999599969849573999259463",
    b"67786989699565439744997999272",
    b"39872776499678489768485666563",
    b"46455575488556559544666979952",
    b"67666699999999999999899999312",
    b"57556776688666759655677999252",
];
/// The same for the first character of a run.
const FIRST: &[u8; CLASSES] = b"47554666497564459444677779353";
/// Each of all other characters is rarer than the class.
const ODD: u32 = 3;
/// A byte of a letter beyond ASCII.
const BEYOND: u32 = 6;

/// The four letters that stand most often in ordinary text, a few in a line, after the bits that they are worth: letters
/// come in words, of which pairs of them know nothing. Counted, in lower case and with each gap as a blank, over eleven
/// megabytes of documents, manual pages and code.
static COMMON: LazyLock<QuickMap<[u8; 4], u32>> = LazyLock::new(|| {
    let rows = include_bytes!("common.txt").split(|b| *b == b'\n').filter_map(|row| row.split_at_checked(3));
    let bits = |digits: &[u8]| digits.iter().filter(|b| b.is_ascii_digit()).fold(0, |bits, b| bits * 10 + u32::from(b - b'0'));
    rows.flat_map(|(digits, grams)| grams.as_chunks().0.iter().map(move |gram| (*gram, bits(digits)))).collect()
});
/// What is none of those is worth so much at the least.
const RARE_BITS: u32 = 14;
/// So many bytes more of a run whose every four bytes are common make it half as common.
const LONGER: usize = 2;
/// Short words that stand in texts of today far more often than their letters say, and how many bits they are worth.
const USUAL: [&str; 5] = ["llm", "api", "url", "cc ", "at "];
const USUAL_BITS: u32 = 10;

/// Of so many places of ordinary text, in powers of two, one holds `run`, which is in lower case.
pub(super) fn bits(run: &[u8]) -> u32 {
    if USUAL.iter().any(|usual| usual.as_bytes() == run) {
        return USUAL_BITS;
    }
    let common: Option<u32> =
        run.windows(4).map(|gram| COMMON.get(gram.first_chunk()?).copied()).try_fold(0, |most, bits| Some(most.max(bits?)));
    match common {
        Some(0) => by_pairs(run),
        Some(bits) => bits + u32::try_from((run.len() - 4) / LONGER).unwrap_or(0),
        None => by_pairs(run).max(RARE_BITS),
    }
}

/// The same by how often each byte follows the one before.
fn by_pairs(run: &[u8]) -> u32 {
    let mut before = None;
    run.iter()
        .map(|b| {
            let class = class(*b);
            let row = before.replace(class).map_or(Some(FIRST), |before| NEXT.get(before).copied());
            let bits = row.and_then(|row| row.get(class)).map_or(0, |digit| u32::from(digit - b'0'));
            match b {
                b if !b.is_ascii() => BEYOND,
                b'.' | b',' | b'-' | b'_' | b'/' => bits,
                _ if class == CLASSES - 1 => bits + ODD,
                _ => bits,
            }
        })
        .sum()
}

fn class(b: u8) -> usize {
    match b | 0x20 {
        letter @ b'a'..=b'z' => usize::from(letter - b'a'),
        _ if b.is_ascii_whitespace() => 26,
        _ if b.is_ascii_digit() => 27,
        _ => 28,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rare_words_are_worth_more() {
        assert!(bits(b"the ") < bits(b"must"), "{} {}", bits(b"the "), bits(b"must"));
        assert!(bits(b"must") < bits(b"jailbreak"));
        assert!(bits(b"your") < bits("指令".as_bytes()));
        assert!(bits(b"<|") > bits(b"e,"));
    }
}
