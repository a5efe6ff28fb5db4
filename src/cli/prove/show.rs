//! Formats the results of testing a gate, for people and for programs.

use serde_json::{Value, json};

use super::trial::{Outcome, Proof, Trial};

/// Formats the results for people.
pub(super) fn text(proof: &Proof) -> String {
    let how = if proof.offline {
        "started here from the config"
    } else {
        "running"
    };
    let mut out = format!("gate {} ({how}, lychgate {})\n", proof.gate, proof.version);
    for upstream in &proof.upstreams {
        let observed = if upstream.mode == "observe" {
            ": findings are recorded, and messages pass"
        } else {
            ""
        };
        out.push_str(&format!(
            "\n{} · policy {} · {}{observed}\n",
            upstream.name, upstream.policy, upstream.mode
        ));
        upstream
            .trials
            .iter()
            .for_each(|trial| line(trial, &mut out));
    }
    if !proof.door.is_empty() {
        out.push_str("\nlistener\n");
        proof.door.iter().for_each(|trial| line(trial, &mut out));
    }
    let all = proof.trials().count();
    let well = proof.trials().filter(|trial| trial.became.well()).count();
    let count = |what: Outcome| {
        proof
            .trials()
            .filter(|trial| trial.became == what && !trial.excepted)
            .count()
    };
    let excepted = proof
        .trials()
        .filter(|trial| trial.excepted && !trial.became.well())
        .count();
    let mut parts = vec![format!("{well} of {all} as expected")];
    for (number, what) in [
        (count(Outcome::Missed), "not caught"),
        (count(Outcome::Disturbed), "false positive"),
        (count(Outcome::Untried), "not tested"),
        (excepted, "excepted"),
    ] {
        if number > 0 {
            parts.push(format!("{number} {what}"));
        }
    }
    out.push_str(&format!("\n{}\n", parts.join(", ")));
    out
}

fn line(trial: &Trial, out: &mut String) {
    let word = match (trial.became, trial.excepted) {
        (became, _) if became.well() => became.name().to_owned(),
        (became, true) => format!("({})", became.name()),
        (became, false) => became.name().to_uppercase(),
    };
    let rule = match trial.rules.as_slice() {
        [] => String::new(),
        [one] => format!("  {one}"),
        [first, rest @ ..] => format!("  {first} +{}", rest.len()),
    };
    let rule = if trial.became.well() {
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
pub(super) fn json(proof: &Proof) -> String {
    let trial = |trial: &Trial| {
        let mut parts = json!({
            "canary": trial.id,
            "title": trial.title,
            "attack": trial.attack,
            "became": trial.became.name(),
            "as_expected": trial.became.well(),
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
        .map(|of| {
            let trials: Vec<Value> = of.trials.iter().map(trial).collect();
            json!({ "name": of.name, "policy": of.policy, "mode": of.mode, "canaries": trials })
        })
        .collect();
    let door: Vec<Value> = proof.door.iter().map(trial).collect();
    let document = json!({
        "ok": proof.code() == 0,
        "gate": proof.gate,
        "version": proof.version,
        "offline": proof.offline,
        "upstreams": upstreams,
        "listener": door,
    });
    format!("{document:#}\n")
}
