//! How rare a run of letters is in ordinary text.

/// For each letter, and for all other characters in a last row, how many bits each next one is worth: -log2 of how often
/// it follows. Counted over five megabytes of English documents, mails, logs and code; nine and more are nine.
const NEXT: [&[u8; 27]; 27] = [
    b"954598595973439594335678683",
    b"386738794593794795473898483",
    b"496849835943892794535999794",
    b"478528893987884896675999792",
    b"575465798995539673349675792",
    b"498845992995973994765999792",
    b"597828553995865794565999982",
    b"399929994997883994835999893",
    b"664455599984523595439597974",
    b"387729976898894668284789884",
    b"488626694996856796366879892",
    b"388527993994694898555799592",
    b"367629794994593399586999793",
    b"475446395967875799436699792",
    b"765496697765425593554657994",
    b"398639874994784593545998593",
    b"799789898993999999781489994",
    b"495628694966653896545679593",
    b"695839954967895487435999792",
    b"497739933996694594556989592",
    b"555648594994438493338698994",
    b"377919793999795998798999992",
    b"389849932988944795489955992",
    b"595859995999698495739992592",
    b"677869896995654397449979991",
    b"398727764996784897684856663",
    b"566665766665896666696556779",
];
/// The same for the first character of a run.
const FIRST: &[u8; 27] = b"475546664975655595446777792";
/// A byte of a letter beyond ASCII.
const BEYOND: u32 = 6;

/// Of so many places of ordinary text, in powers of two, one holds `run`.
pub(super) fn bits(run: &[u8]) -> u32 {
    let mut before = None;
    run.iter()
        .map(|b| {
            let class = class(*b);
            let row = before.replace(class).map_or(Some(FIRST), |before| NEXT.get(before).copied());
            if b.is_ascii() { row.and_then(|row| row.get(class)).map_or(0, |digit| u32::from(digit - b'0')) } else { BEYOND }
        })
        .sum()
}

/// How often one of `runs` stands in ordinary text, for each byte of it.
pub(super) fn frequency<'r>(runs: impl IntoIterator<Item = &'r [u8]>) -> f64 {
    runs.into_iter().map(|run| 0.5_f64.powi(i32::try_from(bits(run)).unwrap_or(i32::MAX))).sum()
}

fn class(b: u8) -> usize {
    let letter = (b | 0x20).wrapping_sub(b'a');
    usize::from(if letter < 26 { letter } else { 26 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rare_words_are_worth_more() {
        assert!(bits(b"the ") < bits(b"must"), "{} {}", bits(b"the "), bits(b"must"));
        assert!(bits(b"must") < bits(b"jailbreak"));
        assert!(bits(b"your") < bits("指令".as_bytes()));
        assert!(frequency([b"the ".as_slice(), b"jailbreak"]) > frequency([b"disregard".as_slice(), b"jailbreak"]));
    }
}
