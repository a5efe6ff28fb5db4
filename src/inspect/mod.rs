//! From a message to a verdict. Pure: no clock, no I/O, no state.

mod finding;
mod verdict;

pub use finding::{Evidence, Finding};
pub use verdict::{Coverage, Inspection, Mode, Refusal, Uninspected, Verdict};
