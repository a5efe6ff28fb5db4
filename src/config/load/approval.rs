//! Loading of `[approval]`, and `[policy.NAME.approval]`.

use std::time::Duration;

use crate::config::{ApprovalConfig, PolicyConfig, Scope};
use crate::document::Table;

use super::notify;
use super::values::Reader;

/// Reads `[approval]`.
pub(super) fn approval(root: &Table<'_>, reader: &Reader<'_>) -> ApprovalConfig {
    let base = ApprovalConfig::default();
    let Some(table) = root.table("approval") else {
        return base;
    };
    let seconds = |key: &str, most: u64, base: Duration| {
        table
            .integer(key, 1..=most)
            .map_or(base, Duration::from_secs)
    };
    let config = ApprovalConfig {
        deadline: seconds("deadline_seconds", 86_400, base.deadline),
        wait: seconds("wait_seconds", 3600, base.wait),
        session: seconds("session_seconds", 30 * 86_400, base.session),
        file: reader.any_path(&table, "file"),
        token_file: reader.any_path(&table, "token_file"),
    };
    notify::KEYS.iter().for_each(|key| table.mark_known(key));
    table.finish();
    config
}

/// Reads the approval settings of a policy.
pub(super) fn read_policy_settings(table: &Table<'_>, policy: &mut PolicyConfig) {
    policy.confirm_first_write = table
        .choice("confirm", &[("first-write", true), ("nothing", false)])
        .unwrap_or(false);
    let Some(approval) = table.table("approval") else {
        return;
    };
    policy.through_agent = approval.boolean("through_agent").unwrap_or(true);
    if approval.has("scopes") {
        let mut scopes = Vec::new();
        for word in approval.strings("scopes") {
            match Scope::named(&word.value) {
                Some(scope) => scopes.push(scope),
                None => {
                    let hint = "known: `once`, `session`, `call`, `always`";
                    approval.fault_at(
                        &word.place,
                        format!("`scopes` contains `{}`", word.value),
                        Some(hint),
                    );
                }
            }
        }
        scopes.sort_unstable();
        scopes.dedup();
        if scopes.is_empty() {
            approval.fault_at_key(
                "scopes",
                "`scopes` is empty: no approval is possible",
                Some("write `scopes = [\"once\"]`"),
            );
        }
        policy.scopes = scopes;
    }
    approval.finish();
}

/// Checks that there is a file for permanent approvals if a policy permits them.
pub(super) fn check(
    root: &Table<'_>,
    approval: &ApprovalConfig,
    policies: &std::collections::BTreeMap<String, PolicyConfig>,
) {
    let allows_always = |policy: &PolicyConfig| policy.scopes.contains(&Scope::Always);
    if let (None, Some((name, _))) = (
        &approval.file,
        policies.iter().find(|(_, policy)| allows_always(policy)),
    ) {
        let hint =
            "permanent approvals are stored in a file: set `file = \"PATH\"` under `[approval]`";
        root.fault_at_key(
            "policy",
            format!(
                "`policy.{name}.approval` allows `always`, but permanent approvals have no file"
            ),
            Some(hint),
        );
    }
}
