//! Applies the disguises of `tests/disguises` to texts, for `tests/golden/run`.
//!
//! Reads texts from standard input, each terminated by a NUL, and writes the disguised texts in the
//! same form. `commands` applies each disguise to a command once, and then stacks of two and three;
//! `orders` applies each form of marks.

#[path = "../../disguises/marks.rs"]
mod marks;
#[path = "../../disguises/random.rs"]
mod random;
#[path = "../../disguises/whole.rs"]
mod whole;
#[path = "../../disguises/word.rs"]
mod word;

use std::io::{self, Read as _, Write as _};

use random::Random;

type Disguise = fn(&str, &mut Random) -> Option<String>;

/// Number of stacked disguises per command.
const STACKS: usize = 6;
/// Maximum size of a stacked disguise in bytes; a step that would exceed it is skipped.
const LONGEST: usize = 16_384;

fn main() -> io::Result<()> {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input)?;
    let texts = input.split_terminator('\0');
    let disguised: Vec<String> = match std::env::args().nth(1).as_deref() {
        Some("commands") => commands(texts),
        Some("orders") => texts.flat_map(orders).collect(),
        _ => return Err(io::Error::other("usage: lychgate-golden commands|orders")),
    };
    let mut out = io::stdout().lock();
    for text in disguised {
        write!(out, "{text}\0")?;
    }
    out.flush()
}

fn commands<'t>(texts: impl Iterator<Item = &'t str>) -> Vec<String> {
    let all: Vec<Disguise> = word::DISGUISES
        .iter()
        .chain(&whole::DISGUISES)
        .map(|(_, disguise)| *disguise)
        .collect();
    let mut random = Random::new(14);
    let mut disguised = Vec::new();
    for text in texts {
        disguised.extend(
            all.iter()
                .filter_map(|disguise| disguise(text, &mut random)),
        );
        for turn in 0..STACKS {
            let mut script = text.to_owned();
            for _ in 0..2 + turn % 2 {
                let disguise = random.pick(&all);
                if let Some(next) =
                    disguise(&script, &mut random).filter(|next| next.len() < LONGEST)
                {
                    script = next;
                }
            }
            disguised.push(script);
        }
    }
    disguised
}

fn orders(text: &str) -> Vec<String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    marks::MARKED.iter().map(|(_, form)| form(&words)).collect()
}
