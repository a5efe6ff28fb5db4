//! The plain reading of a string: the text that a person would read, with a mapping back to its
//! bytes.

use std::ops::Range;

use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfkc_quick};

use super::escape;

/// A plain reading that differs from the raw string.
pub(super) struct Plain {
    pub(super) text: String,
    /// Whether terminal sequences swallowed readable characters.
    pub(super) swallowed: bool,
    /// In the order of both offsets.
    runs: Vec<Run>,
}

/// A run of the reading. From `plain` on (until the next run), it corresponds to the raw text from
/// `raw` on: byte for byte if `unit` is 0; otherwise, all of it comes from one character of `unit`
/// bytes.
struct Run {
    plain: usize,
    raw: usize,
    unit: usize,
}

/// The effect of the plain reading on a character.
enum CharAction {
    Keep,
    Remove,
    Replace(char),
    /// Its compatibility form.
    Fold,
    Backspace,
    Escape,
}

impl Plain {
    /// Returns the plain reading, or `None` if it is the same as the string.
    pub(super) fn from_raw(raw: &str) -> Option<Self> {
        let first = first_changed(raw)?;
        let mut plain = Self {
            text: String::with_capacity(raw.len()),
            swallowed: false,
            runs: Vec::new(),
        };
        plain.copy(0, raw.get(..first)?);
        plain.read(raw, first, true);
        Some(plain)
    }

    fn read(&mut self, raw: &str, from: usize, interpret: bool) {
        let mut at = from;
        while let Some(rest) = raw.get(at..).filter(|rest| !rest.is_empty()) {
            let unchanged = unchanged_length(rest.as_bytes());
            if unchanged > 0 {
                self.copy(at, rest.get(..unchanged).unwrap_or_default());
                at += unchanged;
                continue;
            }
            let mut chars = rest.chars();
            let Some(c) = chars.next() else { return };
            let width = c.len_utf8();
            match char_action(c, chars.next()) {
                CharAction::Keep => self.copy(at, rest.get(..width).unwrap_or_default()),
                CharAction::Remove => {}
                CharAction::Replace(other) => self.replace(at, width, std::iter::once(other)),
                CharAction::Fold => self.replace(at, width, std::iter::once(c).nfkc()),
                CharAction::Backspace if interpret => self.erase(),
                CharAction::Escape if interpret => {
                    let escape = escape::read(rest);
                    self.swallowed |= escape.swallows;
                    at += escape.length;
                    continue;
                }
                CharAction::Backspace | CharAction::Escape => {}
            }
            at += width;
        }
    }

    /// Adds text that stays unchanged.
    fn copy(&mut self, raw: usize, text: &str) {
        let plain = self.text.len();
        let continues = self
            .runs
            .last()
            .is_some_and(|run| run.unit == 0 && run.raw + (plain - run.plain) == raw);
        if !continues && !text.is_empty() {
            self.runs.push(Run {
                plain,
                raw,
                unit: 0,
            });
        }
        self.text.push_str(text);
    }

    /// Adds the replacement of one character of `unit` bytes.
    fn replace(&mut self, raw: usize, unit: usize, chars: impl Iterator<Item = char>) {
        self.runs.push(Run {
            plain: self.text.len(),
            raw,
            unit,
        });
        self.text.extend(chars);
    }

    /// Removes the last character of the line, as a terminal does.
    fn erase(&mut self) {
        match self.text.pop() {
            Some('\n') => self.text.push('\n'),
            Some(_) => {
                self.swallowed = true;
                while self
                    .runs
                    .last()
                    .is_some_and(|run| run.plain >= self.text.len())
                {
                    self.runs.pop();
                }
            }
            None => {}
        }
    }

    /// Returns the raw range that corresponds to a plain range.
    pub(super) fn locate(&self, plain: &Range<usize>) -> Range<usize> {
        let run = |at: usize| {
            self.runs.get(
                self.runs
                    .partition_point(|run| run.plain <= at)
                    .saturating_sub(1),
            )
        };
        let start = run(plain.start).map_or(0, |run| {
            if run.unit == 0 {
                run.raw + (plain.start - run.plain)
            } else {
                run.raw
            }
        });
        let end = match plain
            .end
            .checked_sub(1)
            .filter(|last| *last >= plain.start)
            .and_then(run)
        {
            Some(run) if run.unit == 0 => run.raw + (plain.end - run.plain),
            Some(run) => run.raw + run.unit,
            None => start,
        };
        start..end.max(start)
    }
}

/// Returns the reading in which control characters are dropped and no sequence is carried out.
pub(super) fn bare(raw: &str) -> String {
    let mut plain = Plain {
        text: String::with_capacity(raw.len()),
        swallowed: false,
        runs: Vec::new(),
    };
    plain.read(raw, 0, false);
    plain.text
}

/// Returns the position of the first character that the plain reading changes.
fn first_changed(raw: &str) -> Option<usize> {
    let mut at = 0;
    loop {
        let rest = raw.get(at..)?;
        at += unchanged_length(rest.as_bytes());
        let mut chars = raw.get(at..)?.chars();
        let c = chars.next()?;
        if !matches!(char_action(c, chars.next()), CharAction::Keep) {
            return Some(at);
        }
        at += c.len_utf8();
    }
}

/// Returns how many leading bytes are printable ASCII, tabs and line feeds.
fn unchanged_length(bytes: &[u8]) -> usize {
    let is_unchanged = |b: &u8| matches!(b, 0x20..=0x7E | b'\n' | b'\t');
    // Test whole blocks without a branch per byte, which the compiler turns into vector code.
    let blocks = bytes
        .chunks_exact(32)
        .take_while(|block| block.iter().fold(true, |all, b| all & is_unchanged(b)))
        .count()
        * 32;
    blocks
        + bytes
            .get(blocks..)
            .unwrap_or_default()
            .iter()
            .take_while(|b| is_unchanged(b))
            .count()
}

fn char_action(c: char, next: Option<char>) -> CharAction {
    match c {
        ' '..='~' | '\n' | '\t' => CharAction::Keep,
        '\r' if next == Some('\n') => CharAction::Keep,
        '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}' => CharAction::Replace('\n'),
        '\u{8}' => CharAction::Backspace,
        '\u{1b}' => CharAction::Escape,
        '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' => CharAction::Remove,
        // Letters of common scripts, which compatibility folding does not change: a shortcut, not a
        // separate rule.
        '\u{c0}'..='\u{130}'
        | '\u{400}'..='\u{52f}'
        | '\u{4e00}'..='\u{9fff}'
        | '\u{ac00}'..='\u{d7a3}'
        | '\u{3041}'..='\u{3096}' => CharAction::Keep,
        '\u{2013}'..='\u{2014}'
        | '\u{2018}'..='\u{201f}'
        | '\u{2022}'
        | '\u{2500}'..='\u{257f}' => CharAction::Keep,
        '\u{e0020}'..='\u{e007e}' => {
            CharAction::Replace(char::from_u32(c as u32 - 0xE0000).unwrap_or(' '))
        }
        c if is_invisible(c) => CharAction::Remove,
        c if is_nfkc_quick(std::iter::once(c)) == IsNormalized::No => CharAction::Fold,
        _ => CharAction::Keep,
    }
}

/// Reports whether a character leaves no mark on a page: default-ignorable code points (Unicode,
/// DerivedCoreProperties) and interlinear annotation marks.
pub(super) fn is_invisible(c: char) -> bool {
    matches!(
        c,
        '\u{ad}'
            | '\u{34f}'
            | '\u{61c}'
            | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

#[cfg(test)]
mod tests {
    use super::super::Text;

    fn plain(raw: &str) -> String {
        Text::new(raw).plain().to_owned()
    }

    #[test]
    fn ordinary_text_is_not_copied() {
        for raw in [
            "",
            "plain text\r\n\twith lines",
            "Grüße aus Köln – “so” 中文 Привет",
            &"x".repeat(100),
        ] {
            let text = Text::new(raw);
            assert_eq!(text.plain().as_ptr(), text.raw().as_ptr(), "{raw:?}");
        }
    }

    #[test]
    fn readings() {
        for (raw, read) in [
            ("rm -rf /\r# harmless", "rm -rf /\n# harmless"),
            ("r\0m", "rm"),
            ("rx\u{8}m", "rm"),
            ("\u{8}a", "a"),
            ("\x1b[1mbold\x1b[0m", "bold"),
            ("\x1b]8;;https://x.test\x07link\x1b]8;;\x07", "link"),
            ("i\u{200b}g\u{200d}n\u{2060}ore", "ignore"),
            ("\u{e0049}\u{e0067}", "Ig"),
            ("ｉｇｎｏｒｅ", "ignore"),
            ("𝐢𝐠𝐧𝐨𝐫𝐞 ⓐ ﬁ", "ignore a fi"),
            ("a\u{a0}b", "a b"),
            ("e\u{301}", "e\u{301}"),
            ("a\u{fe0f}\u{e0100}", "a"),
        ] {
            assert_eq!(plain(raw), read, "{raw:?}");
        }
    }

    #[test]
    fn the_way_back_is_exact() {
        let raw = "aﬁ\u{200b}b𝐢\x1b[1mz\u{8}q end";
        let text = Text::new(raw);
        assert_eq!(text.plain(), "afibiq end");
        let back = |plain: &str| {
            let at = text.plain().find(plain).unwrap();
            &raw[text.locate(at..at + plain.len())]
        };
        assert_eq!(back("a"), "a");
        assert_eq!(back("fi"), "ﬁ");
        assert_eq!(back("f"), "ﬁ");
        assert_eq!(back("b"), "b");
        assert_eq!(back("bi"), "b𝐢");
        assert_eq!(back("fib"), "ﬁ\u{200b}b");
        assert_eq!(back("q"), "q");
        assert_eq!(back("end"), "end");
        assert_eq!(text.locate(3..3).len(), 0);
    }

    #[test]
    fn swallowed_text_is_still_read() {
        assert_eq!(Text::new("\x1b[31mred\x1b[0m").bare(), None);
        assert_eq!(Text::new("plain").bare(), None);
        assert_eq!(Text::new("x\x1b[;rm -rf /").bare(), Some("x[;rm -rf /"));
        assert_eq!(
            Text::new("rm -rf /\u{8}\u{8}\u{8}").bare(),
            Some("rm -rf /")
        );
        assert_eq!(Text::new("\x1b]; reboot ;\x07").bare(), Some("]; reboot ;"));
    }

    #[test]
    fn every_range_of_any_text_maps_to_whole_characters() {
        let alphabet = [
            "a",
            "ﬁ",
            "\u{200b}",
            "\u{8}",
            "\x1b[1m",
            "é",
            "\r",
            "𝐢",
            "\u{e0041}",
            "㌀",
            "\n",
            "\x1b",
        ];
        let mut seed = 7u64;
        for _ in 0..300 {
            let raw: String = (0..12)
                .map(|_| {
                    seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1);
                    alphabet[(seed >> 33) as usize % alphabet.len()]
                })
                .collect();
            let text = Text::new(raw.as_str());
            let borders: Vec<usize> = (0..=text.plain().len())
                .filter(|at| text.plain().is_char_boundary(*at))
                .collect();
            for (n, start) in borders.iter().enumerate() {
                for end in &borders[n..] {
                    let range = text.locate(*start..*end);
                    assert!(
                        raw.get(range.clone()).is_some(),
                        "{raw:?} {start}..{end} {range:?}"
                    );
                }
            }
        }
    }
}
