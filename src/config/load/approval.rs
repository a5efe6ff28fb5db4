//! Loading of `[approval]`, and `[policy.NAME.approval]`.

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
    let seconds = |key: &str, most: u64, base| table.duration(key, 1..=most, base);
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
    policy.through_agent = approval.flag("through_agent", true);
    if approval.has("scopes") {
        let mut scopes = Vec::new();
        for word in approval.strings("scopes") {
            match Scope::named(&word.value) {
                Some(scope) => scopes.push(scope),
                None => {
                    let hint = "known: `once`, `session`, `call`, `always`";
                    let message = format!("`scopes` contains `{}`", word.value);
                    approval.fault_at(&word.place, message, Some(hint));
                }
            }
        }
        scopes.sort_unstable();
        scopes.dedup();
        if scopes.is_empty() {
            let message = "`scopes` is empty: no approval is possible";
            let hint = "write `scopes = [\"once\"]`";
            approval.fault_at_key("scopes", message, Some(hint));
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
        let message = format!(
            "`policy.{name}.approval` allows `always`, but permanent approvals have no file"
        );
        root.fault_at_key("policy", message, Some(hint));
    }
}
