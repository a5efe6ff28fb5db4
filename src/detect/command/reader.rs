//! Follows a script without running it: the commands that it results in, and the data that flows
//! between them.

use std::borrow::Cow;
use std::collections::HashMap;
use std::rc::Rc;

use super::clean;
use super::cwd::Location;
use super::facts::{self, Behaviour, Facts};
use super::groups::closer;
use super::lex::{self, Flow, Token, Word};
use super::programs::Programs;
use super::resolved::{self, ResolvedWords};
use super::script::Reading;
use super::value::{Field, Taint, Value, taint_of_fields};
use super::words::{assignment, keyword};
use super::written_files::{FileState, WrittenFiles};

/// Maximum depth of scripts within scripts and groups within groups: scripts written by hand are
/// not nested deeper.
const MAX_DEPTH: usize = 20;
/// Maximum number of commands in one argument, including those behind wrappers and within
/// substitutions.
const MAX_COMMANDS: usize = 8_192;
/// Maximum number of bytes that the expansions of one argument may produce together.
const MAX_BYTES: usize = 1 << 20;
/// Maximum number of steps for reading one argument: tokens, words of commands once for each layer
/// around them, and other work of the same cost. At under a microsecond each, they keep any
/// argument below some 20 ms; a script of 20 kB takes about 6,000.
const MAX_STEPS: usize = 24_000;
/// Maximum number of `sed` scripts whose patterns are compiled, at under a millisecond each; the
/// output of further ones is not known.
const MAX_EDITS: usize = 32;

/// The relevant state of a shell, and the findings so far.
#[derive(Default)]
pub(super) struct Reader<'w> {
    pub(super) facts: Vec<Facts>,
    /// See [`Reading`], as for the next two fields.
    pub(super) scripts: Vec<String>,
    pub(super) resolved: Vec<String>,
    pub(super) texts: Vec<String>,
    /// The current script, an index into `scripts`.
    pub(super) script: usize,
    /// Words of the current script.
    pub(super) resolved_words: ResolvedWords,
    pub(super) script_context: ScriptContext<'w>,
    pub(super) variables: HashMap<String, Value>,
    /// Files written by earlier commands, and streams of process substitutions.
    pub(super) files: HashMap<String, FileState>,
    /// The bodies of functions, and the script that each is in.
    functions: HashMap<String, (usize, Rc<[Token]>)>,
    aliases: HashMap<String, String>,
    /// Functions whose bodies are being read.
    active_functions: Vec<String>,
    /// The folder that a `cd` changed to.
    pub(super) folder: Option<String>,
    /// The file that `exec` opened a descriptor for.
    open_file: Option<String>,
    /// Links made by earlier commands, and their targets.
    pub(super) links: Vec<(String, String)>,
    pub(super) location: Location,
    spent: bool,
    depth: usize,
    bytes: usize,
    commands: usize,
    steps: usize,
    edits: usize,
}

/// Data that is known before the text is read.
#[derive(Clone, Copy, Default)]
pub(super) struct ScriptContext<'w> {
    /// Files that earlier calls wrote.
    pub(super) written_files: Option<&'w dyn WrittenFiles>,
    /// Data about programs; that of the built-in tables if `None`.
    pub(super) programs: Option<&'w Programs>,
    /// Whether the text is the source of a program that is not run now.
    pub(super) is_source: bool,
}

/// The context of a simple command.
#[derive(Default)]
pub(super) struct CommandContext {
    pub(super) input: Value,
    pub(super) piped: bool,
    pub(super) background: bool,
    pub(super) environment: Vec<(String, String)>,
    pub(super) redirects: Vec<(Flow, Field)>,
}

impl CommandContext {
    /// Returns the targets of redirections, and whether each is read.
    pub(super) fn redirect_targets(&self) -> impl Iterator<Item = (bool, &str)> {
        self.redirects.iter().map(|(flow, target)| {
            (
                matches!(flow, Flow::Read | Flow::ReadWrite),
                target.text.as_str(),
            )
        })
    }
}

impl<'w> Reader<'w> {
    /// Reads a whole argument, given the files that earlier calls wrote.
    pub(super) fn read(text: &str, context: ScriptContext<'w>) -> Self {
        let mut reader = Self::with_context(context);
        reader.read_script(text, &Value::empty());
        reader
    }

    /// Creates a reader that has not read anything yet.
    pub(super) fn with_context(context: ScriptContext<'w>) -> Self {
        let session = context
            .written_files
            .and_then(|files| files.folder())
            .map(Rc::from);
        Self {
            script_context: context,
            location: Location {
                session_folder: session,
                ..Location::default()
            },
            ..Self::default()
        }
    }

    /// Returns the data about programs.
    pub(super) fn programs(&self) -> &'w Programs {
        self.script_context
            .programs
            .unwrap_or_else(|| Programs::builtin())
    }

    /// Returns the findings.
    pub(super) fn into_reading(self) -> Reading {
        let regular_files = self
            .files
            .into_iter()
            .filter(|(name, _)| !name.starts_with("/dev/"));
        let files = regular_files
            .map(|(name, file)| file.into_written_file(name))
            .collect();
        Reading {
            facts: self.facts,
            scripts: self.scripts,
            resolved: self.resolved,
            texts: self.texts,
            files,
            folder: self.location.session_folder,
        }
    }

    /// Returns the reader of an argument that is too long to be read.
    pub(super) fn unreadable() -> Self {
        let mut reader = Self::default();
        reader.give_up();
        reader
    }

    /// Records that a limit was exceeded; nothing more is read.
    pub(super) fn give_up(&mut self) {
        if !self.spent {
            self.spent = true;
            self.facts.push(Facts::new(Behaviour::Unreadable));
        }
    }

    pub(super) fn is_spent(&self) -> bool {
        self.spent
    }

    pub(super) fn spend_bytes(&mut self, bytes: usize) {
        self.bytes += bytes;
        if self.bytes > MAX_BYTES {
            self.give_up();
        }
    }

    pub(super) fn spend_steps(&mut self, steps: usize) {
        self.steps = self.steps.saturating_add(steps);
        if self.steps > MAX_STEPS {
            self.give_up();
        }
    }

    /// Counts one more `sed` script that is evaluated; returns `false` if there were too many.
    pub(super) fn spend_edit(&mut self) -> bool {
        self.edits += 1;
        self.edits <= MAX_EDITS
    }

    /// Returns the number of steps taken.
    #[cfg(test)]
    pub(super) fn steps(&self) -> usize {
        self.steps
    }

    /// Counts one more command; returns `false` if there were too many.
    pub(super) fn spend_command(&mut self) -> bool {
        self.commands += 1;
        if self.commands > MAX_COMMANDS {
            self.give_up();
        }
        !self.spent
    }

    pub(super) fn go_deeper(&mut self) -> bool {
        if self.depth >= MAX_DEPTH {
            self.give_up();
        }
        self.depth += usize::from(!self.spent);
        !self.spent
    }

    pub(super) fn come_up(&mut self) {
        self.depth = self.depth.saturating_sub(1);
    }

    /// Reads a script in this shell and returns its output.
    pub(super) fn read_script(&mut self, text: &str, input: &Value) -> Value {
        self.spend_bytes(text.len());
        if !self.spend_command() || !self.go_deeper() {
            return Value::unknown(input.taint);
        }
        let cleaned;
        let mut text = text;
        if self.depth > 1 && !clean::is_plain(text) {
            // A script that was hidden by an encoding may itself contain disguised characters.
            cleaned = clean::readings(text)
                .last()
                .map(Cow::into_owned)
                .unwrap_or_default();
            text = &cleaned;
        }
        let outer = self.enter_script(self.scripts.len());
        self.scripts.push(text.to_owned());
        let (tokens, unclosed) = lex::lex(text);
        self.spend_steps(tokens.len());
        if unclosed {
            self.facts.push(Facts::new(Behaviour::Unparsable));
        }
        let out = self.read_list(&tokens, input);
        self.resolved
            .extend(resolved::resolve(text, &self.resolved_words));
        self.leave_script(outer);
        self.come_up();
        out
    }

    /// Makes a script the current one; returns what [`Reader::leave_script`] needs.
    fn enter_script(&mut self, script: usize) -> (usize, ResolvedWords) {
        let words = std::mem::take(&mut self.resolved_words);
        (std::mem::replace(&mut self.script, script), words)
    }

    fn leave_script(&mut self, (script, words): (usize, ResolvedWords)) {
        self.script = script;
        self.resolved_words = words;
    }

    /// Reads a script in a separate shell.
    pub(super) fn read_inner_script(&mut self, text: &str, input: &Value) -> Value {
        // `$(<file)` is the content of the file.
        if let Some(file) = text.trim().strip_prefix('<')
            && !file.starts_with(['<', '('])
        {
            return self.read_script(&format!("cat {file}"), input);
        }
        let before = (self.folder.clone(), self.location.clone());
        let out = self.read_script(text, input);
        (self.folder, self.location) = before;
        out
    }

    pub(super) fn assign(&mut self, name: &str, value: Value) {
        if self.variables.len() < 1_024 {
            self.variables.insert(name.to_owned(), value);
        }
    }

    /// Sets `$1`, `$2` and so on, `$@` and `$*`.
    pub(super) fn set_positional(&mut self, arguments: &[Field]) {
        for (n, field) in arguments.iter().take(9).enumerate() {
            self.assign(&(n + 1).to_string(), field.value());
        }
        let taint = taint_of_fields(arguments);
        let items: Vec<String> = arguments.iter().map(|f| f.text.clone()).collect();
        self.spend_bytes(items.iter().map(String::len).sum());
        let joined = if items.is_empty() {
            Value::empty()
        } else {
            Value::text(items.join(" "))
        };
        self.assign("*", joined.with(taint));
        self.assign("@", Value::list(items).with(taint));
    }

    pub(super) fn set_alias(&mut self, name: &str, text: &str) {
        if self.aliases.len() < 64 {
            self.aliases.insert(name.to_owned(), text.to_owned());
        }
    }

    pub(super) fn alias_of(&self, name: &str) -> Option<String> {
        self.aliases.get(name).cloned()
    }

    /// Reads a function's body once, and keeps it for calls. Returns the index after it.
    pub(super) fn define_function(
        &mut self,
        name: &Word,
        tokens: &[Token],
        mut at: usize,
    ) -> usize {
        while matches!(tokens.get(at), Some(Token::End)) {
            at += 1;
        }
        let opens = matches!(tokens.get(at), Some(Token::Open))
            || matches!(tokens.get(at), Some(Token::Word(w, _)) if keyword(w).is_some());
        let end = if opens { closer(tokens, at) } else { at };
        let name = self.expand_single(name).text;
        let body = tokens.get(at + 1..end).unwrap_or_default();
        if self.functions.len() < 256 {
            self.functions
                .insert(name.clone(), (self.script, body.into()));
        }
        if self.go_deeper() {
            self.active_functions.push(name);
            self.read_list(body, &Value::empty());
            self.active_functions.pop();
            self.come_up();
        }
        end + 1
    }

    /// Reads a call of a function that was defined earlier.
    pub(super) fn call_function(
        &mut self,
        name: &str,
        arguments: &[Field],
        context: &CommandContext,
    ) -> Option<Value> {
        if self.active_functions.iter().any(|inside| inside == name) {
            if context.piped || context.background {
                self.facts.push(Facts::new(Behaviour::ForkBomb));
            }
            return None;
        }
        let (script, body) = self.functions.get(name)?.clone();
        if !self.go_deeper() {
            return None;
        }
        self.active_functions.push(name.to_owned());
        self.set_positional(arguments);
        let outer = (script != self.script).then(|| self.enter_script(script));
        let out = self.read_list(&body, &context.input);
        if let Some(outer) = outer {
            self.leave_script(outer);
        }
        for n in 1..=arguments.len().min(9) {
            self.variables.remove(&n.to_string());
        }
        self.variables.remove("@");
        self.variables.remove("*");
        self.active_functions.pop();
        self.come_up();
        Some(out)
    }

    pub(super) fn read_simple(
        &mut self,
        tokens: &[Token],
        mut at: usize,
        input: Value,
        piped: bool,
    ) -> (Value, usize) {
        let mut context = CommandContext {
            input,
            piped,
            ..CommandContext::default()
        };
        let mut fields: Vec<Field> = Vec::new();
        loop {
            match tokens.get(at) {
                Some(Token::Word(word, place)) => match if fields.is_empty() {
                    assignment(word)
                } else {
                    None
                } {
                    Some((name, appends)) => {
                        self.read_assignment(word, name, appends, &mut context)
                    }
                    None => {
                        let before = fields.len();
                        self.expand_word(word, &mut fields);
                        let added = fields.get(before..).unwrap_or_default();
                        self.note_resolved(place, added, before == 0);
                    }
                },
                Some(Token::Redirect { flow, target }) => {
                    let target = self.expand_single(target);
                    context.redirects.push((*flow, target));
                }
                // Groups are recognized earlier, so a parenthesis here is misplaced.
                Some(Token::Open | Token::Close) if at + 1 < tokens.len() && fields.is_empty() => {}
                _ => break,
            }
            at += 1;
            if self.spent {
                break;
            }
        }
        self.spend_steps(
            fields
                .iter()
                .map(|f| 1 + f.text.len() / 16 + if f.glob { 16 } else { 0 })
                .sum(),
        );
        context.background = matches!(tokens.get(at), Some(Token::Background));
        context.piped |= matches!(tokens.get(at), Some(Token::Pipe));
        for (flow, target) in std::mem::take(&mut context.redirects) {
            context.input =
                self.redirected_input(flow, &target, std::mem::take(&mut context.input));
            context.redirects.push((flow, target));
        }
        // A variable that nothing sets is removed from the front (`$SUDO rm …`), unless it is the
        // program (`$x -rf /`).
        while let [first, second, ..] = fields.as_slice()
            && (first.text.is_empty()
                || first.is_variable() && !second.text.starts_with(['-', '/', '~']))
        {
            fields.remove(0);
        }
        let out = if fields.is_empty() {
            self.read_bare(context)
        } else {
            self.read_command(fields.into(), context)
        };
        (out, at)
    }

    pub(super) fn read_trailing_redirects(
        &mut self,
        tokens: &[Token],
        mut at: usize,
    ) -> (Vec<(Flow, Field)>, usize) {
        let mut redirects = Vec::new();
        while let Some(Token::Redirect { flow, target }) = tokens.get(at) {
            redirects.push((*flow, self.expand_single(target)));
            at += 1;
        }
        (redirects, at)
    }

    pub(super) fn redirected_input(&mut self, flow: Flow, target: &Field, input: Value) -> Value {
        match flow {
            Flow::Here => target.value(),
            Flow::Read | Flow::ReadWrite => match self.file_content(&target.text) {
                Some(value) => value,
                None => {
                    let taint = facts::read_path(&target.text, self.folder.as_deref())
                        .map_or(Taint::NONE, |named_path| facts::taint_of(&named_path));
                    Value::unknown(target.taint | taint)
                }
            },
            Flow::Write | Flow::Append | Flow::Duplicate => input,
        }
    }

    /// Reads a redirection or assignment without a command, or the output of a group.
    pub(super) fn read_bare(&mut self, context: CommandContext) -> Value {
        if context.redirects.is_empty() && context.environment.is_empty() {
            return context.input;
        }
        let mut facts = Facts {
            stdin: context.input.taint,
            location: self.location.clone(),
            ..Facts::default()
        };
        let out = context.input.clone();
        self.finish_command(&mut facts, context, &out);
        self.facts.push(facts);
        out
    }

    /// Adds a command's redirections and environment to its facts, and keeps the content that it
    /// writes.
    pub(super) fn finish_command(
        &mut self,
        facts: &mut Facts,
        context: CommandContext,
        out: &Value,
    ) {
        for (flow, target) in &context.redirects {
            match flow {
                Flow::Read if facts.program.is_empty() => {
                    facts.redirect_read(&target.text, self.folder.as_deref());
                }
                Flow::Write | Flow::Append | Flow::ReadWrite => {
                    facts.redirect_write(&target.text, self.folder.as_deref());
                    if target.text.starts_with("/dev/tcp/") || target.text.starts_with("/dev/udp/")
                    {
                        facts.sends |= out.taint;
                    }
                    if facts.program == "exec" {
                        self.open_file = Some(target.text.clone());
                    }
                    if *flow == Flow::Append {
                        self.append_file(&target.text, out.clone());
                    } else {
                        self.keep_file(&target.text, out.clone());
                    }
                }
                Flow::Duplicate if target.text.parse().is_ok_and(|number: u32| number > 2) => {
                    if let Some(name) = self.open_file.clone() {
                        self.append_file(&name, out.clone());
                    }
                }
                Flow::Read | Flow::Here | Flow::Duplicate => {}
            }
        }
        self.note_written(facts);
        if !context.environment.is_empty() {
            self.read_environment(&context.environment);
            facts.environment.extend(context.environment);
        }
    }
}
