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
use super::value::{Field, Taint, Value};
use super::wrappers;
use super::xargs::{self, fed};

/// The name in rules of a program whose name cannot be determined.
const UNKNOWN_PROGRAM: &str = "?";
/// Cost, in steps, of a program that is named by a pattern: the pattern is compared with every
/// known name.
const PATTERN_STEPS: usize = 256;
/// Maximum number of wrappers around one command.
const MAX_LAYERS: usize = 24;

/// Programs that a glob is compared with first (`/b?n/c?t`).
const SPELT: [&str; 26] = [
    "cat", "rm", "sh", "bash", "dash", "nc", "ncat", "curl", "wget", "base64", "python3", "python",
    "perl", "chmod", "chown", "dd", "mkfs", "shred", "tac", "head", "tail", "less", "more", "nl",
    "reboot", "shutdown",
];

impl Reader<'_> {
    /// Reads a simple command, whose words expanded to `fields`. Returns its output.
    pub(super) fn command(&mut self, fields: Rc<[Field]>, around: CommandContext) -> Value {
        let elsewhere = self.standing.elsewhere;
        let out = self.layers(fields, around);
        self.standing.elsewhere = elsewhere;
        out
    }

    /// Reads a simple command, wrapper by wrapper.
    fn layers(&mut self, mut fields: Rc<[Field]>, mut around: CommandContext) -> Value {
        if !self.links.is_empty() {
            fields = self.resolve_links(fields);
        }
        let mut from = 0;
        for _ in 0..MAX_LAYERS {
            if !self.spend_command() {
                return Value::unknown(Taint::NONE);
            }
            let Some(first) = fields.get(from) else {
                return around.input;
            };
            self.spend_steps(
                (fields.len() - from) / 4 + if first.glob { PATTERN_STEPS } else { 0 },
            );
            if from > 0 && first.text.contains(' ') && !first.text.starts_with('/') {
                // `sudo -s`, `flock` and similar programs pass one text to a shell.
                let words: Vec<&str> = fields.iter().skip(from).map(|f| f.text.as_str()).collect();
                return self.inner_script(&words.join(" "), &around.input);
            }
            let program = program_name(first, self.programs());
            let known = self.programs().get(&program);
            let named = (program.as_str(), known);
            if from == 0
                && let Some(text) = self.alias_of(&program)
                && !text.starts_with(&program)
            {
                let rest: Vec<Cow<'_, str>> = fields
                    .iter()
                    .skip(1)
                    .map(|f| quote::as_word(&f.text))
                    .collect();
                return self.script(&format!("{text} {}", rest.join(" ")), &around.input);
            }
            let arguments = fields.get(from + 1..).unwrap_or_default();
            if let Some(out) = self.call(&program, arguments, &around) {
                let mut facts = Facts::command(
                    named,
                    &fields,
                    from,
                    self.folder.as_deref(),
                    around.input.taint,
                );
                self.finish(&mut facts, around, &out);
                self.facts.push(facts);
                return out;
            }
            let wraps = known
                .and_then(|known| known.inner(arguments))
                .or_else(|| wrappers::inner_of_loader(&program, arguments));
            let folder = self.folder.as_deref();
            let mut facts = match wraps {
                Some(own) => Facts::wrapper(named, &fields, from, own, folder),
                None => Facts::command(named, &fields, from, folder, around.input.taint),
            };
            facts.standing = self.standing.clone();
            let session = self
                .standing
                .session
                .as_deref()
                .filter(|_| self.standing.below.is_none());
            if !self.standing.elsewhere {
                facts.note_here(folder, session);
            }
            if facts.traits.has(Traits::CONTAINER) {
                facts.note_mounts(folder);
            }
            if facts.traits.has(Traits::RUNS_SQL) {
                facts.input = around.input.as_text().map(str::to_owned);
            }
            facts.executes |= first.taint;
            if first.text.contains('/') {
                facts.runs.extend(facts::see(&first.text, folder));
            }
            if first.text.contains('/')
                && let Some(file) = self.file_to_run(&first.text)
            {
                facts.executes |= file.taint;
                if let Some(text) = file.as_text() {
                    self.inner_script(text, &around.input);
                }
                if !file.known {
                    file.items
                        .iter()
                        .for_each(|source| self.source_code(source));
                }
            }
            if program == "env"
                && let Some(script) = split_string(arguments)
            {
                self.facts.push(facts);
                return self.inner_script(&script, &around.input);
            }
            if let Some(skip) = wraps {
                let own = arguments.get(..skip).unwrap_or_default();
                let from_file = xargs::file(own).filter(|_| program == "xargs");
                let stdin = from_file.map_or_else(
                    || around.input.clone(),
                    |name| {
                        self.file(&name)
                            .unwrap_or_else(|| Value::unknown(Taint::NONE))
                    },
                );
                let mut fed = if program == "xargs" {
                    fed(&fields, from + 1 + skip, arguments, &stdin)
                } else {
                    Vec::new()
                };
                facts.environment = around.environment.clone();
                let given: Vec<(String, String)> = arguments
                    .iter()
                    .take(skip)
                    .filter_map(|f| f.text.split_once('='))
                    .map(|(name, value)| (name.to_owned(), value.to_owned()))
                    .collect();
                facts.environment.extend(given.iter().cloned());
                around.environment.extend(given);
                self.standing.elsewhere |= facts.traits.has(Traits::CONTAINER);
                self.facts.push(facts);
                if fed.is_empty()
                    && program == "xargs"
                    && stdin.taint != Taint::NONE
                    && let Some(mark) = xargs::mark(own)
                {
                    // The inserted items are not known, but their origin is.
                    let put = fields.iter().skip(from + 1 + skip).cloned();
                    let taint = |f: &Field| {
                        if f.text.contains(&mark) {
                            stdin.taint
                        } else {
                            Taint::NONE
                        }
                    };
                    fed.push(
                        put.map(|f| Field {
                            taint: f.taint | taint(&f),
                            ..f
                        })
                        .collect(),
                    );
                }
                let Some(last) = fed.pop() else {
                    from += 1 + skip;
                    continue;
                };
                if !self.go_deeper() {
                    return Value::unknown(Taint::NONE);
                }
                for one in fed {
                    self.command(one.into(), CommandContext::default());
                }
                let out = self.command(last.into(), around);
                self.come_up();
                return out;
            }
            return self.innermost(facts, around);
        }
        self.give_up();
        Value::unknown(Taint::NONE)
    }

    /// Reads a command that wraps no other: what it runs, sets, reads and writes.
    fn innermost(&mut self, mut facts: Facts, around: CommandContext) -> Value {
        let program = facts.program.clone();
        let fields = facts.fields.clone();
        let arguments = fields.get(facts.from + 1..).unwrap_or_default();
        let mut own = Taint::NONE;
        for (flow_read, target) in around.reads() {
            if flow_read {
                own |= facts.redirect_read(target, self.folder.as_deref());
            }
        }
        let mut out = self.built_in(&program, arguments, &around);
        let interpreter = self.programs().interpreter(&program);
        if let Some(runs) = interpreter {
            self.interpret(runs, &mut facts, arguments, &around.input);
        }
        if !self.hand_over(&mut facts, arguments, &around) && interpreter.is_none() {
            self.unknown_wrapper(&facts, arguments, &around);
        }
        self.run_text_file(&mut facts, arguments, &around.input);
        let connects =
            program == "openssl" && arguments.first().is_some_and(|f| f.text == "s_client");
        if facts.traits.has(Traits::FETCHES) || connects {
            own |= Taint::DOWNLOAD;
        }
        if facts.traits.has(Traits::PASSES_ON) {
            own |= arguments
                .iter()
                .filter_map(|field| self.file(&field.text))
                .fold(Taint::NONE, |taint, file| taint | file.taint);
        }
        if !facts.traits.has(Traits::NAMES_FILES) {
            own |= facts
                .reads
                .iter()
                .fold(Taint::NONE, |taint, seen| taint | facts::taint_of(seen));
        }
        let whole = |program: &str| {
            matches!(program, "env" | "printenv") || program == "set" && arguments.is_empty()
        };
        if program == "printenv"
            && arguments
                .iter()
                .any(|field| env_secrets::is_secret(&field.text))
        {
            own |= Taint::SECRET_VARIABLE;
        } else if whole(&program) {
            own |= Taint::ENVIRONMENT;
        }
        let known = facts.known.clone();
        let docker_helper = program.starts_with("docker-credential-");
        if docker_helper
            || known
                .as_ref()
                .is_some_and(|known| known.prints_secret(arguments))
        {
            own |= Taint::SECRET_VARIABLE;
        }
        if matches!(program.as_str(), "history" | "fc") {
            own |= Taint::PERSONAL;
        }
        let decodes = known.is_some_and(|known| known.decodes(arguments));
        if decodes {
            own |= Taint::DECODED;
        }
        if matches!(program.as_str(), "echo" | "printf" | "print") {
            own |= arguments
                .iter()
                .fold(Taint::NONE, |taint, field| taint | field.taint);
        }
        let out = match out.take() {
            Some(value) => value.with(
                own | arguments
                    .iter()
                    .fold(Taint::NONE, |taint, a| taint | a.taint),
            ),
            None if program == "pwd" => self
                .folder
                .clone()
                .map_or_else(|| Value::unknown(own), Value::text),
            None if program == "sed" && !self.spend_edit() => {
                Value::unknown(own | around.input.taint)
            }
            None => {
                match simulate::output(&program, arguments, &around.input, |name| self.file(name)) {
                    Some(value) => value.with(own | around.input.taint),
                    None => Value::unknown(own | around.input.taint),
                }
            }
        };
        self.spend_bytes(out.items.iter().map(String::len).sum());
        if decodes && let Some(text) = out.as_text() {
            self.texts.push(text.to_owned());
        }
        self.keep_saved_files(&mut facts, arguments, &around.input, &out);
        self.finish(&mut facts, around, &out);
        self.facts.push(facts);
        out
    }

    /// Reads a built-in command of the shell.
    fn built_in(
        &mut self,
        program: &str,
        arguments: &[Field],
        around: &CommandContext,
    ) -> Option<Value> {
        let operands = || arguments.iter().filter(|f| !f.text.starts_with('-'));
        match program {
            "cd" | "pushd" | "chdir" => {
                let target = operands().next().map_or("~", |f| f.text.as_str());
                let back = arguments.first().is_some_and(|f| f.text == "-");
                let before = self
                    .variables
                    .get("OLDPWD")
                    .and_then(Value::as_text)
                    .map(str::to_owned)
                    .filter(|_| back);
                let target = before.as_deref().unwrap_or(if back { "-" } else { target });
                match &self.folder {
                    Some(folder) => self.assign("OLDPWD", Value::text(folder.clone())),
                    None => _ = self.variables.remove("OLDPWD"),
                }
                let named = paths::normal(target, self.folder.as_deref())
                    .filter(|path| path.starts_with(['/', '~']));
                self.standing.go(target, named.as_deref());
                let home = paths::home_of(target, self.folder.as_deref());
                self.folder = match (named, home) {
                    (Some(path), Some(home)) => Some(path.replacen('~', &home, 1)),
                    (named, _) => named,
                };
            }
            "export" | "declare" | "typeset" | "local" | "readonly" | "setenv" | "set" => {
                for field in operands() {
                    if field.text.contains("[$(") {
                        self.subscripts(&field.text);
                    }
                    if let Some((name, value)) = field.text.split_once('=') {
                        self.assign_word(name, value, false, field.taint);
                        if program == "export" || program == "declare" || program == "typeset" {
                            self.environment(&[(name.to_owned(), value.to_owned())]);
                        }
                    }
                }
                if program == "set" && arguments.first().is_some_and(|f| f.text == "--") {
                    self.positional(arguments.get(1..).unwrap_or_default());
                }
            }
            "hash" => {
                if let [flag, file, name, ..] = arguments
                    && flag.text == "-p"
                {
                    self.alias(&name.text, &file.text);
                }
            }
            "alias" => {
                for field in operands() {
                    if let Some((name, text)) = field.text.split_once('=') {
                        self.alias(name, text);
                    }
                }
            }
            "read" | "mapfile" | "readarray" => self.read_input(program, arguments, around),
            "printf" if arguments.first().is_some_and(|f| f.text == "-v") => {
                let name = arguments.get(1)?.text.clone();
                let made =
                    simulate::output("printf", arguments.get(2..)?, &Value::nothing(), |_| None)?;
                self.assign(&name, made);
            }
            "eval" => {
                let text: Vec<&str> = arguments.iter().map(|f| f.text.as_str()).collect();
                return Some(self.script(&text.join(" "), &around.input));
            }
            // All of these evaluate the subscript of a name as arithmetic.
            "let" | "test" | "[" | "[[" | "unset" => {
                for field in arguments.iter().filter(|field| {
                    program == "let" || field.text.contains("[$(") || field.text.contains("[`")
                }) {
                    self.subscripts(&field.text);
                }
            }
            "trap" => {
                self.inner_script(&operands().next()?.text.clone(), &Value::nothing());
            }
            _ => return None,
        }
        None
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
        let mut known = programs.runners().filter(|_| literal >= 2);
        if let Some(name) = SPELT.into_iter().find(fits).or_else(|| known.find(fits)) {
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
