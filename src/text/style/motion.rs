//! Animations that leave an element hidden (CSS Animations 1).

use std::collections::HashMap;

use super::declare::{Block, Declaration};
use super::look::can_hide;
use super::scan::{decode, find_end};
use super::value::{list, number, words};

/// Maximum number of animations of a page that are kept.
const MAX_ANIMATIONS: usize = 1000;
/// How long a person waits for a page, in seconds.
const PATIENCE: f32 = 20.0;

/// The animations in a page's style sheets, by their names as numbers.
#[derive(Debug, Default)]
pub(super) struct Animations {
    animations: HashMap<u64, Frames>,
}

/// The first and the last frame of an animation.
#[derive(Debug, Default)]
struct Frames {
    first: Block,
    last: Block,
    /// Whether a frame in between hides nothing.
    shows_between: bool,
}

impl Animations {
    /// Reads the frames of an animation.
    pub(super) fn add(&mut self, name: u64, text: &str) {
        let mut frames = Frames::default();
        let mut rest = text;
        while let Some((end, _)) = find_end(rest, b"{") {
            let positions = decode(rest.get(..end).unwrap_or_default());
            rest = rest.get(end + 1..).unwrap_or_default();
            let inner = find_end(rest, b"}")
                .and_then(|(end, _)| rest.get(..end))
                .unwrap_or(rest);
            rest = rest.get(inner.len() + 1..).unwrap_or_default();
            let block = Block::read(inner);
            for part in list(&positions, ',') {
                match part {
                    "from" | "0%" => frames.first = block.clone(),
                    "to" | "100%" => frames.last = block.clone(),
                    _ => frames.shows_between |= !block.normal.iter().any(can_hide),
                }
            }
        }
        if self.animations.len() < MAX_ANIMATIONS {
            self.animations.insert(name, frames);
        }
    }

    /// Returns the declarations that an animation leaves an element with, and whether that is
    /// certain. `animation_words` contains the words of its animation declarations.
    pub(super) fn declarations(
        &self,
        animation_words: &str,
        name: impl Fn(&str) -> u64,
    ) -> impl Iterator<Item = (&Declaration, bool)> {
        let mut matching = Vec::new();
        let mut keeps_last = false;
        let mut is_paused = false;
        let mut seconds = 0.0;
        for word in words(animation_words)
            .into_iter()
            .flat_map(|word| list(word, ','))
        {
            match word {
                "forwards" | "both" => keeps_last = true,
                "paused" => is_paused = true,
                _ => match number(word) {
                    Some((n, "s")) => seconds += n,
                    Some((n, "ms")) => seconds += n / 1000.0,
                    _ => {
                        matching.extend(self.animations.get(&name(word.trim_matches(['"', '\'']))))
                    }
                },
            }
        }
        let is_halted = is_paused || seconds >= PATIENCE;
        matching.into_iter().flat_map(move |frames| {
            let always_hides = !frames.shows_between
                && frames.first.normal.iter().any(can_hide)
                && frames.last.normal.iter().any(can_hide);
            let block = match (is_halted, keeps_last) {
                (true, _) => Some((&frames.first, false)),
                (false, true) => Some((&frames.last, true)),
                (false, false) => always_hides.then_some((&frames.last, false)),
            };
            block.into_iter().flat_map(|(block, is_certain)| {
                block
                    .normal
                    .iter()
                    .map(move |declaration| (declaration, is_certain))
            })
        })
    }
}
