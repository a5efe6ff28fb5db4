//! An explanation as it is printed.

use std::io::{self, IsTerminal};

use crate::review::explain::{Explanation, FindingExplanation, Repeated, RuleInfo, Step};

/// Cases shown of a rule, each way.
const CASES: usize = 3;

/// What stands before each line of a text that was judged.
const BAR: &str = "     | ";
/// Most lines of one text: what comes then stands in the last one.
const LINES: usize = 40;

/// How it is printed.
pub(super) struct Style {
    /// What stands before and after a match.
    pub(super) marks: (&'static str, &'static str),
    /// Whether what was only logged is explained like the rest.
    pub(super) all: bool,
}

/// What stands before and after a match: colour where a person looks on.
pub(super) fn marks() -> (&'static str, &'static str) {
    let colour = io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    if colour { ("\u{1b}[1;31m", "\u{1b}[0m") } else { ("»", "«") }
}

/// For people.
pub(super) fn printed(one: &Explanation, style: &Style) -> String {
    let mut out = format!("{}  {}\n", one.audit, one.time);
    let tool = one.tool.as_ref().map(|tool| format!(" `{tool}`")).unwrap_or_default();
    let method = one.method.as_deref().unwrap_or("a message");
    let user = one.user.as_ref().map(|user| format!(" for `{user}`")).unwrap_or_default();
    out += &match one.direction.as_str() {
        "outbound" => format!("agent `{}`{user} to `{}`: {method}{tool}\n", one.agent, one.upstream),
        _ => format!("`{}` to agent `{}`{user}: answer to {method}{tool}\n", one.upstream, one.agent),
    };
    if let Some(item) = one.item {
        out += &format!("message {item} of a batch\n");
    }
    out += &format!("verdict: {}", one.verdict);
    if let Some(would) = &one.would {
        out += &format!(" (the policy only observes; else {would})");
    }
    out += "\n";
    out += match one.had {
        "whole" => "text: whole, as it was kept\n",
        "redacted" => "text: as the audit log shows it, secrets masked; the whole message was not kept\n",
        _ => "text: none\n",
    };
    if let Some(lacks) = one.lacks {
        out += &format!("      {lacks}\n");
    }
    if one.had == "none" && one.findings.iter().any(|told| told.action == "quarantine") {
        out += "      it was quarantined: is it still kept, and is this the config (and the user) of the gate that did it?\n";
    }
    let then = one.would.as_ref().unwrap_or(&one.verdict);
    match (&one.verdict_now, one.same_rules) {
        (Some(now), true) if now == then => out += "rules: those in force now are the same, and come to the same verdict\n",
        (Some(now), true) => out += &format!("rules: the same as now; of the text above they make `{now}`\n"),
        (Some(now), false) => {
            out += &format!("rules: another set than now. Then: `{then}`; by the rules in force now: `{now}`\n")
        }
        (None, true) => out += "rules: the same as now\n",
        (None, false) => out += "rules: another set than now: the verdict is of the set of then\n",
    }
    if one.findings.is_empty() {
        out += "\nNothing was found.\n";
    }
    // Where nothing else was found, what was only logged is what the question is about.
    let all = style.all || one.findings.iter().all(|told| told.action == "log");
    let (full, brief): (Vec<&FindingExplanation>, Vec<&FindingExplanation>) =
        one.findings.iter().partition(|told| all || told.action != "log");
    for n in 0..full.len() {
        out += &finding(n, &full, one, style.marks);
    }
    if !brief.is_empty() {
        let others =
            |told: &FindingExplanation| told.also.iter().map(|also| (also.id.clone(), also.reading.clone())).collect::<Vec<_>>();
        let names = brief.iter().flat_map(|told| std::iter::once((told.id.clone(), told.reading.clone())).chain(others(told)));
        let names: Vec<String> = names.map(|(id, reading)| format!("{id} (`{reading}`)")).collect();
        out += &format!("\nOnly logged (`--all` explains each): {}.\n", names.join(", "));
    }
    if let Some(passes) = one.suppressed_passes {
        out += match (passes, one.lacks) {
            (true, None) => "\nWith these suppressions the message passes.",
            (true, Some(_)) => {
                "\nWith these suppressions the text passes as the log shows it. What was sent may not: the log does not hold all of it."
            }
            (false, _) => "\nEven with these suppressions the message does not pass as it is.",
        };
        let narrow = one.findings.iter().filter(|told| told.suppression.is_some()).all(|told| !told.wide);
        let wide = if narrow { "" } else { " --wide" };
        out += &format!(" All at once: `lychgate suppress {}{wide} --reason TEXT`.\n", one.audit);
    }
    out + "\n"
}

/// Of a call that was refused unjudged.
pub(super) fn repeated(one: &Repeated) -> String {
    let user = one.user.as_ref().map(|user| format!(" for `{user}`")).unwrap_or_default();
    let mut out =
        format!("{}  {}\nagent `{}`{user} to `{}`: tool `{}`\n", one.audit, one.time, one.agent, one.upstream, one.tool);
    let times = one.times.map(|times| format!(", {times} times by then")).unwrap_or_default();
    out += &format!(
        "verdict: block, without being judged: the call was refused just like earlier ones{times}, by rule `{}`\n",
        one.rule
    );
    out += &match &one.earlier {
        Some(id) => {
            format!("the last call of this tool before it that this rule refused: `lychgate explain {id}` says why\n\n")
        }
        None => format!(
            "the line of the earlier call is not in this log; `lychgate rules explain {}` tells of the rule\n\n",
            one.rule
        ),
    };
    out
}

/// The finding at `index` of those that are explained; what an earlier one has said of its rule is not said again.
fn finding(index: usize, all: &[&FindingExplanation], one: &Explanation, marks: (&str, &str)) -> String {
    let had = one.had;
    let Some((told, before)) = all.get(index).zip(all.get(..index)) else { return String::new() };
    let n = index + 1;
    let severity = told.rule.as_ref().map(|rule| format!("{}, ", rule.severity)).unwrap_or_default();
    let title = told.rule.as_ref().map(|rule| format!(": {}", rule.title)).unwrap_or_default();
    let mut out = format!("\n{n}. {} ({severity}{}){title}\n", told.id, told.action);
    let at = if told.at.is_empty() { "/" } else { &told.at };
    let argument = told.argument.as_ref().map(|argument| format!(", argument `{argument}`")).unwrap_or_default();
    out += &format!("   at {at}{argument}, by the reading `{}`\n", told.reading);
    out += &also(told);
    match (told.recorded, told.found_again) {
        _ if told.further => out += "   another match of this rule here: the line names only its first one\n",
        (true, true) => {}
        (true, false) if had == "none" => {}
        (true, false) => out += "   found then; not found again in the text that could be had\n",
        (false, _) => out += "   not in the line: the rules in force find it now\n",
    }
    if let Some(shape) = &told.shape {
        out += &format!("   a secret, which is not shown; its shape: {shape}\n");
    }
    for step in &told.steps {
        out += &format!("   {}:\n{BAR}{}\n", step.reading, text(step, marks));
    }
    match (before.iter().position(|other| other.id == told.id), &told.rule) {
        (Some(first), Some(_)) => out += &format!("   rule: see {}\n", first + 1),
        (None, Some(rule)) => out += &about(rule),
        (_, None) => {}
    }
    if let Some(told) = &told.told {
        out += &format!("   the agent was told: {told}\n");
    }
    if let Some(note) = told.note.as_ref().filter(|_| had != "none") {
        out += &format!("   {note}\n");
    }
    if let Some(suppression) = &told.suppression {
        let wide = if told.wide { " --wide" } else { "" };
        out += &format!(
            "   False alarm? `lychgate suppress {} --finding {n}{wide} --reason TEXT` adds this to the config:\n",
            one.audit
        );
        if let Some(covers) = &told.covers {
            out += &format!("   {covers}\n");
        }
        out += "\n";
        suppression.lines().for_each(|line| out += &format!("{line}\n"));
    }
    out
}

/// The other rules that matched in a passage: those with an effect, then those that only log; then its other places.
fn also(told: &FindingExplanation) -> String {
    let mut seen = vec![&told.id];
    let (mut acting, mut logged, mut places) = (Vec::new(), Vec::new(), Vec::new());
    for also in &told.also {
        if also.at != told.at && !places.contains(&also.at) {
            places.push(also.at.clone());
        }
        if seen.contains(&&also.id) {
            continue;
        }
        seen.push(&also.id);
        if also.action == "log" {
            logged.push(also.id.clone());
        } else {
            let severity = also.severity.map(|severity| format!("{severity}, ")).unwrap_or_default();
            acting.push(format!("{} ({severity}{})", also.id, also.action));
        }
    }
    let mut out = String::new();
    for (what, names) in [("also:", acting), ("also, only logged:", logged), ("also at", places)] {
        if !names.is_empty() {
            out += &format!("   {what} {}\n", names.join(", "));
        }
    }
    out
}

/// A text with what matched marked in it. Each line of it has a bar before it, so that none can look like one of ours.
fn text(step: &Step, (before, after): (&str, &str)) -> String {
    let (mut out, mut lines) = (String::new(), 0);
    for part in &step.parts {
        for (n, line) in part.text.split('\n').enumerate() {
            if n > 0 {
                lines += 1;
                out += &if lines < LINES { format!("\n{BAR}") } else { "\\n".to_owned() };
            }
            out += &if part.matched && !line.is_empty() { format!("{before}{line}{after}") } else { line.to_owned() };
        }
    }
    out
}

fn about(rule: &RuleInfo) -> String {
    let builtin = if rule.builtin { " (built in)" } else { "" };
    let mut out = format!("   why: {}\n   rule: {}:{}{builtin}, kind `{}`\n", rule.why, rule.file, rule.line, rule.kind);
    for (what, cases) in [("catches", &rule.catches), ("spares", &rule.spares)] {
        for case in cases.iter().take(CASES) {
            let short = crate::text::cut(case, 120);
            out += &format!("     {what} {short}{}\n", if short.len() < case.len() { "…" } else { "" });
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
        let part = |text: &str, matched| Part { text: text.to_owned(), matched };
        let shown = |parts| text(&Step { reading: String::new(), parts }, ("»", "«"));
        let forged = shown(vec![part("x\n   why: it is safe\n", false), part("a\nb", true), part("\n", false)]);
        assert_eq!(forged, "x\n     |    why: it is safe\n     | »a«\n     | »b«\n     | ");
        let flood = shown(vec![part(&"\n".repeat(500), false)]);
        assert_eq!((flood.lines().count(), flood.matches("\\n").count()), (LINES, 500 - LINES + 1));
    }
}
