//! Reads texts as PowerShell and cmd.exe would, and determines the effects of their programs.

use std::borrow::Cow;
use std::rc::Rc;

use super::cmd_exe::Prompt;
use super::facts::Facts;
use super::known::ScriptKind;
use super::powershell::Session;
use super::reader::{Reader, ScriptContext};
use super::simulate;
use super::value::{Field, Taint, Value, join_words, taint_of_fields};
pub(super) use super::windows_names::default_variable;
use super::windows_nested;
use super::wrappers::value_of;
use crate::detect::Language;
use crate::text::quick::WordSet;

/// Returns a word as it is written in a line of cmd.exe.
fn quote_word(word: &Field) -> Cow<'_, str> {
    let quote = word.quoted && word.text.contains(' ') && !word.text.contains('"');
    if quote {
        Cow::Owned(format!("\"{}\"", word.text))
    } else {
        Cow::Borrowed(&word.text)
    }
}

/// Returns a program's name without its folder and extension, in lower case.
pub(super) fn base_name(name: &str) -> String {
    let lower = name
        .trim()
        .trim_matches(['"', '\''])
        .trim_start_matches('@')
        .to_ascii_lowercase();
    let base = lower.rsplit(['\\', '/']).next().unwrap_or(&lower);
    let base = if base.is_empty() {
        lower.as_str()
    } else {
        base
    };
    let cut = [".exe", ".com", ".cmd"]
        .into_iter()
        .find_map(|end| base.strip_suffix(end));
    cut.unwrap_or(base).to_owned()
}

fn lower_words(arguments: &[Field]) -> Vec<String> {
    arguments
        .iter()
        .map(|a| a.text.to_ascii_lowercase())
        .collect()
}

/// Reports whether a word is a flag of a cmd.exe program (`/s`, `/q:1`) rather than a path.
fn is_slash_flag(text: &str) -> bool {
    text.strip_prefix('/')
        .is_some_and(|rest| (1..=20).contains(&rest.len()) && !rest.contains(['/', '\\', '.']))
}

impl<'w> Reader<'w> {
    /// Reads a whole argument as PowerShell and cmd.exe would.
    pub(super) fn read_windows(text: &str, context: ScriptContext<'w>) -> Self {
        let mut reader = Self::with_context(context);
        reader.read_windows_script(text);
        reader
    }

    /// Reads code in a language that the tool specifies.
    pub(super) fn read_code(language: Language, text: &str, context: ScriptContext<'w>) -> Self {
        let mut reader = Self::with_context(context);
        match language {
            Language::PowerShell => reader.read_windows_script(text),
            // In a source, a string that looks like a command need not be one. Most strings of
            // scripts for Windows are commands.
            Language::Compiled | Language::Other(_)
                if context.is_source && language.program() != "wscript" =>
            {
                reader.evaluate_code(language.program(), text, Taint::NONE);
            }
            Language::Compiled => reader.read_source_code(text),
            Language::Other(program) => {
                reader.read_foreign_code(program, text, Taint::NONE);
                reader.read_rare_code(text);
            }
            language => reader.read_foreign_code(language.program(), text, Taint::NONE),
        }
        reader
    }

    /// Reads a script that may be intended for either shell.
    pub(super) fn read_windows_script(&mut self, text: &str) {
        self.read_powershell(text, Taint::NONE);
        self.read_cmd(text);
        if let Some(inner) = windows_nested::nested_script(text)
            && self.go_deeper()
        {
            self.read_windows_script(inner);
            self.come_up();
        }
    }

    /// Reads a PowerShell script.
    pub(super) fn read_powershell(&mut self, text: &str, taint: Taint) {
        if !self.go_deeper() {
            return;
        }
        self.scripts.push(text.to_owned());
        let mut session = Session::new(self);
        if taint != Taint::NONE {
            session.evaluate("", taint);
        }
        session.run(text);
        session.conclude();
        self.come_up();
    }

    /// Reads a cmd.exe script.
    pub(super) fn read_cmd(&mut self, text: &str) {
        if !self.go_deeper() {
            return;
        }
        self.scripts.push(text.to_owned());
        Prompt::new(self).run(text);
        self.come_up();
    }

    /// Keeps the content of a file under its name, without the folder.
    pub(super) fn keep_windows_file(&mut self, name: &str, value: Value) {
        self.keep_file(&base_name(name), value);
    }

    /// Reads a file that is run, if an earlier command or call wrote it.
    fn run_windows_file(&mut self, name: &str, facts: &mut Facts) {
        if let Some(value) = self.file_to_run(&base_name(name)) {
            facts.executes |= value.taint;
            if let Some(text) = value.as_text() {
                self.read_windows_script(text);
            }
        }
    }

    /// Adds the facts of one program with its words, and returns the taint of its output.
    pub(super) fn run_windows_program(
        &mut self,
        name: &str,
        words: Vec<Field>,
        targets: &[Field],
        input: Taint,
        piped_text: &str,
    ) -> Taint {
        if name.is_empty() || !self.spend_command() {
            return Taint::NONE;
        }
        let mut fields = Vec::with_capacity(words.len() + 1);
        fields.push(Field::plain(name));
        // `\\?\C:\` is `C:\`.
        fields.extend(words.into_iter().map(|mut field| {
            if field.text.starts_with(r"\\?\") && field.text.get(5..6) == Some(":") {
                field.text.drain(..4);
            }
            field
        }));
        let fields: Rc<[Field]> = fields.into();
        let folder = self.folder.clone();
        let mut facts = Facts::command(
            (name, self.programs().get(name)),
            &fields,
            0,
            folder.as_deref(),
            input,
        );
        facts.windows = true;
        let arguments: Vec<Field> = facts.arguments().to_vec();
        let lower = lower_words(&arguments);
        if matches!(
            name,
            "cd" | "set-location" | "chdir" | "pushd" | "push-location"
        ) && let Some(target) = arguments
            .iter()
            .find(|a| !is_slash_flag(&a.text) && !a.text.starts_with('-'))
        {
            // `cd \` is the root of the drive.
            let target = if matches!(target.text.as_str(), "\\" | "/") {
                "C:\\"
            } else {
                target.text.as_str()
            };
            self.folder = super::paths::normal(target, folder.as_deref());
        }
        // Programs that only name files do not read them.
        static NAMERS: WordSet = WordSet::new(
            "get-childitem dir test-path resolve-path get-item remove-item icacls attrib \
             set-location new-item get-acl del rd takeown",
        );
        if NAMERS.contains(&name) {
            facts.reads.clear();
        }
        let mut output_taint: Taint = facts.reads.iter().map(super::facts::taint_of).collect();
        let written = write_targets(name, &arguments, &lower);
        if let Some((target, text)) = written
            .first()
            .zip(written_text(name, &arguments, &lower, piped_text))
        {
            self.keep_windows_file(&target.text, Value::text(text));
        }
        for target in targets.iter().chain(written) {
            facts.redirect_write(&target.text, folder.as_deref());
        }
        let sent =
            (output_taint | input | taint_of_fields(&arguments)).without(Taint::SECRET_VARIABLE);
        let has_parameter = |name: &str| {
            lower
                .iter()
                .any(|word| word.len() >= 4 && name.starts_with(word.as_str()))
        };
        match name {
            "invoke-webrequest" | "invoke-restmethod" | "curl" | "wget" => {
                if has_parameter("-body")
                    || has_parameter("-infile")
                    || has_parameter("-method")
                        && lower
                            .iter()
                            .any(|word| matches!(word.as_str(), "post" | "put"))
                {
                    facts.sends |= sent.without(Taint::DOWNLOAD | Taint::DECODED);
                }
                output_taint |= Taint::DOWNLOAD;
                self.keep_fetched(&arguments, &lower);
            }
            "start-bitstransfer" | "bitsadmin" | "certutil" => {
                if has_parameter("-transfertype") {
                    facts.sends |= sent;
                }
                self.keep_fetched(&arguments, &lower);
            }
            "webclient.uploadfile"
            | "webclient.uploadstring"
            | "webclient.uploaddata"
            | "send-mailmessage"
            | "httpclient.postasync" => {
                facts.sends |= sent.without(Taint::DOWNLOAD | Taint::DECODED);
            }
            "get-childitem" if lower.iter().any(|word| word.starts_with("env:")) => {
                output_taint |= Taint::ENVIRONMENT
            }
            "get-clipboard" => output_taint |= Taint::PERSONAL,
            "copy" | "copy-item" | "xcopy" | "robocopy" | "move" | "move-item"
                if lower.last().is_some_and(|last| {
                    last.starts_with("\\\\") && !last.starts_with("\\\\?\\")
                }) =>
            {
                facts.sends |= output_taint;
            }
            _ => {}
        }
        // Files that were fetched before, and are now run.
        let run = std::iter::once(name).chain(
            arguments
                .iter()
                .map(|a| a.text.as_str())
                .filter(|_| STARTERS.contains(name))
                .take_while(|word| !begins_commands(name, word)),
        );
        for file in run.take(16).collect::<Vec<_>>() {
            self.run_windows_file(file, &mut facts);
        }
        if matches!(name, "add-type" | "import-module") {
            facts.executes |= taint_of_fields(&arguments);
        }
        self.read_windows_inline(name, &arguments, &mut facts);
        if !piped_text.is_empty()
            && matches!(name, "powershell" | "pwsh" | "cmd")
            && !arguments.iter().any(|a| a.text.contains(' '))
        {
            self.read_windows_script(piped_text);
        }
        // The input of `… | diskpart` and similar programs.
        if !piped_text.is_empty()
            && matches!(
                name,
                "diskpart" | "ftp" | "ntdsutil" | "diskshadow" | "del" | "format"
            )
        {
            let mut extended: Vec<Field> = facts.fields.to_vec();
            extended.push(Field::plain(piped_text.trim()));
            facts.fields = extended.into();
        }
        self.facts.push(facts);
        output_taint
    }

    fn keep_fetched(&mut self, arguments: &[Field], lower: &[String]) {
        let flag_position = lower.iter().position(|word| {
            word.len() >= 2
                && (["-outfile", "-destination"]
                    .iter()
                    .any(|name| name.starts_with(word.as_str())))
        });
        let target = match flag_position {
            Some(at) => arguments.get(at + 1),
            None => arguments
                .iter()
                .skip(1)
                .rev()
                .find(|a| a.text.contains(['.', '\\']) && !a.text.contains("://")),
        };
        if let Some(target) = target {
            self.keep_windows_file(&target.text.clone(), Value::unknown(Taint::DOWNLOAD));
        }
    }

    /// Reads the text that `powershell -c`, `cmd /c` and others are given to run.
    pub(super) fn read_windows_inline(
        &mut self,
        program: &str,
        arguments: &[Field],
        facts: &mut Facts,
    ) {
        let lower = lower_words(arguments);
        let words_from = |at: usize| join_words(arguments.iter().skip(at));
        match program {
            "powershell" | "pwsh" | "powershell_ise" => {
                self.read_inline_powershell(arguments, &lower, facts)
            }
            "cmd" => {
                let at = lower
                    .iter()
                    .position(|a| ["/c", "/k", "/r"].iter().any(|flag| a.starts_with(flag)));
                if let Some((at, word)) = at.and_then(|at| Some((at, arguments.get(at)?))) {
                    let joined = word.text.get(2..).unwrap_or_default();
                    let command_words = arguments.get(at + 1..).unwrap_or_default();
                    facts.executes |= taint_of_fields(command_words);
                    // A single quoted text is the whole line. In a line of several words, quoted
                    // words stay quoted.
                    let line = match command_words {
                        [only] if joined.is_empty() => only.text.clone(),
                        _ => command_words
                            .iter()
                            .map(quote_word)
                            .collect::<Vec<_>>()
                            .join(" "),
                    };
                    self.read_cmd(&format!("{joined} {line}"));
                }
            }
            "start-process" | "invoke-item" | "conhost" | "pcalua" | "runas" | "psexec"
            | "psexec64" | "paexec" | "winrs" | "gsudo" | "sudo" | "nircmd" | "scriptrunner"
            | "explorer" => {
                let words: Vec<Field> = arguments
                    .iter()
                    .filter(|a| !a.text.starts_with('-') || a.quoted)
                    .cloned()
                    .collect();
                let shell_position = words.iter().position(|word| {
                    matches!(
                        base_name(&word.text).as_str(),
                        "cmd" | "powershell" | "pwsh"
                    )
                });
                match (shell_position, words.split_first()) {
                    (Some(at), _) => {
                        self.read_windows_script(&join_words(words.iter().skip(at)));
                    }
                    (None, Some((first, parameters))) if program != "explorer" => {
                        let line = join_words(parameters);
                        self.read_windows_script(&format!("{} {line}", first.text));
                    }
                    _ => {}
                }
            }
            "forfiles" | "schtasks" | "wmic" | "invoke-wmimethod" | "invoke-cimmethod"
            | "wmiclass.create" | ".create" | "wsh.run" | "wscript.shell.run" | ".run"
            | ".exec" | ".shellexecute" | "process.start" | "interaction.shell" | "sqlcmd" => {
                for argument in arguments
                    .iter()
                    .filter(|a| a.text.contains(' ') || program == "process.start")
                {
                    // `forfiles` inserts the name of each file.
                    let folder = lower
                        .iter()
                        .position(|a| a == "/p")
                        .and_then(|at| arguments.get(at + 1));
                    let below = folder.map_or("*".to_owned(), |f| {
                        format!("{}\\*", f.text.trim_end_matches('\\'))
                    });
                    let text = argument
                        .text
                        .replace("@path", &below)
                        .replace("@file", &below);
                    self.read_windows_script(
                        text.trim_start_matches("call create ").trim_matches('"'),
                    );
                }
            }
            "wsl" | "bash" | "sh" | "ubuntu" => {
                let script = value_of(arguments, &["-c", "-e", "--", "--exec"])
                    .map_or_else(|| words_from(0), |f| f.text.clone());
                let at = lower
                    .iter()
                    .position(|a| matches!(a.as_str(), "-e" | "--exec" | "--"));
                let script = match at {
                    Some(at) if !lower.iter().any(|a| a == "-c") => words_from(at + 1),
                    _ => script,
                };
                self.read_inner_script(&script, &Value::empty());
            }
            _ if self.programs().interpreter(program) == Some(ScriptKind::Code) => {
                if let Some(text) = value_of(arguments, &["-c", "-e"]) {
                    self.evaluate_code(program, &text.text.clone(), Taint::NONE);
                }
            }
            _ => {}
        }
    }

    fn read_inline_powershell(&mut self, arguments: &[Field], lower: &[String], facts: &mut Facts) {
        let words_from = |at: usize| join_words(arguments.iter().skip(at));
        // Any prefix of the flag's name is accepted: `-e`, `-enc`, `-EncodedCommand`. Other dashes
        // are, too.
        const DASHES: [char; 5] = ['-', '/', '\u{2013}', '\u{2014}', '\u{2015}'];
        let flag = |name: &str| {
            let is_prefix = |a: &String| {
                let prefix = a.trim_start_matches(DASHES);
                !prefix.is_empty() && name.starts_with(prefix)
            };
            let at = lower.iter().position(is_prefix)?;
            lower.get(at)?.starts_with(DASHES).then_some(at)
        };
        let encoded = flag("encodedcommand").or_else(|| lower.iter().position(|a| a == "-ec"));
        if let Some(at) = encoded
            && let Some(payload) = arguments.get(at + 1)
            && let Some(text) = decode_utf16(&payload.text)
        {
            facts.executes |= Taint::DECODED;
            self.read_powershell(&text, Taint::NONE);
        } else if let Some(at) = flag("command") {
            if words_from(at + 1).trim() != "-" {
                self.read_powershell(&words_from(at + 1), Taint::NONE);
            }
        } else if let Some(at) = flag("file") {
            if let Some(file) = arguments.get(at + 1) {
                self.run_windows_file(&file.text, facts);
            }
        } else {
            let mut at = 0;
            while let Some(word) = lower.get(at).filter(|word| word.starts_with(['-', '/'])) {
                let name = word.trim_start_matches(['-', '/']);
                at += 1 + usize::from(windows_nested::takes_value(name));
            }
            if at < arguments.len() {
                self.read_powershell(&words_from(at), Taint::NONE);
            }
        }
    }
}

/// Returns the words of a program that name the files that it writes.
fn write_targets<'f>(name: &str, arguments: &'f [Field], lower: &[String]) -> Vec<&'f Field> {
    let valued = |names: &[&str]| -> Option<&'f Field> {
        let at = lower.iter().position(|word| {
            word.len() >= 3 && names.iter().any(|name| name.starts_with(word.as_str()))
        })?;
        arguments.get(at + 1)
    };
    let mut plain = arguments
        .iter()
        .filter(|a| (!a.text.starts_with('-') || a.quoted) && !is_slash_flag(&a.text));
    match name {
        "set-content" | "add-content" | "out-file" | "tee-object" | "clear-content"
        | "export-csv" | "export-clixml" | "new-item" | "set-item" => {
            valued(&["-path", "-filepath", "-literalpath", "-name"])
                .or_else(|| plain.next())
                .into_iter()
                .collect()
        }
        "copy-item" | "move-item" | "copy" | "xcopy" | "move" | "robocopy" | "expand"
        | "extrac32" | "replace" | "makecab" | "esentutl" => valued(&["-destination", "/d"])
            .or_else(|| plain.next_back())
            .into_iter()
            .collect(),
        "invoke-webrequest" | "invoke-restmethod" | "start-bitstransfer" => {
            valued(&["-outfile", "-destination"]).into_iter().collect()
        }
        _ => Vec::new(),
    }
}

/// Returns the text that a program writes to its target, if it is known.
fn written_text(
    name: &str,
    arguments: &[Field],
    lower: &[String],
    piped_text: &str,
) -> Option<String> {
    if !matches!(
        name,
        "set-content" | "add-content" | "out-file" | "tee-object" | "new-item"
    ) {
        return None;
    }
    let valued = |name: &str| {
        let at = lower
            .iter()
            .position(|word| word.len() >= 2 && name.starts_with(word.as_str()))?;
        Some(arguments.get(at + 1)?.text.clone())
    };
    let second = || {
        let are_plain = lower.iter().take(2).all(|word| !word.starts_with('-'));
        let second = arguments
            .get(1)
            .filter(|_| are_plain && name != "new-item")?;
        Some(second.text.clone())
    };
    let piped = || (!piped_text.is_empty()).then(|| piped_text.to_owned());
    valued("-value")
        .or_else(|| valued("-inputobject"))
        .or_else(second)
        .or_else(piped)
}

/// Programs that start the files that they are given.
static STARTERS: WordSet = WordSet::new(
    "start-process invoke-item start cscript wscript mshta regsvr32 rundll32 msiexec installutil \
     cmd powershell pwsh python node explorer import-module add-type",
);

/// Returns whether the words after this one are commands of a shell, which are read as such:
/// `powershell -Command iwr URL -OutFile x.zip` runs no file.
fn begins_commands(shell: &str, word: &str) -> bool {
    let word = word.to_ascii_lowercase();
    match shell {
        "powershell" | "pwsh" => word.len() >= 2 && "-command".starts_with(word.as_str()),
        "cmd" => matches!(word.as_str(), "/c" | "/k" | "/r"),
        _ => false,
    }
}

/// Decodes base64 of UTF-16, as in `-EncodedCommand`.
fn decode_utf16(text: &str) -> Option<String> {
    let bytes = simulate::base64_bytes(text)?;
    let units: Vec<u16> = bytes
        .chunks_exact(2)
        .map(|pair| pair.iter().rev().fold(0u16, |n, b| n << 8 | u16::from(*b)))
        .collect();
    Some(String::from_utf16_lossy(&units))
}
