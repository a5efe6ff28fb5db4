//! Realistic sample files of each client.

use clap::ValueEnum as _;
use serde::Deserialize;

use super::client::Client;

#[derive(Deserialize)]
struct Samples {
    file: Vec<Sample>,
}

/// A file of a client, and what it must contain after its servers are moved.
#[derive(Deserialize)]
pub(super) struct Sample {
    client: String,
    pub(super) path: String,
    pub(super) text: String,
    pub(super) contains: Vec<String>,
}

impl Sample {
    pub(super) fn client(&self) -> Client {
        Client::from_str(&self.client, false).unwrap()
    }

    /// Returns the sample of a client.
    pub(super) fn of(client: Client) -> Self {
        let mut all = samples().into_iter();
        all.find(|sample| sample.client() == client).unwrap()
    }
}

pub(super) fn samples() -> Vec<Sample> {
    toml::from_str::<Samples>(include_str!("samples.toml"))
        .unwrap()
        .file
}
