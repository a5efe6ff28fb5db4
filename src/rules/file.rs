//! Parses one rule file: TOML to rules, with every fault reported at its position.

use std::ops::Range;
use std::sync::Arc;

use toml::de::DeTable;

use crate::detect::pattern::Regex;
use crate::document::{self, Fault, Located, Table};
use crate::message::Direction;

use super::{
    Action, Case, Cases, Find, Only, ProgramEntry, Rule, RuleId, Severity, content, fragments,
};

/// The newest format of rule files that this version supports.
const FORMAT: u64 = 1;
/// Maximum number of characters in a rule's id: it is a metric label and is part of each refusal.
const ID_CHARACTERS: usize = 64;

/// The content of a rule file.
#[derive(Debug, Default)]
pub(super) struct RuleFile {
    pub(super) rules: Vec<Rule>,
    pub(super) programs: Vec<ProgramEntry>,
}

/// Parses one file. Faults contain `name`.
///
/// # Errors
/// Every fault of the file.
pub(super) fn read(name: &str, text: &str, builtin: bool) -> Result<RuleFile, Vec<Fault>> {
    let edit = |root: &mut DeTable<'_>, note: &mut dyn FnMut(&Range<usize>, String, String)| {
        fragments::expand(root, text)
            .into_iter()
            .for_each(|fault| note(&fault.span, fault.message, fault.hint));
    };
    document::read_edited(name, text, edit, |root| rule_file(root, name, builtin))
}

/// Reads a built-in file without the cases of its rules, which no call needs.
///
/// # Errors
/// Every fault of the file; the tests ensure that there are none.
pub(super) fn read_builtin(name: &str) -> Result<RuleFile, Vec<Fault>> {
    document::read_builtin(name, |root| rule_file(root, name, true))
}

fn rule_file(root: &Table<'_>, name: &str, builtin: bool) -> Option<RuleFile> {
    root.mark_known("define");
    if !root.has("format") {
        root.missing("format", "write `format = 1`");
    }
    if root
        .integer("format", 0..=u64::MAX)
        .is_some_and(|format| format != FORMAT)
    {
        let hint = "write `format = 1`, or use a newer lychgate";
        root.fault_at_key(
            "format",
            format!("this version reads format {FORMAT} of rule files"),
            Some(hint),
        );
    }
    if !root.has("direction") {
        root.missing(
            "direction",
            "write `direction = \"outbound\"` (what agents send) or `\"inbound\"` (what they get)",
        );
    }
    let direction = root.choice(
        "direction",
        &[
            ("outbound", Direction::Outbound),
            ("inbound", Direction::Inbound),
        ],
    );
    let shared = Shared {
        direction,
        packs: packs(root),
        only: Only::read(root),
        enabled: root.boolean("enabled").unwrap_or(true),
        file: name.into(),
        builtin,
    };
    let (tables, programs) = (root.tables("rule"), root.tables("program"));
    if tables.is_empty() && programs.is_empty() {
        root.fault("no rules", Some("start each with `[[rule]]`"));
    }
    if !programs.is_empty() && shared.direction == Some(Direction::Inbound) {
        root.fault_at_key(
            "direction",
            "`[[program]]` tables are about commands that agents send",
            Some("write `direction = \"outbound\"`"),
        );
    }
    let rules: Vec<Option<Rule>> = tables.iter().map(|table| rule(table, &shared)).collect();
    let programs: Vec<Option<ProgramEntry>> = programs
        .iter()
        .map(|table| ProgramEntry::read(table, &shared.file))
        .collect();
    root.finish();
    Some(RuleFile {
        rules: rules.into_iter().collect::<Option<_>>()?,
        programs: programs.into_iter().collect::<Option<_>>()?,
    })
}

/// Properties that the rules of a file share.
struct Shared {
    direction: Option<Direction>,
    packs: Vec<String>,
    only: Option<Only>,
    enabled: bool,
    file: Arc<str>,
    builtin: bool,
}

fn rule(table: &Table<'_>, shared: &Shared) -> Option<Rule> {
    let id = table
        .required("id", "a name of lower-case words joined by hyphens")
        .filter(|id| check_slug(table, "id", id));
    let title = required_text(table, "title", "a short description of what is caught");
    let why = required_text(
        table,
        "why",
        "why it is dangerous, and what would be acceptable; the agent reads it",
    );
    if !table.has("severity") {
        table.missing(
            "severity",
            "one of `info`, `low`, `medium`, `high`, `critical`",
        );
    }
    let severity = table.choice("severity", &Severity::WORDS);
    if !table.has("action") {
        table.missing(
            "action",
            "one of `log`, `strip`, `wrap`, `redact`, `quarantine`, `withhold`, `ask`, `block`",
        );
    }
    let action = table.choice("action", &Action::WORDS);
    if let Some((direction, action)) = shared.direction.zip(action)
        && let Some((cannot, hint)) = action.unsupported_in(direction)
    {
        table.fault_at_key(
            "action",
            format!("`{}` has no effect here: {cannot}", action.name()),
            Some(hint),
        );
    }
    let find = Find::read(table);
    let only = if table.has("only") {
        Only::read(table)
    } else {
        shared.only.clone()
    };
    let unless = regexes(table, "unless");
    let spares_quotes = table.boolean("spares_quotes").unwrap_or(false);
    let written = table.boolean("written").unwrap_or(false);
    let usual_in_documents = table.boolean("usual_in_documents").unwrap_or(false);
    if written && find.as_ref().is_some_and(|find| find.word() != "command") {
        table.fault_at_key(
            "written",
            "only rules with `find.command` judge what is written",
            Some("remove the line; `only = { source_code = true }` is for the other kinds"),
        );
    }
    let has_cases = !shared.builtin || table.has("catches");
    let cases = has_cases.then(|| Cases {
        catches: cases(
            table,
            "catches",
            "texts that the rule must catch; they are tested at every load",
        ),
        spares: cases(
            table,
            "spares",
            "similar texts that it must not catch; they are tested at every load",
        ),
    });
    let references = table
        .strings("references")
        .into_iter()
        .map(|reference| reference.value)
        .collect();
    let former_ids = table
        .strings("was")
        .into_iter()
        .filter(|id| check_slug(table, "was", id))
        .map(|id| RuleId::new(&id.value))
        .collect();
    let packs = shared.packs.iter().cloned().chain(packs(table)).collect();
    let place = table.place();
    let digest = table
        .added_text("digest")
        .or_else(|| table.parsed().map(|rule| content::digest(rule).into()));
    table.finish();
    Some(Rule {
        id: RuleId::new(&id?.value),
        title: title?,
        why: why?,
        severity: severity?,
        action: action?,
        find: Arc::new(find?),
        only: only?,
        unless: unless?,
        spares_quotes,
        written,
        usual_in_documents,
        digest: digest?,
        cases,
        references,
        former_ids,
        direction: shared.direction?,
        packs,
        enabled: shared.enabled,
        file: shared.file.clone(),
        line: place.line,
        builtin: shared.builtin,
    })
}

/// Reads the packs of a file, or the additional packs of one of its rules: `pack` names one,
/// `packs` several, widest first.
fn packs(root: &Table<'_>) -> Vec<String> {
    if root.has("pack") && root.has("packs") {
        root.fault_at_key(
            "pack",
            "`pack` and `packs` cannot be combined",
            Some("name them all in `packs`, the widest first"),
        );
    }
    let single = root.string("pack").into_iter().map(|name| ("pack", name));
    let several = root
        .strings("packs")
        .into_iter()
        .map(|name| ("packs", name));
    single
        .chain(several)
        .filter(|(key, name)| check_slug(root, key, name))
        .map(|(_, name)| name.value)
        .collect()
}

/// Returns whether a name is valid: lower-case letters and digits, with single hyphens between
/// them. Records a fault if it is not.
fn check_slug(table: &Table<'_>, key: &str, name: &Located<String>) -> bool {
    let is_word = |word: &str| {
        !word.is_empty()
            && word
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
    };
    let is_valid = name.value.len() <= ID_CHARACTERS && name.value.split('-').all(is_word);
    if !is_valid {
        let hint = format!(
            "lower-case letters and digits, joined by single hyphens, at most {ID_CHARACTERS} characters"
        );
        table.fault_at(
            &name.place,
            format!("`{}` is not a valid `{key}`", name.value),
            Some(&hint),
        );
    }
    is_valid
}

pub(super) fn required_text(table: &Table<'_>, key: &str, hint: &str) -> Option<String> {
    let text = table.required(key, hint)?;
    if text.value.trim().is_empty() {
        table.fault_at(&text.place, format!("`{key}` is empty"), Some(hint));
    }
    Some(text.value)
}

pub(super) fn cases(table: &Table<'_>, key: &str, hint: &str) -> Vec<Case> {
    if !table.has(key) {
        table.missing(key, hint);
        return Vec::new();
    }
    let cases = table.strings(key);
    if cases.is_empty() {
        table.fault_at_key(key, format!("`{key}` is empty"), Some(hint));
    }
    for case in &cases {
        if case.value.is_empty() {
            table.fault_at(&case.place, format!("an empty text in `{key}`"), Some(hint));
        }
    }
    cases
        .into_iter()
        .map(|case| Case {
            text: case.value,
            line: case.place.line,
        })
        .collect()
}

fn regexes(table: &Table<'_>, key: &str) -> Option<Vec<Regex>> {
    let mut result = Some(Vec::new());
    for source in table.strings(key) {
        match Regex::new(&source.value) {
            Ok(regex) => {
                if let Some(list) = &mut result {
                    list.push(regex);
                }
            }
            Err(message) => {
                table.fault_at(&source.place, message, None);
                result = None;
            }
        }
    }
    result
}
