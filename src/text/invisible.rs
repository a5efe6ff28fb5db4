//! Finds characters of a string that a reader does not see, in numbers that no honest text has.

use std::ops::Range;

use super::blocks::{self, BLOCK};
use super::escape::{self, Kind};
use super::unicode::is_invisible;

enum_with_names! {
    /// Techniques that hide text from a reader. Named as in rule files.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Invisible {
        /// Tag characters (U+E0020–E007E) outside an emoji flag: a hidden ASCII text.
        Tags = "tags",
        /// Zero-width characters in runs, or scattered between the letters of words.
        ZeroWidth = "zero-width",
        /// Variation selectors in runs, or after plain letters: they encode bytes.
        Variation = "variation",
        /// Overrides of the writing direction: the displayed text differs from the stored text.
        Bidi = "bidi",
        /// Terminal text that is concealed, or has the same colour as its background.
        Conceal = "conceal",
        /// Terminal text that is erased by backspaces and overwritten.
        Overwrite = "overwrite",
        /// Prose inside a string meant for the terminal itself (title, link target).
        TerminalString = "terminal-string",
        /// Words in letter-like symbols that have another purpose: mathematical, circled,
        /// full-width.
        Styled = "styled",
        /// Private-use characters, which have no agreed meaning.
        Private = "private",
        /// Prose in a disguise that has no other use: see [`super::Suspicion::Disguise`].
        Disguise = "disguise",
        /// Prose spelled as people do not write: see [`super::Suspicion::Odd`].
        Odd = "odd",
    }
}

/// Minimum length of a run of zero-width characters that cannot be joiners between letters or
/// emoji.
const ZERO_WIDTH_RUN: usize = 6;
/// Minimum number of zero-width characters between ASCII letters that cannot be line-break hints.
const ZERO_WIDTH_IN_WORDS: usize = 6;
/// Minimum length of a run of variation selectors. A character takes only one, and consecutive
/// emoji or ideographs never produce runs.
const VARIATION_RUN: usize = 3;
const VARIATION_AFTER_LETTERS: usize = 6;
/// Minimum number of concealed letters that form a message.
const CONCEALED_LETTERS: usize = 8;
/// Minimum number of erased characters that differ from those written in their place (man pages
/// strike over the same characters).
const OVERWRITTEN: usize = 8;
/// Minimum number of consecutive words of at least three styled letters, and of letters in them.
/// Fewer may be symbols, East Asian abbreviations or a sentence of a post.
const STYLED_WORDS: usize = 10;
const STYLED_LETTERS: usize = 40;
/// Minimum number of spaces in a terminal string that is prose.
const PROSE_SPACES: usize = 4;

/// Finds hidden text beyond what honest texts contain. Linear. Returns at most one range for each
/// technique, from its first to its last occurrence. Emoji sequences, joiners of Persian and Indic
/// scripts, a byte order mark at the start, and the marks and isolates of right-to-left scripts are
/// honest.
pub fn find_invisible(raw: &str) -> Vec<(Invisible, Range<usize>)> {
    if ordinary_length(raw.as_bytes()) == raw.len() {
        return Vec::new();
    }
    let mut search = Search::default();
    let mut at = 0;
    let mut before = '\n';
    while let Some(rest) = raw.get(at..) {
        if search.is_idle() && rest.bytes().next().is_some_and(is_ordinary) {
            let length = ordinary_length(rest.as_bytes());
            if let Some(last) = rest.as_bytes().get(..length).and_then(<[u8]>::last) {
                (at, before) = (at + length, char::from(*last));
                continue;
            }
        }
        let Some(c) = rest.chars().next() else { break };
        let width = match c {
            '\u{1b}' => search.read_escape(at, &escape::read(rest)),
            '\u{8}' => search.read_backspaces(raw, at, rest),
            _ if c.is_ascii() => search.read_plain(at, c),
            _ if is_invisible(c) => search.read_run(at, before, rest),
            _ => search.read_plain(at, c),
        };
        before = rest
            .get(..width)
            .and_then(|taken| taken.chars().next_back())
            .unwrap_or(before);
        at += width.max(1);
    }
    search.finish(raw.len())
}

/// Returns the number of ordinary bytes at the start.
fn ordinary_length(bytes: &[u8]) -> usize {
    let (chunks, _) = bytes.as_chunks::<BLOCK>();
    let whole_bytes = chunks
        .iter()
        .take_while(|block| !blocks::any(block, |b| !is_ordinary(b)))
        .count()
        * BLOCK;
    whole_bytes
        + bytes
            .iter()
            .skip(whole_bytes)
            .take_while(|b| is_ordinary(**b))
            .count()
}

/// Reports whether a byte is an ASCII character that neither hides text nor is hidden itself.
const fn is_ordinary(byte: u8) -> bool {
    matches!(byte, 0x09..=0x1A | 0x1C..=0x7E)
}

#[derive(Default)]
struct Search {
    findings: Vec<(Invisible, Range<usize>)>,
    in_words: Count,
    after_letters: Count,
    overwritten: Count,
    conceal: TerminalStyle,
    styled: StyledLetters,
}

/// Consecutive words in styled letters.
#[derive(Default)]
struct StyledLetters {
    start: usize,
    words: usize,
    letters: usize,
    in_word: usize,
}

/// The number of occurrences, and the range that they span.
#[derive(Default)]
struct Count {
    times: usize,
    span: Option<Range<usize>>,
}

impl Count {
    fn add(&mut self, times: usize, span: Range<usize>) {
        self.times += times;
        self.span = Some(self.span.take().map_or(span.start, |old| old.start)..span.end);
    }
}

/// The part of the terminal's state that can hide text.
#[derive(Default)]
struct TerminalStyle {
    is_concealed: bool,
    foreground: Option<u32>,
    background: Option<u32>,
    start: usize,
    letters: usize,
}

impl TerminalStyle {
    fn hides(&self) -> bool {
        self.is_concealed || (self.foreground.is_some() && self.foreground == self.background)
    }
}

impl Search {
    fn record(&mut self, technique: Invisible, span: Range<usize>) {
        match self
            .findings
            .iter_mut()
            .find(|(kind, _)| *kind == technique)
        {
            Some((_, existing)) => existing.end = existing.end.max(span.end),
            None => self.findings.push((technique, span)),
        }
    }

    /// Reports whether ordinary characters leave the state unchanged: no run of styled letters and
    /// no concealed text has begun.
    fn is_idle(&self) -> bool {
        self.styled.letters == 0 && !self.conceal.hides()
    }

    fn read_plain(&mut self, at: usize, c: char) -> usize {
        self.track_style(at, c);
        if matches!(c, '\u{e000}'..='\u{f8ff}' | '\u{f0000}'..='\u{10fffd}') {
            self.record(Invisible::Private, at..at + c.len_utf8());
        }
        if self.conceal.hides() && c.is_alphanumeric() {
            if self.conceal.letters == 0 {
                self.conceal.start = at;
            }
            self.conceal.letters += 1;
        }
        c.len_utf8()
    }

    fn track_style(&mut self, at: usize, c: char) {
        let run = &mut self.styled;
        if is_styled(c) {
            if run.letters == 0 {
                run.start = at;
            }
            (run.letters, run.in_word) = (run.letters + 1, run.in_word + 1);
            run.words += usize::from(run.in_word == 3);
            let start = run.start;
            let enough = run.words >= STYLED_WORDS && run.letters >= STYLED_LETTERS;
            if enough {
                self.record(Invisible::Styled, start..at + c.len_utf8());
            }
        } else if run.letters > 0 {
            if c == '\n' || c.is_alphabetic() {
                *run = StyledLetters::default();
            } else {
                run.in_word = 0;
            }
        }
    }

    /// Processes a run of invisible characters; `before` is the character in front of it.
    fn read_run(&mut self, at: usize, before: char, rest: &str) -> usize {
        let length = rest.find(|c: char| !is_invisible(c)).unwrap_or(rest.len());
        let run = rest.get(..length).unwrap_or_default();
        let after = rest
            .get(length..)
            .and_then(|after| after.chars().next())
            .unwrap_or('\n');
        let count = |is_counted: fn(char) -> bool| run.chars().filter(|c| is_counted(*c)).count();
        let span = at..at + length;
        let tags = count(|c| matches!(c, '\u{e0000}'..='\u{e007f}'));
        if tags > 0 && !(before == '\u{1f3f4}' && tags <= 8 && run.ends_with('\u{e007f}')) {
            self.record(Invisible::Tags, span.clone());
        }
        let zero_width = count(
            |c| matches!(c, '\u{200b}'..='\u{200f}' | '\u{2060}'..='\u{2064}' | '\u{feff}' | '\u{180e}' | '\u{34f}'),
        );
        if zero_width >= ZERO_WIDTH_RUN {
            self.record(Invisible::ZeroWidth, span.clone());
        }
        if zero_width > 0 && before.is_ascii_alphanumeric() && after.is_ascii_alphanumeric() {
            self.in_words.add(zero_width, span.clone());
        }
        let variation = count(|c| matches!(c, '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}'));
        if variation >= VARIATION_RUN {
            self.record(Invisible::Variation, span.clone());
        }
        if variation > 0 && before.is_ascii_alphabetic() {
            self.after_letters.add(variation, span.clone());
        }
        if count(|c| matches!(c, '\u{202d}' | '\u{202e}')) > 0 {
            self.record(Invisible::Bidi, span);
        }
        length
    }

    fn read_backspaces(&mut self, raw: &str, at: usize, rest: &str) -> usize {
        let length = rest.bytes().take_while(|b| *b == 8).count();
        let erased = raw.get(..at).unwrap_or_default().chars().rev().take(length);
        let erased: Vec<char> = erased.collect();
        let written = rest.get(length..).unwrap_or_default().chars();
        // A struck-over letter is the same letter, or an underscore.
        let changed = erased
            .iter()
            .rev()
            .zip(written)
            .filter(|(old, new)| *old != new && **old != '_' && *new != '_')
            .count();
        if changed > 0 {
            let bytes: usize = erased.iter().map(|c| c.len_utf8()).sum();
            self.overwritten.add(changed, at - bytes..at + length);
        }
        length
    }

    fn read_escape(&mut self, at: usize, escape: &escape::Escape<'_>) -> usize {
        match escape.kind {
            Kind::Rendition(parameters) => {
                let was_hidden = self.conceal.hides();
                apply_rendition(&mut self.conceal, parameters);
                if was_hidden && !self.conceal.hides() {
                    self.end_concealed(at);
                }
            }
            Kind::String(content) => {
                if content.matches(' ').count() >= PROSE_SPACES {
                    self.record(Invisible::TerminalString, at..at + escape.length);
                }
            }
            Kind::Other => {}
        }
        escape.length
    }

    fn end_concealed(&mut self, at: usize) {
        if self.conceal.letters >= CONCEALED_LETTERS {
            self.record(Invisible::Conceal, self.conceal.start..at);
        }
        self.conceal.letters = 0;
    }

    fn finish(mut self, at: usize) -> Vec<(Invisible, Range<usize>)> {
        self.end_concealed(at);
        for (technique, count, min_times) in [
            (
                Invisible::ZeroWidth,
                std::mem::take(&mut self.in_words),
                ZERO_WIDTH_IN_WORDS,
            ),
            (
                Invisible::Variation,
                std::mem::take(&mut self.after_letters),
                VARIATION_AFTER_LETTERS,
            ),
            (
                Invisible::Overwrite,
                std::mem::take(&mut self.overwritten),
                OVERWRITTEN,
            ),
        ] {
            if let Some(span) = count.span.filter(|_| count.times >= min_times) {
                self.record(technique, span);
            }
        }
        self.findings
    }
}

/// Reports whether a character is a compatibility form of a letter that is not meant for words.
fn is_styled(c: char) -> bool {
    matches!(
        c,
        '\u{ff21}'..='\u{ff3a}' | '\u{ff41}'..='\u{ff5a}' | '\u{1d400}'..='\u{1d7cb}' | '\u{249c}'..='\u{24e9}'
            | '\u{1f110}'..='\u{1f149}' | '\u{1d2c}'..='\u{1d6a}' | '\u{2b0}'..='\u{2b8}' | '\u{1d43}'..='\u{1dbf}'
    )
}

/// Applies the parameters of a select-graphic-rendition sequence (ECMA-48, 8.3.117; colours as in
/// xterm).
fn apply_rendition(state: &mut TerminalStyle, parameters: &str) {
    let mut numbers = parameters
        .split([';', ':'])
        .map(|n| n.parse::<u32>().unwrap_or(0));
    while let Some(number) = numbers.next() {
        match number {
            0 => (state.is_concealed, state.foreground, state.background) = (false, None, None),
            8 => state.is_concealed = true,
            28 => state.is_concealed = false,
            30..=37 => state.foreground = Some(number - 30),
            90..=97 => state.foreground = Some(number - 82),
            40..=47 => state.background = Some(number - 40),
            100..=107 => state.background = Some(number - 92),
            39 => state.foreground = None,
            49 => state.background = None,
            38 | 48 => {
                let colour = match numbers.next() {
                    Some(5) => numbers.next(),
                    Some(2) => {
                        let parts: Vec<u32> = numbers.by_ref().take(3).collect();
                        Some(parts.iter().fold(1, |sum, part| sum << 8 | (part & 0xFF)))
                    }
                    _ => None,
                };
                *(if number == 38 {
                    &mut state.foreground
                } else {
                    &mut state.background
                }) = colour;
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(raw: &str) -> Vec<Invisible> {
        find_invisible(raw)
            .into_iter()
            .map(|(kind, _)| kind)
            .collect()
    }

    #[test]
    fn honest_texts_hide_nothing() {
        for raw in [
            "plain",
            "\u{feff}with a byte order mark",
            "👨\u{200d}👩\u{200d}👧\u{200d}👦 ❤\u{fe0f} 🏳\u{fe0f}\u{200d}🌈",
            "🏴\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}",
            "می\u{200c}خواهم کتاب\u{200c}ها را بخوانم و نمی\u{200c}دانم چه\u{200c}قدر می\u{200c}شود، آن\u{200c}ها",
            "\u{200f}שלום\u{200e} world \u{2067}עברית\u{2069}",
            "soft\u{ad}hy\u{ad}phens in some very long com\u{ad}pound words of a web\u{ad}page and a few more of them hy\u{ad}phens",
            "\x1b[31merror\x1b[0m: \x1b[38;5;8mgrey text that can be read\x1b[0m",
            "\x1b]8;;https://example.test/a\x07a link\x1b]8;;\x07",
            "N\u{8}NA\u{8}AM\u{8}ME\u{8}E  _\u{8}f_\u{8}i_\u{8}l_\u{8}e_\u{8}n_\u{8}a_\u{8}m_\u{8}e",
            "葛\u{e0100}城市 辻\u{e0101}",
        ] {
            assert_eq!(kinds(raw), [], "{raw:?}");
        }
    }

    #[test]
    fn each_way_is_found() {
        let tags: String = "do it"
            .chars()
            .map(|c| char::from_u32(c as u32 + 0xE0000).unwrap())
            .collect();
        for (raw, kind) in [
            (&*format!("hi{tags} there"), Invisible::Tags),
            (
                "a\u{200b}\u{200c}\u{200b}\u{200d}\u{200b}\u{200c}b",
                Invisible::ZeroWidth,
            ),
            (
                "i\u{200b}g\u{200b}n\u{200b}o\u{200b}r\u{200b}e\u{200b}d",
                Invisible::ZeroWidth,
            ),
            (
                "😀\u{fe01}\u{e0110}\u{e0111}\u{e0112}",
                Invisible::Variation,
            ),
            ("abc \u{202e}cba", Invisible::Bidi),
            ("\x1b[8mhidden orders\x1b[28m", Invisible::Conceal),
            ("\x1b[30;40mhidden orders", Invisible::Conceal),
            (
                "\x1b[38;2;0;0;0;48;2;0;0;0mhidden orders\x1b[0m",
                Invisible::Conceal,
            ),
            (
                &*format!("bad order{}all is ok", "\u{8}".repeat(9)),
                Invisible::Overwrite,
            ),
            ("\x1b]0;you must now do this\x07", Invisible::TerminalString),
        ] {
            assert_eq!(kinds(raw), [kind], "{raw:?}");
        }
    }

    #[test]
    fn places_are_those_of_whole_characters() {
        let raw = "a\u{200b}\u{200c}öäü über alles\u{8}\u{8}\u{8}\u{8}\u{8}\u{8}\u{8}\u{8}\u{8}\u{8}\u{8}\u{8}\u{8}\u{8}\u{8}\u{8}quite another";
        let found = find_invisible(raw);
        let is_found = found.iter().any(|(what, _)| *what == Invisible::Overwrite);
        assert!(is_found, "{found:?}");
        let is_whole = |(_, span): &(Invisible, Range<usize>)| raw.get(span.clone()).is_some();
        assert!(found.iter().all(is_whole), "{found:?}");
    }

    #[test]
    fn backspaces_cost_linear_time() {
        let raw = "x".repeat(50_000) + &"\u{8}y\u{8}z".repeat(25_000) + &"\u{8}".repeat(50_000);
        let start = std::time::Instant::now();
        assert_eq!(kinds(&raw), [Invisible::Overwrite]);
        assert!(start.elapsed().as_millis() < 500);
    }
}
