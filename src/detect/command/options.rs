//! Option parsing. Short options can be combined in one word, and the last one can take a value,
//! attached or as the next word (`-fsSLo f`, `-qO/tmp/x`, `--output=f`).

use super::known::Program;
use super::value::Field;
use crate::document::Table;

/// The options of a program that take values.
#[derive(Clone, Debug, Default)]
pub(super) struct Options {
    /// Short options that take a value.
    short: String,
    /// Long options, without their hyphens, that take a value as the next word. Others take one
    /// only after `=`.
    long: Vec<String>,
}

/// Options with which a program that downloads selects the file.
#[derive(Clone, Debug)]
pub(super) struct Download {
    /// Options whose value is the file.
    output: Vec<String>,
    /// Options whose value is the folder of the file.
    folder: Vec<String>,
    /// Options that save under the last path segment of the URL; `None` if that is the default.
    saves: Option<Vec<String>>,
}

impl Options {
    /// Parses `options` of a `[[program]]` table and reports faults.
    pub(super) fn read(table: &Table<'_>) -> Self {
        let options = Self::read_keys(table);
        table.finish();
        options
    }

    /// Parses `short` and `long` among the keys of a table.
    pub(super) fn read_keys(table: &Table<'_>) -> Self {
        Self {
            short: table.value("short").unwrap_or_default(),
            long: table.values("long"),
        }
    }

    /// Returns the options of the dynamic loader.
    pub(super) fn of_loader() -> Self {
        const LONG: [&str; 6] = [
            "library-path",
            "preload",
            "audit",
            "argv0",
            "inhibit-rpath",
            "glibc-hwcaps-prepend",
        ];
        Self {
            short: String::new(),
            long: LONG.map(str::to_owned).into(),
        }
    }

    /// Reports whether an option takes the next word as its value.
    pub(super) fn takes_next(&self, word: &str) -> bool {
        match word.strip_prefix("--") {
            Some(long) => self.long.iter().any(|name| name == long),
            None => {
                word.len() >= 2
                    && word.starts_with('-')
                    && word
                        .chars()
                        .next_back()
                        .is_some_and(|letter| self.short.contains(letter))
            }
        }
    }
}

impl Download {
    /// Parses `download` of a `[[program]]` table and reports faults.
    pub(super) fn read(table: &Table<'_>) -> Self {
        let saves = table.has("saves").then(|| table.values("saves"));
        let download = Self {
            output: table.values("output"),
            folder: table.values("folder"),
            saves,
        };
        table.finish();
        download
    }
}

/// Returns the letters of a word that combines short options: `rf` of `-rf`.
pub(super) fn short_letters(word: &str) -> Option<&str> {
    word.strip_prefix('-')
        .filter(|letters| !letters.starts_with('-'))
}

/// An argument as its program reads it.
#[derive(Debug, PartialEq)]
pub(super) enum Argument<'f> {
    /// An option without its hyphens, and the value that it takes.
    Option(&'f str, Option<&'f str>),
    Operand(&'f str),
}

impl<'f> Argument<'f> {
    /// Returns the URL that a program that downloads takes from this argument.
    pub(super) fn url(&self) -> Option<&'f str> {
        match self {
            Self::Operand(url) | Self::Option("url", Some(url)) => Some(url),
            Self::Option(..) => None,
        }
    }

    /// Returns the value of an option if it is one of `names`.
    fn value_of(&self, names: &[String]) -> Option<&'f str> {
        match self {
            Self::Option(name, value) if names.iter().any(|other| other == name) => *value,
            _ => None,
        }
    }
}

/// Returns the arguments of a program that downloads, in order; nothing for other programs.
pub(super) fn parse<'f>(program: &Program, arguments: &'f [Field]) -> Vec<Argument<'f>> {
    if program.download.is_none() {
        return Vec::new();
    }
    let none = Options::default();
    let options = program.options.as_ref().unwrap_or(&none);
    let mut parsed = Vec::with_capacity(arguments.len());
    let mut words = arguments.iter().map(|field| field.text.as_str());
    while let Some(word) = words.next() {
        if let Some(long) = word.strip_prefix("--").filter(|long| !long.is_empty()) {
            parsed.push(match long.split_once('=') {
                Some((name, value)) => Argument::Option(name, Some(value)),
                None if options.long.iter().any(|candidate| candidate == long) => {
                    Argument::Option(long, words.next())
                }
                None => Argument::Option(long, None),
            });
            continue;
        }
        let Some(short) = word.strip_prefix('-').filter(|short| !short.is_empty()) else {
            parsed.push(Argument::Operand(word));
            continue;
        };
        for (at, letter) in short.char_indices() {
            let end = at + letter.len_utf8();
            let name = short.get(at..end).unwrap_or_default();
            if options.short.contains(letter) {
                let joined = short.get(end..).filter(|rest| !rest.is_empty());
                parsed.push(Argument::Option(name, joined.or_else(|| words.next())));
                break;
            }
            parsed.push(Argument::Option(name, None));
        }
    }
    parsed
}

/// Returns the program and its arguments with each option as a word of its own, followed by its
/// value: `useradd -ou0 x` becomes `useradd -o -u 0 x`. Returns `None` if that changes nothing, or
/// if the program's options are not known.
pub(super) fn split_options(program: &str, data: &Program, arguments: &[Field]) -> Option<String> {
    let valued = data
        .options
        .as_ref()
        .map(|options| options.short.as_str())
        .or_else(|| data.runs_what_follows().then_some(""))?;
    let mut out = program.to_owned();
    let mut changed = false;
    let mut options = true;
    for field in arguments {
        let text = field.text.as_str();
        options &= text != "--";
        let cluster = text.strip_prefix('-').filter(|rest| {
            options
                && rest.len() > 1
                && !rest.starts_with('-')
                && !rest.bytes().all(|b| b.is_ascii_digit())
        });
        let long = text
            .strip_prefix("--")
            .filter(|_| options)
            .and_then(|option| option.split_once('='));
        if let Some((name, value)) = long {
            changed = true;
            out.extend([" --", name, " ", value]);
            continue;
        }
        let Some(cluster) = cluster else {
            out.extend([" ", text]);
            continue;
        };
        for (at, letter) in cluster.char_indices() {
            out.push_str(if at > 0 && !letter.is_ascii_alphanumeric() {
                " "
            } else {
                " -"
            });
            let end = at + letter.len_utf8();
            let value = cluster.get(end..).unwrap_or_default();
            if !letter.is_ascii_alphanumeric() {
                out.push_str(cluster.get(at..).unwrap_or_default());
                break;
            }
            out.push(letter);
            if valued.contains(letter) {
                if !value.is_empty() {
                    out.push(' ');
                    out.push_str(value.trim_start_matches('='));
                }
                break;
            }
        }
        changed = true;
    }
    changed.then_some(out)
}

/// Returns the files that a program that downloads writes to.
pub(super) fn saved_files(program: &Program, arguments: &[Field]) -> Vec<String> {
    let Some(download) = &program.download else {
        return Vec::new();
    };
    let parsed = parse(program, arguments);
    let folder = parsed
        .iter()
        .find_map(|argument| argument.value_of(&download.folder));
    let within = |name: &str| match folder.filter(|_| !name.starts_with(['/', '~'])) {
        Some(folder) => format!("{}/{name}", folder.trim_end_matches('/')),
        None => name.to_owned(),
    };
    let mut files: Vec<String> = parsed
        .iter()
        .filter_map(|argument| argument.value_of(&download.output))
        .map(within)
        .collect();
    let by_url = match &download.saves {
        Some(names) => parsed.iter().any(
            |argument| matches!(argument, Argument::Option(name, _) if names.iter().any(|other| other == name)),
        ),
        None => files.is_empty(),
    };
    if by_url {
        for name in parsed
            .iter()
            .filter_map(Argument::url)
            .filter_map(|url| url.rsplit_once('/'))
            .map(|(_, name)| name)
            .filter(|name| !name.is_empty())
        {
            files.push(within(name));
            // Some programs keep the query in the file name.
            if let Some((plain, _)) = name
                .split_once(['?', '#'])
                .filter(|(plain, _)| !plain.is_empty())
            {
                files.push(within(plain));
            }
        }
    }
    files.retain(|file| {
        !matches!(
            file.as_str(),
            "-" | "/dev/null" | "/dev/stdout" | "/dev/fd/1"
        )
    });
    files
}

/// Reports whether the value of this option is a file that is written.
pub(super) fn names_output(option: &str) -> bool {
    matches!(
        option,
        "-o" | "-O" | "--output" | "--output-document" | "-OutFile" | "-outfile" | "--output-file"
    )
}

/// Reports whether the value of this option of `find` is a file that it prints to.
pub(super) fn prints_to(program: &str, option: &str) -> bool {
    matches!(program, "find" | "gfind")
        && matches!(option, "-fprint" | "-fprint0" | "-fprintf" | "-fls")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::detect::command::programs::Programs;
    use std::sync::Arc;

    fn command(line: &str) -> (Vec<Field>, Arc<Program>) {
        let words: Vec<Field> = line.split(' ').map(Field::plain).collect();
        let program = Programs::builtin().get(&words[0].text).cloned();
        (words, program.unwrap_or_default())
    }

    #[test]
    fn options_are_spread() {
        for (line, spread_out) in [
            ("useradd -mou 0 x", Some("useradd -m -o -u 0 x")),
            ("useradd -oMu0 x", Some("useradd -o -M -u 0 x")),
            ("docker run -itv /:/h x", Some("docker run -i -t -v /:/h x")),
            (
                "docker run --volume=/:/h x",
                Some("docker run --volume /:/h x"),
            ),
            ("pkill -9u root", Some("pkill -9 -u root")),
            ("sudo -Hu root id", Some("sudo -H -u root id")),
            ("useradd -m x", None),
            ("useradd -m -- -ou", None),
            ("unknown -abc", None),
        ] {
            let (words, program) = command(line);
            assert_eq!(
                split_options(&words[0].text, &program, &words[1..]).as_deref(),
                spread_out,
                "{line}"
            );
        }
    }

    #[test]
    fn short_options_share_a_word_and_take_a_value() {
        for (line, files) in [
            ("curl -fsSLo f https://a.example/x", "f"),
            ("curl -Lo/tmp/f https://a.example/x", "/tmp/f"),
            ("curl --output=f https://a.example/x", "f"),
            ("curl -sO https://a.example/x.sh?v=1", "x.sh?v=1 x.sh"),
            ("curl -JLO https://a.example/x.sh", "x.sh"),
            (
                "curl --output-dir /tmp -O https://a.example/x.sh",
                "/tmp/x.sh",
            ),
            ("curl -sS https://a.example/x.sh", ""),
            ("curl -so /dev/null https://a.example/x.sh", ""),
            ("curl -H O https://a.example/x.sh", ""),
            ("wget -P /tmp https://a.example/x.sh", "/tmp/x.sh"),
            ("wget -nv -qP/tmp/ https://a.example/x.sh", "/tmp/x.sh"),
            ("wget -qO /tmp/f https://a.example/x.sh", "/tmp/f"),
            ("wget -qO- https://a.example/x.sh", ""),
            ("wget --directory-prefix=d https://a.example/x.sh", "d/x.sh"),
            ("wget https://a.example/", ""),
            ("aria2c -d /tmp -o f https://a.example/x", "/tmp/f"),
            ("xh -d https://a.example/x.sh", "x.sh"),
            ("ls -o f", ""),
        ] {
            let (words, program) = command(line);
            assert_eq!(
                saved_files(&program, &words[1..]).join(" "),
                files,
                "{line}"
            );
        }
    }
}
