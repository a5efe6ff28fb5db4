//! Loading of `[pins]`, and `[policy.NAME.pins]`.

use crate::config::{ChangeAction, ChangeClass, ChangesConfig, PinsConfig};
use crate::document::Table;

use super::values::Reader;

/// Reads `[pins]`.
pub(super) fn pins(root: &Table<'_>, reader: &Reader<'_>) -> PinsConfig {
    let Some(table) = root.table("pins") else {
        return PinsConfig::default();
    };
    let mut config = PinsConfig {
        file: reader.any_path(&table, "file"),
        ..PinsConfig::default()
    };
    config.persistent = table.flag("persistent", config.persistent);
    if config.file.is_some() && !config.persistent {
        let message = "`persistent = false` contradicts `file`";
        let hint = "remove one of the two";
        table.fault_at_key("persistent", message, Some(hint));
    }
    table.finish();
    config
}

/// Reads the actions of a policy for changed definitions.
pub(super) fn changes(policy: &Table<'_>) -> ChangesConfig {
    let mut config = ChangesConfig::default();
    let Some(table) = policy.table("pins") else {
        return config;
    };
    // A definition that the server no longer lists cannot be kept in its list.
    for (word, class) in ChangeClass::WORDS
        .iter()
        .filter(|(_, class)| *class != ChangeClass::Gone)
    {
        if let Some(action) = table.choice(word, &ChangeAction::WORDS) {
            config.set(*class, action);
        }
    }
    table.finish();
    config
}
