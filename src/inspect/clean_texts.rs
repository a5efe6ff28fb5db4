//! Texts in which the judge found nothing, so that it does not judge them again.
//!
//! Agents receive the same texts many times: the lists of tools with each session, files and pages
//! that they read again. A text is recognized by a keyed hash of it and of everything else that its
//! judgement depends on; the text itself is not stored. Scanners of files do the same with files
//! that they found clean.

use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasher, Hash, RandomState};
use std::mem;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use siphasher::sip128::{Hasher128, SipHasher13};

use crate::detect::shadow::KnownTools;
use crate::detect::{Details, InboundDetails, Place};
use crate::message::Role;
use crate::protocol::Context;

/// Shorter values are judged each time, so that numbers and dates do not replace longer texts.
const VALUE_BYTES: usize = 32;

/// The texts found clean last, at most `limit`.
pub struct CleanTexts {
    limit: usize,
    /// Random, so that nobody can construct two texts with the same hash.
    key: (u64, u64),
    texts: Mutex<Generations>,
}

/// The readings in which each text was judged, by the key of the text. When the recent texts fill
/// half of the limit they replace the earlier ones, so that texts in use remain.
#[derive(Default)]
struct Generations {
    recent: HashMap<TextKey, Readings>,
    earlier: HashMap<TextKey, Readings>,
    /// Whether earlier texts were removed.
    overflow: bool,
}

/// Names of the readings that were made of a text.
type Readings = Box<[&'static str]>;

/// The hash of a text and of what its judgement depends on. Other texts have the same one with a
/// probability of 2^-128, since nobody outside knows the key.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct TextKey(u128);

/// Identifies a policy, and is different in a copy of it, which may have other rules.
#[derive(Debug)]
pub(super) struct PolicyId(u64);

impl PolicyId {
    pub(super) fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

impl Clone for PolicyId {
    fn clone(&self) -> Self {
        Self::new()
    }
}

/// How a string may be edited, which decides what is judged in it.
#[derive(Clone, Copy, Hash)]
pub(super) struct Editing {
    pub(super) opaque: bool,
    pub(super) in_block: bool,
}

impl fmt::Debug for CleanTexts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CleanTexts({})", self.limit)
    }
}

impl CleanTexts {
    /// Creates a memory for this number of texts.
    pub fn new(limit: usize) -> Self {
        let random = RandomState::new();
        Self {
            limit,
            key: (random.hash_one(0), random.hash_one(1)),
            texts: Mutex::default(),
        }
    }

    /// Returns the key of a text at a place, or `None` if it is judged each time. Texts that the
    /// tools of one agent return are not recognized for another one, whose response times could
    /// otherwise tell what the first one has received.
    pub(super) fn key(
        &self,
        text: &str,
        place: &Place<'_>,
        editing: Editing,
        policy: &PolicyId,
        context: &Context,
    ) -> Option<TextKey> {
        // Every member is listed, so that a new one cannot be forgotten. The policy determines the
        // scope; secrets and received data are recorded by the judge, and the budget is unspent.
        let Place {
            surface,
            method,
            tool,
            role,
            details,
            scope: _,
            session_secrets: _,
            flow: _,
            budget: _,
            trial,
        } = *place;
        let Details::Inbound(InboundDetails {
            hidden,
            render,
            instruction_file,
            labelled_sample,
            ordered_commands: _,
            known_tools,
        }) = details
        else {
            return None;
        };
        if self.limit == 0 || role == Role::Value && text.len() < VALUE_BYTES {
            return None;
        }
        let agent = (!surface.describes_server())
            .then(|| (&*context.agent.0, context.caller.user.as_deref()));
        let tools = known_tools.map(|tools| self.tools_hash(tools));
        Some(TextKey(self.hash(&(
            (policy.0, agent, surface, method, tool, role),
            (hidden, render, instruction_file, labelled_sample, trial),
            (editing, tools),
            text,
        ))))
    }

    /// Returns the readings of a text if it was found clean.
    pub(super) fn find(&self, key: TextKey) -> Option<Readings> {
        let mut texts = self.texts.lock();
        if let Some(readings) = texts.recent.get(&key) {
            return Some(readings.clone());
        }
        let readings = texts.earlier.remove(&key)?;
        texts.insert(key, readings.clone(), self.limit);
        Some(readings)
    }

    /// Adds a text that was found clean.
    pub(super) fn insert(&self, key: TextKey, readings: impl Iterator<Item = &'static str>) {
        let readings = readings.collect();
        self.texts.lock().insert(key, readings, self.limit);
    }

    /// Reports whether texts were removed for others since this was last called.
    pub(super) fn take_overflow(&self) -> bool {
        self.limit > 0 && mem::take(&mut self.texts.lock().overflow)
    }

    /// Returns a hash of the names that a definition is compared with, in any order.
    fn tools_hash(&self, tools: &KnownTools<'_>) -> (u128, u128, u128) {
        let KnownTools {
            all_servers,
            same_list,
            server,
        } = tools;
        let sum = |hashes: &mut dyn Iterator<Item = u128>| hashes.fold(0, u128::wrapping_add);
        (
            sum(&mut all_servers.tools().map(|tool| self.hash(tool))),
            sum(&mut same_list.tools().map(|tool| self.hash(tool))),
            self.hash(server),
        )
    }

    fn hash(&self, value: &impl Hash) -> u128 {
        let mut hasher = SipHasher13::new_with_keys(self.key.0, self.key.1);
        value.hash(&mut hasher);
        hasher.finish128().as_u128()
    }
}

impl Generations {
    fn insert(&mut self, key: TextKey, readings: Readings, limit: usize) {
        if self.recent.len() >= limit.div_ceil(2) {
            self.overflow |= !self.earlier.is_empty();
            self.earlier = mem::take(&mut self.recent);
        }
        self.recent.insert(key, readings);
    }
}

#[cfg(test)]
mod tests;
