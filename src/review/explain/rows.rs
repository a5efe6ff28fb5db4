//! Groups the findings of a line, and those of judging it again, by passage.

use std::cmp::Reverse;

use crate::inspect::Finding;
use crate::record::entry::member;
use crate::record::entry::object::finding;
use crate::review::Entry;
use crate::rules::{Action, Severity};

use super::passage::{Proposals, is_same, overlap};

/// A finding that is recorded in the line, was found again, or both.
pub(super) struct Row<'f> {
    pub(super) id: String,
    pub(super) at: String,
    pub(super) action: String,
    pub(super) reading: String,
    pub(super) recorded: bool,
    pub(super) further: bool,
    pub(super) current: Option<&'f Finding>,
}

/// Returns the recorded findings together with their new counterparts, then those that are only
/// found now, then further matches of the same rules.
pub(super) fn rows<'f>(
    entry: &Entry,
    current: &'f [Finding],
    proposals: &'f Proposals,
) -> Vec<Row<'f>> {
    let mut used = vec![false; current.len()];
    let mut rows = Vec::new();
    for entry_finding in entry.findings() {
        let at = within_item(entry, &entry_finding.text(finding::at));
        let is_match = |(n, finding): &(usize, &Finding)| {
            !used.get(*n).copied().unwrap_or(true)
                && finding.rule.as_str() == entry_finding.text(finding::rule)
                && finding.at == at
        };
        let counterpart = current.iter().enumerate().find(is_match);
        if let Some(used) = counterpart.and_then(|(n, _)| used.get_mut(n)) {
            *used = true;
        }
        rows.push(Row {
            id: entry_finding.text(finding::rule).into_owned(),
            at,
            action: entry_finding.text(finding::action).into_owned(),
            reading: entry_finding.text(finding::reading).into_owned(),
            recorded: true,
            further: false,
            current: counterpart.map(|(_, finding)| finding),
        });
    }
    let row_of = |finding: &'f Finding, further: bool| Row {
        id: finding.rule.as_str().to_owned(),
        at: finding.at.clone(),
        action: finding.action.name().to_owned(),
        reading: finding.reading.to_owned(),
        recorded: false,
        further,
        current: Some(finding),
    };
    rows.extend(
        current
            .iter()
            .zip(used)
            .filter(|(_, used)| !used)
            .map(|(finding, _)| row_of(finding, false)),
    );
    let further = proposals.matches.iter().map(|one| &one.finding);
    rows.extend(
        further
            .filter(|one| !current.iter().any(|other| is_same(one, other)))
            .map(|one| row_of(one, true)),
    );
    rows
}

/// Groups the rows by passage. Both the rows of a passage and the passages are sorted with the
/// strongest first.
pub(super) fn group_by_passage(
    rows: Vec<Row<'_>>,
    severity: impl Fn(&str) -> Option<Severity>,
) -> Vec<Vec<Row<'_>>> {
    let mut passages: Vec<Vec<Row<'_>>> = Vec::new();
    for row in rows {
        let overlaps = |passage: &Vec<Row<'_>>| {
            passage.iter().any(|other| {
                row.current
                    .zip(other.current)
                    .is_some_and(|(one, other)| overlap(one, other))
            })
        };
        let (mut overlapping, others): (Vec<_>, Vec<_>) = passages.into_iter().partition(overlaps);
        passages = others;
        let mut passage: Vec<Row<'_>> = overlapping.drain(..).flatten().collect();
        passage.push(row);
        passages.push(passage);
    }
    let strength = |row: &Row<'_>| Reverse((Action::named(&row.action), severity(&row.id)));
    for passage in &mut passages {
        passage.sort_by_key(strength);
    }
    passages.sort_by_key(|passage| passage.first().map(strength));
    passages
}

/// Removes the index of the message in its batch from a pointer, since each message is judged by
/// itself here.
fn within_item(entry: &Entry, at: &str) -> String {
    let item = entry.get(member::item).map(|item| format!("/{item}"));
    item.and_then(|item| at.strip_prefix(item.as_str()))
        .unwrap_or(at)
        .to_owned()
}
