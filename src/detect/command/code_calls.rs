//! The effects of calls in the languages of interpreters: run, evaluate, delete, read, write,
//! fetch, send.

use super::code::variable;
use super::code_flow::Flow;
use super::code_lex::Language;
use super::code_names::{
    CONNECT, COPY, DELETE, DELETE_TREE, EVALUATE, FETCH, READ, RUN, SEND, WALK, WRITE, acts,
    fetches, last_of, mode,
};
use super::compiled::{self, CallMeaning};
use super::dialect::{self, Dialect};
use super::facts::Facts;
use super::reader::{CommandContext, Reader};
use super::term::{self, Term};
use super::value::{Field, Taint, Value};

/// Modules and functions that deserialize objects, which may run arbitrary code.
const REBUILDERS: [&str; 8] = [
    "pickle",
    "marshal",
    "dill",
    "joblib",
    "torch",
    "unsafe_load",
    "shelve",
    "UnsafeLoader",
];

/// Prefix, before the path, in the name of the term for a file that code opened for writing.
const OPENED: &str = "file:";

impl Reader<'_> {
    /// Reports what a call does as a command and returns the value that it produces.
    pub(super) fn code_call(
        &mut self,
        language: Language,
        mut callee: Term,
        given: &[Term],
        flow: &mut Flow,
    ) -> Term {
        match compiled::call_meaning(language, &callee, given, flow) {
            Some(CallMeaning::Makes(made)) => return made,
            Some(CallMeaning::Runs(words)) => return self.run_call("spawn", &[words], flow),
            Some(CallMeaning::Call(name)) => callee.name = name.to_owned(),
            None => {}
        }
        let name = callee.name.clone();
        let last = last_of(&name);
        let lower = last.to_ascii_lowercase();
        let taint = given
            .iter()
            .fold(callee.taint, |taint, term| taint | term.taint);
        let first = given.first().map(Term::first).unwrap_or_default();
        flow.taint |= taint;
        match last {
            "__import__" | "import_module" | "import" | "_load" | "require"
            | "getBuiltinModule"
                if given.len() == 1 || last == "__import__" =>
            {
                return Term::named(first.trim_start_matches("node:"));
            }
            "getattr" | "__getattribute__" | "attrgetter" if given.len() >= 2 => {
                let of = given
                    .first()
                    .map(|term| term.name.clone())
                    .unwrap_or_default();
                return Term::named(format!(
                    "{of}.{}",
                    given.get(1).map(Term::first).unwrap_or_default()
                ));
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
                if given.first().is_some_and(|term| {
                    acts(if term.first().is_empty() {
                        &term.name
                    } else {
                        term.first()
                    })
                }) =>
            {
                let target = given
                    .first()
                    .map(|term| {
                        if term.is_known() {
                            term.first()
                        } else {
                            term.name.as_str()
                        }
                    })
                    .unwrap_or_default();
                let rest = given.get(1..).unwrap_or_default();
                return self.code_call(language, Term::named(target), rest, flow);
            }
            "call" | "apply" | "bind"
                if name.len() > last.len()
                    && acts(name.get(..name.len() - last.len() - 1).unwrap_or_default()) =>
            {
                let target = name.get(..name.len() - last.len() - 1).unwrap_or_default();
                return self.code_call(
                    language,
                    Term::named(target),
                    given.get(1..).unwrap_or_default(),
                    flow,
                );
            }
            "map"
                if given
                    .first()
                    .is_some_and(|term| matches!(last_of(&term.name), "chr" | "unichr")) =>
            {
                return given.get(1).cloned().unwrap_or_default().into_letters();
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
                if let Some(secret) = variable(first) {
                    return secret;
                }
            }
            "URI" | "URL" if given.len() == 1 => return given.first().cloned().unwrap_or_default(),
            "parse" if name == "URI.parse" => return given.first().cloned().unwrap_or_default(),
            "loads" if name.contains("marshal") => return Term::unknown(taint | Taint::DECODED),
            "compile" if given.len() >= 2 => return given.first().cloned().unwrap_or_default(),
            "promisify" | "partial" => return given.first().cloned().unwrap_or_default(),
            // A variable that names a function: `$f("x")`.
            _ if callee.is_known() && !callee.list && name.is_empty() && acts(callee.first()) => {
                return self.code_call(language, Term::named(callee.first()), given, flow);
            }
            _ => {}
        }
        if given
            .iter()
            .any(|term| EVALUATE.contains(&last_of(&term.name)) && !term.is_known())
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
        if SEND.contains(&last) || (FETCH.contains(&last) && !given.is_empty()) {
            flow.sent |= taint;
        }
        if FETCH.contains(&last)
            || (matches!(last, "get" | "post" | "put" | "request") && fetches(&name))
        {
            flow.taint |= Taint::DOWNLOAD;
            if first.contains("://") {
                let secrets = given
                    .iter()
                    .skip(1)
                    .filter(|term| term.taint.meets(Taint::SECRET_VARIABLE));
                let shown = secrets
                    .flat_map(|term| &term.items)
                    .filter(|item| item.contains('$'))
                    .take(16);
                let headers = shown.map(|item| {
                    Term::list(vec!["-H".to_owned(), format!("Authorization: {item}")])
                });
                let words: Vec<Term> = given.first().cloned().into_iter().chain(headers).collect();
                self.report_command(&["curl"], &words.iter().collect::<Vec<_>>());
            }
            return Term {
                taint: taint | Taint::DOWNLOAD,
                name: "download".into(),
                ..Term::default()
            };
        }
        if matches!(
            last,
            "loads" | "load" | "unsafe_load" | "read_pickle" | "decode" | "Unpickler"
        ) && REBUILDERS.iter().any(|module| name.contains(module))
            && taint.meets(Taint::DECODED | Taint::DOWNLOAD)
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
            return self.evaluate(language, given, taint, flow);
        }
        if RUN.contains(&last) && !name.ends_with("re.compile") {
            return self.run_call(last, given, flow);
        }
        if let Some(made) = self.touch(language, &name, last, &callee, given, flow) {
            return made;
        }
        if lower == "join"
            && (name.contains("path") || name.starts_with("File") || name.contains("Path"))
            || lower == "joinpath"
        {
            let mut parts = given.iter().cloned();
            let start = if callee.is_known() {
                callee
            } else {
                parts.next().unwrap_or_default()
            };
            return parts.fold(start, Term::slash);
        }
        if matches!(
            lower.as_str(),
            "walk"
                | "rglob"
                | "iterdir"
                | "listdir"
                | "scandir"
                | "readdirsync"
                | "readdir"
                | "glob"
                | "iglob"
                | "globsync"
        ) {
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
                "walk" => Term {
                    name: WALK.into(),
                    ..Term::list(vec![start.to_owned(), "*".into(), "*".into()])
                },
                _ => Term::text(below),
            };
        }
        let subject = (callee.is_known() || callee.taint != Taint::NONE).then_some(&callee);
        if let Some(made) = term::call(&lower, subject, given) {
            flow.taint |= made.taint;
            return made;
        }
        if let Some(names) = flow.functions.get(last).cloned() {
            for (name, value) in names.iter().zip(given) {
                flow.again |= !flow.names.contains_key(name);
                flow.keep(name, value.clone());
            }
        }
        if name.starts_with("sh.") && language == Language::Python {
            self.report_command(&[last], &given.iter().collect::<Vec<_>>());
        }
        Term {
            taint,
            name: callee.name,
            ..Term::default()
        }
    }

    fn evaluate(
        &mut self,
        language: Language,
        given: &[Term],
        taint: Taint,
        flow: &mut Flow,
    ) -> Term {
        let last = given.iter().rev().find(|term| term.is_known());
        match given
            .iter()
            .find(|term| term.is_known())
            .filter(|term| term.items.concat().len() > 8)
            .or(last)
        {
            Some(code) if !code.items.concat().is_empty() => {
                let text = code.items.concat();
                if taint.meets(Taint::DECODED | Taint::DOWNLOAD | Taint::SOCKET) {
                    flow.evaluates = true;
                }
                self.more_code(language, &text, flow);
                Term::unknown(taint)
            }
            _ => {
                flow.evaluates |= !given.is_empty();
                flow.shells |= taint.meets(Taint::SOCKET);
                Term::unknown(taint)
            }
        }
    }

    /// Reads a call that runs a command.
    fn run_call(&mut self, last: &str, given: &[Term], flow: &mut Flow) -> Term {
        let taint = given
            .iter()
            .fold(Taint::NONE, |taint, term| taint | term.taint);
        flow.shells |= taint.meets(Taint::SOCKET);
        // A replaced program name, or a mode, comes first.
        let skip = usize::from(
            last.starts_with("execl")
                || (last.starts_with("spawnl") && given.first().is_none_or(Term::is_known)),
        );
        let mut words: Vec<String> = Vec::new();
        let mut taints: Vec<Taint> = Vec::new();
        let mut whole = false;
        for (at, term) in given.iter().enumerate().skip(skip) {
            if last.starts_with("execv") && at == 1 {
                words.extend(term.items.iter().skip(1).cloned());
            } else {
                words.extend(term.items.iter().take(256).cloned());
            }
            taints.resize(words.len(), term.taint);
            whole |= at == skip && !term.list && term.is_known();
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
        let out =
            if whole && script.contains([' ', ';', '|', '&', '\n', '`', '$']) || words.len() == 1 {
                if dialect::evidence(&script).dialect == Dialect::Windows {
                    self.windows(&script);
                }
                self.inner_script(&script, &Value::nothing())
            } else {
                let joined = words.join(" ");
                if dialect::evidence(&joined).dialect == Dialect::Windows {
                    self.windows(&joined);
                }
                let fields: Vec<Field> = words
                    .into_iter()
                    .zip(taints)
                    .map(|(word, taint)| Field {
                        taint,
                        ..Field::plain(word)
                    })
                    .collect();
                self.command_fields(fields)
            };
        Term::unknown(out.taint | taint)
    }

    /// Reports a call that touches files as the command that would do the same.
    fn touch(
        &mut self,
        language: Language,
        name: &str,
        last: &str,
        callee: &Term,
        given: &[Term],
        flow: &mut Flow,
    ) -> Option<Term> {
        let receiver = callee.is_known()
            && !callee.list
            && callee.first().starts_with(['/', '~', '.', 'C', '*']);
        let mut operands: Vec<&Term> = Vec::new();
        if receiver {
            operands.push(callee);
        }
        operands.extend(
            given
                .iter()
                .filter(|term| language != Language::Perl || term.is_known()),
        );
        if DELETE_TREE.contains(&last) {
            operands.retain(|term| !term.first().starts_with('-'));
        }
        let first = operands.first().copied().cloned().unwrap_or_default();
        if READ.contains(&last) && first.first().contains("://") {
            flow.taint |= Taint::DOWNLOAD;
            return Some(Term::unknown(Taint::DOWNLOAD));
        }
        let writes_whole = WRITE.contains(&last) && !callee.name.starts_with(OPENED);
        if !writes_whole {
            self.keep_written(last, callee, given);
        }
        let words: &[&str] = match last {
            "kill"
                if given
                    .iter()
                    .take(2)
                    .any(|term| matches!(term.first(), "1" | "-1")) =>
            {
                let target = if given.iter().any(|term| term.first() == "-1") {
                    "-1"
                } else {
                    "1"
                };
                self.report_command(&["kill", "-9", target], &[]);
                return Some(Term::default());
            }
            "chmod" | "chmodSync" | "lchmod" | "fchmod" => {
                let mode = operands.iter().find_map(|term| mode(term.first()))?;
                let paths: Vec<&Term> = operands
                    .iter()
                    .copied()
                    .filter(|term| term.first().starts_with(['/', '~', '.']))
                    .collect();
                self.report_command(&["chmod", &mode], &paths);
                return Some(Term::default());
            }
            "chown" | "chownSync" => {
                let paths: Vec<&Term> = operands
                    .iter()
                    .copied()
                    .filter(|term| term.first().starts_with(['/', '~']))
                    .collect();
                self.report_command(&["chown", "1000"], &paths);
                return Some(Term::default());
            }
            _ if DELETE_TREE.contains(&last) => &["rm", "-r", "-f"],
            _ if last == "sync" && name.contains("rimraf") => &["rm", "-r", "-f"],
            "remove" if language == Language::JavaScript && given.len() > 1 => &["rm", "-r", "-f"],
            _ if last == "rmdir" && given.len() > 1 => &["rm", "-r", "-f"],
            _ if DELETE.contains(&last) => &["rm", "-f"],
            "rename" | "renameSync" | "move" | "replace_file"
                if operands.iter().filter(|term| term.is_known()).count() > 1 =>
            {
                &["mv"]
            }
            _ if COPY.contains(&last)
                && operands.iter().filter(|term| term.is_known()).count() > 1 =>
            {
                &["cp"]
            }
            _ if WRITE.contains(&last) && last.starts_with("append") => &["tee", "-a"],
            _ if WRITE.contains(&last) => &["tee"],
            _ if READ.contains(&last) => {
                let writes = operands.iter().skip(1).any(|term| {
                    let mode = term.first().trim();
                    (mode.len() <= 4 && mode.starts_with(['w', 'a', 'x', '>', '+']))
                        || mode.starts_with("r+")
                        || mode == "rb+"
                });
                if writes || first.first().starts_with('>') {
                    &["tee"]
                } else {
                    &["cat"]
                }
            }
            _ => return None,
        };
        if !first.is_known() {
            return Some(Term {
                taint: first.taint | callee.taint,
                ..Term::default()
            })
            .filter(|_| words.first() != Some(&"tee") && !READ.contains(&last));
        }
        let mode = |text: &str| text.len() <= 2 && text.starts_with(['>', '<', '+']);
        let paths: Vec<Term> = operands
            .iter()
            .filter(|term| !mode(term.first().trim()))
            .take(if words == ["cp"] || words == ["mv"] {
                2
            } else {
                1
            })
            .map(|term| {
                let items = term
                    .items
                    .iter()
                    .map(|item| item.trim_start_matches(['>', '<', ' ']).to_owned())
                    .collect();
                Term {
                    items,
                    ..(*term).clone()
                }
            })
            .collect();
        let out = self.report_command(words, &paths.iter().collect::<Vec<_>>());
        if writes_whole {
            // `tee` has emptied the file.
            self.keep_written(last, callee, given);
        }
        flow.taint |= out.taint;
        // Later writes to the file are recognized by this name.
        let path = paths.first().map_or("", Term::first);
        let name = if words == ["tee"] {
            format!("{OPENED}{path}")
        } else {
            "file".to_owned()
        };
        let sent = operands
            .iter()
            .fold(out.taint, |taint, term| taint | term.taint);
        Some(Term {
            taint: sent,
            name,
            ..Term::default()
        })
    }

    /// Keeps the content that code writes to a file, for a command that runs the file.
    fn keep_written(&mut self, last: &str, callee: &Term, given: &[Term]) {
        let known = |term: Option<&Term>| {
            term.filter(|term| term.is_known() && !term.list)
                .map(|term| term.first().to_owned())
        };
        let opened = callee
            .name
            .strip_prefix(OPENED)
            .map(|path| path.split('.').collect::<Vec<_>>());
        let (path, content) = match last {
            "urlretrieve" | "getstore" => {
                if let Some(path) = known(given.get(1)) {
                    self.keep_file(&path, Value::unknown(Taint::DOWNLOAD));
                }
                return;
            }
            "write" | "writelines" | "puts" if opened.is_some() => {
                // The name of the method follows that of the file.
                let parts = opened.unwrap_or_default();
                let end = parts.len() - usize::from(parts.last() == Some(&last));
                (parts.get(..end).map(|parts| parts.join(".")), given.first())
            }
            "write_text" | "write_bytes" => (known(Some(callee)), given.first()),
            _ if WRITE.contains(&last) => (known(given.first()), given.get(1)),
            _ => return,
        };
        if let Some(path) = path.filter(|path| !path.is_empty())
            && let Some(content) = content
            && let Some(text) = known(Some(content))
        {
            self.append_file(&path, Value::text(text).with(content.taint));
            self.note_written_by_code(&path);
        }
    }

    /// Reports a command that consists of known words and the items of terms, and returns its
    /// output.
    pub(super) fn report_command(&mut self, words: &[&str], terms: &[&Term]) -> Value {
        let mut fields: Vec<Field> = words.iter().map(|word| Field::plain(*word)).collect();
        for term in terms {
            fields.extend(term.items.iter().take(64).map(|item| Field {
                taint: term.taint,
                ..Field::plain(item.clone())
            }));
        }
        self.command_fields(fields)
    }

    fn command_fields(&mut self, fields: Vec<Field>) -> Value {
        if fields.is_empty() || !self.go_deeper() {
            return Value::nothing();
        }
        let out = self.command(fields.into(), CommandContext::default());
        self.come_up();
        out
    }
}
