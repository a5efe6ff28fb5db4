//! How much text of a tool's result an agent gets.

use std::collections::BTreeMap;

use crate::config::{PolicyConfig, RESULT_TEXT_BYTES, SHELL_RESULT_TEXT_BYTES};
use crate::text::cut;

/// The longest text of a result, by tool.
#[derive(Clone, Debug)]
pub(super) struct Caps {
    by_tool: BTreeMap<String, usize>,
    /// Tools that the policy names in `shell`: their output is a log more often than a document.
    shell: Vec<String>,
}

impl Caps {
    pub(super) fn new(config: &PolicyConfig) -> Self {
        Self { by_tool: config.result_text_bytes.clone(), shell: config.shell.clone() }
    }

    /// The cap for a tool, in bytes.
    pub(super) fn of(&self, tool: Option<&str>) -> usize {
        let named = tool.and_then(|tool| self.by_tool.get(tool)).copied();
        let is_shell = |tool: &str| {
            self.shell.iter().any(|name| name.strip_prefix(tool).is_some_and(|rest| rest.is_empty() || rest.starts_with('.')))
        };
        named
            .or_else(|| tool.filter(|tool| is_shell(tool)).map(|_| SHELL_RESULT_TEXT_BYTES))
            .unwrap_or_else(|| self.by_tool.get("*").copied().unwrap_or(RESULT_TEXT_BYTES))
    }
}

/// The text of a result that may still be shown.
pub(super) struct Budget {
    cap: usize,
    total: usize,
    left: usize,
    told: bool,
}

impl Budget {
    /// For texts of `total` bytes together.
    pub(super) fn new(cap: usize, total: usize) -> Self {
        Self { cap, total, left: cap, told: false }
    }

    /// Whether everything fits.
    pub(super) fn fits(&self) -> bool {
        self.total <= self.cap
    }

    /// What is shown of the next text, if not all of it, and how many bytes of it are not.
    pub(super) fn take(&mut self, text: &str) -> Option<(String, usize)> {
        if text.len() <= self.left {
            self.left -= text.len();
            return None;
        }
        let shown = cut(text, self.left);
        self.left = 0;
        let mut out = shown.to_owned();
        if !self.told {
            self.told = true;
            out.push_str(&format!(
                "\n[lychgate: cut here, {} of {} bytes of text are shown (limit `result_text_bytes`); ask for less at a time]",
                self.cap, self.total
            ));
        }
        Some((out, text.len() - shown.len()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_counts() {
        let mut config = PolicyConfig { shell: vec!["bash.cmd".into(), "sh".into()], ..PolicyConfig::default() };
        let caps = Caps::new(&config);
        assert_eq!(
            [caps.of(Some("bash")), caps.of(Some("sh")), caps.of(Some("ba")), caps.of(None)],
            [10_000, 10_000, 50_000, 50_000]
        );
        config.result_text_bytes = [("*".to_owned(), 7), ("bash".to_owned(), 9)].into();
        let caps = Caps::new(&config);
        assert_eq!([caps.of(Some("bash")), caps.of(Some("sh")), caps.of(Some("x"))], [9, 10_000, 7]);
    }

    #[test]
    fn cuts_between_characters_and_says_so_once() {
        let mut budget = Budget::new(4, 11);
        assert!(!budget.fits() && budget.take("ab").is_none());
        let (shown, cut) = budget.take("aéüx").unwrap();
        assert!(shown.starts_with("a\n[lychgate: cut here, 4 of 11 bytes"), "{shown}");
        assert_eq!(cut, 5);
        assert_eq!(budget.take("rest").unwrap(), (String::new(), 4));
    }
}
