//! The cost of each rule on ordinary texts: how often its words occur there, and how much text its
//! regexes then search.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::PathBuf;

use crate::config::PolicyConfig;
use crate::detect::Cost;
use crate::document::Fault;
use crate::message::Direction;
use crate::rules::Library;

/// Texts are judged in parts of this size, like the results of tools.
const PART_BYTES: usize = 10_000;

/// The costs of the rules of a library, the highest first.
pub(super) struct Costs {
    rules: Vec<(String, Cost)>,
    bytes: usize,
}

/// Measures the enabled rules on texts that should contain nothing that they match.
///
/// # Errors
/// A text cannot be read, or a rule cannot be compiled.
pub(super) fn measure(library: &Library, texts: &[PathBuf]) -> Result<Costs, Vec<Fault>> {
    let rules = library.rule_set(Direction::Inbound, &PolicyConfig::default())?;
    let (mut costs, mut bytes) = (BTreeMap::<String, Cost>::new(), 0_usize);
    for path in texts {
        let text = std::fs::read_to_string(path).map_err(|error| {
            vec![Fault::of_file(
                path.display().to_string(),
                error.to_string(),
                None,
            )]
        })?;
        bytes = bytes.saturating_add(text.len());
        for part in parts(&text) {
            for (rule, cost) in rules.costs(part) {
                let sum = costs.entry(rule.id.to_string()).or_default();
                *sum = sum.plus(cost);
            }
        }
    }
    let mut rules: Vec<(String, Cost)> = costs.into_iter().collect();
    rules.sort_by_key(|(_, cost)| std::cmp::Reverse(cost.bytes));
    Ok(Costs { rules, bytes })
}

impl Costs {
    /// Writes one rule per line. Returns the number of rules that cost more than `limit` bytes per
    /// kilobyte of text.
    pub(super) fn write(&self, limit: Option<usize>, out: &mut dyn Write) -> io::Result<usize> {
        let rate = |count: usize| {
            count
                .saturating_mul(10_000)
                .checked_div(self.bytes)
                .unwrap_or_default()
        };
        writeln!(out, "{:>14}  {:>14}  rule", "searches/kB", "bytes/kB")?;
        let mut exceeded = 0;
        for (rule, cost) in &self.rules {
            let searches = rate(cost.searches);
            let bytes = rate(cost.bytes);
            let is_over = limit.is_some_and(|most| bytes > most.saturating_mul(10));
            exceeded += usize::from(is_over);
            let mark = if is_over { "  too expensive" } else { "" };
            writeln!(
                out,
                "{:>12}.{}  {:>12}.{}  {rule}{mark}",
                searches / 10,
                searches % 10,
                bytes / 10,
                bytes % 10
            )?;
        }
        let sum = self
            .rules
            .iter()
            .fold(Cost::default(), |sum, (_, cost)| sum.plus(*cost));
        let searches = rate(sum.searches);
        let bytes = rate(sum.bytes);
        writeln!(
            out,
            "{:>12}.{}  {:>12}.{}  all, over {} bytes",
            searches / 10,
            searches % 10,
            bytes / 10,
            bytes % 10,
            self.bytes
        )?;
        Ok(exceeded)
    }
}

/// Splits a text into parts at character boundaries.
fn parts(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let (part, after) = rest.split_at_checked(rest.floor_char_boundary(PART_BYTES))?;
        rest = after;
        Some(part).filter(|part| !part.is_empty())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_that_waits_for_a_common_word_is_too_dear() {
        let dir = tempfile::TempDir::new().unwrap();
        let rule = r#"
            format = 1
            direction = "inbound"
            [[rule]]
            id = "dear"
            title = "t"
            why = "w"
            severity = "low"
            action = "log"
            find.pattern = { keywords = ["there"], any = ['''there\s+\w+\s+x'''] }
            catches = ["there is x"]
            spares = ["there"]
        "#;
        std::fs::write(dir.path().join("dear.toml"), rule).unwrap();
        let text = dir.path().join("text.txt");
        std::fs::write(
            &text,
            "There is what there was, é, and there it ends. ".repeat(500),
        )
        .unwrap();
        let library = Library::read(false, &[dir.path().join("dear.toml")]).unwrap();
        let costs = measure(&library, &[text]).unwrap();
        let written = |most| {
            let mut out = Vec::new();
            let over = costs.write(most, &mut out).unwrap();
            (over, String::from_utf8(out).unwrap())
        };
        let (over, out) = written(Some(100));
        assert_eq!(over, 1, "{out}");
        assert!(
            out.contains("dear  too expensive\n") && out.ends_with("all, over 24000 bytes\n"),
            "{out}"
        );
        assert_eq!(written(None).0, 0);
        assert!(measure(&library, &[dir.path().join("none")]).is_err());
    }
}
