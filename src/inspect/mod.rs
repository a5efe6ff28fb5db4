//! From a message to a verdict. Pure: no clock, no I/O, no state.

mod arguments;
mod caps;
mod finding;
mod ground;
mod inbound;
mod outbound;
mod pins;
mod policy;
mod rewrite;
mod string;
mod surface;
pub mod tools;
mod verdict;

pub use finding::{Evidence, Finding};
pub use policy::{Known, Policy, TextInspection, TextVerdict};
pub use verdict::{Coverage, Inspection, Mode, Question, Refusal, Uninspected, Verdict};

#[cfg(test)]
mod tests;
