//! Formats the results of testing a gate, for people and for programs.

use serde_json::{Value, json};

use super::trial::{Outcome, Proof, Trial};

/// Formats the results for people.
pub(super) fn format_text(proof: &Proof) -> String {
    let origin = if proof.offline {
        "started here from the config"
    } else {
        "running"
    };
    let mut out = format!(
        "gate {} ({origin}, lychgate {})\n",
        proof.gate, proof.version
    );
    for upstream in &proof.upstreams {
        let note = if upstream.mode == "observe" {
            ": findings are recorded, and messages pass"
        } else {
            ""
        };
        out.push_str(&format!(
            "\n{} · policy {} · {}{note}\n",
            upstream.name, upstream.policy, upstream.mode
        ));
        upstream
            .trials
            .iter()
            .for_each(|trial| format_trial(trial, &mut out));
    }
    if !proof.listener.is_empty() {
        out.push_str("\nlistener\n");
        proof
            .listener
            .iter()
            .for_each(|trial| format_trial(trial, &mut out));
    }
    let all = proof.trials().count();
    let expected_count = proof
        .trials()
        .filter(|trial| trial.outcome.is_expected())
        .count();
    let count = |outcome: Outcome| {
        proof
            .trials()
            .filter(|trial| trial.outcome == outcome && !trial.excepted)
            .count()
    };
    let excepted = proof
        .trials()
        .filter(|trial| trial.excepted && !trial.outcome.is_expected())
        .count();
    let mut parts = vec![format!("{expected_count} of {all} as expected")];
    for (number, label) in [
        (count(Outcome::Missed), "not caught"),
        (count(Outcome::Disturbed), "false positive"),
        (count(Outcome::Untried), "not tested"),
        (excepted, "excepted"),
    ] {
        if number > 0 {
            parts.push(format!("{number} {label}"));
        }
    }
    out.push_str(&format!("\n{}\n", parts.join(", ")));
    out
}

fn format_trial(trial: &Trial, out: &mut String) {
    let word = match (trial.outcome, trial.excepted) {
        (outcome, _) if outcome.is_expected() => outcome.name().to_owned(),
        (outcome, true) => format!("({})", outcome.name()),
        (outcome, false) => outcome.name().to_uppercase(),
    };
    let rule = match trial.rules.as_slice() {
        [] => String::new(),
        [one] => format!("  {one}"),
        [first, rest @ ..] => format!("  {first} +{}", rest.len()),
    };
    let rule = if trial.outcome.is_expected() {
        rule
    } else {
        String::new()
    };
    out.push_str(format!("  {word:<10} {:<20} {:<48}{rule}", trial.id, trial.title).trim_end());
    out.push('\n');
    if !trial.why.is_empty() {
        out.push_str(&format!("             why: {}\n", trial.why));
    }
}

/// Formats the results as one JSON document.
pub(super) fn format_json(proof: &Proof) -> String {
    let trial = |trial: &Trial| {
        let mut parts = json!({
            "canary": trial.id,
            "title": trial.title,
            "attack": trial.attack,
            "became": trial.outcome.name(),
            "as_expected": trial.outcome.is_expected(),
            "rules": trial.rules,
        });
        if let Some(parts) = parts.as_object_mut() {
            if !trial.why.is_empty() {
                parts.insert("why".to_owned(), trial.why.as_str().into());
            }
            if trial.excepted {
                parts.insert("excepted".to_owned(), true.into());
            }
        }
        parts
    };
    let upstreams: Vec<Value> = proof
        .upstreams
        .iter()
        .map(|upstream| {
            let trials: Vec<Value> = upstream.trials.iter().map(trial).collect();
            json!({ "name": upstream.name, "policy": upstream.policy, "mode": upstream.mode, "canaries": trials })
        })
        .collect();
    let checks: Vec<Value> = proof.listener.iter().map(trial).collect();
    let document = json!({
        "ok": proof.code() == 0,
        "gate": proof.gate,
        "version": proof.version,
        "offline": proof.offline,
        "upstreams": upstreams,
        "listener": checks,
    });
    format!("{document:#}\n")
}
