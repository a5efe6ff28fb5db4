//! A string and its other readings. Each reading is made once, and only when needed.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::ops::Range;

mod alphabetic;
mod attack_samples;
pub(crate) mod blocks;
mod code_runs;
mod data;
mod element;
mod escape;
mod facts;
mod glob;
mod html;
mod lines;
mod markdown;
mod origins;
mod presentational_attrs;
mod quoted_mention;
mod readings;
mod render;
mod skeleton;
mod sniff;
mod strip;
mod style;
mod tokens;
mod tree;
mod unicode;
mod visible;

pub mod invisible;
pub mod quick;

use attack_samples::AttackSamples;
pub use code_runs::{CODE_RUN, code_runs, is_code};
pub use facts::Facts;
pub use glob::glob_matches;
pub use html::Page;
pub use quoted_mention::{QuotedMentions, find_labelled_samples};
pub use readings::{DECODED_BYTES, REJOINED, Reading, Suspicion, looks_like};
pub use skeleton::skeleton;
pub use visible::{escape_invisible, strip_invisible};

/// A string that is being judged.
pub struct Text<'m> {
    raw: Cow<'m, str>,
    raw_facts: OnceCell<Facts>,
    /// For the plain reading, if it differs from the raw one.
    plain_facts: OnceCell<Facts>,
    /// `None` inside if there is nothing to change: the plain reading is the raw one.
    plain: OnceCell<Option<unicode::Plain>>,
    bare: OnceCell<Option<String>>,
    page: OnceCell<Option<Box<Page>>>,
    readings: OnceCell<readings::Readings>,
    attack_samples: OnceCell<Box<AttackSamples>>,
}

impl<'m> Text<'m> {
    /// Wraps a string as it is in the message.
    pub fn new(raw: impl Into<Cow<'m, str>>) -> Self {
        Self {
            raw: raw.into(),
            raw_facts: OnceCell::new(),
            plain_facts: OnceCell::new(),
            plain: OnceCell::new(),
            bare: OnceCell::new(),
            page: OnceCell::new(),
            readings: OnceCell::new(),
            attack_samples: OnceCell::new(),
        }
    }

    /// Returns the string as it is in the message, unescaped.
    pub fn raw(&self) -> &str {
        &self.raw
    }

    /// Returns the facts about [`Text::raw`].
    pub fn raw_facts(&self) -> &Facts {
        self.raw_facts.get_or_init(|| Facts::new(&self.raw))
    }

    /// Returns the facts about [`Text::plain`].
    pub fn plain_facts(&self) -> &Facts {
        match self.changed_plain() {
            Some(plain) => self.plain_facts.get_or_init(|| Facts::new(&plain.text)),
            None => self.raw_facts(),
        }
    }

    /// Returns the string as a reader sees it: compatibility forms are folded character by
    /// character (NFKC, UAX #15), terminal sequences are carried out (ECMA-48), a lone carriage
    /// return is a line end, invisible and control characters are removed, and tag characters
    /// become the letters they stand for. Returns the raw string if nothing changes.
    pub fn plain(&self) -> &str {
        self.changed_plain().map_or(&self.raw, |plain| &plain.text)
    }

    /// Returns the range of [`Text::raw`] that corresponds to a range of [`Text::plain`], in whole
    /// characters of both.
    pub fn locate(&self, plain: Range<usize>) -> Range<usize> {
        self.changed_plain()
            .map_or_else(|| plain.clone(), |changed| changed.locate(&plain))
    }

    /// Returns the reading in which only control characters are dropped, if carrying out terminal
    /// sequences swallowed characters that someone could have read (erased by backspace, inside an
    /// operating-system command). `None` if nothing was swallowed: in that case, [`Text::plain`] is
    /// complete.
    pub fn bare(&self) -> Option<&str> {
        self.bare
            .get_or_init(|| {
                self.changed_plain()
                    .filter(|plain| plain.swallowed)
                    .map(|_| unicode::bare(&self.raw))
            })
            .as_deref()
    }

    /// Returns the visible and the hidden content of the string, if it is or contains HTML. `None`
    /// for all other text.
    pub fn page(&self) -> Option<&Page> {
        self.page
            .get_or_init(|| Page::parse(&self.raw, self.raw_facts()).map(Box::new))
            .as_deref()
    }

    /// Like [`Text::page`], but hides content that a person would have to unfold.
    pub fn folded_page(&self) -> Option<Page> {
        Page::parse_folded(&self.raw, self.raw_facts())
    }

    /// Reads the string as text of another kind with tags in it, even if it is a page from its
    /// beginning.
    pub fn fragment_page(&self) -> Option<Page> {
        Page::parse_fragment(&self.raw, self.raw_facts())
    }

    /// Returns what else a model could read in the string: letters in other letters, escapes,
    /// encodings, ciphers. Spans are ranges of [`Text::raw`].
    pub fn readings(&self) -> &[Reading] {
        let readings = self.readings.get_or_init(|| {
            let mut result = readings::read(self.plain(), self.plain_facts());
            for reading in &mut result.all {
                for span in std::iter::once(&mut reading.span).chain(&mut reading.repeats) {
                    *span = self.locate(span.clone());
                }
            }
            result
        });
        &readings.all
    }

    /// Returns the readings made so far whose text occurs more than once.
    pub fn repeated_readings(&self) -> impl Iterator<Item = &Reading> {
        let readings = self.readings.get().map_or(&[][..], |made| &made.all);
        readings
            .iter()
            .filter(|reading| !reading.repeats.is_empty())
    }

    /// Reports whether readings were requested and a bound caused some of them to be left out.
    pub fn is_read_in_part(&self) -> bool {
        self.readings
            .get()
            .is_some_and(|readings| readings.is_incomplete)
    }

    /// Returns the range of [`Text::raw`] that a range of one of its readings was made from. `None`
    /// if the range is an unchanged part of the text, which the other readings contain as well.
    pub fn locate_in(&self, reading: &Reading, range: &Range<usize>) -> Option<Range<usize>> {
        match &reading.map {
            None => Some(reading.span.clone()),
            Some(map) => map.locate(range).map(|plain| self.locate(plain)),
        }
    }

    /// Returns the range of [`Text::raw`] that a range of one of its readings was made from, also if
    /// it is unchanged. `None` if it is only known for the reading as a whole.
    pub fn source_in(&self, reading: &Reading, range: &Range<usize>) -> Option<Range<usize>> {
        let plain = reading.map.as_ref()?.cover(range)?;
        Some(self.locate(plain))
    }

    /// Reports whether a passage consists of samples of attacks in code or in a table. Searches the
    /// text for them on first use.
    pub fn is_attack_sample(&self, span: &Range<usize>) -> bool {
        self.attack_samples
            .get_or_init(|| Box::new(AttackSamples::new(&self.raw)))
            .contains(&self.raw, span)
    }

    /// Adds the names of the readings made so far, other than the raw string. A reading within
    /// another counts as both.
    pub fn collect_reading_names(&self, names: &mut BTreeSet<&'static str>) {
        if self.plain.get().is_some() {
            names.insert("plain");
        }
        if self.bare.get().is_some_and(Option::is_some) {
            names.insert("bare");
        }
        if self.page.get().is_some_and(Option::is_some) {
            names.insert("markup");
        }
        let readings = self.readings.get().map_or(&[][..], |made| &made.all);
        names.extend(
            readings
                .iter()
                .flat_map(|reading| reading.path.split(" → ")),
        );
    }

    fn changed_plain(&self) -> Option<&unicode::Plain> {
        let read_raw = || {
            if self.raw_facts().is_printable_ascii() {
                None
            } else {
                unicode::Plain::from_raw(&self.raw)
            }
        };
        self.plain.get_or_init(read_raw).as_ref()
    }
}

/// Returns the longest prefix of `text` that has at most `bytes` bytes and ends between characters.
pub fn cut(text: &str, bytes: usize) -> &str {
    (0..=bytes.min(text.len()))
        .rev()
        .find_map(|end| text.get(..end))
        .unwrap_or_default()
}

/// Reports whether `text` contains `sign`: the same as `str::contains`, at a third of the cost for
/// short signs.
fn contains(text: &str, sign: &str) -> bool {
    match sign.as_bytes() {
        [byte] => memchr::memchr(*byte, text.as_bytes()).is_some(),
        sign => memchr::memmem::find(text.as_bytes(), sign).is_some(),
    }
}

/// Reports whether a text has readings that leave out what is between its words: see [`REJOINED`].
pub fn is_rejoined(text: &str) -> bool {
    readings::is_rejoined(text)
}

/// Reports whether a character is visible on a page or terminal, and has no other effect there.
pub fn is_visible(c: char) -> bool {
    c == ' ' || !(c.is_control() || c.is_whitespace() || unicode::is_invisible(c))
}
