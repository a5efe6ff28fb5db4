//! Rules of the kind `personal`: personal data, recognized by its form and, if it has one, its
//! checksum.

mod form;

use super::{Detector, Kind, Match, Place};
use crate::document::Table;
use crate::text::Text;

pub use form::Form;

/// Maximum number of spans reported for one text and rule; beyond it, the finding is for the whole
/// text.
const SPANS: usize = 256;

/// The kind `personal`.
#[derive(Debug)]
pub struct Personal;

impl Kind for Personal {
    type Spec = Form;

    fn read(table: &Table<'_>) -> Option<Form> {
        if !table.has("is") {
            table.missing("is", "one of `email`, `phone`, `card`, `iban`, `ssn`");
        }
        let form = table.choice("is", &Form::WORDS);
        table.finish();
        form
    }

    fn build(rules: &[(usize, &Form)]) -> Result<Box<dyn Detector>, Vec<(usize, String)>> {
        Ok(Box::new(Forms(
            rules.iter().map(|(rule, form)| (*rule, **form)).collect(),
        )))
    }
}

/// All personal rules of a set.
#[derive(Debug)]
struct Forms(Vec<(usize, Form)>);

impl Detector for Forms {
    fn scan(&self, text: &Text<'_>, _place: &Place<'_>, matches: &mut Vec<Match>) {
        let plain = text.plain();
        for (rule, form) in &self.0 {
            let spans = form.find(plain, SPANS);
            if spans.len() > SPANS {
                matches.push(Match::new(*rule, None, "plain"));
                continue;
            }
            matches.extend(
                spans
                    .into_iter()
                    .map(|span| Match::new(*rule, Some(text.locate(span)), "plain")),
            );
        }
    }
}
