//! Rules of the kind `command`.

use super::{Detector, Kind, Match, Place};
use crate::document::Table;
use crate::text::Text;

/// The kind `command`.
#[derive(Debug)]
pub struct Command;

/// What a rule of this kind looks for.
#[derive(Debug)]
pub struct Spec {}

impl Kind for Command {
    type Spec = Spec;

    fn read(_table: &Table<'_>) -> Option<Spec> {
        Some(Spec {})
    }

    fn build(_rules: &[(usize, &Spec)]) -> Result<Box<dyn Detector>, Vec<(usize, String)>> {
        Ok(Box::new(Self))
    }
}

impl Detector for Command {
    fn scan(&self, _text: &Text<'_>, _place: &Place<'_>, _found: &mut Vec<Match>) {}
}
