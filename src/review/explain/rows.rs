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
    pub(super) now: Option<&'f Finding>,
}

/// Returns the recorded findings together with their new counterparts, then those that are only
/// found now, then further matches of the same rules.
pub(super) fn rows<'f>(
    entry: &Entry,
    now: &'f [Finding],
    proposals: &'f Proposals,
) -> Vec<Row<'f>> {
    let mut used = vec![false; now.len()];
    let mut rows = Vec::new();
    for found in entry.findings() {
        let at = within_item(entry, &found.text(finding::at));
        let is_it = |(n, finding): &(usize, &Finding)| {
            !used.get(*n).copied().unwrap_or(true)
                && finding.rule.as_str() == found.text(finding::rule)
                && finding.at == at
        };
        let again = now.iter().enumerate().find(is_it);
        if let Some(used) = again.and_then(|(n, _)| used.get_mut(n)) {
            *used = true;
        }
        rows.push(Row {
            id: found.text(finding::rule).into_owned(),
            at,
            action: found.text(finding::action).into_owned(),
            reading: found.text(finding::reading).into_owned(),
            recorded: true,
            further: false,
            now: again.map(|(_, finding)| finding),
        });
    }
    let of = |finding: &'f Finding, further: bool| Row {
        id: finding.rule.as_str().to_owned(),
        at: finding.at.clone(),
        action: finding.action.name().to_owned(),
        reading: finding.reading.to_owned(),
        recorded: false,
        further,
        now: Some(finding),
    };
    rows.extend(
        now.iter()
            .zip(used)
            .filter(|(_, used)| !used)
            .map(|(finding, _)| of(finding, false)),
    );
    let further = proposals.matches.iter().map(|one| &one.finding);
    rows.extend(
        further
            .filter(|one| !now.iter().any(|other| is_same(one, other)))
            .map(|one| of(one, true)),
    );
    rows
}

/// Groups the rows by passage. Both the rows of a passage and the passages are sorted with the
/// strongest first.
pub(super) fn by_passage(
    rows: Vec<Row<'_>>,
    severity: impl Fn(&str) -> Option<Severity>,
) -> Vec<Vec<Row<'_>>> {
    let mut passages: Vec<Vec<Row<'_>>> = Vec::new();
    for row in rows {
        let touches = |passage: &Vec<Row<'_>>| {
            passage.iter().any(|other| {
                row.now
                    .zip(other.now)
                    .is_some_and(|(one, other)| overlap(one, other))
            })
        };
        let (mut joined, others): (Vec<_>, Vec<_>) = passages.into_iter().partition(touches);
        passages = others;
        let mut passage: Vec<Row<'_>> = joined.drain(..).flatten().collect();
        passage.push(row);
        passages.push(passage);
    }
    let strength = |row: &Row<'_>| {
        let action = Action::WORDS
            .iter()
            .find(|(word, _)| *word == row.action)
            .map(|(_, action)| *action);
        Reverse((action, severity(&row.id)))
    };
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
