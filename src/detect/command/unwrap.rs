//! Removes wrappers from a command, reads the text that it passes to a shell or an interpreter, and
//! records each layer.

use std::borrow::Cow;
use std::rc::Rc;

use super::env_secrets;
use super::facts::{self, Facts};
use super::paths;
use super::programs::Programs;
use super::quote;
use super::reader::{CommandContext, Reader};
use super::simulate;
use super::traits::Traits;
use super::value::{Field, Taint, UNKNOWN, Value, join_words, taint_of_fields};
use super::wrappers;
use super::xargs::{self, build_commands};

/// The name in rules of a program whose name cannot be determined.
const UNKNOWN_PROGRAM: &str = "?";
/// Cost, in steps, of a program that is named by a pattern: the pattern is compared with every
/// known name.
const PATTERN_STEPS: usize = 256;
/// Maximum number of wrappers around one command.
const MAX_LAYERS: usize = 24;

/// Programs that a glob is compared with first (`/b?n/c?t`).
const COMMON_PROGRAMS: [&str; 26] = [
    "cat", "rm", "sh", "bash", "dash", "nc", "ncat", "curl", "wget", "base64", "python3", "python",
    "perl", "chmod", "chown", "dd", "mkfs", "shred", "tac", "head", "tail", "less", "more", "nl",
    "reboot", "shutdown",
];

impl Reader<'_> {
    /// Reads a simple command, whose words expanded to `fields`. Returns its output.
    pub(super) fn read_command(&mut self, fields: Rc<[Field]>, context: CommandContext) -> Value {
        let was_elsewhere = self.location.is_elsewhere;
        let out = self.read_layers(fields, context);
        self.location.is_elsewhere = was_elsewhere;
        out
    }

    /// Reads a simple command, wrapper by wrapper.
    fn read_layers(&mut self, mut fields: Rc<[Field]>, mut context: CommandContext) -> Value {
        if !self.links.is_empty() {
            fields = self.resolve_links(fields);
        }
        let mut from = 0;
        let with_listed =
            xargs::with_listed_files(&fields, &context.input, |name| self.file_content(name));
        if let Some(listed) = with_listed {
            fields = listed.into();
        }
        for _ in 0..MAX_LAYERS {
            if !self.spend_command() {
                return Value::unknown(Taint::NONE);
            }
            let Some(first) = fields.get(from) else {
                return context.input;
            };
            self.spend_steps(
                (fields.len() - from) / 4 + if first.glob { PATTERN_STEPS } else { 0 },
            );
            if from > 0 && first.text.contains(' ') && !first.text.starts_with('/') {
                // `sudo -s`, `flock` and similar programs pass one text to a shell.
                return self
                    .read_inner_script(&join_words(fields.iter().skip(from)), &context.input);
            }
            let program = program_name(first, self.programs());
            let data = self.programs().get(&program);
            let named_program = (program.as_str(), data);
            if from == 0
                && let Some(text) = self.alias_of(&program)
                && !text.starts_with(&program)
            {
                let rest: Vec<Cow<'_, str>> = fields
                    .iter()
                    .skip(1)
                    .map(|f| quote::as_word(&f.text))
                    .collect();
                return self.read_script(&format!("{text} {}", rest.join(" ")), &context.input);
            }
            let arguments = fields.get(from + 1..).unwrap_or_default();
            if let Some(out) = self.call_function(&program, arguments, &context) {
                let mut facts = Facts::command(
                    named_program,
                    &fields,
                    from,
                    self.folder.as_deref(),
                    context.input.taint,
                );
                self.finish_command(&mut facts, context, &out);
                self.facts.push(facts);
                return out;
            }
            let command_offset = data
                .and_then(|data| data.command_start(arguments))
                .or_else(|| wrappers::command_start_of_loader(&program, arguments));
            let folder = self.folder.as_deref();
            let mut facts = match command_offset {
                Some(own_count) => Facts::wrapper(named_program, &fields, from, own_count, folder),
                None => Facts::command(named_program, &fields, from, folder, context.input.taint),
            };
            facts.location = self.location.clone();
            let session = self
                .location
                .session_folder
                .as_deref()
                .filter(|_| self.location.relative_folder.is_none());
            if !self.location.is_elsewhere {
                facts.note_current_folder(folder, session);
            }
            if facts.traits.has(Traits::CONTAINER) {
                facts.note_mounts(folder);
            }
            if facts.traits.has(Traits::RUNS_SQL) {
                facts.input = context.input.as_text().map(str::to_owned);
            }
            facts.executes |= first.taint;
            if first.text.contains('/') {
                facts.runs.extend(facts::read_path(&first.text, folder));
            }
            if first.text.contains('/')
                && let Some(file) = self.file_to_run(&first.text)
            {
                facts.executes |= file.taint;
                if let Some(text) = file.as_text() {
                    self.read_inner_script(text, &context.input);
                }
                if !file.known {
                    file.items
                        .iter()
                        .for_each(|source| self.read_source_code(source));
                }
            }
            if program == "env"
                && let Some(script) = split_string(arguments)
            {
                self.facts.push(facts);
                return self.read_inner_script(&script, &context.input);
            }
            if let Some(skip) = command_offset {
                let own_arguments = arguments.get(..skip).unwrap_or_default();
                let from_file = xargs::input_file(own_arguments).filter(|_| program == "xargs");
                let stdin = from_file.map_or_else(
                    || context.input.clone(),
                    |name| {
                        self.file_content(&name)
                            .unwrap_or_else(|| Value::unknown(Taint::NONE))
                    },
                );
                let mut commands = if program == "xargs" {
                    build_commands(&fields, from + 1 + skip, arguments, &stdin)
                } else {
                    Vec::new()
                };
                facts.environment = context.environment.clone();
                let assignments: Vec<(String, String)> = arguments
                    .iter()
                    .take(skip)
                    .filter_map(|f| f.text.split_once('='))
                    .map(|(name, value)| (name.to_owned(), value.to_owned()))
                    .collect();
                facts.environment.extend(assignments.iter().cloned());
                context.environment.extend(assignments);
                self.location.is_elsewhere |= facts.traits.has(Traits::CONTAINER);
                self.facts.push(facts);
                if commands.is_empty()
                    && program == "xargs"
                    && stdin.taint != Taint::NONE
                    && let Some(mark) = xargs::placeholder(own_arguments)
                {
                    // The inserted items are not known, but their origin is.
                    let template = fields.iter().skip(from + 1 + skip);
                    let insert = |field: &Field| {
                        if field.text.contains(&mark) {
                            let text = field.text.replace(&mark, UNKNOWN);
                            Field {
                                text,
                                ..field.clone()
                            }
                            .with(stdin.taint)
                        } else {
                            field.clone()
                        }
                    };
                    commands.push(template.map(insert).collect());
                }
                let Some(last) = commands.pop() else {
                    from += 1 + skip;
                    continue;
                };
                if !self.go_deeper() {
                    return Value::unknown(Taint::NONE);
                }
                for inner_fields in commands {
                    self.read_command(inner_fields.into(), CommandContext::default());
                }
                let out = self.read_command(last.into(), context);
                self.come_up();
                return out;
            }
            return self.read_innermost(facts, context);
        }
        self.give_up();
        Value::unknown(Taint::NONE)
    }

    /// Reads a command that wraps no other: what it runs, sets, reads and writes.
    fn read_innermost(&mut self, mut facts: Facts, context: CommandContext) -> Value {
        let program = facts.program.clone();
        let fields = facts.fields.clone();
        let arguments = fields.get(facts.from + 1..).unwrap_or_default();
        let mut own_taint = Taint::NONE;
        for (flow_read, target) in context.redirect_targets() {
            if flow_read {
                own_taint |= facts.redirect_read(target, self.folder.as_deref());
            }
        }
        let out = self.read_built_in(&program, arguments, &context);
        let interpreter = self.programs().interpreter(&program);
        if let Some(kind) = interpreter {
            self.interpret(kind, &mut facts, arguments, &context.input);
        }
        if !self.read_shell_out(&mut facts, arguments, &context) && interpreter.is_none() {
            self.read_unknown_wrapper(&facts, arguments, &context);
        }
        self.run_text_file(&mut facts, arguments, &context.input);
        // What earlier commands wrote to the files that it sends.
        let sent: Taint = facts
            .sent_names()
            .filter_map(|name| Some(self.file_content(name)?.taint))
            .collect();
        // Settings of a server are often made from the environment, and copied there.
        let copies = matches!(program.as_str(), "scp" | "rsync" | "sftp");
        facts.sends |= match copies {
            true => sent.without(Taint::SOCKET | Taint::ENVIRONMENT),
            false => sent.without(Taint::SOCKET),
        };
        let connects =
            program == "openssl" && arguments.first().is_some_and(|f| f.text == "s_client");
        if facts.traits.has(Traits::FETCHES) || connects {
            own_taint |= Taint::DOWNLOAD;
        }
        if facts.traits.has(Traits::PASSES_ON) {
            own_taint |= arguments
                .iter()
                .filter_map(|field| Some(self.file_content(&field.text)?.taint))
                .collect();
        }
        if !facts.traits.has(Traits::NAMES_FILES) {
            own_taint |= facts.reads.iter().map(facts::taint_of).collect();
        }
        let prints_environment = |program: &str| {
            matches!(program, "env" | "printenv") || program == "set" && arguments.is_empty()
        };
        if program == "printenv"
            && arguments
                .iter()
                .any(|field| env_secrets::is_secret(&field.text))
        {
            own_taint |= Taint::SECRET_VARIABLE;
        } else if prints_environment(&program) {
            own_taint |= Taint::ENVIRONMENT;
        }
        let data = facts.program_data.clone();
        let docker_helper = program.starts_with("docker-credential-");
        if docker_helper
            || data
                .as_ref()
                .is_some_and(|data| data.prints_secret(arguments))
        {
            own_taint |= Taint::SECRET_VARIABLE;
        }
        if matches!(program.as_str(), "history" | "fc") {
            own_taint |= Taint::PERSONAL;
        }
        let decodes = data.is_some_and(|known| known.decodes(arguments));
        if decodes {
            own_taint |= Taint::DECODED;
        }
        if matches!(program.as_str(), "echo" | "printf" | "print") {
            own_taint |= taint_of_fields(arguments);
        }
        let out = match out {
            Some(value) => value.with(own_taint | taint_of_fields(arguments)),
            None if program == "pwd" => self
                .folder
                .clone()
                .map_or_else(|| Value::unknown(own_taint), Value::text),
            None if program == "sed" && !self.spend_edit() => {
                Value::unknown(own_taint | context.input.taint)
            }
            None => simulate::output(&program, arguments, &context.input, |name| {
                self.file_content(name)
            })
            .unwrap_or_default()
            .with(own_taint | context.input.taint),
        };
        self.spend_bytes(out.items.iter().map(String::len).sum());
        if decodes && let Some(text) = out.as_text() {
            self.texts.push(text.to_owned());
        }
        self.keep_saved_files(&mut facts, arguments, &context.input, &out);
        self.finish_command(&mut facts, context, &out);
        self.facts.push(facts);
        out
    }

    /// Reads a built-in command of the shell.
    fn read_built_in(
        &mut self,
        program: &str,
        arguments: &[Field],
        context: &CommandContext,
    ) -> Option<Value> {
        let operands = || arguments.iter().filter(|f| !f.text.starts_with('-'));
        match program {
            "cd" | "pushd" | "chdir" => {
                let target = operands().next().map_or("~", |f| f.text.as_str());
                let is_back = arguments.first().is_some_and(|f| f.text == "-");
                let before = self
                    .variables
                    .get("OLDPWD")
                    .and_then(Value::as_text)
                    .map(str::to_owned)
                    .filter(|_| is_back);
                let target = before
                    .as_deref()
                    .unwrap_or(if is_back { "-" } else { target });
                match &self.folder {
                    Some(folder) => self.assign("OLDPWD", Value::text(folder.clone())),
                    None => _ = self.variables.remove("OLDPWD"),
                }
                let absolute = paths::normal(target, self.folder.as_deref())
                    .filter(|path| path.starts_with(['/', '~']));
                self.location.change_to(target, absolute.as_deref());
                let home = paths::home_of(target, self.folder.as_deref());
                self.folder = match (absolute, home) {
                    (Some(path), Some(home)) => Some(path.replacen('~', &home, 1)),
                    (absolute, _) => absolute,
                };
            }
            "export" | "declare" | "typeset" | "local" | "readonly" | "setenv" | "set" => {
                for field in operands() {
                    if field.text.contains("[$(") {
                        self.run_subscripts(&field.text);
                    }
                    if let Some((name, value)) = field.text.split_once('=') {
                        self.assign_word(name, value, false, field.taint);
                        if program == "export" || program == "declare" || program == "typeset" {
                            self.read_environment(&[(name.to_owned(), value.to_owned())]);
                        }
                    }
                }
                match arguments {
                    [flag, values @ ..] if program == "set" && flag.text == "--" => {
                        self.set_positional(values);
                    }
                    // ksh and zsh set a list so, fish a variable.
                    [flag, name, rest @ ..]
                        if program == "set" && matches!(flag.text.as_str(), "-A" | "-g" | "-l") =>
                    {
                        let is_end = rest.first().is_some_and(|field| field.text == "--");
                        let values = rest.get(usize::from(is_end)..).unwrap_or_default();
                        self.assign_words(&name.text, values);
                    }
                    [name, values @ ..] if program == "set" && !values.is_empty() => {
                        let text = join_words(values);
                        self.assign_words(&name.text, &[Field::plain(&text)]);
                    }
                    _ => {}
                }
            }
            "hash" => {
                if let [flag, file, name, ..] = arguments
                    && flag.text == "-p"
                {
                    self.set_alias(&name.text, &file.text);
                }
            }
            "alias" => {
                for field in operands() {
                    if let Some((name, text)) = field.text.split_once('=') {
                        self.set_alias(name, text);
                    }
                }
            }
            "read" | "mapfile" | "readarray" => self.read_input(program, arguments, context),
            "printf" if arguments.first().is_some_and(|f| f.text == "-v") => {
                let name = arguments.get(1)?.text.clone();
                let result =
                    simulate::output("printf", arguments.get(2..)?, &Value::empty(), |_| None)?;
                self.assign(&name, result);
            }
            "eval" => {
                return Some(self.read_script(&join_words(arguments), &context.input));
            }
            // All of these evaluate the subscript of a name as arithmetic.
            "let" | "test" | "[" | "[[" | "unset" => {
                for field in arguments.iter().filter(|field| {
                    program == "let" || field.text.contains("[$(") || field.text.contains("[`")
                }) {
                    self.run_subscripts(&field.text);
                }
            }
            "trap" => {
                self.read_inner_script(&operands().next()?.text.clone(), &Value::empty());
            }
            _ => return None,
        }
        None
    }
}

impl Reader<'_> {
    /// Sets a variable to a list of words, if it has a valid name.
    fn assign_words(&mut self, name: &str, words: &[Field]) {
        let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if is_name {
            let items = words.iter().map(|word| word.text.clone()).collect();
            self.assign(name, Value::list(items));
        }
    }
}

/// Returns the script of `env -S 'command and arguments'`.
fn split_string(arguments: &[Field]) -> Option<String> {
    let (at, joined) = arguments.iter().enumerate().find_map(|(at, f)| {
        let rest = ["--split-string=", "--split-string", "-S", "-vS", "-iS"]
            .iter()
            .find_map(|flag| f.text.strip_prefix(flag))?;
        Some((at, rest))
    })?;
    let rest = arguments.iter().skip(at + 1).map(|f| f.text.as_str());
    Some(
        std::iter::once(joined)
            .chain(rest)
            .filter(|part| !part.is_empty())
            .collect::<Vec<_>>()
            .join(" "),
    )
}

/// Returns the name by which rules know a program: its base name, without `.exe` and with globs
/// resolved.
pub(super) fn program_name(field: &Field, programs: &Programs) -> String {
    if field.is_unknown() {
        return UNKNOWN_PROGRAM.to_owned();
    }
    let text = field.text.trim();
    let base = text
        .rsplit('/')
        .next()
        .filter(|base| !base.is_empty())
        .unwrap_or(text);
    let base = base
        .strip_suffix(".exe")
        .or_else(|| base.strip_suffix(".EXE"))
        .unwrap_or(base);
    if field.glob && is_pattern(base) {
        let fits = |name: &&str| super::glob::matches(base, name);
        let literal = base.bytes().filter(u8::is_ascii_alphanumeric).count();
        let mut runners = programs.runners().filter(|_| literal >= 2);
        if let Some(name) = COMMON_PROGRAMS
            .into_iter()
            .find(fits)
            .or_else(|| runners.find(fits))
        {
            return name.to_owned();
        }
    }
    base.to_owned()
}

/// Reports whether a program's name is a pattern that the file system resolves. `[` is a program.
pub(super) fn is_pattern(name: &str) -> bool {
    name.contains(['?', '*']) && !name.starts_with("*.")
        || name.contains('[') && name.contains(']') && name.len() > 3
}
