//! Programs that run another program, and how many of their own words stand before it.

use super::options::Options;
use super::value::Field;
use crate::document::Table;

/// The last place among the arguments for a word after which the command comes.
const WORDS_BEFORE: usize = 6;
/// Operands that a program may have before the command.
const OPERANDS: u64 = 8;

/// How a program runs what follows its own options.
#[derive(Clone, Debug)]
pub(super) struct Runner {
    /// Words of its own after which the command comes, such as `exec`; none, if it needs no word.
    after: Vec<Vec<String>>,
    /// Its options, where they are not those of the program without such a word.
    options: Option<Options>,
    /// Operands of its own before the command.
    operands: usize,
}

impl Runner {
    /// Reads `runs` of a `[[program]]` table. Notes faults.
    pub(super) fn read(table: &Table<'_>) -> Option<Self> {
        ["operands", "short", "long"]
            .into_iter()
            .for_each(|key| table.know(key));
        let after = table
            .strings("after")
            .into_iter()
            .map(|words| words.value.split(' ').map(str::to_owned).collect());
        let operands = if table.has("operands") {
            table.integer("operands", 0..=OPERANDS)
        } else {
            Some(0)
        };
        let options = (table.has("short") || table.has("long")).then(|| Options::among(table));
        table.finish();
        let operands = usize::try_from(operands?).unwrap_or(usize::MAX);
        Some(Self {
            after: after.collect(),
            options,
            operands,
        })
    }

    /// Whether the command comes without a word before it.
    pub(super) fn is_plain(&self) -> bool {
        self.after.is_empty()
    }

    /// Whether the arguments have the words after which the command comes.
    pub(super) fn is_named(&self, arguments: &[Field]) -> bool {
        self.end_of_words(arguments).is_some()
    }

    /// How many arguments there are up to the words after which the command comes, these included.
    fn end_of_words(&self, arguments: &[Field]) -> Option<usize> {
        self.after.iter().find_map(|words| {
            let start = arguments
                .iter()
                .take(WORDS_BEFORE)
                .position(|f| words.first() == Some(&f.text))?;
            let whole = words
                .iter()
                .enumerate()
                .all(|(n, word)| arguments.get(start + n).is_some_and(|f| f.text == *word));
            whole.then_some(start + words.len())
        })
    }

    /// How many of `arguments` come before the command; `None` if there is none.
    pub(super) fn inner(&self, options: Option<&Options>, arguments: &[Field]) -> Option<usize> {
        if self.is_plain() {
            return skip(
                arguments,
                0,
                self.options.as_ref().or(options),
                self.operands,
            );
        }
        skip(
            arguments,
            self.end_of_words(arguments)?,
            self.options.as_ref(),
            self.operands,
        )
    }
}

/// How many of `arguments` come before the command that the loader of programs runs:
/// `/lib64/ld-linux-x86-64.so.2 --library-path x /bin/rm`.
pub(super) fn inner_of_loader(program: &str, arguments: &[Field]) -> Option<usize> {
    let loads = program == "ld.so"
        || program.starts_with("ld") && program.contains(".so")
        || program.starts_with("ld-musl-");
    loads.then(|| skip(arguments, 0, Some(&Options::of_loader()), 0))?
}

/// The index behind options, assignments and `operands` operands, if anything stands there.
fn skip(
    arguments: &[Field],
    from: usize,
    options: Option<&Options>,
    mut operands: usize,
) -> Option<usize> {
    let mut at = from;
    while let Some(field) = arguments.get(at) {
        let text = field.text.as_str();
        if text == "--" {
            at += 1 + operands;
            operands = 0;
            while arguments.get(at).is_some_and(|f| is_assignment(&f.text)) {
                at += 1;
            }
            break;
        }
        let takes_value = options.is_some_and(|options| options.takes_next(text));
        if text.starts_with('-') && text.len() > 1 {
            at += 1 + usize::from(takes_value);
        } else if is_assignment(text) {
            at += 1;
        } else if operands > 0 {
            operands -= 1;
            at += 1;
            if operands == 0 && arguments.get(at).is_some_and(|f| f.text == "--") {
                at += 1;
            }
        } else {
            break;
        }
    }
    (at < arguments.len() && operands == 0).then_some(at)
}

fn is_assignment(text: &str) -> bool {
    text.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
    })
}

/// The value behind the first of `flags`, as a word of its own or joined on.
pub(super) fn value_of<'f>(arguments: &'f [Field], flags: &[&str]) -> Option<&'f Field> {
    for (at, field) in arguments.iter().enumerate() {
        if flags.contains(&field.text.as_str()) {
            return arguments.get(at + 1);
        }
        // Clusters that end in the flag: `-lc`, `-xec`.
        let cluster = field.text.strip_prefix('-').filter(|c| {
            c.len() <= 6 && !c.starts_with('-') && c.bytes().all(|b| b.is_ascii_alphabetic())
        });
        if let Some(cluster) = cluster
            && flags
                .iter()
                .any(|flag| flag.len() == 2 && cluster.ends_with(flag.trim_start_matches('-')))
        {
            return arguments.get(at + 1);
        }
    }
    None
}
