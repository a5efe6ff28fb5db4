//! The table of kinds. To add a kind, add a file in `detect/` and a line here.

use crate::detect::{
    Detector, Kind, Phrases, command, flow, hidden, markup, path, pattern, personal, secret,
    shadow, signal, sql, url,
};
use crate::document::{Table, suggest};

use super::Rule;

/// Generates [`Find`], its parser and the detectors from one line per kind.
macro_rules! kinds {
    ($($variant:ident, $word:literal, $kind:ty;)+) => {
        /// What a rule searches for: one variant per kind.
        #[derive(Debug)]
        pub enum Find {
            $(#[doc = concat!("`find.", $word, "`")] $variant(<$kind as Kind>::Spec),)+
        }

        impl Find {
            /// The words after `find.` in rule files.
            pub const WORDS: &'static [&'static str] = &[$($word),+];

            /// Returns the word of this kind.
            pub fn word(&self) -> &'static str {
                match self { $(Self::$variant(_) => $word,)+ }
            }

            fn read_kind(word: &str, find: &Table<'_>) -> Option<Self> {
                match word {
                    $($word => <$kind>::read(&find.table($word)?).map(Self::$variant),)+
                    _ => None,
                }
            }
        }

        /// Builds one detector for all rules of a kind, for each kind that occurs.
        fn detectors_by_kind<'r>(
            rules: impl Iterator<Item = (usize, &'r Rule)> + Clone,
        ) -> Result<Vec<Box<dyn Detector>>, RuleFaults> {
            let mut made = Vec::new();
            let mut faults = Vec::new();
            $(
                let of_kind: Vec<_> = rules.clone().filter_map(|(index, rule)| match rule.find.as_ref() {
                    Find::$variant(spec) => Some((index, spec)),
                    #[allow(unreachable_patterns, reason = "a table of one kind has no other")]
                    _ => None,
                }).collect();
                if !of_kind.is_empty() {
                    match <$kind>::build(&of_kind) {
                        Ok(detector) => made.push(detector),
                        Err(wrong) => faults.extend(wrong),
                    }
                }
            )+
            if faults.is_empty() { Ok(made) } else { Err(faults) }
        }
    };
}

kinds! {
    Command, "command", command::Command;
    Flow, "flow", flow::Flow;
    Hidden, "hidden", hidden::Hidden;
    Markup, "markup", markup::Markup;
    Path, "path", path::Path;
    Pattern, "pattern", pattern::Pattern;
    Personal, "personal", personal::Personal;
    Secret, "secret", secret::Secret;
    Shadow, "shadow", shadow::Shadow;
    Signal, "signal", signal::Signal;
    Sql, "sql", sql::Sql;
    Url, "url", url::Url;
}

/// Faults of rules, with the index of the rule.
type RuleFaults = Vec<(usize, String)>;

/// Builds the detectors of some rules. Matches identify a rule by the index given with it.
///
/// # Errors
/// The faults, with the index of the rule that each belongs to.
pub(super) fn detectors<'r>(
    rules: impl Iterator<Item = (usize, &'r Rule)> + Clone,
) -> Result<Vec<Box<dyn Detector>>, RuleFaults> {
    let mut patterns = Vec::new();
    let mut signals = Vec::new();
    for (index, rule) in rules.clone() {
        match rule.find.as_ref() {
            Find::Pattern(spec) => patterns.push((index, spec, rule.only.surfaces.as_slice())),
            Find::Signal(spec) => signals.push((index, spec)),
            _ => {}
        }
    }
    let of_kinds = |is_included: fn(&str) -> bool| {
        detectors_by_kind(
            rules
                .clone()
                .filter(move |(_, rule)| is_included(rule.find.word())),
        )
    };
    // In the order of the table, with patterns and signals combined into one detector.
    let mut all_detectors = of_kinds(|word| word < "pattern")?;
    if !patterns.is_empty() || !signals.is_empty() {
        all_detectors.push(Box::new(Phrases::new(patterns, &signals)));
    }
    all_detectors.extend(of_kinds(|word| word > "pattern" && word != "signal")?);
    Ok(all_detectors)
}

impl Find {
    /// Parses the `find` table of a rule, which has exactly one kind.
    pub(super) fn read(rule: &Table<'_>) -> Option<Self> {
        let hint = || {
            format!(
                "one of: {}",
                Self::WORDS
                    .iter()
                    .map(|word| format!("`find.{word}`"))
                    .collect::<Vec<_>>()
                    .join(", ")
            )
        };
        if !rule.has("find") {
            rule.missing("find", &format!("set `find`: {}", hint()));
        }
        let find = rule.table("find")?;
        let keys = find.keys();
        if keys.len() > 1 {
            find.fault(
                "a rule has exactly one kind",
                Some("split it into one rule per kind"),
            );
            return None;
        }
        let Some(key) = keys.first() else {
            find.fault("`find` is empty", Some(&hint()));
            return None;
        };
        if !Self::WORDS.contains(&key.value.as_str()) {
            let hint = suggest(&key.value, Self::WORDS);
            find.fault_at(
                &key.place,
                format!("unknown kind `find.{}`", key.value),
                Some(&hint),
            );
            return None;
        }
        Self::read_kind(&key.value, &find)
    }
}
