//! Joins strings that the receiver reads as one, quoted as a shell requires.

use std::borrow::Cow;
use std::rc::Rc;

use crate::detect::ReadAs;
use crate::message::{Role, Value, ValueKind};

use super::names::{self, Head};
use super::tool::{Runs, Tool};
use super::{Frame, Node, Scope, ToolReaders, Unit, Units, look};

/// Maximum number of variables that are set before a command.
const VARIABLES: usize = 64;
/// Delimiter of the here-documents that are generated here.
const END: &str = "LYCHGATE_STDIN";

/// A line joined from the elements of a list.
pub(super) struct Line {
    pub(super) text: String,
    /// Whether the elements have no meaning by themselves.
    pub(super) covers: bool,
}

impl<'m> Units<'m> {
    /// Joins a program with its arguments, folder, variables and standard input into one command.
    /// Returns the members that it covers.
    pub(super) fn join<'j>(
        &mut self,
        frame: &Frame<'j>,
        scope: &Rc<Scope>,
        members: &[(Cow<'j, str>, Value<'j>)],
        readers: &ToolReaders<'_>,
    ) -> [Option<Value<'j>>; 3] {
        let none = [None; 3];
        if (frame.pinned && frame.head == Head::Text)
            || scope.stored
            || scope.tool.runs == Runs::Mentions
        {
            return none;
        }
        let pinned_head = |key: &str| {
            let argument = if frame.argument.is_empty() {
                key.to_owned()
            } else {
                format!("{}.{key}", frame.argument)
            };
            readers.kind(&argument)
        };
        let find = |is: fn(&str) -> bool| {
            members
                .iter()
                .find(|(key, _)| is(key) && pinned_head(key) != Some(Head::Text))
        };
        let list = find(names::is_argument_list)
            .filter(|(_, value)| value.kind() == ValueKind::Array || value.str().is_some());
        let runs = matches!(scope.tool.runs, Runs::All | Runs::Some);
        let programs = || {
            let may_be_program = |(key, value): &&(Cow<'j, str>, Value<'j>)| {
                // A list is a program with its own arguments.
                (value.kind() == ValueKind::String
                    || (names::head(key) == Head::Shell && is_words(*value)))
                    && (pinned_head(key) == Some(Head::Shell) || names::is_program(key))
                    && pinned_head(key) != Some(Head::Text)
            };
            // A member called a file or an application is a program only if there are arguments
            // next to it.
            let is_shell_key = |(key, _): &&(Cow<'j, str>, Value<'j>)| {
                names::head(key) == Head::Shell && !names::is_language(key)
            };
            let at_least =
                |(key, _): &&(Cow<'j, str>, Value<'j>)| runs || names::head(key) == Head::Unknown;
            let program_beside =
                || list.and_then(|_| members.iter().filter(may_be_program).find(at_least));
            members
                .iter()
                .filter(may_be_program)
                .find(is_shell_key)
                .or_else(program_beside)
        };
        let (program, program_member) = match (programs(), list) {
            (Some((key, value)), _) => {
                let text = value
                    .str()
                    .unwrap_or_else(|| Cow::Owned(quoted_words(*value).trim_start().to_owned()));
                (text, Some((key, *value)))
            }
            // The words that `ssh` is given beside a host are a command of that host.
            (None, Some(_))
                if scope.tool.program.is_some()
                    || scope.tool.is_program() && !scope.tool.connects =>
            {
                (
                    Cow::Owned(
                        scope
                            .tool
                            .program
                            .map_or_else(|| scope.tool.last_word.clone(), str::to_owned)
                            + &find(names::is_verb)
                                .map(|(_, verb)| operands(*verb))
                                .unwrap_or_default(),
                    ),
                    None,
                )
            }
            _ => return none,
        };
        let mut words = list
            .map(|(_, value)| quoted_words(*value))
            .unwrap_or_default();
        // `{ cmd, flags, target }`: flags need an operand.
        let only_flags = words.split_whitespace().all(|word| word.starts_with('-'));
        if runs
            && only_flags
            && program_member.is_some()
            && !program.trim().contains(char::is_whitespace)
        {
            let flags = list.is_some_and(|(list, _)| names::is_flags(list));
            let may_be_operand = |key: &str| names::is_operand(key) || flags && names::is_file(key);
            let is_joined = |key: &str| {
                program_member.is_some_and(|(program, _)| program == key)
                    || list.is_some_and(|(list, _)| list == key)
            };
            for (_, value) in members.iter().filter(|(key, _)| {
                may_be_operand(key) && !is_joined(key) && pinned_head(key) != Some(Head::Text)
            }) {
                words.push_str(&operands(*value));
            }
        }
        // The folder of a command in a container is not on this machine.
        let folder = find(names::is_folder)
            .filter(|_| !scope.in_container)
            .filter(|(key, _)| program_member.is_none_or(|(program, _)| program != key))
            .and_then(|(_, value)| value.str())
            .filter(|folder| {
                folder.starts_with(['/', '~'])
                    || folder.starts_with("..")
                    || folder.contains([':', '\\'])
            });
        let variables = find(names::is_environment)
            .map(|(_, value)| export_commands(*value))
            .unwrap_or_default();
        let stdin = find(names::is_stdin)
            .filter(|_| program_member.is_some())
            .and_then(|(_, value)| Some((*value, value.str()?)));
        if words.is_empty() && folder.is_none() && variables.is_empty() && stdin.is_none() {
            return none;
        }
        let mut line = folder
            .as_ref()
            .map(|folder| format!("cd {} && ", quote_folder(folder)))
            .unwrap_or_default();
        line.push_str(&variables);
        let with_program = program_member.and_then(|_| with_program(&scope.tool, &program));
        match with_program {
            Some(program) => line.push_str(&program),
            // `C:\Program Files\…\x.exe`
            None if is_spaced_path(&program) => line.push_str(&format!("\"{program}\"")),
            None => line.push_str(&program),
        }
        line.push_str(&words);
        if let Some((_, text)) = &stdin {
            line.push_str(&heredoc(text));
        }
        let (step, argument) = match &program_member {
            Some((key, _)) => (key.to_string(), join_names(&frame.argument, key)),
            None => (
                list.map(|(key, _)| key.to_string()).unwrap_or_default(),
                join_names(&frame.argument, "command"),
            ),
        };
        self.nodes.push(Node {
            parent: frame.node,
            step,
        });
        let node = self.nodes.len() - 1;
        let role = Role::Value;
        let read_as = ReadAs::Shell;
        self.units.push(Unit {
            text: Cow::Owned(line),
            argument,
            role,
            read_as,
            joined: true,
            node,
        });
        // Joined members are not read again, except for the program if a folder in cmd.exe syntax
        // may keep the line from being parsed as a command.
        let windows = folder.is_some_and(|folder| folder.contains(['\\', ':']));
        let code =
            look::read_code(scope.language.as_deref(), &scope.tool, &program) != ReadAs::Shell;
        let program = program_member
            .map(|(_, value)| value)
            .filter(|_| !windows && !code);
        let list = list.filter(|_| !words.is_empty()).map(|(_, value)| *value);
        [program, list, stdin.map(|(value, _)| value)]
    }
}

/// Returns whether a text is the path of a program of Windows that contains blanks.
fn is_spaced_path(program: &str) -> bool {
    program.contains(' ')
        && program.get(1..3) == Some(":\\")
        && !program.contains(['"', '/'])
        && [".exe", ".com", ".bat", ".cmd"]
            .iter()
            .any(|end| program.to_ascii_lowercase().ends_with(end))
}

/// Joins a list of strings: into the words of one command, or into several commands, or into both
/// if it is ambiguous.
pub(super) fn lines(texts: &[Cow<'_, str>], several: bool) -> Vec<Line> {
    let spaced = |text: &str| text.trim().contains(char::is_whitespace);
    let Some((first, rest)) = texts.split_first() else {
        return Vec::new();
    };
    let words = || {
        texts
            .iter()
            .map(|text| quote(text))
            .collect::<Vec<_>>()
            .join(" ")
    };
    let has_flags = rest
        .iter()
        .any(|text| text.starts_with('-') || text.eq_ignore_ascii_case("/c"));
    if !several && !spaced(first) {
        return vec![Line {
            text: words(),
            covers: true,
        }];
    }
    let mut out = Vec::new();
    // `["sudo rm", "-rf", "/"]`: no command line begins with a flag.
    if has_flags || texts.iter().all(|text| !spaced(text)) {
        let arguments = rest
            .iter()
            .map(|text| format!(" {}", quote(text)))
            .collect::<String>();
        let is_path = look::is_path(first) && !first.starts_with('.');
        out.push(Line {
            text: if is_path {
                quote(first)
            } else {
                first.to_string()
            } + &arguments,
            covers: false,
        });
    }
    if rest.is_empty() {
        return out;
    }
    out.push(Line {
        text: texts.join("\n"),
        covers: false,
    });
    out
}

/// Returns a command of a tool that is named after a program, with the program prepended.
pub(super) fn with_program(tool: &Tool, command: &str) -> Option<String> {
    let program = tool.program?;
    let first = command.split_whitespace().next()?;
    let name = first.rsplit('/').next().unwrap_or(first);
    let names_program = name == program
        || look::is_command(command)
        || command.trim_start().starts_with(['#', '$', '(']);
    (!names_program).then(|| format!("{program} {command}"))
}

/// Returns whether a list contains the words of one command.
fn is_words(list: Value<'_>) -> bool {
    let mut elements = list.elements();
    let first = elements.next().and_then(|first| first.str());
    first.is_some_and(|first| !first.trim().contains(char::is_whitespace))
        && elements.all(|more| more.kind() == ValueKind::String)
}

/// Returns the words of an argument list: each element quoted, a string unchanged.
fn quoted_words(list: Value<'_>) -> String {
    if let Some(text) = list.str() {
        return format!(" {text}");
    }
    let mut out = String::new();
    for element in list.elements() {
        let text = match element.kind() {
            ValueKind::Number => Cow::Borrowed(element.raw()),
            _ => element.str().unwrap_or_default(),
        };
        if element.kind() == ValueKind::String || !text.is_empty() {
            out.push(' ');
            out.push_str(&quote(&text));
        }
    }
    out
}

/// Returns the operands of a command: a word, or a list of words.
fn operands(value: Value<'_>) -> String {
    let word = |text: Cow<'_, str>| format!(" {}", quote(&text));
    value.str().map_or_else(
        || {
            value
                .elements()
                .filter_map(|element| element.str())
                .map(word)
                .collect()
        },
        word,
    )
}

/// Returns `export A='b'; ` for each variable: an object of variables, or a list of `A=b`.
fn export_commands(set: Value<'_>) -> String {
    let fits = |name: &str| {
        !name.is_empty()
            && name.len() < 128
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
    };
    let mut out = String::new();
    let mut push = |name: &str, value: &str| {
        if fits(name) {
            out.push_str(&format!("export {name}={}; ", quote(value)));
        }
    };
    for (name, value) in set.members().take(VARIABLES) {
        if let Some(value) = value.str() {
            push(&name, &value);
        }
    }
    for element in set.elements().take(VARIABLES) {
        if let Some((name, value)) = element
            .str()
            .as_deref()
            .and_then(|text| text.split_once('='))
        {
            push(name, value);
        }
    }
    out
}

/// Returns a here-document that nothing in the text can end.
fn heredoc(text: &str) -> String {
    let longest_suffix = text
        .lines()
        .filter_map(|line| line.strip_prefix(END))
        .map(str::len)
        .max();
    let end = END.to_owned() + &"_".repeat(longest_suffix.map_or(0, |longest| longest + 1));
    format!(" <<'{end}'\n{text}\n{end}\n")
}

fn join_names(argument: &str, key: &str) -> String {
    if argument.is_empty() {
        key.to_owned()
    } else {
        format!("{argument}.{key}")
    }
}

/// Quotes a folder so that a shell still expands its `~`.
fn quote_folder(folder: &str) -> String {
    folder
        .strip_prefix("~/")
        .map_or_else(|| quote(folder), |rest| format!("~/{}", quote(rest)))
}

/// Quotes one word for a shell.
pub(super) fn quote(text: &str) -> String {
    let plain = |b: u8| {
        b.is_ascii_alphanumeric()
            || matches!(
                b,
                b'-' | b'_' | b'.' | b'/' | b':' | b'=' | b',' | b'+' | b'@' | b'%' | b'*' | b'~'
            )
    };
    if !text.is_empty() && text.bytes().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}
