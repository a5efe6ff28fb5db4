//! Rules of the kind `pattern`.

use super::{Detector, Kind, Match, Place};
use crate::document::Table;
use crate::text::Text;

/// The kind `pattern`.
#[derive(Debug)]
pub struct Pattern;

/// What a rule of this kind looks for.
#[derive(Debug)]
pub struct Spec {}

impl Kind for Pattern {
    type Spec = Spec;

    fn read(_table: &Table<'_>) -> Option<Spec> {
        Some(Spec {})
    }

    fn build(_rules: &[(usize, &Spec)]) -> Result<Box<dyn Detector>, Vec<(usize, String)>> {
        Ok(Box::new(Self))
    }
}

impl Detector for Pattern {
    fn scan(&self, _text: &Text<'_>, _place: &Place<'_>, _found: &mut Vec<Match>) {}
}
