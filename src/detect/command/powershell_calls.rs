//! The effects of PowerShell's cmdlets and of .NET methods.

use super::facts::{Behaviour, Facts};
use super::powershell::Session;
use super::powershell_terms::{RECURSIVE, first_match, to_fields};
use super::term::{self, Term, taint_of_terms};
use super::value::{Field, Taint, Value, join_words, taint_of_fields};
use super::windows_names::{aliases, cmdlet_of, cmdlets};
use crate::text::quick::WordSet;

/// Returns the last part of a type's name: `net.webclient` is `webclient`.
fn short_name(name: &str) -> String {
    let name = name.rsplit(['.', ']']).next().unwrap_or(name);
    name.trim_matches(['[', ']', ' ']).to_ascii_lowercase()
}

/// Returns the value after a parameter, whose name may be shortened to `least` letters.
fn parameter<'f>(fields: &'f [Field], names: &[&str], least: usize) -> Option<&'f Field> {
    let at = fields.iter().position(|field| {
        let text = field.text.to_ascii_lowercase();
        text.len() > least && names.iter().any(|name| name.starts_with(&text))
    })?;
    fields.get(at + 1)
}

/// Returns the words that are neither parameters nor, as far as can be determined, values of
/// parameters.
fn operands(fields: &[Field]) -> impl Iterator<Item = &Field> {
    fields
        .iter()
        .filter(|field| !field.text.starts_with('-') || field.quoted)
}

fn operand_texts(fields: &[Field]) -> Vec<String> {
    operands(fields).map(|field| field.text.clone()).collect()
}

impl Session<'_, '_> {
    pub(super) fn run_cmdlet(
        &mut self,
        name: &str,
        taint: Taint,
        mut arguments: Vec<Field>,
        targets: Vec<Field>,
        input: Term,
        block: Option<Term>,
    ) -> Term {
        let base = super::windows::base_name(name);
        let base = self.aliases.get(&base).cloned().unwrap_or(base);
        let canonical = if name.contains(['\\', '/']) || name.to_ascii_lowercase().ends_with(".exe")
        {
            None
        } else {
            cmdlet_of(&base)
        };
        let name = canonical.map_or(base, String::from);
        let total_taint = taint | input.taint | taint_of_fields(&arguments);
        let first_operand = || {
            let first = operands(&arguments).next();
            first.map(|field| field.text.clone()).unwrap_or_default()
        };
        match name.as_str() {
            "foreach-object" => return block.unwrap_or(input),
            "where-object" => {
                return Term::unknown(input.taint);
            }
            "select-object" | "sort-object" | "out-string" | "convertfrom-json"
            | "convertto-json" | "format-list" | "tee-object" | "out-host" | "out-null"
            | "measure-object" | "get-unique"
                if targets.is_empty() =>
            {
                return input;
            }
            "write-output" | "write-host" | "join-path" | "resolve-path" | "get-item"
            | "join-string"
                if targets.is_empty() =>
            {
                let texts = operand_texts(&arguments);
                return match name.as_str() {
                    "join-path" => Term::text(texts.join("\\")),
                    "get-item" => Term::text(texts.join(" ")).with_name("item"),
                    _ => Term::text(texts.join(" ")),
                }
                .with(total_taint);
            }
            "new-object" => {
                let com = parameter(&arguments, &["-comobject"], 1);
                let kind = com
                    .or_else(|| parameter(&arguments, &["-typename"], 1))
                    .or_else(|| operands(&arguments).next());
                let kind = kind
                    .map(|field| field.text.to_ascii_lowercase())
                    .unwrap_or_default();
                self.note_object(&kind);
                let rest = operand_texts(&arguments).into_iter().skip(1).collect();
                return Term::list(rest).with_name(kind).with(total_taint);
            }
            "get-command" | "get-alias" => {
                let pattern = first_operand();
                let meaning = first_match(&pattern, aliases())
                    .and_then(cmdlet_of)
                    .or_else(|| first_match(&pattern, cmdlets()));
                return match meaning {
                    Some(name) => Term::text(name),
                    None if pattern.contains(['*', '?']) => Term::default(),
                    None => Term::text(pattern),
                };
            }
            "set-alias" | "new-alias" => {
                let mut names = operands(&arguments).map(|field| field.text.to_ascii_lowercase());
                if let (Some(alias), Some(target)) = (names.next(), names.next())
                    && self.aliases.len() < 64
                {
                    let target = cmdlet_of(&target).map_or(target, String::from);
                    self.aliases.insert(alias, target);
                }
                return Term::default();
            }
            "set-variable" => {
                let mut words = operands(&arguments).cloned();
                if let (Some(variable), Some(value)) = (words.next(), words.next()) {
                    self.set(&variable.text, Term::text(value.text).with(value.taint));
                }
                return Term::default();
            }
            "get-variable" => {
                return self.get(&first_operand());
            }
            "invoke-expression" => {
                let text = if arguments.is_empty() {
                    input.clone().join("\n").first().to_owned()
                } else {
                    join_words(operands(&arguments))
                };
                return self.evaluate(&text, total_taint);
            }
            _ => {}
        }
        if matches!(
            name.as_str(),
            "invoke-webrequest" | "invoke-restmethod" | "curl" | "wget" | "start-bitstransfer"
        ) {
            self.fetches = true;
        }
        static TAKERS: WordSet = WordSet::new(
            "remove- clear- stop- set- disable- format-vol move- copy- suspend- restart- reset- \
             initialize- rename- get-content wevtutil get-item",
        );
        if TAKERS.iter().any(|taker| name.starts_with(taker)) && input.is_known() {
            arguments.extend(to_fields(input.clone()).into_iter().take(64));
        }
        let output_taint = self.reader.run_windows_program(
            &name,
            arguments.clone(),
            &targets,
            input.taint,
            input.first(),
        );
        match name.as_str() {
            "get-childitem" => {
                let filtered = arguments.iter().any(|f| {
                    let text = f.text.to_ascii_lowercase();
                    text.len() > 2
                        && ["-filter", "-include", "-name"]
                            .iter()
                            .any(|name| name.starts_with(&text))
                });
                let paths: Vec<String> = operands(&arguments)
                    .map(|f| format!("{}\\*", f.text.trim_end_matches(['\\', '/', '*'])))
                    .collect();
                let deep = arguments.iter().any(|f| {
                    f.text.len() > 1 && "-recurse".starts_with(&f.text.to_ascii_lowercase())
                });
                if filtered || paths.is_empty() {
                    return Term::unknown(output_taint);
                }
                Term::list(paths)
                    .with_name(if deep { RECURSIVE } else { "" })
                    .with(output_taint)
            }
            "get-process" | "get-service" => {
                let names = operand_texts(&arguments);
                Term::list(if names.is_empty() {
                    vec!["*".into()]
                } else {
                    names
                })
                .with(output_taint)
            }
            _ => Term::unknown(output_taint | total_taint.without(Taint::SOCKET)),
        }
    }

    /// Records the capabilities of an object of this kind.
    fn note_object(&mut self, kind: &str) {
        self.connects |= kind.ends_with("tcpclient")
            || kind.ends_with("tcplistener")
            || kind.ends_with("udpclient");
        self.fetches |= kind.ends_with("webclient")
            || kind.ends_with("xmlhttp")
            || kind.ends_with("winhttprequest.5.1");
    }

    /// Evaluates a text, as `Invoke-Expression` and similar commands do.
    pub(super) fn evaluate(&mut self, text: &str, taint: Taint) -> Term {
        let is_known = !text.is_empty() && text != "$…";
        let mut facts = Facts {
            program: "invoke-expression".into(),
            executes: taint.without(Taint::SOCKET),
            windows: true,
            ..Facts::default()
        };
        if !is_known && self.fetches {
            facts.executes |= Taint::DOWNLOAD;
        }
        self.runs_unknown |= !is_known;
        self.reader.facts.push(facts);
        if is_known {
            self.run(text)
        } else {
            Term::default()
        }
    }

    pub(super) fn get_property(&mut self, object: Term, name: &str) -> Term {
        match name.to_ascii_lowercase().as_str() {
            "historysavepath" => Term::text("ConsoleHost_history.txt"),
            "length" | "count" => Term::unknown(object.taint),
            _ if object.is_known() || object.taint != Taint::NONE => object,
            name if object.name.is_empty() => object.with_name(name),
            _ => object,
        }
    }

    /// Evaluates a method of an object, or a static method of a type.
    pub(super) fn call_method(&mut self, object: Term, name: &str, arguments: &[Term]) -> Term {
        let method = name.to_ascii_lowercase();
        let kind = short_name(&object.name);
        let taint = object.taint | taint_of_terms(arguments);
        let first = arguments
            .first()
            .map(Term::first)
            .unwrap_or_default()
            .to_owned();
        match method.as_str() {
            "downloadstring"
            | "downloaddata"
            | "openread"
            | "getstringasync"
            | "getbytearrayasync"
            | "getstreamasync"
            | "getasync"
            | "downloadstringtaskasync"
            | "downloaddatataskasync"
            | "getresponse"
            | "getresponsestream" => {
                self.fetches = true;
                self.report_call("webclient", &method, arguments);
                return Term::unknown(Taint::DOWNLOAD);
            }
            "downloadfile" | "downloadfileasync" | "downloadfiletaskasync" => {
                self.fetches = true;
                if let Some(path) = arguments.get(1) {
                    self.reader
                        .keep_windows_file(path.first(), Value::unknown(Taint::DOWNLOAD));
                }
                self.report_call("webclient", &method, arguments);
                return Term::unknown(Taint::DOWNLOAD);
            }
            "create" if kind == "scriptblock" => {
                return Term::text(first).with_name("scriptblock").with(taint);
            }
            "invokescript" | "newscriptblock" | "invokecommand" | "expandstring" | "addscript" => {
                return self.evaluate(&first, taint);
            }
            "invoke" | "invokereturnasis" | "invokewithcontext"
                if kind == "scriptblock" || object.is_known() || taint != Taint::NONE =>
            {
                let text = object.items.concat();
                return self.evaluate(&text, taint);
            }
            "new" => {
                self.note_object(&kind);
                let items = arguments.iter().flat_map(|t| t.items.clone());
                return Term::list(items.collect()).with_name(kind).with(taint);
            }
            "getstream" if self.connects => return Term::unknown(Taint::SOCKET | Taint::DOWNLOAD),
            "getenvironmentvariable" | "getfolderpath" => {
                let key = first.to_ascii_lowercase();
                return super::windows::default_variable(&key)
                    .map(Term::text)
                    .unwrap_or_else(|| Term::text("~"));
            }
            "load" | "loadfile" | "loadfrom" | "unsafeloadfrom" if kind == "assembly" => {
                let executes = if arguments.iter().any(Term::is_known) {
                    taint
                } else {
                    taint | Taint::DECODED
                };
                self.reader.facts.push(Facts {
                    program: "assembly.load".into(),
                    executes,
                    windows: true,
                    ..Facts::default()
                });
                return Term::default();
            }
            _ => {}
        }
        if let Some(words) = file_cmdlet(&kind, &method) {
            let fields = arguments
                .iter()
                .filter(|t| t.is_known())
                .take(2)
                .map(|t| Field::plain(t.first()).with(t.taint));
            let mut parameters: Vec<Field> = fields.collect();
            if object.is_known() && !object.list {
                parameters.insert(0, Field::plain(object.first()));
            }
            parameters.extend(words.1.iter().map(|word| Field::plain(*word)));
            let output_taint = self
                .reader
                .run_windows_program(words.0, parameters, &[], taint, "");
            return Term::unknown(output_taint);
        }
        if method == "delete" && (object.is_known() || object.name == RECURSIVE) {
            let parameters = to_fields(object.with_name(RECURSIVE));
            self.reader
                .run_windows_program("remove-item", parameters, &[], taint, "");
            return Term::default();
        }
        match term::call(&method, Some(&object), arguments) {
            Some(result) => result,
            None => {
                self.report_call(&kind, &method, arguments);
                Term::unknown(taint)
            }
        }
    }

    /// Reports a call that returns no text as a command: `eventlog.delete Security`.
    fn report_call(&mut self, kind: &str, method: &str, arguments: &[Term]) {
        let words: Vec<Field> = arguments
            .iter()
            .flat_map(|term| to_fields(term.clone()))
            .take(16)
            .collect();
        let name = format!("{kind}.{method}");
        self.reader
            .run_windows_program(&name, words, &[], Taint::NONE, "");
    }

    /// Adds the facts about the session as a whole.
    pub(super) fn conclude(self) {
        if self.connects && self.runs_unknown {
            self.reader.facts.push(Facts::new(Behaviour::ReverseShell));
        }
    }
}

/// Returns the command that corresponds to a .NET method that touches files.
fn file_cmdlet(kind: &str, method: &str) -> Option<(&'static str, &'static [&'static str])> {
    Some(match (kind, method) {
        ("directory" | "directoryinfo", "delete") => ("remove-item", &["-recurse"]),
        ("file" | "fileinfo" | "filesystem", "delete" | "deletefile") => ("remove-item", &[]),
        ("filesystem", "deletedirectory") => ("remove-item", &["-recurse"]),
        ("file" | "directory" | "fileinfo", "move" | "moveto") => ("move-item", &[]),
        ("file" | "fileinfo", "copy" | "copyto" | "replace") => ("copy-item", &[]),
        (
            "file",
            "writealltext" | "writeallbytes" | "writealllines" | "appendalltext" | "appendalllines"
            | "create" | "openwrite" | "open" | "createtext" | "appendtext",
        )
        | ("streamwriter" | "filestream", _) => ("set-content", &[]),
        (
            "file",
            "readalltext" | "readallbytes" | "readalllines" | "readlines" | "openread" | "opentext",
        )
        | ("streamreader", _) => ("get-content", &[]),
        _ => return None,
    })
}
