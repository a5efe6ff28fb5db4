//! `lychgate explain AUDIT-ID`

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;

use super::judges;
use crate::review::explain::{About, Explained, Step, Told, explain};
use crate::review::{Entry, Log};

/// Shortest part of an id that is looked for.
const LEAST: usize = 8;
/// Cases shown of a rule, each way.
const CASES: usize = 3;

/// What to explain.
#[derive(clap::Args)]
pub(super) struct Args {
    /// The id, as it stands in the audit log and in what agents are told; its first 8 characters will do
    audit: String,
    /// Config file with the policies; `lychgate.toml` if it is there
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The audit log, in place of that of the config
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// Policy for upstreams that the config does not name (`lychgate wrap`)
    #[arg(long, default_value = "default", value_name = "NAME")]
    policy: String,
    /// One JSON document: a list with an entry for each message of that id
    #[arg(long)]
    json: bool,
}

/// Explains; 0 if the message is found, 1 if there is none of that id, 2 if something cannot be read.
///
/// # Errors
/// What cannot be written.
pub(super) fn run(args: &Args, out: &mut dyn Write, err: &mut dyn Write) -> io::Result<u8> {
    match explained(args) {
        Ok(all) if all.is_empty() => {
            writeln!(
                err,
                "no message of the audit log has the id `{}`\n  hint: `lychgate audit tail` shows ids",
                args.audit.escape_debug()
            )?;
            Ok(1)
        }
        Ok(all) if args.json => {
            serde_json::to_writer_pretty(&mut *out, &all).map_err(io::Error::from)?;
            writeln!(out)?;
            Ok(0)
        }
        Ok(all) => {
            let marks = marks();
            for one in &all {
                out.write_all(printed(one, marks).as_bytes())?;
            }
            Ok(0)
        }
        Err(message) => {
            writeln!(err, "error: {message}")?;
            Ok(2)
        }
    }
}

fn explained(args: &Args) -> Result<Vec<Explained>, String> {
    if args.audit.len() < LEAST {
        return Err(format!(
            "`{}` is too short\n  hint: give {LEAST} characters of the id at the least",
            args.audit.escape_debug()
        ));
    }
    let config = judges::config(args.config.as_deref()).map_err(|faults| judges::told(&faults))?;
    let judges = judges::judges(&config, &args.policy).map_err(|faults| judges::told(&faults))?;
    let log = judges::log(args.log.as_deref(), &config)?;
    let stores = judges::stores(&config)?;
    let entries = Log::open(&log).map_err(|error| error.to_string())?.entries();
    let is_it = |entry: &Entry| entry.event() == "judged" && entry.audit().is_some_and(|id| id.starts_with(&args.audit));
    let mut all = Vec::new();
    for entry in entries.flatten().filter(is_it) {
        let whole = judges::id(&entry).map(|id| judges::kept(&stores, id)).transpose()?.flatten();
        let one = explain(&entry, whole.as_ref(), &judges);
        all.push(one.map_err(|missing| format!("{}\n  hint: name the config with `--config FILE`", missing.words()))?);
    }
    let first = all.first().map(|one: &Explained| one.audit.clone()).unwrap_or_default();
    match all.iter().find(|one| one.audit != first) {
        Some(other) => Err(format!("several ids begin so: `{first}`, `{}`\n  hint: give more of it", other.audit)),
        None => Ok(all),
    }
}

/// What stands before and after a match: colour where a person looks on.
fn marks() -> (&'static str, &'static str) {
    let colour = io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    if colour { ("\u{1b}[1;31m", "\u{1b}[0m") } else { ("»", "«") }
}

fn printed(one: &Explained, marks: (&str, &str)) -> String {
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
    for (n, told) in one.findings.iter().enumerate() {
        out += &finding(n + 1, told, marks);
    }
    if let Some(passes) = one.suppressed_passes {
        out += match passes {
            true => {
                "\nWith what is proposed above the message passes; the gate takes it up by itself once it is in the config.\n"
            }
            false => "\nEven with all that is proposed above the message would not pass as it is.\n",
        };
    }
    out + "\n"
}

fn finding(n: usize, told: &Told, marks: (&str, &str)) -> String {
    let severity = told.rule.as_ref().map(|rule| format!("{}, ", rule.severity)).unwrap_or_default();
    let title = told.rule.as_ref().map(|rule| format!(": {}", rule.title)).unwrap_or_default();
    let mut out = format!("\n{n}. {} ({severity}{}){title}\n", told.id, told.action);
    let at = if told.at.is_empty() { "/" } else { &told.at };
    let argument = told.argument.as_ref().map(|argument| format!(", argument `{argument}`")).unwrap_or_default();
    out += &format!("   at {at}{argument}, by the reading `{}`\n", told.reading);
    match (told.recorded, told.found_again) {
        (true, true) => {}
        (true, false) => out += "   found then; not found again in the text that could be had\n",
        (false, _) => out += "   not in the line: the rules in force find it now\n",
    }
    if let Some(shape) = &told.shape {
        out += &format!("   a secret, which is not shown; its shape: {shape}\n");
    }
    for step in &told.steps {
        out += &format!("   {}:\n     {}\n", step.reading, text(step, marks));
    }
    if let Some(rule) = &told.rule {
        out += &about(rule);
    }
    if let Some(told) = &told.told {
        out += &format!("   the agent was told: {told}\n");
    }
    if let Some(note) = &told.note {
        out += &format!("   {note}\n");
    }
    if let Some(suppression) = &told.suppression {
        out += "   if it is a false alarm, this in the config lets it pass, and nothing else:\n\n";
        suppression.lines().for_each(|line| out += &format!("{line}\n"));
    }
    out
}

fn text(step: &Step, (before, after): (&str, &str)) -> String {
    let part = |part: &crate::review::explain::Part| {
        if part.matched { format!("{before}{}{after}", part.text) } else { part.text.clone() }
    };
    step.parts.iter().map(part).collect()
}

fn about(rule: &About) -> String {
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
