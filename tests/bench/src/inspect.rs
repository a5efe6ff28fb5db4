//! The speed at which texts are judged, as reported by `lychgate inspect`.

use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::text;

const BYTES: usize = 10_000;
const TIMES: usize = 30;

/// Prints the microseconds for 10 kB of clean text, and for each text that is made to be slow.
pub fn speed(gate: &Path, folder: &Path) -> io::Result<()> {
    let mut texts = vec![("clean", text::clean(BYTES))];
    texts.extend(text::worst(BYTES));
    let file = folder.join("texts.jsonl");
    let mut lines = String::new();
    for time in 0..TIMES {
        for (name, text) in &texts {
            lines += &json!({ "id": format!("{name}/{time}"), "format": "text", "text": text })
                .to_string();
            lines.push('\n');
        }
    }
    fs::write(&file, lines)?;
    let done = Command::new(gate)
        .args(["inspect", "--direction", "inbound", "--jsonl"])
        .arg(&file)
        .output()?;
    let said = String::from_utf8_lossy(&done.stdout);
    let verdicts: Vec<Value> = said
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect();
    if verdicts.len() != TIMES * texts.len() {
        return Err(io::Error::other(format!(
            "`lychgate inspect` answered {} texts: {}",
            verdicts.len(),
            String::from_utf8_lossy(&done.stderr)
        )));
    }
    let median = |name: &str| {
        let mine = verdicts.iter().filter(|one| {
            one["id"]
                .as_str()
                .is_some_and(|id| id.split('/').next() == Some(name))
        });
        let mut all: Vec<f64> = mine.filter_map(|one| one["us"].as_f64()).collect();
        all.sort_by(f64::total_cmp);
        all.get(all.len() / 2).copied().unwrap_or(f64::NAN)
    };
    let clean = median("clean");
    println!(
        "\nto judge {BYTES} bytes of text (µs, median of {TIMES}; and times as long as clean text)"
    );
    for (name, _) in &texts {
        let one = median(name);
        println!("{name:>14}{one:>10.0}{:>8.1}", one / clean);
    }
    Ok(())
}
