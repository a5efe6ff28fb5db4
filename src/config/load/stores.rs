//! Loading of `[quarantine]` and `[evidence]`.

use std::time::Duration;

use crate::config::{EvidenceConfig, QuarantineConfig, VaultKey};
use crate::document::Table;

use super::oauth::read_vault_key;
use super::values::Reader;

/// Minimum and maximum size of a store, in bytes.
const BYTES: std::ops::RangeInclusive<u64> = 1 << 20..=1 << 44;

/// Reads `[quarantine]`.
pub(super) fn quarantine(root: &Table<'_>, reader: &Reader<'_>) -> QuarantineConfig {
    let mut config = QuarantineConfig::default();
    let Some(table) = root.table("quarantine") else {
        return config;
    };
    config.enabled = table.boolean("enabled").unwrap_or(config.enabled);
    config.folder = reader.any_path(&table, "folder");
    config.key = read_key(&table, reader).unwrap_or(config.key);
    config.items = table
        .integer("max_items", 1..=100_000)
        .map_or(config.items, |most| {
            usize::try_from(most).unwrap_or(usize::MAX)
        });
    config.bytes = table.integer("max_bytes", BYTES).unwrap_or(config.bytes);
    config.age = max_age(&table).unwrap_or(config.age);
    config.release = table
        .integer("release_seconds", 10..=30 * 86_400)
        .map_or(config.release, Duration::from_secs);
    table.finish();
    config
}

/// Reads `[evidence]`.
pub(super) fn evidence(root: &Table<'_>, reader: &Reader<'_>) -> EvidenceConfig {
    let mut config = EvidenceConfig::default();
    let Some(table) = root.table("evidence") else {
        return config;
    };
    config.folder = reader.any_path(&table, "folder");
    config.key = read_key(&table, reader).unwrap_or(config.key);
    config.bytes = table.integer("max_bytes", BYTES).unwrap_or(config.bytes);
    config.age = max_age(&table).unwrap_or(config.age);
    table.finish();
    config
}

fn read_key(table: &Table<'_>, reader: &Reader<'_>) -> Option<VaultKey> {
    table
        .table("key")
        .and_then(|key| read_vault_key(&key, reader))
}

fn max_age(table: &Table<'_>) -> Option<Duration> {
    table
        .integer("max_age_days", 1..=36_500)
        .map(|days| Duration::from_secs(days * 86_400))
}
