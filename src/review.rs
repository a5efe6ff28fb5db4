//! Reads the audit log back, as data. The subcommands print it and the console displays it.

mod config_edit;
pub mod entry;
pub mod explain;
pub mod filter;
pub mod follow;
pub mod ids;
pub mod log;
mod recent;
mod rejudge;
pub mod replay;
mod set_key;
pub mod stats;
pub mod suppress;
pub mod tool_visibility;

pub use config_edit::ConfigEdit;
pub use entry::{Entry, EntryFinding};
pub use filter::Filter;
pub use follow::Follow;
pub use ids::AuditIds;
pub use log::{BadLine, Entries, Log};
pub use recent::recent_entries;
pub use rejudge::{Limitation, PolicySet};
pub use stats::{NameCounts, Stats};
