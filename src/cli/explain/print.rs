//! Formats an explanation for the terminal.

use std::io::{self, IsTerminal};

use crate::review::explain::{Explanation, FindingExplanation, RepeatedRefusal, RuleInfo, Step};

/// Maximum number of test cases of a rule that are shown, for matches and non-matches each.
const CASES: usize = 3;

/// Prefix of each line of a judged text.
const BAR: &str = "     | ";
/// Maximum number of lines of a text; the last one contains the rest.
const LINES: usize = 40;

/// Options for the output.
pub(super) struct Style {
    /// The marks before and after a match.
    pub(super) marks: (&'static str, &'static str),
    /// Whether findings that were only logged are explained like the others.
    pub(super) all: bool,
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
pub(super) fn printed(one: &Explanation, style: &Style) -> String {
    let mut out = format!("{}  {}\n", one.audit, one.time);
    let tool = one
        .tool
        .as_ref()
        .map(|tool| format!(" `{tool}`"))
        .unwrap_or_default();
    let method = one.method.as_deref().unwrap_or("a message");
    let user = one
        .user
        .as_ref()
        .map(|user| format!(" for `{user}`"))
        .unwrap_or_default();
    out += &match one.direction.as_str() {
        "outbound" => format!(
            "agent `{}`{user} to `{}`: {method}{tool}\n",
            one.agent, one.upstream
        ),
        _ => format!(
            "`{}` to agent `{}`{user}: answer to {method}{tool}\n",
            one.upstream, one.agent
        ),
    };
    if let Some(item) = one.item {
        out += &format!("message {item} of a batch\n");
    }
    out += &format!("verdict: {}", one.verdict);
    if let Some(would) = &one.would {
        out += &format!(" (observe mode; would be {would})");
    }
    out += "\n";
    out += match one.had {
        "whole" => "text: the whole message, from the evidence or quarantine store\n",
        "redacted" => {
            "text: from the audit log, with secrets masked; the whole message was not stored\n"
        }
        _ => "text: none\n",
    };
    if let Some(lacks) = one.lacks {
        out += &format!("      {lacks}\n");
    }
    if one.had == "none"
        && one
            .findings
            .iter()
            .any(|found| found.action == "quarantine")
    {
        out += "      it was quarantined: it may have been removed, or belong to another config or user\n";
    }
    let then = one.would.as_ref().unwrap_or(&one.verdict);
    match (&one.verdict_now, one.same_rules) {
        (Some(now), true) if now == then => out += "rules: unchanged, with the same verdict\n",
        (Some(now), true) => {
            out += &format!("rules: unchanged; their verdict on the text above is `{now}`\n")
        }
        (Some(now), false) => {
            out += &format!(
                "rules: changed since. Verdict then: `{then}`; by the current rules: `{now}`\n"
            )
        }
        (None, true) => out += "rules: unchanged\n",
        (None, false) => out += "rules: changed since; the verdict is that of the former rules\n",
    }
    if one.findings.is_empty() {
        out += "\nNo findings.\n";
    }
    // If there are no other findings, the question is about those that were only logged.
    let all = style.all || one.findings.iter().all(|found| found.action == "log");
    let (full, brief): (Vec<&FindingExplanation>, Vec<&FindingExplanation>) = one
        .findings
        .iter()
        .partition(|found| all || found.action != "log");
    for n in 0..full.len() {
        out += &finding(n, &full, one, style.marks);
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
    if let Some(passes) = one.suppressed_passes {
        out += match (passes, one.lacks) {
            (true, None) => "\nWith these suppressions the message passes.",
            (true, Some(_)) => {
                "\nWith these suppressions the logged text passes. The original message may not: the log does not contain all of it."
            }
            (false, _) => "\nEven with these suppressions the message does not pass unchanged.",
        };
        let narrow = one
            .findings
            .iter()
            .filter(|found| found.suppression.is_some())
            .all(|found| !found.wide);
        let wide = if narrow { "" } else { " --wide" };
        out += &format!(
            " To add all: `lychgate suppress {}{wide} --reason TEXT`.\n",
            one.audit
        );
    }
    out + "\n"
}

/// Formats the explanation of a call that was refused without being judged.
pub(super) fn repeated(one: &RepeatedRefusal) -> String {
    let user = one
        .user
        .as_ref()
        .map(|user| format!(" for `{user}`"))
        .unwrap_or_default();
    let mut out = format!(
        "{}  {}\nagent `{}`{user} to `{}`: tool `{}`\n",
        one.audit, one.time, one.agent, one.upstream, one.tool
    );
    let times = one
        .times
        .map(|times| format!(", {times} times so far"))
        .unwrap_or_default();
    out += &format!(
        "verdict: block, not inspected: the call was refused as a repeat of earlier ones{times}, by rule `{}`\n",
        one.rule
    );
    out += &match &one.earlier {
        Some(id) => {
            format!(
                "the previous call of this tool that this rule refused: `lychgate explain {id}`\n\n"
            )
        }
        None => format!(
            "the earlier call is not in this log; `lychgate rules explain {}` describes the rule\n\n",
            one.rule
        ),
    };
    out
}

/// Formats the finding at `index`; its rule is described only once.
fn finding(
    index: usize,
    all: &[&FindingExplanation],
    one: &Explanation,
    marks: (&str, &str),
) -> String {
    let had = one.had;
    let Some((found, before)) = all.get(index).zip(all.get(..index)) else {
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
    out += &also(found);
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
        out += &format!("   {}:\n{BAR}{}\n", step.reading, text(step, marks));
    }
    match (
        before.iter().position(|other| other.id == found.id),
        &found.rule,
    ) {
        (Some(first), Some(_)) => out += &format!("   rule: see {}\n", first + 1),
        (None, Some(rule)) => out += &about(rule),
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
            one.audit
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
fn also(found: &FindingExplanation) -> String {
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
fn text(step: &Step, (before, after): (&str, &str)) -> String {
    let mut out = String::new();
    let mut lines = 0;
    for part in &step.parts {
        for (n, line) in part.text.split('\n').enumerate() {
            if n > 0 {
                lines += 1;
                out += &if lines < LINES {
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

fn about(rule: &RuleInfo) -> String {
    let builtin = if rule.builtin { " (built in)" } else { "" };
    let mut out = format!(
        "   why: {}\n   rule: {}:{}{builtin}, kind `{}`\n",
        rule.why, rule.file, rule.line, rule.kind
    );
    for (what, cases) in [("catches", &rule.catches), ("spares", &rule.spares)] {
        for case in cases.iter().take(CASES) {
            let short = crate::text::cut(case, 120);
            out += &format!(
                "     {what} {short}{}\n",
                if short.len() < case.len() { "…" } else { "" }
            );
        }
        if cases.len() > CASES {
            out += &format!("     … and {} more that it {what}\n", cases.len() - CASES);
        }
    }
    out
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
            text(
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
            (LINES, 500 - LINES + 1)
        );
    }
}
