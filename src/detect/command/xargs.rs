//! The commands that `xargs` builds from its input.

use std::rc::Rc;

use super::quote;
use super::value::{Field, Value};

/// Maximum length of the input of `xargs` that is followed, in bytes.
const MAX_FED: usize = 16 << 10;
/// Maximum number of commands that one `xargs` is assumed to run.
const MAX_FED_COMMANDS: usize = 16;

/// Returns the commands that `xargs` builds from its input, if the input is known: one for each
/// item if its options say so.
pub(super) fn fed(
    fields: &Rc<[Field]>,
    at: usize,
    arguments: &[Field],
    input: &Value,
) -> Vec<Vec<Field>> {
    let Some((text, command)) = input
        .as_text()
        .filter(|text| text.len() <= MAX_FED)
        .zip(fields.get(at..))
    else {
        return Vec::new();
    };
    let own = arguments
        .get(..arguments.len().saturating_sub(command.len()))
        .unwrap_or_default();
    let value = |flags: &[&str]| value(own, flags);
    let nul = own.iter().any(|f| {
        f.text == "--null"
            || f.text.starts_with('-') && !f.text.starts_with("--") && f.text.contains('0')
    });
    let by = value(&["-d", "--delimiter"]).map(|by| quote::escapes(&by));
    let mark = mark(own);
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
    let field = |item: &str| Field {
        taint: input.taint,
        ..Field::plain(item)
    };
    if let Some(mark) = mark {
        let put = |item: &&str| -> Vec<Field> {
            command
                .iter()
                .map(|f| Field {
                    text: f.text.replace(&mark, item),
                    ..f.clone()
                })
                .collect()
        };
        return items.iter().take(MAX_FED_COMMANDS).map(put).collect();
    }
    let each = if value(&["-n", "-L", "-l", "--max-args", "--max-lines"]).is_some_and(|n| n == "1")
    {
        1
    } else {
        items.len().max(1)
    };
    let one = |chunk: &[&str]| -> Vec<Field> {
        command
            .iter()
            .cloned()
            .chain(chunk.iter().map(|item| field(item)))
            .collect()
    };
    items.chunks(each).take(MAX_FED_COMMANDS).map(one).collect()
}

/// Returns the placeholder that `xargs` replaces by each item, given these options.
pub(super) fn mark(own: &[Field]) -> Option<String> {
    value(own, &["-I", "--replace"]).map(|mark| {
        if mark.is_empty() {
            "{}".to_owned()
        } else {
            mark
        }
    })
}

/// Returns the file that `xargs` reads instead of its input, given these options.
pub(super) fn file(own: &[Field]) -> Option<String> {
    value(own, &["-a", "--arg-file"])
}

fn value(own: &[Field], flags: &[&str]) -> Option<String> {
    own.iter()
        .enumerate()
        .find_map(|(n, f)| {
            flags
                .iter()
                .find_map(|flag| f.text.strip_prefix(flag))
                .map(|rest| (n, rest))
        })
        .map(|(n, rest)| match rest.trim_start_matches('=') {
            "" => own.get(n + 1).map(|f| f.text.clone()).unwrap_or_default(),
            rest => rest.to_owned(),
        })
}
