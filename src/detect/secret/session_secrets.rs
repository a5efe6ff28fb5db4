//! The secrets that a session has received, and the servers that sent them. Only fingerprints are
//! stored.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::ops::Range;

use super::fingerprint::{Fingerprints, VALUE_BYTES as VALUE_MIN};
use super::guarded_values::for_each_form;

/// The owner of a remembered secret is an increasing number times this, plus the number of the
/// server that sent the secret.
pub const UPSTREAMS: usize = 1024;

/// Remembers a value and its encodings for `owner`. Returns `false` if the value was known or is
/// too short.
pub fn remember(fingerprints: &mut Fingerprints, value: &str, owner: usize) -> bool {
    let server = owner % UPSTREAMS;
    let mut is_new = value.len() >= VALUE_MIN;
    fingerprints.owners(value.as_bytes(), |known_owner| {
        is_new &= known_owner % UPSTREAMS != server
    });
    if is_new {
        for_each_form(value, |form| {
            fingerprints.add(form.as_bytes(), owner);
        });
    }
    is_new
}

/// Secrets that the servers of one agent have sent, from the point of view of the server that a
/// message goes to or comes from.
pub struct SessionSecrets<'s> {
    /// The secrets of all servers.
    fingerprints: &'s Fingerprints,
    /// The number of this server.
    server: usize,
    /// Secrets found in the current message.
    update: RefCell<SecretUpdate>,
    /// How often a secret was found in it.
    found: Cell<usize>,
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
        write!(f, "Seen({:?})", self.fingerprints)
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
    pub fn new(fingerprints: &'s Fingerprints, server: usize) -> Self {
        Self {
            fingerprints,
            server,
            update: RefCell::default(),
            found: Cell::default(),
        }
    }

    /// Records a secret of the current message.
    pub(super) fn record(&self, value: &str) {
        self.found.set(self.found.get() + 1);
        let Ok(mut update) = self.update.try_borrow_mut() else {
            return;
        };
        if update.values.len() < VALUES
            && value.len() <= VALUE_BYTES
            && update.values.iter().all(|other| other.as_str() != value)
        {
            update.values.push(value.to_owned().into());
        }
    }

    /// Returns how often a secret was found in the current message, the same one again included.
    pub fn found(&self) -> usize {
        self.found.get()
    }

    /// Reports whether this server sent the value.
    pub(super) fn is_from_this_server(&self, value: &str) -> bool {
        let mut found = false;
        self.fingerprints.owners(value.as_bytes(), |owner| {
            found |= owner % UPSTREAMS == self.server
        });
        found
    }

    /// Calls `report` for each place that contains a value that another server sent and this one
    /// did not.
    pub(super) fn find_from_others(&self, text: &str, mut report: impl FnMut(Range<usize>)) {
        let mut last = None;
        self.fingerprints.find(text.as_bytes(), |span, _| {
            if last.as_ref() != Some(&span)
                && !text
                    .get(span.clone())
                    .is_some_and(|value| self.is_from_this_server(value))
            {
                report(span.clone());
            }
            last = Some(span);
        });
    }

    /// Returns the secrets found in the message.
    pub fn into_update(self) -> SecretUpdate {
        self.update.into_inner()
    }
}
