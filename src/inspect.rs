//! Inspection: from a message to a verdict. Pure: no clock, no I/O, and no state on which a
//! verdict depends.

pub mod access;
mod apply;
mod arguments;
mod binary;
mod blocks;
mod classify;
mod clean_texts;
mod confirm;
mod consequence;
mod contents;
mod context;
mod cross_block;
pub mod definitions;
mod estimate;
pub mod files;
mod finding;
mod fragment;
mod ground;
mod hit;
mod inbound;
mod instruction_files;
pub mod memory;
mod nested;
mod numbered_parts;
mod ordered_commands;
mod outbound;
mod pages;
mod policy;
mod read_only;
mod readers;
mod released;
mod result_size;
mod rewrite;
mod skip_reason;
mod string;
mod suppress;
mod surface;
pub mod tools;
mod truncate;
mod verdict;
mod wrap;

pub use classify::{Classified, ClassifierFailure, Unclassified, UnscoredText};
pub use clean_texts::CleanTexts;
pub use confirm::{EVERY_USE, FIRST_USE, FIRST_WRITE};
pub use context::InspectContext;
pub use cross_block::StreamTail;
pub use estimate::expected_work;
pub use finding::{Detail, Evidence, Finding, Trace};
pub use policy::{Policy, TextInspection, TextVerdict};
pub use result_size::ResultSize;
pub use skip_reason::SkipReason;
pub use suppress::{SuppressedAction, Suppressions, describe_suppression_changes};
pub use truncate::{Paging, Portions, Remainder, URI_PREFIX, footer, page_uri};
pub use verdict::{Coverage, Inspection, Mode, Question, Refusal, Uninspected, Verdict};
pub use wrap::between_markers;

#[cfg(test)]
mod budget_tests;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;
