//! A file that is read: where its parts are, and what is wrong in it.

use std::cell::RefCell;
use std::rc::Rc;

use bytestring::ByteString;

use super::value::Members;
use super::{Fault, PREPARED_TEXTS, Place, Table, prepared};

/// How the spans of a parsed file say where its parts are.
pub(super) enum Positions<'t> {
    /// They are bytes of this text; each of its lines but the first begins at one of these.
    Bytes(&'t str, Vec<usize>),
    /// They are packed places (see [`prepared`]).
    Packed,
}

impl<'t> Positions<'t> {
    pub(super) fn of(text: &'t str) -> Self {
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

    /// The place of the part that begins at `at`.
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

    /// Whether the file is part of the binary, as the build has parsed it.
    pub(super) fn is_built_in(&self) -> bool {
        matches!(self.positions, Positions::Packed)
    }

    /// A text of the file, to be used when that is gone. One of a built-in file is not copied.
    pub(super) fn keep(&self, text: &str) -> ByteString {
        // Its address says where among the texts of the binary it is, if it is one of them.
        let offset = (text.as_ptr() as usize).wrapping_sub(PREPARED_TEXTS.as_ptr() as usize);
        let built_in = PREPARED_TEXTS.get(offset..offset.saturating_add(text.len()));
        built_in.map_or_else(|| ByteString::from(text), ByteString::from_static)
    }

    /// Notes a fault of the part that begins at `at`.
    pub(super) fn fault(&self, at: usize, message: impl Into<String>, hint: Option<String>) {
        let fault = self.place(at).fault(message, hint.as_deref());
        self.faults.borrow_mut().push(fault);
    }

    /// Gives the root table, which begins at `at`, to `read`.
    pub(super) fn read<T>(
        self,
        root: Members<'_>,
        at: usize,
        read: impl FnOnce(&Table<'_>) -> Option<T>,
    ) -> Result<T, Vec<Fault>> {
        let made = read(&Table {
            source: &self,
            members: root,
            at,
            used: RefCell::default(),
        });
        let mut faults = self.faults.into_inner();
        faults.sort_by_key(|fault| (fault.line, fault.column));
        match made {
            Some(made) if faults.is_empty() => Ok(made),
            _ if faults.is_empty() => Err(vec![Fault::of_file(
                &*self.file,
                "the file could not be read",
                None,
            )]),
            _ => Err(faults),
        }
    }
}
