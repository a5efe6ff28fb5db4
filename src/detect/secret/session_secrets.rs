//! The secrets that a session has received, and the servers that sent them. Only fingerprints are
//! stored.

use std::cell::RefCell;
use std::fmt;
use std::ops::Range;

use super::fingerprint::{Fingerprints, VALUE_BYTES as VALUE_MIN};
use super::guarded_values::forms;

/// The owner of a remembered secret is an increasing number times this, plus the number of the
/// server that sent the secret.
pub const UPSTREAMS: usize = 1024;

/// Remembers a value and its encodings for `owner`. Returns `false` if the value was known or is
/// too short.
pub fn remember(prints: &mut Fingerprints, value: &str, owner: usize) -> bool {
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

/// Secrets that the servers of one agent have sent, from the point of view of the server that a
/// message goes to or comes from.
pub struct SessionSecrets<'s> {
    /// The secrets of all servers.
    prints: &'s Fingerprints,
    /// The number of this server.
    from: usize,
    /// Secrets found in the current message.
    found: RefCell<SecretUpdate>,
}

/// Secrets found in a message, to be remembered by the caller. Wiped when dropped; `Debug` does not
/// show them.
#[derive(Clone, Default)]
pub struct SecretUpdate {
    values: Vec<zeroize::Zeroizing<String>>,
}

/// Maximum number of values collected from one message, and maximum length of a value, in bytes.
const VALUES: usize = 64;
const VALUE_BYTES: usize = 1024;

impl fmt::Debug for SecretUpdate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Learnt({})", self.values.len())
    }
}

impl fmt::Debug for SessionSecrets<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Seen({:?})", self.prints)
    }
}

impl SecretUpdate {
    pub fn values(&self) -> impl Iterator<Item = &str> {
        self.values.iter().map(|value| value.as_str())
    }

    /// Reports whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }
}

impl<'s> SessionSecrets<'s> {
    /// Creates a view of the known secrets for one server, with no secrets found yet.
    pub fn new(prints: &'s Fingerprints, from: usize) -> Self {
        Self {
            prints,
            from,
            found: RefCell::default(),
        }
    }

    /// Records a secret of the current message.
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

    /// Reports whether this server sent the value.
    pub(super) fn came_from_here(&self, value: &str) -> bool {
        let mut here = false;
        self.prints.owners(value.as_bytes(), |owner| {
            here |= owner % UPSTREAMS == self.from
        });
        here
    }

    /// Calls `tell` for each place that contains a value that another server sent and this one did
    /// not.
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

    /// Returns the secrets found in the message.
    pub fn learnt(self) -> SecretUpdate {
        self.found.into_inner()
    }
}
