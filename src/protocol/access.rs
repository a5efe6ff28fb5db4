//! Access control: what one caller may use.

use std::fmt;
use std::sync::Arc;

use super::{AgentName, UpstreamName};
use crate::config::{AccessConfig, Lists};
use crate::text::glob_matches;

/// The access rights of one caller.
///
/// A denial by any matching table is final, and one matching `read_only` table is enough to
/// restrict the caller to reading. The allow lists of the most specific matching tables are
/// combined: tables that name its agent or user, otherwise those that name one of its groups,
/// otherwise those for everyone (`agents = ["*"]`). If there are tables, callers that match none
/// are denied.
#[derive(Clone, Debug)]
pub struct Access {
    /// Tables that match the caller.
    tables: Box<[Arc<AccessConfig>]>,
    /// The most specific of them, whose allow lists count.
    nearest: Box<[Arc<AccessConfig>]>,
}

enum_with_names! {
    /// The kind of an item that a caller can use. Named as in the audit log.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum ItemKind {
        /// A tool, by name.
        Tool = "tool",
        /// A prompt, by name.
        Prompt = "prompt",
        /// A resource or resource template, by URI.
        Resource = "resource",
    }
}

impl ItemKind {
    fn list<T>(self, lists: &Lists<T>) -> &T {
        match self {
            Self::Tool => &lists.tools,
            Self::Prompt => &lists.prompts,
            Self::Resource => &lists.resources,
        }
    }
}

/// Why access is denied, for the audit log: the caller gets the answer for an unknown name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DenialReason {
    /// No table matches the caller.
    NoTable,
    /// A table denies it.
    DeniedBy(Box<str>),
    /// None of these tables allows it.
    NotAllowed(Box<str>),
    /// This table restricts the caller to reading, and the tool is not known to be read-only.
    ReadOnly(Box<str>),
}

impl fmt::Display for DenialReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoTable => f.write_str("no `[access]` table matches this caller"),
            Self::DeniedBy(table) => write!(f, "`[access.{table}]` denies it"),
            Self::NotAllowed(tables) => write!(f, "it is not allowed by `[access]` table {tables}"),
            Self::ReadOnly(table) => write!(
                f,
                "`[access.{table}]` is read-only, and the tool is not known to be read-only"
            ),
        }
    }
}

impl Access {
    /// Returns the access rights of one caller; `None` if there are no tables, and so no
    /// restrictions.
    pub fn for_caller(
        tables: &[Arc<AccessConfig>],
        agent: &AgentName,
        user: Option<&str>,
        groups: &[Box<str>],
    ) -> Option<Arc<Self>> {
        if tables.is_empty() {
            return None;
        }
        let nearness = |table: &AccessConfig| {
            let fits = |globs: &[String], name: &str| {
                globs
                    .iter()
                    .filter(|glob| glob_matches(glob, name))
                    .any(|glob| glob != "*")
            };
            let everyone = |globs: &[String]| globs.iter().any(|glob| glob == "*");
            if fits(&table.agents, &agent.0) || user.is_some_and(|user| fits(&table.users, user)) {
                Some(2)
            } else if groups.iter().any(|group| fits(&table.groups, group)) {
                Some(1)
            } else if everyone(&table.agents)
                || user.is_some() && everyone(&table.users)
                || !groups.is_empty() && everyone(&table.groups)
            {
                Some(0)
            } else {
                None
            }
        };
        let matching: Vec<(u8, &Arc<AccessConfig>)> = tables
            .iter()
            .filter_map(|table| Some((nearness(table)?, table)))
            .collect();
        let near = matching.iter().map(|(near, _)| *near).max();
        let nearest = matching
            .iter()
            .filter(|(of, _)| Some(*of) == near)
            .map(|(_, table)| (*table).clone())
            .collect();
        Some(Arc::new(Self {
            tables: matching
                .into_iter()
                .map(|(_, table)| table.clone())
                .collect(),
            nearest,
        }))
    }

    /// Checks whether the caller may use an upstream.
    ///
    /// # Errors
    /// The reason why it may not.
    pub fn check_upstream(&self, name: &UpstreamName) -> Result<(), DenialReason> {
        self.check(
            &name.0,
            |lists| &lists.upstreams,
            |lists| lists.upstreams.as_ref(),
        )
    }

    /// Checks whether the caller may use an item of an upstream. For a tool, `hint` returns whether
    /// its annotations declare it read-only; it is called only where that matters.
    ///
    /// # Errors
    /// The reason why it may not.
    pub fn check_item(
        &self,
        kind: ItemKind,
        upstream: &UpstreamName,
        name: &str,
        hint: impl Fn() -> Option<bool>,
    ) -> Result<(), DenialReason> {
        self.check_upstream(upstream)?;
        let full = format!("{upstream}/{name}");
        self.check(
            &full,
            |lists| kind.list(lists),
            |lists| kind.list(lists).as_ref(),
        )?;
        if kind != ItemKind::Tool {
            return Ok(());
        }
        let is_read_only = |table: &AccessConfig| {
            if matches_any(&table.writing_tools, &full) {
                false
            } else {
                matches_any(&table.reading_tools, &full)
                    || matches_any(&table.trust_annotations, &upstream.0) && hint() == Some(true)
            }
        };
        match self
            .tables
            .iter()
            .find(|table| table.read_only && !is_read_only(table))
        {
            Some(table) => Err(DenialReason::ReadOnly(table.name.as_str().into())),
            None => Ok(()),
        }
    }

    fn check(
        &self,
        name: &str,
        denies: impl Fn(&Lists<Vec<String>>) -> &Vec<String>,
        allows: impl Fn(&Lists<Option<Vec<String>>>) -> Option<&Vec<String>>,
    ) -> Result<(), DenialReason> {
        if let Some(table) = self
            .tables
            .iter()
            .find(|table| matches_any(denies(&table.deny), name))
        {
            return Err(DenialReason::DeniedBy(table.name.as_str().into()));
        }
        if self.nearest.is_empty() {
            return Err(DenialReason::NoTable);
        }
        if self
            .nearest
            .iter()
            .any(|table| allows(&table.allow).is_none_or(|globs| matches_any(globs, name)))
        {
            return Ok(());
        }
        let tables: Vec<String> = self
            .nearest
            .iter()
            .map(|table| format!("`{}`", table.name))
            .collect();
        Err(DenialReason::NotAllowed(tables.join(", ").into()))
    }
}

fn matches_any(globs: &[String], name: &str) -> bool {
    globs.iter().any(|glob| glob_matches(glob, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    fn access(tables: &[AccessConfig], agent: &str, user: Option<&str>, groups: &[&str]) -> Access {
        let tables: Vec<_> = tables.iter().cloned().map(Arc::new).collect();
        let groups: Vec<Box<str>> = groups.iter().map(|group| (*group).into()).collect();
        (*Access::for_caller(&tables, &AgentName(agent.into()), user, &groups).unwrap()).clone()
    }

    fn tool(access: &Access, full: &str, hint: Option<bool>) -> bool {
        let (upstream, name) = full.split_once('/').unwrap();
        access
            .check_item(ItemKind::Tool, &UpstreamName(upstream.into()), name, || {
                hint
            })
            .is_ok()
    }

    #[test]
    fn denied_by_any_allowed_by_the_nearest() {
        let tables = [
            AccessConfig {
                name: "all".into(),
                agents: list(&["*"]),
                deny: Lists {
                    tools: list(&["*/rm"]),
                    ..Lists::default()
                },
                allow: Lists {
                    upstreams: Some(list(&["docs"])),
                    ..Lists::default()
                },
                ..AccessConfig::default()
            },
            AccessConfig {
                name: "dev".into(),
                groups: list(&["dev"]),
                allow: Lists {
                    upstreams: Some(list(&["git*"])),
                    ..Lists::default()
                },
                ..AccessConfig::default()
            },
            AccessConfig {
                name: "ops".into(),
                groups: list(&["ops"]),
                allow: Lists {
                    tools: Some(list(&["docs/read_*"])),
                    ..Lists::default()
                },
                ..AccessConfig::default()
            },
            AccessConfig {
                name: "ci".into(),
                agents: list(&["ci-*"]),
                ..AccessConfig::default()
            },
        ];
        let of = |agent: &str, groups: &[&str], full: &str| {
            tool(&access(&tables, agent, None, groups), full, None)
        };
        for (agent, groups, full, may) in [
            ("x", &[][..], "docs/find", true),
            ("x", &[], "docs/rm", false),
            ("x", &[], "github/find", false),
            ("x", &["dev"], "github/find", true),
            ("x", &["dev"], "docs/find", false),
            ("x", &["dev"], "github/rm", false),
            ("x", &["dev", "ops"], "docs/read_it", true),
            ("x", &["ops"], "docs/find", false),
            ("ci-1", &["ops"], "docs/find", true),
            ("ci-1", &[], "docs/rm", false),
        ] {
            assert_eq!(of(agent, groups, full), may, "{agent} {groups:?} {full}");
        }
        let nobody = access(&tables[1..2], "x", None, &[]);
        assert_eq!(
            nobody.check_upstream(&UpstreamName("github".into())),
            Err(DenialReason::NoTable)
        );
        assert!(Access::for_caller(&[], &AgentName("x".into()), None, &[]).is_none());
    }

    #[test]
    fn only_what_is_known_to_read_may_be_called_where_that_is_the_mode() {
        let table = AccessConfig {
            name: "look".into(),
            users: list(&["*#ann"]),
            read_only: true,
            reading_tools: list(&["*/find"]),
            writing_tools: list(&["docs/read_and_burn"]),
            trust_annotations: list(&["docs"]),
            ..AccessConfig::default()
        };
        let ann = access(&[table], "x", Some("https://i#ann"), &[]);
        for (full, hint, may) in [
            ("docs/get", Some(true), true),
            ("docs/get", Some(false), false),
            ("docs/get", None, false),
            ("docs/read_and_burn", Some(true), false),
            ("other/get", Some(true), false),
            ("other/find", None, true),
            ("other/find", Some(false), true),
        ] {
            assert_eq!(tool(&ann, full, hint), may, "{full} {hint:?}");
        }
        assert!(
            ann.check_item(ItemKind::Prompt, &UpstreamName("docs".into()), "p", || None)
                .is_ok()
        );
    }
}
