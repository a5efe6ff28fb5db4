//! Programs that run another program, and the number of their own words before it.

use super::options::Options;
use super::value::Field;
use crate::document::Table;

/// Number of leading arguments in which a word that the command follows may be.
const WORDS_BEFORE: usize = 6;
/// Maximum number of operands that a program may have before the command.
const OPERANDS: u64 = 8;

/// The way in which a program runs the command after its own options.
#[derive(Clone, Debug)]
pub(super) struct Runner {
    /// Words of the program that the command follows, such as `exec`; empty if it needs no such
    /// word.
    after: Vec<Vec<String>>,
    /// The options of the program, if they differ from those without such a word.
    options: Option<Options>,
    /// Number of operands of the program before the command.
    operands: usize,
}

impl Runner {
    /// Parses `runs` of a `[[program]]` table and reports faults.
    pub(super) fn read(table: &Table<'_>) -> Option<Self> {
        ["operands", "short", "long"]
            .into_iter()
            .for_each(|key| table.mark_known(key));
        let after = table
            .strings("after")
            .into_iter()
            .map(|words| words.value.split(' ').map(str::to_owned).collect());
        let operands = if table.has("operands") {
            table.integer("operands", 0..=OPERANDS)
        } else {
            Some(0)
        };
        let options = (table.has("short") || table.has("long")).then(|| Options::read_keys(table));
        table.finish();
        let operands = usize::try_from(operands?).unwrap_or(usize::MAX);
        Some(Self {
            after: after.collect(),
            options,
            operands,
        })
    }

    /// Reports whether the command needs no word before it.
    pub(super) fn is_plain(&self) -> bool {
        self.after.is_empty()
    }

    /// Reports whether the arguments contain the words that the command follows.
    pub(super) fn is_named(&self, arguments: &[Field]) -> bool {
        self.end_of_words(arguments).is_some()
    }

    /// Returns the number of arguments up to and including the words that the command follows.
    fn end_of_words(&self, arguments: &[Field]) -> Option<usize> {
        self.after.iter().find_map(|words| {
            let start = arguments
                .iter()
                .take(WORDS_BEFORE)
                .position(|f| words.first() == Some(&f.text))?;
            let is_complete = words
                .iter()
                .enumerate()
                .all(|(n, word)| arguments.get(start + n).is_some_and(|f| f.text == *word));
            is_complete.then_some(start + words.len())
        })
    }

    /// Returns how many of `arguments` precede the command; `None` if there is none.
    pub(super) fn command_start(
        &self,
        options: Option<&Options>,
        arguments: &[Field],
    ) -> Option<usize> {
        if self.is_plain() {
            return skip_own_arguments(
                arguments,
                0,
                self.options.as_ref().or(options),
                self.operands,
            );
        }
        skip_own_arguments(
            arguments,
            self.end_of_words(arguments)?,
            self.options.as_ref(),
            self.operands,
        )
    }
}

/// Returns how many of `arguments` precede the command that the dynamic loader runs:
/// `/lib64/ld-linux-x86-64.so.2 --library-path x /bin/rm`.
pub(super) fn command_start_of_loader(program: &str, arguments: &[Field]) -> Option<usize> {
    let loads = program == "ld.so"
        || program.starts_with("ld") && program.contains(".so")
        || program.starts_with("ld-musl-");
    loads.then(|| skip_own_arguments(arguments, 0, Some(&Options::of_loader()), 0))?
}

/// Returns the index after options, assignments and `operands` operands, if there is anything.
fn skip_own_arguments(
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

/// Returns the value after `=` in the first word that begins with one of `flags`.
pub(super) fn joined_value<'f>(arguments: &'f [Field], flags: &[&str]) -> Option<&'f str> {
    arguments.iter().find_map(|f| {
        flags
            .iter()
            .find_map(|flag| f.text.strip_prefix(flag)?.strip_prefix('='))
    })
}

/// Returns the value of the first of `flags`, either the next word or attached.
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
