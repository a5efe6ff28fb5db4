//! Files whose text a program reads as its own: the options of `curl`, makefiles, CMake scripts,
//! and sources that are compiled and run at once.

use super::facts::Facts;
use super::options::{self, Argument};
use super::reader::{CommandContext, Reader};
use super::value::{Field, Taint, Value};
use super::wrappers::{joined_value, value_of};

/// Programs, and the options whose value is a file with the text that they run. If there are none,
/// operands are such files.
const FILE_OPTIONS: [(&[&str], &[&str]); 7] = [
    (
        &["awk", "gawk", "mawk", "nawk", "sed", "gsed"],
        &["-f", "--file"],
    ),
    (&["psql", "sqlplus", "cqlsh"], &["-f", "--file"]),
    (&["gdb", "lldb"], &["-x", "--command", "-s"]),
    (&["vim", "vi", "nvim", "ex"], &["-s", "-S"]),
    (&["ansible-playbook"], &[]),
    (&["tclsh", "wish"], &[]),
    (&["expect"], &["-f"]),
];

/// Reports whether a file name refers to the standard input.
fn is_input(name: &str) -> bool {
    matches!(name, "-" | "/dev/stdin" | "/dev/fd/0" | "/proc/self/fd/0")
}

impl Reader<'_> {
    /// Reads the makefile: the one that is named, the one in the folder, or the input.
    pub(super) fn read_make(&mut self, facts: &mut Facts, arguments: &[Field], input: &Value) {
        let file_name = value_of(arguments, &["-f"]).map(|f| f.text.clone());
        let joined = arguments.iter().find_map(|f| {
            let option = f
                .text
                .strip_prefix("--makefile=")
                .or_else(|| f.text.strip_prefix("--file="))
                .or_else(|| f.text.strip_prefix("-f"))?;
            (!option.is_empty()).then(|| option.to_owned())
        });
        let text = match file_name.or(joined).as_deref() {
            Some(name) if is_input(name) => Some(input.clone()),
            Some(name) => self.file_content(name),
            None => ["Makefile", "makefile", "GNUmakefile"]
                .iter()
                .find_map(|name| self.file_content(name)),
        };
        facts.executes |= text.as_ref().map_or(Taint::NONE, |text| text.taint);
        if let Some(text) = text.as_ref().and_then(Value::as_text) {
            self.read_makefile(text);
        }
        for field in arguments {
            if let Some(text) = field.text.strip_prefix("--eval=") {
                self.read_makefile(text);
            }
        }
    }

    /// Records the origin of the text that a program runs from a file: `awk -f x`, `psql -f x`,
    /// `ansible-playbook x`.
    pub(super) fn run_text_file(&mut self, facts: &mut Facts, arguments: &[Field], input: &Value) {
        let Some((_, options)) = FILE_OPTIONS
            .iter()
            .find(|(programs, _)| programs.contains(&facts.program.as_str()))
        else {
            return;
        };
        let file_name = joined_value(arguments, options)
            .or_else(|| value_of(arguments, options).map(|f| f.text.as_str()));
        let operands = || {
            arguments
                .iter()
                .map(|f| f.text.as_str())
                .filter(|text| !text.starts_with('-'))
        };
        let files: Vec<&str> = if options.is_empty() {
            operands().take(8).collect()
        } else {
            file_name.into_iter().collect()
        };
        for file in files {
            let value = if is_input(file) {
                Some(input.clone())
            } else {
                self.file_to_run(file)
            };
            facts.executes |= value.map_or(Taint::NONE, |value| value.taint);
        }
    }

    /// Reads source code of a compiled language that is run at once: `go run x.go`, `cargo run`,
    /// `java X` after `javac X.java`.
    pub(super) fn run_source(&mut self, facts: &mut Facts, arguments: &[Field]) {
        const VERBS: [&str; 6] = ["run", "r", "script", "test", "-run", "-script"];
        let by_verb = matches!(
            facts.program.as_str(),
            "go" | "zig" | "dotnet" | "nim" | "cargo" | "swift" | "crystal" | "tcc"
        );
        let verb = arguments
            .iter()
            .take(2)
            .any(|f| VERBS.contains(&f.text.as_str()));
        if by_verb && !verb {
            return;
        }
        let operands = || {
            arguments
                .iter()
                .filter(|f| !f.text.starts_with('-') && !VERBS.contains(&f.text.as_str()))
                .take(16)
        };
        let mut sources: Vec<Value> = Vec::new();
        for operand in operands() {
            // A class or a program is named after its source.
            let stem = operand
                .text
                .rsplit_once('.')
                .map_or(operand.text.as_str(), |(stem, _)| stem);
            let source_of_stem = || {
                [".java", ".cs", ".kt", ".scala"]
                    .iter()
                    .find_map(|end| self.file_content(&format!("{stem}{end}")))
            };
            sources.extend(self.file_content(&operand.text).or_else(source_of_stem));
        }
        // The whole project.
        if by_verb
            && sources.is_empty()
            && operands().all(|f| matches!(f.text.as_str(), "." | "./..." | "./"))
        {
            sources = self.source_files();
        }
        for source in sources {
            if source.taint.intersects(Taint::UNREAD) {
                self.give_up();
            }
            facts.executes |= source.taint;
            if let Some(text) = source.as_text() {
                self.read_source_code(text);
            }
        }
    }

    /// Reads the script of `cmake -P script`.
    pub(super) fn read_cmake_script(&mut self, facts: &mut Facts, arguments: &[Field]) {
        let flag = if facts.program == "cmake" { "-P" } else { "-S" };
        let Some(name) = value_of(arguments, &[flag]).map(|f| f.text.clone()) else {
            return;
        };
        if let Some(value) = self.file_to_run(&name) {
            facts.executes |= value.taint;
            if let Some(text) = value.as_text() {
                self.read_cmake(text);
            }
        }
    }

    /// Reads `curl -K file`: the options in the file are treated as if they were on the command
    /// line.
    pub(super) fn read_curl_config(&mut self, arguments: &[Field], context: &CommandContext) {
        let Some(curl) = self.programs().get("curl") else {
            return;
        };
        let parsed = options::parse(curl, arguments);
        let configs = parsed.iter().filter_map(|argument| match argument {
            Argument::Option("K" | "config", Some(file)) => Some(*file),
            _ => None,
        });
        let mut fields = vec![Field::plain("curl")];
        for file in configs.take(8) {
            let value = if file == "-" {
                Some(context.input.clone())
            } else {
                self.file_content(file)
            };
            let Some(value) = value else { continue };
            for line in value.as_text().unwrap_or_default().lines().take(256) {
                let line = line.trim().trim_start_matches('-');
                let end = line
                    .find(|c: char| matches!(c, '=' | ':') || c.is_whitespace())
                    .unwrap_or(line.len());
                let (name, rest) = line.split_at_checked(end).unwrap_or((line, ""));
                if name.is_empty() || name.starts_with('#') || matches!(name, "K" | "config") {
                    continue;
                }
                let option_value = rest
                    .trim_start_matches(|c: char| matches!(c, '=' | ':') || c.is_whitespace())
                    .trim_matches('"');
                fields.push(Field::plain(if name.len() == 1 {
                    format!("-{name}")
                } else {
                    format!("--{name}")
                }));
                fields.extend(
                    (!option_value.is_empty())
                        .then(|| Field::plain(option_value).with(value.taint)),
                );
            }
        }
        if fields.len() == 1 || !self.go_deeper() {
            return;
        }
        // The operands on the command line are added: for example the host, if the file only names
        // the data to send.
        let urls = parsed.iter().filter_map(|argument| match argument {
            Argument::Operand(url) => Some(Field::plain(*url)),
            Argument::Option(..) => None,
        });
        fields.extend(urls);
        self.read_command(fields.into(), CommandContext::default());
        self.come_up();
    }
}
