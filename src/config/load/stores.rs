//! Loading of `[quarantine]` and `[evidence]`.

use crate::config::{EvidenceConfig, QuarantineConfig, VaultKey};
use crate::document::Table;

use super::oauth::read_vault_key;
use super::values::Reader;

/// Minimum and maximum size of a store, in bytes.
const BYTES: std::ops::RangeInclusive<u64> = 1 << 20..=1 << 44;
const MAX_AGE_DAYS: std::ops::RangeInclusive<u64> = 1..=36_500;

/// Reads `[quarantine]`.
pub(super) fn quarantine(root: &Table<'_>, reader: &Reader<'_>) -> QuarantineConfig {
    let mut config = QuarantineConfig::default();
    let Some(table) = root.table("quarantine") else {
        return config;
    };
    config.enabled = table.flag("enabled", config.enabled);
    config.folder = reader.any_path(&table, "folder");
    config.key = read_key(&table, reader).unwrap_or(config.key);
    config.items = table.count("max_items", 1..=100_000, config.items);
    config.bytes = table.integer("max_bytes", BYTES).unwrap_or(config.bytes);
    config.age = table.duration("max_age_days", MAX_AGE_DAYS, config.age);
    config.release = table.duration("release_seconds", 10..=30 * 86_400, config.release);
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
    config.age = table.duration("max_age_days", MAX_AGE_DAYS, config.age);
    table.finish();
    config
}

fn read_key(table: &Table<'_>, reader: &Reader<'_>) -> Option<VaultKey> {
    table
        .table("key")
        .and_then(|key| read_vault_key(&key, reader))
}
