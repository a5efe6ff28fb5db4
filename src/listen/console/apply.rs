//! Writes an edit of the gate's config file and waits until the running gate applies it.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use http::{Response, StatusCode};
use serde::Serialize;

use super::page::{json, refuse};
use super::quarantine::WHO;
use crate::document::{Day, Fault};
use crate::listen::Body;
use crate::proxy::{Gate, Policies};
use crate::review::ConfigEdit;

/// Maximum size of a request to edit the config, in bytes.
pub(super) const BODY_BYTES: usize = 64 << 10;
/// Number of times the gate is checked for having reloaded its config.
const CHECKS: usize = 25;
/// Time between two of these checks.
const CHECK_INTERVAL: Duration = Duration::from_millis(200);

#[derive(Serialize)]
struct AppliedEdit {
    file: String,
    /// Whether the running gate already applies it.
    in_force: bool,
}

/// Returns the refusal of a gate that has no config file.
pub(super) fn no_config_file() -> Response<Body> {
    refuse(
        StatusCode::CONFLICT,
        "the gateway was started without a config file",
    )
}

/// Returns the date and author of a console edit, for the comment above it.
pub(super) fn signature() -> String {
    let today = Day::after(SystemTime::now(), 0)
        .map(|day| day.text)
        .unwrap_or_default();
    format!("{today}, by {WHO}")
}

/// Creates an edit of `file` and writes it; then waits until `applies` holds for the policies in
/// force. `change` is the description for the log.
pub(super) async fn apply(
    gate: &Gate,
    file: PathBuf,
    change: &str,
    edit: impl FnOnce(&Path) -> Result<ConfigEdit, Vec<Fault>> + Send + 'static,
    applies: impl Fn(&Policies) -> bool,
) -> Response<Body> {
    let file_name = file.display().to_string();
    match tokio::task::spawn_blocking(move || write(&file, edit)).await {
        Ok(Ok(())) => {
            tracing::info!(file = file_name, change, "config edited in the console");
            json(
                StatusCode::OK,
                &AppliedEdit {
                    file: file_name,
                    in_force: wait_until(gate, applies).await,
                },
            )
        }
        Ok(Err(why)) => refuse(StatusCode::CONFLICT, &why),
        Err(_) => refuse(
            StatusCode::INTERNAL_SERVER_ERROR,
            "the config could not be written",
        ),
    }
}

fn write(
    file: &Path,
    edit: impl FnOnce(&Path) -> Result<ConfigEdit, Vec<Fault>>,
) -> Result<(), String> {
    let edit = edit(file).map_err(|faults| {
        let faults: Vec<String> = faults.iter().map(ToString::to_string).collect();
        format!("the config was not changed: {}", faults.join("; "))
    })?;
    let hint = "add the lines to it as a user who may write it";
    edit.write()
        .map_err(|error| format!("`{}` cannot be written: {error}; {hint}", file.display()))
}

async fn wait_until(gate: &Gate, applies: impl Fn(&Policies) -> bool) -> bool {
    for _ in 0..CHECKS {
        if applies(&gate.policies()) {
            return true;
        }
        tokio::time::sleep(CHECK_INTERVAL).await;
    }
    false
}
