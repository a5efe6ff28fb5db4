//! A map of limited size whose entries expire.

use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Maximum number of entries; the one that would expire first is evicted.
const MAX_ENTRIES: usize = 1000;

pub(super) struct TtlMap<T>(HashMap<String, (Instant, T)>);

impl<T> Default for TtlMap<T> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<T> TtlMap<T> {
    pub(super) fn put(&mut self, key: String, value: T, ttl: Duration) {
        let now = Instant::now();
        self.0.retain(|_, (end, _)| *end > now);
        if self.0.len() >= MAX_ENTRIES
            && let Some(first) = self
                .0
                .iter()
                .min_by_key(|(_, (end, _))| *end)
                .map(|(key, _)| key.clone())
        {
            self.0.remove(&first);
        }
        self.0.insert(key, (now + ttl, value));
    }

    pub(super) fn get(&mut self, key: &str) -> Option<&mut T> {
        self.0
            .get_mut(key)
            .filter(|(end, _)| *end > Instant::now())
            .map(|(_, value)| value)
    }

    pub(super) fn find(&mut self, mut predicate: impl FnMut(&T) -> bool) -> Option<&mut T> {
        let now = Instant::now();
        self.0
            .values_mut()
            .find(|(end, value)| *end > now && predicate(value))
            .map(|(_, value)| value)
    }

    pub(super) fn take(&mut self, key: &str) -> Option<T> {
        self.0
            .remove(key)
            .filter(|(end, _)| *end > Instant::now())
            .map(|(_, value)| value)
    }

    pub(super) fn retain(&mut self, mut keep: impl FnMut(&T) -> bool) {
        self.0.retain(|_, (_, value)| keep(value));
    }
}
