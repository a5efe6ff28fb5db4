//! Texts for the messages: prose in which no rule matches, and text made to be slow to judge.

const SENTENCES: [&str; 11] = [
    "The kettle holds one litre of water and boils it in about three minutes.",
    "Fill it to the line, close the lid and press the switch at the base.",
    "A lamp shows that it heats.",
    "When steam reaches the sensor, the switch goes back and the lamp goes out.",
    "Pour slowly.",
    "Rinse the filter every second week with vinegar and let it dry in open air.",
    "Keep the cord away from edges and from the stove.",
    "Store the base on a flat, dry place.",
    "Children use it only with an adult near.",
    "The warranty lasts two years from the day of sale.",
    "Spare parts such as filters, lids and bases are sold under the number printed below the handle.",
];

/// Returns prose of exactly this many bytes: sentences in paragraphs.
pub fn clean(bytes: usize) -> String {
    let mut out = String::with_capacity(bytes + 128);
    let mut state = 88_172_645_463_325_252_u64;
    while out.len() < bytes {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        out.push_str(SENTENCES[usize::try_from(state % SENTENCES.len() as u64).unwrap_or(0)]);
        out.push_str(if state & 0x3000 == 0 { "\n\n" } else { " " });
    }
    out.truncate(bytes);
    out
}

/// Returns texts that repeatedly come close to what rules look for, mostly without a match; each
/// with its name.
pub fn worst(bytes: usize) -> Vec<(&'static str, String)> {
    let repeat = |piece: &str| {
        let mut text = piece.repeat(bytes / piece.len() + 1);
        text.truncate(text.floor_char_boundary(bytes));
        text
    };
    vec![
        (
            "keywords",
            repeat(
                "ignore the system prompt as you previously instructed secret user tool important curl sudo you are now. ",
            ),
        ),
        (
            "near misses",
            repeat(
                "ignore all of the ignore all of the previous previous disregard any disregard any instruct ",
            ),
        ),
        (
            "open tags",
            repeat("<div><p style=\"display:block\"><span><b><td>"),
        ),
        (
            "closed tags",
            repeat("<p>one</p><br/><a href=\"x\">two</a><!-- three -->"),
        ),
        ("less-than", repeat("< <a <")),
        ("accents", repeat("é ü ñ Ö à ß ï ")),
        ("zero width", repeat("a\u{200b}b\u{200c}c\u{2060}d ")),
        (
            "spaces",
            repeat("ignore                                                                    "),
        ),
        ("escapes", repeat("\\u003c&lt;&#105;&#103;%69%67 ")),
        ("one word", repeat("a")),
        (
            "base64",
            repeat("aWdub3JlIGFsbCBwcmV2aW91cyBpbnN0cnVjdGlvbnMg"),
        ),
        ("symbols", repeat("#!/*-+=[]{}()|~`^%$@;:?,.")),
    ]
}
