//! Judges a server's definitions like the gate does, with the same rules and pins.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::ask::{LISTS, ReplyPage};
use crate::config::{ChangeAction, ChangeClass, Limits};
use crate::detect::shadow::Names;
use crate::inspect::definitions::{CHANGED, Kind, Pins};
use crate::inspect::{Finding, InspectContext, Policy};
use crate::message::{Direction, Value};
use crate::protocol::AuditId;
use crate::rules::Severity;

/// Something that a server offers.
pub(super) struct Item {
    pub(super) kind: Kind,
    pub(super) name: String,
    /// Its findings, the most severe first.
    pub(super) findings: Vec<ScanFinding>,
}

/// A finding in an item.
pub(super) struct ScanFinding {
    pub(super) rule: String,
    pub(super) title: String,
    pub(super) why: String,
    pub(super) severity: Severity,
    /// What the gate would do: the action of a rule, or the policy's reaction to a change.
    pub(super) verdict: &'static str,
    /// Whether the gate would do more than log it.
    pub(super) acts: bool,
    /// The place within the item, as a JSON pointer.
    pub(super) place: String,
    /// The reading in which it was found.
    pub(super) reading: String,
    /// References for further reading.
    pub(super) references: Vec<String>,
}

/// Returns the names of a server's tools, which are needed to judge other servers.
pub(super) fn tools(pages: &[ReplyPage]) -> Vec<String> {
    let lists = pages.iter().filter(|page| page.method == "tools/list");
    lists
        .flat_map(|page| entries(page).into_iter().map(|(_, name, _)| name))
        .collect()
}

/// Returns the findings in all definitions of a server.
pub(super) fn judge(
    policy: &Policy,
    pages: &[ReplyPage],
    pins: &Arc<Pins>,
    names: (Arc<Names>, Arc<str>),
    limits: &Limits,
) -> Vec<Item> {
    let mut items: Vec<Item> = Vec::new();
    let mut index_of: BTreeMap<(Kind, String), usize> = BTreeMap::new();
    let inspect_context = InspectContext {
        pins: Some(pins.clone()),
        names: Some(names),
        ..InspectContext::default()
    };
    for page in pages {
        let inspection = policy.inspect(
            Direction::Inbound,
            &page.message,
            &page.context,
            AuditId::generate(),
            &inspect_context,
        );
        let entries = entries(page);
        let mut indices: Vec<usize> = Vec::new();
        for (kind, name, _) in &entries {
            let next = items.len();
            let index = *index_of.entry((*kind, name.clone())).or_insert(next);
            if index == next {
                items.push(Item {
                    kind: *kind,
                    name: name.clone(),
                    findings: Vec::new(),
                });
            }
            indices.push(index);
        }
        for finding in &inspection.findings {
            let (entry, place) = entries
                .iter()
                .position(|(_, _, prefix)| {
                    finding
                        .at
                        .strip_prefix(prefix.as_str())
                        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
                })
                .map_or((None, finding.at.as_str()), |entry| {
                    (
                        Some(entry),
                        finding
                            .at
                            .get(entries.get(entry).map_or(0, |e| e.2.len())..)
                            .unwrap_or_default(),
                    )
                });
            // Findings in members next to the list belong to the server itself.
            let index = entry
                .and_then(|entry| indices.get(entry))
                .copied()
                .unwrap_or(0);
            if let Some(item) = items.get_mut(index) {
                item.findings.push(scan_finding(policy, finding, place));
            }
        }
        changes(policy, page, pins, limits, &mut items, &index_of);
    }
    for item in &mut items {
        item.findings
            .sort_by_key(|found| std::cmp::Reverse((found.acts, found.severity)));
        let mut seen = std::collections::HashSet::new();
        item.findings
            .retain(|found| seen.insert((found.rule.clone(), found.place.clone())));
    }
    items
}

/// Returns what a page defines: each entry with its name and its place, or the server itself.
fn entries(page: &ReplyPage) -> Vec<(Kind, String, String)> {
    let result = page.message.single_body();
    let Some((kind, _, member, name, _)) = LISTS.iter().find(|list| list.1 == page.method) else {
        return vec![(Kind::Server, page.method.to_owned(), "/result".to_owned())];
    };
    let list = result.and_then(|result| result.get(member));
    let entry_name = |entry: Value<'_>| entry.get_str(name).unwrap_or_default().into_owned();
    let numbered = list
        .into_iter()
        .flat_map(|list| list.elements())
        .enumerate();
    numbered
        .map(|(index, entry)| {
            (
                *kind,
                entry_name(entry),
                format!("/result/{member}/{index}"),
            )
        })
        .collect()
}

fn scan_finding(policy: &Policy, finding: &Finding, place: &str) -> ScanFinding {
    let rule = policy
        .rules(Direction::Inbound)
        .rules()
        .iter()
        .find(|rule| rule.id == finding.rule);
    ScanFinding {
        rule: finding.rule.to_string(),
        title: finding.title.clone(),
        why: rule.map(|rule| rule.why.clone()).unwrap_or_default(),
        severity: finding.severity,
        verdict: finding.action.name(),
        acts: finding.action > crate::rules::Action::Log,
        place: if place.is_empty() {
            "/".to_owned()
        } else {
            place.to_owned()
        },
        reading: finding.reading.to_owned(),
        references: rule.map(|rule| rule.references.clone()).unwrap_or_default(),
    }
}

/// Adds the differences from the pinned definitions.
fn changes(
    policy: &Policy,
    page: &ReplyPage,
    pins: &Pins,
    limits: &Limits,
    items: &mut [Item],
    index_of: &BTreeMap<(Kind, String), usize>,
) {
    let listing = policy.compare_lists(&page.message, &page.context, pins, limits);
    for definition in listing
        .new_definitions
        .iter()
        .filter(|seen| !seen.classes.is_empty())
    {
        let item = index_of
            .get(&(definition.key.kind, definition.key.name.to_string()))
            .and_then(|index| items.get_mut(*index));
        let Some(item) = item else { continue };
        let class = definition
            .classes
            .iter()
            .copied()
            .max()
            .unwrap_or(ChangeClass::Other);
        let words: Vec<&str> = definition
            .classes
            .iter()
            .map(|class| class.name())
            .collect();
        let new = definition.classes == [ChangeClass::New];
        let title = if new {
            "New since the list was pinned"
        } else {
            "Changed since it was pinned"
        };
        item.findings.push(ScanFinding {
            rule: CHANGED.to_owned(),
            title: format!("{title}: {}", words.join(", ")),
            why: "See `lychgate pins diff`; `lychgate pins approve` accepts the new one."
                .to_owned(),
            severity: severity(class),
            verdict: definition.action.name(),
            acts: definition.action > ChangeAction::Pass,
            place: "/".to_owned(),
            reading: class.name().to_owned(),
            references: Vec::new(),
        });
    }
}

fn severity(class: ChangeClass) -> Severity {
    match class {
        ChangeClass::Gone | ChangeClass::Cosmetic => Severity::Low,
        ChangeClass::WiderInput | ChangeClass::New | ChangeClass::Other => Severity::Medium,
        ChangeClass::CapabilityGrown
        | ChangeClass::NewImperativeText
        | ChangeClass::NewSecretLikeParameter => Severity::High,
    }
}
