//! Animations that leave an element hidden (CSS Animations 1).

use std::collections::HashMap;

use super::declare::{Block, Declaration};
use super::look::hides;
use super::scan::{decode, until};
use super::value::{list, number, words};

/// Maximum number of animations of a page that are kept.
const MOST: usize = 1000;
/// How long a person waits for a page, in seconds.
const PATIENCE: f32 = 20.0;

/// The animations in a page's style sheets, by their names as numbers.
#[derive(Debug, Default)]
pub(super) struct Motions {
    known: HashMap<u64, Frames>,
}

/// The first and the last frame of an animation.
#[derive(Debug, Default)]
struct Frames {
    first: Block,
    last: Block,
    /// Whether a frame in between hides nothing.
    shows: bool,
}

impl Motions {
    /// Reads the frames of an animation.
    pub(super) fn add(&mut self, name: u64, text: &str) {
        let mut frames = Frames::default();
        let mut rest = text;
        while let Some((end, _)) = until(rest, b"{") {
            let when = decode(rest.get(..end).unwrap_or_default());
            rest = rest.get(end + 1..).unwrap_or_default();
            let inner = until(rest, b"}")
                .and_then(|(end, _)| rest.get(..end))
                .unwrap_or(rest);
            rest = rest.get(inner.len() + 1..).unwrap_or_default();
            let block = Block::read(inner);
            for part in list(&when, ',') {
                match part {
                    "from" | "0%" => frames.first = block.clone(),
                    "to" | "100%" => frames.last = block.clone(),
                    _ => frames.shows |= !block.normal.iter().any(hides),
                }
            }
        }
        if self.known.len() < MOST {
            self.known.insert(name, frames);
        }
    }

    /// Returns the declarations that an animation leaves an element with, and whether that is
    /// certain. `said` contains the words of its animation declarations.
    pub(super) fn declarations(
        &self,
        said: &str,
        name: impl Fn(&str) -> u64,
    ) -> impl Iterator<Item = (&Declaration, bool)> {
        let mut found = Vec::new();
        let mut stays = false;
        let mut halted = false;
        let mut seconds = 0.0;
        for word in words(said).into_iter().flat_map(|word| list(word, ',')) {
            match word {
                "forwards" | "both" => stays = true,
                "paused" => halted = true,
                _ => match number(word) {
                    Some((n, "s")) => seconds += n,
                    Some((n, "ms")) => seconds += n / 1000.0,
                    _ => found.extend(self.known.get(&name(word.trim_matches(['"', '\''])))),
                },
            }
        }
        let halted = halted || seconds >= PATIENCE;
        found.into_iter().flat_map(move |frames| {
            let always = !frames.shows
                && frames.first.normal.iter().any(hides)
                && frames.last.normal.iter().any(hides);
            let block = match (halted, stays) {
                (true, _) => Some((&frames.first, false)),
                (false, true) => Some((&frames.last, true)),
                (false, false) => always.then_some((&frames.last, false)),
            };
            block
                .into_iter()
                .flat_map(|(block, sure)| block.normal.iter().map(move |declared| (declared, sure)))
        })
    }
}
