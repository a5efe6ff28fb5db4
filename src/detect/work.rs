//! Names of the readings with which rules report that a text exceeded a work limit. Content that
//! was not examined is not forwarded, and each case is counted under the name of the limit in
//! `lychgate_limits_hit_total`. The values of the limits are constants beside the code that they
//! bound.
//!
//! [`Budget`] bounds what a message can cost beyond its own bytes: one for all strings and blocks
//! of the message, since a limit on each block does not bound a message of many blocks.

use std::cell::Cell;

/// Limits on commands: bytes, steps, depth, expansions.
pub const COMMAND: &str = "command_work";
/// Limits on SQL: bytes, tokens.
pub const SQL: &str = "sql_work";
/// Limits on secrets: bytes decoded and examined.
pub const SECRET: &str = "secret_work";
/// Limits on patterns: bytes that regexes examine, matches of one rule.
pub const PATTERN: &str = "pattern_work";
/// Limits on paths: bytes, lines.
pub const PATH: &str = "path_work";
/// Limits on URLs: bytes, hosts of one URL.
pub const URL: &str = "url_work";
/// Limits on checks of arguments against schemas: steps.
pub const SCHEMA: &str = "schema_work";

/// All of these names.
pub const ALL: [&str; 7] = [COMMAND, SQL, SECRET, PATTERN, PATH, URL, SCHEMA];

/// The limit on [`WorkLimits::unpacked_bytes`], by its name in the config.
pub const UNPACKED: &str = "unpacked_bytes_per_message";
/// The limit on [`WorkLimits::judged_bytes`], by its name in the config.
pub const JUDGED: &str = "judged_bytes_per_message";

/// Limits on the work that a message can cause beyond its own bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkLimits {
    /// Bytes decompressed from all packed data of a message: `unpacked_bytes_per_message`.
    pub unpacked_bytes: usize,
    /// Bytes of text found in packed and encoded data of a message that are judged, each reading
    /// counted: `judged_bytes_per_message`.
    pub judged_bytes: usize,
}

impl Default for WorkLimits {
    fn default() -> Self {
        Self {
            unpacked_bytes: 4 << 20,
            judged_bytes: 4 << 20,
        }
    }
}

/// The remaining work of one message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Budget {
    unpacked: Cell<usize>,
    judged: Cell<usize>,
    exceeded: Cell<ExceededLimits>,
}

/// The limits of a [`Budget`] that were exceeded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct ExceededLimits {
    unpacked: bool,
    judged: bool,
}

impl Default for Budget {
    fn default() -> Self {
        Self::new(WorkLimits::default())
    }
}

impl Budget {
    /// Returns the full budget for one message.
    pub fn new(limits: WorkLimits) -> Self {
        Self {
            unpacked: Cell::new(limits.unpacked_bytes),
            judged: Cell::new(limits.judged_bytes),
            exceeded: Cell::default(),
        }
    }

    /// Returns the number of bytes that may still be unpacked.
    pub fn unpacked_left(&self) -> usize {
        self.unpacked.get()
    }

    /// Deducts unpacked bytes from the budget.
    pub fn spend_unpacked(&self, bytes: usize) {
        self.unpacked.set(self.unpacked.get().saturating_sub(bytes));
    }

    /// Records that data was left packed because of this budget.
    pub fn refuse_unpacking(&self) {
        self.exceeded.set(ExceededLimits {
            unpacked: true,
            ..self.exceeded.get()
        });
    }

    /// Deducts the bytes of a text that is to be judged. Returns `false`, and deducts nothing, if
    /// the remaining budget is too small.
    pub fn spend_judged(&self, bytes: usize) -> bool {
        let remaining = self.judged.get().checked_sub(bytes);
        match remaining {
            Some(remaining) => self.judged.set(remaining),
            None => self.exceeded.set(ExceededLimits {
                judged: true,
                ..self.exceeded.get()
            }),
        }
        remaining.is_some()
    }

    /// Returns the limits that were exceeded, by their names in the config.
    pub fn exceeded(&self) -> impl Iterator<Item = &'static str> {
        let ExceededLimits { unpacked, judged } = self.exceeded.get();
        [(unpacked, UNPACKED), (judged, JUDGED)]
            .into_iter()
            .filter_map(|(exceeded, name)| exceeded.then_some(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_spent_once_and_names_its_limits() {
        let budget = Budget::new(WorkLimits {
            unpacked_bytes: 10,
            judged_bytes: 20,
        });
        budget.spend_unpacked(4);
        assert_eq!(budget.unpacked_left(), 6);
        budget.spend_unpacked(60);
        assert_eq!(budget.unpacked_left(), 0);
        assert!(budget.spend_judged(15) && budget.exceeded().next().is_none());
        assert!(!budget.spend_judged(6) && budget.spend_judged(5));
        assert_eq!(budget.exceeded().collect::<Vec<_>>(), [JUDGED]);
        budget.refuse_unpacking();
        assert_eq!(budget.exceeded().collect::<Vec<_>>(), [UNPACKED, JUDGED]);
    }
}
