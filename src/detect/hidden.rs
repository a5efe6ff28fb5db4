//! Rules of the kind `hidden`.

use super::{Detector, Kind, Match, Place};
use crate::document::Table;
use crate::text::Text;

/// The kind `hidden`.
#[derive(Debug)]
pub struct Hidden;

/// What a rule of this kind looks for.
#[derive(Debug)]
pub struct Spec {}

impl Kind for Hidden {
    type Spec = Spec;

    fn read(_table: &Table<'_>) -> Option<Spec> {
        Some(Spec {})
    }

    fn build(_rules: &[(usize, &Spec)]) -> Result<Box<dyn Detector>, Vec<(usize, String)>> {
        Ok(Box::new(Self))
    }
}

impl Detector for Hidden {
    fn scan(&self, _text: &Text<'_>, _place: &Place<'_>, _found: &mut Vec<Match>) {}
}
