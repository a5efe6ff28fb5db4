//! Files that commands write other than by redirection: downloads, copies, in-place edits, compiler
//! output.

use super::facts::{self, Facts};
use super::one_liners;
use super::options;
use super::quote;
use super::reader::Reader;
use super::sed;
use super::traits::Traits;
use super::value::{Field, Taint, Value};

impl Reader<'_> {
    /// Keeps the content that a command saves to files: `curl -O`, `wget`, `tee`, `cp`, `sed -i`,
    /// `gcc`.
    pub(super) fn keep_saved_files(
        &mut self,
        facts: &mut Facts,
        arguments: &[Field],
        input: &Value,
        out: &Value,
    ) {
        let program = facts.program.clone();
        let program = program.as_str();
        let saved = facts
            .program_data
            .as_deref()
            .map(|data| options::saved_files(data, arguments));
        for name in saved.unwrap_or_default() {
            if let Some(named_path) = facts::read_path(&name, self.folder.as_deref())
                .filter(|named_path| !facts.writes.contains(named_path))
            {
                facts.reads.retain(|other| *other != named_path);
                facts.writes.push(named_path);
            }
            self.keep_file(&name, out.clone());
        }
        if matches!(program, "lwp-download" | "lwp-mirror")
            && let Some(target) = facts.operands().last()
        {
            let name = target
                .text
                .rsplit_once("://")
                .map_or(&*target.text, |(_, url)| {
                    url.rsplit('/').next().unwrap_or(url)
                });
            self.keep_file(name, out.clone());
        }
        match program {
            "tee" | "sponge" => {
                let appends = arguments.iter().any(|f| {
                    f.text == "--append"
                        || options::short_letters(&f.text).is_some_and(|flags| flags.contains('a'))
                });
                for target in facts.operands().filter(|f| f.text != "-") {
                    if appends {
                        self.append_file(&target.text, input.clone())
                    } else {
                        self.keep_file(&target.text, input.clone())
                    }
                }
            }
            _ if facts.traits.has(Traits::FETCHES) => {
                for named_path in &facts.writes {
                    self.keep_file(&named_path.path, out.clone());
                }
            }
            "cp" | "mv" | "ln" | "install" | "rsync" => {
                let operands: Vec<&Field> = facts.operands().collect();
                if let [source, target] = operands.as_slice() {
                    let stdin = matches!(source.text.as_str(), "/dev/stdin" | "/dev/fd/0" | "-");
                    let value = if stdin {
                        Some(input.clone())
                    } else {
                        self.file_content(&source.text)
                    };
                    if let Some(value) = value {
                        self.keep_file(&target.text, value);
                    }
                }
                self.note_link(program, arguments);
            }
            "gzip" | "pigz" => self.keep_compressed(facts, "gz"),
            "bzip2" => self.keep_compressed(facts, "bz2"),
            "xz" => self.keep_compressed(facts, "xz"),
            "zstd" => self.keep_compressed(facts, "zst"),
            "mount" | "gln" => self.note_link(program, arguments),
            "dd" => {
                if let Some(target) = arguments.iter().find_map(|a| a.text.strip_prefix("of=")) {
                    self.keep_file(target, input.clone());
                }
            }
            "awk" | "gawk" | "mawk" | "nawk" => {
                if let Some((name, text)) = one_liners::written_by_awk(arguments) {
                    self.keep_file(&name, Value::text(text));
                }
            }
            "sed" | "gsed" => self.edit_in_place(arguments),
            "find" | "gfind" => self.find_printf(arguments),
            _ if self.programs().is_compiler(program) => {
                self.compile(arguments, input);
            }
            "go" if arguments.first().is_some_and(|f| f.text == "build") => {
                self.compile(arguments, input)
            }
            _ => {}
        }
    }

    /// Keeps the origin of files that a program compresses one by one.
    fn keep_compressed(&mut self, facts: &Facts, extension: &str) {
        for file in facts.operands() {
            if let Some(content) = self.file_content(&file.text) {
                let compressed = format!("{}.{extension}", file.text);
                self.keep_file(&compressed, Value::unknown(content.taint));
            }
        }
    }

    /// Evaluates `sed -i` on files whose content is known. The old content is kept if the script is
    /// not supported.
    fn edit_in_place(&mut self, arguments: &[Field]) {
        let in_place = |f: &Field| {
            f.text.starts_with("--in-place")
                || options::short_letters(&f.text).is_some_and(|flags| {
                    flags
                        .chars()
                        .take_while(|c| matches!(c, 'n' | 'r' | 'E' | 's' | 'z' | 'i'))
                        .any(|c| c == 'i')
                })
        };
        if !arguments.iter().any(in_place) || !self.spend_edit() {
            return;
        }
        let (scripts, files) = sed::arguments(arguments);
        for name in files {
            let Some(before) = self.file_content(name) else {
                continue;
            };
            let content = before.as_text().and_then(|text| sed::edit(text, &scripts));
            if let Some(content) = content {
                self.spend_bytes(content.len());
                self.keep_file(name, Value::text(content).with(before.taint));
            }
        }
    }

    /// Evaluates `find … -fprintf FILE FORMAT`.
    fn find_printf(&mut self, arguments: &[Field]) {
        for (at, field) in arguments
            .iter()
            .enumerate()
            .filter(|(_, field)| field.text == "-fprintf")
        {
            if let (Some(file), Some(format)) = (arguments.get(at + 1), arguments.get(at + 2)) {
                let value = Value::text(quote::decode_escapes(&format.text))
                    .with(field.taint | format.taint);
                self.append_file(&file.text, value);
            }
        }
    }

    /// Keeps the output of a compiler for sources that came from elsewhere, or that the script
    /// wrote.
    fn compile(&mut self, arguments: &[Field], input: &Value) {
        let mut output = None;
        // The output of `rustc` and `go build` has the name of the source.
        let mut stem = "a.out";
        let mut taint = Taint::NONE;
        let mut texts: Vec<String> = Vec::new();
        let mut words = arguments.iter();
        while let Some(field) = words.next() {
            match field.text.strip_prefix("-o") {
                Some("") => output = words.next().map(|field| field.text.as_str()),
                Some(joined) => output = Some(joined),
                None => {
                    let source = if field.text == "-" {
                        Some(input.clone())
                    } else {
                        self.file_content(&field.text)
                    };
                    if let Some(source) = source {
                        stem = field
                            .text
                            .rsplit('/')
                            .next()
                            .and_then(|name| name.split('.').next())
                            .unwrap_or(stem);
                        taint |= source.taint;
                        texts.extend(source.as_text().map(str::to_owned));
                    }
                }
            }
        }
        if taint == Taint::NONE && texts.is_empty() {
            return;
        }
        // Not a shell script: only the string literals of the sources are judged.
        let program = Value {
            items: texts,
            known: false,
            taint,
        };
        match output {
            Some(output) => self.keep_file(output, program),
            None => {
                self.keep_file(stem, program.clone());
                self.keep_file("a.out", program);
            }
        }
    }
}
