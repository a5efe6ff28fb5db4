//! Words without a separate allocation for each: the built-in rules have tens of thousands.

use std::borrow::Cow;

use crate::detect::prepared::{Reader, Writer};

/// Words, each preceded by its length, in the format that the build writes.
#[derive(Clone, Debug, Default)]
pub(crate) struct WordList {
    words: Cow<'static, [u8]>,
    /// For each vocabulary that contains all of the words: its number, and the numbers of the words
    /// in it.
    vocabulary_numbers: &'static [u8],
}

/// Lists are equal if their words are, whether or not they have numbers.
impl PartialEq for WordList {
    fn eq(&self, other: &Self) -> bool {
        self.words == other.words
    }
}

impl Eq for WordList {}

impl WordList {
    pub(super) fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// Returns the words in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let mut reader = Reader(&self.words);
        std::iter::from_fn(move || reader.text())
    }

    /// Returns the numbers of the words in a vocabulary, in the same order; `None` if it does not
    /// contain all of them.
    #[allow(dead_code, reason = "for the gateway")]
    pub(super) fn numbers(&self, vocabulary: u32) -> Option<impl Iterator<Item = u32> + use<>> {
        let mut reader = Reader(self.vocabulary_numbers);
        let numbers = std::iter::from_fn(|| reader.number().zip(reader.numbers()))
            .find(|(number, _)| *number == vocabulary)?
            .1;
        Some(numbers.iter().map(|bytes| u32::from_le_bytes(*bytes)))
    }

    /// Returns the vocabularies that contain all of the words.
    #[allow(dead_code, reason = "for the gateway")]
    pub(super) fn vocabularies(&self) -> impl Iterator<Item = u32> + use<> {
        let mut reader = Reader(self.vocabulary_numbers);
        std::iter::from_fn(move || reader.number().zip(reader.numbers())).map(|(number, _)| number)
    }

    /// Writes the words, and their numbers in each of the vocabularies that contain them all.
    #[allow(dead_code, reason = "the build writes what the gateway reads")]
    pub(super) fn write(&self, vocabularies: &[Vocabulary<'_>], out: &mut Writer) {
        out.text(&self.words);
        let mut vocabulary_numbers = Writer::default();
        for (number, number_of) in vocabularies {
            if let Some(numbers) = self.iter().map(number_of).collect::<Option<Vec<u32>>>() {
                vocabulary_numbers.number(*number);
                vocabulary_numbers.numbers(&numbers);
            }
        }
        out.text(&vocabulary_numbers.0);
    }

    /// Reads words that [`WordList::write`] has written.
    pub(super) fn read(record: &mut Reader<'static>) -> Option<Self> {
        Some(Self {
            words: Cow::Borrowed(record.text()?),
            vocabulary_numbers: record.text()?,
        })
    }
}

/// The number of a vocabulary, and a function that returns the number of a word in it.
#[allow(dead_code, reason = "the build writes what the gateway reads")]
pub(crate) type Vocabulary<'v> = (usize, &'v dyn Fn(&[u8]) -> Option<u32>);

impl<W: AsRef<[u8]>> FromIterator<W> for WordList {
    fn from_iter<I: IntoIterator<Item = W>>(words: I) -> Self {
        let mut out = Writer::default();
        words.into_iter().for_each(|word| out.text(word.as_ref()));
        Self {
            words: Cow::Owned(out.0),
            vocabulary_numbers: &[],
        }
    }
}
