//! Interpreters and the code or script that they run: an argument, a file, or their input.

use super::facts::{self, Facts};
use super::known::ScriptKind;
use super::reader::Reader;
use super::tcl;
use super::value::{Field, Taint, Value};
use super::wrappers::value_of;

/// Options of interpreters whose value is code.
const INLINE: [&str; 15] = [
    "-c",
    "-e",
    "-E",
    "-r",
    "-p",
    "-pe",
    "-ne",
    "-le",
    "-B",
    "--eval",
    "--print",
    "--execute",
    "-ex",
    "eval",
    "-eval",
];

impl Reader<'_> {
    /// Reads what an interpreter runs: an argument, a file, or its input.
    pub(super) fn interpret(
        &mut self,
        kind: ScriptKind,
        facts: &mut Facts,
        arguments: &[Field],
        input: &Value,
    ) {
        let program = facts.program.clone();
        if kind == ScriptKind::Windows {
            self.read_windows_inline(&program, arguments, facts);
            // Without a script, the interpreter runs its input: `curl … | pwsh -NoProfile -`.
            if arguments
                .last()
                .is_none_or(|last| last.text.starts_with(['-', '/']))
            {
                facts.executes |= input.taint;
                self.run_text(kind, &program, input);
            }
            return;
        }
        let awk = program.ends_with("awk");
        let code = if awk {
            awk_program(arguments)
        } else if kind == ScriptKind::Code && program.starts_with("gdb") {
            None
        } else {
            value_of(
                arguments,
                if kind == ScriptKind::Code {
                    &INLINE
                } else {
                    &["-c"]
                },
            )
        };
        let attached = if code.is_none() && !awk && kind == ScriptKind::Code {
            attached_code(arguments)
        } else {
            None
        };
        if let Some(code) = code.or(attached.as_ref()) {
            facts.executes |= code.taint;
            let text = &code.text;
            match kind {
                ScriptKind::Shell => {
                    let after = arguments
                        .iter()
                        .position(|f| f.text == *text)
                        .map_or(arguments.len(), |at| at + 1);
                    let script_arguments = arguments.get(after..).unwrap_or_default();
                    if let Some(name) = script_arguments.first() {
                        self.assign("0", name.value());
                    }
                    self.set_positional(script_arguments.get(1..).unwrap_or_default());
                    self.read_inner_script(text, input);
                    self.variables.remove("0");
                }
                _ => self.read_foreign_code(&program, text, code.taint),
            }
            return;
        }
        let module = arguments.iter().any(|f| {
            matches!(
                f.text.as_str(),
                "-m" | "--version" | "-V" | "--help" | "-h" | "-v"
            )
        }) && kind == ScriptKind::Code;
        let operand = arguments
            .iter()
            .find(|f| !f.text.starts_with('-') || f.text == "-");
        let operand = operand.filter(|f| {
            f.text != "-"
                && f.text != "/dev/stdin"
                && !arguments
                    .iter()
                    .any(|a| a.text == "-s" && kind == ScriptKind::Shell)
        });
        if module || awk {
            return;
        }
        match operand {
            Some(file) => {
                facts.executes |= file.taint;
                facts
                    .runs
                    .extend(facts::read_path(&file.text, self.folder.as_deref()));
                if let Some(value) = self.file_to_run(&file.text) {
                    facts.executes |= value.taint;
                    self.run_text(kind, &program, &value);
                }
            }
            None => {
                facts.executes |= input.taint;
                self.run_text(kind, &program, input);
            }
        }
    }

    fn run_text(&mut self, kind: ScriptKind, program: &str, value: &Value) {
        if let Some(text) = value.as_text() {
            match kind {
                ScriptKind::Shell => {
                    self.read_inner_script(text, &Value::empty());
                }
                ScriptKind::Windows => self.read_windows_script(text),
                ScriptKind::Code => self.read_foreign_code(program, text, value.taint),
            }
        }
    }

    /// Reads the code of an interpreter, including commands that it passes to a shell in ways that
    /// its own reader does not know.
    pub(super) fn read_foreign_code(&mut self, program: &str, text: &str, taint: Taint) {
        if tcl::is_tcl(program) {
            return self.read_tcl(text);
        }
        self.evaluate_code(program, text, taint);
        self.read_argument_lists(text);
        if self.programs().is_unread(program) {
            self.read_rare_code(text);
        }
    }
}

/// Returns code that is attached to its flag, or to letters that end in it: `-e'system("x")'`,
/// `-lne'…'`.
fn attached_code(arguments: &[Field]) -> Option<Field> {
    arguments.iter().take(8).find_map(|field| {
        let letters = field.text.strip_prefix('-')?;
        let flag = letters.find(['e', 'E', 'c', 'r'])?;
        let (before, code) = letters.split_at_checked(flag + 1)?;
        let is_cluster = before.bytes().all(|b| b.is_ascii_alphabetic());
        (is_cluster && code.contains(['(', '"', '\'', ';', '`']))
            .then(|| Field::plain(code).with(field.taint))
    })
}

fn awk_program(arguments: &[Field]) -> Option<&Field> {
    let mut skip = false;
    arguments.iter().find(|f| {
        let is_value = std::mem::replace(&mut skip, matches!(f.text.as_str(), "-F" | "-v" | "-f"));
        !is_value && !f.text.starts_with('-')
    })
}
