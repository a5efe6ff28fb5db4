//! One string, and the other ways to read it. Each reading is made once, and only when asked for.

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
pub use glob::glob_fits;
pub use html::Page;
pub use quoted_mention::QuotedMentions;
pub use readings::{DECODED_BYTES, REJOINED, Reading, Suspicion, looks_like};
pub use skeleton::skeleton;
pub use visible::{strip_invisible, visible};

/// A string under judgement.
pub struct Text<'m> {
    raw: Cow<'m, str>,
    raw_facts: OnceCell<Facts>,
    /// Of the plain reading where it differs from the raw one.
    plain_facts: OnceCell<Facts>,
    /// `None` inside: nothing to change, so the plain reading is the raw one.
    plain: OnceCell<Option<unicode::Plain>>,
    bare: OnceCell<Option<String>>,
    page: OnceCell<Option<Box<Page>>>,
    readings: OnceCell<readings::Readings>,
    attack_samples: OnceCell<Box<AttackSamples>>,
}

impl<'m> Text<'m> {
    /// Wraps a string as the message has it.
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

    /// As the message has it, unescaped.
    pub fn raw(&self) -> &str {
        &self.raw
    }

    /// What [`Text::raw`] contains.
    pub fn raw_facts(&self) -> &Facts {
        self.raw_facts.get_or_init(|| Facts::of(&self.raw))
    }

    /// What [`Text::plain`] contains.
    pub fn plain_facts(&self) -> &Facts {
        match self.changed_plain() {
            Some(made) => self.plain_facts.get_or_init(|| Facts::of(&made.text)),
            None => self.raw_facts(),
        }
    }

    /// As a reader sees it: compatibility forms folded character by character (NFKC, UAX #15), terminal
    /// sequences carried out (ECMA-48), a lone carriage return as a line's end, invisible and control
    /// characters gone, tag characters as the letters they stand for. The raw string where that changes nothing.
    pub fn plain(&self) -> &str {
        self.changed_plain().map_or(&self.raw, |plain| &plain.text)
    }

    /// The range of [`Text::raw`] that a range of [`Text::plain`] stands for, whole characters of both.
    pub fn locate(&self, plain: Range<usize>) -> Range<usize> {
        self.changed_plain()
            .map_or_else(|| plain.clone(), |made| made.locate(&plain))
    }

    /// Where carrying out terminal sequences swallowed characters that someone could have read (erased by
    /// backspace, inside an operating-system command): the reading in which only control characters are dropped.
    /// `None` where nothing was swallowed: then [`Text::plain`] says it all.
    pub fn bare(&self) -> Option<&str> {
        self.bare
            .get_or_init(|| {
                self.changed_plain()
                    .filter(|made| made.swallowed)
                    .map(|_| unicode::bare(&self.raw))
            })
            .as_deref()
    }

    /// What a person would see of it and what not, where it is HTML or holds some. `None` for all other text.
    pub fn page(&self) -> Option<&Page> {
        self.page
            .get_or_init(|| Page::of(&self.raw, self.raw_facts()).map(Box::new))
            .as_deref()
    }

    /// The same as [`Text::page`] with what a person would have to unfold among the hidden.
    pub fn folded_page(&self) -> Option<Page> {
        Page::folded(&self.raw, self.raw_facts())
    }

    /// The text as one of another kind with tags in it, even if it is a page from its beginning.
    pub fn parts(&self) -> Option<Page> {
        Page::parts(&self.raw, self.raw_facts())
    }

    /// What else a model could read in it: letters in other letters, escapes, encodings, ciphers. Spans are of
    /// [`Text::raw`].
    pub fn readings(&self) -> &[Reading] {
        let made = self.readings.get_or_init(|| {
            let mut made = readings::read(self.plain(), self.plain_facts());
            for reading in &mut made.all {
                for span in std::iter::once(&mut reading.span).chain(&mut reading.repeats) {
                    *span = self.locate(span.clone());
                }
            }
            made
        });
        &made.all
    }

    /// The existing readings whose text occurs more than once.
    pub fn repeated_readings(&self) -> impl Iterator<Item = &Reading> {
        let made = self.readings.get().map_or(&[][..], |made| &made.all);
        made.iter().filter(|reading| !reading.repeats.is_empty())
    }

    /// Whether readings were asked for and a bound left some of them unmade.
    pub fn is_read_in_part(&self) -> bool {
        self.readings.get().is_some_and(|made| made.left_out)
    }

    /// The range of [`Text::raw`] that a range of one of its readings was made from. `None` where the range is a part of the
    /// text as it is, which the other readings show as well.
    pub fn locate_in(&self, reading: &Reading, range: &Range<usize>) -> Option<Range<usize>> {
        match &reading.map {
            None => Some(reading.span.clone()),
            Some(map) => map.locate(range).map(|plain| self.locate(plain)),
        }
    }

    /// Whether a passage consists of samples of attacks in code or in a table. Searches the text for them when first asked.
    pub fn is_attack_sample(&self, span: &Range<usize>) -> bool {
        self.attack_samples
            .get_or_init(|| Box::new(AttackSamples::of(&self.raw)))
            .contains(&self.raw, span)
    }

    /// Adds the names of what was read of it so far, besides how it came. A reading within another counts as both.
    pub fn names_of_readings(&self, names: &mut BTreeSet<&'static str>) {
        if self.plain.get().is_some() {
            names.insert("plain");
        }
        if self.bare.get().is_some_and(Option::is_some) {
            names.insert("bare");
        }
        if self.page.get().is_some_and(Option::is_some) {
            names.insert("markup");
        }
        let made = self.readings.get().map_or(&[][..], |made| &made.all);
        names.extend(made.iter().flat_map(|reading| reading.path.split(" → ")));
    }

    fn changed_plain(&self) -> Option<&unicode::Plain> {
        let made = || {
            if self.raw_facts().is_printable_ascii() {
                None
            } else {
                unicode::Plain::of(&self.raw)
            }
        };
        self.plain.get_or_init(made).as_ref()
    }
}

/// The longest prefix of `text` that has at most `bytes` bytes and ends between characters.
pub fn cut(text: &str, bytes: usize) -> &str {
    (0..=bytes.min(text.len()))
        .rev()
        .find_map(|end| text.get(..end))
        .unwrap_or_default()
}

/// Whether `sign` stands in `text`: what `str::contains` says, at a third of the price for short signs.
fn holds(text: &str, sign: &str) -> bool {
    match sign.as_bytes() {
        [one] => memchr::memchr(*one, text.as_bytes()).is_some(),
        sign => memchr::memmem::find(text.as_bytes(), sign).is_some(),
    }
}

/// Whether a text has readings that leave out what stands between its words: see [`REJOINED`].
pub fn is_rejoined(text: &str) -> bool {
    readings::is_rejoined(text)
}

/// Whether a character shows itself on a page or terminal, and does nothing else there.
pub fn shows(c: char) -> bool {
    c == ' ' || !(c.is_control() || c.is_whitespace() || unicode::invisible(c))
}
