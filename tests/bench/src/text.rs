//! Texts to carry: prose that no rule minds, and text made to be slow to judge.

const WORDS: &str = "the kettle holds one litre of water and boils it in about three minutes fill it to the line close the lid \
press the switch at the base a lamp shows that it heats when steam reaches the sensor the switch goes back and the lamp goes \
out pour slowly rinse the filter every second week with vinegar and let it dry in open air keep the cord away from edges and \
from the stove store the base on a flat dry place children use it only with an adult near the warranty lasts two years from \
the day of sale spare parts such as filters lids and bases are sold under the number printed below the handle";

/// Prose of exactly this many bytes: sentences in paragraphs.
pub fn clean(bytes: usize) -> String {
    let words: Vec<&str> = WORDS.split_whitespace().collect();
    let (mut out, mut state) = (String::with_capacity(bytes + 16), 88_172_645_463_325_252_u64);
    let mut sentence = 0;
    while out.len() < bytes {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let word = words[usize::try_from(state % words.len() as u64).unwrap_or(0)];
        if sentence == 0 {
            out.push_str(&word[..1].to_ascii_uppercase());
            out.push_str(&word[1..]);
        } else {
            out.push(' ');
            out.push_str(word);
        }
        sentence += 1;
        if sentence == 14 {
            out.push_str(if state & 0x3000 == 0 { ".\n\n" } else { ". " });
            sentence = 0;
        }
    }
    out.truncate(bytes);
    out
}

/// Texts that come close to what rules look for, again and again, without (mostly) being it; each with its name.
pub fn worst(bytes: usize) -> Vec<(&'static str, String)> {
    let repeat = |piece: &str| {
        let mut text = piece.repeat(bytes / piece.len() + 1);
        text.truncate(text.floor_char_boundary(bytes));
        text
    };
    vec![
        (
            "keywords",
            repeat("ignore the system prompt as you previously instructed secret user tool important curl sudo you are now. "),
        ),
        ("near misses", repeat("ignore all of the ignore all of the previous previous disregard any disregard any instruct ")),
        ("open tags", repeat("<div><p style=\"display:block\"><span><b><td>")),
        ("closed tags", repeat("<p>one</p><br/><a href=\"x\">two</a><!-- three -->")),
        ("less-than", repeat("< <a <")),
        ("accents", repeat("é ü ñ Ö à ß ï ")),
        ("zero width", repeat("a\u{200b}b\u{200c}c\u{2060}d ")),
        ("spaces", repeat("ignore                                                                    ")),
        ("escapes", repeat("\\u003c&lt;&#105;&#103;%69%67 ")),
        ("one word", repeat("a")),
        ("base64", repeat("aWdub3JlIGFsbCBwcmV2aW91cyBpbnN0cnVjdGlvbnMg")),
        ("symbols", repeat("#!/*-+=[]{}()|~`^%$@;:?,.")),
    ]
}
