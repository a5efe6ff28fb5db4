//! Which weights a policy's model of wording has.

use std::path::PathBuf;

/// Which weights a policy's model of wording has (`model`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ModelConfig {
    /// None: wording is judged by rules alone.
    #[default]
    Off,
    /// Those that come with the binary.
    Builtin,
    /// Those of this file.
    File(PathBuf),
}
