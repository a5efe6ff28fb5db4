//! Ways to mark the words of an order, or to give each word a row of its own.

pub(crate) type Marked = fn(&[&str]) -> String;

pub(crate) fn each(words: &[&str], form: impl Fn(usize, &str) -> String, between: &str) -> String {
    words
        .iter()
        .enumerate()
        .map(|(nth, word)| form(nth, word))
        .collect::<Vec<_>>()
        .join(between)
}

fn capitalised(word: &str) -> String {
    let (first, rest) = word.split_at(1);
    first.to_uppercase() + rest
}

pub(crate) const MARKED: [(&str, Marked); 30] = [
    ("bold", |words| {
        each(words, |_, word| format!("**{word}**"), " ")
    }),
    ("bold, every other word", |words| {
        each(
            words,
            |nth, word| {
                if nth % 2 == 0 {
                    format!("**{word}**")
                } else {
                    word.into()
                }
            },
            " ",
        )
    }),
    ("bold within words", |words| {
        each(
            words,
            |_, word| {
                if word.len() > 3 {
                    format!("{}**{}**", &word[..2], &word[2..])
                } else {
                    word.into()
                }
            },
            " ",
        )
    }),
    ("italic", |words| {
        each(words, |_, word| format!("_{word}_"), " ")
    }),
    ("struck out", |words| {
        each(words, |_, word| format!("~~{word}~~"), " ")
    }),
    ("code", |words| {
        each(words, |_, word| format!("`{word}`"), " ")
    }),
    ("quotes", |words| {
        each(words, |_, word| format!("\"{word}\""), " ")
    }),
    ("curly quotes", |words| {
        each(words, |_, word| format!("\u{201c}{word}\u{201d}"), " ")
    }),
    ("brackets", |words| {
        each(words, |_, word| format!("[{word}]"), " ")
    }),
    ("links", |words| {
        each(
            words,
            |_, word| format!("[{word}](https://docs.example/{word})"),
            " ",
        )
    }),
    ("commas", |words| words.join(", ")),
    ("full stops", |words| words.join(". ")),
    ("ellipses", |words| words.join("... ")),
    ("dashes", |words| words.join(" - ")),
    ("slashes", |words| words.join(" / ")),
    ("bars", |words| words.join(" | ")),
    ("joined by _", |words| words.join("_")),
    ("joined by -", |words| words.join("-")),
    ("joined by .", |words| words.join(".")),
    ("joined by +", |words| words.join("+")),
    ("joined by /", |words| words.join("/")),
    ("camel case", |words| {
        each(
            words,
            |nth, word| {
                if nth == 0 {
                    word.to_lowercase()
                } else {
                    capitalised(word)
                }
            },
            "",
        )
    }),
    ("diff", |words| {
        format!(
            "@@ -1,0 +1,9 @@\n{}",
            each(words, |_, word| format!("+{word}"), "\n")
        )
    }),
    ("comments", |words| {
        words
            .chunks(2)
            .map(|pair| format!("// {}", pair.join(" ")))
            .collect::<Vec<_>>()
            .join("\n")
    }),
    ("subtitles", |words| {
        let cue = |(nth, pair): (usize, &[&str])| {
            format!(
                "00:00:{nth:02}.000 --> 00:00:{nth:02}.900\n{}\n",
                pair.join(" ")
            )
        };
        format!(
            "WEBVTT\n\n{}",
            words
                .chunks(2)
                .enumerate()
                .map(cue)
                .collect::<Vec<_>>()
                .join("\n")
        )
    }),
    ("elements", |words| {
        each(words, |_, word| format!("<w>{word}</w>"), "")
    }),
    ("list", |words| {
        each(words, |_, word| format!("- {word}"), "\n")
    }),
    ("JSON list", |words| {
        format!(
            "{{\"words\": [{}]}}",
            each(words, |_, word| format!("{word:?}"), ", ")
        )
    }),
    ("JSON rows", |words| {
        format!(
            "[{}]",
            each(
                words,
                |nth, word| format!("{{\"id\":\"r{nth}x\",\"word\":\"{word}\"}}"),
                ","
            )
        )
    }),
    ("table", |words| {
        let row = |(nth, part): (usize, &[&str])| format!("| row{nth} | {} |", part.join(" "));
        format!(
            "| name | text |\n|---|---|\n{}",
            words
                .chunks(3)
                .enumerate()
                .map(row)
                .collect::<Vec<_>>()
                .join("\n")
        )
    }),
];
