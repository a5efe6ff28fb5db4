//! The effects of calls that touch files.

use super::OPENED;
use crate::detect::command::code_flow::Flow;
use crate::detect::command::code_lex::Language;
use crate::detect::command::code_names::{COPY, DELETE, DELETE_TREE, READ, WRITE, chmod_mode};
use crate::detect::command::reader::Reader;
use crate::detect::command::term::Term;
use crate::detect::command::value::{Taint, Value};

impl Reader<'_> {
    /// Reports a call that touches files as the command that would do the same.
    pub(super) fn report_file_access(
        &mut self,
        language: Language,
        name: &str,
        last: &str,
        callee: &Term,
        arguments: &[Term],
        flow: &mut Flow,
    ) -> Option<Term> {
        let has_receiver = callee.is_known()
            && !callee.list
            && callee.first().starts_with(['/', '~', '.', 'C', '*']);
        let mut operands: Vec<&Term> = Vec::new();
        if has_receiver {
            operands.push(callee);
        }
        operands.extend(
            arguments
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
            self.keep_written_content(last, callee, arguments);
        }
        let has_target = operands.iter().filter(|term| term.is_known()).count() > 1;
        let words: &[&str] = match last {
            "kill"
                if arguments
                    .iter()
                    .take(2)
                    .any(|term| matches!(term.first(), "1" | "-1")) =>
            {
                let target = if arguments.iter().any(|term| term.first() == "-1") {
                    "-1"
                } else {
                    "1"
                };
                self.report_command(&["kill", "-9", target], &[]);
                return Some(Term::default());
            }
            "chmod" | "chmodSync" | "lchmod" | "fchmod" => {
                let mode = operands.iter().find_map(|term| chmod_mode(term.first()))?;
                operands.retain(|term| term.first().starts_with(['/', '~', '.']));
                self.report_command(&["chmod", &mode], &operands);
                return Some(Term::default());
            }
            "chown" | "chownSync" => {
                operands.retain(|term| term.first().starts_with(['/', '~']));
                self.report_command(&["chown", "1000"], &operands);
                return Some(Term::default());
            }
            _ if DELETE_TREE.contains(&last)
                || last == "sync" && name.contains("rimraf")
                || last == "remove" && language == Language::JavaScript && arguments.len() > 1
                || last == "rmdir" && arguments.len() > 1 =>
            {
                &["rm", "-r", "-f"]
            }
            _ if DELETE.contains(&last) => &["rm", "-f"],
            "rename" | "renameSync" | "move" | "replace_file" if has_target => &["mv"],
            _ if COPY.contains(&last) && has_target => &["cp"],
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
            return Some(Term::unknown(first.taint | callee.taint))
                .filter(|_| words.first() != Some(&"tee") && !READ.contains(&last));
        }
        let mode = |text: &str| text.len() <= 2 && text.starts_with(['>', '<', '+']);
        let paths: Vec<Term> = operands
            .iter()
            .filter(|term| !mode(term.first().trim()))
            .take(1 + usize::from(words == ["cp"] || words == ["mv"]))
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
            self.keep_written_content(last, callee, arguments);
        }
        flow.taint |= out.taint;
        // Later writes to the file are recognized by this name.
        let path = paths.first().map_or("", Term::first);
        let name = if words == ["tee"] {
            format!("{OPENED}{path}")
        } else {
            "file".to_owned()
        };
        let sent: Taint = operands.iter().map(|term| term.taint).collect();
        Some(Term::named(name).with(out.taint | sent))
    }

    /// Keeps the content that code writes to a file, for a command that runs the file.
    fn keep_written_content(&mut self, last: &str, callee: &Term, arguments: &[Term]) {
        let known_text = |term: Option<&Term>| {
            term.filter(|term| term.is_known() && !term.list)
                .map(|term| term.first().to_owned())
        };
        let opened = callee
            .name
            .strip_prefix(OPENED)
            .map(|path| path.split('.').collect::<Vec<_>>());
        let (path, content) = match last {
            "urlretrieve" | "getstore" => {
                if let Some(path) = known_text(arguments.get(1)) {
                    self.keep_file(&path, Value::unknown(Taint::DOWNLOAD));
                }
                return;
            }
            "write" | "writelines" | "puts" if opened.is_some() => {
                // The name of the method follows that of the file.
                let parts = opened.unwrap_or_default();
                let end = parts.len() - usize::from(parts.last() == Some(&last));
                (
                    parts.get(..end).map(|parts| parts.join(".")),
                    arguments.first(),
                )
            }
            "write_text" | "write_bytes" => (known_text(Some(callee)), arguments.first()),
            _ if WRITE.contains(&last) => (known_text(arguments.first()), arguments.get(1)),
            _ => return,
        };
        if let Some(path) = path.filter(|path| !path.is_empty())
            && let Some(content) = content
            && let Some(text) = known_text(Some(content))
        {
            self.append_file(&path, Value::text(text).with(content.taint));
            self.note_written_by_code(&path);
        }
    }
}
