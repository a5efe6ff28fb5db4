//! What a session has seen of secrets: which values came from which server. Only fingerprints of them.

use std::cell::RefCell;
use std::fmt;

use super::prints::Prints;

/// Secrets that the servers of one agent have sent, as the server sees it that a message goes to or comes from.
#[derive(Default)]
pub struct Seen<'s> {
    /// Those that this server sent.
    pub here: Option<&'s Prints>,
    /// Those that others sent, and only others.
    pub elsewhere: Option<&'s Prints>,
    /// What is found in the message at hand.
    found: RefCell<Learnt>,
}

/// Secrets found in a message, for whoever remembers them. Wiped when dropped; `Debug` does not show them.
#[derive(Default)]
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
        write!(f, "Seen({:?}, {:?})", self.here, self.elsewhere)
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
    pub fn new(here: Option<&'s Prints>, elsewhere: Option<&'s Prints>) -> Self {
        Self { here, elsewhere, found: RefCell::default() }
    }

    /// Notes a secret of the message at hand.
    pub(super) fn note(&self, value: &str) {
        let Ok(mut found) = self.found.try_borrow_mut() else { return };
        if found.values.len() < VALUES && value.len() <= VALUE_BYTES && found.values.iter().all(|known| known.as_str() != value) {
            found.values.push(value.to_owned().into());
        }
    }

    /// Whether this server sent the value.
    pub(super) fn came_from_here(&self, value: &str) -> bool {
        self.here.is_some_and(|prints| prints.owner_of(value.as_bytes()).is_some())
    }

    /// What was found.
    pub fn learnt(self) -> Learnt {
        self.found.into_inner()
    }
}
