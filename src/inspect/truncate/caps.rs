//! Limits on how much text of a tool's result an agent receives at once.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use crate::config::{PolicyConfig, RESULT_TEXT_BYTES, SHELL_RESULT_TEXT_BYTES};
use crate::protocol::AuditId;

use super::portion::Portions;
use crate::inspect::wrap::{between_markers, split_markers};

/// The maximum length of the text of a result, and of one block of it, by tool.
#[derive(Clone, Debug)]
pub(in crate::inspect) struct Caps {
    by_tool: BTreeMap<String, usize>,
    blocks: BTreeMap<String, usize>,
    /// Tools that the policy names in `shell`: their output is usually a log rather than a
    /// document.
    shell: Vec<String>,
}

/// Limits on how much of one tool's texts is shown, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::inspect) struct Cap {
    pub(in crate::inspect) total_bytes: usize,
    pub(in crate::inspect) block_bytes: usize,
}

impl Caps {
    pub(in crate::inspect) fn new(config: &PolicyConfig) -> Self {
        Self {
            by_tool: config.result_text_bytes.clone(),
            blocks: config.result_block_bytes.clone(),
            shell: config.shell.clone(),
        }
    }

    /// Returns the limits for a tool.
    pub(in crate::inspect) fn cap(&self, tool: Option<&str>) -> Cap {
        let tool_bytes = tool.and_then(|tool| self.by_tool.get(tool)).copied();
        let is_shell = |tool: &str| {
            self.shell.iter().any(|name| {
                name.strip_prefix(tool)
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
            })
        };
        let total_bytes = tool_bytes
            .or_else(|| {
                tool.filter(|tool| is_shell(tool))
                    .map(|_| SHELL_RESULT_TEXT_BYTES)
            })
            .unwrap_or_else(|| self.by_tool.get("*").copied().unwrap_or(RESULT_TEXT_BYTES));
        let block = tool
            .and_then(|tool| self.blocks.get(tool))
            .or_else(|| self.blocks.get("*"))
            .copied();
        Cap {
            total_bytes,
            block_bytes: block.unwrap_or(usize::MAX),
        }
    }
}

/// Settings for storing text that does not fit, so that the agent can read the rest.
#[derive(Clone, Debug, Default)]
pub struct Paging {
    /// Maximum length of a text that is stored, in bytes.
    pub most_bytes: usize,
    /// Whether the agent's client supports resource links (2025-06-18 and later).
    pub links: bool,
    /// Generated for the first text that does not fit, since few messages need it.
    id: OnceLock<String>,
}

impl Paging {
    /// Creates settings that store texts of at most `most_bytes`.
    pub fn new(most_bytes: usize, links: bool) -> Self {
        Self {
            most_bytes,
            links,
            id: OnceLock::new(),
        }
    }

    /// Returns the first part of the URIs of everything that is stored for this message: 122 random
    /// bits.
    pub(in crate::inspect) fn id(&self) -> &str {
        self.id
            .get_or_init(|| uuid::Uuid::new_v4().simple().to_string())
    }
}

/// The rest of a text that did not fit, from the cut on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remainder {
    /// The id of the rest within [`URI_PREFIX`].
    pub id: String,
    /// The text that was not shown.
    pub text: String,
    /// Number of bytes shown per page.
    pub page_bytes: usize,
    /// Number of bytes shown before the rest.
    pub before_bytes: usize,
    /// The id of the markers that enclose the text.
    pub marker_id: Option<String>,
}

/// Prefix of the URIs under which the gate serves text that did not fit: an id follows, and the
/// number of a page.
pub const URI_PREFIX: &str = "lychgate://result/";

/// Returns the URI of a page of a rest; the first page of a text is what the result itself shows.
pub fn page_uri(id: &str, page: usize) -> String {
    format!("{URI_PREFIX}{id}/{page}")
}

/// Returns the line that reports that there is more text, and where to read it.
pub fn footer(shown: usize, total: usize, at: Option<&str>) -> String {
    let kilo = |bytes: usize| (bytes + 500) / 1000;
    let sizes = if total < 10_000 {
        format!("{shown} of {total} bytes")
    } else {
        format!("{} of {} kB", kilo(shown), kilo(total))
    };
    match at {
        Some(at) => format!(
            "\n[lychgate: … {sizes}; more: {at} (read this resource, or if you cannot, ask for less at a time)]"
        ),
        None => format!("\n[lychgate: … {sizes}; the rest is not kept: ask for less at a time]"),
    }
}

/// The amount of a result's text that may still be shown.
pub(in crate::inspect) struct Budget<'p> {
    cap: Cap,
    total: usize,
    remaining: usize,
    paging: Option<&'p Paging>,
    /// The id in the markers of texts that are wrapped: each page has its own pair of them.
    markers: String,
    /// The texts that do not fit.
    pub(in crate::inspect) remainders: Vec<Remainder>,
    /// Whether further text does not fit at all: it is added to the last rest, if that is stored.
    spent: bool,
    /// Whether a limit was exceeded: the text that is cut off is too long to be stored.
    pub(in crate::inspect) is_too_long: bool,
}

impl<'p> Budget<'p> {
    /// Creates a budget for texts of `total` bytes together.
    pub(in crate::inspect) fn new(
        cap: Cap,
        total: usize,
        paging: Option<&'p Paging>,
        audit: AuditId,
    ) -> Self {
        Self {
            cap,
            total,
            remaining: cap.total_bytes,
            paging,
            markers: audit.to_string(),
            remainders: Vec::new(),
            spent: false,
            is_too_long: false,
        }
    }

    /// Returns whether no further text is shown.
    pub(in crate::inspect) fn is_spent(&self) -> bool {
        self.spent
    }

    /// Returns the part of the next text that is shown, if not all of it, and the number of bytes
    /// that are not shown. `number` counts the rests of a message; `label` names the text if it is
    /// not shown at all.
    pub(in crate::inspect) fn take(
        &mut self,
        text: &str,
        number: &mut usize,
        label: &str,
    ) -> Option<(String, usize)> {
        let marked_parts = split_markers(text, &self.markers);
        if self.spent {
            if let Some(rest) = self.remainders.last_mut().filter(|_| !self.is_too_long) {
                rest.text.push_str(label);
                rest.text.push_str(text);
                rest.marker_id = rest
                    .marker_id
                    .take()
                    .or(marked_parts.map(|_| self.markers.clone()));
            }
            return (!text.is_empty()).then(|| (String::new(), text.len()));
        }
        let room = self.remaining.min(self.cap.block_bytes);
        if text.len() <= room {
            self.remaining -= text.len();
            return None;
        }
        let (head, text) = marked_parts.unwrap_or(("", text));
        let end = if room == 0 {
            0
        } else {
            Portions::new(text).end(0, room)
        };
        let (shown, rest) = text.split_at_checked(end).unwrap_or(("", text));
        let shown = match marked_parts {
            Some(_) => format!("{head}{}", between_markers(shown, &self.markers)),
            None => shown.to_owned(),
        };
        self.spent = self.cap.block_bytes >= self.remaining;
        let (before_bytes, total) = if self.spent {
            (self.cap.total_bytes - self.remaining + end, self.total)
        } else {
            (end, text.len())
        };
        self.remaining -= end.min(self.remaining);
        let store = self
            .paging
            .filter(|paging| total - before_bytes <= paging.most_bytes);
        let at = store.map(|paging| {
            *number += 1;
            let id = format!("{}-{number}", paging.id());
            let at = page_uri(&id, 2);
            let text = rest.to_owned();
            let page_bytes = self.cap.total_bytes.min(self.cap.block_bytes);
            let marker_id = marked_parts.map(|_| self.markers.clone());
            self.remainders.push(Remainder {
                id,
                text,
                page_bytes,
                before_bytes,
                marker_id,
            });
            at
        });
        self.is_too_long |= self.paging.is_some() && store.is_none();
        Some((
            format!("{shown}{}", footer(before_bytes, total, at.as_deref())),
            rest.len(),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_counts() {
        let mut config = PolicyConfig {
            shell: vec!["bash.cmd".into(), "sh".into()],
            ..PolicyConfig::default()
        };
        let all = |config: &PolicyConfig, tool| Caps::new(config).cap(tool).total_bytes;
        let of = |config: &PolicyConfig| {
            [Some("bash"), Some("sh"), Some("ba"), None].map(|tool| all(config, tool))
        };
        assert_eq!(of(&config), [10_000, 10_000, 50_000, 50_000]);
        config.result_text_bytes = [("*".to_owned(), 7), ("bash".to_owned(), 9)].into();
        config.result_block_bytes = [("sh".to_owned(), 5)].into();
        assert_eq!(of(&config), [9, 10_000, 7, 7]);
        assert_eq!(
            [Some("sh"), Some("x")].map(|tool| Caps::new(&config).cap(tool).block_bytes),
            [5, usize::MAX]
        );
    }

    #[test]
    fn what_does_not_fit_is_kept_in_order() {
        let paging = Paging::new(100, false);
        let id = paging.id();
        let cap = Cap {
            total_bytes: 20,
            block_bytes: usize::MAX,
        };
        let mut budget = Budget::new(cap, 40, Some(&paging), AuditId::generate());
        let mut number = 0;
        assert!(budget.take("one two three ", &mut number, "").is_none());
        let (shown, cut_bytes) = budget.take("four five six ", &mut number, "").unwrap();
        let more = format!("four \n[lychgate: … 19 of 40 bytes; more: lychgate://result/{id}-1/2 ");
        assert!(shown.starts_with(&more), "{shown}");
        assert_eq!(
            (cut_bytes, budget.take("seven", &mut number, "\n").unwrap()),
            (9, (String::new(), 5))
        );
        assert_eq!(
            budget.remainders,
            [Remainder {
                id: format!("{id}-1"),
                text: "five six \nseven".into(),
                page_bytes: 20,
                before_bytes: 19,
                marker_id: None
            }]
        );
    }

    #[test]
    fn a_block_has_a_cap_of_its_own() {
        let paging = Paging::new(4, false);
        let mut budget = Budget::new(
            Cap {
                total_bytes: 100,
                block_bytes: 8,
            },
            50,
            Some(&paging),
            AuditId::generate(),
        );
        let mut number = 0;
        let (shown, _) = budget.take("aaa bbb ccc", &mut number, "").unwrap();
        assert!(
            shown.starts_with("aaa bbb \n[lychgate: … 8 of 11 bytes; more:"),
            "{shown}"
        );
        assert!(budget.take("short", &mut number, "").is_none());
        let (shown, _) = budget.take("aaa bbb ccc ddd", &mut number, "").unwrap();
        assert!(
            shown.ends_with("8 of 15 bytes; the rest is not kept: ask for less at a time]"),
            "{shown}"
        );
        assert!(budget.is_too_long && number == 1);
    }
}
