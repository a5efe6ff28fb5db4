//! The results of one pass over a text. Their memory is reused for the next text on the same
//! thread.

use std::cell::{OnceCell, RefCell};

use super::Class;
use super::folded::Folded;
use super::lower_case::lower_text;
use super::words::Hit;

/// A place where a regex could match, in the folded text. Kept small, because a text may have
/// several for each of its words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Candidate {
    /// Index of the use of the word that was found there.
    pub(super) use_index: u32,
    pub(super) start: u32,
}

/// The candidates in a text, by the class of their rules.
#[derive(Debug, Default)]
pub(super) struct Candidates([Vec<Candidate>; Class::ALL.len()]);

impl Candidates {
    pub(super) fn in_class_mut(&mut self, class: Class) -> &mut Vec<Candidate> {
        let [patterns, anchors, others] = &mut self.0;
        match class {
            Class::Pattern => patterns,
            Class::Anchor => anchors,
            Class::Other => others,
        }
    }

    /// Releases the unused capacity of vectors with many candidates, which may be as large as
    /// several copies of a text full of attacks.
    pub(super) fn release_unused(&mut self) {
        for candidates in &mut self.0 {
            candidates.shrink_to(candidates.len().max(SPARE_CANDIDATES));
        }
    }

    pub(super) fn in_class(&self, class: Class) -> &[Candidate] {
        let [patterns, anchors, others] = &self.0;
        match class {
            Class::Pattern => patterns,
            Class::Anchor => anchors,
            Class::Other => others,
        }
    }
}

/// The results of one pass over a text.
#[derive(Debug)]
pub(in crate::detect) struct Scan<'t> {
    pub(in crate::detect) text: &'t str,
    pub(super) buffers: Buffers,
    /// Whether the text is too long to be searched.
    pub(super) too_long: bool,
    lower_text: OnceCell<Vec<u8>>,
}

/// The memory of a scan.
#[derive(Debug, Default)]
pub(super) struct Buffers {
    pub(super) folded: Folded,
    /// The hits of one block of a text.
    pub(super) hits: Vec<Hit>,
    pub(super) candidates: Candidates,
}

/// Maximum memory that a thread keeps for the next text, for the text and for candidates, in bytes.
const SPARE_BYTES: usize = 256 << 10;
const SPARE_CANDIDATES: usize = SPARE_BYTES / size_of::<Candidate>();

thread_local! {
    static SPARE: RefCell<Option<Buffers>> = const { RefCell::new(None) };
}

impl<'t> Scan<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self {
            text,
            buffers: SPARE.take().unwrap_or_default(),
            too_long: false,
            lower_text: OnceCell::new(),
        }
    }

    /// Returns the memory of the scan, and the text in lower case if it is known.
    pub(super) fn buffers_mut(&mut self) -> (&mut Buffers, Option<&[u8]>) {
        let lower_text = self.lower_text.get().map(Vec::as_slice);
        (&mut self.buffers, lower_text)
    }

    /// Returns the scanned text in lower case.
    pub(super) fn lower_text(&self) -> &[u8] {
        self.lower_text.get_or_init(|| lower_text(self.text))
    }
}

impl Drop for Scan<'_> {
    fn drop(&mut self) {
        let mut buffers = std::mem::take(&mut self.buffers);
        buffers.folded.shrink(SPARE_BYTES);
        buffers.hits.shrink_to(SPARE_BYTES / size_of::<Hit>());
        for candidates in &mut buffers.candidates.0 {
            candidates.clear();
            candidates.shrink_to(SPARE_CANDIDATES);
        }
        SPARE.set(Some(buffers));
    }
}
