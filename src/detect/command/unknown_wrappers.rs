//! Programs that no table lists and that are given a command to run. The command is recognized by
//! the name of its option, by a preceding word such as `exec`, or by a shell among the words.

use super::facts::Facts;
use super::known::ScriptKind;
use super::programs::Programs;
use super::reader::{CommandContext, Reader};
use super::traits::Traits;
use super::value::{Field, Value};
use crate::text::quick::WordSet;

/// Parts of the names of options that take a command.
const OPTION_NAMES: [&str; 15] = [
    "invoke", "command", "cmd", "exec", "shell", "script", "eval", "hook", "pager", "editor",
    "askpass", "rsh", "run", "extcmd", "filter",
];
/// Short options that take a command if a text with a space follows.
const OPTIONS: [&str; 7] = ["-c", "-C", "-e", "-x", "-a", "-s", "-ex"];
/// Words that a command follows.
static VERBS: WordSet = WordSet::new(
    "run exec shell ssh cmd.run cmd execute spawn invoke console foreach run-shell run-command \
     if-shell respawn-pane ::: x",
);
/// Variables whose values programs run.
static VARIABLES: WordSet = WordSet::new(
    "PAGER MANPAGER GIT_PAGER EDITOR VISUAL FCEDIT GIT_EDITOR GIT_SEQUENCE_EDITOR GIT_SSH \
     GIT_SSH_COMMAND GIT_ASKPASS GIT_PROXY_COMMAND GIT_EXTERNAL_DIFF BROWSER PROMPT_COMMAND \
     LESSOPEN LESSCLOSE SSH_ASKPASS SUDO_ASKPASS SUDO_EDITOR SYSTEMD_EDITOR SYSTEMD_PAGER \
     RSYNC_RSH CVS_RSH FZF_DEFAULT_COMMAND DELTA_PAGER BAT_PAGER PSQL_PAGER",
);

impl Reader<'_> {
    /// Reads the commands that an unlisted program is given to run.
    pub(super) fn read_unknown_wrapper(
        &mut self,
        facts: &Facts,
        arguments: &[Field],
        context: &CommandContext,
    ) {
        if arguments.is_empty() || facts.traits.has(Traits::TAKES_TEXT) || !self.go_deeper() {
            return;
        }
        self.spend_steps(arguments.len() / 4);
        let mut before = "";
        for field in arguments {
            let text = field.text.as_str();
            let option = std::mem::replace(&mut before, text);
            let candidate = match text
                .strip_prefix('-')
                .and_then(|option| option.split_once('='))
            {
                Some((option, value)) => takes_command(option).then_some(value),
                None => (OPTIONS.contains(&option)
                    || option.len() > 2 && option.starts_with('-') && takes_command(option))
                .then_some(text),
            };
            // `apt-get -o DPkg::Pre-Invoke::='…'`
            let hook = text.split_once('=').filter(|(name, _)| {
                matches!(option, "-o" | "--option") && name.contains("-Invoke")
            });
            let candidate = candidate.or(hook.map(|(_, script)| script));
            // A name alone runs without arguments, and does nothing that a rule knows.
            if let Some(script) = candidate.filter(|script| script.contains(' ')) {
                self.read_nested_script(script, &context.input);
            }
            // A shell with its script as one text, whatever the option is called.
            let first = text
                .split(' ')
                .next()
                .and_then(|first| first.rsplit('/').next())
                .unwrap_or("");
            if candidate.is_none()
                && text.contains(" -c")
                && self.programs().interpreter(first) == Some(ScriptKind::Shell)
            {
                self.read_nested_script(text, &context.input);
            }
            if let Some((shell, script)) = text.split_once(",-c,")
                && self
                    .programs()
                    .interpreter(shell.rsplit('/').next().unwrap_or(shell))
                    == Some(ScriptKind::Shell)
            {
                self.read_nested_script(script, &context.input);
            }
        }
        if let Some(at) = first_command(arguments, facts, self.programs()) {
            self.read_command_words(arguments.get(at..).unwrap_or_default(), context);
        }
        self.come_up();
    }

    /// Reads the values of variables that programs run.
    pub(super) fn read_environment(&mut self, environment: &[(String, String)]) {
        for (name, value) in environment {
            if VARIABLES.contains(&name.as_str()) {
                self.read_nested_script(value, &Value::empty());
            } else if matches!(name.as_str(), "BASH_ENV" | "ENV")
                && let Some(text) = self.file_content(value).as_ref().and_then(Value::as_text)
            {
                self.read_nested_script(text, &Value::empty());
            }
        }
    }

    /// Reads a script in a separate shell, one level deeper.
    pub(super) fn read_nested_script(&mut self, script: &str, input: &Value) {
        if self.go_deeper() {
            self.read_inner_script(script, input);
            self.come_up();
        }
    }

    /// Reads words that form a command, or one word that is a script.
    pub(super) fn read_command_words(&mut self, words: &[Field], context: &CommandContext) {
        let options = words.iter().take_while(|f| f.text.starts_with('-')).count();
        let Some(first) = words.get(options) else {
            return;
        };
        self.spend_bytes(words.iter().map(|f| f.text.len()).sum());
        if first.text.contains(' ') {
            for script in words
                .iter()
                .skip(options)
                .filter(|f| f.text.contains(' '))
                .take(16)
            {
                self.read_nested_script(&script.text, &context.input);
            }
        } else if self.go_deeper() {
            let fields = words.get(options..).unwrap_or_default();
            self.read_command(
                fields.into(),
                CommandContext {
                    input: context.input.clone(),
                    ..CommandContext::default()
                },
            );
            self.come_up();
        }
    }
}

fn takes_command(option: &str) -> bool {
    let name = option.trim_start_matches('-');
    name.len() <= 40 && OPTION_NAMES.iter().any(|part| name.contains(part))
}

/// Returns where a command starts among the arguments: at an interpreter with a script, or after a
/// word that introduces it.
fn first_command(arguments: &[Field], facts: &Facts, programs: &Programs) -> Option<usize> {
    let runs_script = |at: usize, field: &Field| {
        let base = field.text.rsplit('/').next().unwrap_or("");
        let scripted = |f: &Field| {
            f.text.len() <= 6 && f.text.starts_with('-') && f.text.ends_with(['c', 'e', 'r'])
        };
        programs.interpreter(base).is_some() && arguments.iter().skip(at + 1).take(3).any(scripted)
    };
    // In `docker run -v /x:/y image`, no command follows the image.
    let has_runner_words = facts.program_data.as_ref().is_some_and(|known| {
        known
            .runners
            .iter()
            .any(|runner| runner.is_named(arguments))
    });
    let precedes_command =
        |field: &Field| !has_runner_words && VERBS.contains(&field.text.as_str());
    let shell = arguments
        .iter()
        .enumerate()
        .take(64)
        .position(|(at, field)| runs_script(at, field));
    shell.or_else(|| Some(arguments.iter().take(8).position(precedes_command)? + 1))
}
