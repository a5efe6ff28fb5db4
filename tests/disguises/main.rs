//! A command in disguise is refused as it is in plain words: every case of every core command rule,
//! under each of the disguises of `whole` and `word`, and under two and three of them at once. The
//! same is tested for secrets (`secret`) and for orders from a server (`inbound`).

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "a test may panic"
)]
#![allow(
    clippy::print_stdout,
    reason = "what was missed is worth reading when a test fails"
)]

mod inbound;
mod judge;
mod marks;
mod random;
mod secret;
mod whole;
mod word;

use std::collections::BTreeMap;

use judge::Judge;
use random::Random;

/// A way to rewrite a script so that it does the same and looks different; `None` if it is not
/// applicable to the script.
type Disguise = fn(&str, &mut Random) -> Option<String>;

/// Minimum share of single disguises that are detected.
const SINGLE: f64 = 0.998;
/// Minimum share of two and three disguises at once that are detected.
const STACKED: f64 = 0.98;

fn all() -> Vec<(&'static str, Disguise)> {
    word::DISGUISES
        .iter()
        .chain(&whole::DISGUISES)
        .copied()
        .collect()
}

/// The texts that passed, by disguise, and how many were tried.
#[derive(Default)]
struct Tally {
    tried: usize,
    missed: BTreeMap<String, Vec<String>>,
}

impl Tally {
    fn add(&mut self, judge: &Judge, name: String, script: &str) {
        self.tried += 1;
        if !judge.refuses(script) {
            self.missed.entry(name).or_default().push(script.to_owned());
        }
    }

    fn add_text(&mut self, judge: &Judge, name: String, text: &str) {
        self.tried += 1;
        if !judge.refuses_text(text) {
            self.missed.entry(name).or_default().push(text.to_owned());
        }
    }

    fn missed(&self) -> usize {
        self.missed.values().map(Vec::len).sum()
    }

    /// Fails with examples if the share of detected texts is below `least`.
    fn require(&self, least: f64) {
        let seen = 1.0 - self.missed() as f64 / self.tried.max(1) as f64;
        println!(
            "{} tried, {} missed: {:.2} % seen through",
            self.tried,
            self.missed(),
            seen * 100.0
        );
        let mut told = String::new();
        for (name, scripts) in &self.missed {
            told += &format!("\n{:5} {name}", scripts.len());
            for script in scripts.iter().take(3) {
                told += &format!(
                    "\n        {:?}",
                    script.chars().take(200).collect::<String>()
                );
            }
        }
        println!("{told}");
        assert!(
            seen >= least,
            "{:.2} % seen through, at least {:.2} % is asked for:{told}",
            seen * 100.0,
            least * 100.0
        );
    }
}

#[test]
fn one_disguise() {
    let (judge, cases) = (Judge::new(), judge::cases());
    assert!(cases.len() > 150, "{} cases", cases.len());
    let mut random = Random::new(1);
    let mut tally = Tally::default();
    for case in &cases {
        for (name, disguise) in all() {
            if let Some(script) = disguise(case, &mut random) {
                tally.add(&judge, name.to_owned(), &script);
            }
        }
    }
    assert!(tally.tried > 5_000, "{} tried", tally.tried);
    tally.require(SINGLE);
}

#[test]
fn disguises_upon_disguises() {
    let (judge, cases) = (Judge::new(), judge::cases());
    let all = all();
    let mut random = Random::new(2);
    let mut tally = Tally::default();
    for depth in [2, 3] {
        for case in &cases {
            for _ in 0..12 {
                let mut script = case.clone();
                let mut names = Vec::new();
                while names.len() < depth {
                    let (name, disguise) = *random.pick(&all);
                    if let Some(made) =
                        disguise(&script, &mut random).filter(|made| made.len() < 16_384)
                    {
                        script = made;
                        names.push(name);
                    } else {
                        names.push("as is");
                    }
                }
                names.retain(|name| *name != "as is");
                tally.add(&judge, names.join(" + "), &script);
            }
        }
    }
    assert!(tally.tried > 4_000, "{} tried", tally.tried);
    tally.require(STACKED);
}

/// Harmless commands pass in disguises that have legitimate uses.
#[test]
fn harmless_commands_stay_harmless() {
    let judge = Judge::new();
    let mut random = Random::new(3);
    let honest = [
        "sh -c",
        "eval",
        "here-document",
        "here-string",
        "function",
        "quotes",
        "backslashes",
        "path",
        "timeout",
        "env",
        "sudo",
        "nohup",
    ];
    for text in [
        "ls -la src",
        "cargo test --lib",
        "rm -rf ./build",
        "git commit -m 'rm -rf / is bad'",
        "grep -rn 'mkfs' docs",
        "docker ps",
    ] {
        assert!(!judge.refuses(text), "{text}");
        for (name, disguise) in all().into_iter().filter(|(name, _)| honest.contains(name)) {
            if let Some(script) = disguise(text, &mut random) {
                assert!(!judge.refuses(&script), "{name}: {script}");
            }
        }
    }
}
