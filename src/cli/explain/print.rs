//! Formats an explanation for the terminal.

use std::io::{self, IsTerminal};

use crate::review::explain::{Explanation, FindingExplanation, RepeatedRefusal, RuleInfo, Step};

/// Maximum number of test cases of a rule that are shown, for matches and non-matches each.
const MAX_CASES: usize = 3;

/// Prefix of each line of a judged text.
const BAR: &str = "     | ";
/// Maximum number of lines of a text; the last one contains the rest.
const MAX_LINES: usize = 40;

/// Options for the output.
pub(super) struct Style {
    /// The marks before and after a match.
    pub(super) marks: (&'static str, &'static str),
    /// Whether findings that were only logged are explained like the others.
    pub(super) includes_logged: bool,
}

/// Returns the marks before and after a match: colors on a terminal.
pub(super) fn marks() -> (&'static str, &'static str) {
    let colour = io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    if colour {
        ("\u{1b}[1;31m", "\u{1b}[0m")
    } else {
        ("»", "«")
    }
}

/// Formats an explanation for people.
pub(super) fn format_explanation(explanation: &Explanation, style: &Style) -> String {
    let mut out = format!("{}  {}\n", explanation.audit, explanation.time);
    let tool = explanation
        .tool
        .as_ref()
        .map(|tool| format!(" `{tool}`"))
        .unwrap_or_default();
    let method = explanation.method.as_deref().unwrap_or("a message");
    let user = for_user(explanation.user.as_deref());
    out += &match explanation.direction.as_str() {
        "outbound" => format!(
            "agent `{}`{user} to `{}`: {method}{tool}\n",
            explanation.agent, explanation.upstream
        ),
        _ => format!(
            "`{}` to agent `{}`{user}: answer to {method}{tool}\n",
            explanation.upstream, explanation.agent
        ),
    };
    if let Some(item) = explanation.item {
        out += &format!("message {item} of a batch\n");
    }
    out += &format!("verdict: {}", explanation.verdict);
    if let Some(would) = &explanation.would {
        out += &format!(" (observe mode; would be {would})");
    }
    out += "\n";
    out += match explanation.had {
        "whole" => "text: the whole message, from the evidence or quarantine store\n",
        "redacted" => {
            "text: from the audit log, with secrets masked; the whole message was not stored\n"
        }
        _ => "text: none\n",
    };
    if let Some(lacks) = explanation.lacks {
        out += &format!("      {lacks}\n");
    }
    if explanation.had == "none"
        && explanation
            .findings
            .iter()
            .any(|found| found.action == "quarantine")
    {
        out += "      it was quarantined: it may have been removed, or belong to another config or user\n";
    }
    let verdict_then = explanation.would.as_ref().unwrap_or(&explanation.verdict);
    match (&explanation.verdict_now, explanation.same_rules) {
        (Some(now), true) if now == verdict_then => {
            out += "rules: unchanged, with the same verdict\n"
        }
        (Some(now), true) => {
            out += &format!("rules: unchanged; their verdict on the text above is `{now}`\n")
        }
        (Some(now), false) => {
            out += &format!(
                "rules: changed since. Verdict then: `{verdict_then}`; by the current rules: `{now}`\n"
            )
        }
        (None, true) => out += "rules: unchanged\n",
        (None, false) => out += "rules: changed since; the verdict is that of the former rules\n",
    }
    if explanation.findings.is_empty() {
        out += "\nNo findings.\n";
    }
    // If there are no other findings, the question is about those that were only logged.
    let explains_all = style.includes_logged
        || explanation
            .findings
            .iter()
            .all(|found| found.action == "log");
    let (full, brief): (Vec<&FindingExplanation>, Vec<&FindingExplanation>) = explanation
        .findings
        .iter()
        .partition(|found| explains_all || found.action != "log");
    for n in 0..full.len() {
        out += &format_finding(n, &full, explanation, style.marks);
    }
    if !brief.is_empty() {
        let others = |found: &FindingExplanation| {
            found
                .also
                .iter()
                .map(|also| (also.id.clone(), also.reading.clone()))
                .collect::<Vec<_>>()
        };
        let names = brief.iter().flat_map(|found| {
            std::iter::once((found.id.clone(), found.reading.clone())).chain(others(found))
        });
        let names: Vec<String> = names
            .map(|(id, reading)| format!("{id} (`{reading}`)"))
            .collect();
        out += &format!(
            "\nLogged only (`--all` explains each): {}.\n",
            names.join(", ")
        );
    }
    if let Some(passes) = explanation.suppressed_passes {
        out += match (passes, explanation.lacks) {
            (true, None) => "\nWith these suppressions the message passes.",
            (true, Some(_)) => {
                "\nWith these suppressions the logged text passes. The original message may not: the log does not contain all of it."
            }
            (false, _) => "\nEven with these suppressions the message does not pass unchanged.",
        };
        let narrow = explanation
            .findings
            .iter()
            .filter(|found| found.suppression.is_some())
            .all(|found| !found.wide);
        let wide = if narrow { "" } else { " --wide" };
        out += &format!(
            " To add all: `lychgate suppress {}{wide} --reason TEXT`.\n",
            explanation.audit
        );
    }
    out + "\n"
}

/// Formats the explanation of a call that was refused without being judged.
pub(super) fn format_repeated(refusal: &RepeatedRefusal) -> String {
    let user = for_user(refusal.user.as_deref());
    let mut out = format!(
        "{}  {}\nagent `{}`{user} to `{}`: tool `{}`\n",
        refusal.audit, refusal.time, refusal.agent, refusal.upstream, refusal.tool
    );
    let times = refusal
        .times
        .map(|times| format!(", {times} times so far"))
        .unwrap_or_default();
    out += &format!(
        "verdict: block, not inspected: the call was refused as a repeat of earlier ones{times}, by rule `{}`\n",
        refusal.rule
    );
    out += &match &refusal.earlier {
        Some(id) => {
            format!(
                "the previous call of this tool that this rule refused: `lychgate explain {id}`\n\n"
            )
        }
        None => format!(
            "the earlier call is not in this log; `lychgate rules explain {}` describes the rule\n\n",
            refusal.rule
        ),
    };
    out
}

/// Formats the finding at `index`; its rule is described only once.
fn format_finding(
    index: usize,
    findings: &[&FindingExplanation],
    explanation: &Explanation,
    marks: (&str, &str),
) -> String {
    let had = explanation.had;
    let Some((found, before)) = findings.get(index).zip(findings.get(..index)) else {
        return String::new();
    };
    let n = index + 1;
    let severity = found
        .rule
        .as_ref()
        .map(|rule| format!("{}, ", rule.severity))
        .unwrap_or_default();
    let title = found
        .rule
        .as_ref()
        .map(|rule| format!(": {}", rule.title))
        .unwrap_or_default();
    let mut out = format!("\n{n}. {} ({severity}{}){title}\n", found.id, found.action);
    let at = if found.at.is_empty() { "/" } else { &found.at };
    let argument = found
        .argument
        .as_ref()
        .map(|argument| format!(", argument `{argument}`"))
        .unwrap_or_default();
    out += &format!("   at {at}{argument}, reading `{}`\n", found.reading);
    out += &format_others(found);
    match (found.recorded, found.found_again) {
        _ if found.further => {
            out += "   a further match of this rule here; the audit line has only the first\n"
        }
        (true, true) => {}
        (true, false) if had == "none" => {}
        (true, false) => out += "   not found again in the available text\n",
        (false, _) => out += "   not in the audit line: found by the current rules\n",
    }
    if let Some(shape) = &found.shape {
        out += &format!("   a secret (not shown) of the shape: {shape}\n");
    }
    for step in &found.steps {
        out += &format!("   {}:\n{BAR}{}\n", step.reading, format_step(step, marks));
    }
    match (
        before.iter().position(|other| other.id == found.id),
        &found.rule,
    ) {
        (Some(first), Some(_)) => out += &format!("   rule: see {}\n", first + 1),
        (None, Some(rule)) => out += &describe_rule(rule),
        (_, None) => {}
    }
    if let Some(found) = &found.told {
        out += &format!("   sent to the agent: {found}\n");
    }
    if let Some(note) = found.note.as_ref().filter(|_| had != "none") {
        out += &format!("   {note}\n");
    }
    if let Some(suppression) = &found.suppression {
        let wide = if found.wide { " --wide" } else { "" };
        out += &format!(
            "   False positive? `lychgate suppress {} --finding {n}{wide} --reason TEXT` adds this to the config:\n",
            explanation.audit
        );
        if let Some(covers) = &found.covers {
            out += &format!("   {covers}\n");
        }
        out += "\n";
        suppression
            .lines()
            .for_each(|line| out += &format!("{line}\n"));
    }
    out
}

/// Lists the other rules that matched in a passage: those with an effect, then those that only log,
/// then its other places.
fn format_others(found: &FindingExplanation) -> String {
    let mut seen = vec![&found.id];
    let mut acting = Vec::new();
    let mut logged = Vec::new();
    let mut places = Vec::new();
    for also in &found.also {
        if also.at != found.at && !places.contains(&also.at) {
            places.push(also.at.clone());
        }
        if seen.contains(&&also.id) {
            continue;
        }
        seen.push(&also.id);
        if also.action == "log" {
            logged.push(also.id.clone());
        } else {
            let severity = also
                .severity
                .map(|severity| format!("{severity}, "))
                .unwrap_or_default();
            acting.push(format!("{} ({severity}{})", also.id, also.action));
        }
    }
    let mut out = String::new();
    for (what, names) in [
        ("also:", acting),
        ("also, logged only:", logged),
        ("also at", places),
    ] {
        if !names.is_empty() {
            out += &format!("   {what} {}\n", names.join(", "));
        }
    }
    out
}

/// Formats a text with the match marked. Each line is prefixed with a bar, so that none can be
/// mistaken for output of this program.
fn format_step(step: &Step, (before, after): (&str, &str)) -> String {
    let mut out = String::new();
    let mut lines = 0;
    for part in &step.parts {
        for (n, line) in part.text.split('\n').enumerate() {
            if n > 0 {
                lines += 1;
                out += &if lines < MAX_LINES {
                    format!("\n{BAR}")
                } else {
                    "\\n".to_owned()
                };
            }
            out += &if part.matched && !line.is_empty() {
                format!("{before}{line}{after}")
            } else {
                line.to_owned()
            };
        }
    }
    out
}

fn describe_rule(rule: &RuleInfo) -> String {
    let builtin = if rule.builtin { " (built in)" } else { "" };
    let mut out = format!(
        "   why: {}\n   rule: {}:{}{builtin}, kind `{}`\n",
        rule.why, rule.file, rule.line, rule.kind
    );
    for (what, cases) in [("catches", &rule.catches), ("spares", &rule.spares)] {
        for case in cases.iter().take(MAX_CASES) {
            let short = crate::text::cut(case, 120);
            out += &format!(
                "     {what} {short}{}\n",
                if short.len() < case.len() { "…" } else { "" }
            );
        }
        if cases.len() > MAX_CASES {
            out += &format!(
                "     … and {} more that it {what}\n",
                cases.len() - MAX_CASES
            );
        }
    }
    out
}

fn for_user(user: Option<&str>) -> String {
    user.map(|user| format!(" for `{user}`"))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::review::explain::Part;

    #[test]
    fn no_line_of_a_text_looks_like_one_of_ours() {
        let part = |text: &str, matched| Part {
            text: text.to_owned(),
            matched,
        };
        let shown = |parts| {
            format_step(
                &Step {
                    reading: String::new(),
                    parts,
                },
                ("»", "«"),
            )
        };
        let forged = shown(vec![
            part("x\n   why: it is safe\n", false),
            part("a\nb", true),
            part("\n", false),
        ]);
        assert_eq!(
            forged,
            "x\n     |    why: it is safe\n     | »a«\n     | »b«\n     | "
        );
        let flood = shown(vec![part(&"\n".repeat(500), false)]);
        assert_eq!(
            (flood.lines().count(), flood.matches("\\n").count()),
            (MAX_LINES, 500 - MAX_LINES + 1)
        );
    }
}
