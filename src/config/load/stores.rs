//! Loading of `[quarantine]` and `[evidence]`.

use std::time::Duration;

use crate::config::{EvidenceConfig, QuarantineConfig, VaultKey};
use crate::document::Table;

use super::oauth::key_place;
use super::values::Reader;

/// Minimum and maximum size of a store, in bytes.
const BYTES: std::ops::RangeInclusive<u64> = 1 << 20..=1 << 44;

/// Reads `[quarantine]`.
pub(super) fn quarantine(root: &Table<'_>, reader: &Reader<'_>) -> QuarantineConfig {
    let mut made = QuarantineConfig::default();
    let Some(table) = root.table("quarantine") else {
        return made;
    };
    made.enabled = table.boolean("enabled").unwrap_or(made.enabled);
    made.folder = reader.any_path(&table, "folder");
    made.key = key(&table, reader).unwrap_or(made.key);
    made.items = table
        .integer("max_items", 1..=100_000)
        .map_or(made.items, |most| {
            usize::try_from(most).unwrap_or(usize::MAX)
        });
    made.bytes = table.integer("max_bytes", BYTES).unwrap_or(made.bytes);
    made.age = days(&table).unwrap_or(made.age);
    made.release = table
        .integer("release_seconds", 10..=30 * 86_400)
        .map_or(made.release, Duration::from_secs);
    table.finish();
    made
}

/// Reads `[evidence]`.
pub(super) fn evidence(root: &Table<'_>, reader: &Reader<'_>) -> EvidenceConfig {
    let mut made = EvidenceConfig::default();
    let Some(table) = root.table("evidence") else {
        return made;
    };
    made.folder = reader.any_path(&table, "folder");
    made.key = key(&table, reader).unwrap_or(made.key);
    made.bytes = table.integer("max_bytes", BYTES).unwrap_or(made.bytes);
    made.age = days(&table).unwrap_or(made.age);
    table.finish();
    made
}

fn key(table: &Table<'_>, reader: &Reader<'_>) -> Option<VaultKey> {
    table.table("key").and_then(|key| key_place(&key, reader))
}

fn days(table: &Table<'_>) -> Option<Duration> {
    table
        .integer("max_age_days", 1..=36_500)
        .map(|days| Duration::from_secs(days * 86_400))
}
