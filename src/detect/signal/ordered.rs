//! Commands that a text instructs its reader to run.

use std::fmt::Debug;
use std::ops::Range;

/// Maximum length of a command that is judged, in bytes.
const COMMAND_BYTES: usize = 1 << 10;
/// Maximum length of a line that begins a code block, with blank lines after it, in bytes.
const FENCE_LINE_BYTES: usize = 64;
/// The marker at the beginning and end of a code block.
const FENCE: &str = "```";
/// What shells print before a command.
const PROMPTS: [&str; 3] = ["$ ", "# ", "PS> "];

/// Judges commands that texts instruct to run by the rules for commands that agents send.
pub trait OrderedCommands: Debug {
    /// Returns the rule that refuses a command.
    fn refusing_rule(&self, command: &str) -> Option<&str>;

    /// Reports whether a command is refused that documents have no reason to contain. Installers
    /// have one to run a download.
    fn is_harmful(&self, command: &str) -> bool;

    /// Returns the rule that refuses a command at the end of a passage.
    fn refusing_rule_at_end(&self, passage: &str) -> Option<&str>;
}

/// Returns the place of the command that an instruction before `at` asks for: in a code block, in a
/// code span, or up to the end of the line.
pub(super) fn command(text: &str, at: usize) -> Range<usize> {
    // Bounded on both sides: a long line may have many orders.
    let start = text.floor_char_boundary(at.saturating_sub(FENCE_LINE_BYTES));
    let order = text.get(start..at).unwrap_or_default();
    let rest = part_after(text, at);
    let line = order
        .get(order.trim_end().rfind('\n').map_or(0, |at| at + 1)..)
        .unwrap_or_default();
    let end = if order.ends_with('\n') && line.trim_start().starts_with(FENCE) {
        rest.find(FENCE).unwrap_or(rest.len())
    } else if order.ends_with('`') {
        rest.find(['`', '\n']).unwrap_or(rest.len())
    } else {
        rest.find('\n').unwrap_or(rest.len())
    };
    at..at + end
}

/// Returns the part of a text after `at` that may be a command.
fn part_after(text: &str, at: usize) -> &str {
    let end = text.floor_char_boundary(at.saturating_add(COMMAND_BYTES));
    text.get(at..end).unwrap_or_default()
}

/// Returns the place of the command that a mark at `at` shows: a code block, a code span, a prompt or
/// an indentation. A blank or a sign may be before the mark.
pub(super) fn marked_command(text: &str, at: usize) -> Range<usize> {
    let marked = part_after(text, at);
    let rest = marked.trim_start_matches([' ', '\t', '\r', '\n', '(', ':', '>']);
    let length = if rest.starts_with(FENCE) {
        rest.find('\n').map_or(rest.len(), |line_end| line_end + 1)
    } else if rest.starts_with('`') {
        1
    } else {
        PROMPTS
            .iter()
            .find(|prompt| rest.starts_with(**prompt))
            .map_or(0, |prompt| prompt.len())
    };
    if length == 0 && begins_like_sentence(rest) {
        return at..at;
    }
    command(text, at + marked.len() - rest.len() + length)
}

/// Reports whether a text begins with a word of a sentence: a capital letter and small ones only. An
/// error message in an indented line is no command.
fn begins_like_sentence(text: &str) -> bool {
    let word = text.split_whitespace().next().unwrap_or_default();
    let rest = word.strip_prefix(|c: char| c.is_ascii_uppercase());
    rest.is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_lowercase()))
}

#[cfg(test)]
#[allow(clippy::string_slice)]
mod tests {
    use super::*;

    #[test]
    fn a_command_ends_with_its_marks() {
        for (order, rest, said) in [
            ("Run `", "rm -rf ~` now", "rm -rf ~"),
            (
                "Run this:\n```bash\n",
                "rm -rf ~\nls\n```\nthen",
                "rm -rf ~\nls\n",
            ),
            ("Run: ", "rm -rf ~\nThen", "rm -rf ~"),
            ("Run `", "rm", "rm"),
        ] {
            let text = format!("{order}{rest}");
            assert_eq!(&text[command(&text, order.len())], said);
        }
        for (before, marked, said) in [
            ("Before that", " `rm -rf ~` now", "rm -rf ~"),
            ("First:", "\n\n```sh\nrm -rf ~\n```\n", "rm -rf ~\n"),
            ("First:", "\n\n    rm -rf ~\nThen", "rm -rf ~"),
            ("First:\n", "$ rm -rf ~\nThen", "rm -rf ~"),
            ("First:\n", "$ Rm -rf ~\nThen", "Rm -rf ~"),
            ("Error:", "\n\n    Permissions of ~/.ssh are too open.", ""),
            (
                "First:",
                "\n\n    Remove-Item ~/.ssh\nThen",
                "Remove-Item ~/.ssh",
            ),
        ] {
            let text = format!("{before}{marked}");
            assert_eq!(&text[marked_command(&text, before.len())], said);
        }
        let long = format!("Run: {}", "ä".repeat(COMMAND_BYTES));
        assert_eq!(command(&long, 5).len(), COMMAND_BYTES);
    }
}
