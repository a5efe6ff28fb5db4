//! Looking back: what the audit log holds, as data. The verbs print it and the console shows it.

pub mod entry;
pub mod explain;
pub mod filter;
pub mod follow;
pub mod ids;
pub mod log;
mod rebuilt;
pub mod replay;
pub mod stats;

pub use entry::{Entry, Found};
pub use filter::Filter;
pub use follow::Follow;
pub use ids::Named;
pub use log::{Bad, Entries, Log};
pub use rebuilt::{Judges, Missing};
pub use stats::{Stats, Top};
