//! Which tools give and take what: `flow` of policies and upstreams.

use crate::detect::flow::{Here, Session, Sides};
use crate::text::glob_fits;

/// Which tools are sources of private data, which give anybody's words, and which send out of the house: by globs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlowConfig {
    /// What they answer is private (`private`).
    pub private: Vec<String>,
    /// What they answer may be anybody's words (`untrusted`).
    pub untrusted: Vec<String>,
    /// What they are called with leaves the house (`outward`).
    pub outward: Vec<String>,
}

impl FlowConfig {
    /// Whether nothing is set.
    pub fn is_empty(&self) -> bool {
        self.private.is_empty() && self.untrusted.is_empty() && self.outward.is_empty()
    }

    /// Where a tool stands in the flow of data; `None` stands for what is no tool, such as resources. What is guessed counts
    /// only where nothing is said of any tool.
    pub fn here<'s>(
        &self,
        session: &'s Session<'s>,
        tool: Option<&str>,
        guessed: Sides,
    ) -> Here<'s> {
        let named = |globs: &[String]| {
            globs
                .iter()
                .any(|glob| tool.map_or(glob == "*", |tool| glob_fits(glob, tool)))
        };
        let declared = Sides {
            private: named(&self.private),
            untrusted: named(&self.untrusted),
            outward: named(&self.outward),
        };
        let guessed = if self.is_empty() {
            guessed
        } else {
            Sides::default()
        };
        Here {
            session,
            declared,
            guessed,
            schema: None,
        }
    }
}
