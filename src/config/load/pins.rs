//! Loading of `[pins]`, and `[policy.NAME.pins]`.

use crate::config::{ChangeAction, ChangeClass, ChangesConfig, PinsConfig};
use crate::document::Table;

use super::values::Reader;

/// Reads `[pins]`.
pub(super) fn pins(root: &Table<'_>, reader: &Reader<'_>) -> PinsConfig {
    let Some(table) = root.table("pins") else {
        return PinsConfig::default();
    };
    let mut made = PinsConfig {
        file: reader.any_path(&table, "file"),
        ..PinsConfig::default()
    };
    made.persistent = table.boolean("persistent").unwrap_or(made.persistent);
    if made.file.is_some() && !made.persistent {
        table.fault_of(
            "persistent",
            "`persistent = false` contradicts `file`",
            Some("remove one of the two"),
        );
    }
    table.finish();
    made
}

/// Reads the actions of a policy for changed definitions.
pub(super) fn changes(policy: &Table<'_>) -> ChangesConfig {
    let mut made = ChangesConfig::default();
    let Some(table) = policy.table("pins") else {
        return made;
    };
    // A definition that the server no longer lists cannot be kept in its list.
    for (word, class) in ChangeClass::WORDS
        .iter()
        .filter(|(_, class)| *class != ChangeClass::Gone)
    {
        if let Some(action) = table.choice(word, &ChangeAction::WORDS) {
            made.set(*class, action);
        }
    }
    table.finish();
    made
}
