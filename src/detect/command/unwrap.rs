//! Takes wrappers off a command, opens what it hands to a shell or an interpreter, and notes each layer.

use std::rc::Rc;

use super::facts::{self, Facts};
use super::paths;
use super::programs::{self, DECODERS, FETCHERS, NAMERS, Runs};
use super::reader::{Around, Reader};
use super::simulate;
use super::value::{Field, Taint, Value};
use super::wrappers;

/// Wrappers around one command.
const MAX_LAYERS: usize = 24;

/// Programs that a glob may be meant to spell (`/b?n/c?t`).
const SPELT: [&str; 26] = [
    "cat", "rm", "sh", "bash", "dash", "nc", "ncat", "curl", "wget", "base64", "python3", "python", "perl", "chmod", "chown",
    "dd", "mkfs", "shred", "tac", "head", "tail", "less", "more", "nl", "reboot", "shutdown",
];

impl Reader<'_> {
    /// Reads a simple command, `fields` being what its words expanded to. Gives what it writes.
    pub(super) fn command(&mut self, fields: Rc<[Field]>, mut around: Around) -> Value {
        let mut from = 0;
        for _ in 0..MAX_LAYERS {
            if !self.spend_command() {
                return Value::unknown(Taint::NONE);
            }
            let Some(first) = fields.get(from) else { return around.input };
            let program = program_name(first);
            if from == 0
                && let Some(text) = self.alias_of(&program)
                && !text.starts_with(&program)
            {
                let rest: Vec<&str> = fields.iter().skip(1).map(|f| f.text.as_str()).collect();
                return self.script(&format!("{text} {}", rest.join(" ")), &around.input);
            }
            let arguments = fields.get(from + 1..).unwrap_or_default();
            if let Some(out) = self.call(&program, arguments, &around) {
                let mut facts = Facts::command(&program, &fields, from, self.folder.as_deref(), around.input.taint);
                self.finish(&mut facts, around, &out);
                self.facts.push(facts);
                return out;
            }
            let wraps = wrappers::inner(&program, arguments);
            let folder = self.folder.as_deref();
            let mut facts = match wraps {
                Some(own) => Facts::wrapper(&program, &fields, from, own, folder),
                None => Facts::command(&program, &fields, from, folder, around.input.taint),
            };
            facts.executes |= first.taint;
            if first.text.contains('/') {
                facts.runs.extend(facts::see(&first.text, folder));
            }
            if first.text.contains('/')
                && let Some(file) = self.file(&first.text)
            {
                facts.executes |= file.taint;
                if let Some(text) = file.as_text() {
                    self.inner_script(text, &around.input);
                }
            }
            if let Some(skip) = wraps {
                let stdin = around.input.clone();
                let next = if program == "xargs" { self.fed(&fields, from + 1 + skip, arguments, &stdin) } else { None };
                facts.environment = around.environment.clone();
                let given: Vec<(String, String)> = arguments
                    .iter()
                    .take(skip)
                    .filter_map(|f| f.text.split_once('='))
                    .map(|(name, value)| (name.to_owned(), value.to_owned()))
                    .collect();
                facts.environment.extend(given.iter().cloned());
                around.environment.extend(given);
                self.facts.push(facts);
                let Some(fed) = next else {
                    from += 1 + skip;
                    continue;
                };
                if !self.go_deeper() {
                    return Value::unknown(Taint::NONE);
                }
                let out = self.command(fed.into(), around);
                self.come_up();
                return out;
            }
            return self.innermost(facts, around);
        }
        self.give_up();
        Value::unknown(Taint::NONE)
    }

    /// What `xargs` runs, if its input is known.
    fn fed(&self, fields: &Rc<[Field]>, at: usize, arguments: &[Field], input: &Value) -> Option<Vec<Field>> {
        let text = input.as_text().filter(|text| text.len() <= 4096)?;
        let mut made: Vec<Field> = fields.get(at..)?.to_vec();
        let mark = arguments.iter().enumerate().find_map(|(n, f)| match f.text.strip_prefix("-I") {
            Some("") => arguments.get(n + 1).map(|f| f.text.clone()),
            Some(mark) => Some(mark.to_owned()),
            None => None,
        });
        match mark {
            Some(mark) if !mark.is_empty() => {
                for field in &mut made {
                    field.text = field.text.replace(&mark, text.trim());
                }
            }
            _ => made.extend(text.split_whitespace().take(256).map(|word| Field { taint: input.taint, ..Field::plain(word) })),
        }
        Some(made)
    }

    /// A command that wraps no other: what it runs, sets, reads and writes.
    fn innermost(&mut self, mut facts: Facts, around: Around) -> Value {
        let program = facts.program.clone();
        let arguments: Vec<Field> = facts.arguments().to_vec();
        let mut own = Taint::NONE;
        for (flow_read, target) in around.reads() {
            if flow_read {
                own |= facts.redirect_read(target, self.folder.as_deref());
            }
        }
        let mut out = self.built_in(&program, &arguments, &around);
        if let Some(runs) = programs::interpreter(&program) {
            self.interpret(runs, &mut facts, &arguments, &around.input);
        }
        self.hand_over(&mut facts, &arguments, &around);
        if FETCHERS.contains(&program.as_str()) {
            own |= Taint::DOWNLOAD;
        }
        if !NAMERS.contains(&program.as_str()) {
            own |= facts.reads.iter().fold(Taint::NONE, |taint, seen| taint | facts::taint_of(seen));
        }
        if matches!(program.as_str(), "env" | "printenv") || (program == "set" && arguments.is_empty()) {
            own |= Taint::ENVIRONMENT;
        }
        let decodes = DECODERS.iter().any(|(name, flags)| {
            *name == program
                && (flags.is_empty()
                    || arguments.iter().any(|a| {
                        flags.contains(&a.text.as_str())
                            || (a.text.len() > 2
                                && !a.text.starts_with("--")
                                && flags
                                    .iter()
                                    .filter_map(|f| f.strip_prefix('-'))
                                    .any(|f| f.len() == 1 && a.text.starts_with('-') && a.text.ends_with(f)))
                    }))
        });
        if decodes {
            own |= Taint::DECODED;
        }
        let out = match out.take() {
            Some(value) => value.with(own | arguments.iter().fold(Taint::NONE, |taint, a| taint | a.taint)),
            None => match simulate::output(&program, &arguments, &around.input, |name| self.file(name)) {
                Some(value) => value.with(own | around.input.taint),
                None => Value::unknown(own | around.input.taint),
            },
        };
        self.spend_bytes(out.items.iter().map(String::len).sum());
        if decodes && let Some(text) = out.as_text() {
            self.texts.push(text.to_owned());
        }
        self.keep_written(&facts, &arguments, &out);
        self.finish(&mut facts, around, &out);
        self.facts.push(facts);
        out
    }

    /// Keeps what a command saves to a file of its own choosing: `curl -O`, `wget`, `tee`, `cp`.
    fn keep_written(&mut self, facts: &Facts, arguments: &[Field], out: &Value) {
        let program = facts.program.as_str();
        let fetches = matches!(program, "wget" | "aria2c" | "axel")
            || (program == "curl"
                && arguments.iter().any(|a| {
                    matches!(a.text.as_str(), "-O" | "-JO" | "-LO" | "-OL" | "-sO" | "-fsSLO" | "-sSLO" | "--remote-name" | "-OJ")
                }));
        if fetches {
            for argument in arguments.iter().filter(|a| a.text.contains("://") || a.text.contains('/')) {
                if let Some((_, name)) = argument.text.rsplit_once('/') {
                    self.keep_file(name, out.clone());
                }
            }
        }
        if fetches || matches!(program, "tee" | "curl" | "fetch" | "sponge") {
            for seen in &facts.writes {
                self.keep_file(&seen.path, out.clone());
            }
        }
        if let ("cp" | "mv" | "ln" | "install", [source, target]) = (program, facts.operands().collect::<Vec<_>>().as_slice())
            && let Some(value) = self.file(&source.text)
        {
            self.keep_file(&target.text, value);
        }
    }

    /// Commands of the shell itself.
    fn built_in(&mut self, program: &str, arguments: &[Field], around: &Around) -> Option<Value> {
        let operands = || arguments.iter().filter(|f| !f.text.starts_with('-'));
        match program {
            "cd" | "pushd" | "chdir" => {
                let target = operands().next().map_or("~", |f| f.text.as_str());
                self.folder = paths::normal(target, self.folder.as_deref()).filter(|path| path.starts_with(['/', '~']));
            }
            "export" | "declare" | "typeset" | "local" | "readonly" | "setenv" | "set" => {
                for field in operands() {
                    if let Some((name, value)) = field.text.split_once('=') {
                        self.assign(name, Value::text(value).with(field.taint));
                    }
                }
                if program == "set" && arguments.first().is_some_and(|f| f.text == "--") {
                    for (n, field) in arguments.iter().skip(1).take(9).enumerate() {
                        self.assign(&(n + 1).to_string(), Value::text(field.text.clone()).with(field.taint));
                    }
                    let items = arguments.iter().skip(1).map(|f| f.text.clone()).collect();
                    self.assign("@", Value { items, known: true, taint: Taint::NONE });
                }
            }
            "alias" => {
                for field in operands() {
                    if let Some((name, text)) = field.text.split_once('=') {
                        self.alias(name, text);
                    }
                }
            }
            "read" | "mapfile" | "readarray" => {
                let names: Vec<String> = operands().map(|f| f.text.clone()).collect();
                match around.input.as_text().map(str::to_owned) {
                    Some(text) if names.len() > 1 => {
                        for (name, word) in names.iter().zip(text.split_whitespace()) {
                            self.assign(name, Value::text(word).with(around.input.taint));
                        }
                    }
                    Some(text) => self.assign(
                        names.first().map_or("REPLY", String::as_str),
                        Value::text(text.trim_end()).with(around.input.taint),
                    ),
                    None => {
                        for name in &names {
                            self.assign(name, Value::unknown(around.input.taint));
                        }
                    }
                }
            }
            "printf" if arguments.first().is_some_and(|f| f.text == "-v") => {
                let name = arguments.get(1)?.text.clone();
                let made = simulate::output("printf", arguments.get(2..)?, &Value::nothing(), |_| None)?;
                self.assign(&name, made);
            }
            "eval" => {
                let text: Vec<&str> = arguments.iter().map(|f| f.text.as_str()).collect();
                return Some(self.script(&text.join(" "), &around.input));
            }
            "trap" => {
                self.inner_script(&operands().next()?.text.clone(), &Value::nothing());
            }
            _ => return None,
        }
        None
    }

    /// What an interpreter runs: an argument, a file, or its input.
    fn interpret(&mut self, runs: Runs, facts: &mut Facts, arguments: &[Field], input: &Value) {
        let program = facts.program.clone();
        let (inline, first_operand): (&[&str], _) = match runs {
            Runs::Shell => (&["-c"], true),
            Runs::Windows => (&["-c", "-Command", "-command", "/c", "/C", "/k", "/K", "-EncodedCommand"], true),
            Runs::Code => (
                &["-c", "-e", "-E", "-r", "-p", "-pe", "-ne", "-le", "-B", "--eval", "--print", "--execute", "-ex", "eval"],
                true,
            ),
        };
        if runs == Runs::Windows {
            self.windows_inline(&program, arguments, facts);
            return;
        }
        let awk = program.ends_with("awk");
        let code = if awk {
            wrappers_awk(arguments)
        } else if runs == Runs::Code && program.starts_with("gdb") {
            None
        } else {
            wrappers::value_of(arguments, inline)
        };
        if let Some(code) = code {
            facts.executes |= code.taint;
            let (text, taint) = (code.text.clone(), code.taint);
            match runs {
                Runs::Shell => {
                    for (n, field) in arguments.iter().skip_while(|f| f.text != text).skip(1).take(9).enumerate() {
                        self.assign(&n.to_string(), Value::text(field.text.clone()));
                    }
                    self.inner_script(&text, input);
                    self.variables.remove("0");
                }
                _ => self.code(&program, &text, taint),
            }
            return;
        }
        let module = arguments.iter().any(|f| matches!(f.text.as_str(), "-m" | "--version" | "-V" | "--help" | "-h" | "-v"))
            && runs == Runs::Code;
        let operand = if first_operand { arguments.iter().find(|f| !f.text.starts_with('-') || f.text == "-") } else { None };
        let operand = operand.filter(|f| {
            f.text != "-" && f.text != "/dev/stdin" && !arguments.iter().any(|a| a.text == "-s" && runs == Runs::Shell)
        });
        if module || awk {
            return;
        }
        match operand {
            Some(file) => {
                facts.executes |= file.taint;
                facts.runs.extend(facts::see(&file.text, self.folder.as_deref()));
                if let Some(value) = self.file(&file.text) {
                    facts.executes |= value.taint;
                    self.run_text(runs, &program, &value);
                }
            }
            None => {
                facts.executes |= input.taint;
                self.run_text(runs, &program, &input.clone());
            }
        }
    }

    fn run_text(&mut self, runs: Runs, program: &str, value: &Value) {
        if let Some(text) = value.as_text() {
            match runs {
                Runs::Shell => {
                    self.inner_script(text, &Value::nothing());
                }
                Runs::Windows => self.windows(text),
                Runs::Code => self.code(program, text, value.taint),
            }
        }
    }
}

fn wrappers_awk(arguments: &[Field]) -> Option<&Field> {
    let mut skip = false;
    arguments.iter().find(|f| {
        let takes = std::mem::replace(&mut skip, matches!(f.text.as_str(), "-F" | "-v" | "-f"));
        !takes && !f.text.starts_with('-')
    })
}

/// The name that rules know a program by: base name, no `.exe`, a glob spelt out.
pub(super) fn program_name(field: &Field) -> String {
    let text = field.text.trim();
    let base = text.rsplit('/').next().filter(|base| !base.is_empty()).unwrap_or(text);
    let base = base.strip_suffix(".exe").or_else(|| base.strip_suffix(".EXE")).unwrap_or(base);
    if field.glob
        && base.contains(['?', '*', '['])
        && let Some(name) = SPELT.iter().find(|name| super::glob::matches(base, name))
    {
        return (*name).to_owned();
    }
    base.to_owned()
}
