//! Interpreters and the code or script that they run: an argument, a file, or their input.

use super::facts::{self, Facts};
use super::known::Interprets;
use super::reader::Reader;
use super::tcl;
use super::value::{Field, Taint, Value};
use super::wrappers::value_of;

impl Reader<'_> {
    /// Reads what an interpreter runs: an argument, a file, or its input.
    pub(super) fn interpret(
        &mut self,
        runs: Interprets,
        facts: &mut Facts,
        arguments: &[Field],
        input: &Value,
    ) {
        let program = facts.program.clone();
        let (inline, first_operand): (&[&str], _) = match runs {
            Interprets::Shell => (&["-c"], true),
            Interprets::Windows => (
                &[
                    "-c",
                    "-Command",
                    "-command",
                    "/c",
                    "/C",
                    "/k",
                    "/K",
                    "-EncodedCommand",
                ],
                true,
            ),
            Interprets::Code => (
                &[
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
                ],
                true,
            ),
        };
        if runs == Interprets::Windows {
            self.windows_inline(&program, arguments, facts);
            // Without a script, the interpreter runs its input: `curl … | pwsh -NoProfile -`.
            if arguments
                .last()
                .is_none_or(|last| last.text.starts_with(['-', '/']))
            {
                facts.executes |= input.taint;
                self.run_text(runs, &program, input);
            }
            return;
        }
        let awk = program.ends_with("awk");
        let code = if awk {
            wrappers_awk(arguments)
        } else if runs == Interprets::Code && program.starts_with("gdb") {
            None
        } else {
            value_of(arguments, inline)
        };
        let attached = if code.is_none() && !awk && runs == Interprets::Code {
            attached(arguments)
        } else {
            None
        };
        if let Some(code) = code.or(attached.as_ref()) {
            facts.executes |= code.taint;
            let text = code.text.clone();
            let taint = code.taint;
            match runs {
                Interprets::Shell => {
                    let after = arguments
                        .iter()
                        .position(|f| f.text == text)
                        .map_or(arguments.len(), |at| at + 1);
                    let given = arguments.get(after..).unwrap_or_default();
                    if let Some(name) = given.first() {
                        self.assign("0", Value::text(name.text.clone()).with(name.taint));
                    }
                    self.positional(given.get(1..).unwrap_or_default());
                    self.inner_script(&text, input);
                    self.variables.remove("0");
                }
                _ => self.foreign(&program, &text, taint),
            }
            return;
        }
        let module = arguments.iter().any(|f| {
            matches!(
                f.text.as_str(),
                "-m" | "--version" | "-V" | "--help" | "-h" | "-v"
            )
        }) && runs == Interprets::Code;
        let operand = if first_operand {
            arguments
                .iter()
                .find(|f| !f.text.starts_with('-') || f.text == "-")
        } else {
            None
        };
        let operand = operand.filter(|f| {
            f.text != "-"
                && f.text != "/dev/stdin"
                && !arguments
                    .iter()
                    .any(|a| a.text == "-s" && runs == Interprets::Shell)
        });
        if module || awk {
            return;
        }
        match operand {
            Some(file) => {
                facts.executes |= file.taint;
                facts
                    .runs
                    .extend(facts::see(&file.text, self.folder.as_deref()));
                if let Some(value) = self.file_to_run(&file.text) {
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

    fn run_text(&mut self, runs: Interprets, program: &str, value: &Value) {
        if let Some(text) = value.as_text() {
            match runs {
                Interprets::Shell => {
                    self.inner_script(text, &Value::nothing());
                }
                Interprets::Windows => self.windows(text),
                Interprets::Code => self.foreign(program, text, value.taint),
            }
        }
    }

    /// Reads the code of an interpreter, including commands that it passes to a shell in ways that
    /// its own reader does not know.
    fn foreign(&mut self, program: &str, text: &str, taint: Taint) {
        if tcl::is_tcl(program) {
            return self.tcl(text);
        }
        self.code(program, text, taint);
        self.argument_lists(text);
        if self.programs().is_unread(program) {
            self.rare_code(text);
        }
    }
}

/// Returns code that is attached to its flag: `-e'system("x")'`.
fn attached(arguments: &[Field]) -> Option<Field> {
    const FLAGS: [&str; 9] = ["-lne", "-lpe", "-ne", "-pe", "-le", "-e", "-E", "-c", "-r"];
    arguments.iter().take(8).find_map(|field| {
        let code = FLAGS
            .iter()
            .find_map(|flag| field.text.strip_prefix(flag))?;
        code.contains(['(', '"', '\'', ';', '`']).then(|| Field {
            taint: field.taint,
            ..Field::plain(code)
        })
    })
}

fn wrappers_awk(arguments: &[Field]) -> Option<&Field> {
    let mut skip = false;
    arguments.iter().find(|f| {
        let takes = std::mem::replace(&mut skip, matches!(f.text.as_str(), "-F" | "-v" | "-f"));
        !takes && !f.text.starts_with('-')
    })
}
