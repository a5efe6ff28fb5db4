//! Which weights a policy's model of wording has.

use std::path::PathBuf;

/// Which weights a policy's model of wording has (`model`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ModelConfig {
    /// Those that come with the binary.
    #[default]
    Builtin,
    /// None: wording is judged by rules alone.
    Off,
    /// Those of this file.
    File(PathBuf),
}
