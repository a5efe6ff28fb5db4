//! The rule files that are part of the binary.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use super::{Cases, Rule, RuleId, file};

// `FILES`, the name and text of each file, which `src/build.rs` writes.
include!(concat!(env!("OUT_DIR"), "/rule_files.rs"));

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
    use super::*;

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
