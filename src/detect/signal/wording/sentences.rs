//! Reads a text word by word and reports where its sentences end.

use super::word::{Kind, Word, char_at, ends_sentence, kind};
use crate::text::blocks::{self, BLOCK, Block};

/// Receives the words and the ends of sentences.
pub(super) trait Reader {
    /// Receives the next word.
    fn word(&mut self, word: &Word);

    /// Receives the end of a sentence, which may have no words.
    fn end_sentence(&mut self);
}

/// Reads a text. Does not report the end of the last sentence.
pub(super) fn read(text: &str, reader: &mut impl Reader) {
    let mut place = Place {
        text,
        at: 0,
        line_start: 0,
    };
    while let Some(rest) = text
        .as_bytes()
        .get(place.at..)
        .filter(|rest| !rest.is_empty())
    {
        let block = blocks::first(rest);
        if blocks::any(&block, |byte| !byte.is_ascii()) {
            place.read_chars(place.at + BLOCK, reader);
        } else {
            place.read_ascii(&block, rest, reader);
        }
    }
}

/// The current position in a text.
struct Place<'t> {
    text: &'t str,
    at: usize,
    line_start: usize,
}

impl Place<'_> {
    /// Reads up to `end`, or to the end of the word or character there.
    fn read_chars(&mut self, end: usize, reader: &mut impl Reader) {
        while self.at < end {
            let Some(letter) = char_at(self.text, self.at) else {
                self.at = self.text.len();
                return;
            };
            let kind = kind(letter);
            if kind == Kind::Other {
                self.skip(letter, self.at, reader);
                self.at += letter.len_utf8();
                continue;
            }
            let word = if kind == Kind::Letter {
                Word::read(self.text, self.at)
            } else {
                Word::new(letter, self.at)
            };
            self.at = word.span.end;
            reader.word(&word);
        }
    }

    /// Reads an ASCII block, with which `rest` begins, up to the last word that may continue after
    /// it.
    fn read_ascii(&mut self, block: &Block, rest: &[u8], reader: &mut impl Reader) {
        let letters = blocks::mask(block, |byte| byte.is_ascii_alphanumeric());
        let mut starts = letters & !(letters << 1);
        let ends = letters << 1 & !letters;
        let mut next = rest.len().min(BLOCK);
        if letters >> (BLOCK - 1) == 1 {
            let last = starts.checked_ilog2().unwrap_or(0);
            if last == 0 {
                let word = Word::read(self.text, self.at);
                self.at = word.span.end;
                return reader.word(&word);
            }
            starts &= blocks::below(last);
            next = last as usize;
        }
        let mut signs = blocks::mask(block, |byte| matches!(byte, b'.' | b'!' | b'?' | b'\n'))
            & blocks::below(next as u32);
        let begin = self.at;
        let mut skip_until = |place: &mut Self, end: u32, reader: &mut _| {
            while signs & blocks::below(end) != 0 {
                let at = signs.trailing_zeros() as usize;
                signs &= signs - 1;
                place.skip(
                    block.get(at).copied().map_or('\0', char::from),
                    begin + at,
                    reader,
                );
            }
        };
        for (start, end) in blocks::pairs(starts, ends) {
            skip_until(self, start, reader);
            let from = start as usize;
            reader.word(&Word::ascii(
                rest.get(from..).unwrap_or_default(),
                (end - start) as usize,
                begin + from,
            ));
        }
        skip_until(self, u64::BITS, reader);
        self.at = begin + next;
    }

    /// Skips a character at `at` that is not part of a word.
    fn skip(&mut self, letter: char, at: usize, reader: &mut impl Reader) {
        let next = at + letter.len_utf8();
        if ends_sentence(letter, || char_at(self.text, next), at - self.line_start) {
            reader.end_sentence();
        }
        if letter == '\n' {
            self.line_start = next;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Everything that a reader received: each word with its hashes, and each end of a sentence.
    #[derive(Default, PartialEq, Debug)]
    struct Recorder(Vec<Option<(usize, usize, u32, u32)>>);

    impl Reader for Recorder {
        fn word(&mut self, word: &Word) {
            self.0.push(Some((
                word.span.start,
                word.span.end,
                word.whole,
                word.stem,
            )));
        }

        fn end_sentence(&mut self) {
            self.0.push(None);
        }
    }

    #[test]
    fn blocks_are_read_like_single_characters() {
        let pieces = [
            "The kettle holds 12 litres. ",
            "Stop!\n",
            "a\n\nb ",
            "x",
            "né e",
            "指令。",
            "v1.2 ",
            &"long".repeat(20),
            ", ",
        ];
        let mut texts: Vec<String> = include_str!("../wording.txt")
            .split("\n---\n")
            .map(str::to_owned)
            .collect();
        for (nth, first) in pieces.iter().enumerate() {
            texts.extend(
                pieces
                    .iter()
                    .map(|second| [*first, *second].repeat(nth * 7 + 3).concat()),
            );
        }
        for text in texts {
            let mut blocks = Recorder::default();
            let mut chars = Recorder::default();
            read(&text, &mut blocks);
            Place {
                text: &text,
                at: 0,
                line_start: 0,
            }
            .read_chars(text.len(), &mut chars);
            assert_eq!(blocks, chars, "{text}");
        }
    }

    #[test]
    fn words_are_hashed_in_lower_case_by_any_way() {
        for word in [
            "Ignore",
            "IGNORE",
            "ignore",
            "abcdefgh",
            "abcdefghi",
            "a",
            "sixteen16letters",
            "twentyfour24letterslong2",
        ] {
            let [ascii, lower] =
                [word.to_owned(), word.to_lowercase()].map(|word| Word::read(&word, 0));
            assert_eq!(
                (ascii.whole, ascii.stem),
                (lower.whole, lower.stem),
                "{word}"
            );
        }
        let whole = |word: &str| Word::read(word, 0).whole;
        assert_eq!(whole("12"), whole("7"));
        assert_eq!(whole(&"a".repeat(25)), whole(&"é".repeat(30)));
        assert_ne!(whole("12a"), whole("12"));
        assert_eq!(
            Word::read("instruction", 0).stem,
            Word::read("instrument", 0).stem
        );
        assert_eq!(whole("ÉCOLE"), whole("école"));
    }
}
