//! The rule files that are part of the binary.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use super::{Cases, Rule, RuleId, file};

/// Name and text of each file. To add a file, add an entry here.
pub static FILES: &[(&str, &str)] = &[
    (
        "rules/outbound/accounts.toml",
        include_str!("../../rules/outbound/accounts.toml"),
    ),
    (
        "rules/outbound/credentials.toml",
        include_str!("../../rules/outbound/credentials.toml"),
    ),
    (
        "rules/outbound/destruction.toml",
        include_str!("../../rules/outbound/destruction.toml"),
    ),
    (
        "rules/outbound/evasion.toml",
        include_str!("../../rules/outbound/evasion.toml"),
    ),
    (
        "rules/outbound/execution.toml",
        include_str!("../../rules/outbound/execution.toml"),
    ),
    (
        "rules/outbound/ops/clusters.toml",
        include_str!("../../rules/outbound/ops/clusters.toml"),
    ),
    (
        "rules/outbound/ops/cloud.toml",
        include_str!("../../rules/outbound/ops/cloud.toml"),
    ),
    (
        "rules/outbound/ops/containers.toml",
        include_str!("../../rules/outbound/ops/containers.toml"),
    ),
    (
        "rules/outbound/ops/databases.toml",
        include_str!("../../rules/outbound/ops/databases.toml"),
    ),
    (
        "rules/outbound/ops/git.toml",
        include_str!("../../rules/outbound/ops/git.toml"),
    ),
    (
        "rules/outbound/ops/packages.toml",
        include_str!("../../rules/outbound/ops/packages.toml"),
    ),
    (
        "rules/outbound/ops/services.toml",
        include_str!("../../rules/outbound/ops/services.toml"),
    ),
    (
        "rules/outbound/ops/users.toml",
        include_str!("../../rules/outbound/ops/users.toml"),
    ),
    (
        "rules/outbound/persistence.toml",
        include_str!("../../rules/outbound/persistence.toml"),
    ),
    (
        "rules/outbound/processes.toml",
        include_str!("../../rules/outbound/processes.toml"),
    ),
    (
        "rules/outbound/flow.toml",
        include_str!("../../rules/outbound/flow.toml"),
    ),
    (
        "rules/outbound/paths.toml",
        include_str!("../../rules/outbound/paths.toml"),
    ),
    (
        "rules/outbound/self-protection.toml",
        include_str!("../../rules/outbound/self-protection.toml"),
    ),
    (
        "rules/outbound/sensitive-files.toml",
        include_str!("../../rules/outbound/sensitive-files.toml"),
    ),
    (
        "rules/outbound/source-code.toml",
        include_str!("../../rules/outbound/source-code.toml"),
    ),
    (
        "rules/outbound/urls.toml",
        include_str!("../../rules/outbound/urls.toml"),
    ),
    (
        "rules/outbound/reading.toml",
        include_str!("../../rules/outbound/reading.toml"),
    ),
    (
        "rules/outbound/disks.toml",
        include_str!("../../rules/outbound/disks.toml"),
    ),
    (
        "rules/outbound/exfiltration.toml",
        include_str!("../../rules/outbound/exfiltration.toml"),
    ),
    (
        "rules/outbound/remote-shells.toml",
        include_str!("../../rules/outbound/remote-shells.toml"),
    ),
    (
        "rules/outbound/sql.toml",
        include_str!("../../rules/outbound/sql.toml"),
    ),
    (
        "rules/outbound/wholesale.toml",
        include_str!("../../rules/outbound/wholesale.toml"),
    ),
    (
        "rules/outbound/windows.toml",
        include_str!("../../rules/outbound/windows.toml"),
    ),
    (
        "rules/outbound/windows-run.toml",
        include_str!("../../rules/outbound/windows-run.toml"),
    ),
    (
        "rules/outbound/secrets/general.toml",
        include_str!("../../rules/outbound/secrets/general.toml"),
    ),
    (
        "rules/outbound/secrets/ai.toml",
        include_str!("../../rules/outbound/secrets/ai.toml"),
    ),
    (
        "rules/outbound/secrets/cloud.toml",
        include_str!("../../rules/outbound/secrets/cloud.toml"),
    ),
    (
        "rules/outbound/secrets/messaging.toml",
        include_str!("../../rules/outbound/secrets/messaging.toml"),
    ),
    (
        "rules/outbound/secrets/operations.toml",
        include_str!("../../rules/outbound/secrets/operations.toml"),
    ),
    (
        "rules/outbound/secrets/payment.toml",
        include_str!("../../rules/outbound/secrets/payment.toml"),
    ),
    (
        "rules/outbound/secrets/services.toml",
        include_str!("../../rules/outbound/secrets/services.toml"),
    ),
    (
        "rules/outbound/secrets/source.toml",
        include_str!("../../rules/outbound/secrets/source.toml"),
    ),
    (
        "rules/inbound/hidden-text.toml",
        include_str!("../../rules/inbound/hidden-text.toml"),
    ),
    (
        "rules/inbound/markup.toml",
        include_str!("../../rules/inbound/markup.toml"),
    ),
    (
        "rules/inbound/gate-voice.toml",
        include_str!("../../rules/inbound/gate-voice.toml"),
    ),
    (
        "rules/inbound/injection.toml",
        include_str!("../../rules/inbound/injection.toml"),
    ),
    (
        "rules/inbound/orders.toml",
        include_str!("../../rules/inbound/orders.toml"),
    ),
    (
        "rules/inbound/jailbreak.toml",
        include_str!("../../rules/inbound/jailbreak.toml"),
    ),
    (
        "rules/inbound/dictation.toml",
        include_str!("../../rules/inbound/dictation.toml"),
    ),
    (
        "rules/inbound/speakers.toml",
        include_str!("../../rules/inbound/speakers.toml"),
    ),
    (
        "rules/inbound/commands.toml",
        include_str!("../../rules/inbound/commands.toml"),
    ),
    (
        "rules/inbound/stronger-tools.toml",
        include_str!("../../rules/inbound/stronger-tools.toml"),
    ),
    (
        "rules/inbound/instruction-files.toml",
        include_str!("../../rules/inbound/instruction-files.toml"),
    ),
    (
        "rules/inbound/languages/africa.toml",
        include_str!("../../rules/inbound/languages/africa.toml"),
    ),
    (
        "rules/inbound/languages/answers.toml",
        include_str!("../../rules/inbound/languages/answers.toml"),
    ),
    (
        "rules/inbound/languages/exclusive.toml",
        include_str!("../../rules/inbound/languages/exclusive.toml"),
    ),
    (
        "rules/inbound/languages/limits.toml",
        include_str!("../../rules/inbound/languages/limits.toml"),
    ),
    (
        "rules/inbound/languages/override.toml",
        include_str!("../../rules/inbound/languages/override.toml"),
    ),
    (
        "rules/inbound/languages/prompts.toml",
        include_str!("../../rules/inbound/languages/prompts.toml"),
    ),
    (
        "rules/inbound/languages/repeats.toml",
        include_str!("../../rules/inbound/languages/repeats.toml"),
    ),
    (
        "rules/inbound/languages/silence.toml",
        include_str!("../../rules/inbound/languages/silence.toml"),
    ),
    (
        "rules/inbound/languages/addressed.toml",
        include_str!("../../rules/inbound/languages/addressed.toml"),
    ),
    (
        "rules/inbound/languages/dictated.toml",
        include_str!("../../rules/inbound/languages/dictated.toml"),
    ),
    (
        "rules/inbound/languages/kept-quiet.toml",
        include_str!("../../rules/inbound/languages/kept-quiet.toml"),
    ),
    (
        "rules/inbound/languages/rules-void.toml",
        include_str!("../../rules/inbound/languages/rules-void.toml"),
    ),
    (
        "rules/inbound/languages/sent-away.toml",
        include_str!("../../rules/inbound/languages/sent-away.toml"),
    ),
    (
        "rules/inbound/languages/tools-called.toml",
        include_str!("../../rules/inbound/languages/tools-called.toml"),
    ),
    (
        "rules/inbound/languages/unasked.toml",
        include_str!("../../rules/inbound/languages/unasked.toml"),
    ),
    (
        "rules/inbound/languages/verbatim.toml",
        include_str!("../../rules/inbound/languages/verbatim.toml"),
    ),
    (
        "rules/inbound/languages/verdicts.toml",
        include_str!("../../rules/inbound/languages/verdicts.toml"),
    ),
    (
        "rules/inbound/languages/asia.toml",
        include_str!("../../rules/inbound/languages/asia.toml"),
    ),
    (
        "rules/inbound/languages/east.toml",
        include_str!("../../rules/inbound/languages/east.toml"),
    ),
    (
        "rules/inbound/languages/latin.toml",
        include_str!("../../rules/inbound/languages/latin.toml"),
    ),
    (
        "rules/inbound/languages/near-east.toml",
        include_str!("../../rules/inbound/languages/near-east.toml"),
    ),
    (
        "rules/inbound/languages/north.toml",
        include_str!("../../rules/inbound/languages/north.toml"),
    ),
    (
        "rules/inbound/languages/west.toml",
        include_str!("../../rules/inbound/languages/west.toml"),
    ),
    (
        "rules/inbound/languages/notes.toml",
        include_str!("../../rules/inbound/languages/notes.toml"),
    ),
    (
        "rules/inbound/definitions.toml",
        include_str!("../../rules/inbound/definitions.toml"),
    ),
    (
        "rules/inbound/signals/bidden.toml",
        include_str!("../../rules/inbound/signals/bidden.toml"),
    ),
    (
        "rules/inbound/signals/concealment.toml",
        include_str!("../../rules/inbound/signals/concealment.toml"),
    ),
    (
        "rules/inbound/signals/wording.toml",
        include_str!("../../rules/inbound/signals/wording.toml"),
    ),
    (
        "rules/inbound/signals/guidance.toml",
        include_str!("../../rules/inbound/signals/guidance.toml"),
    ),
    (
        "rules/inbound/signals/orders-in-passing.toml",
        include_str!("../../rules/inbound/signals/orders-in-passing.toml"),
    ),
    (
        "rules/inbound/signals/quoted-by-texts.toml",
        include_str!("../../rules/inbound/signals/quoted-by-texts.toml"),
    ),
    (
        "rules/inbound/signals/readers.toml",
        include_str!("../../rules/inbound/signals/readers.toml"),
    ),
    (
        "rules/inbound/signals/steering.toml",
        include_str!("../../rules/inbound/signals/steering.toml"),
    ),
    (
        "rules/inbound/signals/orders.toml",
        include_str!("../../rules/inbound/signals/orders.toml"),
    ),
    (
        "rules/inbound/signals/ordered-commands.toml",
        include_str!("../../rules/inbound/signals/ordered-commands.toml"),
    ),
    (
        "rules/inbound/signals/exclusive.toml",
        include_str!("../../rules/inbound/signals/exclusive.toml"),
    ),
    (
        "rules/inbound/signals/asked.toml",
        include_str!("../../rules/inbound/signals/asked.toml"),
    ),
    (
        "rules/inbound/signals/customs.toml",
        include_str!("../../rules/inbound/signals/customs.toml"),
    ),
    (
        "rules/inbound/signals/dictated.toml",
        include_str!("../../rules/inbound/signals/dictated.toml"),
    ),
    (
        "rules/inbound/signals/handed-on.toml",
        include_str!("../../rules/inbound/signals/handed-on.toml"),
    ),
    (
        "rules/inbound/signals/limits.toml",
        include_str!("../../rules/inbound/signals/limits.toml"),
    ),
    (
        "rules/inbound/signals/machine-address.toml",
        include_str!("../../rules/inbound/signals/machine-address.toml"),
    ),
    (
        "rules/inbound/signals/machine-jobs.toml",
        include_str!("../../rules/inbound/signals/machine-jobs.toml"),
    ),
    (
        "rules/inbound/signals/machine-roles.toml",
        include_str!("../../rules/inbound/signals/machine-roles.toml"),
    ),
    (
        "rules/inbound/signals/required.toml",
        include_str!("../../rules/inbound/signals/required.toml"),
    ),
    (
        "rules/inbound/signals/speakers.toml",
        include_str!("../../rules/inbound/signals/speakers.toml"),
    ),
    (
        "rules/inbound/signals/clear.toml",
        include_str!("../../rules/inbound/signals/clear.toml"),
    ),
    (
        "rules/inbound/signals/languages.toml",
        include_str!("../../rules/inbound/signals/languages.toml"),
    ),
    (
        "rules/inbound/signals/languages-intents.toml",
        include_str!("../../rules/inbound/signals/languages-intents.toml"),
    ),
    (
        "rules/inbound/signals/languages-machine.toml",
        include_str!("../../rules/inbound/signals/languages-machine.toml"),
    ),
    (
        "rules/inbound/signals/languages-orders.toml",
        include_str!("../../rules/inbound/signals/languages-orders.toml"),
    ),
    (
        "rules/inbound/signals/languages-readers.toml",
        include_str!("../../rules/inbound/signals/languages-readers.toml"),
    ),
    (
        "rules/inbound/signals/languages-answers.toml",
        include_str!("../../rules/inbound/signals/languages-answers.toml"),
    ),
    (
        "rules/inbound/signals/pretexts.toml",
        include_str!("../../rules/inbound/signals/pretexts.toml"),
    ),
    (
        "rules/inbound/signals/wanted-words.toml",
        include_str!("../../rules/inbound/signals/wanted-words.toml"),
    ),
    (
        "rules/inbound/signals/sums.toml",
        include_str!("../../rules/inbound/signals/sums.toml"),
    ),
    (
        "rules/inbound/signals/plain-words.toml",
        include_str!("../../rules/inbound/signals/plain-words.toml"),
    ),
    (
        "rules/inbound/redact/emails.toml",
        include_str!("../../rules/inbound/redact/emails.toml"),
    ),
    (
        "rules/inbound/redact/phones.toml",
        include_str!("../../rules/inbound/redact/phones.toml"),
    ),
    (
        "rules/inbound/redact/cards.toml",
        include_str!("../../rules/inbound/redact/cards.toml"),
    ),
    (
        "rules/inbound/redact/ibans.toml",
        include_str!("../../rules/inbound/redact/ibans.toml"),
    ),
    (
        "rules/inbound/redact/ssns.toml",
        include_str!("../../rules/inbound/redact/ssns.toml"),
    ),
    (
        "rules/inbound/shadowing.toml",
        include_str!("../../rules/inbound/shadowing.toml"),
    ),
    (
        "rules/inbound/languages.toml",
        include_str!("../../rules/inbound/languages.toml"),
    ),
];

/// The cases of each rule, by file and rule id.
static CASES: LazyLock<HashMap<(Arc<str>, RuleId), Cases>> = LazyLock::new(|| {
    let rules = FILES
        .iter()
        .filter_map(|(name, text)| file::read(name, text, true).ok())
        .flat_map(|file| file.rules);
    rules
        .filter_map(|rule| Some(((rule.file, rule.id), rule.cases?)))
        .collect()
});

/// Returns the cases of a built-in rule.
pub(super) fn cases(rule: &Rule) -> &'static Cases {
    static NONE: Cases = Cases {
        catches: Vec::new(),
        spares: Vec::new(),
    };
    CASES
        .get(&(rule.file.clone(), rule.id.clone()))
        .unwrap_or(&NONE)
}

/// The guide to writing rules.
pub const README: &str = include_str!("../../rules/README.md");

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::*;
    use crate::detect::command::PROGRAM_FILES;

    fn files_in(folder: &Path) -> Vec<PathBuf> {
        let paths = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path());
        paths
            .flat_map(|path| {
                if path.is_dir() {
                    files_in(&path)
                } else {
                    vec![path]
                }
            })
            .collect()
    }

    #[test]
    fn no_file_is_left_out() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut on_disk: Vec<String> = files_in(&root.join("rules"))
            .iter()
            .filter(|path| path.extension().is_some_and(|end| end == "toml"))
            .map(|path| {
                path.strip_prefix(root)
                    .unwrap()
                    .to_str()
                    .unwrap()
                    .to_owned()
            })
            .collect();
        let mut built_in: Vec<&str> = FILES
            .iter()
            .chain(&PROGRAM_FILES)
            .map(|(name, _)| *name)
            .collect();
        on_disk.sort();
        built_in.sort_unstable();
        assert_eq!(built_in, on_disk);
    }

    #[test]
    fn cases_are_left_out_and_found_again() {
        let rules: Vec<Rule> = FILES
            .iter()
            .flat_map(|(name, text)| file::read(name, text, true).unwrap().rules)
            .collect();
        let without: Vec<Rule> = FILES
            .iter()
            .flat_map(|(name, _)| file::read_builtin(name).unwrap().rules)
            .collect();
        assert_eq!(rules.len(), without.len());
        for (rule, without) in rules.iter().zip(&without) {
            let id = &rule.id;
            assert!(rule.cases.is_some() && without.cases.is_none(), "`{id}`");
            let (cases, found) = (rule.cases(), without.cases());
            assert!(
                !found.catches.is_empty() && !found.spares.is_empty(),
                "`{id}`"
            );
            assert_eq!(
                (id, &rule.file, rule.line),
                (&without.id, &without.file, without.line)
            );
            assert_eq!(rule.digest, without.digest, "`{id}`");
            let [find, find_without] = [rule, without].map(|rule| format!("{:?}", rule.find));
            assert_eq!(find, find_without, "`{id}`");
            assert_eq!(cases.catches, found.catches);
            assert_eq!(cases.spares, found.spares);
        }
    }
}
