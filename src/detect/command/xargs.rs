//! The commands that `xargs` builds from its input.

use std::rc::Rc;

use super::options::short_letters;
use super::quote;
use super::value::{Field, Value};

/// Maximum length of the input of `xargs` that is followed, in bytes.
const MAX_INPUT: usize = 16 << 10;
/// Maximum number of commands that one `xargs` is assumed to run.
const MAX_COMMANDS: usize = 16;

/// Returns the commands that `xargs` builds from its input, if the input is known: one for each
/// item if its options say so.
pub(super) fn build_commands(
    fields: &Rc<[Field]>,
    at: usize,
    arguments: &[Field],
    input: &Value,
) -> Vec<Vec<Field>> {
    let Some((text, command)) = input
        .as_text()
        .filter(|text| text.len() <= MAX_INPUT)
        .zip(fields.get(at..))
    else {
        return Vec::new();
    };
    let options = arguments
        .get(..arguments.len().saturating_sub(command.len()))
        .unwrap_or_default();
    let value = |flags: &[&str]| option_value(options, flags);
    let nul = options.iter().any(|f| {
        f.text == "--null" || short_letters(&f.text).is_some_and(|letters| letters.contains('0'))
    });
    let by = value(&["-d", "--delimiter"]).map(|by| quote::decode_escapes(&by));
    let mark = placeholder(options);
    let items: Vec<&str> = match (&by, &mark) {
        _ if nul => text.split('\0').collect(),
        (Some(by), _) if !by.is_empty() => text.split(by.as_str()).collect(),
        (_, Some(_)) => text.lines().map(str::trim).collect(),
        _ => text.split_whitespace().collect(),
    };
    let items: Vec<&str> = items
        .into_iter()
        .map(|item| item.trim_end_matches('\n'))
        .filter(|item| !item.is_empty())
        .take(256)
        .collect();
    if let Some(mark) = mark {
        let insert_item = |item: &&str| -> Vec<Field> {
            command
                .iter()
                .map(|f| Field {
                    text: f.text.replace(&mark, item),
                    ..f.clone()
                })
                .collect()
        };
        return items.iter().take(MAX_COMMANDS).map(insert_item).collect();
    }
    let chunk_size =
        if value(&["-n", "-L", "-l", "--max-args", "--max-lines"]).is_some_and(|n| n == "1") {
            1
        } else {
            items.len().max(1)
        };
    // What `find` lists is at any depth.
    let is_deep = text.contains("/*")
        && command.first().is_some_and(|program| {
            let name = program.text.rsplit('/').next().unwrap_or_default();
            matches!(name, "rm" | "chmod" | "chown" | "chgrp")
        });
    let deep = is_deep.then(|| Field::plain("-R"));
    let with_items = |chunk: &[&str]| -> Vec<Field> {
        command
            .iter()
            .take(1)
            .chain(&deep)
            .chain(command.iter().skip(1))
            .cloned()
            .chain(
                chunk
                    .iter()
                    .map(|item| Field::plain(*item).with(input.taint)),
            )
            .collect()
    };
    items
        .chunks(chunk_size)
        .take(MAX_COMMANDS)
        .map(with_items)
        .collect()
}

/// Returns the placeholder that `xargs` replaces by each item, given these options.
pub(super) fn placeholder(options: &[Field]) -> Option<String> {
    option_value(options, &["-I", "--replace"]).map(|mark| {
        if mark.is_empty() {
            "{}".to_owned()
        } else {
            mark
        }
    })
}

/// Returns the file that `xargs` reads instead of its input, given these options.
pub(super) fn input_file(options: &[Field]) -> Option<String> {
    option_value(options, &["-a", "--arg-file"])
}

/// Maximum number of names of a list of files that are followed.
const LISTED: usize = 64;

/// Returns a command with the files as operands that it finds in a list: `rsync --files-from=LIST`,
/// `tar -T LIST`, `zip -@`, `cpio -o`; `None` if it takes none, or the list is not known.
pub(super) fn with_listed_files(
    fields: &[Field],
    input: &Value,
    file: impl Fn(&str) -> Option<Value>,
) -> Option<Vec<Field>> {
    let (program, arguments) = fields.split_first()?;
    let has = |fits: fn(&str) -> bool| arguments.iter().any(|field| fits(&field.text));
    let program = program.text.rsplit('/').next().unwrap_or_default();
    let list = match program {
        "rsync" | "rclone" => option_value(arguments, &["--files-from"])?,
        "tar" | "gtar" | "bsdtar" => option_value(arguments, &["--files-from", "-T"])?,
        "zip" if has(|text| text == "-@") => "-".to_owned(),
        "cpio" if has(|text| text == "--create" || short_has(text, 'o')) => "-".to_owned(),
        "wget" | "aria2c" => option_value(arguments, &["--input-file", "-i"])?,
        "pax" if has(|text| short_has(text, 'w')) => "-".to_owned(),
        _ => return None,
    };
    let list = if list == "-" {
        input.clone()
    } else {
        file(&list)?
    };
    let text = list.as_text()?;
    let from_root = program == "rsync" && has(|text| text == "/");
    let names = text.split(['\n', '\0']).filter(|name| !name.is_empty());
    let names = names.take(LISTED).map(|name| {
        if from_root && !name.starts_with('/') {
            Field::plain(format!("/{name}"))
        } else {
            Field::plain(name)
        }
    });
    let mut fields = fields.to_vec();
    // The last operand of `rsync` is its target; the first one of the others may be an archive.
    let place = if program == "rsync" { 1 } else { fields.len() };
    fields.splice(place..place, names);
    Some(fields)
}

/// Reports whether a word consists of short options, this one among them.
fn short_has(text: &str, option: char) -> bool {
    text.strip_prefix('-')
        .is_some_and(|letters| !letters.starts_with('-') && letters.contains(option))
}

fn option_value(options: &[Field], flags: &[&str]) -> Option<String> {
    options
        .iter()
        .enumerate()
        .find_map(|(n, f)| {
            flags
                .iter()
                .find_map(|flag| f.text.strip_prefix(flag))
                .map(|rest| (n, rest))
        })
        .map(|(n, rest)| match rest.trim_start_matches('=') {
            "" => options
                .get(n + 1)
                .map(|f| f.text.clone())
                .unwrap_or_default(),
            rest => rest.to_owned(),
        })
}
