//! What a session has seen of secrets: which values came from which server. Only fingerprints of them.

use std::cell::RefCell;
use std::fmt;
use std::ops::Range;

use super::own::forms;
use super::prints::{Prints, VALUE_BYTES as VALUE_MIN};

/// The owner of a remembered secret is a number that rises with each, times this, and the number of the server that sent it.
pub const UPSTREAMS: usize = 1024;

/// Remembers a value and its encodings as `owner`'s. `false` if it was known or is too short.
pub fn remember(prints: &mut Prints, value: &str, owner: usize) -> bool {
    let from = owner % UPSTREAMS;
    let mut new = value.len() >= VALUE_MIN;
    prints.owners(value.as_bytes(), |known| new &= known % UPSTREAMS != from);
    if new {
        forms(value, |form| {
            prints.add(form.as_bytes(), owner);
        });
    }
    new
}

/// Secrets that the servers of one agent have sent, as the server sees it that a message goes to or comes from.
pub struct Seen<'s> {
    /// All of them.
    prints: &'s Prints,
    /// The number of this server.
    from: usize,
    /// What is found in the message at hand.
    found: RefCell<Learnt>,
}

/// Secrets found in a message, for whoever remembers them. Wiped when dropped; `Debug` does not show them.
#[derive(Clone, Default)]
pub struct Learnt {
    values: Vec<zeroize::Zeroizing<String>>,
}

/// Most values learnt from one message, and the longest, in bytes.
const VALUES: usize = 64;
const VALUE_BYTES: usize = 1024;

impl fmt::Debug for Learnt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Learnt({})", self.values.len())
    }
}

impl fmt::Debug for Seen<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Seen({:?})", self.prints)
    }
}

impl Learnt {
    /// The values.
    pub fn values(&self) -> impl Iterator<Item = &str> {
        self.values.iter().map(|value| value.as_str())
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }
}

impl<'s> Seen<'s> {
    /// What is known, and room for what is found.
    pub fn new(prints: &'s Prints, from: usize) -> Self {
        Self {
            prints,
            from,
            found: RefCell::default(),
        }
    }

    /// Notes a secret of the message at hand.
    pub(super) fn note(&self, value: &str) {
        let Ok(mut found) = self.found.try_borrow_mut() else {
            return;
        };
        if found.values.len() < VALUES
            && value.len() <= VALUE_BYTES
            && found.values.iter().all(|known| known.as_str() != value)
        {
            found.values.push(value.to_owned().into());
        }
    }

    /// Whether this server sent the value.
    pub(super) fn came_from_here(&self, value: &str) -> bool {
        let mut here = false;
        self.prints.owners(value.as_bytes(), |owner| {
            here |= owner % UPSTREAMS == self.from
        });
        here
    }

    /// Tells each place where a value stands that another server sent, and this one did not.
    pub(super) fn tell_elsewhere(&self, text: &str, mut tell: impl FnMut(Range<usize>)) {
        let mut last = None;
        self.prints.find(text.as_bytes(), |span, _| {
            if last.as_ref() != Some(&span)
                && !text
                    .get(span.clone())
                    .is_some_and(|value| self.came_from_here(value))
            {
                tell(span.clone());
            }
            last = Some(span);
        });
    }

    /// What was found.
    pub fn learnt(self) -> Learnt {
        self.found.into_inner()
    }
}
