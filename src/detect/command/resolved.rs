//! Scripts with their words written out, for regexes over whole scripts: `c${x}url`, `\curl` and
//! `$(printf curl)` become `curl`.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;

use super::quote;
use super::reader::Reader;
use super::unwrap::program_name;
use super::value::Field;

/// The words of a script that are written in another way than they are run: where each starts and
/// ends, and what it expands to.
pub(super) type ResolvedWords = BTreeMap<usize, (usize, String)>;

impl Reader<'_> {
    /// Notes the fields that a word of the current script expands to, if the word is written in
    /// another way and the fields need no quotation marks.
    pub(super) fn note_resolved(&mut self, place: &Range<usize>, fields: &[Field], is_first: bool) {
        let Some(script) = self.scripts.get(self.script) else {
            return;
        };
        let source = quote::cut(script, place.start, place.end);
        let plain = |field: &Field| {
            !field.text.is_empty() && matches!(quote::as_word(&field.text), Cow::Borrowed(_))
        };
        if fields.is_empty() || !fields.iter().all(plain) {
            return;
        }
        let mut words: Vec<Cow<'_, str>> = fields
            .iter()
            .map(|field| Cow::from(field.text.as_str()))
            .collect();
        if let (Some(word), Some(field)) = (words.first_mut(), fields.first())
            && is_first
            && (field.glob || is_in_system_folder(&field.text))
        {
            *word = program_name(field, self.programs()).into();
        }
        let words = words.join(" ");
        if source != words && source.replace(['\'', '"'], "") != words {
            self.resolved_words.insert(place.start, (place.end, words));
        }
    }
}

/// Reports whether a program is named by its place in a folder of programs.
fn is_in_system_folder(program: &str) -> bool {
    program.rsplit_once('/').is_some_and(|(folder, _)| {
        folder.starts_with('/') && folder.trim_end_matches(['/', '.']).ends_with("bin")
    })
}

/// Returns the script with its words written out, if it has any that are written in another way.
pub(super) fn resolve(script: &str, words: &ResolvedWords) -> Option<String> {
    if words.is_empty() {
        return None;
    }
    let mut out = String::with_capacity(script.len());
    let mut at = 0;
    for (start, (end, word)) in words {
        out.push_str(quote::cut(script, at, *start));
        out.push_str(word);
        at = *end;
    }
    out.push_str(quote::cut(script, at, script.len()));
    Some(out)
}
