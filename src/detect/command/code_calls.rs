//! The effects of calls in the languages of interpreters: run, evaluate, delete, read, write,
//! fetch, send.

mod files;

use super::code::secret_variable;
use super::code_flow::Flow;
use super::code_lex::Language;
use super::code_names::{
    CONNECT, EVALUATE, FETCH, RUN, SEND, WALK, acts_on_text, fetches, last_part,
};
use super::compiled::{self, CallMeaning};
use super::dialect::{self, Dialect};
use super::facts::Facts;
use super::reader::{CommandContext, Reader};
use super::term::{self, Term, taint_of_terms};
use super::value::{Field, Taint, Value};
use crate::text::quick::WordSet;

/// Modules and functions that deserialize objects, which may run arbitrary code.
static REBUILDERS: WordSet =
    WordSet::new("pickle marshal dill joblib torch unsafe_load shelve UnsafeLoader");

/// Functions that list folders, in lower case.
static LISTERS: WordSet =
    WordSet::new("walk rglob iterdir listdir scandir readdirsync readdir glob iglob globsync");

/// Prefix, before the path, in the name of the term for a file that code opened for writing.
const OPENED: &str = "file:";

impl Reader<'_> {
    /// Reports what a call does as a command and returns the value that it produces.
    pub(super) fn evaluate_call(
        &mut self,
        language: Language,
        mut callee: Term,
        arguments: &[Term],
        flow: &mut Flow,
    ) -> Term {
        match compiled::call_meaning(language, &callee, arguments, flow) {
            Some(CallMeaning::Value(result)) => return result,
            Some(CallMeaning::Command(words)) => return self.run_call("spawn", &[words], flow),
            Some(CallMeaning::Call(name)) => callee.name = name.to_owned(),
            None => {}
        }
        let name = callee.name.clone();
        let last = last_part(&name);
        let lower = last.to_ascii_lowercase();
        let taint = callee.taint | taint_of_terms(arguments);
        let first = arguments.first().map(Term::first).unwrap_or_default();
        let first_argument = || arguments.first().cloned().unwrap_or_default();
        let rest = arguments.get(1..).unwrap_or_default();
        // The function in `f.call(…)`.
        let method_owner = name
            .len()
            .checked_sub(last.len() + 1)
            .and_then(|end| name.get(..end))
            .unwrap_or_default();
        flow.taint |= taint;
        match last {
            "__import__" | "import_module" | "import" | "_load" | "require"
            | "getBuiltinModule"
                if arguments.len() == 1 || last == "__import__" =>
            {
                return Term::named(first.trim_start_matches("node:"));
            }
            "getattr" | "__getattribute__" | "attrgetter" if arguments.len() >= 2 => {
                let object = first_argument().name;
                let member = rest.first().map(Term::first).unwrap_or_default();
                return Term::named(format!("{object}.{member}"));
            }
            "send"
            | "public_send"
            | "__send__"
            | "call_user_func"
            | "method"
            | "call_user_func_array"
            | "map"
            | "array_map"
            | "apply"
                if arguments.first().is_some_and(|term| {
                    acts_on_text(if first.is_empty() { &term.name } else { first })
                }) =>
            {
                let target = arguments
                    .first()
                    .filter(|term| !term.is_known())
                    .map_or(first, |term| &term.name);
                return self.evaluate_call(language, Term::named(target), rest, flow);
            }
            "call" | "apply" | "bind" if acts_on_text(method_owner) => {
                return self.evaluate_call(language, Term::named(method_owner), rest, flow);
            }
            "map"
                if arguments
                    .first()
                    .is_some_and(|term| matches!(last_part(&term.name), "chr" | "unichr")) =>
            {
                return arguments.get(1).cloned().unwrap_or_default().into_letters();
            }
            "include" | "include_once" | "require" | "require_once" if first.contains("://") => {
                self.facts.push(Facts {
                    program: last.to_owned(),
                    executes: Taint::DOWNLOAD,
                    ..Facts::default()
                });
                return Term::default();
            }
            "getenv" | "get" | "fetch" | "env"
                if last == "getenv" || name.contains("env") || name.starts_with("ENV.") =>
            {
                if let Some(secret) = secret_variable(first) {
                    return secret;
                }
            }
            "URI" | "URL" if arguments.len() == 1 => return first_argument(),
            "parse" if name == "URI.parse" => return first_argument(),
            "loads" if name.contains("marshal") => return Term::unknown(taint | Taint::DECODED),
            "compile" if arguments.len() >= 2 => return first_argument(),
            "promisify" | "partial" => return first_argument(),
            // A variable that names a function: `$f("x")`.
            _ if callee.is_known()
                && !callee.list
                && name.is_empty()
                && acts_on_text(callee.first()) =>
            {
                return self.evaluate_call(language, Term::named(callee.first()), arguments, flow);
            }
            _ => {}
        }
        if arguments
            .iter()
            .any(|term| EVALUATE.contains(&last_part(&term.name)) && !term.is_known())
            && matches!(last, "then" | "map" | "on" | "forEach")
        {
            flow.evaluates = true;
        }
        if CONNECT.contains(&last)
            || name.ends_with("Socket.new")
            || name.contains("INET")
            || name.ends_with("TCPSocket.open")
        {
            flow.connects = true;
        }
        if matches!(
            last,
            "recv" | "recvfrom" | "readline" | "gets" | "receive" | "fgets" | "fread" | "read"
        ) && flow.connects
            && !callee.is_known()
        {
            return Term::unknown(taint | Taint::SOCKET);
        }
        let writes_file = last == "write" && callee.name.starts_with(OPENED);
        if (SEND.contains(&last) && !writes_file)
            || (FETCH.contains(&last) && !arguments.is_empty())
        {
            flow.sent |= taint;
        }
        if FETCH.contains(&last)
            || (matches!(last, "get" | "post" | "put" | "request") && fetches(&name))
        {
            flow.taint |= Taint::DOWNLOAD;
            if first.contains("://") {
                let secrets = arguments
                    .iter()
                    .skip(1)
                    .filter(|term| term.taint.intersects(Taint::SECRET_VARIABLE));
                let secret_items = secrets
                    .flat_map(|term| &term.items)
                    .filter(|item| item.contains('$'))
                    .take(16);
                let headers = secret_items.map(|item| {
                    Term::list(vec!["-H".to_owned(), format!("Authorization: {item}")])
                });
                let words: Vec<Term> = arguments
                    .first()
                    .cloned()
                    .into_iter()
                    .chain(headers)
                    .collect();
                self.report_command(&["curl"], &words.iter().collect::<Vec<_>>());
            }
            return Term::named("download").with(taint | Taint::DOWNLOAD);
        }
        if matches!(
            last,
            "loads" | "load" | "unsafe_load" | "read_pickle" | "decode" | "Unpickler"
        ) && REBUILDERS.iter().any(|module| name.contains(module))
            && taint.intersects(Taint::DECODED | Taint::DOWNLOAD)
        {
            flow.evaluates = true;
        }
        let evaluates = match last {
            "exec" => language == Language::Python,
            "load" => language == Language::Lua,
            "assert" => language == Language::Php,
            last => EVALUATE.contains(&last),
        };
        if evaluates {
            return self.evaluate(language, arguments, taint, flow);
        }
        if RUN.contains(&last) && !name.ends_with("re.compile") {
            return self.run_call(last, arguments, flow);
        }
        if let Some(result) =
            self.report_file_access(language, &name, last, &callee, arguments, flow)
        {
            return result;
        }
        if lower == "join"
            && (name.contains("path") || name.starts_with("File") || name.contains("Path"))
            || lower == "joinpath"
        {
            let mut parts = arguments.iter().cloned();
            let start = if callee.is_known() {
                callee
            } else {
                parts.next().unwrap_or_default()
            };
            return parts.fold(start, Term::join_path);
        }
        if LISTERS.contains(lower.as_str()) {
            let start = if callee.is_known() {
                callee.first()
            } else {
                first
            };
            if start.is_empty() {
                return Term::default();
            }
            let below = if start.contains('*') {
                start.to_owned()
            } else {
                format!("{}/*", start.trim_end_matches('/'))
            };
            return match lower.as_str() {
                "walk" => {
                    Term::list(vec![start.to_owned(), "*".into(), "*".into()]).with_name(WALK)
                }
                _ => Term::text(below),
            };
        }
        let subject = (callee.is_known() || callee.taint != Taint::NONE).then_some(&callee);
        if let Some(result) = term::call(&lower, subject, arguments) {
            flow.taint |= result.taint;
            return result;
        }
        if let Some(names) = flow.functions.get(last).cloned() {
            for (name, value) in names.iter().zip(arguments) {
                flow.needs_second_pass |= !flow.names.contains_key(name);
                flow.assign(name, value.clone());
            }
        }
        if name.starts_with("sh.") && language == Language::Python {
            self.report_command(&[last], &arguments.iter().collect::<Vec<_>>());
        }
        Term::named(callee.name).with(taint)
    }

    fn evaluate(
        &mut self,
        language: Language,
        arguments: &[Term],
        taint: Taint,
        flow: &mut Flow,
    ) -> Term {
        let last = arguments.iter().rev().find(|term| term.is_known());
        match arguments
            .iter()
            .find(|term| term.is_known())
            .filter(|term| term.items.concat().len() > 8)
            .or(last)
        {
            Some(code) if !code.items.concat().is_empty() => {
                let text = code.items.concat();
                if taint.intersects(Taint::DECODED | Taint::DOWNLOAD | Taint::SOCKET) {
                    flow.evaluates = true;
                }
                self.evaluate_in_flow(language, &text, flow);
                Term::unknown(taint)
            }
            _ => {
                flow.evaluates |= !arguments.is_empty();
                flow.shells |= taint.intersects(Taint::SOCKET);
                Term::unknown(taint)
            }
        }
    }

    /// Reads a call that runs a command.
    fn run_call(&mut self, last: &str, arguments: &[Term], flow: &mut Flow) -> Term {
        let taint = taint_of_terms(arguments);
        flow.shells |= taint.intersects(Taint::SOCKET);
        // A replaced program name, or a mode, comes first.
        let skip = usize::from(
            last.starts_with("execl")
                || (last.starts_with("spawnl") && arguments.first().is_none_or(Term::is_known)),
        );
        let mut words: Vec<String> = Vec::new();
        let mut taints: Vec<Taint> = Vec::new();
        let mut is_text = false;
        for (at, term) in arguments.iter().enumerate().skip(skip) {
            if last.starts_with("execv") && at == 1 {
                words.extend(term.items.iter().skip(1).cloned());
            } else {
                words.extend(term.items.iter().take(256).cloned());
            }
            taints.resize(words.len(), term.taint);
            is_text |= at == skip && !term.list && term.is_known();
        }
        let executes =
            taint.without(Taint::SOCKET | Taint::CREDENTIAL | Taint::ENVIRONMENT | Taint::PERSONAL);
        if words.is_empty() {
            if executes != Taint::NONE {
                self.facts.push(Facts {
                    program: last.to_owned(),
                    executes,
                    ..Facts::default()
                });
            }
            return Term::unknown(taint);
        }
        let Some(script) = words.first().cloned() else {
            return Term::default();
        };
        // A shell without a script runs its input.
        let bare = script.rsplit(['/', '\\']).next().unwrap_or(&script);
        flow.shells |= matches!(
            bare.split(' ').next(),
            Some("sh" | "bash" | "zsh" | "dash" | "ksh" | "cmd.exe" | "cmd" | "powershell")
        ) && !words
            .iter()
            .any(|word| matches!(word.as_str(), "-c" | "-lc" | "/c"))
            && !script.contains(" -c");
        let out = if is_text && script.contains([' ', ';', '|', '&', '\n', '`', '$'])
            || words.len() == 1
        {
            if dialect::evidence(&script).dialect == Dialect::Windows {
                self.read_windows_script(&script);
            }
            self.read_inner_script(&script, &Value::empty())
        } else {
            let joined = words.join(" ");
            if dialect::evidence(&joined).dialect == Dialect::Windows {
                self.read_windows_script(&joined);
            }
            let fields: Vec<Field> = words
                .into_iter()
                .zip(taints)
                .map(|(word, taint)| Field::plain(word).with(taint))
                .collect();
            self.command_fields(fields)
        };
        Term::unknown(out.taint | taint)
    }

    /// Reports a command that consists of known words and the items of terms, and returns its
    /// output.
    pub(super) fn report_command(&mut self, words: &[&str], terms: &[&Term]) -> Value {
        let mut fields: Vec<Field> = words.iter().map(|word| Field::plain(*word)).collect();
        for term in terms {
            let items = term.items.iter().take(64);
            fields.extend(items.map(|item| Field::plain(item.clone()).with(term.taint)));
        }
        self.command_fields(fields)
    }

    fn command_fields(&mut self, fields: Vec<Field>) -> Value {
        if fields.is_empty() || !self.go_deeper() {
            return Value::empty();
        }
        let out = self.read_command(fields.into(), CommandContext::default());
        self.come_up();
        out
    }
}
