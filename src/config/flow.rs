//! Data flow labels of tools: `flow` of policies and upstreams.

use crate::detect::flow::{DataLabels, FlowContext, Session};
use crate::text::glob_matches;

/// Globs of the tools that return private data, of those that return untrusted content, and of
/// those that send data out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlowConfig {
    /// Tools that return private data (`private`).
    pub private: Vec<String>,
    /// Tools that return content from untrusted authors (`untrusted`).
    pub untrusted: Vec<String>,
    /// Tools whose arguments leave the organisation (`outward`).
    pub outward: Vec<String>,
}

impl FlowConfig {
    /// Reports whether no labels are set.
    pub fn is_empty(&self) -> bool {
        self.private.is_empty() && self.untrusted.is_empty() && self.outward.is_empty()
    }

    /// Returns the data flow context of a tool; `tool` is `None` for anything that is not a tool,
    /// such as resources. Guessed labels are used only if no labels are declared for any tool.
    pub fn context<'s>(
        &self,
        session: &'s Session<'s>,
        tool: Option<&str>,
        guessed: DataLabels,
    ) -> FlowContext<'s> {
        let matches_tool = |globs: &[String]| {
            globs
                .iter()
                .any(|glob| tool.map_or(glob == "*", |tool| glob_matches(glob, tool)))
        };
        let declared = DataLabels {
            private: matches_tool(&self.private),
            untrusted: matches_tool(&self.untrusted),
            outward: matches_tool(&self.outward),
        };
        let guessed = if self.is_empty() {
            guessed
        } else {
            DataLabels::default()
        };
        FlowContext {
            session,
            declared,
            guessed,
            schema: None,
        }
    }
}
