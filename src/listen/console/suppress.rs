//! Suppresses a false positive from the console: adds the suppression of one passage to the gate's
//! config.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use http::{Response, StatusCode};

use super::apply::{apply, no_config_file, signature};
use super::explain::explain_judgement;
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
    request: &Json,
) -> Response<Body> {
    let Some(file) = config.cloned() else {
        return no_config_file();
    };
    let member = |key: &str| request.root().get_str(key).unwrap_or_default().into_owned();
    let number = request
        .root()
        .get("finding")
        .and_then(|number| number.raw().parse::<usize>().ok());
    let decision = match Decision::read(
        &member("reason"),
        Some(member("until"))
            .filter(|day| !day.is_empty())
            .as_deref(),
    ) {
        Ok(decision) => decision,
        Err(why) => return refuse(StatusCode::BAD_REQUEST, &why),
    };
    let explanation = match explain_judgement(gate, id).await {
        Ok(explained) => explained,
        Err(refused) => return refused,
    };
    let selected = number
        .and_then(|number| number.checked_sub(1))
        .and_then(|at| explanation.findings.get(at));
    let shown_tables = member("tables");
    let confirmed =
        selected.filter(|told| told.suppression.as_deref() == Some(shown_tables.as_str()));
    let Some(confirmed) = confirmed else {
        return refuse(
            StatusCode::CONFLICT,
            "the rules have changed: open the finding again",
        );
    };
    if confirmed.wide {
        return refuse(
            StatusCode::CONFLICT,
            "no digest fits, so this covers more than the passage: write it by hand, or with `--wide`",
        );
    }
    let suppressions = decision.suppressions([confirmed]);
    let comment = format!(
        "lychgate suppress: audit {}, {}",
        explanation.audit,
        signature()
    );
    let change = format!("suppression added to policy `{}`", explanation.policy);
    let added = suppressions.clone();
    let edit = move |file: &Path| add_suppressions(file, &explanation.policy, &added, &comment);
    apply(gate, file, &change, edit, |policies| {
        suppressions
            .iter()
            .all(|added_suppression| is_in_force(policies, added_suppression))
    })
    .await
}

fn is_in_force(policies: &Policies, suppression: &Suppression) -> bool {
    let mut all = policies
        .values()
        .flat_map(|policy| policy.suppressions().iter());
    all.any(|other| other.covers_same(suppression) && other.until == suppression.until)
}
