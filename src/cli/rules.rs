//! `lychgate rules test | list | explain ID | export DIR`: tests, lists, explains and exports
//! rules.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::{Args as ClapArgs, Subcommand};

mod cost;

use super::exit::{Exit, counted_faults};
use super::progress::run_with_progress;
use crate::detect::command::PROGRAM_FILES;
use crate::document::Fault;
use crate::message::Direction;
use crate::rules::{Action, BUILTIN_FILES, BUILTIN_README, Library, Rule};

/// What the verb is asked.
#[derive(ClapArgs, Debug)]
pub(super) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand, Debug)]
enum Verb {
    /// Run the test cases of rules: the built-in ones, or those in the given files and folders
    Test {
        /// Rule files, or folders of them
        paths: Vec<PathBuf>,
        /// Report what each rule costs on an ordinary text: how often its regexes run, and how many
        /// bytes they look at
        #[arg(long = "cost", value_name = "TEXT")]
        texts: Vec<PathBuf>,
        /// Fail if a rule's regexes look at more bytes than this for each kilobyte of the texts
        #[arg(long, value_name = "BYTES", requires = "texts")]
        cost_bytes_per_kilobyte: Option<usize>,
    },
    /// List the rules: id, direction, severity, action, kind, pack, title
    List {
        /// Files or folders of rules that extend the built-in ones
        #[arg(long = "rules", value_name = "PATH")]
        rules: Vec<PathBuf>,
        /// Print one JSON document
        #[arg(long)]
        json: bool,
    },
    /// Describe a rule and how to change it
    Explain {
        /// The rule's id, or a former id
        id: String,
        /// Files or folders of rules that extend the built-in ones
        #[arg(long = "rules", value_name = "PATH")]
        rules: Vec<PathBuf>,
    },
    /// Write the built-in rule files and their guide to a folder
    Export {
        /// The folder; created if missing
        directory: PathBuf,
        /// Overwrite existing files
        #[arg(long)]
        force: bool,
    },
}

/// Runs the command; data goes to `out`, everything else to `err`. Returns the exit code: 0 on
/// success, 1 if there are failures.
///
/// # Errors
/// The output cannot be written.
pub(super) fn run(args: &Args, out: &mut dyn Write, err: &mut dyn Write) -> io::Result<u8> {
    let result = match &args.verb {
        Verb::Test { paths, texts, .. } if texts.is_empty() => test(paths, out, err),
        Verb::Test {
            paths,
            texts,
            cost_bytes_per_kilobyte,
        } => cost(paths, texts, *cost_bytes_per_kilobyte, out),
        Verb::List { rules, json } => list(rules, *json, out),
        Verb::Explain { id, rules } => explain(id, rules, out),
        Verb::Export { directory, force } => export(directory, *force, out, err),
    };
    result.or_else(|exit| exit.report(err))
}

fn test(paths: &[PathBuf], out: &mut dyn Write, err: &mut dyn Write) -> Result<u8, Exit> {
    let try_all = || Library::read(paths.is_empty(), paths).and_then(|library| library.try_cases());
    let trial =
        run_with_progress("trying every case of every rule", err, try_all)?.map_err(faulty)?;
    writeln!(out, "{trial}")?;
    Ok(u8::from(!trial.failed_cases.is_empty()))
}

fn cost(
    paths: &[PathBuf],
    texts: &[PathBuf],
    limit: Option<usize>,
    out: &mut dyn Write,
) -> Result<u8, Exit> {
    let library = Library::read(paths.is_empty(), paths).map_err(faulty)?;
    let costs = cost::measure(&library, texts).map_err(faulty)?;
    Ok(u8::from(costs.write(limit, out)? > 0))
}

fn list(paths: &[PathBuf], as_json: bool, out: &mut dyn Write) -> Result<u8, Exit> {
    let library = Library::read(true, paths).map_err(faulty)?;
    if as_json {
        let rule_json = |rule: &Rule| {
            serde_json::json!({
                "id": rule.id.as_str(),
                "title": rule.title,
                "direction": rule.direction.name(),
                "severity": rule.severity.name(),
                "action": rule.action.name(),
                "kind": rule.find.word(),
                "enabled": rule.enabled,
                "packs": rule.packs,
                "file": &*rule.file,
                "line": rule.line,
                "builtin": rule.builtin,
            })
        };
        writeln!(
            out,
            "{}",
            library
                .rules()
                .iter()
                .map(|rule| rule_json(rule))
                .collect::<serde_json::Value>()
        )?;
        return Ok(0);
    }
    let rows: Vec<[String; 7]> = library.rules().iter().map(|rule| columns(rule)).collect();
    let mut widths = [0; 7];
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.len().max(*width);
        }
    }
    for row in &rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(widths) {
            let _infallible = write!(line, "{cell:width$}  ");
        }
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(0)
}

/// Returns the columns of a rule in the table of `lychgate rules list`.
fn columns(rule: &Rule) -> [String; 7] {
    let default_state = if rule.enabled { "on" } else { "off" };
    let pack = if rule.packs.is_empty() {
        default_state.to_owned()
    } else {
        format!("{default_state} ({})", rule.packs.join(", "))
    };
    [
        rule.id.to_string(),
        rule.direction.name().to_owned(),
        rule.severity.name().to_owned(),
        rule.action.name().to_owned(),
        rule.find.word().to_owned(),
        pack,
        rule.title.to_string(),
    ]
}

fn explain(id: &str, paths: &[PathBuf], out: &mut dyn Write) -> Result<u8, Exit> {
    let library = Library::read(true, paths).map_err(faulty)?;
    let Some(rule) = library.find(id) else {
        let hint = library.nearest(id);
        return Err(Exit::Code(
            1,
            format!("unknown rule `{id}`\n  hint: {hint}"),
        ));
    };
    let builtin = BUILTIN_FILES
        .iter()
        .find(|(name, _)| rule.builtin && **name == *rule.file);
    writeln!(out, "{}: {}\n\n{}\n", rule.id, rule.title, rule.why)?;
    let line = |out: &mut dyn Write, name: &str, text: &str| writeln!(out, "  {name:10}{text}");
    line(out, "judges", direction_text(rule.direction))?;
    line(out, "severity", rule.severity.name())?;
    line(
        out,
        "action",
        &format!("{}: {}", rule.action.name(), action_text(rule.action)),
    )?;
    line(out, "switched", &switch_text(rule))?;
    line(
        out,
        "defined in",
        &format!(
            "{}:{}{}",
            rule.file,
            rule.line,
            if builtin.is_some() { " (built in)" } else { "" }
        ),
    )?;
    if !rule.former_ids.is_empty() {
        let former_ids: Vec<&str> = rule
            .former_ids
            .iter()
            .map(crate::rules::RuleId::as_str)
            .collect();
        line(out, "former ids", &former_ids.join(", "))?;
    }
    for reference in &rule.references {
        line(out, "see", reference)?;
    }
    writeln!(out, "\nDefinition and test cases:\n")?;
    let text = builtin.map_or_else(
        || std::fs::read_to_string(&*rule.file),
        |(_, text)| Ok((*text).to_owned()),
    )?;
    for line in source(&text, rule.line) {
        writeln!(out, "    {line}")?;
    }
    print_overrides(rule, out)?;
    Ok(0)
}

fn direction_text(direction: Direction) -> &'static str {
    match direction {
        Direction::Outbound => "agents' messages (outbound)",
        Direction::Inbound => "servers' messages (inbound)",
    }
}

fn action_text(action: Action) -> &'static str {
    match action {
        Action::Log => "the finding is recorded; the message passes",
        Action::Strip => "the text is replaced by its decoded form without hidden parts",
        Action::Wrap => "the text passes between markers, under a warning",
        Action::Redact => "the match is replaced by a placeholder",
        Action::Quarantine => "the match is removed, with a warning in its place",
        Action::Withhold => "the whole block is removed, with a notice in its place",
        Action::Ask => "the call waits for approval, and is refused without it",
        Action::Block => "the message is refused, with the reason",
    }
}

fn switch_text(rule: &Rule) -> String {
    let default_state = if rule.enabled { "on" } else { "off" };
    let packs: Vec<String> = rule.packs.iter().map(|pack| format!("`{pack}`")).collect();
    if packs.is_empty() {
        default_state.to_owned()
    } else {
        format!(
            "{default_state}, with the pack {}",
            packs.join(", part of it ")
        )
    }
}

/// Returns the lines of a rule: from its `[[rule]]` to the next.
fn source(text: &str, line: usize) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().skip(line.saturating_sub(1)).collect();
    let next = lines
        .iter()
        .skip(1)
        .position(|line| line.trim_start().starts_with("[[rule]]"));
    lines.truncate(next.map_or(lines.len(), |next| next + 1));
    while lines
        .pop_if(|line| line.trim().is_empty() || line.starts_with('#'))
        .is_some()
    {}
    lines
}

/// Writes the config settings that change a rule, the mildest first.
fn print_overrides(rule: &Rule, out: &mut dyn Write) -> io::Result<()> {
    let id = &rule.id;
    writeln!(
        out,
        "\nTo change it for one policy (here `default`), add one of these lines to the config:\n"
    )?;
    writeln!(out, "    [policy.default.override]")?;
    if rule.action != Action::Log {
        writeln!(
            out,
            "    {id} = {{ action = \"log\" }}        # record only"
        )?;
    }
    match rule.enabled {
        true => writeln!(out, "    {id} = {{ enabled = false }}       # disable")?,
        false => writeln!(out, "    {id} = {{ enabled = true }}        # enable")?,
    }
    if !rule.packs.is_empty() {
        writeln!(
            out,
            "\nTo enable or disable a whole pack (the most specific setting applies):\n\n    [policy.default.packs]"
        )?;
        rule.packs
            .iter()
            .try_for_each(|pack| writeln!(out, "    {pack} = {}", !rule.enabled))?;
    }
    writeln!(
        out,
        "\nTo narrow it, copy the rule into your own file under the same id, and add exceptions:\n\n    \
         unless = ['''a regex that excuses matches near it''']\n    \
         only   = {{ tools = [\"run_*\"] }}\n\n\
         Then add the folder after the built-in rules; the copy replaces the rule:\n\n    \
         [policy.default]\n    rules = [\"builtin\", \"./rules\"]"
    )
}

fn export(
    directory: &Path,
    force: bool,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<u8, Exit> {
    let target = |name: &str| directory.join(name.strip_prefix("rules/").unwrap_or(name));
    let files: Vec<(PathBuf, &str)> = BUILTIN_FILES
        .iter()
        .chain(PROGRAM_FILES)
        .chain(&[("README.md", BUILTIN_README)])
        .map(|(name, text)| (target(name), *text))
        .collect();
    let existing: Vec<&PathBuf> = files
        .iter()
        .map(|(path, _)| path)
        .filter(|path| path.symlink_metadata().is_ok())
        .collect();
    if !existing.is_empty() && !force {
        for path in &existing {
            writeln!(err, "{}: already exists", path.display())?;
        }
        writeln!(
            err,
            "nothing was written\n  hint: `--force` overwrites them"
        )?;
        return Ok(1);
    }
    for (path, text) in &files {
        let result = path
            .parent()
            .map_or(Ok(()), std::fs::create_dir_all)
            .and_then(|()| std::fs::write(path, text));
        result.map_err(|error| Exit::Code(1, format!("{}: {error}", path.display())))?;
        writeln!(out, "{}", path.display())?;
    }
    Ok(0)
}

/// Returns the error for rules with faults.
fn faulty(faults: Vec<Fault>) -> Exit {
    Exit::Code(1, counted_faults(&faults))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(verb: Verb) -> (u8, String, String) {
        let mut out = Vec::new();
        let mut err = Vec::new();
        let code = run(&Args { verb }, &mut out, &mut err).unwrap();
        (
            code,
            String::from_utf8(out).unwrap(),
            String::from_utf8(err).unwrap(),
        )
    }

    #[test]
    fn the_built_in_rules_pass_their_trial() {
        let (code, out, err) = described(Verb::Test {
            paths: vec![],
            texts: vec![],
            cost_bytes_per_kilobyte: None,
        });
        assert_eq!((code, err.as_str()), (0, ""), "{out}");
        assert!(out.ends_with(" cases, 0 wrong\n"), "{out}");
    }

    #[test]
    fn every_rule_can_be_explained_and_each_explanation_says_how_to_change_it() {
        let library = Library::builtin();
        for rule in library.rules() {
            let (code, out, _) = described(Verb::Explain {
                id: rule.id.to_string(),
                rules: vec![],
            });
            assert_eq!(code, 0);
            assert_contains!(
                out,
                rule.why.as_str(),
                "[policy.default.override]",
                "[[rule]]",
                "catches",
                "spares"
            );
            assert_eq!(out.matches("[[rule]]").count(), 1, "{out}");
        }
        let id = library.rules().first().unwrap().id.as_str();
        let (code, _, err) = described(Verb::Explain {
            id: format!("{id}x"),
            rules: vec![],
        });
        assert_eq!(
            (code, err),
            (
                1,
                format!("unknown rule `{id}x`\n  hint: did you mean `{id}`?\n")
            )
        );
        let (_, out, _) = described(Verb::List {
            rules: vec![],
            json: false,
        });
        assert_eq!(out.lines().count(), library.rules().len());
        let (_, out, _) = described(Verb::List {
            rules: vec![],
            json: true,
        });
        let all: serde_json::Value = serde_json::from_str(&out).unwrap();
        assert_eq!(all.as_array().unwrap().len(), library.rules().len());
        assert_eq!(all[0]["id"], library.rules()[0].id.as_str());
    }

    #[test]
    fn what_is_exported_can_be_tried_and_is_not_written_over() {
        let dir = tempfile::TempDir::new().unwrap();
        let directory = dir.path().join("mine");
        let export = |force| {
            described(Verb::Export {
                directory: directory.clone(),
                force,
            })
        };
        let (code, out, _) = export(false);
        assert_eq!(
            (code, out.lines().count()),
            (0, BUILTIN_FILES.len() + PROGRAM_FILES.len() + 1)
        );
        assert_eq!(
            described(Verb::Test {
                paths: vec![directory.clone()],
                texts: vec![],
                cost_bytes_per_kilobyte: None
            })
            .1,
            described(Verb::Test {
                paths: vec![],
                texts: vec![],
                cost_bytes_per_kilobyte: None
            })
            .1
        );
        assert_eq!(
            std::fs::read_to_string(directory.join("README.md")).unwrap(),
            BUILTIN_README
        );
        let (code, out, err) = export(false);
        assert_eq!((code, out.as_str()), (1, ""));
        assert!(err.ends_with("hint: `--force` overwrites them\n"), "{err}");
        assert_eq!(export(true).0, 0);
    }
}
