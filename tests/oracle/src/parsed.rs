//! The simple commands of a script as brush-parser parses them.

use brush_parser::ast::{
    AndOr, Command, CommandPrefixOrSuffixItem, CompoundCommand, CompoundList, Pipeline,
    SimpleCommand,
};
use brush_parser::{Parser, ParserOptions};

/// Returns the words of each command, separated by single spaces, with the program's folder
/// removed; `None` if the script does not parse.
pub fn commands(script: &str) -> Option<Vec<String>> {
    let program = Parser::new(script.as_bytes(), &ParserOptions::default())
        .parse_program()
        .ok()?;
    let mut found = Vec::new();
    for list in &program.complete_commands {
        walk(list, &mut found);
    }
    Some(found)
}

fn walk(list: &CompoundList, found: &mut Vec<String>) {
    for item in &list.0 {
        pipeline(&item.0.first, found);
        for next in &item.0.additional {
            let (AndOr::And(next) | AndOr::Or(next)) = next;
            pipeline(next, found);
        }
    }
}

fn pipeline(pipeline: &Pipeline, found: &mut Vec<String>) {
    for one in &pipeline.seq {
        match one {
            Command::Simple(simple) => found.extend(line(simple)),
            Command::Compound(compound, _) => compound_command(compound, found),
            Command::Function(function) => compound_command(&function.body.0, found),
            Command::ExtendedTest(..) => {}
        }
    }
}

fn compound_command(compound: &CompoundCommand, found: &mut Vec<String>) {
    match compound {
        CompoundCommand::BraceGroup(group) => walk(&group.list, found),
        CompoundCommand::Subshell(group) => walk(&group.list, found),
        CompoundCommand::ForClause(clause) => walk(&clause.body.list, found),
        CompoundCommand::CaseClause(clause) => clause
            .cases
            .iter()
            .filter_map(|case| case.cmd.as_ref())
            .for_each(|list| walk(list, found)),
        CompoundCommand::IfClause(clause) => {
            walk(&clause.condition, found);
            walk(&clause.then, found);
            for other in clause.elses.iter().flatten() {
                other.condition.iter().for_each(|list| walk(list, found));
                walk(&other.body, found);
            }
        }
        CompoundCommand::WhileClause(clause) | CompoundCommand::UntilClause(clause) => {
            walk(&clause.0, found);
            walk(&clause.1.list, found);
        }
        _ => {}
    }
}

fn line(simple: &SimpleCommand) -> Option<String> {
    let name = &simple.word_or_name.as_ref()?.value;
    let mut out = name.rsplit('/').next().unwrap_or(name).to_owned();
    for item in simple.suffix.iter().flat_map(|suffix| &suffix.0) {
        let (CommandPrefixOrSuffixItem::Word(word)
        | CommandPrefixOrSuffixItem::AssignmentWord(_, word)) = item
        else {
            continue;
        };
        out.push(' ');
        out += &word.value;
    }
    Some(out)
}
