//! The terminal output of the demo.

use std::io::{self, IsTerminal, Write};

use serde_json::Value;

use super::tour::{Outcome, TourResult};
use crate::record::entry::{member, object};

/// Columns of text, in addition to the margin.
const WIDTH: usize = 84;
const MARGIN: &str = "              ";
const SENT: &str = "server sent";

/// Writes to standard output, in color if it is a terminal that supports it.
pub(super) struct Screen {
    out: io::Stdout,
    colour: bool,
}

/// Text styles, as Select Graphic Rendition parameters (ECMA-48, 8.3.117).
#[derive(Clone, Copy)]
enum TextStyle {
    Bold,
    Dim,
    Red,
    Green,
    Yellow,
}

impl Screen {
    pub(super) fn new() -> Self {
        let out = io::stdout();
        // https://no-color.org: any value but an empty one.
        let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|value| value == "dumb");
        let colour = out.is_terminal() && !no_color && !dumb;
        Self { out, colour }
    }

    fn apply_style(&self, style: TextStyle, text: &str) -> String {
        let code = match style {
            TextStyle::Bold => 1,
            TextStyle::Dim => 2,
            TextStyle::Red => 31,
            TextStyle::Green => 32,
            TextStyle::Yellow => 33,
        };
        if self.colour && !text.is_empty() {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }

    /// Writes a line. A closed output ends the demo like any other error.
    pub(super) fn line(&mut self, text: &str) -> io::Result<()> {
        writeln!(self.out, "{text}")
    }

    /// Writes a heading.
    pub(super) fn heading(&mut self, text: &str, detail: &str) -> io::Result<()> {
        let text = self.apply_style(TextStyle::Bold, text);
        let rest = self.apply_style(TextStyle::Dim, detail);
        self.line(&format!("\n{text}  {rest}\n"))
    }

    /// Writes a name and its value.
    pub(super) fn pair(&mut self, name: &str, value: &str) -> io::Result<()> {
        let name = self.apply_style(TextStyle::Dim, &format!("  {name:<12}"));
        self.line(&format!("{name}{value}"))
    }

    /// Writes the outcome of a call.
    pub(super) fn outcome(&mut self, tour_result: &TourResult) -> io::Result<()> {
        let (style, mark, word) = match &tour_result.outcome {
            Outcome::Passed => (TextStyle::Green, "✓", "passed"),
            Outcome::Refused(_) => (TextStyle::Red, "✗", "refused"),
            Outcome::Cleaned { .. } => (TextStyle::Yellow, "~", "cleaned"),
        };
        let word = self.apply_style(style, &format!("  {mark} {word:<10}"));
        let call = self.apply_style(
            TextStyle::Bold,
            &format!("{} {:?}", tour_result.stop.tool, tour_result.stop.value),
        );
        let revision = tour_result
            .stop
            .revision()
            .map(|revision| format!("  (revision {revision})"))
            .unwrap_or_default();
        self.line(&format!(
            "{word}{call}{}",
            self.apply_style(TextStyle::Dim, &revision)
        ))?;
        match &tour_result.outcome {
            Outcome::Passed => self.write_block(
                "",
                "the agent received the server's answer byte for byte",
                |_| None,
            )?,
            Outcome::Refused(text) => {
                self.write_block("", "the server never saw it; the agent reads:", |_| None)?;
                self.write_block("", text, |_| None)?;
            }
            Outcome::Cleaned {
                sent,
                received: got,
            } => {
                let is_kept = |line: &str| strip_tags(line).is_some_and(|line| got.contains(&line));
                self.write_block(SENT, sent, |line| {
                    if is_kept(line) {
                        None
                    } else {
                        Some(TextStyle::Red)
                    }
                })?;
                self.write_block("agent got", got, |line| {
                    line.starts_with("[lychgate").then_some(style)
                })?;
            }
        }
        if !tour_result.is_expected {
            let warning = self.apply_style(TextStyle::Red, "  ! unexpected result");
            self.line(&warning)?;
        }
        self.line("")
    }

    /// Writes a text next to its name, wrapped to the width, each line in its style.
    fn write_block(
        &mut self,
        name: &str,
        text: &str,
        style_of: impl Fn(&str) -> Option<TextStyle>,
    ) -> io::Result<()> {
        let is_sent = name == SENT;
        let mut name = Some(name);
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            let style = style_of(line);
            // The output is readable without color as well: `-` marks removed text, `+` added text.
            let bar = match style {
                Some(TextStyle::Red) if is_sent => '-',
                Some(TextStyle::Yellow) => '+',
                _ => '│',
            };
            for part in wrap_words(line) {
                let margin = format!("  {:<12}", name.take().unwrap_or_default());
                let margin = self.apply_style(TextStyle::Dim, &format!("{margin}{bar} "));
                let part = style.map_or_else(|| part.clone(), |look| self.apply_style(look, &part));
                self.line(&format!("{margin}{part}"))?;
            }
        }
        Ok(())
    }

    /// Writes a summary of an audit line.
    pub(super) fn audit_line(&mut self, line: &Value) -> io::Result<()> {
        let text = |name: &str| {
            line.get(name)
                .and_then(Value::as_str)
                .unwrap_or("")
                .to_owned()
        };
        let style = match text(member::verdict::NAME).as_str() {
            "block" => TextStyle::Red,
            "rewrite" => TextStyle::Yellow,
            _ => TextStyle::Green,
        };
        let time = text(member::time::NAME)
            .get(11..19)
            .unwrap_or("")
            .to_owned();
        let findings = line
            .get(member::findings::NAME)
            .and_then(Value::as_array)
            .map(Vec::as_slice)
            .unwrap_or_default();
        let mut rules: Vec<&str> = findings
            .iter()
            .filter_map(|finding| finding.get(object::finding::rule::NAME)?.as_str())
            .collect();
        rules.dedup();
        let verdict = self.apply_style(style, &format!("{:<8}", text(member::verdict::NAME)));
        let target = format!(
            "{:<9}{:<13}",
            text(member::direction::NAME),
            text(member::tool::NAME)
        );
        self.line(format!("  {time}  {verdict} {target} {}", rules.join(", ")).trim_end())
    }

    /// Writes an indented text.
    pub(super) fn quotation(&mut self, text: &str) -> io::Result<()> {
        for line in text.lines() {
            self.line(&format!("{MARGIN}{line}"))?;
        }
        Ok(())
    }

    /// Writes the final result.
    pub(super) fn verdict(&mut self, is_success: bool, text: &str) -> io::Result<()> {
        let text = self.apply_style(
            if is_success {
                TextStyle::Green
            } else {
                TextStyle::Red
            },
            text,
        );
        self.line(&text)
    }
}

/// Returns the text of a line of HTML without its tags, if any.
fn strip_tags(line: &str) -> Option<String> {
    let mut out = String::new();
    let mut in_tag = false;
    for c in line.chars() {
        match c {
            '<' => in_tag = true,
            '>' => in_tag = false,
            c if !in_tag => out.push(c),
            _ => {}
        }
    }
    // A few words are enough to find a line again: what surrounds them may change with the markup.
    let words: Vec<&str> = out.split_whitespace().take(3).collect();
    if words.is_empty() {
        None
    } else {
        Some(words.join(" "))
    }
}

/// Wraps a line between words.
fn wrap_words(line: &str) -> Vec<String> {
    let mut out = vec![String::new()];
    for word in line.split_whitespace() {
        let Some(last) = out.last_mut() else { continue };
        if !last.is_empty() && last.chars().count() + 1 + word.chars().count() > WIDTH {
            out.push(word.to_owned());
            continue;
        }
        if !last.is_empty() {
            last.push(' ');
        }
        last.push_str(word);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_folded_between_words() {
        let folded = wrap_words(&"word ".repeat(40));
        assert!(
            folded.len() == 3 && folded.iter().all(|line| line.len() <= WIDTH),
            "{folded:?}"
        );
        assert_eq!(wrap_words("short  line"), ["short line"]);
    }

    #[test]
    fn a_line_of_html_is_known_by_its_words() {
        assert_eq!(
            strip_tags("<p>Bake for <b>40 minutes</b></p>").as_deref(),
            Some("Bake for 40")
        );
        assert_eq!(strip_tags("<body><div id=\"x\">"), None);
    }
}
