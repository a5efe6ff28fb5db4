//! Suppresses a false positive from the console: adds the suppression of one passage to the gate's
//! config.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use http::{Response, StatusCode};

use super::apply::{apply, no_config_file, signature};
use super::explain::explained;
use super::page::refuse;
use crate::config::Suppression;
use crate::listen::Body;
use crate::message::Json;
use crate::proxy::{Gate, Policies};
use crate::review::suppress::{Decision, add_suppressions};

/// Writes the suppression of finding number `finding` (from 1) of a line, with the `reason` and the
/// last day `until`. `tables` is what the page has shown: if the rules have changed since, nothing
/// is written.
pub(super) async fn write(
    gate: &Arc<Gate>,
    config: Option<&PathBuf>,
    id: &str,
    asked: &Json,
) -> Response<Body> {
    let Some(file) = config.cloned() else {
        return no_config_file();
    };
    let word = |key: &str| {
        asked
            .root()
            .get(key)
            .and_then(|value| value.str())
            .unwrap_or_default()
            .into_owned()
    };
    let number = asked
        .root()
        .get("finding")
        .and_then(|number| number.raw().parse::<usize>().ok());
    let decision = match Decision::read(
        &word("reason"),
        Some(word("until")).filter(|day| !day.is_empty()).as_deref(),
    ) {
        Ok(decision) => decision,
        Err(why) => return refuse(StatusCode::BAD_REQUEST, &why),
    };
    let explained = match explained(gate, id).await {
        Ok(explained) => explained,
        Err(refused) => return refused,
    };
    let told = number
        .and_then(|number| number.checked_sub(1))
        .and_then(|at| explained.findings.get(at));
    let shown = word("tables");
    let told = told.filter(|told| told.suppression.as_deref() == Some(shown.as_str()));
    let Some(told) = told else {
        return refuse(
            StatusCode::CONFLICT,
            "the rules have changed: open the finding again",
        );
    };
    if told.wide {
        return refuse(
            StatusCode::CONFLICT,
            "no digest fits, so this covers more than the passage: write it by hand, or with `--wide`",
        );
    }
    let these = decision.suppressions([told]);
    let comment = format!(
        "lychgate suppress: audit {}, {}",
        explained.audit,
        signature()
    );
    let change = format!("suppression added to policy `{}`", explained.policy);
    let added = these.clone();
    let edit = move |file: &Path| add_suppressions(file, &explained.policy, &added, &comment);
    apply(gate, file, &change, edit, |policies| {
        these.iter().all(|one| is_in_force(policies, one))
    })
    .await
}

fn is_in_force(policies: &Policies, one: &Suppression) -> bool {
    let mut all = policies
        .values()
        .flat_map(|policy| policy.suppressions().iter());
    all.any(|other| other.is_for_the_same(one) && other.until == one.until)
}
