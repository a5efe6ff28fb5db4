//! Checks that lychgate's shell reader finds every simple command that brush-parser finds in a
//! script: the same words in the same order. The scripts contain plain words only, so that neither
//! parser has to expand anything.

mod made;
mod parsed;

use std::process::ExitCode;

use lychgate::detect::ReadAs;
use lychgate::detect::command::Script;

/// Number of random scripts.
const SCRIPTS: usize = 4_000;

fn main() -> ExitCode {
    let mut random = made::Random::new(7);
    let mut compared = 0;
    let mut commands = 0;
    let mut missed = 0;
    for _ in 0..SCRIPTS {
        let text = made::script(&mut random);
        let Some(wanted) = parsed::commands(&text) else {
            continue;
        };
        compared += 1;
        let script = Script::new(&text, ReadAs::Shell);
        let read: Vec<String> = script.lines().collect();
        for command in wanted {
            commands += 1;
            if !read.contains(&command) {
                missed += 1;
                if missed <= 10 {
                    println!("not read: {command:?}\n  in {text:?}\n  read: {read:?}");
                }
            }
        }
    }
    println!(
        "{SCRIPTS} scripts, {compared} that brush parses, {commands} commands, {missed} not read"
    );
    if missed == 0 && compared > SCRIPTS * 9 / 10 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
