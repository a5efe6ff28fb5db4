//! A file that is being read: the places of its parts, and its faults.

use std::cell::RefCell;
use std::rc::Rc;

use bytestring::ByteString;

use super::value::Members;
use super::{Fault, Place, Table, prepared, prepared_texts};

/// What the positions in a parsed file mean.
pub(super) enum Positions<'t> {
    /// Bytes of this text; each of its lines but the first begins at one of the listed positions.
    Bytes(&'t str, Vec<usize>),
    /// Packed places (see [`prepared`]).
    Packed,
}

impl<'t> Positions<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self::Bytes(
            text,
            text.bytes()
                .enumerate()
                .filter(|(_, b)| *b == b'\n')
                .map(|(at, _)| at + 1)
                .collect(),
        )
    }
}

/// A file, and its faults.
pub(super) struct Source<'t> {
    file: Rc<str>,
    positions: Positions<'t>,
    pub(super) faults: RefCell<Vec<Fault>>,
}

impl<'t> Source<'t> {
    pub(super) fn new(file: &str, positions: Positions<'t>) -> Self {
        Self {
            file: file.into(),
            positions,
            faults: RefCell::default(),
        }
    }

    /// Returns the place of the part that begins at `at`.
    pub(super) fn place(&self, at: usize) -> Place {
        let (line, column) = match &self.positions {
            Positions::Bytes(text, lines) => {
                let before = lines.partition_point(|start| *start <= at);
                let start = before
                    .checked_sub(1)
                    .and_then(|last| lines.get(last))
                    .copied()
                    .unwrap_or(0);
                (
                    before + 1,
                    text.get(start..at.min(text.len()))
                        .unwrap_or_default()
                        .chars()
                        .count()
                        + 1,
                )
            }
            Positions::Packed => prepared::unpacked(at),
        };
        Place {
            file: self.file.clone(),
            line,
            column,
        }
    }

    /// Reports whether the file is part of the binary, as parsed by the build.
    pub(super) fn is_built_in(&self) -> bool {
        matches!(self.positions, Positions::Packed)
    }

    /// Returns a text of the file that outlives the file. A text of a built-in file is not copied.
    pub(super) fn to_byte_string(&self, text: &str) -> ByteString {
        // If the text is one of those in the binary, its address gives its offset among them.
        let offset = (text.as_ptr() as usize).wrapping_sub(prepared_texts().as_ptr() as usize);
        let built_in = prepared_texts().get(offset..offset.saturating_add(text.len()));
        built_in.map_or_else(|| ByteString::from(text), ByteString::from_static)
    }

    /// Reports a fault of the part that begins at `at`.
    pub(super) fn fault(&self, at: usize, message: impl Into<String>, hint: Option<String>) {
        let fault = self.place(at).fault(message, hint.as_deref());
        self.faults.borrow_mut().push(fault);
    }

    /// Passes the root table, which begins at `at`, to `read`.
    pub(super) fn read<T>(
        self,
        root: Members<'_>,
        at: usize,
        read: impl FnOnce(&Table<'_>) -> Option<T>,
    ) -> Result<T, Vec<Fault>> {
        let value = read(&Table {
            source: &self,
            members: root,
            at,
            used_keys: RefCell::default(),
        });
        let mut faults = self.faults.into_inner();
        faults.sort_by_key(|fault| (fault.line, fault.column));
        match value {
            Some(value) if faults.is_empty() => Ok(value),
            _ if faults.is_empty() => Err(vec![Fault::of_file(
                &*self.file,
                "the file could not be read",
                None,
            )]),
            _ => Err(faults),
        }
    }
}
